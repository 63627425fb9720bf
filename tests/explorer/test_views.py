"""Target, table, record, classes and fit: what each view shows, against Python."""

import csv
import io
import re

import numpy as np
import pytest
from page_models import copied, level, random_model, visit

import rejoint as rj
from rejoint.explorer import document
from rejoint.explorer.document import pair_fit, verdict

expect = pytest.importorskip("playwright.sync_api").expect


def percent(text):
    return float(text.strip(" %<>")) / 100


def downloaded(page, name):
    with page.expect_download() as waiting:
        page.get_by_role("button", name=name, exact=True).click()
    return waiting.value


def rows_of(download):
    text = download.path().read_text(encoding="utf-8")
    return list(csv.DictReader(io.StringIO(text)))


def mutual_information(pmf, a, b, given):
    joint = pmf.marginal([a, b], given=given)
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    held = joint > 0
    return float((joint[held] * np.log2(joint[held] / apart[held])).sum())


def test_target_ranks_what_to_ask_next(tab, asia_page, asia):
    given = {"smoke": "yes", "dysp": "yes"}
    visit(tab, asia_page + "#is.smoke=yes&is.dysp=yes&view=target&target=lung")
    others = [name for name in asia.domain.names if name not in {"lung", *given}]
    bits = {name: mutual_information(asia, "lung", name, given) for name in others}
    ranking = tab.locator("section", has_text="Ask next").locator(".ranking")
    names = ranking.locator(".ranking-name")
    expect(names).to_have_text(sorted(others, key=lambda name: -bits[name]))
    shown = ranking.locator(".number").first.inner_text()
    assert float(shown.removesuffix(" bit")) == pytest.approx(max(bits.values()), abs=0.006)
    tab.get_by_role("button", name="xray = yes").click()
    wanted = asia.prob({"lung": "yes"}, given=given | {"xray": "yes"})
    rows = rows_of(downloaded(tab, "CSV"))
    assert float(rows[0]["now"]) == pytest.approx(wanted, abs=1e-9)


def test_target_tells_which_evidence_moved_it(tab, asia_page, asia):
    visit(tab, asia_page + "#is.smoke=yes&is.xray=yes&is.asia=yes&view=target&target=lung")
    moved = tab.locator("section", has_text="What changed it").locator("li")
    given = {"smoke": "yes", "xray": "yes", "asia": "yes"}
    now = asia.prob({"lung": "yes"}, given=given)
    shift = {
        name: abs(now - asia.prob({"lung": "yes"}, {k: v for k, v in given.items() if k != name}))
        for name in given
    }
    order = sorted(shift, key=lambda name: -shift[name])
    expect(moved.locator("bdi")).to_have_text([f"{name} = yes" for name in order])
    expect(moved.first).to_contain_text(f"{100 * now:.1f} % with it")


def test_evidence_that_leaves_a_target_several_levels_is_used(opened):
    rng = np.random.default_rng(3)
    domain = rj.Domain.of({"grade": ["a", "b", "c"], "hint": ["low", "high"]})
    factors = [rng.dirichlet(np.ones(size), 2).T for size in domain.shape]
    pmf = rj.LowRankPMF([0.5, 0.5], factors, domain)
    page = opened(document(pmf), "#not.grade=c&view=target&target=grade")
    expect(
        page.get_by_text("The evidence on the target itself is used: grade ≠ c.")
    ).to_be_visible()
    rows = rows_of(downloaded(page, "CSV"))
    wanted = pmf.marginal("grade", given={"grade": ["a", "b"]})
    np.testing.assert_allclose([float(row["now"]) for row in rows], wanted, atol=1e-9)
    expect(page.locator("section", has_text="Ask next").locator("li")).to_have_count(1)


