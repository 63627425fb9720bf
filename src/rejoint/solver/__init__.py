"""What all solvers share: the step, the one loop, when it stops, and what comes out.

A solver is ``init`` and ``step``. The loop keeps the history, stops on the objective *and* on
the residual of the optimality conditions, says in words why, and survives Ctrl-C.
"""

from rejoint.solver.arguments import whole
from rejoint.solver.loop import Record, Run, Stalled, relative_error, run, why_stop
from rejoint.solver.progress import Progress
from rejoint.solver.protocols import Array, Limits, Sized, Solver, State
from rejoint.solver.result import FitResult

__all__ = [
    "Array",
    "FitResult",
    "Limits",
    "Progress",
    "Record",
    "Run",
    "Sized",
    "Solver",
    "Stalled",
    "State",
    "relative_error",
    "run",
    "whole",
    "why_stop",
]
