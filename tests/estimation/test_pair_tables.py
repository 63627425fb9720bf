"""Agreement with tables of two variables: by brute force, and on records of no low rank."""

import re
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_records import random_records

import rejoint as rj
from rejoint.estimation import Policy, estimate, pair_tables
from rejoint.estimation.data import InMemory
from rejoint.estimation.em import Em
from rejoint.estimation.gibbs import Draw
from rejoint.estimation.pair_tables import (
    Groups,
    Misfit,
    PairTables,
    agree,
    apart,
    association,
    block_sums,
    count_pairs,
    divide,
    excess,
    find_gaps,
    misfit_factors,
    move,
    normalize_blocks,
    pair_shares,
    resolutions,
    table_variance,
)
from rejoint.estimation.posterior_mean import posterior_mean
from rejoint.model import Layout, Model
from rejoint.solver import Limits
from rejoint.solver.run import run

LEVELS = (2, 3, 4)


def random_model(rng, levels=LEVELS, rank=3):
    return Model.of(
        rng.dirichlet(np.ones(rank)), [rng.dirichlet(np.ones(n), rank).T for n in levels]
    )


def table(model, i, j):
    return (model.parts[i] * model.weights) @ model.parts[j].T


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_shares_are_those_of_each_two_variables(seed):
    model = random_model(np.random.default_rng(seed))
    shares, layout = pair_shares(model), model.layout
    for i, j in combinations(range(3), 2):
        np.testing.assert_allclose(shares[layout.rows(i), layout.rows(j)], table(model, i, j))
    assert not shares[~apart(layout)].any()
    np.testing.assert_allclose(block_sums(layout, shares), 1.0 - np.eye(3))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_complete_records_are_counted(seed):
    rng = np.random.default_rng(seed)
    records = random_records(seed, LEVELS, 50)
    weight = rng.integers(1, 4, len(records)).astype(float)
    data = InMemory.of(rj.Records(records.domain, records.codes, weight))
    tables = count_pairs(data, random_model(rng), rng)
    counted = rj.Marginals.count(records, order=2, sample_weight=weight)
    for i, j in combinations(range(3), 2):
        names = records.names[i], records.names[j]
        found = tables.counts[tables.layout.rows(i), tables.layout.rows(j)]
        np.testing.assert_allclose(found, counted[names], atol=1e-4)
        assert tables.records[i, j] == weight.sum()


@pytest.mark.parametrize(
    ("rank", "cells", "rtol"), [(1, np.inf, 1e-7), (3, np.inf, 1e-7), (3, 0, 1e-5)]
)
def test_a_step_is_that_of_records_of_two_cells(rank, cells, rtol, monkeypatch):
    """Tables are met as records that hold two variables each would be, in single precision too."""
    monkeypatch.setattr(pair_tables, "SINGLE_CELLS", cells)
    rng = np.random.default_rng(1)
    truth, model = random_model(rng), random_model(rng, rank=rank)
    layout = Layout(LEVELS)
    tables = PairTables(layout, pair_shares(truth), 100.0 * (1.0 - np.eye(3)))
    found = tables.expect(model)
    classes, levels, value = 0.0, np.zeros_like(model.factors), 0.0
    for i, j in combinations(range(3), 2):
        for a in range(LEVELS[i]):
            for b in range(LEVELS[j]):
                mass = 100.0 * table(truth, i, j)[a, b] / 2  # each variable has two partners
                joint = model.weights * model.parts[i][a] * model.parts[j][b]
                value += mass * np.log(joint.sum())
                share = mass * joint / joint.sum()
                classes = classes + share
                levels[layout.offsets[i] + a] += share
                levels[layout.offsets[j] + b] += share
    assert found.log_likelihood == pytest.approx(value, rel=rtol)
    np.testing.assert_allclose(found.classes, classes, rtol)
    np.testing.assert_allclose(found.levels, levels, rtol)


