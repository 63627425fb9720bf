"""Three groups of variables for the virtual tensor, and the subtables it is made of.

The first group may be made of single variables (tables of order 3) or of pairs (order 4: the
Khatri-Rao structure of Theorem 3 gives it many more rows). A stacked factor of group ``S`` has
rank at most ``d = sum (I_n - 1) + 1`` (each block of rows sums to one), one of pairs
``D_2 = 1 + e_1 + e_2`` of the ``I_n - 1``: see the notes on the proofs in the documentation.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from rejoint.factorization.problem import Array, Problem

Block = tuple[int, ...]


@dataclass(frozen=True)
class Groups:
    """Blocks of the three stacked modes: each block is one variable or a pair of them."""

    first: tuple[Block, ...]
    second: tuple[Block, ...]
    third: tuple[Block, ...]

    @property
    def modes(self) -> tuple[tuple[Block, ...], ...]:
        """The three lists of blocks."""
        return self.first, self.second, self.third


class Subtables:
    """Finds the table of any subset that is contained in a given table, and sums down to it."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.best: dict[bool, Groups | None] = {}
        self.owner: dict[frozenset[int], int] = {}
        for i, subset in enumerate(problem.subsets):
            for order in range(1, min(len(subset), 4) + 1):
                for part in combinations(subset, order):
                    self.owner.setdefault(frozenset(part), i)

    def __contains__(self, names: Iterable[int]) -> bool:
        return frozenset(names) in self.owner

    def table(self, variables: Sequence[int]) -> Array:
        """The table over ``variables``, axes in that order."""
        index = self.owner[frozenset(variables)]
        subset = self.problem.subsets[index]
        gone = tuple(axis for axis, n in enumerate(subset) if n not in variables)
        summed = self.problem.tables[index].sum(axis=gone)
        left = [n for n in subset if n in variables]
        return np.transpose(summed, [left.index(n) for n in variables])

    def best_groups(self, *, pairs: bool) -> Groups:
        """The partition that carries the largest rank, of all that were tried."""
        if pairs not in self.best:
            self.best[pairs] = search_groups(self, pairs)
        found = self.best[pairs]
        assert found is not None
        return found

    def largest_rank(self, *, pairs: bool) -> int:
        """Largest rank that a partition carries; 0 if there is no table for one."""
        size, levels = (4 if pairs else 3), self.problem.levels
        if not any(len(s) == size and all(levels[n] > 1 for n in s) for s in self.owner):
            return 0
        return carried_rank(levels, self.best_groups(pairs=pairs))


def stacked_rank(levels: Sequence[int], variables: Sequence[int], pairs: bool) -> int:
    """Largest rank of a group's stacked factor: ``d``, or ``D_2`` when made of pairs."""
    free = [levels[n] - 1 for n in variables]
    rank = 1 + sum(free)
    return rank + sum(a * b for a, b in combinations(free, 2)) if pairs else rank


def draw_groups(
    subtables: Subtables, rank: int, rng: np.random.Generator, *, pairs: bool, limit: int = 120
) -> Groups:
    """Grow three groups from a random seed, so that the first two can carry ``rank`` if possible.

    How far the first two grow beyond ``rank`` is drawn too: with noisy tables it is not known
    beforehand whether longer sides or more slabs help. ``limit`` bounds the rows of a stacked
    mode; what is left out hangs on by least squares.
    """
    levels = subtables.problem.levels
    order = [int(n) for n in rng.permutation(len(levels)) if levels[n] > 1]
    slack = float(rng.choice([1.0, 1.5, np.inf]))
    return grow_groups(subtables, rank, order, slack, pairs=pairs, limit=limit)


