"""The Kullback-Leibler divergence of tables, ``sum_S omega_S KL(X_S || Xhat_S)``, by EM.

With counts behind the tables, ``omega`` in proportion to them makes it a composite likelihood.
EM shares every cell out among the classes by the present model. With ``Q = X / Xhat`` the counts
are ``A_n * w * sum_S omega_S Q_S x_{m != n} A_m`` for the factors, and their sums for the weights;
the second factor is also minus the slope of the divergence. EM never climbs, and its zeros stay.

EM is quick at first and then crawls, since a table of three variables says little about the class
of one of its cells. Two things are added, and nothing is accepted that raises the objective:
Anderson mixing of the last steps, in logarithms, which keeps columns positive; and once EM
crawls, where there are few enough parameters, damped steps with the Fisher information.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.factorization.loss import KL, TINY
from rejoint.factorization.newton import (
    column_sums,
    descend,
    information,
    lift_zeros,
    pull_both,
    softmax,
    softmax_pullback,
    solve_directly,
)
from rejoint.factorization.problem import TableProblem
from rejoint.factorization.table_policy import POLICY
from rejoint.model import Layout, Model
from rejoint.solver.acceleration import mixing_shares
from rejoint.solver.solver import Limits


@dataclass(frozen=True)
class KlState:
    """Model, minus its slope (1 + L, F) with the weights first, and the last steps."""

    model: Model
    ascent: FloatArray
    objective: float
    residual: float
    before: tuple[FloatArray, ...] = ()
    after: tuple[FloatArray, ...] = ()
    damping: float = 1e-3


def evaluate(problem: TableProblem, model: Model) -> KlState:
    """Objective and slope in one pass over the tables; the residual is how far EM would move."""
    value, slope = problem.gradient(model)
    stacked = model.stacked
    change = em(model, -slope).stacked - stacked
    residual = float(np.linalg.norm(change) / np.linalg.norm(stacked))
    return KlState(model, -slope, value, residual)


def em(model: Model, ascent: FloatArray) -> Model:
    """What EM makes of a model; a column that explains nothing stays as it is."""
    stacked = model.stacked
    counts = stacked * ascent
    sums = column_sums(model.layout, counts)
    shares = np.where(sums > 0, counts / np.where(sums > 0, sums, 1.0), stacked)
    return Model.from_stacked(model.layout, shares)


def normalize(layout: Layout, stacked: FloatArray) -> Model:
    """Weights and columns scaled to sum to one."""
    return Model.from_stacked(layout, stacked / column_sums(layout, stacked))


def logarithms(model: Model) -> FloatArray:
    """Logarithms of weights above factors, of zeros too."""
    return np.log(np.maximum(model.stacked, TINY))


def score(problem: TableProblem, state: KlState) -> KlState:
    """One step with the Fisher information that lowers the objective, if there is one."""
    model = state.model
    matrix = pull_both(model, information(problem, model))
    slope = -softmax_pullback(model, state.ascent).ravel()
    size, start = float(np.diag(matrix).max()), logarithms(model)

    def attempt(damping: float) -> tuple[KlState, float]:
        move, promised = solve_directly(matrix, slope, damping * size)
        moved = softmax(problem.layout, start + move.reshape(start.shape)).stacked
        kept = Model.from_stacked(problem.layout, np.where(model.stacked > 0, moved, 0.0))
        return replace(evaluate(problem, kept), before=state.before, after=state.after), promised

    moved: KlState = descend(state, attempt)
    return moved


@dataclass(frozen=True)
class Kl:
    """Kullback-Leibler divergence of the tables from the model's, by accelerated EM.

    Parameters
    ----------
    memory : int
        Steps that Anderson acceleration looks back on; 0 turns it off.
    dense_limit : int
        Largest number of parameters for which scoring steps help EM; 0 turns them off.
    limits : Limits
        When to stop.

    Examples
    --------
    >>> import rejoint as rj
    >>> truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    >>> tables = rj.Marginals.from_pmf(truth, order=3)
    >>> result = rj.factorize(tables, rank=2, solver=Kl(), start="random", random_state=0)
    >>> rj.metrics.tensor_error(truth, result.pmf) < 1e-8
    True
    """

    memory: int = 10
    dense_limit: int = 1500
    limits: Limits = field(default=Limits(max_steps=2000, progress=1e-6, residual=1e-15))
    name: str = field(default="kl", init=False)
    needs = ("tables", "loss.ratios", "loss.curvature")
    loss = KL

    def init(self, problem: TableProblem, model: Model) -> KlState:
        """State at a first model, its probabilities held away from zero."""
        lifted = normalize(problem.layout, lift_zeros(problem, model))
        return evaluate(problem, lifted)

    def step(self, problem: TableProblem, state: KlState) -> KlState:
        """One step of EM, mixed with the last ones; then one of scoring if that was slow."""
        update = em(state.model, state.ascent)
        kept = slice(-self.memory - 1, None) if self.memory else slice(0, 0)
        before = (*state.before, logarithms(state.model))[kept]
        after = (*state.after, logarithms(update))[kept]
        moved = evaluate(problem, mix_steps(update, before, after)) if after[1:] else None
        if moved is None or not moved.objective < state.objective:
            if moved is not None:  # the steps looked back on misled
                before, after = (), ()
            moved = evaluate(problem, update)
        if not moved.objective < state.objective:
            return state  # rounding is all that is left
        moved = replace(moved, before=before, after=after, damping=state.damping)
        slow = state.objective - moved.objective < POLICY.crawl * state.objective
        if not slow or moved.ascent.size > self.dense_limit:
            return moved
        return score(problem, moved)


def mix_steps(update: Model, before: Sequence[FloatArray], after: Sequence[FloatArray]) -> Model:
    """Anderson mixing of the last steps, each probability counting by its size."""
    size = np.sqrt(np.vstack([update.weights, update.weights * update.factors]))
    moves = (np.stack(after) - np.stack(before)) * size
    mix = mixing_shares(moves.reshape(len(after), -1))
    if mix is None:
        return update
    move = -np.tensordot(mix, np.diff(np.stack(after), axis=0), 1)
    reach = np.log(POLICY.reach)
    return normalize(update.layout, update.stacked * np.exp(np.clip(move, -reach, reach)))
