"""Reports: every known bound on the rank that tables determine, and the best one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from math import isqrt, prod
from typing import Literal

from rejoint.check import check_positive_int
from rejoint.domain.domain import Domain
from rejoint.identifiability.bounds import (
    RankBound,
    below_expected,
    compound,
    full_column_rank,
    kruskal,
    powers_of_two,
)
from rejoint.identifiability.groupings import (
    balanced_groups,
    find_groupings,
    groups_of_table,
    partitions_into_three,
    solvable_rank,
    split_in_a_row,
)
from rejoint.identifiability.layout import (
    Groups,
    Levels,
    Subsets,
    TableLayout,
    elementary_symmetric,
    read_layout,
)
from rejoint.messages import Message, PythonName
from rejoint.text import cite, plural, show

GENERIC = "factors drawn from a continuous distribution"
EXPECTED = "Chiantini-Ottaviani-Vannieuwenhoven 2014"

#: Each lemma: its formula, whether its third side may have structure, and what it needs.
LEMMAS: dict[str, tuple[Callable[[int, int, int], int], bool, str]] = {
    "Lemma 1 (Kruskal)": (kruskal, True, "Kruskal ranks of the three groups"),
    "Lemma 2": (
        full_column_rank,
        True,
        "two sides of 3 or more, the third of full column rank",
    ),
    "Lemma 3": (powers_of_two, False, "three stacked groups without further structure"),
    "Lemma 4 (compound)": (
        compound,
        True,
        "generic rank of the compound matrices; the third of full column rank",
    ),
}

GAP = (
    "equal levels; factors drawn from a continuous distribution; all tables of the order; the "
    "proof counts I|S_k| free rows in a group, of which |S_k|(I-1)+1 are free"
)

_BASIS = "Assumptions of a result: print(report[name])."

# Their statements need more than sides and subsets.
_NOT_EVALUATED = (
    "Not evaluated: Sorensen-De Lathauwer 2015 (coupled decompositions: conditions on the "
    "factors themselves), further cases of Domanov-De Lathauwer 2015 (Lemma 2 is theirs)."
)


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
    >>> said = rj.identifiability.report([3] * 10, order=3, rank=30)
    >>> said.best.rank, said.counting, said.upper
    (20, 55, 19683)
    >>> print(said.verdict)
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
        known = show([b.name for b in self.results], most=99)
        raise KeyError(f"There is no result {cite(name)} for these tables; there are {known}.")

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
        absent = self.layout.uncovered
        if absent:
            it = "it" if len(absent) == 1 else "them"
            return f"No table contains {show(absent)}: nothing is known about {it}."
        return _verdict(self) if self.rank is None else _verdict_on_rank(self, self.rank)

    def __str__(self) -> str:
        lines = [f"{self.layout.description}.", "", *self._lines(), "", self.verdict]
        apart = [self.layout.apart_text] if self.layout.apart else []
        return "\n".join([*lines, *apart, _BASIS, _NOT_EVALUATED])

    def _lines(self) -> list[str]:
        """The results, one in each line."""
        width = max(len(b.name) for b in self.results) + 2
        digits = max(5, *(len(str(b.rank)) for b in self.results)) if self.upper < 10**12 else 12
        lines = [f"{'result':{width}}{'rank':>{digits}}"]
        for b in self.results:
            rank = str(b.rank) if b.rank < 10**12 else f"{b.value:.2g}"
            lines.append(f"{b.name:{width}}{rank:>{digits}}  {b.standing:20} {b.groups}".rstrip())
        return lines

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
            f"<p>{escape(_NOT_EVALUATED)}</p>"
        )


def report(
    levels: Levels | None = None,
    order: int | None = None,
    rank: int | None = None,
    subsets: Subsets | None = None,
    domain: Domain | None = None,
) -> Report:
    """Report up to which rank tables determine the model: every bound, the best one, its basis.

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
    Theorem 1                                     4  printed, not proved  {x0} {x1} {x2 x3 x4 x5}
    Theorem 2                                     4  printed, not proved  {x0 x1} {x2 x3} {x4 x5}
    Theorem 2, closed form                        3  printed, not proved  {x0 x1} {x2 x3} {x4 x5}
    Table II/III                                  4  printed, not proved
    Lemma 1 (Kruskal)                             6  proved               {x0 x3} {x1 x4} {x2 x5}
    Lemma 2                                       7  proved               {x0} {x1 x2} {x3 x4 x5}
    Lemma 3                                       4  proved               {x0 x3} {x1 x4} {x2 x5}
    Lemma 4 (compound)                            7  proved               {x0} {x1 x2} {x3 x4 x5}
    One table (Kruskal)                           3  proved               {x0} {x1} {x2}
    Chiantini-Ottaviani-Vannieuwenhoven 2014      9  proved               {x0 x3} {x1 x4} {x2 x5}
    Counting                                     17  limit
    Proposition 1                               243  limit
    <BLANKLINE>
    Proved up to rank 9 (Chiantini-Ottaviani-Vannieuwenhoven 2014), excluded from rank 18 on; \
