"""Shift towards tables of two variables: by brute force, and on records of no low rank."""

import re
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_records import random_records

import rejoint as rj
from rejoint.estimation import Em, Policy, estimate, pair_shift
from rejoint.estimation.data import InMemory
from rejoint.estimation.pair_shift import (
    LevelGroups,
    Misfit,
    PairTables,
    Target,
    count_pairs,
    find_gaps,
    misfit_factors,
    model_tables,
    off_block_mask,
    shift,
)
from rejoint.model import Observed
from rejoint.solver import Limits
from rejoint.solver.run import run

LEVELS = (2, 3, 4)


def random_model(rng, levels=LEVELS, rank=3):
    return Observed.of(
        rng.dirichlet(np.ones(rank)), [rng.dirichlet(np.ones(n), rank).T for n in levels]
    )


def table(model, i, j):
    return (model.parts[i] * model.weights) @ model.parts[j].T


def tables_of(model, records):
    return PairTables(model.layout, records * model_tables(model))


# --- tables ---------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_tables_are_those_of_each_two_variables(seed):
    model = random_model(np.random.default_rng(seed))
    shares, layout = model_tables(model), model.layout
    for i, j in combinations(range(3), 2):
        np.testing.assert_allclose(shares[layout.rows(i), layout.rows(j)], table(model, i, j))
    assert not shares[~off_block_mask(layout)].any()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.4]))
def test_records_that_hold_both_variables_are_counted(seed, missing):
    """Cell by cell, by a loop over the records: nothing is filled in."""
    rng = np.random.default_rng(seed)
    records = random_records(seed, LEVELS, 40, missing=missing)
    weight = rng.integers(1, 4, len(records)).astype(float)
    data = InMemory.of(rj.Records(records.domain, records.codes, weight))
    tables = count_pairs(data, LevelGroups.of(data, Policy(rare_records=0.0)), rng)
    layout = tables.layout
    for i, j in combinations(range(3), 2):
        found = tables.counts[layout.rows(i), layout.rows(j)]
        expected = np.zeros_like(found)
        for row, count in zip(records.codes, weight, strict=True):
            if row[i] >= 0 and row[j] >= 0:
                expected[row[i], row[j]] += count
        np.testing.assert_allclose(found, expected)
        assert tables.records[i, j] == expected.sum()
    np.testing.assert_array_equal(tables.counts, tables.counts.T)


def test_rare_levels_are_pooled_and_variables_left_out_beyond_a_limit():
    rng = np.random.default_rng(0)
    columns = {"wide": rng.zipf(1.5, 3000).clip(max=400), "x": rng.integers(2, size=3000)}
    columns["y"] = columns["x"] ^ (rng.random(3000) < 0.1)
    data = InMemory.of(rj.Records.of(columns, kinds={"wide": "nominal"}))
    groups = LevelGroups.of(data)
    totals = data.level_totals[data.layout.rows(0)]
    assert groups.layout.levels == (int((totals >= 20).sum()) + 1, 2, 2)
    counted = count_pairs(data, groups, rng)
    assert counted.records[0, 1] == pytest.approx(3000)
    few = LevelGroups.of(data, Policy(pair_levels=4))
    assert sum(few.layout.levels) <= 4


@pytest.mark.parametrize(
    ("rank", "cells", "rtol"), [(1, np.inf, 1e-7), (3, np.inf, 1e-7), (3, 0, 1e-5)]
)
def test_a_step_is_that_of_records_of_two_cells(rank, cells, rtol, monkeypatch):
    """Tables are met as records that hold two variables each would be, in single precision too."""
    monkeypatch.setattr(pair_shift, "SINGLE_CELLS", cells)
    rng = np.random.default_rng(1)
    truth, model = random_model(rng), random_model(rng, rank=rank)
    layout, found = truth.layout, tables_of(truth, 100.0).expect(model)
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
    done = run(Em(limits=Limits(max_steps=40, exact=-1.0)), tables_of(truth, 100.0), model)
    objectives = [record.objective for record in done.records]
    assert objectives == sorted(objectives, reverse=True)
    assert np.abs(model_tables(done.model) - model_tables(truth)).max() < 0.02


