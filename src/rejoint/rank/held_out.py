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
from itertools import islice
from math import ceil, inf
from typing import Any

import numpy as np

from rejoint.estimation.data import Data
from rejoint.estimation.em import Em
from rejoint.estimation.gibbs import Bayes, Draw
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.priors import Prior, first_concentrations, make_prior
from rejoint.estimation.starts import fit_rank, independence, random_model, widen
from rejoint.messages import Argument, Message
from rejoint.model import FloatArray, Layout, Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.rank.folds import Fold, has_counts, make_folds
from rejoint.rank.selection import CriterionTable, EnsembleCurve, Judge, Measure, Selection
from rejoint.solver.run import run
from rejoint.solver.search import search
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits

FOLDS = 5  # parts that records are divided into; few of them judge where records are many


@dataclass(frozen=True)
class Trial:
    """One rank on one fold: the mode, and the log-probabilities of the judging records.

    ``mode_logs`` and ``ensemble_logs`` are empty where that curve has ended.
    """

    mode: Model
    mode_logs: FloatArray
    ensemble_logs: FloatArray
    concentrations: FloatArray

    def freeze(self) -> dict[str, Any]:
        """The trial as a checkpoint keeps it."""
        return {
            "levels": list(self.mode.layout.levels),
            "model": self.mode.stacked,
            "mode": self.mode_logs,
            "ensemble": self.ensemble_logs,
            "concentrations": self.concentrations,
        }

    @classmethod
    def thaw(cls, entry: Mapping[str, Any]) -> "Trial":
        """The trial that was kept."""
        model = Model.from_stacked(Layout(tuple(entry["levels"])), entry["model"])
        return cls(model, entry["mode"], entry["ensemble"], entry["concentrations"])


@dataclass(frozen=True)
class Task:
    """A rank to try on one fold: what a worker needs.

    Parameters
    ----------
    fold : Fold
        Records to learn from, and others.
    rank : int
        Number of classes.
    warm : Trial, optional
        A smaller rank on the same fold, whose mode is widened as one candidate.
    mode, ensemble : bool
        Which of the two is wanted.
    policy : Policy
    solver : object, optional
        What finds the mode; by default chains and steps of EM with a prior.
    n_init : int, optional
        Its starts.
    seed : tuple of int
    fingerprint : str
        What tells the data from others, for a checkpoint.
    """

    fold: Fold = field(compare=False)
    rank: int
    warm: Trial | None = field(default=None, compare=False)
    mode: bool = True
    ensemble: bool = True
    policy: Policy = DEFAULT
    solver: Any = None
    n_init: int | None = None
    seed: tuple[int, ...] = (0,)
    fingerprint: str = ""

    def alone(self) -> "Task":
        """The same for a worker: one thread."""
        return replace(self, fold=self.fold.alone())


#: Log-probability of a record below which a model excludes it: without a prior, EM takes the
#: probability of what it never sees to zero only in the limit.
IMPOSSIBLE = -600.0


