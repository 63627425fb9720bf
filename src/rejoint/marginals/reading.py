"""Tables given by the user: one domain, one dense array of counts or shares for each."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain import Domain
from rejoint.domain.labels import show
from rejoint.marginals.forms import (
    COUNT_NAMES,
    SHARE_NAMES,
    LabelledTable,
    Names,
    names_of,
    read_table,
)

Array = NDArray[np.float64]
Subset = tuple[int, ...]

#: How far from 1 (or, relatively, from 100 %) shares may add up: published ones are rounded.
ROUNDING = 0.01


@dataclass(frozen=True)
class ReadTables:
    """Tables over one domain: axes in index order, and whether each is counts."""

    domain: Domain
    subsets: tuple[Subset, ...]
    tables: tuple[Array, ...]
    counted: tuple[bool, ...]


def read_tables(tables: Mapping[Any, Any], domain: Domain | None, kind: str) -> ReadTables:
    """Read tables in any accepted form; the domain, if not given, is what they show.

    Examples
    --------
    >>> read = read_tables({("b", "a"): [[1, 2], [3, 4]]}, None, "auto")
    >>> read.domain.names, read.counted
    (('b', 'a'), (True,))
    """
    if kind not in ("auto", "counts", "shares"):
        raise ValueError(f"kind must be 'auto', 'counts' or 'shares', got {kind!r}.")
    if not isinstance(tables, Mapping):
        raise TypeError(
            "tables must be a mapping from tuples of names to tables, "
            f"{{('a', 'b'): table}}; got {type(tables).__name__}."
        )
    read = [read_table(names_of(key), table) for key, table in tables.items()]
    for table in read:
        _check_cells(table)
        _check_margins(table)
    if domain is None:
        if not read:
            raise ValueError("No tables are given: moments alone need domain=, for their levels.")
        domain = domain_of(read)
    subsets: dict[Subset, Names] = {}
    aligned, counted = [], []
    for table in read:
        subset, values = align(table, domain)
        if subset in subsets:
            raise ValueError(
                f"Table {table.names} is given twice (before as {subsets[subset]}): add the two "
                "up, or keep one."
            )
        subsets[subset] = table.names
        values, is_count = as_counts_or_shares(table, values, kind)
        aligned.append(values)
        counted.append(is_count)
    return ReadTables(domain, tuple(subsets), tuple(aligned), tuple(counted))


def _check_cells(table: LabelledTable) -> None:
    bad = ~(table.values >= 0) | np.isinf(table.values)  # NaN compares false
    if not bad.any():
        if table.values.sum() > 0:
            return
        raise ValueError(f"Table {table.names} is empty: all its cells are zero.")
    cell = np.unravel_index(int(np.argmax(bad)), bad.shape)
    where = ", ".join(
        f"{n}={(range(bad.shape[i]) if labels is None else labels)[cell[i]]!r}"
        for i, (n, labels) in enumerate(zip(table.names, table.labels, strict=True))
    )
    raise ValueError(
        f"Table {table.names}, cell {where}: got {table.values[cell]:g}; cells must be finite and "
        "not negative. Write 0 where nothing was counted; leave out a table that is not known."
    )


def _check_margins(table: LabelledTable) -> None:
    """Refuse a row of totals beside the cells: everything would count twice."""
    for axis, labels in enumerate(table.labels):
        for i, label in enumerate(labels or ()):
            if str(label).lower() not in ("all", "total", "sum") or len(labels or ()) < 3:
                continue
            total = np.take(table.values, i, axis)
            rest = np.delete(table.values, i, axis).sum(axis)
            if np.allclose(total, rest, rtol=1e-3):  # shares may be rounded
                raise ValueError(
                    f"Table {table.names}: {label!r} of {table.names[axis]!r} is the sum of the "
                    "other levels; leave totals out (pandas: margins=False)."
                )


def domain_of(tables: Sequence[LabelledTable]) -> Domain:
    """Collect variables and levels, both in order of first appearance.

    Plain arrays show only how many levels there are; these are the labels that other tables
    give, or 0, 1, 2, ... if none does.

    Examples
    --------
    >>> read = [read_table(("a", "b"), [[1, 2, 3], [4, 5, 6]]), read_table(("b",), {"x": 1})]
    >>> domain_of(read)
    Traceback (most recent call last):
    ...
    ValueError: Table ('a', 'b'): its axis 'b' has 3 levels, but other tables ...
    """
    levels: dict[str, dict[Hashable, None]] = {}
    for table in tables:
        for name, labels in zip(table.names, table.labels, strict=True):
            levels.setdefault(name, {}).update(dict.fromkeys(labels or ()))
    _check_types(levels)
    for table in tables:
        for axis, name in enumerate(table.names):
            size = table.values.shape[axis]
            known = levels[name]
            if not known:
                known.update(dict.fromkeys(range(size)))
            if table.labels[axis] is None and size != len(known):
                raise ValueError(
                    f"Table {table.names}: its axis {name!r} has {size} levels, but other tables "
                    f"give {name!r} {len(known)} ({show(list(known))}). Give domain=, or tables "
                    "with labels."
                )
    return Domain.of({name: list(known) for name, known in levels.items()})


def _check_types(levels: Mapping[str, Mapping[Hashable, None]]) -> None:
    """Refuse levels that look alike but differ in type: 1 in one table, "1" in another."""
    for name, known in levels.items():
        seen: dict[str, Hashable] = {}
        for level in known:
            twin = seen.setdefault(str(level), level)
            if twin is not level:
                raise ValueError(
                    f"Variable {name!r} has the level {twin!r} in one table and {level!r} in "
                    "another: write it in the same way in all of them."
                )


def align(table: LabelledTable, domain: Domain) -> tuple[Subset, Array]:
    """Put axes and levels of a table in the order of the domain; levels it lacks get zero.

    Examples
    --------
    >>> table = read_table(("b", "a"), {(0, "y"): 1, (1, "x"): 2})
    >>> align(table, Domain.of({"a": ["x", "y"], "b": [0, 1]}))
    ((0, 1), array([[0., 2.],
           [1., 0.]]))
    """
    where = domain.indices(table.names)
    values = table.values
    for axis, (n, labels) in enumerate(zip(where, table.labels, strict=True)):
        variable = domain[n]
        if labels is None:
            if values.shape[axis] != len(variable):
                raise ValueError(
                    f"Table {table.names}: shape {table.values.shape} does not fit; the domain "
                    f"has {len(variable)} levels of {variable.name!r} "
                    f"({show(list(variable.levels))})."
                )
            continue
        spread = np.zeros((len(variable), *np.delete(values.shape, axis)))
        np.add.at(spread, _codes(table.names, variable, labels), np.moveaxis(values, axis, 0))
        values = np.moveaxis(spread, 0, axis)
    order = np.argsort(where)
    return tuple(where[i] for i in order), np.ascontiguousarray(values.transpose(order))


def _codes(names: Names, variable: Any, labels: Sequence[Hashable]) -> list[int]:
    try:
        return [variable.code(label) for label in labels]
    except (ValueError, KeyError) as error:
        raise ValueError(f"Table {names}: {error.args[0]}") from error


def as_counts_or_shares(table: LabelledTable, values: Array, kind: str) -> tuple[Array, bool]:
    """Return counts as they are, shares scaled to one, and whether it was counts.

    Told apart, unless ``kind`` says it, by the name of the column, then by the numbers:
    integers are counts; a sum of 1 means shares; a sum of 100 with fractions, percentages; a
    sum below one is neither, and anything else counts (of weighted records, if fractional).

    Examples
    --------
    >>> table = read_table(("a",), {"x": 12.5, "y": 87.5})
    >>> as_counts_or_shares(table, table.values, "auto")
    (array([0.125, 0.875]), False)
    """
    total = float(values.sum())
    one = abs(total - 1) <= ROUNDING or abs(total / 100 - 1) <= ROUNDING
    if kind == "auto":
        kind = _kind(table, total)
    if kind == "counts":
        return values, True
    if not one:
        raise ValueError(
            f"Table {table.names}: shares must add up to 1 (or 100 %), these to {total:g}. If "
            "they are counts say kind='counts'."
        )
    return values / total, False


def _kind(table: LabelledTable, total: float) -> str:
    column = table.column.lower()
    fractions = bool(np.any(table.values != np.floor(table.values)))
    if column in SHARE_NAMES or (fractions and abs(total - 1) <= ROUNDING):
        return "shares"  # also in a column "freq", which may mean either
    if column in COUNT_NAMES or table.whole:
        return "counts"
    if abs(total - 1) <= ROUNDING or (fractions and abs(total / 100 - 1) <= ROUNDING):
        return "shares"
    if total < 1:
        raise ValueError(
            f"Table {table.names} adds up to {total:g}: too little for shares, which add up to "
            "1, and for counts. Check it, or say kind='counts'."
        )
    return "counts"


def weights_of_tables(given: Mapping[Any, float] | float | None, read: ReadTables) -> Array:
    """Return one weight for each table: 1 unless given.

    Examples
    --------
    >>> read = read_tables({"a": [1, 2], "b": [1, 2]}, None, "auto")
    >>> weights_of_tables({"b": 3.0}, read)
    array([1., 3.])
    """
    weight = np.ones(len(read.subsets))
    if isinstance(given, Mapping):
        position = {frozenset(s): i for i, s in enumerate(read.subsets)}
        for key, value in given.items():
            subset = frozenset(read.domain.indices(names_of(key)))
            if subset not in position:
                raise ValueError(f"table_weight names {key!r}, but no such table is given.")
            weight[position[subset]] = value
    elif given is not None:
        weight[:] = given
    if not np.all(np.isfinite(weight)) or np.any(weight < 0):
        raise ValueError(f"table_weight must be finite and not negative, got {given!r}.")
    return weight


def check_covered(domain: Domain, subsets: Sequence[Subset]) -> None:
    """Raise an error that names the variables of the domain that no subset holds.

    Examples
    --------
    >>> check_covered(Domain.of_shape([2, 2]), [(0, 1)])
    """
    held = {n for s in subsets for n in s}
    absent = [name for n, name in enumerate(domain.names) if n not in held]
    if absent:
        raise ValueError(
            f"No table or moment says anything about {show(absent)}: give one, or leave the "
            "variables out of the domain."
        )
