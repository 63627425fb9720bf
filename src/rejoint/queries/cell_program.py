"""Linear program over the cells of a junction tree: all joints that meet given tables.

Unknowns are the cells of the cliques, the scales of tables whose total is uncertain, and one
number ``t`` by which everything is multiplied. All constraints are homogeneous, so that ``t = 1``
asks for an expectation and ``E[denominator] = 1`` for a ratio of two (Charnes and Cooper).

Small programs go to HiGHS as they are. For the interior-point method there are further unknowns
for each table whose cells have limits: by how much its cells exceed the lower limits, ``p``, and
fall short of the upper ones, ``q``, in blocks shaped like the table. Rows are sums of cells in
which some variables have given levels; those of a table with limits say ``m - p = s low`` and
``m + q = s high`` for all its margins, ``m`` being the margin of the cells and ``s`` the scale, a
single column where it is not known.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations
from math import inf, prod
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rejoint.model import FloatArray
from rejoint.queries.interior_point import (
    CellBlock,
    InteriorPoint,
    NoConvergenceError,
    SingleColumns,
    transform,
)
from rejoint.queries.junction_tree import JunctionTree, Variables
from rejoint.queries.table_limits import TableLimits, closure

if TYPE_CHECKING:
    from rejoint.marginals.moments import Moment

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


@dataclass
class _Rows:
    """Rows of a sparse matrix, collected in parts."""

    number: int = 0
    rows: list[NDArray[np.intp]] = field(default_factory=list)
    columns: list[NDArray[np.intp]] = field(default_factory=list)
    values: list[FloatArray] = field(default_factory=list)

    def new(self, number: int) -> int:
        """Start some rows; return the first."""
        self.number += number
        return self.number - number

    def add(self, rows: Any, columns: Any, values: Any) -> None:
        """Add entries; those of the same place add up."""
        rows, columns, values = np.broadcast_arrays(rows, columns, values)
        self.rows.append(rows.ravel())
        self.columns.append(columns.ravel())
        self.values.append(np.asarray(values, dtype=np.float64).ravel())

    def matrix(self, width: int) -> Any:
        """Return the sparse matrix, None if there are no rows."""
        from scipy.sparse import csr_array  # slow to import

        if not self.number:
            return None
        places = np.concatenate(self.rows), np.concatenate(self.columns)
        return csr_array((np.concatenate(self.values), places), shape=(self.number, width))


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
        self._columns, width = [], 0
        for alive in self._alive:
            column = np.full(alive.shape, -1, dtype=np.intp)
            column[alive] = np.arange(width, width + int(alive.sum()))
            width += int(alive.sum())
            self._columns.append(column)
        self._cells = width
        scaled = [table for table in limits if table.is_scaled]
        self._scales = {id(table): width + k for k, table in enumerate(scaled)}
        self._one = width + len(scaled)  # the column that everything is multiplied by
        self._slack = self._one + 1
        self._width = self._slack + 1
        self._equal, self._below = _Rows(), _Rows()
        self._interiors: dict[float | None, InteriorPoint] = {}

    @cached_property
    def _matrices(self) -> tuple[Any, Any]:
        """The constraints for HiGHS: rows that are zero, rows that are at most zero."""
        limits, moments = self._limits, self._moments
        self._add_sum()
        for old, new, separator in self.tree.links:
            self._add_separator(old, new, separator)
        exact = [] if self.is_relaxed else [table for table in limits if table.is_exact]
        self._add_exact(exact)
        for table in limits:
            if self.is_relaxed or not table.is_exact:
                self._add_limits(table)
        for moment in moments:
            self._add_moment(moment)
        return self._equal.matrix(self._width), self._below.matrix(self._width)

    def _add_sum(self) -> None:
        row = self._equal.new(1)
        cells = self._columns[0][self._alive[0]]
        self._equal.add(row, cells, 1.0)
        self._equal.add(row, self._one, -1.0)

    def _add_separator(self, old: int, new: int, separator: Variables) -> None:
        number = prod(self.shape[n] for n in separator)
        first = self._equal.new(number)
        for clique, sign in ((old, 1.0), (new, -1.0)):
            cells, columns = self._margin(clique, separator)
            self._equal.add(first + cells, columns, sign)

    def _margin(self, clique: int, subset: Variables) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return, for each live cell of a clique, the cell of a table that it is in; its column."""
        variables = self.tree.cliques[clique]
        grid = np.indices(self._alive[clique].shape, sparse=True)
        cell = np.zeros((), dtype=np.intp)
        for n in subset:
            cell = cell * self.shape[n] + grid[variables.index(n)]
        alive = self._alive[clique]
        return np.broadcast_to(cell, alive.shape)[alive], self._columns[clique][alive]

    def _add_exact(self, exact: Sequence[TableLimits]) -> None:
        """Add independent rows: cells without last levels of all tables and their margins."""
        for subset, table in closure(exact).items():
            values = table.low[tuple(slice(0, -1) for _ in subset)]
            place = np.full(table.low.shape, -1, dtype=np.intp)
            place[tuple(slice(0, -1) for _ in subset)] = np.arange(values.size).reshape(
                values.shape
            )
            if not values.size:
                continue
            first = self._equal.new(values.size)
            cells, columns = self._margin(self.tree.holder(subset), subset)
            rows = place.ravel()[cells]
            kept = rows >= 0
            self._equal.add(first + rows[kept], columns[kept], 1.0)
            self._equal.add(first + np.arange(values.size), self._one, -values.ravel())

    def _add_limits(self, table: TableLimits) -> None:
        """Add the limits of each cell, and known sums of cells."""
        cells, columns = self._margin(self.tree.holder(table.subset), table.subset)
        low, high, spread = table.low.ravel(), table.high.ravel(), table.spread.ravel()
        scale = self._scales.get(id(table), self._one)
        same = (low == high) & (not self.is_relaxed)
        for side, limit, kept in (
            (0.0, low, same & (low > 0)),
            (1.0, high, ~same & np.isfinite(high) & (self.is_relaxed | (high > 0))),
            (-1.0, low, ~same & (low > 0)),
        ):
            rows = self._below if side else self._equal
            sign = side or 1.0
            place = np.full(low.size, -1, dtype=np.intp)
            number = int(kept.sum())
            place[kept] = rows.new(number) + np.arange(number)
            inside = place[cells] >= 0
            rows.add(place[cells][inside], columns[inside], sign)
            rows.add(place[kept], scale, -sign * limit[kept])
            if side and self.is_relaxed:
                rows.add(place[kept], self._slack, -spread[kept])
        for places, value in table.sums:
            self._add_sums(cells, columns, places, value, scale, float(spread[places].sum()))

    def _add_sums(
        self, cells: Any, columns: Any, places: Any, value: float, scale: int, spread: float
    ) -> None:
        inside = columns[np.isin(cells, places)]
        for sign in (1.0, -1.0) if self.is_relaxed else (0.0,):
            rows = self._below if sign else self._equal
            row = rows.new(1)
            rows.add(row, inside, sign or 1.0)
            rows.add(row, scale, -(sign or 1.0) * value)
            if sign:
                rows.add(row, self._slack, -spread)

    def _add_moment(self, moment: "Moment") -> None:
        coefficients, columns = self._product(
            dict(zip(moment.variables, moment.vectors, strict=True))
        )
        spread = 0.01 * (moment.range[1] - moment.range[0])
        for sign in (1.0, -1.0) if self.is_relaxed else (0.0,):
            rows = self._below if sign else self._equal
            row = rows.new(1)
            rows.add(row, columns, (sign or 1.0) * coefficients)
            rows.add(row, self._one, -(sign or 1.0) * moment.value)
            if sign:
                rows.add(row, self._slack, -spread)

    def _product(self, vectors: Vectors) -> tuple[FloatArray, NDArray[np.intp]]:
        """Return a product of functions of single variables at the live cells of one clique."""
        clique = self.tree.holder(vectors)
        values = np.ones(self._alive[clique].shape)
        for axis, n in enumerate(self.tree.cliques[clique]):
            if n in vectors:
                along = [1] * values.ndim
                along[axis] = self.shape[n]
                values = values * np.asarray(vectors[n]).reshape(along)
        alive = self._alive[clique]
        return values[alive], self._columns[clique][alive]

    def objective(self, vectors: Vectors) -> FloatArray:
        """Return the coefficients of an expectation of a product of functions of single variables.

        Examples
        --------
        >>> program = CellProgram((2, 2), JunctionTree.of((2, 2), [(0, 1)]), [])
        >>> program.objective({1: np.array([1.0, 0.0])})[:4]
        array([1., 0., 1., 0.])
        """
        found = np.zeros(self._width)
        values, columns = self._product(vectors)
        found[columns] = values
        return found

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
        cost = self.objective(numerator)
        unit = np.zeros(self._width)
        unit[self._one] = 1.0
        norm = unit if denominator is None else self.objective(denominator)
        low = self._solve(cost, norm, slack, deadline)
        high = -self._solve(-cost, norm, slack, deadline)
        return (low, high) if low <= high else (high, low)  # equal but for rounding

    def _interior_bounds(
        self, numerator: Vectors, denominator: Vectors | None, slack: float, deadline: float
    ) -> tuple[float, float]:
        """Return both ends by the interior-point method; a ratio by Dinkelbach's iteration."""
        program = self._interior(slack)
        cost = self._over_unknowns(numerator, program)
        known = 1.0 if denominator is None else self._published(denominator)
        if denominator is None or known is not None:
            ends = [_least(program, sign * cost, known or 0.0, deadline) for sign in (1.0, -1.0)]
        else:
            norm = self._over_unknowns(denominator, program)
            ends = [_least_ratio(program, sign * cost, norm, deadline) for sign in (1.0, -1.0)]
        return ends[0], -ends[1]

    def _published(self, vectors: Vectors) -> float | None:
        """Return an expectation where an exact table holds all of its variables."""
        for table in () if self.is_relaxed else self._limits:
            if table.is_exact and set(vectors) <= set(table.subset):
                return expect(table.subset, table.low, vectors)
        return None

    def _over_unknowns(self, vectors: Vectors, program: InteriorPoint) -> FloatArray:
        """Return a product of functions of single variables at the cells of one clique."""
        clique = self.tree.holder(vectors)
        found = np.zeros(len(program.alive))
        start = sum(alive.size for alive in self._alive[:clique])
        places = start + np.flatnonzero(self._alive[clique])
        found[places] = self._product(vectors)[0]
        return found

    def _interior(self, slack: float | None) -> InteriorPoint:
        """Return the program for the interior-point method; slack None leaves the slack free."""
        if slack not in self._interiors:
            made = interior_program(
                self.shape,
                self.tree,
                self._alive,
                self._limits,
                self._moments,
                slack=slack,
                is_relaxed=self.is_relaxed,
            )
            self._interiors[slack] = made
        return self._interiors[slack]

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
        cost, norm = np.zeros(self._width), np.zeros(self._width)
        cost[self._slack] = norm[self._one] = 1.0
        return max(0.0, self._solve(cost, norm, None, deadline))

    def _solve(
        self, cost: FloatArray, norm: FloatArray, slack: float | None, deadline: float
    ) -> float:
        """Minimize ``cost`` where ``norm`` is one; slack None leaves the slack free."""
        from scipy.sparse import csr_array, vstack  # slow to import

        equal, below = self._matrices
        if slack is not None:
            equal, below = (_fold(m, self._slack, self._one, slack) for m in (equal, below))
            cost, norm = cost[:-1], norm[:-1]
        equal = vstack([equal, csr_array(norm[None])])
        right = np.zeros(equal.shape[0])
        right[-1] = 1.0
        found = run_highs(cost, below, equal, right, deadline)
        return float(found.fun)


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