def try_rank(problem: Any, start: Task, number: int, session: Session, key: str) -> Trial:
    """Fit a rank to the learning records of a fold, and judge it by the others.

    Examples
    --------
    >>> import rejoint as rj
    >>> from rejoint.estimation.data import InMemory
    >>> data = InMemory.of(rj.datasets.asia().sample(500, random_state=0))
    >>> session = Session(np.random.default_rng(0))
    >>> trial = try_rank(None, Task(next(make_folds(data, 5, session.rng)), 2), 0, session, "")
    >>> trial.mode.rank, bool((trial.ensemble_logs < 0).all())
    (2, True)
    """
    rank, warm, policy = start.rank, start.warm, start.policy
    learn, judge = start.fold.learn, start.fold.judge
    rng = np.random.default_rng(start.seed)
    sampler, none = Bayes(policy=policy), np.empty(0)
    first = first_concentrations(learn, policy) if warm is None else warm.concentrations
    if start.solver is not None:
        known = [] if warm is None else [widen(learn, warm.mode, rank, policy.cautious_blend, rng)]
        here = replace(session, rng=rng, executor=None)
        model = fit_rank(learn, rank, start.solver, known, start.n_init, here, policy).model
        logs = judge.log_prob(model)
        return Trial(model, np.where(logs < IMPOSSIBLE, -np.inf, logs), none, first)
    if rank == 1:
        logs = judge.log_prob(independence(learn))
        return Trial(independence(learn), logs, logs, first)

    def chain(model: Model, sweeps: int) -> Iterator[Draw]:
        for sweep, draw in enumerate(islice(sampler.chain(learn, model, rng, first), sweeps)):
            session.report(f"part {number + 1}, sweep {sweep + 1} of {sweeps}")
            yield draw

    mode, ensemble = start.mode, start.ensemble
    few = mode and rank <= policy.few_classes
    count = policy.many_trial_chains if few else policy.trial_chains if ensemble else 1
    sweeps = policy.trial_sweeps if ensemble else policy.short_sweeps
    kept = range(policy.trial_keep - 1, sweeps, policy.trial_thin)
    members: list[FloatArray] = []
    ends: list[Draw] = []
    for each in range(count):
        for sweep, draw in enumerate(chain(random_model(learn, rank, rng), sweeps)):
            # As many chains at every rank: an ensemble of more would look better by that alone.
            if ensemble and each < policy.trial_chains and sweep in kept:
                members.append(judge.log_prob(draw.mean))
        ends.append(draw)
    logs = none
    if ensemble:
        logs = np.logaddexp.reduce(members, axis=0) - np.log(len(members))
    concentrations = np.median([end.concentrations for end in ends], axis=0)
    if not mode:
        return Trial(ends[0].mean, none, logs, concentrations)
    if warm is not None:
        *_, last = chain(
            widen(learn, warm.mode, rank, policy.cautious_blend, rng), policy.short_sweeps
        )
        ends.append(last)
    found = polish(learn, [end.mean for end in ends], concentrations, policy.polish_steps, policy)
    return Trial(found, judge.log_prob(found), logs, concentrations)


def polish(
    data: Data,
    models: Sequence[Model],
    concentrations: FloatArray,
    steps: int,
    policy: Policy = DEFAULT,
    session: Session | None = None,
) -> Model:
    """Follow the most probable of some models for some steps, under one prior for all."""
    em = Em(make_prior(data, concentrations), policy=policy)
    best = models[0]
    if len(models) > 1:
        best = min(models, key=lambda model: em.init(data, model).objective)
    limits = Limits(max_steps=steps, progress=policy.polish_progress, window=10, exact=-1.0)
    return run(Em(em.prior, limits=limits, policy=policy), data, best, session).model


