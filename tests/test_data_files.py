"""Records from files: forms, guesses, missing marks, faults with file, line and column, chunks."""

import gzip
import io
import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rejoint as rj

ROWS = [
    {"smoke": "yes", "age": 40, "height": 1.5},
    {"smoke": None, "age": 50, "height": 1.75},
    {"smoke": "no", "age": None, "height": 1.5},
]
TEXT = "smoke,age,height\nyes,40,1.5\n?,50,1.75\nno,NA,1.5\n"


def put(folder, name, data):
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def parquet():
    pq = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), out)
    return out.getvalue()


def arrow(kind):
    pa = pytest.importorskip("pyarrow")
    table = pa.Table.from_pylist(ROWS)
    out = io.BytesIO()
    with (pa.ipc.new_file if kind == "file" else pa.ipc.new_stream)(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


FORMS = {
    "a.csv": lambda: TEXT,
    "a.tsv": lambda: TEXT.replace(",", "\t"),
    "semicolon.csv": lambda: TEXT.replace(",", ";"),
    "pipes.txt": lambda: TEXT.replace(",", "|"),
    "bom.csv": lambda: "\ufeff" + TEXT,
    "windows.csv": lambda: TEXT.replace("\n", "\r\n"),
    "quoted.csv": lambda: (
        '"smoke","age","height"\n"yes","40","1.5"\n"?","50","1.75"\n"no","NA","1.5"'
    ),
    "blanks.csv": lambda: "smoke, age, height\nyes, 40, 1.5\n\n ?, 50, 1.75\nno, NA, 1.5\n\n",
    "utf16.csv": lambda: TEXT.encode("utf-16"),
    "a.csv.gz": lambda: gzip.compress(TEXT.encode(), mtime=0),
    "no_suffix": lambda: TEXT,
    "a.jsonl": lambda: "\n".join(json.dumps(row) for row in ROWS) + "\n\n",
    "a.json": lambda: json.dumps(ROWS, indent=1),
    "a.ndjson.gz": lambda: gzip.compress("\n".join(json.dumps(row) for row in ROWS).encode()),
    "a.parquet": parquet,
    "a.parquet.gz": lambda: gzip.compress(parquet(), mtime=0),
    "parquet_without_suffix": parquet,
    "a.arrow": lambda: arrow("file"),
    "a.feather": lambda: arrow("file"),
    "a.arrows": lambda: arrow("stream"),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_records(tmp_path, name):
    path = put(tmp_path, name, FORMS[name]())
    records = rj.read(path)
    assert list(records.rows()) == ROWS
    chunks = list(rj.read_chunks(path, size=2))
    assert [len(chunk) for chunk in chunks] == [2, 1]
    assert [row for chunk in chunks for row in chunk.rows()] == ROWS
    assert chunks[0].domain == records.domain


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl", "a.parquet"])
def test_standard_input(tmp_path, monkeypatch, name):
    path = put(tmp_path, name, FORMS[name]())
    for read in (lambda: [rj.read("-")], lambda: list(rj.read_chunks("-", 2))):
        with open(path, "rb") as file:
            monkeypatch.setattr(sys, "stdin", type("In", (), {"buffer": file}))
            assert [row for part in read() for row in part.rows()] == ROWS


def test_queries_of_a_database(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    rows = "VALUES ('yes', 40, 1.5), (NULL, 50, 1.75), ('no', NULL, 1.5)"
    query = f"SELECT * FROM ({rows}) AS t(smoke, age, height) WHERE height > 1"
    records = rj.read(f"duckdb:{query}")
    assert list(records.rows()) == ROWS
    with duckdb.connect(str(tmp_path / "a.db")) as connection:
        connection.execute(f"CREATE TABLE people AS {query}")
    records = rj.read(f"duckdb:{tmp_path / 'a.db'}?SELECT smoke, age FROM people")
    assert records.names == ("smoke", "age")
    parts = list(rj.read_chunks(f"duckdb:{tmp_path / 'a.db'}?SELECT * FROM people", 2))
    assert [len(part) for part in parts] == [2, 1]
    with pytest.raises(ValueError, match=r"duckdb: Catalog Error: .*nothere"):
        rj.read("duckdb:SELECT * FROM nothere")
    with pytest.raises(FileNotFoundError, match=r"No database '.*gone\.db'"):
        rj.read(f"duckdb:{tmp_path / 'gone.db'}?SELECT 1")
    with pytest.raises(ValueError, match="duckdb: needs a query"):
        rj.read("duckdb:")


def test_columns_and_weights(tmp_path):
    path = put(tmp_path, "a.csv", "id,a,b,w\n1,x,u,0.5\n2,y,v,2\n")
    assert rj.read(path, without=["id", "w"]).names == ("a", "b")
    assert rj.read(path, columns=["b", "a"]).names == ("a", "b")
    records = rj.read(path, columns=["a"], sample_weight="w")
    assert records.names == ("a",)
    np.testing.assert_array_equal(records.sample_weight, [0.5, 2.0])
    parts = list(rj.read_chunks(path, 1, columns=["a"], sample_weight="w"))
    assert [part.sample_weight.tolist() for part in parts] == [[0.5], [2.0]]
    with pytest.raises(KeyError, match=r"has no column 'c'; it has 'id', 'a'"):
        rj.read(path, columns=["c"])
    with pytest.raises(KeyError, match=r"sample_weight: there is no column 'ww'; .* 'w'\?"):
        rj.read(path, sample_weight="ww")
    with pytest.raises(ValueError, match="the column 'a' must hold a number in every row"):
        rj.read(path, columns=["b"], sample_weight="a")


def test_weights_that_are_all_zero_are_refused_at_every_door(tmp_path):
    path = put(tmp_path, "a.csv", "a,w\nx,0\ny,0\n")
    frame = {"a": ["x", "y"], "w": [0, 0]}
    domain = rj.Domain.of({"a": ["x", "y"]})
    codes = np.array([[0], [1]])
    sparse = rj.SparseRecords.of(rj.Records(domain, codes))
    doors = [
        lambda: rj.read(path, sample_weight="w"),
        lambda: rj.read(path, sample_weight="w", domain=domain),
        lambda: rj.read(path, columns=["a"], sample_weight=[0, 0], domain=domain),
        lambda: rj.Records.of(frame, sample_weight="w"),
        lambda: rj.Records.of(frame, sample_weight="w", domain=domain),
        lambda: rj.Records.of(rj.Records(domain, codes), sample_weight=[0, 0]),
        lambda: rj.Records(domain, codes, np.zeros(2)),
        lambda: rj.SparseRecords.of(sparse, sample_weight=[0, 0]),
        lambda: rj.SparseRecords(domain, sparse.codes, np.zeros(2)),
    ]
    for door in doors:
        with pytest.raises(ValueError, match="sample_weight is zero in every row: nothing would"):
            door()
    # In a part of the records all weights may be zero.
    put(tmp_path, "a.csv", "a,w\nx,0\ny,2\n")
    parts = list(rj.read_chunks(path, 1, sample_weight="w"))
    assert [part.sample_weight.tolist() for part in parts] == [[0.0], [2.0]]


def test_files_without_a_header(tmp_path):
    path = put(tmp_path, "a.data", "x,1\ny,2\n")
    assert rj.read(path, header=False).names == ("x0", "x1")
    records = rj.read(path, header=["a", "b"])
    assert list(records.rows()) == [{"a": "x", "b": 1}, {"a": "y", "b": 2}]
    with pytest.raises(ValueError, match=r"3 names are given for 2 columns \(line 1\)"):
        rj.read(path, header=["a", "b", "c"])


def test_missing_marks(tmp_path):
    path = put(tmp_path, "a.csv", "a,b\nx,-9\n?,3\nNA,null\n#N/A,4\ny,3\n")
    assert (rj.read(path).codes < 0).sum() == 4
    marks = [*rj.records.MISSING, "-9"]
    assert (rj.read(path, missing=marks).codes < 0).sum() == 5
    assert (rj.read(path, missing=[]).codes < 0).sum() == 0
    with pytest.raises(TypeError, match="missing must be a list of texts, not the text '-9'"):
        rj.read(path, missing="-9")


def test_what_looks_like_a_number_but_is_a_name_stays_text(tmp_path):
    path = put(tmp_path, "a.csv", "zip,n,big\n01067,1e3,123456789012345678901\n10115,2,1\n")
    records = rj.read(path)
    assert records.domain["zip"].levels == ("01067", "10115")
    assert records.domain["n"].levels == (2, 1000)
    assert records.domain["big"].kind == "ordinal"


def test_labels_take_the_type_of_the_domain(tmp_path):
    path = put(tmp_path, "a.csv", "a,b,c,d\n1,1,true,12\n2,3,False,70\n")
    old = rj.Variable("d", (rj.Bin(0, 30), rj.Bin(30, 99)), "binned")
    domain = rj.Domain(
        (
            rj.Variable("a", ("1", "2")),
            rj.Variable("b", (1, 2, 3)),
            rj.Variable("c", (False, True)),
            old,
        )
    )
    records = rj.read(path, domain=domain, handle_unknown="error")
    np.testing.assert_array_equal(records.codes, [[0, 0, 1, 0], [1, 2, 0, 1]])


def test_chunks_are_the_whole(tmp_path):
    """Levels and bins found in one pass without rows are those of the whole."""
    rng = np.random.default_rng(0)
    lines = [
        f"{rng.choice(['x', 'y', 'z'])},{rng.integers(0, 5)},{rng.normal():.3f}" for _ in range(700)
    ]
    path = put(tmp_path, "a.csv", "a,b,c\n" + "\n".join(lines))
    with pytest.warns(rj.Remark, match="'c' .15 bins"):
        whole = rj.read(path)
    with pytest.warns(rj.Remark, match="'c' .15 bins"):
        parts = list(rj.read_chunks(path, 64))
    assert parts[0].domain.names == whole.domain.names
    assert [v.levels for v in parts[0].domain] == [v.levels for v in whole.domain]
    np.testing.assert_array_equal(np.concatenate([p.codes for p in parts]), whole.codes)
    m = rj.Marginals.count(rj.read_chunks(path, 50, domain=whole.domain), order=2)
    np.testing.assert_array_equal(m.flat, rj.Marginals.count(whole, order=2).flat)


def test_columns_of_the_same_name_get_a_number(tmp_path):
    path = put(tmp_path, "a.csv", "a,b, a\nx,1,u\ny,2,v\n")
    with pytest.warns(rj.Remark, match=r"Columns of the same name are called 'a \(2\)'"):
        records = rj.read(path)
    assert records.names == ("a", "b", "a (2)")
    assert records["a (2)"].tolist() == ["u", "v"]


def test_identifiers_are_left_out_in_chunks_too(tmp_path):
    path = put(tmp_path, "a.csv", "id,a\n" + "".join(f"p{i:03d},x\n" for i in range(200)))
    for read in (lambda: rj.read(path), lambda: next(rj.read_chunks(path, 10))):
        with pytest.warns(rj.Remark, match="left out: 'id' "):
            assert read().names == ("a",)
    assert rj.scan(path, without=["id"]).names == ("a",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"a\.csv is empty: it has neither a header nor rows"),
        ("\n\n", r"a\.csv is empty"),
        ("a,b\n", r"has no rows.* levels cannot be seen; give a domain"),
        ("a,b\nx,1\ny\n", r"a\.csv, line 3: 1 cell, but the header \(line 1\) has 2"),
        ("a,b\nx,1\ny,2,3\n", r"line 3: 3 cells, but the header .* delimiter \(','\)"),
        ('a,b\n"x,1\ny,2\n', r"line 3: .*Quotes must come in pairs"),
        ('a,b\n"x"z,1\n', r"line 2: .*Quotes must come in pairs"),
        ("a,b\nx\x00,1\n", r"contains zero bytes, so it is not text"),
        ("a,b\nx,1\ny,\n\n", None),
    ],
)
def test_faults_of_text_are_told_in_words(tmp_path, text, words):
    path = put(tmp_path, "a.csv", text)
    if words is None:
        assert len(rj.read(path)) == 2
        return
    for read in (lambda: rj.read(path), lambda: list(rj.read_chunks(path, 10))):
        with pytest.raises(ValueError, match=words):
            read()


def test_a_column_without_a_name_is_left_out(tmp_path):
    path = put(tmp_path, "a.csv", ",a,b\n0,x,1\n1,y,2\n")
    with pytest.warns(rj.Remark, match="column 1 has no name and is left out"):
        assert rj.read(path).names == ("a", "b")


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.jsonl", '{"a": 1}\n{"a": \n', r"a\.jsonl, line 2: no JSON"),
        ("a.jsonl", '{"a": 1}\n[1]\n', r"line 2: a list; each line must be an object"),
        ("a.json", "[1, 2]", "must hold objects only"),
        ("a.json", '[{"a": 1}', "no JSON"),
        ("a.jsonl", "\n", "is empty: it has no rows"),
        ("a.parquet", b"PAR1 and then rubbish", "cannot be read as Parquet"),
        ("a.arrow", b"ARROW1 and then rubbish", "cannot be read as Arrow"),
        (
            "a.csv.gz",
            gzip.compress(TEXT.encode(), mtime=0)[:-9],
            "gzip file is cut short or corrupt",
        ),
    ],
)
def test_faults_of_other_forms(tmp_path, name, data, words):
    path = put(tmp_path, name, data)
    with pytest.raises(ValueError, match=words):
        rj.read(path)


