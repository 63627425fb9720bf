"""Table layouts: the variables, and the subsets of them of which there are tables."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb, prod
from typing import Any

import numpy as np

from rejoint.check import check_positive_int
from rejoint.domain.domain import Domain
from rejoint.identifiability.gram_sums import Family, symmetric
from rejoint.marginals.marginals import Marginals
from rejoint.marginals.subsets import Subset, check_order
from rejoint.text import cite, plural, show

Levels = Sequence[int] | Domain | Marginals
Subsets = Sequence[Sequence[Any] | str]
Groups = tuple[tuple[int, ...], ...]

#: Smaller tables within the tables up to which they are listed one by one.
MOST_LISTED_PARTS = 2_000_000

#: Tables of an order up to which they are listed one by one for sums over them.
MOST_LISTED_TABLES = 500


@dataclass(frozen=True)
class TableLayout:
    """Variables and tables, without the numbers in the tables.

    Parameters
    ----------
    domain : Domain
        The variables.
    order : int or None
        If given, there is a table of every subset of this many variables.
    subsets : tuple of tuples of int
        If ``order`` is None, the subsets that have a table, none inside another.

    Examples
    --------
    >>> read_layout([3] * 10, order=3)
    TableLayout(10 variables; all 120 tables of order 3)
    """

    domain: Domain
    order: int | None
    subsets: tuple[Subset, ...] = ()

    @classmethod
    def from_subsets(cls, domain: Domain, subsets: Collection[Subset]) -> "TableLayout":
        """Layout of increasing positions; subsets inside others are left out."""
        if not subsets:
            raise ValueError("subsets is empty: name at least one table, for example [(0, 1, 2)].")
        kept = {*subsets}
        if len({len(s) for s in kept}) > 1:
            kept = {*_outermost(kept)}
        order = len(next(iter(kept)))
        if len(kept) == comb(len(domain), order) and all(len(s) == order for s in kept):
            return cls(domain, order)
        return cls(domain, None, tuple(sorted(kept)))

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Number of levels of each variable."""
        return self.domain.shape

    @cached_property
    def free(self) -> tuple[int, ...]:
        """Free probabilities of each variable: its levels minus one."""
        return tuple(size - 1 for size in self.levels)

    @cached_property
    def largest_first(self) -> tuple[int, ...]:
        """Positions of the variables, in the order of decreasing numbers of levels."""
        return tuple(sorted(range(len(self.levels)), key=lambda n: -self.levels[n]))

    @cached_property
    def class_size(self) -> int:
        """Parameters of one class: a weight, and the free probabilities of all variables."""
        return self.side(range(len(self.free)))

    def columns(self, rank: int) -> int:
        """Columns of the Jacobian: one more than parameters, as the weights add up to one."""
        return rank * self.class_size

    def parameters(self, rank: int) -> int:
        """Free parameters of a model of this rank."""
        return self.columns(rank) - 1

    def side(self, group: Iterable[int]) -> int:
        """Free rows of the stacked factors of a group: ``1 + sum (I_n - 1)``."""
        return 1 + sum(self.free[n] for n in group)

    def sides(self, groups: Iterable[Iterable[int]]) -> tuple[int, ...]:
        """Free rows of the stacked factors of each group."""
        return tuple(map(self.side, groups))

    @cached_property
    def largest_order(self) -> int:
        """Number of variables of the largest table."""
        return self.order or max((len(s) for s in self.subsets), default=0)

    @property
    def has_joint(self) -> bool:
        """Whether one table holds all variables, so that the joint is given."""
        return self.largest_order == len(self.domain)

    @cached_property
    def n_tables(self) -> int:
        """Number of tables."""
        return len(self.subsets) if self.order is None else comb(len(self.domain), self.order)

    def iter_subsets(self) -> Iterator[Subset]:
        """Iterate over the subsets of all tables."""
        if self.order is None:
            return iter(self.subsets)
        return combinations(range(len(self.domain)), self.order)

    @cached_property
    def families(self) -> list[Family]:
        """The tables by order, for sums over them."""
        if self.order is not None and self.n_tables > MOST_LISTED_TABLES:
            return [Family.of_order(self.order)]
        return Family.list_of(self.iter_subsets())

    @cached_property
    def holders(self) -> dict[int, list[Subset]]:
        """The listed tables of each variable."""
        return {n: [s for s in self.subsets if n in s] for n in range(len(self.domain))}

    def list_parts(self, *sizes: int) -> set[Subset]:
        """All subsets that lie within a table, or those of some sizes."""
        if self._count_parts(*sizes) > MOST_LISTED_PARTS:
            raise ValueError(
                f"{plural(self.n_tables, 'table')} of up to {self.largest_order} variables hold "
                "too many smaller ones to be listed: ask about fewer, or about all of an order "
                "(order=)."
            )
        sizes = sizes or tuple(range(1, self.largest_order + 1))
        return {
            part
            for subset in self.iter_subsets()
            for size in sizes
            for part in combinations(subset, size)
        }

    def _count_parts(self, *sizes: int) -> int:
        """Number of subsets within the tables, counted for each table."""
        sizes = sizes or tuple(range(1, self.largest_order + 1))
        if self.order is not None:
            return self.n_tables * sum(comb(self.order, size) for size in sizes)
        lengths = Counter(map(len, self.subsets))
        return sum(n * comb(length, size) for length, n in lengths.items() for size in sizes)

    @property
    def is_countable(self) -> bool:
        """Whether the independent numbers in the tables can be counted."""
        return self.order is not None or self._count_parts() <= MOST_LISTED_PARTS

    @cached_property
    def equations(self) -> int:
        """Independent numbers in the tables, besides that they add up to one."""
        if self.order is not None:
            return int(sum(symmetric(self.free, self.order)[1:]))
        return sum(prod(self.free[n] for n in part) for part in self.list_parts())

    @cached_property
    def uncovered(self) -> tuple[str, ...]:
        """Variables in no table."""
        if self.order is not None:
            return ()
        covered = {n for subset in self.subsets for n in subset}
        return self.names(n for n in range(len(self.domain)) if n not in covered)

    @cached_property
    def apart(self) -> tuple[tuple[str, str], ...]:
        """Pairs of variables that no table holds together."""
        size = len(self.domain)
        if self.order is not None and self.order > 1:
            return ()
        together = np.zeros((size, size), dtype=bool)
        for subset in self.iter_subsets():
            together[np.ix_(subset, subset)] = True
        names = self.domain.names
        return tuple((names[i], names[j]) for i, j in np.argwhere(~together) if i < j)

    def names(self, group: Iterable[int]) -> tuple[str, ...]:
        """Names of the variables of a group."""
        return tuple(self.domain.names[n] for n in group)

    def group_names(self, groups: Iterable[Iterable[int]]) -> tuple[tuple[str, ...], ...]:
        """Names of the variables of each group."""
        return tuple(map(self.names, groups))

    def __repr__(self) -> str:
        return f"TableLayout({self.description})"

    @property
    def description(self) -> str:
        """Number of variables, and the tables."""
        return f"{plural(len(self.domain), 'variable')}; {self.tables_text}"

    @property
    def tables_text(self) -> str:
        """Number and orders of the tables."""
        if self.order is not None:
            count = f"all {plural(self.n_tables, 'table')}" if self.n_tables > 1 else "one table"
            return f"{count} of order {self.order}"
        orders = sorted({len(s) for s in self.subsets})
        return f"{plural(self.n_tables, 'table')} of order {' and '.join(map(str, orders))}"

    @property
    def apart_text(self) -> str:
        """Sentences on the variables that no table holds together; empty if there are none."""
        return describe_pairs_apart("table", self.apart)


