"""Passes over observed cells: the same as over tables of codes, in both kernels."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_twins import by_twin

from rejoint import kernels
from rejoint.kernels import SparseCodes

compiled = pytest.mark.skipif(kernels.backend != "native", reason="kernels are not compiled")


def random_codes(rng, rows, levels, missing=0.6, dtype=np.int16):
    codes = np.stack([rng.integers(0, n, size=rows) for n in levels], axis=1)
    codes[rng.random(codes.shape) < missing] = -1
    return np.ascontiguousarray(codes, dtype=dtype)


def random_model(rng, levels, rank):
    factors = [rng.dirichlet(np.ones(n), size=rank).T for n in levels]
    return rng.dirichlet(np.ones(rank)), np.concatenate(factors)


def twin_pass(cells, weight, weights, factors, levels, threads=1):
    return by_twin(kernels.class_pass, cells, weight, weights, factors, levels)


PASSES = [
    pytest.param(twin_pass, id="numpy"),
    pytest.param(kernels.class_pass, id="native", marks=compiled),
]


def assert_same(found, truth):
    """To rounding: the same products and sums, in another order, of a few hundred numbers."""
    assert found[0] == pytest.approx(truth[0], rel=1e-11)
    for one, other in zip(found[1:], truth[1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("class_pass", PASSES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rank", [1, 3, 20, 33])
def test_pass_equals_that_over_codes(class_pass, weighted, rank):
    rng = np.random.default_rng(rank)
    levels = [2, 3, 1, 5, 4, 40]
    codes = random_codes(rng, 300, levels)
    codes[:3] = -1  # records without any cell
    codes[-1] = -1
    weights, factors = random_model(rng, levels, rank)
    weight = rng.integers(0, 3, size=300).astype(float) if weighted else None
    cells = SparseCodes.of_codes(codes, levels)
    found = class_pass(cells, weight, weights, factors, levels)
    assert_same(found, by_twin(kernels.class_pass, codes, weight, weights, factors, levels))


@compiled
def test_threads_do_not_change_the_result():
    rng = np.random.default_rng(0)
    levels = [3] * 30
    cells = SparseCodes.of_codes(random_codes(rng, 20_000, levels, missing=0.8), levels)
    model = random_model(rng, levels, 5)
    one = kernels.class_pass(cells, None, *model, levels, 1)
    two = kernels.class_pass(cells, None, *model, levels, 3)
    assert one[0] == two[0]
    np.testing.assert_array_equal(one[2], two[2])


@pytest.mark.parametrize("class_pass", PASSES)
def test_products_that_underflow_and_numbers_above_one(class_pass):
    rng = np.random.default_rng(1)
    levels = [4] * 900
    codes = random_codes(rng, 20, levels, missing=0.1)  # about 810 cells, 4^-810 is below 1e-400
    weights, factors = random_model(rng, levels, 6)
    factors[::3] *= 1e3  # columns need not sum to one
    found = class_pass(SparseCodes.of_codes(codes, levels), None, weights, factors, levels)
    truth = by_twin(kernels.class_pass, codes, None, weights, factors, levels)
    # Logarithms of up to 900 numbers add up to about 1,000: exp of them loses three digits more.
    np.testing.assert_allclose(found[2], truth[2], rtol=1e-9, atol=1e-9)
    assert found[0] == pytest.approx(truth[0], rel=1e-11)


@pytest.mark.parametrize("class_pass", PASSES)
def test_an_impossible_record_adds_nothing(class_pass):
    cells = SparseCodes(np.array([0, 1, 2]), np.array([0, 1]), (2,))
    factors = np.array([[1.0, 1.0], [0.0, 0.0]])
    total, classes, counts = class_pass(cells, None, np.array([0.5, 0.5]), factors, [2])
    assert total == -np.inf
    np.testing.assert_allclose(classes, [0.5, 0.5])
    np.testing.assert_allclose(counts, [[0.5, 0.5], [0.0, 0.0]])


def test_draws_are_those_of_the_codes():
    rng = np.random.default_rng(2)
    levels = [3, 4, 2, 5]
    codes = random_codes(rng, 500, levels)
    weights, factors = random_model(rng, levels, 4)
    weight = rng.integers(0, 4, size=500).astype(float)
    cells = SparseCodes.of_codes(codes, levels)
    for draw in (kernels.class_draws, partial(by_twin, kernels.class_draws)):
        dense, sparse = (draw(form, weight, weights, factors, levels, 5) for form in (codes, cells))
        np.testing.assert_array_equal(sparse[1], dense[1])
        np.testing.assert_array_equal(sparse[2], dense[2])


def test_posteriors_are_those_of_the_codes():
    rng = np.random.default_rng(3)
    levels = [3, 4, 2, 5]
    codes = random_codes(rng, 200, levels)
    weights, factors = random_model(rng, levels, 4)
    cells = SparseCodes.of_codes(codes, levels)
    truth = by_twin(kernels.class_posterior, codes, weights, factors, levels)
    found = kernels.class_posterior(cells, weights, factors, levels)
    for one, other in zip(found, truth, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)  # one order of products
    only = kernels.class_log_prob(cells, weights, factors, levels)
    np.testing.assert_array_equal(only, found[0])


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_codes_come_back_and_rows_are_picked(data):
    levels = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    rows = data.draw(st.integers(0, 8))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    codes = random_codes(rng, rows, levels, missing=0.5)
    cells = SparseCodes.of_codes(codes, levels)
    np.testing.assert_array_equal(cells.to_codes(), codes)
    assert cells.size == int((codes >= 0).sum())
    chosen = rng.integers(0, rows, size=5) if rows else np.empty(0, dtype=int)
    np.testing.assert_array_equal(cells[chosen].to_codes(), codes[chosen])
    np.testing.assert_array_equal(cells[1:3].to_codes(), codes[1:3])
    mask = rng.random(rows) < 0.5
    np.testing.assert_array_equal(cells[mask].to_codes(), codes[mask])


@pytest.mark.parametrize(
    ("starts", "cells", "words"),
    [
        ([0, 1], [7], "numbered from 0 to 4"),
        ([0, 2], [0], "rise from 0 to the number of cells, 1"),
        ([0, 2, 1, 2], [0, 2], "rise from 0"),
        ([0, 0, 2], [0, 1], "Record 1: cells must be in the order of the variables"),
        ([0, 2], [3, 0], "Record 0: cells"),
        ([], [], "starts must not be empty"),
    ],
)
def test_cells_that_are_none_are_refused(starts, cells, words):
    with pytest.raises(ValueError, match=words):
        SparseCodes(np.array(starts), np.array(cells), (2, 3))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_codes_of_any_type_are_taken_and_those_out_of_range_refused(dtype):
    codes = np.array([[1, -1], [0, 2]], dtype=dtype)
    found = SparseCodes.of_codes(codes, [2, 3])
    np.testing.assert_array_equal(found.to_codes(), codes)
    with pytest.raises(ValueError, match="between -1"):
        SparseCodes.of_codes(codes, [1, 3])  # the code would be a level of the next variable


def test_some_records_and_variables_are_what_the_constructor_accepts():
    rng = np.random.default_rng(4)
    codes = random_codes(rng, 50, [3, 1, 4, 130], dtype=np.int16)
    cells = SparseCodes.of_codes(codes, [3, 1, 4, 130])
    for found in (cells, cells[::3], cells[rng.permutation(50)], cells.pick([3, 0]), cells[:0]):
        again = SparseCodes(found.starts, found.cells, found.levels)  # checks
        np.testing.assert_array_equal(again.to_codes(), found.to_codes())
        assert not found.starts.flags.writeable
        assert not found.cells.flags.writeable


def test_other_levels_than_the_models_are_refused():
    cells = SparseCodes(np.array([0, 1]), np.array([0]), (2, 3))
    with pytest.raises(ValueError, match="other numbers of levels"):
        kernels.class_pass(cells, None, np.ones(1), np.ones((5, 1)), [3, 2])


def test_a_callers_array_stays_writable():
    cells = np.array([0], dtype=np.int32)
    SparseCodes(np.array([0, 1]), cells, (2,))
    cells[0] = 1
    assert cells[0] == 1
