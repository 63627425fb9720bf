"""Learn from one chunk of records after another, in bounded memory.

The latest records are kept as small integers while they fit into a budget. The model is fitted
afresh when they have become four times as many, and improved by some EM steps on all of them when
they have grown by a third: the work for a record is bounded, and while all records fit, the result
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
from rejoint.estimation.em import Em
from rejoint.estimation.estimate import drop_empty
from rejoint.estimation.priors import Prior, first_concentrations
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
    rows: float = 0.0  # number of all records so far
    kept: list[InMemory] = field(default_factory=list)
    dropped_mass: float = 0.0
    dropped_counts: FloatArray | float = 0.0  # expected counts (1 + L, F), faded
    level_totals: FloatArray | float = 0.5  # of all records, half a record added to each level
    fresh_at: float = 0.0  # mass of the records kept at the last fresh fit
    warm_at: float = 0.0  # and when EM steps were last taken on all of them
    history: list[Record] = field(default_factory=list)

    @classmethod
    def after(cls, pmf: LowRankPMF, mass: float, prior: bool) -> "PartialFit":
        """Continue from a model of ``mass`` records that are not at hand."""
        model = Model.of(pmf.weights, pmf.factors)
        counts = mass * np.vstack([model.weights, model.factors * model.weights])
        stream = cls(pmf.domain, prior, model=model, rows=mass, dropped_mass=mass)
        return replace(stream, dropped_counts=counts, level_totals=counts[1:].sum(axis=1) + 0.5)

    @property
    def kept_mass(self) -> float:
        """Weight of the records kept."""
        return sum(part.total for part in self.kept)

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
        after.rows += chunk.size
        fitted = after._learn(replace(chunk, unmerged=None), fit)  # which the budget does not count
        model, dropped = drop_empty(fitted, records=after.rows)
        nothing = float("nan")
        chunks = Run(model, nothing, nothing, nothing, Stop.STEPS, tuple(after.history))
        stop = " ".join(filter(None, (after._describe(), dropped)))
        result = FitResult.of(chunk.to_pmf(model), [chunks], "")
        return after, replace(result, stop=stop, starts=())

    def drop(self) -> None:
        """Keep no more of the records than their expected counts."""
        assert self.model is not None
        model = self.model
        share = np.sum([part.expect(model).counts for part in self.kept], axis=0) / self.kept_mass
        if self.dropped_mass:
            fade = min(1.0, FORGETTING * self.kept_mass / self.seen)
            share = (1.0 - fade) * self.dropped_counts / self.dropped_mass + fade * share
        self.dropped_counts, self.dropped_mass = share * self.seen, self.seen
        self.kept, self.warm_at = [], 0.0

    def _learn(self, chunk: InMemory, fit: Callable[[InMemory], Model]) -> Model:
        self.level_totals = self.level_totals + chunk.level_totals
        if self.model is not None:
            loss = -chunk.expect(self.model).log_likelihood / chunk.total  # before it is learned
            step = len(self.history) + 1
            self.history.append(Record(0, "chunk", step, loss, float("nan"), float("nan")))
        size = sum(part.codes.nbytes + part.weight.nbytes for part in [*self.kept, chunk])
        if self.kept and size > self.budget:
            self.drop()
        self.kept.append(chunk)
        mass = self.kept_mass
        if not self.dropped_mass and mass >= FRESH_GROWTH * self.fresh_at:
            self.kept = [join(self.kept)]
            self.model = fit(self.kept[0])
            self.fresh_at = self.warm_at = mass
        elif mass >= WARM_GROWTH * self.warm_at:
            self.kept = [join(self.kept)]
            self.model = self._refine(self.kept[0])
            self.warm_at = mass
        assert self.model is not None
        return self.model

    def _refine(self, data: InMemory) -> Model:
        """Take EM steps on all records kept, with those dropped as a prior."""
        assert self.model is not None
        counts = np.zeros((1 + data.layout.size, self.model.rank)) + self.dropped_counts
        if self.prior:
            center = data.layout.normalize(np.asarray(self.level_totals))
            counts[1:] += (data.layout.expand(first_concentrations(data)) * center)[:, None]
        return run(Em(Prior(counts[0], counts[1:]), limits=WARM_LIMITS), data, self.model).model

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
