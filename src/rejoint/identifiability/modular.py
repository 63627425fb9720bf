"""Rank of a matrix of whole numbers modulo a prime: exact, at the speed of floats.

A rank modulo a prime is never above the rank of the numbers themselves, nor that above the rank
at almost all points: what is found here is a certain lower bound of the generic rank. A
polynomial of degree ``d`` that is not zero vanishes at a random point with probability at most
``d/p``, so that one that falls short at two points falls short everywhere, almost surely.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PRIMES", "rank_modulo"]

#: The largest primes below 2^23: products of 64 pairs of residues are exact in a double.
PRIMES = (8388593, 8388587, 8388581)

_BLOCK = 64


def rank_modulo(matrix: NDArray[Any], prime: int) -> int:
    """Rank of an integer matrix modulo a prime, by blocked elimination.

    Parameters
    ----------
    matrix : array (rows, columns)
        Whole numbers.
    prime : int
        One of ``PRIMES``, or less.

    Examples
    --------
    >>> rank_modulo(np.array([[1, 2, 3], [2, 4, 6], [1, 0, 1]]), PRIMES[0])
    2
    """
    rest = np.asarray(matrix % prime, dtype=np.float64)
    found = 0
    while min(rest.shape):
        width = min(_BLOCK, rest.shape[1])
        order, lower = factor_panel(rest[:, :width], prime)
        pivots = lower.shape[1]
        found += pivots
        if rest.shape[1] == width:
            break
        rest = eliminate(rest[order, width:], lower, pivots, prime)
    return found


def factor_panel(
    panel: NDArray[np.float64], prime: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Row order with pivots first, and the multipliers (rows, pivots), unit lower triangular."""
    panel = panel.copy()
    rows, columns = panel.shape
    order = np.arange(rows)
    lower = np.zeros((rows, columns))
    k = 0
    for j in range(columns):
        below = np.flatnonzero(panel[k:, j])
        if not len(below):
            continue
        swap = k + int(below[0])
        if swap != k:
            for array in (panel, order, lower):
                array[[k, swap]] = array[[swap, k]]
        inverse = pow(int(panel[k, j]), -1, prime)
        ratio = residues(panel[k + 1 :, j] * inverse, prime)
        lower[k, k], lower[k + 1 :, k] = 1.0, ratio
        update = panel[k + 1 :, j + 1 :] - np.outer(ratio, panel[k, j + 1 :])
        panel[k + 1 :, j + 1 :] = residues(update, prime)
        k += 1
        if k == rows:
            break
    return order, lower[:, :k]


def eliminate(
    rest: NDArray[np.float64], lower: NDArray[np.float64], pivots: int, prime: int
) -> NDArray[np.float64]:
    """What is left of the other columns below the pivots."""
    upper = rest[:pivots]
    for k in range(1, pivots):
        upper[k] = residues(upper[k] - lower[k, :k] @ upper[:k], prime)
    return residues(rest[pivots:] - lower[pivots:] @ upper, prime)


def residues(values: NDArray[np.float64], prime: int) -> NDArray[np.float64]:
    """Whole numbers in floats, into 0 .. prime - 1; in place."""
    # Much faster than np.mod; the quotient may be off by one, which is put right.
    values -= prime * np.floor(values / prime)
    values[values < 0] += prime
    values[values >= prime] -= prime
    return values
