"""Sweeps over all triples as a whole, against those variable by variable."""

from dataclasses import replace

import numpy as np
import pytest

import rejoint as rj
from rejoint import kernels
from rejoint.factorization import Admm, admm
from rejoint.factorization.problem import make_problem
from rejoint.model import Layout, Model

pytestmark = pytest.mark.skipif(
    kernels.backend != "native", reason="without compiled kernels variables are swept one by one"
)


def sampled_tables(shape, seed=0, rows=2000):
    rng = np.random.default_rng(seed)
    truth = rj.LowRankPMF(
        rng.dirichlet(np.ones(3)), [rng.dirichlet(np.ones(n), size=3).T for n in shape]
    )
    return rj.Marginals.count(truth.sample(rows, random_state=seed), order=3)


def random_model(shape, rank, seed=1):
    rng = np.random.default_rng(seed)
    factors = np.vstack([rng.dirichlet(np.ones(n), size=rank).T for n in shape])
    return rng.dirichlet(np.full(rank, 5.0)), factors


def by_variable(problem):
    """The same tables without the sweep as a whole."""
    slow = replace(problem)
    slow.__dict__["packed"] = None
    return slow


@pytest.mark.parametrize("rank", [1, 3, 4, 7, 20, 33, 50])
@pytest.mark.parametrize("shape", [(2, 3, 4), (3, 2, 5, 1, 4), (4,) * 9])
def test_a_sweep_is_that_variable_by_variable(shape, rank):
    problem = make_problem(sampled_tables(shape), "equal")
    assert problem.packed is not None
    state = Admm().init(problem, Model(Layout(shape), *random_model(shape, rank)))
    for _ in range(2):  # with duals the second time
        one, other = (admm.sweep(p, state, 10) for p in (problem, by_variable(problem)))
        # The same numbers in another order; steps of least squares with condition numbers of up to
        # 1e10, which lift rounding to about 1e-7 where there are more classes than tables can tell.
        np.testing.assert_allclose(one.model.stacked, other.model.stacked, rtol=0, atol=1e-6)
        exact = problem.value(one.model)
        assert one.objective == pytest.approx(exact, abs=1e-13 * problem.scale)
        state = one


def test_the_objective_by_either_way():
    shape = (3, 2, 5, 4)
    problem = make_problem(sampled_tables(shape), "equal")
    model = Model(Layout(shape), *random_model(shape, 3))
    slow = problem.value(model)
    assert problem.quick_value(model) == pytest.approx(slow, rel=1e-10)
    exact = rj.Marginals.from_pmf(rj.datasets.asia(), order=3)
    met = make_problem(exact, "equal")
    pmf = rj.datasets.asia()
    # Next to an exact fit the residuals themselves are summed: nothing is lost.
    assert met.quick_value(Model.of(pmf.weights, pmf.factors)) < 1e-28


def test_weights_of_tables_multiply():
    shape = (2, 3, 2, 2)
    tables = sampled_tables(shape)
    heavy = make_problem(replace(tables, table_weight=np.full(len(tables), 2.5)), "equal")
    state = Admm().init(heavy, Model(Layout(shape), *random_model(shape, 2)))
    one, other = (admm.sweep(p, state, 10) for p in (heavy, by_variable(heavy)))
    np.testing.assert_allclose(one.model.factors, other.model.factors, atol=1e-9)
    assert one.objective == pytest.approx(heavy.value(one.model), rel=1e-9)


def test_what_does_not_fit_is_refused():
    packed = kernels.pack_triples([np.full((2, 2, 2), 0.125)], [2, 2, 2])
    weights, factors = model = np.ones(1), np.full((6, 1), 0.5)
    with pytest.raises(ValueError, match="have 8 cells"):
        kernels.triples_value(packed[1:], [2, 2, 2], 1.0, *model)
    with pytest.raises(ValueError, match="does not fit the levels"):
        kernels.triples_value(packed, [2, 2, 2], 1.0, weights, factors[1:])
    with pytest.raises(ValueError, match="Duals have shapes"):
        kernels.triples_sweep(packed, [2, 2, 2], 1.0, model, (weights, factors[1:]), 1)