def _fold(matrix: Any, slack: int, one: int, factor: float) -> Any:
    """Replace the column of the slack, the last one, by a multiple of ``t``."""
    from scipy.sparse import csc_array, hstack  # slow to import

    if matrix is None:
        return None
    matrix = matrix.tocsc()
    moved = matrix[:, [one]] + factor * matrix[:, [slack]]
    return hstack([matrix[:, :one], csc_array(moved)]).tocsr()


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


def run_highs(cost: FloatArray, below: Any, equal: Any, right: FloatArray, deadline: float) -> Any:
    """Minimize ``cost @ x`` over ``equal @ x = right, below @ x <= 0, x >= 0``.

    HiGHS runs in a thread of its own, so that Ctrl-C is heard at once. It cannot be stopped before
    its time is over, and Python waits for it at the end.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> run_highs(np.array([1.0, 2.0]), None, csr_array([[1.0, 1.0]]), np.ones(1), np.inf).fun
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
            zeros = None if below is None else np.zeros(below.shape[0])
            found = linprog(
                cost, below, zeros, equal, right, bounds=(0, None), method="highs", options=options
            )
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
    return found


# --- for the interior-point method ----------------------------------------------------------------


def interior_program(
    shape: Sequence[int],
    tree: JunctionTree,
    alive: Sequence[NDArray[np.bool_]],
    limits: Sequence[TableLimits],
    moments: Sequence["Moment"] = (),
    *,
    slack: float | None = 0.0,
    is_relaxed: bool = False,
) -> InteriorPoint:
    """Return the program of all joints with given tables.

    The cells of the cliques come first among its unknowns, clique after clique.

    Parameters
    ----------
    shape, tree, limits, moments
        As for :class:`~rejoint.queries.cell_program.CellProgram`.
    alive : sequence of arrays of bool
        For each clique, the cells that no table says are empty.
    slack : float or None
        Multiple of its spread by which every cell may leave its limits; None makes it the last
        unknown.
    is_relaxed : bool
        Whether there is a slack.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> tables = [TableLimits((n,), half, half) for n in (0, 1)]
    >>> tree = JunctionTree.of((2, 2), [(0, 1)])
    >>> program = interior_program((2, 2), tree, [np.ones((2, 2), dtype=bool)], tables)
    >>> round(program.minimize(np.array([-1.0, 0.0, 0.0, 0.0])).bound, 6)
    -0.5
    """
    made = _Assembly(tuple(shape), tree, is_relaxed, slack)
    made.add_cliques(alive, limits)
    exact = [] if is_relaxed else [table for table in limits if table.is_exact]
    made.add_exact(exact)
    made.add_separators()
    with_limits = [table for table in limits if is_relaxed or not table.is_exact]
    most_slack = made.add_slack(with_limits, moments) if is_relaxed else 0.0
    for table in with_limits:
        made.add_limits(table, most_slack)
    for moment in moments:
        made.add_moment(moment, most_slack)
    return made.program()


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
    margins = {
        subset
        for table in exact
        for size in range(1, min(len(table), _LISTED) + 1)
        for subset in combinations(table, size)
    }
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

    def program(self) -> InteriorPoint:
        """Return what was collected; the slack is the last column."""
        order = list(range(len(self.columns)))
        if self.is_relaxed and self.slack is None:
            order = [*order[1:], 0]
        matrix = np.zeros((self.rows, len(order)))
        for place, column in enumerate(order):
            for rows, values in self.columns[column]:
                matrix[rows, place] += values
        first, most = (np.array(each, dtype=np.float64)[order] for each in (self.first, self.most))
        columns = SingleColumns(matrix, first, most)
        return InteriorPoint(self.blocks, columns, np.concatenate(self.right), self.sums)

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
            sizes = range(1, len(separator) + 1)
            for subset in chain.from_iterable(combinations(separator, size) for size in sizes):
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
        if table.is_scaled and not low.sum() > 0:
            raise NoConvergenceError  # the scale may be anything: HiGHS takes this
        spread = table.spread.ravel() if self.is_relaxed else np.zeros(low.size)
        relaxed = most_slack * float(spread.sum())
        most = (1.0 + relaxed) / float(low.sum()) if table.is_scaled else 1.0
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
        weights = np.ones(())
        for n in self.tree.cliques[clique]:
            vector = np.ones(self.shape[n])
            if n in moment.variables:
                vector = moment.vectors[moment.variables.index(n)]
            weights = np.multiply.outer(weights, vector)
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
        variables = self.tree.cliques[clique]
        gone = tuple(axis for axis, n in enumerate(variables) if n not in subset)
        block = self.blocks[clique]
        found: FloatArray = block.first.reshape(block.sizes).sum(axis=gone).ravel()
        return found


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
