"""Marginals: small tables of many subsets of variables, which add up over records."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray, sum_to
from rejoint.domain.domain import Domain
from rejoint.domain.labels import Level
from rejoint.domain.variable import Kind
from rejoint.kernels import table_sizes
from rejoint.marginals.align import check_covered, gather, read_base, read_tables
from rejoint.marginals.compare import (
    Disagreement,
    Fits,
    compare,
    disagreements,
    remark_on_disagreements,
)
from rejoint.marginals.count import add_tables, as_chunks, check_time, count_all, count_scan
from rejoint.marginals.folder import find_folder, read_folder, write_tables
from rejoint.marginals.labelled_table import Names, names_of
from rejoint.marginals.moments import Moment, impossible_moment, read_moments
from rejoint.marginals.subsets import Subset, choose_subsets, indices_of
from rejoint.marginals.unknown import UnknownCells, fill_unknown
from rejoint.records.infer import Bins, NotApplicable
from rejoint.records.scan import Scan
from rejoint.records.survey_design import WeightArguments
from rejoint.text import format_number, plural

if TYPE_CHECKING:
    from rejoint.marginals.read.table_files import TableFiles


class Projectable(Protocol):
    """Anything with a domain and share tables: LowRankPMF, Records, Marginals."""

    @property
    def domain(self) -> Domain:
        """The variables."""
        ...

    def marginal(self, names: Any) -> FloatArray:
        """Share table of some variables, axes in the order asked."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Marginals:
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
        False where a table was given as shares, so that its number of records is not known; true
        by default.
    unknown : UnknownCells, optional
        Suppressed cells, their bounds, and known sums of them; ``flat`` has a first guess for
        them.
    noisy : bool
        Whether the tables are of a sample, or noise was added to them: a fit comes near to them,
        but does not meet them. Tables that :meth:`count` counts are.
    rounding : array, optional
        How far a number of each table may be from the true one, in the unit of the table, where
        numbers were rounded; zeros by default.

    Examples
    --------
    >>> rows = [{"smoke": "yes", "cough": "yes"}, {"smoke": "no", "cough": None}]
    >>> m = Marginals.count(rows, order=1)
    >>> m["smoke"], m.total("cough")
    (array([1., 1.]), 1.0)
    """

    domain: Domain
    index_subsets: tuple[Subset, ...]
    flat: FloatArray
    table_weight: FloatArray = None  # type: ignore[assignment]  # filled in below
    moments: tuple[Moment, ...] = ()
    counted: NDArray[np.bool_] = None  # type: ignore[assignment]
    unknown: UnknownCells | None = None
    noisy: bool = False
    rounding: FloatArray = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        number = len(self.index_subsets)
        exact = np.zeros(number) if self.rounding is None else self.rounding
        self._freeze("rounding", np.asarray(exact, dtype=np.float64))
        ones = np.ones(number) if self.table_weight is None else self.table_weight
        counted = np.ones(number, dtype=bool) if self.counted is None else self.counted
        self._freeze("flat", np.asarray(self.flat, dtype=np.float64))
        self._freeze("table_weight", np.asarray(ones, dtype=np.float64))
        self._freeze("counted", np.asarray(counted, dtype=bool))
        cells = int(self.starts[-1])
        if self.flat.shape != (cells,):
            raise ValueError(
                f"There are {plural(cells, 'cell')} in {plural(number, 'table')}, but flat has "
                f"shape {self.flat.shape}."
            )

    def _freeze(self, field: str, array: NDArray[Any]) -> None:
        array = array.view()
        array.flags.writeable = False
        object.__setattr__(self, field, array)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each table starts in ``flat``, and the end."""
        sizes = table_sizes(self.domain.shape, self.index_subsets)
        return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])

    @cached_property
    def positions(self) -> dict[Subset, int]:
        """Position of the table of each subset of indices."""
        return {subset: i for i, subset in enumerate(self.index_subsets)}

    @cached_property
    def subsets(self) -> tuple[Names, ...]:
        """The names of the variables of each table.

        Examples
        --------
        >>> Marginals(Domain.of({"b": 2, "a": 2}), ((0, 1), (0,)), [1, 2, 3, 4, 3, 7]).subsets
        (('b', 'a'), ('b',))
        """
        names = self.domain.names
        return tuple(tuple(names[n] for n in s) for s in self.index_subsets)

    @cached_property
    def totals(self) -> FloatArray:
        """The number of records (or their weight) behind each table; 1 for shares.

        Examples
        --------
        >>> Marginals(Domain.of({"a": 2, "b": 2}), ((0,), (1,)), [3, 7, 0.5, 0.5]).totals
        array([10.,  1.])
        """
        totals = np.add.reduceat(self.flat, self.starts[:-1]) if len(self) else np.empty(0)
        totals.flags.writeable = False
        return totals

    def __len__(self) -> int:
        """Return the number of tables."""
        return len(self.index_subsets)

    def __iter__(self) -> Iterator[Names]:
        """Iterate over the subsets, as tuples of names."""
        return iter(self.subsets)

    def __contains__(self, names: Any) -> bool:
        """Return whether there is a table of exactly these variables, in any order."""
        known = all(n in self.domain for n in names_of(names))
        return known and tuple(sorted(self.domain.indices(names_of(names)))) in self.positions

    def __getitem__(self, names: str | Names) -> FloatArray:
        """Return the counts of one table, axes in the order asked."""
        asked = names_of(names)
        table = self.counts_of(self._find(asked))
        return _in_order(table, self.domain.indices(asked))

    def __repr__(self) -> str:
        orders = sorted({len(s) for s in self.index_subsets})
        words = plural(len(self), "table")
        words += f" of order {', '.join(map(str, orders))}" if orders else ""
        more = f", {plural(len(self.moments), 'moment')}" if self.moments else ""
        if len(self) and self.counted.any():
            totals = self.totals[self.counted]
            about = "" if self.unknown is None else "about "
            totals = totals.round() if about else totals
            low, high = (format_number(float(f(totals))) for f in (np.min, np.max))
            noun = "record" if low == high == "1" else "records"
            more += f", {about}{low if low == high else f'{low} to {high}'} {noun} each"
        if self.unknown is not None:
            more += f", {plural(len(self.unknown), 'cell')} not known"
        return f"{type(self).__name__}({words} over {plural(len(self.domain), 'variable')}{more})"

    def counts_of(self, i: int) -> FloatArray:
        """Return the i-th table as it is, axes in index order.

        Examples
        --------
        >>> Marginals(Domain.of({"a": 2, "b": 2}), ((0, 1),), [1, 2, 3, 4]).counts_of(0)
        array([[1., 2.],
               [3., 4.]])
        """
        shape = [self.domain.shape[n] for n in self.index_subsets[i]]
        return self.flat[self.starts[i] : self.starts[i + 1]].reshape(shape)

    def unknown_of(self, i: int) -> UnknownCells | None:
        """Return the unknown cells of the i-th table, None if all cells are known.

        Examples
        --------
        >>> Marginals(Domain.of({"a": 2}), ((0,),), [1, 2]).unknown_of(0) is None
        True
        """
        if self.unknown is None:
            return None
        return self.unknown.between(int(self.starts[i]), int(self.starts[i + 1]))

    def _find(self, asked: Names) -> int:
        subset = indices_of(self.domain, asked)
        if subset not in self.positions:
            larger = [s for s in self.subsets if set(asked) < set(s)]
            way = (
                f"marginal({list(asked)}) sums {larger[0]} down to it."
                if larger
                else "count or give it, or fit a model, which has every table."
            )
            raise KeyError(f"There is no table of {asked} among the {len(self)}: {way}")
        return self.positions[subset]

    def total(self, *names: str) -> float:
        """Return the number of records (or their weight) behind a table; 1 for shares.

        Examples
        --------
        >>> Marginals(Domain.of({"a": 2, "b": 2}), ((0, 1),), [1, 2, 3, 4]).total("a", "b")
        10.0
        """
        return float(self.totals[self._find(names_of(names))])

    def shares(self, i: int) -> FloatArray:
        """Return the i-th table scaled to add up to one, axes in index order.

        A table without records has no shares: all zeros.

        Examples
        --------
        >>> Marginals(Domain.of({"a": 2}), ((0,),), [1, 3]).shares(0)
        array([0.25, 0.75])
        """
        total = self.totals[i]
        return self.counts_of(i) / (total if total > 0 else 1.0)

    def marginal(self, names: str | Sequence[str]) -> FloatArray:
        """Return the share table of some variables, axes in the order asked.

        It is summed from the table with the most records among those that contain all of these
        variables; tables of shares, whose number of records is not known, come last.

        Examples
        --------
        >>> Marginals(Domain.of({"a": 2, "b": 2}), ((0, 1),), [1, 2, 3, 4]).marginal(["b"])
        array([0.4, 0.6])
        """
        asked = names_of(names)
        subset = indices_of(self.domain, asked)
        holders = [i for i, s in enumerate(self.index_subsets) if set(subset) <= set(s)]
        best = max(holders, key=lambda i: (self.counted[i], self.totals[i]), default=None)
        if best is None or self.totals[best] == 0:
            raise ValueError(
                f"No table with records holds {asked} together: count or give one, or fit a "
                "model, which has every table."
            )
        # Sums of whole numbers are exact, so the division comes last.
        counts = sum_to(self.counts_of(best), self.index_subsets[best], subset)
        share = counts / self.totals[best]
        return _in_order(share, self.domain.indices(asked))

    @classmethod
    def count(
        cls,
        data: Any,
        order: int | Sequence[int] | None = None,
        *,
        subsets: Sequence[str | Sequence[str]] | None = None,
        sample: int | None = None,
        domain: Domain | None = None,
        kinds: Mapping[Any, Kind] | None = None,
        levels: Mapping[Any, Sequence[Level]] | None = None,
        bins: Bins = None,
        not_applicable: NotApplicable = "auto",
        missing_level: Sequence[Any] = (),
        sample_weight: Any = None,
        survey_weight: Any = None,
        strata: Any = None,
        clusters: Any = None,
        memory_limit: float | None = None,
        threads: int | None = None,
        random_state: int | np.random.Generator | None = None,
        progress: bool | None = None,
    ) -> "Marginals":
        """Count records into tables; each table uses the records that have all of its variables.

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
            Count this many random subsets of ``order``, which cover every variable and as many
            pairs of variables as possible.
        domain : Domain, optional
            Variables and levels, where the data should not define them.
        kinds, levels, bins, not_applicable, missing_level
            What is declared about columns; see :meth:`Records.of`.
        sample_weight : array or name of a column, optional
            How many times each record counts.
        survey_weight, strata, clusters : array or name of a column, optional
            Those of a survey; see :meth:`Records.of`. Tables then count effective records.
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
        weights = WeightArguments(sample_weight, survey_weight, strata, clusters)
        if isinstance(data, Scan):
            declared_any = any(given is not None for given in (domain, kinds, levels, bins))
            declared_any |= not_applicable not in ("auto", False) or bool(missing_level)
            if declared_any or weights.given:
                raise ValueError("A Scan has its domain and weights: give them to scan(...).")
            chosen = choose_subsets(data.domain, order, subsets, sample, memory_limit, random_state)
            return cls(data.domain, chosen, count_scan(data, chosen, threads, progress), noisy=True)
        declared: dict[str, Any] = {"kinds": kinds, "levels": levels, "bins": bins}
        declared |= {"not_applicable": not_applicable, "missing_level": missing_level}
        chunks = as_chunks(data, domain, weights, **declared)
        first = next(chunks)
        chosen = choose_subsets(first.domain, order, subsets, sample, memory_limit, random_state)
        if not isinstance(data, Iterator):
            check_time(len(first), len(chosen))
        flat = count_all(chain([first], chunks), chosen, threads)
        return cls(first.domain, chosen, flat, noisy=True)

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
        impossible: Sequence[Mapping[str, Any]] = (),
        rounded: float | str | None = None,
        noisy: bool = False,
    ) -> "Marginals":
        """Make marginals from given tables: published, counted by a database, or exact.

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
            this option they are an error.
        impossible : sequence of mappings, optional
            Combinations of levels that nobody has: ``[{"age": "0-14", "work": "employed"}]``, with
            one level or a list of levels for each variable. They have probability zero in every
            fit.
        rounded : number or str, optional
            Counts were rounded to multiples of this number, up or down at random, so that they are
            less than it away from the true ones; ``"nearest 5"``: to the nearest multiple.
        noisy : bool
            Whether the tables are of a sample, or noise was added (differential privacy), so that
            cells may be negative. A fit then comes near to the tables, but does not meet them;
            negative cells are kept as they are, because truncation is not unbiased.

        Examples
        --------
        >>> m = Marginals.from_tables({("a", "b"): [[10, 20], [30, 40]], ("b",): [0.4, 0.6]})
        >>> m.totals, m["b", "a"]
        (array([100.,   1.]), array([[10., 30.],
               [20., 40.]]))
        """
        parts = read_tables(tables, domain, kind, suppressed, table_weight, noisy=noisy)
        made = cls(**parts, noisy=noisy)
        made = replace(made, rounding=read_rounding(made, rounded))
        if moments:
            found = read_moments(moments, made.domain, central=central, table_mean=made._mean)
            made = replace(made, moments=found)
        made = made.excluding(impossible)
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
        """Compute the exact tables of any object with ``domain`` and ``marginal(names)``.

        Parameters
        ----------
        pmf : LowRankPMF, or any object with a domain and a method ``marginal``
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

    @classmethod
    def read(
        cls,
        paths: Any,
        *,
        domain: Domain | None = None,
        table_weight: Mapping[Any, float] | float | None = None,
        form: Literal["long", "cross"] | None = None,
        table: int | None = None,
        sheet: str | None = None,
        skip: int | str | Sequence[str] | None = None,
        header_rows: int | None = None,
        label_columns: int | None = None,
        value: str | None = None,
        where: Mapping[str, str | Sequence[str]] | None = None,
        drop: str | Sequence[str] = (),
        totals: str | Sequence[str] | None = None,
        kind: Literal["counts", "shares", "percent"] | None = None,
        per: str | Sequence[str] | None = None,
        names: Sequence[str] | Mapping[str, str] | None = None,
        missing: Mapping[str, Any] | None = None,
        decimal: Literal[".", ","] | None = None,
        same: Mapping[str, str] | None = None,
        collapse: Mapping[str, Mapping[str, Any]] | None = None,
        impossible: Sequence[Mapping[str, Any]] = (),
        rounded: float | str | None = None,
        noisy: bool = False,
        delimiter: str | None = None,
        encoding: str | None = None,
    ) -> "Marginals":
        r"""Read published tables: files as they were downloaded, a folder or an archive of them.

        A folder that :meth:`write` wrote is read exactly; so are PC-Axis, JSON-stat, SDMX-CSV and
        TSV of Eurostat. Other text files and workbooks are read in one of two forms: *long*, a
        column of numbers beside columns of labels, or *cross*, header rows by label columns. What
        a file does not say is proposed. A proposal that explains every number is used; else the
        error prints it as text for ``tables.toml``, with what is open marked, which lies beside the
        files and says the same as these options.

        Parameters
        ----------
        paths : path, or sequence of paths
            A folder, a .zip, or files; ``-`` is standard input. gzip is unpacked.
        domain, table_weight, rounded, noisy, impossible
            As for :meth:`from_tables`.
        form : {"long", "cross"}, optional
            The form of a text file or sheet.
        table : int, optional
            Which data set of a file that has several, from 1.
        sheet : str, optional
            The sheet of a workbook, by name or number.
        skip : int, or sequence of str, optional
            That many lines at the top, or lines such as ``["1-4", "40-"]``, to leave out.
        header_rows, label_columns : int, optional
            Rows of labels above the numbers, and columns of labels beside them.
        value : str, optional
            The column of the numbers.
        where : mapping of str to labels, optional
            Labels to keep; a variable of which one is kept is no variable any more.
        drop : sequence of str
            Columns, by their header, and labels to leave out.
        totals : sequence of str, optional
            Labels that are totals of others; "none" if none is.
        kind : {"counts", "shares", "percent"}, optional
            What the numbers are.
        per : sequence of str, optional
            Variables within whose levels percentages add up to 100. They are multiplied by the
            shares of these variables, which another table must have.
        names : sequence of str, or mapping of str to str, optional
            Names of the variables in order, or new names for those of the file.
        missing : mapping of str to what it means, optional
            What a mark in place of a number means: ``{"-": 0, "x": "unknown", "--": "1..9"}``.
            ``""`` is an empty cell and, in the long form, a combination without a row.
        decimal : {".", ","}, optional
            The decimal mark; by default what the numbers show.
        same : mapping of str to str, optional
            Variables or levels that are the same: ``{"Men": "Male"}`` writes Male for Men.
        collapse : mapping, optional
            Coarser levels: ``{"Age": {"0-17": ["0-4", "5-17"]}}``; a number in place of the list
            stands for all levels whose sum is below it.
        delimiter, encoding : str, optional
            Of text files; guessed where not given.

        Examples
        --------
        >>> import pathlib, rejoint as rj, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "t.csv")
        ...     text = "smoke \\ age,young,old,Total\nyes,30,<5,33\nno,20,40,60\n"
        ...     _ = path.write_text(text)
        ...     m = rj.Marginals.read(folder)
        >>> m
        Marginals(1 table of order 2 over 2 variables, about 93 records each, 1 cell not known)
        >>> m["smoke", "age"]
        array([[30.,  3.],
               [20., 40.]])
        """
        options = {key: value for key, value in locals().items() if key not in ("cls", "paths")}
        # The reader of published files is a large part of its own: loaded where files are read.
        from rejoint.marginals.read.table_files import read_files

        written = find_folder(paths)
        if written is not None:
            return cls(**read_folder(written))
        weight = options.pop("table_weight")
        return of_files(read_files(paths, **options), domain=domain, table_weight=weight)

    def write(self, folder: str | PathLike[str]) -> None:
        """Write the tables to a folder of CSV files; :meth:`read` gives them back exactly.

        The folder is written completely or not at all. A folder with other files is not changed.

        Parameters
        ----------
        folder : path
            A new or empty folder, or one that was written before, which is replaced.

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

    def __add__(self, other: object) -> "Marginals":
        """Add the counts of tables that both have, and keep those that only one has."""
        if not isinstance(other, Marginals):
            return NotImplemented
        return add_tables(self, other)

    def filled(self, model: Projectable) -> "Marginals":
        """Fill the unknown cells with the expectations of a model, within their bounds.

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
        """Compare the tables with those of a model, or with other tables: worst first.

        Each table has its distance (total variation), the average distance by chance alone where
        the number of records is known, and the worst cell. Unknown cells are left out.

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
        """List the tables that differ on their common variables, worst first.

        There is one entry for each set of variables that two tables have in common: the two tables
        that are furthest apart on it, and the total variation distance of their shares.

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

    def excluding(self, impossible: Sequence[Mapping[str, Any]]) -> "Marginals":
        """Return the tables with combinations of levels that nobody has.

        Examples
        --------
        >>> m = Marginals.from_tables({"a": {"x": 3, "y": 1}, "b": {"u": 2, "v": 2}})
        >>> m.excluding([{"a": "y", "b": "v"}]).moments[0].label
        'a=y, b=v: impossible'
        """
        if isinstance(impossible, Mapping):
            impossible = [impossible]
        added = tuple(impossible_moment(self, levels) for levels in impossible)
        return replace(self, moments=(*self.moments, *added)) if added else self

    def _mean(self, name: str) -> float | None:
        """Return the mean of a variable from its best table; None where there is none."""
        n = self.domain.index(name)
        if not any(n in s for s in self.index_subsets):
            return None
        return self.domain[n].mean(self.marginal([name]))


def of_files(
    files: "TableFiles",
    *,
    domain: Domain | None = None,
    table_weight: Mapping[Any, float] | float | None = None,
) -> Marginals:
    """Align tables that were read from files."""
    parts = gather(files.tables, domain, weight=table_weight)
    made = Marginals(**parts, noisy=bool(files.shared.get("noisy")))
    rounding = np.maximum(made.rounding, read_rounding(made, files.shared.get("rounded")))
    made = replace(made, rounding=rounding).excluding(files.shared.get("impossible", ()))
    check_covered(made.domain, made.index_subsets)
    remark_on_disagreements(made)
    return made


def read_rounding(tables: Marginals, rounded: float | str | None) -> FloatArray:
    """Return how far each table may be from the true one, according to ``rounded``."""
    if rounded is None:
        return tables.rounding
    nearest = str(rounded).strip().lower().startswith("nearest")
    return np.where(tables.counted, read_base(rounded) / (2 if nearest else 1), 0.0)


def _in_order(table: FloatArray, asked: Sequence[int]) -> FloatArray:
    """Transpose a table with axes in index order to the requested order."""
    return table.transpose(np.argsort(np.argsort(asked)))
