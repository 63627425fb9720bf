"""Counts of records in the tables of many subsets of variables at once."""

from collections.abc import Sequence
from itertools import chain
from math import prod

import numpy as np
from numpy.typing import NDArray

from rejoint.kernels.backend import (
    OUT_OF_RANGE,
    Array,
    Codes,
    check_codes,
    check_shape,
    check_weight,
    compiled,
)
from rejoint.kernels.codes import SparseCodes

Ints = NDArray[np.int64]


def table_sizes(levels: Sequence[int], subsets: Sequence[tuple[int, ...]]) -> Ints:
    """Return the number of cells of each table."""
    if not len(subsets):
        return np.ones(0, dtype=np.int64)
    lengths, members = _flatten(subsets)
    factors = np.asarray(levels, dtype=np.int64)[members]
    return np.multiply.reduceat(factors, np.cumsum(lengths) - lengths)


def _flatten(subsets: Sequence[tuple[int, ...]]) -> tuple[Ints, Ints]:
    """Number of variables of each subset, and the variables of one subset after another."""
    lengths = np.fromiter(map(len, subsets), dtype=np.int64, count=len(subsets))
    return lengths, np.fromiter(chain.from_iterable(subsets), np.int64, int(lengths.sum()))


def count(
    codes: Codes | SparseCodes,
    weight: Array | None,
    levels: Sequence[int],
    subsets: Sequence[tuple[int, ...]],
    threads: int = 1,
) -> Array:
    """Count the tables of many subsets of variables, each from the records that observe them all.

    Parameters
    ----------
    codes : (M, N) array of int8, int16 or int32, or SparseCodes
        Level of each variable in each record; -1 where it is missing.
    weight : (M,) array of float, optional
        Weight of each record; one each by default.
    levels : sequence of N int
        Number of levels of each variable; codes must lie below it.
    subsets : sequence of tuples of int
        Variables of each table, increasing; for SparseCodes no two alike.
    threads : int
        Threads of the compiled kernel. The result does not depend on it.

    Returns
    -------
    array of float
        The tables one after another, each in C order. Without weights they are exact integers.

    Examples
    --------
    >>> codes = np.array([[0, 1], [1, 1], [0, -1]], dtype=np.int16)
    >>> count(codes, None, [2, 2], [(0,), (0, 1)])
    array([2., 1., 0., 1., 0., 1.])
    """
    sizes, members = _flatten(subsets)
    if len(sizes) and not (sizes.min() > 0 and 0 <= members.min() <= members.max() < len(levels)):
        raise ValueError(f"subsets must name variables among 0..{len(levels) - 1}, at least one.")
    weight = check_weight(weight, len(codes))
    if isinstance(codes, SparseCodes):
        if codes.levels != tuple(levels):
            raise ValueError(f"The codes have other levels than {tuple(levels)[:10]}.")
        if len({*map(tuple, subsets)}) < len(subsets):
            raise ValueError("subsets for SparseCodes must differ: one is given twice.")
    elif compiled is None:
        check_codes(codes, levels)
    else:
        check_shape(codes, levels)
    if compiled is None:
        return numpy_count(codes, weight, levels, subsets)
    cells, shape = table_sizes(levels, subsets), np.asarray(levels, dtype=np.int64)
    out = np.zeros(int(cells.sum()))
    if isinstance(codes, SparseCodes):
        tables, records = np.cumsum(cells) - cells, (codes.starts, codes.cells, codes.variables)
        compiled.count_sparse(*records, weight, shape, sizes, members, tables, out, threads)
        return out
    if not compiled.count(np.ascontiguousarray(codes), weight, shape, sizes, members, out, threads):
        raise ValueError(OUT_OF_RANGE)
    return out


def numpy_count(
    codes: Codes | SparseCodes,
    weight: Array | None,
    levels: Sequence[int],
    subsets: Sequence[tuple[int, ...]],
) -> Array:
    """NumPy version of :func:`count`, by ``numpy.bincount``; SparseCodes become a table of codes.

    A missing value counts as a level of its own, which is dropped in the end: this is cheaper than
    selecting rows.
    """
    codes = codes.to_codes() if isinstance(codes, SparseCodes) else codes
    columns = [codes[:, n].astype(np.intp) + 1 for n in range(codes.shape[1])]
    tables = [np.empty(0)]
    for subset in subsets:
        shape = [levels[n] + 1 for n in subset]
        cells = np.ravel_multi_index([columns[n] for n in subset], shape)
        table = np.bincount(cells, weight, prod(shape)).astype(np.float64).reshape(shape)
        tables.append(table[(slice(1, None),) * len(subset)].ravel())
    return np.concatenate(tables)
