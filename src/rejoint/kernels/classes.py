"""Passes over records whose class is hidden: what EM, variational Bayes and Gibbs repeat."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rejoint.kernels import _numpy_classes, _numpy_draws
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
from rejoint.kernels.cells import Cells
from rejoint.kernels.departures import Departures, count_departures

#: Records in any of their forms.
AnyCodes = Codes | Cells | Departures


def arrays_of(codes: Codes | Cells, levels: Sequence[int]) -> tuple[Any, ...]:
    """Arrays that hold records in either form, once they fit the model.

    Compiled kernels look at each code themselves.
    """
    if isinstance(codes, Cells):
        if codes.levels != tuple(levels):
            raise ValueError("The cells have other numbers of levels than the model.")
        return codes.arrays
    if compiled is None:
        check_codes(codes, levels)
    else:
        check_shape(codes, levels)
    return (np.ascontiguousarray(codes),)


def class_pass(
    codes: AnyCodes,
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
    codes : (M, N) array of int16 or int32, Cells or Departures
        Level of each variable in each record, -1 where it is missing; or what is observed.
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
    if isinstance(codes, Departures):
        return count_departures(
            codes,
            weight,
            (weights, factors),
            levels,
            lambda cells, w, a, n: class_pass(cells, weight, w, a, n, threads),
        )
    arrays = arrays_of(codes, levels)
    weights, factors, shape = check_model(weights, factors, levels)
    weight = check_weight(weight, len(codes))
    if compiled is None:
        return _numpy_classes.class_pass(codes, weight, weights, factors, levels)
    counts = np.zeros((1 + len(factors), len(weights)))
    total = compiled.class_pass(*arrays, weight, weights, factors, shape, counts, threads)
    if total is None:
        raise ValueError(OUT_OF_RANGE)
    return float(total), counts[0], counts[1:]


def class_draws(
    codes: AnyCodes,
    weight: Array | None,
    weights: Array,
    factors: Array,
    levels: Sequence[int],
    seed: int,
    threads: int = 1,
) -> tuple[float, Array, Array]:
    """Draw the hidden class of each record from its posterior and count: one step of Gibbs.

    As :func:`class_pass`, but records are counted in the class drawn for them, so all counts are
    whole numbers. A record of weight ``k`` stands for ``k`` equal ones, each with its own draw.

    Parameters
    ----------
    codes : (M, N) array of int16 or int32, Cells or Departures
        Level of each variable in each record, -1 where it is missing; or what is observed.
    weight : (M,) array of float, optional
        How often each record occurs: whole numbers; one each by default.
    weights : (F,) array of float
        Weight of each class, not negative; need not sum to one.
    factors : (L, F) array of float
        ``P(level | class)`` of all variables, stacked; columns need not sum to one.
    levels : sequence of N int
        Number of levels of each variable; their sum is L.
    seed : int
        From 0 to 2**64 - 1. The result depends on it and the records, not on threads.
    threads : int
        Threads of the compiled kernel.

    Returns
    -------
    log_likelihood : float
        Sum of weighted log-probabilities, ``-inf`` if a record is possible in no class.
    class_counts : (F,) array
        Number of records drawn into each class. An impossible record is in none.
    level_counts : (L, F) array
        Number of records drawn into each class at each level.

    Examples
    --------
    >>> codes = np.array([[0], [1], [-1]], dtype=np.int16)
    >>> merged = np.array([1.0, 10.0, 1000.0])
    >>> A = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> _, classes, counts = class_draws(codes, merged, np.array([0.5, 0.5]), A, [2], seed=1)
    >>> counts
    array([[ 1.,  0.],
           [ 0., 10.]])
    >>> float(classes.sum())
    1011.0
    """
    if isinstance(codes, Departures):
        return count_departures(
            codes,
            weight,
            (weights, factors),
            levels,
            lambda cells, w, a, n: class_draws(cells, weight, w, a, n, seed, threads),
        )
    arrays = arrays_of(codes, levels)
    weights, factors, shape = check_model(weights, factors, levels)
    weight = check_weight(weight, len(codes))
    if weight is not None and not (weight == np.floor(weight)).all():
        raise ValueError("weight must be whole numbers: each is a number of draws.")
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed must lie between 0 and 2**64 - 1, got {seed}.")
    if compiled is None:
        return _numpy_draws.class_draws(codes, weight, weights, factors, levels, seed)
    counts = np.zeros((1 + len(factors), len(weights)))
    total = compiled.class_draws(*arrays, weight, weights, factors, shape, counts, seed, threads)
    if total is None:
        raise ValueError(OUT_OF_RANGE)
    return float(total), counts[0], counts[1:]


def class_posterior(
    codes: AnyCodes, weights: Array, factors: Array, levels: Sequence[int], threads: int = 1
) -> tuple[Array, Array]:
    """Give the log-probability of each record and the posterior of its hidden class.

    Parameters
    ----------
    codes : (M, N) array of int16 or int32, Cells or Departures
        Level of each variable in each record, -1 where it is missing; or what is observed.
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
    log_prob : (M,) array
        ``-inf`` for a record that is possible in no class.
    posterior : (M, F) array
        Rows sum to one; that of an impossible record is zero.

    Examples
    --------
    >>> codes = np.array([[0], [-1]], dtype=np.int16)
    >>> A = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> log_prob, posterior = class_posterior(codes, np.array([0.5, 0.5]), A, [2])
    >>> np.exp(log_prob).round(3), posterior.round(3)
    (array([0.55, 1.  ]), array([[0.818, 0.182], [0.5  , 0.5  ]]))
    """
    if isinstance(codes, Departures):
        cells, weights, factors, shift = codes.folded(weights, factors, levels)
        log_prob, posterior = class_posterior(cells, weights, factors, cells.levels, threads)
        return log_prob + shift, posterior
    arrays = arrays_of(codes, levels)
    weights, factors, shape = check_model(weights, factors, levels)
    if compiled is None:
        return _numpy_classes.class_posterior(codes, weights, factors, levels)
    log_prob, posterior = np.empty(len(codes)), np.empty((len(codes), len(weights)))
    if not compiled.class_posterior(*arrays, weights, factors, shape, log_prob, posterior, threads):
        raise ValueError(OUT_OF_RANGE)
    return log_prob, posterior


def class_log_prob(
    codes: AnyCodes, weights: Array, factors: Array, levels: Sequence[int], threads: int = 1
) -> Array:
    """Give the log-probability of each record: :func:`class_posterior` without the posteriors.

    Examples
    --------
    >>> codes = np.array([[0], [-1]], dtype=np.int16)
    >>> A = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> np.exp(class_log_prob(codes, np.array([0.5, 0.5]), A, [2])).round(3)
    array([0.55, 1.  ])
    """
    if isinstance(codes, Departures):
        cells, weights, factors, shift = codes.folded(weights, factors, levels)
        return class_log_prob(cells, weights, factors, cells.levels, threads) + shift
    arrays = arrays_of(codes, levels)
    weights, factors, shape = check_model(weights, factors, levels)
    if compiled is None:
        return _numpy_classes.class_log_prob(codes, weights, factors, levels)
    log_prob = np.empty(len(codes))
    if not compiled.class_posterior(*arrays, weights, factors, shape, log_prob, None, threads):
        raise ValueError(OUT_OF_RANGE)
    return log_prob
