"""Data: records as estimators see them, in memory or read in parts.

Every estimator works by sums over records. :class:`InMemory` adds them up at once,
:class:`Parted` part by part, so that the records need not fit into memory. Where columns are
smooth, models are of hidden levels (:class:`~rejoint.estimation.smoothing.HiddenLevels`), and
counts of levels are shared out among these. An estimator never asks which kind of data it has.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rejoint import kernels
from rejoint.arrays import FloatArray, Keys
from rejoint.domain.domain import Domain
from rejoint.estimation.part_summary import NOTHING, PartSummary
from rejoint.kernels import SparseCodes, has_value
from rejoint.model import Layout, Model, Observed
from rejoint.pmf.draws import Draws
from rejoint.pmf.pmf import LowRankPMF
from rejoint.pmf.table_gap import TableGap
from rejoint.queries.mixture import Mixture
from rejoint.records.records import BaseRecords, Records
from rejoint.records.scan import Scan
from rejoint.records.sparse import SparseRecords
from rejoint.solver.checkpoint import digest
from rejoint.solver.session import Report, report_nothing

if TYPE_CHECKING:
    from rejoint.estimation.placed_blocks import Interactions
    from rejoint.estimation.smoothing import HiddenLevels

#: Share of the cells up to which a pass over codes costs what departs from the most frequent ones.
MOST_DEPARTING = 0.2

#: Rows that show which codes are frequent.
PROBED_ROWS = 500


@dataclass(frozen=True)
class Expected:
    """Sums of a pass: log-likelihood, and expected counts of classes above those of levels."""

    log_likelihood: float
    counts: FloatArray  # (1 + L, F)

    @classmethod
    def of(cls, found: tuple[float, FloatArray, FloatArray]) -> "Expected":
        """Stack what a kernel returns."""
        return cls(found[0], np.vstack(found[1:]))

    @property
    def classes(self) -> FloatArray:
        """Counts of classes, (F,)."""
        return np.asarray(self.counts[0])

    @property
    def levels(self) -> FloatArray:
        """Counts of levels, (L, F)."""
        return np.asarray(self.counts[1:])

    def with_levels(self, levels: FloatArray) -> "Expected":
        """Return the same sums with other counts of levels."""
        return replace(self, counts=np.vstack([self.classes, levels]))

    def __add__(self, other: "Expected") -> "Expected":
        return Expected(self.log_likelihood + other.log_likelihood, self.counts + other.counts)


class Data(ABC):
    """Records as estimators see them."""

    domain: Domain
    threads: int
    #: Levels that models are of, where these are not the observed ones.
    hidden: "HiddenLevels | None"
    #: What is known of records that are read again for each pass; None of those in memory.
    summary: PartSummary | None = None

    @property
    @abstractmethod
    def total(self) -> float:
        """Weight of all records."""

    @property
    @abstractmethod
    def size(self) -> float:
        """Number of records: their weight, or how many they are where they weigh less."""

    @property
    @abstractmethod
    def level_totals(self) -> FloatArray:
        """Weight of the records that hold each level, (L,)."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Text that identifies these data."""

    @property
    @abstractmethod
    def cells(self) -> int:
        """Number of cells that a pass visits; its cost is proportional to it."""

    @abstractmethod
    def pass_records(self, model: Observed) -> Expected:
        """Make one pass with a model of observed levels, which need not be normalized."""

    @abstractmethod
    def draw_records(self, model: Observed, rng: np.random.Generator) -> Expected:
        """Make one pass that draws a class for each record; whole weights give whole counts."""

    @abstractmethod
    def sample(self) -> "InMemory":
        """Records in memory to start from; the data themselves where they are in memory."""

    def expect(self, model: Model) -> Expected:
        """Make one pass (E-step); the parameters need not be normalized."""
        found = self.pass_records(self.observed(model))
        if self.hidden is None:
            return found
        return found.with_levels(self.hidden.share_counts(found.levels, model.factors))

    def draw(self, model: Model, rng: np.random.Generator) -> Expected:
        """Make one pass that draws a class for each record."""
        found = self.draw_records(self.observed(model), rng)
        if self.hidden is None:
            return found
        return found.with_levels(self.hidden.draw_counts(found.levels, model.factors, rng))

    @cached_property
    def layout(self) -> Layout:
        """Where the levels of each variable stand in stacked factors."""
        return Layout(self.domain.shape)

    @cached_property
    def center(self) -> FloatArray:
        """Each variable's own distribution, half a record added to each level, (L,)."""
        totals = self.level_totals + 0.5
        return self.layout.normalize(totals) if self.hidden is None else self.hidden.center(totals)

    @cached_property
    def concentration_unit(self) -> FloatArray:
        """Unit of the concentrations of priors: the numbers of levels, (N,)."""
        levels = np.asarray(self.layout.levels, dtype=np.float64)
        return levels if self.hidden is None else levels * self.hidden.sharpness

    def observed(self, model: Model) -> Observed:
        """Return the model of the levels themselves, if it is not one already."""
        if isinstance(model, Observed):
            return model
        factors = model.factors if self.hidden is None else self.hidden.observe(model.factors)
        return Observed(model.layout, model.weights, factors)

    def error(self, objective: float) -> float:
        """Return NaN: the objective of a likelihood has no scale to compare with."""
        return float("nan")

    def to_pmf(
        self,
        model: Model,
        mixture: Mixture | None = None,
        draws: Sequence[Mixture] | None = None,
        gaps: Sequence[TableGap] = (),
    ) -> LowRankPMF:
        """Return the model with its labels, what answers, and posterior draws."""
        seen, domain = self.observed(model), self.domain
        if mixture is None:
            return LowRankPMF(seen.weights, seen.parts, domain, gaps=gaps)
        factors = list(mixture.factors.values())
        mean = LowRankPMF(mixture.weights, factors, domain, blocks=mixture.blocks)
        if draws is None:
            return mean.sorted()._with(gaps=tuple(gaps))
        layouts = tuple(block.layout for block in mixture.blocks)
        stacks = [draw.stacked for draw in draws]
        kept = Draws.of_stacks(stacks, domain, LowRankPMF, layouts).to_carry()
        return LowRankPMF(seen.weights, seen.parts, domain, kept, mean, gaps)


