"""What a fit says of itself: why it stopped, how well the tables are met, what to try."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rejoint.factorization.admm import Admm
from rejoint.factorization.algebraic import Algebraic, Subtables
from rejoint.factorization.kl import Kl, check_tables, evaluate
from rejoint.factorization.newton import Newton
from rejoint.factorization.problem import Array, Problem, cell_rows, objective
from rejoint.factorization.random_start import inward, random_model
from rejoint.factorization.unfolding import khatri_rao
from rejoint.marginals.marginals import Marginals
from rejoint.solver.run import relative_error, run
from rejoint.solver.solver import Limits, Run, Solver

Report = Callable[[str], None] | None
AnySolver = Solver[Any, Any]
Model = tuple[Array, Array]

#: Relative error of the tables below which a start has found the answer and the others are
#: spared: far below what noise or a wrong rank leaves.
SOLVED = 1e-10

#: So many starts whose objectives agree this closely, of at least so many, have most likely
#: found the best model; two alike are often the same local minimum.
AGREEMENT, ALIKE, LEAST = 1e-3, 3, 5


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
    polish_limit : int
        Parameters beyond which the second stage is left out: a Newton step then costs more
        than many sweeps.

    Examples
    --------
    >>> Auto().explore.limits.max_steps
    30
    """

    explore: Admm = field(default=Admm(limits=Limits(max_steps=30, progress=3e-2)))
    polish: Newton = field(default=Newton(limits=Limits(max_steps=200, progress=1e-4, window=8)))
    finish: Admm = field(default=Admm(limits=Limits(max_steps=300, progress=1e-4, window=20)))

    polish_limit: int = 5000

    def stages(self, problem: Problem, rank: int) -> tuple[AnySolver, ...]:
        """The solvers for a problem, in order."""
        if (1 + sum(problem.levels)) * rank > self.polish_limit:
            return self.explore, self.finish
        return self.explore, self.polish, self.finish


@dataclass(frozen=True)
class Task:
    """One start: a model, perhaps improved algebraically, and the solvers to run from it."""

    model: Model
    stages: Sequence[AnySolver]
    prelude: Algebraic | None = None


def search(
    problem: Problem,
    rank: int,
    solver: Auto | AnySolver,
    start: Model | str | None,
    n_init: int,
    rng: np.random.Generator,
    report: Report,
) -> list[Run]:
    """Run starts until one fits exactly, several agree on the best, or all are done."""
    runs: list[Run] = []
    try:
        for task in plan(problem, rank, solver, start, n_init, rng):
            runs.append(carry_out(task, problem, len(runs), report))
            if finished(runs):
                break
    except KeyboardInterrupt:
        if not runs:
            raise
        runs[-1] = replace(runs[-1], reason="interrupted")
    return runs


def plan(
    problem: Problem,
    rank: int,
    solver: Auto | AnySolver,
    start: Model | str | None,
    n_init: int,
    rng: np.random.Generator,
) -> Iterator[Task]:
    """What to run from where: a given model alone, else an algebraic start and random ones."""
    stages = choose_stages(problem, rank, solver, alone=start is not None)
    if isinstance(start, tuple):
        yield Task(start, stages[1:] or stages)
        return
    able = start == "algebraic" or (start is None and isinstance(solver, Auto | Kl))
    if able and carries(problem, rank):
        prelude = Algebraic(seed=int(rng.integers(2**31)))
        yield Task(random_model(problem, rank, rng), stages[1:] or stages, prelude)
        n_init -= 1
    for _ in range(1 if isinstance(solver, Algebraic) else n_init):
        yield Task(random_model(problem, rank, rng), stages)


def choose_stages(
    problem: Problem, rank: int, solver: Auto | AnySolver, *, alone: bool
) -> tuple[AnySolver, ...]:
    """The solvers to run one after another; KL begins where least squares ends, unless alone."""
    if isinstance(solver, Auto):
        return solver.stages(problem, rank)
    if isinstance(solver, Kl):
        check_tables(problem)
        if not alone:
            return *Auto().stages(problem, rank)[:-1], solver
    return (solver,)


