"""Smallest singular values of a Jacobian whose Gram matrix is given.

The parameters of class ``f`` are its weight and, for each variable, the free rows ``a_n`` (I_n - 1,
F) of its factor; scaling a column by ``w_f`` changes no rank, so that the weights drop out. With
``G_n`` (F, F) the inner products of whole columns, and sums over the tables ``S``,

    (w f), (w g)           sum_S prod_{n in S} G_n[f, g]
    (w f), (n i g)         a_n[i, f] M_n[f, g],                M_n = sum_{S with n} prod_{S - n} G
    (n i f), (n i' g)      delta_ii' M_n[f, g]
    (n i f), (m j g)       a_m[j, f] a_n[i, g] W_nm[f, g],     W_nm = sum_{S with n, m} prod G

No table is formed. Over all subsets of an order the sums are elementary symmetric polynomials. The
joint of all variables is one more table, the one of everything.

A rank modulo a prime is never above the rank of the numbers themselves, nor that above the rank
at almost all points: what is found here is a certain lower bound of the generic rank. A
polynomial of degree ``d`` that is not zero vanishes at a random point with probability at most
``d/p``, so that one that falls short at two points falls short everywhere, almost surely.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dpotrf
from scipy.sparse.linalg import eigsh

from rejoint.identifiability.layout import Layout

Matrix = NDArray[Any]  # floats, or integers modulo a prime


@dataclass(frozen=True)
class Point:
    """Where the Jacobian is taken: free rows and inner products of all variables.

    ``prime`` is 0 for floats.
    """

    free: tuple[Matrix, ...]
    inner: Matrix  # (N, F, F)
    prime: int = 0

    @property
    def rank(self) -> int:
        """Number of classes."""
        return int(self.inner.shape[-1])

    def times(self, *factors: Matrix) -> Matrix:
        """Elementwise product, reduced at every step."""
        product = factors[0]
        for factor in factors[1:]:
            product = product * factor
            if self.prime:
                product %= self.prime
        return product

    def reduced(self, values: Matrix) -> Matrix:
        """Values modulo the prime, if there is one."""
        return values % self.prime if self.prime else values


def model_point(factors: Sequence[NDArray[np.float64]]) -> Point:
    """The point of a model: free rows along an orthonormal basis of what adds up to zero."""
    rows = tuple(zero_sum_basis(len(a)).T @ a for a in factors)
    return Point(rows, np.stack([a.T @ a for a in factors]))


def zero_sum_basis(size: int) -> NDArray[np.float64]:
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


def random_point(tables: Layout, rank: int, rng: np.random.Generator) -> Point:
    """A random model: every column drawn evenly from the simplex."""
    return model_point([rng.dirichlet(np.ones(size), size=rank).T for size in tables.levels])


def residue_point(tables: Layout, rank: int, prime: int, rng: np.random.Generator) -> Point:
    """A random point modulo a prime, in the coordinates ``(1, a_n)`` of each variable.

    They differ from the table's own by a change of basis, which changes no rank.
    """
    rows = tuple(rng.integers(0, prime, (size, rank)) for size in tables.free)
    inner = np.ones((len(rows), rank, rank), dtype=np.int64)
    for n, a in enumerate(rows):
        for row in a:
            inner[n] = (inner[n] + np.outer(row, row) % prime) % prime
    return Point(rows, inner, prime)


def gram(tables: Layout, point: Point) -> Matrix:
    """``J^T J`` of all tables, (D, D) with ``D = F (1 + sum (I_n - 1))``, weights first."""
    sums: _Sums
    if tables.order is not None:
        sums = _AllSubsets(point, tables.order)
    else:
        sums = _Listed(point, tables.subsets)
    return assemble(point, sums)


def joint_gram(tables: Layout, point: Point) -> Matrix:
    """The same of the joint: of one table of all variables."""
    return assemble(point, _Listed(point, [tuple(range(len(tables.domain)))]))


def assemble(point: Point, sums: "_Sums") -> Matrix:
    """Set the blocks together, row block by row block."""
    rank, sizes = point.rank, [len(a) for a in point.free]
    starts = np.concatenate([[1], 1 + np.cumsum(sizes)]).astype(int)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    stacked = np.vstack(point.free)
    size = int(starts[-1])
    full = np.zeros((size, rank, size, rank), dtype=point.inner.dtype)
    full[0, :, 0, :] = sums.whole()
    for n, a in enumerate(point.free):
        if not len(a):
            continue
        single, pairs = sums.around(n)
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


class _Sums:
    """Sums over tables of products of inner products."""

    point: Point

    def whole(self) -> Matrix:
        """``sum_S prod_{n in S} G_n``, (F, F)."""
        raise NotImplementedError

    def around(self, n: int) -> tuple[Matrix, Matrix]:
        """``M_n`` (F, F), and ``W_nm`` for every ``m`` (N, F, F), zero at ``n`` itself."""
        raise NotImplementedError


class _AllSubsets(_Sums):
    """Over all subsets of an order."""

    def __init__(self, point: Point, order: int) -> None:
        self.point, self.order = point, order

    def whole(self) -> Matrix:
        found: Matrix = self.symmetric(range(len(self.point.inner)), self.order)[self.order]
        return found

    def around(self, n: int) -> tuple[Matrix, Matrix]:
        order, inner = self.order, self.point.inner
        rest = [m for m in range(len(inner)) if m != n]
        pairs = np.zeros_like(inner)
        if order >= 2:
            for m, value in zip(rest, self.without_each(rest, order - 2), strict=True):
                pairs[m] = value
        return self.symmetric(rest, order - 1)[order - 1], pairs

    def symmetric(self, some: Sequence[int], order: int) -> Matrix:
        """Elementary symmetric polynomials ``e_0 .. e_order`` of some of the matrices."""
        point = self.point
        sums = np.zeros((order + 1, *point.inner.shape[1:]), dtype=point.inner.dtype)
        sums[0] = 1
        for m in some:
            for r in range(order, 0, -1):
                sums[r] = point.reduced(sums[r] + point.times(point.inner[m], sums[r - 1]))
        return sums

    def without_each(self, some: Sequence[int], order: int) -> list[Matrix]:
        """``e_order`` of all of these but one, for each: from both ends, without division."""
        point = self.point
        if order == 0:
            return [np.ones_like(point.inner[0])] * len(some)
        if order == 1:
            total = point.reduced(point.inner[list(some)].sum(axis=0))
            return [point.reduced(total - point.inner[m]) for m in some]
        ahead = [self.symmetric([], order)]
        for m in some[:-1]:
            ahead.append(self.extended(ahead[-1], m))
        found, behind = [], self.symmetric([], order)
        for k in range(len(some) - 1, -1, -1):
            terms = [point.times(ahead[k][r], behind[order - r]) for r in range(order + 1)]
            found.append(point.reduced(np.sum(terms, axis=0)))
            behind = self.extended(behind, some[k])
        return found[::-1]

    def extended(self, sums: Matrix, m: int) -> Matrix:
        """The polynomials with one more matrix."""
        more = sums.copy()
        more[1:] = self.point.reduced(
            sums[1:] + self.point.times(self.point.inner[m][None], sums[:-1])
        )
        return more


class _Listed(_Sums):
    """Over given subsets."""

    def __init__(self, point: Point, subsets: Sequence[Sequence[int]]) -> None:
        self.point, self.subsets = point, subsets
        self.holders: dict[int, list[Sequence[int]]] = {}
        for subset in subsets:
            for n in subset:
                self.holders.setdefault(n, []).append(subset)

    def whole(self) -> Matrix:
        total: Matrix = np.zeros_like(self.point.inner[0])
        for subset in self.subsets:
            total = self.point.reduced(total + self.runs(subset)[-1])
        return total

    def around(self, n: int) -> tuple[Matrix, Matrix]:
        point = self.point
        single, pairs = np.zeros_like(point.inner[0]), np.zeros_like(point.inner)
        for subset in self.holders.get(n, ()):
            rest = [m for m in subset if m != n]
            before, after = self.runs(rest), self.runs(rest[::-1])[::-1]
            single = point.reduced(single + before[-1])
            for k, m in enumerate(rest):
                pairs[m] = point.reduced(pairs[m] + point.times(before[k], after[k + 1]))
        return single, pairs

    def runs(self, some: Sequence[int]) -> list[Matrix]:
        """Products of the first 0, 1, 2, ... of some matrices."""
        found = [np.ones_like(self.point.inner[0])]
        for m in some:
            found.append(self.point.times(found[-1], self.point.inner[m]))
        return found


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


Array = NDArray[np.float64]

#: Up to this size all eigenvalues are computed; beyond, the smallest by inverse iteration.
DENSE = 500

#: Singular values below this share of the largest cannot be told from zero: a Gram matrix in
#: double precision has its eigenvalues, their squares, to about 1e-15.
RESOLVED = 1e-7


@dataclass(frozen=True)
class Spectrum:
    """The smallest singular value over the largest, and the direction that belongs to it."""

    smallest: float
    direction: Array


def scaled(gram: Array) -> tuple[Array, Array]:
    """The Gram matrix of columns of length one, in place, and the lengths, 1 for zero columns."""
    lengths = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
    lengths[lengths == 0.0] = 1.0
    gram /= lengths[:, None]
    gram /= lengths
    return gram, lengths


def spectrum(gram: Array) -> Spectrum:
    """Of a scaled Gram matrix; a large one is overwritten."""
    if len(gram) <= DENSE:
        values, vectors = np.linalg.eigh(gram)
        low, high, direction = values[0], values[-1], vectors[:, 0]
    else:
        high = largest(gram)
        low, direction = smallest_by_inverse(gram, high)
    return Spectrum(float(np.sqrt(max(low, 0.0) / high)), direction)


def largest(gram: Array) -> float:
    """Largest eigenvalue, to three digits."""
    start = np.ones(len(gram))
    return float(eigsh(gram, k=1, tol=1e-3, v0=start, return_eigenvectors=False)[0])


def smallest_by_inverse(gram: Array, high: float) -> tuple[float, Array]:
    """Smallest eigenvalue and its vector: Lanczos on the inverse of the matrix, shifted a little.

    The shift, at the size of rounding errors, lets a singular matrix be factored, too.
    """
    diagonal = np.diagonal(gram).copy()
    for shift in high * len(gram) ** 0.5 * np.array([4e-16, 1e-14, 1e-12]):
        np.fill_diagonal(gram, diagonal + shift)
        # .T: Fortran order without a copy. One triangle is overwritten, the other keeps the matrix.
        factor, failed = dpotrf(gram.T, lower=0, clean=0, overwrite_a=1)
        if not failed:
            value, direction = largest_of_inverse(factor)
            return 1.0 / value - float(shift), direction
        mirror(gram)
    return 0.0, np.full(len(gram), len(gram) ** -0.5)  # not a Gram matrix at all


def mirror(gram: Array) -> None:
    """Copy the upper triangle onto the lower one, which a failed factorization has spoilt."""
    for k in range(len(gram)):
        gram[k + 1 :, k] = gram[k, k + 1 :]


def largest_of_inverse(factor: Array, steps: int = 60) -> tuple[float, Array]:
    """Largest eigenvalue of the inverse of a factored matrix, to three digits, and its vector."""
    size = len(factor)
    vector = np.random.default_rng(0).standard_normal(size)
    basis, images = [vector / np.linalg.norm(vector)], []
    before, value, weights = 0.0, 0.0, np.ones(1)
    for _ in range(min(steps, size)):
        image = cho_solve((factor, False), basis[-1], check_finite=False)
        images.append(image)
        inner = np.array(basis) @ np.array(images).T
        values, vectors = np.linalg.eigh((inner + inner.T) / 2)
        before, value, weights = value, float(values[-1]), vectors[:, -1]
        if abs(value - before) <= 1e-3 * value:
            break
        rest = image.copy()
        for _ in range(2):  # twice is enough to keep the basis orthogonal
            for known in basis:
                rest -= (known @ rest) * known
        basis.append(rest / np.linalg.norm(rest))
    return value, np.array(basis[: len(weights)]).T @ weights
