"""The maximum-entropy completion, against dense IPF and brute force on small domains."""

from dataclasses import replace
from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import rejoint as rj
from rejoint.factorization import max_entropy
from rejoint.factorization.max_entropy import (
    Ipf,
    find_cover,
    independent_model,
    list_states,
    make_completion_problem,
)
from rejoint.factorization.table_goals import ExactGoal, IntervalGoal, MomentGoal, SoftGoal
from rejoint.factorization.table_policy import POLICY
from rejoint.marginals.unknown import UnknownCells
from rejoint.solver.run import run


def margin(joint, subset):
    return joint.sum(axis=tuple(n for n in range(joint.ndim) if n not in subset))


def dense(model):
    joint = np.zeros([len(part) for part in model.parts])
    for f, weight in enumerate(model.weights):
        term = np.array(weight)
        for part in model.parts:
            term = np.multiply.outer(term, part[:, f])
        joint += term
    return joint


def dense_ipf(shape, tables, sweeps=3000):
    joint = np.full(shape, 1.0 / np.prod(shape))
    for _ in range(sweeps):
        for subset, table in tables.items():
            now = margin(joint, subset)
            ratio = np.divide(table, now, out=np.zeros_like(now), where=now > 0)
            joint = joint * ratio.reshape([s if n in subset else 1 for n, s in enumerate(shape)])
    return joint


def complete(shape, goals):
    problem = make_completion_problem(shape, goals)
    return run(Ipf(), problem, independent_model(shape, goals))


@st.composite
def problems(draw):
    shape = tuple(draw(st.lists(st.integers(2, 3), min_size=2, max_size=5)))
    subsets = draw(
        st.lists(
            st.sets(st.integers(0, len(shape) - 1), min_size=1, max_size=3),
            min_size=1,
            max_size=5,
        )
    )
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    joint = rng.dirichlet(np.full(int(np.prod(shape)), draw(st.sampled_from([0.3, 1.0]))))
    covered = {n for s in subsets for n in s}
    subsets = [tuple(sorted(s)) for s in subsets] + [
        (n,) for n in range(len(shape)) if n not in covered
    ]
    return joint.reshape(shape), sorted(set(subsets))


@settings(max_examples=60, deadline=None)
@given(problems())
def test_the_mixture_is_the_dense_completion(problem):
    joint, subsets = problem
    tables = {s: margin(joint, s) for s in subsets}
    done = complete(joint.shape, [ExactGoal(s, t.ravel()) for s, t in tables.items()])
    assert done.objective < 1e-6
    found = dense(done.model)
    for subset, table in tables.items():
        assert 0.5 * np.abs(margin(found, subset) - table).sum() < 1e-6
    np.testing.assert_allclose(found, dense_ipf(joint.shape, tables, 500), atol=2e-5)


@settings(max_examples=60, deadline=None)
@given(problems())
def test_the_cover_is_the_smallest(problem):
    joint, subsets = problem
    edges = {pair for s in subsets for pair in combinations(s, 2)}

    def size(cover):
        return np.prod([joint.shape[n] for n in cover]) if cover else 1

    everything = range(joint.ndim)
    covers = [
        cover
        for k in range(joint.ndim + 1)
        for cover in combinations(everything, k)
        if all(set(edge) & set(cover) for edge in edges)
    ]
    found = find_cover(joint.shape, subsets)
    assert found in covers
    assert size(found) == min(map(size, covers))


def test_covers_of_many_variables_are_as_small_as_those_that_are_tried(monkeypatch):
    rng = np.random.default_rng(5)
    for _ in range(20):
        n = int(rng.integers(3, 9))
        levels = rng.integers(2, 7, size=n).tolist()
        subsets = [tuple(sorted(rng.choice(n, 2, replace=False).tolist())) for _ in range(n + 2)]
        tried = find_cover(levels, subsets)
        with monkeypatch.context() as patch:
            patch.setattr(max_entropy, "POLICY", replace(POLICY, tried_variables=0))
            solved = find_cover(levels, subsets)
        assert prod(levels[n] for n in tried) == prod(levels[n] for n in solved)


