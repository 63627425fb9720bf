"""Marginals counted from records: against brute force, in chunks, in covers, within memory."""

import itertools
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rejoint as rj
from rejoint.marginals import Marginals
from rejoint.marginals import subsets as covers
from rejoint.marginals.subsets import random_cover
from rejoint.records.merge import merge_rows


def make_records(rows=200, shape=(2, 3, 4, 2), missing=0.3, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, n, size=rows) for n in shape], axis=1)
    codes[rng.random(codes.shape) < missing] = -1
    weight = rng.random(rows) if weighted else None
    return rj.Records(rj.Domain.of_shape(shape), codes, weight)


def brute_force(records, names):
    where = [records.domain.index(n) for n in names]
    table = np.zeros([records.domain.shape[n] for n in where])
    for row in records.codes:
        cell = tuple(int(row[n]) for n in where)
        if min(cell) >= 0:
            table[cell] += 1
    return table


# --- counting ---------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_every_order_against_brute_force(order):
    records = make_records()
    m = Marginals.count(records, order=order)
    assert m.subsets == tuple(itertools.combinations(records.names, order))
    for names in m:
        np.testing.assert_array_equal(m[names], brute_force(records, names))
        assert m.total(*names) == brute_force(records, names).sum()


def test_axes_come_in_the_order_asked():
    records = make_records()
    m = Marginals.count(records, order=3)
    for names in itertools.permutations(("x0", "x2", "x3")):
        np.testing.assert_array_equal(m[names], brute_force(records, names))
        np.testing.assert_allclose(  # a division apart
            m.marginal(names), brute_force(records, names) / m.total(*names), rtol=1e-15
        )


def test_given_subsets_of_mixed_orders_keep_their_place():
    records = make_records()
    m = Marginals.count(records, subsets=[("x3", "x0"), "x1", ("x2", "x1", "x0")])
    assert m.subsets == (("x0", "x3"), ("x1",), ("x0", "x1", "x2"))
    assert m.index_subsets == ((0, 3), (1,), (0, 1, 2))
    np.testing.assert_array_equal(m["x1"], brute_force(records, ["x1"]))
    assert len(m) == 3
    assert ("x3", "x0") in m
    assert "x0" not in m
    assert "nothing" not in m


def test_several_orders_at_once():
    m = Marginals.count(make_records(), order=[1, 3])
    assert sorted(map(len, m.subsets)) == [1] * 4 + [3] * 4


def test_order_is_three_or_all_variables_if_fewer():
    assert {len(s) for s in Marginals.count(make_records()).subsets} == {3}
    two = Marginals.count(make_records(shape=(3, 2)))
    assert two.subsets == (("x0", "x1"),)


@settings(max_examples=30)
@given(
    cuts=st.lists(st.integers(0, 120), max_size=4),
    seed=st.integers(0, 100),
    order=st.integers(1, 4),
)
def test_chunks_add_up_exactly(cuts, seed, order):
    records = make_records(120, seed=seed)
    whole = Marginals.count(records, order=order)
    ends = [0, *sorted(cuts), 120]
    parts = [rj.Records(records.domain, records.codes[a:b]) for a, b in itertools.pairwise(ends)]
    streamed = Marginals.count(iter(parts), order=order)
    np.testing.assert_array_equal(streamed.flat, whole.flat)
    added = Marginals.count(parts[0], order=order)
    for part in parts[1:]:
        added += Marginals.count(part, order=order)
    np.testing.assert_array_equal(added.flat, whole.flat)
    np.testing.assert_array_equal(added.totals, whole.totals)


@settings(max_examples=30)
@given(seed=st.integers(0, 1000))
def test_tables_of_complete_records_agree(seed):
    m = Marginals.count(make_records(50, missing=0.0, seed=seed), order=[1, 2, 3])
    # Counts are whole numbers, so only the division by the same total is rounded.
    assert all(d.distance < 1e-14 for d in m.disagreements())


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), perm=st.permutations(range(4)))
def test_permuting_variables_permutes_axes(seed, perm):
    records = make_records(60, seed=seed)
    turned = records.project([f"x{n}" for n in perm])
    one = Marginals.count(records, order=3)
    other = Marginals.count(turned, order=3)
    for names in one:
        np.testing.assert_array_equal(one[names], other[names])


