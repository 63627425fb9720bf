"""A data file as it is written, next to its records: for filling and adding cells."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.cli.options import Options
from rejoint.domain.domain import Domain
from rejoint.domain.labels import is_missing
from rejoint.domain.variable import Variable
from rejoint.records.delimited import (
    check_names,
    distinct_names,
    find_dialect,
    numbers_of,
    read_blocks,
    read_rows,
)
from rejoint.records.files import Source
from rejoint.records.formats import format_of, read_table_blocks
from rejoint.records.frames import take_apart
from rejoint.records.records import Records
from rejoint.text import cite


class RawTable(NamedTuple):
    """Columns as they are in the file: text where it is text; and the texts of empty cells."""

    names: tuple[str, ...]
    columns: list[list[Any]]
    empty: frozenset[str]
    records: Records | None

    def is_empty(self, cell: Any) -> bool:
        """Whether a cell of a column is empty."""
        return cell.strip() in self.empty if isinstance(cell, str) else is_missing(cell)

    def empty_cells(self, name: str) -> NDArray[np.bool_]:
        """Which cells of a column are empty."""
        cells = self.columns[self.names.index(name)]
        return np.array([self.is_empty(cell) for cell in cells], dtype=bool)

    def values(self, name: str, variable: Variable | None = None) -> list[Any]:
        """A column with numbers as numbers, None where empty; or as the levels of a variable."""
        if name not in self.names:
            raise ValueError(
                f"There is no column {cite(name)}; the columns are {', '.join(self.names)}."
            )
        cells = self.columns[self.names.index(name)]
        found = [None if self.is_empty(cell) else cell for cell in cells]
        if variable is not None and all(isinstance(x, str | bool) for x in variable.levels):
            known: dict[Any, Any] = {str(level): level for level in variable.levels}
            known |= {str(x).lower(): x for x in variable.levels if isinstance(x, bool)}
            return [known.get(c.strip(), c) if isinstance(c, str) else c for c in found]
        texts = sorted({str(cell).strip() for cell in found if cell is not None})
        numbers = numbers_of(texts)
        if numbers is None:
            return found
        known = dict(zip(texts, numbers, strict=True))
        return [None if cell is None else known[str(cell).strip()] for cell in found]

    def rows(self) -> Iterator[Sequence[Any]]:
        """The rows as they are."""
        return zip(*self.columns, strict=True)


def read_raw(path: str, o: Options, domain: Domain | None = None) -> RawTable:
    """Read a file as it is written and, where a domain is given, as records over it."""
    how = o.file()
    source, empty = Source(path), frozenset(how["missing"])
    kind = format_of(source, how["format"])
    if kind != "text":
        data = next(read_table_blocks(source, kind, None, encoding=how["encoding"]))
        frame = take_apart(data)
        columns = [_cells(column) for column in frame.columns]
        records = None if domain is None else Records.of(data, domain=domain)
        return RawTable(frame.names or (), columns, frozenset(), records)
    dialect = find_dialect(source, how["delimiter"], how["encoding"])
    rows = [row for _, row in read_rows(source, dialect)]
    blocks = read_blocks(
        source,
        dialect,
        header=how["header"],
        missing=empty,
        wanted=lambda names: check_names(source, names),
        size=None,
    )
    frame = next(blocks)  # all rows are as wide
    has_header = how["header"] is True
    names = distinct_names(rows[0]) if has_header else frame.names or ()
    columns = [[row[at] for row in rows[has_header:]] for at in range(len(names))]
    records = None if domain is None else Records.of(frame, domain=domain)
    return RawTable(names, columns, empty, records)


def _cells(column: Any) -> list[Any]:
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            cells: list[Any] = getattr(column, method)()
            return cells
    return list(column)
