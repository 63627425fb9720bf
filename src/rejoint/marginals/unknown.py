"""Unknown cells: their bounds, and how the expectations of a model fill them.

A fit that treats a suppressed cell as zero is biased towards zero there. Here such a cell is an
unknown: it is filled with the expectation of the model, within its bounds, and the model is fitted
again (see ``factorization.fit_tables``). For counts that is EM: the expectation of a Poisson
count given its bounds, then scaled so that published totals are met.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    """

    places: Places
    low: FloatArray
    high: FloatArray
    sums: tuple[tuple[Places, float], ...] = ()

    def __len__(self) -> int:
        return len(self.places)

    def shifted(self, by: int) -> "UnknownCells":
        """Return the cells with positions shifted to where their table starts."""
        return replace(self, places=self.places + by)

    def scaled(self, by: float) -> "UnknownCells":
        """Return the cells in another unit."""
        sums = tuple((members, value * by) for members, value in self.sums)
        return UnknownCells(self.places, self.low * by, self.high * by, sums)

    def between(self, start: int, stop: int) -> "UnknownCells | None":
        """Return the cells of one table, with positions from its start; None if all are known."""
        first, last = np.searchsorted(self.places, [start, stop])
        if first == last:
            return None
        sums = tuple((m - first, value) for m, value in self.sums if first <= m[0] < last)
        part = slice(first, last)
        return UnknownCells(self.places[part] - start, self.low[part], self.high[part], sums)

    def tightened(self) -> tuple[FloatArray, FloatArray]:
        """Return the bounds that the known sums leave, each sum by itself, again and again."""
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
        starts = np.cumsum([0, *map(len, parts)])
        pairs = zip(parts, starts, strict=False)
        places, low, high = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("places", "low", "high")
        )
        sums = tuple((m + start, value) for part, start in pairs for m, value in part.sums)
        return UnknownCells(places, low, high, sums)


def fill_table(
    table: FloatArray, cells: UnknownCells, shares: FloatArray, *, counted: bool
) -> FloatArray:
    """Return a flat table with its unknown cells filled with the expectations of a model.

    ``shares`` is the model's table, flat, with a sum of one; whole numbers are ``counted``.
    """
    filled = table.copy()
    known = float(table.sum() - table[cells.places].sum())
    guess = shares[cells.places]
    rest = known_rest(cells)
    if rest is not None:
        total = known + rest
    else:
        seen = 1.0 - float(guess.sum())
        total = known / seen if seen > 1e-12 else known
    values = expected(total * guess, cells.low, cells.high, counted=counted)
    filled[cells.places] = meet_sums(values, cells)
    return filled


def known_rest(cells: UnknownCells) -> float | None:
    """Return the sum of all unknown cells, if it is known."""
    return next((value for members, value in cells.sums if len(members) == len(cells)), None)


def expected(mean: FloatArray, low: FloatArray, high: FloatArray, *, counted: bool) -> FloatArray:
    """Return the expectation of each cell within its bounds; of a Poisson count for counts."""
    from scipy.special import gammaln  # loaded when needed: it is slow to import

    values: FloatArray = np.clip(mean, low, high)
    narrow = np.flatnonzero(high - low <= WIDE) if counted else np.empty(0, dtype=np.intp)
    if len(narrow):
        bottom, top = np.ceil(low[narrow])[:, None], np.floor(high[narrow])[:, None]
        number = bottom + np.arange(float((top - bottom).max()) + 1.0)
        log = number * np.log(np.maximum(mean[narrow], 1e-300))[:, None] - gammaln(number + 1.0)
        log = np.where(number <= top, log, -np.inf)
        share = np.exp(log - log.max(axis=1, keepdims=True))
        values[narrow] = (share * number).sum(axis=1) / share.sum(axis=1)
    return values


def meet_sums(values: FloatArray, cells: UnknownCells) -> FloatArray:
    """Scale cells until known sums are met, each within its bounds."""
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
    """Fill from the table alone, as if its variables were independent."""
    filled = table.copy()
    known = np.delete(filled, cells.places)
    middle = np.clip(float(known.mean()) if len(known) else 1.0, cells.low, cells.high)
    filled[cells.places] = meet_sums(middle.astype(np.float64), cells)
    for _ in range(_SWEEPS):
        if not filled.sum() > 0:
            break
        before, dense = filled, filled.reshape(tuple(shape)) / filled.sum()
        axes = range(dense.ndim)
        margins = (np.maximum(sum_to(dense, axes, (axis,)), 0.0) for axis in axes)
        filled = fill_table(filled, cells, outer_product(margins).ravel(), counted=counted)
        if np.abs(filled - before).sum() <= 1e-6 * filled.sum():
            break
    return filled


def fill_unknown(store: "Marginals", model: Any) -> "Marginals":
    """Return tables with unknown cells filled with the expectations of a model, within bounds."""
    if store.unknown is None:
        return store
    flat = store.flat.copy()
    for i, names in enumerate(store.subsets):
        if (cells := store.unknown_of(i)) is not None:
            part = flat[int(store.starts[i]) : int(store.starts[i + 1])]
            shares = np.asarray(model.marginal(list(names))).ravel()
            part[:] = fill_table(part, cells, shares, counted=bool(store.counted[i]))
    return replace(store, flat=flat)
