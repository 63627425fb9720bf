"""Levenberg-Marquardt on any loss with a curvature, in softmax coordinates.

ADMM moves fast at first and then crawls along a flat valley; this ends the walk. Weights and
factor columns are softmaxes of free parameters, so the simplex holds by itself, and the
Gauss-Newton matrix of squared errors comes from Gram matrices; that of other losses is in
``fisher``. Beyond ``dense_limit`` parameters the damped equations are solved by preconditioned
conjugate gradients, with the matrix of squared errors whatever the loss.

With ``M_n`` (``unfolding.factor_grams``) and ``W_nm`` (``unfolding.pair_grams``), its blocks in the
coordinates ``w`` and ``A`` are

    (n i f), (n i' f')   delta_ii' w_f w_f' M_n[f, f']
    (n i f), (m j f')    A_m[j, f] A_n[i, f'] w_f w_f' W_nm[f, f']
    (w f), (n i f')      A_n[i, f] w_f' M_n[f, f']
    (w f), (w f')        sum_S prod_{n in S} G_n[f, f']

and no Jacobian of the tables is formed. ``matrix`` sets it up, ``Product`` only multiplies
with it, in O(N F^2 d + L F^2). Both are in softmax coordinates: the Jacobian of a column ``p`` is
``diag(p) - p p^T``.

The curvature of ``sum_S omega_S loss(X_S, Xhat_S)`` where the model meets the tables is
``sum_S omega_S J_S^T diag(h_S) J_S`` with the curvature ``h`` of each cell; for the
Kullback-Leibler divergence, ``h = 1 / Xhat``, it is the Fisher information. With ``R = omega h``
and ``K`` the Khatri-Rao product of the variables of ``S`` other than n and m, its blocks come from

    W_nm[i, j, f, g] = sum_S sum_rest R_S[i, j, rest] K[rest, f] K[rest, g]

and the same for a single n: they are the blocks in ``newton``, whose sums of Gram matrices now
depend on the cells i and j. Tables of equal shape are taken many at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations
from typing import Any, Protocol, TypeVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from rejoint.arrays import FloatArray
from rejoint.factorization import unfolding
from rejoint.factorization.problem import TableProblem, gram_stack
from rejoint.factorization.unfolding import Rows, khatri_rao
from rejoint.model import Layout, Model
from rejoint.solver.solver import Limits

#: Numbers handled at a time: bounds memory at about 16 MB for each array.
CHUNK_NUMBERS = 2_000_000


def information(problem: TableProblem, model: Model) -> FloatArray:
    """Curvature in weights and factors, (1 + L, F, 1 + L, F)."""
    weights, factors, rows = model.weights, model.factors, problem.layout.rows
    loss: Any = problem.loss  # with a curvature, as solvers declare in needs
    rank, size = len(weights), len(factors)
    full = np.zeros((1 + size, rank, 1 + size, rank))
    body, single = full[1:, :, 1:], np.zeros((size, rank, rank))
    for batch in batches(problem, rank):
        cells = loss.curvature(batch.tables, batch.shares(model))
        cells = cells * batch.weight.reshape(-1, *[1] * len(batch.shape))
        for axes in combinations(range(len(batch.shape)), 2):
            for (n, m), pair in batch.rest_sums(cells, factors, axes):
                block = pair.transpose(0, 2, 1, 3)
                body[rows(n), :, rows(m)] += block
                body[rows(m), :, rows(n)] += block.transpose(2, 3, 0, 1)
        for axis in range(len(batch.shape)):
            for (n,), one in batch.rest_sums(cells, factors, (axis,)):
                single[rows(n)] += one
                if axis == 0:  # each table once
                    mine = factors[rows(n)]
                    full[0, :, 0] += np.sum(one * mine[:, :, None] * mine[:, None, :], axis=0)
    border = factors[:, :, None] * single * weights
    body *= (factors * weights).T[None, :, :, None]
    body *= (factors * weights)[:, None, None, :]
    body[np.arange(size), :, np.arange(size)] += np.outer(weights, weights) * single
    full[0, :, 1:], full[1:, :, 0] = border.transpose(1, 0, 2), border.transpose(0, 2, 1)
    return full


@dataclass(frozen=True)
class TableBatch:
    """Tables of one shape (G, ..): variables (G, d), where these begin (G, d), weights (G,)."""

    tables: FloatArray
    members: Rows
    offsets: Rows
    weight: FloatArray
    found_sets: dict[tuple[int, ...], tuple[list[tuple[int, ...]], Rows, Rows]] = field(
        default_factory=dict, repr=False
    )
    found_rows: dict[tuple[int, ...], Rows] = field(default_factory=dict, repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of each table."""
        return self.tables.shape[1:]

    def rows(self, axes: Sequence[int]) -> Rows:
        """Stacked rows (d, G * cells) of the cells over some axes, table after table."""
        key = tuple(axes)
        if key not in self.found_rows:
            shape = [self.shape[axis] for axis in axes]
            count = int(np.prod(shape))
            grid = np.indices(shape, dtype=np.intp).reshape(len(shape), 1, count)
            rows = self.offsets.T[list(axes)][:, :, None] + grid
            self.found_rows[key] = rows.reshape(len(shape), len(self.weight) * count)
        return self.found_rows[key]

    def shares(self, model: Model) -> FloatArray:
        """The model's shares of all cells, (G, ..)."""
        cells = khatri_rao(model.factors, self.rows(range(len(self.shape)))) @ model.weights
        return cells.reshape(-1, *self.shape)

    def rest_sums(
        self, cells: FloatArray, factors: FloatArray, axes: tuple[int, ...]
    ) -> Iterator[tuple[tuple[int, ...], FloatArray]]:
        """``sum_rest R[axes, rest] K[rest, f] K[rest, g]``, added up for each set of variables."""
        rank, count = factors.shape[1], len(self.weight)
        rest = [axis for axis in range(len(self.shape)) if axis not in axes]
        front = cells.transpose(0, *(1 + axis for axis in (*axes, *rest)))
        shape = front.shape[1 : 1 + len(axes)]
        product = khatri_rao(factors, self.rows(rest)).reshape(count, -1, rank)
        outer = (product[..., :, None] * product[..., None, :]).reshape(count, -1, rank**2)
        sums = front.reshape(count, int(np.prod(shape)), -1) @ outer
        sets, order, first = self.sets_of(axes)
        sums = sums[order] if len(sets) == count else np.add.reduceat(sums[order], first, axis=0)
        yield from zip(sets, sums.reshape(len(sets), *shape, rank, rank), strict=True)

    def sets_of(self, axes: tuple[int, ...]) -> tuple[list[tuple[int, ...]], Rows, Rows]:
        """The sets of variables on some axes, the tables ordered by them, where each set begins."""
        if axes not in self.found_sets:
            members = self.members[:, list(axes)]
            sets, place, number = np.unique(
                members, axis=0, return_inverse=True, return_counts=True
            )
            first = np.cumsum(number) - number
            listed = [tuple(map(int, variables)) for variables in sets]
            self.found_sets[axes] = listed, np.argsort(place.ravel(), kind="stable"), first
        return self.found_sets[axes]


