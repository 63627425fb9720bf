"""Model files: what stands where in the tree of arrays of a model.

A file is an archive, or text where its name ends in ``.json``; both have the same JSON object and
the same arrays (see :mod:`rejoint.io.archive`). The object has ``format`` ("rejoint.LowRankPMF"),
``schema``, ``domain`` (the variables, each with name, kind and levels) and, if there are any,
``notes`` and the entries below. The arrays are

``weights``       (F,), and ``factors``: the rows of all factors, one variable after the other
``block_tables``  of a model with blocks, the rows of their tables. The entry ``blocks`` has for
                  ``model`` (weights and factors), ``mixture`` and ``draws`` a list of blocks, each
                  with ``members`` (positions of variables) and ``groups`` (of each member the group
                  of each level, from zero); a table has a row for each combination of groups, that
                  of the last member varying fastest
``indicators``    the rows of variables that have one level in each class: zeros and ones, of one
                  byte. The entry ``certain`` has their positions; ``factors`` lacks their rows. A
                  completion of tables is such a model
``mixture``       of a posterior: its mean, which answers: the weights, then the rows of the
                  factors, then those of the tables of its blocks
``draws``         of each posterior draw the same; in single precision where they are from a fit
``draw_weights``  the probability of each draw, unless they are equal
``member_0``, ... of a classifier, the models of its ensemble in the form of ``mixture``; the rest
                  is in the entry ``ensemble`` (see `SavedEnsemble`)
``estimator_...`` of another estimator; the entry ``estimator`` has its kind, its settings and the
                  names of its arrays
``table_cells``, ``unknown_cells``
                  of a model from tables; :mod:`rejoint.io.saved_tables` has the entry ``tables``
``count_cells``, ``record_codes``, ``record_weights``
                  of one from records; :mod:`rejoint.io.saved_counts` has the entry ``counts``
"""

import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import pairwise
from math import prod
from os import PathLike
from types import MappingProxyType
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray
from rejoint.cost import read_all
from rejoint.domain.domain import Domain
from rejoint.io.archive import (
    START,
    ArchiveError,
    ArrayTree,
    TextTree,
    array_of,
    read_archive,
    write_archive,
    write_text,
)
from rejoint.io.atomic import atomic_file
from rejoint.io.fit_notes import check_class_names, check_notes
from rejoint.io.saved_counts import COUNT_ARRAYS, SavedCounts, counts_of_plain, counts_to_plain
from rejoint.io.saved_tables import (
    TABLE_ARRAYS,
    SavedTables,
    positions,
    tables_of_plain,
    tables_to_plain,
)
from rejoint.io.schema import (
    SchemaError,
    anything,
    list_of,
    number,
    object_of,
    read_domain,
    read_json,
    text,
)
from rejoint.text import cite, plural

SCHEMA = 6
"""Version of the file format, the only one that is read."""

MOST_CELLS = 2**24
"""Cells of a block that a file may have."""

_FEWEST_CLASSES = 500  # from which on a file has indicators apart

