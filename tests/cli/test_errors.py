"""What users can do wrong, and what they are told: one or two lines, the right exit code."""

import gzip

import pytest

WRONG = [
    # files
    (1, ["fit", "nowhere.csv", "-o", "x"], "No file 'nowhere.csv': check the name"),
    (1, ["fit", "empty.csv", "-o", "x"], "empty.csv is empty"),
    (1, ["fit", "ragged.csv", "-o", "x"], "ragged.csv, line 3: 1 cell, but the header"),
    (1, ["fit", "ragged.csv", "-o", "x"], "or use --delimiter."),
    (1, ["fit", "cut.csv.gz", "-o", "x"], "the gzip file is cut short or corrupt"),
    (1, ["fit", "patients.csv", "-o", "no/such/x", "--rank", "1"], "there is no folder"),
    (
        1,
        ["fit", "patients.csv", "-o", "pairs", "--rank", "1"],
        "it is a folder; give the name of a file",
    ),
    (1, ["fit", "patients.csv", "-o", "x", "--columns", "smok"], "Did you mean 'smoke'"),
    (1, ["fit", "patients.csv", "-o", "x", "--weight", "lung"], "must hold a number"),
    (1, ["fit-target", "patients.csv", "-o", "x", "--target", "lnug"], "Did you mean 'lung'?"),
    (1, ["fit-target", "one.csv", "-o", "x", "--target", "a"], "no column is left to predict"),
    (1, ["fit", "duckdb:SELEC 1", "-o", "x"], "duckdb:"),
    (1, ["fit", "patients.csv", "-o", "x", "--encoding", "klingon"], "is not known to Python"),
    (1, ["ask", "patients.csv", "P(lung)"], "is not a rejoint model"),
    (1, ["ask", "nowhere.rejoint", "P(lung)"], "No model file 'nowhere.rejoint'"),
    (1, ["ask", "torn.rejoint", "P(lung)"], "truncated or corrupt"),
    (1, ["tables", "patients.csv", "-o", "full"], "it contains other files"),
    (1, ["fit-tables", "nothing", "-o", "x", "--rank", "2"], "has no table files"),
    (
        1,
        ["fit-ratings", "ratings.csv", "-o", "x", "--columns", "user,film,points"],
        "no column 'points'",
    ),
    # questions and labels
    (1, ["ask", "patients.rejoint", "P(lung | smoek)"], 'Did you mean "smoke"?'),
    (1, ["ask", "patients.rejoint", "P(lung | smoek)"], "             ^"),
    (1, ["ask", "patients.rejoint", "P(lung = yes)", "-o", "x.csv"], "is not a table"),
    (1, ["sample", "patients.rejoint", "--given", "smoke"], "needs a value"),
    (1, ["sample", "patients.rejoint", "--given", "smoke = maybe"], "maybe"),
    (1, ["inspect", "patients.rejoint", "--variables", "lunge"], "Did you mean 'lung'?"),
    (1, ["predict", "patients.rejoint", "patients.csv", "--target", "lunge"], "'lung'"),
    (
        1,
        ["predict", "patients.rejoint", "ratings.csv", "--target", "lung"],
        "No column of the data",
    ),
    (1, ["compare", "patients.rejoint", "films.rejoint"], "no variable in common"),
    (1, ["recommend", "patients.rejoint"], "does not contain a recommender"),
    (1, ["recommend", "films.rejoint", "--rated", "Haet=5"], "'Heat'"),
    (1, ["recommend", "films.rejoint", "--threshold", "9"], "above the highest rating"),
    (1, ["recommend", "films.rejoint", "--bundle", "-k", "99"], "are left"),
    (1, ["recommend", "films.rejoint", "--data", "ratings.csv", "--user", "me"], "rated nothing"),
    (1, ["population", "films.rejoint", "-n", "5", "--tables", "pairs"], "tables mention asia"),
    (1, ["rake", "ratings.csv", "pairs"], "No column of the data"),
    (1, ["rake", "patients.csv", "pairs", "--name", "lung"], "choose another name with --name"),
    (1, ["rank", "patients.csv", "--ranks", "0,1"], "at least 1"),
    (1, ["inspect", "patients.rejoint", "--plot", "p.doc"], "not .doc"),
    # usage
    (2, ["fti", "patients.csv"], "There is no command 'fti'. Did you mean 'fit'?"),
    (2, ["fit", "patients.csv"], "Missing option '-o'"),
    (2, ["fit", "patients.csv", "-o", "x", "--rank", "0"], "--rank"),
    (2, ["fit", "patients.csv", "-o", "-", "--json"], "would both write to stdout"),
    (2, ["fit", "patients.csv", "-o", "x", "--bins", "age"], "write NAME=5"),
    (2, ["fit", "patients.csv", "-o", "x", "--levels", "lung"], "write NAME=FIRST"),
    (2, ["fit", "patients.csv", "-o", "x", "--only-missing"], "needs --missing"),
    (2, ["fit", "patients.csv", "-o", "x", "--columns", ""], "names no column"),
    (
        2,
        ["fit", "patients.csv", "-o", "x", "--ordinal", "lung,tub", "--nominal", "lung"],
        "'lung' is named by both",
    ),
    (2, ["fit", "patients.csv", "-o", "x", "--average"], "No such option"),
    (2, ["fit", "patients.csv", "-o", "x", "--target", "lung"], "No such option"),
    (
        2,
        ["fit", "patients.csv", "-o", "x", "--stream", "--dry-run"],
        "cannot be combined with --dry-run",
    ),
    (2, ["fit-target", "patients.csv", "-o", "x"], "Missing option '--target'"),
    (
        1,
        ["fit-target", "patients.csv", "-o", "x", "--target", "lung", "--levels", "lung=yes,no"],
        "do not apply to the target 'lung'",
    ),
    (2, ["fit-ratings", "ratings.csv", "-o", "x", "--columns", "user,film"], "name three columns"),
    (2, ["fit-ratings", "ratings.csv", "-o", "x", "--weight", "stars"], "No such option"),
    (
        2,
        ["fit-ratings", "ratings.csv", "-o", "x", "--implicit", "--columns", "user,film,stars"],
        "name two columns",
    ),
    (2, ["fit-tables", "pairs", "-o", "x", "--rank", "0"], "0 is not in the range"),
    (2, ["tables", "patients.csv", "-o", "x", "--subset", "a,b", "--order", "2"], "not both"),
    (2, ["ask", "patients.rejoint", "P(lung)", "P(tub)", "-o", "x.csv"], "one question"),
    (2, ["ask", "patients.rejoint"], "There is no question"),
    (2, ["ask", "-"], "The model comes from stdin"),
    (2, ["predict", "patients.rejoint", "patients.csv"], "--target is missing"),
    (2, ["score", "patients.rejoint", "patients.csv", "-o", "x"], "needs --rows"),
    (2, ["recommend", "films.rejoint", "--rated", "Heat"], "write ITEM=RATING"),
    (1, ["recommend", "films.rejoint", "--user", "u99"], "There is no user 'u99'"),
    (2, ["recommend", "films.rejoint", "--data", "ratings.csv"], "--data needs --user"),
    (2, ["recommend", "films.rejoint", "--user", "u1", "--rated", "Up=1"], "somebody new"),
    (
        2,
        ["recommend", "films.rejoint", "--bundle", "--by", "expected"],
        "can be ordered by probability",
    ),
    (2, ["rank", "patients.csv", "--ranks", "few"], "write whole numbers"),
    (2, ["rake", "patients.csv", "pairs", "--bounds", "5"], "write LOW,HIGH"),
    (2, ["identify"], "Give exactly one of a MODEL"),
    (2, ["identify", "--levels", "two"], "write whole numbers"),
    (2, ["identify", "--levels", "2,2,2", "--local"], "--local needs --rank"),
    (2, ["inspect", "patients.rejoint", "--data", "patients.csv", "--tables", "pairs"], "not both"),
]