def grow_groups(
    subtables: Subtables,
    rank: int,
    order: Sequence[int],
    slack: float,
    *,
    pairs: bool,
    limit: int = 120,
) -> Groups:
    """Put variables, in order, into the weaker of the first two groups, else into the third."""
    levels = subtables.problem.levels
    groups = find_seed(subtables, order, pairs)
    first, second, third = groups
    for n in order:
        if any(n in group for group in groups):
            continue
        carried = [stacked_rank(levels, first, pairs), stacked_rank(levels, second, False)]
        sides = [(carried[0], first), (carried[1], second)]
        wanted = [group for size, group in sorted(sides, key=lambda s: s[0]) if size < slack * rank]
        for group in [*wanted, third]:
            rows = sum(levels[m] for m in group) + levels[n]
            if rows <= max(limit, 2 * rank) and joins(subtables, n, group, groups, pairs):
                group.append(n)
                break
    heads = combinations(sorted(first), 2) if pairs else ((n,) for n in first)
    return Groups(tuple(heads), tuple((n,) for n in second), tuple((n,) for n in third))


def find_seed(
    subtables: Subtables, order: Sequence[int], pairs: bool
) -> tuple[list[int], list[int], list[int]]:
    """The first triple (or quadruple) in the given order that has a table."""
    place = {n: k for k, n in enumerate(order)}
    size = 4 if pairs else 3
    candidates = [s for s in subtables.owner if len(s) == size and s <= place.keys()]
    ranks = min(sorted(place[n] for n in s) for s in candidates)
    chosen = [order[k] for k in ranks]
    return chosen[:-2], [chosen[-2]], [chosen[-1]]


def joins(
    subtables: Subtables,
    n: int,
    group: list[int],
    groups: tuple[list[int], list[int], list[int]],
    pairs: bool,
) -> bool:
    """Whether every table across the groups that ``n`` would bring into ``group`` is there."""
    first, second, third = ([n] if g is group else g for g in groups)
    heads: Iterable[tuple[int, ...]] = ((m,) for m in first)
    if pairs:
        heads = ((m, n) for m in group) if group is groups[0] else combinations(first, 2)
    return all((*head, b, c) in subtables for head, b, c in product(heads, second, third))


def carried_rank(levels: Sequence[int], groups: Groups) -> int:
    """Largest rank for which both compressed modes can have full column rank."""
    pairs = len(groups.first[0]) == 2
    first = sorted({n for block in groups.first for n in block})
    second = [block[0] for block in groups.second]
    return min(stacked_rank(levels, first, pairs), stacked_rank(levels, second, False))


def search_groups(subtables: Subtables, pairs: bool) -> Groups:
    """Try many partitions, orderly and random ones, for the largest rank."""
    levels = subtables.problem.levels
    rng = np.random.default_rng(0)
    usable = [n for n in range(len(levels)) if levels[n] > 1]
    down = sorted(usable, key=lambda n: -levels[n])
    orders = [rng.permutation(usable).tolist() for _ in range(100 if len(usable) < 20 else 20)]
    for third in down[:50]:
        # Large variables first into the weaker side balance the two; pairs need few of them.
        rest = [n for n in down if n != third]
        ahead = [*rest[-2:], rest[0]] if pairs else rest[:2]
        orders.append([*ahead, third, *(n for n in rest if n not in ahead)])
    everything = sum(levels) ** 2
    drawn = [grow_groups(subtables, everything, order, np.inf, pairs=pairs) for order in orders]
    return max(drawn, key=lambda groups: carried_rank(levels, groups))


def virtual_tensor(subtables: Subtables, groups: Groups) -> Array:
    """The tables across the groups set into one tensor, (L_1, L_2, L_3)."""
    levels = subtables.problem.levels
    sides = [[int(np.prod([levels[n] for n in block])) for block in mode] for mode in groups.modes]
    starts = [np.concatenate([[0], np.cumsum(side)]) for side in sides]
    tensor = np.empty([int(start[-1]) for start in starts])
    for place in product(*(range(len(mode)) for mode in groups.modes)):
        blocks = [mode[k] for mode, k in zip(groups.modes, place, strict=True)]
        shape = [side[k] for side, k in zip(sides, place, strict=True)]
        where = tuple(slice(s[k], s[k + 1]) for s, k in zip(starts, place, strict=True))
        tensor[where] = subtables.table([n for block in blocks for n in block]).reshape(shape)
    return tensor
