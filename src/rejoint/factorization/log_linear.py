"""Log-linear models of sampled tables whose prior is estimated: empirical Bayes by MacKay's rule.

Soft goals are the most probable log-linear model if coefficients of effects are normal around zero
(:mod:`~rejoint.factorization.effects`). How far from zero they are, the tables say themselves: the
variance of a group of them is ``|theta|^2 / gamma``, with ``gamma`` the number of coefficients
that the tables determine. First each order has one variance, so that a joint without interactions
of three variables is not given any; then each set of variables has its own, pulled towards that of
its order by one coefficient more. The model is found by Newton's method in the coefficients,
inside the mixture of the completion.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.factorization.effects import (
    Effects,
    Subset,
    nested_taus,
)
from rejoint.factorization.max_entropy import (
    Completion,
    pull_from_start,
    start_completion,
    sweep,
)
from rejoint.factorization.table_goals import Goal, Near
from rejoint.factorization.table_policy import POLICY
from rejoint.marginals.marginals import Marginals
from rejoint.model import FloatArray, Model
from rejoint.solver.solver import Stalled


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
    variances : array
        Prior variance of the coefficients of each set of variables.
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

    @property
    def taus(self) -> dict[Subset, float]:
        """Spread of the multipliers of cells, for each table and margin that has some."""
        return nested_taus(self.sample.effects, self.variances)

    def goals(self, tables: Mapping[Subset, FloatArray]) -> list[Goal]:
        """The same as soft goals of tables and their margins."""
        return [
            Near(subset, tables[subset].ravel(), self.records_of(subset), tau)
            for subset, tau in self.taus.items()
        ]

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
    model = LogLinear(sample, start, np.zeros(effects.size), first**2, own)
    swept = sweep_first(model)
    offer(swept)
    by_order = climb(swept, effects.orders - 1)
    offer(by_order)
    each = climb(by_order, None)
    return by_order, replace(each, evidence=each.evidence - freedom_cost(each))


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


def keep_zeros(model: LogLinear, tables: Marginals) -> LogLinear | None:
    """The model with zeros kept that no chance explains; None where there are none.

    Interactions are finite, so that no cell is impossible. A cell without a record where
    independence expects several is most likely one. Variances are estimated again.
    """
    goals = []
    for i, subset in enumerate(tables.index_subsets):
        expected = np.array(float(tables.totals[i]))
        for n in subset:
            expected = np.multiply.outer(expected, model.own[n])
        alive = (tables.counts_of(i) > 0) | (expected < POLICY.kept_zero)
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
    found = climb(sweep_first(replace(model, state=start)), None)
    zeros = sum(int((~goal.cells).sum()) for goal in goals)
    cost = freedom_cost(found) + POLICY.zero_cost * zeros
    return replace(found, evidence=found.evidence - cost)


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


def climb(model: LogLinear, groups: NDArray[np.intp] | None) -> LogLinear:
    """Alternate estimates of variances and steps of Newton's method until neither moves much."""
    sample, effects = model.sample, model.sample.effects
    quick = effects.size <= POLICY.quick_effects
    for _ in range(POLICY.most_rounds if quick else POLICY.fewer_rounds):
        tabulate = model.state.tabulate
        normal = sample.normal(sample.covariance(effects.covariance(tabulate)))
        away = sample.values - effects.values(tabulate)
        target = normal.score(away) + normal.information @ model.coefficients
        variances = model.variances
        # Linearized estimates of many variances lead each other astray: one at a time.
        for _ in range(POLICY.inner_rounds if quick and groups is not None else 1):
            mean, known = posterior(sample, normal, target, variances)
            before, variances = variances, estimate_variances(model, mean, known, variances, groups)
            if np.abs(np.log(variances / before)).max() < POLICY.still:
                break
        drift = float(np.abs(np.log(variances / model.variances)).max())
        moved = move(replace(model, variances=variances), normal, target, away)
        step = moved.coefficients - model.coefficients
        gain = float(step @ normal.information @ step)
        model = moved
        if drift < 2 * POLICY.still and gain < POLICY.still:
            break
    return replace(model, evidence=log_evidence(model))


def posterior(
    sample: Sample, normal: Normal, target: FloatArray, variances: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Coefficients by a normal approximation, and how far each is determined (0 to 1)."""
    from scipy.linalg import lapack  # slow to import

    prior = variances[sample.effects.set_of]
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
    model: LogLinear,
    mean: FloatArray,
    known: FloatArray,
    variances: FloatArray,
    groups: NDArray[np.intp] | None,
) -> FloatArray:
    """MacKay's estimate for groups of sets; for each set alone where there are no groups."""
    effects = model.sample.effects
    sums, numbers = (
        np.bincount(effects.set_of, values, len(effects.sets)) for values in (mean**2, known)
    )
    pooled = effects.orders - 1
    common = np.bincount(pooled, sums) / np.maximum(np.bincount(pooled, numbers), 1e-12)
    if groups is None:
        found = (sums + POLICY.shared * common[pooled]) / (numbers + POLICY.shared)
    else:
        found = common[groups]
    # The rule crawls towards zero: it goes further than it says.
    found = variances * np.clip(found / variances, 1e-2, 1e2) ** POLICY.over_relaxed
    low, high = POLICY.tau_bounds
    return np.asarray(np.clip(found, low**2, high**2))


def move(model: LogLinear, normal: Normal, target: FloatArray, away: FloatArray) -> LogLinear:
    """A step of Newton's method, shortened while it goes too far."""
    sample = model.sample
    prior = model.variances[sample.effects.set_of]
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


def freedom_cost(model: LogLinear) -> float:
    """What a variance for each set costs in evidence, by Laplace's method.

    The logarithm of a variance is known to ``2 / gamma``, where ``gamma`` coefficients are
    determined; its prior has the variance ``POLICY.set_variance`` around that of its order.
    """
    sample, effects = model.sample, model.sample.effects
    spread = sample.covariance(effects.covariance(model.state.tabulate))
    _, known = posterior(sample, sample.normal(spread), sample.values, model.variances)
    gamma = np.bincount(effects.set_of, known, len(effects.sets))[effects.orders > 1]
    return 0.5 * float(np.log1p(POLICY.set_variance * gamma / 2.0).sum())


def log_evidence(model: LogLinear) -> float:
    """Logarithm of the probability of the sample, up to what all models of it share.

    Independence knows the shares of each variable. So that these are not taken for granted, their
    effects are those of a log-linear model that starts at equal shares, with a variance of their
    own.
    """
    sample, effects = model.sample, model.sample.effects
    tabulate = model.state.tabulate
    spread = sample.covariance(effects.covariance(tabulate))
    away = sample.values - effects.values(tabulate)
    coefficients, variances = model.coefficients.copy(), model.variances.copy()
    for k, subset in enumerate(effects.sets):
        if len(subset) == 1:
            base = effects.contract(subset, np.log(model.own[subset[0]]))
            coefficients[effects.rows(k)] += base
    alone = effects.orders[effects.set_of] == 1
    least, _ = POLICY.tau_bounds
    variances[effects.orders == 1] = max(float(np.mean(coefficients[alone] ** 2)), least**2)
    prior = variances[effects.set_of]
    occam = float(np.log(np.diag(precision_factor(sample.normal(spread), prior))).sum())
    misfit = solve_lower(np.linalg.cholesky(spread), sample.root * away)
    return -0.5 * float(misfit @ misfit) - 0.5 * float(np.sum(coefficients**2 / prior)) - occam
