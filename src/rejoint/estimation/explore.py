"""Starts followed for a while, side by side where that is quicker, to find the best of them."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from threading import Event

import numpy as np

from rejoint.estimation.data import RecordProblem
from rejoint.estimation.em import Em
from rejoint.estimation.starts import Start
from rejoint.solver.checkpoint import Bookmark, finished_run
from rejoint.solver.run import run
from rejoint.solver.search import spread
from rejoint.solver.solver import Limits, Run

Report = Callable[[str], None]

#: How far each start is followed before the best one is followed to the end.
EXPLORE = Limits(max_steps=60, progress=1e-6, window=5, exact=-1.0)

#: Passes (cells x F) that are worth a thread each: smaller ones are all interpreter, of which
#: there is one; larger ones had better share their own work.
SMALLEST, LARGEST = 100_000, 20_000_000


@contextmanager
def side_by_side(problem: RecordProblem, rank: int, count: int) -> Iterator[Executor | None]:
    """A pool of threads where several starts gain by one; None where one after another is best."""
    size = problem.codes.size * rank
    workers = min(problem.threads, count)
    if workers < 2 or not SMALLEST <= size <= LARGEST:
        yield None
        return
    with ThreadPoolExecutor(workers) as executor:
        yield executor


def explore(
    problem: RecordProblem,
    em: Em,
    starts: Sequence[Start],
    report: Report,
    executor: Executor | None = None,
) -> list[Run]:
    """Follow each start for a while; Ctrl-C keeps those that are there.

    What is found does not depend on the executor, whose workers must be threads.
    """
    if executor is None:
        return one_by_one(problem, em, starts, report)
    alone = replace(problem, threads=1)
    ended = Event()

    def check(line: str) -> None:
        if ended.is_set():
            raise KeyboardInterrupt
        if line:
            report(line)

    def follow(number: int) -> Run | None:
        try:
            check("")
            found = follow_start(alone, em, starts[number], number, check)
        except BaseException:
            ended.set()  # all stop: on Ctrl-C, and where one has failed
            raise
        if found.reason == "interrupted":
            ended.set()
        return found

    others: list[Future[Run | None]] = []
    runs: list[Run | None] = []
    try:
        for number in range(1, len(starts)):
            others.append(executor.submit(follow, number))
        # The first one here: a start from tables has loops of its own, which Ctrl-C must reach.
        runs.append(follow(0))
        wait(others)
    except KeyboardInterrupt:
        ended.set()
    wait(others)
    return those_there([*runs, *map(outcome, others)], ended.is_set())


def outcome(future: Future[Run | None]) -> Run | None:
    """What a worker has found; None where it was interrupted before there was anything."""
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, KeyboardInterrupt):
        return None
    raise error


def elsewhere(
    problem: RecordProblem, em: Em, starts: Sequence[Start], executor: Executor
) -> list[Run]:
    """Follow the starts on any executor, processes or machines, but for those in the journal."""
    solver = replace(em, limits=EXPLORE)
    marks = [Bookmark.of(problem, solver, k, start) for k, start in enumerate(starts)]
    runs = [finished_run(mark) for mark in marks]
    todo = [number for number, found in enumerate(runs) if found is None]
    bare = replace(problem, threads=1, journal=None)
    tasks = [(bare, em, starts[number], number, quiet) for number in todo]
    found, ended = spread(executor, follow_start, tasks)
    for number, done in zip(todo, found, strict=False):
        runs[number] = done
        if done is not None and done.reason != "interrupted":
            marks[number].close(done)
    return those_there(runs, ended)


def quiet(line: str) -> None:
    """Report nothing: nobody looks."""


def one_by_one(
    problem: RecordProblem, em: Em, starts: Sequence[Start], report: Report
) -> list[Run]:
    """Follow the starts one after another."""
    runs: list[Run] = []
    try:
        for number, start in enumerate(starts):
            runs.append(follow_start(problem, em, start, number, report))
            if runs[-1].reason == "interrupted":
                break
    except KeyboardInterrupt:
        return those_there(runs, ended=True)
    return runs


def follow_start(problem: RecordProblem, em: Em, start: Start, number: int, report: Report) -> Run:
    """Make a start and follow it, unless the journal has what came of it."""
    solver = replace(em, limits=EXPLORE)
    mark = Bookmark.of(problem, solver, number, start)
    if (found := finished_run(mark)) is not None:
        return found
    return run(solver, problem, *start(problem), start=number, report=report, bookmark=mark)


def those_there(runs: Sequence[Run | None], ended: bool) -> list[Run]:
    """The runs that are there; where all has ended early the last one says so."""
    found = [r for r in runs if r is not None]
    if ended and not found:
        raise KeyboardInterrupt
    if ended:
        found[-1] = replace(found[-1], reason="interrupted")
    return found


def best_start(runs: Sequence[Run]) -> int:
    """Which run has the lowest objective."""
    return int(np.argmin([r.objective for r in runs]))


def interrupted(runs: Sequence[Run]) -> bool:
    """Whether the user has ended the search."""
    return any(r.reason == "interrupted" for r in runs)
