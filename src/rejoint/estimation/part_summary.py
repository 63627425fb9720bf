"""PartSummary: totals, patterns and a sample of records that are read part by part; sums add up."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray, Keys
from rejoint.domain.domain import Domain
from rejoint.estimation.policy import Policy
from rejoint.records.merge import merge_rows
from rejoint.records.records import Records
from rejoint.records.scan import Report, Scan, pack_aside
from rejoint.records.survey_design import no_weight_error
from rejoint.solver.checkpoint import digest

#: Rows that are probed before records are merged, and the share of distinct ones beyond which
#: merging does not pay.
PROBED_ROWS, DISTINCT_SHARE = 20_000, 0.9

#: Patterns of missing values that are kept.
MOST_PATTERNS = 4_096

NOTHING = (
    "There is nothing to estimate from: no record has a value and a weight above zero. Give "
    "records with values."
)

Codes = NDArray[np.signedinteger[Any]]
Block = tuple[Codes, FloatArray, Keys]


@dataclass(frozen=True)
class PartSummary:
    """What is known after one pass over some records; the summary of more is the sum.

    Parameters
    ----------
    domain : Domain
        The variables.
    rows : int
        Records, empty ones included.
    totals : array
        Weight of the records that hold each level, (L,).
    mass : float
        Weight of all records that have a value.
    keys, drawn : array and block
        A random sample: the records with the smallest random keys.
    patterns : array of bool (P, N), optional
        Which variables records hold together, each pattern once; only the complete one where there
        are complete records; None where they are too many.
    size : int
        Largest number of records of the sample.
    held : tuple of blocks, optional
        All records, so long as they fit into ``budget`` bytes, merged if necessary.
    budget : int
        Bytes to hold.
    has_weight : bool
        Whether any record, empty ones included, has a weight above zero.
    """

    domain: Domain
    rows: int
    totals: FloatArray
    mass: float
    keys: FloatArray
    drawn: Block
    patterns: NDArray[np.bool_] | None
    size: int
    held: tuple[Block, ...] | None
    budget: int
    has_weight: bool

    def __add__(self, other: "PartSummary") -> "PartSummary":
        keys = np.concatenate([self.keys, other.keys])
        drawn = join_blocks([self.drawn, other.drawn])
        if len(keys) > self.size:
            kept = np.sort(np.argpartition(keys, self.size)[: self.size])
            keys, drawn = keys[kept], take_rows(drawn, kept)
        held = None if self.held is None or other.held is None else (*self.held, *other.held)
        patterns = None
        if self.patterns is not None and other.patterns is not None:
            patterns = distinct_patterns(np.concatenate([self.patterns, other.patterns]))
        return replace(
            self,
            rows=self.rows + other.rows,
            totals=self.totals + other.totals,
            mass=self.mass + other.mass,
            keys=keys,
            drawn=drawn,
            patterns=patterns,
            held=merge_blocks_to_fit(held, self.domain, self.budget),
            has_weight=self.has_weight or other.has_weight,
        )

    @property
    def sample(self) -> Records:
        """The records of the sample."""
        return make_records(self.domain, self.drawn)

    @property
    def records(self) -> Records | None:
        """All records, if they are held."""
        return None if self.held is None else make_records(self.domain, join_blocks(self.held))

    @property
    def observed(self) -> Records | None:
        """A record for each pattern of missing values, all at the first level."""
        if self.patterns is None:
            return None
        return Records(self.domain, np.where(self.patterns, 0, -1).astype(np.int16))


def make_records(domain: Domain, block: Block) -> Records:
    """Records of a block; its keys are empty where there are no clusters."""
    codes, weight, keys = block
    return Records._trusted(domain, codes, weight, cluster_keys=keys if len(keys) else None)


def join_blocks(blocks: Iterable[Block]) -> Block:
    """Return one block of all records."""
    codes, weight, keys = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return codes, weight, keys


def take_rows(block: Block, rows: NDArray[Any]) -> Block:
    """Return some of the records of a block."""
    codes, weight, keys = block
    return codes[rows], weight[rows], keys[rows] if len(keys) else keys


def distinct_patterns(observed: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Each pattern once; only the complete one where it occurs; None where there are too many."""
    if not len(observed):
        return observed
    complete = observed.all(axis=1)
    if complete.any():
        return np.ones((1, observed.shape[1]), dtype=bool)
    bits = np.packbits(observed, axis=1)
    rows = np.unique(bits.view(f"V{bits.shape[1]}").ravel())
    if len(rows) > MOST_PATTERNS:
        return None
    packed = rows.view(np.uint8).reshape(len(rows), -1)
    return np.unpackbits(packed, axis=1, count=observed.shape[1]).astype(bool)


