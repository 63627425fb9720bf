"""How smooth: the time that levels slip for, by the likelihood of records held out."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from rejoint import kernels
from rejoint.estimation.em import Em
from rejoint.estimation.exploring import Report, best_start, explore, interrupted
from rejoint.estimation.priors import first_strengths, make_prior
from rejoint.estimation.problem import RecordProblem
from rejoint.estimation.smoothing import SmoothProblem
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
