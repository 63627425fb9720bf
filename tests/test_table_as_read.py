"""Tables as they were read beside the model's: what report and page show of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rejoint as rj
from rejoint.explorer.table_as_read import plain_as_read
from rejoint.io.fit_notes import fit_notes
from rejoint.marginals.read.table_files import read_files
from rejoint.marginals.unknown import UnknownCells

NAN = float("nan")
PAIRS = {("a", "b"): [[10, 20], [30, 40]], ("b", "c"): [[10, 30], [20, 40]]}


@pytest.fixture(scope="module")
def downloads():
    folder = rj.datasets.town_downloads()
    tables = rj.Marginals.read(folder)
    notes = fit_notes(tables=tables, readings=read_files(folder).readings)
    return rj.factorize(tables).pmf, notes["tables"]


def test_every_table_says_its_file_and_kind(downloads):
    plain = plain_as_read(*downloads)
    assert plain["left"] == 0
    texts = [table["text"] for table in plain["tables"]]
    files = [
        "district_travel.px",
        "housing_sdmx.csv",
        "pass_travel.json",
        "table1_age_education.csv",
        "table2_age_work.tsv",
        "table6_season_tickets.csv",
    ]
    assert all(f"read from {name}." in text for name, text in zip(files, texts, strict=True))
    assert texts[0] == "Counts, 21,500 in all, read from district_travel.px."
    assert texts[-1].endswith("read from table6_season_tickets.csv. 4 cells are not given.")


def test_what_is_not_given_has_the_bounds_of_its_sums(downloads):
    assert list(plain_as_read(*downloads)["tables"][-1]["not_given"].values()) == [
        "not given, 0 to 385",
        "not given, 1,945 to 2,330",
        "not given, 0 to 385",
        "not given, 135 to 520",
    ]


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        ((0, np.inf), "not given"),
        ((2, np.inf), "not given, 2 or more"),
        ((1, 4), "not given, 1 to 4"),
    ],
)
def test_bounds_are_written(bounds, text):
    tables = rj.Marginals.from_tables({"a": {"x": 10, "y": 5, "z": NAN}}, suppressed=bounds)
    p = rj.LowRankPMF([1.0], [[[0.5], [0.3], [0.2]]], tables.domain)
    [table] = plain_as_read(p.with_tables(tables))["tables"]
    assert table["not_given"] == {"2": text}
    assert table["text"] == f"Counts, about {table['total']:,.0f} in all. 1 cell is not given."


def test_rounding_and_shares_are_said():
    cells = {"a": {"x": 10, "y": 5}}
    p = rj.LowRankPMF([1.0], [[[0.5], [0.5]]], rj.Domain.of({"a": ["x", "y"]}))
    rounded = rj.Marginals.from_tables(cells, rounded="nearest 5")
    [table] = plain_as_read(p.with_tables(rounded))["tables"]
    assert table["text"] == (
        "Counts, 15 in all. Its numbers are rounded: each may be off by up to 2.5."
    )
    shares = rj.Marginals.from_tables({"a": {"x": 0.625, "y": 0.375}})
    notes = [{"names": ["a"], "where": "a.csv", "kind": "percentages for each b"}]
    [table] = plain_as_read(p.with_tables(shares), notes)["tables"]
    assert table["text"] == "Percentages for each b, read from a.csv, shown as percent of all."
    assert not table["counted"]


def test_levels_are_in_the_order_of_the_model():
    p = rj.factorize(rj.Marginals.from_tables(PAIRS)).pmf
    turned = p.align(rj.Domain.of({"c": [1, 0], "b": [1, 0], "a": [0, 1]}))
    assert plain_as_read(turned)["tables"][0]["cells"] == [20, 10, 40, 30]


def test_projected_models_show_the_tables_that_they_hold_and_conditioned_ones_none():
    p = rj.factorize(rj.Marginals.from_tables(PAIRS)).pmf
    [table] = plain_as_read(p.project(["a", "b"]))["tables"]
    assert table["names"] == ["a", "b"]
    assert plain_as_read(p.condition({"a": 0})) is None
    assert plain_as_read(rj.datasets.asia()) is None


def test_without_room_the_worst_met_come_first():
    truth = rj.datasets.asia()
    tables = rj.Marginals.from_pmf(truth, order=2)
    factors = [truth.marginal(name)[:, None] for name in truth.domain.names]
    other = rj.LowRankPMF([1.0], factors, truth.domain)
    plain = plain_as_read(other.with_tables(tables), most_cells=15)
    assert plain["left"] == 28 - 3
    worst = sorted(fit.distance for fit in tables.compare(other))[-3:]
    assert sorted(table["distance"] for table in plain["tables"]) == pytest.approx(worst)


@pytest.mark.parametrize(
    "notes",
    [
        None,
        "tables",
        [None, 3, {"names": "a"}, {"names": ["a", 1]}],
        [{"names": ["a", "b"], "where": 3}],
    ],
)
def test_notes_of_another_kind_are_ignored(notes):
    p = rj.factorize(rj.Marginals.from_tables(PAIRS)).pmf
    assert all("read from" not in table["text"] for table in plain_as_read(p, notes)["tables"])


@given(
    st.lists(st.integers(0, 50), min_size=4, max_size=4),
    st.lists(
        st.tuples(st.integers(0, 9), st.one_of(st.integers(0, 9), st.just(np.inf))),
        min_size=4,
        max_size=4,
    ),
)
def test_tightened_bounds_hold_the_truth(truth, widths):
    cells = np.array(truth, dtype=float)
    low = np.maximum(cells - [w[0] for w in widths], 0.0)
    high = cells + [w[1] for w in widths]
    groups = [np.array(g) for g in ([0, 1], [2, 3], [0, 2], [1, 3], [0, 1, 2, 3])]
    sums = tuple((group, float(cells[group].sum())) for group in groups)
    least, most = UnknownCells(np.arange(4), low, high, sums).tightened()
    assert (low <= least).all()
    assert (least <= cells).all()
    assert (cells <= most).all()
    assert (most <= np.minimum(high, [cells[[0, 1]].sum()] * 2 + [cells[[2, 3]].sum()] * 2)).all()
