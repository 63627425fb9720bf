"""How smooth: the time that levels slip for, by the likelihood of records held out.

A smooth column is ``A = T B``: a record of a class first takes a hidden level by ``B``, from
which it slips to neighbours by ``T``, the heat kernel of the levels' chain after some time. ``B``
has the Dirichlet prior that columns have without smoothing, and everything stays conjugate: counts
of levels are shared out among the hidden levels they may have slipped from, and the estimators work
on ``B`` as they do on ``A`` elsewhere. ``best_time`` chooses the time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache, partial
from typing import Self

import numpy as np

from rejoint import kernels
from rejoint.domain.domain import Domain
from rejoint.estimation.data import Array, Expected, RecordProblem, normalise
from rejoint.estimation.em import Em
from rejoint.estimation.explore import Report, best_start, explore, interrupted
from rejoint.estimation.priors import first_strengths, make_prior
from rejoint.estimation.starts import (
    CAUTIOUS,
    Model,
    Start,
    child,
    given_model,
    grown_model,
    independence,
    random_model,
)

#: Hidden columns have a prior this much weaker: what slips must be sharper than what is seen.
SHARPER = 0.35

#: Steps to the hidden shares behind a variable's own.
STEPS = 30


@lru_cache(maxsize=1024)
def heat_kernel(size: int, time: float) -> Array:
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
    kernel: Array = np.maximum((vectors * np.exp(-time * values)) @ vectors.T, 0.0)
    kernel.setflags(write=False)
    return kernel


@dataclass(frozen=True)
class SmoothProblem(RecordProblem):
    """Records whose factors are those of hidden levels; ``times`` are zero where not smooth."""

    times: tuple[float, ...] = ()

    @classmethod
    def over(cls, problem: RecordProblem, wished: Sequence[int], time: float) -> Self:
        """The same records with a time for some of the variables."""
        times = tuple(time if n in wished else 0.0 for n in range(len(problem.levels)))
        names = {field.name for field in fields(cls)} - {"times"}
        return cls(times=times, **{name: getattr(problem, name) for name in names})

    @cached_property
    def spreads(self) -> tuple[tuple[slice, Array], ...]:
        """Rows and kernel of each smooth variable."""
        return tuple(
            (self.rows(n), heat_kernel(self.levels[n], time))
            for n, time in enumerate(self.times)
            if time > 0
        )

    @cached_property
    def firmness(self) -> Array:
        """What strengths of priors are in proportion to."""
        sharper = np.where(np.asarray(self.times) > 0, SHARPER, 1.0)
        return np.asarray(self.levels) * sharper

    @cached_property
    def centre(self) -> Array:
        """Shares of the hidden levels that give each variable's own shares, nearly."""
        seen = self.level_totals + 0.5
        hidden = normalise(self, seen[:, None])
        for _ in range(STEPS):
            hidden = normalise(self, self.hidden_counts(seen[:, None], hidden) + 1e-3)
        return np.asarray(hidden[:, 0])

    def columns(self, factors: Array) -> Array:
        """Factors of the levels from those of the hidden ones."""
        mixed = np.array(factors)
        for rows, kernel in self.spreads:
            mixed[rows] = kernel @ factors[rows]
        return mixed

    def hidden_counts(self, counts: Array, factors: Array) -> Array:
        """Counts of levels shared out among hidden levels, in expectation."""
        shared = np.array(counts)
        for rows, kernel in self.spreads:
            mine = factors[rows]
            shared[rows] = mine * (kernel.T @ (counts[rows] / np.maximum(kernel @ mine, 1e-300)))
        return shared

    def draw_hidden(self, counts: Array, factors: Array, rng: np.random.Generator) -> Array:
        """Counts of levels shared out among hidden levels, at random."""
        shared = np.array(counts)
        for rows, kernel in self.spreads:
            # Chance of each hidden level (last axis) behind each level in each class.
            chance = kernel[:, None, :] * factors[rows].T[None, :, :] + 1e-300
            chance /= chance.sum(axis=2, keepdims=True)
            drawn = rng.multinomial(counts[rows].astype(np.int64), chance)
            shared[rows] = drawn.sum(axis=0).T
        return shared

    def expect(self, weights: Array, factors: Array) -> Expected:
        """One pass, and counts of the hidden levels."""
        found = self.seen(weights, self.columns(factors))
        return replace(found, levels=self.hidden_counts(found.levels, factors))