def test_other_faults(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"No file '.*gone\.csv': check the name"):
        rj.read(tmp_path / "gone.csv")
    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file"):
        rj.read(tmp_path)
    path = put(tmp_path, "a.csv", TEXT)
    with pytest.raises(ValueError, match="format='xls' is not supported; use one of 'text'"):
        rj.read(path, format="xls")
    with pytest.raises(TypeError, match=r"There is no option 'delimeter'.*'delimiter'"):
        rj.read(path, delimeter=",")
    with pytest.raises(ValueError, match="at least one row, not 0"):
        next(rj.read_chunks(path, 0))
    with pytest.raises(TypeError, match=r"read the file first, with rejoint\.read"):
        rj.Records.of(str(path))
    monkeypatch.setattr("rejoint.records.formats.find_spec", lambda _: None)
    path = put(tmp_path, "a.parquet", b"PAR1")
    with pytest.raises(ImportError, match=r"read by pyarrow: .*rejoint\[arrow\]"):
        rj.read(path)
    with pytest.raises(ImportError, match=r"need duckdb: pip install 'rejoint\[duckdb\]'"):
        rj.read("duckdb:SELECT 1")


def test_bytes_that_stop_being_utf8(tmp_path):
    path = put(tmp_path, "a.csv", b"a,b\n" + b"x,1\n" * 100_000 + b"\xff,2\n")
    with pytest.raises(ValueError, match=r"a\.csv, after line \d+: not utf-8 .* Use encoding="):
        rj.read(path)
    path = put(tmp_path, "b.csv", "straße,b\nö,1\nä,2\n".encode("latin-1"))
    with pytest.warns(rj.Remark, match="not UTF-8"):
        assert rj.read(path).names == ("straße", "b")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rj.read(path, encoding="latin-1").domain["straße"].levels == ("ä", "ö")


