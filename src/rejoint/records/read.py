"""Read files, folders, queries, Arrow streams and functions as records, at once or in parts.

What is larger than memory is read in passes: one finds variables and levels without keeping rows,
one where empty cells do not apply, one what survey weights are worth.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from glob import glob, has_magic
from os import PathLike, stat
from pathlib import Path
from typing import Any

import numpy as np

from rejoint.arrays import Codes
from rejoint.domain.columns import parse_numbers
from rejoint.domain.domain import Domain
from rejoint.domain.variable import HandleUnknown, check_handle_unknown
from rejoint.records.delimited import check_names, find_dialect, read_blocks
from rejoint.records.empty_cells import (
    MOST_ROWS,
    add_missing_levels,
    add_not_applicable,
    fill_empty,
    sample_rows,
)
from rejoint.records.encode import Discovered, Unmatched, encode_table, infer_domain
from rejoint.records.files import Source
from rejoint.records.formats import (
    DUCKDB,
    SUFFIXES,
    format_of,
    read_table_blocks,
    rows_of_parquet,
)
from rejoint.records.frames import Frame, cut_tables, take_apart
from rejoint.records.infer import ColumnSummary, Declarations, read_declarations
from rejoint.records.records import Records, as_frame, check_undeclared
from rejoint.records.scan import MEMORY, META, Scan, open_pack, rows_of_part
from rejoint.records.survey_design import (
    NO_WEIGHTS,
    DesignSums,
    RowWeights,
    SurveyDesign,
    WeightArguments,
)
from rejoint.text import cite, nearest, plural, show

#: What may be declared about columns where no domain is given.
DECLARED = ("kinds", "levels", "bins", "rule", "not_applicable", "missing_level")

#: Texts that mean a missing cell.
MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "#N/A")

#: Rows of a block; fewer where there are many columns.
CHUNK = 100_000


@dataclass(frozen=True)
class FileOptions:
    """How a file is formatted and which columns to read; see :func:`read`."""

    columns: Sequence[str] | None = None
    without: Sequence[str] = ()
    format: str | None = None
    header: bool | Sequence[str] = True
    delimiter: str | None = None
    encoding: str | None = None
    missing: Sequence[str] = MISSING

    def picked(self, source: Source, names: Sequence[str]) -> list[int]:
        """Return which columns to read, in the order of the file."""
        there = check_names(source, names)
        for name in (*(self.columns or ()), *self.without):
            if name not in names:
                there_are = f"it has {show(list(names))}.{nearest(name, names)}"
                raise KeyError(f"{source.name} has no column {cite(name)}; {there_are}")
        kept = names if self.columns is None else self.columns
        return [at for at in there if names[at] in kept and names[at] not in self.without]


def split_options(options: dict[str, Any]) -> tuple[FileOptions, dict[str, Any]]:
    """Return the options of the file, and those of the records."""
    own = FileOptions.__dataclass_fields__
    for key in options:
        if key not in own and key not in (*DECLARED, "domain", "handle_unknown"):
            near = nearest(key, [*own, "domain", "bins"])
            raise TypeError(f"There is no option {cite(key)}.{near}")
    rest = {key: value for key, value in options.items() if key not in own}
    return FileOptions(**{key: options[key] for key in own if key in options}), rest


def split_scan_options(
    options: dict[str, Any], domain: Domain | None
) -> tuple[FileOptions, HandleUnknown, Declarations]:
    """Return the options of the file, what to do with unknown labels, and what is declared."""
    how, rest = split_options(options)
    handle_unknown = rest.pop("handle_unknown", "missing")
    check_handle_unknown(handle_unknown)
    if domain is not None:
        check_undeclared(**{key: value for key, value in rest.items() if key != "rule"})
    return how, handle_unknown, read_declarations(**rest)


def encode_part(
    frame: Frame, discovered: Discovered, weights: WeightArguments, unmatched: Unmatched
) -> tuple[Records, RowWeights]:
    """Return the records of the next part, not weighted yet, and the weights of its rows.

    Columns and labels that the domain lacks are collected.
    """
    frame, rows = weights.split(frame, unmatched.rows)
    codes = encode_table(frame.without(discovered.left_out), discovered.domain, unmatched)
    return Records._trusted(discovered.domain, codes), rows


@dataclass
class PartReader:
    """Read the parts of a source as records, in one or more passes, with one report on all parts.

    Parameters
    ----------
    parts : callable
        Starts a pass over the source.
    discovered : Discovered
        The domain, and columns to leave out.
    handle_unknown : {"missing", "error"}
    weights : WeightArguments
        The columns with the weights.
    is_reported : bool
        Whether a pass has ended: columns and labels that the domain does not have are then
        remarked on.
    design : SurveyDesign, optional
        What survey weights are worth, once `measure` has made its pass.
    """

    parts: Callable[[], Iterable[Frame | Records]]
    discovered: Discovered
    handle_unknown: HandleUnknown = "missing"
    weights: WeightArguments = NO_WEIGHTS
    is_reported: bool = False
    design: SurveyDesign | None = None

    def read(self) -> Iterator[Records]:
        """Make one pass."""
        for records, rows in self._pass():
            if rows is None:
                yield records
            elif self.design is None:
                yield Records._trusted(records.domain, records.codes, rows.copies)
            else:
                weight, keys = self.design.scale(rows.raw), rows.cluster_keys
                yield Records._trusted(records.domain, records.codes, weight, cluster_keys=keys)

    def measure(self) -> SurveyDesign | None:
        """Make a pass that measures survey weights; none without them."""
        if not self.weights.is_survey:
            return None
        sums = DesignSums(self.discovered.domain.shape)
        for records, rows in self._pass():
            if rows is None:
                raise ValueError(
                    "The parts are Records, which have weights of their own: give their survey "
                    "weights to Records.of, or frames to scan."
                )
            sums.add(records.codes, rows)
        self.design = sums.design()
        return self.design

    def _pass(self) -> Iterator[tuple[Records, RowWeights | None]]:
        """Yield each part and the weights of its rows, None if the part is weighted already."""
        domain, unmatched = self.discovered.domain, Unmatched()
        for part in self.parts():
            rows: RowWeights | None = None
            if isinstance(part, Frame):
                records, rows = encode_part(part, self.discovered, self.weights, unmatched)
            elif part.domain == domain:
                records, unmatched.rows = part, unmatched.rows + len(part)
            else:
                codes = encode_table(as_frame(part), domain, unmatched)
                records = Records._trusted(domain, codes, part.sample_weight)
            if unmatched.labels and self.handle_unknown == "error":
                unmatched.report(domain, self.handle_unknown)
            yield records, rows
        if not self.is_reported:
            unmatched.report(domain, self.handle_unknown)
            self.is_reported = True


def file_frames(
    source: Source, how: FileOptions, size: int | None, weights: WeightArguments = NO_WEIGHTS
) -> Iterator[Frame]:
    """Yield blocks of the file as frames of the selected columns, with those of the weights."""
    if how.columns is not None:
        how = replace(how, columns=[*how.columns, *weights.columns])
    kind, picked = format_of(source, how.format), partial(how.picked, source)
    if kind == "text":
        dialect = find_dialect(source, how.delimiter, how.encoding)
        if isinstance(how.missing, str):
            raise TypeError(f"missing must be a list of texts, not the text {cite(how.missing)}.")
        options: Any = {"header": how.header, "missing": frozenset(how.missing), "size": size}
        yield from read_blocks(source, dialect, wanted=picked, **options)
        return
    for block in read_table_blocks(source, kind, size, picked, how.encoding):
        frame = take_apart(block)
        names = frame.names or ()
        # Of a Parquet file only these columns were read.
        places = range(len(names)) if kind == "parquet" else picked(names)
        kept = tuple(names[at] for at in places)
        yield Frame(kept, [frame.columns[at] for at in places], frame.rows)


Summaries = dict[str, ColumnSummary]


def discover(
    frames: Callable[[], Iterator[Frame]],
    weights: WeightArguments,
    declarations: Declarations,
    source: str = "The source",
) -> Discovered:
    """Find the domain of frames, which can be read again; keep distinct values, and not rows."""
    parts = [summarize_frames(frames(), weights)]
    discovered = find_domain_of_summaries(parts, source, declarations)
    return find_empty_levels(
        discovered, lambda: sample_parts(frames(), discovered, weights), declarations
    )


def sample_parts(
    frames: Iterable[Frame], discovered: Discovered, weights: WeightArguments
) -> Iterator[Codes]:
    """Yield codes of each part: of all rows, or of a sample."""
    for frame in frames:
        if frame.rows:
            yield sample_rows(encode_part(frame, discovered, weights, Unmatched())[0].codes)


def find_empty_levels(
    discovered: Discovered, parts: Callable[[], Iterable[Codes]], declarations: Declarations
) -> Discovered:
    """Add the levels of empty cells, which takes a pass over the source if cells are missing."""
    domain = add_missing_levels(discovered.domain, declarations.missing_level)
    if discovered.has_missing and declarations.not_applicable is not False:
        codes: Codes = np.zeros((0, len(domain)), dtype=np.int8)
        rows = 0
        for part in parts():
            # A part counts by its share of the rows so far.
            rows += len(part)
            kept = round(MOST_ROWS * (1 - len(part) / rows)) if rows > MOST_ROWS else len(codes)
            codes = np.vstack([sample_rows(codes, kept), sample_rows(part, MOST_ROWS - kept)])
        domain = add_not_applicable(domain, fill_empty(domain, codes), declarations)
    return discovered._replace(domain=domain)


def summarize_frames(frames: Iterable[Frame], weights: WeightArguments) -> Summaries:
    """Summarize the columns of some frames, to be combined with other summaries."""
    summaries: Summaries = {}
    before = 0
    for frame in frames:
        if not frame.rows:
            continue
        before, (frame, rows) = before + frame.rows, weights.split(frame, before)
        for name, raw in zip(frame.all_names, frame.columns, strict=True):
            one = ColumnSummary(name, has_name=frame.names is not None)
            summaries.setdefault(name, one).read(raw, *rows.cells, is_last=False)
    return summaries


def block_size(source: Source, how: FileOptions) -> int:
    """Return the number of rows of a file that are read at a time."""
    if format_of(source, how.format) == "duckdb":  # the query would have to run once more
        return CHUNK
    with closing(file_frames(source, how, 1)) as frames:  # type: ignore[type-var]  # a generator
        return rows_of_part(len(next(frames).columns))


def find_domain_of_summaries(
    parts: Iterable[Summaries], source: str, declarations: Declarations
) -> Discovered:
    """Return the domain of all summaries, in the order of the parts."""
    total: Summaries = {}
    for part in parts:
        for name, summary in part.items():
            if name in total:
                total[name].join(summary)
            else:
                total[name] = summary
    if not total:
        raise ValueError(f"{source} has no rows: levels cannot be seen; give a domain.")
    return infer_domain(total, declarations)


def read(
    path: str | PathLike[str],
    *,
    sample_weight: Any = None,
    survey_weight: Any = None,
    strata: Any = None,
    clusters: Any = None,
    **options: Any,
) -> Records:
    r"""Read records from a file.

    Parameters
    ----------
    path : str or path
        CSV, TSV or other delimited text, Parquet, Arrow (Feather), JSON lines; gzip is unpacked;
        ``-`` is standard input. ``duckdb:SELECT ...`` and ``duckdb:file.db?SELECT ...`` are the
        rows of a query.
    sample_weight : str or array, optional
        The column with the weights, or the weights: how many times each record counts.
    survey_weight, strata, clusters : str or array, optional
        Columns (or values) of a survey design; see :meth:`Records.of`.
    **options
        Of the file: ``columns`` (those to read) and ``without`` (those to leave out); ``format``
        ("text", "parquet", "arrow", "json"), where the name does not say it; and for text
        ``header`` (False, or a list of names, where there is none), ``delimiter``, ``encoding``
        (both guessed), ``missing`` (the texts of missing cells, by default those of
        ``rejoint.records.MISSING``). Of the records: ``domain``, ``kinds``, ``levels``, ``bins``,
        ``not_applicable``, ``missing_level``, ``handle_unknown``, as for :meth:`Records.of`.

    Returns
    -------
    Records

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "people.csv")
    ...     _ = path.write_text("smoke;age\nyes;40\n?;50\nno;NA\n")
    ...     read(path)
    Records: 3 rows, 2 variables, 33 % of the cells missing
    smoke  age
    yes    40
    -      50
    no     -
    """
    how, rest = split_options(options)
    weights = WeightArguments(sample_weight, survey_weight, strata, clusters)
    frame = next(file_frames(Source(path), how, None, weights))
    return Records.of(frame, **weights.given, **rest)


def read_frame(
    path: str | PathLike[str], weights: WeightArguments = NO_WEIGHTS, **options: Any
) -> Frame:
    """Read the columns of a file, numbers as numbers, without making levels of them.

    Parameters
    ----------
    path, **options
        As for :func:`read`, the options of the file alone.
    weights : WeightArguments
        Its columns are in the frame.
    """
    how, _ = split_options(options)
    frame = next(file_frames(Source(path), how, None, weights))
    return frame._replace(columns=[parse_numbers(column) for column in frame.columns])


def read_chunks(
    path: str | PathLike[str],
    size: int = CHUNK,
    *,
    sample_weight: str | None = None,
    survey_weight: str | None = None,
    strata: str | None = None,
    clusters: str | None = None,
    **options: Any,
) -> Iterator[Records]:
    r"""Read records from a file in chunks of ``size`` rows, in bounded memory.

    Without a ``domain`` the file is read twice, first for its levels, and once more for each of:
    where empty cells do not apply, and survey weights. For data that are read more than once, use
    :func:`scan`.

    Parameters
    ----------
    path, **options
        As for :func:`read`.
    size : int
        Rows of a chunk.
    sample_weight, survey_weight, strata, clusters : str, optional
        Columns with the weights, as for :func:`read`.

    Yields
    ------
    Records
        All over the same domain.

    Examples
    --------
    >>> import pathlib, rejoint as rj, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "ab.csv")
    ...     _ = path.write_text("a,b\nx,1\ny,2\nx,2\n")
    ...     rj.Marginals.count(read_chunks(path, size=2), order=1)["a"]
    array([2., 1.])
    """
    if size < 1:
        raise ValueError(f"A chunk must have at least one row, not {size}.")
    weights = WeightArguments(sample_weight, survey_weight, strata, clusters)
    weights.check_named("A file in chunks")
    domain = options.pop("domain", None)
    yield from _scan_files([path], size, domain, weights, options).read()


def scan(
    source: Any,
    *,
    size: int | None = None,
    memory: int = MEMORY,
    domain: Domain | None = None,
    sample_weight: str | None = None,
    survey_weight: str | None = None,
    strata: str | None = None,
    clusters: str | None = None,
    **options: Any,
) -> Scan:
    r"""Read records part by part, in any number of passes, without keeping them in memory.

    Tables, likelihoods and EM need only sums over records, for which the source is read again.
    Without a ``domain`` it is read once at the beginning, for its levels, and where cells are
    missing once more, for where they do not apply. With survey weights it is read once more, for
    what they sum to.

    Parameters
    ----------
    source : path, list of paths, callable, or Arrow stream
        Files as for :func:`rejoint.read`, of any size: text, Parquet, Arrow, JSON lines,
        ``duckdb:`` queries; a folder or a pattern (``"data/*.parquet"``) is all of its files, in
        the order of their names. A function that gives an iterator of frames (or Records, lists
        of dicts, ...), which is called for each pass. Anything with ``__arrow_c_stream__`` that
        can be asked for its stream more than once. A folder made by :meth:`Scan.pack`.
    size : int, optional
        Rows of a part; by default a part has at most four million cells.
    memory : int
        Bytes of records that a fit may keep. If all records fit, the fit is that of records in
        memory. Identical ones are merged for that, unless weights other than whole numbers tell
        them apart.
    domain : Domain, optional
        Variables and levels.
    sample_weight : str, optional
        The column with the weights: how many times each record counts.
    survey_weight, strata, clusters : str, optional
        Columns of a survey design; see :meth:`Records.of`. Sums of each cluster and level
        are held in memory.
    **options
        As for :func:`rejoint.read`.

    Returns
    -------
    Scan
        For ``Marginals.count`` and ``estimate``.

    Examples
    --------
    >>> import pathlib, rejoint as rj, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "1.csv").write_text("a,b\nx,1\ny,2\n")
    ...     _ = pathlib.Path(folder, "2.csv").write_text("a,b\nz,1\n")
    ...     data = rj.scan(f"{folder}/*.csv")
    ...     rj.Marginals.count(data, order=1)["a"]
    array([1., 1., 1.])
    """
    if isinstance(source, Scan):
        return source
    if size is not None and size < 1:
        raise ValueError(f"A part must have at least one row, not {size}.")
    weights = WeightArguments(sample_weight, survey_weight, strata, clusters)
    weights.check_named("A scan")
    name = str(source)
    if isinstance(source, str | PathLike):
        if Path(source).is_dir() and Path(source, META).is_file():
            return replace(open_pack(source, size), memory=memory)
        source = files_of(source)
    elif isinstance(source, list | tuple):
        name = plural(len(source), "file")
    if isinstance(source, list | tuple) and source and isinstance(source[0], str | PathLike):
        scanned = _scan_files(list(source), size, domain, weights, options)
        return replace(scanned, source=name, memory=memory)
    scanned = _scan_chunks(_chunks_of(source, size), domain, weights, options)
    if isinstance(source, Records):
        scanned = replace(scanned, quick=True, design=source.design)
    return replace(scanned, memory=memory)


def files_of(path: str | PathLike[str]) -> list[str]:
    """Return the file, or the files of a folder or a pattern, in the order of their names."""
    text = str(path)
    if text.startswith(DUCKDB) or text == "-":
        return [text]
    if Path(path).is_dir():
        inside = [p for p in Path(path).rglob("*") if p.is_file() and p.name[0] not in "._"]
        files = sorted(str(p) for p in inside if set(p.suffixes) & {*SUFFIXES})
    elif has_magic(text) and not Path(path).exists():
        files = sorted(glob(text))
    else:
        return [text]
    if not files:
        raise FileNotFoundError(f"There is no data file in '{path}'.")
    return files


def _scan_files(
    paths: list[Any],
    size: int | None,
    domain: Domain | None,
    weights: WeightArguments,
    options: dict[str, Any],
) -> Scan:
    how, handle_unknown, declarations = split_scan_options(options, domain)
    sources = [Source(path) for path in paths]

    def frames(rows: int) -> Iterator[Frame]:
        every = (frame for source in sources for frame in file_frames(source, how, rows, weights))
        return (frame for frame in every if frame.rows)

    if domain is not None:
        discovered = Discovered(domain)
    else:
        blocks = partial(frames, block_size(sources[0], how))
        discovered = discover(blocks, weights, declarations, sources[0].name)
    parts = partial(frames, size or rows_of_part(len(discovered.domain)))
    reader = PartReader(parts, discovered, handle_unknown, weights)
    kinds = {format_of(source, how.format) for source in sources}
    count = rows_of_parquet(sources) if kinds == {"parquet"} else None
    stamp = "; ".join(map(_stamp, sources))
    is_quick, design = kinds <= {"parquet", "arrow"}, reader.measure()
    return Scan(discovered.domain, reader.read, "", stamp, count, is_quick, design=design)


def _stamp(source: Source) -> str:
    try:
        file = stat(source.path)
    except (OSError, ValueError):  # a query
        return str(source.path)
    return f"{Path(source.path).name} {file.st_size} {file.st_mtime_ns}"


def _chunks_of(source: Any, size: int | None) -> Callable[[], Iterable[Any]]:
    """Return a function that starts a pass over chunks."""
    if isinstance(source, Iterator):
        raise TypeError(
            f"A {type(source).__name__} can be iterated only once: give a function that makes it "
            "again, scan(lambda: ...). (Marginals.count accepts it as it is, with domain=.)"
        )
    if isinstance(source, Records):
        return lambda: source.chunks(size or rows_of_part(len(source.domain)))
    if callable(source):
        given: Callable[[], Iterable[Any]] = source
        return given
    if hasattr(source, "__arrow_c_stream__"):
        return partial(_arrow_chunks, source, size)
    if isinstance(source, list | tuple) and source and not isinstance(source[0], dict):
        return lambda: source
    raise TypeError(
        "scan takes a path, a list of paths, a function that gives an iterator of chunks, or an "
        f"Arrow stream, not a {type(source).__name__}. For data in memory use Records.of."
    )


def _arrow_chunks(source: Any, size: int | None) -> Iterator[Any]:
    import pyarrow as pa

    try:
        reader = pa.RecordBatchReader.from_stream(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        what = f"the {type(source).__name__} as an Arrow stream ({error})"
        raise ValueError(f"scan cannot read {what}: for data in memory use Records.of.") from error
    yield from cut_tables(reader, reader.schema, size or rows_of_part(len(reader.schema)))


def _scan_chunks(
    chunks: Callable[[], Iterable[Any]],
    domain: Domain | None,
    weights: WeightArguments,
    options: dict[str, Any],
) -> Scan:
    how, handle_unknown, declarations = split_scan_options(options, domain)
    if how != FileOptions():
        no = "apply to files only: chunks are taken whole"
        raise TypeError(f"columns, without, format and so on {no}.")
    if domain is None:
        first = next(iter(chunks()), None)
        if first is None:
            raise ValueError("The function gives no chunks: there is nothing to learn from.")
        domain = first.domain if isinstance(first, Records) else None
    if domain is not None:
        discovered = Discovered(domain)
    else:
        discovered = discover(lambda: map(take_apart, chunks()), weights, declarations)
    reader = PartReader(partial(_parts_of, chunks), discovered, handle_unknown, weights)
    return Scan(discovered.domain, reader.read, design=reader.measure())


def _parts_of(chunks: Callable[[], Iterable[Any]]) -> Iterator[Frame | Records]:
    """The chunks that have rows."""
    for chunk in chunks():
        part = chunk if isinstance(chunk, Records) else take_apart(chunk)
        if len(part) if isinstance(part, Records) else part.rows:
            yield part
