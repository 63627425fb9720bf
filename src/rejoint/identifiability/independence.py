"""Kruskal ranks and compound matrices of given factors."""

from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from rejoint.identifiability.spectrum import RESOLVED, scaled

__all__ = ["column_rank", "compound_strength", "kruskal_rank"]

Array = NDArray[np.float64]

#: Columns of length one whose smallest singular value is below this count as dependent.
DEPENDENT = 1e-8

#: Sets of columns that are looked at, at the most.
SETS = 20_000

#: Pairs of classes up to which the compound condition is evaluated: 60 classes.
PAIRS = 1770


def unit_columns(matrix: Array) -> Array:
    """Columns scaled to length one; zero columns stay."""
    lengths = np.linalg.norm(matrix, axis=0)
    return matrix / np.where(lengths > 0, lengths, 1.0)


def column_rank(matrix: Array) -> int:
    """Rank, columns scaled to length one.

    Examples
    --------
    >>> column_rank(np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 1.0]]))
    2
    """
    values = np.linalg.svd(unit_columns(matrix), compute_uv=False)
    return int((values > DEPENDENT).sum())


def kruskal_rank(matrix: Array) -> tuple[int, int]:
    """Bounds on the largest ``k`` such that any ``k`` columns are independent; equal if exact.

    All sets of columns are looked at while they are few; beyond, dependent sets are only sought
    among random ones, which bounds it from above.

    Examples
    --------
    >>> kruskal_rank(np.array([[1.0, 0.0, 1.0, 2.0], [0.0, 1.0, 1.0, 2.0]]))
    (1, 1)
    >>> kruskal_rank(np.array([[1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 2.0]]))
    (2, 2)
    """
    columns = unit_columns(matrix)
    size, rank = columns.shape[1], column_rank(matrix)
    if rank == size:
        return size, size
    looked = 0
    for k in range(1, rank + 1):
        looked += comb(size, k)
        if looked > SETS:
            return k - 1, upper_bound(columns, k, rank)
        if any_dependent(columns, list(combinations(range(size), k))):
            return k - 1, k - 1
    return rank, rank


def any_dependent(columns: Array, sets: list[tuple[int, ...]]) -> bool:
    """Whether one of some sets of columns is dependent."""
    for start in range(0, len(sets), 4096):
        chosen = columns[:, sets[start : start + 4096]].transpose(1, 0, 2)
        if (np.linalg.svd(chosen, compute_uv=False)[:, -1] <= DEPENDENT).any():
            return True
    return False


def upper_bound(columns: Array, least: int, rank: int) -> int:
    """Smallest size at which a random set is dependent, less one; the rank if none is."""
    rng = np.random.default_rng(0)
    for k in range(least, rank + 1):
        drawn = [tuple(rng.permutation(columns.shape[1])[:k]) for _ in range(200)]
        if any_dependent(columns, drawn):
            return k - 1
    return rank


def compound_strength(first: Array, second: Array) -> float | None:
    """Smallest singular value, over the largest, of ``M_2(A_1) . M_2(A_2)`` of Lemma 4.

    The columns of the compound matrices are scaled to length one. By Cauchy and Binet their inner
    products are minors of the Gram matrices of ``A_1`` and ``A_2``, so that no compound matrix
    is formed. None beyond 60 classes; 0 where it is below what can be told from zero.

    Examples
    --------
    >>> a = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    >>> compound_strength(a, np.eye(3)) > 0.1, compound_strength(a, np.ones((2, 3)))
    (True, 0.0)
    """
    size = first.shape[1]
    if comb(size, 2) > PAIRS:
        return None
    if size == 1:
        return 1.0
    product = minors(first) * minors(second)
    if (np.diagonal(product) <= RESOLVED**2).any():
        return 0.0
    values = np.linalg.eigvalsh(scaled(product)[0])
    ratio = float(np.sqrt(max(values[0], 0.0) / values[-1]))
    return ratio if ratio >= RESOLVED else 0.0


def minors(matrix: Array) -> Array:
    """Inner products of the columns of the second compound matrix, (C(F, 2), C(F, 2))."""
    columns = unit_columns(matrix)
    inner = columns.T @ columns
    f, g = np.triu_indices(matrix.shape[1], 1)
    found: Array = inner[np.ix_(f, f)] * inner[np.ix_(g, g)]
    found -= inner[np.ix_(f, g)] * inner[np.ix_(g, f)]
    return found
