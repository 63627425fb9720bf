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

import numpy as np

from rejoint import kernels
from rejoint.arrays import FloatArray
from rejoint.factorization.problem import TableProblem, weights_update
from rejoint.factorization.table_policy import POLICY
from rejoint.kernels import damped_inverse, project_columns
from rejoint.model import Layout, Model
from rejoint.solver.acceleration import mixing_shares
from rejoint.solver.solver import Limits, Stalled


def factor_update(
    gram: FloatArray, target: FloatArray, factor: FloatArray, dual: FloatArray, steps: int
) -> tuple[FloatArray, FloatArray]:
    """Minimize ``tr(A G A^T)/2 - <A, V>`` over columns on the simplex, A and V being (I, F)."""
    inverse, rho = damped_inverse(gram)
    return kernels.admm_steps(inverse, target, factor, dual, rho, steps)


@dataclass(frozen=True)
class AdmmState:
    """Model, duals, and the last sweeps for the acceleration."""

    model: Model
    weights_dual: FloatArray
    factors_dual: FloatArray
    objective: float
    residual: float
    before: tuple[FloatArray, ...] = ()
    after: tuple[FloatArray, ...] = ()
    rejected: int = 0


@dataclass(frozen=True)
class Admm:
    """Alternating optimization with ADMM inside (the paper's Algorithm 1).

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
    needs = ("visit", "loss.unit_curvature")

    def init(self, problem: TableProblem, model: Model) -> AdmmState:
        """State at a first model, with zero duals."""
        zeros = np.zeros_like(model.weights), np.zeros_like(model.factors)
        return AdmmState(model, *zeros, problem.quick_value(model), np.inf)

    def step(self, problem: TableProblem, state: AdmmState) -> AdmmState:
        """One sweep, then the accelerated point if that is lower still."""
        swept = sweep(problem, state, self.inner)
        value = swept.objective  # NaN where the sweep has not computed it
        if not value > POLICY.rough_share * problem.scale:
            value = problem.quick_value(swept.model)
        before, after = state.model.stacked, swept.model.stacked
        moved = np.linalg.norm(after - before) / np.linalg.norm(before)
        # Moves are small because little is left as well as because they lead nowhere.
        error = problem.error(state.objective)
        residual = float(moved / error) if error > 0 else 0.0
        if value > state.objective:
            if state.rejected + 1 >= POLICY.patience and residual > POLICY.rounding_move:
                raise Stalled
            # Inexact inner steps are not monotone: keep the model, but also the new duals,
            # from which the same update comes out better next time.
            return replace(
                swept,
                model=state.model,
                objective=state.objective,
                residual=residual,
                rejected=state.rejected + 1,
            )
        kept = slice(-self.memory - 1, None) if self.memory else slice(0, 0)
        state = replace(
            swept,
            objective=value,
            residual=residual,
            before=(*state.before, before)[kept],
            after=(*state.after, after)[kept],
        )
        return accelerate(problem, state)


def sweep(problem: TableProblem, state: AdmmState, inner: int) -> AdmmState:
    """Update each factor, then the weights (the paper's two subproblems)."""
    if problem.packed is not None:
        return sweep_packed(problem, problem.packed, state, inner)
    layout, weights = problem.layout, state.model.weights
    factors, dual = state.model.factors.copy(), state.factors_dual.copy()
    visit = problem.visit(weights, factors)
    outer = np.outer(weights, weights)
    for n in range(len(layout.levels)):
        rows = layout.rows(n)
        gram, target = visit.factor_normal(n)
        factors[rows], dual[rows] = factor_update(
            outer * gram, target * weights, factors[rows], dual[rows], inner
        )
        visit.note_change(n)
    gram, target = visit.weights_normal()
    weights, weights_dual = weights_update(gram, target, weights, state.weights_dual, 2 * inner)
    return AdmmState(Model(layout, weights, factors), weights_dual, dual, np.nan, np.inf)


def sweep_packed(
    problem: TableProblem, packed: FloatArray, state: AdmmState, inner: int
) -> AdmmState:
    """The same over all triples, by a kernel as a whole."""
    parts, duals, value = kernels.triples_sweep(
        packed,
        problem.layout.levels,
        float(problem.weight[0]),
        (state.model.weights, state.model.factors),
        (state.weights_dual, state.factors_dual),
        inner,
    )
    objective = float(0.5 * problem.scale + value)
    return AdmmState(Model(problem.layout, *parts), *duals, objective, np.inf)


def accelerate(problem: TableProblem, state: AdmmState) -> AdmmState:
    """Anderson mixing of the last sweeps, where it lowers the objective."""
    if len(state.before) < 2:
        return state
    before, after = np.stack(state.before), np.stack(state.after)
    mix = mixing_shares((after - before).reshape(len(before), -1))
    if mix is None:
        return state
    model = project(problem.layout, after[-1] - np.tensordot(mix, np.diff(after, axis=0), 1))
    value = problem.quick_value(model)
    return replace(state, model=model, objective=value) if value < state.objective else state


def project(layout: Layout, stacked: FloatArray) -> Model:
    """Nearest weights and factors whose columns lie on the simplex."""
    weights = project_columns(stacked[0][:, None])[:, 0]
    parts = [project_columns(part) for part in layout.split(stacked[1:])]
    return Model(layout, weights, np.vstack(parts))
