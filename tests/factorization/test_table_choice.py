"""Low rank or maximum entropy: exact tables, tables of samples, and what the choice rests on."""

from itertools import combinations
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rejoint as rj
from rejoint.factorization.exact_rank import exact_rank, fit_identified
from rejoint.factorization.log_linear import (
    Effects,
    fit_log_linear,
)
from rejoint.factorization.max_entropy import (
    independent_model,
    make_completion_problem,
    start_completion,
)
from rejoint.factorization.pooled_tables import pool_effects
from rejoint.factorization.rank_evidence import SmoothedTables, fit_rank, weigh_rank
from rejoint.factorization.table_choice import choose_for_sample
from rejoint.factorization.table_goals import SoftGoal
from rejoint.model import Model
from rejoint.queries.tables import tables_of_model
from rejoint.solver.session import Session


def session():
    return Session(np.random.default_rng(0))


def margin(joint, subset):
    return joint.sum(axis=tuple(n for n in range(joint.ndim) if n not in subset))


def as_tables(joint, subsets, **fields):
    domain = rj.Domain.of({f"v{n}": size for n, size in enumerate(joint.shape)})
    flat = np.concatenate([margin(joint, s).ravel() for s in subsets])
    return rj.Marginals(domain, tuple(subsets), flat, **fields)


def draw_mixture(rng, levels, rank):
    columns = [rng.dirichlet(np.ones(size), size=rank).T for size in levels]
    return Model.of(rng.dirichlet(np.full(rank, 3.0)), columns)


def as_joint(model):
    shape = [len(part) for part in model.parts]
    return tables_of_model(model)(tuple(range(len(shape)))).reshape(shape)


def draw_log_linear(rng, levels, order, spread=0.5):
    joint = np.zeros(levels)
    for size in range(1, order + 1):
        for subset in combinations(range(len(levels)), size):
            shape = [k if n in subset else 1 for n, k in enumerate(levels)]
            joint = joint + rng.normal(0.0, spread, shape)
    joint = np.exp(joint)
    return joint / joint.sum()


def dense_contrasts(effects):
    """All products of contrasts on all cells, (E, cells)."""
    rows = []
    for subset in effects.sets:
        matrix = np.ones((1, 1))
        for n, size in enumerate(effects.levels):
            side = effects.contrasts[n].T if n in subset else np.ones((1, size))
            matrix = np.kron(matrix, side)
        rows.append(matrix)
    return np.concatenate(rows)


@settings(max_examples=25, deadline=None)
@given(
    levels=st.lists(st.integers(2, 4), min_size=3, max_size=4),
    data=st.data(),
    seed=st.integers(0, 10**6),
)
def test_covariance_is_that_of_the_joint(levels, data, seed):
    every = [s for k in (1, 2, 3) for s in combinations(range(len(levels)), k)]
    subsets = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True))
    joint = np.random.default_rng(seed).dirichlet(np.ones(prod(levels))).reshape(levels)
    effects = Effects(levels, subsets)
    contrasts, cells = dense_contrasts(effects), joint.ravel()
    mean = contrasts @ cells
    expected = (contrasts * cells) @ contrasts.T - np.outer(mean, mean)
    tabulate = lambda s: margin(joint, s).ravel()  # noqa: E731
    assert np.allclose(effects.values(tabulate), mean, atol=1e-12)
    assert np.allclose(effects.covariance(tabulate), expected, atol=1e-12)


def test_tangent_is_the_derivative_of_the_effects():
    rng = np.random.default_rng(0)
    model = draw_mixture(rng, (2, 3, 4), 3)
    effects = Effects((2, 3, 4), [(0, 1, 2)])
    tangent, small = effects.tangent(model), 1e-6
    moves = [(None, f) for f in range(3)]
    moves += [
        (n, k, f) for n, size in enumerate((2, 3, 4)) for k in range(size - 1) for f in range(3)
    ]
    for column, (n, *where) in enumerate(moves):
        weights, parts = model.weights.copy(), [part.copy() for part in model.parts]
        if n is None:
            weights[where[0]] += small
        else:
            parts[n][:, where[1]] += small * effects.contrasts[n][:, where[0]]
        moved = Model.of(weights, parts)
        change = effects.values(tables_of_model(moved)) - effects.values(tables_of_model(model))
        assert np.allclose(change / small, tangent[:, column], atol=1e-6)


def log_linear_start(effects, own):
    goals = [
        SoftGoal(s, np.ones(prod(effects.levels[n] for n in s)), 1.0, 1.0) for s in effects.sets
    ]
    problem = make_completion_problem(effects.levels, goals)
    base = independent_model(
        effects.levels, [SoftGoal((n,), s, 1.0, 1.0) for n, s in enumerate(own)]
    )
    return start_completion(problem, base)


