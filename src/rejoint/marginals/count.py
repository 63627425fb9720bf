"""Count records into tables, chunk by chunk; identical records are merged where that is faster."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from rejoint import kernels
from rejoint.arrays import FloatArray
from rejoint.cost import Cost
from rejoint.domain.domain import Domain
from rejoint.marginals.unknown import UnknownCells
from rejoint.messages import Progress
from rejoint.records.merge import merge_rows
from rejoint.records.records import BaseRecords, Records, check_undeclared
from rejoint.records.scan import Scan
from rejoint.records.sparse import SparseRecords, as_records
from rejoint.records.survey_design import WeightArguments, no_weight_error
from rejoint.text import cite, plural

if TYPE_CHECKING:
    from rejoint.marginals.marginals import Marginals

Subset = tuple[int, ...]

#: Merging is faster if there are this many times more rows than possible records, missing values
#: included, and more tables than variables (measured: at 1e6 rows up to two thirds less time).
MERGE = 4

#: Sparse records with at least one observed cell in this many are counted from a dense table: this
#: is faster and takes at most 32 bytes per observed cell.
FULL = 16


#: Seconds that counting takes for each table, and for each record and table, on one processor.
TABLE_SECONDS, RECORD_SECONDS = 1e-6, 3e-10


def check_time(rows: int, tables: int) -> None:
    """Remark on how long it takes to count, if that is minutes."""
    seconds = tables * (TABLE_SECONDS + RECORD_SECONDS * rows)
    counting = Cost(0.0, seconds / kernels.available_threads(), 4 * seconds)
    what = f"Counting {plural(rows, 'record')} into {plural(tables, 'table')}"
    counting.check(what, "fewer tables (subsets, sample) or a lower order take less")


def as_chunks(
    data: Any, domain: Domain | None, weights: WeightArguments, **declared: Any
) -> Iterator[BaseRecords]:
    """Yield the data as Records (or SparseRecords), all over the same domain.

    An iterator yields chunks; anything else is one chunk. Chunks that are not Records need a
    domain, because each may contain only some of the levels.
    """
    if not isinstance(data, Iterator):
        yield as_records(data, domain=domain, weights=weights, **declared)
        return
    if weights.given:
        name = next(iter(weights.given))
        more = (
            "or scan(lambda: ...)" if weights.is_survey else "Records.of(chunk, sample_weight=...)"
        )
        raise ValueError(
            f"{name} cannot be matched to an iterator of chunks: give chunks that are Records with "
            f"their own weights, {more}."
        )
    check_undeclared(**declared)
    first = next(data, None)
    if first is None:
        raise ValueError("The iterator of chunks is empty: there is nothing to count.")
    if domain is None and not isinstance(first, Records | SparseRecords):
        raise ValueError(
            "Chunks need a domain, since one chunk may not show every level: give domain=, or "
            "chunks that are Records."
        )
    domain = first.domain if domain is None else domain
    for chunk in chain([first], data):
        yield as_records(chunk, domain=domain)


def count_all(
    chunks: Iterable[BaseRecords], subsets: tuple[Subset, ...], threads: int | None
) -> FloatArray:
    """Add up the tables of all chunks (at least one); return them flat."""
    threads = kernels.available_threads() if threads is None else threads
    if threads < 1:
        raise ValueError(f"threads must be at least 1, got {threads}.")
    tables = (_count_one(records, subsets, threads) for records in chunks)
    total = next(tables)
    for flat in tables:
        total += flat
    return total


def count_scan(
    scan: Scan, subsets: tuple[Subset, ...], threads: int | None, progress: bool | None = None
) -> FloatArray:
    """Add up the tables of all parts of a scan."""
    threads = scan.threads if threads is None else threads
    if scan.rows is not None:
        check_time(scan.rows, len(subsets))
    count = partial(_count_one, subsets=subsets, threads=threads)
    total: FloatArray | None = None
    with Progress(progress) as report:
        for flat in scan.map(count, report=lambda line: report(f"counting: {line}")):
            total = flat if total is None else total + flat
    if total is None:
        raise ValueError(f"{scan} has no rows: there is nothing to count.")
    if not total.any():
        rows, mass = sum(scan.map(_size), np.zeros(2))
        if rows and not mass:
            raise no_weight_error()
    return total


def _size(records: BaseRecords) -> FloatArray:
    weight = records.sample_weight
    return np.array([len(records), len(records) if weight is None else weight.sum()], dtype=float)


def _count_one(records: BaseRecords, subsets: tuple[Subset, ...], threads: int) -> FloatArray:
    levels, size = records.domain.shape, len(records)
    alike = len(subsets) > len(levels) and MERGE * prod(n + 1 for n in levels) <= size
    if isinstance(records, SparseRecords):
        if not alike and size * len(levels) > FULL * records.codes.size:
            return kernels.count(records.codes, records.sample_weight, levels, subsets, threads)
        records = records.to_records()
    codes, weight = records.codes, records.sample_weight
    if alike:
        codes, weight = merge_rows(codes, levels, weight)
    return kernels.count(codes, weight, levels, subsets, threads)


def add_tables(one: "Marginals", other: "Marginals") -> "Marginals":
    """Add the counts of tables that both have, and keep those that only one has."""
    if one.domain != other.domain:
        raise ValueError(
            "Marginals can be added only over the same domain: count both with domain=, so that "
            "variables and levels agree."
        )
    _check_same_tables(one, other)
    moments = one.moments + tuple(m for m in other.moments if m not in one.moments)
    shared: dict[str, Any] = {"moments": moments, "noisy": one.noisy or other.noisy}
    if one.index_subsets == other.index_subsets:
        rounding = one.rounding + other.rounding
        return replace(one, flat=one.flat + other.flat, rounding=rounding, **shared)
    subsets = tuple(dict.fromkeys((*one.index_subsets, *other.index_subsets)))
    holders = [[m for m in (one, other) if subset in m.positions] for subset in subsets]
    held = [[(m, m.positions[s]) for m in of] for s, of in zip(subsets, holders, strict=True)]
    flat = [sum((m.counts_of(i).ravel() for m, i in of), np.zeros(1)) for of in held]
    starts = np.cumsum([0, *map(len, flat)])
    firsts = [of[0] for of in held]
    places = zip(firsts, starts, strict=False)
    unknown = [(m.unknown_of(i), int(start)) for (m, i), start in places]
    return replace(
        one,
        index_subsets=subsets,
        flat=np.concatenate(flat),
        table_weight=np.array([m.table_weight[i] for m, i in firsts]),
        counted=np.array([m.counted[i] for m, i in firsts]),
        unknown=UnknownCells.together([c.shifted(at) for c, at in unknown if c is not None]),
        rounding=np.array([sum(m.rounding[i] for m, i in of) for of in held]),
        **shared,
    )


def _check_same_tables(one: "Marginals", other: "Marginals") -> None:
    """Raise unless the tables that both have are counts of equal weight, which can be added."""
    for subset in one.positions.keys() & other.positions.keys():
        i, j = one.positions[subset], other.positions[subset]
        names = cite(one.subsets[i])
        if not (one.counted[i] and other.counted[j]):
            raise ValueError(
                f"Both have a table of {names}, and shares do not add up: multiply them by their "
                "numbers of records and give counts, or leave one of them out."
            )
        if one.unknown_of(i) is not None or other.unknown_of(j) is not None:
            raise ValueError(
                f"Both have a table of {names}, and cells of it are not known in one of them: what "
                "is not known does not add up. Leave one of them out."
            )
        if one.table_weight[i] != other.table_weight[j]:
            weights = f"{one.table_weight[i]:g} here and {other.table_weight[j]:g} there"
            raise ValueError(f"Table {names} has table_weight {weights}: give both the same.")
