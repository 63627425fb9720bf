"""Tables in files: layouts, numbers as printed, faults in words, round trips."""

import gzip
import json
import os
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rejoint as rj
from rejoint.marginals import Marginals
from rejoint.marginals import folder as folders
from rejoint.marginals.read.cells import find_decimal, meaning_of, read_number

COUNTS = np.array([[30.0, 10.0, 5.0], [20.0, 40.0, 15.0]])

LAYOUTS = {
    "long.csv": "smoke,age,count\nyes,young,30\nyes,mid,10\nyes,old,5\n"
    "no,young,20\nno,mid,40\nno,old,15\n",
    "corner.csv": "smoke \\ age,young,mid,old\nyes,30,10,5\nno,20,40,15\n",
    "equals.csv": "smoke,age=young,age=mid,age=old\nyes,30,10,5\nno,20,40,15\n",
    "tabs.tsv": "smoke \\ age\tyoung\tmid\told\nyes\t30\t10\t5\nno\t20\t40\t15\n",
    "semicolon.csv": "smoke \\ age;young;mid;old\nyes;30;10;5\n\nno;20;40;15\n",
    "totals.csv": "smoke \\ age,young,mid,old,Total\nyes,30,10,5,45\nno,20,40,15,75\n"
    "Total,50,50,20,120\n",
    "quoted.csv": '"smoke \\ age","young","mid","old"\n"yes","30","10","5"\n"no","20","40","15"\n',
    "bom.csv": "\ufeff# a title, with a comma\nsmoke \\ age,young,mid,old\n"
    "yes,30,10,5\nno,20,40,15\n",
}


def put(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_gives_the_same_table(tmp_path, name):
    m = Marginals.read(put(tmp_path, name, LAYOUTS[name]), kind="counts")
    assert m.domain.names == ("smoke", "age")
    assert m.domain["age"].levels == ("young", "mid", "old")
    np.testing.assert_array_equal(m["smoke", "age"], COUNTS)


def test_gzip_and_archives(tmp_path):
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.write(LAYOUTS["totals.csv"])
    assert Marginals.read(tmp_path)["smoke", "age"].tolist() == COUNTS.tolist()
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("inside/t.csv", LAYOUTS["totals.csv"])
        archive.writestr("readme.md", "no table")
    assert Marginals.read(tmp_path / "all.zip")["smoke", "age"].tolist() == COUNTS.tolist()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("12", 12), ("1,234", 1234), ("1 234", 1234), ("1\u00a0234", 1234), ("12.5%", 12.5)),
        *((" 7 ", 7), ("7*", 7), ("7 p", 7), ("7 [note 2]", 7), ("\u22127", -7), ("1e3", 1000)),
        *(("12,34,567", 1234567), ("1,234.5", 1234.5), ("3\u00b9", 3), ("5 (b)", 5)),
    ],
)
def test_numbers_as_people_write_them(text, value):
    assert read_number(text).value == value


@pytest.mark.parametrize("text", ["2005TI", "(10)", "1-4", "15-24", "1,23", "many", "", "1e999"])
def test_what_is_no_number(text):
    assert read_number(text) is None


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        *(("<5", (0, 4)), ("< 5", (0, 4)), ("<=4", (0, 4)), ("\u22644", (0, 4))),
        *(("*", (0, np.inf)), ("[c]", (0, np.inf)), ("NA", (0, np.inf)), ("..", (0, np.inf))),
        *(("-", None), ("", None), ("--", None), (".", None), ("many", None)),
    ],
)
def test_marks_have_one_meaning_or_are_asked_about(text, bounds):
    assert meaning_of(text, {}) == bounds


def test_decimal_commas(tmp_path):
    text = "a \\ b;u;v\nx;12,5 %;37,5 %\ny;25 %;25 %\n"
    m = Marginals.read(put(tmp_path, "t.csv", text))
    np.testing.assert_allclose(m["a", "b"], [[0.125, 0.375], [0.25, 0.25]])
    text = "a \\ b;u;v\nx;1.250;2.000\ny;2.500;2.500\n"
    with pytest.raises(ValueError, match=r"numbers such as 9\.132 may be 9132 or about 9"):
        Marginals.read(put(tmp_path, "t.csv", text))
    m = Marginals.read(tmp_path, decimal=",", kind="counts")
    assert m["a", "b"][0].tolist() == [1250.0, 2000.0]


