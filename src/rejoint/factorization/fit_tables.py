"""Fit tables from several starts: the stages that are followed from each, and the result.

Tables with unknown cells are fitted, filled by the model, and fitted again. For the
Kullback-Leibler solver on counts this is EM on the likelihood of what is known; for least squares
each round lowers the squared error of the known cells. Cells taken as zero instead would pull the
model towards zero there.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rejoint.arrays import FloatArray, sum_to
from rejoint.factorization.admm import Admm
from rejoint.factorization.algebraic import Algebraic, Subtables
from rejoint.factorization.kl import Kl
from rejoint.factorization.loss import SQUARES, Loss, as_loss
from rejoint.factorization.newton import Newton
from rejoint.factorization.pairs import Pairs, largest_pair_rank
from rejoint.factorization.problem import (
    TableProblem,
    make_problem,
    mix_with_independence,
    random_model,
)
from rejoint.factorization.table_goals import contradictions, exact_goals
from rejoint.factorization.table_policy import POLICY
from rejoint.factorization.unfolding import FlatTables
from rejoint.marginals.marginals import Marginals
from rejoint.messages import join_messages
from rejoint.model import Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.search import best_run, is_interrupted, search
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits, Run, Solver, Stop, is_solver, missing_needs
from rejoint.text import cite, plural

AnySolver = Solver[Any, Any]


@dataclass(frozen=True)
class Stage:
    """A solver, and the loss that it minimizes."""

    solver: AnySolver
    loss: Loss


@dataclass(frozen=True)
class Auto:
    """Algebraic where it can, else ADMM from random starts; then Newton, then ADMM to finish.

    Newton's softmax coordinates end the crawl through flat valleys but only approach zeros;
    ADMM reaches them, so it has the last word unless the fit is exact already. Under a loss other
    than squares the last stage is EM where the loss allows it, else Newton.

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
        than many sweeps. For tables with sampling noise it is at most the ``dense_limit`` of
        ``polish``.

    Examples
    --------
    >>> Auto().explore.limits.max_steps
    30
    """

    explore: Admm = field(default=Admm(limits=Limits(max_steps=30, progress=3e-2)))
    polish: Newton = field(default=Newton(limits=Limits(max_steps=200, progress=1e-4, window=8)))
    finish: Admm = field(default=Admm(limits=Limits(max_steps=300, progress=1e-4, window=20)))

    polish_limit: int = 5000

    def within(self, noise: float) -> "Auto":
        """Return a copy whose stages stop when the gain is small relative to the sampling noise."""
        if not noise:
            return self

        def limited(solver: Any) -> Any:
            gain = max(solver.limits.gain, POLICY.noise_gain * noise)
            return replace(solver, limits=replace(solver.limits, gain=gain))

        return replace(
            self,
            polish=limited(self.polish),
            finish=limited(self.finish),
            polish_limit=min(self.polish_limit, self.polish.dense_limit),
        )

    def stages(self, problem: TableProblem, rank: int) -> tuple[Stage, ...]:
        """The solvers for a problem, in order."""
        last: tuple[AnySolver, ...] = (self.finish, Kl(), Newton())
        able = [solver for solver in last if not missing_needs(solver, problem)]
        return (*self.approach(problem, rank), Stage((able or [last[-1]])[0], problem.loss))

    def approach(self, problem: TableProblem, rank: int) -> tuple[Stage, ...]:
        """The stages before the last: least squares, from where other losses begin too."""
        explore, polish = Stage(self.explore, SQUARES), Stage(self.polish, SQUARES)
        if (1 + problem.layout.size) * rank > self.polish_limit:
            return (explore,)
        return explore, polish


METHODS: dict[str, type[Any]] = {
    "auto": Auto,
    "algebraic": Algebraic,
    "admm": Admm,
    "newton": Newton,
    "kl": Kl,
    "pairs": Pairs,
}


def as_method(solver: Any) -> AnySolver | Auto:
    """A solver object, made from its name if need be."""
    made: Any = METHODS[solver]() if isinstance(solver, str) and solver in METHODS else solver
    if not (is_solver(made) or isinstance(made, Auto)):
        raise ValueError(
            f"solver={cite(solver)} is not supported; use one of {', '.join(map(repr, METHODS))}, "
            "'smooth', or a solver object such as rejoint.factorization.Admm()."
        )
    method: AnySolver | Auto = made
    return method


Fit = Callable[[Marginals, LowRankPMF | None, bool], FitResult]


def fit_filled(marginals: Marginals, session: Session, fit: Fit) -> FitResult:
    """Alternate between a fit and filling unknown cells by it, until these rest.

    ``fit`` fits tables, from a model if one is given, briefly or to the end.
    """
    result = fit(marginals, None, False)
    best = best_run(result.starts)
    rounds, moved = 0, np.inf
    while rounds < POLICY.fill_rounds and moved > POLICY.filled:
        session.offer(partial(_interrupt, result), certain=True)
        filled = marginals.filled(result.pmf)
        change = np.add.reduceat(np.abs(marginals.flat - filled.flat), marginals.starts[:-1])
        moved = float((change / np.maximum(filled.totals, 1e-300)).max())
        marginals, rounds = filled, rounds + 1
        extend = partial(_extend, result, best, _describe_fill(marginals, rounds, moved))
        with session.convert(extend):
            is_last = moved <= POLICY.filled or rounds == POLICY.fill_rounds
            after = fit(marginals, result.pmf, not is_last)
        result = extend(after)
    return result


def _interrupt(result: FitResult) -> FitResult:
    """The result of the last round, where the next one was interrupted before its first step."""
    last = replace(result.starts[-1], stop=Stop.INTERRUPTED)
    stop = f"{result.stop} Interrupted."
    return replace(result, starts=(*result.starts[:-1], last), stop=stop)


def _extend(before: FitResult, best: int, note: str, after: FitResult) -> FitResult:
    """The result with its best start followed on."""
    starts = list(before.starts)
    records = (*starts[best].records, *after.starts[0].records)
    starts[best] = replace(after.starts[0], records=records)
    history = tuple(record for run in starts for record in run.records)
    return replace(after, starts=tuple(starts), history=history, stop=after.stop + note)


def shorten(method: AnySolver | Auto) -> AnySolver | Auto:
    """The same solver with few steps: more are lost on a fill that is not final."""
    if isinstance(method, Auto):
        polish, finish = shorten(method.polish), shorten(method.finish)
        return replace(method, polish=polish, finish=finish)  # type: ignore[arg-type]
    if is_dataclass(method) and any(f.name == "limits" for f in fields(method)):
        limits = replace(method.limits, max_steps=POLICY.fill_steps)
        return replace(method, limits=limits)
    return method


def _describe_fill(marginals: Marginals, rounds: int, moved: float) -> str:
    assert marginals.unknown is not None
    text = (
        f" {plural(len(marginals.unknown), 'cell')} of the tables not known: filled by what the "
        f"model expects, within their bounds, in {plural(rounds, 'round')}"
    )
    if moved > POLICY.filled:
        return f"{text}; the last still moved {moved:.1e} of a table's mass."
    return f"{text}, until nothing moved by more than {moved:.0e} of a table's mass."


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
        noise = problem.noise if chosen is SQUARES else 0.0
        if isinstance(plan, Auto):
            plan = plan.within(noise)
        first = as_start(start if pmf is None else pmf, tables, rank)
        starts = plan_starts(problem, rank, plan, first, n_init, session.rng)
        conclude = partial(make_result, problem, tables)
        enough = partial(is_enough, noise=noise)
        return conclude(
            search(problem, starts, follow_stages, session, offer=conclude, enough=enough)
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
    """Yield the starts: the given model, or one algebraic start and random ones.

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
    direct = find_direct_solver(problem, rank, rng) if wanted else None
    if direct is not None:
        prelude = Stage(direct, SQUARES)
        yield Start(random_model(problem, rank, rng), (prelude, *(stages[1:] or stages)))
        n_init -= 1
    for _ in range(1 if getattr(method, "deterministic", False) else n_init):
        yield Start(random_model(problem, rank, rng), stages)