def test_em_on_tables_never_falls():
    rng = np.random.default_rng(2)
    truth, model = random_model(rng), random_model(rng)
    tables = PairTables(truth.layout, pair_shares(truth), 100.0 * (1.0 - np.eye(3)))
    done = run(Em(limits=Limits(max_steps=40, exact=-1.0)), tables, model)
    objectives = [record.objective for record in done.records]
    assert objectives == sorted(objectives, reverse=True)
    assert np.abs(pair_shares(done.model) - pair_shares(truth)).max() < 0.02


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2))
def test_divided_classes_are_the_same_joint(seed, variable):
    model = random_model(np.random.default_rng(seed))
    parts = divide(model, variable)
    assert parts.rank == LEVELS[variable] * model.rank
    np.testing.assert_allclose(pair_shares(parts), pair_shares(model), atol=1e-12)
    np.testing.assert_allclose(parts.layout.sums(parts.factors), 1.0)
    few = divide(model, variable, 2.0)  # levels of few records stay together
    assert few.rank <= parts.rank
    np.testing.assert_allclose(pair_shares(few), pair_shares(model), atol=1e-12)
    assert divide(model, variable, 0.1).rank == model.rank


def judged(model, truth, records, ordered=False):
    layout = model.layout
    count = len(layout.levels)
    tables = PairTables(layout, pair_shares(truth), records * (1.0 - np.eye(count)))
    return Misfit.of(tables, model, [model, model], [ordered] * count)


def test_no_misfit_moves_nothing():
    rng = np.random.default_rng(3)
    model = random_model(rng)
    misfit = judged(model, model, 1000.0)
    assert misfit.fits
    assert not misfit.trust.any()
    moved = agree(misfit, model, model.rank)
    np.testing.assert_allclose(pair_shares(moved), pair_shares(model), atol=1e-9)


def test_the_more_records_contradict_the_model_the_more_they_are_trusted():
    rng = np.random.default_rng(4)
    model, truth = random_model(rng), random_model(rng)
    trusts = [judged(model, truth, records).trust[0, 1] for records in (30.0, 300.0, 30_000.0)]
    assert trusts == sorted(trusts)
    assert trusts[-1] > 0.5
    off = np.abs(pair_shares(model) - pair_shares(truth)).max()
    moved = agree(judged(model, truth, 30_000.0), model, 3 * model.rank)
    assert np.abs(pair_shares(moved) - pair_shares(truth)).max() < 0.3 * off


def test_an_anchor_holds():
    rng = np.random.default_rng(5)
    model, truth = random_model(rng), random_model(rng)
    tables = judged(model, truth, 1000.0).target
    loose, tight = (move(tables, model, anchor) for anchor in (0.01, 100.0))
    away = [np.abs(pair_shares(m) - pair_shares(model)).max() for m in (loose, tight)]
    assert away[1] < 0.1 * away[0]


def test_chance_alone_is_no_gap():
    rng = np.random.default_rng(6)
    model = random_model(rng)
    domain = rj.Domain.of_shape(LEVELS)
    pmf = rj.LowRankPMF(model.weights, model.parts, domain)
    data = InMemory.of(pmf.sample(5000, random_state=0))
    tables = count_pairs(data, model, rng)
    assert find_gaps(data, tables, model) == ()
    other = Model.of([1.0], [part @ model.weights[:, None] for part in model.parts])
    gaps = find_gaps(data, tables, other)
    assert gaps
    worst = np.unravel_index(np.argmax(np.triu(excess(tables, other, 2.0))), (3, 3))
    assert {gap.names for gap in gaps if len(gap.names) == 2} >= {
        tuple(domain.names[n] for n in worst)
    }
    for gap in gaps:
        given = dict(part.split(" = ") for part in gap.cell.split(", "))
        event = {name: int(level) for name, level in given.items()}
        counted = np.all([data.codes[:, int(n[1:])] == k for n, k in event.items()], axis=0)
        assert gap.given == pytest.approx(data.weight[counted].sum() / data.total, abs=1e-6)
        assert gap.distance > gap.chance


