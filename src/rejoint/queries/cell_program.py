"""Linear program over the cells of a junction tree: all joints that meet given tables.

With ``m`` the joint's table in shares and ``s`` the table's scale, an exact cell says ``m = s t``,
a rounded one ``s (t - r) <= m <= s (t + r)``, a suppressed one ``s low <= m <= s high``, and a
known sum of suppressed cells ``sum m = s value``. The scale is known, one over the total, where no
cell of the table is uncertain, and free otherwise.

Unknowns are the cells of the cliques, the scales of tables whose total is uncertain, and for each
table whose cells have limits by how much its cells exceed the lower ones, ``p``, and fall short of
the upper ones, ``q``, in blocks shaped like the table. Rows are sums of cells in which some
variables have given levels; those of a table with limits say ``m - p = s low`` and
``m + q = s high`` for all its margins, ``m`` being the margin of the cells and ``s`` the scale, a
single column where it is not known.

Small programs go to HiGHS, with one number ``t`` by which all right sides are multiplied: ``t = 1``
asks for an expectation and ``E[denominator] = 1`` for a ratio of two (Charnes and Cooper). Others
go to the interior-point method.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, prod
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray, outer_product, parts_of, sum_to
from rejoint.queries.interior_point import (
    CellBlock,
    InteriorPoint,
    NoConvergenceError,
    SingleColumns,
    transform,
)
from rejoint.queries.junction_tree import JunctionTree, Variables

if TYPE_CHECKING:
    from rejoint.marginals.marginals import Marginals
    from rejoint.marginals.moments import Moment

Sums = tuple[tuple[NDArray[np.intp], float], ...]

#: Shares that differ by less than this are the same number: rounding of float arithmetic.
SAME_SHARE = 1e-9
#: Records behind tables where no number of records is known; it only sets how tables are weighted.
_NOMINAL_RECORDS = 1000.0


@dataclass(frozen=True, eq=False)
class TableLimits:
    """Limits of the cells of one table, in shares of its total.

    Parameters
    ----------
    subset : tuple of int
        The variables, increasing.
    low, high : array
        The limits, axes in the order of the variables.
    records : float
        The number of records behind the table, for the standard errors of its cells.
    is_scaled : bool
        Whether the total is uncertain, so that all limits may be scaled by one number.
    sums : tuple of (places, value)
        Known sums of cells, by their positions in the flat table.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> TableLimits((0,), half, half).is_exact
    True
    """

    subset: Variables
    low: FloatArray
    high: FloatArray
    records: float = _NOMINAL_RECORDS
    is_scaled: bool = False
    sums: Sums = ()

    @cached_property
    def spread(self) -> FloatArray:
        """Standard error of each cell: how far it gives way where the table cannot be met."""
        share = np.clip(np.where(np.isfinite(self.high), self.low + self.high, self.low) / 2, 0, 1)
        found: FloatArray = np.sqrt((share * (1.0 - share) + 1.0 / self.records) / self.records)
        return found

    @cached_property
    def is_exact(self) -> bool:
        """Whether all cells are known."""
        return not self.is_scaled and np.array_equal(self.low, self.high)

    def margin(self, variables: Iterable[int]) -> "TableLimits":
        """Return what the table says about fewer variables.

        Sums of limits are the limits of sums; known sums of cells are left out, so that limits of
        tables with such sums may be wider than need be.

        Examples
        --------
        >>> table = np.full((2, 2), 0.25)
        >>> TableLimits((0, 3), table, table).margin([3]).low
        array([0.5, 0.5])
        """
        kept = tuple(n for n in self.subset if n in set(variables))
        if kept == self.subset:
            return self
        low = sum_to(self.low, self.subset, kept)
        high = low if self.is_exact else sum_to(self.high, self.subset, kept)
        return TableLimits(kept, low, high, self.records, self.is_scaled)


def limits_of(tables: "Marginals") -> list[TableLimits]:
    """Return the limits of all tables that have records.

    Examples
    --------
    >>> from rejoint import Marginals
    >>> limits = limits_of(Marginals.from_tables({"a": {"x": 30, "y": 10}}))
    >>> limits[0].low, limits[0].is_exact
    (array([0.75, 0.25]), True)
    """
    records = _records(tables)
    return [
        _limits(tables, i, records[i]) for i in range(len(tables)) if float(tables.totals[i]) > 0
    ]


def _limits(tables: "Marginals", i: int, records: float) -> TableLimits:
    total = float(tables.totals[i])
    table = tables.counts_of(i) / total
    rounding = float(tables.rounding[i]) / total
    unknown = tables.unknown_of(i)
    if rounding == 0 and unknown is None:
        return TableLimits(tables.index_subsets[i], table, table, records)
    low, high = table - rounding, table + rounding
    sums: Sums = ()
    if unknown is not None:
        low.flat[unknown.places] = unknown.low / total
        high.flat[unknown.places] = unknown.high / total
        sums = tuple((unknown.places[members], value / total) for members, value in unknown.sums)
    low = np.maximum(low, 0.0)
    return TableLimits(tables.index_subsets[i], low, high, records, is_scaled=True, sums=sums)


def _records(tables: "Marginals") -> FloatArray:
    """Return the records behind each table; those of the other tables where it gives shares."""
    known = tables.totals[tables.counted & (tables.totals > 0)]
    other = float(np.median(known)) if len(known) else _NOMINAL_RECORDS
    return np.where(tables.counted, np.maximum(tables.totals, 1.0), other)


def relevant(
    limits: Sequence[TableLimits], moments: Sequence["Moment"], asked: Iterable[int]
) -> tuple[list[TableLimits], list["Moment"]]:
    """Return the tables and moments that are connected with the asked variables.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> tables = [TableLimits((n,), half, half) for n in (0, 1)]
    >>> [table.subset for table in relevant(tables, [], [1])[0]]
    [(1,)]
    """
    reached = set(asked)
    before = -1
    while len(reached) > before:
        before = len(reached)
        for edge in (*(table.subset for table in limits), *(m.variables for m in moments)):
            if reached & set(edge):
                reached |= set(edge)
    return (
        [table for table in limits if reached & set(table.subset)],
        [moment for moment in moments if reached & set(moment.variables)],
    )


def drop_variables(
    subsets: Iterable[Variables], others: Iterable[Iterable[int]], asked: Iterable[int]
) -> list[Variables]:
    """Drop variables that do not matter, where the bounds stay the same (GYO reduction).

    A variable that is not asked and is in one maximal table only can be summed out: whatever the
    rest of the joint is, this table extends it. Tables inside others say nothing more.

    Parameters
    ----------
    subsets : tuples of int
        The variables of exact tables that agree with each other.
    others : sets of variables
        Those of all other constraints; their variables stay.
    asked : variables
        These stay.

    Examples
    --------
    >>> drop_variables([(0, 1), (1, 2), (2, 3)], [], [0, 2])
    [(0, 1), (1, 2)]
    """
    stay = set(asked).union(*others)
    edges = _maximal(frozenset(subset) for subset in subsets)
    while True:
        number: dict[int, int] = {}
        for edge in edges:
            for n in edge:
                number[n] = number.get(n, 0) + 1
        alone = frozenset(n for n, tables in number.items() if tables == 1 and n not in stay)
        if not alone:
            return sorted(tuple(sorted(edge)) for edge in edges)
        edges = _maximal(edge - alone for edge in edges)


def _maximal(edges: Iterable[frozenset[int]]) -> list[frozenset[int]]:
    """Return the sets that are not inside others."""
    kept: list[frozenset[int]] = []
    having: dict[int, list[frozenset[int]]] = {}  # the sets with each variable, larger ones first
    for edge in sorted(set(edges) - {frozenset()}, key=len, reverse=True):
        around = min((having.setdefault(n, []) for n in edge), key=len)
        if not any(edge < other for other in around):
            kept.append(edge)
            for n in edge:
                having[n].append(edge)
    return kept


def agree(exact: Sequence[TableLimits], moments: Sequence["Moment"] = ()) -> bool:
    """Return whether exact tables have the same shares wherever two of them overlap.

    Moments of variables of one table must be the table's own.

    Examples
    --------
    >>> table, half = np.full((2, 2), 0.25), np.array([0.4, 0.6])
    >>> agree([TableLimits((0, 1), table, table), TableLimits((0,), half, half)])
    False
    """
    seen: dict[Variables, FloatArray] = {}
    for table in exact:
        for subset in _overlaps(table.subset, exact):
            margin = table.margin(subset)
            first = seen.setdefault(margin.subset, margin.low)
            if np.abs(first - margin.low).max() > SAME_SHARE:
                return False
    for moment in moments:
        for table in exact:
            if set(moment.variables) <= set(table.subset):
                value = moment.expectation(table.margin(moment.variables).low)
                low, high = moment.range
                if abs(value - moment.value) > SAME_SHARE * max(abs(low), abs(high), 1.0):
                    return False
    return True


def _overlaps(subset: Variables, exact: Sequence[TableLimits]) -> Iterable[Iterable[int]]:
    """Return the sets of variables on which a table may meet others."""
    if 2 ** len(subset) > len(exact):
        return {frozenset(subset).intersection(other.subset) for other in exact} - {frozenset()}
    return parts_of(subset)


def closure(exact: Sequence[TableLimits]) -> dict[Variables, TableLimits]:
    """Return all tables and their margins, each set of variables once, by size.

    Examples
    --------
    >>> table = np.full((2, 2), 0.25)
    >>> list(closure([TableLimits((0, 1), table, table)]))
    [(0,), (1,), (0, 1)]
    """
    found: dict[Variables, TableLimits] = {}
    for table in exact:
        for subset in parts_of(table.subset):
            if subset not in found:
                found[subset] = table.margin(subset)
    return dict(sorted(found.items(), key=lambda each: (len(each[0]), each[0])))


Vectors = Mapping[int, FloatArray]

#: Feasibility of the linear programs, in shares.
_TOLERANCE = 1e-9
#: Up to this many cells HiGHS is as quick as the interior-point method, and ends at a vertex.
HIGHS_CELLS = 300
#: Beyond this many cells HiGHS takes minutes.
MOST_HIGHS_CELLS = 20_000
_HIGHS_SECONDS = 5.0  # for one end
_GAP = 1e-8  # of bounds by the interior-point method, as a share of the largest value
_MOST_GAP = 5e-7  # what is accepted where rounding ends the steps
_SLACK_GAP = 1e-4  # of the least slack, in standard errors
_RATIO_GAP = 1e-7
_RATIO_STEPS = 12
_LEAST_CONDITION = 1e-7  # conditions that may be less probable are left to HiGHS
_INFEASIBLE = 2  # status of scipy's linprog
_SWEEPS = 8  # of proportional fitting, for the start
_LISTED = 12  # variables of tables whose margins are listed to count rows
_INSIDE = 0.05  # of the distance between limits: how far from both to start, at least


class InfeasibleError(Exception):
    """No joint meets the constraints."""


class OutOfTimeError(Exception):
    """The program was not solved within its time."""


class CellProgram:
    """All joints that meet some tables, as a program over the cells of a junction tree.

    Parameters
    ----------
    shape : sequence of int
        Levels of each variable.
    tree : JunctionTree
        Its cliques contain all tables, moments and questions.
    limits : sequence of TableLimits
        The tables. Exact ones must agree with each other where `is_relaxed` is false.
    moments : sequence of Moment
        Known expectations.
    is_relaxed : bool
        Whether every cell may leave its limits by a multiple of its spread: then
        ``least_slack`` finds the smallest multiple, and `bounds` needs one.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> tables = [TableLimits((n,), half, half) for n in (0, 1)]
    >>> program = CellProgram((2, 2), JunctionTree.of((2, 2), [(0, 1)]), tables)
    >>> first = np.array([1.0, 0.0])
    >>> program.bounds({0: first, 1: first})
    (0.0, 0.5)
    >>> program.bounds({0: first, 1: first}, {0: first})
    (0.0, 1.0)
    """

    def __init__(
        self,
        shape: Sequence[int],
        tree: JunctionTree,
        limits: Sequence[TableLimits],
        moments: Sequence["Moment"] = (),
        *,
        is_relaxed: bool = False,
    ) -> None:
        self.shape, self.tree, self.is_relaxed = tuple(shape), tree, is_relaxed
        self._limits, self._moments = list(limits), list(moments)
        self._alive = [_alive(shape, c, () if is_relaxed else limits) for c in tree.cliques]
        self._cells = sum(int(alive.sum()) for alive in self._alive)
        self._interiors: dict[float | None, InteriorPoint] = {}
        self._systems: dict[float | None, System] = {}

    def bounds(
        self,
        numerator: Vectors,
        denominator: Vectors | None = None,
        *,
        slack: float = 0.0,
        deadline: float = inf,
    ) -> tuple[float, float]:
        """Return the least and the largest value of an expectation, or of a ratio of two.

        Parameters
        ----------
        numerator, denominator : mapping from variables to arrays
            Functions of single variables, whose product is taken.
        slack : float
            Multiple of its spread by which every cell may leave its limits.
        deadline : float
            When to give up, by :func:`time.monotonic`.

        Examples
        --------
        >>> program = CellProgram((2,), JunctionTree.of((2,), [(0,)]), [])
        >>> program.bounds({0: np.array([1.0, 3.0])})
        (1.0, 3.0)
        """
        if self._cells > HIGHS_CELLS:
            try:
                return self._interior_bounds(numerator, denominator, slack, deadline)
            except NoConvergenceError:
                if self._cells > MOST_HIGHS_CELLS:
                    raise OutOfTimeError from None
        ends = [self._solve(sign, numerator, denominator, slack, deadline) for sign in (1.0, -1.0)]
        low, high = ends[0], -ends[1]
        return (low, high) if low <= high else (high, low)  # equal but for rounding

    def _interior_bounds(
        self, numerator: Vectors, denominator: Vectors | None, slack: float, deadline: float
    ) -> tuple[float, float]:
        """Return both ends by the interior-point method; a ratio by Dinkelbach's iteration."""
        program = self._interior(slack)
        cost = self._over_unknowns(numerator, program.alive)
        known = 1.0 if denominator is None else self._published(denominator)
        if denominator is None or known is not None:
            ends = [_least(program, sign * cost, known or 0.0, deadline) for sign in (1.0, -1.0)]
        else:
            norm = self._over_unknowns(denominator, program.alive)
            ends = [_least_ratio(program, sign * cost, norm, deadline) for sign in (1.0, -1.0)]
        return ends[0], -ends[1]

    def _published(self, vectors: Vectors) -> float | None:
        """Return an expectation where an exact table holds all of its variables."""
        for table in () if self.is_relaxed else self._limits:
            if table.is_exact and set(vectors) <= set(table.subset):
                return expect(table.subset, table.low, vectors)
        return None

    def _over_unknowns(self, vectors: Vectors, alive: NDArray[np.bool_]) -> FloatArray:
        """Return a product of functions of single variables at the cells of all blocks."""
        clique = self.tree.holder(vectors)
        values = _outer(self.shape, self.tree.cliques[clique], vectors)
        found = np.zeros(len(alive))
        start = sum(each.size for each in self._alive[:clique])
        found[start : start + values.size] = np.where(self._alive[clique], values, 0.0).ravel()
        return found

    def _interior(self, slack: float | None) -> InteriorPoint:
        """Return the program for the interior-point method; slack None leaves the slack free."""
        if slack not in self._interiors:
            self._interiors[slack] = self._assemble(slack).interior()
        return self._interiors[slack]

    def _system(self, slack: float | None) -> "System":
        """Return the program for HiGHS."""
        if slack not in self._systems:
            self._systems[slack] = self._assemble(slack).system()
        return self._systems[slack]

    def _assemble(self, slack: float | None) -> "_Assembly":
        made = _Assembly(self.shape, self.tree, self.is_relaxed, slack)
        made.add_tables(self._alive, self._limits, self._moments)
        return made

    def least_slack(self, deadline: float = inf) -> float:
        """Return the smallest slack with which a joint exists.

        Examples
        --------
        >>> low, high = np.array([0.5, 0.5]), np.array([0.6, 0.4])
        >>> tables = [TableLimits((0,), t, t, 100.0) for t in (low, high)]
        >>> tree = JunctionTree.of((2,), [(0,)])
        >>> round(CellProgram((2,), tree, tables, is_relaxed=True).least_slack(), 3)
        0.99
        """
        if self._cells > HIGHS_CELLS:
            try:
                program = self._interior(None)
                cost = np.zeros(len(program.alive))
                cost[-1] = 1.0  # the slack is the last unknown
                found = program.minimize(cost, _SLACK_GAP, deadline)
                if found.gap <= 10 * _SLACK_GAP:
                    return max(0.0, found.bound + found.gap)
            except NoConvergenceError:
                pass
            if self._cells > MOST_HIGHS_CELLS:
                raise OutOfTimeError
        return max(0.0, self._solve(1.0, None, None, None, deadline))

    def _solve(
        self,
        sign: float,
        numerator: Vectors | None,
        denominator: Vectors | None,
        slack: float | None,
        deadline: float,
    ) -> float:
        """Minimize an expectation or a ratio, or the slack where there is no numerator."""
        from scipy.sparse import csr_array, vstack  # slow to import

        equal, alive = self._system(slack)
        cost, norm = np.zeros(len(alive)), np.zeros(len(alive))
        if numerator is None:
            cost[-1] = 1.0  # the slack is the last unknown
        else:
            cost = sign * self._over_unknowns(numerator, alive)
        if denominator is not None:
            norm = self._over_unknowns(denominator, alive)
        multiple = float(denominator is None)
        scaled = csr_array(np.append(norm[alive], multiple)[None])
        right = np.zeros(equal.shape[0] + 1)
        right[-1] = 1.0
        return run_highs(np.append(cost[alive], 0.0), vstack([equal, scaled]), right, deadline)


