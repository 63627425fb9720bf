"""A file format to copy: ARFF, text with a header that says which columns are numbers."""

import csv
import io
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from rejoint.records import add_format

_ATTRIBUTE = re.compile(r"@attribute\s+('[^']*'|\"[^\"]*\"|\S+)\s+(.+)", re.IGNORECASE)


def read_arff(source: Any, size: int | None) -> Iterator[dict[str, list[Any]]]:
    """Read blocks of at most ``size`` rows, or all rows as one block."""
    with source.open() as file:
        lines = enumerate(io.TextIOWrapper(file, encoding="utf-8"), 1)
        kinds = _read_header(source, lines)
        rows = _read_rows(source, lines, list(kinds.values()))
        block = list(islice(rows, size))
        while True:  # a file without rows is one block without rows
            columns = map(list, zip(*block, strict=True)) if block else ([] for _ in kinds)
            yield dict(zip(kinds, columns, strict=True))
            block = list(islice(rows, size)) if size else []
            if not block:
                return


def _read_header(source: Any, lines: Iterator[tuple[int, str]]) -> dict[str, str]:
    """Name and kind of each column; the lines go on at the first row then."""
    kinds: dict[str, str] = {}
    for _, line in lines:
        if found := _ATTRIBUTE.match(line.strip()):
            kinds[found[1].strip("'\"")] = found[2].strip().lower()
        elif line.strip().lower() == "@data":
            return kinds
    raise ValueError(f"{source.name}: there is no line @data.")


def _read_rows(
    source: Any, lines: Iterator[tuple[int, str]], kinds: list[str]
) -> Iterator[list[Any]]:
    for number, line in lines:
        if not line.strip() or line.startswith("%"):
            continue
        cells = next(csv.reader([line], quotechar="'", skipinitialspace=True))
        if len(cells) != len(kinds):
            raise ValueError(
                f"{source.name}, line {number}: {len(cells)} cells, and there are {len(kinds)} "
                "columns."
            )
        yield [_read_cell(cell.strip(), kind) for cell, kind in zip(cells, kinds, strict=True)]


def _read_cell(cell: str, kind: str) -> str | float | None:
    if cell == "?":
        return None
    return float(cell) if kind in ("numeric", "real", "integer") else cell


add_format("arff", read_arff, suffixes=[".arff"])
