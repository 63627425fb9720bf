"""Gram matrix of the Jacobian of tables, from the inner products of the factors.

With ``G_n = A_n^T A_n`` (F, F), every sum over tables ``S`` is one of three:

    total       sum_S prod_{n in S} G_n
    M_n         sum_{S with n} prod_{S - n} G
    W_nm        sum_{S with n, m} prod_{S - n - m} G

Over all subsets of an order they are elementary symmetric polynomials of the ``G_n``. With the
parameters of class ``f`` scaled by ``w_f``, which changes no rank, the blocks of ``J^T J`` are

    (w f), (w g)           total[f, g]
    (w f), (n i g)         A_n[i, f] M_n[f, g]
    (n i f), (n i' g)      delta_ii' M_n[f, g]
    (n i f), (m j g)       A_m[j, f] A_n[i, g] W_nm[f, g]

No table is formed. The same sums of ``A_n^T B_n`` give ``J^T`` times the tables of another model
``B``. All of them serve integers modulo a prime as they serve floats.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray, IntArray

Matrix = NDArray[Any]  # floats, or integers modulo a prime

#: Numbers of (F, F) matrices that are held at once: 16 MB.
CHUNK_NUMBERS = 2_000_000


@dataclass(frozen=True)
class TableFamily:
    """Tables of one order: their variables (S, d), their weights (S,), and whether all are there.

    If all are there, they need not be listed, and the first weight is that of each.
    """

    members: IntArray
    weight: NDArray[Any]
    complete: bool = False

    @classmethod
    def of_order(cls, order: int) -> "TableFamily":
        """All tables of an order, without a list of them."""
        return cls(np.zeros((0, order), dtype=np.intp), np.ones(1, dtype=np.int64), True)

    @classmethod
    def list_of(cls, subsets: Iterable[Sequence[int]]) -> list["TableFamily"]:
        """Tables of weight one, grouped by order."""
        groups: dict[int, list[Sequence[int]]] = {}
        for subset in subsets:
            groups.setdefault(len(subset), []).append(subset)
        arrays = [np.array(group, dtype=np.intp) for group in groups.values()]
        return [cls(members, np.ones(len(members), dtype=np.int64)) for members in arrays]

    @property
    def order(self) -> int:
        """Number of variables of each table."""
        return int(self.members.shape[1])

    @cached_property
    def others(self) -> dict[int, tuple[IntArray, NDArray[Any]]]:
        """For each variable: the other variables of its subsets (S_n, d-1), and the weights."""
        parts = {}
        for n in np.unique(self.members):
            mine = np.flatnonzero((self.members == n).any(axis=1))
            rest = self.members[mine]
            rest = rest[rest != n].reshape(len(mine), self.order - 1)
            parts[int(n)] = (rest, self.weight[mine])
        return parts

    def chunks(self, size: int) -> Iterator[tuple[IntArray, NDArray[Any]]]:
        """Some subsets at a time, whose matrices of ``size`` numbers fit into memory."""
        step = max(1, CHUNK_NUMBERS // size)
        for start in range(0, len(self.members), step):
            yield self.members[start : start + step], self.weight[start : start + step]


def symmetric(grams: Matrix, order: int, prime: int = 0) -> list[Matrix]:
    """Elementary symmetric polynomials ``e_0 .. e_order`` of matrices, elementwise."""
    terms = [np.ones_like(grams[0])] + [np.zeros_like(grams[0]) for _ in range(order)]
    for gram in grams:
        for d in range(order, 0, -1):
            terms[d] = reduced(terms[d] + gram * terms[d - 1], prime)
    return terms


def exclude(terms: Sequence[Matrix], gram: Matrix, prime: int = 0) -> list[Matrix]:
    """Take one matrix out of the polynomials: ``E_d -= G E_{d-1}``, from below."""
    left = [terms[0]]
    for term in terms[1:]:
        left.append(reduced(term - gram * left[-1], prime))
    return left


def reduced(values: Matrix, prime: int) -> Matrix:
    """Values modulo a prime, if there is one."""
    return values % prime if prime else values


def product(
    grams: Matrix, members: IntArray, left_out: Iterable[int] = (), prime: int = 0
) -> Matrix:
    """``prod_k G_{members[s, k]}`` over all slots k but some, for each subset s, (S, F, F)."""
    result = np.ones((len(members), *grams.shape[1:]), dtype=grams.dtype)
    for slot in set(range(members.shape[1])) - set(left_out):
        result = reduced(result * grams[members[:, slot]], prime)
    return result


def weighted(products: Matrix, weight: NDArray[Any]) -> Matrix:
    """Products (S, F, F) times a weight each."""
    return np.asarray(products * weight[:, None, None])


def weights_gram(families: Sequence[TableFamily], grams: Matrix, prime: int = 0) -> Matrix:
    """``sum_S omega_S prod_{m in S} G_m``: the normal matrix of the weights."""
    total = np.zeros_like(grams[0])
    for family in families:
        if family.complete:
            terms = symmetric(grams, family.order, prime)
            total = total + family.weight[0] * terms[family.order]
        for members, weight in () if family.complete else family.chunks(total.size):
            total = total + weighted(product(grams, members, (), prime), weight).sum(axis=0)
    return reduced(total, prime)


def factor_grams(families: Sequence[TableFamily], grams: Matrix, prime: int = 0) -> Matrix:
    """``sum_{S with n} omega_S prod_{m in S - n} G_m`` for every variable n, (N, F, F)."""
    total = np.zeros_like(grams)
    for family in families:
        if family.complete:
            terms = symmetric(grams, family.order - 1, prime)
            total += family.weight[0] * exclude(terms, grams, prime)[-1]
            continue
        for members, weight in family.chunks(grams[0].size):
            for slot in range(family.order):
                rest = weighted(product(grams, members, [slot], prime), weight)
                np.add.at(total, members[:, slot], rest)
    return reduced(total, prime)


def pair_grams(families: Sequence[TableFamily], grams: Matrix, prime: int = 0) -> Matrix:
    """``sum_{S with n, m} omega_S prod_{k in S - n - m} G_k``, (N, N, F, F); zero where n = m."""
    size = len(grams)
    total = np.zeros((size, size, *grams.shape[1:]), dtype=grams.dtype)
    for family in families:
        if family.order < 2:
            continue
        if family.complete:
            terms = symmetric(grams, family.order - 2, prime)
            rest = exclude(exclude(terms, grams[:, None], prime), grams[None], prime)[-1]
            total += family.weight[0] * rest
            continue
        for members, weight in family.chunks(grams[0].size):
            for slots in combinations(range(family.order), 2):
                rest = weighted(product(grams, members, slots, prime), weight)
                first, second = members[:, slots].T
                np.add.at(total, (first, second), rest)
                np.add.at(total, (second, first), rest)
    total[np.arange(size), np.arange(size)] = 0
    return reduced(total, prime)


def gram_matrix(
    families: Sequence[TableFamily],
    factors: Sequence[Matrix],
    prime: int = 0,
    grams: Matrix | None = None,
) -> Matrix:
    """``J^T J`` of the tables, (1 + L, F, 1 + L, F), weights first; scaled as described above.

    ``factors`` may be the free rows of each variable, with ``grams`` those of whole columns.
    """
    if grams is None:
        grams = np.stack([a.T @ a for a in factors])
    single, pairs = factor_grams(families, grams, prime), pair_grams(families, grams, prime)
    sizes = [len(a) for a in factors]
    owner, stacked = np.repeat(np.arange(len(sizes)), sizes), np.vstack(factors)
    size, rank = 1 + len(stacked), stacked.shape[1]
    full = np.zeros((size, rank, size, rank), dtype=grams.dtype)
    full[0, :, 0] = weights_gram(families, grams, prime)
    for n, (a, end) in enumerate(zip(factors, 1 + np.cumsum(sizes), strict=True)):
        rows = np.arange(end - len(a), end)
        cross = reduced(pairs[n][owner] * stacked[:, :, None], prime).transpose(1, 0, 2)
        full[rows, :, 1:] = reduced(cross * a[:, None, None, :], prime)
        full[rows, :, rows] = single[n]
        border = reduced(single[n] * a[:, :, None], prime)  # (i, f, g): (w f), (n i g)
        full[0][:, rows] = border.transpose(1, 0, 2)
        full[rows, :, 0] = border.transpose(0, 2, 1)
    return full


def pull_tables(
    families: Sequence[TableFamily], factors: Sequence[FloatArray], others: Sequence[FloatArray]
) -> FloatArray:
    """``J^T`` times the sums of the tables of the classes of another model, (1 + L, F, G).

    Row ``0`` is that of the weights; factors of class ``f`` are scaled as in ``gram_matrix``.
    """
    inner = np.stack([a.T @ b for a, b in zip(factors, others, strict=True)])
    single = factor_grams(families, inner)
    sizes = [len(a) for a in factors]
    rows = np.repeat(single, sizes, axis=0) * np.vstack(others)[:, None, :]
    return np.concatenate([weights_gram(families, inner)[None], rows])