class System(NamedTuple):
    """A program for HiGHS: rows over the live unknowns and ``t``, and which unknowns live."""

    equal: Any
    alive: NDArray[np.bool_]


def _least(program: InteriorPoint, cost: FloatArray, divisor: float, deadline: float) -> float:
    """Return the least cost divided by a number, certain enough for the quotient."""
    if not divisor > 0:
        raise InfeasibleError
    found = program.minimize(cost, _GAP * divisor, deadline)
    if found.gap > _MOST_GAP * divisor * float(np.abs(cost).max(initial=0.0)):
        raise NoConvergenceError
    return found.bound / divisor


def _least_ratio(
    program: InteriorPoint, cost: FloatArray, norm: FloatArray, deadline: float
) -> float:
    """Return the least ratio: the one at which the least of ``cost - ratio norm`` is zero."""
    unknowns = program.first
    for _ in range(_RATIO_STEPS):
        below = float(norm @ unknowns)
        if below < _LEAST_CONDITION:
            break
        ratio = float(cost @ unknowns) / below
        parts = cost - ratio * norm
        size = max(1.0, float(np.abs(parts).max()))
        found = program.minimize(parts, _GAP * below, deadline)
        if found.gap > _MOST_GAP * below * size:
            break
        unknowns = found.unknowns
        after = float(norm @ unknowns)
        if after > _LEAST_CONDITION and abs(found.bound) < _RATIO_GAP * after * size:
            return ratio + min(found.bound, 0.0) / after
    raise NoConvergenceError


