"""Ctrl-C anywhere in an estimate: the best so far comes back, says so, and nothing goes on."""

import numpy as np
import pytest

from rejoint import kernels
from rejoint.estimation import Bayes, Em, estimate
from rejoint.estimation.problem import RecordProblem

DATA = np.random.default_rng(0).integers(0, 2, (200, 4))


@pytest.fixture
def interrupt(monkeypatch):
    """Raise KeyboardInterrupt at the n-th call of a function; give the number of calls."""

    def at(holder, name, number):
        calls, real = [], getattr(holder, name)

        def wrapped(*args, **keywords):
            calls.append(1)
            if len(calls) == number:
                raise KeyboardInterrupt
            return real(*args, **keywords)

        monkeypatch.setattr(holder, name, wrapped)
        return calls

    return at


@pytest.mark.parametrize("solver", ["ml", "map", "bayes"])
def test_while_starts_are_explored(interrupt, solver):
    calls = interrupt(RecordProblem, "expect", 30)
    result = estimate(DATA, 2, solver, random_state=0)
    assert "interrupted; this is the best model so far" in result.stop
    assert result.posterior is None
    # What is found is looked at once more, for its likelihood; nothing else runs.
    assert len(calls) <= 31


def test_while_chains_run(interrupt):
    interrupt(kernels, "class_draws", 150)
    result = estimate(DATA, 2, "bayes", random_state=0)
    assert "interrupted" in result.stop
    assert 0 < len(result.posterior.draws) < 120


def test_before_the_first_draw_is_kept(interrupt):
    interrupt(kernels, "class_draws", 5)
    result = estimate(DATA, 2, "bayes", random_state=0)
    assert "interrupted" in result.stop
    assert result.posterior is None


def test_fractional_weights_count_in_chains():
    ones = np.zeros((400, 2), dtype=int)
    solver = Bayes(chains=1, burn_in=20, draws=200, thin=1)
    result = estimate(ones, 1, solver, sample_weight=np.full(400, 0.5), domain=None, random_state=0)
    assert result.pmf.rank == 1
    mixed = np.repeat([[0, 0], [1, 1]], [300, 100], axis=0)
    result = estimate(mixed, 1, solver, sample_weight=np.full(400, 0.4), random_state=0)
    low, high = result.posterior.interval("x0", level=0.98)
    # 160 records' worth: a standard deviation of about 0.034 around 0.75.
    assert low[0] < 0.75 < high[0]
    assert 0.1 < high[0] - low[0] < 0.25


def test_a_start_with_zeros_that_the_records_contradict():
    import rejoint as rj

    factors = [[[1, 1], [0, 0]]] + [[[0.3, 0.6], [0.7, 0.4]]] * 3
    start = rj.LowRankPMF([0.5, 0.5], factors)
    result = estimate(DATA, 2, Em(), start=start)
    assert np.isfinite(result.log_likelihood)
