"""SparseRecords: records of thousands of variables, of which each holds a few."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from rejoint.domain import Domain, HandleUnknown, Kind, Level
from rejoint.domain.labels import show
from rejoint.domain.order import positions
from rejoint.kernels import DefaultCodes, SparseCodes
from rejoint.records.checks import checked_weight
from rejoint.records.columns import ColumnCells, cells_of, columns_of_matrix, columns_of_rows
from rejoint.records.records import Records
from rejoint.records.wishes import read_wishes
from rejoint.remarks import remark

__all__ = ["AnyRecords", "DepartingRecords", "SparseRecords", "read_any", "some"]

FEW = 6  # cells of records that are merged where they are alike: longer ones hardly ever are


@dataclass(frozen=True, eq=False, repr=False)
class SparseRecords:
    """Records by what is observed of them; what is not there is missing.

    Memory and time go with the number of observed cells, never with records x variables, so that
    there may be thousands of variables: items that a user has rated, tests that a patient had.
    :func:`rejoint.estimate`, :func:`rejoint.rank.select`, :meth:`Marginals.count
    <rejoint.Marginals.count>`, :class:`rejoint.JointPMF`, ``pmf.log_prob`` and ``pmf.classes`` take
    them as they are; for all else there is :meth:`to_records`.

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

    domain: Domain
    codes: SparseCodes
    sample_weight: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if self.codes.levels != self.domain.shape:
            raise ValueError("The cells have other numbers of levels than the domain.")
        if self.sample_weight is not None:
            weight = checked_weight(self.sample_weight, len(self.codes))
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
        bins: Mapping[Any, Any] | Literal[False] | None = None,
        sample_weight: Any = None,
        handle_unknown: HandleUnknown = "missing",
    ) -> "SparseRecords":
        """Make them from a sparse matrix of SciPy, records x variables.

        What is stored is observed, zeros included; what is not stored, and NaN, is missing.

        Parameters
        ----------
        data : sparse matrix or array, Records or SparseRecords
            Numbers; labels of other kinds go by :meth:`of_rows`.
        domain : Domain, optional
            Encode in this domain instead of finding one; columns are its variables in order.
        names : sequence, optional
            Names of the columns; x0, x1, ... by default.
        kinds, levels, bins, sample_weight, handle_unknown
            As for :meth:`Records.of`. Columns in which nothing is observed are left out with a
            `Remark`, unless levels or a domain say what could be.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> ratings = csr_array(([5, 3, 4], ([0, 0, 1], [0, 1, 1])))
        >>> SparseRecords.of(ratings, names=["Heat", "Up"]).domain.shape
        (1, 2)
        """
        if isinstance(data, Records):
            cells = SparseCodes.of_codes(data.codes, data.domain.shape)
            data = cls(data.domain, cells, data.sample_weight)
        if isinstance(data, SparseRecords):
            found = data if domain is None or domain == data.domain else moved(data, domain)
            return found if sample_weight is None else replace(found, sample_weight=sample_weight)
        wishes = read_wishes(kinds, levels, bins)
        rows, columns = columns_of_matrix(data, names if domain is None else domain.names)
        weight = None if sample_weight is None else checked_weight(sample_weight, rows)
        made = ColumnCells(domain, wishes, weight, handle_unknown)
        return cls(*cells_of(made, rows, columns), weight)

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
        bins: Mapping[Any, Any] | Literal[False] | None = None,
        handle_unknown: HandleUnknown = "missing",
    ) -> "SparseRecords":
        """Make them from a long table with a row a cell: whose it is, of which variable, its value.

        Records are in the order of their ids, numbers and text each by themselves; variables
        likewise, unless a domain is given.

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
        wishes = read_wishes(kinds, levels, bins)
        rows, columns = columns_of_rows(records, variables, values, domain)
        made = ColumnCells(domain, wishes, None, handle_unknown)
        return cls(*cells_of(made, rows, columns))

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.codes)

    def __repr__(self) -> str:
        share = self.codes.size / max(len(self) * len(self.domain), 1)
        return (
            f"SparseRecords: {len(self):,} rows, {len(self.domain):,} variables, "
            f"{self.codes.size:,} cells observed ({100 * share:.2g} %)"
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables.

        Examples
        --------
        >>> SparseRecords.of_rows([0], ["a"], [1]).names
        ('a',)
        """
        return self.domain.names

    def to_records(self) -> Records:
        """As ordinary records, with a code for each cell, observed or not.

        Examples
        --------
        >>> SparseRecords.of_rows([0, 1], ["a", "b"], [1, 2]).to_records().codes
        array([[ 0, -1],
               [-1,  0]], dtype=int16)
        """
        return Records(self.domain, self.codes.to_codes(), self.sample_weight)

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
        return SparseRecords(domain, self.codes.pick(chosen), self.sample_weight)

    def marginal(self, names: str | Iterable[Hashable]) -> NDArray[np.float64]:
        """Return the shares of some variables among the records that have all of them.

        Examples
        --------
        >>> SparseRecords.of_rows([0, 1, 2, 2], list("aaab"), [1, 2, 2, 5]).marginal("a").round(2)
        array([0.33, 0.67])
        """
        few = self.project(names).to_records()
        return few.marginal(few.names)

    def merged(self) -> "SparseRecords":
        """Return records of few cells once each where they are alike, with the weight of all.

        Examples
        --------
        >>> SparseRecords.of_rows([0, 1], ["a", "a"], [1, 1]).merged().sample_weight
        array([2.])
        """
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
        chosen = np.concatenate(kept)
        return SparseRecords(self.domain, self.codes[chosen], np.concatenate(weight))

    def chunks(self, size: int) -> Iterator["SparseRecords"]:
        """Iterate over the records, `size` at a time.

        Examples
        --------
        >>> [len(part) for part in SparseRecords.of_rows([0, 1, 2], "aaa", [1, 2, 1]).chunks(2)]
        [2, 1]
        """
        if size < 1:
            raise ValueError(f"A chunk must have at least one row, not {size}.")
        for start in range(0, len(self), size):
            part = slice(start, start + size)
            weight = None if self.sample_weight is None else self.sample_weight[part]
            yield SparseRecords(self.domain, self.codes[part], weight)


