"""Annealing: records that meet tables, by swaps of rows and exchanges of values.

The score of a row is the sum, over tables, of the excess of its cell: its count minus the target.
When row ``o`` makes room for row ``i``, half the squared distance of the tables changes by exactly
``score(i) - score(o) + tables - tables in which both have the same cell``. Cells without a target
(``known`` is zero there) are left out. First many swaps are made at once, the most promising ones,
and fewer when that was too bold; then one by one, sometimes uphill, since no single swap puts the
last few records into place.

After these swaps the error is mostly a cell too many beside a cell too few, ``+1 -1 -1 +1``, which
no single row corrects. When two records exchange the value of one variable, the table of that
variable stays as it is, and only tables that hold it with others change.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rejoint.marginals.subsets import Subset
from rejoint.population.targets import Counts, TableCells, TableTargets

Positions = NDArray[np.intp]
IsAllowed = Callable[[Counts], NDArray[np.bool_]]

#: Rows to take out that are considered for a single swap.
ROWS_OUT = 24

#: Rows to put in that are considered for a single swap.
ROWS_IN = 96

#: Single swaps after which the promising rows are chosen again.
KEEP_SWAPS = 20

#: Initial temperature of swaps: a change of the objective that is often accepted.
WARM_ROWS = 1.0

#: Pairs of records that are considered for an exchange.
PAIRS = 256

#: Initial temperature of exchanges.
WARM_VALUES = 1.5


class _AnnealState(Protocol):
    """A state that moves: ``step`` tries a move at a temperature and says whether it was made."""

    excess: Counts

    def step(self, heat: float, turn: int) -> bool: ...

    def solution(self) -> Counts: ...


def _anneal(state: _AnnealState, warm: float, rounds: int) -> Counts:
    """Cool down from ``warm`` to zero, and return the best solution on the way."""
    best, lowest = state.solution(), int(state.excess @ state.excess)
    for turn in range(rounds):
        if lowest == 0:
            break
        if state.step(warm * (1.0 - turn / rounds), turn):
            distance = int(state.excess @ state.excess)
            if distance < lowest:
                best, lowest = state.solution(), distance
    return best


def swap_rows(
    counts: Counts, cells: Counts, targets: TableTargets, rng: np.random.Generator, rounds: int
) -> Counts:
    """Improve the counts of rows; their sum stays.

    Parameters
    ----------
    counts : array (rows,)
        Count of each row of the pool.
    cells : array (tables, rows)
        Cell of each row in each table, these laid one after another.
    targets : TableTargets
        The wanted tables.
    rng : Generator
        Source of randomness.
    rounds : int
        Largest number of single swaps that are tried.

    Examples
    --------
    >>> cells = np.array([[0, 1, 0, 1], [2, 2, 3, 3]])
    >>> targets = TableTargets(np.array([2, 2, 2, 2]), np.ones(4, dtype=int))
    >>> found = swap_rows(np.array([4, 0, 0, 0]), cells, targets, np.random.default_rng(0), 50)
    >>> int(found.sum()), int(found[0] + found[2]), int(found[0] + found[1])
    (4, 2, 2)
    """
    swaps = _RowSwaps(counts.copy(), cells, targets, rng)
    swaps.swap_many()
    return _anneal(swaps, WARM_ROWS, rounds)


class _RowSwaps:
    """Counts of rows, of which one makes room for another."""

    def __init__(
        self, counts: Counts, cells: Counts, targets: TableTargets, rng: np.random.Generator
    ) -> None:
        self.counts, self.cells, self.known, self.rng = counts, cells, targets.known, rng
        self.excess = targets.excess(*self._cells_of(counts))
        self.likely_out = self.likely_in = np.empty(0, dtype=np.intp)

    def solution(self) -> Counts:
        return self.counts.copy()

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

    def step(self, heat: float, turn: int) -> bool:
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
        change = change + heat * rng.gumbel(size=change.shape) * 0.5
        o, i = np.unravel_index(int(change.argmin()), change.shape)
        if change[o, i] > heat or out[o] == into[i]:
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


def exchange_values(
    codes: Counts,
    shape: Sequence[int],
    subsets: Sequence[Subset],
    targets: TableTargets,
    is_allowed: IsAllowed,
    rng: np.random.Generator,
    rounds: int,
) -> Counts:
    """Exchange values between records until the tables are met or rounds are over.

    Parameters
    ----------
    codes : array (records, variables)
        The population.
    shape : sequence of int
        Levels of each variable.
    subsets : sequence of tuples of int
        Variables of each table.
    targets : TableTargets
        The wanted tables.
    is_allowed : callable
        Returns a mask of the rows that may occur.
    rng : Generator
        Source of randomness.
    rounds : int
        Largest number of exchanges that are tried.

    Examples
    --------
    >>> start = np.array([[0, 0], [0, 0], [1, 1], [1, 1]])
    >>> targets = TableTargets(np.ones(4, dtype=int), np.ones(4, dtype=int))
    >>> is_allowed = lambda rows: np.ones(len(rows), dtype=bool)
    >>> rng = np.random.default_rng(0)
    >>> found = exchange_values(start, (2, 2), [(0, 1)], targets, is_allowed, rng, 100)
    >>> sorted(found.tolist())
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    cells = TableCells(shape, subsets)
    return _anneal(_ValueExchanges(codes, cells, targets, is_allowed, rng), WARM_VALUES, rounds)