def test_the_records_and_the_prior_balance_at_the_log_linear_model():
    rng = np.random.default_rng(3)
    joint = draw_log_linear(rng, (3, 2, 3, 2), 2)
    counts = rng.multinomial(2000, joint.ravel()).reshape(joint.shape)
    tables = as_tables(counts, list(combinations(range(4), 3)), noisy=True)
    effects = Effects(joint.shape, tables.index_subsets)
    sample, pooled = pool_effects(tables, effects)
    _, each = fit_log_linear(sample, log_linear_start(effects, pooled.own))
    score = sample.records * (sample.values - effects.values(each.state.tabulate))
    prior = each.variances
    # Newton's method ends where a further step would gain little, in units of chance.
    assert np.abs(prior * score - each.coefficients).max() < 0.05 * np.abs(each.coefficients).max()
    assert np.abs(score).max() > 1.0


def test_interactions_that_are_not_there_are_not_fitted():
    rng = np.random.default_rng(4)
    joint = draw_log_linear(rng, (3,) * 5, 2)
    counts = rng.multinomial(20_000, joint.ravel()).reshape(joint.shape)
    tables = as_tables(counts, list(combinations(range(5), 3)), noisy=True)
    effects = Effects(joint.shape, tables.index_subsets)
    sample, pooled = pool_effects(tables, effects)
    by_order, _ = fit_log_linear(sample, log_linear_start(effects, pooled.own))
    orders = effects.orders[effects.set_of]
    pairs, triples = (np.sqrt(by_order.variances[orders == k][0]) for k in (2, 3))
    assert 0.3 < pairs < 0.7
    assert triples < 0.05


@pytest.mark.parametrize(
    ("rank", "levels"), [(2, (3,) * 5), (3, (3,) * 5), (5, (3,) * 6), (8, (3,) * 6)]
)
def test_exact_triples_of_low_rank_come_back(rank, levels):
    truth = draw_mixture(np.random.default_rng(rank), levels, rank)
    tables = as_tables(as_joint(truth), list(combinations(range(len(levels)), 3)))
    assert exact_rank(tables) == rank
    found = fit_identified(tables, session())
    assert found.pmf.rank == rank
    joint = found.pmf.marginal(tables.domain.names)
    assert 0.5 * np.abs(joint - as_joint(truth)).sum() < 1e-10
    assert f"rank {rank}" in found.choice


def test_exact_triples_of_fifteen_classes_come_back():
    truth = draw_mixture(np.random.default_rng(15), (10,) * 5, 15)
    subsets = list(combinations(range(5), 3))
    flat = np.concatenate([tables_of_model(truth)(s).ravel() for s in subsets])
    tables = rj.Marginals(rj.Domain.of({f"v{n}": 10 for n in range(5)}), tuple(subsets), flat)
    found = fit_identified(tables, session())
    names = tables.domain.names
    model = rj.LowRankPMF(truth.weights, truth.parts, tables.domain)
    assert found.pmf.rank == 15
    gap = found.pmf.marginal(names[:4]) - model.marginal(names[:4])
    assert 0.5 * np.abs(gap).sum() < 1e-10


@pytest.mark.parametrize("kind", ["order 2", "order 3", "order 4", "any", "pairs", "chain"])
def test_exact_tables_of_no_low_rank_identify_none(kind):
    rng = np.random.default_rng(7)
    levels, order = (3,) * 5, 2 if kind == "pairs" else 3
    if kind == "any":
        joint = rng.dirichlet(np.ones(3**5)).reshape(levels)
    elif kind == "pairs":
        joint = as_joint(draw_mixture(rng, levels, 2))
    elif kind == "chain":
        joint = rng.dirichlet(np.ones(3))
        for _ in range(4):
            joint = joint[..., None] * rng.dirichlet(np.ones(3), size=3)
    else:
        joint = draw_log_linear(rng, levels, int(kind[-1]))
    tables = as_tables(joint, list(combinations(range(5), order)))
    assert fit_identified(tables, session()) is None


def test_rounded_and_incomplete_tables_identify_none():
    truth = as_joint(draw_mixture(np.random.default_rng(0), (2,) * 4, 2))
    subsets = list(combinations(range(4), 3))
    assert fit_identified(as_tables(truth, subsets), session()) is not None
    rounded = as_tables(1000 * truth, subsets, rounding=np.full(4, 0.5))
    assert fit_identified(rounded, session()) is None


def sampled(joint, records, seed, order=3):
    counts = np.random.default_rng(seed).multinomial(records, joint.ravel()).reshape(joint.shape)
    return as_tables(counts, list(combinations(range(joint.ndim), order)), noisy=True)


def tv(joint, model):
    return 0.5 * float(np.abs(joint - as_joint(model)).sum())


def test_sampled_tables_of_low_rank_get_that_rank():
    joint = as_joint(draw_mixture(np.random.default_rng(1), (3,) * 5, 3))
    choice = choose_for_sample(sampled(joint, 10_000, 1), session())
    assert choice.rank == 3 == choice.model.rank
    completed = choice.log_linear.state.tabulate(tuple(range(5)))
    assert tv(joint, choice.model) < 0.7 * 0.5 * np.abs(joint - completed).sum()
    assert "more probable" in choice.text


