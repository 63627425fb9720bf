"""The last records in place: pairs of them exchange the value of one variable.

What is left after swapping rows is mostly a cell too many beside a cell too few, ``+1 -1 -1 +1``,
which no single row mends. When two records exchange the value of one variable, the table of that
variable stays as it is, and only tables that hold it with others change.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["exchange_values"]

Counts = NDArray[np.int64]
Codes = NDArray[np.int64]
Allowed = Callable[[Codes], NDArray[np.bool_]]

#: Pairs that are looked at in each round.
PAIRS = 256

#: Changes of the objective that are still often accepted at the start of the search.
WARM = 1.5


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
        change = _changes(codes, excess, mask, cells, n, one, other)
        heat = WARM * (1.0 - turn / rounds)
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


def _changes(
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