def test_table_of_two_and_three_variables(tab, asia_page, asia):
    visit(tab, asia_page + "#is.dysp=yes&view=table&of=smoke&of=bronc")
    cells = tab.locator(".heat-table td")
    expect(cells).to_have_count(4)
    wanted = asia.marginal(["smoke", "bronc"], given={"dysp": "yes"})
    shown = [percent(text) for text in cells.all_inner_texts()]
    np.testing.assert_allclose(shown, wanted.ravel(), atol=0.00051)
    tab.get_by_label("Shares").select_option("row")
    shown = [percent(text) for text in cells.all_inner_texts()]
    np.testing.assert_allclose(shown, (wanted / wanted.sum(axis=1)[:, None]).ravel(), atol=0.00051)
    tab.get_by_label("Shares").select_option("joint")
    tab.get_by_label("One table for each").select_option(label="lung")
    expect(tab.locator(".heat-table")).to_have_count(2)
    rows = rows_of(downloaded(tab, "CSV"))
    table = asia.marginal(["lung", "smoke", "bronc"], given={"dysp": "yes"})
    np.testing.assert_allclose([float(row["prob"]) for row in rows], table.ravel(), atol=1e-9)
    assert list(rows[0]) == ["lung", "smoke", "bronc", "prob"]


def test_record_completes_the_evidence(tab, asia_page, asia):
    visit(tab, asia_page + "#is.dysp=yes&is.xray=yes&view=record")
    mode = asia.mode(given={"dysp": "yes", "xray": "yes"})
    rows = {row["variable"]: row for row in rows_of(downloaded(tab, "CSV"))}
    assert {name: rows[name]["value"] for name in mode} == dict(mode)
    expect(tab.locator("#main .note").first).to_contain_text(f"{100 * mode.prob:.1f} %")


def test_record_is_stepped_through_imputed_and_judged(tab, asia_page, asia, patients):
    visit(tab, asia_page + "#view=record&record=1")
    tab.get_by_role("button", name="Most surprising").click()
    number = int(tab.get_by_label("Record, 1 to 2,000").input_value())
    record = dict(zip(patients.names, patients.codes[number - 1], strict=True))
    seen = {name: asia.domain[name].levels[code] for name, code in record.items() if code >= 0}
    rows = {row["variable"]: row for row in rows_of(downloaded(tab, "CSV"))}
    surprising = 0
    for name, value in seen.items():
        rest = {other: level for other, level in seen.items() if other != name}
        expected = asia.prob({name: value}, given=rest)
        assert float(rows[name]["prob"]) == pytest.approx(expected, abs=1e-9)
        assert rows[name]["surprising"] == ("yes" if expected < 0.05 else "")
        surprising += expected < 0.05
    assert surprising > 0
    holes = [name for name in patients.names if name not in seen]
    if holes:
        assert {name: rows[name]["value"] for name in holes} == dict(asia.mode(holes, given=seen))
    tab.get_by_role("button", name="Give its cells").click()
    expect(tab.locator(".chip")).to_have_count(len(seen))


COMPLETIONS = """async (docs) => {
  const { readModel } = await import("./static/model.js");
  const { infer } = await import("./static/inference.js");
  const { mostProbable } = await import("./static/modes.js");
  return docs.map((doc) => {
    const model = readModel(doc).mixture;
    const found = mostProbable(model, infer(model, new Map()), model.variables.map((_, n) => n));
    return [found.levels, found.logProb, found.exact];
  });
}"""


def test_completions_are_the_best_ones(tab, served, asia):
    rng = np.random.default_rng(5)
    models = [random_model(rng, 6, int(rank)) for rank in rng.integers(1, 7, 20)]
    visit(tab, served(document(asia)))
    for pmf, (levels, log_prob, exact) in zip(
        models, tab.evaluate(COMPLETIONS, [document(pmf) for pmf in models]), strict=True
    ):
        dense = pmf.to_dense()
        assert exact
        assert np.exp(log_prob) == pytest.approx(dense.max(), rel=1e-9)
        assert dense[tuple(levels)] == pytest.approx(dense.max(), rel=1e-9)


def test_classes_weights_and_names_that_the_file_keeps(tab, served, asia, tmp_path):
    kept = []
    address = served(document(asia), keep=kept.append)
    visit(tab, address + "#is.smoke=yes&view=classes")
    weights = asia.classes([{"smoke": "yes"}])[0]
    rows = {row["class"]: float(row["now"]) for row in rows_of(downloaded(tab, "CSV"))}
    for f, weight in enumerate(weights):
        assert rows[f"Class {f + 1}"] == pytest.approx(weight, abs=1e-9)
    tab.get_by_label("Name of class 3").fill("Smokers <b>")
    tab.get_by_label("Name of class 3").press("Enter")
    expect(tab.get_by_text("Names saved in the model file.")).to_be_visible()
    assert kept == [["", "", "Smokers <b>", *[""] * 5]]
    tab.reload()
    expect(tab.get_by_label("Name of class 3")).to_have_value("Smokers <b>")