def test_frames_chunks_and_labels():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": ["x", "y", "x", None], "b": [1, 2, 2, 1]})
    m = Marginals.count(frame, order=2)
    np.testing.assert_array_equal(m["a", "b"], [[1, 1], [0, 1]])
    domain = rj.Domain.of({"a": ["y", "x", "never"], "b": [1, 2]})
    m = Marginals.count((frame[i : i + 1] for i in range(4)), order=2, domain=domain)
    np.testing.assert_array_equal(m["a", "b"], [[0, 1], [1, 1], [0, 0]])


def test_weights_are_summed():
    records = make_records(weighted=True)
    m = Marginals.count(records, order=2)
    seen = (records.codes[:, [0, 1]] >= 0).all(axis=1)
    # 200 additions of numbers below one, in two orders.
    np.testing.assert_allclose(
        m.total("x0", "x1"), records.sample_weight[seen].sum(), rtol=200 * 2.0**-52
    )
    given = Marginals.count([{"a": 0}, {"a": 1}], order=1, sample_weight=[2.5, 1.0])
    np.testing.assert_array_equal(given["a"], [2.5, 1.0])


@pytest.mark.parametrize("weighted", [False, True])
def test_merging_identical_records_changes_nothing(weighted):
    records = make_records(5000, shape=(2, 3, 2), weighted=weighted)
    codes, weight = merge_rows(records.codes, records.domain.shape, records.sample_weight)
    assert len(codes) <= 3 * 4 * 3
    assert len(np.unique(codes, axis=0)) == len(codes)
    subsets = covers.choose_subsets(records.domain, [1, 2, 3])
    from rejoint import kernels

    direct = kernels.count(records.codes, records.sample_weight, records.domain.shape, subsets)
    merged = kernels.count(codes, weight, records.domain.shape, subsets)
    if weighted:
        np.testing.assert_allclose(merged, direct, rtol=5000 * 2.0**-52)  # order of additions
    else:
        np.testing.assert_array_equal(merged, direct)
    m = Marginals.count(records, order=[1, 2, 3])  # the path that decides to merge
    np.testing.assert_array_equal(m.flat, merged)


def test_threads_do_not_matter():
    for weighted in (False, True):
        records = make_records(9000, shape=(5, 6, 7, 8), weighted=weighted)
        one = Marginals.count(records, order=3, threads=1)
        two = Marginals.count(records, order=3, threads=2)
        np.testing.assert_array_equal(one.flat, two.flat)


# --- what is said of wrong requests -----------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "error", "words"),
    [
        ({"order": 5}, ValueError, "asks for tables of 5 variables, but the data have 4"),
        ({"order": 0}, ValueError, "give an order between 1 and 4"),
        ({"order": []}, ValueError, "order is an empty list"),
        ({"order": "3"}, TypeError, "order must be a whole number"),
        ({"order": 2.0}, TypeError, "order must be a whole number or a list of them, got 2.0"),
        ({"subsets": []}, ValueError, "subsets is empty"),
        ({"subsets": "x0"}, TypeError, "must be a list of tuples of names, got the text 'x0'"),
        ({"subsets": [()]}, ValueError, "A subset without variables"),
        ({"subsets": [("x0", "x0")]}, ValueError, "names 'x0' twice"),
        ({"subsets": [("x0", "x1"), ("x1", "x0")]}, ValueError, "is requested twice (before as"),
        ({"subsets": [("x0", "xx1")]}, KeyError, "Did you mean 'x1'?"),
        ({"subsets": ["x0"], "order": 2}, ValueError, "Give subsets=, or order="),
        ({"sample": 1, "order": 3}, ValueError, "cannot cover 4 variables: that takes at least 2"),
        ({"sample": 3, "order": [2, 3]}, ValueError, "draws subsets of one order"),
        ({"sample": 2.5, "order": 3}, TypeError, "sample must be a whole number of tables"),
        ({"order": 2, "threads": 0}, ValueError, "threads must be at least 1, got 0"),
    ],
)
def test_wrong_requests(request_, error, words):
    with pytest.raises(error, match=re.escape(words)):
        Marginals.count(make_records(), **request_)


