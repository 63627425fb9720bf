"""The least-squares problem behind S2: tables, how they are stacked, residuals.

The unknowns are ``w`` (F,) and ``A`` (L, F), the factors of all variables one below the
other, ``L = sum I_n``. Everything a solver needs is a sum over tables ``S`` of the paper's
objective ``1/2 sum_S omega_S || X_S - [w; A_n, n in S] ||^2`` (omega = 1 in the paper):

* ``V_n = sum_S omega_S X_S x_{m != n} A_m``, a sum of MTTKRPs, here one GEMM: the tables that
  contain ``n`` are unfolded along ``n`` and set side by side, ``(I_n x C_n) (C_n x F)``;
* ``G_n = sum_S omega_S prod_{m != n} A_m^T A_m`` (see ``grams``);
* the residuals, computed directly: ``|X|^2/2 - v w + w G w/2`` loses all digits near 1e-8.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray

from rejoint.factorization.grams import Family

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

#: Cells gathered at a time when residuals are computed: bounds memory at about 8 MB x F/20.
CHUNK = 50_000


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
    def unfoldings(self) -> tuple[tuple["Unfolding", ...], ...]:
        """For each variable the tables that contain it, unfolded and set side by side."""
        return tuple(unfold(self, n) for n in range(len(self.levels)))


@dataclass(frozen=True)
class Unfolding:
    """Tables of one order that contain variable ``n``, unfolded along it, side by side.

    ``matrix`` is (I_n, C), ``columns`` (d-1, C) the stacked rows of the other variables that
    each column stands for, ``weight`` (C,) the table's omega. The first ``owned`` columns belong
    to tables whose first variable is ``n``: over all ``n`` these are each table exactly once.
    """

    matrix: Array
    columns: Rows
    weight: Array
    owned: int

    def blocks(self, owned: bool) -> Iterator[slice]:
        """Column ranges of bounded size."""
        stop = self.owned if owned else self.matrix.shape[1]
        for start in range(0, stop, CHUNK):
            yield slice(start, min(stop, start + CHUNK))


def cell_rows(problem: Problem, subset: Sequence[int]) -> Rows:
    """Stacked rows (d, cells) of the cells of a table over ``subset``, in C order."""
    shape = [problem.levels[n] for n in subset]
    grid = np.indices(shape, dtype=np.intp).reshape(len(subset), int(np.prod(shape)))
    return grid + problem.offsets[list(subset)][:, None]


def unfold(problem: Problem, n: int) -> tuple[Unfolding, ...]:
    """Set the tables that contain ``n`` side by side, one matrix per order."""
    parts = []
    for order in sorted({len(s) for s in problem.subsets}):
        mine = [i for i, s in enumerate(problem.subsets) if len(s) == order and n in s]
        mine.sort(key=lambda i: problem.subsets[i][0] != n)
        if not mine:
            continue
        sides, rows, owned = [], [], 0
        for i in mine:
            subset = problem.subsets[i]
            table = np.moveaxis(problem.tables[i], subset.index(n), 0)
            sides.append(table.reshape(problem.levels[n], -1))
            rows.append(cell_rows(problem, [m for m in subset if m != n]))
            owned += sides[-1].shape[1] if subset[0] == n else 0
        widths = [side.shape[1] for side in sides]
        parts.append(
            Unfolding(
                np.ascontiguousarray(np.concatenate(sides, axis=1)),
                np.ascontiguousarray(np.concatenate(rows, axis=1)),
                np.repeat(problem.weight[mine], widths),
                owned,
            )
        )
    return tuple(parts)


def khatri_rao(factors: Array, columns: Rows) -> Array:
    """Rows of the stacked Khatri-Rao product: ``prod_k A[columns[k]]``, (C, F)."""
    if len(columns) == 0:
        return np.ones((columns.shape[1], factors.shape[1]))
    product: Array = factors[columns[0]]
    for column in columns[1:]:
        product *= factors[column]
    return product


def mttkrp(problem: Problem, factors: Array, n: int, *, owned: bool = False) -> Array:
    """``V_n`` without the weights ``w``: (I_n, F). ``owned``: only tables that start with ``n``."""
    total = np.zeros((problem.levels[n], factors.shape[1]))
    for part in problem.unfoldings[n]:
        for block in part.blocks(owned):
            product = khatri_rao(factors, part.columns[:, block])
            total += part.matrix[:, block] @ (product * part.weight[block, None])
    return total


def residual_mttkrp(
    problem: Problem, weights: Array, factors: Array, n: int, *, owned: bool = False
) -> tuple[float, Array]:
    """The same sum for the residuals ``X - Xhat``, and half their weighted sum of squares.

    Near a perfect fit ``V - G A`` is the difference of two large numbers; this is not.
    """
    total = np.zeros((problem.levels[n], factors.shape[1]))
    half_square = 0.0
    mine = factors[problem.rows(n)] * weights
    for part in problem.unfoldings[n]:
        for block in part.blocks(owned):
            product = khatri_rao(factors, part.columns[:, block])
            residual = part.matrix[:, block] - mine @ product.T
            weighted = residual * part.weight[block]
            half_square += 0.5 * float(np.vdot(residual, weighted))
            total += weighted @ product
    return half_square, total


def objective(problem: Problem, weights: Array, factors: Array) -> float:
    """Half the weighted sum of squared residuals, computed from the residuals themselves."""
    total = 0.0
    for n, parts in enumerate(problem.unfoldings):
        mine = factors[problem.rows(n)] * weights
        for part in parts:
            for block in part.blocks(owned=True):
                residual = part.matrix[:, block]
                residual = residual - mine @ khatri_rao(factors, part.columns[:, block]).T
                total += 0.5 * float(np.vdot(residual, residual * part.weight[block]))
    for moments in problem.moments:
        gap = moments.gaps(weights, factors)
        total += 0.5 * float(moments.family.weight @ gap**2)
    return total


def gram_stack(problem: Problem, factors: Array) -> Array:
    """``A_n^T A_n`` for every variable, (N, F, F)."""
    parts = (factors[problem.rows(n)] for n in range(len(problem.levels)))
    return np.stack([a.T @ a for a in parts])
