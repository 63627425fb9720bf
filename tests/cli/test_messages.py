"""Messages that name an argument or a function: the command line names its own options."""

import json
import pickle
import re

import numpy as np
import pandas as pd
import pytest

import rejoint as rj
from rejoint.cli.group import in_options
from rejoint.messages import join_messages

FILES = {
    "ages.csv": "age,sex\n" + "".join(f"{a},f\n" for a in range(0, 120, 2)),
    "twice.csv": "a,b,a\n1,2,3\n",
    "head.csv": "a,b\n",
    "ragged.csv": "a,b\nx,1\ny\n",
    "wide.csv": "a,b\nx,1\ny,2,3\n",
    "one.csv": "a,b,count\nx,u,30\nx,v,10\ny,u,10\ny,v,50\n",
    "other.csv": "b,c,count\nu,s,5\nu,t,5\nv,s,5\nv,t,85\n",
}
SAID = [
    (
        ["fit", "ages.csv", "-o", "x", "--dry-run"],
        "Use --bins 'age=5' for other bins, --bins 'age=none' for none.",
    ),
    (["fit", "twice.csv", "-o", "x"], "Columns of the same name are called 'a (2)'."),
    (
        ["fit", "ages.csv", "-o", "x", "--ordinal", "agee"],
        "--nominal, --year, --month, --levels or --bins: there is no 'agee'; the columns are",
    ),
    (
        ["fit", "ages.csv", "-o", "x", "--ordinal", "agee", "--stream"],
        "--levels or --bins: there is no",
    ),
    (["fit", "ragged.csv", "-o", "x"], "Quote cells that hold the delimiter (','), or use --delim"),
    (["fit-tables", "wide.csv", "-o", "x"], "that hold the delimiter, or use --delimiter."),
    (
        ["fit", "zero.csv", "-o", "x"],
        "give --format if it has another format, or --encoding.",
    ),
    (["fit", "west.csv", "-o", "x", "--rank", "1"], "Give --encoding if that is wrong."),
    (
        ["fit", "west.csv", "-o", "x", "--encoding", "utf-8"],
        "Use --encoding, for instance 'latin-1'.",
    ),
    (["fit", "head.csv", "-o", "x"], "(its columns are 'a', 'b'): levels cannot be seen.\n"),
    (
        ["fit", "patients.csv", "-o", "x", "--rank", "1", "--solver", "ml"],
        "--solver ml was requested.",
    ),
    (
        ["fit", "patients.csv", "-o", "x", "--rank", "1", "--solver", "bayes"],
        "--solver bayes was requested.",
    ),
    (
        ["fit", "patients.csv", "-o", "x", "--solver", "map", "--stream"],
        "--solver map was requested",
    ),
    (
        ["fit", "patients.csv", "-o", "x", "--rank", "1", "--solver", "ml", "--dry-run"],
        "--solver ml was requested. Nothing was fitted.",
    ),
    (["ask", "patients.csv", "P(lung)"], "Models are written by rejoint fit.\n"),
    (
        ["fit-tables", "pairs", "-o", "x", "--rank", "3"],
        "Add tables of three variables (rejoint identify --plan says which).",
    ),
    (
        ["fit-tables", "four", "-o", "x", "--rank", "9", "--starts", "1"],
        "add tables of other sets of variables (rejoint identify --plan says which).",
    ),
    (
        ["fit-tables", "one.csv", "other.csv", "-o", "x", "--rank", "1"],
        "That is the worst of them; rejoint fit-tables --json lists all. A fit finds a compromise.",
    ),
    (
        ["identify", "--levels", "3,3,3,3,3,3,3,3,3,3", "--rank", "30"],
        "neither proved nor excluded. rejoint identify --local decides it locally.",
    ),
    (
        ["identify", "--levels", "3,3,3,3,3,3"],
        "between them rejoint identify --local decides it locally.",
    ),
    (["identify", "dead.rejoint"], "classes without weight: 3.\n"),
    (["identify", "dead.rejoint", "--json"], 'classes without weight: 3."'),
]


