"""Bounds of an answer over all joints that have the given tables.

Tables leave most answers open: many joints have them, and each gives another answer. The range of
these answers is a linear program over the joint's cells. It is made small first: variables that do
not matter are dropped, and a junction tree replaces the joint, both without changing the range.
Where the program is still too large, the range over joints of fewer variables is an outer bound.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite, nan, prod
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from rejoint.arrays import FloatArray, parts_of, sum_to
from rejoint.queries.cell_program import (
    HIGHS_CELLS,
    CellProgram,
    InfeasibleError,
    OutOfTimeError,
    TableLimits,
    agree,
    drop_variables,
    expect,
    limits_of,
    number_of_rows,
    relevant,
)
from rejoint.queries.junction_tree import JunctionTree
from rejoint.text import cite, plural

if TYPE_CHECKING:
    from rejoint.marginals.marginals import Marginals
    from rejoint.marginals.moments import Moment

Vectors = Mapping[int, FloatArray]

#: Seconds that the bounds of one call may take by default.
SECONDS = 10.0
_LEAST_SECONDS = 0.5  # that an outer bound may take where no time is left
_OUTER_SECONDS = 3.0  # that an outer bound is allowed: more variables hardly make it narrower
_STEPS = 14  # of the interior-point method
_RATIO_MINIMA = 4  # that one end of a ratio takes
_MOST_CELLS = 2_000_000  # some 300 MB
_MOST_ROWS = 5_000  # some 500 MB
_ASKED_CELLS = 100_000  # of the table of all variables asked: more are bounded in part
_PART_CELLS = 1_000
_FAILURES = 5  # variables in a row that make a program too large: then no further one is tried
_ZERO = 1e-9  # probabilities below are zero
_MORE_SLACK = 1.01  # times the least slack: at the least one, a program has hardly any inside
_MARGIN_ORDER = 2  # variables of margins that have a slack of their own
_OUTSIDE = 0.05  # probability that some cell of noisy tables is further off than the tolerance


@dataclass(frozen=True)
class AnswerBounds:
    """Range of an answer over all joints that have the given tables.

    Parameters
    ----------
    low, high : float
        The ends; NaN where the condition is impossible in every such joint.
    sharp : bool
        Whether some joint with these tables gives each end (or comes as near as one likes). If
        false, the range over all of them lies within the ends, but may be narrower.
    slack : float
        By how much a cell may differ from the published one, beyond rounding, as a share of the
        table's total; 0 where the tables are met exactly.
    text : str
        What the range is, for people.

    Examples
    --------
    >>> AnswerBounds(0.1, 0.4, True, 0.0, "").width
    0.3
    """

    low: float
    high: float
    sharp: bool
    slack: float
    text: str

    @property
    def width(self) -> float:
        """The distance between the ends."""
        return round(self.high - self.low, 12)


def bound_answer(
    tables: "Marginals",
    numerator: Vectors,
    given: Vectors | None = None,
    *,
    seconds: float = SECONDS,
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
    seconds : float
        Time for sharp bounds; an outer bound where it does not suffice.

    Examples
    --------
    One in two has a, one in two has b; how many have both is open.

    >>> from rejoint import Marginals
    >>> tables = Marginals.from_tables({"a": {"yes": 50, "no": 50}, "b": {"yes": 50, "no": 50}})
    >>> yes = np.array([1.0, 0.0])
    >>> found = bound_answer(tables, {0: yes, 1: yes})
    >>> found.low, found.high, found.sharp
    (0.0, 0.5, True)
    >>> bound_answer(tables, {0: yes, 1: yes}, {1: yes}).high
    1.0
    """
    return bound_answers(tables, [numerator], given, seconds=seconds)[0]


