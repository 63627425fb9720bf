"""What a run leaves: its history, line by line, and its outcome."""

from dataclasses import dataclass

from rejoint.solver.protocols import Array

__all__ = ["Record", "Run"]


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
