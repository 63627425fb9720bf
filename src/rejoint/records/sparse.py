"""SparseRecords: records of thousands of variables, each with a few observed cells."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray, IntArray
from rejoint.domain.columns import read_column
from rejoint.domain.domain import Domain, positions, refuse_duplicates
from rejoint.domain.labels import Level, is_missing, native, natural_order
from rejoint.domain.variable import (
    HandleUnknown,
    Kind,
    Unknown,
    Variable,
    check_handle_unknown,
    encode_column,
)
from rejoint.kernels import SparseCodes
from rejoint.messages import remark
from rejoint.records.encode import report_inferred, report_unknown
from rejoint.records.infer import (
    DEFAULT_RULE,
    Bins,
    ColumnRule,
    Declarations,
    NotApplicable,
    infer_variable,
    read_declarations,
)
from rejoint.records.merge import merge_rows
from rejoint.records.records import BaseRecords, Records, check_undeclared
from rejoint.records.survey_design import NO_WEIGHTS, RowWeights, WeightArguments, as_weight
from rejoint.text import cite, nearest, plural, show

#: A name, the rows in which the variable is observed, and the values observed there.
ObservedColumn = tuple[str, IntArray, Any]


@dataclass
class ColumnCells:
    """What is declared about the variables, and what reading their columns finds."""

    domain: Domain | None
    declarations: Declarations
    weights: RowWeights | None
    handle_unknown: HandleUnknown
    variables: dict[str, Variable] = field(default_factory=dict)
    strange: dict[str, Unknown] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)

    def read(self, name: str, rows: IntArray, values: Any) -> NDArray[Any] | None:
        """Return the codes of a column; None where nothing determines its levels."""
        column = read_column(values, name)
        if self.domain is not None:
            variable = self.domain[name]
        elif not len(rows) and self.declarations.of(name).levels is None:
            self.empty.append(name)
            return None
        else:
            all_cells = self.weights.cells if self.weights else (None, None)
            mass, copies = (None if each is None else each[rows] for each in all_cells)
            declared, rule = self.declarations.of(name), self.declarations.rule
            rule = rule.without_names()  # cells are of few records each
            found = infer_variable(name, column, declared, mass, rule, copies)
            assert isinstance(found, Variable)
            variable = found
        self.variables[name] = variable
        codes, unknown = encode_column(variable, column)
        if unknown is not None:
            self.strange[name] = unknown
        return codes

    def finish(self) -> Domain:
        """Return the domain, after remarks on the columns."""
        if self.domain is None and not self.variables:
            raise ValueError("No cell is observed: there is nothing to learn from.")
        self.declarations.check(list(self.variables), "variables")
        if self.empty:
            remark(f"Variables in which nothing is observed are left out: {show(self.empty)}.")
        if self.domain is None:
            report_inferred(self.variables, self.declarations)
        domain = self.domain or Domain(tuple(self.variables.values()))
        report_unknown(domain, self.strange, self.handle_unknown)
        return domain


def cells_of(
    made: ColumnCells, rows: int, columns: Iterable[ObservedColumn]
) -> tuple[Domain, SparseCodes]:
    """Read all columns, and collect the observed cells record by record."""
    check_handle_unknown(made.handle_unknown)
    parts: list[tuple[str, IntArray, NDArray[Any]]] = []
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


def columns_of_matrix(
    data: Any, names: Sequence[Any] | None
) -> tuple[int, Iterator[ObservedColumn]]:
    """Return the number of rows of a sparse matrix, and its columns."""
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
        raise ValueError(
            f"The matrix has {plural(wide, 'column')}, but there are {len(names)} names."
        )
    labels = [f"x{n}" for n in range(wide)] if names is None else [str(name) for name in names]
    refuse_duplicates(labels)
    order = np.lexsort((row, column))
    row, column, values = row[order], column[order], matrix.data[order]
    if ((np.diff(column) == 0) & (np.diff(row) == 0)).any():
        raise ValueError(
            "The matrix has cells that are stored twice: call data.sum_duplicates() first."
        )
    return int(data.shape[0]), split(labels, row, column, values)


def split(
    names: Sequence[str], row: IntArray, column: IntArray, values: Any
) -> Iterator[ObservedColumn]:
    """Split cells that are sorted by column into columns."""
    ends = np.searchsorted(column, np.arange(len(names) + 1))
    for n, name in enumerate(names):
        part = slice(ends[n], ends[n + 1])
        yield name, row[part], values[part]


def columns_of_rows(
    records: Iterable[Any], variables: Iterable[Any], values: Iterable[Any], domain: Domain | None
) -> tuple[int, Iterator[ObservedColumn]]:
    """Return the number of records of a long table, and its columns; raise for duplicate cells."""
    ids, row = places(records)
    names, column = places(variables)
    labels = [str(name) for name in names]
    refuse_duplicates(labels)
    cells = values if isinstance(values, np.ndarray) else as_objects(values)
    if not len(row) == len(column) == len(cells):
        raise ValueError(
            f"records, variables and values are columns of one table, but have {len(row)}, "
            f"{len(column)} and {plural(len(cells), 'row')}."
        )
    if domain is not None:
        for name in labels:
            if name not in domain:
                raise KeyError(
                    f"Variable {cite(name)} is not in the domain ({show(domain.names)})."
                    + nearest(name, domain.names)
                )
    good = (row >= 0) & (column >= 0)
    order = np.lexsort((row, column))
    order = order[good[order]]
    row, column, cells = row[order], column[order], cells[order]
    again = np.flatnonzero((np.diff(column) == 0) & (np.diff(row) == 0))
    if len(again):
        twice = ids[row[again[0]]], labels[column[again[0]]]
        raise ValueError(f"Record {cite(twice[0])} has two values of variable {cite(twice[1])}.")
    return len(ids), split(labels, row, column, cells)


def places(values: Iterable[Any]) -> tuple[list[Any], IntArray]:
    """Return distinct ids in natural order, and the position of each value; -1 where missing."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        distinct, found = np.unique(values, return_inverse=True)
        return distinct.tolist(), found.astype(np.intp)
    plain = [None if is_missing(value) else native(value) for value in values]
    known = list(natural_order({value for value in plain if value is not None}))
    index: dict[Any, int] = {value: i for i, value in enumerate(known)}
    index[None] = -1
    return known, np.array([index[value] for value in plain], dtype=np.intp)


