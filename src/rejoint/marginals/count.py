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
    """Remark on how long it takes to count, if that is minutes.

    Examples
    --------
    >>> check_time(10_000, 1_000)
    """
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

    Examples
    --------
    >>> rows = [{"a": 0, "b": 1}, {"a": 1, "b": 0}]
    >>> [len(chunk) for chunk in as_chunks(rows, None, WeightArguments())]
    [2]
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
    """Add up the tables of all chunks (at least one); return them flat.

    Examples
    --------
    >>> records = Records.of([{"a": 0, "b": 1}, {"a": 1, "b": 0}])
    >>> count_all([records, records], ((0,), (0, 1)), threads=1)
    array([2., 2., 0., 2., 2., 0.])
    """
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
    """Add up the tables of all parts of a scan.

    Examples
    --------
    >>> import rejoint as rj
    >>> count_scan(rj.scan(lambda: iter([{"a": [0, 1]}, {"a": [1]}])), ((0,),), threads=1)
    array([1., 2.])
    """
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
    """Add the counts of tables that both have, and keep those that only one has.

    Examples
    --------
    >>> from rejoint import Marginals
    >>> domain = Domain.of({"a": 2, "b": 2})
    >>> one = Marginals(domain, ((0,),), [3, 1])
    >>> both = add_tables(one, Marginals(domain, ((1,), (0,)), [2, 2, 1, 1]))
    >>> both.subsets, both["a"]
    ((('a',), ('b',)), array([4., 2.]))
    """
    if one.domain != other.domain:
        raise ValueError(
            "Marginals can be added only over the same domain: count both with domain=, so that "
            "variables and levels agree."
        )
    moments = one.moments + tuple(m for m in other.moments if m not in one.moments)
    _check_same_tables(one, other)
    if one.index_subsets == other.index_subsets:
        return replace(
            one,
            flat=one.flat + other.flat,
            moments=moments,
            noisy=one.noisy or other.noisy,
            rounding=one.rounding + other.rounding,
        )
    extra = [i for i, s in enumerate(other.index_subsets) if s not in one.positions]
    flat = np.concatenate([one.flat, *(other.counts_of(i).ravel() for i in extra)])
    rounding = np.concatenate([one.rounding, other.rounding[extra]])
    for subset, j in other.positions.items():
        i = one.positions.get(subset)
        if i is not None:
            flat[one.starts[i] : one.starts[i + 1]] += other.counts_of(j).ravel()
            rounding[i] += other.rounding[j]
    return replace(
        one,
        index_subsets=one.index_subsets + tuple(other.index_subsets[i] for i in extra),
        flat=flat,
        table_weight=np.concatenate([one.table_weight, other.table_weight[extra]]),
        moments=moments,
        counted=np.concatenate([one.counted, other.counted[extra]]),
        unknown=_both_unknown(one, other, extra),
        noisy=one.noisy or other.noisy,
        rounding=rounding,
    )


def _both_unknown(one: "Marginals", other: "Marginals", extra: list[int]) -> UnknownCells | None:
    """Return the unknown cells of the first tables, and of the extra tables of the second."""
    parts = [one.unknown] if one.unknown is not None else []
    start = len(one.flat)
    for i in extra:
        cells = other.unknown_of(i)
        if cells is not None:
            parts.append(cells.shifted(start))
        start += int(other.starts[i + 1] - other.starts[i])
    return UnknownCells.together(parts)


def _check_same_tables(one: "Marginals", other: "Marginals") -> None:
    """Raise unless the tables that both have are counts of equal weight, which can be added."""
    for subset, j in other.positions.items():
        i = one.positions.get(subset)
        if i is None:
            continue
        if not (one.counted[i] and other.counted[j]):
            raise ValueError(
                f"Both have a table of {cite(one.subsets[i])}, and shares do not add up: multiply "
                "them by their numbers of records and give counts, or leave one of them out."
            )
        if one.unknown_of(i) is not None or other.unknown_of(j) is not None:
            raise ValueError(
                f"Both have a table of {cite(one.subsets[i])}, and cells of it are not known in "
                "one of them: what is not known does not add up. Leave one of them out."
            )
        if one.table_weight[i] != other.table_weight[j]:
            raise ValueError(
                f"Table {cite(one.subsets[i])} has table_weight {one.table_weight[i]:g} here and "
                f"{other.table_weight[j]:g} there: give both the same."
            )
