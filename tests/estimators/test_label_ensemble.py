"""LabelEnsemble: one prediction of a target, whoever is asked; questions go to the joint."""

import json
import pickle
import tempfile
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rejoint as rj
from rejoint.cli import main
from rejoint.estimators import ClassifierPolicy
from rejoint.estimators.classifier.label_ensemble import LabelEnsemble

QUICK = ClassifierPolicy(members=2, steps=5, first_steps=10)
CLOSE = 1e-12


def random_frame(rng, features, targets, rows=60):
    """Columns of a few levels, text or numbers, some with missing cells; the targets last."""
    levels = {}
    for n in range(features + targets):
        size = int(rng.integers(2, 5))
        name = f"x{n}" if n < features else f"y{n - features}"
        levels[name] = list(range(1, size + 1)) if rng.random() < 0.5 else list("abcd"[:size])
    frame = pd.DataFrame(
        {name: rng.choice(np.array(each, dtype=object), rows) for name, each in levels.items()}
    )
    for name, each in levels.items():
        frame.loc[: len(each) - 1, name] = each  # every level is there
    holes = rng.random(frame.shape) < np.where(rng.random(frame.shape[1]) < 0.5, 0.2, 0.0)
    holes[:10] = False
    return frame.mask(holes, None), levels


def random_row(rng, levels, features):
    """Levels of some features, None for the others."""
    return {
        name: None if rng.random() < 0.4 else each[rng.integers(len(each))]
        for name, each in list(levels.items())[:features]
    }


def evidence(row):
    return ", ".join(f"{name} = {level}" for name, level in row.items() if level is not None)


def ask_by_command(path, *questions):
    """Answers of ``rejoint ask --json``."""
    done = CliRunner().invoke(main, ["ask", str(path), *questions, "--json"])
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    return found if len(questions) > 1 else [found]


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32 - 1))
def test_every_door_gives_the_same_answer(seed):
    rng = np.random.default_rng(seed)
    features, targets = int(rng.integers(1, 5)), int(rng.integers(1, 3))
    frame, levels = random_frame(rng, features, targets)
    names = list(levels)[features:]
    classifier = rj.JointClassifier(rank=int(rng.integers(1, 12)), policy=QUICK)
    classifier.set_params(random_state=seed).fit(frame, names)
    rows = [random_row(rng, levels, features) for _ in range(4)]
    shares = classifier.predict_proba(rows)
    shares = shares if targets > 1 else [shares]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", rj.Remark)  # evidence that is nearly impossible
        paths = [Path(folder, name) for name in ("model.rejoint", "model.json")]
        for path in paths:
            classifier.save(path)
        data = Path(folder, "rows.jsonl")
        data.write_text("\n".join(map(json.dumps, rows)))
        loaded = [rj.load(path) for path in paths]
        for t, name in enumerate(names):
            questions = [
                f"P({name}{f' | {evidence(row)}' if evidence(row) else ''})" for row in rows
            ]
            expected = [classifier.pmf_.ask(text) for text in questions]
            for source in (classifier, *(model.pmf_ for model in loaded)):
                answers = [source.ask(text) for text in questions]
                for one, other in zip(answers, expected, strict=True):
                    assert np.array_equal(one.value, other.value)
            for source in loaded:
                found = source.predict_proba(rows)
                assert np.abs((found if targets == 1 else found[t]) - shares[t]).max() < CLOSE
                assert np.array_equal(source.predict(rows), classifier.predict(rows))
            labels = classifier.pmf_.domain[name].levels
            for path in paths:
                found = [plain["value"] for plain in ask_by_command(path, *questions)]
                joint = [answer.value for answer in expected]
                assert np.abs(np.array(found) - np.array(joint)).max() < CLOSE
                done = CliRunner().invoke(
                    main, ["predict", str(path), str(data), "--all", "--json"]
                )
                assert done.exit_code == 0, done.stderr
                told = [json.loads(line) for line in done.stdout.splitlines()]
                found = np.array([[row[f"{name}={label}"] for label in labels] for row in told])
                assert np.abs(found - shares[t]).max() < CLOSE
                assert_explained(classifier, rows, name, path, data)
                best = [row[f"{name}_predicted"] for row in told]
                assert best == [labels[k] for k in shares[t].argmax(axis=1)]


