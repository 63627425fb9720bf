"""The tables that a model was fitted to, as its file has them.

Names, numbers per table and what else is small stand in a JSON object; the cells stand in arrays
of an archive, or in lists of the object where the file is text. Files may come from strangers:
everything is checked before it is used.

``subsets``     positions of the variables of each table, increasing
``domain``      variables and levels of the tables, where they are not those of the model
``identified``  the certificate, where the tables determine the model at its rank
``evidence``    of a conditioned model: position and likelihood of each level, for each variable
``weight``, ``counted``, ``rounding``  one entry per table
``noisy``       true where the tables are of a sample, or noise was added
``sums``        known sums of unknown cells: positions among these, and the sum
``moments``     ``variables``, ``vectors``, ``value`` and ``label`` of each

The cells are ``table_cells``, one table after another in C order; unknown cells are
``unknown_cells`` with three rows: places, lower and upper bounds (in text null for no bound).
Without ``table_cells`` only the variables of the tables are known.
"""

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain
from rejoint.io.schema import LARGEST, read_domain

FloatArray = NDArray[np.float64]
Subset = tuple[int, ...]

CELLS, UNKNOWN = "table_cells", "unknown_cells"

_MOST_TEXT = 10_000  # characters of a certificate or a label


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
    """Return the tables of a JSON object and arrays; a ValueError says what is wrong with them.

    Examples
    --------
    >>> tables_of_plain({"subsets": [[0, 7]]}, {}, Domain.of({"a": 2}))
    Traceback (most recent call last):
    ...
    ValueError: table 1 has no increasing positions of variables
    """
    if not isinstance(plain, dict):
        raise ValueError("its tables are no object")
    domain = _read_domain(plain.get("domain"), model)
    subsets = tuple(
        _positions(subset, domain, f"table {k}")
        for k, subset in enumerate(_items(plain.get("subsets"), "subsets"), start=1)
    )
    identified = plain.get("identified")
    if identified is not None and not _is_text(identified):
        raise ValueError("the certificate of its tables is no text")
    found = SavedTables(domain, subsets, identified=identified, evidence=_evidence(plain, domain))
    cells = arrays.get(CELLS)
    if cells is None:
        return found
    sizes = [prod(domain.shape[n] for n in subset) for subset in subsets]
    noisy = plain.get("noisy", False)
    if type(noisy) is not bool:
        raise ValueError("noisy of its tables is neither true nor false")
    if cells.shape != (sum(sizes),):
        raise ValueError(f"its tables have {sum(sizes):,} cells, not {cells.size:,}")
    if not (np.abs(cells) < LARGEST).all() or (not noisy and cells.min(initial=0.0) < 0.0):
        raise ValueError("a cell of its tables is no count or share")
    places = check_unknown(arrays.get(UNKNOWN), len(cells))
    return found._replace(
        cells=cells,
        weight=_per_table(plain, "weight", len(subsets)),
        counted=_counted(plain, len(subsets)),
        rounding=_per_table(plain, "rounding", len(subsets)),
        noisy=noisy,
        unknown=arrays.get(UNKNOWN),
        sums=check_sums(plain, places, np.cumsum([0, *sizes], dtype=np.int64)),
        moments=tuple(
            check_moment(each, domain) for each in _items(plain.get("moments", []), "moments")
        ),
    )


def _read_domain(plain: Any, model: Domain) -> Domain:
    """Return the domain of the tables, which must have the model's variables and their levels."""
    if plain is None:
        return model
    domain = read_domain(plain)
    try:
        same = all(set(domain[v.name].levels) == set(v.levels) for v in model)
    except KeyError as error:
        raise ValueError(f"its tables have no variable {str(error)[:200]}") from error
    if not same:
        raise ValueError("its tables have other levels than the model")
    return domain


def _items(plain: Any, what: str) -> list[Any]:
    if not isinstance(plain, list):
        raise ValueError(f"{what} of its tables is no list")
    return plain


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MOST_TEXT


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -LARGEST < value < LARGEST


def _positions(plain: Any, domain: Domain, what: str) -> Subset:
    """Return increasing positions of variables."""
    good = isinstance(plain, list) and plain and all(type(n) is int for n in plain)
    if not good or sorted(set(plain)) != plain or not 0 <= plain[0] <= plain[-1] < len(domain):
        raise ValueError(f"{what} has no increasing positions of variables")
    return tuple(plain)


