"""Read delimited text into columns: codes of distinct texts, or numbers where all are numbers.

Where pyarrow is installed, it parses what it reads as the standard library does. The
file is split into pieces of whole rows, and each piece is checked before it is parsed: quotes stand
around whole cells, and there are as many delimiters as the rows need. Every cell stays text. The
first piece that fails a check raises `UnusualText`, and the standard library reads the rest: its
errors name the line.
"""

import codecs
import csv
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain, islice, starmap
from math import isfinite
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import BoolArray, IntArray
from rejoint.domain.columns import EXACT, Column, column_of_distinct, numbers_if_all
from rejoint.domain.domain import Domain
from rejoint.domain.labels import Level
from rejoint.domain.variable import Variable
from rejoint.kernels import available_threads
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

#: Bytes parsed at a time.
PIECE_BYTES = 2**22

#: Bytes of a file below which the standard library is faster than importing another parser.
LEAST_BYTES = 2**18

_QUOTE, _NEWLINE, _RETURN = b'"\n\r'


class UnusualText(ValueError):
    """The rest of the text must be read by the standard library."""


class CodedTexts(NamedTuple):
    """The distinct cells of a column, in order of first occurrence, and codes into them."""

    texts: list[str]
    codes: NDArray[np.int32]


class RowLayout(NamedTuple):
    """How the rows of a file are formatted, and which of their cells to read."""

    delimiter: str
    cells: int
    wanted: Sequence[int]


def read_csv_rows(
    lines: Iterable[str], delimiter: str = ",", *, strict: bool = False
) -> Iterator[list[str]]:
    """Return the rows of CSV, whose cells may be long.

    Examples
    --------
    >>> [len(cell) for row in read_csv_rows(["a," + "b" * 200_000]) for cell in row]
    [1, 200000]
    """
    csv.field_size_limit(max(csv.field_size_limit(), MOST_CELL))  # it is one for the process
    return csv.reader(lines, delimiter=delimiter, strict=strict)


@dataclass(frozen=True)
class Dialect:
    """Encoding, delimiter and comment mark of a text file.

    Examples
    --------
    >>> Dialect("utf-8", ";").delimiter
    ';'
    """

    encoding: str
    delimiter: str
    comment: str = ""


def find_dialect(
    source: Source, delimiter: str | None = None, encoding: str | None = None, comment: str = ""
) -> Dialect:
    r"""Return the dialect as given; guess the rest from the beginning of the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.csv")
    ...     _ = path.write_text("name;size\nx;1,5\n")
    ...     find_dialect(Source(path))
    Dialect(encoding='utf-8', delimiter=';', comment='')
    """
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
    r"""Yield rows of cells as text, each with the number of its last line; skip blank lines.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.csv")
    ...     _ = path.write_text('a,b\n\n"x, y",2\n')
    ...     list(read_rows(Source(path), Dialect("utf-8", ",")))
    [(1, ['a', 'b']), (3, ['x, y', '2'])]
    """
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


_WHOLE = re.compile(r"[+-]?(?:0|[1-9]\d{0,99})")
_DIGITS_OF_AN_INTEGER = 19  # of 64 bits; an array cannot hold more
_DECIMAL_COMMA = re.compile(r"[+-]?(?:0,\d+|\d+,(?:\d{1,2}|\d{4,}))")
_REAL = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?")


