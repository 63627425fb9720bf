"""Sets of tables that make a rank locally identifiable: wishes, and a random search for few."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, comb, prod

import numpy as np

from rejoint.domain import Domain
from rejoint.identifiability.goodman import generic_ranks, jacobian
from rejoint.identifiability.layout import Layout, of_positions
from rejoint.identifiability.local import Local
from rejoint.marginals.covers import Subset
from rejoint.marginals.random_cover import random_cover

__all__ = ["Wish", "best_placed", "by_budget", "fewest", "smallest_set"]

#: Sets that are tried of one size, and among how many that do the best is taken.
TRIES, KEPT = 40, 6

#: Tables of an order up to which all of them are looked at first.
LISTED = 20_000


@dataclass(frozen=True)
class Wish:
    """What a set of tables must fulfil."""

    domain: Domain
    order: int
    rank: int
    slack: float
    given: tuple[Subset, ...]

    def layout(self, subsets: Sequence[Subset]) -> Layout:
        """Given and planned tables together."""
        return of_positions(self.domain, [*self.given, *subsets])

    def spacious(self, tables: Layout) -> bool:
        """Whether every variable is covered, and equations are to spare."""
        if tables.uncovered:
            return False
        third = tables.equations - tables.moments_of(1, 2)
        turns = self.rank * (self.rank - 1) // 2
        enough = tables.equations >= (1 + self.slack) * (tables.columns(self.rank) - 1)
        return enough and third >= (1 + self.slack) * turns

    def fulfilled(self, subsets: Sequence[Subset]) -> bool:
        """Whether the rank is locally identifiable as well."""
        tables = self.layout(subsets)
        if not self.spacious(tables):
            return False
        exact = generic_ranks(tables, self.rank)
        if exact is not None:
            return exact.free == 0
        return bool(self.local(subsets).parameters)

    def local(self, subsets: Sequence[Subset], random_state: int = 0) -> Local:
        """The Jacobian test on given and planned tables together."""
        return jacobian(
            subsets=self.named([*self.given, *subsets]),
            domain=self.domain,
            rank=self.rank,
            random_state=random_state,
        )

    def named(self, subsets: Sequence[Subset]) -> tuple[tuple[str, ...], ...]:
        """Subsets of positions as subsets of names."""
        names = self.domain.names
        return tuple(tuple(names[n] for n in subset) for subset in subsets)


def fewest(wish: Wish) -> int:
    """No fewer tables can do: by variables to be covered and by equations."""
    free = [size - 1 for size in wish.domain.shape]
    largest = sorted(free, reverse=True)[: wish.order]
    singles = sum(largest)
    table = prod(1 + f for f in largest) - 1 - singles
    third = table - sum(a * b for a, b in combinations(largest, 2))
    known = wish.layout([]) if wish.given else None
    there = known.equations if known else 0
    covered = len(free) - len(known.uncovered) if known else 0
    old = there - known.moments_of(1, 2) if known else 0
    alone = 0 if known else sum(free)
    parameters = wish.rank * (1 + sum(free)) - 1
    turns = wish.rank * (wish.rank - 1) // 2
    missing = (1 + wish.slack) * parameters - there - alone
    return max(
        ceil((len(free) - covered) / wish.order),
        ceil(missing / max(table, 1)),
        ceil(((1 + wish.slack) * turns - old) / max(third, 1)),
        0 if known else 1,
    )


def smallest_set(wish: Wish, least: int, rng: np.random.Generator) -> list[list[Subset]]:
    """Sets of the smallest size at which some do, then without what they can spare."""
    if wish.given and wish.fulfilled([]):
        return [[]]
    total = comb(len(wish.domain), wish.order)
    if total <= LISTED and not wish.spacious(wish.layout(every_subset(wish))):
        return []
    size = max(least, 1)
    while size <= total:
        found = tried(wish, size, rng)
        if found:
            return [pruned(wish, subsets) for subsets in found]
        size += max(1, size // 12)
    every = every_subset(wish)
    return [pruned(wish, every)] if wish.fulfilled(every) else []


def every_subset(wish: Wish) -> list[Subset]:
    """All tables of the order."""
    return list(combinations(range(len(wish.domain)), wish.order))


def tried(wish: Wish, size: int, rng: np.random.Generator) -> list[list[Subset]]:
    """Random covers of one size that do."""
    columns = wish.rank * (1 + sum(wish.domain.shape) - len(wish.domain))
    tries = int(np.clip(3e8 / columns**2.5, 2, TRIES))
    found: list[list[Subset]] = []
    for _ in range(tries):
        subsets = cover(wish, size, rng)
        if subsets is not None and wish.fulfilled(subsets):
            found.append(subsets)
            if len(found) == min(KEPT, tries):
                break
    return found


def cover(wish: Wish, size: int, rng: np.random.Generator) -> list[Subset] | None:
    """Some tables in which every variable occurs that is in no given one."""
    if wish.given:
        every = len(wish.domain)
        drawn = {tuple(sorted(rng.permutation(every)[: wish.order].tolist())) for _ in range(size)}
        return [s for s in drawn if s not in wish.given]
    if size * wish.order < len(wish.domain):
        return None
    return list(random_cover(len(wish.domain), wish.order, size, rng))


def pruned(wish: Wish, subsets: list[Subset]) -> list[Subset]:
    """The set without tables that it can spare; large sets are left as they are."""
    if len(subsets) > 60:
        return subsets
    for subset in list(subsets):
        fewer = [s for s in subsets if s != subset]
        if (fewer or wish.given) and wish.fulfilled(fewer):
            subsets = fewer
    return subsets


def by_budget(wish: Wish, budget: int, rng: np.random.Generator) -> list[list[Subset]]:
    """Sets of as many tables as may be; none where the given ones do."""
    if wish.given and wish.fulfilled([]):
        return [[]]
    return tried(wish, min(budget, comb(len(wish.domain), wish.order)), rng)


def best_placed(wish: Wish, found: list[list[Subset]]) -> list[Subset]:
    """Of the smallest sets, the one whose weakest direction is the least weak, at two points."""
    fewest_tables = min(map(len, found))
    candidates = [subsets for subsets in found if len(subsets) == fewest_tables]
    if len(candidates) == 1:
        return candidates[0]

    def strength(subsets: list[Subset]) -> float:
        return float(np.prod([wish.local(subsets, random_state=s).smallest for s in (1, 2)]))

    return max(candidates, key=strength)
