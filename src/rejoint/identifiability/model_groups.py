"""Stacked factors of groups of variables, for one model."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rejoint.identifiability.groupings import groupings
from rejoint.identifiability.independence import column_rank
from rejoint.identifiability.layout import Layout
from rejoint.identifiability.partitions import Splits, balanced
from rejoint.pmf import LowRankPMF

__all__ = ["Stack", "hang", "stacks"]

Array = NDArray[np.float64]
Groups = tuple[tuple[int, ...], ...]

#: Groupings that are tried, at the most.
TRIED = 40

#: Rows of one table over known variables that are looked at, at the most.
ROWS = 4096


@dataclass(frozen=True)
class Stack:
    """Three groups of variables, and the factor matrix of each."""

    groups: Groups
    sides: tuple[Array, ...]


def stacks(tables: Layout, pmf: LowRankPMF) -> Iterator[Stack]:
    """Groups between which all tables are there, the most promising first."""
    if tables.largest < 3:
        return
    if tables.order is not None:
        for groups in all_groups(tables):
            yield stack(pmf, groups, tables.order - 2)
        return
    found = sorted(groupings(tables), key=lambda groups: -covered(tables, groups))
    for groups in found[:TRIED]:
        if len(groups) == 3:
            yield stack(pmf, groups, 1)
        else:
            yield crossed(pmf, groups)


def all_groups(tables: Layout) -> list[Groups]:
    """Even groups, and those with most variables in the third, where all tables are there."""
    free = tables.free
    found: dict[Groups, None] = {balanced(free, 3): None}
    splits = Splits(free)
    if splits.fits:
        first, second, third, _ = splits.sums
        for rule in (np.minimum((first * second), third), first * second * third):
            found[splits.partition(int(np.argmax(rule)))] = None
    down = sorted(range(len(free)), key=lambda n: -free[n])
    found[((down[0],), (down[1],), tuple(sorted(down[2:])))] = None
    return [groups for groups in found if all(groups)]


def covered(tables: Layout, groups: Groups) -> int:
    """Free rows of all groups."""
    return sum(tables.free[n] for group in groups for n in group)


def stack(pmf: LowRankPMF, groups: Groups, taken: int) -> Stack:
    """Factors one below the other; in the third group several variables at a time."""
    sides = [np.vstack([pmf.factors[n] for n in group]) for group in groups]
    if taken > 1 and len(groups[2]) > 1:
        size = min(taken, len(groups[2]))
        sides[2] = np.vstack([khatri_rao(pmf, part) for part in combinations(groups[2], size)])
    return Stack(groups, tuple(sides))


def crossed(pmf: LowRankPMF, groups: Groups) -> Stack:
    """Four groups as three: the two largest become one, its rows products."""
    by_size = sorted(groups, key=lambda group: sum(len(pmf.factors[n]) for n in group))
    a, b, c, d = by_size
    rows = [khatri_rao(pmf, (m, n)) for m in c for n in d]
    sides = [np.vstack([pmf.factors[n] for n in group]) for group in (a, b)]
    return Stack((a, b, (*c, *d)), (*sides, np.vstack(rows)))


def khatri_rao(pmf: LowRankPMF, variables: tuple[int, ...]) -> Array:
    """Products of the factors' rows, (cells, F)."""
    rows = np.ones((1, pmf.rank))
    for n in variables:
        rows = (rows[:, None, :] * pmf.factors[n][None]).reshape(-1, pmf.rank)
    return rows


def hang(tables: Layout, pmf: LowRankPMF, known: set[int]) -> bool:
    """Whether every other variable follows from the known ones, table by table."""
    known = set(known)
    waiting = [n for n in range(len(tables.domain)) if n not in known]
    moved = True
    while waiting and moved:
        moved = False
        for m in list(waiting):
            rows = rows_beside(tables, pmf, m, known)
            if rows is not None and column_rank(rows) == pmf.rank:
                known.add(m)
                waiting.remove(m)
                moved = True
    return not waiting


def rows_beside(tables: Layout, pmf: LowRankPMF, m: int, known: set[int]) -> Array | None:
    """Rows over known variables in the tables that hold ``m``."""
    if tables.order is not None:
        some = sorted(known)[: max(8, tables.order)]  # more rows than these are seldom needed
        beside = {*combinations(some, min(tables.order - 1, len(some)))}
    else:
        held = (s for s in tables.subsets if m in s)
        beside = {tuple(n for n in s if n != m and n in known) for s in held}
    parts = [khatri_rao(pmf, narrowed(tables, part)) for part in sorted(beside) if part]
    return np.vstack(parts) if parts else None


def narrowed(tables: Layout, part: tuple[int, ...]) -> tuple[int, ...]:
    """The first variables of a wide table, as many as keep its rows few."""
    rows = np.cumprod([float(tables.levels[n]) for n in part])
    return part[: max(1, int((rows <= ROWS).sum()))]
