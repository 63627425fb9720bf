"""Passes over records whose class is hidden: what EM, variational Bayes and Gibbs repeat.

The twins multiply one-hot matrices by logarithms, so nothing underflows. Their draws have the
distribution of those of the compiled kernels, not their numbers.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.kernels.backend import (
    CODE_TYPES,
    OUT_OF_RANGE,
    Array,
    Codes,
    check_codes,
    check_model,
    check_shape,
    check_weight,
    compiled,
)
from rejoint.kernels.codes import SparseCodes

#: Records in either of their forms.
AnyCodes = Codes | SparseCodes

BLOCK_ENTRIES = 1 << 18  # entries of the largest array that a pass of a twin makes


def has_value(codes: AnyCodes) -> NDArray[np.bool_]:
    """Return whether any variable is observed, for each record.

    Examples
    --------
    >>> has_value(np.array([[0, -1], [-1, -1]], dtype=np.int8))
    array([ True, False])
    """
    if isinstance(codes, SparseCodes):
        return np.asarray(codes.counts > 0)
    if compiled is None or codes.dtype not in CODE_TYPES:
        return np.asarray((codes >= 0).any(axis=1))
    present = np.empty(len(codes), dtype=bool)
    compiled.has_value(np.ascontiguousarray(codes), present)
    return present


def _check(
    codes: AnyCodes, weights: Array, factors: Array, levels: Sequence[int]
) -> tuple[tuple[Any, ...], tuple[Array, Array, NDArray[np.int64]]]:
    """Return records and a model as the arrays that kernels take, once they fit each other.

    Compiled kernels check each code themselves as they read it.
    """
    model = check_model(weights, factors, levels)
    if isinstance(codes, SparseCodes):
        if codes.levels != tuple(levels):
            raise ValueError("The codes have other numbers of levels than the model.")
        return (codes.starts, codes.cells), model
    (check_codes if compiled is None else check_shape)(codes, levels)
    return (np.ascontiguousarray(codes),), model


def _counted(total: float | None, counts: Array) -> tuple[float, Array, Array]:
    """Return the sums of a compiled pass; None means that a code was out of range."""
    if total is None:
        raise ValueError(OUT_OF_RANGE)
    return float(total), counts[0], counts[1:]


def class_pass(
    codes: AnyCodes,
    weight: Array | None,
    weights: Array,
    factors: Array,
    levels: Sequence[int],
    threads: int = 1,
) -> tuple[float, Array, Array]:
    """Sum the posterior of the hidden class over all records: one E-step of EM.

    With ``r_f`` the product of ``weights[f]`` and, over the observed variables of a record, of
    ``factors[start of the variable + level, f]``, and ``p`` the sum of ``r``, a record adds
    its weight times ``log p`` to the log-likelihood and its weight times ``r / p`` to the counts.

    Parameters
    ----------
    codes : (M, N) array of int8, int16 or int32, or SparseCodes
        Level of each variable in each record, -1 where it is missing.
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
    arrays, model = _check(codes, weights, factors, levels)
    weight = check_weight(weight, len(codes))
    if compiled is None:
        return numpy_class_pass(codes, weight, weights, factors, levels)
    counts = np.zeros((1 + len(factors), len(weights)))
    return _counted(compiled.class_pass(*arrays, weight, *model, counts, threads), counts)


