"""The page of a classifier: the joint answers, the Target view shows the prediction."""

import csv

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from page_models import copied
from test_answers import again, same, with_posterior

import rejoint as rj
from rejoint.estimators.classifier.label_ensemble import LabelEnsemble
from rejoint.explorer import document
from rejoint.explorer.open import open_model

expect = pytest.importorskip("playwright.sync_api").expect


def random_classifier(rng, *, features, targets, members, zeros):
    pmf = with_posterior(rng, variables=features + targets, rank=2, draws=3)
    models = [again(rng, pmf, int(rng.integers(1, 4)), zeros) for _ in range(members)]
    there = rng.permutation(features)[: rng.integers(0, features + 1)]
    ensemble = LabelEnsemble(
        models,
        targets,
        rng.dirichlet(np.ones(members), 4),
        np.sort(there),
        np.sort(rng.random(2)).tolist(),
    )
    return rj.JointClassifier.of_saved(pmf.to_saved()._replace(ensemble=ensemble.to_saved()))


def plain(model):
    return document(model.pmf_, ensemble=model.ensemble_.to_saved())


@st.composite
def classifiers(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    model = random_classifier(
        rng,
        features=draw(st.integers(1, 5)),
        targets=draw(st.integers(1, 2)),
        members=draw(st.integers(1, 4)),
        zeros=draw(st.booleans()),
    )
    return rng, model


@settings(max_examples=60, deadline=None)
@given(drawn=classifiers(), share=st.sampled_from([0.0, 0.4, 1.0]), single=st.booleans())
def test_predictions_are_those_of_python_and_bars_the_joints(node, drawn, share, single):
    rng, model = drawn
    pmf, names = model.pmf_, model.pmf_.domain.names
    first, row = len(model.ensemble_.features), pmf.sample(1, random_state=rng).codes[0]
    board = {n: [int(row[n])] for n in range(len(row)) if rng.random() < share}
    for n in list(board)[: not single]:
        board[n] = sorted({*board[n], int(rng.integers(len(pmf.domain[n])))})
    doc = plain(model)
    pieces = [[n, {"kind": "in", "levels": found}] for n, found in board.items()]
    given = {names[n]: [pmf.domain[n].levels[k] for k in found] for n, found in board.items()}
    for name, answer in zip(names, node("bars", [doc, pieces])["all"], strict=True):
        same(answer["bars"], pmf.table(name, given=given).to_numpy(), name)
    alone = all(n < first and len(found) == 1 for n, found in board.items())
    codes = np.full((1, first), -1, dtype=np.int16)
    for n, found in board.items() if alone else ():
        codes[0, n] = found[0]
    wanted = [None] * first + (model.ensemble_.probabilities(codes) if alone else [None] * 2)
    for found, shares in zip(node("predictions", [doc, pieces]), wanted, strict=False):
        assert (found is None) == (shares is None)
        if shares is not None:
            same(found, shares[0])


@pytest.fixture(scope="module")
def classifier(asia):
    patients = asia.sample(600, random_state=0)
    return rj.JointClassifier(rank=2, random_state=0).fit(patients, "bronc")


@pytest.fixture
def saved(classifier, tmp_path):
    path = tmp_path / "bronc.rejoint"
    classifier.save(path)
    return path


def rows_of(page):
    with page.expect_download() as waiting:
        page.get_by_role("button", name="CSV", exact=True).click()
    return list(csv.DictReader(waiting.value.path().read_text(encoding="utf-8").splitlines()))


def test_the_target_view_shows_the_prediction(opened, saved, classifier):
    page = opened(open_model(saved).document(), "#is.smoke=yes&is.dysp=yes&view=target")
    evidence = {"smoke": "yes", "dysp": "yes"}
    shown = {row["level"]: float(row["now"]) for row in rows_of(page)}
    joint = classifier.pmf_.marginal("bronc", given=evidence)
    for label, share in zip(classifier.pmf_.domain["bronc"].levels, joint, strict=True):
        assert shown[label] == pytest.approx(share, abs=1e-9)
    best = classifier.predict_proba([evidence])[0].max()
    expect(page.get_by_text(f"trained to predict it say yes {100 * best:.1f}")).to_be_visible()


def test_other_evidence_has_no_prediction(opened, saved):
    page = opened(open_model(saved).document(), "#soft.smoke=1+0.5&view=target")
    expect(page.get_by_text("of uncertainty")).to_be_visible()
    expect(page.get_by_text("trained to predict it")).to_have_count(0)


@pytest.mark.parametrize("view", ["variables", "target", "table", "ask"])
def test_copied_python_gives_what_is_shown(opened, saved, view):
    page = opened(
        open_model(saved).document(),
        f"#is.smoke=yes&view={view}&of=lung&of=bronc&ask=P(bronc = yes)",
    )
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy Python").click()
    code = copied(page, "import ").replace("bronc.rejoint", str(saved))
    answers = []
    *lines, last = code.strip().splitlines()
    last = last if last.strip().startswith("print(") else f"print({last})"
    exec("\n".join([*lines, last]), {"print": answers.append})
    if view == "variables":
        shown = [float(row["now"]) for row in rows_of(page)]
        wanted = np.concatenate([answer.to_numpy().ravel() for answer in answers])
        assert set(wanted.round(9)) <= {round(share, 9) for share in shown} | {0.0, 1.0}
    elif view == "target":
        shown = [float(row["now"]) for row in rows_of(page)]
        np.testing.assert_allclose(answers[0].to_numpy().ravel(), shown, atol=1e-9)
    elif view == "table":
        shown = [float(row["prob"]) for row in rows_of(page)]
        np.testing.assert_allclose(answers[0].to_numpy().ravel(), shown, atol=1e-9)
    else:
        [shown] = rows_of(page)
        assert float(answers[0].value) == pytest.approx(float(shown["probability"]), abs=1e-9)


def test_names_of_classes_leave_the_rest_of_the_file_as_it_is(saved, tmp_path, posterior):
    posterior.condition({"asia": "yes"}).save(tmp_path / "posterior.rejoint", notes={"by": "hand"})
    posterior.save(tmp_path / "posterior.json")
    for path in (saved, tmp_path / "posterior.rejoint", tmp_path / "posterior.json"):
        before = rj.io.read_saved(path)
        names = [f"kind {f}" for f in range(len(before.weights))]
        open_model(path).keep_names(names)
        after = rj.io.read_saved(path)
        assert after.notes == before.notes | {"class_names": names}
        for old, new in zip(before._replace(notes={}), after._replace(notes={}), strict=True):
            assert same_arrays(old, new)


def same_arrays(old, new):
    if isinstance(old, tuple | list):
        return len(old) == len(new) and all(map(same_arrays, old, new))
    if isinstance(old, np.ndarray):
        return old.dtype == new.dtype and np.array_equal(old, new)
    return old == new
