"""Smooth factor columns: neighboring levels of an ordered variable inform each other.

A smooth column is ``A = T B``: a record of a class first takes a hidden level by ``B``, from
which it slips to neighbors by ``T``, the heat kernel of the levels' chain after some time. ``B``
has the Dirichlet prior that columns have without smoothing, and everything stays conjugate: counts
of levels are shared out among the hidden levels they may have slipped from, and the estimators work
on ``B`` as they do on ``A`` elsewhere. :func:`choose_time` chooses the time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import islice
from math import ceil
from typing import Literal, TypeVar

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.domain.domain import Domain
from rejoint.estimation.data import Data, InMemory
from rejoint.estimation.em import Em
from rejoint.estimation.folds import make_folds
from rejoint.estimation.gibbs import child
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.priors import first_prior
from rejoint.estimation.starts import grown_model, independence, random_model
from rejoint.model import Layout, Model
from rejoint.solver.run import run
from rejoint.solver.search import best_run
from rejoint.solver.session import Session
from rejoint.text import cite

#: Steps to the hidden distribution behind a variable's own.
CENTER_STEPS = 30

#: Levels of all variables together that are smooth by default: each variable has its own kernel,
#: and thousands of them would take longer than the records.
MOST_SMOOTH_LEVELS = 5_000

#: Levels of a variable whose time is the one that is chosen.
TIME_LEVELS = 15


@lru_cache(maxsize=1024)
def heat_kernel(size: int, time: float) -> FloatArray:
    """``P(level | hidden level)`` after a time on a chain of levels, (size, size)."""
    steps = np.diff(np.eye(size), axis=0)
    values, vectors = np.linalg.eigh(steps.T @ steps)
    kernel: FloatArray = np.maximum((vectors * np.exp(-time * values)) @ vectors.T, 0.0)
    kernel.setflags(write=False)
    return kernel


@dataclass(frozen=True)
class HiddenLevels:
    """The levels that records had before they slipped to neighbors.

    Parameters
    ----------
    layout : Layout
        Of the variables.
    times : tuple of float
        Diffusion time of each variable; zero where it is not smooth.
    concentration : float
        Ratio of the concentration of hidden columns to that of others.
    """

    layout: Layout
    times: tuple[float, ...]
    concentration: float

    @cached_property
    def kernels(self) -> tuple[tuple[slice, FloatArray], ...]:
        """Rows and kernel of each smooth variable."""
        return tuple(
            (self.layout.rows(n), heat_kernel(self.layout.levels[n], time))
            for n, time in enumerate(self.times)
            if time > 0
        )

    @property
    def sharpness(self) -> FloatArray:
        """Ratio of the unit of the concentration of each variable, (N,)."""
        return np.where(np.asarray(self.times) > 0, self.concentration, 1.0)

    def center(self, totals: FloatArray) -> FloatArray:
        """The hidden distribution that gives each variable's own one, nearly."""
        seen = totals[:, None]
        hidden = self.layout.normalize(seen)
        for _ in range(CENTER_STEPS):
            hidden = self.layout.normalize(self.share_counts(seen, hidden) + 1e-3)
        return np.asarray(hidden[:, 0])

    def observe(self, factors: FloatArray) -> FloatArray:
        """Columns of the levels, from those of the hidden ones."""
        seen = np.array(factors)
        for rows, kernel in self.kernels:
            seen[rows] = kernel @ factors[rows]
        return seen

    def share_counts(self, counts: FloatArray, factors: FloatArray) -> FloatArray:
        """Counts of levels shared out among hidden levels, in expectation."""
        shared = np.array(counts)
        for rows, kernel in self.kernels:
            mine = factors[rows]
            shared[rows] = mine * (kernel.T @ (counts[rows] / np.maximum(kernel @ mine, 1e-300)))
        return shared

    def draw_counts(
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


AnyData = TypeVar("AnyData", bound=Data)


def smooth_levels(
    data: AnyData, variables: Sequence[int], time: float, policy: Policy = DEFAULT
) -> AnyData:
    """The data with hidden levels of some variables, times in proportion to their squared number.

    Levels then spread by the same share of their number: what is near in 25 bins is the same
    level where there are five.
    """
    times = tuple(
        time * (len(variable) / TIME_LEVELS) ** 2 if n in variables else 0.0
        for n, variable in enumerate(data.domain)
    )
    hidden = HiddenLevels(Layout(data.domain.shape), times, policy.smooth_concentration)
    return replace(data, hidden=hidden)  # type: ignore[type-var]


#: Variables that are to be smooth: all that have an order, none, some by name, or, by default, all
#: unless the likelihood alone is maximized.
Smooth = bool | Literal["auto"] | Sequence[str]


def smooth_variables(domain: Domain, smooth: Smooth, solver: object = "auto") -> tuple[int, ...]:
    """Positions of the variables that are to be smooth."""
    if smooth == "auto":
        has_prior = isinstance(solver, str) and solver in ("auto", "map", "bayes")
        found = smooth_variables(domain, has_prior)
        return found if sum(len(domain[n]) for n in found) <= MOST_SMOOTH_LEVELS else ()
    if isinstance(smooth, bool | np.bool_):
        ordered = (n for n, variable in enumerate(domain) if variable.kind != "nominal")
        return tuple(n for n in ordered if len(domain[n]) > 2) if smooth else ()
    if not isinstance(smooth, Iterable):
        raise TypeError(
            f"smooth must be 'auto', True, False or a list of names, not {cite(smooth)}."
        )
    asked = domain.indices(smooth)
    for name in (domain[n].name for n in asked if domain[n].kind == "nominal"):
        raise ValueError(
            f"Variable {cite(name)} is nominal: its levels have no order to be smoothed along. "
            f"Declare its kind as 'ordinal' (kinds={{{cite(name)}: 'ordinal'}}), or leave it "
            "out of smooth."
        )
    return tuple(n for n in asked if len(domain[n]) > 2)


def smooth_data(
    data: AnyData, variables: Sequence[int], rank: int, session: Session, policy: Policy
) -> tuple[AnyData, Policy, float]:
    """The data with some smooth variables, the policy for them, and the time.

    Held-out records choose the time; the data themselves where that is zero.
    """
    if not variables:
        return data, policy, 0.0
    wide = replace(policy, concentration_spread=policy.smooth_spread)
    time = choose_time(data.sample().records, rank, variables, session, wide)
    if time == 0:
        return data, policy, time
    return smooth_levels(data, variables, time, wide), wide, time


def choose_time(
    data: InMemory, rank: int, variables: Sequence[int], session: Session, policy: Policy
) -> float:
    """Choose the diffusion time by held-out likelihood; zero where smoothing does not help.

    Times are tried from the one in the middle on, to the side that is better. Few classes and some
    thousand records are enough to choose by, which keeps the choice cheap.
    """
    count = ceil(policy.judging_records * policy.smooth_folds / data.total)
    made = islice(make_folds(data, policy.smooth_folds, session.rng), count)
    folds = [fold.limit(policy.judge_rows, policy.judge_rows, session.rng) for fold in made]
    least = min((fold.learn.total for fold in folds), default=0.0)
    rank = min(rank, policy.smooth_rank, max(int(least / policy.records_per_class), 1))
    models: list[Model | None] = [None] * len(folds)
    times = policy.smooth_times

    @cache
    def score(at: int) -> float:
        if not 0 <= at < len(times):
            return -np.inf
        session.report(f"smooth columns, time {times[at]:g}")
        total = 0.0
        for k, fold in enumerate(folds):
            learn = smooth_levels(fold.learn, variables, times[at], policy)
            models[k] = model = brief_fit(learn, rank, models[k], session, policy)
            total += float(fold.mass @ fold.judge.log_prob(learn.observed(model)))
        return total

    at = len(times) // 2
    start = score(at)
    side = 1 if score(at + 1) > start else -1
    while score(at + side) > score(at):
        at += side
    return times[at]


def brief_fit(
    data: InMemory, rank: int, warm: Model | None, session: Session, policy: Policy
) -> Model:
    """Some steps with a prior: from the fit of another time, or from the better of two starts."""
    em = Em(first_prior(data, policy), limits=policy.explore, policy=policy)
    starts = [warm or independence(data)]
    if warm is None and rank > 1:
        grown = grown_model(data, rank, em, child(session.rng))
        starts = [grown, random_model(data, rank, child(session.rng))]
    runs = [run(em, data, start, session) for start in starts]
    return runs[best_run(runs)].model


def describe_smoothing(time: float) -> str:
    """Describe how smooth the columns are."""
    if time == 0:
        return "Columns are not smoothed: no spread that was tried raises the held-out likelihood."
    share = f"{np.sqrt(2 * time) / TIME_LEVELS:.0%} of the number of levels"
    return f"Smoothed columns: the held-out likelihood chose a spread of {share}."
