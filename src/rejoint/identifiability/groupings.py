"""Groupings: groups of variables between which all tables are there, and what follows from them.

A group of variables that enter one at a time has a stacked factor of ``d = 1 + sum (I_n - 1)``
free rows: a row of ones, and the free probabilities. It acts as one factor of a tensor with a side
for each group. A third group may be taken ``r`` variables at a time, with ``sum_{q <= r}
e_q(I_n - 1)`` rows that have structure.

If the weights and the factors of some variables are known, a table of them and of variable ``m``
is linear in the factor of ``m``. It can be solved for where the rows of the known side have full
column rank ``F``, which generic factors have as soon as there are ``F`` independent rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod

import numpy as np

from rejoint.arrays import parts_of
from rejoint.identifiability.gram_sums import symmetric
from rejoint.identifiability.layout import Groups, TableLayout
from rejoint.marginals.subsets import Subset

#: Variables of a table up to which all its parts are listed; beyond, one table is enough.
MOST_LISTED_VARIABLES = 6

#: Variables up to which all partitions into three groups are tried.
MOST_PARTITIONED_VARIABLES = 7

#: Variables of equal levels up to which all sizes of groups are tried.
MOST_EQUAL_VARIABLES = 150

#: Subsets from which groups are grown.
MOST_SEEDS = 200


def split_evenly(values: Sequence[int], groups: int) -> Groups:
    """Split into groups of nearly equal sums: the largest number first, into the smallest group."""
    split: list[list[int]] = [[] for _ in range(groups)]
    sums = [0] * groups
    for n in sorted(range(len(values)), key=lambda n: -values[n]):
        k = min(range(groups), key=lambda k: (sums[k], len(split[k])))
        split[k].append(n)
        sums[k] += values[n]
    return tuple(tuple(sorted(group)) for group in split)


def partitions_into_three(tables: TableLayout) -> Iterator[Groups]:
    """Partitions of all variables: every one that matters if they are few or of equal levels."""
    free, every = tables.free, range(len(tables.free))
    yield split_evenly(free, 3)
    if len(set(free)) == 1 and len(free) <= MOST_EQUAL_VARIABLES:
        for a in every[1:]:
            for b in range(a, len(free) - a):
                yield tuple(every[:a]), tuple(every[a : a + b]), tuple(every[a + b :])
    elif len(free) <= MOST_PARTITIONED_VARIABLES:
        for choice in product(range(3), repeat=len(free)):
            yield tuple(tuple(n for n in every if choice[n] == k) for k in range(3))
    else:
        # Two groups of nearly equal sums, and all others in the third.
        for order in (tables.largest_first, tables.largest_first[::-1]):
            for size in range(2, len(free)):
                split = split_evenly([free[n] for n in order[:size]], 2)
                first, second = (tuple(order[n] for n in group) for group in split)
                yield first, second, tuple(sorted(order[size:]))


def balanced_groups(tables: TableLayout) -> Iterator[Groups]:
    """Even groups of some of the variables, up to as many groups as tables have variables."""
    down = [n for n in tables.largest_first if tables.free[n]]
    for ordered in (down, down[::-1]):
        for size in range(3, min(len(down), 120) + 1):
            for count in {3, min(tables.largest_order, 6)}:
                split = split_evenly([tables.free[n] for n in ordered[:size]], count)
                yield tuple(tuple(ordered[n] for n in group) for group in split)


def find_groupings(tables: TableLayout, sizes: Sequence[int] = (3, 4)) -> list[Groups]:
    """Groups grown from tables: a variable joins where all tables across groups are there."""
    closure = {s for s in tables.list_parts(*sizes) if all(tables.free[n] for n in s)}
    rng = np.random.default_rng(0)
    groupings: dict[Groups, None] = {}
    for size in sizes:
        seeds = sorted(s for s in closure if len(s) == size)
        if len(seeds) > MOST_SEEDS:
            seeds = [seeds[k] for k in sorted(rng.choice(len(seeds), MOST_SEEDS, replace=False))]
        for seed in seeds:
            groupings[tuple((n,) for n in seed)] = None
            for even in (True, False):
                groupings[_grow_groups(tables, seed, closure, even=even)] = None
    return list(groupings)


def _grow_groups(tables: TableLayout, seed: Subset, closure: set[Subset], *, even: bool) -> Groups:
    """Put each variable into the smallest group that takes it, or into the largest."""
    groups = [[n] for n in seed]
    sign = 1 if even else -1
    for m in tables.largest_first:
        if m in seed or not tables.free[m]:
            continue
        for k in sorted(range(len(groups)), key=lambda k: sign * tables.side(groups[k])):
            others = [group for i, group in enumerate(groups) if i != k]
            if all(tuple(sorted((m, *cell))) in closure for cell in product(*others)):
                groups[k].append(m)
                break
    return tuple(sorted(tuple(sorted(group)) for group in groups))


def solvable_rank(tables: TableLayout, start: Iterable[int]) -> int:
    """Largest rank at which all variables can be solved for, one by one, from some.

    The variable with the most rows goes first, which is never worse: more solved variables
    only add rows. 0 if one cannot be reached.
    """
    solved, least = set(start), prod(tables.levels)
    missing = set(range(len(tables.domain))) - solved
    if missing and tables.order is not None:
        # The variable that is solved first has the fewest rows.
        free = [tables.free[n] for n in solved]
        return int(sum(symmetric(free, min(tables.order - 1, len(solved)))))
    rows = {m: _count_solved_rows(tables, m, solved) for m in missing}
    while rows:
        best = max(rows, key=lambda m: (rows[m], -m))
        least = min(least, rows.pop(best))
        solved.add(best)
        for m in {n for subset in tables.holders[best] for n in subset if n in rows}:
            rows[m] = _count_solved_rows(tables, m, solved)
    return least


def _count_solved_rows(tables: TableLayout, m: int, solved: set[int]) -> int:
    """Independent rows over solved variables in the tables that hold a variable."""
    most, parts = 0, set[Subset]()
    for subset in tables.holders[m]:
        beside = [n for n in subset if n != m and n in solved]
        if len(beside) > MOST_LISTED_VARIABLES:
            most = max(most, prod(tables.levels[n] for n in beside))  # this table alone
        else:
            parts.update(parts_of(beside))
    listed = 1 + sum(prod(tables.free[n] for n in part) for part in parts)
    return max(most, listed if parts else 0)