# --- records that are of no low rank ------------------------------------------------------------


def joint_of_no_low_rank(seed, size=(3, 4, 2, 3, 2)):
    """A joint whose every two variables depend in their own way."""
    rng = np.random.default_rng(seed)
    logits = 0.5 * rng.standard_normal(size)
    for i, j in combinations(range(len(size)), 2):
        shape = [size[n] if n in (i, j) else 1 for n in range(len(size))]
        logits = logits + 0.8 * rng.standard_normal(shape)
    dense = np.exp(logits)
    return dense / dense.sum()


def sample(dense, count, seed):
    rng = np.random.default_rng(seed)
    cells = rng.choice(dense.size, count, p=dense.ravel())
    codes = np.array(np.unravel_index(cells, dense.shape)).T
    return rj.Records.of(codes, domain=rj.Domain.of_shape(dense.shape))


def pair_error(dense, pmf):
    """Root mean square error of all tables of two variables."""
    names, gaps = pmf.domain.names, []
    for i, j in combinations(range(dense.ndim), 2):
        rest = tuple(n for n in range(dense.ndim) if n not in (i, j))
        gaps.append((pmf.marginal([names[i], names[j]]) - dense.sum(axis=rest)).ravel())
    return float(np.sqrt(np.mean(np.concatenate(gaps) ** 2)))


@pytest.fixture(scope="module")
def misfitting():
    dense = joint_of_no_low_rank(0)
    data = sample(dense, 4000, 1)
    quick = {"random_state": 0, "solver": "bayes", "rank": 3}
    return dense, data, [estimate(data, **quick, agreement=on) for on in (True, False)]


def test_answers_are_nearer_to_the_truth_and_to_the_counts(misfitting):
    dense, data, (with_it, without) = misfitting
    assert pair_error(dense, with_it.pmf) < 0.6 * pair_error(dense, without.pmf)
    fresh = sample(dense, 4000, 2)
    assert with_it.pmf.log_prob(fresh).mean() > without.pmf.log_prob(fresh).mean()
    worst = [
        rj.Marginals.count(data, order=2).compare(r.pmf)[0].distance for r in (with_it, without)
    ]
    assert worst[0] < worst[1]


def test_classes_that_are_looked_at_stay(misfitting):
    _, _, (with_it, without) = misfitting
    np.testing.assert_array_equal(with_it.pmf.weights, without.pmf.weights)
    assert with_it.pmf.mixture.rank <= without.pmf.mixture.rank


def test_intervals_allow_for_misfit(misfitting):
    dense, _, (with_it, without) = misfitting
    held = []
    for result in (with_it, without):
        hits, names = [], result.pmf.domain.names
        for i, j in combinations(range(dense.ndim), 2):
            rest = tuple(n for n in range(dense.ndim) if n not in (i, j))
            low, high = result.pmf.interval([names[i], names[j]])
            truth = dense.sum(axis=rest)
            hits.append(((low <= truth) & (truth <= high)).ravel())
        held.append(np.concatenate(hits).mean())
    assert held[0] > 0.8
    assert held[1] < held[0] - 0.1


def test_what_is_left_is_said(misfitting):
    _, _, (with_it, without) = misfitting
    assert len(with_it.pmf.gaps) < len(without.pmf.gaps)
    assert without.pmf.gaps[0].text in without.agreement
    rank_one = estimate(misfitting[1], 1, "ml")
    worst = rank_one.pmf.gaps[0]
    assert worst.text in rank_one.agreement
    assert "moved" not in rank_one.agreement
    assert worst.text in rank_one.pmf.ask(f"P({', '.join(worst.names)})").notes
    assert not any("differ from the model" in note for note in rank_one.pmf.ask("P(x0)").notes)


