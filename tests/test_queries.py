"""Functions on arrays, against brute force on tiny tensors and at sizes that would underflow."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoint.pmf.from_dense import join_classes, naive_bayes
from rejoint.queries.evidence import (
    class_posterior,
)
from rejoint.queries.log_prob import draw_codes, posteriors, record_log_prob
from rejoint.queries.mixture import Mixture
from rejoint.queries.tables import joint_table

# Sums of some hundred products of doubles: a few hundred roundings of 1e-16.
ROUNDING = 1e-13


def model(seed, shape=(2, 3, 4), rank=3, zeros=0.0):
    """Random weights and factors; a share of the entries is exactly zero."""
    rng = np.random.default_rng(seed)
    factors = []
    for levels in shape:
        factor = rng.dirichlet(np.ones(levels), size=rank).T
        factor[(rng.random(factor.shape) < zeros) & (factor < factor.max(axis=0))] = 0.0
        factors.append(factor / factor.sum(axis=0))
    return rng.dirichlet(np.ones(rank)), factors


def dense(weights, factors):
    """The joint by its definition, class by class."""
    total = 0.0
    for f, w in enumerate(weights):
        part = np.array(w)
        for factor in factors:
            part = np.multiply.outer(part, factor[:, f])
        total = total + part
    return total


@given(st.integers(0, 10**6), st.lists(st.integers(1, 4), min_size=1, max_size=5))
@settings(max_examples=40, deadline=None)
def test_joint_table_is_the_sum_of_outer_products(seed, shape):
    weights, factors = model(seed, shape)
    np.testing.assert_allclose(
        joint_table(weights, factors), dense(weights, factors), atol=ROUNDING
    )


def test_joint_table_refuses_before_it_allocates():
    factors = [np.full((10, 1), 0.1)] * 12
    with pytest.raises(ValueError, match=r"12 variables would have 10\^12 cells"):
        joint_table(np.ones(1), factors)


def test_tiny_likelihoods_do_not_vanish():
    weights, factors = model(1)
    evidence = {n: np.linspace(1, 2, len(factors[n])) for n in range(3)}
    tiny = {n: values * 1e-300 for n, values in evidence.items()}
    a = class_posterior(Mixture(weights, dict(enumerate(factors))).log_weights(evidence))
    b = class_posterior(Mixture(weights, dict(enumerate(factors))).log_weights(tiny))
    # Logarithms near 2,000 carry an absolute error of some 1e-13.
    np.testing.assert_allclose(a, b, rtol=1e-11)


@given(st.integers(0, 10**6), st.floats(0, 0.6), st.integers(1, 300))
@settings(max_examples=30, deadline=None)
def test_records_with_holes_match_sums_over_the_tensor(seed, zeros, rows):
    weights, factors = model(seed, (2, 3, 4, 2), zeros=zeros)
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(-1, len(a), size=rows) for a in factors], axis=1)
    joint = dense(weights, factors)
    expected = [
        joint[tuple(slice(None) if c < 0 else slice(c, c + 1) for c in row)].sum() for row in codes
    ]
    codes = codes.astype(np.int16)
    found = record_log_prob(weights, factors, codes)
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-12, atol=1e-15)


def test_five_thousand_variables_do_not_underflow():
    weights, factors = model(3, (4,) * 5000, rank=3)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, size=(2, 5000), dtype=np.int16)
    logs = record_log_prob(weights, factors, codes)
    with np.errstate(divide="ignore"):
        terms = [np.log(factors[n][codes[0, n]]) for n in range(5000)]
    slow = np.logaddexp.reduce(np.log(weights) + np.sum(terms, axis=0))
    assert slow < -5000.0
    assert logs[0] == pytest.approx(slow, rel=1e-13)


def test_impossible_records_get_the_classes_that_contradict_them_least():
    # Class 0 contradicts the record once, class 1 twice, class 2 once but with less support.
    a = np.array([[0.5, 0.0, 0.1], [0.5, 1.0, 0.9]])
    b = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    weights, codes = np.array([0.2, 0.3, 0.5]), np.array([[0, 0], [1, 1]], dtype=np.int16)
    [(_, logs, posterior)] = posteriors(weights, [a, b], codes)
    assert np.isneginf(logs).tolist() == [True, False]
    np.testing.assert_allclose(posterior[0], np.array([0.1, 0.0, 0.05]) / 0.15)
    np.testing.assert_allclose(posterior[1], np.array([0.1, 0.3, 0.45]) / 0.85)


def test_the_contradiction_found_cannot_be_made_smaller():
    rng = np.random.default_rng(0)
    for _ in range(50):
        factors = [(rng.random((2, 4)) < 0.6).astype(float) for _ in range(6)]
        evidence = {n: np.array([1.0, 0.0]) for n in range(6)}
        weights = np.ones(4)

        def possible(names, factors=factors):
            return any(all(factors[n][0, f] for n in names) for f in range(4))

        if possible(range(6)):
            continue
        culprits = Mixture(weights, dict(enumerate(factors))).contradiction(evidence)
        assert not possible(culprits)
        assert all(possible([m for m in culprits if m != n]) for n in culprits)


def test_sampling_never_draws_what_has_probability_zero():
    weights = np.array([0.0, 0.5, 0.5, 0.0])
    factor = np.array([[0.0, 0.5, 1.0], [1.0, 0.0, 0.0], [0.0, 0.5, 0.0]])[:, [0, 1, 2, 2]]
    codes = draw_codes(weights, [factor, factor], 100_000, np.random.default_rng(0))
    assert set(map(tuple, np.unique(codes, axis=0))) == {(0, 0), (0, 2), (2, 0), (2, 2)}


@pytest.mark.parametrize("levels", [1, 2, 3, 7, 8, 100])
def test_sampled_shares_are_within_five_standard_errors(levels):
    weights, factors = model(levels, (levels, 2), rank=3)
    n = 200_000
    codes = draw_codes(weights, factors, n, np.random.default_rng(1), np.int32)
    counts = np.bincount(codes[:, 0] * 2 + codes[:, 1], minlength=2 * levels)
    p = dense(weights, factors).ravel()
    assert (np.abs(counts - n * p) <= 5 * np.sqrt(n * p * (1 - p)) + 1e-9).all()


@given(
    st.integers(0, 10**6), st.lists(st.integers(1, 4), min_size=1, max_size=5), st.floats(0, 0.9)
)
@settings(max_examples=60, deadline=None)
def test_any_dense_joint_comes_back(seed, shape, zeros):
    rng = np.random.default_rng(seed)
    table = rng.random(shape) * (rng.random(shape) >= zeros)
    table.flat[rng.integers(table.size)] = 1.0
    weights, factors = naive_bayes(table)
    # Proposition 1 to the rounding of its normalisations (issue: 1e-12).
    np.testing.assert_allclose(dense(weights, factors), table / table.sum(), atol=1e-14)
    assert len(weights) <= min(table.size // n for n in shape)
    assert weights.min() > 0.0


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_joining_split_classes_gives_the_same_joint_with_fewer(seed):
    weights, factors = model(seed, rank=3)
    # Class 0 is split in variable 1 only, class 1 is repeated, class 2 has a dead copy.
    w = np.concatenate([weights[[0, 0, 1, 1, 2]] * [0.25, 0.75, 0.5, 0.5, 1.0], [0.0]])
    wide = [factor[:, [0, 0, 1, 1, 2, 2]] for factor in factors]
    wide[1][:, 0] = np.random.default_rng(seed).dirichlet(np.ones(3))
    joined_weights, joined = join_classes(w, wide)
    assert len(joined_weights) == 3
    np.testing.assert_allclose(dense(joined_weights, joined), dense(w, wide), atol=ROUNDING)
