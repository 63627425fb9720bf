"""The maximum-entropy completion of tables: the joint nearest to independence that meets them.

Let ``C`` be a vertex cover of the graph whose edges join variables that share a table. Given
``x_C`` the other variables are independent in the completion, because no table holds two of them.
So it is a mixture with one class for each combination of levels of ``C``: weights ``p``, unit
columns for the variables of ``C``, and ``q_r`` for each other variable ``r``. Iterative
proportional fitting runs inside this mixture and is exact; the dense joint is never formed. For
trees no mixture of fewer classes is exact.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray, sum_to
from rejoint.factorization.table_goals import CentralGoal, Exact, Excluded, Goal, Within
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

    Parameters
    ----------
    levels : sequence of int
        Number of levels of each variable.
    subsets : sequence of tuples
        The variables of each table.

    Examples
    --------
    >>> find_cover((2, 3, 4), [(0, 1), (0, 2)])
    (0,)
    """
    edges = sorted({pair for subset in subsets for pair in combinations(sorted(subset), 2)})
    cost = np.log(np.maximum(levels, 1.0001))
    if not edges:
        return ()
    chosen = _try_covers if len(levels) <= _TRIED_VARIABLES else _solve_cover
    return tuple(int(n) for n in np.flatnonzero(chosen(edges, cost)))


#: Variables up to which all sets of them are tried, in less than the milliseconds of a solver.
_TRIED_VARIABLES = 12


def _try_covers(edges: Sequence[Subset], cost: FloatArray) -> NDArray[np.bool_]:
    """Return which variables are in the least cover, by trying all sets of them."""
    every = (np.arange(2 ** len(cost))[:, None] >> np.arange(len(cost)) & 1).astype(bool)
    a, b = np.array(edges).T
    covers = (every[:, a] | every[:, b]).all(axis=1)
    return np.asarray(every[covers][np.argmin(every[covers] @ cost)])