def wished_variables(domain: Domain, smooth: bool | str | Sequence[str]) -> tuple[int, ...]:
    """Numbers of the variables that are to be smooth.

    Examples
    --------
    >>> wished_variables(Domain.of({"a": 3}), ["a"])
    Traceback (most recent call last):
    ...
    ValueError: Variable 'a' is nominal: its levels have no neighbours to be smooth with. Declare \
its kind as 'ordinal' (kinds={'a': 'ordinal'}), or leave it out of smooth.
    """
    if isinstance(smooth, bool | np.bool_):
        ordered = (n for n, variable in enumerate(domain) if variable.kind != "nominal")
        return tuple(n for n in ordered if len(domain[n]) > 2) if smooth else ()
    wished = domain.indices(smooth)
    for n in wished:
        if domain[n].kind == "nominal":
            name = domain[n].name
            raise ValueError(
                f"Variable {name!r} is nominal: its levels have no neighbours to be smooth with. "
                f"Declare its kind as 'ordinal' (kinds={{{name!r}: 'ordinal'}}), or leave it out "
                "of smooth."
            )
    return tuple(n for n in wished if len(domain[n]) > 2)


#: Times that are tried in turn, until two have been worse than the best. A level slips by the root
#: of twice the time.
TIMES = (0.0, 0.1, 0.2, 0.4, 0.8, 1.5, 3.0)

#: Parts held out in turn, and records beyond which one of them is enough.
FOLDS, MANY = 3, 100_000


def best_time(
    problem: RecordProblem,
    rank: int,
    wished: Sequence[int],
    rng: np.random.Generator,
    report: Report,
) -> tuple[float, Model | None]:
    """The time after which records held out are most probable; zero where smoothing does not help.

    On Ctrl-C also a model of what was seen so far, factors of the levels themselves; it is raised
    where there is none yet.
    """
    parts = list(held_out(problem, rng))
    models: list[Model | None] = [None] * len(parts)
    scores: list[float] = []
    last: Model | None = None
    try:
        for time in TIMES:
            report(f"smooth columns, time {time:g}")
            total = 0.0
            for k, (learn, judge) in enumerate(parts):
                smooth = SmoothProblem.over(learn, wished, time)
                weights, factors = models[k] = brief_fit(smooth, rank, models[k], rng, report)
                last = weights, smooth.columns(factors)
                found = kernels.class_log_prob(judge.codes, *last, judge.levels, judge.threads)
                total += float(judge.weight @ found)
            scores.append(total)
            if len(scores) - 1 - int(np.argmax(scores)) >= 2:
                break
    except KeyboardInterrupt:
        if last is None:
            raise
        return 0.0, last
    return TIMES[int(np.argmax(scores))], None


def held_out(
    problem: RecordProblem, rng: np.random.Generator
) -> Iterator[tuple[RecordProblem, RecordProblem]]:
    """Records to learn from and records to judge by; copies of one may be in both."""
    whole = np.floor(problem.weight)
    shares = rng.multinomial(whole.astype(np.int64), np.full(FOLDS, 1.0 / FOLDS)).astype(float)
    rest = rng.integers(FOLDS, size=len(whole))
    shares[np.arange(len(whole)), rest] += problem.weight - whole
    for k in range(1 if problem.total > MANY else FOLDS):
        held = shares[:, k]
        kept = problem.weight - held
        if (held > 0).any() and (kept > 0).any():
            yield part(problem, kept), part(problem, held)


def part(problem: RecordProblem, weight: np.ndarray) -> RecordProblem:
    """The records of positive weight, with that weight."""
    rows = np.flatnonzero(weight > 0)
    return problem.take(rows, weight[rows])


def brief_fit(
    problem: RecordProblem,
    rank: int,
    warm: Model | None,
    rng: np.random.Generator,
    report: Report,
) -> Model:
    """Some steps with a prior: from the fit of the last time, and from one grown afresh."""
    em = Em(prior=make_prior(problem, first_strengths(problem), 0.0))
    grown = partial(grown_model, rank=rank, blend=CAUTIOUS, em=em, rng=child(rng))
    other = partial(random_model, rank=rank, rng=child(rng)) if warm is None else given_model(warm)
    starts: list[Start] = [grown, other] if rank > 1 else [independence]
    runs = explore(problem, em, starts, report)
    if interrupted(runs):
        raise KeyboardInterrupt
    best = runs[best_start(runs)]
    return best.weights, best.factors
