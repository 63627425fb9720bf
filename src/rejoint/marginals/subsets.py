"""Which tables to count: all subsets of an order, given subsets, or a random cover.

A *cover* is a list of subsets in which every variable occurs. The memory of a request is computed
before anything is allocated: all triples of 1,000 variables are 166 million tables.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from rejoint.cost import machine_memory
from rejoint.domain.domain import Domain
from rejoint.text import cite, format_bytes, plural

Subset = tuple[int, ...]

#: Number of subsets of an order up to which they are listed; larger numbers are drawn one by one.
LISTED = 2_000_000


def random_cover(
    n_variables: int, order: int, sample: int, rng: np.random.Generator
) -> tuple[Subset, ...]:
    """Draw ``sample`` distinct subsets that cover every variable and as many pairs as possible.

    First the shuffled variables are split into groups of ``order``, so that each occurs. Then each
    further subset greedily starts from an uncovered pair and adds the variables that bring the
    most new pairs. When all pairs are covered, the other subsets are drawn at random.

    Parameters
    ----------
    n_variables, order, sample : int
        ``sample`` at or above the number of all subsets gives all of them.
    rng : numpy.random.Generator
        Source of randomness.
    """
    if sample >= comb(n_variables, order):
        return tuple(combinations(range(n_variables), order))
    least = -(-n_variables // order)
    if sample < least:
        raise ValueError(
            f"sample={sample} tables of order {order} cannot cover "
            f"{plural(n_variables, 'variable')}: that takes at least {least}."
        )
    chosen = dict.fromkeys(_groups(n_variables, order, rng))
    if order > 1:
        _cover_pairs(chosen, n_variables, order, sample, rng)
    _fill(chosen, n_variables, order, sample, rng)
    return tuple(sorted(chosen))


def _groups(n_variables: int, order: int, rng: np.random.Generator) -> list[Subset]:
    """Split the shuffled variables into groups; fill the last one from the first."""
    shuffled = rng.permutation(n_variables)
    cuts = [shuffled[i : i + order] for i in range(0, n_variables, order)]
    cuts[-1] = np.concatenate([cuts[-1], shuffled[: order - len(cuts[-1])]])
    return [tuple(sorted(int(n) for n in cut)) for cut in cuts]


def _cover_pairs(
    chosen: dict[Subset, None], n_variables: int, order: int, sample: int, rng: np.random.Generator
) -> None:
    """Add subsets with the most new pairs until all pairs are covered or there are ``sample``."""
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
        # New pairs first, then variables that lack many partners.
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


#: Memory that the tables of one call may take by default: 4 GiB, or half of the machine's memory
#: where that is less.
MEMORY_LIMIT = 4 * 2**30

#: Approximate bytes of a table besides its cells: the tuple of its variables, its offsets.
OVERHEAD = 120


def choose_subsets(
    domain: Domain,
    order: int | Sequence[int] | None = None,
    subsets: Iterable[str | Sequence[str]] | None = None,
    sample: int | None = None,
    limit: float | None = None,
    random_state: int | np.random.Generator | None = None,
) -> tuple[Subset, ...]:
    """Return the requested subsets: all of an order (3 by default), given ones, or a cover."""
    if subsets is not None:
        if order is not None or sample is not None:
            raise ValueError("Give subsets=, or order= (with or without sample=), not both.")
        return subsets_by_name(domain, subsets, limit)
    order = min(3, len(domain)) if order is None else order
    if sample is None:
        return subsets_of_order(domain, order, limit)
    if not isinstance(order, int | np.integer):
        raise ValueError(f"sample= draws subsets of one order, got order={cite(order)}.")
    check_order(order, len(domain))
    if isinstance(sample, bool) or not isinstance(sample, int | np.integer):
        raise TypeError(f"sample must be a whole number of tables, got {cite(sample)}.")
    rng = np.random.default_rng(random_state)
    cover = random_cover(len(domain), int(order), int(sample), rng)
    check_memory(domain, cover, limit)
    return cover


def memory_limit(limit: float | None = None) -> float:
    """Return the bytes that tables may take: ``limit``, or the default for this machine."""
    if limit is not None:
        return float(limit)
    return float(min(MEMORY_LIMIT, machine_memory() / 2))


def memory_of_order(shape: Sequence[int], order: int) -> tuple[int, int]:
    """Return the number of subsets of an order, and the bytes of their tables.

    The number of cells is the elementary symmetric polynomial of the level counts, so nothing
    is enumerated.
    """
    cells = [1] + [0] * order
    for levels in shape:
        for d in range(order, 0, -1):
            cells[d] += levels * cells[d - 1]
    tables = comb(len(shape), order)
    return tables, 8 * cells[order] + OVERHEAD * tables


def memory_of_subsets(shape: Sequence[int], subsets: Sequence[Subset]) -> int:
    """Return the bytes that the tables of these subsets take."""
    return sum(8 * prod(shape[n] for n in s) + OVERHEAD for s in subsets)


def subsets_of_order(
    domain: Domain, order: int | Sequence[int], limit: float | None = None
) -> tuple[Subset, ...]:
    """Return all subsets of one order, or of several, after checking that their tables fit."""
    n = len(domain)
    orders = [check_order(k, n) for k in (order if isinstance(order, Sequence) else [order])]
    if not orders:
        raise ValueError("order is an empty list: give at least one number of variables.")
    found = [memory_of_order(domain.shape, k) for k in orders]
    tables, size = sum(t for t, _ in found), sum(b for _, b in found)
    if size > memory_limit(limit):
        raise ValueError(
            f"All {plural(tables, 'table')} of order {' and '.join(map(str, orders))} over "
            f"{plural(n, 'variable')} would take {format_bytes(size)}, more than the limit of "
            f"{format_bytes(memory_limit(limit))}. Count chosen tables (subsets=[...]), a lower "
            f"order (order=2), or a random cover (order={max(orders)}, sample=20000); "
            "memory_limit= raises the limit (in bytes). Where there are records, rejoint.estimate "
            "needs no tables."
        )
    return tuple(s for k in orders for s in combinations(range(n), k))


def check_order(order: object, n_variables: int) -> int:
    """Return an order, or raise an error unless it is one of 1..n_variables."""
    if isinstance(order, bool) or not isinstance(order, int | np.integer):
        raise TypeError(f"order must be a whole number or a list of them, got {cite(order)}.")
    if not 1 <= order <= n_variables:
        raise ValueError(
            f"order={order} asks for tables of {plural(int(order), 'variable')}, but the data have "
            f"{n_variables}: give an order between 1 and {n_variables}."
        )
    return int(order)


def subsets_by_name(
    domain: Domain, subsets: Iterable[str | Sequence[str]], limit: float | None = None
) -> tuple[Subset, ...]:
    """Convert subsets of names to increasing indices, in the order of the list."""
    if isinstance(subsets, str):
        raise TypeError(f"subsets must be a list of tuples of names, got the text {cite(subsets)}.")
    found: dict[Subset, object] = {}
    for given in subsets:
        subset = indices_of(domain, given)
        if subset in found:
            raise ValueError(
                f"The subset {cite(given)} is requested twice (before as {cite(found[subset])}): "
                "the order of variables makes no other table; list each set once."
            )
        found[subset] = given
    if not found:
        raise ValueError("subsets is empty: name at least one table, for example [('a', 'b')].")
    check_memory(domain, tuple(found), limit)
    return tuple(found)


def check_memory(domain: Domain, subsets: Sequence[Subset], limit: float | None = None) -> None:
    """Raise an error if the tables of these subsets exceed the memory limit."""
    size = memory_of_subsets(domain.shape, subsets)
    if size > memory_limit(limit):
        raise ValueError(
            f"The {plural(len(subsets), 'table')} requested would take {format_bytes(size)}, more "
            f"than the limit of {format_bytes(memory_limit(limit))}: ask for fewer or smaller "
            "ones, or raise memory_limit= (in bytes)."
        )


def indices_of(domain: Domain, names: str | Sequence[str]) -> Subset:
    """Return the increasing indices of one subset of names."""
    listed = (names,) if isinstance(names, str) else tuple(names)
    if not listed:
        raise ValueError("A subset without variables was given: name at least one variable.")
    subset = domain.indices(listed)
    if len(set(subset)) < len(subset):
        twice = next(n for n in listed if listed.count(n) > 1)
        raise ValueError(
            f"The subset {cite(names)} names {cite(twice)} twice: name each variable once."
        )
    return tuple(sorted(subset))
