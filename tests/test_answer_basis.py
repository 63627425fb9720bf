"""What answers of a model from tables rest on: published, implied, identified, open."""

import json
import pickle
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rejoint as rj
from rejoint.identifiability import model_verdict
from rejoint.pmf import given_tables

NAN = float("nan")


@pytest.fixture(scope="module")
def tables():
    return rj.Marginals.read(rj.datasets.town_tables())


@pytest.fixture(scope="module")
def town(tables):
    return rj.factorize(tables).pmf


def independent(tables):
    """A model of independent variables with the given tables."""
    shares = [tables.marginal([name])[:, None] for name in tables.domain.names]
    return rj.LowRankPMF([1.0], shares, tables.domain).with_tables(tables)


def chain(**options):
    """Two tables of three variables: a and c are in none together."""
    pairs = {("a", "b"): [[10, 20], [30, 40]], ("b", "c"): [[10, 30], [20, 40]]}
    return rj.Marginals.from_tables(pairs, **options)


# The four marks


@pytest.mark.parametrize(
    ("question", "basis"),
    [
        ("P(Work | Age = '18-29')", "published"),
        ("P(Home = Rented | Age = '18-29', District in {North, Harbor})", "published"),
        ("P(Age = '18-29' | Pass = Student)", "implied"),
        ("P(Age | Pass = Student)", "implied"),
        ("P(Education = Degree | Work = 'Part time')", "open"),
        ("P(Age | Pass)", "open"),
        ("MI(Age; Work)", "published"),
        ("H(Travel | Age)", "open"),
        ("argmax District, Travel", "published"),
        ("sample 3", "open"),
    ],
)
def test_town(town, question, basis):
    answer = town.ask(question)
    assert answer.basis == basis
    assert str(answer).splitlines()[-1 if answer.evidence == 1 else -2].startswith(f"{basis}: ")


def test_open_answers_name_what_is_missing_and_the_range():
    pmf = rj.factorize(chain()).pmf
    answer = pmf.ask("P(a = 0 | c = 0)")
    # Of 30 with c = 0, 10 have b = 0 and 20 have b = 1. Among the 40 with b = 0, 10 have a = 0.
    assert (answer.bounds.low, answer.bounds.high) == pytest.approx((0.0, 1.0))
    assert answer.rests_on.text == (
        "open: no table holds a and c together; any joint with these tables gives 0 to 1"
    )
    few = pmf.ask("P(a = 0, c = 0)")
    assert (few.bounds.low, few.bounds.high) == pytest.approx((0.0, 0.3))
    assert "any joint with these tables gives 0 to 0.30" in str(few)
    assert "0.30" in few._repr_html_()


def test_open_answers_have_no_more_digits_than_the_range_leaves(town):
    line = str(town.ask("P(Education = Degree | Work = 'Part time')")).splitlines()[0]
    assert re.search(r"= 0\.\d$", line)
    line = str(town.ask("P(Work = Student | Age = '18-29')")).splitlines()[0]
    assert re.search(r"= 0\.\d{4}$", line)


def test_tables_have_the_range_of_each_cell(town):
    answer = town.ask("P(Age | Pass)")
    assert answer.bounds.low.shape == answer.value.shape == (4, 3)
    assert (answer.bounds.low <= answer.value + 1e-7).all()
    assert (answer.value <= answer.bounds.high + 1e-7).all()
    np.testing.assert_allclose(answer.bounds.high[:, 2], [1, 0, 0, 0], atol=1e-7)
    column = [town.ask(f"P(Age | Pass = '{level}')").bounds for level in ("No pass", "Monthly")]
    np.testing.assert_allclose(answer.bounds.low[:, :2], np.stack([c.low for c in column], axis=1))
    rows = str(answer).splitlines()
    assert " to " in rows[2]
    assert rows[2].rstrip().endswith(" 1")  # every joint gives it: no brackets


