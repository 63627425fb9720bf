"""Probabilities, posteriors and tables of a mixture of products: free functions on arrays.

The model is ``P(x_1..x_N) = sum_f w_f prod_n A_n[x_n, f]``: `weights` is ``w`` (F,), `factors`
holds the ``A_n`` (I_n, F). Evidence on variable n is a likelihood ``l`` (I_n,), nonnegative: an
indicator for a known level or a list of levels, anything else for soft evidence. It enters a
class by the factor ``l @ A_n[:, f]``. Everything that multiplies over variables is kept as
logarithms over classes, so that thousands of variables do not underflow.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MAX_CELLS",
    "ZeroEvidenceError",
    "class_posterior",
    "conditional_factor",
    "contradiction",
    "joint_table",
    "log_class_weights",
    "log_likelihoods",
    "log_sum",
    "record_classes",
]

FloatArray = NDArray[np.float64]
Likelihoods = Mapping[int, FloatArray]

MAX_CELLS = 2**27
"""Largest table that is formed: 134 million cells, 1 GiB."""

_BLOCK = 2**20  # numbers in flight per block of records or classes: 8 MiB, near the cache


class ZeroEvidenceError(ValueError):
    """What was given has probability zero under the model, so nothing follows from it.

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.LowRankPMF([1.0], [[[1.0], [0.0]]], rj.Domain.of({"coin": ["heads", "tails"]}))
    >>> p.prob({"coin": "heads"}, given={"coin": "tails"})
    Traceback (most recent call last):
    ...
    rejoint.queries.ZeroEvidenceError: coin = 'tails' has probability zero under this model...
    """


def log_sum(logs: FloatArray) -> FloatArray:
    """Logarithm of the sum of exponentials along the last axis; all -inf gives -inf.

    Examples
    --------
    >>> import numpy as np
    >>> float(log_sum(np.log([0.25, 0.5])))
    -0.2876820724517809
    >>> float(log_sum(np.array([-np.inf, -np.inf])))
    -inf
    """
    top = logs.max(axis=-1)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(safe + np.log(np.exp(logs - safe[..., None]).sum(axis=-1)))


def log_class_weights(
    weights: FloatArray, factors: Sequence[FloatArray], likelihoods: Likelihoods
) -> FloatArray:
    """Logarithm of ``P(class f, evidence)`` for every class.

    Parameters
    ----------
    weights : ndarray (F,)
        Prior of the classes.
    factors : sequence of ndarray (I_n, F)
        Columns are conditional probabilities of the levels.
    likelihoods : mapping of int to ndarray (I_n,)
        Evidence by index of variable.

    Returns
    -------
    ndarray (F,)
        -inf for a class that the evidence excludes.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> np.exp(log_class_weights(np.array([0.5, 0.5]), [A], {0: np.array([1.0, 0.0])}))
    array([0.45, 0.1 ])
    """
    with np.errstate(divide="ignore"):
        total = np.log(weights)
        for n, likelihood in likelihoods.items():
            scale = likelihood.max()
            # Scaled, so that tiny likelihoods do not vanish in the product.
            if scale > 0.0:
                total = total + np.log(scale) + np.log((likelihood / scale) @ factors[n])
            else:
                total = np.full_like(total, -np.inf)
    return np.asarray(total)


def class_posterior(logs: FloatArray) -> FloatArray:
    """Normalised class probabilities from logarithms, along the last axis.

    A row of -inf (impossible evidence) comes out as zeros.

    Examples
    --------
    >>> import numpy as np
    >>> class_posterior(np.log([0.45, 0.05]))
    array([0.9, 0.1])
    """
    top = logs.max(axis=-1, keepdims=True)
    shares = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
    total = shares.sum(axis=-1, keepdims=True)
    return np.asarray(shares / np.where(total > 0.0, total, 1.0))


def conditional_factor(factor: FloatArray, likelihood: FloatArray) -> FloatArray:
    """Conditional probabilities of the levels in each class, given evidence on the variable.

    Columns whose class the evidence excludes are zero.

    Examples
    --------
    >>> import numpy as np
    >>> conditional_factor(np.array([[0.5, 1.0], [0.3, 0.0], [0.2, 0.0]]), np.array([0, 1, 1.0]))
    array([[0. , 0. ],
           [0.6, 0. ],
           [0.4, 0. ]])
    """
    top = likelihood.max()
    joint = factor * (likelihood / (top if top > 0.0 else 1.0))[:, None]
    total = joint.sum(axis=0)
    return np.asarray(joint / np.where(total > 0.0, total, 1.0))


def joint_table(weights: FloatArray, factors: Sequence[FloatArray]) -> FloatArray:
    """Dense table ``sum_f w_f prod_n A_n[x_n, f]`` of the factors given, axes in their order.

    Two Khatri-Rao products joined by one matrix product, in blocks of classes.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[1.0, 0.5], [0.0, 0.5]])
    >>> joint_table(np.array([0.5, 0.5]), [A, A])
    array([[0.625, 0.125],
           [0.125, 0.125]])
    """
    shape = tuple(len(factor) for factor in factors)
    if prod(shape) > MAX_CELLS:
        raise ValueError(
            f"The table of these {len(shape)} variables would have {prod(shape):.3g} cells "
            f"({prod(shape) * 8 / 2**30:.3g} GiB), more than the {MAX_CELLS:.3g} that are formed "
            "at once: ask for fewer variables, or for single probabilities by prob or log_prob."
        )
    # The cut that makes both sides small keeps the axes in order.
    cuts = range(len(shape) + 1)
    cut = min(cuts, key=lambda c: prod(shape[:c]) + prod(shape[c:]))
    left, right = prod(shape[:cut]), prod(shape[cut:])
    table = np.zeros((left, right))
    for block in _blocks(len(weights), left + right):
        a = _khatri_rao([factor[:, block] for factor in factors[:cut]], weights[block])
        b = _khatri_rao(
            [factor[:, block] for factor in factors[cut:]], np.ones_like(weights[block])
        )
        table += a @ b.T
    return table.reshape(shape)


def _khatri_rao(factors: Sequence[FloatArray], start: FloatArray) -> FloatArray:
    rows = start[None, :]
    for factor in factors:
        rows = (rows[:, None, :] * factor[None, :, :]).reshape(-1, len(start))
    return rows


def _blocks(count: int, width: int) -> Iterator[slice]:
    """Cut `count` things of `width` numbers each into slices of bounded size."""
    step = max(1, _BLOCK // max(width, 1))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def log_likelihoods(
    weights: FloatArray, factors: Sequence[FloatArray], codes: NDArray[np.integer]
) -> Iterator[tuple[slice, FloatArray]]:
    """Logarithms of ``P(class f, record)`` for blocks of records of bounded size.

    Variables are first gathered into groups with one table of logarithms each, so that a record
    costs one look-up per group in place of one per variable.

    Parameters
    ----------
    weights, factors
        The model.
    codes : ndarray (M, N) of int
        Level of each variable, -1 where missing: marginalised, that is, left out.

    Yields
    ------
    rows : slice
        Which records.
    logs : ndarray (rows, F)
        Logarithms; the array is the caller's to change.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> [(rows, logs)] = log_likelihoods(np.array([0.5, 0.5]), [A], np.array([[0], [-1]]))
    >>> np.exp(logs)
    array([[0.45, 0.1 ],
           [0.5 , 0.5 ]])
    """
    rank = len(weights)
    with np.errstate(divide="ignore"):
        start = np.log(weights)
        groups = _grouped_logs(factors, min(2**12, len(codes) // 8))
    for rows in _blocks(len(codes), 2 * rank):
        logs = np.repeat(start[None, :], rows.stop - rows.start, axis=0)
        for columns, table in groups:
            logs += table[_mixed_radix(codes[rows, columns], [len(factors[n]) for n in columns])]
        yield rows, logs


def _grouped_logs(factors: Sequence[FloatArray], cells: int) -> list[tuple[list[int], FloatArray]]:
    """Tables of summed log factors of groups of variables; level 0 of each stands for missing."""
    groups: list[tuple[list[int], FloatArray]] = []
    for n, factor in enumerate(factors):
        logs = np.vstack([np.zeros(factor.shape[1]), np.log(factor)])
        if groups and len(groups[-1][1]) * len(logs) <= cells:
            columns, table = groups[-1]
            joined = (table[:, None, :] + logs[None, :, :]).reshape(-1, factor.shape[1])
            groups[-1] = ([*columns, n], joined)
        else:
            groups.append(([n], logs))
    return groups


def _mixed_radix(codes: NDArray[np.integer], levels: Sequence[int]) -> NDArray[np.intp]:
    index = codes[:, 0].astype(np.intp) + 1
    for k in range(1, len(levels)):
        index *= levels[k] + 1
        index += codes[:, k] + 1
    return index


def record_classes(
    logs: FloatArray, weights: FloatArray, factors: Sequence[FloatArray], codes: NDArray[np.integer]
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Posterior of the class for a block of records, and which of them are impossible.

    A record of probability zero gets the limit of a vanishing floor under all zeros: only the
    classes with the fewest zeros count, weighed by the product of the rest.

    Examples
    --------
    >>> import numpy as np
    >>> A, codes = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0, 1, 1]])
    >>> w = np.array([0.5, 0.5])
    >>> [(rows, logs)] = log_likelihoods(w, [A, A, A], codes)
    >>> record_classes(logs, w, [A, A, A], codes)
    (array([[0., 1.]]), array([0]))
    """
    posterior = class_posterior(logs)
    impossible = np.flatnonzero(np.isneginf(logs.max(axis=1)))
    for row in impossible:
        present = np.flatnonzero(codes[row] >= 0).tolist()
        terms = np.stack([weights, *(factors[n][codes[row, n]] for n in present)])
        zeros = (terms == 0.0).sum(axis=0)
        kept = np.log(np.where(terms == 0.0, 1.0, terms)).sum(axis=0)
        posterior[row] = class_posterior(np.where(zeros == zeros.min(), kept, -np.inf))
    return posterior, impossible


def contradiction(
    weights: FloatArray, factors: Sequence[FloatArray], likelihoods: Likelihoods
) -> list[int]:
    """Variables of a smallest set (none can be left out) of evidence that cannot all be true.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> yes, no = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    >>> contradiction(np.array([0.5, 0.5]), [A, A, A], {0: yes, 1: yes, 2: no})
    [1, 2]
    """
    names = sorted(likelihoods)
    alive = [np.asarray(likelihoods[n] @ factors[n] > 0.0) for n in names]
    after = [np.ones(len(weights), dtype=bool)]
    for ok in reversed(alive):
        after.append(after[-1] & ok)
    kept, possible = [], weights > 0.0
    for k, n in enumerate(names):
        # Left out if what was kept before and all that comes after contradict without it.
        if (possible & after[len(names) - 1 - k]).any():
            kept.append(n)
            possible = possible & alive[k]
    return kept
