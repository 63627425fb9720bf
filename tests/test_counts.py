"""The count beside the answer: composites of count and model, kept counts, and their files."""

import numpy as np
import pytest
from scipy.special import betaln

import rejoint as rj
from rejoint.io.saved_counts import counts_of_plain
from rejoint.io.schema import SchemaError
from rejoint.pmf.composite import PRECISIONS, STEPS, fill_rounded
from rejoint.pmf.counts import Counts

DOMAIN = rj.Domain.of({"a": ["x", "y", "z"], "b": ["u", "v"], "c": [1, 2]})


@pytest.fixture(scope="module")
def pmf():
    rng = np.random.default_rng(1)
    factors = [rng.dirichlet(np.ones(size), 2).T for size in DOMAIN.shape]
    return rj.LowRankPMF([0.4, 0.6], factors, DOMAIN)


@pytest.fixture(scope="module")
def records(pmf):
    """Records that the model is wrong about, some of them incomplete."""
    rng = np.random.default_rng(2)
    codes = pmf.sample(900, random_state=3).codes.astype(np.int32)
    codes[:, 0] = np.where(rng.random(900) < 0.3, codes[:, 1], codes[:, 0])
    codes[rng.random(codes.shape) < 0.1] = -1
    return rj.Records(DOMAIN, codes)


@pytest.fixture(scope="module")
def counting(pmf, records):
    return pmf.with_counts(Counts.of(records))


def by_hand(table, model):
    """Composite shares of the rows of a table, cell by cell, from the formula."""
    rows, cells = table.shape
    size = table.sum(axis=1)
    evidence = np.empty((rows, cells, len(PRECISIONS)))
    for i, j in np.ndindex(rows, cells):
        for at, k in enumerate(PRECISIONS):
            hits, a, b = table[i, j], k * model[i, j], k * (1 - model[i, j])
            evidence[i, j, at] = betaln(hits + a, size[i] - hits + b) - betaln(a, b)
    evidence = np.exp(evidence - evidence.max(axis=2, keepdims=True))
    prior = np.full(len(PRECISIONS), 1 / len(PRECISIONS))
    for _ in range(STEPS):
        posterior = evidence * prior / (evidence * prior).sum(axis=2, keepdims=True)
        total = posterior.sum(axis=(0, 1)) + 1 / len(PRECISIONS)
        prior = total / total.sum()
    weights = evidence * prior / (evidence * prior).sum(axis=2, keepdims=True)
    k = PRECISIONS
    each = (table[:, :, None] + k * model[:, :, None]) / (size[:, None, None] + k)
    shares = (weights * each).sum(axis=2)
    return shares / shares.sum(axis=1, keepdims=True)


def counted(records, *names):
    """Table of the records that hold all of some variables."""
    chosen = [DOMAIN.index(name) for name in names]
    table = np.zeros([DOMAIN.shape[n] for n in chosen])
    for row in records.codes[:, chosen]:
        if (row >= 0).all():
            table[tuple(row)] += 1
    return table


