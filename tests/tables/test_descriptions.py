"""Descriptions: written, read again, and the same tables; those beside files hold."""

import itertools
import warnings

import numpy as np
import pytest

from rejoint.marginals import Marginals
from rejoint.marginals.read.description import read_description, write_description
from rejoint.marginals.read.table_files import OpenQuestionError, read_files

FORMS = ("long", "cross", "two headers", "two labels")
CELLS = ("plain", "totals", "marks", "percent", "decimal comma")
LABELS = ("words", "years", "odd")


def table(form, cells, labels, rng):
    """The text of a file, and the options that a user adds where it does not say all."""
    rows = {"words": ["north", "south", "west"], "years": ["2001", "2002", "2003"],
            "odd": ['x "y"', "a\\b", "ü; é"]}[labels]  # fmt: skip
    columns, inner = ["u", "v"], ["p", "q"]
    if form in ("long", "cross"):
        inner = [""]
    values = rng.integers(20, 900, size=(3, 2, len(inner))).astype(float)
    write = "{:.0f}".format
    if cells == "percent":
        values = np.round(100 * values / values.sum(), 1)
        values[0, 0, 0] = np.round(values[0, 0, 0] + 100 - values.sum(), 1)
        write = "{:.1f}".format
    elif cells == "decimal comma":
        values += 0.25
        write = lambda x: f"{x:.2f}".replace(".", ",")  # noqa: E731
    texts = np.vectorize(write, otypes=[object])(values)
    if cells == "marks":
        texts[1, 1, 0] = ".."
    totals = cells in ("totals", "marks")
    quote = lambda text: '"' + text.replace('"', '""') + '"'  # noqa: E731
    cell = quote if cells == "decimal comma" else str
    lines = []
    if form == "long":
        lines = ["Place,Kind,n"] + [
            f"{quote(r)},{c},{cell(texts[i, j, 0])}"
            for i, r in enumerate(rows) for j, c in enumerate(columns)
        ]  # fmt: skip
    elif form == "two labels":
        lines = ["Place,Kind,p,q" + ",Total" * totals] + [
            f"{quote(r) if j == 0 else ''},{c}," + ",".join(map(cell, texts[i, j]))
            + (f",{values[i, j].sum():.0f}" if totals else "")
            for i, r in enumerate(rows) for j, c in enumerate(columns)
        ]  # fmt: skip
    else:
        heads = [(c, k) for c in columns for k in inner]
        if form == "two headers":
            lines = ["," + ",".join(c if k == "p" else "" for c, k in heads) + ",Total" * totals]
            lines += ["Place," + ",".join(k for _, k in heads) + "," * totals]
        else:
            lines = ["Place \\ Kind," + ",".join(columns) + ",Total" * totals]
        for i, r in enumerate(rows):
            line = [quote(r), *map(cell, texts[i].ravel())]
            lines.append(",".join(line + [f"{values[i].sum():.0f}"] * totals))
    options = {"kind": "percent" if cells == "percent" else "counts"}
    if form == "two headers":
        options["names"] = ["Place", "Kind", "Part"]
    if form == "two labels":
        options["names"] = ["Place", "Kind", "Part"]
    if cells == "decimal comma":
        options["decimal"] = ","
    if cells == "marks" and form == "long":
        options["missing"] = {"..": "unknown"}
    return "\n".join(["A title", "", *lines, "", "Source: nobody"]) + "\n", options


CASES = list(itertools.product(FORMS, CELLS, LABELS, range(2)))


@pytest.mark.parametrize(("form", "cells", "labels", "seed"), CASES)
def test_a_description_that_was_written_gives_the_same_tables(tmp_path, form, cells, labels, seed):
    text, options = table(form, cells, labels, np.random.default_rng(seed))
    path = tmp_path / "t.csv"
    path.write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files = read_files(path, **options)
        first = Marginals.read(path, **options)
        (tmp_path / "tables.toml").write_text(files.description)
        again = Marginals.read(path)
    assert again.domain == first.domain
    assert again.subsets == first.subsets
    for name in ("flat", "counted", "rounding"):
        np.testing.assert_array_equal(getattr(again, name), getattr(first, name))
    assert (again.unknown is None) == (first.unknown is None)
    sizes = sorted(first.counts_of(0).shape)
    assert sizes == [2, 3] if form in ("long", "cross") else sizes == [2, 2, 3]


def test_there_are_a_hundred():
    assert len(CASES) >= 100


def test_patterns_several_tables_and_shared_entries(tmp_path):
    (tmp_path / "a.csv").write_text("Sex,Age,n\nm,0-4,1\nm,5+,2\nf,0-4,3\nf,5+,4\n")
    (tmp_path / "b.csv").write_text("sex,Work,what\nmen,yes,5\nmen,no,6\nwomen,yes,7\nwomen,no,8\n")
    (tmp_path / "tables.toml").write_text(
        'rounded = 3\nimpossible = [{Age = "0-4", Work = "yes"}]\n'
        '[same]\nm = "men"\nf = "women"\nsex = "Sex"\n["*.csv"]\nkind = "counts"\n'
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m = Marginals.read(tmp_path)
    assert m.domain["Sex"].levels == ("men", "women")
    assert m.rounding.tolist() == [3, 3]
    assert [moment.label for moment in m.moments] == ["Age=0-4, Work=yes: impossible"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('["a.csv"]\nkind = "odds"\n', r"tables.toml, \['a.csv'\]: kind='odds'"),
        ('["a.csv"]\nkinds = "counts"\n', "no option 'kinds': .* Did you mean 'kind'"),
        ('["a.csv"]\nkind = "?"\n', "kind is still '\\?': write what it is"),
        ('["a.csv"]\nmissing = {"-" = "?"}\n', "missing of '-' is still"),
        ('["a.csv"]\nwhere = {Year = "?"}\n', "where of 'Year' is still"),
        ("rounde = 3\n", "rounde is neither a file nor one of"),
        ("[[[", "is not TOML"),
    ],
)
def test_faults_of_descriptions_are_told(tmp_path, text, words):
    (tmp_path / "tables.toml").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_description(tmp_path / "tables.toml")


def test_a_proposal_can_be_pasted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Code,Area,Sex,n\nE1,North,m,3\nE1,North,f,4\nE2,South,m,5\nE2,South,f,6\n")
    with pytest.raises(OpenQuestionError) as error:
        Marginals.read(path)
    (tmp_path / "tables.toml").write_text(error.value.proposal)
    assert Marginals.read(path)["Area", "Sex"].tolist() == [[3, 4], [5, 6]]


def test_toml_of_any_text():
    odd = 'a"b\\c\x01\n'
    text = write_description(odd, read_description_of(odd))
    assert odd.replace("\n", "") or text


def read_description_of(name):
    from rejoint.marginals.read.description import Description

    return Description(drop=(name,), missing={name: (1.0, 9.0)})


@pytest.mark.parametrize(
    "text", ["same = 3\n", 'collapse = "x"\n', "[collapse]\nAge = 3\n", 'impossible = ["x"]\n']
)
def test_shared_entries_have_their_form(tmp_path, text):
    (tmp_path / "tables.toml").write_text(text)
    (tmp_path / "a.csv").write_text("a,count\nx,1\ny,2\n")
    with pytest.raises(ValueError, match=r"write \[same\], \[collapse.Age\] and a list"):
        Marginals.read(tmp_path)
