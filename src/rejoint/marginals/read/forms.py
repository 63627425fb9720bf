"""The two plain forms: a column of numbers, or header rows by label columns; a proposal of either.

What a description says is taken literally. What it leaves open is proposed here, and the proposal
must give every cell of the file its place: else it says which line or column has none.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise

from rejoint.marginals.labelled_table import VALUE_NAMES
from rejoint.marginals.read.cells import (
    DOUBTFUL_MARKS,
    TableArray,
    find_decimal,
    long_array,
    meaning_of,
    read_cells,
    read_number,
)
from rejoint.marginals.read.description import OPEN, Description, Draft, lines_of
from rejoint.marginals.read.grid import Grid
from rejoint.marginals.read.sdmx import is_bijection
from rejoint.text import cite, plural, show

Column = Sequence[str]

_STARTS = frozenset("0123456789+-.,")


def read_form(grid: Grid, draft: Draft) -> TableArray | None:
    """Read a grid of cells by its description, completed by a proposal; None while that is open."""
    layout = _Layout(grid, draft)
    layout.propose()
    if draft.open:
        return None
    return layout.read_long() if draft.description.form == "long" else layout.read_cross()


def _width(row: Sequence[str]) -> int:
    """Return how many cells a row has before its end is empty."""
    return next((k for k in range(len(row), 0, -1) if row[k - 1]), 0)


class _Layout:
    """Rows of a file on their way to a table."""

    def __init__(self, grid: Grid, draft: Draft) -> None:
        told = draft.description
        self.where, self.draft = grid.where, draft
        self.skipped = list(lines_of(told.skip or ()))
        kept = [
            k
            for k, row in enumerate(grid.rows)
            if any(row) and not (self.skipped and self._is_skipped(grid.lines[k]))
        ]
        if len(kept) < 2:
            what = (
                "has a header but no rows" if kept else "is empty: a table needs a header and rows"
            )
            raise ValueError(f"{self.where} {what} (delimiter= says how cells are separated).")
        self.lines, rows = [grid.lines[k] for k in kept], [grid.rows[k] for k in kept]
        width = max(len(row) if row[-1] else _width(row) for row in rows)
        self.rows = [
            row if len(row) == width else (*row, *[""] * (width - len(row)))[:width] for row in rows
        ]
        self.notes: list[str] = []
        texts = set().union(*rows)
        decimal = told.decimal or find_decimal(text for text in texts if text[:1] in _STARTS)
        if decimal is None:
            draft.ask("decimal", OPEN, "'.' or ',': numbers such as 9.132 may be 9132 or about 9")
        elif decimal == ",":
            draft.propose(decimal=",")
        self.decimal = decimal or "."
        self.kind = cache(self._kind)

    def _kind(self, text: str) -> str:
        """Return what a text is: a number (n), a mark (m), empty (e) or words (t)."""
        if not text or read_number(text, self.decimal):
            return "n" if text else "e"
        is_mark = text.lower() in DOUBTFUL_MARKS or meaning_of(text, self.told.missing)
        return "m" if is_mark else "t"

    @property
    def told(self) -> Description:
        return self.draft.description

    def _is_skipped(self, line: int) -> bool:
        return any(first <= line <= last for first, last in self.skipped)

    def propose(self) -> None:
        """Find header rows, label columns and the form, as far as they are not told."""
        is_told = self.told.header_rows is not None
        start, header = self._find_header()
        self.notes += [" ".join(filter(None, row)) for row in self.rows[:start]]
        self.head, self.body = self.rows[start : start + header], self.rows[start + header :]
        self.lines = self.lines[start + header :]
        self._check_widths()
        self._drop_columns()
        self._split_notes()
        if not self.body:
            raise ValueError(f"{self.where} has a header but no rows of numbers.")
        self.columns: list[Column] = list(zip(*self.body, strict=True))
        if self.told.form != "long" and not is_told:
            self._find_column_numbers()
        if len(self.head) == 1 and self._numbers_rows():
            self.notes.append(f"{self.head[0][0] or 'the first column'} numbers the rows")
            self.head, self.columns = [self.head[0][1:]], self.columns[1:]
        self.texts = [{*column} for column in self.columns]
        kinds = [{*map(self.kind, texts)} for texts in self.texts]
        numeric = ["n" in of and "t" not in of for of in kinds]
        labels = self.told.label_columns or (*numeric[1:], True).index(True) + 1
        labels = min(labels, len(numeric))
        self._propose_form(numeric, labels)
        if not self.draft.open and self.told.form == "cross":
            self._refuse_texts(numeric, labels)
        self._propose_drop(labels)

    def _find_header(self) -> tuple[int, int]:
        """Return the first header row, and how many there are."""
        told = self.told
        wide = []  # rows that are no title, up to the first with a number
        has_number = False
        for k, row in enumerate(self.rows):
            if len({*filter(None, row)}) > 1 or not row[0]:
                wide.append(k)
                if has_number := any(map(self._is_in_table, row[1:])):
                    break
        if told.skip is not None or told.form == "long":
            first = 0 if told.skip is not None else next(iter(wide), 0)
            if told.header_rows or told.form == "long":
                return first, told.header_rows or 1
        if not has_number:
            what = "none of its lines has a label and a number beside it"
            raise ValueError(f"{self.where} has no table: {what}.")
        first = data = wide[-1]
        while first - 1 in wide and self._is_next(first - 1):
            first -= 1
        above = [cell for cell in self.rows[data - 1][1:] if cell] if data > first else []
        row = self.rows[data]
        if first == data or (not row[0] and len({*above}) < len(row) - 1):
            data += 1  # numbers or years without words above them, or below a heading
        header = told.header_rows or data - first
        self.draft.propose(header_rows=header)
        line, row = self.lines[data - 1], self.rows[data - 1]
        numbers = [number.value for cell in row[1:] if (number := read_number(cell))]
        if told.header_rows is None and any(not 1000 <= x <= 2999 for x in numbers):
            self.draft.ask("header_rows", header, f"line {line} has numbers: is it the header?")
        return first, header

    def _is_in_table(self, cell: str) -> bool:
        """Return whether a cell is a number, or a mark that is no word."""
        kind = self.kind(cell)
        return kind == "n" or (kind == "m" and (cell[0] in "[(" or cell.lower() == cell.upper()))

    def _is_next(self, k: int) -> bool:
        """Return whether a row is of the header: no blank line follows it, or it is as wide."""
        row, below = self.rows[k], self.rows[k + 1]
        between = range(self.lines[k] + 1, self.lines[k + 1])
        if all(map(self._is_skipped, between)) or not row[0]:
            return True
        return 2 * sum(map(bool, row)) > sum(map(bool, below))

    def _check_widths(self) -> None:
        """Raise an error for a row with more cells than its header."""
        wide = max(map(_width, self.head))
        for line, row in zip(self.lines, self.body, strict=True):
            if wide < len(row) and any(row[wide:]):
                size = plural(_width(row), "cell")
                raise ValueError(
                    f"{self.where}, line {line}: {size}, but the header has {wide}. Quote cells "
                    "that hold the delimiter, or use delimiter=."
                )

    def _drop_columns(self) -> None:
        heads = list(zip(*self.head, strict=True))
        kept = [k for k, texts in enumerate(heads) if not {*texts} & {*self.told.drop}]
        if not kept:
            raise ValueError(f"{self.where}: drop= leaves no column.")
        if len(kept) < len(heads):
            self.draft.dropped |= {t for k, of in enumerate(heads) if k not in kept for t in of}
            self.head = [[row[k] for k in kept] for row in self.head]
            self.body = [[row[k] for k in kept] for row in self.body]

    def _numbers_rows(self) -> bool:
        """Return whether the first column only numbers the rows, which others tell apart."""
        first, header = self.columns[0], self.head[-1]
        if len(first) < 2 or first[0] not in ("0", "1"):
            return False
        if any(cell != str(int(first[0]) + k) for k, cell in enumerate(first)):
            return False
        named = [name for name in header if name.lower() in VALUE_NAMES]
        value = self.told.value or (named or header)[-1]
        pairs = zip(self.columns[1:], header[1:], strict=True)
        beside = [column for column, name in pairs if name != value]
        return bool(beside) and len({*zip(*beside, strict=True)}) == len(first)

    def _split_notes(self) -> None:
        """Leave out notes below the numbers; a line of words between numbers is open."""

        def has_number(row: Sequence[str]) -> bool:
            return any(self.kind(cell) in "nm" for cell in row[:0:-1])

        end = len(self.body)
        while end and not has_number(self.body[end - 1]):
            end -= 1
        self.notes += [" ".join(filter(None, row)) for row in self.body[end:]]
        self.body, self.lines = self.body[:end], self.lines[:end]
        alone = [k for k, row in enumerate(self.body) if row.count("") == len(row) - 1]
        words = [k for k in alone if not has_number(self.body[k])]
        if words and self.told.form != "long":
            lines = [str(self.lines[k]) for k in words]
            text = next(filter(None, self.body[words[0]]))
            remark = f"words without numbers between the rows: {show([text])}"
            self.draft.ask("skip", (*(self.told.skip or ()), *lines), remark)

    def _find_column_numbers(self) -> None:
        """Ask about a first row of 1, 2, 3 ... below the header: numbers of columns."""
        label, *cells = (column[0] for column in self.columns)
        numbers = [number.value for cell in cells if (number := read_number(cell))]
        steps = {b - a for a, b in pairwise(numbers)}
        is_label = label and read_number(label.strip("()")) is None
        if not is_label and 2 < len(numbers) == len(cells) and steps == {1.0} and numbers[0] < 3:
            lines = (*(self.told.skip or ()), str(self.lines[0]))
            self.draft.ask("skip", lines, f"line {self.lines[0]} numbers the columns")

    def _propose_form(self, numeric: Sequence[bool], labels: int) -> None:
        told, header = self.told, self.head[-1]
        values = [k for k in range(labels, len(numeric)) if numeric[k]]
        may = [k for k, name in enumerate(header) if numeric[k] and name]
        named = [k for k in may if header[k].lower() in VALUE_NAMES]
        value = told.value
        is_long = told.form == "long" or value is not None
        if not is_long and told.form is None:
            # A letter is rather a label beside others.
            single = [k for k in named if len(header[k]) > 1] if len(values) > 1 else named
            is_one = len(self.head) == 1 and 1 in (len(single), len(values))
            if is_one and told.label_columns is None and (single or header[-1]):
                value, is_long = header[(single or values)[0]], True
            keys = [] if is_long else self._filled(labels)
            is_long = is_long or len({*zip(*keys, strict=True)}) < len(keys[0])
        if not is_long:
            self.draft.propose(form="cross", label_columns=labels)
            return
        self.draft.propose(form="long", header_rows=None)
        if value is None and (len(named) == 1 or len(may) == 1):
            value = header[(named or may)[0]]
        if value is None:
            columns = show([header[k] for k in may] or header)
            self.draft.ask("value", OPEN, f"which column has the numbers: {columns}")
        else:
            self.draft.propose(value=value)

    def _refuse_texts(self, numeric: Sequence[bool], labels: int) -> None:
        """Ask about columns of words or nothing among the numbers."""
        odd = [k for k in range(labels, len(numeric)) if not numeric[k]]
        texts = {k: [cell for cell in self.columns[k] if self.kind(cell) == "t"] for k in odd}
        words = [k for k in odd if texts[k]]
        if words and len(words) < len(numeric) - labels:
            headers = tuple(self.head[-1][k] for k in words)
            remark = f"columns with words such as {cite(texts[words[0]][0])} among the numbers"
            self.draft.ask("drop", (*self.told.drop, *headers), remark)
        elif len(odd) == len(numeric) - labels:
            raise ValueError(f"{self.where}: no column right of the first {labels} has numbers.")

    def _propose_drop(self, labels: int) -> None:
        """Ask about columns that repeat others in codes, as variables of their own."""
        header = list(self.head[-1])
        beside: Sequence[int] = range(labels)
        if self.told.form == "long":
            if self.told.value not in header:
                return
            beside = [k for k, name in enumerate(header) if name != self.told.value]
        columns = dict(zip(beside, self._filled(beside), strict=True))
        number = {k: len(self.texts[k] - {""}) for k in beside}
        twice = {
            min(j, k, key=lambda m: (sum(map(len, columns[m])), m))
            for j, k in combinations(beside, 2)
            if 1 < number[j] == number[k] and is_bijection(columns[j], columns[k])
        }
        if twice and len(twice) < len(columns) and all(header[k] for k in twice):
            drop = (*self.told.drop, *(header[k] for k in sorted(twice)))
            self.draft.ask("drop", drop, "repeats another column in other words")

    def _filled(self, beside: Sequence[int] | int) -> list[Column]:
        """Return label columns whose labels are printed once for several rows, repeated."""
        chosen = range(beside) if isinstance(beside, int) else beside
        filled: list[Column] = []
        for k in chosen:
            column, last = self.columns[k], ""
            if "" in column and k != chosen[-1]:
                column = [last := cell or last for cell in column]
            filled.append(column)
        return filled

    def read_long(self) -> TableArray:
        """Read the long form: every column but that of the numbers is a variable."""
        header, value = list(self.head[-1]), str(self.told.value)
        if len(self.head) > 1:
            rows = len(self.head)
            raise ValueError(f"{self.where}: the long form has one header row, not {rows}.")
        if header.count(value) != 1:
            listed = show(header)
            raise ValueError(
                f"{self.where}: value={cite(value)} is not one of its columns: {listed}."
            )
        for k, name in enumerate(header):
            if not name or header.count(name) > 1:
                what = "a name that another one has" if name else "no name"
                advice = "Name it in the file, or leave it out (drop=)"
                raise ValueError(f"{self.where}: column {k + 1} has {what}. {advice}.")
        at = header.index(value)
        columns = [column for k, column in enumerate(self.columns) if k != at]
        names = [name for name in header if name != value]
        for name, column in zip(names, columns, strict=True):
            if "" in column:
                line = self.lines[column.index("")]
                advice = "Leave the line out (skip=) or the column (drop=)"
                what = f"the label of {cite(name)} is empty"
                raise ValueError(f"{self.where}, line {line}: {what}. {advice}.")
        cells = read_cells(self.columns[at], self.decimal)
        array = long_array(self.where, names, columns, cells, form="long")
        return replace(array, units={"": value}, notes=tuple(self.notes))

    def read_cross(self) -> TableArray:
        """Read the cross form: a cell for each row of labels and each column of headers."""
        count = self.told.label_columns or 1
        if count >= len(self.columns):
            raise ValueError(f"{self.where}: label_columns={count} leaves no column of numbers.")
        rows = self._filled(count)
        for line, *labels in zip(self.lines, *rows, strict=True):
            if "" in labels:
                advice = "skip=), or say how many columns have labels (label_columns="
                what = "a label is empty. Leave the line out"
                raise ValueError(f"{self.where}, line {line}: {what} ({advice}).")
        names, heads, heading = self._headers(count)
        numbers = self.columns[count:]
        columns = [[label for label in column for _ in numbers] for column in rows]
        columns += [list(head) * len(self.lines) for head in heads]
        texts = [cell for row in zip(*numbers, strict=True) for cell in row]
        cells = read_cells(texts, self.decimal)
        array = long_array(self.where, names, columns, cells, form="cross")
        return replace(array, notes=tuple(self.notes), heading=heading)

    def _headers(self, count: int) -> tuple[list[str], list[list[str]], str]:
        """Return the names of all variables, the labels in headers, and a name that heads all."""
        corner = [next((r[k] for r in reversed(self.head) if r[k]), "") for k in range(count)]
        heads, across = list[list[str]](), list[str]()
        heading = name = ""
        above = [""] * (len(self.columns) - count)
        for k, row in enumerate(self.head):
            is_last = k == len(self.head) - 1
            labels, last = [], ""
            for j, cell in enumerate(row[count:]):
                is_new = j > 0 and above[j] != above[j - 1]
                last = cell or ("" if is_new or is_last else last)
                labels.append(last or above[j])
            if not is_last and len({*labels} - {""}) == 1:
                name = heading = max(labels)  # what is over all columns names what is below it
                continue
            beside = "" if is_last or row[count - 1] == corner[-1] else row[count - 1]
            across.append(name or beside)
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
