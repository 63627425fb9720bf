"""Explorer: time from a click to new bars, in a real browser, and of a page's first bars.

    python benchmarks/explorer.py            # needs playwright and Chromium

A click is timed from its dispatch to the moment when style and layout of the new bars are done,
which is all that the page itself has a say in; the frame is then painted at the next refresh.
"""

import os
import shutil
import statistics
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

import rejoint as rj
from rejoint.explorer import document, write_page

SETTINGS = [((200, 6, 50), 16), ((2_000, 10, 100), 100)]
SORTS = ["", "change", "information"]
CLICKS = 40

TIMES = """async (clicks) => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const times = [];
  for (let k = 0; k < clicks; k++) {
    const rows = document.querySelectorAll(".level");
    const row = rows[(k * 7) % Math.min(rows.length, 100)];
    await frame();
    await frame();
    const start = performance.now();
    row.click();
    document.body.offsetHeight;
    times.push(performance.now() - start);
  }
  return times;
}"""


def model(variables: int, levels: int, rank: int) -> rj.LowRankPMF:
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.full(levels, 0.5), rank).T for _ in range(variables)]
    return rj.LowRankPMF(rng.dirichlet(np.ones(rank)), factors)


def main() -> None:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        print("There is no Chromium on this machine: apt-get install chromium")
        return
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        head = f"{'variables x levels x rank':26} {'sorted by':12}"
        print(f"{head} {'ms: least':>9} {'median':>7} {'90 %':>6}")
        for shape, goal in SETTINGS:
            file = Path(folder, "page.html")
            write_page(file, document(model(*shape)))
            for sort in SORTS:
                page = browser.new_page(viewport={"width": 1600, "height": 1000})
                page.goto(f"{file.as_uri()}#sort={sort}")
                page.wait_for_selector(".level")
                times = sorted(page.evaluate(TIMES, CLICKS))
                middle, late = statistics.median(times), times[int(0.9 * CLICKS)]
                name = " x ".join(f"{size:,}" for size in shape)
                figures = f"{times[0]:9.1f} {middle:7.1f} {late:6.1f}"
                print(f"{name:26} {sort or 'file':12} {figures}   goal {goal}")
                page.close()
        browser.close()


if __name__ == "__main__":
    main()
