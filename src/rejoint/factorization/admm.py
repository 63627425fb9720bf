"""The paper's algorithm: alternating updates of factors and weights, each solved by ADMM.

One step is one sweep over all factors and the weights. Two things are added, since as printed
it stands in swamps for thousands of sweeps: the sweeps are accelerated by Anderson mixing (an
affine combination of the last sweeps, which keeps columns summing to one, projected back onto
the simplex), and nothing is accepted that raises the objective, computed from the residuals.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from rejoint import kernels
from rejoint.factorization.mixing import mixing_shares
from rejoint.factorization.problem import Array, Problem, objective
from rejoint.factorization.tableless import RecordTables, RecordVisit
from rejoint.factorization.updates import factor_update, weights_update
from rejoint.factorization.visits import TableVisit, Visit, weights_normal
from rejoint.kernels import project_columns
from rejoint.solver import Limits, Stalled, relative_error

#: Sweeps in a row that may fail to lower the objective; where they hardly move the model it is
#: rounding that they fail by.
PATIENCE, SETTLED = 20, 1e-6

#: Objective, as a share of the tables' own sum of squares, above which ``|X|^2/2 - v w + w G w/2``
#: is good enough: rounding takes at most 1e-10 of it then.
ROUGH = 1e-5


@dataclass(frozen=True)
class AdmmState:
    """Model, duals, and the last sweeps for the acceleration."""

    weights: Array
    factors: Array
    weights_dual: Array
    factors_dual: Array
    objective: float
    residual: float
    before: tuple[Array, ...] = ()
    after: tuple[Array, ...] = ()
    rejected: int = 0


@dataclass(frozen=True)
class Admm:
    """Alternating optimisation with ADMM inside (the paper's Algorithm 1).

    Parameters
    ----------
    inner : int
        ADMM steps on each factor in a sweep; duals are kept between sweeps.
    memory : int
        Sweeps that Anderson acceleration looks back on; 0 turns it off.
    limits : Limits
        When to stop.

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.datasets.asia()
    >>> tables = rj.Marginals.from_pmf(p, order=3)
    >>> result = rj.factorize(tables, rank=2, solver=Admm(inner=20), random_state=0)
    >>> result.history[0].objective > result.history[-1].objective
    True
    """

    inner: int = 10
    memory: int = 10
    limits: Limits = field(default=Limits(max_steps=2000, progress=1e-6, window=25))
    name: str = field(default="admm", init=False)

    def init(self, problem: Problem | RecordTables, weights: Array, factors: Array) -> AdmmState:
        """State at a first model, with zero duals."""
        value = value_of(problem, weights, factors)
        zero = np.zeros_like
        return AdmmState(weights, factors, zero(weights), zero(factors), value, np.inf)

    def step(self, problem: Problem | RecordTables, state: AdmmState) -> AdmmState:
        """One sweep, then the accelerated point if that is lower still."""
        swept = sweep(problem, state, self.inner)
        value = swept.objective  # NaN where the sweep has not computed it
        if not value > ROUGH * problem.scale:
            value = value_of(problem, swept.weights, swept.factors)
        moved = np.linalg.norm(stack(swept) - stack(state)) / np.linalg.norm(stack(state))
        # Moves are small because little is left as well as because they lead nowhere.
        left = relative_error(problem, state.objective)
        residual = float(moved / left) if left > 0 else 0.0
        if np.isnan(left):  # the size of tables that are not formed is not known
            residual = float(moved)
        if value > state.objective:
            if state.rejected + 1 >= PATIENCE and residual > SETTLED:
                raise Stalled
            # Inexact inner steps are not monotone: keep the model, but also the new duals,
            # from which the same update comes out better next time.
            return replace(
                state,
                weights_dual=swept.weights_dual,
                factors_dual=swept.factors_dual,
                residual=residual,
                before=(),
                after=(),
                rejected=state.rejected + 1,
            )
        kept = slice(-self.memory - 1, None) if self.memory else slice(0, 0)
        state = replace(
            swept,
            objective=value,
            residual=residual,
            before=(*state.before, stack(state))[kept],
            after=(*state.after, stack(swept))[kept],
        )
        return accelerate(problem, state)


def stack(state: AdmmState) -> Array:
    """Weights and factors as one array, (1 + L, F)."""
    return np.vstack([state.weights, state.factors])


def sweep(problem: Problem | RecordTables, state: AdmmState, inner: int) -> AdmmState:
    """Update each factor, then the weights (the paper's two subproblems)."""
    if isinstance(problem, Problem) and problem.packed is not None:
        return packed_sweep(problem, problem.packed, state, inner)
    weights, factors = state.weights, state.factors.copy()
    dual = state.factors_dual.copy()
    visit = begin(problem, weights, factors)
    outer = np.outer(weights, weights)
    for n in range(len(problem.levels)):
        rows = problem.rows(n)
        gram, target = visit.normal(n)
        factors[rows], dual[rows] = factor_update(
            outer * gram, target * weights, factors[rows], dual[rows], inner
        )
        visit.moved(n)
    gram, target = visit.whole()
    weights, weights_dual = weights_update(gram, target, weights, state.weights_dual, 2 * inner)
    return AdmmState(weights, factors, weights_dual, dual, np.nan, np.inf)


def packed_sweep(problem: Problem, packed: Array, state: AdmmState, inner: int) -> AdmmState:
    """The same over all triples, by a kernel as a whole."""
    (weights, factors), duals, value = kernels.triples_sweep(
        packed,
        problem.levels,
        float(problem.weight[0]),
        (state.weights, state.factors),
        (state.weights_dual, state.factors_dual),
        inner,
    )
    return AdmmState(weights, factors, *duals, float(0.5 * problem.scale + value), np.inf)


def begin(problem: Problem | RecordTables, weights: Array, factors: Array) -> Visit:
    """A visit to all variables, whichever form the tables have."""
    if isinstance(problem, RecordTables):
        return RecordVisit(problem, factors)
    return TableVisit(problem, weights, factors)


def value_of(problem: Problem | RecordTables, weights: Array, factors: Array) -> float:
    """The objective, whichever form the tables have."""
    if isinstance(problem, RecordTables):
        return problem.objective(weights, factors)
    if problem.packed is not None:
        value = 0.5 * problem.scale + kernels.triples_value(
            problem.packed, problem.levels, float(problem.weight[0]), weights, factors
        )
        if value > ROUGH * problem.scale:
            return float(value)
    return objective(problem, weights, factors)


def best_weights(
    problem: Problem, products: Array, weights: Array, factors: Array, dual: Array, steps: int
) -> tuple[Array, Array]:
    """The weights' subproblem for given factors: new weights and their duals."""
    gram, target = weights_normal(problem, products, weights, factors)
    return weights_update(gram, target, weights, dual, steps)


def accelerate(problem: Problem | RecordTables, state: AdmmState) -> AdmmState:
    """Anderson mixing of the last sweeps, where it lowers the objective."""
    if len(state.before) < 2:
        return state
    before, after = np.stack(state.before), np.stack(state.after)
    mix = mixing_shares((after - before).reshape(len(before), -1))
    if mix is None:
        return state
    weights, factors = project(problem, after[-1] - np.tensordot(mix, np.diff(after, axis=0), 1))
    value = value_of(problem, weights, factors)
    if not value < state.objective:
        return state
    return replace(state, weights=weights, factors=factors, objective=value)


def project(problem: Problem | RecordTables, stacked: Array) -> tuple[Array, Array]:
    """Nearest weights and factors whose columns lie on the simplex."""
    weights = project_columns(stacked[0][:, None])[:, 0]
    factors = stacked[1:].copy()
    for n in range(len(problem.levels)):
        rows = problem.rows(n)
        factors[rows] = project_columns(factors[rows])
    return weights, factors
