"""What users choose and how they rate it: models of both, fitted, and asked about any user.

A user's kept sweeps are the classes of a small joint: given the class, the user's choices and
ratings are independent. There are as many classes as kept sweeps of ratings, and each kept sweep of
choices serves several of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rejoint import kernels
from rejoint.arrays import FloatArray, IntArray, Single
from rejoint.estimators.recommender.ratings import RatingLevels
from rejoint.estimators.recommender.traits import (
    PointPrior,
    Side,
    TraitPolicy,
    as_cells,
    choice_half,
    rating_half,
    split_bias,
    transpose,
)
from rejoint.kernels.trait_steps import GRADES, LARGEST_LOGIT
from rejoint.messages import Countdown
from rejoint.solver.session import Session, one_blas_thread

T = TypeVar("T")
F = TypeVar("F", np.float32, np.float64)

Features = tuple[Single | None, Single | None]
"""Of users (U, F) and of items (N, G)."""

START_VARIANCE, LEAST_VARIANCE = 0.6, 1e-3
"""Variance of standardized ratings around their means, before the first sweep and at least."""

LEAST_USE = 1e-3
"""Expected share of a level at least, where its use is estimated."""

NONE: Single = np.zeros(0, dtype=np.float32)

GAP_PAIRS = 4096
"""Pairs of user and item by which the variance of draws around conditional means is estimated."""

PAIR_BLOCK = 2**16
"""Pairs of user and item that are predicted at once."""

POPULATION_CLASSES, MOST_POPULATION_NUMBERS = 240, 2**23
"""Classes of the joint of all users, fewer where it would have more numbers than this (64 MB)."""

RATING_SWEEPS = 2
"""Sweeps of ratings for each sweep of choices."""


class TraitSweep(NamedTuple):
    """What is kept of one sweep of choices or of ratings.

    Attributes
    ----------
    items, item_draws : arrays (N, d)
        Conditional means of the items, by which answers are given, and draws of them.
    precision : array (d,)
        Of the users' prior.
    user_weights : array (F, d)
        What features of users move their prior means by; F is 0 without features.
    scale : array (2,)
        Of choices the odds of the two lower grades at a logit of zero. Of ratings the mean variance
        around the draws, and that of the draws around the conditional means.
    item_factors : array (N,)
        What the variance of ratings of each item is multiplied by; none for choices.
    users : array (U, d)
        Conditional means of the users.
    variances : array (U,)
        Of each user's ratings; none for choices.
    """

    items: Single
    item_draws: Single
    precision: Single
    user_weights: Single
    scale: Single
    item_factors: Single
    users: Single
    variances: Single


@dataclass(frozen=True)
class KeptSweeps:
    """M kept sweeps, of N items with d numbers each; see :class:`TraitSweep`.

    Parameters
    ----------
    items, item_draws : arrays (M, N, d)
    precision : array (M, d)
    user_weights : array (M, F, d)
    """

    items: Single
    item_draws: Single
    precision: Single
    user_weights: Single

    def placing_items(self, fitted: bool) -> Single:
        """Return the items by which users are placed, (M, N, d).

        New users are placed by the means, as answers are given by them too. The means of items have
        seen the ratings of users of the fit: these are placed by draws, as the fit did it.
        """
        return self.item_draws if fitted else self.items

    def user_prior(self, m: int, features: Single | None = None) -> PointPrior:
        """Return the prior of users in a sweep."""
        mean = np.zeros(self.items.shape[2], dtype=np.float32)
        return PointPrior(
            self.precision[m], mean if features is None else features @ self.user_weights[m]
        )


@dataclass(frozen=True)
class ChoiceModel(KeptSweeps):
    """Which items users choose, and how well they like what they have chosen.

    Parameters
    ----------
    offsets : array (M, 2)
        Odds of the two lower grades at a logit of zero.
    """

    offsets: Single

    @classmethod
    def of(cls, sweeps: Sequence[TraitSweep]) -> tuple["ChoiceModel", Single]:
        """Make a model of kept sweeps, and the places of the users of the fit, (M, U, d)."""
        *parts, _, users, _ = stack(sweeps)
        return cls(*parts), users

    def place(
        self, grades: Any, features: Single | None, policy: TraitPolicy, fitted: bool = False
    ) -> Single:
        """Place users in each kept sweep by their choices alone, (M, users, d).

        A sweep starts from the places in the one before, which are near.
        """
        points = np.zeros((grades.shape[0], self.items.shape[2]), dtype=np.float32)
        points += self.user_prior(0, features).mean
        found = []
        for m, items in enumerate(self.placing_items(fitted)):
            prior, offsets = self.user_prior(m, features), self.offsets[m]
            for _ in range(policy.place_steps[m > 0]):
                choice_half(points, items, grades, prior, offsets, policy, None)
            found.append(points.copy())
        return np.stack(found)

    def shares(self, users: Single, items: IntArray | slice = slice(None)) -> Single:
        """Probability that users choose items in each kept sweep, (M, users, items)."""
        parts = zip(users, self.items, self.offsets, strict=True)
        return np.stack([chosen_share(logits(u, i[items]), o) for u, i, o in parts])


def stack(sweeps: Sequence[TraitSweep]) -> list[Single]:
    """Return each part of all sweeps as one array."""
    return [np.array(part, dtype=np.float32) for part in zip(*sweeps, strict=True)]


def logits(users: Single, items: Single) -> Single:
    """Logits of choices, or means of ratings, of users and items, (users, items)."""
    found = users[:, 1:] @ items[:, 1:].T
    found += users[:, :1]
    found += items[:, 0]
    return np.asarray(found)


def pair_logits(users: Single, items: Single) -> Single:
    """The same of pairs, (..., pairs); the numbers are along the last axis."""
    found = np.einsum("...d,...d->...", users[..., 1:], items[..., 1:])
    return np.asarray(found + users[..., 0] + items[..., 0])


def chosen_share(found: Single, offsets: Single) -> Single:
    """Probability of a choice of any grade, at logits.

    Examples
    --------
    >>> chosen_share(np.zeros(1, np.float32), np.array([1.0, 1.0], np.float32))
    array([0.75], dtype=float32)
    """
    found = np.clip(found, -LARGEST_LOGIT, LARGEST_LOGIT)
    odds = np.exp(found)
    for offset, grade in zip(offsets, GRADES, strict=False):
        if offset > 0.0:
            odds += offset * np.exp(np.float32(grade) * found)
    return np.asarray(odds / (1.0 + odds))


def sample_choices(
    grades: Any, features: Features, traits: int, policy: TraitPolicy, rng: np.random.Generator
) -> Iterator[TraitSweep]:
    """Yield what is kept of one sweep after another.

    Parameters
    ----------
    grades : csr_array (U, N)
        Grades of what was chosen: 0.3, 0.7 or 1.
    features : pair of arrays or None
        Of users (U, F) and of items (N, G).
    traits : int
        Number of traits.
    policy : TraitPolicy
        Tuned numbers.
    rng : Generator
        Source of randomness.
    """
    by_item = transpose(grades)
    users, items = start_choices(grades, by_item, features, traits, rng)
    observed = np.array([np.isclose(grades.data, grade).sum() for grade in GRADES], dtype=float)
    offsets = start_offsets(observed, grades.shape[0] * grades.shape[1])
    while True:
        users.draws, _ = choice_half(
            users.points, items.draws, grades, users.prior, offsets, policy, rng
        )
        items.draws, expected = choice_half(
            items.points, users.draws, by_item, items.prior, offsets, policy, rng
        )
        users.update_prior()
        items.update_prior()
        ratio = observed / np.maximum(expected, 1e-9)
        offsets = np.asarray(offsets * ratio[:2] / ratio[2], dtype=np.float32)
        yield keep(users, items, offsets)


def keep(
    users: Side, items: Side, scale: Single, item_factors: Single = NONE, variances: Single = NONE
) -> TraitSweep:
    """Return what is kept of a sweep; points of choices change in place."""
    kept = (items.points.copy(), items.draws, users.prior.precision, users.weights)
    return TraitSweep(*kept, scale, item_factors, users.points.copy(), variances)


def start_choices(
    grades: Any, by_item: Any, features: Features, traits: int, rng: np.random.Generator
) -> tuple[Side, Side]:
    """Users and items by how often they choose and are chosen, with traits at random."""
    sides = []
    for cells, spread in ((grades, 1.0), (by_item, 0.3)):
        points = spread * rng.standard_normal((cells.shape[0], traits + 1), dtype=np.float32)
        counts = np.diff(cells.indptr)
        points[:, 0] = np.log((counts + 0.5) / (cells.shape[1] - counts + 0.5))
        sides.append(points)
    users, items = sides
    users[:, 0] -= users[:, 0].mean()
    return start_sides(users, items, features, 2.0, 0.2)


def start_sides(
    users: Single, items: Single, features: Features, least: float, least_trait: float
) -> tuple[Side, Side]:
    """Users and items with the sums of squares that estimates of their variances start from."""
    rest = users.shape[1] - 1
    return (
        Side(users, users.copy(), np.array([least] + [np.nan] * rest), False, features[0]),
        Side(items, items.copy(), np.array([least] + [least_trait] * rest), True, features[1]),
    )


def start_offsets(observed: FloatArray, cells: int) -> Single:
    """Odds of the two lower grades that give the observed numbers at the logit of the mean.

    Examples
    --------
    >>> start_offsets(np.array([0.0, 10.0, 10.0]), 40)
    array([0., 1.], dtype=float32)
    """
    chosen = observed.sum()
    logit = np.log(chosen / max(cells - chosen, 0.5)) if chosen else 0.0
    found = observed[:2] / max(observed[2], 1.0) * np.exp((1.0 - GRADES[:2]) * logit)
    return np.asarray(found, dtype=np.float32)


class Tastes(NamedTuple):
    """How some users rate: M kept sweeps, B users, I levels.

    ``points`` (M, B, d) are their numbers, ``variance`` (B,) that of their ratings around the mean,
    ``use`` (B, I) how often they give each level beside what that normal distribution says.
    """

    points: Single
    variance: Single
    use: Single

    def take(self, users: IntArray) -> "Tastes":
        """Return the tastes of some of the users."""
        return Tastes(self.points[:, users], self.variance[users], self.use[users])

    def append(self, *more: "Tastes") -> "Tastes":
        """Return the tastes of these users and of some more."""
        every = (self, *more)
        points = np.concatenate([part.points for part in every], axis=1)
        rest = (np.concatenate(parts) for parts in zip(*(part[1:] for part in every), strict=True))
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


@dataclass(frozen=True)
class RatingModel(KeptSweeps):
    """How users rate items, and how often they use each level.

    Parameters
    ----------
    variance : array (M, 2)
        Mean variance of a rating around the draws, and of the draws around the conditional means.
    item_factors : array (M, N)
        What the variance of ratings of each item is multiplied by.
    values : array (I,)
        Levels, less the mean of all ratings and divided by their standard deviation.
    center, spread : float
        That mean and standard deviation.
    use : array (I,)
        How often all users give each level beside what normal distributions say.
    """

    variance: Single
    item_factors: Single
    values: Single
    center: float
    spread: float
    use: Single

    @classmethod
    def of(
        cls, sweeps: Sequence[TraitSweep], ratings: Any, standard: "Standard", policy: TraitPolicy
    ) -> tuple["RatingModel", "Tastes"]:
        """Make a model of kept sweeps, and the tastes of the users of the fit."""
        *parts, users, variances = stack(sweeps)
        even = np.ones(len(standard.values), dtype=np.float32)
        items, draws, precision, weights, variance, factors = parts
        model = cls(items, draws, precision, weights, variance, factors, *standard, even)
        plain = Tastes(users, variances.mean(axis=0), np.tile(even, (users.shape[1], 1)))
        counts = model.count_levels(plain, ratings)
        given, said = (count.sum(axis=0) + LEAST_USE for count in counts)
        model = replace(model, use=np.asarray(given / said, dtype=np.float32))
        return model, plain._replace(use=model.use_of_levels(*counts, policy))

    def place(
        self, ratings: Any, features: Single | None, policy: TraitPolicy, fitted: bool = False
    ) -> Tastes:
        """Find the tastes of users from their ratings alone."""
        users, counts = ratings.shape[0], np.diff(ratings.indptr)
        rows = np.repeat(np.arange(users), counts)
        variance = np.full(users, self.variance[0, 0], dtype=np.float32)
        points, variances = [], []
        for m, items in enumerate(self.placing_items(fitted)):
            prior, overall = self.user_prior(m, features), float(self.variance[m, 0])
            factors = self.item_factors[m, ratings.indices]
            for _ in range(policy.place_steps[m > 0]):
                cell_precision = 1.0 / (np.repeat(variance, counts) * factors)
                found = rating_half(items, ratings, cell_precision, prior, None)[0]
                off = ratings.data - cell_means(found, self.items[m], ratings)
                variance = pool_variances(off**2 / factors, rows, users, overall, policy)
            points.append(found)
            variances.append(variance)
        even = np.ones((users, len(self.values)), dtype=np.float32)
        plain = Tastes(np.stack(points), np.mean(variances, axis=0), even)
        return plain._replace(use=self.use_of_levels(*self.count_levels(plain, ratings), policy))

    def count_levels(self, tastes: Tastes, ratings: Any) -> tuple[FloatArray, FloatArray]:
        """How often users give each level, and how often normal distributions say, (users, I)."""
        shape, counts = (ratings.shape[0], len(self.values)), np.diff(ratings.indptr)
        users = np.repeat(np.arange(len(counts)), counts)
        levels = np.searchsorted(self.values, ratings.data - np.float32(1e-4))
        observed = np.bincount(users * shape[1] + levels, minlength=shape[0] * shape[1])
        mean = np.zeros(len(ratings.data), dtype=np.float32)
        for points, items in zip(tastes.points, self.items, strict=True):
            mean += cell_means(points, items, ratings) / len(self.items)
        variance = self.around_means(tastes.variance)[users]
        shares = normal_levels(mean, variance, self.values)
        cells = np.arange(len(mean))  # sums over the cells of each user
        each = sparse.csr_array((np.ones_like(mean), cells, ratings.indptr), (shape[0], len(mean)))
        expected = each @ shares
        return observed.reshape(shape).astype(np.float64), expected.astype(np.float64)

    def use_of_levels(
        self, observed: FloatArray, expected: FloatArray, policy: TraitPolicy
    ) -> Single:
        """How often users give each level beside what normal distributions say, (users, I)."""
        total = expected.sum(axis=1, keepdims=True)
        share = expected / np.maximum(total, 1e-12)
        share[total[:, 0] == 0] = 1.0  # all levels as all users use them
        weight = policy.use_ratings * np.maximum(share, LEAST_USE)
        return np.asarray((observed + weight * self.use) / (expected + weight), dtype=np.float32)

    def means(self, points: Single, items: IntArray | slice = slice(None)) -> Iterator[Single]:
        """Yield mean ratings of users and items, standardized, (users, items), sweep by sweep."""
        for u, i in zip(points, self.items, strict=True):
            yield self.within(logits(u, i[items]))

    def around_means(self, variance: Single) -> Single:
        """Return variances of users' ratings around the means that answers are given by."""
        return np.asarray(variance + self.variance[:, 1].mean())

    def within(self, means: Single) -> Single:
        """Return means within the levels, by a hundredth of the scale."""
        margin = 0.01 * (self.values[-1] - self.values[0])
        return np.clip(means, self.values[0] + margin, self.values[-1] - margin)


