"""Options of published tables: the same at every command that takes tables, and in Python."""

import inspect
import json

import pytest

import rejoint as rj
from rejoint.cli import COMMANDS, main

OPTIONS = {
    *("form", "table", "sheet", "skip", "header_rows", "label_columns", "value", "where", "drop"),
    *("totals", "kind", "per", "names", "missing", "decimal", "same", "collapse", "impossible"),
    *("rounded", "noisy", "delimiter", "encoding"),
}
TAKE_TABLES = {"fit-tables", "check-tables", "rake", "population", "inspect", "report", "identify"}


def command_of(name):
    return main.get_command(None, name)


@pytest.mark.parametrize("name", sorted(TAKE_TABLES))
def test_every_command_that_takes_tables_takes_the_same_options(name):
    params = [param.name for param in command_of(name).params]
    assert set(params) >= OPTIONS - {"names"} | {"axis"}
    assert len(set(params)) == len(params)


def test_no_other_command_takes_tables():
    every = {name for section in COMMANDS.values() for name in section}
    takers = {
        name
        for name in every
        if "label_columns" in {param.name for param in command_of(name).params}
        or any(param.name == "tables" for param in command_of(name).params)
    }
    assert takers == TAKE_TABLES


def test_python_takes_them_too():
    assert set(inspect.signature(rj.Marginals.read).parameters) >= OPTIONS


FILE = (
    "Sex;Age;Wert;sd\nMen;0-14;9.132;0,5\nMen;15+;2.628;0,2\nWomen;0-14;8.771;0,3\n"
    "Women;15+;x;0,4\n"
)


@pytest.fixture
def published(world):
    (world / "p.csv").write_text(FILE)
    (world / "q.csv").write_text(
        "Sex,Work,n\nMale,yes,810\nMale,no,392\nFemale,yes,710\nFemale,no,480\n"
    )
    return world


def test_errors_print_options_that_settle_them(run, published):
    words = ["check-tables", "p.csv", "q.csv"]
    result = run(*words)
    assert result.exit_code == 1
    assert 'decimal = ","' in result.output
    assert 'kind = "?"' in result.output
    (published / "tables.toml").write_text(
        '["p.csv"]\ndecimal = ","\nvalue = "Wert"\ndrop = "sd"\nkind = "counts"\n'
        'missing = {"x" = [1000, 4000]}\n'
    )
    result = run(*words)
    assert "other levels in p.csv than in q.csv" in result.output
    result = run(*words, "--same", "Male=Men", "--same", "Female=Women", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["variables"] == {
        "Sex": ["Men", "Women"],
        "Age": ["0-14", "15+"],
        "Work": ["yes", "no"],
    }
    assert told["tables"][0]["marks"] == {"x": "1 cell, 1000 to 4000"}
    known = rj.Marginals.read(
        [published / "p.csv", published / "q.csv"], same={"Male": "Men", "Female": "Women"}
    )
    assert known.unknown.high.tolist() == [4000.0]


def test_options_of_the_command_line_are_those_of_python(run, published):
    (published / "t.csv").write_text(
        "Title\nArea,Age,count\nN,0-4,--\nN,5-9,3\nN,10+,4\nS,0-4,5\nS,5-9,6\nS,10+,7\n"
    )
    options = ["--skip", "1", "--missing", "--=1..9", "--axis", "Area=Region"]
    options += ["--collapse", "Age:0-9=0-4,5-9", "--impossible", "Region=S,Age=10+"]
    result = run("check-tables", "t.csv", *options)
    assert result.exit_code == 1
    assert "Region=S, Age=10+: impossible, but the table of Region, Age" in result.output
    result = run("check-tables", "t.csv", *options[:-2], "--json")
    told = json.loads(result.stdout)
    assert told["variables"] == {"Region": ["N", "S"], "Age": ["0-9", "10+"]}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--same", "Men"], "--same Men: write A=B."),
        (["--missing", "x=one..4"], "give for each mark 0"),
        (["--where", "Sex"], "write VARIABLE=LABEL"),
        (["--rounded", "often"], "--rounded often: give the number"),
    ],
)
def test_options_that_are_not_understood(run, published, words, said):
    result = run("check-tables", "q.csv", *words)
    assert result.exit_code in (1, 2)
    assert said in result.output


