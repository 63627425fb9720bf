"""Totals printed with a table: recognised by their label, split off, checked."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rejoint.marginals.forms import LabelledTable
from rejoint.remarks import remark

__all__ = ["TOTALS", "split_totals"]

Array = NDArray[np.float64]

#: Labels of totals, in lower case.
TOTALS = frozenset({"total", "totals", "grand total", "sum", "all", "overall", "margin"})

#: Of these, those that may as well be a level ("all of them"): a total only if it adds up.
_DOUBTFUL = frozenset({"all", "overall", "sum"})


def split_totals(
    table: LabelledTable, listed: NDArray[np.bool_], totals: Collection[str] = TOTALS
) -> LabelledTable:
    """The table without its totals, these beside it; says so where they do not add up.

    Parameters
    ----------
    table : LabelledTable
        As printed; cells that are not known are NaN.
    listed : array of bool
        False at cells that the file does not mention: zero, but for totals, which are not known.
    totals : collection of str
        Labels of totals, in lower case.

    Examples
    --------
    >>> table = LabelledTable(("a",), (("x", "y", "Total"),), np.array([1.0, 2.0, 3.0]))
    >>> split = split_totals(table, np.ones(3, dtype=bool))
    >>> split.labels, split.total
    ((('x', 'y'),), 3.0)
    """
    places = [_place(table, axis, totals) for axis in range(len(table.names))]
    if all(place is None for place in places):
        return table
    values = table.values.copy()
    for axis, place in enumerate(places):
        if place is not None:
            line = _at(values.ndim, axis, place)
            values[line] = np.where(listed[line], values[line], np.nan)
    whole = replace(table, values=values)
    split = _take(whole, dict.fromkeys(range(values.ndim)), places)
    margins, total = [], None
    for kept in _margins(places):
        part = _take(whole, dict.fromkeys(kept), places)
        if kept and not np.isnan(part.values).all():
            margins.append(part)
        elif not kept and not np.isnan(part.values):
            total = float(part.values)
    split = replace(split, margins=tuple(margins), total=total)
    _check(split)
    return split


def _place(table: LabelledTable, axis: int, totals: Collection[str]) -> int | None:
    """Where the total of a variable stands among its labels; None if it has none."""
    labels = table.labels[axis] or ()
    found = [i for i, label in enumerate(labels) if str(label).strip().lower() in totals]
    if not found or len(labels) < 2:
        return None
    if len(found) > 1:
        raise ValueError(
            f"{table.source or 'Table'}: {table.names[axis]!r} has two totals, "
            f"{labels[found[0]]!r} and {labels[found[1]]!r}. Leave one out, or say totals=."
        )
    if str(labels[found[0]]).strip().lower() in _DOUBTFUL:
        rest = np.delete(table.values, found[0], axis).sum(axis)
        claim = np.take(table.values, found[0], axis)
        slack = 0.5 * table.digit * len(labels) + 1e-3 * np.abs(claim)
        if not (np.isnan(rest) | np.isnan(claim) | (np.abs(rest - claim) <= slack)).all():
            return None
    return found[0]


def _margins(places: list[int | None]) -> Iterator[tuple[int, ...]]:
    """Every set of variables that a printed total may be broken down by, largest first."""
    summed = [axis for axis, place in enumerate(places) if place is not None]
    for size in range(1, len(summed) + 1):
        for gone in combinations(summed, size):
            yield tuple(axis for axis in range(len(places)) if axis not in gone)


def _take(table: LabelledTable, kept: Collection[int], places: list[int | None]) -> LabelledTable:
    """Levels without totals along the kept axes, the total along the others."""
    values, labels = table.values, []
    bounds = table.bounds or (table.values, table.values)
    arrays = [values, *bounds]
    for axis in reversed(range(len(places))):
        place = places[axis]
        if axis not in kept:
            assert place is not None
            arrays = [np.take(array, place, axis) for array in arrays]
        elif place is not None:
            arrays = [np.delete(array, place, axis) for array in arrays]
    for axis in kept:
        known = list(table.labels[axis] or ())
        if places[axis] is not None:
            del known[places[axis] or 0]
        labels.append(tuple(known))
    values = np.asarray(arrays[0])
    limits = (arrays[1], arrays[2]) if np.isnan(values).any() else None
    names = tuple(table.names[axis] for axis in kept)
    return replace(table, names=names, labels=tuple(labels), values=values, bounds=limits)


def _at(dimensions: int, axis: int, place: int) -> tuple[slice | int, ...]:
    return tuple(place if a == axis else slice(None) for a in range(dimensions))


def _check(table: LabelledTable) -> None:
    """Remark on the total that is furthest from what its cells add up to."""
    if table.noisy:
        return  # noise was added to the totals too
    wrong = [fault for margin in table.margins for fault in _faults(table, margin)]
    if table.total is not None:
        wrong += _compare(table, "the grand total", table.values.ravel(), table.total)
    if wrong:
        _, words = max(wrong)
        more = f" ({len(wrong)} such, this is the worst)" if len(wrong) > 1 else ""
        remark(
            f"{table.source + ', t' if table.source else 'T'}able {table.names}: {words}{more}. "
            "The cells are used as they are."
        )


def _faults(table: LabelledTable, margin: LabelledTable) -> Iterator[tuple[float, str]]:
    axes = [table.names.index(name) for name in margin.names]
    lines = np.moveaxis(table.values, axes, range(len(axes)))
    for cell in np.ndindex(margin.values.shape):
        said = ", ".join(
            f"{name}={(labels or ())[i]!r}"
            for name, labels, i in zip(margin.names, margin.labels, cell, strict=True)
        )
        claim = float(margin.values[cell])
        yield from _compare(table, f"the total of {said}", lines[cell].ravel(), claim)


def _compare(
    table: LabelledTable, what: str, cells: Array, claim: float
) -> list[tuple[float, str]]:
    """A fault if cells cannot add up to what is claimed, even when each was rounded."""
    if np.isnan(claim):
        return []
    known = cells[~np.isnan(cells)]
    found, whole = float(known.sum()), len(known) == len(cells)
    slack = (1e-9 if table.whole else 0.5 * table.digit * (len(known) + 1)) + 1e-9 * abs(claim)
    if found - claim > slack or (whole and claim - found > slack):
        sign = "add up to" if whole else "that are known add up to"
        words = f"{what} is given as {claim:.10g}, but its cells {sign} {found:.10g}"
        return [(abs(found - claim), words)]
    return []
