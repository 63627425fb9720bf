"""Learning from one chunk of records after another, in bounded memory.

Codes are small, so that the latest records are held as long as they fit into a budget, and the
model is refined on all of them: afresh when they have become four times as many, by some EM
steps from where it is when they have grown by a third, and by one pass over the new chunk
otherwise (incremental EM). So the work for a record is bounded, and so long as the records fit,
the result is nearly that of a fit to all at once. When they do not fit any more they are let
go; what stays of them is their expected counts of classes and levels, which act on later
fits as a prior does and fade as those counts, made with older models, become stale.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rejoint.domain.domain import Domain
from rejoint.estimation.data import Array, RecordProblem, normalise
from rejoint.estimation.em import Em, rescale
from rejoint.estimation.priors import first_strengths
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.records import BaseRecords, Records
from rejoint.solver.run import run
from rejoint.solver.solver import Limits, Record

#: Bytes of codes and weights that are held.
BUDGET = 64_000_000

#: Growth of the records held that calls for a fresh fit, and for a warm one.
FRESH, WARM = 4.0, 4.0 / 3.0

#: How much faster than the mean of all records let go their counts forget the older ones.
FORGET = 3.0

#: A warm fit stops when it gains less than this share of the log-likelihood over some steps.
LIMITS = Limits(max_steps=40, progress=1e-7, window=5, exact=-1.0)

Fit = Callable[[Records], LowRankPMF]


@dataclass(frozen=True)
class PseudoCounts:
    """A prior that differs from class to class: counts of classes above those of levels."""

    stacked: Array  # (1 + L, F)


@dataclass
class Stream:
    """What is known of the chunks so far.

    Parameters
    ----------
    domain : Domain
        Fixed from the start.
    prior : bool
        Whether factor columns lean to the variables' own shares, as with ``solver="map"``.
    budget : int
        Bytes of records to hold.
    """

    domain: Domain
    prior: bool = True
    budget: int = BUDGET
    model: LowRankPMF | None = None
    held: list[Records] = field(default_factory=list)
    held_counts: Array | None = None  # expected counts of the records held, (1 + L, F)
    gone_counts: Array | float = 0.0  # of those let go, faded
    level_totals: Array | float = 0.5  # of all records, half a record added to each level
    held_mass: float = 0.0  # weight of the records held
    gone_mass: float = 0.0  # weight of those let go
    fresh_at: float = 0.0
    warm_at: float = 0.0
    history: list[Record] = field(default_factory=list)

    @classmethod
    def after(cls, pmf: LowRankPMF, mass: float, *, prior: bool) -> "Stream":
        """A stream that goes on from a model fitted to ``mass`` records, which are not there."""
        counts = mass * np.vstack([pmf.weights, np.vstack(pmf.factors) * pmf.weights])
        totals = counts[1:].sum(axis=1) + 0.5
        stream = cls(pmf.domain, prior, model=pmf, gone_counts=counts, level_totals=totals)
        stream.gone_mass = mass
        return stream

    @property
    def seen(self) -> float:
        """Weight of all records so far."""
        return self.gone_mass + self.held_mass

    def words(self) -> str:
        """How much was learnt from, and how much of it is at hand."""
        chunks = len(self.history) + (0 if self.gone_mass and not self.fresh_at else 1)
        text = f"Learnt from {self.seen:,.0f} records in {chunks:,} chunks"
        if self.gone_mass:
            return f"{text}; of {self.gone_mass:,.0f} that are not held, expected counts are left."
        return f"{text}, all of which are held."

    def learn(self, chunk: Records, fit: Fit) -> LowRankPMF:
        """Take in one more chunk; ``fit`` makes a fresh model of some records."""
        problem = RecordProblem.of(chunk)
        self.level_totals = self.level_totals + problem.level_totals
        if self.model is not None:
            self.note(problem)
        if self.held and sum(map(size_of, [*self.held, chunk])) > self.budget:
            self.let_go()
        self.held.append(chunk)
        self.held_mass += problem.total
        if not self.gone_mass and self.held_mass >= FRESH * self.fresh_at:
            self.gather()
            self.model = fit(self.held[0])
            self.fresh_at = self.warm_at = self.held_mass
            self.held_counts = None
        elif self.held_mass >= WARM * self.warm_at:
            self.gather()
            self.refine()
            self.warm_at = self.held_mass
        else:
            self.absorb(problem)
        assert self.model is not None
        return self.model

    def note(self, problem: RecordProblem) -> None:
        """Write down how well the chunk was foreseen, before learning from it."""
        assert self.model is not None
        found = problem.expect(*parameters(self.model)).log_likelihood
        step = len(self.history) + 1
        self.history.append(Record(0, "chunk", step, -found / problem.total, np.nan, np.nan))

    def gather(self) -> None:
        """Make one of the parts held, identical records merged."""
        codes = np.concatenate([part.codes for part in self.held])
        weight = np.concatenate([weights_of(part) for part in self.held])
        self.held = [Records(self.domain, codes, weight).merged()]

    def refine(self) -> None:
        """Take EM steps on all that is held, from the model as it is."""
        assert self.model is not None
        problem = RecordProblem.of(self.held[0])
        extra = PseudoCounts(self.extra(problem))
        solver = Em(extra, limits=LIMITS)  # type: ignore[arg-type]  # stacked is all it needs
        done = run(solver, problem, *parameters(self.model))
        self.held_counts = problem.expect(done.weights, done.factors).stacked
        self.model = as_pmf(problem, done.weights, done.factors)

    def absorb(self, problem: RecordProblem) -> None:
        """One pass over the new records; the counts of the others stay as they were made."""
        assert self.model is not None
        if self.held_counts is None:  # after a fresh fit
            self.held_counts = count(self.held[:-1], self.model)
        self.held_counts = self.held_counts + problem.expect(*parameters(self.model)).stacked
        found = rescale(problem, self.held_counts + self.extra(problem))
        self.model = as_pmf(problem, found[0], found[1:])

    def let_go(self) -> None:
        """Keep the counts of what is held, and no more."""
        assert self.model is not None
        share = count(self.held, self.model) / self.held_mass
        total = self.gone_mass + self.held_mass
        if self.gone_mass:
            fade = min(1.0, FORGET * self.held_mass / total)
            share = (1.0 - fade) * self.gone_counts / self.gone_mass + fade * share
        self.gone_counts, self.gone_mass = share * total, total
        self.held, self.held_mass, self.held_counts, self.warm_at = [], 0.0, None, 0.0

    def extra(self, problem: RecordProblem) -> Array:
        """What is added to the counts of the records held: those let go, and the prior's."""
        assert self.model is not None
        found = np.zeros((1 + sum(self.domain.shape), self.model.rank)) + self.gone_counts
        if self.prior:
            totals = np.asarray(self.level_totals)[:, None]
            strength = np.repeat(first_strengths(problem), problem.levels)[:, None]
            found[1:] += strength * normalise(problem, totals)
        return found


def count(parts: list[Records], model: LowRankPMF) -> Array:
    """Expected counts of classes and levels, (1 + L, F)."""
    found = [RecordProblem.of(part).expect(*parameters(model)).stacked for part in parts]
    return np.asarray(np.sum(found, axis=0))


def parameters(pmf: LowRankPMF) -> tuple[Array, Array]:
    """Weights and stacked factors."""
    return np.array(pmf.weights), np.vstack(pmf.factors)


def as_pmf(problem: RecordProblem, weights: Array, factors: Array) -> LowRankPMF:
    """A model with its labels."""
    parts = [factors[problem.rows(n)] for n in range(len(problem.levels))]
    return LowRankPMF(weights, parts, problem.domain)


def weights_of(records: BaseRecords) -> Array:
    """The weight of each record."""
    weight = records.sample_weight
    return np.ones(len(records)) if weight is None else weight


def size_of(records: Records) -> int:
    """Bytes of codes and weights."""
    return records.codes.nbytes + 8 * len(records)
