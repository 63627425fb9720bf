"""What a fit will take: memory by counting, time by measuring passes over some of the records."""

from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

import numpy as np

from rejoint.estimation.data import InMemory
from rejoint.estimation.estimate import Request, choose_solver
from rejoint.model import Model
from rejoint.records.records import Records

__all__ = ["Forecast", "forecast"]

#: Records that the measured passes go over.
SOME = 20_000

#: Passes that a fit comes to, few and many, all starts and what is not passes included; as seen
#: on Adult (5,000 records), Mushroom, Votes and Asia (400) at ranks 3 and 12. The larger the data,
#: the fewer the starts.
PASSES = (1_500, 8_000)

#: How many times more, where the posterior is drawn from.
BAYES = 1.6

#: Passes, at the typical rank, of choosing the rank and the fit that follows.
CHOOSING = (6_000, 50_000)

#: Seconds that even the smallest fit takes.
LEAST = 0.3

#: A rank to measure with where none is given.
TYPICAL = 8


class Forecast(NamedTuple):
    """Bytes, seconds at the least and at the most, and the rank and estimator they are for."""

    memory: float
    low: float
    high: float
    rank: int
    words: str


def forecast(records: Records, rank: int | None, solver: str) -> Forecast:
    """Measure some passes and count the rest.

    Examples
    --------
    >>> import rejoint as rj
    >>> found = forecast(rj.datasets.asia().sample(500, random_state=0), 3, "ml")
    >>> found.rank, 0 < found.low <= found.high
    (3, True)
    """
    classes = TYPICAL if rank is None else rank
    problem = InMemory.of(records)
    chosen, why = choose_solver(problem, classes, Request(solver=solver))
    seconds = measured_pass(problem, classes)
    low, high = (LEAST + seconds * passes for passes in (PASSES if rank else CHOOSING))
    if chosen not in ("ml", "map"):
        low, high = BAYES * low, BAYES * high
    cells = sum(records.domain.shape) * classes
    # Codes twice (as read, merged), weights, posteriors in blocks, statistics of each thread.
    memory = 2.0 * records.codes.nbytes + 16.0 * len(records) + 8.0 * 40 * cells + 6.4e7
    return Forecast(memory, low, high, classes, why)


def measured_pass(problem: InMemory, rank: int) -> float:
    """Seconds of one pass over all records, from the quickest of three over some."""
    rng = np.random.default_rng(0)
    part = replace(problem, codes=problem.codes[:SOME], weight=problem.weight[:SOME])
    columns = [rng.dirichlet(np.ones(n), rank).T for n in problem.layout.levels]
    model = Model.of(np.full(rank, 1.0 / rank), columns)
    times = []
    for _ in range(3):
        begun = perf_counter()
        part.expect(model)
        times.append(perf_counter() - begun)
    return min(times) * len(problem.codes) / len(part.codes)
