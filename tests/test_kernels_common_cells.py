"""Records most of whose cells hold one level: passes as over a table of all cells, but cheaper."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_twins import by_twin

import rejoint as rj
from rejoint import kernels
from rejoint.estimation.data import InMemory

compiled = pytest.mark.skipif(kernels.backend != "native", reason="kernels are not compiled")


def random_codes(rng, rows, levels, departing, missing=0.0, dtype=np.int8):
    """Each variable has a common level, from which some of the records depart."""
    columns = []
    for size, share in zip(levels, departing, strict=True):
        common = rng.integers(size)
        codes = np.where(rng.random(rows) < share, rng.integers(size, size=rows), common)
        columns.append(codes)
    codes = np.stack(columns, axis=1)
    codes[rng.random(codes.shape) < missing] = -1
    return np.ascontiguousarray(codes, dtype=dtype)


def random_model(rng, levels, rank, concentration=1.0):
    columns = [rng.dirichlet(np.full(n, concentration), size=rank).T for n in levels]
    return rng.dirichlet(np.ones(rank)), np.concatenate(columns)


def assert_same(found, truth, rtol=1e-10):
    assert found[0] == pytest.approx(truth[0], rel=rtol, abs=1e-9)
    # What is left of the counts of a class is exact to the rounding of these.
    top = max(1.0, float(np.max(truth[1], initial=0.0)))
    np.testing.assert_allclose(found[1], truth[1], rtol=rtol, atol=1e-13 * top)
    np.testing.assert_allclose(found[2], truth[2], rtol=rtol, atol=1e-13 * top)


def assert_all_same(codes, weight, weights, factors, levels, rtol=1e-10):
    """All passes of the compiled kernels against their twins."""
    model = weights, factors, levels
    arguments = codes, weight, *model
    assert_same(kernels.class_pass(*arguments), by_twin(kernels.class_pass, *arguments), rtol)
    each = kernels.class_posterior(codes, *model)
    truth = by_twin(kernels.class_posterior, codes, *model)
    np.testing.assert_allclose(each[0], truth[0], rtol=rtol, atol=1e-10)
    np.testing.assert_allclose(each[1], truth[1], rtol=1e3 * rtol, atol=1e-12)
    np.testing.assert_allclose(
        kernels.class_log_prob(codes, *model),
        by_twin(kernels.class_log_prob, codes, *model),
        rtol=rtol,
        atol=1e-10,
    )
    mass = None if weight is None else np.rint(weight)
    found = kernels.class_draws(codes, mass, *model, 5)
    drawn = by_twin(kernels.class_draws, codes, mass, *model, 5)
    assert found[0] == pytest.approx(drawn[0], rel=rtol, abs=1e-9)
    assert found[1].sum() == drawn[1].sum()
    np.testing.assert_array_equal(found[2].sum(axis=1), drawn[2].sum(axis=1))


@compiled
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    variables=st.integers(1, 140),
    rank=st.sampled_from([1, 2, 5, 12, 33, 64, 65, 100]),
    departing=st.sampled_from([0.0, 0.02, 0.1, 0.3, 1.0]),
    missing=st.sampled_from([0.0, 0.0, 0.03, 0.6]),
    dtype=st.sampled_from([np.int8, np.int16, np.int32]),
)
def test_compiled_equals_twin(seed, variables, rank, departing, missing, dtype):
    rng = np.random.default_rng(seed)
    levels = rng.choice([1, 2, 2, 2, 3, 6], size=variables).tolist()
    # Some variables have no common level, and some are complete although others are not.
    shares = np.where(rng.random(variables) < 0.2, 1.0, departing)
    holes = np.where(rng.random(variables) < 0.5, missing, 0.0)
    codes = random_codes(rng, 200, levels, shares, holes, dtype)
    weight = rng.integers(0, 40, size=200) * 1.0 if seed % 2 else None
    assert_all_same(codes, weight, *random_model(rng, levels, rank), levels)


@compiled
@pytest.mark.parametrize("lowest", [0.0, 1e-320, 1e-300, 1e-100, 1e-20])
@pytest.mark.parametrize("variables", [3, 70, 400])
def test_common_levels_that_a_class_hardly_has(lowest, variables):
    """A class may rule out, or nearly, what most records hold."""
    rng = np.random.default_rng(variables)
    levels = [2] * variables
    codes = random_codes(rng, 300, levels, [0.1] * variables)
    weights, factors = random_model(rng, levels, 4)
    for v in range(0, variables, 3):
        rows = factors[2 * v : 2 * v + 2]
        common = int(codes[:, v].mean() > 0.5)
        rows[common, v % 4], rows[1 - common, v % 4] = lowest, 1.0
    assert_all_same(codes, None, weights, factors, levels)
    assert_all_same(codes, None, weights * 1e200, factors, levels)


@compiled
def test_records_that_no_class_allows():
    codes = np.zeros((100, 80), dtype=np.int8)
    codes[7, 3] = 1  # impossible in all classes
    codes[9, 5] = 1  # possible in the second one
    factors = np.full((160, 2), 0.5)
    factors[2 * 3 + 1] = 0.0
    factors[2 * 5 + 1] = [0.0, 0.5]
    weights = np.array([0.5, 0.5])
    total, classes, counts = kernels.class_pass(codes, None, weights, factors, [2] * 80)
    assert total == -np.inf
    np.testing.assert_allclose(classes, [49.0, 50.0])
    np.testing.assert_allclose(counts[2 * 5 : 2 * 5 + 2], [[49.0, 49.0], [0.0, 1.0]])
    log_prob = kernels.class_log_prob(codes, weights, factors, [2] * 80)
    np.testing.assert_array_equal(np.flatnonzero(log_prob == -np.inf), [7])
    assert log_prob[9] == pytest.approx(np.log(0.5) + 80 * np.log(0.5))


@compiled
@pytest.mark.parametrize("departing", [0.02, 0.3])
@pytest.mark.parametrize(("variables", "rank"), [(60, 10), (60, 150), (700, 40), (2500, 3)])
def test_threads_do_not_change_a_bit(variables, rank, departing):
    rng = np.random.default_rng(variables)
    levels = [2, 3] * (variables // 2)
    codes = random_codes(rng, 14_000, levels, [departing] * variables)
    weight = rng.integers(0, 30, size=len(codes)).astype(float)
    weights, factors = random_model(rng, levels, rank, 3.0)
    for run in (
        lambda threads: kernels.class_pass(codes, weight, weights, factors, levels, threads),
        lambda threads: kernels.class_draws(codes, weight, weights, factors, levels, 3, threads),
        lambda threads: (0.0, *kernels.class_posterior(codes, weights, factors, levels, threads)),
    ):
        one = run(1)
        for threads in (2, 5):
            for a, b in zip(run(threads), one, strict=True):
                np.testing.assert_array_equal(a, b)


@compiled
@pytest.mark.parametrize("rank", [64, 80, 150])
@pytest.mark.parametrize("departing", [0.05, 1.0])
def test_rows_of_many_classes_are_gone_through_in_panels(rank, departing):
    rng = np.random.default_rng(rank)
    levels = [2] * 90
    codes = random_codes(rng, 5000, levels, [departing] * 90)
    assert_all_same(codes, rng.random(5000), *random_model(rng, levels, rank), levels)


@compiled
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_codes_out_of_range_are_refused(dtype):
    codes = np.zeros((300, 70), dtype=dtype)
    weights, factors = np.array([1.0]), np.full((140, 1), 0.5)
    for row, column, code in ((0, 0, 2), (299, 69, 2), (150, 66, -2)):
        bad = codes.copy()
        bad[row, column] = code
        for run in (
            lambda bad=bad: kernels.class_pass(bad, None, weights, factors, [2] * 70),
            lambda bad=bad: kernels.class_draws(bad, None, weights, factors, [2] * 70, 0),
            lambda bad=bad: kernels.class_log_prob(bad, weights, factors, [2] * 70),
        ):
            with pytest.raises(ValueError, match="Codes must lie between -1"):
                run()


def test_the_cost_of_data_is_in_what_departs():
    rng = np.random.default_rng(0)
    sparse = (rng.random((500, 60)) < 0.04).astype(np.int64)
    dense = rng.integers(0, 2, size=(500, 60))
    few, many = (InMemory.of(rj.Records.of(table)) for table in (sparse, dense))
    assert many.cells == many.codes.size
    rows = len(few.codes)
    assert few.cells == pytest.approx((few.codes > 0).sum() + rows, rel=0.1)
    holes = np.where(dense.astype(bool) & (rng.random(dense.shape) < 0.2), 1.0, np.nan)
    holed = InMemory.of(rj.Records.of(holes, levels={f"x{n}": [0, 1] for n in range(60)}))
    assert holed.cells == pytest.approx((holed.codes >= 0).sum() + len(holed.codes), rel=0.15)
