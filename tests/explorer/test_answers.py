"""Answers and credible intervals of the page against Python's, on random models with posteriors."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from page_models import pieces, random_evidence, random_layouts, random_model, with_blocks

import rejoint as rj
from rejoint.explorer import document
from rejoint.explorer.open import open_model
from rejoint.pmf.table_gap import TableGap

# Both sides sum the same float64 numbers, in another order: a few units in the last place.
SAME = 1e-9


def with_posterior(rng, *, variables, rank, draws, zeros=False, blocks=False):
    """A representative, a mixture of more classes, and draws that have little in common."""
    first = random_model(rng, variables, rank)
    layouts = random_layouts(rng, first.domain.shape) if blocks else []
    others = [again(rng, first, int(rng.integers(1, rank + 2)), zeros) for _ in range(draws)]
    others = [with_blocks(rng, other, layouts, zeros=zeros) for other in others]
    mixture = with_blocks(rng, again(rng, first, 3 * rank, zeros), layouts, zeros=zeros)
    names = first.domain.names
    gaps = [
        TableGap((a, b), 0.03, 0.01, f"{a} = 0, {b} = 1", rng.random(), rng.random())
        for a, b in pairwise(names)
    ]
    return rj.LowRankPMF(first.weights, first.factors, first.domain, others, mixture, gaps)


def again(rng, pmf, rank, zeros):
    """Another model of the same variables."""
    factors = [rng.dirichlet(np.full(size, 0.4), rank).T for size in pmf.domain.shape]
    if zeros:
        factors = [np.where(factor < 0.02, 0.0, factor) for factor in factors]
        factors = [factor / factor.sum(axis=0) for factor in factors]
    return rj.LowRankPMF(rng.dirichlet(np.ones(rank)), factors, pmf.domain)


@st.composite
def posteriors(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    pmf = with_posterior(
        rng,
        variables=draw(st.integers(1, 6)),
        rank=draw(st.integers(1, 4)),
        draws=draw(st.integers(1, 12)),
        zeros=draw(st.booleans()),
        blocks=draw(st.booleans()),
    )
    return rng, pmf


def numbers(values):
    return np.array([np.nan if x is None else x for x in np.ravel(values)], dtype=float)


def same(found, wanted, message=""):
    np.testing.assert_allclose(
        numbers(found), np.ravel(wanted), rtol=SAME, atol=SAME, err_msg=message
    )


@settings(max_examples=60, deadline=None)
@given(drawn=posteriors(), share=st.sampled_from([0.0, 0.3, 0.7]))
def test_bars_and_bounds_are_those_of_python(node, drawn, share):
    rng, pmf = drawn
    evidence = random_evidence(rng, pmf, share)
    found = node("bars", [document(pmf), pieces(pmf, evidence)])
    assert found["possible"]
    for name, answer in zip(pmf.domain.names, found["all"], strict=True):
        same(answer["bars"], pmf.marginal(name, given=evidence), name)
        try:
            interval = pmf.interval(name, given=evidence)
        except rj.ZeroEvidenceError:
            assert "low" not in answer  # every draw excludes the evidence
            continue
        same(answer["low"], interval.low, name)
        same(answer["high"], interval.high, name)
        assert answer["draws"] == interval.draws
        assert answer["effective"] == pytest.approx(interval.effective, rel=1e-6)


def questions(rng, pmf):
    """Questions of every kind about random variables of a model, given some of the others."""
    names = list(rng.permutation(pmf.domain.names))
    a, b, c = (names * 3)[:3]
    texts = [f"P({a})", f"P({a} = 1)", f"E({a})", f"H({a})"]
    if len(names) > 1:
        texts += [f"P({a} | {b})", f"P({a} = 0 | {b})", f"P({a} = 0 | {b} = 1)", f"E({a} | {b})"]
        texts += [f"H({a} | {b})", f"MI({a}; {b})", f"P({a}, {b})", f"E({a} | {b} != 0)"]
    if len(names) > 2:
        texts += [f"P({a} | {b}, {c})", f"P({a}, {b} | {c})", f"P({a} = 0, {b} | {c} in {{0, 1}})"]
        texts += [f"MI({a}; {b} | {c})", f"P({a}, {c} | {c} ~ {{0: 0.3, 1: 1}})"]
    return texts


def both_answers(node, pmf, texts):
    """Each question with its answer in the page and in Python, where the evidence is possible."""
    found = node("answers", [document(pmf), [[text, []] for text in texts]])
    for text, answer in zip(texts, found, strict=True):
        try:
            wanted = pmf.ask(text)
        except rj.ZeroEvidenceError:
            assert "probability zero" in answer["reason"], text
            continue
        same(answer["value"], wanted.value, text)
        yield text, answer, wanted


@settings(max_examples=60, deadline=None)
@given(drawn=posteriors())
def test_questions_and_their_intervals_are_answered_as_in_python(node, drawn):
    rng, pmf = drawn
    for text, answer, wanted in both_answers(node, pmf, questions(rng, pmf)):
        assert answer["notes"] == list(wanted.notes), text
        if wanted.interval is None:
            assert answer["interval"] is None
            continue
        same(answer["interval"]["low"], wanted.interval.low, text)
        same(answer["interval"]["high"], wanted.interval.high, text)
        assert answer["interval"]["draws"] == wanted.interval.draws
        assert answer["interval"]["effective"] == pytest.approx(wanted.interval.effective, rel=1e-6)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    bounds=st.lists(st.integers(-25, 25), min_size=3, max_size=3),
    signs=st.lists(st.sampled_from(["<", "<=", ">", ">="]), min_size=3, max_size=3),
)
def test_comparisons_cut_bins_as_in_python(node, seed, bounds, signs):
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(0.0, 10.0, 200))
    x = rj.Records.of({"x": values}, bins={"x": 6}).domain["x"]
    pmf = random_model(rng, 2, 3, most=6)
    sizes = len(x), pmf.domain.shape[1]
    factors = [rng.dirichlet(np.full(size, 0.4), 3).T for size in sizes]
    pmf = rj.LowRankPMF(pmf.weights, factors, rj.Domain((x, pmf.domain[1])))
    one, two, three = (f"x {sign} {bound}" for sign, bound in zip(signs, bounds, strict=True))
    texts = [f"P({one})", f"P(not {one}, {two} | x1 = 0)", f"P({one}, {two}, {three})"]
    texts += [f"P(x1 | {one})", f"E(x | {one}, {two})", "E(x | x1)", f"P(x1 | {one}, not {two})"]
    assert len(list(both_answers(node, pmf, texts))) > 0


@settings(max_examples=40, deadline=None)
@given(drawn=posteriors(), share=st.sampled_from([0.3, 0.7]))
def test_questions_take_the_evidence_of_the_page(node, drawn, share):
    """The page shows the whole question, and Python answers that question alike."""
    rng, pmf = drawn
    board = random_evidence(rng, pmf, share)
    board = {  # of the digits that a slider gives: a question has twelve
        name: (rng.integers(0, 100, len(value)) / 100).clip(0.01) if soft(value) else value
        for name, value in board.items()
    }
    texts = questions(rng, pmf)
    shown = [[text, pieces(pmf, board)] for text in texts]
    for text, answer in zip(texts, node("answers", [document(pmf), shown]), strict=True):
        try:
            alone = pmf.ask(text)
        except rj.ZeroEvidenceError:
            assert "probability zero" in answer["reason"], text
            continue
        named = sorted((name for name in pmf.domain.names if name in text), key=text.index)
        unused = [pmf.domain.names[n] for n in answer.get("unused", [])]
        if "reason" in answer:
            assert "probability zero" in answer["reason"]
            continue
        assert set(unused) == set(named) & set(board)
        whole = pmf.ask(answer["query"])
        assert {str(item) for item in whole.query.given} >= {
            str(item) for item in alone.query.given
        }
        same(answer["value"], whole.value, answer["query"])
        if whole.interval is not None:
            same(answer["interval"]["low"], whole.interval.low, answer["query"])
            same(answer["interval"]["high"], whole.interval.high, answer["query"])
        if text.startswith("P(") and "|" not in text and "=" not in text:
            rest = {name: value for name, value in board.items() if name not in named}
            same(answer["value"], pmf.marginal(named, given=rest).ravel())


def soft(value):
    return isinstance(value, np.ndarray)


def test_the_question_itself_wins_over_the_evidence(node, asia):
    board = [[asia.domain.index("smoke"), {"kind": "in", "levels": [0]}]]
    board += [[asia.domain.index("xray"), {"kind": "out", "levels": [1]}]]
    texts = [
        "P(lung | smoke = yes)",
        "P(lung | smoke = no)",
        "P(smoke)",
        "argmax",
        "P(lung | smoke)",
    ]
    found = node("answers", [document(asia), [[text, board] for text in texts]])
    assert [answer["query"] for answer in found] == [
        "P(lung | smoke = yes, xray != no)",
        "P(lung | smoke = no, xray != no)",
        "P(smoke | xray != no)",
        "argmax | smoke = yes, xray != no",
        "P(lung | smoke, xray != no)",
    ]
    for text, answer in zip(texts, found, strict=True):
        wanted = asia.ask(answer["query"])
        if text != "argmax":
            same(answer["value"], wanted.value)
    levels = [
        asia.domain[n].levels[i]
        for n, i in zip(found[3]["value"]["positions"], found[3]["value"]["levels"], strict=True)
    ]
    assert levels == list(asia.mode(given={"smoke": "yes", "xray": "yes"}).values())


def test_a_document_of_schema_1_answers_by_its_weights_and_factors(node, asia):
    plain = document(asia)
    assert "mixture" not in plain
    found = node("bars", [plain | {"schema": 1}, []])
    for name, answer in zip(asia.domain.names, found["all"], strict=True):
        same(answer["bars"], asia.marginal(name))


def as_levels(variable, value):
    if soft(value):
        return value
    return [variable.levels[code] for code in ([value] if isinstance(value, int) else value)]


@pytest.fixture(scope="module")
def fitted(asia, tmp_path_factory):
    """A model fitted by Bayes to records with missing values, and its file."""
    records = rj.datasets.remove_cells(asia.sample(400, random_state=1), 0.2, random_state=1)
    pmf = rj.estimate(records, rank=3, solver="bayes", random_state=0).pmf
    path = tmp_path_factory.mktemp("model") / "asia.rejoint"
    pmf.save(path)
    return pmf, path


def test_a_page_made_of_a_file_answers_as_the_fit_did(node, fitted):
    pmf, path = fitted
    assert pmf.draws.block.dtype == np.float32
    plain = open_model(path).document()
    rng = np.random.default_rng(0)
    for _ in range(30):
        codes = random_evidence(rng, pmf, rng.choice([0.0, 0.3, 0.6]))
        evidence = {name: as_levels(pmf.domain[name], value) for name, value in codes.items()}
        found = node("bars", [plain, pieces(pmf, codes)])
        for name, answer in zip(pmf.domain.names, found["all"], strict=True):
            interval = pmf.interval(name, given=evidence)
            same(answer["bars"], pmf.marginal(name, given=evidence), name)
            same(answer["low"], interval.low, name)
            same(answer["high"], interval.high, name)
            assert answer["effective"] == pytest.approx(interval.effective, rel=1e-6)
