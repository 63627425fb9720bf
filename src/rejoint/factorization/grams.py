"""Sums of elementwise products of Gram matrices over families of subsets.

Every normal matrix of the coupled factorization is such a sum: with
``G_m = A_m^T A_m``, the matrix for factor ``n`` is ``sum_{S with n} prod_{m in S - n} G_m``
(the paper's ``sum Q^T Q``). Over *all* subsets of one order it is an elementary symmetric
polynomial of the ``G_m``, which a recursion gives in O(N F^2); over a list of subsets it is
summed as it stands.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Family:
    """All tables of one order: their variables (S, d), weights (S,), and whether all are there."""

    members: Rows
    weight: Array
    complete: bool

    @property
    def order(self) -> int:
        """Number of variables of each table."""
        return int(self.members.shape[1])

    @cached_property
    def others(self) -> dict[int, tuple[Rows, Array]]:
        """For each variable: the other variables of its subsets (S_n, d-1), and the weights."""
        found = {}
        for n in np.unique(self.members):
            mine = np.flatnonzero((self.members == n).any(axis=1))
            rest = self.members[mine]
            rest = rest[rest != n].reshape(len(mine), self.order - 1)
            found[int(n)] = (rest, self.weight[mine])
        return found


def symmetric(grams: Sequence[Array] | Array, order: int) -> list[Array]:
    """Elementary symmetric polynomials ``e_0 .. e_order`` of matrices, elementwise.

    Examples
    --------
    >>> import numpy as np
    >>> [e.item() for e in symmetric([np.full((1, 1), x) for x in (2.0, 3.0, 5.0)], 3)]
    [1.0, 10.0, 31.0, 30.0]
    """
    one = np.ones_like(grams[0])
    terms = [one] + [np.zeros_like(one) for _ in range(order)]
    for gram in grams:
        terms = include(terms, gram)
    return terms


def include(terms: Sequence[Array], gram: Array) -> list[Array]:
    """Add one matrix to the polynomials: ``E_d += G E_{d-1}``."""
    return [terms[0]] + [term + gram * below for below, term in pairwise(terms)]


def exclude(terms: Sequence[Array], gram: Array) -> list[Array]:
    """Take one matrix out of the polynomials: ``E_d -= G E_{d-1}``, from below."""
    left = [terms[0]]
    for term in terms[1:]:
        left.append(term - gram * left[-1])
    return left


def product_sum(grams: Array, members: Rows, weight: Array) -> Array:
    """``sum_s weight_s prod_k G_{members[s, k]}`` for a list of subsets, in bounded memory."""
    rank = grams.shape[-1]
    total = np.zeros((rank, rank))
    step = max(1, 2_000_000 // (rank * rank))
    for start in range(0, len(members), step):
        part = members[start : start + step]
        product = np.ones((len(part), rank, rank))
        for column in part.T:
            product *= grams[column]
        total += np.tensordot(weight[start : start + step], product, axes=1)
    return total


def whole(families: Sequence[Family], grams: Array) -> Array:
    """``sum_S omega_S prod_{m in S} G_m``: the normal matrix of the weights."""
    total = np.zeros(grams.shape[1:])
    for family in families:
        if family.complete:
            total += family.weight[0] * symmetric(grams, family.order)[family.order]
        else:
            total += product_sum(grams, family.members, family.weight)
    return total


def without(families: Sequence[Family], grams: Array, n: int) -> Array:
    """``sum_{S with n} omega_S prod_{m in S - n} G_m``: the normal matrix of factor ``n``."""
    total = np.zeros(grams.shape[1:])
    for family in families:
        if family.complete:
            rest = np.delete(grams, n, axis=0)
            total += family.weight[0] * symmetric(rest, family.order - 1)[family.order - 1]
        elif n in family.others:
            total += product_sum(grams, *family.others[n])
    return total


def without_each(families: Sequence[Family], grams: Array) -> Array:
    """``without`` for every variable at once, (N, F, F)."""
    total = np.zeros_like(grams)
    for family in families:
        degree = family.order - 1
        if family.complete:
            terms = symmetric(grams, degree)
            total += family.weight[0] * exclude(terms, grams)[degree]
        else:
            for n, (rest, weight) in family.others.items():
                total[n] += product_sum(grams, rest, weight)
    return total


def without_pairs(families: Sequence[Family], grams: Array) -> Array:
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


def add_pairs(total: Array, family: Family, grams: Array) -> None:
    """Add the pair sums of a list of subsets to ``total``."""
    for first in range(family.order):
        for second in range(first + 1, family.order):
            product = np.broadcast_to(
                family.weight[:, None, None], (len(family.weight), *grams.shape[1:])
            ).copy()
            for slot in range(family.order):
                if slot not in (first, second):
                    product *= grams[family.members[:, slot]]
            a, b = family.members[:, first], family.members[:, second]
            np.add.at(total, (a, b), product)
            np.add.at(total, (b, a), product)


def without_each_along(families: Sequence[Family], grams: Array, turns: Array) -> Array:
    """Derivative of ``without_each`` when each ``G_n`` moves along ``turns[n]``, (N, F, F)."""
    total = np.zeros_like(grams)
    for family in families:
        if family.order < 2:
            continue
        if family.complete:
            total += family.weight[0] * symmetric_along(grams, turns, family.order - 1)
        else:
            for n, (rest, weight) in family.others.items():
                total[n] += product_sum_along(grams, turns, rest, weight)
    return total


def symmetric_along(grams: Array, turns: Array, degree: int) -> Array:
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


def product_sum_along(grams: Array, turns: Array, members: Rows, weight: Array) -> Array:
    """Derivative of ``product_sum``."""
    total = np.zeros(grams.shape[1:])
    step = max(1, 2_000_000 // total.size)
    for start in range(0, len(members), step):
        part = members[start : start + step]
        for turned in range(part.shape[1]):
            product = turns[part[:, turned]]
            for slot in range(part.shape[1]):
                if slot != turned:
                    product = product * grams[part[:, slot]]
            total += np.tensordot(weight[start : start + step], product, axes=1)
    return total
