"""What JointImputer gives back: the caller's type, dtypes and categories; observed cells as is."""

import datetime
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rejoint as rj

COLUMNS = {
    "word": ["red", "green", "blue"],
    "count": [1, 2, 7],
    "flag": [True, False],
    "half": [0.5, 1.5, 2.25],
}
N = 120


def plain(seed=0):
    rng = np.random.default_rng(seed)
    which = rng.integers(0, 2, N)
    return {
        name: [levels[(k + (rng.random() < 0.2)) % len(levels)] for k in which]
        for name, levels in COLUMNS.items()
    }


FULL = plain()
METHODS = ["mode", "draw", "expect"]


@cache
def imputer(method="mode"):
    made = rj.JointImputer(rank=2, solver="map", n_init=1, method=method, random_state=0)
    return made.fit(FULL)


PANDAS = {
    "word": ["object", "string", "category", "string[pyarrow]", "ordered"],
    "count": ["float64", "Int64", "Int8", "Float32", "object", "int64[pyarrow]", "category"],
    "flag": ["object", "boolean", "bool[pyarrow]", "category"],
    "half": ["float64", "float32", "Float64", "object", "category"],
}
POLARS = {
    "word": [pl.String, pl.Categorical, pl.Enum(["green", "blue", "red", "grey"])],
    "count": [pl.Int64, pl.Int8, pl.UInt16, pl.Float64],
    "flag": [pl.Boolean],
    "half": [pl.Float64, pl.Float32],
}
ARROW = {
    "word": [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())],
    "count": [pa.int64(), pa.uint8(), pa.float64()],
    "flag": [pa.bool_()],
    "half": [pa.float64(), pa.float32()],
}


@st.composite
def tables(draw):
    """Rows with holes, as dict of lists; a column is now and then all holes or has none."""
    rows = draw(st.integers(1, 6))
    table = {}
    for name, levels in COLUMNS.items():
        cell = st.one_of(st.sampled_from(levels), st.none())
        cells = draw(st.sampled_from([cell, cell, cell, st.none(), st.sampled_from(levels)]))
        table[name] = draw(st.lists(cells, min_size=rows, max_size=rows))
    return table


def as_pandas(table, kinds):
    def series(name, kind):
        if kind == "ordered":
            kind = pd.CategoricalDtype(["blue", "grey", "red", "green"], ordered=True)
        elif kind == "category":
            kind = pd.CategoricalDtype(COLUMNS[name])
        return pd.Series(table[name], dtype=object).astype(kind)

    frame = pd.DataFrame({name: series(name, kind) for name, kind in kinds.items()})
    return frame.set_index(pd.Index(range(10, 10 + len(frame)), name="row"))


@settings(max_examples=60, deadline=None)
@given(table=tables(), data=st.data(), method=st.sampled_from(METHODS))
def test_pandas(table, data, method):
    kinds = {name: data.draw(st.sampled_from(kinds)) for name, kinds in PANDAS.items()}
    X = as_pandas(table, kinds)
    before = X.copy(deep=True)
    filled = imputer(method).impute(X)
    pd.testing.assert_frame_equal(X, before)
    assert isinstance(filled, pd.DataFrame)
    assert filled.dtypes.tolist() == X.dtypes.tolist()
    assert filled.index.equals(X.index)
    assert list(filled.columns) == list(X.columns)
    assert filled.notna().all(axis=None)
    there = X.notna()
    for name in X:
        kept = there[name]
        pd.testing.assert_series_equal(filled[name][kept], X[name][kept])
        if method != "expect" or name in ("word", "flag"):
            assert set(filled[name]) <= set(COLUMNS[name])


@settings(max_examples=40, deadline=None)
@given(table=tables(), data=st.data(), method=st.sampled_from(METHODS))
def test_polars(table, data, method):
    kinds = {name: data.draw(st.sampled_from(kinds)) for name, kinds in POLARS.items()}
    X = pl.DataFrame(
        {
            name: pl.Series(table[name], dtype=pl.Null if not any_cell(table[name]) else None)
            for name in kinds
        }
    ).cast(kinds)
    before = X.clone()
    filled = imputer(method).impute(X)
    assert X.equals(before)
    assert filled.schema == X.schema
    assert filled.null_count().sum_horizontal()[0] == 0
    for name in X.columns:
        kept = X[name].is_not_null()
        assert filled[name].filter(kept).equals(X[name].filter(kept))
        if method != "expect" or name in ("word", "flag"):
            assert set(filled[name].to_list()) <= set(COLUMNS[name])


