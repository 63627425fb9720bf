"""Forecast: what a fit to records will cost, from some measured passes."""

from time import perf_counter

import numpy as np

from rejoint.cost import LONG, Cost
from rejoint.estimation.data import InMemory
from rejoint.model import Model

#: Records that the measured passes go over.
SOME = 20_000

#: Passes that a fit comes to, few and many, all starts and what is not passes included; as seen
#: on Adult (5,000 records), Mushroom, Votes and Asia (400) at ranks 3 and 12. The larger the data,
#: the fewer the starts.
PASSES = (1_500, 8_000)

#: How many times more, where the posterior is drawn from.
BAYES = 1.6

#: Passes, at the typical rank, of choosing the rank, which looks at no more than so many records,
#: and of the fit that follows; as seen at 60 to 100,000 records of 8 to 1,000 variables.
CHOOSING, LOOKED_AT = (6_000, 50_000), 10_000
CHOSEN = (300, 3_000)

#: Seconds that even the smallest fit takes.
LEAST = 0.3

#: A rank to measure with where none is given, and the largest one: a pass takes time in
#: proportion to the rank from there on.
TYPICAL, MOST_MEASURED = 8, 64

#: Copies of the model that a fit holds, with posterior draws (530 were seen) and without.
COPIES, COPIES_OF_DRAWS = 60, 600

#: Seconds of a cell and class in a pass, at the most: what is short by this is not measured.
SLOWEST = 1e-8


def forecast(
    data: InMemory, rank: int | None, *, draws: bool = True, shortest: float = 0.0
) -> Cost:
    """Return the cost of a fit.

    Parameters
    ----------
    data : InMemory
        The records.
    rank : int or None
        Number of classes; None where the fit chooses it.
    draws : bool
        Whether the fit draws from the posterior.
    shortest : float
        Seconds below which no time is measured, and none is told.

    Examples
    --------
    >>> import rejoint as rj
    >>> data = InMemory.of(rj.datasets.asia().sample(500, random_state=0))
    >>> found = forecast(data, 3, draws=False)
    >>> 0 < found.low <= found.high, found.memory < 1e9
    (True, True)
    """
    classes = rank or TYPICAL
    looked = min(1.0, LOOKED_AT / max(len(data.codes), 1))
    chosen = (looked * some + more for some, more in zip(CHOOSING, CHOSEN, strict=True))
    low, high = (BAYES**draws * passes for passes in (PASSES if rank else chosen))
    model = 8.0 * data.layout.size * classes
    codes = data.codes.nbytes if isinstance(data.codes, np.ndarray) else 4.0 * data.cells
    # Codes twice (as read, merged), weights, posteriors in blocks, statistics of each thread.
    memory = 2.0 * codes + 16.0 * len(data.codes) + 6.4e7
    memory += model * (COPIES_OF_DRAWS if draws else COPIES)
    if SLOWEST * data.cells * classes * low < shortest:
        return Cost(memory)
    seconds = measured_pass(data, min(classes, MOST_MEASURED)) * max(1.0, classes / MOST_MEASURED)
    return Cost(memory, LEAST + seconds * low, LEAST + seconds * high)


def check_cost(data: InMemory, rank: int | None, *, draws: bool) -> None:
    """Refuse a fit that is beyond the machine's memory, and say if it takes minutes.

    Examples
    --------
    >>> import rejoint as rj
    >>> check_cost(InMemory.of(rj.datasets.asia().sample(500, random_state=0)), 3, draws=True)
    """
    classes = "a rank that is yet to be chosen" if rank is None else f"rank {rank:,}"
    instead = "a smaller rank, fewer columns and fewer levels take less"
    if rank and rank > (most := len(data.codes)):
        instead = f"there are {most:,} different records, and more classes than these are of no use"
    found = forecast(data, rank, draws=draws, shortest=LONG)
    found.check(f"A fit of {classes} to {len(data.codes):,} different records", instead)


def measured_pass(data: InMemory, rank: int) -> float:
    """Seconds of one pass over all records, from the quickest of three over some."""
    rng = np.random.default_rng(0)
    part = data.take(np.arange(min(SOME, len(data.codes))), data.weight[:SOME])
    columns = [rng.dirichlet(np.ones(n), rank).T for n in data.layout.levels]
    model = Model.of(np.full(rank, 1.0 / rank), columns)
    times = []
    for _ in range(3):
        begun = perf_counter()
        part.expect(model)
        times.append(perf_counter() - begun)
    return min(times) * len(data.codes) / len(part.codes)
