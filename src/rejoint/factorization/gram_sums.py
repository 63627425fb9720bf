"""Sums of products of Gram matrices over families of tables.

Every normal matrix of the coupled factorization is a sum of elementwise products of Gram matrices
over families of subsets: with ``G_m = A_m^T A_m``, the matrix for factor ``n`` is
``sum_{S with n} prod_{m in S - n} G_m`` (the paper's ``sum Q^T Q``). Over *all* subsets of one
order it is an elementary symmetric polynomial of the ``G_m``, which a recursion gives in O(N F^2);
over a list of subsets it is summed as it stands.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from rejoint.arrays import FloatArray, IntArray
from rejoint.model import Layout


@dataclass(frozen=True)
class Family:
    """All tables of one order: their variables (S, d), weights (S,), and whether all are there."""

    members: IntArray
    weight: FloatArray
    complete: bool

    @property
    def order(self) -> int:
        """Number of variables of each table."""
        return int(self.members.shape[1])

    @cached_property
    def others(self) -> dict[int, tuple[IntArray, FloatArray]]:
        """For each variable: the other variables of its subsets (S_n, d-1), and the weights."""
        others = {}
        for n in np.unique(self.members):
            holds = (self.members == n).any(axis=1)
            rest = self.members[holds]
            rest = rest[rest != n].reshape(len(rest), self.order - 1)
            others[int(n)] = (rest, self.weight[holds])
        return others


def gram_stack(layout: Layout, factors: FloatArray) -> FloatArray:
    """``A_n^T A_n`` for every variable, (N, F, F)."""
    return np.stack([a.T @ a for a in layout.split(factors)])


def symmetric(grams: Iterable[FloatArray], order: int) -> list[FloatArray]:
    """Elementary symmetric polynomials ``e_0 .. e_order`` of matrices, elementwise."""
    terms: list[Any] = [1.0] + [0.0] * order
    for gram in grams:
        terms = [terms[0]] + [term + gram * below for below, term in pairwise(terms)]
    return terms


def exclude(terms: Sequence[FloatArray], gram: FloatArray) -> list[FloatArray]:
    """Take one matrix out of the polynomials: ``E_d -= G E_{d-1}``, from below."""
    rest = [terms[0]]
    for term in terms[1:]:
        rest.append(term - gram * rest[-1])
    return rest


def product(grams: FloatArray, members: IntArray, left_out: Collection[int] = ()) -> FloatArray:
    """``prod_k G_{members[s, k]}`` over all slots k but some, for each subset s, (S, F, F)."""
    result = np.ones((len(members), *grams.shape[1:]))
    for slot, column in enumerate(members.T):
        if slot not in left_out:
            result *= grams[column]
    return result


def product_sum(grams: FloatArray, members: IntArray, weight: FloatArray) -> FloatArray:
    """``sum_s weight_s prod_k G_{members[s, k]}`` for a list of subsets, in bounded memory."""
    total = np.zeros(grams.shape[1:])
    for part in chunks(len(members), total.size):
        total += np.tensordot(weight[part], product(grams, members[part]), axes=1)
    return total


def chunks(count: int, size: int) -> Iterator[slice]:
    """Ranges of subsets whose (F, F) matrices take at most 16 MB together."""
    step = max(1, 2_000_000 // size)
    for start in range(0, count, step):
        yield slice(start, start + step)


def weights_gram(families: Sequence[Family], grams: FloatArray) -> FloatArray:
    """``sum_S omega_S prod_{m in S} G_m``: the normal matrix of the weights."""
    total = np.zeros(grams.shape[1:])
    for family in families:
        if family.complete:
            total += family.weight[0] * symmetric(grams, family.order)[-1]
        else:
            total += product_sum(grams, family.members, family.weight)
    return total


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


def factor_grams(families: Sequence[Family], grams: FloatArray) -> FloatArray:
    """``factor_gram`` for every variable at once, (N, F, F)."""
    total = np.zeros_like(grams)
    for family in families:
        if family.complete:
            terms = symmetric(grams, family.order - 1)
            total += family.weight[0] * exclude(terms, grams)[-1]
            continue
        parts = list(chunks(len(family.members), grams[0].size))
        for slot, part in ((slot, part) for slot in range(family.order) for part in parts):
            members = family.members[part]
            values = family.weight[part, None, None] * product(grams, members, {slot})
            np.add.at(total, members[:, slot], values)
    return total


def pair_grams(families: Sequence[Family], grams: FloatArray) -> FloatArray:
    """``sum_{S with n, m} omega_S prod_{k in S - n - m} G_k``, (N, N, F, F); zero where n = m."""
    size = len(grams)
    total = np.zeros((size, size, *grams.shape[1:]))
    for family in families:
        if family.order < 2:
            continue
        if family.complete:
            terms = exclude(symmetric(grams, family.order - 2), grams[:, None])
            total += family.weight[0] * exclude(terms, grams[None])[-1]
            continue
        for first, second in combinations(range(family.order), 2):
            rest = family.weight[:, None, None] * product(grams, family.members, {first, second})
            a, b = family.members[:, first], family.members[:, second]
            np.add.at(total, (a, b), rest)
            np.add.at(total, (b, a), rest)
    total[np.arange(size), np.arange(size)] = 0.0
    return total
