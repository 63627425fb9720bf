"""Projection onto the simplex and ADMM steps: compiled, NumPy, and brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from rejoint import kernels
from rejoint.kernels.simplex import numpy_admm_steps, numpy_project_columns

compiled = pytest.mark.skipif(kernels.backend != "native", reason="kernels are not compiled")
matrices = arrays(
    float, array_shapes(min_dims=2, max_dims=2, max_side=40), elements=st.floats(-1e3, 1e3)
)


def by_bisection(column):
    """The threshold t at which sum(max(x - t, 0)) = 1, by halving."""
    low, high = column.min() - 1.0, column.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(column - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(column - (low + high) / 2, 0)


@given(matrices)
def test_projection_against_bisection(matrix):
    expected = np.stack([by_bisection(column) for column in matrix.T], axis=1)
    # Thresholds near 1e3 are known to 1e-13 of that.
    np.testing.assert_allclose(numpy_project_columns(matrix), expected, atol=1e-9)
    np.testing.assert_allclose(kernels.project_columns(matrix), expected, atol=1e-9)


@given(matrices)
def test_projection_leaves_its_own_result_alone(matrix):
    once = kernels.project_columns(matrix)
    np.testing.assert_allclose(once.sum(axis=0), 1.0, atol=1e-9)
    np.testing.assert_allclose(kernels.project_columns(once), once, atol=1e-9)


def test_a_number_in_which_one_is_lost_is_projected_too():
    huge = np.array([[1e300], [0.0]])
    for project in (numpy_project_columns, kernels.project_columns):
        assert np.isfinite(project(huge)).all()


@compiled
@pytest.mark.parametrize("along_rows", [False, True])
@pytest.mark.parametrize(("rows", "rank"), [(1, 1), (3, 2), (30, 5), (4, 40)])
def test_steps_equal_their_twin(rows, rank, along_rows):
    rng = np.random.default_rng(rows + rank)
    design = rng.random((2 * rank, rank))
    inverse = np.linalg.inv(design.T @ design + 0.7 * np.eye(rank))
    target, factor, dual = rng.random((3, rows, rank))
    ours = kernels.admm_steps(inverse, target, factor, dual, 0.7, 12, along_rows=along_rows)
    twins = numpy_admm_steps(inverse, target, factor, dual, 0.7, 12, along_rows)
    for mine, other in zip(ours, twins, strict=True):
        # The same sums in another order, twelve times over.
        np.testing.assert_allclose(mine, other, atol=1e-12)


@compiled
@pytest.mark.parametrize("wrong", range(4))
def test_shapes_that_do_not_fit_are_refused(wrong):
    arrays = [np.eye(3), np.ones((2, 3)), np.ones((2, 3)), np.zeros((2, 3))]
    arrays[wrong] = np.ones((1, 2))
    with pytest.raises(ValueError, match="Shapes do not fit"):
        kernels.admm_steps(*arrays, 1.0, 5)


@compiled
def test_steps_leave_their_arguments_alone():
    factor, dual = np.full((2, 3), 0.5), np.zeros((2, 3))
    kernels.admm_steps(np.eye(3), np.ones((2, 3)), factor, dual, 1.0, 5)
    assert (factor == 0.5).all()
    assert (dual == 0.0).all()
