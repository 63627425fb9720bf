"""The maximum-entropy completion of tables: the joint nearest to independence that meets them.

Let ``C`` be a vertex cover of the graph whose edges join variables that share a table. Given
``x_C`` the other variables are independent in the completion, because no table holds two of them.
So it is a mixture with one class for each combination of levels of ``C``: weights ``p``, unit
columns for the variables of ``C``, and ``q_r`` for each other variable ``r``. Iterative
proportional fitting runs inside this mixture and is exact; the dense joint is never formed. For
trees no mixture of fewer classes is exact.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import BoolArray, FloatArray, IntArray, sum_to
from rejoint.factorization.table_goals import ExactGoal, Goal, SoftGoal, StructuralZeros
from rejoint.factorization.table_policy import POLICY
from rejoint.model import Layout, Model
from rejoint.solver.acceleration import mixing_shares
from rejoint.solver.checkpoint import digest
from rejoint.solver.solver import Limits, Stalled

Subset = tuple[int, ...]
Codes = NDArray[np.int32]


def find_cover(levels: Sequence[int], subsets: Sequence[Subset]) -> Subset:
    """Return a vertex cover with the fewest combinations of levels.

    Few variables are tried in all combinations, more by integer programming.
    """
    edges = sorted({pair for subset in subsets for pair in combinations(sorted(subset), 2)})
    cost = np.log(np.maximum(levels, 1.0001))
    if not edges:
        return ()
    choose = _try_covers if len(levels) <= POLICY.tried_variables else _solve_cover
    return tuple(int(n) for n in np.flatnonzero(choose(edges, cost)))


def _try_covers(edges: Sequence[Subset], cost: FloatArray) -> BoolArray:
    """Return which variables are in the least cover, by trying all sets of them."""
    every = (np.arange(2 ** len(cost))[:, None] >> np.arange(len(cost)) & 1).astype(bool)
    a, b = np.array(edges).T
    covers = every[(every[:, a] | every[:, b]).all(axis=1)]
    return np.asarray(covers[np.argmin(covers @ cost)])


def _solve_cover(edges: Sequence[Subset], cost: FloatArray) -> BoolArray:
    """Return which variables are in the least cover, by integer programming."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import

    rows = np.zeros((len(edges), len(cost)))
    np.put_along_axis(rows, np.array(edges), 1.0, axis=1)
    done = milp(
        cost,
        constraints=LinearConstraint(rows, lb=1.0),
        integrality=np.ones(len(cost)),
        bounds=Bounds(0, 1),
        options={"time_limit": 5.0},
    )
    return np.asarray(rows.any(axis=0) if done.x is None else done.x > 0.5)


def list_states(
    levels: Sequence[int], cover: Subset, goals: Sequence[Goal], most: int
) -> Codes | None:
    """Return the combinations of levels of the cover that no published zero excludes, (K, |C|).

    None where there are more than ``most``.
    """
    states, order = np.zeros((1, 0), dtype=np.int32), list[int]()
    masks = _zero_masks(levels, cover, goals)
    if prod(levels[n] for n in cover) > most and all(alive.all() for alive in masks.values()):
        return None
    # A variable comes next that is in the most tables with those that are there already.
    while len(order) < len(cover):
        rest = [n for n in cover if n not in order]
        n = max(rest, key=lambda n: sum(n in s and bool(set(s) & set(order)) for s in masks))
        if len(states) * levels[n] > 8 * most + 1024:
            return None
        new = np.tile(np.arange(levels[n], dtype=np.int32), len(states))
        states = np.column_stack([np.repeat(states, levels[n], axis=0), new])
        order.append(n)
        for subset, alive in masks.items():
            if n in subset and set(subset) <= set(order):
                states = states[alive[tuple(states[:, order.index(m)] for m in subset)]]
    if len(states) > most:
        return None
    states = states[:, [order.index(n) for n in cover]]
    return states[np.lexsort(states.T[::-1])] if len(cover) else states


def _zero_masks(
    levels: Sequence[int], cover: Subset, goals: Sequence[Goal]
) -> dict[Subset, BoolArray]:
    """For the variables of each exact table in the cover: which cells have mass."""
    masks: dict[Subset, BoolArray] = {}
    for goal in goals:
        inside = tuple(n for n in goal.subset if n in cover)
        if not isinstance(goal, ExactGoal | StructuralZeros) or not inside:
            continue
        mass = goal.shares if isinstance(goal, ExactGoal) else goal.alive.astype(float)
        table = mass.reshape([levels[n] for n in goal.subset])
        alive = np.asarray(sum_to(table, goal.subset, cover) > 0)
        masks[inside] = alive & masks.get(inside, alive)
    return masks