def test_the_mixture_answers_and_classes_are_those_of_the_representative(opened, posterior):
    page = opened(document(posterior), "#is.asia=yes&is.xray=yes&view=classes")
    expect(page.get_by_text("the classes of the representative model")).to_be_visible()
    given = {"asia": "yes", "xray": "yes"}
    weights = posterior.classes([given])[0]
    rows = {row["class"]: float(row["now"]) for row in rows_of(downloaded(page, "CSV"))}
    assert sorted(rows) == [f"Class {f + 1}" for f in range(8)]
    for f, weight in enumerate(weights):
        assert rows[f"Class {f + 1}"] == pytest.approx(weight, abs=1e-9)
    visit(page, page.url.replace("&view=classes", ""))
    found = {(row["variable"], row["level"]): float(row["now"]) for row in downloads(page)}
    for variable in posterior.domain:
        wanted = posterior.mixture.marginal(variable.name, given=given)
        own = posterior.representative.marginal(variable.name, given=given)
        shown = [found[variable.name, level] for level in variable.levels]
        np.testing.assert_allclose(shown, wanted, atol=1e-9)
        assert variable.name in given or np.abs(wanted - own).max() > 1e-6
    visit(page, page.url + "&view=table&of=lung&of=bronc")
    wanted = posterior.mixture.marginal(["lung", "bronc"], given=given)
    shown = [float(row["prob"]) for row in downloads(page)]
    np.testing.assert_allclose(shown, wanted.ravel(), atol=1e-9)
    visit(page, page.url.replace("view=table", "view=record"))
    found = {row["variable"]: row["value"] for row in downloads(page)}
    mode = posterior.mixture.mode(given=given)
    assert {name: found[name] for name in mode} == dict(mode)
    visit(page, page.url.replace("view=record", "view=target&target=lung"))
    wanted = posterior.interval("lung", given=given)
    rows = downloads(page)
    np.testing.assert_allclose([float(row["low"]) for row in rows], wanted.low, atol=1e-9)
    np.testing.assert_allclose([float(row["high"]) for row in rows], wanted.high, atol=1e-9)
    expect(
        page.get_by_text(f"worth about {wanted.effective:.0f} of 40 draws").first
    ).to_be_visible()
    others = [n for n in posterior.domain.names if n not in {"lung", *given}]
    bits = {n: mutual_information(posterior.mixture, "lung", n, given) for n in others}
    names = page.locator("section", has_text="Ask next").locator(".ranking-name")
    expect(names).to_have_text(sorted(others, key=lambda name: -bits[name]))


def downloads(page):
    return rows_of(downloaded(page, "CSV"))


