"""Limits that tables put on the cells of a joint.

With ``m`` the joint's table in shares and ``s`` the table's scale, an exact cell says ``m = s t``,
a rounded one ``s (t - r) <= m <= s (t + r)``, a suppressed one ``s low <= m <= s high``, and a
known sum of suppressed cells ``sum m = s value``. The scale is known, one over the total, where no
cell of the table is uncertain, and free otherwise.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray, parts_of, sum_to

if TYPE_CHECKING:
    from rejoint.marginals.marginals import Marginals
    from rejoint.marginals.moments import Moment

Sums = tuple[tuple[NDArray[np.intp], float], ...]

#: Shares that differ by less than this are the same number: rounding of float arithmetic.
SAME_SHARE = 1e-9
#: Records behind tables where no number of records is known; it only sets how tables are weighted.
_NOMINAL_RECORDS = 1000.0
_MARGIN_ORDER = 2  # variables of margins that have a spread of their own


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
    """

    subset: tuple[int, ...]
    low: FloatArray
    high: FloatArray
    records: float = _NOMINAL_RECORDS
    is_scaled: bool = False
    sums: Sums = ()

    @cached_property
    def middle(self) -> FloatArray:
        """Cells in the middle of their limits; the lower limit where there is no upper one."""
        middle: FloatArray = np.where(np.isfinite(self.high), (self.low + self.high) / 2, self.low)
        return middle

    @cached_property
    def spread(self) -> FloatArray:
        """Standard error of each cell: how far it gives way where the table cannot be met."""
        share = np.clip(self.middle, 0, 1)
        spread: FloatArray = np.sqrt((share * (1.0 - share) + 1.0 / self.records) / self.records)
        return spread

    @cached_property
    def is_exact(self) -> bool:
        """Whether all cells are known."""
        return not self.is_scaled and np.array_equal(self.low, self.high)

    def margin(self, variables: Iterable[int]) -> "TableLimits":
        """Return what the table says about fewer variables.

        Sums of limits are the limits of sums; known sums of cells are left out, so that limits of
        tables with such sums may be wider than need be.
        """
        kept = tuple(n for n in self.subset if n in set(variables))
        if kept == self.subset:
            return self
        low = sum_to(self.low, self.subset, kept)
        high = low if self.is_exact else sum_to(self.high, self.subset, kept)
        return TableLimits(kept, low, high, self.records, self.is_scaled)


def limits_of(tables: "Marginals") -> list[TableLimits]:
    """Return the limits of all tables that have records."""
    counts = tables.totals[tables.counted & (tables.totals > 0)]
    other = float(np.median(counts)) if len(counts) else _NOMINAL_RECORDS
    records = np.where(tables.counted, np.maximum(tables.totals, 1.0), other)
    used = np.flatnonzero(tables.totals > 0).tolist()
    return [_limits(tables, i, float(records[i])) for i in used]


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


def margins_of(exact: Iterable[TableLimits]) -> dict[tuple[int, ...], FloatArray] | None:
    """Return all exact tables and their margins by variables; None where two of them differ."""
    margins: dict[tuple[int, ...], FloatArray] = {}
    for table in exact:
        for subset in parts_of(table.subset):
            margin = table.margin(subset).low
            first = margins.setdefault(subset, margin)
            if np.abs(first - margin).max() > SAME_SHARE:
                return None
    return margins


def agree(exact: Sequence[TableLimits], moments: Sequence["Moment"] = ()) -> bool:
    """Return whether exact tables, and moments of their variables, have the same values."""
    margins = margins_of(exact)
    if margins is None:
        return False
    for moment in moments:
        if moment.variables in margins:
            size = max(1.0, *np.abs(moment.range))
            off = moment.expectation(margins[moment.variables]) - moment.value
            if abs(off) > SAME_SHARE * size:
                return False
    return True


def with_margins(limits: Iterable[TableLimits]) -> list[TableLimits]:
    """Return tables with their margins, each with its own spread, without repetitions."""
    tables: dict[tuple[object, ...], TableLimits] = {}
    for table in limits:
        tables[table.subset, id(table)] = table
        for subset in parts_of(table.subset, min(len(table.subset) - 1, _MARGIN_ORDER)):
            margin = table.margin(subset)
            tables.setdefault((subset, margin.low.round(12).tobytes(), margin.records), margin)
    return list(tables.values())


def spread_of_moment(moment: "Moment") -> float:
    """Return how far a moment gives way where it cannot be met, as a table's cells do."""
    return 0.01 * (moment.range[1] - moment.range[0])


def dependence(table: TableLimits, n: int, q: int) -> float:
    """Return the total variation distance of two variables of a table from independence."""
    pair = sum_to(table.middle, table.subset, (n, q))
    pair = pair / max(pair.sum(), 1e-300)
    return float(np.abs(pair - np.outer(pair.sum(axis=1), pair.sum(axis=0))).sum() / 2)
