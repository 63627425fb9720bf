"""The report: self-contained, whatever the labels are."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import rejoint as rj
from rejoint.cli.report import page, sections

EVIL = "<script>alert('1')</script>&\"'"


class Reader(HTMLParser):
    """Tags that are open, in order; faults where they do not nest."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.links, self.text = [], set(), [], []

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href")]
        if tag not in ("meta", "rect", "circle", "polyline"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def written(pmf, notes, records=None, fit=None):
    text = page(EVIL, EVIL, sections(pmf, notes, records, fit, f"{EVIL}.rejoint"), "")
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    return text, reader


@pytest.fixture(scope="module")
def hostile():
    domain = rj.Domain.of({EVIL: [EVIL, "b"], "x": [EVIL, "c", "\x1b[31m"], "y": ["u", "v"]})
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.ones(n), 2).T for n in domain.shape]
    return rj.LowRankPMF([0.4, 0.6], factors, domain)


def test_labels_cannot_leave_their_place(hostile):
    notes = {"class_names": [EVIL, "b"], "choice": EVIL, "stop": EVIL, "source": EVIL}
    fit = {"tables": [{"names": [EVIL, "x"], "distance": 0.1, "chance": None, "records": 5.0}]}
    records = hostile.sample(50, random_state=0)
    text, reader = written(hostile, notes, records, fit | {"checked": 1, "all": 1})
    assert "script" not in reader.seen
    assert "\x1b" not in text
    assert any(EVIL in part for part in reader.text)


def test_nothing_is_fetched_and_no_script_is_needed(hostile):
    text, reader = written(hostile, {})
    assert all(link.startswith("#") for link in reader.links)
    assert "http" not in re.sub("http-equiv", "", text)
    assert not {"script", "link", "img", "iframe", "object"} & reader.seen
    assert "url(" not in text
    assert "@import" not in text
    assert "prefers-color-scheme:dark" in text


def test_a_bare_model_has_a_report(hostile):
    _, reader = written(hostile, {})
    titles = " ".join(reader.text)
    for title in ("Data", "Number of classes", "Identifiability", "Classes", "Dependence"):
        assert title in titles
    assert "Empty cells" not in titles
    assert "Fit to tables" not in titles


def test_numbers_are_those_of_the_model(hostile):
    _, reader = written(hostile, {})
    share = hostile.marginal(["y"])[0]
    assert f"{share:.1%}" in reader.text


def test_the_curve_shows_every_rank(hostile):
    told = {"rank": 2, "ranks": [1, 2, 3], "scores": [-3.0, -2.0, -2.01], "errors": [0.1, 0, 0.02]}
    text, _ = written(hostile, {"rank_curve": told | {"tied": [2, 3], "criterion": "heldout"}})
    assert text.count("<circle") == 3
    assert text.count('class="chosen"') == 1
    assert text.count('class="tied"') == 1


def test_many_levels_classes_and_variables_are_cut():
    rng = np.random.default_rng(0)
    shape = [40] + [2] * 40
    pmf = rj.LowRankPMF(np.full(30, 1 / 30), [rng.dirichlet(np.ones(n), 30).T for n in shape], None)
    text, reader = written(pmf, {})
    assert "and 28 more" in reader.text
    assert "14 smaller classes are not shown." in reader.text
    assert len(text) < 300_000


def test_the_order_that_is_told_is_that_of_the_tables(hostile):
    def table(distance, chance):
        return {"names": ["x", "y"], "distance": distance, "chance": chance, "records": 9.0}

    by_distance = [table(0.3, None), table(0.2, 0.05), table(0.1, 0.06)]
    by_excess = [table(0.2, 0.05), table(0.3, 0.25), table(0.1, 0.09)]
    for tables, order, over in (
        (by_distance, "largest distance first", "1 of 2 tables differ"),
        (by_excess, "largest excess over chance first", "1 of 3 tables differ"),
    ):
        text, _ = written(hostile, {}, fit={"tables": tables, "checked": 3, "all": 3})
        assert f"of 3 compared, {order}." in text
        assert f"{over} by more than twice the average distance by chance." in text
