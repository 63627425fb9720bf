"""Files as sheets of cells: delimited text, Excel, ODS, JSON-stat, PC-Axis, folders and archives.

A sheet is a grid of texts (and numbers, where the file has numbers), as it is seen on a screen:
nothing is said yet about what is a header, a label or a note. JSON-stat and PC-Axis become the
long form: a column for each variable and one with the numbers.

A cell is a number with its flags, or a mark of a number that is not given: offices print ``1 234``,
``1.234,5``, ``12.5 %``, ``10 p`` (provisional), ``(10)`` (uncertain), ``10*`` (a footnote), ``-``
(nil), ``:``, ``..``, ``x``, ``[c]`` or ``(D)`` (not given) and ``<5``.
"""

import csv
import io
import math
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

from rejoint.cost import read_all
from rejoint.domain.labels import natural_order
from rejoint.io.schema import SchemaError, read_json
from rejoint.messages import Message
from rejoint.records.delimited import (
    DELIMITERS,
    Dialect,
    find_dialect,
    read_csv_rows,
    read_rows,
)
from rejoint.records.files import Source
from rejoint.text import cite, clean_label, plural, show

#: Marks that statistical offices print in place of a number that they do not give.
SUPPRESSED = frozenset(
    {
        *(".", "..", "...", "…", "*", "**", "***", ":", "?", "/", "c", "x", "s", "d", "f", "u"),
        *("na", "n/a", "n.a.", "n.a", "nan", "null", "np", "n.p.", "nd", "n.d.", "b", "n"),
        *("low", "conf", "confidential", "suppressed", "secret", "..c", ":c", ": c", "..s"),
    }
)
#: Marks of nothing: no case, or none possible.
NIL = frozenset({"-", "--", "\u2013", "\u2014", "\u2212", "\u2012", "nil", "z"})

ANYTHING = (0.0, math.inf)
_MARKS = dict.fromkeys(SUPPRESSED, ANYTHING)

_SPACE = " \u00a0\u202f\u2009\u2007'\u2019"  # between thousands
_NUMBER = re.compile(
    rf"""(?P<open>\()?
    (?P<core>[+±-]?(?:\d{{1,2}}(?:,\d\d)+,\d{{3}}(?:\.\d+)?|  # 12,34,567 in India
    \d{{1,3}}(?:[{_SPACE}.,]\d{{3}})+(?:[.,]\d+)?|\d+(?:[.,]\d*)?|[.,]\d+)
    (?:[eE][+-]?\d+)?)
    \s*(?P<percent>%)?(?(open)\)|)
    (?P<flag>(?:\s*(?:[*†‡§¶^!¹²³⁰-⁹ᵃ-ᶿ]+|\[[^\]]{{1,12}}\]|\([^)]{{1,12}}\)|(?<=\s)\d\)))*
    (?:\s?[a-zA-Z]{{1,2}}(?:[, ]{{0,2}}[a-zA-Z]{{1,2}})?[*]?)?)""",
    re.VERBOSE,
)
_ORDINAL = re.compile(r"\d+\s?(?:st|nd|rd|th|er|e|è|º|ª|m|M|y|h)")
_BELOW = re.compile(r"(?:<|&lt;)\s*(?P<strict>[\d.,]+)|(?:<=|≤)\s*(?P<most>[\d.,]+)")
_RANGE = re.compile(r"(?P<low>\d+)\s*(?:-|\u2013|to|\.\.)\s*(?P<high>\d+)")
_BRACKETS = re.compile(r"[\[(]\s*([^\[\]()]{1,14}?)\s*[\])]")


class Cell(NamedTuple):
    """A number, NaN where it is not known, and its bounds in that case.

    Examples
    --------
    >>> Cell(3.0, 3.0, 3.0).known
    True
    """

    value: float
    low: float
    high: float
    percent: bool = False
    flag: str = ""  # footnote or flag beside the number, or the mark in its place
    digits: int = 0  # decimals

    @property
    def known(self) -> bool:
        """Whether it is a number."""
        return not math.isnan(self.value)


