"""Models written and read: the name says the form on the way out, the bytes on the way in.

The file is a zip of ``weights.npy`` (F,), ``factors.npy`` (the rows of all factors, one variable
after the other), ``meta.json`` (format, schema version, domain, notes) and perhaps ``draws.npy``
(posterior draws in single precision: of each the weights, then the factors). ``numpy.load`` reads
it. Members that a reader does not know are left alone: later versions may add some.

Nothing is unpacked: members are stored as they are, so that a file takes no more memory than it
has bytes. Sizes are checked before memory is taken for them.

An object with ``format`` ("rejoint.LowRankPMF"), ``schema`` (1), ``domain`` (the variables, each
with name, kind and levels), ``weights`` (one number a class), ``factors`` (for each variable a list
of rows, one a level, with one number a class) and, if there are any, ``notes`` and ``draws``
(posterior draws, each with weights and factors of its own, in single precision). Numbers are
written so that they come back bit by bit. The probability of a cell is the sum over classes of the
weight times the number of each of its levels.
"""

import json
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from math import prod
from os import PathLike
from typing import IO, Any, NamedTuple, NoReturn

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from rejoint.domain.domain import Domain
from rejoint.io.atomic import whole_file
from rejoint.messages import Message, PythonName

SCHEMA = 1
"""Version of the file format; readers accept this one and earlier ones."""

FORMAT = "rejoint.LowRankPMF"

MOST_FACTORS = 400_000
"""Draws times variables that a file may have: each becomes an object of some hundred bytes."""

Path = str | PathLike[str]
Notes = dict[str, Any]


def write_head(domain: Domain, notes: Mapping[str, Any]) -> dict[str, Any]:
    """What every file says first; notes are left out where there are none."""
    head: dict[str, Any] = {"format": FORMAT, "schema": SCHEMA, "domain": domain.to_json()}
    return {**head, "notes": dict(notes)} if notes else head


def read_head(path: Path, head: Any) -> tuple[Domain, Notes]:
    """Domain and notes; of another format, a later version or a spoilt domain, an error."""
    if not isinstance(head, dict) or "format" not in head:
        raise no_model(path)
    if head["format"] != FORMAT:
        raise ValueError(f"'{path}' holds {str(head['format'])[:80]!r}, not a {FORMAT}.")
    schema = head.get("schema")
    if isinstance(schema, bool) or not isinstance(schema, int) or schema < 1:
        raise spoilt(path, f"its schema version is {str(schema)[:20]!r}")
    if schema > SCHEMA:
        raise ValueError(
            f"'{path}' has schema version {schema}; this rejoint reads versions up to {SCHEMA}: "
            "update rejoint to read it."
        )
    notes = head.get("notes", {})
    if not isinstance(notes, dict):
        raise spoilt(path, "its notes are no object")
    try:
        return Domain.from_json(head["domain"]), notes
    except (
        *(KeyError, TypeError, ValueError, AttributeError, IndexError),
        *(OverflowError, RecursionError),
    ) as error:
        raise spoilt(path, f"its domain cannot be read: {str(error)[:200]}") from error


def check_draws(draws: NDArray[np.float32], domain: Domain, path: Path) -> None:
    """An error for posterior draws of another shape, or more than models are written with."""
    if draws.ndim != 3 or draws.shape[1] != 1 + sum(domain.shape):
        raise spoilt(path, f"{sum(domain.shape)} levels but draws of shape {draws.shape}")
    check_number(len(draws), domain, path)


def check_number(draws: int, domain: Domain, path: Path) -> None:
    """An error for more draws than can be held beside so many variables."""
    if draws * len(domain) > MOST_FACTORS:
        raise spoilt(path, f"{draws:,} draws of {len(domain):,} variables are too many")


def spoilt(path: Path, detail: str) -> ValueError:
    """The error for a file that was a model once."""
    return ValueError(
        f"'{path}' is truncated or corrupt ({detail.rstrip('.')}): copy or save it again."
    )


def no_model(path: Path) -> ValueError:
    """The error for a file of another kind."""
    return ValueError(
        Message(
            "'{path}' is not a rejoint model: it does not start like one. Models are written by "
            "{save}.",
            path=path,
            save=PythonName("LowRankPMF.save"),
        )
    )


FloatArray = NDArray[np.float64]
ArchiveParts = tuple[FloatArray, list[FloatArray], Domain, Notes, NDArray[np.float32] | None]

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


def read_archive(file: IO[bytes], path: Path) -> ArchiveParts:
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


def _read(archive: zipfile.ZipFile, path: Path) -> ArchiveParts:
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


Block = NDArray[np.float32]
PlainParts = tuple[FloatArray, list[FloatArray], Domain, Notes, Block | None]


