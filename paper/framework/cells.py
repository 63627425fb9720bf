"""Cells: one result of one setting. They are kept in a file as soon as each is done."""

import json
import multiprocessing
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rejoint

Settings = Mapping[str, Any]
Values = dict[str, Any]
Work = Callable[..., Values]

PACKAGES = ("numpy", "scipy", "scikit-learn", "scikit-surprise", "matplotlib")


@dataclass(frozen=True)
class Cell:
    """What came out for one setting, the versions it was made with, and the time it took.

    ``seconds`` are by the clock, ``processor`` are those of the processor (not always known).
    """

    settings: dict[str, Any]
    values: Values
    seconds: float
    versions: dict[str, str]
    processor: float | None = None


class Done(Sequence[Cell]):
    """The finished cells of an experiment, and how many were wanted."""

    def __init__(self, cells: Iterable[Cell], wanted: int) -> None:
        self.cells = list(cells)
        self.wanted = wanted

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, index: Any) -> Any:
        return self.cells[index]

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells)

    def where(self, **settings: Any) -> "Done":
        """Those whose settings hold all of these."""
        kept = [c for c in self.cells if settings.items() <= c.settings.items()]
        return Done(kept, len(kept))

    def values(self, name: str) -> NDArray[np.float64]:
        """One value of every cell that has it."""
        return np.array([c.values[name] for c in self.cells if c.values.get(name) is not None])

    @property
    def seconds(self) -> float:
        """Time of all cells together, of the processor where it is known."""
        return sum(c.seconds if c.processor is None else c.processor for c in self.cells)

    @property
    def versions(self) -> dict[str, str]:
        """Versions the cells were made with; several of a package are joined."""
        names = dict.fromkeys(name for c in self.cells for name in c.versions)
        found = {n: dict.fromkeys(c.versions[n] for c in self if n in c.versions) for n in names}
        return {name: ", ".join(values) for name, values in found.items()}


class Store:
    """A JSON file of cells, written whole and put in place at once after each cell."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cells: dict[str, Cell] = {}
        if path.exists():
            kept = json.loads(path.read_text("utf-8"))["cells"]
            self.cells = {key: Cell(**cell) for key, cell in kept.items()}

    def keep(self, cell: Cell) -> None:
        """Add a cell, and write."""
        self.cells[key_of(cell.settings)] = cell
        self.write()

    def drop(self, pairs: Sequence[str]) -> None:
        """Forget the cells whose settings hold all of these pairs, such as ``rank=5``."""
        if pairs:
            named = {key: set(f"{n}={v}" for n, v in c.settings.items()) for key, c in self}
            self.cells = {k: c for k, c in self if not set(pairs) <= named[k]}

    def __iter__(self) -> Iterator[tuple[str, Cell]]:
        return iter(self.cells.items())

    def write(self) -> None:
        """Write all cells, in one stroke."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [
            f"{json.dumps(key)}: {json.dumps(vars(cell), default=plain)}"
            for key, cell in sorted(self.cells.items())
        ]
        unfinished = self.path.with_suffix(f".{os.getpid()}.tmp")
        unfinished.write_text('{"cells": {\n' + ",\n".join(lines) + "\n}}\n", "utf-8")
        os.replace(unfinished, self.path)

    def done(self, wanted: Sequence[Settings]) -> Done:
        """The cells that are there, in the order wanted."""
        keys = [key_of(settings) for settings in wanted]
        return Done((self.cells[key] for key in keys if key in self.cells), len(wanted))

    def lacking(self, wanted: Sequence[Settings]) -> list[Settings]:
        """Settings of the cells that are not there."""
        return [settings for settings in wanted if key_of(settings) not in self.cells]


def key_of(settings: Settings) -> str:
    """All settings in words: ``rank=5|order=3|seed=0``."""
    return "|".join(f"{name}={value}" for name, value in settings.items())


def plain(value: Any) -> Any:
    """NumPy's numbers and arrays as JSON has them."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"A cell holds a {type(value).__name__}, which JSON has no form for.")


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the packages that matter, the commit and the date."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    found = {"rejoint": rejoint.__version__, "commit": commit or "unknown"}
    found |= {"date": f"{datetime.now(UTC):%Y-%m-%d}", "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_cells(title: str, store: Store, work: Work, wanted: Sequence[Settings], jobs: int) -> None:
    """Work out the cells that the store lacks; Ctrl-C keeps those that are done.

    Cells are independent, so each runs in a process and on a processor of its own. One that fails
    does not stop the others: the failures are raised together at the end.
    """
    lacking = store.lacking(wanted)
    if not lacking:
        return
    # BLAS threads only get in each other's way here; must be said before a process imports NumPy.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    context = multiprocessing.get_context("spawn")
    count = context.Value("i", 0)
    pool = ProcessPoolExecutor(
        min(jobs, len(lacking)), context, initializer=settle, initargs=(count, jobs)
    )
    failures: list[Exception] = []
    try:
        waiting = {pool.submit(timed, work, dict(settings)): settings for settings in lacking}
        while waiting:
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                settings = waiting.pop(future)
                words = keep(store, settings, future, failures)
                done = len(lacking) - len(waiting)
                print(f"{title}: {done} of {len(lacking)}, {words}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        for process in list(pool._processes.values()):
            process.terminate()
        store.write()  # the key may have been pressed while a cell was being written
        print(f"\n{title}: stopped; what is done is in {store.path}", file=sys.stderr)
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    if failures:
        raise ExceptionGroup(f"{title}: {len(failures)} of {len(lacking)} cells failed", failures)


def keep(store: Store, settings: Settings, future: Future[Cell], failures: list[Exception]) -> str:
    """Put a finished cell into the store, or its failure with the others; say which."""
    try:
        cell = future.result()
    except Exception as failure:
        failure.add_note(f"in cell {key_of(settings)}")
        failures.append(failure)
        return f"{key_of(settings)} failed: {failure}"
    store.keep(cell)
    return f"{key_of(settings)} ({cell.seconds:.1f} s)"


def settle(count: Any, jobs: int) -> None:
    """Prepare a process: deaf to Ctrl-C, which the parent answers; one processor if several run."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, daemon=True).start()
    if jobs > 1 and hasattr(os, "sched_setaffinity"):
        with count.get_lock():
            place = count.value
            count.value += 1
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {allowed[place % len(allowed)]})


def end_with_parent() -> None:
    """Leave when the parent has ended, whatever ended it: a worker would wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def timed(work: Work, settings: dict[str, Any]) -> Cell:
    """One cell, in its process."""
    clock, processor = time.perf_counter(), time.process_time()
    values = work(**settings)
    seconds = round(time.perf_counter() - clock, 3)
    return Cell(settings, values, seconds, versions(), round(time.process_time() - processor, 3))