@dataclass(frozen=True, eq=False)
class StateIndex:
    """The cells of a table in which the states of a completion are.

    ``cells`` (K,) number the cells of the table's variables in the cover, of which there are
    ``size``; one variable at the most is outside the cover.
    """

    cells: IntArray
    size: int
    outside: int | None = None
    shape: tuple[int, ...] = ()
    axis: int = 0

    def spread(self, table: FloatArray) -> FloatArray:
        """A flat table as (levels of the variable outside, cells in the cover)."""
        if self.outside is None:
            return table[None]
        rows = np.moveaxis(table.reshape(self.shape), self.axis, 0)
        return np.asarray(rows.reshape(len(rows), -1))

    def gather(self, rows: FloatArray) -> FloatArray:
        """The reverse of ``spread``."""
        if self.outside is None:
            return np.asarray(rows[0])
        inside = self.shape[: self.axis] + self.shape[self.axis + 1 :]
        return np.asarray(np.moveaxis(rows.reshape(-1, *inside), 0, self.axis).ravel())

    def count(self, masses: FloatArray) -> FloatArray:
        """The sums of rows of masses of the states, (.., K), in each cell, (.., cells)."""
        sums = [np.bincount(self.cells, mass, minlength=self.size) for mass in masses]
        return np.stack(sums).astype(np.float64, copy=False)


class Sweep(NamedTuple):
    """One sweep: the multipliers before and after it, flat."""

    before: FloatArray
    after: FloatArray


@dataclass(frozen=True, eq=False)
class Completion:
    """The present completion: what IPF carries from sweep to sweep.

    Parameters
    ----------
    problem : CompletionProblem
        The states and the goals.
    weights : array (K,)
        Probability of each state.
    columns : mapping
        For each variable outside the cover, its levels given each state, (I_r, K).
    multipliers : tuple of arrays
        For each goal the logarithms of all factors that were applied to its table.
    distances : array
        Share of each table's mass that its goal moved, in the last sweep.
    sweeps : int
        Sweeps so far.
    past : tuple of Sweep
        The last sweeps, from which the next start is extrapolated.
    central : bool
        Whether sweeps still go to rounded numbers themselves, before any number within their
        bounds will do: the bounds alone leave the joint nearest to independence at their edges.
    """

    problem: "CompletionProblem"
    weights: FloatArray
    columns: Mapping[int, FloatArray]
    multipliers: tuple[FloatArray, ...]
    distances: FloatArray
    sweeps: int = 0
    past: tuple[Sweep, ...] = ()
    central: bool = False

    @property
    def objective(self) -> float:
        """Largest share of a table's mass that is in wrong cells."""
        return float(self.distances.max(initial=0.0))

    @property
    def residual(self) -> float:
        """The same, as what optimality is judged by."""
        return self.objective

    @property
    def model(self) -> Model:
        """The mixture; states without mass are left out."""
        problem, alive = self.problem, self.weights > 0.0
        layout = Layout(problem.levels)
        factors = np.zeros((layout.size, int(alive.sum())))
        for k, n in enumerate(problem.cover):
            factors[layout.offsets[n] + problem.states[alive, k], np.arange(factors.shape[1])] = 1.0
        for n, columns in self.columns.items():
            factors[layout.rows(n)] = columns[:, alive]
        weights = self.weights[alive]
        return Model(layout, weights / weights.sum(), layout.normalize(factors))

    def tabulate(self, subset: Subset) -> FloatArray:
        """The present table of any variables: states are counted, and spread over those outside."""
        levels, cover = self.problem.levels, self.problem.cover
        inside = [n for n in subset if n in cover]
        outside = [n for n in subset if n not in cover]
        index, masses = self.problem.index_states(inside), self.weights[None]
        for n in outside:
            masses = (masses[:, None] * self.columns[n]).reshape(-1, len(self.weights))
        table = index.count(masses).reshape([levels[n] for n in (*outside, *inside)])
        return np.ascontiguousarray(table.transpose(np.argsort([*outside, *inside])))

    def table(self, k: int) -> FloatArray:
        """The present table of a goal, flat."""
        index = self.problem.indices[k]
        beside = 1.0 if index.outside is None else self.columns[index.outside]
        return index.gather(index.count(np.atleast_2d(self.weights * beside)))


