"""Probability and class posterior of each record, and new records.

Sampling is exact: first the class, then each variable.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint import kernels
from rejoint.kernels import SparseCodes
from rejoint.queries.evidence import class_posterior
from rejoint.queries.tables import blocks

FloatArray = NDArray[np.float64]
Codes = NDArray[np.signedinteger]


def posteriors(
    weights: FloatArray,
    factors: Sequence[FloatArray],
    codes: Codes | SparseCodes,
    threads: int | None = None,
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Yield class posteriors of records, in blocks of bounded size.

    ``P(x_n | record)`` follows as ``posterior @ A_n.T``. A record of probability zero gets the
    limit of a vanishing floor under all zeros: only the classes with the fewest zeros count,
    in proportion to the product of the other terms.

    Parameters
    ----------
    weights, factors
        The model.
    codes : ndarray (M, N) of int16 or int32, or SparseCodes
        Level of each variable; -1 is a missing value, which is summed out.
    threads : int, optional
        By default the number of cores.

    Yields
    ------
    rows : slice
        The records of the block.
    log_prob : ndarray (rows,)
        Log probability of each; -inf where it is zero.
    posterior : ndarray (rows, F)
        Rows sum to one; the caller may change the array.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> codes = np.array([[0], [-1]], dtype=np.int16)
    >>> [(rows, log_prob, posterior)] = posteriors(np.array([0.5, 0.5]), [A], codes)
    >>> np.exp(log_prob).round(2), posterior.round(2)
    (array([0.55, 1.  ]), array([[0.82, 0.18], [0.5 , 0.5 ]]))
    """
    table, levels, threads = _stacked(factors, threads)
    for rows in blocks(len(codes), len(weights)):
        part = codes[rows]
        log_prob, posterior = kernels.class_posterior(part, weights, table, levels, threads)
        for row in np.flatnonzero(np.isneginf(log_prob)):
            record = part[[row]].to_codes()[0] if isinstance(part, SparseCodes) else part[row]
            posterior[row] = _least_contradicted(weights, factors, record)
        yield rows, log_prob, posterior


def record_log_prob(
    weights: FloatArray,
    factors: Sequence[FloatArray],
    codes: Codes | SparseCodes,
    threads: int | None = None,
) -> FloatArray:
    """Return the log probability of each record; missing values are summed out.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> codes = np.array([[0], [-1]], dtype=np.int16)
    >>> np.exp(record_log_prob(np.array([0.5, 0.5]), [A], codes)).round(2)
    array([0.55, 1.  ])
    """
    table, levels, threads = _stacked(factors, threads)
    return kernels.class_log_prob(codes, weights, table, levels, threads)


def _stacked(
    factors: Sequence[FloatArray], threads: int | None
) -> tuple[FloatArray, list[int], int]:
    levels = [len(factor) for factor in factors]
    return np.vstack(factors), levels, threads or kernels.available_threads()


def _least_contradicted(
    weights: FloatArray, factors: Sequence[FloatArray], record: Codes
) -> FloatArray:
    present = np.flatnonzero(record >= 0).tolist()
    terms = np.stack([weights, *(factors[n][record[n]] for n in present)])
    zeros = (terms == 0.0).sum(axis=0)
    kept = np.log(np.where(terms == 0.0, 1.0, terms)).sum(axis=0)
    return class_posterior(np.where(zeros == zeros.min(), kept, -np.inf))


_ROWS = 2**16  # rows per block, which fits into the cache


def draw_codes(
    weights: NDArray[np.float64],
    factors: Sequence[NDArray[np.float64]],
    n: int,
    rng: np.random.Generator,
    dtype: Any = np.int16,
    classes: NDArray[np.intp] | None = None,
) -> NDArray[np.signedinteger[Any]]:
    """Draw `n` records of level numbers; factor columns of classes without weight are not read.

    The class of each record is drawn by the weights unless ``classes`` has it.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> draw_codes(np.array([0.5, 0.5]), [A, A], 3, np.random.default_rng(0))
    array([[1, 1],
           [0, 0],
           [0, 0]], dtype=int16)
    """
    codes = np.empty((n, len(factors)), dtype=dtype)
    tree_of_classes = _search_tree(weights[:, None]) if classes is None else None
    trees = [_search_tree(factor) for factor in factors]
    for start in range(0, n, _ROWS):
        block = codes[start : start + _ROWS]
        if tree_of_classes is None:
            assert classes is not None
            chosen = classes[start : start + _ROWS]
        else:
            first = np.zeros(len(block), dtype=np.intp)
            drawn = kernels.draw_levels(tree_of_classes, first, rng.random(len(block)))
            chosen = np.asarray(drawn, np.intp)
        for column, tree in enumerate(trees):
            kernels.draw_levels(tree, chosen, rng.random(len(block)), block[:, column])
    return codes


def draw_from_columns(columns: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw a row number for each column, with probabilities proportional to its entries."""
    ends = np.cumsum(columns, axis=0)
    # In (0, 1]: a first row of probability zero is never drawn.
    height = (1.0 - rng.random(columns.shape[1])) * ends[-1]
    return np.asarray((ends < height).sum(axis=0), dtype=np.intp)


def _search_tree(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cumulative probabilities of each column, padded by infinity to a power of two rows.

    From the last level of positive probability on they are infinite: rounding can then neither
    pass it nor choose a level of probability zero.
    """
    levels, rank = columns.shape
    rows = 1 << max(levels - 1, 0).bit_length()
    tree = np.full((rows, rank), np.inf)
    tree[:levels] = np.cumsum(columns, axis=0)
    total = tree[levels - 1].copy()
    tree[:levels] /= np.where(total > 0.0, total, 1.0)
    last = levels - 1 - np.argmax(columns[::-1] > 0.0, axis=0)
    tree[np.arange(rows)[:, None] >= last] = np.inf
    return tree
