"""The Kullback-Leibler divergence of tables from a model's, and the ratios its updates need.

A cell adds ``x log(x/m) - x + m``, which is never negative. Near a perfect fit that is the
difference of numbers 1e16 times its size, so it is computed as ``x (d - log(1 + d))`` with
``d = (m - x) / x``, by its series where ``d`` is small.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: A model's cell counts as at least this, so that a cell it excludes costs much but not
#: infinitely much, and no division overflows.
TINY = 1e-290

#: Below this the series is exact to rounding, above it the logarithm is to 1e-12.
SMALL = 1e-3


def ratios(table: Array, model: Array) -> Array:
    """``x / m`` of every cell, with ``m`` held above zero; overwrites ``model``."""
    np.maximum(model, TINY, out=model)
    np.divide(table, model, out=model)
    return model


def divergence(table: Array, model: Array, weight: Array | float = 1.0) -> float:
    """``sum weight (x log(x/m) - x + m)`` over all cells.

    Examples
    --------
    >>> import numpy as np
    >>> value = divergence(np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.5, 0.25]))
    >>> round(float(value / np.log(2)), 12)
    0.5
    """
    weight = np.broadcast_to(weight, table.shape)
    seen = table > TINY
    unseen = float(np.sum(model * weight, where=~seen))
    x, m = table[seen], model[seen]
    gap = (m - x) / x
    series = gap**2 * (1 / 2 - gap * (1 / 3 - gap * (1 / 4 - gap * (1 / 5 - gap / 6))))
    each = np.where(np.abs(gap) < SMALL, series, gap - np.log(np.maximum(m, TINY) / x))
    return unseen + float(np.vdot(x * each, weight[seen]))
