"""Ranks and smallest singular values of the Jacobian of tables, from its Gram matrix.

The parameters of class ``f`` are its weight and, for each variable, the free rows ``a_n`` (I_n - 1,
F) of its factor; scaling a column by ``w_f`` changes no rank, so that the weights drop out. With
``G_n`` (F, F) the inner products of whole columns, and sums over the tables ``S``,

    (w f), (w g)           sum_S prod_{n in S} G_n[f, g]
    (w f), (n i g)         a_n[i, f] M_n[f, g],                M_n = sum_{S with n} prod_{S - n} G
    (n i f), (n i' g)      delta_ii' M_n[f, g]
    (n i f), (m j g)       a_m[j, f] a_n[i, g] W_nm[f, g],     W_nm = sum_{S with n, m} prod G

No table is formed. Over all subsets of an order the sums are elementary symmetric polynomials. The
joint is one more table, of all variables.

A rank modulo a prime is never above the rank of the numbers themselves, nor that above the rank
at almost all points: it is a certain lower bound of the generic rank. A
polynomial of degree ``d`` that is not zero vanishes at a random point with probability at most
``d/p``, so that one that falls short at two points falls short everywhere, almost surely.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dpotrf
from scipy.sparse.linalg import LinearOperator, eigsh

from rejoint.identifiability.layout import TableLayout

Array = NDArray[np.float64]
Matrix = NDArray[Any]  # floats, or integers modulo a prime

#: The largest primes below 2^23: products of 64 pairs of residues are exact in a double.
PRIMES = (8388593, 8388587, 8388581)

#: Columns that are eliminated at once.
BLOCK_COLUMNS = 64

#: Singular values below this share of the largest count as zero: a Gram matrix in
#: double precision has its eigenvalues, their squares, to about 1e-15.
RESOLVED_SHARE = 1e-7


@dataclass(frozen=True)
class JacobianPoint:
    """The point at which a Jacobian is taken: free rows and inner products of all variables.

    ``prime`` is 0 for floats.
    """

    free: tuple[Matrix, ...]
    inner: Matrix  # (N, F, F)
    prime: int = 0

    @property
    def rank(self) -> int:
        """Number of classes."""
        return int(self.inner.shape[-1])

    def times(self, a: Matrix, b: Matrix) -> Matrix:
        """Elementwise product, reduced."""
        return self.reduce(a * b)

    def reduce(self, values: Matrix) -> Matrix:
        """Reduce values modulo the prime, if there is one."""
        return values % self.prime if self.prime else values


def model_point(factors: Sequence[Array]) -> JacobianPoint:
    """The point of a model: free rows along an orthonormal basis of what adds up to zero."""
    rows = tuple(zero_sum_basis(len(a)).T @ a for a in factors)
    return JacobianPoint(rows, np.stack([a.T @ a for a in factors]))


def zero_sum_basis(size: int) -> Array:
    """Orthonormal basis of the vectors of a length that add up to zero, (I, I - 1).

    Examples
    --------
    >>> zero_sum_basis(2).round(3)
    array([[ 0.707],
           [-0.707]])
    """
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
    rows = tuple(rng.integers(0, prime, (size, rank)) for size in tables.free)
    inner = np.ones((len(rows), rank, rank), dtype=np.int64)
    for n, a in enumerate(rows):
        for row in a:
            inner[n] = (inner[n] + np.outer(row, row) % prime) % prime
    return JacobianPoint(rows, inner, prime)


def gram(tables: TableLayout, point: JacobianPoint) -> Matrix:
    """``J^T J`` of all tables, (D, D) with ``D = F (1 + sum (I_n - 1))``, weights first."""
    if tables.order is not None:
        return _assemble(point, _SumsOverOrder(point, tables.order))
    return _assemble(point, _SumsOverList(point, tables.subsets))


def joint_gram(tables: TableLayout, point: JacobianPoint) -> Matrix:
    """``J^T J`` of the joint: of one table of all variables."""
    return _assemble(point, _SumsOverList(point, [tuple(range(len(tables.domain)))]))


def _assemble(point: JacobianPoint, sums: "_SumsOverOrder | _SumsOverList") -> Matrix:
    """The Gram matrix, one block of rows at a time."""
    rank, sizes = point.rank, [len(a) for a in point.free]
    starts = np.concatenate([[1], 1 + np.cumsum(sizes)]).astype(int)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    stacked = np.vstack(point.free)
    size = int(starts[-1])
    full = np.zeros((size, rank, size, rank), dtype=point.inner.dtype)
    full[0, :, 0, :] = sums.over_all()
    for n, a in enumerate(point.free):
        if not len(a):
            continue
        single, pairs = sums.over_holders(n)
        rows = slice(starts[n], starts[n + 1])
        cross = point.times(pairs[owner], stacked[:, :, None]).transpose(1, 0, 2)  # (f, s, g)
        for i, row in enumerate(a):
            block = full[starts[n] + i]
            block[:, 1:, :] = point.times(cross, row[None, None, :])
            block[:, rows, :] = 0
            block[:, starts[n] + i, :] = single
            border = point.times(single, row[:, None])  # (f, g): (w f), (n i g)
            full[0, :, starts[n] + i, :] = border
            block[:, 0, :] = border.T
    return full.reshape(size * rank, size * rank)


class _SumsOverOrder:
    """Sums over all subsets of an order of products of inner products.

    Nothing is subtracted or divided: the floats keep their relative precision, and the same code
    serves integers modulo a prime.
    """

    def __init__(self, point: JacobianPoint, order: int) -> None:
        self.point, self.order = point, order

    def over_all(self) -> Matrix:
        """``sum_S prod_{n in S} G_n``, (F, F)."""
        found: Matrix = self._symmetric(range(len(self.point.inner)), self.order)[-1]
        return found

    def over_holders(self, n: int) -> tuple[Matrix, Matrix]:
        """``M_n`` (F, F), and ``W_nm`` for every ``m`` (N, F, F), zero at ``n`` itself."""
        rest = [m for m in range(len(self.point.inner)) if m != n]
        pairs = np.zeros_like(self.point.inner)
        if self.order >= 2:
            pairs[rest] = self._without_each(rest, self.order - 2)
        return self._symmetric(rest, self.order - 1)[-1], pairs

    def _symmetric(self, variables: Sequence[int], order: int) -> Matrix:
        """Elementary symmetric polynomials ``e_0 .. e_order`` of some of the matrices."""
        sums: Matrix = np.zeros((order + 1, *self.point.inner.shape[1:]), self.point.inner.dtype)
        sums[0] = 1
        for m in variables:
            sums = self._include(sums, m)
        return sums

    def _include(self, sums: Matrix, m: int) -> Matrix:
        """The polynomials with one more matrix."""
        point, more = self.point, sums.copy()
        more[1:] = point.reduce(sums[1:] + point.times(point.inner[m][None], sums[:-1]))
        return more

    def _without_each(self, variables: Sequence[int], order: int) -> list[Matrix]:
        """``e_order`` of all of these but one, for each one: products from both ends."""
        point = self.point
        ahead = [self._symmetric([], order)]
        for m in variables[:-1]:
            ahead.append(self._include(ahead[-1], m))
        found, behind = [], self._symmetric([], order)
        for m, before in zip(reversed(variables), reversed(ahead), strict=True):
            terms = [point.times(before[r], behind[order - r]) for r in range(order + 1)]
            found.append(point.reduce(np.sum(terms, axis=0)))
            behind = self._include(behind, m)
        return found[::-1]


class _SumsOverList:
    """The same sums over given subsets."""

    def __init__(self, point: JacobianPoint, subsets: Sequence[Sequence[int]]) -> None:
        self.point, self.subsets = point, subsets
        self.holders: dict[int, list[Sequence[int]]] = {}
        for subset in subsets:
            for n in subset:
                self.holders.setdefault(n, []).append(subset)

    def over_all(self) -> Matrix:
        """``sum_S prod_{n in S} G_n``, (F, F)."""
        total: Matrix = np.zeros_like(self.point.inner[0])
        for subset in self.subsets:
            total = self.point.reduce(total + self._products(subset)[-1])
        return total

    def over_holders(self, n: int) -> tuple[Matrix, Matrix]:
        """``M_n`` (F, F), and ``W_nm`` for every ``m`` (N, F, F), zero at ``n`` itself."""
        point = self.point
        single, pairs = np.zeros_like(point.inner[0]), np.zeros_like(point.inner)
        for subset in self.holders.get(n, ()):
            rest = [m for m in subset if m != n]
            before, after = self._products(rest), self._products(rest[::-1])[::-1]
            single = point.reduce(single + before[-1])
            for k, m in enumerate(rest):
                pairs[m] = point.reduce(pairs[m] + point.times(before[k], after[k + 1]))
        return single, pairs

    def _products(self, variables: Sequence[int]) -> list[Matrix]:
        """Products of the matrices of the first 0, 1, 2, ... variables."""
        found = [np.ones_like(self.point.inner[0])]
        for m in variables:
            found.append(self.point.times(found[-1], self.point.inner[m]))
        return found


def rank_modulo(matrix: NDArray[Any], prime: int) -> int:
    """Rank of an integer matrix modulo a prime, by blocked elimination.

    Parameters
    ----------
    matrix : array (rows, columns)
        Integers.
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
        width = min(BLOCK_COLUMNS, rest.shape[1])
        order, lower = _factor_panel(rest[:, :width], prime)
        pivots = lower.shape[1]
        found += pivots
        if rest.shape[1] == width:
            break
        rest = _eliminate(rest[order, width:], lower, pivots, prime)
    return found