def read_cell(
    text: str, suppressed: Mapping[str, tuple[float, float]] = _MARKS, decimal: str = "."
) -> Cell:
    """Read a cell: a number, a mark such as ``*``, or a bound such as ``<5``; else an error.

    Parameters
    ----------
    text : str
        ``1,234``, ``12.5 %``, ``10 p``, ``<5``, ``1-4``, ``-``, ``[c]``, or the empty text, which
        means unknown.
    suppressed : mapping of str to (least, most)
        Marks of unknown cells, in lower case, and their bounds.
    decimal : {".", ","}
        The decimal mark.

    Examples
    --------
    >>> read_cell("1,234 p").value, read_cell("<5")[:3]
    (1234.0, (nan, 0.0, 4.0))
    >>> read_cell("12,5 %", decimal=",")
    Cell(value=12.5, low=12.5, high=12.5, percent=True, flag='', digits=1)
    """
    text = text.strip().replace("\u2212", "-")  # the typographic minus
    bare = "*" if text.strip("*") == "" else bare_mark(text)
    for mark in (text.lower(), bare):
        if not text or mark in suppressed:
            return Cell(math.nan, *suppressed.get(mark, ANYTHING), flag=text)
    if text.lower() in NIL or bare in NIL:
        return Cell(0.0, 0.0, 0.0, flag=text)
    bounds = _bounds(text, decimal)
    if bounds is not None:
        return Cell(math.nan, *bounds, flag=text)
    found = _NUMBER.fullmatch(text)
    if found is None or _ORDINAL.fullmatch(text):
        raise ValueError(text)
    core, tail = _plain(found["core"], decimal), found["flag"].strip()
    value = float(core)
    if math.isinf(value):  # 1e999
        raise ValueError(text)
    digits = len(core.partition(".")[2]) if "e" not in core.lower() else 0
    flag = tail or ("()" if found["open"] else "")
    return Cell(value, value, value, bool(found["percent"]), flag, digits)


def bare_mark(text: str) -> str:
    """Return a mark without the brackets around it, in lower case.

    Examples
    --------
    >>> bare_mark("[C]"), bare_mark("..")
    ('c', '..')
    """
    found = _BRACKETS.fullmatch(text.strip())
    return (found[1] if found else text.strip()).lower()


def _plain(core: str, decimal: str) -> str:
    """Return a number as Python writes it; an error if its marks cannot mean this."""
    core = re.sub(rf"[{_SPACE}±]", "", core)
    thousands = "," if decimal == "." else "."
    whole, mark, rest = core.partition(decimal)
    if thousands in rest or decimal in rest:
        raise ValueError(core)
    groups = whole.lstrip("+±-").split(thousands)
    sizes = [len(group) for group in groups]
    if len(sizes) > 1:
        usual = set(sizes[1:]) == {3} and 0 < sizes[0] <= 3
        indian = thousands == "," and sizes[-1] == 3 and set(sizes[1:-1]) == {2} and sizes[0] < 3
        if not usual and not indian:
            raise ValueError(core)
    return whole.replace(thousands, "") + ("." + rest if mark and rest else "")


def _bounds(text: str, decimal: str) -> tuple[float, float] | None:
    """Return the bounds of ``<5`` (for counts: at most 4), ``<=4``, ``1-4``; None for others."""
    if found := _BELOW.fullmatch(text.removesuffix("%").strip()):
        number = _plain(found["most"] or found["strict"], decimal)
        if found["most"]:
            return 0.0, float(number)
        below = float(number)
        whole = "." not in number and not text.endswith("%")
        return 0.0, below - 1.0 if whole and below >= 1.0 else below
    if found := _RANGE.fullmatch(text):
        low, high = float(found["low"]), float(found["high"])
        return (low, high) if low <= high else None
    return None


Kind = Literal["empty", "number", "mark", "range", "text"]


