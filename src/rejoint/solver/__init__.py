"""Parts that all solvers share: steps, the loop, limits, the search, and results.

solver        Solver, Problem, Limits, Stop, Run: what a solver is, and what it leaves
run           run: the one loop
search        search: several starts on any executor; interruptible: Ctrl-C
session       Session: randomness, progress, checkpoint and executor of one fit
checkpoint    Checkpoint: finished parts of a fit on disk
acceleration  L-BFGS and Anderson mixing of fixed-point steps
result        FitResult

A solver is ``init`` and ``step``. The loop keeps the history, stops on the objective *and* on
the residual of the optimality conditions, and says why.
"""

from rejoint.messages import FitInterrupted
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.solver import Limits, Record, Run, Stop

__all__ = ["FitInterrupted", "FitResult", "Limits", "Record", "Run", "Stop", "run"]