def describe_pairs_apart(holder: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Name the first few pairs of variables that no table (or record) holds together.

    Examples
    --------
    >>> describe_pairs_apart("table", [("a", "b")])
    'No table contains both of: a and b. Their dependence comes from the model alone.'
    """
    if not pairs:
        return ""
    first = "; ".join(" and ".join(pair) for pair in pairs[:3])
    more = f", and {plural(len(pairs) - 3, 'more pair')}" if len(pairs) > 3 else ""
    return (
        f"No {holder} contains both of: {first}{more}. Their dependence comes from the model alone."
    )


def read_layout(
    levels: Levels | None = None,
    order: int | None = None,
    subsets: Subsets | None = None,
    domain: Domain | None = None,
) -> TableLayout:
    """Make a layout from the user's description of variables and tables.

    Parameters
    ----------
    levels : sequence of int, Domain or Marginals
        Marginals give the subsets, too.
    order : int, optional
        There are tables of all subsets of this many variables; 3 by default.
    subsets : sequence of tuples, optional
        There are tables of these subsets, by names or by positions.
    domain : Domain, optional
        In place of ``levels``.

    Examples
    --------
    >>> read_layout([2, 2, 3], subsets=[("x0", "x1"), (1, 2), (2,)]).subsets
    ((0, 1), (1, 2))
    """
    if (levels is None) == (domain is None):
        raise ValueError("Give the variables once: levels=[3, 3, 2], or domain=.")
    given = domain if domain is not None else levels
    if isinstance(given, Marginals):
        if subsets is None and order is None:
            return TableLayout.from_subsets(given.domain, informative_subsets(given))
        given = given.domain
    variables = given if isinstance(given, Domain) else Domain.of_shape(_check_levels(given))
    if not len(variables):
        raise ValueError("There are no variables: give the number of levels of each.")
    if subsets is not None and order is not None:
        raise ValueError("Give subsets= or order=, not both.")
    if isinstance(subsets, str):
        raise TypeError(f"subsets must be a list of tuples of names, got the text {cite(subsets)}.")
    if subsets is None:
        order = min(3, len(variables)) if order is None else order
        return TableLayout(variables, check_order(order, len(variables)))
    return TableLayout.from_subsets(variables, {_positions(variables, s) for s in subsets})


def informative_subsets(marginals: Marginals) -> set[Subset]:
    """Return subsets whose tables have records and a weight."""
    known = (np.asarray(marginals.totals) > 0) & (np.asarray(marginals.table_weight) > 0)
    return {s for s, is_known in zip(marginals.index_subsets, known, strict=True) if is_known}


def _outermost(subsets: Collection[Subset]) -> list[Subset]:
    """Subsets that are inside no other."""
    kept: list[Subset] = []
    holders: dict[int, set[Subset]] = {n: set() for subset in subsets for n in subset}
    for subset in sorted(subsets, key=len, reverse=True):
        if not set.intersection(*(holders[n] for n in subset)):
            kept.append(subset)
            for n in subset:
                holders[n].add(subset)
    return kept


def _positions(variables: Domain, subset: Sequence[Any] | str) -> Subset:
    """Increasing positions of one subset, given by names or by positions."""
    places, size = [], len(variables)
    for name in [subset] if isinstance(subset, str) else subset:
        if name in variables or not isinstance(name, int | np.integer):
            places.append(variables.index(name))
        elif 0 <= name < size:
            places.append(int(name))
        else:
            raise ValueError(
                f"The subset {cite(subset)} names variable {name}: positions are 0..{size - 1}, "
                f"names are {show(variables.names)}."
            )
    if not places or len(set(places)) < len(places):
        raise ValueError(f"The subset {cite(subset)} must name at least one variable, each once.")
    return tuple(sorted(places))


def _check_levels(levels: Any) -> list[int]:
    if isinstance(levels, str | bytes) or not isinstance(levels, Sequence | np.ndarray):
        has_domain = isinstance(getattr(levels, "domain", None), Domain)
        got = f"a {type(levels).__name__}. Give its .domain" if has_domain else cite(levels)
        raise TypeError(
            "levels must be a list of numbers of levels, such as [3, 3, 2], or a Domain; got "
            f"{got}."
        )
    return [check_positive_int(f"levels[{n}]", size) for n, size in enumerate(levels)]