def test_check_tables_on_one_screen(run, published):
    (published / "r.csv").write_text(
        "Title of a table\nSex \\ Work,yes,no,Total\nMale,810,392*,1202\nFemale,..,480,1190\n"
        "Total,1520,872,2392\nSource: nobody\n"
    )
    result = run("check-tables", "r.csv", "--write", "r.toml")
    assert result.exit_code == 0, result.output
    for words in [
        "r.csv (cross): Sex (2) x Work (2), counts",
        "totals:    Sex=Total, Work=Total",
        "marks:     .. (1 cell, not given)",
        "flags:     * (1 cell)",
        "Title of a table | Source: nobody",
        "Together: Marginals(1 table of order 2 over 2 variables",
    ]:
        assert words in result.output
    assert ["Female", "?", "480"] in [line.split() for line in result.output.splitlines()]
    assert len(result.output.splitlines()) < 25
    (published / "tables.toml").write_text((published / "r.toml").read_text())
    again = run("check-tables", "r.csv", "--json")
    assert json.loads(again.stdout)["variables"] == {
        "Sex": ["Male", "Female"],
        "Work": ["yes", "no"],
    }


def test_a_proposal_is_written_with_what_is_open(run, published):
    (published / "s.csv").write_text("Area,Sex,people alive\nN,m,30\nN,f,40\nS,m,50\nS,f,61\n")
    result = run("check-tables", "s.csv", "--write", "tables.toml")
    assert result.exit_code == 1
    text = (published / "tables.toml").read_text()
    assert 'value = "people alive"' in text
    assert 'kind = "?"  # counts, shares or percent' in text
    result = run("check-tables", "s.csv")
    assert "tables.toml, ['s.csv']: kind is still '?': write what it is" in result.output
    (published / "tables.toml").write_text(text.replace('"?"', '"counts"'))
    assert run("check-tables", "s.csv").exit_code == 0


def test_tables_can_be_protected(run, world):
    result = run(
        "tables", "patients.csv", "-o", "public", "--order", 2, "--min-count", 5, "--round", 5
    )
    assert result.exit_code == 0, result.output
    assert "small counts and" in result.output
    assert "of the mass on average" in result.output
    tables = rj.Marginals.read(world / "public")
    assert (tables.rounding == 5.0).all()
    assert len(tables.unknown) > 0
    known = [v for i, v in enumerate(tables.flat) if i not in set(tables.unknown.places.tolist())]
    assert all(value % 5 == 0 for value in known)


def test_the_report_shows_each_table_as_it_was_read(run, world):
    (world / "two.csv").write_text(
        "Sex \\ Work,yes,no,Total\nMale,810,392,1202\nFemale,..,480,1190\nTotal,1520,872,2392\n"
    )
    assert run("fit-tables", "two.csv", "-o", "two.rejoint").exit_code == 0
    assert run("report", "two.rejoint", "-o", "two.html").exit_code == 0
    page = (world / "two.html").read_text()
    assert "Tables as given" in page
    read = "Counts, 2,392 in all, read from two.csv. 1 cell is not given."
    words = [read, "not given, 710 by sums", '"names":["Sex","Work"]']
    for each in words:
        assert each in page
    told = json.loads(run("inspect", "two.rejoint", "--json").stdout)["notes"]["tables"]
    assert (told[0]["where"], told[0]["kind"]) == ("two.csv", "counts")
    assert run("export", "two.rejoint", "-o", "page.html").exit_code == 0
    assert read in (world / "page.html").read_text()
