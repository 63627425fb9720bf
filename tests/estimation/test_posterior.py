"""Posterior draws: their mean, and bounds of tables."""

import numpy as np
import pytest
from small_records import random_pmf

import rejoint as rj
from rejoint.pmf import Posterior

SHAPE = (2, 3)
DOMAIN = rj.Domain.of({"a": ["no", "yes"], "b": ["x", "y", "z"]})


def labelled(seed):
    pmf = random_pmf(seed, SHAPE, 2)
    return rj.LowRankPMF(pmf.weights, pmf.factors, DOMAIN)


DRAWS = tuple(labelled(seed) for seed in range(20))


def order_quantile(tables, share):
    """Between the sorted draws, the k-th of n being the quantile k / (n + 1)."""
    place = np.clip(share * (len(tables) + 1) - 1, 0, len(tables) - 1)
    below, rest = int(place), place - int(place)
    ordered = np.sort(tables, axis=0)
    return ordered[below] + rest * (ordered[min(below + 1, len(tables) - 1)] - ordered[below])


def test_few_draws_bound_the_next_one_as_often_as_stated():
    rng = np.random.default_rng(0)
    held = []
    for _ in range(300):
        *draws, fresh = (rj.LowRankPMF([1.0], [[[p], [1 - p]]]) for p in rng.random(20))
        low, high = Posterior(tuple(draws)).interval("x0", level=0.8)
        held.append(low[0] <= fresh.marginal("x0")[0] <= high[0])
    # Three standard deviations of a share of 300; NumPy's own quantiles hold 72 %.
    assert abs(np.mean(held) - 0.8) < 0.07


def test_mean_is_the_average_of_the_draws():
    mean = Posterior(DRAWS).mean
    exact = np.mean([draw.to_dense() for draw in DRAWS], axis=0)
    np.testing.assert_allclose(mean.to_dense(), exact, atol=1e-14)
    assert mean.domain == DOMAIN


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_bounds_are_quantiles_cell_by_cell(level):
    low, high = Posterior(DRAWS).interval(["b", "a"], level=level)
    tables = np.array([draw.to_dense().T for draw in DRAWS])
    assert low.shape == (3, 2)
    np.testing.assert_allclose(low, order_quantile(tables, (1 - level) / 2), atol=1e-14)
    np.testing.assert_allclose(high, order_quantile(tables, (1 + level) / 2), atol=1e-14)


def test_bounds_of_conditional_tables():
    low, high = Posterior(DRAWS).interval("b", given={"a": "yes"}, level=0.8)
    tables = np.array([d.to_dense()[1] / d.to_dense()[1].sum() for d in DRAWS])
    np.testing.assert_allclose(low, order_quantile(tables, 0.1), atol=1e-12)
    np.testing.assert_allclose(high, order_quantile(tables, 0.9), atol=1e-12)


def test_wider_levels_have_wider_bounds():
    posterior = Posterior(DRAWS)
    narrow, wide = (posterior.interval("b", level=level) for level in (0.5, 0.95))
    assert (wide[0] < narrow[0]).all()
    assert (wide[1] > narrow[1]).all()


@pytest.mark.parametrize("level", [0, 1, 90, -0.5, float("nan")])
def test_level_must_be_a_probability(level):
    with pytest.raises(ValueError, match=r"level must lie between 0 and 1, got .*; 0\.9 is usual"):
        Posterior(DRAWS).interval("a", level=level)


def test_unknown_names_are_errors():
    with pytest.raises(KeyError, match="c"):
        Posterior(DRAWS).interval("c")


def test_chains_have_spare_classes_only_where_larger_ranks_are_not_excluded():
    truth = rj.datasets.asia()
    few = rj.estimate(truth.sample(300, random_state=0), solver="bayes", random_state=0)
    assert few.selection.largest > few.pmf.rank
    assert {d.rank for d in few.posterior.draws} == {few.pmf.rank, few.selection.largest}
    told = rj.estimate(truth.sample(300, random_state=0), 2, solver="bayes", random_state=0)
    assert {d.rank for d in told.posterior.draws} == {2}
