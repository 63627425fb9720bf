"""Small samples: the posterior mean beats independence and maximum likelihood."""

import numpy as np
import pytest
from small_records import random_pmf

import rejoint as rj
from rejoint.estimation import estimate


@pytest.fixture(scope="module")
def errors():
    """Relative errors of the joint for 5 variables of 10 levels, 5 classes, 1000 records."""
    truth = random_pmf(0, (10,) * 5, 5)
    data = truth.sample(1000, random_state=1)
    table = truth.to_dense()

    def error(pmf):
        return float(np.linalg.norm(pmf.to_dense() - table) / np.linalg.norm(table))

    bayes = estimate(data, 5, random_state=0)
    return {
        "mean": error(bayes.posterior.mixture),
        "ml": error(estimate(data, 5, "ml", random_state=0).pmf),
        "map": error(estimate(data, 5, "map", random_state=0).pmf),
        "independence": error(estimate(data, 1, "ml").pmf),
    }


def test_posterior_mean_is_best(errors):
    assert errors["mean"] < errors["ml"]
    assert errors["mean"] < errors["independence"]


def test_a_prior_helps_the_mode_too(errors):
    assert errors["map"] < errors["ml"]


def test_intervals_hold_what_they_promise_about():
    truth = random_pmf(3, (3,) * 4, 2)
    data = truth.sample(400, random_state=1)
    posterior = estimate(data, 2, "bayes", random_state=0).posterior
    inside = []
    for a, b in [(a, b) for a in range(4) for b in range(4) if a != b]:
        for level in range(3):
            given = {f"x{b}": level}
            low, high = posterior.interval(f"x{a}", given=given, level=0.9)
            exact = truth.marginal(f"x{a}", given=given)
            inside.append((low <= exact) & (exact <= high))
    # 108 dependent cells of one model: far from 90 % only if the bounds are wrong.
    assert np.mean(inside) > 0.7
    assert rj.metrics.total_variation(truth, posterior.mixture) < 0.15
