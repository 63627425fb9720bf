"""Model files, as an archive or as text; safe to load from strangers.

The name of a file decides its form when it is written, its first bytes when it is read.

The archive (see :mod:`rejoint.io.archive`) has ``weights`` (F,), ``factors`` (the rows of all
factors, one variable after the other) and ``meta.json`` (format, schema version, domain, notes). A
model with a posterior also has ``mixture`` (the posterior mean, which answers: its weights, then
the rows of its factors), ``draws`` (for each posterior draw the weights, then the rows of the
factors) and, unless they are equal, ``draw_weights`` (the probability of each draw).
The file of a classifier has an entry ``ensemble`` in ``meta.json`` and the arrays ``member_0``,
``member_1``, ... (for each model of the ensemble the weights, then the rows of the factors).
A model with classes in which some variables have one level each may have these as ``states`` (for
each such variable the level number in each class); ``certain`` in ``meta.json`` has the positions
of these variables, whose rows ``factors`` then lacks. A completion of tables is such a model.
The file of another estimator has an entry ``estimator`` in ``meta.json`` (its kind, its settings
and the names of its arrays) and these arrays, each named ``estimator_`` and its name.
A model from tables has an entry ``tables`` in ``meta.json`` and the arrays ``table_cells`` and, if
some are not known, ``unknown_cells``: the tables that it was fitted to (see
:mod:`rejoint.io.saved_tables`).
A model from records may have an entry ``counts`` and its arrays: small tables of the records, or
the records (see :mod:`rejoint.io.saved_counts`).
A model with blocks has an entry ``blocks``: for ``model`` (weights and factors), ``mixture`` and
``draws`` a list of blocks, each with ``members`` (positions of variables) and ``groups`` (of each
member the group of each level, from zero). The tables of blocks are further rows below those of the
factors, a row for each combination of groups, that of the last member varying fastest; those of
``model`` are the array ``block_tables``. In the text they are ``block_tables``, beside ``factors``.

The text is a JSON object with ``format`` ("rejoint.LowRankPMF"), ``schema`` (2), ``domain`` (the
variables, each with name, kind and levels), ``weights`` (one number per class), ``factors`` (for
each variable a list of rows, one per level, with one number per class) and, if there are any,
``notes``, ``mixture`` (with its own weights and factors), ``draws`` (each with its own weights and
factors, in single precision unless ``draw_precision`` is "double"), ``draw_weights``,
``ensemble`` (see :class:`SavedEnsemble`; each of its members with its own weights and factors),
``estimator`` and ``tables``, which have their arrays as lists.
Numbers are written so that they are read back bit by bit. The probability of a cell is the sum over
classes of the weight times the number of each of its levels, of ``mixture`` where there is one.

Files of schema 1 have no ``mixture``; the compacted mean of their draws answers.
"""

import json
import re
from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import pairwise
from math import prod
from os import PathLike
from types import MappingProxyType
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.cost import read_all
from rejoint.domain.domain import Domain
from rejoint.io.archive import START, ArchiveError, read_archive, write_archive
from rejoint.io.atomic import atomic_file
from rejoint.io.fit_notes import check_class_names, check_notes
from rejoint.io.saved_counts import (
    COUNT_ARRAYS,
    SavedCounts,
    counts_of_plain,
    counts_to_plain,
)
from rejoint.io.saved_tables import (
    CELLS,
    UNKNOWN,
    SavedTables,
    lists_of_cells,
    read_unknown,
    tables_of_plain,
    tables_to_plain,
)
from rejoint.io.schema import (
    SchemaError,
    anything,
    dict_of,
    list_of,
    number,
    object_of,
    read_domain,
    read_json,
    text,
)
from rejoint.messages import Message, PythonName
from rejoint.text import cite, plural

SCHEMA = 4
"""Version of the file format; readers accept this one and earlier ones."""

_PLAIN_SCHEMA, _SCHEMA_WITH_STATES = 2, 3  # of files without blocks

MOST_EXPANDED = 2**24
"""Numbers (128 MB) of the factors of a file that has some of them as level numbers."""

