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
    whole: LowRankPMF,
    codes: Codes,
    astray: NDArray[np.bool_],
    tables: Callable[[Sequence[Array]], Sequence[Array]],
) -> Iterator[tuple[slice, list[Array]]]:
    """Averages of ``posterior @ table.T`` over the models, for blocks of rows.

    Parameters
    ----------
    models : sequence of LowRankPMF
        Of the features, then the targets.
    weights : array
        Weight of each model; they sum to one.
    whole : LowRankPMF
        Judges alone the rows that are ``astray``.
    codes : array (rows, features)
        The rows.
    astray : array of bool (rows,)
        Rows with holes that the models have not learnt of.
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
    >>> [(_, shares)] = average_shares([model], np.ones(1), model, codes, np.array([False]), list)
    >>> shares[0].round(3)
    array([[0.818, 0.182]])
    """
    for first in range(0, len(codes), BLOCK):
        rows = slice(first, min(first + BLOCK, len(codes)))
        part, odd = codes[rows], astray[rows]
        if odd.all():
            yield rows, shares_of(whole, part, tables)
            continue
        found = [weights[0] * share for share in shares_of(models[0], part, tables)]
        for model, weight in zip(models[1:], weights[1:], strict=True):
            for total, share in zip(found, shares_of(model, part, tables), strict=True):
                total += weight * share
        if odd.any():
            for total, share in zip(found, shares_of(whole, part[odd], tables), strict=True):
                total[odd] = share
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
