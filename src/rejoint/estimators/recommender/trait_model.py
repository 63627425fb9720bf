"""What users choose and how they rate it: models of both, fitted, and asked about any user.

A user's kept sweeps are the classes of a small joint: given the class, the user's choices and
ratings are independent. There are as many classes as kept sweeps of ratings, and each kept sweep of
choices serves several of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy import sparse

from rejoint import kernels
from rejoint.arrays import FloatArray, IntArray, Single
from rejoint.estimators.recommender.ratings import RatingLevels
from rejoint.estimators.recommender.traits import (
    PointPrior,
    Points,
    Side,
    TraitPolicy,
    as_cells,
    choice_half,
    rating_half,
    split_bias,
    with_data,
)
from rejoint.kernels.backend import one_blas_thread
from rejoint.kernels.trait_steps import GRADES, LARGEST_LOGIT
from rejoint.messages import Countdown
from rejoint.solver.session import Session

T = TypeVar("T")

ALL = slice(None)

#: Variance of standardized ratings around their means, before the first sweep and at least.
START_VARIANCE, LEAST_VARIANCE = 0.6, 1e-3

#: Expected share of a level at least, where its use is estimated.
LEAST_USE = 1e-3

#: Pairs of user and item by which the variance of draws around conditional means is estimated.
GAP_PAIRS = 4096

#: Numbers that are formed at once where many users are asked about: 8 MB.
ANSWER_BLOCK = 2**21

#: Classes of the joint of all users, fewer where it would have more numbers than this (64 MB).
POPULATION_CLASSES, MOST_POPULATION_NUMBERS = 240, 2**23

#: Sweeps of ratings for each sweep of choices.
RATING_SWEEPS = 2


class People(NamedTuple):
    """Where B users stand in the kept sweeps; the second axis is that of the users.

    ``choices`` (M, B, d) and ``points`` (K, B, e) are their numbers in the models of choices and of
    ratings, ``variance`` (1, B) that of their ratings around the mean, ``use`` (1, B, I) how often
    they give each level beside what that normal distribution says. What is not needed is empty.
    """

    choices: Points
    points: Points
    variance: Points
    use: Points

    def take(self, users: IntArray) -> "People":
        """Return some of the users."""
        return People(*(part[:, users] for part in self))

    def append(self, *more: "People") -> "People":
        """Return these users and some more."""
        return People(*(np.concatenate(parts, axis=1) for parts in zip(self, *more, strict=True)))

    def put(self, users: IntArray, placed: "People") -> None:
        """Move some of the users, in place."""
        for part, other in zip(self, placed, strict=True):
            part[:, users] = other


class TraitSweep(NamedTuple):
    """What is kept of one sweep of choices or of ratings.

    Attributes
    ----------
    items : array (N, d)
        Conditional means of the items.
    precision : array (d,)
        Of the users' prior.
    scale : array (2,)
        Of choices the odds of the two lower grades at a logit of zero. Of ratings the mean variance
        around the draws, and that of the draws around the conditional means.
    users : array (U, d)
        Conditional means of the users.
    variances : array (U,)
        Of each user's ratings; none for choices.
    """

    items: Single
    precision: Single
    scale: Single
    users: Single
    variances: Single


def keep(users: Side, items: Side, scale: Any, variances: Any = ()) -> TraitSweep:
    """Return what is kept of a sweep; points of choices change in place."""
    parts = (items.points.copy(), users.prior.precision, scale, users.points.copy())
    return TraitSweep(*parts, variances)


def stack(sweeps: Sequence[TraitSweep]) -> list[Single]:
    """Return each part of all sweeps as one array."""
    return [np.array(part, dtype=np.float32) for part in zip(*sweeps, strict=True)]


def logits(users: Points, items: Points) -> Points:
    """Logits of choices, or means of ratings, of users and items, (..., users, items).

    Items are (..., items, d), or (..., users, items, d) where each user has others.
    """
    if items.ndim == users.ndim:
        products = users[..., 1:] @ np.swapaxes(items[..., 1:], -1, -2)
        return np.asarray(products + users[..., :1] + items[..., None, :, 0])
    products = np.einsum("...ud,...uid->...ui", users[..., 1:], items[..., 1:])
    return np.asarray(products + users[..., :1] + items[..., 0])


def user_prior(precision: Single) -> PointPrior:
    """Return the prior of users in a sweep."""
    return PointPrior(precision, np.zeros_like(precision))


@dataclass(frozen=True)
class ChoiceModel:
    """Which items users choose, and how well they like what they have chosen: M kept sweeps.

    Parameters
    ----------
    items : array (M, N, d)
        See :class:`TraitSweep`.
    precision : array (M, d)
    offsets : array (M, 2)
        Odds of the two lower grades at a logit of zero.
    """

    items: Single
    precision: Single
    offsets: Single

    def place(self, grades: Any, policy: TraitPolicy) -> Points:
        """Place users in each kept sweep by their choices alone, (M, users, d).

        A sweep starts from the places in the one before, which are near.
        """
        points = np.zeros((grades.shape[0], self.items.shape[2]), dtype=grades.dtype)
        places = []
        for m, items in enumerate(self.items):
            prior = user_prior(self.precision[m])
            for _ in range(policy.place_steps[m > 0]):
                choice_half(points, items, grades, prior, self.offsets[m], policy, None)
            places.append(points.copy())
        return np.stack(places)

    def means(self, people: People, items: IntArray, sweeps: slice = ALL) -> Points:
        """Return the probability that users choose items, (M, users, items); see `logits`."""
        x = logits(people.choices[sweeps], self.items[sweeps][:, items])
        x = np.clip(x, -LARGEST_LOGIT, LARGEST_LOGIT)
        odds = np.exp(x)
        for k in (0, 1):
            odds += self.offsets[sweeps, [k], None] * np.exp(x.dtype.type(GRADES[k]) * x)
        return np.asarray(odds / (1.0 + odds))

    def levels(self, people: People, items: IntArray, sweeps: slice = ALL) -> Points:
        """Return the probabilities of no and yes, (users, M, items, 2)."""
        return yes_and_no(self.means(people, items, sweeps).swapaxes(0, 1))

    def influences(self, points: Points, grades: Any, items: IntArray) -> FloatArray:
        """How much each choice of one user raises the logit of each item, (choices, items).

        To first order: the change of the Newton step without the choice, averaged over sweeps.
        """
        total = np.zeros((len(grades.indices), len(items)))
        parts = zip(points, self.items, self.precision, self.offsets, strict=True)
        for place, things, precision, offsets in parts:
            free, bias = split_bias(things, place.dtype)
            means = place @ free.T
            variance, _ = kernels.grade_moments(means, bias, offsets)
            bend = free.T @ (variance[0, :, None] * free) + np.diag(precision)
            moves = free[grades.indices] @ np.linalg.solve(bend, free[items].T)
            total += (grades.data - means[0, grades.indices])[:, None] * moves
        return np.asarray(total / len(self.items))


def yes_and_no(shares: Points) -> Points:
    """Return the probabilities of no and yes, along a last axis."""
    return np.stack([1 - shares, shares], axis=-1)


def sample_choices(
    grades: Any, traits: int, policy: TraitPolicy, rng: np.random.Generator
) -> Iterator[TraitSweep]:
    """Yield what is kept of one sweep after another.

    Parameters
    ----------
    grades : csr_array (U, N)
        Grades of what was chosen: 0.3, 0.7 or 1.
    traits : int
        Number of traits.
    policy : TraitPolicy
        Tuned numbers.
    rng : Generator
        Source of randomness.
    """
    by_item = as_cells(grades.T)
    sides = []
    for cells, spread in ((grades, 1.0), (by_item, 0.3)):
        start = spread * rng.standard_normal((cells.shape[0], traits + 1), dtype=np.float32)
        counts = np.diff(cells.indptr)
        start[:, 0] = np.log((counts + 0.5) / (cells.shape[1] - counts + 0.5))
        sides.append(start)
    sides[0][:, 0] -= sides[0][:, 0].mean()
    users, items = start_sides(sides[0], sides[1], 2.0, 0.2)
    observed = np.array([np.isclose(grades.data, grade).sum() for grade in GRADES], dtype=float)
    offsets = np.asarray(observed[:2] / max(observed[2], 1.0), dtype=np.float32)
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


def start_sides(
    users: Single, items: Single, least: float, least_trait: float
) -> tuple[Side, Side]:
    """Users and items with the sums of squares that estimates of their variances start from."""
    rest = users.shape[1] - 1
    return (
        Side(users, users.copy(), np.array([least] + [np.nan] * rest), False),
        Side(items, items.copy(), np.array([least] + [least_trait] * rest), True),
    )


#: Values of levels, standardized, with the mean and the standard deviation of ratings.
Standard = tuple[Single, float, float]


def standardize(values: FloatArray, ratings: FloatArray) -> Standard:
    """Standardize levels by some ratings."""
    scale = float(values[-1] - values[0]) or 1.0  # squares of very large ratings overflow
    center = float(values[0] + scale * np.mean((ratings - values[0]) / scale))
    spread = scale * (float(np.std((ratings - values[0]) / scale)) or 1.0)
    return np.asarray((values - center) / spread, dtype=np.float32), center, spread


@dataclass(frozen=True)
class RatingModel:
    """How users rate items, and how often they use each level: K kept sweeps.

    Parameters
    ----------
    items : array (K, N, e)
        See :class:`TraitSweep`.
    precision : array (K, e)
    variance : array (K, 2)
        Mean variance of a rating around the draws, and of the draws around the conditional means.
    values : array (I,)
        Levels, less the mean of all ratings and divided by their standard deviation.
    center, spread : float
        That mean and standard deviation.
    use : array (I,)
        How often all users give each level beside what normal distributions say.
    """

    items: Single
    precision: Single
    variance: Single
    values: Single
    center: float
    spread: float
    use: Single

    @classmethod
    def of(
        cls, sweeps: Sequence[TraitSweep], ratings: Any, standard: Standard, policy: TraitPolicy
    ) -> tuple["RatingModel", Points, Points, Points]:
        """Make a model of kept sweeps, and the last three parts of the users of the fit."""
        items, precision, scale, users, variances = stack(sweeps)
        model = cls(items, precision, scale, *standard, use=np.ones_like(standard[0]))
        variance = variances.mean(axis=0)
        counts = model.count_levels(users, variance, ratings)
        given, expected = (count.sum(axis=0) + LEAST_USE for count in counts)
        model = replace(model, use=np.asarray(given / expected, dtype=np.float32))
        use = model.use_of_levels(*counts, policy).astype(np.float32)
        return model, users, variance[None], use[None]

    def place(self, ratings: Any, policy: TraitPolicy) -> tuple[Points, Points, Points]:
        """Return points, variance and use of levels of users, from their ratings alone."""
        columns, places = np.unique(ratings.indices, return_inverse=True)  # of one user few
        model, users = replace(self, items=self.items[:, columns]), ratings.shape[0]
        shape = users, len(columns)
        cells = sparse.csr_array((ratings.data, places, ratings.indptr), shape)
        cells = as_cells(cells, ratings.dtype)
        rows = np.repeat(np.arange(users), np.diff(cells.indptr))
        variance = np.full(users, self.variance[0, 0], dtype=cells.dtype)
        points, variances = [], []
        for m, items in enumerate(model.items):
            prior, overall = user_prior(self.precision[m]), float(self.variance[m, 0])
            for _ in range(policy.place_steps[m > 0]):
                means, _ = rating_half(items, cells, 1.0 / variance[rows], prior, None)
                squares = (cells.data - cell_means(means, items, cells)) ** 2
                variance = pool_variances(squares, rows, users, overall, policy)
            points.append(means)
            variances.append(variance)
        stacked, variance = np.stack(points), np.mean(variances, axis=0)
        use = self.use_of_levels(*model.count_levels(stacked, variance, cells), policy)
        return stacked, variance[None], use.astype(cells.dtype)[None]

    def count_levels(
        self, points: Points, variance: Points, ratings: Any
    ) -> tuple[FloatArray, FloatArray]:
        """How often users give each level, and how often normal distributions say, (users, I)."""
        shape, counts = (ratings.shape[0], len(self.values)), np.diff(ratings.indptr)
        users = np.repeat(np.arange(len(counts)), counts)
        levels = np.searchsorted(self.values, ratings.data - np.float32(1e-4))
        observed = np.bincount(users * shape[1] + levels, minlength=shape[0] * shape[1])
        mean: Any = 0.0
        for places, items in zip(points, self.items, strict=True):
            mean = mean + cell_means(places, items, ratings) / len(self.items)
        shares = normal_levels(mean, self.around_means(variance)[users], self.values)
        cells = np.arange(len(mean))  # sums over the cells of each user
        ones = np.ones(len(mean), dtype=shares.dtype)
        expected = sparse.csr_array((ones, cells, ratings.indptr), (shape[0], len(mean))) @ shares
        return observed.reshape(shape).astype(np.float64), expected.astype(np.float64)

    def use_of_levels(
        self, observed: FloatArray, expected: FloatArray, policy: TraitPolicy
    ) -> FloatArray:
        """How often users give each level beside what normal distributions say, (users, I)."""
        total = expected.sum(axis=1, keepdims=True)
        share = expected / np.maximum(total, 1e-12)
        share[total[:, 0] == 0] = 1.0  # all levels as all users use them
        weight = policy.use_ratings * np.maximum(share, LEAST_USE)
        return np.asarray((observed + weight * self.use) / (expected + weight))

    def around_means(self, variance: Points) -> Points:
        """Return variances of users' ratings around the means that answers are given by."""
        return np.asarray(variance + float(self.variance[:, 1].mean(dtype=np.float64)))

    def within(self, means: Points) -> Points:
        """Return means within the levels, by a hundredth of the scale."""
        low, high = float(self.values[0]), float(self.values[-1])
        return np.clip(means, low + 0.01 * (high - low), high - 0.01 * (high - low))

    def means(self, people: People, items: IntArray, sweeps: slice = ALL) -> Points:
        """Return mean ratings of users and items, standardized, (K, users, items); see `logits`."""
        return self.within(logits(people.points[sweeps], self.items[sweeps][:, items]))

    def levels(self, people: People, items: IntArray, sweeps: slice = ALL) -> Points:
        """Return the probability of each level of a rating, (users, K, items, I)."""
        means = self.means(people, items, sweeps).swapaxes(0, 1)
        variance, use = self.around_means(people.variance[0]), people.use[0]
        rows = np.ascontiguousarray(means.reshape(len(means), means[0].size))
        shares = kernels.tilted_levels(rows, variance, use, self.values)
        return shares.reshape(*means.shape, len(self.values))


