"""The last records in place: pairs of them exchange the value of one variable.

What is left after swapping rows is mostly a cell too many beside a cell too few, ``+1 -1 -1 +1``,
which no single row mends. When two records exchange the value of one variable, the table of that
variable stays as it is, and only tables that hold it with others change.

The score of a row is the sum, over tables, of how much its cell has too many. When row ``o`` makes
room for row ``i``, half the squared distance of the tables changes by exactly ``score(i) -
score(o) + tables - tables in which both have the same cell``. Cells without a target (``live`` is
zero there) are left out of all this. First many swaps are made at once,
the most promising ones, and fewer when that was too bold; then one by one, at times uphill
(annealing), since the last few records are out of place in a way that no single swap mends.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

#: Rows that are looked at for a single swap, going out and coming in, and how long the choice of
#: promising ones is kept.
OUT, IN, KEEP = 24, 96, 20

#: Temperature of the annealing at its start: a change of the objective that is often accepted.
WARM_ROWS = 1.0


@dataclass
class State:
    """Numbers of rows, how much each cell of the tables has too many, and which have a target."""

    counts: Counts
    excess: Counts
    live: Counts

    def copy(self) -> "State":
        """The same, to be kept."""
        return State(self.counts.copy(), self.excess.copy(), self.live)

    @property
    def distance(self) -> int:
        """Squared distance of the tables from their targets."""
        return int(self.excess @ self.excess)


def swap_rows(
    counts: Counts,
    cells: Counts,
    targets: list[Counts],
    live: list[Counts],
    rng: np.random.Generator,
    rounds: int,
) -> Counts:
    """Improve the numbers of rows; their sum stays.

    Parameters
    ----------
    counts : array (rows,)
        How many of each row of the pool.
    cells : array (tables, rows)
        The cell of each row in each table.
    targets : list of arrays
        What each table should be, flat.
    live : list of arrays
        One where a cell has a target, else zero.
    rng : Generator
        Source of randomness.
    rounds : int
        Single swaps that are tried at the most.

    Examples
    --------
    >>> cells = np.array([[0, 1, 0, 1], [0, 0, 1, 1]])
    >>> targets = [np.array([2, 2]), np.array([2, 2])]
    >>> live, rng = [np.ones(2, dtype=int)] * 2, np.random.default_rng(0)
    >>> found = swap_rows(np.array([4, 0, 0, 0]), cells, targets, live, rng, 50)
    >>> int(found.sum()), int(found[0] + found[2]), int(found[0] + found[1])
    (4, 2, 2)
    """
    offsets = np.cumsum([0, *(len(target) for target in targets)])
    flat = (cells + offsets[:-1, None]).astype(np.int64)
    wanted = np.concatenate(targets)
    mask = np.concatenate(live)
    state = State(counts.copy(), (_tables(counts, flat, len(wanted)) - wanted) * mask, mask)
    state = _boldly(state, flat, rng)
    return _patiently(state, flat, rng, rounds).counts


def _tables(counts: Counts, flat: Counts, size: int) -> Counts:
    """All tables of so many of each row, one after another."""
    there = np.flatnonzero(counts)
    weight = np.tile(counts[there], len(flat))
    return np.bincount(flat[:, there].ravel(), weight, minlength=size).astype(np.int64)


def _boldly(state: State, flat: Counts, rng: np.random.Generator) -> State:
    """Swap many rows at once while that helps."""
    number = max(1, int(np.abs(state.excess).sum()) // (4 * len(flat)))
    while number and state.distance:
        score = state.excess[flat].sum(axis=0) + 0.5 * rng.random(flat.shape[1])
        held = np.flatnonzero(state.counts)
        change = np.zeros_like(state.counts)
        change[held[_least(-score[held], number)]] -= 1
        change[_least(score, -int(change.sum()))] += 1
        moved = _tables(change, flat, len(state.excess)) * state.live
        after = State(state.counts + change, state.excess + moved, state.live)
        if after.distance < state.distance:
            state = after
        else:
            number //= 2
    return state


def _least(score: NDArray[np.float64], number: int) -> NDArray[np.intp]:
    number = min(number, len(score))
    return np.argpartition(score, number - 1)[:number]


def _patiently(state: State, flat: Counts, rng: np.random.Generator, rounds: int) -> State:
    """Swap single rows, at times uphill; the best state on the way is kept."""
    best = state.copy()
    value = lowest = best.distance
    for turn in range(rounds):
        if lowest == 0:
            break
        if turn % KEEP == 0:
            score = state.excess[flat].sum(axis=0)
            held = np.flatnonzero(state.counts)
            likely_out = held[_least(-score[held] - rng.random(len(held)), 8 * OUT)]
            likely_in = _least(score - rng.random(len(score)), 8 * IN)
        out = rng.choice(likely_out, min(OUT, len(likely_out)), replace=False)
        out = out[state.counts[out] > 0]
        into = rng.choice(likely_in, min(IN, len(likely_in)), replace=False)
        if not len(out):
            continue
        change = _row_changes(state, flat, out, into)
        heat = WARM_ROWS * (1.0 - turn / rounds)
        change = change + heat * rng.gumbel(size=change.shape) * 0.5
        o, i = np.unravel_index(int(change.argmin()), change.shape)
        if change[o, i] > heat or out[o] == into[i]:
            continue
        _swap(state, flat, int(out[o]), int(into[i]))
        value = state.distance
        if value < lowest:
            lowest = value
            best = state.copy()
    return best


def _row_changes(
    state: State, flat: Counts, out: NDArray[np.intp], into: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Change of half the squared distance for each pair of a row out and a row in."""
    goes, comes = flat[:, out], flat[:, into]
    stays = (goes[:, :, None] == comes[:, None, :]) & (state.live[goes] > 0)[:, :, None]
    less = (state.excess[goes] - 0.5 * state.live[goes]).sum(axis=0)
    more = (state.excess[comes] + 0.5 * state.live[comes]).sum(axis=0)
    change: NDArray[np.float64] = more - less[:, None] - stays.sum(axis=0)
    return change


