"""What given tables say about a joint: limits of each cell, and which variables matter.

With ``m`` the joint's table in shares and ``s`` the table's scale, an exact cell says ``m = s t``,
a rounded one ``s (t - r) <= m <= s (t + r)``, a suppressed one ``s low <= m <= s high``, and a
known sum of suppressed cells ``sum m = s value``. The scale is known, one over the total, where no
cell of the table is uncertain, and free otherwise.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rejoint.model import FloatArray

if TYPE_CHECKING:
    from rejoint.marginals.marginals import Marginals
    from rejoint.marginals.moments import Moment

Variables = tuple[int, ...]
Sums = tuple[tuple[NDArray[np.intp], float], ...]

#: Shares that differ by less than this are the same number: rounding of float arithmetic.
SAME_SHARE = 1e-9
#: Records behind tables where no number of records is known; it only sets how tables are weighted.
_NOMINAL_RECORDS = 1000.0


@dataclass(frozen=True, eq=False)
class TableLimits:
    """Limits of the cells of one table, in shares of its total.

    Parameters
    ----------
    subset : tuple of int
        The variables, increasing.
    low, high : array
        The limits, axes in the order of the variables.
    records : float
        The number of records behind the table, for the standard errors of its cells.
    is_scaled : bool
        Whether the total is uncertain, so that all limits may be scaled by one number.
    sums : tuple of (places, value)
        Known sums of cells, by their positions in the flat table.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> TableLimits((0,), half, half).is_exact
    True
    """

    subset: Variables
    low: FloatArray
    high: FloatArray
    records: float = _NOMINAL_RECORDS
    is_scaled: bool = False
    sums: Sums = ()

    @cached_property
    def spread(self) -> FloatArray:
        """Standard error of each cell: how far it gives way where the table cannot be met."""
        share = np.clip(np.where(np.isfinite(self.high), self.low + self.high, self.low) / 2, 0, 1)
        found: FloatArray = np.sqrt((share * (1.0 - share) + 1.0 / self.records) / self.records)
        return found

    @cached_property
    def is_exact(self) -> bool:
        """Whether all cells are known."""
        return not self.is_scaled and np.array_equal(self.low, self.high)

    def margin(self, variables: Iterable[int]) -> "TableLimits":
        """Return what the table says about fewer variables.

        Sums of limits are the limits of sums; known sums of cells are left out, so that limits of
        tables with such sums may be wider than need be.

        Examples
        --------
        >>> table = np.full((2, 2), 0.25)
        >>> TableLimits((0, 3), table, table).margin([3]).low
        array([0.5, 0.5])
        """
        kept = tuple(n for n in self.subset if n in set(variables))
        if kept == self.subset:
            return self
        gone = tuple(axis for axis, n in enumerate(self.subset) if n not in kept)
        low = self.low.sum(axis=gone)
        high = low if self.is_exact else self.high.sum(axis=gone)
        return TableLimits(kept, low, high, self.records, self.is_scaled)


def limits_of(tables: "Marginals") -> list[TableLimits]:
    """Return the limits of all tables that have records.

    Examples
    --------
    >>> from rejoint import Marginals
    >>> limits = limits_of(Marginals.from_tables({"a": {"x": 30, "y": 10}}))
    >>> limits[0].low, limits[0].is_exact
    (array([0.75, 0.25]), True)
    """
    records = _records(tables)
    return [
        _limits(tables, i, records[i]) for i in range(len(tables)) if float(tables.totals[i]) > 0
    ]


def _limits(tables: "Marginals", i: int, records: float) -> TableLimits:
    total = float(tables.totals[i])
    table = tables.counts_of(i) / total
    rounding = float(tables.rounding[i]) / total
    unknown = tables.unknown_of(i)
    if rounding == 0 and unknown is None:
        return TableLimits(tables.index_subsets[i], table, table, records)
    low, high = table - rounding, table + rounding
    sums: Sums = ()
    if unknown is not None:
        low.flat[unknown.places] = unknown.low / total
        high.flat[unknown.places] = unknown.high / total
        sums = tuple((unknown.places[members], value / total) for members, value in unknown.sums)
    low = np.maximum(low, 0.0)
    return TableLimits(tables.index_subsets[i], low, high, records, is_scaled=True, sums=sums)


def _records(tables: "Marginals") -> FloatArray:
    """Return the records behind each table; those of the other tables where it gives shares."""
    known = tables.totals[tables.counted & (tables.totals > 0)]
    other = float(np.median(known)) if len(known) else _NOMINAL_RECORDS
    return np.where(tables.counted, np.maximum(tables.totals, 1.0), other)


def relevant(
    limits: Sequence[TableLimits], moments: Sequence["Moment"], asked: Iterable[int]
) -> tuple[list[TableLimits], list["Moment"]]:
    """Return the tables and moments that are connected with the asked variables.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> tables = [TableLimits((n,), half, half) for n in (0, 1)]
    >>> [table.subset for table in relevant(tables, [], [1])[0]]
    [(1,)]
    """
    reached = set(asked)
    before = -1
    while len(reached) > before:
        before = len(reached)
        for edge in (*(table.subset for table in limits), *(m.variables for m in moments)):
            if reached & set(edge):
                reached |= set(edge)
    return (
        [table for table in limits if reached & set(table.subset)],
        [moment for moment in moments if reached & set(moment.variables)],
    )


def drop_variables(
    subsets: Iterable[Variables], others: Iterable[Iterable[int]], asked: Iterable[int]
) -> list[Variables]:
    """Drop variables that do not matter, where the bounds stay the same (GYO reduction).

    A variable that is not asked and is in one maximal table only can be summed out: whatever the
    rest of the joint is, this table extends it. Tables inside others say nothing more.

    Parameters
    ----------
    subsets : tuples of int
        The variables of exact tables that agree with each other.
    others : sets of variables
        Those of all other constraints; their variables stay.
    asked : variables
        These stay.

    Examples
    --------
    >>> drop_variables([(0, 1), (1, 2), (2, 3)], [], [0, 2])
    [(0, 1), (1, 2)]
    """
    stay = set(asked).union(*others)
    edges = _maximal(frozenset(subset) for subset in subsets)
    while True:
        number: dict[int, int] = {}
        for edge in edges:
            for n in edge:
                number[n] = number.get(n, 0) + 1
        alone = frozenset(n for n, tables in number.items() if tables == 1 and n not in stay)
        if not alone:
            return sorted(tuple(sorted(edge)) for edge in edges)
        edges = _maximal(edge - alone for edge in edges)


def _maximal(edges: Iterable[frozenset[int]]) -> list[frozenset[int]]:
    """Return the sets that are not inside others."""
    kept: list[frozenset[int]] = []
    having: dict[int, list[frozenset[int]]] = {}  # the sets with each variable, larger ones first
    for edge in sorted(set(edges) - {frozenset()}, key=len, reverse=True):
        around = min((having.setdefault(n, []) for n in edge), key=len)
        if not any(edge < other for other in around):
            kept.append(edge)
            for n in edge:
                having[n].append(edge)
    return kept


def agree(exact: Sequence[TableLimits], moments: Sequence["Moment"] = ()) -> bool:
    """Return whether exact tables have the same shares wherever two of them overlap.

    Moments of variables of one table must be the table's own.

    Examples
    --------
    >>> table, half = np.full((2, 2), 0.25), np.array([0.4, 0.6])
    >>> agree([TableLimits((0, 1), table, table), TableLimits((0,), half, half)])
    False
    """
    seen: dict[Variables, FloatArray] = {}
    for table in exact:
        for subset in _overlaps(table.subset, exact):
            margin = table.margin(subset)
            first = seen.setdefault(margin.subset, margin.low)
            if np.abs(first - margin.low).max() > SAME_SHARE:
                return False
    for moment in moments:
        for table in exact:
            if set(moment.variables) <= set(table.subset):
                value = moment.expectation(table.margin(moment.variables).low)
                low, high = moment.range
                if abs(value - moment.value) > SAME_SHARE * max(abs(low), abs(high), 1.0):
                    return False
    return True


def _overlaps(subset: Variables, exact: Sequence[TableLimits]) -> Iterable[Iterable[int]]:
    """Return the sets of variables on which a table may meet others."""
    if 2 ** len(subset) > len(exact):
        return {frozenset(subset).intersection(other.subset) for other in exact} - {frozenset()}
    sizes = range(1, len(subset) + 1)
    return chain.from_iterable(combinations(subset, size) for size in sizes)


def closure(exact: Sequence[TableLimits]) -> dict[Variables, TableLimits]:
    """Return all tables and their margins, each set of variables once, by size.

    Examples
    --------
    >>> table = np.full((2, 2), 0.25)
    >>> list(closure([TableLimits((0, 1), table, table)]))
    [(0,), (1,), (0, 1)]
    """
    found: dict[Variables, TableLimits] = {}
    for table in exact:
        sizes = range(1, len(table.subset) + 1)
        for subset in chain.from_iterable(combinations(table.subset, size) for size in sizes):
            if subset not in found:
                found[subset] = table.margin(subset)
    return dict(sorted(found.items(), key=lambda each: (len(each[0]), each[0])))
