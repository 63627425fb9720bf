"""Linear program over the cells of a junction tree: all joints that meet given tables.

Unknowns are the cells of the cliques that no table says are empty, the scale of each table whose
total is uncertain, a number ``u``, and ``t`` by which all right sides are multiplied. ``t = 1``
asks for an expectation and ``E[denominator] = 1`` for a ratio of two (Charnes and Cooper). Where
tables cannot be met, each cell may leave its limits by ``u`` times its spread, ``u`` being the
slack times ``t``.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray, outer_product
from rejoint.queries.junction_tree import JunctionTree, Variables
from rejoint.queries.table_limits import TableLimits, margins_of, spread_of_moment

if TYPE_CHECKING:
    from rejoint.marginals.moments import Moment

Vectors = Mapping[int, FloatArray]

_TOLERANCE = 1e-9  # feasibility of the program, in shares
_MOST_STEPS = 50_000  # of the simplex method; programs of the size that is allowed take 5,000
_INFEASIBLE = 2  # status of scipy's linprog


class InfeasibleError(Exception):
    """No joint meets the constraints."""


class UnsolvedError(Exception):
    """The program is too large, or the simplex method came to no end."""


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
        self._limits = [table for table in limits if is_relaxed or not table.is_exact]
        exact = () if is_relaxed else [table for table in limits if table.is_exact]
        self._exact, self._moments = margins_of(exact) or {}, list(moments)
        empty = () if is_relaxed else limits
        self._cells = [_cells(shape, clique, empty) for clique in tree.cliques]
        self._starts = np.cumsum([0, *map(len, self._cells)]).tolist()
        scaled = sum(table.is_scaled for table in self._limits)
        self._width = self._starts[-1] + scaled + 2  # the last two are u and t

    @property
    def work(self) -> int:
        """Cells times rows: the time of the simplex method is about proportional to it."""
        rows = sum(prod(self.shape[n] - 1 for n in subset) for subset in self._exact)
        rows += sum(int(np.sum(t.low > 0) + np.isfinite(t.high).sum()) for t in self._limits)
        rows += sum(prod(self.shape[n] for n in common) for _, _, common in self.tree.links)
        return int(self._starts[-1]) * max(rows, 1)

    def bounds(
        self, numerator: Vectors, denominator: Vectors | None = None, *, slack: float = 0.0
    ) -> tuple[float, float]:
        """Return the least and the largest value of an expectation, or of a ratio of two."""
        cost = self._values(numerator)
        norm = np.zeros(self._width)
        norm[-1] = 1.0
        if denominator is not None:
            norm = self._values(denominator)
        fixed = np.zeros(self._width)
        fixed[-2:] = 1.0, -slack
        low, high = (sign * self._minimize(sign * cost, norm, fixed) for sign in (1.0, -1.0))
        return (low, high) if low <= high else (high, low)  # equal but for rounding

    def least_slack(self) -> float:
        """Return the smallest slack with which a joint exists."""
        cost, norm = np.eye(self._width)[-2:]
        return max(0.0, self._minimize(cost, norm))

    def _minimize(self, cost: FloatArray, norm: FloatArray, *fixed: FloatArray) -> float:
        """Return the least cost where the norm is one and the fixed sums are zero."""
        from scipy.optimize import linprog  # slow to import
        from scipy.sparse import csr_array, vstack

        equal, under = self._rows
        equal = vstack([equal, *(csr_array(row[None]) for row in (*fixed, norm))], format="csr")
        right = np.zeros(equal.shape[0])
        right[-1] = 1.0
        options = {
            "primal_feasibility_tolerance": _TOLERANCE,
            "dual_feasibility_tolerance": _TOLERANCE,
            "maxiter": _MOST_STEPS,
        }
        zeros = np.zeros(under.shape[0])
        result = linprog(cost, under, zeros, equal, right, method="highs-ds", options=options)
        if result.status == _INFEASIBLE:
            raise InfeasibleError
        if result.status != 0:
            raise UnsolvedError
        return float(result.fun)

    def _values(self, vectors: Vectors) -> FloatArray:
        """Return a product of functions of single variables at all cells of one clique."""
        clique = self.tree.holder(vectors)
        members = self.tree.cliques[clique]
        product = outer_product(vectors.get(n, np.ones(self.shape[n])) for n in members)
        values = np.zeros(self._width)
        start, stop = self._starts[clique : clique + 2]
        values[start:stop] = product.ravel()[self._cells[clique]]
        return values

    @cached_property
    def _rows(self) -> tuple[Any, Any]:
        """Sums of the unknowns that are zero, and sums that are at most zero."""
        from scipy.sparse import csr_array, vstack  # slow to import

        unit = self._width - 1
        equal, under = [], [csr_array((1, self._width))]
        for clique in range(len(self._cells)):
            if not len(self._cells[clique]):
                raise InfeasibleError  # published zeros leave no cell
            equal.append(self._sums(clique, ()) - self._column(unit, np.ones(1)))
        for subset, shares in self._exact.items():
            # Without last levels, as margins are among the tables: rows are independent.
            inner = np.arange(shares.size).reshape(shares.shape)[(slice(-1),) * shares.ndim]
            sums = self._sums(self.tree.holder(subset), subset)
            equal.append((sums - self._column(unit, shares.ravel()))[inner.ravel()])
        for old, new, common in self.tree.links:
            equal.append(self._sums(old, common) - self._sums(new, common))
        scale = self._starts[-1]
        for table in self._limits:
            place = scale if table.is_scaled else unit
            scale += table.is_scaled
            self._add_limits(table, place, equal, under)
        for moment in self._moments:
            vectors = dict(zip(moment.variables, moment.vectors, strict=True))
            row = csr_array(self._values(vectors)[None])
            value, spread = np.array([moment.value]), np.array([spread_of_moment(moment)])
            self._add_known(row - self._column(unit, value), spread, equal, under)
        return vstack(equal, format="csr"), vstack(under, format="csr")

    def _add_limits(
        self, table: TableLimits, place: int, equal: list[Any], under: list[Any]
    ) -> None:
        """Add the limits of the cells of a table, whose scale is the unknown at a place."""
        sums = self._sums(self.tree.holder(table.subset), table.subset)
        low, high, spread = (each.ravel() for each in (table.low, table.high, table.spread))
        same = low == high
        self._add_known((sums - self._column(place, low))[same], spread[same], equal, under)
        loose = self._column(self._width - 2, spread)
        for sign, limit, cells in ((-1.0, low, low > 0), (1.0, high, np.isfinite(high))):
            rows = sign * (sums - self._column(place, np.where(cells, limit, 0.0)))
            under.append((rows - loose)[cells & ~same])
        for places, value in table.sums:
            member = np.isin(np.arange(low.size), places).astype(np.float64)
            row = member[None] @ sums - self._column(place, np.array([value]))
            self._add_known(row, spread[places].sum(keepdims=True), equal, under)

    def _add_known(self, rows: Any, spread: FloatArray, equal: list[Any], under: list[Any]) -> None:
        """Add sums that are zero, or within the slack times their spread."""
        if not self.is_relaxed:
            equal.append(rows)
            return
        loose = self._column(self._width - 2, spread)
        under.extend([rows - loose, -rows - loose])

    def _sums(self, clique: int, subset: Variables) -> Any:
        """Return a row for each cell of a table of some variables: the cells of a clique in it."""
        from scipy.sparse import csr_array  # slow to import

        members, cells = self.tree.cliques[clique], self._cells[clique]
        sizes = [self.shape[n] for n in subset]
        levels = np.unravel_index(cells, [self.shape[n] for n in members])
        rows = np.zeros(len(cells), dtype=np.intp)
        for n, size in zip(subset, sizes, strict=True):
            rows = rows * size + levels[members.index(n)]
        columns = np.arange(len(cells)) + self._starts[clique]
        return csr_array((np.ones(len(cells)), (rows, columns)), shape=(prod(sizes), self._width))

    def _column(self, place: int, values: FloatArray) -> Any:
        """Return rows with one unknown, times values."""
        from scipy.sparse import csr_array  # slow to import

        rows = np.arange(len(values))
        return csr_array((values, (rows, np.full(len(rows), place))), (len(rows), self._width))


def _cells(
    shape: Sequence[int], clique: Variables, limits: Iterable[TableLimits]
) -> NDArray[np.intp]:
    """Return the positions of the cells of a clique that no table says are empty."""
    possible = np.ones([shape[n] for n in clique], dtype=bool)
    for table in limits:
        if table.high.min() <= 0 and set(table.subset) & set(clique):
            part = table.margin(clique)
            sizes = [shape[n] if n in part.subset else 1 for n in clique]
            possible &= (part.high > 0).reshape(sizes)
    return np.flatnonzero(possible)
