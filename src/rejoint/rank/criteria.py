"""Criteria of fits to all records: AIC, BIC and aBIC at the maximum likelihood, and evidence."""

from typing import Any

import numpy as np
from scipy.special import gammaln

from rejoint.estimation.data import InMemory
from rejoint.estimation.em import Em
from rejoint.estimation.policy import Policy
from rejoint.estimation.priors import first_prior
from rejoint.estimation.starts import fit_rank, independence, widen
from rejoint.estimation.variational import Variational
from rejoint.model import Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.rank.selection import CriterionText, RankCriterion
from rejoint.solver.run import run
from rejoint.solver.solver import Limits


def largest_rank(data: InMemory) -> int:
    """Largest rank of use: the joint needs no more, or each record has its own class."""
    cells, records = 1, count_records(data)
    for size in sorted(data.layout.levels)[:-1]:
        cells = min(cells * size, records)
    return max(cells, 1)


def count_records(data: InMemory) -> int:
    """Number of records; of copies, where weights count them."""
    if data.records.counts_copies:
        return int(data.total)
    return len(data.observations().records.weight)


def information_criteria(
    log_likelihood: float, parameters: int, records: float
) -> dict[str, float]:
    """AIC, BIC and the sample-size adjusted BIC; lower is better.

    Examples
    --------
    >>> information_criteria(-100.0, 5, 1000)["aic"]
    210.0
    """
    prices = {"aic": 2.0, "bic": np.log(records), "abic": np.log((records + 2.0) / 24.0)}
    return {name: -2.0 * log_likelihood + each * parameters for name, each in prices.items()}


def relative_entropy(data: InMemory, model: Model) -> tuple[float, float]:
    """Log-likelihood of a model, and how certain it is of the classes of the records.

    The second is ``1 - H / (n log F)``, where ``H`` adds up the entropies of the classes of the
    records: 1 where all are classified with certainty, 0 where nothing is known, NaN for one
    class. The expected log-probability of records and classes together falls short of the
    log-likelihood by ``H``.

    Examples
    --------
    >>> import rejoint as rj
    >>> from rejoint.estimation.data import InMemory
    >>> data = InMemory.of(rj.Records.of({"a": ["x", "y", "y"], "b": ["x", "y", "y"]}))
    >>> relative_entropy(data, Model.of([0.3, 0.7], [np.eye(2)] * 2))[1]
    1.0
    """
    found = data.expect(model)
    together = float(np.sum(found.counts * np.log(np.maximum(model.stacked, 1e-300))))
    if model.rank == 1:
        return found.log_likelihood, np.nan
    entropy = max(found.log_likelihood - together, 0.0)
    return found.log_likelihood, float(1.0 - entropy / (data.total * np.log(model.rank)))


class InformationCriterion(RankCriterion):
    """AIC, BIC or aBIC of fits of growing rank, each also from the classes of the one below.

    Parameters
    ----------
    criterion : {"aic", "bic", "abic"}
        The one that chooses; the table has all.
    data : Data
        All records.
    solver : object
        What maximizes the likelihood.
    n_init : int, optional
        Starts of each rank; as many as :func:`rejoint.estimate` takes by default.
    policy : Policy
    """

    def __init__(
        self, criterion: str, data: InMemory, solver: Any, n_init: int | None, policy: Policy
    ) -> None:
        name = "aBIC" if criterion == "abic" else criterion.upper()
        measure = CriterionText(name, "2", f"2 in {name}", -2.0 * data.total)
        if criterion == "evidence":
            name = "lower bound of the log-evidence"
            measure = CriterionText(name, "one nat", "one nat", data.total)
        super().__init__(criterion, measure, 1.0 / data.total, largest_rank(data))
        self.data, self.solver, self.n_init, self.policy = data, solver, n_init, policy
        self.models: dict[int, Model] = {}

    def fit(self, rank: int) -> float:
        """Minus half of the criterion per record."""
        data = self.data
        value, entropy = relative_entropy(data, self.maximize(rank))
        parameters = data.layout.parameters(rank)
        prices = information_criteria(value, parameters, data.total)
        counts = {"log_likelihood": value, "parameters": float(parameters)}
        self.columns[rank] = counts | prices | {"entropy": entropy}
        return -prices[self.criterion] / 2.0 / data.total

    def maximize(self, rank: int) -> Model:
        """Fit a rank, also from the model of the one below."""
        below, known = max((r for r in self.models if r < rank), default=None), []
        if below is not None:
            rng = self.session.rng
            known.append(widen(self.data, self.models[below], rank, rng, self.policy))
        done = fit_rank(self.data, rank, self.solver, known, self.n_init, self.session, self.policy)
        self.models[rank] = done.model
        return done.model

    def pmf(self, rank: int) -> LowRankPMF:
        """A rank that was fitted, as a model, largest class first."""
        return self.data.to_pmf(self.models[rank].sorted())


class EvidenceBound(InformationCriterion):
    """Lower bound of the log-evidence of variational Bayes, for all orders of the classes."""

    def fit(self, rank: int) -> float:
        """Bound per record; each of the F! orders of the classes adds the same."""
        data, policy = self.data, self.policy
        # Variational steps are slow on the plateaus that accelerated EM has crossed already.
        solver = Variational(limits=self.solver.limits, policy=policy)
        done = run(solver, data, self.maximize(rank), self.session)
        bound = -done.objective + float(gammaln(rank + 1.0))
        self.columns[rank] = {"evidence": bound}
        return bound / data.total


def brief_em(data: InMemory, policy: Policy) -> Em:
    """EM with a prior, precise enough to tell ranks apart."""
    even = -data.expect(independence(data)).log_likelihood
    limits = Limits(500, progress=policy.rank_nats / max(even, 1.0), window=10, exact=-1.0)
    return Em(first_prior(data, policy), limits=limits, policy=policy)
