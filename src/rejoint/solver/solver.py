"""What a run leaves: its history, line by line, and its outcome."""

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class State(Protocol):
    """What a solver carries from step to step."""

    @property
    def weights(self) -> Array:
        """Weights of the classes, (F,)."""
        ...

    @property
    def factors(self) -> Array:
        """Factors of all variables one below the other, (L, F)."""
        ...

    @property
    def objective(self) -> float:
        """What is minimised; never rises from one step to the next."""
        ...

    @property
    def residual(self) -> float:
        """How far from optimal, relative: zero at a stationary point."""
        ...


class Sized(Protocol):
    """A problem that knows how large its data are."""

    @property
    def scale(self) -> float:
        """Twice the objective of a model that explains nothing."""
        ...


S = TypeVar("S", bound=State)
P_contra = TypeVar("P_contra", bound=Sized, contravariant=True)


class Solver(Protocol[P_contra, S]):
    """A method that improves a model step by step."""

    @property
    def name(self) -> str:
        """What the history calls it."""
        ...

    @property
    def limits(self) -> "Limits":
        """When to stop."""
        ...

    def init(self, problem: P_contra, weights: Array, factors: Array) -> S:
        """State at a first model."""
        ...

    def step(self, problem: P_contra, state: S) -> S:
        """One step further; the same object where nothing can be improved any more."""
        ...


@dataclass(frozen=True)
class Limits:
    """When to stop.

    Parameters
    ----------
    max_steps : int
        Steps at the most.
    progress : float
        Stop when the objective has fallen by less than this share of itself over ``window``
        steps; the residual is then said beside it.
    window : int
        How many steps a lack of progress must last.
    exact : float
        Relative error of the tables, ``||X - Xhat|| / ||X||``, that counts as a perfect fit.
    residual : float
        Residual that counts as optimal.

    Examples
    --------
    >>> Limits(max_steps=100).window
    10
    """

    max_steps: int = 1000
    progress: float = 1e-7
    window: int = 10
    exact: float = 1e-13
    residual: float = 1e-12


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
