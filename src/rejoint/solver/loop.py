"""The one loop: steps, their history, and the reason to stop."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from rejoint.solver.protocols import Array, Limits, Sized, Solver


class Stalled(Exception):
    """Raised by a step that finds no way on, though the model is not known to be optimal."""


@dataclass(frozen=True)
class Record:
    """One line of the history.

    Parameters
    ----------
    start : int
        Which start it belongs to.
    solver : str
        Which solver took the step.
    step : int
        Number of the step; 0 is the start itself.
    objective : float
        Objective after the step.
    residual : float
        Residual of the optimality conditions after the step.
    seconds : float
        Time since the run began.

    Examples
    --------
    >>> Record(0, "newton", 3, 1e-9, 1e-6, 0.1).step
    3
    """

    start: int
    solver: str
    step: int
    objective: float
    residual: float
    seconds: float


@dataclass(frozen=True)
class Run:
    """Outcome of one solver from one start.

    Parameters
    ----------
    weights, factors : array
        The best model reached.
    objective, residual, error : float
        Its objective, residual, and relative error of the tables.
    reason : {"exact", "optimal", "progress", "stalled", "steps", "interrupted"}
        Why it stopped.
    records : tuple of Record
        The history.

    Examples
    --------
    >>> import numpy as np
    >>> Run(np.ones(1), np.ones((2, 1)) / 2, 0.0, 0.0, 0.0, "exact").reason
    'exact'
    """

    weights: Array
    factors: Array
    objective: float
    residual: float
    error: float
    reason: str
    records: tuple[Record, ...] = ()


def run(
    solver: Solver[Any, Any],
    problem: Sized,
    weights: Array,
    factors: Array,
    *,
    start: int = 0,
    report: Callable[[str], None] | None = None,
) -> Run:
    """Step until the solver's limits, or the user, say stop.

    Parameters
    ----------
    solver : Solver
        What to step.
    problem : Sized
        What to solve.
    weights, factors : array
        Where to start.
    start : int
        Number of the start, for the history.
    report : callable, optional
        Called with a line of progress after each step.

    Examples
    --------
    >>> from rejoint.factorization.admm import Admm
    >>> from rejoint.factorization.problem import Problem
    >>> import numpy as np
    >>> table = np.array([[0.3, 0.1], [0.1, 0.5]])
    >>> problem = Problem((2, 2), ((0, 1),), (table,), np.ones(1))
    >>> fit = run(Admm(), problem, np.array([0.4, 0.6]), np.array([[0.9, 0.1], [0.1, 0.9]] * 2))
    >>> fit.error < 1e-9
    True
    """
    begun, limits = perf_counter(), solver.limits
    state = solver.init(problem, weights, factors)
    records: list[Record] = []

    def note(step: int) -> None:
        seconds = perf_counter() - begun
        records.append(Record(start, solver.name, step, state.objective, state.residual, seconds))
        if report is not None:
            error = relative_error(problem, state.objective)
            report(f"start {start + 1}, {solver.name} step {step}, relative error {error:.2e}")

    note(0)
    reason = ""
    try:
        while not (reason := why_stop(problem, records, limits)):
            before, state = state, solver.step(problem, state)
            if state is before:
                reason = "optimal"
                break
            note(len(records))
    except Stalled:
        reason = "stalled"
    except KeyboardInterrupt:
        reason = "interrupted"
    return Run(
        state.weights,
        state.factors,
        state.objective,
        state.residual,
        relative_error(problem, state.objective),
        reason,
        tuple(records),
    )


def relative_error(problem: Sized, objective: float) -> float:
    """``||X - Xhat|| / ||X||`` over all tables, from the objective."""
    return float(np.sqrt(2.0 * max(objective, 0.0) / problem.scale))


def why_stop(problem: Sized, records: Sequence[Record], limits: Limits) -> str:
    """The reason to stop after these records; empty if there is none."""
    last = records[-1]
    if relative_error(problem, last.objective) <= limits.exact:
        return "exact"
    if last.residual <= limits.residual:
        return "optimal"
    if len(records) > limits.window:
        before = records[-1 - limits.window].objective
        if np.isfinite(before) and before - last.objective <= limits.progress * abs(before):
            return "progress"
    return "steps" if last.step >= limits.max_steps else ""
