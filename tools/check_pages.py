"""Measure built pages in Chromium: nothing wider than the window, searches land, no errors.

``python -m tools.check_pages docs/_build/html`` opens every page at 1440 pixels, lists those that
scroll sideways and the blocks of code that are cut, then searches for what newcomers look for.
"""

import functools
import http.server
import os
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

WIDTH = 1440

#: What is searched, and the page that must be among the first three.
SEARCHES = {
    "quickstart": "start/quickstart",
    "contingency table": "tutorials/published-tables",
    "latent class analysis": "tutorials/latent-classes",
    "conditional independence": "explanation/model",
}

#: Widths that stand out of their column without a scroll bar of their own.
OVERFLOW = """() => {
  const wide = [];
  if (document.documentElement.scrollWidth > window.innerWidth) wide.push("the page");
  for (const block of document.querySelectorAll("pre, table, .math, img")) {
    let box = block, scrolls = false;
    while (box && box !== document.body) {
      if (["auto", "scroll"].includes(getComputedStyle(box).overflowX)) { scrolls = true; break; }
      box = box.parentElement;
    }
    const article = document.querySelector("article") || document.body;
    const right = article.getBoundingClientRect().right;
    if (!scrolls && block.getBoundingClientRect().right > right + 1)
      wide.push(block.tagName + " " + block.textContent.slice(0, 40).trim());
  }
  const cut = [...document.querySelectorAll("pre")].filter(p => p.scrollWidth > p.clientWidth + 1);
  return [wide, cut.length, document.querySelectorAll("pre").length];
}"""


def serve(folder: Path) -> str:
    """Serve a folder on this machine; return its address."""
    handler = functools.partial(Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server that does not print requests."""

    def log_message(self, *args: Any) -> None:
        """Print nothing."""


def check_width(tab: Any, root: str, folder: Path) -> list[str]:
    """Open every page; return those with something too wide."""
    found, cut, blocks = [], 0, 0
    for path in sorted(folder.rglob("*.html")):
        name = path.relative_to(folder).as_posix()
        if name.startswith(("_static", "paper/report")):
            continue
        tab.goto(f"{root}/{name}")
        wide, narrow, count = tab.evaluate(OVERFLOW)
        cut, blocks = cut + narrow, blocks + count
        if wide:
            found.append(f"{name}: {'; '.join(wide[:3])}")
    print(f"{cut} of {blocks} blocks of code scroll at {WIDTH} pixels")
    return found


def check_searches(tab: Any, root: str) -> list[str]:
    """Search; return what does not lead to its page."""
    lost = []
    for words, page in SEARCHES.items():
        tab.goto(f"{root}/search.html?q={words.replace(' ', '+')}")
        tab.wait_for_selector("ul.search li a", timeout=20_000)
        tab.wait_for_timeout(500)
        links = tab.eval_on_selector_all(
            "ul.search li > a", "links => links.slice(0, 3).map(a => a.getAttribute('href'))"
        )
        print(f"{words}: {', '.join(link.split('?')[0] for link in links)}")
        if not any(page in link for link in links):
            lost.append(f"the search for {words!r} does not lead to {page}")
    return lost


def main() -> None:
    """Check the pages in the folder that is named."""
    from playwright.sync_api import sync_playwright

    folder = Path(sys.argv[1])
    root = serve(folder)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    flags = ["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        tab = browser.new_page(viewport={"width": WIDTH, "height": 900})
        problems = [*check_width(tab, root, folder), *check_searches(tab, root)]
        browser.close()
    print("\n".join(problems) or "nothing is too wide, and searches land")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
