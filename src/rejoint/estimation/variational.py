"""Variational Bayes: Dirichlet posteriors of weights and columns.

The E-step is the same pass as EM's, at ``exp(E[log w])`` and ``exp(E[log A])``; the evidence
lower bound is its log-likelihood less the divergences of posteriors from priors. Classes that
the data do not need lose their weight when ``pseudo_count`` is below one.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import digamma, gammaln

from rejoint.arrays import FloatArray
from rejoint.estimation.data import Data
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.priors import first_concentrations, make_prior
from rejoint.model import Layout, Model
from rejoint.solver.solver import Limits


@dataclass(frozen=True)
class VariationalState:
    """Pseudo-counts of prior and posterior, weights first, (1 + L, F)."""

    layout: Layout
    prior: FloatArray
    counts: FloatArray
    objective: float = np.inf
    residual: float = np.inf

    @property
    def model(self) -> Model:
        """Posterior mean of weights and factors."""
        weights = self.counts[0] / self.counts[0].sum()
        return Model(self.layout, weights, self.layout.normalize(self.counts[1:]))


@dataclass(frozen=True)
class Variational:
    """Variational Bayes, with the median concentrations of the prior.

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
        counts = problem.expect(model).counts
        concentrations = first_concentrations(problem, self.policy)
        prior = make_prior(problem, concentrations, self.pseudo_count).stacked + 0.0 * counts
        return VariationalState(problem.layout, prior, counts + prior)

    def step(self, problem: Data, state: VariationalState) -> VariationalState:
        """One pass."""
        layout, prior = problem.layout, state.prior
        head = digamma(state.counts[0]) - digamma(state.counts[0].sum())
        body = digamma(state.counts[1:]) - layout.expand(digamma(layout.sums(state.counts[1:])))
        logs = np.vstack([head, body])
        sums = problem.expect(Model.from_stacked(layout, np.exp(logs)))
        # The weights are one column of F numbers, each factor F columns of I_n.
        whole = Layout((len(head),))
        parts = (state.counts, prior, logs)
        loss = dirichlet_divergence(whole, *(part[0] for part in parts))
        loss += dirichlet_divergence(layout, *(part[1:] for part in parts))
        counts = sums.counts + prior
        move = np.linalg.norm(counts - state.counts) / np.linalg.norm(counts)
        objective = loss - sums.log_likelihood
        return replace(state, counts=counts, objective=objective, residual=float(move))


def dirichlet_divergence(
    layout: Layout, posterior: FloatArray, prior: FloatArray, logs: FloatArray
) -> float:
    """KL(Dirichlet(posterior) || Dirichlet(prior)), summed over columns of all variables."""
    heads = gammaln(layout.sums(posterior)) - gammaln(layout.sums(prior))
    cells = gammaln(prior) - gammaln(posterior) + (posterior - prior) * logs
    return float(np.sum(heads) + np.sum(cells))