def batches(problem: TableProblem, rank: int) -> Iterator[TableBatch]:
    """The tables grouped by shape, some at a time; kept for the next step where they are small."""
    kept: dict[int, list[TableBatch]] = problem.__dict__.setdefault("_batches", {})
    if rank not in kept and sum(table.size for table in problem.tables) <= CHUNK_NUMBERS:
        kept[rank] = list(make_batches(problem, rank))
    return iter(kept[rank]) if rank in kept else make_batches(problem, rank)


def make_batches(problem: TableProblem, rank: int) -> Iterator[TableBatch]:
    """Group the tables by shape."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for i, table in enumerate(problem.tables):
        groups.setdefault(table.shape, []).append(i)
    for shape, tables in groups.items():
        step = max(1, CHUNK_NUMBERS // (int(np.prod(shape)) * rank**2))
        for start in range(0, len(tables), step):
            some = tables[start : start + step]
            members = np.array([problem.subsets[i] for i in some], dtype=np.intp)
            yield TableBatch(
                np.stack([problem.tables[i] for i in some]),
                members,
                problem.layout.offsets[members],
                problem.weight[some],
            )


#: Probabilities of a start are held above this, since neither a softmax nor EM can leave zero, but
#: no further than the start's own error: what fits to 1e-9 has its zeros right to about that.
FLOOR = 1e-4


Solution = tuple[FloatArray, float]


class Damped(Protocol):
    """A state of damped steps."""

    @property
    def objective(self) -> float:
        """What is minimized."""
        ...

    @property
    def damping(self) -> float:
        """Where the damping of the next step begins."""
        ...


DampedT = TypeVar("DampedT", bound=Damped)


def lift_zeros(problem: TableProblem, model: Model) -> FloatArray:
    """Weights above factors, held away from zero."""
    floor = min(FLOOR, max(problem.relative_error(model), 1e-14))
    return np.maximum(model.stacked, floor)


def column_sums(layout: Layout, stacked: FloatArray) -> FloatArray:
    """Sums of the weights and of each variable's columns, repeated to the shape of ``stacked``.

    Arrays are (1 + L, F, ...), weights first.
    """
    sums = np.add.reduceat(stacked, [0, *(1 + layout.offsets[:-1])], axis=0)
    sums[0] = sums[0].sum(axis=0)
    repeated: FloatArray = np.repeat(sums, [1, *layout.levels], axis=0)
    return repeated


def pull(model: Model, slope: FloatArray) -> FloatArray:
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
    full = gram_matrix(problem, model) if quadratic else information(problem, model)
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


def gram_matrix(problem: TableProblem, model: Model) -> FloatArray:
    """The blocks above, tables only, (1 + L, F, 1 + L, F)."""
    weights, factors = model.weights, model.factors
    rank, size = len(weights), len(factors)
    stack = gram_stack(problem.layout, factors)
    single = unfolding.factor_grams(problem.families, stack)
    pairs = unfolding.pair_grams(problem.families, stack)
    outer = np.outer(weights, weights)
    owner = np.repeat(np.arange(len(problem.levels)), problem.levels)
    full = np.zeros((1 + size, rank, 1 + size, rank))
    for n in range(len(problem.levels)):
        rows = problem.layout.rows(n)
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
    full[0, :, 0, :] = unfolding.weights_gram(problem.families, stack)
    return full


def moment_rows(problem: TableProblem, model: Model) -> FloatArray:
    """Jacobian of the weighted moments in softmax coordinates, (K, P)."""
    size = model.rank * (1 + len(model.factors))
    parts = [np.zeros((0, size))]
    for moments in problem.moments:
        rows = moments.slopes(model.weights, model.factors)
        rows *= np.sqrt(moments.family.weight)[:, None, None]
        parts.append(pull(model, rows.transpose(1, 2, 0)).reshape(size, -1).T)
    return np.concatenate(parts)


@dataclass(frozen=True)
class Product:
    """Products of the same matrix with vectors, and its diagonal, without forming it."""

    problem: TableProblem
    model: Model

    @cached_property
    def stack(self) -> FloatArray:
        """``G_n``."""
        return gram_stack(self.problem.layout, self.model.factors)

    @cached_property
    def factor_grams(self) -> FloatArray:
        """``M_n``."""
        return unfolding.factor_grams(self.problem.families, self.stack)

    @cached_property
    def weights_gram(self) -> FloatArray:
        """The block of the weights."""
        return unfolding.weights_gram(self.problem.families, self.stack)

    @cached_property
    def rows(self) -> FloatArray:
        """Jacobian of the moments."""
        return moment_rows(self.problem, self.model)

    def __call__(self, vector: FloatArray) -> FloatArray:
        """Multiply with a vector in softmax coordinates, (P,)."""
        layout, weights, factors = self.problem.layout, self.model.weights, self.model.factors
        direction = pull(self.model, vector.reshape(-1, len(weights)))
        slices = [layout.rows(n) for n in range(len(layout.levels))]
        # C_n[f, f'] = (A_n^T dA_n)[f, f']
        turns = np.stack([factors[rows].T @ direction[1:][rows] for rows in slices])
        bent = unfolding.factor_grams_along(self.problem.families, self.stack, turns)
        out = np.empty_like(direction)
        out[0] = self.weights_gram @ direction[0] + np.einsum(
            "nfg,nfg,g->f", self.factor_grams, turns, weights
        )
        for n, rows in enumerate(slices):
            straight = direction[1:][rows] * weights + factors[rows] * direction[0]
            out[1:][rows] = straight @ self.factor_grams[n] + (factors[rows] * weights) @ bent[n].T
        out[1:] *= weights
        return pull(self.model, out).ravel() + self.rows.T @ (self.rows @ vector)

    @cached_property
    def diagonal(self) -> FloatArray:
        """Diagonal of the matrix without its off-diagonal blocks' part, for preconditioning."""
        layout, weights, factors = self.problem.layout, self.model.weights, self.model.factors
        square = layout.expand(weights**2 * np.einsum("nff->nf", self.factor_grams))
        spread = 1.0 - 2.0 * factors + layout.expand(layout.sums(factors**2))
        head = weights**2 * np.einsum("ff->f", self.weights_gram)
        tables = np.concatenate([head, (factors**2 * spread * square).ravel()])
        moments: FloatArray = np.einsum("kp,kp->p", self.rows, self.rows)
        return tables + moments


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
        slope = pull(state.model, state.slope).ravel()
        solve: Callable[[float], Solution]
        if state.logits.size <= self.dense_limit:
            solve = partial(solve_directly, matrix(problem, state.model), slope)
        else:
            solve = partial(solve_iteratively, Product(problem, state.model), slope)

        def attempt(damping: float) -> tuple[NewtonState, float]:
            move, promised = solve(damping)
            logits = state.logits + move.reshape(state.logits.shape)
            return evaluate(problem, logits, damping), promised

        return descend(state, attempt)


def evaluate(problem: TableProblem, logits: FloatArray, damping: float) -> NewtonState:
    """State at some logits."""
    model = softmax(problem.layout, logits)
    value, slope = problem.gradient(model)
    return NewtonState(
        logits, model, slope, value, steepness(problem, model, slope, value), damping
    )


def descend(state: DampedT, attempt: Callable[[float], tuple[DampedT, float]]) -> DampedT:
    """The first attempt that lowers the objective (Nielsen's rule for the damping).

    An attempt says where a damping leads and by how much the objective was to fall. Where none
    lowers it any more, the state itself is returned.
    """
    damping, growth = state.damping, 2.0
    while growth < 1e12:
        moved, promised = attempt(damping)
        if moved.objective < state.objective:
            gain = (state.objective - moved.objective) / promised if promised > 0 else 0.5
            damping *= max(1 / 3, 1 - (2 * gain - 1) ** 3) if gain < 2 else 1 / 3
            return replace(moved, damping=damping)  # type: ignore[type-var]
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
    return float(np.linalg.norm(pull(model, slope)) / size)
