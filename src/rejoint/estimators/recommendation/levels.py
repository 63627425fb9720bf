"""Levels of ratings: which there are, what they are worth, which one a number means."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoint.remarks import remark

__all__ = ["RatingLevels", "find_levels"]

Array = NDArray[np.float64]

#: Distinct ratings that are kept as levels; more are binned, into so many.
MOST, BINS = 20, 10


@dataclass(frozen=True)
class RatingLevels:
    """What each level is worth, lowest first; edges between them where ratings were binned."""

    values: Array
    edges: Array | None = None
    half_up: bool = False
    implicit: bool = False

    def encode(self, ratings: Array) -> NDArray[np.intp]:
        """Level of each rating, -1 if it is none."""
        ratings = adjusted(np.asarray(ratings, dtype=np.float64), self.half_up, self.implicit)
        if self.edges is not None:
            return np.searchsorted(self.edges, ratings, side="right")
        places = np.searchsorted(self.values, ratings).clip(0, len(self.values) - 1)
        return np.where(self.values[places] == ratings, places, -1)

    def code(self, rating: float, item: object) -> int:
        """Level of one rating; an error if there is none."""
        found = int(self.encode(np.array([rating]))[0])
        if found < 0:
            raise ValueError(f"Item {item!r}: rating {rating:g} is not among {self.words}.")
        return found

    @property
    def words(self) -> str:
        """The levels, for a message."""
        return ", ".join(f"{value:g}" for value in self.values)

    def at_least(self, threshold: float | None) -> int:
        """First level that counts as liked: by default the lowest in the top 30 % of the scale."""
        if threshold is None:
            low, high = self.values[0], self.values[-1]
            threshold = float(low + 0.7 * (high - low) - 1e-9)
        found = int(np.searchsorted(self.values, threshold))
        if found == len(self.values):
            raise ValueError(
                f"threshold={threshold!r} is above the highest rating, {self.values[-1]:g}."
            )
        return found


def adjusted(ratings: Array, half_up: bool, implicit: bool) -> Array:
    """Ratings as levels see them."""
    if implicit:
        return np.asarray(ratings != 0.0, dtype=np.float64)
    return np.floor(ratings + 0.5) if half_up else ratings


def find_levels(ratings: Array, *, half_up: bool, implicit: bool) -> RatingLevels:
    """Levels of the ratings that are there.

    Examples
    --------
    >>> find_levels(np.array([3.5, 4.0, 0.5]), half_up=True, implicit=False).values
    array([1., 4.])
    """
    if implicit:
        return RatingLevels(np.array([0.0, 1.0]), implicit=True)
    if len(ratings) == 0:
        raise ValueError("There is nothing to learn from: no user has rated any item.")
    if not np.isfinite(ratings).all():
        raise ValueError("X has infinity among its ratings: they must be finite, NaN if unseen.")
    ratings = adjusted(ratings, half_up, False)
    values = np.unique(ratings)
    if len(values) <= MOST:
        return RatingLevels(values, half_up=half_up)
    cuts = np.quantile(ratings, np.linspace(0.0, 1.0, BINS + 1)[1:-1])
    edges = np.unique(cuts[(cuts > values[0]) & (cuts <= values[-1])])
    codes = np.searchsorted(edges, ratings, side="right")
    used, codes = np.unique(codes, return_inverse=True)
    edges = edges[used[1:] - 1]  # an empty bin goes to its neighbour below
    means = np.bincount(codes, weights=ratings) / np.bincount(codes)
    remark(
        f"Ratings have {len(values):,} distinct values: taken as {len(means)} levels with about "
        "equally many ratings each. Round them for levels of your own."
    )
    return RatingLevels(means, edges, half_up=half_up)
