"""Fits to records that are read part by part: a sample to start from, then passes over all."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np

from rejoint.estimation.data import Array, RecordProblem
from rejoint.estimation.effective_draws import worth
from rejoint.estimation.em import Em
from rejoint.estimation.explore import (
    Report,
    best_start,
    elsewhere,
    explore,
    interrupted,
    side_by_side,
)
from rejoint.estimation.gibbs import Bayes
from rejoint.estimation.posterior import Posterior
from rejoint.estimation.priors import first_strengths, make_prior
from rejoint.estimation.starts import CAUTIOUS, Model, given_model, make_starts, widen
from rejoint.estimation.streamed import ScanProblem
from rejoint.estimation.variational import Variational, VariationalState
from rejoint.pmf.pmf import LowRankPMF
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.solver import Limits, Run
from rejoint.text import plural

#: A class lighter than this is dead; columns closer than SAME belong to one class.
DEAD, SAME = 1e-9, 1e-6


def tidy(weights: Array, factors: Array) -> tuple[Array, Array, str]:
    """Drop dead classes, merge equal ones, sort by weight; say so if any went."""
    alive = weights > DEAD
    order = [int(f) for f in np.argsort(-weights, kind="stable") if alive[f]]
    kept: list[int] = []
    mass = weights.copy()
    for f in order:
        twin = next((g for g in kept if np.abs(factors[:, f] - factors[:, g]).max() < SAME), None)
        if twin is None:
            kept.append(f)
        else:
            mass[twin] += mass[f]
    dead, merged = int((~alive).sum()), len(order) - len(kept)
    said = [f"{dead} of {len(weights)} classes had no weight left"] if dead else []
    said += [f"{merged} were equal to others"] if merged else []
    words = f" {' and '.join(said).capitalize()}: dropped." if said else ""
    return mass[kept] / mass[kept].sum(), factors[:, kept], words


#: Modes that are less probable than the best by this much (log) count for nothing.
POORER = 10.0

#: Records per parameter from which chains move so little that they must start at a finished mode.
MANY = 100

#: How often zeros are tried to be lifted again, and the largest pass (cells x F) to do so.
LIFTS, QUICK = 5, 4_000_000

REASONS = {
    "optimal": "no move is left",
    "progress": "the likelihood has stopped rising",
    "steps": "the limit of steps was reached while it was still rising: raise max_steps",
    "interrupted": "interrupted; this is the best model so far",
}


@dataclass(frozen=True)
class Search:
    """From where to look for the maximum: only from given starts, or from many of all kinds."""

    rng: np.random.Generator
    report: Report
    count: int
    given: Sequence[Model] = ()
    known: Sequence[Model] = ()
    executor: Executor | None = None

    def explore(self, problem: RecordProblem, rank: int, em: Em) -> list[Run]:
        """Follow each start for a while."""
        starts = [given_model(model) for model in self.given]
        if not starts:
            starts = make_starts(problem, rank, self.count, em, self.rng, self.known)
        if self.executor is not None:
            return elsewhere(problem, em, starts, self.executor)
        with side_by_side(problem, rank, len(starts)) as executor:
            return explore(problem, em, starts, self.report, executor)

    def widened(self, problem: RecordProblem, rank: int) -> "Search":
        """The same for a larger rank."""
        wide = [widen(problem, model, rank, CAUTIOUS, self.rng) for model in self.known]
        return replace(self, known=wide)


def fit_ml(problem: RecordProblem, rank: int, em: Em, search: Search) -> FitResult:
    """Maximise the likelihood (or, with a prior, the posterior) from several starts."""
    runs = search.explore(problem, rank, em)
    best = best_start(runs)
    if not interrupted(runs):
        runs[best] = finish(problem, em, runs[best], best, search.report)
    return as_result(problem, runs, runs[best])


def finish(problem: RecordProblem, em: Em, found: Run, number: int, report: Report) -> Run:
    """Follow one run to the end."""
    em = em.within(found.objective)
    last = run(em, problem, found.weights, found.factors, start=number, report=report)
    records = (*found.records, *last.records)
    for _ in range(LIFTS if problem.codes.size * len(last.weights) <= QUICK else 0):
        if last.reason == "interrupted":
            break
        # Probabilities that fell to nearly zero on the way come back slowly, if at all.
        lifted = 0.99 * last.factors + 0.01 * problem.centre[:, None]
        again = run(em, problem, last.weights, lifted, start=number, report=report)
        records = (*records, *again.records)
        if again.objective > last.objective - 1e-3:
            last = replace(last, reason=again.reason)
            break
        last = again
    return replace(last, records=records)


def fit_map(problem: RecordProblem, rank: int, search: Search) -> FitResult:
    """Maximum a posteriori, with the strengths that the evidence's lower bound prefers."""
    return as_result(problem, *find_map(problem, rank, search))


