"""What fits say of their own tables, and where they keep quiet."""

import warnings

import numpy as np
import pytest

import rejoint as rj
from rejoint.identifiability.assessment import assess_records, assess_tables, find_patterns


def random_pmf(levels, rank, seed=0):
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.ones(i), size=rank).T for i in levels]
    return rj.LowRankPMF(rng.dirichlet(np.full(rank, 3.0)), factors)


def tables_of(levels, rank=2, **which):
    return rj.Marginals.from_pmf(random_pmf(levels, rank), **which)


def test_a_rank_beyond_the_tables_is_said_twice():
    tables = tables_of([2] * 5, order=3)
    with pytest.warns(rj.Remark, match="do not determine a joint of rank 6") as said:
        result = rj.factorize(tables, rank=6, n_init=1, random_state=0)
    assert "rank 6 has 35 parameters, the tables have 25 independent numbers" in result.stop
    assert said[0].filename == __file__


def test_pairs_are_said():
    tables = tables_of([3] * 4, order=2)
    with pytest.warns(rj.Remark, match="at least 3 directions of a rank 3 joint"):
        rj.factorize(tables, rank=3, n_init=1, random_state=0)


@pytest.mark.parametrize(
    ("levels", "rank", "which"),
    [
        ([3] * 5, 3, {"order": 3}),
        ([2] * 8, 5, {"order": 3}),  # beyond Kruskal: the exact rank says that it is fine
        ([4] * 3, 20, {"order": 3}),  # the joint is the table
        ([2] * 4, 3, {"order": 3}),  # the joint is unique though the classes are not
        ([3] * 4, 1, {"order": 2}),
        ([3, 3], 3, {"order": 2}),
    ],
)
def test_nothing_serious(levels, rank, which):
    assert not assess_tables(tables_of(levels, **which), rank).serious


