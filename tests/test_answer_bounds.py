"""Bounds over all joints with given tables, against a program over all cells of the joint."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from benchmarks.answer_bounds import (
    KINDS,
    Problem,
    brute_force,
    dense_tables,
    graph_tables,
    log_linear,
    pairs_of,
    random_problem,
    tables_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoint import Domain, Marginals
from rejoint.marginals.moments import Moment
from rejoint.queries import answer_bounds, cell_program
from rejoint.queries.answer_bounds import bound_answer, bound_answers
from rejoint.queries.cell_program import CellProgram
from rejoint.queries.junction_tree import JunctionTree
from rejoint.queries.table_limits import limits_of, with_margins
from rejoint.queries.witness import witness_slack

FIRST = np.array([1.0, 0.0])


def bounds_of(problem):
    return bound_answer(problem.tables, problem.numerator, problem.given)


def bounds_under(work, problem):
    """The range with programs of so many cells times rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answer_bounds, "ALL_WORK", 2 * work)
        patch.setattr(answer_bounds, "_LEAST_WORK", 0)
        patch.setattr(answer_bounds, "_SLACK_WORK", work)
        return bounds_of(problem)


def contradicting(problem, rng, noisy=False):
    """Counts of each table from other records: no joint has them all."""
    counts = rng.poisson(300 * problem.tables.flat / problem.tables.flat.max()).astype(float)
    tables = replace(problem.tables, flat=counts + 1.0, counted=None, noisy=noisy)
    return replace(problem, tables=tables)


def check(problem, within=1e-6):
    found = bounds_of(problem)
    ends = brute_force(problem.tables, problem.numerator, problem.given)
    assert found.low - 1e-7 <= problem.truth <= found.high + 1e-7
    assert found.sharp
    assert found.slack == 0
    assert (found.low, found.high) == pytest.approx(ends, abs=within)


def shares(tables):
    """Tables of shares as they are, without a remark if they contradict each other."""
    names = sorted({name for key in tables for name in key})
    sizes = {n: np.shape(t)[key.index(n)] for key, t in tables.items() for n in key}
    subsets = [tuple(names.index(n) for n in key) for key in tables]
    flat = np.concatenate([np.ravel(table) for table in tables.values()])
    domain = Domain.of({name: sizes[name] for name in names})
    return Marginals(domain, tuple(subsets), flat, counted=np.zeros(len(subsets), dtype=bool))


# ----------------------------------------------------------------------- the ends are right


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from(KINDS))
def test_sharp_bounds_are_those_of_all_cells(seed, kind):
    check(random_problem(seed, kind))


def test_ratio_whose_condition_is_not_published():
    problem = dense_tables(5, 3, 2, "exact", seed=2)
    below = {n: problem.numerator[n] for n in (1, 2, 3)}
    found = bound_answer(problem.tables, problem.numerator, below)
    low, high = brute_force(problem.tables, problem.numerator, below)
    assert found.sharp
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-6)


def test_ratios_of_any_two_expectations():
    problem = dense_tables(4, 3, 2, "exact", seed=3)
    above = {n: np.array([1.0, 2.0, 5.0]) for n in range(3)}
    below = {n: np.array([1.0, 1.5, 0.5]) for n in (1, 2, 3)}
    found = bound_answer(problem.tables, above, below)
    ends = brute_force(problem.tables, above, below)
    assert (found.low, found.high) == pytest.approx(ends, rel=1e-6)


def test_moments_are_constraints():
    made = shares({"ab": [[0.1, 0.2, 0.1], [0.2, 0.1, 0.3]], "c": [0.5, 0.5]})
    ones = np.array([0.0, 1.0])
    made = replace(made, moments=(Moment((0, 2), (ones, ones), 0.21, "product"),))
    question = {0: np.array([0.0, 1.0]), 1: np.array([0.0, 0.0, 1.0]), 2: np.array([0.0, 1.0])}
    found = bound_answer(made, question)
    assert (found.low, found.high) == pytest.approx(brute_force(made, question, {}), abs=1e-6)
    without = bound_answer(replace(made, moments=()), question)
    assert without.high > found.high + 0.01


def test_several_answers_are_those_one_by_one():
    problem = random_problem(4)
    shape = problem.tables.domain.shape
    cells = [{0: a, 1: b, 2: c} for a in np.eye(shape[0]) for b in np.eye(shape[1])
             for c in np.eye(shape[2])[:1]]  # fmt: skip
    condition = {2: np.eye(shape[2])[0]}
    together = bound_answers(problem.tables, cells, condition)
    assert together == [bound_answer(problem.tables, cell, condition) for cell in cells]


# ----------------------------------------------------------------------- what is known already


def test_a_published_answer_has_no_range():
    tables = Marginals.from_tables({("smoke", "lung"): [[90, 110], [10, 790]]})
    found = bound_answer(tables, {0: FIRST, 1: FIRST}, {0: FIRST})
    assert found.low == found.high == pytest.approx(0.45, abs=1e-15)


