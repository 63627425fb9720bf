"""Tables that can be handed out: small counts held back, numbers rounded.

A small count that is held back can often be computed from totals. So further cells are held back
(complementary suppression) until no line of a table leaves any of them alone: it is assumed that
all totals of each table are known, and that sums of a larger table give a smaller one; these
totals are handed out with the tables. Linear programs then check that all totals together determine
no small count, in tables with up to 300 cells held back. Where numbers are rounded to multiples of
the limit or more, totals give nothing away, and only the small counts are held back.
"""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rejoint.marginals.marginals import Marginals
from rejoint.marginals.suppression import UnknownCells, start_fill
from rejoint.model import FloatArray

Mask = NDArray[np.bool_]
LineSum = tuple[NDArray[np.intp], float]

#: Hidden cells of a table up to which it is computed what all its totals together determine.
_MOST_HIDDEN = 300


@dataclass(frozen=True)
class Protection:
    """Protected tables, and what the protection costs.

    ``small`` and ``further`` are the numbers of cells held back because they are small, and so that
    totals do not give these away. ``distance`` has, for each table, the total variation between the
    counted table and the one that a reader can make of what is published.
    """

    tables: Marginals
    small: int
    further: int
    distance: FloatArray


def protect(
    tables: Marginals,
    min_count: int = 0,
    round_to: int = 0,
    random_state: int | np.random.Generator | None = None,
) -> Protection:
    """Hold back counts below a limit, and round the others up or down at random.

    Parameters
    ----------
    tables : Marginals
        Counted tables.
    min_count : int
        Counts from 1 to below this are held back; further cells are, too, so that no small count
        can be computed from totals or from other tables, unless rounding prevents that.
    round_to : int
        Counts become multiples of this, up or down at random so that they are right on average.
    random_state : int or Generator, optional
        Source of randomness of rounding.

    Examples
    --------
    >>> counted = Marginals.from_tables({("a", "b"): [[30, 2, 11], [14, 9, 40], [25, 31, 12]]})
    >>> made = protect(counted, min_count=5)
    >>> made.small, made.further, len(made.tables.unknown)
    (1, 3, 4)
    """
    if not tables.counted.all():
        raise ValueError("Only counts can be protected: these tables have shares.")
    counts = [tables.counts_of(i) for i in range(len(tables))]
    small = [(table > 0) & (table < min_count) for table in counts]
    hidden = [mask.copy() for mask in small]
    # Totals that are off by up to the base of rounding determine nothing between 1 and the limit.
    while round_to < min_count - 1 and _hide_more(tables, counts, small, hidden, min_count):
        pass
    shown = counts
    if round_to > 1:
        rng = np.random.default_rng(random_state)
        shown = [_rounded(table, round_to, rng) for table in counts]
    flat, cells = [], []
    for table, true, few, mask, start in zip(
        shown, counts, small, hidden, tables.starts[:-1], strict=True
    ):
        places = np.flatnonzero(mask)
        values = np.where(mask, 0.0, table).ravel()
        if len(places):
            low = np.where(few.ravel()[places], 1.0, 0.0)
            high = np.where(few.ravel()[places], min_count - 1.0, np.inf)
            own = UnknownCells(places, low, high, () if round_to > 1 else _line_sums(true, places))
            values = start_fill(values, true.shape, own, counted=True)
            cells.append(own.shifted(int(start)))
        flat.append(values)
    made = replace(
        tables,
        flat=np.concatenate([*flat, np.empty(0)]),
        unknown=UnknownCells.together(cells),
        rounding=np.full(len(tables), float(round_to if round_to > 1 else 0)),
    )
    distance = [
        0.5 * float(np.abs(made.shares(i) - tables.shares(i)).sum()) for i in range(len(tables))
    ]
    first = sum(int(mask.sum()) for mask in small)
    every = sum(int(mask.sum()) for mask in hidden)
    return Protection(made, first, every - first, np.array(distance))


def _line_sums(counts: FloatArray, places: NDArray[np.intp]) -> tuple[LineSum, ...]:
    """Return the sums of hidden cells that totals of a table give, which are taken as known."""
    number = np.full(counts.size, -1)
    number[places] = np.arange(len(places))
    index = np.arange(counts.size).reshape(counts.shape)
    found = []
    for axis in range(counts.ndim):
        for line in np.moveaxis(index, axis, -1).reshape(-1, counts.shape[axis]):
            inside = line[number[line] >= 0]
            if len(inside):
                found.append((number[inside], float(counts.ravel()[inside].sum())))
    return tuple(found)


def _rounded(table: FloatArray, base: int, rng: np.random.Generator) -> FloatArray:
    down = np.floor(table / base)
    up = rng.random(table.shape) < table / base - down
    return np.asarray(base * (down + up))