def cell_means(users: Single, items: Single, cells: Any) -> Single:
    """Mean ratings at the cells of a CSR matrix."""
    left = np.insert(users, 1, 1.0, axis=1)  # (c, 1, z), and (1, b, a): the biases add up
    right = np.insert(items, 0, 1.0, axis=1)
    return kernels.cell_products(left, right, cells.indptr, cells.indices)


def pool_variances(
    squares: Single, places: IntArray, size: int, overall: float, policy: TraitPolicy
) -> Single:
    """Mean squares of each user or item, pulled to a variance of all.

    Examples
    --------
    >>> policy = TraitPolicy(variance_ratings=1.0)
    >>> pool_variances(np.array([3.0], np.float32), np.array([1]), 2, 1.0, policy)
    array([1., 2.], dtype=float32)
    """
    prior = policy.variance_ratings
    total = np.bincount(places, squares, size) + prior * overall
    return np.asarray(total / (np.bincount(places, minlength=size) + prior), dtype=np.float32)


def gap_variance(users: Side, items: Side, ratings: Any, rng: np.random.Generator) -> float:
    """Variance of draws around conditional means, at users and items as often as they occur."""
    rows, places = (rng.integers(ratings.nnz, size=GAP_PAIRS) for _ in range(2))
    user = np.searchsorted(ratings.indptr, rows, side="right") - 1
    item = ratings.indices[places]
    drawn = pair_logits(users.draws[user], items.draws[item])
    return float(np.mean((drawn - pair_logits(users.points[user], items.points[item])) ** 2))


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
    ratings: Any, features: Features, traits: int, policy: TraitPolicy, rng: np.random.Generator
) -> Iterator[TraitSweep]:
    """Yield what is kept of one sweep of standardized ratings (U, N) after another."""
    by_item = transpose(ratings)
    rows, columns = (
        np.repeat(np.arange(len(c.indptr) - 1), np.diff(c.indptr)) for c in (ratings, by_item)
    )
    users, items = start_ratings(ratings, by_item, features, traits, rng)
    variances = np.full(len(users.points), START_VARIANCE, dtype=np.float32)
    factors = np.ones(len(items.points), dtype=np.float32)
    while True:
        precision, by_factor = 1.0 / variances, 1.0 / factors
        users.points, users.draws = rating_half(
            items.draws, ratings, precision[rows] * by_factor[ratings.indices], users.prior, rng
        )
        items.points, items.draws = rating_half(
            users.draws, by_item, precision[by_item.indices] * by_factor[columns], items.prior, rng
        )
        squares = np.square(ratings.data - cell_means(users.draws, items.draws, ratings))
        factors = pool_variances(
            squares * precision[rows], ratings.indices, len(factors), 1.0, policy
        )
        factors /= factors[ratings.indices].mean(dtype=np.float64)
        squares /= factors[ratings.indices]
        overall = max(float(squares.mean(dtype=np.float64)), LEAST_VARIANCE)
        variances = pool_variances(squares, rows, len(variances), overall, policy)
        users.update_prior()
        items.update_prior()
        scale = np.array([overall, gap_variance(users, items, ratings, rng)], dtype=np.float32)
        yield keep(users, items, scale, factors, variances)


