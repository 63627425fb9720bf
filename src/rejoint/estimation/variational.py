"""Variational Bayes: Dirichlet posteriors of weights and columns, concentrations of the priors.

The E-step is the same pass as EM's, at ``exp(E[log w])`` and ``exp(E[log A])``; the evidence
lower bound is its log-likelihood less the divergences of posteriors from priors. Classes that
the data do not need lose their weight when ``pseudo_count`` is below one.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.special import digamma, gammaln

from rejoint.arrays import FloatArray
from rejoint.estimation.data import Data
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.priors import (
    best_concentrations,
    first_concentrations,
    log_hyperprior,
    make_prior,
)
from rejoint.model import Layout, Model
from rejoint.solver.solver import Limits


@dataclass(frozen=True)
class VariationalState:
    """Posterior pseudo-counts (1 + L, F), weights first, and the concentrations of the priors."""

    layout: Layout
    counts: FloatArray
    concentrations: FloatArray
    objective: float = np.inf
    residual: float = np.inf

    @property
    def model(self) -> Model:
        """Posterior mean of weights and factors."""
        weights = self.counts[0] / self.counts[0].sum()
        return Model(self.layout, weights, self.layout.normalize(self.counts[1:]))


@dataclass(frozen=True)
class Variational:
    """Variational Bayes with concentrations chosen by the evidence.

    Parameters
    ----------
    pseudo_count : float
        Pseudo-count of each class; below one, classes that are not needed vanish.
    limits : Limits
        When to stop; ``progress`` is relative to the evidence.
    policy : Policy
        Numbers of the hyperprior.

    Examples
    --------
    >>> import rejoint as rj
    >>> data = rj.datasets.asia().sample(500, random_state=0)
    >>> result = rj.estimate(data, rank=2, solver=Variational(), random_state=0)
    >>> result.pmf.rank
    2
    """

    pseudo_count: float = 1.0
    limits: Limits = field(default=Limits(max_steps=400, progress=1e-6, window=10, exact=-1.0))
    policy: Policy = field(default=DEFAULT, repr=False)
    name: str = field(default="variational", init=False)

    def init(self, problem: Data, model: Model) -> VariationalState:
        """Posterior after one pass at a first model."""
        concentrations = first_concentrations(problem, self.policy)
        prior = make_prior(problem, concentrations, self.pseudo_count)
        counts = prior.stacked + problem.expect(model).counts
        return VariationalState(problem.layout, counts, concentrations)

    def step(self, problem: Data, state: VariationalState) -> VariationalState:
        """One pass, then the concentrations."""
        layout = problem.layout
        logs = expected_logs(layout, state.counts)
        found = problem.expect(Model.from_stacked(layout, np.exp(logs)))
        bound = found.log_likelihood - self.divergence(problem, state, logs)
        prior = make_prior(problem, state.concentrations, self.pseudo_count)
        columns = expected_logs(layout, found.counts + prior.stacked)[1:]
        center, unit = problem.center, problem.concentration_unit
        concentrations = best_concentrations(
            layout, state.concentrations, center, columns, unit, self.policy
        )
        prior = make_prior(problem, concentrations, self.pseudo_count)
        counts = found.counts + prior.stacked
        move = np.linalg.norm(counts - state.counts) / np.linalg.norm(counts)
        return VariationalState(layout, counts, concentrations, -bound, float(move))

    def divergence(self, problem: Data, state: VariationalState, logs: FloatArray) -> float:
        """KL divergence of the posteriors from the priors, less the log hyperprior."""
        layout = problem.layout
        made = make_prior(problem, state.concentrations, self.pseudo_count)
        prior = np.broadcast_to(made.stacked, state.counts.shape)
        # The weights are one column of F numbers, each factor F columns of I_n.
        blocks = (state.counts, prior, logs)
        total = dirichlet_divergence(Layout((len(prior[0]),)), *(b[0] for b in blocks))
        total += dirichlet_divergence(layout, *(block[1:] for block in blocks))
        hyper = log_hyperprior(state.concentrations, problem.concentration_unit, self.policy)
        return total - float(np.sum(hyper))


def estimate_concentrations(data: Data, model: Model, policy: Policy) -> FloatArray:
    """Concentrations of the priors after some variational steps from a model."""
    solver = Variational(policy=policy)
    state = solver.init(data, model)
    for _ in range(policy.concentration_steps):
        before, state = state, solver.step(data, state)
        if np.allclose(before.concentrations, state.concentrations, rtol=1e-3):
            break
    return state.concentrations


def expected_logs(layout: Layout, counts: FloatArray) -> FloatArray:
    """``E[log w]`` and ``E[log A]`` under the posteriors, (1 + L, F)."""
    head = digamma(counts[0]) - digamma(counts[0].sum())
    body = digamma(counts[1:]) - layout.expand(digamma(layout.sums(counts[1:])))
    return np.vstack([head, body])


def dirichlet_divergence(
    layout: Layout, posterior: FloatArray, prior: FloatArray, logs: FloatArray
) -> float:
    """KL(Dirichlet(posterior) || Dirichlet(prior)), summed over columns of all variables."""
    heads = gammaln(layout.sums(posterior)) - gammaln(layout.sums(prior))
    cells = gammaln(prior) - gammaln(posterior) + (posterior - prior) * logs
    return float(np.sum(heads) + np.sum(cells))
