"""Trees of arrays in files: one JSON object and named arrays, as an archive or as text.

An archive is a zip file of ``meta.json`` and one ``.npy`` member per array; ``numpy.load`` reads
it. Text is the JSON object itself with one more entry, ``arrays``: of each array its ``type``, its
``shape`` and its ``values`` as nested lists, null for infinity. `Archive` and `TextTree` give the
same ``meta`` and arrays, so that who reads a file does not ask which of the two it is.

Files may come from strangers. Nothing in them is executed: arrays have no pickles, and their
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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from math import prod
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from rejoint.io.schema import (
    SchemaError,
    anything,
    dict_of,
    list_of,
    number,
    object_of,
    read_json,
    text,
)
from rejoint.text import cite

START = b"PK\x03\x04"
"""First bytes of an archive."""

_EPOCH = (1980, 1, 1, 0, 0, 0)  # no clock in the file: equal contents are equal bytes
_MAX_HEADER = 1000  # bytes; ours have 118
_HEADER = re.compile(
    r"\{'descr': '(?P<type>[^']*)', 'fortran_order': (?P<fortran>True|False), "
    r"'shape': \((?P<shape>[0-9, ]{0,100})\), \} *\n?"
)
_NUMERIC = re.compile(r"[<|](b1|[iu][1248]|f[248])")


#: Kinds of values in text that an array of each kind may have.
_SOURCES = {"b": "b", "i": "iu", "u": "iu", "f": "iuf"}


class ArchiveError(ValueError):
    """Error raised for an archive that is truncated or corrupt; its text says what is wrong."""


class ArrayTree:
    """A JSON object and named arrays, whatever the form of the file.

    Attributes
    ----------
    meta : object
        The JSON object; None where an archive has none.
    """

    meta: Any

    def __contains__(self, name: str) -> bool:
        raise NotImplementedError

    def array(
        self, name: str, kind: str | None = None, *, may_be_empty: bool = False
    ) -> NDArray[Any]:
        """Read an array, of the type `kind` (such as ``"<f8"``) or of any numeric type."""
        if name not in self:
            raise ArchiveError(f"it has no array {cite(name)}")
        numbers, shape = self._read(name, kind)
        if (numbers.size and min(shape, default=1) > 0) or (may_be_empty and prod(shape) == 0):
            with suppress(ValueError, OverflowError):  # an empty array may claim any shape
                return numbers.reshape(shape)
        raise ArchiveError(f"array {cite(name)} does not have the size that it claims")

    def _read(self, name: str, kind: str | None) -> tuple[NDArray[Any], Sequence[int]]:
        """Return the numbers of an array, and the shape that it claims."""
        raise NotImplementedError


def write_archive(
    file: IO[bytes],
    meta: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    allow_nan: bool = False,
) -> None:
    """Write an archive to an open file; `meta` must be JSON, with nan and inf if `allow_nan`."""
    content = json.dumps(meta, ensure_ascii=False, allow_nan=allow_nan)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_member("meta.json"), content.encode())
        for name, array in arrays.items():
            with archive.open(_member(f"{name}.npy"), "w", force_zip64=True) as member:
                npy.write_array(member, np.asarray(array, order="C"), allow_pickle=False)


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.external_attr = 0o644 << 16
    return info


def write_text(
    file: IO[bytes], meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write the same as text, with one line for each array."""
    entries = [f" {_dump(key)}: {_dump(value)}" for key, value in meta.items()]
    lines = [f"  {_dump(name)}: {_dump(_array_to_plain(array))}" for name, array in arrays.items()]
    entries.append(' "arrays": {\n' + ",\n".join(lines) + "\n }")
    file.write(("{\n" + ",\n".join(entries) + "\n}\n").encode())


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _array_to_plain(array: NDArray[Any]) -> dict[str, Any]:
    kind = array.dtype.newbyteorder("<").str
    return {"type": kind, "shape": list(array.shape), "values": lists_of(array)}


def lists_of(array: NDArray[Any]) -> Any:
    """Return an array as nested lists: null for infinity, single precision in its own digits."""
    exact = array.astype(str).astype(np.float64) if array.dtype == np.float32 else array
    if exact.dtype.kind == "f" and (unbounded := np.isposinf(exact)).any():
        exact = exact.astype(object)
        exact[unbounded] = None
    return exact.tolist()


def array_of(lists: Any, kind: str, where: str) -> NDArray[Any]:
    """Return the array that :func:`lists_of` made lists of."""
    try:
        values = np.array(lists)
        if values.dtype == object and all(
            x is None or type(x) in (int, float) for x in values.flat
        ):
            values = values.astype(np.float64)
            values[np.isnan(values)] = np.inf
    except (TypeError, ValueError, OverflowError) as error:
        raise SchemaError(f"{where}: {str(error)[:100]}") from error
    wanted = np.dtype(kind)
    if values.size and values.dtype.kind not in _SOURCES[wanted.kind]:
        raise SchemaError(f"{where} is not of numbers of type {kind}")
    with np.errstate(over="ignore"):  # too large a number becomes inf, which is refused later
        array = values.astype(wanted)
    if wanted.kind in "iu" and not np.array_equal(array, values):
        raise SchemaError(f"{where} has numbers that {kind} does not hold")
    return array


_PLAIN_ARRAY = object_of(
    {"type": text(), "shape": list_of(number(0, whole=True)), "values": anything}
)


class TextTree(ArrayTree):
    """A JSON object of a text file, with its arrays."""

    def __init__(self, meta: Any) -> None:
        self.meta = meta
        self._arrays = dict_of(_PLAIN_ARRAY)(meta.get("arrays"), "'arrays' of it")

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def _read(self, name: str, kind: str | None) -> tuple[NDArray[Any], Sequence[int]]:
        plain = self._arrays[name]
        _check_type(plain["type"], name, kind)
        array = array_of(plain["values"], plain["type"], f"array {cite(name)}")
        if array.size and list(array.shape) != plain["shape"]:
            raise ArchiveError(f"array {cite(name)} does not have the size that it claims")
        return array, plain["shape"]


def read_archive(file: IO[bytes]) -> "Archive":
    """Open an archive; its arrays are read when they are asked for."""
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


class Archive(ArrayTree):
    """An open archive."""

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

    def _read(self, name: str, kind: str | None) -> tuple[NDArray[Any], Sequence[int]]:
        with _errors_in_words():
            info = self._check_member(f"{name}.npy")
            with self._file.open(info) as member:
                dtype, shape = _read_header(member, name, kind)
                # The header is checked against the size before memory is taken for the array.
                size = np.dtype(dtype).itemsize * prod(shape)
                if size != info.file_size - member.tell():
                    raise ArchiveError(f"array {cite(name)} does not have the size that it claims")
                data = bytearray(member.read())
        return np.frombuffer(data, dtype) if size else np.empty(0, dtype), shape

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
    header = _HEADER.fullmatch(member.read(size).decode("latin-1"))
    if header is None:
        raise ArchiveError(f"array {cite(name)} has a header that cannot be read")
    _check_type(header["type"], name, kind)
    if header["fortran"] == "True":
        raise ArchiveError(f"array {cite(name)} is not in C order")
    return header["type"], tuple(
        int(length) for length in header["shape"].replace(",", " ").split()
    )


def _check_type(claimed: str, name: str, kind: str | None) -> None:
    right = _NUMERIC.fullmatch(claimed) if kind is None else claimed == kind
    if not right:
        wanted = "numeric" if kind is None else repr(kind)
        raise ArchiveError(f"array {cite(name)} is {cite(claimed)}, not {wanted}")
