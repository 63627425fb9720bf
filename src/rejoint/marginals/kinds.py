"""What the numbers of a table are: counts, shares, or percentages."""

import numpy as np
from numpy.typing import NDArray

from rejoint.marginals.forms import COUNT_NAMES, SHARE_NAMES, LabelledTable

__all__ = ["ROUNDING", "unit"]

Array = NDArray[np.float64]

#: How far from 1 (or, relatively, from 100 %) shares may add up: published ones are rounded.
ROUNDING = 0.01


def unit(table: LabelledTable, values: Array, kind: str) -> tuple[float, bool]:
    """By what to divide the cells, and whether they are counts (which are left as they are).

    Told apart, unless ``kind`` says it, by the name of the column, then by the numbers:
    integers are counts; a sum of 1 means shares; a sum of 100 with fractions, percentages; a
    sum below one is neither, and anything else counts (of weighted records, if fractional).

    Examples
    --------
    >>> table = LabelledTable(("a",), (("x", "y"),), np.array([12.5, 87.5]))
    >>> unit(table, table.values, "auto")
    (100.0, False)
    """
    total = float(np.nansum(values))
    if kind == "auto":
        kind = _kind(table, total)
    if kind == "counts":
        return 1.0, True
    scale = 100.0 if table.percent or total > 2.0 else 1.0
    slack = ROUNDING * scale + _rounding(table)
    if np.isnan(values).any():  # what is not known makes up the rest
        if total <= scale + slack:
            return max(scale, total), False
    elif abs(total - scale) <= slack:
        return total, False
    raise ValueError(
        f"Table {table.names}: shares must add up to 1 (or 100 %), these to {total:g}. "
        + _advice(table)
    )


def _rounding(table: LabelledTable) -> float:
    """Four standard errors of a sum of rounded numbers."""
    return 4.0 * table.digit * float(np.sqrt(np.count_nonzero(table.values) / 12.0))


def _advice(table: LabelledTable) -> str:
    """Shares of each row by itself are common in print, and cannot be used alone."""
    for axis, name in enumerate(table.names if len(table.names) > 1 else ()):
        sums = table.values.sum(axis=tuple(a for a in range(table.values.ndim) if a != axis))
        for whole in (1.0, 100.0):
            slack = ROUNDING * whole + _rounding(table)
            if len(sums) > 1 and (np.abs(sums - whole) <= slack).all():
                return (
                    f"Each level of {name!r} adds up to {whole:g} by itself: multiply by the "
                    f"shares of {name!r} first."
                )
    return "If they are counts say kind='counts'."


def _kind(table: LabelledTable, total: float) -> str:
    column = table.column.lower()
    known = table.values[~np.isnan(table.values)]
    partly = len(known) < table.values.size
    fractions = bool(np.any(known != np.floor(known)))
    one, hundred = abs(total - 1.0) <= ROUNDING, abs(total / 100.0 - 1.0) <= ROUNDING
    if table.percent or column in SHARE_NAMES or (fractions and one):
        return "shares"  # also in a column "freq", which may mean either
    if column in COUNT_NAMES or table.whole:
        return "counts"
    if one or (fractions and hundred):
        return "shares"
    if partly and fractions and (total < 1.0 or table.total in (1.0, 100.0)):
        return "shares"
    if total < 1.0:
        raise ValueError(
            f"Table {table.names} adds up to {total:g}: too little for shares, which add up to "
            "1, and for counts. Check it, or say kind='counts'."
        )
    return "counts"
