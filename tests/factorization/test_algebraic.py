"""The constructive proof as an algorithm: what it recovers, and what it refuses."""

from itertools import combinations, product

import numpy as np
import pytest
from small_models import cyclic, random_pmf

import rejoint as rj
from rejoint.factorization import Algebraic
from rejoint.factorization.algebraic import (
    Subtables,
    grow_groups,
    stacked_rank,
)
from rejoint.factorization.problem import make_problem
from rejoint.metrics import factor_error, tensor_error


def subtables_of(pmf, **how):
    return Subtables(make_problem(rj.Marginals.from_pmf(pmf, **how), "equal"))


def algebraically(pmf, **how):
    tables = rj.Marginals.from_pmf(pmf, **how)
    return rj.factorize(tables, pmf.rank, solver="algebraic", random_state=0)


@pytest.mark.parametrize("order", [3, 4])
@pytest.mark.parametrize("rank", [5, 10, 15])
def test_exact_tables(order, rank):
    for seed in range(3):
        truth = random_pmf(seed, [10] * 5, rank)
        result = algebraically(truth, order=order)
        # Rounding times the condition of 15 random classes, some of weight 1e-3.
        assert factor_error(truth, result.pmf) < 1e-9
        assert tensor_error(truth, result.pmf) < 1e-10
        np.testing.assert_allclose(result.pmf.weights, truth.sorted().weights, atol=1e-10)
        assert {record.solver for record in result.history} == {"algebraic"}


@pytest.mark.parametrize(
    ("shape", "rank", "by_triples"), [([3] * 6, 7, 5), ([2] * 6, 4, 3), ([2] * 8, 5, 4)]
)
def test_quadruples_carry_ranks_that_triples_do_not(shape, rank, by_triples):
    # Pairs of variables in the first group: the Khatri-Rao structure of Theorem 3.
    truth = random_pmf(1, shape, rank, least=0.02)
    subtables = subtables_of(truth, order=4)
    assert subtables.largest_rank(pairs=False) == by_triples
    assert subtables.largest_rank(pairs=True) == rank
    result = algebraically(truth, order=4)
    # Small models with near classes: 1e-13 of the tables, times their condition.
    assert tensor_error(truth, result.pmf) < 1e-9
    assert factor_error(truth, result.pmf) < 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_variables_hang_on_by_a_chain(seed):
    # 0-1-2, 2-3-4, 4-5-6, 6-7-8: no two tables share more than one variable.
    truth = random_pmf(seed, [4] * 9, 3, least=0.1)
    chain = [tuple(f"x{i + k}" for k in range(3)) for i in (0, 2, 4, 6)]
    result = algebraically(truth, subsets=chain)
    assert tensor_error(truth, result.pmf) < 1e-9


def test_a_variable_known_from_one_pair_hangs_on_too():
    truth = random_pmf(2, (4, 4, 4, 5), 3, least=0.1)
    result = algebraically(truth, subsets=[("x0", "x1", "x2"), ("x2", "x3")])
    assert tensor_error(truth, result.pmf) < 1e-9


def test_a_variable_with_one_level():
    truth = random_pmf(0, (3, 1, 4, 3, 1), 2)
    assert tensor_error(truth, algebraically(truth, order=3).pmf) < 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_tables_of_five_variables(seed):
    truth = random_pmf(seed, [3] * 7, 2, least=0.2)
    subsets = [tuple(f"x{i + k}" for k in range(5)) for i in range(3)]
    assert tensor_error(truth, algebraically(truth, subsets=subsets).pmf) < 1e-9


def test_cyclic_triples():
    truth = random_pmf(0, [5] * 6, 3, least=0.1)
    assert tensor_error(truth, algebraically(truth, subsets=cyclic(6)).pmf) < 1e-9


def best_partition(levels, pairs):
    """Largest rank over all partitions of all variables into three groups."""
    best = 0
    for places in product(range(3), repeat=len(levels)):
        groups = [[n for n, place in enumerate(places) if place == k] for k in range(3)]
        if groups[1] and groups[2] and len(groups[0]) >= 1 + pairs:
            sides = stacked_rank(levels, groups[0], pairs), stacked_rank(levels, groups[1], False)
            best = max(best, min(sides))
    return best


