"""Least change of a mixture so that it meets tables.

With ``m(w, A)`` the tables of a model and ``r = t - m`` what they miss, the smallest relative
change of weights and factors that removes ``r`` to first order is ``(a, s) = J' u`` with
``(J J' + mu diag(m)) u = r``, where ``u`` has one number for each cell of each table. With
``u(x) = sum_S u_S(x_S)`` and expectations ``E_f`` under class ``f``,

* ``J' u`` is ``a_f = E_f[u] - E[u]`` for the weights and ``s_nif = E_f[u | x_n = i] - E_f[u]`` for
  the factors,
* ``J (a, s)`` is ``sum_f w_f prod_n A_n (a_f + sum_n s_n)`` in each table.

Both are matrix products of the tables, unfolded along each variable, with Khatri-Rao products that
are formed once for each step, so that conjugate gradients need no normal matrix. The change is made
in logarithms, ``w exp(a)`` and ``A exp(s)``, each entry clipped: scaling the whole change by its
largest entry stalls. Steps that do not lower the misfit are shortened, then damped by ``mu``.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray
from rejoint.factorization.table_goals import Exact, Goal, Within
from rejoint.factorization.unfolding import Rows, khatri_rao
from rejoint.kernels import table_sizes
from rejoint.model import Layout, Model

#: Numbers of Khatri-Rao products that are kept during a step (400 MB); more are formed again.
MOST_KEPT_NUMBERS = 50_000_000

#: Damping at first, its largest value, by what it is divided after a full step that was accepted,
#: and multiplied after a step that was not.
DAMPING, MOST_DAMPING, EASE, TIGHTEN = 1e-3, 1e6, 5.0, 25.0

#: Steps of conjugate gradients for one change, and the share of the misfit that they leave: more
#: accuracy is lost in the next step, which starts from another model.
INNER_STEPS, INNER_SHARE = 100, 0.1

#: Largest change of a logarithm in one step.
LARGEST_CHANGE = 2.0

#: A step is accepted that leaves at most this share of the misfit; lengths that are tried.
ACCEPTED, LENGTHS = 0.9, (1.0, 0.4, 0.16, 0.064)

#: Least probability of a level in a class that does not exclude it: one of zero could not return.
LEAST_PROBABILITY = 1e-9

#: Differences of a cell from its goal, as a share of the cell, that rounding makes.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class GoalCells:
    """The cells of some tables, one table after another in one flat vector.

    Parameters
    ----------
    layout : Layout
        Where the levels of each variable stand.
    subsets : tuple of tuple of int
        Variables of each table, increasing.

    Examples
    --------
    >>> cells = GoalCells(Layout((2, 2)), ((0, 1), (0,)))
    >>> cells.of_model(Model.of([0.5, 0.5], [np.eye(2), [[0.9, 0.2], [0.1, 0.8]]])).round(3)
    array([0.45, 0.05, 0.1 , 0.4 , 0.5 , 0.5 ])
    """

    layout: Layout
    subsets: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, model: Model, goals: Sequence[Goal]) -> "GoalCells":
        """The cells of the tables of some goals."""
        return cls(model.layout, tuple(goal.subset for goal in goals))

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each table starts, and the end."""
        return np.concatenate([[0], np.cumsum(table_sizes(self.layout.levels, self.subsets))])

    @cached_property
    def unfoldings(self) -> tuple["GoalCellsOfVariable", ...]:
        """For each variable the cells of the tables that hold it."""
        return tuple(self._unfold(n) for n in range(len(self.layout.levels)))

    def _unfold(self, n: int) -> "GoalCellsOfVariable":
        most = max((len(subset) for subset in self.subsets), default=1)
        mine = [k for k, subset in enumerate(self.subsets) if n in subset]
        mine.sort(key=lambda k: self.subsets[k][0] != n)
        places = [np.empty((self.layout.levels[n], 0), np.intp)]
        rows = [np.empty((max(most - 1, 1), 0), np.intp)]
        owned = 0
        for k in mine:
            subset = self.subsets[k]
            axis, shape = subset.index(n), [self.layout.levels[m] for m in subset]
            flat = self.starts[k] + np.arange(np.prod(shape)).reshape(shape)
            places.append(np.moveaxis(flat, axis, 0).reshape(shape[axis], -1))
            others = [m for m in subset if m != n]
            columns = places[-1].shape[1]
            grid = np.indices([self.layout.levels[m] for m in others]).reshape(len(others), columns)
            # The row after the last stands for a variable that is not there.
            part = np.full((len(rows[0]), columns), self.layout.size, np.intp)
            part[: len(others)] = grid + self.layout.offsets[others][:, None]
            rows.append(part)
            owned += columns if axis == 0 else 0
        return GoalCellsOfVariable(np.hstack(places), np.hstack(rows), owned)

    def size(self, k: int) -> int:
        """Number of cells of a table."""
        return int(self.starts[k + 1] - self.starts[k])

    def split(self, tables: FloatArray) -> list[FloatArray]:
        """The tables one by one, flat."""
        return np.split(tables, self.starts[1:-1])

    def aim(self, goals: Sequence[Goal], tables: FloatArray) -> FloatArray:
        """What the tables should be, given what they are."""
        parts = zip(goals, self.split(tables), strict=True)
        return np.concatenate([goal.aim(part, np.zeros_like(part)) for goal, part in parts])

    def of_model(self, model: Model) -> FloatArray:
        """The tables of a model."""
        return TableTangent(self, model).tables

    def distances(self, one: FloatArray, other: FloatArray) -> FloatArray:
        """Total variation distance of each table."""
        return np.asarray(0.5 * np.add.reduceat(np.abs(one - other), self.starts[:-1]))


