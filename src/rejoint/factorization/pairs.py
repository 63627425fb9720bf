"""Recovery from tables of two variables, by nonnegative factorization with anchor levels.

The tables of all pairs, side by side and one below the other, are ``A diag(w) A^T`` with the
stacked factors ``A`` (L, F): a matrix of rank F whose blocks on the diagonal, of a variable with
itself, are not known. They follow from the others: with two groups S and T of other variables,
``X_nn = X_nS (X_TS)^+ X_Tn``, and so do pairs without a table. Divided by the share of its level,
a column of the matrix is ``A q`` with the probabilities ``q`` of the classes given that level. A
level that only one class has, an anchor, gives that class's column of ``A``. Successive projection
finds the anchors: they are the corners of the simplex that holds all columns (Ibrahim and Fu 2021,
CNMF-SPA; here without a split of the variables into two halves).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from rejoint.arrays import BoolArray, FloatArray
from rejoint.factorization.algebraic import Subtables, polish_weights
from rejoint.factorization.problem import TableProblem, own_shares
from rejoint.factorization.table_policy import POLICY
from rejoint.kernels import project_columns
from rejoint.model import Model
from rejoint.solver.solver import Limits


@dataclass(frozen=True)
class PairsState:
    """The best model so far; coordinates (F, L) of the levels, and the frame (L, F) they are in."""

    model: Model
    objective: float
    coordinates: FloatArray = field(repr=False)
    frame: FloatArray = field(repr=False)
    shares: FloatArray = field(repr=False)
    trial: int = 0
    residual: float = np.inf


@dataclass(frozen=True)
class Pairs:
    """Recovery from tables of two variables by levels that only one class has.

    If tables of all pairs are exact, every class has a level, of any variable, that no other class
    has (separability), and the stacked factors of any half of the variables have rank F, then this
    is the model that they come from, and no other one of rank F has these tables. From sampled
    tables the error is of the order of their noise times the condition of the factors; of models
    that are nearly separable it is a start for the other solvers. Each step looks for anchors among
    levels that are more frequent.

    Parameters
    ----------
    limits : Limits
        When to stop: ``max_steps`` sets of levels, or a model that fits exactly.

    References
    ----------
    S. Ibrahim and X. Fu, "Recovering joint probability of discrete random variables from pairwise
    marginals", IEEE Transactions on Signal Processing 69, 2021 (arXiv 2006.16912).

    Examples
    --------
    >>> import rejoint as rj
    >>> own = [[0.5, 0.0], [0.0, 0.3], [0.5, 0.7]]  # each class has a level of its own
    >>> model = rj.LowRankPMF([0.4, 0.6], [own] * 3)
    >>> tables = rj.Marginals.from_pmf(model, order=2)
    >>> result = rj.factorize(tables, rank=2, solver=Pairs())
    >>> rj.metrics.factor_error(model, result.pmf) < 1e-12
    True
    """

    limits: Limits = field(default=Limits(max_steps=4, window=4, progress=0.0))
    name: str = field(default="pairs", init=False)
    needs = ("tables",)
    deterministic = True  # whatever the start, so that one is enough

    def init(self, problem: TableProblem, model: Model) -> PairsState:
        """Fill the matrix of all pairs and reduce it to the rank."""
        subtables = Subtables(problem)
        largest = largest_pair_rank(subtables)
        if model.rank > largest:
            raise ValueError(
                f"solver='pairs' supports at most rank {largest} with these tables, got rank "
                f"{model.rank}: half of the variables have too few levels, or too few pairs have a "
                "table. Use solver='auto' or 'admm', or a lower rank."
            )
        shares = np.concatenate(own_shares(problem))
        root = np.sqrt(np.maximum(shares, 1e-300))
        values, vectors = np.linalg.eigh(fill_pairs(subtables, model.rank, root))
        frame = vectors[:, -model.rank :]
        coordinates = values[-model.rank :, None] * frame.T / root
        return PairsState(model, problem.value(model), coordinates, root[:, None] * frame, shares)

    def step(self, problem: TableProblem, state: PairsState) -> PairsState:
        """Find anchors among levels of some share; keep the model if it fits better."""
        mean = np.repeat(1.0 / np.array(problem.levels), problem.levels)
        allowed = state.shares > POLICY.anchor_shares[state.trial % 4] * mean
        anchors = project_successively(state.coordinates * allowed, state.model.rank)
        for model in models_of_anchors(problem, state, anchors):
            value = problem.value(model)
            if value < state.objective:
                state = replace(state, model=model, objective=value)
        return replace(state, trial=state.trial + 1)


def largest_pair_rank(subtables: Subtables) -> int:
    """Largest rank for which the blocks on the diagonal follow from the tables."""
    known, free = known_pairs(subtables), np.array(subtables.problem.levels, dtype=np.intp) - 1
    bridges = [find_bridge(known, n, n) for n in range(len(free))]
    return min(1 + int(free[side].sum()) for bridge in bridges for side in bridge)


def known_pairs(subtables: Subtables) -> BoolArray:
    """Which pairs of variables have a table, (N, N)."""
    size = len(subtables.problem.levels)
    pairs = np.ndindex(size, size)
    return np.array([j != k and (j, k) in subtables for j, k in pairs]).reshape(size, size)


def find_bridge(known: BoolArray, j: int, k: int) -> tuple[list[int], list[int]]:
    """Variables beside j, and others beside k, between which all tables are there."""
    left: list[int] = []
    right: list[int] = []
    for n in range(len(known)):
        sides = [(left, right, j), (right, left, k)]
        for own, other, end in sorted(sides, key=lambda side: len(side[0])):
            if known[n, end] and known[n, other].all():
                own.append(n)
                break
    return left, right


def fill_pairs(subtables: Subtables, rank: int, root: FloatArray) -> FloatArray:
    """The matrix of all pairs (L, L), divided by the roots of the shares of rows and columns."""
    problem, known = subtables.problem, known_pairs(subtables)
    layout = problem.layout
    matrix = np.outer(root, root)  # independence, where nothing is known
    for j, k in np.argwhere(np.triu(known)).tolist():
        table = subtables.table((j, k))
        table = table / np.outer(root[layout.rows(j)], root[layout.rows(k)])
        matrix[layout.rows(j), layout.rows(k)] = table
        matrix[layout.rows(k), layout.rows(j)] = table.T
    filled = matrix.copy()
    for j, k in np.argwhere(np.triu(~known)).tolist():
        left, right = ([*map(layout.rows, side)] for side in find_bridge(known, j, k))
        if not left or not right:
            continue
        near = np.hstack([matrix[layout.rows(j), rows] for rows in left])
        far = np.vstack([matrix[rows, layout.rows(k)] for rows in right])
        between = np.vstack([np.hstack([matrix[a, b] for b in left]) for a in right])
        u, s, v = np.linalg.svd(between, full_matrices=False)
        kept = slice(min(rank, int((s > 1e-12 * s[0]).sum())))
        block = (near @ v[kept].T / s[kept]) @ (u[:, kept].T @ far)
        block = 0.5 * (block + block.T) if j == k else block
        filled[layout.rows(j), layout.rows(k)] = block
        filled[layout.rows(k), layout.rows(j)] = block.T
    return filled


def project_successively(columns: FloatArray, rank: int) -> list[int]:
    """The columns (F, L) that span the simplex of all: the longest, then the longest of the rest.

    After each choice its direction is taken out of all columns.
    """
    rest, chosen = columns.copy(), list[int]()
    for _ in range(rank):
        lengths = np.einsum("fl,fl->l", rest, rest)
        chosen.append(int(lengths.argmax()))
        direction = rest[:, chosen[-1]] / np.sqrt(max(lengths.max(), 1e-300))
        rest -= np.outer(direction, direction @ rest)
    return chosen


def models_of_anchors(
    problem: TableProblem, state: PairsState, anchors: list[int]
) -> Iterator[Model]:
    """The model whose columns are those of anchors, and the one by the classes of all levels."""
    layout, corners = problem.layout, state.coordinates[:, anchors]
    weights = np.full(len(anchors), 1.0 / len(anchors))
    columns = np.clip(state.frame @ corners, -10, 10)
    factors = {n: project_columns(part) for n, part in enumerate(layout.split(columns))}
    yield polish_weights(problem, factors, weights)
    given_level = np.linalg.lstsq(corners, state.coordinates, rcond=None)[0]
    together = project_columns(np.clip(given_level, -10, 10)).T * state.shares[:, None] + 1e-300
    factors = {n: part / part.sum(axis=0) for n, part in enumerate(layout.split(together))}
    yield polish_weights(problem, factors, together.sum(axis=0) / together.sum())