@settings(max_examples=40, deadline=None)
@given(table=tables(), data=st.data(), method=st.sampled_from(METHODS))
def test_arrow(table, data, method):
    kinds = {name: data.draw(st.sampled_from(kinds)) for name, kinds in ARROW.items()}
    X = pa.table({name: arrow_array(table[name], kind) for name, kind in kinds.items()})
    X = X.replace_schema_metadata({"origin": "survey"})
    filled = imputer(method).impute(X)
    filled.validate(full=True)
    assert filled.schema.equals(X.schema, check_metadata=True)
    for name in X.column_names:
        assert filled[name].null_count == 0
        for new, old in zip(filled[name].to_pylist(), X[name].to_pylist(), strict=True):
            assert old is None or new == old
            assert (method == "expect" and name in ("count", "half")) or new in COLUMNS[name]


@settings(max_examples=40, deadline=None)
@given(table=tables(), method=st.sampled_from(METHODS), form=st.sampled_from(["list", "dicts"]))
def test_plain_python(table, method, form):
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    if form == "dicts":  # a key that is not there is missing, too
        X = [{key: cell for key, cell in row.items() if cell is not None} for row in rows]
        X[0] = rows[0]
        filled = imputer(method).impute(X)
        assert all(set(row) == set(COLUMNS) for row in filled)
    else:
        columns = imputer(method).impute(table)
        filled = [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ]
    for new, old in zip(filled, rows, strict=True):
        for name in COLUMNS:
            assert new[name] is not None
            if old[name] is not None:
                assert new[name] is old[name]
            elif method != "expect":
                assert new[name] in COLUMNS[name]


def any_cell(cells):
    return any(cell is not None for cell in cells)


def arrow_array(cells, kind):
    if pa.types.is_dictionary(kind):
        codes = [None if cell is None else COLUMNS["word"].index(cell) for cell in cells]
        return pa.DictionaryArray.from_arrays(pa.array(codes, kind.index_type), COLUMNS["word"])
    return pa.array(cells, kind)


# --- arrays ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_float_arrays(dtype):
    X = np.array([[0.0, 1.0], [1.0, 0.0]] * 30, dtype=dtype)
    X[0, 0] = np.nan
    filled = rj.JointImputer(rank=2, solver="ml", random_state=0).fit(X).transform(X)
    assert filled.dtype == dtype
    assert filled[0].tolist() == [0.0, 1.0]
    assert np.isnan(X[0, 0])
    assert np.array_equal(filled[1:], X[1:])


def test_object_and_masked_and_structured_arrays():
    X = np.array([["a", 1], ["b", 2]] * 30, dtype=object)
    X[0, 0] = None
    imputer = rj.JointImputer(rank=2, solver="ml", random_state=0).fit(X)
    filled = imputer.transform(X)
    assert filled.dtype == object
    assert filled[0].tolist() == ["a", 1]
    assert imputer.transform([[None, 2], ["a", 1]]).tolist() == [["b", 2], ["a", 1]]
    columns = rj.JointImputer(rank=2, solver="ml", random_state=0).fit(
        {"s": ["a", "b"] * 30, "k": [1, 2] * 30}
    )
    masked = np.ma.masked_array([1, 2, 9], mask=[False, False, True])
    out = columns.impute({"s": np.array(["a", "b", "b"]), "k": masked})
    assert out["k"].tolist() == [1, 2, 2]
    assert out["s"].tolist() == ["a", "b", "b"]


def test_records_and_their_weights():
    records = rj.Records.of(FULL, sample_weight=np.arange(N) % 3)
    holes = rj.datasets.remove_cells(records, 0.3, random_state=0)
    filled, probability = imputer().impute(holes, confidence=True)
    assert isinstance(filled, rj.Records)
    assert (filled.codes >= 0).all()
    assert (filled.codes == holes.codes)[holes.codes >= 0].all()
    assert (filled.sample_weight == records.sample_weight).all()
    assert (probability[holes.codes >= 0] == 1.0).all()


# --- categories, columns of another kind --------------------------------------------------------


def test_a_category_that_is_lacking_is_added():
    X = pd.DataFrame({"word": pd.Categorical([None, "red"], ["red"]), "count": [2.0, 1.0]})
    for name in ("flag", "half"):
        X[name] = [COLUMNS[name][1], COLUMNS[name][0]]
    filled = imputer().impute(X)
    assert filled["word"].tolist() == ["green", "red"]
    assert list(filled["word"].cat.categories) == ["red", "green"]
    enum = pl.DataFrame(
        {
            "word": pl.Series([None, "red"], dtype=pl.Enum(["red"])),
            "count": [2, 1],
            "flag": [False, True],
            "half": [1.5, 0.5],
        }
    )
    assert imputer().impute(enum)["word"].dtype == pl.Enum(["red", "green"])
    arrow = enum.to_arrow().set_column(
        0, "word", pa.DictionaryArray.from_arrays(pa.array([None, 0], pa.int8()), ["red"])
    )
    assert imputer().impute(arrow)["word"].to_pylist() == ["green", "red"]