def as_objects(values: Iterable[Any]) -> NDArray[Any]:
    """Return labels of any kind as a one-dimensional array."""
    listed = list(values)
    found = np.empty(len(listed), dtype=object)
    found[:] = listed
    return found


#: Cells up to which sparse records are merged as a dense table.
MERGED_AS_DENSE = 2_000_000

FEW = 6  # cells of records that are merged if identical: longer records hardly ever are


@dataclass(frozen=True, eq=False, repr=False)
class SparseRecords(BaseRecords):
    """Records stored by their observed cells; all other cells are missing.

    Memory and time are proportional to the number of observed cells, not to records x variables,
    so there may be thousands of variables: items that a user has rated, tests that a patient had.
    :func:`rejoint.estimate`, :func:`rejoint.rank.select`, :meth:`Marginals.count
    <rejoint.Marginals.count>`, :class:`rejoint.JointPMF`, ``pmf.log_prob`` and ``pmf.classes`` take
    them directly; for everything else use :meth:`to_records`.

    Parameters
    ----------
    domain : Domain
        The variables.
    codes : SparseCodes
        The observed cells, record after record.
    sample_weight : array of float, shape (rows,), optional
        How many times each record counts.

    Examples
    --------
    >>> r = SparseRecords.of_rows(["ann", "ann", "bob"], ["Heat", "Up", "Up"], [5, 3, 4])
    >>> r
    SparseRecords: 2 rows, 2 variables, 3 cells observed (75 %)
    >>> r.to_records()
    Records: 2 rows, 2 variables, 25 % of the cells missing
    Heat  Up
    5     3
    -     4
    """

    codes: SparseCodes

    def __post_init__(self) -> None:
        if self.codes.levels != self.domain.shape:
            raise ValueError("The cells have other numbers of levels than the domain.")
        if self.sample_weight is not None:
            weight = as_weight(self.sample_weight, len(self.codes))
            object.__setattr__(self, "sample_weight", weight)

    @classmethod
    def of(
        cls,
        data: Any,
        *,
        domain: Domain | None = None,
        names: Sequence[Any] | None = None,
        kinds: Mapping[Any, Kind] | None = None,
        levels: Mapping[Any, Sequence[Level]] | None = None,
        bins: Bins = None,
        sample_weight: Any = None,
        survey_weight: Any = None,
        strata: Any = None,
        clusters: Any = None,
        handle_unknown: HandleUnknown = "missing",
    ) -> "SparseRecords":
        """Make them from a sparse matrix of SciPy, records x variables.

        Stored entries are observed, zeros included; all others, and NaN, are missing.

        Parameters
        ----------
        data : sparse matrix or array, Records or SparseRecords
            Numbers; for labels of other kinds use :meth:`of_rows`.
        domain : Domain, optional
            Encode in this domain instead of finding one; columns are its variables in order.
        names : sequence, optional
            Names of the columns; x0, x1, ... by default.
        kinds, levels, bins, sample_weight, survey_weight, strata, clusters, handle_unknown
            As for :meth:`Records.of`. Columns in which nothing is observed are left out with a
            `Remark`, unless levels or a domain declare their levels.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> ratings = csr_array(([5, 3, 4], ([0, 0, 1], [0, 1, 1])))
        >>> SparseRecords.of(ratings, names=["Heat", "Up"]).domain.shape
        (1, 2)
        """
        weights = WeightArguments(sample_weight, survey_weight, strata, clusters)
        if isinstance(data, Records):
            cells = SparseCodes.of_codes(data.codes, data.domain.shape)
            data = cls._trusted(data.domain, cells, *data._weights)
        if isinstance(data, SparseRecords):
            found = data if domain is None or domain == data.domain else _recode(data, domain)
            return found._weigh(weights)
        declarations = read_declarations(kinds, levels, bins)
        rows, columns = columns_of_matrix(data, names if domain is None else domain.names)
        weights.check_arrays("a sparse matrix has no such column;")
        mass = weights.rows(rows)
        made = ColumnCells(domain, declarations, mass, handle_unknown)
        domain, codes = cells_of(made, rows, columns)
        return cls._trusted(domain, codes, *mass.weigh(codes, domain.shape))

    @classmethod
    def of_rows(
        cls,
        records: Iterable[Any],
        variables: Iterable[Any],
        values: Iterable[Any],
        *,
        domain: Domain | None = None,
        kinds: Mapping[Any, Kind] | None = None,
        levels: Mapping[Any, Sequence[Level]] | None = None,
        bins: Bins = None,
        handle_unknown: HandleUnknown = "missing",
    ) -> "SparseRecords":
        """Make them from a long table with one row per cell: record, variable and value.

        Records are sorted by their ids, numbers before text; variables likewise, unless a domain
        is given.

        Parameters
        ----------
        records, variables, values : columns of equal length
            Ids of any kind, names, labels. No record may have two values of one variable.
        domain, kinds, levels, bins, handle_unknown
            As for :meth:`Records.of`.

        Examples
        --------
        >>> SparseRecords.of_rows([7, 7, 3], ["b", "a", "a"], ["x", "y", "z"]).names
        ('a', 'b')
        """
        declarations = read_declarations(kinds, levels, bins)
        rows, columns = columns_of_rows(records, variables, values, domain)
        made = ColumnCells(domain, declarations, None, handle_unknown)
        return cls._trusted(*cells_of(made, rows, columns))

    def __repr__(self) -> str:
        share = self.codes.size / max(len(self) * len(self.domain), 1)
        return (
            f"SparseRecords: {plural(len(self), 'row')}, {plural(len(self.domain), 'variable')}, "
            f"{plural(self.codes.size, 'cell')} observed ({100 * share:.2g} %)"
        )

    def _why_no_table(self) -> str:
        return (
            f"{self!r}: estimate, rank.select, Marginals.count, JointPMF, pmf.log_prob "
            "and pmf.classes take them; everything else needs a code for each cell, which "
            "to_records() makes."
        )

    def to_records(self) -> Records:
        """Return ordinary records, with a code for each cell, observed or not.

        Examples
        --------
        >>> SparseRecords.of_rows([0, 1], ["a", "b"], [1, 2]).to_records().codes
        array([[ 0, -1],
               [-1,  0]], dtype=int8)
        """
        codes = self.codes.to_codes()
        return Records._trusted(self.domain, codes, *self._weights)

    def project(self, names: str | Iterable[Hashable]) -> "SparseRecords":
        """Return the records of some variables, in the order asked.

        Examples
        --------
        >>> r = SparseRecords.of_rows([0, 0, 1], ["a", "b", "c"], [1, 2, 3])
        >>> r.project(["c", "a"])
        SparseRecords: 2 rows, 2 variables, 2 cells observed (50 %)
        """
        chosen = positions(self.domain, names)
        domain = Domain(tuple(self.domain[n] for n in chosen))
        codes = self.codes.pick(chosen)
        return self._trusted(domain, codes, *self._weights)

    def marginal(self, names: str | Iterable[Hashable]) -> FloatArray:
        """Return the shares of some variables among the records that have all of them.

        Examples
        --------
        >>> SparseRecords.of_rows([0, 1, 2, 2], list("aaab"), [1, 2, 2, 5]).marginal("a").round(2)
        array([0.33, 0.67])
        """
        few = self.project(names).to_records()
        return few.marginal(few.names)

    def _merge(self) -> tuple[SparseCodes, FloatArray]:
        """Merge small tables as dense ones; of large ones, only records of few cells."""
        if len(self) * len(self.domain) <= MERGED_AS_DENSE:
            shape = self.domain.shape
            table, merged = merge_rows(self.codes.to_codes(), shape, self.sample_weight)
            return SparseCodes.of_codes(table, shape), merged
        mass = np.ones(len(self)) if self.sample_weight is None else self.sample_weight
        counts, starts = self.codes.counts, self.codes.starts[:-1]
        kept, weight = [np.flatnonzero(counts > FEW)], [mass[counts > FEW]]
        for size in range(FEW + 1):
            rows = np.flatnonzero(counts == size)
            if not len(rows):
                continue
            cells = self.codes.cells[starts[rows][:, None] + np.arange(size)]
            _, first, which = np.unique(cells, axis=0, return_index=True, return_inverse=True)
            kept.append(rows[first])
            total = np.bincount(which.ravel(), weights=mass[rows], minlength=len(first))
            weight.append(total.astype(np.float64, copy=False))
        return self.codes[np.concatenate(kept)], np.concatenate(weight)

    def _twins(self, rows: IntArray) -> FloatArray:
        taken = self.codes[rows]
        text, starts = taken.cells.tobytes(), (taken.cells.itemsize * taken.starts).tolist()
        keys = Counter(text[a:b] for a, b in pairwise(starts))
        return np.array([*keys.values()], dtype=np.float64)


