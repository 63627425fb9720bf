"""The counting kernels, compiled and NumPy, against brute force and against each other."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoint import kernels
from rejoint.kernels.count_tables import numpy_count

compiled = pytest.mark.skipif(kernels.backend != "native", reason="kernels are not compiled")


def twin(codes, weight, levels, subsets, threads=1):
    return numpy_count(codes, weight, levels, subsets)


BACKENDS = [
    pytest.param(twin, id="numpy"),
    pytest.param(kernels.count, id="native", marks=compiled),
]


def brute_force(codes, weight, levels, subsets):
    """Row by row, cell by cell."""
    tables = []
    for subset in subsets:
        table = np.zeros([levels[n] for n in subset])
        for i, row in enumerate(codes):
            cell = tuple(int(row[n]) for n in subset)
            if min(cell) >= 0:
                table[cell] += 1 if weight is None else weight[i]
        tables.append(table.ravel())
    return np.concatenate(tables)


def random_codes(rng, rows, levels, missing=0.4, dtype=np.int16):
    codes = np.stack([rng.integers(0, n, size=rows) for n in levels], axis=1)
    codes[rng.random(codes.shape) < missing] = -1
    return np.ascontiguousarray(codes, dtype=dtype)


def all_subsets(n, orders):
    return [s for k in orders for s in itertools.combinations(range(n), k)]


@pytest.mark.parametrize("count", BACKENDS)
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_orders_against_brute_force(count, dtype, weighted):
    rng = np.random.default_rng(0)
    levels = [2, 3, 1, 5, 4]
    codes = random_codes(rng, 300, levels, dtype=dtype)
    subsets = all_subsets(5, [1, 2, 3, 4])
    weight = rng.random(300) if weighted else None
    found = count(codes, weight, levels, subsets, 2)
    truth = brute_force(codes, weight, levels, subsets)
    if weighted:
        # Sums of at most 300 numbers below one, in whatever order: 300 roundings.
        np.testing.assert_allclose(found, truth, rtol=300 * 2.0**-52)
    else:
        np.testing.assert_array_equal(found, truth)


@st.composite
def problems(draw):
    levels = draw(st.lists(st.integers(1, 6), min_size=1, max_size=6))
    rows = draw(st.integers(0, 40))
    cells = st.lists(
        st.tuples(*(st.integers(-1, n - 1) for n in levels)), min_size=rows, max_size=rows
    )
    every = all_subsets(len(levels), range(1, min(4, len(levels)) + 1))
    subsets = draw(st.lists(st.sampled_from(every), min_size=1, max_size=12, unique=True))
    return np.array(draw(cells), dtype=np.int16).reshape(rows, len(levels)), levels, subsets


@settings(max_examples=60, deadline=None)
@given(problem=problems(), data=st.data())
def test_any_mix_of_subsets_in_any_order(problem, data):
    codes, levels, subsets = problem
    truth = brute_force(codes, None, levels, subsets)
    np.testing.assert_array_equal(twin(codes, None, levels, subsets), truth)
    threads = data.draw(st.integers(1, 3))
    np.testing.assert_array_equal(kernels.count(codes, None, levels, subsets, threads), truth)


@compiled
@pytest.mark.parametrize("missing", [0.0, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("rows", [1, 63, 64, 65, 2047, 2048, 2049, 20_000])
def test_compiled_equals_twin_across_chunks(rows, missing):
    # Many rows in few cells, so that byte counters fill up; sizes around a chunk's 2,048 rows.
    rng = np.random.default_rng(rows)
    levels = [2, 2, 3, 7, 2]
    codes = random_codes(rng, rows, levels, missing)
    subsets = all_subsets(5, [1, 2, 3, 4])
    truth = twin(codes, None, levels, subsets)
    for threads in (1, 2, 5):
        np.testing.assert_array_equal(kernels.count(codes, None, levels, subsets, threads), truth)


@compiled
def test_more_bytes_than_a_panel_and_gaps_between_tables():
    # 60 variables of up to 20 levels lie in several panels of 256 bytes; runs have gaps.
    rng = np.random.default_rng(1)
    levels = [int(n) for n in rng.integers(1, 21, size=60)]
    codes = random_codes(rng, 3_000, levels, 0.3)
    every = all_subsets(60, [2])
    subsets = [every[i] for i in rng.permutation(len(every))[:700]]
    subsets += [(0, 1, 59), (0, 1, 2), (0, 1, 30), (5,), (59,)]
    truth = twin(codes, None, levels, subsets)
    np.testing.assert_array_equal(kernels.count(codes, None, levels, subsets, 2), truth)


@pytest.mark.parametrize("count", BACKENDS)
@pytest.mark.parametrize("dtype", [np.int16, np.int32])
def test_thousands_of_levels(count, dtype):
    rng = np.random.default_rng(2)
    levels = [3000, 2500, 2]
    codes = random_codes(rng, 4_000, levels, 0.2, dtype)
    subsets = [(0, 1), (1, 2), (0, 2), (0,)]
    found = count(codes, None, levels, subsets, 2)
    start = 0
    for subset in subsets:
        shape = [levels[n] for n in subset]
        table = found[start : start + np.prod(shape)].reshape(shape)
        start += table.size
        seen = codes[(codes[:, subset] >= 0).all(axis=1)][:, subset]
        cells, times = np.unique(seen, axis=0, return_counts=True)
        np.testing.assert_array_equal(table[tuple(cells.T)], times)
        assert table.sum() == len(seen)


@pytest.mark.parametrize("count", BACKENDS)
@pytest.mark.parametrize("levels", [[127, 126, 3], [128, 2, 300]])  # more than int8 can tell, too
@pytest.mark.parametrize("weighted", [False, True])
def test_as_many_levels_as_int8_can_tell(count, levels, weighted):
    rng = np.random.default_rng(5)
    codes = random_codes(rng, 5_000, [min(n, 128) for n in levels], dtype=np.int8)
    assert codes.max() >= 126
    weight = rng.integers(0, 5, size=5_000).astype(float) if weighted else None
    subsets = all_subsets(3, [1, 2, 3])
    truth = twin(codes.astype(np.int32), weight, levels, subsets)
    np.testing.assert_array_equal(count(codes, weight, levels, subsets, 2), truth)


@compiled
def test_levels_beyond_int16():
    levels = [40_000, 2]
    codes = np.array([[39_999, 1], [39_999, 1], [-1, 0], [5, 0]], dtype=np.int32)
    table = kernels.count(codes, None, levels, [(0, 1)]).reshape(levels)
    assert table[39_999, 1] == 2
    assert table[5, 0] == 1
    assert table.sum() == 3


@compiled
def test_threads_do_not_change_weighted_sums():
    rng = np.random.default_rng(3)
    levels = [4] * 8
    codes = random_codes(rng, 10_000, levels)
    weight = rng.random(10_000) * 1e6
    subsets = all_subsets(8, [2, 3])
    one = kernels.count(codes, weight, levels, subsets, 1)
    for threads in (2, 3, 7):
        np.testing.assert_array_equal(kernels.count(codes, weight, levels, subsets, threads), one)


@compiled
def test_large_tables_are_shared_out_between_threads():
    # Forty copies of six tables of 1.3 MB would pass the 256 MB that copies may take.
    rng = np.random.default_rng(4)
    levels = [400] * 4 + [2]
    codes = random_codes(rng, 82_000, levels)
    subsets = all_subsets(5, [2])
    one = kernels.count(codes, None, levels, subsets, 1)
    np.testing.assert_array_equal(kernels.count(codes, None, levels, subsets, 40), one)


@pytest.mark.parametrize("count", BACKENDS)
def test_merged_records_are_whole_weights(count):
    codes = np.array([[0, 1], [1, -1]], dtype=np.int16)
    weight = np.array([2.0**40 + 1, 3.0])
    found = count(codes, weight, [2, 2], [(0,), (0, 1)])
    np.testing.assert_array_equal(found, [2.0**40 + 1, 3, 0, 2.0**40 + 1, 0, 0])


@pytest.mark.parametrize("count", BACKENDS)
def test_no_rows(count):
    codes = np.empty((0, 2), dtype=np.int16)
    np.testing.assert_array_equal(count(codes, None, [2, 2], [(0, 1)]), np.zeros(4))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
@pytest.mark.parametrize("bad", ["lowest", -2, 2, 3, "highest"])
@pytest.mark.parametrize("row", [0, 17, 4_999])
def test_any_code_out_of_range_is_refused(dtype, bad, row):
    numbers = np.iinfo(dtype)
    codes = np.zeros((5_000, 3), dtype=dtype)
    codes[row, 1] = {"lowest": numbers.min, "highest": numbers.max}.get(bad, bad)
    weight = np.ones(5_000)
    for subsets, mass in (([(0,)], None), ([(0, 1)], weight), ([(0, 1, 2)], None)):
        with pytest.raises(ValueError, match="between -1"):
            kernels.count(codes, mass, [200, 2, 2], subsets, 2)


def test_weights_that_do_not_fit_are_refused():
    codes = np.zeros((3, 1), dtype=np.int8)
    for weight, words in (
        (np.ones(2), r"weight has shape \(2,\), but there are 3"),
        (np.array([1.0, np.nan, 1.0]), "finite and not negative"),
        (np.array([1.0, -1.0, 1.0]), "finite and not negative"),
    ):
        with pytest.raises(ValueError, match=words):
            kernels.count(codes, weight, [2], [(0,)])


def test_codes_out_of_range_are_refused():
    codes = np.array([[0, 2]], dtype=np.int16)
    with pytest.raises(ValueError, match=r"between -1 \(missing\) and the number of levels"):
        kernels.count(codes, None, [2, 2], [(0, 1)])
    with pytest.raises(ValueError, match=r"between -1"):
        kernels.count(codes - 2, None, [2, 2], [(0, 1)])
    with pytest.raises(ValueError, match=r"shape \(1, 2\), but there are 3 variables"):
        kernels.count(codes, None, [3, 3, 3], [(0, 1)])
    for bad in [(), (0, 2), (-1, 0)]:
        with pytest.raises(ValueError, match=r"variables among 0\.\.1, at least one"):
            kernels.count(codes, None, [3, 3], [bad])


def test_the_environment_forces_numpy():
    code = "from rejoint import kernels; print(kernels.backend)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"REJOINT_KERNELS": "numpy"},
    )
    assert done.stdout.strip() == "numpy"
