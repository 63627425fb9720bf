"""Exact sampling from a mixture of products: first the class, then each variable."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint import kernels

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
