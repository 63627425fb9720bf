"""Counts of records in the tables of many subsets of variables at once."""

from collections.abc import Sequence
from dataclasses import dataclass
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

BLOCK_VALUES = 1 << 20  # values that the twin for SparseCodes looks at together
DIRECT_ENTRIES = 1 << 22  # entries of the largest table in which it looks prefixes up directly


def table_sizes(levels: Sequence[int], subsets: Sequence[tuple[int, ...]]) -> Ints:
    """Return the number of cells of each table.

    Examples
    --------
    >>> table_sizes([2, 3, 4], [(0,), (1, 2)])
    array([ 2, 12])
    """
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
    if isinstance(codes, SparseCodes):
        return _count_sparse(codes, weight, levels, subsets, threads)
    if compiled is None:
        check_codes(codes, levels)
        return numpy_count(codes, check_weight(weight, len(codes)), levels, subsets)
    check_shape(codes, levels)
    weight = check_weight(weight, len(codes))
    out = np.zeros(int(table_sizes(levels, subsets).sum()))
    shape = np.asarray(levels, dtype=np.int64)
    if not compiled.count(np.ascontiguousarray(codes), weight, shape, sizes, members, out, threads):
        raise ValueError(OUT_OF_RANGE)
    return out


def _count_sparse(
    codes: SparseCodes,
    weight: Array | None,
    levels: Sequence[int],
    subsets: Sequence[tuple[int, ...]],
    threads: int,
) -> Array:
    if codes.levels != tuple(levels):
        raise ValueError(f"The codes have other levels than {tuple(levels)[:10]}.")
    weight = check_weight(weight, len(codes))
    sizes, members = _flatten(subsets)
    cells = table_sizes(levels, subsets)
    tables, out = np.cumsum(cells) - cells, np.zeros(int(cells.sum()))
    if compiled is None:
        numpy_count_sparse(codes, weight, sizes, members, tables, out)
    else:
        shape, mine = np.asarray(levels, dtype=np.int64), (*codes.arrays, codes.variables)
        compiled.count_sparse(*mine, weight, shape, sizes, members, tables, out, threads)
    return out


def numpy_count(
    codes: Codes,
    weight: Array | None,
    levels: Sequence[int],
    subsets: Sequence[tuple[int, ...]],
) -> Array:
    """NumPy version of :func:`count` for tables of codes, by ``numpy.bincount``.

    Subsets that share all but their last variable share the rows where those are observed,
    and the cell of each of these rows. A missing value of the last variable counts as a
    level of its own, which is dropped in the end: this is cheaper than selecting rows again.
    """
    starts = np.concatenate([[0], np.cumsum(table_sizes(levels, subsets))])
    out = np.zeros(int(starts[-1]))
    columns = [np.ascontiguousarray(codes[:, n]) for n in range(codes.shape[1])]
    groups: dict[tuple[int, ...], list[int]] = {}
    for i, subset in enumerate(subsets):
        groups.setdefault(subset[:-1], []).append(i)
    for prefix, tables in groups.items():
        rows, cells = _observed(columns, levels, prefix)
        mass = None if weight is None else weight[rows]
        n_cells = prod(levels[n] for n in prefix)
        for i in tables:
            last = subsets[i][-1]
            size = levels[last] + 1
            index = cells * size
            index += columns[last][rows]
            index += 1
            table = np.bincount(index, mass, minlength=n_cells * size)
            out[starts[i] : starts[i + 1]] = table.reshape(n_cells, size)[:, 1:].ravel()
    return out


def _observed(
    columns: Sequence[Codes], levels: Sequence[int], prefix: tuple[int, ...]
) -> tuple[NDArray[np.intp], Ints]:
    """Rows where all variables of ``prefix`` are observed, and the cell of each."""
    seen = np.ones(len(columns[0]), dtype=bool)
    for n in prefix:
        seen &= columns[n] >= 0
    rows = np.flatnonzero(seen)
    cells = np.zeros(len(rows), dtype=np.int64)
    for n in prefix:
        cells = cells * levels[n] + columns[n][rows]
    return rows, cells


@dataclass(frozen=True)
class Prefixes:
    """All prefixes of subsets that have one length; each extends a shorter one by a variable.

    Parameters
    ----------
    keys : array of int
        For each of them the number of the prefix it extends, times N, plus the variable;
        increasing.
    direct : array of int, optional
        The number of each by its key, -1 where there is none.
    table : array of int
        Where the table of these variables starts; -1 if none is asked for.
    extended : array of bool
        Whether longer ones extend it.
    """

    keys: Ints
    direct: Ints | None
    table: Ints
    extended: NDArray[np.bool_]

    def find(self, keys: Ints) -> Ints:
        """Return the numbers of the prefixes that have these keys; -1 where there is none."""
        if self.direct is not None:
            return self.direct[keys]
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, at, -1)


