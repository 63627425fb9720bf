"""Assessments: what the tables or records of a fit leave undetermined, found in milliseconds."""

from dataclasses import dataclass
from math import prod

import numpy as np

from rejoint.arrays import BoolArray
from rejoint.domain.domain import Domain
from rejoint.identifiability.certificate import certificate_of
from rejoint.identifiability.jacobian import generic_ranks
from rejoint.identifiability.layout import (
    TableLayout,
    describe_pairs_apart,
    informative_subsets,
)
from rejoint.marginals.marginals import Marginals
from rejoint.marginals.subsets import Subset
from rejoint.messages import Message, PythonName, join_messages
from rejoint.model import Layout
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.records import BaseRecords
from rejoint.records.sparse import SparseRecords
from rejoint.text import plural, show

#: Columns of the Jacobian up to which exact ranks are computed: some tens of milliseconds.
MOST_EXACT_COLUMNS = 250

#: Tables up to which they are examined one by one.
MOST_LISTED_TABLES = 20_000

#: Variables of the largest listed table up to which tables are examined.
MOST_TABLE_VARIABLES = 12

#: Cells of records up to which their patterns are found: a tenth of a second or two.
MOST_PATTERN_CELLS = 50_000_000

#: Subsets of variables within the patterns of records up to which these are examined.
MOST_PATTERN_PARTS = 200_000

#: Cells, observed or not, of sparse records up to which they are made dense.
MOST_DENSE_CELLS = 10_000_000

#: Multiplications up to which pairs that no record holds together are sought.
MOST_PAIR_PRODUCTS = 20_000_000_000

#: Records that are counted at once.
BLOCK_RECORDS = 65536


@dataclass(frozen=True)
class Assessment:
    """What data leave undetermined at a rank; serious if the joint itself is undetermined."""

    text: str = ""
    serious: bool = False

    def __bool__(self) -> bool:
        return bool(self.text)


def assess_tables(marginals: Marginals, model: int | LowRankPMF) -> Assessment:
    """Return what these tables leave undetermined, at a rank or by a model fitted to them.

    Moments of three variables and more are assumed to determine the rest.
    """
    rank = model if isinstance(model, int) else model.rank
    if max((len(m.variables) for m in marginals.moments), default=0) > 2:
        return Assessment()
    subsets = [*informative_subsets(marginals), *(m.variables for m in marginals.moments)]
    if len(subsets) > MOST_LISTED_TABLES and len({len(s) for s in subsets}) > 1:
        return Assessment()
    tables = TableLayout.from_subsets(marginals.domain, subsets)
    if rank == 1 or len(tables.domain) < 3 or tables.uncovered:
        return Assessment()
    few = tables.n_tables <= MOST_LISTED_TABLES
    small = tables.largest_order <= MOST_TABLE_VARIABLES and tables.is_countable
    if tables.order is None and not (few and small):
        return Assessment()
    open_part, apart = _assess_layout(tables, rank, "tables"), tables.apart_text if few else ""
    # Where almost all models of this rank are open, the zeros of this one may close it.
    certificate = None
    if open_part.serious and not isinstance(model, int):
        certificate = certificate_of(model, marginals)
    if certificate:
        return Assessment(join_messages([certificate, apart]))
    return Assessment(join_messages([open_part.text, apart]), open_part.serious)


def assess_records(records: BaseRecords, rank: int) -> Assessment:
    """Return what records leave undetermined; the variables observed together are the tables."""
    if isinstance(records, SparseRecords):
        if len(records) * len(records.domain) > MOST_DENSE_CELLS:
            return Assessment()
        records = records.to_records()
    observed = np.asarray(records.codes >= 0)
    if observed.all(axis=1).any():
        return _assess_complete_records(records.domain, rank)
    apart = describe_pairs_apart("record", _pairs_apart(records.domain, observed))
    absent = [records.names[n] for n in np.flatnonzero(~observed.any(axis=0))]
    if absent:
        unknown = f"No record holds {show(absent)}: nothing is known about it."
        return Assessment(join_messages([apart, unknown]), bool(apart))
    if rank == 1:
        return Assessment(apart, bool(apart))
    open_part, at_most = _assess_patterns(records, observed, rank), ""
    if open_part.serious:
        most = int(observed.sum(axis=1).max(initial=0))
        at_most = f"No record holds more than {plural(most, 'variable')}."
    return Assessment(
        join_messages([apart, at_most, open_part.text]), open_part.serious or bool(apart)
    )


