"""Smooth factor columns: neighboring levels of an ordered variable inform each other.

A smooth column is ``A = T B``: a record of a class first takes a hidden level by ``B``, from
which it slips to neighbors by ``T``, the heat kernel of the levels' chain after some time. ``B``
has the Dirichlet prior that columns have without smoothing, and everything stays conjugate: counts
of levels are shared out among the hidden levels they may have slipped from, and the estimators work
on ``B`` as they do on ``A`` elsewhere. :func:`choose_time` chooses the time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial

import numpy as np

from rejoint.domain.domain import Domain
from rejoint.estimation.data import Data, Expected, InMemory
from rejoint.estimation.em import Em
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.priors import first_prior
from rejoint.estimation.starts import (
    Start,
    child,
    follow_start,
    given_model,
    grown_model,
    independence,
    random_model,
)
from rejoint.model import FloatArray, Model
from rejoint.solver.checkpoint import digest
from rejoint.solver.search import best_run, search
from rejoint.solver.session import Session
from rejoint.solver.solver import Run

#: Steps to the hidden distribution behind a variable's own.
CENTER_STEPS = 30


@lru_cache(maxsize=1024)
def heat_kernel(size: int, time: float) -> FloatArray:
    """``P(level | hidden level)`` after a time on a chain of levels, (size, size).

    Examples
    --------
    >>> heat_kernel(3, 0.1).round(2)
    array([[0.91, 0.09, 0.  ],
           [0.09, 0.83, 0.09],
           [0.  , 0.09, 0.91]])
    """
    steps = np.diff(np.eye(size), axis=0)
    values, vectors = np.linalg.eigh(steps.T @ steps)
    kernel: FloatArray = np.maximum((vectors * np.exp(-time * values)) @ vectors.T, 0.0)
    kernel.setflags(write=False)
    return kernel


@dataclass(frozen=True, eq=False)
class Smoothed(Data):
    """Data whose models are of hidden levels; ``times`` are zero where a variable is not smooth."""

    base: Data
    times: tuple[float, ...]
    policy: Policy = field(default=DEFAULT, repr=False)

    @classmethod
    def over(
        cls, base: Data, variables: Sequence[int], time: float, policy: Policy = DEFAULT
    ) -> "Smoothed":
        """Give some of the variables a time."""
        times = tuple(time if n in variables else 0.0 for n in range(len(base.domain)))
        return cls(base, times, policy)

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        """The variables."""
        return self.base.domain

    @property
    def threads(self) -> int:  # type: ignore[override]
        """Threads of a pass."""
        return self.base.threads

    @property
    def total(self) -> float:
        """Weight of all records."""
        return self.base.total

    @property
    def size(self) -> float:
        """Number of records: their weight, or how many they are where they weigh less."""
        return self.base.size

    @property
    def level_totals(self) -> FloatArray:
        """Weight of the records that hold each level, (L,)."""
        return self.base.level_totals

    @property
    def cells(self) -> int:
        """Cells that a pass goes through."""
        return self.base.cells

    @property
    def records(self) -> InMemory:
        """The records behind them."""
        return self.base.records

    @cached_property
    def fingerprint(self) -> str:
        """What tells these records, and the times, from others."""
        return digest(self.base.fingerprint, self.times)

    def sample(self) -> Data:
        """The same over records in memory."""
        small = self.base.sample()
        return self if small is self.base else replace(self, base=small)

    def alone(self) -> "Smoothed":
        """The same for work beside others: one thread."""
        return replace(self, base=self.records.alone())

    @cached_property
    def kernels(self) -> tuple[tuple[slice, FloatArray], ...]:
        """Rows and kernel of each smooth variable."""
        return tuple(
            (self.layout.rows(n), heat_kernel(self.layout.levels[n], time))
            for n, time in enumerate(self.times)
            if time > 0
        )

    @cached_property
    def concentration_unit(self) -> FloatArray:
        """What concentrations of priors are in proportion to."""
        sharper = np.where(np.asarray(self.times) > 0, self.policy.smooth_concentration, 1.0)
        return np.asarray(self.layout.levels) * sharper

    @cached_property
    def center(self) -> FloatArray:
        """The hidden distribution that gives each variable's own one, nearly."""
        seen = (self.level_totals + 0.5)[:, None]
        hidden = self.layout.normalize(seen)
        for _ in range(CENTER_STEPS):
            hidden = self.layout.normalize(self.hidden_counts(seen, hidden) + 1e-3)
        return np.asarray(hidden[:, 0])

    def observed(self, model: Model) -> Model:
        """The model of the levels from that of the hidden ones."""
        factors = np.array(model.factors)
        for rows, kernel in self.kernels:
            factors[rows] = kernel @ model.factors[rows]
        return replace(model, factors=factors)

    def hidden_counts(self, counts: FloatArray, factors: FloatArray) -> FloatArray:
        """Counts of levels shared out among hidden levels, in expectation."""
        shared = np.array(counts)
        for rows, kernel in self.kernels:
            mine = factors[rows]
            shared[rows] = mine * (kernel.T @ (counts[rows] / np.maximum(kernel @ mine, 1e-300)))
        return shared

    def draw_hidden(
        self, counts: FloatArray, factors: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Counts of levels shared out among hidden levels, at random."""
        shared = np.array(counts)
        for rows, kernel in self.kernels:
            # Probability of each hidden level (last axis) behind each level in each class.
            chance = kernel[:, None, :] * factors[rows].T[None, :, :] + 1e-300
            chance /= chance.sum(axis=2, keepdims=True)
            drawn = rng.multinomial(counts[rows].astype(np.int64), chance).astype(np.float64)
            rest = counts[rows] - np.floor(counts[rows])  # of weights that are not whole
            shared[rows] = (drawn + rest[:, :, None] * chance).sum(axis=0).T
        return shared

    def expect(self, model: Model) -> Expected:
        """One pass, and expected counts of the hidden levels."""
        found = self.base.expect(self.observed(model))
        hidden = self.hidden_counts(found.levels, model.factors)
        return Expected(found.log_likelihood, np.vstack([found.classes, hidden]))

    def draw(self, model: Model, rng: np.random.Generator) -> Expected:
        """One pass with classes drawn, and hidden levels drawn."""
        found = self.base.draw(self.observed(model), rng)
        hidden = self.draw_hidden(found.levels, model.factors, rng)
        return Expected(found.log_likelihood, np.vstack([found.classes, hidden]))


def smooth_variables(domain: Domain, smooth: bool | str | Sequence[str]) -> tuple[int, ...]:
    """Positions of the variables that are to be smooth.

    Examples
    --------
    >>> smooth_variables(Domain.of({"a": 3}), ["a"])
    Traceback (most recent call last):
    ...
    ValueError: Variable 'a' is nominal: its levels have no neighbors to be smooth with. Declare \
its kind as 'ordinal' (kinds={'a': 'ordinal'}), or leave it out of smooth.
    """
    if isinstance(smooth, bool | np.bool_):
        ordered = (n for n, variable in enumerate(domain) if variable.kind != "nominal")
        return tuple(n for n in ordered if len(domain[n]) > 2) if smooth else ()
    asked = domain.indices(smooth)
    for n in asked:
        if domain[n].kind == "nominal":
            name = domain[n].name
            raise ValueError(
                f"Variable {name!r} is nominal: its levels have no neighbors to be smooth with. "
                f"Declare its kind as 'ordinal' (kinds={{{name!r}: 'ordinal'}}), or leave it out "
                "of smooth."
            )
    return tuple(n for n in asked if len(domain[n]) > 2)


def choose_time(
    data: InMemory, rank: int, variables: Sequence[int], session: Session, policy: Policy
) -> float:
    """The time after which held-out records are most probable; zero where smoothing does not help.

    What is offered to an interrupted fit is a model of the levels themselves.
    """
    folds = list(hold_out(data, session.rng, policy))
    models: list[Model | None] = [None] * len(folds)
    scores: list[float] = []
    for time in policy.smooth_times:
        session.report(f"smooth columns, time {time:g}")
        total = 0.0
        for k, (learn, judge) in enumerate(folds):
            smooth = Smoothed.over(learn, variables, time, policy)
            model = models[k] = brief_fit(smooth, rank, models[k], session, policy)
            seen = smooth.observed(model)
            session.offer(partial(given_model, data, seen))
            total += float(judge.weight @ judge.log_prob(seen))
        scores.append(total)
        if len(scores) - 1 - int(np.argmax(scores)) >= 2:
            break
    return policy.smooth_times[int(np.argmax(scores))]


def hold_out(
    data: InMemory, rng: np.random.Generator, policy: Policy
) -> Iterator[tuple[InMemory, InMemory]]:
    """Records to learn from and records to judge by.

    Copies of one may be in both; weights that do not count copies stay with their record, and
    records with their cluster.
    """
    folds, data = policy.smooth_folds, data.observations()
    copies = data.weight if data.counts_copies else np.zeros(len(data.weight))
    shares = rng.multinomial(copies.astype(np.int64), np.full(folds, 1.0 / folds)).astype(float)
    counts = data.counts_copies
    rest = rng.integers(folds, size=len(copies)) if counts else data.divide(folds, rng)
    shares[np.arange(len(copies)), rest] += data.weight - copies
    for k in range(1 if data.total > policy.one_fold_records else folds):
        held = shares[:, k]
        kept = data.weight - held
        if (held > 0).any() and (kept > 0).any():
            learn = data.reweight(kept)
            yield learn if data.counts_copies else learn.merge(), data.reweight(held)


def brief_fit(data: Data, rank: int, warm: Model | None, session: Session, policy: Policy) -> Model:
    """Some steps with a prior: from the fit of the last time, and from one grown afresh."""
    rng = session.rng
    em = Em(prior=first_prior(data, policy), policy=policy)
    blend = policy.cautious_blend
    grown = partial(grown_model, rank=rank, blend=blend, em=em, rng=child(rng))
    other: Start
    if warm is None:
        other = partial(random_model, rank=rank, rng=child(rng))
    else:
        other = partial(given_model, model=warm)
    starts: list[Start] = [grown, other] if rank > 1 else [independence]
    explore = replace(em, limits=policy.explore)
    runs: list[Run] = search(data, starts, partial(follow_start, solver=explore), session)
    return runs[best_run(runs)].model
