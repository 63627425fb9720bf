"""Ctrl-C in the middle of a fit: FitInterrupted has the best result so far, which says so."""

import _thread
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from itertools import count

import numpy as np
import pytest
from small_records import interrupted, log_likelihood, ordinal, random_pmf, random_records

import rejoint as rj
from rejoint import kernels
from rejoint.estimation import Bayes, Em, Policy, Variational, smoothing, starts
from rejoint.estimation.data import InMemory, Parted
from rejoint.rank.curve import HeldOutSearch
from rejoint.solver import FitInterrupted, Limits

search = import_module("rejoint.solver.search")

SHAPE = (3, 3, 3, 3)
RECORDS = random_records(0, SHAPE, 300, rank=3, missing=0.1)
#: The short chains that show blocks come before anything that could be a result.
estimate = partial(rj.estimate, blocks=False)
TEXT = "interrupted; this is the best model so far"
SHORT = Bayes(chains=2, burn_in=10, draws=20, thin=1)  # draws 11 to 30 and 41 to 60 are kept


@pytest.fixture
def press(press_at):
    """Press Ctrl-C in the k-th pass over records in memory; returns the passes made."""
    return lambda k: press_at(InMemory, "expect", k)


# --- one model --------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["ml", "map", Variational()], ids=["ml", "map", "variational"])
@pytest.mark.parametrize("k", [9, 30])
def test_while_starts_are_explored(press, solver, k):
    press(k)
    result = interrupted(estimate, RECORDS, 3, solver, n_init=3, random_state=0)
    assert TEXT in result.stop
    assert result.interrupted
    exact = log_likelihood(result.pmf.to_dense(), RECORDS.codes)
    assert result.log_likelihood == pytest.approx(exact, rel=1e-10)


def test_in_the_first_step_the_result_is_the_start(press):
    start = random_pmf(1, SHAPE, 3)
    press(2)
    result = interrupted(estimate, RECORDS, 3, "ml", start=start)
    assert TEXT in result.stop
    assert result.pmf.equals(start, tol=1e-9)


@pytest.mark.parametrize("solver", ["ml", "map", "bayes"])
@pytest.mark.parametrize("k", [9, 40, 80])
def test_nothing_is_computed_afterwards(press, solver, k):
    calls = press(k)
    result = interrupted(estimate, RECORDS, 3, solver, n_init=4, random_state=0)
    assert TEXT in result.stop
    assert result.posterior is None
    # One more pass, for the likelihood of the result.
    assert len(calls) == k + 1


def test_later_is_better(press):
    start = random_pmf(1, SHAPE, 3)
    values = []
    for k in (2, 6, 12):
        press(k)
        result = interrupted(estimate, RECORDS, 3, Em(memory=0), start=start)
        values.append(result.log_likelihood)
    assert values[0] < values[1] < values[2]


def test_while_the_best_start_is_followed_to_the_end(press):
    start = random_pmf(1, SHAPE, 3)
    limits = Limits(max_steps=500, progress=0.0, exact=-1.0, residual=0.0)
    solver = Em(memory=0, limits=limits)
    calls = press(200)  # exploring takes 20 and 60 steps at the most
    result = interrupted(estimate, RECORDS, 3, solver, start=start)
    assert TEXT in result.stop
    # One more pass, for the likelihood of the result.
    assert len(calls) == 201
    assert result.history[-1].step > 60
    assert result.log_likelihood == pytest.approx(-result.history[-1].objective, rel=1e-10)


def test_a_start_that_never_began_leaves_those_before_it(press_at):
    press_at(starts, "random_model", 1)  # the second of four
    pairs = random_records(0, (3, 3), 100)
    result = interrupted(estimate, pairs, 2, "ml", n_init=4, random_state=0)
    assert TEXT in result.stop
    assert len(result.starts) == 1