# --- misfit and target ----------------------------------------------------------------------------


def target_of(model, truth, records, ordered=False):
    layout = model.layout
    order = [size if ordered else 0 for size in layout.levels]
    groups = LevelGroups(range(len(layout.levels)), layout, np.arange(layout.size), order)
    return Target.of(groups, tables_of(truth, records), model, [model, model])


def test_no_misfit_moves_nothing():
    model = random_model(np.random.default_rng(3))
    target = target_of(model, model, 1000.0)
    outside = np.zeros((len(target.spent),) * 2, dtype=bool)
    np.testing.assert_allclose(target.widening(outside), 1.0)
    np.testing.assert_allclose(target.tables.counts, 1000.0 * model_tables(model), atol=1e-9)
    moved = shift(target.tables, model, model, 0.02, 60)
    np.testing.assert_allclose(model_tables(moved), model_tables(model), atol=1e-9)


def test_the_more_records_contradict_the_model_the_nearer_it_moves():
    rng = np.random.default_rng(4)
    model, truth = random_model(rng), random_model(rng)
    off, left = np.abs(model_tables(model) - model_tables(truth)).mean(), []
    for records in (30.0, 300.0, 30_000.0):
        target = target_of(model, truth, records).tables
        moved = shift(target, model, model, 0.02, 60)
        left.append(np.abs(model_tables(moved) - model_tables(truth)).mean() / off)
        held = shift(target, model, model, 100.0, 60)  # a heavy anchor holds
        assert np.abs(model_tables(held) - model_tables(model)).mean() < 0.1 * off
    assert left[0] > 0.9
    assert left[-1] < 0.85  # the target keeps the margins of the model


def test_a_table_of_missing_cells_is_judged_by_its_own_records():
    """Who holds a variable may depend on others: that shows in margins, which are no misfit."""
    truth = Observed.of([0.5, 0.5], [[[0.9, 0.1], [0.1, 0.9]]] * 3)
    codes = rj.LowRankPMF(truth.weights, truth.parts).sample(20_000, random_state=0).codes.copy()
    chance = np.where(codes[:, 1] == 0, 0.9, 0.05)
    codes[np.random.default_rng(1).random(len(codes)) < chance, 2] = -1
    data = InMemory.of(rj.Records(rj.Domain.of_shape((2, 2, 2)), codes))
    tables = count_pairs(data, LevelGroups.of(data), np.random.default_rng(0))
    misfit = Misfit.of(tables, model_tables(truth))
    both = codes[(codes[:, 1] >= 0) & (codes[:, 2] >= 0)]
    assert tables.records[1, 2] == len(both)
    # By hand: the model's table, scaled to the margins that these records have.
    counted = np.array(
        [[np.sum((both[:, 1:] == [a, b]).all(axis=1)) for b in (0, 1)] for a in (0, 1)]
    )
    expected = table(truth, 1, 2)
    for _ in range(50):
        expected = expected * (counted.sum(axis=1) / expected.sum(axis=1))[:, None]
        expected = expected * (counted.sum(axis=0) / expected.sum(axis=0))
    np.testing.assert_allclose(misfit.expected[2:4, 4:6], expected, rtol=1e-3)
    statistic = np.sum((counted - expected) ** 2 / expected)
    assert misfit.statistic[1, 2] == pytest.approx(statistic, rel=0.02, abs=0.05)
    assert misfit.freedom[1, 2] == 1.0
    assert np.abs(counted / counted.sum() - table(truth, 1, 2)).max() > 0.1  # raw tables are biased
    assert misfit.statistic[1, 2] < 10.0


