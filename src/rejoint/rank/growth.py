"""Which ranks to try: more and more until the score falls, then those around the best."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, count

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
