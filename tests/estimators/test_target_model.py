"""TargetModel: one answer about a target, whoever is asked; the joint's answers are marked."""

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
from rejoint.pmf.label_ensemble import LabelEnsemble, LowRankMember

QUICK = ClassifierPolicy(members=2, steps=5, first_steps=10, pmf_steps=5)
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
            bar = [f" | {evidence(row)}" if evidence(row) else "" for row in rows]
            questions = [f"P({name}{given})" for given in bar]
            for source in (classifier, classifier.model_, *loaded):
                answers = [source.ask(text) for text in questions]
                assert all(answer.interval is None and not answer.notes for answer in answers)
                found = np.array([answer.value for answer in answers])
                assert np.abs(found - shares[t]).max() < CLOSE
            for source in loaded:
                found = source.predict_proba(rows)
                assert np.abs((found if targets == 1 else found[t]) - shares[t]).max() < CLOSE
            labels = classifier.pmf_.domain[name].levels
            for path in paths:
                found = [plain["value"] for plain in ask_by_command(path, *questions)]
                assert np.abs(np.array(found) - shares[t]).max() < CLOSE
                one = [f"P({name} = {labels[-1]}{given})" for given in bar]
                found = [plain["value"] for plain in ask_by_command(path, *one)]
                assert np.abs(np.array(found) - shares[t][:, -1]).max() < CLOSE
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
        for feature in classifier.model_.features.names:
            part = told[f"{name}_from_{feature}"]
            assert part == pytest.approx(found.get(feature, 0.0), abs=1e-9)


# --- questions, against all combinations of labels ---------------------------------------------


def random_pmf(rng, domain, rank):
    factors = [rng.dirichlet(np.ones(size), rank).T for size in domain.shape]
    return rj.LowRankPMF(rng.dirichlet(np.ones(rank)), factors, domain)


@pytest.fixture(scope="module")
def model():
    """Three features, two targets, three models whose weights depend on the kind of row."""
    rng = np.random.default_rng(0)
    domain = rj.Domain.of({"a": ["u", "v"], "b": 3, "c": 2, "y": [1, 2, 5], "z": ["no", "yes"]})
    members = [LowRankMember(random_pmf(rng, domain, rank), 2) for rank in (2, 3, 1)]
    weights = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0], [0.7, 0.0, 0.3], [0.1, 0.1, 0.8]])
    ensemble = LabelEnsemble(members, weights, np.array([0, 2]), [0.0, 0.5])
    return rj.TargetModel(random_pmf(rng, domain, 2), ensemble, ["y", "z"])


def brute_force(model, row):
    """P(y, z | row), from the dense joint of every member."""
    domain = model.pmf.domain
    missing = sum(row.get(name) is None for name in ("a", "c"))
    nothing = all(row.get(name) is None for name in "abc")
    weights = model.ensemble.weights[3 if nothing else missing]  # none, half or all of two
    total = np.zeros((3, 2))
    for member, weight in zip(model.to_saved().ensemble.members, weights, strict=True):
        joint = rj.LowRankPMF(member[0], np.split(member[1:], [2, 5, 7, 10]), domain).to_dense()
        for n, name in enumerate("abc"):
            if row.get(name) is not None:
                joint = np.take(joint, [domain[name].code(row[name])], axis=n)
        joint = joint.sum(axis=(0, 1, 2))
        total += weight * joint / joint.sum()
    return total


def test_tables_and_events(model):
    row = {"a": "v", "b": 2}
    both = brute_force(model, row)
    given = "a = v, b = 2"
    for text, expected in {
        f"P(y | {given})": both.sum(axis=1),
        f"P(z | {given})": both.sum(axis=0),
        f"P(y, z | {given})": both,
        f"P(z, y | {given})": both.T,
        f"P(y = 2 | {given})": both[1].sum(),
        f"P(y in {{1, 5}} | {given})": both[[0, 2]].sum(),
        f"P(y >= 2, z | {given})": both[1:].sum(axis=0),
        f"P(z, y = 2 | {given})": both[1],
        f"P(y | z = yes, {given})": both[:, 1] / both[:, 1].sum(),
        f"P(y | z, {given})": both / both.sum(axis=0),
        f"P(y = 2 | z != yes, {given})": both[1, 0] / both[:, 0].sum(),
        f"E(y | {given})": both.sum(axis=1) @ [1, 2, 5],
        f"E(y | z, {given})": [1, 2, 5] @ (both / both.sum(axis=0)),
    }.items():
        answer = model.ask(text)
        assert np.abs(answer.value - np.asarray(expected)).max() < CLOSE, text
        assert answer.notes == ()
        assert np.shape(answer.value) == tuple(len(axis) for axis in answer.axes)