def test_chance_alone_is_no_gap():
    rng = np.random.default_rng(6)
    model = random_model(rng)
    domain = rj.Domain.of_shape(LEVELS)
    sampled = rj.LowRankPMF(model.weights, model.parts, domain).sample(5000, random_state=0)
    data = InMemory.of(sampled)
    groups = LevelGroups.of(data)
    tables = count_pairs(data, groups, rng)
    assert (
        find_gaps(data, groups, tables, Misfit.of(tables, model_tables(groups.merge(model)))) == ()
    )
    alone = Observed.of([1.0], [part @ model.weights[:, None] for part in model.parts])
    gaps = find_gaps(data, groups, tables, Misfit.of(tables, model_tables(groups.merge(alone))))
    assert gaps
    for gap in gaps:
        given = dict(part.split(" = ") for part in gap.cell.split(", "))
        event = {name: int(level) for name, level in given.items()}
        counted = np.all([data.codes[:, int(n[1:])] == k for n, k in event.items()], axis=0)
        assert gap.given == pytest.approx(data.weight[counted].sum() / data.total, abs=1e-6)
        assert gap.distance > gap.chance


def test_few_records_show_the_misfit_of_ordered_levels():
    """Fifteen levels of 40 records: no cell differs beyond chance, their halves do."""
    steps = np.arange(15)
    truth, model = (
        Observed.of([0.5, 0.5], [np.eye(2), np.stack([up / up.sum(), up[::-1] / up.sum()], axis=1)])
        for up in (np.exp(0.17 * steps), np.exp(0.1 * steps))
    )

    def above(shares):
        return shares[0, 2 + 8 :].sum() / shares[0, 2:].sum()

    counted, own = above(model_tables(truth)), above(model_tables(model))
    labels, numbers = (target_of(model, truth, 40.0, ordered) for ordered in (False, True))
    assert above(labels.tables.counts) < own + 0.5 * (counted - own)
    assert above(numbers.tables.counts) > above(labels.tables.counts) + 0.2 * (counted - own)


def test_factors_of_tables_learn_from_each_other():
    """Tables of one degree of freedom each: alone they say little of a factor that all share."""
    rng = np.random.default_rng(0)
    noise = np.triu(rng.chisquare(1, (12, 12)), 1)
    statistic, held = 2.0 * (noise + noise.T), ~np.eye(12, dtype=bool)
    found = misfit_factors(statistic, np.ones((12, 12)), held)[held]
    assert np.abs(found - 2.0).mean() < 0.6 * np.abs(statistic[held] - 2.0).mean()
    one = np.full((8, 8), 10.0)
    one[0, 1] = one[1, 0] = 200.0
    found = misfit_factors(one, np.full((8, 8), 10.0), ~np.eye(8, dtype=bool))
    assert found[0, 1] > 5.0  # a table that differs keeps its own
    assert found[2, 3] < 1.5


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


def pairs_of(dense, pmf):
    """Names of each two variables, and the true table."""
    for i, j in combinations(range(dense.ndim), 2):
        rest = tuple(n for n in range(dense.ndim) if n not in (i, j))
        yield [pmf.domain.names[i], pmf.domain.names[j]], dense.sum(axis=rest)


def pair_error(dense, pmf):
    """Root mean square error of all tables of two variables."""
    gaps = [(pmf.marginal(names) - truth).ravel() for names, truth in pairs_of(dense, pmf)]
    return float(np.sqrt(np.mean(np.concatenate(gaps) ** 2)))


@pytest.fixture(scope="module")
def misfitting():
    dense = joint_of_no_low_rank(0)
    data = sample(dense, 4000, 1)
    quick = {"random_state": 0, "solver": "bayes", "rank": 3, "blocks": False}
    return dense, data, [estimate(data, **quick, agreement=on) for on in (True, False)]


def test_answers_are_nearer_to_the_truth_and_to_the_counts(misfitting):
    dense, data, (with_it, without) = misfitting
    assert pair_error(dense, with_it.pmf) < 0.8 * pair_error(dense, without.pmf)
    fresh = sample(dense, 4000, 2)
    assert with_it.pmf.log_prob(fresh).mean() > without.pmf.log_prob(fresh).mean()
    worst = [
        rj.Marginals.count(data, order=2).compare(r.pmf)[0].distance for r in (with_it, without)
    ]
    assert worst[0] < worst[1]
    # Classes that are looked at stay.
    np.testing.assert_array_equal(with_it.pmf.weights, without.pmf.weights)


