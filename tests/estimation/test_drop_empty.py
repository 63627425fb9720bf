"""Empty and equal classes are dropped, and the text says so."""

import numpy as np
import pytest
from small_records import random_start

from rejoint.estimation.estimate import drop_empty
from rejoint.model import Layout, Model

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
    assert text == "2 of 4 classes had no weight left: dropped."


def test_equal_classes_become_one_with_the_weight_of_both():
    factors = random_factors(3)
    factors[:, 2] = factors[:, 0] + 1e-8
    model, text = drop([0.3, 0.5, 0.2], factors)
    np.testing.assert_allclose(model.weights, [0.5, 0.5])
    assert model.factors.shape == (5, 2)
    assert text == "1 were equal to others: dropped."


def test_both_are_said_and_the_joint_stays():
    weights = np.array([0.3, 0.5, 0.2, 0.0])
    factors = random_factors(4)
    factors[:, 2] = factors[:, 0]
    model, text = drop(weights, factors)
    assert text == "1 of 4 classes had no weight left and 1 were equal to others: dropped."
    before = np.einsum("f,af,bf->ab", weights, factors[:2], factors[2:])
    after = np.einsum("f,af,bf->ab", model.weights, *model.parts)
    np.testing.assert_allclose(after, before, atol=1e-14)


def test_close_is_not_equal():
    factors = random_factors(2)
    factors[:, 1] = factors[:, 0] + 1e-5
    assert drop([0.6, 0.4], factors)[1] == ""


def test_the_model_given_is_not_changed():
    model = Model(LAYOUT, np.array([0.5, 0.5]), np.full((5, 2), 0.5))
    drop_empty(model)
    assert model.weights.tolist() == [0.5, 0.5]
