"""Completions on a junction tree, against the dense joint."""

from itertools import combinations

import numpy as np
import pytest

from rejoint.factorization.clique_tables import CliqueTables
from rejoint.factorization.table_goals import ExactGoal, soft_goals
from rejoint.marginals.marginals import Marginals
from rejoint.queries.junction_tree import JunctionTree

SETS = {
    "chain": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "cycle": [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)],
    "triples on a tree": [(0, 1, 2), (1, 2, 3), (3, 4)],
    "loop of triples": [(0, 1, 2), (2, 3, 4), (0, 4), (1, 3)],
    "islands": [(0, 1), (2, 3), (4,)],
    "all pairs": list(combinations(range(5), 2)),
}
LEVELS = (2, 3, 2, 3, 2)


def margin(joint, subset):
    return joint.sum(axis=tuple(n for n in range(joint.ndim) if n not in subset))


def fit_dense(goals, pulls=None, sweeps=2000):
    """Plain iterative proportional fitting of the whole joint."""
    joint = np.full(LEVELS, 1.0 / np.prod(LEVELS))
    pulls = [np.zeros(np.prod([LEVELS[n] for n in goal.subset])) for goal in goals]
    for _ in range(sweeps):
        moved = 0.0
        for k, goal in enumerate(goals):
            now = margin(joint, goal.subset).ravel()
            aim = goal.project(now, pulls[k])
            factor = np.divide(aim, now, out=np.zeros_like(now), where=now > 0)
            with np.errstate(divide="ignore"):
                pulls[k] = pulls[k] + np.log(factor)
            shape = [size if n in goal.subset else 1 for n, size in enumerate(LEVELS)]
            joint = joint * factor.reshape(shape)
            joint /= joint.sum()
            moved = max(moved, np.abs(aim - now).sum())
        if moved < 1e-12:
            break
    return joint


def fit_cliques(goals, shares):
    subsets = [goal.subset for goal in goals]
    tree = JunctionTree.of(LEVELS, [*subsets, *((n,) for n in range(5))])
    tables = CliqueTables(LEVELS, tree, shares)
    pulls = [np.zeros(np.prod([LEVELS[n] for n in goal.subset])) for goal in goals]
    for _ in range(2000):
        if tables.sweep(goals, pulls).max() < 1e-12:
            break
    return tables


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("zeros", [False, True])
def test_every_table_is_that_of_the_dense_completion(name, zeros):
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(np.prod(LEVELS))).reshape(LEVELS)
    if zeros:
        truth[0, 1] = truth[:, :, 1, 2] = 0.0
        truth /= truth.sum()
    goals = [ExactGoal(s, margin(truth, s).ravel()) for s in SETS[name]]
    joint = fit_dense(goals)
    tables = fit_cliques(goals, [np.full(size, 1.0 / size) for size in LEVELS])
    for order in (1, 2, 3, 4, 5):
        for subset in combinations(range(5), order):
            np.testing.assert_allclose(tables.table(subset), margin(joint, subset), atol=1e-9)


def test_a_table_that_is_a_whole_clique_tells_how_far_it_moved():
    goals = [ExactGoal((0,), np.array([0.9, 0.1]))]
    tables = CliqueTables((2,), JunctionTree.of((2,), [(0,)]), [np.array([0.5, 0.5])])
    pulls = [np.zeros(2)]
    assert tables.sweep(goals, pulls) == pytest.approx(0.4)
    assert tables.sweep(goals, pulls) == pytest.approx(0.0)


def test_tables_that_pull():
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 9, LEVELS).astype(float)
    tables = {tuple(f"x{n}" for n in s): margin(counts, s) for s in SETS["cycle"]}
    marginals = Marginals.from_tables(tables, noisy=True)
    goals = soft_goals(marginals)
    tables = fit_cliques(goals, [np.full(size, 1.0 / size) for size in LEVELS])
    joint = fit_dense(goals)
    for subset in combinations(range(5), 2):
        np.testing.assert_allclose(tables.table(subset), margin(joint, subset), atol=1e-7)


def test_draws_are_from_the_joint():
    rng = np.random.default_rng(2)
    truth = rng.dirichlet(np.ones(np.prod(LEVELS)) / 4).reshape(LEVELS)
    truth[1, 2] = 0.0
    truth /= truth.sum()
    goals = [ExactGoal(s, margin(truth, s).ravel()) for s in SETS["loop of triples"]]
    tables = fit_cliques(goals, [margin(truth, (n,)) for n in range(5)])
    joint = tables.table(range(5))
    codes = tables.draw(200_000, np.random.default_rng(3))
    found = np.zeros(LEVELS)
    np.add.at(found, tuple(codes.T), 1.0 / len(codes))
    assert np.abs(found - joint).sum() / 2 < 0.01
    assert found[joint == 0].sum() == 0
