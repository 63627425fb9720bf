"""The two constrained least-squares updates of the paper, by ADMM.

The appendix prints the projection as ``P(A - Ahat^T + U)``; with the dual update as printed,
``U += A - Ahat^T``, the right step is ``P(Ahat^T - U)``, for the weights too. It leaves ``rho``
open: the geometric mean of the extreme eigenvalues of ``G`` (the choice that is optimal for
quadratic programs) converges where ``trace(G)/F`` crawls, since the Gram matrix of nonnegative
columns has one large eigenvalue and many small ones.
"""

import numpy as np

from rejoint.factorization.problem import Array
from rejoint.factorization.simplex import project_columns


def step_size(eigenvalues: Array) -> float:
    """``rho``: geometric mean of the extreme eigenvalues, the smallest held above 1e-10."""
    top = max(float(eigenvalues[-1]), np.finfo(float).tiny)
    return float(np.sqrt(max(float(eigenvalues[0]), 1e-10 * top) * top))


def factor_update(
    gram: Array, target: Array, factor: Array, dual: Array, steps: int
) -> tuple[Array, Array]:
    """Minimise ``tr(A G A^T)/2 - <A, V>`` over columns on the simplex, A and V being (I, F)."""
    values, vectors = np.linalg.eigh(gram)
    rho = step_size(values)
    inverse = (vectors / (np.maximum(values, 0.0) + rho)) @ vectors.T
    for _ in range(steps):
        free = (target + rho * (factor + dual)) @ inverse
        factor = project_columns(free - dual)
        dual = dual + factor - free
    return factor, dual


def weights_update(
    gram: Array, target: Array, weights: Array, dual: Array, steps: int
) -> tuple[Array, Array]:
    """Minimise ``w G w/2 - v w`` over the simplex, which here runs along F."""
    values, vectors = np.linalg.eigh(gram)
    rho = step_size(values)
    inverse = (vectors / (np.maximum(values, 0.0) + rho)) @ vectors.T
    for _ in range(steps):
        free = inverse @ (target + rho * (weights + dual))
        weights = project_columns((free - dual)[:, None])[:, 0]
        dual = dual + weights - free
    return weights, dual
