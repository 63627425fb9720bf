"""Interface of solvers: a state, ``init`` and ``step``, limits, and the outcome.

A solver needs no base class. Any object with ``name``, ``limits``, ``init`` and ``step`` can be
passed to :func:`rejoint.factorize` or :func:`rejoint.estimate`.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import astuple, dataclass, fields, is_dataclass, replace
from enum import StrEnum
from functools import reduce
from typing import Any, Protocol, TypeVar

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.model import Layout, Model
from rejoint.text import cite, plural


@dataclass(frozen=True)
class Limits:
    """When to stop.

    Parameters
    ----------
    max_steps : int
        Largest number of steps.
    progress : float
        Stop when the objective has fallen by less than this share of itself over ``window``
        steps.
    window : int
        Number of steps that a lack of progress must last.
    exact : float
        Relative error of the tables, ``||X - Xhat|| / ||X||``, that counts as a perfect fit.
    residual : float
        Residual that counts as optimal.
    gain : float
        Stop as well when the objective has fallen by less than this over ``window`` steps.

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
    gain: float = 0.0


class Stop(StrEnum):
    """Why a run stopped; the text says what to try.

    Examples
    --------
    >>> Stop.STEPS.text
    'the limit of steps was reached before the fit stopped improving: raise max_steps'
    """

    EXACT = "exact"
    OPTIMAL = "optimal"
    PROGRESS = "progress"
    STALLED = "stalled"
    STEPS = "steps"
    UNDEFINED = "undefined"
    EARLY = "early"
    BEHIND = "behind"
    INTERRUPTED = "interrupted"

    @property
    def text(self) -> str:
        """What happened, and what to try."""
        return _TEXTS[self]


_TEXTS = {
    Stop.EXACT: "the fit is exact",
    Stop.OPTIMAL: "no step improves it further",
    Stop.PROGRESS: "it has stopped improving",
    Stop.STALLED: (
        "no step improves it further, although it may not be optimal: try another solver or start"
    ),
    Stop.STEPS: "the limit of steps was reached before the fit stopped improving: raise max_steps",
    Stop.UNDEFINED: (
        "the next step has an objective that is not a number: try another solver or start"
    ),
    Stop.EARLY: "stopped early, before noise is fitted",
    Stop.BEHIND: "abandoned because other starts were better",
    Stop.INTERRUPTED: "interrupted; this is the best model so far",
}


class Stalled(Exception):
    """Raised by a step that finds no improvement although the model is not known to be optimal."""


@dataclass(frozen=True)
class Record:
    """One line of the history of a fit.

    Parameters
    ----------
    start : int
        Number of the start.
    solver : str
        Name of the solver that took the step.
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
    model : Model
        The best model reached.
    objective, residual, error : float
        Its objective, residual, and relative error of the tables (NaN for records).
    stop : Stop
        Why it stopped.
    records : tuple of Record
        The history.

    Examples
    --------
    >>> Run(Model.of([1.0], [[[0.5], [0.5]]]), 0.0, 0.0, 0.0, Stop.EXACT).weights
    array([1.])
    """

    model: Model
    objective: float
    residual: float
    error: float
    stop: Stop
    records: tuple[Record, ...] = ()

    @property
    def weights(self) -> FloatArray:
        """Weights of the classes, (F,)."""
        return self.model.weights

    @property
    def factors(self) -> FloatArray:
        """Stacked factors, (L, F)."""
        return self.model.factors

    def freeze(self) -> dict[str, Any]:
        """The run as arrays, numbers and texts, for a checkpoint."""
        numbers = {name: getattr(self, name) for name in ("objective", "residual", "error")}
        parts = {"levels": list(self.model.layout.levels), "stacked": self.model.stacked}
        rows = [(each.start, *astuple(each)[2:]) for each in self.records]
        solver = self.records[0].solver if self.records else ""  # all have the same
        history = {"history": np.array(rows, dtype=np.float64), "solver": solver}
        return {**parts, **numbers, "stop": str(self.stop), **history}

    @classmethod
    def thaw(cls, frozen: Mapping[str, Any]) -> "Run":
        """Return the run that was frozen; files may be damaged."""
        numbers = {name: float(frozen[name]) for name in ("objective", "residual", "error")}
        levels, stacked = frozen["levels"], frozen["stacked"]
        if stacked.ndim != 2 or len(stacked) != 1 + sum(levels) or not (stacked >= 0.0).all():
            raise ValueError(f"a model of {plural(sum(levels), 'level')} has shape {stacked.shape}")
        model = Model.from_stacked(Layout(tuple(levels)), stacked)
        records = tuple(
            Record(int(start), frozen["solver"], int(step), *map(float, rest))
            for start, step, *rest in frozen["history"]
        )
        return cls(model, **numbers, stop=Stop(frozen["stop"]), records=records)


