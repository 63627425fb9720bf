"""Passes over records with a hidden class: compiled, NumPy, and record by record."""

from math import fsum, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_twins import by_twin

from rejoint import kernels

compiled = pytest.mark.skipif(kernels.backend != "native", reason="kernels are not compiled")


def twin(codes, weight, weights, factors, levels, threads=1):
    return by_twin(kernels.class_pass, codes, weight, weights, factors, levels)


PASSES = [
    pytest.param(twin, id="numpy"),
    pytest.param(kernels.class_pass, id="native", marks=compiled),
]


def random_codes(rng, rows, levels, missing=0.4, dtype=np.int16):
    codes = np.stack([rng.integers(0, n, size=rows) for n in levels], axis=1)
    codes[rng.random(codes.shape) < missing] = -1
    return np.ascontiguousarray(codes, dtype=dtype)


def random_model(rng, levels, rank, concentration=1.0):
    factors = [rng.dirichlet(np.full(n, concentration), size=rank).T for n in levels]
    return rng.dirichlet(np.ones(rank)), np.concatenate(factors)


def posterior_of(row, weights, factors, starts):
    """Logarithm of the probability of one record, and the posterior, by exact sums of logs."""
    seen = [start + code for start, code in zip(starts, row, strict=True) if code >= 0]
    terms = np.vstack([weights, factors[seen]]).T
    logs = [fsum(np.log(numbers)) if numbers.min() > 0 else -np.inf for numbers in terms]
    top = max(logs)
    if top == -np.inf:
        return -np.inf, np.zeros(len(weights))
    shares = np.exp(np.array(logs) - top)
    return top + log(shares.sum()), shares / shares.sum()


def brute_force(codes, weight, weights, factors, levels):
    """Record by record."""
    starts = np.concatenate([[0], np.cumsum(levels)])[:-1]
    total, classes, counts = 0.0, np.zeros(len(weights)), np.zeros(factors.shape)
    for i, row in enumerate(codes):
        mass = 1.0 if weight is None else weight[i]
        log_prob, posterior = posterior_of(row, weights, factors, starts)
        total += mass * log_prob if mass else 0.0
        classes += mass * posterior
        for start, code in zip(starts, row, strict=True):
            if code >= 0:
                counts[start + code] += mass * posterior
    return total, classes, counts