MOST_FACTORS = 400_000
"""Draws times variables that a file may have: each becomes an object of some hundred bytes."""

FloatArray = NDArray[np.float64]
Block = NDArray[np.float32] | NDArray[np.float64]
Path = str | PathLike[str]

_FORMAT = "rejoint.LowRankPMF"

SIGNATURE = _FORMAT.encode()
"""What the first bytes of a model file contain; no other file is replaced by a model."""

_SUM_TOLERANCE = 1e-6  # farther from one than this is a mistake, nearer is rounding


class SavedEnsemble(NamedTuple):
    """Models that a classifier averages to predict the last variables of the domain.

    ``targets`` names these variables, in their order. ``members`` are arrays of shape (1 + levels
    of all variables, classes): for each model the weights, then the factors. ``weights`` has a row
    for each kind of row that is predicted, and a column for each member. A row is of the kind that
    says how many of ``missing_limits``, which rise, are below the share that it misses of the
    variables at the positions ``always_there``; other variables may be missing in rows of any kind.
    A row that misses everything is of the last kind.
    """

    targets: tuple[str, ...]
    members: tuple[FloatArray, ...]
    weights: FloatArray
    always_there: tuple[int, ...]
    missing_limits: tuple[float, ...]


class SavedEstimator(NamedTuple):
    """What an estimator has beside its joint model.

    ``kind`` says which estimator; ``settings`` is plain JSON. ``arrays`` are numeric, of any shape;
    who reads them checks them.
    """

    kind: str
    settings: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


class SavedBlock(NamedTuple):
    """Variables of a block, and the group of each level of each.

    Examples
    --------
    >>> SavedBlock((0, 1), (np.arange(2), np.array([0, 1, 1]))).cells
    4
    """

    members: tuple[int, ...]
    groups: tuple[NDArray[np.intp], ...]

    @property
    def cells(self) -> int:
        """Number of rows of its table."""
        return prod(int(group.max()) + 1 for group in self.groups)


#: Blocks of the model, of its mixture and of its draws.
Blocks = Mapping[str, tuple[SavedBlock, ...]]


class SavedModel(NamedTuple):
    """Contents of a model file: the parameters, notes, and posterior draws if it has any.

    ``notes`` is a plain dict. ``class_names`` in it names the classes; other keys are up to the
    writer. ``draws`` is an array of shape (draws, 1 + levels of all variables, classes): for each
    draw the weights, then the factors one below the other; in single precision where they are from
    a fit. ``mixture`` is the posterior mean in the same form, and ``draw_weights`` has the
    probability of each draw, None if they are equal. ``ensemble`` is what the file of a classifier
    has beside its joint model, ``estimator`` what another estimator has beside it, ``tables`` what
    a model from tables was fitted to, ``counts`` what is counted beside answers. ``blocks`` are
    those of the model, of ``mixture`` and of ``draws``, whose tables stand below the factors; those
    of the model are ``block_tables``.
    """

    weights: FloatArray
    factors: Sequence[FloatArray]
    domain: Domain
    notes: dict[str, Any]
    draws: Block | None = None
    mixture: FloatArray | None = None
    draw_weights: FloatArray | None = None
    ensemble: SavedEnsemble | None = None
    tables: SavedTables | None = None
    estimator: SavedEstimator | None = None
    counts: SavedCounts | None = None
    blocks: Blocks = MappingProxyType({})
    block_tables: FloatArray | None = None


def check_axes(
    arrays: Mapping[str, NDArray[Any]], axes: Mapping[str, str], sizes: dict[str, int]
) -> None:
    """Check that arrays are finite numbers and fit together.

    Parameters
    ----------
    arrays : mapping
        At least those that ``axes`` names; a missing one is a KeyError.
    axes : mapping
        For each array, a letter for each of its axes. Axes of one letter have one length.
    sizes : dict
        Lengths that are known; those that are found are added.

    Examples
    --------
    >>> check_axes({"a": np.ones((2, 3)), "b": np.ones(4)}, {"a": "mn", "b": "n"}, {})
    Traceback (most recent call last):
    ...
    ValueError: b has an axis of length 4, not 3
    """
    for name, letters in axes.items():
        array = arrays[name]
        if array.ndim != len(letters) or array.dtype.kind not in "iuf":
            raise ValueError(
                f"{name} is not an array of {plural(len(letters), 'axis', 'axes')} of numbers"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"{name} has numbers that are not finite")
        for letter, length in zip(letters, array.shape, strict=True):
            if sizes.setdefault(letter, length) != length:
                raise ValueError(f"{name} has an axis of length {length}, not {sizes[letter]}")