def cell_means(users: Points, items: Single, cells: Any) -> Points:
    """Mean ratings at the cells of a CSR matrix."""
    left = np.insert(users, 1, 1.0, axis=1)  # (c, 1, z), and (1, b, a): the biases add up
    right = np.insert(items, 0, 1.0, axis=1)
    return kernels.cell_products(left, right, cells.indptr, cells.indices)


def pool_variances(
    squares: Points, users: IntArray, size: int, overall: float, policy: TraitPolicy
) -> Points:
    """Mean squares of each user, pulled to a variance of all."""
    prior = policy.variance_ratings
    total = np.bincount(users, squares, size) + prior * overall
    return np.asarray(total / (np.bincount(users, minlength=size) + prior), dtype=squares.dtype)


def gap_variance(users: Side, items: Side, ratings: Any, rng: np.random.Generator) -> float:
    """Variance of draws around conditional means, at users and items as often as they occur."""
    rows, places = (rng.integers(ratings.nnz, size=GAP_PAIRS) for _ in range(2))
    user = np.searchsorted(ratings.indptr, rows, side="right") - 1
    item = ratings.indices[places][:, None]
    gap = logits(users.draws[user], items.draws[item])
    gap -= logits(users.points[user], items.points[item])
    return float(np.mean(gap**2))


