"""The kernels in plain NumPy: run without a compiler, and what the compiled ones must equal."""

from collections.abc import Sequence
from itertools import chain
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def table_sizes(levels: Sequence[int], subsets: Sequence[tuple[int, ...]]) -> NDArray[np.int64]:
    """Return the number of cells of each table.

    Examples
    --------
    >>> table_sizes([2, 3, 4], [(0,), (1, 2)])
    array([ 2, 12])
    """
    if not len(subsets):
        return np.ones(0, dtype=np.int64)
    lengths = np.fromiter(map(len, subsets), dtype=np.int64, count=len(subsets))
    members = np.fromiter(chain.from_iterable(subsets), np.int64, int(lengths.sum()))
    factors = np.asarray(levels, dtype=np.int64)[members]
    return np.multiply.reduceat(factors, np.cumsum(lengths) - lengths)


def count(
    codes: NDArray[Any],
    weight: Array | None,
    levels: Sequence[int],
    subsets: Sequence[tuple[int, ...]],
) -> Array:
    """Count tables by ``numpy.bincount``; see :func:`rejoint.kernels.count`.

    Subsets that share all but their last variable share the rows where those are observed,
    and the cell each of these rows falls into. What is missing of the last one counts as a
    level of its own, dropped in the end: cheaper than picking rows again.

    Examples
    --------
    >>> codes = np.array([[0, 1], [1, 1], [0, -1]], dtype=np.int16)
    >>> count(codes, None, [2, 2], [(0,), (0, 1)])
    array([2., 1., 0., 1., 0., 1.])
    """
    starts = np.concatenate([[0], np.cumsum(table_sizes(levels, subsets))])
    out = np.zeros(int(starts[-1]))
    columns = [np.ascontiguousarray(codes[:, n]) for n in range(codes.shape[1])]
    groups: dict[tuple[int, ...], list[int]] = {}
    for i, subset in enumerate(subsets):
        groups.setdefault(subset[:-1], []).append(i)
    for prefix, tables in groups.items():
        rows, cells = _observed(columns, levels, prefix)
        mass = None if weight is None else weight[rows]
        n_cells = prod(levels[n] for n in prefix)
        for i in tables:
            last = subsets[i][-1]
            size = levels[last] + 1
            index = cells * size
            index += columns[last][rows]
            index += 1
            table = np.bincount(index, mass, minlength=n_cells * size)
            out[starts[i] : starts[i + 1]] = table.reshape(n_cells, size)[:, 1:].ravel()
    return out


def _observed(
    columns: Sequence[NDArray[Any]], levels: Sequence[int], prefix: tuple[int, ...]
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Rows where all variables of ``prefix`` are observed, and the cell of each."""
    seen = np.ones(len(columns[0]), dtype=bool)
    for n in prefix:
        seen &= columns[n] >= 0
    rows = np.flatnonzero(seen)
    cells = np.zeros(len(rows), dtype=np.int64)
    for n in prefix:
        cells = cells * levels[n] + columns[n][rows]
    return rows, cells


def project_columns(matrix: Array) -> Array:
    """Project onto the simplex by sorting; see :func:`rejoint.kernels.project_columns`.

    With ``u`` sorted downwards the threshold is ``(u_1 + .. + u_k - 1) / k`` for the largest
    ``k`` at which it still lies below ``u_k``.

    Examples
    --------
    >>> project_columns(np.array([[0.9, 2.0], [0.3, -1.0]])).round(2)
    array([[0.8, 1. ],
           [0.2, 0. ]])
    """
    ordered = np.sort(matrix, axis=0)[::-1]
    excess = np.cumsum(ordered, axis=0) - 1.0
    sizes = np.arange(1.0, len(matrix) + 1.0)[:, None]
    # At least one, also where a column is so large that 1 is lost in its rounding.
    last = np.maximum((ordered * sizes > excess).sum(axis=0), 1)
    threshold = excess[last - 1, np.arange(matrix.shape[1])] / last
    projected: Array = np.maximum(matrix - threshold, 0.0)
    return projected


def admm_steps(
    inverse: Array,
    target: Array,
    factor: Array,
    dual: Array,
    rho: float,
    steps: int,
    along_rows: bool,
) -> tuple[Array, Array]:
    """Alternate between least squares and simplex; see :func:`rejoint.kernels.admm_steps`.

    Examples
    --------
    >>> one = np.ones((1, 1))
    >>> admm_steps(one / 2, one * 5, one, one * 0, 1.0, 1, False)[0]
    array([[1.]])
    """
    for _ in range(steps):
        free = (target + rho * (factor + dual)) @ inverse
        moved = free - dual
        factor = project_columns(moved.T).T if along_rows else project_columns(moved)
        dual = dual + factor - free
    return factor, dual


def damped_inverse(gram: Array) -> tuple[Array, float]:
    """``(G + rho I)^-1`` of a positive semidefinite matrix, and ``rho``.

    That is the geometric mean of the extreme eigenvalues, of which the smallest counts as 1e-10 of
    the largest at least. The twin of damping.hpp, which compiled sweeps use.

    Examples
    --------
    >>> damped_inverse(np.diag([1.0, 4.0]))
    (array([[0.33333333, 0.        ],
           [0.        , 0.16666667]]), 2.0)
    """
    values, vectors = np.linalg.eigh(gram)
    top = max(float(values[-1]), np.finfo(float).tiny)
    rho = float(np.sqrt(max(float(values[0]), 1e-10 * top) * top))
    return (vectors / (np.maximum(values, 0.0) + rho)) @ vectors.T, rho
