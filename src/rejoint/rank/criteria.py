"""Scores of a rank, per record and the higher the better: held-out likelihood, BIC, evidence."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.special import gammaln

from rejoint import kernels
from rejoint.estimation.data import Array, RecordProblem
from rejoint.estimation.em import Em
from rejoint.estimation.priors import first_strengths, make_prior
from rejoint.estimation.starts import CAUTIOUS, FAITHFUL, Model, grown_model, random_model, widen
from rejoint.estimation.variational import Variational
from rejoint.pmf.pmf import LowRankPMF
from rejoint.rank.folds import Fold
from rejoint.records.records import BaseRecords
from rejoint.solver.checkpoint import Bookmark, Journal, finished_run
from rejoint.solver.run import run
from rejoint.solver.search import spread
from rejoint.solver.solver import Limits, Run

Report = Callable[[str], None]

#: Steps of each start before all but the best are given up.
EXPLORE = 30

#: Gain of log-likelihood over ten steps below which a fit has arrived: ranks are told apart by
#: tens of such units.
NATS = 0.3


def solver_for(solver: Any, problem: RecordProblem) -> Any:
    """The solver of a name, with limits that are enough to tell ranks apart, or the object."""
    if solver not in ("ml", "map", "variational"):
        if is_dataclass(solver) and isinstance(getattr(solver, "limits", None), Limits):
            return solver
        raise ValueError(
            f"solver={solver!r} cannot score ranks; give 'map', 'ml', or an object with limits, "
            "such as rejoint.estimation.Em()."
        )
    even = -problem.expect(np.ones(1), problem.centre[:, None]).log_likelihood
    limits = Limits(500, progress=NATS / max(even, 1.0), window=10, exact=-1.0)
    if solver == "variational":
        return Variational(limits=limits)
    prior = make_prior(problem, first_strengths(problem), 0.0) if solver == "map" else None
    return Em(prior, limits=limits)


def fit(problem: RecordProblem, solver: Any, starts: Sequence[Model]) -> Run:
    """Follow each start for a while, and the best one to the end.

    Raises KeyboardInterrupt if the user wants no more.
    """
    brief = replace(solver, limits=replace(solver.limits, max_steps=EXPLORE))
    found = [checked(run(brief, problem, *model)) for model in starts]
    best = min(found, key=lambda r: r.objective)
    if best.reason != "steps":
        return best
    return checked(run(solver, problem, best.weights, best.factors))


def make_starts(
    problem: RecordProblem, rank: int, warm: Model | None, n_init: int, rng: np.random.Generator
) -> list[Model]:
    """A smaller model with new classes, and every third time one from scratch."""
    if rank == 1:
        return [(np.ones(1), problem.centre[:, None])]
    starts = []
    for k in range(n_init):
        if warm is None or k % 3 == 2:  # growth can mislead
            starts.append(random_model(problem, rank, rng))
        else:
            blend = CAUTIOUS if k % 3 == 0 else FAITHFUL
            starts.append(widen(problem, warm, rank, blend, rng))
    return starts


def checked(done: Run) -> Run:
    """The run, unless it was interrupted."""
    if done.reason == "interrupted":
        raise KeyboardInterrupt
    return done


#: Pseudo-count of a class: below one, so that a class must explain records to keep any.
SPARSITY = 0.3

#: The first cap; it doubles while no class vanishes below it.
FIRST_CAP = 8

#: Records that a class must have in expectation to be there.
LEAST = 1.0


@dataclass(frozen=True)
class Vanished:
    """Classes that are left, the bound of the evidence, and the caps that were tried."""

    model: Model = field(repr=False)
    bound: float
    caps: tuple[int, ...]
    interrupted: bool = False

    @property
    def rank(self) -> int:
        """Number of classes that are left."""
        return len(self.model[0])


def vanish(
    problem: RecordProblem, most: int, n_init: int, rng: np.random.Generator, report: Report
) -> Vanished:
    """Fit under a cap that doubles until it is not reached; drop the classes that vanished."""
    caps: list[int] = []
    found: Vanished | None = None
    cap = min(FIRST_CAP, most)
    while True:
        report(f"variational Bayes with {cap} classes")
        caps.append(cap)
        try:
            done = sparse_fit(problem, cap, n_init, rng)
        except KeyboardInterrupt:
            if found is None:
                raise
            return replace(found, interrupted=True)
        left = done.weights * problem.total > LEAST
        model = done.weights[left] / done.weights[left].sum(), done.factors[:, left]
        found = Vanished(model, -done.objective, tuple(caps))
        if found.rank < cap or cap == most:
            return found
        cap = min(2 * cap, most)


def sparse_fit(problem: RecordProblem, cap: int, n_init: int, rng: np.random.Generator) -> Run:
    """The best of several runs of sparse variational Bayes, each from a brief fit with a prior."""
    brief = solver_for("map", problem)
    limits = Limits(1000, progress=1e-8, window=20, exact=-1.0)
    solver = Variational(sparsity=SPARSITY, limits=limits)
    runs = []
    for k in range(n_init):
        if cap > 1 and k % 2 == 0:
            start = grown_model(problem, cap, CAUTIOUS, brief, rng)
        else:
            start = random_model(problem, cap, rng)
        begun = fit(problem, brief, [start])
        runs.append(checked(run(solver, problem, begun.weights, begun.factors)))
    return min(runs, key=lambda r: r.objective)


class Criterion(Protocol):
    """A way to score ranks and to say how sure their difference is."""

    #: What the best rank has, in words.
    basis: str
    #: What is too near to tell, in words.
    nearness: str
    #: Scores that differ by less are the same: one nat over all records.
    slack: float
    #: Fits to all records.
    whole: "Chain"

    def score(self, rank: int) -> float:
        """Score of a rank, remembered for :meth:`error`."""
        ...

    def error(self, best: int, other: int) -> float:
        """How far apart two scores may be by chance."""
        ...


@dataclass
class Chain:
    """Fits of growing rank to the same records, each warm from the one below."""

    problem: RecordProblem
    solver: Any
    n_init: int
    rng: np.random.Generator
    models: dict[int, Model] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        records: BaseRecords,
        solver: Any,
        n_init: int,
        rng: np.random.Generator,
        journal: Journal | None = None,
    ) -> "Chain":
        """A chain that has not begun."""
        problem = replace(RecordProblem.of(records), journal=journal)
        return cls(problem, solver_for(solver, problem), n_init, rng)

    def fit(self, rank: int, *others: Model) -> Run:
        """Fit a rank, from the next smaller one that is there and from other starts."""
        return self.end(rank, fit(self.problem, self.solver, self.begin(rank, *others)))

    def begin(self, rank: int, *others: Model) -> list[Model]:
        """Where to fit a rank from."""
        below = [r for r in self.models if r < rank]
        warm = self.models[max(below)] if below else None
        return [*others, *make_starts(self.problem, rank, warm, self.n_init, self.rng)]

    def end(self, rank: int, done: Run) -> Run:
        """Keep the fit of a rank."""
        self.models[rank] = done.weights, done.factors
        return done

    def pmf(self, rank: int) -> LowRankPMF:
        """A rank that was fitted, as a model, largest class first."""
        weights, factors = self.models[rank]
        parts = [factors[self.problem.rows(n)] for n in range(len(self.problem.levels))]
        return LowRankPMF(weights, parts, self.problem.domain).sorted()

    def log_prob(self, rank: int, records: BaseRecords) -> Array:
        """Log-probability of each of other records, under a rank that was fitted."""
        weights, factors = self.models[rank]
        levels, threads = self.problem.levels, self.problem.threads
        return kernels.class_log_prob(records.codes, weights, factors, levels, threads)


def fit_elsewhere(chains: Sequence[Chain], rank: int, start: Model, executor: Executor) -> None:
    """Fit a rank in all chains at once, on any executor; fits that are kept are not redone."""
    starts = [chain.begin(rank, start) for chain in chains]
    marks = [
        Bookmark.of(chain.problem, chain.solver, models)
        for chain, models in zip(chains, starts, strict=True)
    ]
    runs = [finished_run(mark) for mark in marks]
    todo = [k for k, found in enumerate(runs) if found is None]
    bare = [replace(chains[k].problem, threads=1, journal=None) for k in todo]
    tasks = [(bare[i], chains[k].solver, starts[k]) for i, k in enumerate(todo)]
    found, ended = spread(executor, fit, tasks)
    for k, done in zip(todo, found, strict=False):
        if done is not None:
            marks[k].close(done)
            runs[k] = done
    if ended:
        raise KeyboardInterrupt
    for chain, done in zip(chains, runs, strict=True):
        assert done is not None
        chain.end(rank, done)


class HeldOut:
    """Log-probability of records that the fit has not seen, each held out once.

    Each fold starts at the fit to all records, and at one of its own. It then climbs on its own
    records alone, but all folds and ranks are compared near the same maximum: which of many
    local ones each happens upon would otherwise drown the difference.
    """

    basis = "the best held-out log-likelihood"
    nearness = "one standard error of the difference"

    def __init__(
        self,
        whole: Chain,
        folds: Iterable[Fold[Any]],
        solver: Any,
        report: Report,
        executor: Executor | None = None,
    ) -> None:
        self.whole = whole
        self.folds = list(folds)
        journal = whole.problem.journal
        self.chains = [Chain.of(fold.learn, solver, 1, whole.rng, journal) for fold in self.folds]
        self.executor = executor
        self.mass = np.concatenate([fold.mass for fold in self.folds])
        self.spread = np.concatenate([fold.spread for fold in self.folds])
        self.starts = np.cumsum([0, *(len(fold.mass) for fold in self.folds[:-1])])
        self.slack = 1.0 / float(self.mass.sum())
        self.parts: dict[int, Array] = {}
        self.report = report

    def score(self, rank: int) -> float:
        """Mean held-out log-probability of a record."""
        self.report(f"rank {rank}")
        self.whole.fit(rank)
        if self.executor is not None:
            fit_elsewhere(self.chains, rank, self.whole.models[rank], self.executor)
        parts = []
        for k, (fold, chain) in enumerate(zip(self.folds, self.chains, strict=True)):
            self.report(f"rank {rank}, fold {k + 1} of {len(self.folds)}")
            if self.executor is None:
                chain.fit(rank, self.whole.models[rank])
            parts.append(chain.log_prob(rank, fold.judge))
        self.parts[rank] = np.concatenate(parts)
        return float(self.mass @ self.parts[rank] / self.mass.sum())

    def error(self, best: int, other: int) -> float:
        """Standard error of the mean difference of two ranks on the same records.

        It is the larger of that over records, which knows nothing of how the fits vary, and
        that over folds, of which there are few; and one nat in all at least: models that
        differ by less are as good as the same.
        """
        if best == other:
            return 0.0
        total = float(self.mass.sum())
        with np.errstate(invalid="ignore"):  # -inf less -inf, where zeros are allowed
            apart = np.nan_to_num(self.parts[best] - self.parts[other])
        middle = self.mass @ apart / total
        over_records = np.sqrt(self.spread @ (apart - middle) ** 2) / total
        masses = np.array([fold.mass.sum() for fold in self.folds])
        means = np.add.reduceat(self.mass * apart, self.starts) / masses
        over_folds = means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else 0.0
        return float(max(over_records, over_folds, self.slack))


class Bic:
    """Log-likelihood less half a logarithm of the sample size for each parameter."""

    basis = "the best BIC"
    nearness = "2 in BIC, which is no evidence to speak of"

    def __init__(self, whole: Chain, report: Report) -> None:
        self.whole, self.report = whole, report
        self.slack = 1.0 / whole.problem.total

    def score(self, rank: int) -> float:
        """``-BIC / 2`` per record."""
        self.report(f"rank {rank}")
        done, problem = self.whole.fit(rank), self.whole.problem
        likelihood = problem.expect(done.weights, done.factors).log_likelihood
        penalty = 0.5 * problem.parameters(rank) * np.log(problem.total)
        return float((likelihood - penalty) / problem.total)

    def error(self, best: int, other: int) -> float:
        """What a difference of 2 in BIC comes to."""
        return 0.0 if best == other else self.slack


class Evidence(Bic):
    """Lower bound of the log-evidence of variational Bayes, for all orders of the classes."""

    basis = "the best lower bound of the evidence"
    nearness = "a factor e of evidence, which is nothing to speak of"

    def score(self, rank: int) -> float:
        """Bound per record; each of the F! orders of the classes adds the same."""
        self.report(f"rank {rank}")
        done, problem = self.whole.fit(rank), self.whole.problem
        # Variational steps are slow on the plateaus that accelerated EM has crossed already.
        done = checked(run(solver_for("variational", problem), problem, done.weights, done.factors))
        return (-done.objective + float(gammaln(rank + 1.0))) / problem.total
