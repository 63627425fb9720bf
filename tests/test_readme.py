"""Every call in README's table of questions must run; the code block is doctested by itself."""

import re
from pathlib import Path

import numpy as np
import pytest

import rejoint as rj

README = Path(__file__).parents[1] / "README.md"
ROWS = [line for line in README.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
# A bar within a cell is written with a backslash, which is not shown.
CALLS = [call.replace(r"\|", "|") for row in ROWS[1:] for call in re.findall(r"`([^`]+)`", row)]


@pytest.fixture(scope="module")
def names():
    truth = rj.datasets.asia()
    patients = rj.datasets.remove_cells(truth.sample(50, random_state=0), 0.3, random_state=0)
    triples = rj.Marginals.count(patients, order=3)
    return {
        "rj": rj,
        "np": np,
        "p": truth,
        "truth": truth,
        "patients": patients,
        "triples": triples,
    }


def test_the_table_was_found():
    assert len(CALLS) > 10


# One test in one worker: the last call loads what the one before it saved.
def test_calls_run(names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for call in CALLS:
        found = eval(call, names)
        assert found is None or len(repr(found)) < 10_000, call
    assert any(tmp_path.iterdir())  # what the calls that write have written
