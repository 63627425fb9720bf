"""Recovery from pairs of separable models, by levels that only one class has."""

from itertools import combinations

import numpy as np
import pytest

import rejoint as rj
from rejoint.factorization import Pairs


def separable_model(seed, size=10, levels=8, rank=5):
    """Each class has one level of its own, in a variable that differs from class to class."""
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.ones(levels), size=rank).T for _ in range(size)]
    for f in range(rank):
        factors[f][0] = max(factors[f][0, f], 0.1) * np.eye(rank)[f]
        factors[f] /= factors[f].sum(axis=0)
    return rj.LowRankPMF(rng.dirichlet(np.full(rank, 3.0)), factors)


@pytest.mark.parametrize("solver", [Pairs(), "auto"])
@pytest.mark.parametrize("seed", range(3))
def test_exact_pairs_of_separable_models(seed, solver):
    truth = separable_model(seed)
    tables = rj.Marginals.from_pmf(truth, order=2)
    result = rj.factorize(tables, 5, solver=solver, random_state=0)
    assert rj.metrics.factor_error(truth, result.pmf) < 1e-10
    assert {record.solver for record in result.history} == {"pairs"}
    assert rj.identifiability.certify(result.pmf, order=2).unique is not False


def test_sampled_pairs():
    truth = separable_model(0, levels=5, rank=3)
    errors = []
    for number in (10_000, 100_000):
        tables = rj.Marginals.count(truth.sample(number, random_state=0), order=2)
        result = rj.factorize(tables, 3, solver="pairs")
        errors.append(rj.metrics.factor_error(truth, result.pmf))
    assert errors[0] < 0.1
    assert errors[1] < 0.05


def test_pairs_without_a_table_follow_from_others():
    truth = separable_model(1, size=8, levels=5, rank=3)
    every = list(combinations(range(8), 2))
    some = [s for s in every if s not in {(0, 1), (2, 5), (3, 7)}]
    tables = rj.Marginals.from_pmf(truth, subsets=[[f"x{n}" for n in s] for s in some])
    result = rj.factorize(tables, 3, solver="pairs")
    assert rj.metrics.factor_error(truth, result.pmf) < 1e-10


def test_a_model_without_own_levels_is_started_from():
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.ones(3), size=2).T for _ in range(5)]
    tables = rj.Marginals.from_pmf(rj.LowRankPMF([0.4, 0.6], factors), order=2)
    with pytest.warns(rj.Remark, match="leave at least 1 direction"):
        assert rj.factorize(tables, 2, random_state=0).error < 1e-8


@pytest.mark.filterwarnings("ignore::rejoint.Remark")
def test_a_rank_beyond_half_of_the_variables():
    tables = rj.Marginals.from_pmf(separable_model(0, size=3, levels=3, rank=2), order=2)
    assert rj.factorize(tables, 3, solver="pairs").pmf.rank == 3
    with pytest.raises(ValueError, match="solver='pairs' supports at most rank 3"):
        rj.factorize(tables, 4, solver="pairs")
