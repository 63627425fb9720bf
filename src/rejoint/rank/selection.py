"""Selection: the rank chosen, the search for it, and the sentence that says why."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from math import floor, inf, isfinite, isnan, log10
from typing import Protocol

import numpy as np

from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.model import FloatArray
from rejoint.pmf.pmf import LowRankPMF
from rejoint.solver.session import Session

#: Standard errors below the best from which a rank is out of the question: one chance in a hundred.
SURE = 2.33


@dataclass(frozen=True)
class Selection:
    """A rank, and why this one.

    Parameters
    ----------
    rank : int
        The rank chosen: the smallest whose score is within one nat, over all records together,
        of the highest score.
    ranks : tuple of int
        All that were tried, increasing.
    scores : array
        Score of each, per record; the higher the better.
    errors : array
        Standard error of the *difference* between each score and that of the rank chosen (zero
        there). All scores are computed from the same records, so their differences are known
        more precisely than the scores themselves. It is the larger of the errors over records
        and over folds. Where the criterion is not a sample mean (``"bic"``, ``"evidence"``), it
        is the difference that is considered negligible.
    tied : tuple of int
        The ranks whose score lies within one such error of the rank chosen, which is included.
    criterion : str
        What was scored.
    words : str
        What was chosen and why, and which ranks cannot be told apart from it.
    pmf : LowRankPMF, optional
        A cheap fit of the chosen rank to all records: good to start from.
    interrupted : bool
        Whether the user ended the search.

    Examples
    --------
    >>> import rejoint as rj
    >>> data = rj.datasets.asia().project(["smoke", "lung", "bronc"]).sample(2000, random_state=0)
    >>> selection = rj.rank.select(data, ranks=[1, 2], random_state=0)
    >>> selection.rank
    2
    """

    rank: int
    ranks: tuple[int, ...]
    scores: FloatArray
    errors: FloatArray
    tied: tuple[int, ...]
    criterion: str
    words: str
    pmf: LowRankPMF | None = field(default=None, repr=False)
    interrupted: bool = False

    @property
    def largest(self) -> int:
        """The largest rank that is not out of the question.

        Examples
        --------
        >>> import numpy as np
        >>> scores, errors = np.array([-9.0, -8.0, -8.1]), np.array([0.1, 0.0, 0.1])
        >>> Selection(2, (1, 2, 3), scores, errors, (2, 3), "heldout", "").largest
        3
        """
        near = self.scores >= self.scores.max() - SURE * self.errors
        found = (rank for rank, is_near in zip(self.ranks, near, strict=True) if is_near)
        return max(found, default=self.rank)  # scores are NaN where there was nothing to choose


def listed(ranks: Sequence[int]) -> str:
    """Numbers as one says them: "2, 3 and 4".

    Examples
    --------
    >>> listed([2]), listed([2, 3, 4])
    ('2', '2, 3 and 4')
    """
    *most, last = map(str, ranks)
    return f"{', '.join(most)} and {last}" if most else last


@dataclass(frozen=True)
class Measure:
    """The criterion as sentences name it.

    Parameters
    ----------
    name : str
        What is compared, such as ``"held-out log-likelihood per record"``.
    slack : str
        The difference that is ignored, such as ``"one nat over all records"``.
    nearness : str
        The difference below which two ranks cannot be told apart.
    scale : float
        What a score is multiplied by where it is shown; negative where lower is better.

    Examples
    --------
    >>> Measure("BIC", "2", "2 in BIC", scale=-2000.0).extreme
    'lowest'
    """

    name: str
    slack: str
    nearness: str
    scale: float = 1.0

    @property
    def extreme(self) -> str:
        """Word for the best value."""
        return "lowest" if self.scale < 0 else "highest"

    def show(self, *scores: float) -> list[str]:
        """Write values of the criterion with enough decimals to tell them apart.

        Examples
        --------
        >>> Measure("", "", "").show(-6.01212, -6.01209), Measure("", "", "", -200.0).show(-6.5)
        (['-6.012120', '-6.012090'], ['1,300.0'])
        """
        values = [self.scale * score for score in scores]
        size = max(abs(value) for value in values)
        gap = max(values) - min(values)
        digits = [0]
        digits += [4 - floor(log10(size))] if 0 < size < inf else []
        digits += [1 - floor(log10(gap))] if 0 < gap < inf else []
        return [f"{value:,.{min(max(digits), 15)}f}" for value in values]


class Judge(Protocol):
    """Scores ranks and estimates by how much two scores differ by chance."""

    #: The criterion as sentences name it.
    measure: Measure
    #: Scores that differ by no more are treated as equal: one nat over all records.
    slack: float

    def score(self, rank: int) -> float:
        """Score of a rank, remembered for :meth:`error`."""
        ...

    def error(self, chosen: int, other: int) -> float:
        """By how much two scores may differ by chance; at least ``slack``, zero for one rank."""
        ...


def conclude_search(
    judge: Judge,
    scores: Mapping[int, float],
    criterion: str,
    pmf: Callable[[int], LowRankPMF],
    ending: Callable[[int], str],
    interrupted: bool,
) -> Selection:
    """Choose a rank by its score, find the ranks that tie with it, and describe both.

    ``pmf`` gives the model of a rank and ``ending`` what to add about the rank chosen.
    """
    tried = tuple(sorted(scores))
    chosen = smallest_best(scores, judge.slack)
    errors = np.array([judge.error(chosen, rank) for rank in tried])
    found = np.array([scores[rank] for rank in tried])
    near = scores[chosen] - errors <= found  # in this order, so that -inf is near -inf
    tied = tuple(rank for rank, close in zip(tried, near, strict=True) if close)
    words = describe_selection(chosen, scores, tied, judge.measure)
    words = " ".join(filter(None, (words, ending(chosen))))
    return Selection(chosen, tried, found, errors, tied, criterion, words, pmf(chosen), interrupted)


def describe_selection(
    chosen: int, scores: Mapping[int, float], tied: Sequence[int], measure: Measure
) -> str:
    """Describe which rank was chosen, why, and which other ranks tie with it.

    Examples
    --------
    >>> measure = Measure("BIC", "2", "2 in BIC", scale=-2000.0)
    >>> scores = {1: -9.0, 2: -8.0, 3: -8.1}
    >>> print(describe_selection(2, scores, [2], measure))
    Rank 2 of 1, 2 and 3 has the lowest BIC, 16,000. All others are worse by more than 2 in BIC.
    >>> print(describe_selection(2, scores | {3: -7.9995}, [2, 3], measure))
    Rank 2 of 1, 2 and 3 is the smallest within 2 of the lowest BIC, which rank 3 has (16,000.0 \
    against 15,999.0). Rank 3 cannot be told apart from it: within 2 in BIC.
    """
    ranks = sorted(scores)
    top = max(scores.values())
    if len(ranks) == 1:
        value = measure.show(top)[0]
        return f"Rank {chosen} is the only one that was tried: {measure.name} {value}."
    if not isfinite(top):
        return (
            f"The {measure.name} is {measure.show(top)[0]} at each of the ranks {listed(ranks)}: "
            f"it does not tell them apart, and rank {chosen} is the smallest."
        )
    best = f"the {measure.extreme} {measure.name}"
    if scores[chosen] == top:
        said = f"Rank {chosen} of {listed(ranks)} has {best}, {measure.show(top)[0]}."
    else:
        mine, highest = measure.show(scores[chosen], top)
        said = (
            f"Rank {chosen} of {listed(ranks)} is the smallest within {measure.slack} of {best}, "
            f"which rank {min(ranks, key=lambda r: -scores[r])} has ({mine} against {highest})."
        )
    others = [rank for rank in tied if rank != chosen]
    if others:
        which = f"Rank{'s' if len(others) > 1 else ''} {listed(others)}"
        return f"{said} {which} cannot be told apart from it: within {measure.nearness}."
    rest = "All others are" if len(ranks) > 2 else "The other is"
    return f"{said} {rest} worse by more than {measure.nearness}."


def search_ranks(
    judge: Judge,
    ranks: Sequence[int] | None,
    cap: int,
    session: Session,
    conclude: Callable[[dict[int, float], bool], Selection],
    policy: Policy = DEFAULT,
) -> Selection:
    """Score the ranks given, or more and more until the score falls, then those in the gaps.

    ``conclude`` makes a selection of the scores, and of whether the search was interrupted.
    """
    scores: dict[int, float] = {}

    def is_clearly_worse(best: int, other: int) -> bool:
        return scores[best] - judge.error(best, other) > scores[other]

    def score(rank: int) -> None:
        value = judge.score(rank)
        scores[rank] = -inf if isnan(value) else value
        session.offer(lambda: conclude(scores, True), certain=True)

    for rank in growing_ranks(cap, policy) if ranks is None else ranks:
        score(rank)
        if ranks is None and is_past_best(scores, is_clearly_worse, judge.slack, policy):
            break
    while ranks is None and (middle := next_in_gap(scores, judge.slack, policy)) is not None:
        score(middle)
    return conclude(scores, False)


def smallest_best(scores: Mapping[int, float], slack: float = 0.0) -> int:
    """The smallest rank whose score is the best but for ``slack``.

    Examples
    --------
    >>> smallest_best({1: 0.0, 2: 1.0, 3: 1.1}), smallest_best({1: 0.0, 2: 1.0, 3: 1.1}, 0.2)
    (3, 2)
    """
    top = max(scores.values()) - slack
    return min(rank for rank, score in scores.items() if score >= top)


def growing_ranks(cap: int, policy: Policy = DEFAULT) -> Iterator[int]:
    """Ranks to try in order, up to a cap, which is the last.

    Examples
    --------
    >>> list(growing_ranks(9)), list(growing_ranks(23))[-3:]
    ([1, 2, 3, 4, 5, 6, 8, 9], [15, 20, 23])
    """
    beyond = (size * 10**power for power in count() for size in policy.rank_pattern)
    for size in chain(policy.first_ranks, beyond):
        if size >= cap:
            yield cap
            return
        yield size


def is_past_best(
    scores: Mapping[int, float],
    is_clearly_worse: Callable[[int, int], bool],
    slack: float = 0.0,
    policy: Policy = DEFAULT,
) -> bool:
    """Whether larger ranks need not be tried: the score has fallen, not just dipped.

    Examples
    --------
    >>> is_past_best({1: 0.0, 2: 1.0, 3: 0.5}, lambda best, other: True)
    False
    >>> is_past_best({1: 0.0, 2: 1.0, 3: 0.5, 4: 0.4}, lambda best, other: True)
    True
    """
    best = smallest_best(scores, slack)
    beyond = [rank for rank in scores if rank > best]
    if len(beyond) >= policy.no_better_ranks:
        return True
    return len(beyond) >= policy.clearly_worse_ranks and all(
        is_clearly_worse(best, rank) for rank in beyond
    )


def next_in_gap(
    scores: Mapping[int, float], slack: float = 0.0, policy: Policy = DEFAULT
) -> int | None:
    """The next rank to try beside the best, in the wider of the gaps; None if they are closed.

    Examples
    --------
    >>> next_in_gap({1: 0.0, 6: 2.0, 8: 3.0, 12: 1.0}), next_in_gap({4: 0.0, 5: 1.0, 6: 0.0})
    (10, None)
    """
    best = smallest_best(scores, slack)
    near = [rank for rank in scores if rank != best]
    below = max((rank for rank in near if rank < best), default=best)
    above = min((rank for rank in near if rank > best), default=best)
    gap, low = max((above - best, best), (best - below, below))
    if gap <= max(1.0, policy.rank_gap * best):
        return None
    return low + gap // 2
