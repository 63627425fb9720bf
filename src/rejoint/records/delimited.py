"""Read delimited text into columns: codes of distinct texts, or numbers where all are numbers.

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
from typing import NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.columns import Column, column_of_distinct, numbers_if_all
from rejoint.domain.columns import numbers_of as numbers_of
from rejoint.domain.domain import Domain
from rejoint.domain.labels import Level
from rejoint.domain.variable import Variable
from rejoint.messages import Argument, Message, remark
from rejoint.records.files import Source, read_beginning, read_lines
from rejoint.records.frames import Frame
from rejoint.records.infer import MOST_DISTINCT
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


class CodedTexts(NamedTuple):
    """The distinct cells of a column, in order of first occurrence, and codes into them."""

    texts: list[str]
    codes: NDArray[np.int32]


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
            raise ValueError(
                f"{source.name}, line {seen}: {error}. Quotes must come in pairs, around a "
                "whole cell, and be doubled inside it."
            ) from error
        if row is None:
            return
        if row and row != [""]:
            yield seen, row


class TextColumn:
    """Cells of one column as they are read: each distinct text once, and codes into them.

    Blanks around a cell are ignored.
    """

    def __init__(self, missing: Collection[str]) -> None:
        self.missing = missing
        self.known: dict[str, int] = dict.fromkeys(missing, -1)
        self.texts: list[str] = []
        self.parts: list[NDArray[np.int32]] = []  # codes

    def add(self, cells: CodedTexts) -> None:
        """Add cells."""
        table = np.array([self._code_of(text) for text in cells.texts], dtype=np.int32)
        self.parts.append(table[cells.codes])

    def _code_of(self, cell: str) -> int:
        if cell not in self.known:
            text = cell.strip()
            if text not in self.known:
                self.known[text] = len(self.texts)
                self.texts.append(text)
            self.known[cell] = self.known[text]
        return self.known[cell]

    def take_codes(self) -> NDArray[np.int32]:
        """Return the codes so far and reset them; keep the distinct texts."""
        codes = np.concatenate([np.zeros(0, dtype=np.int32), *self.parts])
        self.parts = []
        return codes

    def forget(self, most: int) -> None:
        """Drop the texts if there are more than ``most``: these are distinct numbers."""
        if len(self.known) > most:
            self.known = dict.fromkeys(self.missing, -1)
            self.texts = []


def read_blocks(
    source: Source,
    dialect: Dialect,
    *,
    header: bool | Sequence[str],
    missing: Collection[str],
    wanted: Callable[[tuple[str, ...]], list[int]],
    size: int | None,
) -> Iterator[tuple[tuple[str, ...], list[TextColumn], int]]:
    """Yield names, columns and number of rows of each block of at most ``size`` rows (None: all).

    Columns collect their texts over all blocks while these are levels; the codes are those of
    the block.
    """
    rows = read_rows(source, dialect)
    first = next(rows, None)
    if first is None:
        raise ValueError(f"{source.name} is empty: it has neither a header nor rows.")
    names, wide, where = _names(source, first, header)
    picked = wanted(names)
    columns = [TextColumn(missing) for _ in picked]
    if header is not True:
        rows = chain([first], rows)

    def batches() -> Iterator[list[CodedTexts]]:
        """Read with pyarrow as long as it reads what the standard library does."""
        done = 0
        try:
            if size is None or size >= FEWEST_ROWS:
                skip = first[0] if header is True else 0
                for batch in _read_by_pyarrow(source, dialect, wide, picked, skip, size):
                    done += len(batch[0].codes)
                    yield batch
                return
        except ValueError:  # of pyarrow, of the encoding, of a corrupt gzip file
            pass
        checked = _checked(source, dialect, islice(rows, done, None), wide, where)
        room = size and size - done % size
        while block := list(islice(checked, min(room or ROWS, ROWS))):
            room = room and (room - len(block) or size)
            yield [_code(row[at] for row in block) for at in picked] or [
                _code(row[0] for row in block)
            ]

    kept = tuple(names[at] for at in picked)
    count = total = 0
    for batch in batches():
        for column, cells in zip(columns, batch, strict=bool(picked)):
            column.add(cells)
        count += len(batch[0].codes)
        if count == size:
            yield kept, columns, count
            count, total = 0, total + count
            for column in columns:
                column.forget(MOST_DISTINCT)
    if count or not total:
        yield kept, columns, count


def _checked(
    source: Source, dialect: Dialect, rows: Iterable[tuple[int, list[str]]], wide: int, where: str
) -> Iterator[list[str]]:
    """Yield the cells of rows; raise an error for a row that is shorter or longer."""
    for line, row in rows:
        if len(row) != wide:
            raise ValueError(
                Message(
                    "{source}, line {line}: {cells}, but {where} has {wide}. Quote cells "
                    "that hold the delimiter ({used!r}), or use {delimiter}.",
                    **{"source": source.name, "line": line, "cells": plural(len(row), "cell")},
                    **{"where": where, "wide": wide, "used": dialect.delimiter},
                    delimiter=Argument("delimiter"),
                )
            )
        yield row


def _code(cells: Iterable[str]) -> CodedTexts:
    listed = list(cells)
    place = {text: code for code, text in enumerate(dict.fromkeys(listed))}
    codes = np.fromiter(map(place.__getitem__, listed), np.int32, len(listed))
    return CodedTexts(list(place), codes)


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
        text = self.text.read(max(size // 4, 1))
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
) -> Iterator[list[CodedTexts]]:
    """Yield the picked columns of some rows, which belong to one block; or raise ValueError."""
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
        room = size
        for batch in reader:
            while len(batch):
                part, batch = batch[:room], batch[len(batch) if room is None else room :]
                columns = part.columns
                if room is not None:  # a slice has the texts of all rows
                    columns = [c.dictionary_decode().dictionary_encode() for c in columns]
                yield [CodedTexts(c.dictionary.to_pylist(), np.asarray(c.indices)) for c in columns]
                room = room and (room - len(part) or size)


def has_parser() -> bool:
    """Whether a parser faster than the standard library is installed."""
    return find_spec("pyarrow") is not None


def _names(
    source: Source, first: tuple[int, list[str]], header: bool | Sequence[str]
) -> tuple[tuple[str, ...], int, str]:
    """Return the names of the columns, their number, and what determines it."""
    line, row = first
    where = f"the first row (line {line})"
    if header is True:
        distinct = distinct_names(row)
        given = [cell.strip() for cell in row]
        if changed := [name for name in distinct if name not in given]:
            remark(f"Columns of the same name are called {show(changed)}.")
        return distinct, len(row), f"the header (line {line})"
    if header is False:
        return tuple(f"x{n}" for n in range(len(row))), len(row), where
    names = tuple(str(name) for name in header)
    if len(names) != len(row):
        raise ValueError(
            f"{source.name}: {len(names)} names are given for {plural(len(row), 'column')} (line "
            f"{line})."
        )
    return names, len(row), where


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
    there = [at for at, name in enumerate(names) if name]
    if len(there) < len(names):
        gone = [at + 1 for at, name in enumerate(names) if not name]
        remark(
            f"{source.name}: column {', '.join(map(str, gone))} has no name and is left out "
            "(row numbers, perhaps)."
        )
    return there


def typed_columns(
    names: Sequence[str], columns: Sequence[TextColumn], rows: int, domain: Domain | None
) -> Frame:
    """Return the block as a frame: texts as levels of the domain, or as numbers where all are."""
    made: list[Column] = []
    for name, column in zip(names, columns, strict=True):
        variable = domain[name] if domain is not None and name in domain else None
        made.append(typed_column(column.texts, column.take_codes(), name, variable))
    return Frame(tuple(names), list(made), rows)


def typed_column(
    texts: Sequence[str], codes: NDArray[np.int32], name: str, variable: Variable | None
) -> Column:
    """Return one column with its texts as labels of the type of the variable's levels."""
    if variable is not None:
        known: dict[str, Level] = {str(level): level for level in variable.levels}
        known |= {str(x).lower(): x for x in variable.levels if isinstance(x, bool)}
        if variable.kind != "binned" and all(isinstance(x, str | bool) for x in variable.levels):
            return column_of_distinct([known.get(text, text) for text in texts], codes, name)
        empty = None if variable.empty is None else str(variable.levels[-1])
        labels = numbers_of([text for text in texts if text != empty])
        if labels is not None and empty is not None:
            left = iter(labels)
            labels = [text if text == empty else next(left) for text in texts]
        if labels is None and variable.kind != "binned":
            labels = [known.get(text, text) for text in texts]
        return column_of_distinct(texts if labels is None else labels, codes, name)
    numbers = numbers_of(texts)
    if numbers is None:
        return column_of_distinct(texts, codes, name)
    return numbers_if_all(column_of_distinct(numbers, codes, name))