@pytest.fixture(scope="module")
def spoilt(world):
    for name, text in FILES.items():
        (world / name).write_text(text)
    (world / "zero.csv").write_bytes(b"a,b\n\0,1\n")
    (world / "west.csv").write_bytes("town,n\nKöln,1\nUlm,2\n".encode("cp1252"))
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.ones(3), 3).T for _ in range(4)]
    rj.LowRankPMF([0.4, 0.6, 0.0], factors).save(world / "dead.rejoint")
    two = rj.LowRankPMF([0.4, 0.6], [factor[:, :2] for factor in factors])
    rj.Marginals.from_pmf(two, subsets=[("x0", "x1", "x2"), ("x1", "x2", "x3")]).write(
        world / "four"
    )
    return world


@pytest.mark.parametrize(("words", "said"), SAID)
def test_message(words, said, spoilt, run):
    result = run(*words)
    assert said in result.output


def test_many_numbers_can_only_be_binned(spoilt, run):
    frame = pd.DataFrame({"number": np.arange(200_100), "sex": "f"})
    frame.to_parquet(spoilt / "numbers.parquet")
    result = run("fit", "numbers.parquet", "-o", "x", "--stream", "--bins", "number=none")
    assert "use --bins 'number=10', or leave the column out." in result.stderr


def test_notes_of_a_fit_are_in_the_terms_of_the_command(spoilt, run):
    words = ["fit", "patients.csv", "-o", "notes.rejoint", "--rank", 1, "--solver", "ml", "--json"]
    result = run(*words)
    assert "--solver ml was requested." in result.stderr
    assert "--solver ml was requested." in run("inspect", "notes.rejoint").stdout
    run("report", "notes.rejoint", "-o", "notes.html")
    assert "--solver ml was requested." in (spoilt / "notes.html").read_text()
    assert json.loads(result.stdout)["choice"]


def test_the_text_for_python_stays(spoilt):
    with pytest.raises(ValueError, match=r"or use delimiter=\.$") as caught:
        rj.read(spoilt / "ragged.csv")
    assert "line 3: 1 cell" in str(caught.value)
    with pytest.raises(KeyError, match="kinds, levels or bins: there is no 'agee'; the columns"):
        rj.read(spoilt / "ages.csv", kinds={"agee": "ordinal"})
    bins = "Use bins={'age': 5} for other bins, bins={'age': None} for none."
    with pytest.warns(rj.Remark, match=re.escape(bins)):
        rj.read(spoilt / "ages.csv")


@pytest.mark.parametrize(
    ("python", "shown"),
    [
        ("Use bins={'age': None}.", "Use --bins 'age=none'."),
        ("or use delimiter=.", "or use --delimiter."),
        ("Try n_init=40, or rank=3.", "Try --starts 40, or --rank 3."),
        ("kinds={'a': 'year'} (agreement=False)", "--year 'a' (--no-agreement)"),
        (
            "levels={'a': [...]} or not_applicable=False",
            "--levels 'a=A,B,C' or --not-applicable none",
        ),
        ("survey_weight is zero in every row", "--survey-weight is zero in every row"),
        ("levels or bins: there is no 'a'", "--levels or --bins: there is no 'a'"),
        ("'rank=3' and sex=m are no options", "'rank=3' and sex=m are no options"),
        ("All levels are equal; ranks=3", "All levels are equal; ranks=3"),
        ("write a value=None", "write a --value"),
    ],
)
def test_arguments_are_shown_as_options(python, shown):
    assert in_options(python) == shown


def test_messages_survive_pickling_and_joining():
    text = rj.identifiability.report([3] * 10, order=3, rank=30).verdict
    again = pickle.loads(pickle.dumps(join_messages(["First.", text, "{last}"])))
    assert again == f"First. {text} {{last}}"
    assert "identifiability.jacobian decides it locally" in again
    assert "rejoint identify --local decides it locally. {last}" in in_options(again)