def test_states_that_zeros_exclude_are_left_out():
    zero = np.array([[0.5, 0.0], [0.2, 0.3]])
    goals = [ExactGoal((0, 1), zero.ravel()), ExactGoal((1, 2), np.array([0.7, 0.0, 0.0, 0.3]))]
    states = list_states((2, 2, 2), (0, 1, 2), goals, 100)
    alive = [c for c in product(range(2), repeat=3) if zero[c[0], c[1]] and c[1] == c[2]]
    assert [tuple(row) for row in states] == alive
    assert list_states((2, 2, 2), (0, 1, 2), [], 7) is None


def test_a_row_of_zeros_stays_zero():
    rng = np.random.default_rng(0)
    joint = rng.dirichlet(np.ones(36)).reshape(3, 4, 3)
    joint[:, 2] = 0.0
    joint /= joint.sum()
    tables = {("age", "town"): (0, 1), ("town", "kids"): (1, 2), ("age", "kids"): (0, 2)}
    given = rj.Marginals.from_tables({k: margin(joint, s) for k, s in tables.items()})
    result = rj.factorize(given)
    assert max(result.misfits.values()) < 1e-8
    assert result.pmf.marginal(["town"])[2] == 0.0


@pytest.mark.parametrize("n", [50, 2000])
def test_tables_that_pull_are_the_most_probable_log_linear_model(n):
    rng = np.random.default_rng(n)
    counts = rng.multinomial(n, rng.dirichlet(np.ones(12))).reshape(2, 3, 2)
    shares = {s: margin(counts, s).ravel() / n for s in [(0, 1), (1, 2)]}
    tau = 0.7
    goals = [SoftGoal(s, t, float(n), tau) for s, t in shares.items()]
    found = dense(complete((2, 3, 2), goals).model)
    start = dense(independent_model((2, 3, 2), goals)).ravel()
    rows = np.vstack(
        [
            [np.ravel_multi_index(cell, (2, 3, 2)[s[0] : s[1] + 1]) == k for cell in cells]
            for s in shares
            for cells in [[tuple(c[m] for m in s) for c in np.ndindex(2, 3, 2)]]
            for k in range(len(shares[s]))
        ]
    ).astype(float)
    data = np.concatenate(list(shares.values()))

    def negative(u):
        joint = start * np.exp(u @ rows)
        total = joint.sum()
        value = n * (np.log(total) - u @ data) + 0.5 * (u @ u) / tau**2
        return value, n * (rows @ joint / total - data) + u / tau**2

    best = minimize(negative, np.zeros(len(data)), jac=True, options={"gtol": 1e-9})
    joint = start * np.exp(best.x @ rows)
    np.testing.assert_allclose(found.ravel(), joint / joint.sum(), atol=1e-5)


def test_numbers_within_bounds_are_reached_and_no_more():
    low, high = np.array([3.0, 10.0, 0.0]), np.array([3.0, 14.0, 4.0])
    goal = IntervalGoal((0,), low, high)
    now = np.array([0.2, 0.5, 0.3])
    table = goal.project(now, np.zeros(3))
    scale = table[0] / 3.0
    assert np.all(table >= low * scale - 1e-12)
    assert np.all(table <= high * scale + 1e-12)
    inside = goal.project(table, np.zeros(3))
    np.testing.assert_allclose(inside, table, atol=1e-12)


def test_known_sums_of_cells_that_are_held_back_are_met():
    cells = UnknownCells(np.array([0, 1]), np.zeros(2), np.full(2, 9.0), ((np.arange(2), 8.0),))
    goal = IntervalGoal((0,), np.array([0.0, 0.0, 12.0]), np.array([9.0, 9.0, 12.0]), cells)
    table = goal.project(np.array([0.1, 0.2, 0.7]), np.zeros(3))
    np.testing.assert_allclose(table, [8 / 3 / 20, 16 / 3 / 20, 0.6])


def test_a_moment_tilts_its_table():
    goal = MomentGoal((0,), np.array([0.0, 1.0, 5.0]), 2.0)
    now = np.array([0.5, 0.4, 0.1])
    table = goal.project(now, np.zeros(3))
    assert table @ goal.values == pytest.approx(2.0)
    slopes = np.log(table / now)
    assert (slopes[1] - slopes[0]) == pytest.approx((slopes[2] - slopes[1]) / 4)
