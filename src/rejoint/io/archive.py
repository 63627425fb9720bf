"""Archives of arrays with one JSON member: the format of model files and of checkpoints.

An archive is a zip file of ``meta.json`` and one ``.npy`` member per array; ``numpy.load`` reads
it. Files may come from strangers. Nothing in them is executed: arrays have no pickles, and their
headers are read by a pattern, as NumPy's reader evaluates the text. Members are stored without
compression, and sizes are checked before memory is allocated, so that reading takes no more memory
than the file has bytes. Unknown members are not read.
"""

import json
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from math import prod
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from rejoint.io.schema import SchemaError, read_json
from rejoint.text import cite

START = b"PK\x03\x04"
"""First bytes of an archive."""

_EPOCH = (1980, 1, 1, 0, 0, 0)  # no clock in the file: equal contents are equal bytes
_MAX_HEADER = 1000  # bytes; ours have 118
_HEADER = re.compile(
    r"\{'descr': '(?P<type>[^']*)', 'fortran_order': (?P<fortran>True|False), "
    r"'shape': \((?P<shape>[0-9, ]{0,100})\), \} *\n?"
)
_NUMERIC = re.compile(r"[<|][biuf][1248]")


class ArchiveError(ValueError):
    """Error raised for an archive that is truncated or corrupt; its text says what is wrong."""


def write_archive(
    file: IO[bytes],
    meta: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    allow_nan: bool = False,
) -> None:
    """Write an archive to an open file; `meta` must be JSON, with nan and inf if `allow_nan`.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> write_archive(file, {"format": "example"}, {"a": np.ones(2)})
    >>> _ = file.seek(0)
    >>> sorted(np.load(file).files)
    ['a', 'meta.json']
    """
    text = json.dumps(meta, ensure_ascii=False, allow_nan=allow_nan)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_member("meta.json"), text.encode())
        for name, array in arrays.items():
            with archive.open(_member(f"{name}.npy"), "w", force_zip64=True) as member:
                npy.write_array(member, np.asarray(array, order="C"), allow_pickle=False)


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.external_attr = 0o644 << 16
    return info


def read_archive(file: IO[bytes]) -> "Archive":
    """Open an archive; its arrays are read when they are asked for.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> write_archive(file, {"format": "example"}, {"a": np.ones(2)})
    >>> archive = read_archive(file)
    >>> archive.meta, archive.array("a")
    ({'format': 'example'}, array([1., 1.]))
    """
    with _errors_in_words():
        file.seek(0)
        if file.read(len(START)) != START:  # a device may have no end to look for a directory at
            raise zipfile.BadZipFile("File is not a zip file")
        return Archive(zipfile.ZipFile(file))


@contextmanager
def _errors_in_words() -> Iterator[None]:
    try:
        yield
    except (
        *(zipfile.BadZipFile, zlib.error, EOFError, OSError, struct.error, KeyError),
        *(NotImplementedError, RuntimeError, IndexError, OverflowError, MemoryError),
        UnicodeError,  # in the name of a member
    ) as error:
        raise ArchiveError(str(error)[:200]) from error


class Archive:
    """An open archive.

    Attributes
    ----------
    meta : object
        Contents of ``meta.json``; None where it is absent or no JSON.
    """

    def __init__(self, file: zipfile.ZipFile) -> None:
        self._file = file
        self._members = Counter(file.namelist())
        self.meta: Any = None
        if "meta.json" in self._members:
            info = self._check_member("meta.json")
            with suppress(SchemaError):
                self.meta = read_json(file.read(info), allow_nan=True)

    def __contains__(self, name: str) -> bool:
        return f"{name}.npy" in self._members

    def array(
        self, name: str, kind: str | None = None, *, may_be_empty: bool = False
    ) -> NDArray[Any]:
        """Read an array, of the type `kind` (such as ``"<f8"``) or of any numeric type."""
        if name not in self:
            raise ArchiveError(f"it has no array {cite(name)}")
        with _errors_in_words():
            info = self._check_member(f"{name}.npy")
            with self._file.open(info) as member:
                found, shape = _read_header(member, name, kind)
                # The header is checked against the size before memory is taken for the array.
                size = np.dtype(found).itemsize * prod(shape)
                empty = min(shape, default=1) < 1
                if (empty and not may_be_empty) or size != info.file_size - member.tell():
                    raise ArchiveError(f"array {cite(name)} does not have the size that it claims")
                data = bytearray(member.read())
        try:
            numbers = np.frombuffer(data, found) if size else np.empty(0, found)
            return numbers.reshape(shape)
        except ValueError as error:  # an empty array may claim any shape
            raise ArchiveError(f"array {cite(name)}: {error}") from error

    def _check_member(self, name: str) -> zipfile.ZipInfo:
        """Check that a member is there once and stored: a compressed one could have any size."""
        if self._members[name] > 1:
            raise ArchiveError(f"it has two members {cite(name)}")
        info = self._file.getinfo(name)
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise ArchiveError(f"its member {cite(name)} is compressed, which is not allowed")
        return info


def _read_header(member: IO[bytes], name: str, kind: str | None) -> tuple[str, tuple[int, ...]]:
    """Read type and shape from the header of a ``.npy`` member."""
    start = member.read(8)
    width = {b"\x01": 2, b"\x02": 4, b"\x03": 4}.get(start[6:7], 0)
    size = int.from_bytes(member.read(width), "little")
    if start[:6] != b"\x93NUMPY" or not 0 < size <= _MAX_HEADER:
        raise ArchiveError(f"array {cite(name)} does not start as one")
    found = _HEADER.fullmatch(member.read(size).decode("latin-1"))
    if found is None:
        raise ArchiveError(f"array {cite(name)} has a header that cannot be read")
    right = _NUMERIC.fullmatch(found["type"]) if kind is None else found["type"] == kind
    if not right or found["fortran"] == "True":
        wanted = "numeric" if kind is None else repr(kind)
        raise ArchiveError(f"array {cite(name)} is {cite(found['type'])}, not {wanted} in C order")
    return found["type"], tuple(int(length) for length in found["shape"].replace(",", " ").split())
