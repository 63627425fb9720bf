"""Which few tables suffice for a rank: the smallest set that a search finds."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, comb, prod

import numpy as np

from rejoint.domain import Domain
from rejoint.domain.labels import plural
from rejoint.identifiability.goodman import EXACT, generic_ranks, jacobian
from rejoint.identifiability.layout import Layout, Levels, Subsets, layout
from rejoint.identifiability.local import Local
from rejoint.identifiability.ranks import whole_rank
from rejoint.marginals.covers import Subset, check_order
from rejoint.marginals.random_cover import random_cover

__all__ = ["Plan", "plan"]

#: Sets that are tried of one size, and among how many that do the best is taken.
TRIES, KEPT = 40, 6


@dataclass(frozen=True)
class Plan:
    """A few tables that make a rank locally identifiable.

    Parameters
    ----------
    subsets : tuple of tuples of names
        The tables to count, or the questions to ask together: each is a form for some of the
        respondents.
    given : tuple of tuples of names
        The tables that were there before.
    rank : int
        Number of classes.
    least : int
        No fewer tables can do, by counting.
    local : Local
        The Jacobian test on given and planned tables together.

    Examples
    --------
    >>> import rejoint as rj
    >>> found = rj.identifiability.plan([3] * 10, rank=5)
    >>> len(found.subsets), found.least, found.local.parameters
    (7, 5, True)
    """

    subsets: tuple[tuple[str, ...], ...]
    given: tuple[tuple[str, ...], ...]
    rank: int
    least: int
    local: Local

    @property
    def words(self) -> str:
        """What it says."""
        more = f" besides the {plural(len(self.given), 'table')} given" if self.given else ""
        return (
            f"{plural(len(self.subsets), 'table')}{more}: rank {self.rank} is locally "
            f"identifiable (smallest singular value {self.local.smallest:.1e} of the largest); "
            f"no fewer than {self.least} can."
        )

    def __str__(self) -> str:
        return "\n".join([self.words, *(" ".join(subset) for subset in self.subsets)])

    def __len__(self) -> int:
        """Number of tables to add."""
        return len(self.subsets)


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
        return layout(subsets=[*self.given, *subsets], domain=self.domain)

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
        local = jacobian(subsets=tables.subsets, domain=self.domain, rank=self.rank)
        return bool(local.parameters)


def plan(
    levels: Levels | None = None,
    rank: int = 2,
    budget: int | None = None,
    order: int = 3,
    *,
    given: Subsets = (),
    slack: float = 0.5,
    domain: Domain | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> Plan:
    """Find few tables from which a rank is locally identifiable: which questions to ask together.

    Parameters
    ----------
    levels : sequence of int or Domain
        The variables.
    rank : int
        Number of classes.
    budget : int, optional
        Tables at the most; all of them are used then, placed as well as the search can. By
        default as few as it finds.
    order : int
        Variables of each table.
    given : sequence of tuples, optional
        Tables that are there already, such as all pairs: the plan adds to these.
    slack : float
        Share of equations to spare, over the number of parameters; 0 for the fewest tables. The
        fewer are to spare, the more local optima there are: of random models of 10 variables, 3
        levels and 5 classes, ten starts found 3 of 8 from 6 tables, and 10 of 10 from 7.
    domain : Domain, optional
        In place of ``levels``.
    random_state : int or Generator, optional
        Of the search; fixed by default.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        If the rank is out of reach of all tables of this order, or of the budget.

    Examples
    --------
    Which triples must be added to all pairs?

    >>> import rejoint as rj
    >>> pairs = [(i, j) for i in range(6) for j in range(i)]
    >>> print(rj.identifiability.plan([3] * 6, rank=3, given=pairs, slack=0).words)
    1 table besides the 15 tables given: rank 3 is locally identifiable (smallest singular \
value ... of the largest); no fewer than 1 can.
    """
    start = layout(levels, None, given or None, domain)
    variables = start.domain
    check_order(order, len(variables))
    there = tuple(start.tables()) if given else ()
    wish = Wish(variables, order, whole_rank(rank), slack, there)
    check_reach(wish)
    rng = np.random.default_rng(random_state)
    least = fewest(wish)
    found = by_budget(wish, budget, rng) if budget is not None else smallest_set(wish, least, rng)
    if not found:
        raise ValueError(
            f"No {plural(budget or 0, 'table')} of order {order} were found that make rank {rank} "
            f"locally identifiable with {slack:.0%} of equations to spare: raise the budget or "
            "the order, or lower slack."
        )
    best = best_placed(wish, found)
    names = variables.names
    return Plan(
        tuple(tuple(names[n] for n in subset) for subset in sorted(best)),
        tuple(tuple(names[n] for n in subset) for subset in there),
        wish.rank,
        fewest(Wish(variables, order, wish.rank, 0.0, there)),
        jacobian(subsets=[*there, *best], domain=variables, rank=wish.rank),
    )


def check_reach(wish: Wish) -> None:
    """All tables of the order must do, or no choice of them can."""
    size = len(wish.domain)
    everything = layout(order=wish.order, domain=wish.domain)
    count = (everything.equations + 1) // everything.rows
    possible = count >= wish.rank
    if possible and everything.columns(wish.rank) <= EXACT:
        exact = generic_ranks(everything, wish.rank)
        possible = exact is None or exact.free == 0
    if not possible:
        raise ValueError(
            f"Rank {wish.rank} is out of reach: even all {comb(size, wish.order):,} tables of "
            f"order {wish.order} leave its classes open. Raise the order, or lower the rank "
            f"(counting allows {count} at the most)."
        )


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
    size = max(least, 1)
    while size <= total:
        found = tried(wish, size, rng)
        if found:
            return [pruned(wish, subsets) for subsets in found]
        size += max(1, size // 12)
    every = list(combinations(range(len(wish.domain)), wish.order))
    return [pruned(wish, every)] if wish.fulfilled(every) else []


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
    """Sets of as many tables as may be."""
    whole_budget = min(whole_rank(budget), comb(len(wish.domain), wish.order))
    return tried(wish, whole_budget, rng)


def best_placed(wish: Wish, found: list[list[Subset]]) -> list[Subset]:
    """Of the smallest sets, the one whose weakest direction is the least weak, at two points."""
    fewest_tables = min(map(len, found))
    candidates = [subsets for subsets in found if len(subsets) == fewest_tables]
    if len(candidates) == 1:
        return candidates[0]

    def strength(subsets: list[Subset]) -> float:
        points = (
            jacobian(
                subsets=[*wish.given, *subsets], domain=wish.domain, rank=wish.rank, random_state=s
            ).smallest
            for s in (1, 2)
        )
        return float(np.prod(list(points)))

    return max(candidates, key=strength)