def assert_explained(classifier, rows, name, path, data):
    """The file and the command line explain as the classifier does."""
    expected = classifier.explain(rows, target=name)
    for why, again in zip(expected, rj.load(path).explain(rows, target=name), strict=True):
        assert [c[:2] for c in why.contributions] == [c[:2] for c in again.contributions]
        assert np.allclose(
            [c.log_odds for c in why.contributions], [c.log_odds for c in again.contributions]
        )
    words = ["predict", str(path), str(data), "--target", name, "--explain", "--json"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.stderr
    for why, line in zip(expected, done.stdout.splitlines(), strict=True):
        told = json.loads(line)
        assert told[f"{name}_baseline"] == pytest.approx(why.baseline, abs=1e-9)
        found = {c.feature: c.log_odds for c in why.contributions}
        for feature in classifier.ensemble_.features.names:
            part = told[f"{name}_from_{feature}"]
            assert part == pytest.approx(found.get(feature, 0.0), abs=1e-9)


# --- predictions, against all combinations of labels --------------------------------------------


def random_pmf(rng, domain, rank):
    factors = [rng.dirichlet(np.ones(size), rank).T for size in domain.shape]
    return rj.LowRankPMF(rng.dirichlet(np.ones(rank)), factors, domain)


@pytest.fixture(scope="module")
def ensemble():
    """Three features, two targets, three models whose weights depend on the kind of row."""
    rng = np.random.default_rng(0)
    domain = rj.Domain.of({"a": ["u", "v"], "b": 3, "c": 2, "y": [1, 2, 5], "z": ["no", "yes"]})
    members = [random_pmf(rng, domain, rank) for rank in (2, 3, 1)]
    weights = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0], [0.7, 0.0, 0.3], [0.1, 0.1, 0.8]])
    return LabelEnsemble(members, 2, weights, np.array([0, 2]), [0.0, 0.5])


@pytest.fixture(scope="module")
def model(ensemble):
    pmf = random_pmf(np.random.default_rng(1), ensemble.members[0].domain, 2)
    return rj.JointClassifier.of_saved(pmf.to_saved()._replace(ensemble=ensemble.to_saved()))


def brute_force(ensemble, row):
    """P(y, z | row), from the dense joint of every member."""
    missing = sum(code < 0 for code in row[[0, 2]])
    weights = ensemble.weights[3 if (row < 0).all() else missing]  # none, half or all of two
    total = np.zeros((3, 2))
    for member, weight in zip(ensemble.members, weights, strict=True):
        joint = member.to_dense()
        for n, code in enumerate(row):
            if code >= 0:
                joint = np.take(joint, [code], axis=n)
        joint = joint.sum(axis=(0, 1, 2))
        total += weight * joint / joint.sum()
    return total


def test_probabilities_of_all_rows_by_brute_force(ensemble):
    rows = np.array(list(product((-1, 0, 1), (-1, 0, 1, 2), (-1, 0, 1))), dtype=np.int8)
    first, second, both = ensemble.probabilities(rows, [(0,), (1,), (0, 1)])
    expected = np.array([brute_force(ensemble, row) for row in rows])
    assert np.abs(both - expected.reshape(len(rows), -1)).max() < CLOSE
    assert np.abs(first - expected.sum(axis=2)).max() < CLOSE
    assert np.abs(second - expected.sum(axis=1)).max() < CLOSE
    jointly = np.array([np.unravel_index(table.argmax(), (3, 2)) for table in expected])
    assert np.array_equal(np.transpose(ensemble.joint_places(rows)), jointly)
    assert np.array_equal(ensemble.places(rows)[1], expected.sum(axis=1).argmax(axis=1))


def test_questions_are_answered_by_the_joint(model):
    for text in ("P(y | a = v, b = 2)", "E(y | z)", "argmax y, z | c = 1", "H(y | a = u)"):
        assert str(model.ask(text)) == str(model.pmf_.ask(text))


