"""Compacting the mean of many models."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rejoint as rj
from rejoint.model import Layout, Model
from rejoint.pmf.compact import compact, merge, nearest

LAYOUT = Layout((2, 3, 4))


def random_model(rng, rank, sharp=1.0):
    columns = [rng.dirichlet(np.full(size, sharp), rank).T for size in LAYOUT.levels]
    return Model(LAYOUT, rng.dirichlet(np.ones(rank)), np.vstack(columns))


def near(model, rng, size=0.05):
    """A model with its classes moved a little, and in another order."""
    noise = np.exp(size * rng.standard_normal(model.stacked.shape))
    order = rng.permutation(model.rank)
    weights = model.weights * noise[0]
    columns = LAYOUT.normalize(model.factors * noise[1:])
    return Model(LAYOUT, (weights / weights.sum())[order], columns[:, order])


def dense(model):
    return rj.LowRankPMF(model.weights, model.parts).to_dense()


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 20))
def test_one_variable_tables_and_sums_are_kept(seed, rank, most):
    rng = np.random.default_rng(seed)
    models = [random_model(rng, rank) for _ in range(6)]
    found = compact(models, models[0], most)
    assert found.rank <= most
    assert found.weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(LAYOUT.sums(found.factors), 1.0)
    expected = np.mean([model.factors @ model.weights for model in models], axis=0)
    np.testing.assert_allclose(found.factors @ found.weights, expected, atol=1e-12)


@given(st.integers(0, 10**6))
def test_enough_classes_give_the_mean_itself(seed):
    rng = np.random.default_rng(seed)
    models, shares = [random_model(rng, 2) for _ in range(4)], rng.dirichlet(np.ones(4))
    found = compact(models, models[0], 8, shares)
    expected = sum(share * dense(model) for share, model in zip(shares, models, strict=True))
    np.testing.assert_allclose(dense(found), expected, atol=1e-14)


def test_draws_around_one_model_are_merged_class_by_class():
    rng = np.random.default_rng(0)
    truth = random_model(rng, 4, sharp=0.3)
    models = [near(truth, rng) for _ in range(40)]
    mean = np.mean([dense(model) for model in models], axis=0)
    found = compact(models, truth, 4)
    assert found.rank == 4
    # One of the models is farther from their mean than the merged one by a factor of 5 and more.
    assert np.abs(dense(found) - mean).sum() < 0.2 * np.abs(dense(models[0]) - mean).sum()
    more = compact(models, truth, 12)
    assert more.rank == 12
    assert np.abs(dense(more) - mean).sum() < np.abs(dense(found) - mean).sum()


def test_zeros_do_not_exclude():
    sharp = Model(
        LAYOUT, np.array([0.5, 0.5]), np.vstack([np.eye(size)[:, :2] for size in (2, 3, 4)])
    )
    found = nearest(sharp, random_model(np.random.default_rng(1), 5).factors.T)
    assert set(found) <= {0, 1}
    merged = merge(sharp, np.full(5, 0.2), random_model(np.random.default_rng(1), 5).factors, found)
    np.testing.assert_allclose(LAYOUT.sums(merged.factors), 1.0)


def test_a_fit_of_rank_one_stays_independent():
    data = rj.datasets.asia().sample(300, random_state=0)
    pmf = rj.estimate(data, 1, "bayes", random_state=0).pmf
    assert pmf.mixture.rank == 1
    assert float(pmf.ask("MI(smoke; lung)", level=None)) == pytest.approx(0.0, abs=1e-12)
