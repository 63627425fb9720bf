"""Marginals: small tables of many subsets of variables, which add up over records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from os import PathLike
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain
from rejoint.marginals.align import (
    ReadTables,
    check_covered,
    gather,
    read_tables,
    weights_of_tables,
)
from rejoint.marginals.compare import (
    Disagreement,
    Fits,
    compare,
    disagreements,
    remark_on_disagreements,
)
from rejoint.marginals.count import as_chunks, count_all, count_scan
from rejoint.marginals.folder import find_folder, read_folder, write_tables
from rejoint.marginals.moments import read_moments
from rejoint.marginals.publication import read_files
from rejoint.marginals.store import TableStore, add, fill_unknown
from rejoint.marginals.subsets import choose_subsets
from rejoint.marginals.suppression import UnknownCells
from rejoint.records.scan import Scan


class TableExchange(TableStore):
    """Tables that can be read and written; see :class:`rejoint.Marginals`."""

    @classmethod
    def read(
        cls,
        paths: Any,
        *,
        domain: Domain | None = None,
        kind: Literal["auto", "counts", "shares"] = "auto",
        table_weight: Mapping[Any, float] | float | None = None,
        noisy: bool = False,
        **options: Any,
    ) -> Self:
        r"""Read tables from a folder of CSV files, some files, or one that holds several.

        A folder that :meth:`write` made comes back as it was. Else each file is in long form (a
        column for each variable, one with the numbers) or a cross-tabulation; see the page on
        tables in the documentation. Totals are recognised and checked. Marks (``*``, ``.``,
        ``c``, ``<5``, nothing) are cells that are not known, which is not zero.

        Parameters
        ----------
        paths : path, or sequence of paths
            A folder, or files; ``-`` is standard input. gzip is unpacked.
        domain, kind, table_weight, noisy
            As for :meth:`from_tables`.
        **options
            ``suppressed``: further marks of cells that are not known, or a mapping from marks
            to bounds, ``{"*": (1, 4)}``. ``totals``: labels of totals; ``()`` for none.
            ``delimiter``, ``encoding``, ``decimal``: guessed where not given.

        Examples
        --------
        >>> import pathlib, rejoint as rj, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "smoke by age.csv")
        ...     text = "smoke \\ age,young,old,Total\nyes,30,<5,33\nno,20,40,60\n"
        ...     _ = path.write_text(text)
        ...     m = rj.Marginals.read(folder)
        >>> m
        Marginals(1 table of order 2 over 2 variables, about 93 records each, 1 cell not known)
        >>> m["smoke", "age"]
        array([[30.,  3.],
               [20., 40.]])
        """
        written = find_folder(paths)
        if written is not None:
            return cls(**read_folder(written))
        found = read_files(paths, domain=domain, noisy=noisy, **options)
        if table_weight is None or isinstance(table_weight, Mapping):
            table_weight = {**found.weights, **(table_weight or {})}
        made = cls._of_read(gather(found.tables, domain, kind), table_weight)
        check_covered(made.domain, made.index_subsets)
        remark_on_disagreements(made)
        return made

    def write(self, folder: str | PathLike[str]) -> None:
        """Write the tables to a folder of CSV files; :meth:`read` gives them back exactly.

        It is written whole or not at all. A folder with other files in it is left alone.

        Parameters
        ----------
        folder : path
            A new or empty one, or one that was written before, which is replaced.

        Examples
        --------
        >>> import rejoint as rj, tempfile
        >>> m = rj.Marginals.from_tables({("a", "b"): [[1, 2], [3, 4]]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     m.write(folder)
        ...     rj.Marginals.read(folder)["a", "b"]
        array([[1., 2.],
               [3., 4.]])
        """
        write_tables(self, folder)

    @classmethod
    def _of_read(cls, read: ReadTables, table_weight: Any) -> Self:
        """Tables over one domain, one after another."""
        flat = np.concatenate([*(table.ravel() for table in read.tables), np.empty(0)])
        starts = np.cumsum([0, *(table.size for table in read.tables)])
        unknown = [
            cells.shifted(int(start))
            for cells, start in zip(read.unknown, starts[:-1], strict=True)
            if cells is not None
        ]
        return cls(
            read.domain,
            read.subsets,
            flat,
            weights_of_tables(table_weight, read),
            counted=np.array(read.counted, dtype=bool),
            unknown=UnknownCells.together(unknown),
        )


Array = NDArray[np.float64]
Subset = tuple[int, ...]


class Projectable(Protocol):
    """Anything with a domain and share tables: LowRankPMF, Records, Marginals."""

    @property
    def domain(self) -> Domain:
        """The variables."""
        ...

    def marginal(self, names: Any) -> Array:
        """Share table of some variables, axes in the order asked."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Marginals(TableExchange):
    """Tables of counts (or shares) over subsets of the variables of a domain.

    Make them by :meth:`count`, :meth:`from_tables` or :meth:`from_pmf`.

    Parameters
    ----------
    domain : Domain
        The variables, in order.
    index_subsets : tuple of tuples of int
        The variables of each table, increasing.
    flat : array
        The tables one after another, each in C order.
    table_weight : array, optional
        How much each table counts in a fit; ones by default.
    moments : tuple of Moment
        Known means, covariances, ... of numeric levels.
    counted : array of bool, optional
        False where a table was given as shares, so that its total says nothing of how many
        records are behind it; true by default.
    unknown : UnknownCells, optional
        Cells that were held back, their bounds, and sums of them that are known; ``flat`` has a
        first guess there.

    Examples
    --------
    >>> rows = [{"smoke": "yes", "cough": "yes"}, {"smoke": "no", "cough": None}]
    >>> m = Marginals.count(rows, order=1)
    >>> m["smoke"], m.total("cough")
    (array([1., 1.]), 1.0)
    """

    @classmethod
    def count(
        cls,
        data: Any,
        order: int | Sequence[int] | None = None,
        *,
        subsets: Sequence[str | Sequence[str]] | None = None,
        sample: int | None = None,
        domain: Domain | None = None,
        sample_weight: Any = None,
        memory_limit: float | None = None,
        threads: int | None = None,
        random_state: int | np.random.Generator | None = None,
        progress: bool | None = None,
    ) -> "Marginals":
        """Count records into tables; each uses the records that hold all of its variables.

        Such available-case tables are unbiased only where cells are missing completely at
        random: whether a cell is empty must not depend on any value.

        Parameters
        ----------
        data : Records, SparseRecords, Scan, frame, array, list of dicts, or iterator of such chunks
            See :meth:`Records.of`, :class:`SparseRecords` and :func:`rejoint.scan`. Chunks that
            are not Records need ``domain``. Counts add up: chunks give exactly what the whole
            gives.
        order : int or sequence of int, optional
            Count all subsets of this many variables; 3 by default (or all variables, if fewer).
        subsets : sequence of tuples of names, optional
            Count these instead; orders may be mixed.
        sample : int, optional
            Count a random choice of so many subsets of ``order``, which covers every variable
            and as many pairs of variables as it can.
        domain : Domain, optional
            Variables and levels, where the data should not define them.
        sample_weight : array, optional
            Weight of each record.
        memory_limit : float, optional
            Bytes that the tables may take; 4 GiB, or half of the machine's memory, by default.
            What would take more is refused before anything is allocated.
        threads : int, optional
            Threads of the compiled kernel; all processors by default. The result is the same.
        random_state : int or Generator, optional
            Source of randomness of ``sample``.
        progress : bool, optional
            Whether to show progress over a Scan on stderr; by default where that is a terminal.

        Examples
        --------
        >>> rows = [{"a": 0, "b": 1, "c": 0}, {"a": 1, "b": 1, "c": None}]
        >>> m = Marginals.count(rows, order=2)
        >>> m.subsets
        (('a', 'b'), ('a', 'c'), ('b', 'c'))
        >>> m.totals
        array([2., 1., 1.])
        """
        if isinstance(data, Scan):
            if domain is not None or sample_weight is not None:
                raise ValueError("A Scan has its domain and weights: give them to scan(...).")
            chosen = choose_subsets(data.domain, order, subsets, sample, memory_limit, random_state)
            return cls(data.domain, chosen, count_scan(data, chosen, threads, progress))
        chunks = as_chunks(data, domain, sample_weight)
        first = next(chunks)
        chosen = choose_subsets(first.domain, order, subsets, sample, memory_limit, random_state)
        flat = count_all(chain([first], chunks), chosen, threads)
        return cls(first.domain, chosen, flat)

    @classmethod
    def from_tables(
        cls,
        tables: Mapping[Any, Any],
        *,
        domain: Domain | None = None,
        kind: Literal["auto", "counts", "shares"] = "auto",
        table_weight: Mapping[Any, float] | float | None = None,
        moments: Mapping[Any, float] | None = None,
        central: bool = True,
        suppressed: tuple[float, float] | None = None,
        noisy: bool = False,
    ) -> "Marginals":
        """Take tables from elsewhere: published, counted by a database, exact.

        Parameters
        ----------
        tables : mapping from tuples of names to tables
            Each in any of these forms: a frame (pandas, polars, pyarrow) with one column for
            each variable and one with the numbers; a pandas cross-tabulation, with labels in
            index and columns; a pandas Series with labels in its index; an array with its axes
            in the order of the key; a mapping ``{("yes", "male"): 12}``. Cells that a form
            with labels leaves out are zero.
        domain : Domain, optional
            Variables and levels. By default both are in the order of their first appearance;
            plain arrays have the labels that other tables show, or 0, 1, 2, ...
        kind : {"auto", "counts", "shares"}
            What the numbers are. "auto" goes, table by table, by the name of the column
            ("count", "n", "share", "prob", ...); then integers are counts, a sum of 1 within
            1 % means shares, a sum of 100 with fractions percentages, anything else counts (a
            sum below 1 is an error). Shares are scaled to add up to 1 exactly.
        table_weight : mapping from tuples of names to numbers, or a number, optional
            How much each table counts in a fit; 1 where none is given.
        moments : mapping from tuples of names to numbers, optional
            ``("a",)``: mean; ``("a", "b")``: covariance, ``("a", "a")``: variance, and so on
            for three names or more; levels must be numbers. Where only moments are given,
            ``domain`` says the levels.
        central : bool
            Whether moments of two names and more are about the means (given, or taken from a
            table) or raw, ``E[a b]``.
        suppressed : (float, float), optional
            Take cells that are NaN as held back, between these bounds (counts of 1 to 4, say;
            the upper one may be infinite): a fit then fills them by what it expects. Without
            this they are an error.
        noisy : bool
            Whether noise was added (differential privacy), so that cells may be negative. They
            are kept as they are: least squares is unbiased by them, cutting off would not be.

        Examples
        --------
        >>> m = Marginals.from_tables({("a", "b"): [[10, 20], [30, 40]], ("b",): [0.4, 0.6]})
        >>> m.totals, m["b", "a"]
        (array([100.,   1.]), array([[10., 30.],
               [20., 40.]]))
        """
        read = read_tables(tables, domain, kind, suppressed, noisy=noisy)
        made = cls._of_read(read, table_weight)
        if moments:
            found = read_moments(moments, made.domain, central=central, table_mean=made._mean)
            made = replace(made, moments=found)
        check_covered(made.domain, [*made.index_subsets, *(m.variables for m in made.moments)])
        remark_on_disagreements(made)
        return made

    @classmethod
    def from_pmf(
        cls,
        pmf: Projectable,
        order: int | Sequence[int] | None = None,
        *,
        subsets: Sequence[str | Sequence[str]] | None = None,
        sample: int | None = None,
        memory_limit: float | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> "Marginals":
        """Take the exact tables of anything that has ``domain`` and ``marginal(names)``.

        Parameters
        ----------
        pmf : LowRankPMF, or any with a domain and a method ``marginal``
            The distribution.
        order, subsets, sample, memory_limit, random_state
            As for :meth:`count`.

        Examples
        --------
        >>> m = Marginals.from_tables({("a", "b"): [[0.1, 0.2], [0.3, 0.4]]})
        >>> Marginals.from_pmf(m, order=1)["b"]
        array([0.4, 0.6])
        """
        domain = pmf.domain
        chosen = choose_subsets(domain, order, subsets, sample, memory_limit, random_state)
        tables = [pmf.marginal([domain.names[n] for n in s]).ravel() for s in chosen]
        shares = np.zeros(len(chosen), dtype=bool)
        return cls(domain, chosen, np.concatenate(tables), counted=shares)

    def __add__(self, other: object) -> "Marginals":
        """Add the counts of tables that both have, and keep those that only one has."""
        if not isinstance(other, Marginals):
            return NotImplemented
        return add(self, other)

    def filled(self, model: Projectable) -> "Marginals":
        """Fill the cells that are not known by what a model expects, within their bounds.

        Examples
        --------
        >>> nan = float("nan")
        >>> m = Marginals.from_tables({"a": {"x": 3, "y": nan}}, suppressed=(0, 9))
        >>> even = Marginals.from_tables({"a": {"x": 1, "y": 1}})
        >>> m.filled(even)["a"].round(2)
        array([3.  , 2.99])
        """
        return fill_unknown(self, model)

    def compare(self, model: Projectable) -> Fits:
        """Say how well a model, or other tables, meet these: worst first, with the worst cell.

        Beside each distance (total variation) stands what chance alone would make it, where the
        number of records is known. Cells that are not known are left out.

        Parameters
        ----------
        model : LowRankPMF, Records, Marginals
            Anything with ``marginal(names)``.

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.datasets.asia()
        >>> m = Marginals.count(p.sample(1000, random_state=0), subsets=[("smoke", "lung")])
        >>> m.compare(p)
        table        distance  by chance  worst cell           given   model
        smoke, lung  0.0140    0.0162     smoke=yes, lung=yes  0.0370  0.0500
        """
        return compare(self, model)

    def disagreements(self) -> list[Disagreement]:
        """List where tables differ on variables that they share, worst first.

        There is one entry for each set of variables that some two tables share: the two that
        are furthest apart on it, and the total variation distance of their shares.

        Examples
        --------
        >>> import warnings
        >>> tables = {("a", "b"): [[3, 1], [3, 1]], ("b", "c"): [[1, 1], [1, 1]]}
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")  # the remark that names the worst
        ...     m = Marginals.from_tables(tables)
        >>> m.disagreements()
        [Disagreement(first=('a', 'b'), second=('b', 'c'), shared=('b',), distance=0.25)]
        """
        return disagreements(self)

    def _mean(self, name: str) -> float | None:
        """Mean of a variable from its best table; None where there is none."""
        n = self.domain.index(name)
        if not any(n in s for s in self.index_subsets):
            return None
        return float(self.marginal([name]) @ self.domain[n].numeric)
