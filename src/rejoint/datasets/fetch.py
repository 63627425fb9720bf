"""Files of data sets: from the data folder, from the cache, or from the public source."""

import hashlib
import http.client
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.request import Request, urlopen

from rejoint.io.atomic import atomic_file

_TIMEOUT = 30.0  # seconds without a byte
_LARGEST = 64 * 2**20  # bytes; none of the files has a tenth of it


class FetchError(OSError):
    """A data set could not be had, or is not what it should be.

    Examples
    --------
    >>> raise FetchError("Data set 'car': no network.")
    Traceback (most recent call last):
    ...
    rejoint.datasets.fetch.FetchError: Data set 'car': no network.
    """


class Origin(NamedTuple):
    """A file at its public source.

    Parameters
    ----------
    path : str
        Where it is below the root of the source.
    sha256 : str
        Checksum that several public projects give for it.
    root : str
        Address of the source.
    variable : str
        Environment variable that names a mirror of it.

    Examples
    --------
    >>> Origin("car/car.data", "b703", "https://example.org/", "MIRROR").name
    'car.data'
    """

    path: str
    sha256: str
    root: str
    variable: str

    @property
    def name(self) -> str:
        """What the file is called in the cache."""
        return self.path.rpartition("/")[2]

    @property
    def url(self) -> str:
        """Full address, at the mirror if one is set."""
        return (os.environ.get(self.variable) or self.root).rstrip("/") + "/" + self.path


def cache_folder() -> Path:
    """Where downloaded files are kept: ``REJOINT_CACHE``, or in the user's cache folder.

    Examples
    --------
    >>> isinstance(cache_folder(), Path)
    True
    """
    chosen = os.environ.get("REJOINT_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home(), "rejoint", "cache")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "rejoint"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "rejoint")


def in_data_folder(file: str, sha256: str) -> bytes | None:
    """Contents of a file of the folder that ``REJOINT_DATA`` names, None if it is not there."""
    folder = os.environ.get("REJOINT_DATA")
    if not folder:
        return None
    path = Path(folder, file)
    if not path.is_file():
        return None
    content = path.read_bytes()
    if digest(content) != sha256:
        raise FetchError(
            f"'{path}' is not the file it should be: its SHA-256 is {digest(content)}, not "
            f"{sha256}. Put the right file there, or unset REJOINT_DATA to use the public source."
        )
    return content


def cached(origin: Origin, instead: Sequence[str]) -> bytes:
    """Contents of a file from the cache, else from its source, then kept in the cache.

    Parameters
    ----------
    origin : Origin
        Which file.
    instead : sequence of str
        Files that do in its place in the folder of ``REJOINT_DATA``, for the error to name.
    """
    path = cache_folder() / origin.name
    if path.is_file():
        content = path.read_bytes()
        if digest(content) == origin.sha256:
            return content
        path.unlink()  # spoilt since it was checked: as if it had never been there
    content = download(origin, instead)
    store(path, content)
    return content


def download(origin: Origin, instead: Sequence[str]) -> bytes:
    """Contents of a file from its source, checked."""
    try:
        request = Request(origin.url, headers={"User-Agent": "rejoint (Python package)"})
        with urlopen(request, timeout=_TIMEOUT) as answer:
            content: bytes = answer.read(_LARGEST)
            missing = answer.length or 0  # what a connection that broke off did not send
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise FetchError(f"{origin.url} could not be fetched ({error!r}). {advice(instead)}") from (
            error
        )
    if missing or digest(content) != origin.sha256:
        raise FetchError(
            f"{origin.url} answered with {len(content)} bytes that are not the file expected"
            f"{f' ({missing} more did not arrive)' if missing else ''}: their SHA-256 is "
            f"{digest(content)}, not {origin.sha256}. Nothing was kept. Try again; "
            f"if it stays so, the source has changed. {advice(instead)}"
        )
    return content


def advice(instead: Sequence[str]) -> str:
    """What to do without a network."""
    files = " and ".join(f"'{file}'" for file in instead)
    return (
        f"Without a network, put {files} into a folder and name it by the environment variable "
        "REJOINT_DATA; REJOINT_UCI_URL and REJOINT_GROUPLENS_URL name mirrors of the sources."
    )


def store(path: Path, content: bytes) -> None:
    """Write a file beside its place, then move it there: a crash leaves no half file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        file.write(content)


def digest(content: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()
