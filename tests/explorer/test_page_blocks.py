"""Pages of models with blocks: every view against Python, a click in time, few classes, cards."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from page_models import pieces, random_evidence, random_layouts, random_model, with_blocks

import rejoint as rj
from rejoint.explorer import document
from rejoint.explorer.document import PAGE_CLASSES, compact_answer
from rejoint.explorer.open import open_model
from rejoint.queries.mixture import BlockLayout

SAME = 1e-9


@st.composite
def blocked(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    first = random_model(rng, draw(st.integers(2, 6)), draw(st.integers(1, 4)), most=4)
    layouts = random_layouts(rng, first.domain.shape)
    zeros = draw(st.booleans())
    return rng, with_blocks(rng, first, layouts, zeros=zeros)


def same(found, wanted, message=""):
    np.testing.assert_allclose(np.ravel(found), np.ravel(wanted), SAME, SAME, err_msg=message)


@settings(max_examples=60, deadline=None)
@given(drawn=blocked(), share=st.sampled_from([0.0, 0.3, 0.7]))
def test_views_show_what_python_says(node, drawn, share):
    rng, pmf = drawn
    evidence = random_evidence(rng, pmf, share)
    names = pmf.domain.names
    axes = rng.permutation(len(names))[:3].tolist()
    found = node("views", [document(pmf), pieces(pmf, evidence), axes, axes[0]])
    same(found["table"], pmf.marginal([names[n] for n in axes], given=evidence))
    within = pmf._given(evidence)
    same(found["classes"], within.weights)
    joint = pmf.marginal(names, given=evidence)
    assert np.exp(found["mode"]["logProb"]) == pytest.approx(joint.max(), rel=SAME)
    same(joint[tuple(found["mode"]["levels"])], joint.max())
    for n, name in enumerate(names):
        if n == axes[0]:
            continue
        pair = pmf.marginal([names[axes[0]], name], given=evidence)
        alone = pair.sum(axis=1, keepdims=True) * pair.sum(axis=0)
        seen = pair > 0
        same(found["told"][n], (pair[seen] * np.log2(pair[seen] / alone[seen])).sum(), name)
    for n, name in enumerate(names):
        columns = within.factors[n]
        entropies = -(columns * np.log2(np.where(columns > 0, columns, 1.0))).sum(axis=0)
        p = pmf.marginal(name, given=evidence)
        whole = -(p * np.log2(np.where(p > 0, p, 1.0))).sum()
        same(found["ofClass"][n], max(whole - entropies @ within.weights, 0.0))


@settings(max_examples=40, deadline=None)
@given(drawn=blocked(), missing=st.sampled_from([0.0, 0.3]))
def test_cells_of_a_record_are_given_all_others(node, drawn, missing):
    rng, pmf = drawn
    codes = pmf.sample(1, random_state=rng).codes[0].astype(int)
    codes[rng.random(len(codes)) < missing] = -1
    for n, bars in enumerate(node("cells", [document(pmf), codes.tolist()])):
        if codes[n] < 0:
            assert bars is None
            continue
        others = {pmf.domain.names[m]: int(x) for m, x in enumerate(codes) if x >= 0 and m != n}
        same(bars, pmf.marginal(pmf.domain.names[n], given=others))


@settings(max_examples=60, deadline=None)
@given(drawn=blocked())
def test_contradictions_are_named_as_in_python(node, drawn):
    rng, pmf = drawn
    evidence = {v.name: int(rng.integers(len(v))) for v in pmf.domain.variables}
    vectors = {n: np.eye(len(v))[evidence[v.name]] for n, v in enumerate(pmf.domain)}
    if pmf._parts.prob(vectors) > 0:
        return
    found = node("contradictions", [document(pmf), pieces(pmf, evidence)])
    assert found == pmf._parts.contradiction(vectors)


@settings(max_examples=20, deadline=None)
@given(drawn=blocked())
def test_modes_samples_and_events_of_the_ask_view(node, drawn):
    rng, pmf = drawn
    a, b = rng.permutation(pmf.domain.names)[:2]
    texts = [f"argmax {a}, {b}", f"sample 300 {a}, {b}", f"P({a} = 0, {b} = 0)"]
    texts += [f"P({a}, {b} = 0 | {a} != 1)"] if pmf.domain.shape[pmf.domain.index(a)] > 2 else []
    mode, drawn_records, *tables = node("answers", [document(pmf), [[text, []] for text in texts]])
    pair = pmf.marginal([a, b])
    same(mode["value"]["prob"], pair.max())
    assert all(pair[i, j] > 0 for i, j in drawn_records["value"]["rows"])
    for text, answer in zip(texts[2:], tables, strict=True):
        same(answer["value"], pmf.ask(text).value, text)


def wide(rng, rank, blocks=20, levels=20, lone=5):
    shape = [levels] * (2 * blocks) + [3] * lone
    factors = [rng.dirichlet(np.full(size, 0.5), rank).T for size in shape]
    pmf = rj.LowRankPMF(rng.dirichlet(np.ones(rank)), factors)
    group = np.arange(levels)
    layouts = [BlockLayout((2 * k, 2 * k + 1), (group, group)) for k in range(blocks)]
    return with_blocks(rng, pmf, layouts)


def test_a_click_takes_fifty_milliseconds(node):
    """20 blocks of 400 cells and 500 classes; some slack for a machine that has more to do."""
    pmf = wide(np.random.default_rng(0), 500)
    sets = [
        [[n, {"kind": "in", "levels": [n % 5]}] for n in range(0, 8, step)] for step in (1, 2, 3)
    ]
    assert node("clickTime", [document(pmf), sets]) < 150


def test_more_classes_than_a_page_has_are_merged_with_their_blocks(node):
    rng = np.random.default_rng(0)
    pmf = wide(rng, PAGE_CLASSES + 100, blocks=2, levels=4, lone=2)
    few = compact_answer(pmf)
    assert few.rank == PAGE_CLASSES
    assert few.blocks == pmf.blocks
    for names in (["x0", "x1"], ["x3", "x4"], ["x1", "x2", "x5"]):
        assert np.abs(few.marginal(names) - pmf.marginal(names)).max() < 2e-4
    found = node("bars", [document(pmf), pieces(pmf, {"x0": 1})])
    same(found["all"][1]["bars"], few.marginal("x1", given={"x0": 1}))


def test_a_page_of_a_file_answers_as_the_fit_with_blocks_did(node, tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 6, 800), rng.integers(0, 3, 800)
    data = {"a": a, "part": a // 2, "b": b, "c": (b + (rng.random(800) < 0.2)) % 3}
    records = rj.Records.of(data)
    result = rj.estimate(records, rank=2, blocks=[["a", "part"], ["b", "c"]], random_state=0)
    result.save(tmp_path / "model.rejoint")
    plain = open_model(tmp_path / "model.rejoint").document()
    assert len(plain["draw_blocks"]) == 2
    for codes in ({}, {"a": 3}, {"part": 1, "c": 0}, {"a": 2, "c": [0, 2], "b": 1}):
        given = {name: as_levels(result.pmf.domain[name], own) for name, own in codes.items()}
        found = node("bars", [plain, pieces(result.pmf, codes)])
        for name, answer in zip(result.pmf.domain.names, found["all"], strict=True):
            interval = result.pmf.interval(name, given=given)
            same(answer["bars"], result.pmf.marginal(name, given=given), name)
            same(answer["low"], interval.low, name)
            same(answer["high"], interval.high, name)


def as_levels(variable, codes):
    return [variable.levels[i] for i in ([codes] if isinstance(codes, int) else codes)]


def test_cards_of_a_block_stand_together_and_fit_lists_them(opened):
    """Their order in the page follows, and a block is one column."""
    pmf = wide(np.random.default_rng(0), 3, blocks=3, levels=3, lone=4)
    order = [0, 6, 2, 7, 4, 8, 1, 9, 3, 5]
    pmf = pmf.project([pmf.domain.names[n] for n in order])
    page = opened(document(pmf))
    names = page.locator(".card h3").all_text_contents()
    for block in pmf.blocks:
        a, b = (page.locator(f".card:has(h3:text-is('{name}'))") for name in block)
        assert abs(names.index(block[0]) - names.index(block[1])) == 1
        first, second = a.bounding_box(), b.bounding_box()
        assert first["x"] == second["x"]
        assert second["y"] == pytest.approx(first["y"] + first["height"], abs=2)
        assert a.get_by_text("Tabulated together").is_visible()
        assert not b.get_by_text("Tabulated together").is_visible()
    page.evaluate("() => rejoint.app.set('view', 'fit')")
    panel = page.locator(".panel:has(h3:text-is('Tabulated together'))")
    assert panel.locator("tbody tr").count() == 3
