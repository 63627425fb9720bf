"""RatingModel: how users rate items, and each user's own use of the levels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rejoint import kernels
from rejoint.arrays import FloatArray, IntArray
from rejoint.estimators.recommender.traits import (
    PointPrior,
    Side,
    Single,
    TraitPolicy,
    rating_half,
    transpose,
)

START_VARIANCE, LEAST_VARIANCE = 0.6, 1e-3
"""Variance of standardized ratings around their means, before the first sweep and at least."""

LEAST_USE = 1e-3
"""Expected share of a level at least, where its use is estimated."""


class Tastes(NamedTuple):
    """How some users rate: M kept sweeps, B users, I levels.

    ``points`` (M, B, d) are their numbers, ``variance`` (B,) that of their ratings around the mean,
    ``use`` (B, I) how often they give each level beside what that normal distribution says.
    """

    points: Single
    variance: Single
    use: Single

    def take(self, users: IntArray) -> "Tastes":
        """Those of some of the users."""
        return Tastes(self.points[:, users], self.variance[users], self.use[users])

    def append(self, more: "Tastes") -> "Tastes":
        """Those of these users and of some more."""
        points = np.concatenate([self.points, more.points], axis=1)
        rest = (np.concatenate(pair) for pair in zip(self[1:], more[1:], strict=True))
        return Tastes(points, *rest)


class Standard(NamedTuple):
    """Values of levels, standardized, with the mean and the standard deviation of ratings."""

    values: Single
    center: float
    spread: float

    @classmethod
    def of(cls, values: FloatArray, ratings: FloatArray) -> "Standard":
        """Standardize levels by some ratings.

        Examples
        --------
        >>> Standard.of(np.array([1.0, 3.0]), np.array([1.0, 3.0, 3.0, 1.0])).values
        array([-1.,  1.], dtype=float32)
        """
        scale = float(values[-1] - values[0]) or 1.0  # squares of very large ratings overflow
        center = float(values[0] + scale * np.mean((ratings - values[0]) / scale))
        spread = scale * (float(np.std((ratings - values[0]) / scale)) or 1.0)
        return cls(np.asarray((values - center) / spread, dtype=np.float32), center, spread)


class RatingDraw(NamedTuple):
    """What is kept of one sweep."""

    items: Single
    item_draws: Single
    users: Single
    precision: Single
    variance: float
    user_weights: Single
    user_variances: Single


@dataclass(frozen=True)
class RatingModel:
    """Kept sweeps of a model of ratings: M of them, of N items with d numbers each.

    Parameters
    ----------
    values : array (I,)
        Levels, less the mean of all ratings and divided by their standard deviation.
    center, spread : float
        That mean and standard deviation.
    items, item_draws : arrays (M, N, d)
        Conditional means and draws of the items.
    precision : array (M, d)
        Of the users' prior.
    variance : array (M,)
        Mean variance of a rating.
    use : array (I,)
        How often all users give each level beside what normal distributions say.
    user_weights : array (M, F, d)
        What features of users move their prior means by.
    """

    values: Single
    center: float
    spread: float
    items: Single
    item_draws: Single
    precision: Single
    variance: Single
    use: Single
    user_weights: Single

    @classmethod
    def of(
        cls,
        draws: Sequence[RatingDraw],
        ratings: Any,
        standard: "Standard",
        policy: TraitPolicy,
    ) -> tuple["RatingModel", "Tastes"]:
        """Make a model of kept sweeps, and the tastes of the users of the fit."""
        items, item_draws, users, precision, variance, weights, variances = (
            np.array(part, dtype=np.float32) for part in zip(*draws, strict=True)
        )
        even = np.ones(len(standard.values), dtype=np.float32)
        model = cls(*standard, items, item_draws, precision, variance, even, weights)
        plain = Tastes(users, variances.mean(axis=0), np.tile(even, (users.shape[1], 1)))
        model = replace(model, use=model.use_of_levels(plain, ratings, None, policy)[0])
        return model, plain._replace(use=model.use_of_levels(plain, ratings, model.use, policy))

    def place(self, ratings: Any, features: Single | None, policy: TraitPolicy) -> Tastes:
        """Find the tastes of users from their ratings alone."""
        users, size = ratings.shape[0], self.items.shape[2]
        points = np.empty((len(self.items), users, size), dtype=np.float32)
        counts = np.diff(ratings.indptr)
        total = np.zeros(users)
        for m, found in enumerate(points):
            mean = np.zeros(size, dtype=np.float32)
            if features is not None:
                mean = features @ self.user_weights[m]
            variance = np.full(users, self.variance[m], dtype=np.float32)
            for _ in range(policy.place_steps):
                cell_precision = np.asarray(np.repeat(1.0 / variance, counts), dtype=np.float32)
                prior = PointPrior(self.precision[m], mean)
                found[:] = rating_half(self.item_draws[m], ratings, cell_precision, prior, None)[0]
                off = ratings.data - cell_means(found, self.items[m], ratings)
                variance = user_variances(off, ratings, float(self.variance[m]), policy)
            total += variance
        variance = np.asarray(total / len(points), dtype=np.float32)
        plain = Tastes(points, variance, np.ones((users, len(self.values)), dtype=np.float32))
        return plain._replace(use=self.use_of_levels(plain, ratings, self.use, policy))

    def use_of_levels(
        self, tastes: Tastes, ratings: Any, overall: Single | None, policy: TraitPolicy
    ) -> Single:
        """How often users give each level beside what normal distributions say, (users, I).

        With ``overall`` None, that of all users together, (1, I).
        """
        size, counts = len(self.values), np.diff(ratings.indptr)
        users = np.repeat(np.arange(ratings.shape[0]), counts)
        levels = np.searchsorted(self.values, ratings.data - 1e-4)
        mean = np.zeros(len(ratings.data), dtype=np.float32)
        for points, items in zip(tastes.points, self.items, strict=True):
            mean += cell_means(points, items, ratings) / len(self.items)
        observed, expected = (np.zeros((ratings.shape[0], size)) for _ in range(2))
        cells = users * size + levels
        observed += np.bincount(cells, minlength=observed.size).reshape(observed.shape)
        shares = normal_levels(mean, tastes.variance[users], self.values)
        for level in range(size):
            expected[:, level] = np.bincount(users, shares[:, level], len(expected))
        if overall is None:
            found = (observed.sum(axis=0) + LEAST_USE) / (expected.sum(axis=0) + LEAST_USE)
            return np.asarray(found, dtype=np.float32)[None]
        share = expected / np.maximum(expected.sum(axis=1, keepdims=True), 1e-12)
        share[counts == 0] = 1.0  # all levels as all users use them
        weight = policy.use_ratings * np.maximum(share, LEAST_USE)
        return np.asarray((observed + weight * overall) / (expected + weight), dtype=np.float32)

    def means(self, points: Single, items: IntArray | slice = slice(None)) -> Iterator[Single]:
        """Yield mean ratings of users and items, standardized, (users, items), sweep by sweep."""
        for u, i in zip(points, self.items, strict=True):
            yield self.within(u[:, 1:] @ i[items, 1:].T + u[:, :1] + i[items, 0])

    def within(self, means: Single) -> Single:
        """Return means within the levels, by a hundredth of the scale."""
        margin = 0.01 * (self.values[-1] - self.values[0])
        return np.clip(means, self.values[0] + margin, self.values[-1] - margin)


def pair_means(users: Single, items: Single) -> Single:
    """Mean ratings of pairs, (..., pairs); the numbers are along the last axis."""
    found = np.einsum("...d,...d->...", users[..., 1:], items[..., 1:])
    return np.asarray(found + users[..., 0] + items[..., 0])


def cell_means(users: Single, items: Single, cells: Any) -> Single:
    """Mean ratings at the cells of a CSR matrix."""
    left, right = users.copy(), items.copy()
    left[:, 0], right[:, 0] = 1.0, 1.0
    products = kernels.cell_products(left, right, cells.indptr, cells.indices) - 1.0
    biases = np.repeat(users[:, 0], np.diff(cells.indptr)) + items[cells.indices, 0]
    return np.asarray(products + biases)


def user_variances(off: Single, cells: Any, overall: float, policy: TraitPolicy) -> Single:
    """Variance of each user's ratings around their means, pulled to that of all."""
    users = np.repeat(np.arange(cells.shape[0]), np.diff(cells.indptr))
    squares = np.bincount(users, off.astype(np.float64) ** 2, cells.shape[0])
    prior = policy.variance_ratings
    return np.asarray(
        (squares + prior * overall) / (np.diff(cells.indptr) + prior), dtype=np.float32
    )


