"""Credible bounds: the same question asked of every posterior draw."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.labels import plural

__all__ = ["Interval", "credible_bounds"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Interval:
    """Equal-tailed credible bounds of an answer.

    Attributes
    ----------
    low, high : ndarray
        Of the shape of the answer.
    level : float
        Probability that a pair of bounds is to hold.
    draws : int
        Posterior draws behind it: those that hold the evidence possible.

    Examples
    --------
    >>> Interval(np.array(0.1), np.array(0.2), 0.9, 40).words
    '90 % credible interval, of 40 posterior draws'
    """

    low: FloatArray
    high: FloatArray
    level: float
    draws: int

    @property
    def words(self) -> str:
        """What the bounds are, in words."""
        return (
            f"{100 * self.level:g} % credible interval, of {plural(self.draws, 'posterior draw')}"
        )


def credible_bounds(tables: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Equal-tailed bounds of each cell over the draws, which are the first axis.

    A cell that is undefined (nan) in some draws is bounded by the others.

    Examples
    --------
    >>> low, high = credible_bounds(np.array([[0.2], [0.3], [0.6]]), 0.5)
    >>> low, high
    (array([0.2]), array([0.6]))
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}; 0.9 is usual.")
    known = np.isfinite(tables)
    bounds = np.full((2, *tables.shape[1:]), np.nan)
    some = known.any(axis=0)
    # Quantiles of n draws at k / (n + 1): the next draw then falls between them as often as
    # ``level`` says, where NumPy's own, at (k - 1) / (n - 1), are too narrow for few draws.
    tails = [(1 - level) / 2, (1 + level) / 2]
    if some.any():
        cells = np.where(known, tables, np.nan)[:, some]
        bounds[:, some] = np.nanquantile(cells, tails, axis=0, method="weibull")
    return bounds[0, ...], bounds[1, ...]  # arrays, also of a single number
