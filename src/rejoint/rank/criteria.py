"""Criteria of fits to all records: AIC, BIC and aBIC at the maximum likelihood, and evidence."""

from typing import Any

import numpy as np
from scipy.special import gammaln

from rejoint.estimation.data import Data
from rejoint.estimation.em import Em
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.priors import first_prior
from rejoint.estimation.starts import fit_rank, independence, widen
from rejoint.estimation.variational import Variational
from rejoint.model import Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.rank.selection import CriterionTable, CriterionText, RankCriterion
from rejoint.solver.run import run
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits


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


def relative_entropy(data: Data, model: Model) -> tuple[float, float]:
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
    """AIC, BIC or aBIC of fits of growing rank, each also from the next smaller and larger ones.

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
    cap : int
        Largest rank.
    session : Session
    policy : Policy
    """

    def __init__(
        self,
        criterion: str,
        data: Data,
        solver: Any,
        n_init: int | None,
        cap: int,
        session: Session,
        policy: Policy = DEFAULT,
    ) -> None:
        name = {"aic": "AIC", "bic": "BIC", "abic": "aBIC"}.get(criterion, criterion)
        measure = CriterionText(name, "2", f"2 in {name}", -2.0 * data.total)
        super().__init__(criterion, measure, 1.0 / data.total, cap)
        self.data, self.solver, self.n_init = data, solver, n_init
        self.session, self.policy = session, policy
        self.models: dict[int, Model] = {}
        self.found: dict[int, dict[str, float]] = {}

    def fit(self, rank: int) -> float:
        """Minus half of the criterion per record."""
        data = self.data
        model = self.follow(rank)
        value, entropy = relative_entropy(data, model)
        parameters = data.layout.parameters(rank)
        prices = information_criteria(value, parameters, data.total)
        found = {"log_likelihood": value, "parameters": float(parameters)}
        self.found[rank] = found | prices | {"entropy": entropy}
        return -prices[self.criterion] / 2.0 / data.total

    def follow(self, rank: int) -> Model:
        """Fit a rank, also from the neighbors that are there."""
        rng, policy = self.session.rng, self.policy
        below = max((r for r in self.models if r < rank), default=None)
        known = []
        if below is not None:
            known.append(widen(self.data, self.models[below], rank, rng, policy))
        done = fit_rank(self.data, rank, self.solver, known, self.n_init, self.session, policy)
        self.models[rank] = done.model
        return done.model

    def pmf(self, rank: int) -> LowRankPMF:
        """A rank that was fitted, as a model, largest class first."""
        return self.data.to_pmf(self.models[rank].sorted())

    def table(self) -> CriterionTable:
        """The criteria of all ranks so far."""
        ranks = tuple(sorted(self.found))
        names = self.found[ranks[0]]
        columns = {name: np.array([self.found[rank][name] for rank in ranks]) for name in names}
        return CriterionTable(ranks, columns)


class EvidenceBound(InformationCriterion):
    """Lower bound of the log-evidence of variational Bayes, for all orders of the classes."""

    def __init__(
        self,
        data: Data,
        n_init: int | None,
        cap: int,
        session: Session,
        policy: Policy = DEFAULT,
    ) -> None:
        solver = brief_em(data, policy)
        super().__init__("evidence", data, solver, n_init, cap, session, policy)
        self.measure = CriterionText(
            "lower bound of the log-evidence", "one nat", "one nat", data.total
        )

    def fit(self, rank: int) -> float:
        """Bound per record; each of the F! orders of the classes adds the same."""
        data, policy = self.data, self.policy
        # Variational steps are slow on the plateaus that accelerated EM has crossed already.
        solver = Variational(limits=brief_limits(data, policy), policy=policy)
        done = run(solver, data, self.follow(rank), self.session)
        bound = -done.objective + float(gammaln(rank + 1.0))
        self.found[rank] = {"evidence": bound}
        return bound / data.total


def brief_limits(data: Data, policy: Policy) -> Limits:
    """When to stop a fit that is precise enough to tell ranks apart."""
    even = -data.expect(independence(data)).log_likelihood
    return Limits(500, progress=policy.rank_nats / max(even, 1.0), window=10, exact=-1.0)


def brief_em(data: Data, policy: Policy) -> Em:
    """EM with a prior, precise enough to tell ranks apart."""
    return Em(first_prior(data, policy), limits=brief_limits(data, policy), policy=policy)