def find_map(problem: RecordProblem, rank: int, search: Search) -> tuple[list[Run], Run]:
    """The runs from all starts, and the best of them, which has been followed to the end."""
    first = Em(prior=make_prior(problem, first_strengths(problem), 0.0))
    runs = search.explore(problem, rank, first)
    best = best_start(runs)
    if not interrupted(runs):
        strengths = evident_strengths(problem, runs[best])
        em = Em(prior=make_prior(problem, strengths, 0.0))
        runs[best] = finish(problem, em, runs[best], best, search.report)
    return runs, runs[best]


def evident_strengths(problem: RecordProblem, found: Run) -> Array:
    """Strengths of the priors after some variational steps from a fit."""
    solver = Variational(limits=Limits(max_steps=50, exact=-1.0))
    state: VariationalState = solver.init(problem, found.weights, found.factors)
    for _ in range(solver.limits.max_steps):
        before, state = state, solver.step(problem, state)
        if np.allclose(before.strengths, state.strengths, rtol=1e-3):
            break
    return state.strengths


def fit_bayes(
    problem: RecordProblem,
    rank: int,
    bayes: Bayes,
    search: Search,
    spare: int = 0,
) -> FitResult:
    """Posterior draws from chains that start at modes; ``pmf`` is the best mode.

    Where the rank was estimated, most chains have ``spare`` classes more than ``pmf``, so that the
    draws also say how unsure the rank is.
    """
    em = Em(prior=make_prior(problem, first_strengths(problem), 0.0))
    runs = search.explore(problem, rank, em)
    best = best_start(runs)
    wide = runs
    if spare and not interrupted(runs):
        wide = search.widened(problem, rank + spare).explore(problem, rank + spare, em)
    top = best_start(wide)
    if not interrupted(wide) and problem.total > MANY * problem.parameters(rank):
        wide[top] = finish(problem, em, wide[top], top, search.report)
    if interrupted(runs) or interrupted(wide):
        runs[best] = replace(runs[best], reason="interrupted")
        return as_result(problem, runs, runs[best])
    # A chain hardly ever leaves a poor mode of a large sample: all start at good ones.
    first = wide[top]
    good = [first, *(r for r in wide if r is not first and r.objective <= first.objective + POORER)]
    begun = [good[k % len(good)] for k in range(bayes.chains)]
    if spare:  # every other chain is as narrow as the rank found: draws of both are the posterior
        begun[1::2] = [runs[best]] * (bayes.chains // 2)
    models = [(r.weights, r.factors) for r in begun]
    draws, ended = bayes.sample(problem, models, search.rng, search.report)
    if ended:
        runs[best] = replace(runs[best], reason="interrupted")
    if not draws:
        return as_result(problem, runs, runs[best])
    strengths = np.median([draw.strengths for draw in draws], axis=0)
    if not ended:
        em = Em(prior=make_prior(problem, strengths, 0.0))
        runs[best] = finish(problem, em, runs[best], best, search.report)
    posterior = Posterior(tuple(as_pmf(problem, d.weights, d.factors) for d in draws))
    words = f" {plural(len(draws), 'posterior draw')} from {plural(bayes.chains, 'chain')}."
    return as_result(problem, runs, runs[best], posterior, words)


def as_result(
    problem: RecordProblem,
    runs: Sequence[Run],
    best: Run,
    posterior: Posterior | None = None,
    more: str = "",
) -> FitResult:
    """The best run as a model, with what is to be said about it."""
    weights, factors, gone = tidy(best.weights, best.factors)
    value = problem.expect(weights, factors).log_likelihood
    reason = REASONS["interrupted" if interrupted(runs) else best.reason]
    steps = sum(record.step > 0 for r in runs for record in r.records)
    stop = (
        f"Log-likelihood {value:.6g} after {plural(steps, 'step')} from "
        f"{plural(len(runs), 'start')}; {reason} (residual {best.residual:.1e}).{gone}{more}"
    )
    draws = () if posterior is None else posterior.draws
    return FitResult(
        pmf=as_pmf(problem, weights, factors, draws),
        stop=stop,
        history=tuple(record for r in runs for record in r.records),
        error=float("nan"),
        residual=best.residual,
        starts=tuple(runs),
        misfits={},
        log_likelihood=value,
        posterior=posterior,
    )


def interrupted_result(problem: RecordProblem, weights: Array, factors: Array) -> FitResult:
    """A model that the user was content with before any fit of its own began."""
    value = -problem.expect(weights, factors).log_likelihood
    nothing = float("nan")
    only = Run(weights, factors, value, nothing, nothing, "interrupted")
    return as_result(problem, [only], only)


def as_pmf(
    problem: RecordProblem, weights: Array, factors: Array, draws: Sequence[LowRankPMF] = ()
) -> LowRankPMF:
    """A model with its labels, and with some of the draws if there are any."""
    factors = problem.columns(factors)
    parts = [factors[problem.rows(n)] for n in range(len(problem.levels))]
    return LowRankPMF(weights, parts, problem.domain, draws)


#: Rise of the log-likelihood over ten passes below which a fit has arrived. Parameters are then
#: within a hundredth of their standard errors, and more would be many passes over all records.
NATS = 1e-2

#: Steps over all records to where a chain with spare classes begins: more of them come slowly.
SOME = 30


def fit_scan(
    problem: ScanProblem,
    sample: RecordProblem,
    rank: int,
    solver: str | Em | Bayes,
    search: Search,
    spare: int = 0,
) -> FitResult:
    """Fit a sample from several starts, then go on from there with all records.

    Where the rank was estimated, chains have ``spare`` classes more, as those in memory have.
    """
    em = solver if isinstance(solver, Em) else Em(limits=limits_of(problem))
    believes = solver == "map" or isinstance(solver, Bayes)
    models = list(search.given)
    runs: list[Run] = []
    if not models or believes:
        runs, best = find_map(sample, rank, search)
        if interrupted(runs):
            return of_sample(as_result(sample, runs, best), problem)
        models = models or [tidy(best.weights, best.factors)[:2]]
    if believes:
        strengths = evident_strengths(sample, best)
        em = replace(em, prior=make_prior(problem, strengths, 0.0))
    try:
        result = follow(problem, em, models[0], search.report)
    except KeyboardInterrupt:
        if not runs:
            raise
        return of_sample(as_result(sample, runs, best), problem)
    if not isinstance(solver, Bayes) or interrupted(result.starts):
        return result
    try:
        wide = [wider(problem, sample, rank + spare, strengths, search)] if spare else []
    except KeyboardInterrupt:
        return without_draws(result)
    return with_draws(problem, solver, result, [*wide, *result.starts], strengths, search)


def limits_of(problem: ScanProblem) -> Limits:
    """When to stop, in proportion to the log-likelihood without classes."""
    alone = problem.columns(problem.centre[:, None])[:, 0]
    size = -float(problem.level_totals @ np.log(alone))
    return Limits(max_steps=2000, progress=NATS / max(size, 1.0), window=10, exact=-1.0)


def follow(problem: ScanProblem, em: Em, model: Model, report: Report) -> FitResult:
    """Take steps over all records, from one model on."""
    problem, step = told_twice(problem, report, "first pass")
    done = run(em, problem, *model, report=step)
    ended = done.reason == "interrupted"
    weights, factors, gone = tidy(done.weights, done.factors)
    value = -done.objective
    if em.prior is not None:
        stacked = np.vstack([done.weights, done.factors])
        value -= float(np.sum(em.prior.stacked * np.log(np.maximum(stacked, 1e-300))))
    if gone and not ended:
        value = problem.expect(weights, factors).log_likelihood
    stop = (
        f"Log-likelihood {value:.6g} of {problem.survey.rows:,} records after "
        f"{plural(len(done.records) - 1, 'step')} from one start; {REASONS[done.reason]} "
        f"(residual {done.residual:.1e}).{gone}"
    )
    return FitResult(
        pmf=as_pmf(problem, weights, factors),
        stop=stop,
        history=done.records,
        error=float("nan"),
        residual=done.residual,
        starts=(done,),
        misfits={},
        log_likelihood=value,
    )


def wider(
    problem: ScanProblem, sample: RecordProblem, rank: int, strengths: Array, search: Search
) -> Run:
    """Where a chain of more classes begins: the best of the sample, after some steps over all."""
    em = Em(prior=make_prior(sample, strengths, 0.0))
    runs = search.widened(sample, rank).explore(sample, rank, em)
    best = runs[best_start(runs)]
    limits = replace(limits_of(problem), max_steps=SOME)
    em = Em(prior=make_prior(problem, strengths, 0.0), limits=limits)
    problem, step = told_twice(problem, search.report, "first pass with spare classes")
    if not interrupted(runs):
        best = run(em, problem, best.weights, best.factors, report=step)
    if best.reason == "interrupted":
        raise KeyboardInterrupt
    return best


def with_draws(
    problem: ScanProblem,
    bayes: Bayes,
    found: FitResult,
    begun: Sequence[Run],
    strengths: Array,
    search: Search,
) -> FitResult:
    """The result with posterior draws, of chains that begin at some runs: a pass a sweep."""
    models = [(r.weights, r.factors) for r in begun]
    starts = [models[k % len(models)] for k in range(bayes.chains)]
    problem, step = told_twice(problem, search.report, "first draw")
    draws, ended = bayes.sample(problem, starts, search.rng, step, strengths)
    if not draws:
        return without_draws(found)
    posterior = Posterior(tuple(as_pmf(problem, d.weights, d.factors) for d in draws))
    words = f"{plural(len(draws), 'posterior draw')} from {plural(bayes.chains, 'chain')}"
    if ended:
        found, words = cut_short(found), f"Interrupted after {words}"
    else:
        words += f", {worth(posterior.draws, bayes.chains)}"
    pmf = LowRankPMF(found.pmf.weights, found.pmf.factors, problem.domain, posterior.draws)
    return replace(found, pmf=pmf, posterior=posterior, stop=f"{found.stop} {words}.")


def without_draws(found: FitResult) -> FitResult:
    """What there is if the user ends it before the first draw is kept."""
    words = f"{found.stop} Interrupted before there were posterior draws."
    return replace(cut_short(found), stop=words)


def cut_short(found: FitResult) -> FitResult:
    """The result as one that the user has ended."""
    return replace(found, starts=tuple(replace(r, reason="interrupted") for r in found.starts))


def told_twice(
    problem: ScanProblem, report: Report, first: str
) -> tuple[ScanProblem, Callable[[str], None]]:
    """The problem, and what is to be told each step: passes then tell of the last one, too."""
    last = first

    def step(line: str) -> None:
        nonlocal last
        last = line
        report(line)

    return replace(problem, report=lambda line: report(f"{last}; this pass {line}")), step


def of_sample(near: FitResult, problem: ScanProblem) -> FitResult:
    """What there is if the user ends it before the first pass has."""
    rows = f"{len(problem.survey.sample):,} of {problem.survey.rows:,} records"
    stop = f"Interrupted; this is a fit to a sample, {rows}."
    return replace(cut_short(near), stop=stop, log_likelihood=float("nan"))