def write_model(path: Path, model: SavedModel) -> None:
    """Write a model to a file, whole or not at all.

    A name that ends in ``.json`` is written as text, any other as an archive.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> model = SavedModel(np.ones(1), [np.array([[0.5], [0.5]])], Domain.of_shape([2]), {})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "coin.rejoint")
    ...     write_model(path, model)
    ...     sorted(np.load(path).files)
    ['factors', 'meta.json', 'weights']
    """
    _check_notes(model)
    with atomic_file(path, signature=SIGNATURE) as file:
        write_open(file, model, plain=str(path).lower().endswith(".json"))


def write_open(file: IO[bytes], model: SavedModel, *, plain: bool = False) -> None:
    """Write a model to an open file: as text if ``plain``, else as an archive.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> write_open(file, SavedModel(np.ones(1), [np.ones((1, 1))], Domain.of_shape([1]), {}))
    >>> _ = file.seek(0)
    >>> read_open(file, "memory").weights
    array([1.])
    """
    _check_notes(model)
    head: dict[str, Any] = {"format": _FORMAT, "schema": _PLAIN_SCHEMA}
    head["domain"] = model.domain.to_json()
    if model.notes:
        head["notes"] = model.notes
    if blocks := {part: own for part, own in model.blocks.items() if own}:
        head |= {"schema": SCHEMA, "blocks": _blocks_to_plain(blocks)}
    draws = model.draws if model.draws is not None and len(model.draws) else None
    unequal = None
    if draws is not None and model.draw_weights is not None and np.ptp(model.draw_weights) > 0:
        unequal = model.draw_weights
    if model.ensemble is not None:
        head["ensemble"] = _ensemble_to_plain(model.ensemble)
    cells: dict[str, FloatArray] = {}
    if model.tables is not None:
        head["tables"], cells = tables_to_plain(model.tables, model.domain)
    beside: dict[str, NDArray[Any]] = {}
    if model.counts is not None:
        head["counts"], beside = counts_to_plain(model.counts)
    if model.estimator is not None:
        kept = model.estimator
        head["estimator"] = {"kind": kept.kind, "settings": kept.settings}
        head["estimator"]["arrays"] = (
            {name: _array_to_plain(array) for name, array in kept.arrays.items()}
            if plain
            else list(kept.arrays)
        )
    if plain:
        head.get("tables", {}).update(lists_of_cells(cells))
        head.get("counts", {}).update({name: array.tolist() for name, array in beside.items()})
        if model.ensemble is not None:
            members = [_stacked_to_plain(member, model.domain) for member in model.ensemble.members]
            head["ensemble"]["members"] = members
        head["weights"] = model.weights.tolist()
        head["factors"] = [factor.tolist() for factor in model.factors]
        if model.block_tables is not None:
            head["block_tables"] = model.block_tables.tolist()
        if model.mixture is not None:
            head["mixture"] = _stacked_to_plain(model.mixture, model.domain)
        if draws is not None:
            head["draws"] = [_stacked_to_plain(draw, model.domain) for draw in draws]
            head |= {"draw_precision": "double"} if draws.dtype == np.float64 else {}
        if unequal is not None:
            head["draw_weights"] = unequal.tolist()
        file.write(_to_text(head))
        return
    certain = find_certain(model.factors)
    others = [factor for n, factor in enumerate(model.factors) if n not in certain]
    states: NDArray[np.int16] | None = None
    if certain:
        head |= {"schema": max(head["schema"], _SCHEMA_WITH_STATES), "certain": certain}
        chosen = [model.factors[n].argmax(axis=0) for n in certain]
        states = np.stack(chosen).astype(np.int16)
    arrays: dict[str, Any] = {
        "weights": model.weights,
        "factors": np.vstack([np.empty((0, len(model.weights))), *others]),
        "states": states,
        "block_tables": model.block_tables,
        "mixture": model.mixture,
        "draws": draws,
        "draw_weights": unequal,
        **cells,
        **beside,
    }
    if model.ensemble is not None:
        arrays |= {f"member_{k}": member for k, member in enumerate(model.ensemble.members)}
    if model.estimator is not None:
        arrays |= {f"estimator_{name}": array for name, array in model.estimator.arrays.items()}
    write_archive(file, head, {name: array for name, array in arrays.items() if array is not None})


