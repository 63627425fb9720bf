"""Learn from one chunk of records after another, in bounded memory.

The latest records are kept as small integers while they fit into a budget, and the model is
refined on all of them: fitted afresh when they have become four times as many, improved by some
EM steps when they have grown by a third, and updated by one pass over the new chunk otherwise
(incremental EM). The work for a record is therefore bounded, and while all records fit, the result
is nearly that of a fit to all at once. When they no longer fit they are dropped. Their expected
counts of classes and levels remain, which act on later fits as a prior does and fade as they become
stale, because older models made them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rejoint.domain.domain import Domain
from rejoint.estimation.data import Array, RecordProblem, normalise
from rejoint.estimation.em import Em, rescale
from rejoint.estimation.priors import first_strengths
from rejoint.estimators.sklearn_input import weights_of
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.records import Records
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.solver import Limits, Record

#: Bytes of codes and weights that are kept.
BUDGET_BYTES = 64_000_000

#: Growth of the records kept that calls for a fresh fit, and for some EM steps.
FRESH_GROWTH, WARM_GROWTH = 4.0, 4.0 / 3.0

#: How much faster than a plain mean the counts of dropped records forget the older ones.
FORGETTING = 3.0

#: EM steps stop when they gain less than this share of the log-likelihood over some steps.
WARM_LIMITS = Limits(max_steps=40, progress=1e-7, window=5, exact=-1.0)


@dataclass(frozen=True)
class PseudoCounts:
    """A prior that differs from class to class: counts of classes above those of levels."""

    stacked: Array  # (1 + L, F)


@dataclass
class PartialFit:
    """The model so far, and what is kept of the chunks that it learned from.

    Parameters
    ----------
    domain : Domain
        Fixed by the first chunk.
    prior : bool
        Whether factor columns are pulled to the variables' own shares, as with ``solver="map"``.
    budget : int
        Bytes of records to keep.
    """

    domain: Domain
    prior: bool = True
    budget: int = BUDGET_BYTES
    model: LowRankPMF | None = None
    kept: list[Records] = field(default_factory=list)
    kept_mass: float = 0.0
    kept_counts: Array | None = None  # expected counts, (1 + L, F)
    dropped_mass: float = 0.0
    dropped_counts: Array | float = 0.0  # expected counts, faded
    level_totals: Array | float = 0.5  # of all records, half a record added to each level
    fresh_at: float = 0.0  # mass of the records kept at the last fresh fit
    warm_at: float = 0.0  # and when EM steps were last taken on all of them
    history: list[Record] = field(default_factory=list)

    @classmethod
    def after(cls, pmf: LowRankPMF, mass: float, prior: bool) -> "PartialFit":
        """Continue from a model of ``mass`` records that are not at hand."""
        counts = mass * np.vstack([pmf.weights, np.vstack(pmf.factors) * pmf.weights])
        totals = counts[1:].sum(axis=1) + 0.5
        counted = {"dropped_mass": mass, "dropped_counts": counts, "level_totals": totals}
        return cls(pmf.domain, prior, model=pmf, **counted)

    @property
    def seen(self) -> float:
        """Weight of all records so far."""
        return self.dropped_mass + self.kept_mass

    def learn(self, chunk: Records, fit: Callable[[Records], LowRankPMF]) -> FitResult:
        """Learn from one more chunk; ``fit`` makes a fresh model of some records."""
        problem = RecordProblem.of(chunk)
        self.level_totals = self.level_totals + problem.level_totals
        if self.model is not None:
            self._note_loss(problem, self.model)
        if self.kept and sum(map(_bytes_of, [*self.kept, chunk])) > self.budget:
            self.drop()
        self.kept.append(chunk)
        self.kept_mass += problem.total
        if not self.dropped_mass and self.kept_mass >= FRESH_GROWTH * self.fresh_at:
            self.model, self.kept_counts = fit(self._gather()), None
            self.fresh_at = self.warm_at = self.kept_mass
        elif self.kept_mass >= WARM_GROWTH * self.warm_at:
            self._refine(RecordProblem.of(self._gather()))
            self.warm_at = self.kept_mass
        else:
            self._absorb(problem)
        assert self.model is not None
        nothing = float("nan")
        history = tuple(self.history)
        return FitResult(self.model.sorted(), self._stop(), history, nothing, nothing, (), {})

    def drop(self) -> None:
        """Keep no more of the records than their expected counts."""
        assert self.model is not None
        share = _count(self.kept, self.model) / self.kept_mass
        if self.dropped_mass:
            fade = min(1.0, FORGETTING * self.kept_mass / self.seen)
            share = (1.0 - fade) * self.dropped_counts / self.dropped_mass + fade * share
        self.dropped_counts, self.dropped_mass = share * self.seen, self.seen
        self.kept, self.kept_mass, self.kept_counts, self.warm_at = [], 0.0, None, 0.0

    def _note_loss(self, problem: RecordProblem, model: LowRankPMF) -> None:
        """Write down how well the model predicts a chunk before it learns from it."""
        loss = -problem.expect(*_parameters(model)).log_likelihood / problem.total
        self.history.append(Record(0, "chunk", len(self.history) + 1, loss, np.nan, np.nan))

    def _gather(self) -> Records:
        """Join the chunks kept, identical records merged."""
        codes = np.concatenate([part.codes for part in self.kept])
        weight = np.concatenate([weights_of(part) for part in self.kept])
        self.kept = [Records(self.domain, codes, weight).merged()]
        return self.kept[0]

    def _refine(self, problem: RecordProblem) -> None:
        """Take EM steps on all records kept, from the model so far."""
        assert self.model is not None
        prior = PseudoCounts(self._pseudo_counts(problem, self.model.rank))
        solver = Em(prior, limits=WARM_LIMITS)  # type: ignore[arg-type]  # it needs stacked only
        done = run(solver, problem, *_parameters(self.model))
        self.kept_counts = problem.expect(done.weights, done.factors).stacked
        self.model = _as_pmf(problem, done.weights, done.factors)

    def _absorb(self, problem: RecordProblem) -> None:
        """Make one pass over the new records; the counts of the others stay as they are."""
        assert self.model is not None
        if self.kept_counts is None:  # after a fresh fit
            self.kept_counts = _count(self.kept[:-1], self.model)
        self.kept_counts = self.kept_counts + problem.expect(*_parameters(self.model)).stacked
        counts = self.kept_counts + self._pseudo_counts(problem, self.model.rank)
        found = rescale(problem, counts)
        self.model = _as_pmf(problem, found[0], found[1:])

    def _pseudo_counts(self, problem: RecordProblem, rank: int) -> Array:
        """Counts to add to those of the records kept: of dropped records, and of the prior."""
        found = np.zeros((1 + sum(self.domain.shape), rank)) + self.dropped_counts
        if self.prior:
            totals = np.asarray(self.level_totals)[:, None]
            concentration = np.repeat(first_strengths(problem), problem.levels)[:, None]
            found[1:] += concentration * normalise(problem, totals)
        return found

    def _stop(self) -> str:
        chunks = len(self.history) + (0 if self.dropped_mass and not self.fresh_at else 1)
        text = f"Learned from {self.seen:,.0f} records in {chunks:,} chunks"
        if not self.dropped_mass:
            return f"{text}, all of which are kept."
        return f"{text}; of {self.dropped_mass:,.0f} only expected counts are kept."


def _count(parts: list[Records], model: LowRankPMF) -> Array:
    """Sum expected counts of classes and levels over some chunks, (1 + L, F)."""
    found = [RecordProblem.of(part).expect(*_parameters(model)).stacked for part in parts]
    return np.asarray(np.sum(found, axis=0))


def _parameters(pmf: LowRankPMF) -> tuple[Array, Array]:
    return np.array(pmf.weights), np.vstack(pmf.factors)


def _as_pmf(problem: RecordProblem, weights: Array, factors: Array) -> LowRankPMF:
    parts = [factors[problem.rows(n)] for n in range(len(problem.levels))]
    return LowRankPMF(weights, parts, problem.domain)


def _bytes_of(records: Records) -> int:
    return records.codes.nbytes + 8 * len(records)
