"""Interior-point method for bounds over the cells of large cliques with exact tables.

The program is ``min c @ x`` over ``A x = b, x >= 0``, where ``x`` holds the cells of the cliques and
each row of ``A`` sums the cells in which some variables have given levels. The normal matrix
``A diag(d) A'`` needs no product: its entry for two such rows is the sum of ``d`` over the cells in
which both sets of variables have their levels, one number of a margin of ``d``. All margins together
are one transform of ``d``, as large as ``d`` itself: along each axis the last level is replaced by
the sum over all levels (rows leave the last levels out, so that they are independent).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import inf, prod
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from rejoint.model import FloatArray
from rejoint.queries.junction_tree import JunctionTree, Variables
from rejoint.queries.table_limits import TableLimits, closure

#: Largest number of levels, of neighboring variables together, that are summed by one product.
_GROUP = 64
_STEPS = 80
_BACK = 0.995  # share of the way to the nearest bound that a step goes
_REFINE = 6  # steps of conjugate gradients that refine a solution of the normal equations
_RIDGE = 1e-13  # of the normal matrix, scaled to a unit diagonal
_DEPENDENT = 1e-9  # pivots below are those of rows that depend on others
_SWEEPS = 8  # of proportional fitting, for the start


class NoConvergenceError(Exception):
    """The method stopped before both ends were certain."""


@dataclass
class _Clique:
    """One clique: rows of the program that sum its cells."""

    sizes: tuple[int, ...]
    rows: NDArray[np.intp]  # which rows of the program
    places: NDArray[np.intp]  # where they are in the transform
    signs: FloatArray
    alive: NDArray[np.bool_]

    def __post_init__(self) -> None:
        self.cells = prod(self.sizes)
        self.groups = _groups(self.sizes)
        self._pairs: NDArray[np.int32] | None = None

    def transform(self, cells: FloatArray) -> FloatArray:
        """Replace, along each axis, the last level by the sum over all levels."""
        for before, matrix, after in self.groups:
            cells = matrix @ cells.reshape(before, len(matrix), after)
        return cells.ravel()

    def adjoint(self, cells: FloatArray) -> FloatArray:
        """Apply the transpose of :meth:`transform`."""
        for before, matrix, after in self.groups:
            cells = matrix.T @ cells.reshape(before, len(matrix), after)
        return cells.ravel()

    def normal(self, cells: FloatArray) -> FloatArray:
        """Return the normal matrix of the rows of this clique with these weights of cells."""
        if self._pairs is None:
            self._pairs = self._common_places()
        margins = np.append(self.transform(cells), 0.0)
        found: FloatArray = margins[self._pairs]
        found *= self.signs[:, None]
        found *= self.signs
        return found

    def _common_places(self) -> NDArray[np.int32]:
        """Return where the margin of each pair of rows is; the end where they exclude each other."""
        levels = np.unravel_index(self.places, self.sizes)
        places = np.zeros((len(self.places),) * 2, dtype=np.int32)
        never = np.zeros(places.shape, dtype=bool)
        for size, level in zip(self.sizes, levels, strict=True):
            level = level.astype(np.int32)
            least = np.minimum(level[:, None], level)  # the last level means: any
            never |= (level[:, None] != level) & (np.maximum(level[:, None], level) != size - 1)
            places *= size
            places += least
        places[never] = self.cells
        return places


def _groups(sizes: Sequence[int]) -> list[tuple[int, FloatArray, int]]:
    """Return the matrices that sum over levels, for groups of neighboring axes."""
    groups: list[FloatArray] = []
    for size in sizes:
        one = np.eye(size)
        one[-1] = 1.0
        if groups and len(groups[-1]) * size <= _GROUP:
            groups[-1] = np.kron(groups[-1], one)
        else:
            groups.append(one)
    lengths = [len(matrix) for matrix in groups]
    return [(prod(lengths[:k]), m, prod(lengths[k + 1 :])) for k, m in enumerate(groups)]


class InteriorPoint:
    """Programs over all joints with some exact tables, solved by Mehrotra's method.

    Parameters
    ----------
    shape : sequence of int
        Levels of each variable.
    tree : JunctionTree
        Its cliques contain the tables and what is asked.
    exact : sequence of TableLimits
        Exact tables that agree with each other.
    alive : sequence of arrays of bool
        For each clique, the cells that no table says are empty.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> tables = [TableLimits((n,), half, half, np.zeros(2)) for n in (0, 1)]
    >>> tree = JunctionTree.of((2, 2), [(0, 1)])
    >>> program = InteriorPoint((2, 2), tree, tables, [np.ones((2, 2), dtype=bool)])
    >>> low, _ = program.minimize(np.array([-1.0, 0.0, 0.0, 0.0]), 1e-8)
    >>> round(low, 6)
    -0.5
    """

    def __init__(
        self,
        shape: Sequence[int],
        tree: JunctionTree,
        exact: Sequence[TableLimits],
        alive: Sequence[NDArray[np.bool_]],
    ) -> None:
        self.shape, self.tree = tuple(shape), tree
        self._tables = list(exact)
        self._cliques, self.right, self._units = self._rows(alive)
        self.alive = np.concatenate([clique.alive for clique in self._cliques])
        self._ends = np.cumsum([0, *(clique.cells for clique in self._cliques)])
        self._start = self._first_cells()
        if not self.alive.all():
            self._drop_dependent()

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.right)

    def _rows(
        self, alive: Sequence[NDArray[np.bool_]]
    ) -> tuple[list[_Clique], FloatArray, list[int]]:
        """Return the rows of each clique, the right side, and which rows are sums of all cells."""
        parts: list[list[tuple[NDArray[np.intp], NDArray[np.intp], float]]]
        parts = [[] for _ in self.tree.cliques]
        right: list[FloatArray] = []
        units: list[int] = []
        number = 0

        def add(subset: Variables, values: FloatArray, where: Sequence[tuple[int, float]]) -> None:
            nonlocal number
            rows = np.arange(number, number + values.size)
            for clique, sign in where:
                parts[clique].append((rows, self._places(clique, subset), sign))
            if not subset:
                units.append(number)
            right.append(values.ravel())
            number += values.size

        add((), np.ones(1), [(0, 1.0)])
        for subset, table in closure(self._tables).items():
            values = table.low[tuple(slice(0, -1) for _ in subset)]
            add(subset, values, [(self.tree.holder(subset), 1.0)])
        for old, new, separator in self.tree.links:
            sizes = range(len(separator) + 1)
            for subset in chain.from_iterable(combinations(separator, size) for size in sizes):
                zeros = np.zeros([self.shape[n] - 1 for n in subset])
                add(subset, zeros, [(old, 1.0), (new, -1.0)])
        cliques = []
        for k, variables in enumerate(self.tree.cliques):
            rows, places = (np.concatenate([part[i] for part in parts[k]]) for i in (0, 1))
            signs = np.concatenate([np.full(len(part[0]), part[2]) for part in parts[k]])
            sizes_of = tuple(self.shape[n] for n in variables)
            cliques.append(_Clique(sizes_of, rows, places, signs, alive[k].ravel()))
        return cliques, np.concatenate(right), units

    def _places(self, clique: int, subset: Variables) -> NDArray[np.intp]:
        """Return where the cells of a table, without last levels, are in the transform."""
        variables = self.tree.cliques[clique]
        place = np.zeros((1,) * len(variables), dtype=np.intp)
        for axis, n in enumerate(variables):
            size = self.shape[n]
            along = [1] * len(variables)
            level = np.array([size - 1])
            if n in subset:
                level = np.arange(size - 1)
                along[axis] = size - 1
            place = place * size + level.reshape(along)
        return place.ravel()

    def _drop_dependent(self) -> None:
        """Leave rows out that depend on others where cells are empty."""
        from scipy.linalg.lapack import dpstrf  # slow to import

        matrix = self._normal(self.alive.astype(np.float64))
        scale = np.sqrt(np.maximum(matrix.diagonal(), 1e-300))
        matrix /= scale[:, None] * scale
        _, order, rank, _ = dpstrf(matrix, tol=_DEPENDENT, lower=1)
        kept = np.sort(order[:rank] - 1)
        new = np.full(self.rows, -1)
        new[kept] = np.arange(len(kept))
        for k, clique in enumerate(self._cliques):
            inside = new[clique.rows] >= 0
            self._cliques[k] = _Clique(
                clique.sizes,
                new[clique.rows[inside]],
                clique.places[inside],
                clique.signs[inside],
                clique.alive,
            )
        self.right = self.right[kept]
        self._units = [int(new[row]) for row in self._units if new[row] >= 0]

    def _parts(self, cells: FloatArray) -> list[FloatArray]:
        return [
            cells[start:stop]
            for start, stop in zip(self._ends[:-1], self._ends[1:], strict=True)
        ]

    def times(self, cells: FloatArray) -> FloatArray:
        """Return ``A x``.

        Examples
        --------
        >>> tree = JunctionTree.of((2,), [(0,)])
        >>> InteriorPoint((2,), tree, [], [np.ones(2, dtype=bool)]).times(np.array([1.0, 2.0]))
        array([3.])
        """
        found = np.zeros(self.rows)
        for clique, part in zip(self._cliques, self._parts(cells), strict=True):
            found[clique.rows] += clique.signs * clique.transform(part)[clique.places]
        return found

    def times_transposed(self, values: FloatArray) -> FloatArray:
        """Return ``A' y``.

        Examples
        --------
        >>> tree = JunctionTree.of((2,), [(0,)])
        >>> InteriorPoint((2,), tree, [], [np.ones(2, dtype=bool)]).times_transposed(np.ones(1))
        array([1., 1.])
        """
        found = []
        for clique in self._cliques:
            part = np.zeros(clique.cells)
            part[clique.places] = clique.signs * values[clique.rows]
            found.append(clique.adjoint(part))
        return np.concatenate(found)

    def _normal(self, weights: FloatArray) -> FloatArray:
        """Return ``A diag(d) A'``."""
        parts = self._parts(weights)
        if len(parts) == 1:
            return self._cliques[0].normal(parts[0])
        found = np.zeros((self.rows, self.rows))
        for clique, part in zip(self._cliques, parts, strict=True):
            found[np.ix_(clique.rows, clique.rows)] += clique.normal(part)
        return found

    def _first_cells(self) -> FloatArray:
        """Return positive cells that nearly have the tables, by proportional fitting."""
        found = []
        for clique, variables in zip(self._cliques, self.tree.cliques, strict=True):
            cells = (clique.alive / clique.alive.sum()).reshape(clique.sizes)
            inside = [t for t in self._tables if set(t.subset) <= set(variables)]
            for _ in range(_SWEEPS):
                for table in inside:
                    gone = tuple(a for a, n in enumerate(variables) if n not in table.subset)
                    margin = cells.sum(axis=gone, keepdims=True)
                    goal = table.low.reshape(margin.shape)
                    cells = cells * np.divide(goal, margin, out=np.zeros_like(margin), where=margin > 0)
            even = clique.alive.reshape(clique.sizes) / clique.alive.sum()
            share = 0.01 if clique.alive.all() else 0.5
            found.append(((1.0 - share) * cells + share * even).ravel())
        return np.concatenate(found)

    def _first_duals(self) -> FloatArray:
        """Return duals with which every cell has the reduced cost ``c + 2``."""
        wanted = []
        for row in self._units:
            unit = np.zeros(self.rows)
            unit[row] = 1.0
            wanted.append([float(p[0]) for p in self._parts(self.times_transposed(unit))])
        found = np.zeros(self.rows)
        found[self._units] = np.linalg.lstsq(
            np.array(wanted).T, np.full(len(self._cliques), -2.0), rcond=None
        )[0]
        return found

    def minimize(
        self, cost: FloatArray, gap: float, deadline: float = inf
    ) -> tuple[float, FloatArray]:
        """Return a lower bound of the least cost, within `gap` of it, and the cells near there.

        Parameters
        ----------
        cost : array
            One number for each cell.
        gap : float
            Largest distance between the bound and the cost of the cells.
        deadline : float
            When to give up, by :func:`time.monotonic`.

        Examples
        --------
        >>> tree = JunctionTree.of((2,), [(0,)])
        >>> program = InteriorPoint((2,), tree, [], [np.ones(2, dtype=bool)])
        >>> round(program.minimize(np.array([1.0, 2.0]), 1e-8)[0], 6)
        1.0
        """
        alive = self.alive
        size = float(np.abs(cost[alive]).max())
        if size == 0:
            return 0.0, self._start
        c = np.where(alive, cost / size, 0.0)
        x, y = self._start.copy(), self._first_duals()
        s = np.where(alive, c - self.times_transposed(y), 1.0)
        live = float(alive.sum())
        best, nearest = -inf, x
        for _ in range(_STEPS):
            if monotonic() > deadline:
                raise NoConvergenceError
            r_p = self.right - self.times(x)
            reduced = c - self.times_transposed(y)
            r_d = np.where(alive, reduced - s, 0.0)
            off = float(np.abs(r_p).max())
            outer = self._outer(y, reduced)
            if outer > best:
                best, nearest = outer, x
            if off < 1e-9 and size * (float(c @ x) - best) <= gap:
                return size * best, x
            mu = float(x @ np.where(alive, s, 0.0)) / live
            d = x / s
            solve = _Normal(self, d)
            dx, dy, ds = self._direction(x, s, d, r_p, r_d, -x * s, solve)
            a_p, a_d = _longest(x, dx, alive), _longest(s, ds, alive)
            mu_affine = float((x + a_p * dx) @ np.where(alive, s + a_d * ds, 0.0)) / live
            center = (mu_affine / mu) ** 3 * mu
            r_c = np.where(alive, center - dx * ds - x * s, 0.0)
            dx, dy, ds = self._direction(x, s, d, r_p, r_d, r_c, solve)
            a_p, a_d = (min(1.0, _BACK * _longest(v, dv, alive)) for v, dv in ((x, dx), (s, ds)))
            x, y, s = x + a_p * dx, y + a_d * dy, s + a_d * ds
        raise NoConvergenceError

    def _outer(self, y: FloatArray, reduced: FloatArray) -> float:
        """Return a lower bound that any duals give: cells of each clique add up to one."""
        terms = self.right * y
        if 1e-15 * float(np.abs(terms).sum()) > 1e-9:
            return -inf
        parts = self._parts(np.where(self.alive, reduced, inf))
        return float(terms.sum()) + sum(float(part.min()) for part in parts)

    def _direction(
        self,
        x: FloatArray,
        s: FloatArray,
        d: FloatArray,
        r_p: FloatArray,
        r_d: FloatArray,
        r_c: FloatArray,
        solve: "_Normal",
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the step that solves the linearized conditions."""
        rest = r_c / s - d * r_d
        dy = solve(r_p - self.times(rest))
        turned = self.times_transposed(dy)
        dx = rest + d * turned
        ds = np.where(self.alive, r_d - turned, 0.0)
        return dx, dy, ds


class _Normal:
    """Solves the normal equations: Cholesky, then conjugate gradients."""

    def __init__(self, program: InteriorPoint, weights: FloatArray) -> None:
        from scipy.linalg import cholesky  # slow to import

        self._program, self._weights = program, weights
        matrix = program._normal(weights)
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
                if ridge > 1e-4:
                    raise NoConvergenceError from None

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
            if float(np.linalg.norm(r * self._scale)) <= goal or rz <= 0:
                break
            q = self._times(p)
            step = rz / float(p @ q)
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
