"""Problems whose records are read anew for each pass: sums over parts, in their order."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from rejoint import kernels
from rejoint.estimation.data import (
    Array,
    Codes,
    Expected,
    RecordProblem,
    Survey,
    any_cell,
    at_random,
)
from rejoint.estimation.explore import Report
from rejoint.estimation.ordinal_smoothing import SmoothProblem
from rejoint.records.records import Records
from rejoint.records.scan import Scan
from rejoint.solver.checkpoint import Journal, digest


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
    codes, mass = not_empty(part)
    found = kernels.class_pass(codes, mass, weights, factors, part.domain.shape, threads)
    return Sums(len(part), found[0], np.vstack(found[1:]))


def draw_over(
    part: Records, number: int, weights: Array, factors: Array, seed: int, threads: int
) -> Sums:
    """The same with a class drawn for each record: chance depends on the seed and the part.

    Examples
    --------
    >>> part = Records.of({"a": ["x", "y", None]})
    >>> draw_over(part, 0, np.full(2, 0.5), np.eye(2), seed=0, threads=1).counts
    array([[1., 1.],
           [1., 0.],
           [0., 1.]])
    """
    codes, mass = not_empty(part)
    rng = np.random.default_rng([seed, number])
    whole = None if mass is None else at_random(mass, rng)
    mine = int(rng.integers(2**62))
    found = kernels.class_draws(codes, whole, weights, factors, part.domain.shape, mine, threads)
    return Sums(len(part), found[0], np.vstack(found[1:]))


def not_empty(part: Records) -> tuple[Codes, Array | None]:
    """Codes and weights of the records that say something."""
    codes, mass = part.codes, part.sample_weight
    used = any_cell(codes)
    if used.all():
        return codes, mass
    return codes[used], None if mass is None else mass[used]


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
        """One pass over all parts."""
        look = partial(pass_over, weights=weights, factors=factors, threads=self.threads)
        return self.add_up(look, weights, factors)

    def drawn(self, weights: Array, factors: Array, rng: np.random.Generator) -> Expected:
        """One pass that draws classes, each part by chance of its own."""
        seed = int(rng.integers(2**62))
        look = partial(draw_over, weights=weights, factors=factors, seed=seed, threads=self.threads)
        return self.add_up(look, weights, factors, seed)

    def add_up(
        self, look: Callable[..., Sums], weights: Array, factors: Array, seed: int | None = None
    ) -> Expected:
        """Sums over all parts, numbered if there is a seed; a pass that was interrupted goes on."""
        kind = ("pass",) if seed is None else ("draws", seed)
        key = digest(*kind, self.fingerprint, weights, factors) if self.journal else ""
        at = self.begun(key, (1 + len(factors), len(weights)))
        try:
            for found in self.scan.map(look, at[0], self.report, numbered=seed is not None):
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