def expect(subset: Sequence[int], table: FloatArray, vectors: Vectors) -> float:
    """Return the expectation of a product of functions of single variables under a table.

    Examples
    --------
    >>> expect((0, 1), np.array([[0.1, 0.2], [0.3, 0.4]]), {1: np.array([0.5, 1.0])})
    0.8
    """
    for n in subset:
        table = np.tensordot(vectors[n], table, (0, 0)) if n in vectors else table.sum(axis=0)
    return float(table)


def _outer(shape: Sequence[int], clique: Variables, vectors: Vectors) -> FloatArray:
    """Return a product of functions of single variables at the cells of a clique."""
    return outer_product(vectors.get(n, np.ones(shape[n])) for n in clique)


def _alive(
    shape: Sequence[int], clique: Variables, limits: Sequence[TableLimits]
) -> NDArray[np.bool_]:
    """Return the cells of a clique that no table says are empty."""
    alive = np.ones([shape[n] for n in clique], dtype=bool)
    for table in limits:
        if table.high.min() > 0 or not set(table.subset) & set(clique):
            continue
        part = table.margin(clique)
        if part.high.min() <= 0:
            sizes = [shape[n] if n in part.subset else 1 for n in clique]
            alive &= (part.high > 0).reshape(sizes)
    return alive