def test_tables_by_features(model):
    answer = model.ask("P(z | b, y, a = u)")
    assert [axis.name for axis in answer.axes] == ["z", "b", "y"]
    for b in range(3):
        both = brute_force(model, {"a": "u", "b": b})
        assert np.abs(answer.value[:, b] - (both / both.sum(axis=1)[:, None]).T).max() < CLOSE
    by = model.ask("P(y | c, a)").value
    means = model.ask("E(y | c, a)").value
    for (i, c), (j, a) in product(enumerate([0, 1]), enumerate(["u", "v"])):
        expected = brute_force(model, {"a": a, "c": c}).sum(axis=1)
        assert np.abs(by[:, i, j] - expected).max() < CLOSE
        assert np.abs(by[:, i, j] - model.ask(f"P(y | c = {c}, a = {a})").value).max() < CLOSE
        assert means[i, j] == pytest.approx(expected @ [1, 2, 5], abs=CLOSE)


def test_modes(model):
    both = brute_force(model, {"c": 1})
    mode = model.ask("argmax y, z | c = 1").value
    i, j = np.unravel_index(both.argmax(), both.shape)
    assert dict(mode) == {"y": (1, 2, 5)[i], "z": ("no", "yes")[j]}
    assert mode.exact
    assert mode.prob == pytest.approx(both.max(), abs=CLOSE)
    single = model.ask("argmax z | c = 1").value
    assert single["z"] == model.predict([{"c": 1}])[0, 1]
    joint = model.joint_places(model.read([{"c": 1}]))
    assert [int(place[0]) for place in joint] == [i, j]


def test_evidence_is_of_the_joint(model):
    answer = model.ask("P(z | a = v, b = 2)")
    assert answer.evidence == pytest.approx(model.pmf.prob({"a": "v", "b": 2}), rel=1e-12)
    assert model.ask("P(z)").evidence == 1.0
    everything = model.ask("P(z | a in {u, v}, b != 1)")
    assert "b != 1 is not a single level" in everything.notes[-1]


@pytest.mark.parametrize("text", ["P(y | a in {u, v})", "P(y | a ~ {u: 0.5, v: 0.5})"])
def test_evidence_that_says_nothing_is_none(model, text):
    assert np.abs(model.ask(text).value - model.ask("P(y)").value).max() < CLOSE


@pytest.mark.parametrize("text", ["P(y | a != u)", "P(y | a ~ {v: 0.3})", "P(y | not a = u)"])
def test_evidence_that_leaves_one_level_is_this_level(model, text):
    assert np.abs(model.ask(text).value - model.ask("P(y | a = v)").value).max() < CLOSE


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("P(a | y = 2)", "the question is about a"),
        ("P(y, a)", "the question is about a"),
        ("P(y, a = u)", "the question is about a"),
        ("P(y | b in {0, 2})", "b in {0, 2} is not a single level"),
        ("P(y | b ~ {0: 0.5, 1: 0.2})", "b ~ {0: 0.5, 1: 0.2} is not a single level"),
        ("P(z | y in {1, 2})", "y in {1, 2} is not a single level"),
        ("E(b | y = 2)", "the question is about b"),
        ("argmax a | y = 2", "the question is about a"),
        ("argmax | y = 2", "the question is about all variables"),
        ("H(y | a = u)", "H is a question about the joint"),
        ("MI(y; a)", "MI is a question about the joint"),
        ("sample 3 y", "sample is a question about the joint"),
    ],
)
def test_other_questions_are_the_joints_and_marked(model, text, why):
    mine = model.ask(text, random_state=0)
    joint = model.pmf.ask(text, random_state=0)
    assert mine.notes[:-1] == joint.notes
    assert mine.notes[-1].startswith(
        f"The joint model answers, because {why}; the models that predict"
    )
    assert json.loads(json.dumps(mine.to_json()))["notes"] == list(mine.notes)
    if isinstance(joint.value, float | np.ndarray):
        assert np.array_equal(mine.value, joint.value)
    elif not isinstance(joint.value, rj.Records):
        assert mine.value == joint.value
    assert why in str(mine)


def test_questions_that_cannot_be_answered(model):
    with pytest.raises(rj.QueryError, match="argmax needs a value here"):
        model.ask("argmax y | a")
    with pytest.raises(rj.QueryError, match="no") as caught:
        model.ask("E(z | a = u)")
    assert "E(z | a = u)" in str(caught.value)
    with pytest.raises(rj.QueryError, match="No variable is called"):
        model.ask("P(yy)")