def start_ratings(
    ratings: Any, by_item: Any, features: Features, traits: int, rng: np.random.Generator
) -> tuple[Side, Side]:
    """Users at zero; items by their mean ratings, with traits at random."""
    users = np.zeros((ratings.shape[0], traits + 1), dtype=np.float32)
    items = 0.3 * rng.standard_normal((ratings.shape[1], traits + 1), dtype=np.float32)
    # Means over few ratings are pulled to zero.
    items[:, 0] = by_item.sum(axis=1) / (np.diff(by_item.indptr) + 3.0)
    found = start_sides(users, items, features, 0.4, 0.04)
    # No user has been drawn yet: as if users' means had a variance of a fifth.
    found[0].prior.precision[0] = 5.0
    return found


class People(NamedTuple):
    """Where some users stand in the kept sweeps: of choices (M, B, d), and of ratings."""

    choices: Single
    tastes: Tastes | None

    def take(self, users: IntArray) -> "People":
        """Return some of the users."""
        tastes = None if self.tastes is None else self.tastes.take(users)
        return People(self.choices[:, users], tastes)

    def append(self, *more: "People") -> "People":
        """Return these users and some more."""
        choices = np.concatenate([self.choices, *(part.choices for part in more)], axis=1)
        tastes = [part.tastes for part in more if part.tastes is not None]
        if self.tastes is None or len(tastes) < len(more):
            return People(choices, None)
        return People(choices, self.tastes.append(*tastes))


