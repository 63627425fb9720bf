"""The likelihood's twin for tables: ``sum_S omega_S KL(X_S || Xhat_S)``, minimised.

With counts behind the tables, ``omega`` in proportion to them makes it a composite likelihood.
EM shares every cell out among the classes and counts what falls to each (see ``expectation``): it
never climbs, and its zeros stay zeros.

EM is quick at first and then crawls, since a table of three variables says little about the class
of one of its cells. Two things are added, and nothing is accepted that raises the objective:
Anderson mixing of the last steps, in logarithms, which keeps columns positive; and once EM
crawls, where there are few enough parameters, damped steps with the Fisher information.

By Pinsker's inequality ``1/2 ||X - Xhat||^2`` is at most the divergence: the error that the loop
derives from this objective bounds that of the tables, so that "exact" means no less here.

Each cell is shared out among the classes by the present model. With ``Q = X / Xhat`` the counts are
``A_n * w * sum_S omega_S Q_S x_{m != n} A_m`` for the factors, and their sums for the weights; the
second factor is also minus the slope of ``sum_S omega_S KL(X_S || Xhat_S)``.

It is the curvature of the Kullback-Leibler objective where the model meets the tables,
``sum_S omega_S J_S^T diag(1 / Xhat_S) J_S``. With ``R = omega / Xhat`` and ``K`` the Khatri-Rao
product of the variables of ``S`` other than n and m, all its blocks come from

    W_nm[i, j, f, g] = sum_S sum_rest R_S[i, j, rest] K[rest, f] K[rest, g]

and the same for a single n: they are the blocks of ``curvature``, whose sums of Gram matrices
now depend on the cells i and j. Tables of equal shape are taken many at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from scipy.sparse import csr_array

from rejoint.factorization.anderson import mixing_shares
from rejoint.factorization.newton import pull, softmax, solve_directly
from rejoint.factorization.problem import Array, Problem, Rows, objective
from rejoint.factorization.unfolding import TINY, khatri_rao
from rejoint.solver.run import relative_error
from rejoint.solver.solver import Limits


@dataclass(frozen=True)
class KlState:
    """Model and minus its slope, both (1 + L, F) with the weights first; the last steps."""

    model: Array
    ascent: Array
    objective: float
    residual: float
    before: tuple[Array, ...] = ()
    after: tuple[Array, ...] = ()
    damping: float = 1e-3

    @property
    def weights(self) -> Array:
        """Weights of the classes."""
        head: Array = self.model[0]
        return head

    @property
    def factors(self) -> Array:
        """Stacked factors."""
        return self.model[1:]


def evaluate(problem: Problem, model: Array) -> KlState:
    """Objective and slope in one pass over the tables; the residual is how far EM would move."""
    weights, factors = model[0], model[1:]
    total, ascent = 0.0, np.zeros_like(model)
    for n, parts in enumerate(problem.unfoldings):
        rows = problem.rows(n)
        for part in parts:
            apart, pulled = part.expect(factors[rows] * weights, factors)
            total += apart
            ascent[1:][rows] += weights * pulled
            # A table of order d comes up d times, once for each of its variables.
            ascent[0] += np.sum(pulled * factors[rows], axis=0) / part.order
    change = em(problem, model, ascent) - model
    return KlState(model, ascent, total, float(np.linalg.norm(change) / np.linalg.norm(model)))


def em(problem: Problem, model: Array, ascent: Array) -> Array:
    """What EM makes of a model; a column that explains nothing stays as it is."""
    counts = model * ascent
    sums = column_sums(problem, counts)
    return np.where(sums > 0, counts / np.where(sums > 0, sums, 1.0), model)


def normalise(problem: Problem, stacked: Array) -> Array:
    """Weights and columns scaled to sum to one."""
    return stacked / column_sums(problem, stacked)


def column_sums(problem: Problem, stacked: Array) -> Array:
    """Sums of the weights and of each variable's columns, repeated to the shape of the model."""
    sums = np.add.reduceat(stacked, [0, *(1 + problem.offsets[:-1])])
    sums[0] = sums[0].sum()
    repeated: Array = np.repeat(sums, [1, *problem.levels], axis=0)
    return repeated


def logarithms(model: Array) -> Array:
    """Logarithms, of zeros too."""
    return np.log(np.maximum(model, TINY))


#: Numbers handled at a time: bounds memory at about 16 MB for each array.
CHUNK = 2_000_000


def information(problem: Problem, model: Array) -> Array:
    """Fisher information in softmax coordinates, (P, P) with P = (1 + L) F."""
    full = linear_information(problem, model[0], model[1:])
    for _ in range(2):
        full = pull(problem, model, full).transpose(2, 3, 0, 1)
    return full.reshape(model.size, model.size)


