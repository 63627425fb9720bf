"""The grid parser: a sheet of cells into blocks, each with headers, stubs, notes and numbers.

A block is a rectangle of numbers. The rows above it that have texts over its columns are its
header; the columns to its left are its stub. Every column and every row of numbers gets a path of
labels: one label for each row of the header and each column of the stub. Labels that are printed
once for several columns or rows (merged, or left out) are filled in. Rows that have a label but no
numbers are headings of the rows below them, indented labels are parts of the label above them.
`ALL` in a path means that a row or column is not broken down there: it is a total.
"""

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise

from rejoint.marginals.labelled_table import VALUE_NAMES as TABLE_VALUE_NAMES
from rejoint.marginals.sheet import Kind, NotATableError, Sheet, Text, kind_of_cell
from rejoint.marginals.vocabulary import (
    BETWEEN,
    concept_of_labels,
    concept_of_name,
    is_count_word,
    is_total_word,
    plain_text,
    split_corner,
    unit_word,
)
from rejoint.messages import Argument, Message, PythonName
from rejoint.text import cite, plural, show

#: The place of a label in a path where a row or column is a total.
ALL = ""
Path = tuple[str, ...]

_HEADER_ROWS = 6  # at most
_NOTE = re.compile(
    r"(?:sources?|notes?|quelle|hinweis|fuente|notas?|bron|nota|remarque|champ|lecture|copyright|"
    r"©|\(c\)|\*|_{3,}|stand|footnotes?|legend|symbols?|release date|last updated|geograph).*",
    re.IGNORECASE | re.DOTALL,
)
_FLAGS = re.compile(
    r"(?:obs_?)?(?:flags?|status|symbols?|conf|footnotes?|notes?)(?: codes?| and footnotes)?",
    re.IGNORECASE,
)

#: Headers of the column of numbers in a long form.
VALUE_NAMES = TABLE_VALUE_NAMES | {"obs_value", "observation", "wert", "valeur", "valor", "valore"}
VALUE_NAMES |= {"waarde", "anzahl", "effectif", "estimate", "total"}
#: Those that cannot be a level of anything.
_SURE_NAMES = VALUE_NAMES - {"total", "n", "p", "number", "estimate", "share", "weight", "size"}
#: Columns of long forms that describe a number, not what was counted.
_ATTRIBUTES = re.compile(
    r"dataflow|structure(_id|_name)?|action|last update|obs_(flag|status|conf).*|conf_status|"
    r"decimals?|dguid|uom_id|scalar_id|vector|coordinate|terminated|symbol|status|urn|"
    r"record_(offset|count)|flags?|flag codes|time_format|unit_mult|powercode code|"
    r"reference period( code)?|unit code|obs_pre_break|comment_.*|geo_?id",
)
#: Those of them that have the power of ten of the unit.
_POWERS = {"unit_mult", "powercode code"}
_UNITS_OF_POWERS = {"3": "thousands", "6": "millions"}


def is_value_name(text: str) -> bool:
    """Return whether the header of a column says that it has the numbers.

    Examples
    --------
    >>> is_value_name("OBS_VALUE"), is_value_name("Bevolking (aantal)"), is_value_name("Age")
    (True, True, False)
    """
    inside = re.search(r"[(\[]([^()\[\]]+)[)\]]\s*$", text)
    unit = bool(inside) and unit_word(inside[1] if inside else "") in ("count", "percent")
    return plain_text(text) in VALUE_NAMES or unit


ERROR_NAMES = {"se", "stderr", "std_error", "standard_error", "standard error", "error"}
TABLE_NAMES = {"table", "table_name", "table_id"}


@dataclass
class Block:
    """A rectangle of numbers with the labels of its rows and columns.

    ``rows`` and ``columns`` are paths of labels; ``row_names`` and ``column_names`` name the places
    of the paths where the sheet does. ``value`` is the header of the only column of numbers.
    """

    sheet: Sheet
    rows: list[Path]
    columns: list[Path]
    row_names: list[str]
    column_names: list[str]
    cells: list[list[Text]]
    lines: list[int]
    used: list[int] = field(default_factory=list)  # lines of its header and its numbers
    value: str = ""
    titles: list[str] = field(default_factory=list)
    units: list[str] = field(default_factory=list)  # labels that all numbers have
    notes: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    errors: list[list[Text]] | None = None  # standard errors, where a column has them
    keys: list[str] | None = None  # the table of each row, where a column names it
    corner: bool = False  # its corner, labels or file name its variables: smoke \\ age, age=old
    tree_name: str = ""  # name of a stub whose labels are nested
    listed: bool = False  # long form
    sparse: bool = False  # combinations that are left out are zero


@lru_cache(maxsize=100_000)
def _kind(cell: Text, marks: frozenset[str]) -> Kind:
    return kind_of_cell(cell, marks)


def label_of(cell: Text) -> str:
    """Return a cell as a label.

    Examples
    --------
    >>> label_of(2019.0), label_of(" Men  and women ")
    ('2019', 'Men and women')
    """
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else repr(cell)
    text = re.sub(r"\s+", " ", cell).strip()
    if re.fullmatch(r"(?:19|20)\d\d ?[a-z]|\d\d?[./-]\d\d?[./-]\d{4} [a-z]", text):
        return text[:-1].strip()  # a year or date with a flag
    if text[-1:] not in _ENDS:
        return text
    bare = _FOOTNOTE.sub("", text)
    return bare if bare.count("(") <= bare.count(")") else text  # "Area (km2)" has no footnote


#: Footnotes at the end of a label, and the number of cases: "Men1)", "Total ¹", "Men (N=250)".
_FOOTNOTE = re.compile(
    r"(?<=\w)\s*(?:[¹²³⁰-⁹]+|\[(?:notes? ?)?[\d, ]+\]|\((?:n|N) ?= ?[\d., ]+\)|(?<![\d( ])\d\)|"
    r" \d\))$"
)
_BULLET = re.compile(r"^(?:[\u2022\u00b7\u2013-] )+(?=[^\W\d])")
_ENDS = "¹²³⁰⁴⁵⁶⁷⁸⁹])"


#: Marks of footnotes: at the start of a note, and at the end of a label.
_NOTE_MARK = re.compile(
    r"[(\[]?(?P<digit>\d{1,2})(?:[)\].:]\s*|\s+)[^\W\d]|"
    r"(?:[(\[](?P<a>[a-z])[)\]]|(?P<b>[a-z])[.:)]|(?P<c>[a-z])(?=\s+[A-Z]))\s*\S"
)
_SYMBOL = r"(?<=\w)\s*[*\u2020\u2021\u00a7\u00b6]+$"


