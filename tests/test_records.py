"""Records: what they hold and what they answer, against loops over the rows."""

import itertools
import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rejoint as rj
from rejoint import Bin, Domain, Records, Remark, SparseRecords
from rejoint.kernels import SparseCodes
from rejoint.records.merge import merge_rows

D = Domain.of({"a": ["x", "y"], "b": 3, "c": [True, False]})


@st.composite
def records(draw, weighted=True):
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    cell = [st.integers(-1, size - 1) for size in shape]
    codes = draw(st.lists(st.tuples(*cell), max_size=25))
    weight = None
    if weighted and draw(st.booleans()):
        # Multiples of a quarter add exactly, in any order.
        quarters = st.integers(0, 40).map(lambda n: n / 4)
        weights = st.lists(quarters, min_size=len(codes), max_size=len(codes))
        weight = draw(weights.filter(lambda weight: not codes or any(weight)))
    array = np.array(codes, dtype=int).reshape(len(codes), len(shape))
    return Records(Domain.of_shape(shape), array, weight)


def tally(r):
    """The weight of each distinct row, by a loop."""
    counts = Counter()
    weights = np.ones(len(r)) if r.sample_weight is None else r.sample_weight
    for row, weight in zip(r.codes.tolist(), weights.tolist(), strict=True):
        counts[tuple(row)] += weight
    return counts


