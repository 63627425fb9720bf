"""The exported file: one file, offline, the same answers; hostile and odd models."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from page_models import level, visit

import rejoint as rj
from rejoint.explorer import document, page
from rejoint.explorer.document import pair_fit, table_fit
from rejoint.explorer.page import assets

expect = pytest.importorskip("playwright.sync_api").expect

SCRIPTS = {name: text for name, text in assets().items() if name.endswith(".js")}


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_use_only_what_the_bundle_understands(name):
    for line in SCRIPTS[name].splitlines():
        if re.match(r"\s*(import|export)\b", line):
            assert re.match(
                r'^(import \{[^}]*\} from "\./[a-z_]+\.js";|import \{|'
                r"export (async function|function|class|const) \w+)",
                line,
            ), line


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_never_make_markup_or_code_of_text(name):
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    assert not re.search(forbidden, SCRIPTS[name])
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", SCRIPTS[name])


def test_the_same_model_makes_the_same_page():
    code = (
        "import rejoint as rj\nfrom rejoint.explorer import document, page\n"
        "print(page(document(rj.datasets.asia())))"
    )
    made = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONUTF8": "1"},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert made[0] == made[1]


def test_offline_page_works_and_asks_for_nothing(opened, asia):
    seen = []
    show = opened(document(asia, title="Asia"))
    show.on("request", lambda request: seen.append(request.url))
    show.reload()
    level(show, "smoke", "yes").click()
    expect(level(show, "lung", "yes").locator(".value")).to_have_text("10.0 %")
    assert [url for url in seen if not url.startswith(("file:", "data:"))] == []


def test_served_page_asks_only_its_own_server(tab, served, asia):
    seen = []
    tab.on("request", lambda request: seen.append(request.url))
    address = served(document(asia, title="Asia"))
    visit(tab, address)
    level(tab, "smoke", "yes").click()
    expect(level(tab, "lung", "yes").locator(".value")).to_have_text("10.0 %")
    assert len(seen) > 10
    assert [url for url in seen if not url.startswith((address, "data:"))] == []


HOSTILE = [
    "<script>globalThis.broken = 1</script>",
    "</script><img src=x onerror='globalThis.broken = 1'>",
    "\u202eright to left\u202c",
    "a & b 'c' \"d\" `e` ${f} \u2028 \x00",
    "שלום",
]


def test_labels_from_data_are_text(opened):
    domain = rj.Domain.of({name: HOSTILE for name in HOSTILE})
    rng = np.random.default_rng(0)
    pmf = rj.LowRankPMF([0.4, 0.6], [rng.dirichlet(np.ones(5), 2).T for _ in range(5)], domain)
    names = ["<b>bold</b>", "</title>"]
    show = opened(document(pmf, title="<script>x</script>", class_names=names))
    cards = show.locator(".card h3")
    expect(cards).to_have_count(5)
    assert cards.all_text_contents() == HOSTILE
    show.locator(".level").first.click()
    expect(show.locator(".chip")).to_contain_text("<script>")
    assert show.title() == "<script>x</script> · rejoint"
    assert show.evaluate("globalThis.broken") is None
    assert show.locator("script").count() == page(document(pmf)).count("<script")
    expect(show).to_have_url(re.compile("#is"))
    link = show.url
    show.goto("about:blank")
    visit(show, link)
    expect(show.locator(".chip")).to_have_count(1)


def test_thousands_of_levels_are_shown_in_parts(opened):
    domain = rj.Domain.of({"word": [f"w{i}" for i in range(5_000)], "kind": ["a", "b"]})
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.ones(size), 3).T for size in domain.shape]
    show = opened(document(rj.LowRankPMF([0.2, 0.3, 0.5], factors, domain)))
    rows = show.get_by_role("group", name="word", exact=True).locator(".level")
    expect(rows).to_have_count(12)
    show.get_by_role("button", name="Show more of 4,988").click()
    expect(rows).to_have_count(112)
    show.get_by_label("Search").fill("w4321")
    level(show, "word", "w4321").click()
    expect(show.get_by_role("button", name="Remove word = w4321")).to_be_visible()


def odd(change):
    plain = document(rj.datasets.asia())
    change(plain)
    return plain


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(schema=99), "schema version 99"),
        (lambda d: d.update(format="something"), "not a model"),
        (lambda d: d.update(variables=[], factors=[]), "no variables"),
        (lambda d: d.update(weights=[], factors=[]), "no classes"),
        (lambda d: d.update(factors=[0.5, 0.5]), "damaged"),
        (lambda d: d.pop("weights"), "no readable weights"),
        (lambda d: d.update(variables=[{"name": "x"}]), "could not be shown"),
    ],
)
def test_what_cannot_be_shown_is_a_message(browser, tmp_path, change, words):
    from rejoint.explorer import write_page

    path = tmp_path / "odd.html"
    write_page(path, odd(change))
    show = browser.new_page()
    show.goto(path.as_uri())
    expect(show.get_by_role("alert")).to_contain_text(words)
    show.close()


def test_tables_of_files_and_of_records_are_listed_by_excess_over_chance():
    truth = rj.datasets.asia()
    tables = rj.Marginals.count(truth.sample(200, random_state=0), order=2)
    alone = [truth.marginal([name])[:, None] for name in truth.domain.names]
    other = rj.LowRankPMF([1.0], alone, truth.domain)
    listed = table_fit(tables, tables.compare(other))["tables"]
    gaps = [table["distance"] - table["chance"] for table in listed]
    assert gaps == sorted(gaps, reverse=True)
    distances = [table["distance"] for table in listed]
    assert distances != sorted(distances, reverse=True)
    again = pair_fit(other, truth.sample(200, random_state=0))["tables"]
    assert {tuple(t["names"]) for t in again} >= {tuple(t["names"]) for t in listed[:5]}
    gaps = [table["distance"] - table["chance"] for table in again]
    assert gaps == sorted(gaps, reverse=True)


@pytest.mark.filterwarnings("ignore:Of 30 starts")
def test_the_page_lists_the_gaps_that_the_fit_names():
    # Half of x1 is missing where x0 is small: shares of the records that hold both are biased.
    rng = np.random.default_rng(0)
    x0 = rng.integers(0, 8, 4000)
    x1 = (x0 + rng.integers(0, 2, 4000)) % 8
    rows = np.stack([x0, x1, rng.integers(0, 3, 4000)], axis=1).astype(float)
    rows[(rng.random(4000) < 0.5) & (x0 < 4), 1] = np.nan
    records = rj.Records.of(rows)
    pmf = rj.estimate(records, rank=2, solver="map", random_state=0).pmf
    shown = {tuple(table["names"]): table for table in pair_fit(pmf, records)["tables"]}
    assert pmf.gaps
    for gap in pmf.gaps:
        if len(gap.names) == 2:
            table = shown[gap.names]
            assert table["distance"] == pytest.approx(gap.distance, rel=1e-6)
            assert table["chance"] == pytest.approx(gap.chance, rel=1e-6)
