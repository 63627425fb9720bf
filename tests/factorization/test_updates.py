"""The two subproblems of the paper: where their ADMM steps lead."""

import numpy as np
import pytest
from scipy.optimize import minimize
from small_models import (
    all_subsets,
    blocks,
    model_table,
    random_model,
    random_problem,
    unpacked,
)

from rejoint.factorization.admm import factor_update
from rejoint.factorization.problem import mttkrp, weights_update
from rejoint.identifiability import gram_sums


def quadratic(seed, rows, rank):
    """A Gram matrix and a target whose free minimum lies outside the simplex."""
    rng = np.random.default_rng(seed)
    design = rng.random((3 * rank, rank))
    return design.T @ design, 2 * rng.standard_normal((rows, rank))


def assert_optimal(slope, columns):
    """The slope is the same wherever a column is positive and no smaller where it is zero."""
    for d, p in zip(slope.T, columns.T, strict=True):
        level = d @ p  # the multiplier of "sums to one"
        # 1e-8: what two thousand steps leave of numbers near one, by a wide margin.
        assert np.all(d >= level - 1e-8)
        assert np.all(np.abs(d - level)[p > 1e-7] < 1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_factor_update_reaches_the_optimum(seed):
    gram, target = quadratic(seed, rows=5, rank=3)
    start = np.full((5, 3), 0.2)
    factor, dual = factor_update(gram, target, start, np.zeros((5, 3)), 2000)
    np.testing.assert_allclose(factor.sum(axis=0), 1, atol=1e-12)
    assert factor.min() == 0.0  # the constraint binds, or this tests nothing
    assert_optimal(factor @ gram - target, factor)
    again, _ = factor_update(gram, target, factor, dual, 1)
    np.testing.assert_allclose(again, factor, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_weights_update_reaches_the_optimum(seed):
    gram, target = quadratic(seed, rows=1, rank=5)
    target = target[0]
    even = np.full(5, 0.2)
    weights, _ = weights_update(gram, target, even, np.zeros(5), 2000)
    assert weights.shape == (5,)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert_optimal((gram @ weights - target)[:, None], weights[:, None])
    found = minimize(
        lambda w: 0.5 * w @ gram @ w - target @ w,
        even,
        jac=lambda w: gram @ w - target,
        bounds=[(0, 1)] * 5,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    # SLSQP stops at an objective within 1e-14, which is a point within about its root.
    np.testing.assert_allclose(weights, found.x, atol=1e-6)


def test_a_singular_gram_matrix_is_no_obstacle():
    ones = np.ones((3, 3))  # three classes that look the same
    factor, _ = factor_update(ones, np.ones((2, 3)), np.full((2, 3), 0.5), np.zeros((2, 3)), 500)
    np.testing.assert_allclose(factor, 0.5, atol=1e-9)


def exact_problem(seed, levels, subsets, rank):
    """Tables of a model, and the model."""
    weights, factors = unpacked(random_model(seed, levels, rank))
    empty = random_problem(0, levels, subsets)
    tables = tuple(model_table(empty, weights, factors, s) for s in subsets)
    return type(empty)(empty.levels, empty.subsets, tables, empty.weight), weights, factors


@pytest.mark.parametrize("n", range(4))
def test_a_factor_is_recovered_given_the_rest(n):
    # First, middle and last variable of its tables: each unfolding must match its product.
    problem, weights, factors = exact_problem(4, (4, 3, 5, 2), all_subsets(4, 3), 3)
    gram = np.outer(weights, weights) * gram_sums.factor_gram(
        problem.families, gram_sums.gram_stack(problem.layout, factors), n
    )
    target = mttkrp(problem, factors, n) * weights
    levels = problem.levels[n]
    even, none = np.full((levels, 3), 1 / levels), np.zeros((levels, 3))
    found, _ = factor_update(gram, target, even, none, 5000)
    np.testing.assert_allclose(found, blocks(problem, factors)[n], atol=1e-7)
