"""Counts or shares: told apart by what the numbers are called and by what they add up to."""

import numpy as np
from numpy.typing import NDArray

from rejoint.tables.forms import COUNT_NAMES, SHARE_NAMES, LabelledTable

Array = NDArray[np.float64]

#: How far from 1 (or, relatively, from 100 %) shares may add up: published ones are rounded.
ROUNDING = 0.01


def as_counts_or_shares(table: LabelledTable, values: Array, kind: str) -> tuple[Array, bool]:
    """Return counts as they are, shares scaled to one, and whether it was counts.

    Told apart, unless ``kind`` says it, by the name of the column, then by the numbers:
    integers are counts; a sum of 1 means shares; a sum of 100 with fractions, percentages; a
    sum below one is neither, and anything else counts (of weighted records, if fractional).

    Examples
    --------
    >>> from rejoint.tables.forms import read_table
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
