"""EM for tables: what falls to each class and level, and the model that makes of it.

Each cell is shared out among the classes by the present model. With ``Q = X / Xhat`` the counts are
``A_n * w * sum_S omega_S Q_S x_{m != n} A_m`` for the factors, and their sums for the weights; the
second factor is also minus the slope of ``sum_S omega_S KL(X_S || Xhat_S)``.
"""

from dataclasses import dataclass

import numpy as np

from rejoint.factorization.divergence import TINY
from rejoint.factorization.problem import Array, Problem


@dataclass(frozen=True)
class KlState:
    """Model and minus its slope, both (1 + L, F) with the weights first; the last steps."""

    model: Array
    ascent: Array
    objective: float
    residual: float
    before: tuple[Array, ...] = ()
    after: tuple[Array, ...] = ()
    damping: float = 1e-3

    @property
    def weights(self) -> Array:
        """Weights of the classes."""
        head: Array = self.model[0]
        return head

    @property
    def factors(self) -> Array:
        """Stacked factors."""
        return self.model[1:]


def evaluate(problem: Problem, model: Array) -> KlState:
    """Objective and slope in one pass over the tables; the residual is how far EM would move."""
    weights, factors = model[0], model[1:]
    total, ascent = 0.0, np.zeros_like(model)
    for n, parts in enumerate(problem.unfoldings):
        rows = problem.rows(n)
        for part in parts:
            apart, pulled = part.expect(factors[rows] * weights, factors)
            total += apart
            ascent[1:][rows] += weights * pulled
            # A table of order d comes up d times, once for each of its variables.
            ascent[0] += np.sum(pulled * factors[rows], axis=0) / part.order
    change = em(problem, model, ascent) - model
    return KlState(model, ascent, total, float(np.linalg.norm(change) / np.linalg.norm(model)))


def em(problem: Problem, model: Array, ascent: Array) -> Array:
    """What EM makes of a model; a column that explains nothing stays as it is."""
    counts = model * ascent
    sums = column_sums(problem, counts)
    return np.where(sums > 0, counts / np.where(sums > 0, sums, 1.0), model)


def normalise(problem: Problem, stacked: Array) -> Array:
    """Weights and columns scaled to sum to one."""
    return stacked / column_sums(problem, stacked)


def column_sums(problem: Problem, stacked: Array) -> Array:
    """Sums of the weights and of each variable's columns, repeated to the shape of the model."""
    sums = np.add.reduceat(stacked, [0, *(1 + problem.offsets[:-1])])
    sums[0] = sums[0].sum()
    repeated: Array = np.repeat(sums, [1, *problem.levels], axis=0)
    return repeated


def logarithms(model: Array) -> Array:
    """Logarithms, of zeros too."""
    return np.log(np.maximum(model, TINY))
