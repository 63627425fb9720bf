"""The paper's algorithm: alternating updates of factors and weights, each solved by ADMM.

One step is one sweep over all factors and the weights. Two things are added, since as printed
it stands in swamps for thousands of sweeps: the sweeps are accelerated by Anderson mixing (an
affine combination of the last sweeps, which keeps columns summing to one, projected back onto
the simplex), and nothing is accepted that raises the objective, computed from the residuals.

The appendix prints the projection as ``P(A - Ahat^T + U)``; with the dual update as printed,
``U += A - Ahat^T``, the right step is ``P(Ahat^T - U)``, for the weights too. It leaves ``rho``
open: the geometric mean of the extreme eigenvalues of ``G`` (the choice that is optimal for
quadratic programs) converges where ``trace(G)/F`` crawls, since the Gram matrix of nonnegative
columns has one large eigenvalue and many small ones.
"""

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from rejoint import kernels
from rejoint.factorization import grams
from rejoint.factorization.anderson import mixing_shares
from rejoint.factorization.problem import (
    Array,
    Problem,
    factor_pull,
    gram_stack,
    mttkrp,
    objective,
    weights_pull,
)
from rejoint.factorization.record_tables import RecordTables, RecordVisit
from rejoint.kernels import damped_inverse, project_columns
from rejoint.solver.run import Stalled, relative_error
from rejoint.solver.solver import Limits


def factor_update(
    gram: Array, target: Array, factor: Array, dual: Array, steps: int
) -> tuple[Array, Array]:
    """Minimise ``tr(A G A^T)/2 - <A, V>`` over columns on the simplex, A and V being (I, F)."""
    inverse, rho = damped_inverse(gram)
    return kernels.admm_steps(inverse, target, factor, dual, rho, steps)


def weights_update(
    gram: Array, target: Array, weights: Array, dual: Array, steps: int
) -> tuple[Array, Array]:
    """Minimise ``w G w/2 - v w`` over the simplex, which here runs along F."""
    inverse, rho = damped_inverse(gram)
    rows = (target[None], weights[None], dual[None])
    found, dual = kernels.admm_steps(inverse, *rows, rho, steps, along_rows=True)
    return found[0], dual[0]


class Visit(Protocol):
    """What a sweep asks for; it changes the factors it was begun with in place."""

    def normal(self, n: int) -> tuple[Array, Array]:
        """``G_n`` (F, F) and ``V_n`` (I_n, F), both without the weights."""
        ...

    def moved(self, n: int) -> None:
        """Take note that factor ``n`` has changed."""
        ...

    def whole(self) -> tuple[Array, Array]:
        """``G`` (F, F) and ``v`` (F,) of the weights."""
        ...


class TableVisit:
    """A visit to tables that are there."""

    def __init__(self, problem: Problem, weights: Array, factors: Array) -> None:
        self.problem, self.weights, self.factors = problem, weights, factors
        self.products = gram_stack(problem, factors)

    def normal(self, n: int) -> tuple[Array, Array]:
        """See ``Visit``."""
        problem = self.problem
        gram = grams.without(problem.families, self.products, n)
        target = mttkrp(problem, self.factors, n)
        if problem.moments:
            more, pulled = factor_pull(problem, self.products, self.weights, self.factors, n)
            gram, target = gram + more, target + pulled
        return gram, target

    def moved(self, n: int) -> None:
        """See ``Visit``."""
        mine = self.factors[self.problem.rows(n)]
        self.products[n] = mine.T @ mine

    def whole(self) -> tuple[Array, Array]:
        """See ``Visit``."""
        return weights_normal(self.problem, self.products, self.weights, self.factors)


def weights_normal(
    problem: Problem, products: Array, weights: Array, factors: Array
) -> tuple[Array, Array]:
    """``G`` and ``v`` of the weights' subproblem."""
    gram = grams.whole(problem.families, products)
    target = np.zeros_like(weights)
    for n in range(len(problem.levels)):
        mine = mttkrp(problem, factors, n, owned=True)
        target += np.sum(mine * factors[problem.rows(n)], axis=0)
    if problem.moments:
        more, pulled = weights_pull(problem, products, weights, factors)
        gram, target = gram + more, target + pulled
    return gram, target


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
