"""From a folder of published tables to answers that say what they rest on, by commands."""

import json
import re

import pytest

import rejoint as rj


@pytest.fixture(scope="module")
def town(world):
    pmf = rj.factorize(rj.Marginals.read(rj.datasets.town_tables())).pmf
    pmf.save(world / "town.rejoint", notes={"classes_are_groups": False})
    return "town.rejoint"


def test_fit_tables_and_ask(run):
    done = run("fit-tables", rj.datasets.town_tables(), "-o", "fitted.rejoint")
    assert done.exit_code == 0, done.output
    done = run("ask", "fitted.rejoint", "P(Education = Degree | Work = 'Part time')")
    assert "open: no table holds Education and Work together; any joint" in done.stdout
    done = run("ask", "fitted.rejoint", "P(Work = Student | Age = '18-29')")
    assert "= 0.2597\npublished: in the table of Age and Work\n" in done.stdout
    done = run("ask", "fitted.rejoint", "P(Age = '18-29' | Pass = Student)")
    assert "= 1\nimplied: every joint with these tables gives it\n" in done.stdout


def test_json(run, town):
    plain = json.loads(run("ask", town, "P(Home = Owned | Travel = Bus)", "--json").stdout)
    assert plain["basis"] == "open"
    assert 0 <= plain["bounds"]["low"] < plain["value"] < plain["bounds"]["high"] <= 1
    assert plain["bounds"]["sharp"] is True


def test_rows_have_the_ends(run, town, world):
    assert run("ask", town, "P(Age | Pass)", "-o", "age.csv").exit_code == 0
    header, first = (world / "age.csv").read_text().splitlines()[:2]
    assert header == "Age,Pass,prob,low,high"
    low, high = map(float, first.split(",")[-2:])
    assert 0 < low < high < 1


def test_report_inspect_and_explorer_agree(run, town, world):
    verdict = "These tables do not determine the joint: they have 72 independent numbers"
    assert run("report", town, "-o", "town.html").exit_code == 0
    page = re.sub(r"\s+", " ", (world / "town.html").read_text())
    assert verdict in page
    assert verdict in run("inspect", town).stdout
    plain = json.loads(run("inspect", town, "--json").stdout)
    assert verdict in plain["identifiability"]["verdict"]
    assert verdict in run("identify", town).stdout
    assert "Unique" not in run("identify", town).stdout
    assert run("export", town, "-o", "explorer.html").exit_code == 0
    assert verdict in (world / "explorer.html").read_text()


def test_json_models_keep_the_tables(run, town):
    assert run("export", town, "-o", "town.json").exit_code == 0
    again = run("ask", "town.json", "P(Home = Owned | Travel = Bus)").stdout
    assert again == run("ask", town, "P(Home = Owned | Travel = Bus)").stdout
