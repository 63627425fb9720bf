"""Code blocks of the docs run, and print what stands below them."""

from pathlib import Path

import pytest
import snippets

DOCS = Path(__file__).parents[1] / "docs"
PAGES = {
    page.relative_to(DOCS).as_posix(): page
    for page in sorted(DOCS.rglob("*.rst"))
    if not {"_build", "gallery", "generated"} & set(page.parts)
    and any(block.language == "python" for block in snippets.blocks(page))
}


@pytest.mark.parametrize("name", PAGES)
def test_code_prints_what_is_shown(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert snippets.run(PAGES[name]) > 0
