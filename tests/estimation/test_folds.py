"""Folds: each record is held out once, copies one by one, clusters and fractions whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_records import random_records

import rejoint as rj
from rejoint.estimation.data import InMemory
from rejoint.estimation.folds import deal, make_folds


@given(
    st.lists(st.integers(0, 6), min_size=2, max_size=8).filter(lambda w: sum(w) > 3),
    st.integers(2, 4),
)
def test_every_copy_is_held_out_once(weight, count):
    levels = {"a": list(range(len(weight)))}
    records = rj.Records.of(levels, kinds={"a": "nominal"}, sample_weight=weight)
    parts = list(make_folds(InMemory.of(records), count, np.random.default_rng(0)))
    held = np.zeros(len(weight))
    for fold in parts:
        np.add.at(held, fold.judge.codes[:, 0], fold.mass)
        assert fold.learn.total + fold.judge.total == sum(weight)
        assert np.array_equal(fold.mass, fold.judge.weight)
    assert np.array_equal(held, weight)


def test_folds_are_even():
    data = InMemory.of(rj.Records.of({"a": ["x"] * 7 + ["y"] * 5}))
    sizes = [f.mass.sum() for f in make_folds(data, 4, np.random.default_rng(0))]
    assert sizes == [3, 3, 3, 3]


def test_other_weights_stay_with_their_record():
    data = InMemory.of(rj.Records.of({"a": ["x", "y", "z", "u"]}, sample_weight=[0.5, 1, 2.25, 3]))
    parts = list(make_folds(data, 2, np.random.default_rng(0)))
    assert sorted(np.concatenate([f.mass for f in parts])) == [0.5, 1, 2.25, 3]
    assert np.array_equal(parts[0].spread, parts[0].mass ** 2)


def test_many_copies_are_dealt_at_once():
    dealt = deal(np.array([3e7, 1e7]), 2, np.random.default_rng(0))
    assert np.array_equal(dealt.sum(axis=1), [3e7, 1e7])


def test_records_of_equal_values_with_fractional_weights_are_held_out_one_by_one():
    """A weight that is no count belongs to one observation, whatever the others are."""
    data = rj.Records.of({"a": ["x", "y"] * 20}, sample_weight=np.linspace(0.1, 1.9, 40))
    parts = list(make_folds(InMemory.of(data), 4, np.random.default_rng(0)))
    assert [len(part.mass) for part in parts] == [10] * 4
    assert [len(part.learn.weight) for part in parts] == [2] * 4
    assert sum(part.mass.sum() for part in parts) == pytest.approx(data.sample_weight.sum())
    for part in parts:
        assert part.learn.total + part.judge.total == pytest.approx(data.sample_weight.sum())


def test_weights_that_only_add_up_to_whole_numbers_are_no_counts():
    data = rj.Records.of({"a": ["x", "y"] * 20}, sample_weight=np.full(40, 0.5))
    parts = list(make_folds(InMemory.of(data), 4, np.random.default_rng(0)))
    assert [len(part.mass) for part in parts] == [10] * 4


def test_a_limit_draws_rows_to_learn_from_and_to_judge_by():
    """Each record keeps its own values: those that judge are a part of those held out."""
    data = InMemory.of(random_records(0, (5, 5, 5, 5), 400))
    rng = np.random.default_rng(0)
    fold = next(make_folds(data, 4, rng))
    few = fold.limit(50, 20, rng)
    assert len(few.learn.records.weight) == 50
    assert len(few.mass) == len(few.spread) == len(few.judge.records.weight) == 20
    held = {tuple(row) for row in fold.judge.records.codes}
    assert {tuple(row) for row in few.judge.records.codes} <= held
    np.testing.assert_array_equal(few.mass, few.judge.records.weight)
    assert fold.limit(10**6, 10**6, rng).learn.total == fold.learn.total