def test_means_have_bounds():
    numbers = rj.Domain.of({"a": [0, 10], "b": 2, "c": 2})
    pmf = rj.factorize(chain(domain=numbers)).pmf
    assert pmf.ask("E(a)").basis == "published"
    answer = pmf.ask("E(a | c)")
    share = pmf.ask("P(a = 10 | c)").bounds
    np.testing.assert_allclose(answer.bounds.low, 10 * share.low[:], atol=1e-6)
    np.testing.assert_allclose(answer.bounds.high, 10 * share.high[:], atol=1e-6)


def test_models_from_records_have_no_basis():
    pmf = rj.datasets.asia()
    answer = pmf.ask("P(lung = yes | smoke = yes)")
    assert (answer.basis, answer.bounds, answer.rests_on) == (None, None, None)
    assert "basis" not in answer.to_json()


def test_identified_names_the_certificate():
    truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 5)
    tables = rj.Marginals.from_pmf(truth, order=3)
    question = "P(x0 = 0 | x1 = 0, x2 = 0, x3 = 0)"
    found = rj.factorize(tables, rank=2, random_state=0).pmf.ask(question)
    assert found.basis == "identified"
    assert "identified at rank 2: No other model of rank 2 has these tables (Lemma 1" in str(found)
    assert "; joints of any rank with these tables give 0.72 to 1\n" in str(found)
    low = rj.factorize(tables, rank=1, random_state=0).pmf.ask(question)
    assert low.basis == "open"
    assert "0.72 to 1, which this model is outside of: it does not meet them" in str(low)
    pmf = truth.with_tables(tables, "Kruskal's condition holds.")
    answer = pmf.ask("P(x0, x1, x2, x3)")
    assert answer.basis == "identified"
    assert "identified at rank 2: Kruskal's condition holds; in parentheses" in str(answer)
    assert pmf.ask("P(x0, x1, x2)").basis == "published"
    assert "Kruskal's condition holds" in model_verdict(pmf).verdict
    assert pmf.reduce(rank=2).pmf.ask("P(x0, x1, x2, x3)").basis == "open"  # another model


def test_ranges_are_found_when_asked_for_and_once(town, monkeypatch):
    from rejoint.pmf import answer_basis

    calls = []

    def count(*args, **options):
        calls.append(1)
        return found(*args, **options)

    found = answer_basis.bound_answers
    monkeypatch.setattr(answer_basis, "bound_answers", count)
    answer = town.ask("P(Education = Degree | Work = Student)")
    assert repr(answer)
    assert not calls
    assert str(answer) == str(replace(answer, notes=()))
    assert answer.bounds is answer.bounds
    assert len(calls) == 1


def test_json_has_basis_and_bounds(town):
    plain = town.ask("P(Age | Pass = Monthly)").to_json()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["basis"] == "open"
    assert plain["basis_text"].startswith("open: no table holds Age and Pass together")
    assert plain["bounds"]["sharp"] is True
    assert len(plain["bounds"]["low"]) == 4
    published = town.ask("P(Age)").to_json()
    assert (published["basis"], published["bounds"]) == ("published", None)


def test_large_tables_say_that_they_have_no_ranges(town):
    answer = town.ask("P(Age, Education, Work, Travel)")
    assert answer.basis == "open"
    assert answer.bounds is None
    assert "without ranges for 240 cells: ask for fewer at a time" in answer.rests_on.text


def test_ambiguity_is_about_the_tables_that_were_given():
    truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    pmf = truth.with_tables(rj.Marginals.from_pmf(truth, order=2))
    given = {"x1": 0, "x2": 0, "x3": 0}
    assert truth.ambiguity("x0", given).distance < 1e-6  # all tables of three variables
    assert pmf.ambiguity("x0", given).distance > 0.01


# A model that misses its tables says so


def test_published_numbers_that_the_model_misses():
    tables = rj.Marginals.from_tables({("smoke", "lung"): [[90, 110], [10, 790]]})
    answer = independent(tables).ask("P(lung = 0 | smoke = 0)")
    assert answer.basis == "published"
    assert "which gives 0.45: this model does not meet it" in str(answer)
    assert "does not meet" in str(independent(tables).ask("P(lung | smoke)"))
    assert "does not meet" not in str(independent(tables).ask("P(lung)"))


