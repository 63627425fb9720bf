"""Certificates of single models: Kruskal ranks, compound matrices, what is wrong with a model."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

import rejoint as rj
from rejoint.identifiability import uniqueness_proof
from rejoint.identifiability.fiber import Fiber

certify = rj.identifiability.certify


def random_pmf(levels, rank, seed=0):
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.ones(i), size=rank).T for i in levels]
    return rj.LowRankPMF(rng.dirichlet(np.full(rank, 3.0)), factors)


def brute_kruskal_rank(matrix):
    size = matrix.shape[1]
    for k in range(1, size + 1):
        for some in combinations(range(size), k):
            if np.linalg.matrix_rank(matrix[:, some], tol=1e-9) < k:
                return k - 1
    return size


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 10**6))
def test_kruskal_rank_by_brute_force(rows, columns, seed):
    # Small whole numbers have many coincidences.
    matrix = np.random.default_rng(seed).integers(0, 3, (rows, columns)).astype(float)
    assert uniqueness_proof.kruskal_rank(matrix) == brute_kruskal_rank(matrix)


def test_kruskal_rank_is_bounded_where_there_are_too_many_sets(monkeypatch):
    monkeypatch.setattr(uniqueness_proof, "MOST_COLUMN_SETS", 100)
    matrix = np.random.default_rng(0).random((10, 40))
    assert uniqueness_proof.kruskal_rank(matrix) == 1  # C(40, 2) sets are too many


def second_compound(matrix):
    rows = list(combinations(range(len(matrix)), 2))
    pairs = list(combinations(range(matrix.shape[1]), 2))
    return np.array([[np.linalg.det(matrix[np.ix_(r, p)]) for p in pairs] for r in rows])


@pytest.mark.parametrize(("a", "b", "rank"), [(3, 4, 5), (4, 4, 7), (2, 5, 4), (3, 3, 4)])
def test_compound_condition_by_brute_force(a, b, rank):
    rng = np.random.default_rng(a * 10 + b)
    first, second = rng.random((a, rank)), rng.random((b, rank))
    units = [
        m / np.linalg.norm(m, axis=0) for m in map(uniqueness_proof.unit_columns, (first, second))
    ]
    one, two = (second_compound(m) for m in units)
    product = np.stack([np.kron(x, y) for x, y in zip(one.T, two.T, strict=True)], axis=1)
    values = np.linalg.svd(product / np.linalg.norm(product, axis=0), compute_uv=False)
    strength = uniqueness_proof.compound_strength(first, second)
    # From a Gram matrix, so that the ratio is good to 1e-8 over itself.
    assert strength == pytest.approx(values[-1] / values[0], rel=1e-4)


def test_compound_condition_fails_above_its_bound():
    # 2 F (F - 1) <= 3 * 2 * 3 * 2 allows 4 classes.
    rng = np.random.default_rng(0)
    assert uniqueness_proof.compound_strength(rng.random((3, 4)), rng.random((3, 4))) > 0
    assert uniqueness_proof.compound_strength(rng.random((3, 5)), rng.random((3, 5))) == 0.0


def test_kruskal_proves_a_generic_model_of_small_rank():
    found = certify(random_pmf([3] * 6, 5), order=3)
    assert found.proof.lemma == "Lemma 1 (Kruskal)"
    assert found.verdict.startswith("Unique: no other model of rank 5")
    assert found.local.parameters is True


def test_lemma_four_proves_more():
    found = certify(random_pmf([3] * 6, 7), order=3)
    assert found.proof.lemma == "Lemma 4 (compound)"
    assert found.compound > 0


def test_quadruples_prove_more_than_triples():
    p = random_pmf([3] * 6, 9)
    assert certify(p, order=3).proof is None
    assert certify(p, order=4).proof.lemma == "Lemma 4 (compound)"


def test_locally_unique_is_said_where_nothing_is_proved():
    found = certify(random_pmf([3] * 6, 12), order=3)
    assert found.proof is None
    assert found.unique is None
    assert found.verdict.startswith("Undecided: none of the lemmas proves this model unique")
    assert "It is locally unique (condition number" in found.verdict


def test_given_subsets_and_what_hangs_on_them():
    p = random_pmf([3] * 5, 3)
    chain = [(0, 1, 2), (1, 2, 3), (3, 4)]
    assert certify(p, chain).proof is not None
    loose = certify(random_pmf([3] * 5, 4), [*chain[:2], (3, 4)])
    assert loose.proof is None  # three rows of x3 do not carry four classes over to x4


def test_four_groups_given_one_by_one():
    quads = [(a, b, c, 3) for a in (0, 4) for b in (1, 5) for c in (2, 6)]
    found = certify(random_pmf([2] * 7, 4), quads)
    assert found.proof is not None


def test_an_exception_among_generic_models():
    # Two variables tell no classes apart: Kruskal ranks of 1, and nothing proves the rest.
    p = random_pmf([3] * 3, 2)
    flat = rj.LowRankPMF(p.weights, [p.factors[0], *(a[:, [0, 0]] for a in p.factors[1:])])
    found = certify(flat, order=3)
    assert found.proof is None
    assert found.kruskal["x1"] == 1
    assert found.alike == ((0, 1, "x0"),)
    assert "classes 1 and 2 differ in 'x0' only" in found.verdict


def test_equal_and_dead_classes():
    p = random_pmf([3] * 5, 2)
    twin = rj.LowRankPMF([0.3, 0.7, 0.0], [a[:, [0, 0, 1]] for a in p.factors])
    found = certify(twin, order=3)
    assert found.dead == (2,)
    assert found.alike == ((0, 1, ""),)
    assert "classes without weight: 3, and classes 1 and 2 are equal" in found.verdict


def test_equal_columns_are_named():
    # Only x0 and x1 depend on the class, and x1 not on which of the last two.
    p = random_pmf([3] * 5, 3)
    factors = [p.factors[0], p.factors[1][:, [0, 1, 1]], *(a[:, [0, 0, 0]] for a in p.factors[2:])]
    found = certify(rj.LowRankPMF(p.weights, factors), order=3)
    assert found.collinear == {"x1": ((1, 2),), **dict.fromkeys(["x2", "x3", "x4"], ((0, 1, 2),))}
    assert "does not distinguish): x1 (2, 3), x2 (all), x3 (all), x4 (all)." in str(found)
    assert not certify(p, order=3).collinear


def test_pairs_are_not_unique():
    found = certify(random_pmf([3] * 5, 3), order=2)
    assert found.verdict.startswith("Not unique: another model of rank 3 has the same tables")


def test_coverage():
    p = random_pmf([3] * 4, 2)
    assert certify(p, [("x0", "x1", "x2")]).verdict == "Not unique: no table contains 'x3'."
    found = certify(p, [("x0", "x1", "x2"), ("x1", "x2", "x3")])
    assert found.apart == (("x0", "x3"),)
    assert "No table contains both of: x0 and x3." in str(found)


def test_one_class_is_always_unique():
    assert "one class" in certify(random_pmf([3] * 3, 1), order=2).verdict


def test_errors_in_words():
    with pytest.raises(TypeError, match="certify takes a LowRankPMF, got list"):
        certify([1, 2])


def test_four_groups_of_listed_tables():
    # The sides of three groups are 8 at the most; of four, two are multiplied into one of 16 rows.
    model = random_pmf([4, 4, 4, 4, 2], 9)
    found = certify(model, [(0, 1, 2, 3), (2, 3, 4)])
    assert found.proof is not None
    assert found.proof.lemma == "Lemma 4 (compound)"
    assert len(found.proof.groups[-1]) == 2
    assert found.local.parameters


def test_a_search_keeps_to_one_thread_of_blas(monkeypatch):
    """Its matrices are small: two threads on busy cores took 25 times the CPU."""
    seen = []

    def find_nothing(fiber):
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return None, "nothing was searched"

    monkeypatch.setattr(Fiber, "find_other", find_nothing)
    with threadpool_limits(2, user_api="blas"):
        rj.identifiability.certify(rj.datasets.asia())
    assert set(seen) == {1}
