"""Held-out search: ranks of growing size, fitted to some records and judged by the others.

There are two curves, because there are two purposes. The *mode* of a rank is one model, whose
classes can be looked at. The *ensemble* of a rank is the mean of conditional expectations of the
joint along several short chains from random starts; it predicts better, and mostly at a larger
rank, as chains average away the error of each other. Whatever judges a model has not trained it.

The cost is bounded: the search learns on a limited number of records, and ends where both curves
are flat, where the budget is spent, or at one class for ten records.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from math import ceil
from typing import Any

import numpy as np

from rejoint.estimation.data import Data
from rejoint.estimation.em import Em
from rejoint.estimation.gibbs import Bayes, Draw
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.priors import Prior, first_concentrations, make_prior
from rejoint.estimation.starts import independence, random_model, widen
from rejoint.model import FloatArray, Layout, Model
from rejoint.rank.folds import Fold, has_counts, make_folds
from rejoint.solver.checkpoint import digest
from rejoint.solver.run import run
from rejoint.solver.session import Session, report_nothing
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


def try_rank(
    fold: Fold,
    rank: int,
    warm: Trial | None,
    rng: np.random.Generator,
    *,
    mode: bool = True,
    ensemble: bool = True,
    policy: Policy = DEFAULT,
    report: Callable[[str], None] = report_nothing,
) -> Trial:
    """Fit a rank to the learning records of a fold, and judge it by the others.

    Parameters
    ----------
    fold : Fold
        Records to learn from, and others.
    rank : int
        Number of classes.
    warm : Trial, optional
        A smaller rank on the same fold, whose mode is widened as one candidate.
    rng : Generator
    mode, ensemble : bool
        Which of the two is wanted.
    policy : Policy
    report : callable
        Called after each sweep, so that Ctrl-C has a place.

    Examples
    --------
    >>> import rejoint as rj
    >>> from rejoint.estimation.data import InMemory
    >>> data = InMemory.of(rj.datasets.asia().sample(500, random_state=0))
    >>> rng = np.random.default_rng(0)
    >>> trial = try_rank(next(make_folds(data, 5, rng)), 2, None, rng)
    >>> trial.mode.rank, bool((trial.ensemble_logs < 0).all())
    (2, True)
    """
    learn, judge = fold.learn, fold.judge
    sampler = Bayes(policy=policy)
    first = first_concentrations(learn, policy) if warm is None else warm.concentrations
    if rank == 1:
        logs = judge.log_prob(independence(learn))
        return Trial(independence(learn), logs, logs, first)

    def chain(model: Model, sweeps: int) -> Iterator[Draw]:
        for draw in islice(sampler.chain(learn, model, rng, first), sweeps):
            report(f"rank {rank}")
            yield draw

    few = mode and rank <= policy.few_classes
    count = policy.many_trial_chains if few else policy.trial_chains if ensemble else 1
    sweeps = policy.trial_sweeps if ensemble else policy.short_sweeps
    kept = range(policy.trial_keep - 1, sweeps, policy.trial_thin)
    members: list[FloatArray] = []
    ends: list[Draw] = []
    for number in range(count):
        for sweep, draw in enumerate(chain(random_model(learn, rank, rng), sweeps)):
            # As many chains at every rank: an ensemble of more would look better by that alone.
            if ensemble and number < policy.trial_chains and sweep in kept:
                members.append(judge.log_prob(draw.mean))
        ends.append(draw)
    ensemble_logs = np.empty(0)
    if ensemble:
        ensemble_logs = np.logaddexp.reduce(members, axis=0) - np.log(len(members))
    concentrations = np.median([end.concentrations for end in ends], axis=0)
    if not mode:
        return Trial(ends[0].mean, np.empty(0), ensemble_logs, concentrations)
    if warm is not None:
        wide = widen(learn, warm.mode, rank, policy.cautious_blend, rng)
        *_, last = chain(wide, policy.short_sweeps)
        ends.append(last)
    found = polish(learn, [end.mean for end in ends], concentrations, policy.polish_steps, policy)
    return Trial(found, judge.log_prob(found), ensemble_logs, concentrations)


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
        self.mass = np.concatenate([fold.mass for fold in folds])
        self.spread = np.concatenate([fold.spread for fold in folds])
        self.total = float(self.mass.sum())
        self.logs: dict[int, FloatArray] = {}
        self.flat = 0  # ranks in a row that were no better
        self.ended = False

    def add(self, rank: int, logs: FloatArray, flat: int) -> None:
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
    def best(self) -> int:
        """The rank of the highest score."""
        return max(sorted(self.logs), key=self.score)

    def error(self, one: int, other: int) -> float:
        """Standard error of the difference of two ranks; at least one nat over all records."""
        if one == other:
            return 0.0
        return max(self.paired_error(self.logs[one], self.logs[other]), 1.0 / self.total)

    def paired_error(self, one: FloatArray, other: FloatArray) -> float:
        """Standard error of the mean difference over the same records."""
        apart = one - other
        middle = self.mass @ apart / self.total
        return float(np.sqrt(self.spread @ (apart - middle) ** 2) / self.total)

    def smallest(self, errors: float) -> int:
        """Return the smallest rank whose score is within ``errors`` standard errors of the best."""
        return min(self.near(errors))

    def near(self, errors: float) -> list[int]:
        """Return the ranks whose score is within ``errors`` standard errors of the best."""
        best, top = self.best, self.score(self.best)
        return [r for r in self.logs if self.score(r) >= top - errors * self.error(best, r)]


@dataclass
class HeldOutSearch:
    """Two curves over growing ranks, and the models behind them.

    Parameters
    ----------
    data : Data
        The records.
    session : Session
        Randomness, progress and checkpoint.
    policy : Policy
    ranks : sequence of int, optional
        Ranks to try, all of them; by default growing ones until both curves are flat.
    cells : float, optional
        What the search may cost, in cells times classes that passes go through.
    parts : int
        Parts that records are divided into, each of which may judge.
    """

    data: Data
    session: Session
    policy: Policy = DEFAULT
    ranks: Sequence[int] | None = None
    cells: float | None = None
    parts: int = FOLDS
    folds: list[Fold] = field(init=False)
    trials: dict[int, list[Trial]] = field(default_factory=dict)
    ending: str = ""

    def __post_init__(self) -> None:
        rng = self.session.rng
        self.seed = int(rng.integers(2**62))
        parts = list(make_folds(self.data, self.parts, rng))
        least = self.policy.judging_records
        used = min(len(parts), max(1, ceil(least * self.parts / max(self.data.total, 1.0))))
        self.folds = [self.limit(fold, rng) for fold in parts[:used]]
        if self.folds:
            self.mode, self.ensemble = Curve(self.folds), Curve(self.folds)

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

    def describe_records(self) -> str:
        """Say how many records were used, where not all."""
        rows, most = len(self.data.records.weight), self.policy.learn_rows
        if all(len(fold.learn.records.weight) < most for fold in self.folds):
            return ""
        return (
            f"The search learned from {most:,} of the {rows:,} distinct records, drawn at random."
        )

    @property
    def cap(self) -> int:
        """Largest rank: one class for ten records, and no more than the joint needs."""
        learn = min((fold.learn.total for fold in self.folds), default=1.0)
        return max(1, min(int(learn / self.policy.records_per_class), largest_rank(self.data)))

    def search(self, conclude: Callable[[], object]) -> None:
        """Try ranks until both curves are flat or the budget is spent.

        ``conclude`` makes a selection of what is there, for an interrupted search.
        """
        policy, spent = self.policy, 0.0
        budget = policy.search_cells if self.cells is None else self.cells
        given = self.ranks is not None
        wanted = self.ranks if self.ranks is not None else ranks_to_try(self.cap, policy)
        behind = 0  # ranks in a row at which the ensemble is behind the mode
        for rank in wanted:
            cost = sum(f.learn.cells for f in self.folds) * rank * policy.passes_per_rank
            if not given and self.trials and spent + cost > budget:
                self.ending = "budget"
                return
            spent += cost
            self.session.report(f"rank {rank}")
            self.try_all(rank)
            self.session.offer(conclude, certain=True)
            if given:
                continue
            if rank >= policy.least_judged_rank and not (self.mode.ended or self.ensemble.ended):
                apart = self.mode.logs[rank] - self.ensemble.logs[rank]
                error = self.mode.paired_error(self.mode.logs[rank], self.ensemble.logs[rank])
                ahead = float(self.mode.mass @ apart / self.mode.total) > error
                behind = behind + 1 if ahead else 0
                self.ensemble.ended = self.ensemble.ended or behind >= policy.flat_ranks
            if self.mode.ended and self.ensemble.ended:
                return
        self.ending = "" if given or self.cap >= largest_rank(self.data) else "cap"

    def try_all(self, rank: int) -> None:
        """Try a rank on every fold."""
        policy = self.policy
        mode, ensemble = not self.mode.ended, not self.ensemble.ended
        below = max((r for r in self.trials if r < rank), default=None)
        warm = [None] * len(self.folds) if below is None else self.trials[below]
        found = self.remember(rank, warm, mode, ensemble)
        self.trials[rank] = found
        if mode:
            logs = np.concatenate([trial.mode_logs for trial in found])
            self.mode.add(rank, logs, policy.flat_ranks)
        if ensemble:
            logs = np.concatenate([trial.ensemble_logs for trial in found])
            self.ensemble.add(rank, logs, policy.flat_ranks)

    def remember(
        self, rank: int, warm: Sequence[Trial | None], mode: bool, ensemble: bool
    ) -> list[Trial]:
        """The trials of a rank: from the checkpoint, on the executor, or made here."""
        session, checkpoint = self.session, self.session.checkpoint
        seeds = [[self.seed, k, rank] for k in range(len(self.folds))]
        keys = [""] * len(seeds)
        if checkpoint.active:
            same = ("trial", self.data.fingerprint, self.policy, mode, ensemble)
            keys = [digest(*same, seed) for seed in seeds]

        def task(k: int) -> Callable[[], Trial]:
            rng = np.random.default_rng(seeds[k])
            wanted: dict[str, Any] = {"mode": mode, "ensemble": ensemble, "policy": self.policy}
            return partial(try_rank, self.folds[k], rank, warm[k], rng, **wanted)

        pending = [k for k, key in enumerate(keys) if checkpoint.get(key) is None]
        made: dict[int, Trial] = {}
        if session.executor is not None:
            futures = {k: session.executor.submit(task(k)) for k in pending}
            made = {k: future.result() for k, future in futures.items()}
        for k in pending:
            trial = made[k] if k in made else task(k)(report=session.report)  # type: ignore[call-arg]
            made[k] = trial
            checkpoint.put(keys[k], freeze(trial))
        kept = {k: checkpoint.get(key) for k, key in enumerate(keys)}
        return [made[k] if k in made else thaw(kept[k] or {}) for k in range(len(keys))]

    def merge_back(self) -> None:
        """Merge classes one by one, from the rank above the choice to the one below it.

        Growing models overshoot: random starts of a rank end in poorer optima than a larger model
        whose superfluous classes are merged.
        """
        policy, tried = self.policy, sorted(self.mode.logs)
        choice = self.mode.smallest(1.0)
        top = min((r for r in tried if r > choice), default=choice)
        bottom = max((r for r in tried if r < choice), default=1)
        steps = (policy.merged_pairs + 1) * policy.merge_trial_steps + policy.merge_steps
        cells = sum(fold.learn.cells for fold in self.folds) * top * (top - bottom) * steps
        small = top <= policy.largest_merged and cells <= policy.merge_cells
        if not small or top <= bottom + 1 or self.mode.best > policy.largest_merged:
            return
        logs: dict[int, list[FloatArray]] = {}
        for k, fold in enumerate(self.folds):
            begun = self.trials[top][k]
            prior = make_prior(fold.learn, begun.concentrations)
            for model in merge_down(fold.learn, begun.mode, bottom + 1, prior, policy):
                self.session.report(f"rank {model.rank}, by merging classes")
                mine = fold.judge.log_prob(model)
                kept = self.trials.get(model.rank)
                if kept is not None and len(kept) > k and len(kept[k].mode_logs):
                    mean = fold.mass @ (mine - kept[k].mode_logs)
                    if mean <= 0:
                        logs.setdefault(model.rank, []).append(kept[k].mode_logs)
                        continue
                self.keep(k, model, mine, begun.concentrations)
                logs.setdefault(model.rank, []).append(mine)
        for rank, parts in logs.items():
            if len(parts) == len(self.folds):
                self.mode.logs[rank] = np.concatenate(parts)

    def keep(self, k: int, model: Model, logs: FloatArray, concentrations: FloatArray) -> None:
        """Put a merged model in the place of the trial of its rank."""
        trials = self.trials.setdefault(model.rank, [])
        before = trials[k].ensemble_logs if k < len(trials) else np.empty(0)
        trial = Trial(model, logs, before, concentrations)
        if k < len(trials):
            trials[k] = trial
        else:
            trials.append(trial)


def freeze(trial: Trial) -> dict[str, Any]:
    """A trial as a checkpoint keeps it."""
    return {
        "levels": list(trial.mode.layout.levels),
        "model": trial.mode.stacked,
        "mode": trial.mode_logs,
        "ensemble": trial.ensemble_logs,
        "concentrations": trial.concentrations,
    }


def thaw(entry: Mapping[str, Any]) -> Trial:
    """The trial that was kept."""
    model = Model.from_stacked(Layout(tuple(entry["levels"])), entry["model"])
    return Trial(model, entry["mode"], entry["ensemble"], entry["concentrations"])


def draw_rows(data: Data, most: int, rng: np.random.Generator) -> Data:
    """Return at most ``most`` rows of the data, drawn at random."""
    rows = len(data.records.weight)
    if rows <= most:
        return data
    chosen = np.sort(rng.choice(rows, size=most, replace=False))
    return data.take(chosen, data.records.weight[chosen])


def ranks_to_try(cap: int, policy: Policy = DEFAULT) -> Iterator[int]:
    """Ranks in growing order, each about half as large again as the one before, up to a cap.

    Examples
    --------
    >>> list(ranks_to_try(10)), list(ranks_to_try(1))
    ([1, 2, 3, 5, 8, 10], [1])
    """
    for rank in policy.ranks_tried:
        if rank >= cap:
            break
        yield rank
    if cap > policy.ranks_tried[-1]:
        return
    yield cap


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
