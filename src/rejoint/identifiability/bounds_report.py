"""Report: every bound on the rank that is known for some tables, and which is the best."""

from dataclasses import dataclass
from html import escape
from math import prod

from rejoint.domain.domain import Domain
from rejoint.domain.labels import plural, show
from rejoint.identifiability.bounds import Bound
from rejoint.identifiability.layout import Layout, Levels, Subsets, layout, whole_rank
from rejoint.identifiability.theorems import (
    GENERIC,
    expected_rank,
    grouped_bounds,
    listed_bounds,
    single_table,
)
from rejoint.identifiability.theorems_as_printed import printed_bounds
from rejoint.messages import Message, PythonName

#: Where the rest is: it would not fit into a line of the table.
BASIS = "What a result rests on: print(report[name])."

#: Named, not evaluated: what their statement takes is more than sides and subsets.
ELSEWHERE = (
    "Not evaluated: Sorensen-De Lathauwer 2015 (coupled decompositions: conditions on the "
    "factors themselves), further cases of Domanov-De Lathauwer 2015 (Lemma 2 is theirs)."
)


@dataclass(frozen=True)
class Report:
    """What is known about the rank that some tables determine.

    Parameters
    ----------
    layout : Layout
        Variables and tables.
    bounds : tuple of Bound
        Ranks up to which a result says that the model is unique; printed ones may be unproved.
    limits : tuple of Bound
        Ranks that no result can pass.
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

    layout: Layout
    bounds: tuple[Bound, ...]
    limits: tuple[Bound, ...]
    rank: int | None = None

    @property
    def best(self) -> Bound:
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

    def __getitem__(self, name: str) -> Bound:
        """The result of this name."""
        for bound in (*self.bounds, *self.limits):
            if bound.name == name:
                return bound
        known = show([b.name for b in (*self.bounds, *self.limits)], most=99)
        raise KeyError(f"There is no result {name!r} for these tables; there are {known}.")

    @property
    def verdict(self) -> str:
        """What all this means, in words.

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
        return open_words(self) if self.rank is None else rank_words(self, self.rank)

    def __str__(self) -> str:
        lines = [repr(self.layout)[7:-1] + ".", "", *rows(self), "", self.verdict]
        if self.layout.apart:
            lines.append(apart_words(self.layout))
        return "\n".join([*lines, BASIS, ELSEWHERE])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{h}</th>" for h in ("result", "rank", "", "partition", "rests on"))
        body = "".join(
            f"<tr><td>{escape(b.name)}</td><td>{b.rank:,}</td><td>{b.standing}</td>"
            f"<td>{escape(b.groups)}</td><td>{escape(b.assumptions)}</td></tr>"
            for b in (*self.bounds, *self.limits)
        )
        return (
            f"<p>{escape(repr(self.layout)[7:-1])}. <b>{escape(self.verdict)}</b></p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>{escape(ELSEWHERE)}</p>"
        )


def report(
    levels: Levels | None = None,
    order: int | None = None,
    rank: int | None = None,
    subsets: Subsets | None = None,
    domain: Domain | None = None,
) -> Report:
    """Say up to which rank tables determine the model: every bound, the best one, its basis.

    Parameters
    ----------
    levels : sequence of int, Domain or Marginals
        Number of levels of each variable; Marginals say the subsets, too.
    order : int, optional
        All tables of so many variables are there; 3 by default.
    rank : int, optional
        The rank that the verdict is about.
    subsets : sequence of tuples, optional
        These tables are there instead: names or positions.
    domain : Domain, optional
        In place of ``levels``.

    Returns
    -------
    Report
        With ``bounds``, ``limits``, ``best``, ``verdict``; prints as a table.

    Notes
    -----
    Bounds are on *generic* models: all but a set of probability zero. They say that the classes
    themselves are unique, hence the joint; where a table holds all variables the joint is known
    whatever the rank.

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
    What a result rests on: print(report[name]).
    Not evaluated: ...
    """
    tables = layout(levels, order, subsets, domain)
    asked = None if rank is None else whole_rank(rank)
    most = limits(tables)
    found = [*printed_bounds(tables), *grouped_bounds(tables)]
    if tables.order is None:
        found += listed_bounds(tables)
    single = single_table(tables)
    found += [single] if single else []
    found += expected_rank(tables)
    if not any(b.proved and b.rank for b in found):
        found.append(trivial(tables))
    return Report(tables, tuple(found), most, asked)


