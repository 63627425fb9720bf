"""Classes are numbered from 1, or named, wherever one is shown; the largest need not be class 1."""

import csv
import json
import re

import numpy as np
import pytest
from matplotlib import pyplot

import rejoint as rj
from rejoint.estimators.joint_pmf import profile_frame
from rejoint.text import class_titles

WEIGHTS = [0.2, 0.5, 0.3]
BY_WEIGHT = [2, 3, 1]  # numbers of the classes, largest first


@pytest.fixture(name="pmf")
def _pmf():
    rng = np.random.default_rng(0)
    domain = rj.Domain.of({name: ["yes", "no"] for name in "abcd"})
    return rj.LowRankPMF(WEIGHTS, [rng.dirichlet([1, 1], 3).T for _ in range(4)], domain)


@pytest.fixture(name="names", params=[None, ["", "smokers", "smokers"]])
def _names(request):
    return request.param


@pytest.fixture(name="titles")
def _titles(names):
    if names is None:
        return ["class 1", "class 2", "class 3"]
    return ["class 1", "smokers (2)", "smokers (3)"]


@pytest.fixture(name="model")
def _model(pmf, names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pmf.save("m.rejoint", notes={"class_names": names} if names else None)
    pmf.sample(5, random_state=0).to_frame("pandas").to_csv("rows.csv", index=False)
    return "m.rejoint"


def test_inspect(run, model, pmf, titles):
    shown = run("inspect", model).stdout
    head = next(line for line in shown.splitlines() if line.startswith("variable"))
    assert re.split(r"  +", head)[-3:] == [titles[k - 1] for k in BY_WEIGHT]
    weights = next(line for line in shown.splitlines() if line.startswith("weight"))
    assert weights.split()[1:] == [f"{WEIGHTS[k - 1]:.3f}" for k in BY_WEIGHT]
    told = json.loads(run("inspect", model, "--json").stdout)
    assert told["classes"] == titles
    assert told["weights"] == WEIGHTS


def test_score(run, model, pmf, titles):
    run("score", model, "rows.csv", "--classes", "-o", "classes.csv")
    with open("classes.csv", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == titles
    exact = pmf.classes(rj.read("rows.csv", domain=pmf.domain))
    assert np.allclose(np.array(rows, dtype=float), exact, atol=1e-6)
    told = run("score", model, "rows.csv", "--classes", "--json").stdout.splitlines()
    assert [list(json.loads(line)) for line in told] == [titles] * 5


def test_plot(pmf):
    ticks = rj.plots.factors(pmf).get_xticklabels()
    assert [tick.get_text().split("\n")[0] for tick in ticks] == [str(k) for k in BY_WEIGHT]
    pyplot.close("all")


def test_profiles(pmf):
    frame = profile_frame(pmf, "pandas")
    assert list(frame.columns) == ["overall", "class 1", "class 2", "class 3"]
    assert np.allclose(frame["class 1"], np.vstack(pmf.factors)[:, 0])


def test_identifiability(pmf):
    found = rj.identifiability.certify(pmf, order=3)
    numbers = re.search(r"classes (.*)\.$", found.local.weakest)[1]
    assert sorted(re.findall(r"(\d) \(", numbers)) == ["1", "2", "3"]
    twins = rj.LowRankPMF([0.5, 0.5], [np.repeat(a[:, :1], 2, axis=1) for a in pmf.factors])
    assert "classes 1 and 2 are equal" in rj.identifiability.certify(twins, order=3).verdict


def test_positions_stay_positions():
    """``predict`` gives positions into ``weights``: class 1 is at 0."""
    X = [["a", "x", "u"]] * 60 + [["b", "y", "v"]] * 40
    model = rj.JointPMF(rank=2, solver="ml", random_state=0).fit(X)
    assert model.predict(X[:1])[0] == 0
    assert model.profiles("pandas").loc[("x0", "a"), "class 1"] > 0.9


def test_titles_that_could_be_mistaken():
    assert class_titles(2, ["class 2", ""]) == ["class 2 (1)", "class 2 (2)"]


def test_classes_that_are_no_groups_are_not_shown(run, tmp_path, monkeypatch):
    """Parts of an average are no findings: neither report nor inspect lists them."""
    monkeypatch.chdir(tmp_path)
    truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    tables = rj.Marginals.count(truth.sample(500, random_state=0), order=3)
    result = rj.factorize(tables, 5, rj.factorization.Smooth(members=2), random_state=0)
    assert not result.classes_are_groups
    result.pmf.save("smooth.rejoint", notes=rj.io.fit_notes(result, tables=tables))
    shown = run("inspect", "smooth.rejoint").stdout
    assert "class 1" not in shown
    assert "Its classes are parts of an average, not groups of records" in shown
    run("report", "smooth.rejoint", "-o", "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "The model has 10 classes: parts of an average, not groups of records." in text
    assert '"groups":false' in text


def test_traits_are_no_groups():
    ratings = [
        (user, item, float(1 + (user + item) % 3)) for user in range(12) for item in range(5)
    ]
    model = rj.JointRecommender(random_state=0).fit(ratings)
    assert not model.result_.classes_are_groups


def test_classes_of_a_fit_by_bayes_are_those_of_the_representative_model(run, model, pmf, names):
    """They do not average to the overall shares, which are the posterior mean."""
    draws = [rj.LowRankPMF(WEIGHTS, [a[:, [1, 2, 0]] for a in pmf.factors], pmf.domain)] * 3
    drawn = rj.LowRankPMF(pmf.weights, pmf.factors, pmf.domain, draws)
    drawn.save("drawn.rejoint")
    said = "classes are those of one representative model"
    assert said in run("inspect", "drawn.rejoint").stdout
    assert said not in run("inspect", model).stdout
