"""Concerns: what a fit must say of its own tables, found in milliseconds."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain
from rejoint.domain.labels import plural, show
from rejoint.identifiability.bounds import kruskal
from rejoint.identifiability.bounds_report import apart_words
from rejoint.identifiability.jacobian import generic_ranks
from rejoint.identifiability.layout import Layout, filled, of_positions
from rejoint.identifiability.theorems import balanced
from rejoint.marginals.marginals import Marginals
from rejoint.messages import Message, PythonName, join_messages
from rejoint.records.records import Records
from rejoint.records.sparse import AnyRecords, SparseRecords

#: Parameters up to which exact ranks are computed on the way: some tens of milliseconds.
QUICK = 250

#: Tables that are looked at one by one, and variables of the largest: beyond, counting is all.
LISTED, WIDE = 20_000, 12

#: Cells of records whose patterns are looked at, and parts of those: a tenth of a second or two.
CELLS, PARTS = 50_000_000, 200_000

#: Cells, seen or not, of the largest sparse records that are written out.
DENSE = 10_000_000


@dataclass(frozen=True)
class Concern:
    """What tables leave open at a rank, in words; serious where the joint itself is open."""

    words: str = ""
    serious: bool = False

    def __bool__(self) -> bool:
        return bool(self.words)


def of_tables(marginals: Marginals, rank: int) -> Concern:
    """What these tables leave open at this rank.

    Moments of three variables and more are taken to close it.

    Examples
    --------
    >>> pairs = {("a", "b"): [[1, 2], [3, 4]], ("b", "c"): [[2, 2], [3, 3]]}
    >>> of_tables(Marginals.from_tables(pairs), 2).serious
    True
    """
    if max((len(m.variables) for m in marginals.moments), default=0) > 2:
        return Concern()
    subsets = [*filled(marginals), *(m.variables for m in marginals.moments)]
    if len(subsets) > LISTED and len({len(s) for s in subsets}) > 1:
        return Concern()
    return of_layout(of_positions(marginals.domain, subsets), rank)


def of_layout(tables: Layout, rank: int) -> Concern:
    """The same of variables and tables alone."""
    if rank == 1 or len(tables.domain) < 3 or tables.uncovered:
        return Concern()
    beyond = tables.number > LISTED or tables.largest > WIDE or not tables.countable
    if tables.order is None and beyond:
        return Concern()
    open_words, serious = open_part(tables, rank)
    apart = apart_words(tables) if 0 < tables.number <= LISTED and tables.apart else ""
    return Concern(join_messages([open_words, apart]), serious)


def open_part(tables: Layout, rank: int, add: str = "tables") -> tuple[str, bool]:
    """Words on what is open, what to add, and whether the joint is open."""
    columns = tables.columns(rank)
    short = tables.equations + 1 < columns
    known = not short and proved_at_once(tables, rank)
    exact = None if known or columns > QUICK else generic_ranks(tables, rank)
    if known or (exact is not None and exact.free == 0):
        return "", False
    if exact is None and not short and tables.largest > 2:
        return "", False  # nothing is known against it
    if tables.whole:
        return (
            f"The joint is in a table, but its classes are not unique: {why(tables, rank)}.",
            False,
        )
    if exact is not None and exact.open == 0:
        return f"The joint is locally unique, but its classes are not: {why(tables, rank)}.", False
    if tables.largest <= 2:
        return pair_words(rank, exact.open if exact else rank * (rank - 1) // 2, add), True
    free = f" ({plural(exact.open, 'open direction')})" if exact else ""
    return (
        Message(
            "These tables do not determine a joint of rank {rank}{free}: {why}. Many joints meet "
            "them equally well, this is one. Lower the rank, or add {add} of other sets of "
            "variables ({plan} says which).",
            rank=rank,
            free=free,
            why=why(tables, rank),
            add=add,
            plan=PythonName("identifiability.plan"),
        ),
        True,
    )


def why(tables: Layout, rank: int) -> str:
    """Too few numbers, or a generic rank that falls short."""
    size = tables.columns(rank) - 1
    if tables.equations < size:
        return (
            f"rank {rank} has {size:,} parameters, the tables have {tables.equations:,} "
            "independent numbers"
        )
    return f"rank {rank} is beyond them, although they have numbers enough"


def pair_words(rank: int, free: int, add: str) -> str:
    """What tables of pairs leave open."""
    return Message(
        "Tables of two variables leave at least {free} of a rank {rank} joint open: many other "
        "joints meet them as well, this is one. Add {add} of three variables ({plan} says which).",
        free=plural(free, "direction"),
        rank=rank,
        add=add,
        plan=PythonName("identifiability.plan"),
    )


def proved_at_once(tables: Layout, rank: int) -> bool:
    """Kruskal on even groups, where all tables of an order are there."""
    if tables.order is None or tables.order < 3:
        return False
    groups = balanced(tables.free, 3)
    return rank <= int(kruskal(*(1 + sum(tables.free[n] for n in group) for group in groups)))


def of_any(records: AnyRecords, rank: int) -> Concern:
    """The same of sparse records, where not too many cells would have to be written out."""
    if isinstance(records, SparseRecords):
        if len(records) * len(records.domain) > DENSE:
            return Concern()
        records = records.to_records()
    return of_records(records, rank)


def of_records(records: Records, rank: int) -> Concern:
    """What records with holes leave open: the sets of cells that are seen together are its tables.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[0, 1, np.nan], [1, 0, np.nan], [np.nan, 1, 1], [np.nan, 0, 0]])
    >>> of_records(Records.of(rows), 1).words
    'No record holds together: x0 and x2. How they depend on each other rests on the model alone.'
    """
    seen = np.asarray(records.codes >= 0)
    if seen.all(axis=1).any():
        return too_many_classes(records.domain, rank)
    together = never_together(records.domain, seen)
    most = int(seen.sum(axis=1).max(initial=0))
    absent = [
        name
        for name, there in zip(records.names, np.asarray(seen.any(axis=0)), strict=True)
        if not there
    ]
    if absent:
        unseen = f"No record holds {show(absent)}: nothing is known of it."
        return Concern(" ".join(filter(None, [together, unseen])), bool(together))
    if rank == 1:
        return Concern(together, bool(together))
    subsets = patterns(seen)
    if subsets is None:  # more tables than there are leave no less open
        tables = Layout(records.domain, most)
    else:
        tables = of_positions(records.domain, subsets)
    words, serious = open_part(tables, rank, "records")
    if subsets is None and not serious:
        words = ""
    at_most = f"No record holds more than {plural(most, 'variable')}." if serious else ""
    said = join_messages([together, at_most, words])
    return Concern(said, serious or bool(together))


def patterns(seen: NDArray[np.bool_]) -> set[tuple[int, ...]] | None:
    """The sets of cells that records hold, none inside another; None where they are too many."""
    if seen.size > CELLS:
        return None
    bits = np.packbits(seen, axis=1)
    packed = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), dtype=np.uint8)
    packed[:, : bits.shape[1]] = bits
    words = packed.view(np.uint64)
    first = np.unique(words[:, 0] if words.shape[1] == 1 else words, axis=0, return_index=True)[1]
    rows = seen[first]
    if len(rows) > LISTED or (2.0 ** rows.sum(axis=1)).sum() > PARTS:
        return None
    return {tuple(np.flatnonzero(row).tolist()) for row in rows if row.any()} or None


def never_together(domain: Domain, seen: NDArray[np.bool_]) -> str:
    """Words on pairs of variables that no record holds both of."""
    if seen.shape[0] * seen.shape[1] ** 2 > 20_000_000_000:
        return ""  # minutes, for a remark
    count = np.zeros((seen.shape[1], seen.shape[1]))
    for start in range(0, len(seen), 65536):
        block = seen[start : start + 65536].astype(np.float32)
        count += block.T @ block
    somewhere = np.diagonal(count) > 0
    apart = np.argwhere((count == 0) & np.outer(somewhere, somewhere))
    pairs = [(domain.names[i], domain.names[j]) for i, j in apart if i < j]
    return pairs_words(pairs)


def pairs_words(pairs: Sequence[tuple[str, str]]) -> str:
    """The first few of these pairs, and what it means."""
    if not pairs:
        return ""
    first = "; ".join(" and ".join(pair) for pair in pairs[:3])
    more = f", and {plural(len(pairs) - 3, 'more pair')}" if len(pairs) > 3 else ""
    return (
        f"No record holds together: {first}{more}. How they depend on each other rests on the "
        "model alone."
    )


def too_many_classes(domain: Domain, rank: int) -> Concern:
    """Complete records determine the joint, but not more classes than it has numbers for."""
    cells = prod(domain.shape)
    size = rank * (1 + sum(domain.shape) - len(domain)) - 1
    if size <= cells - 1:
        return Concern()
    return Concern(
        f"The classes are not unique: {size:,} parameters, but the joint has {cells:,} cells."
    )