class TestMerged:
    @given(records())
    def test_against_a_loop(self, r):
        merged = r.merged()
        rows = [tuple(row) for row in merged.codes.tolist()]
        assert dict(zip(rows, merged.sample_weight.tolist(), strict=True)) == tally(r)
        assert rows == sorted(rows)
        assert merged.domain == r.domain

    @pytest.mark.parametrize("levels", [2, 100, 30_000])
    def test_more_cells_than_an_integer_can_count(self, levels):
        rng = np.random.default_rng(levels)
        few = rng.integers(-1, levels, (30, 50))
        codes = few[rng.integers(0, 30, 400)]
        rows, weight = merge_rows(codes, [levels] * 50, None)
        distinct, counts = np.unique(codes, axis=0, return_counts=True)
        assert np.array_equal(rows, distinct)
        assert np.array_equal(weight, counts)

    def test_twice_is_once(self):
        r = Records(D, [[0, 1, -1], [0, 1, -1], [1, 2, 0]]).merged()
        assert np.array_equal(r.merged().codes, r.codes)
        assert r.merged().sample_weight.tolist() == [2, 1]

    def test_is_remembered_but_not_sent(self):
        r = Records(D, [[0, 1, -1], [0, 1, -1], [1, 2, 0]])
        assert r.merged() is r.merged()
        assert r.merged().merged() is r.merged()
        again = pickle.loads(pickle.dumps(r))
        assert "_merged" not in vars(again)
        assert np.array_equal(again.merged().codes, r.merged().codes)

    @pytest.mark.parametrize("copies", [1, 2])
    def test_many_rows_are_merged_if_a_sample_has_twins(self, copies):
        rng = np.random.default_rng(0)
        codes = np.repeat(rng.integers(0, 9, (200_000 // copies, 12)), copies, axis=0)
        r = Records(Domain.of_shape([9] * 12), codes)
        m = r.merged()
        if copies == 1:
            assert np.shares_memory(m.codes, r.codes)
            assert np.array_equal(m.sample_weight, np.ones(len(r)))
            given = Records(r.domain, codes, np.arange(1, len(r) + 1))
            assert given.merged() is given
        else:
            assert len(m) == 100_000
            assert (m.sample_weight == 2).all()

    def test_many_sparse_rows(self):
        rng = np.random.default_rng(0)
        rows, items = 150_000, 4000
        names = [f"i{n}" for n in range(items)]
        domain = Domain.of({name: 1 for name in names})
        for few, kept in ((items, rows), (40, None)):
            cells = rng.integers(0, few // 2, (rows, 2)) + np.array([0, few // 2])
            starts = np.arange(0, 2 * rows + 1, 2)
            r = SparseRecords(domain, SparseCodes(starts, cells.ravel(), domain.shape))
            merged = r.merged()
            assert merged.sample_weight.sum() == rows
            assert len(merged) == (kept or 20 * 20)


class TestTrusted:
    def test_parts_are_not_checked_again(self, monkeypatch, tmp_path):
        r = Records(D, np.zeros((50, 3), dtype=int), np.ones(50))
        rj.scan(r).pack(tmp_path / "pack")

        def refuse(*_):
            raise AssertionError("checked again")

        monkeypatch.setattr(rj.records.records, "as_codes", refuse)
        monkeypatch.setattr(rj.records.survey_design, "as_part_weight", refuse)
        parts = [*r.chunks(20), *rj.scan(tmp_path / "pack", size=20)]
        parts += [r.merged(), r.project(["a", "c"]), r.take([3, 4]), r.take(slice(2))]
        parts += [SparseRecords.of(r).take([1]).to_records(), *rj.scan(r, size=20)]
        for part in parts:
            assert part.codes.dtype == r.codes.dtype
            assert part.codes.flags.c_contiguous
            assert not part.codes.flags.writeable
            assert not part.sample_weight.flags.writeable

    def test_take(self):
        r = Records(D, [[0, 1, -1], [0, 2, -1], [1, 2, 0]], [1, 2, 3])
        assert r.take([2, 0]).sample_weight.tolist() == [3, 1]
        assert r.take(np.array([True, False, True])).codes.tolist() == [[0, 1, -1], [1, 2, 0]]
        assert r.take([1], [7]).sample_weight.tolist() == [7]
        with pytest.raises(ValueError, match="one number for each of the 1 row,"):
            r.take([1], [7, 8])


class TestMarginal:
    @given(records(), st.data())
    def test_against_a_loop(self, r, data):
        names = data.draw(st.permutations(r.names).flatmap(lambda p: st.just(p[:3])))
        chosen = r.domain.indices(names)
        table = np.zeros([r.domain.shape[n] for n in chosen])
        for row, weight in tally(r).items():
            cell = tuple(row[n] for n in chosen)
            if min(cell) >= 0:
                table[cell] += weight
        if table.sum():
            # Both divide the same exact sums.
            assert np.array_equal(r.marginal(names), table / table.sum())
        else:
            with pytest.raises(ValueError, match="No record has a value for each of"):
                r.marginal(names)

    def test_one_name(self):
        assert Records(D, [[0, 1, 0], [1, 1, 0]]).marginal("a").tolist() == [0.5, 0.5]

    def test_a_name_twice(self):
        with pytest.raises(ValueError, match="is requested twice: name each variable once"):
            Records(D, [[0, 1, 0]]).marginal(["a", "a"])


class TestParts:
    @given(records(), st.integers(1, 30))
    def test_chunks_are_the_whole(self, r, size):
        chunks = list(r.chunks(size))
        assert np.array_equal(np.vstack([r.codes[:0], *(c.codes for c in chunks)]), r.codes)
        assert all(np.shares_memory(c.codes, r.codes) for c in chunks)
        if r.sample_weight is not None:
            parts = [c.sample_weight for c in chunks]
            assert np.array_equal(np.concatenate([r.sample_weight[:0], *parts]), r.sample_weight)

    def test_chunks_of_nothing(self):
        with pytest.raises(ValueError, match="at least one row, not 0"):
            list(Records(D, [[0, 1, 0]]).chunks(0))

    def test_project(self):
        r = Records(D, [[0, 1, -1], [1, 2, 0]], [1, 2]).project(["c", "a"])
        assert r.names == ("c", "a")
        assert r.codes.tolist() == [[-1, 0], [0, 1]]
        assert r.codes.flags.c_contiguous
        assert r.sample_weight.tolist() == [1, 2]

    def test_labels_and_rows(self):
        r = Records(D, [[0, 1, -1], [1, 2, 0]])
        assert r["a"].tolist() == ["x", "y"]
        assert r["c"].tolist() == [None, True]
        rows = [{"a": "x", "b": 1, "c": None}, {"a": "y", "b": 2, "c": True}]
        assert list(r.rows()) == rows
        with pytest.raises(KeyError, match="No variable 'd'"):
            r["d"]


class TestMade:
    def test_frozen(self):
        codes, weight = np.array([[0, 1, 0]], dtype=np.int16), np.array([2.0])
        r = Records(D, codes, weight)
        codes[0, 0], weight[0] = 1, 7
        assert r.codes[0, 0] == 0
        assert r.sample_weight[0] == 2
        with pytest.raises(ValueError, match="read-only"):
            r.codes[0, 0] = 1
        with pytest.raises(ValueError, match="read-only"):
            r.sample_weight[0] = 1

    def test_dtype(self):
        assert Records(D, [[0, 1, 0]]).codes.dtype == np.int8
        assert Records(Domain.of({"a": 128}), [[127]]).codes.dtype == np.int16
        assert Records(Domain.of({"a": 40_000}), [[39_999]]).codes.dtype == np.int32

    def test_pickle(self):
        r = pickle.loads(pickle.dumps(Records(D, [[0, 1, 0]], [2])))
        assert r.domain == D
        assert r.codes.tolist() == [[0, 1, 0]]

    @pytest.mark.parametrize(
        ("codes", "words"),
        [
            ([[0, 3, 0]], r"'b', row 0: code 3 is not among 0\.\.2 \(-1 is missing\)"),
            ([[0, 0, 0], [0, -2, 0]], "'b', row 1: code -2"),
            ([[0, 0]], r"shape \(rows, 3\), .* not int64 of shape \(1, 2\)"),
            ([0, 0, 0], r"of shape \(3,\)"),
            ([[0.0, 0.0, 0.0]], "must be integers .* not float64"),
        ],
    )
    def test_codes_refused(self, codes, words):
        with pytest.raises(ValueError, match=words):
            Records(D, codes)

    @pytest.mark.parametrize(
        ("weight", "error", "words"),
        [
            ([1], ValueError, r"each of the 2 rows, not an array of shape \(1,\)"),
            ([1, -1], ValueError, r"nonnegative, but row 1 has -1\.0"),
            ([np.nan, 1], ValueError, "but row 0 has nan"),
            ([1, np.inf], ValueError, "finite and nonnegative, but row 1 has inf"),
            (["a", "b"], TypeError, "must be numbers"),
            ([[1, 2]], ValueError, r"shape \(1, 2\)"),
        ],
    )
    def test_weights_refused(self, weight, error, words):
        with pytest.raises(error, match=words):
            Records(D, [[0, 0, 0], [1, 1, 1]], weight)

    def test_repr(self):
        wide = Records(Domain.of_shape([2] * 10), np.zeros((7, 10), dtype=int), np.ones(7))
        lines = repr(wide).splitlines()
        assert lines[0] == "Records: 7 rows, 10 variables, 0 % of the cells missing, weighted"
        assert lines[1].endswith("x7  ... and 2 more")
        assert len(lines) == 8
        assert repr(Records(D, np.zeros((0, 3), dtype=int))).startswith("Records: 0 rows")


class TestReencoded:
    def test_same_domain_is_the_same_codes(self):
        r = Records(D, [[0, 1, -1]])
        assert np.shares_memory(Records.of(r).codes, r.codes)
        assert Records.of(r, domain=D, sample_weight=[3]).sample_weight.tolist() == [3]

    def test_levels_and_variables_in_another_order(self):
        r = Records(D, [[0, 1, -1], [1, 2, 0]], [1, 2])
        other = Domain.of({"c": [False, True], "new": 2, "a": ["z", "y", "x"], "b": [2, 1, 0]})
        again = Records.of(r, domain=other)
        assert again.codes.tolist() == [[-1, -1, 2, 1], [1, -1, 1, 0]]
        assert again.sample_weight.tolist() == [1, 2]

    def test_bins(self):
        r = Records.of({"age": [3, 40]}, bins={"age": [0, 18, 65]})
        other = Domain.of({"age": [Bin(0, 18), Bin(18, 99)]})
        with pytest.warns(Remark, match="1 cell with numbers outside all bins"):
            assert Records.of(r, domain=other).codes.tolist() == [[0], [-1]]


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
class TestToFrame:
    @given(data=st.data())
    def test_round_trip(self, backend, data):
        lists = [["x", "y"], [3, 5], [0.5, 2.25], [True, False], ["10", "9", "8"]]
        domain = Domain.of({str(n): levels for n, levels in enumerate(lists)})
        cell = [st.integers(-1, len(levels) - 1) for levels in lists]
        codes = data.draw(st.lists(st.tuples(*cell), min_size=1, max_size=8))
        r = Records(domain, codes)
        back = Records.of(r.to_frame(backend), domain=domain, handle_unknown="error")
        assert back.codes.tolist() == r.codes.tolist()

    def test_bins(self, backend):
        r = Records.of({"age": [3.0, None, 40]}, bins={"age": [0, 18, 65]})
        assert Records.of(r.to_frame(backend), domain=r.domain).codes.tolist() == [[0], [-1], [1]]
        values = Records.of(r.to_frame(backend, representatives=True))
        assert values["age"].tolist() == [3, None, 40]

    def test_levels_and_kinds_survive(self, backend):
        r = Records.of(
            {"grade": ["lo", "hi"]},
            levels={"grade": ["lo", "mid", "hi"]},
            kinds={"grade": "ordinal"},
        )
        assert Records.of(r.to_frame(backend)).domain == r.domain

    def test_labels_of_several_types(self, backend):
        r = Records.of([["a"], [3], [None]])
        frame = r.to_frame(backend)
        assert len(frame) == 3
        texts = [None if x is None else str(x) for x in Records.of(frame)["x0"]]
        assert texts == ["a", "3", None]


def test_to_frame_backends(monkeypatch):
    r = Records(D, [[0, 1, 0]])
    with pytest.raises(ValueError, match=r"backend must be .* not 'excel'"):
        r.to_frame("excel")
    monkeypatch.setattr("rejoint.records.frames.find_spec", lambda name: name == "pyarrow" or None)
    assert type(r.to_frame()).__module__.startswith("pyarrow")
    monkeypatch.setattr("rejoint.records.frames.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="none is installed"):
        r.to_frame()


def test_every_cell_of_a_small_domain():
    cells = list(itertools.product(["x", "y"], [0, 1, 2], [True, False]))
    r = Records.of(cells, domain=D)
    assert np.array_equal(np.ravel_multi_index(r.codes.T, D.shape), np.arange(12))
    assert np.array_equal(r.marginal(D.names), np.full(D.shape, 1 / 12))