def kind_of_cell(text: str | float, marks: frozenset[str] = SUPPRESSED) -> Kind:
    """Return what a cell looks like, whatever its decimal mark.

    Examples
    --------
    >>> [kind_of_cell(t) for t in ("1.234,5 p", "[c]", "15-24", "Men", "")]
    ['number', 'mark', 'range', 'text', 'empty']
    """
    if isinstance(text, float):
        return "number"
    text = text.strip()
    if not text:
        return "empty"
    if not text.strip("*") or {bare_mark(text), text.lower()} & marks or bare_mark(text) in NIL:
        return "mark"
    if _RANGE.fullmatch(text):
        return "range"
    for decimal in (".", ","):
        try:
            return "number" if read_cell(text, {}, decimal).known else "mark"
        except ValueError:
            continue
    return "text"


def find_decimal(texts: Iterable[str]) -> tuple[str | None, str]:
    """Return the decimal mark that the numbers show, and one that could be read in two ways.

    None if nothing decides and there is such a number: ``9.132`` is 9132 or a little more than 9.

    Examples
    --------
    >>> find_decimal(["12,5", "3"]), find_decimal(["9.132", "2.628"])
    ((',', ''), (None, '9.132'))
    >>> find_decimal(["9.132", "945"]), find_decimal(["9,132", "0,500"])
    ((',', ''), (',', ''))
    """
    cores = [found["core"].lstrip("+±-") for t in texts if (found := _NUMBER.fullmatch(t.strip()))]
    doubtful: dict[str, str] = {}
    bare = False
    for core in cores:
        core = re.sub(rf"[{_SPACE}]", "", core)
        marks = re.findall(r"[.,]", core)
        if len(set(marks)) == 2:  # 1.234,5
            return marks[-1], ""
        if len(marks) > 1:  # 1.234.567
            return ("," if marks[0] == "." else "."), ""
        if marks and not re.fullmatch(r"[1-9]\d{0,2}[.,]\d{3}", core):  # 12,5 or 0.125
            return marks[0], ""
        if marks:
            doubtful.setdefault(marks[0], core)
        elif len(core) > 3 and core.isdecimal():  # thousands are not separated
            bare = True
    if not doubtful:
        return ".", ""
    if len(doubtful) > 1:
        return None, next(iter(doubtful.values()))
    ((mark, example),) = doubtful.items()
    if bare:
        return mark, ""
    small = any(core.isdecimal() and int(core) > 0 for core in cores if len(core) <= 3)
    return (("," if mark == "." else "."), "") if small else (None, example)


Paths = str | PathLike[str] | Sequence[str | PathLike[str]]
Text = str | float

WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".px", ".json", *WORKBOOKS)

#: Cells of one file above which it is not read: a table has fewer.
MOST_CELLS = 2_000_000
_MOST_COLUMNS = 16_384  # as in a workbook
#: Lines in which a number must have occurred.
_FIRST_LINES = 2_000
_GUESS_LINES = 400
_RULE = re.compile(r"(?::?[-=_][-=_+]+:?)?")
_PADDED_QUOTE = re.compile(r'^\s+"([^"]*)"\s*$')
_SAYS = re.compile(r"#\s*([\w ]+?)\s*[:=]\s*(.+?)\s*")


class NotATableError(ValueError):
    """A file that has no table; among others it is left out."""


@dataclass
class Sheet:
    """A grid of cells, with the file and the line of each row.

    ``merged`` has the ranges of merged cells: first row, first column, last row, last column.
    ``said`` has what comments of the file say: ``# weight: 2``.
    """

    source: str
    stem: str
    name: str
    rows: list[list[Text]]
    lines: list[int]
    merged: list[tuple[int, int, int, int]] = field(default_factory=list)
    said: dict[str, str] = field(default_factory=dict)
    delimiter: str = ""

    @property
    def where(self) -> str:
        """The file and, where it has several, the sheet."""
        return f"{self.source}, sheet {cite(self.name)}" if self.name else self.source

    def error(self, template: str, /, **fields: Any) -> ValueError:
        """Return an error about the sheet, which its message calls ``{where}``."""
        return ValueError(Message(template, where=self.where, **fields))


