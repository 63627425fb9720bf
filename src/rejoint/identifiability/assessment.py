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
from rejoint.messages import join_messages
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

#: Cells of records, observed or not, up to which their patterns are found: some tenths of a second.
MOST_PATTERN_CELLS = 50_000_000

#: Subsets of variables within the patterns of records up to which these are examined.
MOST_PATTERN_PARTS = 200_000


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
    if isinstance(model, LowRankPMF) and open_part.serious:
        certificate = certificate_of(model, marginals)
        open_part = Assessment(certificate) if certificate else open_part
    return Assessment(join_messages([open_part.text, apart]), open_part.serious)


def assess_records(records: BaseRecords, rank: int) -> Assessment:
    """Return what records leave undetermined; the variables observed together are the tables."""
    if len(records) * len(records.domain) > MOST_PATTERN_CELLS:
        return Assessment()
    records = records.to_records() if isinstance(records, SparseRecords) else records
    patterns = find_patterns(np.asarray(records.codes >= 0))
    size = patterns.sum(axis=1)
    if (size == len(records.domain)).any():
        return _assess_complete_records(records.domain, rank)
    together = patterns.astype(np.float32).T @ patterns
    seen = np.diagonal(together) > 0
    pairs = np.argwhere(np.triu((together == 0) & np.outer(seen, seen)))
    names = records.names
    apart = describe_pairs_apart("record", [(names[i], names[j]) for i, j in pairs])
    absent = [names[n] for n in np.flatnonzero(~seen)]
    if absent or rank == 1:
        unknown = f"No record holds {show(absent)}: nothing is known about it." if absent else ""
        return Assessment(join_messages([apart, unknown]), bool(apart))
    most = int(size.max(initial=0))
    if len(patterns) <= MOST_LISTED_TABLES and (2.0**size).sum() <= MOST_PATTERN_PARTS:
        subsets = {tuple(np.flatnonzero(row).tolist()) for row in patterns if row.any()}
        open_part = _assess_layout(
            TableLayout.from_subsets(records.domain, subsets), rank, "records"
        )
    else:
        # All tables of the largest order leave no more undetermined than those that are there.
        open_part = _assess_layout(TableLayout(records.domain, most), rank, "records")
        open_part = open_part if open_part.serious else Assessment()
    at_most = f"No record holds more than {plural(most, 'variable')}."
    at_most = at_most if open_part.serious else ""
    return Assessment(
        join_messages([apart, at_most, open_part.text]), open_part.serious or bool(apart)
    )


def find_patterns(observed: BoolArray) -> BoolArray:
    """The different sets of variables that records hold, one in each row."""
    # Sums of random numbers tell sets apart.
    marks = np.random.default_rng(0).integers(2**63, size=observed.shape[1], dtype=np.uint64)
    return observed[np.unique(observed @ marks, return_index=True)[1]]


def _assess_layout(tables: TableLayout, rank: int, more: str) -> Assessment:
    """Say what the tables leave undetermined, and what to add: ``more``."""
    columns, size = tables.columns(rank), tables.parameters(rank)
    exact = None if columns > MOST_EXACT_COLUMNS else generic_ranks(tables, rank)
    too_few = tables.equations < size
    if exact is not None and exact.free == 0:
        return Assessment()
    if exact is None and not too_few and tables.largest_order > 2:
        return Assessment()  # nothing is known against it
    reason = f"rank {rank} is beyond them, although they have numbers enough"
    if too_few:
        reason = (
            f"rank {rank} has {plural(size, 'parameter')}, the tables have "
            f"{plural(tables.equations, 'independent number')}"
        )
    if tables.has_joint:
        return Assessment(f"The joint is in a table, but its classes are not unique: {reason}.")
    if exact is not None and exact.open == 0:
        return Assessment(f"The joint is locally unique, but its classes are not: {reason}.")
    plan = "(identifiability.plan says which)"
    if tables.largest_order <= 2:
        directions = exact.open if exact else rank * (rank - 1) // 2
        text = (
            f"Tables of two variables leave at least {plural(directions, 'direction')} of a rank "
            f"{rank} joint open: many other joints meet them as well; this is one of them. Add "
            f"{more} of three variables {plan}."
        )
    else:
        number = f" ({plural(exact.open, 'open direction')})" if exact else ""
        text = (
            f"These tables do not determine a joint of rank {rank}{number}: {reason}. Many joints "
            f"meet them equally well; this is one of them. Lower the rank, or add {more} of other "
            f"sets of variables {plan}."
        )
    return Assessment(text, serious=True)


def _assess_complete_records(domain: Domain, rank: int) -> Assessment:
    """Complete records determine the joint, but not more classes than it has numbers for."""
    cells, size = prod(domain.shape), Layout(domain.shape).parameters(rank)
    if size <= cells - 1:
        return Assessment()
    return Assessment(
        f"The classes are not unique: {plural(size, 'parameter')}, but the joint has "
        f"{plural(cells, 'cell')}."
    )
