"""Classes that came to nothing are dropped, and that is said."""

import numpy as np
import pytest
from rejoint.estimation.fit_records import tidy
from small_records import random_start

SHAPE = (2, 3)


def test_sound_classes_are_sorted_and_nothing_is_said():
    weights, factors = np.array([0.2, 0.5, 0.3]), random_start(0, SHAPE, 3)[1]
    kept, columns, words = tidy(weights, factors)
    assert kept.tolist() == [0.5, 0.3, 0.2]
    np.testing.assert_array_equal(columns, factors[:, [1, 2, 0]])
    assert words == ""


def test_dead_classes_go():
    factors = random_start(0, SHAPE, 4)[1]
    kept, columns, words = tidy(np.array([0.4, 0.0, 0.6 - 1e-12, 1e-12]), factors)
    np.testing.assert_allclose(kept, [0.6, 0.4])
    assert kept.sum() == pytest.approx(1.0, abs=1e-15)
    np.testing.assert_array_equal(columns, factors[:, [2, 0]])
    assert words == " 2 of 4 classes had no weight left: dropped."


def test_equal_classes_are_one_with_the_weight_of_both():
    factors = random_start(0, SHAPE, 3)[1]
    factors[:, 2] = factors[:, 0] + 1e-8
    kept, columns, words = tidy(np.array([0.3, 0.5, 0.2]), factors)
    np.testing.assert_allclose(kept, [0.5, 0.5])
    assert columns.shape == (5, 2)
    assert words == " 1 were equal to others: dropped."


def test_both_are_said_and_the_joint_stays():
    weights = np.array([0.3, 0.5, 0.2, 0.0])
    factors = random_start(0, SHAPE, 4)[1]
    factors[:, 2] = factors[:, 0]
    kept, columns, words = tidy(weights, factors)
    assert words == " 1 of 4 classes had no weight left and 1 were equal to others: dropped."
    before = np.einsum("f,af,bf->ab", weights, factors[:2], factors[2:])
    after = np.einsum("f,af,bf->ab", kept, columns[:2], columns[2:])
    np.testing.assert_allclose(after, before, atol=1e-14)


def test_close_is_not_equal():
    factors = random_start(0, SHAPE, 2)[1]
    factors[:, 1] = factors[:, 0] + 1e-5
    assert tidy(np.array([0.6, 0.4]), factors)[2] == ""


def test_inputs_are_left_alone():
    weights, factors = np.array([0.5, 0.5]), np.full((5, 2), 0.5)
    tidy(weights, factors)
    assert weights.tolist() == [0.5, 0.5]