def test_chunks_need_a_domain():
    with pytest.raises(ValueError, match="Chunks need a domain, since one chunk may not show"):
        Marginals.count(iter([[{"a": 1}]]), order=1)
    with pytest.raises(ValueError, match="iterator of chunks is empty"):
        Marginals.count(iter([]), order=1)
    with pytest.raises(ValueError, match="cannot be matched to an iterator of chunks"):
        Marginals.count(iter([make_records()]), order=1, sample_weight=[1.0])


def test_tables_that_would_not_fit_are_refused_before_anything_is_allocated():
    records = rj.Records(rj.Domain.of_shape([10] * 1000), np.zeros((2, 1000), dtype=np.int16))
    with pytest.raises(ValueError, match="166,167,000 tables of order 3") as caught:
        Marginals.count(records, order=3)
    for words in ("1.3 TB", "limit of", "subsets=[...]", "order=2", "sample=20000"):
        assert words in str(caught.value)
    with pytest.raises(ValueError, match=r"The 1 table requested would take 8\.1 kB"):
        Marginals.count(records, subsets=[("x0", "x1", "x2")], memory_limit=1000)
    with pytest.raises(ValueError, match="tables requested would take"):
        Marginals.count(records, order=3, sample=400, memory_limit=1e5)
    assert len(Marginals.count(records, subsets=[("x0", "x1", "x2")])) == 1


def test_memory_of_an_order_is_that_of_its_subsets():
    shape = [2, 3, 4, 5, 6]
    for order in range(1, 5):
        subsets = list(itertools.combinations(range(5), order))
        tables, size = covers.memory_of_order(shape, order)
        assert tables == len(subsets)
        assert size == covers.memory_of_subsets(shape, subsets)


# --- random covers ----------------------------------------------------------------------------


def covered_pairs(cover):
    return {pair for subset in cover for pair in itertools.combinations(subset, 2)}


def test_a_cover_of_a_thousand_variables():
    cover = random_cover(1000, 3, 20_000, np.random.default_rng(0))
    assert len(set(cover)) == 20_000
    assert all(a < b < c for a, b, c in cover)
    assert {n for s in cover for n in s} == set(range(1000))
    # 20,000 triples have at most 60,000 pairs; the shuffled groups waste a few.
    assert len(covered_pairs(cover)) > 59_900


