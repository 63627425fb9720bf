"""Probabilities of labels for many rows, averaged over models, block by block."""

from collections.abc import Callable, Iterator, Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from rejoint.pmf import LowRankPMF
from rejoint.queries import posteriors

__all__ = ["average_shares", "products"]

Array = NDArray[np.float64]
Codes = NDArray[np.signedinteger]

#: Rows that are judged at a time: few enough for the cache, many enough for the threads.
BLOCK = 16_384


def average_shares(
    models: Sequence[LowRankPMF],
    weights: Array,
    codes: Codes,
    holes: NDArray[np.intp],
    tables: Callable[[Sequence[Array]], Sequence[Array]],
) -> Iterator[tuple[slice, list[Array]]]:
    """Averages of ``posterior @ table.T`` over the models, for blocks of rows.

    Parameters
    ----------
    models : sequence of LowRankPMF
        Of the features, then the targets.
    weights : array (kinds, models)
        Weight of each model for each kind of row; they sum to one.
    codes : array (rows, features)
        The rows.
    holes : array of int (rows,)
        Kind of each row.
    tables : callable
        From the factors of the targets to the tables (combinations, F) that are asked for.

    Yields
    ------
    rows : slice
        Which rows.
    shares : list of arrays (rows, combinations)
        One for each table.

    Examples
    --------
    >>> model = LowRankPMF([0.5, 0.5], [[[0.9, 0.2], [0.1, 0.8]], [[1.0, 0.0], [0.0, 1.0]]])
    >>> codes = np.array([[0]], dtype=np.int16)
    >>> [(_, shares)] = average_shares([model], np.ones((1, 1)), codes, np.array([0]), list)
    >>> shares[0].round(3)
    array([[0.818, 0.182]])
    """
    for first in range(0, len(codes), BLOCK):
        rows = slice(first, min(first + BLOCK, len(codes)))
        found: list[Array] = []
        for model, weight in zip(models, weights.T, strict=True):
            mine = weight[holes[rows], None]
            if not mine.any():
                continue
            shares = [mine * share for share in shares_of(model, codes[rows], tables)]
            found = [a + b for a, b in zip(found, shares, strict=True)] if found else shares
        yield rows, found


def shares_of(
    model: LowRankPMF, codes: Codes, tables: Callable[[Sequence[Array]], Sequence[Array]]
) -> list[Array]:
    """Probabilities of labels under one model; rows sum to one."""
    features = codes.shape[1]
    asked = tables(model.factors[features:])
    found = [np.empty((len(codes), len(table))) for table in asked]
    codes = np.ascontiguousarray(codes)
    for rows, _, posterior in posteriors(model.weights, model.factors[:features], codes):
        for share, table in zip(found, asked, strict=True):
            np.matmul(posterior, table.T, out=share[rows])
    for share in found:
        share /= share.sum(axis=1, keepdims=True)
    return found


def products(factors: Sequence[Array]) -> Array:
    """Probability of each combination of levels in each class, (combinations, F).

    Examples
    --------
    >>> products([np.array([[0.9], [0.1]]), np.array([[0.5], [0.5]])])[:, 0]
    array([0.45, 0.45, 0.05, 0.05])
    """
    return reduce(
        lambda a, b: (a[:, None, :] * b[None, :, :]).reshape(-1, a.shape[1]),
        map(np.asarray, factors),
    )
