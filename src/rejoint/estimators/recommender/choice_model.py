"""ChoiceModel: which items users choose, and how well they like what they have chosen."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rejoint.arrays import FloatArray, IntArray
from rejoint.estimators.recommender.traits import (
    PointPrior,
    Side,
    Single,
    TraitPolicy,
    choice_half,
    transpose,
)
from rejoint.kernels.trait_steps import GRADES, LARGEST_LOGIT


class ChoiceDraw(NamedTuple):
    """What is kept of one sweep: the fields of :class:`ChoiceModel`, and the users."""

    items: Single
    item_draws: Single
    precision: Single
    offsets: Single
    user_weights: Single
    users: Single


@dataclass(frozen=True)
class ChoiceModel:
    """Kept sweeps of a model of choices: M of them, of N items with d numbers each.

    Parameters
    ----------
    items, item_draws : arrays (M, N, d)
        Conditional means of the items, by which answers are given, and draws of them, by which new
        users are placed.
    precision : array (M, d)
        Of the users' prior.
    offsets : array (M, 2)
        Odds of the two lower grades at a logit of zero.
    user_weights : array (M, F, d)
        What features of users move their prior means by; F is 0 without features.
    """

    items: Single
    item_draws: Single
    precision: Single
    offsets: Single
    user_weights: Single

    @classmethod
    def of(cls, draws: Sequence[ChoiceDraw]) -> tuple["ChoiceModel", Single]:
        """Make a model of kept sweeps, and the places of the users of the fit, (M, U, d)."""
        *parts, users = (np.array(part, dtype=np.float32) for part in zip(*draws, strict=True))
        return cls(*parts), users

    def place(self, grades: Any, features: Single | None, policy: TraitPolicy) -> Single:
        """Place users in each kept sweep by their choices alone, (M, users, d)."""
        size, number = self.items.shape[2], grades.shape[0]
        found = np.zeros((len(self.items), number, size), dtype=np.float32)
        for m, points in enumerate(found):
            mean = np.zeros(size, dtype=np.float32)
            if features is not None:
                mean = features @ self.user_weights[m]
            points[:] = mean
            prior = PointPrior(self.precision[m], mean)
            for _ in range(policy.place_steps):
                choice_half(
                    points, self.item_draws[m], grades, prior, self.offsets[m], policy, None
                )
        return found

    def shares(self, users: Single, items: IntArray | slice = slice(None)) -> Single:
        """Probability that users choose items in each kept sweep, (M, users, items)."""
        parts = zip(users, self.items, self.offsets, strict=True)
        return np.stack([chosen_share(logits(u, i[items]), o) for u, i, o in parts])


def logits(users: Single, items: Single) -> Single:
    """Logits of the choices of users and items, (users, items)."""
    found = users[:, 1:] @ items[:, 1:].T
    found += users[:, :1]
    found += items[:, 0]
    return np.asarray(found)


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
    grades: Any,
    features: tuple[Single | None, Single | None],
    traits: int,
    policy: TraitPolicy,
    rng: np.random.Generator,
) -> Iterator[ChoiceDraw]:
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
        yield ChoiceDraw(
            items.points.copy(),
            items.draws,
            users.prior.precision,
            offsets,
            users.weights,
            users.points.copy(),
        )


def start_choices(
    grades: Any,
    by_item: Any,
    features: tuple[Single | None, Single | None],
    traits: int,
    rng: np.random.Generator,
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
    one, none = [2.0], [np.nan] * traits
    return (
        Side(users, users.copy(), np.array(one + none), False, features[0]),
        Side(items, items.copy(), np.array(one + [0.2] * traits), True, features[1]),
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