@pytest.mark.parametrize(("k", "kept"), [(5, 0), (25, 14), (40, 20)])
def test_draws_so_far_are_kept(press_at, k, kept):
    calls = press_at(kernels, "class_draws", k)
    result = interrupted(estimate, RECORDS, 3, SHORT, random_state=0)
    assert TEXT in result.stop
    assert len(calls) == k
    draws = result.posterior.draws if result.posterior else ()
    assert len(draws) == kept
    told = f"after {kept} posterior draws" if kept else "before there were posterior draws"
    assert f"Interrupted {told}." in result.stop  # as of records that are read part by part


def test_after_the_chains_all_draws_are_kept(monkeypatch):
    """Passes that finish the answer come after the chains."""
    real, pressed = InMemory.draw, []

    def draw(self, *args):
        pressed.append(1)
        if len(pressed) == 60:  # the last sweep of the last chain

            def expect(*_):
                monkeypatch.setattr(InMemory, "expect", before)
                raise KeyboardInterrupt

            before = InMemory.expect
            monkeypatch.setattr(InMemory, "expect", expect)
        return real(self, *args)

    monkeypatch.setattr(InMemory, "draw", draw)
    result = interrupted(estimate, RECORDS, 3, SHORT, random_state=0)
    assert TEXT in result.stop
    assert len(result.posterior.draws) == len(result.pmf.draws) == 40


# --- what Ctrl-C does ---------------------------------------------------------------------------


def test_before_anything_is_found_a_plain_interrupt_is_raised(press):
    press(1)
    with pytest.raises(KeyboardInterrupt) as caught:
        estimate(RECORDS, 3, "ml", start=random_pmf(1, SHAPE, 3))
    assert not isinstance(caught.value, FitInterrupted)


def test_before_anything_is_found_return_raises_too(press):
    press(1)
    with pytest.raises(KeyboardInterrupt) as caught:
        estimate(RECORDS, 3, "ml", start=random_pmf(1, SHAPE, 3), on_interrupt="return")
    assert not isinstance(caught.value, FitInterrupted)


def test_the_exception_is_an_interrupt_that_names_its_result(press):
    press(30)
    with pytest.raises(KeyboardInterrupt, match=r"\.result has the best fit so far") as caught:
        estimate(RECORDS, 3, "ml", random_state=0)
    assert isinstance(caught.value, FitInterrupted)
    assert caught.value.result.pmf.rank <= 3


def test_return_gives_the_result_of_the_exception(press):
    results = []
    press(30)
    results.append(interrupted(estimate, RECORDS, 3, "ml", random_state=0))
    press(30)
    results.append(estimate(RECORDS, 3, "ml", random_state=0, on_interrupt="return"))
    assert results[0].pmf == results[1].pmf
    assert results[0].stop == results[1].stop


@pytest.mark.parametrize("fit", [estimate, rj.rank.select])
def test_other_values_of_on_interrupt_are_errors(fit):
    with pytest.raises(ValueError, match="on_interrupt must be 'raise' or 'return', got 'stop'"):
        fit(RECORDS, on_interrupt="stop")


@pytest.mark.parametrize("solver", ["ml", "map", SHORT], ids=["ml", "map", "bayes"])
def test_the_result_knows_its_choice_and_policy(press, solver):
    policy = Policy(growth_steps=3)
    press(30)
    result = interrupted(estimate, RECORDS, 3, solver, random_state=0, policy=policy)
    assert result.choice.endswith("was requested.")
    assert result.policy == Policy(growth_steps=3, blocks=False)


# --- the way to the fit -------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["ml", "bayes"])
def test_while_the_rank_is_chosen(press_at, solver):
    press_at(HeldOutSearch, "fit", 3)
    data = rj.datasets.asia().sample(300, random_state=0)
    result = interrupted(estimate, data, solver=solver, random_state=0)
    assert result.selection.interrupted
    assert result.selection.ranks == (1, 2)
    assert result.pmf.rank == result.selection.pmf.rank
    assert TEXT in result.stop
    assert result.choice == result.selection.words
    assert "The search was interrupted" in result.choice
    exact = float(result.pmf.log_prob(data).sum())
    assert result.log_likelihood == pytest.approx(exact, rel=1e-10)


