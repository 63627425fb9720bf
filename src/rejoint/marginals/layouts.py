r"""Layouts of table files: a header and rows of text, read into a labelled table.

Long: a column for each variable and one with the numbers (named like counts or shares), and
perhaps one with standard errors. One file may hold several tables: then cells of variables that a
row does not speak of are empty, or a column ``table`` tells them apart.

Wide: a cross-tabulation. The columns before the last corner hold labels of row variables, the
headers after it those of the column variable, whose name stands in the corner, ``smoke \ age``, in
every header, ``age=young``, or comes last in the name of the file, ``smoke__age.csv``.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.labels import show
from rejoint.marginals.cells import ANYTHING, SUPPRESSED, Cell, decimals, read_cell
from rejoint.marginals.forms import VALUE_NAMES, LabelledTable
from rejoint.marginals.margins import TOTALS, split_totals

__all__ = ["Options", "read_layout"]

Names = tuple[str, ...]
Row = tuple[int, list[str]]

ERROR_NAMES = {"se", "stderr", "std_error", "standard_error", "standard error", "error"}
_PERCENT = {"percent", "percentage", "pct"}
TABLE_NAMES = {"table", "table_name", "table_id"}

_CORNER = re.compile(r"(.+?)\s*\\\s*(.+)")
_BETWEEN = re.compile(r"__| x | by |,")


@dataclass(frozen=True)
class Options:
    """What the user said about how cells are written."""

    suppressed: Mapping[str, tuple[float, float]] = field(
        default_factory=lambda: dict.fromkeys(SUPPRESSED, ANYTHING)
    )
    decimal: str = "."
    noisy: bool = False
    totals: Collection[str] = TOTALS


@dataclass
class Pile:
    """Cells of one table as they are gathered: labels, numbers, standard errors."""

    names: Names
    labels: list[tuple[str, ...]] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    digits: int = 0
    errors: list[float] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    column: str = ""

    def add(self, labels: tuple[str, ...], text: str, line: int, where: str, how: Options) -> None:
        """Read one cell; what is no number is an error that says where."""
        try:
            cell = read_cell(text, how.suppressed, how.decimal)
        except ValueError:
            at = ", ".join(f"{n}={x!r}" for n, x in zip(self.names, labels, strict=True))
            raise ValueError(
                f"{where}, line {line}, cell {at}: {text.strip()!r} is neither a number nor a mark "
                "for a cell that is not known. If it is such a mark say "
                f"suppressed=[{text.strip()!r}]; if it means nothing was counted, write 0."
            ) from None
        if cell.known:
            self.digits = max(self.digits, decimals(text, how.decimal))
        self.labels.append(labels)
        self.cells.append(cell)
        self.lines.append(line)


def read_layout(rows: Iterable[Row], where: str, stem: str, how: Options) -> list[LabelledTable]:
    r"""Read the rows of one file into its tables, totals included.

    Examples
    --------
    >>> rows = [(1, ["smoke \\ age", "young", "old"]), (2, ["yes", "3", "<5"])]
    >>> table = read_layout(rows, "a.csv", "a", Options())[0]
    >>> table.names, table.values, table.bounds[1]
    (('smoke', 'age'), array([[ 3., nan]]), array([[3., 4.]]))
    """
    rows = list(rows)
    if not rows:
        raise ValueError(f"{where} is empty: a table needs a header and rows.")
    (line, header), body = rows[0], rows[1:]
    header = [name.strip() for name in header]
    for at, row in body:
        if len(row) != len(header):
            raise ValueError(
                f"{where}, line {at}: {len(row)} cells, but the header (line {line}) has "
                f"{len(header)}. Quote cells that hold the delimiter, or say delimiter=."
            )
    if not body:
        raise ValueError(f"{where} has a header but no rows.")
    wide = _wide(header, stem)
    if wide is not None:
        piles = _read_wide(body, *wide, where, how)
    else:
        piles = _read_long(header, body, stem, where, how)
    return [_as_table(pile, where, how) for pile in piles]


def _wide(header: Sequence[str], stem: str) -> tuple[Names, str, list[str]] | None:
    """Row variables, column variable and its labels, if the file is a cross-tabulation."""
    for i, name in enumerate(header):
        if (found := _CORNER.fullmatch(name)) and i + 1 < len(header):
            return (*header[:i], found[1]), found[2], list(header[i + 1 :])
    pairs = [name.partition("=") for name in header]
    named = [i for i, (name, sign, _) in enumerate(pairs) if sign and name]
    if named and named[0] > 0 and named == list(range(named[0], len(header))):
        names = {pairs[i][0].strip() for i in named}
        if len(names) == 1:
            labels = [pairs[i][2].strip() for i in named]
            return tuple(header[: named[0]]), names.pop(), labels
    names_of_file = tuple(name.strip() for name in _BETWEEN.split(stem))
    rows = names_of_file[:-1]
    if rows and tuple(header[: len(rows)]) == rows and names_of_file[-1] not in header:
        left = header[len(rows) :]
        if left and not {name.lower() for name in left} <= VALUE_NAMES | ERROR_NAMES:
            return rows, names_of_file[-1], list(left)
    return None


def _read_wide(
    body: Sequence[Row],
    rows: Names,
    column: str,
    labels: list[str],
    where: str,
    how: Options,
) -> list[Pile]:
    pile = Pile((*rows, column))
    for i, label in enumerate(labels):
        if not label:
            raise ValueError(f"{where}: column {len(rows) + i + 1} has no label of {column!r}.")
    above: list[str] = [""] * len(rows)
    for line, row in body:
        # Labels of outer rows are often printed once, at the first of their rows.
        *outer, last = (cell.strip() for cell in row[: len(rows)])
        above = said = [*(new or old for new, old in zip(outer, above, strict=False)), last]
        if not all(said):
            raise ValueError(
                f"{where}, line {line}: the label of {rows[said.index('')]!r} is empty."
            )
        for label, text in zip(labels, row[len(rows) :], strict=True):
            pile.add((*said, label), text, line, where, how)
    return [pile]


def _read_long(
    header: Sequence[str], body: Sequence[Row], stem: str, where: str, how: Options
) -> list[Pile]:
    value, error, key = _columns(header, stem, where)
    variables = [i for i in range(len(header)) if i not in (value, error, key)]
    for i in variables:
        if not header[i]:
            raise ValueError(f"{where}: column {i + 1} has no name.")
    twice = {header[i] for i in variables if [header[j] for j in variables].count(header[i]) > 1}
    if twice:
        raise ValueError(f"{where}: two columns are called {show(sorted(twice))}.")
    piles: dict[tuple[str, Names], Pile] = {}
    for line, row in body:
        said = {header[i]: row[i].strip() for i in variables if row[i].strip()}
        if not said:
            raise ValueError(
                f"{where}, line {line}: no variable has a label. A grand total has the label "
                "'Total' in each."
            )
        names = tuple(said)
        group = (row[key].strip() if key is not None else "", names)
        pile = piles.setdefault(group, Pile(names, column=header[value]))
        pile.add(tuple(said.values()), row[value], line, where, how)
        if error is not None:
            pile.errors.append(_standard_error(row[error], line, where, how))
    return list(piles.values())


def _columns(header: Sequence[str], stem: str, where: str) -> tuple[int, int | None, int | None]:
    """Which columns hold numbers, standard errors and the table's name."""
    low = [name.lower() for name in header]
    error = next((i for i, name in enumerate(low) if name in ERROR_NAMES), None)
    key = next((i for i, name in enumerate(low) if name in TABLE_NAMES), None)
    found = [i for i, name in enumerate(low) if name in VALUE_NAMES and i not in (error, key)]
    if not found:
        names = {name.strip() for name in _BETWEEN.split(stem)}
        found = [i for i, n in enumerate(header) if n not in names and i not in (error, key)]
        found = found if names & set(header) else []
    if len(found) != 1:
        raise ValueError(
            f"{where}: which column holds the numbers? Its header is {show(list(header))}. Name "
            "one of them 'count', 'share' or 'percent' (long form), or write a cross-tabulation "
            "with the names of both variables in its corner: 'smoke \\ age'."
        )
    return found[0], error, key


