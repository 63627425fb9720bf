"""The tables that a model was fitted to, as its file has them.

Names, numbers per table and what else is small stand in a JSON object; the cells stand in arrays.
Files may come from strangers: everything is checked before it is used.

``subsets``     positions of the variables of each table, increasing
``domain``      variables and levels of the tables, where they are not those of the model
``identified``  the certificate, where the tables determine the model at its rank
``evidence``    of a conditioned model: position and likelihood of each level, for each variable
``weight``, ``counted``, ``rounding``  one entry per table
``noisy``       true where the tables are of a sample, or noise was added
``sums``        known sums of unknown cells: positions among these, and the sum
``moments``     ``variables``, ``vectors``, ``value`` and ``label`` of each

The cells are ``table_cells``, one table after another in C order; unknown cells are
``unknown_cells`` with three rows: places, lower and upper bounds (infinity for no bound).
Without ``table_cells`` only the variables of the tables are known.
"""

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray
from rejoint.domain.domain import Domain
from rejoint.io.schema import (
    LARGEST,
    Schema,
    SchemaError,
    flag,
    list_of,
    nullable,
    number,
    object_of,
    pair_of,
    read_domain,
    text,
)
from rejoint.text import cite, plural

Subset = tuple[int, ...]

CELLS, UNKNOWN = "table_cells", "unknown_cells"

TABLE_ARRAYS = {CELLS: "<f8", UNKNOWN: "<f8"}

_TEXT = text(most=10_000)  # of a certificate or a label


class SavedMoment(NamedTuple):
    """A known expectation; see :class:`rejoint.marginals.moments.Moment`."""

    variables: Subset
    vectors: tuple[FloatArray, ...]
    value: float
    label: str


class SavedTables(NamedTuple):
    """The tables of a model file; the module lists the parts.

    Examples
    --------
    >>> SavedTables(Domain.of({"a": 2, "b": 2}), ((0, 1),), np.array([1.0, 2.0, 3.0, 4.0])).cells
    array([1., 2., 3., 4.])
    """

    domain: Domain
    subsets: tuple[Subset, ...]
    cells: FloatArray | None = None
    weight: FloatArray | None = None
    counted: NDArray[np.bool_] | None = None
    rounding: FloatArray | None = None
    noisy: bool = False
    unknown: FloatArray | None = None
    sums: tuple[tuple[tuple[int, ...], float], ...] = ()
    moments: tuple[SavedMoment, ...] = ()
    identified: str | None = None
    evidence: Mapping[int, FloatArray] = {}


def tables_to_plain(
    tables: SavedTables, model: Domain
) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Return the JSON object and the arrays of tables; ``model`` is the domain of the model.

    Examples
    --------
    >>> domain = Domain.of({"a": 2})
    >>> tables_to_plain(SavedTables(domain, ((0,),), np.array([1.0, 2.0])), domain)
    ({'subsets': [[0]]}, {'table_cells': array([1., 2.])})
    """
    plain: dict[str, Any] = {"subsets": [list(subset) for subset in tables.subsets]}
    if tables.domain != model:
        plain["domain"] = tables.domain.to_json()
    if tables.identified is not None:
        plain["identified"] = tables.identified
    if tables.evidence:
        plain["evidence"] = [[n, vector.tolist()] for n, vector in tables.evidence.items()]
    if tables.cells is None:
        return plain, {}
    for name, usual in (("weight", 1.0), ("counted", True), ("rounding", 0.0)):
        numbers = getattr(tables, name)
        if numbers is not None and (numbers != usual).any():
            plain[name] = numbers.tolist()
    if tables.noisy:
        plain["noisy"] = True
    if tables.sums:
        plain["sums"] = [[list(members), value] for members, value in tables.sums]
    if tables.moments:
        plain["moments"] = [
            {**moment._asdict(), "vectors": [vector.tolist() for vector in moment.vectors]}
            for moment in tables.moments
        ]
    arrays = {CELLS: tables.cells, UNKNOWN: tables.unknown}
    return plain, {name: array for name, array in arrays.items() if array is not None}


def tables_of_plain(plain: Any, arrays: Mapping[str, FloatArray], model: Domain) -> SavedTables:
    """Return the tables of a JSON object and arrays; a SchemaError says what is wrong with them.

    Examples
    --------
    >>> tables_of_plain({"subsets": [[1, 0]]}, {}, Domain.of({"a": 2, "b": 2}))
    Traceback (most recent call last):
    ...
    rejoint.io.schema.SchemaError: item 1 of 'subsets' of its tables has no increasing positions ...
    """
    found = object_of({})(plain, "its tables")
    domain = _read_domain(found.get("domain"), model)
    object_of({"subsets": list_of(positions(domain))}, _schemas(domain))(found, "its tables")
    subsets = tuple(map(tuple, found["subsets"]))
    evidence = {n: np.array(vector, float) for n, vector in found.get("evidence", ())}
    tables = SavedTables(domain, subsets, identified=found.get("identified"), evidence=evidence)
    cells = arrays.get(CELLS)
    if cells is None:
        return tables
    sizes = [prod(domain.shape[n] for n in subset) for subset in subsets]
    noisy = found.get("noisy", False)
    if cells.shape != (sum(sizes),):
        raise SchemaError(f"its tables have {plural(sum(sizes), 'cell')}, not {cells.size:,}")
    if not (np.abs(cells) < LARGEST).all() or (not noisy and cells.min(initial=0.0) < 0.0):
        raise SchemaError("a cell of its tables is not a count or share")
    places = check_unknown(arrays.get(UNKNOWN), len(cells))
    return tables._replace(
        cells=cells,
        weight=_per_table(found, "weight", number(0.0), len(subsets)),
        counted=_per_table(found, "counted", flag, len(subsets)),
        rounding=_per_table(found, "rounding", number(0.0), len(subsets)),
        noisy=noisy,
        unknown=arrays.get(UNKNOWN),
        sums=_check_sums(found, places, np.cumsum([0, *sizes], dtype=np.int64)),
        moments=tuple(map(_read_moment, found.get("moments", ()))),
    )


def _read_domain(plain: Any, model: Domain) -> Domain:
    """Return the domain of the tables, which must have the model's variables and their levels."""
    if plain is None:
        return model
    domain = read_domain(plain)
    try:
        same = all(set(domain[v.name].levels) == set(v.levels) for v in model)
    except KeyError as error:
        raise SchemaError(f"its tables have no variable {str(error)[:200]}") from error
    if not same:
        raise SchemaError("its tables have other levels than the model")
    return domain


