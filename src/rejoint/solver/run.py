"""The loop of all solvers: steps, their history, and the reason to stop."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from rejoint.model import Model
from rejoint.solver.checkpoint import digest
from rejoint.solver.session import Session
from rejoint.solver.solver import (
    Limits,
    Problem,
    Record,
    Run,
    Solver,
    Stalled,
    Stop,
    check_needs,
)
from rejoint.text import duration


def run(
    solver: Solver[Any, Any],
    problem: Problem,
    model: Model,
    session: Session | None = None,
    *,
    start: int = 0,
    key: str = "",
) -> Run:
    """Step until the solver's limits say stop.

    A run that has ended is kept in the session's checkpoint. Of one that is interrupted,
    ``session.unfinished`` has the model so far.

    Parameters
    ----------
    solver : Solver
        What to step.
    problem : Problem
        What to solve.
    model : Model
        Where to start.
    session : Session, optional
        Progress and checkpoint.
    start : int
        Number of the start, for the history.
    key : str
        Name of the run in the checkpoint; by default found from solver, problem and start.

    Examples
    --------
    >>> from rejoint.factorization.admm import Admm
    >>> from rejoint.factorization.problem import TableProblem
    >>> table = np.array([[0.3, 0.1], [0.1, 0.5]])
    >>> problem = TableProblem((2, 2), ((0, 1),), (table,), np.ones(1))
    >>> model = Model.of([0.4, 0.6], [[[0.9, 0.1], [0.1, 0.9]]] * 2)
    >>> run(Admm(), problem, model).error < 1e-9
    True
    """
    session = session or Session(np.random.default_rng(0))
    checkpoint = session.checkpoint
    if checkpoint.active:
        if not key:
            fingerprint = problem.fingerprint  # type: ignore[attr-defined]
            key = digest("run", fingerprint, solver, start, model)
        before = checkpoint.parse(key, Run.thaw)
        if before is not None:
            return before
    check_needs(solver, problem)
    limits, begun, records = solver.limits, perf_counter(), list[Record]()
    state = solver.init(problem, model)

    def note(step: int) -> None:
        seconds = perf_counter() - begun
        records.append(Record(start, solver.name, step, state.objective, state.residual, seconds))
        session.report(describe(problem, records, limits))

    def so_far(stop: Stop) -> Run:
        error = problem.error(state.objective)
        return Run(state.model, state.objective, state.residual, error, stop, tuple(records))

    note(0)
    stop: Stop | None
    certain = state, len(records)
    try:
        while (stop := why_stop(problem, records, limits)) is None:
            last, state = state, solver.step(problem, state)
            if state is last:
                stop = Stop.OPTIMAL
                break
            if np.isnan(state.objective):
                state, stop = last, Stop.UNDEFINED
                break
            note(len(records))
            certain = state, len(records)
    except Stalled:
        stop = Stop.STALLED
    except KeyboardInterrupt:
        # The model so far is what an interrupted fit returns.
        state, records = certain[0], records[: certain[1]]
        session.unfinished[start] = so_far(Stop.INTERRUPTED)
        raise
    done = so_far(stop)
    if checkpoint.active:
        checkpoint.put(key, done.freeze())
    return done


def describe(problem: Problem, records: Sequence[Record], limits: Limits) -> str:
    """A line of progress, with the time that is left where it can be predicted.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> records = [Record(0, "em", k, 9.0 + 0.5**k, 0.1, float(k)) for k in range(30)]
    >>> problem = SimpleNamespace(error=lambda objective: float("nan"))
    >>> describe(problem, records, Limits(progress=1e-9))
    'start 1, em step 29, objective 9.000000002, about 8 seconds left'
    """
    last = records[-1]
    line = f"start {last.start + 1}, {last.solver} step {last.step}"
    error = problem.error(last.objective)
    line += (
        f", objective {last.objective:.10g}" if np.isnan(error) else f", relative error {error:.2e}"
    )
    left = seconds_left(records, limits)
    return line if left is None or left < 5 else f"{line}, about {duration(left)} left"


def seconds_left(records: Sequence[Record], limits: Limits) -> float | None:
    """Seconds until the objective falls too slowly to go on, if its gains shrink as they did."""
    window, last = limits.window, records[-1]
    if len(records) <= 2 * window or last.step < 1:
        return None
    recent, before = (
        records[-1 - k - window].objective - records[-1 - k].objective for k in (0, window)
    )
    enough = max(limits.progress * abs(last.objective), limits.gain)
    if not 0 < enough < recent < before:
        return None
    steps = window * np.log(recent / enough) / np.log(before / recent)
    each = (last.seconds - records[-1 - window].seconds) / window
    return float(each * min(steps, limits.max_steps - last.step))


def why_stop(problem: Problem, records: Sequence[Record], limits: Limits) -> Stop | None:
    """The reason to stop after these records; None if there is none."""
    last = records[-1]
    if problem.error(last.objective) <= limits.exact:
        return Stop.EXACT
    if last.residual <= limits.residual:
        return Stop.OPTIMAL
    if len(records) > limits.window:
        before = records[-1 - limits.window].objective
        least = max(limits.progress * abs(before), limits.gain)
        if np.isfinite(before) and before - last.objective <= least:
            return Stop.PROGRESS
    return Stop.STEPS if last.step >= limits.max_steps else None
