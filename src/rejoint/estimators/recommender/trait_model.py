"""TraitModel: what users choose and how they rate it, fitted, and asked about any user.

A user's kept sweeps are the classes of a small joint: given the class, the user's choices and
ratings are independent. There are as many classes as kept sweeps of ratings, and each kept sweep of
choices serves several of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy import sparse

from rejoint import kernels
from rejoint.arrays import FloatArray, IntArray
from rejoint.estimators.recommender.choice_model import (
    ChoiceDraw,
    ChoiceModel,
    chosen_share,
    logits,
    sample_choices,
)
from rejoint.estimators.recommender.rating_model import (
    RatingDraw,
    RatingModel,
    Standard,
    Tastes,
    pair_means,
    sample_ratings,
)
from rejoint.estimators.recommender.ratings import RatingLevels
from rejoint.estimators.recommender.traits import (
    PointPrior,
    Single,
    TraitPolicy,
    as_cells,
    choice_half,
    rating_half,
    split_bias,
)
from rejoint.kernels.trait_steps import GRADES
from rejoint.messages import Countdown
from rejoint.solver.session import Session, one_blas_thread

T = TypeVar("T")

Features = tuple[Single | None, Single | None]
"""Of users (U, F) and of items (N, G)."""

PAIR_BLOCK = 2**16
"""Pairs of user and item that are predicted at once."""

POPULATION_CLASSES, MOST_POPULATION_NUMBERS = 240, 2**23
"""Classes of the joint of all users, fewer where it would have more numbers than this (64 MB)."""

RATING_SWEEPS = 2
"""Sweeps of ratings for each sweep of choices."""


class People(NamedTuple):
    """Where some users stand in the kept sweeps: of choices (M, B, d), and of ratings."""

    choices: Single
    tastes: Tastes | None

    def take(self, users: IntArray) -> "People":
        """Some of the users."""
        tastes = None if self.tastes is None else self.tastes.take(users)
        return People(self.choices[:, users], tastes)

    def append(self, more: "People") -> "People":
        """These users and some more."""
        choices = np.concatenate([self.choices, more.choices], axis=1)
        if self.tastes is None or more.tastes is None:
            return People(choices, None)
        return People(choices, self.tastes.append(more.tastes))


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

    def place(self, known: Any, features: Single | None = None) -> People:
        """Place users by what they have rated: level numbers plus one, (users, items)."""
        with one_blas_thread():
            grades = as_grades(known, self.scale)
            found = self.choices.place(grades, features, self.policy)
        return People(found, self.place_tastes(known, features))

    def place_tastes(self, known: Any, features: Single | None = None) -> Tastes | None:
        """Find how users rate by what they have rated; None in a model of choices alone."""
        if self.ratings is None:
            return None
        cells = as_standardized(known, self.ratings.values)
        return self.ratings.place(cells, features, self.policy)

    def nobody(self, features: Single | None = None) -> People:
        """A user of whom nothing is known, not even what was not chosen."""
        found = np.zeros((len(self.choices.items), 1, self.choices.items.shape[2]), np.float32)
        if features is not None:
            found += features @ self.choices.user_weights
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
            for shares in self.chosen(people, items):
                yield np.stack([1.0 - shares, shares], axis=-1)
            return
        _, variance, use = people.tastes
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
            found += self.ratings.within(pair_means(points[users], things[items]))
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
            choices, parts = self.choices, []
            for points, things, offsets in zip(
                people.choices, choices.items, choices.offsets, strict=True
            ):
                parts.append(chosen_share(pair_means(points[users], things[items]), offsets))
            shares = np.mean(parts, axis=0, dtype=np.float64)
            return np.stack([1.0 - shares, shares], axis=-1)
        points, variance, use = people.tastes.take(users)
        means = self.ratings.within(pair_means(points, self.ratings.items[:, items]))
        rows = np.ascontiguousarray(means.T)  # a row for each pair, a column for each class
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
            prior = PointPrior(model.precision[m], np.zeros(points.shape[1], dtype=np.float32))
            drawn, _ = choice_half(
                points,
                model.item_draws[m],
                as_grades(mine, self.scale),
                prior,
                model.offsets[m],
                self.policy,
                rng,
            )
            shares = chosen_share(logits(drawn, model.items[m]), model.offsets[m])
            return np.stack([1.0 - shares, shares], axis=-1).astype(np.float64)
        rated = self.ratings
        cells = as_standardized(mine, rated.values)
        _, variance, use = people.tastes.take(users)
        prior = PointPrior(rated.precision[m], np.zeros(rated.items.shape[2], dtype=np.float32))
        cell_precision = np.repeat(1.0 / variance, np.diff(cells.indptr))
        drawn = rating_half(rated.item_draws[m], cells, cell_precision, prior, rng)[1]
        items = rated.items[m]
        means = rated.within(drawn[:, 1:] @ items[:, 1:].T + drawn[:, :1] + items[:, 0])
        return kernels.tilted_levels(means, variance, use, rated.values).astype(np.float64)


def as_grades(known: Any, scale: RatingLevels) -> Any:
    """Return level numbers plus one as grades of choices."""
    levels = known.data - 1
    if scale.implicit:
        data = np.ones(len(levels), dtype=np.float32)
    else:
        places = (levels >= scale.middle).astype(np.intp) + (levels >= scale.at_least(None))
        data = GRADES.astype(np.float32)[places]
    return as_cells(sparse.csr_array((data, known.indices, known.indptr), shape=known.shape))


def as_standardized(known: Any, values: Single) -> Any:
    """Return level numbers plus one as standardized ratings."""
    data = values[known.data.astype(np.intp) - 1]
    return as_cells(sparse.csr_array((data, known.indices, known.indptr), shape=known.shape))


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
    rating_sweeps: Iterator[RatingDraw] = iter(())
    standard = Standard.of(scale.values, scale.values[known.data.astype(np.intp) - 1])
    if not scale.implicit:
        rated = as_standardized(known, standard.values)
        rating_sweeps = sample_ratings(rated, features, rating_traits, policy, session.rng)
    choices: list[ChoiceDraw] = []
    ratings: list[RatingDraw] = []

    def so_far(interrupted: bool = True) -> T:
        model, users = ChoiceModel.of(choices)
        if rated is None:
            return finish(TraitModel(model, None, scale, policy), People(users, None), interrupted)
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
