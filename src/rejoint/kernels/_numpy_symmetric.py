"""Elementary symmetric polynomials of records in plain NumPy: twins of symmetric.cpp."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.kernels._checks import Array

BLOCK = 1 << 20  # entries of the largest array that is made at once


def build(
    starts: NDArray[Any],
    cells: NDArray[Any],
    weight: Array,
    table: Array,
    order: int,
    state: Array | None,
) -> Array:
    """Fill ``state`` with ``e_1 .. e_{order-1}`` of each record; return the sum of ``e_order``.

    Examples
    --------
    >>> table = np.array([[2.0], [3.0]])
    >>> build(np.array([0, 2]), np.array([0, 1]), np.ones(1), table, 2, None)
    array([6.])
    """
    width, total = table.shape[1], np.zeros(table.shape[1])
    step = max(1, BLOCK // (order * width))
    for row in range(0, len(weight), step):
        rows = np.arange(row, min(row + step, len(weight)))
        counts = starts[rows + 1] - starts[rows]
        e = np.zeros((len(rows), order, width))
        for k in range(int(counts.max(initial=0))):
            more = np.flatnonzero(counts > k)
            a = table[cells[starts[rows[more]] + k]]
            for j in range(order - 1, 0, -1):
                e[more, j] += a * e[more, j - 1]
            e[more, 0] += a
        total += weight[rows] @ e[:, -1]
        if state is not None:
            state[rows] = e[:, :-1]
    return total


def exclude(e: Array, rows: Array) -> Array:
    """The polynomials without one row each: ``left_j = e_j - a left_{j-1}``.

    Examples
    --------
    >>> exclude(np.array([[[5.0], [6.0]]]), np.array([[2.0]]))[0].T
    array([[3., 0.]])
    """
    left = np.array(e)
    below: Array | float = 1.0
    for j in range(e.shape[1]):
        left[:, j] -= rows * below
        below = left[:, j]
    return left


def without(
    records: NDArray[Any],
    levels: NDArray[Any],
    weight: Array,
    rows: Array,
    order: int,
    state: Array,
) -> Array:
    """See :meth:`rejoint.kernels.symmetric.Polynomials.without`.

    Examples
    --------
    >>> one = np.zeros(1, dtype=np.int32)
    >>> without(one, one, np.ones(1), np.array([[2.0]]), 2, np.array([[[5.0]]]))
    array([[3.]])
    """
    from scipy.sparse import csr_array  # 0.1 s to import

    out = np.zeros(rows.shape)
    step = max(1, BLOCK // (order * rows.shape[1]))
    for k in range(0, len(records), step):
        where, level = records[k : k + step], levels[k : k + step]
        left = np.ones((len(where), rows.shape[1]))
        if order > 1:
            left = exclude(state[where], rows[level])[:, -1]
        index = (level, np.arange(len(where)))
        out += csr_array((weight[where], index), shape=(len(rows), len(where))) @ left
    return out


def replace(
    records: NDArray[Any],
    levels: NDArray[Any],
    old: Array,
    rows: Array,
    order: int,
    state: Array,
) -> None:
    """See :meth:`rejoint.kernels.symmetric.Polynomials.replace`.

    Examples
    --------
    >>> one, state = np.zeros(1, dtype=np.int32), np.array([[[5.0], [6.0]]])
    >>> replace(one, one, np.array([[2.0]]), np.array([[4.0]]), 3, state)
    >>> state[0].T
    array([[ 7., 12.]])
    """
    step = max(1, BLOCK // (order * rows.shape[1]))
    for k in range(0, len(records), step):
        where, level = records[k : k + step], levels[k : k + step]
        e, moved = state[where], rows[level] - old[level]
        left = exclude(e, old[level])
        for j in range(order - 2, 0, -1):
            e[:, j] += moved * left[:, j - 1]
        e[:, 0] += moved
        state[where] = e
