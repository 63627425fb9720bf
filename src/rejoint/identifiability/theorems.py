"""Given subsets: groups of variables between which every table is there.

The bounds depend on a partition only through the *sides* of the groups: sums of levels and, for a
group that is taken in pairs, the sum of squares, too. So the sums that can be reached are
tabulated, not the partitions; there are few of them, and any of them is traced back to a
partition afterwards.

A group ``S`` of variables that enter one at a time has a stacked factor of rank at most
``d = 1 + sum_{n in S} (I_n - 1)``, and after a change of basis (a row of ones, and the free
probabilities) it is a generic matrix of ``d`` rows: the lemmas apply with ``d`` as the side. Taken
``r`` at a time, the rank is ``D = sum_{q <= r} e_q(I_n - 1)``, with structure in the rows: such a
group may be the third of Lemmas 2 and 4, where only full column rank matters, and any of Kruskal's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, combinations, product
from math import gcd, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.identifiability.bounds import (
    Bound,
    Origin,
    below_expected,
    carried,
    compound,
    full_column_rank,
    kruskal,
    powers_of_two,
)
from rejoint.identifiability.layout import Layout, elementary
from rejoint.identifiability.theorems_as_printed import named

#: Entries of the tabulation; beyond, only balanced partitions are tried.
LARGEST = 30_000_000


@dataclass(frozen=True)
class Splits:
    """All ways to split numbers into three groups, by the sums of the first two.

    Parameters
    ----------
    values : tuple of int
        The numbers: ``I_n - 1``, or ``I_n``.

    Examples
    --------
    >>> splits = Splits((2, 2, 2, 6))
    >>> first, second, third, squares = splits.sums
    >>> where = int(np.argmax(first * second * third))  # the largest product is 2 * 4 * 6
    >>> sorted(splits.partition(where), key=len)[-1]
    (0, 1)
    """

    values: tuple[int, ...]

    @cached_property
    def unit(self) -> int:
        """Greatest common divisor: sums are counted in it."""
        return gcd(*self.values) or 1

    @cached_property
    def small(self) -> tuple[int, ...]:
        """The numbers in units."""
        return tuple(value // self.unit for value in self.values)

    @property
    def equal(self) -> bool:
        """Whether all numbers are the same: then only the sizes of the groups matter."""
        return len({*self.values}) == 1 and self.values[0] > 0

    @property
    def fits(self) -> bool:
        """Whether the tabulation is small enough."""
        size = 1 + sum(self.small)
        return size**2 * (1 if self.equal else 1 + len(self.values)) <= LARGEST

    @cached_property
    def steps(self) -> NDArray[np.int64]:
        """The tabulation, ``[n, s1, s2]``, over the first ``n`` numbers.

        How much the squares in the first two groups can add up to, if the groups sum up to
        ``s1`` and ``s2``; -1 if they cannot.
        """
        size = 1 + sum(self.small)
        table = np.full((1 + len(self.small), size, size), -1, dtype=np.int64)
        table[0, 0, 0] = 0
        for n, value in enumerate(self.small):
            before, after = table[n], table[n + 1]
            after[:] = before  # into the third group
            left, up = before[: size - value], before[:, : size - value]
            gain = value * value
            np.maximum(after[value:], np.where(left >= 0, left + gain, -1), out=after[value:])
            np.maximum(after[:, value:], np.where(up >= 0, up + gain, -1), out=after[:, value:])
        return table

    @cached_property
    def places(self) -> NDArray[np.intp]:
        """The sums that can be reached, (K, 2), in units."""
        if self.equal:
            size = np.arange(1 + len(self.values))
            return np.argwhere(size[:, None] + size <= len(self.values))
        return np.argwhere(self.steps[-1] >= 0)

    @cached_property
    def sums(self) -> tuple[NDArray[np.int64], ...]:
        """Sums of the three groups, and least sum of squares in the third, for each place."""
        first, second = self.places[:, 0] * self.unit, self.places[:, 1] * self.unit
        total = sum(self.values)
        if self.equal:
            third = total - first - second
            return first, second, third, third * self.unit
        squares = sum(v * v for v in self.values)
        third_squares = squares - self.steps[-1][tuple(self.places.T)] * self.unit**2
        return first, second, total - first - second, third_squares

    def partition(self, where: int) -> tuple[tuple[int, ...], ...]:
        """Which numbers are in which group, for one place."""
        groups: tuple[list[int], ...] = ([], [], [])
        s1, s2 = map(int, self.places[where])
        if self.equal:
            every = tuple(range(len(self.values)))
            return every[:s1], every[s1 : s1 + s2], every[s1 + s2 :]
        for n in reversed(range(len(self.small))):
            value, now = self.small[n], self.steps[n + 1, s1, s2]
            before, gain = self.steps[n], value * value
            if value == 0 or before[s1, s2] == now:
                groups[2].append(n)
            elif s1 >= value and before[s1 - value, s2] >= 0 == now - gain - before[s1 - value, s2]:
                groups[0].append(n)
                s1 -= value
            else:
                groups[1].append(n)
                s2 -= value
        return tuple(tuple(reversed(group)) for group in groups)


def balanced(values: Sequence[int], groups: int) -> tuple[tuple[int, ...], ...]:
    """Groups of nearly equal sums: the largest number first, into the smallest group.

    Examples
    --------
    >>> balanced([3, 1, 2, 2], 2)
    ((0, 1), (2, 3))
    """
    found: list[list[int]] = [[] for _ in range(groups)]
    sums = [0] * groups
    for n in sorted(range(len(values)), key=lambda n: -values[n]):
        k = min(range(groups), key=lambda k: (sums[k], len(found[k])))
        found[k].append(n)
        sums[k] += values[n]
    return tuple(tuple(sorted(group)) for group in found)


EXPECTED = "Chiantini-Ottaviani-Vannieuwenhoven 2014"
#: Sides beyond this are taken for this: no smaller side is near, and machine numbers end.
HUGE = 2**60

#: Variables that are cut into runs, for tables of five variables and more.
RUNS = 40

GENERIC = "factors drawn from a continuous distribution"
Rule = Callable[[Any, Any, Any], Any]

#: The lemmas, and whether their third side may be a group taken several at a time.
LEMMAS: tuple[tuple[str, Rule, bool, str], ...] = (
    ("Lemma 1 (Kruskal)", kruskal, True, "Kruskal ranks of the three groups"),
    ("Lemma 2", full_column_rank, True, "two sides of 3 or more, the third of full column rank"),
    ("Lemma 3", powers_of_two, False, "three stacked groups without further structure"),
    ("Lemma 4 (compound)", compound, True, "generic rank of the compound matrices; the third "
     "of full column rank"),
)  # fmt: skip


def grouped_bounds(tables: Layout) -> list[Bound]:
    """Lemmas 1-4 over all partitions into three groups; with the printed sides, too.

    Examples
    --------
    >>> from rejoint.identifiability.layout import layout
    >>> [b.rank for b in grouped_bounds(layout([3] * 10, order=3)) if b.proved]
    [10, 13, 8, 13]
    """
    order = tables.order or 0
    if order < 3 or sum(size > 1 for size in tables.levels) < 3:
        return []
    right, wrong = Splits(tables.free), Splits(tables.levels)
    found = []
    for name, rule, structured, needs in LEMMAS:
        extra = order - 2 if structured else 1
        best = best_split(tables, right, name, rule, extra, needs)
        if rule is kruskal and order > 4:
            best = max(several_at_a_time(tables, needs), best, key=lambda bound: bound.rank)
        found.append(best)
        if wrong.equal and wrong.fits:
            found.append(as_printed(tables, wrong, name, rule, extra))
    return found


def best_split(
    tables: Layout, splits: Splits, name: str, rule: Rule, taken: int, needs: str
) -> Bound:
    """The partition of the largest bound; the third group is taken ``taken`` at a time."""
    if splits.fits:
        first, second, third, squares = splits.sums
        pairs = (third * third - squares) // 2 if taken > 1 else 0
        ranks = rule(1 + first, 1 + second, 1 + third + pairs)
        groups = splits.partition(most_even(ranks, splits))
    else:
        groups = balanced(tables.free, 3)
    sides = [1 + sum(tables.free[n] for n in group) for group in groups]
    sides[2] = sum(elementary([tables.free[n] for n in groups[2]], taken))
    rank = int(rule(*(min(side, HUGE) for side in sides)))
    side = "d_k = 1 + sum (I_n - 1)" + (f", the third taken {taken} at a time" * (taken > 1))
    return Bound(
        name,
        rank,
        True,
        "corrected",
        f"{GENERIC}; sides {side}: {' x '.join(map(str, sides))}; {needs}",
        named(tables, groups),
        float(rank),
    )


def several_at_a_time(tables: Layout, needs: str) -> Bound:
    """Kruskal where each group is taken several at a time, as many as the order in all.

    Groups are runs of the variables, the largest first; not all partitions are tried.
    """
    order = tables.order or 0
    down = sorted(range(len(tables.free)), key=lambda n: -tables.free[n])[:RUNS]
    size = len(down)
    runs = {
        (a, b): list(accumulate(elementary([tables.free[n] for n in down[a:b]], b - a)))
        for a, b in combinations(range(size + 1), 2)
    }
    best: tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]] = (0, (), (), ())
    for a, b in combinations(range(1, size), 2):
        cuts = ((0, a), (a, b), (b, size))
        for i, j in product(range(1, a + 1), range(1, b - a + 1)):
            last = min(order - i - j, size - b)
            if last < 1:
                continue
            sides = tuple(runs[cut][k] for cut, k in zip(cuts, (i, j, last), strict=True))
            total = sum(sides)
            rank = min(total - max(sides) - 2, (total - 2) // 2)  # kruskal, in whole numbers
            if min(sides) >= 2 and rank > best[0]:
                best = rank, (a, b), (i, j, last), sides
    rank, (a, b), take, sides = best
    groups = [sorted(down[:a]), sorted(down[a:b]), sorted([*down[b:], *left_out(tables, down)])]
    return Bound(
        "Lemma 1 (Kruskal)",
        rank,
        True,
        "corrected",
        f"{GENERIC}; groups taken {', '.join(map(str, take))} at a time, sides D_m = "
        f"sum_(r <= k_m) e_r(I_n - 1): {' x '.join(map(str, sides))}; {needs}",
        named(tables, groups),
        float(rank),
    )


def left_out(tables: Layout, some: Sequence[int]) -> set[int]:
    """The other variables: more of them in a group only add to its side."""
    return set(range(len(tables.domain))) - {*some}


def most_even(ranks: Any, splits: Splits) -> int:
    """Where the largest rank is attained; of several places, that of the largest least group."""
    least = np.minimum(np.minimum(splits.sums[0], splits.sums[1]), splits.sums[2])
    return int(np.argmax(np.where(ranks == ranks.max(), least, -1)))


def as_printed(tables: Layout, splits: Splits, name: str, rule: Rule, taken: int) -> Bound:
    """The lemma with ``I |S_k|`` as sides, as the proofs take it, for equal levels.

    A group taken in pairs is two groups there, whose sides multiply.
    """
    first, second, third, _ = splits.sums
    levels, size = tables.levels[0], len(tables.domain)
    if taken > 1:
        count = third // levels
        third = levels**2 * (count // 2) * (count - count // 2)
    ranks = rule(first, second, third)
    where = most_even(ranks, splits)
    groups = splits.partition(where)
    return Bound(
        f"{name}, sides I|S_k|",
        int(ranks[where]),
        False,
        "printed",
        f"equal levels; {GENERIC}; {size} variables counted with {levels} free rows each, of "
        f"which {levels - 1} are free",
        named(tables, groups),
        float(ranks[where]),
    )


def expected_rank(tables: Layout) -> list[Bound]:
    """Chiantini, Ottaviani, Vannieuwenhoven on the stacked groups, or on one table.

    Their proof covers tensors of up to 15,000 cells, so that only some of the variables may be
    grouped; the others must hang on these.
    """
    order = tables.order or 0
    if order < 3:
        return []
    best: tuple[int, tuple[tuple[int, ...], ...]] = (0, ())
    for some in prefixes(tables.free):
        for count in {3, min(order, 6)}:
            groups = tuple(
                tuple(some[n] for n in group)
                for group in balanced([tables.free[n] for n in some], count)
            )
            sides = tuple(1 + sum(tables.free[n] for n in group) for group in groups)
            rank = below_expected(sides)
            if rank > best[0]:
                best = max(best, (carried(tables, some, rank), groups))
    return [expected_bound(tables, *best)] if best[0] else []


def prefixes(free: Sequence[int]) -> list[list[int]]:
    """Some of the variables: the largest ones, and the smallest ones, of every number."""
    down = sorted(range(len(free)), key=lambda n: -free[n])
    down = [n for n in down if free[n]]
    both = [down, down[::-1]]
    return [some[:k] for some in both for k in range(3, min(len(down), 120) + 1)]


def expected_bound(tables: Layout, rank: int, groups: Sequence[Sequence[int]]) -> Bound:
    """The same as a bound."""
    sides = [1 + sum(tables.free[n] for n in group) for group in groups]
    return Bound(
        EXPECTED,
        rank,
        True,
        "literature",
        f"{GENERIC}; below the expected rank of a {' x '.join(map(str, sides))} tensor of at most "
        "15,000 cells, proved by computer case by case; other variables hang on these",
        named(tables, groups),
        float(rank),
    )


def one_table(tables: Layout, subset: Sequence[int]) -> tuple[int, tuple[tuple[int, ...], ...]]:
    """Kruskal on one table of three variables or more, grouped as well as can be.

    The rows of a group are products over its variables (Allman, Matias, Rhodes 2009).

    Examples
    --------
    >>> from rejoint.identifiability.layout import layout
    >>> one_table(layout([2] * 5, order=5), range(5))
    (4, ((0, 1), (2, 3), (4,)))
    >>> one_table(layout([2] * 21, order=21), range(21))[0]  # 2, 2^10 and 2^10
    1024
    """
    subset = [n for n in subset if tables.levels[n] > 1]
    if len(subset) < 3:
        return 0, ()
    best: tuple[int, tuple[tuple[int, ...], ...]] = (0, ())
    if len(subset) > 9:
        down = sorted(range(len(subset)), key=lambda i: -tables.levels[subset[i]])
        choices: Any = [
            grouped_evenly(tables, subset, alone) for alone in (None, down[0], down[-1])
        ]
    else:
        choices = product(range(3), repeat=len(subset))
    for choice in choices:
        groups = tuple(
            tuple(n for n, k in zip(subset, choice, strict=True) if k == group)
            for group in range(3)
        )
        if all(groups):
            sides = [prod(tables.levels[n] for n in group) for group in groups]
            rank = int(kruskal(*(min(side, HUGE) for side in sides)))
            if rank > best[0]:
                best = rank, groups
    return best


def grouped_evenly(tables: Layout, subset: Sequence[int], alone: int | None = None) -> list[int]:
    """Group of each variable, so that the products are nearly equal; one may be by itself."""
    logs = [round(1000 * float(np.log(tables.levels[n]))) for n in subset]
    if alone is None:
        groups = balanced(logs, 3)
    else:
        others = [i for i in range(len(subset)) if i != alone]
        halves = balanced([logs[i] for i in others], 2)
        groups = ((alone,), *(tuple(others[i] for i in half) for half in halves))
    return [next(k for k in range(3) if i in groups[k]) for i in range(len(subset))]


def single_table(tables: Layout) -> Bound | None:
    """The best single table, on which all other variables hang."""
    listed: Any = tables.tables()
    if tables.order is not None:
        down = sorted(range(len(tables.domain)), key=lambda n: -tables.levels[n])
        listed = [tuple(sorted(down[: tables.order]))]
    best: tuple[int, tuple[tuple[int, ...], ...]] = (0, ())
    for subset in listed:
        if len(subset) >= 3:
            rank, groups = one_table(tables, subset)
            if rank > best[0]:
                best = max(best, (carried(tables, subset, rank), groups))
    if not best[0]:
        return None
    rank, groups = best
    origin: Origin = "printed" if tables.largest == 3 else "literature"
    name = "One table (Kruskal)" if origin == "printed" else "Allman-Matias-Rhodes 2009, one table"
    return Bound(
        name,
        rank,
        True,
        origin,
        f"{GENERIC}; one table is unique by itself ((3I-2)/2 for three variables of I levels), and "
        "every other variable hangs on it, or on those that do, by overlapping tables",
        named(tables, groups),
        float(rank),
    )


Groups = tuple[tuple[int, ...], ...]

#: Seeds from which groups are grown, at the most.
SEEDS = 200


def listed_bounds(tables: Layout) -> list[Bound]:
    """The lemmas on every grouping that is found, with the variables that hang on it.

    Examples
    --------
    >>> from rejoint.identifiability.layout import layout
    >>> cyclic = layout([3] * 10, subsets=[(i, (i + 1) % 10, (i + 2) % 10) for i in range(10)])
    >>> max(bound.rank for bound in listed_bounds(cyclic))
    4
    """
    found: dict[str, tuple[int, Groups]] = {}
    said = [(ranks_of(tables, groups), groups) for groups in groupings(tables)]
    # The most promising first: those that cannot do better need no look at what hangs on them.
    for ranks, groups in sorted(said, key=lambda pair: -max(rank for _, rank in pair[0])):
        better = [(name, rank) for name, rank in ranks if rank > found.get(name, (0, ()))[0]]
        if not better:
            continue
        most = max(rank for _, rank in better)
        limit = carried(tables, [n for group in groups for n in group], most)
        for name, rank in better:
            if min(rank, limit) > found.get(name, (0, ()))[0]:
                found[name] = min(rank, limit), groups
    names = [*(name for name, *_ in LEMMAS), EXPECTED]
    return [as_bound(tables, name, *found[name]) for name in names if name in found]


def ranks_of(tables: Layout, groups: Groups) -> list[tuple[str, int]]:
    """What each result says of one grouping, into three groups or four."""
    sides = sorted(1 + sum(tables.free[n] for n in group) for group in groups)
    said = [(EXPECTED, below_expected(tuple(sides)))]
    if len(sides) == 3:
        # All three may be the third side of Lemmas 2 and 4.
        turns = [(sides[0], sides[1], sides[2]), (sides[0], sides[2], sides[1])]
        said += [(name, max(int(rule(*turn)) for turn in turns)) for name, rule, _, _ in LEMMAS]
    else:
        a, b, c, d = sides
        for name, rule in (("Lemma 2", full_column_rank), ("Lemma 4 (compound)", compound)):
            turns = [(a, b, c * d), (a, c, b * d), (b, c, a * d), (c, d, a * b), (b, d, a * c)]
            said.append((name, max(int(rule(*turn)) for turn in turns)))
    return said


def groupings(tables: Layout) -> list[Groups]:
    """Groups grown from tables: a variable joins where all tables across are there."""
    free = tables.free
    closure = {s for s in tables.parts(3, 4) if all(free[n] for n in s)}
    rng = np.random.default_rng(0)
    down = sorted(range(len(free)), key=lambda n: -free[n])
    found: dict[Groups, None] = {}
    for size in (3, 4):
        seeds = sorted(s for s in closure if len(s) == size)
        if len(seeds) > SEEDS:
            seeds = [seeds[k] for k in sorted(rng.choice(len(seeds), SEEDS, replace=False))]
        for seed in seeds:
            found[tuple((n,) for n in seed)] = None
            for even in (True, False):
                found[grown(seed, down, closure, free, even=even)] = None
    return list(found)


def grown(
    seed: Sequence[int],
    order: Sequence[int],
    closure: set[tuple[int, ...]],
    free: Sequence[int],
    *,
    even: bool,
) -> Groups:
    """One grouping: each variable into the smallest group that takes it, or into the largest."""
    groups = [[n] for n in seed]
    sign = 1 if even else -1
    for m in order:
        if m in seed or not free[m]:
            continue
        ranked = sorted(range(len(groups)), key=lambda k: sign * sum(free[n] for n in groups[k]))
        for k in ranked:
            others = [group for i, group in enumerate(groups) if i != k]
            if all(tuple(sorted((m, *cells))) in closure for cells in product(*others)):
                groups[k].append(m)
                break
    return tuple(sorted(tuple(sorted(group)) for group in groups))


def as_bound(tables: Layout, name: str, rank: int, groups: Groups) -> Bound:
    """The result in words."""
    if name == EXPECTED:
        return expected_bound(tables, rank, groups)
    sides = [1 + sum(tables.free[n] for n in group) for group in groups]
    merged = ", two of them multiplied into the third" if len(groups) == 4 else ""
    needs = next(needs for known, _, _, needs in LEMMAS if known == name)
    return Bound(
        name,
        rank,
        True,
        "corrected",
        f"{GENERIC}; groups between which all tables are there, sides "
        f"{' x '.join(map(str, sides))}{merged}; {needs}; other variables hang on these",
        named(tables, groups),
        float(rank),
    )
