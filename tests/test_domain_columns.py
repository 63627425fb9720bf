"""Bins, labels and the forms of a column, against definitions written out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoint.domain.columns import Coded, Numbers, read_column
from rejoint.domain.labels import (
    Bin,
    bin_codes,
    bins_of_edges,
    is_missing,
    native,
    natural_order,
    place_among,
    quantile_edges,
    representatives,
)
from rejoint.text import nearest, show

numbers = st.floats(-1e6, 1e6) | st.integers(-50, 50).map(float)
edges_lists = st.lists(numbers, min_size=2, max_size=60, unique=True).map(sorted)


class TestBin:
    def test_text_reads_back_exactly(self):
        third = Bin(1 / 3, 2 / 3)
        left, right = str(third).strip("[)").split(", ")
        assert (float(left), float(right)) == (1 / 3, 2 / 3)

    def test_text_of_each_shape(self):
        inf = math.inf
        bins = [Bin(0, 1), Bin(0, 1, True), Bin(-inf, 1), Bin(-inf, 1, True), Bin(1, inf)]
        texts = ["[0, 1)", "[0, 1]", "< 1", "<= 1", ">= 1", "any number", "[1234567, 2e+07)"]
        bins += [Bin(-inf, inf), Bin(1234567, 2e7)]
        assert [str(b) for b in bins] == texts

    def test_only_numbers_are_in(self):
        assert 1 in Bin(0, 2)
        assert np.float32(1.5) in Bin(0, 2)
        assert math.inf in Bin(0, math.inf, True)
        assert "1" not in Bin(0, 2)
        assert math.nan not in Bin(-math.inf, math.inf, True)

    @given(edges_lists, st.lists(numbers | st.sampled_from([math.inf, -math.inf]), max_size=30))
    def test_codes_agree_with_membership(self, edges, values):
        bins = bins_of_edges(np.array(edges))
        values = [*values, *edges]
        expected = [next((i for i, b in enumerate(bins) if v in b), -2) for v in values]
        assert bin_codes(bins, np.array(values)).tolist() == expected

    def test_nan_is_missing_not_outside(self):
        assert bin_codes((Bin(0, 1),), np.array([np.nan, 0.5, 7])).tolist() == [-1, 0, -2]

    @given(st.lists(numbers, min_size=1, max_size=100, unique=True).map(sorted), st.lists(numbers))
    def test_place_among_is_searchsorted(self, edges, values):
        # Up to 48 edges by comparison, beyond by bisection: both must be the same.
        expected = np.searchsorted(edges, values, side="right") - 1
        assert place_among(np.array(edges), np.array(values)).tolist() == expected.tolist()


class TestQuantiles:
    @given(st.lists(numbers, min_size=1, max_size=80), st.integers(2, 12))
    def test_edges_part_all_values_as_evenly_as_ties_allow(self, values, count):
        values = np.array(values)
        edges = quantile_edges(values, count)
        assert (np.diff(edges) > 0).all()
        assert np.isinf(edges[[0, -1]]).all()
        assert len(edges) - 1 <= count
        # No bin is empty: every edge lies between two values.
        codes = bin_codes(bins_of_edges(edges), values)
        assert set(codes) == set(range(len(edges) - 1))
        # The share below each edge is the nearest possible to one of the quantiles.
        cuts = np.unique(values)
        possible = np.array([np.mean(values < c) for c in cuts])
        for share in [np.mean(values < e) for e in edges[1:-1]]:
            targets = np.arange(1, count) / count
            best = np.abs(possible[:, None] - targets).min(axis=0)
            assert (np.abs(share - targets) <= best + 1e-12).any()  # rounding of the shares

    def test_distinct_values_give_equal_bins(self):
        rng = np.random.default_rng(0)
        values = rng.normal(size=1000)
        codes = bin_codes(bins_of_edges(quantile_edges(values, 10)), values)
        assert np.bincount(codes).tolist() == [100] * 10

    def test_edges_are_round(self):
        values = np.array([0.1234, 0.5678, 37.283, 37.319, 99.1])
        assert quantile_edges(values, 5).tolist() == [-math.inf, 0.5, 30, 37.3, 90, math.inf]

    @given(st.lists(st.tuples(numbers, st.integers(0, 4)), min_size=1, max_size=40))
    def test_weights_are_repetitions(self, pairs):
        values, times = (np.array(x) for x in zip(*pairs, strict=True))
        if times.sum():
            repeated = quantile_edges(np.repeat(values, times), 4)
            weighted = quantile_edges(values, 4, times.astype(float))
            assert weighted.tolist() == repeated.tolist()

    def test_infinite_values(self):
        values = np.array([-math.inf, 1, 2, math.inf])
        assert quantile_edges(values, 2).tolist() == [-math.inf, 2, math.inf]

    def test_representatives_keep_the_mean(self):
        rng = np.random.default_rng(1)
        values, weight = rng.exponential(size=500), rng.random(500)
        bins = bins_of_edges(quantile_edges(values, 7))
        mass = np.bincount(bin_codes(bins, values), weights=weight)
        mean = np.dot(mass, representatives(bins, values, weight)) / weight.sum()
        # Sums of 500 numbers of order one: rounding of 1e-14 relative.
        assert mean == pytest.approx(np.average(values, weights=weight), rel=1e-12)

    def test_representatives_of_empty_bins(self):
        inf = math.inf
        bins = (Bin(-inf, 0), Bin(0, 10), Bin(10, inf))
        assert representatives(bins, np.array([])) == (0, 5, 10)
        assert representatives((Bin(-inf, inf),), np.array([inf])) == (0,)


class TestLabels:
    def test_missing(self):
        pd = pytest.importorskip("pandas")
        empty = [None, math.nan, np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT", "s")]
        assert all(is_missing(v) for v in [*empty, np.ma.masked])
        assert not any(is_missing(v) for v in ["", "nan", 0, False, math.inf, ()])

    def test_natural_order(self):
        texts = ["a10", "a9", "b", "", "a09", "10", "9", "a1b2", "a1b10"]
        ordered = ["", "9", "10", "a1b2", "a1b10", "a09", "a9", "a10", "b"]
        assert natural_order(texts) == ordered
        assert natural_order(["x", 2, -1.5, "10"]) == [-1.5, 2, "10", "x"]

    @given(st.lists(st.text() | st.integers() | st.floats(allow_nan=False), unique=True))
    def test_natural_order_is_one_order(self, labels):
        assert natural_order(labels) == natural_order(natural_order(labels)[::-1])

    def test_very_long_digits(self):
        # int() refuses more than 4,300 digits.
        longer, shorter = "1" + "0" * 5000, "9" * 5000
        assert natural_order([longer, shorter]) == [shorter, longer]

    def test_native(self):
        class Text(str):
            pass

        assert type(native(Text("a"))) is str
        assert type(native(np.uint8(3))) is int
        assert type(native(np.float32(0.5))) is float
        with pytest.raises(TypeError, match="is a complex, which cannot be a label"):
            native(1j)

    def test_nearest_and_show(self):
        assert nearest("[0, 18", (Bin(0, 18), Bin(18, 65))) == " Did you mean [0, 18)?"
        assert show((Bin(0, 18), "a")) == "[0, 18), 'a'"


class TestForms:
    def test_whole_floats_are_integers(self):
        column = read_column(np.array([1.0, np.nan, 3.0]))
        assert column.values.dtype == np.int64
        assert column.missing.tolist() == [False, True, False]

    def test_numbers_too_large_for_an_array_keep_their_value(self):
        for labels in ([2**53 + 1, 0.5], [10**30], [2**64, -1]):
            column = read_column(labels)
            assert isinstance(column, Coded)
            assert list(column.labels) == labels

    def test_unsigned(self):
        assert read_column(np.array([2**63 + 5], dtype=np.uint64)).values.tolist() == [2**63 + 5]

    def test_many_objects_that_are_nan(self):
        column = read_column([float("nan") for _ in range(10)] + ["x"])
        assert column.labels == ("x",)
        assert column.codes.tolist() == [-1] * 10 + [0]

    def test_single_values_are_no_columns(self):
        with pytest.raises(TypeError, match=r"'a' must be a column .* not the single str 'yes'"):
            read_column("yes", "a")
        with pytest.raises(ValueError, match="must be one column, not an array of 2 axes"):
            read_column(np.zeros((2, 2)), "a")

    def test_masked_arrays(self):
        column = read_column(np.ma.array(["a", "b"], mask=[True, False]))
        assert column.labels == ("b",)
        assert isinstance(read_column(np.ma.array([1, 2], mask=[True, False])), Numbers)