def test_composite_of_a_table_is_the_formula(pmf, records, counting):
    table = counted(records, "b", "a")
    model = np.array([pmf.marginal("a", {"b": level}) for level in "uv"])
    answer = counting.ask("P(a | b)")
    np.testing.assert_allclose(answer.value.T, by_hand(table, model), atol=1e-9)
    np.testing.assert_allclose(answer.counted.T, table / table.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(answer.model, pmf.ask("P(a | b)").value)
    assert answer.records.tolist() == table.sum(axis=1).tolist()


def test_answers_about_one_table_agree(counting):
    table = counting.ask("P(a | b)").value
    single = counting.ask("P(a = y | b = v)")
    assert float(single) == pytest.approx(table[1, 1])
    assert float(counting.ask("P(a in {x, z} | b = v)")) == pytest.approx(1 - table[1, 1])
    assert float(counting.ask("P(a != y | b = v)")) == pytest.approx(1 - table[1, 1])
    mean = counting.ask("E(c | b = u)")
    shares = counting.ask("P(c | b = u)").value
    assert float(mean) == pytest.approx(shares @ [1, 2])
    assert mean.counted == pytest.approx(counting.ask("P(c | b = u)").counted @ [1, 2])
    both = counting.ask("P(a, c | b)").value
    assert both.sum(axis=(0, 1)) == pytest.approx([1, 1])
    assert float(counting.ask("P(a = x, c = 2 | b = u)")) == pytest.approx(both[0, 1, 0])


def test_conditions_of_several_levels_weigh_rows_by_their_records(records, counting):
    table = counted(records, "b", "a")
    answer = counting.ask("P(a | b in {u, v})")
    np.testing.assert_allclose(answer.counted, table.sum(axis=0) / table.sum())
    assert answer.records == table.sum()
    np.testing.assert_allclose(answer.value.sum(), 1)
    soft = counting.ask("P(a = x | b ~ {u: 0.8, v: 0.2})")
    weights = table * np.array([1.0, 0.25])[:, None]  # only ratios matter: the largest is 1
    assert soft.counted == pytest.approx(weights[:, 0].sum() / weights.sum())


def test_composite_is_the_count_where_the_model_is_refuted_and_the_model_where_it_holds():
    domain = rj.Domain.of({"a": ["x", "y"], "b": [f"b{i}" for i in range(20)]})
    p = rj.LowRankPMF([1.0], [[[0.5], [0.5]], np.full((20, 1), 0.05)], domain)
    rng = np.random.default_rng(0)
    b = np.repeat(np.arange(20), 200)
    a = (rng.random(4000) < np.where(b == 7, 0.9, 0.5)).astype(int)
    q = p.with_counts(Counts.of(rj.Records(domain, np.column_stack([a, b]))))
    wrong = q.ask("P(a = y | b = b7)")
    assert abs(float(wrong) - wrong.counted) < 0.01
    right = q.ask("P(a = y | b = b3)")
    assert abs(float(right) - 0.5) < 0.5 * abs(right.counted - 0.5) + 1e-9
    assert wrong.interval.low < wrong.counted < wrong.interval.high


def test_intervals_hold_what_is_true():
    domain, rng, held = rj.Domain.of({"a": 2, "b": 8}), np.random.default_rng(5), []
    model = rj.LowRankPMF([1.0], [[[0.6], [0.4]], np.full((8, 1), 0.125)], domain)
    for _ in range(60):
        truth = rng.beta(12, 8, 8)  # of the first level, around the model's .6
        b = rng.integers(8, size=800)
        codes = np.column_stack([rng.random(800) > truth[b], b]).astype(np.int32)
        interval = model.with_counts(Counts.of(rj.Records(domain, codes))).ask("P(a | b)").interval
        held += ((interval.low[0] <= truth) & (truth <= interval.high[0])).tolist()
    assert 0.85 <= np.mean(held) <= 0.95


def test_weights_are_copies(pmf, records):
    weight = np.tile([1.0, 2.0, 3.0], 300)
    copies = rj.Records(DOMAIN, np.repeat(records.codes, weight.astype(int), axis=0))
    weighted = rj.Records(DOMAIN, records.codes, weight)
    for question in ("P(a | b)", "P(a = x, b = u)", "E(c | a in {x, y})"):
        one, other = (pmf.with_counts(Counts.of(r)).ask(question) for r in (weighted, copies))
        for name in ("value", "counted", "records"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name))
        np.testing.assert_allclose(one.interval.low, other.interval.low)
        assert one.notes == other.notes


def test_sparse_records_count_as_others(pmf, records, counting):
    sparse = rj.SparseRecords.of(records)
    answer = pmf.with_counts(Counts.of(sparse)).ask("P(a | b = u)")
    np.testing.assert_allclose(answer.value, counting.ask("P(a | b = u)").value)


