"""What factorize says of a fit: why it stopped, history, starts, misfits; Ctrl-C; progress."""

import io
import sys
from dataclasses import FrozenInstanceError, dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest
import threadpoolctl
from small_models import random_pmf

import rejoint as rj
from rejoint.factorization import Admm, Algebraic, Kl, Limits, Newton, Smooth
from rejoint.factorization.loss import KL
from rejoint.factorization.problem import make_problem
from rejoint.factorization.table_policy import POLICY
from rejoint.messages import Progress
from rejoint.model import Model
from rejoint.solver import FitInterrupted


@pytest.fixture(name="truth")
def _truth():
    return random_pmf(0, (3, 4, 3, 2), 2, least=0.2)


@pytest.fixture(name="tables")
def _tables(truth):
    return rj.Marginals.from_pmf(truth, order=3)


@pytest.fixture(name="noisy")
def _noisy(truth):
    return rj.Marginals.count(truth.sample(500, random_state=0), order=3)


# --- in words -----------------------------------------------------------------------------------


def test_an_exact_fit_says_so(tables):
    for solver in ("auto", "newton"):
        result = rj.factorize(tables, 2, solver=solver, random_state=0)
        assert result.stop.startswith("The tables are met exactly: relative error ")
        assert " from 1 start; the fit is exact" in result.stop
        assert result.error < 1e-10


def test_lack_of_progress_says_what_may_be_left(noisy):
    result = rj.factorize(noisy, 2, random_state=0)
    assert f"relative error of {result.error:.2g} after" in result.stop
    assert "it has stopped improving (residual " in result.stop
    assert (
        "sampling noise, tables that disagree, a rank above 2, or a local minimum." in result.stop
    )


def test_the_limit_of_steps_says_what_to_raise(noisy):
    solver = Admm(limits=Limits(max_steps=2))
    result = rj.factorize(noisy, 2, solver=solver, n_init=1, random_state=0)
    assert "after 2 steps from 1 start; the limit of steps was reached" in result.stop
    assert "raise max_steps" in result.stop
    assert "sampling noise" not in result.stop  # nobody can know yet


def test_the_residual_is_said_beside_the_objective(noisy):
    result = rj.factorize(noisy, 2, solver="newton", random_state=0)
    assert f"(residual {result.residual:.1e})" in result.stop


# --- Ctrl-C -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Impatient:
    """ADMM under a user who presses Ctrl-C in the given step of the given start."""

    step_of: int
    start_of: int = 0
    limits: Limits = field(default=Limits(max_steps=8, progress=0.0))
    name: str = "impatient"
    calls: list = field(default_factory=list)

    def init(self, problem, model):
        self.calls.append(0)
        return Admm().init(problem, model)

    def step(self, problem, state):
        self.calls[-1] += 1
        if len(self.calls) == self.start_of + 1 and self.calls[-1] == self.step_of:
            raise KeyboardInterrupt
        return Admm(inner=1, memory=0).step(problem, state)


def test_ctrl_c_returns_the_best_model_so_far(noisy):
    asked = {"solver": Impatient(step_of=4), "random_state": 0}
    with pytest.raises(FitInterrupted) as pressed:
        rj.factorize(noisy, 2, **asked)
    result = pressed.value.result
    returned = rj.factorize(noisy, 2, **asked | {"solver": Impatient(4)}, on_interrupt="return")
    assert returned.stop == result.stop
    assert result.interrupted
    assert "after 3 steps from 1 start; interrupted; this is the best model so far" in result.stop
    assert len(result.starts) == 1  # no restart after that
    assert result.history[-1].objective < result.history[0].objective
    assert result.starts[0].objective == result.history[-1].objective


def test_ctrl_c_in_a_later_start_keeps_the_best_of_all(noisy):
    solver = Impatient(step_of=1, start_of=1)
    result = rj.factorize(noisy, 2, solver=solver, n_init=5, random_state=0, on_interrupt="return")
    assert [run.stop for run in result.starts] == ["steps", "interrupted"]
    assert "from 2 starts; interrupted" in result.stop
    # The second start did not get anywhere, so that the first is the best.
    assert result.error == result.starts[0].error < result.starts[1].error


def interrupt(*_):
    raise KeyboardInterrupt


def test_ctrl_c_during_the_algebraic_start(noisy, monkeypatch):
    monkeypatch.setattr(Algebraic, "step", interrupt)
    result = rj.factorize(noisy, 2, random_state=0, on_interrupt="return")
    assert "interrupted; this is the best model so far" in result.stop
    assert {record.solver for record in result.history} == {"algebraic"}


