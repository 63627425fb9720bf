r"""Tables from files: a folder of CSV files, some files, or one that holds several tables.

Lines that begin with ``#`` are comments; before the header, these have a meaning::

    # kind: percent            counts, shares or percent, where the numbers do not decide it
    # records: 1234            number of records behind a table of shares
    # weight: 2                weight of the table in a fit
    # standard error: 0.01     of a cell, in the unit of the table

Long: a column for each variable and one with the numbers (named like counts or shares), and
optionally one with standard errors. One file may contain several tables: cells of variables that
are not in the table of a row are then empty, or a column ``table`` names the table.

Wide: a cross-tabulation. The columns before the last corner hold labels of row variables, the
headers after it those of the column variable, whose name is in the corner, ``smoke \ age``, in
every header, ``age=young``, or comes last in the name of the file, ``smoke__age.csv``.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain
from rejoint.domain.labels import Level, natural_order
from rejoint.marginals.labelled_table import TOTALS, VALUE_NAMES, LabelledTable, split_totals
from rejoint.messages import Argument, Message
from rejoint.records.delimited import Dialect, find_dialect, read_rows
from rejoint.records.files import Source
from rejoint.text import nearest, show

#: Marks that statistical offices print in place of a suppressed number.
SUPPRESSED = frozenset(
    {".", "..", "...", "…", "*", "**", "c", "x", "s", "?", "na", "n/a", "nan", "null"}
)

_BELOW = re.compile(r"(?:<|&lt;)\s*(?P<strict>[\d.]+)|(?:<=|≤)\s*(?P<most>[\d.]+)")
_RANGE = re.compile(r"(?P<low>\d+)\s*(?:-|\u2013|to)\s*(?P<high>\d+)")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:[, '\xa0\u202f]\d{3})+(?:\.\d+)?")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


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

    @property
    def known(self) -> bool:
        """Whether it is a number."""
        return not math.isnan(self.value)


ANYTHING = (0.0, math.inf)
_MARKS = dict.fromkeys(SUPPRESSED, ANYTHING)


def read_cell(
    text: str, suppressed: Mapping[str, tuple[float, float]] = _MARKS, decimal: str = "."
) -> Cell:
    """Read a cell: a number, a mark such as ``*``, or a bound such as ``<5``; else an error.

    Parameters
    ----------
    text : str
        ``1,234``, ``12.5 %``, ``<5``, ``1-4``, ``c``, or the empty text, which means unknown.
    suppressed : mapping of str to (least, most)
        Marks of unknown cells, in lower case, and their bounds.
    decimal : {".", ","}
        The decimal mark.

    Examples
    --------
    >>> read_cell("1,234").value, read_cell("<5")
    (1234.0, Cell(value=nan, low=0.0, high=4.0, percent=False))
    >>> read_cell("12,5 %", decimal=",")
    Cell(value=12.5, low=12.5, high=12.5, percent=True)
    """
    text = text.strip()
    if not text or text.lower() in suppressed:
        return Cell(math.nan, *suppressed.get(text.lower(), ANYTHING))
    bounds = _bounds(text)
    if bounds is not None:
        return Cell(math.nan, *bounds)
    percent = text.endswith("%")
    plain = text.removesuffix("%").strip().replace("\u2212", "-")  # the typographic minus
    if decimal == ",":
        plain = plain.replace(".", " ").replace(",", ".")
    if _THOUSANDS.fullmatch(plain):
        plain = re.sub(r"[, '\xa0\u202f]", "", plain)
    if not _NUMBER.fullmatch(plain):
        raise ValueError(text)
    value = float(plain)
    if math.isinf(value):  # 1e999
        raise ValueError(text)
    return Cell(value, value, value, percent)


def _bounds(text: str) -> tuple[float, float] | None:
    """Return the bounds of ``<5`` (for counts: at most 4), ``<=4``, ``1-4``; None for others."""
    if found := _BELOW.fullmatch(text.removesuffix("%").strip()):
        if found["most"]:
            return 0.0, float(found["most"])
        below = float(found["strict"])
        whole = "." not in found["strict"] and not text.endswith("%")
        return 0.0, below - 1.0 if whole and below >= 1.0 else below
    if found := _RANGE.fullmatch(text):
        low, high = float(found["low"]), float(found["high"])
        return (low, high) if low <= high else None
    return None


def decimals(text: str, decimal: str = ".") -> int:
    """Return the number of decimals of a number as text.

    Examples
    --------
    >>> decimals("12.50 %"), decimals("7")
    (2, 0)
    """
    found = re.search(re.escape(decimal) + r"(\d+)\s*%?$", text.strip())
    return len(found[1]) if found else 0


Names = tuple[str, ...]
Row = tuple[int, list[str]]

ERROR_NAMES = {"se", "stderr", "std_error", "standard_error", "standard error", "error"}
_PERCENT = {"percent", "percentage", "pct"}
TABLE_NAMES = {"table", "table_name", "table_id"}

_CORNER = re.compile(r"(.+?)\s*\\\s*(.+)")
_BETWEEN = re.compile(r"__| x | by |,")


@dataclass(frozen=True)
class Options:
    """The user's options for reading cells."""

    suppressed: Mapping[str, tuple[float, float]] = field(
        default_factory=lambda: dict.fromkeys(SUPPRESSED, ANYTHING)
    )
    decimal: str = "."
    noisy: bool = False
    totals: Collection[str] = TOTALS


