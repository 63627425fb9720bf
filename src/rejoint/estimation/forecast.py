"""Forecast: what a fit to records will cost, from some measured passes."""

from time import perf_counter

import numpy as np

from rejoint.cost import LONG, Cost
from rejoint.estimation.data import Data, InMemory
from rejoint.messages import Message, remark
from rejoint.model import Model
from rejoint.text import plural

#: Records that the measured passes go over.
MEASURED_RECORDS = 20_000

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

#: Passes over data that are read part by part, for a mode, with draws, and with draws where the
#: rank is chosen; as seen on 6,000 and 60,000 records of Asia.
STREAMED = {"mode": (20, 200), "draws": (140, 300), "chosen": (1_300, 1_600)}

#: Seconds that even the smallest fit takes.
LEAST_SECONDS = 0.3

#: A rank to measure with where none is given, and the largest one: a pass takes time in
#: proportion to the rank from there on.
TYPICAL, MOST_MEASURED = 8, 64

#: Copies of the model that a fit holds, with posterior draws (530 were seen) and without.
COPIES, COPIES_OF_DRAWS = 60, 600

#: Classes for each different record, above which they are far too many.
MOST_CLASSES = 10

#: Seconds of a cell and class in a pass, at the most: what is short by this is not measured.
SLOWEST = 1e-8


def forecast(data: Data, rank: int | None, *, draws: bool = True, shortest: float = 0.0) -> Cost:
    """Return the cost of a fit.

    Parameters
    ----------
    data : Data
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
    small = data.sample().records
    classes = rank or TYPICAL
    looked = min(1.0, LOOKED_AT / max(len(small.codes), 1))
    chosen = (looked * some + more for some, more in zip(CHOOSING, CHOSEN, strict=True))
    passes = np.array([BAYES**draws * number for number in (PASSES if rank else chosen)])
    over_all = np.zeros(2)
    if small is not data:
        over_all = np.array(STREAMED["mode" if not draws else "draws" if rank else "chosen"])
    model = 8.0 * data.layout.size * classes
    codes = small.codes.nbytes if isinstance(small.codes, np.ndarray) else 4.0 * small.cells
    # Codes twice (as read, merged), weights, posteriors in blocks, statistics of each thread.
    memory = 2.0 * codes + 16.0 * len(small.codes) + 6.4e7
    memory += model * (COPIES_OF_DRAWS if draws else COPIES)
    cells = small.cells * passes[0] + data.cells * over_all[0]
    if SLOWEST * cells * classes < shortest:
        return Cost(memory)
    measured = min(classes, MOST_MEASURED)
    seconds = passes * measured_pass(small, measured)
    if small is not data:  # whose records are not merged
        rows = np.resize(np.arange(len(small.codes)), MEASURED_RECORDS)
        many = small.take(rows, np.ones(MEASURED_RECORDS))
        share = data.cells / max(len(data.domain) * MEASURED_RECORDS, 1)
        seconds += over_all * share * measured_pass(many, measured)
    low, high = (LEAST_SECONDS + seconds * max(1.0, classes / MOST_MEASURED)).tolist()
    return Cost(memory, low, high)


def check_cost(data: Data, rank: int | None, *, draws: bool) -> None:
    """Raise an error if memory does not suffice; remark on long fits and too many classes.

    Examples
    --------
    >>> import rejoint as rj
    >>> check_cost(InMemory.of(rj.datasets.asia().sample(500, random_state=0)), 3, draws=True)
    """
    small = data.sample().records
    records = plural(len(small.codes), "different record")
    classes_for_each = (rank or 0) / max(len(small.codes), 1)
    if small is not data:
        records, classes_for_each = plural(round(data.size), "record"), 0.0
    classes = "a rank that is yet to be chosen" if rank is None else f"rank {rank:,}"
    instead = "a smaller rank, fewer columns and fewer levels take less"
    if classes_for_each > 1.0:
        instead = f"there are {records}, and more classes than that are of no use"
    found = forecast(data, rank, draws=draws, shortest=LONG)
    told = found.check(f"A fit of {classes} to {records}", instead)
    if classes_for_each > MOST_CLASSES and not told:
        what = {"rank": f"Rank {rank:,}", "instead": instead}
        remark(Message("{rank} is far above the number of records: {instead}.", **what))


def measured_pass(data: InMemory, rank: int) -> float:
    """Seconds of one pass over all records, from the quickest of three over some."""
    rng = np.random.default_rng(0)
    part = data.take(
        np.arange(min(MEASURED_RECORDS, len(data.codes))), data.weight[:MEASURED_RECORDS]
    )
    columns = [rng.dirichlet(np.ones(n), rank).T for n in data.layout.levels]
    model = Model.of(np.full(rank, 1.0 / rank), columns)
    times = []
    for _ in range(3):
        begun = perf_counter()
        part.expect(model)
        times.append(perf_counter() - begun)
    return min(times) * len(data.codes) / len(part.codes)