def run_highs(cost: FloatArray, equal: Any, right: FloatArray, deadline: float) -> float:
    """Return the least ``cost @ x`` over ``equal @ x = right, x >= 0``.

    HiGHS runs in a thread of its own, so that Ctrl-C is heard at once. It cannot be stopped before
    its time is over, and Python waits for it at the end.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> run_highs(np.array([1.0, 2.0]), csr_array([[1.0, 1.0]]), np.ones(1), np.inf)
    1.0
    """
    from scipy.optimize import linprog  # slow to import

    left = deadline - monotonic()
    if left <= 0:
        raise OutOfTimeError
    options = {
        "primal_feasibility_tolerance": _TOLERANCE,
        "dual_feasibility_tolerance": _TOLERANCE,
        "time_limit": min(left, _HIGHS_SECONDS),
    }
    outcome: list[Any] = []

    def work() -> None:
        try:
            found = linprog(cost, A_eq=equal, b_eq=right, method="highs", options=options)
        except Exception as error:  # raised again below, in the thread that asked
            found = error
        outcome.append(found)

    thread = Thread(target=work)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)
    found = outcome[0]
    if isinstance(found, Exception):
        raise found
    if found.status == _INFEASIBLE:
        raise InfeasibleError
    if found.status != 0:
        raise OutOfTimeError
    return float(found.fun)