def test_constants_and_variables_in_no_table():
    tables = replace(shares({"ab": [[0.3, 0.0], [0.0, 0.7]]}), domain=Domain.of_shape([2, 2, 3]))
    found = bound_answer(tables, {0: FIRST, 1: np.full(2, 2.0)})
    assert found.low == found.high == pytest.approx(0.6)
    free = bound_answer(tables, {0: FIRST, 2: np.array([1.0, 0.0, 0.0])})
    assert (free.low, free.high) == pytest.approx((0.0, 0.3))


def test_an_impossible_condition():
    tables = shares({"ab": [[0.0, 0.5], [0.0, 0.5]], "bc": [[0.0, 0.0], [0.5, 0.5]]})
    published = bound_answer(tables, {0: FIRST, 1: FIRST}, {1: FIRST})
    assert np.isnan(published.low)
    open_question = bound_answer(tables, {0: FIRST, 1: FIRST, 2: FIRST}, {1: FIRST, 2: FIRST})
    assert np.isnan(open_question.low)
    assert np.isnan(open_question.high)


# ----------------------------------------------------------------------- contradictions and noise


def test_float_rounding_is_no_contradiction():
    problem = dense_tables(5, 3, 3, "exact")
    rng = np.random.default_rng(0)
    flat = problem.tables.flat * (1 + 1e-12 * rng.normal(size=problem.tables.flat.size))
    found = bounds_of(replace(problem, tables=replace(problem.tables, flat=flat)))
    assert found.slack == 0
    before = bounds_of(problem)
    assert (found.low, found.high) == pytest.approx((before.low, before.high), abs=1e-8)


def test_contradictory_tables_give_way_by_the_least():
    # a is 0.5 in one table, 0.6 in the other; of 100 records each.
    tables = Marginals(Domain.of_shape([2, 2]), ((0,), (0, 1)), [50, 50, 30, 30, 20, 20])
    found = bound_answer(tables, {0: FIRST})
    assert found.sharp
    assert 0.05 <= found.slack <= 0.0515  # each gives way by half of the difference
    assert found.low == pytest.approx(0.55, abs=1e-3)
    assert found.high == pytest.approx(0.55, abs=1e-3)


def test_pairs_that_agree_but_have_no_joint():
    # a = b, b = c, and a is never c.
    same, other = [[0.5, 0.0], [0.0, 0.5]], [[0.0, 0.5], [0.5, 0.0]]
    tables = shares({"ab": same, "bc": same, "ac": other})
    found = bound_answer(tables, {0: FIRST, 1: FIRST, 2: FIRST})
    assert found.slack > 0.1


def test_noisy_tables_hold_the_truth_with_their_tolerance():
    rng = np.random.default_rng(0)
    joint = log_linear(rng, (3, 3, 3, 3))
    records = rng.choice(81, 2000, p=joint.ravel())
    sample = np.bincount(records, minlength=81).reshape(joint.shape) / 2000
    subsets = list(combinations(range(4), 2))
    tables = tables_of(sample, subsets, "exact", rng)
    tables = replace(tables, flat=tables.flat * 2000, counted=None, noisy=True)
    question = {n: np.eye(3)[1] for n in range(3)}
    found = bound_answer(tables, question)
    exact = bound_answer(replace(tables, noisy=False), question)
    truth = Problem(joint, tables, question, {}).truth
    assert found.low <= truth <= found.high
    assert found.high > exact.high
    assert exact.slack == 0 < found.slack


def test_rounded_tables_that_contradict_each_other_give_way():
    tables = Marginals(
        Domain.of_shape([2, 2]), ((0,), (0, 1)), [50, 50, 70, 10, 10, 10], rounding=np.ones(2)
    )
    found = bound_answer(tables, {0: FIRST, 1: FIRST})
    assert found.slack > 0
    wide = bound_answer(replace(tables, rounding=np.full(2, 20.0)), {0: FIRST, 1: FIRST})
    assert wide.slack == 0
    assert wide.low <= found.low
    assert found.high <= wide.high


# ----------------------------------------------------------------------- sizes


@settings(deadline=None, max_examples=25)
@given(
    st.integers(0, 10**6),
    st.sampled_from([*KINDS, "contradicting", "noisy"]),
    st.sampled_from([0, 100, 1_000, 10_000]),
)
def test_sharp_ends_lie_within_outer_ones(seed, kind, work):
    problem = random_problem(seed, kind if kind in KINDS else "exact")
    if kind not in KINDS:
        problem = contradicting(problem, np.random.default_rng(seed), kind == "noisy")
    sharp, outer = bounds_of(problem), bounds_under(work, problem)
    assert sharp.sharp
    assert not outer.low > sharp.low + 1e-7
    assert not outer.high < sharp.high - 1e-7
    if all(np.isin(vector, [0.0, 1.0]).all() for vector in problem.numerator.values()):
        assert np.isnan(sharp.low) or (0 <= sharp.low <= sharp.high <= 1)
        assert np.isnan(outer.low) or (0 <= outer.low <= outer.high <= 1)