def positions(domain: Domain) -> Schema:
    """Accept increasing positions of variables."""
    numbers = list_of(number(0, len(domain) - 1, whole=True))

    def check(value: Any, where: str) -> Any:
        if not numbers(value, where) or sorted(set(value)) != value:
            raise SchemaError(f"{where} has no increasing positions of variables")
        return value

    return check


def _schemas(domain: Domain) -> dict[str, Schema]:
    """Schemas of what tables may have besides their subsets."""
    position = number(0, len(domain) - 1, whole=True)

    def evidence(value: Any, where: str) -> Any:
        n, vector = pair_of(position, list_of(number(0.0)))(value, where)
        if len(vector) != domain.shape[n] or not any(vector):
            raise SchemaError(f"{where} is not a likelihood")
        return value

    return {
        "identified": nullable(_TEXT),
        "evidence": list_of(evidence),
        "noisy": flag,
        "sums": _SUMS,
        "moments": list_of(_moment(domain)),
    }


def _per_table(
    plain: Mapping[str, Any], name: str, schema: Schema, tables: int
) -> NDArray[Any] | None:
    if name not in plain:
        return None
    values = list_of(schema, size=tables)(plain[name], f"{cite(name)} of its tables")
    return np.array(values, dtype=bool if schema is flag else np.float64)


def check_unknown(rows: FloatArray | None, cells: int) -> NDArray[np.intp]:
    """Return the places of unknown cells; raise an error for invalid places or bounds."""
    if rows is None:
        return np.empty(0, dtype=np.intp)
    if rows.ndim != 2 or len(rows) != 3 or np.isnan(rows).any() or not np.isfinite(rows[:2]).all():
        raise SchemaError("its unknown cells are not three rows of numbers")
    places, low, high = rows
    inside = places.min(initial=0) >= 0 and places.max(initial=0) < max(cells, 1)
    if not inside or (places != np.floor(places)).any() or (np.diff(places) <= 0).any():
        raise SchemaError("the places of its unknown cells are not increasing positions")
    if (low > high).any():
        raise SchemaError("a lower bound of its unknown cells is above the upper one")
    return np.asarray(places.astype(np.intp))


#: Known sums, each of unknown cells, by their position among these.
_SUMS = list_of(pair_of(list_of(number(0, whole=True)), number()))


def _check_sums(
    plain: Mapping[str, Any], places: NDArray[np.intp], starts: NDArray[np.int64]
) -> tuple[tuple[tuple[int, ...], float], ...]:
    """Return known sums, which `_SUMS` has accepted; the cells of each must be of one table."""
    found = []
    for members, value in plain.get("sums", ()):
        if not members or max(members) >= len(places):
            raise SchemaError("a known sum of its tables has cells that are known")
        tables = np.searchsorted(starts, places[members], side="right")
        if len(set(tables.tolist())) > 1 or sorted(set(members)) != members:
            raise SchemaError("a known sum of its tables is not of cells of one table")
        found.append((tuple(members), float(value)))
    return tuple(found)


def _moment(domain: Domain) -> Schema:
    """Accept a known expectation."""
    parts = object_of(
        {
            "variables": positions(domain),
            "vectors": list_of(list_of(number())),
            "value": number(),
            "label": _TEXT,
        }
    )

    def check(value: Any, where: str) -> Any:
        sizes = [domain.shape[n] for n in parts(value, where)["variables"]]
        if [len(vector) for vector in value["vectors"]] != sizes:
            raise SchemaError(f"{where} has not one vector for each variable")
        return value

    return check


def _read_moment(plain: Mapping[str, Any]) -> SavedMoment:
    """Return a known expectation that `_moment` has accepted."""
    vectors = tuple(np.array(vector, dtype=np.float64) for vector in plain["vectors"])
    variables = tuple(plain["variables"])
    return SavedMoment(variables, vectors, float(plain["value"]), plain["label"])
