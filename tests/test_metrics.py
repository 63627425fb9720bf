"""Errors of joints: definitions on dense tensors, precision near zero, Monte Carlo beyond."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rejoint as rj
from rejoint import metrics
from rejoint.queries import distances


def random_pmf(seed, shape=(3, 4, 2, 3), rank=3):
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.ones(levels), size=rank).T for levels in shape]
    return rj.LowRankPMF(rng.dirichlet(np.ones(rank)), factors)


def nudged(pmf, size, seed=0):
    """The same model with all parameters moved by about `size`, relatively."""
    rng = np.random.default_rng(seed)
    factors = [a * (1 + size * rng.uniform(-1, 1, a.shape)) for a in pmf.factors]
    factors = [a / a.sum(axis=0) for a in factors]
    weights = pmf.weights * (1 + size * rng.uniform(-1, 1, pmf.rank))
    return rj.LowRankPMF(weights / weights.sum(), factors, pmf.domain)


def test_factor_error_is_the_printed_formula_under_the_best_permutation():
    truth, estimate = random_pmf(0), nudged(random_pmf(0), 0.1)
    best = min(
        np.mean(
            [
                np.linalg.norm(a - b[:, list(order)]) / np.linalg.norm(a)
                for a, b in zip(truth.factors, estimate.factors, strict=True)
            ]
        )
        for order in itertools.permutations(range(3))
    )
    shuffled = rj.LowRankPMF(
        estimate.weights[[2, 0, 1]], [b[:, [2, 0, 1]] for b in estimate.factors]
    )
    assert metrics.factor_error(truth, shuffled) == pytest.approx(best, rel=1e-12)
    assert metrics.factor_error(truth, truth.sorted()) == 0.0


def test_ranks_must_agree_for_classes_but_not_for_joints():
    with pytest.raises(ValueError, match="truth has rank 3 and the estimate 2: compare the joints"):
        metrics.factor_error(random_pmf(0), random_pmf(0, rank=2))
    assert metrics.tensor_error(random_pmf(0), random_pmf(0, rank=2)) > 0.0


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4))
def test_tensor_error_without_a_tensor_is_that_of_the_tensor(seed, rank, other_rank):
    a, b = random_pmf(seed, rank=rank), random_pmf(seed + 1, rank=other_rank)
    x, y = a.to_dense(), b.to_dense()
    expected = np.linalg.norm(x - y) / np.linalg.norm(x)
    assert metrics.tensor_error(a, b) == pytest.approx(expected, rel=1e-12)
    d, n = distances.difference_and_norm(a.weights, a.factors, b.weights, b.factors)
    assert d / n == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("size", [1e-2, 1e-6, 1e-10, 1e-13])
def test_tensor_error_of_nearly_equal_models_keeps_its_digits(size):
    a = random_pmf(0, (10,) * 5, rank=15)
    b = nudged(a, size)
    x, y = a.to_dense(), b.to_dense()
    expected = np.linalg.norm(x - y) / np.linalg.norm(x)
    d, n = distances.difference_and_norm(a.weights, a.factors, b.weights, b.factors)
    # Rounding of the parameters and of the QR steps; the Gram form would be off by 1e-8.
    assert d / n == pytest.approx(expected, abs=1e-14)


def test_equal_joints_of_different_ranks_have_no_error():
    a = random_pmf(0, (4,) * 12, rank=4)
    split = rj.LowRankPMF.average([a, a.sorted(), a])
    assert metrics.tensor_error(a, split) < 1e-14
    assert metrics.tensor_error(a, a.sorted()) == 0.0


def test_large_ranks_fall_back_on_gram_matrices(monkeypatch):
    a, b = random_pmf(0), random_pmf(1)
    exact = distances.difference_and_norm(a.weights, a.factors, b.weights, b.factors)
    monkeypatch.setattr(distances, "_QR_RANK", 2)
    gram = distances.difference_and_norm(a.weights, a.factors, b.weights, b.factors)
    assert gram[0] / gram[1] == pytest.approx(exact[0] / exact[1], rel=1e-7)


def test_alignment_by_name_and_level():
    domain = rj.Domain.of({"a": ["x", "y"], "b": ["u", "v", "w"]})
    turned = rj.Domain.of({"b": ["w", "u", "v"], "a": ["y", "x"]})
    p = rj.LowRankPMF(*_parameters(random_pmf(0, (2, 3))), domain)
    q = p.align(turned)
    assert metrics.tensor_error(p, q) == 0.0
    assert metrics.factor_error(p, q) == 0.0
    assert metrics.total_variation(p, q) == 0.0
    assert metrics.kl(p, q) == 0.0
    with pytest.raises(ValueError, match="different variables: 'a' is in one only"):
        metrics.tensor_error(p, p.project("b"))


def _parameters(pmf):
    return pmf.weights, pmf.factors


def test_kl_and_total_variation_by_their_definitions():
    p, q = random_pmf(0), random_pmf(1)
    x, y = p.to_dense(), q.to_dense()
    kl, tv = metrics.kl(p, q), metrics.total_variation(p, q)
    assert kl == pytest.approx((x * np.log(x / y)).sum(), rel=1e-12)
    assert tv == pytest.approx(np.abs(x - y).sum() / 2, rel=1e-12)
    assert (kl.exact, kl.standard_error) == (True, 0.0)
    assert metrics.total_variation(q, p) == pytest.approx(float(tv), rel=1e-12)


def test_kl_of_nearly_equal_joints_keeps_its_digits():
    p = random_pmf(0)
    q = nudged(p, 1e-6)
    x, y = p.to_dense(), q.to_dense()
    # Second order: half the chi-squared distance, up to a relative 1e-6; sums of logarithms
    # would be off by 1e-16, a few hundred per mille of it.
    assert metrics.kl(p, q) == pytest.approx(((x - y) ** 2 / x).sum() / 2, rel=1e-3)


def test_kl_with_zeros():
    p = rj.LowRankPMF([1.0], [[[0.5], [0.5], [0.0]]])
    q = rj.LowRankPMF([1.0], [[[0.5], [0.0], [0.5]]])
    assert metrics.kl(p, q) == np.inf
    r = rj.LowRankPMF([1.0], [[[0.25], [0.25], [0.5]]])
    assert metrics.kl(p, r) == pytest.approx(np.log(2.0))


def test_records_and_tables_can_be_compared_too():
    pmf = rj.datasets.asia()
    records = pmf.sample(20_000, random_state=0)
    distance = metrics.total_variation(pmf, records)
    assert 0.0 < distance < 0.05
    assert metrics.tensor_error(pmf, records) < 0.05


@pytest.mark.parametrize("size", [0.5, 0.01])
def test_monte_carlo_is_within_five_standard_errors(monkeypatch, size):
    p = random_pmf(0)
    q = nudged(p, size)
    exact = metrics.kl(p, q), metrics.total_variation(p, q)
    monkeypatch.setattr(metrics, "_CELLS", 1)
    for measure, truth in zip((metrics.kl, metrics.total_variation), exact, strict=True):
        found = measure(p, q, n=20_000)
        assert not found.exact
        assert abs(found - truth) <= 5 * found.standard_error
        assert found.standard_error < 0.2 * truth
        assert measure(p, q, n=20_000) == found
        assert "±" in repr(found)


def test_monte_carlo_kl_without_full_support_is_not_biased(monkeypatch):
    p = rj.LowRankPMF([1.0], [[[0.5], [0.5], [0.0]]] * 2)
    q = rj.LowRankPMF([1.0], [[[0.4], [0.3], [0.3]]] * 2)
    exact = metrics.kl(p, q)
    monkeypatch.setattr(metrics, "_CELLS", 1)
    found = metrics.kl(p, q)
    assert abs(found - exact) <= 5 * found.standard_error
    assert metrics.kl(q, p) == np.inf


def test_large_joints_need_models():
    pmf = random_pmf(0, (4,) * 12)
    with pytest.raises(
        TypeError, match=r"kl: a joint of 16,777,216 cells .* LowRankPMF and Records"
    ):
        metrics.kl(pmf, pmf.sample(10, random_state=0))


def test_estimates_survive_pickling():
    found = pickle.loads(pickle.dumps(metrics.Estimate(0.25, 0.01)))
    assert (float(found), found.standard_error, found.exact) == (0.25, 0.01, False)
