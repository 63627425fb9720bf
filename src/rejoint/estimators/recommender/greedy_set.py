"""A set of items that are probably liked all together."""

import numpy as np

from rejoint.arrays import FloatArray

#: Relative gain above which one set counts as more probable than another.
TIE = 1e-9

#: Best single items from each of which a set is grown.
STARTS = 8


def greedy_set(classes: FloatArray, likes: FloatArray, size: int) -> tuple[list[int], float]:
    """Grow a set from each of the best single items; return the best one and its probability.

    Parameters
    ----------
    classes : (R,)
        Probability of the classes.
    likes : (N, R)
        Probability in each class that an item is liked.
    size : int
        Items of the set.
    """
    starts = np.argsort(-(likes @ classes), kind="stable")[:STARTS].tolist()
    return max((_grow(classes, likes, first, size) for first in starts), key=lambda found: found[1])


def _grow(classes: FloatArray, likes: FloatArray, first: int, size: int) -> tuple[list[int], float]:
    """Add one item after another, then exchange single ones while that helps."""
    items, best, before = [first], float(likes[first] @ classes), -1.0
    places = range(1, size)
    while best != before:
        before = best
        for k in places:
            others = items[:k] + items[k + 1 :]
            values = likes @ (classes * np.prod(likes[others], axis=0))
            values[others] = -np.inf
            item = int(values.argmax())
            if k == len(items) or values[item] > best * (1.0 + TIE):
                items[k : k + 1], best = [item], float(values[item])
        places = range(size)
    return items, best
