"""Average the probabilities of labels over models, for many rows, block by block."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import TypeVar

import numpy as np

from rejoint import kernels
from rejoint.arrays import Codes, FloatArray, IntArray
from rejoint.pmf.pmf import LowRankPMF
from rejoint.queries.log_prob import posteriors

Ask = Callable[[Sequence[FloatArray]], Sequence[FloatArray]]
T = TypeVar("T")

#: Rows of a block: few enough for the cache, many enough for the threads.
BLOCK_ROWS = 16_384


def average_shares(
    models: Sequence[LowRankPMF],
    weights: FloatArray,
    codes: Codes,
    kinds: Callable[[Codes], IntArray],
    ask: Ask,
    answer: Callable[[list[FloatArray]], T],
) -> list[T]:
    """Average ``posterior @ table.T`` over the models, block by block, in threads.

    Parameters
    ----------
    models : sequence of LowRankPMF
        Of the features, then the targets.
    weights : array (kinds, models)
        Weight of each model for each kind of row; they sum to one.
    codes : array (rows, features)
        The rows.
    kinds : callable
        Returns the kind of each row.
    ask : callable
        Makes the tables (combinations, F) that are asked for of the factors of the targets.
    answer : callable
        Takes the averages (rows, combinations) of a block, one for each table.

    Returns
    -------
    list
        The answers of the blocks, in order.

    Examples
    --------
    >>> model = LowRankPMF([0.5, 0.5], [[[0.9, 0.2], [0.1, 0.8]], [[1.0, 0.0], [0.0, 1.0]]])
    >>> codes, alike = np.array([[0]], dtype=np.int16), lambda rows: np.zeros(len(rows), int)
    >>> [[shares]] = average_shares([model], np.ones((1, 1)), codes, alike, list, list)
    >>> shares.round(3)
    array([[0.818, 0.182]])
    """

    def answer_block(first: int) -> T:
        rows = codes[first : first + BLOCK_ROWS]
        if len(models) == 1:  # its weight is one for every kind
            return answer(shares_of(models[0], rows, ask))
        kind = kinds(rows)
        found: list[FloatArray] = []
        for model, weight in zip(models, weights.T, strict=True):
            mine = weight[kind, None]
            if not mine.any():
                continue
            shares = [mine * share for share in shares_of(model, rows, ask)]
            found = [a + b for a, b in zip(found, shares, strict=True)] if found else shares
        return answer(found)

    starts = range(0, len(codes), BLOCK_ROWS)
    if len(starts) < 2:
        return [answer_block(first) for first in starts]
    with ThreadPoolExecutor(kernels.available_threads()) as threads:
        return list(threads.map(answer_block, starts))


def shares_of(model: LowRankPMF, codes: Codes, ask: Ask) -> list[FloatArray]:
    """Return probabilities of labels under one model; rows sum to one."""
    features = codes.shape[1]
    asked = ask(model.factors[features:])
    found = [np.empty((len(codes), len(table))) for table in asked]
    codes = np.ascontiguousarray(codes)
    for rows, _, posterior in posteriors(model.weights, model.factors[:features], codes, 1):
        for share, table in zip(found, asked, strict=True):
            np.matmul(posterior, table.T, out=share[rows])
    return found


def products(factors: Sequence[FloatArray]) -> FloatArray:
    """Return the probability of each combination of levels in each class, (combinations, F).

    Examples
    --------
    >>> products([np.array([[0.9], [0.1]]), np.array([[0.5], [0.5]])])[:, 0]
    array([0.45, 0.45, 0.05, 0.05])
    """
    return reduce(
        lambda a, b: (a[:, None, :] * b[None, :, :]).reshape(-1, a.shape[1]),
        map(np.asarray, factors),
    )