def test_the_result_says_whether_answers_were_moved(misfitting):
    _, _, (with_it, without) = misfitting
    far = re.match(
        r"Answers were moved towards tables of two variables \((0\.\d+)", with_it.agreement
    )
    before, after = (
        [r.pmf.marginal(pair) for pair in combinations(r.pmf.domain.names, 2)]
        for r in (without, with_it)
    )
    distances = [np.abs(a - b).sum() / 2 for a, b in zip(before, after, strict=True)]
    assert float(far[1]) == pytest.approx(np.mean(distances), abs=6e-4)
    assert without.agreement.startswith(
        "Answers were not moved towards tables of two variables (agreement=False)."
    )
    assert len(repr(with_it).splitlines()) <= 12


def test_beyond_the_limit_on_levels_the_tables_that_tell_most_are_looked_at():
    """A pair of balanced items that depend on each other, among rare ones that say little."""
    rng = np.random.default_rng(0)
    rare = rng.random((2000, 30)) < 0.01
    first = rng.random(2000) < 0.5
    second = np.where(rng.random(2000) < 0.8, first, ~first)
    columns = {f"rare{n}": rare[:, n] for n in range(30)} | {"first": first, "second": second}
    found = estimate(columns, 1, "ml", policy=Policy(pair_levels=20))
    assert found.pmf.gaps[0].names == ("first", "second")
    assert found.pmf.ask("P(second | first)").notes
    sparse = rj.SparseRecords.of_rows(
        *(np.concatenate(part) for part in zip(*sparse_cells(columns), strict=True))
    )
    gaps = estimate(sparse, 1, "ml", policy=Policy(pair_levels=20)).pmf.gaps
    assert gaps[0] == found.pmf.gaps[0]


def sparse_cells(columns):
    """Rows, names and values of each column."""
    for name, values in columns.items():
        yield np.arange(len(values)), np.repeat(name, len(values)), values


def test_three_variables_are_compared_where_all_pairs_are_met():
    rng = np.random.default_rng(0)
    first, second, other = rng.integers(2, size=(3, 3000))
    third = np.where(rng.random(3000) < 0.9, first ^ second, 1 - (first ^ second))
    columns = {"first": first, "second": second, "third": third, "other": other}
    pmf = estimate(columns, 1, "ml").pmf
    assert [gap.names for gap in pmf.gaps] == [("first", "second", "third")]
    assert pmf.ask("P(third | first, second)").notes
    assert not pmf.ask("P(third | first)").notes


def test_a_model_given_evidence_carries_the_notes_of_the_question(misfitting):
    pmf = estimate(misfitting[1], 1, "ml").pmf
    pair = next(gap.names for gap in pmf.gaps if len(gap.names) == 2)
    rest = next(name for name in pmf.domain.names if name not in pair)
    asked = f"P({rest} | {pair[0]} = 0, {pair[1]} = 0)"
    conditioned = pmf.condition({pair[0]: 0})
    note = pmf.ask(asked).notes
    assert note
    assert conditioned.ask(f"P({rest} | {pair[1]} = 0)").notes == note
    assert conditioned.condition({pair[1]: 0}).ask(f"P({rest})").notes == note
    assert set(note) <= set(conditioned.project([pair[1], rest]).ask(f"P({pair[1]}, {rest})").notes)


def test_gaps_stay_with_a_model(tmp_path):
    dense = joint_of_no_low_rank(0)
    pmf = estimate(sample(dense, 4000, 1), 1, "ml").pmf
    for name in ("model.rejoint", "model.json"):
        pmf.save(tmp_path / name)
        assert rj.load(tmp_path / name).gaps == pmf.gaps
    a, b, *_ = pmf.gaps[0].names
    assert {gap.names for gap in pmf.project([a, b]).gaps} == {(a, b)} or len(pmf.gaps[0].names) > 2
    assert pmf.sorted().gaps == pmf.align(pmf.domain).gaps == pmf.gaps