def find_certain(factors: Sequence[FloatArray]) -> list[int]:
    """Return the variables that have one level in every class, where that makes a file smaller.

    Examples
    --------
    >>> find_certain([np.eye(2), np.full((2, 2), 0.5)])
    []
    >>> find_certain([np.eye(2).repeat(300, axis=1), np.full((2, 600), 0.5)])
    [0]
    """
    classes = factors[0].shape[1]
    size = sum(map(len, factors)) * classes
    if classes < 500 or size > MOST_EXPANDED or max(map(len, factors)) > 2**15:
        return []
    return [
        n
        for n, factor in enumerate(factors)
        if bool(((factor == 0.0) | (factor == 1.0)).all()) and bool((factor.sum(axis=0) == 1).all())
    ]


def _check_notes(model: SavedModel) -> None:
    try:
        check_notes(model.notes)
        check_class_names(model.notes, len(model.weights))
    except SchemaError as error:
        raise ValueError(f"The notes cannot be kept: {error}.") from error
    try:
        _dump(model.notes).encode()
    except (TypeError, ValueError) as error:
        raise ValueError(f"The notes cannot be written as JSON: {error}.") from error


def _stacked_to_plain(stacked: Block, domain: Domain) -> dict[str, Any]:
    """Return weights and factors that are stacked, with the digits of their precision."""
    numbers = stacked[:, stacked[0] > 0.0]
    if numbers.dtype == np.float32:
        numbers = numbers.astype(str).astype(np.float64)
    weights, *factors, tables = np.split(numbers, np.cumsum((1, *domain.shape)))
    plain = {"weights": weights[0].tolist(), "factors": [factor.tolist() for factor in factors]}
    return plain | ({"block_tables": tables.tolist()} if len(tables) else {})


def _blocks_to_plain(blocks: Blocks) -> dict[str, Any]:
    return {
        part: [
            {"members": list(block.members), "groups": [group.tolist() for group in block.groups]}
            for block in own
        ]
        for part, own in blocks.items()
    }


def _ensemble_to_plain(ensemble: SavedEnsemble) -> dict[str, Any]:
    """Return all of an ensemble but its members."""
    return {
        "targets": list(ensemble.targets),
        "weights": ensemble.weights.tolist(),
        "always_there": [int(n) for n in ensemble.always_there],
        "missing_limits": list(ensemble.missing_limits),
    }


def _array_to_plain(array: NDArray[Any]) -> dict[str, Any]:
    """Return an array as a list with its type and shape; single precision in its own digits."""
    exact = array.astype(str).astype(np.float64) if array.dtype == np.float32 else array
    kind, values = array.dtype.newbyteorder("<").str, exact.ravel().tolist()
    return {"type": kind, "shape": list(array.shape), "values": values}


def _to_text(plain: Mapping[str, Any]) -> bytes:
    """Return the JSON text of a model, with one line per variable and per draw."""
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


def read_saved(path: Path) -> SavedModel:
    """Read a model file.

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
        return read_open(file if file.seekable() else BytesIO(read_all(file, path)), path)  # a pipe


def read_open(file: IO[bytes], path: Path) -> SavedModel:
    """Read a model from an open file that can seek; errors name it by ``path``.

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
    is_text = start.lstrip().startswith(b"{")
    if not is_text and not start.startswith(START):
        raise _not_a_model(path)
    try:
        found = _read_text(read_all(file, path), path) if is_text else _read_archive(file, path)
        check_class_names(found.notes, len(found.weights))
    except (ArchiveError, SchemaError) as error:
        raise _corrupt(path, str(error)) from error
    return found


