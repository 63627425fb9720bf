"""All tables without forming them: what they share with tables that are formed, and their cost."""

import numpy as np
import pytest
from paper.all_tables import fit_all_tables, make_problem, merge_patterns
from paper.coupled import uniform_start

import rejoint as rj
from rejoint.factorization import Admm, Limits, admm
from rejoint.factorization.problem import make_problem as make_table_problem
from rejoint.kernels import SparseCodes
from rejoint.model import Model

SHAPE = (3, 2, 4, 3, 2)


def random_pmf(seed, shape, rank):
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.ones(levels), size=rank).T for levels in shape]
    return rj.LowRankPMF(0.2 + rng.dirichlet(np.ones(rank)) * (1 - 0.2 * rank), factors)


def random_model(seed, rank):
    pmf = random_pmf(seed, SHAPE, rank)
    return Model.of(pmf.weights, pmf.factors)


def sampled(missing=0.0, rows=300):
    records = random_pmf(0, SHAPE, 3).sample(rows, random_state=0)
    return rj.datasets.remove_cells(records, missing, random_state=0) if missing else records


def problems(missing, order):
    """The same tables, formed and not."""
    records = sampled(missing)
    counted = rj.Marginals.count(records, order=order)
    return make_table_problem(counted, "count"), make_problem(records, order, "count")


@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_sweep_is_that_of_the_tables(missing, order):
    formed, thin = problems(missing, order)
    model = random_model(1, 4)
    one, other = (
        admm.sweep(problem, Admm().init(problem, model), inner=10) for problem in (formed, thin)
    )
    # Sums of some thousand products below one, in another order, through ten inner steps whose
    # matrices have condition numbers of up to 1e5 (a step is as long as their spectrum is wide).
    np.testing.assert_allclose(other.model.factors, one.model.factors, rtol=0, atol=1e-8)
    np.testing.assert_allclose(other.model.weights, one.model.weights, rtol=0, atol=1e-8)
    np.testing.assert_allclose(other.factors_dual, one.factors_dual, rtol=0, atol=1e-7)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_objective_is_known_up_to_a_constant(missing):
    formed, thin = problems(missing, 3)
    models = [random_model(seed, 3) for seed in range(4)]
    gaps = [formed.value(model) - thin.quick_value(model) for model in models]
    np.testing.assert_allclose(gaps, 0.5 * formed.scale, rtol=1e-12)  # sums of squares below one
    assert len(thin.kept) == 2  # numbers of two models are remembered


def test_sixty_variables_whose_34_220_triples_are_never_formed():
    truth = random_pmf(3, [3] * 60, 3)
    records = truth.sample(3000, random_state=0)
    found = fit_all_tables(
        records, 3, uniform_start(records.domain, 3, 0), Admm(limits=Limits(max_steps=40)), "equal"
    )
    # Columns of 1,000 records each have an error of about 0.015 a cell; least squares adds some.
    assert rj.metrics.factor_error(truth, found) < 0.1


def test_complete_records_have_one_pattern():
    patterns, mass = make_problem(sampled(), 3, "equal").patterns
    assert len(patterns) == 1
    # Each of the ten triples counts one.
    assert mass[0] == pytest.approx(1.0)
    codes = np.array([[0, -1, 1], [1, -1, 0], [-1, 0, 0], [0, 0, 0]], dtype=np.int16)
    patterns, mass = merge_patterns(
        SparseCodes.of_codes(codes, [2, 2, 2]), np.array([1.0, 2, 4, 8])
    )
    found = {
        tuple(row): m for row, m in zip((patterns.to_codes() >= 0).tolist(), mass, strict=True)
    }
    assert found == {(True, False, True): 3, (False, True, True): 4, (True, True, True): 8}


def test_incomplete_records_have_no_equal_tables():
    with pytest.raises(ValueError, match="use weighting='count'"):
        make_problem(sampled(0.3), 3, "equal")
