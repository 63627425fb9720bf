"""Tables counted from records: no steps below sampling noise, no level that was seen excluded."""

from dataclasses import replace

import numpy as np
import pytest

import rejoint as rj
from rejoint.factorization.fit_tables import Auto, is_enough
from rejoint.factorization.problem import make_problem
from rejoint.model import Model
from rejoint.solver.run import why_stop
from rejoint.solver.solver import Limits, Record, Run, Stop


@pytest.fixture(scope="module")
def halves():
    """Few records of binary variables that depend on each other, as votes are."""
    rng = np.random.default_rng(0)
    side = rng.random((400, 1)) < 0.5
    votes = np.where(rng.random((400, 12)) < 0.85, side, ~side).astype(int)
    records = rj.Records.of(votes)
    return records.take(np.arange(200)), records.take(np.arange(200, 400))


@pytest.fixture(scope="module")
def fitted(halves):
    return rj.factorize(rj.Marginals.count(halves[0], order=3), rank=20, random_state=0)


def test_noise_is_the_squared_error_of_the_truth():
    truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    found = []
    for seed in range(200):
        tables = rj.Marginals.count(truth.sample(500, random_state=seed), order=3)
        problem = make_problem(tables, "equal")
        found.append(problem.value(Model.of(truth.weights, truth.factors)) / problem.noise)
    assert np.mean(found) == pytest.approx(1.0, abs=0.15)
    assert make_problem(rj.Marginals.from_pmf(truth, order=3), "equal").noise == 0.0


def test_a_rank_too_large_takes_few_steps(fitted):
    assert len(fitted.history) < 600
    assert not any(record.solver == "newton" for record in fitted.history)


def test_no_record_of_levels_that_were_seen_is_impossible(halves, fitted):
    assert np.isfinite(fitted.pmf.log_prob(halves[1])).all()
    assert all((factor > 0).all() for factor in fitted.pmf.factors)
    alone = rj.estimate(halves[0], rank=1, solver="ml").pmf
    assert fitted.pmf.log_prob(halves[1]).mean() > alone.log_prob(halves[1]).mean()
    assert "as one record more would make it" in fitted.stop


def test_a_level_that_was_never_seen_may_be_impossible():
    domain = rj.Domain.of({name: ["x", "y", "never"] for name in "abcd"})
    rng = np.random.default_rng(0)
    records = rj.Records(domain, rng.integers(0, 2, (100, 4)).astype(np.int8))
    pmf = rj.factorize(rj.Marginals.count(records, order=3), rank=3, random_state=0).pmf
    assert all((factor[:2] > 0).all() for factor in pmf.factors)
    assert np.isfinite(pmf.log_prob(records)).all()


def test_exact_tables_are_met_as_before():
    truth = rj.LowRankPMF([0.4, 0.6], [[[1.0, 0.1], [0.0, 0.9]]] * 4)
    pmf = rj.factorize(rj.Marginals.from_pmf(truth, order=3), rank=2, random_state=0).pmf
    assert rj.metrics.tensor_error(truth, pmf) < 1e-6
    assert min(factor.min() for factor in pmf.factors) < 1e-9


def test_gains_below_the_limit_end_a_run():
    class Nothing:
        def error(self, objective):
            return float("nan")

    records = [Record(0, "admm", k, 1.0 + 0.5**k, 1.0, 0.0) for k in range(12)]
    limits = Limits(progress=0.0, window=3)
    assert why_stop(Nothing(), records, limits) is None
    assert why_stop(Nothing(), records, replace(limits, gain=0.01)) is Stop.PROGRESS


def test_starts_that_differ_by_less_than_noise_are_alike():
    model = Model.of([1.0], [[[0.5], [0.5]]])
    runs = [Run(model, 0.1 + 0.002 * k, 1.0, 0.3, Stop.PROGRESS) for k in range(5)]
    assert not is_enough(runs)
    assert is_enough(runs, noise=1.0)


def test_limits_of_exact_tables_stay():
    assert Auto().within(0.0) == Auto()
    assert Auto().within(2.0).polish.limits.gain == pytest.approx(2e-3)