@pytest.mark.parametrize("order", [2, 3])
def test_sampled_tables_of_a_log_linear_joint_get_interactions(order):
    joint = draw_log_linear(np.random.default_rng(2), (3,) * 5, order)
    tables = sampled(joint, 10_000, 2)
    choice = choose_for_sample(tables, session())
    assert choice.rank is None
    assert max(choice.evidence.values()) < -20
    problem = SmoothedTables.of(tables, 10_000.0)
    best = min(tv(joint, fit_rank(problem, rank, 1e4, session())) for rank in (2, 4, 6))
    assert tv(joint, choice.model) < best


def test_evidence_is_largest_at_the_true_rank():
    joint = as_joint(draw_mixture(np.random.default_rng(5), (3,) * 5, 4))
    tables = sampled(joint, 50_000, 5)
    effects = Effects(joint.shape, tables.index_subsets)
    sample, _ = pool_effects(tables, effects)
    problem = SmoothedTables.of(tables, 5e4)
    weighed = {r: weigh_rank(sample, fit_rank(problem, r, 5e4, session())) for r in (2, 3, 4, 5, 6)}
    assert max(weighed, key=lambda r: weighed[r].evidence) == 4


def test_classes_that_are_nearly_as_probable_have_a_share():
    # Pairs say little about eight classes; the evidence is a few units below that of interactions.
    joint = as_joint(draw_mixture(np.random.default_rng(8), (3, 4, 3, 2, 2), 5))
    choice = choose_for_sample(sampled(joint, 20_000, 8, order=2), session())
    assert -25 < max(choice.evidence.values()) < 5
    assert choice.rank is None
    assert choice.members == 2
    alone = choice.log_linear.state.model
    assert tv(joint, choice.model) < tv(joint, alone)
    assert "have a share of" in choice.text


def test_groups_of_variables_without_a_common_table_stay_independent():
    joint = as_joint(draw_mixture(np.random.default_rng(4), (3,) * 4, 3))
    counts = np.random.default_rng(4).multinomial(5000, joint.ravel()).reshape(joint.shape)
    with pytest.warns(match="groups of variables"):
        pmf = rj.factorize(
            as_tables(counts, [(0, 1), (2, 3)], noisy=True), random_state=0, progress=False
        ).pmf
    across = pmf.marginal(["v0", "v2"])
    assert np.allclose(across, np.outer(across.sum(1), across.sum(0)), atol=1e-9)


def test_tables_of_the_same_records_count_once_and_of_others_all():
    rng = np.random.default_rng(8)
    joint = draw_log_linear(rng, (3,) * 4, 2)
    subsets = list(combinations(range(4), 2))
    effects = Effects(joint.shape, subsets)
    same, _ = pool_effects(sampled(joint, 5000, 8, order=2), effects)
    assert np.allclose(same.records, 5000.0)
    flat = [rng.multinomial(5000, margin(joint, s).ravel()).astype(float) for s in subsets]
    domain = rj.Domain.of({f"v{n}": 3 for n in range(4)})
    tables = rj.Marginals(domain, tuple(subsets), np.concatenate(flat), noisy=True)
    several, pooled = pool_effects(tables, effects)
    alone = several.records[effects.orders[effects.set_of] == 1]
    assert np.all(alone <= 15_000.0 + 1e-6)
    for i, subset in enumerate(subsets):
        for axis, n in enumerate(subset):
            share = pooled.tables.shares(i).sum(axis=1 - axis)
            assert np.allclose(share, pooled.own[n], atol=1e-8)


def test_rounded_tables_of_a_sample_are_reconciled():
    rng = np.random.default_rng(10)
    joint = draw_log_linear(rng, (3,) * 4, 2)
    counts = rng.multinomial(3000, joint.ravel()).reshape(joint.shape)
    subsets = list(combinations(range(4), 3))
    exact = as_tables(counts, subsets, noisy=True)
    flat = 5.0 * np.round(exact.flat / 5.0)
    tables = rj.Marginals(
        exact.domain, exact.index_subsets, flat, noisy=True, rounding=np.full(len(subsets), 2.5)
    )
    errors = [tv(joint, choose_for_sample(t, session()).model) for t in (exact, tables)]
    assert errors[1] < 1.5 * errors[0]


def test_the_choice_so_far_is_offered_to_an_interrupted_fit(monkeypatch):
    joint = draw_log_linear(np.random.default_rng(2), (3,) * 4, 2)
    offered = session()

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("rejoint.factorization.rank_evidence.fit_rank", interrupt)
    with pytest.raises(KeyboardInterrupt):
        choose_for_sample(sampled(joint, 2000, 2), offered)
    choice = offered.best()
    assert choice.rank is None
    assert tv(joint, choice.model) < 0.1


def test_tables_with_too_many_effects_have_no_choice():
    levels = (16, 16, 16)
    joint = np.full(levels, 1.0 / prod(levels))
    assert choose_for_sample(as_tables(1e4 * joint, [(0, 1, 2)], noisy=True), session()) is None