def test_implied_numbers_that_the_model_misses(tables):
    text = independent(tables).ask("P(Age = '18-29' | Pass = Student)").rests_on.text
    assert text == ("implied: every joint with these tables gives 1: this model does not meet them")


# What is known of cells


def test_cells_that_were_held_back_are_not_published():
    held = {("a", "b"): {(0, 0): 10, (0, 1): NAN, (1, 0): 30, (1, 1): 40}}
    tables = rj.Marginals.from_tables(held, suppressed=(1, 4))
    pmf = rj.factorize(tables).pmf
    answer = pmf.ask("P(a = 0, b = 1)")
    assert answer.basis == "open"
    assert "cells of the table of a and b that it needs were held back" in answer.rests_on.text
    assert (answer.bounds.low, answer.bounds.high) == pytest.approx((1 / 81, 4 / 84), abs=1e-6)
    assert pmf.ask("P(a = 0 | b = 0)").basis == "published"


def test_published_totals_make_margins_known(tmp_path):
    rows = ["smoke \\ age,young,old,very old,Total", "yes,30,<5,<5,35", "no,8,40,9,57"]
    text = "\n".join([*rows, "maybe,11,12,13,36", ""])
    (tmp_path / "smoke by age.csv").write_text(text)
    tables = rj.Marginals.read(tmp_path)
    pmf = rj.factorize(tables).pmf
    assert pmf.ask("P(smoke)").basis == "published"
    assert pmf.ask("P(age = old | smoke = maybe)").basis == "published"
    assert pmf.ask("P(age = young | smoke = yes)").basis == "published"
    assert pmf.ask("P(age = old | smoke = yes)").basis == "open"


def test_rounded_numbers_are_published_with_their_range():
    tables = chain(rounded="nearest 5")
    pmf = rj.factorize(tables).pmf
    answer = pmf.ask("P(a = 0 | b = 0)")
    assert answer.basis == "published"
    assert answer.bounds.low <= 0.25 <= answer.bounds.high
    assert answer.bounds.high - answer.bounds.low > 0.05
    assert "in the table of a and b, rounded; any joint with these tables gives" in str(answer)


def test_contradicting_tables_say_the_slack():
    pairs = {("a", "b"): [[10, 20], [30, 40]], ("b", "c"): [[20, 30], [20, 30]]}
    with pytest.warns(rj.Remark):
        tables = rj.Marginals.from_tables(pairs)
    answer = independent(tables).ask("P(a = 0, c = 0)")
    assert answer.bounds.slack > 0
    assert "of the total, because they contradict each other)" in str(answer)


def test_noisy_tables_say_the_tolerance():
    exact = independent(chain()).ask("P(a = 0, c = 0)")
    answer = independent(replace(chain(), noisy=True)).ask("P(a = 0, c = 0)")
    assert answer.bounds.high > exact.bounds.high
    assert "of the total, because they come from a sample)" in str(answer)
    published = independent(replace(chain(), noisy=True)).ask("P(a = 0)")
    assert published.rests_on.text == "published: in the table of a and b, of a sample"


# Models made from the model


def test_conditioned_models_answer_as_with_evidence(town):
    given = {"Pass": "Monthly", "District": ["North", "Harbor"]}
    conditioned = town.condition({"Pass": "Monthly"}).condition({"District": ["North", "Harbor"]})
    for answer in (conditioned.ask("P(Age)"), town.condition(given).ask("P(Age)")):
        whole = town.ask("P(Age | Pass = Monthly, District in {North, Harbor})")
        assert answer.basis == whole.basis == "open"
        np.testing.assert_allclose(answer.bounds.low, whole.bounds.low, atol=1e-7)
        np.testing.assert_allclose(answer.bounds.high, whole.bounds.high, atol=1e-7)
    assert town.condition({"Work": "Student"}).ask("P(Age)").basis == "published"


