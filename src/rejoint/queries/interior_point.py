"""Interior-point method for linear programs over the cells of tables.

The program is ``min c @ x`` over ``A x = b, x >= 0``. Unknowns are the cells of blocks, each shaped
like a table, and a few single columns. Nearly all rows of ``A`` sum the cells of a block in which
some variables have given levels. The part of the normal matrix ``A diag(d) A'`` that such rows
make needs no product: its entry for two of them is the sum of ``d`` over the cells in which both
sets of variables have their levels, one number of a margin of ``d``. All margins together are one
transform of ``d``, no larger than ``d``: along each axis the last level is replaced by the sum over
all levels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, prod
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Largest number of levels, of neighboring variables together, that are summed by one product.
_GROUP = 64
_STEPS = 80
_BACK = 0.995  # share of the way to the nearest bound that a step goes
_REFINE = 6  # steps of conjugate gradients that refine a solution of the normal equations
_RIDGE, _MOST_RIDGE = 1e-13, 1e-6  # of the normal matrix, scaled to a unit diagonal
_DEPENDENT = 1e-9  # pivots below are those of rows that depend on others
_FEASIBLE = 1e-9  # how far cells may be from meeting the tables
_SHORT = 1e-8  # steps below are no progress


class NoConvergenceError(Exception):
    """The method ran out of time, or ended before its bound was certain."""


@dataclass(frozen=True, eq=False)
class Minimum:
    """The least cost: a lower bound of it, unknowns that nearly have it, how far they are apart.

    Examples
    --------
    >>> Minimum(0.5, np.zeros(1), 1e-9).bound
    0.5
    """

    bound: float
    unknowns: FloatArray
    gap: float


@dataclass(eq=False)
class CellBlock:
    """Unknowns that are the cells of one table, and the rows that sum them.

    Parameters
    ----------
    sizes : tuple of int
        Levels of each variable.
    alive : array of bool
        Cells that may be positive.
    first : array
        Where to start; positive where alive.
    most : float
        The largest possible sum of the cells.
    is_most : bool
        Whether that is their sum in every solution.

    Examples
    --------
    >>> block = CellBlock((2, 2), np.ones(4, dtype=bool), np.full(4, 0.25), 1.0)
    >>> block.sum_cells(np.array([0]), np.array([1]))
    >>> block.times(np.array([1.0, 2.0, 3.0, 4.0]), 1)  # of the first row
    array([3.])
    """

    sizes: tuple[int, ...]
    alive: NDArray[np.bool_]
    first: FloatArray
    most: float
    is_most: bool = False
    _rows: list[NDArray[np.intp]] = field(default_factory=list)
    _places: list[NDArray[np.intp]] = field(default_factory=list)
    _signs: list[FloatArray] = field(default_factory=list)
    _others: dict[int, FloatArray] = field(default_factory=dict)

    def sum_cells(
        self, rows: NDArray[np.intp], places: NDArray[np.intp], sign: float = 1.0
    ) -> None:
        """Let rows have the sums that are at these places of the transform.

        Examples
        --------
        >>> block = CellBlock((2,), np.ones(2, dtype=bool), np.full(2, 0.5), 1.0)
        >>> block.sum_cells(np.array([0]), np.array([1]))
        >>> block.times(np.array([3.0, 4.0]), 1)
        array([7.])
        """
        self._rows.append(rows)
        self._places.append(places)
        self._signs.append(np.full(len(rows), sign))

    def weight_cells(self, row: int, weights: FloatArray) -> None:
        """Let a row have a sum of the cells with any weights.

        Examples
        --------
        >>> block = CellBlock((2,), np.ones(2, dtype=bool), np.full(2, 0.5), 1.0)
        >>> block.weight_cells(0, np.array([1.0, 2.0]))
        >>> block.times(np.array([3.0, 4.0]), 1)
        array([11.])
        """
        self._others[row] = weights

    def keep_rows(self, new: NDArray[np.intp]) -> None:
        """Renumber the rows; those with a negative number go.

        Examples
        --------
        >>> block = CellBlock((2,), np.ones(2, dtype=bool), np.full(2, 0.5), 1.0)
        >>> block.sum_cells(np.array([0, 1]), np.array([0, 1]))
        >>> block.keep_rows(np.array([-1, 0]))
        >>> block.times(np.array([3.0, 4.0]), 1)
        array([7.])
        """
        kept = new[self.rows] >= 0
        rows, places, signs = new[self.rows[kept]], self.places[kept], self.signs[kept]
        self._rows, self._places, self._signs = [rows], [places], [signs]
        self._others = {int(new[k]): w for k, w in self._others.items() if new[k] >= 0}
        for name in ("rows", "places", "signs", "_pairs"):
            self.__dict__.pop(name, None)

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """The rows that sum cells."""
        return np.concatenate([np.empty(0, dtype=np.intp), *self._rows])

    @cached_property
    def places(self) -> NDArray[np.intp]:
        """Their places in the transform."""
        return np.concatenate([np.empty(0, dtype=np.intp), *self._places])

    @cached_property
    def signs(self) -> FloatArray:
        """Their signs."""
        return np.concatenate([np.empty(0), *self._signs])

    @cached_property
    def _groups(self) -> "list[_Group]":
        return _groups_of(self.sizes)

    def _transform(self, cells: FloatArray) -> FloatArray:
        for before, matrix, after in self._groups:
            cells = matrix @ cells.reshape(before, len(matrix), after)
        return cells.ravel()

    def _transform_back(self, cells: FloatArray) -> FloatArray:
        for before, matrix, after in self._groups:
            cells = matrix.T @ cells.reshape(before, len(matrix), after)
        return cells.ravel()

    def times(self, cells: FloatArray, number: int) -> FloatArray:
        """Return the sums of this block in all `number` rows.

        Examples
        --------
        >>> CellBlock((2,), np.ones(2, dtype=bool), np.ones(2), 1.0).times(np.ones(2), 1)
        array([0.])
        """
        sums = self.signs * self._transform(cells)[self.places]
        found: FloatArray = np.bincount(self.rows, sums, number).astype(np.float64)
        for row, weights in self._others.items():
            found[row] += weights @ cells
        return found

    def times_transposed(self, values: FloatArray) -> FloatArray:
        """Return what numbers for each row add to the cells.

        Examples
        --------
        >>> block = CellBlock((2,), np.ones(2, dtype=bool), np.full(2, 0.5), 1.0)
        >>> block.sum_cells(np.array([0]), np.array([1]))
        >>> block.times_transposed(np.array([3.0]))
        array([3., 3.])
        """
        sums = np.bincount(self.places, self.signs * values[self.rows], prod(self.sizes))
        found = self._transform_back(sums.astype(np.float64))
        for row, weights in self._others.items():
            found = found + values[row] * weights
        return found

    def matrix(self, number: int) -> "csr_array":
        """Return the coefficients of the cells in all `number` rows.

        Examples
        --------
        >>> block = CellBlock((2,), np.ones(2, dtype=bool), np.full(2, 0.5), 1.0)
        >>> block.sum_cells(np.array([0]), np.array([1]))
        >>> block.matrix(1).toarray()
        array([[1., 1.]])
        """
        from scipy.sparse import csr_array, kron  # slow to import

        turn = csr_array(np.ones((1, 1)))
        for _, group, _ in self._groups:
            turn = csr_array(kron(turn, group))
        others = [np.full(len(weights), row) for row, weights in self._others.items()]
        rows = np.concatenate([np.empty(0, dtype=np.intp), *others])
        values = np.concatenate([np.empty(0), *self._others.values()])
        cells = np.tile(np.arange(prod(self.sizes)), len(self._others))
        shape = (number, prod(self.sizes))
        sums = csr_array((self.signs, (self.rows, self.places)), shape=shape)
        return sums @ turn + csr_array((values, (rows, cells)), shape=shape)

    def add_normal(self, matrix: FloatArray, weights: FloatArray) -> None:
        """Add this block's part of the normal matrix with these weights of cells.

        Examples
        --------
        >>> block = CellBlock((2,), np.ones(2, dtype=bool), np.full(2, 0.5), 1.0)
        >>> block.sum_cells(np.array([0, 1]), np.array([0, 1]))
        >>> matrix = np.zeros((2, 2))
        >>> block.add_normal(matrix, np.array([3.0, 4.0]))
        >>> matrix
        array([[3., 3.],
               [3., 7.]])
        """
        margins = np.append(self._transform(weights), 0.0)
        part = margins[self._pairs]
        if (self.signs != 1).any():
            part *= self.signs[:, None]
            part *= self.signs
        if len(self.rows) == len(matrix) and (np.diff(self.rows) == 1).all():
            matrix += part
        else:
            matrix[np.ix_(self.rows, self.rows)] += part
        for row, other in self._others.items():
            across = self.signs * self._transform(weights * other)[self.places]
            matrix[row, self.rows] += across
            matrix[self.rows, row] += across
        if self._others:
            rows, others = list(self._others), np.array(list(self._others.values()))
            matrix[np.ix_(rows, rows)] += (others * weights) @ others.T

    @cached_property
    def _pairs(self) -> NDArray[np.int32]:
        """Where the margin of each pair of rows is; the end where they exclude each other."""
        levels = np.unravel_index(self.places, self.sizes)
        places = np.zeros((len(self.places),) * 2, dtype=np.int32)
        never = np.zeros(places.shape, dtype=bool)
        for size, level in zip(self.sizes, levels, strict=True):
            level = level.astype(np.int32)
            least = np.minimum(level[:, None], level)  # the last level means: any
            never |= (level[:, None] != level) & (np.maximum(level[:, None], level) != size - 1)
            places *= size
            places += least
        places[never] = prod(self.sizes)
        return places


_Group = tuple[int, FloatArray, int]


def transform(table: FloatArray) -> FloatArray:
    """Replace, along each axis, the last level by the sum over all levels; return it flat.

    Examples
    --------
    >>> transform(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([ 1.,  3.,  4., 10.])
    """
    found = table
    for before, matrix, after in _groups_of(table.shape):
        found = matrix @ found.reshape(before, len(matrix), after)
    return found.ravel()


def _groups_of(sizes: Sequence[int]) -> list[_Group]:
    """Return matrices that sum over levels, for groups of neighboring axes."""
    groups: list[FloatArray] = [np.ones((1, 1))]
    for size in sizes:
        one = np.eye(size)
        one[-1] = 1.0
        if len(groups[-1]) * size <= _GROUP:
            groups[-1] = np.kron(groups[-1], one).astype(np.float64)
        else:
            groups.append(one.astype(np.float64))
    lengths = [len(matrix) for matrix in groups]
    return [(prod(lengths[:k]), m, prod(lengths[k + 1 :])) for k, m in enumerate(groups)]


@dataclass(frozen=True, eq=False)
class SingleColumns:
    """Single unknowns: scales of tables, a slack.

    Parameters
    ----------
    matrix : array (rows, unknowns)
        Their coefficients.
    first : array
        Where to start.
    most : array
        The largest value that each can have.

    Examples
    --------
    >>> SingleColumns(np.zeros((2, 0)), np.empty(0), np.empty(0)).first
    array([], dtype=float64)
    """

    matrix: FloatArray
    first: FloatArray
    most: FloatArray


class InteriorPoint:
    """A program over the cells of blocks, solved by Mehrotra's method.

    Parameters
    ----------
    blocks : sequence of CellBlock
        Unknowns with their rows.
    columns : SingleColumns
        Further unknowns.
    right : array
        The right side of each row.
    sums : sequence of int
        Rows that are sums of all cells of one block, one for each block whose sum is known.

    Examples
    --------
    >>> block = CellBlock((2, 2), np.ones(4, dtype=bool), np.full(4, 0.25), 1.0, is_most=True)
    >>> block.sum_cells(np.array([0, 1, 2]), np.array([3, 1, 2]))  # all, second axis 0, first 0
    >>> none = SingleColumns(np.zeros((3, 0)), np.empty(0), np.empty(0))
    >>> program = InteriorPoint([block], none, np.array([1.0, 0.5, 0.5]), [0])
    >>> round(program.minimize(np.array([-1.0, 0.0, 0.0, 0.0])).bound, 6)
    -0.5
    """

    def __init__(
        self,
        blocks: Sequence[CellBlock],
        columns: SingleColumns,
        right: FloatArray,
        sums: Sequence[int],
    ) -> None:
        self._blocks, self._columns, self.right = list(blocks), columns, right
        self._ends = np.cumsum([0, *(block.alive.size for block in blocks)])
        ones = np.ones(len(columns.first), dtype=bool)
        self.alive = np.concatenate([*(block.alive.ravel() for block in blocks), ones])
        self.first = np.concatenate([*(block.first.ravel() for block in blocks), columns.first])
        self._sums = np.array(sums, dtype=np.intp)
        if not self.alive.all():
            self._drop_dependent()

    def _drop_dependent(self) -> None:
        """Leave rows out that depend on others where cells are empty."""
        from scipy.linalg.lapack import dpstrf  # slow to import

        matrix = self.normal(self.alive.astype(np.float64))
        scale = 1.0 / np.sqrt(np.maximum(matrix.diagonal(), 1e-300))
        scale[self._sums] *= 2.0  # pivots come first, so that these rows stay
        matrix *= scale[:, None]
        matrix *= scale
        _, order, rank, _ = dpstrf(matrix, tol=_DEPENDENT, lower=1)
        kept = np.sort(order[:rank] - 1)
        new = np.full(len(self.right), -1)
        new[kept] = np.arange(len(kept))
        for block in self._blocks:
            block.keep_rows(new)
        columns = self._columns
        self._columns = SingleColumns(columns.matrix[kept], columns.first, columns.most)
        self.right, self._sums = self.right[kept], new[self._sums]

    def _parts(self, unknowns: FloatArray) -> list[FloatArray]:
        """Return the unknowns of each block, then those of single columns."""
        return np.split(unknowns, self._ends[1:])

    def times(self, unknowns: FloatArray) -> FloatArray:
        """Return ``A x``.

        Examples
        --------
        >>> none = SingleColumns(np.array([[2.0]]), np.ones(1), np.ones(1))
        >>> InteriorPoint([], none, np.ones(1), []).times(np.ones(1))
        array([2.])
        """
        *parts, last = self._parts(unknowns)
        found = self._columns.matrix @ last
        for block, part in zip(self._blocks, parts, strict=True):
            found += block.times(part, len(found))
        return found

    def times_transposed(self, values: FloatArray) -> FloatArray:
        """Return ``A' y``.

        Examples
        --------
        >>> none = SingleColumns(np.array([[2.0]]), np.ones(1), np.ones(1))
        >>> InteriorPoint([], none, np.ones(1), []).times_transposed(np.ones(1))
        array([2.])
        """
        parts = [block.times_transposed(values) for block in self._blocks]
        return np.concatenate([*parts, values @ self._columns.matrix])

    def normal(self, weights: FloatArray) -> FloatArray:
        """Return ``A diag(d) A'``.

        Examples
        --------
        >>> none = SingleColumns(np.array([[2.0]]), np.ones(1), np.ones(1))
        >>> InteriorPoint([], none, np.ones(1), []).normal(np.ones(1))
        array([[4.]])
        """
        *parts, last = self._parts(weights)
        found: FloatArray = (self._columns.matrix * last) @ self._columns.matrix.T
        for block, part in zip(self._blocks, parts, strict=True):
            block.add_normal(found, part)
        return found

    def minimize(self, cost: FloatArray, gap: float = 1e-8, deadline: float = inf) -> Minimum:
        """Return a lower bound of the least cost, and unknowns near there.

        Parameters
        ----------
        cost : array
            One number for each unknown.
        gap : float
            Distance between the bound and the cost of the unknowns at which to stop, as a share
            of the largest cost of an unknown. Where rounding ends the steps before,
            ``Minimum.gap`` is larger.
        deadline : float
            When to give up, by :func:`time.monotonic`.

        Examples
        --------
        >>> block = CellBlock((2,), np.ones(2, dtype=bool), np.full(2, 0.5), 1.0, is_most=True)
        >>> block.sum_cells(np.array([0]), np.array([1]))
        >>> none = SingleColumns(np.zeros((1, 0)), np.empty(0), np.empty(0))
        >>> program = InteriorPoint([block], none, np.ones(1), [0])
        >>> round(program.minimize(np.array([1.0, 2.0])).bound, 6)
        1.0
        """
        import threadpoolctl  # seldom needed, not cheap

        size = float(np.abs(cost[self.alive]).max())
        if size == 0:
            return Minimum(0.0, self.first, 0.0)
        with threadpoolctl.threadpool_limits(1, user_api="blas"), np.errstate(all="ignore"):
            found = self._minimize(np.where(self.alive, cost / size, 0.0), gap, deadline)
        return Minimum(size * found.bound, found.unknowns, size * found.gap)

    def _minimize(self, c: FloatArray, gap: float, deadline: float) -> Minimum:
        alive = self.alive
        live = float(alive.sum())
        x = self.first.copy()
        y, s = self._first_duals(c)
        bound, best = -inf, Minimum(-inf, x, inf)
        for _ in range(_STEPS):
            if monotonic() > deadline:
                raise NoConvergenceError
            r_p = self.right - self.times(x)
            reduced = c - self.times_transposed(y)
            r_d = np.where(alive, reduced - s, 0.0)
            bound = max(bound, self._outer(y, reduced))
            if float(np.abs(r_p).max()) < _FEASIBLE:
                best = min(best, Minimum(bound, x, float(c @ x) - bound), key=lambda m: m.gap)
            if best.gap <= gap:
                break
            d = x / s
            mu = float(x @ np.where(alive, s, 0.0)) / live
            if not mu > 0:
                break
            try:
                solve = _NormalEquations(self, d)
            except (np.linalg.LinAlgError, ValueError):
                break
            dx, dy, ds = self._direction(s, d, r_p, r_d, -x * s, solve)
            a_p, a_d = _longest(x, dx, alive), _longest(s, ds, alive)
            after = float((x + a_p * dx) @ np.where(alive, s + a_d * ds, 0.0)) / live
            center = (after / mu) ** 3 * mu
            r_c = np.where(alive, center - dx * ds - x * s, 0.0)
            dx, dy, ds = self._direction(s, d, r_p, r_d, r_c, solve)
            a_p, a_d = (_BACK * _longest(v, dv, alive) for v, dv in ((x, dx), (s, ds)))
            if not max(a_p, a_d) > _SHORT:
                break
            x, y, s = x + a_p * dx, y + a_d * dy, s + a_d * ds
        return best

    def _first_duals(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return duals, and reduced costs: ``c + 2`` where the sum of a block is known."""
        y = np.zeros(len(self.right))
        y[self._sums] = -2.0
        s = np.where(self.alive, c - self.times_transposed(y), 1.0)
        central = self.alive & (s > 0.5)
        level = float((self.first[central] * s[central]).mean())
        return y, np.where(self.alive & ~central, level / np.maximum(self.first, 1e-300), s)

    def _outer(self, y: FloatArray, reduced: FloatArray) -> float:
        """Return a lower bound of the cost, which any duals give as sums of cells are bounded."""
        terms = self.right * y
        if not 1e-15 * float(np.abs(terms).sum()) < 1e-9:
            return -inf
        *parts, last = self._parts(np.where(self.alive, reduced, inf))
        found = float(terms.sum()) + float(np.minimum(last, 0.0) @ self._columns.most)
        for block, part in zip(self._blocks, parts, strict=True):
            least = float(part.min())
            found += block.most * (least if block.is_most else min(least, 0.0))
        return found

    def _direction(
        self,
        s: FloatArray,
        d: FloatArray,
        r_p: FloatArray,
        r_d: FloatArray,
        r_c: FloatArray,
        solve: "_NormalEquations",
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the step that solves the linearized conditions."""
        rest = r_c / s - d * r_d
        dy = solve(r_p - self.times(rest))
        turned = self.times_transposed(dy)
        dx = rest + d * turned
        ds = np.where(self.alive, r_d - turned, 0.0)
        return dx, dy, ds


class _NormalEquations:
    """Solves the normal equations: Cholesky, then conjugate gradients."""

    def __init__(self, program: InteriorPoint, weights: FloatArray) -> None:
        from scipy.linalg import cholesky  # slow to import

        self._program, self._weights = program, weights
        matrix = program.normal(weights)
        self._scale = 1.0 / np.sqrt(np.maximum(matrix.diagonal(), 1e-300))
        matrix *= self._scale[:, None]
        matrix *= self._scale
        ridge = _RIDGE
        while True:
            matrix[np.diag_indices_from(matrix)] = 1.0 + ridge
            try:
                self._factor = cholesky(matrix, lower=True, check_finite=False)
                return
            except np.linalg.LinAlgError:
                ridge *= 100.0
                if ridge > _MOST_RIDGE:
                    raise

    def _precondition(self, r: FloatArray) -> FloatArray:
        from scipy.linalg import solve_triangular  # slow to import

        half = solve_triangular(self._factor, r * self._scale, lower=True, check_finite=False)
        back = solve_triangular(self._factor, half, lower=True, trans=1, check_finite=False)
        found: FloatArray = back * self._scale
        return found

    def __call__(self, right: FloatArray) -> FloatArray:
        found = self._precondition(right)
        r = right - self._times(found)
        goal = 1e-14 * float(np.linalg.norm(right * self._scale))
        z = p = self._precondition(r)
        rz = float(r @ z)
        for _ in range(_REFINE):
            if not float(np.linalg.norm(r * self._scale)) > goal or not rz > 0:
                break
            q = self._times(p)
            across = float(p @ q)
            if not across > 0:
                break
            step = rz / across
            found = found + step * p
            r = r - step * q
            z = self._precondition(r)
            rz, before = float(r @ z), rz
            p = z + rz / before * p
        return found

    def _times(self, values: FloatArray) -> FloatArray:
        return self._program.times(self._weights * self._program.times_transposed(values))


def _longest(values: FloatArray, step: FloatArray, alive: NDArray[np.bool_]) -> float:
    """Return how far a step can go before a value becomes negative, at most 1."""
    down = alive & (step < 0)
    return min(1.0, float((values[down] / -step[down]).min())) if down.any() else 1.0