class TextColumn:
    """Cells of one column as they are read: each distinct text once, and codes into them.

    Blanks around a cell are ignored.

    Examples
    --------
    >>> column = TextColumn(frozenset({""}))
    >>> for cell in ("b", "", " b", "a"):
    ...     column.add(cell)
    >>> column.texts, list(column.codes)
    (['b', 'a'], [0, -1, 0, 1])
    """

    def __init__(self, missing: Collection[str]) -> None:
        self.missing = missing
        self.known: dict[str, int] = dict.fromkeys(missing, -1)
        self.texts: list[str] = []
        self.codes: list[int] = []
        self.parts: list[NDArray[np.int32]] = []  # codes of earlier cells

    def add(self, cell: str) -> None:
        """Add one cell."""
        code = self.known.get(cell)
        self.codes.append(self._learn(cell) if code is None else code)

    def add_coded(self, cells: CodedTexts) -> None:
        """Add many cells, before any that are added one by one."""
        table = [
            self.known[text] if text in self.known else self._learn(text) for text in cells.texts
        ]
        self.parts.append(np.array(table, dtype=np.int32)[cells.codes])

    def _learn(self, cell: str) -> int:
        text = cell.strip()
        code = self.known.get(text)
        if code is None:
            code = self.known[text] = len(self.texts)
            self.texts.append(text)
        self.known[cell] = code
        return code

    def take_codes(self) -> NDArray[np.int32]:
        """Return the codes so far and reset them; keep the distinct texts."""
        codes = np.concatenate([*self.parts, np.array(self.codes, dtype=np.int32)])
        self.codes, self.parts = [], []
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
    layout = RowLayout(dialect.delimiter, wide, picked)
    if header is not True:
        rows = chain([first], rows)
    skip = first[0] if header is True else 0

    def add_row(line: int, row: list[str]) -> int:
        if len(row) != wide:
            raise ValueError(
                Message(
                    "{source}, line {line}: {cells}, but {where} has {wide}. Quote cells "
                    "that hold the delimiter ({used!r}), or use {delimiter}.",
                    source=source.name,
                    line=line,
                    cells=plural(len(row), "cell"),
                    where=where,
                    wide=wide,
                    used=dialect.delimiter,
                    delimiter=Argument("delimiter"),
                )
            )
        for column, at in zip(columns, picked, strict=True):
            column.add(row[at])
        return 1

    def add_rows() -> Iterator[int]:
        """Add rows to the columns, many at a time while that is possible."""
        done = 0
        try:
            for cells in _read_fast(source, dialect, layout, skip, size):
                for column, more in zip(columns, cells, strict=True):
                    column.add_coded(more)
                done += len(cells[0].codes)
                yield len(cells[0].codes)
        except UnusualText:
            yield from starmap(add_row, islice(rows, done, None))

    kept = tuple(names[at] for at in picked)
    count = total = 0
    for added in add_rows():
        count += added
        if count == size:
            yield kept, columns, count
            count, total = 0, total + count
            for column in columns:
                column.forget(MOST_DISTINCT)
    if count or not total:
        yield kept, columns, count


def _read_fast(
    source: Source, dialect: Dialect, layout: RowLayout, skip: int, size: int | None
) -> Iterator[list[CodedTexts]]:
    """Read the part of the file that a parser faster than the standard library can read."""
    if dialect.comment or (size is not None and size < FEWEST_ROWS):
        raise UnusualText
    try:
        with source.open() as file:
            yield from read_coded_texts(file, dialect.encoding, layout, skip=skip, size=size)
    except ValueError as error:  # also of a corrupt gzip file
        raise UnusualText from error


def has_parser() -> bool:
    """Whether a parser faster than the standard library is installed."""
    return find_spec("pyarrow") is not None


def read_coded_texts(
    file: BinaryIO, encoding: str, layout: RowLayout, *, skip: int, size: int | None
) -> Iterator[list[CodedTexts]]:
    r"""Read the selected columns block by block, or raise `UnusualText`.

    Parameters
    ----------
    file : binary file
        Open at its beginning.
    encoding : str
        Of the text.
    layout : RowLayout
        Of the rows.
    skip : int
        Lines before the first row.
    size : int, optional
        Rows of a block; rows that are yielded together belong to one block.

    Examples
    --------
    >>> import io
    >>> text = "a,b\n" + "x,1\ny,2\nx,3\n" * 100_000
    >>> parts = read_coded_texts(
    ...     io.BytesIO(text.encode()), "utf-8", RowLayout(",", 2, [0]), skip=1, size=None
    ... )
    >>> next(parts)[0].texts
    ['x', 'y']
    """
    delimiter = layout.delimiter
    plain = delimiter == "\t" or (delimiter.isascii() and delimiter.isprintable())
    if not has_parser() or not layout.wanted or not plain or delimiter == '"':
        raise UnusualText
    room = size
    for data, ends, quoted in _read_pieces(file, encoding, layout, skip):
        first = 0
        while first < len(ends):
            last = len(ends) if room is None else min(first + room, len(ends))
            part = data[ends[first - 1] if first else 0 : ends[last - 1]]
            found = _parse(part, layout, last - first, quoted)
            if any(len(column.codes) != last - first for column in found):
                raise UnusualText
            yield found
            if room is not None:
                room = room - (last - first) or size
            first = last


