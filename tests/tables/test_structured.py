"""PC-Axis, JSON-stat, SDMX-CSV and TSV of Eurostat: every cell where the format says it is."""

import json
import time

import numpy as np
import pytest

from rejoint.marginals import Marginals
from rejoint.marginals.read.description import Description, Draft, Reading
from rejoint.marginals.read.forms import read_form
from rejoint.marginals.read.grid import read_grid
from rejoint.marginals.read.table_files import read_arrays
from rejoint.records.files import Source

PX = (
    'CHARSET="ANSI";\nAXIS-VERSION="2013";\nUNITS="number";\nSTUB="Sex";\nHEADING="Age";\n'
    'VALUES("Sex")="men","women";\nVALUES("Age")="0-14","15+";\n'
)


def array_of(text, name="t.px"):
    content = text if isinstance(text, bytes) else text.encode()
    (array,) = read_arrays(Source(name, content=content))
    return array


@pytest.mark.parametrize(
    "data",
    [
        "DATA=\n1 2\n3 4;\n",
        "DATA=\n1 2;\n3 4;\n",  # a semicolon after each row
        "DATA=1,2,3,4;",
        "DATA=\n1 2 \n3 4",
        'NOTE="a; b";\nDATA=\n1 2 3 4;',
        'NOTE="a ""b"";\nVALUES[sv]("Sex")="x","y";\nDATA=\n1 2 3 4;',
    ],
)
def test_pc_axis_data_in_several_ways(data):
    for start in (b"", b"\xef\xbb\xbf"):
        array = array_of(start + (PX + data).encode())
        np.testing.assert_array_equal(array.values, [[1, 2], [3, 4]])


def test_pc_axis_first_values_may_be_missing():
    text = PX.replace('"15+"', '"15+","2005TI"') + 'DATA=\n".." 2 "-"\n".." - 4;'
    array = array_of(text)
    assert array.names == ("Sex", "Age")
    assert array.labels[1] == ("0-14", "15+", "2005TI")
    np.testing.assert_array_equal(np.isnan(array.values), [[1, 0, 1], [1, 1, 0]])
    assert [array.missing[m] for m in ("-", "..")] == [(0.0, 0.0), (0.0, np.inf)]


def test_pc_axis_keys_leave_out_rows_of_zeros():
    text = (
        'STUB="B","C";HEADING="A";VALUES("A")="u","v";VALUES("B")="x","y";VALUES("C")="p","q";\n'
        'CODES("C")="1","2";KEYS("B")=VALUES;KEYS("C")=CODES;\nDATA=\n"x","1",1 2\n"y","2",3 4;'
    )
    np.testing.assert_array_equal(array_of(text).values, [[[1, 2], [0, 0]], [[0, 0], [3, 4]]])
    turned = text.replace('KEYS("B")=VALUES;KEYS("C")=CODES', 'KEYS("C")=CODES;KEYS("B")=VALUES')
    turned = turned.replace('"x","1"', '"1","x"').replace('"y","2"', '"2","y"')
    np.testing.assert_array_equal(array_of(turned).values, array_of(text).values)
    with pytest.raises(ValueError, match="key 'z', which is no value"):
        array_of(text.replace('"y","2"', '"z","2"'))


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "iso-8859-15", "cp850"])
def test_pc_axis_encodings(encoding):
    head = PX.replace("women", "kvinnor på ö")
    if encoding == "cp850":
        head = head.replace('CHARSET="ANSI";\n', "")
    elif encoding == "iso-8859-15":
        head = f'CODEPAGE="{encoding}";\n' + head
    array = array_of((head + "DATA=1 2 3 4;").encode(encoding))
    assert array.labels[0][1] == "kvinnor på ö"


def test_pc_axis_elimination_units_hierarchy_and_time(tmp_path):
    text = (
        'UNITS="persons";STUB="Region";HEADING="year";VALUES("Region")="All","A","A1","A2","B";\n'
        'CODES("Region")="0","1","11","12","2";ELIMINATION("Region")="All";\n'
        'HIERARCHIES("Region")="All","All":"A","All":"B","1":"11","1":"12";\n'
        'TIMEVAL("year")=TLIST(A1),"2001"-"2002";\nDATA=\n10 20 4 8 1 3 3 5 6 12;'
    )
    path = tmp_path / "t.px"
    path.write_text(text)
    m = Marginals.read(path)
    assert m.domain["Region"].levels == ("A1", "A2", "B")
    assert m.domain["year"].levels == (2001, 2002)
    assert m["Region", "year"].tolist() == [[1, 3], [3, 5], [6, 12]]
    path.write_text(text.replace("10 20", "10 40"))
    with pytest.raises(ValueError, match=r"'All' of 'Region' is not the sum .*2002: 40 given, 20"):
        Marginals.read(path)


def test_pc_axis_measures_are_not_levels(tmp_path):
    text = (
        'STUB="Sex";HEADING="what";CONTVARIABLE="what";VALUES("Sex")="m","f";\n'
        'VALUES("what")="births","rate";UNITS("births")="number";UNITS("rate")="per cent";\n'
        "DATA=\n30 1.5 40 2.5;"
    )
    path = tmp_path / "t.px"
    path.write_text(text)
    with pytest.raises(ValueError, match=r'where = {"what" = "births"}') as error:
        Marginals.read(path)
    assert "different measures" in str(error.value)
    assert Marginals.read(path, where={"what": "births"})["Sex"].tolist() == [30, 40]


