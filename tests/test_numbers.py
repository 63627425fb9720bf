"""Numbers are numbers: one rule for columns, bins with their own means and values, every door."""

import json
import math
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rejoint as rj
from rejoint.domain.columns import Numbers
from rejoint.domain.labels import MOST_CONTENTS, bins_of_edges, values_within
from rejoint.records import infer
from rejoint.records.infer import ColumnRule

# --- what a column is ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind", "size"),
    [
        ([True, False] * 300, "nominal", 2),
        ([0, 1] * 300, "nominal", 2),
        (list(range(1, 11)) * 60, "nominal", 10),
        ([2007, 2008, 2009] * 200, "nominal", 3),
        (list(range(11)) * 60, "ordinal", 11),
        ([18, 30, 70] * 200, "ordinal", 3),
        ([0.5, 1.0, 1.5] * 200, "ordinal", 3),
        (list(range(18, 43)) * 31, "ordinal", 25),
        (list(range(18, 65)) * 16, "binned", 25),
        (list(np.random.default_rng(0).normal(size=50)), "binned", 15),
        (["b", "a"] * 300, "nominal", 2),
    ],
)
def test_kind_of_a_column(values, kind, size):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rj.Remark)
        found = rj.Records.of({"x": values}).domain["x"]
    assert (found.kind, len(found)) == (kind, size)


@pytest.mark.parametrize(
    ("name", "values", "left_out"),
    [
        ("rank", range(1000, 1400), True),
        ("customer_id", range(0, 2800, 7), True),
        ("userId", range(0, 2800, 7), True),
        ("caseid", range(0, 2800, 7), True),
        ("income", range(0, 2800, 7), False),
        ("paid", range(0, 2800, 7), False),
        ("id", [*range(0, 2793, 7), 0], True),
        ("id", np.arange(400) + 0.5, False),
    ],
)
def test_columns_that_number_or_identify_rows(tmp_path, name, values, left_out):
    data = pd.DataFrame({name: list(values), "y": ["a", "b"] * 200})
    data.to_csv(tmp_path / "a.csv", index=False)
    words = "numbers or identifies the rows" if left_out else "quantile bins"
    for read in (
        lambda: rj.Records.of(data).domain,
        lambda: rj.read(tmp_path / "a.csv").domain,
        lambda: next(iter(rj.scan(tmp_path / "a.csv", size=150))).domain,
    ):
        with pytest.warns(rj.Remark, match=words) as said:
            assert read().names == (("y",) if left_out else (name, "y"))
        assert len(said) == 1
    assert rj.Records.of(data, bins={name: 4}).domain.shape == (4, 2)


def test_columns_of_arrays_are_never_left_out():
    array = np.column_stack([np.arange(400), np.arange(400) % 2])
    with pytest.warns(rj.Remark, match="'x0' .15 bins"):
        assert rj.Records.of(array).domain.shape == (15, 2)
    with pytest.warns(rj.Remark, match="'x0' .15 bins"):
        assert rj.scan(lambda: iter(np.split(array, 4))).domain.shape == (15, 2)


def test_nothing_but_identifiers():
    with pytest.raises(ValueError, match=r"every column is left out: 'id'.*bins=\{'id': 10\}"):
        rj.Records.of({"id": range(100)})


def test_an_imputer_returns_identifiers_as_they_are():
    data = pd.DataFrame({"id": range(100), "a": ["x", "y"] * 50, "b": ["u", "v"] * 50})
    data.loc[0, "b"] = None
    with pytest.warns(rj.Remark, match="left out: 'id'"):
        imputer = rj.JointImputer(rank=2, solver="ml", random_state=0).fit(data)
    filled = imputer.impute(data)
    assert filled["id"].tolist() == list(range(100))
    assert filled["b"][0] == "u"


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%y", "%Y-%m-%d %H:%M"])
def test_dates_as_text_are_left_out(form):
    days = pd.date_range("2020-01-01", periods=300).strftime(form).tolist()
    with pytest.raises(ValueError, match=r"'day' \(300 different\): dates.*'year'"):
        rj.Records.of({"day": days * 2})
    assert len(rj.Records.of({"day": days * 2}, kinds={"day": "nominal"}).domain["day"]) == 300
    assert len(rj.Records.of({"day": days[:12] * 9}).domain["day"]) == 12


def test_another_rule():
    rule = ColumnRule(few_bins=4, many_bins=6, few_records=100, label_range=2, report=False)
    data = {"x": np.arange(120) / 7, "y": [1, 2, 3] * 40}
    found = rj.Records.of(data, rule=rule).domain
    assert found.shape == (6, 3)
    assert found["y"].kind == "ordinal"
    policy = rj.estimation.Policy(columns=rule)
    assert rj.estimate(data, 1, "ml", policy=policy).pmf.domain == found