@dataclass(frozen=True, eq=False)
class CompletionProblem:
    """Tables to complete: the states of a cover, and the goal of each table.

    Parameters
    ----------
    levels : tuple of int
        Number of levels of each variable.
    goals : tuple of Goal
        What is asked of each table.
    cover : tuple of int
        The variables whose combinations are the states.
    states : array (K, |C|)
        The combinations.
    """

    levels: tuple[int, ...]
    goals: tuple[Goal, ...]
    cover: Subset
    states: Codes
    indices: tuple[StateIndex, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "indices", tuple(self._index(g.subset) for g in self.goals))

    def _index(self, subset: Subset) -> StateIndex:
        index = self.index_states([n for n in subset if n in self.cover])
        outside = [n for n in subset if n not in self.cover]
        if not outside:
            return index
        shape = tuple(self.levels[n] for n in subset)
        return replace(index, outside=outside[0], shape=shape, axis=subset.index(outside[0]))

    def index_states(self, inside: Sequence[int]) -> StateIndex:
        """The cell of each state in the table of some variables of the cover."""
        cells = np.zeros(len(self.states), dtype=np.intp)
        for n in inside:
            cells = cells * self.levels[n] + self.states[:, self.cover.index(n)]
        return StateIndex(cells, prod(self.levels[n] for n in inside))

    def error(self, objective: float) -> float:
        """The largest distance, which is what the objective is."""
        return objective

    @property
    def fingerprint(self) -> str:
        """Identifies the problem in a checkpoint."""
        goals = [(type(goal).__name__, *vars(goal).values()) for goal in self.goals]
        return digest("completion", self.levels, self.cover, goals)


