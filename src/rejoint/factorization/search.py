"""Starts, restarts, and the sequence of solvers behind ``solver="auto"``."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rejoint.factorization.admm import Admm
from rejoint.factorization.algebraic import Algebraic
from rejoint.factorization.groups import Subtables, largest_rank
from rejoint.factorization.newton import Newton
from rejoint.factorization.problem import Array, Problem
from rejoint.factorization.starts import inward, random_model
from rejoint.solver import Limits, Run, Solver, run

Report = Callable[[str], None] | None
AnySolver = Solver[Any, Any]
Model = tuple[Array, Array]

#: Relative error of the tables below which a start has found the answer and the others are
#: spared: far below what noise or a wrong rank leaves.
SOLVED = 1e-10

#: Two starts whose objectives agree this closely have most likely found the same, best, model.
AGREEMENT = 1e-2


@dataclass(frozen=True)
class Auto:
    """Algebraic where it can, else ADMM from random starts; then Newton, then ADMM to finish.

    Newton's softmax coordinates end the crawl through flat valleys but only approach zeros;
    ADMM reaches them, so it has the last word unless the fit is exact already.

    Parameters
    ----------
    explore : Admm
        First stage from a random start.
    polish : Newton
        Second stage.
    finish : Admm
        Last stage, for models with zeros.

    Examples
    --------
    >>> Auto().explore.limits.max_steps
    30
    """

    explore: Admm = field(default=Admm(limits=Limits(max_steps=30, progress=3e-2)))
    polish: Newton = field(default=Newton(limits=Limits(max_steps=200, progress=1e-3, window=5)))
    finish: Admm = field(default=Admm(limits=Limits(max_steps=300, progress=1e-4, window=20)))

    @property
    def stages(self) -> tuple[AnySolver, ...]:
        """The solvers, in order."""
        return self.explore, self.polish, self.finish


def search(
    problem: Problem,
    rank: int,
    solver: Auto | AnySolver,
    start: Model | str | None,
    n_init: int,
    rng: np.random.Generator,
    report: Report,
) -> list[Run]:
    """Run starts until one fits exactly, two agree on the best, or all are done."""
    runs: list[Run] = []
    for stages, model in plan(problem, rank, solver, start, n_init, rng):
        runs.append(chain(stages, problem, model, len(runs), report))
        if finished(runs):
            break
    return runs


def plan(
    problem: Problem,
    rank: int,
    solver: Auto | AnySolver,
    start: Model | str | None,
    n_init: int,
    rng: np.random.Generator,
) -> Iterator[tuple[Sequence[AnySolver], Model]]:
    """What to run from where: a given model alone, else an algebraic start and random ones."""
    stages = solver.stages if isinstance(solver, Auto) else (solver,)
    if isinstance(start, tuple):
        yield stages[-2:], start
        return
    algebraic = Algebraic(seed=int(rng.integers(2**31)))
    if isinstance(solver, Algebraic):
        yield stages, random_model(problem, rank, rng)
        return
    able = start == "algebraic" or (start is None and isinstance(solver, Auto))
    if able and carries(problem, rank):
        first = run(algebraic, problem, *random_model(problem, rank, rng))
        if first.error <= SOLVED:
            yield (algebraic, *stages[1:2]), (first.weights, first.factors)
            return
        yield stages[-2:], inward(problem, first.weights, first.factors)
        n_init -= 1
    for _ in range(n_init):
        yield stages, random_model(problem, rank, rng)


def carries(problem: Problem, rank: int) -> bool:
    """Whether the algebraic solver can do this rank with these tables."""
    if not problem.subsets or problem.moments or max(map(len, problem.subsets)) < 3:
        return False
    subtables = Subtables(problem)
    return any(largest_rank(subtables, pairs=pairs) >= rank for pairs in (False, True))


def finished(runs: Sequence[Run]) -> bool:
    """Whether further starts can be spared."""
    best = min(run.objective for run in runs)
    alike = sum(run.objective <= (1.0 + AGREEMENT) * best for run in runs)
    solved = min(run.error for run in runs) <= SOLVED
    return solved or alike >= 2 or runs[-1].reason == "interrupted"


def chain(
    stages: Sequence[AnySolver], problem: Problem, model: Model, number: int, report: Report
) -> Run:
    """Run solvers one after another, each from where the last one stopped."""
    done: Run | None = None
    for stage in stages:
        start = model if done is None else (done.weights, done.factors)
        after = run(stage, problem, *start, start=number, report=report)
        records = (*(done.records if done else ()), *after.records)
        if done is not None and done.objective < after.objective:
            # Newton begins by lifting zeros, so that it may end above where it was given.
            after = replace(done, reason=after.reason)
        done = replace(after, records=records)
        if done.reason in ("exact", "interrupted"):
            break
    assert done is not None
    return done
