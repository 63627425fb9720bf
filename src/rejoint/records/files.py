"""Records from files, whole or in chunks: delimited text, Parquet, Arrow, JSON lines, queries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np

from rejoint.domain import Domain, Variable
from rejoint.domain.labels import nearest, show
from rejoint.records.delimited import TextColumn, check_names, read_blocks, typed_columns
from rejoint.records.formats import format_of, read_table_blocks
from rejoint.records.frames import Frame, take_apart
from rejoint.records.inference import infer_variable
from rejoint.records.reading import report_inferred
from rejoint.records.records import Records
from rejoint.records.sources import Source
from rejoint.records.text import find_dialect
from rejoint.records.wishes import read_wishes

__all__ = ["MISSING", "FileOptions", "find_domain", "read", "read_chunks"]

#: Texts that are taken for a missing cell.
MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "#N/A")

_CHUNK = 100_000


@dataclass(frozen=True)
class FileOptions:
    """How a file is written and what of it is wanted; see :func:`read`."""

    columns: Sequence[str] | None = None
    without: Sequence[str] = ()
    format: str | None = None
    header: bool | Sequence[str] = True
    delimiter: str | None = None
    encoding: str | None = None
    missing: Sequence[str] = MISSING

    def picked(self, source: Source, names: Sequence[str]) -> list[int]:
        """Which columns are wanted, in the order of the file."""
        there = check_names(source, names)
        for name in (*(self.columns or ()), *self.without):
            if name not in names:
                raise KeyError(
                    f"{source.name} has no column {name!r}; it has {show(list(names))}."
                    + nearest(name, names)
                )
        return [
            at
            for at in there
            if (self.columns is None or names[at] in self.columns) and names[at] not in self.without
        ]


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
    how, rest = _split(options)
    frame = next(_frames(Source(path), how, None, rest.get("domain"), sample_weight))
    return _records(frame, rest, sample_weight)


def read_chunks(
    path: str | PathLike[str],
    size: int = _CHUNK,
    *,
    sample_weight: str | None = None,
    **options: Any,
) -> Iterator[Records]:
    r"""Read records from a file, so many rows at a time, in memory that does not grow with it.

    Without a ``domain`` the file is read twice, first for its levels; what is no text is then
    held whole the first time.

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
    how, rest = _split(options)
    source = Source(path)
    if rest.get("domain") is None:
        wishes = {key: rest.pop(key, None) for key in ("kinds", "levels", "bins")}
        rest["domain"] = _find_domain(source, how, sample_weight, **wishes)
    for frame in _frames(source, how, size, rest["domain"], sample_weight):
        yield _records(frame, rest, sample_weight)


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
    how, rest = _split(options)
    wishes = {key: rest.get(key) for key in ("kinds", "levels", "bins")}
    return _find_domain(Source(path), how, sample_weight, **wishes)


def _split(options: dict[str, Any]) -> tuple[FileOptions, dict[str, Any]]:
    """Options of the file, and those of the records."""
    own = FileOptions.__dataclass_fields__
    rest = {key: value for key, value in options.items() if key not in own}
    for key in rest:
        if key not in ("domain", "kinds", "levels", "bins", "handle_unknown"):
            raise TypeError(f"There is no option {key!r}." + nearest(key, [*own, "domain", "bins"]))
    return FileOptions(**{k: v for k, v in options.items() if k in own}), rest


def _records(frame: Frame, rest: dict[str, Any], sample_weight: Any) -> Records:
    weight = sample_weight
    if isinstance(sample_weight, str):
        frame, weight = _take_weight(frame, sample_weight)
    return Records.of(frame, sample_weight=weight, **rest)


def _take_weight(frame: Frame, name: str) -> tuple[Frame, Any]:
    """The frame without its column of weights, and these."""
    from rejoint.domain.columns import Numbers
    from rejoint.domain.series import read_column

    names = list(frame.names or ())
    if name not in names:
        raise KeyError(
            f"sample_weight: there is no column {name!r}; the columns are {show(names)}."
            + nearest(name, names)
        )
    at = names.index(name)
    column = read_column(frame.columns[at], name)
    if not isinstance(column, Numbers) or (column.missing is not None and column.missing.any()):
        raise ValueError(f"sample_weight: the column {name!r} must hold a number in every row.")
    left = [n for n in range(len(names)) if n != at]
    rest = Frame(tuple(names[n] for n in left), [frame.columns[n] for n in left], frame.rows)
    return rest, column.floats()


def _frames(
    source: Source, how: FileOptions, size: int | None, domain: Domain | None, weight: Any
) -> Iterator[Frame]:
    """Blocks of the file as frames of the columns that are wanted, and the weights."""
    if isinstance(weight, str) and how.columns is not None:
        how = replace(how, columns=[*how.columns, weight])
    kind = format_of(source, how.format)
    if kind == "text":
        for names, columns, rows in _text_blocks(source, how, size):
            yield typed_columns(names, columns, rows, domain)
        return
    for block in read_table_blocks(source, kind, size):
        frame = take_apart(block)
        names = frame.names or ()
        picked = how.picked(source, names)
        kept = tuple(names[at] for at in picked)
        yield Frame(kept, [frame.columns[at] for at in picked], frame.rows)


def _text_blocks(
    source: Source, how: FileOptions, size: int | None
) -> Iterator[tuple[tuple[str, ...], list[TextColumn], int]]:
    dialect = find_dialect(source, how.delimiter, how.encoding)
    if isinstance(how.missing, str):
        raise TypeError(f"missing must be a list of texts, not the text {how.missing!r}.")
    return read_blocks(
        source,
        dialect,
        header=how.header,
        missing=frozenset(how.missing),
        wanted=lambda names: how.picked(source, names),
        size=size,
    )


def _find_domain(source: Source, how: FileOptions, weight: str | None, **wishes: Any) -> Domain:
    """One pass that keeps distinct values and their counts, not rows."""
    wished = read_wishes(*(wishes.get(key) for key in ("kinds", "levels", "bins")))
    if format_of(source, how.format) != "text":
        whole = _records(next(_frames(source, how, None, None, weight)), wishes, weight)
        return whole.domain
    columns: list[TextColumn] = []
    names: tuple[str, ...] = ()
    counts: list[np.ndarray[Any, Any]] = []
    for block in _text_blocks(source, how, _CHUNK):
        names, columns, _ = block
        found = [np.bincount(c.take_codes() + 1, minlength=len(c.texts) + 1) for c in columns]
        before = counts or [np.zeros(0, dtype=np.int64)] * len(found)
        counts = [_added(old, new) for old, new in zip(before, found, strict=True)]
    if not any(count.any() for count in counts):
        raise ValueError(f"{source.name} has no rows: levels cannot be seen; give a domain.")
    variables: list[Variable] = []
    for name, column, count in zip(names, columns, counts, strict=True):
        if name == weight:
            continue
        # Each value twice if it comes more than once: enough to tell labels from identifiers.
        times = np.minimum(count[1:], 2)
        codes = np.repeat(np.arange(len(column.texts), dtype=np.int32), times)
        share = np.repeat(count[1:] / np.maximum(times, 1), times)
        column.codes = codes.tolist()
        frame = typed_columns([name], [column], len(codes), None)
        variables.append(infer_variable(name, frame.columns[0], wished.of(name), share))
    report_inferred({variable.name: variable for variable in variables}, wished)
    return Domain(tuple(variables))


def _added(one: Any, other: Any) -> Any:
    """Counts of values, where later blocks know more of them."""
    total = np.zeros(max(len(one), len(other)), dtype=np.int64)
    total[: len(one)] += one
    total[: len(other)] += other
    return total
