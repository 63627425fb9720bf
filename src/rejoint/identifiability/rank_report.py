"""Reports: bounds on the rank that tables determine, and the best one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from itertools import chain, combinations
from math import prod

from rejoint.check import check_positive_int
from rejoint.domain.domain import Domain
from rejoint.identifiability.bounds import (
    MOST_PROVED_CELLS,
    RankBound,
    below_expected,
    compound,
    full_column_rank,
    kruskal,
    powers_of_two,
    printed_bounds,
)
from rejoint.identifiability.gram_sums import symmetric
from rejoint.identifiability.groupings import (
    balanced_groups,
    find_groupings,
    partitions_into_three,
    solvable_rank,
)
from rejoint.identifiability.layout import Groups, Levels, Subsets, TableLayout, read_layout
from rejoint.text import cite, plural, show

GENERIC = "factors drawn from a continuous distribution"
EXPECTED = "Chiantini-Ottaviani-Vannieuwenhoven 2014"

#: Each lemma: its formula, and whether its third side may have structure.
LEMMAS: dict[str, tuple[Callable[[int, int, int], int], bool]] = {
    "Lemma 1 (Kruskal)": (kruskal, False),
    "Lemma 2": (full_column_rank, True),
    "Lemma 3": (powers_of_two, False),
    "Lemma 4 (compound)": (compound, True),
}

_BASIS = "Assumptions of a result: print(report[name])."


@dataclass(frozen=True)
class Report:
    """What is known about the rank that tables determine.

    Parameters
    ----------
    layout : TableLayout
        Variables and tables.
    bounds : tuple of RankBound
        Ranks up to which results say that the model is unique; printed ones may be unproved.
    limits : tuple of RankBound
        Ranks that no result can exceed.
    rank : int or None
        The rank asked about.

    Examples
    --------
    >>> import rejoint as rj
    >>> thirty = rj.identifiability.report([3] * 10, order=3, rank=30)
    >>> thirty.best.rank, thirty.counting, thirty.upper
    (20, 55, 19683)
    >>> print(thirty.verdict)
    Rank 30 is above 20, the largest rank proved (Chiantini-Ottaviani-Vannieuwenhoven 2014), and \
