"""Records from files, whole or in chunks: delimited text, Parquet, Arrow, JSON lines, queries."""

from collections.abc import Iterator
from os import PathLike
from typing import Any

from rejoint.domain import Domain
from rejoint.records.blocks import MISSING, file_frames, records_of, split_options
from rejoint.records.finding import CHUNK, find_domain_of_files
from rejoint.records.records import Records
from rejoint.records.sources import Source

__all__ = ["MISSING", "find_domain", "read", "read_chunks"]


def read(path: str | PathLike[str], *, sample_weight: Any = None, **options: Any) -> Records:
    r"""Read records from a file.

    Parameters
    ----------
    path : str or path
        CSV, TSV or other delimited text, Parquet, Arrow (Feather), JSON lines; gzip is unpacked;
        ``-`` is standard input. ``duckdb:SELECT ...`` and ``duckdb:file.db?SELECT ...`` are the
        rows of a query.
    sample_weight : str or array, optional
        The column with the weights, or the weights.
    **options
        Of the file: ``columns`` (those to read) and ``without`` (those to leave out); ``format``
        ("text", "parquet", "arrow", "json"), where the name does not say it; and for text
        ``header`` (False, or a list of names, where there is none), ``delimiter``, ``encoding``
        (both guessed), ``missing`` (the texts of missing cells, by default those of
        ``rejoint.records.MISSING``). Of the records: ``domain``, ``kinds``, ``levels``, ``bins``,
        ``handle_unknown``, as for :meth:`Records.of`.

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
    frame = next(file_frames(Source(path), how, None, rest.get("domain"), sample_weight))
    return records_of(frame, rest, sample_weight)


def read_chunks(
    path: str | PathLike[str],
    size: int = CHUNK,
    *,
    sample_weight: str | None = None,
    **options: Any,
) -> Iterator[Records]:
    r"""Read records from a file, so many rows at a time, in memory that does not grow with it.

    Without a ``domain`` the file is read twice, first for its levels. :func:`scan` is the same for
    data that are gone through more than once.

    Parameters
    ----------
    path, **options
        As for :func:`read`.
    size : int
        Rows of a chunk.
    sample_weight : str, optional
        The column with the weights.

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
    how, rest = split_options(options)
    source = Source(path)
    if rest.get("domain") is None:
        wishes = {key: rest.pop(key, None) for key in ("kinds", "levels", "bins")}
        rest["domain"] = find_domain_of_files([source], how, sample_weight, wishes)
    for frame in file_frames(source, how, size, rest["domain"], sample_weight):
        yield records_of(frame, rest, sample_weight)


def find_domain(
    path: str | PathLike[str], *, sample_weight: str | None = None, **options: Any
) -> Domain:
    r"""Find the variables and levels of a file in one pass, without keeping its rows.

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
    how, rest = split_options(options)
    wishes = {key: rest.get(key) for key in ("kinds", "levels", "bins")}
    return find_domain_of_files([Source(path)], how, sample_weight, wishes)
