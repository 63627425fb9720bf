"""Passes over observed cells only, in plain NumPy and SciPy: twins of those in classes.cpp."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rejoint.kernels._checks import Array
from rejoint.kernels.cells import Cells

BLOCK = 1 << 18  # entries of the largest array that a pass makes


def one_hot(codes: Cells, rows: slice) -> Any:
    """Records as a sparse matrix of ones, (records, levels).

    Examples
    --------
    >>> one_hot(Cells(np.array([0, 1, 2]), np.array([1, 0]), (2,)), slice(0, 2)).toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    from scipy.sparse import csr_array  # 0.1 s to import, and needed here alone

    first, last = int(codes.starts[rows.start]), int(codes.starts[rows.stop])
    shape = (rows.stop - rows.start, sum(codes.levels))
    starts = codes.starts[rows.start : rows.stop + 1] - first
    return csr_array((np.ones(last - first), codes.cells[first:last], starts), shape=shape)


def blocks(
    codes: Cells, weights: Array, factors: Array
) -> Iterator[tuple[slice, Any, Array, Array]]:
    """Go through records by the block: rows, their matrix, log-probabilities and posteriors.

    Examples
    --------
    >>> cells = Cells(np.array([0, 1, 1]), np.array([0]), (2,))
    >>> A = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> [block] = blocks(cells, np.array([0.5, 0.5]), A)
    >>> np.exp(block[2]), block[3].round(3)
    (array([0.55, 1.  ]), array([[0.818, 0.182], [0.5  , 0.5  ]]))
    """
    with np.errstate(divide="ignore"):
        logs, start = np.log(factors), np.log(weights)
    step = max(1, BLOCK // len(weights))
    for row in range(0, len(codes), step):
        rows = slice(row, min(row + step, len(codes)))
        matrix = one_hot(codes, rows)
        joint = matrix @ logs + start
        top = joint.max(axis=1)
        possible = top > -np.inf
        joint = np.exp(joint - np.where(possible, top, 0.0)[:, None])
        sums = joint.sum(axis=1)
        joint /= np.where(possible, sums, 1.0)[:, None]
        yield rows, matrix, top + np.log(np.where(possible, sums, 1.0)), joint


def sum_records(
    codes: Cells,
    weight: Array | None,
    weights: Array,
    factors: Array,
    assign: Callable[[Array, Array, int], Array],
) -> tuple[float, Array, Array]:
    """Count records by class and level, as the function of that name for tables of codes.

    Examples
    --------
    >>> cells = Cells(np.array([0, 1, 1]), np.array([0]), (2,))
    >>> A = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> rounded = lambda posterior, mass, first: posterior.round()
    >>> sum_records(cells, None, np.array([0.6, 0.4]), A, rounded)[2]
    array([[1., 0.],
           [0., 0.]])
    """
    total, class_counts, level_counts = 0.0, np.zeros(len(weights)), np.zeros(factors.shape)
    for rows, matrix, log_prob, posterior in blocks(codes, weights, factors):
        mass = np.ones(len(log_prob)) if weight is None else weight[rows]
        total += float(np.dot(mass[mass > 0], log_prob[mass > 0]))
        assigned = assign(posterior, mass, rows.start)
        class_counts += assigned.sum(axis=0)
        level_counts += matrix.T @ assigned
    return total, class_counts, level_counts
