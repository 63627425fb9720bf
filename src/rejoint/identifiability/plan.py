"""Plans: a few tables that suffice for a rank, found by exchanging tables in random sets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import ceil, comb, prod

import numpy as np

from rejoint.arrays import FloatArray, parts_of
from rejoint.check import check_positive_int
from rejoint.domain.domain import Domain
from rejoint.identifiability.jacobian import LocalIdentifiability, generic_ranks, jacobian
from rejoint.identifiability.layout import Levels, Subsets, TableLayout, read_layout
from rejoint.marginals.marginals import Marginals
from rejoint.marginals.subsets import Subset, check_order, random_cover
from rejoint.text import cite, plural

#: Tables that are exchanged in one set of a size, and sets of it whose ranks are computed.
MOST_SWAPS, MOST_TESTS = 400, 300

#: The latter times the number of parameters to the power of 2.5.
MOST_WORK = 3e8

#: Sets of tables of one size that are tried; the best that suffices is taken.
MOST_CANDIDATES = 6

#: Tables of an order up to which all of them are tested before the search.
MOST_LISTED_TABLES = 20_000

#: Tables of a plan up to which it is tested which of them can be dropped.
MOST_PRUNED_TABLES = 60

#: Shares of equations to spare: the default, and the next ones if it is out of reach.
DEFAULT_SLACKS = (0.5, 0.25, 0.1, 0.0)

#: Below this share of equations to spare a plan says so.
TIGHT_SPARE = 0.2


@dataclass(frozen=True)
class Plan:
    """A few tables that make a rank locally identifiable.

    Parameters
    ----------
    subsets : tuple of tuples of names
        The tables to count, or the questions to ask together: each is a form for some of the
        respondents.
    given : tuple of tuples of names
        The tables that are there already.
    rank : int
        Number of classes.
    least : int
        Fewest tables that can suffice, by counting.
    local : LocalIdentifiability
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
    local: LocalIdentifiability

    @property
    def spare(self) -> float:
        """Equations beyond the number of parameters, as a share of these."""
        return self.local.layout.equations / self.local.size - 1.0

    def ask(
        self, respondents: int, random_state: int | np.random.Generator | None = 0
    ) -> tuple[tuple[str, ...], ...]:
        """Assign a form, the questions to ask, to each respondent; all forms equally often.

        Parameters
        ----------
        respondents : int
            Number of respondents.
        random_state : int or Generator, optional
            Seed or source of the random order of the forms.

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
        count = check_positive_int("respondents", respondents)
        rng = np.random.default_rng(random_state)
        turns = rng.permutation(np.arange(count) % len(self.subsets))
        return tuple(self.subsets[k] for k in turns)

    @property
    def verdict(self) -> str:
        """What the plan achieves."""
        tight = ""
        if self.subsets and self.spare < TIGHT_SPARE:
            tight = (
                f" Only {self.spare:.0%} of equations to spare: fits may end in local optima; more "
                "tables help."
            )
        more = f" besides the {plural(len(self.given), 'table')} given" if self.given else ""
        return (
            f"{plural(len(self.subsets), 'table')}{more}: rank {self.rank} is locally "
            f"identifiable (smallest singular value {self.local.smallest:.1e} of the largest); "
            f"no fewer than {self.least} can.{tight}"
        )

    def __str__(self) -> str:
        return "\n".join([self.verdict, *(" ".join(subset) for subset in self.subsets)])

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
    """Find a few tables that make a rank locally identifiable: questions to ask together.

    Parameters
    ----------
    levels : sequence of int, Domain or Marginals
        The variables; the tables of Marginals are given.
    rank : int
        Number of classes.
    budget : int, optional
        Number of tables; the search places all of them. By default it finds as few as it can.
    order : int, optional
        Variables of each table: questions on a form; 3 by default.
    given : sequence of tuples, optional
        Tables that are there already, such as all pairs; the plan adds to them.
    slack : float, optional
        Share of equations to spare, relative to the number of parameters; 0 for the fewest
        tables. By default a half, or less if that is out of reach. With fewer to spare there are
        more local optima: of random models of 10 variables, 3 levels and 5 classes, ten
        starts found 3 of 8 from 6 tables, and 10 of 10 from 7.
    domain : Domain, optional
        In place of ``levels``.
    random_state : int or Generator, optional
        Seed or source of the random search; fixed by default.

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
    >>> print(rj.identifiability.plan([3] * 6, rank=3, given=pairs, slack=0).verdict)
    1 table besides the 15 tables given: rank 3 is locally identifiable (smallest singular \
value ... of the largest); no fewer than 1 can.
    """
    if rank is None:
        raise ValueError("Give the rank that the tables should determine: rank=5.")
    start = read_layout(levels, None, given or None, domain)
    variables = start.domain
    order = check_order(min(3, len(variables)) if order is None else order, len(variables))
    has_given = bool(given) or (given is None and isinstance(levels, Marginals))
    there = tuple(start.iter_subsets()) if has_given else ()
    if slack is not None and not slack >= 0:
        raise ValueError(f"slack must be 0 or a share above, such as 0.5, got {cite(slack)}.")
    goal = PlanGoal(variables, order, check_positive_int("rank", rank), 0.0, there)
    _check_reach(goal)
    rng = np.random.default_rng(random_state)
    size = None if budget is None else check_positive_int("budget", budget)
    least = goal.fewest_tables  # without equations to spare
    for share in DEFAULT_SLACKS if slack is None else (float(slack),):
        goal = replace(goal, slack=share)
        if sets := _search(goal, size, rng):
            break
    else:
        sought = f"that make rank {goal.rank} locally identifiable with {goal.slack:.0%}"
        if size is None:
            raise ValueError(
                f"There are no tables of order {order} {sought} of equations to spare: raise the "
                "order, or lower slack."
            )
        raise ValueError(
            f"No {plural(size, 'table')} of order {order} were found {sought} of equations to "
            f"spare (no fewer than {least} can): raise the budget or the order, or lower slack."
        )
    # Of the smallest sets, the one of the largest smallest singular value at two random points.
    fewest = min(map(len, sets))
    smallest = [subsets for subsets in sets if len(subsets) == fewest]
    best = smallest[0] if len(smallest) == 1 else max(smallest, key=goal.strength)
    planned = goal.names(sorted(best))
    return Plan(planned, goal.names(there), goal.rank, least, goal.test_locally(best))


@dataclass(frozen=True)
class PlanGoal:
    """What a set of planned tables must achieve together with the given ones."""

    domain: Domain
    order: int
    rank: int
    slack: float
    given: tuple[Subset, ...]

    @cached_property
    def candidates(self) -> list[Subset]:
        """All tables of the order; none if they are too many to be listed."""
        size = len(self.domain)
        few = comb(size, self.order) <= MOST_LISTED_TABLES
        return list(combinations(range(size), self.order)) if few else []

    @cached_property
    def given_parts(self) -> set[Subset]:
        """Subsets of variables within the given tables."""
        return self.layout([]).list_parts() if self.given else set()

    def layout(self, subsets: Sequence[Subset]) -> TableLayout:
        """Layout of the given and the planned tables."""
        return TableLayout.from_subsets(self.domain, [*self.given, *subsets])

    def count(self, parts: Iterable[Subset]) -> FloatArray:
        """Variables in these parts of tables, independent numbers, and those beyond pairs."""
        shape, counts = self.domain.shape, np.zeros(3)
        for part in parts:
            cells = prod(shape[n] - 1 for n in part)
            counts += len(part) == 1, cells, cells if len(part) > 2 else 0
        return counts

    @cached_property
    def wanted(self) -> FloatArray:
        """What ``count`` must be at least: pairs alone leave F (F - 1)/2 directions open."""
        parameters = TableLayout(self.domain, 1).parameters(self.rank)
        spare = 1 + self.slack
        directions = self.rank * (self.rank - 1) // 2
        return np.array([len(self.domain), spare * parameters, spare * directions])

    def shortage(self, subsets: Sequence[Subset]) -> float:
        """Variables and equations that are missing; 0 if there are enough."""
        parts = self.given_parts.union(*map(parts_of, subsets))
        return float(np.maximum(self.wanted - self.count(parts), 0.0).sum())

    @cached_property
    def fewest_tables(self) -> int:
        """Fewest tables that can suffice: by variables to cover and by equations."""
        free = sorted((size - 1 for size in self.domain.shape), reverse=True)
        own = [(len(part), prod(part)) for part in parts_of(free[: self.order])]
        gain = sum(cells for size, cells in own if size > 2)
        pair_gain = sum(cells for size, cells in own if size == 2)
        covered, numbers, beyond = self.count(self.given_parts)
        all_pairs = sum(free) + sum(a * b for a, b in combinations(free, 2)) + beyond
        least: list[float] = [
            (self.wanted[0] - covered) / self.order,
            (self.wanted[1] - max(numbers, sum(free))) / max(pair_gain + gain, 1),
            (self.wanted[1] - all_pairs) / max(gain, 1),  # where all pairs are in tables
            (self.wanted[2] - beyond) / max(gain, 1),
        ]
        return max(0 if self.given else 1, *(ceil(number) for number in least))

    def cost(self, subsets: Sequence[Subset]) -> tuple[float, int]:
        """Equations that are missing; and then free directions. Zeros if the goal is met."""
        short = self.shortage(subsets)
        if short > 0 or not (subsets or self.given):
            return max(short, 1.0), 0
        exact = generic_ranks(self.layout(subsets), self.rank)
        if exact is not None:
            return 0.0, exact.free
        return 0.0, 0 if self.test_locally(subsets).parameters else 1

    def is_met(self, subsets: Sequence[Subset]) -> bool:
        """Whether there are enough equations, and the rank is locally identifiable."""
        return self.cost(subsets) == (0.0, 0)

    def test_locally(self, subsets: Sequence[Subset], seed: int = 0) -> LocalIdentifiability:
        """Run the Jacobian test on the given and the planned tables."""
        names = self.names([*self.given, *subsets])
        return jacobian(subsets=names, domain=self.domain, rank=self.rank, random_state=seed)

    def strength(self, subsets: Sequence[Subset]) -> float:
        """Product of the smallest singular values at two random points."""
        return float(np.prod([self.test_locally(subsets, seed).smallest for seed in (1, 2)]))

    def names(self, subsets: Sequence[Subset]) -> tuple[tuple[str, ...], ...]:
        """Names of the variables of each subset."""
        return tuple(tuple(self.domain.names[n] for n in subset) for subset in subsets)


def _search(goal: PlanGoal, budget: int | None, rng: np.random.Generator) -> list[list[Subset]]:
    """Sets of tables that meet the goal: of the budget's size, or as small as they are found."""
    if goal.given and goal.is_met([]):
        return [[]]
    total = comb(len(goal.domain), goal.order)
    if budget is not None:
        return _find_sets(goal, min(budget, total), rng)
    if goal.candidates and goal.shortage(goal.candidates):
        return []
    size = max(goal.fewest_tables, 1)
    while size < total:
        if sets := _find_sets(goal, size, rng):
            return [_drop_spare_tables(goal, subsets) for subsets in sets]
        size += max(1, size // 12)
    every = list(combinations(range(len(goal.domain)), goal.order))
    return [_drop_spare_tables(goal, every)] if goal.is_met(every) else []


def _find_sets(goal: PlanGoal, size: int, rng: np.random.Generator) -> list[list[Subset]]:
    """Sets of tables of one size that meet the goal, by swaps from random covers."""
    variables = len(goal.domain)
    columns = TableLayout(goal.domain, 1).columns(goal.rank)
    tests = int(np.clip(MOST_WORK / columns**2.5, 2, MOST_TESTS))
    sets: list[list[Subset]] = []

    def draw() -> Subset:
        return tuple(sorted(rng.permutation(variables)[: goal.order].tolist()))

    for _ in range(MOST_CANDIDATES if tests >= MOST_CANDIDATES else 2):
        if not goal.given and size * goal.order >= variables:
            subsets = list(random_cover(variables, goal.order, size, rng))
        else:
            allowed = comb(variables, goal.order) - sum(len(s) == goal.order for s in {*goal.given})
            drawn: set[Subset] = set()
            while len(drawn) < min(size, allowed):
                drawn = (drawn | {draw()}) - {*goal.given}
            subsets = sorted(drawn)
        cost, swaps = goal.cost(subsets), 0
        while cost > (0.0, 0) and swaps < MOST_SWAPS and tests > 0:
            changed = list(subsets)
            changed[int(rng.integers(len(subsets)))] = draw()
            if len({*changed}) == len(subsets) and not {*changed} & {*goal.given}:
                reached = goal.cost(changed)
                tests -= not reached[0]
                if reached <= cost:
                    subsets, cost = changed, reached
            swaps += 1
        if cost == (0.0, 0):
            sets.append(sorted(subsets))
    return sets


def _drop_spare_tables(goal: PlanGoal, subsets: list[Subset]) -> list[Subset]:
    """Drop tables without which the goal is still met; large sets stay as they are."""
    for subset in list(subsets) if len(subsets) <= MOST_PRUNED_TABLES else ():
        fewer = [s for s in subsets if s != subset]
        if (fewer or goal.given) and goal.is_met(fewer):
            subsets = fewer
    return subsets


def _check_reach(goal: PlanGoal) -> None:
    """Refuse a rank that all tables of the order do not determine."""
    if any(len(subset) > goal.order for subset in goal.given):
        return  # larger tables than can be added may do more: only the search can tell
    everything = TableLayout(goal.domain, goal.order)
    count = (everything.equations + 1) // everything.class_size
    exact = generic_ranks(everything, goal.rank) if count >= goal.rank else None
    if count < goal.rank or (exact is not None and exact.free > 0):
        raise ValueError(
            f"Rank {goal.rank} is out of reach: even {everything.tables_text} leave its classes "
            f"open. Raise the order, or lower the rank (counting allows at most {count})."
        )
