"""ADMM sweeps over the tables of all triples of variables, compiled.

Their twin is the sweep of :mod:`rejoint.factorization.admm` variable by variable, which works on
tables of any order: without compiled kernels that one runs.
"""

from collections.abc import Sequence

import numpy as np

from rejoint.kernels.backend import Array, compiled
from rejoint.text import plural


def pack_triples(tables: Sequence[Array], levels: Sequence[int]) -> Array:
    """Arrange tables of all triples, in lexical order, as the kernels need them: pair after pair.

    A pair is a matrix of its cells by the levels of all variables after it.
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
    """
    weights, factors = (np.array(x, dtype=np.float64, order="C") for x in model)
    first, others = (np.array(x, dtype=np.float64, order="C") for x in duals)
    shape = check_triples(packed, levels, weights, factors)
    if others.shape != factors.shape or first.shape != weights.shape:
        raise ValueError(f"Duals have shapes {first.shape} and {others.shape}, the model others.")
    rest = (weight, weights, first, factors, others, steps)
    value = float(compiled.triples_sweep(packed, shape, *rest))
    return (weights, factors), (first, others), value


def triples_value(
    packed: Array, levels: Sequence[int], weight: float, weights: Array, factors: Array
) -> float:
    """Return half the sum of squared residuals, minus that of the tables themselves."""
    shape = check_triples(packed, levels, weights, factors)
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