def _read_pieces(
    file: BinaryIO, encoding: str, layout: RowLayout, skip: int
) -> Iterator[tuple[bytes, IntArray, bool]]:
    """Yield rows in UTF-8 without blank lines, where each ends, and whether any is quoted."""
    decoder = codecs.getincrementaldecoder(encoding)()
    is_utf8 = codecs.lookup(encoding).name == "utf-8"
    rest, is_first = b"", True
    while True:
        raw = file.read(PIECE_BYTES)
        try:
            text = decoder.decode(raw, final=not raw)
            data = rest + (raw if is_utf8 else text.encode())
        except UnicodeError as error:
            raise UnusualText from error
        if is_first:
            if len(data) < LEAST_BYTES:
                raise UnusualText
            data, is_first = _without_lines(data, skip), False
        if not raw and data and not data.endswith(b"\n"):
            data += b"\n"
        piece, rest = _cut(data, layout)
        if len(piece[1]):
            yield piece
        if not raw:
            if rest:  # a quote is not closed
                raise UnusualText
            return
        if len(rest) > PIECE_BYTES:
            raise UnusualText


def _without_lines(data: bytes, lines: int) -> bytes:
    """Return the text after the first lines."""
    at = 0
    for _ in range(lines):
        at = data.find(b"\n", at) + 1
        if not at:
            raise UnusualText
    if data.count(b"\r", 0, at) != data.count(b"\r\n", 0, at) or data.startswith(
        codecs.BOM_UTF8, at
    ):
        raise UnusualText
    return data[at:]


def _cut(data: bytes, layout: RowLayout) -> tuple[tuple[bytes, IntArray, bool], bytes]:
    """Return the whole rows of a piece as `_read_pieces` does, checked, and the remainder."""
    letters = np.frombuffer(data, dtype=np.uint8)
    newline, quotes, outside = letters == _NEWLINE, letters == _QUOTE, None
    if b'"' in data:
        outside = ~_odd_counts(quotes)
    ends = np.flatnonzero(_both(newline, outside)) + 1
    if not len(ends):
        return (b"", ends, False), data
    data, rest = data[: ends[-1]], data[ends[-1] :]
    letters, newline, quotes = (array[: ends[-1]] for array in (letters, newline, quotes))
    outside = None if outside is None else outside[: ends[-1]]
    sizes = np.diff(ends, prepend=0)
    blank = (sizes == 1) | ((sizes == 2) & (letters[ends - 2] == _RETURN))
    delimiter = letters == ord(layout.delimiter)
    if (
        np.count_nonzero(_both(delimiter, outside)) != (layout.cells - 1) * np.count_nonzero(~blank)
        or sizes.max() > csv.field_size_limit()
        or b"\0" in data
        or (outside is not None and layout.cells == 1)  # "" alone is a blank line
        # Lines that end with a carriage return alone.
        or (b"\r" in data and data.count(b"\r") != data.count(b"\r\n"))
    ):
        raise UnusualText
    if outside is not None:
        # Quotes enclose whole cells and are doubled inside them.
        edge = delimiter | newline | quotes
        opened = quotes[1:] > (outside[1:] | edge[:-1])
        edge |= letters == _RETURN
        closed = (quotes & outside)[:-1] > edge[1:]
        if opened.any() or closed.any():
            raise UnusualText
    if blank.any():
        letters, sizes = letters[np.repeat(~blank, sizes)], sizes[~blank]
        ends = np.cumsum(sizes)
        data = letters.tobytes()
    return (data, ends, outside is not None), rest