def _read_archive(file: IO[bytes], path: Path) -> SavedModel:
    archive = read_archive(file)
    if archive.meta is None:
        raise ValueError(
            f"'{path}' is an archive but not a rejoint model: it has no readable meta.json."
        )
    domain, notes = _read_head(path, archive.meta)
    weights = archive.array("weights", "<f8")
    rows = archive.array("factors", "<f8", may_be_empty="states" in archive)
    levels = sum(domain.shape)
    if "states" in archive:
        states = archive.array("states", "<i2")
        rows = _expand_states(archive.meta.get("certain"), states, rows, domain)
    if weights.ndim != 1 or rows.shape != (levels, len(weights)):
        raise SchemaError(f"{plural(levels, 'level')} but factors of shape {rows.shape}")
    factors = np.split(rows, np.cumsum(domain.shape)[:-1])
    blocks = _read_blocks(archive.meta.get("blocks"), domain)
    sizes = {part: levels + sum(block.cells for block in own) for part, own in blocks.items()}
    tables_of_blocks = None
    if blocks["model"]:
        tables_of_blocks = archive.array("block_tables", "<f8")
        if tables_of_blocks.shape != (sizes["model"] - levels, len(weights)):
            raise SchemaError(f"its tables of blocks have shape {tables_of_blocks.shape}")
    draws = mixture = draw_weights = None
    if "mixture" in archive:
        mixture = archive.array("mixture", "<f8")
        if mixture.ndim != 2 or len(mixture) != 1 + sizes["mixture"] or not mixture.shape[1]:
            raise SchemaError(f"{plural(levels, 'level')} but a mixture of shape {mixture.shape}")
    if "draws" in archive:
        draws = archive.array("draws")
        if draws.dtype.str not in ("<f4", "<f8"):
            raise SchemaError(f"array 'draws' has type {draws.dtype.str}")
        if draws.ndim != 3 or draws.shape[1] != 1 + sizes["draws"]:
            raise SchemaError(f"{plural(levels, 'level')} but draws of shape {draws.shape}")
        _check_number(len(draws), domain)
        if "draw_weights" in archive:
            draw_weights = archive.array("draw_weights", "<f8")
    ensemble = None
    if archive.meta.get("ensemble") is not None:
        ensemble = _read_ensemble(archive.meta["ensemble"], domain)
        names = [f"member_{k}" for k in range(ensemble.weights.shape[1])]
        members = tuple(archive.array(name, "<f8") for name in names)
        for name, member in zip(names, members, strict=True):
            if member.ndim != 2 or len(member) != 1 + levels or not member.size:
                raise SchemaError(f"{plural(levels, 'level')} but {name} of shape {member.shape}")
        ensemble = ensemble._replace(members=members)
    cells = {name: archive.array(name, "<f8") for name in (CELLS, UNKNOWN) if name in archive}
    plain = archive.meta.get("tables")
    tables = None if plain is None else tables_of_plain(plain, cells, domain)
    estimator = _read_estimator(archive.meta.get("estimator"))
    if estimator is not None:
        listed = archive.meta["estimator"].get("arrays")
        for name in list_of(text())(listed, "'arrays' of its estimator"):
            found = archive.array(f"estimator_{name}", may_be_empty=True)
            estimator.arrays[name] = found
    counts = None
    if archive.meta.get("counts") is not None:
        arrays = {
            name: archive.array(name, kind, may_be_empty=True)
            for name, kind in COUNT_ARRAYS.items()
            if name in archive
        }
        counts = counts_of_plain(archive.meta["counts"], arrays, domain)
    parts = (draws, mixture, draw_weights, ensemble, tables, estimator, counts)
    return SavedModel(weights, factors, domain, notes, *parts, blocks, tables_of_blocks)


