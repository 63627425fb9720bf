"""A joint that nearly has given tables: how far all tables must give way, at most."""

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray
from rejoint.queries.table_limits import TableLimits, dependence, spread_of_moment

if TYPE_CHECKING:
    from rejoint.marginals.moments import Moment

_DRAWN = 20_000  # cells, fewer where there are many tables
_WORK = 40_000_000  # cells times tables times sweeps: about half a second
_SWEEPS = 40  # of proportional fitting
_AIM = 0.8  # share of the slack that was reached, for the next sweep
_LEAST_SHARE = 1e-9  # of a cell, so that tables that contradict each other leave a joint


def witness_slack(
    shape: Sequence[int], limits: Sequence[TableLimits], moments: Sequence["Moment"]
) -> float:
    """Return a slack with which a joint exists.

    It is that of one joint: cells are drawn along the strongest dependences, each cell of a table
    is added with other levels drawn, and proportional fitting weights them. Each sweep brings all
    cells within some share of the slack that was reached before.
    """
    rng = np.random.default_rng(0)
    number = min(_DRAWN, _WORK // (_SWEEPS * max(len(limits), 1)) + 1)
    drawn = _draw_cells(shape, limits, number, rng)
    parts = [drawn]
    for table in limits:
        part = drawn[rng.integers(number, size=table.low.size)]
        part[:, table.subset] = np.indices(table.low.shape).reshape(len(table.subset), -1).T
        parts.append(part)
    cells = np.vstack(parts)
    margins = [_Margin.of(table, cells) for table in limits]
    values = [
        np.prod([v[cells[:, n]] for n, v in zip(m.variables, m.vectors, strict=True)], axis=0)
        for m in moments
    ]
    weights = np.full(len(cells), 1.0 / len(cells))
    slack = np.inf
    for _ in range(_SWEEPS):
        reached = max((margin.slack(weights) for margin in margins), default=0.0)
        for moment, value in zip(moments, values, strict=True):
            gap = abs(float(weights @ value) - moment.value)
            reached = max(reached, gap / spread_of_moment(moment))
        slack = min(slack, reached)
        for margin in margins:
            weights = margin.move(weights, _AIM * slack)
    return slack


class _Margin(NamedTuple):
    """A table, by the cells of a joint that are in each of its cells."""

    table: TableLimits
    place: NDArray[np.intp]
    low: FloatArray
    high: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, table: TableLimits, cells: NDArray[np.intp]) -> "_Margin":
        place = np.ravel_multi_index(tuple(cells[:, table.subset].T), table.low.shape)
        scale = 1.0 / float(table.middle.sum()) if table.is_scaled else 1.0
        low, high = scale * table.low.ravel(), scale * table.high.ravel()
        return cls(table, place, low, high, table.spread.ravel())

    def slack(self, weights: FloatArray) -> float:
        """Return by how many spreads the joint leaves the limits."""
        sums = np.bincount(self.place, weights, self.low.size)
        slack = float((np.maximum(self.low - sums, sums - self.high) / self.spread).max())
        scale = float(self.low.sum() / self.table.low.sum()) if self.table.sums else 1.0
        for places, value in self.table.sums:
            gap = abs(float(sums[places].sum()) - scale * value)
            slack = max(slack, gap / float(self.spread[places].sum()))
        return max(slack, 0.0)

    def move(self, weights: FloatArray, slack: float) -> FloatArray:
        """Return the weights with which all cells are within their limits and a slack."""
        sums = np.bincount(self.place, weights, self.low.size)
        loose = slack * self.spread
        goal = np.clip(sums, np.maximum(self.low - loose, _LEAST_SHARE), self.high + loose)
        moved = weights * (goal / np.maximum(sums, 1e-300))[self.place]
        shares: FloatArray = moved / moved.sum()
        return shares


def _draw_cells(
    shape: Sequence[int], limits: Sequence[TableLimits], number: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw cells: each variable given the one drawn before on which it depends most."""
    cells = np.column_stack([rng.integers(size, size=number) for size in shape])
    pairs = {
        pair: (dependence(table, *pair), table)
        for table in limits
        for pair in combinations(table.subset, 2)
    }
    singles = {n: table.margin([n]).middle for table in limits for n in table.subset}
    outside = set(singles)
    while outside:
        links = [
            (score, n, q, table)
            for pair, (score, table) in pairs.items()
            for n, q in (pair, pair[::-1])
            if n in outside and q not in outside
        ]
        if links:
            _, n, q, table = max(links, key=lambda link: link[0])
            pair = table.margin([n, q]).middle
            rows = (pair if q < n else pair.T)[cells[:, q]]
        else:
            n = min(outside)
            rows = singles[n][None]
        limit = np.cumsum(rows + _LEAST_SHARE, axis=1)
        limit /= limit[:, -1:]
        cells[:, n] = (rng.random((number, 1)) > limit).sum(axis=1)
        outside.remove(n)
    return cells
