"""Tallies: records counted and merged, as free functions on arrays of codes."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["count_table", "merge_rows"]

Codes = NDArray[np.signedinteger[Any]]
Floats = NDArray[np.float64]

_FEW = 4  # possible keys per row up to which a table of them is cheaper than sorting


def count_table(codes: Codes, shape: Sequence[int], weight: Floats | None) -> Floats:
    """Count the rows without a hole into a table of the given shape.

    Examples
    --------
    >>> import numpy as np
    >>> count_table(np.array([[0, 1], [0, 1], [1, -1]]), (2, 2), None)
    array([[0., 2.],
           [0., 0.]])
    """
    full = (codes >= 0).all(axis=1)
    keys = np.zeros(int(full.sum()), dtype=np.int64)
    for n, size in enumerate(shape):
        keys *= size
        keys += codes[full, n]
    chosen = None if weight is None else weight[full]
    counts = np.bincount(keys, weights=chosen, minlength=math.prod(shape))
    return counts.astype(np.float64).reshape(tuple(shape))


def merge_rows(codes: Codes, shape: Sequence[int], weight: Floats | None) -> tuple[Codes, Floats]:
    """Return the distinct rows in order and the weight (or number) of each.

    Examples
    --------
    >>> import numpy as np
    >>> merge_rows(np.array([[1, 0], [0, -1], [1, 0]]), (2, 2), None)
    (array([[ 0, -1],
           [ 1,  0]]), array([1., 2.]))
    """
    if not codes.size:
        return codes, np.ones(len(codes)) if weight is None else weight.copy()
    if math.prod(levels + 1 for levels in shape) <= _FEW * len(codes):
        return _merge_few(codes, shape, weight)
    keys, size = _row_keys(codes, shape)
    first, where = _number(keys, size)
    total = np.bincount(where, weights=weight, minlength=len(first)).astype(np.float64)
    return np.ascontiguousarray(codes[first]), total


def _merge_few(codes: Codes, shape: Sequence[int], weight: Floats | None) -> tuple[Codes, Floats]:
    """Merge where few different rows are possible: a cell for each, nothing is sorted."""
    keys, _ = _row_keys(codes, shape)
    count = np.bincount(keys)
    kept = np.flatnonzero(count)
    total = count if weight is None else np.bincount(keys, weights=weight)
    distinct = np.empty((len(kept), len(shape)), dtype=codes.dtype)
    rest = kept
    for n in reversed(range(len(shape))):
        rest, code = np.divmod(rest, shape[n] + 1)
        distinct[:, n] = code - 1
    return distinct, total[kept].astype(np.float64)


def _row_keys(codes: Codes, shape: Sequence[int]) -> tuple[NDArray[np.int64], int]:
    """Return one integer a row, equal where the rows are and in their order, and a bound on it."""
    keys, bound = np.zeros(len(codes), dtype=np.int64), 1
    for n, levels in enumerate(shape):
        if bound * (levels + 1) > np.iinfo(np.int64).max:
            # The product of levels no longer fits: ranks of the keys so far take their place.
            first, keys = _number(keys, bound)
            bound = len(first)
        keys *= levels + 1
        keys += codes[:, n]
        keys += 1
        bound *= levels + 1
    return keys, bound


def _number(keys: NDArray[np.int64], bound: int) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return a row of each distinct key, in order of the keys, and the rank of every key."""
    if bound <= _FEW * len(keys):
        row = np.full(bound, -1, dtype=np.intp)
        row[keys[::-1]] = np.arange(len(keys) - 1, -1, -1)
        used = row >= 0
        rank = np.cumsum(used, dtype=np.int64) - 1
        return row[used], rank[keys]
    _, first, where = np.unique(keys, return_index=True, return_inverse=True)
    return first, where.astype(np.int64, copy=False)