@pytest.mark.parametrize(
    ("texts", "mark"),
    [
        (["..", "12"], "."),
        (["12,5", "..", "01.02.2020"], ","),
        (["0.132", "7"], "."),
        (["1.234.567", "12"], ","),
        (["12,34,567"], "."),
        (["1.234,5"], ","),
        (["9.132", "1.250"], None),
        (["9.132", "12345"], "."),
        (["9.132", "125"], ","),
        (["1.5", "2,5"], None),
    ],
)
def test_the_decimal_mark_whatever_the_order_of_cells(texts, mark):
    assert find_decimal(texts) == find_decimal(texts[::-1]) == mark


def test_columns_that_repeat_each_other_are_no_table(tmp_path):
    # 6,000 ids and 6,000 names with a few twins: 36 million cells, of which 6,000 are listed.
    rows = "".join(f"id{i},name{i % 5_990},{i % 7},{i % 3}\n" for i in range(6_000))
    path = put(tmp_path, "t.csv", "id,name,group,count\n" + rows)
    with pytest.raises(ValueError, match="these are not variables of one table"):
        Marginals.read(path, kind="counts", missing={"": 0})


def test_shares_rounded_to_a_digit_need_not_add_up(tmp_path):
    # 43 shares, each rounded to a per cent: their sum is off by four.
    share = np.array([3.4] * 10 + [2.0] * 33) / 100
    rounded = np.round(100 * share)
    assert abs(rounded.sum() - 100) > 1
    rows = "".join(f"a{i},{value:.0f}\n" for i, value in enumerate(rounded))
    m = Marginals.read(put(tmp_path, "t.csv", "a,percent\n" + rows))
    np.testing.assert_allclose(m["a"], rounded / rounded.sum())


def test_weights_and_records_of_a_description(tmp_path):
    put(tmp_path, "a.csv", "a,percent\nx,40\ny,60\n")
    put(tmp_path, "b.csv", "a,b,share\nx,u,.4\nx,v,0\ny,u,0\ny,v,.6\n")
    put(tmp_path, "tables.toml", '["a.csv"]\nrecords = 500\nweight = 2\n')
    m = Marginals.read(tmp_path)
    np.testing.assert_allclose(m["a"], [200, 300])
    assert list(m.counted) == [True, False]
    np.testing.assert_allclose(m.table_weight, [2.0, 1.0])
    m = Marginals.read(tmp_path, table_weight={("a", "b"): 7.0})
    np.testing.assert_allclose(m.table_weight, [2.0, 7.0])


def test_totals_give_what_was_held_back(tmp_path):
    text = "a \\ b,u,v,Total\nx,30,*,33\ny,20,40,60\n"
    m = Marginals.read(put(tmp_path, "t.csv", text))
    assert m["a", "b"][0, 1] == pytest.approx(3.0)
    assert len(m.unknown) == 1


def test_unknown_marks_are_asked_about(tmp_path):
    path = put(tmp_path, "t.csv", "a \\ b,u,v,Total\nx,30,#,34\ny,20,40,60\n")
    with pytest.raises(ValueError, match="columns with words such as '#' among the numbers"):
        Marginals.read(path)
    m = Marginals.read(path, missing={"#": (1, 4)})
    assert m.unknown.low.tolist() == [1.0]
    assert m["a", "b"][0, 1] == pytest.approx(4.0)


def test_noise_may_be_negative_on_request(tmp_path):
    text = "a \\ b,u,v\nx,30.5,-1.5\ny,20,81\n"
    with pytest.raises(ValueError, match=r"got -1.5; .*not negative. Use noisy=True"):
        Marginals.read(put(tmp_path, "t.csv", text), kind="counts")
    m = Marginals.read(tmp_path, kind="counts", noisy=True)
    assert m["a", "b"][0, 1] == -1.5
    result = rj.factorize(m, rank=1, n_init=1, random_state=0)
    assert np.isfinite(result.error)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"t\.csv is empty: a table needs a header and rows"),
        ("a,b,count\n", r"t\.csv has a header but no rows"),
        ("a,b\nx,u\n", r"none of its lines has a label and a number beside it"),
        ("a,b,count\nx,u,1\nx,u,2\n", r"the cell a='x', b='u' is given twice"),
        ("a,a,count\nx,u,1\ny,v,2\nx,v,2\n", r"column 1 has a name that another one has"),
        ("a,,count\nx,u,1\nx,v,2\n", r"column 2 has no name"),
        ("a,b,count\n,v,3\nx,y,4\nx,v,4\n", r"line 2: the label of 'a' is empty"),
        ("a \\ b,u,v\nx,*,*\n", r"no column right of the first 3 has numbers"),
        ("a \\ b,u,v\nx,0,0\ny,0,0\n", r"is empty: all its cells are zero"),
        ("a \\ b,u,v\nx,60%,40%\ny,30%,70%\n", r"add up to 100 within each level of 'a'"),
        ('a,count\n"x,1\n', r"line 2: .*Quotes must come in pairs"),
        ("a,count\nx\x00,1\n", r"contains zero bytes, so it is not text"),
    ],
)
def test_faults_are_told_in_words(tmp_path, text, words):
    put(tmp_path, "t.csv", text)
    options = {"kind": "counts"} if "0,0" in text else {}
    with pytest.raises(ValueError, match=words):
        Marginals.read(tmp_path / "t.csv", **options)


