"""Files of data sets: from the data folder, from the cache, or from the public source."""

import hashlib
import http.client
import os
import sys
from pathlib import Path
from typing import NamedTuple
from urllib.request import Request, urlopen

from rejoint.io.atomic import atomic_file
from rejoint.text import cite, plural

_TIMEOUT_SECONDS = 30.0  # without a byte
_MOST_BYTES = 64 * 2**20  # none of the files has a tenth of it


class FetchError(OSError):
    """A data set is not available, or its content is not the expected one.

    Examples
    --------
    >>> raise FetchError("Data set 'car': no network.")
    Traceback (most recent call last):
    ...
    rejoint.datasets.fetch.FetchError: Data set 'car': no network.
    """


class SourceFile(NamedTuple):
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
        Environment variable that names a mirror of the source.

    Examples
    --------
    >>> SourceFile("car/car.data", "b703", "https://example.org/", "MIRROR").name
    'car.data'
    """

    path: str
    sha256: str
    root: str
    variable: str

    @property
    def name(self) -> str:
        """Name of the file in the cache."""
        return self.path.rpartition("/")[2]

    @property
    def url(self) -> str:
        """Full address, at the mirror if one is set."""
        return (os.environ.get(self.variable) or self.root).rstrip("/") + "/" + self.path


def cache_folder() -> Path:
    """Folder of downloaded files: ``REJOINT_CACHE``, or in the user's cache folder.

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


def read_data_folder(file: str, sha256: str) -> bytes | None:
    """Content of a file in the folder that ``REJOINT_DATA`` names, None if it is not there."""
    folder = os.environ.get("REJOINT_DATA")
    path = Path(folder or "", file)
    if not folder or not path.is_file():
        return None
    content = path.read_bytes()
    if _digest(content) != sha256:
        raise FetchError(
            f"'{path}' is not the file it should be: its SHA-256 is {_digest(content)}, not "
            f"{sha256}. Put the right file there, or unset REJOINT_DATA to use the public source."
        )
    return content


def fetch_file(source: SourceFile, instead: str) -> bytes:
    """Content of a file from the cache, or from its source, which puts it into the cache.

    Parameters
    ----------
    source : SourceFile
        Which file.
    instead : str
        File that replaces it in the folder of ``REJOINT_DATA``; the error names it.
    """
    path = cache_folder() / source.name
    if path.is_file():
        content = path.read_bytes()
        if _digest(content) == source.sha256:
            return content
        path.unlink()  # it was damaged after it was checked
    content = _download(source, instead)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        file.write(content)
    return content


def _download(source: SourceFile, instead: str) -> bytes:
    """Content of a file from its source, checked."""
    try:
        request = Request(source.url, headers={"User-Agent": "rejoint (Python package)"})
        with urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
            content: bytes = answer.read(_MOST_BYTES)
            missing = answer.length or 0  # bytes that a broken connection did not send
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise FetchError(
            f"{source.url} could not be fetched ({cite(error)}). {offline_advice(instead)}"
        ) from error
    if missing or _digest(content) != source.sha256:
        raise FetchError(
            f"{source.url} answered with {plural(len(content), 'byte')} that are not the file "
            f"expected{f' ({missing} more did not arrive)' if missing else ''}: their SHA-256 is "
            f"{_digest(content)}, not {source.sha256}. Nothing was kept. Try again; if this "
            f"persists, the source has changed. {offline_advice(instead)}"
        )
    return content


def offline_advice(file: str) -> str:
    """What to do without a network."""
    return (
        f"Without a network, put '{file}' into a folder and name it by the environment variable "
        "REJOINT_DATA; REJOINT_UCI_URL and REJOINT_GROUPLENS_URL name mirrors of the sources."
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
