"""Levenberg-Marquardt: exact recovery, both ways to solve its equations, zeros."""

from dataclasses import replace

import numpy as np
import pytest
from small_models import all_subsets, random_model, random_pmf, random_problem

import rejoint as rj
from rejoint.factorization import Limits, Newton
from rejoint.factorization.newton import solve_directly
from rejoint.factorization.problem import make_problem
from rejoint.metrics import factor_error, tensor_error
from rejoint.model import Model
from rejoint.solver import run


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("dense_limit", [0, 10_000])
def test_exact_recovery_from_a_random_start(seed, dense_limit):
    truth = random_pmf(seed, (4, 3, 5, 4), 3, least=0.1)
    tables = rj.Marginals.from_pmf(truth, order=3)
    solver = Newton(dense_limit=dense_limit)
    result = rj.factorize(tables, 3, solver=solver, start="random", random_state=seed)
    # The tables are met to 1e-10; models of this size magnify that by less than 1e3.
    assert tensor_error(truth, result.pmf) < 1e-7
    assert factor_error(truth, result.pmf) < 1e-7
    # The weights themselves, not only the factors.
    np.testing.assert_allclose(result.pmf.weights, truth.sorted().weights, atol=1e-7)


def test_conjugate_gradients_reach_what_cholesky_reaches():
    # Tables that no model fits: both must end at the same minimum above zero.
    problem = random_problem(0, (3, 4, 3, 2), all_subsets(4, 3))
    start = random_model(1, problem.levels, 2)
    limits = Limits(max_steps=500, progress=0.0, residual=1e-9)
    dense = run(Newton(dense_limit=10_000, limits=limits), problem, start)
    iterated = run(Newton(dense_limit=0, limits=limits), problem, start)
    assert dense.objective > 1e-3
    # The objective is flat at its minimum: equal to the square of the residual.
    assert iterated.objective == pytest.approx(dense.objective, rel=1e-9)


def test_the_end_is_stationary_on_the_simplex():
    problem = random_problem(2, (3, 4, 3, 2), all_subsets(4, 3))
    start = random_model(3, problem.levels, 2)
    done = run(Newton(limits=Limits(max_steps=500, progress=0.0)), problem, start)
    assert done.residual < 1e-5
    assert done.stop in ("optimal", "progress")


def test_zeros_of_the_start_are_lifted():
    truth = random_pmf(5, (3, 3, 3), 2, least=0.3)
    problem = make_problem(rj.Marginals.from_pmf(truth, order=3), "equal")
    # A corner, from which no softmax comes out.
    corner = Model.of([1.0, 0.0], [np.eye(3)[:, :2]] * 3)
    assert Newton().init(problem, corner).model.stacked.min() > 0
    done = run(Newton(), problem, corner)
    # Two corners are as good a start as any for so small a model.
    assert done.error < 1e-9


def test_the_truth_is_left_where_it_is():
    truth = random_pmf(6, (4, 3, 3), 2)
    factors = [np.where(a < 0.1, 0.0, a) for a in truth.factors]
    sparse = rj.LowRankPMF(truth.weights, [a / a.sum(axis=0) for a in factors])
    assert any((a == 0).any() for a in sparse.factors)
    tables = rj.Marginals.from_pmf(sparse, order=3)
    result = rj.factorize(tables, 2, solver="newton", start=sparse)
    # Zeros are lifted by no more than the start's own error, which is rounding.
    assert tensor_error(sparse, result.pmf) < 1e-12


def test_each_step_obeys_its_damping():
    problem = random_problem(0, (3, 4, 3), all_subsets(3, 2))
    state = Newton().init(problem, random_model(1, problem.levels, 2))
    near = Newton().step(problem, replace(state, damping=1e6 * state.damping))
    far = Newton().step(problem, state)
    moves = [np.linalg.norm(s.logits - state.logits) for s in (near, far)]
    assert moves[0] < 1e-3 * moves[1]


def test_a_singular_matrix_is_damped_until_it_has_a_factor():
    move, promised = solve_directly(np.zeros((2, 2)), np.array([1.0, 0.0]), 1e-3)
    np.testing.assert_allclose(move, [-1000.0, 0.0])
    assert promised > 0
