"""Elementary symmetric polynomials of each record's rows: sums over all tables, none formed.

The product of a row of each of ``d`` variables, summed over all sets of ``d`` of a record's values,
is ``e_d`` of its rows, which the recursion ``e_j += a e_{j-1}`` gives in O(d) a value.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.kernels.backend import Array, check_weight
from rejoint.kernels.codes import SparseCodes
from rejoint.text import plural

Places = NDArray[np.int32]

BLOCK_ENTRIES = 1 << 20  # entries of the largest array made at once


@dataclass(frozen=True)
class SparseColumns:
    """SparseCodes by variable (CSC): which records observe each variable, and at which level.

    Examples
    --------
    >>> codes = SparseCodes.of_codes(np.array([[1, 0], [-1, 2]], dtype=np.int16), [2, 3])
    >>> SparseColumns.of(codes).of_variable(1)
    (array([0, 1], dtype=int32), array([0, 2], dtype=int32))
    """

    ends: NDArray[np.int64]
    records: Places
    levels: Places
    source: SparseCodes

    @classmethod
    def of(cls, codes: SparseCodes) -> "SparseColumns":
        """Transpose SparseCodes."""
        from scipy.sparse import csr_array  # in linear time; 0.1 s to import

        first = np.concatenate([[0], np.cumsum(codes.levels)[:-1]]).astype(np.int32)
        levels = codes.cells - first[codes.variables]
        shape = (len(codes), len(codes.levels))
        turned = csr_array((levels, codes.variables, codes.starts), shape=shape).tocsc()
        records = np.asarray(turned.indices, dtype=np.int32)
        ends = np.asarray(turned.indptr, dtype=np.int64)
        return cls(ends, records, np.asarray(turned.data, dtype=np.int32), codes)

    def of_variable(self, n: int) -> tuple[Places, Places]:
        """Return the records that observe variable ``n``, and their levels."""
        part = slice(self.ends[n], self.ends[n + 1])
        return self.records[part], self.levels[part]


class Polynomials:
    """``e_1 .. e_{d-1}`` of all records, kept while one variable's rows change after another.

    Parameters
    ----------
    codes : SparseCodes
        The records.
    columns : SparseColumns
        The same by variable.
    weight : (M,) array
        Weight of each record.
    table : (L, K) array
        A row for each level.
    order : int
        ``d``.

    Attributes
    ----------
    total : (K,) array
        Weighted sum of ``e_d`` over the records, for the table given.

    Examples
    --------
    >>> codes = SparseCodes.of_codes(np.array([[0, 1, 0]], dtype=np.int16), [1, 2, 1])
    >>> table = np.array([[2.0], [0.0], [3.0], [5.0]])
    >>> found = Polynomials(codes, SparseColumns.of(codes), np.ones(1), table, 2)
    >>> found.total, found.without(1).T
    (array([31.]), array([[0., 7.]]))
    >>> found.replace(1, np.array([[0.0], [10.0]]))
    >>> found.without(0)
    array([[15.]])
    """

    def __init__(
        self,
        codes: SparseCodes,
        columns: SparseColumns,
        weight: Array,
        table: Array,
        order: int,
    ) -> None:
        self.columns, self.order = columns, order
        self.table = np.array(table, dtype=np.float64, order="C")
        self.weight = np.ascontiguousarray(weight, dtype=np.float64)
        check_weight(self.weight, len(codes))
        if self.table.ndim != 2 or len(self.table) != sum(codes.levels):
            raise ValueError(
                f"table has shape {self.table.shape}; the codes need "
                f"{plural(sum(codes.levels), 'row')}."
            )
        if len(columns.source) != len(codes) or columns.source.levels != codes.levels:
            raise ValueError("columns are those of other codes.")
        if order < 1:
            raise ValueError(f"order must be at least 1, got {order}.")
        self.first = np.concatenate([[0], np.cumsum(codes.levels)])
        self.state = np.empty((len(codes), order - 1, self.table.shape[1]))
        self.total = build(codes.starts, codes.cells, self.weight, self.table, order, self.state)

    def rows(self, n: int) -> slice:
        """Return the rows of a variable in the table."""
        return slice(int(self.first[n]), int(self.first[n + 1]))

    def without(self, n: int) -> Array:
        """Return weighted ``e_{d-1}`` of all rows but variable ``n``'s own, summed by its level."""
        where, rows = self.columns.of_variable(n), self.table[self.rows(n)]
        return without(*where, self.weight, rows, self.order, self.state)

    def replace(self, n: int, rows: Array) -> None:
        """Replace the rows of variable ``n``."""
        where, old = self.columns.of_variable(n), self.table[self.rows(n)].copy()
        self.table[self.rows(n)] = rows
        new = self.table[self.rows(n)]
        if self.order > 1:
            replace(*where, old, new, self.order, self.state)