def test_classes_that_are_not_unique_are_in_the_words_only():
    tables = tables_of([2] * 4, order=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = rj.factorize(tables, rank=3, n_init=1, random_state=0)
    assert "The joint is locally unique, but its classes are not" in result.stop
    whole = assess_tables(tables_of([2] * 3, order=3), 3)
    assert whole.text.startswith("The joint is in a table, but its classes are not unique")


def test_variables_that_no_table_holds_together_are_named():
    tables = tables_of([3] * 4, subsets=[("x0", "x1", "x2"), ("x1", "x2", "x3")])
    warning = assess_tables(tables, 2)
    assert "No table contains both of: x0 and x3." in warning.text
    assert not warning.serious  # rank 2 is locally unique, and with it how they depend


def test_moments_of_three_variables_close_it():
    domain = rj.Domain.of(dict.fromkeys("abc", 2))
    pairs = {s: np.full((2, 2), 0.25) for s in [("a", "b"), ("b", "c"), ("a", "c")]}
    tables = rj.Marginals.from_tables(pairs, domain=domain, moments={("a", "b", "c"): 0.01})
    assert not assess_tables(tables, 2)


def test_tables_of_weight_zero_do_not_count():
    given = {s: np.ones((2, 2)) for s in [("a", "b"), ("b", "c")]}
    tables = rj.Marginals.from_tables(
        {**given, ("a", "b", "c"): np.ones((2, 2, 2))}, table_weight={("a", "b", "c"): 0.0}
    )
    assert assess_tables(tables, 2).serious


def split_forms(seed=0):
    """Two forms with two questions in common: nobody answers both x0 and x3."""
    records = random_pmf([3] * 4, 2, seed).sample(600, random_state=seed)
    codes = np.array(records.codes)
    codes[:300, 3] = -1
    codes[300:, 0] = -1
    return rj.Records(records.domain, codes)


def test_estimators_say_what_records_never_hold_together():
    model = rj.JointPMF(rank=2, solver="ml", random_state=0)
    with pytest.warns(rj.Remark, match="No record contains both of: x0 and x3"):
        model.fit(split_forms())
    assert "No record contains both of: x0 and x3" in model.result_.choice
    with pytest.warns(rj.Remark, match="do not determine a joint of rank 6"):
        rj.JointPMF(rank=6, solver="ml", random_state=0).fit(split_forms())


def with_cells(number, levels=(3,) * 5, rows=1500):
    """Records of which each has so many cells."""
    rng = np.random.default_rng(0)
    records = random_pmf(levels, 2).sample(rows, random_state=0)
    codes = np.array(records.codes)
    for row in codes:
        row[rng.permutation(len(levels))[number:]] = -1
    return rj.Records(records.domain, codes)


def test_records_of_two_cells_are_pairs():
    with pytest.warns(rj.Remark, match="No record holds more than 2 variables. Tables of two") as w:
        result = rj.estimate(with_cells(2), 3, "ml", n_init=1, random_state=0)
    assert w[0].filename == __file__
    assert "at least 3 directions of a rank 3 joint" in result.choice
    with pytest.warns(rj.Remark, match="Tables of two variables"):
        rj.JointPMF(rank=3, solver="ml", n_init=1, random_state=0).fit(with_cells(2))


def test_records_of_three_cells_are_triples():
    assert not assess_records(with_cells(3), 3)
    warning = assess_records(with_cells(3), 15)
    assert warning.serious
    assert "rank 15 has 164 parameters, the tables have 130 independent numbers" in warning.text


def test_estimate_says_what_records_never_hold_together_and_chunks_do_not():
    with pytest.warns(rj.Remark, match="No record contains both of: x0 and x3"):
        result = rj.estimate(split_forms(), 2, "ml", n_init=1, random_state=0)
    assert result.choice.count("x0 and x3") == 1
    model = rj.JointPMF(rank=2, solver="ml", n_init=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", rj.Remark)
        model.partial_fit(split_forms())  # another chunk may hold them


def test_a_variable_without_a_cell_is_no_pair():
    codes = np.array([[0, 1, -1], [1, 0, -1]], dtype=np.int16)
    warning = assess_records(rj.Records(rj.Domain.of_shape([2, 2, 2]), codes), 2)
    assert warning.text == "No record holds 'x2': nothing is known about it."
    assert not warning.serious


def test_patterns_of_many_variables():
    seen = np.zeros((40, 130), dtype=bool)
    for k in range(40):
        seen[k, [k % 20, k % 20 + 64, 129]] = True
    patterns = {tuple(np.flatnonzero(row)) for row in find_patterns(seen)}
    assert patterns == {(k, k + 64, 129) for k in range(20)}


def test_complete_records_say_nothing_but_too_many_classes():
    records = random_pmf([2] * 3, 2).sample(300, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = rj.JointPMF(rank=2, solver="ml", random_state=0).fit(records)
        assert "not unique" not in model.result_.choice
        model = rj.JointPMF(rank=3, solver="ml", random_state=0).fit(records)
    assert "The classes are not unique: 11 parameters, but the joint has 8 cells." in (
        model.result_.choice
    )


def test_many_patterns_are_not_tested_one_by_one():
    rng = np.random.default_rng(0)
    codes = np.where(rng.random((2000, 14)) < 0.8, rng.integers(0, 2, (2000, 14)), -1)
    codes[codes[:, 0] >= 0, 1] = -1
    codes[:, 2] = np.where(codes[:, 3] >= 0, -1, codes[:, 2])  # some pairs, never
    records = rj.Records(rj.Domain.of_shape([2] * 14), codes.astype(np.int16))
    warning = assess_records(records, 30)
    assert warning.text.startswith("No record contains both of: x0 and x1; x2 and x3.")
    assert "determine" not in warning.text


def test_large_problems_are_left_alone():
    subsets = [(f"x{i}", f"x{(i + 1) % 60}", f"x{(i + 7) % 60}") for i in range(60)]
    tables = tables_of([3] * 60, subsets=subsets)
    assert not assess_tables(tables, 8).serious  # 968 parameters: only counted
    assert assess_tables(tables, 40).serious


def test_many_patterns_of_many_sizes_are_no_obstacle():
    """Taken for as large as the largest they would have too many parts to be counted."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, size=(5000, 30)).astype(np.int16)
    codes[rng.random(codes.shape) < 0.9] = -1
    records = rj.Records(rj.Domain.of_shape([4] * 30), codes)
    assert not assess_records(records, 40)