within 55, which counting leaves possible: neither proved nor excluded. \
identifiability.jacobian decides it locally.
    """

    layout: TableLayout
    bounds: tuple[RankBound, ...]
    limits: tuple[RankBound, ...]
    rank: int | None = None

    @property
    def best(self) -> RankBound:
        """The largest proved bound."""
        return max((b for b in self.bounds if b.proved), key=lambda b: b.rank)

    @property
    def counting(self) -> int:
        """Largest rank with no more parameters than the tables have independent numbers."""
        return self["Counting"].rank

    @property
    def upper(self) -> int:
        """Proposition 1: every joint of these variables has at most this rank."""
        return self["Proposition 1"].rank

    @property
    def results(self) -> tuple[RankBound, ...]:
        """All bounds and limits."""
        return (*self.bounds, *self.limits)

    def __getitem__(self, name: str) -> RankBound:
        """The result of this name."""
        for bound in self.results:
            if bound.name == name:
                return bound
        names = show([b.name for b in self.results], most=99)
        raise KeyError(f"There is no result {cite(name)} for these tables; there are {names}.")

    @property
    def verdict(self) -> str:
        """What the bounds mean for the rank asked about.

        Examples
        --------
        >>> import rejoint as rj
        >>> rj.identifiability.report([2] * 4, order=2, rank=3).verdict
        'Tables of two variables leave 3 directions of a rank 3 model open, or more: they never \
determine it, unless its factors have enough zeros. Add tables of three variables.'
        """
        rank, best, tables, counting = self.rank, self.best, self.layout, self.counting
        local = "identifiability.jacobian decides it locally."
        if tables.uncovered:
            it = "it" if len(tables.uncovered) == 1 else "them"
            return f"No table contains {show(tables.uncovered)}: nothing is known about {it}."
        if rank is None:
            text = f"Proved up to rank {best.rank} ({best.name}), "
            if best.rank >= counting:
                return f"{text}which is all that counting allows."
            return f"{text}excluded from rank {counting + 1} on; between them {local}"
        if rank <= best.rank:
            return (
                f"Rank {rank} is identifiable for almost all models: {best.name} proves it up to "
                f"rank {best.rank}."
            )
        joint = " The joint itself is known: one table holds all variables."
        joint = joint if tables.has_joint else ""
        if tables.largest_order <= 2 and not joint:
            return (
                f"Tables of two variables leave {plural(rank * (rank - 1) // 2, 'direction')} of a "
                f"rank {rank} model open, or more: they never determine it, unless its factors "
                "have enough zeros. Add tables of three variables."
            )
        if rank > counting:
            return (
                f"Rank {rank} is not identifiable: {plural(tables.parameters(rank), 'parameter')}, "
                f"but the tables hold only {plural(tables.equations, 'independent number')}, "
                f"enough for rank {counting}.{joint}"
            )
        return (
            f"Rank {rank} is above {best.rank}, the largest rank proved ({best.name}), and within "
            f"{counting}, which counting leaves possible: neither proved nor excluded. "
            f"{local}{joint}"
        )

    def __str__(self) -> str:
        width = max(len(b.name) for b in self.results) + 2
        digits = max(5, *(len(str(b.rank)) for b in self.results)) if self.upper < 10**12 else 12
        lines = [f"{self.layout.description}.", "", f"{'result':{width}}{'rank':>{digits}}"]
        for b in self.results:
            rank = str(b.rank) if b.rank < 10**12 else f"{b.value:.2g}"
            lines.append(f"{b.name:{width}}{rank:>{digits}}  {b.standing:20} {b.groups}".rstrip())
        apart = [self.layout.apart_text] if self.layout.apart else []
        return "\n".join([*lines, "", self.verdict, *apart, _BASIS])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{h}</th>" for h in ("result", "rank", "", "partition", "assumptions"))
        body = "".join(
            f"<tr><td>{escape(b.name)}</td><td>{b.rank:,}</td><td>{b.standing}</td>"
            f"<td>{escape(b.groups)}</td><td>{escape(b.assumptions)}</td></tr>"
            for b in self.results
        )
        return (
            f"<p>{escape(self.layout.description)}. <b>{escape(self.verdict)}</b></p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )


def report(
    levels: Levels | None = None,
    order: int | None = None,
    rank: int | None = None,
    subsets: Subsets | None = None,
    domain: Domain | None = None,
) -> Report:
    """Report up to which rank tables determine the model: the bounds, the best one, its basis.

    Parameters
    ----------
    levels : sequence of int, Domain or Marginals
        Number of levels of each variable; Marginals give the subsets, too.
    order : int, optional
        There are tables of all subsets of this many variables; 3 by default.
    rank : int, optional
        The rank that the verdict is about.
    subsets : sequence of tuples, optional
        There are tables of these subsets, by names or positions.
    domain : Domain, optional
        In place of ``levels``.

    Returns
    -------
    Report
        With ``bounds``, ``limits``, ``best``, ``verdict``; prints as a table.

    Notes
    -----
    Bounds hold for *generic* models: all but a set of probability zero. They say that the classes
    themselves are unique, hence the joint; if a table holds all variables, the joint is known at
    every rank.

    Examples
    --------
    >>> import rejoint as rj
    >>> print(rj.identifiability.report([3] * 6, order=3))
    6 variables; all 20 tables of order 3.
    <BLANKLINE>
    result                                     rank
    Theorem 1                                     4  printed, not proved
    Theorem 2                                     4  printed, not proved
    Theorem 2, closed form                        3  printed, not proved
    Table II/III                                  4  printed, not proved
    Lemma 1 (Kruskal)                             6  proved               {x0 x3} {x1 x4} {x2 x5}
    Lemma 2                                       7  proved               {x0} {x1 x2} {x3 x4 x5}
    Lemma 3                                       4  proved               {x0 x3} {x1 x4} {x2 x5}
    Lemma 4 (compound)                            7  proved               {x0} {x1 x2} {x3 x4 x5}
    Chiantini-Ottaviani-Vannieuwenhoven 2014      9  proved               {x0 x3} {x1 x4} {x2 x5}
    Counting                                     17  limit
    Proposition 1                               243  limit
    <BLANKLINE>
    Proved up to rank 9 (Chiantini-Ottaviani-Vannieuwenhoven 2014), excluded from rank 18 on; \
