"""Criteria of the rank and the search by them: AIC, BIC, aBIC, evidence of fits to all records."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from math import inf, isnan
from typing import Any

import numpy as np
from scipy.special import gammaln

from rejoint.estimation.data import InMemory
from rejoint.estimation.em import Em
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.priors import first_prior
from rejoint.estimation.starts import fit_rank, independence, widen
from rejoint.estimation.variational import Variational
from rejoint.messages import Countdown
from rejoint.model import Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.rank.selection import CriterionTable, CriterionText, Selection, describe_selection
from rejoint.solver.run import run
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits


class RankCriterion(ABC):
    """Scores ranks, with the error of their differences, and chooses which ones to score.

    Parameters
    ----------
    criterion : str
        What is scored.
    measure : CriterionText
        The criterion as sentences name it.
    slack : float
        Scores that differ by no more are treated as equal: one nat over all records.
    cap : int
        Largest rank of use.
    """

    policy = DEFAULT
    session: Session

    def __init__(self, criterion: str, measure: CriterionText, slack: float, cap: int) -> None:
        self.criterion, self.measure, self.slack, self.cap = criterion, measure, slack, cap
        self.scores: dict[int, float] = {}
        self.columns: dict[int, dict[str, float]] = {}  # of the table, by rank

    @abstractmethod
    def fit(self, rank: int) -> float:
        """Fit a rank and return its score."""

    @abstractmethod
    def pmf(self, rank: int) -> LowRankPMF:
        """The model of a rank that was fitted."""

    def error(self, chosen: int, other: int) -> float:
        """By how much two scores may differ by chance; at least ``slack``, zero for one rank."""
        return 0.0 if chosen == other else self.slack

    def choose(self) -> int:
        """The smallest rank whose score is the best but for ``slack``."""
        least = max(self.scores.values()) - self.slack
        return min(rank for rank, score in self.scores.items() if score >= least)

    def ending(self, chosen: int) -> str:
        """What to add to the sentence about the rank chosen."""
        if chosen == max(self.scores) < self.cap:
            return "It is the largest that was tried: larger ones may be better."
        return ""

    def is_past_best(self, rank: int) -> bool:
        """Whether a rank larger than those so far need not be tried."""
        best = self.choose()
        return sum(other > best for other in self.scores) >= self.policy.flat_ranks

    def next_between(self) -> int | None:
        """Next rank to try, in the wider gap beside the best; None if both are closed."""
        best = self.choose()
        below = max((rank for rank in self.scores if rank < best), default=best)
        above = min((rank for rank in self.scores if rank > best), default=best)
        gap, low = max((above - best, best), (best - below, below))
        return None if gap <= max(1.0, self.policy.rank_gap * best) else low + gap // 2

    def conclude(self, interrupted: bool = False) -> Selection:
        """Choose a rank by its score, find the ranks that tie with it, and describe both."""
        chosen, ranks = self.choose(), tuple(sorted(self.scores))
        scores = np.array([self.scores[rank] for rank in ranks])
        errors = np.array([self.error(chosen, rank) for rank in ranks])
        near = self.scores[chosen] - errors <= scores  # in this order, so that -inf is near -inf
        tied = tuple(rank for rank, close in zip(ranks, near, strict=True) if close)
        end = "The search was interrupted: other ranks may be better."
        end = end if interrupted else self.ending(chosen)
        words = f"{describe_selection(chosen, self.scores, tied, self.measure)} {end}".rstrip()
        names = self.columns[ranks[0]] if self.columns else ()
        columns = {name: np.array([self.columns[r][name] for r in ranks]) for name in names}
        result = (chosen, ranks, scores, errors, tied, self.criterion, words, self.pmf(chosen))
        return Selection(*result, interrupted, table=CriterionTable(ranks, columns))


def search_ranks(
    criterion: RankCriterion, ranks: Sequence[int] | None, session: Session
) -> Selection:
    """Score the ranks given, or growing ones until these are enough, then those between.

    An interrupted search offers a selection of what was scored.
    """
    wanted = list(ranks or ranks_to_try(criterion.cap, criterion.policy))
    countdown = Countdown(float(sum(wanted)))

    def score(rank: int, which: str) -> None:
        head = f"rank {rank}, {which}"
        session.report(head)
        criterion.session = session.reporting(lambda line: session.report(f"{head}: {line}"))
        value = criterion.fit(rank)
        criterion.scores[rank] = -inf if isnan(value) else value
        session.offer(lambda: criterion.conclude(interrupted=True), certain=True)

    for number, rank in enumerate(wanted):
        if not ranks and criterion.scores and criterion.is_past_best(rank):
            break
        left = countdown.tell(float(sum(wanted[:number])))
        score(rank, f"{number + 1} of {'' if ranks else 'at most '}{len(wanted)}{left}")
    while not ranks and (middle := criterion.next_between()) is not None:
        score(middle, "between those tried")
    criterion.session = session
    return criterion.conclude()


def ranks_to_try(cap: int, policy: Policy = DEFAULT) -> Iterator[int]:
    """Ranks in growing order, each about half as large again as the one before, up to a cap.

    One that is just below the cap is left out: it costs nearly as much and tells little more.
    """
    rank = 1
    while rank < cap / (1.25 if rank > 12 else 1.0):
        yield rank
        rank = max(rank + 1, round(policy.rank_ratio * rank))
    yield cap


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
    """AIC, BIC and the sample-size adjusted BIC; lower is better."""
    prices = {"aic": 2.0, "bic": np.log(records), "abic": np.log((records + 2.0) / 24.0)}
    return {name: -2.0 * log_likelihood + each * parameters for name, each in prices.items()}


def relative_entropy(data: InMemory, model: Model) -> tuple[float, float]:
    """Log-likelihood of a model, and how certain it is of the classes of the records.

    The second is ``1 - H / (n log F)``, where ``H`` adds up the entropies of the classes of the
    records: 1 where all are classified with certainty, 0 where nothing is known, NaN for one
    class. The expected log-probability of records and classes together falls short of the
    log-likelihood by ``H``.
    """
    sums = data.expect(model)
    together = float(np.sum(sums.counts * np.log(np.maximum(model.stacked, 1e-300))))
    if model.rank == 1:
        return sums.log_likelihood, np.nan
    entropy = max(sums.log_likelihood - together, 0.0)
    return sums.log_likelihood, float(1.0 - entropy / (data.total * np.log(model.rank)))


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
        measure = CriterionText(name, "2", -2.0 * data.total)
        if criterion == "evidence":
            measure = CriterionText("lower bound of the log-evidence", "one nat", data.total)
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