def _expand_states(
    certain: Any, states: NDArray[np.int16], rows: FloatArray, domain: Domain
) -> FloatArray:
    """Return the rows of all factors: some from level numbers, the others as they are."""
    shape = domain.shape
    listed = isinstance(certain, list) and all(type(n) is int for n in certain)
    if not listed or sorted({*certain} & {*range(len(shape))}) != certain:
        raise SchemaError("'certain' is not a list of variables")
    if states.ndim != 2 or len(states) != len(certain):
        raise SchemaError(f"{plural(len(certain), 'variable')} but states of shape {states.shape}")
    classes, left = states.shape[1], sum(shape) - sum(shape[n] for n in certain)
    if rows.shape != (left, classes):
        raise SchemaError(f"{plural(left, 'level')} but factors of shape {rows.shape}")
    if sum(shape) * classes > MOST_EXPANDED:
        raise SchemaError(f"states of {plural(classes, 'class', 'classes')} are too many")
    found, every = np.zeros((sum(shape), classes)), np.arange(classes)
    start = taken = 0
    for n, size in enumerate(shape):
        if n in certain:
            levels = states[certain.index(n)]
            if levels.min() < 0 or levels.max() >= size:
                raise SchemaError(f"a state is not a level of {cite(domain.names[n])}")
            found[start + levels, every] = 1.0
        else:
            found[start : start + size] = rows[taken : taken + size]
            taken += size
        start += size
    return found


def _plain_cells(plain: Any) -> dict[str, FloatArray]:
    """Return the arrays of tables that stand in a JSON object as lists."""
    if not isinstance(plain, dict) or CELLS not in plain:
        return {}
    cells = _read_numbers(plain[CELLS], 1, "the cells of its tables")
    return {CELLS: cells, **read_unknown(plain)}


def _read_text(data: bytes, path: Path) -> SavedModel:
    plain = read_json(data)
    domain, notes = _read_head(path, plain)
    weights, factors = _read_parts(plain, domain)
    blocks = _read_blocks(plain.get("blocks"), domain)
    tables_of_blocks = _read_block_tables(plain, blocks["model"], len(weights))
    precision = np.float64 if plain.get("draw_precision") == "double" else np.float32
    draws = _read_draws(plain.get("draws", []), domain, precision, blocks["draws"])
    mixture = draw_weights = None
    if "mixture" in plain:
        mixture = _read_stacked(plain["mixture"], domain, blocks["mixture"])
    if draws is not None and "draw_weights" in plain:
        draw_weights = _read_numbers(plain["draw_weights"], 1, "draw_weights")
    ensemble = None
    if plain.get("ensemble") is not None:
        ensemble = _read_ensemble(plain["ensemble"], domain)
        members = _read_members(plain["ensemble"].get("members"), domain)
        if len(members) != ensemble.weights.shape[1]:
            raise SchemaError(
                f"the weights of its ensemble are not of {plural(len(members), 'member')}"
            )
        ensemble = ensemble._replace(members=members)
    tables = None
    if (given := plain.get("tables")) is not None:
        tables = tables_of_plain(given, _plain_cells(given), domain)
    estimator = _read_estimator(plain.get("estimator"))
    if estimator is not None:
        listed = dict_of(anything)(plain["estimator"].get("arrays"), "'arrays' of its estimator")
        estimator.arrays.update({name: _read_array(array, name) for name, array in listed.items()})
    counts = None
    if (given := plain.get("counts")) is not None:
        object_of({})(given, "its counts")
        arrays = {
            name: _read_numbers(
                given[name], 1 + (name == "record_codes"), f"'{name}' of its counts"
            )
            for name in COUNT_ARRAYS
            if name in given
        }
        counts = counts_of_plain(given, arrays, domain)
    more = (draws, mixture, draw_weights, ensemble, tables, estimator, counts)
    found = tables_of_blocks if blocks["model"] else None
    return SavedModel(weights, factors, domain, notes, *more, blocks, found)


def _read_estimator(plain: Any) -> SavedEstimator | None:
    """Return what an estimator has, without its arrays."""
    if plain is None:
        return None
    _ESTIMATOR(plain, "its estimator")
    return SavedEstimator(plain["kind"], plain["settings"], {})


