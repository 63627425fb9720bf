"""``.rejoint`` files: one NumPy archive of plain arrays and a JSON member.

The file is a zip of ``weights.npy`` (F,), ``factors.npy`` (the rows of all factors, one variable
after the other), ``meta.json`` (format, schema version, domain, notes) and perhaps ``draws.npy``
(posterior draws in single precision: of each the weights, then the factors). ``numpy.load`` reads
it. Members that a reader does not know are left alone: later versions may add some.

Nothing is unpacked: members are stored as they are, so that a file takes no more memory than it
has bytes. Sizes are checked before memory is taken for them.
"""

import json
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from math import prod
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from rejoint.domain import Domain
from rejoint.io.schema import Notes, Path, check_draws, no_model, read_head, spoilt, write_head

__all__ = ["read_archive", "write_archive"]

FloatArray = NDArray[np.float64]
Parts = tuple[FloatArray, list[FloatArray], Domain, Notes, NDArray[np.float32] | None]

_EPOCH = (1980, 1, 1, 0, 0, 0)  # no clock in the file: equal models are equal bytes
_START = b"PK\x03\x04"
_LONGEST = 1000  # bytes of a header; ours have 118
_HEADER = re.compile(
    r"\{'descr': '(?P<type>[^']*)', 'fortran_order': (?P<fortran>True|False), "
    r"'shape': \((?P<shape>[0-9, ]{0,100})\), \} *\n?"
)
_MEMBERS = ("meta.json", "weights.npy", "factors.npy", "draws.npy")


def write_archive(
    file: IO[bytes],
    weights: FloatArray,
    factors: Sequence[FloatArray],
    domain: Domain,
    notes: Mapping[str, Any],
    draws: NDArray[np.float32] | None = None,
) -> None:
    """Write a model as an archive.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> write_archive(file, np.ones(1), [np.array([[0.5], [0.5]])], Domain.of_shape([2]), {})
    >>> _ = file.seek(0)
    >>> sorted(np.load(file).files)
    ['factors', 'meta.json', 'weights']
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        text = json.dumps(write_head(domain, notes), ensure_ascii=False, allow_nan=False)
        archive.writestr(_member("meta.json"), text.encode())
        arrays: dict[str, NDArray[Any]] = {"weights": weights, "factors": np.vstack(factors)}
        if draws is not None and len(draws):
            arrays["draws"] = draws
        for name, array in arrays.items():
            with archive.open(_member(f"{name}.npy"), "w", force_zip64=True) as member:
                npy.write_array(member, array, allow_pickle=False)


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.external_attr = 0o644 << 16
    return info


def read_archive(file: IO[bytes], path: Path) -> Parts:
    """Read an archive; one that is no model, or spoilt, is an error in words.

    Examples
    --------
    >>> import io
    >>> read_archive(io.BytesIO(b"hello"), "notes.txt")
    Traceback (most recent call last):
    ...
    ValueError: 'notes.txt' is not a rejoint model: it does not start like one. ...
    """
    start = file.read(len(_START))
    file.seek(0)
    if start != _START:
        raise no_model(path)
    try:
        with zipfile.ZipFile(file) as archive:
            return _read(archive, path)
    except (
        *(zipfile.BadZipFile, zlib.error, EOFError, OSError, struct.error, KeyError),
        *(NotImplementedError, RuntimeError, IndexError, OverflowError, MemoryError),
    ) as error:
        raise spoilt(path, str(error)[:200]) from error


def _read(archive: zipfile.ZipFile, path: Path) -> Parts:
    _check_members(archive, path)
    try:
        head: Any = json.loads(archive.read("meta.json"))
    except (KeyError, ValueError, RecursionError) as error:
        raise ValueError(
            f"'{path}' is an archive but not a rejoint model: it has no readable meta.json."
        ) from error
    domain, notes = read_head(path, head)
    weights = _read_array(archive, "weights", path, "<f8").astype(np.float64, copy=False)
    rows = _read_array(archive, "factors", path, "<f8").astype(np.float64, copy=False)
    if weights.ndim != 1 or rows.shape != (sum(domain.shape), len(weights)):
        raise spoilt(path, f"{sum(domain.shape)} levels but factors of shape {rows.shape}")
    cuts = np.cumsum(domain.shape)[:-1]
    draws = None
    if "draws.npy" in archive.namelist():
        draws = _read_array(archive, "draws", path, "<f4").astype(np.float32, copy=False)
        check_draws(draws, domain, path)
    return weights, list(np.split(rows, cuts)), domain, notes, draws


def _check_members(archive: zipfile.ZipFile, path: Path) -> None:
    """Each member once and stored as it is: what is packed could unpack to any size."""
    names = archive.namelist()
    for info in archive.infolist():
        if info.filename not in _MEMBERS:
            continue
        if names.count(info.filename) > 1:
            raise spoilt(path, f"it has two members {info.filename!r}")
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise spoilt(
                path, f"its member {info.filename!r} is compressed, which models never are"
            )


def _read_array(archive: zipfile.ZipFile, name: str, path: Path, kind: str) -> NDArray[Any]:
    try:
        info = archive.getinfo(f"{name}.npy")
    except KeyError:
        raise spoilt(path, f"it has no array {name!r}") from None
    with archive.open(info) as member:
        try:
            shape = _read_shape(member, name, kind)
        except ValueError as error:
            raise spoilt(path, str(error)) from error
        # The header is checked against the size before memory is taken for the array.
        size = int(kind[-1]) * prod(shape)
        if min(shape, default=1) < 1 or size != info.file_size - member.tell():
            raise spoilt(path, f"array {name!r} does not have the size that it claims")
        data = member.read()
    return np.frombuffer(data, dtype=kind).reshape(shape)


def _read_shape(member: IO[bytes], name: str, kind: str) -> tuple[int, ...]:
    """Shape in the header of a ``.npy``, read by a pattern: NumPy's reader evaluates the text."""
    start = member.read(8)
    width = {b"\x01": 2, b"\x02": 4, b"\x03": 4}.get(start[6:7], 0)
    size = int.from_bytes(member.read(width), "little")
    if start[:6] != b"\x93NUMPY" or not 0 < size <= _LONGEST:
        raise ValueError(f"array {name!r} does not start as one")
    found = _HEADER.fullmatch(member.read(size).decode("latin-1"))
    if found is None:
        raise ValueError(f"array {name!r} has a header that cannot be read")
    if found["type"] != kind or found["fortran"] == "True":
        raise ValueError(f"array {name!r} is {found['type']!r}, not {kind!r} in C order")
    return tuple(int(length) for length in found["shape"].replace(",", " ").split())
