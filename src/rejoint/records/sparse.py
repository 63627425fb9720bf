"""SparseRecords: records of thousands of variables, each with a few observed cells."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from rejoint.arrays import FloatArray, IntArray
from rejoint.domain.columns import Coded, read_column
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
from rejoint.records.infer import Bins, Declarations, infer_variable, read_declarations
from rejoint.records.merge import merge_rows
from rejoint.records.records import BaseRecords, Records, check_undeclared
from rejoint.records.survey_design import NO_WEIGHTS, RowWeights, WeightArguments, as_weight
from rejoint.text import cite, nearest, plural, show

#: A name, the rows in which the variable is observed, and the values observed there.
ObservedColumn = tuple[str, IntArray, Any]


def _encode(
    rows: int,
    columns: Iterable[ObservedColumn],
    domain: Domain | None,
    handle_unknown: HandleUnknown = "missing",
    declarations: Declarations | None = None,
    weights: RowWeights | None = None,
) -> tuple[Domain, SparseCodes]:
    """Read all columns, and collect the observed cells record by record."""
    check_handle_unknown(handle_unknown)
    declarations = declarations or read_declarations()
    variables: dict[str, Variable] = {}
    strange: dict[str, Unknown] = {}
    parts, empty = [], []
    for name, where, values in columns:
        column, declared = read_column(values, name), declarations.of(name)
        if domain is not None:
            variable = domain[name]
        elif not len(where) and declared.levels is None:
            empty.append(name)
            continue
        else:
            both = (weights or RowWeights(rows)).cells
            mass, copies = (None if x is None else x[where] for x in both)
            rule = declarations.rule.without_names()  # cells are of few records each
            inferred = infer_variable(name, column, declared, mass, rule, copies)
            assert isinstance(inferred, Variable)
            variable = inferred
        variables[name] = variable
        codes, unknown = encode_column(variable, column)
        if unknown is not None:
            strange[name] = unknown
        parts.append((name, where[codes >= 0], codes[codes >= 0]))
    if domain is None and not variables:
        raise ValueError("No cell is observed: there is nothing to learn from.")
    declarations.check(list(variables), "variables")
    if empty:
        remark(f"Variables in which nothing is observed are left out: {show(empty)}.")
    if domain is None:
        report_inferred(variables, declarations)
        domain = Domain(tuple(variables.values()))
    report_unknown(domain, strange, handle_unknown)
    first = np.concatenate([[0], np.cumsum(domain.shape)])
    row = np.concatenate([np.empty(0, dtype=np.intp), *(where for _, where, _ in parts)])
    cells = [codes + first[domain.index(name)] for name, _, codes in parts]
    cell = np.concatenate([np.empty(0, dtype=np.intp), *cells])
    order = np.lexsort((cell, row))
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows))])
    return domain, SparseCodes(starts, cell[order].astype(np.int32), domain.shape)


def _columns_of_matrix(
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
    rows, wide = data.shape
    if names is not None and len(names) != wide:
        columns = plural(wide, "column")
        raise ValueError(f"The matrix has {columns}, but there are {len(names)} names.")
    labels = [f"x{n}" for n in range(wide)] if names is None else [str(name) for name in names]
    refuse_duplicates(labels)
    order, twice = _sort_cells(row, column)
    if twice is not None:
        raise ValueError(
            "The matrix has cells that are stored twice: call data.sum_duplicates() first."
        )
    return int(rows), _split(labels, row[order], column[order], matrix.data[order])


def _sort_cells(row: IntArray, column: IntArray) -> tuple[IntArray, int | None]:
    """Return cells by column, then by row; and one that is there twice."""
    order = np.lexsort((row, column))
    is_again = (np.diff(column[order]) == 0) & (np.diff(row[order]) == 0)
    return order, int(order[np.argmax(is_again)]) if is_again.any() else None


def _split(
    names: Sequence[str], row: IntArray, column: IntArray, values: Any
) -> Iterator[ObservedColumn]:
    """Split cells that are sorted by column into columns."""
    ends = np.searchsorted(column, np.arange(len(names) + 1))
    for name, (start, end) in zip(names, pairwise(ends.tolist()), strict=True):
        yield name, row[start:end], values[start:end]


def _columns_of_rows(
    records: Iterable[Any], variables: Iterable[Any], values: Iterable[Any], domain: Domain | None
) -> tuple[int, Iterator[ObservedColumn]]:
    """Return the number of records of a long table, and its columns; raise for duplicate cells."""
    ids, row = _number(records)
    names, column = _number(variables)
    labels = [str(name) for name in names]
    refuse_duplicates(labels)
    cells = values
    if not isinstance(cells, np.ndarray):
        listed = list(values)
        cells = np.empty(len(listed), dtype=object)
        cells[:] = listed
    if not len(row) == len(column) == len(cells):
        raise ValueError(
            f"records, variables and values are columns of one table, but have {len(row)}, "
            f"{len(column)} and {plural(len(cells), 'row')}."
        )
    odd = next((name for name in labels if domain is not None and name not in domain), None)
    if odd is not None and domain is not None:
        near = nearest(odd, domain.names)
        raise KeyError(f"Variable {cite(odd)} is not in the domain ({show(domain.names)}).{near}")
    good = (row >= 0) & (column >= 0)
    row, column, cells = row[good], column[good], cells[good]
    order, twice = _sort_cells(row, column)
    if twice is not None:
        one, other = cite(ids[row[twice]]), cite(labels[column[twice]])
        raise ValueError(f"Record {one} has two values of variable {other}.")
    return len(ids), _split(labels, row[order], column[order], cells[order])


def _number(values: Iterable[Any]) -> tuple[list[Any], IntArray]:
    """Return distinct ids in natural order, and the position of each value; -1 where missing."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        distinct, place = np.unique(values, return_inverse=True)
        return distinct.tolist(), place.astype(np.intp)
    plain = [None if is_missing(value) else native(value) for value in values]
    ids = list(natural_order({value for value in plain if value is not None}))
    index: dict[Any, int] = {value: i for i, value in enumerate(ids)}
    index[None] = -1
    return ids, np.array([index[value] for value in plain], dtype=np.intp)


