"""Saved models: one NumPy archive of plain arrays and a JSON member, written all or nothing.

The file is a zip of ``weights.npy`` (F,), ``factors.npy`` (the rows of all factors, one variable
after the other) and ``meta.json`` (format, schema version, domain). ``numpy.load`` reads it.
"""

import json
import os
import secrets
import zipfile
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from rejoint.domain import Domain

__all__ = ["SCHEMA", "read_model", "write_model"]

FloatArray = NDArray[np.float64]

SCHEMA = 1
"""Version of the file format; readers accept this one and earlier ones."""

_FORMAT = "rejoint.LowRankPMF"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # no clock in the file: equal models are equal bytes


def write_model(
    path: str | PathLike[str],
    weights: FloatArray,
    factors: Sequence[FloatArray],
    domain: Domain,
) -> None:
    """Write a model beside its place, then move it there: a crash leaves no half file.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "coin.rejoint")
    ...     write_model(path, np.ones(1), [np.array([[0.5], [0.5]])], Domain.of_shape([2]))
    ...     sorted(np.load(path).files)
    ['factors', 'meta.json', 'weights']
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"Cannot save to '{path}': there is no folder '{target.parent}'.")
    if target.is_dir():
        raise IsADirectoryError(f"Cannot save to '{path}': it is a folder; name a file.")
    aside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        # Not tempfile: the file shall have the permissions of any other new file.
        with open(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), "wb") as file:
            _write_archive(file, weights, factors, domain)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def _write_archive(
    file: IO[bytes], weights: FloatArray, factors: Sequence[FloatArray], domain: Domain
) -> None:
    meta = {"format": _FORMAT, "schema": SCHEMA, "domain": domain.to_json()}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        text = json.dumps(meta, ensure_ascii=False, allow_nan=False)
        archive.writestr(_member("meta.json"), text.encode())
        for name, array in (("weights", weights), ("factors", np.vstack(factors))):
            with archive.open(_member(f"{name}.npy"), "w", force_zip64=True) as member:
                npy.write_array(member, array, allow_pickle=False)


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.external_attr = 0o644 << 16
    return info


def read_model(path: str | PathLike[str]) -> tuple[FloatArray, list[FloatArray], Domain]:
    """Read weights, factors and domain; a file that is no model, or spoilt, is an error in words.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "notes.txt")
    ...     _ = path.write_text("hello")
    ...     read_model(path)
    Traceback (most recent call last):
    ...
    ValueError: '...notes.txt' is not a rejoint model...
    """
    try:
        file = open(path, "rb")  # noqa: SIM115 (closed by the archive's with below)
    except FileNotFoundError:
        raise FileNotFoundError(f"No model file '{path}': check the name and the folder.") from None
    with file:
        start = file.read(4)
        try:
            with zipfile.ZipFile(file) as archive:
                return _read_archive(archive, path)
        except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError) as error:
            if start != b"PK\x03\x04":
                raise ValueError(
                    f"'{path}' is not a rejoint model: it does not start like one. Models are "
                    "written by LowRankPMF.save."
                ) from error
            raise _spoilt(path, str(error)) from error


def _read_archive(
    archive: zipfile.ZipFile, path: str | PathLike[str]
) -> tuple[FloatArray, list[FloatArray], Domain]:
    domain = _read_domain(archive, path)
    weights = _read_array(archive, "weights", path)
    rows = _read_array(archive, "factors", path)
    if weights.ndim != 1 or rows.shape != (sum(domain.shape), len(weights)):
        raise _spoilt(path, f"{sum(domain.shape)} levels but factors of shape {rows.shape}")
    cuts = np.cumsum(domain.shape)[:-1]
    return weights, list(np.split(rows, cuts)), domain


def _read_domain(archive: zipfile.ZipFile, path: str | PathLike[str]) -> Domain:
    try:
        meta: Any = json.loads(archive.read("meta.json"))
        kind, schema = meta["format"], int(meta["schema"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"'{path}' is an archive but not a rejoint model: it has no readable meta.json."
        ) from error
    if kind != _FORMAT:
        raise ValueError(f"'{path}' holds {kind!r}, not a {_FORMAT}.")
    if schema > SCHEMA:
        raise ValueError(
            f"'{path}' has schema version {schema}; this rejoint reads versions up to {SCHEMA}: "
            "update rejoint to read it."
        )
    try:
        return Domain.from_json(meta["domain"])
    except (KeyError, TypeError, ValueError) as error:
        raise _spoilt(path, f"its domain cannot be read: {error}") from error


def _read_array(archive: zipfile.ZipFile, name: str, path: str | PathLike[str]) -> FloatArray:
    try:
        info = archive.getinfo(f"{name}.npy")
    except KeyError:
        raise _spoilt(path, f"it has no array {name!r}") from None
    try:
        with archive.open(info) as member:
            # The header is checked against the size before memory is taken for the array.
            version = npy.read_magic(member)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read(member)
            if dtype != np.dtype("<f8") or fortran:
                raise ValueError(f"array {name!r} is {dtype}, not float64 in C order")
            size = int(np.prod(shape, dtype=object)) * dtype.itemsize
            if size != info.file_size - member.tell():
                raise ValueError(f"array {name!r} does not have the size that it claims")
            data = member.read()
    except ValueError as error:
        raise _spoilt(path, str(error)) from error
    return np.frombuffer(data, dtype=np.float64).reshape(shape)


def _spoilt(path: str | PathLike[str], detail: str) -> ValueError:
    return ValueError(
        f"'{path}' is truncated or corrupt ({detail.rstrip('.')}): copy or save it again."
    )
