"""Printed figures are the stored ones; pages keep within their kind."""

import json
import re
from pathlib import Path

import pytest
from tools import stored_figures

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [
    page
    for page in sorted(DOCS.rglob("*.rst"))
    if not {"_build", "gallery", "generated"} & set(page.relative_to(DOCS).parts)
]


def test_printed_figures_are_stored():
    texts = [
        text for page in PAGES for text in re.findall(r":figure:`([^`]+)`", page.read_text("utf-8"))
    ]
    assert texts
    for text in texts:
        stored_figures.shown(text)  # raises where it is not what is stored


def test_a_figure_that_is_not_stored_is_refused():
    value = stored_figures.look_up("models/intervals held")
    assert stored_figures.shown(f"{value:.2f} <models/intervals held>") == f"{value:.2f}"
    with pytest.raises(ValueError, match="is printed"):
        stored_figures.shown(f"{value + 0.02:.2f} <models/intervals held>")
    with pytest.raises(ValueError, match="has no figure"):
        stored_figures.shown("models/nothing")


def test_tables_of_figures_name_groups_that_exist():
    groups = json.loads((ROOT / "benchmarks" / "figures.json").read_text())
    named = {
        group
        for page in PAGES
        for line in re.findall(r"\.\. figures:: (.+)", page.read_text("utf-8"))
        for group in line.split()
    }
    assert named == set(groups) == set(stored_figures.MEASURES)


@pytest.mark.parametrize("page", sorted((DOCS / "howto").glob("*.rst")), ids=lambda page: page.stem)
def test_a_guide_is_short(page):
    assert len(page.read_text("utf-8").split()) <= 900


#: Words of advertising, and of a private dialect.
UNWANTED = re.compile(
    r"\b(blazing|seamless(ly)?|leverag(e|es|ing)|utiliz\w+|state-of-the-art|powerful|obviously|simply"
    r"|glimpse|heed|betray\w*|lo and behold|best-in-class|cutting-edge|easily|effortless\w*)\b",
    re.IGNORECASE,
)


def test_pages_keep_to_plain_words():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]
    found = [
        f"{page.name}: {match[0]}"
        for page in pages
        for match in UNWANTED.finditer(page.read_text("utf-8"))
        if "paper" not in page.parts
    ]
    assert found == []
