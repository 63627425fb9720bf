"""Parse delimited text by pyarrow or polars where the result equals that of the standard library.

The file is split into pieces of whole rows, and each piece is checked before it is parsed: quotes
stand around whole cells, and there are as many delimiters as the rows need. Every cell stays text.
The first piece that fails a check raises `UnusualText`, and the caller continues with the standard
library, whose errors name the line.
"""

import codecs
import csv
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import BoolArray, IntArray
from rejoint.kernels import available_threads

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


def find_engine() -> str | None:
    """Return the library that parses text, None if none is installed.

    Examples
    --------
    >>> find_engine() in ("pyarrow", "polars", None)
    True
    """
    return next((name for name in ("pyarrow", "polars") if find_spec(name)), None)


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
    engine, delimiter = find_engine(), layout.delimiter
    plain = delimiter == "\t" or (delimiter.isascii() and delimiter.isprintable())
    if engine is None or not layout.wanted or not plain or delimiter == '"':
        raise UnusualText
    parse = _parse_by_pyarrow if engine == "pyarrow" else _parse_by_polars
    room = size
    for data, ends, quoted in _read_pieces(file, encoding, layout, skip):
        first = 0
        while first < len(ends):
            last = len(ends) if room is None else min(first + room, len(ends))
            part = data[ends[first - 1] if first else 0 : ends[last - 1]]
            found = parse(part, layout, last - first, quoted)
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


def _parse_by_pyarrow(data: bytes, layout: RowLayout, rows: int, quoted: bool) -> list[CodedTexts]:
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


def _parse_by_polars(data: bytes, layout: RowLayout, rows: int, quoted: bool) -> list[CodedTexts]:
    import polars as pl

    try:
        frame = pl.read_csv(
            data,
            has_header=False,
            columns=list(layout.wanted),
            separator=layout.delimiter,
            quote_char='"' if quoted else None,
            infer_schema_length=0,  # all columns are text
        )
    except pl.exceptions.PolarsError as error:
        raise UnusualText from error
    found = []
    for column in frame.fill_null("").get_columns():
        texts = column.unique(maintain_order=True)
        codes = column.cast(pl.Enum(texts)).to_physical().cast(pl.Int32)
        found.append(CodedTexts(texts.to_list(), codes.to_numpy()))
    return found
