"""Where the iterative solvers begin."""

import numpy as np
import pytest
from small_models import all_subsets, random_pmf, random_problem

import rejoint as rj
from rejoint.factorization.problem import (
    make_problem,
    mix_with_independence,
    own_shares,
    random_model,
)
from rejoint.model import Model


@pytest.fixture(name="problem")
def _problem():
    truth = random_pmf(0, (3, 4, 2), 2)
    return make_problem(rj.Marginals.from_pmf(truth, order=2), "equal")


def assert_simplex(problem, model):
    weights, factors = model.weights, model.factors
    assert min(weights.min(), factors.min()) >= 0
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(np.add.reduceat(factors, problem.layout.offsets[:-1]), 1, atol=1e-12)


def test_own_shares_are_those_of_the_tables(problem):
    truth = random_pmf(0, (3, 4, 2), 2)
    for name, share in zip(truth.domain.names, own_shares(problem), strict=True):
        np.testing.assert_allclose(share, truth.marginal([name]), atol=1e-14)


def test_a_variable_known_from_moments_alone_begins_even():
    domain = rj.Domain.of({"a": [0, 1], "b": [0, 1, 2]})
    tables = rj.Marginals.from_tables(
        {"a": [0.3, 0.7]}, domain=domain, moments={"b": 1.1, ("a", "b"): 0.1}
    )
    shares = own_shares(make_problem(tables, "equal"))
    np.testing.assert_allclose(shares[0], [0.3, 0.7])
    np.testing.assert_allclose(shares[1], [1 / 3] * 3)


def test_random_models_scatter_around_the_shares(problem):
    rng = np.random.default_rng(0)
    model = random_model(problem, 4000, rng)
    weights, factors = model.weights, model.factors
    assert_simplex(problem, model)
    np.testing.assert_allclose(weights, 1 / 4000)
    for n, share in enumerate(own_shares(problem)):
        mean = factors[problem.layout.rows(n)].mean(axis=1)
        wanted = np.maximum(len(share) * share, 1.0)
        # Columns scatter by less than .5, their mean of 4,000 by less than .01, at 4 sigma .03.
        np.testing.assert_allclose(mean, wanted / wanted.sum(), atol=0.03)
    assert factors.std(axis=1).min() > 0.01


def test_a_level_that_was_never_seen_may_still_be_drawn():
    tables = rj.Marginals.from_tables({("a", "b"): [[5, 5], [0, 0]]})
    problem = make_problem(tables, "equal")
    factors = random_model(problem, 50, np.random.default_rng(0)).factors
    assert factors[1].max() > 0


def test_inward_leaves_the_walls():
    problem = random_problem(0, (3, 2), all_subsets(2, 2))
    corner = Model.of([1.0, 0.0], [np.eye(3)[:, :2], np.eye(2)])
    model = mix_with_independence(problem, corner, share=0.3)
    weights, factors = model.weights, model.factors
    assert_simplex(problem, model)
    assert min(weights.min(), factors.min()) > 0
    np.testing.assert_allclose(weights, [0.85, 0.15])
    own = np.concatenate(own_shares(problem))
    np.testing.assert_allclose(factors, 0.7 * corner.factors + 0.3 * own[:, None])
