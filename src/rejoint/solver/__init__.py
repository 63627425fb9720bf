"""What all solvers share: the step, the one loop, when it stops, and what comes out.

A solver is ``init`` and ``step``. The loop keeps the history, stops on the objective *and* on
the residual of the optimality conditions, says in words why, and survives Ctrl-C.
"""

from rejoint.check import whole
from rejoint.solver.checkpoint import Bookmark, Journal, digest, finished_run
from rejoint.solver.progress import Progress
from rejoint.solver.result import FitResult
from rejoint.solver.run import Stalled, relative_error, run, why_stop
from rejoint.solver.search import spread
from rejoint.solver.solver import Array, Limits, Record, Run, Sized, Solver, State

__all__ = [
    "Array",
    "Bookmark",
    "FitResult",
    "Journal",
    "Limits",
    "Progress",
    "Record",
    "Run",
    "Sized",
    "Solver",
    "Stalled",
    "State",
    "digest",
    "finished_run",
    "relative_error",
    "run",
    "spread",
    "whole",
    "why_stop",
]
