"""The fits behind ``estimate``: starts, stages, and what comes out."""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np

from rejoint.domain.labels import plural
from rejoint.estimation.bayes import Bayes
from rejoint.estimation.em import Em
from rejoint.estimation.exploring import (
    Report,
    best_start,
    elsewhere,
    explore,
    interrupted,
    side_by_side,
)
from rejoint.estimation.posterior import Posterior
from rejoint.estimation.priors import first_strengths, make_prior
from rejoint.estimation.problem import Array, RecordProblem
from rejoint.estimation.starts import CAUTIOUS, Model, given_model, make_starts, widen
from rejoint.estimation.tidy import tidy
from rejoint.estimation.variational import Variational, VariationalState
from rejoint.pmf import LowRankPMF
from rejoint.solver import FitResult, Limits, Run, run

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
