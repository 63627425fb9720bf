"""Columns of which only some rows are there: read one by one, put together as cells."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain import Domain, HandleUnknown, Variable, refuse_duplicates
from rejoint.domain.encoding import Unknown, encode_column
from rejoint.domain.labels import is_missing, native, natural_order, nearest, show
from rejoint.domain.series import read_column
from rejoint.domain.variable import check_handle_unknown
from rejoint.kernels import SparseCodes
from rejoint.records.inference import infer_variable
from rejoint.records.reading import report_inferred, report_unknown
from rejoint.records.wishes import Wishes
from rejoint.remarks import remark

__all__ = ["ColumnCells", "cells_of", "columns_of_matrix", "columns_of_rows"]

Ints = NDArray[np.intp]

#: A name, the rows in which the variable is observed, and what is observed there.
Column = tuple[str, Ints, Any]


@dataclass
class ColumnCells:
    """What is known of the variables beforehand, and what reading their columns has found."""

    domain: Domain | None
    wishes: Wishes
    weight: NDArray[np.float64] | None
    handle_unknown: HandleUnknown
    variables: dict[str, Variable] = field(default_factory=dict)
    strange: dict[str, Unknown] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)

    def read(self, name: str, rows: Ints, values: Any) -> NDArray[Any] | None:
        """Codes of a column; None where there is nothing to tell its levels from."""
        column = read_column(values, name)
        if self.domain is not None:
            variable = self.domain[name]
        elif not len(rows) and self.wishes.of(name).levels is None:
            self.empty.append(name)
            return None
        else:
            weight = None if self.weight is None else self.weight[rows]
            variable = infer_variable(name, column, self.wishes.of(name), weight)
        self.variables[name] = variable
        codes, unknown = encode_column(variable.levels, column)
        if unknown is not None:
            self.strange[name] = unknown
        return codes

    def finish(self) -> Domain:
        """The domain, once all that is to be said about the columns has been."""
        if self.domain is None and not self.variables:
            raise ValueError("No cell is observed: there is nothing to learn from.")
        for name in self.wishes.by_name:
            if name not in self.variables:
                raise KeyError(
                    f"kinds, levels or bins speak of {name!r}, but the variables are "
                    f"{show(list(self.variables))}.{nearest(name, list(self.variables))}"
                )
        if self.empty:
            remark(f"Variables in which nothing is observed are left out: {show(self.empty)}.")
        if self.domain is None:
            report_inferred(self.variables, self.wishes)
        domain = self.domain or Domain(tuple(self.variables.values()))
        report_unknown(domain, self.strange, self.handle_unknown)
        return domain


def cells_of(made: ColumnCells, rows: int, columns: Iterable[Column]) -> tuple[Domain, SparseCodes]:
    """Read all columns, and put what is observed together record by record.

    Examples
    --------
    >>> from rejoint.records.wishes import read_wishes
    >>> made = ColumnCells(None, read_wishes(None, None, None), None, "missing")
    >>> columns = [("a", np.array([1]), ["x"]), ("b", np.array([0, 1]), ["y", "z"])]
    >>> cells_of(made, 2, columns)[1].to_codes()
    array([[-1,  0],
           [ 0,  1]], dtype=int16)
    """
    check_handle_unknown(made.handle_unknown)
    parts: list[tuple[str, Ints, NDArray[Any]]] = []
    for name, where, values in columns:
        codes = made.read(name, where, values)
        if codes is not None:
            parts.append((name, where[codes >= 0], codes[codes >= 0].astype(np.int32)))
    domain = made.finish()
    first = np.concatenate([[0], np.cumsum(domain.shape)]).astype(np.int32)
    parts.sort(key=lambda part: domain.index(part[0]))
    row = np.concatenate([np.empty(0, dtype=np.intp), *(part[1] for part in parts)])
    cell = np.concatenate(
        [np.empty(0, dtype=np.int32), *(part[2] + first[domain.index(part[0])] for part in parts)]
    )
    order = np.argsort(row, kind="stable")  # keeps the order of the variables
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows))])
    return domain, SparseCodes(starts, cell[order], domain.shape)


def columns_of_matrix(data: Any, names: Sequence[Any] | None) -> tuple[int, Iterator[Column]]:
    """Number of rows of a sparse matrix, and its columns.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> rows, columns = columns_of_matrix(csr_array([[0.0, 2.0], [0.0, 3.0]]), None)
    >>> rows, list(columns)[1]
    (2, ('x1', array([0, 1]), array([2., 3.])))
    """
    from scipy import sparse  # 0.1 s to import

    if not sparse.issparse(data) or data.ndim != 2:
        raise TypeError(
            "SparseRecords are made of a sparse matrix of SciPy, records x variables, or of rows "
            f"(SparseRecords.of_rows), not of {type(data).__name__}."
        )
    matrix = sparse.coo_array(data)
    row, column = (np.asarray(c, dtype=np.intp) for c in matrix.coords)
    wide = data.shape[1]
    if names is not None and len(names) != wide:
        raise ValueError(f"The matrix has {wide} columns, but there are {len(names)} names.")
    labels = [f"x{n}" for n in range(wide)] if names is None else [str(name) for name in names]
    refuse_duplicates(labels)
    order = np.lexsort((row, column))
    row, column, values = row[order], column[order], matrix.data[order]
    if ((np.diff(column) == 0) & (np.diff(row) == 0)).any():
        raise ValueError("The matrix has cells that are stored twice: data.sum_duplicates() first.")
    return int(data.shape[0]), split(labels, row, column, values)


def split(names: Sequence[str], row: Ints, column: Ints, values: Any) -> Iterator[Column]:
    """Columns of cells that are in the order of the columns."""
    ends = np.searchsorted(column, np.arange(len(names) + 1))
    for n, name in enumerate(names):
        part = slice(ends[n], ends[n + 1])
        yield name, row[part], values[part]


def columns_of_rows(
    records: Iterable[Any], variables: Iterable[Any], values: Iterable[Any], domain: Domain | None
) -> tuple[int, Iterator[Column]]:
    """Number of records of a long table, and its columns; no two cells of a record in one.

    Examples
    --------
    >>> rows, columns = columns_of_rows(["u", "v"], ["b", "a"], [1, 2], None)
    >>> rows, [name for name, _, _ in columns]
    (2, ['a', 'b'])
    """
    ids, row = places(records)
    names, column = places(variables)
    labels = [str(name) for name in names]
    refuse_duplicates(labels)
    cells = values if isinstance(values, np.ndarray) else as_objects(values)
    if not len(row) == len(column) == len(cells):
        raise ValueError(
            f"records, variables and values are columns of one table, but have {len(row)}, "
            f"{len(column)} and {len(cells)} rows."
        )
    if domain is not None:
        for name in labels:
            if name not in domain:
                raise KeyError(
                    f"Variable {name!r} is not in the domain ({show(domain.names)})."
                    + nearest(name, domain.names)
                )
    good = (row >= 0) & (column >= 0)
    order = np.lexsort((row, column))
    order = order[good[order]]
    row, column, cells = row[order], column[order], cells[order]
    again = np.flatnonzero((np.diff(column) == 0) & (np.diff(row) == 0))
    if len(again):
        twice = ids[row[again[0]]], labels[column[again[0]]]
        raise ValueError(f"Record {twice[0]!r} has two values of variable {twice[1]!r}.")
    return len(ids), split(labels, row, column, cells)


def places(values: Iterable[Any]) -> tuple[list[Any], Ints]:
    """Distinct ids in natural order, and the place of each value; -1 where it is missing."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        distinct, found = np.unique(values, return_inverse=True)
        return distinct.tolist(), found.astype(np.intp)
    plain = [None if is_missing(value) else native(value) for value in values]
    known = list(natural_order({value for value in plain if value is not None}))
    index: dict[Any, int] = {value: i for i, value in enumerate(known)}
    index[None] = -1
    return known, np.array([index[value] for value in plain], dtype=np.intp)


def as_objects(values: Iterable[Any]) -> NDArray[Any]:
    """Labels of any kind as an array of one dimension."""
    listed = list(values)
    found = np.empty(len(listed), dtype=object)
    found[:] = listed
    return found
