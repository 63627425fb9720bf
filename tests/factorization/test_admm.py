"""The paper's algorithm from random starts: what it recovers, and that it never climbs."""

from dataclasses import replace

import numpy as np
import pytest
from small_models import all_subsets, cyclic, random_model, random_pmf, random_problem

import rejoint as rj
from rejoint.factorization import Admm, Limits, Newton, admm
from rejoint.factorization.table_policy import POLICY
from rejoint.metrics import factor_error, tensor_error
from rejoint.solver import run


def objectives(result):
    return np.array([record.objective for record in result.history])


def test_paper_setting_is_recovered_from_random_starts():
    # Table IV, F = 5. One model in ten has a class so rare that it takes more sweeps than fit
    # here, so it is the median that counts, as in the issue; 1e-6 is the paper's own figure.
    errors = []
    for seed in (1, 2, 3, 4, 6):
        truth = random_pmf(seed, [10] * 5, 5)
        tables = rj.Marginals.from_pmf(truth, order=3)
        result = rj.factorize(tables, 5, solver="admm", n_init=2, random_state=seed)
        assert {record.solver for record in result.history} == {"admm"}
        weights = np.abs(result.pmf.weights - truth.sorted().weights).max()
        errors.append((tensor_error(truth, result.pmf), factor_error(truth, result.pmf), weights))
    assert np.median(errors, axis=0).max() < 1e-6


@pytest.mark.parametrize("memory", [0, 3, 10])
def test_recovery_with_and_without_acceleration(memory):
    truth = random_pmf(2, [10] * 5, 5)
    tables = rj.Marginals.from_pmf(truth, order=3)
    solver = Admm(memory=memory)
    result = rj.factorize(tables, 5, solver=solver, n_init=1, random_state=2)
    assert tensor_error(truth, result.pmf) < 1e-8


def test_acceleration_saves_sweeps():
    truth = random_pmf(2, [10] * 5, 5)
    tables = rj.Marginals.from_pmf(truth, order=3)
    plain, mixed = (
        rj.factorize(tables, 5, solver=Admm(memory=memory), n_init=1, random_state=2)
        for memory in (0, 10)
    )
    # 709 sweeps against 93 when this was written.
    assert len(mixed.history) < 0.5 * len(plain.history)


@pytest.mark.parametrize("memory", [0, 10])
@pytest.mark.parametrize("inner", [1, 5, 10])
@pytest.mark.parametrize("seed", [0, 1])
def test_never_climbs_on_noisy_tables(seed, inner, memory):
    truth = random_pmf(seed, (4, 3, 5, 4), 3)
    tables = rj.Marginals.count(truth.sample(300, random_state=seed), order=3)
    limits = Limits(max_steps=80, progress=0.0)
    solver = Admm(inner=inner, memory=memory, limits=limits)
    result = rj.factorize(tables, 4, solver=solver, n_init=1, random_state=seed)
    falls = -np.diff(objectives(result))
    assert len(falls) > 70  # of 80: where rounding decides, a sweep may find no step before
    assert np.all(falls >= 0)  # exactly: that is what the safeguard is for
    assert falls[0] > 0


def test_never_climbs_with_moments_and_mixed_orders():
    subsets = ((0, 1), (1, 2, 3), (3, 4))
    problem = random_problem(0, (3, 2, 4, 3, 2), subsets, even=False, moments=[(1, 3), (2, 4)])
    start = random_model(1, problem.levels, 3)
    done = run(Admm(inner=5, limits=Limits(max_steps=60, progress=0.0)), problem, start)
    falls = -np.diff([record.objective for record in done.records])
    assert np.all(falls >= 0)
    # The moments are majorised: sweeps must come near what Newton finds, not only stand still.
    assert done.objective < 1.001 * run(Newton(), problem, start).objective


def test_accuracy_of_a_minimum_that_is_no_perfect_fit():
    # Two starts near each other end at the same minimum: a stalled one would not.
    problem = random_problem(4, (3, 4, 3, 2), all_subsets(4, 3))
    limits = Limits(max_steps=3000, progress=1e-12, window=50)
    ends = []
    for seed in (0, 1):
        start = random_model(5, problem.levels, 2)
        start.factors[:] = (
            0.95 * start.factors + 0.05 * random_model(seed, problem.levels, 2).factors
        )
        ends.append(run(Admm(limits=limits), problem, start).objective)
    assert ends[0] == pytest.approx(ends[1], rel=1e-6)


def test_sweeps_that_all_fail_are_told(monkeypatch):
    real = admm.sweep

    def worse(problem, state, inner):
        swept = real(problem, state, inner)
        turned = swept.model.factors[::-1].copy()
        return replace(
            swept, model=replace(swept.model, factors=turned)
        )  # columns still sum to one

    truth = random_pmf(3, [3] * 4, 2, least=0.2)
    tables = rj.Marginals.from_pmf(truth, order=3)
    start = rj.factorize(tables, 2, random_state=0).pmf
    start = rj.LowRankPMF(start.weights, [0.99 * a + 0.01 / 3 for a in start.factors])
    monkeypatch.setattr(admm, "sweep", worse)
    result = rj.factorize(tables, 2, solver=Admm(), start=start)
    assert "no step improves it further, although it may not be optimal" in result.stop
    assert "A larger inner= of Admm may improve it, or solver='newton'." in result.stop
    assert result.starts[0].stop == "stalled"
    assert len(result.history) == POLICY.patience


def test_partial_sets_of_triples():
    truth = random_pmf(3, [4] * 8, 2, least=0.2)
    tables = rj.Marginals.from_pmf(truth, subsets=cyclic(8))
    result = rj.factorize(tables, 2, solver="admm", n_init=3, random_state=0)
    assert tensor_error(truth, result.pmf) < 1e-6  # none of the joint's 4^8 cells was given


def test_zeros_are_reached_exactly():
    # Softmax coordinates only come near; projections arrive.
    eye = np.eye(3)
    truth = rj.LowRankPMF([0.5, 0.3, 0.2], [eye, eye, eye])
    tables = rj.Marginals.from_pmf(truth, order=3)
    result = rj.factorize(tables, 3, solver="admm", random_state=0)
    assert tensor_error(truth, result.pmf) < 1e-8
    # Of the 18 some may stand at the rounding of their column's sum.
    assert sum((a == 0).sum() for a in result.pmf.factors) >= 10
    assert sum((a < 1e-13).sum() for a in result.pmf.factors) == 18
