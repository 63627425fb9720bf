"""ADMM sweeps over the tables of all triples of variables.

The twin stores the tables pair by pair, (j, k) with j < k: a matrix of I_j I_k rows, whose columns
are the levels of all variables after k. Two products with each matrix serve all three modes. When
variable n is updated, the factors before it are new and those after it old;

- ``S = sum_l X_nkl A_l`` is the first mode's sum, and, with the new A_n, the second mode's of k;
- ``X_jn^T (A_j o A_n)``, both new, is the last mode's of all variables after n.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from rejoint.kernels.backend import Array, compiled
from rejoint.kernels.simplex import damped_inverse, numpy_admm_steps
from rejoint.text import plural


def pack_triples(tables: Sequence[Array], levels: Sequence[int]) -> Array:
    """Arrange tables of all triples, in lexical order, as the kernels need them: pair after pair.

    A pair is a matrix of its cells by the levels of all variables after it.

    Examples
    --------
    >>> pack_triples([np.arange(8.0).reshape(2, 2, 2)], [2, 2, 2])
    array([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    ordered, size = iter(tables), len(levels)
    parts = []
    for j in range(size):
        for k in range(j + 1, size - 1):
            beside = [
                np.reshape(next(ordered), (levels[j] * levels[k], levels[n]))
                for n in range(k + 1, size)
            ]
            parts.append(np.concatenate(beside, axis=1).ravel())
    return np.concatenate(parts)


def triples_sweep(
    packed: Array,
    levels: Sequence[int],
    weight: float,
    model: tuple[Array, Array],
    duals: tuple[Array, Array],
    steps: int,
) -> tuple[tuple[Array, Array], tuple[Array, Array], float]:
    """Update each factor by ADMM, given the others as they are by then; then the weights.

    Parameters
    ----------
    packed : array
        The tables, by :func:`pack_triples`.
    levels : sequence of N int
        Number of levels of each variable.
    weight : float
        Weight of each table.
    model : arrays (F,) and (L, F)
        Weights of the classes, and factors of all variables, stacked.
    duals : arrays (F,) and (L, F)
        Their duals.
    steps : int
        ADMM steps on each factor; twice as many on the weights.

    Returns
    -------
    model, duals : tuples of arrays
        After the sweep.
    value : float
        Half the sum of squared residuals, minus that of the tables themselves.

    Examples
    --------
    >>> even = np.ones(1), np.full((6, 1), 0.5)
    >>> table = pack_triples([np.full((2, 2, 2), 0.125)], [2, 2, 2])
    >>> moved = triples_sweep(table, [2, 2, 2], 1.0, even, (0 * even[0], 0 * even[1]), 1)
    >>> round(moved[2], 9)
    -0.0625
    """
    weights, factors = (np.array(x, dtype=np.float64, order="C") for x in model)
    first, others = (np.array(x, dtype=np.float64, order="C") for x in duals)
    shape = check_triples(packed, levels, weights, factors)
    if others.shape != factors.shape or first.shape != weights.shape:
        raise ValueError(f"Duals have shapes {first.shape} and {others.shape}, the model others.")
    rest = (weight, weights, first, factors, others, steps)
    if compiled is None:
        value = numpy_triples_sweep(packed, levels, *rest)
    else:
        value = float(compiled.triples_sweep(packed, shape, *rest))
    return (weights, factors), (first, others), value


def triples_value(
    packed: Array, levels: Sequence[int], weight: float, weights: Array, factors: Array
) -> float:
    """Return half the sum of squared residuals, minus that of the tables themselves.

    Examples
    --------
    >>> table = pack_triples([np.full((2, 2, 2), 0.125)], [2, 2, 2])
    >>> triples_value(table, [2, 2, 2], 1.0, np.ones(1), np.full((6, 1), 0.5))
    -0.0625
    """
    weights, factors = (np.ascontiguousarray(x, dtype=np.float64) for x in (weights, factors))
    shape = check_triples(packed, levels, weights, factors)
    if compiled is None:
        return numpy_triples_value(packed, levels, weight, weights, factors)
    return float(compiled.triples_value(packed, shape, weight, weights, factors))


def check_triples(
    packed: Array, levels: Sequence[int], weights: Array, factors: Array
) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return levels as the kernels take them, once all sizes fit."""
    shape = np.asarray(levels, dtype=np.int64)
    sizes = shape.astype(object)  # e_3 in whole numbers
    cells = (sizes.sum() ** 3 - 3 * sizes.sum() * (sizes**2).sum() + 2 * (sizes**3).sum()) // 6
    if packed.shape != (cells,) or packed.dtype != np.float64 or not packed.flags.c_contiguous:
        raise ValueError(
            f"The triples of these levels have {plural(cells, 'cell')}, got {packed.shape}."
        )
    if factors.shape != (int(shape.sum()), len(weights)) or not len(weights):
        raise ValueError(f"factors have shape {factors.shape}, which does not fit the levels.")
    return shape


class _TripleSums:
    """The tables as matrices, and the sums over them that a sweep keeps up to date."""

    def __init__(self, packed: Array, levels: Sequence[int], factors: Array) -> None:
        ends = np.concatenate([[0], np.cumsum(levels)]).tolist()
        self.rows = [slice(start, stop) for start, stop in pairwise(ends)]
        self.factors = factors  # (L, F), those of the caller
        self.middle, self.last = np.zeros_like(factors), np.zeros_like(factors)
        self.first = np.zeros((0, 0, 0))  # S of the variable in turn, for all k: (I_n, L_after, F)
        self.pairs: dict[tuple[int, int], Array] = {}
        at = 0
        for j in range(len(levels)):
            for k in range(j + 1, len(levels)):
                shape = (levels[j] * levels[k], ends[-1] - ends[k + 1])
                self.pairs[j, k] = packed[at : at + shape[0] * shape[1]].reshape(shape)
                at += shape[0] * shape[1]

    def target(self, n: int) -> Array:
        """Return V_n without the weights, (I_n, F); factors before n are new."""
        mine = self.rows[n]
        size, rank = mine.stop - mine.start, self.factors.shape[1]
        after = self.factors[mine.stop :]
        self.first = np.zeros((size, len(after), rank))
        for k in range(n + 1, len(self.rows) - 1):
            begin, end = self.rows[k].start - mine.stop, self.rows[k].stop - mine.stop
            sums = self.pairs[n, k] @ after[end:]
            self.first[:, begin:end] = sums.reshape(size, end - begin, rank)
        found = np.einsum("ikf,kf->if", self.first, after)
        return np.asarray(found + self.middle[mine] + self.last[mine])

    def update(self, n: int) -> None:
        """Use a new factor n in the sums."""
        mine = self.rows[n]
        self.middle[mine.stop :] += np.einsum("ikf,if->kf", self.first, self.factors[mine])
        for j in range(n):
            self.finish(j, n)

    def finish(self, j: int, k: int) -> None:
        """Add the last mode's sum of a pair whose factors are up to date."""
        a, b = self.factors[self.rows[j]], self.factors[self.rows[k]]
        rows = (a[:, None] * b).reshape(-1, a.shape[1])
        self.last[self.rows[k].stop :] += self.pairs[j, k].T @ rows

    def total(self) -> Array:
        """Return V of the weights, once all pairs are finished."""
        return np.asarray((self.last * self.factors).sum(axis=0))


def elementary(products: Sequence[Array], order: int) -> Array:
    """Return the sum of products over all subsets of ``order`` matrices, entry by entry.

    Examples
    --------
    >>> elementary([np.array([2.0]), np.array([3.0]), np.array([5.0])], 2)
    array([31.])
    """
    sums = [np.ones_like(products[0])] + [np.zeros_like(products[0]) for _ in range(order)]
    for product in products:
        for d in range(order, 0, -1):
            sums[d] += product * sums[d - 1]
    return sums[order]


def numpy_triples_sweep(
    packed: Array,
    levels: Sequence[int],
    weight: float,
    weights: Array,
    weights_dual: Array,
    factors: Array,
    dual: Array,
    steps: int,
) -> float:
    """NumPy version of :func:`triples_sweep`: updates arrays in place, returns the objective."""
    triples = _TripleSums(packed, levels, factors)
    products = [factors[rows].T @ factors[rows] for rows in triples.rows]
    outer = weight * np.outer(weights, weights)
    for n, rows in enumerate(triples.rows):
        target = weight * weights * triples.target(n)
        gram = outer * elementary(products[:n] + products[n + 1 :], 2)
        inverse, rho = damped_inverse(gram)
        factors[rows], dual[rows] = numpy_admm_steps(
            inverse, target, factors[rows], dual[rows], rho, steps, False
        )
        products[n] = factors[rows].T @ factors[rows]
        triples.update(n)
    target, gram = weight * triples.total(), weight * elementary(products, 3)
    inverse, rho = damped_inverse(gram)
    weights[None], weights_dual[None] = numpy_admm_steps(
        inverse, target[None], weights[None], weights_dual[None], rho, 2 * steps, True
    )
    return half_square(gram, target, weights)


def numpy_triples_value(
    packed: Array, levels: Sequence[int], weight: float, weights: Array, factors: Array
) -> float:
    """NumPy version of :func:`triples_value`."""
    triples = _TripleSums(packed, levels, factors)
    for j, k in triples.pairs:
        triples.finish(j, k)
    products = [factors[rows].T @ factors[rows] for rows in triples.rows]
    return half_square(weight * elementary(products, 3), weight * triples.total(), weights)


def half_square(gram: Array, target: Array, weights: Array) -> float:
    """Return ``w G w/2 - v w``."""
    return float(weights @ (0.5 * gram @ weights - target))