def find_direct_solver(
    problem: TableProblem, rank: int, rng: np.random.Generator
) -> AnySolver | None:
    """The solver without iterations that can do this rank with these tables, if there is one."""
    largest = max(map(len, problem.subsets), default=0)
    if problem.moments or largest < 2:
        return None
    subtables = Subtables(problem)
    if largest == 2:
        small = problem.layout.size <= POLICY.most_pair_levels
        return Pairs() if small and largest_pair_rank(subtables) >= rank else None
    if any(subtables.largest_rank(pairs=pairs) >= rank for pairs in (False, True)):
        return Algebraic(seed=int(rng.integers(2**31)))
    return None


def is_enough(runs: Sequence[Run], noise: float = 0.0) -> bool:
    """Whether no further starts are needed; ``noise`` is the objective expected by chance."""
    best = min(run.objective for run in runs)
    most = (1.0 + POLICY.agreement) * best + POLICY.noise_alike * noise
    solved = min(run.error for run in runs) <= POLICY.solved
    is_repeated = sum(run.objective <= most for run in runs) >= POLICY.alike_starts
    return solved or (is_repeated and len(runs) >= POLICY.least_starts)


def follow_stages(
    problem: TableProblem, start: Start, number: int, session: Session, key: str
) -> Run:
    """Run the stages of a start one after another, each from where the last one stopped."""
    done: Run | None = None
    shown: Run | None = None
    model = start.model
    before = start.stages[0].loss
    for stage in start.stages:
        # What is left of a model that is very near to the tables is chance.
        least = POLICY.noise_share * problem.noise if problem.loss is SQUARES else -np.inf
        if stage is not start.stages[-1] and done is not None and done.objective <= least:
            continue
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
        if isinstance(stage.solver, Algebraic | Pairs) and done.error > POLICY.solved:
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
    if best.error <= POLICY.solved:
        achieved = f"The tables are met exactly: relative error {best.error:.1e}"
    elif best.stop is Stop.STALLED and best.records[-1].solver == "admm":
        more = "A larger inner= of Admm may improve it, or solver='newton'."
    elif not is_interrupted(runs) and best.stop in (Stop.PROGRESS, Stop.OPTIMAL):
        more = (
            "The rest can be sampling noise, tables that disagree, a rank above "
            f"{best.model.rank}, or a local minimum."
        )
    distances = table_distances(marginals, best.model)
    pmf = LowRankPMF.of_model(best.model, marginals.domain)
    return FitResult.of(pmf, runs, achieved, best=best, more=more, misfits=distances)


