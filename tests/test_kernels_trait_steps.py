"""Steps of a model of traits: compiled against NumPy, and both against their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from rejoint import kernels
from rejoint.kernels import trait_steps


def single(array):
    return np.ascontiguousarray(array, dtype=np.float32)


def random_cells(rng, rows, columns):
    found = sparse.random_array((rows, columns), density=0.4, format="csr", rng=rng)
    return single(found.data), found.indptr.astype(np.int32), found.indices.astype(np.int32)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 40))
def test_moments_of_grades(seed, rows, columns):
    rng = np.random.default_rng(seed)
    logits = single(rng.normal(0, rng.choice([1.0, 30.0]), (rows, columns)))
    bias, offsets = single(rng.normal(size=columns)), single(rng.choice([0.0, 0.4, 3.0], 2))
    mean, twin = logits.copy(), logits.copy()
    variance, sums = kernels.grade_moments(mean, bias, offsets)
    twin_variance, twin_sums = trait_steps.numpy_grade_moments(twin, bias, offsets)
    # Exponentials of single precision, to the tenth power: some 1e-6.
    assert mean == pytest.approx(twin, abs=5e-6)
    assert variance == pytest.approx(twin_variance, abs=5e-6)
    assert sums == pytest.approx(twin_sums, rel=1e-5, abs=1e-4)
    x = np.clip(logits.astype(np.float64) + bias, -60.0, 60.0)
    low, middle = offsets.astype(np.float64)
    odds = np.stack([np.ones_like(x), low * np.exp(0.3 * x), middle * np.exp(0.7 * x), np.exp(x)])
    shares = odds / odds.sum(axis=0)
    grades = np.array([0.0, 0.3, 0.7, 1.0])
    expected = np.tensordot(grades, shares, 1)
    assert mean == pytest.approx(expected, abs=1e-5)
    assert variance == pytest.approx(np.tensordot(grades**2, shares, 1) - expected**2, abs=1e-5)
    assert sums == pytest.approx(shares[1:].sum(axis=(1, 2)), rel=1e-4, abs=1e-4)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.integers(1, 9))
def test_newton_steps(seed, rows, d):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(rows, d + 2, d))
    full = np.einsum("rkd,rke->rde", roots, roots) + np.eye(d)
    upper = np.triu_indices(d)
    hessian = single(full[:, upper[0], upper[1]])
    points, gradient = single(rng.normal(size=(rows, d))), single(3 * rng.normal(size=(rows, d)))
    noise = single(rng.normal(size=(rows, d)))
    found = points.copy(), noise.copy()
    twin = points.copy(), noise.copy()
    kernels.newton_draws(found[0], gradient, hessian, found[1], 1.5)
    trait_steps.numpy_newton_draws(twin[0], gradient, hessian, twin[1], 1.5)
    for one, other in zip(found, twin, strict=True):
        # Condition numbers below a thousand or so, in single precision.
        assert one == pytest.approx(other, rel=1e-3, abs=1e-3)
    step = np.linalg.solve(full, gradient[:, :, None])[:, :, 0]
    length = np.abs(step).max(axis=1, keepdims=True, initial=0.0)
    step *= np.minimum(1.0, 1.5 / np.maximum(length, 1e-9))
    assert found[0] - points == pytest.approx(step, rel=1e-3, abs=1e-3)


def test_draws_have_the_covariance():
    """Draws around the ends: with the inverse of the second derivatives as covariance."""
    rng, count = np.random.default_rng(0), 200_000
    full = np.array([[2.0, 0.5], [0.5, 1.0]])
    hessian = np.tile(single([2.0, 0.5, 1.0]), (count, 1))
    points, noise = np.zeros((count, 2), np.float32), rng.standard_normal((count, 2), np.float32)
    kernels.newton_draws(points, np.zeros((count, 2), np.float32), hessian, noise, 1.0)
    # Standard errors of variances are 0.003.
    assert np.cov(noise.T) == pytest.approx(np.linalg.inv(full), abs=0.015)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.integers(1, 20))
def test_cells(seed, rows, columns):
    rng = np.random.default_rng(seed)
    weights, starts, places = random_cells(rng, rows, columns)
    a, b = single(rng.normal(size=(rows, 5))), single(rng.normal(size=(columns, 5)))
    wide = single(rng.normal(size=(columns, 7)))
    found = kernels.cell_products(a, b, starts, places)
    assert found == pytest.approx(trait_steps.numpy_cell_products(a, b, starts, places), abs=1e-5)
    dense = a @ b.T
    row = np.repeat(np.arange(rows), np.diff(starts))
    assert found == pytest.approx(dense[row, places], abs=1e-5)
    args = (2 * weights, weights, b, wide, starts, places)
    for one, other in zip(
        kernels.cell_sums(*args), trait_steps.numpy_cell_sums(*args), strict=True
    ):
        assert one == pytest.approx(other, abs=1e-4)
    matrix = sparse.csr_array((weights, places, starts), shape=(rows, columns)).toarray()
    assert kernels.cell_sums(*args)[1] == pytest.approx(matrix @ wide, abs=1e-4)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(2, 10))
def test_levels_of_given_means(seed, columns, levels):
    rng = np.random.default_rng(seed)
    values = single(np.sort(rng.normal(size=levels)) + 0.1 * np.arange(levels))
    inner = rng.uniform(0.02, 0.98, (3, columns)) * (values[-1] - values[0]) + values[0]
    means, variance = single(inner), single(rng.uniform(0.2, 1.0, 3))
    use = single(rng.uniform(0.1, 3.0, (3, levels)))
    found = kernels.tilted_levels(means, variance, use, values)
    assert found.sum(axis=-1) == pytest.approx(np.ones((3, columns)), abs=1e-5)
    assert found @ values == pytest.approx(means, abs=2e-3)  # the tolerance is 1e-3
    twin = trait_steps.numpy_tilted_levels(means, variance, np.log(use), values)
    # Either may take one step more where a mean is just within the tolerance.
    assert found == pytest.approx(twin, abs=5e-3)
    # Tilted: the odds of levels beside the normal density and the use are exponential in values.
    plain = use[:, None] * np.exp(-(values**2) / (2 * variance[:, None, None]))
    logs = np.log(np.maximum(found, 1e-30) / plain)
    slopes = np.diff(logs, axis=-1) / np.diff(values)
    there = (found[..., 1:] > 1e-6) & (found[..., :-1] > 1e-6)
    first = np.where(there, slopes, np.nan)
    spread = np.nanmax(first, axis=-1, initial=-np.inf) - np.nanmin(first, axis=-1, initial=np.inf)
    assert spread[np.isfinite(spread)].max(initial=0.0) < 0.05


def test_a_cell_does_not_depend_on_others():
    rng = np.random.default_rng(0)
    values, means = single(np.linspace(-2, 1, 5)), single(rng.uniform(-1.9, 0.9, (1, 37)))
    one, use = np.ones(1, np.float32), np.ones((1, 5), np.float32)
    whole = kernels.tilted_levels(means, one, use, values)
    alone = [kernels.tilted_levels(means[:, [k]].copy(), one, use, values)[0, 0] for k in range(37)]
    # Single precision: NumPy sums rows of another length in another order.
    assert whole[0] == pytest.approx(np.array(alone), abs=5e-7)


def test_arguments_are_checked():
    square, vector = np.zeros((2, 2), np.float32), np.zeros(2, np.float32)
    starts, places = np.array([0, 1, 1], np.int32), np.zeros(1, np.int32)
    with pytest.raises(TypeError, match="single precision"):
        kernels.grade_moments(square, np.zeros(2), vector)
    with pytest.raises(ValueError, match="a number for each column"):
        kernels.grade_moments(square, np.zeros(3, np.float32), vector)
    with pytest.raises(ValueError, match="must fit together"):
        kernels.newton_draws(square, square, square, square, 1.0)
    with pytest.raises(ValueError, match="begin with zero"):
        kernels.cell_products(square, square, starts[:2] + 1, places)
    with pytest.raises(ValueError, match="in 2 columns"):
        kernels.cell_products(square, square, starts, places + 2)
    with pytest.raises(ValueError, match="a target and a weight for each cell"):
        kernels.cell_sums(vector, vector, square, square, starts, places)
    with pytest.raises(ValueError, match="a factor for each level"):
        kernels.tilted_levels(square, vector, square[:1], vector)
