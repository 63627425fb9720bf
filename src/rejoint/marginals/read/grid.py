"""Files and their cells: the files of a folder or archive, delimited text, sheets of workbooks."""

import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any

from rejoint.cost import read_all
from rejoint.domain.labels import natural_order
from rejoint.marginals.read.cells import check_size
from rejoint.records.delimited import find_dialect, read_rows
from rejoint.records.files import Source
from rejoint.text import cite, show

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]

WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".px", ".json", *WORKBOOKS)

#: Rows in which a number must have occurred.
_FIRST_ROWS = 2_000


@dataclass(frozen=True)
class Grid:
    """The cells of a text file or a sheet, with the line of each row."""

    where: str
    rows: Sequence[Sequence[str]]
    lines: Sequence[int]
    sheet: str | None = None  # of a workbook that has several


def list_files(paths: Paths) -> list[Source]:
    """Return the files to read: those of a folder or an archive in natural order, or the given."""
    listed = [paths] if isinstance(paths, str | PathLike) else paths
    sources = [source for path in listed for source in _list_inside(path)]
    if not sources:
        raise ValueError("No table files were given.")
    return sources


def _list_inside(path: str | PathLike[str]) -> Iterator[Source]:
    """Yield a file, or the table files of a folder or of a .zip archive."""
    if str(path) != "-" and Path(path).is_dir():
        inside = [p.name for p in Path(path).iterdir() if p.is_file()]
        names = [n for n in inside if _is_table(n) or n.lower().endswith(".zip")]
        for name in _in_order(names, f"The folder '{path}'"):
            yield from _list_inside(Path(path, name))
    elif not str(path).lower().endswith(".zip"):
        yield Source(path)
    else:
        try:
            with zipfile.ZipFile(path) as archive:
                parts = [i for i in archive.infolist() if not i.is_dir() and _is_table(i.filename)]
                check_size(str(path), [sum(part.file_size for part in parts) // 8])
                for name in _in_order([p.filename for p in parts], f"The archive '{path}'"):
                    yield Source(f"{path}/{name}", content=archive.read(name))
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            raise ValueError(f"{path}: the archive cannot be unpacked ({error}).") from error


def _is_table(name: str) -> bool:
    base = PurePosixPath(name).name.lower()
    return base[:1] not in (".", "~") and base.removesuffix(".gz").endswith(SUFFIXES)


def _in_order(names: Sequence[str], where: str) -> list[str]:
    if not names:
        endings = f"{', '.join(SUFFIXES)}, with or without .gz, or .zip"
        raise ValueError(f"{where} has no table files: names must end in {endings}.")
    return [str(name) for name in natural_order(names)]


def read_grid(source: Source, delimiter: str | None = None, encoding: str | None = None) -> Grid:
    """Read the cells of a text file."""
    dialect = find_dialect(source, delimiter, encoding)
    rows: list[Sequence[str]] = []
    lines: list[int] = []
    has_number = False
    for line, row in read_rows(source, dialect):
        if line == 1:
            row = [cell.lstrip("\ufeff") for cell in row]
            text = dialect.delimiter.join(row).strip()
            if told := re.fullmatch(r'"?sep=(.)"?', text, re.IGNORECASE):
                if delimiter is None:
                    return read_grid(source, told[1], encoding)
                continue
        if not has_number:
            has_number = any(cell[:1].isdigit() for cell in row[1:])
            if len(rows) >= _FIRST_ROWS and not has_number:
                what = f"none of its first {line:,} lines has a label and a number beside it"
                raise ValueError(f"{source.name} has no table: {what}.")
        if not len(rows) % _FIRST_ROWS:
            check_size(source.name, [len(rows) * len(row) * 4])  # texts take more than numbers
        rows.append(tuple(map(str.strip, row)))  # tuples of texts cost the collector nothing
        lines.append(line)
    return Grid(source.name, rows, lines)


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
        if sheet is not None and sheet not in names:
            if not sheet.isdecimal() or not 0 < int(sheet) <= len(names):
                raise ValueError(f"there is no sheet {cite(sheet)}; it has {show(names)}")
            sheet = names[int(sheet) - 1]
        several = len(names) > 1
        return [_read_sheet(source, book, n, several) for n in ([sheet] if sheet else names)]
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
    lines = [k for k, row in enumerate(rows, 1) if any(row)]
    return Grid(where, [tuple(rows[k - 1]) for k in lines], lines, name if several else None)


def _text_of(cell: Any) -> str:
    if not isinstance(cell, float):
        return str(cell).strip()
    whole = cell.is_integer() and abs(cell) < 1e15
    return str(int(cell)) if whole else repr(cell) if isfinite(cell) else ""
