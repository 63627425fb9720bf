"""Atomic writes: files and folders that are written whole or not at all.

A file is written under a temporary name in the folder where it belongs, synced, and renamed; the
folder is synced too. Mode, ownership and extended attributes of a file that is replaced are kept,
and symbolic links are followed: the file that a link points to is replaced, not the link. A process
locks what it writes. Temporary files without a lock were left by processes that were killed; the
next write in the same folder removes them.
"""

import errno
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
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

_ENDING = "rejoint-tmp"
_TEMPORARY = re.compile(rf"\..*\.[0-9a-f]{{8}}\.{_ENDING}", re.DOTALL)
_MOST_NAME = 200  # bytes of a name that the temporary one repeats; file systems allow 255
_START = 512  # bytes of a file that tell who wrote it

#: What is in the first bytes of files that took a fit to make: only their like replaces them.
_FITTED = (b"rejoint.LowRankPMF", b"rejoint checkpoint")
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def atomic_file(
    path: str | PathLike[str], *, signature: bytes = b"", alone: bool = True
) -> Iterator[IO[bytes]]:
    """Open a file beside `path` for writing; move it there once all of it is on the disk.

    If anything fails before (a full disk, a kill), an existing file stays as it was.

    Parameters
    ----------
    path : path
        The file; devices and pipes are written to as they are.
    signature : bytes
        What the first bytes of an existing file must contain for it to be replaced, unless it is
        empty; by default any file but a model or a checkpoint is replaced.
    alone : bool
        Whether the folder is synced and freed of orphans; once is enough for many files.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_file(Path(folder, "a.txt")) as file:
    ...         _ = file.write(b"all of it")
    ...     Path(folder, "a.txt").read_text()
    'all of it'
    """
    target = resolve_target(path, signature)
    with name_if_full(path):
        if target.exists() and not target.is_file():
            # Devices and pipes (such as /dev/stdout) are written to; a move would replace them.
            # They cannot seek as the writer of an archive does, so they get all bytes at once.
            whole = BytesIO()
            yield whole
            with open(target, "wb") as device:
                device.write(whole.getvalue())
            return
        if alone:
            remove_orphans(target.parent)
        file, aside = _open_aside(target)
        try:
            with file:
                yield file
                sync_file(file)
                if fcntl is not None:  # before the lock ends: without it the file is an orphan
                    os.replace(aside, target)
            if fcntl is None:
                os.replace(aside, target)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        if alone:
            sync_folder(target.parent)


@contextmanager
def atomic_folder(path: str | PathLike[str]) -> Iterator[Path]:
    """Make a folder beside `path`, which is new or empty, to write to; move it there at the end.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_folder(Path(folder, "new")) as made:
    ...         _ = (made / "a.txt").write_text("all of it")
    ...     os.listdir(Path(folder, "new"))
    ['a.txt']
    """
    target = Path(os.path.realpath(path))
    if target.is_dir() and any(target.iterdir()):
        raise FileExistsError(
            f"Cannot write '{path}': it contains other files; choose a new folder."
        )
    remove_orphans(target.parent)
    with name_if_full(path), _make_aside(target.parent, target.name) as aside:
        yield aside
        sync_folder(aside)
        if target.is_dir():
            _keep_metadata(aside, target)
            if fcntl is None:
                target.rmdir()  # elsewhere a rename replaces an empty folder
        os.rename(aside, target)
        sync_folder(target.parent)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a temporary folder; remove it at the end, and those that killed processes left.

    What is written into it may replace files inside, not the folder, which is locked.

    Examples
    --------
    >>> with scratch_folder() as folder:
    ...     folder.is_dir()
    True
    >>> folder.exists()
    False
    """
    parent = Path(tempfile.gettempdir())
    remove_orphans(parent)
    with name_if_full(parent), _make_aside(parent, "scratch", 0o700) as folder:
        yield folder


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Wait until no other process has the folder locked, and lock it, where that is possible.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder, lock_folder(Path(folder)):
    ...     os.listdir(folder)
    []
    """
    opened = _open_locked(folder, wait=True)
    try:
        yield
    finally:
        if opened is not None:
            os.close(opened)


class FileChangedError(ValueError):
    """Error raised where a file was written by others since it was read.

    Examples
    --------
    >>> issubclass(FileChangedError, ValueError)
    True
    """


