"""Annealing: counts of rows that meet tables, by swaps of rows.

The score of a row is the sum, over tables, of the excess of its cell: its count minus the target.
When row ``o`` makes room for row ``i``, half the squared distance of the tables changes by exactly
``score(i) - score(o) + tables - tables in which both have the same cell``. Cells without a target
(``known`` is zero there) are left out. First many swaps are made at once, the most promising ones,
and fewer when that was too bold; then one by one, sometimes uphill, since no single swap puts the
last few records into place.
"""

import numpy as np
from numpy.typing import NDArray

from rejoint.population.targets import Counts, TableTargets

Positions = NDArray[np.intp]

#: Rows to take out that are considered for a single swap.
ROWS_OUT = 24

#: Rows to put in that are considered for a single swap.
ROWS_IN = 96

#: Single swaps after which the promising rows are chosen again.
KEEP_SWAPS = 20

#: Initial temperature: a change of the objective that is often accepted.
WARM = 1.0


def swap_rows(
    counts: Counts, cells: Counts, targets: TableTargets, rng: np.random.Generator, rounds: int
) -> Counts:
    """Improve the counts of rows (rows,) by at most ``rounds`` single swaps; their sum stays.

    ``cells`` (tables, rows) is the cell of each row in each table, these laid one after another.
    """
    swaps = _RowSwaps(counts.copy(), cells, targets, rng)
    swaps.swap_many()
    best, lowest = swaps.counts.copy(), int(swaps.excess @ swaps.excess)
    for turn in range(rounds):
        if lowest == 0:
            break
        if swaps.step(WARM * (1.0 - turn / rounds), turn):
            distance = int(swaps.excess @ swaps.excess)
            if distance < lowest:
                best, lowest = swaps.counts.copy(), distance
    return best


class _RowSwaps:
    """Counts of rows, of which one makes room for another."""

    def __init__(
        self, counts: Counts, cells: Counts, targets: TableTargets, rng: np.random.Generator
    ) -> None:
        self.counts, self.cells, self.known, self.rng = counts, cells, targets.known, rng
        self.excess = targets.excess(*self._cells_of(counts))
        self.likely_out = self.likely_in = np.empty(0, dtype=np.intp)

    def _cells_of(self, counts: Counts) -> tuple[Counts, Counts]:
        """Cells of the rows that are there, and how often."""
        there = np.flatnonzero(counts)
        return self.cells[:, there].ravel(), np.tile(counts[there], len(self.cells))

    def swap_many(self) -> None:
        """Swap many rows at once while that helps."""
        no_target = TableTargets(np.zeros_like(self.excess), self.known)
        number = max(1, int(np.abs(self.excess).sum()) // (4 * len(self.cells)))
        while number and self.excess.any():
            score = self.excess[self.cells].sum(axis=0) + 0.5 * self.rng.random(len(self.counts))
            held = np.flatnonzero(self.counts)
            change = np.zeros_like(self.counts)
            change[held[_smallest(-score[held], number)]] -= 1
            change[_smallest(score, -int(change.sum()))] += 1
            after = self.excess + no_target.excess(*self._cells_of(change))
            if after @ after < self.excess @ self.excess:
                self.counts, self.excess = self.counts + change, after
            else:
                number //= 2

    def step(self, temperature: float, turn: int) -> bool:
        """Swap the best pair of some promising rows, noise added to the change."""
        rng = self.rng
        if turn % KEEP_SWAPS == 0:
            self._choose_likely()
        out = rng.choice(self.likely_out, min(ROWS_OUT, len(self.likely_out)), replace=False)
        out = out[self.counts[out] > 0]
        into = rng.choice(self.likely_in, min(ROWS_IN, len(self.likely_in)), replace=False)
        if not len(out):
            return False
        change = self._changes(out, into)
        change = change + temperature * rng.gumbel(size=change.shape) * 0.5
        o, i = np.unravel_index(int(change.argmin()), change.shape)
        if change[o, i] > temperature or out[o] == into[i]:
            return False
        for row, sign in ((out[o], -1), (into[i], 1)):
            self.counts[row] += sign
            # A row has one cell in each table: no cell comes twice.
            self.excess[self.cells[:, row]] += sign * self.known[self.cells[:, row]]
        return True

    def _choose_likely(self) -> None:
        """Choose the rows that are the most promising to take out and to put in."""
        score = self.excess[self.cells].sum(axis=0)
        held = np.flatnonzero(self.counts)
        noise = self.rng.random(len(held))
        self.likely_out = held[_smallest(-score[held] - noise, 8 * ROWS_OUT)]
        self.likely_in = _smallest(score - self.rng.random(len(score)), 8 * ROWS_IN)

    def _changes(self, out: Positions, into: Positions) -> NDArray[np.float64]:
        """Change of half the squared distance for each pair of a row out and a row in."""
        excess, known = self.excess, self.known
        goes, comes = self.cells[:, out], self.cells[:, into]
        stays = (goes[:, :, None] == comes[:, None, :]) & (known[goes] > 0)[:, :, None]
        less = (excess[goes] - 0.5 * known[goes]).sum(axis=0)
        more = (excess[comes] + 0.5 * known[comes]).sum(axis=0)
        change: NDArray[np.float64] = more - less[:, None] - stays.sum(axis=0)
        return change


def _smallest(score: NDArray[np.float64], number: int) -> Positions:
    """Positions of the smallest scores."""
    number = min(number, len(score))
    return np.argpartition(score, number - 1)[:number]