def test_maximum_likelihood_stays_as_it_is():
    data = random_records(0, (3, 3, 3, 3), 200, rank=3)
    models = [estimate(data, 2, "ml", random_state=0, agreement=on).pmf for on in (True, False)]
    assert models[0] == models[1]


# --- cells that are missing by design -----------------------------------------------------------


def remove_by_design(data, seed):
    """Remove the last variable of nearly all records that have another one at its first level."""
    rng = np.random.default_rng(seed)
    codes = data.codes.copy()
    chance = np.where(codes[:, 1] == 0, 0.9, 0.05)
    codes[rng.random(len(codes)) < chance, 4] = -1
    return rj.Records(data.domain, codes)


def test_tables_of_cells_missing_by_design_do_not_pull():
    """Records that hold both variables are biased where the missing depends on a third."""
    rng = np.random.default_rng(7)
    weights = [0.5, 0.5]
    factors = [[[0.9, 0.1], [0.1, 0.9]]] * 5
    truth = rj.LowRankPMF(weights, factors)
    data = remove_by_design(truth.sample(20_000, random_state=0), 1)
    model = Model.of(truth.weights, truth.factors)
    memory = InMemory.of(data)
    tables, block = count_pairs(memory, model, rng), (model.layout.rows(0), model.layout.rows(4))
    wanted = truth.marginal(["x0", "x4"])
    raw = np.asarray(rj.Marginals.count(data, order=2)["x0", "x4"])
    biased = np.abs(raw / raw.sum() - wanted).max()
    assert biased > 0.1
    assert np.abs(tables.shares[block] - wanted).max() < 0.02
    assert tables.records[0, 4] == raw.sum()
    assert Misfit.of(tables, model, [model, model], [False] * 5).fits


def test_cells_that_are_missing_more_often_are_scaled_by_their_own_share():
    """One table at the mean share of missing cells halved what the records say in these cells."""
    rng, rows = np.random.default_rng(0), 40_000
    first = (rng.random(rows) < 0.25).astype(int)
    second = (rng.random(rows) < np.where(first == 1, 0.1, 0.3)).astype(int)
    second[(first == 1) & (rng.random(rows) < 0.6)] = -1
    data = InMemory.of(rj.Records(rj.Domain.of_shape((2, 2)), np.stack([first, second], axis=1)))
    model = Model.of([1.0], [[[0.75], [0.25]], [[0.7], [0.3]]])  # 0.3 for both levels
    tables = count_pairs(data, model, rng)
    table = tables.shares[:2, 2:]
    assert table[1, 1] / table[1].sum() == pytest.approx(0.1, abs=0.02)
    assert table[0, 1] / table[0].sum() == pytest.approx(0.3, abs=0.02)
    held = tables.behind[:2, 2:] / rows
    np.testing.assert_allclose(held[1], 0.4, atol=0.03)
    np.testing.assert_allclose(held[0], 1.0, atol=0.06)


def test_gaps_allow_for_cells_that_few_records_hold():
    """A table as accurate as one of few records is compared as one of few."""
    even = Model.of([1.0], [[[0.5], [0.5]]] * 2)
    shares = pair_shares(even) * (1.0 + 0.1 * np.kron(1 - np.eye(2), [[1, -1], [-1, 1]]))
    many, few = 10_000.0 * (1.0 - np.eye(2)), 100.0 * (1.0 - np.eye(2))
    behind = np.where(apart(even.layout), 100.0, 0.0)
    found = [
        excess(PairTables(even.layout, shares, *own), even, 5.0)[0, 1]
        for own in ((many,), (many, behind), (few,))
    ]
    assert found[0] > 0.0 > found[1] == found[2]


