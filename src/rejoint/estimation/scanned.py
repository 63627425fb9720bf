"""Fits to records that are read part by part: a sample to start from, then passes over all."""

from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from rejoint import kernels
from rejoint.domain.labels import plural
from rejoint.estimation.em import Em
from rejoint.estimation.exploring import Report, interrupted
from rejoint.estimation.fitting import (
    REASONS,
    Search,
    as_pmf,
    as_result,
    evident_strengths,
    find_map,
)
from rejoint.estimation.priors import make_prior
from rejoint.estimation.problem import Array, Expected, RecordProblem, any_cell
from rejoint.estimation.smoothing import SmoothProblem
from rejoint.estimation.surveys import Survey
from rejoint.estimation.tidy import tidy
from rejoint.records import Records, Scan
from rejoint.solver import FitResult, Journal, Limits, Run, digest, run

__all__ = ["ScanProblem", "SmoothScan", "fit_scan", "of_sample", "pass_over"]

#: Rise of the log-likelihood over ten passes below which a fit has arrived. Parameters are then
#: within a hundredth of their standard errors, and more would be many passes over all records.
NATS = 1e-2


@dataclass(frozen=True)
class Sums:
    """What a pass over one part finds: rows, log-likelihood, expected counts (1 + L, F)."""

    rows: int
    log_likelihood: float
    counts: Array

    def __add__(self, other: "Sums") -> "Sums":
        value = self.log_likelihood + other.log_likelihood
        return Sums(self.rows + other.rows, value, self.counts + other.counts)


def pass_over(part: Records, weights: Array, factors: Array, threads: int) -> Sums:
    """The pass over one part; empty records say nothing.

    Examples
    --------
    >>> part = Records.of({"a": ["x", "y", None]})
    >>> pass_over(part, np.ones(1), np.array([[0.5], [0.5]]), 1).counts.ravel()
    array([2., 1., 1.])
    """
    codes, mass = part.codes, part.sample_weight
    used = any_cell(codes)
    if not used.all():
        codes, mass = codes[used], None if mass is None else mass[used]
    found = kernels.class_pass(codes, mass, weights, factors, part.domain.shape, threads)
    return Sums(len(part), found[0], np.vstack(found[1:]))


@dataclass(frozen=True)
class ScanProblem(RecordProblem):
    """Records that are read anew for each pass; ``weight`` is that of all, ``codes`` none."""

    scan: Scan = field(kw_only=True)
    survey: Survey = field(kw_only=True)
    report: Report = field(kw_only=True, compare=False)

    @classmethod
    def surveyed(
        cls, scan: Scan, survey: Survey, report: Report, journal: Journal | None
    ) -> "ScanProblem":
        """The problem of a scan that was surveyed."""
        none = np.empty((0, len(scan.domain)), dtype=np.int16)
        mass, threads = np.array([survey.mass]), scan.threads
        more = {"scan": replace(scan, rows=survey.rows), "survey": survey, "report": report}
        return cls(scan.domain, none, mass, threads, journal, **more)  # type: ignore[arg-type]

    @cached_property
    def fingerprint(self) -> str:
        """What tells these records from others."""
        return digest(self.scan.stamp, self.levels, self.survey.rows, self.survey.totals)

    @cached_property
    def level_totals(self) -> Array:
        """Weight of the records that hold each level, (L,)."""
        return self.survey.totals

    def seen(self, weights: Array, factors: Array) -> Expected:
        """One pass over all parts; one that was interrupted goes on."""
        key = digest("pass", self.fingerprint, weights, factors) if self.journal else ""
        look = partial(pass_over, weights=weights, factors=factors, threads=self.threads)
        at = self.begun(key, (1 + len(factors), len(weights)))
        try:
            for found in self.scan.map(look, at[0], self.report):
                at = at[0] + 1, at[1] + found  # at once, so that Ctrl-C cannot come in between
                if self.journal is not None and self.journal.due:
                    self.keep(key, *at)
        except KeyboardInterrupt:
            self.keep(key, *at)
            raise
        if self.journal is not None:
            self.journal.put(key, None)
        total = at[1]
        return Expected(total.log_likelihood, total.counts[0], total.counts[1:])

    def begun(self, key: str, shape: tuple[int, int]) -> tuple[int, Sums]:
        """Parts that are done of a pass, and the sums over them."""
        entry = None if self.journal is None else self.journal.get(key)
        if entry is None:
            return 0, Sums(0, 0.0, np.zeros(shape))
        return entry["parts"], Sums(entry["rows"], entry["value"], entry["counts"])

    def keep(self, key: str, parts: int, total: Sums) -> None:
        """Write down how far a pass is."""
        if self.journal is not None:
            sums = {"rows": total.rows, "value": total.log_likelihood, "counts": total.counts}
            self.journal.put(key, {"parts": parts, **sums})


@dataclass(frozen=True)
class SmoothScan(SmoothProblem, ScanProblem):
    """The same with smooth columns: counts of all levels are shared out after the pass."""

    @cached_property
    def fingerprint(self) -> str:
        """What tells these records, and the times, from others."""
        return digest(super().fingerprint, self.times)


def fit_scan(
    problem: ScanProblem, sample: RecordProblem, rank: int, solver: str | Em, search: Search
) -> FitResult:
    """Fit a sample from several starts, then go on from there with all records."""
    em = solver if isinstance(solver, Em) else Em(limits=limits_of(problem))
    models = list(search.given)
    runs: list[Run] = []
    if not models or solver == "map":
        runs, best = find_map(sample, rank, search)
        if interrupted(runs):
            return of_sample(as_result(sample, runs, best), problem)
        if solver == "map":
            strengths = evident_strengths(sample, best)
            em = replace(em, prior=make_prior(problem, strengths, 0.0))
        models = models or [tidy(best.weights, best.factors)[:2]]
    try:
        return follow(problem, em, models[0], search.report)
    except KeyboardInterrupt:
        if not runs:
            raise
        return of_sample(as_result(sample, runs, best), problem)


def limits_of(problem: ScanProblem) -> Limits:
    """When to stop, in proportion to the log-likelihood without classes."""
    alone = problem.columns(problem.centre[:, None])[:, 0]
    size = -float(problem.level_totals @ np.log(alone))
    return Limits(max_steps=2000, progress=NATS / max(size, 1.0), window=10, exact=-1.0)


def follow(problem: ScanProblem, em: Em, model: tuple[Array, Array], report: Report) -> FitResult:
    """Take steps over all records, from one model on."""
    last = "first pass"

    def step(line: str) -> None:
        nonlocal last
        last = line
        report(line)

    problem = replace(problem, report=lambda line: report(f"{last}; this pass {line}"))
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


def of_sample(near: FitResult, problem: ScanProblem) -> FitResult:
    """What there is if the user ends it before the first pass has."""
    ended = tuple(replace(r, reason="interrupted") for r in near.starts)
    rows = f"{len(problem.survey.sample):,} of {problem.survey.rows:,} records"
    stop = f"Interrupted; this is a fit to a sample, {rows}."
    return replace(near, stop=stop, starts=ended, log_likelihood=float("nan"))
