"""Bounds on the rank that hold, by partitions of the variables into groups.

The bounds depend on a partition only through the *sides* of the groups: sums of levels and, for a
group that is taken in pairs, the sum of squares, too. So the sums that can be reached are
tabulated, not the partitions; there are few of them, and any of them is traced back to a
partition afterwards.

A group ``S`` of variables that enter one at a time has a stacked factor of rank at most
``d = 1 + sum_{n in S} (I_n - 1)``, and after a change of basis (a row of ones, and the free
probabilities) it is a generic matrix of ``d`` rows: the lemmas apply with ``d`` as the side. Taken
``r`` at a time, the rank is ``D = sum_{q <= r} e_q(I_n - 1)``, with structure in the rows: such a
group may be the third of Lemmas 2 and 4, where only full column rank matters, and any of Kruskal's.
If not all tables of an order are there, groups are used between which every table is there.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, combinations, product
from math import gcd, prod
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.identifiability.bounds import (
    IntOrArray,
    RankBound,
    below_expected,
    compound,
    full_column_rank,
    kruskal,
    powers_of_two,
    printed_bound,
    solvable_rank,
)
from rejoint.identifiability.layout import Groups, TableLayout, elementary_symmetric
from rejoint.marginals.subsets import Subset
from rejoint.text import plural

#: Entries of the tabulated sums; beyond, only balanced partitions are tried.
MOST_SPLIT_ENTRIES = 30_000_000

#: Larger sides are replaced by this one: no smaller side is near, and it fits machine integers.
HUGE_SIDE = 2**60

#: Variables that are cut into runs, for tables of five variables and more.
MOST_RUN_VARIABLES = 40

#: Variables of a group to which the result on expected ranks is applied.
MOST_EXPECTED_VARIABLES = 120

#: Variables of one table up to which all its partitions are tried.
MOST_PARTITIONED_VARIABLES = 9

#: Subsets from which groups are grown.
MOST_SEEDS = 200

GENERIC = "factors drawn from a continuous distribution"
EXPECTED = "Chiantini-Ottaviani-Vannieuwenhoven 2014"


class Lemma(NamedTuple):
    """A lemma of the paper, and whether its third side may be a group taken several at a time."""

    name: str
    rule: Callable[[Any, Any, Any], Any]
    structured: bool
    needs: str


LEMMAS = (
    Lemma("Lemma 1 (Kruskal)", kruskal, True, "Kruskal ranks of the three groups"),
    Lemma(
        "Lemma 2", full_column_rank, True, "two sides of 3 or more, the third of full column rank"
    ),
    Lemma("Lemma 3", powers_of_two, False, "three stacked groups without further structure"),
    Lemma(
        "Lemma 4 (compound)",
        compound,
        True,
        "generic rank of the compound matrices; the third of full column rank",
    ),
)


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
        return size**2 * (1 if self.equal else 1 + len(self.values)) <= MOST_SPLIT_ENTRIES

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

    def most_even(self, ranks: IntOrArray) -> int:
        """Place of the largest rank; of several, that whose smallest group is the largest."""
        least = np.minimum(np.minimum(self.sums[0], self.sums[1]), self.sums[2])
        return int(np.argmax(np.where(ranks == ranks.max(), least, -1)))


def split_evenly(values: Sequence[int], groups: int) -> Groups:
    """Split into groups of nearly equal sums: the largest number first, into the smallest group.

    Examples
    --------
    >>> split_evenly([3, 1, 2, 2], 2)
    ((0, 1), (2, 3))
    """
    found: list[list[int]] = [[] for _ in range(groups)]
    sums = [0] * groups
    for n in sorted(range(len(values)), key=lambda n: -values[n]):
        k = min(range(groups), key=lambda k: (sums[k], len(found[k])))
        found[k].append(n)
        sums[k] += values[n]
    return tuple(tuple(sorted(group)) for group in found)


def _proved_bound(
    tables: TableLayout,
    name: str,
    origin: Literal["printed", "corrected", "literature"],
    assumptions: str,
    rank: int,
    groups: Sequence[Sequence[int]],
) -> RankBound:
    """A bound on generic models that is proved."""
    partition = tables.group_names(groups)
    return RankBound(name, rank, True, origin, f"{GENERIC}; {assumptions}", partition, float(rank))


def all_tables_bounds(tables: TableLayout) -> list[RankBound]:
    """Lemmas 1-4 over all partitions into three groups, also with the printed sides.

    Examples
    --------
    >>> from rejoint.identifiability.layout import read_layout
    >>> [b.rank for b in all_tables_bounds(read_layout([3] * 10, order=3)) if b.proved]
    [10, 13, 8, 13]
    """
    order = tables.order or 0
    if order < 3 or sum(size > 1 for size in tables.levels) < 3:
        return []
    corrected, printed = Splits(tables.free), Splits(tables.levels)
    found = []
    for lemma in LEMMAS:
        taken = order - 2 if lemma.structured else 1
        best = _best_split(tables, corrected, lemma, taken)
        if lemma.rule is kruskal and order > 4:
            best = max(_kruskal_on_runs(tables, lemma), best, key=lambda bound: bound.rank)
        found.append(best)
        if printed.equal and printed.fits:
            found.append(_best_printed_split(tables, printed, lemma, taken))
    return found


def _best_split(tables: TableLayout, splits: Splits, lemma: Lemma, taken: int) -> RankBound:
    """The partition of the largest bound; the third group is taken ``taken`` at a time."""
    if splits.fits:
        first, second, third, squares = splits.sums
        pairs = (third * third - squares) // 2 if taken > 1 else 0
        ranks = lemma.rule(1 + first, 1 + second, 1 + third + pairs)
        groups = splits.partition(splits.most_even(ranks))
    else:
        groups = split_evenly(tables.free, 3)
    free = [tables.free[n] for n in groups[2]]
    sides = (*tables.sides(groups[:2]), sum(elementary_symmetric(free, taken)))
    several = f", the third taken {taken} at a time" if taken > 1 else ""
    return _proved_bound(
        tables,
        lemma.name,
        "corrected",
        f"sides d_k = 1 + sum (I_n - 1){several}: {_times(sides)}; {lemma.needs}",
        int(lemma.rule(*(min(side, HUGE_SIDE) for side in sides))),
        groups,
    )


def _kruskal_on_runs(tables: TableLayout, lemma: Lemma) -> RankBound:
    """Kruskal where each group is taken several at a time, as many as the order in all.

    Groups are runs of the variables, the largest first; not all partitions are tried.
    """
    order = tables.order or 0
    chosen = tables.largest_first[:MOST_RUN_VARIABLES]
    size = len(chosen)
    runs = {
        (a, b): list(accumulate(elementary_symmetric([tables.free[n] for n in chosen[a:b]], b - a)))
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
            rank = min(total - max(sides) - 2, (total - 2) // 2)  # kruskal, in Python integers
            if min(sides) >= 2 and rank > best[0]:
                best = rank, (a, b), (i, j, last), sides
    rank, (a, b), take, sides = best
    # The other variables join the last group: they only add to its side.
    groups = [sorted(group) for group in (chosen[:a], chosen[a:b], tables.largest_first[b:])]
    return _proved_bound(
        tables,
        lemma.name,
        "corrected",
        f"groups taken {', '.join(map(str, take))} at a time, sides D_m = "
        f"sum_(r <= k_m) e_r(I_n - 1): {_times(sides)}; {lemma.needs}",
        rank,
        groups,
    )


def _best_printed_split(tables: TableLayout, splits: Splits, lemma: Lemma, taken: int) -> RankBound:
    """The lemma with ``I |S_k|`` as sides, as the proofs take it, for equal levels.

    A group taken in pairs is two groups there, whose sides multiply.
    """
    first, second, third, _ = splits.sums
    levels, size = tables.levels[0], len(tables.domain)
    if taken > 1:
        count = third // levels
        third = levels**2 * (count // 2) * (count - count // 2)
    ranks = lemma.rule(first, second, third)
    where = splits.most_even(ranks)
    return printed_bound(
        tables,
        f"{lemma.name}, sides I|S_k|",
        ranks[where],
        f"equal levels; {GENERIC}; {plural(size, 'variable')} counted with "
        f"{plural(levels, 'free row')} each, of which {levels - 1} are free",
        splits.partition(where),
    )


def expected_rank_bounds(tables: TableLayout) -> list[RankBound]:
    """Chiantini, Ottaviani, Vannieuwenhoven on the stacked groups, or on one table.

    Their proof covers tensors of up to 15,000 cells, so that it may apply to a group of some of
    the variables only; the others must be solvable from these.
    """
    order = tables.order or 0
    if order < 3:
        return []
    best: tuple[int, Groups] = (0, ())
    down = [n for n in tables.largest_first if tables.free[n]]
    for chosen in (
        ordered[:k]
        for ordered in (down, down[::-1])
        for k in range(3, min(len(down), MOST_EXPECTED_VARIABLES) + 1)
    ):
        for count in {3, min(order, 6)}:
            split = split_evenly([tables.free[n] for n in chosen], count)
            groups = tuple(tuple(chosen[n] for n in group) for group in split)
            rank = below_expected(tables.sides(groups))
            if rank > best[0]:
                best = max(best, (solvable_rank(tables, chosen, rank), groups))
    return [_expected_rank_bound(tables, *best)] if best[0] else []


def _expected_rank_bound(tables: TableLayout, rank: int, groups: Groups) -> RankBound:
    return _proved_bound(
        tables,
        EXPECTED,
        "literature",
        f"below the expected rank of a {_times(tables.sides(groups))} tensor of at most "
        "15,000 cells, proved by computer case by case; other variables are linked to these",
        rank,
        groups,
    )


def single_table_bounds(tables: TableLayout) -> list[RankBound]:
    """Kruskal on the best single table from which all other variables can be solved."""
    subsets: Iterable[Sequence[int]] = tables.iter_subsets()
    if tables.order is not None:
        subsets = [sorted(tables.largest_first[: tables.order])]
    best: tuple[int, Groups] = (0, ())
    for subset in subsets:
        rank, groups = _kruskal_of_table(tables, subset)
        if rank > best[0]:
            best = max(best, (solvable_rank(tables, subset, rank), groups))
    if not best[0]:
        return []
    in_paper = tables.largest_order == 3
    return [
        _proved_bound(
            tables,
            "One table (Kruskal)" if in_paper else "Allman-Matias-Rhodes 2009, one table",
            "printed" if in_paper else "literature",
            "one table is unique by itself ((3I-2)/2 for three variables of I levels), and "
            "every other variable is linked to it, directly or through others, by overlapping "
            "tables",
            *best,
        )
    ]


def _kruskal_of_table(tables: TableLayout, subset: Iterable[int]) -> tuple[int, Groups]:
    """Kruskal's bound on one table of three variables or more, and the groups that attain it.

    The rows of a group are products over its variables (Allman, Matias, Rhodes 2009).

    Examples
    --------
    >>> from rejoint.identifiability.layout import read_layout
    >>> _kruskal_of_table(read_layout([2] * 5, order=5), range(5))
    (4, ((0, 1), (2, 3), (4,)))
    >>> _kruskal_of_table(read_layout([2] * 21, order=21), range(21))[0]  # 2, 2^10 and 2^10
    1024
    """
    subset = [n for n in subset if tables.levels[n] > 1]
    best: tuple[int, Groups] = (0, ())
    if len(subset) < 3:
        return best
    for groups in _groups_of_table(tables, subset):
        if all(groups):
            sides = [prod(tables.levels[n] for n in group) for group in groups]
            rank = int(kruskal(*(min(side, HUGE_SIDE) for side in sides)))
            if rank > best[0]:
                best = rank, groups
    return best


def _groups_of_table(tables: TableLayout, subset: list[int]) -> Iterator[Groups]:
    """All partitions of a small table into three groups; a few even ones of a large table."""
    if len(subset) <= MOST_PARTITIONED_VARIABLES:
        for choice in product(range(3), repeat=len(subset)):
            yield tuple(
                tuple(n for n, k in zip(subset, choice, strict=True) if k == group)
                for group in range(3)
            )
        return
    # Groups of nearly equal products of levels; the largest or smallest variable may be alone.
    logs = {n: round(1000 * float(np.log(tables.levels[n]))) for n in subset}
    down = sorted(subset, key=lambda n: -tables.levels[n])
    for alone in ([], [down[0]], [down[-1]]):
        others = [n for n in subset if n not in alone]
        split = split_evenly([logs[n] for n in others], 3 - len(alone))
        rest = tuple(tuple(others[i] for i in group) for group in split)
        yield ((*alone,), *rest) if alone else rest


def listed_tables_bounds(tables: TableLayout) -> list[RankBound]:
    """The lemmas on every grouping that is found, with the variables solvable from it.

    Examples
    --------
    >>> from rejoint.identifiability.layout import read_layout
    >>> subsets = [(i, (i + 1) % 10, (i + 2) % 10) for i in range(10)]
    >>> max(bound.rank for bound in listed_tables_bounds(read_layout([3] * 10, subsets=subsets)))
    4
    """
    if tables.order is not None:
        return []
    found: dict[str, tuple[int, Groups]] = {}
    ranked = [(_ranks_of_grouping(tables, groups), groups) for groups in find_groupings(tables)]
    # The best come first: those that cannot do better need no test of what they can solve for.
    for ranks, groups in sorted(ranked, key=lambda pair: -max(pair[0].values())):
        better = {name: rank for name, rank in ranks.items() if rank > found.get(name, (0,))[0]}
        if not better:
            continue
        limit = solvable_rank(tables, chain.from_iterable(groups), max(better.values()))
        for name, rank in better.items():
            if min(rank, limit) > found.get(name, (0,))[0]:
                found[name] = min(rank, limit), groups
    bounds = [
        _proved_bound(
            tables,
            lemma.name,
            "corrected",
            _grouping_text(tables, lemma, found[lemma.name][1]),
            *found[lemma.name],
        )
        for lemma in LEMMAS
        if lemma.name in found
    ]
    if EXPECTED in found:
        bounds.append(_expected_rank_bound(tables, *found[EXPECTED]))
    return bounds


def _grouping_text(tables: TableLayout, lemma: Lemma, groups: Groups) -> str:
    merged = ", two of them multiplied into the third" if len(groups) == 4 else ""
    return (
        f"groups between which all tables are there, sides {_times(tables.sides(groups))}{merged}; "
        f"{lemma.needs}; other variables are linked to these"
    )


def _ranks_of_grouping(tables: TableLayout, groups: Groups) -> dict[str, int]:
    """The bound of each result on one grouping, into three groups or four."""
    sides = sorted(tables.sides(groups))
    ranks = {EXPECTED: below_expected(tuple(sides))}
    if len(sides) == 3:
        # Any of the two larger ones may be the third side of Lemmas 2 and 4.
        a, b, c = sides
        turns = [(a, b, c), (a, c, b)]
        lemmas = [*LEMMAS]
    else:
        a, b, c, d = sides
        turns = [(a, b, c * d), (a, c, b * d), (b, c, a * d), (c, d, a * b), (b, d, a * c)]
        lemmas = [LEMMAS[1], LEMMAS[3]]  # the third side may have structure
    return ranks | {lemma.name: max(int(lemma.rule(*turn)) for turn in turns) for lemma in lemmas}


def find_groupings(tables: TableLayout) -> list[Groups]:
    """Groups grown from tables: a variable joins where all tables across groups are there."""
    free = tables.free
    closure = {s for s in tables.list_parts(3, 4) if all(free[n] for n in s)}
    rng = np.random.default_rng(0)
    found: dict[Groups, None] = {}
    for size in (3, 4):
        seeds = sorted(s for s in closure if len(s) == size)
        if len(seeds) > MOST_SEEDS:
            seeds = [seeds[k] for k in sorted(rng.choice(len(seeds), MOST_SEEDS, replace=False))]
        for seed in seeds:
            found[tuple((n,) for n in seed)] = None
            for even in (True, False):
                found[_grow_groups(tables, seed, closure, even=even)] = None
    return list(found)


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


def _times(sides: Sequence[int]) -> str:
    return " x ".join(map(str, sides))
