"""Cards and the evidence strip, clicked and typed at in a real browser."""

import re

import numpy as np
import pytest
from page_models import eventually, level, random_model, visit

import rejoint as rj
from rejoint.explorer import document

expect = pytest.importorskip("playwright.sync_api").expect


def shares(page, variable):
    """Probabilities that a card shows, in percent, by label."""
    rows = page.get_by_role("group", name=variable, exact=True).locator(".level")
    rows.first.wait_for()  # a card that has just come onto the screen is built a frame later
    texts = rows.evaluate_all(
        "rows => rows.map(r => [r.querySelector('bdi').textContent,"
        " r.querySelector('.value').textContent])"
    )
    return {name: float(re.sub(r"[^0-9.]", "", value)) for name, value in texts}


def test_click_gives_and_click_again_takes_back(tab, asia_page, asia):
    visit(tab, asia_page)
    assert shares(tab, "lung")["yes"] == 5.5
    level(tab, "smoke", "yes").click()
    wanted = 100 * asia.prob({"lung": "yes"}, given={"smoke": "yes"})
    assert shares(tab, "lung")["yes"] == pytest.approx(wanted, abs=0.05)  # one digit is shown
    expect(level(tab, "smoke", "yes")).to_have_attribute("aria-pressed", "true")
    expect(level(tab, "lung", "yes").locator(".move")).to_have_text("▲ 4.5")
    level(tab, "smoke", "no").click()  # another level instead
    expect(level(tab, "smoke", "yes")).to_have_attribute("aria-pressed", "false")
    level(tab, "smoke", "no").click()
    assert shares(tab, "lung")["yes"] == 5.5
    expect(tab.get_by_text("No evidence")).to_be_visible()


def test_bars_are_as_long_as_the_numbers_say(tab, asia_page):
    visit(tab, asia_page + "#is.smoke=yes")
    row = level(tab, "bronc", "yes")
    expect(row.locator(".value")).to_have_text("60.0 %")
    tab.evaluate("Promise.all(document.getAnimations().map((a) => a.finished))")  # bars glide
    boxes = {
        part: row.locator(part).bounding_box()["width"] for part in (".track", ".bar", ".ghost")
    }
    assert boxes[".bar"] / boxes[".track"] == pytest.approx(0.60, abs=0.02)
    assert boxes[".ghost"] / boxes[".track"] == pytest.approx(0.45, abs=0.02)


@pytest.fixture
def shop():
    rng = np.random.default_rng(3)
    domain = rj.Domain.of({"size": ["S", "M", "L"], "colour": ["red", "green", "blue", "grey"]})
    factors = [rng.dirichlet(np.ones(size), 3).T for size in domain.shape]
    return rj.LowRankPMF([0.2, 0.3, 0.5], factors, domain)


def test_exclude_and_several_levels(opened, shop):
    page = opened(document(shop))
    level(page, "colour", "red").click(modifiers=["Shift"])
    wanted = shop.marginal("size", given={"colour": ["green", "blue", "grey"]})
    np.testing.assert_allclose(list(shares(page, "size").values()), 100 * wanted, atol=0.051)
    expect(page.get_by_role("button", name="Remove colour ≠ red")).to_be_visible()
    level(page, "colour", "green").click()
    level(page, "colour", "blue").click(modifiers=["Control"])
    wanted = shop.marginal("size", given={"colour": ["green", "blue"]})
    np.testing.assert_allclose(list(shares(page, "size").values()), 100 * wanted, atol=0.051)
    page.get_by_role("button", name="Remove colour in {green, blue}").click()
    page.get_by_label("A click").select_option("not")  # the same without a Shift key
    level(page, "size", "L").click()
    expect(page.get_by_role("button", name="Remove size ≠ L")).to_be_visible()


def test_soft_evidence_by_sliders(opened, shop):
    page = opened(document(shop))
    card = page.get_by_role("group", name="size", exact=True)
    card.hover()
    card.get_by_role("button", name="Weigh").click()
    slider = card.get_by_label("How well size = S agrees")
    slider.fill("0.25")
    soft = np.array([0.25, 1.0, 1.0])
    wanted = shop.marginal("colour", given={"size": soft})
    np.testing.assert_allclose(list(shares(page, "colour").values()), 100 * wanted, atol=0.051)
    expect(page.get_by_role("button", name="Remove size weighed")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("No evidence")).to_be_visible()
    expect(slider).to_have_value("1")


def test_strip_tells_probability_support_and_what_is_too_few(tab, asia_page, asia, patients):
    visit(tab, asia_page + "#is.smoke=yes")
    shown = int((patients["smoke"] == "yes").sum())
    facts = tab.locator(".facts")
    expect(facts).to_contain_text("Probability of this 50.0 %")
    expect(facts).to_contain_text(f"{shown:,} of 2,000 records show it")
    expect(tab.locator(".warning")).to_be_hidden()
    level(tab, "tub", "yes").click()
    few = int(((patients["smoke"] == "yes") & (patients["tub"] == "yes")).sum())
    assert 0 < few < 30
    expect(tab.locator(".warning")).to_contain_text(f"Few records ({few})")
    level(tab, "either", "no").click()
    expect(tab.locator(".warning")).to_contain_text("tub = yes and either = no")
    expect(tab.locator(".warning")).to_contain_text("probability zero")


