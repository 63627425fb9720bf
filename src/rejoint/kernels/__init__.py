"""Compiled kernels, and the NumPy twin of each, chosen when this package is imported.

The compiled module is used where it was built; ``REJOINT_KERNELS=numpy`` in the environment
forces the twins. ``backend`` says which of the two runs. Both give the same numbers: tests
hold one against the other.
"""

import os
from collections.abc import Sequence
from itertools import chain

import numpy as np

from rejoint.kernels import _numpy, _numpy_cell_counts
from rejoint.kernels._checks import Array, Codes, check_codes, check_subsets, check_weight
from rejoint.kernels._choice import backend, compiled
from rejoint.kernels._numpy import damped_inverse
from rejoint.kernels.cells import Cells
from rejoint.kernels.classes import class_draws, class_log_prob, class_pass, class_posterior
from rejoint.kernels.departures import Departures
from rejoint.kernels.sampling import draw_levels
from rejoint.kernels.symmetric import Polynomials, Transposed, symmetric_total
from rejoint.kernels.triples import pack_triples, triples_sweep, triples_value

__all__ = [
    "Cells",
    "Departures",
    "Polynomials",
    "Transposed",
    "admm_steps",
    "available_threads",
    "backend",
    "class_draws",
    "class_log_prob",
    "class_pass",
    "class_posterior",
    "count",
    "damped_inverse",
    "draw_levels",
    "pack_triples",
    "project_columns",
    "symmetric_total",
    "triples_sweep",
    "triples_value",
]


def available_threads() -> int:
    """Return the number of processors this process may use.

    Examples
    --------
    >>> available_threads() >= 1
    True
    """
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS or Windows
        return os.cpu_count() or 1


def count(
    codes: Codes | Cells,
    weight: Array | None,
    levels: Sequence[int],
    subsets: Sequence[tuple[int, ...]],
    threads: int = 1,
) -> Array:
    """Count the tables of many subsets of variables at once, available-case.

    Parameters
    ----------
    codes : (M, N) array of int16 or int32, or Cells
        Level of each variable in each record; -1 where it is missing.
    weight : (M,) array of float, optional
        Weight of each record; one each by default.
    levels : sequence of N int
        Number of levels of each variable; codes must lie below it.
    subsets : sequence of tuples of int
        Variables of each table, increasing; for Cells no two alike.
    threads : int
        Threads of the compiled kernel. The result does not depend on it.

    Returns
    -------
    array of float
        The tables one after another, each in C order. Without weights they are exact integers.

    Examples
    --------
    >>> codes = np.array([[0, 1], [1, 1], [0, -1]], dtype=np.int16)
    >>> count(codes, None, [2, 2], [(0,), (0, 1)])
    array([2., 1., 0., 1., 0., 1.])
    """
    sizes = np.fromiter(map(len, subsets), dtype=np.int64, count=len(subsets))
    members = np.fromiter(chain.from_iterable(subsets), np.int64, int(sizes.sum()))
    check_subsets(levels, sizes, members)
    if isinstance(codes, Cells):
        if codes.levels != tuple(levels):
            raise ValueError(f"The cells have other levels than {tuple(levels)[:10]}.")
        weight = check_weight(weight, len(codes))
        cells = _numpy.table_sizes(levels, subsets)
        tables, out = np.cumsum(cells) - cells, np.zeros(int(cells.sum()))
        if compiled is None:
            _numpy_cell_counts.count_cells(codes, weight, sizes, members, tables, out)
        else:
            shape, mine = np.asarray(levels, dtype=np.int64), (*codes.arrays, codes.variables)
            compiled.count_cells(*mine, weight, shape, sizes, members, tables, out, threads)
        return out
    check_codes(codes, levels)
    if compiled is None:
        return _numpy.count(codes, weight, levels, subsets)
    out = np.zeros(int(_numpy.table_sizes(levels, subsets).sum()))
    codes = np.ascontiguousarray(codes)
    if weight is not None:
        weight = np.ascontiguousarray(weight, dtype=np.float64)
    shape = np.asarray(levels, dtype=np.int64)
    compiled.count(codes, weight, shape, sizes, members, out, threads)
    return out


def project_columns(matrix: Array) -> Array:
    """Return the nearest matrix whose columns are nonnegative and sum to one.

    Parameters
    ----------
    matrix : (I, F) array
        Any finite numbers.

    Examples
    --------
    >>> project_columns(np.array([[0.9, 2.0], [0.3, -1.0]])).round(2)
    array([[0.8, 1. ],
           [0.2, 0. ]])
    """
    if compiled is None:
        return _numpy.project_columns(matrix)
    projected = np.array(matrix, dtype=np.float64, order="C")
    compiled.project_columns(projected)
    return projected


def admm_steps(
    inverse: Array,
    target: Array,
    factor: Array,
    dual: Array,
    rho: float,
    steps: int,
    *,
    along_rows: bool = False,
) -> tuple[Array, Array]:
    """Take ADMM steps on ``min tr(A G A^T)/2 - <A, V>`` over a matrix A on the simplex.

    Each step is ``Ahat = (V + rho (A + U)) (G + rho I)^-1``, ``A = P(Ahat - U)``,
    ``U += A - Ahat``: the paper's appendix with the sign of its projection put right.

    Parameters
    ----------
    inverse : (F, F) array
        ``(G + rho I)^-1``.
    target : (I, F) array
        ``V``.
    factor, dual : (I, F) arrays
        ``A`` and ``U`` to begin with.
    rho : float
        The step size.
    steps : int
        How many steps to take.
    along_rows : bool
        Whether the simplex runs along the rows (the weights are one row of F) and not down
        the columns.

    Returns
    -------
    factor, dual : arrays
        ``A`` and ``U`` after the last step.

    Examples
    --------
    >>> one = np.ones((1, 1))
    >>> admm_steps(one / 2, one * 5, one, one * 0, 1.0, 1)[0]
    array([[1.]])
    """
    if compiled is None:
        return _numpy.admm_steps(inverse, target, factor, dual, rho, steps, along_rows)
    factor, dual = (np.array(x, dtype=np.float64, order="C") for x in (factor, dual))
    inverse, target = (np.ascontiguousarray(x, dtype=np.float64) for x in (inverse, target))
    compiled.admm_steps(inverse, target, factor, dual, rho, steps, along_rows)
    return factor, dual
