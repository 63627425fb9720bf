"""Ctrl-C in the middle of a fit returns the best model so far, and says so."""

import signal
from dataclasses import replace
from itertools import count

import pytest
from small_records import log_likelihood, random_pmf, random_records

from rejoint import kernels
from rejoint.estimation import Bayes, Em, estimate, starts
from rejoint.estimation import explore as exploring
from rejoint.estimation.data import RecordProblem
from rejoint.solver import Limits

SHAPE = (3, 3, 3, 3)
RECORDS = random_records(0, SHAPE, 300, rank=3, missing=0.1)
WORDS = "interrupted; this is the best model so far"


@pytest.fixture
def press(monkeypatch):
    """Ctrl-C in the k-th pass over the records; the passes are counted."""

    def at(k):
        real, calls = RecordProblem.seen, []

        def seen(self, *model):
            calls.append(1)
            if len(calls) == k:
                raise KeyboardInterrupt
            return real(self, *model)

        monkeypatch.setattr(RecordProblem, "seen", seen)
        return calls

    return at


@pytest.mark.parametrize("solver", ["ml", "map"])
@pytest.mark.parametrize("k", [5, 30])
def test_while_starts_are_explored(press, solver, k):
    press(k)
    result = estimate(RECORDS, 3, solver, n_init=3, random_state=0)
    assert WORDS in result.stop
    exact = log_likelihood(result.pmf.to_dense(), RECORDS.codes)
    assert result.log_likelihood == pytest.approx(exact, rel=1e-10)


def test_in_the_first_step_the_start_is_returned(press):
    start = random_pmf(1, SHAPE, 3)
    press(2)
    result = estimate(RECORDS, 3, "ml", start=start)
    assert WORDS in result.stop
    assert result.pmf.equals(start, tol=1e-9)


@pytest.mark.parametrize("solver", ["ml", "map", "bayes"])
@pytest.mark.parametrize("k", [6, 40, 80])
def test_nothing_goes_on_afterwards(press, solver, k):
    calls = press(k)
    result = estimate(RECORDS, 3, solver, n_init=4, random_state=0)
    assert WORDS in result.stop
    assert result.posterior is None
    # One pass more, for the likelihood of what is returned.
    assert len(calls) == k + 1


def test_later_is_better(press):
    start = random_pmf(1, SHAPE, 3)
    values = []
    for k in (2, 6, 12):
        press(k)
        values.append(estimate(RECORDS, 3, Em(memory=0), start=start).log_likelihood)
    assert values[0] < values[1] < values[2]


def test_while_the_best_start_is_followed_to_the_end(press):
    start = random_pmf(1, SHAPE, 3)
    limits = Limits(max_steps=500, progress=0.0, exact=-1.0, residual=0.0)
    solver = Em(memory=0, limits=limits)
    calls = press(200)  # exploring takes 60 steps at the most
    result = estimate(RECORDS, 3, solver, start=start)
    assert WORDS in result.stop
    # Nothing goes on: one pass more, for the likelihood of what is returned.
    assert len(calls) == 201
    assert result.history[-1].step > 60


def test_a_start_that_never_began_leaves_those_before_it(monkeypatch):
    def random_model(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(starts, "random_model", random_model)  # the second of three
    pairs = random_records(0, (3, 3), 100)  # of two variables there are no triples to start from
    result = estimate(pairs, 2, "ml", n_init=3, random_state=0)
    assert WORDS in result.stop
    assert len(result.starts) == 1


@pytest.mark.parametrize(("k", "kept"), [(5, 0), (25, 14), (40, 20)])
def test_draws_that_are_there_are_kept(press_at, k, kept):
    calls = press_at(kernels, "class_draws", k)
    solver = Bayes(chains=2, burn_in=10, draws=20, thin=1)  # draws 11 to 30 and 41 to 60 count
    result = estimate(RECORDS, 3, solver, random_state=0)
    assert WORDS in result.stop
    assert len(calls) == k
    draws = result.posterior.draws if result.posterior else ()
    assert len(draws) == kept


@pytest.fixture
def two_threads(monkeypatch):
    """Starts side by side, on small records too."""
    monkeypatch.setattr(exploring, "SMALLEST", 0)
    monkeypatch.setattr(kernels, "available_threads", lambda: 2)


@pytest.mark.parametrize("solver", ["ml", "map", "bayes"])
@pytest.mark.parametrize("k", [60, 120, 250])  # by 60 the first start has begun
@pytest.mark.usefixtures("two_threads")
def test_side_by_side_all_stop(press, solver, k):
    calls = press(k)
    result = estimate(RECORDS, 3, solver, n_init=8, random_state=0)
    assert WORDS in result.stop
    exact = log_likelihood(result.pmf.to_dense(), RECORDS.codes)
    assert result.log_likelihood == pytest.approx(exact, rel=1e-10)
    best = max(-run.objective for run in result.starts)
    if solver == "ml":  # tidying joins classes that differ by no more than 1e-6
        assert result.log_likelihood == pytest.approx(best, abs=1e-3)
    # The other thread may end the step (four passes at most), or the start, that it is making.
    assert len(calls) <= k + 30


@pytest.mark.usefixtures("two_threads")
def test_the_signal_itself_ends_what_runs_side_by_side(monkeypatch):
    """The main thread waits for the workers when Ctrl-C comes."""
    import _thread
    import threading

    real, steps, begun = Em.step, count(), threading.Event()

    def step(self, problem, state):
        if self.limits is limits:  # a start is being followed, not only made
            if threading.current_thread() is threading.main_thread():
                begun.set()
            elif begun.wait(60) and next(steps) == 50:
                _thread.interrupt_main()
        return real(self, problem, state)

    monkeypatch.setattr(Em, "step", step)
    limits = Limits(max_steps=10**6, progress=0.0, window=10**6, exact=-1.0, residual=0.0)
    monkeypatch.setattr(exploring, "EXPLORE", limits)  # no start ends by itself
    # A process in the background may have been started deaf to Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = estimate(RECORDS, 3, "ml", n_init=4, random_state=0)
    finally:
        signal.signal(signal.SIGINT, before)
    assert WORDS in result.stop


def test_before_anything_is_there_nothing_is_returned(press):
    press(1)
    with pytest.raises(KeyboardInterrupt):
        estimate(RECORDS, 3, "ml", start=random_pmf(1, SHAPE, 3))


def test_while_the_rank_is_chosen(monkeypatch):
    import rejoint as rj

    data = rj.datasets.asia().sample(300, random_state=0)
    real = rj.rank.select(data, ranks=[1, 2], random_state=0)
    monkeypatch.setattr(rj.rank, "select", lambda *_, **__: replace(real, interrupted=True))
    result = estimate(data, random_state=0)
    assert result.pmf.rank == real.pmf.rank
    assert "interrupted; this is the best model so far" in result.stop
    assert result.choice == real.words


def test_constant_columns_have_no_parameters():
    assert estimate([[1, 2, 3]] * 3, 1, random_state=0).pmf.rank == 1
