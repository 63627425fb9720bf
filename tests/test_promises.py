"""The page of promises names tests that exist; those on Ctrl-C at the doors of scikit-learn."""

import ast
import re
from pathlib import Path

import pytest
from sklearn.model_selection import cross_val_score

import rejoint as rj
from rejoint.estimation.data import InMemory

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reference" / "promises.rst").read_text()
NAMED = re.findall(r"``(tests/[\w/]+\.py)::(\w+)``", PAGE)
RECORDS = rj.datasets.asia().sample(60, random_state=0)


@pytest.mark.parametrize(("file", "name"), NAMED, ids=[name for _, name in NAMED])
def test_the_tests_of_a_promise_exist(file, name):
    tree = ast.parse((ROOT / file).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_promise_names_a_test():
    # A promise is a line at the margin with an indented text below it.
    promises = re.findall(r"^(?![.\s])(.+)\n((?:    .*\n|\n(?=    ))+)", PAGE, re.MULTILINE)
    assert len(promises) > 15
    assert [title for title, text in promises if "Held by ``tests/" not in text] == []


@pytest.fixture
def press(monkeypatch):
    """Press Ctrl-C at the k-th pass over records; returns the passes made."""

    def patch(k):
        real, calls = InMemory.expect, []

        def expect(self, *args):
            calls.append(1)
            if len(calls) == k:
                raise KeyboardInterrupt
            return real(self, *args)

        monkeypatch.setattr(InMemory, "expect", expect)
        return calls

    return patch


def test_ctrl_c_ends_a_loop_of_fits(press):
    fitted = []

    def loop(times):
        for _ in range(times):
            fitted.append(rj.JointPMF(rank=2, solver="ml", random_state=0).fit(RECORDS))

    calls = press(10**9)
    loop(1)
    press(round(1.5 * len(calls)))
    with pytest.raises(rj.FitInterrupted) as caught:
        loop(6)
    assert len(fitted) == 2
    assert caught.value.result.interrupted
    assert caught.value.result.pmf.prob({}) == pytest.approx(1.0)


def test_an_interrupted_estimator_stays_as_it_was(press):
    model = rj.JointPMF(rank=2, solver="ml", random_state=0).fit(RECORDS)
    before = model.pmf_
    press(20)
    with pytest.raises(rj.FitInterrupted):
        model.fit(RECORDS)
    assert model.pmf_ is before


@pytest.mark.parametrize("error_score", ["raise", float("nan")])
def test_ctrl_c_ends_a_cross_validation(press, error_score):
    frame = RECORDS.to_frame("pandas")
    model = rj.JointPMF(rank=2, solver="ml", random_state=0)
    press(20)
    with pytest.raises(rj.FitInterrupted):
        cross_val_score(model, frame, cv=3, error_score=error_score)