@pytest.mark.filterwarnings("ignore::rejoint.Remark")  # "NaN" as text is remarked on
@given(
    cells=st.lists(
        st.tuples(
            *[st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)] * 2
        ),
        min_size=1,
        max_size=20,
    )
)
@example(cells=[("", "NaN"), ("NAN", "None")])
@settings(max_examples=60, deadline=None)
def test_any_text_comes_back(tmp_path_factory, cells):
    """What the csv module writes is read back, up to blanks around it, whatever it holds."""
    import csv

    path = tmp_path_factory.mktemp("data") / "a.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("first", "other"), *cells])
    records = rj.read(
        path, missing=[], delimiter=",", kinds=dict.fromkeys(("first", "other"), "nominal")
    )
    wanted = [[str(cell).strip() for cell in row] for row in cells]
    found = [[_same(x) for x in row.values()] for row in records.rows()]
    assert found == [[_same(cell) for cell in row] for row in wanted]


def _same(cell):
    """A cell as a number if it is one: numbers come back as numbers."""
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return cell
    return cell if number != number else number  # the text "NaN" is not a number


def test_a_real_file():
    folder = os.environ.get("REJOINT_DATA")
    if not folder or not Path(folder, "adult.csv.gz").exists():
        pytest.skip("REJOINT_DATA does not name a folder with adult.csv.gz")
    columns = ["workclass", "education", "occupation", "sex", "income"]
    records = rj.read(Path(folder, "adult.csv.gz"), columns=columns)
    assert len(records) == 48_842
    assert (records.codes < 0).sum(axis=0).tolist() == [2799, 0, 2809, 0, 0]
    assert records.domain.shape == (8, 16, 14, 2, 2)
