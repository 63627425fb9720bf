"""The Fisher information of tables about weights and factors.

It is the curvature of the Kullback-Leibler objective where the model meets the tables,
``sum_S omega_S J_S^T diag(1 / Xhat_S) J_S``. With ``R = omega / Xhat`` and ``K`` the Khatri-Rao
product of the variables of ``S`` other than n and m, all its blocks come from

    W_nm[i, j, f, g] = sum_S sum_rest R_S[i, j, rest] K[rest, f] K[rest, g]

and the same for a single n: they are the blocks of ``curvature``, whose sums of Gram matrices
now depend on the cells i and j. Tables of equal shape are taken many at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.sparse import csr_array

from rejoint.factorization.curvature import pull
from rejoint.factorization.divergence import TINY
from rejoint.factorization.problem import Array, Problem, Rows
from rejoint.factorization.unfolding import khatri_rao

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
