"""Targets: the tables that weights or records should meet, and the cells in which records fall."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoint.marginals.marginals import Marginals
from rejoint.marginals.subsets import Subset

Counts = NDArray[np.int64]


class TableCells:
    """The cells in which records fall in each of several tables."""

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

    def find(self, codes: NDArray[np.signedinteger], table: int) -> Counts:
        """Cell of each record in one table; -1 if a value of the record is missing."""
        columns = codes[:, list(self.subsets[table])]
        cells = columns.astype(np.int64) @ self.strides[table][list(self.subsets[table])]
        return np.where((columns < 0).any(axis=1), -1, cells)

    def find_all(self, codes: NDArray[np.signedinteger]) -> Counts:
        """Cell of each record in each table, (tables, records)."""
        return np.array([self.find(codes, i) for i in range(len(self.subsets))])


@dataclass(frozen=True)
class TableTargets:
    """Wanted counts of all tables, laid one after another; ``known`` is 0 for cells without one."""

    counts: Counts
    known: Counts

    def excess(self, cells: Counts, weight: Counts | None = None) -> Counts:
        """Count of each cell minus its target, 0 where it has none."""
        counts = np.bincount(cells, weight, minlength=len(self.counts)).astype(np.int64)
        return (counts - self.counts) * self.known


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
    """Name the two tables that disagree the most, if they differ by more than ``least``."""
    for worst in tables.disagreements()[:1]:
        if worst.distance > least:
            return (
                f" Tables {worst.first} and {worst.second} disagree on {worst.shared} by "
                f"{worst.distance:.2%}: {nothing} both."
            )
    return ""
