"""Smaller models of the same joint: exact joining first, then fits."""

import numpy as np
import pytest

import rejoint as rj
from rejoint import metrics
from rejoint.factorization.reduce import least_rank
from rejoint.model import Model
from rejoint.pmf.compact import merge_classes


def random_pmf(seed, shape=(3, 4, 2, 3), rank=3):
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.ones(levels), size=rank).T for levels in shape]
    return rj.LowRankPMF(rng.dirichlet(np.full(rank, 3.0)), factors)


def merged(p, rank):
    few = merge_classes(Model.of(p.weights, p.factors), rank)
    return rj.LowRankPMF.of_model(few, p.domain)


def test_copies_and_dead_classes_go_without_a_fit():
    p = random_pmf(0)
    order = [2, 0, 1]
    turned = rj.LowRankPMF(p.weights[order], [a[:, order] for a in p.factors])
    mean = rj.LowRankPMF.average([p, turned, random_pmf(1)], weights=[1, 2, 0])
    pmf, error = mean.reduce(rank=3)
    assert pmf.equals(p, tol=1e-12)
    assert error < 1e-14


def test_classes_that_differ_in_one_variable_are_one():
    a, b = [0.2, 0.8], [0.3, 0.7]
    p = rj.LowRankPMF([0.5, 0.5], [np.array([a, a]).T, np.array([[0.1, 0.9], b]).T])
    pmf, error = p.reduce()
    assert pmf.rank == 1
    assert error < 1e-15
    single = rj.LowRankPMF([0.5, 0.5], [np.array([a, b]).T])
    assert single.reduce().pmf.rank == 1


def test_a_model_that_is_small_enough_is_left_alone():
    p = random_pmf(0)
    pmf, error = p.reduce(rank=5)
    assert pmf is p
    assert error == 0.0


def test_the_least_rank_is_that_of_the_joint():
    for rank in (1, 2, 4):
        p = random_pmf(rank, (4, 4, 4, 4), rank)
        wide = rj.LowRankPMF.from_dense(p.to_dense())
        assert least_rank(wide.weights, wide.factors, 1e-8) == rank
    # A tolerance lets small parts go: a class of weight 1e-6 is not worth a rank.
    p = random_pmf(0, (4, 4, 4), 2)
    q = rj.LowRankPMF.average([p, random_pmf(1, (4, 4, 4), 1)], weights=[1.0, 1e-6])
    assert least_rank(q.weights, q.factors, 1e-3) == 2
    assert least_rank(q.weights, q.factors, 1e-9) == 3


def test_the_least_rank_is_a_lower_bound_of_the_error():
    p = random_pmf(3, (4, 4, 4), 4)
    for rank in (1, 2, 3):
        error = metrics.tensor_error(p, merged(p, rank))
        assert least_rank(p.weights, p.factors, error * (1 + 1e-9)) <= rank


def test_merging_keeps_the_single_marginals():
    p = random_pmf(0, rank=6)
    few = merged(p, 2)
    assert few.rank == 2
    for name in p.domain.names:
        np.testing.assert_allclose(few.marginal(name), p.marginal(name), atol=1e-14)


def test_wishes_that_make_no_sense():
    with pytest.raises(ValueError, match="rank must be at least 1; got 0"):
        random_pmf(0).reduce(rank=0)
    with pytest.raises(ValueError, match="tol must not be negative; got -1"):
        random_pmf(0).reduce(tol=-1)


def test_a_dense_joint_of_low_rank_gets_its_rank_back():
    p = random_pmf(0, (4, 4, 4, 4), 3)
    wide = rj.LowRankPMF.from_dense(p.to_dense())
    assert wide.rank > 3
    pmf, error = wide.reduce()
    assert pmf.rank == 3
    assert error < 1e-8
    assert metrics.factor_error(p, pmf) < 1e-6


def test_the_average_of_near_models_is_nearly_of_their_rank():
    p = random_pmf(0, (4, 4, 4, 4, 4), 3)
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(5):
        factors = [a * np.exp(0.05 * rng.standard_normal(a.shape)) for a in p.factors]
        order = rng.permutation(3)
        draws.append(
            rj.LowRankPMF(p.weights[order], [(a / a.sum(axis=0))[:, order] for a in factors])
        )
    mean = rj.LowRankPMF.average(draws)
    pmf, error = mean.reduce(rank=3)
    assert pmf.rank == 3
    assert error <= metrics.tensor_error(mean, merged(mean, 3))
    assert error == pytest.approx(metrics.tensor_error(mean, pmf), rel=1e-9)
    assert error < 0.02
    assert mean.reduce(tol=0.02).pmf.rank <= 3


def test_two_variables_are_a_matrix():
    p = random_pmf(0, (5, 6), 2)
    wide = rj.LowRankPMF.from_dense(p.to_dense())
    pmf, error = wide.reduce(rank=2)
    assert pmf.rank == 2
    assert error < 1e-6


def test_a_small_joint_is_fitted_as_a_whole():
    table = np.random.default_rng(0).dirichlet(np.full(81, 0.5)).reshape(3, 3, 3, 3)
    p = rj.LowRankPMF.from_dense(table)
    _, error = p.reduce(rank=5)
    # No model of rank 5 comes nearer than the singular values of an unfolding allow; a fit to
    # tables of three alone stays at 0.39.
    assert least_rank(p.weights, p.factors, error * (1 + 1e-9)) <= 5
    assert error < 0.36
