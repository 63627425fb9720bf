"""Walks through models that have the same tables.

The state is one long vector ``x``: weights, then the factors of all variables, class by class in
every row. A step goes along the null space of the tables' Jacobian, and is brought back onto the
tables by Gauss-Newton; probabilities that reach zero stay there while the walk pushes against them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rejoint.identifiability.layout import Layout
from rejoint.pmf import LowRankPMF

__all__ = ["Fibre", "walk"]

Array = NDArray[np.float64]
Value = Callable[[Array], float]

#: Distance of the tables, in any cell, that counts as none.
EQUAL = 1e-12

#: Eigenvalues of ``J^T J`` below this share of the largest count as zero.
NULL = 1e-13


@dataclass(frozen=True)
class Fibre:
    """All models of one rank that share the tables of a given one."""

    tables: Layout
    model: LowRankPMF

    @cached_property
    def shapes(self) -> list[tuple[int, int]]:
        """Rows of weights and factors in the long vector, first and last but one."""
        ends = np.cumsum([0, 1, *self.tables.levels])
        return [(int(a), int(b)) for a, b in pairwise(ends)]

    @cached_property
    def start(self) -> Array:
        """The given model as a long vector."""
        return np.vstack([self.model.weights[None], *self.model.factors]).ravel()

    @cached_property
    def target(self) -> Array:
        """The tables to keep."""
        return self.values(self.start)

    @cached_property
    def sums(self) -> Array:
        """What must stay one: the weights, and every column of every factor; one row each."""
        rank = self.model.rank
        rows = np.zeros((1 + rank * len(self.tables.levels), len(self.start)))
        rows[0, :rank] = 1.0
        for n, (a, b) in enumerate(self.shapes[1:]):
            for f in range(rank):
                rows[1 + n * rank + f, a * rank + f : b * rank : rank] = 1.0
        return rows

    def parts(self, x: Array) -> list[Array]:
        """Weights (1, F) and factors (I_n, F)."""
        rows = x.reshape(-1, self.model.rank)
        return [rows[a:b] for a, b in self.shapes]

    def values(self, x: Array) -> Array:
        """All tables, one after another, and all sums."""
        weights, *factors = self.parts(x)
        cells = [rows_of([weights, *(factors[n] for n in s)]).sum(axis=1) for s in self.subsets]
        columns = [factor.sum(axis=0) for factor in factors]
        return np.concatenate([*cells, [weights.sum()], *columns])

    @cached_property
    def subsets(self) -> list[tuple[int, ...]]:
        """The tables."""
        return list(self.tables.tables())

    def jacobian(self, x: Array) -> Array:
        """Of all tables and sums, (rows, parameters)."""
        weights, *factors = self.parts(x)
        rank = self.model.rank
        blocks = []
        for subset in self.subsets:
            chosen = [weights, *(factors[n] for n in subset)]
            cells = int(np.prod([len(part) for part in chosen]))
            block = np.zeros((cells, len(x)))
            for slot, n in enumerate((-1, *subset)):
                a, b = self.shapes[n + 1]
                left, right = rows_of(chosen[:slot], rank), rows_of(chosen[slot + 1 :], rank)
                outer = left[:, None, :] * right[None]  # (cells left, cells right, F)
                for i in range(b - a):
                    where = np.zeros((len(left), b - a, len(right)), dtype=bool)
                    where[:, i] = True
                    columns = slice((a + i) * rank, (a + i + 1) * rank)
                    block[where.ravel(), columns] = outer.reshape(-1, rank)
            blocks.append(block)
        return np.vstack([*blocks, self.sums])

    def as_model(self, x: Array) -> LowRankPMF:
        """The long vector as a model."""
        weights, *factors = (np.maximum(part, 0.0) for part in self.parts(x))
        columns = [factor / factor.sum(axis=0) for factor in factors]
        return LowRankPMF(weights[0] / weights.sum(), columns, self.model.domain)


def rows_of(parts: Sequence[Array], rank: int = 0) -> Array:
    """Products of the rows of some matrices, (cells, F); a row of ones for none."""
    rows = np.ones((1, rank or parts[0].shape[1]))
    for part in parts:
        rows = (rows[:, None, :] * part[None]).reshape(-1, rows.shape[1])
    return rows


@dataclass(frozen=True)
class Tangent:
    """Directions at a point that keep the tables, and how to get back onto them."""

    null: Array  # (P, K)
    back: Array  # (P, rows), pseudo-inverse of the Jacobian


def tangent(fibre: Fibre, x: Array, held: NDArray[np.bool_]) -> Tangent:
    """With the parameters ``held`` fixed."""
    jacobian = fibre.jacobian(x)
    jacobian[:, held] = 0.0
    values, vectors = np.linalg.eigh(jacobian.T @ jacobian)
    zero = values <= NULL * values[-1]
    null = vectors[:, zero]
    # A held parameter is a null direction of its own: it is left out.
    if held.any():
        free = null.copy()
        free[held] = 0.0
        u, s, _ = np.linalg.svd(free, full_matrices=False)
        null = u[:, s > 0.5]
    kept = vectors[:, ~zero]
    return Tangent(null, (kept / values[~zero]) @ (kept.T @ jacobian.T))


def slopes(value: Value, x: Array, directions: Array, step: float = 1e-6) -> Array:
    """Derivatives of a function along some directions."""
    return np.array(
        [(value(x + step * v) - value(x - step * v)) / (2 * step) for v in directions.T]
    )


def ascent(fibre: Fibre, x: Array, value: Value) -> tuple[Array, Tangent]:
    """Steepest feasible direction that keeps the tables, and the tangent that it lies in."""
    zero = x <= EQUAL
    held = np.zeros(len(x), dtype=bool)
    for _ in range(len(x)):
        here = tangent(fibre, x, held)
        direction = here.null @ slopes(value, x, here.null)
        pushed = zero & ~held & (direction < 0)
        if not pushed.any():
            break
        held |= pushed
    return direction, here


def returned(fibre: Fibre, x: Array, here: Tangent) -> Array | None:
    """Back onto the tables; None if that fails or leaves the simplex."""
    for _ in range(12):
        gap = fibre.values(x) - fibre.target
        if np.abs(gap).max() <= EQUAL:
            return np.where(x < EQUAL, 0.0, x) if x.min() >= -EQUAL else None
        x = x - here.back @ gap
    return None


def walk(fibre: Fibre, x: Array, value: Value, steps: int = 60) -> Array:
    """Raise ``value`` as far as the walk goes; the tables stay."""
    length, before = 0.1, value(x)
    for _ in range(steps):
        direction, here = ascent(fibre, x, value)
        size = float(np.linalg.norm(direction))
        if size < 1e-7:
            break
        direction = direction / size
        toward = direction < -1e-12
        room = float((x[toward] / -direction[toward]).min()) if toward.any() else length
        length = min(2 * length, max(room, 1e-12))
        while length > 1e-9:
            trial = returned(fibre, x + length * direction, here)
            if trial is not None and value(trial) > before:
                break
            length /= 2
        else:
            break
        gain, x = value(trial) - before, trial
        before += gain
        if gain < 1e-9:
            break
    return x
