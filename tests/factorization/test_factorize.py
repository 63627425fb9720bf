"""What factorize recovers: the paper's setting, few tables, mixed orders, samples."""

from itertools import combinations

import numpy as np
import pytest
from small_models import cyclic, random_pmf

import rejoint as rj
from rejoint.metrics import factor_error, tensor_error


@pytest.mark.parametrize("order", [3, 4])
@pytest.mark.parametrize("rank", [5, 10, 15])
def test_the_paper_s_exact_tables(order, rank):
    # Table IV of the paper: N = 5, I = 10; it prints 1e-7. ``make paper`` runs all ten models.
    for seed in range(4):
        truth = random_pmf(seed, [10] * 5, rank)
        tables = rj.Marginals.from_pmf(truth, order=order)
        result = rj.factorize(tables, rank, random_state=seed)
        assert tensor_error(truth, result.pmf) <= 1e-10
        assert factor_error(truth, result.pmf) <= 1e-10
        np.testing.assert_allclose(result.pmf.weights, truth.sorted().weights, atol=1e-10)


def test_pairs_do_not_determine_the_joint_and_that_is_not_hidden():
    truth = random_pmf(0, [10] * 5, 5)
    tables = rj.Marginals.from_pmf(truth, order=2)
    with pytest.warns(rj.Remark, match="leave at least 10 directions of a rank 5 joint open"):
        result = rj.factorize(tables, 5, n_init=1, random_state=0)
    # Pairs leave F (F - 1) / 2 directions open, along which the joint moves.
    assert tensor_error(truth, result.pmf) > 1e-3
    assert "leave at least 10 directions of a rank 5 joint open" in result.stop
    assert "Add tables of three variables" in result.stop


@pytest.mark.parametrize("seed", range(3))
def test_ten_cyclic_triples_of_ten_variables(seed):
    truth = random_pmf(seed, [4] * 10, 5, least=0.03)
    tables = rj.Marginals.from_pmf(truth, subsets=cyclic(10))
    result = rj.factorize(tables, 5, random_state=seed)
    assert tensor_error(truth, result.pmf) <= 1e-8  # of all ten variables
    for names in (["x0", "x3", "x5", "x8"], ["x1", "x2", "x6", "x9"]):  # never given
        wanted = truth.marginal(names)
        gap = np.linalg.norm(result.pmf.marginal(names) - wanted) / np.linalg.norm(wanted)
        assert gap <= 1e-8


@pytest.mark.parametrize("seed", range(3))
def test_mixed_orders_and_unequal_levels(seed):
    shape = (2, 12, 3, 7, 5, 4)
    truth = random_pmf(seed, shape, 4, least=0.03)
    subsets = [
        *(("x0", "x1", "x2"), ("x1", "x3", "x4"), ("x2", "x4", "x5"), ("x3", "x5")),
        *(("x0", "x3", "x4", "x5"), ("x1", "x5"), ("x0",)),
    ]
    tables = rj.Marginals.from_pmf(truth, subsets=subsets)
    result = rj.factorize(tables, 4, random_state=seed)
    assert [a.shape for a in result.pmf.factors] == [(levels, 4) for levels in shape]
    assert tensor_error(truth, result.pmf) <= 1e-8


@pytest.mark.parametrize("n", [8, 9])
def test_all_triples_of_many_variables(n):
    # The layout of the tables is another from eight variables on.
    truth = random_pmf(n, [3] * n, 3, least=0.1)
    tables = rj.Marginals.from_pmf(truth, order=3)
    for solver in ("auto", "newton", "admm"):
        result = rj.factorize(tables, 3, solver=solver, start="random", random_state=0)
        assert tensor_error(truth, result.pmf) <= 1e-6


def test_two_variables():
    # The NMF / PLSI case: any table of rank two is met, its factors are not unique.
    truth = random_pmf(0, (5, 4), 2)
    tables = rj.Marginals.from_pmf(truth, order=2)
    result = rj.factorize(tables, 2, random_state=0)
    assert tensor_error(truth, result.pmf) < 1e-9
    assert result.stop.startswith("The tables are met exactly")


@pytest.mark.parametrize("solver", ["auto", "admm", "newton"])
def test_one_variable(solver):
    tables = rj.Marginals.from_tables({("a",): [1, 2, 5]})
    result = rj.factorize(tables, 1, solver=solver, random_state=0)
    np.testing.assert_allclose(result.pmf.marginal(["a"]), [0.125, 0.25, 0.625], atol=1e-9)