def as_plain(
    weights: FloatArray,
    factors: Sequence[FloatArray],
    domain: Domain,
    notes: Mapping[str, Any],
    draws: Block | None = None,
) -> dict[str, Any]:
    """A model as plain lists and dicts that JSON can hold.

    Examples
    --------
    >>> plain = as_plain(np.ones(1), [np.array([[0.25], [0.75]])], Domain.of_shape([2]), {})
    >>> plain["weights"], plain["factors"]
    ([1.0], [[[0.25], [0.75]]])
    """
    plain = {
        **write_head(domain, notes),
        "weights": weights.tolist(),
        "factors": [factor.tolist() for factor in factors],
    }
    if draws is not None and len(draws):
        plain["draws"] = [_plain_draw(draw, domain) for draw in draws]
    return plain


def _plain_draw(draw: Block, domain: Domain) -> dict[str, Any]:
    """Weights and factors of a draw, with as many digits as single precision has."""
    texts = draw.astype(str).astype(np.float64)[:, draw[0] > 0.0]
    weights, *factors = np.split(texts, 1 + np.cumsum((0, *domain.shape[:-1])))
    return {"weights": weights[0].tolist(), "factors": [factor.tolist() for factor in factors]}


def write_text(plain: Mapping[str, Any]) -> bytes:
    """The JSON text of a model, one line a variable."""
    parts = []
    for key, value in plain.items():
        if key in ("factors", "draws"):
            rows = ",\n  ".join(map(_dump, value))
            text = f"[\n  {rows}\n ]"
        elif key == "domain":
            rows = ",\n  ".join(_dump(variable) for variable in value["variables"])
            text = f'{{"variables": [\n  {rows}\n ]}}'
        else:
            text = _dump(value)
        parts.append(f" {_dump(key)}: {text}")
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def read_text(data: bytes, path: Path) -> PlainParts:
    """Read the JSON text of a model; anything else is an error in words.

    Examples
    --------
    >>> read_text(b'{"format": "other"}', "a.json")
    Traceback (most recent call last):
    ...
    ValueError: 'a.json' holds 'other', not a rejoint.LowRankPMF.
    """
    try:
        plain = json.loads(data, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise spoilt(path, f"its JSON cannot be read: {str(error)[:200]}") from error
    return of_plain(plain, path)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def of_plain(plain: Any, path: Path) -> PlainParts:
    """Read what :func:`as_plain` made.

    Examples
    --------
    >>> plain = as_plain(np.ones(1), [np.array([[0.25], [0.75]])], Domain.of_shape([2]), {})
    >>> of_plain(plain, "here")[0]
    array([1.])
    """
    if not isinstance(plain, dict):
        raise no_model(path)
    domain, notes = read_head(path, plain)
    weights, factors = _read_parts(plain, domain, path)
    return weights, factors, domain, notes, _read_draws(plain.get("draws", []), domain, path)


def _read_parts(
    plain: Mapping[str, Any], domain: Domain, path: Path
) -> tuple[FloatArray, list[FloatArray]]:
    for key in ("weights", "factors"):
        if not isinstance(plain.get(key), list):
            raise spoilt(path, f"it has no list {key!r}")
    weights = _numbers(plain["weights"], 1, "weights", path)
    if len(plain["factors"]) != len(domain):
        raise spoilt(path, f"{len(domain)} variables but {len(plain['factors'])} factors")
    factors = []
    for variable, rows in zip(domain, plain["factors"], strict=True):
        what = f"factor of {variable.name!r}"
        factors.append(_numbers(rows, 2, what, path))
        if factors[-1].shape != (len(variable), len(weights)):
            raise spoilt(path, f"{what} has shape {factors[-1].shape}")
    return weights, factors


def _read_draws(plain: Any, domain: Domain, path: Path) -> Block | None:
    if not isinstance(plain, list) or not all(isinstance(draw, dict) for draw in plain):
        raise spoilt(path, "its draws are no list of objects")
    if not plain:
        return None
    check_number(len(plain), domain, path)
    parts = [_read_parts(draw, domain, path) for draw in plain]
    rank = max(len(weights) for weights, _ in parts)
    if len(parts) * rank > 8 * sum(len(weights) for weights, _ in parts):
        raise spoilt(path, "its draws have very different numbers of classes")
    block = np.zeros((len(parts), 1 + sum(domain.shape), rank), dtype=np.float32)
    for target, (weights, factors) in zip(block, parts, strict=True):
        with np.errstate(over="ignore"):  # what is too large becomes inf, which is refused later
            target[:, : len(weights)] = np.vstack([weights, *factors])
    return block


def _numbers(values: Any, axes: int, what: str, path: Path) -> FloatArray:
    try:
        array = np.array(values)
    except (ValueError, OverflowError) as error:
        raise spoilt(path, f"{what}: {str(error)[:100]}") from error
    if array.ndim != axes or array.dtype.kind not in "iuf":
        raise spoilt(path, f"{what} is not {'a list' if axes == 1 else 'rows'} of numbers")
    return array.astype(np.float64)


class SavedModel(NamedTuple):
    """What a file holds: the model's parts, notes about it, and perhaps posterior draws.

    ``notes`` is a plain dict. ``class_names`` in it names the classes; what else there is, is the
    writer's own. ``draws`` is a float32 array of shape (draws, 1 + levels of all variables,
    classes): of each draw the weights, then the factors one below the other.
    """

    weights: FloatArray
    factors: list[FloatArray]
    domain: Domain
    notes: dict[str, Any]
    draws: Block | None = None


def write_model(
    path: str | PathLike[str],
    weights: FloatArray,
    factors: Sequence[FloatArray],
    domain: Domain,
    notes: Mapping[str, Any] | None = None,
    draws: Block | None = None,
) -> None:
    """Write a model beside its place, then move it there: a crash leaves no half file.

    Parameters
    ----------
    path : path
        A name that ends in ``.json`` is written as text, any other as an archive.
    weights, factors, domain
        The model.
    notes : dict, optional
        What else is to be kept, as JSON can hold it; ``class_names``, a name for each class.
    draws : ndarray of float32, optional
        Posterior draws, as :class:`SavedModel` has them.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "coin.rejoint")
    ...     write_model(path, np.ones(1), [np.array([[0.5], [0.5]])], Domain.of_shape([2]))
    ...     sorted(np.load(path).files)
    ['factors', 'meta.json', 'weights']
    """
    plain = str(path).lower().endswith(".json")
    notes = _checked(dict(notes or {}), len(weights))
    with whole_file(path) as file:
        write_open(file, weights, factors, domain, notes, draws, plain=plain)


def write_open(
    file: IO[bytes],
    weights: FloatArray,
    factors: Sequence[FloatArray],
    domain: Domain,
    notes: Mapping[str, Any] | None = None,
    draws: Block | None = None,
    *,
    plain: bool = False,
) -> None:
    """Write a model to a file that is open: as text if ``plain``, else as an archive.

    Examples
    --------
    >>> import io, numpy as np
    >>> file = io.BytesIO()
    >>> write_open(file, np.ones(1), [np.array([[0.5], [0.5]])], Domain.of_shape([2]))
    >>> _ = file.seek(0)
    >>> read_open(file, "memory").weights
    array([1.])
    """
    notes = _checked(dict(notes or {}), len(weights))
    if plain:
        file.write(write_text(as_plain(weights, factors, domain, notes, draws)))
    else:
        write_archive(file, weights, factors, domain, notes, draws)


def _checked(notes: dict[str, Any], rank: int) -> dict[str, Any]:
    names = notes.get("class_names")
    if names is not None:
        notes["class_names"] = names = [str(name) for name in names]
        if len(names) != rank:
            raise ValueError(f"{len(names)} class names for a model of {rank} classes.")
    try:
        json.dumps(notes, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The notes cannot be written as JSON: {error}.") from error
    return notes


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
    return read_saved(path)[:3]


def read_saved(path: str | PathLike[str]) -> SavedModel:
    """Read all that a file holds: the model's parts and the notes.

    Examples
    --------
    >>> import rejoint as rj, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "coin.json")
    ...     p = rj.LowRankPMF([1.0], [[[0.5], [0.5]]])
    ...     p.save(path, notes={"class_names": ["fair"]})
    ...     read_saved(path).notes
    {'class_names': ['fair']}
    """
    try:
        file = open(path, "rb")  # noqa: SIM115 (closed by the with below; its errors pass)
    except FileNotFoundError:
        raise FileNotFoundError(f"No model file '{path}': check the name and the folder.") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"'{path}' is a folder, not a model file.") from None
    with file:
        return read_open(file, path)


def read_open(file: IO[bytes], path: str | PathLike[str]) -> SavedModel:
    """Read a model from a file that is open and can seek; ``path`` is what errors call it.

    Examples
    --------
    >>> import io
    >>> read_open(io.BytesIO(b"hello"), "standard input")
    Traceback (most recent call last):
    ...
    ValueError: 'standard input' is not a rejoint model...
    """
    start = file.read(64)
    file.seek(0)
    if start.lstrip().startswith(b"{"):
        return SavedModel(*read_text(file.read(), path))
    return SavedModel(*read_archive(file, path))
