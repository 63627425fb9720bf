"""Reports: every known bound on the rank that tables determine, and the best one."""

from dataclasses import dataclass
from html import escape
from math import prod

from rejoint.check import check_positive_int
from rejoint.domain.domain import Domain
from rejoint.identifiability.bounds import RankBound
from rejoint.identifiability.layout import Levels, Subsets, TableLayout, read_layout
from rejoint.identifiability.theorems import (
    GENERIC,
    all_tables_bounds,
    expected_rank_bounds,
    listed_tables_bounds,
    single_table_bounds,
)
from rejoint.identifiability.theorems_as_printed import printed_bounds
from rejoint.messages import Message, PythonName
from rejoint.text import cite, plural, show

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
    Lemma 1 (Kruskal)                             6  proved               {x0 x1} {x2 x3} {x4 x5}
    Lemma 1 (Kruskal), sides I|S_k|               8  printed, not proved  {x0 x1} {x2 x3} {x4 x5}
    Lemma 2                                       7  proved               {x0} {x1 x2} {x3 x4 x5}
    Lemma 2, sides I|S_k|                         9  printed, not proved  {x0} {x1 x2} {x3 x4 x5}
    Lemma 3                                       4  proved               {x0 x1} {x2 x3} {x4 x5}
    Lemma 3, sides I|S_k|                         4  printed, not proved  {x0 x1} {x2 x3} {x4 x5}
    Lemma 4 (compound)                            7  proved               {x0} {x1 x2} {x3 x4 x5}
    Lemma 4 (compound), sides I|S_k|              9  printed, not proved  {x0} {x1 x2} {x3 x4 x5}
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
    bounds = [
        *printed_bounds(tables),
        *all_tables_bounds(tables),
        *listed_tables_bounds(tables),
        *single_table_bounds(tables),
        *expected_rank_bounds(tables),
    ]
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
