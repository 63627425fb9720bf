"""The page of a classifier: its ensemble answers for the targets, as in Python."""

import csv

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from page_models import copied
from test_answers import again, same, with_posterior

import rejoint as rj
from rejoint.explorer import document
from rejoint.explorer.open import open_model
from rejoint.pmf.label_ensemble import LabelEnsemble, LowRankMember
from rejoint.pmf.target_model import TargetModel

expect = pytest.importorskip("playwright.sync_api").expect


def random_classifier(rng, *, features, targets, members, zeros):
    pmf = with_posterior(rng, variables=features + targets, rank=2, draws=3)
    models = [again(rng, pmf, int(rng.integers(1, 4)), zeros) for _ in range(members)]
    there = rng.permutation(features)[: rng.integers(0, features + 1)]
    ensemble = LabelEnsemble(
        [LowRankMember(model, targets) for model in models],
        rng.dirichlet(np.ones(members), 4),
        np.sort(there),
        np.sort(rng.random(2)).tolist(),
    )
    return TargetModel(pmf, ensemble, pmf.domain.names[-targets:])


def plain(model):
    return document(model.pmf, ensemble=model.ensemble.to_saved(model.targets))


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


def levels(rng, pmf, share, single):
    """Levels of a drawn record; where ``single`` is false one of them with another beside it."""
    record = dict(zip(pmf.domain.names, pmf.sample(1, random_state=rng).codes[0], strict=True))
    given = {name: [int(code)] for name, code in record.items() if rng.random() < share}
    for name in list(given)[: not single]:
        given[name] = sorted({*given[name], int(rng.integers(len(pmf.domain[name])))})
    return given


def as_text(given):
    parts = [f"{name} in {{{', '.join(map(str, found))}}}" for name, found in given.items()]
    return f" | {', '.join(parts)}" if parts else ""


@settings(max_examples=60, deadline=None)
@given(drawn=classifiers(), share=st.sampled_from([0.0, 0.4, 1.0]), single=st.booleans())
def test_bars_are_those_of_python(node, drawn, share, single):
    rng, model = drawn
    board = levels(rng, model.pmf, share, single)
    found = node("bars", [plain(model), in_pieces(model.pmf, board)])
    for name, answer in zip(model.pmf.domain.names, found["all"], strict=True):
        try:
            wanted = model.ask(f"P({name}{as_text(board)})")
        except rj.ZeroEvidenceError:
            continue  # another target that is given has probability zero under the ensemble
        same(answer["bars"], wanted.value, name)
        joint = any("joint model answers" in note for note in wanted.notes)
        assert joint == (name not in model.targets or not alone(model.pmf, board))
        assert ("low" in answer) == joint


@settings(max_examples=40, deadline=None)
@given(drawn=classifiers(), share=st.sampled_from([0.0, 0.4, 1.0]), many=st.booleans())
def test_contributions_are_those_of_python(node, drawn, share, many):
    rng, model = drawn
    if many:  # more features than all orders are averaged for
        model = random_classifier(rng, features=11, targets=1, members=2, zeros=False)
        share = 1.0
    board = levels(rng, model.pmf, share, single=True)
    board = {name: found for name, found in board.items() if name not in model.targets}
    target = model.targets[-1]
    label = int(rng.integers(len(model.pmf.domain[target])))
    place = model.pmf.domain.index(target)
    found = node("reasons", [plain(model), in_pieces(model.pmf, board), place, label])
    row = {name: model.pmf.domain[name].levels[codes[0]] for name, codes in board.items()}
    [why] = model.explain([row], model.pmf.domain[target].levels[label], target=target)
    assert found["baseline"] == pytest.approx(why.baseline, abs=1e-9)
    assert found["logOdds"] == pytest.approx(why.log_odds, abs=1e-9)
    parts = {model.pmf.domain.names[n]: part for n, part in found["parts"]}
    assert parts == pytest.approx({c.feature: c.log_odds for c in why.contributions}, abs=1e-9)


def in_pieces(pmf, board):
    return [[pmf.domain.index(n), {"kind": "in", "levels": found}] for n, found in board.items()]


def alone(pmf, board):
    return all(len(found) in (1, len(pmf.domain[name])) for name, found in board.items())


