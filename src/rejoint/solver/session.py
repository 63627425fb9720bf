"""Session: the resources of a fit, and its best result if it is interrupted."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rejoint.solver.checkpoint import Checkpoint
from rejoint.solver.solver import Run

Report = Callable[[str], None]


def report_nothing(line: str) -> None:
    """Discard a line of progress."""


def _make_nothing() -> None:
    """Nothing has been found yet."""


@dataclass
class _Offer:
    """How to make the result of an interrupted fit; shared by all copies of a session."""

    make: Callable[[], Any] = _make_nothing
    converters: tuple[Callable[[Any], Any], ...] = ()


@dataclass
class Session:
    """Randomness, progress, checkpoint and executor of one fit, and its best result so far.

    Parameters
    ----------
    rng : Generator
        The fit's randomness.
    report : callable
        Takes lines of progress.
    checkpoint : Checkpoint
        Where finished parts of the fit are looked up and kept; keeps nothing by default.
    executor : Executor, optional
        Where starts are followed; in this process by default.

    Examples
    --------
    >>> session = Session(np.random.default_rng(0))
    >>> session.offer(lambda: "a fit")
    >>> with session.convert(lambda part: f"{part} of a sample"):
    ...     session.offer(lambda: "a fit")
    ...     session.best()
    'a fit of a sample'
    """

    rng: np.random.Generator
    report: Report = report_nothing
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    executor: Executor | None = None
    unfinished: dict[int, Run] = field(default_factory=dict)
    _offer: _Offer = field(default_factory=_Offer, repr=False)

    def offer(self, make: Callable[[], Any], *, certain: bool = False) -> None:
        """Set how to make the result if the fit is interrupted from now on.

        Where that is None, the result that was offered before counts. A ``certain`` offer is never
        None: what was offered before is released, with the data that it refers to.
        """
        converters = self._offer.converters
        before = _make_nothing if certain else self._offer.make

        def converted() -> Any:
            result = make()
            for convert in reversed(converters):
                result = None if result is None else convert(result)
            return before() if result is None else result

        self._offer.make = converted

    def best(self) -> Any:
        """The best result so far; None where there is none."""
        return self._offer.make()

    @contextmanager
    def convert(self, function: Callable[[Any], Any]) -> Iterator[None]:
        """Within the block, pass what is offered through a function."""
        before = self._offer.converters
        self._offer.converters = (*before, function)
        yield
        self._offer.converters = before

    def alone(self) -> "Session":
        """Return a copy for a worker process: silent, without checkpoint and executor."""
        return Session(self.rng)

    def here(self) -> "Session":
        """Return a copy for work that stays in this process."""
        return replace(self, executor=None)

    def reporting(self, report: Report) -> "Session":
        """Return a copy with another report; unfinished runs are shared."""
        return replace(self, report=report)
