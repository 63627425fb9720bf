"""Files and their cells: the files of a folder or archive, delimited text, sheets of workbooks."""

import io
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any

from rejoint.cost import read_all
from rejoint.domain.labels import natural_order
from rejoint.marginals.read.cells import check_size
from rejoint.messages import Argument, Message
from rejoint.records.delimited import DELIMITERS, Dialect, find_dialect, read_csv_rows, read_rows
from rejoint.records.files import Source
from rejoint.text import cite, show

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]

WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".px", ".json", *WORKBOOKS)

_LINES_OF_GUESS = 400
#: Rows in which a number must have occurred.
_FIRST_ROWS = 2_000


@dataclass(frozen=True)
class Grid:
    """The cells of a text file or a sheet, with the line of each row."""

    where: str
    rows: Sequence[Sequence[str]]
    lines: list[int]


def list_files(paths: Paths) -> list[Source]:
    """Return the files to read: those of a folder or an archive in natural order, or the given.

    Examples
    --------
    >>> [source.name for source in list_files(["b.csv", "a.csv"])]
    ['b.csv', 'a.csv']
    """
    sources: list[Source] = []
    for path in [paths] if isinstance(paths, str | PathLike) else paths:
        if str(path) != "-" and Path(path).is_dir():
            inside = [p.name for p in Path(path).iterdir() if p.is_file()]
            names = [name for name in inside if _is_table(name) or name.lower().endswith(".zip")]
            if not names:
                raise ValueError(
                    f"The folder '{path}' has no table files: names must end in "
                    f"{', '.join(SUFFIXES)}, with or without .gz, or .zip."
                )
            for name in natural_order(names):
                sources += _members(Path(path, str(name)))
        else:
            sources += _members(path)
    if not sources:
        raise ValueError("No table files were given.")
    return sources


def _is_table(name: str) -> bool:
    base = PurePosixPath(name).name.lower()
    return base[:1] not in (".", "~") and base.removesuffix(".gz").endswith(SUFFIXES)


