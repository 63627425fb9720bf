"""The least change of a mixture so that it meets tables."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoint.factorization.corrector import correct, exclude_zeros
from rejoint.factorization.table_goals import ExactGoal, IntervalGoal
from rejoint.factorization.unfolding import FlatTables, TableTangent
from rejoint.model import Model

LEVELS = (3, 2, 4, 2)
SUBSETS = ((0,), (0, 1), (1, 2, 3), (0, 2))


def draw(rng, levels=LEVELS, rank=30):
    parts = [rng.dirichlet(np.ones(size), rank).T for size in levels]
    return Model.of(rng.dirichlet(np.ones(rank)), parts)


def dense(model):
    joint = np.einsum("f,af,bf,cf,df->abcd", model.weights, *model.parts)
    return joint


def margin(joint, subset):
    return joint.sum(axis=tuple(n for n in range(joint.ndim) if n not in subset)).ravel()


def test_tables_of_a_model_are_those_of_its_joint():
    model = draw(np.random.default_rng(0))
    cells = FlatTables(model.layout, SUBSETS)
    expected = np.concatenate([margin(dense(model), s) for s in SUBSETS])
    np.testing.assert_allclose(cells.of_model(model), expected, atol=1e-14)


def test_push_is_the_derivative_and_pull_its_transpose():
    rng = np.random.default_rng(1)
    model = draw(rng, rank=4)
    cells = FlatTables(model.layout, SUBSETS)
    tangent = TableTangent(cells, model)
    classes, levels = rng.standard_normal(4), rng.standard_normal((model.layout.size, 4))
    classes -= model.weights @ classes
    levels -= model.layout.expand(model.layout.sums(model.factors * levels))
    step = 1e-6
    ahead, behind = (
        cells.of_model(
            Model(
                model.layout,
                model.weights * np.exp(sign * step * classes),
                model.factors * np.exp(sign * step * levels),
            )
        )
        for sign in (1, -1)
    )
    pushed = tangent.apply(classes, levels)
    np.testing.assert_allclose(pushed, (ahead - behind) / (2 * step), atol=1e-8)
    numbers = rng.standard_normal(len(pushed))
    a, s = tangent.transpose(numbers)
    inner = (model.weights * a) @ classes + np.sum(model.weights * model.factors * s * levels)
    assert numbers @ pushed == pytest.approx(inner, abs=1e-12)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_tables_of_another_joint_are_met(seed):
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.ones(np.prod(LEVELS))).reshape(LEVELS)
    goals = [ExactGoal(s, margin(joint, s)) for s in SUBSETS]
    done = correct(draw(rng, rank=60), goals)
    assert done.distance <= 1e-7
    for goal in goals:
        assert np.abs(margin(dense(done.model), goal.subset) - goal.shares).sum() <= 2e-7


def test_a_model_that_meets_the_tables_is_left_alone():
    model = draw(np.random.default_rng(3))
    done = correct(model, [ExactGoal(s, margin(dense(model), s)) for s in SUBSETS])
    assert done.model is model
    assert done.steps == 0


def test_the_change_is_small_where_little_is_missed():
    rng = np.random.default_rng(4)
    model = draw(rng, rank=60)
    table = margin(dense(model), (0, 1))
    table[0] += 1e-3
    table[1] -= 1e-3
    done = correct(model, [ExactGoal((0, 1), table)])
    assert np.abs(dense(done.model) - dense(model)).sum() / 2 < 1.5e-3


def test_cells_within_bounds_do_not_count():
    rng = np.random.default_rng(5)
    joint = rng.dirichlet(np.ones(np.prod(LEVELS))).reshape(LEVELS)
    goals = []
    for s in combinations(range(4), 2):
        table = 1000 * margin(joint, s)
        rounded = 5 * np.round(table / 5)
        goals.append(IntervalGoal(s, np.maximum(rounded - 2.5, 0), rounded + 2.5))
    start = draw(rng, rank=60)
    done = correct(start, goals)
    assert done.distance <= 1e-7
    cells = FlatTables(start.layout, tuple(goal.subset for goal in goals))
    for goal, table in zip(goals, cells.split(cells.of_model(done.model)), strict=True):
        # Some total puts every cell within its bounds, which all of them leave room for.
        low, high = (goal.low / table).max(), (goal.high / table).min()
        assert low <= high * (1 + 1e-4)


def test_contradictions_end_without_a_joint():
    goals = [ExactGoal((0,), np.array([0.5, 0.3, 0.2])), ExactGoal((0,), np.array([0.2, 0.3, 0.5]))]
    done = correct(draw(np.random.default_rng(6)), goals, max_steps=30)
    assert done.distance > 0.1


def test_published_zeros_are_zero():
    rng = np.random.default_rng(7)
    joint = rng.dirichlet(np.ones(np.prod(LEVELS))).reshape(LEVELS)
    joint[0, 1] = joint[2, :, 3] = joint[:, 1, 0] = 0.0
    joint /= joint.sum()
    goals = [ExactGoal(s, margin(joint, s)) for s in combinations(range(4), 2)]
    done = correct(exclude_zeros(draw(rng, rank=120), goals), goals)
    assert done.distance <= 1e-7
    for goal in goals:
        assert (margin(dense(done.model), goal.subset)[goal.shares == 0] == 0).all()
