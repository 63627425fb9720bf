"""EM: one step against a step by hand, falling objectives, weights and repeated records."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_records import dense, log_likelihood, random_pmf, random_records, random_start, unmerged

import rejoint as rj
from rejoint.estimation import Em, Prior, estimate
from rejoint.estimation.data import InMemory
from rejoint.estimation.em import rescale
from rejoint.model import Layout
from rejoint.solver import Limits, run

SHAPE = (2, 3, 2)
OFFSETS = (0, 2, 5, 7)
THOROUGH = Limits(max_steps=20000, progress=1e-14, window=10, exact=-1.0)


def em_by_hand(codes, model, prior=None):
    """One E-step and one M-step, record by record and class by class."""
    weights, factors = model.weights, model.factors
    classes, levels = np.zeros(len(weights)), np.zeros(factors.shape)
    for row in codes:
        joint = weights.copy()
        for n, code in enumerate(row):
            if code >= 0:
                joint = joint * factors[OFFSETS[n] + code]
        share = joint / joint.sum()
        classes += share
        for n, code in enumerate(row):
            if code >= 0:
                levels[OFFSETS[n] + code] += share
    if prior is not None:
        classes, levels = classes + prior.classes, levels + prior.levels[:, None]
    for low, high in pairwise(OFFSETS):
        levels[low:high] /= levels[low:high].sum(axis=0)
    return np.vstack([classes / classes.sum(), levels])


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("seed", [0, 1])
def test_objective_is_minus_the_log_likelihood(seed, missing):
    records = random_records(seed, SHAPE, 40, missing=missing)
    start = random_start(seed, SHAPE, 2)
    state = Em().init(InMemory.of(records), start)
    exact = log_likelihood(dense(start.weights, start.factors, SHAPE), records.codes)
    assert state.objective == pytest.approx(-exact, rel=1e-12)


@pytest.mark.parametrize("prior", [None, Prior(0.7, np.linspace(0.5, 2.0, 7))])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_a_plain_step_is_an_em_step_by_hand(missing, prior):
    records = random_records(3, SHAPE, 40, rank=3, missing=missing)
    start = random_start(3, SHAPE, 3)
    solver, data = Em(prior=prior, memory=0), InMemory.of(records)
    state = solver.step(data, solver.init(data, start))
    by_hand = em_by_hand(records.codes, start, prior)
    np.testing.assert_allclose(state.model.stacked, by_hand, rtol=1e-10)


def test_prior_enters_the_objective():
    records = random_records(3, SHAPE, 40, missing=0.2)
    prior = Prior(0.7, np.linspace(0.5, 2.0, 7))
    start, data = random_start(3, SHAPE, 2), InMemory.of(records)
    plain, with_prior = (Em(prior=p).init(data, start).objective for p in (None, prior))
    logs = 0.7 * np.log(start.weights).sum()
    logs += (prior.levels[:, None] * np.log(start.factors)).sum()
    assert with_prior == pytest.approx(plain - logs, rel=1e-12)


@pytest.mark.parametrize("memory", [0, 8, None])
@pytest.mark.parametrize("prior", [None, Prior(0.0, np.full(7, 0.5))])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_objective_never_rises(missing, prior, memory):
    data = InMemory.of(random_records(5, SHAPE, 200, rank=3, missing=missing))
    solver = Em(prior=prior, memory=memory)
    state = solver.init(data, random_start(5, SHAPE, 3))
    first = state.objective
    for _ in range(60):
        before, state = state, solver.step(data, state)
        # A plain EM step near the optimum may rise by the rounding of a sum of logarithms.
        assert state.objective <= before.objective + 1e-11 * first
    assert state.objective < first - 1.0


@pytest.mark.parametrize("memory", [0, 8, None])
def test_points_stay_on_the_simplex(memory):
    data = InMemory.of(random_records(6, SHAPE, 100, rank=3, missing=0.3))
    solver = Em(memory=memory)
    state = solver.init(data, random_start(6, SHAPE, 3))
    for _ in range(40):
        state = solver.step(data, state)
        model = state.model
        assert model.stacked.min() >= 0
        assert model.weights.sum() == pytest.approx(1.0, abs=1e-12)
        sums = np.add.reduceat(model.factors, OFFSETS[:-1])
        np.testing.assert_allclose(sums, 1.0, atol=1e-12)


def test_a_class_without_records_stays_even():
    counts = np.ones((8, 2))
    counts[:, 1] = 0.0
    model = rescale(Layout(SHAPE), counts)
    assert model.weights.tolist() == [1.0, 0.0]
    np.testing.assert_allclose(model.factors[:, 1], np.repeat([1 / 2, 1 / 3, 1 / 2], SHAPE))


def test_merged_and_unmerged_records_are_the_same():
    records = random_records(7, SHAPE, 150, missing=0.2)
    start = random_start(7, SHAPE, 2)
    merged = InMemory.of(records)
    assert len(merged.codes) < len(records)
    runs = [run(Em(memory=0), data, start) for data in (merged, unmerged(records))]
    assert runs[0].objective == pytest.approx(runs[1].objective, rel=1e-12)
    # Sums in another order differ by rounding, which EM contracts.
    np.testing.assert_allclose(runs[0].factors, runs[1].factors, atol=1e-9)


def test_weights_are_repetition():
    records = random_records(8, SHAPE, 80, missing=0.2)
    times = np.random.default_rng(8).integers(0, 4, len(records))
    repeated = rj.Records(records.domain, np.repeat(records.codes, times, axis=0))
    start = random_pmf(9, SHAPE, 2)
    solver = Em(memory=0)
    weighted = estimate(records, 2, solver, start=start, sample_weight=times.astype(float))
    plain = estimate(repeated, 2, solver, start=start)
    assert weighted.log_likelihood == pytest.approx(plain.log_likelihood, rel=1e-12)
    assert weighted.pmf.equals(plain.pmf, tol=1e-9)


def test_scaled_weights_have_the_same_maximum():
    records = random_records(8, SHAPE, 80, missing=0.2)
    start = random_pmf(9, SHAPE, 2)
    solver = Em(limits=THOROUGH)
    one = estimate(records, 2, solver, start=start)
    third = estimate(records, 2, solver, start=start, sample_weight=np.full(80, 1 / 3))
    assert third.log_likelihood == pytest.approx(one.log_likelihood / 3, rel=1e-8)
    # The likelihood is flat at its top: its eighth digit is the fourth of the joint.
    np.testing.assert_allclose(third.pmf.to_dense(), one.pmf.to_dense(), atol=1e-3)


def test_rank_one_is_the_product_of_available_shares():
    records = random_records(10, SHAPE, 90, missing=0.3)
    pmf = estimate(records, 1, "ml").pmf
    for name in records.names:
        np.testing.assert_allclose(pmf.marginal(name), records.marginal(name), atol=1e-12)


def test_a_saturated_model_reaches_the_shares_of_the_table():
    # Rank 2 holds every 2 x 3 table: its maximum likelihood is the table's own shares.
    counts = np.array([[30, 5, 10], [4, 25, 26]])
    codes = np.repeat([list(cell) for cell in np.ndindex(2, 3)], counts.ravel(), axis=0)
    records = rj.Records(rj.Domain.of_shape((2, 3)), codes)
    result = estimate(records, 2, Em(limits=THOROUGH), random_state=0)
    np.testing.assert_allclose(result.pmf.to_dense(), counts / 100, atol=1e-5)
    exact = float((counts * np.log(counts / 100)).sum())
    assert result.log_likelihood == pytest.approx(exact, abs=1e-6)


def test_missing_at_random_does_not_bias_the_likelihood():
    # b is seen in 9 of 10 records where a = 0, in 1 of 10 where a = 1, and depends on a: the
    # records that have b are mostly those of a = 0. All shares below are exact.
    codes, weight = [], []
    for a, chance in ((0, 0.2), (1, 0.8)):
        seen = (0.9, 0.1)[a]
        for b, share in ((0, 1 - chance), (1, chance)):
            codes.append([a, b])
            weight.append(1000 * seen * share)
        codes.append([a, -1])
        weight.append(1000 * (1 - seen))
    records = rj.Records(rj.Domain.of_shape((2, 2)), np.array(codes), np.array(weight))
    assert records.marginal("x1")[1] == pytest.approx(0.26)  # available cases; the truth is 0.5
    pmf = estimate(records, 2, Em(limits=THOROUGH), random_state=0).pmf
    assert pmf.marginal("x1")[1] == pytest.approx(0.5, abs=1e-4)
    np.testing.assert_allclose(pmf.to_dense(), [[0.4, 0.1], [0.1, 0.4]], atol=1e-4)


def test_missing_at_random_in_a_sample_of_more_variables():
    truth = rj.LowRankPMF([0.5, 0.5], [np.array([[0.9, 0.15], [0.1, 0.85]])] * 4)
    codes = np.array(truth.sample(20000, random_state=0).codes)
    hidden = np.random.default_rng(1).random((len(codes), 3)) < np.where(codes[:, :1], 0.9, 0.1)
    codes[:, 1:][hidden] = -1
    records = rj.Records(truth.domain, codes)
    pmf = estimate(records, 2, "ml", random_state=0).pmf
    for name in ("x1", "x2", "x3"):
        exact = truth.marginal(name)[0]
        assert abs(records.marginal(name)[0] - exact) > 0.1
        # About 10,000 values are observed: a standard error of 0.005, a little more as some miss.
        assert abs(pmf.marginal(name)[0] - exact) < 0.025


@pytest.mark.filterwarnings("ignore:No record holds more than 2")
@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 4), st.floats(0.0, 0.6))
def test_order_of_records_does_not_matter(seed, rank, missing):
    records = random_records(seed, SHAPE, 40, missing=missing)
    mixed = np.random.default_rng(seed).permutation(len(records))
    other = rj.Records(records.domain, np.asarray(records.codes)[mixed])
    start = random_pmf(seed + 1, SHAPE, rank)
    found = [estimate(r, rank, "ml", start=start).pmf for r in (records, other)]
    np.testing.assert_allclose(found[0].to_dense(), found[1].to_dense(), atol=1e-9)


@pytest.mark.filterwarnings("ignore::rejoint.Remark")  # of too few cells for a unique joint
@settings(max_examples=25)
@given(
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.sampled_from(["ml", "map"]),
    st.floats(0.0, 0.9),
)
def test_models_lie_on_the_simplex_and_beat_their_start(seed, rank, solver, missing):
    records = random_records(seed, SHAPE, 30, missing=missing)
    start = random_pmf(seed + 1, SHAPE, rank)
    result = estimate(records, rank, solver, start=start)
    table = result.pmf.to_dense()
    assert table.min() >= 0
    assert table.sum() == pytest.approx(1.0, abs=1e-12)
    if solver == "ml":
        exact = log_likelihood(table, records.codes)
        assert result.log_likelihood == pytest.approx(exact, rel=1e-9)
        assert exact >= log_likelihood(start.to_dense(), records.codes) - 1e-9