def _assess_layout(tables: TableLayout, rank: int, more: str) -> Assessment:
    """Say what the tables leave undetermined, and what to add: ``more``."""
    columns = tables.columns(rank)
    too_few = tables.equations + 1 < columns
    exact = None if columns > MOST_EXACT_COLUMNS else generic_ranks(tables, rank)
    if exact is None:
        if not too_few and tables.largest_order > 2:
            return Assessment()  # nothing is known against it
    elif exact.free == 0:
        return Assessment()
    if tables.has_joint:
        return Assessment(
            f"The joint is in a table, but its classes are not unique: {_reason(tables, rank)}."
        )
    if exact is not None and exact.open == 0:
        return Assessment(
            f"The joint is locally unique, but its classes are not: {_reason(tables, rank)}."
        )
    if tables.largest_order <= 2:
        directions = exact.open if exact else rank * (rank - 1) // 2
        return Assessment(
            Message(
                "Tables of two variables leave at least {directions} of a rank {rank} joint open: "
                "many other joints meet them as well; this is one of them. Add {more} of three "
                "variables ({plan} says which).",
                directions=plural(directions, "direction"),
                rank=rank,
                more=more,
                plan=PythonName("identifiability.plan"),
            ),
            serious=True,
        )
    directions_text = f" ({plural(exact.open, 'open direction')})" if exact else ""
    return Assessment(
        Message(
            "These tables do not determine a joint of rank {rank}{directions}: {reason}. Many "
            "joints meet them equally well; this is one of them. Lower the rank, or add {more} of "
            "other sets of variables ({plan} says which).",
            rank=rank,
            directions=directions_text,
            reason=_reason(tables, rank),
            more=more,
            plan=PythonName("identifiability.plan"),
        ),
        serious=True,
    )


def _reason(tables: TableLayout, rank: int) -> str:
    """Too few equations, or a deficient generic rank."""
    size = tables.parameters(rank)
    if tables.equations < size:
        return (
            f"rank {rank} has {plural(size, 'parameter')}, the tables have "
            f"{plural(tables.equations, 'independent number')}"
        )
    return f"rank {rank} is beyond them, although they have numbers enough"


def _assess_complete_records(domain: Domain, rank: int) -> Assessment:
    """Complete records determine the joint, but not more classes than it has numbers for."""
    cells = prod(domain.shape)
    size = Layout(domain.shape).parameters(rank)
    if size <= cells - 1:
        return Assessment()
    return Assessment(
        f"The classes are not unique: {plural(size, 'parameter')}, but the joint has "
        f"{plural(cells, 'cell')}."
    )


def _assess_patterns(records: BaseRecords, observed: BoolArray, rank: int) -> Assessment:
    """Say what the sets of variables that records hold leave undetermined."""
    subsets = find_patterns(observed)
    if subsets is not None:
        tables = TableLayout.from_subsets(records.domain, subsets)
        return _assess_layout(tables, rank, "records")
    # All tables of the largest order leave no more undetermined than those that are there.
    most = int(observed.sum(axis=1).max(initial=0))
    open_part = _assess_layout(TableLayout(records.domain, most), rank, "records")
    return open_part if open_part.serious else Assessment()


def find_patterns(observed: BoolArray) -> set[Subset] | None:
    """The sets of variables that records hold; None if there are none or too many."""
    if observed.size > MOST_PATTERN_CELLS:
        return None
    bits = np.packbits(observed, axis=1)
    packed = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), dtype=np.uint8)
    packed[:, : bits.shape[1]] = bits
    words = packed.view(np.uint64)
    first = np.unique(words[:, 0] if words.shape[1] == 1 else words, axis=0, return_index=True)[1]
    rows = observed[first]
    if len(rows) > MOST_LISTED_TABLES or (2.0 ** rows.sum(axis=1)).sum() > MOST_PATTERN_PARTS:
        return None
    return {tuple(np.flatnonzero(row).tolist()) for row in rows if row.any()} or None


def _pairs_apart(domain: Domain, observed: BoolArray) -> list[tuple[str, str]]:
    """Pairs of observed variables that no record holds together; none if that takes minutes."""
    size = observed.shape[1]
    if len(observed) * size**2 > MOST_PAIR_PRODUCTS:
        return []
    count = np.zeros((size, size))
    for start in range(0, len(observed), BLOCK_RECORDS):
        block = observed[start : start + BLOCK_RECORDS].astype(np.float32)
        count += block.T @ block
    seen = np.diagonal(count) > 0
    apart = np.argwhere((count == 0) & np.outer(seen, seen))
    return [(domain.names[i], domain.names[j]) for i, j in apart if i < j]