def test_intervals_allow_for_misfit(misfitting):
    dense, _, results = misfitting
    held = []
    for result in results:
        hits = []
        for names, truth in pairs_of(dense, result.pmf):
            low, high = result.pmf.interval(names)
            hits.append(((low <= truth) & (truth <= high)).ravel())
        held.append(np.concatenate(hits).mean())
    assert held[0] > 0.7
    assert held[1] < held[0] - 0.1


def test_what_is_left_is_said(misfitting):
    _, data, (with_it, without) = misfitting
    assert len(with_it.pmf.gaps) < len(without.pmf.gaps)
    assert without.pmf.gaps[0].text in without.agreement
    assert without.agreement.startswith(
        "Answers were not moved towards tables of two variables (agreement=False)."
    )
    assert re.match(
        r"Answers were moved towards tables of two variables \(0\.\d+", with_it.agreement
    )
    rank_one = estimate(data, 1, "ml")
    worst = rank_one.pmf.gaps[0]
    assert worst.text in rank_one.agreement
    assert "moved" not in rank_one.agreement
    assert worst.text in rank_one.pmf.ask(f"P({', '.join(worst.names)})").notes
    assert not any("differ from the model" in note for note in rank_one.pmf.ask("P(x0)").notes)
    # A model given evidence carries the notes of the question.
    one, other = worst.names
    conditioned = rank_one.pmf.condition({one: 0})
    assert conditioned.ask(f"P({other})").notes == rank_one.pmf.ask(f"P({other} | {one} = 0)").notes


def test_gaps_stay_with_a_model(tmp_path):
    pmf = estimate(sample(joint_of_no_low_rank(0), 4000, 1), 1, "ml").pmf
    for name in ("model.rejoint", "model.json"):
        pmf.save(tmp_path / name)
        assert rj.load(tmp_path / name).gaps == pmf.gaps
    a, b = pmf.gaps[0].names
    assert {gap.names for gap in pmf.project([a, b]).gaps} == {(a, b)}
    assert pmf.sorted().gaps == pmf.align(pmf.domain).gaps == pmf.gaps


def test_maximum_likelihood_stays_as_it_is():
    data = random_records(0, (3, 3, 3, 3), 200, rank=3)
    models = [estimate(data, 2, "ml", random_state=0, agreement=on).pmf for on in (True, False)]
    assert models[0] == models[1]


def test_tables_refute_a_rank_of_one_that_was_chosen():
    """Who gives rank one asks for independence."""
    codes = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [80, 20, 20, 80], axis=0)
    data = rj.Records.of(codes, domain=rj.Domain.of_shape((2, 2)))
    given, chosen = (estimate(data, rank, random_state=0).pmf for rank in (1, "auto"))
    assert given.marginal(["x0", "x1"])[0, 0] == pytest.approx(0.25, abs=0.01)
    assert chosen.marginal(["x0", "x1"])[0, 0] > 0.35


# --- a part of the form that applies to some rows -----------------------------------------------


@pytest.mark.filterwarnings("ignore:Empty cells are the level")
@pytest.mark.filterwarnings("ignore::rejoint.Remark")
@pytest.mark.parametrize("options", [{}, {"not_applicable": False}], ids=["level", "missing"])
@pytest.mark.parametrize("seed", range(3))
def test_rows_that_a_part_does_not_apply_to_do_not_pull_those_that_hold_it(seed, options):
    rng = np.random.default_rng(seed)
    n = 20_000
    where = rng.choice(["car", "office"], n, p=[0.8, 0.2])
    search = np.where(rng.random(n) < 0.12, "YES", "NO").astype(object)
    sex = np.where(rng.random(n) < np.where(search == "YES", 0.85, 0.6), "M", "F").astype(object)
    search[where == "office"] = None
    sex[where == "office"] = None
    columns = {"where": where, "search": search, "sex": sex, "other": rng.choice(list("xyz"), n)}
    pmf = estimate(columns, random_state=0, **options).pmf
    rows = where == "car"
    counted = float(np.mean(search[rows] == "YES"))
    error = np.sqrt(counted * (1 - counted) / rows.sum())
    answer = pmf.prob({"search": "YES"}, given={"where": "car"})
    assert abs(answer - counted) < 2.5 * error