def test_labels_that_contradict():
    domain = rj.Domain.of({"x": 2, "y": 2, "z": 2})
    sure = np.eye(2)
    pmf = rj.LowRankPMF([0.5, 0.5], [[[0.9, 0.2], [0.1, 0.8]], sure, sure], domain)
    one = LabelEnsemble([LowRankMember(pmf, 2)], np.ones((2, 1)), np.array([0]))
    model = rj.TargetModel(pmf, one, ["y", "z"])
    table = model.ask("P(y | z, x = 0)")
    assert table.value.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    only = rj.LowRankPMF([1.0], [[[0.5], [0.5]], [[1.0], [0.0]], [[0.5], [0.5]]], domain)
    model = rj.TargetModel(
        only, LabelEnsemble([LowRankMember(only, 2)], np.ones((2, 1)), np.array([0])), ["y", "z"]
    )
    with pytest.warns(rj.Remark, match="probability zero"), pytest.raises(rj.ZeroEvidenceError):
        model.ask("P(z | y = 1, x = 0)")
    undefined = model.ask("P(z | y)")
    assert np.isnan(undefined.value[:, 1]).all()
    assert "impossible here: y = 1" in undefined.notes[0]


def test_impossible_rows_get_the_answer_of_predict_proba():
    domain = rj.Domain.of({"a": ["u", "v"], "b": ["s", "t"], "y": ["no", "yes"]})
    sure = np.eye(2)
    joint = rj.LowRankPMF([0.5, 0.5], [sure, sure, [[0.9, 0.2], [0.1, 0.8]]], domain)
    ensemble = LabelEnsemble([LowRankMember(joint, 1)], np.ones((2, 1)), np.array([0, 1]))
    model = rj.TargetModel(joint, ensemble, ["y"])
    shares = model.predict_proba([{"a": "u", "b": "t"}])
    with pytest.warns(rj.Remark, match="has probability zero"):
        answer = model.ask("P(y | a = u, b = t)")
    assert answer.evidence == 0.0
    assert "considers impossible" in answer.notes[0]
    assert np.abs(answer.value - shares[0]).max() < CLOSE


def test_no_interval_where_the_ensemble_answers():
    patients = rj.datasets.asia().sample(200, random_state=0)
    model = rj.JointClassifier(rank=2, solver="bayes", random_state=0)
    model.fit(patients, "bronc")
    assert len(model.pmf_.draws)
    assert model.ask("P(bronc | smoke = yes)").interval is None
    joint = model.ask("P(smoke | bronc = yes)")
    assert joint.interval is not None
    # The mixture is the one member: the average is the posterior mean.
    expected = model.pmf_.marginal("bronc", given={"smoke": "yes"})
    order = [model.pmf_.domain["bronc"].code(label) for label in model.classes_]
    shares = model.predict_proba([{"smoke": "yes"}])[0]
    assert shares == pytest.approx(expected[order], abs=CLOSE)


def test_large_tables_are_refused(model):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rejoint.queries.tables.MAX_CELLS", 10)
        with pytest.raises(rj.QueryError, match="ask for fewer variables"):
            model.ask("P(y, z | b)")


# --- files and rows ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["model.rejoint", "model.json"])
def test_files_hold_the_ensemble_bit_by_bit(model, tmp_path, name):
    model.save(tmp_path / name, notes={"target": ["y", "z"]})
    again = rj.load(tmp_path / name)
    assert isinstance(again, rj.TargetModel)
    assert again.targets == model.targets
    assert again.pmf == model.pmf
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


def test_shares_are_not_above_one_by_rounding():
    domain = rj.Domain.of({"x": 2, "y": 2})
    sure = rj.LowRankPMF([0.5, 0.5], [np.eye(2), np.eye(2)], domain)
    weights = np.full((2, 2), np.nextafter(0.5, 1.0))  # sums to more than one by rounding
    ensemble = LabelEnsemble([LowRankMember(sure, 1)] * 2, weights, np.array([0]))
    [shares] = ensemble.shares(np.array([[0], [1]], dtype=np.int16), [(0,)])
    assert shares.max() == 1.0


def test_targets_are_the_last_variables(model):
    with pytest.raises(ValueError, match="targets must be the last variables"):
        rj.TargetModel(model.pmf, model.ensemble, ["a"])
    with pytest.raises(ValueError, match="targets must be the last variables"):
        rj.TargetModel(model.pmf, model.ensemble, [])


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
    assert np.array_equal(weights, model.ensemble.weights)
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
