"""Merge identical rows into one with their total weight, where that saves time."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import Codes, FloatArray, IntArray

#: Possible keys per row up to which a table of them is cheaper than sorting.
KEYS_PER_ROW = 4

#: Rows up to which rows are always merged: merging takes as long as 14 passes of EM.
ROWS_TO_PROBE = 100_000

#: Identical rows per row, on average, below which merging saves less than a tenth of the rows.
FEWEST_TWINS = 0.2


def has_twins(rows: int, sample_sizes: Callable[[IntArray], FloatArray]) -> bool:
    """Return whether merging identical rows saves time, by the groups in a random sample of rows.

    If the groups of identical rows have sizes k_i, merging saves sum (k_i - 1) rows, which is at
    most half of sum k_i (k_i - 1), the number of rows times the mean number of twins of a row. A
    sample of m of n rows holds m (m - 1) / (n (n - 1)) of the pairs of twins.

    Parameters
    ----------
    rows : int
        Number of rows.
    sample_sizes : callable
        Takes the positions of some rows and returns the sizes of the groups of identical ones.

    Examples
    --------
    >>> has_twins(10**6, lambda rows: np.ones(len(rows)))
    False
    >>> has_twins(10**6, lambda rows: np.full(len(rows) // 2, 2.0))
    True
    """
    if rows <= ROWS_TO_PROBE:
        return True
    size = int(20 * math.sqrt(rows))  # 40 pairs at the fewest twins that still save time
    sample = np.random.default_rng(0).choice(rows, size, replace=False, shuffle=False)
    sizes = sample_sizes(np.sort(sample))
    pairs = float(sizes @ (sizes - 1))
    return pairs * (rows - 1) / (size * (size - 1)) >= FEWEST_TWINS


def merge_rows(
    codes: Codes, shape: Sequence[int], weight: FloatArray | None
) -> tuple[Codes, FloatArray]:
    """Return the distinct rows in order and the weight (or number) of each."""
    if not codes.size:
        return codes, np.ones(len(codes)) if weight is None else weight.copy()
    keys, size = _row_keys(codes, shape)
    first, where = _number(keys, size)
    total = np.bincount(where, weights=weight, minlength=len(first)).astype(np.float64)
    return np.ascontiguousarray(codes[first]), total


def _row_keys(codes: Codes, shape: Sequence[int]) -> tuple[NDArray[np.int64], int]:
    """Return one integer per row, equal for equal rows and in their order, and an upper bound."""
    keys, bound = np.zeros(len(codes), dtype=np.int64), 1
    for n, levels in enumerate(shape):
        if bound * (levels + 1) > np.iinfo(np.int64).max:
            # The product of levels would overflow: replace the keys so far by their ranks.
            first, keys = _number(keys, bound)
            bound = len(first)
        keys *= levels + 1
        keys += codes[:, n]
        keys += 1
        bound *= levels + 1
    return keys, bound


def _number(keys: NDArray[np.int64], bound: int) -> tuple[IntArray, NDArray[np.int64]]:
    """Return a row of each distinct key, in order of the keys, and the rank of every key."""
    if bound <= KEYS_PER_ROW * len(keys):
        row = np.full(bound, -1, dtype=np.intp)
        row[keys[::-1]] = np.arange(len(keys) - 1, -1, -1)
        used = row >= 0
        rank = np.cumsum(used, dtype=np.int64) - 1
        return row[used], rank[keys]
    _, first, where = np.unique(keys, return_index=True, return_inverse=True)
    return first, where.astype(np.int64, copy=False)
