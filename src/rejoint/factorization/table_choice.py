"""Choice between low rank and maximum entropy for tables of a sample.

It is a log-linear model whose interactions have an estimated prior, or a mixture of few classes,
whichever makes the tables more probable; or the mean of both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import exp, prod

import numpy as np

from rejoint.factorization.log_linear import Effects, LogLinear, fit_log_linear
from rejoint.factorization.max_entropy import (
    Subset,
    independent_model,
    make_completion_problem,
    start_completion,
)
from rejoint.factorization.pooled_tables import pool_effects
from rejoint.factorization.rank_evidence import RankEvidence, RankSearch, SmoothedTables
from rejoint.factorization.smooth import Smooth, fit_smooth
from rejoint.factorization.table_goals import SoftGoal
from rejoint.factorization.table_policy import POLICY
from rejoint.marginals.marginals import Marginals
from rejoint.model import Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.solver.session import Session
from rejoint.text import plural


@dataclass(frozen=True, eq=False)
class TableChoice:
    """The model that tables of a sample support.

    Parameters
    ----------
    model : Model
        A mixture of few classes, or the log-linear model as a mixture, or a mean.
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
        Models that ``model`` is the mean of.
    """

    model: Model
    rank: int | None
    text: str
    log_linear: LogLinear
    evidence: dict[int, float]
    members: int = 1

    def mixed(self, share: float, model: Model) -> "TableChoice":
        """The choice with a share of another model."""
        weights = np.concatenate([(1.0 - share) * self.model.weights, share * model.weights])
        factors = np.hstack([self.model.factors, model.factors])
        mean = Model(model.layout, weights, factors)
        return replace(self, model=mean, members=self.members + 1)


def choose_for_sample(
    marginals: Marginals, session: Session, *, few_classes: bool = True
) -> TableChoice | None:
    """Choose between a low rank and a log-linear model for tables of a sample.

    None where there are no effects, too many for their covariance, or too many states. Without
    ``few_classes`` it is the log-linear model: how probable tables that contradict each other are
    says nothing about a rank.
    """
    if marginals.moments:
        return None
    used = zip(marginals.index_subsets, marginals.table_weight, strict=True)
    effects = Effects(marginals.domain.shape, [subset for subset, weight in used if weight > 0])
    if not 0 < effects.size <= POLICY.most_effects or not effects.is_countable:
        return None
    choice = _choose(marginals, effects, session, few_classes)
    if choice is not None and marginals.unknown is not None:
        # Unknown cells were filled by a first guess; the model has a better one.
        filled = marginals.filled(LowRankPMF.of_model(choice.model, marginals.domain))
        choice = _choose(filled, effects, session, few_classes) or choice
    return choice


def _choose(
    marginals: Marginals, effects: Effects, session: Session, few_classes: bool
) -> TableChoice | None:
    sample, pooled = pool_effects(marginals, effects)
    levels = effects.levels
    goals = [SoftGoal(s, np.ones(prod(levels[n] for n in s)), 1.0, 1.0) for s in effects.sets]
    problem = make_completion_problem(levels, goals)
    if problem is None:
        return None
    own = [SoftGoal((n,), share, 1.0, 1.0) for n, share in enumerate(pooled.own)]
    start = start_completion(problem, independent_model(levels, own))
    session.report("estimating how strong interactions are")

    def offer(model: LogLinear) -> None:
        session.offer(lambda: _choose_interactions(model, {}), certain=True)

    by_order, log_linear = fit_log_linear(sample, start, offer)
    offer(log_linear)
    if not few_classes:
        return _choose_interactions(log_linear, {})
    tables = SmoothedTables.of(pooled.tables, float(np.median(sample.records)))
    rival = max(by_order.evidence, log_linear.evidence)
    search = RankSearch(sample, tables, rival, session)
    best = search.run()
    evidence = {rank: one.evidence - rival for rank, one in sorted(search.tried.items())}
    is_partial = leaves_pairs_open(levels, marginals.index_subsets)
    share = 0.0 if best is None else share_of_classes(best, rival, is_partial=is_partial)
    if best is not None and share == 1.0:
        rank = best.model.rank
        text = (
            f"{plural(rank, 'class', 'classes')} make the tables more probable than interactions "
            f"of few variables do, by a factor of e^{evidence[rank]:.3g}."
        )
        return TableChoice(search.finish(best), rank, text, log_linear, evidence)
    choice = _choose_interactions(log_linear, evidence, share)
    if is_partial:
        session.report("averaging over what the tables leave open")
        quiet = Session(session.rng, session.report)
        smooth = fit_smooth(marginals, Smooth(), Smooth().rank(marginals), "equal", quiet).pmf
        text = (
            "Some pairs of variables are in no table, and interactions take them for independent "
            f"given the others. Models of many classes do not: {POLICY.smooth_share:.2g} of the "
            "share of interactions is theirs."
        )
        choice = choice.mixed(POLICY.smooth_share, Model.of(smooth.weights, smooth.factors))
        choice = replace(choice, text=f"{choice.text} {text}")
    if best is not None and share > 0.0:
        choice = choice.mixed(share, search.finish(best))
    return choice


def _choose_interactions(
    log_linear: LogLinear, evidence: dict[int, float], share: float = 0.0
) -> TableChoice:
    """The log-linear model; with what is said where classes are to have a share beside it."""
    text = "Interactions of few variables, each as strong as the tables say"
    if evidence:
        rank = max(evidence, key=evidence.__getitem__)
        size = f"e^{abs(evidence[rank]):.3g} compared with {rank})"
        if share:
            text += (
                f", have a share of {1.0 - share:.2g}, and classes have {share:.2g}: which of them "
                "make the tables more probable is not certain (interactions by a factor of "
                f"{'1/' * (evidence[rank] > 0)}{size}"
            )
        else:
            text += (
                ", make the tables more probable than a small number of classes does (by a factor "
                f"of {size}"
            )
    return TableChoice(log_linear.state.model, None, f"{text}.", log_linear, evidence)


def leaves_pairs_open(levels: Subset, subsets: Sequence[Subset]) -> bool:
    """Whether variables that are connected by tables are together in none."""
    varying = {n for n, size in enumerate(levels) if size > 1}
    parts = [set(subset) & varying for subset in subsets]
    reached = set(sorted(varying)[:1])
    for _ in varying:
        reached = reached.union(*(part for part in parts if part & reached))
    pairs = {pair for part in parts for pair in combinations(sorted(part), 2)}
    return reached == varying and len(pairs) < len(varying) * (len(varying) - 1) // 2


def share_of_classes(best: RankEvidence, rival: float, *, is_partial: bool) -> float:
    """Share of a low rank in the mean of it and of a log-linear model.

    Where tables leave as much open as there are classes and do not hold all pairs of variables, no
    kind of model is known to extrapolate better, and classes have a smaller share than others.
    """
    odds = (best.evidence - rival + POLICY.undervalued) / POLICY.evidence_spread
    share = 1.0 / (1.0 + exp(-min(max(odds, -50.0), 50.0)))
    if is_partial and best.open >= best.model.rank:
        share = min(share, POLICY.most_open_share)
    if min(share, 1.0 - share) < POLICY.least_share:
        return float(round(share))
    return share
