"""Log-linear models of sampled tables whose prior is estimated: empirical Bayes by MacKay's rule.

Each variable has ``I_n - 1`` orthonormal contrasts ``h``. An effect of the variables ``T`` is the
expectation of a product of their contrasts, ``z_T = E[prod_n h_n(x_n)]``. Tables of the subsets
``S`` publish the effects of all ``T`` inside them, each once: ``E`` numbers that are independent of
each other, where the cells of the tables are not. The covariance of the effects of one record is
read off tables of unions ``T u T'``, which a mixture has without its joint.

Soft goals are the most probable log-linear model if coefficients of effects are normal around zero.
How far from zero they are, the tables say themselves: the variance of a group of them is
``|theta|^2 / gamma``, with ``gamma`` the number of coefficients that the tables determine. First
each order has one variance, so that a joint without interactions of three variables is not given
any; then each set of variables has its own, pulled towards that of its order by one coefficient
more. The model is found by Newton's method in the coefficients, inside the mixture of the
completion.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import combinations
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray, outer_product, parts_of
from rejoint.factorization.max_entropy import (
    Completion,
    pull_from_start,
    start_completion,
    sweep,
)
from rejoint.factorization.table_goals import Near
from rejoint.factorization.table_policy import POLICY
from rejoint.marginals.marginals import Marginals
from rejoint.model import Model
from rejoint.queries.tables import Tabulate
from rejoint.solver.solver import Stalled

Subset = tuple[int, ...]


def make_contrasts(size: int) -> FloatArray:
    """Return orthonormal columns that are orthogonal to a constant, (I, I - 1).

    Examples
    --------
    >>> make_contrasts(2).ravel().round(3)
    array([-0.707,  0.707])
    """
    step = np.tri(size, size - 1, -1) - np.tri(size, size - 1, -1).mean(axis=0)
    basis, triangle = np.linalg.qr(step)
    return np.asarray(basis * np.sign(np.diag(triangle)))


class Effects:
    """The effects that tables of some subsets publish.

    Parameters
    ----------
    levels : sequence of int
        Number of levels of each variable.
    subsets : sequence of tuples of int
        The variables of each table.

    Examples
    --------
    >>> effects = Effects((2, 3), [(0, 1)])
    >>> effects.sets, effects.size
    (((0,), (1,), (0, 1)), 5)
    """

    def __init__(self, levels: Sequence[int], subsets: Iterable[Subset]) -> None:
        self.levels = tuple(levels)
        # A variable of one level has no contrast, and so no effect.
        varying = ([n for n in sorted(subset) if self.levels[n] > 1] for subset in subsets)
        found = {part for subset in varying for part in parts_of(subset)}
        self.sets: tuple[Subset, ...] = tuple(sorted(found, key=lambda s: (len(s), s)))
        self.contrasts = [make_contrasts(size) for size in self.levels]
        self.sizes = np.array([prod(self.levels[n] - 1 for n in s) for s in self.sets], np.intp)
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.intp)
        self.positions = {subset: k for k, subset in enumerate(self.sets)}

    @property
    def size(self) -> int:
        """Number of effects, ``E``."""
        return int(self.starts[-1])

    @cached_property
    def set_of(self) -> NDArray[np.intp]:
        """Position of the set of variables of each effect, (E,)."""
        return np.repeat(np.arange(len(self.sets)), self.sizes)

    @cached_property
    def orders(self) -> NDArray[np.intp]:
        """Number of variables of each set."""
        return np.array([len(s) for s in self.sets], np.intp)

    @property
    def is_countable(self) -> bool:
        """Whether the tables of unions are few enough to read covariances from."""
        largest = max((len(s) for s in self.sets), default=0)
        size = prod(sorted(self.levels)[-2 * largest :])
        return size * len(self.sets) ** 2 <= 100 * POLICY.most_union_cells

    def rows(self, k: int) -> slice:
        """Where the effects of a set stand."""
        return slice(int(self.starts[k]), int(self.starts[k + 1]))

    def contract(self, subset: Subset, table: FloatArray) -> FloatArray:
        """The effects of exactly these variables in their table, flat."""
        for n in subset:
            # The axis goes to the end; after all of them the order is as before.
            table = np.tensordot(table, self.contrasts[n], (0, 0))
        return table.ravel()

    def values(self, tabulate: Tabulate) -> FloatArray:
        """All effects of a distribution, (E,).

        Examples
        --------
        >>> effects = Effects((2,), [(0,)])
        >>> effects.values(lambda subset: np.array([0.25, 0.75])).round(3)
        array([0.354])
        """
        tables = self.margins.tabulate(tabulate)
        return np.concatenate([self.contract(s, tables[mask_of(s)]) for s in self.sets])

    def coefficients(self, subset: Subset, cells: FloatArray) -> dict[int, FloatArray]:
        """Coefficients of all effects inside ``subset`` of a function of its cells, by set."""
        table = cells.reshape([self.levels[n] for n in subset])
        found = {}
        for part in parts_of(subset):
            gone = tuple(axis for axis, n in enumerate(subset) if n not in part)
            found[self.positions[part]] = self.contract(part, table.mean(axis=gone))
        return found

    def function(self, k: int, coefficients: FloatArray) -> FloatArray:
        """The function of the cells of a set that these coefficients of its effects make, flat."""
        subset = self.sets[k]
        table = coefficients.reshape([self.levels[n] - 1 for n in subset])
        for n in subset:
            table = np.tensordot(table, self.contrasts[n], (0, 1))
        return table.ravel()

    def table(self, k: int, values: FloatArray) -> FloatArray:
        """The table of a set, flat, from the values of all effects inside it.

        Examples
        --------
        >>> effects = Effects((2, 2), [(0, 1)])
        >>> given = {(0,): [0.3, 0.7], (1,): [0.4, 0.6], (0, 1): [0.1, 0.2, 0.3, 0.4]}
        >>> values = effects.values(lambda subset: np.array(given[subset]))
        >>> effects.table(2, values).round(3)
        array([0.1, 0.2, 0.3, 0.4])
        """
        subset = self.sets[k]
        shape = [self.levels[n] for n in subset]
        found = np.full(shape, 1.0 / prod(shape))
        for part in parts_of(subset):
            at = self.positions[part]
            sides = [self.levels[n] if n in part else 1 for n in subset]
            rest = prod(self.levels[n] for n in subset if n not in part)
            found += self.function(at, values[self.rows(at)]).reshape(sides) / rest
        return found.ravel()

    @cached_property
    def margins(self) -> "MarginPlan":
        """How the tables of the sets follow from each other."""
        return MarginPlan(self.levels, {mask_of(subset) for subset in self.sets})

    @cached_property
    def plan(self) -> "UnionPlan":
        """Where the tables of unions stand from which covariances are read."""
        return UnionPlan(self)

    def covariance(self, tabulate: Tabulate) -> FloatArray:
        """Covariance of the effects of one record, (E, E).

        Examples
        --------
        >>> effects = Effects((2,), [(0,)])
        >>> effects.covariance(lambda subset: np.array([0.5, 0.5])).round(3)
        array([[0.5]])
        """
        plan = self.plan
        moments = plan.tabulate(tabulate)[plan.index]
        first = np.diag(moments).copy()
        moments -= np.multiply.outer(first, first)
        return plan.turn(np.ascontiguousarray(plan.turn(moments).T))

    def tangent(self, model: Model) -> FloatArray:
        """Derivatives of the effects of a mixture, (E, (1 + sum (I_n - 1)) F).

        First in its weights, then in the coefficients of its columns on the contrasts.

        Examples
        --------
        >>> model = Model.of([0.5, 0.5], [[[0.9, 0.2], [0.1, 0.8]]])
        >>> Effects((2,), [(0,)]).tangent(model).round(3)
        array([[-0.566,  0.424,  0.5  ,  0.5  ]])
        """
        rank = model.rank
        means = [h.T @ a for h, a in zip(self.contrasts, model.parts, strict=True)]
        starts = 1 + np.concatenate([[0], np.cumsum([len(mean) for mean in means])])
        found = np.zeros((self.size, int(starts[-1]), rank))
        for k, subset in enumerate(self.sets):
            block = found[self.rows(k)].reshape(*(len(means[n]) for n in subset), -1, rank)
            parts = [means[n] for n in subset]
            block[..., 0, :] = _outer(parts)
            for slot, n in enumerate(subset):
                others = _outer([*parts[:slot], *parts[slot + 1 :]]) * model.weights
                for level in range(len(means[n])):
                    np.moveaxis(block, slot, 0)[level, ..., int(starts[n]) + level, :] = others
        return found.reshape(self.size, -1)


def _outer(parts: Sequence[FloatArray]) -> FloatArray:
    """Product of columns class by class, (I_1, I_2, .., F)."""
    if not parts:
        return np.ones(1)
    return reduce(lambda a, b: a[..., None, :] * b, parts)


def mask_of(subset: Subset) -> int:
    """A set of variables as the bits of a number."""
    return sum(1 << n for n in subset)


def variables_of(mask: int) -> Subset:
    """The variables whose bits a number has.

    Examples
    --------
    >>> variables_of(mask_of((0, 2)))
    (0, 2)
    """
    return tuple(n for n in range(mask.bit_length()) if mask >> n & 1)


class MarginPlan:
    """How tables of several sets of variables follow from each other.

    Each is summed from the smallest larger one. Where there are many and the joint is not large,
    all begin with the joint, and tables between it and them have one variable less at a time.

    Parameters
    ----------
    levels : sequence of int
        Number of levels of each variable.
    masks : set of int
        The sets of variables, as :func:`mask_of` makes them.

    Examples
    --------
    >>> plan = MarginPlan((2, 2), {1, 3})
    >>> plan.tabulate(lambda subset: np.full((2, 2), 0.25))[1]
    array([0.5, 0.5])
    """

    def __init__(self, levels: Sequence[int], masks: set[int]) -> None:
        self.levels = tuple(levels)
        every = sorted(masks | self._steps(masks), key=lambda mask: (-mask.bit_count(), mask))
        self.wanted = [mask for mask in every if mask in masks]
        self.parents: dict[int, int | None] = {}
        for mask in every:
            larger = (other for other in reversed(self.parents) if other & mask == mask)
            self.parents[mask] = next(larger, None)

    def _steps(self, masks: set[int]) -> set[int]:
        largest = [a for a in masks if not any(a != b and a & b == a for b in masks)]
        if prod(self.levels) > POLICY.most_joint_cells or len(largest) <= len(self.levels):
            return set()
        joint = (1 << len(self.levels)) - 1
        later = [joint >> n << n for n in range(len(self.levels))]
        return {mask & ~rest | rest for mask in largest for rest in later}

    def tabulate(self, tabulate: Tabulate) -> dict[int, FloatArray]:
        """The tables of a distribution, shaped by the levels of their variables."""
        made: dict[int, FloatArray] = {}
        for mask, parent in self.parents.items():
            subset = variables_of(mask)
            if parent is None:
                made[mask] = tabulate(subset).reshape([self.levels[n] for n in subset])
            else:
                gone = [k for k, n in enumerate(variables_of(parent)) if not mask >> n & 1]
                made[mask] = made[parent].sum(axis=tuple(gone))
        return {mask: made[mask] for mask in self.wanted}


class UnionPlan:
    """Which tables of unions are needed, and where their cells stand.

    Second moments are read in indicators of all levels but the last; :meth:`turn` makes contrasts
    of them. ``index`` (E, E) says where the cell ``x_T = a, x_T' = b`` stands; the first cell is
    zero, for those that exclude each other.
    """

    def __init__(self, effects: Effects) -> None:
        self.effects = effects
        sets, levels = effects.sets, effects.levels
        masks = [mask_of(subset) for subset in sets]
        self.margins = MarginPlan(levels, {a | b for a in masks for b in masks})
        unions = self.margins.wanted
        sizes = [prod(levels[n] for n in variables_of(union)) for union in unions]
        starts = dict(zip(unions, (1 + np.cumsum([0, *sizes[:-1]])).tolist(), strict=True))
        self.index = np.zeros((effects.size, effects.size), dtype=np.int32)
        codes = [np.indices([levels[n] - 1 for n in s]).reshape(len(s), -1) for s in sets]
        for i, one in enumerate(sets):
            for j in range(i, len(sets)):
                other, union = sets[j], masks[i] | masks[j]
                block = self._block(one, other, codes[i], codes[j], int(starts[union]))
                self.index[effects.rows(i), effects.rows(j)] = block
                self.index[effects.rows(j), effects.rows(i)] = block.T

    def _block(
        self, one: Subset, other: Subset, a: NDArray[Any], b: NDArray[Any], start: int
    ) -> NDArray[np.int32]:
        levels = self.effects.levels
        place, stride = np.full((a.shape[1], b.shape[1]), start, dtype=np.int32), 1
        excluded = None
        for n in sorted({*one, *other}, reverse=True):
            if n in one:
                mine = a[one.index(n)][:, None]
                place += (stride * mine).astype(np.int32)
                if n in other:
                    apart = mine != b[other.index(n)]
                    excluded = apart if excluded is None else excluded | apart
            else:
                place += (stride * b[other.index(n)]).astype(np.int32)
            stride *= levels[n]
        if excluded is not None:
            place[excluded] = 0
        return place

    def tabulate(self, tabulate: Tabulate) -> FloatArray:
        """All tables of unions one after another, after a zero."""
        made = self.margins.tabulate(tabulate)
        return np.concatenate([np.zeros(1), *(made[union].ravel() for union in made)])

    def turn(self, matrix: FloatArray) -> FloatArray:
        """Rows of indicators as rows of contrasts, (E, ..) both.

        A contrast is a sum of indicators and a constant. Set by set the rows of all of its parts
        are brought together and turned along one variable after another.
        """
        padded = np.vstack([matrix, np.zeros((1, matrix.shape[1]))])
        found = np.empty_like(matrix)
        for k, (rows, sides) in enumerate(self.turns):
            block = padded[rows]
            for side in sides:
                # (I, rest) to (rest, I - 1): the next variable comes first.
                block = np.moveaxis(np.tensordot(side, block, (1, 0)), 0, -2)
            found[self.effects.rows(k)] = block.reshape(-1, matrix.shape[1])
        return found

    @cached_property
    def turns(self) -> list[tuple[NDArray[np.intp], list[FloatArray]]]:
        """For each set, the rows of its parts (I_1, I_2, ..) and what turns each variable."""
        effects, found = self.effects, []
        for subset in effects.sets:
            rows = np.full([effects.levels[n] for n in subset], effects.size, dtype=np.intp)
            for part in parts_of(subset):
                k = effects.positions[part]
                place = tuple(slice(-1) if n in part else -1 for n in subset)
                shape = [effects.levels[n] - 1 for n in part]
                rows[place] = np.arange(*effects.starts[k : k + 2]).reshape(shape)
            sides = []
            for n in subset:
                last = effects.contrasts[n][-1]
                sides.append(np.vstack([effects.contrasts[n][:-1] - last, last]).T)
            found.append((rows, sides))
        return found


#: Which coefficients have a variance in common: those of an order, of a set of variables, or none.
SharedBy = Literal["order", "set", "effect"]


@dataclass(frozen=True, eq=False)
class Normal:
    """A normal approximation: information on the coefficients, and the score of deviations."""

    information: FloatArray
    score: Callable[[FloatArray], FloatArray]


def solve_lower(lower: NDArray[Any], right: FloatArray) -> FloatArray:
    """Solve with a lower triangular matrix."""
    from scipy.linalg import solve_triangular  # slow to import

    return np.asarray(solve_triangular(lower, right, lower=True, check_finite=False))


@dataclass(frozen=True, eq=False)
class Sample:
    """Effects that were counted in a sample.

    Parameters
    ----------
    effects : Effects
        Which they are.
    values : array (E,)
        Their values.
    records : array (E,)
        Number of records behind each.
    """

    effects: Effects
    values: FloatArray
    records: FloatArray

    @property
    def root(self) -> FloatArray:
        """Square roots of the numbers of records: what deviations are multiplied by, (E,)."""
        return np.sqrt(self.records)

    def covariance(self, exact: FloatArray) -> FloatArray:
        """Covariance of effects times the records behind them, from that of one record.

        Where a model expects next to nothing, one record there is no proof against it.
        """
        return exact + np.diag(POLICY.least_count / self.records)

    def normal(self, spread: FloatArray) -> "Normal":
        """The normal approximation of the likelihood where effects have this covariance."""
        if np.ptp(self.records) == 0.0:
            number = float(self.records[0])
            return Normal(number * spread, lambda away: number * away)
        # The effects have covariance N^-1/2 C N^-1/2, and C is their slope in the coefficients.
        lower = np.linalg.cholesky(spread)
        slopes = solve_lower(lower, self.root[:, None] * spread)
        turned: FloatArray = slopes.T
        return Normal(turned @ slopes, lambda away: turned @ solve_lower(lower, self.root * away))


@dataclass(frozen=True, eq=False)
class LogLinear:
    """A log-linear model of a sample, with the prior that it has.

    Parameters
    ----------
    sample : Sample
        What it was fitted to.
    state : Completion
        The model as a mixture, which has independence as its start.
    coefficients : array (E,)
        Those of the effects.
    variances : array (E,)
        Prior variance of each coefficient.
    own : tuple of arrays
        The shares of each variable at the start.
    evidence : float
        Logarithm of the probability of the sample, by Laplace's method, up to what all models of
        this sample share.
    """

    sample: Sample
    state: Completion
    coefficients: FloatArray
    variances: FloatArray
    own: tuple[FloatArray, ...]
    evidence: float = float("nan")

    def records_of(self, subset: Subset) -> float:
        """Records behind the effects of a set."""
        effects = self.sample.effects
        return float(self.sample.records[effects.starts[effects.positions[subset]]])


def fit_log_linear(
    sample: Sample, start: Completion, offer: Callable[[LogLinear], None] = lambda model: None
) -> tuple[LogLinear, LogLinear]:
    """Return the models with one variance for each order, and with one for each set of variables.

    Parameters
    ----------
    sample : Sample
        The effects.
    start : Completion
        Independence, in a problem that has one goal for each set of variables, in their order.
    offer : callable
        Takes each model on the way, in case that the fit is interrupted.
    """
    effects = sample.effects
    first = np.array(
        [POLICY.first_taus[min(k, len(POLICY.first_taus)) - 1] for k in effects.orders]
    )
    own = tuple(start.tabulate((n,)) for n in range(len(effects.levels)))
    model = LogLinear(sample, start, np.zeros(effects.size), first[effects.set_of] ** 2, own)
    swept = sweep_first(model)
    offer(swept)
    by_order = climb(swept, "order")
    offer(by_order)
    return by_order, climb(by_order, "set")


def sweep_first(model: LogLinear) -> LogLinear:
    """The model after some sweeps of IPF, with one spread for all tables.

    Coefficients that must become large, where tables have zeros, become so within a few sweeps;
    Newton's method would take many steps.
    """
    sample, effects = model.sample, model.sample.effects
    inside = {part for s in effects.sets for part in combinations(s, len(s) - 1)}
    goals = [
        Near(s, effects.table(k, sample.values), model.records_of(s), POLICY.tau)
        for k, s in enumerate(effects.sets)
        if s not in inside
    ]
    state = replace(
        model.state,
        problem=replace(model.state.problem, goals=tuple(goals)),
        pulls=tuple(np.zeros(len(goal.shares)) for goal in goals),
    )
    for _ in range(POLICY.first_sweeps):
        state = sweep(state)
        # A cell without mass is not pulled.
        pulls = (np.where(np.isfinite(pull), pull, 0.0) for pull in state.pulls)
        state = replace(state, pulls=tuple(pulls))
    coefficients = np.zeros(effects.size)
    for goal, pull in zip(goals, state.pulls, strict=True):
        for k, part in effects.coefficients(goal.subset, pull).items():
            coefficients[effects.rows(k)] += part
    return place(model, coefficients)


def keep_zeros(model: LogLinear, tables: Marginals) -> LogLinear:
    """The model with zeros kept that no chance explains; the model itself where there are none.

    Interactions are finite, so that no cell is impossible. A cell without a record where
    independence expects several is most likely one. Where such zeros make the tables far more
    probable, so may be cells where one record is expected, and interactions within one set of
    variables are of very different strength.
    """
    first, second = POLICY.kept_zeros
    kept = bar_zeros(model, tables, first)
    if kept is None or model.sample.effects.size > POLICY.quick_effects:
        return kept or model
    if kept.evidence < model.evidence + POLICY.zeros_gain:
        return kept
    more = bar_zeros(model, tables, second)
    best = kept if more is None or more.evidence < kept.evidence else more
    return replace(climb(best, "effect"), evidence=best.evidence)


def bar_zeros(model: LogLinear, tables: Marginals, least: float) -> LogLinear | None:
    """The model without cells where no record is and that many are expected, fitted again."""
    goals = []
    for i, subset in enumerate(tables.index_subsets):
        expected = float(tables.totals[i]) * outer_product(model.own[n] for n in subset)
        alive = (tables.counts_of(i) > 0) | (expected < least)
        if not alive.all():
            goals.append(Alive(subset, alive.ravel()))
    if not goals or not tables.counted.all():
        return None
    own = Model.of([1.0], [share[:, None] for share in model.own])
    start = start_completion(model.state.problem, own)
    none = tuple(np.zeros(len(goal.cells)) for goal in goals)
    barred = replace(start, problem=replace(start.problem, goals=tuple(goals)), pulls=none)
    try:
        barred = sweep(barred)
    except Stalled:
        return None  # zeros leave no state
    start = replace(start, weights=barred.weights, columns=barred.columns)
    rounds = None if model.sample.effects.size <= POLICY.quick_effects else POLICY.zero_rounds
    begun = replace(model, state=start)
    begun = sweep_first(begun) if rounds is None else place(begun, model.coefficients)
    found = climb(begun, "set", rounds)
    zeros = sum(int((~goal.cells).sum()) for goal in goals)
    return replace(found, evidence=found.evidence - POLICY.zero_cost * zeros)


@dataclass(frozen=True, eq=False)
class Alive:
    """A goal: the present table without some of its cells.

    Examples
    --------
    >>> Alive((0,), np.array([True, False])).aim(np.array([0.5, 0.5]), np.zeros(2))
    array([1., 0.])
    """

    subset: Subset
    cells: NDArray[np.bool_]

    def aim(self, now: FloatArray, pull: FloatArray) -> FloatArray:
        """Return the table without these cells."""
        kept = np.where(self.cells, now, 0.0)
        return np.asarray(kept / (kept.sum() or 1.0))


def climb(model: LogLinear, shared_by: SharedBy, rounds: int | None = None) -> LogLinear:
    """Alternate estimates of variances and steps of Newton's method until neither moves much."""
    sample, effects = model.sample, model.sample.effects
    quick = effects.size <= POLICY.quick_effects
    for _ in range(rounds or (POLICY.most_rounds if quick else POLICY.fewer_rounds)):
        tabulate = model.state.tabulate
        normal = sample.normal(sample.covariance(effects.covariance(tabulate)))
        away = sample.values - effects.values(tabulate)
        target = normal.score(away) + normal.information @ model.coefficients
        variances = model.variances
        # Linearized estimates of many variances lead each other astray: one at a time.
        for _ in range(POLICY.inner_rounds if quick and shared_by == "order" else 1):
            mean, known = posterior(normal, target, variances)
            before = variances
            variances = estimate_variances(effects, mean, known, variances, shared_by)
            if np.abs(np.log(variances / before)).max() < POLICY.still:
                break
        drift = float(np.abs(np.log(variances / model.variances)).max())
        moved = move(replace(model, variances=variances), normal, target, away)
        step = moved.coefficients - model.coefficients
        gain = float(step @ normal.information @ step)
        model = moved
        if drift < 2 * POLICY.still and gain < POLICY.still:
            break
    return replace(model, evidence=log_evidence(model, shared_by))