@dataclass(frozen=True, eq=False, repr=False)
class DepartingRecords(SparseRecords):
    """Records that are at the first level of nearly every variable, for estimates alone.

    Examples
    --------
    >>> cells = SparseCodes(np.array([0, 1, 1]), np.array([3]), (2, 2))
    >>> DepartingRecords(Domain.of_shape([2, 2]), DefaultCodes(cells)).to_records().codes
    array([[0, 1],
           [0, 0]], dtype=int16)
    """

    codes: DefaultCodes  # type: ignore[assignment]

    def merged(self) -> "DepartingRecords":
        """Return each distinct record once, in order, with the weight of all that are like it.

        Examples
        --------
        >>> cells = SparseCodes(np.array([0, 1, 1, 2]), np.array([3, 3]), (2, 2))
        >>> DepartingRecords(Domain.of_shape([2, 2]), DefaultCodes(cells)).merged().sample_weight
        array([1., 2.])
        """
        keys = self.codes.keys()
        row = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))  # the first one
        place = {key: n for n, key in enumerate(sorted(row))}
        which = np.fromiter((place[key] for key in keys), np.intp, len(keys))
        total = np.bincount(which, weights=self.sample_weight, minlength=len(place))
        chosen = np.fromiter((row[key] for key in place), np.intp, len(place))
        return DepartingRecords(self.domain, self.codes[chosen], total.astype(np.float64))


AnyRecords = Records | SparseRecords
R = TypeVar("R", bound=Records | SparseRecords)


def some(records: R, rows: NDArray[np.intp], weight: NDArray[np.float64] | None) -> R:
    """Some of the records, with weights of their own.

    Examples
    --------
    >>> len(some(Records.of({"a": [1, 2, 1]}), np.array([0, 2]), None))
    2
    """
    codes: Any = records.codes[rows]
    return type(records)(records.domain, codes, weight)


def read_any(data: Any, *, domain: Domain | None = None, sample_weight: Any = None) -> AnyRecords:
    """Sparse records from what is sparse, ordinary ones from all else.

    Examples
    --------
    >>> type(read_any({"a": [1, 2]})).__name__
    'Records'
    """
    if isinstance(data, SparseRecords):
        return SparseRecords.of(data, domain=domain, sample_weight=sample_weight)
    return Records.of(data, domain=domain, sample_weight=sample_weight)


def moved(records: SparseRecords, domain: Domain) -> SparseRecords:
    """The same records in another domain; what it does not have becomes missing."""
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
    made = ColumnCells(domain, read_wishes(None, None, None), None, "missing")
    return SparseRecords(*cells_of(made, len(codes), columns), records.sample_weight)