def test_contradictions_widen_outer_bounds_as_much_as_sharp_ones():
    # Those of the variables asked about agree better than all tables do.
    problem = dense_tables(5, 3, 2, "exact")
    flat = problem.tables.flat.copy()
    last = problem.tables.index_subsets.index((3, 4))
    start, stop = problem.tables.starts[last : last + 2]
    flat[start:stop] = np.roll(flat[start:stop], 1)
    question = {n: problem.numerator[n] for n in range(3)}
    tables = replace(problem.tables, flat=flat)
    problem = replace(problem, tables=tables, numerator=question)
    sharp, outer = bounds_of(problem), bounds_under(5_000, problem)
    assert sharp.sharp
    assert not outer.sharp
    assert 0 < sharp.slack <= outer.slack < 2 * sharp.slack
    assert outer.low <= sharp.low
    assert sharp.high <= outer.high < 1


def test_slack_of_a_witness_is_that_of_a_joint():
    for seed in range(8):
        problem = contradicting(random_problem(seed, KINDS[seed % 3]), np.random.default_rng(seed))
        tables = problem.tables
        limits = with_margins(limits_of(tables))
        tree = JunctionTree.of(tables.domain.shape, [table.subset for table in limits])
        program = CellProgram(tables.domain.shape, tree, limits, is_relaxed=True)
        least = program.least_slack()
        assert least - 1e-7 <= witness_slack(tables.domain.shape, limits, ()) <= 2 * least + 0.2


def test_many_variables_on_sparse_graphs_are_sharp():
    for kind in ("chain", "star", "cycle"):
        problem = graph_tables(pairs_of(20, kind), 4, [0, 7, 13])
        found = bounds_of(problem)
        assert found.sharp
        assert found.low <= problem.joint[0] <= found.high


def test_a_program_above_the_cap_gives_an_outer_bound_that_says_so():
    problem = dense_tables(7, 3, 2, "exact")
    sharp, outer = bounds_of(problem), bounds_under(20_000, problem)
    assert sharp.sharp
    assert not outer.sharp
    assert outer.low <= sharp.low + 1e-7
    assert sharp.high <= outer.high + 1e-7


def test_many_answers_at_once_have_smaller_programs():
    problem = dense_tables(7, 3, 2, "exact")
    cells = [{0: np.eye(3)[i], 1: np.eye(3)[j], 2: np.eye(3)[k]} for i, j, k in np.ndindex(3, 3, 3)]
    assert bound_answer(problem.tables, cells[0]).sharp
    together = bound_answers(problem.tables, cells)
    assert not any(bounds.sharp for bounds in together)
    assert all(bounds.high < 1 for bounds in together)


def test_a_program_that_ends_unsolved_leaves_no_bound(monkeypatch):
    monkeypatch.setattr(cell_program, "_MOST_STEPS", 0)
    bounds = bounds_of(dense_tables(5, 3, 2, "exact"))
    assert (bounds.low, bounds.high, bounds.sharp) == (0.0, 1.0, False)


def test_more_variables_than_any_program_holds():
    n = 12
    rng = np.random.default_rng(0)
    singles = rng.dirichlet([2.0, 2.0, 2.0], n)
    tables = Marginals(Domain.of_shape([3] * n), tuple((k,) for k in range(n)), singles.ravel())
    question = {k: np.eye(3)[0] for k in range(n)}
    found = bound_answer(tables, question)
    assert not found.sharp
    assert found.low == 0
    assert singles[:, 0].min() - 1e-7 <= found.high < 1
    narrow = bound_answer(tables, {k: np.array([0.9, 1.0, 0.95]) for k in range(n)})
    assert 0.9**n - 1e-9 <= narrow.low < narrow.high <= 1


# ----------------------------------------------------------------------- parts


def test_junction_tree_has_the_running_intersection_property():
    rng = np.random.default_rng(0)
    for _ in range(30):
        n = int(rng.integers(3, 9))
        shape = rng.integers(2, 5, n)
        edges = [rng.choice(n, int(rng.integers(1, 4)), replace=False) for _ in range(8)]
        tree = JunctionTree.of(shape, edges)
        assert len(tree.links) == len(tree.cliques) - 1
        for edge in edges:
            assert set(edge) <= set(tree.cliques[tree.holder(edge)])
        for v in range(n):
            having = {k for k, clique in enumerate(tree.cliques) if v in clique}
            links = [(a, b) for a, b, both in tree.links if v in both]
            assert len(links) == max(len(having) - 1, 0)  # a subtree


def test_vectors_of_the_wrong_length_are_refused():
    tables = shares({"ab": [[0.3, 0.0], [0.0, 0.7]]})
    with pytest.raises(ValueError, match="variable 0 must have 2 finite numbers"):
        bound_answer(tables, {0: np.ones(3)})
