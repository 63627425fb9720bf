"""Read delimited text into columns: codes into the distinct texts of each.

Where pyarrow is installed, it parses large files; every cell stays text. From the first fault on,
and where quotes do not stand around whole cells, the standard library reads the rest: its errors
name the line.
"""

import csv
import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain, islice
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.columns import Coded
from rejoint.domain.columns import numbers_of as numbers_of
from rejoint.messages import remark
from rejoint.records.files import Source, read_beginning, read_lines
from rejoint.records.frames import Frame, cut_tables
from rejoint.text import cite, plural, show

#: Delimiters to try, the most common first.
DELIMITERS = (",", ";", "\t", "|")

#: Rows of a block below which the standard library is faster than loading another parser.
FEWEST_ROWS = 1000

_ROWS = 50  # rows that the delimiter is guessed from

#: Characters of a cell; Python's own limit is 131,072. A quote that is not closed ends here.
MOST_CELL = 2**24

#: Bytes, and rows by the standard library, that are parsed at a time.
PIECE_BYTES, ROWS = 2**22, 2**14

#: Bytes of a file below which the standard library is faster than importing another parser.
LEAST_BYTES = 2**18


class UnusualText(ValueError):
    """The rest of the text must be read by the standard library."""


def read_csv_rows(
    lines: Iterable[str], delimiter: str = ",", *, strict: bool = False
) -> Iterator[list[str]]:
    """Return the rows of CSV, whose cells may be long."""
    csv.field_size_limit(max(csv.field_size_limit(), MOST_CELL))  # it is one for the process
    return csv.reader(lines, delimiter=delimiter, strict=strict)


@dataclass(frozen=True)
class Dialect:
    """Encoding, delimiter and comment mark of a text file."""

    encoding: str
    delimiter: str
    comment: str = ""


def find_dialect(
    source: Source, delimiter: str | None = None, encoding: str | None = None, comment: str = ""
) -> Dialect:
    """Return the dialect as given; guess the rest from the beginning of the file."""
    if delimiter is not None and len(delimiter) != 1:
        raise ValueError(f"delimiter must be a single character, got {cite(delimiter)}.")
    encoding, text, is_all = read_beginning(source, encoding)
    if delimiter is None:
        tabs = source.suffix in (".tsv", ".tab")
        delimiter = "\t" if tabs else _guess_delimiter(text, comment, is_all)
    return Dialect(encoding, delimiter, comment)


def _guess_delimiter(text: str, comment: str, is_all: bool) -> str:
    """Return the delimiter that splits most rows into as many cells as the first, at least two."""
    lines = text.splitlines(keepends=True)
    lines = lines if is_all or len(lines) < 2 else lines[:-1]
    best, score = DELIMITERS[0], (0.0, 0)
    for delimiter in DELIMITERS:
        try:
            rows = islice(read_csv_rows(_without(lines, comment), delimiter), _ROWS)
            sizes = [len(row) for row in rows if row]
        except csv.Error:
            continue
        if not sizes or max(sizes) < 2:
            continue
        common = max(set(sizes), key=sizes.count)
        found = (sizes.count(common) / len(sizes), common) if common > 1 else (0.0, 0)
        if found > score:
            best, score = delimiter, found
    return best


def _without(lines: Iterable[str], comment: str) -> Iterator[str]:
    return (line for line in lines if not (comment and line.lstrip().startswith(comment)))


