"""Delimited text: decoded, its delimiter found, split into rows that know their line."""

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rejoint.records.sources import Source
from rejoint.remarks import remark

__all__ = ["Dialect", "find_dialect", "read_rows"]

#: Delimiters that are looked for, the commonest first.
DELIMITERS = (",", ";", "\t", "|")

_SAMPLE = 2**18  # bytes that encoding and delimiter are guessed from
_ROWS = 50  # rows that the delimiter is guessed from
_MARKS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}


@dataclass(frozen=True)
class Dialect:
    """How the text of a file is written.

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
    r"""What is given, and guesses from the beginning of the file for the rest.

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
        raise ValueError(f"delimiter must be a single character, got {delimiter!r}.")
    with source.open() as file:
        sample = file.read(_SAMPLE)
    if encoding is None:
        encoding = _guess_encoding(source, sample)
    try:
        text = sample.decode(encoding, errors="replace")
    except LookupError:
        raise ValueError(f"encoding={encoding!r} is not known to Python.") from None
    if "\0" in text:
        raise ValueError(
            f"{source.name} holds zero bytes: it is no text. Is its format another (give format=), "
            "or its encoding (give encoding=)?"
        )
    if delimiter is None:
        tabs = source.suffix in (".tsv", ".tab")
        delimiter = "\t" if tabs else _guess_delimiter(text, comment, len(sample) == _SAMPLE)
    return Dialect(encoding, delimiter, comment)


def _guess_encoding(source: Source, sample: bytes) -> str:
    for mark, encoding in _MARKS.items():
        if sample.startswith(mark):
            return encoding
    try:
        sample.decode("utf-8")
    except UnicodeDecodeError as error:
        if len(sample) - error.start > 3:  # else a character that the sample cuts in two
            remark(
                f"{source.name} is not UTF-8 (byte {error.start}): it is read as Windows-1252, "
                "the commonest other encoding of the West. Say encoding= if that is wrong."
            )
            return "cp1252"
    return "utf-8"


def _guess_delimiter(text: str, comment: str, cut: bool) -> str:
    """The delimiter that splits most rows into as many cells as the first, more than one."""
    lines = text.splitlines(keepends=True)
    lines = lines[:-1] if cut and len(lines) > 1 else lines
    best, score = DELIMITERS[0], (0.0, 0)
    for delimiter in DELIMITERS:
        reader = csv.reader(_without(lines, comment), delimiter=delimiter)
        sizes = [len(row) for row, _ in zip(reader, range(_ROWS), strict=False) if row]
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
    r"""Rows of cells as text with the number of the line that each ends on; blank lines left out.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.csv")
    ...     _ = path.write_text('a,b\n\n"x, y",2\n')
    ...     list(read_rows(Source(path), Dialect("utf-8", ",")))
    [(1, ['a', 'b']), (3, ['x, y', '2'])]
    """
    with source.open() as file:
        lines = io.TextIOWrapper(file, encoding=dialect.encoding, newline="")
        seen = 0

        def counted() -> Iterator[str]:
            nonlocal seen
            for line in lines:
                seen += 1
                if not (dialect.comment and line.lstrip().startswith(dialect.comment)):
                    yield line

        reader = csv.reader(counted(), delimiter=dialect.delimiter, strict=True)
        while True:
            try:
                row = next(reader, None)
            except csv.Error as error:
                raise ValueError(
                    f"{source.name}, line {seen}: {error}. Quotes must come in pairs, around a "
                    "whole cell, and be doubled inside it."
                ) from error
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{source.name}, after line {seen}: not {dialect.encoding} "
                    f"({error.reason}). Say encoding=, for instance 'latin-1'."
                ) from error
            if row is None:
                break
            if row and row != [""]:
                yield seen, row
        lines.detach()  # the source closes what it opened