def make_completion_problem(
    levels: Sequence[int], goals: Sequence[Goal], most_numbers: int = POLICY.most_numbers
) -> CompletionProblem | None:
    """Return the problem of completing tables; None where its mixture is too large."""
    cover = find_cover(levels, [goal.subset for goal in goals])
    beside = 1 + sum(size for n, size in enumerate(levels) if n not in cover)
    most = min(most_numbers // beside, POLICY.most_model_numbers // (1 + sum(levels)))
    states = list_states(levels, cover, goals, most)
    if states is None:
        return None
    return CompletionProblem(tuple(levels), tuple(goals), cover, states)


@dataclass(frozen=True)
class Ipf:
    """Iterative proportional fitting inside a mixture over the states of a cover.

    Each table in turn is brought to its goal: the classes' weights and columns are multiplied by
    ``goal / present`` in the cell that they are in.
    """

    limits: Limits = field(
        default=Limits(
            max_steps=POLICY.max_sweeps, progress=0.0, window=400, exact=POLICY.met, residual=0.0
        )
    )
    name: str = field(default="ipf", init=False)

    def init(self, problem: CompletionProblem, model: Model) -> Completion:
        """The given model of one class in the states of the cover."""
        return start_completion(problem, model)

    def step(self, problem: CompletionProblem, state: Completion) -> Completion:
        """One sweep over all tables, from a point that the last sweeps are extrapolated to."""
        if state.central:
            done = sweep(state)
            flat = done.objective > POLICY.flat_central_sweep * state.objective
            ends = done.objective <= POLICY.met or done.sweeps >= POLICY.max_central_sweeps
            late = flat and done.sweeps > POLICY.plain_sweeps
            return replace(done, central=False) if ends or late else done
        if state.sweeps < POLICY.plain_sweeps:
            return sweep(state)
        start = extrapolate(state)
        done = sweep(start)
        if done.objective > POLICY.worse_sweep * state.objective:
            start, done = replace(state, past=()), sweep(replace(state, past=()))
        before, after = (np.concatenate(one.multipliers) for one in (start, done))
        past = (*start.past, Sweep(before, after))[-POLICY.sweep_memory :]
        return replace(done, past=past)


def start_completion(problem: CompletionProblem, model: Model) -> Completion:
    """Return a model of one class as a completion that meets no table yet."""
    own = [part[:, 0] for part in model.parts]
    weights = np.ones(len(problem.states))
    for k, n in enumerate(problem.cover):
        weights = weights * own[n][problem.states[:, k]]
    columns = {
        n: np.tile(own[n][:, None], len(weights))
        for n in range(len(problem.levels))
        if n not in problem.cover
    }
    zeros = tuple(np.zeros(prod(problem.levels[n] for n in g.subset)) for g in problem.goals)
    start = Completion(problem, weights / weights.sum(), columns, zeros, np.empty(0))
    gaps = [proportion(goal, start.table(k), zeros[k])[-1] for k, goal in enumerate(problem.goals)]
    is_rounded = any(goal.is_rounded for goal in problem.goals)
    return replace(start, distances=np.array(gaps), central=is_rounded)


def proportion(
    goal: Goal, now: FloatArray, multipliers: FloatArray, central: bool = False
) -> tuple[FloatArray, FloatArray, float]:
    """The factor that brings a table to its goal, the new multipliers, and the share that moves."""
    target = (goal.project_to_numbers if central else goal.project)(now, multipliers)
    factor = np.divide(target, now, out=np.zeros_like(now), where=now > 0)
    with np.errstate(divide="ignore"):
        return factor, multipliers + np.log(factor), 0.5 * float(np.abs(target - now).sum())


def sweep(state: Completion) -> Completion:
    """Bring each table to its goal, one after another."""
    problem = state.problem
    multipliers, gaps = list(state.multipliers), np.zeros(len(problem.goals))
    columns = dict(state.columns)
    work = replace(state, weights=state.weights.copy(), columns=columns)
    for k, (goal, index) in enumerate(zip(problem.goals, problem.indices, strict=True)):
        now = work.table(k)
        factor, multipliers[k], gaps[k] = proportion(goal, now, multipliers[k], state.central)
        ratio = index.spread(factor)[:, index.cells]
        if index.outside is None:
            np.multiply(work.weights, ratio[0], out=work.weights)
        else:
            column = columns[index.outside] * ratio
            sums = column.sum(axis=0)
            np.divide(column, sums, out=column, where=sums > 0)
            columns[index.outside] = np.where(sums > 0, column, columns[index.outside])
            np.multiply(work.weights, sums, out=work.weights)
        total = work.weights.sum()
        if not total > 0.0:
            raise Stalled  # zeros of the tables leave no state
        work.weights[:] /= total
    return replace(work, multipliers=tuple(multipliers), distances=gaps, sweeps=state.sweeps + 1)


def extrapolate(state: Completion) -> Completion:
    """Return the point where the last sweeps would end, by Anderson mixing of the multipliers."""
    if len(state.past) < 2:
        return state
    before, after = map(np.stack, zip(*state.past, strict=True))
    finite = np.isfinite(after).all(axis=0) & np.isfinite(before).all(axis=0)
    shares = mixing_shares(after[:, finite] - before[:, finite])
    if shares is None:
        return state
    mixed = after[-1].copy()
    mixed[finite] -= shares @ np.diff(after[:, finite], axis=0)
    ends = np.cumsum([len(part) for part in state.multipliers])[:-1]
    return with_multipliers(state, tuple(np.split(mixed, ends)))


def with_multipliers(state: Completion, multipliers: tuple[FloatArray, ...]) -> Completion:
    """Return the completion that has these multipliers in place of its own."""
    problem = state.problem
    with np.errstate(divide="ignore", invalid="ignore"):
        moves = [
            np.where(new == old, 0.0, new - old)
            for new, old in zip(multipliers, state.multipliers, strict=True)
        ]
        weights = np.log(state.weights)
        columns = {n: np.log(column) for n, column in state.columns.items()}
        for index, move in zip(problem.indices, moves, strict=True):
            shift = index.spread(move)[:, index.cells]
            if index.outside is None:
                weights = weights + shift[0]
            else:
                columns[index.outside] = columns[index.outside] + shift
        for n, column in columns.items():
            top = column.max(axis=0)
            top = np.where(np.isfinite(top), top, 0.0)
            raised = np.exp(column - top)
            total = raised.sum(axis=0)
            columns[n] = np.where(total > 0, raised / total, state.columns[n])
            weights = weights + top + np.log(total)
    mass = np.exp(weights - weights.max())
    return replace(state, weights=mass / mass.sum(), columns=columns, multipliers=multipliers)


def independent_model(levels: Sequence[int], goals: Sequence[Goal]) -> Model:
    """Return one class with each variable's own shares, by the first exact table that has it."""
    columns = [np.full(size, 1.0 / size) for size in levels]
    for goal in reversed(goals):
        if not isinstance(goal, ExactGoal | SoftGoal):
            continue
        table = np.maximum(goal.shares, 0.0).reshape([levels[n] for n in goal.subset])
        for n in goal.subset:
            own = sum_to(table, goal.subset, (n,))
            if isinstance(goal, SoftGoal):
                own = own + 1e-3 / len(own)  # a sample does not exclude what it lacks
            columns[n] = own / own.sum()
    return Model.of([1.0], [column[:, None] for column in columns])
