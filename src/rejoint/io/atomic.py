"""Atomic writes: files and folders that are written whole or not at all.

A file is written under a temporary name in the folder where it belongs, synced, and renamed. The
mode of a file that is replaced is kept, and symbolic links are followed: the file that a link
points to is replaced, not the link. A process that is killed may leave its temporary file, whose
name starts with ``.rejoint-``.
"""

import errno
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import file_digest
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import IO

if sys.platform == "win32":
    fcntl = None
else:
    import fcntl

_START = 512  # bytes of a file that tell who wrote it

#: What is in the first bytes of files that took a fit to make: only their like replaces them.
_FITTED = (b"rejoint.LowRankPMF", b"rejoint checkpoint")
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def atomic_file(path: str | PathLike[str], *, signature: bytes = b"") -> Iterator[IO[bytes]]:
    """Open a file beside `path` for writing; move it there once all of it is on the disk.

    If anything fails before (a full disk, a kill), an existing file stays as it was.

    Parameters
    ----------
    path : path
        The file; devices and pipes are written to as they are.
    signature : bytes
        What the first bytes of an existing file must contain for it to be replaced, unless it is
        empty; by default any file but a model or a checkpoint is replaced.
    """
    target = resolve_target(path, signature)
    with name_if_full(path):
        if target.exists() and not target.is_file():
            # Devices and pipes (such as /dev/stdout) are written to; a move would replace them.
            # They cannot seek as the writer of an archive does, so they get all bytes at once.
            content = BytesIO()
            yield content
            target.write_bytes(content.getvalue())
            return
        aside = _beside(target)
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        try:
            # Not tempfile: the file gets the permissions of any other new file.
            opened = os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if mode else 0o666)
            with open(opened, "wb") as file:
                if mode is not None:
                    os.chmod(aside, mode)
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(aside, target)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise


@contextmanager
def atomic_folder(path: str | PathLike[str]) -> Iterator[Path]:
    """Make a folder beside `path`, which is new or empty, to write to; move it there at the end."""
    target = Path(os.path.realpath(path))
    if target.is_dir() and any(target.iterdir()):
        raise FileExistsError(
            f"Cannot write '{path}': it contains other files; choose a new folder."
        )
    aside = _beside(target)
    aside.mkdir()
    try:
        with name_if_full(path):
            yield aside
            for made in aside.iterdir():
                with open(made, "rb+") as file:
                    os.fsync(file.fileno())
        sync_folder(aside)
        if target.is_dir():
            os.chmod(aside, stat.S_IMODE(target.stat().st_mode))
            target.rmdir()
        os.rename(aside, target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _beside(target: Path) -> Path:
    return target.parent / f".rejoint-{secrets.token_hex(4)}.tmp"


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk, where a folder can be opened."""
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Wait until no other process has the folder locked, and lock it, where that is possible."""
    if fcntl is None:
        yield
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


class FileChangedError(ValueError):
    """Error raised where a file was written by others since it was read."""


class FileVersion:
    """What a file held when it was read, so that the work of others is not overwritten."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self.renew()

    def renew(self) -> None:
        """Accept the present contents of the file as what was read."""
        self._digest = self._find_digest()

    def check(self) -> None:
        """Raise an error if the file does not hold what was read."""
        if self._find_digest() != self._digest:
            raise FileChangedError(f"'{self.path}' was changed by another program: open it again.")

    def _find_digest(self) -> str:
        try:
            with open(self.path, "rb") as file:
                return file_digest(file, "blake2b").hexdigest()
        except FileNotFoundError:
            return ""


@contextmanager
def name_if_full(path: str | PathLike[str]) -> Iterator[None]:
    """Name the file in the error of a full disk, which does not say what could not be written."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL and error.filename is None:
            error.filename = os.fspath(path)
        raise


def resolve_target(path: str | PathLike[str], signature: bytes = b"") -> Path:
    """Return where a file will be, links followed; raise an error if it cannot be written."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"Cannot save to '{path}': there is no folder '{target.parent}'.")
    if target.is_dir():
        raise IsADirectoryError(
            f"Cannot save to '{path}': it is a folder; give the name of a file."
        )
    there = target.exists()
    if there and not os.access(target, os.W_OK):
        raise PermissionError(f"Cannot save to '{path}': there is no permission to write to it.")
    if (not there or target.is_file()) and not os.access(target.parent, os.W_OK):
        raise PermissionError(
            f"Cannot save to '{path}': there is no permission to create files in '{target.parent}'."
        )
    if target.is_file():
        with open(target, "rb") as file:
            start = file.read(_START)
        is_other = bool(start) and signature not in start
        if is_other or (not signature and any(kind in start for kind in _FITTED)):
            raise FileExistsError(
                f"Cannot save to '{path}': it is another kind of file; choose a new name, or "
                "remove it first."
            )
    return target