def _factor_panel(panel: Array, prime: int) -> tuple[NDArray[np.intp], Array]:
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


def _eliminate(rest: Array, lower: Array, pivots: int, prime: int) -> Array:
    """The other columns below the pivots after elimination."""
    upper = rest[:pivots]
    for k in range(1, pivots):
        upper[k] = _residues(upper[k] - lower[k, :k] @ upper[:k], prime)
    return _residues(rest[pivots:] - lower[pivots:] @ upper, prime)


def _residues(values: Array, prime: int) -> Array:
    """Reduce integers stored as floats to 0 .. prime - 1, in place."""
    # Much faster than np.mod; the quotient may be off by one, which is corrected.
    values -= prime * np.floor(values / prime)
    values[values < 0] += prime
    values[values >= prime] -= prime
    return values


def scale_columns(gram: Array) -> tuple[Array, Array]:
    """Gram matrix of columns of length one, in place, and the lengths, 1 for zero columns."""
    lengths = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
    lengths[lengths == 0.0] = 1.0
    gram /= lengths[:, None]
    gram /= lengths
    return gram, lengths


def smallest_singular_value(gram: Array) -> tuple[float, Array]:
    """Smallest singular value over the largest, to three digits, and its direction.

    Lanczos on the Gram matrix, which is overwritten, and on its inverse, shifted a little: the
    shift, at the size of rounding errors, lets a singular matrix be factored, too.
    """
    size, diagonal = len(gram), np.diagonal(gram).copy()
    high = float(eigsh(gram, k=1, tol=1e-3, v0=np.ones(size), return_eigenvectors=False)[0])
    for shift in high * size**0.5 * np.array([4e-16, 1e-14, 1e-12]):
        np.fill_diagonal(gram, diagonal + shift)
        # .T: Fortran order without a copy. One triangle is overwritten, the other keeps the matrix.
        factor, failed = dpotrf(gram.T, lower=0, clean=0, overwrite_a=1)
        if not failed:
            solve = partial(cho_solve, (factor, False), check_finite=False)
            inverse = LinearOperator(gram.shape, solve, dtype=gram.dtype)
            start = np.random.default_rng(0).standard_normal(size)
            values, vectors = eigsh(inverse, k=1, tol=1e-3, v0=start)
            low = 1.0 / float(values[0]) - float(shift)
            return float(np.sqrt(max(low, 0.0) / high)), vectors[:, 0]
        for k in range(size):  # the triangle that was overwritten, from the other
            gram[k + 1 :, k] = gram[k, k + 1 :]
    return 0.0, np.full(size, size**-0.5)  # not a Gram matrix at all
