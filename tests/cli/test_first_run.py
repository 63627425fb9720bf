"""A raw file is fitted, asked, predicted, scored and filled as it is."""

import csv
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def raw(world):
    rng = np.random.default_rng(0)
    work = rng.choice(["yes", "no"], 300)
    with open("raw.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "day", "note", "work", "pay", "sex"])
        for k, has_work in enumerate(work):
            day = f"{2019 + k % 3}-{1 + k % 12:02}-{1 + k % 28:02}"
            pay = rng.choice(["low", "high"]) if has_work == "yes" else ""
            sex = rng.choice(["F", "M", ""], p=[0.45, 0.45, 0.1])
            writer.writerow([k, day, f"note {k}", has_work, pay, sex])
    return "raw.csv"


def test_the_same_file_at_every_command(run, raw):
    done = run("fit", raw, "-o", "raw.rejoint", "--rank", "2")
    assert done.exit_code == 0
    for part in (
        "'id' (300 different): numbers or identifies the rows (--nominal 'id' or --bins 'id=10'",
        "'day' (84 different): dates (--year 'day' or --month 'day' keeps it)",
        "'note' (300 different): identifies the rows (--nominal 'note' keeps it)",
        "'pay' (where work is no). --not-applicable none leaves them unknown, --not-applicable",
    ):
        assert part in done.stderr
    assert run("ask", "raw.rejoint", "P(pay = high | pay applies)").exit_code == 0
    assert run("score", "raw.rejoint", raw).exit_code == 0
    predicted = run("predict", "raw.rejoint", raw, "--target", "work", "--keep").stdout
    assert predicted.startswith("id,day,note,work,pay,sex,work_predicted")
    for files in ((raw,), ("raw.rejoint", raw)):
        filled = list(csv.DictReader(run("impute", *files).stdout.splitlines()))
        given = list(csv.DictReader(Path(raw).read_text("utf-8").splitlines()))
        for name in ("id", "day", "note", "work", "pay"):  # pay does not apply where it is empty
            assert [row[name] for row in filled] == [row[name] for row in given]
        assert all(row["sex"] for row in filled)


def test_options_keep_columns(run, raw):
    options = ("--year", "day", "--nominal", "note", "--not-applicable", "none")
    done = run("fit", raw, "-o", "a.rejoint", "--rank", "2", *options, "--missing-level", "sex")
    assert done.exit_code == 0
    table = {line.split()[0]: line.split() for line in done.stderr.splitlines() if line.split()}
    assert table["day"][1:5] == ["year", "2019,", "2020,", "2021"]
    assert table["note"][1] == "nominal"
    assert table["pay"][1:4] == ["nominal", "high,", "low"]
    assert table["sex"][1:5] == ["nominal", "F,", "M,", "missing"]
    wrong = run("fit", raw, "-o", "b.rejoint", "--year", "day", "--month", "day")
    assert "'day' is named by both --year and --month" in wrong.stderr
