"""Linear program over the cells of a junction tree: all joints that meet given tables.

Unknowns are the cells of the cliques, the scales of tables whose total is uncertain, and one
number ``t`` by which everything is multiplied. All constraints are homogeneous, so that ``t = 1``
asks for an expectation and ``E[denominator] = 1`` for a ratio of two (Charnes and Cooper).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, prod
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rejoint.model import FloatArray
from rejoint.queries.interior_point import InteriorPoint, NoConvergenceError
from rejoint.queries.interior_program import interior_program
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