def _vector(plain: Any, size: int, what: str) -> FloatArray:
    if not isinstance(plain, list) or len(plain) != size or not all(map(_is_number, plain)):
        raise ValueError(f"{what} is not one number for each level")
    return np.array(plain, dtype=np.float64)


def _evidence(plain: Mapping[str, Any], domain: Domain) -> dict[int, FloatArray]:
    found: dict[int, FloatArray] = {}
    for each in _items(plain.get("evidence", []), "evidence"):
        if not isinstance(each, list) or len(each) != 2:
            raise ValueError("evidence of its tables is no list of pairs")
        [n] = _positions([each[0]], domain, "evidence of its tables")
        vector = _vector(each[1], domain.shape[n], "evidence of its tables")
        if vector.min() < 0.0 or not vector.any():
            raise ValueError("evidence of its tables is no likelihood")
        found[n] = vector
    return found


def _per_table(plain: Mapping[str, Any], name: str, number: int) -> FloatArray | None:
    if name not in plain:
        return None
    values = _items(plain[name], name)
    if len(values) != number or not all(_is_number(x) and x >= 0 for x in values):
        raise ValueError(f"{name} of its tables is not one number for each")
    return np.array(values, dtype=np.float64)


def _counted(plain: Mapping[str, Any], number: int) -> NDArray[np.bool_] | None:
    if "counted" not in plain:
        return None
    values = _items(plain["counted"], "counted")
    if len(values) != number or not all(type(x) is bool for x in values):
        raise ValueError("counted of its tables is not true or false for each")
    return np.array(values, dtype=bool)


def check_unknown(rows: FloatArray | None, cells: int) -> NDArray[np.intp]:
    """Return the places of unknown cells; raise an error for what is no place or no bound."""
    if rows is None:
        return np.empty(0, dtype=np.intp)
    if rows.ndim != 2 or len(rows) != 3 or np.isnan(rows).any() or not np.isfinite(rows[:2]).all():
        raise ValueError("its unknown cells are not three rows of numbers")
    places, low, high = rows
    inside = places.min(initial=0) >= 0 and places.max(initial=0) < max(cells, 1)
    if not inside or (places != np.floor(places)).any() or (np.diff(places) <= 0).any():
        raise ValueError("the places of its unknown cells are no increasing positions")
    if (low > high).any():
        raise ValueError("a lower bound of its unknown cells is above the upper one")
    found: NDArray[np.intp] = places.astype(np.intp)
    return found


def check_sums(
    plain: Mapping[str, Any], places: NDArray[np.intp], starts: NDArray[np.int64]
) -> tuple[tuple[tuple[int, ...], float], ...]:
    """Return known sums; the cells of each must be of one table."""
    found = []
    for each in _items(plain.get("sums", []), "sums"):
        good = isinstance(each, list) and len(each) == 2 and isinstance(each[0], list) and each[0]
        if not good or not _is_number(each[1]):
            raise ValueError("sums of its tables is no list of cells and sums")
        members = each[0]
        if not all(type(k) is int and 0 <= k < len(places) for k in members):
            raise ValueError("a known sum of its tables has cells that are known")
        tables = np.searchsorted(starts, places[members], side="right")
        if len(set(tables.tolist())) > 1 or sorted(set(members)) != members:
            raise ValueError("a known sum of its tables is not of cells of one table")
        found.append((tuple(members), float(each[1])))
    return tuple(found)


def check_moment(plain: Any, domain: Domain) -> SavedMoment:
    """Return a known expectation, or raise an error for what is none."""
    if not isinstance(plain, dict):
        raise ValueError("a moment of its tables is no object")
    variables = _positions(plain.get("variables"), domain, "a moment of its tables")
    vectors = _items(plain.get("vectors"), "vectors")
    if len(vectors) != len(variables):
        raise ValueError("a moment of its tables has not one vector for each variable")
    if not _is_number(plain.get("value")) or not _is_text(plain.get("label")):
        raise ValueError("a moment of its tables has no value or no label")
    read = tuple(
        _vector(vector, domain.shape[n], "a vector of a moment")
        for n, vector in zip(variables, vectors, strict=True)
    )
    return SavedMoment(variables, read, float(plain["value"]), plain["label"])
