"""Traits of choices and of ratings: against brute force, recovery of a known world."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from rejoint.estimators import TraitPolicy
from rejoint.estimators.recommender.trait_model import (
    ChoiceModel,
    RatingModel,
    as_standardized,
    logits,
    no_ratings,
    sample_choices,
    sample_ratings,
    stack,
    standardize,
    user_prior,
)
from rejoint.estimators.recommender.traits import (
    PointPrior,
    as_cells,
    choice_half,
    rating_half,
)

POLICY = TraitPolicy()


def prior_of(d, precision=1.0):
    return PointPrior(np.full(d, precision, dtype=np.float32), np.zeros(d, dtype=np.float32))


def graded_world(rng, users, items, d):
    other = rng.normal(0, 0.7, (items, d)).astype(np.float32)
    grades = rng.choice([0.0, 0.3, 0.7, 1.0], (users, items), p=[0.6, 0.1, 0.1, 0.2])
    return other, as_cells(sparse.csr_array(grades))


def minus_log_density(point, other, grades, offsets, prior):
    """Of the grades of one user and the prior, by the definition of the model."""
    x = point[0] + other[:, 0] + other[:, 1:] @ point[1:]
    odds = [np.ones_like(x), offsets[0] * np.exp(0.3 * x), offsets[1] * np.exp(0.7 * x), np.exp(x)]
    which = np.abs(grades[:, None] - [0.0, 0.3, 0.7, 1.0]).argmin(axis=1)
    logs = np.log(np.stack(odds)) - np.log(np.sum(odds, axis=0))
    off = point - prior.mean
    return -logs[which, np.arange(len(x))].sum() + 0.5 * (prior.precision * off) @ off


def test_newton_steps_end_at_the_most_probable_point():
    rng = np.random.default_rng(0)
    other, grades = graded_world(rng, 4, 30, 3)
    offsets, prior = np.array([0.3, 0.5], np.float32), prior_of(3, 0.5)
    points = np.zeros((4, 3), np.float32)
    for _ in range(12):
        choice_half(points, other, grades, prior, offsets, POLICY, None)
    for user, row in enumerate(grades.toarray()):
        best = minimize(minus_log_density, np.zeros(3), (other, row, offsets, prior))
        assert points[user] == pytest.approx(best.x, abs=1e-3)  # single precision


def test_draws_have_the_curvature_of_the_density():
    rng = np.random.default_rng(0)
    other, grades = graded_world(rng, 1, 40, 2)
    offsets, prior = np.array([0.3, 0.5], np.float32), prior_of(2)
    point = np.zeros((1, 2), np.float32)
    for _ in range(12):
        choice_half(point, other, grades, prior, offsets, POLICY, None)
    args = (other, grades.toarray()[0], offsets, prior)
    h, bend = 1e-3, np.empty((2, 2))
    steps = h * np.eye(2)
    for j in range(2):
        for k in range(2):
            ends = [
                a * b * minus_log_density(point[0] + a * steps[j] + b * steps[k], *args)
                for a in (1, -1)
                for b in (1, -1)
            ]
            bend[j, k] = sum(ends) / (4 * h * h)
    copies = sparse.vstack([grades] * 20_000, format="csr")
    many = np.repeat(point, 20_000, axis=0)
    drawn, _ = choice_half(many, other, as_cells(copies), prior, offsets, POLICY, rng)
    # Expected and observed curvature are the same: the grade is the slope of the logs. Standard
    # errors of the covariances are one percent.
    assert np.cov(drawn.T) == pytest.approx(np.linalg.inv(bend), rel=0.06, abs=0.01)


def test_sampled_zeros_are_right_on_average():
    """Slopes and curvatures over all cells are estimated without bias from a sample."""
    rng = np.random.default_rng(0)
    other, grades = graded_world(rng, 1, 200, 3)
    offsets, prior = np.array([0.3, 0.5], np.float32), prior_of(3, 20.0)
    exact = np.zeros((1, 3), np.float32)
    _, sums = choice_half(exact, other, grades, prior, offsets, POLICY, None)
    copies = as_cells(sparse.vstack([grades] * 4000, format="csr"))
    points = np.zeros((4000, 3), np.float32)
    few = replace(POLICY, most_cells=4000 * 100, block_cells=100)
    _, sampled = choice_half(points, other, copies, prior, offsets, few, rng)
    # The step is smooth in the sums, whose errors are small beside the prior's precision.
    assert points.mean(axis=0) == pytest.approx(exact[0], abs=0.01)
    assert points.std(axis=0).min() > 1e-3
    # Chosen cells that were sampled count twice in the expected numbers, but not in the steps.
    assert (sampled / 4000 >= 0.95 * sums).all()


def test_ratings_given_one_side_are_exact():
    rng = np.random.default_rng(0)
    other = rng.normal(size=(12, 3)).astype(np.float32)
    ratings = as_cells(sparse.random_array((5, 12), density=0.5, rng=rng))
    weights = rng.uniform(0.5, 2.0, ratings.nnz).astype(np.float32)
    prior = PointPrior(np.array([2.0, 1.0, 0.5], np.float32), rng.normal(size=3).astype(np.float32))
    means, drawn = rating_half(other, ratings, weights, prior, None)
    assert drawn == pytest.approx(means, abs=1e-6)
    for user in range(5):
        cells = slice(ratings.indptr[user], ratings.indptr[user + 1])
        things = other[ratings.indices[cells]]
        free = np.column_stack([np.ones(len(things)), things[:, 1:]])
        bend = free.T @ (weights[cells, None] * free) + np.diag(prior.precision)
        slope = free.T @ (weights[cells] * (ratings.data[cells] - things[:, 0]))
        expected = np.linalg.solve(bend, slope + prior.precision * prior.mean)
        assert means[user] == pytest.approx(expected, abs=1e-4)


def test_choices_of_a_known_world():
    """Probabilities of choices by 400 users of 60 items, to within what so many cells can say."""
    rng = np.random.default_rng(0)
    users = np.column_stack([0.5 * rng.normal(size=400), rng.normal(size=(400, 2))])
    items = np.column_stack([rng.normal(-1.5, 1.0, 60), 1.3 * rng.normal(size=(60, 2))])
    truth = 1 / (1 + np.exp(-logits(users, items)))
    chosen = as_cells(sparse.csr_array((rng.random(truth.shape) < truth).astype(float)))
    sweeps = sample_choices(chosen, 6, POLICY, rng)
    draws = [next(sweeps) for _ in range(24)][4:]
    *parts, points, _ = stack(draws)
    model, draw = ChoiceModel(*parts), draws[-1]
    assert not model.offsets.any()
    found = model.means(no_ratings(points), np.arange(60)).mean(axis=0)
    assert found.mean() == pytest.approx(truth.mean(), abs=0.01)
    alone = np.abs(chosen.toarray().mean(axis=0) - truth).mean()
    assert np.abs(found - truth).mean() < 0.5 * alone
    # Traits beyond the two that there are shrink.
    spread = np.sort((draw.items[:, 1:] ** 2).mean(axis=0))[::-1]
    assert spread[:2].min() > 2 * spread[2:].max()


def test_expected_numbers_of_grades_are_those_observed():
    rng = np.random.default_rng(0)
    _, grades = graded_world(rng, 300, 40, 3)
    sweeps = sample_choices(grades, 2, POLICY, rng)
    draw = [next(sweeps) for _ in range(12)][-1]
    x = logits(draw.users, draw.items).astype(np.float64)
    odds = np.stack([draw.scale[0] * np.exp(0.3 * x), draw.scale[1] * np.exp(0.7 * x), np.exp(x)])
    expected = (odds / (1 + odds.sum(axis=0))).sum(axis=(1, 2))
    observed = [np.isclose(grades.data, g).sum() for g in (0.3, 0.7, 1.0)]
    assert expected == pytest.approx(observed, rel=0.05)


def rating_world(rng, users=400, items=50):
    people = np.column_stack([0.4 * rng.normal(size=users), rng.normal(size=(users, 2))])
    things = np.column_stack([0.5 * rng.normal(size=items), 0.5 * rng.normal(size=(items, 2))])
    truth = 3.5 + logits(people, things)
    return truth, rng.random(truth.shape) < 0.4


def test_ratings_of_a_known_world():
    rng = np.random.default_rng(0)
    truth, seen = rating_world(rng)
    stars = np.clip(np.round(truth + 0.6 * rng.normal(size=truth.shape)), 1, 5)
    known = as_cells(sparse.csr_array(np.where(seen, stars, 0)))
    standard = standardize(np.arange(1.0, 6.0), stars[seen])
    ratings = as_standardized(known, standard[0])
    sweeps = sample_ratings(ratings, 8, POLICY, rng)
    draws = [next(sweeps) for _ in range(40)][8:]
    model, points, variance, _ = RatingModel.of(draws, ratings, standard, POLICY)
    found = standard[1] + standard[2] * model.within(logits(points, model.items)).mean(axis=0)
    inside = ~seen & (truth > 1.5) & (truth < 4.5)
    root = np.sqrt(np.mean((found - truth)[inside] ** 2))
    items = np.where(seen, stars, np.nan)
    alone = np.sqrt(np.mean((np.nanmean(items, axis=0) - truth)[inside] ** 2))
    assert root < 0.5 * alone
    # A new user with the same ratings stands about where the user of the fit does.
    places, spread, _ = model.place(as_cells(ratings[:50]), POLICY)
    again = standard[1] + standard[2] * model.within(logits(places, model.items)).mean(axis=0)
    assert np.abs(again - found[:50]).mean() < 0.1
    assert spread == pytest.approx(variance[:, :50], rel=0.5)


def test_ratings_scatter_as_the_variances_say():
    rng = np.random.default_rng(3)
    truth, seen = rating_world(rng)
    stars = truth + 0.7 * rng.normal(size=truth.shape)
    rated = as_cells(sparse.csr_array(np.where(seen, stars, 0)))
    standard = standardize(np.arange(-2.0, 9.0), rated.data)
    rated.data = np.asarray((rated.data - standard[1]) / standard[2], dtype=np.float32)
    sweeps = sample_ratings(rated, 8, POLICY, rng)
    draws = [next(sweeps) for _ in range(40)][8:]
    model, points, variance, _ = RatingModel.of(draws, rated, standard, POLICY)
    mean = standard[1] + standard[2] * model.within(logits(points, model.items)).mean(axis=0)
    off = np.mean((stars - mean)[~seen] ** 2) / standard[2] ** 2
    # Eight traits, where there are two, fit some of the noise: a tenth of the variance.
    assert model.around_means(variance).mean() == pytest.approx(off, rel=0.15)
    assert variance.mean() < 0.8 * off  # without the variance of the means


def test_places_of_new_users_are_the_most_probable_ones():
    rng = np.random.default_rng(2)
    _, grades = graded_world(rng, 60, 30, 3)
    sweeps = sample_choices(grades, 3, POLICY, rng)
    model = ChoiceModel(*stack([next(sweeps) for _ in range(12)][4:])[:3])
    new = as_cells(grades[:5])
    for m, points in enumerate(model.place(new, POLICY)):
        further, prior = points.copy(), user_prior(model.precision[m])
        choice_half(further, model.items[m], new, prior, model.offsets[m], POLICY, None)
        assert further == pytest.approx(points, abs=0.02)  # another Newton step changes nothing


def test_users_have_their_own_use_of_levels():
    """Half of the users give whole stars only."""
    rng = np.random.default_rng(0)
    truth, seen = rating_world(rng)
    rounded = np.round(truth + 0.6 * rng.normal(size=truth.shape))
    halves = np.round(2 * (truth + 0.6 * rng.normal(size=truth.shape))) / 2
    stars = np.clip(np.where(np.arange(400)[:, None] % 2, halves, rounded), 1, 5)
    values = np.arange(1.0, 5.5, 0.5)
    known = as_cells(sparse.csr_array(np.where(seen, np.searchsorted(values, stars) + 1, 0)))
    standard = standardize(values, stars[seen])
    ratings = as_standardized(known, standard[0])
    sweeps = sample_ratings(ratings, 8, POLICY, rng)
    draws = [next(sweeps) for _ in range(12)][6:]
    *_, use = RatingModel.of(draws, ratings, standard, POLICY)
    half = np.arange(len(values)) % 2 == 1
    assert use[0, ::2][:, half].mean() < 0.3 * use[0, 1::2][:, half].mean()