@dataclass
class Pile:
    """Cells of one table while they are collected: labels, numbers, standard errors."""

    names: Names
    labels: list[tuple[str, ...]] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    digits: int = 0
    errors: list[float] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    column: str = ""

    def add(self, labels: tuple[str, ...], text: str, line: int, where: str, how: Options) -> None:
        """Read one cell; raise an error with its place if it is not a number."""
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
                Message(
                    "{where}, line {at}: {cells} cells, but the header (line {line}) has {wide}. "
                    "Quote cells that hold the delimiter, or say {delimiter}.",
                    where=where,
                    at=at,
                    cells=len(row),
                    line=line,
                    wide=len(header),
                    delimiter=Argument("delimiter"),
                )
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
    """Return row variables, column variable and its labels, if the file is a cross-tabulation."""
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
    """Return which columns have numbers, standard errors and the name of the table."""
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
    """Scatter collected cells into dense arrays; combinations that are left out are zero."""
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


Paths = str | PathLike[str] | Sequence[str | PathLike[str]]

SUFFIXES = (".csv", ".tsv", ".tab", ".txt")

_WHOLE = re.compile(r"-?(?:0|[1-9]\d*)")
_REAL = re.compile(r"-?(?:0|[1-9]\d*)\.\d+")
_SAYS = re.compile(r"#\s*([\w ]+?)\s*[:=]\s*(.+?)\s*")
_KINDS = {"counts": "count", "count": "count", "shares": "share", "share": "share"}


@dataclass(frozen=True)
class TableFiles:
    """Tables read from files, and their weights in the files."""

    tables: tuple[LabelledTable, ...]
    weights: Mapping[tuple[str, ...], float]


def list_files(paths: Paths) -> list[Path | str]:
    """Return the files to read: those of a folder in natural order, or the given ones.

    Examples
    --------
    >>> list_files(["b.csv", "a.csv"])
    ['b.csv', 'a.csv']
    """
    if isinstance(paths, str | PathLike):
        paths = [paths]
    found: list[Path | str] = []
    for path in paths:
        if str(path) == "-" or not Path(path).is_dir():
            found.append(str(path))
            continue
        inside = [p.name for p in Path(path).iterdir() if p.is_file() and p.name[0] != "."]
        names = [name for name in inside if name.lower().removesuffix(".gz").endswith(SUFFIXES)]
        if not names:
            raise ValueError(
                f"The folder '{path}' has no table files: names must end in "
                f"{', '.join(SUFFIXES)}, with or without .gz."
            )
        found += [Path(path, str(name)) for name in natural_order(names)]
    if not found:
        raise ValueError("No table files are named.")
    return found


def read_files(
    paths: Paths,
    *,
    domain: Domain | None = None,
    suppressed: Collection[str] | Mapping[str, tuple[float, float]] = (),
    totals: Collection[str] = tuple(TOTALS),
    decimal: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    noisy: bool = False,
) -> TableFiles:
    r"""Read the tables of some files; see :meth:`rejoint.Marginals.read`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "t.csv").write_text("a,b,count\nx,1,3\ny,2,<5\n")
    ...     table = read_files(folder).tables[0]
    >>> table.names, table.labels
    (('a', 'b'), (('x', 'y'), (1, 2)))
    """
    if decimal not in (None, ".", ","):
        raise ValueError(f"decimal must be '.' or ',', got {decimal!r}.")
    tables: list[LabelledTable] = []
    weights: dict[tuple[str, ...], float] = {}
    for path in list_files(paths):
        source = Source(path)
        dialect = find_dialect(source, delimiter, encoding, comment="#")
        rows = list(read_rows(source, dialect))
        how = Options(
            marks_of(suppressed),
            decimal or guess_decimal(rows, dialect.delimiter),
            noisy,
            frozenset(total.lower() for total in totals),
        )
        stem = Path(source.name).name.split(".")[0]
        read = read_layout(rows, source.name, stem, how)
        said = read_comments(source, dialect)
        tables += [_as_said(table, said) for table in read]
        if "weight" in said:
            weights.update({table.names: float(said["weight"]) for table in read})
    return TableFiles(tuple(typed(tables, domain)), weights)