def summarize_part(
    part: Records, seed: int, size: int, budget: int, below: float = 1.0
) -> PartSummary:
    """The summary of one part; which of its records are drawn depends on them and the seed.

    Of the sample only keys ``below`` a bound are kept, where these are known to be enough.
    """
    weight = np.ones(len(part)) if part.sample_weight is None else np.asarray(part.sample_weight)
    observed = np.asarray(part.codes >= 0)
    used = observed.any(axis=1) & (weight > 0)
    clusters = np.empty(0, dtype=np.int64) if part.cluster_keys is None else part.cluster_keys
    block = take_rows((part.codes, weight, clusters), used)
    codes, mass, _ = block
    wide = codes.astype(np.promote_types(codes.dtype, np.int16), copy=False)  # the same for all
    rng = np.random.default_rng([seed, int(digest(wide, mass), 16)])
    keys = rng.random(len(codes))
    kept = np.flatnonzero(keys < below)
    if len(kept) > size:
        kept = np.sort(kept[np.argpartition(keys[kept], size)[:size]])
    counts = (
        np.bincount(codes[:, n] + 1, mass, k + 1)[1:] for n, k in enumerate(part.domain.shape)
    )
    return PartSummary(
        domain=part.domain,
        rows=len(part),
        totals=np.concatenate(list(counts)),
        mass=float(mass.sum()),
        keys=keys[kept],
        drawn=take_rows(block, kept),
        patterns=distinct_patterns(observed[used]),
        size=size,
        held=merge_blocks_to_fit(((part.codes, weight, clusters),), part.domain, budget),
        budget=budget,
        has_weight=bool(weight.any()),
    )


def merge_blocks_to_fit(
    held: tuple[Block, ...] | None, domain: Domain, budget: int
) -> tuple[Block, ...] | None:
    """The blocks, merged into one where they do not fit; None where that does not help.

    Records whose weights are not whole, or that are of clusters, are not merged: each is one
    observation.
    """
    if held is None or sum(array.nbytes for block in held for array in block) <= budget:
        return held
    if not all((weight == np.rint(weight)).all() and not len(keys) for _, weight, keys in held):
        return None
    probe = held[-1][0][:PROBED_ROWS]
    if len(merge_rows(probe, domain.shape, None)[0]) > DISTINCT_SHARE * len(probe):
        return None
    codes, weight, keys = join_blocks(held)
    codes, weight = merge_rows(codes, domain.shape, weight)
    # Half, or the next part would not fit either, and all would be merged again.
    return ((codes, weight, keys),) if codes.nbytes + weight.nbytes <= budget // 2 else None


@contextmanager
def packed(scan: Scan) -> Iterator[Scan]:
    """The scan, or a packed copy of one whose passes would cost more to read than to compute."""
    if scan.quick:
        yield scan
        return
    with TemporaryDirectory(prefix="rejoint-") as folder:
        yield pack_aside(scan, Path(folder))


def summarize(scan: Scan, seed: int, report: Report, policy: Policy) -> PartSummary:
    """Return the summary of all records."""
    cells = policy.sample_cells // max(len(scan.domain), 1)
    size = int(np.clip(cells, *policy.sampled_records))
    below = 1.0 if scan.rows is None else (size + 5 * np.sqrt(size) + 10) / max(scan.rows, 1)
    look = partial(summarize_part, seed=seed, size=size, budget=scan.part_memory, below=below)
    parts = scan.map(look, report=lambda line: report(f"first look: {line}"))
    return add_up(replace(part, budget=scan.memory) for part in parts)


def add_up(summaries: Iterable[PartSummary]) -> PartSummary:
    """The sum of summaries, of one at least."""
    parts = iter(summaries)
    total = reduce(add, parts, next(parts, None))
    if total is not None and total.rows and not total.has_weight:
        raise no_weight_error()
    if total is None or total.mass <= 0:
        raise ValueError(NOTHING)
    return total
