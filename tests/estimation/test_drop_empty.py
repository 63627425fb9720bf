"""Empty and equal classes are dropped, and the text says so."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_records import random_records, random_start

import rejoint as rj
from rejoint.estimation import Bayes, Policy
from rejoint.estimation.data import InMemory
from rejoint.estimation.estimate import NEGLIGIBLE_NATS, Fit, drop_empty, drop_negligible
from rejoint.estimation.policy import DEFAULT
from rejoint.model import Layout, Model
from rejoint.solver.solver import Run, Stop

LAYOUT = Layout((2, 3))


def random_factors(rank):
    return random_start(0, LAYOUT.levels, rank).factors


def drop(weights, factors):
    return drop_empty(Model(LAYOUT, np.array(weights), factors))


def test_sound_classes_are_sorted_and_nothing_is_said():
    factors = random_factors(3)
    model, text = drop([0.2, 0.5, 0.3], factors)
    assert model.weights.tolist() == [0.5, 0.3, 0.2]
    np.testing.assert_array_equal(model.factors, factors[:, [1, 2, 0]])
    assert text == ""


def test_empty_classes_are_dropped():
    factors = random_factors(4)
    model, text = drop([0.4, 0.0, 0.6 - 1e-12, 1e-12], factors)
    np.testing.assert_allclose(model.weights, [0.6, 0.4])
    assert model.weights.sum() == pytest.approx(1.0, abs=1e-15)
    np.testing.assert_array_equal(model.factors, factors[:, [2, 0]])
    assert text.startswith("2 of 4 classes stood for less than 0.5 records together")


def test_equal_classes_become_one_with_the_weight_of_both():
    factors = random_factors(3)
    factors[:, 2] = factors[:, 0] + 1e-8
    model, text = drop([0.3, 0.5, 0.2], factors)
    np.testing.assert_allclose(model.weights, [0.5, 0.5])
    assert model.factors.shape == (5, 2)
    assert text.startswith("1 of 3 classes")


def test_both_are_said_and_the_joint_stays():
    weights = np.array([0.3, 0.5, 0.2, 0.0])
    factors = random_factors(4)
    factors[:, 2] = factors[:, 0]
    model, text = drop(weights, factors)
    assert text.startswith("2 of 4 classes stood for less than 0.5 records together")
    before = np.einsum("f,af,bf->ab", weights, factors[:2], factors[2:])
    after = np.einsum("f,af,bf->ab", model.weights, *model.parts)
    np.testing.assert_allclose(after, before, atol=1e-14)


# -- Classes that stand for less than half a record ----------------------------------------------


def test_the_smallest_classes_that_stand_for_less_than_half_a_record_together():
    factors = random_factors(5)
    weights = np.array([0.5, 1e-3, 0.496, 1e-3, 2e-3])
    model, text = drop_empty(Model(LAYOUT, weights, factors), records=200)
    np.testing.assert_array_equal(model.factors, factors[:, [0, 2, 4]])
    assert model.weights.sum() == pytest.approx(1.0, abs=1e-15)
    assert text.startswith("2 of 5 classes stood for less than 0.5 records together")
    assert drop_empty(Model(LAYOUT, weights, factors), records=1000)[1] == ""


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=8).filter(lambda x: sum(x) > 0.1),
    st.floats(1, 1e7),
)
def test_what_is_dropped_is_less_than_half_a_record_and_all_that_is(weights, records):
    weights = np.array(weights) / np.sum(weights)
    rng = np.random.default_rng(0)
    factors = LAYOUT.normalize(rng.random((5, len(weights))))
    model, text = drop_empty(Model(LAYOUT, weights, factors), records=records)
    lost = np.sort(weights)[: len(weights) - model.rank]
    assert model.rank >= 1
    assert lost.sum() * records < 0.5 or lost.max() <= 1e-9
    least = np.sort(weights)[len(weights) - model.rank]
    assert model.rank == 1 or (lost.sum() + least) * records >= 0.5 * (1 - 1e-12)
    assert bool(text) == (model.rank < len(weights))


def without_dropping(policy=DEFAULT):
    return replace(policy, negligible_records=0.0)


@pytest.mark.filterwarnings("ignore::rejoint.Remark")
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    rank=st.integers(2, 6),
    rows=st.integers(3, 80),
    solver=st.sampled_from(["ml", "map"]),
    weighting=st.sampled_from(["none", "counts", "shares"]),
)
def test_dropping_hardly_lowers_the_likelihood(seed, rank, rows, solver, weighting):
    """At most what half a record can cost, and the likelihood that is told is the model's."""
    rng = np.random.default_rng(seed)
    records = random_records(seed, (2, 3, 3), rows, rank=2, missing=0.2)
    weight = {
        "none": None,
        "counts": rng.integers(1, 5, rows).astype(float),
        "shares": rng.random(rows) / rows + 1e-6,
    }[weighting]
    options = {"n_init": 2, "random_state": 0, "sample_weight": weight}
    before, after = (
        rj.estimate(rj.Records(records.domain, records.codes), rank, solver, policy=p, **options)
        for p in (without_dropping(), DEFAULT)
    )
    assert 1 <= after.pmf.rank <= before.pmf.rank
    assert before.log_likelihood - after.log_likelihood <= NEGLIGIBLE_NATS + 1e-9
    mass = np.ones(rows) if weight is None else weight
    told = mass @ after.pmf.log_prob(records)
    assert after.log_likelihood == pytest.approx(told, abs=1e-7)