def test_classes_of_an_exported_page_are_named_in_the_browser(opened, asia):
    page = opened(document(asia, class_names=[f"kind {f}" for f in range(8)]), "#view=classes")
    expect(page.get_by_label("Name of class 2")).to_have_value("kind 1")
    page.get_by_label("Name of class 2").fill("mine")
    page.get_by_label("Name of class 2").press("Enter")
    expect(page.get_by_text("Names kept in this browser.")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Name of class 2")).to_have_value("mine")


def test_fit_names_the_tables_that_are_off(opened):
    rng = np.random.default_rng(0)
    coin = rng.integers(0, 2, 400)
    data = {"a": coin, "b": coin, "c": rng.integers(0, 2, 400)}
    apart = rj.LowRankPMF([1.0], [[[0.5], [0.5]]] * 3, rj.Domain.of({"a": 2, "b": 2, "c": 2}))
    fit = pair_fit(apart, data)
    assert fit["tables"][0]["names"] == ["a", "b"]
    assert fit["tables"][0]["distance"] == pytest.approx(0.5, abs=0.05)
    page = opened(document(apart, records=data, fit=fit, verdict=verdict(apart)), "#view=fit")
    first = page.locator(".plain-table tbody tr").first
    expect(first).to_contain_text(re.compile("a . b"))
    expect(page.get_by_text("1 of those listed is off")).to_be_visible()
    expect(page.locator(".verdict")).to_contain_text("no other model of rank 1")
    first.get_by_role("button", name="Show").click()
    expect(page.locator(".heat-table td")).to_have_count(4)


def test_fit_that_the_file_lists_is_shown(opened, asia):
    table = {"names": ["smoke", "lung", "dysp"], "distance": 0.2, "chance": None, "records": 100.0}
    fit = {"tables": [table], "checked": 1, "all": 1}
    page = opened(document(asia, fit=fit, target=["dysp"], record_count=500), "#view=fit")
    row = page.locator(".plain-table tbody tr")
    expect(row).to_contain_text("not known")
    row.get_by_role("button", name="Show").click()
    expect(page.locator(".heat-table")).to_have_count(2)
    page.get_by_role("button", name="Target", exact=True).click()
    expect(page.get_by_text("dysp now")).to_be_visible()
    page.get_by_role("button", name="Variables", exact=True).click()
    level(page, "tub", "yes").click()  # 1.04 % of 500
    expect(page.locator(".facts")).to_contain_text("about 5 of 500 records expected")
    expect(page.locator(".warning")).to_contain_text("Few records (5)")


def test_intervals_are_those_of_the_draws(opened, asia):
    data = asia.sample(300, random_state=0)
    result = rj.estimate(data, rank=2, solver="bayes", random_state=0)
    page = opened(document(result.pmf), "#is.smoke=yes")
    ranges = level(page, "lung", "yes").locator(".range")
    expect(ranges).to_be_visible()
    title = level(page, "bronc", "yes").get_attribute("title")
    low, high = (percent(text) for text in title.split(": ")[0].split(" to "))
    lows, highs = result.pmf.interval("bronc", given={"smoke": "yes"}, level=0.9)
    place = asia.domain["bronc"].levels.index("yes")
    assert low == pytest.approx(lows[place], abs=0.00051)  # one digit of a percent is shown
    assert high == pytest.approx(highs[place], abs=0.00051)
    visit(page, page.url + "&view=fit")
    expect(page.get_by_text("intervals of 40 posterior draws: how certain")).to_be_visible()


def test_pictures_and_clipboard(tab, asia_page, asia):
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit(tab, asia_page + "#not.smoke=no&soft.xray=0.5+1&view=target&target=lung")
    svg = downloaded(tab, "SVG").path().read_text(encoding="utf-8")
    assert svg.startswith("<svg")
    assert "lung" in svg
    assert "var(" not in svg  # colours are written out: the file stands by itself
    assert downloaded(tab, "PNG").path().read_bytes().startswith(b"\x89PNG")
    tab.get_by_role("button", name="Copy Python").click()
    code = copied(tab, "import ")
    given = {"smoke": "yes", "xray": np.array([0.5, 1.0])}
    scope = {}
    code = code.replace('p = rj.load("asia.rejoint")', "p = rj.datasets.asia()")
    *lines, last = code.strip().splitlines()
    exec("\n".join(lines), scope)
    table = eval(last, scope)
    np.testing.assert_allclose(table.to_numpy(), asia.marginal("lung", given=given))
    tab.get_by_role("button", name="Copy command").click()
    command = copied(tab, "rejoint ask asia.rejoint '")
    question = command.split("'")[1]
    answer = asia.ask(question)
    np.testing.assert_allclose(answer.value, asia.marginal("lung", given=given))


@pytest.mark.parametrize(
    "view", ["variables", "target", "table", "record", "classes", "fit", "ask"]
)
def test_views_are_accessible_and_fit_a_phone(tab, asia_page, view):
    from test_access import violations

    tab.set_viewport_size({"width": 390, "height": 844})
    visit(tab, asia_page + f"#is.smoke=yes&is.dysp=yes&record=7&ask=P(lung|smoke)&view={view}")
    assert violations(tab) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    share = tab.get_by_role("group", name="Export this view")
    wanted = ["Copy Python", "Copy command", "CSV", "SVG", "PNG"]
    missing = set(wanted) - set(share.get_by_role("button").all_inner_texts())
    assert not missing
    expect(tab.locator(".tab[aria-current]")).to_be_in_viewport(ratio=1)  # though tabs scroll
