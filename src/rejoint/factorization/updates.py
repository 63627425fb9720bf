"""The two constrained least-squares updates of the paper, by ADMM.

The appendix prints the projection as ``P(A - Ahat^T + U)``; with the dual update as printed,
``U += A - Ahat^T``, the right step is ``P(Ahat^T - U)``, for the weights too. It leaves ``rho``
open: the geometric mean of the extreme eigenvalues of ``G`` (the choice that is optimal for
quadratic programs) converges where ``trace(G)/F`` crawls, since the Gram matrix of nonnegative
columns has one large eigenvalue and many small ones.
"""

from rejoint import kernels
from rejoint.factorization.problem import Array
from rejoint.kernels import damped_inverse


def factor_update(
    gram: Array, target: Array, factor: Array, dual: Array, steps: int
) -> tuple[Array, Array]:
    """Minimise ``tr(A G A^T)/2 - <A, V>`` over columns on the simplex, A and V being (I, F)."""
    inverse, rho = damped_inverse(gram)
    return kernels.admm_steps(inverse, target, factor, dual, rho, steps)


def weights_update(
    gram: Array, target: Array, weights: Array, dual: Array, steps: int
) -> tuple[Array, Array]:
    """Minimise ``w G w/2 - v w`` over the simplex, which here runs along F."""
    inverse, rho = damped_inverse(gram)
    rows = (target[None], weights[None], dual[None])
    found, dual = kernels.admm_steps(inverse, *rows, rho, steps, along_rows=True)
    return found[0], dual[0]
