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
from functools import cached_property
from math import prod
from typing import Any, Literal

import numpy as np

from rejoint.arrays import FloatArray, IntArray, parts_of
from rejoint.factorization.max_entropy import Completion, Subset, with_multipliers
from rejoint.factorization.table_policy import POLICY
from rejoint.model import Model
from rejoint.queries.tables import Tabulate, khatri_rao


def make_contrasts(size: int) -> FloatArray:
    """Return orthonormal columns that are orthogonal to a constant, (I, I - 1)."""
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
        sets = {part for subset in varying for part in parts_of(subset)}
        self.sets: tuple[Subset, ...] = tuple(sorted(sets, key=lambda s: (len(s), s)))
        self.contrasts = [make_contrasts(size) for size in self.levels]
        self.sizes = np.array([prod(self.levels[n] - 1 for n in s) for s in self.sets], np.intp)
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.intp)
        self.positions = {subset: k for k, subset in enumerate(self.sets)}

    @property
    def size(self) -> int:
        """Number of effects, ``E``."""
        return int(self.starts[-1])

    @cached_property
    def set_of(self) -> IntArray:
        """Position of the set of variables of each effect, (E,)."""
        return np.repeat(np.arange(len(self.sets)), self.sizes)

    @cached_property
    def orders(self) -> IntArray:
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
        """All effects of a distribution, (E,)."""
        tables = self.margins.tabulate(tabulate)
        return np.concatenate([self.contract(s, tables[mask_of(s)]) for s in self.sets])

    def function(self, k: int, coefficients: FloatArray) -> FloatArray:
        """The function of the cells of a set that these coefficients of its effects make, flat."""
        subset = self.sets[k]
        table = coefficients.reshape([self.levels[n] - 1 for n in subset])
        for n in subset:
            table = np.tensordot(table, self.contrasts[n], (0, 1))
        return table.ravel()

    @cached_property
    def margins(self) -> "MarginPlan":
        """How the tables of the sets follow from each other."""
        return MarginPlan(self.levels, {mask_of(subset) for subset in self.sets})

    @cached_property
    def plan(self) -> "UnionPlan":
        """Where the tables of unions stand from which covariances are read."""
        return UnionPlan(self)

    def covariance(self, tabulate: Tabulate) -> FloatArray:
        """Covariance of the effects of one record, (E, E)."""
        plan = self.plan
        moments = plan.tabulate(tabulate)[plan.index]
        first = np.diag(moments).copy()
        moments -= np.multiply.outer(first, first)
        return plan.turn(np.ascontiguousarray(plan.turn(moments).T))

    def tangent(self, model: Model) -> FloatArray:
        """Derivatives of the effects of a mixture, (E, (1 + sum (I_n - 1)) F).

        First in its weights, then in the coefficients of its columns on the contrasts.
        """
        rank, one = model.rank, np.ones(model.rank)
        means = [h.T @ a for h, a in zip(self.contrasts, model.parts, strict=True)]
        starts = 1 + np.concatenate([[0], np.cumsum([len(mean) for mean in means])])
        slopes = np.zeros((self.size, int(starts[-1]), rank))
        for k, subset in enumerate(self.sets):
            block, sizes = slopes[self.rows(k)], [len(means[n]) for n in subset]
            block[:, 0] = khatri_rao([means[n] for n in subset], one)
            cube = block.reshape(*sizes, -1, rank)
            for slot, n in enumerate(subset):
                others = khatri_rao([means[m] for m in subset if m != n], model.weights)
                others = others.reshape(*sizes[:slot], *sizes[slot + 1 :], rank)
                for level in range(len(means[n])):
                    np.moveaxis(cube, slot, 0)[level, ..., int(starts[n]) + level, :] = others
        return slopes.reshape(self.size, -1)


def mask_of(subset: Subset) -> int:
    """A set of variables as the bits of a number."""
    return sum(1 << n for n in subset)