def number_of_rows(
    shape: Sequence[int],
    tree: JunctionTree,
    exact: Iterable[Variables],
    limited: Iterable[Variables] = (),
) -> int:
    """Return how many rows the program has with tables of these variables.

    Examples
    --------
    >>> number_of_rows((2, 2), JunctionTree.of((2, 2), [(0, 1)]), [(0, 1)])
    4
    """
    exact = list(exact)
    margins = {subset for table in exact for subset in parts_of(table, _LISTED)}
    found = len(tree.cliques) + sum(prod(shape[n] for n in t) for t in exact if len(t) > _LISTED)
    found += sum(prod(shape[n] - 1 for n in subset) for subset in margins)
    found += sum(prod(shape[n] for n in separator) - 1 for _, _, separator in tree.links)
    return found + sum(2 * prod(shape[n] for n in table) for table in limited)


@dataclass(eq=False)
class _Assembly:
    """Collects the blocks, columns and rows."""

    shape: tuple[int, ...]
    tree: JunctionTree
    is_relaxed: bool
    slack: float | None
    blocks: list[CellBlock] = field(default_factory=list)
    right: list[FloatArray] = field(default_factory=list)
    rows: int = 0
    sums: list[int] = field(default_factory=list)
    columns: list[list[tuple[NDArray[np.intp], FloatArray]]] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    most: list[float] = field(default_factory=list)

    def add_tables(
        self,
        alive: Sequence[NDArray[np.bool_]],
        limits: Sequence[TableLimits],
        moments: Sequence["Moment"],
    ) -> None:
        """Add everything; the cells of the cliques come first, clique after clique."""
        self.add_cliques(alive, limits)
        self.add_exact([] if self.is_relaxed else [table for table in limits if table.is_exact])
        self.add_separators()
        with_limits = [table for table in limits if self.is_relaxed or not table.is_exact]
        most_slack = self.add_slack(with_limits, moments) if self.is_relaxed else 0.0
        for table in with_limits:
            self.add_limits(table, most_slack)
        for moment in moments:
            self.add_moment(moment, most_slack)

    def interior(self) -> InteriorPoint:
        """Return what was collected for the interior-point method."""
        single = self.single_columns()
        if not np.isfinite(single.most).all():
            raise NoConvergenceError  # a scale may be anything: HiGHS takes this
        return InteriorPoint(self.blocks, single, np.concatenate(self.right), self.sums)

    def system(self) -> System:
        """Return what was collected for HiGHS."""
        from scipy.sparse import csr_array, hstack  # slow to import

        single = self.single_columns().matrix
        right = np.concatenate(self.right)[:, None]
        live = [block.alive.ravel() for block in self.blocks]
        parts = [
            block.matrix(self.rows)[:, cells]
            for block, cells in zip(self.blocks, live, strict=True)
        ]
        equal = hstack([*parts, csr_array(single), csr_array(-right)], format="csr")
        return System(equal, np.concatenate([*live, np.ones(single.shape[1], dtype=bool)]))

    def single_columns(self) -> SingleColumns:
        """Return the single unknowns; the slack is the last one."""
        order = list(range(len(self.columns)))
        if self.is_relaxed and self.slack is None:
            order = [*order[1:], 0]
        matrix = np.zeros((self.rows, len(order)))
        for place, column in enumerate(order):
            for rows, values in self.columns[column]:
                matrix[rows, place] += values
        first, most = (np.array(each, dtype=np.float64)[order] for each in (self.first, self.most))
        return SingleColumns(matrix, first, most)

    def new_rows(self, right: FloatArray) -> NDArray[np.intp]:
        """Start rows with this right side."""
        self.right.append(np.asarray(right, dtype=np.float64).ravel())
        self.rows += self.right[-1].size
        return np.arange(self.rows - self.right[-1].size, self.rows)

    def new_column(self, first: float, most: float) -> int:
        """Start a single unknown."""
        self.columns.append([])
        self.first.append(first)
        self.most.append(most)
        return len(self.columns) - 1

    def add_cliques(
        self, alive: Sequence[NDArray[np.bool_]], limits: Sequence[TableLimits]
    ) -> None:
        """Add the cells of the cliques; each clique adds up to one."""
        for variables, live in zip(self.tree.cliques, alive, strict=True):
            if not live.any():
                raise InfeasibleError  # published zeros leave no cell
            first = _fitted(variables, live, limits)
            block = CellBlock(live.shape, live.ravel(), first, 1.0, is_most=True)
            rows = self.new_rows(np.ones(1))
            block.sum_cells(rows, np.array([live.size - 1]))
            self.sums.append(int(rows[0]))
            self.blocks.append(block)

    def add_exact(self, exact: Sequence[TableLimits]) -> None:
        """Add independent rows: cells without last levels of all tables and their margins."""
        for subset, table in closure(exact).items():
            rows = self.new_rows(table.low[tuple(slice(0, -1) for _ in subset)])
            clique = self.tree.holder(subset)
            self.blocks[clique].sum_cells(rows, self.places(clique, subset))

    def add_separators(self) -> None:
        """Let neighboring cliques have the same margins."""
        for old, new, separator in self.tree.links:
            for subset in parts_of(separator):
                rows = self.new_rows(np.zeros(prod(self.shape[n] - 1 for n in subset)))
                for clique, sign in ((old, 1.0), (new, -1.0)):
                    self.blocks[clique].sum_cells(rows, self.places(clique, subset), sign)

    def places(self, clique: int, subset: Variables, *, whole: bool = False) -> NDArray[np.intp]:
        """Return where the margins of a table are in the transform of a clique.

        Without last levels, or whole: there a last level means the sum over all levels.
        """
        variables = self.tree.cliques[clique]
        place = np.zeros((1,) * len(variables), dtype=np.intp)
        for axis, n in enumerate(variables):
            size = self.shape[n]
            along = [1] * len(variables)
            level = np.array([size - 1])
            if n in subset:
                along[axis] = size if whole else size - 1
                level = np.arange(along[axis])
            place = place * size + level.reshape(along)
        return place.ravel()

    def add_slack(self, limits: Sequence[TableLimits], moments: Sequence["Moment"]) -> float:
        """Return the largest slack that is needed; add a column for it where it is free."""
        if self.slack is not None:
            return self.slack
        # The joint with equal cells needs no more than this.
        most = 0.0
        for table in limits:
            even = 1.0 / table.low.size
            off = np.maximum(table.low - even, even - table.high)
            most = max(most, float((off / np.maximum(table.spread, 1e-12)).max()))
        for moment in moments:
            off_moment = moment.range[1] - moment.range[0]
            most = max(most, off_moment / max(spread_of_moment(moment), 1e-12))
        self.new_column(0.5 * most + 1e-3, most + 1e-3)
        return most

    def add_limits(self, table: TableLimits, most_slack: float) -> None:
        """Add a table whose cells have limits."""
        low, high = table.low.ravel(), table.high.ravel()
        spread = table.spread.ravel() if self.is_relaxed else np.zeros(low.size)
        relaxed = most_slack * float(spread.sum())
        most = 1.0
        if table.is_scaled:
            most = (1.0 + relaxed) / float(low.sum()) if low.sum() > 0 else inf
        column = self.new_column(1.0, most) if table.is_scaled else None
        clique = self.tree.holder(table.subset)
        margin = self._first_margin(clique, table.subset)
        open_ended = ~np.isfinite(high)
        live = np.ones(low.size, dtype=bool) if self.is_relaxed else high > low
        high = np.where(open_ended, 0.0, high)
        inside = _INSIDE * np.abs(high - low) + self.first_slack * spread + 1e-6
        for limit, sign, cells in ((low, -1.0, live), (high, 1.0, live & ~open_ended)):
            first = np.where(cells, np.maximum(sign * (limit - margin), inside), 0.0)
            total = most * float(limit.sum()) if sign > 0 else 1.0
            block = CellBlock(table.low.shape, cells, first, total + relaxed)
            wide = np.where(open_ended, 0.0, spread) if sign > 0 else spread
            rows = self._add_side(block, clique, table, limit, wide, sign, column)
            if sign > 0 and open_ended.any():
                self._add_open_ended(table, open_ended, margin, rows)
        for places, value in table.sums:
            self._add_known_sum(table, places, value, column, float(spread[places].sum()))

    @property
    def first_slack(self) -> float:
        """Where the slack starts."""
        if not self.is_relaxed:
            return 0.0
        return self.first[0] if self.slack is None else self.slack

    def _add_side(
        self,
        block: CellBlock,
        clique: int,
        table: TableLimits,
        limit: FloatArray,
        spread: FloatArray,
        sign: float,
        column: int | None,
    ) -> NDArray[np.intp]:
        """Add ``m + sign * block = scale * limit + sign * slack * spread``, for all margins."""
        shape = table.low.shape
        sums, more = (transform(each.reshape(shape)) for each in (limit, sign * spread))
        fixed = 0.0 if self.slack is None else self.slack
        rows = self.new_rows((0.0 if table.is_scaled else 1.0) * sums + fixed * more)
        self.blocks[clique].sum_cells(rows, self.places(clique, table.subset, whole=True))
        block.sum_cells(rows, np.arange(limit.size), sign)
        if column is not None:
            self.columns[column].append((rows, -sums))
        if self.is_relaxed and self.slack is None:
            self.columns[0].append((rows, -more))
        self.blocks.append(block)
        return rows

    def _add_open_ended(
        self,
        table: TableLimits,
        cells: NDArray[np.bool_],
        margin: FloatArray,
        rows: NDArray[np.intp],
    ) -> None:
        """Let cells without upper limit be what they are: ``m - block = 0`` there."""
        block = CellBlock(table.low.shape, cells, np.where(cells, margin + 1e-6, 0.0), 1.0)
        block.sum_cells(rows, np.arange(margin.size), -1.0)
        self.blocks.append(block)

    def _add_known_sum(
        self,
        table: TableLimits,
        places: NDArray[np.intp],
        value: float,
        column: int | None,
        spread: float,
    ) -> None:
        """Add a known sum of cells."""
        clique = self.tree.holder(table.subset)
        inside = np.zeros(table.low.size)
        inside[places] = 1.0
        sizes = [self.shape[n] if n in table.subset else 1 for n in self.tree.cliques[clique]]
        weights = np.broadcast_to(inside.reshape(sizes), self.blocks[clique].sizes).ravel()
        for rows in self._add_expectation(clique, weights, value, spread, 1.0 + value):
            if column is not None:
                self.right[-1] = self.right[-1] - value
                self.columns[column].append((rows, np.array([-value])))

    def add_moment(self, moment: "Moment", most_slack: float) -> None:
        """Add a known expectation of a product."""
        clique = self.tree.holder(moment.variables)
        vectors = dict(zip(moment.variables, moment.vectors, strict=True))
        weights = _outer(self.shape, self.tree.cliques[clique], vectors)
        spread = spread_of_moment(moment)
        width = moment.range[1] - moment.range[0] + most_slack * spread
        for _ in self._add_expectation(clique, weights.ravel(), moment.value, spread, width):
            pass

    def _add_expectation(
        self, clique: int, weights: FloatArray, value: float, spread: float, width: float
    ) -> Iterator[NDArray[np.intp]]:
        """Add a known sum of weighted cells: one row, or two limits where there is a slack."""
        fixed = 0.0 if self.slack is None else self.slack
        for sign in (-1.0, 1.0) if self.is_relaxed else (0.0,):
            rows = self.new_rows(np.array([value + sign * fixed * spread]))
            self.blocks[clique].weight_cells(int(rows[0]), weights)
            if sign:
                column = self.new_column(0.5 * width, 2.0 * width)
                self.columns[column].append((rows, np.array([sign])))
                if self.slack is None:
                    self.columns[0].append((rows, np.array([-sign * spread])))
            yield rows

    def _first_margin(self, clique: int, subset: Variables) -> FloatArray:
        """Return the table of the cells that a clique starts with."""
        block = self.blocks[clique]
        return sum_to(block.first.reshape(block.sizes), self.tree.cliques[clique], subset).ravel()


