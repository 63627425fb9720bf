"""Explorer: time from a click to new bars, in a real browser, and of a page's first bars.

    python benchmarks/explorer.py            # needs playwright and Chromium

A click is timed from its dispatch to the moment when style and layout of the new bars are done,
which is all that the page itself has a say in; the frame is then painted at the next refresh. The
last column is the processor time of scripts, style and layout for such a click, as Chromium counts
it over many in a row: it grows little with what else the machine has to do.
"""

import os
import shutil
import statistics
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright

import rejoint as rj
from rejoint.explorer import document, write_page

# Variables, levels, classes, posterior draws; milliseconds that are asked for.
SETTINGS = [((200, 6, 50, 0), 16), ((200, 6, 50, 40), 16), ((2_000, 10, 100, 0), 100)]
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


IN_A_ROW = """(clicks) => {
  const rows = [...document.querySelectorAll(".level")].slice(0, 100);
  for (let k = 0; k < clicks; k++) {
    rows[(k * 7) % rows.length].click();
    document.body.offsetHeight;
  }
}"""
WORK = ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")


def model(variables: int, levels: int, rank: int, draws: int = 0) -> rj.LowRankPMF:
    rng = np.random.default_rng(0)

    def drawn() -> rj.LowRankPMF:
        factors = [rng.dirichlet(np.full(levels, 0.5), rank).T for _ in range(variables)]
        return rj.LowRankPMF(rng.dirichlet(np.ones(rank)), factors)

    pmf = drawn()
    others = [drawn() for _ in range(draws)]
    return rj.LowRankPMF(pmf.weights, pmf.factors, pmf.domain, others)


def processor_time(page: Page) -> float:
    """Milliseconds of the page's thread for a click."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def work() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return 1_000 * sum(m["value"] for m in metrics if m["name"] in WORK)

    before = work()
    page.evaluate(IN_A_ROW, CLICKS)
    return (work() - before) / CLICKS


def main() -> None:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        print("There is no Chromium on this machine: apt-get install chromium")
        return
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        head = f"{'variables x levels x rank':28} {'sorted by':12}"
        print(f"{head} {'ms: least':>9} {'median':>7} {'90 %':>6} {'processor':>10}")
        for shape, goal in SETTINGS:
            file = Path(folder, "page.html")
            write_page(file, document(model(*shape)))
            for sort in SORTS:
                page = browser.new_page(viewport={"width": 1600, "height": 1000})
                page.goto(f"{file.as_uri()}#sort={sort}")
                page.wait_for_selector(".level")
                times = sorted(page.evaluate(TIMES, CLICKS))
                middle, late = statistics.median(times), times[int(0.9 * CLICKS)]
                work = processor_time(page)
                name = " x ".join(f"{size:,}" for size in shape[:3]) + ", draws" * bool(shape[3])
                figures = f"{times[0]:9.1f} {middle:7.1f} {late:6.1f} {work:10.1f}"
                print(f"{name:28} {sort or 'file':12} {figures}   goal {goal}", flush=True)
                page.close()
        browser.close()


if __name__ == "__main__":
    main()