@dataclass(frozen=True)
class TraitModel:
    """A model of choices, and one of ratings unless it is only known what was chosen."""

    choices: ChoiceModel
    ratings: RatingModel | None
    scale: RatingLevels
    policy: TraitPolicy

    @property
    def classes(self) -> int:
        """Number of classes of a user's joint."""
        return len((self.choices if self.ratings is None else self.ratings).items)

    # Users

    def place(self, known: Any, features: Single | None = None, *, fitted: bool = False) -> People:
        """Place users by what they have rated.

        Parameters
        ----------
        known : csr_array (users, items)
            Level numbers plus one.
        features : array (users, F), optional
            Features of the users.
        fitted : bool
            Whether they are users of the fit.
        """
        with one_blas_thread():
            grades = as_grades(known, self.scale)
            found = self.choices.place(grades, features, self.policy, fitted)
        return People(found, self.place_tastes(known, features, fitted))

    def place_tastes(
        self, known: Any, features: Single | None = None, fitted: bool = False
    ) -> Tastes | None:
        """Find how users rate by what they have rated; None in a model of choices alone."""
        if self.ratings is None:
            return None
        cells = as_standardized(known, self.ratings.values)
        return self.ratings.place(cells, features, self.policy, fitted)

    def nobody(self, features: Single | None = None) -> People:
        """A user of whom nothing is known, not even what was not chosen."""
        sweeps = range(len(self.choices.items))
        found = np.stack([np.atleast_2d(self.choices.user_prior(m, features).mean) for m in sweeps])
        nothing = as_cells(sparse.csr_array((1, self.choices.items.shape[1])))
        return People(found, self.place_tastes(nothing, features))

    # Answers

    def chosen(self, people: People, items: IntArray | slice = slice(None)) -> Single:
        """Probability that users choose items, (M, users, items)."""
        return self.choices.shares(people.choices, items)

    def class_chosen(self, people: People, items: IntArray | slice = slice(None)) -> FloatArray:
        """Probability that one user chooses items in each class of the joint, (classes, items)."""
        found = self.chosen(people, items)[:, 0].astype(np.float64)
        return np.asarray(found[np.arange(self.classes) % len(found)])

    def likes(
        self, people: People, level: int, items: IntArray | slice = slice(None)
    ) -> Iterator[Single]:
        """Yield the probability that a rating reaches a level, (users, items), class by class."""
        for shares in self.levels(people, items):
            yield shares[..., level:].sum(axis=-1)

    def levels(self, people: People, items: IntArray | slice = slice(None)) -> Iterator[Single]:
        """Yield the probability of each level of a rating, (users, items, I), class by class."""
        if self.ratings is None or people.tastes is None:
            yield from map(yes_and_no, self.chosen(people, items))
            return
        _, variance, use = people.tastes
        variance = self.ratings.around_means(variance)
        for means in self.ratings.means(people.tastes.points, items):
            yield kernels.tilted_levels(means, variance, use, self.ratings.values)

    def expected(self, people: People, items: IntArray | slice = slice(None)) -> FloatArray:
        """Expected ratings of users and items, (users, items); else probabilities of a choice."""
        if self.ratings is None or people.tastes is None:
            return np.asarray(self.chosen(people, items).mean(axis=0, dtype=np.float64))
        total: Any = 0.0
        for means in self.ratings.means(people.tastes.points, items):
            total = total + means
        found = self.ratings.center + self.ratings.spread * total.astype(np.float64) / self.classes
        return np.asarray(found)

    def expected_pairs(self, people: People, users: IntArray, items: IntArray) -> FloatArray:
        """Expected ratings of pairs of user and item; else probabilities of a choice."""
        if self.ratings is None or people.tastes is None:
            return self.pair_levels(people, users, items)[:, 1]
        found = np.zeros(len(users))
        for points, things in zip(people.tastes.points, self.ratings.items, strict=True):
            found += self.ratings.within(pair_logits(points[users], things[items]))
        return self.ratings.center + self.ratings.spread * found / self.classes

    def pair_levels(self, people: People, users: IntArray, items: IntArray) -> FloatArray:
        """Probability of each level for pairs of user and item, (pairs, I)."""
        found = np.empty((len(users), len(self.scale.values)))
        for start in range(0, len(users), PAIR_BLOCK):
            here = slice(start, start + PAIR_BLOCK)
            found[here] = self._pair_levels(people, users[here], items[here])
        return found

    def _pair_levels(self, people: People, users: IntArray, items: IntArray) -> FloatArray:
        if self.ratings is None or people.tastes is None:
            parts = zip(people.choices, self.choices.items, self.choices.offsets, strict=True)
            each = [chosen_share(pair_logits(u[users], i[items]), o) for u, i, o in parts]
            return yes_and_no(np.mean(each, axis=0, dtype=np.float64))
        points, variance, use = people.tastes.take(users)
        means = self.ratings.within(pair_logits(points, self.ratings.items[:, items]))
        rows = np.ascontiguousarray(means.T)  # a row for each pair, a column for each class
        variance = self.ratings.around_means(variance)
        found = kernels.tilted_levels(rows, variance, use, self.ratings.values)
        return np.asarray(found.mean(axis=1, dtype=np.float64))

    def influences(self, people: People, known: Any, items: IntArray) -> FloatArray:
        """How much each choice of one user raises the logit of each of some items.

        To first order: the change of the Newton step without the choice, averaged over sweeps.

        Returns
        -------
        array (choices, items)
        """
        model, grades = self.choices, as_grades(known, self.scale)
        total = np.zeros((len(grades.indices), len(items)))
        parts = zip(people.choices, model.items, model.precision, model.offsets, strict=True)
        for points, things, precision, offsets in parts:
            free, bias = split_bias(things)
            means = points @ free.T
            variance, _ = kernels.grade_moments(means, bias, offsets)
            bend = free.T @ (variance[0, :, None] * free) + np.diag(precision)
            surprise = grades.data - means[0, grades.indices]
            total += surprise[:, None] * (
                free[grades.indices] @ np.linalg.solve(bend, free[items].T)
            )
        return np.asarray(total / len(model.items))

    def population(self, known: Any, people: People, rng: np.random.Generator) -> FloatArray:
        """Levels of all items for users drawn from the posterior, (classes, items, I)."""
        size = known.shape[1] * len(self.scale.values)
        number = int(np.clip(MOST_POPULATION_NUMBERS // size, 16, POPULATION_CLASSES))
        found = []
        for m in range(self.classes):
            each = -(-number // self.classes)
            users = np.sort(rng.choice(known.shape[0], min(each, known.shape[0]), replace=False))
            found.append(self._drawn_levels(m, known, people, users, rng))
        return np.concatenate(found)

    def _drawn_levels(
        self, m: int, known: Any, people: People, users: IntArray, rng: np.random.Generator
    ) -> FloatArray:
        """Levels of all items for draws of some users in one sweep, (users, items, I)."""
        mine = as_cells(known[users])
        if self.ratings is None or people.tastes is None:
            model, points = self.choices, people.choices[m, users].copy()
            prior, offsets = model.user_prior(m), model.offsets[m]
            grades = as_grades(mine, self.scale)
            drawn, _ = choice_half(
                points, model.item_draws[m], grades, prior, offsets, self.policy, rng
            )
            return yes_and_no(chosen_share(logits(drawn, model.items[m]), offsets)).astype(
                np.float64
            )
        rated = self.ratings
        cells = as_standardized(mine, rated.values)
        _, variance, use = people.tastes.take(users)
        cell_precision = np.repeat(1.0 / variance, np.diff(cells.indptr))
        cell_precision /= rated.item_factors[m, cells.indices]
        prior = rated.user_prior(m)
        drawn = rating_half(rated.item_draws[m], cells, cell_precision, prior, rng)[1]
        means = rated.within(logits(drawn, rated.items[m]))
        return kernels.tilted_levels(means, variance, use, rated.values).astype(np.float64)


def yes_and_no(shares: NDArray[F]) -> NDArray[F]:
    """Return the probabilities of no and yes, along a last axis."""
    return np.stack([1 - shares, shares], axis=-1)


def as_grades(known: Any, scale: RatingLevels) -> Any:
    """Return level numbers plus one as grades of choices."""
    levels = known.data - 1
    if scale.implicit:
        data = np.ones(len(levels), dtype=np.float32)
    else:
        places = (levels >= scale.middle).astype(np.intp) + (levels >= scale.at_least(None))
        data = GRADES.astype(np.float32)[places]
    return with_data(known, data)


def as_standardized(known: Any, values: Single) -> Any:
    """Return level numbers plus one as standardized ratings."""
    return with_data(known, values[known.data.astype(np.intp) - 1])


def with_data(cells: Any, data: Single) -> Any:
    """Return cells with other numbers in them."""
    return as_cells(sparse.csr_array((data, cells.indices, cells.indptr), shape=cells.shape))


def fit_trait_model(
    known: Any,
    scale: RatingLevels,
    features: Features,
    policy: TraitPolicy,
    session: Session,
    finish: Callable[[TraitModel, People, bool], T],
) -> T:
    """Fit a model to ratings, and return what ``finish`` makes of it and of its users.

    Parameters
    ----------
    known : csr_array (U, N)
        Level numbers plus one.
    scale : RatingLevels
        The levels.
    features : pair of arrays or None
        Of users and items.
    policy : TraitPolicy
        Tuned numbers.
    session : Session
        Randomness and progress. From the first kept sweep on, it is offered what ``finish`` makes
        of the sweeps so far.
    finish : callable
        Takes the model, the users, and whether Ctrl-C ended the fit.
    """
    traits, draws, rating_traits = policy.of_shape(known.shape[0], known.shape[1], known.nnz)
    chosen, rated = as_grades(known, scale), None
    choice_sweeps = sample_choices(chosen, features, traits, policy, session.rng)
    rating_sweeps: Iterator[TraitSweep] = iter(())
    standard = Standard.of(scale.values, scale.values[known.data.astype(np.intp) - 1])
    if not scale.implicit:
        rated = as_standardized(known, standard.values)
        rating_sweeps = sample_ratings(rated, features, rating_traits, policy, session.rng)
    choices, ratings = list[TraitSweep](), list[TraitSweep]()

    def so_far(interrupted: bool = True) -> T:
        model, users = ChoiceModel.of(choices)
        found, tastes = None, None
        if rated is not None:
            found, tastes = RatingModel.of(ratings, rated, standard, policy)
        return finish(TraitModel(model, found, scale, policy), People(users, tastes), interrupted)

    countdown = Countdown(policy.burn_in + draws)
    with one_blas_thread():
        for sweep in range(policy.burn_in + draws):
            choice = next(choice_sweeps)
            more = [] if rated is None else [next(rating_sweeps) for _ in range(RATING_SWEEPS)]
            if sweep >= policy.burn_in:
                ratings.extend(more)
                choices.append(choice)
                session.offer(so_far, certain=True)
            left = countdown.tell(sweep + 1)
            session.report(f"sweep {sweep + 1} of {policy.burn_in + draws}{left}")
        return so_far(False)