def variables_of(mask: int) -> Subset:
    """The variables whose bits a number has."""
    return tuple(n for n in range(mask.bit_length()) if mask >> n & 1)


class MarginPlan:
    """How tables of several sets of variables follow from each other.

    Each is summed from the smallest larger one. Where there are many and the joint is not large,
    all begin with the joint, and tables between it and them have one variable less at a time.
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
        tables: dict[int, FloatArray] = {}
        for mask, parent in self.parents.items():
            subset = variables_of(mask)
            if parent is None:
                tables[mask] = tabulate(subset).reshape([self.levels[n] for n in subset])
            else:
                axes = [k for k, n in enumerate(variables_of(parent)) if not mask >> n & 1]
                tables[mask] = tables[parent].sum(axis=tuple(axes))
        return {mask: tables[mask] for mask in self.wanted}


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

    def _block(self, one: Subset, other: Subset, a: IntArray, b: IntArray, start: int) -> IntArray:
        """Where ``x_T = a, x_T' = b`` stands in the table of the union, which begins at start."""
        place, stride = np.full((a.shape[1], b.shape[1]), start), 1
        excluded = np.zeros(place.shape, dtype=bool)
        for n in sorted({*one, *other}, reverse=True):
            own = a[one.index(n)][:, None] if n in one else b[other.index(n)][None, :]
            if n in one and n in other:
                excluded |= own != b[other.index(n)]
            place += stride * own
            stride *= self.effects.levels[n]
        return np.where(excluded, 0, place)

    def tabulate(self, tabulate: Tabulate) -> FloatArray:
        """All tables of unions one after another, after a zero."""
        tables = self.margins.tabulate(tabulate).values()
        return np.concatenate([np.zeros(1), *(table.ravel() for table in tables)])

    def turn(self, matrix: FloatArray) -> FloatArray:
        """Rows of indicators as rows of contrasts, (E, ..) both.

        A contrast is a sum of indicators and a constant. Set by set the rows of all of its parts
        are brought together and turned along one variable after another.
        """
        padded = np.vstack([matrix, np.zeros((1, matrix.shape[1]))])
        turned = np.empty_like(matrix)
        for k, (rows, sides) in enumerate(self.turns):
            block = padded[rows]
            for side in sides:
                # (I, rest) to (rest, I - 1): the next variable comes first.
                block = np.moveaxis(np.tensordot(side, block, (1, 0)), 0, -2)
            turned[self.effects.rows(k)] = block.reshape(-1, matrix.shape[1])
        return turned

    @cached_property
    def turns(self) -> list[tuple[IntArray, list[FloatArray]]]:
        """For each set, the rows of its parts (I_1, I_2, ..) and what turns each variable."""
        effects, turns = self.effects, []
        for subset in effects.sets:
            rows = np.full([effects.levels[n] for n in subset], effects.size, dtype=np.intp)
            for part in parts_of(subset):
                k = effects.positions[part]
                place = tuple(slice(-1) if n in part else -1 for n in subset)
                shape = [effects.levels[n] - 1 for n in part]
                rows[place] = np.arange(*effects.starts[k : k + 2]).reshape(shape)
            ends = [(effects.contrasts[n][:-1], effects.contrasts[n][-1]) for n in subset]
            turns.append((rows, [np.vstack([rest - last, last]).T for rest, last in ends]))
        return turns


#: Which coefficients have a variance in common: those of an order, or of a set of variables.
SharedBy = Literal["order", "set"]


@dataclass(frozen=True, eq=False)
class Normal:
    """A normal approximation: information on the coefficients, and the score of deviations."""

    information: FloatArray
    score: Callable[[FloatArray], FloatArray]