def as_records(
    data: Any,
    *,
    domain: Domain | None = None,
    kinds: Mapping[Any, Kind] | None = None,
    levels: Mapping[Any, Sequence[Level]] | None = None,
    bins: Bins = None,
    not_applicable: NotApplicable = "auto",
    missing_level: Sequence[Any] = (),
    weights: WeightArguments = NO_WEIGHTS,
    rule: ColumnRule = DEFAULT_RULE,
) -> Records | SparseRecords:
    """Return sparse records as they are, and `Records` of all other data.

    Every function that takes data reads it by this one, with the arguments of :meth:`Records.of`.
    """
    if isinstance(data, SparseRecords):
        check_undeclared(kinds, levels, bins, not_applicable, missing_level)
        return SparseRecords.of(data, domain=domain, **weights.given)
    declared: dict[str, Any] = {"kinds": kinds, "levels": levels, "bins": bins, "rule": rule}
    declared |= {"not_applicable": not_applicable, "missing_level": missing_level}
    return Records.of(data, domain=domain, **weights.given, **declared)


def _recode(records: SparseRecords, domain: Domain) -> SparseRecords:
    """Return the records in another domain; levels that it lacks become missing."""
    codes = records.codes
    inside = codes.codes
    columns = []
    row = np.repeat(np.arange(len(codes)), codes.counts)
    order = np.argsort(codes.variables, kind="stable")
    ends = np.searchsorted(codes.variables[order], np.arange(len(codes.levels) + 1))
    extra = [name for name in records.names if name not in domain]
    if extra:
        remark(f"Variables that are not in the domain are left out: {show(extra)}.")
    for n, variable in enumerate(records.domain):
        if variable.name not in domain:
            continue
        mine = order[ends[n] : ends[n + 1]]
        columns.append((variable.name, row[mine], variable.decode(inside[mine])))
    made = ColumnCells(domain, read_declarations(None, None, None), None, "missing")
    domain, cells = cells_of(made, len(codes), columns)
    return SparseRecords._trusted(domain, cells, *records._weights)
