"""Local identifiability: closed forms against brute force, exact ranks, the known facts."""

import sys
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rejoint as rj
from rejoint.identifiability import jacobian_rank
from rejoint.identifiability.fiber import Fiber
from rejoint.identifiability.gram_sums import Family
from rejoint.identifiability.jacobian import generic_ranks
from rejoint.identifiability.layout import read_layout
from rejoint.model import Model

jacobian = rj.identifiability.jacobian


def cyclic(n, order=3):
    return [tuple((i + k) % n for k in range(order)) for i in range(n)]


def random_pmf(levels, rank, seed=0):
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.ones(i), size=rank).T for i in levels]
    return rj.LowRankPMF(rng.dirichlet(np.full(rank, 3.0)), factors)


def model_tables(subsets, factors):
    """All tables of a model of equal weights (times F), one after another."""
    cells = []
    for subset in subsets:
        rows = np.ones((1, factors[0].shape[1]))
        for n in subset:
            rows = (rows[:, None, :] * factors[n][None]).reshape(-1, rows.shape[1])
        cells.append(rows.sum(axis=1))
    return np.concatenate(cells)


def brute_jacobian(subsets, factors, step=1e-5):
    """Central differences of the tables along every parameter, weights first."""
    columns = []
    rank = factors[0].shape[1]
    for f in range(rank):  # a table is linear in the weights
        columns.append(model_tables(subsets, [a[:, [f]] for a in factors]))
    for n, a in enumerate(factors):
        for q in jacobian_rank.zero_sum_basis(len(a)).T:
            for f in range(rank):
                change = np.zeros_like(a)
                change[:, f] = step * q
                up, down = ([*factors[:n], a + s * change, *factors[n + 1 :]] for s in (1, -1))
                columns.append(
                    (model_tables(subsets, up) - model_tables(subsets, down)) / (2 * step)
                )
    return np.stack(columns, axis=1)


SMALL = {
    "all triples": ([2, 3, 2, 3], None, 3),
    "all quadruples": ([2, 3, 2, 2, 2], None, 4),
    "all of order five": ([2, 2, 2, 2, 3, 2], None, 5),
    "pairs": ([3, 2, 4], None, 2),
    "singles": ([3, 2, 4], None, 1),
    "mixed": ([2, 3, 2, 4], [(0, 1, 2), (2, 3), (1, 3)], None),
    "a variable of one level": ([2, 1, 3, 2], [(0, 1, 2), (1, 2, 3)], None),
    "one uncovered": ([2, 2, 3], [(0, 1)], None),
}


@pytest.mark.parametrize("case", SMALL)
def test_closed_form_is_the_gram_matrix_of_the_jacobian(case):
    levels, subsets, order = SMALL[case]
    tables = read_layout(levels, order, subsets)
    factors = random_pmf(levels, 3).factors
    brute = brute_jacobian(list(tables.iter_subsets()), list(factors))
    closed = jacobian_rank.gram(tables.families, jacobian_rank.model_point(factors))
    # Central differences of polynomials of degree 5 at most: 1e-10 for the step of 1e-5.
    np.testing.assert_allclose(closed, brute.T @ brute, atol=1e-8)


def test_closed_form_of_the_joint():
    levels = [2, 3, 2, 2]
    factors = random_pmf(levels, 3).factors
    brute = brute_jacobian([(0, 1, 2, 3)], list(factors))
    closed = jacobian_rank.gram(Family.list_of([range(4)]), jacobian_rank.model_point(factors))
    np.testing.assert_allclose(closed, brute.T @ brute, atol=1e-8)


@pytest.mark.parametrize("case", SMALL)
def test_residues_agree_with_whole_numbers(case):
    # The same closed form in floats on small whole numbers is exact: compare modulo the prime.
    levels, subsets, order = SMALL[case]
    tables = read_layout(levels, order, subsets)
    point = jacobian_rank.residue_point(tables, 3, 11, np.random.default_rng(0))
    rows = tuple(a.astype(float) for a in point.free)
    floats = jacobian_rank.JacobianPoint(rows, np.stack([1 + a.T @ a for a in rows]))
    whole = np.rint(jacobian_rank.gram(tables.families, floats)).astype(int)
    np.testing.assert_array_equal(jacobian_rank.gram(tables.families, point) % 11, whole % 11)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 150), st.integers(1, 150), st.integers(0, 150), st.integers(0, 10**6))
def test_rank_modulo(rows, columns, rank, seed):
    rng = np.random.default_rng(seed)
    rank = min(rank, rows, columns)
    # A unit triangle in each side makes the product's rank certain, over any field.
    left = np.tril(rng.integers(0, 1000, (rows, rank)), -1) + np.eye(rows, rank, dtype=int)
    right = np.triu(rng.integers(0, 1000, (rank, columns)), 1) + np.eye(rank, columns, dtype=int)
    product = left @ right
    shuffled = product[rng.permutation(rows)][:, rng.permutation(columns)]
    assert jacobian_rank.rank_modulo(shuffled, jacobian_rank.PRIMES[0]) == rank


