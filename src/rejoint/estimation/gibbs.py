"""Posterior draws: classes of records, then weights, columns and strengths, in turn.

Missing cells need no imputation: given the class, a missing cell says nothing about the factors,
so that drawing it would only add noise.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rejoint.estimation.priors import RANGE, log_evidence_of_counts, log_hyperprior
from rejoint.estimation.problem import Array, RecordProblem, normalise
from rejoint.estimation.smoothing import SmoothProblem

#: Standard deviation of the proposals for ``log s``.
STRIDE = 0.5


@dataclass(frozen=True)
class Draw:
    """One draw of weights, stacked factors and strengths."""

    weights: Array
    factors: Array
    strengths: Array


def chain(
    problem: RecordProblem, start: Draw, sparsity: float, rng: np.random.Generator
) -> Iterator[Draw]:
    """An endless Gibbs chain."""
    draw = start
    while True:
        found = problem.drawn(draw.weights, problem.columns(draw.factors), rng)
        levels = found.levels
        if isinstance(problem, SmoothProblem):
            levels = problem.draw_hidden(levels, draw.factors, rng)
        strengths = draw_strengths(problem, draw.strengths, levels, rng)
        prior = np.repeat(strengths, problem.levels) * problem.centre
        weights = rng.dirichlet(sparsity + found.classes)
        draw = Draw(weights, draw_columns(problem, levels + prior[:, None], rng), strengths)
        yield draw


def draw_columns(problem: RecordProblem, counts: Array, rng: np.random.Generator) -> Array:
    """Columns from their Dirichlet posteriors; the floor keeps tiny ones from being all zero."""
    return normalise(problem, rng.standard_gamma(counts) + 1e-300)


def draw_strengths(
    problem: RecordProblem, strengths: Array, counts: Array, rng: np.random.Generator
) -> Array:
    """A Metropolis step for each strength, columns integrated out."""
    drawn = strengths.copy()
    for n, size in enumerate(problem.levels):
        if size < 2:
            continue
        mine, centre = counts[problem.rows(n)], problem.centre[problem.rows(n)]
        firm = float(problem.firmness[n])

        def log_density(
            s: float, mine: Array = mine, centre: Array = centre, firm: float = firm
        ) -> float:
            return log_evidence_of_counts(s, centre, mine) + float(log_hyperprior(s, firm))

        offered = float(np.clip(drawn[n] * np.exp(STRIDE * rng.standard_normal()), *RANGE))
        if np.log(rng.random()) < log_density(offered) - log_density(drawn[n]):
            drawn[n] = offered
    return drawn
