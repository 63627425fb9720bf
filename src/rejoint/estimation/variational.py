"""Variational Bayes: Dirichlet posteriors of weights and columns, strengths of the priors.

The E-step is the same pass as EM's, at ``exp(E[log w])`` and ``exp(E[log A])``; the evidence
lower bound is its log-likelihood less the divergences of posteriors from priors. Classes that
the data do not need lose their weight when ``sparsity`` is below one.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import digamma, gammaln

from rejoint.estimation.data import Array, RecordProblem, normalise
from rejoint.estimation.priors import (
    best_strength,
    first_strengths,
    log_hyperprior,
    make_prior,
)
from rejoint.solver.solver import Limits


@dataclass(frozen=True)
class VariationalState:
    """Posterior pseudo-counts (1 + L, F), weights first, and the strengths of the priors."""

    counts: Array
    strengths: Array
    objective: float
    residual: float
    problem: RecordProblem = field(repr=False)

    @property
    def weights(self) -> Array:
        """Posterior mean of the weights."""
        return np.asarray(self.counts[0] / self.counts[0].sum())

    @property
    def factors(self) -> Array:
        """Posterior mean of the stacked factors."""
        return normalise(self.problem, self.counts[1:])


@dataclass(frozen=True)
class Variational:
    """Variational Bayes with strengths chosen by the evidence.

    Parameters
    ----------
    sparsity : float
        Pseudo-count of each class; below one, classes that are not needed vanish.
    limits : Limits
        When to stop; ``progress`` is relative to the evidence.

    Examples
    --------
    >>> Variational().sparsity
    1.0
    """

    sparsity: float = 1.0
    limits: Limits = field(default=Limits(max_steps=400, progress=1e-6, window=10, exact=-1.0))
    name: str = field(default="variational", init=False)

    def init(self, problem: RecordProblem, weights: Array, factors: Array) -> VariationalState:
        """Posterior after one pass at a first model."""
        strengths = first_strengths(problem)
        prior = make_prior(problem, strengths, self.sparsity)
        counts = prior.stacked + problem.expect(weights, factors).stacked
        return VariationalState(counts, strengths, np.inf, np.inf, problem)

    def step(self, problem: RecordProblem, state: VariationalState) -> VariationalState:
        """One pass, then the strengths."""
        logs = expected_logs(problem, state.counts)
        found = problem.expect(np.exp(logs[0]), np.exp(logs[1:]))
        bound = found.log_likelihood - self.divergence(problem, state, logs)
        expected = found.stacked
        counts = expected + make_prior(problem, state.strengths, self.sparsity).stacked
        logs = expected_logs(problem, counts)
        strengths = np.array(
            [
                best_strength(
                    strength,
                    problem.centre[problem.rows(n)],
                    logs[1:][problem.rows(n)],
                    problem.firmness[n],
                )
                for n, strength in enumerate(state.strengths)
            ]
        )
        counts = expected + make_prior(problem, strengths, self.sparsity).stacked
        move = np.linalg.norm(counts - state.counts) / np.linalg.norm(counts)
        return replace(
            state, counts=counts, strengths=strengths, objective=-bound, residual=float(move)
        )

    def divergence(self, problem: RecordProblem, state: VariationalState, logs: Array) -> float:
        """KL divergence of the posteriors from the priors, less the log hyperprior."""
        prior = np.broadcast_to(
            make_prior(problem, state.strengths, self.sparsity).stacked, state.counts.shape
        )
        # The weights are one column of F numbers, each factor F columns of I_n.
        total = dirichlet_divergence(state.counts[0], prior[0], logs[0])
        for n in range(len(problem.levels)):
            rows = problem.rows(n)
            parts = (block[1:][rows] for block in (state.counts, prior, logs))
            total += dirichlet_divergence(*parts)
        return total - float(np.sum(log_hyperprior(state.strengths, problem.firmness)))


def expected_logs(problem: RecordProblem, counts: Array) -> Array:
    """``E[log w]`` and ``E[log A]`` under the posteriors, (1 + L, F)."""
    sums = np.add.reduceat(counts[1:], problem.offsets[:-1])
    head = digamma(counts[0]) - digamma(counts[0].sum())
    body = digamma(counts[1:]) - np.repeat(digamma(sums), problem.levels, axis=0)
    return np.vstack([head, body])


def dirichlet_divergence(posterior: Array, prior: Array, logs: Array) -> float:
    """KL(Dirichlet(posterior) || Dirichlet(prior)), summed over columns."""
    heads = gammaln(posterior.sum(axis=0)) - gammaln(prior.sum(axis=0))
    cells = gammaln(prior) - gammaln(posterior) + (posterior - prior) * logs
    return float(np.sum(heads) + np.sum(cells))