def test_primes_are_primes_and_small_enough():
    for prime in jacobian_rank.PRIMES:
        assert all(prime % k for k in range(2, int(prime**0.5) + 1))
        assert jacobian_rank.BLOCK_COLUMNS * prime**2 + prime < 2**53


def test_smallest_singular_value_of_a_large_matrix():
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((900, 600))
    matrix[:, 7] = matrix[:, 3] + 1e-4 * rng.standard_normal(900)
    values = np.linalg.svd(matrix, compute_uv=False)
    ratio, direction = jacobian_rank.smallest_singular_value(matrix.T @ matrix)
    # Three digits are asked for; Lanczos stops when the square settles to three.
    assert ratio == pytest.approx(values[-1] / values[0], rel=5e-3)
    assert set(np.argsort(-abs(direction))[:2]) == {3, 7}


class TestFacts:
    def test_ten_cyclic_triples(self):
        assert [jacobian([3] * 10, f, cyclic(10)).parameters for f in (8, 9)] == [True, False]

    def test_twenty_random_triples(self):
        every = list(combinations(range(10), 3))
        rng = np.random.default_rng(0)
        some = [every[k] for k in rng.choice(120, 20, replace=False)]
        tables = read_layout([3] * 10, subsets=some)
        assert not tables.uncovered
        most = max(f for f in range(1, 20) if generic_ranks(tables, f).free == 0)
        assert most == 15

    def test_all_triples(self):
        ranks = [generic_ranks(read_layout([3] * 10, 3), f) for f in (55, 56)]  # 1,161 equations
        assert [r.free == 0 for r in ranks] == [True, False]

    def test_an_uncovered_variable_is_never_identified(self):
        some = [s for s in combinations(range(9), 3)][:10]
        local = jacobian([3] * 10, 1, some)
        assert local.parameters is False
        assert local.joint is False
        assert "no table contains" in local.verdict
        assert next(iter(local.variables)) in local.layout.uncovered

    @pytest.mark.parametrize(
        ("n", "i", "f"),
        [(6, 3, 3), (5, 4, 3), (8, 2, 3), (10, 3, 5), (7, 3, 4), (5, 10, 5), (8, 4, 6)],
    )
    def test_pairs_leave_an_orthogonal_ambiguity(self, n, i, f):
        found = generic_ranks(read_layout([i] * n, 2), f)
        assert found.free == found.open == f * (f - 1) // 2

    def test_too_few_pair_moments_leave_more(self):
        local = jacobian([2] * 6, 5, order=2)
        assert local.free == 13
        assert local.joint is False

    def test_goodmans_defect(self):
        local = jacobian([2] * 4, 3, order=3)
        assert (local.parameters, local.joint) == (False, True)
        assert (local.jacobian_rank, local.size) == (13, 14)
        assert local.open == 0

    @pytest.mark.parametrize(
        ("n", "i", "order"), [(5, 2, 3), (6, 2, 3), (5, 3, 3), (5, 2, 4), (6, 2, 4)]
    )
    def test_the_largest_rank_is_the_counting_bound(self, n, i, order):
        tables = read_layout([i] * n, order)
        bound = rj.identifiability.report([i] * n, order=order).counting
        assert generic_ranks(tables, bound).free == 0
        assert generic_ranks(tables, bound + 1).free > 0

    def test_the_joint_is_known_where_a_table_holds_everything(self):
        local = jacobian([2] * 3, 4, order=3)
        assert (local.parameters, local.joint) == (False, True)
        assert "given by a table" in local.verdict


def test_proved_bounds_are_locally_identifiable():
    rng = np.random.default_rng(5)
    for _ in range(12):
        n = int(rng.integers(3, 6))
        levels = [int(i) for i in rng.integers(2, 5, n)]
        order = int(rng.integers(3, min(n, 4) + 1))
        best = rj.identifiability.report(levels, order=order).best
        assert generic_ranks(read_layout(levels, order), best.rank).free == 0, (levels, order, best)


def test_proved_bounds_of_given_subsets_are_locally_identifiable():
    rng = np.random.default_rng(6)
    for _ in range(12):
        n = int(rng.integers(4, 8))
        levels = [int(i) for i in rng.integers(2, 5, n)]
        every = list(combinations(range(n), 3)) + list(combinations(range(n), 4))
        some = [every[k] for k in rng.choice(len(every), int(rng.integers(2, 6)), replace=False)]
        said = rj.identifiability.report(levels, subsets=some)
        tables = read_layout(levels, subsets=some)
        for bound in said.bounds:
            if bound.rank and not tables.uncovered:
                assert generic_ranks(tables, bound.rank).free == 0, (levels, some, bound)


