"""The Fit view shows each table as it was read, beside what the model gives."""

import json

import numpy as np
import pytest

import rejoint as rj
from rejoint.explorer import document
from rejoint.explorer.open import Opened
from rejoint.explorer.table_as_read import MOST_GIVEN_CELLS, plain_as_read
from rejoint.io.fit_notes import fit_notes
from rejoint.marginals.read.table_files import read_files
from rejoint.text import format_number

expect = pytest.importorskip("playwright.sync_api").expect


@pytest.fixture(scope="module")
def downloads():
    """The town's tables as they are downloaded, with cells that were held back."""
    folder = rj.datasets.town_downloads()
    tables = rj.Marginals.read(folder)
    notes = fit_notes(tables=tables, readings=read_files(folder).readings)
    return Opened(rj.factorize(tables).pmf, title="Town", notes=notes)


def block(page, *names):
    title = " \u00d7 ".join(names)
    return page.locator("details.given", has=page.locator(f"summary bdi:text-is('{title}')"))


def cells_of(table):
    return [
        [cell.inner_text() for cell in row.locator("td").all()]
        for row in table.locator("tbody tr").all()
    ]


def test_the_page_writes_what_python_has_read(node, downloads):
    document = downloads.document()
    for table, rows in zip(document["given"]["tables"], node("given", document), strict=True):
        shown = [cell for row in rows for cell in row["cells"]]
        assert len(shown) == len(table["cells"])
        for at, (cell, number) in enumerate(zip(shown, table["cells"], strict=True)):
            text = table["not_given"].get(str(at))
            assert cell["hidden"] == (text is not None)
            assert cell["given"] == (text or format_number(number))


def test_a_table_opens_with_given_numbers_beside_the_models(opened, town):
    page = opened(document(town, title="Town"), "#view=fit")
    assert page.locator("details.given").count() == 6
    assert page.locator("details.given table").count() == 0  # made when it is opened
    box = block(page, "Age", "Work")
    box.locator("summary").click()
    expect(box.get_by_text("Counts, 21,500 in all.")).to_be_visible()
    table = box.get_by_role("table", name="Age by Work: given, and by the model")
    given = town.tables.marginals["Age", "Work"]
    model = town.marginal(["Age", "Work"]) * 21_500
    numbers = [[float(text.replace(",", "")) for text in row] for row in cells_of(table)]
    np.testing.assert_allclose(np.array(numbers)[:, 0::2], given)
    np.testing.assert_allclose(np.array(numbers)[:, 1::2], model, atol=0.51)
    heads = table.locator("thead th[scope=colgroup]").all_inner_texts()
    assert heads == ["Work", *town.domain["Work"].levels]
    assert table.locator("tbody th[scope=row]").all_inner_texts() == [*town.domain["Age"].levels]


def test_cells_held_back_are_marked_with_their_bounds(opened, downloads):
    page = opened(downloads.document(), "#view=fit&is.Work=Student")  # whatever the evidence
    box = block(page, "Pass", "Work")
    box.locator("summary").click()
    expect(box.locator(".note")).to_have_text(
        "Counts, 21,500 in all, read from table6_season_tickets.csv. 4 cells are not given."
    )
    marked = ["0 to 385", "1,945 to 2,330", "0 to 385", "135 to 520"]
    expect(box.locator(".hidden-cell")).to_have_text([f"not given, {text}" for text in marked])


def test_a_table_of_one_variable_and_rounding(opened):
    tables = rj.Marginals.from_tables({"a": {"x": 10, "y": 30}}, rounded=5)
    p = rj.LowRankPMF([1.0], [[[0.3], [0.7]]], tables.domain).with_tables(tables)
    page = opened(document(p), "#view=fit")
    box = block(page, "a")
    expect(box.locator("summary")).to_contain_text("off by 5.0 %")
    box.locator("summary").click()
    expect(box.get_by_text("each may be off by up to 5.")).to_be_visible()
    assert cells_of(box) == [["10", "12"], ["30", "28"]]


def test_beyond_the_room_of_a_page_tables_are_left_out(opened):
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.ones(60), 2).T for _ in range(5)]
    p = rj.LowRankPMF([0.5, 0.5], factors)
    p = p.with_tables(rj.Marginals.from_pmf(p, order=2))
    plain = plain_as_read(p)
    assert sum(len(table["cells"]) for table in plain["tables"]) <= MOST_GIVEN_CELLS
    assert (len(plain["tables"]), plain["left"]) == (5, 5)
    doc = document(rj.datasets.asia()) | {"given": {"tables": [], "left": 5}}
    page = opened(doc, "#view=fit")
    expect(page.get_by_text("5 further tables are left out of this page")).to_be_visible()


def test_models_from_records_have_none(opened, asia):
    plain = document(asia)
    assert "given" not in plain
    page = opened(plain, "#view=fit")
    assert page.get_by_role("heading", name="Tables as given").count() == 0


def test_labels_stay_text(opened):
    name, level = "<b>a</b>", "<img src=x onerror=alert(1)>"
    tables = rj.Marginals.from_tables(
        {(name, "b"): {(level, "y"): 1, ("z", "y"): 2, ("z", "w"): 3}}
    )
    p = rj.factorize(tables).pmf
    page = opened(document(p), "#view=fit")
    page.locator("details.given summary").click()
    expect(page.locator("details.given tbody th").first).to_have_text(level)
    assert page.locator("details.given img, details.given b").count() == 0
    assert json.loads(json.dumps(document(p)["given"])) == document(p)["given"]