def trivial(tables: Layout) -> Bound:
    """One class is always unique, if every variable is in a table."""
    rank = 0 if tables.uncovered else 1
    return Bound("One class", rank, True, "literature", "every variable is in a table", (), rank)


def limits(tables: Layout) -> tuple[Bound, Bound]:
    """The counting bound and Proposition 1."""
    count = (tables.equations + 1) / tables.rows
    exact = "" if len(set(tables.levels)) == 1 else "; with unequal levels it may be one too many"
    every = prod(tables.levels) // max(tables.levels)
    return (
        Bound(
            "Counting",
            int(count),
            True,
            "limit",
            f"{GENERIC}; F (sum (I_n - 1) + 1) - 1 parameters need as many of the "
            f"{tables.equations:,} independent numbers in the tables{exact}",
            (),
            count,
        ),
        Bound(
            "Proposition 1",
            every,
            True,
            "limit",
            "none: every joint is a naive Bayes model of at most this rank",
            (),
            float(every) if every < 1e300 else float("inf"),
        ),
    )


def open_words(said: Report) -> str:
    """The verdict where no rank is asked about."""
    best, counting = said.best, said.counting
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


def rank_words(said: Report, rank: int) -> str:
    """The verdict on one rank."""
    best, tables = said.best, said.layout
    if rank <= best.rank:
        return (
            f"Rank {rank} is identifiable for almost all models: {best.name} proves it up to "
            f"rank {best.rank}."
        )
    given = " The joint itself is known: one table holds all variables." if tables.whole else ""
    if tables.largest <= 2 and not tables.whole:
        free = rank * (rank - 1) // 2
        return (
            f"Tables of two variables leave {plural(free, 'direction')} of a rank {rank} model "
            "open, or more: they never determine it, unless its factors have enough zeros. Add "
            "tables of three variables."
        )
    if rank > said.counting:
        size = plural(rank * tables.rows - 1, "parameter")
        return (
            f"Rank {rank} is not identifiable: {size}, but the "
            f"tables hold only {tables.equations:,} independent numbers, enough for rank "
            f"{said.counting}.{given}"
        )
    return Message(
        "Rank {rank} is above {proved}, the largest rank proved ({name}), and within {counting}, "
        "which counting leaves possible: neither proved nor excluded. {jacobian} decides it "
        "locally.{given}",
        rank=rank,
        proved=best.rank,
        name=best.name,
        counting=said.counting,
        jacobian=PythonName("identifiability.jacobian"),
        given=given,
    )


def rows(said: Report) -> list[str]:
    """The bounds line by line."""
    every = (*said.bounds, *said.limits)
    width = max(len(b.name) for b in every) + 2
    digits = max(5, *(len(str(b.rank)) for b in every)) if said.upper < 10**12 else 12
    lines = [f"{'result':{width}}{'rank':>{digits}}"]
    for b in every:
        rank = str(b.rank) if b.rank < 10**12 else f"{b.value:.2g}"
        lines.append(f"{b.name:{width}}{rank:>{digits}}  {b.standing:20} {b.groups}".rstrip())
    return lines


def apart_words(tables: Layout) -> str:
    """Which variables no table holds together."""
    pairs = [" and ".join(pair) for pair in tables.apart[:3]]
    more = len(tables.apart) - len(pairs)
    tail = f", and {plural(more, 'more pair')}" if more else ""
    return (
        f"No table holds together: {'; '.join(pairs)}{tail}. How they depend on each other rests "
        "on the model alone."
    )
