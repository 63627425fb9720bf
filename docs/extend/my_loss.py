"""A loss to copy: the squared Hellinger distance of tables."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: A model's cell counts as at least this, so that no division overflows.
TINY = 1e-100


@dataclass(frozen=True)
class Hellinger:
    """``2 (sqrt(x) - sqrt(m))^2``, summed over the cells: ``x`` of the table, ``m`` of the model.

    Large errors of small cells count for less than under the Kullback-Leibler divergence.
    """

    name: str = "hellinger"

    def value(self, table: Array, model: Array, weight: Array | float) -> float:
        """Sum over all cells, each times its weight."""
        return 2.0 * float(np.sum(weight * (np.sqrt(table) - np.sqrt(model)) ** 2))

    def slope(self, table: Array, model: Array) -> Array:
        """Derivative in ``m`` of each cell."""
        return np.asarray(2.0 - 2.0 * np.sqrt(table / np.maximum(model, TINY)))

    def curvature(self, table: Array, model: Array) -> Array:
        """Second derivative where ``x = m``, which is positive everywhere."""
        return np.asarray(1.0 / np.maximum(model, TINY))

    def error(self, objective: float, scale: float) -> float:
        """Bound on ``||X - Xhat|| / ||X||``, where ``scale`` is ``||X||^2``.

        ``|x - m| = |sqrt(x) - sqrt(m)| (sqrt(x) + sqrt(m))``, and no share is above one, so that
        ``(x - m)^2`` is at most twice the loss.
        """
        return float(np.sqrt(2.0 * max(objective, 0.0) / scale))

    def check(self, problem: Any) -> None:
        """Refuse tables with negative cells, which have no square root."""
        if any((table < 0).any() for table in problem.tables):
            raise ValueError("loss='hellinger' compares shares, and some cells are negative.")
