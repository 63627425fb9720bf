"""Classes drawn for records by both backends: as often as they should be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_twins import by_twin
from scipy import stats

from rejoint import kernels

compiled = pytest.mark.skipif(kernels.backend != "native", reason="kernels are not compiled")


def twin(codes, weight, weights, factors, levels, seed, threads=1):
    return by_twin(kernels.class_draws, codes, weight, weights, factors, levels, seed)


DRAWS = [
    pytest.param(twin, id="numpy"),
    pytest.param(kernels.class_draws, id="native", marks=compiled),
]


def random_problem(seed, rows, levels, rank, missing=0.4):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, n, size=rows) for n in levels], axis=1).astype(np.int16)
    codes[rng.random(codes.shape) < missing] = -1
    factors = np.concatenate([rng.dirichlet(np.ones(n), size=rank).T for n in levels])
    return codes, rng.dirichlet(np.ones(rank)), factors, levels


def assert_equal(found, truth):
    # Logarithms of records are exact to rounding, counts are whole numbers.
    assert found[0] == pytest.approx(truth[0], rel=1e-12)
    np.testing.assert_array_equal(found[1], truth[1])
    np.testing.assert_array_equal(found[2], truth[2])


@compiled
def test_threads_do_not_change_a_draw():
    codes, weights, factors, levels = random_problem(0, 50_000, [3] * 6, 5)
    one = kernels.class_draws(codes, None, weights, factors, levels, 3, 1)
    for threads in (2, 5, 64):
        other = kernels.class_draws(codes, None, weights, factors, levels, 3, threads)
        assert other[0] == one[0]
        assert_equal(other, one)
    other = kernels.class_draws(codes, None, weights, factors, levels, 4, 1)
    assert (other[1] != one[1]).any()


@pytest.mark.parametrize("class_draws", DRAWS)
def test_whole_counts_that_add_up(class_draws):
    codes, weights, factors, levels = random_problem(1, 3_000, [3, 5, 2], 4)
    weight = np.random.default_rng(2).integers(0, 600, size=3_000).astype(float)[:200]
    total, classes, counts = class_draws(codes[:200], weight, weights, factors, levels, 9)
    assert classes.sum() == weight.sum()
    seen = [[weight[codes[:200, n] == c].sum() for c in range(k)] for n, k in enumerate(levels)]
    np.testing.assert_array_equal(counts.sum(axis=1), np.concatenate(seen))
    np.testing.assert_array_equal(counts, counts.round())
    expected = kernels.class_pass(codes[:200], weight, weights, factors, levels)
    assert total == pytest.approx(expected[0], rel=1e-12)  # the same sum in another order


@pytest.mark.parametrize("class_draws", DRAWS)
@pytest.mark.parametrize("merged", [1, 20, 50, 200, 500, 100_000])
def test_classes_come_as_often_as_their_posterior_says(class_draws, merged):
    # 100,000 draws of one record, one by one or merged; the chi-square of five classes stays
    # below its 99.9 % quantile for 19 of 20 seeds (0.1 % of failures a seed are expected).
    joint = np.array([0.4, 0.3, 0.2, 0.0999, 0.0001])
    rows = 100_000 // merged
    codes, weight = np.zeros((rows, 1), dtype=np.int16), np.full(rows, float(merged))
    limit, beyond = stats.chi2(4).ppf(0.999), 0
    for seed in range(20 if merged > 500 or class_draws is not twin else 4):
        _, classes, _ = class_draws(codes, weight, np.ones(5), joint[None, :], [1], seed)
        beyond += (((classes - 1e5 * joint) ** 2) / (1e5 * joint)).sum() > limit
    assert beyond <= 1


@pytest.mark.parametrize("class_draws", DRAWS)
@pytest.mark.parametrize("number", [2, 13, 30, 100, 1_000])
def test_numbers_of_the_classes_are_multinomial(class_draws, number):
    # Where a class is expected more than 12 times its number is drawn at once, else one by one.
    posterior = np.array([0.45, 0.25, 0.0, 0.15, 0.1, 0.04, 0.01])
    rows = 4_000
    codes = np.arange(rows, dtype=np.int32)[:, None]
    factors = np.tile(posterior, (rows, 1))
    mass = np.full(rows, float(number))
    _, _, drawn = class_draws(codes, mass, np.ones(7), factors, [rows], number)
    assert not drawn[:, 2].any()
    np.testing.assert_array_equal(drawn.sum(axis=1), mass)
    expected = number * (np.diag(posterior) - np.outer(posterior, posterior))
    spread = np.sqrt(np.diag(expected))
    # Means of 4,000 numbers to 4 standard errors, covariances to 5, which are at most
    # sqrt((1 + r^2) / 4,000) of the spreads where numbers are normal; more where they are rare.
    assert np.all(np.abs(drawn.mean(axis=0) - number * posterior) <= 4 * spread / np.sqrt(rows))
    found = np.cov(drawn.T, bias=True)
    tail = 1 + 1 / np.sqrt(np.maximum(number * posterior, 1e-9))
    limit = 5 * np.sqrt(2 / rows) * np.outer(spread, spread) * np.minimum(np.outer(tail, tail), 30)
    assert np.all(np.abs(found - expected) <= limit + 1e-12)
    for f in (0, 3, 5):  # chi-square of the numbers of a class, 99.99 %
        law = stats.binom(number, posterior[f])
        values, times = np.unique(drawn[:, f], return_counts=True)
        common = rows * law.pmf(values) >= 5
        chance = law.pmf(values[common])
        seen = np.append(times[common], rows - times[common].sum())
        right = rows * np.append(chance, max(1 - chance.sum(), 1e-12))
        assert (((seen - right) ** 2) / np.maximum(right, 1.0)).sum() < stats.chi2(
            common.sum()
        ).ppf(0.9999)


@compiled
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    rank=st.integers(1, 70),
    most=st.sampled_from([1, 3, 30, 400, 10**5]),
    peaked=st.sampled_from([0.02, 0.3, 5.0]),
)
def test_both_forms_of_records_draw_the_same(seed, rank, most, peaked):
    rng = np.random.default_rng(seed)
    levels = [2, 3, 2, 2, 4]
    codes = np.stack([rng.integers(0, n, size=80) for n in levels], axis=1).astype(np.int8)
    codes[rng.random(codes.shape) < 0.5] = 0
    factors = np.concatenate([rng.dirichlet(np.full(n, peaked), size=rank).T for n in levels])
    factors = np.maximum(factors, 1e-12)
    weights = rng.dirichlet(np.full(rank, peaked)) + 1e-12
    mass = rng.integers(0, most + 1, size=80).astype(float)
    model, expected = (weights, factors, levels), twin(codes, mass, weights, factors, levels, seed)
    forms = (codes, kernels.SparseCodes.of_codes(codes, levels))
    dense, sparse = (kernels.class_draws(form, mass, *model, seed, 2) for form in forms)
    assert dense[0] == pytest.approx(expected[0], rel=1e-10)
    assert_equal(sparse, dense)
    assert_equal(twin(forms[1], mass, *model, seed), expected)


@pytest.mark.parametrize("class_draws", DRAWS)
def test_draws_of_different_records_and_seeds_are_independent(class_draws):
    # Runs of one record after another: the pairs of neighbours' classes are all equally frequent.
    rows = 20_000
    codes = np.arange(rows, dtype=np.int32)[:, None]
    factors = np.ones((rows, 2))
    drawn = [class_draws(codes, None, np.ones(2), factors, [rows], s)[2][:, 1] for s in range(3)]
    for a, b in [(drawn[0][:-1], drawn[0][1:]), (drawn[0], drawn[1]), (drawn[1], drawn[2])]:
        # A correlation of independent coins has standard deviation 0.007.
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.025


@pytest.mark.parametrize("class_draws", DRAWS)
def test_impossible_records_are_in_no_class(class_draws):
    codes = np.array([[0], [1], [1]], dtype=np.int16)
    factors = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    weight = np.array([400.0, 500.0, 2.0])
    total, classes, counts = class_draws(codes, weight, np.ones(3), factors, [2], 0)
    assert total == -np.inf
    np.testing.assert_array_equal(classes, [0.0, 400.0, 0.0])
    np.testing.assert_array_equal(counts, [[0.0, 400.0, 0.0], [0.0, 0.0, 0.0]])


@pytest.mark.parametrize("class_draws", DRAWS)
def test_thousands_of_variables_do_not_underflow(class_draws):
    codes, weights, factors, levels = random_problem(2, 40, [4] * 3_000, 3)
    total, classes, _ = class_draws(codes, None, weights, factors, levels, 0)
    assert np.isfinite(total)
    assert classes.sum() == 40


def test_what_cannot_be_drawn_is_refused():
    codes, weights, factors, levels = random_problem(3, 4, [2, 2], 2)
    with pytest.raises(ValueError, match="must be whole numbers: each is a number of draws"):
        kernels.class_draws(codes, np.array([1.0, 2.0, 0.5, 1.0]), weights, factors, levels, 0)
    for seed in (-1, 2**64):
        with pytest.raises(ValueError, match=f"between 0 and 2\\*\\*64 - 1, got {seed}"):
            kernels.class_draws(codes, None, weights, factors, levels, seed)