def solve_lower(lower: Any, right: Any) -> FloatArray:
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
    largest = len(POLICY.first_taus)
    first = np.array([POLICY.first_taus[min(k, largest) - 1] for k in effects.orders])
    own = tuple(start.tabulate((n,)) for n in range(len(effects.levels)))
    model = LogLinear(sample, start, np.zeros(effects.size), first[effects.set_of] ** 2, own)
    offer(model)
    by_order = estimate_prior(model, "order")
    offer(by_order)
    return by_order, estimate_prior(by_order, "set")


def estimate_prior(model: LogLinear, shared_by: SharedBy) -> LogLinear:
    """Alternate estimates of variances and steps of Newton's method until neither moves much."""
    sample, effects = model.sample, model.sample.effects
    is_quick = effects.size <= POLICY.quick_effects
    for _ in range(POLICY.most_rounds if is_quick else POLICY.fewer_rounds):
        tabulate = model.state.tabulate
        normal = sample.normal(sample.covariance(effects.covariance(tabulate)))
        away = sample.values - effects.values(tabulate)
        target = normal.score(away) + normal.information @ model.coefficients
        variances = model.variances
        # Linearized estimates of many variances lead each other astray: one at a time.
        for _ in range(POLICY.inner_rounds if is_quick and shared_by == "order" else 1):
            mean, determined = posterior(normal, target, variances)
            before = variances
            variances = estimate_variances(effects, mean, determined, variances, shared_by)
            if np.abs(np.log(variances / before)).max() < POLICY.still:
                break
        drift = float(np.abs(np.log(variances / model.variances)).max())
        moved = newton_step(replace(model, variances=variances), normal, target, away)
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
    determined: FloatArray,
    variances: FloatArray,
    shared_by: SharedBy,
) -> FloatArray:
    """MacKay's estimate for each order or each set of variables."""
    sums, numbers = (
        np.bincount(effects.set_of, values, len(effects.sets)) for values in (mean**2, determined)
    )
    order = effects.orders - 1
    wanted = (np.bincount(order, sums) / np.maximum(np.bincount(order, numbers), 1e-12))[order]
    if shared_by == "set":
        wanted = (sums + POLICY.shared * wanted) / (numbers + POLICY.shared)
    # The rule crawls towards zero: it goes further than it says.
    ratio = np.clip(wanted[effects.set_of] / variances, 1e-2, 1e2)
    low, high = POLICY.tau_bounds
    return np.asarray(np.clip(variances * ratio**POLICY.over_relaxed, low**2, high**2))


def newton_step(
    model: LogLinear, normal: Normal, target: FloatArray, away: FloatArray
) -> LogLinear:
    """A step of Newton's method, shortened while it goes too far."""
    sample, prior = model.sample, model.variances
    step = solve_mode(precision_factor(normal, prior), target, prior) - model.coefficients
    slope = float((normal.score(away) - model.coefficients / prior) @ step)
    size = 1.0
    for _ in range(8):
        moved = with_coefficients(model, model.coefficients + size * step)
        rest = sample.values - sample.effects.values(moved.state.tabulate)
        after = float((normal.score(rest) - moved.coefficients / prior) @ step)
        if after >= -0.5 * abs(slope):
            break
        size *= float(np.clip(slope / (slope - after), 0.1, 0.5))
    return moved


def with_coefficients(model: LogLinear, coefficients: FloatArray) -> LogLinear:
    """The model with other coefficients."""
    effects = model.sample.effects
    multipliers = tuple(
        effects.function(k, coefficients[effects.rows(k)]) for k in range(len(effects.sets))
    )
    state = with_multipliers(model.state, multipliers)
    return replace(model, state=state, coefficients=coefficients)


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
        _, determined = posterior(normal, sample.values, model.variances)
        gamma = np.bincount(effects.set_of, determined, len(effects.sets))[effects.orders > 1]
        occam += 0.5 * float(np.log1p(POLICY.set_variance * gamma / 2.0).sum())
    misfit = solve_lower(np.linalg.cholesky(spread), sample.root * away)
    return -0.5 * float(misfit @ misfit) - 0.5 * float(np.sum(coefficients**2 / prior)) - occam