def linear_information(problem: Problem, weights: Array, factors: Array) -> Array:
    """The same in weights and factors themselves, (1 + L, F, 1 + L, F)."""
    rank, size = len(weights), len(factors)
    full = np.zeros((1 + size, rank, 1 + size, rank))
    body, single = full[1:, :, 1:], np.zeros((size, rank, rank))
    for stack in stacks(problem, rank):
        inverse = stack.inverse(weights, factors)
        for axes in combinations(range(len(stack.shape)), 2):
            for (n, m), pair in stack.rest_sums(inverse, factors, axes):
                block = pair.transpose(0, 2, 1, 3)
                body[problem.rows(n), :, problem.rows(m)] += block
                body[problem.rows(m), :, problem.rows(n)] += block.transpose(2, 3, 0, 1)
        for axis in range(len(stack.shape)):
            for (n,), one in stack.rest_sums(inverse, factors, (axis,)):
                single[problem.rows(n)] += one
                if axis == 0:  # each table once
                    mine = factors[problem.rows(n)]
                    full[0, :, 0] += np.sum(one * mine[:, :, None] * mine[:, None, :], axis=0)
    border = factors[:, :, None] * single * weights
    body *= (factors * weights).T[None, :, :, None]
    body *= (factors * weights)[:, None, None, :]
    body[np.arange(size), :, np.arange(size)] += np.outer(weights, weights) * single
    full[0, :, 1:], full[1:, :, 0] = border.transpose(1, 0, 2), border.transpose(0, 2, 1)
    return full


@dataclass(frozen=True)
class Stack:
    """Tables of one shape: their variables (G, d), where these begin (G, d), weights (G,)."""

    shape: tuple[int, ...]
    members: Rows
    offsets: Rows
    weight: Array

    def rows(self, axes: Sequence[int]) -> Rows:
        """Stacked rows (d, G * cells) of the cells over some axes, table after table."""
        shape = [self.shape[axis] for axis in axes]
        cells = int(np.prod(shape))
        grid = np.indices(shape, dtype=np.intp).reshape(len(shape), 1, cells)
        rows = self.offsets.T[list(axes)][:, :, None] + grid
        return rows.reshape(len(shape), len(self.weight) * cells)

    def inverse(self, weights: Array, factors: Array) -> Array:
        """``omega / Xhat`` of all cells, (G, ..)."""
        model = khatri_rao(factors, self.rows(range(len(self.shape)))) @ weights
        model = np.maximum(model, TINY).reshape(len(self.weight), -1)
        return (self.weight[:, None] / model).reshape(-1, *self.shape)

    def rest_sums(
        self, inverse: Array, factors: Array, axes: tuple[int, ...]
    ) -> Iterator[tuple[tuple[int, ...], Array]]:
        """``sum_rest R[axes, rest] K[rest, f] K[rest, g]``, added up for each set of variables."""
        rank, count = factors.shape[1], len(self.weight)
        rest = [axis for axis in range(len(self.shape)) if axis not in axes]
        front = np.moveaxis(inverse, [1 + axis for axis in axes], range(1, 1 + len(axes)))
        shape = front.shape[1 : 1 + len(axes)]
        product = khatri_rao(factors, self.rows(rest)).reshape(count, -1, rank)
        outer = (product[..., :, None] * product[..., None, :]).reshape(count, -1, rank**2)
        sums = front.reshape(count, int(np.prod(shape)), -1) @ outer
        sets, place = np.unique(self.members[:, list(axes)], axis=0, return_inverse=True)
        where = (place.ravel(), np.arange(count))
        onto = csr_array((np.ones(count), where), shape=(len(sets), count))
        added = (onto @ sums.reshape(count, -1)).reshape(len(sets), *shape, rank, rank)
        for variables, block in zip(sets, added, strict=True):
            yield tuple(map(int, variables)), block


