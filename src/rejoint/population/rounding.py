"""Shares to whole numbers that add up: each cell its share rounded down or up."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["round_to_sum", "systematic"]

Array = NDArray[np.float64]


def round_to_sum(values: Array, total: int) -> NDArray[np.int64]:
    """Round numbers down or up so that they add up to ``total``: those nearest to the next first.

    Examples
    --------
    >>> round_to_sum(np.array([1.2, 1.7, 2.1]), 5)
    array([1, 2, 2])
    """
    values = np.maximum(values, 0.0)
    scaled = values * (total / values.sum())
    # A whole number that rounding left a hair below itself stays that number.
    down = np.floor(scaled + 1e-9)
    left = total - int(down.sum())
    order = np.argsort(-(scaled - down), kind="stable")
    down[order[:left]] += 1.0
    rounded: NDArray[np.int64] = down.astype(np.int64)
    return rounded


def systematic(values: Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """Round numbers down or up at random with the right expectation; sums of runs stay close.

    Examples
    --------
    >>> int(systematic(np.full(10, 0.5), np.random.default_rng(0)).sum())
    5
    """
    edges = np.concatenate([[0.0], np.cumsum(values)]) + rng.random()
    return np.diff(np.floor(edges)).astype(np.int64)