MOST_FACTORS = 400_000
"""Draws times variables that a file may have: each becomes an object of some hundred bytes."""

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
    """Variables of a block, and the group of each level of each."""

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
    """Check that arrays are finite numbers whose axes of one letter have one length.

    ``axes`` has a letter for each axis of each array; a missing array is a KeyError. ``sizes`` are
    the known lengths, to which new ones are added.
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
    """Write a model to a file, whole or not at all: as text if its name ends in ``.json``."""
    with atomic_file(path, signature=SIGNATURE) as file:
        write_open(file, model, plain=str(path).lower().endswith(".json"))


def write_open(file: IO[bytes], model: SavedModel, *, plain: bool = False) -> None:
    """Write a model to an open file: as text if ``plain``, else as an archive."""
    check_saved(model)
    meta: dict[str, Any] = {"format": _FORMAT, "schema": SCHEMA, "domain": model.domain.to_json()}
    if model.notes:
        meta["notes"] = model.notes
    arrays: dict[str, Any] = {"weights": model.weights}
    certain = find_certain(model.factors)
    rows: list[list[FloatArray]] = [[], []]
    for n, factor in enumerate(model.factors):
        rows[n in certain].append(factor)
    arrays["factors"] = np.vstack([np.empty((0, len(model.weights))), *rows[False]])
    if certain:
        meta["certain"] = certain
        arrays["indicators"] = np.vstack(rows[True]).astype(np.int8)
    if blocks := {part: _blocks_to_plain(own) for part, own in model.blocks.items() if own}:
        meta["blocks"] = blocks
    arrays |= {"block_tables": model.block_tables, "mixture": model.mixture}
    if model.draws is not None and len(model.draws):
        arrays["draws"] = model.draws
        if model.draw_weights is not None and np.ptp(model.draw_weights) > 0:
            arrays["draw_weights"] = model.draw_weights
    if model.ensemble is not None:
        meta["ensemble"] = model.ensemble._asdict() | {"weights": model.ensemble.weights.tolist()}
        members = meta["ensemble"].pop("members")
        arrays |= {f"member_{k}": member for k, member in enumerate(members)}
    if (estimator := model.estimator) is not None:
        listed = {"arrays": list(estimator.arrays)}
        meta["estimator"] = {"kind": estimator.kind, "settings": estimator.settings, **listed}
        arrays |= {f"estimator_{name}": array for name, array in estimator.arrays.items()}
    if model.tables is not None:
        meta["tables"], cells = tables_to_plain(model.tables, model.domain)
        arrays |= cells
    if model.counts is not None:
        meta["counts"], counted = counts_to_plain(model.counts)
        arrays |= counted
    arrays = {name: array for name, array in arrays.items() if array is not None}
    (write_text if plain else write_archive)(file, meta, arrays)


def find_certain(factors: Sequence[FloatArray]) -> list[int]:
    """Return the variables that have one level in every class, where there are many classes."""
    if factors[0].shape[1] < _FEWEST_CLASSES:
        return []
    return [n for n, f in enumerate(factors) if bool(((f == 0.0) | (f == 1.0)).all())]


def check_saved(model: SavedModel) -> None:
    """Raise an error for notes that a file cannot keep."""
    try:
        check_notes(model.notes)
        check_class_names(model.notes, len(model.weights))
    except SchemaError as error:
        raise ValueError(f"The notes cannot be kept: {error}.") from error
    try:
        json.dumps(model.notes, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ValueError(f"The notes cannot be written as JSON: {error}.") from error


def _blocks_to_plain(blocks: tuple[SavedBlock, ...]) -> list[dict[str, Any]]:
    return [
        {"members": list(block.members), "groups": [group.tolist() for group in block.groups]}
        for block in blocks
    ]


def read_saved(path: Path) -> SavedModel:
    """Read a model file."""
    try:
        file = open(path, "rb")  # noqa: SIM115 (closed by the with below; its errors pass)
    except FileNotFoundError:
        raise FileNotFoundError(f"No model file '{path}': check the name and the folder.") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"'{path}' is a folder, not a model file.") from None
    with file:
        return read_open(file if file.seekable() else BytesIO(read_all(file, path)), path)  # a pipe


def read_open(file: IO[bytes], path: Path) -> SavedModel:
    """Read a model from an open file that can seek; errors name it by ``path``."""
    start = file.read(64)
    file.seek(0)
    is_text = start.lstrip().startswith(b"{")
    if not is_text and not start.startswith(START):
        raise _not_a_model(path)
    try:
        tree: ArrayTree
        if is_text:
            meta = read_json(read_all(file, path))
            _check_head(path, meta)
            tree = TextTree(meta)
        else:
            tree = read_archive(file)
            if tree.meta is None:
                raise ValueError(
                    f"'{path}' is an archive but not a rejoint model: it has no readable meta.json."
                )
            _check_head(path, tree.meta)
        model = _read_tree(tree)
        check_class_names(model.notes, len(model.weights))
    except (ArchiveError, SchemaError) as error:
        detail = str(error).rstrip(".")
        raise ValueError(
            f"'{path}' is truncated or corrupt ({detail}): copy or save it again."
        ) from error
    return model


def _check_head(path: Path, meta: Any) -> None:
    """Raise an error for another format, and for versions that this one does not read."""
    if not isinstance(meta, dict) or "format" not in meta:
        raise _not_a_model(path)
    if meta["format"] != _FORMAT:
        raise ValueError(f"'{path}' holds {cite(str(meta['format'])[:80])}, not a {_FORMAT}.")
    schema = number(1, whole=True)(meta.get("schema"), "its schema version")
    if schema != SCHEMA:
        advice = "update rejoint to read it" if schema > SCHEMA else "fit and save the model again"
        raise ValueError(
            f"'{path}' has schema version {schema}; this rejoint reads version {SCHEMA}: {advice}."
        )


def _read_tree(tree: ArrayTree) -> SavedModel:
    meta = tree.meta
    notes = meta.get("notes", {})
    check_notes(notes)
    domain = read_domain(meta.get("domain"))
    weights = tree.array("weights", "<f8")
    rows = tree.array("factors", "<f8", may_be_empty="indicators" in tree)
    levels = sum(domain.shape)
    if "indicators" in tree:
        rows = _add_indicators(rows, tree.array("indicators", "|i1"), meta.get("certain"), domain)
    if weights.ndim != 1 or rows.shape != (levels, len(weights)):
        raise SchemaError(f"{plural(levels, 'level')} but factors of shape {rows.shape}")
    factors = np.split(rows, np.cumsum(domain.shape)[:-1])
    blocks = _read_blocks(meta.get("blocks"), domain)
    sizes = {part: 1 + levels + sum(b.cells for b in own) for part, own in blocks.items()}
    block_tables = mixture = draws = draw_weights = tables = counts = None
    if blocks["model"]:
        block_tables = tree.array("block_tables", "<f8")
        if block_tables.shape != (sizes["model"] - 1 - levels, len(weights)):
            raise SchemaError(f"its tables of blocks have shape {block_tables.shape}")
    if "mixture" in tree:
        mixture = _read_stacked(tree, "mixture", sizes["mixture"], levels)
    if "draws" in tree:
        draws = tree.array("draws")
        if draws.dtype.str not in ("<f4", "<f8"):
            raise SchemaError(f"array 'draws' has type {draws.dtype.str}")
        if draws.ndim != 3 or draws.shape[1] != sizes["draws"]:
            raise SchemaError(f"{plural(levels, 'level')} but draws of shape {draws.shape}")
        _check_number(len(draws), domain)
        if "draw_weights" in tree:
            draw_weights = tree.array("draw_weights", "<f8")
    if (plain := meta.get("tables")) is not None:
        tables = tables_of_plain(plain, _read_arrays(tree, TABLE_ARRAYS), domain)
    if (plain := meta.get("counts")) is not None:
        counts = counts_of_plain(plain, _read_arrays(tree, COUNT_ARRAYS), domain)
    beside = (_read_ensemble(tree, domain), tables, _read_estimator(tree), counts)
    parts = (draws, mixture, draw_weights, *beside, blocks, block_tables)
    return SavedModel(weights, factors, domain, notes, *parts)


def _read_stacked(tree: ArrayTree, name: str, rows: int, levels: int) -> FloatArray:
    """Return weights, factors and tables of blocks, one below the other."""
    array = tree.array(name, "<f8")
    if array.ndim != 2 or len(array) != rows:
        raise SchemaError(f"{plural(levels, 'level')} but {name} of shape {array.shape}")
    return array


def _read_arrays(tree: ArrayTree, kinds: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """Return those of some arrays that a file has."""
    return {
        name: tree.array(name, kind, may_be_empty=True)
        for name, kind in kinds.items()
        if name in tree
    }


def _add_indicators(
    rows: FloatArray, indicators: NDArray[np.int8], certain: Any, domain: Domain
) -> FloatArray:
    """Return the rows of all factors: those that are indicators among the others."""
    positions(domain)(certain, "'certain' of it")
    is_certain = np.repeat(np.isin(range(len(domain)), certain), domain.shape)
    sizes = int((~is_certain).sum()), int(is_certain.sum())
    if (len(rows), len(indicators)) != sizes or rows.shape[1:] != indicators.shape[1:]:
        shapes = f"{rows.shape} and indicators of shape {indicators.shape}"
        raise SchemaError(f"{plural(sum(sizes), 'level')} but factors of shape {shapes}")
    factors = np.empty((sum(sizes), *rows.shape[1:]))
    factors[is_certain], factors[~is_certain] = indicators, rows
    return factors


def _read_estimator(tree: ArrayTree) -> SavedEstimator | None:
    plain = tree.meta.get("estimator")
    if plain is None:
        return None
    _ESTIMATOR(plain, "its estimator")
    arrays = {name: tree.array(f"estimator_{name}", may_be_empty=True) for name in plain["arrays"]}
    return SavedEstimator(plain["kind"], plain["settings"], arrays)


_PARTS_WITH_BLOCKS = ("model", "mixture", "draws")
_WHOLE = number(0, whole=True)
_ESTIMATOR = object_of({"kind": text(), "settings": object_of({}), "arrays": list_of(text())})
_ENSEMBLE = object_of(
    {
        "targets": list_of(text()),
        "always_there": list_of(_WHOLE),
        "missing_limits": list_of(number(0.0, 1.0)),
        "weights": anything,
    }
)


def _read_ensemble(tree: ArrayTree, domain: Domain) -> SavedEnsemble | None:
    plain = tree.meta.get("ensemble")
    if plain is None:
        return None
    _ENSEMBLE(plain, "its ensemble")
    targets, there = plain["targets"], plain["always_there"]
    if not 0 < len(targets) < len(domain) or targets != list(domain.names[-len(targets) :]):
        raise SchemaError("the targets of its ensemble are not its last variables")
    if not set(there) <= set(range(len(domain) - len(targets))) or len(set(there)) < len(there):
        raise SchemaError("'always_there' of its ensemble are no different positions of features")
    limits = tuple(map(float, plain["missing_limits"]))
    if any(b <= a for a, b in pairwise(limits)):
        raise SchemaError("'missing_limits' of its ensemble do not rise")
    weights = array_of(plain["weights"], "<f8", "the weights of its ensemble")
    kinds = len(limits) + 2
    if weights.ndim != 2 or len(weights) != kinds or not (weights >= 0.0).all():
        raise SchemaError(f"the weights of its ensemble are not {plural(kinds, 'row')} of shares")
    if not (np.abs(weights.sum(axis=1) - 1.0) <= _SUM_TOLERANCE).all():
        raise SchemaError("the weights of its ensemble do not sum to one")
    _check_number(weights.shape[1], domain, "models")
    levels = sum(domain.shape)
    members = tuple(
        _read_stacked(tree, f"member_{k}", 1 + levels, levels) for k in range(weights.shape[1])
    )
    return SavedEnsemble(tuple(targets), members, weights, tuple(there), limits)


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
    if block.cells > MOST_CELLS:
        raise SchemaError(f"a block of {plural(block.cells, 'cell')} is too large")
    return block


def _check_number(count: int, domain: Domain, what: str = "draws") -> None:
    """Raise an error for more draws or models than fit beside the variables."""
    if count * len(domain) > MOST_FACTORS:
        raise SchemaError(f"{count:,} {what} of {plural(len(domain), 'variable')} are too many")


def _not_a_model(path: Path) -> ValueError:
    return ValueError(
        f"'{path}' is not a rejoint model: it does not start like one. Models are written by "
        "LowRankPMF.save."
    )
