"""Learn from one chunk of records after another, in bounded memory.

The latest records are kept as small integers while they fit into a budget, and the model is
refined on all of them: fitted afresh when they have become four times as many, improved by some
EM steps when they have grown by a third, and updated by one pass over the new chunk otherwise
(incremental EM). The work for a record is therefore bounded, and while all records fit, the result
is nearly that of a fit to all at once. When they no longer fit they are dropped. Their expected
counts of classes and levels remain, which act on later fits as a prior does and fade as they become
stale, because older models made them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.domain.domain import Domain
from rejoint.estimation.data import InMemory
from rejoint.estimation.em import Em, rescale
from rejoint.estimation.estimate import drop_empty
from rejoint.estimation.priors import first_concentrations
from rejoint.model import Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.records import Records
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.solver import Limits, Record, Run, Stop
from rejoint.text import plural

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

    stacked: FloatArray  # (1 + L, F)


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
    model: Model | None = None
    records: float = 0.0  # number of all records so far
    kept: list[InMemory] = field(default_factory=list)
    kept_mass: float = 0.0
    kept_counts: FloatArray | None = None  # expected counts, (1 + L, F)
    dropped_mass: float = 0.0
    dropped_counts: FloatArray | float = 0.0  # expected counts, faded
    level_totals: FloatArray | float = 0.5  # of all records, half a record added to each level
    fresh_at: float = 0.0  # mass of the records kept at the last fresh fit
    warm_at: float = 0.0  # and when EM steps were last taken on all of them
    history: list[Record] = field(default_factory=list)

    @classmethod
    def after(cls, pmf: LowRankPMF, mass: float, prior: bool) -> "PartialFit":
        """Continue from a model of ``mass`` records that are not at hand."""
        model = Model.of(pmf.weights, pmf.factors)
        counts = mass * np.vstack([model.weights, model.factors * model.weights])
        found = cls(pmf.domain, prior, model=model, dropped_mass=mass, dropped_counts=counts)
        return replace(found, records=mass, level_totals=counts[1:].sum(axis=1) + 0.5)

    @property
    def seen(self) -> float:
        """Weight of all records so far."""
        return self.dropped_mass + self.kept_mass

    def learn(
        self, chunk: InMemory, fit: Callable[[InMemory], Model]
    ) -> tuple["PartialFit", FitResult]:
        """Return what is known after one more chunk; ``fit`` makes a fresh model of some records.

        The object itself is unchanged, so that an interrupted call can be repeated.
        """
        after = replace(self, kept=[*self.kept], history=[*self.history])
        after.records += chunk.size
        model, dropped = drop_empty(after._learn(chunk, fit), records=after.records)
        pmf = chunk.to_pmf(model)
        nothing = float("nan")
        chunks = Run(model, nothing, nothing, nothing, Stop.STEPS, tuple(after.history))
        stop = " ".join(filter(None, (after._describe(), dropped)))
        return after, replace(FitResult.of(pmf, [chunks], ""), stop=stop, starts=())

    def drop(self) -> None:
        """Keep no more of the records than their expected counts."""
        assert self.model is not None
        share = self._count(self.kept) / self.kept_mass
        if self.dropped_mass:
            fade = min(1.0, FORGETTING * self.kept_mass / self.seen)
            share = (1.0 - fade) * self.dropped_counts / self.dropped_mass + fade * share
        self.dropped_counts, self.dropped_mass = share * self.seen, self.seen
        self.kept, self.kept_mass, self.kept_counts, self.warm_at = [], 0.0, None, 0.0

    def _learn(self, chunk: InMemory, fit: Callable[[InMemory], Model]) -> Model:
        chunk = replace(chunk, unmerged=None)  # which the budget does not count
        self.level_totals = self.level_totals + chunk.level_totals
        if self.model is not None:
            loss = -chunk.expect(self.model).log_likelihood / chunk.total  # before it is learned
            step = len(self.history) + 1
            self.history.append(Record(0, "chunk", step, loss, float("nan"), float("nan")))
        size = sum(part.codes.nbytes + part.weight.nbytes for part in [*self.kept, chunk])
        if self.kept and size > self.budget:
            self.drop()
        self.kept.append(chunk)
        self.kept_mass += chunk.total
        if not self.dropped_mass and self.kept_mass >= FRESH_GROWTH * self.fresh_at:
            self.model, self.kept_counts = fit(self._gather()), None
            self.fresh_at = self.warm_at = self.kept_mass
        elif self.kept_mass >= WARM_GROWTH * self.warm_at:
            self._refine(self._gather())
            self.warm_at = self.kept_mass
        else:
            self._absorb(chunk)
        assert self.model is not None
        return self.model

    def _gather(self) -> InMemory:
        """Join the chunks kept."""
        self.kept = [join(self.kept)]
        return self.kept[0]

    def _refine(self, data: InMemory) -> None:
        """Take EM steps on all records kept, from the model so far."""
        assert self.model is not None
        prior = PseudoCounts(self._pseudo_counts(data, self.model.rank))
        solver = Em(prior, limits=WARM_LIMITS)  # type: ignore[arg-type]  # it needs stacked only
        self.model = run(solver, data, self.model).model
        self.kept_counts = data.expect(self.model).counts

    def _absorb(self, chunk: InMemory) -> None:
        """Make one pass over the new records; the counts of the others stay as they are."""
        assert self.model is not None
        if self.kept_counts is None:  # after a fresh fit
            self.kept_counts = self._count(self.kept[:-1])
        self.kept_counts = self.kept_counts + chunk.expect(self.model).counts
        counts = self.kept_counts + self._pseudo_counts(chunk, self.model.rank)
        self.model = rescale(chunk.layout, counts)

    def _count(self, parts: list[InMemory]) -> FloatArray:
        """Sum expected counts of classes and levels over some chunks, (1 + L, F)."""
        assert self.model is not None
        model = self.model
        return np.asarray(np.sum([part.expect(model).counts for part in parts], axis=0))

    def _pseudo_counts(self, data: InMemory, rank: int) -> FloatArray:
        """Counts to add to those of the records kept: of dropped records, and of the prior."""
        layout = data.layout
        found = np.zeros((1 + layout.size, rank)) + self.dropped_counts
        if self.prior:
            center = layout.normalize(np.asarray(self.level_totals))
            found[1:] += (layout.expand(first_concentrations(data)) * center)[:, None]
        return found

    def _describe(self) -> str:
        """How many records were learned from, and how many are kept."""
        chunks = len(self.history) + (0 if self.dropped_mass and not self.fresh_at else 1)
        text = f"Learned from {plural(round(self.seen), 'record')} in {plural(chunks, 'chunk')}"
        if not self.dropped_mass:
            return f"{text}, all of which are kept."
        return f"{text}; of {self.dropped_mass:,.0f} only expected counts are kept."


def join(parts: Sequence[InMemory]) -> InMemory:
    """Return the records of all parts, identical ones merged."""
    codes = np.concatenate([part.codes for part in parts])
    weight = np.concatenate([part.weight for part in parts])
    joined = InMemory.of(Records(parts[0].domain, codes, weight), parts[0].threads)
    return replace(joined, unmerged=None)