class FileVersion:
    """What a file held when it was read, so that the work of others is not overwritten.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.txt")
    ...     _ = path.write_text("mine")
    ...     version = FileVersion(path)
    ...     _ = path.write_text("yours")
    ...     version.check()
    Traceback (most recent call last):
    ...
    rejoint.io.atomic.FileChangedError: '...a.txt' was changed by another program: open it again.
    """

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


def remove_orphans(folder: Path) -> None:
    """Remove temporary files and folders of processes that were killed.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, ".a.csv.0123abcd.rejoint-tmp").write_text("half of i")
    ...     remove_orphans(Path(folder))
    ...     os.listdir(folder)
    []
    """
    with suppress(OSError), os.scandir(folder) as entries:
        orphans = [Path(entry.path) for entry in entries if _TEMPORARY.fullmatch(entry.name)]
        for path in orphans:
            _remove_orphan(path)


def _remove_orphan(path: Path) -> None:
    if fcntl is None:
        if path.is_file():
            path.unlink(missing_ok=True)  # fails while it is open
        return
    opened = _open_locked(path, wait=False)
    if opened is None:
        return
    try:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    finally:
        os.close(opened)


def _open_aside(target: Path) -> tuple[IO[bytes], Path]:
    """Open a new file beside the target, locked, with the metadata of what it will replace."""
    there = target.exists()
    while True:
        aside = _beside(target.parent, target.name)
        # Not tempfile: the file gets the permissions of any other new file.
        mode = 0o600 if there else 0o666
        opened = os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        _lock(opened, wait=True)
        if aside.exists():  # else another process took it for an orphan before the lock
            break
        os.close(opened)
    if there:
        _keep_metadata(aside, target)
    return open(opened, "wb"), aside


@contextmanager
def _make_aside(parent: Path, name: str, mode: int = 0o777) -> Iterator[Path]:
    """Make a new folder, locked; remove it at the end unless it was renamed."""
    while True:
        aside = _beside(parent, name)
        aside.mkdir(mode)
        opened = _open_locked(aside, wait=True)
        if aside.exists():
            break
        if opened is not None:
            os.close(opened)
    try:
        yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        if opened is not None:
            os.close(opened)


def _beside(parent: Path, name: str) -> Path:
    short = os.fsdecode(os.fsencode(name)[:_MOST_NAME])
    return parent / f".{short}.{secrets.token_hex(4)}.{_ENDING}"


def _open_locked(path: Path, *, wait: bool) -> int | None:
    """Open a file or folder and lock it until it is closed; None where that cannot be done."""
    if fcntl is None:
        return None
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    if not _lock(opened, wait=wait):
        os.close(opened)
        return None
    return opened


def _lock(opened: int, *, wait: bool) -> bool:
    if fcntl is None:
        return False
    try:
        fcntl.flock(opened, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # locked by another process, or a file system without locks
        return False
    return True


def _keep_metadata(aside: Path, target: Path) -> None:
    """Give a new file the owner, group, mode and attributes of the one that it will replace."""
    old, new = target.stat(), aside.stat()
    same_group = old.st_gid == new.st_gid
    if hasattr(os, "chown") and (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        for owner in (old.st_uid, -1):
            with suppress(OSError):  # only root may give files away
                os.chown(aside, owner, old.st_gid)
                same_group = True
                break
    with suppress(OSError):
        shutil.copystat(target, aside)
    if not same_group:  # the mode was meant for a group to which the new file does not belong
        mode = stat.S_IMODE(old.st_mode)
        os.chmod(aside, mode & ~0o070 | mode & ((mode & 0o007) << 3))


def sync_file(file: IO[bytes]) -> None:
    """Write an open file to the disk.

    Examples
    --------
    >>> with tempfile.TemporaryFile() as file:
    ...     _ = file.write(b"all of it")
    ...     sync_file(file)
    """
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk, where a folder can be opened.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sync_folder(Path(folder))
    """
    if fcntl is None:
        return
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


@contextmanager
def name_if_full(path: str | PathLike[str]) -> Iterator[None]:
    """Name the file in the error of a full disk, which does not say what could not be written.

    Examples
    --------
    >>> with name_if_full("a.csv"):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
    ...
    OSError: [Errno 28] No space left on device: 'a.csv'
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL and error.filename is None:
            error.filename = os.fspath(path)
        raise


def resolve_target(path: str | PathLike[str], signature: bytes = b"") -> Path:
    """Return where a file will be, links followed; raise an error if it cannot be written.

    Parameters
    ----------
    path : path
        The file.
    signature : bytes
        As for :func:`atomic_file`.

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