def read_rows(source: Source, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Yield rows of cells as text, each with the number of its last line; skip blank lines."""
    seen = 0

    def counted() -> Iterator[str]:
        nonlocal seen
        for line in read_lines(source, dialect.encoding):
            seen += 1
            if not (dialect.comment and line.lstrip().startswith(dialect.comment)):
                yield line

    reader = read_csv_rows(counted(), dialect.delimiter, strict=True)
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            advice = "Quotes must come in pairs, around a whole cell, and be doubled inside it."
            raise ValueError(f"{source.name}, line {seen}: {error}. {advice}") from error
        if row is None:
            return
        if row and row != [""]:
            yield seen, row


def read_blocks(
    source: Source,
    dialect: Dialect,
    *,
    header: bool | Sequence[str],
    missing: Collection[str],
    wanted: Callable[[tuple[str, ...]], list[int]],
    size: int | None,
) -> Iterator[Frame]:
    """Yield blocks of ``size`` rows (None: all) of the wanted columns, all of them text.

    Blanks around a cell are ignored.
    """
    rows = read_rows(source, dialect)
    first = next(rows, None)
    if first is None:
        raise ValueError(f"{source.name} is empty: it has neither a header nor rows.")
    names, where = _names(source, first, header)
    picked = wanted(names)
    kept, count, done = tuple(names[at] for at in picked), size, 0
    try:
        if size is None or size >= FEWEST_ROWS:
            skip = first[0] if header is True else 0
            for columns in _read_by_pyarrow(source, dialect, len(names), picked, skip, size):
                if rows_read := len(columns[0]):
                    yield Frame(kept, [_strip(c, missing) for c in columns], rows_read)
                done += rows_read
            if done:
                return
    except ValueError:  # of pyarrow, of the encoding, of a corrupt gzip file
        pass
    rest = islice(rows if header is True else chain([first], rows), done, None)
    checked = _check_rows(source, dialect, rest, len(first[1]), where)
    while count == size:
        columns, count = _code_rows(checked, picked, size)
        if count or not done:
            yield Frame(kept, [_strip(column, missing) for column in columns], count)
        done += count


def _strip(column: Coded, missing: Collection[str]) -> Coded:
    """Return a column of text without blanks around its cells, -1 where they mean missing."""
    labels: dict[str, int] = {}
    places = []
    counts = np.bincount(column.codes, minlength=len(column.labels)).tolist()
    for cell, count in zip(map(str, column.labels), counts, strict=True):
        text = cell.strip()
        # Slices of a block have the texts of all of its rows.
        is_label = count and cell not in missing and text not in missing
        places.append(labels.setdefault(text, len(labels)) if is_label else -1)
    return Coded(tuple(labels), column.mapped(places), is_text=True)


def _check_rows(
    source: Source, dialect: Dialect, rows: Iterable[tuple[int, list[str]]], wide: int, where: str
) -> Iterator[list[str]]:
    """Yield the cells of rows; raise an error for a row that is shorter or longer."""
    for line, row in rows:
        if len(row) != wide:
            raise ValueError(
                f"{source.name}, line {line}: {plural(len(row), 'cell')}, but {where} has {wide}. "
                f"Quote cells that hold the delimiter ({cite(dialect.delimiter)}), or use "
                "delimiter=."
            )
        yield row


def _code_rows(
    rows: Iterator[list[str]], picked: Sequence[int], size: int | None
) -> tuple[list[Coded], int]:
    """Return the picked columns of at most ``size`` rows, and the number of rows."""
    places: list[dict[str, int]] = [{} for _ in picked]
    codes: list[list[NDArray[np.int32]]] = [[np.zeros(0, dtype=np.int32)] for _ in picked]
    count = 0
    while piece := list(islice(rows, ROWS if size is None else min(ROWS, size - count))):
        for place, parts, at in zip(places, codes, picked, strict=True):
            cells = [row[at] for row in piece]
            for cell in dict.fromkeys(cells):
                place.setdefault(cell, len(place))
            parts.append(np.fromiter(map(place.__getitem__, cells), np.int32, len(cells)))
        count += len(piece)
    pairs = zip(places, codes, strict=True)
    return [Coded(tuple(place), np.concatenate(parts)) for place, parts in pairs], count


class _CheckedText(io.RawIOBase):
    """A text in UTF-8; raises `UnusualText` for quotes that pyarrow reads in its own way."""

    def __init__(self, text: TextIO, delimiter: str, cells: int) -> None:
        self.text = text
        edge = re.escape(delimiter) + "\n\r"
        # Within a cell that is not quoted, or around a part of a cell; "" alone is a blank line.
        odd = f'[^{edge}"]"[^{edge}"]|[{edge}]""[^{edge}"]'
        self.odd = re.compile('"' if cells == 1 else odd)
        self.last, self.quotes = "\n", 0

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return at most ``size`` bytes: a character has four at most."""
        text = self.text.read(max(size // 4 - 1, 1))
        if text.endswith("\r"):  # pyarrow drops a line feed that begins its next piece
            text += self.text.read(1)
        piece = self.last + text
        self.quotes += text.count('"')
        if ('"' in piece and self.odd.search(piece)) or (not text and self.quotes % 2):
            raise UnusualText
        self.last = piece[-3:]
        return text.encode()


def _read_by_pyarrow(
    source: Source,
    dialect: Dialect,
    wide: int,
    picked: Sequence[int],
    skip: int,
    size: int | None,
) -> Iterator[list[Coded]]:
    """Yield the picked columns of blocks of rows, or raise ValueError."""
    mark = dialect.delimiter
    is_plain = mark == "\t" or (mark.isascii() and mark.isprintable() and mark != '"')
    if not has_parser() or not picked or not is_plain or dialect.comment:
        raise UnusualText
    with source.open() as file:
        if len(file.read(LEAST_BYTES)) < LEAST_BYTES:
            raise UnusualText
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    names = [str(n) for n in range(wide)]
    kept = [names[at] for at in picked]
    texts = dict.fromkeys(kept, pa.dictionary(pa.int32(), pa.string()))
    with source.open() as file, io.TextIOWrapper(file, dialect.encoding, newline="") as text:
        reader = arrow_csv.open_csv(
            _CheckedText(text, mark, wide),
            arrow_csv.ReadOptions(
                column_names=names, skip_rows=skip, block_size=PIECE_BYTES, use_threads=False
            ),
            arrow_csv.ParseOptions(delimiter=mark, newlines_in_values=True),
            arrow_csv.ConvertOptions(include_columns=kept, column_types=texts),
        )
        for table in cut_tables(reader, reader.schema, size):
            columns = [c.unify_dictionaries().combine_chunks() for c in table.columns]
            yield [Coded(tuple(c.dictionary.to_pylist()), np.asarray(c.indices)) for c in columns]


def has_parser() -> bool:
    """Whether a parser faster than the standard library is installed."""
    return find_spec("pyarrow") is not None


def _names(
    source: Source, first: tuple[int, list[str]], header: bool | Sequence[str]
) -> tuple[tuple[str, ...], str]:
    """Return the names of the columns, and what determines their number."""
    line, row = first
    where = f"the first row (line {line})"
    if header is True:
        names = distinct_names(row)
        given = [cell.strip() for cell in row]
        if changed := [name for name in names if name not in given]:
            remark(f"Columns of the same name are called {show(changed)}.")
        return names, f"the header (line {line})"
    if header is False:
        return tuple(f"x{n}" for n in range(len(row))), where
    names = tuple(map(str, header))
    if len(names) != len(row):
        count = f"{plural(len(row), 'column')} (line {line})"
        raise ValueError(f"{source.name}: {len(names)} names are given for {count}.")
    return names, where


def distinct_names(header: Sequence[str]) -> tuple[str, ...]:
    """Return the names in a header, each once: later ones that are the same get a number.

    Examples
    --------
    >>> distinct_names(["a", "b", " a"])
    ('a', 'b', 'a (2)')
    """
    names: dict[str, int] = {}
    for cell in header:
        name, count = cell.strip(), 1
        while name and name in names:
            count += 1
            name = f"{cell.strip()} ({count})"
        names[name or " " * len(names)] = count  # columns without a name are left out
    return tuple(name.strip() for name in names)


def check_names(source: Source, names: Sequence[str]) -> list[int]:
    """Return which columns have a name; skip those without."""
    nameless = ", ".join(str(at + 1) for at, name in enumerate(names) if not name)
    if nameless:
        left_out = "has no name and is left out (row numbers, perhaps)"
        remark(f"{source.name}: column {nameless} {left_out}.")
    return [at for at, name in enumerate(names) if name]