def list_files(paths: Paths) -> list[Source]:
    """Return the files to read: those of a folder or an archive in natural order, or the given.

    Examples
    --------
    >>> [source.name for source in list_files(["b.csv", "a.csv"])]
    ['b.csv', 'a.csv']
    """
    found: list[Source] = []
    for path in [paths] if isinstance(paths, str | PathLike) else paths:
        if str(path) != "-" and Path(path).is_dir():
            inside = [p.name for p in Path(path).iterdir() if p.is_file()]
            names = [name for name in inside if _is_table(name) or name.lower().endswith(".zip")]
            if not names:
                raise ValueError(
                    f"The folder '{path}' has no table files: names must end in "
                    f"{', '.join(SUFFIXES)}, with or without .gz, or .zip."
                )
            for name in natural_order(names):
                found += _members(Path(path, str(name)))
        else:
            found += _members(path)
    if not found:
        raise ValueError("No table files were given.")
    return found


def _is_table(name: str) -> bool:
    base = PurePosixPath(name).name.lower()
    if base[:1] in (".", "~") or base.endswith("_metadata.csv"):
        return False
    return base.removesuffix(".gz").endswith(SUFFIXES)


def _members(path: str | PathLike[str]) -> list[Source]:
    """Return a file, or the files of a .zip archive."""
    if not str(path).lower().endswith(".zip"):
        return [Source(path)]
    try:
        with zipfile.ZipFile(path) as archive:
            names = [i.filename for i in archive.infolist() if not i.is_dir()]
            names = [name for name in names if _is_table(name)]
            if not names:
                raise ValueError(
                    f"The archive '{path}' has no table files: names must end in "
                    f"{', '.join(SUFFIXES)}."
                )
            return [
                Source(f"{path}/{name}", content=archive.read(str(name)))
                for name in natural_order(names)
            ]
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path}: the archive is cut short or corrupt ({error}).") from error