class Curve:
    """Held-out log-probabilities by rank, all of the same records.

    Parameters
    ----------
    folds : sequence of Fold
        Whose judging records the log-probabilities are of, one fold after the other.

    Examples
    --------
    >>> import rejoint as rj
    >>> from rejoint.estimation.data import InMemory
    >>> data = InMemory.of(rj.Records.of({"a": ["x", "y", "x", "y"]}))
    >>> curve = Curve(list(make_folds(data, 2, np.random.default_rng(0))))
    >>> curve.logs = {1: np.array([-1.0, -1.0]), 2: np.array([-0.5, -0.7])}
    >>> round(curve.score(2), 3), curve.best
    (-0.6, 2)
    """

    def __init__(self, folds: Sequence[Fold]) -> None:
        self.logs: dict[int, FloatArray] = {}
        self.flat = 0  # ranks in a row that were no better
        self.ended = False
        self.limit(folds)

    def limit(self, folds: Sequence[Fold]) -> None:
        """Judge by the first folds alone."""
        self.mass = np.concatenate([fold.mass for fold in folds])
        self.spread = np.concatenate([fold.spread for fold in folds])
        self.total = float(self.mass.sum())
        self.logs = {rank: logs[: len(self.mass)] for rank, logs in self.logs.items()}

    def add(self, rank: int, logs: FloatArray, flat: float) -> None:
        """Add a rank; the curve ends where ``flat`` in a row are no better by a standard error."""
        before = self.best if self.logs else None
        self.logs[rank] = logs
        if before is None:
            return
        gained = self.score(rank) - self.score(before) > self.error(before, rank)
        self.flat = 0 if gained else self.flat + 1
        self.ended = self.flat >= flat

    def score(self, rank: int) -> float:
        """Mean log-probability of a record."""
        return float(self.mass @ self.logs[rank] / self.total)

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks, increasing."""
        return tuple(sorted(self.logs))

    @property
    def scores(self) -> FloatArray:
        """The score of each."""
        return np.array([self.score(rank) for rank in self.ranks])

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
            apart = np.nan_to_num(one - other, nan=0.0, posinf=np.inf, neginf=-np.inf)
        if np.isinf(apart).any():
            return 0.0
        middle = self.mass @ apart / self.total
        return float(np.sqrt(self.spread @ (apart - middle) ** 2) / self.total)

    def smallest(self, errors: float) -> int:
        """Return the smallest rank whose score is within ``errors`` standard errors of the best."""
        return min(self.near(errors))

    def near(self, errors: float) -> list[int]:
        """Return the ranks whose score is within ``errors`` standard errors of the best."""
        best, top = self.best, self.score(self.best)
        return [r for r in self.logs if self.score(r) >= top - errors * self.error(best, r)]


@dataclass(frozen=True)
class Refined:
    """Ranks around the best, refined on all records: for each the score and one model.

    Parameters
    ----------
    models : mapping of int to list of Model
        By rank, one model for each judging part.
    first : Fold
        The first of these parts.
    curve : Curve
        Scores of all ranks.
    """

    models: dict[int, list[Model]]
    first: Fold
    curve: Curve


HELD_OUT = Measure(
    "held-out log-likelihood per record",
    "one standard error",
    "one standard error of the difference",
)

#: Why the largest rank that was tried is chosen.
ENDINGS = {
    "budget": "The search budget ended there: larger ranks may be better (budget).",
    "cap": "Larger ranks would have fewer than ten records for each class.",
    "": "It is the largest that was tried: larger ones may be better.",
}


class HeldOutSearch(Judge):
    """Two curves over growing ranks, and the models behind them.

    Parameters
    ----------
    data : Data
        The records.
    session : Session
        Randomness, progress, checkpoint and executor.
    policy : Policy
    cells : float, optional
        What the search may cost, in cells times classes that passes go through.
    parts : int
        Parts that records are divided into, each of which may judge.
    solver : object, optional
        What finds the modes; there is no curve of ensembles then.
    n_init : int, optional
        Its starts.
    flat : int, optional
        Ranks in a row that are no better, after which a curve ends; by default it does not.
    """

    def __init__(
        self,
        data: Data,
        session: Session,
        policy: Policy = DEFAULT,
        cells: float | None = None,
        parts: int = FOLDS,
        solver: Any = None,
        n_init: int | None = None,
        flat: float = inf,
    ) -> None:
        self.data, self.session, self.policy = data, session, policy
        self.solver, self.n_init, self.flat = solver, n_init, flat
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
        used = ceil(policy.judging_records * parts / max(data.total, 1.0))
        self.folds = [self.limit(fold, session.rng) for fold in folds[:used]]
        self.trials: dict[int, list[Trial]] = {}
        self.mode, self.ensemble = Curve(self.folds), Curve(self.folds)
        self.ensemble.ended = solver is not None
        self.refined: Refined | None = None
        self.budget = policy.search_cells if cells is None else cells
        self.given, self.spent = cells, 0.0
        self.behind = 0  # ranks in a row at which the ensemble is behind the mode
        self.stop = ""
        learn = min(fold.learn.total for fold in self.folds)
        most = min(learn / policy.records_per_class, policy.most_classes)
        cap = min(int(most), largest_rank(data))
        super().__init__("heldout", HELD_OUT, 1.0 / self.mode.total, max(1, cap))

    def limit(self, fold: Fold, rng: np.random.Generator) -> Fold:
        """Return the fold with at most as many rows as the policy allows, drawn at random."""
        policy = self.policy
        learn = draw_rows(fold.learn, policy.learn_rows, rng)
        rows = len(fold.mass)
        if rows <= policy.judge_rows:
            return Fold(learn, fold.judge, fold.mass, fold.spread)
        chosen = np.sort(rng.choice(rows, size=policy.judge_rows, replace=False))
        judge = fold.judge.take(chosen, fold.judge.records.weight[chosen])
        return Fold(learn, judge, fold.mass[chosen], fold.spread[chosen])

    def is_past_best(self, rank: int, policy: Policy) -> bool:
        """Whether both curves are flat, or the budget is spent."""
        if self.mode.ended and self.ensemble.ended:
            return True
        self.drop_folds(rank)
        self.stop = "budget" if self.spent + self.cost(rank) > self.budget else ""
        return bool(self.stop)

    def cost(self, rank: int) -> float:
        """What a trial of a rank counts for, in cells times classes."""
        passes = sum(pass_cells(fold.learn, rank, self.policy) for fold in self.folds)
        return self.policy.passes_per_rank * passes

    def allowed(self, rank: int) -> float:
        """What the whole fit may cost if a rank is the largest that is tried."""
        policy = self.policy
        full = policy.passes_per_rank * pass_cells(self.data, rank, policy)
        return self.given or max(policy.quick_cells, policy.full_fits * full)

    def left(self, share: float, most: float) -> float:
        """A share of what is left to spend, but no more than some number of cells."""
        return min(share * max(self.allowed(max(self.trials)) - self.spent, 0.0), most)

    def for_chains(self, most: float) -> float:
        """What the chains of the run-off or of the answer may cost, but no more than ``most``."""
        return min(self.policy.chains_share * self.allowed(max(self.trials)), most)

    def drop_folds(self, rank: int) -> None:
        """Give up folds, the last one first, where a rank would cost too much on all of them."""
        kept, most = len(self.folds), self.policy.tried_share * self.allowed(rank)
        while len(self.folds) > 1 and self.spent + self.cost(rank) > most:
            self.folds = self.folds[:-1]
        if len(self.folds) < kept:
            for curve in (self.mode, self.ensemble):
                curve.limit(self.folds)
            for tried, trials in self.trials.items():
                self.trials[tried] = trials[: len(self.folds)]
            self.scores = {tried: self.mode.score(tried) for tried in self.mode.logs}

    def concentrations(self, rank: int) -> FloatArray:
        """Concentrations of the prior that chains of a rank have found, or of the nearest one."""
        tried = min(self.trials, key=lambda other: abs(np.log(other / rank)))
        return np.asarray(np.median([t.concentrations for t in self.trials[tried]], axis=0))

    def next_between(self, policy: Policy) -> None:
        """Gaps are closed by merging classes."""

    def fit(self, rank: int) -> float:
        """Try a rank on every fold."""
        policy, session = self.policy, self.session
        mode, ensemble = not self.mode.ended, not self.ensemble.ended
        below = max((r for r in self.trials if r < rank), default=None)
        warm = [None] * len(self.folds) if below is None else self.trials[below]
        mark = self.data.fingerprint if session.checkpoint.active else ""
        tasks = [
            Task(fold, rank, warm[k], mode, ensemble, policy, self.solver, self.n_init, seed, mark)
            for k, fold in enumerate(self.folds)
            for seed in [(self.seed, k, rank)]
        ]
        found = search(None, tasks, try_rank, session, thaw=Trial.thaw)
        self.trials[rank] = found
        self.spent += self.cost(rank)
        if mode:
            logs = np.concatenate([trial.mode_logs for trial in found])
            self.mode.add(rank, logs, self.flat)
        if ensemble:
            logs = np.concatenate([trial.ensemble_logs for trial in found])
            self.ensemble.add(rank, logs, self.flat)
        if mode and ensemble and rank >= policy.least_judged_rank:
            apart = self.mode.logs[rank] - self.ensemble.logs[rank]
            error = self.mode.paired_error(self.mode.logs[rank], self.ensemble.logs[rank])
            ahead = float(self.mode.mass @ apart / self.mode.total) > error
            self.behind = self.behind + 1 if ahead else 0
            self.ensemble.ended = self.ensemble.ended or self.behind >= self.flat
        return self.mode.score(rank) if mode else np.nan

    @property
    def curve(self) -> Curve:
        """The curve that the rank is chosen by."""
        return self.mode if self.refined is None else self.refined.curve

    def choose(self) -> int:
        """The smallest rank within one standard error of the best."""
        return self.curve.smallest(1.0)

    def error(self, chosen: int, other: int) -> float:
        """Standard error of the difference of two ranks."""
        return self.curve.error(chosen, other)

    def pmf(self, rank: int) -> LowRankPMF:
        """A model of a rank that has learned from most of the records."""
        return self.data.to_pmf(self.models(rank)[0].sorted())

    def models(self, rank: int) -> list[Model]:
        """The models of a rank, one for each part that judges."""
        if self.refined is not None and rank in self.refined.models:
            return self.refined.models[rank]
        return [trial.mode for trial in self.trials.get(rank, [])]

    def ending(self, chosen: int) -> str:
        """Why there are no larger ranks, and how many records were used, where not all."""
        said = []
        if self.refined is None and chosen == max(self.mode.logs) < largest_rank(self.data):
            at_cap = not self.stop and chosen == self.cap
            said.append(ENDINGS["cap" if at_cap else self.stop])
        rows, most = len(self.data.records.weight), self.policy.learn_rows
        if any(len(fold.learn.records.weight) >= most for fold in self.folds):
            said.append(
                f"The search learned from {most:,} of the {rows:,} distinct records, drawn at "
                "random."
            )
        return " ".join(said)

    def conclude(self, interrupted: bool = False) -> Selection:
        """The selection by the curves so far."""
        curve, ensemble = self.curve, self.ensemble
        self.scores = dict(zip(curve.ranks, curve.scores.tolist(), strict=True))
        found = super().conclude(interrupted)
        columns = {"heldout": found.scores, "error": found.errors}
        first = CriterionTable(self.mode.ranks, {"heldout": self.mode.scores})
        wide = None
        if ensemble.logs:
            rank = ensemble.smallest(self.policy.ensemble_errors)
            wide = EnsembleCurve(rank, ensemble.ranks, ensemble.scores)
        return replace(
            found,
            ensemble=wide,
            first=None if self.refined is None else first,
            table=CriterionTable(found.ranks, columns),
        )

    def merge_back(self) -> None:
        """Merge classes one by one, from the rank tried above the choice to the second one below.

        Where the one above is too large, the choice itself is merged.
        Growing models overshoot: random starts of a rank end in poorer optima than a larger model
        whose superfluous classes are merged. So the rank below the choice is reached as well.
        """
        policy, tried = self.policy, sorted(self.mode.logs)
        choice = self.choose()
        if choice > policy.largest_merged:
            choice = self.mode.smallest(2.0)
        above = [choice, *(r for r in tried if r > choice)][:2]
        top = max((r for r in above if r <= policy.largest_merged), default=choice)
        below = [1, 1, *(r for r in tried if r < choice)]
        bottom = below[-2]
        cells = sum(merge_cost(fold.learn, top, bottom, policy) for fold in self.folds)
        small = top <= policy.largest_merged
        small = small and cells <= self.left(policy.merged_share, policy.merge_cells)
        if not small or top <= bottom + 1:
            return
        self.spent += cells
        for k, fold in enumerate(self.folds):
            begun = self.trials[top][k]
            prior = make_prior(fold.learn, begun.concentrations)
            for model in merge_down(fold.learn, begun.mode, bottom + 1, prior, policy):
                self.session.report(f"rank {model.rank}, by merging classes")
                logs, none = fold.judge.log_prob(model), np.empty(0)
                trial = Trial(model, logs, none, begun.concentrations)
                kept = self.trials.setdefault(model.rank, [])
                if k == len(kept):
                    kept.append(trial)
                elif not len(kept[k].mode_logs) or fold.mass @ (logs - kept[k].mode_logs) > 0:
                    kept[k] = trial
        for rank in range(bottom + 1, top):
            self.mode.logs[rank] = np.concatenate([each.mode_logs for each in self.trials[rank]])


def pass_cells(data: Data, rank: int, policy: Policy = DEFAULT) -> float:
    """What a pass of a rank costs, in cells times classes of records."""
    levels = policy.cells_per_level * data.layout.size
    return (data.cells + levels) * rank + policy.cells_per_pass


def merge_cost(data: Data, top: int, bottom: int, policy: Policy = DEFAULT) -> float:
    """What merging classes one by one costs, in the same unit."""
    steps = (policy.merged_pairs + 1) * policy.merge_trial_steps + policy.merge_steps
    return steps * (top - bottom) * pass_cells(data, (top + bottom) // 2, policy)


def draw_rows(data: Data, most: int, rng: np.random.Generator) -> Data:
    """Return at most ``most`` rows of the data, drawn at random."""
    rows = len(data.records.weight)
    if rows <= most:
        return data
    chosen = np.sort(rng.choice(rows, size=most, replace=False))
    return data.take(chosen, data.records.weight[chosen])


def largest_rank(data: Data) -> int:
    """Largest rank of use: the joint needs no more, or each record has its own class."""
    cells, records = 1, size_of(data)
    for size in sorted(data.layout.levels)[:-1]:
        cells = min(cells * size, records)
    return max(cells, 1)


def size_of(data: Data) -> int:
    """Number of records; of copies, where weights count them."""
    return int(data.total) if has_counts(data) else len(data.observations().records.weight)


# --- merging classes ------------------------------------------------------------------------------


def merge_down(
    data: Data, model: Model, bottom: int, prior: Prior, policy: Policy = DEFAULT
) -> Iterator[Model]:
    """Models of one class less each, down to a rank: the cheapest pairs merged, then followed.

    Examples
    --------
    >>> import rejoint as rj
    >>> truth = rj.LowRankPMF([0.5, 0.5], [[[0.9, 0.1], [0.1, 0.9]]] * 5)
    >>> from rejoint.estimation.data import InMemory
    >>> data = InMemory.of(truth.sample(2000, random_state=0))
    >>> start = random_model(data, 4, np.random.default_rng(0))
    >>> prior = make_prior(data, first_concentrations(data))
    >>> [model.rank for model in merge_down(data, start, 2, prior)]
    [3, 2]
    """
    few = Limits(max_steps=policy.merge_trial_steps, progress=0.0, exact=-1.0)
    more = Limits(max_steps=policy.merge_steps, progress=policy.polish_progress, exact=-1.0)
    brief, longer = (Em(prior, limits=limits, policy=policy) for limits in (few, more))
    while model.rank > bottom:
        candidates = [merge_pair(model, f, g) for f, g in cheapest_pairs(model, policy)]
        heavy = np.argsort(-model.weights, kind="stable")[:-1]
        candidates.append(model.take(np.sort(heavy)))
        tried = [run(brief, data, c) for c in candidates]
        best = min(tried, key=lambda done: done.objective)
        model = run(longer, data, best.model).model
        yield model


def cheapest_pairs(model: Model, policy: Policy = DEFAULT) -> list[tuple[int, int]]:
    """Pairs of classes whose merging loses least: ``w H(mix) - w_f H(f) - w_g H(g)``.

    Examples
    --------
    >>> model = Model.of([0.3, 0.3, 0.4], [[[0.9, 0.85, 0.1], [0.1, 0.15, 0.9]]])
    >>> cheapest_pairs(model)[0]
    (0, 1)
    """
    weights, factors = model.weights, model.factors
    own = weights * -_plogp(factors).sum(axis=0)
    first, second = np.triu_indices(model.rank, 1)
    both = weights[first] + weights[second]
    mixed = (factors[:, first] * weights[first] + factors[:, second] * weights[second]) / both
    cost = both * -_plogp(mixed).sum(axis=0) - own[first] - own[second]
    order = np.argsort(cost, kind="stable")[: policy.merged_pairs]
    return [(int(first[k]), int(second[k])) for k in order]


def _plogp(p: FloatArray) -> FloatArray:
    return np.asarray(p * np.log(np.maximum(p, 1e-300)))


def merge_pair(model: Model, f: int, g: int) -> Model:
    """The model with two classes merged into their mean.

    Examples
    --------
    >>> merge_pair(Model.of([0.25, 0.75], [[[1.0, 0.2], [0.0, 0.8]]]), 0, 1).factors[:, 0]
    array([0.4, 0.6])
    """
    weights, factors = model.weights.copy(), model.factors.copy()
    both = weights[f] + weights[g]
    factors[:, f] = (weights[f] * factors[:, f] + weights[g] * factors[:, g]) / both
    weights[f] = both
    rest = np.delete(np.arange(model.rank), g)
    return Model(model.layout, weights[rest], factors[:, rest])