def _solve_cover(edges: Sequence[Subset], cost: FloatArray) -> NDArray[np.bool_]:
    """Return which variables are in the least cover, by integer programming."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import

    rows = np.zeros((len(edges), len(cost)))
    np.put_along_axis(rows, np.array(edges), 1.0, axis=1)
    found = milp(
        cost,
        constraints=LinearConstraint(rows, lb=1.0),
        integrality=np.ones(len(cost)),
        bounds=Bounds(0, 1),
        options={"time_limit": 5.0},
    )
    return np.asarray(rows.any(axis=0) if found.x is None else found.x > 0.5)


def list_states(
    levels: Sequence[int], cover: Subset, goals: Sequence[Goal], most: int
) -> Codes | None:
    """Return the combinations of levels of the cover that no published zero excludes, (K, |C|).

    None where there are more than ``most``.

    Examples
    --------
    >>> zero = Exact((0, 1), np.array([0.5, 0.0, 0.2, 0.3]))
    >>> list_states((2, 2), (0, 1), [zero], 10)
    array([[0, 0],
           [1, 0],
           [1, 1]], dtype=int32)
    """
    states, order = np.zeros((1, 0), dtype=np.int32), list[int]()
    waiting = _zero_masks(levels, cover, goals)
    if prod(levels[n] for n in cover) > most and all(alive.all() for alive in waiting.values()):
        return None
    # A variable comes next that is in the most tables with those that are there already.
    while len(order) < len(cover):
        left = [n for n in cover if n not in order]
        held = {n: sum(n in s and bool(set(s) & set(order)) for s in waiting) for n in left}
        n = max(left, key=lambda n: held[n])
        if len(states) * levels[n] > 8 * most + 1024:
            return None
        new = np.tile(np.arange(levels[n], dtype=np.int32), len(states))
        states = np.column_stack([np.repeat(states, levels[n], axis=0), new])
        order.append(n)
        for subset, alive in waiting.items():
            if n in subset and set(subset) <= set(order):
                states = states[alive[tuple(states[:, order.index(m)] for m in subset)]]
    if len(states) > most:
        return None
    states = states[:, [order.index(n) for n in cover]]
    return states[np.lexsort(states.T[::-1])] if len(cover) else states


def _zero_masks(
    levels: Sequence[int], cover: Subset, goals: Sequence[Goal]
) -> dict[Subset, NDArray[np.bool_]]:
    """For the variables of each exact table in the cover: which cells have mass."""
    found: dict[Subset, NDArray[np.bool_]] = {}
    for goal in goals:
        inside = tuple(n for n in goal.subset if n in cover)
        if not isinstance(goal, Exact | Excluded) or not inside:
            continue
        mass = goal.shares if isinstance(goal, Exact) else goal.alive
        table = mass.reshape([levels[n] for n in goal.subset])
        alive = sum_to(table, goal.subset, cover) > 0
        found[inside] = found[inside] & alive if inside in found else alive
    return found


@dataclass(frozen=True, eq=False)
class Place:
    """Where a table lies in the mixture: its cell for each class, and its variable outside."""

    index: NDArray[np.intp]  # (K,) cell of the variables that are in the cover
    outside: int | None
    inside_shape: tuple[int, ...]
    axis: int  # of the variable outside, in the table

    @cached_property
    def _order(self) -> tuple[int, ...]:
        """Axes of the table with that of the variable outside in front."""
        inside = [axis for axis in range(len(self.inside_shape) + 1) if axis != self.axis]
        return (self.axis, *inside)

    @cached_property
    def _back(self) -> tuple[int, ...]:
        """The reverse of ``_order``."""
        return tuple(np.argsort(self._order).tolist())

    def spread(self, table: FloatArray) -> FloatArray:
        """A flat table as (levels of the variable outside, cells of the cover's variables)."""
        if self.outside is None:
            return table[None]
        shape = list(self.inside_shape)
        size = table.size // max(prod(shape), 1)
        shape.insert(self.axis, size)
        return table.reshape(shape).transpose(self._order).reshape(size, -1)

    def gather(self, table: FloatArray) -> FloatArray:
        """The reverse of ``spread``."""
        if self.outside is not None:
            table = table.reshape(len(table), *self.inside_shape).transpose(self._back)
        return table.ravel()


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
    pulls : tuple of arrays
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
    pulls: tuple[FloatArray, ...]
    distances: FloatArray
    sweeps: int = 0
    past: tuple["Sweep", ...] = ()
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
        """The present table of any variables: states are counted, and spread over those outside.

        Examples
        --------
        >>> goals = [Exact((0, 1), np.array([0.1, 0.2, 0.3, 0.4]))]
        >>> problem = make_completion_problem((2, 2), goals)
        >>> start = start_completion(problem, independent_model((2, 2), goals))
        >>> start.tabulate((0, 1)).round(2)
        array([[0.12, 0.18],
               [0.28, 0.42]])
        """
        problem = self.problem
        inside = [n for n in subset if n in problem.cover]
        outside = [n for n in subset if n not in problem.cover]
        index = problem.index_states(inside)
        rows = self.weights[None]
        for n in outside:
            rows = (rows[:, None] * self.columns[n]).reshape(-1, len(index))
        cells = prod(problem.levels[n] for n in inside)
        counted = np.stack([np.bincount(index, row, minlength=cells) for row in rows])
        shape = [problem.levels[n] for n in (*outside, *inside)]
        table = counted.reshape(shape).transpose(np.argsort([*outside, *inside]))
        return np.ascontiguousarray(table, np.float64)

    def table(self, k: int) -> FloatArray:
        """The present table of a goal, flat."""
        return self.problem.places[k].gather(self.margin(k))

    def margin(self, k: int) -> FloatArray:
        """The present table of a goal, (levels of the variable outside, cells inside)."""
        place = self.problem.places[k]
        cells = prod(place.inside_shape)
        if place.outside is None:
            sums = np.bincount(place.index, self.weights, minlength=cells)[None]
            return sums.astype(np.float64, copy=False)
        rows = self.weights * self.columns[place.outside]
        return np.stack([np.bincount(place.index, row, minlength=cells) for row in rows])


class Sweep(NamedTuple):
    """One sweep: the pulls before and after it, flat."""

    before: FloatArray
    after: FloatArray


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
    places: tuple[Place, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", tuple(self._place(goal.subset) for goal in self.goals))

    def _place(self, subset: Subset) -> Place:
        inside = [n for n in subset if n in self.cover]
        outside = [n for n in subset if n not in self.cover]
        shape = tuple(self.levels[n] for n in inside)
        index = self.index_states(inside)
        axis = subset.index(outside[0]) if outside else 0
        return Place(index, outside[0] if outside else None, shape, axis)

    def index_states(self, inside: Sequence[int]) -> NDArray[np.intp]:
        """The cell of each state in the table of some variables of the cover, (K,)."""
        index = np.zeros(len(self.states), dtype=np.intp)
        for n in inside:
            index = index * self.levels[n] + self.states[:, self.cover.index(n)]
        return index

    @property
    def outside(self) -> list[int]:
        """The variables outside the cover."""
        return [n for n in range(len(self.levels)) if n not in self.cover]

    def times(self, classes: int) -> "CompletionProblem":
        """The same with every state once for each class of a model to start at."""
        return replace(self, states=np.repeat(self.states, classes, axis=0))

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
    """Return the problem of completing tables; None where its mixture is too large.

    Examples
    --------
    >>> goals = [Exact((0, 1), np.array([0.09, 0.11, 0.01, 0.79]))]
    >>> len(make_completion_problem((2, 2), goals).states)
    2
    """
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

    Examples
    --------
    >>> from rejoint.solver.run import run
    >>> goals = [Exact((0, 1), np.array([0.09, 0.11, 0.01, 0.79]))]
    >>> problem = make_completion_problem((2, 2), goals)
    >>> done = run(Ipf(), problem, independent_model((2, 2), goals))
    >>> done.stop, (done.model.parts[0] * done.weights @ done.model.parts[1].T).round(6).tolist()
    (<Stop.EXACT: 'exact'>, [[0.09, 0.11], [0.01, 0.79]])
    """

    limits: Limits = field(
        default=Limits(
            max_steps=POLICY.max_sweeps, progress=0.0, window=400, exact=POLICY.met, residual=0.0
        )
    )
    name: str = field(default="ipf", init=False)

    def init(self, problem: CompletionProblem, model: Model) -> Completion:
        """The given model in the states of the cover, once for each of its classes."""
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
        before, after = (np.concatenate(part.pulls) for part in (start, done))
        past = (*start.past, Sweep(before, after))[-POLICY.sweep_memory :]
        return replace(done, past=past)


def start_completion(problem: CompletionProblem, model: Model) -> Completion:
    """Return a model as a completion that meets no table yet.

    For a model of ``F`` classes the problem has each state ``F`` times (:meth:`times`).
    """
    parts = model.parts
    repeat = len(problem.states) // model.rank
    weights, number = np.tile(model.weights, repeat), np.tile(np.arange(model.rank), repeat)
    for k, n in enumerate(problem.cover):
        weights = weights * parts[n][problem.states[:, k], number]
    columns = {n: np.tile(parts[n], repeat) for n in problem.outside}
    pulls = tuple(np.zeros(prod(problem.levels[n] for n in g.subset)) for g in problem.goals)
    start = Completion(problem, weights / weights.sum(), columns, pulls, np.empty(0))
    gaps = [
        0.5 * float(np.abs(goal.aim(table, pull) - table).sum())
        for goal, pull, table in zip(problem.goals, pulls, _tables(start), strict=True)
    ]
    rounded = any(isinstance(g, Within) and g.numbers is not None for g in problem.goals)
    return replace(start, distances=np.array(gaps), central=rounded)


def _tables(state: Completion) -> Iterator[FloatArray]:
    return (state.table(k) for k in range(len(state.problem.goals)))


def sweep(state: Completion) -> Completion:
    """Bring each table to its goal, one after another."""
    problem = state.problem
    pulls, gaps = list(state.pulls), np.zeros(len(problem.goals))
    work = replace(state, weights=state.weights.copy(), columns=dict(state.columns))
    columns: dict[int, FloatArray] = work.columns  # type: ignore[assignment]
    for k, (goal, place) in enumerate(zip(problem.goals, problem.places, strict=True)):
        now = work.table(k)
        if state.central and isinstance(goal, CentralGoal):
            aim = goal.aim_at_numbers(now, pulls[k])
        else:
            aim = goal.aim(now, pulls[k])
        gaps[k] = 0.5 * float(np.abs(aim - now).sum())
        factor = np.divide(aim, now, out=np.zeros_like(now), where=now > 0)
        with np.errstate(divide="ignore"):
            pulls[k] = pulls[k] + np.log(factor)
        ratio = place.spread(factor)[:, place.index]
        if place.outside is None:
            np.multiply(work.weights, ratio[0], out=work.weights)
        else:
            column = columns[place.outside] * ratio
            sums = column.sum(axis=0)
            np.divide(column, sums, out=column, where=sums > 0)
            columns[place.outside] = np.where(sums > 0, column, columns[place.outside])
            np.multiply(work.weights, sums, out=work.weights)
        total = work.weights.sum()
        if not total > 0.0:
            raise Stalled  # zeros of the tables leave no state
        work.weights[:] /= total
    return replace(work, pulls=tuple(pulls), distances=gaps, sweeps=state.sweeps + 1)


def extrapolate(state: Completion) -> Completion:
    """Return the point where the last sweeps would end, by Anderson mixing of the pulls."""
    if len(state.past) < 2:
        return state
    before = np.stack([one.before for one in state.past])
    after = np.stack([one.after for one in state.past])
    free = np.isfinite(after).all(axis=0) & np.isfinite(before).all(axis=0)
    shares = mixing_shares(after[:, free] - before[:, free])
    if shares is None:
        return state
    mixed = after[-1].copy()
    mixed[free] -= shares @ np.diff(after[:, free], axis=0)
    sizes = np.cumsum([len(pull) for pull in state.pulls])[:-1]
    return pull_from_start(state, tuple(np.split(mixed, sizes)))


def pull_from_start(state: Completion, pulls: tuple[FloatArray, ...]) -> Completion:
    """Return the completion that has these pulls in place of its own."""
    problem = state.problem
    with np.errstate(divide="ignore", invalid="ignore"):
        moves = [
            np.where(new == old, 0.0, new - old)
            for new, old in zip(pulls, state.pulls, strict=True)
        ]
        weights = np.log(state.weights)
        columns = {n: np.log(column) for n, column in state.columns.items()}
    for place, move in zip(problem.places, moves, strict=True):
        shift = place.spread(move)[:, place.index]
        if place.outside is None:
            weights = weights + shift[0]
        else:
            columns[place.outside] = columns[place.outside] + shift
    for n, column in columns.items():
        top = column.max(axis=0)
        top = np.where(np.isfinite(top), top, 0.0)
        raised = np.exp(column - top)
        total = raised.sum(axis=0)
        columns[n] = np.where(total > 0, raised / np.where(total > 0, total, 1.0), state.columns[n])
        with np.errstate(divide="ignore"):
            weights = weights + top + np.log(total)
    found = np.exp(weights - weights.max())
    return replace(state, weights=found / found.sum(), columns=columns, pulls=pulls)


def independent_model(levels: Sequence[int], goals: Sequence[Goal]) -> Model:
    """Return one class with each variable's own shares, by the first exact table that has it.

    Examples
    --------
    >>> independent_model((2,), [Exact((0,), np.array([0.25, 0.75]))]).factors.ravel()
    array([0.25, 0.75])
    """
    found = [np.full(size, 1.0 / size) for size in levels]
    for goal in reversed(goals):
        shares = getattr(goal, "shares", None)
        if shares is None:
            continue
        table = np.maximum(shares, 0.0).reshape([levels[n] for n in goal.subset])
        for n in goal.subset:
            own = sum_to(table, goal.subset, (n,))
            if not isinstance(goal, Exact):
                own = own + 1e-3 / len(own)  # a sample does not exclude what it lacks
            found[n] = own / own.sum()
    return Model.of([1.0], [column[:, None] for column in found])
