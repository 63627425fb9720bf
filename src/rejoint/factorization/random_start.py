"""Where the iterative solvers begin."""

from collections.abc import Sequence

import numpy as np

from rejoint.factorization.problem import TableProblem
from rejoint.model import FloatArray, Model


def own_shares(problem: TableProblem) -> list[FloatArray]:
    """One-variable shares, each from the first table that holds the variable; else uniform."""
    found = [np.full(size, 1.0 / size) for size in problem.levels]
    for subset, table in zip(reversed(problem.subsets), reversed(problem.tables), strict=True):
        for axis, n in enumerate(subset):
            gone = tuple(k for k in range(len(subset)) if k != axis)
            found[n] = table.sum(axis=gone)
    return found


def random_model(problem: TableProblem, rank: int, rng: np.random.Generator) -> Model:
    """Even weights, and factor columns drawn around each variable's own shares."""
    return draw_model(own_shares(problem), rank, rng)


def draw_model(shares: Sequence[FloatArray], rank: int, rng: np.random.Generator) -> Model:
    """Even weights, and factor columns drawn around given shares."""
    # At least 0.1, so that a level that was never seen may still be drawn.
    spreads = (np.maximum(len(share) * share, 0.1) for share in shares)
    columns = [rng.dirichlet(spread, size=rank).T for spread in spreads]
    return Model.of(np.full(rank, 1.0 / rank), columns)


def mix_with_independence(problem: TableProblem, model: Model, share: float = 0.3) -> Model:
    """Mix a model with independence, to start a solver away from the walls of the simplex.

    A projected algebraic solution has many zeros that are noise; started there, solvers end in
    poor local minima.
    """
    own = np.concatenate(own_shares(problem))
    mixed = (1.0 - share) * model.factors + share * own[:, None]
    return Model(model.layout, (1.0 - share) * model.weights + share / model.rank, mixed)
