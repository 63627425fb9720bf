"""What all solvers share: the step, the loop, when it stops, the search, and what comes out.

A solver is ``init`` and ``step``. The loop keeps the history, stops on the objective *and* on
the residual of the optimality conditions, and says why.
"""

from rejoint.messages import FitInterrupted
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.solver import Limits, Record, Run, Stop

__all__ = ["FitInterrupted", "FitResult", "Limits", "Record", "Run", "Stop", "run"]