class State(Protocol):
    """What a solver carries from step to step."""

    @property
    def model(self) -> Model:
        """The present model."""
        ...

    @property
    def objective(self) -> float:
        """What is minimized; never rises from one step to the next."""
        ...

    @property
    def residual(self) -> float:
        """How far from optimal, relative: zero at a stationary point."""
        ...


class Problem(Protocol):
    """What a solver works on: tables or records."""

    def error(self, objective: float) -> float:
        """Relative error of the tables at an objective; NaN where there is none."""
        ...


S = TypeVar("S", bound=State)
P_contra = TypeVar("P_contra", bound=Problem, contravariant=True)


class Solver(Protocol[P_contra, S]):
    """A method that improves a model step by step.

    A solver may declare in ``needs`` the names of what it uses of the problem (``"loss.slope"`` for
    a part of a part), and is then refused with the missing part named.
    """

    @property
    def name(self) -> str:
        """Its name in the history."""
        ...

    @property
    def limits(self) -> Limits:
        """When to stop."""
        ...

    def init(self, problem: P_contra, model: Model) -> S:
        """State at a first model."""
        ...

    def step(self, problem: P_contra, state: S) -> S:
        """One step further; the same object where nothing can be improved any more."""
        ...


def is_solver(candidate: Any) -> bool:
    """Whether an object has the four parts of a solver.

    Examples
    --------
    >>> is_solver("em")
    False
    """
    steps = all(callable(getattr(candidate, name, None)) for name in ("init", "step"))
    limits = isinstance(getattr(candidate, "limits", None), Limits)
    return steps and limits and hasattr(candidate, "name") and not isinstance(candidate, type)


def missing_needs(solver: Any, problem: Any) -> list[str]:
    """Return which needs of a solver the problem does not meet.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> missing_needs(SimpleNamespace(needs=("loss.slope",)), SimpleNamespace(loss=None))
    ['loss.slope']
    """
    missing = object()
    return [
        need
        for need in getattr(solver, "needs", ())
        if reduce(lambda part, name: getattr(part, name, missing), need.split("."), problem)
        is missing
    ]


def check_needs(solver: Any, problem: Any) -> None:
    """Raise an error for a solver that needs what the problem does not have."""
    missing = missing_needs(solver, problem)
    if missing:
        raise ValueError(
            f"solver={cite(getattr(solver, 'name', solver))} needs {', '.join(missing)}, which "
            f"{type(problem).__name__} does not have: choose another solver."
        )


def with_limits(solver: Any, limits: Limits) -> Any:
    """The solver with other limits, or as it is where these cannot be set.

    Examples
    --------
    >>> from rejoint.factorization import Admm
    >>> with_limits(Admm(), Limits(max_steps=3)).limits.max_steps
    3
    """
    if is_dataclass(solver) and any(f.name == "limits" and f.init for f in fields(solver)):
        return replace(solver, limits=limits)  # type: ignore[type-var]
    limited = copy(solver)
    try:
        object.__setattr__(limited, "limits", limits)  # which frozen dataclasses take, too
    except AttributeError:
        return solver
    return limited
