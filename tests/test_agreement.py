"""Two ways of saying the same must agree: bounds, weights that are zero, solvers.

Each claim that does not hold yet is marked with what is seen; the mark goes when it is mended.
"""

import numpy as np
import pytest

import rejoint as rj
from rejoint import estimation
from rejoint.estimation import Em
from rejoint.factorization import Admm, Limits


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.full(size, 0.5), size=3).T for size in (3, 4, 2, 3, 3)]
    truth = rj.LowRankPMF([0.5, 0.3, 0.2], factors)
    return rj.datasets.remove_cells(truth.sample(500, random_state=0), 0.2, random_state=0)


# --- bounds of a posterior and of the model that carries it --------------------------------------


def one_excludes():
    """Four draws, one of which holds ``x0 = 1`` impossible, and a model that carries them."""
    likely = rj.LowRankPMF([1.0], [[[0.5], [0.5]], [[0.3], [0.7]]])
    unlikely = rj.LowRankPMF([1.0], [[[0.6], [0.4]], [[0.2], [0.8]]])
    never = rj.LowRankPMF([1.0], [[[1.0], [0.0]], [[0.6], [0.4]]])
    draws = (likely, unlikely, likely, never)
    return rj.LowRankPMF(likely.weights, likely.factors, likely.domain, draws)


def test_asking_skips_a_draw_that_excludes_the_evidence():
    pmf = one_excludes()
    answer = pmf.ask("P(x1 | x0 = 1)")
    assert answer.interval.draws == 3
    bounds = answer.interval.low, answer.interval.high
    np.testing.assert_allclose(bounds, pmf.interval("x1", given={"x0": 1}), atol=1e-6)


# --- weights that are all zero -------------------------------------------------------------------

DOMAIN = rj.Domain.of({"a": ["x", "y"], "b": ["u", "v"]})
ROWS = {"a": ["x", "y", "x"], "b": ["u", None, "v"], "times": [0.0, 0.0, 0.0]}
WORDS = "sample_weight is zero in every row: nothing would count"


def zero_csv(tmp_path):
    path = tmp_path / "zero.csv"
    path.write_text("a,b,times\nx,u,0\ny,,0\nx,v,0\n")
    return path


@pytest.mark.parametrize("domain", [None, DOMAIN])
def test_records_of_no_weight_are_refused(domain):
    with pytest.raises(ValueError, match=WORDS):
        rj.Records.of(ROWS, domain=domain, sample_weight="times")


def test_a_file_of_no_weight_is_refused(tmp_path):
    with pytest.raises(ValueError, match=WORDS):
        rj.read(zero_csv(tmp_path), sample_weight="times")


def test_so_it_is_where_a_domain_is_given(tmp_path):
    with pytest.raises(ValueError, match=WORDS):
        rj.read(zero_csv(tmp_path), sample_weight="times", domain=DOMAIN)


# --- solvers -------------------------------------------------------------------------------------


class Own:
    """What the documentation says a solver is: name, limits, init, step; no dataclass, no Em."""

    name = "own"

    def __init__(self, inner, steps=40):
        self.inner = inner
        self.limits = Limits(max_steps=steps, exact=-1.0)

    def init(self, problem, model):
        return self.inner.init(problem, model)

    def step(self, problem, state):
        return self.inner.step(problem, state)


def of_own_steps(result):
    return {record.solver for record in result.history} == {"own"}


def test_factorize_takes_a_solver_of_ones_own(records):
    tables = rj.Marginals.count(records, order=3)
    assert of_own_steps(rj.factorize(tables, 2, Own(Admm()), n_init=2, random_state=0))


def test_estimate_takes_a_solver_of_ones_own(records):
    assert of_own_steps(rj.estimate(records, 2, Own(Em()), n_init=2, random_state=0))


def test_estimate_takes_it_beyond_memory(records):
    scan = rj.scan(records, size=100, memory=0)
    assert "own" in {r.solver for r in rj.estimate(scan, 2, Own(Em()), random_state=0).history}


def test_the_rank_is_chosen_by_a_solver_of_ones_own(records):
    found = rj.rank.select(records, [1, 2, 3], solver=Own(Em()), n_init=2, random_state=0)
    assert found.ranks == (1, 2, 3)


def test_an_estimator_takes_a_solver_of_ones_own(records):
    model = rj.JointPMF(2, Own(Em()), n_init=2, random_state=0).fit(records)
    assert of_own_steps(model.result_)


def test_the_rank_is_chosen_by_em(records):
    """A solver object of the package, as a control."""
    found = rj.rank.select(records, [1, 2], solver=Em(), n_init=2, random_state=0)
    assert found.ranks == (1, 2)


def test_estimate_takes_variational_bayes(records):
    result = rj.estimate(records, 2, estimation.Variational(), n_init=2, random_state=0)
    assert "variational" in {record.solver for record in result.history}