def lift_seen(result: FitResult, marginals: Marginals, weighting: str) -> FitResult:
    """The result with no probability of zero where tables that it misses have mass.

    In each class a level is at least as probable as one record more, spread by the variable's own
    shares, would make it. Tables of shares do not say how many records they have; they are lifted
    only where a cell with mass has none in the model, by no more than the tables are missed.
    """
    if result.error <= POLICY.solved or not len(marginals):
        return result
    counted, pmf, lifted = bool(marginals.counted.all()), result.pmf, []
    if not counted and not lacks_mass(pmf, marginals):
        return result
    assumed = max(float(POLICY.assumed_records), 1.0 / max(result.misfits.values()))
    for factor, (shares, total) in zip(pmf.factors, _largest_shares(marginals), strict=True):
        records = total if counted else assumed
        columns = np.maximum(factor, shares[:, None] / (records * pmf.weights + 1.0))
        lifted.append(columns / columns.sum(axis=0))
    if all(map(np.array_equal, lifted, pmf.factors)):
        return result
    model, problem = Model.of(pmf.weights, lifted), make_problem(marginals, weighting)
    error, note = problem.relative_error(model), ""
    if f"{error:.2g}" != f"{result.error:.2g}":
        what = "one record more" if counted else f"one of {plural(round(assumed), 'record')}"
        note = (
            f"No class excludes a level that was seen: it is as probable as {what} would make it, "
            f"which makes the relative error {error:.2g}."
        )
    return replace(
        result,
        pmf=LowRankPMF(pmf.weights, lifted, pmf.domain),
        stop=join_messages([result.stop, note]),
        error=error,
        misfits=table_distances(marginals, model),
    )