@settings(max_examples=40)
@given(
    n=st.integers(4, 16), order=st.integers(2, 4), extra=st.integers(0, 60), seed=st.integers(0, 9)
)
def test_covers_have_every_variable_and_enough_of_them_every_pair(n, order, extra, seed):
    sample = -(-n // order) + extra
    cover = random_cover(n, order, sample, np.random.default_rng(seed))
    every = list(itertools.combinations(range(n), order))
    assert len(set(cover)) == len(cover) == min(sample, len(every))
    assert {v for s in cover for v in s} == set(range(n))
    # Each further subset brings a new pair as long as one is left.
    assert len(covered_pairs(cover)) >= min(n * (n - 1) // 2, sample)


def test_all_pairs_are_covered_where_the_sample_allows():
    # 67 triples are known to be the least that cover all pairs of 20; greedy needs a few more.
    cover = random_cover(20, 3, 90, np.random.default_rng(1))
    assert len(covered_pairs(cover)) == 190


def test_covers_are_seeded():
    records = make_records(shape=[2] * 12)
    one, same, other = (
        Marginals.count(records, order=3, sample=30, random_state=seed).subsets
        for seed in (0, 0, 1)
    )
    assert one == same
    assert one != other
    assert len(one) == 30


def test_order_one_and_large_fills():
    assert random_cover(4, 1, 9, np.random.default_rng(0)) == ((0,), (1,), (2,), (3,))
    # More subsets than are listed at once: drawn one by one.
    cover = random_cover(300, 3, 30_000, np.random.default_rng(0))
    assert len(set(cover)) == 30_000
    assert len(covered_pairs(cover)) == 300 * 299 // 2


# --- looking up, adding, passing on -----------------------------------------------------------


def test_marginal_comes_from_the_table_with_most_records():
    rows = [{"a": 0, "b": 0, "c": None}] * 3 + [{"a": 1, "b": None, "c": 0}]
    domain = rj.Domain.of({"a": 2, "b": 2, "c": 2})
    m = Marginals.count(rows, order=2, domain=domain)
    np.testing.assert_array_equal(m.marginal("a"), [1, 0])
    np.testing.assert_array_equal(m.shares(1), [[0, 0], [1, 0]])
    np.testing.assert_array_equal(m.shares(2), np.zeros((2, 2)))  # no record has b and c
    with pytest.raises(ValueError, match=r"No table with records holds \('b', 'c'\) together"):
        m.marginal(["b", "c"])
    with pytest.raises(ValueError, match="No table with records holds"):
        m.marginal(["a", "b", "c"])


def test_unknown_tables_are_named():
    m = Marginals.count(make_records(), order=3)
    with pytest.raises(KeyError, match=r"There is no table of \('x0', 'x1'\).*sums .* down"):
        m["x0", "x1"]
    with pytest.raises(KeyError, match="fit a model, which has every table"):
        Marginals.count(make_records(), order=1)["x0", "x1"]
    with pytest.raises(KeyError, match="Did you mean"):
        m["x0", "x1", "xx2"]
    with pytest.raises(ValueError, match="names a variable twice"):
        m["x0", "x0", "x1"]


def test_union_of_different_subsets():
    records = make_records()
    one = Marginals.count(records, subsets=["x0", ("x0", "x1")])
    other = Marginals.count(records, subsets=[("x1", "x2"), ("x1", "x0")])
    both = one + other
    assert both.subsets == (("x0",), ("x0", "x1"), ("x1", "x2"))
    np.testing.assert_array_equal(both["x0", "x1"], 2 * one["x0", "x1"])
    np.testing.assert_array_equal(both["x2", "x1"], other["x2", "x1"])
    np.testing.assert_array_equal(both.table_weight, np.ones(3))


def test_what_cannot_be_added():
    m = Marginals.count(make_records(), order=1)
    with pytest.raises(ValueError, match="only over the same domain"):
        m + Marginals.count(make_records(shape=(2, 2)), order=1)
    shares = Marginals.from_tables({"a": [0.5, 0.5]})
    with pytest.raises(ValueError, match="shares do not add up"):
        shares + shares
    light, heavy = (Marginals.from_tables({"a": [1, 2]}, table_weight=w) for w in (1, 2))
    with pytest.raises(ValueError, match=r"table_weight 1 here and 2 there"):
        light + heavy
    with pytest.raises(TypeError):
        m + 1


def test_exact_tables_of_a_pmf():
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.ones(n), size=2).T for n in (2, 3, 4)]
    pmf = rj.LowRankPMF([0.3, 0.7], factors)
    m = Marginals.from_pmf(pmf, order=2)
    np.testing.assert_array_equal(m.totals.round(14), np.ones(3))
    assert not m.counted.any()
    dense = np.einsum("f,af,bf,cf->abc", pmf.weights, *factors)
    # Two ways to add up products of three numbers: a few roundings each.
    np.testing.assert_allclose(m[m.subsets[1]], dense.sum(axis=1), rtol=1e-14)
    chosen = Marginals.from_pmf(pmf, order=2, sample=2, random_state=0)
    assert len(chosen) == 2


def test_frozen_and_pickled():
    m = Marginals.count(make_records(), order=2)
    for array in (m.flat, m.totals, m.table_weight, m["x0", "x1"]):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    again = pickle.loads(pickle.dumps(m))
    np.testing.assert_array_equal(again.flat, m.flat)
    assert again.subsets == m.subsets


def test_cells_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="4 cells in 1 table, but flat has shape"):
        Marginals(rj.Domain.of_shape([2, 2]), ((0, 1),), np.ones(5))


def test_repr_says_what_is_in_it():
    assert repr(Marginals.count(make_records(), order=2)).startswith(
        "Marginals(6 tables of order 2 over 4 variables, "
    )
    assert repr(Marginals.from_tables({"a": [0.5, 0.5]})) == (
        "Marginals(1 table of order 1 over 1 variable)"
    )
