"""Data of every kind into Records: the same from all sources, and what is refused."""

import datetime
import decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoint import Records, Remark

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

ROWS = [
    {"text": "b", "whole": 3, "real": 0.5, "flag": True},
    {"text": None, "whole": None, "real": -1.25, "flag": None},
    {"text": "a10", "whole": 1, "real": None, "flag": False},
    {"text": "a9", "whole": 3, "real": 0.5, "flag": True},
    {"whole": 1, "real": 0.5, "flag": True},
]
NAMES = ("text", "whole", "real", "flag")
COLUMNS = {name: [row.get(name) for row in ROWS] for name in NAMES}
CELLS = [[row.get(name) for name in NAMES] for row in ROWS]
LEVELS = (("a9", "a10", "b"), (1, 3), (-1.25, 0.5), (False, True))
CODES = [[2, 1, 1, 1], [-1, -1, 0, -1], [1, 0, -1, 0], [0, 1, 1, 1], [-1, 0, 1, 1]]


class Stream:
    """Anything that speaks Arrow and nothing else."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def nullable():
    dtypes = {"text": "string", "whole": "Int64", "real": "Float64", "flag": "boolean"}
    return pd.DataFrame({n: pd.array(COLUMNS[n], dtype=d) for n, d in dtypes.items()})


def with_arrow_dtypes():
    table = pa.table(COLUMNS)
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def structured():
    dtype = [(name, object) for name in NAMES]
    return np.array([tuple(row) for row in CELLS], dtype=dtype)


SOURCES = {
    "list of dicts": lambda: ROWS,
    "dict of lists": lambda: COLUMNS,
    "dict of object arrays": lambda: {n: np.array(c, dtype=object) for n, c in COLUMNS.items()},
    "iterator of dicts": lambda: iter(ROWS),
    "pandas objects": lambda: pd.DataFrame(COLUMNS, dtype=object),
    "pandas inferred": lambda: pd.DataFrame(COLUMNS),
    "pandas nullable": nullable,
    "pandas of Arrow": with_arrow_dtypes,
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars lazy": lambda: pl.LazyFrame(COLUMNS),
    "polars categorical": lambda: pl.DataFrame(COLUMNS).cast({"text": pl.Categorical}),
    "pyarrow": lambda: pa.table(COLUMNS),
    "pyarrow chunks": lambda: pa.concat_tables([pa.table(COLUMNS)[:2], pa.table(COLUMNS)[2:]]),
    "pyarrow batch": lambda: pa.RecordBatch.from_pydict(COLUMNS),
    "Arrow stream": lambda: Stream(pa.table(COLUMNS)),
    "structured array": structured,
}
WITHOUT_NAMES = {
    "list of lists": lambda: CELLS,
    "list of tuples": lambda: [tuple(row) for row in CELLS],
    "object array": lambda: np.array(CELLS, dtype=object),
}


@pytest.mark.parametrize("source", [*SOURCES, *WITHOUT_NAMES])
def test_all_sources_give_the_same_records(source):
    named = source in SOURCES
    r = Records.of((SOURCES if named else WITHOUT_NAMES)[source]())
    assert r.names == (NAMES if named else ("x0", "x1", "x2", "x3"))
    assert tuple(v.levels for v in r.domain) == LEVELS
    for v, levels in zip(r.domain, LEVELS, strict=True):
        assert [type(x) for x in v.levels] == [type(x) for x in levels]
    assert r.codes.tolist() == CODES
    assert [v.kind for v in r.domain] == ["nominal", "nominal", "ordinal", "nominal"]
    data = (SOURCES if named else WITHOUT_NAMES)[source]()
    assert Records.of(data, domain=r.domain, handle_unknown="error").codes.tolist() == CODES


GRADES = ["low", "mid", "high", "top"]
DECLARED = {
    "pandas": lambda c, o: pd.DataFrame({"g": pd.Categorical(c, GRADES, ordered=o)}),
    "pyarrow": lambda c, o: pa.table(
        {"g": pa.Table.from_pandas(pd.DataFrame({"g": pd.Categorical(c, GRADES, ordered=o)}))["g"]}
    ),
    "polars": lambda c, o: pl.DataFrame({"g": pl.Series(c, dtype=pl.Enum(GRADES))}),
    "lists": lambda c, o: [{"g": x} for x in c],
}


# An Enum of polars is ordered by definition.
@pytest.mark.parametrize(
    ("source", "ordered"),
    [(s, o) for s in DECLARED for o in (True, False) if o or s != "polars"],
)
def test_declared_levels_are_kept_in_order(source, ordered):
    said = {"levels": {"g": GRADES}, "kinds": {"g": "ordinal"} if ordered else None}
    data = DECLARED[source](["high", None, "low"], ordered)
    r = Records.of(data, **(said if source == "lists" else {}))
    assert r.domain["g"].levels == tuple(GRADES)
    assert r.domain["g"].kind == ("ordinal" if ordered else "nominal")
    assert r.codes.tolist() == [[2], [-1], [0]]


class TestSpecialColumns:
    def one(self, column, **said):
        return Records.of({"x": column}, **said)

    def test_chunks_of_an_arrow_dictionary(self):
        parts = [pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", "a"]).dictionary_encode()]
        assert self.one(pa.chunked_array(parts))["x"].tolist() == ["a", "b", "c", "a"]

    def test_arrow_text_of_every_layout(self):
        cells = ["a", None, "b", "b"]
        for kind in (pa.string(), pa.large_string(), pa.string_view()):
            assert self.one(pa.array(cells, kind))["x"].tolist() == cells
        runs = pa.RunEndEncodedArray.from_arrays([2, 4], ["a", "b"])
        assert self.one(runs)["x"].tolist() == ["a", "a", "b", "b"]

    def test_categories_of_numbers_and_intervals(self):
        assert self.one(pd.Categorical([1.0, 2.0], [2.0, 1.0])).domain["x"].levels == (2, 1)
        cut = self.one(pd.cut(pd.Series([1, 9]), [0, 4, 10]))
        assert cut.domain["x"].levels == ("(0, 4]", "(4, 10]")
        assert cut.domain["x"].kind == "ordinal"

    def test_decimals(self):
        cells = [decimal.Decimal("1.5"), None, decimal.Decimal("2")]
        for column in (cells, pl.Series(cells), pa.array(cells)):
            assert self.one(column).domain["x"].levels == (1.5, 2.0)

    def test_narrow_floats_keep_their_short_names(self):
        column = np.array([0.1, 0.7, np.nan], dtype=np.float32)
        for source in (column, pl.Series(column), pa.array(column), pd.Series(column)):
            assert self.one(source).domain["x"].levels == (0.1, 0.7)

    def test_bytes_and_variable_width_text(self):
        assert self.one(np.array([b"a", b"b"])).domain["x"].levels == ("a", "b")
        assert self.one(np.array(["a", "b"], dtype=np.dtypes.StringDType()))["x"].tolist() == [
            "a",
            "b",
        ]

    def test_sparse_series(self):
        assert self.one(pd.Series([0, 1, 0], dtype="Sparse[int]"))["x"].tolist() == [0, 1, 0]

    def test_series_alone(self):
        for series in (pd.Series([1, 2], name="x"), pl.Series("x", [1, 2])):
            assert Records.of(series).names == ("x",)
        assert Records.of(pd.Series([1, 2])).names == ("x0",)

    def test_masked_array(self):
        r = Records.of(np.ma.array([[1, 2], [3, 4]], mask=[[False, True], [False, False]]))
        assert list(r.rows()) == [{"x0": 1, "x1": None}, {"x0": 3, "x1": 4}]

    def test_constant_columns_have_one_level(self):
        assert self.one(["a", None, "a"]).domain["x"].levels == ("a",)

    def test_booleans_always_have_both_levels(self):
        for column in ([True, None], np.array([True]), pd.array([True, None], dtype="boolean")):
            assert self.one(column).domain["x"].levels == (False, True)

    def test_booleans_among_numbers_are_numbers(self):
        assert self.one([True, 2, 0]).domain["x"].levels == (0, 1, 2)

    def test_numbers_among_text(self):
        assert self.one([10, "other", 9.5, None]).domain["x"].levels == (9.5, 10, "other")
        whole = self.one([10.0, "other", 9]).domain["x"].levels
        assert [type(level) for level in whole] == [int, int, str]

    def test_a_number_and_its_text_are_refused(self):
        words = r"'x' holds both 1 \(int\) and '1' \(str\): make them one type"
        with pytest.raises(ValueError, match=words):
            self.one([1, 2, "1", "a"])

    def test_empty_columns(self):
        for column in ([None, None], np.array([np.nan]), pl.Series([None]), pa.nulls(2)):
            with pytest.raises(ValueError, match=r"'x': no value in any row \(levels=\{'x'"):
                self.one(column)
            assert (self.one(column, levels={"x": ["a", "b"]}).codes == -1).all()
            assert (self.one(column, bins={"x": [0, 1]}).codes == -1).all()
        assert self.one(pd.Categorical([None], ["a"])).domain["x"].levels == ("a",)

    @pytest.mark.parametrize(
        "column",
        [
            [datetime.date(2020, 1, 31), None],
            np.array(["2020-01-31", "NaT"], dtype="datetime64[D]"),
            np.array(["2020-01-31", "NaT"], dtype="datetime64[ns]"),
            pd.to_datetime(["2020-01-31", None]),
            pd.to_datetime(["2020-01-31", None]).tz_localize("Asia/Tokyo"),
            pd.PeriodIndex(["2020-01-31", None], freq="D"),
            pd.Categorical([datetime.date(2020, 1, 31), None]),
            pl.Series([datetime.date(2020, 1, 31), None]),
            pl.Series([datetime.datetime(2020, 1, 31), None]),
            pl.Series([datetime.datetime(2020, 1, 31), None]).dt.replace_time_zone("Asia/Tokyo"),
            pa.array([datetime.date(2020, 1, 31), None]),
            pa.array([datetime.date(2020, 1, 31), None], pa.date64()),
            pa.array([datetime.datetime(2020, 1, 31), None], pa.timestamp("ms")),
            pa.array([1580396400, None], pa.timestamp("s", "Asia/Tokyo")),
        ],
    )
    def test_dates_are_text_in_iso_form(self, column):
        assert [str(cell)[:10] for cell in self.one(column)["x"]] == ["2020-01-31", "None"]
        for part, level in (("year", 2020), ("month", 1)):
            variable = self.one(column, kinds={"x": part}).domain["x"]
            assert (variable.levels, variable.kind) == ((level,), part)

    def test_times_and_durations_are_text(self):
        times = [datetime.time(10, 30), None]
        for column in (times, pl.Series(times), pa.array(times)):
            assert self.one(column)["x"].tolist() == ["10:30:00", None]
        lengths = [datetime.timedelta(hours=30), None]
        for column in (lengths, pd.Series(lengths), pl.Series(lengths), pa.array(lengths)):
            assert self.one(column)["x"].tolist() == ["1 day, 6:00:00", None]

    @pytest.mark.parametrize(
        "column", [[[1], [2]], pd.Series([[1]]), pl.Series([[1]]), pa.array([[1]]), [(1, 2)], [1j]]
    )
    def test_other_objects_are_left_out(self, column):
        with pytest.warns(Remark, match="left out: 'x': values that cannot be levels, such as"):
            assert Records.of({"x": column, "a": ["u"] * len(column)}).names == ("a",)
        with pytest.raises(TypeError, match=r"'x'.*labels are text, numbers, booleans and dates"):
            self.one(column, kinds={"x": "nominal"})

    def test_the_row_is_named(self):
        with pytest.raises(TypeError, match=r"Variable 'x', row 2: \{'k': 1\} is a dict"):
            self.one(["a", None, {"k": 1}], kinds={"x": "nominal"})

    def test_text_nan(self):
        with pytest.warns(
            Remark, match=r"'x' has the text 'nan' as a level.*put None in its place"
        ):
            self.one(np.array(["a", np.nan]))


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ([], ValueError, "no rows and no columns"),
        ({"a": []}, ValueError, r"no rows \(its columns are 'a'\).*give a domain"),
        ([{}, {}], ValueError, "has no columns"),
        (np.zeros((3, 0)), ValueError, "has no columns"),
        (np.zeros(3), ValueError, r"must have 2 axes .* its shape is \(3,\); reshape"),
        (3, TypeError, "Records are made of a pandas, .* not of int"),
        ("data.csv", TypeError, "not of 'data.csv': read the file first"),
        ([1, 2], TypeError, "row 0 of this list is the int 1, neither a dict nor a row"),
        (["ab"], TypeError, "row 0 of this list is the str 'ab'"),
        ([[1, 2], [3]], ValueError, "Row 1 has 1 cell, row 0 has 2"),
        ([{"a": 1}, [1]], TypeError, "Row 1 is a list among dicts"),
        ({"a": [1], "b": [1, 2]}, ValueError, "different numbers of rows: 'a' 1, 'b' 2"),
        ({"a": "x", "b": "y"}, TypeError, "'a' must be a column .* a list of one dict"),
        ({"a": 1}, TypeError, "'a' must be a column"),
        ({1: [1], "1": [2]}, ValueError, "Two or more variables are called '1'"),
        (pd.DataFrame([[1, 2, 3]], columns=list("aba")), ValueError, "are called 'a'"),
        (pa.Table.from_arrays([pa.array([1])] * 2, names=["a", "a"]), ValueError, "called 'a'"),
    ],
)
def test_refused(data, error, words):
    with pytest.raises(error, match=words):
        Records.of(data)


@pytest.mark.parametrize("kind", ["csr_array", "csr_matrix", "dok_array", "dok_matrix"])
def test_sparse_matrices_are_ambiguous(kind):
    sparse = pytest.importorskip("scipy.sparse")
    words = rf"A {kind} does not say .* zero or missing: pass data\.toarray\(\) if zero"
    with pytest.raises(TypeError, match=words):
        Records.of(getattr(sparse, kind)(np.eye(2)))


def test_arrow_streams_without_pyarrow(monkeypatch):
    stream = Stream(pa.table(COLUMNS))
    monkeypatch.setattr("rejoint.records.frames.find_spec", lambda name: name == "polars" or None)
    assert Records.of(stream).codes.tolist() == CODES
    monkeypatch.setattr("rejoint.records.frames.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="A Stream is read through Arrow: install pyarrow"):
        Records.of(stream)


typed_columns = st.one_of(
    st.lists(st.none() | kind, min_size=3, max_size=3)
    for kind in (
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3),
        st.integers(-(2**40), 2**40),
        st.floats(allow_nan=False, width=32),
        st.booleans(),
    )
).filter(lambda column: any(cell is not None for cell in column))


@pytest.mark.filterwarnings("ignore::rejoint.Remark")  # the text "nan" is drawn now and then
@given(st.lists(typed_columns, min_size=1, max_size=4))
def test_rows_come_back_from_every_source(columns):
    named = {f"c{n}": column for n, column in enumerate(columns)}
    rows = [dict(zip(named, cells, strict=True)) for cells in zip(*columns, strict=True)]
    expected = Records.of(rows)
    assert list(expected.rows()) == rows
    for source in (named, pd.DataFrame(named), pl.DataFrame(named), pa.table(named)):
        r = Records.of(source)
        assert r.domain == expected.domain
        assert np.array_equal(r.codes, expected.codes)
