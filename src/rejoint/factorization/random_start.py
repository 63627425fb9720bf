"""Where the iterative solvers begin."""

from collections.abc import Sequence

import numpy as np

from rejoint.factorization.problem import Array, Problem


def own_marginals(problem: Problem) -> list[Array]:
    """One-variable shares, each from the first table that holds the variable; else uniform."""
    found = [np.full(size, 1.0 / size) for size in problem.levels]
    for subset, table in zip(reversed(problem.subsets), reversed(problem.tables), strict=True):
        for axis, n in enumerate(subset):
            gone = tuple(k for k in range(len(subset)) if k != axis)
            found[n] = table.sum(axis=gone)
    return found


def random_model(problem: Problem, rank: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Even weights, and factor columns drawn around each variable's own shares."""
    return spread_model(own_marginals(problem), rank, rng)


def spread_model(
    shares: Sequence[Array], rank: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Even weights, and factor columns drawn around given shares."""
    # At least 0.1, so that a level that was never seen may still be drawn.
    spreads = (np.maximum(len(share) * share, 0.1) for share in shares)
    columns = [rng.dirichlet(spread, size=rank).T for spread in spreads]
    return np.full(rank, 1.0 / rank), np.vstack(columns)


def inward(
    problem: Problem, weights: Array, factors: Array, share: float = 0.3
) -> tuple[Array, Array]:
    """Mix a model with independence, to start a solver away from the walls of the simplex.

    A projected algebraic solution has many zeros that are noise; started there, solvers end in
    poor local minima.
    """
    own = np.concatenate(own_marginals(problem))
    mixed = (1.0 - share) * factors + share * own[:, None]
    return (1.0 - share) * weights + share / len(weights), mixed