@pytest.mark.parametrize("solver", ["auto", "admm", "newton"])
def test_rank_one_is_the_product_of_the_marginals(solver):
    # Tables of independent variables: the fit is exact and each factor is a marginal.
    truth = random_pmf(0, (3, 4, 2, 5), 1)
    tables = rj.Marginals.from_pmf(truth, order=2)
    result = rj.factorize(tables, 1, solver=solver, random_state=0)
    assert result.pmf.weights.tolist() == [1.0]
    for n, name in enumerate(truth.domain.names):
        np.testing.assert_allclose(result.pmf.factors[n][:, 0], truth.marginal([name]), atol=1e-9)


def test_one_way_tables_alone_give_independence():
    truth = random_pmf(1, (3, 4, 2), 3)
    tables = rj.Marginals.from_pmf(truth, order=1)
    with pytest.warns(rj.Remark, match="fall into 3 groups of variables"):
        result = rj.factorize(tables, 1, random_state=0)
    wanted = np.einsum("i,j,k->ijk", *(truth.marginal([n]) for n in truth.domain.names))
    np.testing.assert_allclose(result.pmf.to_dense(), wanted, atol=1e-9)


def test_a_rank_larger_than_needed_gives_the_same_joint():
    truth = random_pmf(2, [5] * 4, 2)
    tables = rj.Marginals.from_pmf(truth, order=3)
    result = rj.factorize(tables, 4, random_state=0)
    assert result.pmf.rank == 4
    # Superfluous classes slow the last digits down, but the joint is that of the truth.
    assert tensor_error(truth, result.pmf) < 1e-5


def test_too_small_a_rank_is_met_as_well_as_it_can_be():
    truth = random_pmf(3, [5] * 4, 4, least=0.1)
    tables = rj.Marginals.from_pmf(truth, order=3)
    errors = [rj.factorize(tables, rank, random_state=0).error for rank in (1, 2, 3, 4)]
    assert errors == sorted(errors, reverse=True)
    assert errors[2] > 1e-3
    assert errors[3] < 1e-10


@pytest.mark.parametrize("seed", [0, 1])
def test_sampled_records(seed):
    # M = 1e5: the Cramer-Rao bound for such models is about .041 on average over models and
    # samples, the factorization of triples stays within 1.35 of that; .07 leaves room for one
    # model and one sample in place of the mean of many.
    truth = random_pmf(seed, [10] * 5, 5, least=0.03)
    records = truth.sample(100_000, random_state=seed)
    result = rj.factorize(rj.Marginals.count(records, order=3), 5, random_state=seed)
    assert tensor_error(truth, result.pmf) < 0.07
    assert "sampling noise" in result.stop


def test_records_full_of_holes():
    truth = random_pmf(5, [4] * 5, 3, least=0.1)
    records = truth.sample(40_000, random_state=0)
    rng = np.random.default_rng(1)
    codes = np.where(rng.random(records.codes.shape) < 0.3, -1, records.codes)
    holes = rj.Records(records.domain, codes.astype(records.codes.dtype), None)
    tables = rj.Marginals.count(holes, order=3)
    result = rj.factorize(tables, 3, random_state=0)
    # A third of the records hold a triple: about 1.7 times the noise of complete records,
    # which is .02 here.
    assert tensor_error(truth, result.pmf) < 0.06


def test_given_tables_are_met_in_their_order_of_variables():
    truth = random_pmf(6, (2, 3, 4), 2)
    given = {("x2", "x0", "x1"): truth.marginal(["x2", "x0", "x1"])}
    tables = rj.Marginals.from_tables(given)
    result = rj.factorize(tables, 2, random_state=0)
    np.testing.assert_allclose(
        result.pmf.marginal(["x0", "x1", "x2"]), truth.to_dense(), atol=1e-10
    )


def test_a_chain_of_overlapping_tables():
    truth = random_pmf(7, [4] * 7, 3, least=0.1)
    chain = [tuple(f"x{i + k}" for k in range(3)) for i in (0, 2, 4)]
    result = rj.factorize(rj.Marginals.from_pmf(truth, subsets=chain), 3, random_state=0)
    assert tensor_error(truth, result.pmf) < 1e-9


def test_all_orders_at_once():
    truth = random_pmf(8, (3, 4, 3, 2), 3, least=0.1)
    names = truth.domain.names
    subsets = [s for d in (1, 2, 3, 4) for s in combinations(names, d)]
    result = rj.factorize(rj.Marginals.from_pmf(truth, subsets=subsets), 3, random_state=0)
    assert tensor_error(truth, result.pmf) < 1e-9
