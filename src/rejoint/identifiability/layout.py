"""Layout: which variables there are, and of which subsets of them there are tables."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb, prod
from typing import Any

import numpy as np

from rejoint.domain.domain import Domain
from rejoint.domain.labels import plural, show
from rejoint.marginals.marginals import Marginals
from rejoint.marginals.subsets import Subset, check_order
from rejoint.messages import Argument, Message


def whole_number(name: str, value: Any) -> int:
    """A whole number of at least one, or an error in words.

    Examples
    --------
    >>> whole_number("budget", 2.5)
    Traceback (most recent call last):
    ...
    ValueError: budget must be a whole number of at least 1, got 2.5.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")
    return int(value)


def whole_rank(rank: Any) -> int:
    """The number of classes."""
    return whole_number("rank", rank)


Levels = Sequence[int] | Domain | Marginals
Subsets = Sequence[Sequence[Any] | str]

#: Parts of tables beyond which they are no longer listed one by one.
LISTED = 2_000_000

#: Tables up to which cells are counted by inclusion and exclusion, however large the tables.
FEW = 14


@dataclass(frozen=True)
class Layout:
    """Variables and tables, without any numbers in them.

    Parameters
    ----------
    domain : Domain
        The variables.
    order : int or None
        There is a table of every subset of so many variables; or None, and
    subsets : tuple of tuples of int
        there are these tables, none inside another.

    Examples
    --------
    >>> layout([3] * 10, order=3)
    Layout(10 variables; all 120 tables of order 3)
    """

    domain: Domain
    order: int | None
    subsets: tuple[Subset, ...] = ()

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Number of levels of each variable."""
        return self.domain.shape

    @cached_property
    def free(self) -> tuple[int, ...]:
        """Free probabilities of each variable: its levels less one."""
        return tuple(size - 1 for size in self.levels)

    @cached_property
    def rows(self) -> int:
        """Parameters of one class: a weight, and the free probabilities of all variables."""
        return 1 + sum(self.free)

    @cached_property
    def largest(self) -> int:
        """Variables of the largest table."""
        return self.order or max((len(s) for s in self.subsets), default=0)

    @property
    def whole(self) -> bool:
        """Whether one table holds all variables, so that the joint is given."""
        return self.largest == len(self.domain)

    @cached_property
    def number(self) -> int:
        """Number of tables."""
        return len(self.subsets) if self.order is None else comb(len(self.domain), self.order)

    def tables(self) -> Iterator[Subset]:
        """The subsets one by one."""
        if self.order is None:
            return iter(self.subsets)
        return combinations(range(len(self.domain)), self.order)

    def parts(self, *sizes: int) -> set[Subset]:
        """All subsets of the subsets, of some sizes: what the tables know of so many variables."""
        if self.parts_of(sizes) > LISTED:
            raise ValueError(
                Message(
                    "{number} of up to {largest} variables hold too many smaller ones to be "
                    "listed: ask about fewer, or about all of an order ({order}).",
                    number=plural(self.number, "table"),
                    largest=self.largest,
                    order=Argument("order"),
                )
            )
        return {
            part
            for subset in self.tables()
            for size in sizes
            for part in combinations(subset, size)
        }

    def parts_of(self, sizes: Iterable[int]) -> int:
        """How many subsets of so many variables the tables have, each counted by itself."""
        if self.order is not None:
            return self.number * sum(comb(self.order, size) for size in sizes)
        lengths = Counter(map(len, self.subsets))
        return sum(n * comb(length, size) for length, n in lengths.items() for size in sizes)

    @property
    def countable(self) -> bool:
        """Whether the numbers that the tables hold can be counted."""
        if self.order is not None or self.number <= FEW:
            return True
        return self.parts_of(range(1, self.largest + 1)) <= LISTED

    @cached_property
    def equations(self) -> int:
        """Independent numbers that the tables hold, besides that they add up to one."""
        if self.order is not None:
            return sum(elementary(self.free, self.order)[1:])
        if self.number <= FEW:
            return cells_of_union([set(subset) for subset in self.subsets], self.levels) - 1
        return self.moments_of(*range(1, self.largest + 1))

    def moments_of(self, *sizes: int) -> int:
        """Independent numbers that are on so many variables."""
        if self.order is not None:
            sums = elementary(self.free, self.order)
            return sum(sums[size] for size in sizes if size <= self.order)
        return sum(prod(self.free[n] for n in part) for part in self.parts(*sizes))

    @cached_property
    def uncovered(self) -> tuple[str, ...]:
        """Variables in no table."""
        if self.order is not None:
            return ()
        there = {n for subset in self.subsets for n in subset}
        return tuple(name for n, name in enumerate(self.domain.names) if n not in there)

    @cached_property
    def apart(self) -> tuple[tuple[str, str], ...]:
        """Pairs of variables that are in no table together."""
        size = len(self.domain)
        if self.order is not None and self.order > 1:
            return ()
        together = np.zeros((size, size), dtype=bool)
        for subset in self.tables():
            together[np.ix_(subset, subset)] = True
        names = self.domain.names
        return tuple((names[i], names[j]) for i, j in np.argwhere(~together) if i < j)

    def names(self, group: Sequence[int]) -> tuple[str, ...]:
        """Names of some variables."""
        return tuple(self.domain.names[n] for n in group)

    def columns(self, rank: int) -> int:
        """Parameters of a model of this rank, one too many: the weights add up to one."""
        return rank * self.rows

    def __repr__(self) -> str:
        return f"Layout({plural(len(self.domain), 'variable')}; {self.words})"

    @property
    def words(self) -> str:
        """The tables for people."""
        if self.order is not None:
            many = f"all {plural(self.number, 'table')}" if self.number > 1 else "one table"
            return f"{many} of order {self.order}"
        orders = sorted({len(s) for s in self.subsets})
        listed = " and ".join(map(str, orders))
        return f"{plural(self.number, 'table')} of order {listed}"


def layout(
    levels: Levels | None = None,
    order: int | None = None,
    subsets: Subsets | None = None,
    domain: Domain | None = None,
    default: int | None = 3,
) -> Layout:
    """Read what a caller says of variables and tables; errors are in words.

    Parameters
    ----------
    levels : sequence of int, Domain or Marginals
        Marginals say the subsets, too.
    order : int, optional
        All subsets of so many variables.
    subsets : sequence of tuples, optional
        These, by names or by positions.
    domain : Domain, optional
        In place of ``levels``.
    default : int or None
        The order where neither is said.

    Examples
    --------
    >>> layout([2, 2, 3], subsets=[("x0", "x1"), (1, 2), (2,)]).subsets
    ((0, 1), (1, 2))
    """
    if (levels is None) == (domain is None):
        raise ValueError("Say the variables once: levels=[3, 3, 2], or domain=.")
    said = domain if domain is not None else levels
    if isinstance(said, Marginals):
        if subsets is None and order is None:
            return of_positions(said.domain, filled(said))
        said = said.domain
    variables = said if isinstance(said, Domain) else Domain.of_shape(whole_levels(said))
    if not len(variables):
        raise ValueError("There are no variables: give the number of levels of each.")
    if subsets is not None and order is not None:
        ways = {"subsets": Argument("subsets", [...]), "order": Argument("order")}
        raise ValueError(Message("Give {subsets} or {order}, not both.", **ways))
    if subsets is None:
        if order is None and default is None:
            raise ValueError("Say which tables there are: subsets=[...] or order=3.")
        order = min(default or 3, len(variables)) if order is None else order
        return Layout(variables, check_order(order, len(variables)))
    return listed(variables, subsets)


def listed(variables: Domain, subsets: Subsets) -> Layout:
    """The layout of given subsets, by names or by positions."""
    if isinstance(subsets, str):
        raise TypeError(f"subsets must be a list of tuples of names, got the text {subsets!r}.")
    return of_positions(variables, {position_set(variables, subset) for subset in subsets})


def filled(marginals: Marginals) -> set[Subset]:
    """Subsets whose tables say something: they rest on records, and have weight."""
    says = (np.asarray(marginals.totals) > 0) & (np.asarray(marginals.table_weight) > 0)
    return {s for s, there in zip(marginals.index_subsets, says, strict=True) if there}


def of_positions(variables: Domain, found: Collection[Subset]) -> Layout:
    """The layout of increasing positions: subsets inside others say nothing of their own."""
    if not found:
        raise ValueError("subsets is empty: name at least one table, for example [(0, 1, 2)].")
    kept = {*found}
    if len({len(s) for s in kept}) > 1:
        kept = {*outermost(kept)}
    size = min(map(len, kept))
    if len(kept) == comb(len(variables), size) and all(len(s) == size for s in kept):
        return Layout(variables, size)
    return Layout(variables, None, tuple(sorted(kept)))


def outermost(subsets: Collection[Subset]) -> list[Subset]:
    """Those that are inside no other."""
    kept: list[Subset] = []
    parts: set[Subset] = set()
    wide: list[set[int]] = []  # their parts are too many to be listed
    for subset in sorted(subsets, key=len, reverse=True):
        if subset in parts or any(outer.issuperset(subset) for outer in wide):
            continue
        kept.append(subset)
        if len(subset) > 8:
            wide.append({*subset})
        else:
            parts.update(c for k in range(1, len(subset)) for c in combinations(subset, k))
    return kept


def position_set(variables: Domain, subset: Sequence[Any] | str) -> Subset:
    """Increasing positions of one subset, given by names or by positions."""
    places = []
    for name in [subset] if isinstance(subset, str) else subset:
        if isinstance(name, int | np.integer) and name not in variables:
            if not 0 <= name < len(variables):
                raise ValueError(
                    f"The subset {subset!r} names variable {name}, but there are {len(variables)}: "
                    f"positions are 0..{len(variables) - 1}, names are {show(variables.names)}."
                )
            places.append(int(name))
        else:
            places.append(variables.index(name))
    if not places or len(set(places)) < len(places):
        raise ValueError(f"The subset {subset!r} must name at least one variable, each once.")
    return tuple(sorted(places))


def whole_levels(levels: Any) -> list[int]:
    """Numbers of levels, checked."""
    if isinstance(levels, str | bytes) or not isinstance(levels, Sequence | np.ndarray):
        has = " Give its .domain." if isinstance(getattr(levels, "domain", None), Domain) else ""
        got = f"a {type(levels).__name__}.{has}" if has else f"{levels!r}."
        raise TypeError(
            f"levels must be a list of numbers of levels, such as [3, 3, 2], or a Domain; got {got}"
        )
    for n, size in enumerate(levels):
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise ValueError(
                f"levels[{n}] is {size!r}: the number of levels of a variable is a whole number "
                "of at least 1."
            )
    return [int(size) for size in levels]


def cells_of_union(subsets: Sequence[set[int]], levels: Sequence[int]) -> int:
    """Cells of some tables without those that follow from others, by inclusion and exclusion.

    Examples
    --------
    >>> cells_of_union([{0, 1}, {1, 2}], [2, 2, 3])  # 4 + 6, less the 2 of what they share
    8
    """
    total = 0
    for count in range(1, len(subsets) + 1):
        for some in combinations(subsets, count):
            shared = set.intersection(*some)
            total -= (-1) ** count * prod(levels[n] for n in shared)
    return total


def elementary(values: Sequence[int], order: int) -> list[int]:
    """Elementary symmetric polynomials ``e_0 .. e_order``, exactly.

    Examples
    --------
    >>> elementary([2, 2, 2], 3)
    [1, 6, 12, 8]
    """
    sums = [1] + [0] * order
    for value in values:
        for r in range(order, 0, -1):
            sums[r] += value * sums[r - 1]
    return sums
