"""Ranks and smallest singular values of the Jacobian of tables, from its Gram matrix.

A rank modulo a prime is never above the rank of the numbers themselves, nor that above the rank
at almost all points: it is a certain lower bound of the generic rank. A
polynomial of degree ``d`` that is not zero vanishes at a random point with probability at most
``d/p``, so that one that falls short at two points falls short everywhere, almost surely.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh

from rejoint.arrays import FloatArray
from rejoint.identifiability.gram_sums import Family, Matrix, gram_matrix
from rejoint.identifiability.layout import TableLayout

#: The largest primes below 2^23: products of 64 pairs of residues are exact in a double.
PRIMES = (8388593, 8388587)

#: Columns that are eliminated at once.
BLOCK_COLUMNS = 64

#: Singular values below this share of the largest count as zero: a Gram matrix in
#: double precision has its eigenvalues, their squares, to about 1e-15.
RESOLVED_SHARE = 1e-7


#: Probabilities up to this are zero: directions that lower them lead out of the models.
ZERO = 1e-9


class JacobianPoint(NamedTuple):
    """Where a Jacobian is taken: free rows and inner products of all variables; a prime or 0."""

    free: Sequence[Matrix]
    inner: Matrix  # (N, F, F)
    prime: int = 0


def model_point(factors: Sequence[FloatArray]) -> JacobianPoint:
    """The point of a model: free rows along an orthonormal basis of what adds up to zero."""
    rows = [zero_sum_basis(len(a)).T @ a for a in factors]
    return JacobianPoint(rows, np.stack([a.T @ a for a in factors]))


def zero_sum_basis(size: int) -> FloatArray:
    """Orthonormal basis of the vectors of a length that add up to zero, (I, I - 1)."""
    basis = np.zeros((size, size - 1))
    for k in range(size - 1):
        basis[: k + 1, k] = 1.0
        basis[k + 1, k] = -(k + 1.0)
        basis[:, k] /= np.sqrt((k + 1.0) * (k + 2.0))
    return basis


def random_point(tables: TableLayout, rank: int, rng: np.random.Generator) -> JacobianPoint:
    """A random model: every column drawn evenly from the simplex."""
    return model_point([rng.dirichlet(np.ones(size), size=rank).T for size in tables.levels])


def residue_point(
    tables: TableLayout, rank: int, prime: int, rng: np.random.Generator
) -> JacobianPoint:
    """A random point modulo a prime, in the coordinates ``(1, a_n)`` of each variable.

    They differ from the table's own by a change of basis, which changes no rank.
    """
    rows = [rng.integers(0, prime, (size, rank)) for size in tables.free]
    inner = np.ones((len(rows), rank, rank), dtype=np.int64)
    for n, a in enumerate(rows):
        for row in a:
            inner[n] = (inner[n] + np.outer(row, row)) % prime
    return JacobianPoint(rows, inner, prime)


def gram(families: Sequence[Family], point: JacobianPoint) -> Matrix:
    """``J^T J`` of tables, (D, D) with ``D = F (1 + sum (I_n - 1))``, weights first."""
    full = gram_matrix(families, point.free, point.prime, point.inner)
    return full.reshape(len(full) * full.shape[1], -1)


def rank_modulo(matrix: NDArray[Any], prime: int) -> int:
    """Rank of an integer matrix modulo a prime, one of ``PRIMES`` or less, by blocks."""
    rest = np.asarray(matrix % prime, dtype=np.float64)
    rank = 0
    while min(rest.shape):
        width = min(BLOCK_COLUMNS, rest.shape[1])
        order, lower = _factor_panel(rest[:, :width], prime)
        pivots = lower.shape[1]
        rank += pivots
        if rest.shape[1] == width:
            break
        rest = _eliminate(rest[order, width:], lower, pivots, prime)
    return rank


def _factor_panel(panel: FloatArray, prime: int) -> tuple[NDArray[np.intp], FloatArray]:
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
        ratio = _residues(panel[k + 1 :, j] * inverse, prime)
        lower[k, k], lower[k + 1 :, k] = 1.0, ratio
        update = panel[k + 1 :, j + 1 :] - np.outer(ratio, panel[k, j + 1 :])
        panel[k + 1 :, j + 1 :] = _residues(update, prime)
        k += 1
        if k == rows:
            break
    return order, lower[:, :k]


def _eliminate(rest: FloatArray, lower: FloatArray, pivots: int, prime: int) -> FloatArray:
    """The other columns below the pivots after elimination."""
    upper = rest[:pivots]
    for k in range(1, pivots):
        upper[k] = _residues(upper[k] - lower[k, :k] @ upper[:k], prime)
    return _residues(rest[pivots:] - lower[pivots:] @ upper, prime)


def _residues(values: FloatArray, prime: int) -> FloatArray:
    """Reduce integers stored as floats to 0 .. prime - 1, in place."""
    # Much faster than np.mod; the quotient may be off by one, which is corrected.
    values -= prime * np.floor(values / prime)
    values[values < 0] += prime
    values[values >= prime] -= prime
    return values


def scale_columns(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gram matrix of columns of length one, in place, and the lengths, 1 for zero columns."""
    lengths = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
    lengths[lengths == 0.0] = 1.0
    gram /= lengths[:, None]
    gram /= lengths
    return gram, lengths


def smallest_singular_value(gram: FloatArray) -> tuple[float, FloatArray]:
    """Smallest singular value over the largest, to three digits, and its direction.

    By Lanczos on the matrix and on its inverse, shifted by a rounding error, which lets a singular
    matrix be factored.
    """
    start = np.random.default_rng(0).standard_normal(len(gram))
    high = float(eigsh(gram, k=1, tol=1e-3, v0=start, return_eigenvectors=False)[0])
    shift = -high * len(gram) ** 0.5 * 1e-15
    values, vectors = eigsh(gram, k=1, sigma=shift, tol=1e-3, v0=start)
    return float(np.sqrt(max(values[0], 0.0) / high)), vectors[:, 0]
