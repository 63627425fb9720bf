"""One visit to all variables in turn: the normal equations of each, as the others stand by then."""

from typing import Protocol

import numpy as np

from rejoint.factorization import grams
from rejoint.factorization.moments import factor_pull, weights_pull
from rejoint.factorization.problem import Array, Problem, gram_stack, mttkrp


class Visit(Protocol):
    """What a sweep asks for; it changes the factors it was begun with in place."""

    def normal(self, n: int) -> tuple[Array, Array]:
        """``G_n`` (F, F) and ``V_n`` (I_n, F), both without the weights."""
        ...

    def moved(self, n: int) -> None:
        """Take note that factor ``n`` has changed."""
        ...

    def whole(self) -> tuple[Array, Array]:
        """``G`` (F, F) and ``v`` (F,) of the weights."""
        ...


class TableVisit:
    """A visit to tables that are there."""

    def __init__(self, problem: Problem, weights: Array, factors: Array) -> None:
        self.problem, self.weights, self.factors = problem, weights, factors
        self.products = gram_stack(problem, factors)

    def normal(self, n: int) -> tuple[Array, Array]:
        """See ``Visit``."""
        problem = self.problem
        gram = grams.without(problem.families, self.products, n)
        target = mttkrp(problem, self.factors, n)
        if problem.moments:
            more, pulled = factor_pull(problem, self.products, self.weights, self.factors, n)
            gram, target = gram + more, target + pulled
        return gram, target

    def moved(self, n: int) -> None:
        """See ``Visit``."""
        mine = self.factors[self.problem.rows(n)]
        self.products[n] = mine.T @ mine

    def whole(self) -> tuple[Array, Array]:
        """See ``Visit``."""
        return weights_normal(self.problem, self.products, self.weights, self.factors)


def weights_normal(
    problem: Problem, products: Array, weights: Array, factors: Array
) -> tuple[Array, Array]:
    """``G`` and ``v`` of the weights' subproblem."""
    gram = grams.whole(problem.families, products)
    target = np.zeros_like(weights)
    for n in range(len(problem.levels)):
        mine = mttkrp(problem, factors, n, owned=True)
        target += np.sum(mine * factors[problem.rows(n)], axis=0)
    if problem.moments:
        more, pulled = weights_pull(problem, products, weights, factors)
        gram, target = gram + more, target + pulled
    return gram, target
