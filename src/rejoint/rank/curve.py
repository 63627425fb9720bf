"""Held-out search: ranks of growing size, fitted to some records and judged by the others.

There are two curves, because there are two purposes. The *mode* of a rank is one model, whose
classes can be looked at. The *ensemble* of a rank is the mean of conditional expectations of the
joint along several short chains from random starts; it predicts better, and mostly at a larger
rank, as chains average away the error of each other. Whatever judges a model has not trained it.

The cost is bounded: the search learns on a limited number of records, and ends where both curves
are flat, where the budget is spent, or at one class for ten records.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from math import ceil, inf
from typing import Any, Literal

import numpy as np
from scipy.special import entr

from rejoint.arrays import FloatArray
from rejoint.estimation.data import InMemory
from rejoint.estimation.em import Em
from rejoint.estimation.folds import Fold, make_folds
from rejoint.estimation.gibbs import Bayes, Draw, pass_cells
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.posterior_mean import Anchors, posterior_mean, shift_to_pairs
from rejoint.estimation.priors import Prior, first_concentrations, make_prior
from rejoint.estimation.starts import fit_rank, independence, random_model, widen
from rejoint.messages import Argument, Message
from rejoint.model import Layout, Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.rank.criteria import RankCriterion, largest_rank, search_ranks
from rejoint.rank.selection import AnswerPlan, CriterionText, EnsembleCurve, Selection
from rejoint.solver.run import run
from rejoint.solver.search import search
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits
from rejoint.text import cite

FOLDS = 5  # parts that records are divided into; few of them judge where records are many

#: Passes over the records that a trial of a rank counts for, and that taking a class away does.
TRIAL_PASSES, MERGE_PASSES = 100, 25

#: Cells times classes that passes go through in a second, on a common machine.
CELLS_PER_SECOND = 3e9

#: Log-probability of a record below which a model excludes it: without a prior, EM takes the
#: probability of what it never sees to zero only in the limit.
IMPOSSIBLE = -600.0

HELD_OUT = CriterionText("held-out log-likelihood per record", "one standard error")


@dataclass(frozen=True)
class Trial:
    """One rank on one fold: the mode, and the log-probabilities of the judging records.

    ``mode_logs`` and ``ensemble_logs`` are empty where that curve has ended; ``members`` are the
    models of the ensemble, of the first fold alone.
    """

    mode: Model
    mode_logs: FloatArray
    ensemble_logs: FloatArray
    concentrations: FloatArray
    members: tuple[Model, ...] = ()

    def freeze(self) -> dict[str, Any]:
        """Return the trial as a checkpoint keeps it."""
        return {
            "levels": list(self.mode.layout.levels),
            "models": np.array([model.stacked for model in (self.mode, *self.members)]),
            "mode": self.mode_logs,
            "ensemble": self.ensemble_logs,
            "concentrations": self.concentrations,
        }

    @classmethod
    def thaw(cls, entry: Mapping[str, Any]) -> "Trial":
        """Return the trial that was kept."""
        layout = Layout(tuple(entry["levels"]))
        mode, *members = (Model.from_stacked(layout, each) for each in entry["models"])
        logs = entry["mode"], entry["ensemble"], entry["concentrations"]
        return cls(mode, *logs, tuple(members))


@dataclass(frozen=True)
class Task:
    """A rank to try on one fold: what a worker needs.

    Parameters
    ----------
    fold : Fold
        Records to learn from, and others.
    rank : int
        Number of classes.
    seed : tuple of int
    fingerprint : str
        What tells the data from others, for a checkpoint.
    warm : Trial, optional
        A smaller rank on the same fold, whose mode is widened as one candidate.
    mode, ensemble : bool
        Which of the two is wanted.
    """

    fold: Fold = field(compare=False)
    rank: int
    seed: tuple[int, ...]
    fingerprint: str
    warm: Trial | None = field(default=None, compare=False)
    mode: bool = True
    ensemble: bool = True

    def alone(self) -> "Task":
        """Return a copy for a worker: one thread."""
        return replace(self, fold=self.fold.alone())


def try_rank(
    problem: Any, task: Task, number: int, session: Session, key: str, *, policy: Policy
) -> Trial:
    """Fit a rank to the learning records of a fold by chains, and judge it by the others."""
    rank, warm, learn, judge = task.rank, task.warm, task.fold.learn, task.fold.judge
    rng, none = np.random.default_rng(task.seed), np.empty(0)
    first = first_concentrations(learn, policy) if warm is None else warm.concentrations
    if rank == 1:
        logs = judge.log_prob(independence(learn))
        return Trial(independence(learn), logs, logs, first, (independence(learn),))
    starts = [random_model(learn, rank, rng) for _ in range(policy.trial_chains)]
    if warm is not None and task.mode:
        starts.append(widen(learn, warm.mode, rank, rng, policy))
    sampler, ends, members = Bayes(policy=policy), list[Draw](), list[Model]()
    length = policy.trial_kept[-1] + 1
    for k, model in enumerate(starts):
        chain = islice(sampler.chain(learn, model, rng, first), length)
        for sweep, draw in enumerate(chain):
            session.report(f"part {number + 1}, sweep {sweep + 1} of {length}")
            # As many chains at every rank: an ensemble of more would look better by that alone.
            if task.ensemble and k < policy.trial_chains and sweep in policy.trial_kept:
                members.append(draw.mean)
        ends.append(draw)
    logs = none
    if task.ensemble:
        logs = np.logaddexp.reduce([judge.log_prob(each) for each in members], axis=0)
        logs -= np.log(len(members))
    several = tuple(members) if number == 0 else ()
    concentrations = np.median([end.concentrations for end in ends], axis=0)
    if not task.mode:
        return Trial(ends[0].mean, none, logs, concentrations, several)
    em = Em(make_prior(learn, concentrations), limits=policy.polish, policy=policy)
    best = min((end.mean for end in ends), key=lambda model: em.init(learn, model).objective)
    mode = run(em, learn, best).model
    return Trial(mode, judge.log_prob(mode), logs, concentrations, several)


def try_solver(
    problem: Any,
    task: Task,
    number: int,
    session: Session,
    key: str,
    *,
    policy: Policy,
    solver: Any,
    n_init: int | None,
) -> Trial:
    """Fit a rank to the learning records of a fold by a solver, and judge it by the others."""
    rng, warm, learn = np.random.default_rng(task.seed), task.warm, task.fold.learn
    known = [] if warm is None else [widen(learn, warm.mode, task.rank, rng, policy)]
    here = replace(session, rng=rng, executor=None)
    model = fit_rank(learn, task.rank, solver, known, n_init, here, policy).model
    logs = task.fold.judge.log_prob(model)
    logs = np.where(logs < IMPOSSIBLE, -np.inf, logs)
    return Trial(model, logs, np.empty(0), first_concentrations(learn, policy))


class Curve:
    """Held-out log-probabilities by rank, all of the judging records of the same folds."""

    def __init__(self, folds: Sequence[Fold]) -> None:
        self.logs: dict[int, FloatArray] = {}
        self.flat = 0  # ranks in a row that were no better
        self.ended = False
        self.mass = np.concatenate([fold.mass for fold in folds])
        self.spread = np.concatenate([fold.spread for fold in folds])
        self.total = float(self.mass.sum())

    def add(self, rank: int, logs: FloatArray, flat: float) -> None:
        """Add a rank; the curve ends where ``flat`` in a row are no better by a standard error."""
        before = self.best if self.logs else rank
        self.logs[rank] = logs
        gained = self.score(rank) - self.score(before) > self.error(before, rank)
        self.flat = 0 if gained or before == rank else self.flat + 1
        self.ended = self.flat >= flat

    def score(self, rank: int) -> float:
        """Mean log-probability of a record."""
        return float(self.mass @ self.logs[rank] / self.total)

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks, increasing."""
        return tuple(sorted(self.logs))

    @property
    def best(self) -> int:
        """The rank of the highest score."""
        return max(self.ranks, key=self.score)

    def error(self, one: int, other: int) -> float:
        """Standard error of the difference of two ranks; at least one nat over all records."""
        if one == other:
            return 0.0
        return max(self.paired_error(self.logs[one], self.logs[other]), 1.0 / self.total)

    def paired_error(self, one: FloatArray, other: FloatArray) -> float:
        """Standard error of the mean difference over the same records.

        It is zero where a record that one of the two excludes makes the difference infinite.
        """
        with np.errstate(invalid="ignore"):  # -inf less -inf, where zeros are allowed
            apart = np.where(one == other, 0.0, one - other)
        if np.isinf(apart).any():
            return 0.0
        middle = self.mass @ apart / self.total
        return float(np.sqrt(self.spread @ (apart - middle) ** 2) / self.total)

    def near(self, errors: float) -> list[int]:
        """Return the ranks whose score is within ``errors`` standard errors of the best."""
        best, top = self.best, self.score(self.best)
        return [r for r in self.ranks if self.score(r) >= top - errors * self.error(best, r)]


