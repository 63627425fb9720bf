"""Which few tables suffice for a rank: the smallest set that a search finds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, comb, prod

import numpy as np

from rejoint.domain.domain import Domain
from rejoint.identifiability.jacobian import EXACT, Local, generic_ranks, jacobian
from rejoint.identifiability.layout import (
    Layout,
    Levels,
    Subsets,
    layout,
    of_positions,
    whole_number,
    whole_rank,
)
from rejoint.marginals.marginals import Marginals
from rejoint.marginals.subsets import Subset, check_order, random_cover
from rejoint.text import plural

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


#: Shares of equations to spare: by default, and where that cannot be had.
SLACK, LESS = 0.5, (0.25, 0.1, 0.0)

#: Below this share of equations to spare a plan says so.
TIGHT = 0.2


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
    def spare(self) -> float:
        """Equations that the tables have over the number of parameters, as a share of these."""
        return self.local.layout.equations / self.local.size - 1.0

    def ask(
        self, respondents: int, random_state: int | np.random.Generator | None = 0
    ) -> tuple[tuple[str, ...], ...]:
        """Which questions to ask which respondent: a form for each, all forms equally often.

        Parameters
        ----------
        respondents : int
            How many there are.
        random_state : int or Generator, optional
            Of the order of the forms, so that who gets which is left to chance.

        Examples
        --------
        >>> import rejoint as rj
        >>> domain = rj.Domain.of(dict.fromkeys(["age", "job", "town", "pet"], 3))
        >>> found = rj.identifiability.plan(domain, rank=2)
        >>> forms = found.ask(1000)
        >>> len(forms), {form: forms.count(form) for form in found.subsets}
        (1000, {('age', 'town', 'pet'): 500, ('job', 'town', 'pet'): 500})
        """
        if not self.subsets:
            raise ValueError("No table is missing: there is nothing to ask.")
        count = whole_number("respondents", respondents)
        rng = np.random.default_rng(random_state)
        turns = rng.permutation(np.arange(count) % len(self.subsets))
        return tuple(self.subsets[k] for k in turns)

    @property
    def words(self) -> str:
        """What it says."""
        tight = ""
        if self.subsets and self.spare < TIGHT:
            tight = (
                f" Only {self.spare:.0%} of equations to spare: fits may end in local optima, more "
                "tables help."
            )
        more = f" besides the {plural(len(self.given), 'table')} given" if self.given else ""
        return (
            f"{plural(len(self.subsets), 'table')}{more}: rank {self.rank} is locally "
            f"identifiable (smallest singular value {self.local.smallest:.1e} of the largest); "
            f"no fewer than {self.least} can.{tight}"
        )

    def __str__(self) -> str:
        return "\n".join([self.words, *(" ".join(subset) for subset in self.subsets)])

    def __len__(self) -> int:
        """Number of tables to add."""
        return len(self.subsets)


def plan(
    levels: Levels | None = None,
    rank: int | None = None,
    budget: int | None = None,
    order: int | None = None,
    *,
    given: Subsets | None = None,
    slack: float | None = None,
    domain: Domain | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> Plan:
    """Find few tables from which a rank is locally identifiable: which questions to ask together.

    Parameters
    ----------
    levels : sequence of int, Domain or Marginals
        The variables; the tables of Marginals are given.
    rank : int
        Number of classes.
    budget : int, optional
        Tables at the most; all of them are used then, placed as well as the search can. By
        default as few as it finds.
    order : int, optional
        Variables of each table: questions on a form; 3 by default.
    given : sequence of tuples, optional
        Tables that are there already, such as all pairs: the plan adds to these.
    slack : float, optional
        Share of equations to spare, over the number of parameters; 0 for the fewest tables. By
        default a half, or less where that cannot be had. The fewer are to spare, the
        more local optima there are: of random models of 10 variables, 3 levels and 5 classes, ten
        starts found 3 of 8 from 6 tables, and 10 of 10 from 7.
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
    if rank is None:
        raise ValueError("Say the rank that the tables are to determine: rank=5.")
    start = layout(levels, None, given or None, domain)
    variables = start.domain
    order = min(3, len(variables)) if order is None else order
    check_order(order, len(variables))
    stated = bool(given) or (given is None and isinstance(levels, Marginals))
    there = tuple(start.tables()) if stated else ()
    wish = Wish(variables, order, whole_rank(rank), as_slack(slack), there)
    check_reach(wish)
    rng = np.random.default_rng(random_state)
    number = None if budget is None else whole_number("budget", budget)
    for share in (wish.slack, *(LESS if slack is None else ())):
        wish = replace(wish, slack=share)
        if number is None:
            found = smallest_set(wish, fewest(wish), rng)
        else:
            found = by_budget(wish, number, rng)
        if found:
            break
    least = fewest(replace(wish, slack=0.0))
    if not found:
        raise ValueError(not_found(wish, number, least))
    best = best_placed(wish, found)
    planned, before = wish.named(sorted(best)), wish.named(there)
    return Plan(planned, before, wish.rank, least, wish.local(best))


def not_found(wish: Wish, budget: int | None, least: int) -> str:
    """What was sought in vain, and what to do."""
    sought = f"that make rank {wish.rank} locally identifiable with {wish.slack:.0%} of equations"
    if budget is None:
        return (
            f"There are no tables of order {wish.order} {sought} to spare: raise the order, or "
            "lower slack."
        )
    return (
        f"No {plural(budget, 'table')} of order {wish.order} were found {sought} to spare (no "
        f"fewer than {least} can): raise the budget or the order, or lower slack."
    )


def as_slack(slack: float | None) -> float:
    """The share of equations to spare, checked."""
    if slack is None:
        return SLACK
    if not slack >= 0:
        raise ValueError(f"slack must be 0 or a share above, such as 0.5, got {slack!r}.")
    return float(slack)


def check_reach(wish: Wish) -> None:
    """All tables of the order must do, or no choice of them can."""
    if any(len(subset) > wish.order for subset in wish.given):
        return  # larger tables than can be added may do more: only the search can tell
    everything = layout(order=wish.order, domain=wish.domain)
    count = (everything.equations + 1) // everything.rows
    possible = count >= wish.rank
    if possible and everything.columns(wish.rank) <= EXACT:
        exact = generic_ranks(everything, wish.rank)
        possible = exact is None or exact.free == 0
    if not possible:
        raise ValueError(
            f"Rank {wish.rank} is out of reach: even {everything.words} leave its classes open. "
            f"Raise the order, or lower the rank (counting allows {count} at the most)."
        )