def normal_levels(mean: Points, variance: Points, values: Single) -> Points:
    """Share of each level by normal densities at their values, (cells, I)."""
    logs = np.square(values - mean[:, None]) * (-0.5 / variance[:, None])
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def sample_ratings(
    ratings: Any, traits: int, policy: TraitPolicy, rng: np.random.Generator
) -> Iterator[TraitSweep]:
    """Yield what is kept of one sweep of standardized ratings (U, N) after another."""
    by_item = as_cells(ratings.T)
    rows = np.repeat(np.arange(ratings.shape[0]), np.diff(ratings.indptr))
    users, items = start_ratings(ratings, by_item, traits, rng)
    variances = np.full(len(users.points), START_VARIANCE, dtype=np.float32)
    while True:
        precision = 1.0 / variances
        users.points, users.draws = rating_half(
            items.draws, ratings, precision[rows], users.prior, rng
        )
        items.points, items.draws = rating_half(
            users.draws, by_item, precision[by_item.indices], items.prior, rng
        )
        squares = np.square(ratings.data - cell_means(users.draws, items.draws, ratings))
        overall = max(float(squares.mean(dtype=np.float64)), LEAST_VARIANCE)
        variances = pool_variances(squares, rows, len(variances), overall, policy)
        users.update_prior()
        items.update_prior()
        yield keep(users, items, [overall, gap_variance(users, items, ratings, rng)], variances)


