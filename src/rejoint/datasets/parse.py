"""Parsers of the files of data sets into typed columns, and of columns into frames."""

import csv
import gzip
import io
import zipfile
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import Any, Literal, get_args

from rejoint.records.frames import choose_backend

Columns = dict[str, list[Any]]
Backend = Literal["pandas", "polars", "pyarrow", "dict"]
Rows = list[list[str]]


def read_packed(content: bytes) -> Columns:
    r"""Columns of a compressed CSV file with a header; empty fields are missing.

    Examples
    --------
    >>> import gzip
    >>> read_packed(gzip.compress(b"a,b\nx,1\n,2\n"))
    {'a': ['x', None], 'b': [1, 2]}
    """
    return _read_csv(gzip.decompress(content).decode())


def read_member(content: bytes, member: str) -> Columns:
    """Columns of one CSV file with a header within a zip archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return _read_csv(archive.read(member).decode())


def read_lines(content: bytes, header: Sequence[str], separator: str | None = ",") -> Columns:
    r"""Columns of a file without a header, one row in each line; ``?`` is missing.

    Examples
    --------
    >>> read_lines(b"x, 1\n?, 2\n\n", ["a", "b"])
    {'a': ['x', None], 'b': [1, 2]}
    """
    return _to_columns(header, _split_lines(content, separator))


def read_adult(train: bytes, test: bytes, header: Sequence[str]) -> Columns:
    """Both parts of Adult: the test part has a comment in its first line and dots after labels."""
    rows = [[*row, "train"] for row in _split_lines(train, ",")]
    rows += [[*row[:-1], row[-1].rstrip("."), "test"] for row in _split_lines(test, ",")]
    return _to_columns(header, rows)


def _parse_cells(cells: Iterable[str]) -> list[Any]:
    """Cells as integers if all are, as numbers if all are, else as text; empty is None.

    Examples
    --------
    >>> _parse_cells(["1", "", "3"]), _parse_cells(["1", "2.5"]), _parse_cells(["1", "more"])
    ([1, None, 3], [1.0, 2.5], ['1', 'more'])
    """
    cells = list(cells)
    for kind in (int, float):
        try:
            return [kind(cell) if cell else None for cell in cells]
        except ValueError:
            continue
    return [cell or None for cell in cells]


def as_frame(columns: Columns, backend: str | None) -> Any:
    """Columns as a frame of the library asked for, or as the dict itself.

    Examples
    --------
    >>> as_frame({"a": ["x", None]}, "dict")
    {'a': ['x', None]}
    """
    if backend == "dict" or (backend is None and not any(map(find_spec, get_args(Backend)[:3]))):
        return columns
    match choose_backend(backend):
        case "pandas":
            import pandas

            return pandas.DataFrame(columns)
        case "polars":
            import polars

            return polars.DataFrame(columns)
        case "pyarrow":
            import pyarrow

            return pyarrow.table(columns)


def _read_csv(text: str) -> Columns:
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    return _to_columns(header, rows)


def _split_lines(content: bytes, separator: str | None) -> Rows:
    lines = [line for line in content.decode().splitlines() if line and not line.startswith("|")]
    rows = [[cell.strip() for cell in line.split(separator)] for line in lines]
    return [["" if cell == "?" else cell for cell in row] for row in rows]


def _to_columns(header: Sequence[str], rows: Rows) -> Columns:
    return dict(zip(header, map(_parse_cells, zip(*rows, strict=True)), strict=True))