# --- every door -----------------------------------------------------------------------------------


@st.composite
def tables(draw):
    """Columns of numbers of several kinds, and one of text."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = draw(st.integers(20, 80))
    columns = {"t": rng.choice(["a", "b", "c"], rows)}
    for n in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["few", "whole", "real", "heaped"]))
        columns[f"c{n}"] = {
            "few": rng.integers(0, draw(st.integers(2, 14)), rows),
            "whole": rng.integers(-50, 90, rows),
            "real": np.round(rng.normal(size=rows), 3),
            "heaped": np.round(rng.exponential(100.0, rows), -1),
        }[kind]
    return pd.DataFrame(columns)


@settings(max_examples=20, deadline=None)
@given(tables(), st.sampled_from([None, 5, False, {"c0": 3}, {"c0": None}]))
def test_every_door_gives_the_same_domain(tmp_path_factory, data, bins):
    path = tmp_path_factory.mktemp("doors") / "a.csv"
    data.to_csv(path, index=False)
    how = {"bins": bins, "kinds": {"t": "ordinal"}}
    some = ["t", "c0"]
    doors = {
        "read": lambda: rj.read(path, **how).domain,
        "scan": lambda: rj.scan(path, size=7, **how).domain,
        "chunks": lambda: next(rj.read_chunks(path, size=7, **how)).domain,
        "frames": lambda: rj.scan(lambda: iter([data[:9], data[9:]]), **how).domain,
        "estimate": lambda: rj.estimate(data, 1, "ml", **how).pmf.domain,
        "select": lambda: rj.rank.select(data, [1], criterion="bic", **how).pmf.domain,
        "count": lambda: rj.Marginals.count(data, subsets=[some], **how).domain,
        "JointPMF": lambda: rj.JointPMF(1, "ml", **how).fit(data).pmf_.domain,
        "JointImputer": lambda: rj.JointImputer(1, "ml", **how).fit(data).pmf_.domain,
        "remove_cells": lambda: rj.datasets.remove_cells(data, 0.1, **how).domain,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rj.Remark)
        wanted = rj.Records.of(data, **how).domain
        for name, door in doors.items():
            found = door()
            assert found == wanted, name
            assert [v.contents for v in found] == [v.contents for v in wanted], name


def test_raw_numbers_are_raked_to_the_bins_of_tables():
    table = {"age": {rj.Bin(0, 40): 30.0, rj.Bin(40, 99, True): 70.0}}
    domain = rj.Domain((rj.Variable("age", tuple(table["age"])),))
    known = rj.Marginals.from_tables({"age": list(table["age"].values())}, domain=domain)
    ages = np.arange(20, 70)
    raked = rj.rake({"age": ages, "y": ["a", "b"] * 25}, known)
    assert raked.weights[ages < 40].sum() == pytest.approx(30.0)


# --- values within bins ---------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-30, 30), min_size=3, max_size=60),
    st.floats(-31, 31),
    st.sampled_from([">", ">=", "<", "<="]),
)
def test_comparisons_and_means_are_those_of_the_data(values, bound, sign):
    """One class and no prior: shares of bins are those of the records."""
    bound = round(bound)
    data = {"x": values, "y": ["a"] * len(values)}
    pmf = rj.estimate(rj.Records.of(data, bins={"x": [-30, -3, 0, 8, 30]}), 1, "ml").pmf
    array = np.array(values)
    held = {">": array > bound, ">=": array >= bound, "<": array < bound, "<=": array <= bound}
    assert pmf.ask(f"P(x {sign} {bound})").value == pytest.approx(held[sign].mean(), abs=1e-9)
    assert pmf.ask(f"P(not x {sign} {bound})").value == pytest.approx(
        1 - held[sign].mean(), abs=1e-9
    )
    both = held[sign] & (array > -5)
    assert pmf.ask(f"P(x {sign} {bound}, x > -5)").value == pytest.approx(both.mean(), abs=1e-9)
    assert pmf.ask("E(x)").value == pytest.approx(array.mean(), abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_answers_of_a_model_are_sums_over_bins_and_values(seed, rank):
    rng = np.random.default_rng(seed)
    values = np.round(rng.gamma(2.0, 10.0, 300), 1)
    edges = np.array([-math.inf, 5.0, 15.0, 30.0, math.inf])
    bins = bins_of_edges(edges)
    x = rj.Variable("x", bins, contents=values_within(bins, values))
    domain = rj.Domain((x, rj.Variable("y", ("a", "b"))))
    factors = [rng.dirichlet(np.ones(n), rank).T for n in (4, 2)]
    pmf = rj.LowRankPMF(rng.dirichlet(np.ones(rank)), factors, domain)
    joint = pmf.marginal(["x", "y"])
    bound = float(np.round(rng.gamma(2.0, 10.0), 1))
    share = np.array([sum(m for v, m in w if v > bound) / sum(m for _, m in w) for w in x.contents])
    assert pmf.ask(f"P(x > {bound} | y = a)").value == pytest.approx(
        share @ joint[:, 0] / joint[:, 0].sum(), abs=1e-9
    )
    if share @ joint.sum(axis=1) > 0:
        assert pmf.ask(f"P(y = a | x > {bound})").value == pytest.approx(
            share @ joint[:, 0] / (share @ joint.sum(axis=1)), abs=1e-9
        )
    # Thinned contents are no farther from the values than what each stands for.
    for k, interval in enumerate(bins):
        mine = values[[value in interval for value in values]]
        if len(mine):
            heap = np.unique(mine, return_counts=True)[1].max() / len(mine)
            assert abs(share[k] - (mine > bound).mean()) <= 1 / MOST_CONTENTS + heap


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-30, 30), min_size=3, max_size=60), st.floats(0, 1))
def test_quantiles_are_those_of_the_data(values, q):
    data = {"x": values, "y": ["a"] * len(values)}
    pmf = rj.estimate(rj.Records.of(data, bins={"x": [-30, -3, 0, 8, 30]}), 1, "ml").pmf
    found = pmf.quantile("x", q)
    array = np.array(values)
    assert found in values
    assert (array <= found).mean() >= q - 1e-9
    assert (array < found).mean() <= q + 1e-9


def test_identifiers_beyond_what_is_kept(tmp_path, monkeypatch):
    """More distinct numbers than a summary keeps: their range and number decide."""
    monkeypatch.setattr(infer, "MOST_DISTINCT", 300)
    monkeypatch.setattr(sys.modules["rejoint.records.read"], "rows_of_part", lambda _: 500)
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"row": rng.permutation(2000), "pay": rng.integers(0, 10**9, 2000)})
    data["user_id"] = data["pay"]
    data.to_parquet(tmp_path / "a.parquet")
    with pytest.warns(rj.Remark) as said:
        assert rj.scan(tmp_path / "a.parquet").domain.names == ("pay",)
    assert "left out: 'row', 'user_id'" in str(said[-1].message)


def test_contents_are_few_and_seen():
    rng = np.random.default_rng(0)
    values = rng.normal(size=5000)
    with pytest.warns(rj.Remark, match="25 bins"):
        found = rj.Records.of({"x": values}).domain["x"]
    assert max(map(len, found.contents)) <= MOST_CONTENTS
    assert {v for within in found.contents for v, _ in within} <= set(values.tolist())
    assert sum(mass for within in found.contents for _, mass in within) == pytest.approx(5000)
    for interval, within in zip(found.levels, found.contents, strict=True):
        assert all(value in interval for value, _ in within)


@pytest.mark.parametrize("name", ["m.rejoint", "m.json"])
def test_files_keep_the_values_within_bins(tmp_path, name):
    rng = np.random.default_rng(0)
    data = {"x": np.round(rng.normal(size=200), 2), "y": rng.choice(["a", "b"], 200)}
    pmf = rj.estimate(rj.Records.of(data, bins={"x": 5}), 1, "ml").pmf
    pmf.save(tmp_path / name)
    again = rj.load(tmp_path / name)
    assert again.domain == pmf.domain
    assert again.domain["x"].contents == pmf.domain["x"].contents
    question = "P(x > 0.37 | y = a)"
    assert again.ask(question).value == pmf.ask(question).value
    assert again.project(["x"]).ask("P(x > 0.37)").value == pytest.approx(
        pmf.ask("P(x > 0.37)").value
    )


def test_files_without_them_load_and_refuse_to_cut_a_bin(tmp_path):
    pmf = rj.estimate(rj.Records.of({"x": range(40)}, bins={"x": 4}), 1, "ml").pmf
    pmf.save(tmp_path / "m.json")
    plain = json.loads((tmp_path / "m.json").read_text())
    text = json.dumps(plain)
    for variable in plain["domain"]["variables"]:
        del variable["contents"]
    (tmp_path / "m.json").write_text(json.dumps(plain))
    assert len(json.dumps(plain)) < len(text)
    old = rj.load(tmp_path / "m.json")
    assert old.domain["x"].contents is None
    assert old.ask("E(x)").value == pytest.approx(pmf.ask("E(x)").value)
    assert old.ask("P(x >= 10)").value == pytest.approx(0.75)
    with pytest.raises(rj.QueryError, match="the distribution within it is not known"):
        old.ask("P(x > 12)")


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        ([[(1, 1)]], "2 lists of pairs"),
        ([[(1, 1)], []], "increasing values with weights above zero"),
        ([[(1, 1)], [(20, 1), (19, 1)]], "increasing values"),
        ([[(1, 0)], [(20, 1)]], "weights above zero"),
    ],
)
def test_contents_are_checked(contents, words):
    with pytest.raises(ValueError, match=words):
        rj.Variable("age", (rj.Bin(0, 18), rj.Bin(18, 65)), contents=contents)


# --- small samples --------------------------------------------------------------------------------


def birds(rows, seed):
    """Three species of other sizes, as penguins are: two alike, one heavier."""
    rng = np.random.default_rng(seed)
    species = rng.choice(3, rows, p=[0.44, 0.2, 0.36])
    mass = rng.normal(np.array([3700.0, 3730.0, 5080.0])[species], [460.0, 385.0, 500.0][0])
    wing = rng.normal(np.array([190.0, 196.0, 217.0])[species], 6.5) + (mass - 4200) / 200
    depth = rng.normal(np.array([18.3, 18.4, 15.0])[species], 1.1)
    names = np.array(["Adelie", "Chinstrap", "Gentoo"])
    return pd.DataFrame(
        {
            "species": names[species],
            "mass": 25 * np.round(mass / 25),
            "wing": np.round(wing),
            "depth": np.round(depth, 1),
        }
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_few_records_keep_what_can_be_counted(seed):
    data, truth = birds(50, seed), birds(200_000, 99)
    heavy = truth[truth.species == "Gentoo"].mass
    with pytest.warns(rj.Remark, match="15 bins"):
        result = rj.estimate(data, random_state=0)
    assert "Smoothed columns" in result.choice
    answer = result.pmf.ask("P(mass > 4500 | species = Gentoo)")
    mine = data[data.species == "Gentoo"].mass
    counted, rows = (mine > 4500).mean(), len(mine)
    # Unordered labels gave 0.43 where 16 of 17 were counted. What remains is less than chance:
    assert abs(answer.value - counted) < np.sqrt(counted * (1 - counted) / rows) * 2.0
    assert answer.value > 0.7
    both = result.ask("P(mass > 4500 | species = Gentoo)", level=0.95).interval
    assert both.low <= (heavy > 4500).mean() <= both.high
    expected = result.pmf.ask("E(mass | species = Gentoo)")
    assert abs(expected.value - mine.mean()) < 1.645 * mine.std() / np.sqrt(rows)


def test_quantiles_of_an_array_are_values_of_the_bins():
    x = np.random.default_rng(0).normal(size=1000)
    pmf = rj.estimate({"x": x}, rank=1, solver="ml", bins={"x": 10}).pmf
    assert pmf.quantile("x", [0.1, 0.5, 0.9]) == pytest.approx(
        np.quantile(x, [0.1, 0.5, 0.9]), abs=0.05
    )
    assert pmf.quantile("x", np.array([0.5]))[0] == pmf.quantile("x")


def test_infinite_values_are_remarked_on():
    x = np.append(np.random.default_rng(0).normal(size=300), np.inf)
    with pytest.warns(rj.Remark, match="'x' has 1 infinite value: means"):
        rj.Records.of({"x": x}, bins={"x": 5})


def test_smooth_of_another_type_is_explained():
    with pytest.raises(TypeError, match="smooth must be 'auto', True, False or a list of names"):
        rj.estimate({"x": [1, 2, 3] * 9}, rank=1, smooth=3)


def test_joint_pmf_takes_agreement():
    model = rj.JointPMF(rank=2, random_state=0, agreement=False).fit({"x": ["a", "b"] * 50})
    assert model.agreement is False


def test_bins_of_a_column_of_the_tables_are_explained():
    known = rj.Marginals.from_tables({"x": {"a": 1, "b": 2}})
    with pytest.raises(ValueError, match="bins do not apply to 'x'"):
        rj.rake({"x": ["a", "b"]}, known, bins={"x": 4})


def test_target_of_numbers_says_what_to_do():
    x = np.random.default_rng(0).normal(size=50)
    with pytest.raises(ValueError, match="cut it into classes"):
        rj.JointClassifier().fit({"a": ["u", "v"] * 25}, x)


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_quantiles_of_more_numbers_than_are_kept(order):
    """Parts of sorted numbers, some of them often: shares of bins as of all numbers at once."""
    rng = np.random.default_rng(0)
    values = np.where(rng.random(60_000) < 0.2, 0.5, rng.normal(size=60_000))
    values = np.sort(values) if order == "sorted" else values
    summary = infer.ColumnSummary("x", most=2000)
    for part in values.reshape(60, -1):
        summary.add(Numbers(part), np.ones(1000))
    variable = summary.variable(infer.Declaration(bins=25))
    whole = infer.infer_variable("x", Numbers(values), infer.Declaration(bins=25))
    shares = [np.bincount(v.encode(values), minlength=25) / 60_000 for v in (variable, whole)]
    np.testing.assert_allclose(*shares, atol=0.003)
    assert summary.value_counts[0].sum() == len(values)
