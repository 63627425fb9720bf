"""Levenberg-Marquardt on the least-squares objective, in softmax coordinates.

ADMM moves fast at first and then crawls along a flat valley; this ends the walk. Weights and
factor columns are softmaxes of free parameters, so the simplex holds by itself, and the
Gauss-Newton matrix comes from Gram matrices (see ``curvature``). Beyond ``dense_limit``
parameters the damped equations are solved by preconditioned conjugate gradients.

With ``M_n`` (``grams.without_each``) and ``W_nm`` (``grams.without_pairs``), its blocks in the
coordinates ``w`` and ``A`` are

    (n i f), (n i' f')   delta_ii' w_f w_f' M_n[f, f']
    (n i f), (m j f')    A_m[j, f] A_n[i, f'] w_f w_f' W_nm[f, f']
    (w f), (n i f')      A_n[i, f] w_f' M_n[f, f']
    (w f), (w f')        sum_S prod_{n in S} G_n[f, f']

and no Jacobian of the tables is formed. ``matrix`` sets it up, ``Product`` only multiplies
with it, in O(N F^2 d + L F^2). Both are in softmax coordinates: the Jacobian of a column ``p`` is
``diag(p) - p p^T``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from rejoint.factorization import grams
from rejoint.factorization.problem import Array, Problem, gram_stack, objective, residual_mttkrp
from rejoint.solver.run import relative_error
from rejoint.solver.solver import Limits


def pull(problem: Problem, model: Array, slope: Array) -> Array:
    """Apply the softmax Jacobian to each column; arrays are (1 + L, F, ...), weights first."""
    shape = (...,) + (None,) * (slope.ndim - 2)
    pulled = model[shape] * slope
    head, body = pulled[0], pulled[1:]
    sums = np.add.reduceat(body, problem.offsets[:-1], axis=0)
    head -= model[0][shape] * head.sum(axis=0)
    body -= model[1:][shape] * np.repeat(sums, problem.levels, axis=0)
    return pulled


def matrix(problem: Problem, model: Array) -> Array:
    """Gauss-Newton matrix in softmax coordinates, (P, P) with P = (1 + L) F."""
    full = linear_matrix(problem, model[0], model[1:])
    size = model.size
    for _ in range(2):
        full = pull(problem, model, full).transpose(2, 3, 0, 1)
    result = full.reshape(size, size)
    rows = moment_rows(problem, model)
    return result + rows.T @ rows


def linear_matrix(problem: Problem, weights: Array, factors: Array) -> Array:
    """The blocks above, tables only, (1 + L, F, 1 + L, F)."""
    rank, size = len(weights), len(factors)
    stack = gram_stack(problem, factors)
    single = grams.without_each(problem.families, stack)
    pairs = grams.without_pairs(problem.families, stack)
    outer = np.outer(weights, weights)
    owner = np.repeat(np.arange(len(problem.levels)), problem.levels)
    full = np.zeros((1 + size, rank, 1 + size, rank))
    for n in range(len(problem.levels)):
        rows = problem.rows(n)
        block = full[1 + rows.start : 1 + rows.stop]
        cross = (outer * pairs[n])[owner] * factors[:, :, None]  # (r, f, f')
        np.multiply(
            cross.transpose(1, 0, 2)[None],
            factors[rows][:, None, None, :],
            out=block[:, :, 1:, :],
        )
        for i in range(rows.start, rows.stop):
            full[1 + i, :, 1 + i, :] += outer * single[n]
        border = np.einsum("if,fg->fig", factors[rows], single[n] * weights)
        full[0, :, 1 + rows.start : 1 + rows.stop, :] = border
        block[:, :, 0, :] = border.transpose(1, 2, 0)
    full[0, :, 0, :] = grams.whole(problem.families, stack)
    return full


def moment_rows(problem: Problem, model: Array) -> Array:
    """Jacobian of the weighted moments in softmax coordinates, (K, P)."""
    weights, factors = model[0], model[1:]
    parts = [np.zeros((0, model.size))]
    for moments in problem.moments:
        sides = moments.projections(factors)
        rows = np.zeros((len(sides), *model.shape))
        rows[:, 0] = np.prod(sides, axis=1)
        for slot in range(moments.family.order):
            others = np.prod(np.delete(sides, slot, axis=1), axis=1) * weights
            rows[:, 1:] += moments.vectors[:, slot, :, None] * others[:, None, :]
        rows *= np.sqrt(moments.family.weight)[:, None, None]
        parts.append(pull(problem, model, rows.transpose(1, 2, 0)).reshape(model.size, -1).T)
    return np.concatenate(parts)


@dataclass(frozen=True)
class Product:
    """Products of the same matrix with vectors, and its diagonal, without forming it."""

    problem: Problem
    model: Array

    @cached_property
    def stack(self) -> Array:
        """``G_n``."""
        return gram_stack(self.problem, self.model[1:])

    @cached_property
    def single(self) -> Array:
        """``M_n``."""
        return grams.without_each(self.problem.families, self.stack)

    @cached_property
    def whole(self) -> Array:
        """The block of the weights."""
        return grams.whole(self.problem.families, self.stack)

    @cached_property
    def rows(self) -> Array:
        """Jacobian of the moments."""
        return moment_rows(self.problem, self.model)

    def __call__(self, vector: Array) -> Array:
        """Multiply with a vector in softmax coordinates, (P,)."""
        problem, weights, factors = self.problem, self.model[0], self.model[1:]
        direction = pull(problem, self.model, vector.reshape(self.model.shape))
        slices = [problem.rows(n) for n in range(len(problem.levels))]
        # C_n[f, f'] = (A_n^T dA_n)[f, f']
        turns = np.stack([factors[rows].T @ direction[1:][rows] for rows in slices])
        bent = grams.without_each_along(problem.families, self.stack, turns)
        out = np.empty_like(self.model)
        out[0] = self.whole @ direction[0] + np.einsum("nfg,nfg,g->f", self.single, turns, weights)
        for n, rows in enumerate(slices):
            straight = direction[1:][rows] * weights + factors[rows] * direction[0]
            out[1:][rows] = straight @ self.single[n] + (factors[rows] * weights) @ bent[n].T
        out[1:] *= weights
        return pull(problem, self.model, out).ravel() + self.rows.T @ (self.rows @ vector)

    @cached_property
    def diagonal(self) -> Array:
        """Diagonal of the matrix without its off-diagonal blocks' part, for preconditioning."""
        weights, factors = self.model[0], self.model[1:]
        square = weights**2 * np.einsum("nff->nf", self.single)
        square = np.repeat(square, self.problem.levels, axis=0)
        sums = np.add.reduceat(factors**2, self.problem.offsets[:-1])
        spread = 1.0 - 2.0 * factors + np.repeat(sums, self.problem.levels, axis=0)
        head = weights**2 * np.einsum("ff->f", self.whole)
        tables = np.concatenate([head, (factors**2 * spread * square).ravel()])
        moments: Array = np.einsum("kp,kp->p", self.rows, self.rows)
        return tables + moments


