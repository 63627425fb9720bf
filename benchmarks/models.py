"""Random models of the paper's simulations, and the Cramer-Rao bound of their joint."""

from functools import lru_cache
from itertools import combinations

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
    return record_bound(pmf, missing) / np.sqrt(records)


@lru_cache(maxsize=256)
def record_bound(pmf: rj.LowRankPMF, missing: float) -> float:
    """The bound for a single record."""
    size = len(pmf.domain)
    basis = tangent_basis(pmf)
    information = np.zeros((len(basis), len(basis)))
    for order in range(size, 0, -1):
        chance = (1 - missing) ** order * missing ** (size - order)
        for subset in combinations(range(size), order) if chance > 0 else ():
            information += chance * slope_products(pmf, subset, inverse=True)
    spread = slope_products(pmf, tuple(range(size)), inverse=False)
    covariance = np.linalg.inv(basis.T @ information @ basis)
    variance = float(np.sum((basis.T @ spread @ basis) * covariance))
    return float(np.sqrt(variance) / np.linalg.norm(pmf.to_dense()))


def slope_products(pmf: rj.LowRankPMF, subset: tuple[int, ...], *, inverse: bool) -> Array:
    """``J^T J`` of a table's cells, or ``J^T diag(1/p) J``; J in weights, then in factors.

    The slope of a cell in ``A_n[i, f]`` is zero unless it has level i: blocks of two variables
    are sums over the other axes of the table only.
    """
    rank, shape = pmf.rank, [pmf.domain.shape[n] for n in subset]
    factors = [np.asarray(pmf.factors[n]) for n in subset]
    views = [
        a.reshape([len(a) if k == n else 1 for n in range(len(shape))] + [rank])
        for k, a in enumerate(factors)
    ]
    whole = np.ones([*shape, rank])
    for view in views:
        whole = whole * view
    root = 1.0 / np.sqrt(whole @ pmf.weights) if inverse else np.ones(shape)
    whole = whole * root[..., None]
    slopes = [whole / view * pmf.weights for view in views]
    starts = rank * (1 + np.concatenate([[0], np.cumsum(pmf.domain.shape)]))
    total = np.zeros((starts[-1], starts[-1]))
    flat = whole.reshape(-1, rank)
    total[:rank, :rank] = flat.T @ flat
    for k, n in enumerate(subset):
        mine = np.moveaxis(slopes[k], k, 0).reshape(shape[k], -1, rank)
        here = slice(starts[n], starts[n + 1])
        head = np.moveaxis(whole, k, 0).reshape(shape[k], -1, rank)
        total[:rank, here] = np.einsum("irf,irg->fig", head, mine, optimize=True).reshape(rank, -1)
        total[here, :rank] = total[:rank, here].T
        for i in range(shape[k]):
            cell = slice(starts[n] + i * rank, starts[n] + (i + 1) * rank)
            total[cell, cell] = mine[i].T @ mine[i]
        for m in range(k + 1, len(subset)):
            there = slice(starts[subset[m]], starts[subset[m] + 1])
            pair = [
                np.moveaxis(slopes[v], (k, m), (0, 1)).reshape(shape[k], shape[m], -1, rank)
                for v in (k, m)
            ]
            block = np.swapaxes(pair[0], 2, 3) @ pair[1]  # (i, j, f, g)
            block = block.transpose(0, 2, 1, 3).reshape(shape[k] * rank, -1)
            total[here, there], total[there, here] = block, block.T
    return total


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
