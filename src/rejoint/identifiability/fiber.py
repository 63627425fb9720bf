"""Fiber: all models of one rank that have the same tables as a given one.

A model is a matrix ``x`` (1 + L, F): the weights above the stacked factors. It is brought onto the
tables by Gauss-Newton steps that keep it nonnegative, each a problem of nonnegative least squares

    min_{z >= 0} |J (z - x) + r|^2 + damping |z - y|^2

with the residuals ``r`` of tables and column sums at ``x``. ``y`` is where the step leads: what
keeps the tables on the way there is kept, so that a walk towards higher values of a function stays
on the fiber and follows its faces, where probabilities are zero. Neither tables nor their Jacobian
are formed: ``J^T J`` and ``J^T r`` come from inner products of the factors.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import linear_sum_assignment, nnls

from rejoint.arrays import FloatArray
from rejoint.identifiability.gram_sums import (
    Family,
    factor_grams,
    scaled_gram_matrix,
    weights_gram,
)
from rejoint.identifiability.layout import TableLayout
from rejoint.model import Layout, Model
from rejoint.queries.tables import khatri_rao

#: Difference between two tables, in any cell, up to which they are the same.
EQUAL_CELLS = 1e-13

#: Difference between the classes of two models above which they are not the same.
OTHER_CLASSES = 1e-4

#: Relative error of a joint below which it is the same.
SAME_JOINT = 1e-6

#: Parameters of a model up to which others are sought.
MOST_SEARCHED = 150

#: Directions around a model, and fits from random starts, in which others are sought.
N_DIRECTIONS, N_FITS = 8, 6

#: The same along a walk, whose end is brought closer.
NEARLY_EQUAL = 1e-6

#: Damping of steps on the fiber.
LEAST_DAMPING = 1e-9

#: Steps back onto the tables.
MOST_RETURNS = 12

#: A function of a model and its gradient.
Goal = Callable[[FloatArray], tuple[float, FloatArray]]


def _project(direction: FloatArray, x: FloatArray) -> tuple[float, FloatArray]:
    """How far a model is in a direction, and the gradient."""
    return float((direction * x).sum()), direction


@dataclass(frozen=True)
class Fiber:
    """All models of one rank that have the tables of a given one."""

    tables: TableLayout
    model: Model

    @cached_property
    def layout(self) -> Layout:
        """Rows of a model: one of weights, then those of each factor."""
        return Layout((1, *self.tables.levels))

    @property
    def start(self) -> FloatArray:
        """The given model."""
        return self.model.stacked

    @cached_property
    def sums(self) -> FloatArray:
        """Jacobian of what must be one: the weights' sum, and every column of every factor."""
        rank, levels = self.model.rank, self.tables.levels
        rows = np.zeros((1 + rank * len(levels), self.start.size))
        rows[0, :rank] = 1.0
        rows[1:, rank:] = np.kron(np.repeat(np.eye(len(levels)), levels, axis=1), np.eye(rank))
        return rows

    def split(self, x: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """Weights (F,) and factors (I_n, F)."""
        weights, *factors = self.layout.split(x)
        return weights[0], factors

    def gap(self, x: FloatArray) -> float:
        """Largest difference to the tables of the given model, in any cell."""
        one, other = self.split(x), self.split(self.start)
        gap = float(np.abs(self.sums @ x.ravel() - 1.0).max())
        for subset in self.tables.iter_subsets():
            cells = [khatri_rao([f[n] for n in subset], w).sum(axis=1) for w, f in (one, other)]
            gap = max(gap, float(np.abs(cells[0] - cells[1]).max()))
        return gap

    def normal(self, x: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """``J^T J``, ``J^T r`` and ``|r|^2`` at a model."""
        families = self.tables.families
        (weights, factors), (own, others) = self.split(x), self.split(self.start)
        full = scaled_gram_matrix(families, factors, weights)
        here = full[:, :, 0] @ weights
        there = pull_tables(families, factors, others) @ own
        there[1:] *= weights
        slope = here - there
        square = weights @ (here[0] - 2.0 * there[0]) + self.norm
        gaps = self.sums @ x.ravel() - 1.0
        full = full.reshape(x.size, x.size) + self.sums.T @ self.sums
        return full, slope.ravel() + gaps @ self.sums, max(float(square), 0.0) + float(gaps @ gaps)

    @cached_property
    def norm(self) -> float:
        """Sum of the squared cells of all tables."""
        own, others = self.split(self.start)
        return float(own @ pull_tables(self.tables.families, others, others)[0] @ own)

    def step(self, x: FloatArray, toward: FloatArray, damping: float) -> FloatArray | None:
        """One step from ``x``, as near to ``toward`` as the linear equations allow."""
        full, slope, _ = self.normal(x)
        right = full @ x.ravel() - slope + damping * toward.ravel()
        full[np.diag_indices_from(full)] += damping
        try:
            upper = cholesky(full, check_finite=False)
            left = solve_triangular(upper, right, trans="T", check_finite=False)
            return np.asarray(nnls(upper, left)[0].reshape(x.shape))
        except (LinAlgError, RuntimeError):  # not positive definite, or no end of steps
            return None

    def move(
        self, x: FloatArray, toward: FloatArray, equal: float = EQUAL_CELLS
    ) -> FloatArray | None:
        """Return a model on the fiber near ``toward``, starting at ``x``; None if none is met."""
        moved = self.step(x, toward, LEAST_DAMPING)
        return None if moved is None else self.restore(moved, equal)

    def restore(self, x: FloatArray, equal: float = EQUAL_CELLS) -> FloatArray | None:
        """Bring a model onto the tables; None if that fails."""
        before = np.inf
        for _ in range(MOST_RETURNS):
            gap = self.gap(x)
            if gap <= equal:
                return x
            if not gap < 0.5 * before:
                return None
            moved, before = self.step(x, x, LEAST_DAMPING), gap
            if moved is None:
                return None
            x = moved
        return None

    def climb(self, x: FloatArray, goal: Goal, steps: int, gain: float = 1e-6) -> FloatArray:
        """Raise a function along the fiber."""
        start, length = x, 0.3
        value, slope = goal(x)
        for _ in range(steps):
            size = np.linalg.norm(slope)
            if size < 1e-9:
                break
            while length > 1e-4:
                trial = self.move(x, x + length / size * slope, NEARLY_EQUAL)
                if trial is not None and (reached := goal(trial))[0] > value + gain:
                    break
                length /= 4
            else:
                break
            x, (value, slope) = trial, reached
            length = min(2 * length, 16.0)
        end = self.restore(x)
        return start if end is None else end

    def fit(self, x: FloatArray, steps: int) -> FloatArray | None:
        """Fit the tables from another start; None where that ends elsewhere."""
        damping, square = 1e-3, self.normal(x)[2]
        for _ in range(steps):
            moved = self.step(x, x, damping)
            reached = np.inf if moved is None else self.normal(moved)[2]
            if moved is None or reached >= square:
                damping *= 8
                if damping > 1e4:
                    return None
                continue
            x, square, damping = moved, reached, max(damping / 4, LEAST_DAMPING)
            if square < 1e-12 and (met := self.restore(x)) is not None:
                return met
        return None

    def find_other(self) -> tuple[FloatArray | None, str]:
        """Another model with the same tables, near or far; and what was searched."""
        x, rng, met = self.start, np.random.default_rng(0), 0
        if (other := self.free_other()) is not None:
            return other, ""
        if x.size > MOST_SEARCHED:
            return None, "the model is too large to search for others"
        for _ in range(N_DIRECTIONS):
            turn = rng.standard_normal(x.shape)
            for length in (1.0, 0.1, 0.01):
                moved = self.move(x, x + length * turn)
                if moved is None:
                    continue
                if self.class_distance(moved) > 0.01 * OTHER_CLASSES:
                    moved = self.climb(moved, partial(_project, turn), 20)
                if self.class_distance(moved) > OTHER_CLASSES:
                    return moved, ""
        for _ in range(N_FITS):
            fitted = self.fit(self.random_start(rng), 60)
            met += fitted is not None
            if fitted is not None and self.class_distance(fitted) > OTHER_CLASSES:
                return fitted, ""
        fits = f"{N_FITS} fits from random starts, {met} of which met the tables"
        return None, f"{fits}, found no other"

    def free_other(self) -> FloatArray | None:
        """Another model where some columns are in no table, or two classes nearly the same."""
        x, names = self.start.copy(), self.tables.domain.names
        dead, rank = x[0] <= 0.0, self.model.rank
        for n, size in enumerate(self.tables.levels):
            classes = np.full(rank, True) if names[n] in self.tables.uncovered else dead
            rows = self.layout.rows(n + 1)
            # The rarest level gets all probability.
            x[rows, classes] = np.eye(size)[:, x[rows].argmin(axis=0)][:, classes]
        if (x != self.start).any():
            return x
        differs = np.abs(x[1:, :, None] - x[1:, None]) > 1e-12
        for f, g in zip(*np.triu_indices(rank, 1), strict=True):
            distinct = self.model.layout.sums(differs[:, f, g].astype(float)) > 0
            if distinct.sum() <= 1:
                total = x[0, f] + x[0, g]
                x[1:, [f, g]] = ((x[1:, f] * x[0, f] + x[1:, g] * x[0, g]) / total)[:, None]
                share = 0.2 if x[0, f] > x[0, g] else 0.8
                x[0, [f, g]] = total * share, total * (1.0 - share)
                return x
        return None

    def random_start(self, rng: np.random.Generator) -> FloatArray:
        """A random model, every column drawn evenly from the simplex."""
        rank = self.model.rank
        columns = [rng.dirichlet(np.ones(size), size=rank).T for size in self.tables.levels]
        return np.vstack([rng.dirichlet(np.full(rank, 3.0)), *columns])

    def class_distance(self, x: FloatArray) -> float:
        """Largest difference to a class of the given model, the classes matched at best."""
        own, other = (np.vstack([z[:1], z[1:] * z[0]]) for z in (self.start, x))
        gaps = np.abs(own[:, :, None] - other[:, None]).max(axis=0)
        return float(gaps[linear_sum_assignment(gaps)].max())

    def joint_distance(self, x: FloatArray) -> float:
        """Distance of a joint to that of the given model, relative to the latter's norm."""
        (w, a), (v, b) = self.split(x), self.split(self.start)

        def inner(left: Sequence[FloatArray], right: Sequence[FloatArray]) -> FloatArray:
            return np.asarray(np.prod([f.T @ g for f, g in zip(left, right, strict=True)], axis=0))

        norm = float(v @ inner(b, b) @ v)
        square = float(w @ inner(a, a) @ w - 2.0 * w @ inner(a, b) @ v) + norm
        return float(np.sqrt(max(square, 0.0) / norm))


def pull_tables(
    families: Sequence[Family], factors: Sequence[FloatArray], others: Sequence[FloatArray]
) -> FloatArray:
    """``J^T`` times the tables of the classes of another model, (1 + L, F, G), weights first.

    Factors of class ``f`` are scaled by its weight, as in ``gram_matrix``.
    """
    inner = np.stack([a.T @ b for a, b in zip(factors, others, strict=True)])
    rows = np.repeat(factor_grams(families, inner), [len(a) for a in factors], axis=0)
    return np.concatenate([weights_gram(families, inner)[None], rows * np.vstack(others)[:, None]])