def carries(problem: Problem, rank: int) -> bool:
    """Whether the algebraic solver can do this rank with these tables."""
    if problem.moments or max(map(len, problem.subsets), default=0) < 3:
        return False
    subtables = Subtables(problem)
    return any(subtables.largest_rank(pairs=pairs) >= rank for pairs in (False, True))


def finished(runs: Sequence[Run]) -> bool:
    """Whether further starts can be spared."""
    best = min(run.objective for run in runs)
    alike = sum(run.objective <= (1.0 + AGREEMENT) * best for run in runs)
    solved = min(run.error for run in runs) <= SOLVED
    agreed = alike >= ALIKE and len(runs) >= LEAST
    return solved or agreed or runs[-1].reason == "interrupted"


def carry_out(task: Task, problem: Problem, number: int, report: Report) -> Run:
    """Run the solvers of a task one after another, each from where the last one stopped."""
    done: Run | None = None
    last: AnySolver | None = None
    model = task.model
    for stage in (*([task.prelude] if task.prelude else []), *task.stages):
        try:
            after = run(stage, problem, *model, start=number, report=report)
        except KeyboardInterrupt:
            if done is None:
                raise
            done = replace(done, reason="interrupted")
            break
        records = (*(done.records if done else ()), *after.records)
        if done is not None and done.objective < after.objective and alike(stage, last):
            # Newton begins by lifting zeros, so that it may end above where it was given.
            after = replace(done, reason=after.reason)
        done, last = replace(after, records=records), stage
        if done.reason in ("exact", "interrupted"):
            break
        model = done.weights, done.factors
        if stage is task.prelude and done.error > SOLVED:
            model = inward(problem, *model)
    assert done is not None
    return measured(done, problem, task.stages[-1])


def alike(one: AnySolver | None, other: AnySolver | None) -> bool:
    """Whether two solvers minimise the same objective, so that their values compare."""
    return isinstance(one, Kl) == isinstance(other, Kl)


def measured(done: Run, problem: Problem, solver: AnySolver) -> Run:
    """The run with its model's error of the tables, and its objective by the last solver's measure.

    A run that ends early, exact or interrupted, may have been under another solver by then.
    """
    error = relative_error(problem, objective(problem, done.weights, done.factors))
    if isinstance(solver, Kl):
        value = evaluate(problem, np.vstack([done.weights, done.factors])).objective
        return replace(done, error=error, objective=value)
    return replace(done, error=error)


REASONS = {
    "exact": "the fit is exact",
    "optimal": "no step lowers the objective any more",
    "progress": "the objective has stopped falling",
    "stalled": "sweeps no longer lower the objective: raise inner, or try solver='newton'",
    "steps": "the limit of steps was reached while it was still falling: raise max_steps",
    "interrupted": "interrupted; this is the best model so far",
}


def words(runs: Sequence[Run], best: Run, rank: int) -> str:
    """Say why the search ended, with the residual, and what to try."""
    interrupted = any(run.reason == "interrupted" for run in runs)
    reason = REASONS["interrupted" if interrupted else best.reason]
    steps = sum(record.step > 0 for run in runs for record in run.records)
    effort = f"{steps} steps from {len(runs)} start{'s' if len(runs) > 1 else ''}"
    if best.error <= SOLVED:
        return f"The tables are met exactly: relative error {best.error:.1e} after {effort}."
    text = (
        f"The tables are met to a relative error of {best.error:.2g} after {effort}; "
        f"{reason} (residual {best.residual:.1e})."
    )
    if interrupted or best.reason == "steps":
        return text
    return f"{text} What is left is sampling noise, tables that disagree, or a rank above {rank}."


def misfits(problem: Problem, marginals: Marginals, best: Run) -> dict[tuple[str, ...], float]:
    """Total variation distance between each table and the model's, worst first."""
    found = {}
    for i, names in enumerate(marginals.subsets):
        rows = cell_rows(problem, marginals.index_subsets[i])
        model = khatri_rao(best.factors, rows) @ best.weights
        found[names] = 0.5 * float(np.abs(marginals.shares(i).ravel() - model).sum())
    return dict(sorted(found.items(), key=lambda item: -item[1]))