def lacks_mass(pmf: LowRankPMF, marginals: Marginals) -> bool:
    """Whether a cell has mass in a table and none in the model."""
    return any(
        bool((pmf.marginal(names) < POLICY.absent * marginals.shares(i)).any())
        for i, names in enumerate(marginals.subsets)
    )


def _largest_shares(marginals: Marginals) -> list[tuple[FloatArray, float]]:
    """Shares of each variable, and the records behind them, by the table with most records."""
    shape = marginals.domain.shape
    shares = [(np.zeros(levels), 1.0) for levels in shape]
    for i in np.argsort(marginals.totals, kind="stable"):
        for n in marginals.index_subsets[i]:
            share = sum_to(marginals.shares(i), marginals.index_subsets[i], (n,))
            shares[n] = share, float(marginals.totals[i])
    return shares


def describe_miss(result: FitResult, marginals: Marginals) -> str:
    """Describe how far a model of a given rank misses tables, and what would meet them.

    Nothing where it meets them: to a millionth of their mass, within the bounds of numbers that
    were rounded or suppressed, or by chance where they are of a sample.
    """
    if not len(marginals):
        return ""
    missed = _missed_tables(result, marginals)
    if not missed:
        return ""
    worst = max(missed, key=missed.__getitem__)
    more = f", and {len(missed) - 1} more are missed" if len(missed) > 1 else ""
    met = not marginals.noisy and not contradictions(marginals)
    return (
        f"Rank {result.pmf.rank} misses the tables: {missed[worst]:.2g} of the mass of "
        f"({', '.join(worst)}) is in other cells{more}. Leave out rank= to "
        f"{'meet them' if met else 'come closer to them'} with more classes."
    )


def _missed_tables(result: FitResult, marginals: Marginals) -> dict[tuple[str, ...], float]:
    """Tables that a model misses, with the share of their mass that is in other cells."""
    if marginals.noisy:
        fits = [fit for fit in marginals.compare(result.pmf) if not np.isnan(fit.chance)]
        beyond = sum(fit.distance for fit in fits) > sum(fit.chance for fit in fits)
        return {f.names: f.distance for f in fits if f.distance > f.chance} if beyond else {}
    missed: dict[tuple[str, ...], float] = {}
    for goal in exact_goals(marginals):
        names = tuple(marginals.domain.names[n] for n in goal.subset)
        now = result.pmf.marginal(names).ravel()
        distance = 0.5 * float(np.abs(goal.project(now, np.zeros_like(now)) - now).sum())
        if distance > POLICY.missed:
            missed[names] = max(distance, missed.get(names, 0.0))
    return missed


def as_start(
    start: Model | LowRankPMF | str | None, marginals: Any, rank: int | str
) -> Model | str | None:
    """Return the model to start from if one is given, else the argument itself."""
    if start is None or isinstance(start, Model):
        return start
    if isinstance(start, str) and start in ("random", "algebraic"):
        return start
    if not isinstance(start, LowRankPMF):
        raise ValueError(f"start must be a LowRankPMF, 'random' or 'algebraic', got {cite(start)}.")
    if start.rank != rank:
        asked = f"rank={cite(rank)} was requested"
        raise ValueError(f"start has rank {start.rank}, but {asked}: give rank={start.rank}.")
    aligned = start.align(marginals.domain)
    return Model.of(aligned.weights, aligned.factors)


def table_distances(marginals: Marginals, model: Model) -> dict[tuple[str, ...], float]:
    """Total variation distance between each table and the model's, worst first."""
    cells = FlatTables(model.layout, marginals.index_subsets)
    shares = [marginals.shares(i).ravel() for i in range(len(marginals))]
    distances = cells.distances(np.concatenate(shares), cells.of_model(model)) if shares else ()
    pairs = zip(marginals.subsets, map(float, distances), strict=True)
    return dict(sorted(pairs, key=lambda pair: -pair[1]))
