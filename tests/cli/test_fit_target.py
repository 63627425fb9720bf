"""``rejoint fit-target``: its file predicts and answers as JointClassifier does."""

import csv
import io
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import rejoint as rj
from rejoint.cli import main
from rejoint.estimators.classifier import label_likelihood


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def shares_of(run, model, data, target, classes):
    """What ``rejoint predict`` writes, as an array (rows, labels)."""
    done = run("predict", model, data, "--all", "--json")
    assert done.exit_code == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return np.array([[row[f"{target}={label}"] for label in classes] for row in found])


QUICK = {"rank": 6, "random_state": 5}
WORDS = ["--rank", 6, "--seed", 5]


def survey(rows=120, seed=0):
    """Text, whole numbers, many distinct numbers, truth values, missing cells; a label."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, size=rows)
    frame = pd.DataFrame(
        {
            "town": rng.choice(["Ulm", "Köln", "Bonn 2"], size=rows),
            "age": age,
            "income": rng.lognormal(8.0, 1.0, size=rows).round(2),
            "children": rng.integers(0, 4, size=rows),
            "member": rng.choice(["True", "False"], size=rows),
            "votes": np.where(age + rng.normal(0, 20, size=rows) > 50, "yes", "no"),
        }
    ).astype(object)
    holes = rng.random(frame.shape) < 0.1
    holes[:, 4] = holes[:, 0] = False  # which makes rows of all three kinds
    return frame.mask(holes, None)


def test_the_file_predicts_what_the_classifier_predicts(run, world):
    frame = survey()
    frame.to_csv(world / "survey.csv", index=False)
    done = run("fit-target", "survey.csv", "--target", "votes", "-o", "votes.rejoint", *WORDS)
    assert done.exit_code == 0, done.stderr
    assert "models to predict votes; joint of 6 classes" in done.stderr
    model = rj.JointClassifier(**QUICK).fit(frame, "votes")
    assert model.pmf_.domain["income"].kind == "binned"
    assert len(model.pmf_.domain["income"]) == 30  # three times the root, of 120 rows
    loaded = rj.load(world / "votes.rejoint")
    assert loaded.pmf_.domain == model.pmf_.domain
    expected = model.predict_proba(frame)
    found = shares_of(run, "votes.rejoint", "survey.csv", "votes", model.classes_)
    assert np.abs(found - expected).max() < 1e-12
    assert np.abs(loaded.predict_proba(frame) - expected).max() < 1e-12
    told = rows(run("predict", "votes.rejoint", "survey.csv", "--keep").stdout)
    assert [row["votes_predicted"] for row in told] == model.predict(frame).tolist()
    assert [row["town"] for row in told] == frame["town"].tolist()
    given = rj.Records.of(frame, domain=model.pmf_.domain).project(frame.columns[:-1])
    seen = [{n: x for n, x in row.items() if x is not None} for row in given.rows()]
    joint = [model.pmf_.marginal("votes", row) for row in seen]
    assert np.abs(np.array(joint) - expected).max() > 1e-3  # the joint is another model


def test_declared_columns_and_weights(run, world):
    frame = survey(seed=1)
    frame["n"] = np.arange(len(frame)) % 3
    frame.to_csv(world / "weighted.csv", index=False)
    words = ["--weight", "n", "--bins", "age=3", "--ordinal", "children", "--without", "member"]
    words += ["--levels", "town=Ulm,Bonn 2,Köln,Trier", "--target", "votes"]
    done = run("fit-target", "weighted.csv", "-o", "weighted.rejoint", *words, *WORDS, "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["target"] == ["votes"]
    assert told["records"] == frame["n"].sum()
    assert told["models"] >= 2
    domain = rj.load(world / "weighted.rejoint").pmf_.domain
    assert domain.names == ("town", "age", "income", "children", "votes")
    assert domain["town"].levels == ("Ulm", "Bonn 2", "Köln", "Trier")
    assert domain["children"].kind == "ordinal"
    assert len(domain["age"]) == 3
    used = frame[frame["n"] > 0]
    copies = used.loc[used.index.repeat(used["n"].astype(int))]
    records = rj.Records.of(copies[list(domain.names)], domain=domain)
    model = rj.JointClassifier(**QUICK).fit(records, "votes")
    found = shares_of(run, "weighted.rejoint", "weighted.csv", "votes", model.classes_)
    # Sums over copies round otherwise than products with their number.
    assert found == pytest.approx(model.predict_proba(frame[list(domain.names)]), abs=1e-9)


def test_survey_weights(run, world):
    frame = survey(seed=2)
    frame["people"] = np.arange(len(frame)) % 3 * 10.0
    frame.to_csv(world / "design.csv", index=False)
    words = ["--target", "votes", "--survey-weight", "people", *WORDS]
    done = run("fit-target", "design.csv", "-o", "design.rejoint", *words)
    assert done.exit_code == 0, done.stderr
    X = frame.drop(columns="people")
    model = rj.JointClassifier(**QUICK).fit(X, "votes", survey_weight=frame["people"])
    found = shares_of(run, "design.rejoint", "design.csv", "votes", model.classes_)
    assert found == pytest.approx(model.predict_proba(X), abs=1e-12)


def test_several_targets(run, world):
    frame = survey(seed=2)
    frame.to_csv(world / "two.csv", index=False)
    words = ["fit-target", "two.csv", "--target", "votes,children", "-o", "two.rejoint", *WORDS]
    assert run(*words).exit_code == 0
    model = rj.JointClassifier(**QUICK).fit(frame, ["votes", "children"])
    expected = model.predict_proba(frame)
    for shares, name, classes in zip(expected, model.target_names_, model.classes_, strict=True):
        found = shares_of(run, "two.rejoint", "two.csv", name, classes)
        assert np.abs(found - shares).max() < 1e-12


def test_other_columns_are_the_joint_models(run, world):
    done = run("predict", "lung.rejoint", "patients.csv", "--target", "smoke", "--all", "--json")
    assert "Remark: smoke is predicted by the joint model" in done.stderr
    model = rj.load(world / "lung.rejoint")
    records = rj.read(world / "patients.csv", domain=model.pmf_.domain)
    row = next(records.rows())
    seen = {n: x for n, x in row.items() if x is not None and n != "smoke"}
    first = json.loads(done.stdout.splitlines()[0])
    assert first["smoke=yes"] == pytest.approx(model.pmf_.prob({"smoke": "yes"}, seen), abs=1e-12)


def test_other_commands_use_the_joint_model(run, world):
    done = run("impute", "lung.rejoint", "patients.csv", "-o", "filled.csv")
    assert done.exit_code == 0
    assert "The joint model fills the cells itself" in done.stderr
    assert "the models that were trained to predict lung" in done.stderr
    for words in (["inspect"], ["sample", "-n", 3], ["score"]):
        data = ["patients.csv"] if words[0] == "score" else []
        assert run(words[0], "lung.rejoint", *data, *words[1:]).exit_code == 0
    told = run("inspect", "lung.rejoint").stdout
    assert " models. The joint model" in told


def test_ctrl_c_keeps_what_is_trained(run, world, monkeypatch):
    objective, taken = label_likelihood.objective, []

    def press(*parts):
        taken.append(parts)
        if len(taken) == 100:
            raise KeyboardInterrupt
        return objective(*parts)

    monkeypatch.setattr(label_likelihood, "objective", press)
    done = run("fit-target", "patients.csv", "--target", "lung", "-o", "cut.rejoint", "--rank", 2)
    assert done.exit_code == 3, done.stderr
    assert "Ended by Ctrl-C: the best model so far is in cut.rejoint." in done.stderr
    assert isinstance(rj.load(world / "cut.rejoint"), rj.JointClassifier)
    assert run("predict", "cut.rejoint", "patients.csv").exit_code == 0


def test_explanations_need_a_model_of_the_target(run, world):
    done = run("predict", "lung.rejoint", "patients.csv", "--target", "smoke", "--explain")
    assert done.exit_code == 2
    assert "smoke is not predicted by a model that was trained for it" in done.stderr
    assert "rejoint fit-target" in done.stderr


def test_questions_to_the_file_need_no_scikit_learn(spawn, world):
    code = (
        "import sys; from rejoint.cli import main\n"
        "main(['predict', 'lung.rejoint', 'patients.csv', '-o', 'p.csv'], standalone_mode=False)\n"
        "main(['ask', 'lung.rejoint', 'P(lung | smoke = yes)'], standalone_mode=False)\n"
        "sys.exit('sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=world, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_ratings(run, world):
    done = run("fit-ratings", "ratings.csv", "-o", "r.rejoint", "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["ratings"] == ["user", "film", "stars"]
    assert "ratings by 30 users (columns user, film, stars)" in done.stderr
    swapped = pd.read_csv(world / "ratings.csv")[["stars", "user", "film"]]
    swapped.to_csv(world / "swapped.csv", index=False)
    words = ["--columns", "user,film,stars", "-o", "s.rejoint"]
    assert run("fit-ratings", "swapped.csv", *words).exit_code == 0
    first, second = (rj.load(world / name) for name in ("s.rejoint", "r.rejoint"))
    assert first.pmf_ == second.pmf_
    assert main.get_command(None, "fit-ratings") is not None
