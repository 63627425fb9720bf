"""Curvature of any loss of tables: the Fisher information and its like.

The curvature of ``sum_S omega_S loss(X_S, Xhat_S)`` where the model meets the tables is
``sum_S omega_S J_S^T diag(h_S) J_S`` with the curvature ``h`` of each cell; for the
Kullback-Leibler divergence, ``h = 1 / Xhat``, it is the Fisher information. With ``R = omega h``
and ``K`` the Khatri-Rao product of the variables of ``S`` other than n and m, its blocks come from

    W_nm[i, j, f, g] = sum_S sum_rest R_S[i, j, rest] K[rest, f] K[rest, g]

and the same for a single n: they are the blocks in ``newton``, whose sums of Gram matrices now
depend on the cells i and j. Tables of equal shape are taken many at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from rejoint.factorization.problem import TableProblem
from rejoint.factorization.unfolding import Rows, khatri_rao
from rejoint.model import FloatArray, Model

#: Numbers handled at a time: bounds memory at about 16 MB for each array.
CHUNK_NUMBERS = 2_000_000


def information(problem: TableProblem, model: Model) -> FloatArray:
    """Curvature in weights and factors, (1 + L, F, 1 + L, F)."""
    weights, factors, rows = model.weights, model.factors, problem.layout.rows
    loss: Any = problem.loss  # with a curvature, as solvers declare in needs
    rank, size = len(weights), len(factors)
    full = np.zeros((1 + size, rank, 1 + size, rank))
    body, single = full[1:, :, 1:], np.zeros((size, rank, rank))
    for batch in batches(problem, rank):
        cells = loss.curvature(batch.tables, batch.shares(model))
        cells = cells * batch.weight.reshape(-1, *[1] * len(batch.shape))
        for axes in combinations(range(len(batch.shape)), 2):
            for (n, m), pair in batch.rest_sums(cells, factors, axes):
                block = pair.transpose(0, 2, 1, 3)
                body[rows(n), :, rows(m)] += block
                body[rows(m), :, rows(n)] += block.transpose(2, 3, 0, 1)
        for axis in range(len(batch.shape)):
            for (n,), one in batch.rest_sums(cells, factors, (axis,)):
                single[rows(n)] += one
                if axis == 0:  # each table once
                    mine = factors[rows(n)]
                    full[0, :, 0] += np.sum(one * mine[:, :, None] * mine[:, None, :], axis=0)
    border = factors[:, :, None] * single * weights
    body *= (factors * weights).T[None, :, :, None]
    body *= (factors * weights)[:, None, None, :]
    body[np.arange(size), :, np.arange(size)] += np.outer(weights, weights) * single
    full[0, :, 1:], full[1:, :, 0] = border.transpose(1, 0, 2), border.transpose(0, 2, 1)
    return full


@dataclass(frozen=True)
class TableBatch:
    """Tables of one shape (G, ..): variables (G, d), where these begin (G, d), weights (G,)."""

    tables: FloatArray
    members: Rows
    offsets: Rows
    weight: FloatArray

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of each table."""
        return self.tables.shape[1:]

    def rows(self, axes: Sequence[int]) -> Rows:
        """Stacked rows (d, G * cells) of the cells over some axes, table after table."""
        shape = [self.shape[axis] for axis in axes]
        count = int(np.prod(shape))
        grid = np.indices(shape, dtype=np.intp).reshape(len(shape), 1, count)
        rows = self.offsets.T[list(axes)][:, :, None] + grid
        return rows.reshape(len(shape), len(self.weight) * count)

    def shares(self, model: Model) -> FloatArray:
        """The model's shares of all cells, (G, ..)."""
        cells = khatri_rao(model.factors, self.rows(range(len(self.shape)))) @ model.weights
        return cells.reshape(-1, *self.shape)

    def rest_sums(
        self, cells: FloatArray, factors: FloatArray, axes: tuple[int, ...]
    ) -> Iterator[tuple[tuple[int, ...], FloatArray]]:
        """``sum_rest R[axes, rest] K[rest, f] K[rest, g]``, added up for each set of variables."""
        rank, count = factors.shape[1], len(self.weight)
        rest = [axis for axis in range(len(self.shape)) if axis not in axes]
        front = np.moveaxis(cells, [1 + axis for axis in axes], range(1, 1 + len(axes)))
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


def batches(problem: TableProblem, rank: int) -> Iterator[TableBatch]:
    """The tables grouped by shape, some at a time."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for i, table in enumerate(problem.tables):
        groups.setdefault(table.shape, []).append(i)
    for shape, tables in groups.items():
        step = max(1, CHUNK_NUMBERS // (int(np.prod(shape)) * rank**2))
        for start in range(0, len(tables), step):
            some = tables[start : start + step]
            members = np.array([problem.subsets[i] for i in some], dtype=np.intp)
            yield TableBatch(
                np.stack([problem.tables[i] for i in some]),
                members,
                problem.layout.offsets[members],
                problem.weight[some],
            )
