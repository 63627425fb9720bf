"""A user's own solver: any object with name, limits, init and step."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest
from small_records import interrupted, log_likelihood, ordinal, random_pmf, random_records

import rejoint as rj
from rejoint import kernels
from rejoint.estimation import Em, Policy, estimate
from rejoint.estimation.em import rescale
from rejoint.solver import Limits

SHAPE = (3, 3, 3, 3)
RECORDS = random_records(0, SHAPE, 300, rank=3, missing=0.1)
LIMITS = Limits(max_steps=300, progress=1e-9, window=10, exact=-1.0)
EM = Em(memory=0, limits=LIMITS)


class PlainEm:
    """EM without a base class, and not a dataclass."""

    name = "plain EM"

    def __init__(self, limits=LIMITS):
        self.limits = limits

    def init(self, problem, model):
        found = problem.expect(model)
        return SimpleNamespace(
            model=model, objective=-found.log_likelihood, residual=np.inf, counts=found.counts
        )

    def step(self, problem, state):
        return self.init(problem, rescale(problem.layout, state.counts))


class FixedLimits(PlainEm):
    """Its limits cannot be set."""

    def __init__(self):
        pass

    @property
    def limits(self):
        return LIMITS


class ClassLimits(PlainEm):
    """Its limits are those of the class."""

    limits = LIMITS

    def __init__(self):
        pass


@dataclass(frozen=True)
class DataclassSolver(PlainEm):
    """A dataclass with limits among its fields."""

    limits: Limits = LIMITS


@dataclass(frozen=True)
class DataclassWithoutLimits(PlainEm):
    """A dataclass whose limits are no field."""

    limits = LIMITS


@dataclass(frozen=True)
class DataclassWithSetLimits(PlainEm):
    """A dataclass whose limits are no argument."""

    limits: Limits = field(default=LIMITS, init=False)


SOLVERS = [
    PlainEm,
    FixedLimits,
    ClassLimits,
    DataclassSolver,
    DataclassWithoutLimits,
    DataclassWithSetLimits,
]


@pytest.mark.parametrize("kind", SOLVERS)
def test_in_memory_it_does_what_em_does(kind):
    start = random_pmf(1, SHAPE, 3)
    mine, other = (estimate(RECORDS, 3, solver, start=start) for solver in (kind(), EM))
    assert mine.choice == f"{kind.__name__} was requested."
    assert {record.solver for record in mine.history} == {"plain EM"}
    # Exploring ends earlier where limits can be set; the end is the same.
    assert mine.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-4)
    exact = log_likelihood(mine.pmf.to_dense(), RECORDS.codes)
    assert mine.log_likelihood == pytest.approx(exact, rel=1e-10)
    if kind is PlainEm:
        assert mine.pmf.equals(other.pmf, tol=1e-9)
        assert len(mine.history) == len(other.history)


def test_starts_are_explored_with_the_limits_of_the_policy():
    """All for a while, the best to the end."""
    policy = Policy(explore=Limits(max_steps=5, progress=0.0, exact=-1.0))
    result = estimate(RECORDS, 3, PlainEm(), n_init=12, random_state=0, policy=policy)
    lengths = sorted(len(run.records) for run in result.starts)
    assert lengths[0] == 6  # the start itself and five steps
    assert lengths[-1] > 14


def test_the_solver_given_is_not_changed():
    solver = PlainEm()
    estimate(RECORDS, 2, solver, n_init=2, random_state=0)
    assert solver.limits is LIMITS


def test_as_good_as_ml():
    own, ml = (estimate(RECORDS, 3, s, n_init=8, random_state=0) for s in (PlainEm(), "ml"))
    assert own.log_likelihood == pytest.approx(ml.log_likelihood, abs=0.5)


def test_beyond_memory():
    scan = rj.scan(RECORDS, size=50, memory=0)
    mine, other = (
        estimate(scan, 3, solver, n_init=3, random_state=0) for solver in (PlainEm(), EM)
    )
    assert {record.solver for record in mine.history} == {"plain EM"}
    assert mine.pmf.equals(other.pmf, tol=1e-9)
    assert mine.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-12)
    assert "of 300 records after" in mine.stop


def test_beyond_memory_from_a_given_start():
    scan, start = rj.scan(RECORDS, size=50, memory=0), random_pmf(1, SHAPE, 3)
    mine, other = (estimate(scan, 3, solver, start=start) for solver in (PlainEm(), EM))
    assert mine.pmf.equals(other.pmf, tol=1e-9)


@pytest.mark.parametrize("memory", [0, 2**26])
def test_smooth_columns(memory):
    scan = rj.scan(rj.Records(ordinal(RECORDS.domain), RECORDS.codes), size=50, memory=memory)
    result = estimate(scan, 2, PlainEm(), smooth=True, n_init=2, random_state=0)
    assert "Smoothed columns" in result.choice
    exact = log_likelihood(result.pmf.to_dense(), RECORDS.codes)
    assert result.log_likelihood == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("kind", SOLVERS)
@pytest.mark.parametrize("criterion", ["heldout", "bic"])
def test_ranks(kind, criterion):
    rng = np.random.default_rng(5)
    factors = [rng.dirichlet(np.ones(4), size=3).T for _ in range(6)]
    records = rj.LowRankPMF([0.5, 0.3, 0.2], factors).sample(1000, random_state=1)
    options = {"criterion": criterion, "folds": 2, "random_state": 0}
    found = rj.rank.select(records, [1, 2, 3], solver=kind(), **options)
    assert found.rank == 3


def test_ranks_are_scored_as_by_em():
    found = [
        rj.rank.select(RECORDS, [1, 2], solver=solver, folds=2, random_state=0)
        for solver in (PlainEm(), EM)
    ]
    np.testing.assert_allclose(found[0].scores, found[1].scores, rtol=1e-9)


def test_the_rank_of_an_estimate():
    result = estimate(RECORDS, solver=PlainEm(), n_init=2, random_state=0)
    assert result.selection.rank >= result.pmf.rank
    assert result.choice.endswith("PlainEm was requested.")


def test_on_an_executor():
    options = {"n_init": 3, "random_state": 0}
    expected = estimate(RECORDS, 3, PlainEm(), **options)
    with ThreadPoolExecutor(2) as executor:
        found = estimate(RECORDS, 3, PlainEm(), **options, executor=executor)
    assert found.pmf == expected.pmf


@pytest.mark.parametrize("streamed", [False, True])
def test_ctrl_c(press_at, streamed):
    data = rj.scan(RECORDS, size=50, memory=0) if streamed else RECORDS
    start = random_pmf(1, SHAPE, 3)
    press_at(PlainEm, "step", 20)
    result = interrupted(estimate, data, 3, PlainEm(), start=start)
    assert "interrupted; this is the best model so far" in result.stop
    assert len(result.history) == 20
    assert result.log_likelihood == pytest.approx(-result.history[-1].objective, rel=1e-10)


@pytest.mark.parametrize("kind", SOLVERS)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_checkpoint_resumes_it(tmp_path, press_at, kind, streamed):
    """With another object of the same class and values, as another process has it."""
    data = rj.scan(RECORDS, size=50, memory=0) if streamed else RECORDS
    options = {"rank": 3, "n_init": 3, "random_state": 0}
    expected = estimate(data, solver=kind(), **options)
    options["checkpoint"] = tmp_path / "fit.checkpoint"
    calls = press_at(kernels, "class_pass", 10**9)
    interrupted_at = 3 * len(estimate(data, solver=kind(), **options).history) // 4
    first = len(calls)
    options["checkpoint"] = tmp_path / "other.checkpoint"
    press_at(kernels, "class_pass", interrupted_at)
    interrupted(estimate, data, solver=kind(), **options)
    calls = press_at(kernels, "class_pass", 10**9)
    result = estimate(data, solver=kind(), **options)
    assert result.pmf == expected.pmf
    assert result.stop == expected.stop
    assert len(calls) < first  # what is in the checkpoint is not computed again


def test_another_solver_of_the_same_class_is_another_fit(tmp_path):
    path = tmp_path / "fit.checkpoint"
    options = {"rank": 2, "n_init": 1, "random_state": 0, "checkpoint": path}
    estimate(RECORDS, solver=PlainEm(), **options)
    other = PlainEm(replace(LIMITS, max_steps=5))
    with pytest.raises(ValueError, match="another fit: its solver is"):
        estimate(RECORDS, solver=other, **options)


class NeedsTables(PlainEm):
    """A solver for tables."""

    needs = ("tables",)


def test_missing_needs_are_named():
    with pytest.raises(ValueError, match=r"solver='plain EM' needs tables, which InMemory does"):
        estimate(RECORDS, 2, NeedsTables(), random_state=0)


@pytest.mark.parametrize("part", ["name", "limits", "init", "step"])
def test_objects_without_a_part_of_a_solver_are_errors(part):
    parts = {"name": "x", "limits": LIMITS, "init": print, "step": print}
    del parts[part]
    with pytest.raises(ValueError, match="is not supported; use 'auto'"):
        estimate(RECORDS, 2, SimpleNamespace(**parts))
    with pytest.raises(ValueError, match="cannot score ranks; give 'map', 'ml', or an object"):
        rj.rank.select(RECORDS, solver=SimpleNamespace(**parts))