def read_sheets(
    source: Source,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> list[Sheet]:
    r"""Read the sheets of a file; text files have one.

    Examples
    --------
    >>> read_sheets(Source("t.csv", content=b"a;n\nx;1,5\n"))[0].rows
    [['a', 'n'], ['x', '1,5']]
    """
    with source.open() as file:
        start = file.read(8)
    packed = start.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0"))
    if packed or source.suffix in WORKBOOKS:
        return _read_workbook(source, sheet)
    if source.suffix == ".px" or start.startswith(b"CHARSET") or start.startswith(b"AXIS-VER"):
        return [_read_px(source, encoding)]
    if source.suffix == ".json" or start.lstrip(b"\xef\xbb\xbf \r\n").startswith(b"{"):
        return _read_json_stat(source)
    return [_read_text(source, delimiter, encoding)]


def _stem(source: Source) -> str:
    return Path(source.name).name.split(".")[0]


# Delimited text ---------------------------------------------------------------------------


def _read_text(source: Source, delimiter: str | None, encoding: str | None) -> Sheet:
    dialect = find_dialect(source, delimiter or ",", encoding, comment="#")
    lines, said = _first_lines(source, dialect)
    first = lines[0].strip().strip('"') if lines else ""
    told = re.fullmatch(r"sep=(.)", first, re.IGNORECASE)
    if delimiter is None and told:
        dialect = Dialect(dialect.encoding, told[1], "#")
    elif delimiter is None:
        tabs = source.suffix in (".tsv", ".tab") and any("\t" in line for line in lines)
        dialect = Dialect(dialect.encoding, "\t" if tabs else _choose_delimiter(lines), "#")
    rows: list[list[Text]] = []
    numbers: list[int] = []
    size, seen, before = 0, False, 0
    for line, row in read_rows(source, dialect):
        if told and not rows and not numbers and line == 1:
            before = line
            continue
        gap = line - before
        if gap > 1 and gap - sum(cell.count("\n") for cell in row) > 1:  # blank lines between
            rows.append([])
            numbers.append(line - 1)
        before = line
        if all(_RULE.fullmatch(cell.strip()) for cell in row):
            continue  # a line between header and rows
        rows.append([_PADDED_QUOTE.sub(r"\1", cell) for cell in row])
        numbers.append(line)
        size += len(row)
        if size > MOST_CELLS or len(row) > _MOST_COLUMNS:
            raise _not_a_table(source.name, None)
        seen = seen or any(kind_of_cell(cell) == "number" for cell in row[1:])
        if line > _FIRST_LINES and not seen:
            raise _not_a_table(source.name, line)
    if dialect.delimiter == "|":  # padded; Stata has several numbers between two lines
        cells = [[re.split(r"\s{2,}", str(cell).strip()) for cell in row] for row in rows]
        rows = [[text for parts in row for text in parts] for row in cells]
    _join_prose(rows, dialect.delimiter)
    _unpack_first(rows)
    return Sheet(
        source.name, _stem(source), "", rows, numbers, said=said, delimiter=dialect.delimiter
    )


def _join_prose(rows: list[list[Text]], delimiter: str) -> None:
    """Make one cell of a title or note that holds the delimiter and was not quoted."""
    sizes = [len(row) for row in rows if len(row) > 1]
    common = max(set(sizes), key=sizes.count, default=0)
    for row in rows:
        after = [str(cell) for cell in row[1:]]
        blank = any(cell[:1] == " " and cell.strip() for cell in after)
        pairs = zip(row, after, strict=False)  # "per 1,000"
        thousands = any(re.match(r"000\b", b) and str(a)[-1:].isdigit() for a, b in pairs)
        if len(row) in (1, common) or not (blank or thousands) or not str(row[0]).strip():
            continue
        if all(kind_of_cell(cell) in ("text", "empty") for cell in after):
            row[:] = [delimiter.join(map(str, row)).rstrip(delimiter)]


def _unpack_first(rows: list[list[Text]]) -> None:
    r"""Split a first column that holds several, as Eurostat has it: ``sex,age,geo\TIME_PERIOD``."""
    head = str(rows[0][0]) if rows and rows[0] else ""
    if re.fullmatch(r"\w+(?:,\w+)+\\\w+", head) and len(rows[0]) > 1:
        wide = head.count(",") + 1
        for row in rows:
            parts = str(row[0]).split(",") if row else []
            if len(parts) == wide:
                row[:1] = parts


def _not_a_table(name: str, line: int | None) -> ValueError:
    if line is None:
        return NotATableError(
            f"{name} has more than {MOST_CELLS:,} cells, or {_MOST_COLUMNS:,} in a row: it is not "
            "a table. Extract the part that is one."
        )
    return NotATableError(
        f"{name} has no table: none of its first {line:,} lines has a label and a number beside it."
    )


def _first_lines(source: Source, dialect: Dialect) -> tuple[list[str], dict[str, str]]:
    """Return the first lines that are no comments, and what comments above them say."""
    said: dict[str, str] = {}
    lines: list[str] = []
    with source.open() as file:
        start = file.read(2**18).decode(dialect.encoding, errors="replace")
    for line in islice(io.StringIO(start), _GUESS_LINES):
        text = line.strip().lstrip("\ufeff")
        if not text.startswith("#"):
            lines.append(line.lstrip("\ufeff"))
        elif not any(line.strip() for line in lines) and (found := _SAYS.fullmatch(text)):
            said[found[1].strip().lower()] = found[2]
    return lines, said


def _choose_delimiter(lines: Sequence[str]) -> str:
    """Return the delimiter of lines with numbers; a comma only if no other one is in most of them.

    Commas also separate thousands and decimals, and stand in titles.
    """
    there = [line for line in lines if re.search(r"\d", line) and re.search(r"[,;\t|]", line)]
    there = there or list(lines)
    best, score = ",", (0.0, 0)
    for delimiter in DELIMITERS:
        try:
            sizes = [len(row) for row in read_csv_rows(there, delimiter)]
        except csv.Error:
            continue
        wide = [size for size in sizes if size > 1]
        common = max(set(wide), key=wide.count, default=0)
        share = wide.count(common) / max(len(there), 1)
        if delimiter != "," and len(wide) >= 0.6 * len(there):
            share += 1.0
        if (share, common) > score:
            best, score = delimiter, (share, common)
    return best


# Workbooks --------------------------------------------------------------------------------


def _read_workbook(source: Source, sheet: str | None) -> list[Sheet]:
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
    except (CalamineError, ValueError, OSError) as error:
        raise ValueError(f"{source.name} cannot be read as a workbook: {error}.") from error
    names = list(book.sheet_names)
    if sheet is not None:
        if sheet not in names and sheet.isdecimal() and 0 < int(sheet) <= len(names):
            sheet = names[int(sheet) - 1]
        if sheet not in names:
            raise ValueError(f"{source.name} has no sheet {cite(sheet)}: it has {show(names)}.")
        names = [sheet]
    several = len(book.sheet_names) > 1
    return [_one_sheet(source, book.get_sheet_by_name(name), name, several) for name in names]


def _one_sheet(source: Source, page: Any, name: str, several: bool) -> Sheet:
    if page.height * page.width > MOST_CELLS:
        raise _not_a_table(source.name, None)
    rows = [[_text_of(cell) for cell in row] for row in page.to_python(skip_empty_area=False)]
    merged = [(*first, *last) for first, last in page.merged_cell_ranges or ()]
    lines = list(range(1, len(rows) + 1))
    return Sheet(source.name, _stem(source), name if several else "", rows, lines, merged)


def _text_of(cell: Any) -> Text:
    if isinstance(cell, bool):
        return str(cell)
    if isinstance(cell, int | float):
        return float(cell) if math.isfinite(cell) else ""
    return cell if isinstance(cell, str) else str(cell)


# JSON-stat --------------------------------------------------------------------------------


def _read_json_stat(source: Source) -> list[Sheet]:
    with source.open() as file:
        try:
            plain = read_json(read_all(file, source.name), allow_nan=True)
        except SchemaError as error:
            raise ValueError(f"{source.name}: {error}.") from error
    try:
        found = list(_data_sets(plain))
        sheets = [_json_stat_sheet(source, part, i if len(found) > 1 else 0) for i, part in found]
    except NotATableError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
        reason = clean_label(repr(error), 200)
        raise ValueError(f"{source.name} is not valid JSON-stat: {reason}.") from error
    if not sheets:
        raise NotATableError(
            f"{source.name} is JSON, but not JSON-stat: no part of it has 'value' with 'id' and "
            "'size', or 'dimension'."
        )
    return sheets


def _data_sets(plain: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the data sets of JSON-stat 1 (a bundle) and 2 (a data set or a collection)."""
    if not isinstance(plain, dict):
        return
    inside = plain.get("link", {}).get("item", []) if plain.get("class") == "collection" else ()
    parts = [plain, *plain.values(), *inside]
    number = 0
    for part in parts:
        if isinstance(part, dict) and "value" in part and "dimension" in part:
            number += 1
            yield number, part


def _json_stat_sheet(source: Source, part: Mapping[str, Any], number: int) -> Sheet:
    dimensions = part["dimension"]
    ids = list(part.get("id") or dimensions["id"])
    sizes = [int(size) for size in part.get("size") or dimensions["size"]]
    names, labels = [], []
    for key, size in zip(ids, sizes, strict=True):
        category = dimensions[key].get("category", {})
        texts = category.get("label", {})
        index = category.get("index") or list(texts)
        order = sorted(index, key=lambda code: index[code]) if isinstance(index, dict) else index
        labels.append([str(texts.get(code, code)) for code in order])
        names.append(str(dimensions[key].get("label") or key))
        if len(order) != size:
            raise KeyError(f"size of {key}")
    values, status = part["value"], part.get("status") or {}
    if math.prod(sizes) > MOST_CELLS:
        raise _not_a_table(source.name, None)
    at = values.get if isinstance(values, dict) else None
    rows: list[list[Text]] = [[*names, "OBS_VALUE"]]
    for i, said in enumerate(product(*labels)):
        value = at(str(i)) if at else (values[i] if i < len(values) else None)
        mark = status if isinstance(status, str) else ""
        if not mark:
            mark = status.get(str(i), "") if isinstance(status, dict) else status[i]
        rows.append([*said, _text_of(value) if value is not None else str(mark or "..")])
    label = str(part.get("label", ""))
    units = {str(unit.get("base", "")) for key in ids for unit in _units(dimensions[key])}
    rows = [[label], *rows] if label else rows
    told = {"unit": units.pop()} if len(units) == 1 else {}
    name, lines = label if number else "", list(range(1, len(rows) + 1))
    return Sheet(source.name, _stem(source), name, rows, lines, [], told)


def _units(dimension: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the units of the categories of a dimension."""
    known = dimension.get("category", {}).get("unit") or {}
    return [unit for unit in known.values() if isinstance(unit, dict)]


# PC-Axis ----------------------------------------------------------------------------------

_KEYWORD = re.compile(r'\s*([A-Z][A-Z0-9-]*)(?:\[(\w+)\])?(?:\(\s*((?:"[^"]*"\s*,?\s*)+)\))?\s*=')
_QUOTED = re.compile(r'"([^"]*)"')
_PX_TEXTS = ("TITLE", "CONTENTS", "UNITS")


def _read_px(source: Source, encoding: str | None) -> Sheet:
    with source.open() as file:
        content = read_all(file, source.name)
    if encoding is None:
        told = re.search(rb'CODEPAGE="([\w-]+)"', content[:4000])
        encoding = told[1].decode() if told else "utf-8"
        try:
            content.decode(encoding)
        except (LookupError, UnicodeDecodeError):
            encoding = "cp1252"
    text = content.decode(encoding, errors="replace")
    said: dict[tuple[str, str], str] = {}
    at = 0
    while at < len(text) and (found := _KEYWORD.match(text, at)):
        end = _end_of_statement(text, found.end())
        of = _QUOTED.findall(found[3] or "")
        if not found[2]:  # further languages
            said[found[1], of[0] if of else ""] = text[found.end() : end].strip()
        at = end + 1
    names = [
        name for key in ("STUB", "HEADING") for name in _QUOTED.findall(said.get((key, ""), ""))
    ]
    if not names or ("DATA", "") not in said:
        raise ValueError(f"{source.name} is not valid PC-Axis: STUB, HEADING or DATA is missing.")
    labels = []
    for name in names:
        texts = _QUOTED.findall(said.get(("VALUES", name), ""))
        if not texts:
            raise ValueError(f"{source.name}: there is no VALUES({cite(clean_label(name))}).")
        labels.append(texts)
    cells = re.findall(r'"[^"]*"|[^\s,;]+', said["DATA", ""])
    if len(cells) != math.prod(map(len, labels)):
        raise ValueError(
            f"{source.name}: DATA has {plural(len(cells), 'cell')}, but the variables make "
            f"{math.prod(map(len, labels))}."
        )
    rows: list[list[Text]] = [[*names, "OBS_VALUE"]]
    for path, cell in zip(product(*labels), cells, strict=True):
        rows.append([*path, cell.strip('"')])
    heads = [" ".join(_QUOTED.findall(said.get((key, ""), ""))) for key in _PX_TEXTS]
    rows[:0] = [[text] for text in heads if text]
    unit = {"unit": heads[-1]} if heads[-1] else {}
    return Sheet(source.name, _stem(source), "", rows, list(range(1, len(rows) + 1)), [], unit)


def _end_of_statement(text: str, at: int) -> int:
    quoted = False
    while at < len(text) and (quoted or text[at] != ";"):
        quoted ^= text[at] == '"'
        at += 1
    return at
