"""Records, row by row: how probable each is in each class, and which class it is of."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from rejoint.queries.classes import class_posterior
from rejoint.queries.tables import blocks

__all__ = ["log_likelihoods", "record_classes"]

FloatArray = NDArray[np.float64]


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
    for rows in blocks(len(codes), 2 * rank):
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
