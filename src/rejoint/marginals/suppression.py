"""Unknown cells: their bounds, and how the expectations of a model fill them.

A fit that treats a suppressed cell as zero is biased towards zero there. Here such a cell is an
unknown: it is filled with the expectation of the model, within its bounds, and the model is fitted
again (see ``factorization.fit_tables``). For counts that is EM: the expectation of a Poisson
count given its bounds, then scaled so that published totals are met.

Tables to hand out are protected in the same terms: small counts become unknown cells, and further
ones, so that sums do not give them away.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray, outer_product, sum_to

if TYPE_CHECKING:
    from rejoint.marginals.marginals import Marginals


Places = NDArray[np.intp]

#: Wider bounds than this hardly change the expectation: clipping is as accurate, and faster.
WIDE = 200

_SWEEPS = 100
_EXACT = 1e-10


@dataclass(frozen=True, eq=False)
class UnknownCells:
    """Cells of one table, or of tables one after another, that are not known.

    Parameters
    ----------
    places : array of int (K,)
        Positions in the flat array, increasing.
    low, high : array (K,)
        Bounds, in the unit of the table.
    sums : tuple of (members, value)
        Known sums: positions among the K, and their sum.

    Examples
    --------
    >>> cells = UnknownCells(np.array([3]), np.zeros(1), np.full(1, 4.0))
    >>> cells.shifted(10).places
    array([13])
    """

    places: Places
    low: FloatArray
    high: FloatArray
    sums: tuple[tuple[Places, float], ...] = ()

    def __len__(self) -> int:
        return len(self.places)

    def shifted(self, by: int) -> "UnknownCells":
        """Return the cells with positions shifted to where their table starts."""
        return UnknownCells(self.places + by, self.low, self.high, self.sums)

    def scaled(self, by: float) -> "UnknownCells":
        """Return the cells in another unit."""
        sums = tuple((members, value * by) for members, value in self.sums)
        return UnknownCells(self.places, self.low * by, self.high * by, sums)

    def between(self, start: int, stop: int) -> "UnknownCells | None":
        """Return the cells of one table, with positions from its start; None if all are known."""
        first, last = np.searchsorted(self.places, [start, stop])
        if first == last:
            return None
        sums = tuple(
            (members - first, value) for members, value in self.sums if first <= members[0] < last
        )
        part = slice(first, last)
        return UnknownCells(self.places[part] - start, self.low[part], self.high[part], sums)

    def tightened(self) -> tuple[FloatArray, FloatArray]:
        """Return the bounds that the known sums leave, each sum by itself, again and again.

        Examples
        --------
        >>> both = ((np.array([0, 1]), 7.0),)
        >>> cells = UnknownCells(np.array([3, 5]), np.array([0.0, 2.0]), np.array([9.0, 9.0]), both)
        >>> cells.tightened()
        (array([0., 2.]), array([5., 7.]))
        """
        low, high = self.low.copy(), self.high.copy()
        for _ in range(_SWEEPS):
            before = low.copy(), high.copy()
            for members, value in self.sums:
                least, most = low[members], high[members]
                others = least.sum() - least
                high[members] = np.minimum(most, np.maximum(value - others, least))
                if np.isfinite(most).sum() >= len(members) - 1:
                    finite = np.where(np.isfinite(most), most, 0.0)
                    alone = ~np.isfinite(most) | np.isfinite(most).all()
                    rest = np.where(alone, finite.sum() - finite, np.inf)
                    low[members] = np.maximum(least, np.minimum(value - rest, high[members]))
            if all(np.array_equal(a, b) for a, b in zip(before, (low, high), strict=True)):
                break
        return low, high

    @staticmethod
    def together(parts: "Sequence[UnknownCells]") -> "UnknownCells | None":
        """Join the cells of several tables, sorted by position; None if there are none."""
        parts = sorted((part for part in parts if len(part)), key=lambda part: int(part.places[0]))
        if not parts:
            return None
        sums, seen = [], 0
        for part in parts:
            sums += [(members + seen, value) for members, value in part.sums]
            seen += len(part)
        return UnknownCells(
            np.concatenate([part.places for part in parts]),
            np.concatenate([part.low for part in parts]),
            np.concatenate([part.high for part in parts]),
            tuple(sums),
        )


def fill_table(
    table: FloatArray, cells: UnknownCells, shares: FloatArray, *, counted: bool
) -> FloatArray:
    """Return the table with its unknown cells filled with the expectations of a model.

    Parameters
    ----------
    table : array
        The table, flat; its values at unknown cells are ignored.
    cells : UnknownCells
        The unknown cells, with positions from the start of the table.
    shares : array
        The model's table, flat, summing to one.
    counted : bool
        Whether the cells are whole numbers.

    Examples
    --------
    >>> cells = UnknownCells(np.array([3]), np.zeros(1), np.full(1, np.inf))
    >>> fill_table(np.array([30.0, 20.0, 30.0, 0.0]), cells, np.full(4, 0.25), counted=True)
    array([30.        , 20.        , 30.        , 26.66666667])
    """
    filled = table.copy()
    known = float(table.sum() - table[cells.places].sum())
    guess = shares[cells.places]
    left = known_rest(cells)
    if left is not None:
        total = known + left
    else:
        seen = 1.0 - float(guess.sum())
        total = known / seen if seen > 1e-12 else known
    values = expected(total * guess, cells.low, cells.high, counted=counted)
    filled[cells.places] = meet_sums(values, cells)
    return filled


def known_rest(cells: UnknownCells) -> float | None:
    """Return the sum of all unknown cells, if it is known.

    Examples
    --------
    >>> both = ((np.array([0, 1]), 7.0),)
    >>> known_rest(UnknownCells(np.array([3, 5]), np.zeros(2), np.full(2, 9.0), both))
    7.0
    """
    values = [value for members, value in cells.sums if len(members) == len(cells)]
    return values[0] if values else None


def expected(mean: FloatArray, low: FloatArray, high: FloatArray, *, counted: bool) -> FloatArray:
    """Return the expectation of each cell within its bounds; of a Poisson count for counts.

    Examples
    --------
    >>> bounds = np.zeros(2), np.full(2, 4.0)
    >>> expected(np.array([0.1, 50.0]), *bounds, counted=True).round(3)
    array([0.1  , 3.917])
    >>> expected(np.array([0.1, 50.0]), *bounds, counted=False)
    array([0.1, 4. ])
    """
    from scipy.special import gammaln  # loaded when needed: it is slow to import

    found: FloatArray = np.clip(mean, low, high)
    narrow = np.flatnonzero(high - low <= WIDE) if counted else np.empty(0, dtype=np.intp)
    if len(narrow):
        bottom, top = np.ceil(low[narrow])[:, None], np.floor(high[narrow])[:, None]
        number = bottom + np.arange(float((top - bottom).max()) + 1.0)
        log = number * np.log(np.maximum(mean[narrow], 1e-300))[:, None] - gammaln(number + 1.0)
        log = np.where(number <= top, log, -np.inf)
        share = np.exp(log - log.max(axis=1, keepdims=True))
        found[narrow] = (share * number).sum(axis=1) / share.sum(axis=1)
    return found


def meet_sums(values: FloatArray, cells: UnknownCells) -> FloatArray:
    """Scale cells until known sums are met, each within its bounds.

    Examples
    --------
    >>> cells = UnknownCells(
    ...     np.arange(3), np.zeros(3), np.array([1.0, 9.0, 9.0]), ((np.arange(3), 8.0),)
    ... )
    >>> meet_sums(np.array([2.0, 1.0, 3.0]), cells).round(6)
    array([1.  , 1.75, 5.25])
    """
    if not cells.sums:
        return values
    values = np.clip(values, cells.low, cells.high)
    for _ in range(_SWEEPS):
        worst = 0.0
        for members, value in cells.sums:
            part = values[members]
            gap = value - float(part.sum())
            worst = max(worst, abs(gap) / max(abs(value), 1.0))
            bound = cells.high[members] if gap > 0 else cells.low[members]
            free = part != bound  # cells at their bounds stay; the others share the gap
            weight = np.where(free, np.maximum(part, 1e-12), 0.0)
            if free.any():
                part = part + gap * weight / weight.sum()
            values[members] = np.clip(part, cells.low[members], cells.high[members])
        if worst < _EXACT:
            break
    return values


def start_fill(
    table: FloatArray, shape: Sequence[int], cells: UnknownCells, *, counted: bool
) -> FloatArray:
    """Fill from the table alone, as if its variables were independent.

    Examples
    --------
    >>> cells = UnknownCells(np.array([3]), np.zeros(1), np.full(1, np.inf))
    >>> start_fill(np.array([10.0, 20.0, 30.0, 0.0]), (2, 2), cells, counted=True).round(2)
    array([10., 20., 30., 60.])
    """
    filled = table.copy()
    known = np.delete(filled, cells.places)
    middle = np.clip(float(known.mean()) if len(known) else 1.0, cells.low, cells.high)
    filled[cells.places] = meet_sums(middle.astype(np.float64), cells)
    for _ in range(_SWEEPS):
        if not filled.sum() > 0:
            break
        before, filled = (
            filled,
            fill_table(filled, cells, _independent(filled, shape), counted=counted),
        )
        if np.abs(filled - before).sum() <= 1e-6 * filled.sum():
            break
    return filled


def _independent(table: FloatArray, shape: Sequence[int]) -> FloatArray:
    """Return the product of the shares of each variable, flat."""
    dense = table.reshape(tuple(shape)) / table.sum()
    axes = range(dense.ndim)
    return outer_product(np.maximum(sum_to(dense, axes, (axis,)), 0.0) for axis in axes).ravel()


def fill_unknown(store: "Marginals", model: Any) -> "Marginals":
    """Return tables with unknown cells filled with the expectations of a model, within bounds.

    Examples
    --------
    >>> from rejoint import Domain, Marginals
    >>> cells = UnknownCells(np.array([1]), np.zeros(1), np.full(1, np.inf))
    >>> store = Marginals(Domain.of({"a": 2}), ((0,),), [3.0, 0.0], unknown=cells)
    >>> even = Marginals(store.domain, ((0,),), [1, 1])
    >>> fill_unknown(store, even)["a"]
    array([3., 3.])
    """
    if store.unknown is None:
        return store
    flat = store.flat.copy()
    for i, names in enumerate(store.subsets):
        cells = store.unknown_of(i)
        if cells is not None:
            part = flat[int(store.starts[i]) : int(store.starts[i + 1])]
            shares = np.asarray(model.marginal(list(names))).ravel()
            part[:] = fill_table(part, cells, shares, counted=bool(store.counted[i]))
    return replace(store, flat=flat)


Mask = NDArray[np.bool_]
LineSum = tuple[Places, float]

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


def protect(
    tables: "Marginals",
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
    >>> from rejoint import Marginals
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


def _lines(shape: Sequence[int]) -> Iterator[tuple[int, Places]]:
    """Yield the lines of a table: the axis that each runs along, and the positions of its cells."""
    places = np.arange(prod(shape)).reshape(tuple(shape))
    for axis, size in enumerate(shape):
        for line in np.moveaxis(places, axis, -1).reshape(-1, size):
            yield axis, line


def _line_sums(counts: FloatArray, places: Places) -> tuple[LineSum, ...]:
    """Return the sums of hidden cells that totals of a table give, which are taken as known."""
    number = np.full(counts.size, -1)
    number[places] = np.arange(len(places))
    inside = (line[number[line] >= 0] for _, line in _lines(counts.shape))
    return tuple((number[at], float(counts.ravel()[at].sum())) for at in inside if len(at))


def _rounded(table: FloatArray, base: int, rng: np.random.Generator) -> FloatArray:
    down = np.floor(table / base)
    up = rng.random(table.shape) < table / base - down
    return np.asarray(base * (down + up))


def _hide_more(
    tables: "Marginals",
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
    known = _line_sums(counts, cells)
    rows = [np.bincount(members, minlength=len(cells)) for members, _ in known]
    sums = [value for _, value in known]
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
    flat, few, gone = counts.ravel(), small.ravel(), hidden.reshape(-1)  # gone writes to hidden
    for axis, line in _lines(counts.shape):
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


def _hide_parts(tables: "Marginals", counts: list[FloatArray], hidden: list[Mask]) -> bool:
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