def normal_levels(mean: Single, variance: Single, values: Single) -> Single:
    """Share of each level by normal densities at their values, (cells, I).

    Examples
    --------
    >>> one = np.ones(1, np.float32)
    >>> normal_levels(0 * one, one, np.array([-1.0, 1.0], np.float32))
    array([[0.5, 0.5]], dtype=float32)
    """
    logs = np.square(values - mean[:, None])
    logs *= -0.5 / variance[:, None]
    logs -= logs.max(axis=1, keepdims=True)
    found = np.exp(logs, out=logs)
    found /= found.sum(axis=1, keepdims=True)
    return np.asarray(found)


def sample_ratings(
    ratings: Any,
    features: tuple[Single | None, Single | None],
    traits: int,
    policy: TraitPolicy,
    rng: np.random.Generator,
) -> Iterator[RatingDraw]:
    """Yield what is kept of one sweep after another.

    Parameters
    ----------
    ratings : csr_array (U, N)
        Ratings, standardized.
    features : pair of arrays or None
        Of users (U, F) and of items (N, G).
    traits : int
        Number of traits.
    policy : TraitPolicy
        Tuned numbers.
    rng : Generator
        Source of randomness.
    """
    by_item, counts = transpose(ratings), np.diff(ratings.indptr)
    users, items = start_ratings(ratings, by_item, features, traits, rng)
    variances = np.full(len(users.points), START_VARIANCE, dtype=np.float32)
    while True:
        precision = 1.0 / variances
        users.points, users.draws = rating_half(
            items.draws, ratings, np.repeat(precision, counts), users.prior, rng
        )
        items.points, items.draws = rating_half(
            users.draws, by_item, precision[by_item.indices], items.prior, rng
        )
        off = ratings.data - cell_means(users.draws, items.draws, ratings)
        overall = max(float(np.mean(np.square(off, dtype=np.float64))), LEAST_VARIANCE)
        variances = user_variances(off, ratings, overall, policy)
        users.update_prior()
        items.update_prior()
        yield RatingDraw(
            items.points,
            items.draws,
            users.points,
            users.prior.precision,
            overall,
            users.weights,
            variances,
        )


def start_ratings(
    ratings: Any,
    by_item: Any,
    features: tuple[Single | None, Single | None],
    traits: int,
    rng: np.random.Generator,
) -> tuple[Side, Side]:
    """Users at zero; items by their mean ratings, with traits at random."""
    users = np.zeros((ratings.shape[0], traits + 1), dtype=np.float32)
    items = 0.3 * rng.standard_normal((ratings.shape[1], traits + 1), dtype=np.float32)
    # Means over few ratings are pulled to zero.
    items[:, 0] = by_item.sum(axis=1) / (np.diff(by_item.indptr) + 3.0)
    one, none = [0.4], [np.nan] * traits
    found = (
        Side(users, users.copy(), np.array(one + none), False, features[0]),
        Side(items, items.copy(), np.array(one + [0.04] * traits), True, features[1]),
    )
    # No user has been drawn yet: as if users' means had a variance of a fifth.
    precision = found[0].prior.precision.copy()
    precision[0] = 5.0
    found[0].prior = found[0].prior._replace(precision=precision)
    return found