def _label_marks(notes: Iterable[str]) -> re.Pattern[str]:
    """Return the marks that labels may end in: symbols, and those that notes begin with."""
    found = [mark for note in notes if (mark := _NOTE_MARK.match(note))]
    digits = {mark["digit"] for mark in found if mark["digit"]}
    letters = {text for mark in found for text in mark.group("a", "b", "c") if text}
    ways = [_SYMBOL]
    if digits:
        ways.append(rf"\s*[(\[]\d{{1,2}}[)\]]$|(?<=[^\W\d])\s?(?:{'|'.join(digits)})$")
    if letters:
        ways.append(rf"\s*[(\[][a-z][)\]]$|\s(?:{'|'.join(letters)})$")
    return re.compile("|".join(ways))


def _without_footnotes(paths: list[Path], marks: re.Pattern[str]) -> list[Path]:
    """Take marks of footnotes off labels, unless two labels would then be the same."""
    places = [list(column) for column in zip(*paths, strict=True)]
    for place, column in enumerate(places):
        bare = {label: marks.sub("", label) or label for label in column}
        if len(set(bare.values())) == len(bare):
            places[place] = [bare[label] for label in column]
    return list(zip(*places, strict=True)) if places else paths


def _bare(label: str) -> str:
    """Return a label without the colon after it: "Male:"."""
    return label.rstrip(": ") or label


def _is_empty(cell: Text) -> bool:
    return isinstance(cell, str) and not cell.strip()


def find_blocks(
    sheet: Sheet,
    *,
    marks: frozenset[str],
    value: str | None = None,
    skip: Collection[str] = (),
) -> list[Block]:
    """Return the blocks of numbers of a sheet; an empty list where it has no numbers.

    Parameters
    ----------
    sheet : Sheet
        The cells.
    marks : frozenset of str
        Marks of cells that are not known.
    value : str, optional
        Header of the column that has the numbers, in the long form.
    skip : collection of str
        Headers of columns and labels of rows to leave out; a whole number leaves out the first
        lines.

    Examples
    --------
    >>> rows = [["Sex by age"], [], ["", "young", "old"], ["Men", "3", "<5"], ["Source: X"]]
    >>> block = find_blocks(Sheet("t.csv", "t", "", rows, [1, 2, 3, 4, 5]), marks=frozenset())[0]
    >>> block.columns, block.rows, block.titles, block.notes
    ([('young',), ('old',)], [('Men',)], ['Sex by age'], ['Source: X'])
    """
    found: list[Block] = []
    for part in _side_by_side(sheet, marks):
        grid = _Grid(part, marks, value, skip)
        found += grid.blocks() if grid.number_rows else []
    return found


def _side_by_side(sheet: Sheet, marks: frozenset[str]) -> list[Sheet]:
    """Split a sheet at empty columns, where both sides have labels to the left of their numbers."""
    wide = max((len(row) for row in sheet.rows), default=0)
    rows = [[*row, *[""] * (wide - len(row))] for row in sheet.rows]
    empty = [c for c in range(wide) if all(_is_empty(row[c]) for row in rows)]
    starts = [0]
    for c in empty:
        left = _is_stub_first([row[starts[-1] : c] for row in rows], marks)
        if left and _is_stub_first([row[c + 1 :] for row in rows], marks):
            starts.append(c + 1)
    if len(starts) == 1:
        return [sheet]
    ends = [*starts[1:], wide]
    return [
        replace(
            sheet,
            rows=[row[a:b] for row in rows],
            merged=[(t, x - a, u, y - a) for t, x, u, y in sheet.merged if a <= x <= y < b],
        )
        for a, b in zip(starts, ends, strict=True)
    ]


def _is_stub_first(rows: Sequence[Sequence[Text]], marks: frozenset[str]) -> bool:
    """Return whether the first cells of most rows with numbers are texts."""
    kinds = [[_kind(cell, marks) for cell in row] for row in rows]
    first = [row[0] for row in kinds if "number" in row[1:]]
    return len(first) > 1 and first.count("text") > 0.5 * len(first)


