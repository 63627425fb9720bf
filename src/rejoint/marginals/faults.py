"""Faults of given tables that no reading can mend, in words."""

import numpy as np

from rejoint.marginals.forms import LabelledTable

__all__ = ["check_cells", "check_no_totals"]


def check_cells(table: LabelledTable) -> None:
    """Refuse cells that are no numbers, negative ones unless noise was added, and empty tables.

    Examples
    --------
    >>> check_cells(LabelledTable(("a",), (("x", "y"),), np.array([1.0, -2.0])))
    Traceback (most recent call last):
    ...
    ValueError: Table ('a',), cell a='y': got -2; cells must be finite and not negative. ...
    """
    values = table.values
    bad = np.isinf(values)
    if not table.noisy:
        bad |= values < 0
    if table.bounds is None:
        bad |= np.isnan(values)
    if bad.any():
        raise _bad_cell(table, int(np.argmax(bad)))
    if np.nansum(values) > 0 or (table.total or 0.0) > 0:
        return
    if np.isnan(values).any():
        if not table.margins:
            raise ValueError(
                f"Table {table.names}: none of its cells is known, nor any total: leave it out."
            )
        return
    raise ValueError(
        f"Table {table.names} is empty: all its cells are zero."
        if not (values < 0).any()
        else f"Table {table.names} adds up to {values.sum():g}: noise has drowned it; leave it out."
    )


def _bad_cell(table: LabelledTable, flat: int) -> ValueError:
    cell = np.unravel_index(flat, table.values.shape)
    where = ", ".join(
        f"{n}={(range(table.values.shape[i]) if labels is None else labels)[cell[i]]!r}"
        for i, (n, labels) in enumerate(zip(table.names, table.labels, strict=True))
    )
    value = table.values[cell]
    advice = (
        "Say noisy=True if noise was added to protect privacy."
        if value < 0
        else "Write 0 where nothing was counted; if the cell was held back, say within which "
        "bounds it is: suppressed=(0, 4), or (0, inf)."
    )
    return ValueError(
        f"Table {table.names}, cell {where}: got {value:g}; cells must be finite and "
        f"not negative. {advice}"
    )


def check_no_totals(table: LabelledTable) -> None:
    """Refuse a row of totals beside the cells: everything would count twice.

    Examples
    --------
    >>> labels = ("x", "y", "All")
    >>> check_no_totals(LabelledTable(("a",), (labels,), np.array([1.0, 2.0, 3.0])))
    Traceback (most recent call last):
    ...
    ValueError: Table ('a',): 'All' of 'a' is the sum of the other levels; ...
    """
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
