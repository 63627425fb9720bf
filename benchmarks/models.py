"""Random models of the paper's simulations, and the Cramer-Rao bound of their joint."""

from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

import rejoint as rj

Array = NDArray[np.float64]


def random_pmf(
    levels: list[int], rank: int, rng: np.random.Generator, least_weight: float = 0.0
) -> rj.LowRankPMF:
    """Weights and factors uniform on [0, 1], columns then scaled to sum to one (section VI-A)."""
    while True:
        weights = rng.random(rank)
        weights /= weights.sum()
        if weights.min() >= least_weight:
            break
    factors = [rng.random((size, rank)) for size in levels]
    return rj.LowRankPMF(weights, [a / a.sum(axis=0) for a in factors])


def cramer_rao(pmf: rj.LowRankPMF, records: int, missing: float = 0.0) -> float:
    """Least RMS error of the joint, relative to its norm, of an unbiased estimate.

    ``missing`` is the rate at which cells are removed, each by itself; the information of a
    record is then the mean over the sets of variables that it may hold.
    """
    size = len(pmf.domain)
    basis = tangent_basis(pmf)
    information = np.zeros((basis.shape[1], basis.shape[1]))
    for order in range(size, 0, -1):
        chance = (1 - missing) ** order * missing ** (size - order)
        for subset in combinations(range(size), order) if chance > 0 else ():
            slopes, probability = jacobian(pmf, subset)
            slopes = slopes @ basis
            information += chance * (slopes.T @ (slopes / probability[:, None]))
    slopes, probability = jacobian(pmf, tuple(range(size)))
    slopes = slopes @ basis
    covariance = np.linalg.inv(information)
    variance = float(np.sum((slopes.T @ slopes) * covariance)) / records
    return float(np.sqrt(variance) / np.linalg.norm(probability))


def jacobian(pmf: rj.LowRankPMF, subset: tuple[int, ...]) -> tuple[Array, Array]:
    """Derivatives of all cells of a table in weights and factors, and the cells themselves."""
    shape = pmf.domain.shape
    cells = np.array(list(product(*(range(shape[n]) for n in subset))))
    rows = {n: np.asarray(pmf.factors[n])[cells[:, k]] for k, n in enumerate(subset)}
    whole = np.prod(list(rows.values()), axis=0)
    blocks = [whole]
    for n, size in enumerate(shape):
        block = np.zeros((len(cells), size, pmf.rank))
        if n in subset:
            others = [rows[m] for m in subset if m != n]
            rest = np.prod(others, axis=0) * pmf.weights if others else pmf.weights
            block[np.arange(len(cells)), cells[:, subset.index(n)]] = rest
        blocks.append(block.reshape(len(cells), -1))
    return np.hstack(blocks), whole @ pmf.weights


def tangent_basis(pmf: rj.LowRankPMF) -> Array:
    """Directions that keep every column summing to one: an orthonormal basis for each."""
    rank = pmf.rank
    blocks = [sum_free(rank)]
    for size in pmf.domain.shape:
        blocks.append(np.kron(sum_free(size), np.eye(rank)))
    height, width = (sum(b.shape[k] for b in blocks) for k in (0, 1))
    basis = np.zeros((height, width))
    i = j = 0
    for block in blocks:
        basis[i : i + block.shape[0], j : j + block.shape[1]] = block
        i, j = i + block.shape[0], j + block.shape[1]
    return basis


def sum_free(size: int) -> Array:
    """Orthonormal basis of the vectors of length ``size`` that sum to zero."""
    return np.linalg.svd(np.ones((1, size)))[2][1:].T
