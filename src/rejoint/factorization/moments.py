"""Known expectations (means, covariances, third moments) as terms of the objective.

A moment is ``<u_a o u_b o ..., Xhat> = b`` with unit vectors ``u``. In an alternating update it
is majorised: with ``gap = b - <u, Xhat>`` at the present model, ``1/2 gap^2`` is at most
``1/2 || Xhat_now + gap u - Xhat ||^2``, with equality now. That is the term of an ordinary table,
whose MTTKRPs are known in closed form, so no table is ever formed.
"""

import numpy as np

from rejoint.factorization import grams
from rejoint.factorization.problem import Array, Problem


def factor_pull(
    problem: Problem, products: Array, weights: Array, factors: Array, n: int
) -> tuple[Array, Array]:
    """What the moments add to ``G_n`` and ``V_n`` (both without the weights) of factor ``n``."""
    rows = problem.rows(n)
    gram = np.zeros_like(products[n])
    pulled = np.zeros_like(factors[rows])
    for moments in problem.moments:
        gram += grams.without([moments.family], products, n)
        sides = moments.projections(factors)
        push = moments.family.weight * moments.gaps(weights, factors)
        for slot in range(moments.family.order):
            mine = np.flatnonzero(moments.family.members[:, slot] == n)
            others = np.prod(np.delete(sides[mine], slot, axis=1), axis=1)
            pulled += moments.vectors[mine, slot, rows].T @ (push[mine, None] * others)
    return gram, pulled + (factors[rows] * weights) @ gram


def weights_pull(
    problem: Problem, products: Array, weights: Array, factors: Array
) -> tuple[Array, Array]:
    """What the moments add to ``G`` and ``V`` of the weights."""
    gram = np.zeros(products.shape[1:])
    pulled = np.zeros_like(weights)
    for moments in problem.moments:
        gram += grams.whole([moments.family], products)
        push = moments.family.weight * moments.gaps(weights, factors)
        pulled += push @ np.prod(moments.projections(factors), axis=1)
    return gram, pulled + gram @ weights