def test_undo_redo_clear_and_keys(tab, asia_page):
    visit(tab, asia_page)
    level(tab, "smoke", "yes").click()
    level(tab, "dysp", "yes").click()
    tab.keyboard.press("Control+z")
    expect(tab.locator(".chip")).to_have_count(1)
    tab.keyboard.press("Control+Shift+z")
    expect(tab.locator(".chip")).to_have_count(2)
    tab.get_by_role("button", name="Clear").click()
    expect(tab.locator(".chip")).to_have_count(0)
    tab.get_by_role("button", name="Undo").click()
    expect(tab.locator(".chip")).to_have_count(2)


def test_link_reproduces_the_state(tab, asia_page, browser):
    visit(tab, asia_page)
    level(tab, "smoke", "yes").click()
    level(tab, "dysp", "no").click(modifiers=["Shift"])
    tab.get_by_label("Sort").select_option("change")
    expect(tab).to_have_url(re.compile("sort=change"))
    texts = tab.locator(".card").all_inner_texts()
    link = tab.url
    tab.goto("about:blank")
    visit(tab, link)
    expect(tab.locator(".chip")).to_have_count(2)
    assert tab.locator(".card").all_inner_texts() == texts


def test_link_of_another_model_says_what_is_unknown(tab, asia_page):
    visit(tab, asia_page + "#is.smoke=yes&is.weather=rain")
    expect(tab.get_by_role("alert")).to_contain_text("weather")
    expect(tab.locator(".chip")).to_have_count(1)


def test_keyboard_alone(tab, asia_page):
    visit(tab, asia_page)
    tab.keyboard.press("/")
    expect(tab.get_by_label("Search")).to_be_focused()
    level(tab, "smoke", "yes").focus()
    tab.keyboard.press("ArrowDown")
    expect(level(tab, "smoke", "no")).to_be_focused()
    tab.keyboard.press("Enter")
    expect(level(tab, "smoke", "no")).to_have_attribute("aria-pressed", "true")
    tab.keyboard.press("ArrowUp")
    tab.keyboard.press("Shift+Enter")
    expect(tab.get_by_role("button", name="Remove smoke ≠ yes")).to_be_visible()


def class_information(pmf, name, given):
    """Bits that a variable would tell about the hidden class."""
    classes = pmf.classes([given])[0]
    joint = pmf.factors[pmf.domain.index(name)] * classes
    apart = joint.sum(axis=1, keepdims=True) * classes
    held = joint > 0
    return float((joint[held] * np.log2(joint[held] / apart[held])).sum())


def test_search_sort_and_groups(tab, asia_page, asia):
    visit(tab, asia_page)
    names = tab.locator(".card h3")
    tab.get_by_label("Search").fill("ub")
    expect(names).to_have_text(["tub"])
    tab.get_by_label("Search").fill("")
    level(tab, "xray", "yes").click()
    tab.get_by_label("Sort").select_option("change")
    expect(names.first).to_have_text("xray")
    expect(names.nth(1)).to_have_text("either")
    tab.get_by_label("Sort").select_option("information")
    bits = {name: class_information(asia, name, {"xray": "yes"}) for name in asia.domain.names}
    rest = sorted(set(bits) - {"xray"}, key=lambda name: -bits[name])
    expect(names).to_have_text(["xray", *rest])
    tab.get_by_label("Group").select_option("given")
    expect(tab.locator(".group-name")).to_have_text(["Given", "Not given"])


def test_order_of_the_keyboard_follows_that_on_the_screen(tab, asia_page, asia):
    visit(tab, asia_page + "#sort=change")
    level(tab, "xray", "yes").click()
    moved = {
        name: np.abs(asia.marginal(name, given={"xray": "yes"}) - asia.marginal(name)).sum()
        for name in asia.domain.names
    }
    order = sorted(set(moved) - {"xray"}, key=lambda name: -moved[name])
    expect(tab.locator(".card h3")).to_have_text(["xray", *order])
    expect(level(tab, "xray", "yes")).to_be_focused()


def test_hundreds_of_variables_come_as_the_page_is_scrolled(opened):
    rng = np.random.default_rng(0)
    pmf = random_model(rng, 300, 4)
    page = opened(document(pmf))
    cards = page.locator(".card")
    first = cards.count()
    assert first < 300  # the others wait
    given = page.locator(".level").first
    given.click()
    eventually(
        page,
        """() => {
          scrollTo(0, document.body.scrollHeight);
          return document.querySelector('.card[data-n="299"] .level') !== null;
        }""",
    )
    expect(cards).to_have_count(300)
    last = page.get_by_role("group", name="x299", exact=True)
    last.scroll_into_view_if_needed()
    wanted = pmf.marginal("x299", given={"x0": 0})
    np.testing.assert_allclose(list(shares(page, "x299").values()), 100 * wanted, atol=0.051)
    # No card lies upon another, once those that have been built are measured.
    eventually(
        page,
        """() => {
          const cards = [...document.querySelectorAll(".card")];
          const boxes = cards.map((card) => card.getBoundingClientRect());
          return boxes.every((a) =>
            boxes.every((b) => a.left !== b.left || b.top <= a.top || b.top >= a.bottom));
        }""",
    )


def test_a_link_opened_in_the_page_changes_its_choices(tab, asia_page):
    visit(tab, asia_page)
    tab.evaluate("location.hash = '#is.smoke=no&sort=name'")
    expect(tab.locator(".chip")).to_have_count(1)
    expect(tab.get_by_label("Sort")).to_have_value("name")
    expect(tab.locator(".card h3").first).to_have_text("asia")
    expect(tab.locator(".card h3").nth(1)).to_have_text("bronc")
