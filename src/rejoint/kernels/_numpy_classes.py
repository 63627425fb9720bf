"""Passes over records with a hidden class, in plain NumPy: twins of classes.cpp.

Logarithms are summed, so nothing underflows.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.kernels import _numpy_cells
from rejoint.kernels._checks import Array
from rejoint.kernels._numpy_cells import BLOCK
from rejoint.kernels.cells import Cells

CELLS = 1 << 11  # of the tables that variables are gathered into


class Grouped:
    """Variables in groups, each with one table of summed logarithms for all its cells.

    A record costs one look-up per group in place of one per variable. Level 0 of each variable
    stands for missing.

    Examples
    --------
    >>> groups = Grouped(np.ones((5, 1)), [2, 3], 100)
    >>> groups.members, groups.index(np.array([[1, -1], [0, 2]]), 0)
    ([[0, 1]], array([8, 7]))
    """

    def __init__(self, factors: Array, levels: Sequence[int], rows: int):
        self.starts = np.concatenate([[0], np.cumsum(levels)])
        self.levels = [int(n) for n in levels]
        self.members: list[list[int]] = []
        self.tables: list[Array] = []
        with np.errstate(divide="ignore"):
            logs = np.log(factors)
        for n in range(len(levels)):
            table = logs[self.starts[n] : self.starts[n + 1]]
            self._add(n, np.vstack([np.zeros(factors.shape[1]), table]), min(CELLS, rows // 8))

    def _add(self, n: int, table: Array, cells: int) -> None:
        if self.tables and len(self.tables[-1]) * len(table) <= cells:
            joined = self.tables[-1][:, None, :] + table[None, :, :]
            self.tables[-1] = joined.reshape(-1, table.shape[1])
            self.members[-1].append(n)
        else:
            self.tables.append(table)
            self.members.append([n])

    def index(self, codes: NDArray[Any], group: int) -> NDArray[np.intp]:
        """Cell of each record in the table of a group."""
        index = np.zeros(len(codes), dtype=np.intp)
        for n in self.members[group]:
            index *= self.levels[n] + 1
            index += codes[:, n]
            index += 1
        return index

    def fold(self, sums: Sequence[Array], out: Array) -> None:
        """Sum tables of the groups down to the levels of each variable, which ``out`` stacks."""
        for members, table in zip(self.members, sums, strict=True):
            cube = table.reshape([*(self.levels[n] + 1 for n in members), table.shape[1]])
            for axis, n in enumerate(members):
                others = tuple(a for a in range(len(members)) if a != axis)
                out[self.starts[n] : self.starts[n + 1]] = cube.sum(axis=others)[1:]


def blocks(
    codes: NDArray[Any], weights: Array, groups: Grouped
) -> Iterator[tuple[slice, list[NDArray[np.intp]], Array, Array]]:
    """Go through records by the block: rows, their cells, log-probabilities and posteriors.

    The posterior of a record that no class allows is zero.

    Examples
    --------
    >>> groups = Grouped(np.array([[0.9, 0.2], [0.1, 0.8]]), [2], 1)
    >>> [block] = blocks(np.array([[0], [-1]]), np.array([0.5, 0.5]), groups)
    >>> np.exp(block[2]), block[3].round(3)
    (array([0.55, 1.  ]), array([[0.818, 0.182], [0.5  , 0.5  ]]))
    """
    rank = len(weights)
    size = max(1, BLOCK // rank)
    with np.errstate(divide="ignore"):
        start = np.log(weights)
    for row in range(0, len(codes), size):
        rows = slice(row, min(row + size, len(codes)))
        cells = [groups.index(codes[rows], g) for g in range(len(groups.members))]
        joint = np.tile(start, (rows.stop - row, 1))
        for table, index in zip(groups.tables, cells, strict=True):
            joint += table[index]
        top = joint.max(axis=1)
        possible = top > -np.inf
        joint -= np.where(possible, top, 0.0)[:, None]
        np.exp(joint, out=joint)
        sums = joint.sum(axis=1)
        joint /= np.where(possible, sums, 1.0)[:, None]
        yield rows, cells, top + np.log(np.where(possible, sums, 1.0)), joint


def any_blocks(
    codes: NDArray[Any] | Cells, weights: Array, factors: Array, levels: Sequence[int]
) -> Iterator[tuple[slice, Any, Array, Array]]:
    """The blocks of records in either form.

    Examples
    --------
    >>> codes = np.array([[0], [-1]], dtype=np.int16)
    >>> [len(block[2]) for block in any_blocks(codes, np.ones(1), np.ones((2, 1)), [2])]
    [2]
    """
    if isinstance(codes, Cells):
        return _numpy_cells.blocks(codes, weights, factors)
    return blocks(codes, weights, Grouped(factors, levels, len(codes)))


def sum_records(
    codes: NDArray[Any] | Cells,
    weight: Array | None,
    weights: Array,
    factors: Array,
    levels: Sequence[int],
    assign: Callable[[Array, Array, int], Array],
) -> tuple[float, Array, Array]:
    """Count records by class and level, each assigned to classes by its posterior.

    ``assign`` gets posteriors, weights of records and the number of the first one; it returns
    how much of each record is of each class.

    Examples
    --------
    >>> codes = np.array([[0], [-1]], dtype=np.int16)
    >>> A = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> rounded = lambda posterior, mass, first: posterior.round()
    >>> sum_records(codes, None, np.array([0.6, 0.4]), A, [2], rounded)[2]
    array([[1., 0.],
           [0., 0.]])
    """
    if isinstance(codes, Cells):
        return _numpy_cells.sum_records(codes, weight, weights, factors, assign)
    rank = len(weights)
    groups = Grouped(factors, levels, len(codes))
    total, class_counts, level_counts = 0.0, np.zeros(rank), np.zeros(factors.shape)
    sums = [np.zeros((rank, len(table))) for table in groups.tables]
    for rows, cells, log_prob, posterior in blocks(codes, weights, groups):
        mass = np.ones(len(log_prob)) if weight is None else weight[rows]
        total += float(np.dot(mass[mass > 0], log_prob[mass > 0]))
        columns = np.ascontiguousarray(assign(posterior, mass, rows.start).T)
        class_counts += columns.sum(axis=1)
        for table, index in zip(sums, cells, strict=True):
            for f in range(rank):
                table[f] += np.bincount(index, columns[f], minlength=table.shape[1])
    groups.fold([table.T for table in sums], level_counts)
    return total, class_counts, level_counts


def class_pass(
    codes: NDArray[Any] | Cells,
    weight: Array | None,
    weights: Array,
    factors: Array,
    levels: Sequence[int],
) -> tuple[float, Array, Array]:
    """Sum posteriors of the class over records; see :func:`rejoint.kernels.class_pass`.

    Examples
    --------
    >>> codes = np.array([[0], [-1]], dtype=np.int16)
    >>> A = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> class_pass(codes, None, np.array([0.5, 0.5]), A, [2])[1].round(3)
    array([1.318, 0.682])
    """

    def assign(posterior: Array, mass: Array, first: int) -> Array:
        posterior *= mass[:, None]
        return posterior

    return sum_records(codes, weight, weights, factors, levels, assign)


def class_posterior(
    codes: NDArray[Any] | Cells, weights: Array, factors: Array, levels: Sequence[int]
) -> tuple[Array, Array]:
    """Give each record's posterior; see :func:`rejoint.kernels.class_posterior`.

    Examples
    --------
    >>> codes = np.array([[0], [-1]], dtype=np.int16)
    >>> A = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> class_posterior(codes, np.array([0.5, 0.5]), A, [2])[1].round(3)
    array([[0.818, 0.182],
           [0.5  , 0.5  ]])
    """
    log_prob, posterior = np.empty(len(codes)), np.empty((len(codes), len(weights)))
    for rows, _, logs, block in any_blocks(codes, weights, factors, levels):
        log_prob[rows], posterior[rows] = logs, block
    return log_prob, posterior


def class_log_prob(
    codes: NDArray[Any] | Cells, weights: Array, factors: Array, levels: Sequence[int]
) -> Array:
    """Give each record's log-probability; see :func:`rejoint.kernels.class_log_prob`.

    Examples
    --------
    >>> codes = np.array([[0], [-1]], dtype=np.int16)
    >>> A = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> np.exp(class_log_prob(codes, np.array([0.5, 0.5]), A, [2])).round(3)
    array([0.55, 1.  ])
    """
    found = any_blocks(codes, weights, factors, levels)
    parts = [log_prob for _, _, log_prob, _ in found]
    return np.concatenate([np.empty(0), *parts])