def test_intervals_stay_intervals():
    cut = pd.cut(pd.Series([1.0, 5.0] * 30), [0, 3, 6])
    X = pd.DataFrame({"size": cut, "word": ["small", "large"] * 30})
    X.loc[0, "size"] = None
    filled = rj.JointImputer(rank=2, solver="ml", random_state=0).fit_transform(X)
    assert filled["size"].dtype == cut.dtype
    assert filled["size"].equals(cut)


def test_sparse_columns():
    X = pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.0] * 30), "b": ["u", "v"] * 30})
    holes = X.assign(a=pd.arrays.SparseArray([np.nan, *X["a"][1:]]))
    filled = rj.JointImputer(rank=2, solver="ml", random_state=0).fit(X).impute(holes)
    assert filled["a"].dtype == holes["a"].dtype
    assert filled["a"].tolist() == X["a"].tolist()


def test_an_empty_column_takes_the_type_of_its_labels():
    rest = {"count": [1, 2], "half": [0.5, 1.5]}
    empty = pd.DataFrame({"word": [np.nan, np.nan], **rest, "flag": [np.nan, np.nan]})
    filled = imputer().impute(empty[list(COLUMNS)])
    assert filled["word"].tolist() == ["red", "green"]
    assert filled["flag"].tolist() == [True, False]
    nulls = pl.DataFrame({"word": [None, None], **rest, "flag": [None, None]})
    assert imputer().impute(nulls.select(*COLUMNS)).row(0)[:3] == ("red", 1, True)
    arrow = nulls.select(*COLUMNS).to_arrow()
    assert imputer().impute(arrow)["flag"].to_pylist() == [True, False]


def test_columns_that_the_model_does_not_know_stay():
    X = {"word": ["red", None], "note": ["first", None]}
    filled = imputer().impute(X)
    assert list(filled) == ["word", "note"]
    assert filled["note"] == ["first", None]
    assert filled["word"][1] in COLUMNS["word"]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_few_dates_are_filled_and_many_stay(make):
    days = [datetime.date(2020, month, 1) for month in (1, 2)] * 20 + [None]
    many = [datetime.date(2020, 1, 1) + datetime.timedelta(k) for k in range(40)] + [None]
    times = pl.Series(days) if make is pl.DataFrame else pd.to_datetime(pd.Series(days))
    X = make({"when": times, "word": ["a", "b"] * 20 + ["a"], "day": many})
    with pytest.warns(rj.Remark, match="left out: 'day' "):
        filled = rj.JointImputer(rank=2, random_state=0).fit_transform(X)
    assert list(filled["when"])[:-1] == list(X["when"])[:-1]
    assert filled["when"][40] == X["when"][0]
    assert str(list(filled["day"])) == str(list(X["day"]))


def test_probabilities_come_in_the_callers_library():
    X = as_pandas(
        {name: [None, levels[0]] for name, levels in COLUMNS.items()},
        {n: k[0] for n, k in PANDAS.items()},
    )
    table, probability = imputer().impute(X, confidence=True)
    assert probability.index.equals(X.index)
    assert list(probability.columns) == list(X.columns)
    assert (probability.iloc[1] == 1.0).all()
    assert ((probability.iloc[0] > 0.3) & (probability.iloc[0] < 1)).all()
    polars = pl.DataFrame({name: [None, levels[0]] for name, levels in COLUMNS.items()})
    assert imputer().impute(polars, confidence=True)[1].row(1) == (1.0,) * 4
    arrow = imputer().impute(polars.to_arrow(), confidence=True)[1]
    assert arrow.column_names == list(COLUMNS)
    assert arrow["flag"].to_pylist() == probability["flag"].tolist()
    assert table.notna().all(axis=None)


def test_frames_whose_columns_are_numbered():
    X = pd.DataFrame(np.array([[0.0, 1.0, np.nan], [1.0, 0.0, np.nan]] * 30))
    holes = X.set_index(X.index + 7)
    holes.iloc[0, 0] = np.nan
    settings = {"rank": 2, "solver": "ml", "add_indicator": True, "random_state": 0}
    with pytest.warns(rj.Remark, match="no value in any row"):
        filled = rj.JointImputer(**settings).fit_transform(holes)
    assert list(filled.columns) == [0, 1, "missingindicator_0"]
    assert filled[[0, 1]].equals(X[[0, 1]].set_index(holes.index))
    with pytest.warns(rj.Remark, match="no value in any row"):
        kept = rj.JointImputer(**settings, keep_empty_features=True).fit_transform(holes)
    assert (kept[2] == 0.0).all()
