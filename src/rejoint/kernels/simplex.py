"""Projection onto the simplex, and the ADMM steps on matrices whose columns lie on it."""

import numpy as np

from rejoint.kernels.backend import Array, compiled


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
        return numpy_project_columns(matrix)
    projected = np.array(matrix, dtype=np.float64, order="C")
    compiled.project_columns(projected)
    return projected


def numpy_project_columns(matrix: Array) -> Array:
    """NumPy version of :func:`project_columns`, by sorting.

    With ``u`` in decreasing order the threshold is ``(u_1 + .. + u_k - 1) / k`` for the largest
    ``k`` at which it still lies below ``u_k``.
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
    *,
    along_rows: bool = False,
) -> tuple[Array, Array]:
    """Take ADMM steps on ``min tr(A G A^T)/2 - <A, V>`` over a matrix A on the simplex.

    Each step is ``Ahat = (V + rho (A + U)) (G + rho I)^-1``, ``A = P(Ahat - U)``,
    ``U += A - Ahat``: the paper's appendix with the sign of its projection corrected.

    Parameters
    ----------
    inverse : (F, F) array
        ``(G + rho I)^-1``.
    target : (I, F) array
        ``V``.
    factor, dual : (I, F) arrays
        ``A`` and ``U`` before the first step.
    rho : float
        The step size.
    steps : int
        Number of steps.
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
        return numpy_admm_steps(inverse, target, factor, dual, rho, steps, along_rows)
    factor, dual = (np.array(x, dtype=np.float64, order="C") for x in (factor, dual))
    inverse, target = (np.ascontiguousarray(x, dtype=np.float64) for x in (inverse, target))
    rank = factor.shape[-1]
    if not factor.shape == dual.shape == target.shape or inverse.shape != (rank, rank):
        raise ValueError(
            f"Shapes do not fit: inverse {inverse.shape}, target {target.shape}, "
            f"factor {factor.shape}, dual {dual.shape}."
        )
    compiled.admm_steps(inverse, target, factor, dual, rho, steps, along_rows)
    return factor, dual


def numpy_admm_steps(
    inverse: Array,
    target: Array,
    factor: Array,
    dual: Array,
    rho: float,
    steps: int,
    along_rows: bool,
) -> tuple[Array, Array]:
    """NumPy version of :func:`admm_steps`."""
    for _ in range(steps):
        free = (target + rho * (factor + dual)) @ inverse
        moved = free - dual
        factor = numpy_project_columns(moved.T).T if along_rows else numpy_project_columns(moved)
        dual = dual + factor - free
    return factor, dual


def damped_inverse(gram: Array) -> tuple[Array, float]:
    """Return ``(G + rho I)^-1`` of a positive semidefinite matrix, and ``rho``.

    ``rho`` is the geometric mean of the extreme eigenvalues, the smallest of which counts as at
    least 1e-10 of the largest. This is the twin of damped_inverse.hpp, which compiled sweeps use.

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
