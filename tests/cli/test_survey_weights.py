"""Survey weights, strata and clusters on the command line: the same as in Python."""

import json
from pathlib import Path

import numpy as np
import pytest

import rejoint as rj

pd = pytest.importorskip("pandas")

NAMED = ("--survey-weight", "people", "--strata", "region", "--clusters", "town")
FIT = ("--rank", "2", "--starts", "2")


@pytest.fixture(scope="module")
def survey(world):
    frame = pd.read_csv(world / "patients.csv")
    rng = np.random.default_rng(0)
    frame["people"] = np.exp(rng.normal(7.0, 0.8, len(frame)))
    frame["region"] = rng.choice(["north", "south"], len(frame))
    frame["town"] = rng.integers(0, 12, len(frame))
    frame.to_csv(world / "survey.csv", index=False)
    frame.assign(people=1000 * frame["people"]).to_csv(world / "thousands.csv", index=False)
    (world / "halves").mkdir()
    frame[:70].to_csv(world / "halves" / "1.csv", index=False)
    frame[70:].to_csv(world / "halves" / "2.csv", index=False)
    return frame


def design(frame):
    records = rj.Records.of(frame, survey_weight="people", strata="region", clusters="town")
    return records, records.design


def test_fit_is_that_of_python(run, survey):
    done = run("fit", "survey.csv", "-o", "survey.rejoint", *FIT, *NAMED)
    assert done.exit_code == 0, done.stderr
    records, found = design(survey)
    assert done.stderr.count(found.text) == 2  # with the columns, and in the choice
    saved = rj.io.read_saved("survey.rejoint")
    assert saved.notes["survey_design"]["effect"] == found.effect
    assert saved.notes["records"] == pytest.approx(found.effective, rel=1e-6)
    mine = rj.estimate(records, 2, n_init=2, random_state=0)
    np.testing.assert_allclose(saved.weights, mine.pmf.weights, rtol=0, atol=1e-10)


@pytest.mark.parametrize("data", ["thousands.csv", "halves"])
def test_neither_scale_nor_parts_matter(run, survey, data):
    one, other = (
        run("fit", path, "-o", f"{path}.rejoint", *FIT, *NAMED, "--json")
        for path in ("survey.csv", data)
    )
    assert one.exit_code == other.exit_code == 0, other.stderr
    first, second = (rj.io.read_saved(f"{path}.rejoint") for path in ("survey.csv", data))
    np.testing.assert_array_equal(first.weights, second.weights)
    np.testing.assert_array_equal(first.draws, second.draws)
    assert first.notes["choice"] == second.notes["choice"]
    assert first.notes["fit"] == second.notes["fit"]
    assert first.notes["survey_design"]["effect"] == second.notes["survey_design"]["effect"]


def test_inspect_and_report_tell_the_design(run, survey):
    run("fit", "survey.csv", "-o", "survey.rejoint", *FIT, *NAMED)
    _, found = design(survey)
    done = run("inspect", "survey.rejoint")
    assert "fitted to 150 records of survey.csv" in done.stdout
    assert found.text in done.stdout
    held = run("inspect", "survey.rejoint", "--data", "survey.csv", *NAMED, "--json")
    assert held.exit_code == 0, held.stderr
    tables = json.loads(held.stdout)["fit"]["tables"]
    assert max(table["records"] for table in tables) <= found.effective
    assert run("report", "survey.rejoint", "-o", "survey.html").exit_code == 0
    page = Path("survey.html").read_text(encoding="utf-8")
    assert "150 records of survey.csv" in page
    assert found.text in page


def test_rank_and_tables(run, survey):
    records, found = design(survey)
    done = run("rank", "survey.csv", "--ranks", "1,2", "--criterion", "bic", *NAMED)
    assert done.exit_code == 0, done.stderr
    assert found.text in done.stdout
    done = run("tables", "survey.csv", "-o", "counted", "--order", "1", *NAMED)
    assert done.exit_code == 0, done.stderr
    mine = rj.Marginals.count(records, order=1)
    np.testing.assert_allclose(rj.Marginals.read("counted")["smoke"], mine["smoke"])


def test_raked_weights_are_survey_weights(run, survey):
    done = run("rake", "patients.csv", "smoke-lung.csv", "-o", "raked.csv", "--name", "w")
    assert done.exit_code == 0, done.stderr
    fit = run("fit", "raked.csv", "-o", "raked.rejoint", *FIT, "--survey-weight", "w")
    assert fit.exit_code == 0, fit.stderr
    told = done.stderr.split("Design effect ")[1].strip().rstrip(".")
    assert f"Survey weights: design effect {told}," in fit.stderr


WRONG = [
    (("--survey-weight", "lung"), "--survey-weight: the column 'lung' must hold a number"),
    (("--survey-weight", "poeple"), "Did you mean 'people'?"),
    (("--survey-weight", "poeple"), "--survey-weight: there is no column 'poeple'"),
    (("--weight", "lung"), "--weight: the column 'lung' must hold a number"),
    (("--survey-weight", "less"), "--survey-weight must be finite and nonnegative, but row 0"),
    (("--survey-weight", "none"), "--survey-weight is zero in every row"),
    (("--strata", "lung"), "--strata: row"),
    (("--clusters", "none"), "--clusters: all records are in one cluster"),
]


@pytest.mark.parametrize("stream", ["--stream", "--no-stream"])
@pytest.mark.parametrize(("words", "said"), WRONG)
def test_errors_are_in_terms_of_options(run, survey, world, stream, words, said):
    survey.assign(less=-1.0, none=0.0).to_csv(world / "wrong.csv", index=False)
    done = run("fit", "wrong.csv", "-o", "x", "--rank", "1", *words, stream)
    assert done.exit_code == 1
    assert said in done.stderr
    assert "survey_weight" not in done.stderr


def test_commands_that_cannot_use_them_do_not_offer_them(run):
    for command in ("fit-ratings", "predict", "score"):
        assert "--survey-weight" not in run(command, "--help").stdout
    for command in ("fit", "rank", "inspect", "tables", "report", "explore", "export"):
        assert "--survey-weight" in run(command, "--help").stdout