def posterior(
    normal: Normal, target: FloatArray, prior: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Coefficients by a normal approximation, and how far each is determined (0 to 1)."""
    from scipy.linalg import lapack  # slow to import

    factor = precision_factor(normal, prior)
    inverse, _ = lapack.dpotri(factor, lower=1)
    return solve_mode(factor, target, prior), 1.0 - np.diag(inverse)


def precision_factor(normal: Normal, prior: FloatArray) -> FloatArray:
    """Lower Cholesky factor of the posterior's precision, in units of the prior.

    In these units the matrix is well conditioned however small a variance is.
    """
    from scipy.linalg import lapack

    unit = np.sqrt(prior)
    matrix = unit[:, None] * normal.information * unit
    matrix[np.diag_indices_from(matrix)] += 1.0
    factor, _ = lapack.dpotrf(matrix, lower=1)
    return np.asarray(factor)


def solve_mode(factor: FloatArray, target: FloatArray, prior: FloatArray) -> FloatArray:
    """The most probable coefficients of a normal approximation."""
    from scipy.linalg import cho_solve

    root = np.sqrt(prior)
    return np.asarray(root * cho_solve((factor, True), root * target, check_finite=False))


def estimate_variances(
    effects: Effects,
    mean: FloatArray,
    known: FloatArray,
    variances: FloatArray,
    shared_by: SharedBy,
) -> FloatArray:
    """MacKay's estimate for each order or each set of variables; that of EM for each effect."""
    sums, numbers = (
        np.bincount(effects.set_of, values, len(effects.sets)) for values in (mean**2, known)
    )
    pooled = effects.orders - 1
    common = np.bincount(pooled, sums) / np.maximum(np.bincount(pooled, numbers), 1e-12)
    found = common[pooled]
    if shared_by != "order":
        found = (sums + POLICY.shared * found) / (numbers + POLICY.shared)
    found = found[effects.set_of]
    if shared_by == "effect":
        own = mean**2 + variances * (1.0 - known)
        several = effects.orders[effects.set_of] > 1
        found = np.where(several, (own + POLICY.shared * found) / (1.0 + POLICY.shared), found)
    else:
        # The rule crawls towards zero: it goes further than it says.
        found = variances * np.clip(found / variances, 1e-2, 1e2) ** POLICY.over_relaxed
    low, high = POLICY.tau_bounds
    return np.asarray(np.clip(found, low**2, high**2))


def move(model: LogLinear, normal: Normal, target: FloatArray, away: FloatArray) -> LogLinear:
    """A step of Newton's method, shortened while it goes too far."""
    sample = model.sample
    prior = model.variances
    step = solve_mode(precision_factor(normal, prior), target, prior) - model.coefficients
    slope = float((normal.score(away) - model.coefficients / prior) @ step)
    size = 1.0
    for _ in range(8):
        moved = place(model, model.coefficients + size * step)
        left = sample.values - sample.effects.values(moved.state.tabulate)
        after = float((normal.score(left) - moved.coefficients / prior) @ step)
        if after >= -0.5 * abs(slope):
            break
        size *= float(np.clip(slope / (slope - after), 0.1, 0.5))
    return moved


def place(model: LogLinear, coefficients: FloatArray) -> LogLinear:
    """The model with other coefficients."""
    effects = model.sample.effects
    pulls = tuple(
        effects.function(k, coefficients[effects.rows(k)]) for k in range(len(effects.sets))
    )
    return replace(model, state=pull_from_start(model.state, pulls), coefficients=coefficients)


def log_evidence(model: LogLinear, shared_by: SharedBy) -> float:
    """Logarithm of the probability of the sample, up to what all models of it share.

    A variance for each set of variables costs evidence, by Laplace's method: its logarithm is known
    to ``2 / gamma``, where ``gamma`` coefficients are determined, and its prior has the variance
    ``POLICY.set_variance`` around that of its order.

    Independence knows the shares of each variable. So that these are not taken for granted, their
    effects are those of a log-linear model that starts at equal shares, with a variance of their
    own.
    """
    sample, effects = model.sample, model.sample.effects
    tabulate = model.state.tabulate
    spread = sample.covariance(effects.covariance(tabulate))
    away = sample.values - effects.values(tabulate)
    coefficients, prior = model.coefficients.copy(), model.variances.copy()
    for k, subset in enumerate(effects.sets):
        if len(subset) == 1:
            base = effects.contract(subset, np.log(model.own[subset[0]]))
            coefficients[effects.rows(k)] += base
    alone = effects.orders[effects.set_of] == 1
    least, _ = POLICY.tau_bounds
    prior[alone] = max(float(np.mean(coefficients[alone] ** 2)), least**2)
    normal = sample.normal(spread)
    occam = float(np.log(np.diag(precision_factor(normal, prior))).sum())
    if shared_by == "set":
        _, known = posterior(normal, sample.values, model.variances)
        gamma = np.bincount(effects.set_of, known, len(effects.sets))[effects.orders > 1]
        occam += 0.5 * float(np.log1p(POLICY.set_variance * gamma / 2.0).sum())
    misfit = solve_lower(np.linalg.cholesky(spread), sample.root * away)
    return -0.5 * float(misfit @ misfit) - 0.5 * float(np.sum(coefficients**2 / prior)) - occam
