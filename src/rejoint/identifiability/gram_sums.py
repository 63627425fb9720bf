"""Sums of products of Gram matrices over tables, and the Gram matrix of the tables' Jacobian.

With ``G_n = A_n^T A_n`` (F, F), every normal matrix of a coupled factorization is made of these:

    total       sum_S omega_S prod_{n in S} G_n
    M_n         sum_{S with n} omega_S prod_{S - n} G       (the paper's ``sum Q^T Q``)
    W_nm        sum_{S with n, m} omega_S prod_{S - n - m} G

Over all subsets of an order they are elementary symmetric polynomials of the ``G_n``, which a
recursion gives in O(N F^2); over a list of subsets they are summed as they stand. With the
parameters of class ``f`` scaled by ``w_f``, which changes no rank, the blocks of ``J^T J`` are

    (w f), (w g)           total[f, g]
    (w f), (n i g)         A_n[i, f] M_n[f, g]
    (n i f), (n i' g)      delta_ii' M_n[f, g]
    (n i f), (m j g)       A_m[j, f] A_n[i, g] W_nm[f, g]

No table is formed. All of them serve integers modulo a prime as they serve floats.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray, IntArray
from rejoint.model import Layout

Matrix = NDArray[Any]  # floats, or integers modulo a prime

#: Numbers of (F, F) matrices that are held at once: 16 MB.
CHUNK_NUMBERS = 2_000_000


@dataclass(frozen=True)
class Family:
    """Tables of one order: their variables (S, d), their weights (S,), and whether all are there.

    If all are there, they need not be listed, and the first weight is that of each.
    """

    members: IntArray
    weight: NDArray[Any]
    complete: bool = False

    @classmethod
    def of_order(cls, order: int) -> "Family":
        """All tables of an order, without a list of them."""
        return cls(np.zeros((0, order), dtype=np.intp), np.ones(1, dtype=np.int64), True)

    @classmethod
    def list_of(cls, subsets: Iterable[Sequence[int]]) -> list["Family"]:
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
            holds = (self.members == n).any(axis=1)
            rest = self.members[holds]
            rest = rest[rest != n].reshape(len(rest), self.order - 1)
            parts[int(n)] = (rest, self.weight[holds])
        return parts


def gram_stack(layout: Layout, factors: FloatArray) -> FloatArray:
    """``A_n^T A_n`` for every variable, (N, F, F)."""
    return np.stack([a.T @ a for a in layout.split(factors)])


def symmetric(values: Iterable[Any], order: int, prime: int = 0) -> list[Any]:
    """Elementary symmetric polynomials ``e_0 .. e_order``: of integers, exactly, or matrices."""
    terms: list[Any] = [1] + [0] * order
    for value in values:
        terms = [1, *(reduced(term + value * below, prime) for below, term in pairwise(terms))]
    return terms


def exclude(terms: Sequence[Any], gram: Matrix, prime: int = 0) -> list[Any]:
    """Take one matrix out of the polynomials: ``E_d -= G E_{d-1}``, from below."""
    rest = [terms[0]]
    for term in terms[1:]:
        rest.append(reduced(term - gram * rest[-1], prime))
    return rest


def reduced(values: Any, prime: int) -> Any:
    """Values modulo a prime, if there is one."""
    return values % prime if prime else values


def product(
    grams: Matrix, members: IntArray, left_out: Collection[int] = (), prime: int = 0
) -> Matrix:
    """``prod_k G_{members[s, k]}`` over all slots k but some, for each subset s, (S, F, F)."""
    result = np.ones((len(members), *grams.shape[1:]), dtype=grams.dtype)
    for slot, column in enumerate(members.T):
        if slot not in left_out:
            result = reduced(np.multiply(result, grams[column], out=result), prime)
    return result


def product_sum(grams: Matrix, members: IntArray, weight: Matrix, prime: int = 0) -> Matrix:
    """``sum_s weight_s prod_k G_{members[s, k]}`` for a list of subsets, in bounded memory."""
    total: Matrix = np.zeros_like(grams[0])
    for part in chunks(len(members), total.size):
        total += np.tensordot(weight[part], product(grams, members[part], (), prime), axes=1)
    return total


def chunks(count: int, size: int) -> Iterator[slice]:
    """Ranges of subsets whose (F, F) matrices fit into memory together."""
    step = max(1, CHUNK_NUMBERS // size)
    for start in range(0, count, step):
        yield slice(start, start + step)


def weights_gram(families: Sequence[Family], grams: Matrix, prime: int = 0) -> Matrix:
    """``sum_S omega_S prod_{m in S} G_m``: the normal matrix of the weights."""
    total = np.zeros_like(grams[0])
    for family in families:
        if family.complete:
            total += family.weight[0] * symmetric(grams, family.order, prime)[-1]
        else:
            total += product_sum(grams, family.members, family.weight, prime)
    return np.asarray(reduced(total, prime))


def factor_gram(families: Sequence[Family], grams: FloatArray, n: int) -> FloatArray:
    """``sum_{S with n} omega_S prod_{m in S - n} G_m``: the normal matrix of factor ``n``."""
    total = np.zeros(grams.shape[1:])
    for family in families:
        if family.complete:
            others = np.delete(grams, n, axis=0)
            total += family.weight[0] * symmetric(others, family.order - 1)[-1]
        elif n in family.others:
            total += product_sum(grams, *family.others[n])
    return total


def factor_grams(families: Sequence[Family], grams: Matrix, prime: int = 0) -> Matrix:
    """``factor_gram`` for every variable at once, (N, F, F)."""
    total = np.zeros_like(grams)
    for slots, members, values in _terms(families, grams, 1, prime):
        if members is None:
            total += values
        else:
            np.add.at(total, members[:, slots[0]], values)
    return np.asarray(reduced(total, prime))


def pair_grams(families: Sequence[Family], grams: Matrix, prime: int = 0) -> Matrix:
    """``sum_{S with n, m} omega_S prod_{k in S - n - m} G_k``, (N, N, F, F); zero where n = m."""
    size = len(grams)
    total = np.zeros((size, size, *grams.shape[1:]), dtype=grams.dtype)
    for slots, members, values in _terms(families, grams, 2, prime):
        if members is None:
            total += values
        else:
            first, second = members[:, slots].T
            np.add.at(total, (first, second), values)
            np.add.at(total, (second, first), values)
    total[np.arange(size), np.arange(size)] = 0
    return np.asarray(reduced(total, prime))


def _terms(
    families: Sequence[Family], grams: Matrix, free: int, prime: int
) -> Iterator[tuple[tuple[int, ...], IntArray | None, Matrix]]:
    """Weighted products without one or two slots, with the subsets; None for all of an order."""
    for family in families:
        if family.complete and family.order >= free:
            terms = symmetric(grams, family.order - free, prime)
            if free == 2:
                terms = exclude(terms, grams[:, None], prime)
            terms = exclude(terms, grams, prime)
            yield (), None, family.weight[0] * terms[-1]
            continue
        for slots in combinations(range(family.order), free):
            for part in chunks(len(family.members), grams[0].size):
                members = family.members[part]
                values = product(grams, members, slots, prime)
                yield slots, members, family.weight[part, None, None] * values


def gram_matrix(
    families: Sequence[Family],
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


def scaled_gram_matrix(
    families: Sequence[Family], factors: Sequence[FloatArray], weights: FloatArray
) -> FloatArray:
    """``J^T J`` in the weights and factors themselves, (1 + L, F, 1 + L, F)."""
    full = gram_matrix(families, factors)
    full[1:] *= weights[:, None, None]
    full[:, :, 1:] *= weights
    return full