def _read_array(plain: Any, name: str) -> NDArray[Any]:
    """Return an array that stands in a JSON object as a list."""
    try:
        if not re.fullmatch(r"[<|][biuf][1248]", plain["type"]):
            raise ValueError(f"type {cite(plain['type'])}")
        values = _read_numbers(plain["values"], 1, f"array {cite(name)}")
        return values.astype(plain["type"]).reshape([int(size) for size in plain["shape"]])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise SchemaError(f"array {cite(name)} of its estimator: {str(error)[:100]}") from error


_PARTS_WITH_BLOCKS = ("model", "mixture", "draws")
_WHOLE = number(0, whole=True)
_OBJECT = object_of({})
_ESTIMATOR = object_of({"kind": text(), "settings": _OBJECT})
_ENSEMBLE = object_of(
    {
        "targets": list_of(text()),
        "always_there": list_of(number(0, whole=True)),
        "missing_limits": list_of(number(0.0, 1.0)),
    }
)


def _read_ensemble(plain: Any, domain: Domain) -> SavedEnsemble:
    """Return an ensemble without its members, of which the weights give the number."""
    _ENSEMBLE(plain, "its ensemble")
    targets, there = plain["targets"], plain["always_there"]
    if not 0 < len(targets) < len(domain) or targets != list(domain.names[-len(targets) :]):
        raise SchemaError("the targets of its ensemble are not its last variables")
    if not set(there) <= set(range(len(domain) - len(targets))) or len(set(there)) < len(there):
        raise SchemaError("'always_there' of its ensemble are no different positions of features")
    limits = tuple(map(float, plain["missing_limits"]))
    if any(b <= a for a, b in pairwise(limits)):
        raise SchemaError("'missing_limits' of its ensemble do not rise")
    weights = _read_numbers(plain.get("weights"), 2, "the weights of its ensemble")
    kinds = len(limits) + 2
    if len(weights) != kinds or not np.isfinite(weights).all() or (weights < 0.0).any():
        raise SchemaError(f"the weights of its ensemble are not {plural(kinds, 'row')} of shares")
    if (np.abs(weights.sum(axis=1) - 1.0) > _SUM_TOLERANCE).any():
        raise SchemaError("the weights of its ensemble do not sum to one")
    _check_number(weights.shape[1], domain, "models")
    return SavedEnsemble(tuple(targets), (), weights, tuple(there), limits)


def _read_head(path: Path, head: Any) -> tuple[Domain, dict[str, Any]]:
    """Return domain and notes; raise an error for another format or a later version."""
    if not isinstance(head, dict) or "format" not in head:
        raise _not_a_model(path)
    if head["format"] != _FORMAT:
        raise ValueError(f"'{path}' holds {cite(str(head['format'])[:80])}, not a {_FORMAT}.")
    schema = number(1, whole=True)(head.get("schema"), "its schema version")
    if schema > SCHEMA:
        raise ValueError(
            f"'{path}' has schema version {schema}; this rejoint reads versions up to {SCHEMA}: "
            "update rejoint to read it."
        )
    notes = head.get("notes", {})
    check_notes(notes)
    return read_domain(head.get("domain")), notes


def _read_parts(plain: Mapping[str, Any], domain: Domain) -> tuple[FloatArray, list[FloatArray]]:
    object_of({"weights": list_of(anything), "factors": list_of(anything)})(plain, "it")
    weights = _read_numbers(plain["weights"], 1, "weights")
    if len(plain["factors"]) != len(domain):
        raise SchemaError(
            f"{plural(len(domain), 'variable')} but {plural(len(plain['factors']), 'factor')}"
        )
    factors = []
    for variable, rows in zip(domain, plain["factors"], strict=True):
        what = f"factor of {cite(variable.name)}"
        factors.append(_read_numbers(rows, 2, what))
        if factors[-1].shape != (len(variable), len(weights)):
            raise SchemaError(f"{what} has shape {factors[-1].shape}")
    return weights, factors


def _read_blocks(plain: Any, domain: Domain) -> dict[str, tuple[SavedBlock, ...]]:
    """Return the blocks of each part of a file."""
    plain = {} if plain is None else plain
    one = object_of({"members": list_of(_WHOLE), "groups": list_of(list_of(_WHOLE))})
    object_of({}, dict.fromkeys(_PARTS_WITH_BLOCKS, list_of(one)))(plain, "'blocks' of it")
    return {
        part: tuple(_read_block(block, domain) for block in plain.get(part, ()))
        for part in _PARTS_WITH_BLOCKS
    }


