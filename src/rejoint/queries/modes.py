"""The most probable combination of levels of a mixture of products, by branch and bound.

The problem ``max_x sum_f p_f prod_n A_n[x_n, f]`` is scaled class by class: with the peaks
``m_n[f] = max_i A_n[i, f]`` and ``r_n = A_n / m_n`` it is ``max_x sum_f u_f prod_n r_n[x_n, f]``,
``u_f = p_f prod_n m_n[f]``, in units of the largest ``u_f``. All ``r_n`` are at most one and the
best combination is at least one: nothing that matters underflows, whatever the number of variables.

A node has decided some variables; its part is ``U_f = u_f prod_decided r_n[x_n, f]``. Two bounds
hold for all its completions. The first is ``sum_f U_f``. The second uses that ``exp`` lies below
its chord: with ``d_n = -log r_n`` (cut off at a few units, which only raises a product), ``L_f``
the sum over undecided n of ``max_i d_n[i, f]``, and ``b_f = (1 - exp(-L_f)) / L_f``,

    prod_n r_n[x_n, f] <= 1 - b_f sum_n d_n[x_n, f],

and the right side, summed over classes, is maximized variable by variable. It is never above the
first bound, and far below it where classes differ little.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

TIE = 1e-12  # relative: combinations this near to the best count as equally probable
_CUT = 3.0  # cut-off of -log r in the chord; a longer chord is hardly below one
_SAMPLE_NODES = 24  # nodes by which the next variable is chosen
_MOST_CANDIDATES = 64  # variables considered for one node
_BLOCK = 2**20  # numbers in a block of children


class Found(NamedTuple):
    """Levels of the best combination, its log probability, a bound on any other, and the cost."""

    levels: IntArray
    log_prob: float
    log_bound: float
    exact: bool
    nodes: int


class _Layer(NamedTuple):
    """Open nodes that have decided the same variables."""

    parts: FloatArray  # (K, F)
    decided: IntArray  # (K, number of variables decided)
    order: tuple[int, ...]  # which variables these are
    bounds: FloatArray  # (K,)


def most_probable(
    weights: FloatArray, factors: Sequence[FloatArray], max_nodes: int = 1_000_000
) -> Found:
    """Find the combination of levels with the largest probability.

    Parameters
    ----------
    weights : ndarray (F,)
        Probability of each class.
    factors : sequence of ndarray (I_n, F)
        Columns of classes with weight sum to one.
    max_nodes : int
        Nodes after which the search ends and says that it is not exact.

    Returns
    -------
    Found

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[0.6, 0.1], [0.4, 0.9]])
    >>> found = most_probable(np.array([0.5, 0.5]), [A, A])
    >>> found.levels, round(float(np.exp(found.log_prob)), 12), found.exact
    (array([1, 1]), 0.485, True)
    """
    alive = weights > 0.0
    columns = [factor[:, alive] for factor in factors]
    peaks = [column.max(axis=0) for column in columns]
    logs = np.log(weights[alive]) + np.sum([np.log(peak) for peak in peaks], axis=0)
    unit = float(logs.max())
    search = _Search(
        np.exp(logs - unit),
        [column / peak for column, peak in zip(columns, peaks, strict=True)],
        max_nodes,
    )
    bound = search.run()
    log_prob = unit + float(np.log(search.best))
    log_bound = max(log_prob, unit + float(np.log(bound))) if bound > 0.0 else log_prob
    return Found(search.levels, log_prob, log_bound, bound == 0.0, search.nodes)


class _Search:
    """A search: the scaled problem, the remaining levels, the best combination so far."""

    def __init__(self, scale: FloatArray, ratios: list[FloatArray], max_nodes: int) -> None:
        self.scale, self.ratios = scale, ratios
        self.max_nodes, self.nodes = max_nodes, 0
        self.kept = [np.arange(len(ratio)) for ratio in ratios]
        self.levels, self.best = climb(scale, ratios, starts(scale, ratios))

    def run(self) -> float:
        """Search; return a bound on what was left unexplored, 0 if nothing was."""
        if not self._drop_levels():
            return 0.0
        free = [n for n, kept in enumerate(self.kept) if len(kept) > 1]
        # Most informative first: with many variables only the first ones are considered.
        self.free = sorted(free, key=lambda n: float((self.ratios[n] @ self.scale).max()))
        with np.errstate(divide="ignore"):
            self.losses = {n: np.minimum(-np.log(self.ratios[n]), _CUT) for n in self.free}
        none = np.zeros((1, 0), dtype=np.intp)
        open_layers = [self._layer(self.scale[None, :], none, ())]
        while open_layers and self.nodes < self.max_nodes:
            layer = open_layers.pop()
            todo, later = self._promising(layer)
            if later is not None:
                open_layers.append(later)
            if len(todo.order) == len(self.free):
                self._offer(todo)
            elif len(todo.bounds):
                open_layers.append(self._expand(todo))
        return max((float(x.bounds.max(initial=0.0)) for x in open_layers), default=0.0)

    @property
    def threshold(self) -> float:
        return self.best * (1.0 + TIE)

    def _drop_levels(self) -> bool:
        """Drop levels that no better combination has; return False if there is none."""
        changed = True
        while changed:
            changed = False
            for n, ratio in enumerate(self.ratios):
                good = (ratio @ self.scale > self.threshold) & ~dominated(ratio)
                if not good.any():
                    return False
                if good.all():
                    continue
                changed = True
                peak = ratio[good].max(axis=0)
                self.kept[n] = self.kept[n][good]
                self.ratios[n] = ratio[good] / np.where(peak > 0.0, peak, 1.0)
                self.scale = self.scale * peak
        return True

    def _layer(self, parts: FloatArray, decided: IntArray, order: tuple[int, ...]) -> _Layer:
        """Make a layer of the nodes that the bounds leave."""
        bounds = parts.sum(axis=1)
        good = bounds > self.threshold
        parts, decided, bounds = parts[good], decided[good], bounds[good]
        rest = self._undecided(order)
        if len(rest) > 1 and len(bounds) and len(rest) < _MOST_CANDIDATES * len(bounds):
            # Never above the first bound, and it ranks the nodes better.
            bounds = chord_bounds(parts, bounds, [self.losses[n] for n in rest])
            good = bounds > self.threshold
            parts, decided, bounds = parts[good], decided[good], bounds[good]
        return _Layer(parts, decided, order, bounds)

    def _promising(self, layer: _Layer) -> tuple[_Layer, _Layer | None]:
        """Take the nodes of the largest bounds, as many as fit into a block; leave the others."""
        levels = max(len(ratio) for ratio in self.ratios)
        width = max(64, _BLOCK // (levels * len(self.scale)))
        good = np.flatnonzero(layer.bounds > self.threshold)
        order = good[np.argsort(layer.bounds[good], kind="stable")]
        now, then = order[-width:][::-1], order[:-width]
        later = _pick(layer, then) if len(then) else None
        return _pick(layer, now), later

    def _expand(self, layer: _Layer) -> _Layer:
        n = self._next_variable(layer)
        ratio = self.ratios[n]
        self.nodes += len(layer.parts) * len(ratio)
        parts = (layer.parts[:, None, :] * ratio[None, :, :]).reshape(-1, len(self.scale))
        before = np.repeat(layer.decided, len(ratio), axis=0)
        column = np.tile(np.arange(len(ratio)), len(layer.parts))
        return self._layer(parts, np.column_stack([before, column]), (*layer.order, n))

    def _next_variable(self, layer: _Layer) -> int:
        """The variable that leaves the fewest children of the best nodes, and the lowest ones."""
        sample = layer.parts[:_SAMPLE_NODES]

        def cost(n: int) -> tuple[int, float]:
            children = sample @ self.ratios[n].T
            open_ones = children > self.threshold
            return int(open_ones.sum()), float(children[open_ones].sum())

        return min(self._undecided(layer.order)[:_MOST_CANDIDATES], key=cost)

    def _undecided(self, order: tuple[int, ...]) -> list[int]:
        decided = set(order)
        return [n for n in self.free if n not in decided]

    def _offer(self, leaves: _Layer) -> None:
        """Leaves are combinations: their bound is their value."""
        if len(leaves.bounds) and leaves.bounds.max() > self.best:
            row = int(leaves.bounds.argmax())
            self.best = float(leaves.bounds[row])
            self.levels = np.array([kept[0] for kept in self.kept])
            for n, level in zip(leaves.order, leaves.decided[row], strict=True):
                self.levels[n] = self.kept[n][level]


def _pick(layer: _Layer, rows: IntArray) -> _Layer:
    return _Layer(layer.parts[rows], layer.decided[rows], layer.order, layer.bounds[rows])


def chord_bounds(parts: FloatArray, bounds: FloatArray, losses: Sequence[FloatArray]) -> FloatArray:
    """Return the second bound of the module docstring; `bounds` is the first."""
    length = np.sum([loss.max(axis=0) for loss in losses], axis=0)
    slope = np.where(length > 0.0, -np.expm1(-length) / np.where(length > 0.0, length, 1.0), 0.0)
    steep = np.ascontiguousarray((parts * slope).T)
    for loss in losses:
        bounds = bounds - (loss @ steep).min(axis=0)
    return bounds


def dominated(ratio: FloatArray) -> NDArray[np.bool_]:
    """Return levels that another one equals or exceeds in every class, but the first of equals."""
    out = np.zeros(len(ratio), dtype=bool)
    if len(ratio) ** 2 * ratio.shape[1] > 2**24:
        return out  # would cost more than it saves
    for i, row in enumerate(ratio):
        above = (ratio >= row).all(axis=1)
        above[i:] &= (ratio[i:] > row).any(axis=1)
        out[i] = above.any()
    return out


def starts(scale: FloatArray, ratios: Sequence[FloatArray]) -> IntArray:
    """Return combinations to climb from: single modes, and the peaks of the top classes."""
    most = max(1, min(64, 2**23 // (len(scale) * len(ratios))))
    top = np.argsort(-scale, kind="stable")[:most]
    peaks = np.stack([ratio[:, top].argmax(axis=0) for ratio in ratios], axis=1)
    each = np.array([(ratio @ scale).argmax() for ratio in ratios])
    return np.vstack([each[None, :], peaks])


def climb(
    scale: FloatArray, ratios: Sequence[FloatArray], levels: IntArray
) -> tuple[IntArray, float]:
    """Change one variable at a time to its best level, from many starts; return the best end."""
    levels, rows = levels.copy(), np.arange(len(levels))
    improved = True
    while improved:
        improved = False
        after = [np.ones((len(levels), len(scale)))]
        for ratio, column in zip(ratios[:0:-1], levels.T[:0:-1], strict=True):
            after.append(after[-1] * ratio[column])
        before = np.repeat(scale[None, :], len(levels), axis=0)
        for n, ratio in enumerate(ratios):
            values = (before * after.pop()) @ ratio.T
            new, old = values.argmax(axis=1), levels[:, n]
            better = values[rows, new] > values[rows, old] * (1.0 + TIE)
            improved |= bool(better.any())
            levels[:, n] = np.where(better, new, old)
            before = before * ratio[levels[:, n]]
    values = before.sum(axis=1)
    best = int(values.argmax())
    return levels[best], float(values[best])