def symmetric_total(codes: SparseCodes, weight: Array, table: Array, order: int) -> Array:
    """Return the weighted sum over records of ``e_d`` of their rows of a table, (K,).

    Examples
    --------
    >>> codes = SparseCodes.of_codes(np.array([[0, 0, 0]], dtype=np.int16), [1, 1, 1])
    >>> symmetric_total(codes, np.ones(1), np.array([[2.0], [3.0], [5.0]]), 3)
    array([30.])
    """
    table = np.ascontiguousarray(table, dtype=np.float64)
    weight = np.ascontiguousarray(weight, dtype=np.float64)
    if len(table) != sum(codes.levels) or weight.shape != (len(codes),):
        raise ValueError("table and weight must have a row for each level and record.")
    return build(codes.starts, codes.cells, weight, table, order, None)


def build(
    starts: NDArray[np.signedinteger[Any]],
    cells: NDArray[np.signedinteger[Any]],
    weight: Array,
    table: Array,
    order: int,
    state: Array | None,
) -> Array:
    """Fill ``state`` with ``e_1 .. e_{order-1}`` of each record; return the sum of ``e_order``.

    Examples
    --------
    >>> table = np.array([[2.0], [3.0]])
    >>> build(np.array([0, 2]), np.array([0, 1]), np.ones(1), table, 2, None)
    array([6.])
    """
    width, total = table.shape[1], np.zeros(table.shape[1])
    step = max(1, BLOCK_ENTRIES // (order * width))
    for row in range(0, len(weight), step):
        rows = np.arange(row, min(row + step, len(weight)))
        counts = starts[rows + 1] - starts[rows]
        e = np.zeros((len(rows), order, width))
        for k in range(int(counts.max(initial=0))):
            more = np.flatnonzero(counts > k)
            a = table[cells[starts[rows[more]] + k]]
            for j in range(order - 1, 0, -1):
                e[more, j] += a * e[more, j - 1]
            e[more, 0] += a
        total += weight[rows] @ e[:, -1]
        if state is not None:
            state[rows] = e[:, :-1]
    return total


def exclude(e: Array, rows: Array) -> Array:
    """Return the polynomials without one row each: ``left_j = e_j - a left_{j-1}``.

    Examples
    --------
    >>> exclude(np.array([[[5.0], [6.0]]]), np.array([[2.0]]))[0].T
    array([[3., 0.]])
    """
    left = np.array(e)
    below: Array | float = 1.0
    for j in range(e.shape[1]):
        left[:, j] -= rows * below
        below = left[:, j]
    return left


def without(
    records: NDArray[np.signedinteger[Any]],
    levels: NDArray[np.signedinteger[Any]],
    weight: Array,
    rows: Array,
    order: int,
    state: Array,
) -> Array:
    """The work of :meth:`Polynomials.without`.

    Examples
    --------
    >>> one = np.zeros(1, dtype=np.int32)
    >>> without(one, one, np.ones(1), np.array([[2.0]]), 2, np.array([[[5.0]]]))
    array([[3.]])
    """
    from scipy.sparse import csr_array  # 0.1 s to import

    out = np.zeros(rows.shape)
    step = max(1, BLOCK_ENTRIES // (order * rows.shape[1]))
    for k in range(0, len(records), step):
        where, level = records[k : k + step], levels[k : k + step]
        left = np.ones((len(where), rows.shape[1]))
        if order > 1:
            left = exclude(state[where], rows[level])[:, -1]
        index = (level, np.arange(len(where)))
        out += csr_array((weight[where], index), shape=(len(rows), len(where))) @ left
    return out


def replace(
    records: NDArray[np.signedinteger[Any]],
    levels: NDArray[np.signedinteger[Any]],
    old: Array,
    rows: Array,
    order: int,
    state: Array,
) -> None:
    """The work of :meth:`Polynomials.replace`.

    Examples
    --------
    >>> one, state = np.zeros(1, dtype=np.int32), np.array([[[5.0], [6.0]]])
    >>> replace(one, one, np.array([[2.0]]), np.array([[4.0]]), 3, state)
    >>> state[0].T
    array([[ 7., 12.]])
    """
    step = max(1, BLOCK_ENTRIES // (order * rows.shape[1]))
    for k in range(0, len(records), step):
        where, level = records[k : k + step], levels[k : k + step]
        e, moved = state[where], rows[level] - old[level]
        left = exclude(e, old[level])
        for j in range(order - 2, 0, -1):
            e[:, j] += moved * left[:, j - 1]
        e[:, 0] += moved
        state[where] = e