def _odd_counts(marks: BoolArray) -> BoolArray:
    """Return where the cumulative number of marks is odd, 64 marks at a time.

    Examples
    --------
    >>> _odd_counts(np.array([False, True, False, True, False]))
    array([False,  True,  True, False, False])
    """
    packed = np.packbits(marks, bitorder="little")
    words = np.zeros(-(-len(packed) // 8), dtype="<u8")
    words.view(np.uint8)[: len(packed)] = packed
    for shift in (1, 2, 4, 8, 16, 32):
        words ^= words << np.uint64(shift)
    # The last bit of each word says whether the following words are inverted.
    turned = np.bitwise_xor.accumulate((words >> np.uint64(63)).astype(np.uint8))
    words[1:] ^= np.where(turned[:-1], ~np.uint64(0), np.uint64(0))
    bits = np.unpackbits(words.view(np.uint8), count=len(marks), bitorder="little")
    return bits.view(np.bool_)


def _both(one: BoolArray, other: BoolArray | None) -> BoolArray:
    return one if other is None else one & other


def _parse(data: bytes, layout: RowLayout, rows: int, quoted: bool) -> list[CodedTexts]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    names = [str(n) for n in range(layout.cells)]
    kept = [names[n] for n in layout.wanted]
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(data),
            arrow_csv.ReadOptions(column_names=names, use_threads=available_threads() > 1),
            arrow_csv.ParseOptions(
                delimiter=layout.delimiter,
                quote_char='"' if quoted else False,
                newlines_in_values=quoted and data.count(b"\n") > rows,
                ignore_empty_lines=False,
            ),
            arrow_csv.ConvertOptions(
                include_columns=kept, column_types=dict.fromkeys(kept, pa.string())
            ),
        )
    except pa.ArrowException as error:
        raise UnusualText from error
    found = []
    for name in kept:
        column = table[name].combine_chunks().dictionary_encode()
        found.append(
            CodedTexts(
                column.dictionary.to_pylist(), np.from_dlpack(column.indices).astype(np.int32)
            )
        )
    return found


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
    """Return the block as a frame: texts as levels of the domain, or as numbers where all are.

    Examples
    --------
    >>> column = TextColumn(frozenset())
    >>> for cell in ("10", "9"):
    ...     column.add(cell)
    >>> typed_columns(["a"], [column], 2, None).columns[0].values
    array([10,  9])
    """
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


def numbers_of(texts: Sequence[str]) -> list[Level] | None:
    """Return all texts as numbers, None if one is not a number: ``007`` is a name, not seven.

    Examples
    --------
    Commas are decimal marks if some of them cannot separate thousands. Whole numbers are exact,
    however long.

    >>> numbers_of(["1", "-2"]), numbers_of(["1.5", "2"]), numbers_of(["007"])
    ([1, -2], [1.5, 2.0], None)
    >>> numbers_of(["1,5", "2,250"]), numbers_of(["1,250"])
    ([1.5, 2.25], None)
    >>> numbers_of(["1234567890123456789", "1234567890123456788"])
    [1234567890123456789, 1234567890123456788]
    """
    if all(_WHOLE.fullmatch(text) for text in texts):
        whole: list[Level] = [int(text) for text in texts]
        fit = all(len(text) <= _DIGITS_OF_AN_INTEGER for text in texts)
        return whole if fit else _floats(texts) or whole
    if all(_REAL.fullmatch(text) for text in texts):
        return _floats(texts)
    if any(_DECIMAL_COMMA.fullmatch(text) for text in texts):
        points = [text.replace(",", ".") for text in texts]
        if all("." not in text for text in texts) and all(map(_REAL.fullmatch, points)):
            return _floats(points)
    return None


def _floats(texts: Sequence[str]) -> list[Level] | None:
    """Return texts as floats; None if one is too large or two whole numbers would become one."""
    numbers = [float(text) for text in texts]
    if not all(map(isfinite, numbers)):
        return None
    large = {
        int(text): number
        for text, number in zip(texts, numbers, strict=True)
        if abs(number) > EXACT and _WHOLE.fullmatch(text)
    }
    return None if len(set(large.values())) < len(large) else list(numbers)