@pytest.fixture(scope="module")
def spoilt(world):
    (world / "empty.csv").write_text("")
    (world / "one.csv").write_text("a\nx\ny\n")
    (world / "ragged.csv").write_text("a,b\nx,1\ny\n")
    (world / "cut.csv.gz").write_bytes(gzip.compress(b"a,b\nx,1\n" * 500)[:40])
    (world / "torn.rejoint").write_bytes((world / "patients.rejoint").read_bytes()[:500])
    (world / "full").mkdir()
    (world / "full" / "mine.txt").write_text("mine")
    (world / "nothing").mkdir()
    return set(world.iterdir())


@pytest.mark.parametrize(("code", "words", "said"), WRONG)
def test_error(code, words, said, spoilt, run, world):
    result = run(*words, input="")
    assert result.exit_code == code, result.output
    assert said in result.stderr
    error = result.stderr[result.stderr.index("Error: ") :]
    assert len(error.splitlines()) <= 4  # a question is shown, with a caret below
    assert "Traceback" not in result.output
    assert set(world.iterdir()) == spoilt  # nothing was written


def test_bugs_keep_their_traceback_and_so_do_errors_on_request(run, monkeypatch):
    monkeypatch.setenv("REJOINT_TRACEBACK", "1")
    assert isinstance(run("ask", "nowhere.rejoint", "P(a)").exception, FileNotFoundError)
    monkeypatch.delenv("REJOINT_TRACEBACK")
    monkeypatch.setattr("rejoint.cli.ask.load", lambda path: 1 / 0)
    assert isinstance(run("ask", "nowhere.rejoint", "P(a)").exception, ZeroDivisionError)


def test_missing_library_is_told_with_what_to_install(run, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    result = run("sample", "patients.rejoint", "-o", "x.parquet")
    assert result.exit_code == 1
    assert "pip install 'rejoint[arrow]'" in result.stderr


def test_remarks_speak_of_options(run, world):
    (world / "ages.csv").write_text("age,sex\n" + "".join(f"{a},f\n" for a in range(0, 120, 2)))
    result = run("fit", "ages.csv", "-o", "x", "--dry-run")
    assert result.exit_code == 0
    assert "Remark: Numbers are cut into quantile bins: 'age' (15 bins)" in result.stderr
    assert "--bins 'age=5'" in result.stderr
