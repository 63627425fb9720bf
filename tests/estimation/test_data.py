"""Records as the estimators see them."""

import numpy as np
import pytest
from small_records import random_records

import rejoint as rj
from rejoint.estimation.data import InMemory
from rejoint.model import Layout, Model

SHAPE = (2, 3, 2)
LAYOUT = Layout(SHAPE)


def counted(codes, weight):
    """Weight of each level, variable by variable."""
    totals = [np.zeros(size) for size in SHAPE]
    for row, mass in zip(codes, weight, strict=True):
        for n, code in enumerate(row):
            if code >= 0:
                totals[n][code] += mass
    return totals


def test_identical_records_are_merged_and_their_weights_added():
    codes = np.array([[0, 1], [1, 0], [0, 1], [0, -1], [0, 1]])
    records = rj.Records(rj.Domain.of_shape((2, 2)), codes, np.array([1.0, 2.0, 0.5, 4.0, 1.5]))
    data = InMemory.of(records)
    found = {tuple(row): mass for row, mass in zip(data.codes.tolist(), data.weight, strict=True)}
    assert found == {(0, 1): 3.0, (1, 0): 2.0, (0, -1): 4.0}
    assert data.total == 9.0


def test_empty_records_and_those_without_weight_are_dropped():
    codes = np.array([[0, 1], [-1, -1], [1, 1], [-1, -1]])
    records = rj.Records(rj.Domain.of_shape((2, 2)), codes, np.array([1.0, 7.0, 0.0, 1.0]))
    data = InMemory.of(records)
    assert data.codes.tolist() == [[0, 1]]
    assert data.total == 1.0


@pytest.mark.parametrize(
    ("codes", "weight"),
    [([[-1, -1], [-1, -1]], None), ([[0, 1], [1, -1]], [0.0, 0.0]), ([[-1, -1], [0, 0]], [1, 0])],
)
def test_no_record_left_is_an_error(codes, weight):
    weight = None if weight is None else np.array(weight, dtype=float)
    words = (
        "nothing to estimate from: no record has a value and a|sample_weight is zero in every row"
    )
    with pytest.raises(ValueError, match=words):
        InMemory.of(rj.Records(rj.Domain.of_shape((2, 2)), np.array(codes), weight))


def test_level_totals_and_center_agree_with_counting():
    records = random_records(0, SHAPE, 60, missing=0.3)
    weight = np.random.default_rng(0).uniform(0.1, 2.0, len(records))
    data = InMemory.of(rj.Records(records.domain, records.codes, weight))
    totals = counted(records.codes, weight)
    np.testing.assert_allclose(data.level_totals, np.concatenate(totals), rtol=1e-12)
    shares = [(t + 0.5) / (t + 0.5).sum() for t in totals]
    np.testing.assert_allclose(data.center, np.concatenate(shares), rtol=1e-12)


def test_a_level_that_no_record_has_keeps_a_share_of_the_center():
    records = rj.Records(rj.Domain.of_shape((3,)), np.array([[0], [1], [1]]))
    np.testing.assert_allclose(InMemory.of(records).center, [1.5 / 4.5, 2.5 / 4.5, 0.5 / 4.5])


def test_log_prob_is_that_of_the_model_of_each_record():
    data = InMemory.of(random_records(0, SHAPE, 30, missing=0.3))
    model = Model.of([0.3, 0.7], [np.full((size, 2), 1 / size) for size in SHAPE])
    records = rj.Records(data.domain, data.codes)
    np.testing.assert_allclose(data.log_prob(model), data.to_pmf(model).log_prob(records))
    total = float(data.weight @ data.log_prob(model))
    assert data.expect(model).log_likelihood == pytest.approx(total, rel=1e-12)