def bound_answers(
    tables: "Marginals",
    numerators: Sequence[Vectors],
    given: Vectors | Sequence[Vectors] | None = None,
    *,
    seconds: float = SECONDS,
) -> list[AnswerBounds]:
    """Return the ranges of several answers, with one condition or one each.

    Programs are set up once for all numerators of the same variables.

    Parameters
    ----------
    tables
        As for :func:`bound_answer`.
    numerators : sequence of mappings
        One for each answer.
    given : mapping, or sequence of mappings, optional
        The denominator of all answers, or of each.
    seconds : float
        Time for all of them together.

    Examples
    --------
    >>> from rejoint import Marginals
    >>> tables = Marginals.from_tables({"a": {"yes": 20, "no": 80}, "b": {"yes": 70, "no": 30}})
    >>> cells = [{0: a, 1: b} for a in np.eye(2) for b in np.eye(2)]
    >>> [(round(each.low, 6), round(each.high, 6)) for each in bound_answers(tables, cells)]
    [(0.0, 0.2), (0.0, 0.2), (0.5, 0.7), (0.1, 0.3)]
    """
    deadline = monotonic() + seconds
    names, shape = tables.domain.names, tables.domain.shape
    conditions = given if isinstance(given, Sequence) else [given or {}] * len(numerators)
    asked = [_Ratio.of(shape, *pair) for pair in zip(numerators, conditions, strict=True)]
    limits = limits_of(tables)
    ranges: dict[frozenset[int], _Range] = {}
    found = []
    for k, ratio in enumerate(asked):
        if ratio.variables not in ranges:
            used = relevant(limits, tables.moments, ratio.variables)
            is_noisy = bool(tables.noisy)
            known = bool(tables.counted.any())
            ranges[ratio.variables] = _Range(shape, names, *used, ratio.variables, is_noisy, known)
        share = (deadline - monotonic()) / (len(asked) - k)
        found.append(ranges[ratio.variables].of(ratio, monotonic() + max(share, 0.0)))
    return found


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


@dataclass(frozen=True, eq=False)
class _Part:
    """Tables and moments of some variables, and how much work a program of them is."""

    limits: list[TableLimits]
    moments: list["Moment"]
    tree: JunctionTree
    cells: int
    rows: int

    @property
    def seconds(self) -> float:
        """About how long one minimum by the interior-point method takes."""
        return _STEPS * (1.7e-11 * self.rows**3 + 2e-8 * self.rows**2 + 4e-7 * self.cells)

    @property
    def fits(self) -> bool:
        """Whether the program fits into memory."""
        return self.cells <= _MOST_CELLS and self.rows <= _MOST_ROWS


