"""The Fisher information of tables about weights and factors.

It is the curvature of the Kullback-Leibler objective where the model meets the tables,
``sum_S omega_S J_S^T diag(1 / Xhat_S) J_S``. With ``R = omega / Xhat`` and ``K`` the Khatri-Rao
product of the variables of ``S`` other than n and m, all its blocks come from

    W_nm[i, j, f, g] = sum_S sum_rest R_S[i, j, rest] K[rest, f] K[rest, g]

and the same for a single n: they are the blocks of ``curvature``, whose sums of Gram matrices
now depend on the cells i and j.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from rejoint.factorization.curvature import pull
from rejoint.factorization.divergence import TINY
from rejoint.factorization.problem import Array, Problem, cell_rows
from rejoint.factorization.unfolding import khatri_rao

Rest = tuple[int, ...]


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
    single = np.zeros((size, rank, rank))
    for subset, omega in zip(problem.subsets, problem.weight, strict=True):
        shares = khatri_rao(factors, cell_rows(problem, subset)) @ weights
        inverse = omega / np.maximum(shares, TINY).reshape([problem.levels[n] for n in subset])
        for axes in combinations(range(len(subset)), 2):
            rows = [problem.rows(subset[axis]) for axis in axes]
            add_pair(full[1:, :, 1:], rows, rest_sum(problem, factors, subset, inverse, axes))
        for axis, n in enumerate(subset):
            one = rest_sum(problem, factors, subset, inverse, (axis,))
            single[problem.rows(n)] += one
            if axis == 0:  # each table once
                mine = factors[problem.rows(n)]
                full[0, :, 0] += np.einsum("ifg,if,ig->fg", one, mine, mine)
    body, border = full[1:, :, 1:], factors[:, :, None] * single
    scale_pairs(body, weights, factors)
    body[np.arange(size), :, np.arange(size)] += np.outer(weights, weights) * single
    full[0, :, 1:] = (border * weights).transpose(1, 0, 2)
    full[1:, :, 0] = (border * weights).transpose(0, 2, 1)
    return full


def rest_sum(problem: Problem, factors: Array, subset: Rest, inverse: Array, axes: Rest) -> Array:
    """``sum_rest R[axes, rest] K[rest, f] K[rest, g]`` of one table, (.., F, F)."""
    rank = factors.shape[1]
    rest = [n for axis, n in enumerate(subset) if axis not in axes]
    front = np.moveaxis(inverse, axes, range(len(axes)))
    shape = front.shape[: len(axes)]
    product = khatri_rao(factors, cell_rows(problem, rest))
    outer = (product[:, :, None] * product[:, None, :]).reshape(-1, rank**2)
    summed: Array = front.reshape(int(np.prod(shape)), -1) @ outer
    return summed.reshape(*shape, rank, rank)


def add_pair(body: Array, rows: Sequence[slice], pair: Array) -> None:
    """Put ``W_nm[i, j, f, g]`` at (n i f), (m j g) and at its mirror image."""
    n, m = rows
    block = pair.transpose(0, 2, 1, 3)
    body[n, :, m] += block
    body[m, :, n] += block.transpose(2, 3, 0, 1)


def scale_pairs(body: Array, weights: Array, factors: Array) -> None:
    """Multiply (n i f), (m j g) by ``A_m[j, f] w_f A_n[i, g] w_g``."""
    scaled = factors * weights
    body *= scaled.T[None, :, :, None]
    body *= scaled[:, None, None, :]