def test_order_and_choice_of_variables_do_not_matter(town):
    domain = rj.Domain(
        tuple(rj.Variable(v.name, v.levels[::-1], v.kind) for v in reversed(list(town.domain)))
    )
    question = "P(Age | Pass = Monthly)"
    whole = town.ask(question)
    for other in (town.align(domain), town.project(["Pass", "Age"]), town.sorted()):
        answer = other.ask(question)
        assert answer.basis == whole.basis
        is_reversed = other.domain["Age"].levels != town.domain["Age"].levels
        back = slice(None, None, -1 if is_reversed else 1)
        np.testing.assert_allclose(answer.bounds.low[back], whole.bounds.low, atol=1e-7)
        np.testing.assert_allclose(answer.bounds.high[back], whole.bounds.high, atol=1e-7)


def test_moments_beside_or_in_place_of_tables():
    domain = rj.Domain.of({"a": [0, 1], "b": [0, 1], "c": [0, 1]})
    means = {"a": 0.5, "b": 0.25, "c": 0.5}
    tables = rj.Marginals.from_tables({}, domain=domain, moments=means)
    shares = [[[1 - mean], [mean]] for mean in means.values()]
    pmf = rj.LowRankPMF([1.0], shares, domain).with_tables(tables)
    answer = pmf.ask("P(a = 1, b = 1)")
    assert answer.basis == "open"
    assert (answer.bounds.low, answer.bounds.high) == pytest.approx((0.0, 0.25))
    assert "moments" in model_verdict(pmf).verdict


def test_tables_of_other_levels_are_refused(tables):
    with pytest.raises(KeyError, match="x0"):
        rj.LowRankPMF([1.0], [[[0.5], [0.5]]]).with_tables(tables)
    with pytest.raises(ValueError, match="different levels"):
        rj.LowRankPMF([1.0], [[[0.5], [0.5]]], rj.Domain.of({"Age": 2})).with_tables(tables)


# Files