class _Grid:
    """The cells of a sheet and what they look like."""

    def __init__(
        self, sheet: Sheet, marks: frozenset[str], value: str | None, skip: Collection[str]
    ) -> None:
        self.sheet, self.marks, self.value = sheet, marks, value
        self.skip = {plain_text(text) for text in skip}
        self.skipped: list[str] = []
        self.units: list[str] = []
        first = max((int(text) for text in skip if text.isdecimal()), default=0)
        keep = [i for i, line in enumerate(sheet.lines) if line > first]
        self.lines = [sheet.lines[i] for i in keep]
        wide = max((len(row) for row in sheet.rows), default=0)
        self.sizes = [len(sheet.rows[i]) for i in keep]
        self.rows: list[list[Text]] = [
            [*sheet.rows[i], *[""] * (wide - len(sheet.rows[i]))] for i in keep
        ]
        shift = len(sheet.rows) - len(keep)
        self.merged = [(a - shift, b, c - shift, d) for a, b, c, d in sheet.merged if a >= shift]
        self._fill_merged()
        self.kinds: list[list[Kind]] = [[_kind(c, marks) for c in row] for row in self.rows]
        self.labels = [[label_of(c) for c in row] for row in self.rows]
        self.number_rows = self._find_number_rows()
        self.stub: list[int] = []
        self.body: list[int] = []
        self._fill_unit()

    def _fill_merged(self) -> None:
        """Repeat merged labels in the rows and columns that they span."""
        for top, left, bottom, right in self.merged:
            if not 0 <= top < len(self.rows) or (right > left and _is_empty(self.rows[top][left])):
                continue
            if left == 0 and right > left:  # a title over the whole width
                continue
            for r in range(top, min(bottom + 1, len(self.rows))):
                for c in range(left, min(right + 1, len(self.rows[r]))):
                    if r == top or left == 0:  # labels of rows downward, of columns to the right
                        self.rows[r][c] = self.rows[top][left]

    def _fill_unit(self) -> None:
        """Repeat a unit that stands once below the labels of columns, right above the numbers."""
        r = self.number_rows[0] - 1 if self.number_rows else 0
        there = [c for c, label in enumerate(self.labels[r]) if c and label] if r else []
        if len(there) != 1 or not unit_word(self.labels[r][there[0]]):
            return
        if self.labels[r - 1][there[0]]:
            for c in range(there[0] + 1, len(self.rows[r])):
                if self.labels[r - 1][c]:
                    self.labels[r][c], self.kinds[r][c] = self.labels[r][there[0]], "text"

    def _find_number_rows(self) -> list[int]:
        """Return rows that have a number after their first cell."""
        found = [r for r, kinds in enumerate(self.kinds) if "number" in kinds[1:]]
        if found:
            return found
        for r, row in enumerate(self.rows):  # a header that names the numbers
            if any(is_value_name(str(cell)) for cell in row):
                return list(range(r + 1, len(self.rows)))
        return []

    def _column(self, c: int, rows: Iterable[int] | None = None) -> list[str]:
        """Return the labels of a column in some rows, by default in those with numbers."""
        return [self.labels[r][c] for r in (self.number_rows if rows is None else rows)]

    def _columns(self) -> tuple[list[int], list[int]]:
        """Return the columns of the stub and those of numbers."""
        wide = len(self.rows[0])
        seen = [c for c in range(wide) if any(row[c] for row in self.labels)]
        heads = {c: self._head(c) for c in seen}
        seen = [c for c in seen if not self._is_skipped(heads[c])]
        for c in self._running_sums(seen):
            seen.remove(c)
            self.skipped.append(f"column {cite(heads[c])} (running sums)")
        long = self._long_columns(seen, heads)
        if long is not None:
            return long
        numeric: set[int] = set()
        fill: dict[int, float] = {}
        for c in seen:
            there = [label for label in self._column(c) if label]
            kinds = [self.kinds[r][c] for r in self.number_rows]
            good = kinds.count("number") + kinds.count("mark")
            fill[c] = len(there) / max(len(kinds), 1)
            steps = good < len(there) and _are_steps(there)  # 0, 1-4, ..., 90+
            year = len(there) > 1 and len(set(there)) == 1 and _is_year(there[0])
            label = c < seen[-1] and (steps or (year and not numeric))  # labels come first
            if "number" in kinds and good >= 0.5 * len(there) and not label:
                numeric.add(c)
        named = is_value_name(heads[seen[-1]]) if seen else False
        if not numeric and named:
            numeric.add(seen[-1])
        if numeric:  # a last column that has numbers and something else is no column of notes
            for c in seen:
                kinds = [self.kinds[r][c] for r in self.number_rows]
                if c > max(numeric) and "number" in kinds:
                    numeric.add(c)
        if not numeric:
            return seen, []
        for c in list(seen):  # flags and notes beside the numbers
            if c in numeric or c < min(numeric) or c == seen[0]:
                continue
            texts = self._column(c)
            short = all(len(text) <= 3 for text in texts)
            if fill[c] >= 0.5 and self._is_marked(c) and not _FLAGS.fullmatch(heads[c]):
                continue  # numbers that are not given
            if _FLAGS.fullmatch(heads[c]) or (short and fill[c] < 0.5) or c > max(numeric):
                seen.remove(c)
                if heads[c] or any(texts):
                    self.skipped.append(f"column {cite(heads[c] or c + 1)} (flags or notes)")
        labels = [c for c in seen if c not in numeric and c < max(numeric)]
        labels = [c for c in labels if c == seen[0] or not self._is_marked(c, c < min(numeric))]
        last = max(labels, default=seen[0])
        stub = [c for c in seen if c <= last]
        # A column of marks only, between numbers, has numbers that are not given.
        body = [c for c in seen if c > last and (c in numeric or self._is_marked(c))]
        first = next((k for k, c in enumerate(body) if c in numeric), 0)
        for c in body[:first]:  # an empty column before the numbers has a name, no level
            if fill[c] == 0.0 and c > last:
                self.skipped.append(f"column {cite(heads[c])} (empty)")
                body.remove(c)
        return stub, body

    def _running_sums(self, seen: Sequence[int]) -> list[int]:
        """Return columns that add up the numbers of another one from the first row on."""
        if len(self.number_rows) < 3:
            return []
        first = {c: self._whole_numbers(c, self.number_rows[:3]) for c in seen}
        sums = {tuple(accumulate(steps)): c for c, steps in first.items() if steps}
        found = []
        for c in seen:
            k = sums.get(tuple(first[c]), c)
            if k == c or not first[c]:
                continue
            steps = self._whole_numbers(k, self.number_rows)
            rest = [s for s in seen if s not in (c, k)]
            if (
                len(set(steps)) > 1
                and sum(map(bool, steps)) > 2
                and self._whole_numbers(c, self.number_rows) == list(accumulate(steps))
                and self.are_told_apart(rest)
            ):
                found.append(c)
        return found

    def _whole_numbers(self, c: int, rows: Sequence[int]) -> list[int]:
        """Return the numbers of a column, nothing if one is not whole."""
        texts = self._column(c, rows)
        return [int(text) for text in texts] if all(t.isdecimal() for t in texts) else []

    def _long_columns(
        self, seen: list[int], heads: dict[int, str]
    ) -> tuple[list[int], list[int]] | None:
        """Return the columns of a long form whose header names the one with the numbers."""
        asked = plain_text(self.value) if self.value else None
        texts = [plain_text(heads[c]) for c in seen]
        named = [c for c, text in zip(seen, texts, strict=True) if text == asked]
        several = [c for c in seen if is_value_name(heads[c])]
        if not named and len(several) > 1:  # counts beside shares
            named = [c for c in several if is_count_word(heads[c])]
        if not named:
            sure = [
                t in _SURE_NAMES or (is_value_name(heads[c]) and t not in VALUE_NAMES)
                for c, t in zip(seen, texts, strict=True)
            ]
            named = [c for c, good in zip(seen, sure, strict=True) if good]
        unique = len({heads[c] for c in seen}) == len(seen)  # SEX has the codes of Sex
        if len(named) != 1 or len(seen) < 2 or not all(texts) or not unique:
            return None
        value = named[0]
        rows = self.number_rows
        if sum(self.kinds[r][value] in ("number", "mark", "empty") for r in rows) < 0.7 * len(rows):
            return None
        gone = [c for c in seen if c != value and _ATTRIBUTES.fullmatch(plain_text(heads[c]))]
        rest = [c for c in seen if c not in (*gone, value)]
        if not self.are_told_apart(rest):  # "status" may be that of persons
            needed = [c for c in gone if self.are_told_apart([*rest, c])]
            gone = [c for c in gone if c not in needed[:1]]
            rest = [c for c in seen if c not in (*gone, value)]
        others = [c for c in rest if self._is_fraction(c) or c in several]
        odd = [c for c in others if not is_value_name(heads[c]) and not unit_word(heads[c])]
        if not rest or (odd and not asked):
            return None  # a cross-tabulation with a column of totals, perhaps
        if not any(len(set(self._column(c))) > 1 for c in rest):
            return None
        powers = [c for c in gone if plain_text(heads[c]) in _POWERS]
        for c in powers:
            said = set(self._column(c))
            self.units += [_UNITS_OF_POWERS.get(power, "") for power in said if len(said) == 1]
            if len(said) > 1:
                raise self.sheet.error(
                    "{where}: the numbers are in different units, {name!r} is {said}. Leave lines "
                    "out so that one unit is left.",
                    name=heads[c],
                    said=show(sorted(said)),
                )
        self.skipped += [f"column {cite(heads[c])} (about the number)" for c in gone]
        return [c for c in rest if c not in others], [*others, value]

    def are_told_apart(self, columns: Sequence[int], rows: Sequence[int] | None = None) -> bool:
        """Return whether labels in these columns tell rows apart, by default all with numbers."""
        rows = self.number_rows if rows is None else rows
        return len({tuple(self.labels[r][c] for c in columns) for r in rows}) == len(rows)

    def _is_fraction(self, c: int) -> bool:
        """Return whether a column has numbers that cannot be labels."""
        there = [(self.labels[r][c], self.kinds[r][c]) for r in self.number_rows]
        there = [(text, kind) for text, kind in there if text]
        whole = all(text.isdecimal() for text, _ in there)
        later = there[1:]  # the first may be a header of years
        named = any(kind == "text" and re.match(r"[^\W\d]", text) for text, kind in later)
        if whole or named:  # codes, perhaps, such as 3000, 4000 and T001038
            return False
        return sum(kind == "number" for _, kind in there) >= 0.6 * len(there) > 0

    def _is_marked(self, c: int, strict: bool = False) -> bool:
        """Return whether a column has marks only; strictly those that are hardly labels."""
        texts = [text for text in self._column(c) if text]
        if strict and any(re.match(r"\w", text) for text in texts):
            last = self._head(max(c for c in range(len(self.rows[0])) if self._head(c)))
            if len(set(texts)) > 1 or len(texts) < 2 or is_value_name(last):
                return False
        return all(self.kinds[r][c] in ("mark", "range", "empty") for r in self.number_rows)

    def _is_skipped(self, head: str) -> bool:
        if not head or plain_text(head) not in self.skip:
            return False
        self.skipped.append(f"column {cite(head)} (as asked)")
        return True

    def _head(self, c: int) -> str:
        """The text of a column that is nearest above the first number, or the first text."""
        first = self.number_rows[0] if self.number_rows else len(self.rows)
        above = [text for text in self._column(c, range(first)) if text]
        if above:
            return above[-1]
        return self.labels[first][c] if first < len(self.rows) else ""

    # Rows ---------------------------------------------------------------------------------

    def blocks(self) -> list[Block]:
        """Cut the sheet into blocks, one below the other."""
        self.stub, self.body = self._columns()
        found: list[Block] = []
        at = 0
        while self.body and at < len(self.rows):
            block, after = self._next_block(at)
            if block is None:
                if found:
                    found[-1].notes += self._texts(at, len(self.rows))
                break
            found.append(block)
            at = after
        if not found:
            raise self._no_numbers()
        self._account(found)
        marks = _label_marks(note for block in found for note in block.notes)
        for block in found:
            block.skipped = [*self.skipped, *block.skipped]
            block.units = [*self.units, *block.units]
            block.rows = _without_footnotes(block.rows, marks)
            block.columns = _without_footnotes(block.columns, marks)
        return found

    def _no_numbers(self) -> ValueError:
        return NotATableError(
            Message(
                "{where}: which column holds the numbers? Its header is {header}. Name one of them "
                "'count', 'share' or 'percent' (long form), use {value}, or write a "
                "cross-tabulation with the names of both variables in its corner: 'smoke \\ age'.",
                where=self.sheet.where,
                header=show([text for text in self.labels[0] if text]),
                value=Argument("value"),
            )
        )

    def _account(self, blocks: Sequence[Block]) -> None:
        """Raise for rows of numbers, or of labels over numbers, that are part of no block."""
        used = {line for block in blocks for line in block.used}
        for r, line in enumerate(self.lines):
            there = [c for c in self.body if self.labels[r][c]]
            if line in used or len(there) < 2 or self._is_pair(r):
                continue
            numbers = [c for c in there if self.kinds[r][c] == "number"]
            above = any(line < min(block.lines, default=0) for block in blocks[:1])
            if len(numbers) > 1 or (above and len(there) > 0.5 * len(self.body)):
                raise self.sheet.error(
                    "{where}, line {line}: {texts} stand over or between numbers, but belong to no "
                    "table that was found. Take out blank lines and notes between a header and its "
                    "numbers, or use {skip} to leave the first lines out.",
                    line=line,
                    texts=show([self.labels[r][c] for c in there]),
                    skip=Argument("skip", [str(line)]),
                )

    def _texts(self, first: int, last: int) -> list[str]:
        lines = (" ".join(filter(None, self.labels[r])) for r in range(first, last))
        return [line for line in lines if line]

    def _used(self, r: int) -> list[str]:
        """Return the labels of a row in the stub and over the numbers."""
        return [self.labels[r][c] for c in (*self.stub, *self.body)]

    def _looks(self, r: int) -> list[Kind]:
        """Return what the cells of a row in columns of numbers look like, without empty ones."""
        return [kind for c in self.body if (kind := self.kinds[r][c]) != "empty"]

    def has_label(self, r: int) -> bool:
        """Return whether a row has a label in the stub."""
        return any(self.kinds[r][c] != "empty" for c in self.stub)

    def _is_data(self, r: int) -> bool:
        kinds = self._looks(r)
        return bool(kinds) and kinds.count("text") <= 0.5 * len(kinds)

    def _is_first(self, r: int) -> bool:
        """Return whether a row may be the first one of numbers."""
        numbers = "number" in self._looks(r) and self._is_data(r)
        return numbers and not (len(self.body) > 1 and self._is_pair(r))

    def _next_block(self, start: int) -> tuple[Block | None, int]:
        first = next((r for r in range(start, len(self.rows)) if self._is_first(r)), None)
        forced = first is None
        if first is None:
            named = [r for r in range(start, len(self.rows)) if self.has_label(r)]
            heads = [self.labels[r][c] for r in named[:1] for c in self.body]
            if start or len(named) < 2 or not any(map(is_value_name, heads)):
                return None, start
            first = named[1]
        header, first, lead = self._header(start, first)
        titles = self._texts(start, header[0] if header else first)
        repeated = [self._used(r) for r in header]
        rows, sections, after = self._data(first, header, repeated, forced)
        if not rows:
            return None, start
        block = Block(self.sheet, [], [], [], [], [], [], titles=titles)
        block.used = [
            self.lines[r]
            for r in range(header[0] if header else rows[0], rows[-1] + 1)
            if r in {*header, *rows} or self._used(r) in repeated
        ]
        body = [c for c in self.body if any(self._column(c, (*header, *rows)))]
        _Layout(self, block, body, header, rows, [*lead, *sections]).fill()
        return block, after

    def _header(self, start: int, first: int) -> tuple[list[int], int, list[int]]:
        """Return the rows of the header, the first row of numbers, and headings between them."""
        header: list[int] = []
        lead: list[int] = []
        r = first - 1
        while r >= start and len(header) < _HEADER_ROWS:
            there = self._looks(r)
            if there:
                below = self.has_label(r) and any(map(self.has_label, header))
                if below and (len(there) < 2 < len(self.body) or self._is_pair(r)):
                    break  # a line such as "Date: 2021" above the header
                header.insert(0, r)
            elif header:
                break
            elif self.has_label(r):
                lead.insert(0, r)
            r -= 1
        while len(header) > 1 and self._is_marks_only(header):
            first = header.pop()  # numbers that are not given, below the header
        while first < len(self.rows) and (not header or self._needs_more(header, first)):
            if not self._looks(first) and not self.has_label(first):
                first += 1
                continue
            header.append(first)
            lead = []
            first += 1
            while first < len(self.rows) and not self._looks(first):
                if self.has_label(first):
                    lead.append(first)
                first += 1
        return header, first, lead

    def _is_marks_only(self, header: list[int]) -> bool:
        *above, last = header
        labels = ("text", "number", "range")
        full = any(
            all(self.kinds[r][c] in labels or is_value_name(self.labels[r][c]) for c in self.body)
            for r in above
        )
        return full and set(self._looks(last)) <= {"mark"} and self.has_label(last)

    def _is_pair(self, r: int) -> bool:
        """Return whether a row is a name and what it says: "Units: persons"."""
        there = [text for text in self.labels[r] if text]
        return len(there) == 2 and there[0].endswith((":", "\uff1a"))

    def _needs_more(self, header: list[int], first: int) -> bool:
        """Return whether the row after the header belongs to it: years, or labels of groups."""
        if first + 1 >= len(self.rows) or len(header) >= _HEADER_ROWS:
            return False
        kinds = [self.kinds[first][c] for c in self.body]
        if not self.has_label(first) or set(kinds) == {"text"}:
            return True
        texts = [self.labels[first][c] for c in self.body]
        paths = _column_paths(self, header, self.body)
        if len(self.body) > 1 and all(_is_year(t) for t in texts if t) and any(texts):
            below = [
                t for c in self.body for t in self._column(c, range(first + 1, len(self.rows)))
            ]
            numbers = [t for t in below if t and _kind(t, self.marks) == "number"]
            if not numbers or all(map(_is_year, numbers)):
                return False
            if len(set(paths)) < len(paths) or len(set(texts)) == 1 or not all(map(any, paths)):
                return True
            if any(map(self.has_label, header)):
                return False  # counts such as 1912 and 2020: each column has its label already
            raise ValueError(
                f"{self.sheet.where}, line {self.lines[first]}: {show(texts)} may be years, which "
                "belong to the header, or counts. If they are counts, name the variable of the "
                "rows in the header, above their labels."
            )
        twice = [path for path in paths if paths.count(path) > 1 and not unit_word(path[-1])]
        if twice and "text" in kinds:
            return True
        codes = all(t.isdecimal() for t in texts if t) and max(map(len, texts)) <= 2
        return bool(twice) and len(set(texts)) > 1 and (codes or len(set(texts)) < len(texts))

    def _data(
        self, first: int, header: list[int], repeated: list[list[str]], forced: bool
    ) -> tuple[list[int], list[int], int]:
        """Return the rows of numbers, the headings between them, and where the block ends."""
        rows: list[int] = []
        sections: list[int] = []
        r = first
        while r < len(self.rows):
            there = self._looks(r)
            if self._used(r) in repeated:
                pass  # a header that is repeated on every page
            elif not there:
                full = len(self.stub) > 1 and all(self.labels[r][c] for c in self.stub)
                if full and self.sizes[r] <= self.body[0] and not any(self.labels[r - 1]):
                    break  # a note below a blank line
                if full:
                    rows.append(r)  # numbers that are not given
                elif self.has_label(r):
                    sections.append(r)
            elif self._is_data(r) or forced:
                rows.append(r)
            elif len(there) == 1 and not self.has_label(r) and len(self.body) > 1:
                sections.append(r)  # a heading in the middle
            else:
                break
            r += 1
        while sections and rows and sections[-1] > rows[-1]:  # notes below, or the next title
            r = sections.pop()
        if rows and header and r == rows[-1] + 1 and r < len(self.rows):
            self._check_ragged(r, header[-1])
        return rows, sections, r

    def _check_ragged(self, r: int, head: int) -> None:
        """Raise for a line right below the numbers that looks like one of them, cut short."""
        texts = [text for text in self.labels[r] if text]
        label = len(texts) == 1 and re.fullmatch(r"[^\W_][\w+-]{0,19}", texts[0])
        if self.sheet.delimiter and label and self.sizes[r] < self.sizes[head]:
            raise self.cut_short(r, head)

    def cut_short(self, r: int, head: int) -> ValueError:
        return self.sheet.error(
            "{where}, line {at}: {cells}, but the header (line {line}) has {wide}. Quote "
            "cells that hold the delimiter, or use {delimiter}.",
            at=self.lines[r],
            cells=plural(self.sizes[r], "cell"),
            line=self.lines[head],
            wide=self.sizes[head],
            delimiter=Argument("delimiter"),
        )


