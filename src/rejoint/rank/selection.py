"""Selection: the rank chosen, the search for it, and the sentence that says why."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Protocol

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
        The rank with the best score: the smallest of those that are best but for one nat over
        all records together.
    ranks : tuple of int
        All that were tried, increasing.
    scores : array
        Score of each, per record; the higher the better.
    errors : array
        Standard error of the *difference* between each score and the best one (zero at the
        best): all are computed from the same records, so that differences are known far
        better than the scores themselves. It is the larger of the errors over records and
        over folds. Where the criterion is no sample mean (``"bic"``, ``"evidence"``), the
        difference that counts as none.
    tied : tuple of int
        The ranks whose score lies within one such error of the best, which is among them.
    criterion : str
        What was scored.
    words : str
        What was chosen and why, and which sizes cannot be told apart.
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


def describe_selection(
    rank: int,
    ranks: Sequence[int],
    tied: Sequence[int],
    basis: str,
    nearness: str,
    ending: str,
) -> str:
    """Say what was chosen, on what basis, what ties with it, and how the search ended.

    Examples
    --------
    >>> describe_selection(2, [1, 2, 3], [2, 3], "the best BIC", "2 in BIC", "")
    'Rank 2 of 1, 2 and 3 has the best BIC. Rank 3 cannot be told apart from it: within 2 in BIC.'
    """
    said = [f"Rank {rank} of {listed(ranks)} has {basis}."]
    if len(ranks) == 1:
        said = [f"Rank {rank} is the only one that was tried, with {basis}."]
    others = [r for r in tied if r != rank]
    if others:
        which = f"Rank{'s' if len(others) > 1 else ''} {listed(others)}"
        said.append(f"{which} cannot be told apart from it: within {nearness}.")
    elif len(ranks) > 1:
        said.append("All others are clearly worse.")
    return " ".join([*said, *([ending] if ending else [])])


class Judge(Protocol):
    """Scores ranks and says how far apart two scores may be by chance."""

    #: What the best rank has, in words.
    basis: str
    #: What is too near to tell, in words.
    nearness: str
    #: Scores that differ by less are the same: one nat over all records.
    slack: float

    def score(self, rank: int) -> float:
        """Score of a rank, remembered for :meth:`error`."""
        ...

    def error(self, best: int, other: int) -> float:
        """How far apart two scores may be by chance."""
        ...


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
        scores[rank] = judge.score(rank)
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