class HeldOutSearch(RankCriterion):
    """Two curves over growing ranks, and the models behind them.

    Parameters
    ----------
    data : Data
        The records.
    session : Session
        Randomness, progress, checkpoint and executor.
    policy : Policy
    seconds : float, optional
        About how long the search may take.
    parts : int
        Parts that records are divided into, each of which may judge.
    solver : object, optional
        What finds the modes; by default chains and steps of EM with a prior. There is no curve of
        ensembles then.
    n_init : int, optional
        Its starts.
    """

    def __init__(
        self,
        data: InMemory,
        session: Session,
        policy: Policy = DEFAULT,
        seconds: float | None = None,
        parts: int = FOLDS,
        solver: Any = None,
        n_init: int | None = None,
    ) -> None:
        if seconds is not None and not 0 < seconds < inf:
            raise ValueError(f"budget must be a number of seconds above 0, got {cite(seconds)}.")
        self.data, self.session, self.policy, self.solver = data, session, policy, solver
        self.follow = partial(try_rank, policy=policy)
        if solver is not None:
            self.follow = partial(try_solver, policy=policy, solver=solver, n_init=n_init)
        self.seed = int(session.rng.integers(2**62))
        folds = list(make_folds(data, parts, session.rng))
        if not folds:
            raise ValueError(
                Message(
                    "There is only one record, so none can be held out: choose the rank yourself, "
                    "or use {criterion}.",
                    criterion=Argument("criterion", "bic"),
                )
            )
        cost = TRIAL_PASSES * pass_cells(folds[0].learn, policy.mode_classes, policy)
        needed = policy.judging_records * parts / max(data.total, 1.0)
        used = ceil(min(needed, policy.fold_cells / cost))
        limits = policy.learn_rows, policy.judge_rows
        self.folds = [fold.limit(*limits, session.rng) for fold in folds[:used]]
        self.trials: dict[int, list[Trial]] = {}
        self.mode, self.ensemble = Curve(self.folds), Curve(self.folds)
        self.ensemble.ended = solver is not None
        self.flat: float = inf  # ranks in a row that are no better, after which a curve ends
        self.budget = seconds * CELLS_PER_SECOND if seconds else policy.search_cells
        self.spent, self.stop = 0.0, ""
        learn = min(fold.learn.total for fold in self.folds)
        most = min(learn / policy.records_per_class, policy.most_classes, largest_rank(data))
        super().__init__("heldout", HELD_OUT, 1.0 / self.mode.total, max(1, int(most)))

    def select(self, ranks: Sequence[int] | None, plan: bool) -> Selection:
        """Search ranks, merge classes around the best one, and plan what answers if asked to."""
        session = self.session
        self.flat = inf if ranks else self.policy.flat_ranks
        selection = search_ranks(self, ranks, session)
        if ranks is None and self.solver is None:
            self.merge_back()
            selection = self.conclude()
        if not plan:
            return selection
        session.offer(lambda: replace(selection, interrupted=True), certain=True)
        chosen = self.plan()
        return replace(selection, plan=chosen, words=f"{selection.words} {chosen.text}")

    def fit(self, rank: int) -> float:
        """Try a rank on every fold."""
        mode, ensemble = not self.mode.ended, not self.ensemble.ended
        below = max((r for r in self.trials if r < rank), default=None)
        warm = [None] * len(self.folds) if below is None else self.trials[below]
        mark = self.data.fingerprint if self.session.checkpoint.active else ""
        tasks = [
            Task(fold, rank, (self.seed, k, rank), mark, warm[k], mode, ensemble)
            for k, fold in enumerate(self.folds)
        ]
        trials = search(None, tasks, self.follow, self.session, thaw=Trial.thaw)
        self.trials[rank] = trials
        self.spent += self.cost(rank)
        if mode:
            self.mode.add(rank, np.concatenate([t.mode_logs for t in trials]), self.flat)
        if ensemble:
            self.ensemble.add(rank, np.concatenate([t.ensemble_logs for t in trials]), self.flat)
        return self.mode.score(rank) if mode else np.nan

    def cost(self, rank: int) -> float:
        """Return the cost of a trial of a rank, in cells times classes."""
        return TRIAL_PASSES * sum(pass_cells(fold.learn, rank, self.policy) for fold in self.folds)

    def is_past_best(self, rank: int) -> bool:
        """Whether both curves are flat, or the budget is spent."""
        if self.mode.ended and self.ensemble.ended:
            return True
        if self.spent + self.cost(rank) > self.budget:
            self.stop = "The search budget ended there: larger ranks may be better (budget)."
        return bool(self.stop)

    def next_between(self) -> None:
        """Gaps are closed by merging classes."""

    def choose(self) -> int:
        """Return the smallest rank whose mode is within one standard error of the best."""
        return min(self.mode.near(1.0))

    def error(self, chosen: int, other: int) -> float:
        """Standard error of the difference of two ranks."""
        return self.mode.error(chosen, other)

    def pmf(self, rank: int) -> LowRankPMF:
        """Return a model of a rank that has learned from most of the records."""
        return self.data.to_pmf(self.trials[rank][0].mode.sorted())

    def ending(self, chosen: int) -> str:
        """Say why there are no larger ranks, and how many records were used, where not all."""
        texts, rows, most = [], len(self.data.records.weight), self.policy.learn_rows
        if chosen == max(self.mode.logs) < largest_rank(self.data):
            cap = "Larger ranks would have fewer than ten records for each class."
            texts.append(self.stop or (cap if chosen == self.cap else super().ending(chosen)))
        if any(len(fold.learn.records.weight) >= most for fold in self.folds):
            texts.append(
                f"The search learned from {most:,} of the {rows:,} distinct records, drawn at "
                "random."
            )
        return " ".join(texts)

    def conclude(self, interrupted: bool = False) -> Selection:
        """Return the selection by the curves so far."""
        curve, ensemble, best = self.mode, self.ensemble, self.choose()
        self.scores = {rank: curve.score(rank) for rank in curve.ranks}
        self.columns = {
            rank: {"heldout": score, "error": self.error(best, rank)}
            for rank, score in self.scores.items()
        }
        selection = super().conclude(interrupted)
        if not ensemble.logs:
            return selection
        rank = min(ensemble.near(self.policy.ensemble_errors))
        scores = np.array([ensemble.score(tried) for tried in ensemble.ranks])
        return replace(selection, ensemble=EnsembleCurve(rank, ensemble.ranks, scores))

    def merge_back(self) -> None:
        """Merge classes one by one, from the rank tried above the choice to the second one below.

        Growing models overshoot: random starts of a rank end in poorer optima than a larger model
        whose superfluous classes are merged. So the rank below the choice is reached as well.
        """
        policy, tried, choice = self.policy, sorted(self.mode.logs), self.choose()
        if choice > policy.largest_merged:
            choice = min(self.mode.near(2.0))
        above = [choice, *(r for r in tried if r > choice)][:2]
        top = max((r for r in above if r <= policy.largest_merged), default=choice)
        bottom = [1, 1, *(r for r in tried if r < choice)][-2]
        cells = self.cost((top + bottom) // 2) * MERGE_PASSES / TRIAL_PASSES * (top - bottom)
        if cells > self.budget / 2 or top > policy.largest_merged or top <= bottom + 1:
            return
        for k, (fold, start) in enumerate(zip(self.folds, self.trials[top], strict=True)):
            prior = make_prior(fold.learn, start.concentrations)
            for model in merge_down(fold.learn, start.mode, bottom + 1, prior, policy):
                self.session.report(f"rank {model.rank}, by merging classes")
                logs = fold.judge.log_prob(model)
                trials = self.trials.setdefault(model.rank, [])
                if k == len(trials):
                    trials.append(Trial(model, logs, np.empty(0), start.concentrations))
                elif not len(trials[k].mode_logs) or fold.mass @ (logs - trials[k].mode_logs) > 0:
                    trials[k] = replace(trials[k], mode=model, mode_logs=logs)
        for rank in range(bottom + 1, top):
            self.mode.logs[rank] = np.concatenate([each.mode_logs for each in self.trials[rank]])

    def concentrations(self, rank: int) -> FloatArray:
        """Concentrations of the prior that chains of a rank have found, or of the nearest one."""
        tried = min(self.trials, key=lambda other: abs(np.log(other / rank)))
        return np.asarray(np.median([t.concentrations for t in self.trials[tried]], axis=0))

    def plan(self) -> AnswerPlan:
        """Choose what answers: chains from random starts, chains from modes, or the mode itself.

        Where the best mode is ahead of the ensemble, both are finished as an answer is, and judged
        again by the held-out records: the passes and the shift serve an ensemble more.
        """
        policy, fold = self.policy, self.folds[0]
        own, wide = self.mode.best, min(self.ensemble.near(policy.ensemble_errors))
        rank = max(wide, min(policy.fewest_chain_classes, self.cap))
        members = self.trials[wide][0].members
        anchors, logs = choose_anchors(fold, members, policy.ensemble_records, policy)
        ensemble = AnswerPlan("ensemble", rank, anchors, self.concentrations(rank))
        # One class would say that all variables are independent, beyond doubt.
        if own == 1 or self.ensemble.score(wide) > self.mode.score(own):
            return ensemble
        start = self.trials[own][0].mode
        anchors, others = choose_anchors(fold, [start], [policy.anchor_records], policy)
        curve = Curve([fold])
        gain = float(curve.mass @ (logs - others) / curve.total)
        if gain > 0.0:
            return ensemble
        by_mode = own > policy.mode_classes and gain < -2.0 * curve.paired_error(logs, others)
        kind: Literal["mode", "modes"] = "mode" if by_mode else "modes"
        return AnswerPlan(kind, own, anchors, self.concentrations(own), start)


def choose_anchors(
    fold: Fold, members: Sequence[Model], weights: Sequence[float], policy: Policy = DEFAULT
) -> tuple[Anchors, FloatArray]:
    """Choose how near what answers stays to the mean of some models, by held-out records.

    Of the weights of the mean the best is taken; of those of the model that is moved towards
    tables, decreasing ones so long as the likelihood of the held-out records is not lowered; blocks
    are in place, unless these records are less probable by those that were found last. The
    log-probabilities of these are returned as well.
    """
    learn, judge, mass = fold.learn, fold.judge, fold.mass
    most, passes = round(policy.answer_classes[0] * members[-1].rank), policy.anchored_passes
    means = [posterior_mean(learn, members, members[-1], most, passes, each) for each in weights]
    logs = [judge.log_prob(mean) for mean in means]
    best = int(np.argmax([mass @ each for each in logs]))
    pairs = sorted(policy.pair_anchors, reverse=True) if policy.agreement else []
    chosen, reached, start = policy.pair_anchors[0], logs[best], logs[best]
    draws = [learn.observed(member) for member in members]
    for k, shifted in enumerate(shift_to_pairs(learn, means[best], draws, pairs, policy)):
        found = judge.log_prob_of(shifted.mixture)
        if not k:
            start = judge.log_prob_of(shifted.blocks.add_to(means[best]))
        elif mass @ (found - start) < 0.0:
            break
        chosen, reached, last = pairs[k] if pairs else chosen, found, shifted.model
    gain = mass @ (reached - judge.without_blocks.log_prob(last)) / mass.sum()
    if policy.blocks == "auto" and judge.blocks is None and gain < 0.0:
        plain, reached = choose_anchors(fold, members, weights, replace(policy, blocks=False))
        return replace(plain, blocks=float(gain)), reached
    return Anchors(weights[best], chosen * learn.total, float(gain)), reached


# --- merging classes ------------------------------------------------------------------------------


def merge_down(
    data: InMemory, model: Model, bottom: int, prior: Prior, policy: Policy = DEFAULT
) -> Iterator[Model]:
    """Models of one class less each, down to a rank: the cheapest pairs merged, then followed."""
    polish = Em(prior, limits=policy.polish, policy=policy)
    brief = Em(prior, limits=Limits(policy.merge_tries[1], 0.0, exact=-1.0), policy=policy)
    while model.rank > bottom:
        candidates = list(cheapest_merges(model, policy))
        heavy = np.argsort(-model.weights, kind="stable")[:-1]
        candidates.append(model.take(np.sort(heavy)))
        tried = [run(brief, data, candidate) for candidate in candidates]
        best = min(tried, key=lambda done: done.objective)
        model = run(polish, data, best.model).model
        yield model


def cheapest_merges(model: Model, policy: Policy) -> Iterator[Model]:
    """Merge two classes into their mean, where ``w H(mix) - w_f H(f) - w_g H(g)`` is least."""
    weights, factors = model.weights, model.factors
    own = weights * entr(factors).sum(axis=0)
    first, second = np.triu_indices(model.rank, 1)
    both = weights[first] + weights[second]
    mixed = (factors[:, first] * weights[first] + factors[:, second] * weights[second]) / both
    cost = both * entr(mixed).sum(axis=0) - own[first] - own[second]
    for k in np.argsort(cost, kind="stable")[: policy.merge_tries[0]]:
        f, g = first[k], second[k]
        columns, sizes = factors.copy(), weights.copy()
        columns[:, f], sizes[f] = mixed[:, k], both[k]
        yield Model(model.layout, sizes, columns).take(np.delete(np.arange(model.rank), g))