def _is_year(text: str) -> bool:
    return bool(re.fullmatch(r"(?:1[89]|20)\d\d", text))


def _are_steps(texts: Sequence[str]) -> bool:
    """Return whether texts are labels such as 0, 1-4, ..., 90+, once or again and again."""
    found = [re.search(r"\d+", text) for text in texts]
    starts = [int(each[0]) for each in found if each]
    steps = all(b > a or b == starts[0] for a, b in pairwise(starts))
    return len(starts) == len(texts) > 2 and steps


def _column_paths(grid: _Grid, header: Sequence[int], columns: Sequence[int]) -> list[Path]:
    """Return the labels over each column, those that span several columns repeated."""
    labels = [[grid.labels[r][c] for c in columns] for r in header]
    starts = [False] * len(columns)  # where a label of a row above begins
    for depth, row in enumerate(labels):
        begins = [bool(text) for text in row]
        if depth < len(labels) - 1:
            for k in range(1, len(row)):
                if not row[k] and not starts[k] and not _is_apart(grid, header[depth], columns, k):
                    row[k] = row[k - 1]
        starts = [a or b for a, b in zip(starts, begins, strict=True)]
    labels = _without_codes(labels)
    if any("!!" in text for text in labels[-1]):  # Estimate!!Total:!!Male:
        split = [[_bare(part) for part in text.split("!!")] for text in labels[-1]]
        deep = max(map(len, split))
        return [tuple([*parts, *[ALL] * (deep - len(parts))]) for parts in split]
    if len(labels) == 1 and (crossed := _crossed_labels(labels[0])):
        return crossed
    paths = []
    for path in zip(*labels, strict=True):
        said = [text for text in path if text]
        if not path[0] and said:  # labelled below only: not part of any group
            path = (*said, *[ALL] * (len(path) - len(said)))
        paths.append(tuple(path))
    return paths


