"""The Gauss-Newton matrix of the least-squares objective, from Gram matrices alone.

With ``M_n`` (``grams.without_each``) and ``W_nm`` (``grams.without_pairs``), its blocks in the
coordinates ``w`` and ``A`` are

    (n i f), (n i' f')   delta_ii' w_f w_f' M_n[f, f']
    (n i f), (m j f')    A_m[j, f] A_n[i, f'] w_f w_f' W_nm[f, f']
    (w f), (n i f')      A_n[i, f] w_f' M_n[f, f']
    (w f), (w f')        sum_S prod_{n in S} G_n[f, f']

and no Jacobian of the tables is formed. ``matrix`` sets it up, ``Product`` only multiplies
with it, in O(N F^2 d + L F^2). Both are in softmax coordinates: the Jacobian of a column ``p`` is
``diag(p) - p p^T``.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rejoint.factorization import grams
from rejoint.factorization.problem import Array, Problem, gram_stack


def pull(problem: Problem, model: Array, slope: Array) -> Array:
    """Apply the softmax Jacobian to each column; arrays are (1 + L, F, ...), weights first."""
    shape = (...,) + (None,) * (slope.ndim - 2)
    pulled = model[shape] * slope
    head, body = pulled[0], pulled[1:]
    sums = np.add.reduceat(body, problem.offsets[:-1], axis=0)
    head -= model[0][shape] * head.sum(axis=0)
    body -= model[1:][shape] * np.repeat(sums, problem.levels, axis=0)
    return pulled


def matrix(problem: Problem, model: Array) -> Array:
    """Gauss-Newton matrix in softmax coordinates, (P, P) with P = (1 + L) F."""
    full = linear_matrix(problem, model[0], model[1:])
    size = model.size
    for _ in range(2):
        full = pull(problem, model, full).transpose(2, 3, 0, 1)
    result = full.reshape(size, size)
    rows = moment_rows(problem, model)
    return result + rows.T @ rows


def linear_matrix(problem: Problem, weights: Array, factors: Array) -> Array:
    """The blocks above, tables only, (1 + L, F, 1 + L, F)."""
    rank, size = len(weights), len(factors)
    stack = gram_stack(problem, factors)
    single = grams.without_each(problem.families, stack)
    pairs = grams.without_pairs(problem.families, stack)
    outer = np.outer(weights, weights)
    owner = np.repeat(np.arange(len(problem.levels)), problem.levels)
    full = np.zeros((1 + size, rank, 1 + size, rank))
    for n in range(len(problem.levels)):
        rows = problem.rows(n)
        block = full[1 + rows.start : 1 + rows.stop]
        cross = (outer * pairs[n])[owner] * factors[:, :, None]  # (r, f, f')
        np.multiply(
            cross.transpose(1, 0, 2)[None],
            factors[rows][:, None, None, :],
            out=block[:, :, 1:, :],
        )
        for i in range(rows.start, rows.stop):
            full[1 + i, :, 1 + i, :] += outer * single[n]
        border = np.einsum("if,fg->fig", factors[rows], single[n] * weights)
        full[0, :, 1 + rows.start : 1 + rows.stop, :] = border
        block[:, :, 0, :] = border.transpose(1, 2, 0)
    full[0, :, 0, :] = grams.whole(problem.families, stack)
    return full


def moment_rows(problem: Problem, model: Array) -> Array:
    """Jacobian of the weighted moments in softmax coordinates, (K, P)."""
    weights, factors = model[0], model[1:]
    parts = [np.zeros((0, model.size))]
    for moments in problem.moments:
        sides = moments.projections(factors)
        rows = np.zeros((len(sides), *model.shape))
        rows[:, 0] = np.prod(sides, axis=1)
        for slot in range(moments.family.order):
            others = np.prod(np.delete(sides, slot, axis=1), axis=1) * weights
            rows[:, 1:] += moments.vectors[:, slot, :, None] * others[:, None, :]
        rows *= np.sqrt(moments.family.weight)[:, None, None]
        parts.append(pull(problem, model, rows.transpose(1, 2, 0)).reshape(model.size, -1).T)
    return np.concatenate(parts)


@dataclass(frozen=True)
class Product:
    """Products of the same matrix with vectors, and its diagonal, without forming it."""

    problem: Problem
    model: Array

    @cached_property
    def stack(self) -> Array:
        """``G_n``."""
        return gram_stack(self.problem, self.model[1:])

    @cached_property
    def single(self) -> Array:
        """``M_n``."""
        return grams.without_each(self.problem.families, self.stack)

    @cached_property
    def whole(self) -> Array:
        """The block of the weights."""
        return grams.whole(self.problem.families, self.stack)

    @cached_property
    def rows(self) -> Array:
        """Jacobian of the moments."""
        return moment_rows(self.problem, self.model)

    def __call__(self, vector: Array) -> Array:
        """Multiply with a vector in softmax coordinates, (P,)."""
        problem, weights, factors = self.problem, self.model[0], self.model[1:]
        direction = pull(problem, self.model, vector.reshape(self.model.shape))
        slices = [problem.rows(n) for n in range(len(problem.levels))]
        # C_n[f, f'] = (A_n^T dA_n)[f, f']
        turns = np.stack([factors[rows].T @ direction[1:][rows] for rows in slices])
        bent = grams.without_each_along(problem.families, self.stack, turns)
        out = np.empty_like(self.model)
        out[0] = self.whole @ direction[0] + np.einsum("nfg,nfg,g->f", self.single, turns, weights)
        for n, rows in enumerate(slices):
            straight = direction[1:][rows] * weights + factors[rows] * direction[0]
            out[1:][rows] = straight @ self.single[n] + (factors[rows] * weights) @ bent[n].T
        out[1:] *= weights
        return pull(problem, self.model, out).ravel() + self.rows.T @ (self.rows @ vector)

    @cached_property
    def diagonal(self) -> Array:
        """Diagonal of the matrix without its off-diagonal blocks' part, for preconditioning."""
        weights, factors = self.model[0], self.model[1:]
        square = weights**2 * np.einsum("nff->nf", self.single)
        square = np.repeat(square, self.problem.levels, axis=0)
        sums = np.add.reduceat(factors**2, self.problem.offsets[:-1])
        spread = 1.0 - 2.0 * factors + np.repeat(sums, self.problem.levels, axis=0)
        head = weights**2 * np.einsum("ff->f", self.whole)
        tables = np.concatenate([head, (factors**2 * spread * square).ravel()])
        moments: Array = np.einsum("kp,kp->p", self.rows, self.rows)
        return tables + moments
