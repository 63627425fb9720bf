"""Sums of elementwise products of Gram matrices over families of subsets.

Every normal matrix of the coupled factorization is such a sum: with
``G_m = A_m^T A_m``, the matrix for factor ``n`` is ``sum_{S with n} prod_{m in S - n} G_m``
(the paper's ``sum Q^T Q``). Over *all* subsets of one order it is an elementary symmetric
polynomial of the ``G_m``, which a recursion gives in O(N F^2); over a list of subsets it is
summed as it stands.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np
from scipy.sparse import csr_array

from rejoint.factorization.unfolding import Rows
from rejoint.model import FloatArray


@dataclass(frozen=True)
class Family:
    """All tables of one order: their variables (S, d), weights (S,), and whether all are there."""

    members: Rows
    weight: FloatArray
    complete: bool

    @property
    def order(self) -> int:
        """Number of variables of each table."""
        return int(self.members.shape[1])

    @cached_property
    def others(self) -> dict[int, tuple[Rows, FloatArray]]:
        """For each variable: the other variables of its subsets (S_n, d-1), and the weights."""
        found = {}
        for n in np.unique(self.members):
            mine = np.flatnonzero((self.members == n).any(axis=1))
            rest = self.members[mine]
            rest = rest[rest != n].reshape(len(mine), self.order - 1)
            found[int(n)] = (rest, self.weight[mine])
        return found

    def parts(self, size: int, width: int) -> Iterator[tuple[int, Rows, csr_array]]:
        """Slot by slot: some subsets, and the matrix that adds their weighted values up.

        The latter is (N, S): it sums over the subsets that have a variable in that slot.
        """
        for slot in range(self.order):
            for part in chunks(len(self.members), width):
                members, weight = self.members[part], self.weight[part]
                place = (members[:, slot], np.arange(len(members)))
                yield slot, members, csr_array((weight, place), shape=(size, len(members)))


def symmetric(grams: Sequence[FloatArray] | FloatArray, order: int) -> list[FloatArray]:
    """Elementary symmetric polynomials ``e_0 .. e_order`` of matrices, elementwise.

    Examples
    --------
    >>> import numpy as np
    >>> [e.item() for e in symmetric([np.full((1, 1), x) for x in (2.0, 3.0, 5.0)], 3)]
    [1.0, 10.0, 31.0, 30.0]
    """
    one = np.ones(np.shape(grams)[1:])
    terms = [one] + [np.zeros_like(one) for _ in range(order)]
    for gram in grams:
        terms = include(terms, gram)
    return terms


def include(terms: Sequence[FloatArray], gram: FloatArray) -> list[FloatArray]:
    """Add one matrix to the polynomials: ``E_d += G E_{d-1}``."""
    return [terms[0]] + [term + gram * below for below, term in pairwise(terms)]


def exclude(terms: Sequence[FloatArray], gram: FloatArray) -> list[FloatArray]:
    """Take one matrix out of the polynomials: ``E_d -= G E_{d-1}``, from below."""
    left = [terms[0]]
    for term in terms[1:]:
        left.append(term - gram * left[-1])
    return left


def product(grams: FloatArray, members: Rows, left_out: Collection[int] = ()) -> FloatArray:
    """``prod_k G_{members[s, k]}`` over all slots k but some, for each subset s, (S, F, F)."""
    result = np.ones((len(members), *grams.shape[1:]))
    for slot, column in enumerate(members.T):
        if slot not in left_out:
            result *= grams[column]
    return result


def product_sum(grams: FloatArray, members: Rows, weight: FloatArray) -> FloatArray:
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
            total += family.weight[0] * symmetric(grams, family.order)[family.order]
        else:
            total += product_sum(grams, family.members, family.weight)
    return total


def factor_gram(families: Sequence[Family], grams: FloatArray, n: int) -> FloatArray:
    """``sum_{S with n} omega_S prod_{m in S - n} G_m``: the normal matrix of factor ``n``."""
    total = np.zeros(grams.shape[1:])
    for family in families:
        if family.complete:
            rest = np.delete(grams, n, axis=0)
            total += family.weight[0] * symmetric(rest, family.order - 1)[family.order - 1]
        elif n in family.others:
            total += product_sum(grams, *family.others[n])
    return total


def factor_grams(families: Sequence[Family], grams: FloatArray) -> FloatArray:
    """``factor_gram`` for every variable at once, (N, F, F)."""
    total = np.zeros_like(grams)
    for family in families:
        degree = family.order - 1
        if family.complete:
            terms = symmetric(grams, degree)
            total += family.weight[0] * exclude(terms, grams)[degree]
        else:
            for slot, members, onto in family.parts(len(grams), grams[0].size):
                add_onto(total, onto, product(grams, members, {slot}))
    return total


def add_onto(total: FloatArray, onto: csr_array, values: FloatArray) -> None:
    """``total += onto @ values`` for matrices (F, F) in place of numbers."""
    total.reshape(len(total), -1)[:] += onto @ values.reshape(len(values), -1)


def pair_grams(families: Sequence[Family], grams: FloatArray) -> FloatArray:
    """``sum_{S with n, m} omega_S prod_{k in S - n - m} G_k``, (N, N, F, F); zero where n = m."""
    size = len(grams)
    total = np.zeros((size, size, *grams.shape[1:]))
    for family in families:
        if family.order < 2:
            continue
        if family.complete:
            terms = exclude(symmetric(grams, family.order - 2), grams[:, None])
            total += family.weight[0] * exclude(terms, grams[None])[family.order - 2]
        else:
            add_pairs(total, family, grams)
    total[np.arange(size), np.arange(size)] = 0.0
    return total


def add_pairs(total: FloatArray, family: Family, grams: FloatArray) -> None:
    """Add the pair sums of a list of subsets to ``total``."""
    for first, second in combinations(range(family.order), 2):
        rest = family.weight[:, None, None] * product(grams, family.members, {first, second})
        a, b = family.members[:, first], family.members[:, second]
        np.add.at(total, (a, b), rest)
        np.add.at(total, (b, a), rest)


def factor_grams_along(
    families: Sequence[Family], grams: FloatArray, turns: FloatArray
) -> FloatArray:
    """Derivative of ``factor_grams`` when each ``G_n`` moves along ``turns[n]``, (N, F, F)."""
    total = np.zeros_like(grams)
    for family in families:
        if family.complete and family.order > 1:
            total += family.weight[0] * symmetric_along(grams, turns, family.order - 1)
        elif not family.complete:
            for slot, members, onto in family.parts(len(grams), grams[0].size):
                for turned in set(range(family.order)) - {slot}:
                    rest = product(grams, members, {slot, turned})
                    add_onto(total, onto, turns[members[:, turned]] * rest)
    return total


def symmetric_along(grams: FloatArray, turns: FloatArray, degree: int) -> FloatArray:
    """Derivative of ``e_degree`` of all matrices but one, for each one left out."""
    terms = [np.ones_like(grams[0])] + [np.zeros_like(grams[0]) for _ in range(degree)]
    slopes = [np.zeros_like(term) for term in terms]
    for gram, turn in zip(grams, turns, strict=True):
        for d in range(degree, 0, -1):
            slopes[d] = slopes[d] + turn * terms[d - 1] + gram * slopes[d - 1]
            terms[d] = terms[d] + gram * terms[d - 1]
    left, bent = np.broadcast_to(terms[0], grams.shape), np.zeros_like(grams)
    for d in range(1, degree + 1):
        left, bent = terms[d] - grams * left, slopes[d] - turns * left - grams * bent
    return bent
