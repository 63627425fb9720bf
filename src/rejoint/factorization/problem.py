"""The least-squares problem behind S2: tables, how they are stacked, residuals.

The unknowns are ``w`` (F,) and ``A`` (L, F), the factors of all variables one below the
other, ``L = sum I_n``. Everything a solver needs is a sum over tables ``S`` of the paper's
objective ``1/2 sum_S omega_S || X_S - [w; A_n, n in S] ||^2`` (omega = 1 in the paper):

* ``V_n = sum_S omega_S X_S x_{m != n} A_m``, a sum of MTTKRPs, here one stacked matrix product
  (see ``unfolding``);
* ``G_n = sum_S omega_S prod_{m != n} A_m^T A_m`` (see ``grams``);
* the residuals, computed directly: ``|X|^2/2 - v w + w G w/2`` loses all digits near 1e-8.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray

from rejoint import kernels
from rejoint.factorization.grams import Family
from rejoint.factorization.unfolding import Columns, Slabs, Unfolding

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Moments:
    """Known expectations ``<u_1 o .. o u_d, X> = b`` of one order, with unit vectors ``u``."""

    family: Family
    vectors: Array  # (K, d, L), on the stacked levels
    value: Array  # (K,)

    def projections(self, factors: Array) -> Array:
        """``u^T A`` of every vector, (K, d, F)."""
        sides: Array = self.vectors @ factors
        return sides

    def gaps(self, weights: Array, factors: Array) -> Array:
        """``b - <u, Xhat>``, (K,)."""
        model: Array = np.prod(self.projections(factors), axis=1) @ weights
        return self.value - model


@dataclass(frozen=True)
class Problem:
    """Tables as shares, with weights, ready for the solvers."""

    levels: tuple[int, ...]
    subsets: tuple[tuple[int, ...], ...]
    tables: tuple[Array, ...]
    weight: Array
    moments: tuple[Moments, ...] = ()

    @cached_property
    def offsets(self) -> Rows:
        """First stacked row of each variable, and L at the end."""
        return np.concatenate([[0], np.cumsum(self.levels)]).astype(np.intp)

    def rows(self, n: int) -> slice:
        """Rows of variable ``n`` in the stacked factors."""
        return slice(int(self.offsets[n]), int(self.offsets[n + 1]))

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """The tables grouped by order."""
        orders = sorted({len(s) for s in self.subsets})
        return tuple(self._family(d) for d in orders)

    def _family(self, order: int) -> Family:
        picked = [i for i, s in enumerate(self.subsets) if len(s) == order]
        members = np.array([self.subsets[i] for i in picked], dtype=np.intp)
        weight = self.weight[picked]
        # Each subset comes once, so their number tells whether all are there.
        every = len(members) == comb(len(self.levels), order)
        return Family(members, weight, complete=every and bool(np.all(weight == weight[0])))

    @cached_property
    def scale(self) -> float:
        """``sum_S omega_S ||X_S||^2``, the size against which errors are measured."""
        total = sum(w * float(np.vdot(t, t)) for w, t in zip(self.weight, self.tables, strict=True))
        total += sum(float(m.family.weight @ m.value**2) for m in self.moments)
        return total or 1.0

    @cached_property
    def tables_with(self) -> tuple[tuple[int, ...], ...]:
        """For each variable, which tables contain it."""
        found: list[list[int]] = [[] for _ in self.levels]
        for i, subset in enumerate(self.subsets):
            for n in subset:
                found[n].append(i)
        return tuple(map(tuple, found))

    @cached_property
    def packed(self) -> Array | None:
        """All triples as one array, where there is nothing else."""
        whole = len(self.families) == 1 and self.families[0].complete and not self.moments
        if not (whole and self.families[0].order == 3):
            return None
        order = sorted(range(len(self.subsets)), key=self.subsets.__getitem__)
        return kernels.pack_triples([self.tables[i] for i in order], self.levels)

    @cached_property
    def unfoldings(self) -> tuple[tuple[Unfolding, ...], ...]:
        """For each variable the tables that contain it, unfolded and set side by side."""
        return tuple(unfold(self, n) for n in range(len(self.levels)))


def cell_rows(problem: Problem, subset: Sequence[int]) -> Rows:
    """Stacked rows (d, cells) of the cells of a table over ``subset``, in C order."""
    shape = [problem.levels[n] for n in subset]
    grid = np.indices(shape, dtype=np.intp).reshape(len(subset), int(np.prod(shape)))
    return grid + problem.offsets[list(subset)][:, None]


def unfold(problem: Problem, n: int) -> tuple[Unfolding, ...]:
    """Lay out the tables that contain ``n``, order by order."""
    parts: list[Unfolding] = []
    for family in problem.families:
        mine = [i for i in problem.tables_with[n] if len(problem.subsets[i]) == family.order]
        if family.order == 3 and family.complete and is_dense(problem):
            parts.append(as_slabs(problem, n, mine, float(family.weight[0])))
        elif mine:
            parts.append(as_columns(problem, n, mine))
    return tuple(parts)


def is_dense(problem: Problem) -> bool:
    """Whether all triples pay as slabs: enough variables, and at most a gigabyte in all."""
    return len(problem.levels) >= 8 and 8 * int(problem.offsets[-1]) ** 3 <= 2**30


def as_columns(problem: Problem, n: int, tables: list[int]) -> Columns:
    """Unfold tables along ``n`` and set them side by side, owned ones first."""
    tables = sorted(tables, key=lambda i: problem.subsets[i][0] != n)
    sides, rows, first = [], [], 0
    for i in tables:
        subset = problem.subsets[i]
        table = np.moveaxis(problem.tables[i], subset.index(n), 0)
        sides.append(table.reshape(problem.levels[n], -1))
        rows.append(cell_rows(problem, [m for m in subset if m != n]))
        first += sides[-1].shape[1] if subset[0] == n else 0
    return Columns(
        np.ascontiguousarray(np.concatenate(sides, axis=1)),
        np.ascontiguousarray(np.concatenate(rows, axis=1)),
        np.repeat(problem.weight[tables], [side.shape[1] for side in sides]),
        first,
    )


def as_slabs(problem: Problem, n: int, tables: list[int], weight: float) -> Slabs:
    """Set triples with ``n`` into one tensor over all pairs of the other variables."""
    size = int(problem.offsets[-1])
    tensor, mask = np.zeros((problem.levels[n], size, size)), np.zeros((size, size))
    for i in tables:
        subset = problem.subsets[i]
        rows, columns = (problem.rows(m) for m in subset if m != n)
        tensor[:, rows, columns] = np.moveaxis(problem.tables[i], subset.index(n), 0)
        mask[rows, columns] = 1.0
    return Slabs(tensor, mask, weight, int(problem.offsets[n + 1]))


def mttkrp(problem: Problem, factors: Array, n: int, *, owned: bool = False) -> Array:
    """``V_n`` without the weights ``w``: (I_n, F). ``owned``: only tables that start with ``n``."""
    total = np.zeros((problem.levels[n], factors.shape[1]))
    for part in problem.unfoldings[n]:
        total += part.contract(factors, owned)
    return total


def residual_mttkrp(
    problem: Problem, weights: Array, factors: Array, n: int, *, owned: bool = False
) -> tuple[float, Array]:
    """The same sum for the residuals ``X - Xhat``, and half their weighted sum of squares.

    Near a perfect fit ``V - G A`` is the difference of two large numbers; this is not.
    """
    half, total = 0.0, np.zeros((problem.levels[n], factors.shape[1]))
    scaled = factors[problem.rows(n)] * weights
    for part in problem.unfoldings[n]:
        square, pulled = part.residual(scaled, factors, owned)
        half, total = half + square, total + pulled
    return half, total


def objective(problem: Problem, weights: Array, factors: Array) -> float:
    """Half the weighted sum of squared residuals, computed from the residuals themselves."""
    total = 0.0
    for n in range(len(problem.levels)):
        total += residual_mttkrp(problem, weights, factors, n, owned=True)[0]
    for moments in problem.moments:
        gap = moments.gaps(weights, factors)
        total += 0.5 * float(moments.family.weight @ gap**2)
    return total


def gram_stack(problem: Problem, factors: Array) -> Array:
    """``A_n^T A_n`` for every variable, (N, F, F)."""
    parts = (factors[problem.rows(n)] for n in range(len(problem.levels)))
    return np.stack([a.T @ a for a in parts])
