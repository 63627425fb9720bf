"""Files that are written whole or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO


@contextmanager
def whole_file(path: str | PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to, beside its place; it is moved there once all is on the disk.

    Whatever goes wrong before, a full disk or a kill, leaves what was there before, if anything.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(pathlib.Path(folder, "a.txt")) as file:
    ...         _ = file.write(b"all of it")
    ...     pathlib.Path(folder, "a.txt").read_text()
    'all of it'
    """
    target = place_of(path)
    if target.exists() and not target.is_file():
        # A device or a pipe (/dev/stdout, say) is written to: moving a file there would end it.
        with open(target, "wb") as file:
            yield file
        return
    aside = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.tmp")
    try:
        # Not tempfile: the file shall have the permissions of any other new file.
        with open(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def place_of(path: str | PathLike[str]) -> Path:
    """Where a file is to be, links followed; an error in words where none can be.

    Examples
    --------
    >>> place_of("no such folder/model.rejoint")
    Traceback (most recent call last):
    ...
    FileNotFoundError: Cannot save to 'no such folder/model.rejoint': there is no folder '...'.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"Cannot save to '{path}': there is no folder '{target.parent}'.")
    if target.is_dir():
        raise IsADirectoryError(f"Cannot save to '{path}': it is a folder; name a file.")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise PermissionError(f"Cannot save to '{path}': you may not write there.")
    return target