def _crossed_labels(labels: Sequence[str]) -> list[Path]:
    """Split labels such as "North: Men" if these are all combinations of two lists of labels."""
    for mark in (": ", " - ", " \u2013 ", " | ", ", "):
        split = [text.split(mark) for text in labels]
        pairs = {(p[0].strip(), p[1].strip()) for p in split if len(p) == 2}
        rest = [p for p in split if len(p) != 2]
        wide, deep = (len({pair[k] for pair in pairs}) for k in (0, 1))
        full = len(pairs) == wide * deep and len(pairs) + len(rest) == len(labels)
        if full and min(wide, deep) > 1 and all(is_total_word(mark.join(p)) for p in rest):
            return [(p[0].strip(), p[1].strip() if len(p) == 2 else ALL) for p in split]
    joined = _joined_labels(labels)
    parts = [list(dict.fromkeys(part)) for part in zip(*joined, strict=True)]
    sure = [concept_of_labels(part) or any(map(is_total_word, part)) for part in parts]
    return joined if len(parts) > 1 and any((*sure, len(parts[0]) == 1)) else []


def _joined_labels(labels: Sequence[str]) -> list[Path]:
    """Split labels that were joined by blanks, in the order of all combinations: "Men married".

    A unit before, or a year after all labels, is a label of its own.
    """
    words = [text.split() for text in labels]
    same = [len(set(column)) == 1 for column in zip(*words, strict=False)]
    first = words[0][: same.index(False)] if False in same else []
    size = max((k + 1 for k, w in enumerate(first) if _is_year(w) or w.endswith(")")), default=0)
    if 0 < size < min(map(len, words)):  # "Persons (1,000) 2022 Men"
        inner = _joined_labels([" ".join(w[size:]) for w in words])
        year = first[size - 1 : size] if _is_year(first[size - 1]) else []
        rest = first[: size - len(year)]
        return [(*[" ".join(rest)][: len(rest)], *year, *path) for path in inner]
    if min(map(len, words), default=0) > 1:
        for k, others, known in ((-1, slice(-1), _is_year), (0, slice(1, None), unit_word)):
            if len({w[k] for w in words}) == 1 and known(words[0][k]):
                inner = _joined_labels([" ".join(w[others]) for w in words])
                return [(words[0][k], *path) for path in inner]
    for at in range(1, len(words[0]) if words else 0):
        head, tail = " ".join(words[0][:at]), " ".join(words[0][at:])
        inner_labels = [t.removeprefix(f"{head} ") for t in labels if t.startswith(f"{head} ")]
        outer_labels = [t.removesuffix(f" {tail}") for t in labels if t.endswith(f" {tail}")]
        every = [f"{a} {b}" for a in outer_labels for b in inner_labels]
        if min(len(inner_labels), len(outer_labels)) > 1 and every == list(labels):
            inner, outer = _joined_labels(inner_labels), _joined_labels(outer_labels)
            return [(*a, *b) for a in outer for b in inner]
    return [(text,) for text in labels]