@dataclass(frozen=True, eq=False)
class InMemory(Data):
    """Records in memory, identical ones merged: dense or sparse codes."""

    domain: Domain
    codes: Any  # (M, N) codes, -1 where a value is missing; or SparseCodes
    weight: FloatArray
    threads: int
    unmerged: BaseRecords | None = field(default=None, repr=False)
    cluster_keys: Keys | None = field(default=None, repr=False)
    hidden: "HiddenLevels | None" = None
    #: Dependence within blocks that passes allow for; without it variables are independent.
    blocks: "Interactions | None" = None

    @classmethod
    def of(cls, records: BaseRecords, threads: int | None = None) -> "InMemory":
        """Merge identical records, and drop empty ones, which have no information.

        Records whose weights do not count copies stay in ``unmerged``: each is one observation, and
        so do those of clusters.
        """
        merged = records.merged()
        weight = merged.sample_weight
        mass = np.ones(len(merged)) if weight is None else np.asarray(weight)
        used = has_value(merged.codes) & (mass > 0)
        if not used.any():
            raise ValueError(NOTHING)
        codes = merged.codes
        if not used.all():
            codes, mass = codes[used], mass[used]
        given = records.sample_weight
        counts = given is None or bool(np.all(given == np.rint(given)))
        alone = (counts or merged is records) and records.cluster_keys is None
        unmerged = None if alone else records
        return cls(records.domain, codes, mass, threads or kernels.available_threads(), unmerged)

    @cached_property
    def fingerprint(self) -> str:
        """Text that identifies these records."""
        return digest("records", self.domain, self.codes, self.weight, self.hidden)

    @cached_property
    def total(self) -> float:
        """Weight of all records."""
        return float(self.weight.sum())

    @property
    def size(self) -> float:
        """Number of records: their weight, or how many they are where they weigh less."""
        rows = self.weight if self.unmerged is None else self.unmerged
        return max(self.total, float(len(rows)))

    @cached_property
    def level_totals(self) -> FloatArray:
        """Weight of the records that hold each level, (L,)."""
        one = Model(self.layout, np.ones(1), np.ones((self.layout.size, 1)))
        return self.records.expect(one).levels[:, 0]

    @cached_property
    def cells(self) -> int:
        """Number of cells that a pass visits; if most hold one code, only the others count."""
        if isinstance(self.codes, SparseCodes):
            return self.codes.size
        share = departing_share(self.codes)
        all_cells = int(self.codes.size)
        return all_cells if share > MOST_DEPARTING else round(share * all_cells) + len(self.codes)

    @cached_property
    def records(self) -> "InMemory":
        """The records themselves, whose levels are the observed ones."""
        plain = self.hidden is None and self.blocks is None
        return self if plain else replace(self, hidden=None, blocks=None)

    @property
    def without_blocks(self) -> "InMemory":
        """The same data for passes in which all variables are independent given the class."""
        return self if self.blocks is None else replace(self, blocks=None)

    def sample(self) -> "InMemory":
        """Return the data themselves, which hold all records."""
        return self

    @cached_property
    def _kernel_codes(self) -> Any:
        return self.codes if self.blocks is None else self.blocks.codes(self.codes)

    def _kernel_model(self, model: Model) -> Observed:
        seen = self.observed(model)
        return seen if self.blocks is None else self.blocks.expand(seen)

    def _counts(self, found: Expected) -> Expected:
        return found if self.blocks is None else self.blocks.level_counts(found, self.layout)

    def log_prob(self, model: Model) -> FloatArray:
        """Log-probability of each record."""
        own = self._kernel_model(model)
        parts = (own.weights, own.factors, own.layout.levels, self.threads)
        return kernels.class_log_prob(self._kernel_codes, *parts)

    def log_prob_of(self, mixture: Mixture) -> FloatArray:
        """Log-probability of each record, by a mixture with blocks."""
        factors, codes = mixture.of_records(self.codes)
        levels = tuple(map(len, factors))
        parts = (mixture.weights, np.vstack(factors), levels, self.threads)
        return kernels.class_log_prob(codes, *parts)

    def alone(self) -> "InMemory":
        """Return the same data for one thread, to be used in parallel with others."""
        return replace(self, threads=1, unmerged=None)

    def take(self, rows: NDArray[np.intp], weight: FloatArray) -> "InMemory":
        """Return some of the records, with other weights."""
        codes = self.codes[rows]
        return replace(self, codes=codes, weight=weight, unmerged=None, cluster_keys=None)

    @cached_property
    def counts_copies(self) -> bool:
        """Whether weights are whole numbers, which count copies of records."""
        return self.unmerged is None and bool(np.all(self.weight == np.rint(self.weight)))

    def observations(self) -> "InMemory":
        """Return one row for each observation if weights do not count copies, else the data."""
        if self.unmerged is None:
            return self
        codes, weight = self.unmerged.codes, np.asarray(self.unmerged.sample_weight)
        used = has_value(codes) & (weight > 0)
        keys = self.unmerged.cluster_keys
        keys = None if keys is None else keys[used]
        codes, weight = codes[used], weight[used]
        return replace(self, codes=codes, weight=weight, unmerged=None, cluster_keys=keys)

    def divide(self, parts: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Assign rows to parts at random; the rows of a cluster or record share a part."""
        if self.cluster_keys is None:
            return rng.permutation(len(self.weight)) % parts
        keys, which = np.unique(self.cluster_keys, return_inverse=True)
        return np.asarray((rng.permutation(len(keys)) % parts)[which.ravel()])

    def merge(self) -> "InMemory":
        """Return the same data with identical records merged."""
        kind = SparseRecords if isinstance(self.codes, SparseCodes) else Records
        merged = kind._trusted(self.domain, self.codes, self.weight).merged()
        return replace(self, codes=merged.codes, weight=np.asarray(merged.sample_weight))

    def reweight(self, weight: FloatArray) -> "InMemory":
        """Return the records of positive weight, with that weight."""
        rows = np.flatnonzero(weight > 0)
        return self.take(rows, weight[rows])

    def table(self, rows: NDArray[np.intp] | slice = slice(None)) -> NDArray[np.signedinteger]:
        """Return codes of some of the records, -1 where a value is missing."""
        found = self.codes[rows]
        return found.to_codes() if isinstance(found, SparseCodes) else np.asarray(found)

    def pass_records(self, model: Observed) -> Expected:
        """Make one pass (E-step)."""
        own = self._kernel_model(model)
        parts = (own.weights, own.factors, own.layout.levels, self.threads)
        return self._counts(
            Expected.of(kernels.class_pass(self._kernel_codes, self.weight, *parts))
        )

    def draw_records(self, model: Observed, rng: np.random.Generator) -> Expected:
        """Make one pass that draws a class for each record."""
        own = self._kernel_model(model)
        return self._counts(draw_classes(self._kernel_codes, self.weight, own, rng, self.threads))


def departing_share(codes: NDArray[np.signedinteger]) -> float:
    """Share of the cells that differ from the most frequent code of their column, missing or not.

    It is that of some hundred rows, which kernels look at, too, to leave such cells out.
    """
    rows, columns = codes.shape
    some = codes[:: max(1, rows // PROBED_ROWS)].astype(np.intp) + 1
    if not some.size:
        return 0.0
    levels = int(some.max()) + 1
    place = np.arange(columns) * levels
    counts = np.bincount((some + place).ravel(), minlength=columns * levels)
    return 1.0 - float(counts.reshape(columns, levels).max(axis=1).sum()) / some.size


def draw_classes(
    codes: Any, weight: FloatArray | None, model: Model, rng: np.random.Generator, threads: int
) -> Expected:
    """Counts of classes and levels, with a class drawn for each record.

    A record of weight w and class probabilities q is rounded at random to copies, w on average,
    and a class is drawn for each copy. What rounding has added to w, or taken from it, is put right
    in proportion to q: the counts sum to w and have mean w q and variance w q (1 - q), as those of
    w copies. Rounding alone would add w (1 - w) q^2 to the variance, as if the records themselves
    were drawn anew in every sweep.
    """
    counts = None
    if weight is not None:
        counts = np.floor(weight)
        counts += rng.random(len(counts)) < weight - counts
    known = (model.weights, model.factors, model.layout.levels)
    seed = int(rng.integers(2**62))
    found = Expected.of(kernels.class_draws(codes, counts, *known, seed, threads))
    if weight is None or counts is None or np.array_equal(counts, weight):
        return found
    value, total = found.log_likelihood, found.counts
    for sign in (1.0, -1.0):
        rows = np.flatnonzero(sign * (weight - counts) > 0)
        if len(rows):
            rest = np.abs(weight - counts)[rows]
            more = Expected.of(kernels.class_pass(codes[rows], rest, *known, threads))
            value, total = value + sign * more.log_likelihood, total + sign * more.counts
    return Expected(value, np.maximum(total, 0.0))


@dataclass(frozen=True, eq=False)
class Parted(Data):
    """Records that are read again for each pass, part by part; results are sums over parts."""

    domain: Domain
    threads: int
    scan: Scan = field(repr=False)
    summary: PartSummary = field(repr=False)
    report: Report = report_nothing
    hidden: "HiddenLevels | None" = None

    @cached_property
    def fingerprint(self) -> str:
        """Text that identifies these records."""
        known = self.summary.rows, self.summary.totals
        return digest(self.scan.stamp, self.layout, *known, self.hidden)

    @property
    def total(self) -> float:
        """Weight of all records."""
        return self.summary.mass

    @property
    def size(self) -> float:
        """Number of records: their weight, or how many they are where they weigh less."""
        return max(self.summary.mass, float(self.summary.rows))

    @property
    def level_totals(self) -> FloatArray:
        """Weight of the records that hold each level, (L,)."""
        return self.summary.totals

    @property
    def cells(self) -> int:
        """Number of cells that a pass visits."""
        return self.summary.rows * len(self.domain)

    def sample(self) -> InMemory:
        """The records that the summary drew at random."""
        return self._sample

    @cached_property
    def _sample(self) -> InMemory:
        return replace(InMemory.of(self.summary.sample), hidden=self.hidden)

    def pass_records(self, model: Observed) -> Expected:
        """Make one pass over all parts."""
        look = partial(expect_part, model=model, threads=self.threads)
        return reduce(add, self.scan.map(look, 0, self.report))

    def draw_records(self, model: Observed, rng: np.random.Generator) -> Expected:
        """Make one pass that draws classes; the random numbers depend on seed and part."""
        seed = int(rng.integers(2**62))
        look = partial(draw_part, model=model, seed=seed, threads=self.threads)
        return reduce(add, self.scan.map(look, 0, self.report, numbered=True))


def expect_part(part: Records, model: Model, threads: int) -> Expected:
    """Make the pass over one part; empty records have no information."""
    codes, weight = drop_empty_records(part)
    parts = (model.weights, model.factors, model.layout.levels, threads)
    return Expected.of(kernels.class_pass(codes, weight, *parts))


def draw_part(part: Records, number: int, model: Model, seed: int, threads: int) -> Expected:
    """Make the pass over one part, with a class drawn for each record."""
    codes, weight = drop_empty_records(part)
    return draw_classes(codes, weight, model, np.random.default_rng([seed, number]), threads)


def drop_empty_records(part: Records) -> tuple[Any, FloatArray | None]:
    """Return codes and weights of the records that have a value."""
    codes, weight = part.codes, part.sample_weight
    used = has_value(codes)
    if used.all():
        return codes, weight
    return codes[used], None if weight is None else weight[used]