def spread_of_moment(moment: "Moment") -> float:
    """Return how far a moment gives way where it cannot be met, as a table's cells do.

    Examples
    --------
    >>> from rejoint.marginals.moments import Moment
    >>> spread_of_moment(Moment((0,), (np.array([0.0, 1.0]),), 0.3, "mean of a"))
    0.01
    """
    return 0.01 * (moment.range[1] - moment.range[0])


def _fitted(
    variables: Variables, alive: NDArray[np.bool_], limits: Sequence[TableLimits]
) -> FloatArray:
    """Return positive cells that nearly have the tables, by proportional fitting."""
    even = alive / alive.sum()
    cells = even
    inside = [table for table in limits if set(table.subset) <= set(variables)]
    for _ in range(_SWEEPS):
        for table in inside:
            gone = tuple(axis for axis, n in enumerate(variables) if n not in table.subset)
            margin = cells.sum(axis=gone, keepdims=True)
            goal = _middle(table).reshape(margin.shape)
            empty = np.zeros_like(margin)
            cells = cells * np.divide(goal, margin, out=empty, where=margin > 0)
    share = 0.01 if alive.all() else 0.5
    found: FloatArray = ((1.0 - share) * cells / max(cells.sum(), 1e-300) + share * even).ravel()
    return found


def _middle(table: TableLimits) -> FloatArray:
    """Return a table in the middle of its limits, positive, with the sum one."""
    if table.is_exact:
        return np.maximum(table.low, 0.0)
    high = np.where(np.isfinite(table.high), table.high, table.low)
    middle = np.maximum((table.low + high) / 2, 1e-6)
    shares: FloatArray = middle / middle.sum()
    return shares
