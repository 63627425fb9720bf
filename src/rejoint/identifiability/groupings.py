"""Given subsets: groups of variables between which every table is there."""

from collections.abc import Sequence
from itertools import product

import numpy as np

from rejoint.identifiability.bound import Bound
from rejoint.identifiability.corrected import EXPECTED, GENERIC, LEMMAS, expected_bound
from rejoint.identifiability.hanging import carried
from rejoint.identifiability.layout import Layout
from rejoint.identifiability.lemmas import below_expected, compound, full_column_rank
from rejoint.identifiability.printed import named

__all__ = ["listed_bounds"]

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