def class_posterior(
    codes: AnyCodes, weights: Array, factors: Array, levels: Sequence[int], threads: int = 1
) -> tuple[Array, Array]:
    """Return the log-probability of each record and the posterior of its hidden class.

    Parameters
    ----------
    codes : (M, N) array of int8, int16 or int32, or SparseCodes
        Level of each variable in each record, -1 where it is missing.
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
    posterior = np.empty((len(codes), len(weights)))
    return _posterior(codes, weights, factors, levels, posterior, threads), posterior


def _posterior(
    codes: AnyCodes,
    weights: Array,
    factors: Array,
    levels: Sequence[int],
    posterior: Array | None,
    threads: int,
) -> Array:
    """Return log-probabilities, and write posteriors where there is an array for them."""
    arrays, model = _check(codes, weights, factors, levels)
    log_prob = np.empty(len(codes))
    if compiled is not None:
        if not compiled.class_posterior(*arrays, *model, log_prob, posterior, threads):
            raise ValueError(OUT_OF_RANGE)
        return log_prob
    for rows, _, logs, block in _blocks(codes, weights, factors, levels):
        log_prob[rows] = logs
        if posterior is not None:
            posterior[rows] = block
    return log_prob


def class_log_prob(
    codes: AnyCodes, weights: Array, factors: Array, levels: Sequence[int], threads: int = 1
) -> Array:
    """Return the log-probability of each record: :func:`class_posterior` without the posteriors.

    Examples
    --------
    >>> codes = np.array([[0], [-1]], dtype=np.int16)
    >>> A = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> np.exp(class_log_prob(codes, np.array([0.5, 0.5]), A, [2])).round(3)
    array([0.55, 1.  ])
    """
    return _posterior(codes, weights, factors, levels, None, threads)


def _blocks(
    codes: AnyCodes, weights: Array, factors: Array, levels: Sequence[int]
) -> Iterator[tuple[slice, Any, Array, Array]]:
    """Yield rows, their one-hot matrix, log-probabilities and posteriors, block by block.

    The last column of the matrix stands for missing values. The posterior of a record that no class
    allows is zero.
    """
    from scipy.sparse import csr_array  # 0.1 s to import, and needed here alone

    with np.errstate(divide="ignore"):
        logs = np.vstack([np.log(factors), np.zeros(len(weights))])
        start = np.log(weights)
    begins, missing = np.cumsum([0, *levels[:-1]]), len(factors)
    size = max(1, BLOCK_ENTRIES // max(len(weights), len(levels)))
    for first in range(0, len(codes), size):
        rows = slice(first, min(first + size, len(codes)))
        block = codes[rows]
        if isinstance(block, SparseCodes):
            cells, starts = block.cells, block.starts
        else:
            cells = np.where(block >= 0, block + begins, missing).ravel()
            starts = np.arange(len(block) + 1) * len(levels)
        matrix = csr_array((np.ones(len(cells)), cells, starts), shape=(len(block), len(logs)))
        joint = matrix @ logs + start
        top = joint.max(axis=1)
        possible = top > -np.inf
        joint -= np.where(possible, top, 0.0)[:, None]
        np.exp(joint, out=joint)
        sums = np.where(possible, joint.sum(axis=1), 1.0)
        joint /= sums[:, None]
        yield rows, matrix, top + np.log(sums), joint


def numpy_class_pass(
    codes: AnyCodes,
    weight: Array | None,
    weights: Array,
    factors: Array,
    levels: Sequence[int],
    rng: np.random.Generator | None = None,
) -> tuple[float, Array, Array]:
    """NumPy version of :func:`class_pass` and, with ``rng``, of :func:`class_draws`."""
    total, class_counts, level_counts = 0.0, np.zeros(len(weights)), np.zeros(factors.shape)
    for rows, matrix, log_prob, posterior in _blocks(codes, weights, factors, levels):
        mass = np.ones(len(log_prob)) if weight is None else weight[rows]
        total += float(np.dot(mass[mass > 0], log_prob[mass > 0]))
        if rng is None:
            shares = posterior * mass[:, None]
        else:
            numbers = np.where(posterior.any(axis=1), mass, 0.0).astype(np.int64)
            shares = rng.multinomial(numbers, posterior).astype(np.float64)
        class_counts += shares.sum(axis=0)
        level_counts += (matrix.T @ shares)[:-1]
    return total, class_counts, level_counts


def class_draws(
    codes: AnyCodes,
    weight: Array | None,
    weights: Array,
    factors: Array,
    levels: Sequence[int],
    seed: int,
    threads: int = 1,
) -> tuple[float, Array, Array]:
    """Draw the hidden class of each record from its posterior and count: one Gibbs step.

    As :func:`class_pass`, but records are counted in the class drawn for them, so all counts are
    whole numbers. A record of weight ``k`` stands for ``k`` equal ones, each with its own draw; the
    number of a class that is expected often among them is drawn at once.

    Parameters
    ----------
    codes : (M, N) array of int8, int16 or int32, or SparseCodes
        Level of each variable in each record, -1 where it is missing.
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
    arrays, model = _check(codes, weights, factors, levels)
    weight = check_weight(weight, len(codes))
    if weight is not None and not (weight == np.floor(weight)).all():
        raise ValueError("weight must be whole numbers: each is a number of draws.")
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed must lie between 0 and 2**64 - 1, got {seed}.")
    if compiled is None:
        rng = np.random.default_rng(seed)
        return numpy_class_pass(codes, weight, weights, factors, levels, rng)
    counts = np.zeros((1 + len(factors), len(weights)))
    return _counted(compiled.class_draws(*arrays, weight, *model, counts, seed, threads), counts)


def draw_levels(
    tree: Array, classes: NDArray[np.int64], uniform: Array, out: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Draw a level for each uniform number, from the cumulative probabilities of its class.

    The level is the number of cumulative probabilities that the uniform number reaches.

    Parameters
    ----------
    tree : (rows, F) array
        Cumulative probabilities, increasing down each column; the number of rows is a power of
        two, and those from the last level on are infinite.
    classes : (n,) array of int
        Class of each number: the column of the tree.
    uniform : (n,) array
        Numbers in [0, 1).
    out : (n,) array of int8, int16, int32 or int64, optional
        Where the levels are written; it may be a column of a table.

    Examples
    --------
    >>> tree = np.array([[0.5, np.inf], [np.inf, np.inf]])
    >>> draw_levels(tree, np.array([0, 1, 0]), np.array([0.6, 0.6, 0.4]))
    array([1, 0, 0])
    """
    tree = np.ascontiguousarray(tree, dtype=np.float64)
    classes = np.ascontiguousarray(classes, dtype=np.int64)
    uniform = np.ascontiguousarray(uniform, dtype=np.float64)
    out = np.empty(len(uniform), dtype=np.int64) if out is None else out
    rows, rank = tree.shape
    if rows & (rows - 1) or not rows:
        raise ValueError(f"The number of rows of tree must be a power of two, got {rows}.")
    if not len(uniform) == len(classes) == len(out):
        raise ValueError("classes, uniform and out must be equally long.")
    if out.dtype.kind == "i" and rows - 1 > np.iinfo(out.dtype).max:
        raise ValueError(f"out of type {out.dtype} cannot hold levels up to {rows - 1}.")
    if len(classes) and not 0 <= classes.min() <= classes.max() < rank:
        raise ValueError(f"classes must lie between 0 and {rank - 1}.")
    if compiled is not None and out.dtype in (*CODE_TYPES, np.int64):
        compiled.draw_levels(tree, classes, uniform, out)
        return out
    at, flat, step = classes.copy(), tree.ravel(), rows // 2
    while step:
        at += (step * rank) * (uniform >= flat[at + (step - 1) * rank])
        step //= 2
    out[:] = (at - classes) // rank
    return out
