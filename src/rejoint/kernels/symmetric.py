"""Elementary symmetric polynomials of each record's rows: sums over all tables, none formed.

The product of a row of each of ``d`` variables, summed over all sets of ``d`` of a record's cells,
is ``e_d`` of its rows, which the recursion ``e_j += a e_{j-1}`` gives in O(d) a cell.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoint.kernels import _numpy_symmetric
from rejoint.kernels._checks import Array, check_weight
from rejoint.kernels._choice import compiled
from rejoint.kernels.cells import Cells

Places = NDArray[np.int32]


@dataclass(frozen=True)
class Transposed:
    """Cells in the order of the variables: which records have each, and at which level.

    Examples
    --------
    >>> cells = Cells.of_codes(np.array([[1, 0], [-1, 2]], dtype=np.int16), [2, 3])
    >>> Transposed.of(cells).of_variable(1)
    (array([0, 1], dtype=int32), array([0, 2], dtype=int32))
    """

    ends: NDArray[np.int64]
    records: Places
    levels: Places

    @classmethod
    def of(cls, cells: Cells) -> "Transposed":
        """Transpose."""
        from scipy.sparse import csr_array  # in linear time; 0.1 s to import

        first = np.concatenate([[0], np.cumsum(cells.levels)[:-1]]).astype(np.int32)
        levels = cells.cells - first[cells.variables]
        shape = (len(cells), len(cells.levels))
        turned = csr_array((levels, cells.variables, cells.starts), shape=shape).tocsc()
        records = np.asarray(turned.indices, dtype=np.int32)
        ends = np.asarray(turned.indptr, dtype=np.int64)
        return cls(ends, records, np.asarray(turned.data, dtype=np.int32))

    def of_variable(self, n: int) -> tuple[Places, Places]:
        """Records that have variable ``n``, and their levels."""
        part = slice(self.ends[n], self.ends[n + 1])
        return self.records[part], self.levels[part]


class Polynomials:
    """``e_1 .. e_{d-1}`` of all records, kept while one variable's rows change after another.

    Parameters
    ----------
    cells : Cells
        The records.
    columns : Transposed
        The same by variable.
    weight : (M,) array
        Weight of each record.
    table : (L, K) array
        A row for each level.
    order : int
        ``d``.
    threads : int
        Threads of the compiled kernel. The result does not depend on it.

    Attributes
    ----------
    total : (K,) array
        Weighted sum of ``e_d`` over the records, at the beginning.

    Examples
    --------
    >>> cells = Cells.of_codes(np.array([[0, 1, 0]], dtype=np.int16), [1, 2, 1])
    >>> table = np.array([[2.0], [0.0], [3.0], [5.0]])
    >>> found = Polynomials(cells, Transposed.of(cells), np.ones(1), table, 2)
    >>> found.total, found.without(1).T
    (array([31.]), array([[0., 7.]]))
    >>> found.replace(1, np.array([[0.0], [10.0]]))
    >>> found.without(0)
    array([[15.]])
    """

    def __init__(
        self,
        cells: Cells,
        columns: Transposed,
        weight: Array,
        table: Array,
        order: int,
        threads: int = 1,
    ) -> None:
        self.columns, self.order, self.threads = columns, order, threads
        self.table = np.array(table, dtype=np.float64, order="C")
        self.weight = np.ascontiguousarray(weight, dtype=np.float64)
        check_weight(self.weight, len(cells))
        if self.table.ndim != 2 or len(self.table) != sum(cells.levels):
            raise ValueError(
                f"table has shape {self.table.shape}; the cells need {sum(cells.levels)} rows."
            )
        if order < 1:
            raise ValueError(f"order must be at least 1, got {order}.")
        self.first = np.concatenate([[0], np.cumsum(cells.levels)])
        self.state = np.empty((len(cells), order - 1, self.table.shape[1]))
        self.total = self._build(cells, self.state)

    def _build(self, cells: Cells, state: Array) -> Array:
        if compiled is None:
            return _numpy_symmetric.build(*cells.arrays, self.weight, self.table, self.order, state)
        total = np.zeros(self.table.shape[1])
        compiled.symmetric_build(
            *cells.arrays, self.weight, self.table, self.order, state, total, self.threads
        )
        return total

    def rows(self, n: int) -> slice:
        """Rows of a variable in the table."""
        return slice(int(self.first[n]), int(self.first[n + 1]))

    def without(self, n: int) -> Array:
        """Weighted ``e_{d-1}`` of all rows but variable ``n``'s own, summed by its level."""
        where, rows = self.columns.of_variable(n), self.table[self.rows(n)]
        if compiled is None:
            return _numpy_symmetric.without(*where, self.weight, rows, self.order, self.state)
        out = np.zeros(rows.shape)
        compiled.symmetric_without(
            *where, self.weight, rows, self.order, self.state, out, self.threads
        )
        return out

    def replace(self, n: int, rows: Array) -> None:
        """Put other rows in place of those of variable ``n``."""
        where, old = self.columns.of_variable(n), self.table[self.rows(n)].copy()
        self.table[self.rows(n)] = rows
        new = self.table[self.rows(n)]
        if self.order == 1:
            return
        if compiled is None:
            _numpy_symmetric.replace(*where, old, new, self.order, self.state)
        else:
            compiled.symmetric_replace(*where, old, new, self.order, self.state, self.threads)


def symmetric_total(
    cells: Cells, weight: Array, table: Array, order: int, threads: int = 1
) -> Array:
    """Weighted sum over records of ``e_d`` of their rows of a table, (K,).

    Examples
    --------
    >>> cells = Cells.of_codes(np.array([[0, 0, 0]], dtype=np.int16), [1, 1, 1])
    >>> symmetric_total(cells, np.ones(1), np.array([[2.0], [3.0], [5.0]]), 3)
    array([30.])
    """
    table = np.ascontiguousarray(table, dtype=np.float64)
    if len(table) != sum(cells.levels) or len(weight) != len(cells):
        raise ValueError("table and weight must have a row for each level and record.")
    if compiled is None:
        return _numpy_symmetric.build(*cells.arrays, weight, table, order, None)
    total = np.zeros(table.shape[1])
    compiled.symmetric_build(*cells.arrays, weight, table, order, None, total, threads)
    return total
