"""Surveys: one look at records that are read part by part, which add up."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain import Domain
from rejoint.estimation.problem import Array, any_cell
from rejoint.records import Records, Scan
from rejoint.records.scans import Report
from rejoint.records.tallies import merge_rows
from rejoint.solver import Journal, digest

__all__ = ["Survey", "at_hand", "look_at", "survey_of"]


#: Records of which nearly all must not differ if merging shall pay.
FEW, NEARLY_ALL = 20_000, 0.9

Codes = NDArray[np.signedinteger[Any]]
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
    chance = np.random.default_rng([seed, int(digest(codes, mass), 16)])
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
