"""Latent traits: derivatives by differences, recovery of a known world, ways to save work."""

import numpy as np
import pytest
from scipy import sparse

from rejoint.estimators.recommender import traits
from rejoint.estimators.recommender.rating_model import UserEvidence, posterior_blocks
from rejoint.estimators.recommender.traits import (
    Traits,
    columns_at,
    curvature,
    fit_traits,
    newton_step,
    polynomials,
)


def one_hot(codes, size):
    user, item = np.nonzero(codes >= 0)
    columns = item * size + codes[user, item]
    shape = (len(codes), codes.shape[1] * size)
    return sparse.csr_array((np.ones(len(user)), (user, columns)), shape=shape)


def world(users, items, size, seed=0, seen=0.6):
    """Ratings by a model of two traits, and the model's own numbers."""
    rng = np.random.default_rng(seed)
    numbers = np.hstack(
        [0.5 * rng.standard_normal((items, size - 1)), 1.2 * rng.standard_normal((items, 2))]
    )
    if size > 2:
        numbers = np.hstack([numbers, 0.3 * rng.standard_normal((items, 2))])
    places = rng.standard_normal((users, 2))
    shares = np.exp(columns_at(numbers, places, size)).reshape(items, size, users)
    codes = (rng.random((items, 1, users)) > np.cumsum(shares, axis=1)).sum(axis=1).T
    codes = np.where(rng.random(codes.shape) < seen, np.minimum(codes, size - 1), -1)
    return codes, numbers


@pytest.mark.parametrize("size", [2, 3, 5])
def test_polynomials_are_orthonormal_and_sum_to_zero(size):
    found = polynomials(size)
    # Rounding of a QR of at most five columns.
    assert found.T @ found == pytest.approx(np.eye(size - 1), abs=1e-12)
    assert found.sum(axis=0) == pytest.approx(np.zeros(size - 1), abs=1e-12)
    assert (np.diff(found[:, 0]) > 0).all()


@pytest.mark.parametrize("size", [2, 3, 5])
def test_derivatives_by_differences(size):
    rng = np.random.default_rng(0)
    places = rng.standard_normal((7, 2))
    kinds = min(size - 1, 2)
    items = 0.5 * rng.standard_normal((3, size - 1 + 2 * kinds))
    counts = rng.random((3, size, 7))

    def value(x):
        logs = columns_at(x, places, size).reshape(counts.shape)
        return (counts * logs).sum(axis=(1, 2))

    columns = np.exp(columns_at(items, places, size)).reshape(counts.shape)
    expected = counts.sum(axis=1, keepdims=True) * columns
    bend = curvature(expected, columns, places, polynomials(size), kinds)
    h, number = 1e-4, items.shape[1]
    slope = np.empty_like(items)
    second = np.empty((3, number, number))
    steps = h * np.eye(number)
    for j in range(number):
        slope[:, j] = (value(items + steps[j]) - value(items - steps[j])) / (2 * h)
        for k in range(number):
            ends = [value(items + a * steps[j] + b * steps[k]) for a in (1, -1) for b in (1, -1)]
            second[:, j, k] = (ends[0] - ends[1] - ends[2] + ends[3]) / (4 * h * h)
    # Central differences: an error of h squared, and rounding of 1e-16 / h squared.
    assert bend == pytest.approx(-second, abs=1e-5)
    flat = np.full(number, 1e-3)
    found, spread = newton_step(
        items, counts, columns, places, polynomials(size), np.zeros(number), flat
    )
    full = bend + 1e-3 * np.eye(number)
    step = np.linalg.solve(full, (slope - 1e-3 * items)[:, :, None])[:, :, 0]
    length = np.abs(step).max(axis=1, keepdims=True)
    assert found - items == pytest.approx(step * np.minimum(1, 3.0 / length), abs=1e-4)
    assert spread == pytest.approx(np.linalg.inv(full).diagonal(axis1=1, axis2=2), rel=1e-6)


