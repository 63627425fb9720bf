"""Levenberg-Marquardt on any loss with a curvature, in softmax coordinates.

ADMM moves fast at first and then crawls along a flat valley; this ends the walk. Weights and
factor columns are softmaxes of free parameters, so the simplex holds by itself, and the
Gauss-Newton matrix of squared errors comes from Gram matrices (``gram_sums``), that of other
losses from ``information``. Beyond ``dense_limit`` parameters the damped equations are solved by
preconditioned conjugate gradients.

No Jacobian of the tables is formed. ``matrix`` sets the equations up, ``Product`` only multiplies
with their matrix, by way of the tables. Both are in softmax coordinates: the Jacobian of a column
``p`` is ``diag(p) - p p^T``.

The curvature of ``sum_S omega_S loss(X_S, Xhat_S)`` where the model meets the tables is
``sum_S omega_S J_S^T diag(h_S) J_S`` with the curvature ``h`` of each cell; for the
Kullback-Leibler divergence, ``h = 1 / Xhat``, it is the Fisher information. With ``R = omega h``
and ``K`` the Khatri-Rao product of the variables of ``S`` other than n and m, its blocks come from

    W_nm[i, j, f, g] = sum_S sum_rest R_S[i, j, rest] K[rest, f] K[rest, g]

and the same for a single n: they are the blocks in ``gram_sums``, whose sums of Gram matrices now
depend on the cells i and j. Tables of equal shape are taken many at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from rejoint.arrays import FloatArray, IntArray
from rejoint.factorization.problem import TableProblem
from rejoint.factorization.table_policy import POLICY
from rejoint.factorization.unfolding import TableTangent
from rejoint.identifiability.gram_sums import scaled_gram_matrix
from rejoint.model import Layout, Model
from rejoint.solver.solver import Limits

#: Numbers handled at a time: bounds memory at about 16 MB for each array.
CHUNK_NUMBERS = 2_000_000


def information(problem: TableProblem, model: Model) -> FloatArray:
    """Curvature in weights and factors, (1 + L, F, 1 + L, F)."""
    weights, factors, rows = model.weights, model.factors, problem.layout.rows
    loss: Any = problem.loss  # with a curvature, as solvers declare in needs
    cells = loss.curvature(problem.flat, problem.cells.of_model(model)) * problem.cell_weight
    rank, size = len(weights), len(factors)
    full = np.zeros((1 + size, rank, 1 + size, rank))
    body, single = full[1:, :, 1:], np.zeros((size, rank, rank))
    for members, batch in _batches(problem, cells, rank):
        parts = [np.stack([factors[rows(n)] for n in column]) for column in members.T]
        axes = range(len(parts))
        for a, b in combinations(axes, 2):
            sums = _rest_sums(batch, parts, (a, b)).transpose(0, 1, 3, 2, 4)
            for n, m, block in zip(members[:, a], members[:, b], sums, strict=True):
                body[rows(n), :, rows(m)] += block
                body[rows(m), :, rows(n)] += block.transpose(2, 3, 0, 1)
        for a in axes:
            sums = _rest_sums(batch, parts, (a,))
            for n, block in zip(members[:, a], sums, strict=True):
                single[rows(n)] += block
            if a == 0:  # each table once
                full[0, :, 0] += np.einsum("tif,tifg,tig->fg", parts[0], sums, parts[0])
    border = factors[:, :, None] * single * weights
    body *= (factors * weights).T[None, :, :, None]
    body *= (factors * weights)[:, None, None, :]
    body[np.arange(size), :, np.arange(size)] += np.outer(weights, weights) * single
    full[0, :, 1:], full[1:, :, 0] = border.transpose(1, 0, 2), border.transpose(0, 2, 1)
    return full


def _batches(
    problem: TableProblem, cells: FloatArray, rank: int
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Variables (T, d) and cells (T, ..) of tables of the same shape, some at a time."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for k, table in enumerate(problem.tables):
        groups.setdefault(table.shape, []).append(k)
    starts = problem.cells.starts
    for shape, tables in groups.items():
        step = max(1, CHUNK_NUMBERS // (prod(shape) * rank**2))
        for at in range(0, len(tables), step):
            chosen = tables[at : at + step]
            members = np.array([problem.subsets[k] for k in chosen], dtype=np.intp)
            places = starts[chosen][:, None] + np.arange(prod(shape))
            yield members, cells[places].reshape(-1, *shape)


def _rest_sums(cells: FloatArray, parts: Sequence[FloatArray], axes: tuple[int, ...]) -> FloatArray:
    """``sum_rest R[axes, rest] K[rest, f] K[rest, g]`` of each table, (T, .., F, F)."""
    rest = [axis for axis in range(len(parts)) if axis not in axes]
    count, rank = len(cells), parts[0].shape[-1]
    product = np.ones((count, 1, rank))
    for axis in rest:
        product = (product[:, :, None] * parts[axis][:, None]).reshape(count, -1, rank)
    outer = (product[..., :, None] * product[..., None, :]).reshape(count, -1, rank**2)
    front = cells.transpose(0, *(1 + axis for axis in (*axes, *rest)))
    shape = front.shape[: 1 + len(axes)]
    sums = front.reshape(count, -1, outer.shape[1]) @ outer
    return np.asarray(sums.reshape(*shape, rank, rank))


Solution = tuple[FloatArray, float]


def lift_zeros(problem: TableProblem, model: Model) -> FloatArray:
    """Weights above factors, held away from zero."""
    floor = min(POLICY.floor, max(problem.relative_error(model), 1e-14))
    return np.maximum(model.stacked, floor)


def column_sums(layout: Layout, stacked: FloatArray) -> FloatArray:
    """Sums of the weights and of each variable's columns, repeated to the shape of ``stacked``.

    Arrays are (1 + L, F, ...), weights first.
    """
    sums = np.add.reduceat(stacked, [0, *(1 + layout.offsets[:-1])], axis=0)
    sums[0] = sums[0].sum(axis=0)
    repeated: FloatArray = np.repeat(sums, [1, *layout.levels], axis=0)
    return repeated


def softmax_pullback(model: Model, slope: FloatArray) -> FloatArray:
    """Apply the softmax Jacobian to each column; arrays are (1 + L, F, ...), weights first."""
    stacked = model.stacked[(...,) + (None,) * (slope.ndim - 2)]
    pulled = stacked * slope
    pulled -= stacked * column_sums(model.layout, pulled)
    return pulled


def softmax(layout: Layout, logits: FloatArray) -> Model:
    """The model with these logits, (1 + L, F), weights first."""
    weights = np.exp(logits[0] - logits[0].max())
    return Model(layout, weights / weights.sum(), layout.softmax(logits[1:]))


def matrix(problem: TableProblem, model: Model) -> FloatArray:
    """Gauss-Newton matrix in softmax coordinates, (P, P) with P = (1 + L) F."""
    quadratic = hasattr(problem.loss, "unit_curvature")
    if quadratic:
        full = scaled_gram_matrix(problem.families, model.parts, model.weights)
    else:
        full = information(problem, model)
    rows = moment_rows(problem, model)
    return pull_both(model, full) + rows.T @ rows


def pull_both(model: Model, full: FloatArray) -> FloatArray:
    """A matrix (1 + L, F, 1 + L, F) in weights and factors, in softmax coordinates, (P, P).

    It is changed in place: an array of this size is the cost of a step.
    """
    stacked = model.stacked[:, :, None, None]
    for side in (full, full.transpose(2, 3, 0, 1)):
        side *= stacked
        side[0] -= stacked[0] * side[0].sum(axis=0)
        for n in range(len(model.layout.levels)):
            rows = model.layout.rows(n)
            block = side[1:][rows]
            block -= stacked[1:][rows] * block.sum(axis=0)
    return full.reshape(len(full) * model.rank, -1)


def moment_rows(problem: TableProblem, model: Model) -> FloatArray:
    """Jacobian of the weighted moments in softmax coordinates, (K, P)."""
    size = model.rank * (1 + len(model.factors))
    parts = [np.zeros((0, size))]
    for moments in problem.moments:
        rows = moments.slopes(model.weights, model.factors)
        rows *= np.sqrt(moments.family.weight)[:, None, None]
        parts.append(softmax_pullback(model, rows.transpose(1, 2, 0)).reshape(size, -1).T)
    return np.concatenate(parts)


class Product:
    """Products of the same matrix with vectors, and its diagonal, without forming it."""

    def __init__(self, problem: TableProblem, model: Model) -> None:
        loss: Any = problem.loss
        self.problem, self.model = problem, model
        self.tangent = TableTangent(problem.cells, model)
        self.curvature = problem.cell_weight * loss.curvature(problem.flat, self.tangent.tables)
        self.rows = moment_rows(problem, model)

    def __call__(self, vector: FloatArray) -> FloatArray:
        """Multiply with a vector in softmax coordinates, (P,)."""
        model, direction = self.model, vector.reshape(-1, self.model.rank)
        change = self.tangent.apply(*self.tangent.center(direction[0], direction[1:]))
        classes, levels = self.tangent.contract(self.curvature * change)
        slope = np.vstack([classes, model.weights * levels])
        return softmax_pullback(model, slope).ravel() + self.rows.T @ (self.rows @ vector)

    @cached_property
    def diagonal(self) -> FloatArray:
        """Diagonal of the matrix, but for the constraint of the weights, for preconditioning."""
        layout, weights, squares = self.model.layout, self.model.weights, self.model.factors**2
        model = Model(layout, weights, squares)
        head, body = self.problem.cells.contract(model, self.curvature)
        body = weights**2 * body
        body = (1.0 - 2.0 * self.model.factors) * body + layout.expand(layout.sums(squares * body))
        tables = np.concatenate([weights**2 * head, (squares * body).ravel()])
        return np.asarray(tables + np.einsum("kp,kp->p", self.rows, self.rows))


@dataclass(frozen=True)
class NewtonState:
    """Logits (1 + L, F), weights first; the model; its gradient; the damping."""

    logits: FloatArray
    model: Model
    slope: FloatArray
    objective: float
    residual: float
    damping: float


@dataclass(frozen=True)
class Newton:
    """Levenberg-Marquardt with the Gram structure of the model.

    Parameters
    ----------
    dense_limit : int
        Largest number of parameters for which the equations are solved by a Cholesky factor;
        beyond it, by conjugate gradients.
    limits : Limits
        When to stop.

    Examples
    --------
    >>> import rejoint as rj
    >>> tables = rj.Marginals.from_tables({("a", "b"): [[0.3, 0.1], [0.1, 0.5]]})
    >>> rj.factorize(tables, rank=2, solver=Newton(), random_state=0).error < 1e-9
    True
    """

    dense_limit: int = 1500
    limits: Limits = field(default=Limits(max_steps=300, progress=1e-6, window=8))
    name: str = field(default="newton", init=False)
    needs = ("tables", "loss.curvature")

    def init(self, problem: TableProblem, model: Model) -> NewtonState:
        """State at a first model, its probabilities held away from zero."""
        state = evaluate(problem, np.log(lift_zeros(problem, model)), np.nan)
        diagonal = Product(problem, state.model).diagonal
        return replace(state, damping=1e-3 * float(diagonal.max()))

    def step(self, problem: TableProblem, state: NewtonState) -> NewtonState:
        """One damped step that lowers the objective."""
        slope = softmax_pullback(state.model, state.slope).ravel()
        solve: Callable[[float], Solution]
        if state.logits.size <= self.dense_limit:
            solve = partial(solve_directly, matrix(problem, state.model), slope)
        else:
            solve = partial(solve_iteratively, Product(problem, state.model), slope)

        def attempt(damping: float) -> tuple[NewtonState, float]:
            move, promised = solve(damping)
            logits = state.logits + move.reshape(state.logits.shape)
            return evaluate(problem, logits, damping), promised

        moved: NewtonState = descend(state, attempt)
        return moved


def evaluate(problem: TableProblem, logits: FloatArray, damping: float) -> NewtonState:
    """State at some logits."""
    model = softmax(problem.layout, logits)
    value, slope = problem.gradient(model)
    return NewtonState(
        logits, model, slope, value, steepness(problem, model, slope, value), damping
    )


def descend(state: Any, attempt: Callable[[float], tuple[Any, float]]) -> Any:
    """The first attempt that lowers the objective (Nielsen's rule for the damping).

    A state has an objective and a damping. An attempt says where a damping leads and by how much
    the objective was to fall. Where none lowers it any more, the state itself is returned.
    """
    damping, growth = state.damping, 2.0
    while growth < 1e12:
        moved, promised = attempt(damping)
        if moved.objective < state.objective:
            gain = (state.objective - moved.objective) / promised if promised > 0 else 0.5
            damping *= max(1 / 3, 1 - (2 * gain - 1) ** 3) if gain < 2 else 1 / 3
            return replace(moved, damping=damping)
        damping, growth = damping * growth, growth * 2
    return state


def solve_directly(matrix: FloatArray, slope: FloatArray, damping: float) -> Solution:
    """By a Cholesky factor; a damping too small for one is raised."""
    size = len(matrix)
    least = 1e-14 * float(np.trace(matrix)) or 1.0
    while True:
        try:
            factor = cho_factor(matrix + damping * np.eye(size), check_finite=False)
            break
        except LinAlgError:
            damping = max(10 * damping, least)
    move = -cho_solve(factor, slope, check_finite=False)
    return move, -float(slope @ move + 0.5 * move @ (matrix @ move))


def solve_iteratively(product: Product, slope: FloatArray, damping: float) -> Solution:
    """By conjugate gradients, to the accuracy that a Newton step deserves."""
    size = len(slope)
    operator = LinearOperator((size, size), matvec=lambda v: product(v) + damping * v)
    scaling = 1.0 / (product.diagonal + damping)
    preconditioner = LinearOperator((size, size), matvec=lambda v: scaling * v)
    move = cg(operator, -slope, rtol=1e-3, maxiter=200, M=preconditioner)[0]
    return move, -float(slope @ move + 0.5 * move @ product(move))


def steepness(problem: TableProblem, model: Model, slope: FloatArray, value: float) -> float:
    """Norm of the gradient in softmax coordinates over the norms of residuals and tables.

    The gradient is ``J^T r``; divided by ``||r||`` it vanishes only where the residuals are
    orthogonal to all directions of the model, not merely because they are small.
    """
    size = np.sqrt(2.0 * value * problem.scale) or 1.0
    return float(np.linalg.norm(softmax_pullback(model, slope)) / size)