def test_impossible_rows_are_predicted():
    domain = rj.Domain.of({"a": ["u", "v"], "b": ["s", "t"], "y": ["no", "yes"]})
    sure = np.eye(2)
    joint = rj.LowRankPMF([0.5, 0.5], [sure, sure, [[0.9, 0.2], [0.1, 0.8]]], domain)
    ensemble = LabelEnsemble([joint], 1, np.ones((2, 1)), np.array([0, 1]))
    [shares] = ensemble.probabilities(np.array([[0, 1]], dtype=np.int8))
    assert shares[0] == pytest.approx([0.55, 0.45])  # both classes contradict one value each


def test_the_joint_of_a_bayesian_fit_has_intervals():
    patients = rj.datasets.asia().sample(200, random_state=0)
    model = rj.JointClassifier(rank=2, solver="bayes", random_state=0)
    model.fit(patients, "bronc")
    assert model.ask("P(bronc | smoke = yes)").interval is not None
    # The mixture is the one member: the average is the posterior mean.
    expected = model.pmf_.marginal("bronc", given={"smoke": "yes"})
    order = [model.pmf_.domain["bronc"].code(label) for label in model.classes_]
    shares = model.predict_proba([{"smoke": "yes"}])[0]
    assert shares == pytest.approx(expected[order], abs=CLOSE)


# --- files and rows ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["model.rejoint", "model.json"])
def test_files_hold_the_ensemble_bit_by_bit(model, tmp_path, name):
    model.save(tmp_path / name, notes={"target": ["y", "z"]})
    again = rj.load(tmp_path / name)
    assert isinstance(again, rj.JointClassifier)
    assert again.target_names_ == ("y", "z")
    assert again.pmf_ == model.pmf_
    one, two = (m.to_saved().ensemble for m in (model, again))
    assert one.targets == two.targets
    assert one.always_there == two.always_there
    assert one.missing_limits == two.missing_limits
    assert np.array_equal(one.weights, two.weights)
    assert all(np.array_equal(a, b) for a, b in zip(one.members, two.members, strict=True))
    assert rj.io.read_saved(tmp_path / name).notes == {"target": ["y", "z"]}
    copy = pickle.loads(pickle.dumps(again))
    rows = [{"a": "u"}, {"b": 1, "c": None}]
    for a, b in zip(copy.predict_proba(rows), model.predict_proba(rows), strict=True):
        assert np.array_equal(a, b)


def test_columns_of_targets_are_ignored(model):
    rows = pd.DataFrame({"a": ["u", None], "b": [1, 2], "c": [0, 1], "y": [1, 2]})
    with warnings.catch_warnings():
        warnings.simplefilter("error", rj.Remark)
        shares = model.predict_proba(rows)
    for a, b in zip(shares, model.predict_proba(rows.drop(columns="y")), strict=True):
        assert np.array_equal(a, b)
    assert model.predict(rows).shape == (2, 2)
    assert [s.shape for s in model.predict_proba(rows[:0])] == [(0, 3), (0, 2)]


def test_the_page_is_given_the_ensemble(model, tmp_path):
    from base64 import b64decode

    from rejoint.explorer.open import open_model

    path = tmp_path / "model.rejoint"
    model.save(path, notes={"target": ["y", "z"]})
    opened = open_model(path)
    plain = json.loads(json.dumps(opened.document()))["ensemble"]
    assert plain["targets"] == ["y", "z"]
    assert plain["always_there"] == [0, 2]
    assert plain["missing_limits"] == [0.0, 0.5]
    weights = np.frombuffer(b64decode(plain["member_weights"]["f8"])).reshape(4, -1)
    assert np.array_equal(weights, model.ensemble_.weights)
    for member, expected in zip(plain["members"], model.to_saved().ensemble.members, strict=True):
        parts = [np.frombuffer(b64decode(member[key]["f8"])) for key in ("weights", "factors")]
        assert np.array_equal(np.concatenate(parts), expected.ravel())
    opened.keep_names(["first", "second"])
    assert rj.io.read_saved(path).notes["class_names"] == ["first", "second"]
    done = CliRunner().invoke(main, ["export", str(path), "-o", str(tmp_path / "copy.json")])
    assert done.exit_code == 0, done.stderr
    rows = [{"a": "u"}, {"b": 1}]
    for place in (path, tmp_path / "copy.json"):
        for a, b in zip(rj.load(place).predict_proba(rows), model.predict_proba(rows), strict=True):
            assert np.array_equal(a, b)