@settings(max_examples=60, deadline=None)
@given(drawn=classifiers(), share=st.sampled_from([0.0, 0.4]), single=st.booleans())
def test_questions_are_answered_as_in_python(node, drawn, share, single):
    rng, model = drawn
    board = levels(rng, model.pmf, share, single)
    one, feature = model.targets[-1], str(rng.choice(model.features.names))
    texts = [f"P({one})", f"P({one} = 1)", f"E({one})", f"P({one} | {feature})", f"argmax {one}"]
    texts += [f"E({one} | {feature})", f"P({feature} | {one})", f"P({one} != 0 | {feature} = 0)"]
    texts += [f"H({one})", f"P({one}, {feature})", f"P({one} | {feature} ~ {{0: 1, 1: 0.5}})"]
    if len(model.targets) > 1:
        other = model.targets[0]
        texts += [f"P({one}, {other})", f"P({one} | {other})", f"P({one} | {other} = 1)"]
        texts += [f"argmax {one}, {other}", f"P({other} = 0 | {one}, {feature})"]
    shown = [[text, in_pieces(model.pmf, board)] for text in texts]
    for text, answer in zip(texts, node("answers", [plain(model), shown]), strict=True):
        if "reason" in answer:
            assert "probability zero" in answer["reason"], text
            continue
        wanted = model.ask(answer["query"])
        assert answer["notes"] == list(wanted.notes), answer["query"]
        if wanted.kind == "mode":
            assert answer["value"]["prob"] == pytest.approx(wanted.value.prob, abs=1e-9)
        else:
            same(answer["value"], wanted.value, answer["query"])
        assert (answer["interval"] is None) == (wanted.interval is None)
        if wanted.interval is not None:
            same(answer["interval"]["low"], wanted.interval.low, answer["query"])


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


def test_a_page_of_a_classifiers_file_predicts_as_it_does(opened, saved, classifier):
    page = opened(open_model(saved).document(), "#is.smoke=yes&is.dysp=yes&view=target")
    evidence = {"smoke": "yes", "dysp": "yes"}
    wanted = classifier.predict_proba([evidence])[0]
    shown = {row["level"]: float(row["now"]) for row in rows_of(page)}
    for label, share in zip(classifier.classes_, wanted, strict=True):
        assert shown[label] == pytest.approx(share, abs=1e-9)
    joint = classifier.pmf_.marginal("bronc", given=evidence)
    assert np.abs(np.sort(joint) - np.sort(wanted)).max() > 1e-4  # the joint says another thing
    expect(page.get_by_text("models predicts this")).to_be_visible()
    page.get_by_role("button", name="Variables", exact=True).click()
    card = page.get_by_role("group", name="bronc", exact=True)
    expect(card.locator(".card-note")).to_have_text("predicted")
    rows = {(row["variable"], row["level"]): float(row["now"]) for row in rows_of(page)}
    assert rows["bronc", "yes"] == pytest.approx(shown["yes"], abs=1e-12)
    lung = classifier.pmf_.prob({"lung": "yes"}, given=evidence)
    assert rows["lung", "yes"] == pytest.approx(lung, abs=1e-9)


def test_other_evidence_is_the_joints_and_the_page_says_so(opened, saved, classifier):
    page = opened(open_model(saved).document(), "#soft.smoke=1+0.5&view=target")
    expect(page.get_by_text("The joint model answers: some of the evidence")).to_be_visible()
    shown = [float(row["now"]) for row in rows_of(page)]
    wanted = classifier.pmf_.marginal("bronc", given={"smoke": np.array([1.0, 0.5])})
    np.testing.assert_allclose(shown, wanted, atol=1e-9)
    page.get_by_role("button", name="Variables", exact=True).click()
    card = page.get_by_role("group", name="bronc", exact=True)
    expect(card.locator(".card-note")).to_have_text("by the joint")


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
    last = last if last.startswith("print(") else f"print({last})"
    exec("\n".join([*lines, last]), {"print": answers.append})
    if view == "variables":
        assert [str(answer.query) for answer in answers][-1] == "P(bronc | smoke = yes)"
        rows = {(row["variable"], row["level"]): float(row["now"]) for row in rows_of(page)}
        shown = [rows["bronc", label] for label in answers[-1].axes[0].levels]
        np.testing.assert_allclose(answers[-1].value, shown, atol=1e-9)
    elif view == "target":
        shown = [float(row["now"]) for row in rows_of(page)]
        np.testing.assert_allclose(answers[0].value, shown, atol=1e-9)
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
