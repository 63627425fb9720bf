"""Fits to records that are read part by part: a sample to start from, then passes over all."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from rejoint.domain.labels import plural
from rejoint.estimation.bayes import Bayes
from rejoint.estimation.em import Em
from rejoint.estimation.exploring import Report, best_start, interrupted
from rejoint.estimation.fitting import (
    REASONS,
    Search,
    as_pmf,
    as_result,
    evident_strengths,
    find_map,
)
from rejoint.estimation.mixing import worth
from rejoint.estimation.passes import ScanProblem
from rejoint.estimation.posterior import Posterior
from rejoint.estimation.priors import make_prior
from rejoint.estimation.problem import Array, RecordProblem
from rejoint.estimation.starts import Model
from rejoint.estimation.tidy import tidy
from rejoint.pmf import LowRankPMF
from rejoint.solver import FitResult, Limits, Run, run

__all__ = ["fit_scan", "of_sample"]

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
