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
        session.report(describe(problem, records))

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


def describe(problem: Problem, records: Sequence[Record]) -> str:
    """Return a line of progress."""
    last = records[-1]
    error = problem.error(last.objective)
    value = f"objective {last.objective:.10g}" if np.isnan(error) else f"relative error {error:.2e}"
    return f"start {last.start + 1}, {last.solver} step {last.step}, {value}"


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
