"""Records as the estimators see them."""

import numpy as np
import pytest
from small_records import random_records

import rejoint as rj
from rejoint.estimation.data import RecordProblem, normalise

SHAPE = (2, 3, 2)


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
    problem = RecordProblem.of(records)
    found = {
        tuple(row): mass for row, mass in zip(problem.codes.tolist(), problem.weight, strict=True)
    }
    assert found == {(0, 1): 3.0, (1, 0): 2.0, (0, -1): 4.0}
    assert problem.total == 9.0


def test_empty_records_and_those_without_weight_are_dropped():
    codes = np.array([[0, 1], [-1, -1], [1, 1], [-1, -1]])
    records = rj.Records(rj.Domain.of_shape((2, 2)), codes, np.array([1.0, 7.0, 0.0, 1.0]))
    problem = RecordProblem.of(records)
    assert problem.codes.tolist() == [[0, 1]]
    assert problem.total == 1.0


@pytest.mark.parametrize(
    ("codes", "weight"),
    [([[-1, -1], [-1, -1]], None), ([[0, 1], [1, -1]], [0.0, 0.0]), ([[-1, -1], [0, 0]], [1, 0])],
)
def test_nothing_left_is_said(codes, weight):
    weight = None if weight is None else np.array(weight, dtype=float)
    records = rj.Records(rj.Domain.of_shape((2, 2)), np.array(codes), weight)
    with pytest.raises(ValueError, match="nothing to estimate from: no record has a value and a"):
        RecordProblem.of(records)


def test_level_totals_and_centre_agree_with_counting():
    records = random_records(0, SHAPE, 60, missing=0.3)
    weight = np.random.default_rng(0).uniform(0.1, 2.0, len(records))
    problem = RecordProblem.of(rj.Records(records.domain, records.codes, weight))
    totals = counted(records.codes, weight)
    np.testing.assert_allclose(problem.level_totals, np.concatenate(totals), rtol=1e-12)
    shares = [(t + 0.5) / (t + 0.5).sum() for t in totals]
    np.testing.assert_allclose(problem.centre, np.concatenate(shares), rtol=1e-12)


def test_a_level_that_nobody_has_keeps_a_share_of_the_centre():
    records = rj.Records(rj.Domain.of_shape((3,)), np.array([[0], [1], [1]]))
    np.testing.assert_allclose(RecordProblem.of(records).centre, [1.5 / 4.5, 2.5 / 4.5, 0.5 / 4.5])


def test_rows_slice_the_stacked_factors():
    problem = RecordProblem.of(random_records(0, SHAPE, 10))
    assert [problem.rows(n) for n in range(3)] == [slice(0, 2), slice(2, 5), slice(5, 7)]
    assert problem.offsets.tolist() == [0, 2, 5, 7]


@pytest.mark.parametrize(("rank", "count"), [(1, 4), (2, 9), (5, 24)])
def test_free_parameters(rank, count):
    # F columns of (1 + 2 + 1) free numbers, and F - 1 weights.
    assert RecordProblem.of(random_records(0, SHAPE, 10)).parameters(rank) == count


def test_normalise_scales_each_block_of_each_column():
    problem = RecordProblem.of(random_records(0, SHAPE, 10))
    factors = np.random.default_rng(0).random((7, 2))
    scaled = normalise(problem, factors)
    for n in range(3):
        block = factors[problem.rows(n)]
        np.testing.assert_allclose(scaled[problem.rows(n)], block / block.sum(axis=0))


def test_expected_counts_stack_classes_above_levels():
    problem = RecordProblem.of(random_records(0, SHAPE, 10))
    found = problem.expect(np.full(2, 0.5), np.full((7, 2), 0.5))
    assert found.stacked.shape == (8, 2)
    np.testing.assert_array_equal(found.stacked[0], found.classes)
    np.testing.assert_array_equal(found.stacked[1:], found.levels)
