"""Surveys: one look at records that are read part by part, which add up."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rejoint import kernels
from rejoint.domain.domain import Domain
from rejoint.kernels import DefaultCodes, SparseCodes
from rejoint.records.merge import merge_rows
from rejoint.records.records import BaseRecords, Records
from rejoint.records.scan import Report, Scan
from rejoint.solver.checkpoint import Journal, digest

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
    def of(cls, records: BaseRecords, threads: int | None = None) -> "RecordProblem":
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
        return (
            found.to_codes() if isinstance(found, SparseCodes | DefaultCodes) else np.asarray(found)
        )

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


#: Records of which nearly all must not differ if merging shall pay.
FEW, NEARLY_ALL = 20_000, 0.9
Block = tuple[Codes, Array]


@dataclass(frozen=True)
class Survey:
    """What is known after a look at some records; that of more is the sum.

    Parameters
    ----------
    domain : Domain
        The variables.
    rows : int
        Records, empty ones included.
    totals : array
        Weight of the records that hold each level, (L,).
    mass : float
        Weight of all records that hold anything.
    keys, codes, weight : arrays
        A random sample: the records with the smallest random keys.
    size : int
        Records of the sample at the most.
    held : tuple of blocks, optional
        All records, so long as they fit into ``budget`` bytes, identical ones merged if need be.
    budget : int
        Bytes to hold.
    """

    domain: Domain
    rows: int
    totals: Array
    mass: float
    keys: Array
    codes: Codes
    weight: Array
    size: int
    held: tuple[Block, ...] | None
    budget: int

    def __add__(self, other: "Survey") -> "Survey":
        keys = np.concatenate([self.keys, other.keys])
        codes = np.concatenate([self.codes, other.codes])
        weight = np.concatenate([self.weight, other.weight])
        if len(keys) > self.size:
            kept = np.sort(np.argpartition(keys, self.size)[: self.size])
            keys, codes, weight = keys[kept], codes[kept], weight[kept]
        held = None if self.held is None or other.held is None else (*self.held, *other.held)
        return replace(
            self,
            rows=self.rows + other.rows,
            totals=self.totals + other.totals,
            mass=self.mass + other.mass,
            keys=keys,
            codes=codes,
            weight=weight,
            held=fitting(held, self.domain, self.budget),
        )

    @property
    def sample(self) -> Records:
        """The records of the sample."""
        return Records(self.domain, self.codes, self.weight)

    @property
    def records(self) -> Records | None:
        """All records, if they are held."""
        if self.held is None:
            return None
        codes, weight = (np.concatenate(parts) for parts in zip(*self.held, strict=True))
        return Records(self.domain, codes, weight)


def look_at(part: Records, seed: int, size: int, budget: int, below: float = 1.0) -> Survey:
    """The survey of one part; which of its records are drawn depends on them and the seed.

    Of the sample only what has keys ``below`` some bound is kept, where it is known to be enough.

    Examples
    --------
    >>> part = Records.of({"a": ["x", "y", "x", None]})
    >>> found = look_at(part, 0, size=2, budget=1000) + look_at(part, 1, size=2, budget=1000)
    >>> found.rows, found.mass, found.totals, len(found.sample)
    (8, 6.0, array([4., 2.]), 2)
    """
    weight = np.ones(len(part)) if part.sample_weight is None else np.asarray(part.sample_weight)
    used = any_cell(part.codes) & (weight > 0)
    codes, mass = part.codes[used], weight[used]
    same = codes.astype(np.promote_types(codes.dtype, np.int16), copy=False)  # in any dtype
    chance = np.random.default_rng([seed, int(digest(same, mass), 16)])
    keys = chance.random(len(codes))
    kept = np.flatnonzero(keys < below)
    if len(kept) > size:
        kept = np.sort(kept[np.argpartition(keys[kept], size)[:size]])
    totals = [
        np.bincount(codes[:, n] + 1, mass, levels + 1)[1:]
        for n, levels in enumerate(part.domain.shape)
    ]
    held = fitting(((part.codes, weight),), part.domain, budget)
    return Survey(
        domain=part.domain,
        rows=len(part),
        totals=np.concatenate(totals),
        mass=float(mass.sum()),
        keys=keys[kept],
        codes=codes[kept],
        weight=mass[kept],
        size=size,
        held=held,
        budget=budget,
    )


def fitting(
    held: tuple[Block, ...] | None, domain: Domain, budget: int
) -> tuple[Block, ...] | None:
    """The blocks, merged into one where they do not fit; None where that does not help."""
    if held is None or sum(codes.nbytes + weight.nbytes for codes, weight in held) <= budget:
        return held
    some = held[-1][0][:FEW]
    if len(merge_rows(some, domain.shape, None)[0]) > NEARLY_ALL * len(some):
        return None
    codes, weight = (np.concatenate(parts) for parts in zip(*held, strict=True))
    codes, weight = merge_rows(codes, domain.shape, weight)
    # Half, or the next part would not fit either, and all be merged anew.
    return ((codes, weight),) if codes.nbytes + weight.nbytes <= budget // 2 else None


def sample_size(variables: int) -> int:
    """Records of a sample that is good to start from, and quick to fit.

    Examples
    --------
    >>> sample_size(20), sample_size(1000)
    (500000, 20000)
    """
    return int(np.clip(16_000_000 // max(variables, 1), 20_000, 500_000))


@contextmanager
def at_hand(scan: Scan) -> Iterator[Scan]:
    """The scan, or a packed copy of one whose passes would cost more than their computing."""
    if scan.quick:
        yield scan
        return
    with TemporaryDirectory(prefix="rejoint-", ignore_cleanup_errors=True) as folder:
        yield replace(scan.pack(folder), stamp=scan.stamp, memory=scan.memory)


def survey_of(scan: Scan, seed: int, report: Report, journal: Journal | None) -> Survey:
    """One look at all records, or what the journal has of it."""
    entry = None if journal is None else journal.get("survey")
    size = sample_size(len(scan.domain))
    if entry is not None:
        return Survey(scan.domain, **entry, size=size, held=None, budget=scan.memory)
    below = 1.0 if scan.rows is None else (size + 5 * np.sqrt(size) + 10) / max(scan.rows, 1)
    look = partial(look_at, seed=seed, size=size, budget=scan.part_memory, below=below)
    parts = scan.map(look, report=lambda line: report(f"first look: {line}"))
    found = add_up(replace(part, budget=scan.memory) for part in parts)
    if journal is not None and found.held is None:
        names = ("rows", "mass", "totals", "keys", "codes", "weight")
        journal.put("survey", {name: getattr(found, name) for name in names})
    return found


def add_up(found: Iterable[Survey]) -> Survey:
    """The sum of surveys, of one at least."""
    total: Survey | None = None
    for survey in found:
        total = survey if total is None else total + survey
    if total is None or total.mass <= 0:
        raise ValueError(
            "There is nothing to estimate from: no record has a value and a weight above zero. "
            "Give records with values."
        )
    return total
