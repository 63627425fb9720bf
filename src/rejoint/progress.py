"""Progress: lines on a terminal that say how far a long computation is."""

import sys
from time import perf_counter

import numpy as np


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
