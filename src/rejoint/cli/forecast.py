"""What a fit will take: memory by counting, time by measuring passes over some of the records."""

from time import perf_counter
from typing import NamedTuple

import numpy as np

from rejoint.estimation import affordable, choose
from rejoint.estimation.problem import RecordProblem
from rejoint.records import Records

__all__ = ["Forecast", "forecast"]

#: Records that the measured passes go over.
SOME = 20_000

#: Passes of one start while it is explored, and of the last run to its end: few and many, as
#: seen on Adult, Mushroom, Nursery, Votes and MovieLens at ranks 2 to 40.
EXPLORED, FINISHED = (20, 120), (30, 1500)

#: Passes of the chains of Bayes, warm-up included.
CHAINS = (600, 2500)

#: What choosing the rank costs, in fits of the rank chosen.
CHOOSING = (4, 20)

#: A rank to measure with where none is given.
TYPICAL = 8


class Forecast(NamedTuple):
    """Bytes, seconds at the least and at the most, and the rank and estimator they are for."""

    memory: float
    low: float
    high: float
    rank: int
    words: str


def forecast(records: Records, rank: int | None, solver: str, n_init: int | None) -> Forecast:
    """Measure some passes and count the rest.

    Examples
    --------
    >>> import rejoint as rj
    >>> found = forecast(rj.datasets.asia().sample(500, random_state=0), 3, "ml", None)
    >>> found.rank, 0 < found.low <= found.high
    (3, True)
    """
    classes = TYPICAL if rank is None else rank
    problem = RecordProblem.of(records)
    chosen, why = choose(problem, classes, solver)
    seconds = measured_pass(problem, classes)
    starts = affordable(problem, classes) if n_init is None else n_init
    passes = [starts * a + b for a, b in zip(EXPLORED, FINISHED, strict=True)]
    if chosen not in ("ml", "map"):
        passes = [p + more for p, more in zip(passes, CHAINS, strict=True)]
    if rank is None:
        passes = [p * times for p, times in zip(passes, CHOOSING, strict=True)]
    cells = sum(records.domain.shape) * classes
    # Codes twice (as read, merged), weights, posteriors in blocks, statistics of each thread.
    memory = 2.0 * records.codes.nbytes + 16.0 * len(records) + 8.0 * 40 * cells + 6.4e7
    return Forecast(memory, passes[0] * seconds, passes[1] * seconds, classes, why)


def measured_pass(problem: RecordProblem, rank: int) -> float:
    """Seconds of one pass over all records, from the quickest of three over some."""
    rng = np.random.default_rng(0)
    part = RecordProblem(
        problem.domain, problem.codes[:SOME], problem.weight[:SOME], problem.threads
    )
    weights = np.full(rank, 1.0 / rank)
    columns = [rng.dirichlet(np.ones(n), rank).T for n in problem.levels]
    times = []
    for _ in range(3):
        begun = perf_counter()
        part.expect(weights, np.vstack(columns))
        times.append(perf_counter() - begun)
    return min(times) * len(problem.codes) / len(part.codes)