class TestModels:
    def test_a_generic_model(self):
        local = jacobian(at=random_pmf([3] * 6, 4), order=3)
        assert (local.parameters, local.joint) == (True, True)
        assert local.smallest > 1e-4
        assert "this model" in local.verdict.lower()

    def test_two_equal_classes(self):
        p = random_pmf([3] * 5, 3)
        twin = rj.LowRankPMF([0.2, 0.3, 0.5], [a[:, [0, 0, 1]] for a in p.factors])
        local = jacobian(at=twin, order=3)
        assert local.parameters is False
        assert local.joint is None
        assert local.classes[2] < 0.01

    def test_a_class_without_weight(self):
        p = random_pmf([3] * 5, 3)
        local = jacobian(at=rj.LowRankPMF([0.4, 0.6, 0.0], p.factors), order=3)
        assert local.parameters is False

    def test_nearly_equal_classes_are_undecided(self):
        p = random_pmf([3] * 5, 3)
        factors = [np.array(a) for a in p.factors]
        for a in factors:
            a[:, 1] = a[:, 0] + 1e-9 * np.array([1, -1, 0])
        local = jacobian(at=rj.LowRankPMF(p.weights, factors), order=3)
        assert local.parameters is None
        assert "undecided" in local.verdict

    def test_pairs_at_a_model(self):
        local = jacobian(at=random_pmf([4] * 5, 3), order=2)
        assert (local.parameters, local.joint) == (False, False)
        assert local.open == 3

    def test_the_joint_may_stay_where_the_classes_move(self):
        local = jacobian(at=random_pmf([2] * 4, 3, seed=2), order=3)
        assert (local.parameters, local.joint) == (False, True)

    def test_independent_variables_at_rank_two(self):
        # Classes that differ in one variable only: the weights may move, and nothing else shows it.
        p = random_pmf([3] * 5, 2)
        factors = [a[:, [0, 0]] for a in p.factors[:4]] + [p.factors[4]]
        assert jacobian(at=rj.LowRankPMF([0.5, 0.5], factors), order=3).parameters is False

    @pytest.mark.parametrize("which", ["generic", "equal", "dead", "alike", "pairs"])
    def test_directions_are_those_of_this_model(self, which):
        p = random_pmf([3, 2, 4, 3], 3)
        weights, factors = np.array(p.weights), [np.array(a) for a in p.factors]
        if which == "dead":
            weights = np.array([0.4, 0.0, 0.6])
        for a in factors[{"equal": 0, "alike": 1}.get(which, 4) :]:
            a[:, 1] = a[:, 0]
        model = rj.LowRankPMF(weights, factors)
        order = 2 if which == "pairs" else 3
        local = jacobian(at=model, order=order)
        tables = read_layout(model.domain.shape, order)
        fiber = Fiber(tables, Model.of(model.weights, model.factors))
        values = np.linalg.eigvalsh(fiber.normal(fiber.start)[0])
        # The gap is between the square of 1e-3 and rounding, 1e-16.
        free = fiber.start.size - int((values > 1e-12).sum())
        assert local.free == free
        assert (local.parameters, local.jacobian_rank) == (free == 0, local.size - free)


def test_weak_variables_are_those_with_few_tables():
    subsets = [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3), (3, 4)]
    # Three rows of x3 cannot carry four classes over to x4, and nothing else is open.
    local = jacobian([3] * 5, 4, subsets)
    assert local.parameters is False
    assert local.variables["x4"] > 0.99
    assert "x4" in str(local)
    assert sum(local.variables.values()) <= 1.0 + 1e-9
    assert sum(local.classes) == pytest.approx(1.0)


def test_beyond_exact_ranks_singular_values_decide(monkeypatch):
    monkeypatch.setattr(sys.modules["rejoint.identifiability.jacobian"], "MOST_EXACT_COLUMNS", 10)
    assert jacobian([3] * 6, 4, order=3).joint is True
    local = jacobian([3] * 6, 4, order=2)
    assert (local.parameters, local.joint, local.free) == (None, None, None)
    assert "undecided for the joint" in local.verdict
    assert jacobian([3] * 6, 18, order=3).parameters is False  # by counting
    monkeypatch.setattr(sys.modules["rejoint.identifiability.jacobian"], "MOST_NULL_COLUMNS", 10)
    assert jacobian([3] * 6, 4, order=3).joint is True


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: jacobian([3] * 4), "Give the rank"),
        (lambda: jacobian([3] * 4, 2, at=random_pmf([3] * 4, 3)), "has rank 3"),
        (lambda: jacobian([2] * 4, at=random_pmf([3] * 4, 3)), "has different levels"),
        (lambda: jacobian([2] * 3, at=random_pmf([3] * 4, 3)), "same variables"),
        (lambda: jacobian([3] * 4, at="model"), "must be a LowRankPMF"),
        (lambda: jacobian([50] * 50, 50), "more than 2.1 GB"),
    ],
)
def test_errors_in_words(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()


def test_a_model_is_aligned_with_the_tables_by_name():
    p = random_pmf([2, 3, 4, 3], 2)
    turned = p.align(p.domain.project(["x3", "x1", "x0", "x2"]))
    subsets = [("x0", "x1", "x2"), ("x1", "x2", "x3")]
    one, other = (jacobian(p.domain, subsets=subsets, at=model) for model in (p, turned))
    # The same matrix, from the same numbers.
    assert one.smallest == pytest.approx(other.smallest, rel=1e-9)
    assert list(one.variables) == list(other.variables)
