"""Synthetic populations: whole numbers that meet tables, and nothing that the model rules out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rejoint as rj
from rejoint.population.synthesize import round_to_sum


@given(
    st.lists(st.floats(0.0, 1e3), min_size=1, max_size=30).filter(lambda x: sum(x) > 1e-3),
    st.integers(0, 5000),
)
@settings(max_examples=60, deadline=None)
def test_controlled_rounding_adds_up_and_stays_next_to_the_share(values, total):
    values = np.array(values)
    rounded = round_to_sum(values, total)
    assert rounded.sum() == total
    exact = values * (total / values.sum())
    # A cell within 1e-9 below a whole number counts as that number.
    assert (np.abs(rounded - exact) < 1.0 + 1e-6).all()


def test_tables_of_a_real_population_are_met():
    truth = rj.datasets.asia()
    real = truth.sample(2000, random_state=1)
    tables = rj.Marginals.count(real, order=2)
    made = rj.synthesize(truth, 2000, tables, random_state=0)
    counted = rj.Marginals.count(made.records, order=2)
    wrong = {
        names: int(np.abs(counted[names] - tables[names]).sum()) // 2 for names in tables.subsets
    }
    assert made.misplaced == wrong  # it says how near it is
    assert max(wrong.values()) <= 2
    assert sum(value == 0 for value in wrong.values()) >= 15
    # A plain sample is off by dozens of records in each table.
    plain = rj.Marginals.count(truth.sample(2000, random_state=0), order=2)
    off = [int(np.abs(plain[s] - tables[s]).sum()) // 2 for s in tables.subsets]
    assert np.mean(off) > 10
    # "either" is "tub or lung": no record breaks the rule.
    rows = made.records
    either = (rows["tub"] == "yes") | (rows["lung"] == "yes")
    np.testing.assert_array_equal(rows["either"] == "yes", either)


def test_shares_and_variables_without_tables():
    truth = rj.datasets.asia()
    tables = rj.Marginals.from_pmf(truth, subsets=[("smoke", "lung"), ("dysp",)])
    part = rj.Marginals.from_tables(
        {s: tables[s] for s in tables.subsets},
        domain=truth.domain.project(["smoke", "lung", "dysp"]),
    )
    made = rj.synthesize(truth, 500, part, random_state=0)
    assert made.records.names == truth.domain.names
    assert made.stop == "500 records: all rounded tables are met exactly."
    found = rj.Marginals.count(made.records, subsets=[("smoke", "lung")])["smoke", "lung"]
    assert (np.abs(found - 500 * tables["smoke", "lung"]) < 1).all()


@pytest.mark.filterwarnings("ignore:Tables:rejoint.Remark")
def test_tables_that_disagree_are_named():
    p = rj.LowRankPMF([1.0], [[[0.5], [0.5]]] * 2)
    tables = rj.Marginals.from_tables({("x0", "x1"): [[30, 20], [30, 20]], ("x1",): [50, 50]})
    made = rj.synthesize(p, 100, tables, rounds=200, random_state=0)
    assert "0 of 2 tables" in made.stop or "1 of 2 tables" in made.stop
    assert "disagree on ('x1',) by 10.00%: no population meets both" in made.stop
    assert sum(made.misplaced.values()) == 10  # the least that is possible


def test_cells_that_are_not_known_are_left_to_the_model():
    truth = rj.datasets.asia()
    counted = rj.Marginals.count(truth.sample(1000, random_state=2), order=2)
    held = {s: np.where(counted[s] < 5, np.nan, counted[s]) for s in counted.subsets}
    tables = rj.Marginals.from_tables(held, domain=truth.domain, suppressed=(0, 4))
    made = rj.synthesize(truth, 1000, tables, random_state=0)
    found = rj.Marginals.count(made.records, order=2)
    known = ~np.isnan(np.concatenate([table.ravel() for table in held.values()]))
    off = np.abs(found.flat - counted.flat)[known]
    assert off.max() <= 2
    assert (off > 0).mean() < 0.15


def test_tables_alone_make_a_population():
    tables = rj.Marginals.from_pmf(
        rj.datasets.asia(), subsets=[("smoke", "lung"), ("smoke", "bronc"), ("bronc", "dysp")]
    )
    tables = rj.Marginals.from_tables(
        {names: tables[names] for names in tables.subsets},
        domain=tables.domain.project(["smoke", "lung", "bronc", "dysp"]),
    )
    made = rj.synthesize(tables, 400, random_state=0)
    assert made.stop == "400 records: all rounded tables are met exactly."
    found = rj.Marginals.count(made.records, subsets=tables.subsets)
    for names in tables.subsets:
        assert (np.abs(found[names] - 400 * tables[names]) < 1).all()
    with pytest.raises(TypeError, match="Tables were given twice"):
        rj.synthesize(tables, 10, tables)


@pytest.mark.filterwarnings("ignore:Tables:rejoint.Remark")
def test_rounded_tables_are_met_within_their_rounding():
    rng = np.random.default_rng(3)
    joint = rng.gamma(1.0, size=(3, 4, 3))
    people = np.rint(2000 * joint / joint.sum())
    pairs = {("a", "b"): people.sum(2), ("b", "c"): people.sum(0), ("a", "c"): people.sum(1)}
    domain = rj.Domain.of({"a": 3, "b": 4, "c": 3})
    rounded = {names: 10 * np.rint(table / 10) for names, table in pairs.items()}
    tables = rj.Marginals.from_tables(rounded, domain=domain, rounded="nearest 10")
    assert tables.disagreements()[0].distance > 1e-3
    made = rj.synthesize(tables, int(people.sum()), random_state=0)
    # Each table is rounded to whole numbers by itself: one more may differ by one record.
    assert max(made.misplaced.values()) <= 1, made.stop
    found = rj.Marginals.count(made.records, subsets=list(pairs))
    for names, table in rounded.items():
        # Half of the base, one more for whole numbers, and the total of the table is rounded, too.
        assert np.abs(found[names] - table).max() <= 5 + 1 + 5


def test_same_seed_same_people():
    truth = rj.datasets.asia()
    tables = rj.Marginals.from_pmf(truth, order=1)
    one, two = (rj.synthesize(truth, 100, tables, random_state=5).records for _ in range(2))
    np.testing.assert_array_equal(one.codes, two.codes)


def test_without_tables_it_is_a_sample():
    made = rj.synthesize(rj.datasets.asia(), 10, random_state=0)
    assert len(made.records) == 10
    assert "no tables were given" in made.stop


def test_faults():
    p = rj.datasets.asia()
    tables = rj.Marginals.from_pmf(p, order=1)
    with pytest.raises(ValueError, match="n must be a whole number of at least 1, got 0"):
        rj.synthesize(p, 0, tables)
    with pytest.raises(TypeError, match="tables must be Marginals, got dict"):
        rj.synthesize(p, 10, {})
    with pytest.raises(ValueError, match="mention 'z', which the model does not have"):
        rj.synthesize(p, 10, rj.Marginals.from_tables({"z": [1, 2]}))
    turned = rj.Marginals.from_tables({"lung": {"no": 1, "yes": 2}})
    with pytest.raises(ValueError, match=r"other levels of 'lung' .* pmf\.align"):
        rj.synthesize(p, 10, turned)
