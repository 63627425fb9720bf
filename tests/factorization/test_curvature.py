"""Gradient and Gauss-Newton matrix against central differences and against each other."""

import numpy as np
import pytest
from small_models import all_subsets, model_table, random_model, random_problem, unpacked

from rejoint.factorization import newton as curvature
from rejoint.factorization.newton import softmax
from rejoint.model import Layout, Model

CASES = {
    "all triples": ((3, 2, 4, 2), all_subsets(4, 3), 2.5, ()),
    "all triples of many variables": ((2, 3, 2, 2, 1, 2, 2, 2), all_subsets(8, 3), True, ()),
    "orders 1 to 4": ((3, 2, 2, 3), all_subsets(4, 1, 2, 3, 4), True, ()),
    "mixed, partial, weighted": (
        (2, 4, 3, 2, 3),
        ((0, 1, 2), (1, 3), (4,), (0, 2, 3, 4)),
        False,
        (),
    ),
    "tables and moments": ((3, 2, 4), ((0, 1), (1, 2)), False, ((1, 2), (2, 3), (3, 2))),
    "moments alone": ((3, 2, 4), (), True, ((1, 3), (2, 3), (3, 1))),
}


@pytest.fixture(params=CASES, name="case")
def _case(request):
    levels, subsets, even, moments = CASES[request.param]
    problem = random_problem(3, levels, subsets, even, moments)
    rank = 3
    logits = np.random.default_rng(4).standard_normal((1 + sum(levels), rank))
    return problem, logits


def fitted_values(problem, logits):
    """All cells of the model's tables and all its moments, each times the root of its weight."""
    weights, factors = unpacked(softmax(problem.layout, logits))
    parts = [
        np.sqrt(weight) * model_table(problem, weights, factors, subset).ravel()
        for subset, weight in zip(problem.subsets, problem.weight, strict=True)
    ]
    for moments in problem.moments:
        value = moments.value - moments.gaps(weights, factors)
        parts.append(np.sqrt(moments.family.weight) * value)
    return np.concatenate(parts)


def central_differences(function, point, step=1e-5):
    slopes = []
    for k in range(point.size):
        move = np.zeros(point.size)
        move[k] = step
        move = move.reshape(point.shape)
        slopes.append((function(point + move) - function(point - move)) / (2 * step))
    return np.array(slopes)


def test_gradient(case):
    problem, logits = case
    model = softmax(problem.layout, logits)
    value, slope = problem.gradient(model)
    assert value == pytest.approx(problem.value(model), rel=1e-13)

    def at(stacked):
        return problem.value(Model.from_stacked(problem.layout, stacked))

    flat = central_differences(at, model.stacked)
    # Central differences with step 1e-5: 1e-10 from the third derivative, 1e-11 from rounding.
    np.testing.assert_allclose(slope.ravel(), flat, rtol=0, atol=1e-8)


def test_gradient_in_softmax_coordinates(case):
    problem, logits = case
    model = softmax(problem.layout, logits)
    pulled = curvature.softmax_pullback(model, problem.gradient(model)[1]).ravel()

    def value(at):
        return problem.value(softmax(problem.layout, at))

    flat = central_differences(value, logits)
    np.testing.assert_allclose(pulled, flat, rtol=0, atol=1e-8)


def test_matrix_is_that_of_the_jacobian(case):
    problem, logits = case
    jacobian = central_differences(lambda at: fitted_values(problem, at), logits)
    matrix = curvature.matrix(problem, softmax(problem.layout, logits))
    np.testing.assert_allclose(matrix, jacobian @ jacobian.T, rtol=0, atol=1e-8)


def test_product_is_the_matrix(case):
    problem, logits = case
    model = softmax(problem.layout, logits)
    matrix, product = curvature.matrix(problem, model), curvature.Product(problem, model)
    vectors = np.random.default_rng(5).standard_normal((4, model.stacked.size))
    for vector in vectors:
        np.testing.assert_allclose(product(vector), matrix @ vector, rtol=0, atol=1e-12)


def test_softmax_does_not_overflow():
    logits = np.array([[1e4, -1e4], [0, 0], [800, -800], [0, 0], [-1e4, 0], [1e4, 1e-300]])
    model = softmax(Layout((3, 2)), logits).stacked
    assert np.isfinite(model).all()
    for rows in ([0], [1, 2, 3], [4, 5]):
        sums = model[rows].sum(axis=1 if rows == [0] else 0)
        np.testing.assert_allclose(sums, 1, rtol=1e-14)


def test_diagonal_is_that_of_the_blocks():
    # With one class and one table of one variable there is nothing but that one block.
    problem = random_problem(3, (4,), ((0,),))
    model = random_model(4, (4,), 1)
    diagonal = curvature.Product(problem, model).diagonal
    np.testing.assert_allclose(
        diagonal[1:], np.diag(curvature.matrix(problem, model))[1:], rtol=1e-13
    )