def test_ctrl_c_between_stages_keeps_what_the_first_found(noisy, monkeypatch):
    monkeypatch.setattr(Newton, "init", interrupt)
    result = rj.factorize(noisy, 2, start="random", random_state=0, on_interrupt="return")
    assert "interrupted; this is the best model so far" in result.stop
    assert {record.solver for record in result.history} == {"admm"}
    assert result.error == result.starts[0].error


def test_ctrl_c_before_there_is_any_model_is_ctrl_c(noisy, monkeypatch):
    monkeypatch.setattr(Admm, "init", interrupt)
    with pytest.raises(KeyboardInterrupt):
        rj.factorize(noisy, 2, solver="admm", random_state=0)


def press_in(monkeypatch, kind, call):
    """Ctrl-C in one of the calls of a solver's step."""
    real, calls = kind.step, []

    def step(self, problem, state):
        calls.append(problem)
        if len(calls) == call:
            raise KeyboardInterrupt
        return real(self, problem, state)

    monkeypatch.setattr(kind, "step", step)


@pytest.fixture(name="held_back")
def _held_back():
    tables = {("a", "b"): [[30.0, float("nan")], [20.0, 40.0]], ("a",): [0.4, 0.6]}
    return rj.Marginals.from_tables(tables, suppressed=(0, float("inf")))


def test_ctrl_c_in_a_round_of_filling_keeps_the_rounds_before(held_back, monkeypatch):
    whole = rj.factorize(held_back, 2, "kl", start="random", n_init=1, random_state=0)
    first = next(k for k, r in enumerate(whole.history) if k and r.step == 0)
    press_in(monkeypatch, Kl, first + 2)  # within the second round
    asked = {"start": "random", "n_init": 1, "random_state": 0, "on_interrupt": "return"}
    result = rj.factorize(held_back, 2, "kl", **asked)
    assert result.interrupted
    assert "interrupted" in result.stop
    assert len(result.starts) == 1
    steps = [(r.step, r.objective) for r in whole.history[:first]]
    assert [(r.step, r.objective) for r in result.history[:first]] == steps
    assert len(result.history) > first


def test_ctrl_c_in_a_member_averages_those_so_far(noisy, monkeypatch):
    press_in(monkeypatch, Kl, 15)
    smooth = {"solver": Smooth(members=3, max_steps=10), "random_state": 0}
    result = rj.factorize(noisy, 4, **smooth, on_interrupt="return")
    assert result.interrupted
    assert len(result.starts) == 2
    assert result.pmf.rank == 8


def test_ctrl_c_under_another_loss_compares_runs_by_that_loss(noisy, monkeypatch):
    press_in(monkeypatch, Newton, 3)  # while the second start is still under squares
    result = rj.factorize(noisy, 2, "kl", random_state=0, on_interrupt="return")
    problem = make_problem(noisy, "equal", KL)
    for run in result.starts:
        assert run.objective == pytest.approx(problem.value(run.model), rel=1e-9)


# --- a solver of one's own -----------------------------------------------------------------------


class Halving:
    """A solver without base class or dataclass: half the way to a sweep of ADMM, ten times."""

    name, limits = "halving", Limits(max_steps=10, progress=0.0)

    def init(self, problem, model):
        return SimpleNamespace(model=model, objective=problem.value(model), residual=1.0)

    def step(self, problem, state):
        swept = Admm().step(problem, Admm().init(problem, state.model)).model
        half = Model.from_stacked(problem.layout, (state.model.stacked + swept.stacked) / 2)
        return SimpleNamespace(model=half, objective=problem.value(half), residual=1.0)


def test_a_solver_of_one_s_own_plugs_in(noisy):
    result = rj.factorize(noisy, 2, Halving(), n_init=2, random_state=0)
    assert {record.solver for record in result.history} == {"halving"}
    assert len(result.history) == 22
    assert result.error < 0.5


def test_blas_is_held_to_one_thread(noisy):
    # Several threads on busy cores cost ten times the CPU: 33 s in place of 3 for one table.
    def threads():
        found = threadpoolctl.threadpool_info()
        return {lib["num_threads"] for lib in found if lib["user_api"] == "blas"}

    seen = []

    class Watching(Halving):
        def step(self, problem, state):
            seen.append(threads())
            return super().step(problem, state)

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        rj.factorize(noisy, 2, Watching(), n_init=1, random_state=0)
        assert threads() == {2}
    assert seen
    assert all(found == {1} for found in seen)


# --- history, starts, misfits -------------------------------------------------------------------


