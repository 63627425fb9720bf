"""Search: many starts followed on any executor, and the handling of Ctrl-C.

Ctrl-C is caught in two places. :func:`~rejoint.solver.run.run` keeps the model that it was
improving, and :func:`interruptible` makes the fit's best result so far out of what was offered.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from itertools import count
from math import inf, isnan
from threading import Event
from typing import Any, Literal, Protocol, TypeVar

from rejoint.messages import FitInterrupted
from rejoint.solver.checkpoint import digest
from rejoint.solver.session import Session
from rejoint.solver.solver import Run, Stop
from rejoint.text import cite

T = TypeVar("T")
OnInterrupt = Literal["raise", "return"]


def interruptible(session: Session, fit: Callable[[], T], on_interrupt: OnInterrupt) -> T:
    """Return what a fit returns; on Ctrl-C raise or return the best result so far.

    Where nothing was offered yet, a plain KeyboardInterrupt is raised. Whatever ends the fit, its
    checkpoint is on disk afterwards.

    Examples
    --------
    >>> import numpy as np
    >>> session = Session(np.random.default_rng(0))
    >>> def fit():
    ...     session.offer(lambda: "half a fit")
    ...     raise KeyboardInterrupt
    >>> interruptible(session, fit, "return")
    'half a fit'
    """
    if on_interrupt not in ("raise", "return"):
        raise ValueError(f"on_interrupt must be 'raise' or 'return', got {cite(on_interrupt)}.")
    try:
        return fit()
    except KeyboardInterrupt as pressed:
        result: T | None = session.best()
        if result is None:
            raise
        if on_interrupt == "return":
            return result
        raise FitInterrupted(result) from pressed
    finally:
        session.checkpoint.close()


class Follow(Protocol):
    """Follows one start: makes a model, and runs one or several solvers from there."""

    def __call__(self, problem: Any, start: Any, number: int, session: Session, key: str) -> Any:
        """Return the outcome: a Run, or another object with a method ``freeze``."""
        ...


def search(
    problem: Any,
    starts: Iterable[Any],
    follow: Follow,
    session: Session,
    *,
    offer: Callable[[list[Run]], Any] | None = None,
    enough: Callable[[Sequence[Run]], bool] = lambda runs: False,
    workers: int = 1,
    numbers: Iterable[int] | None = None,
    thaw: Callable[[Mapping[str, Any]], Any] = Run.thaw,
) -> list[Any]:
    """Follow each start, on the session's executor, in threads, or one after another.

    Results do not depend on where starts are followed. Starts that the checkpoint has are not
    followed again.

    Parameters
    ----------
    problem : object
        What to solve; it has a ``fingerprint`` where there is a checkpoint, unless the starts say
        what they belong to. Elsewhere its ``alone()`` is used, if there is one, as of each start.
    starts : iterable
        Starts, made one at a time.
    follow : callable
        Follows one start.
    session : Session
        Progress, checkpoint and executor.
    offer : callable, optional
        Makes a result of the runs so far, for an interrupted fit.
    enough : callable
        Whether the runs so far are enough; asked only where starts are followed one after another.
    workers : int
        Threads to follow starts in.
    numbers : iterable of int, optional
        Rising numbers of the starts, where they are some of many; from 0 on by default.
    thaw : callable
        Makes an outcome of what its ``freeze()`` has returned.
    """
    runs: dict[int, Any] = {}
    session.unfinished.clear()
    if offer is not None:
        make = offer

        def so_far() -> Any:
            ended = [run for _, run in sorted({**session.unfinished, **runs}.items())]
            return make([*ended[:-1], replace(ended[-1], stop=Stop.INTERRUPTED)]) if ended else None

        session.offer(so_far)
    numbered = zip(count() if numbers is None else numbers, starts, strict=False)
    pending = _unknown(problem, numbered, follow, session, runs, thaw)
    if session.executor is not None:
        alone = [(number, _alone(start), key) for number, start, key in pending]
        _follow_together(session.executor, _alone(problem), alone, follow, session, runs)
    elif workers > 1:
        with ThreadPoolExecutor(workers) as pool:
            _follow_together(pool, problem, list(pending), follow, session, runs)
    for number, start, key in pending:  # what is left, and is made one at a time
        runs[number] = follow(problem, start, number, session, key)
        _keep(session, key, runs[number])
        if enough(list(runs.values())):
            break
    return [runs[number] for number in sorted(runs)]


def _unknown(
    problem: Any,
    starts: Iterable[tuple[int, Any]],
    follow: Follow,
    session: Session,
    runs: dict[int, Any],
    thaw: Callable[[Mapping[str, Any]], Any],
) -> Iterator[tuple[int, Any, str]]:
    """Starts whose outcome the checkpoint does not have; outcomes that it has go to ``runs``."""
    checkpoint = session.checkpoint
    for number, start in starts:
        key, outcome = "", None
        if checkpoint.active:
            key = digest("start", getattr(problem, "fingerprint", ""), follow, number, start)
            outcome = checkpoint.parse(key, thaw)
        if outcome is None:
            yield number, start, key
        else:
            runs[number] = outcome


def _keep(session: Session, key: str, outcome: Any) -> None:
    """Keep the outcome of a start."""
    if session.checkpoint.active:
        session.checkpoint.put(key, outcome.freeze())


def _alone(thing: Any) -> Any:
    """Return a copy for a worker process."""
    return thing.alone() if hasattr(thing, "alone") else thing


def _follow_together(
    executor: Executor,
    problem: Any,
    pending: list[tuple[int, Any, str]],
    follow: Follow,
    session: Session,
    runs: dict[int, Any],
) -> None:
    """Follow starts in threads, in other processes or on other machines; keep those that end.

    After Ctrl-C or an error threads stop at their next step.
    """
    ended = Event()

    def report(line: str) -> None:
        if ended.is_set():
            raise KeyboardInterrupt
        session.report(line)

    def follow_here(*arguments: Any) -> Any:
        try:
            if ended.is_set():
                raise KeyboardInterrupt
            return follow(*arguments)
        except BaseException:
            ended.set()
            raise

    is_here = executor is not session.executor
    own = session.reporting(report) if is_here else session.alone()
    task = follow_here if is_here else follow
    futures = list[Future[Any]]()
    try:
        for number, start, key in pending:  # Ctrl-C may come before the last one is there
            name = key if is_here else ""
            futures.append(executor.submit(task, problem, start, number, own, name))
        while wait(futures, 0.2, FIRST_EXCEPTION).not_done:  # a wait without end is deaf to Ctrl-C
            if any(future.done() and future.exception() for future in futures):
                break
    finally:
        ended.set()
        if is_here:
            wait([future for future in futures if not future.cancel()])
        for (number, _, key), future in zip(pending, futures, strict=False):
            if not future.cancel() and future.done() and future.exception() is None:
                runs[number] = future.result()
                _keep(session, key, runs[number])
    errors = [future.exception() for future in futures if future.done() and not future.cancelled()]
    # The other threads have only stopped because of an error.
    for error in sorted(filter(None, errors), key=lambda e: isinstance(e, KeyboardInterrupt)):
        raise error


#: Relative difference of objectives that rounding explains.
SAME_OBJECTIVE = 1e-9


def promising(runs: Sequence[Run], numbers: Sequence[int], most: int = 0) -> list[int]:
    """Return which of some runs to follow further: those that few runs before them are better than.

    A run is one of these if at most ``most`` of the runs before it are as good or better. This asks
    nothing of later runs: more starts only add to what is followed, and so never end worse. An
    objective that is not a number counts as the highest.
    """
    values = [_value(runs[k]) for k in numbers]
    chosen: list[int] = []
    for place, number in enumerate(numbers):
        limit = values[place] + SAME_OBJECTIVE * max(abs(values[place]), 1.0)
        if sum(other <= limit for other in values[:place]) <= most:
            chosen.append(number)
    return chosen


def _value(run: Run) -> float:
    return inf if isnan(run.objective) else run.objective


def best_run(runs: Sequence[Run]) -> int:
    """Return which run has the lowest objective, the first of those that differ by rounding only.

    Starts often end at the same optimum with its classes in another order. Which one is taken must
    not depend on the order of sums, which differs between kernels and forms of the same records.
    An objective that is not a number counts as the highest.

    Examples
    --------
    >>> from rejoint.model import Model
    >>> one = Run(Model.of([1.0], [[[1.0]]]), float("nan"), 0.0, 0.0, Stop.UNDEFINED)
    >>> best_run([one, replace(one, objective=3.0)])
    1
    """
    values = [_value(run) for run in runs]
    limit = min(values) + SAME_OBJECTIVE * max(abs(min(values)), 1.0)
    return next(k for k, value in enumerate(values) if value <= limit)


def is_interrupted(runs: Sequence[Run]) -> bool:
    """Whether Ctrl-C ended a run."""
    return any(run.stop is Stop.INTERRUPTED for run in runs)
