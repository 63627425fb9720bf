"""What Tables V and VII of the paper rest on: fits to all tables, predictions, verdicts."""

import numpy as np
import pytest
from paper import baselines, coupled
from paper.beside import HIGHER, LOWER, Entry, higher, tally
from paper.framework.cells import Cell, Store
from paper.labels import label_shares
from paper.ratings import foreseen

import rejoint as rj


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.ones(5), size=3).T for _ in range(4)]
    return rj.LowRankPMF(rng.dirichlet(np.ones(3)), factors)


def test_tables_and_records_give_the_same_fit(model, monkeypatch):
    records = model.sample(2000, random_state=1)
    errors = []
    for many in (3, 15):  # tables not formed, and formed
        monkeypatch.setattr(coupled, "MANY", many)
        found = coupled.models(records, 3, [3], starts=3, sweeps=300)
        errors.append(min(rj.metrics.tensor_error(model, one) for one in found))
    # The same objective, so the same minimum; starts differ, and 300 sweeps end near it.
    assert errors[0] == pytest.approx(errors[1], rel=0.1)
    assert errors[0] < 0.3  # 2,000 records of 625 cells; independence alone is further off


def test_labels_and_ratings_are_those_of_the_joint(model):
    codes = model.sample(5, random_state=2).codes.copy()
    codes[0, 1] = -1
    shares, stars = label_shares(model, codes, 1e-3), foreseen(model, codes)
    for row, record in enumerate(codes):
        given = {f"x{n}": int(record[n]) for n in range(3) if record[n] >= 0}
        exact = model.marginal(["x3"], given=given)
        # A thousandth of the uniform in each of at most four columns.
        assert shares[row] == pytest.approx(exact, abs=0.01)
    given = {f"x{n}": int(codes[0, n]) for n in (0, 2, 3)}
    exact = model.marginal(["x1"], given=given) @ np.arange(1, 6)
    assert stars[0, 1] == pytest.approx(exact, abs=0.04)  # the same, times four stars


def test_baselines_in_every_encoding():
    rng = np.random.default_rng(3)
    codes = rng.integers(3, size=(300, 2)).astype(np.int16)
    labels = (codes[:, 0] == 1).astype(np.int16)  # not in the order of the codes
    parts = np.split(np.arange(300), [200, 240])
    linear = baselines.errors("SVM (Linear)", codes, labels, [3, 3], parts)
    assert linear["one-hot"] == 0  # a plane parts the columns of zeros and ones
    assert linear["original"] > 0.2  # and none the codes: about a third is on the wrong side
    assert baselines.errors("SVM (RBF)", codes, labels, [3, 3], parts)["original"] == 0
    assert baselines.errors("Naive Bayes", codes, labels, [3, 3], parts) == {"codes": 0}


def test_means_are_compared_by_the_standard_error_of_their_difference():
    runs = np.linspace(
        -0.02, 0.02, 10
    )  # standard deviation .0135: two means differ by .011 or less
    near, above = Entry(0.105 + runs, (0.1, 0.01)), Entry(0.12 + runs, (0.1, 0.01))
    below, alone = Entry(0.08 + runs, (0.1, 0.01)), Entry(0.5 + runs)
    assert [e.verdict for e in (near, above, below, alone)] == ["as printed", HIGHER, LOWER, ""]
    rows = {"a": {"x": near, "y": above}, "b": {"x": below, "y": alone}}
    assert tally(rows) == {"as printed": 1, HIGHER: 1, LOWER: 1}
    assert tally(rows, ["b"]) == {LOWER: 1}
    assert higher(rows, ["a", "b"]) == "y: a"
    assert "▲" in str(above)
    assert "▼" in str(below)
    assert "▲" not in str(near)


def test_rows_of_a_setting_are_run_again(tmp_path):
    store = Store(tmp_path / "cells.json")
    for method, split in (("A", 0), ("A", 1), ("B", 0)):
        store.keep(Cell({"method": method, "split": split}, {"error": 0.1}, 0.0, {}))
    store.drop(["method=A"])
    assert list(store.cells) == ["method=B|split=0"]
    store.drop([])
    assert list(store.cells) == ["method=B|split=0"]


def test_losses_of_pairs_tell_three_classes_apart():
    rng = np.random.default_rng(4)
    codes = rng.integers(3, size=(200, 2)).astype(np.int16)
    parts = np.split(np.arange(200), [140, 160])
    method = "SVM (Linear), losses of pairs"
    assert baselines.errors(method, codes, codes[:, 0], [3, 3], parts) == {"one-hot": 0}
