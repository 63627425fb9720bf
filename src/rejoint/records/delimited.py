"""Delimited text into columns: codes of distinct texts, numbers where all texts are numbers."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from rejoint.domain import Domain, Level, Variable
from rejoint.domain.arrays import numbers_if_all
from rejoint.domain.columns import Column, column_of_distinct
from rejoint.domain.labels import show
from rejoint.records.frames import Frame
from rejoint.records.sightings import MOST
from rejoint.records.sources import Source
from rejoint.records.text import Dialect, read_rows
from rejoint.remarks import remark

__all__ = ["TextColumn", "check_names", "numbers_of", "read_blocks", "typed_columns"]

_WHOLE = re.compile(r"[+-]?(?:0|[1-9]\d{0,17})")
_REAL = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?")


class TextColumn:
    """Cells of one column as they are read: each distinct text once, and codes into them.

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

    def add(self, cell: str) -> None:
        """Take one more cell; blanks around it mean nothing."""
        code = self.known.get(cell)
        if code is None:
            text = cell.strip()
            code = self.known.get(text)
            if code is None:
                code = self.known[text] = len(self.texts)
                self.texts.append(text)
            self.known[cell] = code
        self.codes.append(code)

    def take_codes(self) -> NDArray[np.int32]:
        """The codes so far; the next cells start anew, the texts stay."""
        codes = np.array(self.codes, dtype=np.int32)
        self.codes = []
        return codes

    def forget(self, most: int) -> None:
        """Let the texts go where they are more than so many: numbers, of which none comes twice."""
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
    """Names, columns and number of rows of each block of at most ``size`` rows (None: all).

    Columns gather their texts over all blocks, so long as these are levels; the codes are those of
    the block.
    """
    rows = read_rows(source, dialect)
    first = next(rows, None)
    if first is None:
        raise ValueError(f"{source.name} is empty: it has neither a header nor rows.")
    names, wide, where = _names(source, first, header)
    picked = wanted(names)
    columns = [TextColumn(missing) for _ in picked]
    adders = [(column.add, at) for column, at in zip(columns, picked, strict=True)]
    names = tuple(names[at] for at in picked)
    count, total = 0, 0

    def take(line: int, row: list[str]) -> None:
        if len(row) != wide:
            raise ValueError(
                f"{source.name}, line {line}: {len(row)} cells, but {where} has {wide}. Quote "
                f"cells that hold the delimiter ({dialect.delimiter!r}), or say delimiter=."
            )
        for add, at in adders:
            add(row[at])

    if header is not True:
        take(*first)
        count = 1
    for line, row in rows:
        take(line, row)
        count += 1
        if count == size:
            yield names, columns, count
            count, total = 0, total + count
            for column in columns:
                column.forget(MOST)
    if count or not total:
        yield names, columns, count


def _names(
    source: Source, first: tuple[int, list[str]], header: bool | Sequence[str]
) -> tuple[tuple[str, ...], int, str]:
    """Names of the columns, how many there are, and what says so."""
    line, row = first
    where = f"the first row (line {line})"
    if header is True:
        return tuple(cell.strip() for cell in row), len(row), f"the header (line {line})"
    if header is False:
        return tuple(f"x{n}" for n in range(len(row))), len(row), where
    names = tuple(str(name) for name in header)
    if len(names) != len(row):
        raise ValueError(
            f"{source.name}: {len(names)} names are given for {len(row)} columns (line {line})."
        )
    return names, len(row), where


def check_names(source: Source, names: Sequence[str]) -> list[int]:
    """Which columns have a name; one without is left out, a name twice is an error."""
    there = [at for at, name in enumerate(names) if name]
    if len(there) < len(names):
        gone = [at + 1 for at, name in enumerate(names) if not name]
        remark(
            f"{source.name}: column {', '.join(map(str, gone))} has no name and is left out "
            "(row numbers, perhaps)."
        )
    twice = sorted({name for name in names if name and list(names).count(name) > 1})
    if twice:
        places = [at + 1 for at, name in enumerate(names) if name == twice[0]]
        raise ValueError(
            f"{source.name}: columns {', '.join(map(str, places))} are all called {twice[0]!r}. "
            f"Each needs a name of its own ({show(twice)}); rename them, or give header=[...]."
        )
    return there


def typed_columns(
    names: Sequence[str], columns: Sequence[TextColumn], rows: int, domain: Domain | None
) -> Frame:
    """The block as a frame: texts as the domain has its levels, or as numbers where all are.

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
    """One column: its texts become labels, of the type that the variable's have."""
    if variable is not None:
        known: dict[str, Level] = {str(level): level for level in variable.levels}
        known |= {str(x).lower(): x for x in variable.levels if isinstance(x, bool)}
        if variable.kind != "binned" and all(isinstance(x, str | bool) for x in variable.levels):
            return column_of_distinct([known.get(text, text) for text in texts], codes, name)
        labels = numbers_of(texts)
        if labels is None and variable.kind != "binned":
            labels = [known.get(text, text) for text in texts]
        return column_of_distinct(texts if labels is None else labels, codes, name)
    numbers = numbers_of(texts)
    if numbers is None:
        return column_of_distinct(texts, codes, name)
    return numbers_if_all(column_of_distinct(numbers, codes, name))


def numbers_of(texts: Sequence[str]) -> list[Level] | None:
    """All texts as numbers, None if one is none: ``007`` is a name, not seven.

    Examples
    --------
    >>> numbers_of(["1", "-2"]), numbers_of(["1.5", "2"]), numbers_of(["007"])
    ([1, -2], [1.5, 2.0], None)
    """
    if all(_WHOLE.fullmatch(text) for text in texts):
        return [int(text) for text in texts]
    if all(_REAL.fullmatch(text) for text in texts):
        return [float(text) for text in texts]
    return None
