"""The fits behind ``estimate``: starts, stages, and what comes out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from rejoint.domain.labels import plural
from rejoint.estimation.bayes import Bayes
from rejoint.estimation.em import Em
from rejoint.estimation.posterior import Posterior
from rejoint.estimation.priors import first_strengths, make_prior
from rejoint.estimation.problem import Array, RecordProblem
from rejoint.estimation.starts import Model, model_from_tables, random_model, tables_pay
from rejoint.estimation.tidy import tidy
from rejoint.estimation.variational import Variational, VariationalState
from rejoint.pmf import LowRankPMF
from rejoint.solver import FitResult, Limits, Run, run

Report = Callable[[str], None]

#: How far each start is followed before the best one is followed to the end.
EXPLORE = Limits(max_steps=60, progress=1e-6, window=5, exact=-1.0)

#: Modes that are less probable than the best by this much (log) count for nothing.
POORER = 10.0

#: How often zeros are tried to be lifted again, and the largest pass (cells x F) to do so.
LIFTS, QUICK = 5, 4_000_000

_REASONS = {
    "optimal": "no move is left",
    "progress": "the likelihood has stopped rising",
    "steps": "the limit of steps was reached while it was still rising: raise max_steps",
    "interrupted": "interrupted; this is the best model so far",
}


def begin(
    problem: RecordProblem,
    rank: int,
    given: Sequence[Model],
    count: int,
    rng: np.random.Generator,
) -> Iterator[Model]:
    """The starts: given ones, else one from tables where that pays, and random ones."""
    if given:
        yield from given
        return
    if tables_pay(problem, rank):
        found = model_from_tables(problem, rank, rng)
        if found is not None:
            yield found
            count -= 1
    for _ in range(1 if rank == 1 else count):
        yield random_model(problem, rank, rng)


def explore(problem: RecordProblem, em: Em, starts: Iterator[Model], report: Report) -> list[Run]:
    """Follow each start for a while; Ctrl-C keeps those that are there."""
    runs: list[Run] = []
    short = replace(em, limits=EXPLORE)
    try:
        for model in starts:
            runs.append(run(short, problem, *model, start=len(runs), report=report))
            if runs[-1].reason == "interrupted":
                break
    except KeyboardInterrupt:
        if not runs:
            raise
        runs[-1] = replace(runs[-1], reason="interrupted")
    return runs


def best_start(runs: Sequence[Run]) -> int:
    """Which run has the lowest objective."""
    return int(np.argmin([r.objective for r in runs]))


def fit_ml(
    problem: RecordProblem,
    rank: int,
    em: Em,
    given: Sequence[Model],
    count: int,
    rng: np.random.Generator,
    report: Report,
) -> FitResult:
    """Maximise the likelihood (or, with a prior, the posterior) from several starts."""
    runs = explore(problem, em, begin(problem, rank, given, count, rng), report)
    best = best_start(runs)
    if not interrupted(runs):
        runs[best] = finish(problem, em, runs[best], best, report)
    return as_result(problem, runs, runs[best])


def interrupted(runs: Sequence[Run]) -> bool:
    """Whether the user has ended the search."""
    return any(r.reason == "interrupted" for r in runs)


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


def fit_map(
    problem: RecordProblem,
    rank: int,
    given: Sequence[Model],
    count: int,
    rng: np.random.Generator,
    report: Report,
) -> FitResult:
    """Maximum a posteriori, with the strengths that the evidence's lower bound prefers."""
    first = Em(prior=make_prior(problem, first_strengths(problem), 0.0))
    runs = explore(problem, first, begin(problem, rank, given, count, rng), report)
    best = best_start(runs)
    if not interrupted(runs):
        strengths = evident_strengths(problem, runs[best])
        em = Em(prior=make_prior(problem, strengths, 0.0))
        runs[best] = finish(problem, em, runs[best], best, report)
    return as_result(problem, runs, runs[best])


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
    given: Sequence[Model],
    rng: np.random.Generator,
    report: Report,
    spare: int = 0,
) -> FitResult:
    """Posterior draws from chains that start at modes; ``pmf`` is the best mode.

    Where the rank was estimated, chains have some ``spare`` classes more than ``pmf``, so that the
    draws also say how unsure the rank is.
    """
    em = Em(prior=make_prior(problem, first_strengths(problem), 0.0))
    runs = explore(problem, em, begin(problem, rank, given, bayes.chains, rng), report)
    best = best_start(runs)
    wide = runs
    if spare and not interrupted(runs):
        starts = begin(problem, rank + spare, given, bayes.chains, rng)
        wide = explore(problem, em, starts, report)
    if interrupted(runs) or interrupted(wide):
        runs[best] = replace(runs[best], reason="interrupted")
        return as_result(problem, runs, runs[best])
    # A chain hardly ever leaves a poor mode of a large sample: all start at good ones.
    top = wide[best_start(wide)]
    good = [r if r.objective <= top.objective + POORER else top for r in wide]
    draws, ended = bayes.sample(problem, [(r.weights, r.factors) for r in good], rng, report)
    if ended:
        runs[best] = replace(runs[best], reason="interrupted")
    if not draws:
        return as_result(problem, runs, runs[best])
    strengths = np.median([draw.strengths for draw in draws], axis=0)
    if not ended:
        em = Em(prior=make_prior(problem, strengths, 0.0))
        runs[best] = finish(problem, em, runs[best], best, report)
    posterior = Posterior(tuple(as_pmf(problem, d.weights, d.factors) for d in draws))
    words = f" {plural(len(draws), 'posterior draw')} from {plural(len(runs), 'chain')}."
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
    reason = _REASONS["interrupted" if interrupted(runs) else best.reason]
    steps = sum(record.step > 0 for r in runs for record in r.records)
    stop = (
        f"Log-likelihood {value:.6g} after {plural(steps, 'step')} from "
        f"{plural(len(runs), 'start')}; {reason} (residual {best.residual:.1e}).{gone}{more}"
    )
    return FitResult(
        pmf=as_pmf(problem, weights, factors),
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


def as_pmf(problem: RecordProblem, weights: Array, factors: Array) -> LowRankPMF:
    """A model with its labels."""
    parts = [factors[problem.rows(n)] for n in range(len(problem.levels))]
    return LowRankPMF(weights, parts, problem.domain)
