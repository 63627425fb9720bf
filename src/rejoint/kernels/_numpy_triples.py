"""Sweeps over all triples of variables in plain NumPy: twins of triples.cpp.

Tables lie pair by pair, (j, k) with j < k: a matrix of I_j I_k rows, whose columns are the levels
of all variables after k. Two products with each matrix do for all three modes. With factors before
the variable in turn new and those after it old, at the turn of n

- ``S = sum_l X_nkl A_l`` is the first mode's, and, with the new A_n, the second mode's of k;
- ``X_jn^T (A_j o A_n)``, both new, is the last mode's of all variables after n.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from rejoint.kernels._checks import Array
from rejoint.kernels._numpy import admm_steps, damped_inverse


class Triples:
    """The tables as matrices, and the sums over them that a sweep keeps up to date."""

    def __init__(self, packed: Array, levels: Sequence[int], factors: Array) -> None:
        ends = np.concatenate([[0], np.cumsum(levels)]).tolist()
        self.rows = [slice(start, stop) for start, stop in pairwise(ends)]
        self.factors = factors  # (L, F), those of the caller
        self.middle, self.last = np.zeros_like(factors), np.zeros_like(factors)
        self.first: dict[int, Array] = {}  # S of the variable in turn, by k
        self.pairs: dict[tuple[int, int], Array] = {}
        at = 0
        for j in range(len(levels)):
            for k in range(j + 1, len(levels)):
                shape = (levels[j] * levels[k], ends[-1] - ends[k + 1])
                self.pairs[j, k] = packed[at : at + shape[0] * shape[1]].reshape(shape)
                at += shape[0] * shape[1]

    def target(self, n: int) -> Array:
        """V_n without the weights, (I_n, F); factors before n are new."""
        mine = self.factors[self.rows[n]]
        found = self.middle[self.rows[n]] + self.last[self.rows[n]]
        self.first = {}
        for k in range(n + 1, len(self.rows) - 1):
            after = self.factors[self.rows[k].stop :]
            sums = (self.pairs[n, k] @ after).reshape(len(mine), -1, after.shape[1])
            found += np.einsum("ikf,kf->if", sums, self.factors[self.rows[k]])
            self.first[k] = sums
        return found

    def moved(self, n: int) -> None:
        """Take note of a new factor n."""
        for k, sums in self.first.items():
            self.middle[self.rows[k]] += np.einsum("ikf,if->kf", sums, self.factors[self.rows[n]])
        for j in range(n):
            self.finish(j, n)

    def finish(self, j: int, k: int) -> None:
        """Add the last mode's share of a pair whose factors are there."""
        a, b = self.factors[self.rows[j]], self.factors[self.rows[k]]
        rows = (a[:, None] * b).reshape(-1, a.shape[1])
        self.last[self.rows[k].stop :] += self.pairs[j, k].T @ rows

    def total(self) -> Array:
        """V of the weights, once all pairs are finished."""
        return np.asarray((self.last * self.factors).sum(axis=0))


def elementary(products: Sequence[Array], order: int) -> Array:
    """Sum of the products of all subsets of so many matrices, entry by entry.

    Examples
    --------
    >>> elementary([np.array([2.0]), np.array([3.0]), np.array([5.0])], 2)
    array([31.])
    """
    sums = [np.ones_like(products[0])] + [np.zeros_like(products[0]) for _ in range(order)]
    for product in products:
        for d in range(order, 0, -1):
            sums[d] += product * sums[d - 1]
    return sums[order]


def triples_sweep(
    packed: Array,
    levels: Sequence[int],
    weight: float,
    weights: Array,
    weights_dual: Array,
    factors: Array,
    dual: Array,
    steps: int,
) -> float:
    """Update all in place, and return the objective; see :func:`rejoint.kernels.triples_sweep`."""
    triples = Triples(packed, levels, factors)
    products = [factors[rows].T @ factors[rows] for rows in triples.rows]
    outer = weight * np.outer(weights, weights)
    for n, rows in enumerate(triples.rows):
        target = weight * weights * triples.target(n)
        gram = outer * elementary(products[:n] + products[n + 1 :], 2)
        inverse, rho = damped_inverse(gram)
        factors[rows], dual[rows] = admm_steps(
            inverse, target, factors[rows], dual[rows], rho, steps, False
        )
        products[n] = factors[rows].T @ factors[rows]
        triples.moved(n)
    target, gram = weight * triples.total(), weight * elementary(products, 3)
    inverse, rho = damped_inverse(gram)
    weights[None], weights_dual[None] = admm_steps(
        inverse, target[None], weights[None], weights_dual[None], rho, 2 * steps, True
    )
    return half_square(gram, target, weights)


def triples_value(
    packed: Array, levels: Sequence[int], weight: float, weights: Array, factors: Array
) -> float:
    """Objective of a model; see :func:`rejoint.kernels.triples_value`."""
    triples = Triples(packed, levels, factors)
    for j, k in triples.pairs:
        triples.finish(j, k)
    products = [factors[rows].T @ factors[rows] for rows in triples.rows]
    return half_square(weight * elementary(products, 3), weight * triples.total(), weights)


def half_square(gram: Array, target: Array, weights: Array) -> float:
    """``w G w/2 - v w``."""
    return float(weights @ (0.5 * gram @ weights - target))
