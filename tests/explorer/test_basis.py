"""What the bars of a model from tables rest on: marks, hatches, ranges, legend."""

import http.client
import json
from urllib.parse import urlsplit

import numpy as np
import pytest
from page_models import level, visit

import rejoint as rj
from rejoint.explorer import document
from rejoint.explorer.open import Opened
from rejoint.explorer.page_tables import page_tables, read_evidence_pairs
from rejoint.identifiability import model_verdict
from rejoint.language.query import Name

MARKS = ("Published", "Implied", "Identified", "Open")


@pytest.fixture(scope="module")
def town_document(town):
    return document(town, title="Town", source="town.rejoint")


def piece(pmf, name, label):
    n = pmf.domain.index(name)
    return [n, {"kind": "in", "levels": [pmf.domain[n].levels.index(label)]}]


@pytest.mark.parametrize(
    "given", [{}, {"Work": "Student"}, {"Pass": "Monthly"}, {"Travel": "Bus"}, {"Age": "18-29"}]
)
def test_page_and_python_say_the_same(node, town, town_document, given):
    found = node("bases", [town_document, [piece(town, *item) for item in given.items()]])
    condition = "".join(f" | {Name(name)} = '{label}'" for name, label in given.items())
    for variable, basis in zip(town.domain, found, strict=True):
        if variable.name in given:
            assert basis["name"] == "given"
            continue
        answer = town.ask(f"P({Name(variable.name)}{condition})")
        assert basis["name"] == answer.basis
        assert basis["text"].split("; ")[0].rstrip(".") == answer.rests_on.text.split("; ")[0]
        if answer.bounds is not None:
            np.testing.assert_allclose(basis["range"]["low"], answer.bounds.low, atol=1e-6)
            np.testing.assert_allclose(basis["range"]["high"], answer.bounds.high, atol=1e-6)


def test_without_a_range_the_page_says_so_and_knows_what_is_certain(node, town, town_document):
    given = [piece(town, "Work", "Student"), piece(town, "District", "Harbor")]
    found = dict(zip(town.domain.names, node("bases", [town_document, given]), strict=True))
    assert found["Age"]["name"] == "implied"  # students are young, wherever they live
    assert found["Travel"]["name"] == "open"
    assert found["Travel"]["range"] is None
    assert "its range is not computed here" in found["Travel"]["text"]


def test_identified_models_have_their_certificate(node):
    truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    pmf = truth.with_tables(rj.Marginals.from_pmf(truth, order=2), "Only one.")
    given = [[1, {"kind": "in", "levels": [0]}], [2, {"kind": "in", "levels": [0]}]]
    found = node("bases", [document(pmf), given])
    assert found[0]["name"] == "identified"
    assert found[0]["text"].startswith("identified at rank 2: Only one; ")
    assert node("bases", [document(pmf), given[:1]])[0]["name"] == "published"


def test_cells_that_were_held_back_are_not_published_in_the_page():
    nan = float("nan")
    cells = {("a", "b"): [[10, nan], [30, 40]], ("b", "c"): [[10, 30], [20, 40]]}
    tables = rj.Marginals.from_tables(cells, suppressed=(1, 30))
    plain = page_tables(rj.factorize(tables).pmf)
    assert plain["published"] == [[1, 2]]


def test_answers_of_the_page_say_what_they_rest_on(node, town, town_document):
    asked = ["P(Travel = Bus | Work = Student)", "P(Age, Work)", "MI(Age; Travel)", "argmax"]
    found = node("answers", [town_document, [[text, []] for text in asked]])
    bound = town.ask(asked[0]).bounds
    assert found[0]["basis"]["name"] == "open"
    assert found[0]["basis"]["range"]["low"] == pytest.approx([bound.low], abs=1e-6)
    assert "any joint with these tables gives 46.7 % to 76.2 %" in found[0]["basis"]["text"]
    assert [each["basis"]["name"] for each in found[1:]] == ["published", "open", "open"]


def test_models_from_records_have_no_marks(node, asia, opened):
    assert node("bases", [document(asia), []]) == [None] * 8
    page = opened(document(asia))
    assert page.locator(".legend").count() == 0
    assert page.locator("[data-basis]:not([data-basis=''])").count() == 0


def test_the_page_hatches_what_is_open_and_draws_its_range(opened, town_document):
    page = opened(town_document, "#is.Work=Student")
    legend = page.get_by_role("list", name="What the bars are based on")
    assert [title for title in MARKS if title in legend.inner_text()] == list(MARKS)
    bus = level(page, "Travel", "Bus")
    assert bus.locator(".track").get_attribute("data-basis") == "open"
    stripes = "e => getComputedStyle(e, '::after').backgroundImage"
    assert "repeating-linear-gradient" in bus.locator(".track").evaluate(stripes)
    track, line = (bus.locator(part).bounding_box() for part in (".track", ".range"))
    low, high = ((line["x"] - track["x"]) / track["width"], line["width"] / track["width"])
    assert (low, low + high) == pytest.approx((0.467, 0.762), abs=0.02)
    assert "46.7 % to 76.2 %" in bus.get_attribute("title")
    age = level(page, "Age", "18-29")
    assert age.locator(".track").get_attribute("data-basis") == "published"
    assert "repeating" not in age.locator(".track").evaluate(stripes)
    assert not age.locator(".range").is_visible()


def test_a_served_page_asks_for_the_ranges_that_it_lacks(served, tab, town):
    opened = Opened(town, title="Town")
    visit(tab, served(opened.document(), bound=opened.bound_bars))
    level(tab, "Work", "Full time").click()
    level(tab, "Age", "30-49").click()
    owned = level(tab, "Home", "Owned")
    owned.locator(".range").wait_for()
    wanted = town.ask("P(Home = Owned | Work = 'Full time', Age = '30-49')").bounds
    assert 0 < wanted.low < wanted.high < 1
    ends = f"{100 * wanted.low:.1f} % to {100 * wanted.high:.1f} %"
    assert owned.get_attribute("title").startswith(ends)


def test_what_is_no_evidence_is_refused(served, town):
    opened = Opened(town)
    address = urlsplit(served(document(town), bound=opened.bound_bars))
    origin = {"Origin": f"http://{address.netloc}", "Content-Type": "application/json"}
    for body in ("", "{", "3", "[[1]]", "[[99, [1, 0]]]", "[[0, [1, 0]]]", '[[0, ["a", 1, 1, 1]]]'):
        connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=10)
        connection.request("POST", "/t0ken/bounds", body=body, headers=origin)
        assert connection.getresponse().status == 400, body
        connection.close()
    assert read_evidence_pairs([], town.domain) == {}


def test_the_verdict_is_about_the_tables_that_were_given(opened, town):
    plain = Opened(town).document()
    assert plain["identifiability"]["verdict"] == model_verdict(town).verdict
    assert (
        "do not determine the joint: they have 72 independent numbers"
        in (plain["identifiability"]["verdict"])
    )
    page = opened(plain, "#view=fit")
    assert "identifiable" not in page.locator("main").inner_text()
    assert json.loads(json.dumps(plain)) == plain


def test_ranges_keep_to_their_time(town):
    assert page_tables(town, seconds=0.0)["ranges"] == {}
