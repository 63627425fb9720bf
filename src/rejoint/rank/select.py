"""Choosing the rank: the criterion, the search, the sentence."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from itertools import chain, count
from os import PathLike
from typing import Any, Literal, NamedTuple

import numpy as np

from rejoint.domain.domain import Domain
from rejoint.estimation.data import RecordProblem
from rejoint.estimation.estimate import kept, open_journal
from rejoint.pmf.pmf import LowRankPMF
from rejoint.rank.criteria import Bic, Chain, Criterion, Evidence, HeldOut, Report, vanish
from rejoint.rank.folds import copies, part
from rejoint.rank.selection import Selection, make_words
from rejoint.records.records import BaseRecords, R
from rejoint.records.sparse import as_records
from rejoint.solver.checkpoint import Journal
from rejoint.solver.progress import Progress

#: Ranks in growing steps; beyond these each power of ten repeats the last pattern.
FIRST = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15)
PATTERN = (20, 25, 30, 40, 50, 60, 80, 100, 120, 150)

#: The search ends when so many sizes beyond the best are no better, or fewer that are clearly
#: worse: one can be a local maximum of the likelihood that a larger one escapes.
NO_BETTER, CLEARLY_WORSE = 3, 2

#: Gaps around the best are closed down to this share of it.
FINE = 0.1

Clearly = Callable[[int, int], bool]


def smallest_best(scores: Mapping[int, float], slack: float = 0.0) -> int:
    """The smallest rank whose score is the best but for ``slack``.

    Examples
    --------
    >>> smallest_best({1: 0.0, 2: 1.0, 3: 1.1}), smallest_best({1: 0.0, 2: 1.0, 3: 1.1}, 0.2)
    (3, 2)
    """
    top = max(scores.values()) - slack
    return min(rank for rank, score in scores.items() if score >= top)


def sizes(cap: int) -> Iterator[int]:
    """Ranks to try in order, up to a cap, which is the last.

    Examples
    --------
    >>> list(sizes(9)), list(sizes(23))[-3:]
    ([1, 2, 3, 4, 5, 6, 8, 9], [15, 20, 23])
    """
    beyond = (size * 10**power for power in count() for size in PATTERN)
    for size in chain(FIRST, beyond):
        if size >= cap:
            yield cap
            return
        yield size


def past_best(scores: Mapping[int, float], clearly_worse: Clearly, slack: float = 0.0) -> bool:
    """Whether larger ranks can be spared: the score has fallen, not just dipped.

    Examples
    --------
    >>> past_best({1: 0.0, 2: 1.0, 3: 0.5}, lambda best, other: True)
    False
    >>> past_best({1: 0.0, 2: 1.0, 3: 0.5, 4: 0.4}, lambda best, other: True)
    True
    """
    best = smallest_best(scores, slack)
    beyond = [rank for rank in scores if rank > best]
    if len(beyond) >= NO_BETTER:
        return True
    return len(beyond) >= CLEARLY_WORSE and all(clearly_worse(best, rank) for rank in beyond)


def between(scores: Mapping[int, float], slack: float = 0.0) -> int | None:
    """The next rank to try next to the best, in the wider of the gaps; None if they are closed.

    Examples
    --------
    >>> between({1: 0.0, 6: 2.0, 8: 3.0, 12: 1.0}), between({4: 0.0, 5: 1.0, 6: 0.0})
    (10, None)
    """
    best = smallest_best(scores, slack)
    near = [rank for rank in scores if rank != best]
    below = max((rank for rank in near if rank < best), default=best)
    above = min((rank for rank in near if rank > best), default=best)
    gap, low = max((above - best, best), (best - below, below))
    if gap <= max(1.0, FINE * best):
        return None
    return low + gap // 2


CriterionName = Literal["heldout", "bic", "evidence", "variational"]

#: Rows beyond which as many are drawn for the search, and copies beyond which not every fold is
#: used: differences are then seen in two.
MANY, FEW_FOLDS = 1_000_000, 2


def select(
    data: Any,
    ranks: Sequence[int] | None = None,
    *,
    criterion: CriterionName = "heldout",
    solver: Any = "map",
    folds: int = 5,
    n_init: int = 3,
    sample_weight: Any = None,
    domain: Domain | None = None,
    random_state: int | np.random.Generator | None = None,
    progress: bool | None = None,
    checkpoint: str | PathLike[str] | Journal | None = None,
    executor: Executor | None = None,
) -> Selection:
    """Choose the number of hidden classes.

    Parameters
    ----------
    data : Records, SparseRecords, or anything that ``Records.of`` takes
        May have missing cells.
    ranks : sequence of int, optional
        The ranks to compare. By default 1, 2, 3, ... in growing steps until the score falls,
        then those in the gaps around the best.
    criterion : {"heldout", "bic", "evidence", "variational"}
        ``"heldout"``: mean log-probability of records left out of the fit, each once;
        ``"bic"``: cheaper, and cautious: it misses small classes; ``"evidence"``: the lower
        bound of variational Bayes; ``"variational"``: no curve at all, but the classes that
        variational Bayes with sparse weights keeps, under a cap that grows until it is not
        reached.
    solver : {"map", "ml"} or solver object
        What fits the models that are compared. Without a prior (``"ml"``) a cell that was
        never seen has probability zero, and held out it rules its model out altogether.
        ``"evidence"`` has its own.
    folds : int
        Parts that the records are held out in. Whole-number weights count copies, which are
        held out one by one; beyond a million records two of the parts are enough.
    n_init : int
        Starts of the fit of each rank to all records; two of three begin with the classes of
        the next smaller rank.
    sample_weight, domain
        As for :meth:`Records.of`.
    random_state : int or Generator, optional
        Source of randomness.
    progress : bool, optional
        Whether to show progress on stderr; by default where that is a terminal.
    checkpoint : path, optional
        A file from which the same call goes on, after Ctrl-C or a kill, to the same result.
    executor : concurrent.futures.Executor, optional
        Where models are fitted to the folds: processes, machines. The result is the same.

    Returns
    -------
    Selection
        With ``rank``, the curve (``ranks``, ``scores``, ``errors``), and ``words``.

    Notes
    -----
    Ctrl-C ends the search and returns the best rank so far. Of more than a million rows a million
    are drawn for the search, which ``words`` then say.

    Examples
    --------
    >>> import rejoint as rj
    >>> truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    >>> selection = rj.rank.select(truth.sample(2000, random_state=0), random_state=0)
    >>> selection.rank
    2
    """
    given = None if ranks is None else checked_ranks(ranks)
    for name, value, least in (("folds", folds, 2), ("n_init", n_init, 1)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    records = as_records(data, domain=domain, sample_weight=sample_weight)
    journal: Journal | None
    if isinstance(checkpoint, Journal):
        journal, rng = checkpoint, np.random.default_rng(random_state)
    else:
        mark = "" if checkpoint is None else RecordProblem.of(records).fingerprint
        asked = {"ranks": given, "criterion": criterion, "solver": solver, "folds": folds}
        journal, rng = open_journal(checkpoint, random_state, mark, n_init=n_init, **asked)
    rows = len(records)
    if rows > MANY:
        records = drawn(records, rng)
    cap = largest_rank(records)
    if given is None and cap == 1:
        return only_one(records, criterion)
    with Progress(progress) as report, kept(journal):
        if criterion == "variational":
            found = left_over(records, given, cap, n_init, rng, report, journal)
        else:
            means = Means(rng, report, journal, executor)
            judge = make_criterion(records, criterion, solver, folds, n_init, means)
            found = search(judge, criterion, given, cap)
    if rows > MANY:
        words = f"{found.words} {MANY:,} of the {rows:,} rows, drawn at random, were looked at."
        found = replace(found, words=words)
    return found


def drawn(records: R, rng: np.random.Generator) -> R:
    """As many rows as the search looks at, at random."""
    rows = np.sort(rng.choice(len(records), size=MANY, replace=False))
    return records.take(rows)


class Means(NamedTuple):
    """What a search works with."""

    rng: np.random.Generator
    report: Report
    journal: Journal | None = None
    executor: Executor | None = None


def make_criterion(
    records: BaseRecords,
    criterion: str,
    solver: Any,
    folds: int,
    n_init: int,
    means: Means,
) -> Criterion:
    """The criterion of a name, ready to score."""
    if criterion not in ("heldout", "bic", "evidence"):
        raise ValueError(
            f"criterion={criterion!r} is not known; give 'heldout' (log-probability of records "
            "left out), 'bic', 'evidence' or 'variational'."
        )
    first = "map" if criterion == "evidence" else solver
    whole = Chain.of(records, first, n_init, means.rng, means.journal)
    if criterion == "bic":
        return Bic(whole, means.report)
    if criterion == "evidence":
        return Evidence(whole, means.report)
    parts = list(part(records, folds, means.rng))
    if not parts:
        raise ValueError(
            "There is one record, and none to hold out: choose the rank yourself, or by "
            "criterion='bic'."
        )
    used = FEW_FOLDS if size_of(records) > MANY else len(parts)
    return HeldOut(whole, parts[:used], solver, means.report, means.executor)


def left_over(
    records: BaseRecords,
    ranks: Sequence[int] | None,
    cap: int,
    n_init: int,
    rng: np.random.Generator,
    report: Report,
    journal: Journal | None = None,
) -> Selection:
    """What variational Bayes keeps, of as many classes as the largest rank allows."""
    problem = replace(RecordProblem.of(records), journal=journal)
    found = vanish(problem, cap if ranks is None else max(ranks), n_init, rng, report)
    words = (
        f"Rank {found.rank}: of {found.caps[-1]} classes so many keep weight under variational "
        "Bayes with sparse weights."
    )
    if found.interrupted:
        words += " The search was interrupted: larger ranks may be better."
    elif found.rank == found.caps[-1] < cap:
        words += " It is the largest that was allowed: larger ones may be better."
    score, error = np.array([found.bound / problem.total]), np.zeros(1)
    weights, factors = found.model
    parts = [factors[problem.rows(n)] for n in range(len(problem.levels))]
    pmf = LowRankPMF(weights, parts, problem.domain).sorted()
    rank = found.rank
    return Selection(
        rank, (rank,), score, error, (rank,), "variational", words, pmf, found.interrupted
    )


def search(judge: Criterion, criterion: str, ranks: Sequence[int] | None, cap: int) -> Selection:
    """Score the ranks given, or more and more until the score falls."""
    scores: dict[int, float] = {}
    interrupted = False

    def clearly_worse(best: int, other: int) -> bool:
        return scores[best] - judge.error(best, other) > scores[other]

    try:
        for rank in sizes(cap) if ranks is None else ranks:
            scores[rank] = judge.score(rank)
            if ranks is None and past_best(scores, clearly_worse, judge.slack):
                break
        while ranks is None and (middle := between(scores, judge.slack)) is not None:
            scores[middle] = judge.score(middle)
    except KeyboardInterrupt:
        if not scores:
            raise
        interrupted = True
    return conclude(judge, criterion, scores, cap, interrupted)


def conclude(
    judge: Criterion, criterion: str, scores: dict[int, float], cap: int, interrupted: bool
) -> Selection:
    """The best rank, what cannot be told from it, and both in words."""
    tried = tuple(sorted(scores))
    best = smallest_best(scores, judge.slack)
    errors = np.array([judge.error(best, rank) for rank in tried])
    found = np.array([scores[rank] for rank in tried])
    near = scores[best] - errors <= found  # in this order, so that -inf is near -inf
    tied = tuple(rank for rank, close in zip(tried, near, strict=True) if close)
    ending = ""
    if interrupted:
        ending = "The search was interrupted: other ranks may be better."
    elif best == tried[-1] and best < cap:
        ending = "It is the largest that was tried: larger ones may be better."
    basis = f"{judge.basis}, {scores[best]:.5g} per record"
    words = make_words(best, tried, tied, basis, judge.nearness, ending)
    pmf = judge.whole.pmf(best)
    return Selection(best, tried, found, errors, tied, criterion, words, pmf, interrupted)


def checked_ranks(ranks: Sequence[int]) -> tuple[int, ...]:
    """The ranks in order, each once."""
    found = list(ranks) if isinstance(ranks, Sequence | range | np.ndarray) else [ranks]
    good = all(
        isinstance(rank, int | np.integer) and not isinstance(rank, bool) and rank > 0
        for rank in found
    )
    if not found or not good:
        raise ValueError(
            f"ranks must be whole numbers of at least 1, such as range(1, 9); got {ranks!r}."
        )
    return tuple(sorted({int(rank) for rank in found}))


def largest_rank(records: BaseRecords) -> int:
    """No rank beyond is of use: the joint needs no more, or each record has its own class."""
    shape = sorted(records.domain.shape)
    cells = 1
    for size in shape[:-1]:
        cells = min(cells * size, size_of(records))
    return max(cells, 1)


def size_of(records: BaseRecords) -> int:
    """Number of records; of copies, where weights count them."""
    counted = copies(records)
    return len(records) if counted is None else counted


def only_one(records: BaseRecords, criterion: str) -> Selection:
    """Rank 1, where there is nothing to choose."""
    why = "one record" if size_of(records) == 1 else "no more than one variable that varies"
    words = f"Rank 1: there is {why}, so that there is nothing for hidden classes to explain."
    score, error = np.full(1, np.nan), np.zeros(1)
    return Selection(1, (1,), score, error, (1,), criterion, words)
