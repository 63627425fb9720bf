"""What all solvers share: the step, the one loop, when it stops, and what comes out.

A solver is ``init`` and ``step``. The loop keeps the history, stops on the objective *and* on
the residual of the optimality conditions, says in words why, and survives Ctrl-C.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from rejoint.pmf import LowRankPMF

if TYPE_CHECKING:
    from rejoint.estimation.posterior import Posterior
    from rejoint.identifiability import Ambiguity

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
    reason : {"exact", "optimal", "progress", "steps", "interrupted"}
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


@dataclass(frozen=True)
class FitResult:
    """A fitted model and how it came about.

    Parameters
    ----------
    pmf : LowRankPMF
        The model, classes in decreasing order of weight.
    stop : str
        Why the fit stopped, how well the tables are met, and what to try.
    history : tuple of Record
        Objective and residual after every step of every start.
    error : float
        Relative error of the tables, ``||X - Xhat|| / ||X||``.
    residual : float
        Residual of the optimality conditions.
    starts : tuple of Run
        What each start reached, in the order they were run.
    misfits : mapping
        For each table (a tuple of names) the total variation distance between the table and
        the model's, worst first; empty where the fit was to records.
    log_likelihood : float
        Of the records, at ``pmf``; NaN where only tables were given.
    posterior : Posterior, optional
        Posterior draws, where the fit was Bayesian.
    choice : str
        Which estimator and rank were chosen, and why.

    Examples
    --------
    >>> import rejoint as rj
    >>> tables = rj.Marginals.from_tables({("a", "b"): [[30, 10], [10, 50]]})
    >>> result = rj.factorize(tables, rank=2, random_state=0)
    >>> result.error < 1e-9
    True
    >>> result.stop.split(":")[0]
    'The tables are met exactly'
    """

    pmf: LowRankPMF
    stop: str
    history: tuple[Record, ...]
    error: float
    residual: float
    starts: tuple[Run, ...] = field(repr=False)
    misfits: dict[tuple[str, ...], float] = field(repr=False)
    log_likelihood: float = float("nan")
    posterior: "Posterior | None" = field(default=None, repr=False)
    choice: str = ""

    def ambiguity(
        self, names: str | Sequence[str], given: Mapping[str, Any] | None = None
    ) -> "Ambiguity":
        """Find two models with the same tables whose answers to a question differ the most.

        See :func:`rejoint.identifiability.ambiguity`: this is it with the tables of the fit.

        Examples
        --------
        >>> import rejoint as rj
        >>> truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
        >>> result = rj.factorize(rj.Marginals.from_pmf(truth, order=3), rank=2)
        >>> result.ambiguity("x0", given={"x1": 0, "x2": 0, "x3": 0}).distance
        0.0
        """
        from rejoint.identifiability import ambiguity  # its parts are seldom needed

        if not self.misfits:
            raise ValueError(
                "This model was fitted to records, not to tables: ask "
                "identifiability.ambiguity(result.pmf, names, subsets=[...]) about tables."
            )
        return ambiguity(self.pmf, names, given, subsets=list(self.misfits))


def whole(name: str, value: Any) -> int:
    """Check that an argument is a whole number of at least one.

    Examples
    --------
    >>> whole("rank", 0)
    Traceback (most recent call last):
    ...
    ValueError: rank must be a whole number of at least 1, got 0.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")
    return int(value)


class Progress:
    """Lines of progress on a terminal's stderr, each over the last; silent elsewhere.

    Examples
    --------
    >>> with Progress(shown=False) as report:
    ...     report("start 1")
    """

    def __init__(self, shown: bool | None = None, every: float = 0.2) -> None:
        self.shown = sys.stderr.isatty() if shown is None else shown
        self.every = every
        self.last = -np.inf

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown and np.isfinite(self.last):
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def __call__(self, line: str) -> None:
        """Show a line, unless the last one is fresh."""
        now = perf_counter()
        if self.shown and now - self.last >= self.every:
            self.last = now
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()
