"""Ratings mode: expectations and bundles against Python."""

import itertools

import numpy as np
import pytest
from page_models import copied, visit

import rejoint as rj
from rejoint.explorer import document
from rejoint.explorer.open import open_model

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


def films(items=ITEMS, half_up=False):
    rng = np.random.default_rng(0)
    taste = rng.normal(size=(80, 2))
    liking = (
        3.4 + taste @ rng.normal(size=(2, len(items))) + 0.5 * rng.normal(size=(80, len(items)))
    )
    stars = np.clip(np.round(2 * liking) / 2, 0.5, 5)
    seen = rng.random(stars.shape) < 0.5
    rows = [(int(u), items[i], float(stars[u, i])) for u, i in zip(*np.nonzero(seen), strict=True)]
    return rj.JointRecommender(half_up=half_up, random_state=0).fit(rows)


@pytest.fixture(scope="module")
def recommender():
    return films()


def page_of(recommender, tmp_path, name="films.rejoint"):
    recommender.save(tmp_path / name)
    return open_model(tmp_path / name).document()


@pytest.mark.parametrize("half_up", [False, True])
def test_a_new_user_is_answered_as_by_recommend(node, tmp_path, half_up):
    items = [*range(10, 40), "Heat"]
    model = films(items, half_up)
    plain = page_of(model, tmp_path)
    rng = np.random.default_rng(1)
    for count in (0, 1, 2, 5, 20):
        places = rng.choice(len(items), count, replace=False)
        levels = rng.integers(0, len(model.levels_), count)
        given = {model.items_[n]: model.levels_[i] for n, i in zip(places, levels, strict=True)}
        left = np.setdiff1d(np.arange(len(items)), places)
        evidence = [[int(n), int(i)] for n, i in zip(places, levels, strict=True)]
        page = node("recommendations", [plain, evidence, left.tolist(), 3])
        order = {item: n for n, item in enumerate(model.items_)}
        for one in model.recommend(given, len(items), exclude_seen=False):
            n = order[one.item]
            both = np.mean(
                [c[n] * q[n] for c, q in zip(page["chosen"], page["liked"], strict=True)]
            )
            assert page["expected"][n] == pytest.approx(one.expected, abs=1e-9)
            assert page["like"][n] == pytest.approx(one.like, abs=1e-9)
            assert page["choice"][n] * np.sqrt(one.like) == pytest.approx(one.score, abs=1e-9)
            assert both == pytest.approx(one.probability, abs=1e-9)
        bundle = model.bundle(given, 3)
        assert page["together"] == pytest.approx(bundle.probability, abs=1e-9)
        assert {model.items_[n] for n in page["items"]} == set(bundle.items)


def test_the_page_of_a_recommender_recommends(opened, recommender, tmp_path):
    page = opened(page_of(recommender, tmp_path), "#view=ratings")
    page.get_by_role("button", name="Heat: 5", exact=True).click()
    page.get_by_role("button", name="Up: 1", exact=True).click()
    given = {"Heat": 5.0, "Up": 1.0}
    shown = page.locator(".prediction")
    for by in ("score", "expected", "like"):
        page.get_by_label("Order").select_option(by)
        best = recommender.recommend(given, by=by)
        expect(shown.locator(".name")).to_have_text([one.item for one in best])
        expect(shown.first.locator(".number").first).to_have_text(f"{best[0].expected:.2f}")
    bundle = recommender.bundle(given, 3)
    assert set(page.locator(".bundle bdi").all_inner_texts()) == set(bundle.items)
    words = f"{100 * bundle.probability:.1f} % that all are chosen and rated 4"
    expect(page.get_by_text(words)).to_be_visible()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy Python").click()
    code = copied(page, "import rejoint")
    assert 'model = rj.load("films.rejoint")\nmodel.recommend({"Heat": 5, "Up": 1}' in code
    page.get_by_role("button", name="Copy command").click()
    assert copied(page, "rejoint recommend films.rejoint --rated 'Heat=5' --rated 'Up=1'")
    assert page.get_by_role("button", name="Copy question").count() == 0


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