def _swap(state: State, flat: Counts, out: int, into: int) -> None:
    state.counts[out] -= 1
    state.counts[into] += 1
    # A row has one cell in each table: no place comes twice.
    state.excess[flat[:, out]] -= state.live[flat[:, out]]
    state.excess[flat[:, into]] += state.live[flat[:, into]]


Codes = NDArray[np.int64]
Allowed = Callable[[Codes], NDArray[np.bool_]]

#: Pairs that are looked at in each round.
PAIRS = 256

#: Changes of the objective that are still often accepted at the start of the search.
WARM_VALUES = 1.5


class Cells:
    """Where records fall in all tables, set one after another."""

    def __init__(self, shape: tuple[int, ...], subsets: tuple[tuple[int, ...], ...]) -> None:
        sizes = [int(np.prod([shape[n] for n in s])) for s in subsets]
        self.offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.stride = np.zeros((len(subsets), len(shape)), dtype=np.int64)
        for i, subset in enumerate(subsets):
            step = 1
            for n in reversed(subset):
                self.stride[i, n] = step
                step *= shape[n]
        self.holding = [np.flatnonzero(self.stride[:, n]) for n in range(len(shape))]

    def of(self, codes: Codes, tables: NDArray[np.intp]) -> Counts:
        """Cells of records in some tables, (tables, records)."""
        found: Counts = self.stride[tables] @ codes.T + self.offset[tables, None]
        return found