def _members(path: str | PathLike[str]) -> list[Source]:
    """Return a file, or the files of a .zip archive."""
    if not str(path).lower().endswith(".zip"):
        return [Source(path)]
    try:
        with zipfile.ZipFile(path) as archive:
            inside = [i for i in archive.infolist() if not i.is_dir() and _is_table(i.filename)]
            if not inside:
                raise ValueError(
                    f"The archive '{path}' has no table files: names must end in "
                    f"{', '.join(SUFFIXES)}."
                )
            check_size(str(path), [sum(i.file_size for i in inside) // 8])
            names = natural_order([i.filename for i in inside])
            return [Source(f"{path}/{n}", content=archive.read(str(n))) for n in names]
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"{path}: the archive cannot be unpacked ({error}).") from error


def read_grid(source: Source, delimiter: str | None = None, encoding: str | None = None) -> Grid:
    r"""Read the cells of a text file.

    Examples
    --------
    >>> read_grid(Source("t.csv", content=b"a;n\nx;1,5\n")).rows
    [('a', 'n'), ('x', '1,5')]
    """
    dialect = find_dialect(source, delimiter or ",", encoding)
    with source.open() as file:
        start = file.read(2**18).decode(dialect.encoding, errors="replace").lstrip("\ufeff")
    lines = start.splitlines(keepends=True)[:_LINES_OF_GUESS]
    told = re.fullmatch(r'"?sep=(.)"?\s*', lines[0], re.IGNORECASE) if lines else None
    if delimiter is None:
        tabs = source.suffix in (".tsv", ".tab") and any("\t" in line for line in lines)
        guess = told[1] if told else "\t" if tabs else _guess_delimiter(lines)
        dialect = Dialect(dialect.encoding, guess)
    rows: list[Sequence[str]] = []
    numbers: list[int] = []
    seen = False
    for line, row in read_rows(source, dialect):
        if told and line == 1:
            continue
        seen = seen or any(cell[:1].isdigit() for cell in row[1:])
        if len(rows) == _FIRST_ROWS and not seen:
            raise ValueError(
                f"{source.name} has no table: none of its first {line:,} lines has a "
                "label and a number beside it."
            )
        if not len(rows) % _FIRST_ROWS:
            check_size(source.name, [len(rows) * len(row) * 4])  # texts take more than numbers
        rows.append(tuple(cell.lstrip("\ufeff") for cell in row) if line == 1 else tuple(row))
        numbers.append(line)
    return Grid(source.name, rows, numbers)


def _guess_delimiter(lines: Sequence[str]) -> str:
    """Return the delimiter of which the most lines with numbers have the same number of cells."""
    there = [line for line in lines if re.search(r"\d", line)] or list(lines)
    best, score = ",", (0.0, 0)
    for delimiter in DELIMITERS:
        sizes = [len(row) for row in read_csv_rows(there, delimiter)]
        wide = [size for size in sizes if size > 1]
        common = max(set(wide), key=wide.count, default=0)
        # Commas also separate thousands and decimals, and stand in titles.
        share = wide.count(common) / max(len(there), 1) + (delimiter != "," and common > 0) / 2
        if wide and (share, common) > score and 2 * len(wide) >= len(there):
            best, score = delimiter, (share, common)
    return best


def read_workbook(source: Source, sheet: str | None = None) -> list[Grid]:
    """Read the sheets of an Excel or ODS workbook; merged cells all have their text."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook  # an extra
    except ImportError as error:
        raise ImportError(
            f"{source.name}: Excel and ODS files are read by python-calamine. Install "
            "rejoint[excel], or save the sheet as CSV."
        ) from error
    with source.open() as file:
        content = io.BytesIO(read_all(file, source.name))
    try:
        book = CalamineWorkbook.from_filelike(content)
        names = list(book.sheet_names)
        if sheet is not None:
            if sheet not in names and sheet.isdecimal() and 0 < int(sheet) <= len(names):
                sheet = names[int(sheet) - 1]
            if sheet not in names:
                raise ValueError(f"there is no sheet {cite(sheet)}; it has {show(names)}")
        chosen = names if sheet is None else [sheet]
        return [_read_sheet(source, book, name, len(names) > 1) for name in chosen]
    except (CalamineError, ValueError, OSError) as error:
        raise ValueError(f"{source.name} cannot be read as a workbook: {error}.") from error


def _read_sheet(source: Source, book: Any, name: str, several: bool) -> Grid:
    page = book.get_sheet_by_name(name)
    where = f"{source.name}, sheet {cite(name)}" if several else source.name
    check_size(where, [page.height, page.width])
    rows = [[_text_of(cell) for cell in row] for row in page.to_python(skip_empty_area=False)]
    for (top, left), (bottom, right) in page.merged_cell_ranges or ():
        for row in rows[top : bottom + 1]:
            row[left : right + 1] = [rows[top][left]] * len(row[left : right + 1])
    kept = [k for k, row in enumerate(rows) if any(row)]
    return Grid(where, [rows[k] for k in kept], [k + 1 for k in kept])


def _text_of(cell: Any) -> str:
    if isinstance(cell, float) and not isinstance(cell, bool):
        whole = isfinite(cell) and cell.is_integer() and abs(cell) < 1e15
        return str(int(cell)) if whole else repr(cell) if isfinite(cell) else ""
    return str(cell).strip()


def refuse_empty(where: str, rows: Sequence[Sequence[str]]) -> None:
    """Raise an error for a file without a header and rows."""
    if len(rows) < 2:
        what = "has a header but no rows" if rows else "is empty: a table needs a header and rows"
        option = Argument("delimiter")
        raise ValueError(
            Message(
                "{where} {what} ({option} says how cells are separated).",
                where=where,
                what=what,
                option=option,
            )
        )