@pytest.mark.parametrize(
    ("levels", "order"),
    [
        ((3,) * 6, 3),
        ((3,) * 6, 4),
        ((2,) * 5, 3),
        ((2,) * 7, 4),
        ((6,) * 3, 3),
        # Unequal levels: few partitions balance the two sides, and one of those must be found.
        ((2, 3, 4, 5, 6), 3),
        ((2, 3, 4, 5, 6), 4),
        ((6, 4, 7, 5, 5, 5, 6), 3),
        ((7, 2, 7, 5, 5), 4),
        ((2, 2, 2, 2, 10, 10), 4),
    ],
)
def test_largest_rank_works_and_one_more_is_refused_in_words(levels, order):
    best = max(best_partition(levels, pairs) for pairs in (False, order == 4))
    truth = random_pmf(3, levels, best, least=0.02)
    tables = rj.Marginals.from_pmf(truth, order=order)
    result = rj.factorize(tables, best, solver="algebraic")
    assert result.error < 1e-9
    words = f"supports at most rank {best} with these tables, got rank {best + 1}: it found"
    with pytest.raises(ValueError, match=words):
        rj.factorize(tables, best + 1, solver="algebraic")


def test_what_cannot_be_done_algebraically_is_done_otherwise():
    truth = random_pmf(3, [3] * 4, 4, least=0.1)
    tables = rj.Marginals.from_pmf(truth, order=3)
    with pytest.raises(ValueError, match="supports at most rank 3"):
        rj.factorize(tables, 4, solver="algebraic")
    result = rj.factorize(tables, 4, random_state=0)
    assert "algebraic" not in {record.solver for record in result.history}
    assert tensor_error(truth, result.pmf) < 1e-8


def test_pairs_are_refused_in_words():
    tables = rj.Marginals.from_pmf(random_pmf(0, [3] * 4, 2), order=2)
    with pytest.raises(ValueError, match="'algebraic' needs tables of at least three variables"):
        rj.factorize(tables, 2, solver="algebraic")


def test_a_table_of_three_in_which_one_has_a_single_level_is_no_triple():
    tables = rj.Marginals.from_pmf(random_pmf(0, (3, 1, 3), 2), order=3)
    with pytest.raises(ValueError, match="with two levels or more"):
        rj.factorize(tables, 2, solver="algebraic")


@pytest.mark.parametrize("seed", range(3))
def test_sampled_tables_give_a_start_on_the_simplex(seed):
    truth = random_pmf(seed, [6] * 5, 4, least=0.1)
    tables = rj.Marginals.count(truth.sample(50_000, random_state=seed), order=3)
    result = rj.factorize(tables, 4, solver="algebraic", random_state=seed)
    independent = rj.factorize(tables, 1, random_state=seed)
    # Noise is small beside the model here: far better than independence, no more is claimed.
    assert tensor_error(truth, result.pmf) < 0.5 * tensor_error(truth, independent.pmf)
    objectives = [record.objective for record in result.history]
    assert objectives == sorted(objectives, reverse=True)


def test_more_classes_than_the_tables_show():
    # Slabs of deficient rank: no error, and the tables are met by what is found.
    truth = random_pmf(0, [6] * 4, 2)
    tables = rj.Marginals.from_pmf(truth, order=3)
    result = rj.factorize(tables, 3, solver=Algebraic(seed=1))
    assert np.isfinite(result.error)
    assert result.pmf.rank == 3


# --- groups ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("levels", "pairs"), [((3,) * 4, False), ((2, 3, 4), True)])
def test_stacked_rank_is_the_rank_of_stacked_factors(levels, pairs):
    # d = sum (I_n - 1) + 1, since each block of rows sums to one: not sum I_n.
    factors = random_pmf(0, levels, 60).factors
    rows = [
        (factors[a][:, None] * factors[b][None]).reshape(-1, 60)
        for a, b in combinations(range(len(levels)), 2)
    ]
    stacked = np.vstack(rows if pairs else factors)
    rank = stacked_rank(levels, range(len(levels)), pairs)
    assert rank == np.linalg.matrix_rank(stacked, tol=1e-8)
    assert rank < len(stacked)


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("rank", [2, 6, 100])
def test_groups_are_disjoint_and_all_their_tables_are_there(pairs, rank):
    rng = np.random.default_rng(0)
    names = [f"x{n}" for n in range(8)]
    order = 4 if pairs else 3
    every = list(combinations(names, order))
    some = [every[i] for i in np.sort(rng.permutation(len(every))[: len(every) // 2])]
    subtables = subtables_of(random_pmf(0, [3] * 8, 2), subsets=[*some, *((n,) for n in names)])
    for _ in range(10):
        order = rng.permutation([n for n, k in enumerate(subtables.problem.levels) if k > 1])
        groups = grow_groups(subtables, rank, order.tolist(), 1.5, pairs=pairs)
        members = [sorted({n for block in mode for n in block}) for mode in groups.modes]
        assert len(set().union(*members)) == sum(map(len, members))
        for blocks in product(*groups.modes):
            assert [n for block in blocks for n in block] in subtables
        assert all(len(block) == 1 + pairs for block in groups.first)