def _standard_error(text: str, line: int, where: str, how: Options) -> float:
    try:
        cell = read_cell(text, how.suppressed, how.decimal)
    except ValueError:
        cell = Cell(-1.0, 0.0, 0.0)
    if cell.known and not (0.0 <= cell.value < math.inf):
        raise ValueError(
            f"{where}, line {line}: {text.strip()!r} is no standard error; it must be a number "
            "that is not negative, or empty."
        )
    return cell.value


def _as_table(pile: Pile, where: str, how: Options) -> LabelledTable:
    """Scatter gathered cells into dense arrays; combinations that are left out have zero."""
    axes = [
        {label: i for i, label in enumerate(dict.fromkeys(labels))}
        for labels in zip(*pile.labels, strict=True)
    ]
    shape = tuple(len(axis) for axis in axes)
    values, low, high = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    seen: NDArray[np.intp] = np.zeros(shape, dtype=np.intp)
    for labels, cell, line in zip(pile.labels, pile.cells, pile.lines, strict=True):
        at = tuple(axis[label] for axis, label in zip(axes, labels, strict=True))
        if seen[at]:
            cells = ", ".join(f"{n}={x!r}" for n, x in zip(pile.names, labels, strict=True))
            raise ValueError(
                f"{where}, line {line}: the cell {cells} was given on line {seen[at]} already."
            )
        seen[at] = line
        values[at], low[at], high[at] = cell.value, cell.low, cell.high
    known = [cell for cell in pile.cells if cell.known]
    errors = [e for e in pile.errors if not math.isnan(e)]
    table = LabelledTable(
        pile.names,
        tuple(tuple(axis) for axis in axes),
        values,
        whole=bool(known) and pile.digits == 0 and all(c.value == int(c.value) for c in known),
        column=pile.column,
        bounds=(low, high) if np.isnan(values).any() else None,
        percent=any(c.percent for c in known) or pile.column.lower() in _PERCENT,
        digit=10.0**-pile.digits,
        error=float(np.sqrt(np.mean(np.square(errors)))) if errors else None,
        noisy=how.noisy,
        source=where,
    )
    return split_totals(table, seen > 0, how.totals)