def test_other_faults(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No file '.*gone\.csv': check the name"):
        Marginals.read(tmp_path / "gone.csv")
    with pytest.raises(ValueError, match=r"has no table files: names must end in \.csv"):
        Marginals.read(tmp_path)
    with pytest.raises(ValueError, match="No table files were given"):
        Marginals.read([])
    put(tmp_path, "t.csv", "a,count\nx,1\ny,2\n")
    with pytest.raises(ValueError, match="mention 'a', which is not in the domain"):
        Marginals.read(tmp_path, domain=rj.Domain.of({"b": ["x", "y"]}))
    with pytest.raises(ValueError, match="decimal"):
        Marginals.read(tmp_path, decimal=";")
    with pytest.raises(ValueError, match="delimiter must be a single character"):
        Marginals.read(tmp_path, delimiter="::")
    with pytest.raises(ValueError, match="encoding='klingon' is not known"):
        Marginals.read(tmp_path, encoding="klingon")


def test_other_encodings(tmp_path):
    text = "straße,count\nmüll,1\nöl,2\n"
    (tmp_path / "t.csv").write_bytes(text.encode("cp1252"))
    with pytest.warns(rj.Remark, match=r"not UTF-8 .* Give encoding="):
        assert Marginals.read(tmp_path).domain["straße"].levels == ("müll", "öl")
    (tmp_path / "t.csv").write_bytes(text.encode("utf-16"))
    assert Marginals.read(tmp_path).domain["straße"].levels == ("müll", "öl")
    (tmp_path / "t.csv").write_bytes(text.encode("latin-1"))
    assert Marginals.read(tmp_path, encoding="latin-1").domain.names == ("straße",)


# Written folders -------------------------------------------------------------------------


def full_house():
    """Tables with all that Marginals can hold: types, bins, weights, shares, holes, moments."""
    age = rj.Variable("age", (rj.Bin(0, 18), rj.Bin(18, float("inf"))), "binned", (9.0, 40.0))
    domain = rj.Domain(
        (
            rj.Variable("text", ('ja, "so"', "", "Total", " x ")),
            rj.Variable("whole", (-1, 0, 10**30), "ordinal"),
            rj.Variable("real", (0.1, 2.0)),
            age,
        )
    )
    rng = np.random.default_rng(0)
    holes = rng.integers(0, 9, size=(4, 3)).astype(float)
    holes[1, 1] = np.nan
    return Marginals.from_tables(
        {
            ("text", "whole"): holes,
            ("real", "age"): rng.dirichlet(np.ones(4)).reshape(2, 2),
            ("text",): rng.random(4) * 7,
        },
        domain=domain,
        kind="auto",
        table_weight={("text",): 0.3},
        moments={("real",): 1.1},
        suppressed=(0, np.inf),
    )


@pytest.mark.filterwarnings("ignore:Tables:rejoint.Remark", "ignore:The mean:rejoint.Remark")
def test_written_tables_come_back_exactly(tmp_path):
    m = full_house()
    m.write(tmp_path / "out")
    back = Marginals.read(tmp_path / "out")
    assert back.domain == m.domain
    assert back.index_subsets == m.index_subsets
    for name in ("flat", "table_weight", "counted"):
        assert getattr(back, name).tobytes() == getattr(m, name).tobytes()
    assert back.moments == m.moments
    assert back.unknown.places.tolist() == m.unknown.places.tolist()
    assert back.unknown.high.tolist() == m.unknown.high.tolist()
    assert len(back.unknown.sums) == len(m.unknown.sums)
    assert sorted(os.listdir(tmp_path)) == ["out"]


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_any_counts_come_back(tmp_path_factory, data):
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    number = st.floats(0.0, 1e199) | st.integers(0, 10**6).map(float)
    cells = data.draw(st.lists(number, min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    domain = rj.Domain.of_shape(shape)
    m = Marginals(domain, (tuple(range(len(shape))),), np.array(cells))
    folder = tmp_path_factory.mktemp("tables") / "out"
    m.write(folder)
    assert Marginals.read(folder).flat.tobytes() == m.flat.tobytes()


def test_counted_tables_are_read_by_anyone(tmp_path):
    records = rj.datasets.asia().sample(300, random_state=0)
    m = Marginals.count(records, order=2)
    m.write(tmp_path / "out")
    (tmp_path / "out" / folders.MANIFEST).unlink()  # only the CSV files are left
    plain = Marginals.read(tmp_path / "out", domain=m.domain, missing={"": 0})
    assert plain.subsets == m.subsets
    np.testing.assert_array_equal(plain.flat, m.flat)


def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch):
    first = Marginals.from_tables({("a", "b"): [[1, 2], [3, 4]]})
    first.write(tmp_path / "out")

    def full(*_):
        raise OSError(28, "No space left on device")

    other = Marginals.from_tables({("a", "b"): [[9, 2], [3, 4]]})
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            other.write(tmp_path / "out")
    np.testing.assert_array_equal(Marginals.read(tmp_path / "out").flat, first.flat)
    assert os.listdir(tmp_path) == ["out"]
    other.write(tmp_path / "out")
    np.testing.assert_array_equal(Marginals.read(tmp_path / "out").flat, other.flat)
    assert os.listdir(tmp_path) == ["out"]


def test_places_that_cannot_be_written(tmp_path):
    m = Marginals.from_tables({("a", "b"): [[1, 2], [3, 4]]})
    put(tmp_path, "mine.txt", "precious")
    with pytest.raises(FileExistsError, match="it contains other files; choose a new folder"):
        m.write(tmp_path)
    with pytest.raises(FileExistsError, match="there is a file of that name"):
        m.write(tmp_path / "mine.txt")
    with pytest.raises(FileNotFoundError, match=r"there is no folder '.*nowhere'"):
        m.write(tmp_path / "nowhere" / "out")
    alike = Marginals(rj.Domain.of({"a": [1, "1"]}), ((0,),), [1, 2])
    with pytest.raises(ValueError, match="'a' has levels that look the same as text"):
        alike.write(tmp_path / "out")


FILE = "0_a__b-944a8cab.csv"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 9}, "schema version 9; this rejoint reads version 2: read it by"),
        ({"domain": {}}, "is not in the format of rejoint"),
        ({"files": ["../x.csv"]}, "which is not a file of its folder"),
        ({"files": []}, "'files' of tables.json has 0 items, not 1"),
        ({"tables": {"subsets": [[0]]}}, "header does not match"),
        ({"tables": {"subsets": [[0, 1]], "counted": [False]}}, "header does not match"),
        ({"tables": {"subsets": [[0, 1]], "weight": ["1"]}}, "item 1 of 'weight' of its tables"),
        ({"schema": None}, "'schema' of tables.json is null, expected a whole number"),
        (
            {"tables": {"subsets": [[0, 1]], "unknown_cells": [[0], [1]]}},
            "not three rows of numbers",
        ),
        ({"tables": {"subsets": [[0, 1]], "unknown_cells": [[0], [1], [2]]}}, "'guess' of"),
    ],
)
def test_spoilt_manifests(tmp_path, change, words):
    Marginals.from_tables({("a", "b"): [[1, 2], [3, 4]]}).write(tmp_path / "out")
    path = tmp_path / "out" / folders.MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ValueError, match=words):
        Marginals.read(tmp_path / "out")


def test_spoilt_cells_of_a_written_folder(tmp_path):
    Marginals.from_tables({("a", "b"): [[1, 2], [3, 4]]}).write(tmp_path / "out")
    [path] = (tmp_path / "out").glob("0_a__b-*.csv")
    path.write_text("a,b,count\n0,0,1\n0,7,2\n")
    with pytest.raises(ValueError, match=r"line 3: \['0', '7', '2'\] is not a cell of"):
        Marginals.read(tmp_path / "out")
    path.write_text("a,b,count\n0,0,*\n")
    with pytest.raises(ValueError, match="a cell is marked as not known"):
        Marginals.read(tmp_path / "out")