def test_missing_cells_give_a_table_its_own_number_of_records():
    """Filled tables are scaled up so that they vary as those of the records that hold both."""
    truth = random_model(np.random.default_rng(8), (2, 2, 2), 2)
    pmf = rj.LowRankPMF(truth.weights, truth.parts)
    found = []
    for seed in range(60):
        data = rj.datasets.remove_cells(pmf.sample(400, random_state=seed), 0.4, random_state=seed)
        tables = count_pairs(InMemory.of(data), truth, np.random.default_rng(seed))
        gap = (tables.shares - pair_shares(truth))[:2, 2:4]
        found.append(tables.records[0, 1] * np.sum(gap**2 / pair_shares(truth)[:2, 2:4]))
    # Two margins and their dependence: three degrees of freedom, less as margins rest on more.
    assert 1.5 < np.mean(found) < 4.0


def test_copies_of_a_record_that_holds_little_are_filled_one_by_one():
    """A few classes that stood for all of them made tables that no record shows."""
    classes = 20
    truth = Model.of(
        np.full(classes, 1 / classes), [np.full((2, classes), 0.5), *[np.eye(classes)] * 2]
    )
    whole = [(a, k, k) for a in range(2) for k in range(classes)]
    codes = np.array([*whole, (0, -1, -1), (1, -1, -1)])
    weight = np.array([10.0] * len(whole) + [200.0, 200.0])
    records = rj.Records(rj.Domain.of_shape((2, classes, classes)), codes, weight)
    tables = count_pairs(InMemory.of(records), truth, np.random.default_rng(0))
    # At evenly spaced places each class is drawn as often as it should be, but for one place at
    # either end; four places for 200 copies were off by 0.1.
    np.testing.assert_allclose(tables.shares, pair_shares(truth), atol=0.002)


def test_wide_records_are_left_as_they_are():
    data = random_records(0, (3, 3, 3, 3), 200, rank=3)
    wide = estimate(data, 2, "bayes", random_state=0, policy=Policy(pair_levels=11))
    assert wide.pmf == estimate(data, 2, "bayes", random_state=0, agreement=False).pmf
    limit = (
        "Answers were not moved towards tables of two variables: 12 levels in all, more than 11."
    )
    assert wide.agreement.startswith(limit)


def test_moments_of_models():
    rng = np.random.default_rng(9)
    models = [random_model(rng) for _ in range(5)]
    all_of_them = np.array([pair_shares(model) for model in models])
    layout, mean = models[0].layout, all_of_them.mean(axis=0)
    apart_of = np.array([association(layout, mean, each - mean) for each in all_of_them])
    found = table_variance(models, mean)
    np.testing.assert_allclose(found, apart_of.var(axis=0, ddof=1), atol=1e-15)
    np.testing.assert_allclose(normalize_blocks(layout, 3 * mean), mean)


# --- ordered levels: groups of adjacent ones ----------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.lists(st.booleans(), min_size=3, max_size=3))
def test_groups_are_sums_of_adjacent_levels(seed, ordered):
    model = random_model(np.random.default_rng(seed), (2, 9, 5))
    shares = pair_shares(model)
    for groups in resolutions(model.layout, ordered):
        merged = pair_shares(groups.merge(model))
        np.testing.assert_allclose(groups.sum(shares), merged, atol=1e-15)
        wanted = merged * np.random.default_rng(seed).uniform(0.5, 1.5, merged.shape)
        np.testing.assert_allclose(groups.sum(groups.scale(shares, wanted)), wanted)
    assert groups.layout == model.layout  # the last are the levels themselves


def test_groups_halve_where_there_is_an_order():
    found = resolutions(Layout((25, 3, 2)), [True, False, True])
    assert [groups.layout.levels for groups in found] == [
        *((2, 3, 2), (4, 3, 2), (7, 3, 2), (13, 3, 2), (25, 3, 2)),
    ]
    assert len(resolutions(Layout((25, 3)), [False, False])) == 1
    assert Groups.of(Layout((1, 3)), [True, True], 4).layout.levels == (1, 2)