@dataclass(eq=False)
class _Range:
    """The joints with given tables, prepared for questions about some variables."""

    shape: Sequence[int]
    names: Sequence[str]
    limits: list[TableLimits]
    moments: list["Moment"]
    asked: frozenset[int]
    is_noisy: bool
    has_records: bool

    def __post_init__(self) -> None:
        self.is_relaxed = False
        self.is_relaxed = self.is_noisy or not agree(self._exact(self.limits), self.moments)
        self._forget()

    def _exact(self, limits: Iterable[TableLimits]) -> list[TableLimits]:
        """Return the tables whose cells are known; none where all may give way."""
        return [] if self.is_relaxed else [table for table in limits if table.is_exact]

    def _forget(self) -> None:
        self._programs: dict[frozenset[int], tuple[CellProgram, float]] = {}
        self._parts: dict[frozenset[int], _Part] = {}

    @property
    def everything(self) -> frozenset[int]:
        """All variables of the tables, and those asked about."""
        edges = [*(table.subset for table in self.limits), *(m.variables for m in self.moments)]
        return self.asked.union(*edges)

    def of(self, ratio: _Ratio, deadline: float) -> AnswerBounds:
        """Return the range of one answer."""
        if not ratio.variables or not abs(ratio.factor) > 0:
            text = _IMPOSSIBLE if np.isnan(ratio.factor) else _EVERY
            return AnswerBounds(ratio.factor, ratio.factor, True, 0.0, text)
        published = self._published(ratio)
        if published is not None:
            return published
        low, high, sharp, slack, text = self._solved(ratio, deadline)
        low, high = (ratio.factor * _snap(end, ratio.ends()) for end in (low, high))
        if np.isnan(low):
            return AnswerBounds(nan, nan, True, slack, text)
        return AnswerBounds(min(low, high), max(low, high), sharp, slack, text)

    def _published(self, ratio: _Ratio) -> AnswerBounds | None:
        """Return the answer where one exact table holds all variables."""
        for table in self._exact(self.limits):
            if ratio.variables <= set(table.subset):
                value = ratio.factor * ratio.of_table(table.subset, table.low)
                text = _IMPOSSIBLE if np.isnan(value) else _EVERY
                return AnswerBounds(value, value, True, 0.0, text)
        return None

    def _solved(self, ratio: _Ratio, deadline: float) -> tuple[float, float, bool, float, str]:
        """Return ends, whether they are sharp, slack, text."""
        if prod(self.shape[n] for n in self.asked) > _ASKED_CELLS:
            return self._by_parts(ratio, deadline)
        everything, left = self.everything, deadline - monotonic()
        # Later attempts must have time, too; the last one takes what it takes, a moment.
        outer = min(left * 0.5, _OUTER_SECONDS)
        attempts = [(everything, left * 0.75), (None, outer), (None, outer / 5), (None, 0.0)]
        for kept, seconds in attempts:
            try:
                if kept is None:
                    kept = self._near(ratio, seconds)
                elif not self._is_quick(self._part(kept), ratio, seconds):
                    continue
                until = max(monotonic() + 2 * seconds, monotonic() + _LEAST_SECONDS)
                until = min(until, max(deadline, monotonic() + _LEAST_SECONDS))
                low, high, slack, said = self._ends(kept, ratio, until)
            except OutOfTimeError:
                continue
            if kept == everything:
                return low, high, True, slack, f"{_SHARP} {said}".strip()
            names = ", ".join(str(self.names[n]) for n in sorted(kept))
            words = _OUTER.format(plural(len(kept), "variable"), names)
            return low, high, False, slack, f"{words} {said}".strip()
        return *ratio.ends(), False, 0.0, _NOTHING

    def _by_parts(self, ratio: _Ratio, deadline: float) -> tuple[float, float, bool, float, str]:
        """Bound a question of too many variables by a product of fewer and extremes of the rest."""
        if any((v < 0).any() for v in (*ratio.above.values(), *ratio.below.values())):
            return *ratio.ends(), False, 0.0, _NOTHING
        above, below = (
            self._product_range(vectors, deadline) for vectors in (ratio.above, ratio.below)
        )
        high = above.high / below.low if below.low > 0 else inf
        low = above.low / below.high if below.high > 0 else 0.0
        return low, high, False, max(above.slack, below.slack), above.text

    def _product_range(self, vectors: Vectors, deadline: float) -> AnswerBounds:
        """Return an outer bound of an expectation of a product of nonnegative functions."""
        kept: dict[int, FloatArray] = {}
        cells = 1
        # The most informative ones: whose function is small for most levels.
        for n in sorted(vectors, key=lambda n: float((vectors[n] / vectors[n].max()).mean())):
            cells *= self.shape[n]
            if cells > _PART_CELLS:
                break
            kept[n] = vectors[n]
        part = replace(self, asked=frozenset(kept))
        found = part.of(_Ratio(1.0, kept, {}), deadline)
        low, high = _product_ends(vector for n, vector in vectors.items() if n not in kept)
        text = _FEWER.format(plural(len(kept), "variable"))
        return replace(found, low=found.low * low, high=found.high * high, text=text)

    def _is_quick(self, part: _Part, ratio: _Ratio, seconds: float) -> bool:
        """Return whether both ends can be expected within some seconds."""
        if part.cells <= HIGHS_CELLS:
            return True
        minima = 2 if not ratio.below or self._knows(ratio.below) else 2 * _RATIO_MINIMA
        return part.fits and minima * part.seconds <= seconds

    def _knows(self, vectors: Vectors) -> bool:
        """Return whether an exact table holds these variables."""
        return any(set(vectors) <= set(table.subset) for table in self._exact(self.limits))

    def _near(self, ratio: _Ratio, seconds: float) -> frozenset[int]:
        """Return the asked variables and those most dependent on them, as many as are quick."""
        kept = self.asked
        if not self._is_quick(self._part(kept), ratio, max(seconds, _LEAST_SECONDS)):
            raise OutOfTimeError
        failed = 0
        for n in self._by_dependence:
            more = kept | {n}
            if self._is_quick(self._part(more), ratio, seconds):
                kept, failed = more, 0
            else:
                failed += 1
            if failed == _FAILURES:
                break
        return kept

    @cached_property
    def _by_dependence(self) -> list[int]:
        """The other variables, the most dependent on the asked ones first."""
        score = dict.fromkeys(self.everything - self.asked, 0.0)
        for table in self.limits:
            middle = np.where(np.isfinite(table.high), (table.low + table.high) / 2, table.low)
            for n in set(table.subset) - self.asked:
                for q in self.asked & set(table.subset):
                    score[n] = max(score[n], _dependence(table.subset, middle, n, q))
        return sorted(score, key=lambda n: (-score[n], n))

    def _ends(
        self, kept: frozenset[int], ratio: _Ratio, deadline: float
    ) -> tuple[float, float, float, str]:
        """Return the ends over joints of some variables, the slack and what it is."""
        below = ratio.below or None
        try:
            program, slack = self._program(kept, deadline)
            low, high = program.bounds(ratio.above, below, slack=slack, deadline=deadline)
        except InfeasibleError:
            if below is not None and self._is_impossible(kept, ratio.below, deadline):
                return nan, nan, 0.0, _IMPOSSIBLE
            if self.is_relaxed:
                raise OutOfTimeError from None  # the program is at the limits of rounding
            self.is_relaxed = True
            self._forget()
            return self._ends(kept, ratio, deadline)
        return low, high, *self._said(kept, slack)

    def _is_impossible(self, kept: frozenset[int], below: Vectors, deadline: float) -> bool:
        program, slack = self._program(kept, deadline)
        try:
            return program.bounds(below, slack=slack, deadline=deadline)[1] < _ZERO
        except InfeasibleError:
            return False

    def _program(self, kept: frozenset[int], deadline: float) -> tuple[CellProgram, float]:
        """Return the program over some variables, and its slack."""
        if kept not in self._programs:
            part = self._part(kept)
            program = CellProgram(
                self.shape, part.tree, part.limits, part.moments, is_relaxed=self.is_relaxed
            )
            slack = 0.0
            if self.is_relaxed:
                least = _MORE_SLACK * program.least_slack(deadline) + 1e-9
                slack = max(least, self._tolerance(part.limits))
            self._programs[kept] = program, slack
        return self._programs[kept]

    def _tolerance(self, limits: Sequence[TableLimits]) -> float:
        """Return how many standard errors noisy cells may be off, all together, but for chance."""
        from scipy.special import ndtri  # slow to import

        if not (self.is_noisy and self.has_records):
            return 0.0
        cells = sum(table.low.size for table in limits)
        return float(ndtri(1.0 - _OUTSIDE / 2 / cells))

    def _said(self, kept: frozenset[int], slack: float) -> tuple[float, str]:
        """Return the slack as a share, and say what it is."""
        if not self.is_relaxed:
            return 0.0, ""
        limits = self._part(kept).limits
        most = slack * max((float(table.spread.max()) for table in limits), default=0.0)
        if not self.is_noisy:
            return most, _SLACK.format(most)
        if not self.has_records:
            return most, _NOISE_UNKNOWN.format(most)
        words = _NOISE if slack <= self._tolerance(limits) else _NOISE_AND_SLACK
        return most, words.format(slack, most)

    def _part(self, kept: frozenset[int]) -> _Part:
        """Return what the tables say about some variables, without what does not matter."""
        if kept not in self._parts:
            limits, moments = self._within(kept)
            edges = [*(t.subset for t in limits), *(m.variables for m in moments), self.asked]
            tree = JunctionTree.of(self.shape, edges, _MOST_CELLS)
            exact = self._exact(limits)
            tree = tree.pruned(self.asked, [table.subset for table in exact])
            limits = _inside(tree, limits, exact)
            moments = [m for m in moments if _is_inside(tree, m.variables)]
            known = [table.subset for table in self._exact(limits)]
            limited = [t.subset for t in limits if self.is_relaxed or not t.is_exact]
            rows = number_of_rows(self.shape, tree, known, limited)
            self._parts[kept] = _Part(limits, moments, tree, tree.cells(self.shape), rows)
        return self._parts[kept]

    def _within(self, kept: frozenset[int]) -> tuple[list[TableLimits], list["Moment"]]:
        moments = [moment for moment in self.moments if set(moment.variables) <= kept]
        if self.is_relaxed:
            return _with_margins(_restricted(self.limits, kept)), moments
        exact = self._exact(self.limits)
        others = _restricted([t for t in self.limits if not t.is_exact], kept)
        free = [m for m in moments if not any(set(m.variables) <= set(t.subset) for t in exact)]
        edges = [*(table.subset for table in others), *(m.variables for m in free)]
        # One table for each set of variables: those that share it agree.
        holders = {tuple(n for n in table.subset if n in kept): table for table in exact}
        left = []
        for subset in drop_variables(holders, edges, self.asked):
            table = holders.get(subset)
            if table is None:
                table = next(t for s, t in holders.items() if set(subset) <= set(s))
            left.append(table.margin(subset))
        return [*left, *others], free


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