def stacks(problem: Problem, rank: int) -> Iterator[Stack]:
    """The tables grouped by shape, some at a time."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for i, table in enumerate(problem.tables):
        groups.setdefault(table.shape, []).append(i)
    for shape, tables in groups.items():
        step = max(1, CHUNK // (int(np.prod(shape)) * rank**2))
        for start in range(0, len(tables), step):
            some = tables[start : start + step]
            members = np.array([problem.subsets[i] for i in some], dtype=np.intp)
            yield Stack(shape, members, problem.offsets[members], problem.weight[some])


#: A probability below this may have been given up too early.
LOST = 1e-5

#: No probability is lifted beyond this at once.
ROOM = 0.1


def score(problem: Problem, state: KlState) -> KlState:
    """One step that lowers the objective, if there is one (Nielsen's rule for the damping)."""
    matrix = information(problem, state.model)
    slope = -pull(problem, state.model, state.ascent).ravel()
    size, damping, growth = float(np.diag(matrix).max()), state.damping, 2.0
    while growth < 1e12:
        move, promised = solve_directly(matrix, slope, damping * size)
        logits = logarithms(state.model) + move.reshape(state.model.shape)
        model = np.where(state.model > 0, softmax(problem, logits), 0.0)
        moved = evaluate(problem, model)
        if moved.objective < state.objective:
            gain = (state.objective - moved.objective) / promised if promised > 0 else 0.5
            damping *= max(1 / 3, 1 - (2 * gain - 1) ** 3) if gain < 2 else 1 / 3
            return replace(moved, before=state.before, after=state.after, damping=damping)
        damping, growth = damping * growth, growth * 2
    return state


def lift(problem: Problem, state: KlState) -> KlState:
    """Give room again to probabilities that were given up too early, if that lowers the objective.

    EM multiplies them by 1.0001 at a time, and logits of nearly nothing hardly count.
    """
    room = lost_room(problem, state)
    if not room.any():
        return state
    lifted = evaluate(problem, normalise(problem, np.maximum(state.model, room)))
    if not lifted.objective < state.objective:
        return state
    return replace(lifted, before=state.before, after=state.after, damping=state.damping)


def lost_room(problem: Problem, state: KlState) -> Array:
    """How far each lost probability would go by itself; zero for all others.

    At a minimum the ascent of a column's probabilities is the same, that of zeros at most that.
    """
    level = column_sums(problem, state.model * state.ascent)
    lost = (state.model < LOST) & (state.ascent > (1 + 1e-6) * level)
    if not lost.any():
        return np.zeros_like(state.model)
    full = linear_information(problem, state.weights, state.factors)
    step = (state.ascent - level) / np.maximum(np.einsum("ifif->if", full), TINY)
    return np.where(lost & (state.model < ROOM * step), np.minimum(step, ROOM), 0.0)


#: Probabilities of a start are held above this: zeros could never leave. But no further than
#: the start's own error: what fits to 1e-9 has its zeros right to about that.
FLOOR = 1e-4

#: EM crawls when a step lowers the objective by less than this share of it.
CRAWL = 0.03

#: Anderson mixing moves a probability by no more than this factor, up or down.
REACH = 100.0


@dataclass(frozen=True)
class Kl:
    """Kullback-Leibler divergence of the tables from the model's, by accelerated EM.

    Parameters
    ----------
    memory : int
        Steps that Anderson acceleration looks back on; 0 turns it off.
    dense_limit : int
        Up to so many parameters EM is helped on by scoring steps; 0 turns them off.
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

    def init(self, problem: Problem, weights: Array, factors: Array) -> KlState:
        """State at a first model, its probabilities held away from zero."""
        check_tables(problem)
        error = relative_error(problem, objective(problem, weights, factors))
        floor = min(FLOOR, max(error, 1e-14))
        model = np.maximum(np.vstack([weights, factors]), floor)
        return evaluate(problem, normalise(problem, model))

    def step(self, problem: Problem, state: KlState) -> KlState:
        """One step of EM, mixed with the last ones; then one of scoring if that was slow."""
        update = em(problem, state.model, state.ascent)
        kept = slice(-self.memory - 1, None) if self.memory else slice(0, 0)
        before = (*state.before, logarithms(state.model))[kept]
        after = (*state.after, logarithms(update))[kept]
        moved = evaluate(problem, mixed(problem, update, before, after)) if after[1:] else None
        if moved is None or not moved.objective < state.objective:
            if moved is not None:  # the steps looked back on misled
                before, after = (), ()
            moved = evaluate(problem, update)
        if not moved.objective < state.objective:
            return state  # rounding is all that is left
        moved = replace(moved, before=before, after=after, damping=state.damping)
        slow = state.objective - moved.objective < CRAWL * state.objective
        if not slow or moved.model.size > self.dense_limit:
            return moved
        lifted = lift(problem, moved)
        return score(problem, moved) if lifted is moved else lifted


def check_tables(problem: Problem) -> None:
    """Refuse moments and negative cells: of these no divergence can be taken."""
    if any((table < 0).any() for table in problem.tables):
        raise ValueError(
            "solver='kl' compares tables of shares, and some cells are negative (noise was added): "
            "use solver='auto', 'admm' or 'newton', which take them as they are."
        )
    if problem.moments:
        number = sum(len(moments.value) for moments in problem.moments)
        raise ValueError(
            f"solver='kl' compares tables of shares, and {number} of what is given are moments "
            "(means, covariances, ...). Leave them out, or use solver='auto', 'admm' or 'newton'."
        )


def mixed(
    problem: Problem, update: Array, before: Sequence[Array], after: Sequence[Array]
) -> Array:
    """Anderson mixing of the last steps, each probability counting by its size."""
    size = np.sqrt(np.vstack([update[:1], update[0] * update[1:]]))
    moves = (np.stack(after) - np.stack(before)) * size
    mix = mixing_shares(moves.reshape(len(after), -1))
    if mix is None:
        return update
    move = -np.tensordot(mix, np.diff(np.stack(after), axis=0), 1)
    reach = np.log(REACH)
    return normalise(problem, update * np.exp(np.clip(move, -reach, reach)))
