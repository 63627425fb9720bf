"""The two plain forms: a column of numbers, or header rows by label columns; a proposal of either.

What a description says is taken literally. What it leaves open is proposed here, and the proposal
must give every cell of the file its place: else it says which line or column has none.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from rejoint.marginals.labelled_table import VALUE_NAMES
from rejoint.marginals.read.cells import (
    DOUBTFUL_MARKS,
    Cells,
    TableArray,
    find_decimal,
    meaning_of,
    read_cells,
    read_number,
)
from rejoint.marginals.read.description import OPEN, Description, lines_of
from rejoint.marginals.read.grid import Grid, refuse_empty
from rejoint.marginals.read.sdmx import is_bijection, long_array
from rejoint.messages import Argument, Message
from rejoint.text import cite, plural, show

Row = Sequence[str]

_STARTS = frozenset("0123456789+-.,")


@dataclass
class Proposal:
    """A description that is complete but for what is open: its options, with what to decide."""

    description: Description
    open: dict[str, str] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)  # texts of columns that were left out

    def ask(self, key: str, value: object, remark: str) -> None:
        """Propose the value of an option that only the user can confirm."""
        self.description = replace(self.description, **{key: value})  # type: ignore[arg-type]
        self.open.setdefault(key, remark)


def read_form(grid: Grid, told: Description) -> tuple[TableArray | None, Proposal]:
    """Read a grid of cells by its description, completed by a proposal; None while that is open.

    Examples
    --------
    >>> rows = [["Sex", "n"], ["f", "3"], ["m", "4"]]
    >>> array, proposal = read_form(Grid("t.csv", rows, [1, 2, 3]), Description())
    >>> array.labels, proposal.description.form, proposal.description.value
    ((('f', 'm'),), 'long', 'n')
    """
    skipped = list(lines_of(told.skip or ()))
    rows: list[tuple[int, Row]] = []  # tuples of texts cost the garbage collector nothing
    for line, cells in zip(grid.lines, grid.rows, strict=True):
        row: Row = tuple(map(str.strip, cells))
        if any(row) and not (skipped and any(a <= line <= z for a, z in skipped)):
            rows.append((line, row))
    refuse_empty(grid.where, [row for _, row in rows])
    width = max(map(_width, (row for _, row in rows)))
    for k, (line, row) in enumerate(rows):
        if len(row) != width:
            rows[k] = (line, (*row, *[""] * (width - len(row)))[:width])
    proposal = Proposal(told)
    kinds = _Kinds(_decimal(rows, told, proposal), told)
    sheet = _Layout(grid.where, rows, kinds, proposal)
    sheet.propose()
    if proposal.open:
        return None, proposal
    array = sheet.read_long() if proposal.description.form == "long" else sheet.read_cross()
    return array, proposal


def _width(row: Row) -> int:
    """Return how many cells a row has before its end is empty."""
    if row and row[-1]:
        return len(row)
    return next((k for k in range(len(row), 0, -1) if row[k - 1]), 0)


def _decimal(rows: Sequence[tuple[int, Row]], told: Description, proposal: Proposal) -> str:
    if told.decimal:
        return told.decimal
    found = find_decimal({cell for _, row in rows for cell in row if cell[:1] in _STARTS})
    if found is None:
        proposal.ask("decimal", OPEN, "'.' or ',': numbers such as 9.132 may be 9132 or about 9")
    elif found == ",":
        proposal.description = replace(proposal.description, decimal=",")
    return found or "."


class _Kinds:
    """What each text is: a number (n), a mark (m), empty (e) or words (t)."""

    def __init__(self, decimal: str, told: Description) -> None:
        self.decimal, self._told, self._known = decimal, told, dict[str, str]()

    def __call__(self, text: str) -> str:
        kind = self._known.get(text)
        if kind is None:
            kind = "e" if not text else "n" if read_number(text, self.decimal) else "t"
            if kind == "t" and (
                text.lower() in DOUBTFUL_MARKS or meaning_of(text, self._told.missing) is not None
            ):
                kind = "m"
            self._known[text] = kind
        return kind


@dataclass
class _Layout:
    """Rows of a file on their way to a table."""

    where: str
    rows: Sequence[tuple[int, Row]]
    kinds: Callable[[str], str]
    proposal: Proposal
    notes: list[str] = field(default_factory=list)

    @property
    def told(self) -> Description:
        return self.proposal.description

    def propose(self) -> None:
        """Find header rows, label columns and the form, as far as they are not told."""
        self._told_rows = self.told.header_rows
        start, header = self._find_header()
        self.notes += [" ".join(filter(None, row)) for _, row in self.rows[:start]]
        self.head = [list(row) for _, row in self.rows[start : start + header]]
        self.body = self.rows[start + header :]
        self._check_widths()
        self._drop_columns()
        self._split_notes()
        if not self.body:
            raise ValueError(f"{self.where} has a header but no rows of numbers.")
        if self.told.form != "long" and self._told_rows is None:
            self._find_column_numbers()
        columns = list(zip(*(row for _, row in self.body), strict=True))
        if len(self.head) == 1 and self._number_column(columns) is not None:
            self.notes.append(f"{self.head[0][0] or 'the first column'} numbers the rows")
            self._leave_out([0])
            columns = columns[1:]
        numeric = [self._is_numeric(column) for column in columns]
        labels = self.told.label_columns or self._count_labels(numeric)
        self._propose_form(columns, numeric, labels)
        if not self.proposal.open and self.told.form == "cross":
            self._refuse_texts(columns, numeric, labels)
        self._propose_drop(columns, labels)

    def _find_header(self) -> tuple[int, int]:
        """Return the first header row, and how many there are."""
        told = self.told
        wide = []  # rows that are no title, up to the first with a number
        for k, (_, row) in enumerate(self.rows):
            if len({*filter(None, row)}) > 1 or not row[0]:
                wide.append(k)
                if any(map(self._is_in_table, row[1:])):
                    break
        if told.skip is not None or told.form == "long":
            first = 0 if told.skip is not None else next(iter(wide), 0)
            if told.header_rows or told.form == "long":
                return first, told.header_rows or 1
        if not wide or not any(map(self._is_in_table, self.rows[wide[-1]][1][1:])):
            raise ValueError(
                f"{self.where} has no table: none of its lines has a label and a number beside it."
            )
        first = data = wide[-1]
        while first - 1 in wide and self._is_next(first - 1):
            first -= 1
        above = [cell for cell in self.rows[data - 1][1][1:] if cell] if data > first else []
        is_below = not self.rows[data][1][0] and len(set(above)) < len(self.rows[data][1]) - 1
        if first == data or is_below:
            data += 1  # numbers or years without words above them, or below a heading
        header = told.header_rows or data - first
        self.proposal.description = replace(told, header_rows=header)
        labels = [cell for cell in self.rows[data - 1][1][1:] if cell]
        numbers = [found.value for cell in labels if (found := read_number(cell))]
        if told.header_rows is None and any(not 1000 <= x <= 2999 for x in numbers):
            line = self.rows[data - 1][0]
            self.proposal.ask("header_rows", header, f"line {line} has numbers: is it the header?")
        return first, header

    def _is_in_table(self, cell: str) -> bool:
        """Return whether a cell is a number, or a mark that is no word."""
        kind = self.kinds(cell)
        return kind == "n" or (kind == "m" and (cell[0] in "[(" or cell.lower() == cell.upper()))

    def _is_next(self, k: int) -> bool:
        """Return whether a row is of the header: no blank line follows it, or it is as wide."""
        (line, row), (below, cells) = self.rows[k], self.rows[k + 1]
        skipped = lines_of(self.told.skip or ())
        gap = (
            below
            - line
            - 1
            - sum(
                min(z, below - 1) - max(a, line + 1) + 1
                for a, z in skipped
                if a < below and z > line
            )
        )
        return gap <= 0 or not row[0] or 2 * sum(map(bool, row)) > sum(map(bool, cells))

    def _check_widths(self) -> None:
        """Raise an error for a row with more cells than its header."""
        wide = max(map(_width, self.head))
        for line, row in self.body if wide < len(self.head[-1]) else ():
            if _width(row) > wide:
                raise ValueError(
                    Message(
                        "{where}, line {line}: {size}, but the header has {wide}. Quote "
                        "cells that hold the delimiter, or use {delimiter}.",
                        where=self.where,
                        line=line,
                        size=plural(_width(row), "cell"),
                        wide=wide,
                        delimiter=Argument("delimiter"),
                    )
                )

    def _drop_columns(self) -> None:
        dropped = [
            k
            for k in range(len(self.head[-1]))
            if {row[k] for row in self.head} & set(self.told.drop)
        ]
        self.proposal.dropped |= {row[k] for row in self.head for k in dropped}
        self._leave_out(dropped)

    def _leave_out(self, columns: Sequence[int]) -> None:
        keep = [k for k in range(len(self.head[-1])) if k not in columns]
        if len(keep) < len(self.head[-1]):
            self.head = [[row[k] for k in keep] for row in self.head]
            self.body = [(line, [row[k] for k in keep]) for line, row in self.body]

    def _number_column(self, columns: Sequence[Sequence[str]]) -> int | None:
        """Return the column that only numbers the rows, which others tell apart."""
        first = columns[0]
        if len(first) < 2 or first[0] not in ("0", "1"):
            return None
        start = int(first[0])
        if any(cell != str(start + k) for k, cell in enumerate(first)):
            return None
        header = self.head[-1]
        named = [name for name in header if name.lower() in VALUE_NAMES]
        value = self.told.value or (named or header)[-1]
        beside = [c for c, name in zip(columns[1:], header[1:], strict=True) if name != value]
        apart = len(set(zip(*beside, strict=True))) == len(first) if beside else False
        return 0 if apart else None

    def _split_notes(self) -> None:
        """Leave out notes below the numbers; a line of words between numbers is open."""
        has = [any(self.kinds(cell) in "nm" for cell in row[:0:-1]) for _, row in self.body]
        last = max((k for k, yes in enumerate(has) if yes), default=-1)
        self.notes += [" ".join(filter(None, row)) for _, row in self.body[last + 1 :]]
        words = [k for k in range(last + 1) if not has[k] and sum(map(bool, self.body[k][1])) == 1]
        if words and self.told.form != "long":
            lines = [str(self.body[k][0]) for k in words]
            remark = f"words without numbers between the rows: {show([self.body[words[0]][1][0]])}"
            self.proposal.ask("skip", (*(self.told.skip or ()), *lines), remark)
        self.body = self.body[: last + 1]

    def _find_column_numbers(self) -> None:
        """Ask about a first row of 1, 2, 3 ... below the header: numbers of columns."""
        line, row = self.body[0]
        numbers = [found.value for cell in row[1:] if (found := read_number(cell))]
        steps = {b - a for a, b in pairwise(numbers)}
        is_label = row[0] and read_number(row[0].strip("()")) is None
        if (
            not is_label
            and len(numbers) > 2
            and len(numbers) == len(row) - 1
            and steps == {1.0}
            and numbers[0] < 3
        ):
            lines = (*(self.told.skip or ()), str(line))
            self.proposal.ask("skip", lines, f"line {line} numbers the columns")

    def _is_numeric(self, column: Sequence[str]) -> bool:
        kinds = {self.kinds(cell) for cell in set(column)}
        return "n" in kinds and "t" not in kinds

    def _count_labels(self, numeric: Sequence[bool]) -> int:
        beside = range(1, len(numeric))
        return next((k for k in beside if numeric[k]), len(numeric))

    def _propose_form(
        self, columns: Sequence[Sequence[str]], numeric: Sequence[bool], labels: int
    ) -> None:
        told, header = self.told, self.head[-1]
        if told.form == "long" or told.value is not None:
            self.proposal.description = replace(told, form="long", header_rows=None)
            if told.value is None:
                self._propose_value(header, numeric)
            return
        named = [k for k, name in enumerate(header) if name.lower() in VALUE_NAMES and numeric[k]]
        values = [k for k in range(labels, len(numeric)) if numeric[k]]
        if len(values) > 1:  # a letter is rather a label beside others
            named = [k for k in named if len(header[k]) > 1]
        single = len(self.head) == 1 and (len(values) == 1 or len(named) == 1)
        if told.form is None and told.label_columns is None and single and (named or header[-1]):
            self.proposal.description = replace(told, form="long", header_rows=None)
            self.proposal.description = replace(self.told, value=header[(named or values)[0]])
            return
        keys = list(zip(*self._filled(columns[:labels]), strict=True))
        if told.form is None and len(set(keys)) < len(keys):
            self.proposal.description = replace(told, form="long", header_rows=None)
            self._propose_value(header, numeric)
            return
        self.proposal.description = replace(told, form="cross", label_columns=labels)

    def _propose_value(self, header: Row, numeric: Sequence[bool]) -> None:
        may = [name for name, is_number in zip(header, numeric, strict=True) if is_number and name]
        named = [name for name in may if name.lower() in VALUE_NAMES]
        if len(named) == 1 or len(may) == 1:
            self.proposal.description = replace(self.told, value=(named or may)[0])
        else:
            self.proposal.ask("value", OPEN, f"which column has the numbers: {show(may or header)}")

    def _refuse_texts(
        self, columns: Sequence[Sequence[str]], numeric: Sequence[bool], labels: int
    ) -> None:
        """Ask about columns of words or nothing among the numbers."""
        odd = [k for k in range(labels, len(columns)) if not numeric[k]]
        words = [k for k in odd if any(self.kinds(cell) == "t" for cell in columns[k])]
        if words and len(words) < len(columns) - labels:
            mark = next(cell for cell in columns[words[0]] if self.kinds(cell) == "t")
            headers = tuple(self.head[-1][k] for k in words)
            remark = f"columns with words such as {cite(mark)} among the numbers"
            self.proposal.ask("drop", (*self.told.drop, *headers), remark)
        elif len(odd) == len(columns) - labels:
            raise ValueError(f"{self.where}: no column right of the first {labels} has numbers.")

    def _propose_drop(self, columns: Sequence[Sequence[str]], labels: int) -> None:
        """Ask about columns that repeat others in codes, as variables of their own."""
        header = self.head[-1]
        if self.told.form == "long":
            if self.told.value not in header:
                return
            columns = [c for c, n in zip(columns, header, strict=True) if n != self.told.value]
            header = [n for n in header if n != self.told.value]
            labels = len(columns)
        columns = self._filled(columns[:labels])
        twice = {
            j if sum(map(len, columns[j])) <= sum(map(len, columns[k])) else k
            for k in range(labels)
            for j in range(k)
            if len(set(columns[k])) > 1 and is_bijection(columns[j], columns[k])
        }
        if twice and len(twice) < labels and all(header[k] for k in twice):
            drop = (*self.told.drop, *(header[k] for k in sorted(twice)))
            self.proposal.ask("drop", drop, "repeats another column in other words")

    @staticmethod
    def _filled(columns: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return label columns whose labels are printed once for several rows, repeated."""
        filled = []
        for k, column in enumerate(columns):
            if "" not in column:
                filled.append(list(column))
                continue
            repeated, last = [], ""
            for cell in column:
                last = cell or (last if k < len(columns) - 1 else "")
                repeated.append(last)
            filled.append(repeated)
        return filled

    def _cells(self, texts: Sequence[str]) -> Cells:
        return read_cells(texts, self.kinds.decimal)  # type: ignore[attr-defined]

    def read_long(self) -> TableArray:
        """Read the long form: every column but that of the numbers is a variable."""
        header, value = self.head[-1], self.told.value
        if len(self.head) > 1:
            raise ValueError(
                f"{self.where}: the long form has one header row, not {len(self.head)}."
            )
        if header.count(str(value)) != 1:
            raise ValueError(
                f"{self.where}: value={cite(value)} is not one of its columns: {show(header)}."
            )
        at = header.index(str(value))
        names = [name for k, name in enumerate(header) if k != at]
        if "" in names or len(set(names)) < len(names):
            what = "has no name" if "" in names else "has a name that another one has"
            number = 1 + (
                header.index("")
                if "" in names
                else next(k for k, n in enumerate(header) if header.count(n) > 1)
            )
            raise ValueError(
                f"{self.where}: column {number} {what}. Name it in the file, or leave "
                "it out (drop=)."
            )
        columns = [[row[k] for _, row in self.body] for k in range(len(header)) if k != at]
        for name, column in zip(names, columns, strict=True):
            if "" in column:
                line = self.body[column.index("")][0]
                raise ValueError(
                    f"{self.where}, line {line}: the label of {cite(name)} is empty. "
                    "Leave the line out (skip=) or the column (drop=)."
                )
        cells = self._cells([row[at] for _, row in self.body])
        array = long_array(self.where, names, columns, cells, form="long")
        return replace(array, units={"": str(value)}, notes=tuple(self.notes))

    def read_cross(self) -> TableArray:
        """Read the cross form: a cell for each row of labels and each column of headers."""
        count = self.told.label_columns or 1
        if count >= len(self.head[-1]):
            raise ValueError(f"{self.where}: label_columns={count} leaves no column of numbers.")
        rows = self._filled(list(zip(*(row[:count] for _, row in self.body), strict=True)))
        for (line, _), *labels in zip(self.body, *rows, strict=True):
            if "" in labels:
                raise ValueError(
                    f"{self.where}, line {line}: a label is empty. Leave the line out "
                    "(skip=), or say how many columns have labels (label_columns=)."
                )
        names, heads, heading = self._headers(count)
        wide = len(self.head[-1]) - count
        columns = [[label for label in column for _ in range(wide)] for column in rows]
        columns += [list(head) * len(self.body) for head in heads]
        cells = self._cells([cell for _, row in self.body for cell in row[count:]])
        array = long_array(self.where, names, columns, cells, form="cross")
        return replace(array, notes=tuple(self.notes), heading=heading)

    def _headers(self, count: int) -> tuple[list[str], list[list[str]], str]:
        """Return the names of all variables, the labels in headers, and a name that heads all."""
        corner = [next((r[k] for r in reversed(self.head) if r[k]), "") for k in range(count)]
        heads, across = list[list[str]](), list[str]()
        heading = name = ""
        above = [""] * (len(self.head[-1]) - count)
        for k, row in enumerate(self.head):
            labels, last = [], ""
            for j, cell in enumerate(row[count:]):
                is_new = j > 0 and above[j] != above[j - 1]
                last = cell or ("" if is_new or k == len(self.head) - 1 else last)
                labels.append(last or above[j])
            only = {label for label in labels if label}
            if len(only) == 1 and k < len(self.head) - 1:
                name = heading = only.pop()  # what is over all columns names what is below it
                continue
            beside = row[count - 1] if k < len(self.head) - 1 and row[count - 1] else ""
            across.append(name or ("" if beside == corner[-1] else beside))
            heads.append(labels)
            name, above = "", labels
        if "" in heads[-1]:
            at = count + 1 + heads[-1].index("")
            raise ValueError(f"{self.where}: column {at} has numbers, but no header.")
        corner[-1], slash, rest = (part.strip() for part in corner[-1].partition("\\"))
        across[-1] = rest if slash else across[-1]
        parts = [head.partition("=") for head in heads[-1]]
        if len({own for own, _, _ in parts}) == 1 and all(label for _, _, label in parts):
            across[-1], heads[-1] = parts[0][0].strip(), [label.strip() for _, _, label in parts]
        return [*corner, *across], heads, heading