between them identifiability.jacobian decides it locally.
    Assumptions of a result: print(report[name]).
    Not evaluated: ...
    """
    tables = read_layout(levels, order, subsets, domain)
    bounds = [*_printed_bounds(tables), *_proved_bounds(tables)]
    if not any(b.proved and b.rank for b in bounds):
        one = 0 if tables.uncovered else 1
        needs = "every variable is in a table"
        bounds.append(RankBound("One class", one, True, "literature", needs, (), one))
    return Report(
        tables,
        tuple(bounds),
        _limits(tables),
        None if rank is None else check_positive_int("rank", rank),
    )


def _printed_bounds(tables: TableLayout) -> Iterator[RankBound]:
    """Theorems 1-3 and the formula behind Tables II and III, as printed, for equal levels.

    The proofs give the stacked factor of a group ``S_k`` of variables ``I |S_k|`` free rows. Each
    variable's rows add up to one, so that only ``|S_k| (I - 1) + 1`` are free: the theorems are
    unproved as printed, though not refuted.
    """
    size, levels = len(tables.domain), tables.levels[0]
    every = range(size)

    def bound(name: str, value: float, groups: Groups = (), more: str = "") -> RankBound:
        partition = tables.group_names(groups)
        return RankBound(name, int(value), False, "printed", GAP + more, partition, float(value))

    if len(set(tables.levels)) > 1 or tables.order not in (3, 4):
        return
    if tables.order == 4:
        splits = [(a // 2, (a + 1) // 2, (size - a) // 2, (size - a + 1) // 2) for a in every[2:-1]]
        ranks = [compound(levels * a, levels * b, levels**2 * c * d) for a, b, c, d in splits]
        best = max(range(len(ranks)), key=ranks.__getitem__)
        yield bound("Theorem 3", ranks[best], split_in_a_row(every, *splits[best]))
        return
    third = size // 3
    one = (isqrt(size * levels - 1) // levels * levels - 1) ** 2
    one = levels * (size - 2) if size <= levels else one
    side = round((one**0.5 + 1) / levels) if size > levels else 1
    yield bound("Theorem 1", one, split_in_a_row(every, side, side, size - 2 * side))
    thirds = split_in_a_row(every, third, third, size - 2 * third)
    yield bound("Theorem 2", 4 ** max((third * levels).bit_length() - 2, 0), thirds)
    closed = (third * levels + 1) ** 2 / 16
    yield bound("Theorem 2, closed form", closed, thirds, "; implied by Theorem 2")
    shown = max(one, (size * levels / 3 + 1) ** 2 / 16)
    rule = "; the larger of Theorem 1 and the closed form without the floor of N/3"
    yield bound("Table II/III", shown, (), rule)


def _proved_bounds(tables: TableLayout) -> Iterator[RankBound]:
    """The largest rank that each result proves, over the groupings that are tried."""
    best: dict[str, tuple[int, Groups]] = {}
    reach: dict[tuple[frozenset[int], int], int] = {}
    for name, rank, groups in _candidate_ranks(tables):
        if rank > best.get(name, (0,))[0]:
            key = frozenset(n for group in groups for n in group), rank
            if key not in reach:
                reach[key] = solvable_rank(tables, *key)
            if min(rank, reach[key]) > best.get(name, (0,))[0]:
                best[name] = min(rank, reach[key]), groups
    for name, (rank, groups) in best.items():
        origin, needs = _basis(tables, name, groups)
        partition = tables.group_names(groups)
        text = f"{GENERIC}; {needs}"
        yield RankBound(name, rank, True, origin, text, partition, float(rank))


def _candidate_ranks(tables: TableLayout) -> Iterator[tuple[str, int, Groups]]:
    """Results with the ranks that groupings give them, and the groupings."""
    order, single = tables.order, _one_table_name(tables)
    if tables.largest_order < 3:
        return
    if order is None:
        for groups in find_groupings(tables):
            for name, rank in _ranks_of_listed(tables, groups).items():
                yield name, rank, groups
    elif sum(size > 1 for size in tables.levels) >= 3:
        for groups in partitions_into_three(tables):
            a, b, c = tables.sides(groups)
            several = sum(elementary_symmetric([tables.free[n] for n in groups[2]], order - 2))
            for name, (rule, structured, _) in LEMMAS.items():
                yield name, rule(a, b, several if structured else c), groups
    subsets = tables.subsets if order is None else [tuple(sorted(tables.largest_first[:order]))]
    for subset in subsets:
        for groups in groups_of_table(tables, subset):
            # The rows of a group are products over its variables (Allman, Matias, Rhodes 2009).
            a, b, c = (prod(tables.levels[n] for n in group) for group in groups)
            yield single, kruskal(a, b, c), groups
    if order is not None:
        for groups in balanced_groups(tables):
            yield EXPECTED, below_expected(tables.sides(groups)), groups


def _ranks_of_listed(tables: TableLayout, groups: Groups) -> dict[str, int]:
    """The bound of each result on one grouping, into three groups or four."""
    sides = sorted(tables.sides(groups))
    names = list(LEMMAS)
    if len(sides) == 3:
        # Any of the two larger ones may be the third side of Lemmas 2 and 4.
        a, b, c = sides
        turns = [(a, b, c), (a, c, b)]
    else:
        a, b, c, d = sides
        turns = [(a, b, c * d), (a, c, b * d), (b, c, a * d), (c, d, a * b), (b, d, a * c)]
        names = ["Lemma 2", "Lemma 4 (compound)"]  # the third side may have structure
    ranks = {name: max(LEMMAS[name][0](*turn) for turn in turns) for name in names}
    return ranks | {EXPECTED: below_expected(sides)}


def _one_table_name(tables: TableLayout) -> str:
    in_paper = tables.largest_order == 3
    return "One table (Kruskal)" if in_paper else "Allman-Matias-Rhodes 2009, one table"


def _basis(
    tables: TableLayout, name: str, groups: Groups
) -> tuple[Literal["printed", "corrected", "literature"], str]:
    """Where a bound comes from, and what it assumes beside generic factors."""
    linked = "" if tables.order is not None and name in LEMMAS else "; other variables are linked"
    sides = " x ".join(map(str, tables.sides(groups)))
    if name == EXPECTED:
        return "literature", (
            f"below the expected rank of a {sides} tensor of at most 15,000 cells, proved by "
            f"computer case by case{linked} to these"
        )
    if name not in LEMMAS:
        return "printed" if tables.largest_order == 3 else "literature", (
            "one table is unique by itself ((3I-2)/2 for three variables of I levels), and "
            "every other variable is linked to it, directly or through others, by overlapping "
            "tables"
        )
    _, structured, needs = LEMMAS[name]
    taken = (tables.order or 0) - 2
    several = f", the third taken {taken} at a time" if structured and taken > 1 else ""
    merged = ", two of them multiplied into the third" if len(groups) == 4 else ""
    return "corrected", (
        f"groups between which all tables are there, sides d_k = 1 + sum (I_n - 1): {sides}"
        f"{several}{merged}; {needs}{linked and linked + ' to these'}"
    )


def _limits(tables: TableLayout) -> tuple[RankBound, RankBound]:
    """The counting bound and Proposition 1."""
    count = (tables.equations + 1) / tables.class_size
    exact = "" if len(set(tables.levels)) == 1 else "; with unequal levels it may be one too many"
    every = prod(tables.levels) // max(tables.levels)
    return (
        RankBound(
            "Counting",
            int(count),
            True,
            "limit",
            f"{GENERIC}; F (sum (I_n - 1) + 1) - 1 parameters need as many of the "
            f"{plural(tables.equations, 'independent number')} in the tables{exact}",
            value=count,
        ),
        RankBound(
            "Proposition 1",
            every,
            True,
            "limit",
            "none: every joint is a naive Bayes model of at most this rank",
            value=float(every) if every < 1e300 else float("inf"),
        ),
    )


def _verdict(report: Report) -> str:
    best, counting = report.best, report.counting
    if best.rank >= counting:
        return f"Proved up to rank {best.rank} ({best.name}), which is all that counting allows."
    return Message(
        "Proved up to rank {rank} ({name}), excluded from rank {beyond} on; between them "
        "{jacobian} decides it locally.",
        rank=best.rank,
        name=best.name,
        beyond=counting + 1,
        jacobian=PythonName("identifiability.jacobian"),
    )


def _verdict_on_rank(report: Report, rank: int) -> str:
    best, tables = report.best, report.layout
    if rank <= best.rank:
        return (
            f"Rank {rank} is identifiable for almost all models: {best.name} proves it up to "
            f"rank {best.rank}."
        )
    if tables.largest_order <= 2 and not tables.has_joint:
        free = rank * (rank - 1) // 2
        return (
            f"Tables of two variables leave {plural(free, 'direction')} of a rank {rank} model "
            "open, or more: they never determine it, unless its factors have enough zeros. Add "
            "tables of three variables."
        )
    given = " The joint itself is known: one table holds all variables." if tables.has_joint else ""
    if rank > report.counting:
        return (
            f"Rank {rank} is not identifiable: {plural(tables.parameters(rank), 'parameter')}, but "
            f"the tables hold only {plural(tables.equations, 'independent number')}, enough for "
            f"rank {report.counting}.{given}"
        )
    return Message(
        "Rank {rank} is above {proved}, the largest rank proved ({name}), and within {counting}, "
        "which counting leaves possible: neither proved nor excluded. {jacobian} decides it "
        "locally.{given}",
        rank=rank,
        proved=best.rank,
        name=best.name,
        counting=report.counting,
        jacobian=PythonName("identifiability.jacobian"),
        given=given,
    )