def stat(**more):
    plain = {
        "version": "2.0",
        "class": "dataset",
        "id": ["sex", "age"],
        "size": [2, 2],
        "dimension": {
            "sex": {"label": "Sex", "category": {"label": {"M": "men", "F": "women"}}},
            "age": {"category": {"index": {"old": 1, "young": 0}}},
        },
        "value": [1, 2, 3, None],
    }
    return plain | more


@pytest.mark.parametrize(
    "status", [["a"], "a", {"3": "a"}, ["", "", "", "a"]], ids=["one", "text", "cell", "list"]
)
def test_json_stat_status_forms(status):
    array = array_of(json.dumps(stat(status=status)), "t.json")
    assert (array.names, array.labels) == (("Sex", "age"), (("men", "women"), ("young", "old")))
    assert array.marks == ("a",)
    np.testing.assert_array_equal(array.values, [[1, 2], [3, np.nan]])


def test_json_stat_bundles_collections_and_sparse_values():
    one = {k: v for k, v in stat().items() if k not in ("id", "size", "class")}
    one["dimension"] = {**one["dimension"], "id": ["sex", "age"], "size": ["2", "2"]}
    one["value"] = {"0": 1, "2": 3}
    bundle = {"first": one, "second": stat()}
    arrays = read_arrays(Source("t.json", content=json.dumps(bundle).encode()))
    np.testing.assert_array_equal(arrays[0].values, [[1, np.nan], [3, np.nan]])
    assert [a.where for a in arrays] == ["t.json, table 1", "t.json, table 2"]
    inside = {"class": "collection", "link": {"item": [stat(), {"href": "x"}]}}
    assert len(read_arrays(Source("t.json", content=json.dumps(inside).encode()))) == 1
    inside["link"]["item"].pop(0)
    with pytest.raises(ValueError, match="lists other files and has no data set itself"):
        read_arrays(Source("t.json", content=json.dumps(inside).encode()))


def test_json_stat_units_multipliers_roles_and_children(tmp_path):
    units = {"P": {"type": "count", "multiplier": 3, "decimals": 1}, "R": {"label": "%"}}
    plain = {
        "id": ["what", "place"],
        "size": [2, 3],
        "role": {"metric": ["what"]},
        "dimension": {
            "what": {"category": {"index": ["P", "R"], "unit": units}},
            "place": {"category": {"index": ["T", "A", "B"], "child": {"T": ["A", "B"]}}},
        },
        "value": [3.5, 1.5, 2.0, 100, 42.9, 57.1],
    }
    path = tmp_path / "t.json"
    path.write_text(json.dumps(plain))
    with pytest.raises(ValueError, match=r'where = {"what" = "P"}'):
        Marginals.read(path)
    m = Marginals.read(path, where={"what": "P"})
    assert m["place"].tolist() == [1500, 2000]
    assert m.rounding.tolist() == [50]


def test_sdmx_csv_dimensions_attributes_labels_and_totals(tmp_path):
    path = tmp_path / "t.csv"
    names = {"Y1": "one", "Y2": "two", "_T": "Total"}
    path.write_text(
        "DATAFLOW,SEX: Sex,AGE,Age group,TIME_PERIOD,OBS_VALUE,OBS_STATUS,NOTE,UNIT_MULT\n"
        + "".join(
            f"X:Y(1.0),{sex}: {word},{age},{names[age]},2020,{value},A,n{value},3\n"
            for sex, word, age, value in [
                *(("F", "women", "Y1", 3), ("F", "women", "Y2", 4), ("F", "women", "_T", 7)),
                *(("M", "men", "Y1", 5), ("M", "men", "Y2", 6), ("M", "men", "_T", 11)),
            ]
        )
    )
    m = Marginals.read(path)
    assert m.subsets == (("Sex", "Age group"),)
    np.testing.assert_array_equal(m[m.subsets[0]], [[3000, 4000], [5000, 6000]])


def test_eurostat_tsv_flags_and_missing(tmp_path):
    path = tmp_path / "t.tsv"
    rows = "sex,age,geo\\TIME_PERIOD\t2019 \t2020 \nF,Y1,AT\t10 \t12 p\nF,TOTAL,AT\t30 \t36 \n"
    path.write_text(
        rows + "F,Y2,AT\t: c\t24 e\nM,Y1,AT\t1 \t2 \nM,Y2,AT\t3 \t4 \nM,TOTAL,AT\t4 \t6\n"
    )
    m = Marginals.read(path)
    assert set(m.subsets[0]) == {"sex", "age", "TIME_PERIOD"}
    assert m["sex", "age", "TIME_PERIOD"].tolist() == [[[10, 12], [20, 24]], [[1, 2], [3, 4]]]
    assert len(m.unknown) == 1  # the total says what was held back


def test_sizes_are_refused_before_they_are_built():
    plain = stat(size=[10**6, 10**6])
    with pytest.raises(ValueError, match=r"make 1,000,000,000,000 cells"):
        array_of(json.dumps(plain), "t.json")
    rows = "".join(f"x{i},y{i % 20_000},z{i % 30_000},1\n" for i in range(40_000))
    grid = read_grid(Source("t.csv", content=f"a,b,c,count\n{rows}".encode()))
    with pytest.raises(ValueError, match=r"make 24,000,000,000,000 cells, of which 40,000 cells"):
        read_form(grid, Draft("t.csv", Reading("t.csv"), Description()))


@pytest.mark.parametrize("junk", ["x" * 200_000, "\n" * 200_000, '"' * 3 + "X" * 100_000])
def test_pc_axis_without_statements_is_refused_at_once(junk):
    began = time.process_time()
    with pytest.raises(ValueError, match="not valid PC-Axis"):
        array_of(PX + junk)
    assert time.process_time() - began < 5.0