def rich():
    """A model whose tables have all that tables can have."""
    pairs = {("a", "b"): [[10, NAN], [NAN, 40]], ("b", "c"): [[0.1, 0.3], [0.2, 0.4]], "c": [3, 4]}
    options = {"moments": {("a", "c"): 0.01}, "table_weight": {"c": 0.0}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tables contradict each other
        tables = rj.Marginals.from_tables(pairs, suppressed=(1, np.inf), **options)
    cells = replace(tables.unknown, sums=((np.array([0, 1]), 9.0),))
    made = replace(tables, unknown=cells, rounding=np.array([2.5, 0.0, 0.0]), noisy=True)
    factors = [np.full((2, 1), 0.5)] * 3
    pmf = rj.LowRankPMF([1.0], factors, tables.domain).with_tables(made, "Unique.")
    return pmf.condition({"c": np.array([0.25, 1.0])})


@pytest.mark.parametrize("name", ["model.rejoint", "model.json"])
def test_files_keep_the_tables(tmp_path, name):
    pmf = rich()
    pmf.save(tmp_path / name)
    for back in (rj.load(tmp_path / name), pickle.loads(pickle.dumps(pmf))):
        kept, was = back.tables.marginals, pmf.tables.marginals
        assert kept.domain == was.domain
        assert kept.index_subsets == was.index_subsets
        for field in ("flat", "table_weight", "counted", "rounding"):
            np.testing.assert_array_equal(getattr(kept, field), getattr(was, field))
        assert kept.noisy is True
        assert kept.moments == was.moments
        for field in ("places", "low", "high"):
            np.testing.assert_array_equal(getattr(kept.unknown, field), getattr(was.unknown, field))
        assert [(m.tolist(), value) for m, value in kept.unknown.sums] == [([0, 1], 9.0)]
        assert back.tables.identified == "Unique."
        np.testing.assert_array_equal(back.tables.evidence[2], [0.25, 1.0])


def test_large_tables_are_kept_by_name_only(tables, monkeypatch, tmp_path):
    monkeypatch.setattr(given_tables, "MOST_CELLS", 10)
    pmf = independent(tables)
    pmf.save(tmp_path / "large.json")
    for each in (pmf, rj.load(tmp_path / "large.json")):
        assert each.tables.marginals is None
        assert each.ask("P(Work | Age)").basis == "published"
        assert "without a range" in str(each.ask("P(Age | Pass)"))


def altered(change, part="tables"):
    """The text of a saved model after a change of its tables, or of an array of theirs."""

    def write(path):
        rich().save(path)
        plain = json.loads(path.read_text(encoding="utf-8"))
        change(plain[part])
        for array in plain["arrays"].values():
            if isinstance(array, dict) and isinstance(array.get("values"), list):
                array["shape"] = [*np.shape(array["values"])]
        path.write_text(json.dumps(plain), encoding="utf-8")

    return write


STRANGE = [None, True, -1, 0, 10**400, "", "x", [], {}, [[]], [None], [10**400], [[0, 10**400]]]


@pytest.mark.parametrize("value", STRANGE, ids=[repr(x)[:12] for x in STRANGE])
@pytest.mark.parametrize(
    "key",
    [
        *("domain", "subsets", "identified", "evidence", "weight", "counted", "rounding", "noisy"),
        *("sums", "moments"),
    ],
)
def test_altered_tables_load_or_are_refused_in_words(tmp_path, key, value):
    path = tmp_path / "model.json"
    altered(lambda plain: plain.update({key: value}))(path)
    try:
        pmf = rj.load(path)
    except ValueError as error:
        assert "truncated or corrupt" in str(error)  # noqa: PT017 (either is right)
        return
    assert str(pmf.ask("P(a)"))


@pytest.mark.parametrize("value", STRANGE, ids=[repr(x)[:12] for x in STRANGE])
@pytest.mark.parametrize("name", ["table_cells", "unknown_cells"])
def test_altered_cells_are_refused_in_words(tmp_path, name, value):
    altered(lambda arrays: arrays.update({name: value}), "arrays")(tmp_path / "a.json")
    with pytest.raises(ValueError, match="truncated or corrupt"):
        rj.load(tmp_path / "a.json")
    altered(lambda arrays: arrays[name].update(values=value), "arrays")(tmp_path / "a.json")
    with pytest.raises(ValueError, match="truncated or corrupt"):
        rj.load(tmp_path / "a.json")


# Any tables


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_truth_lies_within_and_published_is_what_one_table_holds(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(2, 4, 4))
    joint = rng.dirichlet(np.full(int(np.prod(shape)), 0.5)).reshape(shape)
    truth = rj.LowRankPMF.from_dense(joint)
    every = [(i, j) for j in range(4) for i in range(j)]
    chosen = {every[k] for k in rng.permutation(len(every))[:3]} | {(0, 1), (1, 2), (2, 3)}
    subsets = [tuple(f"x{n}" for n in s) for s in sorted(chosen)]
    tables = rj.Marginals.from_pmf(truth, subsets=subsets)
    pmf = truth.with_tables(tables)
    a, b, c = (int(n) for n in rng.permutation(4)[:3])
    asked = {f"P(x{a} = 0 | x{b} = 1)": {a, b}, f"P(x{a}, x{c} = 0 | x{b})": {a, b, c}}
    for question, used in asked.items():
        answer = pmf.ask(question)
        held = any(used <= set(s) for s in chosen)
        assert (answer.basis == "published") is held
        if not held:
            value = np.asarray(answer.value)
            assert (np.asarray(answer.bounds.low) <= value + 1e-6).all()
            assert (value <= np.asarray(answer.bounds.high) + 1e-6).all()
        assert "does not meet" not in answer.rests_on.text


def test_columns_have_the_ranges_that_each_has_alone():
    rng = np.random.default_rng(3)
    joint = rng.dirichlet(np.ones(36)).reshape(3, 2, 3, 2)
    names = ["a", "b", "c", "d"]
    pairs = {
        (names[i], names[j]): joint.sum(tuple(k for k in range(4) if k not in (i, j)))
        for i in range(4)
        for j in range(i + 1, 4)
    }
    tables = rj.Marginals.from_tables(pairs)
    p = rj.factorize(tables).pmf
    whole = p.ask("P(a | b, c, d = 1)").bounds
    for b in range(2):
        for c in range(3):
            alone = p.ask(f"P(a | b = {b}, c = {c}, d = 1)").bounds
            np.testing.assert_allclose(whole.low[:, b, c], alone.low, atol=1e-7)
            np.testing.assert_allclose(whole.high[:, b, c], alone.high, atol=1e-7)