class _ValueExchanges:
    """Records, of which pairs exchange the value of one variable."""

    def __init__(
        self,
        codes: Counts,
        cells: TableCells,
        targets: TableTargets,
        is_allowed: IsAllowed,
        rng: np.random.Generator,
    ) -> None:
        self.codes, self.cells, self.known = codes.astype(np.int64), cells, targets.known
        self.is_allowed, self.rng = is_allowed, rng
        every = np.arange(len(cells.subsets))
        self.excess = targets.excess(cells.find_laid_out(self.codes, every).ravel())

    def solution(self) -> Counts:
        return self.codes.copy()

    def step(self, heat: float, turn: int) -> bool:
        """Exchange the best of some pairs, chosen by the change with noise."""
        wrong = np.add.reduceat(np.abs(self.excess), self.cells.offsets[:-1])
        n, one, other = self._draw_pairs(int(self.rng.choice(np.flatnonzero(wrong))))
        if not len(one):
            return False
        change = self._changes(n, one, other)
        k = int((change + heat * self.rng.gumbel(size=len(change))).argmin())
        if change[k] > 3.0 * heat:
            return False
        pair = [int(one[k]), int(other[k])]
        before, after = self.codes[pair], self.codes[pair]
        after[:, n] = before[::-1, n]
        if not self.is_allowed(after).all():
            return False
        holders = self.cells.holders[n]
        for rows, sign in ((before, -1), (after, 1)):
            for at in self.cells.find_laid_out(rows, holders).T:
                self.excess[at] += sign * self.known[at]
        self.codes[pair] = after
        return True

    def _draw_pairs(self, table: int) -> tuple[int, Positions, Positions]:
        """A variable of a table, records in cells of it that have too many, and partners."""
        at = self.cells.find(self.codes, table) + self.cells.offsets[table]
        crowded = np.flatnonzero(self.excess[at] > 0)
        if not len(crowded):
            return 0, crowded, crowded
        n = int(self.rng.choice(np.flatnonzero(self.cells.strides[table])))
        one = self.rng.choice(crowded, PAIRS)
        other = self.rng.integers(len(self.codes), size=PAIRS)
        differ = self.codes[one, n] != self.codes[other, n]
        return n, one[differ], other[differ]

    def _changes(self, n: int, one: Positions, other: Positions) -> NDArray[np.float64]:
        """Change of half the squared distance if each pair exchanged the value of variable n."""
        codes, excess, known, tables = self.codes, self.excess, self.known, self.cells.holders[n]
        a = self.cells.find_laid_out(codes[one], tables)
        b = self.cells.find_laid_out(codes[other], tables)
        step = self.cells.strides[tables, n][:, None] * (codes[other, n] - codes[one, n])
        after_a, after_b = a + step, b - step
        gain = excess[after_a] + excess[after_b] - excess[a] - excess[b]
        gain = gain + 0.5 * (known[after_a] + known[after_b] + known[a] + known[b])
        gain[after_a == b] = 0.0  # they differ in nothing else there: the table stays
        change: NDArray[np.float64] = gain.sum(axis=0)
        return change