def _hide_more(
    tables: Marginals,
    counts: list[FloatArray],
    small: list[Mask],
    hidden: list[Mask],
    min_count: int,
) -> bool:
    """Hide further cells where one is needed; return whether any was hidden."""
    parts = list(zip(counts, small, hidden, strict=True))
    changed = any([_hide_lines(*part, min_count) for part in parts])
    changed = _hide_parts(tables, counts, hidden) or changed
    return changed or any([_hide_exposed(*part, min_count) for part in parts])


def _hide_exposed(counts: FloatArray, small: Mask, hidden: Mask, min_count: int) -> bool:
    """Hide a cell beside each small count that all totals together determine."""
    from scipy.optimize import linprog  # loaded when needed: it is slow to import

    cells = np.flatnonzero(hidden)
    few = small.ravel()[cells]
    if not few.any() or len(cells) > _MOST_HIDDEN or hidden.all():
        return False
    number = np.full(counts.size, -1)
    number[cells] = np.arange(len(cells))
    rows, sums, places = [], [], np.arange(counts.size).reshape(counts.shape)
    for axis in range(counts.ndim):
        for line in np.moveaxis(places, axis, -1).reshape(-1, counts.shape[axis]):
            inside = line[number[line] >= 0]
            if len(inside):
                rows.append(np.bincount(number[inside], minlength=len(cells)))
                sums.append(counts.ravel()[inside].sum())
    bounds = [(1.0, min_count - 1.0) if one else (0.0, None) for one in few]
    for k in np.flatnonzero(few):
        goal = np.zeros(len(cells))
        goal[k] = 1.0
        ends = [linprog(g, A_eq=rows, b_eq=sums, bounds=bounds).fun for g in (goal, -goal)]
        if -ends[1] - ends[0] > 0.5:
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


def _hide_lines(counts: FloatArray, small: Mask, hidden: Mask, min_count: int) -> bool:
    """Hide one more cell of each line whose total would narrow down a small count in it."""
    changed = False
    places = np.arange(counts.size).reshape(counts.shape)
    flat, few, gone = counts.ravel(), small.ravel(), hidden.reshape(-1)  # gone writes to hidden
    for axis in range(counts.ndim):
        for line in np.moveaxis(places, axis, -1).reshape(-1, counts.shape[axis]):
            if not gone[line].any() or len(line) < 2:
                continue
            if _is_safe(flat[line], few[line], gone[line], min_count):
                continue
            free = line[~gone[line]]
            free = free[flat[free] > 0] if (flat[free] > 0).any() else free
            if len(free):
                # The smallest one, of those that leave no other line with a single hidden cell.
                alone = np.zeros(len(free))
                for a in set(range(counts.ndim)) - {axis}:
                    lonely = ~np.broadcast_to(hidden.any(axis=a, keepdims=True), counts.shape)
                    alone += lonely.ravel()[free]
                best = np.lexsort((flat[free], alone))[0]
                gone[free[best]] = True
                changed = True
    return changed


def _is_safe(line: FloatArray, small: Mask, hidden: Mask, min_count: int) -> bool:
    """Return whether the total of a line leaves each small count between 1 and its limit."""
    total = float(line[hidden].sum())
    low = np.where(small, 1.0, 0.0)[hidden]
    high = np.where(small, min_count - 1.0, np.inf)[hidden]
    if len(low) < 2:
        return False
    others = np.array([np.delete(high, k).sum() for k in range(len(high))])
    least = total - others
    most = total - (low.sum() - low)
    mine = small[hidden]
    return bool(np.all(~mine | ((least <= 1.0) & (most >= min_count - 1.0))))


def _hide_parts(tables: Marginals, counts: list[FloatArray], hidden: list[Mask]) -> bool:
    """Hide cells of a larger table that add up to a hidden cell of a smaller one."""
    changed = False
    for i, j in combinations(range(len(tables)), 2):
        small, large = sorted((i, j), key=lambda k: len(tables.index_subsets[k]))
        inner, outer = tables.index_subsets[small], tables.index_subsets[large]
        if not set(inner) < set(outer):
            continue
        axes = [outer.index(n) for n in inner]
        values = np.moveaxis(counts[large], axes, range(len(axes)))
        mask = np.moveaxis(hidden[large], axes, range(len(axes)))
        for cell in zip(*np.nonzero(hidden[small]), strict=True):
            if mask[cell].any():
                continue
            flat = values[cell].ravel()
            there = np.flatnonzero(flat > 0)
            best = there[np.argsort(flat[there])[:2]]
            part = mask[cell].ravel().copy()
            part[best] = True
            mask[cell] = part.reshape(mask[cell].shape)
            changed = changed or len(best) > 0
    return changed
