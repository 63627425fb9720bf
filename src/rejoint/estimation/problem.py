"""Records as the estimators see them: identical ones merged, and the one pass over them."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rejoint import kernels
from rejoint.domain import Domain
from rejoint.kernels import DefaultCodes, SparseCodes
from rejoint.records.sparse import AnyRecords
from rejoint.solver import Journal, digest

Array = NDArray[np.float64]
Codes = NDArray[np.signedinteger[Any]]


@dataclass(frozen=True)
class Expected:
    """What one pass finds: log-likelihood, and expected counts of classes and levels in them."""

    log_likelihood: float
    classes: Array  # (F,)
    levels: Array  # (L, F)

    @property
    def stacked(self) -> Array:
        """Counts of classes above counts of levels, (1 + L, F)."""
        return np.vstack([self.classes, self.levels])


@dataclass(frozen=True)
class RecordProblem:
    """Merged records of a domain, ready for passes."""

    domain: Domain
    codes: Any  # (M, N) codes, -1 where a cell is missing; SparseCodes; or DefaultCodes
    weight: Array
    threads: int
    journal: Journal | None = field(default=None, repr=False, compare=False)

    #: The objective of a likelihood has no size to be measured against.
    scale = float("nan")

    @classmethod
    def of(cls, records: AnyRecords, threads: int | None = None) -> "RecordProblem":
        """Merge identical records and drop the empty ones, which say nothing."""
        merged = records.merged()
        weight = merged.sample_weight
        mass = np.ones(len(merged)) if weight is None else np.asarray(weight)
        used = any_cell(merged.codes) & (mass > 0)
        if not used.any():
            raise ValueError(
                "There is nothing to estimate from: no record has a value and a weight above "
                "zero. Give records with values."
            )
        codes = merged.codes[used]
        return cls(records.domain, codes, mass[used], threads or kernels.available_threads())

    @cached_property
    def fingerprint(self) -> str:
        """What tells these records from others, and this problem from other problems of them."""
        return digest(replace(self, threads=1))

    def take(self, rows: NDArray[np.intp], weight: Array) -> Self:
        """Some of the records, with weights of their own."""
        return replace(self, codes=self.codes[rows], weight=weight)

    def table(self, rows: NDArray[np.intp] | slice = slice(None)) -> NDArray[np.signedinteger]:
        """Codes of some of the records, -1 where a cell is missing."""
        found = self.codes[rows]
        sparse = isinstance(found, SparseCodes | DefaultCodes)
        return found.to_codes() if sparse else np.asarray(found)

    @property
    def levels(self) -> tuple[int, ...]:
        """Number of levels of each variable."""
        return self.domain.shape

    @cached_property
    def offsets(self) -> NDArray[np.intp]:
        """First stacked row of each variable, and L at the end."""
        return np.concatenate([[0], np.cumsum(self.levels)]).astype(np.intp)

    def rows(self, n: int) -> slice:
        """Rows of variable ``n`` in stacked factors."""
        return slice(int(self.offsets[n]), int(self.offsets[n + 1]))

    @cached_property
    def total(self) -> float:
        """Weight of all records."""
        return float(self.weight.sum())

    @cached_property
    def level_totals(self) -> Array:
        """Weight of the records that hold each level, (L,)."""
        one = np.ones((int(self.offsets[-1]), 1))
        return self.seen(np.ones(1), one).levels[:, 0]

    @cached_property
    def centre(self) -> Array:
        """Each variable's own shares, half a record added to each level, (L,)."""
        return np.asarray(normalise(self, (self.level_totals + 0.5)[:, None])[:, 0])

    @cached_property
    def firmness(self) -> Array:
        """What strengths of priors are in proportion to: the numbers of levels, (N,)."""
        return np.asarray(self.levels, dtype=np.float64)

    def parameters(self, rank: int) -> int:
        """Free parameters of a model: F (sum (I_n - 1) + 1) - 1."""
        return rank * (sum(self.levels) - len(self.levels) + 1) - 1

    def columns(self, factors: Array) -> Array:
        """Factors of the levels: the ones that are estimated."""
        return factors

    def expect(self, weights: Array, factors: Array) -> Expected:
        """One pass (E-step); the parameters need not be normalised."""
        return self.seen(weights, factors)

    def seen(self, weights: Array, factors: Array) -> Expected:
        """The pass itself, with factors of the levels as they are seen."""
        found = kernels.class_pass(
            self.codes, self.weight, weights, factors, self.levels, self.threads
        )
        return Expected(*found)

    def drawn(self, weights: Array, factors: Array, rng: np.random.Generator) -> Expected:
        """The same with classes drawn for the records, so that counts are whole numbers."""
        whole = at_random(self.weight, rng)
        seed = int(rng.integers(2**62))
        found = kernels.class_draws(
            self.codes, whole, weights, factors, self.levels, seed, self.threads
        )
        return Expected(*found)


def at_random(weight: Array, rng: np.random.Generator) -> Array:
    """Whole numbers of these means: a record of weight 0.4 is there two times of five.

    Examples
    --------
    >>> at_random(np.array([2.0, 0.0]), np.random.default_rng(0))
    array([2., 0.])
    """
    whole = np.floor(weight)
    whole += rng.random(len(whole)) < weight - whole
    return whole


def any_cell(codes: NDArray[np.signedinteger] | SparseCodes | DefaultCodes) -> NDArray[np.bool_]:
    """Whether anything is observed of each record.

    Examples
    --------
    >>> any_cell(np.array([[0, -1], [-1, -1]]))
    array([ True, False])
    """
    return kernels.has_value(codes)


def normalise(problem: RecordProblem, factors: Array) -> Array:
    """Scale every variable's columns to sum to one."""
    sums: Array = np.add.reduceat(factors, problem.offsets[:-1])
    return factors / np.repeat(sums, problem.levels, axis=0)