def _without_codes(labels: list[list[str]]) -> list[list[str]]:
    """Leave out rows of a header that only repeat another one as codes."""
    distinct = [row for row in labels if len(set(row)) == len(row) > 1]
    if len(distinct) < 2 or len(distinct) < len(labels):
        return labels
    return [max(labels, key=lambda row: sum(map(len, row)))]


def _is_apart(grid: _Grid, r: int, columns: Sequence[int], k: int) -> bool:
    """Return whether a workbook says that the label to the left does not span this column."""
    spans = [m for m in grid.merged if m[0] <= r <= m[2] and m[3] > m[1]]
    return bool(spans) and not any(m[1] <= columns[k] <= m[3] for m in spans)


class _Layout:
    """Paths of labels for the rows and columns of one block."""

    def __init__(
        self,
        grid: _Grid,
        block: Block,
        body: list[int],
        header: list[int],
        rows: list[int],
        sections: list[int],
    ) -> None:
        self.grid, self.block, self.stub, self.body = grid, block, list(grid.stub), body
        self.header, self.rows, self.sections = header, rows, sections
        self.labels = grid.labels
        self.pandas = False
        self.names = [self._name(c) for c in self.stub]

    def _name(self, c: int) -> str:
        texts = [self.labels[r][c] for r in self.header if r not in self._year_rows]
        return next(filter(None, reversed(texts)), "")

    def _column(self, c: int) -> list[str]:
        """Return the labels of a column in the rows of numbers."""
        return [self.labels[r][c] for r in self.rows]

    @cached_property
    def _year_rows(self) -> list[int]:
        """Rows of the header that name the years that follow: "Year", "2020", "2021"."""
        found = []
        for r in self.header[1:]:
            texts = [self.labels[r][c] for c in self.body]
            name = self.labels[r][self.stub[-1]]
            if concept_of_name(name) == "Year" and all(map(_is_year, texts)):
                found.append(r)
        return found

    def fill(self) -> None:
        """Fill the block."""
        self._drop_skipped_rows()
        self._check_sizes()
        while len(self.body) > 1 and not self._is_told_apart() and self._is_whole(self.body[0]):
            self.stub.append(self.body.pop(0))  # labels that are numbers
            self.names = [self._name(c) for c in self.stub]
        if self._as_long():
            return
        self._as_cross_tabulation()

    def _drop_skipped_rows(self) -> None:
        gone = [
            r
            for r in self.rows
            if any(plain_text(self.grid.rows[r][c]) in self.grid.skip for c in self.stub)
        ]
        self.block.skipped += [f"row {cite(self.labels[r][self.stub[0]])}" for r in gone]
        self.rows = [r for r in self.rows if r not in set(gone)]

    def _check_sizes(self) -> None:
        """Raise for rows of a text file that are cut short."""
        if not self.grid.sheet.delimiter or not self.header:
            return
        head = self.header[-1]
        wide = self.grid.sizes[head]
        for r in self.rows:
            short = self.grid.sizes[r] <= self.body[-1] and wide > self.body[-1]
            if short or any(self.labels[r][wide:]):
                raise self.grid.cut_short(r, head)

    # Long form ------------------------------------------------------------------------------

    def _as_long(self) -> bool:
        heads = [self._name(c) for c in self.body]
        plain = [plain_text(text) for text in heads]
        value = self._value_column(heads, plain)
        if value is None:
            return False
        if len(self.stub) == 1 and (self.sections or self._has_indents()):
            return False  # a tree of labels
        rest = [c for c in self.body if c != value]
        errors = [c for c in rest if plain_text(self._name(c)) in ERROR_NAMES]
        keys = [c for c in self.stub if plain_text(self._name(c)) in TABLE_NAMES]
        rest = [c for c in rest if c not in errors]
        stub = [c for c in self.stub if c not in keys]
        others = [c for c in rest if self._is_other_number(c, stub, value)]
        for c in stub[1:]:
            if self._is_number_column(c) and not self._is_code(c, stub):
                self._is_other_number(c, [s for s in stub if s != c], value)
        self.block.skipped += [f"column {cite(self._name(c))} (another number)" for c in others]
        stub = [c for c in [*self.stub, *self.body] if c in stub or c in set(rest) - set(others)]
        self._check_density(stub, value)
        block = self.block
        block.listed = True
        block.value = self._name(value)
        self._fill_rows(stub)
        block.row_names = [split_corner(name)[0] for name in block.row_names]
        block.columns = [()]
        block.cells = [[self.grid.rows[r][value]] for r in self.rows]
        if errors:
            block.errors = [[self.grid.rows[r][errors[0]]] for r in self.rows]
        if keys:
            block.keys = self._column(keys[0])
        return True

    def _check_density(self, stub: Sequence[int], value: int) -> None:
        """Raise for rows that look like records, not like the cells of a table."""
        named = is_value_name(self._name(value)) or self.grid.value is not None
        columns = map(self._column, stub)
        codes = {tuple(map(column.index, column)) for column in columns}  # of one variable: one
        levels = [len(set(code)) for code in codes if len(set(code)) > 1]
        levels = [size for size in levels if size < len(self.rows)] or levels  # or it numbers lines
        if named or len(levels) < 2 or len(self.rows) >= 0.5 * math.prod(levels):
            return
        raise self.block.sheet.error(
            "{where}: the rows may be records, or cells of a table whose numbers are in {name!r}. "
            "Use {value} if they are cells; records are for {estimate}.",
            name=self._name(value),
            value=Argument("value", self._name(value)),
            estimate=PythonName("rejoint.estimate"),
        )

    def _is_number_column(self, c: int) -> bool:
        kinds = [self.grid.kinds[r][c] for r in self.rows]
        return kinds.count("number") == len(kinds)

    def _is_code(self, c: int, stub: Sequence[int]) -> bool:
        """Return whether a column is named like another one, or as codes."""
        own = plain_text(self._name(c))
        others = [plain_text(self._name(s)) for s in stub if s != c]
        coded = re.search(r"(?:^|[_ ])(?:code|id|nr|no)$", own)
        return bool(coded) or any(own in name or name in own for name in others)

    def _is_other_number(self, c: int, stub: Sequence[int], value: int) -> bool:
        """Return whether a column has further numbers, not labels; raise if it may be either."""
        name = plain_text(self._name(c))
        texts = self._column(c)
        if is_value_name(name) or unit_word(name):
            return True
        if not all(t.isdecimal() for t in texts if t):
            if self.grid.value is not None:
                return True
            raise self._two_uses(c, value)
        distinct = len(set(texts)) == len(texts) > 1 and self.grid.are_told_apart(stub, self.rows)
        numbers = [int(text) for text in texts if text]
        large = max(numbers, default=0) >= 200 or c > value
        if len(texts) == 2:  # two codes follow each other
            large = len(numbers) == 2 and abs(numbers[0] - numbers[1]) > 1
        if distinct and large and not all(_is_year(text) for text in texts):
            raise self._two_uses(c, value)
        return False

    def _two_uses(self, c: int, value: int) -> ValueError:
        return self.block.sheet.error(
            "{where}: {other!r} may be labels of a variable or numbers beside {name!r}. Use {skip} "
            "to leave it out, or {value} to use it.",
            other=self._name(c),
            name=self._name(value),
            skip=Argument("skip", [self._name(c)]),
            value=Argument("value", self._name(c)),
        )

    def _value_column(self, heads: list[str], plain: list[str]) -> int | None:
        """Return the column of the numbers in long form; None for a cross-tabulation."""
        asked = self.grid.value
        if asked is not None:
            found = [c for c, t in zip(self.body, plain, strict=True) if t == plain_text(asked)]
            if found and (len(self.header) == 1 or len(self.body) == 1):
                return found[0]
        if len(self.body) == 1:
            return self.body[0]
        if len(self.header) > 1 and len({t for t in plain if t}) < len(plain):
            return None
        names = zip(self.body, heads, plain, strict=True)
        named = [c for c, text, t in names if is_value_name(text) and t != "total"]
        unique = self.grid.are_told_apart(self.stub, self.rows)
        if len(named) == 1 and (len(self.header) == 1 or not unique):
            others = [c for c in self.body if c not in named]
            labels = [c for c in others if not self._is_unit(c)]
            if all(self._is_whole(c) for c in labels) and not self._add_up(labels, named[0]):
                return named[0]
            whole = all(text.isdecimal() for c in labels for text in self._column(c))
            together = self.grid.are_told_apart([*self.stub, *labels], self.rows)
            if whole and together and not self._is_told_apart():
                return named[0]
        return None

    def _is_unit(self, c: int) -> bool:
        name = self._name(c)
        return is_value_name(name) or bool(unit_word(name)) or plain_text(name) in ERROR_NAMES

    def _is_whole(self, c: int) -> bool:
        """Return whether numbers of a column may be labels: few whole ones, each several times."""
        texts = [text for text in self._column(c) if text]
        few = len(set(texts)) <= max(len(texts) / 2, 2) or all(_is_year(t) for t in texts)
        numbers = [t for t in texts if _kind(t, self.grid.marks) == "number"]
        return few and all(t.isdecimal() for t in numbers)

    def _add_up(self, columns: Sequence[int], value: int) -> bool:
        """Return whether numbers of several columns add up to 100, or to the value, in all rows."""
        lines = [[self.labels[r][c] for c in (*columns, value)] for r in self.rows]
        if len(columns) < 2 or not all(text.isdecimal() for line in lines for text in line):
            return False
        sums = [(sum(map(int, line[:-1])), int(line[-1])) for line in lines]
        slack = len(columns) / 2
        return all(abs(a - 100) <= slack for a, _ in sums) or all(a == b for a, b in sums)

    def _is_told_apart(self) -> bool:
        """Return whether the labels of rows are unique, those that are left out filled in."""
        if self.sections or self._has_indents():
            return True
        labels = self._stub_labels(self.stub)
        return len(set(map(tuple, labels))) == len(labels)

    def _has_indents(self) -> bool:
        return any(self._indent(r, self.stub[0]) for r in self.rows)

    # Cross-tabulations ----------------------------------------------------------------------

    def _as_cross_tabulation(self) -> None:
        block = self.block
        header = list(self.header)
        paths = _column_paths(self.grid, header, self.body)
        self._fill_rows(self.stub)
        block.columns = paths
        block.column_names = [""] * max(len(path) for path in paths)
        block.cells = [[self.grid.rows[r][c] for c in self.body] for r in self.rows]
        if block.row_names:
            block.row_names[-1], block.column_names[-1] = split_corner(block.row_names[-1])
            block.corner = bool(block.column_names[-1])
        corner = [self.labels[r][self.stub[-1]] for r in header]
        if len(corner) != len(block.column_names):
            pass  # labels that hold several
        elif self.pandas:  # the names of columns stand in the corner
            block.column_names = corner
        elif all(text[:1].isupper() for text in corner if text):
            own = self._name(self.stub[-1])  # the other rows have names of their own
            said = zip(corner, block.column_names, strict=True)
            block.column_names = [text if text not in ("", own) else name for text, name in said]
        for k, path in enumerate(paths):
            if not any(path):
                raise ValueError(
                    f"{self.grid.sheet.where}: column {self.body[k] + 1} has no label"
                    + self._of_columns()
                    + "."
                )

    def _of_columns(self) -> str:
        found = re.fullmatch(r".+?\s*\\\s*(.+)", self.names[-1])
        return f" of {cite(found[1])}" if found else ""

    def _fill_rows(self, stub: Sequence[int]) -> None:
        """Fill paths of rows: labels of the stub, headings and indentation."""
        block, grid = self.block, self.grid
        block.lines = [grid.lines[r] for r in self.rows]
        block.row_names = [self._name(c) for c in stub]
        self._pandas_names(stub)
        labels = self._stub_labels(stub)
        sections = {r: self._section_label(r) for r in self.sections}
        sections = {r: text for r, text in sections.items() if text}
        if sections or self._has_indents():
            paths = self._tree(labels, sections)
        else:
            paths = [tuple(row) for row in labels]
            block.sparse = len(stub) > 1 or block.listed
        deep = max((len(path) for path in paths), default=0)
        if deep > len(block.row_names):
            own = block.row_names
            if len(stub) == 1 and not self._is_headed(paths, sections):
                block.tree_name, own = own[0], [""]
            block.row_names = [""] * (deep - len(own)) + own
        block.rows = [(*path, *[ALL] * (deep - len(path))) for path in paths]

    def _is_headed(self, paths: Sequence[Path], sections: dict[int, str]) -> bool:
        """Return whether all outer labels are headings, so that the corner names the labels."""
        heads = set(sections.values())
        parts = [part for part in BETWEEN.split(self.names[0]) if part]
        return len(parts) < 2 and all(text in heads for path in paths for text in path[:-1])

    def _stub_labels(self, stub: Sequence[int]) -> list[list[str]]:
        """Return the labels of each row, those that are left out filled in from above.

        A row that has a new label further left, and none here, is a total.
        """
        labels = [[_bare(_BULLET.sub("", self.labels[r][c])) for c in stub] for r in self.rows]
        printed = [list(row) for row in labels]
        for k in range(len(stub) - 1):
            if self._is_filled([row[k] for row in printed]):
                for i in range(1, len(labels)):
                    if not any(printed[i][:k]):
                        labels[i][k] = labels[i][k] or labels[i - 1][k]
        return labels

    def _pandas_names(self, stub: Sequence[int]) -> None:
        """Take a row of names below the header, which has no numbers, as names of the stub."""
        first = self.rows[0] if self.rows else 0
        above = [r for r in self.sections if r < first]
        others = [r for r in self.sections if r > first]
        if len(above) == 1 and not others and len(self.header) >= 1:
            names = [self.labels[above[0]][c] for c in stub]
            named = any(self.names) or len(stub) > 1
            if all(names) and named and not self._has_indents():
                self.pandas = len(stub) == 1
                self.sections = [r for r in self.sections if r != above[0]]
                self.block.row_names = names

    def _is_filled(self, column: list[str]) -> bool:
        """Return whether empty labels repeat the one above: each is printed once, at its first."""
        twice = any(a == b and a for a, b in pairwise(column))
        return "" in column and bool(column[0]) and not twice

    def _section_label(self, r: int) -> str:
        text = next(filter(None, self.labels[r]), "")
        return "" if len(text) > 80 or _NOTE.fullmatch(text) else text

    def _indent(self, r: int, c: int) -> int:
        cell = self.grid.rows[r][c]
        if not isinstance(cell, str):
            return 0
        dots = re.match(r"[\s\u00a0]*(?:[.\u2022\u2013-]\s+)*", cell)
        return len(dots[0].expandtabs(4)) if dots else 0

    def _tree(self, labels: list[list[str]], sections: dict[int, str]) -> list[Path]:
        """Return paths by headings and indentation: the label of a row is part of those above."""
        one = len(labels[0]) == 1
        stack: list[tuple[int, str, bool]] = []  # indentation, label, whether it is a heading
        paths: list[Path] = []
        own = dict(zip(self.rows, labels, strict=True))
        before = -1
        c = self.stub[0]
        for r in sorted([*self.rows, *sections]):
            indent = self._indent(r, c) if one or r in sections else 0
            if r in sections:
                nested = before in sections
                while stack and (
                    stack[-1][0] > indent
                    or (stack[-1][0] == indent and not (nested and stack[-1][2]))
                ):
                    stack.pop()
                stack.append((indent, sections[r], True))
            else:
                while stack and (
                    stack[-1][0] > indent or (stack[-1][0] == indent and not stack[-1][2])
                ):
                    stack.pop()
                outer = [text for _, text, _ in stack]
                paths.append((*outer, *own[r]))
                if one:
                    stack.append((indent, own[r][0], False))
            before = r
        return paths
