"""Accessibility by axe-core, in both themes, at three widths; colours at the first paint."""

from importlib.resources import files

import pytest
from page_models import level, visit

pytest.importorskip("axe_playwright_python")
expect = pytest.importorskip("playwright.sync_api").expect

AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
RUN = """async () => (await axe.run()).violations
  .map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.map((n) => n.html).slice(0, 3)}`)"""


def violations(page):
    page.evaluate(AXE)
    return page.evaluate(RUN)


@pytest.mark.parametrize(("theme", "width"), [("light", 1600), ("dark", 900), ("light", 390)])
def test_axe_finds_nothing(tab, asia_page, theme, width):
    tab.emulate_media(color_scheme=theme, reduced_motion="reduce")
    tab.set_viewport_size({"width": width, "height": 900})
    visit(tab, asia_page + "#is.smoke=yes&not.dysp=no&soft.xray=0.3+1&is.tub=yes")
    level(tab, "bronc", "yes").focus()
    assert violations(tab) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_theme_can_be_chosen_and_is_kept_before_the_first_paint(tab, asia_page):
    tab.emulate_media(color_scheme="light")
    visit(tab, asia_page)
    ground = "getComputedStyle(document.body).backgroundColor"
    light = tab.evaluate(ground)
    button = tab.get_by_role("button", name="Theme")
    button.click()
    button.click()
    expect(button).to_have_text("Theme: Dark")
    dark = tab.evaluate(ground)
    assert dark != light
    # Before anything is shown: only the early script has a say in it.
    tab.add_init_script(
        "addEventListener('DOMContentLoaded', () => {"
        " globalThis.early = getComputedStyle(document.body).backgroundColor })"
    )
    tab.reload()
    assert tab.evaluate("globalThis.early") == dark


def test_changes_are_announced(tab, asia_page):
    visit(tab, asia_page)
    level(tab, "smoke", "yes").click()
    expect(tab.locator("#announcer")).to_contain_text("smoke = yes")
    expect(tab.locator("#announcer")).to_contain_text("50.0 %")