def test_weights_that_add_up_to_one_do_not_make_every_class_negligible():
    """Half a record is half of one of 400 records, not half of what all of them weigh."""
    records = random_records(5, (3, 3, 3, 3), 400, rank=3)
    shares = rj.Records(records.domain, records.codes, np.full(400, 1 / 400))
    whole = rj.estimate(records, 3, "ml", random_state=0)
    assert rj.estimate(shares, 3, "ml", random_state=0).pmf.rank == whole.pmf.rank == 3


def test_a_class_that_the_records_need_stays_however_small():
    """Far from a maximum a small weight may stand for whole records: only class 2 allows "y"."""
    records = rj.Records.of({"a": ["x"] * 30 + ["y"] * 5, "b": ["u"] * 30 + ["v"] * 5})
    factors = [np.array([[1.0, 0.0], [0.0, 1.0]])] * 2
    model = Model.of([1 - 1e-4, 1e-4], factors)
    kept, value, dropped = drop_negligible(InMemory.of(records), fit_of(model), DEFAULT)
    assert kept.rank == 2
    assert dropped == ""
    assert value == pytest.approx(30 * np.log(1 - 1e-4) + 5 * np.log(1e-4))


def fit_of(model, stop=Stop.PROGRESS, value=None):
    run = Run(model, 0.0, 0.0, np.nan, stop)
    return Fit([run], run, log_likelihood=value)


def test_an_interrupted_fit_takes_no_further_pass():
    model = Model(LAYOUT, np.array([1 - 1e-4, 1e-4]), random_factors(2))
    without_passes = SimpleNamespace(size=50.0)
    fit = fit_of(model, Stop.INTERRUPTED, -7.0)
    assert drop_negligible(without_passes, fit, DEFAULT)[1:] == (-7.0, "")


@pytest.mark.parametrize("solver", ["map", Bayes(chains=2, burn_in=10, draws=10, thin=1)])
def test_no_fit_shows_a_negligible_class(solver):
    """Independent variables need no second class: what is left of it is not shown."""
    records = random_records(3, (2, 3, 2), 200, rank=1)
    result = rj.estimate(records, 6, solver, random_state=0)
    assert np.sort(result.pmf.weights)[0] * 200 >= 0.5
    assert "of 6 classes" in result.stop


def test_streamed_records_are_counted_by_rows(tmp_path):
    data = rj.datasets.asia().sample(600, random_state=0)
    data.to_frame("pandas").to_csv(tmp_path / "a.csv", index=False)
    policy = Policy(sample_cells=800, sampled_records=(100, 100))
    result = rj.estimate(rj.scan(tmp_path / "a.csv"), 6, "ml", policy=policy, random_state=0)
    assert np.sort(result.pmf.weights)[0] * 600 >= 0.5
    told = result.pmf.log_prob(rj.read(tmp_path / "a.csv", domain=result.pmf.domain)).sum()
    assert result.log_likelihood == pytest.approx(told, rel=1e-9)


def test_partial_fit_shows_no_negligible_class():
    records = random_records(3, (2, 3, 2), 400, rank=1)
    model = rj.JointPMF(rank=5, solver="ml", random_state=0)
    for chunk in records.chunks(100):
        model.partial_fit(chunk)
    assert np.sort(model.pmf_.weights)[0] * 400 >= 0.5
    assert model.rank_ == model.pmf_.rank
    full = model._partial.model
    before = full.weights.size > model.rank_
    exact = InMemory.of(records).expect(full).log_likelihood
    assert exact - model.pmf_.log_prob(records).sum() <= NEGLIGIBLE_NATS
    assert before == ("dropped." in model.result_.stop)
