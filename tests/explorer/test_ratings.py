"""Ratings mode: expectations and bundles against Python."""

import itertools

import numpy as np
import pytest
from page_models import visit

import rejoint as rj
from rejoint.explorer import document

expect = pytest.importorskip("playwright.sync_api").expect

ITEMS = ["Heat", "Ronin", "Up", "Coco", "Alien", "Her <3"]


@pytest.fixture(scope="module")
def cinema():
    rng = np.random.default_rng(2)
    domain = rj.Domain(tuple(rj.Variable(name, (1, 2, 3, 4, 5), "ordinal") for name in ITEMS))
    factors = [rng.dirichlet(np.full(5, 0.7), 6).T for _ in ITEMS]
    return rj.LowRankPMF(rng.dirichlet(np.full(6, 2.0)), factors, domain)


def test_rating_a_few_moves_expectations_and_bundles(opened, cinema):
    page = opened(document(cinema), "#view=ratings")
    page.get_by_role("button", name="Heat: 5").click()
    page.get_by_role("button", name="Up: 1").click()
    given = {"Heat": 5, "Up": 1}
    rest = [name for name in ITEMS if name not in given]
    means = {name: cinema.expect(name, given=given) for name in rest}
    shown = page.locator(".prediction")
    best = sorted(rest, key=lambda name: -means[name])
    expect(shown.locator(".name")).to_have_text(best)
    expect(shown.first.locator(".number").first).to_have_text(f"{means[best[0]]:.2f}")
    page.get_by_label("Items").select_option("2")
    pairs = {
        pair: cinema.prob({name: [4, 5] for name in pair}, given=given)
        for pair in itertools.combinations(rest, 2)
    }
    top = max(pairs, key=pairs.get)
    assert set(page.locator(".bundle bdi").all_inner_texts()) == set(top)
    expect(page.get_by_text(f"{100 * pairs[top]:.1f} % that all are rated 4")).to_be_visible()
    page.get_by_role("button", name="Heat: 5").click()  # again: taken back
    expect(page.locator(".chip")).to_have_count(1)


SETS = """async (cases) => {
  const { bestSet } = await import("./static/bundles.js");
  return cases.map(([classes, likes, size]) =>
    bestSet(Float64Array.from(classes), likes.map((row) => Float64Array.from(row)), size));
}"""


def test_bundles_are_the_best_of_all_sets(tab, served, asia):
    rng = np.random.default_rng(0)
    cases = [(rng.dirichlet(np.ones(4)), rng.random((9, 4)), size) for size in (2, 3, 4) * 4]
    visit(tab, served(document(asia)))
    plain = [[classes.tolist(), likes.tolist(), size] for classes, likes, size in cases]
    for (classes, likes, size), found in zip(cases, tab.evaluate(SETS, plain), strict=True):
        sets = itertools.combinations(range(len(likes)), size)
        best = max(float(classes @ np.prod(likes[list(chosen)], axis=0)) for chosen in sets)
        assert found["exact"]
        assert found["probability"] == pytest.approx(best, rel=1e-8)  # ties within 1e-9 are equal
        assert len(set(found["items"])) == size


def test_ratings_are_offered_only_where_all_share_a_scale(tab, asia_page):
    visit(tab, asia_page)
    expect(tab.get_by_role("button", name="Target", exact=True)).to_be_visible()
    assert tab.get_by_role("button", name="Ratings", exact=True).count() == 0


def test_ratings_view_is_accessible(opened, cinema):
    from test_access import violations

    page = opened(document(cinema), "#view=ratings&is.Up=4")
    page.set_viewport_size({"width": 390, "height": 844})
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
