"""Smallest singular values of a Jacobian whose Gram matrix is given."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dpotrf
from scipy.sparse.linalg import eigsh

__all__ = ["RESOLVED", "Spectrum", "scaled", "spectrum"]

Array = NDArray[np.float64]

#: Up to this size all eigenvalues are computed; beyond, the smallest by inverse iteration.
DENSE = 500

#: Singular values below this share of the largest cannot be told from zero: a Gram matrix in
#: double precision has its eigenvalues, their squares, to about 1e-15.
RESOLVED = 1e-7


@dataclass(frozen=True)
class Spectrum:
    """The smallest singular value over the largest, and the direction that belongs to it."""

    smallest: float
    direction: Array


def scaled(gram: Array) -> tuple[Array, Array]:
    """The Gram matrix of columns of length one, in place, and the lengths, 1 for zero columns."""
    lengths = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
    lengths[lengths == 0.0] = 1.0
    gram /= lengths[:, None]
    gram /= lengths
    return gram, lengths


def spectrum(gram: Array) -> Spectrum:
    """Of a scaled Gram matrix; a large one is overwritten."""
    if len(gram) <= DENSE:
        values, vectors = np.linalg.eigh(gram)
        low, high, direction = values[0], values[-1], vectors[:, 0]
    else:
        high = largest(gram)
        low, direction = smallest_by_inverse(gram, high)
    return Spectrum(float(np.sqrt(max(low, 0.0) / high)), direction)


def largest(gram: Array) -> float:
    """Largest eigenvalue, to three digits."""
    start = np.ones(len(gram))
    return float(eigsh(gram, k=1, tol=1e-3, v0=start, return_eigenvectors=False)[0])


def smallest_by_inverse(gram: Array, high: float) -> tuple[float, Array]:
    """Smallest eigenvalue and its vector: Lanczos on the inverse of the matrix, shifted a little.

    The shift, at the size of rounding errors, lets a singular matrix be factored, too.
    """
    diagonal = np.diagonal(gram).copy()
    for shift in high * len(gram) ** 0.5 * np.array([4e-16, 1e-14, 1e-12]):
        np.fill_diagonal(gram, diagonal + shift)
        # .T: Fortran order without a copy. One triangle is overwritten, the other keeps the matrix.
        factor, failed = dpotrf(gram.T, lower=0, clean=0, overwrite_a=1)
        if not failed:
            value, direction = largest_of_inverse(factor)
            return 1.0 / value - float(shift), direction
        mirror(gram)
    return 0.0, np.full(len(gram), len(gram) ** -0.5)  # not a Gram matrix at all


def mirror(gram: Array) -> None:
    """Copy the upper triangle onto the lower one, which a failed factorization has spoilt."""
    for k in range(len(gram)):
        gram[k + 1 :, k] = gram[k, k + 1 :]


def largest_of_inverse(factor: Array, steps: int = 60) -> tuple[float, Array]:
    """Largest eigenvalue of the inverse of a factored matrix, to three digits, and its vector."""
    size = len(factor)
    vector = np.random.default_rng(0).standard_normal(size)
    basis, images = [vector / np.linalg.norm(vector)], []
    before, value, weights = 0.0, 0.0, np.ones(1)
    for _ in range(min(steps, size)):
        image = cho_solve((factor, False), basis[-1], check_finite=False)
        images.append(image)
        inner = np.array(basis) @ np.array(images).T
        values, vectors = np.linalg.eigh((inner + inner.T) / 2)
        before, value, weights = value, float(values[-1]), vectors[:, -1]
        if abs(value - before) <= 1e-3 * value:
            break
        rest = image.copy()
        for _ in range(2):  # twice is enough to keep the basis orthogonal
            for known in basis:
                rest -= (known @ rest) * known
        basis.append(rest / np.linalg.norm(rest))
    return value, np.array(basis[: len(weights)]).T @ weights
