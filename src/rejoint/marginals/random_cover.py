"""A random list of subsets that covers every variable, and as many pairs as it can."""

from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

Subset = tuple[int, ...]

#: Below this many subsets of an order they are listed and drawn from; above, drawn one by one.
LISTED = 2_000_000


def random_cover(
    n_variables: int, order: int, sample: int, rng: np.random.Generator
) -> tuple[Subset, ...]:
    """Draw ``sample`` distinct subsets that cover every variable and all the pairs they can.

    First the variables, shuffled, are cut into groups of ``order``, so that each occurs. Then,
    greedily, each further subset starts from a pair not yet covered and takes the variables
    that bring the most new pairs. Once all pairs are covered the rest are drawn at random.

    Parameters
    ----------
    n_variables, order, sample : int
        ``sample`` at or above the number of all subsets gives all of them.
    rng : numpy.random.Generator
        Source of randomness.

    Examples
    --------
    >>> cover = random_cover(6, 3, 8, np.random.default_rng(0))
    >>> len(cover), sorted({n for s in cover for n in s})
    (8, [0, 1, 2, 3, 4, 5])
    """
    if sample >= comb(n_variables, order):
        return tuple(combinations(range(n_variables), order))
    least = -(-n_variables // order)
    if sample < least:
        raise ValueError(
            f"sample={sample} tables of order {order} cannot cover {n_variables} variables: "
            f"that takes at least {least}."
        )
    chosen = dict.fromkeys(_groups(n_variables, order, rng))
    if order > 1:
        _cover_pairs(chosen, n_variables, order, sample, rng)
    _fill(chosen, n_variables, order, sample, rng)
    return tuple(sorted(chosen))


def _groups(n_variables: int, order: int, rng: np.random.Generator) -> list[Subset]:
    """Cut the shuffled variables into groups; the last one is filled up from the first."""
    shuffled = rng.permutation(n_variables)
    cuts = [shuffled[i : i + order] for i in range(0, n_variables, order)]
    cuts[-1] = np.concatenate([cuts[-1], shuffled[: order - len(cuts[-1])]])
    return [tuple(sorted(int(n) for n in cut)) for cut in cuts]


def _cover_pairs(
    chosen: dict[Subset, None], n_variables: int, order: int, sample: int, rng: np.random.Generator
) -> None:
    """Add subsets, each with the most new pairs, until all pairs are covered or ``sample`` is."""
    new = np.ones((n_variables, n_variables), dtype=np.int8)
    np.fill_diagonal(new, 0)
    for subset in chosen:
        new[np.ix_(subset, subset)] = 0
    open_pairs = new.sum(axis=1, dtype=np.int64)  # how many partners each variable still lacks
    while len(chosen) < sample and open_pairs.any():
        subset = _most_new(new, open_pairs, order, rng)
        chosen[subset] = None
        block = np.ix_(subset, subset)
        open_pairs[list(subset)] -= new[block].sum(axis=1)
        new[block] = 0


def _most_new(
    new: NDArray[np.int8], open_pairs: NDArray[np.int64], order: int, rng: np.random.Generator
) -> Subset:
    """Grow one subset from the variable that lacks most partners; ties are broken at random."""
    noise = rng.random(len(new))
    members = [int(np.argmax(open_pairs + noise))]
    gain = new[members[0]].astype(np.float64)
    while len(members) < order:
        # New pairs count first; then variables that lack many partners, so that none lags behind.
        score = gain + (open_pairs + noise) / (len(new) + 1)
        score[members] = -1.0
        members.append(int(np.argmax(score)))
        gain += new[members[-1]]
    return tuple(sorted(members))


def _fill(
    chosen: dict[Subset, None], n_variables: int, order: int, sample: int, rng: np.random.Generator
) -> None:
    """Add random subsets not yet chosen until there are ``sample``."""
    if len(chosen) >= sample:
        return
    if comb(n_variables, order) <= LISTED:
        rest = [s for s in combinations(range(n_variables), order) if s not in chosen]
        for i in rng.choice(len(rest), sample - len(chosen), replace=False):
            chosen[rest[i]] = None
        return
    while len(chosen) < sample:
        drawn = rng.choice(n_variables, order, replace=False)
        chosen[tuple(sorted(int(n) for n in drawn))] = None
