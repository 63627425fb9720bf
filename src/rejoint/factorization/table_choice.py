"""Choice between low rank and maximum entropy for tables of a sample.

It is a log-linear model whose interactions have an estimated prior, or a mixture of few classes,
whichever makes the tables more probable; or the mean of both.
"""

from dataclasses import dataclass, replace
from math import exp, prod

import numpy as np

from rejoint.factorization.log_linear import Effects, LogLinear, fit_log_linear
from rejoint.factorization.max_entropy import (
    independent_model,
    make_completion_problem,
    start_completion,
)
from rejoint.factorization.pooled_tables import pool_effects
from rejoint.factorization.rank_evidence import RankEvidence, RankSearch, SmoothedTables
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
    share = 0.0 if best is None else share_of_classes(best, rival)
    if best is not None and share == 1.0:
        rank = best.model.rank
        text = (
            f"{plural(rank, 'class', 'classes')} make the tables more probable than interactions "
            f"of few variables do, by a factor of e^{evidence[rank]:.3g}."
        )
        return TableChoice(search.finish(best), rank, text, log_linear, evidence)
    choice = _choose_interactions(log_linear, evidence, share)
    if best is None or share == 0.0:
        return choice
    classes = search.finish(best)
    weights = np.concatenate([(1.0 - share) * choice.model.weights, share * classes.weights])
    factors = np.hstack([choice.model.factors, classes.factors])
    return replace(choice, model=Model(classes.layout, weights, factors), members=2)


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


def share_of_classes(best: RankEvidence, rival: float) -> float:
    """Share of a low rank in the mean of it and of a log-linear model."""
    odds = (best.evidence - rival + POLICY.undervalued) / POLICY.evidence_spread
    share = 1.0 / (1.0 + exp(-min(max(odds, -50.0), 50.0)))
    return float(round(share)) if min(share, 1.0 - share) < POLICY.least_share else share
