"""Low rank or maximum entropy: which model tables speak for.

Exact tables: where a low rank meets them and is determined by them, that model is the answer. The
rank is read off unfoldings: the tables of two variables with each of the others, side by side, are
a matrix whose rank is at most that of the model.

Tables of a sample: a log-linear model whose interactions have an estimated prior, or a mixture of
few classes, whichever makes the tables more probable.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod

import numpy as np

from rejoint.factorization.effects import Effects, Subset
from rejoint.factorization.fit_tables import as_pmf, fit_tables
from rejoint.factorization.log_linear import LogLinear, Sample, fit_log_linear, keep_zeros
from rejoint.factorization.low_rank_evidence import (
    RankEvidence,
    SmoothedTables,
    average_models,
    fit_rank,
    weigh_rank,
)
from rejoint.factorization.max_entropy import (
    independent_model,
    make_completion_problem,
    start_completion,
)
from rejoint.factorization.pool_tables import pool_effects
from rejoint.factorization.table_goals import Near
from rejoint.factorization.table_policy import POLICY
from rejoint.identifiability.model_verdict import certificate_of
from rejoint.marginals.marginals import Marginals
from rejoint.model import FloatArray, Layout, Model
from rejoint.solver.result import FitResult
from rejoint.solver.session import Session
from rejoint.text import plural


@dataclass(frozen=True)
class Identified:
    """A fit of low rank that meets exact tables, and the certificate that it is the only one."""

    result: FitResult
    certificate: str


def find_identified(marginals: Marginals, session: Session) -> Identified | None:
    """Return the low-rank model that exact tables determine; None where there is none.

    Examples
    --------
    >>> import rejoint as rj
    >>> truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    >>> tables = rj.Marginals.from_pmf(truth, order=3)
    >>> found = find_identified(tables, Session(np.random.default_rng(0)))
    >>> found.result.pmf.rank, rj.metrics.tensor_error(truth, found.result.pmf) < 1e-10
    (2, True)
    """
    if marginals.unknown is not None or marginals.rounding.any() or marginals.moments:
        return None
    rank = read_rank(marginals)
    if rank is None or rank < 2:
        return None
    # Without numbers of records the tables are exact: no stage ends where chance might be left.
    exact = replace(marginals, counted=np.zeros(len(marginals), dtype=bool))
    result = fit_tables(exact, rank, "auto", Session(session.rng, session.report), n_init=5)
    if max(result.misfits.values()) > POLICY.identified_met:
        return None
    certificate = certificate_of(result.pmf, marginals)
    return None if certificate is None else Identified(result, certificate)


def read_rank(marginals: Marginals) -> int | None:
    """Return the rank of the unfoldings of tables; None where they could be of any rank.

    The rank is the largest of the unfoldings of all pairs of variables. It says something where it
    is below what the sizes of the tables allow, and where a model of that rank has fewer parameters
    than the tables have independent numbers.

    Examples
    --------
    >>> import rejoint as rj
    >>> truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    >>> read_rank(rj.Marginals.from_pmf(truth, order=3))
    2
    >>> read_rank(rj.Marginals.from_pmf(truth, order=2)) is None
    True
    """
    levels = marginals.domain.shape
    largest, possible = 0, 0
    for pair, parts in _unfold(marginals):
        columns, matrix = 1, []
        for rest, table in parts.items():
            matrix.append(table)
            columns += prod(levels[n] - 1 for n in rest)
        values = np.linalg.svd(np.hstack(matrix), compute_uv=False)
        rank = int((values > POLICY.rank_zero * values[0]).sum())
        most = min(prod(levels[n] for n in pair), columns)
        if (rank, most) > (largest, possible):
            largest, possible = rank, most
    equations = Effects(levels, marginals.index_subsets).size
    parameters = Layout(levels).parameters(max(largest, 1))
    return largest if 0 < largest < possible and parameters < equations else None


def _unfold(marginals: Marginals) -> Iterator[tuple[Subset, dict[Subset, FloatArray]]]:
    """For each pair of variables, tables of both with sets of others that a table holds."""
    found: dict[Subset, dict[Subset, FloatArray]] = {}
    for i, subset in enumerate(marginals.index_subsets):
        if len(subset) < 3 or marginals.table_weight[i] <= 0:
            continue
        table = marginals.shares(i)
        for pair in combinations(range(len(subset)), 2):
            names = subset[pair[0]], subset[pair[1]]
            others = [axis for axis in range(len(subset)) if axis not in pair]
            for order in range(1, len(others) + 1):
                for kept in combinations(others, order):
                    gone = tuple(axis for axis in others if axis not in kept)
                    part = np.moveaxis(table.sum(axis=gone, keepdims=True), pair, (0, 1))
                    flat = part.reshape(part.shape[0] * part.shape[1], -1)
                    rest = tuple(subset[axis] for axis in kept)
                    found.setdefault(names, {}).setdefault(rest, flat)
    yield from found.items()


@dataclass(frozen=True, eq=False)
class TableChoice:
    """The model that tables of a sample speak for.

    Parameters
    ----------
    model : Model
        A mixture of few classes, or the log-linear model as a mixture.
    rank : int or None
        Number of classes, where a low rank was chosen.
    text : str
        Why, in one sentence.
    log_linear : LogLinear
        The log-linear model, whichever was chosen.
    evidence : dict
        For each rank that was tried how much more probable it makes the tables than the log-linear
        model does, as a logarithm.
    members : int
        Models of that rank that ``model`` is the mean of, where the tables leave the rank open.
    """

    model: Model
    rank: int | None
    text: str
    log_linear: LogLinear
    evidence: dict[int, float]
    members: int = 1


def choose_for_noisy(
    marginals: Marginals, session: Session, *, few_classes: bool = True
) -> TableChoice | None:
    """Choose between a low rank and a log-linear model for tables of a sample.

    None where there are no effects, too many for their covariance, or too many states. Without
    ``few_classes`` it is the log-linear model: how probable tables that contradict each other are
    says nothing about a rank.

    Examples
    --------
    >>> import rejoint as rj
    >>> columns = [[0.7, 0.1, 0.2], [0.2, 0.1, 0.6], [0.1, 0.8, 0.2]]
    >>> truth = rj.LowRankPMF([0.3, 0.3, 0.4], [columns] * 5)
    >>> tables = rj.Marginals.count(truth.sample(5000, random_state=0), order=3)
    >>> choose_for_noisy(tables, Session(np.random.default_rng(0))).rank
    3
    """
    if marginals.moments:
        return None
    effects = Effects(marginals.domain.shape, _used(marginals))
    if not 0 < effects.size <= POLICY.most_effects or not effects.is_countable:
        return None
    choice = _choose(marginals, effects, session, few_classes)
    if choice is not None and marginals.unknown is not None:
        # Unknown cells were filled by a first guess; the model has a better one.
        filled = marginals.filled(as_pmf(choice.model, marginals))
        choice = _choose(filled, effects, session, few_classes) or choice
    return choice


def _used(marginals: Marginals) -> list[Subset]:
    return [
        s for s, w in zip(marginals.index_subsets, marginals.table_weight, strict=True) if w > 0
    ]


def _choose(
    marginals: Marginals, effects: Effects, session: Session, few_classes: bool
) -> TableChoice | None:
    sample, pooled = pool_effects(marginals, effects)
    levels = effects.levels
    goals = [Near(s, np.ones(prod(levels[n] for n in s)), 1.0, 1.0) for s in effects.sets]
    problem = make_completion_problem(levels, goals)
    if problem is None:
        return None
    own = independent_model(levels, [Near((n,), s, 1.0, 1.0) for n, s in enumerate(pooled.own)])
    session.report("estimating how strong interactions are")
    by_order, each = fit_log_linear(sample, start_completion(problem, own))
    kept = keep_zeros(each, pooled.tables)
    chosen = each if kept is None else kept
    session.offer(lambda: _completion_choice(chosen, {}))
    if not few_classes:
        return _completion_choice(chosen, {})
    tables = SmoothedTables.of(pooled.tables, float(np.median(sample.records)))
    rival = max(by_order.evidence, each.evidence, chosen.evidence)
    search = RankSearch(sample, tables, rival, session)
    best = search.run()
    found = {rank: one.evidence - rival for rank, one in sorted(search.tried.items())}
    if best is None:
        return _completion_choice(chosen, found)
    return _low_rank_choice(best.model.rank, search.finish(best), chosen, found)


def _completion_choice(each: LogLinear, found: dict[int, float]) -> TableChoice:
    text = "Interactions of few variables, each as strong as the tables say"
    if found:
        rank = max(found, key=lambda r: found[r])
        text += (
            ", make the tables more probable than a small number of classes does (by a factor of "
            f"e^{-found[rank]:.3g} compared with {rank})"
        )
    return TableChoice(each.state.model, None, f"{text}.", each, found)


def _low_rank_choice(
    rank: int, model: Model, each: LogLinear, found: dict[int, float]
) -> TableChoice:
    text = (
        f"{plural(rank, 'class', 'classes')} make the tables more probable than interactions of "
        f"few variables do, by a factor of e^{found[rank]:.3g}."
    )
    members = model.rank // rank
    if members > 1:
        text += (
            " The tables leave open which classes these are: the model is the mean of "
            f"{members} such models."
        )
    return TableChoice(model, rank, text, each, found, members)


class RankSearch:
    """Finds the rank of largest evidence: doubled ranks first, then those between.

    Parameters
    ----------
    sample : Sample
        The effects.
    tables : SmoothedTables
        The tables.
    rival : float
        Evidence that a rank must exceed.
    session : Session
        Randomness and progress.
    """

    def __init__(
        self, sample: Sample, tables: SmoothedTables, rival: float, session: Session
    ) -> None:
        self.sample, self.tables, self.rival, self.session = sample, tables, rival, session
        self.tried: dict[int, RankEvidence] = {}
        self.per_class = tables.layout.parameters(2) - tables.layout.parameters(1)
        most = POLICY.most_parameters * sample.effects.size
        self.largest = int((most + 1) // self.per_class)
        self.records = float(np.median(sample.records))

    def run(self) -> RankEvidence | None:
        """The best rank, None where none exceeds the rival."""
        rank = 2
        while rank <= self.largest and self._is_worth(rank):
            self.weigh(rank)
            rank *= 2
        if rank > self.largest > 2 and self._is_worth(self.largest):
            self.weigh(self.largest)
        if not self.tried or not self._is_near():
            return None
        self._climb()
        best = self.best
        return best if best.evidence > self.rival else None

    @property
    def best(self) -> RankEvidence:
        """The rank of largest evidence so far."""
        return max(self.tried.values(), key=lambda one: one.evidence)

    def weigh(self, rank: int) -> float:
        """Evidence of a rank."""
        if rank not in self.tried:
            self.session.report(f"weighing rank {rank} against a log-linear model")
            below = [one.model for r, one in self.tried.items() if r < rank]
            start = max(below, key=lambda model: model.rank, default=None)
            model = fit_rank(self.tables, rank, self.records, self.session, start)
            self.tried[rank] = weigh_rank(self.sample, model)
        return self.tried[rank].evidence

    def finish(self, found: RankEvidence) -> Model:
        """The rank that was chosen, with more steps; the mean of several where it is open."""
        members = [found]
        for _ in range(POLICY.open_members if found.open else 1):
            model = fit_rank(
                self.tables,
                found.model.rank,
                self.records,
                self.session,
                starts=1 if found.open else 4,
                steps=POLICY.final_steps,
            )
            members.append(weigh_rank(self.sample, model))
        if found.open:
            return average_models(members)
        return max(members, key=lambda one: one.evidence).model

    def _is_worth(self, rank: int) -> bool:
        """Whether this rank may come near the rival, as far as smaller ones tell.

        The lag behind the rival falls at once where the rank is right; before, it shrinks faster
        with each doubling than that of a joint of no low rank.
        """
        ranks = sorted(self.tried)
        if rank <= POLICY.least_ranks or len(ranks) < 2:
            return True
        if self.tried[ranks[-1]].evidence < self.tried[ranks[-2]].evidence:
            return False
        before, last = (self.rival - self.tried[r].evidence for r in ranks[-2:])
        return bool(last <= POLICY.lag_ratio * max(before, 0.0))

    def _slack(self, rank: int, other: int) -> float:
        """Evidence that too many classes may cost: about one unit for each parameter."""
        return float(abs(rank - other) * self.per_class)

    def _is_near(self) -> bool:
        """Whether a rank between those tried may exceed the rival."""
        ranks, best = sorted(self.tried), self.best
        below = [r for r in ranks if r < best.model.rank]
        gap = self._slack(best.model.rank, below[-1] if below else 1)
        return best.evidence + gap > self.rival

    def _climb(self) -> None:
        """Try ranks between the best and its neighbors, halving the distance."""
        while True:
            ranks, rank = sorted(self.tried), self.best.model.rank
            at = ranks.index(rank)
            below = ranks[at - 1] if at else 1
            above = ranks[at + 1] if at + 1 < len(ranks) else min(2 * rank, self.largest + 1)
            new = [(below + rank) // 2, (rank + above) // 2]
            new = [r for r in new if 2 <= r <= self.largest and r not in self.tried]
            if not new:
                return
            for r in new:
                self.weigh(r)
