"""Passes over records whose class is hidden: what EM, variational Bayes and Gibbs repeat."""

from collections.abc import Sequence

import numpy as np

from rejoint.kernels import _numpy_classes
from rejoint.kernels._checks import (
    OUT_OF_RANGE,
    Array,
    Codes,
    check_codes,
    check_model,
    check_shape,
    check_weight,
)
from rejoint.kernels._choice import compiled


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
    check_shape(codes, levels)
    weights, factors, shape = check_model(weights, factors, levels)
    weight = check_weight(weight, len(codes))
    if compiled is None:
        check_codes(codes, levels)
        return _numpy_classes.class_pass(codes, weight, weights, factors, levels)
    counts = np.zeros((1 + len(factors), len(weights)))
    codes = np.ascontiguousarray(codes)
    total = compiled.class_pass(codes, weight, weights, factors, shape, counts, threads)
    if total is None:
        raise ValueError(OUT_OF_RANGE)
    return float(total), counts[0], counts[1:]