def _read_block(plain: Mapping[str, Any], domain: Domain) -> SavedBlock:
    members, groups = plain["members"], [np.array(own, dtype=np.intp) for own in plain["groups"]]
    inside = len(members) > 1 and len(set(members)) == len(members) == len(groups)
    if not inside or max(members) >= len(domain):
        raise SchemaError("the members of a block are no different variables, with a group of each")
    for n, group in zip(members, groups, strict=True):
        if len(group) != len(domain[n]) or not np.array_equal(
            np.unique(group), np.arange(group.max() + 1)
        ):
            raise SchemaError(f"the groups of a block do not fit {cite(domain.names[n])}")
    block = SavedBlock(tuple(members), tuple(groups))
    if block.cells > MOST_EXPANDED:
        raise SchemaError(f"a block of {plural(block.cells, 'cell')} is too large")
    return block


def _read_block_tables(
    plain: Mapping[str, Any], blocks: tuple[SavedBlock, ...], classes: int
) -> FloatArray:
    """Return the tables of blocks of a part, one below the other."""
    rows = sum(block.cells for block in blocks)
    if not rows:
        return np.empty((0, classes))
    tables = _read_numbers(plain.get("block_tables"), 2, "its tables of blocks")
    if tables.shape != (rows, classes):
        raise SchemaError(f"its tables of blocks have shape {tables.shape}")
    return tables


def _read_stacked(plain: Any, domain: Domain, blocks: tuple[SavedBlock, ...] = ()) -> FloatArray:
    """Return weights, factors and tables of blocks, one below the other."""
    weights, factors = _read_parts(plain, domain)
    return np.vstack([weights, *factors, _read_block_tables(plain, blocks, len(weights))])


def _read_members(plain: Any, domain: Domain) -> tuple[FloatArray, ...]:
    list_of(_OBJECT)(plain, "'members' of its ensemble")
    return tuple(_read_stacked(member, domain) for member in plain)


def _read_draws(
    plain: Any, domain: Domain, precision: type, blocks: tuple[SavedBlock, ...]
) -> Block | None:
    list_of(_OBJECT)(plain, "'draws' of it")
    if not plain:
        return None
    _check_number(len(plain), domain)
    parts = [_read_stacked(draw, domain, blocks) for draw in plain]
    rank = max(part.shape[1] for part in parts)
    if len(parts) * rank > 8 * sum(part.shape[1] for part in parts):
        raise SchemaError("its draws have very different numbers of classes")
    block: Block = np.zeros((len(parts), len(parts[0]), rank), dtype=precision)
    for target, part in zip(block, parts, strict=True):
        with np.errstate(over="ignore"):  # too large a number becomes inf, which is refused later
            target[:, : part.shape[1]] = part
    return block


def _read_numbers(values: Any, axes: int, what: str) -> FloatArray:
    try:
        array = np.array(values)
    except (ValueError, OverflowError) as error:
        raise SchemaError(f"{what}: {str(error)[:100]}") from error
    if array.ndim != axes or array.dtype.kind not in "iuf":
        raise SchemaError(f"{what} is not {'a list' if axes == 1 else 'rows'} of numbers")
    return array.astype(np.float64)


def _check_number(count: int, domain: Domain, what: str = "draws") -> None:
    """Raise an error for more draws or models than fit beside the variables."""
    if count * len(domain) > MOST_FACTORS:
        raise SchemaError(f"{count:,} {what} of {plural(len(domain), 'variable')} are too many")


def _corrupt(path: Path, detail: str) -> ValueError:
    return ValueError(
        f"'{path}' is truncated or corrupt ({detail.rstrip('.')}): copy or save it again."
    )


def _not_a_model(path: Path) -> ValueError:
    return ValueError(
        Message(
            "'{path}' is not a rejoint model: it does not start like one. Models are written by "
            "{save}.",
            path=path,
            save=PythonName("LowRankPMF.save"),
        )
    )