def start_ratings(
    ratings: Any, by_item: Any, traits: int, rng: np.random.Generator
) -> tuple[Side, Side]:
    """Users at zero; items by their mean ratings, with traits at random."""
    users = np.zeros((ratings.shape[0], traits + 1), dtype=np.float32)
    items = 0.3 * rng.standard_normal((ratings.shape[1], traits + 1), dtype=np.float32)
    # Means over few ratings are pulled to zero.
    items[:, 0] = by_item.sum(axis=1) / (np.diff(by_item.indptr) + 3.0)
    sides = start_sides(users, items, 0.4, 0.04)
    # No user has been drawn yet: as if users' means had a variance of a fifth.
    sides[0].prior.precision[0] = 5.0
    return sides


@dataclass(frozen=True)
class TraitModel:
    """A model of choices, and one of ratings unless it is only known what was chosen."""

    choices: ChoiceModel
    ratings: RatingModel | None
    scale: RatingLevels
    policy: TraitPolicy

    @property
    def answers(self) -> ChoiceModel | RatingModel:
        """The model whose levels are those of the ratings."""
        return self.choices if self.ratings is None else self.ratings

    @property
    def classes(self) -> int:
        """Number of classes of a user's joint."""
        return len(self.answers.items)

    # Users

    def place(self, known: Any, *, ratings_alone: bool = False) -> People:
        """Place users by what they have rated.

        Parameters
        ----------
        known : csr_array (users, items)
            Level numbers plus one, in the precision of the places.
        ratings_alone : bool
            Whether nothing but ratings will be asked for.
        """
        with one_blas_thread():
            if ratings_alone and self.ratings is not None:
                choices = np.zeros((0, known.shape[0], 0), dtype=known.dtype)
            else:
                choices = self.choices.place(as_grades(known, self.scale), self.policy)
            if self.ratings is None:
                return no_ratings(choices)
            cells = as_standardized(known, self.ratings.values)
            return People(choices, *self.ratings.place(cells, self.policy))

    def nobody(self) -> People:
        """A user of whom nothing is known, not even what was not chosen."""
        sweeps, items, d = self.choices.items.shape
        choices = np.zeros((sweeps, 1, d))
        if self.ratings is None:
            return no_ratings(choices)
        nothing = as_cells(sparse.csr_array((1, items)), np.float64)
        return People(choices, *self.ratings.place(nothing, self.policy))

    # Answers

    def class_chosen(self, people: People, items: IntArray) -> FloatArray:
        """Probability that one user chooses items in each class of the joint, (classes, items)."""
        chosen = self.choices.means(people, items)[:, 0].astype(np.float64)
        return np.asarray(chosen[np.arange(self.classes) % len(chosen)])

    def expected(
        self, people: People, items: IntArray, users: IntArray | None = None
    ) -> FloatArray:
        """Expected ratings of users and items, (users, items); else probabilities of a choice.

        By default of all people; items may be (users, items), where each user has others.
        """
        parts = [self.answers.means(*block) for block in self._blocks(people, items, users)]
        means = np.concatenate([part.mean(axis=0, dtype=np.float64) for part in parts])
        if self.ratings is None:
            return np.asarray(means)
        return np.asarray(self.ratings.center + self.ratings.spread * means)

    def levels(self, people: People, items: IntArray, users: IntArray | None = None) -> FloatArray:
        """Probability of each level for users and items, (users, items, I)."""
        parts = [self.answers.levels(*block) for block in self._blocks(people, items, users)]
        return np.concatenate([part.mean(axis=1, dtype=np.float64) for part in parts])

    def _blocks(
        self, people: People, items: IntArray, users: IntArray | None
    ) -> Iterator[tuple[People, IntArray]]:
        """Yield some users after another, and their items."""
        users = np.arange(people.variance.shape[1]) if users is None else users
        size = self.classes * items.shape[-1] * len(self.scale.values)
        step = max(1, ANSWER_BLOCK // max(size, 1))
        for start in range(0, max(len(users), 1), step):
            rows = slice(start, start + step)
            yield people.take(users[rows]), items if items.ndim == 1 else items[rows]

    def population(self, people: People, rng: np.random.Generator) -> FloatArray:
        """Levels of all items for some users in each sweep, (classes, items, I)."""
        users, items = people.variance.shape[1], np.arange(self.choices.items.shape[1])
        size = len(items) * len(self.scale.values)
        number = int(np.clip(MOST_POPULATION_NUMBERS // size, 16, POPULATION_CLASSES))
        parts = []
        for m in range(self.classes):
            drawn = np.sort(
                rng.choice(users, min(-(-number // self.classes), users), replace=False)
            )
            sweep = slice(m, m + 1)
            parts.append(self.answers.levels(people.take(drawn), items, sweep)[:, 0])
        return np.concatenate(parts).astype(np.float64)


def no_ratings(choices: Points) -> People:
    """Return users of whom nothing but choices is modeled."""
    empty = np.zeros((1, choices.shape[1], 0), dtype=choices.dtype)
    return People(choices, empty, empty, empty)


def as_grades(known: Any, scale: RatingLevels) -> Any:
    """Return level numbers plus one as grades of choices."""
    levels = known.data - 1
    if scale.implicit:
        return with_data(known, np.ones_like(known.data))
    places = (levels >= scale.middle).astype(np.intp) + (levels >= scale.at_least(None))
    return with_data(known, GRADES.astype(known.dtype)[places])


def as_standardized(known: Any, values: Single) -> Any:
    """Return level numbers plus one as standardized ratings."""
    return with_data(known, values[known.data.astype(np.intp) - 1].astype(known.dtype))


def fit_trait_model(
    known: Any,
    scale: RatingLevels,
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
    policy : TraitPolicy
        Tuned numbers.
    session : Session
        Randomness and progress. From the first kept sweep on, it is offered what ``finish`` makes
        of the sweeps so far.
    finish : callable
        Takes the model, the users, and whether Ctrl-C ended the fit.
    """
    traits, draws, rating_traits = policy.of_shape(known.shape[0], known.shape[1], known.nnz)
    standard = standardize(scale.values, scale.values[known.data.astype(np.intp) - 1])
    rated = as_standardized(known, standard[0])
    choice_sweeps = sample_choices(as_grades(known, scale), traits, policy, session.rng)
    rating_sweeps = sample_ratings(rated, rating_traits, policy, session.rng)
    choices, ratings = list[TraitSweep](), list[TraitSweep]()

    def so_far(interrupted: bool = True) -> T:
        *parts, users, _ = stack(choices)
        people, model = no_ratings(users), None
        if not scale.implicit:
            model, *tastes = RatingModel.of(ratings, rated, standard, policy)
            people = People(users, *tastes)
        return finish(TraitModel(ChoiceModel(*parts), model, scale, policy), people, interrupted)

    countdown = Countdown(policy.burn_in + draws)
    with one_blas_thread():
        for sweep in range(policy.burn_in + draws):
            choice = next(choice_sweeps)
            more = [] if scale.implicit else [next(rating_sweeps) for _ in range(RATING_SWEEPS)]
            if sweep >= policy.burn_in:
                ratings.extend(more)
                choices.append(choice)
                session.offer(so_far, certain=True)
            left = countdown.tell(sweep + 1)
            session.report(f"sweep {sweep + 1} of {policy.burn_in + draws}{left}")
        return so_far(False)