def test_few_records_show_the_misfit_of_ordered_levels():
    """Fifteen levels of 40 records: no cell differs beyond chance, their halves do."""
    steps = np.arange(15)
    truth, model = (
        Model.of([0.5, 0.5], [np.eye(2), np.stack([up / up.sum(), up[::-1] / up.sum()], axis=1)])
        for up in (np.exp(0.17 * steps), np.exp(0.1 * steps))
    )

    def above(shares):
        return shares[0, 2 + 8 :].sum() / shares[0, 2:].sum()

    counted, own = above(pair_shares(truth)), above(pair_shares(model))
    labels, numbers = (judged(model, truth, 40.0, ordered) for ordered in (False, True))
    assert above(labels.target.shares) == pytest.approx(own)
    assert above(numbers.target.shares) > own + 0.3 * (counted - own)
    np.testing.assert_allclose(block_sums(model.layout, numbers.target.shares), 1 - np.eye(2))


# --- factors of misfit ----------------------------------------------------------------------------


def test_factors_of_tables_learn_from_each_other():
    """Tables of one degree of freedom each: alone they say little of a factor that all share."""
    rng = np.random.default_rng(0)
    free = np.ones((12, 12))
    noise = np.triu(rng.chisquare(1, (12, 12)), 1)
    statistic = 2.0 * (noise + noise.T)
    held = ~np.eye(12, dtype=bool)
    found = misfit_factors(statistic, free, held)[held]
    assert np.abs(found - 2.0).mean() < 0.6 * np.abs(statistic[held] - 2.0).mean()


def test_a_table_that_differs_keeps_its_factor():
    statistic = np.full((8, 8), 10.0)
    statistic[0, 1] = statistic[1, 0] = 200.0
    found = misfit_factors(statistic, np.full((8, 8), 10.0), ~np.eye(8, dtype=bool))
    assert found[0, 1] > 5.0
    assert found[2, 3] < 1.5


def test_shares_of_one_variable_are_no_misfit():
    """How variables depend is judged: draws that differ in shares alone do not hide it."""
    rng = np.random.default_rng(0)
    even = Model.of([1.0], [[[0.5], [0.5]]] * 2)
    draws = [Model.of([1.0], [[[a], [1 - a]] for a in rng.normal(0.5, 0.05, 2)]) for _ in range(40)]
    tables = PairTables(even.layout, pair_shares(even), 100.0 * (1 - np.eye(2)))
    shifted = PairTables(
        even.layout, pair_shares(Model.of([1.0], [[[0.6], [0.4]]] * 2)), tables.records
    )
    both = pair_shares(Model.of([0.5, 0.5], [[[0.6, 0.4], [0.4, 0.6]]] * 2))
    depends = PairTables(even.layout, both, 100.0 * tables.records)
    assert not Misfit.of(shifted, even, draws, [False] * 2).trust.any()
    assert Misfit.of(depends, even, draws, [False] * 2).trust[0, 1] > 0.5


# --- rank one -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("chosen", "moved"), [(True, True), (False, False)])
def test_tables_refute_a_rank_of_one_that_was_chosen(chosen, moved):
    """Who gives the rank asks for independence; where it is chosen, the tables are looked at."""
    codes = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [80, 20, 20, 80], axis=0)
    data = InMemory.of(rj.Records.of(codes, domain=rj.Domain.of_shape((2, 2))))
    rng = np.random.default_rng(0)
    models = [Model.of([1.0], [[[a], [1 - a]]] * 2) for a in rng.normal(0.5, 0.02, 20)]
    even = Model.of([1.0], [[[0.5], [0.5]]] * 2)
    draws = [Draw(model, np.ones(2), even) for model in models]
    found = posterior_mean(data, draws, even, 0, ensemble=chosen, members=[even]).model
    assert (pair_shares(found)[0, 2] > 0.35) == moved
