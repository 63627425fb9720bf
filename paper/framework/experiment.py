"""A table or figure of the paper: its cells, what is expected of them, how it is shown."""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from paper.framework.cells import Done, Settings, Store, Work, processors, run_cells
from paper.framework.parts import Glance, Section
from paper.framework.rendering import markdown

RESULTS = Path("paper/results")


class Unavailable(Exception):
    """Raised where an experiment cannot run here, in words: no data, no package."""


class Expected(NamedTuple):
    """A number that the fast run must reach, its bounds, and why these."""

    name: str
    value: float
    low: float
    high: float
    why: str

    @property
    def met(self) -> bool:
        """Whether it lies within its bounds."""
        return self.low <= self.value <= self.high

    def __str__(self) -> str:
        sign = "ok " if self.met else "NOT"
        bounds = f"[{self.low:.4g}, {self.high:.4g}]"
        return f"{sign} {self.name}: {self.value:.4g} in {bounds} ({self.why})"


def nothing(done: Done) -> Iterable[Any]:
    """No expectations, nothing for the first page."""
    return ()


@dataclass(frozen=True)
class Experiment:
    """One script of this folder.

    ``cells(fast)`` lists the settings, ``work(**settings)`` works one out (a function at the top of
    its module, since it runs in another process), ``section(done, folder)`` shows them (figures go
    to the folder), ``expected(done)`` says what the fast run must reach, and ``glances(done)``
    are its lines on the first page.
    """

    name: str
    cells: Callable[[bool], Sequence[Settings]]
    work: Work
    section: Callable[[Done, Path], Section]
    expected: Callable[[Done], Iterable[Expected]] = nothing
    glances: Callable[[Done], Iterable[Glance]] = nothing

    def store(self, results: Path, fast: bool) -> Store:
        """Where the cells are kept."""
        folder = results / "fast" if fast else results
        return Store(folder / f"{self.name}.json")

    def done(self, results: Path = RESULTS, fast: bool = False) -> Done:
        """The cells that are there; nothing is run."""
        return self.store(results, fast).done(self.cells(fast))

    def run(
        self,
        results: Path = RESULTS,
        fast: bool = False,
        jobs: int | None = None,
        again: Sequence[str] = (),
    ) -> Done:
        """Work out what lacks, and the cells whose settings hold all of ``again``; return all."""
        store, wanted = self.store(results, fast), self.cells(fast)
        store.drop(again)
        run_cells(self.name, store, self.work, wanted, jobs or processors())
        return store.done(wanted)

    def main(self) -> None:
        """The command line of a script."""
        parser = argparse.ArgumentParser(prog=f"python -m paper.{self.name}")
        parser.add_argument("--fast", action="store_true", help="a small part, checked")
        parser.add_argument("--jobs", type=int, help="processes; one a processor by default")
        parser.add_argument("--results", type=Path, default=RESULTS, help="where cells are kept")
        parser.add_argument("--show", action="store_true", help="run nothing, show what is there")
        parser.add_argument(
            "--again",
            nargs="+",
            default=(),
            metavar="NAME=VALUE",
            help="run the cells of these settings anew, such as method=JointClassifier",
        )
        options = parser.parse_args()
        try:
            if options.show:
                done = self.done(options.results, options.fast)
            else:
                done = self.run(options.results, options.fast, options.jobs, options.again)
        except Unavailable as reason:
            sys.exit(f"{self.name}: {reason}")
        except KeyboardInterrupt:
            sys.exit(130)
        if not done.cells:
            sys.exit(f"{self.name}: no cell is done yet.")
        folder = options.results / "fast" if options.fast else options.results
        print(markdown([self.section(done, folder)]))
        if options.fast:
            self.check(done)

    def check(self, done: Done) -> None:
        """Print the expectations; leave with an error where one is not met."""
        expected = list(self.expected(done))
        for line in expected:
            print(line)
        if not all(line.met for line in expected):
            sys.exit(f"{self.name}: not as expected.")