def _with_margins(limits: Sequence[TableLimits]) -> list[TableLimits]:
    """Return tables with their margins, each with its own spread, without repetitions."""
    found: dict[tuple[object, ...], TableLimits] = {}
    for table in limits:
        found[table.subset, id(table)] = table
        for subset in parts_of(table.subset, min(len(table.subset) - 1, _MARGIN_ORDER)):
            margin = table.margin(subset)
            found.setdefault((subset, margin.low.round(12).tobytes(), margin.records), margin)
    return list(found.values())


def _dependence(subset: Sequence[int], table: FloatArray, n: int, q: int) -> float:
    """Return the total variation distance of two variables of a table from independence."""
    pair = sum_to(table, subset, (n, q))
    pair = pair / max(pair.sum(), 1e-300)
    apart = np.outer(pair.sum(axis=1), pair.sum(axis=0))
    return float(np.abs(pair - apart).sum() / 2)


_EVERY = "Every joint with these tables gives this value."
_SHARP = (
    "Sharp: joints with these tables give values between these ends, and both ends are reached."
)
_OUTER = (
    "Outer bound from {} ({}): the range over all joints with these tables lies within these ends."
)
_FEWER = (
    "Outer bound from {} of those asked: the range over all joints with these tables lies within "
    "these ends."
)
_NOTHING = "No bound was found in time: these are the ends over all joints, with any tables."
_IMPOSSIBLE = "The condition has probability zero in every joint with these tables."
_SLACK = (
    "The tables contradict each other: a cell may differ from the published one by up to {:.2g} of "
    "the total, the least with which a joint exists."
)
_NOISE = (
    "The tables are noisy: each cell may differ by {:.3g} standard errors (at most {:.2g} of the "
    "total), which all cells of a sample stay within with 95 % probability."
)
_NOISE_AND_SLACK = (
    "The tables are noisy and contradict each other: each cell may differ by {:.3g} standard "
    "errors (at most {:.2g} of the total), the least with which a joint exists."
)
_NOISE_UNKNOWN = (
    "The tables are noisy, and how many records they have is not known: a cell may differ by up to "
    "{:.2g} of the total, the least with which a joint exists."
)
