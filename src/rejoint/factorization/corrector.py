"""Least change of a mixture so that it meets tables.

With ``m(w, A)`` the tables of a model, ``J`` their derivative (see ``unfolding``), and
``r = t - m`` what they miss, the smallest relative change of weights and factors that removes
``r`` to first order is ``(a, s) = J' u`` with ``(J J' + mu diag(m)) u = r``, where ``u`` has one
number for each cell of each table: conjugate gradients need no normal matrix. The change is made in
logarithms, ``w exp(a)`` and ``A exp(s)``, each entry clipped: scaling the whole change by its
largest entry stalls. Steps that do not lower the misfit are shortened, then damped by ``mu``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rejoint.arrays import BoolArray, FloatArray
from rejoint.factorization.table_goals import ExactGoal, Goal, IntervalGoal
from rejoint.factorization.table_policy import POLICY
from rejoint.factorization.unfolding import FlatTables, TableTangent
from rejoint.model import Model


@dataclass(frozen=True, eq=False)
class Correction:
    """A model that was moved to tables, the total variation of the worst, and steps tried."""

    model: Model
    distance: float
    steps: int


def correct(
    model: Model,
    goals: Sequence[Goal],
    *,
    tolerance: float = POLICY.closely_met,
    max_steps: int = POLICY.max_corrections,
    watch: Callable[[Correction], None] | None = None,
) -> Correction:
    """Change a model as little as possible so that it meets tables.

    Probabilities of zero stay zero. Goals are exact or within bounds; soft ones are taken for what
    they project to at first, so that exact ones are to be given in their place. ``watch`` is told
    the state after every step.
    """
    cells = FlatTables(model.layout, tuple(goal.subset for goal in goals))
    if not goals:
        return Correction(model, 0.0, 0)
    sizes = np.diff(cells.starts)
    is_point = np.concatenate([_is_point(*pair) for pair in zip(goals, sizes, strict=True)])
    tangent, damping, steps = TableTangent(cells, model), POLICY.damping, 0
    targets = project(cells, goals, tangent.tables)
    misfit = _misfit(targets, tangent.tables)
    while True:
        distance = float(cells.distances(targets, tangent.tables).max())
        done = Correction(tangent.model, distance, steps)
        if watch is not None:
            watch(done)
        if distance <= tolerance or steps >= max_steps or damping > POLICY.most_damping:
            return done
        steps += 1
        change = _find_change(tangent, targets, damping, is_point)
        for length in POLICY.step_lengths:
            moved = TableTangent(cells, _move(tangent.model, change, length))
            wanted = project(cells, goals, moved.tables)
            if (after := _misfit(wanted, moved.tables)) <= POLICY.accepted_misfit * misfit:
                tangent, targets, misfit = moved, wanted, after
                damping = damping / POLICY.ease if length == 1.0 else damping
                break
        else:
            damping *= POLICY.tighten


def project(cells: FlatTables, goals: Sequence[Goal], tables: FloatArray) -> FloatArray:
    """What the tables should be, given what they are."""
    parts = zip(goals, cells.split(tables), strict=True)
    return np.concatenate([goal.project(part, np.zeros_like(part)) for goal, part in parts])


def _is_point(goal: Goal, size: int) -> BoolArray:
    """Which cells of a table have one value; of the others an interval is known."""
    if isinstance(goal, IntervalGoal):
        return np.asarray(goal.low == goal.high)
    return np.ones(size, dtype=bool)


def _misfit(targets: FloatArray, tables: FloatArray) -> float:
    """Sum of squared differences, each relative to the cell."""
    size = targets + tables
    return float(np.sum((targets - tables) ** 2 / np.where(size > 0.0, size, 1.0)))


def _find_change(
    tangent: TableTangent, targets: FloatArray, damping: float, is_point: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """The smallest relative change that removes what is missed, to first order.

    Cells within their interval may move.
    """
    from scipy.sparse.linalg import LinearOperator, cg  # slow to import

    missed = targets - tangent.tables
    is_free = ~is_point & (np.abs(missed) <= POLICY.rounding * tangent.tables)
    # In units of the square roots of the cells, which is what they are preconditioned by.
    unit = np.where(is_free, 0.0, 1.0) / np.sqrt(np.maximum(tangent.tables, 1e-12))

    def normal(numbers: FloatArray) -> FloatArray:
        change = tangent.apply(*tangent.transpose(unit * numbers))
        return unit * change + damping * numbers

    operator = LinearOperator((len(unit), len(unit)), normal, dtype=np.float64)
    limits = {"rtol": POLICY.inner_share, "maxiter": POLICY.inner_steps}
    return tangent.transpose(unit * cg(operator, unit * missed, **limits)[0])


def _move(model: Model, change: tuple[FloatArray, FloatArray], length: float) -> Model:
    """The model after a share of a change in logarithms, each entry clipped."""
    most, least = POLICY.largest_change, POLICY.least_probability
    classes, levels = (np.exp(np.clip(length * part, -most, most)) for part in change)
    weights = model.weights * classes
    factors = np.where(model.factors > 0.0, np.maximum(model.factors * levels, least), 0.0)
    return Model(model.layout, weights / weights.sum(), model.layout.normalize(factors))


def exclude_zeros(model: Model, goals: Sequence[Goal]) -> Model:
    """Return the model with probability zero in all cells that exact tables have at zero.

    In each class the least probable of the cell's levels is given up.
    """
    layout, factors = model.layout, model.factors.copy()
    every = np.arange(model.rank)
    for goal in goals:
        if not isinstance(goal, ExactGoal):
            continue
        offsets = layout.offsets[list(goal.subset)]
        shape = [layout.levels[n] for n in goal.subset]
        for cell in np.flatnonzero(goal.shares <= 0.0):
            rows = offsets + np.array(np.unravel_index(cell, shape))
            factors[rows[factors[rows].argmin(axis=0)], every] = 0.0
    alive = np.asarray((layout.sums(factors) > 0.0).all(axis=0))
    if alive.all():
        return Model(layout, model.weights, layout.normalize(factors))
    # A class has no level left for a variable.
    return exclude_zeros(model.take(alive), goals) if alive.any() else model
