"""Files and folders that are written whole or not at all."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO


@contextmanager
def atomic_file(path: str | PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file beside `path` for writing; move it there once all of it is on the disk.

    If anything fails before (a full disk, a kill), an existing file stays as it was.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_file(Path(folder, "a.txt")) as file:
    ...         _ = file.write(b"all of it")
    ...     Path(folder, "a.txt").read_text()
    'all of it'
    """
    target = resolve_target(path)
    if target.exists() and not target.is_file():
        # Devices and pipes (such as /dev/stdout) are written to; a move would replace them.
        with open(target, "wb") as file:
            yield file
        return
    aside = _beside(target, "tmp")
    try:
        # Not tempfile: the file gets the permissions of any other new file.
        with open(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


@contextmanager
def atomic_folder(path: str | PathLike[str]) -> Iterator[Path]:
    """Make a folder beside `path` to write to; move it there at the end, in place of an old one.

    If anything fails before, an existing folder stays as it was.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_folder(Path(folder, "new")) as made:
    ...         _ = (made / "a.txt").write_text("all of it")
    ...     os.listdir(Path(folder, "new"))
    ['a.txt']
    """
    target = Path(os.path.realpath(path))
    aside = _beside(target, "tmp")
    try:
        aside.mkdir()
        yield aside
        _replace_folder(aside, target)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def _replace_folder(aside: Path, target: Path) -> None:
    if not target.exists():
        os.rename(aside, target)
        return
    old = _beside(target, "old")
    os.rename(target, old)
    try:
        os.rename(aside, target)
    except BaseException:
        os.rename(old, target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _beside(target: Path, ending: str) -> Path:
    return target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.{ending}")


def resolve_target(path: str | PathLike[str]) -> Path:
    """Return where a file will be, links followed; raise an error if it cannot be written.

    Examples
    --------
    >>> resolve_target("no such folder/model.rejoint")
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
