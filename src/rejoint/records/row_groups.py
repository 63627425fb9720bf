"""Row groups of Parquet files, put together to pieces that can be read by themselves."""

import io
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple

from rejoint.records.formats import format_of
from rejoint.records.sources import Source

__all__ = ["RowGroups", "pieces_of", "row_groups_of"]

#: Cells below which a piece costs more to handle than to compute on, and pieces at the most.
LEAST, MOST = 8_000_000, 1000


class RowGroups(NamedTuple):
    """Rows of each group of a file, and its number of columns."""

    rows: tuple[int, ...]
    columns: int

    @property
    def cells(self) -> int:
        """Cells of all groups."""
        return sum(self.rows) * self.columns


def row_groups_of(source: Source, given: str | None) -> RowGroups:
    """The groups of a file that can be read by themselves: none of what is not plain Parquet."""
    none = RowGroups((), 0)
    if not find_spec("pyarrow") or format_of(source, given) != "parquet":
        return none
    import pyarrow as pa
    import pyarrow.parquet as pq

    with source.open() as file:
        if not isinstance(file, io.BufferedReader):  # unpacked from the start each time
            return none
        try:
            found = pq.ParquetFile(file).metadata
        except pa.ArrowException:
            return none  # reading it will say what is wrong
        rows = tuple(found.row_group(k).num_rows for k in range(found.num_row_groups))
        return RowGroups(rows, found.num_columns)


def pieces_of(files: Sequence[RowGroups]) -> list[list[range]]:
    """Neighbouring groups of each file, put together until a piece is worth its handling.

    Which ones depends on the files only, so that sums over pieces are always the same.

    Examples
    --------
    >>> pieces_of([RowGroups((10**6, 10**5, 10**6), columns=8), RowGroups((), 0)])
    [[range(0, 1), range(1, 3)], []]
    """
    enough = max(LEAST, sum(groups.cells for groups in files) // MOST)
    return [_joined(groups, enough) for groups in files]


def _joined(groups: RowGroups, enough: int) -> list[range]:
    found: list[range] = []
    first = cells = 0
    for last, rows in enumerate(groups.rows):
        cells += rows * groups.columns
        if cells >= enough or last == len(groups.rows) - 1:
            found.append(range(first, last + 1))
            first, cells = last + 1, 0
    return found
