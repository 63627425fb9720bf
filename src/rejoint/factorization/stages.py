"""Fit tables from several starts: the stages that are followed from each, and the result."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rejoint.factorization.algebraic import Algebraic, Subtables
from rejoint.factorization.auto import AnySolver, Auto, Stage, as_method
from rejoint.factorization.intervals import fit_filled, shorten
from rejoint.factorization.loss import SQUARES, as_loss
from rejoint.factorization.problem import TableProblem, cell_rows, make_problem
from rejoint.factorization.random_start import mix_with_independence, random_model
from rejoint.factorization.unfolding import khatri_rao
from rejoint.marginals.marginals import Marginals
from rejoint.model import Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.search import best_run, is_interrupted, search
from rejoint.solver.session import Session
from rejoint.solver.solver import Run, Stop

#: Relative error of the tables below which a start has found the answer and the others are
#: spared: far below what noise or a wrong rank leaves.
SOLVED = 1e-10

#: So many starts whose objectives agree this closely, of at least so many, have most likely
#: found the best model; two alike are often the same local minimum.
AGREEMENT, ALIKE_STARTS, LEAST_STARTS = 1e-3, 3, 5


def fit_tables(
    marginals: Marginals,
    rank: int,
    solver: Any,
    session: Session,
    *,
    start: Model | LowRankPMF | str | None = None,
    n_init: int = 10,
    weighting: str = "equal",
    loss: Any = None,
    fill: bool = True,
) -> FitResult:
    """Fit a model of one rank; what the tables leave open is not looked at.

    Parameters are those of :func:`~rejoint.factorize`; ``fill=False`` takes cells that are not
    known as they are. Ctrl-C is not caught: the session is offered the best result so far.
    """
    method = as_method(solver)

    def fit(tables: Marginals, pmf: LowRankPMF | None, brief: bool) -> FitResult:
        plan = shorten(method) if brief else method
        chosen = as_loss(getattr(plan, "loss", SQUARES) if loss is None else loss)
        problem = make_problem(tables, weighting, chosen)
        first = as_start(start if pmf is None else pmf, tables, rank)
        starts = plan_starts(problem, rank, plan, first, n_init, session.rng)
        conclude = partial(make_result, problem, tables)
        return conclude(
            search(problem, starts, follow_stages, session, offer=conclude, enough=is_enough)
        )

    if fill and marginals.unknown is not None:
        return fit_filled(marginals, session, fit)
    return fit(marginals, None, False)


@dataclass(frozen=True)
class Start:
    """A model, and the stages to run from it; a first one that is algebraic gives a rough model."""

    model: Model
    stages: Sequence[Stage]


def plan_starts(
    problem: TableProblem,
    rank: int,
    method: Auto | AnySolver,
    start: Model | str | None,
    n_init: int,
    rng: np.random.Generator,
) -> Iterator[Start]:
    """What to run from where: a given model alone, else an algebraic start and random ones.

    A loss other than squares begins where least squares ends, unless a start is asked for.
    """
    staged = isinstance(method, Auto) or (start is None and problem.loss is not SQUARES)
    if isinstance(method, Auto):
        stages = method.stages(problem, rank)
    else:
        stages = (*(Auto().approach(problem, rank) if staged else ()), Stage(method, problem.loss))
    if isinstance(start, Model):
        yield Start(start, stages[1:] or stages)
        return
    wanted = start == "algebraic" or (start is None and staged)
    if wanted and can_solve_algebraically(problem, rank):
        prelude = Stage(Algebraic(seed=int(rng.integers(2**31))), SQUARES)
        yield Start(random_model(problem, rank, rng), (prelude, *(stages[1:] or stages)))
        n_init -= 1
    for _ in range(1 if getattr(method, "deterministic", False) else n_init):
        yield Start(random_model(problem, rank, rng), stages)


def can_solve_algebraically(problem: TableProblem, rank: int) -> bool:
    """Whether the algebraic solver can do this rank with these tables."""
    if problem.moments or max(map(len, problem.subsets), default=0) < 3:
        return False
    subtables = Subtables(problem)
    return any(subtables.largest_rank(pairs=pairs) >= rank for pairs in (False, True))


def is_enough(runs: Sequence[Run]) -> bool:
    """Whether further starts can be spared."""
    best = min(run.objective for run in runs)
    alike = sum(run.objective <= (1.0 + AGREEMENT) * best for run in runs)
    solved = min(run.error for run in runs) <= SOLVED
    return solved or (alike >= ALIKE_STARTS and len(runs) >= LEAST_STARTS)


def follow_stages(
    problem: TableProblem, start: Start, number: int, session: Session, key: str
) -> Run:
    """Run the stages of a start one after another, each from where the last one stopped."""
    done: Run | None = None
    shown: Run | None = None
    model = start.model
    before = start.stages[0].loss
    for stage in start.stages:
        try:
            after = run(stage.solver, problem.under(stage.loss), model, session, start=number)
            done = join_runs(done, after, comparable=stage.loss is before)
            shown = session.unfinished[number] = measure(problem, done, stage)
        finally:
            # An interrupted run knows nothing of the stages before it.
            ended = session.unfinished.get(number)
            if ended is not None and ended is not shown:
                ended = join_runs(done, ended, comparable=stage.loss is before)
                session.unfinished[number] = measure(problem, ended, stage)
        if done.stop is Stop.EXACT:
            break
        model, before = done.model, stage.loss
        if isinstance(stage.solver, Algebraic) and done.error > SOLVED:
            model = mix_with_independence(problem, model)
    assert shown is not None
    return shown


def join_runs(done: Run | None, after: Run, *, comparable: bool = True) -> Run:
    """A run and the one that went on from its model, as one run with the better model."""
    if done is None:
        return after
    records = (*done.records, *after.records)
    if comparable and done.objective < after.objective:
        # Newton begins by lifting zeros, so that it may end above where it was given.
        after = replace(done, stop=after.stop)
    return replace(after, records=records)


def measure(problem: TableProblem, done: Run, stage: Stage) -> Run:
    """The run with its model's error of the tables, and its objective under the problem's loss.

    A run that ends early, exact or interrupted, may have been under another loss by then.
    """
    value = done.objective if stage.loss is problem.loss else problem.value(done.model)
    return replace(done, error=problem.relative_error(done.model), objective=value)


def make_result(problem: TableProblem, marginals: Marginals, runs: Sequence[Run]) -> FitResult:
    """The best run as a result, with the sentence that says how well the tables are met."""
    best = runs[best_run(runs)]
    achieved = f"The tables are met to a relative error of {best.error:.2g}"
    more = ""
    if best.error <= SOLVED:
        achieved = f"The tables are met exactly: relative error {best.error:.1e}"
    elif not is_interrupted(runs) and best.stop is not Stop.STEPS:
        rank = best.model.rank
        more = f"What is left is sampling noise, tables that disagree, or a rank above {rank}."
    distances = table_distances(problem, marginals, best.model)
    return FitResult.of(
        as_pmf(best.model, marginals), runs, achieved, best=best, more=more, misfits=distances
    )


def as_pmf(model: Model, tables: Any) -> LowRankPMF:
    """The model with the labels of some tables, classes in decreasing order of weight."""
    model = model.sorted()
    return LowRankPMF(model.weights, model.parts, tables.domain)


def as_start(
    start: Model | LowRankPMF | str | None, marginals: Any, rank: int
) -> Model | str | None:
    """The model to begin at, if one is given; else what was said."""
    if start is None or isinstance(start, Model):
        return start
    if isinstance(start, str) and start in ("random", "algebraic"):
        return start
    if not isinstance(start, LowRankPMF):
        raise ValueError(f"start must be a LowRankPMF, 'random' or 'algebraic', got {start!r}.")
    if start.rank != rank:
        raise ValueError(f"start has rank {start.rank}, but rank={rank} was asked for.")
    aligned = start.align(marginals.domain)
    return Model.of(aligned.weights, aligned.factors)


def table_distances(
    problem: TableProblem, marginals: Marginals, model: Model
) -> dict[tuple[str, ...], float]:
    """Total variation distance between each table and the model's, worst first."""
    found = {}
    for i, names in enumerate(marginals.subsets):
        rows = cell_rows(problem, marginals.index_subsets[i])
        cells = khatri_rao(model.factors, rows) @ model.weights
        found[names] = 0.5 * float(np.abs(marginals.shares(i).ravel() - cells).sum())
    return dict(sorted(found.items(), key=lambda item: -item[1]))
