"""The report: the page for reading and printing, whatever the labels are."""

import numpy as np
import pytest
from test_page_blocks import wide

import rejoint as rj
from rejoint.cli.report import print_view
from rejoint.explorer.page import page

EVIL = "<script>alert('1')</script>&\"'"


@pytest.fixture(scope="module")
def hostile():
    domain = rj.Domain.of({EVIL: [EVIL, "b"], "x": [EVIL, "c", "\x1b[31m"], "y": ["u", "v"]})
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.ones(n), 2).T for n in domain.shape]
    return rj.LowRankPMF([0.4, 0.6], factors, domain)


@pytest.fixture
def read(opened):
    """The text of the report of a model."""

    def show(pmf, notes, records=None, fit=None):
        tab = opened(print_view(pmf, notes, records, fit, "Title", f"{EVIL}.rejoint"))
        return tab, " ".join(tab.locator("#main").text_content().split())

    return show


def test_labels_cannot_leave_their_place(read, hostile):
    notes = {"class_names": [EVIL, "b"], "choice": EVIL, "stop": EVIL, "source": EVIL}
    fit = {"tables": [{"names": [EVIL, "x"], "distance": 0.1, "chance": None, "records": 5.0}]}
    records = hostile.sample(50, random_state=0)
    tab, text = read(hostile, notes, records, fit | {"checked": 1, "all": 1})
    assert EVIL in text
    assert "50 records: lines on the bars" in text
    assert tab.locator("#main script").count() == 0


def test_a_bare_model_has_a_report(read, hostile):
    tab, text = read(hostile, {})
    for title in ("Data", "Number of classes", "What the tables determine", "Class profiles"):
        assert title in text
    assert "Empty cells" not in text
    for name in hostile.domain.names:
        for share in hostile.marginal(name):
            assert f"{100 * share:.1f} %" in text
    assert [box.get_attribute("placeholder") for box in tab.locator(".class-name").all()] == [
        "Class 2",
        "Class 1",
    ]


def test_every_rank_and_empty_cells_are_listed(read, hostile):
    told = {"rank": 2, "ranks": [1, 2, 3], "scores": [-3.0, -2.0, -2.01], "errors": [0.1, 0, 0.02]}
    notes = {"rank_curve": told | {"tied": [2, 3], "criterion": "heldout"}}
    tab, text = read(hostile, notes | {"missing": {"x": 0.25, "y": 0.125}})
    rows = tab.get_by_role("region", name="Scores").locator("tbody tr").all_text_contents()
    assert rows == ["1-30.1", "2-20chosen", "3-2.010.02not worse than it"]
    assert "18.8% of the cells are empty." in text
    assert "12.5 %" in text


def test_many_levels_classes_and_variables_are_cut(read):
    rng = np.random.default_rng(0)
    shape = [40] + [2] * 40
    pmf = rj.LowRankPMF(np.full(30, 1 / 30), [rng.dirichlet(np.ones(n), 30).T for n in shape], None)
    tab, text = read(pmf, {})
    assert "40 levels; 28 are not shown" in text
    assert tab.get_by_role("region", name="Class profiles").locator("rect").count() == 16 * (
        12 + 46
    )
    assert "The 16 largest of 30." in text
    assert "Dependence" not in text


def test_parts_of_an_average_are_no_classes_and_blocks_are_listed(read):
    pmf = wide(np.random.default_rng(0), 3, blocks=2, levels=3, lone=1)
    tab, text = read(pmf, {"classes_are_groups": False})
    assert "The model has 3 classes: parts of an average, not groups of records." in text
    assert "Class profiles" not in text
    assert tab.get_by_role("region", name="Blocks").locator("tbody tr").count() == 2


def test_tables_are_open_and_neither_draws_nor_ranges_are_in_it(opened, town, posterior):
    plain = print_view(town, {}, None, None, "Town", "town.rejoint")
    assert "tables" not in plain
    first = opened(plain).locator("details").first
    first.locator("td").first.wait_for(state="visible")
    plain = print_view(posterior, {}, None, None, "Asia", "asia.rejoint")
    assert "draws" not in plain
    assert "mixture" in plain
    assert len(page(plain)) < 400_000
