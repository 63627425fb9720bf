"""Scores of a rank, per record and the higher the better: held-out likelihood, BIC, evidence."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import gammaln

from rejoint.estimation.data import Data
from rejoint.estimation.em import Em
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.priors import first_prior
from rejoint.estimation.starts import (
    follow_start,
    given_model,
    grown_model,
    independence,
    random_model,
    widen,
)
from rejoint.estimation.variational import Variational
from rejoint.model import FloatArray, Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.rank.folds import Fold
from rejoint.rank.selection import Measure
from rejoint.solver.run import run
from rejoint.solver.search import best_run, search
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits, Run, Stop, is_solver, with_limits


def solver_for(solver: Any, data: Data, policy: Policy = DEFAULT) -> Any:
    """The solver of a name, with limits that are enough to tell ranks apart, or the object."""
    if is_solver(solver):
        return solver
    if solver not in ("ml", "map", "variational"):
        raise ValueError(
            f"solver={solver!r} cannot score ranks; give 'map', 'ml', or an object with name, "
            "limits, init and step, such as rejoint.estimation.Em()."
        )
    even = -data.expect(independence(data)).log_likelihood
    limits = Limits(500, progress=policy.rank_nats / max(even, 1.0), window=10, exact=-1.0)
    if solver == "variational":
        return Variational(limits=limits, policy=policy)
    prior = first_prior(data, policy) if solver == "map" else None
    return Em(prior, limits=limits, policy=policy)


def fit_rank(
    data: Data, solver: Any, models: Sequence[Model], session: Session, policy: Policy
) -> Run:
    """Follow each start for a while, and the best one to the end."""
    brief = with_limits(solver, replace(solver.limits, max_steps=policy.rank_explore_steps))
    starts = [partial(given_model, model=model) for model in models]
    runs = search(data, starts, partial(follow_start, solver=brief), session.here())
    best = runs[best_run(runs)]
    return best if best.stop is not Stop.STEPS else run(solver, data, best.model, session)


def make_models(
    data: Data,
    rank: int,
    warm: Model | None,
    n_init: int,
    rng: np.random.Generator,
    policy: Policy,
) -> list[Model]:
    """A smaller model with new classes, and every third time one from scratch."""
    if rank == 1:
        return [independence(data)]
    models = []
    for k in range(n_init):
        if warm is None or k % 3 == 2:  # growth can mislead
            models.append(random_model(data, rank, rng))
        else:
            blend = policy.cautious_blend if k % 3 == 0 else policy.faithful_blend
            models.append(widen(data, warm, rank, blend, rng))
    return models


@dataclass(frozen=True)
class FoldFit:
    """A rank to fit to one fold: what a worker needs."""

    data: Data = field(compare=False)  # the fingerprint stands for it
    fingerprint: str
    solver: Any
    models: list[Model]
    policy: Policy


def follow_fold(problem: Any, start: FoldFit, number: int, session: Session, key: str) -> Run:
    """Fit a rank to one fold."""
    done = fit_rank(start.data, start.solver, start.models, session, start.policy)
    session.checkpoint.keep_run(key, done)
    return done


@dataclass
class RankPath:
    """Fits of growing rank to the same records, each warm from the one below."""

    data: Data
    solver: Any
    n_init: int
    session: Session
    policy: Policy
    models: dict[int, Model] = field(default_factory=dict)

    @classmethod
    def of(
        cls, data: Data, solver: Any, n_init: int, session: Session, policy: Policy
    ) -> "RankPath":
        """A path that has not begun."""
        return cls(data, solver_for(solver, data, policy), n_init, session, policy)

    def fit(self, rank: int) -> Run:
        """Fit a rank, from the next smaller one that is there and from other starts."""
        done = fit_rank(self.data, self.solver, self.begin(rank), self.session, self.policy)
        self.models[rank] = done.model
        return done

    def begin(self, rank: int) -> list[Model]:
        """Where to fit a rank from."""
        below = [r for r in self.models if r < rank]
        warm = self.models[max(below)] if below else None
        return make_models(self.data, rank, warm, self.n_init, self.session.rng, self.policy)

    def task(self, rank: int) -> FoldFit:
        """The fit of a rank, for a worker."""
        data = self.data if self.session.executor is None else self.data.alone()
        mark = self.data.fingerprint if self.session.checkpoint.active else ""
        return FoldFit(data, mark, self.solver, self.begin(rank), self.policy)

    def pmf(self, rank: int) -> LowRankPMF:
        """A rank that was fitted, as a model, largest class first."""
        return self.data.to_pmf(self.models[rank].sorted())


#: Log-probability of a record below which a model excludes it.
IMPOSSIBLE = -600.0


class HeldOutLikelihood:
    """Log-probability of records that the fit has not seen, each held out once, by any solver.

    The models of a fold have only seen its own records: they do not start at a fit to all.
    """

    measure = Measure(
        "held-out log-likelihood per record",
        "one nat over all records",
        "one standard error of the difference",
    )

    def __init__(self, path: RankPath, folds: Iterable[Fold], solver: Any) -> None:
        self.path, self.folds = path, list(folds)
        session, policy = path.session, path.policy
        self.paths = [
            RankPath.of(fold.learn, solver, path.n_init, session, policy) for fold in self.folds
        ]
        self.mass = np.concatenate([fold.mass for fold in self.folds])
        self.spread = np.concatenate([fold.spread for fold in self.folds])
        self.starts = np.cumsum([0, *(len(fold.mass) for fold in self.folds[:-1])])
        self.slack = 1.0 / float(self.mass.sum())
        self.parts: dict[int, FloatArray] = {}

    def score(self, rank: int) -> float:
        """Mean held-out log-probability of a record."""
        session = self.path.session
        session.report(f"rank {rank}")
        self.path.fit(rank)
        tasks = [path.task(rank) for path in self.paths]
        runs = search(self.path.data, tasks, follow_fold, session)
        parts = []
        for fold, path, done in zip(self.folds, self.paths, runs, strict=True):
            path.models[rank] = done.model
            logs = fold.judge.log_prob(done.model)
            # Without a prior, EM takes what it never sees to zero only in the limit.
            parts.append(np.where(logs < IMPOSSIBLE, -np.inf, logs))
        self.parts[rank] = np.concatenate(parts)
        return float(self.mass @ self.parts[rank] / self.mass.sum())

    def error(self, chosen: int, other: int) -> float:
        """Standard error of the mean difference of two ranks on the same records.

        It is the larger of two estimates: over records, which ignores that fits vary, and over
        folds, which are few. It is at least one nat over all records, because models that differ
        by less are equivalent in practice. A record that is impossible under one of the two ranks
        makes the difference infinite, and the error is that one nat.
        """
        if chosen == other:
            return 0.0
        total = float(self.mass.sum())
        with np.errstate(invalid="ignore"):  # -inf less -inf, where zeros are allowed
            apart = self.parts[chosen] - self.parts[other]
        if np.isinf(apart).any():
            return self.slack
        apart = np.nan_to_num(apart)
        middle = self.mass @ apart / total
        over_records = np.sqrt(self.spread @ (apart - middle) ** 2) / total
        masses = np.array([fold.mass.sum() for fold in self.folds])
        means = np.add.reduceat(self.mass * apart, self.starts) / masses
        over_folds = means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else 0.0
        return float(max(over_records, over_folds, self.slack))


class Bic:
    """Log-likelihood less half a logarithm of the sample size for each parameter."""

    def __init__(self, path: RankPath) -> None:
        self.path = path
        self.slack = 1.0 / path.data.total
        self.measure = Measure("BIC", "2", "2 in BIC", -2.0 * path.data.total)

    def score(self, rank: int) -> float:
        """``-BIC / 2`` per record."""
        self.path.session.report(f"rank {rank}")
        data = self.path.data
        likelihood = data.expect(self.path.fit(rank).model).log_likelihood
        penalty = 0.5 * data.layout.parameters(rank) * np.log(data.total)
        return float((likelihood - penalty) / data.total)

    def error(self, chosen: int, other: int) -> float:
        """The difference that is considered negligible: 2 in BIC, one nat of evidence."""
        return 0.0 if chosen == other else self.slack


class EvidenceBound(Bic):
    """Lower bound of the log-evidence of variational Bayes, for all orders of the classes."""

    def __init__(self, path: RankPath) -> None:
        super().__init__(path)
        total = path.data.total
        self.measure = Measure("lower bound of the log-evidence", "one nat", "one nat", total)

    def score(self, rank: int) -> float:
        """Bound per record; each of the F! orders of the classes adds the same."""
        path = self.path
        path.session.report(f"rank {rank}")
        # Variational steps are slow on the plateaus that accelerated EM has crossed already.
        solver = solver_for("variational", path.data, path.policy)
        done = run(solver, path.data, path.fit(rank).model, path.session)
        return (-done.objective + float(gammaln(rank + 1.0))) / path.data.total


@dataclass(frozen=True)
class SparseFit:
    """Classes that sparse variational Bayes keeps, the evidence bound, and the caps tried."""

    model: Model = field(repr=False)
    bound: float
    caps: tuple[int, ...]

    @property
    def rank(self) -> int:
        """Number of classes that are left."""
        return self.model.rank


def fit_sparse(
    data: Data, most: int, n_init: int, session: Session, policy: Policy
) -> Iterable[SparseFit]:
    """Fits under a cap that doubles until it is not reached, without the classes that vanished."""
    caps: tuple[int, ...] = ()
    cap = min(policy.first_cap, most)
    while True:
        session.report(f"variational Bayes with {cap} classes")
        caps = (*caps, cap)
        done = fit_capped(data, cap, n_init, session, policy)
        left = done.weights * data.total > policy.least_records
        found = SparseFit(done.model.take(left), -done.objective, caps)
        yield found
        if found.rank < cap or cap == most:
            return
        cap = min(2 * cap, most)


def fit_capped(data: Data, cap: int, n_init: int, session: Session, policy: Policy) -> Run:
    """The best of several runs of sparse variational Bayes, each from a brief fit with a prior."""
    brief = solver_for("map", data, policy)
    limits = Limits(1000, progress=1e-8, window=20, exact=-1.0)
    solver = Variational(pseudo_count=policy.sparse_pseudo_count, limits=limits, policy=policy)
    starts = []
    for k in range(n_init):
        if cap > 1 and k % 2 == 0:
            start = grown_model(data, cap, policy.cautious_blend, brief, session.rng)
        else:
            start = random_model(data, cap, session.rng)
        starts.append(start)
    follow = partial(follow_capped, brief=brief, solver=solver, policy=policy)
    runs = search(data, starts, follow, session.here())
    return runs[best_run(runs)]


def follow_capped(
    data: Any,
    start: Model,
    number: int,
    session: Session,
    key: str,
    *,
    brief: Any,
    solver: Any,
    policy: Policy,
) -> Run:
    """A brief fit with a prior, then sparse variational Bayes."""
    begun = fit_rank(data, brief, [start], session, policy)
    return run(solver, data, begun.model, session, key=key)
