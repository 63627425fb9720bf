"""Targets: the tables that weights or records should meet, and the cells in which records fall."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoint.marginals.marginals import Marginals
from rejoint.marginals.subsets import Subset

Counts = NDArray[np.int64]


class TableCells:
    """The cells in which records fall in each of several tables.

    Parameters
    ----------
    shape : sequence of int
        Number of levels of each variable.
    subsets : sequence of tuples of int
        Variables of each table.

    Examples
    --------
    >>> cells = TableCells((2, 2), [(0, 1)])
    >>> cells.find(np.array([[0, 1], [1, 1], [1, -1]]), 0)
    array([ 1,  3, -1])
    """

    def __init__(self, shape: Sequence[int], subsets: Sequence[Subset]) -> None:
        self.subsets = subsets
        self.strides = np.zeros((len(subsets), len(shape)), dtype=np.int64)
        sizes = []
        for strides, subset in zip(self.strides, subsets, strict=True):
            step = 1
            for n in reversed(subset):
                strides[n] = step
                step *= shape[n]
            sizes.append(step)
        #: First cell of each table if the tables are laid one after another, and the end of all.
        self.offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        #: Tables that hold each variable.
        self.holders = [np.flatnonzero(self.strides[:, n]) for n in range(len(shape))]

    def find(self, codes: NDArray[np.signedinteger], table: int) -> Counts:
        """Cell of each record in one table; -1 if a value of the record is missing."""
        found: Counts = np.zeros(len(codes), dtype=np.int64)
        missing = np.zeros(len(codes), dtype=bool)
        for n in self.subsets[table]:
            found += codes[:, n] * self.strides[table, n]
            missing |= codes[:, n] < 0
        found[missing] = -1
        return found

    def find_all(self, codes: NDArray[np.signedinteger]) -> Counts:
        """Cell of each record in each table, (tables, records)."""
        return np.array([self.find(codes, i) for i in range(len(self.subsets))])

    def find_laid_out(self, codes: Counts, tables: NDArray[np.intp]) -> Counts:
        """Cell of each record in some tables, these laid one after another, (tables, records)."""
        found: Counts = self.strides[tables] @ codes.T + self.offsets[tables, None]
        return found


@dataclass(frozen=True)
class TableTargets:
    """Wanted counts of all tables, laid one after another; ``known`` is 0 for cells without one."""

    counts: Counts
    known: Counts

    def excess(self, cells: Counts, weight: Counts | None = None) -> Counts:
        """Count of each cell minus its target, 0 where it has none."""
        found = np.bincount(cells, weight, minlength=len(self.counts)).astype(np.int64)
        return (found - self.counts) * self.known


def known_cells(tables: Marginals, i: int) -> NDArray[np.bool_]:
    """Mask of the cells of a table that are known, flat."""
    known = np.ones(tables.counts_of(i).size, dtype=bool)
    cells = tables.unknown_of(i)
    if cells is not None:
        known[cells.places] = False
    return known


def population_size(tables: Marginals) -> float | None:
    """Number of records behind the tables that are counts; None if no table is."""
    totals = tables.totals[tables.counted]
    return float(np.median(totals)) if len(totals) else None


def describe_disagreement(tables: Marginals, least: float, nothing: str) -> str:
    """Name the two tables that disagree the most, if they differ by more than ``least``.

    Examples
    --------
    >>> describe_disagreement(Marginals.from_tables({"a": [1, 2]}), 0.0, "no weights meet")
    ''
    """
    for found in tables.disagreements()[:1]:
        if found.distance > least:
            return (
                f" Tables {found.first} and {found.second} disagree on {found.shared} by "
                f"{found.distance:.2%}: {nothing} both."
            )
    return ""
