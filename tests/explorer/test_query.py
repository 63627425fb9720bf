"""The page's query language against the golden cases of Python's, and the query box."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from page_models import copied, visit

import rejoint as rj
from rejoint.explorer import document

expect = pytest.importorskip("playwright.sync_api").expect

FOLDER = Path(__file__).parents[1] / "language"
GOLDEN, ANSWERS = (
    json.loads((FOLDER / name).read_text(encoding="utf-8"))
    for name in ("golden.json", "answers.json")
)

PARSED = """async (texts) => {
  const { parse, queryText } = await import("./static/grammar.js");
  return texts.map((text) => {
    try {
      return { canonical: queryText(parse(text)) };
    } catch (error) {
      return { reason: error.reason ?? null };
    }
  });
}"""

ASKED = """async ([doc, texts]) => {
  const { readModel } = await import("./static/model.js");
  const { ask } = await import("./static/ask.js");
  const model = readModel(doc);
  return texts.map((text) => {
    try {
      const { own, ...answer } = ask(model, text);
      if (answer.value instanceof Float64Array) answer.value = [...answer.value];
      return answer;
    } catch (error) {
      return { reason: error.reason ?? String(error), position: error.position };
    }
  });
}"""


@pytest.fixture
def workbench(tab, served, asia):
    visit(tab, served(document(asia)))
    return tab


def test_questions_read_as_in_python(workbench):
    cases = [*GOLDEN["queries"], *GOLDEN["errors"]]
    found = workbench.evaluate(PARSED, [case["text"] for case in cases])
    for case, answer in zip(cases, found, strict=True):
        if "canonical" in case:
            assert answer == {"canonical": case["canonical"]}, case["text"]
        else:  # its words are the page's own
            assert answer["reason"], case["text"]


def golden_model():
    plain = ANSWERS["model"]
    domain = rj.Domain.from_json(plain["domain"])
    return rj.LowRankPMF(plain["weights"], plain["factors"], domain)


def test_answers_are_those_of_python(workbench):
    pmf, cases = golden_model(), ANSWERS["answers"]
    found = workbench.evaluate(ASKED, [document(pmf), [case["query"] for case in cases]])
    for case, answer in zip(cases, found, strict=True):
        query = case["query"]
        assert (answer["query"], answer["kind"]) == (query, case["kind"])
        assert answer["notes"] == case["notes"], query
        assert answer["evidence"] == pytest.approx(case["evidence"], rel=1e-9), query
        assert [pmf.domain.names[n] for n in answer["axes"]] == [a["name"] for a in case["axes"]]
        if case["kind"] == "mode":
            names = [pmf.domain.names[n] for n in answer["value"]["positions"]]
            levels = [
                pmf.domain[name].levels[i]
                for name, i in zip(names, answer["value"]["levels"], strict=True)
            ]
            assert list(map(str, levels)) == list(map(str, case["value"]["levels"].values()))
            assert answer["value"]["prob"] == pytest.approx(case["value"]["prob"], rel=1e-9)
        else:
            wanted = np.array(case["value"], dtype=float).ravel()
            # The same products and logarithms of doubles, summed in another order.
            np.testing.assert_allclose(np.ravel(answer["value"]), wanted, atol=1e-9, err_msg=query)


WRONG = [
    "P(grade | b = x)",
    "P(a = xx)",
    "P(age >= 20)",
    "P(a > x)",
    "P(stars ~ {1: 0})",
    "P(a | stars ~ {1: 0})",
    "P(a, a)",
    "E(a)",
    "argmax a | grade",
    "P(x)",
    "P(a | a = x, a = y)",
]


def test_what_python_refuses_is_refused(workbench):
    pmf = golden_model()
    for text, answer in zip(WRONG, workbench.evaluate(ASKED, [document(pmf), WRONG]), strict=True):
        with pytest.raises(ValueError, match=r"\w"):
            pmf.ask(text)
        assert answer["reason"], text


def test_box_answers_points_at_errors_and_gives_evidence(tab, asia_page):
    visit(tab, asia_page + "#view=ask")
    box = tab.get_by_label("Question")
    box.fill("P(lung = yes | smoke = yes, xray = yes)")
    box.press("Enter")
    expect(tab.locator(".single")).to_have_text("64.60 %")
    expect(tab.get_by_text("The evidence has probability")).to_be_visible()
    tab.get_by_role("button", name="Use its evidence").click()
    expect(tab.locator(".chip")).to_have_count(2)
    box.fill("P(lung | smoek = yes)")
    box.press("Enter")
    expect(tab.locator("#main .warning")).to_have_text(
        re.compile('No variable is called "smoek". The variables are "asia", "smoke"')
    )
    assert tab.locator(".caret").inner_text().splitlines()[1].rstrip() == " " * 9 + "^"
    box.fill("P(bronc | smoke)")
    box.press("Enter")
    expect(tab.locator("#main svg")).to_be_visible()
    expect(tab.locator(".plain-table tbody tr")).to_have_count(4)
    box.fill("sample 5 smoke, lung | xray = yes")
    box.press("Enter")
    expect(tab.locator(".plain-table tbody tr")).to_have_count(5)


def test_box_uses_the_evidence_unless_told_not_to(tab, asia_page, asia):
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit(tab, asia_page + "#is.xray=yes&view=ask&ask=P(lung = yes | smoke = yes)")
    expect(tab.locator(".panel-title")).to_have_text("P(lung = yes | smoke = yes, xray = yes)")
    expect(tab.locator(".single")).to_have_text("64.60 %")
    tab.get_by_role("button", name="Copy Python").click()
    assert '"P(lung = yes | smoke = yes, xray = yes)"' in copied(tab, "import ")
    tab.get_by_role("button", name="Copy command").click()
    assert "'P(lung = yes | smoke = yes, xray = yes)'" in copied(tab, "rejoint ask ")
    uses = tab.get_by_label("Use the evidence")
    expect(uses).to_be_checked()
    uses.focus()
    uses.press("Space")
    expect(tab.locator(".single")).to_have_text("10.00 %")
    expect(tab.locator(".panel-title")).to_have_text("P(lung = yes | smoke = yes)")
    expect(tab).to_have_url(re.compile("evidence=off"))
    uses.press("Space")
    tab.get_by_role("button", name="Remove xray = yes").click()
    expect(tab.locator(".single")).to_have_text("10.00 %")
    tab.get_by_role("button", name="Undo").click()
    expect(tab.locator(".single")).to_have_text("64.60 %")


def test_a_question_wins_over_the_evidence_and_the_box_says_so(tab, asia_page, asia):
    visit(tab, asia_page + "#is.xray=yes&is.dysp=no&view=ask&ask=P(lung = yes | xray = no)")
    expect(tab.locator(".panel-title")).to_have_text("P(lung = yes | xray = no, dysp = no)")
    expect(tab.get_by_text("Not used, because the question names it: xray = yes.")).to_be_visible()
    share = asia.prob({"lung": "yes"}, given={"xray": "no", "dysp": "no"})
    expect(tab.locator(".single")).to_have_text(f"{100 * share:.2f} %")
    tab.get_by_role("button", name="Use its evidence").click()
    expect(tab.locator(".chip bdi")).to_have_text(["xray = no", "dysp = no"])


@pytest.mark.parametrize("text", ["P(lung | smoke = yes)", "P(lung = yes | smoke)", "H(lung)"])
def test_answers_have_the_intervals_of_python(opened, posterior, text):
    pmf = posterior
    page = opened(document(pmf), f"#view=ask&ask={text}")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="CSV", exact=True).click()
    rows = list(csv.DictReader(waiting.value.path().read_text(encoding="utf-8").splitlines()))
    found = pmf.ask(text).interval
    np.testing.assert_allclose([float(r["low"]) for r in rows], found.low.ravel(), atol=1e-9)
    np.testing.assert_allclose([float(r["high"]) for r in rows], found.high.ravel(), atol=1e-9)
    worth = f"worth about {found.effective:.0f} " if found.effective < 39.5 else ""
    expect(page.get_by_text(f"90 % credible interval, {worth}of 40 draws")).to_be_visible()