def make_prefixes(n_variables: int, sizes: Ints, members: Ints, starts: Ints) -> list[Prefixes]:
    """Return the prefixes of all subsets by their length.

    Examples
    --------
    >>> members = np.array([0, 0, 1, 0, 2])
    >>> layers = make_prefixes(3, np.array([1, 2, 2]), members, np.array([0, 2, 6]))
    >>> [layer.keys for layer in layers], [layer.table for layer in layers]
    ([array([0]), array([1, 2])], [array([0]), array([2, 6])])
    """
    first = np.cumsum(sizes) - sizes
    number = np.zeros(len(sizes), dtype=np.int64)  # of the prefix of each subset so far
    layers: list[Prefixes] = []
    for length in range(1, int(sizes.max(initial=0)) + 1):
        there = sizes >= length
        keys = number[there] * n_variables + members[first[there] + length - 1]
        keys, number[there] = np.unique(keys, return_inverse=True)
        table = np.full(len(keys), -1, dtype=np.int64)
        ends = np.flatnonzero(sizes == length)
        table[number[ends]] = starts[ends]
        if np.count_nonzero(table >= 0) < len(ends):
            raise ValueError("subsets for SparseCodes must differ: one is given twice.")
        extended = np.zeros(len(keys), dtype=bool)
        extended[number[sizes > length]] = True
        direct = None
        width = n_variables * (len(layers[-1].keys) if layers else 1)
        if width <= DIRECT_ENTRIES:
            direct = np.full(width, -1, dtype=np.int64)
            direct[keys] = np.arange(len(keys))
        layers.append(Prefixes(keys, direct, table, extended))
    return layers


def numpy_count_sparse(
    codes: SparseCodes, weight: Array | None, sizes: Ints, members: Ints, starts: Ints, out: Array
) -> None:
    """NumPy version of :func:`count` for SparseCodes; adds records to ``out``.

    Parameters
    ----------
    codes, weight
        The records.
    sizes, members, starts : arrays of int
        Number of variables of each table, the variables table after table, and where in `out` it
        starts.
    out : array of float
        The tables, zero so far.

    Notes
    -----
    Each observed value starts the subsets that begin with its variable; each of these prefixes is
    extended by the later values of its record, and so on, where any subset does. Each cell of a
    table gets its records in their order, so that sums of weights equal those of a table of codes
    to the last bit.

    Examples
    --------
    >>> codes = SparseCodes(np.array([0, 2, 3]), np.array([0, 3, 1]), (2, 2))
    >>> out = np.zeros(4)
    >>> numpy_count_sparse(codes, None, np.array([2]), np.array([0, 1]), np.array([0]), out)
    >>> out
    array([0., 1., 0., 0.])
    """
    layers = make_prefixes(len(codes.levels), sizes, members, starts)
    walk = _PrefixWalk(codes, weight, layers, out)
    for start in range(0, codes.size, BLOCK_VALUES):
        at = np.arange(start, min(start + BLOCK_VALUES, codes.size))
        walk.extend(0, np.zeros(len(at), dtype=np.int64), np.zeros(len(at), dtype=np.int64), at)


class _PrefixWalk:
    """What a walk through all prefixes of subsets reads and writes."""

    def __init__(
        self, codes: SparseCodes, weight: Array | None, layers: Sequence[Prefixes], out: Array
    ) -> None:
        self.layers, self.out, self.weight = layers, out, weight
        self.levels = np.asarray(codes.levels, dtype=np.int64)
        self.variable, self.code = codes.variables, codes.codes
        self.row = np.repeat(np.arange(len(codes)), codes.counts)
        self.end = codes.starts[1:]  # of each record

    def extend(self, depth: int, prefix: Ints, cell: Ints, at: Ints) -> None:
        """Extend some prefixes by one value each, `at`; `cell` is that of their tables."""
        layer, variable = self.layers[depth], self.variable[at]
        number = layer.find(prefix * len(self.levels) + variable)
        found = np.flatnonzero(number >= 0)
        number, at = number[found], at[found]
        cell = cell[found] * self.levels[variable[found]] + self.code[at]
        table = layer.table[number]
        ends = np.flatnonzero(table >= 0)
        mass = 1.0 if self.weight is None else self.weight[self.row[at[ends]]]
        np.add.at(self.out, table[ends] + cell[ends], mass)
        left = np.where(layer.extended[number], self.end[self.row[at]] - at - 1, 0)
        for part in _split(np.flatnonzero(left), left):
            times = left[part]
            later = np.arange(int(times.sum())) + np.repeat(
                at[part] + 1 - (np.cumsum(times) - times), times
            )
            repeated = np.repeat(number[part], times), np.repeat(cell[part], times)
            self.extend(depth + 1, *repeated, later)


def _split(chosen: NDArray[np.intp], sizes: Ints) -> list[NDArray[np.intp]]:
    """Split what is chosen into parts whose sizes add up to at most a block, or that are one."""
    ends = np.cumsum(sizes[chosen])
    parts, start = [], 0
    while start < len(chosen):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + BLOCK_VALUES, side="right")))
        parts.append(chosen[start:stop])
        start = stop
    return parts