@dataclass(frozen=True, eq=False)
class GoalCellsOfVariable:
    """Cells of the tables that hold a variable, unfolded along it and side by side.

    ``places`` (I_n, C) are positions in the flat vector, ``rows`` (d - 1, C) the stacked rows of
    the other variables; the first ``owned`` columns are those of tables that begin with it.
    """

    places: Rows
    rows: Rows
    owned: int


class TableTangent:
    """Tables of a model, and how they change with relative changes of weights and factors.

    Examples
    --------
    >>> cells = GoalCells(Layout((2,)), ((0,),))
    >>> tangent = TableTangent(cells, Model.of([0.5, 0.5], [[[0.9, 0.2], [0.1, 0.8]]]))
    >>> a, s = tangent.pull(np.array([1.0, 0.0]))
    >>> a.round(3), s.round(3)
    (array([ 0.35, -0.35]), array([[ 0.1,  0.8],
           [-0.9, -0.2]]))
    >>> tangent.push(a, s).round(4)
    array([ 0.2475, -0.2475])
    """

    def __init__(self, cells: GoalCells, model: Model) -> None:
        self.cells, self.model = cells, model
        self._padded = np.vstack([model.factors, np.ones(model.rank)])
        self._scaled = model.factors * model.weights
        columns = sum(part.places.shape[1] for part in cells.unfoldings)
        step = max(1, MOST_KEPT_NUMBERS // max(columns, 1))
        edges = [*range(0, model.rank, step), model.rank]
        self._blocks = [slice(*edge) for edge in pairwise(edges)]
        self._kept: list[FloatArray] | None = None
        if len(self._blocks) == 1:
            self._kept = list(self._form(self._blocks[0]))

    def _form(self, block: slice) -> Iterator[FloatArray]:
        """Khatri-Rao products of the other variables, for each variable, (C, F)."""
        padded = self._padded[:, block]
        for part in self.cells.unfoldings:
            yield khatri_rao(padded, part.rows)

    def _parts(self) -> Iterator[tuple[slice, slice, GoalCellsOfVariable, FloatArray]]:
        """Blocks of classes; rows and cells of each variable; and their Khatri-Rao product."""
        layout = self.cells.layout
        for block in self._blocks:
            products = self._kept if self._kept is not None else self._form(block)
            for n, (part, product) in enumerate(zip(self.cells.unfoldings, products, strict=True)):
                if part.places.size:
                    yield block, layout.rows(n), part, product

    @cached_property
    def tables(self) -> FloatArray:
        """The tables of the model, flat."""
        found = np.zeros(int(self.cells.starts[-1]))
        for block, rows, part, product in self._parts():
            if part.owned:
                own = part.places[:, : part.owned]
                found[own] += self._scaled[rows, block] @ product[: part.owned].T
        return found

    def pull(self, numbers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``J' u``: relative changes of weights (F,) and factors (L, F)."""
        classes, levels = np.zeros(self.model.rank), np.zeros_like(self._scaled)
        for block, rows, part, product in self._parts():
            mine, factor, owned = numbers[part.places], self.model.factors[rows, block], part.owned
            pulled = mine[:, :owned] @ product[:owned]
            classes[block] += np.einsum("if,if->f", factor, pulled)
            pulled += mine[:, owned:] @ product[owned:]
            pulled -= np.einsum("if,if->f", factor, pulled)
            levels[rows, block] = pulled
        classes -= self.model.weights @ classes
        return classes, levels

    def push(self, classes: FloatArray, levels: FloatArray) -> FloatArray:
        """``J (a, s)``: changes of the tables, flat."""
        found = np.zeros(int(self.cells.starts[-1]))
        for block, rows, part, product in self._parts():
            scaled, owned = self._scaled[rows, block], part.owned
            change = scaled * levels[rows, block]
            found[part.places[:, owned:]] += change @ product[owned:].T
            change += scaled * classes[block]
            found[part.places[:, :owned]] += change @ product[:owned].T
        return found


@dataclass(frozen=True, eq=False)
class Correction:
    """A model that was moved to tables.

    Parameters
    ----------
    model : Model
    distance : float
        Total variation distance of the table that is met worst.
    steps : int
        Steps that were tried.
    """

    model: Model
    distance: float
    steps: int


def correct(
    model: Model,
    goals: Sequence[Goal],
    *,
    tolerance: float = 1e-7,
    max_steps: int = 80,
    watch: Callable[[Correction], None] | None = None,
) -> Correction:
    """Change a model as little as possible so that it meets tables.

    Parameters
    ----------
    model : Model
        Where to begin. Probabilities of zero stay zero.
    goals : sequence of Goal
        The tables: exact, or within bounds. Goals that pull are taken for what they pull to at
        first, so that exact ones are to be given in their place.
    tolerance : float
        Total variation distance to which every table is to be met.
    max_steps : int
        Steps at the most.
    watch : callable, optional
        Is told the state after every step.

    Returns
    -------
    Correction
        The model that meets the tables best; ``distance`` says how well.

    Examples
    --------
    >>> goal = Exact((0, 1), np.array([0.4, 0.1, 0.2, 0.3]))
    >>> start = Model.of([0.5, 0.5], [[[0.8, 0.3], [0.2, 0.7]]] * 2)
    >>> done = correct(start, [goal])
    >>> bool(done.distance < 1e-7), GoalCells.of(start, [goal]).of_model(done.model).round(6)
    (True, array([0.4, 0.1, 0.2, 0.3]))
    """
    cells = GoalCells.of(model, goals)
    if not len(goals):
        return Correction(model, 0.0, 0)
    known = np.concatenate([_is_known(goal, cells.size(k)) for k, goal in enumerate(goals)])
    tangent, damping, steps = TableTangent(cells, model), DAMPING, 0
    aims = cells.aim(goals, tangent.tables)
    misfit = _misfit(aims, tangent.tables)
    while True:
        distance = float(cells.distances(aims, tangent.tables).max())
        done = Correction(tangent.model, distance, steps)
        if watch is not None:
            watch(done)
        if distance <= tolerance or steps >= max_steps or damping > MOST_DAMPING:
            return done
        steps += 1
        change = _find_change(tangent, aims, damping, known)
        for length in LENGTHS:
            moved = TableTangent(cells, _move(tangent.model, change, length))
            found = cells.aim(goals, moved.tables)
            left = _misfit(found, moved.tables)
            if left <= ACCEPTED * misfit:
                tangent, aims, misfit = moved, found, left
                damping = damping / EASE if length == 1.0 else damping
                break
        else:
            damping *= TIGHTEN


def _is_known(goal: Goal, size: int) -> NDArray[np.bool_]:
    """Which cells of a table have one value; of the others an interval is known."""
    if isinstance(goal, Within):
        return np.asarray(goal.low == goal.high)
    return np.ones(size, dtype=bool)


def _misfit(aims: FloatArray, tables: FloatArray) -> float:
    """Sum of squared differences, each relative to the cell."""
    size = aims + tables
    return float(np.sum((aims - tables) ** 2 / np.where(size > 0.0, size, 1.0)))


def _find_change(
    tangent: TableTangent, aims: FloatArray, damping: float, known: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """The smallest relative change that removes what is missed, to first order.

    Cells within their interval may move.
    """
    missed = aims - tangent.tables
    inside = ~known & (np.abs(missed) <= ROUNDING * tangent.tables)
    counts = np.where(inside, 0.0, 1.0)
    size = np.maximum(tangent.tables, 1e-12)

    def normal(numbers: FloatArray) -> FloatArray:
        return counts * tangent.push(*tangent.pull(counts * numbers)) + damping * size * numbers

    return tangent.pull(counts * _conjugate_gradients(normal, counts * missed, 1.0 / size))


def _conjugate_gradients(
    normal: Callable[[FloatArray], FloatArray], right: FloatArray, scale: FloatArray
) -> FloatArray:
    """Solve ``normal(u) = right`` roughly; ``scale`` is the preconditioner."""
    found, rest = np.zeros_like(right), right.copy()
    scaled = scale * rest
    direction, size = scaled.copy(), float(rest @ scaled)
    enough = INNER_SHARE**2 * size
    for _ in range(INNER_STEPS):
        image = normal(direction)
        curvature = float(direction @ image)
        if not curvature > 0.0:
            break
        found += size / curvature * direction
        rest -= size / curvature * image
        scaled = scale * rest
        before, size = size, float(rest @ scaled)
        if size <= enough:
            break
        direction = scaled + size / before * direction
    return found


def _move(model: Model, change: tuple[FloatArray, FloatArray], length: float) -> Model:
    """The model after a share of a change in logarithms, each entry clipped."""
    classes, levels = (
        np.exp(np.clip(length * part, -LARGEST_CHANGE, LARGEST_CHANGE)) for part in change
    )
    weights = model.weights * classes
    factors = np.where(
        model.factors > 0.0, np.maximum(model.factors * levels, LEAST_PROBABILITY), 0.0
    )
    return Model(model.layout, weights / weights.sum(), model.layout.normalize(factors))


def exclude_zeros(model: Model, goals: Sequence[Goal]) -> Model:
    """Return the model with probability zero in all cells that exact tables have at zero.

    In each class the least probable of the cell's levels is given up.

    Examples
    --------
    >>> goal = Exact((0, 1), np.array([0.0, 0.5, 0.3, 0.2]))
    >>> start = Model.of([0.5, 0.5], [[[0.1, 0.6], [0.9, 0.4]], [[0.8, 0.2], [0.2, 0.8]]])
    >>> exclude_zeros(start, [goal]).factors
    array([[0. , 0.6],
           [1. , 0.4],
           [0.8, 0. ],
           [0.2, 1. ]])
    """
    layout, factors = model.layout, model.factors.copy()
    every = np.arange(model.rank)
    for goal in goals:
        if not isinstance(goal, Exact):
            continue
        offsets = layout.offsets[list(goal.subset)]
        shape = [layout.levels[n] for n in goal.subset]
        for cell in np.flatnonzero(goal.shares <= 0.0):
            rows = offsets + np.array(np.unravel_index(cell, shape))
            held = factors[rows]
            factors[rows[held.argmin(axis=0)], every] = 0.0
    sums = layout.sums(factors)
    if not (sums > 0.0).all():  # a class with no level left for a variable
        alive = np.asarray((sums > 0.0).all(axis=0))
        if not alive.any():
            return model
        return exclude_zeros(model.take(alive), goals)
    return Model(layout, model.weights, layout.normalize(factors))
