"""Options of published tables: the same at every command that takes tables, and in Python."""

import inspect
import json
from importlib import import_module

import pytest

import rejoint as rj
from rejoint.cli import COMMANDS

OPTIONS = {
    *("value", "totals", "skip", "sheet", "decimal", "same", "rounded", "suppressed", "kind"),
    *("noisy", "delimiter", "encoding"),
}
TAKE_TABLES = {"fit-tables", "check-tables", "rake", "population", "inspect", "report", "identify"}


def command_of(name):
    return import_module(f"rejoint.cli.{name.replace('-', '_')}").command


@pytest.mark.parametrize("name", sorted(TAKE_TABLES))
def test_every_command_that_takes_tables_takes_the_same_options(name):
    params = [param.name for param in command_of(name).params]
    assert set(params) >= OPTIONS
    assert len(set(params)) == len(params)


def test_no_other_command_takes_tables():
    every = {name for section in COMMANDS.values() for name in section}
    takers = {
        name
        for name in every
        if "suppressed" in {param.name for param in command_of(name).params}
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
    options = []
    for said, option in [
        ("Use --skip 'sd' to leave out", ["--skip", "sd"]),
        ("--decimal ,", ["--decimal", ","]),
        ("--kind counts", ["--kind", "counts"]),
        (
            "--same 'Male=Men' --same 'Female=Women'",
            ["--same", "Male=Men", "--same", "Female=Women"],
        ),
    ]:
        result = run(*words, *options)
        assert result.exit_code == 1
        assert said in result.output
        options += option
    result = run(*words, *options, "--suppressed", "x=1000..4000", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["variables"] == {
        "Sex": ["Men", "Women"],
        "Age": ["0-14", "15+"],
        "Work": ["yes", "no"],
    }
    assert told["tables"][0]["marks"] == {"x": 1}
    known = rj.Marginals.read(
        [published / "p.csv", published / "q.csv"],
        decimal=",",
        skip="sd",
        same={"Male": "Men", "Female": "Women"},
        suppressed={"x": (1000, 4000)},
        kind="counts",
    )
    assert known.unknown.high.tolist() == [4000.0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--same", "Men"], "--same Men: write A=B."),
        (["--suppressed", "x=one..4"], "write MARK=LOW..HIGH, such as x=1..4"),
        (["--rounded", "often"], "rounded='often': give the number"),
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
    result = run("check-tables", "r.csv")
    assert result.exit_code == 0, result.output
    for words in [
        "r.csv: Sex (2) x Work (2), counts",
        "totals:    Sex=Total, Work=Total",
        "not given: .. (1 cell)",
        "flags:     * (1 cell)",
        "Title of a table | Source: nobody",
        "Together: Marginals(1 table of order 2 over 2 variables",
    ]:
        assert words in result.output
    assert len(result.output.splitlines()) < 25


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
    words = [read, "not given, 710 by sums", "<summary>Sex, Work</summary>", ">810<", ">710<"]
    for each in words:
        assert each in page
    told = json.loads(run("inspect", "two.rejoint", "--json").stdout)["notes"]["tables"]
    assert (told[0]["where"], told[0]["kind"]) == ("two.csv", "counts")
    assert run("export", "two.rejoint", "-o", "page.html").exit_code == 0
    assert read in (world / "page.html").read_text()