def test_before_the_first_rank_is_scored_a_plain_interrupt_is_raised(press_at):
    press_at(HeldOutSearch, "fit", 1)
    with pytest.raises(KeyboardInterrupt) as caught:
        estimate(RECORDS, solver="ml", random_state=0)
    assert not isinstance(caught.value, FitInterrupted)


def test_after_the_rank_is_chosen_its_fit_is_the_result(press_at):
    """Before the first start has made a step."""
    press_at(starts, "given_model", 1)
    result = interrupted(estimate, RECORDS, solver="ml", n_init=2, random_state=0)
    assert not result.selection.interrupted
    assert 1 < result.pmf.rank <= result.selection.rank
    assert result.choice == result.selection.words
    assert "interrupted" not in result.choice
    assert TEXT in result.stop


@pytest.mark.parametrize("rank", [2, "auto"])
def test_before_the_first_smooth_fit_a_plain_interrupt_is_raised(press_at, rank):
    press_at(smoothing, "brief_fit", 1)
    records = rj.Records(ordinal(RECORDS.domain), RECORDS.codes)
    with pytest.raises(KeyboardInterrupt) as caught:
        estimate(records, rank, "map", smooth=True, random_state=0)
    assert not isinstance(caught.value, FitInterrupted)


# --- ranks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["heldout", "bic", "evidence"])
def test_selections_keep_the_ranks_scored(press, criterion):
    press(200)
    found = interrupted(rj.rank.select, RECORDS, criterion=criterion, random_state=0)
    assert found.interrupted
    assert found.rank in found.ranks
    assert "The search was interrupted" in found.words
    press(200)
    options = {"criterion": criterion, "random_state": 0, "on_interrupt": "return"}
    same = rj.rank.select(RECORDS, **options)
    np.testing.assert_array_equal(same.scores, found.scores)


# --- streamed passes ----------------------------------------------------------------------------


def scan():
    return rj.scan(RECORDS, size=50, memory=0)


@pytest.mark.parametrize("solver", ["ml", "map", "bayes", Variational()], ids=str)
def test_in_the_sample_of_a_streamed_fit(press, solver):
    press(40)
    result = interrupted(estimate, scan(), 3, solver, n_init=3, random_state=0)
    assert result.interrupted
    assert result.stop == "Interrupted; this is a fit to a sample, 300 of 300 records."
    assert np.isnan(result.log_likelihood)


@pytest.mark.parametrize("solver", ["ml", "map", "bayes", Variational()], ids=str)
@pytest.mark.parametrize("k", [1, 3])
def test_in_a_streamed_pass(press_at, solver, k):
    press_at(Parted, "expect", k)
    result = interrupted(estimate, scan(), 3, solver, n_init=3, random_state=0)
    assert result.interrupted
    if k == 1:
        assert result.stop == "Interrupted; this is a fit to a sample, 300 of 300 records."
    else:
        assert TEXT in result.stop
        exact = log_likelihood(result.pmf.to_dense(), RECORDS.codes)
        assert result.log_likelihood == pytest.approx(exact, rel=1e-10)


def test_in_the_first_streamed_pass_from_a_given_start_a_plain_interrupt_is_raised(press_at):
    press_at(Parted, "expect", 1)
    with pytest.raises(KeyboardInterrupt) as caught:
        estimate(scan(), 3, "ml", start=random_pmf(1, SHAPE, 3))
    assert not isinstance(caught.value, FitInterrupted)


def test_streamed_fits_return_it_where_asked(press_at):
    press_at(Parted, "expect", 3)
    result = estimate(scan(), 3, "ml", n_init=3, random_state=0, on_interrupt="return")
    assert TEXT in result.stop


def test_in_the_first_look_a_plain_interrupt_is_raised(press_at):
    press_at(rj.Scan, "map", 1)
    with pytest.raises(KeyboardInterrupt) as caught:
        estimate(scan(), 3, "ml")
    assert not isinstance(caught.value, FitInterrupted)


# --- checkpoints --------------------------------------------------------------------------------