def exchange_values(
    codes: Codes,
    shape: tuple[int, ...],
    subsets: tuple[tuple[int, ...], ...],
    targets: list[Counts],
    live: list[Counts],
    allowed: Allowed,
    rng: np.random.Generator,
    rounds: int,
) -> Codes:
    """Exchange values between records until the tables are the targets or rounds are over.

    Parameters
    ----------
    codes : array (records, variables)
        The population.
    shape : tuple of int
        Levels of each variable.
    subsets : tuple of tuples of int
        Variables of each table.
    targets : list of arrays
        What each table should be, flat.
    live : list of arrays
        One where a cell has a target, else zero.
    allowed : callable
        Says of rows which of them may be.
    rng : Generator
        Source of randomness.
    rounds : int
        Exchanges that are tried at the most.

    Examples
    --------
    >>> start = np.array([[0, 0], [0, 0], [1, 1], [1, 1]])
    >>> target = [np.array([1, 1, 1, 1])]
    >>> anything = lambda rows: np.ones(len(rows), dtype=bool)
    >>> rng = np.random.default_rng(0)
    >>> live = [np.ones(4, dtype=int)]
    >>> found = exchange_values(start, (2, 2), ((0, 1),), target, live, anything, rng, 100)
    >>> sorted(found.tolist())
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    cells, codes = Cells(shape, subsets), codes.astype(np.int64)
    every = np.arange(len(subsets), dtype=np.intp)
    wanted = np.concatenate(targets)
    mask = np.concatenate(live)
    excess = np.bincount(cells.of(codes, every).ravel(), minlength=len(wanted)) - wanted
    excess *= mask
    best, lowest = codes.copy(), int(excess @ excess)
    for turn in range(rounds):
        if lowest == 0:
            break
        wrong = np.add.reduceat(np.abs(excess), cells.offset[:-1])
        table = int(rng.choice(np.flatnonzero(wrong)))
        pair = _pairs(codes, excess, cells, table, rng)
        if pair is None:
            continue
        n, one, other = pair
        change = _value_changes(codes, excess, mask, cells, n, one, other)
        heat = WARM_VALUES * (1.0 - turn / rounds)
        k = int((change + heat * rng.gumbel(size=len(change))).argmin())
        if change[k] > 3.0 * heat:
            continue
        a, b = int(one[k]), int(other[k])
        rows = codes[[a, b]]
        rows[:, n] = rows[::-1, n]
        if not allowed(rows).all():
            continue
        for row, sign in ((codes[a], -1), (codes[b], -1), (rows[0], 1), (rows[1], 1)):
            at = cells.of(row[None], cells.holding[n])[:, 0]
            excess[at] += sign * mask[at]
        codes[a], codes[b] = rows
        value = int(excess @ excess)
        if value < lowest:
            best, lowest = codes.copy(), value
    return best


def _pairs(
    codes: Codes, excess: Counts, cells: Cells, table: int, rng: np.random.Generator
) -> tuple[int, NDArray[np.intp], NDArray[np.intp]] | None:
    """A variable of a table, records in cells of it that have too many, and partners."""
    at = cells.of(codes, np.array([table], dtype=np.intp))[0]
    crowded = np.flatnonzero(excess[at] > 0)
    if not len(crowded):
        return None
    n = int(rng.choice(np.flatnonzero(cells.stride[table])))
    one = rng.choice(crowded, PAIRS)
    other = rng.integers(len(codes), size=PAIRS)
    differ = codes[one, n] != codes[other, n]
    return (n, one[differ], other[differ]) if differ.any() else None


def _value_changes(
    codes: Codes,
    excess: Counts,
    mask: Counts,
    cells: Cells,
    n: int,
    one: NDArray[np.intp],
    other: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Change of half the squared distance if each pair exchanged the value of variable n."""
    tables = cells.holding[n]
    a, b = cells.of(codes[one], tables), cells.of(codes[other], tables)
    step = cells.stride[tables, n][:, None] * (codes[other, n] - codes[one, n])
    after_a, after_b = a + step, b - step
    gain = excess[after_a] + excess[after_b] - excess[a] - excess[b]
    gain = gain + 0.5 * (mask[after_a] + mask[after_b] + mask[a] + mask[b])
    gain[after_a == b] = 0.0  # they differ in nothing else there: the table stays
    change: NDArray[np.float64] = gain.sum(axis=0)
    return change
