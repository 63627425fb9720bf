"""The one loop: when it stops, and what it keeps."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from rejoint.factorization import Limits
from rejoint.model import Model
from rejoint.solver import run
from rejoint.solver.session import Session

FLAT = Model.of([1.0], [[[0.5], [0.5]]])


@dataclass(frozen=True)
class Scripted:
    """A solver whose objectives and residuals are written down beforehand."""

    objectives: tuple
    residuals: tuple = ()
    limits: Limits = field(default=Limits())
    name: str = "scripted"

    def init(self, problem, model):
        return self.state(0, model)

    def step(self, problem, state):
        if state.place + 1 == len(self.objectives):
            return state
        outcome = self.objectives[state.place + 1]
        if outcome is KeyboardInterrupt:
            raise KeyboardInterrupt
        return self.state(state.place + 1, state.model)

    def state(self, place, model):
        residual = self.residuals[place] if self.residuals else 1.0
        numbered = replace(model, factors=np.full_like(model.factors, place))
        return ScriptedState(numbered, self.objectives[place], residual, place)


@dataclass(frozen=True)
class ScriptedState:
    model: Model
    objective: float
    residual: float
    place: int


@dataclass(frozen=True)
class Size:
    def error(self, objective):
        return objective**0.5


def follow(objectives, residuals=(), **limits):
    solver = Scripted(tuple(objectives), tuple(residuals), Limits(**limits))
    return run(solver, Size(), FLAT)


def test_stops_when_the_fit_is_exact():
    done = follow([1.0, 1e-4, 1e-13, 1e-30], exact=1e-6)
    assert done.stop == "exact"
    assert [r.objective for r in done.records] == [1.0, 1e-4, 1e-13]
    assert done.error == pytest.approx(1e-6 / np.sqrt(10))
    assert done.factors.tolist() == [[2.0], [2.0]]  # of the second step, not of the third


def test_an_exact_start_takes_no_step():
    done = follow([0.0, 0.0])
    assert (done.stop, len(done.records)) == ("exact", 1)


def test_stops_when_the_residual_says_so():
    done = follow([1.0, 0.9, 0.8, 0.7], [1.0, 1e-3, 1e-9, 1e-12], residual=1e-8)
    assert (done.stop, len(done.records), done.residual) == ("optimal", 3, 1e-9)


def test_stops_when_no_step_is_left():
    done = follow([1.0, 0.5])
    assert (done.stop, done.objective, len(done.records)) == ("optimal", 0.5, 2)


def test_stops_on_lack_of_progress_over_the_window_only():
    falls = [1.0, 0.5, 0.4, 0.4, 0.4, 0.3, 0.3, 0.3, 0.3, 0.2]
    done = follow(falls, window=3, progress=1e-2)
    # Two steps without progress are no three: it goes on past 0.4 and stops at 0.3.
    assert done.stop == "progress"
    assert [r.objective for r in done.records] == falls[:9]


def test_progress_is_relative():
    shrinking = [10.0**-k for k in range(30)]
    assert follow(shrinking, window=2, progress=1e-2, exact=0.0).stop == "optimal"


def test_stops_at_the_limit_of_steps():
    done = follow([1 / (k + 1) for k in range(50)], max_steps=7)
    assert (done.stop, done.records[-1].step) == ("steps", 7)


def test_ctrl_c_keeps_the_last_model():
    solver = Scripted((1.0, 0.5, 0.25, KeyboardInterrupt, 0.1))
    session = Session(np.random.default_rng(0))
    with pytest.raises(KeyboardInterrupt):
        run(solver, Size(), FLAT, session)
    done = session.unfinished[0]
    assert (done.stop, done.objective, len(done.records)) == ("interrupted", 0.25, 3)
    assert done.factors.tolist() == [[2.0], [2.0]]


def test_records_number_steps_and_carry_the_start():
    solver = Scripted((1.0, 0.5, 0.2))
    done = run(solver, Size(), FLAT, start=4)
    assert [(r.start, r.solver, r.step) for r in done.records] == [
        (4, "scripted", 0),
        (4, "scripted", 1),
        (4, "scripted", 2),
    ]
    seconds = [r.seconds for r in done.records]
    assert seconds == sorted(seconds)
    assert seconds[0] >= 0


def test_every_step_is_reported():
    lines = []
    session = Session(np.random.default_rng(0), lines.append)
    run(Scripted((1.0, 0.25)), Size(), FLAT, session)
    assert lines == [
        "start 1, scripted step 0, relative error 1.00e+00",
        "start 1, scripted step 1, relative error 5.00e-01",
    ]