@pytest.mark.parametrize("on_interrupt", ["raise", "return"])
@pytest.mark.parametrize("k", [1, 30, 120])
def test_a_checkpoint_resumes_what_was_interrupted(press, tmp_path, k, on_interrupt):
    options = {"rank": 3, "solver": "ml", "n_init": 3, "random_state": 0}
    expected = estimate(RECORDS, **options)
    options |= {"checkpoint": tmp_path / "fit.checkpoint", "on_interrupt": on_interrupt}
    press(k)
    if on_interrupt == "return" and k > 1:
        assert estimate(RECORDS, **options).interrupted
    else:
        with pytest.raises(KeyboardInterrupt) as caught:
            estimate(RECORDS, **options)
        assert isinstance(caught.value, FitInterrupted) == (k > 1)
    assert options["checkpoint"].exists()
    press(10**9)
    result = estimate(RECORDS, **options)
    assert not result.interrupted
    assert result.pmf == expected.pmf
    assert result.stop == expected.stop


# --- threads ------------------------------------------------------------------------------------

THREADED = Policy(threaded_pass=(0, 10**9))


@pytest.fixture
def two_threads(monkeypatch):
    """Two starts at a time, with ``policy=THREADED`` on small records too."""
    monkeypatch.setattr(kernels, "available_threads", lambda: 2)


@pytest.mark.parametrize("solver", ["ml", "map", "bayes"])
@pytest.mark.parametrize("k", [60, 120, 250])  # by 60 the first start has begun
@pytest.mark.usefixtures("two_threads")
def test_all_threads_stop(press, solver, k):
    calls = press(k)
    options = {"n_init": 8, "random_state": 0, "policy": THREADED}
    result = interrupted(estimate, RECORDS, 3, solver, **options)
    assert TEXT in result.stop
    exact = log_likelihood(result.pmf.to_dense(), RECORDS.codes)
    assert result.log_likelihood == pytest.approx(exact, rel=1e-10)
    best = max(-run.objective for run in result.starts)
    if solver == "ml":  # classes that differ by no more than 1e-6 are merged
        assert result.log_likelihood == pytest.approx(best, abs=1e-3)
    # The other thread may end the step (four passes at most), or the start, that it is making.
    assert len(calls) <= k + 30


@pytest.mark.usefixtures("two_threads")
def test_the_signal_itself_ends_all_threads(monkeypatch):
    """The main thread waits for the others when Ctrl-C comes."""
    real, steps = Em.step, count()

    def step(self, problem, state):
        # Where a start is followed, and not only made.
        if self.limits is limits and next(steps) == 50:
            _thread.interrupt_main()
        return real(self, problem, state)

    monkeypatch.setattr(Em, "step", step)
    limits = Limits(max_steps=10**6, progress=0.0, window=10**6, exact=-1.0, residual=0.0)
    policy = Policy(threaded_pass=(0, 10**9), explore=limits)  # no start ends by itself
    # A process in the background may have been started with Ctrl-C ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = interrupted(estimate, RECORDS, 3, "ml", n_init=4, random_state=0, policy=policy)
    finally:
        signal.signal(signal.SIGINT, before)
    assert TEXT in result.stop


@pytest.mark.parametrize("with_checkpoint", [False, True])
def test_starts_that_an_executor_has_finished_are_kept(monkeypatch, tmp_path, with_checkpoint):
    def wait_for_one(futures, *_):
        futures[0].result()
        raise KeyboardInterrupt

    options = {"n_init": 6, "random_state": 0}
    expected = estimate(RECORDS, 3, "ml", **options)
    if with_checkpoint:
        options["checkpoint"] = tmp_path / "fit.checkpoint"
    with monkeypatch.context() as patch, ThreadPoolExecutor(1) as executor:
        patch.setattr(search, "wait", wait_for_one)
        result = interrupted(estimate, RECORDS, 3, "ml", **options, executor=executor)
    assert TEXT in result.stop
    assert 1 <= len(result.starts) < 6
    with ThreadPoolExecutor(1) as executor:
        again = estimate(RECORDS, 3, "ml", **options, executor=executor)
    assert again.pmf == expected.pmf
    assert again.stop == expected.stop


def test_constant_columns_have_no_parameters():
    assert estimate([[1, 2, 3]] * 3, 1, random_state=0).pmf.rank == 1