def test_one_line_shows_all_three(counting):
    text = str(counting.ask("P(a = x | b = u)")).split("\n")
    assert "; counted " in text[0]
    assert " of " in text[0]
    assert ", model " in text[0]
    assert text[1] == "In parentheses: 90 % interval of count and model together."
    header = str(counting.ask("P(a | b)")).split("\n")[1].split()
    assert header == ["a", "b", "prob", "counted", "of", "model"]
    assert "counted" in counting.ask("P(a | b)")._repr_html_()
    plain = counting.ask("P(a = x | b = u)").to_json()
    assert {"counted", "model", "records"} <= set(plain)


def test_model_answers_alone_and_says_so(pmf, records, counting):
    few = pmf.with_counts(Counts.of(records.take(slice(0, 3)))).ask("P(a = x | b = u)")
    assert few.counted is None
    assert float(few) == float(pmf.ask("P(a = x | b = u)"))
    assert "The model answers alone: " in few.notes[-1]
    none = pmf.with_counts(Counts.of(rj.Records(DOMAIN, np.full((9, 3), -1)))).ask("P(a)")
    assert "no record holds all of these variables" in none.notes[-1]
    for question in ("argmax a | b = u", "H(a)", "MI(a; b)", "sample 2 a"):
        assert (
            counting.ask(question, random_state=0).notes[-1].startswith("The model answers alone")
        )
    with pytest.raises(rj.QueryError, match="no level"):
        counting.ask("P(a = nowhere | b = u)")


@pytest.mark.filterwarnings("ignore::rejoint.Remark")
def test_a_condition_that_no_record_meets_has_no_count():
    rng = np.random.default_rng(0)
    a, b, c = (rng.choice(list(levels), 300) for levels in ("xyz", "pq", "uv"))
    result = rj.estimate({"a": a, "b": np.where(a == "z", "p", b), "c": c}, rank=2, random_state=0)
    text = str(result.ask("P(c = u | a, b = q)"))
    assert "nan" not in text
    assert text.splitlines()[4].split()[-3:-1] == ["-", "0"]


def test_share_of_records_that_lack_a_value_is_said(records, counting):
    codes = records.codes
    may = (codes[:, 1] == 0) | (codes[:, 1] < 0)
    lack = may & ((codes[:, 0] < 0) | (codes[:, 1] < 0))
    share = lack.sum() / may.sum()
    note = counting.ask("P(a = x | b = u)").notes[-1]
    assert note.startswith(f"{100 * share:.2g} % of the records that may meet the condition lack")


@pytest.mark.filterwarnings("ignore::rejoint.domain.Remark")
def test_levels_that_do_not_apply():
    rng = np.random.default_rng(0)
    work = rng.choice(["yes", "no"], 3000, p=[0.7, 0.3])
    income = np.where(work == "yes", rng.choice([10, 20, 30], 3000), None).tolist()
    result = rj.estimate({"work": work, "income": income}, rank=3, random_state=0, progress=False)
    met = [x for x in income if x is not None]
    assert float(result.ask("E(income)")) == pytest.approx(np.mean(met), rel=0.01)
    answer = result.ask("P(income = 10)")
    share = np.mean([x == 10 for x in income])
    assert float(answer) == pytest.approx(share, abs=0.005)
    assert any("to whom income applies" in note for note in answer.notes)
    among = result.ask("P(income = 10 | income applies)")
    assert among.counted == pytest.approx(np.mean(np.array(met) == 10))


def test_result_keeps_records_unless_told_not_to(records):
    how = {"rank": 2, "solver": "ml", "random_state": 0, "progress": False}
    result = rj.estimate(records, **how)
    answer = result.ask("P(a = x | b = u)")
    assert answer.counted is not None
    assert result.pmf.ask("P(a = x | b = u)").counted is None
    without = rj.estimate(records, counts=False, **how)
    assert without.ask("P(a = x | b = u)").counted is None
    assert ".ask('P(a | b)')" in repr(result)


def test_tables_of_a_scan_are_counted(records, monkeypatch):
    chunks = [records.take(slice(at, at + 300)) for at in (0, 300, 600)]
    kept = Counts.of(rj.scan(lambda: iter(chunks)))
    assert kept.records is None
    assert kept.total == 900
    np.testing.assert_array_equal(kept.table((1, 0)), Counts.of(records).table((1, 0)))
    assert not kept.holds((0, 1, 2))