def marks_of(
    suppressed: Collection[str] | Mapping[str, tuple[float, float]],
) -> dict[str, tuple[float, float]]:
    """Return the marks of suppressed cells with their bounds: the usual ones and the given ones.

    Examples
    --------
    >>> marks_of({"*": (1, 4)})["*"], marks_of(["zz"])["zz"]
    ((1, 4), (0.0, inf))
    """
    if isinstance(suppressed, str):
        suppressed = [suppressed]
    marks = dict.fromkeys(SUPPRESSED, (0.0, float("inf")))
    for mark in suppressed:
        bounds = suppressed[mark] if isinstance(suppressed, Mapping) else (0.0, float("inf"))
        if not 0 <= bounds[0] <= bounds[1]:
            raise ValueError(f"suppressed: the bounds of {mark!r} are {bounds}; least, then most.")
        marks[mark.strip().lower()] = bounds
    return marks


def guess_decimal(rows: Iterable[tuple[int, list[str]]], delimiter: str) -> str:
    """Return the decimal mark: a comma if it is not the delimiter and cannot separate thousands.

    Examples
    --------
    >>> guess_decimal([(1, ["a", "12,5"])], ";"), guess_decimal([(1, ["a", "1,250"])], ";")
    (',', '.')
    """
    number = re.compile(r"[+-]?\d+,(?:\d{1,2}|\d{4,})\s*%?")
    found = any(number.fullmatch(cell.strip()) for _, row in rows for cell in row)
    return "," if delimiter != "," and found else "."


def read_comments(source: Source, dialect: Dialect) -> dict[str, str]:
    """Return the settings in comments above the header: ``# weight: 2``."""
    said: dict[str, str] = {}
    with source.open() as file:
        for line in file:
            text = line.decode(dialect.encoding, errors="replace").strip().lstrip("\ufeff")
            if text and not text.startswith("#"):
                break
            if found := _SAYS.fullmatch(text):
                said[found[1].strip().lower()] = found[2]
    for key in ("weight", "records", "standard error"):
        try:
            good = key not in said or float(said[key]) >= 0.0
        except ValueError:
            good = False
        if not good:
            raise ValueError(
                f"{source.name}: the comment '# {key}: {said[key]}' must give a number that is "
                "not negative."
            )
    return said


def _as_said(table: LabelledTable, said: Mapping[str, str]) -> LabelledTable:
    """Return the table with the settings in the comments of its file."""
    changes: dict[str, Any] = {}
    if "kind" in said:
        kind = said["kind"].lower()
        if kind.startswith(("percent", "%")):
            changes["percent"] = True
        elif kind in _KINDS:
            changes |= {"column": _KINDS[kind], "percent": False}
        else:
            raise ValueError(
                f"{table.source}: the comment '# kind: {said['kind']}' must say counts, shares or "
                "percent."
            )
    if "records" in said:
        changes["records"] = float(said["records"])
    if "standard error" in said:
        changes["error"] = float(said["standard error"])
    return replace(table, **changes)


def typed(tables: Sequence[LabelledTable], domain: Domain | None) -> list[LabelledTable]:
    """Return labels, which are text in a file, as levels of the domain, or as numbers if all are.

    Examples
    --------
    >>> import numpy as np
    >>> table = LabelledTable(("a",), (("1", "2"),), np.ones(2))
    >>> typed([table], None)[0].labels
    ((1, 2),)
    """
    texts: dict[str, dict[str, Level]] = {}
    for table in tables:
        for name, labels in zip(table.names, table.labels, strict=True):
            texts.setdefault(name, {}).update({str(label): str(label) for label in labels or ()})
    for name, labels_of in texts.items():
        if domain is None:
            labels_of.update(_numbers(list(labels_of)))
        elif name not in domain:
            raise ValueError(
                f"The tables speak of {name!r}, which is not in the domain."
                + nearest(name, domain.names)
            )
        else:
            labels_of.update({str(level): level for level in domain[name].levels})
    return [_relabelled(table, texts) for table in tables]


def _numbers(labels: Sequence[str]) -> dict[str, Level]:
    if all(_WHOLE.fullmatch(label) for label in labels):
        return {label: int(label) for label in labels}
    if all(_WHOLE.fullmatch(label) or _REAL.fullmatch(label) for label in labels):
        return {label: float(label) for label in labels}
    return {}


def _relabelled(table: LabelledTable, texts: Mapping[str, Mapping[str, Level]]) -> LabelledTable:
    labels = tuple(
        tuple(texts[name][str(label)] for label in known or ())
        for name, known in zip(table.names, table.labels, strict=True)
    )
    margins = tuple(_relabelled(margin, texts) for margin in table.margins)
    return replace(table, labels=labels, margins=margins)