#: Probabilities of a start are held above this, since a softmax cannot leave zero, but no
#: further than the start's own error: what fits to 1e-9 has its zeros right to about that.
FLOOR = 1e-4


@dataclass(frozen=True)
class NewtonState:
    """Logits (1 + L, F), weights first; the model; its gradient; the damping."""

    logits: Array
    model: Array
    slope: Array
    objective: float
    residual: float
    damping: float

    @property
    def weights(self) -> Array:
        """Weights of the classes."""
        head: Array = self.model[0]
        return head

    @property
    def factors(self) -> Array:
        """Stacked factors."""
        return self.model[1:]


@dataclass(frozen=True)
class Newton:
    """Levenberg-Marquardt with the Gram structure of the model.

    Parameters
    ----------
    dense_limit : int
        Up to so many parameters the equations are solved by a Cholesky factor, beyond by
        conjugate gradients.
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

    def init(self, problem: Problem, weights: Array, factors: Array) -> NewtonState:
        """State at a first model, its probabilities held away from zero."""
        error = relative_error(problem, objective(problem, weights, factors))
        floor = min(FLOOR, max(error, 1e-14))
        logits = np.log(np.maximum(np.vstack([weights, factors]), floor))
        model = softmax(problem, logits)
        value, slope = gradient(problem, model)
        start = 1e-3 * float(Product(problem, model).diagonal.max())
        return NewtonState(
            logits, model, slope, value, steepness(problem, model, slope, value), start
        )

    def step(self, problem: Problem, state: NewtonState) -> NewtonState:
        """One damped step that lowers the objective (Nielsen's rule for the damping)."""
        solve = equations(problem, state, self.dense_limit)
        damping, growth = state.damping, 2.0
        while growth < 1e12:
            move, promised = solve(damping)
            logits = state.logits + move.reshape(state.logits.shape)
            model = softmax(problem, logits)
            value, slope = gradient(problem, model)
            if value < state.objective:
                gain = (state.objective - value) / promised if promised > 0 else 0.5
                damping *= max(1 / 3, 1 - (2 * gain - 1) ** 3) if gain < 2 else 1 / 3
                residual = steepness(problem, model, slope, value)
                return NewtonState(logits, model, slope, value, residual, damping)
            damping, growth = damping * growth, growth * 2
        return state  # no step lowers the objective any more


Solution = tuple[Array, float]


def equations(
    problem: Problem, state: NewtonState, dense_limit: int
) -> Callable[[float], Solution]:
    """Solver of ``(H + damping I) s = -g`` that also says what the model promises of ``s``."""
    slope = pulled_slope(problem, state)
    if state.model.size <= dense_limit:
        return partial(solve_directly, matrix(problem, state.model), slope)
    return partial(solve_iteratively, Product(problem, state.model), slope)


def solve_directly(matrix: Array, slope: Array, damping: float) -> Solution:
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


def solve_iteratively(product: Product, slope: Array, damping: float) -> Solution:
    """By conjugate gradients, to the accuracy that a Newton step deserves."""
    size = len(slope)
    operator = LinearOperator((size, size), matvec=lambda v: product(v) + damping * v)
    scaling = 1.0 / (product.diagonal + damping)
    preconditioner = LinearOperator((size, size), matvec=lambda v: scaling * v)
    move = cg(operator, -slope, rtol=1e-3, maxiter=200, M=preconditioner)[0]
    return move, -float(slope @ move + 0.5 * move @ product(move))


def gradient(problem: Problem, model: Array) -> tuple[float, Array]:
    """Objective and its slope in weights and factors, (1 + L, F), from the residuals."""
    weights, factors = model[0], model[1:]
    total, slope = 0.0, np.zeros_like(model)
    for n in range(len(problem.levels)):
        rows = problem.rows(n)
        half, owned = residual_mttkrp(problem, weights, factors, n, owned=True)
        total += half
        slope[0] -= np.sum(owned * factors[rows], axis=0)
        slope[1:][rows] -= weights * residual_mttkrp(problem, weights, factors, n)[1]
    for moments in problem.moments:
        gaps = moments.gaps(weights, factors)
        push = moments.family.weight * gaps
        sides = moments.projections(factors)
        total += 0.5 * float(gaps @ push)
        slope[0] -= push @ np.prod(sides, axis=1)
        for slot in range(moments.family.order):
            others = np.prod(np.delete(sides, slot, axis=1), axis=1) * weights
            slope[1:] -= moments.vectors[:, slot].T @ (push[:, None] * others)
    return total, slope


def pulled_slope(problem: Problem, state: NewtonState) -> Array:
    """Gradient in softmax coordinates, (P,)."""
    return pull(problem, state.model, state.slope).ravel()


def steepness(problem: Problem, model: Array, slope: Array, value: float) -> float:
    """Norm of the gradient in softmax coordinates over the norms of residuals and tables.

    The gradient is ``J^T r``; divided by ``||r||`` it vanishes only where the residuals are
    orthogonal to all directions of the model, not merely because they are small.
    """
    size = np.sqrt(2.0 * value * problem.scale) or 1.0
    return float(np.linalg.norm(pull(problem, model, slope)) / size)


def softmax(problem: Problem, logits: Array) -> Array:
    """Weights and stacked factors (1 + L, F) from their logits."""
    head = np.exp(logits[0] - logits[0].max())
    starts, repeat = problem.offsets[:-1], problem.levels
    body = logits[1:] - np.repeat(np.maximum.reduceat(logits[1:], starts), repeat, axis=0)
    body = np.exp(body)
    body /= np.repeat(np.add.reduceat(body, starts), repeat, axis=0)
    return np.vstack([head / head.sum(), body])