@pytest.mark.parametrize("size", [2, 5])
def test_recovers_the_joint(size):
    """Pairs of items of many users: as the world has them."""
    codes, numbers = world(6000, 6, size)
    solver = Traits(traits=3, points=128, sweeps=40, models=4)
    fit = fit_traits(UserEvidence(one_hot(codes, size)), size, solver, np.random.default_rng(0))
    truth = np.exp(columns_at(numbers, np.random.default_rng(1).standard_normal((40_000, 2)), size))
    found = np.exp(fit.log_columns)
    for a, b in ((0, 1), (2, 5)):
        rows = [slice(n * size, (n + 1) * size) for n in (a, b)]
        pairs = [m[rows[0]] @ m[rows[1]].T / m.shape[1] for m in (truth, found)]
        # A cell's share of 2,000 pairs has a standard error of at most 0.01.
        assert pairs[1] == pytest.approx(pairs[0], abs=0.025)


def test_background_is_what_it_says():
    """Bought or not: by background and by a table without holes, the same model."""
    codes, _ = world(300, 5, 2, seen=1.1)
    full = UserEvidence(one_hot(codes, 2))
    user, item = np.nonzero(codes == 1)
    done = sparse.csr_array((np.ones(len(user)), (user, 2 * item + 1)), shape=(300, 10))
    undone = sparse.csr_array((-np.ones(len(user)), (user, 2 * item)), shape=(300, 10))
    sparse_one = UserEvidence(sparse.csr_array(done + undone), np.tile([1.0, 0.0], 5))
    assert sparse_one.totals == pytest.approx(full.totals)
    solver = Traits(traits=2, points=32, sweeps=15, models=2)
    fits = [fit_traits(e, 2, solver, np.random.default_rng(0)) for e in (full, sparse_one)]
    # The same sums in another order: rounding, some of it carried along through 20 sweeps.
    assert fits[1].log_columns == pytest.approx(fits[0].log_columns, abs=1e-8)
    assert fits[1].history == pytest.approx(fits[0].history, rel=1e-10)


def test_blocks_do_not_matter(monkeypatch):
    codes, _ = world(200, 7, 3)
    evidence, solver = UserEvidence(one_hot(codes, 3)), Traits(2, 16, 10, 2)
    whole = fit_traits(evidence, 3, solver, np.random.default_rng(0))
    monkeypatch.setattr("rejoint.estimators.recommender.rating_model.BLOCK_NUMBERS", 16 * 7)
    monkeypatch.setattr(traits, "ITEM_BLOCK", 2 * 3 * 16)
    parts = fit_traits(evidence, 3, solver, np.random.default_rng(0))
    assert parts.log_columns == pytest.approx(whole.log_columns, abs=1e-9)


def test_some_users_are_enough_on_the_way(monkeypatch):
    codes, _ = world(4000, 6, 3)
    evidence, solver = UserEvidence(one_hot(codes, 3)), Traits(2, 64, 30, 2)
    whole = fit_traits(evidence, 3, solver, np.random.default_rng(0))
    monkeypatch.setattr(traits, "MOST_CELLS", evidence.cells.nnz // 5)
    quick = fit_traits(evidence, 3, solver, np.random.default_rng(0))
    values = []
    for fit in (whole, quick):
        start = np.full(fit.log_columns.shape[1], -np.log(fit.log_columns.shape[1]))
        found = posterior_blocks(evidence, fit.log_columns, start)
        values.append(sum(float(log_prob.sum()) for _, log_prob, _ in found))
    # 36 parameters: what they are worth by chance is about half as much in log-likelihood, five
    # times that with a fifth of the users. Independence is more than 400 below.
    shares = evidence.totals.reshape(-1, 3) / evidence.totals.reshape(-1, 3).sum(1, keepdims=True)
    alone = float(evidence.totals @ np.log(shares).ravel())
    assert values[0] > alone + 400
    assert abs(values[0] - values[1]) < 100


def test_equal_ratings_have_nothing_to_say():
    fit = fit_traits(UserEvidence(sparse.csr_array(np.ones((4, 3)))), 1, Traits(), None)
    assert fit.log_columns.shape == (3, 1)
    assert not fit.log_columns.any()


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="traits must be a whole number of at least 1, got 0"):
        Traits(traits=0)