#: Cells up to which sparse records are merged as a dense table.
MERGED_AS_DENSE = 2_000_000


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
            records = data if domain is None or domain == data.domain else _recode(data, domain)
            return records._weigh(weights)
        declarations = read_declarations(kinds, levels, bins)
        rows, columns = _columns_of_matrix(data, names if domain is None else domain.names)
        weights.check_arrays("a sparse matrix has no such column;")
        mass = weights.rows(rows)
        domain, codes = _encode(rows, columns, domain, handle_unknown, declarations, mass)
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
        rows, columns = _columns_of_rows(records, variables, values, domain)
        return cls._trusted(*_encode(rows, columns, domain, handle_unknown, declarations))

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
        if len(self) * len(self.domain) <= MERGED_AS_DENSE:
            shape = self.domain.shape
            table, merged = merge_rows(self.codes.to_codes(), shape, self.sample_weight)
            return SparseCodes.of_codes(table, shape), merged
        place = _number_records(self.codes)
        _, first = np.unique(place, return_index=True)
        mass = np.bincount(place, self.sample_weight).astype(np.float64, copy=False)
        return self.codes[first], mass

    def _twins(self, rows: IntArray) -> FloatArray:
        return np.bincount(_number_records(self.codes[rows])).astype(np.float64)


def _number_records(codes: SparseCodes) -> IntArray:
    """Return a number for each record, the same for identical ones."""
    cells, starts = codes.cells.tobytes(), (codes.cells.itemsize * codes.starts).tolist()
    places: dict[bytes, int] = {}
    keys = (cells[start:end] for start, end in pairwise(starts))
    return np.array([places.setdefault(key, len(places)) for key in keys], dtype=np.intp)


def as_records(
    data: Any,
    *,
    domain: Domain | None = None,
    weights: WeightArguments = NO_WEIGHTS,
    **declared: Any,
) -> Records | SparseRecords:
    """Return sparse records as they are, and `Records` of all other data.

    Every function that takes data reads it by this one, with the arguments of :meth:`Records.of`.
    """
    if isinstance(data, SparseRecords):
        check_undeclared(**{key: value for key, value in declared.items() if key != "rule"})
        return SparseRecords.of(data, domain=domain, **weights.given)
    return Records.of(data, domain=domain, **weights.given, **declared)


def _recode(records: SparseRecords, domain: Domain) -> SparseRecords:
    """Return the records in another domain; levels that it lacks become missing."""
    codes = records.codes
    order = np.argsort(codes.variables, kind="stable")
    row = np.repeat(np.arange(len(codes)), codes.counts)
    column = codes.variables[order].astype(np.intp)
    columns = _split(records.names, row[order], column, codes.codes[order])
    extra = [name for name in records.names if name not in domain]
    if extra:
        remark(f"Variables that are not in the domain are left out: {show(extra)}.")
    coded = (
        (name, where, Coded(records.domain[name].levels, own))
        for name, where, own in columns
        if name in domain
    )
    domain, cells = _encode(len(codes), coded, domain)
    return SparseRecords._trusted(domain, cells, *records._weights)
