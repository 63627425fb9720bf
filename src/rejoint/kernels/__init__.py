"""Compiled kernels, and the NumPy twin of each, chosen when this package is imported.

The compiled module is used where it was built; ``REJOINT_KERNELS=numpy`` in the environment
forces the twins. ``backend`` says which of the two runs. Both give the same numbers: tests
hold one against the other.
"""

import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.kernels import _numpy, _numpy_classes

Codes = NDArray[np.signedinteger[Any]]  # int16 or int32
Array = NDArray[np.float64]


def _load() -> Any:
    if os.environ.get("REJOINT_KERNELS", "").lower() == "numpy":
        return None
    try:
        return import_module("rejoint.kernels._native")
    except ImportError:  # a wheel built without a compiler
        return None


_compiled = _load()

#: "native" if the compiled kernels run, "numpy" if their twins do.
backend: str = "numpy" if _compiled is None else "native"


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
    codes: Codes,
    weight: Array | None,
    levels: Sequence[int],
    subsets: Sequence[tuple[int, ...]],
    threads: int = 1,
) -> Array:
    """Count the tables of many subsets of variables at once, available-case.

    Parameters
    ----------
    codes : (M, N) array of int16 or int32
        Level of each variable in each record; -1 where it is missing.
    weight : (M,) array of float, optional
        Weight of each record; one each by default.
    levels : sequence of N int
        Number of levels of each variable; codes must lie below it.
    subsets : sequence of tuples of int
        Variables of each table, increasing.
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
    members = np.fromiter((n for s in subsets for n in s), dtype=np.int64, count=int(sizes.sum()))
    _check(codes, levels)
    _check_subsets(levels, sizes, members)
    if _compiled is None:
        return _numpy.count(codes, weight, levels, subsets)
    out = np.zeros(int(_numpy.table_sizes(levels, subsets).sum()))
    codes = np.ascontiguousarray(codes)
    if weight is not None:
        weight = np.ascontiguousarray(weight, dtype=np.float64)
    shape = np.asarray(levels, dtype=np.int64)
    _compiled.count(codes, weight, shape, sizes, members, out, threads)
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
    if _compiled is None:
        return _numpy.project_columns(matrix)
    projected = np.array(matrix, dtype=np.float64, order="C")
    _compiled.project_columns(projected)
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
    if _compiled is None:
        return _numpy.admm_steps(inverse, target, factor, dual, rho, steps, along_rows)
    factor, dual = (np.array(x, dtype=np.float64, order="C") for x in (factor, dual))
    inverse, target = (np.ascontiguousarray(x, dtype=np.float64) for x in (inverse, target))
    _compiled.admm_steps(inverse, target, factor, dual, rho, steps, along_rows)
    return factor, dual


def class_pass(
    codes: Codes,
    weight: Array | None,
    weights: Array,
    factors: Array,
    levels: Sequence[int],
    threads: int = 1,
) -> tuple[float, Array, Array]:
    """Sum the posterior of the hidden class over all records: one step E of EM.

    With ``r_f`` the product of ``weights[f]`` and, over the observed variables of a record, of
    ``factors[start of the variable + level, f]``, and ``p`` the sum of ``r``, a record adds
    its weight times ``log p`` to the log-likelihood and its weight times ``r / p`` to the counts.

    Parameters
    ----------
    codes : (M, N) array of int16 or int32
        Level of each variable in each record; -1 where it is missing.
    weight : (M,) array of float, optional
        Weight of each record, not negative; one each by default.
    weights : (F,) array of float
        Weight of each class, not negative; need not sum to one.
    factors : (L, F) array of float
        ``P(level | class)`` of all variables, stacked; columns need not sum to one.
    levels : sequence of N int
        Number of levels of each variable; their sum is L.
    threads : int
        Threads of the compiled kernel. The result does not depend on it.

    Returns
    -------
    log_likelihood : float
        Sum of weighted ``log p``. It is ``-inf`` if a record of positive weight is possible in
        no class; such a record adds nothing to the counts.
    class_counts : (F,) array
        Expected number of records of each class.
    level_counts : (L, F) array
        Expected number of records of each class at each level.

    Examples
    --------
    >>> codes = np.array([[0], [-1]], dtype=np.int16)
    >>> A = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> log_likelihood, classes, counts = class_pass(codes, None, np.array([0.5, 0.5]), A, [2])
    >>> round(log_likelihood, 3), classes.round(3)
    (-0.598, array([1.318, 0.682]))
    >>> counts.round(3)
    array([[0.818, 0.182],
           [0.   , 0.   ]])
    """
    weight, weights, factors = _check_classes(codes, weight, weights, factors, levels)
    _check(codes, levels)
    return _numpy_classes.class_pass(codes, weight, weights, factors, levels)


def _check_classes(
    codes: Codes,
    weight: Array | None,
    weights: Array,
    factors: Array,
    levels: Sequence[int],
) -> tuple[Array | None, Array, Array]:
    """Refuse arrays that do not fit together, or numbers that are no weights."""
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    factors = np.ascontiguousarray(factors, dtype=np.float64)
    if weights.ndim != 1 or not len(weights):
        raise ValueError(f"weights have shape {weights.shape}; one number per class is needed.")
    if factors.shape != (sum(levels), len(weights)):
        raise ValueError(
            f"factors have shape {factors.shape}, but {sum(levels)} levels and "
            f"{len(weights)} weights need {(sum(levels), len(weights))}."
        )
    for name, array in (("weights", weights), ("factors", factors)):
        if not (np.isfinite(array).all() and array.min(initial=0.0) >= 0.0):
            raise ValueError(f"{name} must be finite and not negative.")
    if weight is None:
        return None, weights, factors
    weight = np.ascontiguousarray(weight, dtype=np.float64)
    if weight.shape != (len(codes),):
        raise ValueError(f"weight has shape {weight.shape}, but there are {len(codes)} records.")
    if not (np.isfinite(weight).all() and weight.min(initial=0.0) >= 0.0):
        raise ValueError("weight must be finite and not negative.")
    return weight, weights, factors


def _check_subsets(
    levels: Sequence[int], sizes: NDArray[np.int64], members: NDArray[np.int64]
) -> None:
    """Refuse variables that do not exist."""
    if len(sizes) and not (sizes.min() > 0 and 0 <= members.min() <= members.max() < len(levels)):
        raise ValueError(f"subsets must name variables among 0..{len(levels) - 1}, at least one.")


def _check(codes: Codes, levels: Sequence[int]) -> None:
    """Refuse what is out of range: compiled code would read or write past the end of a table."""
    if codes.ndim != 2 or codes.shape[1] != len(levels):
        raise ValueError(f"codes have shape {codes.shape}, but there are {len(levels)} variables.")
    if not codes.size:
        return
    fits = codes.max() < min(levels) or bool(np.all(codes.max(axis=0) < np.asarray(levels)))
    if codes.min() < -1 or not fits:
        raise ValueError("Codes must lie between -1 (missing) and the number of levels less one.")