def test_history_holds_every_step_of_every_start(noisy):
    limits = Limits(max_steps=4, progress=0.0)
    solver = Admm(inner=1, memory=0, limits=limits)
    result = rj.factorize(noisy, 2, solver=solver, n_init=3, random_state=0)
    assert len(result.starts) == 3
    assert [r.start for r in result.history] == [0] * 5 + [1] * 5 + [2] * 5
    assert [r.step for r in result.history] == [0, 1, 2, 3, 4] * 3
    assert result.history == tuple(r for run in result.starts for r in run.records)
    assert result.error == min(run.error for run in result.starts)


def test_restarts_end_once_one_fits_exactly(tables):
    result = rj.factorize(tables, 2, solver="newton", n_init=10, random_state=0)
    assert [run.error < 1e-10 for run in result.starts].index(True) == len(result.starts) - 1
    assert len(result.starts) < 10


def test_restarts_end_once_several_agree_on_the_best(noisy):
    # One class has one minimum, which every start finds.
    result = rj.factorize(noisy, 1, solver="admm", n_init=10, random_state=0)
    assert len(result.starts) == POLICY.least_starts
    few = rj.factorize(noisy, 1, solver="admm", n_init=POLICY.least_starts - 1, random_state=0)
    assert len(few.starts) == POLICY.least_starts - 1


def test_restarts_go_on_while_none_agree(noisy):
    # Cut off after one step, starts stand at very different objectives.
    solver = Admm(limits=Limits(max_steps=1))
    result = rj.factorize(noisy, 4, solver=solver, n_init=8, random_state=0)
    objectives = sorted(run.objective for run in result.starts)
    assert objectives[1] > (1 + POLICY.agreement) * objectives[0]
    assert len(result.starts) == 8
    assert result.error == min(run.error for run in result.starts)


def test_misfits_name_the_worst_table_first(noisy, truth):
    result = rj.factorize(noisy, 2, random_state=0)
    assert set(result.misfits) == set(noisy.subsets)
    for names, distance in result.misfits.items():
        table = noisy[names] / noisy.total(*names)
        wanted = 0.5 * np.abs(table - result.pmf.marginal(list(names))).sum()
        assert distance == pytest.approx(wanted, abs=1e-12)
    distances = list(result.misfits.values())
    assert distances == sorted(distances, reverse=True)


def test_a_table_from_elsewhere_stands_out(truth):
    names = truth.domain.names
    given = {s: truth.marginal(list(s)) for s in [names[:3], names[1:], (names[0], names[3])]}
    given[names[0], names[3]] = given[names[0], names[3]][::-1]
    with pytest.warns(rj.Remark, match="disagree"):
        tables = rj.Marginals.from_tables(given, kind="shares", table_weight={names[:3]: 10.0})
    result = rj.factorize(tables, 2, random_state=0)
    assert next(iter(result.misfits)) == (names[0], names[3])


def test_a_result_is_frozen(tables):
    result = rj.factorize(tables, 2, random_state=0)
    with pytest.raises(FrozenInstanceError):
        result.stop = "nothing"
    with pytest.raises(ValueError, match="read-only"):
        result.pmf.weights[0] = 1.0
    assert replace(result, stop="seen").stop == "seen"


# --- progress -----------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "asked"), [(Terminal, None), (io.StringIO, True)])
def test_progress_is_shown_on_a_terminal_or_on_demand(noisy, monkeypatch, stream, asked):
    shown = stream()
    monkeypatch.setattr(sys, "stderr", shown)
    rj.factorize(noisy, 2, random_state=0, progress=asked)
    text = shown.getvalue()
    assert "\r\x1b[Kstart 1, algebraic step 0, relative error " in text
    assert text.endswith("\r\x1b[K")  # nothing stays behind
    assert "\n" not in text


@pytest.mark.parametrize(("stream", "asked"), [(Terminal, False), (io.StringIO, None)])
def test_progress_is_silent_elsewhere(noisy, monkeypatch, stream, asked):
    shown = stream()
    monkeypatch.setattr(sys, "stderr", shown)
    rj.factorize(noisy, 2, random_state=0, progress=asked)
    assert shown.getvalue() == ""


def test_progress_does_not_flood(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    with Progress(every=1000.0) as report:
        for k in range(100):
            report(f"line {k}")
    assert shown.getvalue() == "\r\x1b[Kline 0\r\x1b[K"
    with Progress(every=0.0) as report:
        report("one")
        report("two")
    assert shown.getvalue().endswith("\r\x1b[Kone\r\x1b[Ktwo\r\x1b[K")
