"""Tables to hand out: small counts are held back, and what would give them away; rounding."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from rejoint.arrays import BoolArray, FloatArray
from rejoint.marginals.unknown import Places, UnknownCells, start_fill

if TYPE_CHECKING:
    from rejoint.marginals.marginals import Marginals

#: Hidden cells of a table up to which it is computed what all its totals together determine.
_MOST_HIDDEN = 300


@dataclass(frozen=True)
class Protection:
    """Protected tables, and what the protection costs.

    ``small`` and ``further`` are the numbers of cells held back because they are small, and so that
    totals do not give these away. ``distance`` has, for each table, the total variation between the
    counted table and the one that a reader can make of what is published.
    """

    tables: "Marginals"
    small: int
    further: int
    distance: FloatArray


@dataclass
class _Table:
    """The counts of a table, those that are small, and those that are held back."""

    counts: FloatArray
    least: int

    def __post_init__(self) -> None:
        self.small = (self.counts > 0) & (self.counts < self.least)
        self.hidden = self.small.copy()
        self.low = np.where(self.small, 1.0, 0.0).ravel()
        self.high = np.where(self.small, self.least - 1.0, np.inf).ravel()


def protect(
    tables: "Marginals",
    min_count: int = 0,
    round_to: int = 0,
    random_state: int | np.random.Generator | None = None,
) -> Protection:
    """Hold back counts below a limit, and round the others up or down at random.

    Counts from 1 to below ``min_count`` are held back; further cells are, too, so that no small
    count can be computed from totals or from other tables, unless rounding prevents that. Counts
    become multiples of ``round_to``, up or down at random so that they are right on average.
    """
    if not tables.counted.all():
        raise ValueError("Only counts can be protected: these tables have shares.")
    parts = [_Table(tables.counts_of(i), min_count) for i in range(len(tables))]
    # Totals that are off by up to the base of rounding determine nothing between 1 and the limit.
    while round_to < min_count - 1 and _hide_more(tables, parts):
        pass
    rng = np.random.default_rng(random_state)
    flat, cells = [np.empty(0)], []
    for table, start in zip(parts, tables.starts[:-1], strict=True):
        shown = _rounded(table.counts, round_to, rng) if round_to > 1 else table.counts
        places = np.flatnonzero(table.hidden)
        values = np.where(table.hidden, 0.0, shown).ravel()
        if len(places):
            sums = () if round_to > 1 else _line_sums(table.counts, places)
            own = UnknownCells(places, table.low[places], table.high[places], sums)
            values = start_fill(values, shown.shape, own, counted=True)
            cells.append(own.shifted(int(start)))
        flat.append(values)
    rounding = np.full(len(tables), float(round_to if round_to > 1 else 0))
    unknown = UnknownCells.together(cells)
    made = replace(tables, flat=np.concatenate(flat), unknown=unknown, rounding=rounding)
    apart = [np.abs(made.shares(i) - tables.shares(i)).sum() for i in range(len(tables))]
    small = sum(int(table.small.sum()) for table in parts)
    hidden = sum(int(table.hidden.sum()) for table in parts)
    return Protection(made, small, hidden - small, 0.5 * np.array(apart))


def _lines(shape: Sequence[int]) -> Iterator[tuple[int, Places]]:
    """Yield the lines of a table: the axis that each runs along, and the positions of its cells."""
    places = np.arange(prod(shape)).reshape(tuple(shape))
    for axis, size in enumerate(shape):
        for line in np.moveaxis(places, axis, -1).reshape(-1, size):
            yield axis, line


def _line_sums(counts: FloatArray, places: Places) -> tuple[tuple[Places, float], ...]:
    """Return the sums of hidden cells that totals of a table give, which are taken as known."""
    number = np.full(counts.size, -1)
    number[places] = np.arange(len(places))
    inside = (line[number[line] >= 0] for _, line in _lines(counts.shape))
    return tuple((number[at], float(counts.ravel()[at].sum())) for at in inside if len(at))


def _rounded(table: FloatArray, base: int, rng: np.random.Generator) -> FloatArray:
    down = np.floor(table / base)
    up = rng.random(table.shape) < table / base - down
    return np.asarray(base * (down + up))


def _hide_more(tables: "Marginals", parts: Sequence[_Table]) -> bool:
    """Hide further cells where one is needed; return whether any was hidden."""
    changed = any([_hide_lines(table) for table in parts])
    changed = _hide_parts(tables, parts) or changed
    return changed or any([_hide_exposed(table) for table in parts])


def _hide_exposed(table: _Table) -> bool:
    """Hide a cell beside each small count that all totals together determine."""
    from scipy.optimize import linprog  # loaded when needed: it is slow to import

    counts, hidden, cells = table.counts, table.hidden, np.flatnonzero(table.hidden)
    small = np.flatnonzero(table.small.ravel()[cells])
    if not len(small) or len(cells) > _MOST_HIDDEN or hidden.all():
        return False
    known = _line_sums(counts, cells)
    rows = [np.bincount(members, minlength=len(cells)) for members, _ in known]
    limits = {
        "A_eq": rows,
        "b_eq": [value for _, value in known],
        "bounds": np.column_stack([table.low[cells], table.high[cells]]),
    }
    for k in small:
        goal = np.zeros(len(cells))
        goal[k] = 1.0
        if -linprog(-goal, **limits).fun - linprog(goal, **limits).fun > 0.5:
            continue
        at = np.unravel_index(cells[k], counts.shape)
        near = np.zeros(counts.shape, dtype=bool)
        for axis in range(counts.ndim):
            near[tuple(slice(None) if a == axis else at[a] for a in range(counts.ndim))] = True
        for where in (near, np.ones_like(near)):
            free = np.flatnonzero((where & ~hidden & (counts > 0)).ravel())
            if len(free):
                hidden.ravel()[free[np.argmin(counts.ravel()[free])]] = True
                return True
    return False


def _hide_lines(table: _Table) -> bool:
    """Hide one more cell of each line whose total would narrow down a small count in it."""
    changed = False
    counts, hidden = table.counts.ravel(), table.hidden.reshape(-1)  # a view
    for axis, line in _lines(table.counts.shape):
        if not hidden[line].any() or len(line) < 2 or _is_safe(table, line[hidden[line]]):
            continue
        free = line[~hidden[line]]
        free = free[counts[free] > 0] if (counts[free] > 0).any() else free
        if len(free):
            # The smallest one, of those that leave no other line with a single hidden cell.
            alone = np.zeros(len(free))
            for a in set(range(table.counts.ndim)) - {axis}:
                lonely = ~table.hidden.any(axis=a, keepdims=True)
                alone += np.broadcast_to(lonely, table.counts.shape).ravel()[free]
            hidden[free[np.lexsort((counts[free], alone))[0]]] = True
            changed = True
    return changed


def _is_safe(table: _Table, cells: Places) -> bool:
    """Return whether the sum of hidden cells leaves each small count between 1 and its limit."""
    if len(cells) < 2:
        return False
    total, low, high = table.counts.ravel()[cells].sum(), table.low[cells], table.high[cells]
    least = total - np.array([np.delete(high, k).sum() for k in range(len(high))])
    most = total - (low.sum() - low)
    is_open: BoolArray = (least <= 1.0) & (most >= table.least - 1.0)
    return bool((is_open | ~table.small.ravel()[cells]).all())


def _hide_parts(tables: "Marginals", parts: Sequence[_Table]) -> bool:
    """Hide cells of a larger table that add up to a hidden cell of a smaller one."""
    changed = False
    for i, j in combinations(range(len(parts)), 2):
        small, large = sorted((i, j), key=lambda k: len(tables.index_subsets[k]))
        inner, outer = tables.index_subsets[small], tables.index_subsets[large]
        if not set(inner) < set(outer):
            continue
        axes = [outer.index(n) for n in inner]
        values = np.moveaxis(parts[large].counts, axes, range(len(axes)))
        hidden = np.moveaxis(parts[large].hidden, axes, range(len(axes)))
        for cell in zip(*np.nonzero(parts[small].hidden), strict=True):
            if hidden[cell].any():
                continue
            counts = values[cell].ravel()
            positive = np.flatnonzero(counts > 0)
            best = positive[np.argsort(counts[positive])[:2]]
            for at in best:
                hidden[cell][np.unravel_index(at, hidden[cell].shape)] = True
            changed = changed or len(best) > 0
    return changed
