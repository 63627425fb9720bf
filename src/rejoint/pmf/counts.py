"""Counts: the records of a fit, or small tables of them, which answers are compared with."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, combinations

import numpy as np

from rejoint import kernels
from rejoint.arrays import FloatArray
from rejoint.domain.domain import Domain
from rejoint.io.saved_counts import SavedCounts
from rejoint.kernels import table_sizes
from rejoint.marginals.marginals import Marginals
from rejoint.records.records import BaseRecords, Records
from rejoint.records.scan import Scan
from rejoint.records.sparse import SparseRecords
from rejoint.text import plural

#: Cells of kept tables together (8 MB in a file); smaller tables are kept first.
MOST_KEPT_CELLS = 2_000_000

#: Numbers of the tables of a file are multiples of it: a cell of one or two records is shown as 0.
ROUNDING = 5


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """What is counted beside the answers of a model: records, or tables of one and two variables.

    Parameters
    ----------
    domain : Domain
    total : float
        Number of records, or the sum of their weights.
    records : Records or SparseRecords, optional
        The records.
    tables : Marginals, optional
        Their tables of one and two variables, each of the records that hold all its variables.
    rounding : int
        What the numbers of the tables are multiples of, where they were rounded.

    Examples
    --------
    >>> kept = Counts.of(Records.of({"a": ["x", "x", "y"], "b": ["u", None, "u"]}))
    >>> kept.table((0, 1))
    array([[1.],
           [1.]])
    >>> kept.without_records().table((0,))
    array([0., 0.])
    """

    domain: Domain
    total: float
    records: BaseRecords | None = None
    tables: Marginals | None = None
    rounding: int = 0

    def __repr__(self) -> str:
        return f"Counts({self.description})"

    @property
    def description(self) -> str:
        """What is kept, in words."""
        if self.records is not None:
            return plural(len(self.records), "record")
        return f"tables of one and two variables of {plural(round(self.total), 'record')}"

    @classmethod
    def of(cls, data: BaseRecords | Scan) -> "Counts":
        """Keep records in memory; of a scan count the tables, in one pass."""
        if isinstance(data, Scan):
            tables = count_small_tables(data)
            total = sum(data.map(_weight_of))
            return cls(data.domain, float(total), tables=tables)
        return cls(data.domain, _weight_of(data), data)

    def without_records(self) -> "Counts":
        """Return the tables of one and two variables, rounded so that they show no record.

        Each number is rounded to the nearest multiple of 5; 1 and 2 become 0.
        """
        if self.rounding:
            return self
        tables = self.tables if self.records is None else count_small_tables(self.records)
        assert tables is not None
        rounded = np.round(tables.flat / ROUNDING) * ROUNDING
        total = float(np.round(self.total / ROUNDING) * ROUNDING)
        return Counts(self.domain, total, None, replace(tables, flat=rounded), ROUNDING)

    def holds(self, subset: Iterable[int]) -> bool:
        """Whether the table of some variables can be counted."""
        asked = tuple(sorted(subset))
        return self.tables is None or asked in self.tables.positions

    def table(
        self, subset: tuple[int, ...], kept: Mapping[int, np.ndarray] | None = None
    ) -> FloatArray:
        """Number of records in each cell of a table, axes in the order asked.

        Parameters
        ----------
        subset : tuple of int
            The variables; `holds` says whether there is their table.
        kept : mapping of int to array of bool, optional
            The levels of some variables that the table has.
        """
        kept = kept or {}
        if not subset:
            return np.array(self.total)
        order = np.argsort(subset)
        if self.tables is not None:
            table = self.tables.counts_of(self.tables.positions[tuple(sorted(subset))])
            table = table.transpose(np.argsort(order))
            for axis, n in enumerate(subset):
                table = table.compress(kept[n], axis) if n in kept else table
            return table
        codes, weight = self._columns(subset)
        shape = [self.domain.shape[n] for n in subset]
        for axis, n in enumerate(subset):
            if n in kept:
                places = np.append(np.where(kept[n], np.cumsum(kept[n]) - 1, -1), -1)
                codes[:, axis], shape[axis] = places[codes[:, axis]], int(kept[n].sum())
        flat = kernels.count(codes, weight, shape, [tuple(range(len(subset)))])
        return flat.reshape(shape)

    def share_lacking(self, subset: tuple[int, ...], met: Mapping[int, np.ndarray]) -> float:
        """Share of the records that may meet a condition but lack a value of some variables.

        ``met`` has for each variable of the condition whether each level meets it. Where there are
        but tables, records that lack a value of the condition are not counted.
        """
        if self.tables is not None:
            may = self.table(tuple(met), met).sum() if self.holds(met) else self.total
            has = self.table(subset, met).sum()
            return float(np.clip(1.0 - has / may, 0.0, 1.0)) if may > 0 else 0.0
        codes, weight = self._columns(subset)
        mass = np.ones(len(codes)) if weight is None else weight
        may = np.ones(len(codes), dtype=bool)
        for n, levels in met.items():
            may &= np.append(levels, True)[codes[:, subset.index(n)]]
        lacks = may & (codes < 0).any(axis=1)
        total = float(mass[may].sum())
        return float(mass[lacks].sum()) / total if total > 0 else 0.0

    def _columns(self, subset: tuple[int, ...]) -> tuple[np.ndarray, FloatArray | None]:
        """Codes of some variables, which may be changed, and weights of the records."""
        records = self.records
        if isinstance(records, SparseRecords):
            names = [self.domain.names[n] for n in subset]
            records = records.project(names).to_records()
            return np.array(records.codes, np.int32), records.sample_weight
        assert records is not None
        return records.codes[:, list(subset)].astype(np.int32), records.sample_weight

    def to_saved(self) -> SavedCounts:
        """Return what a model file has of them."""
        records, tables = self.records, self.tables
        if isinstance(records, SparseRecords):
            records = records.to_records()
        if records is not None:
            return SavedCounts(self.total, codes=records.codes, weight=records.sample_weight)
        assert tables is not None
        return SavedCounts(self.total, tables.index_subsets, tables.flat, self.rounding)

    @classmethod
    def of_saved(cls, saved: SavedCounts, domain: Domain) -> "Counts":
        """Make them of the contents of a file."""
        if saved.codes is not None:
            return cls(domain, saved.total, Records(domain, saved.codes, saved.weight))
        assert saved.cells is not None
        tables = Marginals(domain, saved.subsets, saved.cells)
        return cls(domain, saved.total, tables=tables, rounding=saved.rounding)


def count_small_tables(data: BaseRecords | Scan) -> Marginals:
    """Count the tables of one and two variables, as many of the smaller ones as are kept."""
    levels = data.domain.shape
    every = range(len(levels))
    subsets = [(n,) for n in every] + list(combinations(every, 2))
    order = np.argsort(table_sizes(levels, subsets), kind="stable")
    sizes = accumulate(table_sizes(levels, subsets)[order])
    chosen = sorted(k for k, size in zip(order, sizes, strict=True) if size <= MOST_KEPT_CELLS)
    names = data.domain.names
    asked = [tuple(names[n] for n in subsets[k]) for k in chosen]
    return Marginals.count(data, subsets=asked, progress=False)


def _weight_of(records: BaseRecords) -> float:
    weight = records.sample_weight
    return float(len(records)) if weight is None else float(weight.sum())
