"""Counting records into tables: chunk by chunk, identical records merged where that pays."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint import kernels
from rejoint.domain.domain import Domain
from rejoint.records.merge import merge_rows
from rejoint.records.records import BaseRecords, Records
from rejoint.records.scan import Scan
from rejoint.records.sparse import SparseRecords, as_records

Array = NDArray[np.float64]
Subset = tuple[int, ...]

#: Merging pays if all possible records, holes included, are this many times fewer than the rows,
#: and the tables more than the variables (measured: at 1e6 rows it saves up to two thirds).
MERGE = 4

#: Sparse records with a cell observed out of so many get a code for each cell: counted from these
#: they are quicker, and they take no more than 32 bytes for an observed cell.
FULL = 16


def as_chunks(data: Any, domain: Domain | None, sample_weight: Any) -> Iterator[BaseRecords]:
    """Give the data as Records (or SparseRecords), one after another, all over the same domain.

    An iterator is taken as chunks; anything else is one. Chunks that are not Records need a
    domain, since each alone may show only some of the levels.

    Examples
    --------
    >>> rows = [{"a": 0, "b": 1}, {"a": 1, "b": 0}]
    >>> [len(chunk) for chunk in as_chunks(rows, None, None)]
    [2]
    """
    if not isinstance(data, Iterator):
        yield as_records(data, domain=domain, sample_weight=sample_weight)
        return
    if sample_weight is not None:
        raise ValueError(
            "sample_weight cannot be matched to an iterator of chunks: give chunks that are "
            "Records with their own weights, Records.of(chunk, sample_weight=...)."
        )
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
) -> Array:
    """Add up the tables of all chunks (at least one), flat.

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
) -> Array:
    """Add up the tables of all parts of a scan, wherever these are.

    Examples
    --------
    >>> import rejoint as rj
    >>> count_scan(rj.scan(lambda: iter([{"a": [0, 1]}, {"a": [1]}])), ((0,),), threads=1)
    array([1., 2.])
    """
    from rejoint.solver.progress import (
        Progress,  # it stands below, but shows what any long pass does
    )

    threads = scan.threads if threads is None else threads
    count = partial(_count_one, subsets=subsets, threads=threads)
    total: Array | None = None
    with Progress(progress) as report:
        for flat in scan.map(count, report=lambda line: report(f"counting: {line}")):
            total = flat if total is None else total + flat
    if total is None:
        raise ValueError(f"{scan} has no rows: there is nothing to count.")
    return total


def _count_one(records: BaseRecords, subsets: tuple[Subset, ...], threads: int) -> Array:
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