between them identifiability.jacobian decides it locally.
    Assumptions of a result: print(report[name]).
    """
    tables = read_layout(levels, order, subsets, domain)
    bounds = [*printed_bounds(tables.levels, tables.order), *_proved_bounds(tables)]
    if not any(b.proved and b.rank for b in bounds):
        one = 0 if tables.uncovered else 1
        bounds.append(RankBound("One class", one, "proved", "every variable is in a table"))
    rank = None if rank is None else check_positive_int("rank", rank)
    return Report(tables, tuple(bounds), _limits(tables), rank)


def _proved_bounds(tables: TableLayout) -> Iterator[RankBound]:
    """The largest rank that each result proves, over the groupings that are tried."""
    best: dict[str, tuple[int, Groups]] = {}
    reach: dict[tuple[int, ...], int] = {}
    if tables.largest_order < 3:
        return
    if tables.order is None:
        groupings: Iterator[Groups] = iter(find_groupings(tables))
    else:
        groupings = chain(partitions_into_three(tables), balanced_groups(tables))
    for groups in groupings:
        for name, rank in _ranks(tables, groups):
            if rank <= best.get(name, (0,))[0] or not all(groups):
                continue
            start = tuple(sorted(chain(*groups)))
            if start not in reach:
                reach[start] = solvable_rank(tables, start)
            if min(rank, reach[start]) > best.get(name, (0,))[0]:
                best[name] = min(rank, reach[start]), groups
    for name in filter(best.__contains__, [*LEMMAS, EXPECTED]):
        rank, groups = best[name]
        sides = " x ".join(map(str, tables.sides(groups)))
        text = f"{GENERIC}; groups between which all tables are there, as a {sides} tensor"
        if name == EXPECTED:
            text += f"; proved by computer, case by case, up to {MOST_PROVED_CELLS:,} cells"
        text += "; other variables are linked to these"
        yield RankBound(name, rank, "proved", text, tables.group_names(groups), float(rank))


def _ranks(tables: TableLayout, groups: Groups) -> Iterator[tuple[str, int]]:
    """The rank of each result on groups; one of the sides may be several variables at a time."""
    sides = tables.sides(groups)
    turns = [sides] if len(sides) == 3 else []
    structured = list(turns)
    if tables.order is None:
        for third in combinations(range(len(sides)), len(sides) - 2):
            first, second = (side for k, side in enumerate(sides) if k not in third)
            structured.append((first, second, prod(sides[k] for k in third)))
    elif turns:
        free = [tables.free[n] for n in groups[2]]
        structured.append((*sides[:2], sum(symmetric(free, tables.order - 2))))
    for name, (rule, may_have_structure) in LEMMAS.items():
        for turn in structured if may_have_structure else turns:
            yield name, rule(*turn)
    yield EXPECTED, below_expected(sides)


def _limits(tables: TableLayout) -> tuple[RankBound, RankBound]:
    """The counting bound and Proposition 1."""
    count = (tables.equations + 1) / tables.class_size
    needs = (
        f"{GENERIC}; F (sum (I_n - 1) + 1) - 1 parameters need as many of the "
        f"{plural(tables.equations, 'independent number')} in the tables; with unequal levels it "
        "may be one too many"
    )
    every = prod(tables.levels) // max(tables.levels)
    joints = "none: every joint is a naive Bayes model of at most this rank"
    size = float(every) if every < 1e300 else float("inf")
    return (
        RankBound("Counting", int(count), "limit", needs, (), count),
        RankBound("Proposition 1", every, "limit", joints, (), size),
    )