def assert_same(found, truth, rtol=1e-11):
    """Equal to rounding: logarithms of records are sums of some numbers, here of a few hundred."""
    assert found[0] == pytest.approx(truth[0], rel=rtol, abs=1e-9)
    np.testing.assert_allclose(found[1], truth[1], rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(found[2], truth[2], rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("class_pass", PASSES)
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rank", [1, 3, 4, 7, 20, 32, 33, 70])
def test_against_brute_force(class_pass, dtype, weighted, rank):
    rng = np.random.default_rng(rank)
    levels = [2, 3, 1, 5, 4]
    codes = random_codes(rng, 150, levels, dtype=dtype)
    codes[:3] = -1  # wholly missing
    weights, factors = random_model(rng, levels, rank)
    weight = rng.random(150) * rng.integers(0, 2, size=150) if weighted else None
    found = class_pass(codes, weight, weights, factors, levels)
    assert_same(found, brute_force(codes, weight, weights, factors, levels))


@st.composite
def problems(draw):
    levels = draw(st.lists(st.integers(1, 4), max_size=5))
    rank = draw(st.integers(1, 6))
    cells = st.lists(st.tuples(*(st.integers(-1, n - 1) for n in levels)), max_size=20)
    rows = draw(cells)
    codes = np.array(rows, dtype=np.int16).reshape(len(rows), len(levels))
    numbers = st.sampled_from([0.0, 1e-320, 1e-300, 1e-200, 1e-5, 0.3, 0.5, 1.0, 7.0, 1e200, 1e308])
    weights = draw(st.lists(numbers, min_size=rank, max_size=rank))
    size = sum(levels) * rank
    factors = np.array(draw(st.lists(numbers, min_size=size, max_size=size)))
    mass = draw(
        st.lists(st.sampled_from([0.0, 0.5, 3.0]), min_size=len(codes), max_size=len(codes))
    )
    weight = draw(st.sampled_from([None, np.array(mass)]))
    return codes, weight, np.array(weights), factors.reshape(-1, rank), levels


@settings(max_examples=100, deadline=None)
@given(problem=problems())
def test_any_numbers_at_all(problem):
    # Zeros, numbers that cannot be normalised, products beyond the range of doubles.
    truth = brute_force(*problem)
    assert_same(twin(*problem), truth)
    assert_same(kernels.class_pass(*problem), truth)
    codes, _, weights, factors, levels = problem
    starts = np.concatenate([[0], np.cumsum(levels)])[:-1]
    log_prob, posterior = kernels.class_posterior(codes, weights, factors, levels)
    for i, row in enumerate(codes):
        one, classes = posterior_of(row, weights, factors, starts)
        assert log_prob[i] == pytest.approx(one, rel=1e-11, abs=1e-9)
        np.testing.assert_allclose(posterior[i], classes, rtol=1e-11, atol=1e-12)


@compiled
@pytest.mark.parametrize("missing", [0.0, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, 4095, 8191, 8192, 30_001])
def test_compiled_equals_twin_across_chunks(rows, missing):
    # Sizes around a block's 64 records and a chunk's 4,096.
    rng = np.random.default_rng(rows)
    levels = [2, 2, 3, 7, 2, 5]
    codes = random_codes(rng, rows, levels, missing)
    weights, factors = random_model(rng, levels, 5)
    weight = rng.random(rows)
    truth = twin(codes, weight, weights, factors, levels)
    assert_same(kernels.class_pass(codes, weight, weights, factors, levels, 3), truth)


@compiled
@pytest.mark.parametrize("rank", [5, 50])
@pytest.mark.parametrize("variables", [6, 900])
def test_threads_do_not_change_a_bit(rank, variables):
    rng = np.random.default_rng(rank)
    levels = [3] * variables
    codes = random_codes(rng, 60_000 // (1 + variables // 100), levels)
    weights, factors = random_model(rng, levels, rank)
    weight = rng.random(len(codes))
    one = kernels.class_pass(codes, weight, weights, factors, levels, 1)
    for threads in (2, 3, 7, 100):
        other = kernels.class_pass(codes, weight, weights, factors, levels, threads)
        assert other[0] == one[0]
        np.testing.assert_array_equal(other[1], one[1])
        np.testing.assert_array_equal(other[2], one[2])


@compiled
@pytest.mark.parametrize("missing", [0.0, 0.5, 0.95])  # by logarithms, some groups, few groups
@pytest.mark.parametrize(("rank", "levels"), [(20, 50), (50, 20)])
def test_rows_that_outgrow_a_cache_are_gone_through_in_parts(rank, levels, missing):
    rng = np.random.default_rng(rank)
    levels = [levels] * 150  # rows of 1.2 MB, where a part has one
    codes = random_codes(rng, 3000, levels, missing)
    codes[7] = -1
    weight = rng.integers(0, 3, size=len(codes)).astype(float)
    weights, factors = random_model(rng, levels, rank)
    truth = twin(codes, weight, weights, factors, levels)
    assert_same(kernels.class_pass(codes, weight, weights, factors, levels, 1), truth)
    cells = kernels.SparseCodes.of_codes(codes, levels)
    found = [kernels.class_pass(cells, weight, weights, factors, levels, t) for t in (1, 2)]
    assert_same(found[0], truth)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    each = [kernels.class_posterior(x, weights, factors, levels, 1) for x in (codes, cells)]
    np.testing.assert_allclose(each[0][1], each[1][1], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(each[0][1].sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("class_pass", PASSES)
@pytest.mark.parametrize("missing", [0.1, 0.5])
def test_thousands_of_variables_do_not_underflow(class_pass, missing):
    rng = np.random.default_rng(0)
    levels = [4] * 3_000
    codes = random_codes(rng, 70, levels, missing)
    codes[3:5, 100:] = -1  # among them some that would not
    weights, factors = random_model(rng, levels, 3)
    found = class_pass(codes, None, weights, factors, levels)
    assert np.isfinite(found[0])
    # Logarithms near -5,000 are sums of 3,000: exact to 1e-12 each, and differences enter exp.
    assert_same(found, brute_force(codes, None, weights, factors, levels), rtol=1e-8)


@pytest.mark.parametrize("class_pass", PASSES)
def test_a_class_that_falls_far_behind_can_win_in_the_end(class_pass):
    # After 1,000 variables the first class is e^-1000 times as probable, in the end equally so.
    lean, other = 1 / (1 + np.e), np.e / (1 + np.e)
    one, two = np.array([[lean, other], [other, lean]]), np.array([[other, lean], [lean, other]])
    factors = np.concatenate([one] * 1_000 + [two] * 1_000)
    codes = np.zeros((2, 2_000), dtype=np.int16)
    codes[1, -1] = 1
    _, classes, _ = class_pass(codes, None, np.array([0.5, 0.5]), factors, [2] * 2_000)
    # One half, and a share of 1 / (1 + e^2): sums of 2,000 logarithms, exact to some 1e-12.
    assert classes[0] == pytest.approx(0.5 + 1 / (1 + np.exp(2)), rel=1e-10)


@pytest.mark.parametrize("class_pass", PASSES)
def test_impossible_records_count_for_nothing(class_pass):
    factors = np.array([[1.0, 0.0], [0.0, 0.5], [0.0, 0.5]])
    weights = np.array([1.0, 0.0])
    codes = np.array([[0], [1], [-1]], dtype=np.int16)
    total, classes, counts = class_pass(codes, None, weights, factors, [3])
    assert total == -np.inf
    np.testing.assert_array_equal(classes, [2.0, 0.0])
    np.testing.assert_array_equal(counts, [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    total, classes, _ = class_pass(codes, np.array([2.0, 0.0, 1.0]), weights, factors, [3])
    assert total == 0.0  # the impossible one has no weight
    np.testing.assert_array_equal(classes, [3.0, 0.0])


@pytest.mark.parametrize("class_pass", PASSES)
def test_parameters_need_not_be_normalised(class_pass):
    rng = np.random.default_rng(5)
    levels = [3, 4, 2]
    codes = random_codes(rng, 500, levels)
    weights, factors = random_model(rng, levels, 4)
    total, classes, counts = class_pass(codes, None, weights, factors, levels)
    more = class_pass(codes, None, 8.0 * weights, factors * 1e30, levels)
    np.testing.assert_allclose(more[1], classes, rtol=1e-12)  # the same but for rounding
    np.testing.assert_allclose(more[2], counts, rtol=1e-12)
    observed = (codes >= 0).sum()
    expected = total + 500 * np.log(8.0) + observed * np.log(1e30)
    assert more[0] == pytest.approx(expected, rel=1e-12)


@compiled
def test_many_levels_and_many_variables():
    rng = np.random.default_rng(6)
    levels = [int(n) for n in rng.integers(1, 60, size=40)] + [3_000]
    codes = random_codes(rng, 9_000, levels, 0.9)
    weights, factors = random_model(rng, levels, 6)
    truth = twin(codes, None, weights, factors, levels)
    assert_same(kernels.class_pass(codes, None, weights, factors, levels, 2), truth)


@compiled
def test_posterior_equals_its_twin():
    rng = np.random.default_rng(7)
    levels = [4] * 9
    codes = random_codes(rng, 20_000, levels)
    weights, factors = random_model(rng, levels, 11)
    truth = by_twin(kernels.class_posterior, codes, weights, factors, levels)
    for threads in (1, 3):
        log_prob, posterior = kernels.class_posterior(codes, weights, factors, levels, threads)
        # Sums of ten logarithms or products of ten factors.
        np.testing.assert_allclose(log_prob, truth[0], rtol=1e-13)
        np.testing.assert_allclose(posterior, truth[1], rtol=1e-12)
        only = kernels.class_log_prob(codes, weights, factors, levels, threads)
        np.testing.assert_array_equal(only, log_prob)
    only = by_twin(kernels.class_log_prob, codes, weights, factors, levels)
    np.testing.assert_array_equal(only, truth[0])


@compiled
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
@pytest.mark.parametrize("missing", [0.0, 0.5, 0.95])
@pytest.mark.parametrize("levels", [[127, 128, 5, 200], [5] * 21])
def test_types_of_codes_do_not_change_a_bit(dtype, missing, levels):
    rng = np.random.default_rng(9)
    codes = random_codes(rng, 9_000, [min(n, 128) for n in levels], missing, np.int16)
    codes[17] = -1
    weights, factors = random_model(rng, levels, 5)
    weight = rng.integers(0, 3, size=9_000).astype(float)
    other = codes.astype(dtype)
    model = weights, factors, levels
    for one, two in (
        (kernels.class_pass(c, weight, *model, 2) for c in (codes, other)),
        (kernels.class_draws(c, weight, *model, 3, 2) for c in (codes, other)),
        (kernels.class_posterior(c, *model, 2) for c in (codes, other)),
        ([kernels.class_log_prob(c, *model)] for c in (codes, other)),
    ):
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a, b)
    assert_same(kernels.class_pass(other, weight, *model), twin(other, weight, *model))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("variables", [0, 1, 3, 8, 20, 21])
def test_records_that_have_a_value(dtype, variables):
    rng = np.random.default_rng(variables)
    codes = random_codes(rng, 300, [5] * variables, 0.9, dtype) if variables else np.ones((3, 0))
    codes = codes.astype(dtype)
    truth = (codes >= 0).any(axis=1)
    np.testing.assert_array_equal(kernels.has_value(codes), truth)
    np.testing.assert_array_equal(kernels.has_value(np.asfortranarray(codes)), truth)
    if variables and dtype is not np.int64:
        sparse = kernels.SparseCodes.of_codes(codes, [5] * variables)
        np.testing.assert_array_equal(kernels.has_value(sparse), truth)


@pytest.mark.parametrize(
    ("bad", "dtype"),
    [
        *((bad, np.int8) for bad in (2, -2, 127, -128)),
        *((bad, np.int16) for bad in (2, -2, 32_767, -32_768)),
        *((bad, np.int32) for bad in (2, -2, 2**31 - 1, -(2**31))),
    ],
)
def test_codes_out_of_range_are_refused(bad, dtype):
    codes = np.zeros((20_000, 2), dtype=dtype)
    codes[15_000, 1] = bad
    weights, factors = np.ones(2), np.ones((5, 2))
    for call in (
        lambda: kernels.class_pass(codes, None, weights, factors, [3, 2], 2),
        lambda: kernels.class_draws(codes, None, weights, factors, [3, 2], 0, 2),
        lambda: kernels.class_posterior(codes, weights, factors, [3, 2]),
        lambda: kernels.class_log_prob(codes, weights, factors, [3, 2]),
    ):
        with pytest.raises(ValueError, match=r"between -1 \(missing\) and the number of levels"):
            call()


@pytest.mark.parametrize(
    ("bad", "dtype"), [(-2, np.int8), (-128, np.int8), (-2, np.int16), (-32_768, np.int16)]
)
def test_more_levels_than_codes_can_tell(bad, dtype):
    factors, most = np.ones((40_000, 1)), np.iinfo(dtype).max
    codes = np.array([[most], [0]], dtype=dtype)
    assert kernels.class_pass(codes, None, np.ones(1), factors, [40_000])[2][most, 0] == 1
    codes[1] = bad
    with pytest.raises(ValueError, match="between -1"):
        kernels.class_pass(codes, None, np.ones(1), factors, [40_000])


def test_what_does_not_fit_together_is_refused():
    codes = np.zeros((4, 2), dtype=np.int16)
    weights, factors = np.ones(2), np.ones((5, 2))

    def refused(
        kind, words, codes=codes, weight=None, weights=weights, factors=factors, levels=(3, 2)
    ):
        with pytest.raises(kind, match=words):
            kernels.class_pass(codes, weight, weights, factors, levels)

    refused(ValueError, r"shape \(4, 2\), but there are 1 variable", levels=[5])
    refused(
        ValueError, r"factors have shape \(5, 2\); levels and weights need \(7, 2\)", levels=[3, 4]
    )
    refused(ValueError, r"need \(5, 3\)", weights=np.ones(3))
    refused(ValueError, r"one number per class", weights=np.ones((1, 2)))
    refused(ValueError, r"one number per class", weights=np.ones(0), factors=np.ones((5, 0)))
    refused(ValueError, r"needs at least one level, got 0", levels=[5, 0])
    refused(ValueError, r"weight has shape \(3,\), but there are 4 records", weight=np.ones(3))
    refused(TypeError, r"int8, int16 or int32, got int64", codes=codes.astype(np.int64))
    for number in (-1.0, np.nan, np.inf):
        refused(ValueError, r"weights must be finite and not neg", weights=np.array([1.0, number]))
        refused(ValueError, r"factors must be finite and not neg", factors=np.full((5, 2), number))
        refused(ValueError, r"weight must be finite and not neg", weight=np.full(4, number))


def test_arguments_are_left_alone_and_may_be_laid_out_otherwise():
    rng = np.random.default_rng(8)
    levels = [3, 3]
    codes = random_codes(rng, 100, levels)
    weights, factors = random_model(rng, levels, 2)
    truth = kernels.class_pass(codes, None, weights, factors, levels)
    arrays = [np.asfortranarray(codes), weights, np.asfortranarray(factors)]
    for array in arrays:
        array.flags.writeable = False
    assert_same(kernels.class_pass(arrays[0], None, *arrays[1:], levels), truth)
