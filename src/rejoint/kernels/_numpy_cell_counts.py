"""Counting observed cells into tables in plain NumPy: the twin of count_cells.cpp."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoint.kernels._checks import Array
from rejoint.kernels.cells import Cells

Ints = NDArray[np.int64]

BLOCK = 1 << 20  # cells that are looked at together
DENSE = 1 << 22  # entries of the largest table in which children are looked up directly


@dataclass(frozen=True)
class Layer:
    """Beginnings of subsets, all of one length: those that go on from others by a variable.

    Parameters
    ----------
    keys : array of int
        For each of them the number of what it goes on from, times N, plus the variable; rising.
    direct : array of int, optional
        The number of each by its key, -1 where there is none.
    table : array of int
        Where the table of these variables starts; -1 if none is asked for.
    goes_on : array of bool
        Whether longer ones begin with them.
    """

    keys: Ints
    direct: Ints | None
    table: Ints
    goes_on: NDArray[np.bool_]

    def find(self, keys: Ints) -> Ints:
        """Numbers of the beginnings that have these keys; -1 where there is none."""
        if self.direct is not None:
            return self.direct[keys]
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, at, -1)


def make_layers(n_variables: int, sizes: Ints, members: Ints, starts: Ints) -> list[Layer]:
    """Beginnings of all subsets by their length.

    Examples
    --------
    >>> members = np.array([0, 0, 1, 0, 2])
    >>> layers = make_layers(3, np.array([1, 2, 2]), members, np.array([0, 2, 6]))
    >>> [layer.keys for layer in layers], [layer.table for layer in layers]
    ([array([0]), array([1, 2])], [array([0]), array([2, 6])])
    """
    first = np.cumsum(sizes) - sizes
    number = np.zeros(len(sizes), dtype=np.int64)  # of what each subset begins with so far
    layers: list[Layer] = []
    for length in range(1, int(sizes.max(initial=0)) + 1):
        there = sizes >= length
        keys = number[there] * n_variables + members[first[there] + length - 1]
        keys, number[there] = np.unique(keys, return_inverse=True)
        table = np.full(len(keys), -1, dtype=np.int64)
        ends = np.flatnonzero(sizes == length)
        table[number[ends]] = starts[ends]
        if np.count_nonzero(table >= 0) < len(ends):
            raise ValueError("subsets of observed cells must differ: one is given twice.")
        goes_on = np.zeros(len(keys), dtype=bool)
        goes_on[number[sizes > length]] = True
        direct = None
        width = n_variables * (len(layers[-1].keys) if layers else 1)
        if width <= DENSE:
            direct = np.full(width, -1, dtype=np.int64)
            direct[keys] = np.arange(len(keys))
        layers.append(Layer(keys, direct, table, goes_on))
    return layers


def count_cells(
    codes: Cells, weight: Array | None, sizes: Ints, members: Ints, starts: Ints, out: Array
) -> None:
    """Add records to their tables, zeros so far; see :func:`rejoint.kernels.count`.

    Parameters
    ----------
    codes, weight
        The records.
    sizes, members, starts : arrays of int
        Number of variables of each table, the variables table after table, and where in `out` it
        starts.
    out : array of float
        The tables.

    Notes
    -----
    Each observed cell begins subsets; each of these beginnings is gone on with by the later cells
    of its record, and so on, where any subset does. Each cell of a table gets its records in
    their order, so that sums of weights are those of a table of codes, to the last bit.

    Examples
    --------
    >>> cells = Cells(np.array([0, 2, 3]), np.array([0, 3, 1]), (2, 2))
    >>> out = np.zeros(4)
    >>> count_cells(cells, None, np.array([2]), np.array([0, 1]), np.array([0]), out)
    >>> out
    array([0., 1., 0., 0.])
    """
    walk = _Walk(codes, weight, make_layers(len(codes.levels), sizes, members, starts), out)
    for start in range(0, codes.size, BLOCK):
        at = np.arange(start, min(start + BLOCK, codes.size))
        walk.go(0, np.zeros(len(at), dtype=np.int64), np.zeros(len(at), dtype=np.int64), at)


class _Walk:
    """What a walk through all beginnings of subsets reads and writes."""

    def __init__(
        self, codes: Cells, weight: Array | None, layers: Sequence[Layer], out: Array
    ) -> None:
        self.layers, self.out, self.weight = layers, out, weight
        self.levels = np.asarray(codes.levels, dtype=np.int64)
        self.variable, self.code = codes.variables, codes.codes
        self.row = np.repeat(np.arange(len(codes)), codes.counts)
        self.end = codes.starts[1:]  # of each record

    def go(self, depth: int, begun: Ints, cell: Ints, at: Ints) -> None:
        """Go on with some beginnings by one cell each, `at`; `cell` is that of their tables."""
        layer, variable = self.layers[depth], self.variable[at]
        number = layer.find(begun * len(self.levels) + variable)
        found = np.flatnonzero(number >= 0)
        number, at = number[found], at[found]
        cell = cell[found] * self.levels[variable[found]] + self.code[at]
        table = layer.table[number]
        ends = np.flatnonzero(table >= 0)
        mass = 1.0 if self.weight is None else self.weight[self.row[at[ends]]]
        np.add.at(self.out, table[ends] + cell[ends], mass)
        left = np.where(layer.goes_on[number], self.end[self.row[at]] - at - 1, 0)
        onward = np.flatnonzero(left)
        for part in _parts(onward, left):
            times = left[part]
            later = np.arange(int(times.sum())) + np.repeat(
                at[part] + 1 - (np.cumsum(times) - times), times
            )
            self.go(depth + 1, np.repeat(number[part], times), np.repeat(cell[part], times), later)


def _parts(chosen: NDArray[np.intp], sizes: Ints) -> list[NDArray[np.intp]]:
    """Share out what is chosen so that each part has at most a block of all sizes, or is one."""
    ends = np.cumsum(sizes[chosen])
    parts, start = [], 0
    while start < len(chosen):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + BLOCK, side="right")))
        parts.append(chosen[start:stop])
        start = stop
    return parts
