"""Read files, folders, queries, Arrow streams and functions as records, at once or in parts."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from glob import glob, has_magic
from os import PathLike, stat
from pathlib import Path
from typing import Any

from rejoint.domain.columns import parse_numbers
from rejoint.domain.domain import Domain
from rejoint.records.discover import (
    CHUNK,
    FileOptions,
    PartReader,
    file_frames,
    find_domain_of_files,
    find_domain_of_frames,
    split_options,
)
from rejoint.records.encode import Discovered
from rejoint.records.files import Source
from rejoint.records.formats import DUCKDB, SUFFIXES, format_of, rows_of_parquet
from rejoint.records.frames import Frame, cut_tables, take_apart
from rejoint.records.records import Records
from rejoint.records.scan import MEMORY, META, Scan, open_pack, rows_of_part
from rejoint.records.survey_design import NO_WEIGHTS, WeightArguments
from rejoint.text import plural


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
    how, rest, declarations = split_options(options)
    weights = WeightArguments(sample_weight, survey_weight, strata, clusters)
    frame = next(file_frames(Source(path), how, None, weights))
    return Records.of(frame, **weights.given, **rest, **declarations)


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
    how, _, _ = split_options(options)
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


def find_domain(
    path: str | PathLike[str], *, sample_weight: str | None = None, **options: Any
) -> Domain:
    r"""Find the variables and levels of a file without keeping its rows.

    Parameters
    ----------
    path, sample_weight, **options
        As for :func:`read`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "ab.csv")
    ...     _ = path.write_text("a,b\nx,1\ny,2\nx,2\n")
    ...     find_domain(path).shape
    (2, 2)
    """
    how, _, declarations = split_options(options)
    weights = WeightArguments(sample_weight)
    return find_domain_of_files([Source(path)], how, weights, declarations).domain


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
    how, rest, declarations = split_options(options)
    sources = [Source(path) for path in paths]
    if domain is not None:
        rest |= {"domain": domain, **declarations}
    else:
        rest |= find_domain_of_files(sources, how, weights, declarations).options
    rows = size or rows_of_part(len(rest["domain"]))

    def frames() -> Iterator[Frame]:
        every = (frame for source in sources for frame in file_frames(source, how, rows, weights))
        return (frame for frame in every if frame.rows)

    reader = PartReader(frames, rest, weights)
    kinds = {format_of(source, how.format) for source in sources}
    count = rows_of_parquet(sources) if kinds == {"parquet"} else None
    stamp = "; ".join(map(_stamp, sources))
    is_quick, design = kinds <= {"parquet", "arrow"}, reader.measure()
    return Scan(rest["domain"], reader.read, "", stamp, count, is_quick, design=design)


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
    how, rest, declarations = split_options(options)
    if how != FileOptions():
        no = "apply to files only: chunks are taken whole"
        raise TypeError(f"columns, without, format and so on {no}.")
    if domain is None:
        first = next(iter(chunks()), None)
        if first is None:
            raise ValueError("The function gives no chunks: there is nothing to learn from.")
        domain = first.domain if isinstance(first, Records) else None
    if domain is not None:
        found = Discovered(domain)
    else:
        found = find_domain_of_frames(lambda: map(take_apart, chunks()), weights, declarations)
    reader = PartReader(partial(_parts_of, chunks), rest | found.options, weights)
    return Scan(found.domain, reader.read, design=reader.measure())


def _parts_of(chunks: Callable[[], Iterable[Any]]) -> Iterator[Frame | Records]:
    """The chunks that have rows."""
    for chunk in chunks():
        part = chunk if isinstance(chunk, Records) else take_apart(chunk)
        if len(part) if isinstance(part, Records) else part.rows:
            yield part
