"""What all solvers share: the step, the one loop, when it stops, and what comes out.

A solver is ``init`` and ``step``. The loop keeps the history, stops on the objective *and* on
the residual of the optimality conditions, says in words why, and survives Ctrl-C.
"""

from rejoint.solver.arguments import whole
from rejoint.solver.digests import digest
from rejoint.solver.history import Record, Run
from rejoint.solver.journal import Journal
from rejoint.solver.loop import Stalled, relative_error, run, why_stop
from rejoint.solver.progress import Progress
from rejoint.solver.protocols import Array, Limits, Sized, Solver, State
from rejoint.solver.result import FitResult
from rejoint.solver.resuming import Bookmark, finished_run
from rejoint.solver.spreading import spread

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
