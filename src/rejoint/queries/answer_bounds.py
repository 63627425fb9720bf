"""Bounds of an answer over all joints that have the given tables.

Tables leave most answers open: many joints have them, and each gives another answer. The range of
these answers is a linear program over the joint's cells. It is made small first: variables that do
not matter are dropped, and a junction tree replaces the joint, both without changing the range.
Where the program is still too large, the range over joints of fewer variables is an outer bound.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.queries.cell_program import CellProgram, InfeasibleError, UnsolvedError
from rejoint.queries.junction_tree import JunctionTree
from rejoint.queries.table_limits import (
    TableLimits,
    agree,
    dependence,
    limits_of,
    with_margins,
)
from rejoint.queries.witness import witness_slack
from rejoint.text import cite, plural

if TYPE_CHECKING:
    from rejoint.marginals.marginals import Marginals

Vectors = Mapping[int, FloatArray]

#: Cells times rows of all programs of one call; one of 2 million takes .3 to 1 second.
ALL_WORK = 4_000_000
_LEAST_WORK = 30_000  # of one end, however many there are: 10 ms
_SLACK_WORK = 400_000  # of the program of the least slack, which takes three times as long
_LESS_WORK = 0.1  # times that of a program that could not be solved
_MOST_CELLS = 2_000_000  # of a clique
_FAILURES = 5  # variables in a row that make a program too large: then no further one is tried
_ZERO = 1e-9  # probabilities below are zero
_MORE_SLACK = 1.01  # times the least slack: at the least one, a program has hardly any inside
_OUTSIDE = 0.05  # probability that some cell of noisy tables is further off than the tolerance


@dataclass(frozen=True)
class AnswerBounds:
    """Range of an answer over all joints that have the given tables.

    Parameters
    ----------
    low, high : float or array
        The ends, of a table those of each cell; NaN where the condition is impossible in every
        such joint.
    sharp : bool
        Whether some joint with these tables gives each end (or comes as near as one likes). If
        false, the range over all of them lies within the ends, but may be narrower.
    slack : float
        By how much a cell may differ from the published one, beyond rounding, as a share of the
        table's total; 0 where the tables are met exactly.

    Examples
    --------
    >>> float(AnswerBounds(0.1, 0.4, True, 0.0).width)
    0.3
    """

    low: Any
    high: Any
    sharp: bool
    slack: float

    @property
    def width(self) -> Any:
        """The distance between the ends."""
        return np.round(self.high - self.low, 12)


def bound_answer(
    tables: "Marginals", numerator: Vectors, given: Vectors | None = None
) -> AnswerBounds:
    """Return the range of an expectation, or a ratio of two, over all joints with these tables.

    Parameters
    ----------
    tables : Marginals
        The tables. Rounded and suppressed cells may be anything within their limits.
    numerator : mapping from positions of variables to arrays
        ``E[prod_n u_n(x_n)]``: for each variable one number per level.
    given : mapping from positions of variables to arrays, optional
        The denominator, ``E[prod_m v_m(x_m)]``. For a conditional probability the numerator
        includes the vectors of the condition.

    Examples
    --------
    One in two has a, one in two has b; how many have both is open.

    >>> from rejoint import Marginals
    >>> tables = Marginals.from_tables({"a": {"yes": 50, "no": 50}, "b": {"yes": 50, "no": 50}})
    >>> yes = np.array([1.0, 0.0])
    >>> both = bound_answer(tables, {0: yes, 1: yes})
    >>> both.low, both.high, both.sharp
    (0.0, 0.5, True)
    >>> bound_answer(tables, {0: yes, 1: yes}, {1: yes}).high
    1.0
    """
    return bound_answers(tables, [numerator], given)[0]


def bound_answers(
    tables: "Marginals",
    numerators: Sequence[Vectors],
    given: Vectors | Sequence[Vectors] | None = None,
) -> list[AnswerBounds]:
    """Return the ranges of several answers, with one condition or one each.

    The largest program that is solved is smaller where there are many answers.

    Parameters
    ----------
    tables
        As for :func:`bound_answer`.
    numerators : sequence of mappings
        One for each answer.
    given : mapping, or sequence of mappings, optional
        The denominator of all answers, or of each.

    Examples
    --------
    >>> from rejoint import Marginals
    >>> tables = Marginals.from_tables({"a": {"yes": 20, "no": 80}, "b": {"yes": 70, "no": 30}})
    >>> cells = [{0: a, 1: b} for a in np.eye(2) for b in np.eye(2)]
    >>> [(round(b.low, 6), round(b.high, 6)) for b in bound_answers(tables, cells)]
    [(0.0, 0.2), (0.0, 0.2), (0.5, 0.7), (0.1, 0.3)]
    """
    conditions = given if isinstance(given, Sequence) else [given or {}] * len(numerators)
    shape = tables.domain.shape
    ratios = [_Ratio.of(shape, *pair) for pair in zip(numerators, conditions, strict=True)]
    source = _Tables(tables)
    while True:
        is_open = [source.published(ratio) is None for ratio in ratios]
        work = max(ALL_WORK // (2 * max(sum(is_open), 1)), _LEAST_WORK)
        questions = {ratio.variables for ratio in ratios}
        ranges = {asked: _Range(source, asked, work) for asked in questions}
        try:
            return [ranges[ratio.variables].of(ratio) for ratio in ratios]
        except _ContradictionError:
            source.relax()


class _ContradictionError(Exception):
    """Error raised where no joint has tables that agree on their margins."""


@dataclass(frozen=True)
class _Ratio:
    """A ratio of two expectations: a factor, vectors above and below that are not constant."""

    factor: float
    above: Vectors
    below: Vectors

    @staticmethod
    def of(shape: Sequence[int], numerator: Vectors, given: Vectors) -> "_Ratio":
        """Check the vectors and take constant ones out."""
        factor, above = _split(shape, numerator)
        divisor, below = _split(shape, given)
        return _Ratio(factor / divisor if divisor else nan, above, below)

    @property
    def variables(self) -> frozenset[int]:
        """The variables asked about."""
        return frozenset(self.above) | frozenset(self.below)

    def of_table(self, subset: Sequence[int], table: FloatArray) -> float:
        """Return the ratio under one table of shares that has all its variables."""
        below = expect(subset, table, self.below)
        return expect(subset, table, self.above) / below if below > 0 else nan

    def ends(self) -> tuple[float, float]:
        """Return the least and the largest value under any joint."""
        return (-inf, inf) if self._is_general else _product_ends(self._left())

    @property
    def _is_general(self) -> bool:
        """Whether the denominator is no part of the numerator, so that nothing is known."""
        return any(
            n not in self.above or not _divides(self.above[n], v) for n, v in self.below.items()
        )

    def _left(self) -> list[FloatArray]:
        """Return what the numerator has beyond the denominator, where the latter is not zero."""
        left = []
        for n, vector in self.above.items():
            below = self.below.get(n, np.ones(len(vector)))
            left.append(vector[below > 0] / below[below > 0])
        return left


def _divides(above: FloatArray, below: FloatArray) -> bool:
    return bool((below >= 0).all() and (above[below == 0] == 0).all())


def _product_ends(vectors: Iterable[FloatArray]) -> tuple[float, float]:
    low = high = 1.0
    for vector in vectors:
        if not len(vector):
            continue
        ends = [end * float(value) for end in (low, high) for value in (vector.min(), vector.max())]
        low, high = min(ends), max(ends)
    return low, high


def _split(shape: Sequence[int], vectors: Vectors) -> tuple[float, dict[int, FloatArray]]:
    factor, kept = 1.0, {}
    for n, vector in vectors.items():
        array = np.asarray(vector, dtype=np.float64)
        if array.shape != (shape[n],) or not np.isfinite(array).all():
            raise ValueError(
                f"The vector of variable {n} must have {plural(shape[n], 'finite number')}, one "
                f"for each level, got {cite(vector)}."
            )
        if (array == array[0]).all():
            factor *= float(array[0])
        else:
            kept[n] = array
    return factor, kept


def expect(subset: Sequence[int], table: FloatArray, vectors: Vectors) -> float:
    """Return the expectation of a product of functions of single variables under a table."""
    for n in subset:
        table = np.tensordot(vectors[n], table, (0, 0)) if n in vectors else table.sum(axis=0)
    return float(table)


class _Tables:
    """The tables, and how far they may give way."""

    def __init__(self, tables: "Marginals") -> None:
        self.tables, self.shape = tables, tables.domain.shape
        self.limits, self.moments = limits_of(tables), tables.moments
        exact = [table for table in self.limits if table.is_exact]
        self.is_relaxed = bool(tables.noisy) or not agree(exact, self.moments)

    def relax(self) -> None:
        """Let all cells give way."""
        self.is_relaxed = True
        self.__dict__.pop("constraints", None)

    @property
    def exact(self) -> list[TableLimits]:
        """The tables whose cells are known; none where all may give way."""
        return [] if self.is_relaxed else [table for table in self.limits if table.is_exact]

    @cached_property
    def constraints(self) -> list[TableLimits]:
        """The tables, with their margins where these have a slack of their own."""
        return with_margins(self.limits) if self.is_relaxed else self.limits

    def published(self, ratio: _Ratio) -> AnswerBounds | None:
        """Return an answer that has no range: a constant, or one that an exact table gives."""
        value = None
        if not ratio.variables or not abs(ratio.factor) > 0:
            value = ratio.factor
        for table in self.exact if value is None else ():
            if ratio.variables <= set(table.subset):
                value = ratio.factor * ratio.of_table(table.subset, table.low)
                break
        if value is None:
            return None
        return AnswerBounds(value, value, True, 0.0)

    @cached_property
    def slack(self) -> float:
        """A slack of all tables together with which a joint exists; the least, if that is found."""
        edges = [*(t.subset for t in self.constraints), *(m.variables for m in self.moments)]
        tree = JunctionTree.of(self.shape, edges, _SLACK_WORK)
        parts = self.constraints, self.moments
        if tree.cells(self.shape) <= _SLACK_WORK:
            program = CellProgram(self.shape, tree, *parts, is_relaxed=True)
            if program.work <= _SLACK_WORK:
                with suppress(UnsolvedError):
                    return program.least_slack()
        return witness_slack(self.shape, *parts)

    @cached_property
    def tolerance(self) -> float:
        """How many standard errors noisy cells may be off, all together, but for chance."""
        from scipy.special import ndtri  # slow to import

        if not (self.tables.noisy and self.tables.counted.any()):
            return 0.0
        cells = sum(table.low.size for table in self.constraints)
        return float(ndtri(1.0 - _OUTSIDE / 2 / cells))

    @property
    def allowance(self) -> float:
        """By how many spreads every cell may leave its limits."""
        return max(_MORE_SLACK * self.slack + 1e-9, self.tolerance) if self.is_relaxed else 0.0

    @property
    def share(self) -> float:
        """The allowance of the cell with the largest spread, as a share of the total."""
        return self.allowance * max((float(t.spread.max()) for t in self.constraints), default=0.0)


class _Range:
    """The joints with given tables, prepared for questions about some variables."""

    def __init__(self, tables: _Tables, asked: frozenset[int], work: float) -> None:
        self.tables, self.asked, self.work = tables, asked, work
        edges = [*(t.subset for t in tables.limits), *(m.variables for m in tables.moments)]
        self.everything = asked.union(*edges)
        self._programs: dict[frozenset[int], CellProgram | None] = {}

    def of(self, ratio: _Ratio) -> AnswerBounds:
        """Return the range of one answer."""
        published = self.tables.published(ratio)
        if published is not None:
            return published
        low, high, sharp, slack = self._solve(ratio)
        low, high = (ratio.factor * _snap(end, ratio.ends()) for end in (low, high))
        if np.isnan(low):
            return AnswerBounds(nan, nan, True, slack)
        return AnswerBounds(min(low, high), max(low, high), sharp, slack)

    def _solve(self, ratio: _Ratio) -> tuple[float, float, bool, float]:
        """Return ends, whether they are sharp, slack."""
        if not self.fits(self.asked, self.work):
            return self._by_parts(ratio)
        for work in (self.work, _LESS_WORK * self.work):
            kept = self._largest(work)
            try:
                low, high = self._ends(kept, ratio)
            except UnsolvedError:
                continue
            if np.isnan(low):
                return nan, nan, True, 0.0
            return low, high, kept == self.everything, self.tables.share
        return *ratio.ends(), False, 0.0

    def _by_parts(self, ratio: _Ratio) -> tuple[float, float, bool, float]:
        """Bound a question of too many variables by a product of fewer and extremes of the rest."""
        if any((v < 0).any() for v in (*ratio.above.values(), *ratio.below.values())):
            return *ratio.ends(), False, 0.0
        above, below = (self._product_range(vectors) for vectors in (ratio.above, ratio.below))
        high = above.high / below.low if below.low > 0 else inf
        low = above.low / below.high if below.high > 0 else 0.0
        return low, high, False, max(above.slack, below.slack)

    def _product_range(self, vectors: Vectors) -> AnswerBounds:
        """Return an outer bound of an expectation of a product of nonnegative functions."""
        part = _Range(self.tables, frozenset(), self.work)
        # The most informative ones: whose function is small for most levels.
        for n in sorted(vectors, key=lambda n: float((vectors[n] / vectors[n].max()).mean())):
            larger = _Range(self.tables, part.asked | {n}, self.work)
            if not larger.fits(larger.asked, self.work):
                break
            part = larger
        bounds = part.of(_Ratio(1.0, {n: vectors[n] for n in part.asked}, {}))
        low, high = _product_ends(v for n, v in vectors.items() if n not in part.asked)
        return replace(bounds, low=bounds.low * low, high=bounds.high * high)

    def fits(self, kept: frozenset[int], work: float) -> bool:
        """Return whether the program over some variables is no more work than this."""
        program = self._program(kept)
        return program is not None and program.work <= work

    def _largest(self, work: float) -> frozenset[int]:
        """Return all variables, or the asked and those most dependent on them, as many as fit."""
        if self.fits(self.everything, work):
            return self.everything
        kept, failures = self.asked, 0
        for n in self._by_dependence:
            if self.fits(kept | {n}, work):
                kept, failures = kept | {n}, 0
            else:
                failures += 1
            if failures == _FAILURES:
                break
        return kept

    @cached_property
    def _by_dependence(self) -> list[int]:
        """The other variables, the most dependent on the asked ones first."""
        score = dict.fromkeys(self.everything - self.asked, 0.0)
        for table in self.tables.limits:
            for n in set(table.subset) - self.asked:
                for q in self.asked & set(table.subset):
                    score[n] = max(score[n], dependence(table, n, q))
        return sorted(score, key=lambda n: (-score[n], n))

    def _ends(self, kept: frozenset[int], ratio: _Ratio) -> tuple[float, float]:
        """Return the ends over joints of some variables; NaN if the condition is impossible."""
        program = self._program(kept)
        assert program is not None
        slack = self.tables.allowance
        try:
            return program.bounds(ratio.above, ratio.below or None, slack=slack)
        except InfeasibleError:
            pass
        try:
            if ratio.below and program.bounds(ratio.below, slack=slack)[1] < _ZERO:
                return nan, nan
        except InfeasibleError:
            pass
        if self.tables.is_relaxed:
            raise UnsolvedError  # the program is at the limits of rounding
        raise _ContradictionError(self.tables)

    def _program(self, kept: frozenset[int]) -> CellProgram | None:
        """Return the program over some variables, without what does not matter."""
        if kept not in self._programs:
            shape, is_relaxed = self.tables.shape, self.tables.is_relaxed
            limits = self._within(kept)
            exact = [] if is_relaxed else [table for table in limits if table.is_exact]
            covered = [set(table.subset) for table in exact]
            moments = [
                moment
                for moment in self.tables.moments
                if kept.issuperset(moment.variables)
                and not any(subset.issuperset(moment.variables) for subset in covered)
            ]
            edges = [*(t.subset for t in limits), *(m.variables for m in moments), self.asked]
            tree = JunctionTree.of(shape, edges, _MOST_CELLS)
            program = None
            if _is_inside(tree, self.asked):  # else the tree is too large to be made
                tree = tree.pruned(self.asked, covered)
                if tree.cells(shape) <= self.work:
                    limits = _inside(tree, limits, exact)
                    moments = [m for m in moments if _is_inside(tree, m.variables)]
                    program = CellProgram(shape, tree, limits, moments, is_relaxed=is_relaxed)
            self._programs[kept] = program
        return self._programs[kept]

    def _within(self, kept: frozenset[int]) -> list[TableLimits]:
        """Return what the tables say about some variables."""
        if self.tables.is_relaxed:
            return [t for t in self.tables.constraints if kept.issuperset(t.subset)]
        others = [table for table in self.tables.limits if not table.is_exact]
        # One table for each set of variables: those that share it agree.
        holders = {
            tuple(n for n in table.subset if n in kept): table for table in self.tables.exact
        }
        exact = [table.margin(subset) for subset, table in holders.items() if subset]
        return [*exact, *_restricted(others, kept)]


def _is_inside(tree: JunctionTree, variables: Iterable[int]) -> bool:
    wanted = set(variables)
    return any(wanted <= set(clique) for clique in tree.cliques)


def _inside(
    tree: JunctionTree, limits: Sequence[TableLimits], exact: Sequence[TableLimits]
) -> list[TableLimits]:
    """Return the tables inside the cliques, and what exact ones outside say about cliques."""
    kept = {id(table): table for table in limits if _is_inside(tree, table.subset)}
    subsets = {table.subset for table in kept.values() if table.is_exact}
    found = list(kept.values())
    for table in exact:
        if id(table) not in kept:
            common = {tuple(n for n in table.subset if n in clique) for clique in tree.cliques}
            for subset in common - subsets - {()}:
                subsets.add(subset)
                found.append(table.margin(subset))
    return found


def _snap(end: float, ends: tuple[float, float]) -> float:
    """Return an end within the ends over any joint; equal to one of them where it is as near."""
    for limit in ends:
        if isfinite(limit) and abs(end - limit) <= _ZERO * max(1.0, abs(limit)):
            return limit
    return float(np.clip(end, *ends))


def _restricted(limits: Sequence[TableLimits], kept: frozenset[int]) -> list[TableLimits]:
    """Return the tables of these variables, and margins of others on what no such table has."""
    inside = [table for table in limits if kept.issuperset(table.subset)]
    for table in limits:
        common = kept.intersection(table.subset)
        if common and not any(common <= set(other.subset) for other in inside):
            inside.append(table.margin(common))
    return inside
