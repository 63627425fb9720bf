"""The one loop: steps, their history, and the reason to stop."""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from rejoint.solver.checkpoint import Bookmark, finished_run
from rejoint.solver.solver import Array, Limits, Record, Run, Sized, Solver
from rejoint.text import duration


class Stalled(Exception):
    """Raised by a step that finds no way on, though the model is not known to be optimal."""


def run(
    solver: Solver[Any, Any],
    problem: Sized,
    weights: Array,
    factors: Array,
    *,
    start: int = 0,
    report: Callable[[str], None] | None = None,
    bookmark: Bookmark | None = None,
) -> Run:
    """Step until the solver's limits, or the user, say stop.

    Where the problem has a journal the run is kept there, and one that was interrupted goes on.

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
    bookmark : Bookmark, optional
        Where to keep it; by default at a place that solver, problem and start tell.

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
    mark = bookmark or Bookmark.of(problem, solver, start, weights, factors)
    if (found := finished_run(mark)) is not None:
        return found
    limits = solver.limits
    state, records = mark.resume(solver) or (solver.init(problem, weights, factors), [])
    begun = perf_counter() - (records[-1].seconds if records else 0.0)

    def note(step: int) -> None:
        seconds = perf_counter() - begun
        records.append(Record(start, solver.name, step, state.objective, state.residual, seconds))
        if report is not None:
            report(in_words(problem, records, limits))

    if not records:
        note(0)
    sure, reason = (state, len(records)), ""
    try:
        while not (reason := why_stop(problem, records, limits)):
            before, state = state, solver.step(problem, state)
            if state is before:
                reason = "optimal"
                break
            note(len(records))
            sure = state, len(records)
            mark.keep(solver, state, records)
    except Stalled:
        reason = "stalled"
    except KeyboardInterrupt:
        reason = "interrupted"
        mark.keep(solver, sure[0], records[: sure[1]], now=True)
    done = Run(
        state.weights,
        state.factors,
        state.objective,
        state.residual,
        relative_error(problem, state.objective),
        reason,
        tuple(records),
    )
    if reason != "interrupted":
        mark.close(done)
    return done


def in_words(problem: Sized, records: Sequence[Record], limits: Limits) -> str:
    """A line of progress, with the time that is left where it can be told.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> records = [Record(0, "em", k, 9.0 + 0.5**k, 0.1, float(k)) for k in range(30)]
    >>> in_words(SimpleNamespace(scale=float("nan")), records, Limits(progress=1e-9))
    'start 1, em step 29, objective 9.000000002, about 8 seconds left'
    """
    last = records[-1]
    line = f"start {last.start + 1}, {last.solver} step {last.step}"
    if np.isfinite(problem.scale):
        line += f", relative error {relative_error(problem, last.objective):.2e}"
    else:
        line += f", objective {last.objective:.10g}"
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
    enough = limits.progress * abs(last.objective)
    if not 0 < enough < recent < before:
        return None
    steps = window * np.log(recent / enough) / np.log(before / recent)
    each = (last.seconds - records[-1 - window].seconds) / window
    return float(each * min(steps, limits.max_steps - last.step))


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