@pytest.mark.parametrize("name", ["m.rejoint", "m.json"])
def test_files_keep_rounded_tables_or_the_records(pmf, records, counting, tmp_path, name):
    path = tmp_path / name
    pmf.with_counts(Counts.of(records).without_records()).save(path)
    loaded = rj.load(path)
    table = loaded.counts.table((0, 1))
    exact = Counts.of(records).table((0, 1))
    assert (table % 5 == 0).all()
    assert np.abs(table - exact).max() <= 2.5
    assert loaded.ask("P(a = x | b = u)").counted == pytest.approx(
        counting.ask("P(a = x | b = u)").counted, abs=0.02
    )
    assert loaded.ask("P(a = x | b = u)").notes[-1].startswith("At least ")
    alone = loaded.ask("P(a = x | b = u, c = 1)")
    assert alone.counted is None
    assert "counts of one and two variables" in alone.notes[-1]
    counting.save(path)
    same = rj.load(path).ask("P(a = x | b = u, c = 1)")
    assert str(same) == str(counting.ask("P(a = x | b = u, c = 1)"))
    assert rj.load(path) == pmf
    assert rj.load(path).condition({"b": "u"}).counts is None


def test_one_and_two_records_are_shown_as_none():
    domain = rj.Domain.of({"a": ["x", "y", "z"]})
    kept = Counts.of(rj.Records(domain, np.repeat([0, 1, 2], [40, 2, 1])[:, None]))
    assert kept.without_records().table((0,)).tolist() == [40, 0, 0]
    assert fill_rounded(np.array([[40.0, 0, 0]]), np.array([[0.9, 0.09, 0.01]])).max() == 40


def test_wide_conditions_are_counted_for_the_levels_that_meet_them():
    domain = rj.Domain.of({"a": 2, "b": 1200, "c": 1200})
    factors = [np.full((size, 1), 1 / size) for size in domain.shape]
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(2, size=500), np.full(500, 3), np.full(500, 4)])
    p = rj.LowRankPMF([1.0], factors, domain).with_counts(Counts.of(rj.Records(domain, codes)))
    assert p.ask("P(a = 1 | b = 3, c = 4)").counted == codes[:, 0].mean()


def test_counts_of_strangers_are_checked():
    domain = rj.Domain.of({"a": 2})
    good = {"total": 3.0, "subsets": [[0]], "rounding": 5}
    cells = np.array([1.0, 2.0])
    assert counts_of_plain(good, {"count_cells": cells}, domain).rounding == 5
    for plain, arrays in (
        (good | {"subsets": [[1]]}, {"count_cells": cells}),
        (good, {"count_cells": -cells}),
        (good, {"count_cells": np.array([np.nan, 1.0])}),
        ({"total": 3.0}, {"record_codes": np.zeros((2, 2), np.int32)}),
        ({"total": -1.0}, {}),
    ):
        with pytest.raises(SchemaError):
            counts_of_plain(plain, arrays, domain)
    codes = np.array([[5]], np.int32)
    with pytest.raises(ValueError, match="code 5"):
        Counts.of_saved(counts_of_plain({"total": 1.0}, {"record_codes": codes}, domain), domain)


def test_fits_that_read_records_in_parts_keep_their_tables(pmf, records):
    chunks = [records.take(slice(at, at + 300)) for at in (0, 300, 600)]
    how = {"rank": 2, "solver": "ml", "random_state": 0, "progress": False}
    scan = rj.scan(lambda: iter(chunks), memory=1)
    result = rj.estimate(scan, **how)
    assert result.counts.records is None
    exact = Counts.of(records).table((0, 1))
    np.testing.assert_array_equal(result.counts.table((0, 1)), exact)
    assert result.ask("P(a | b)").counted is not None
    assert result.saved_counts(records=True).rounding == 5
