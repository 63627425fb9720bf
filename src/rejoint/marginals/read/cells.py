"""Cells of a table as text: numbers, their decimals and flags, and marks in place of numbers."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import inf, isfinite, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray
from rejoint.cost import machine_memory
from rejoint.text import cite, plural

Bounds = tuple[float, float]

ZERO: Bounds = (0.0, 0.0)
UNKNOWN: Bounds = (0.0, inf)
#: Marks that say that a number is not given, and nothing else.
UNKNOWN_MARKS = frozenset(
    {"..", "...", "....", ".....", "......", "…", ":", "*", "**", "***", "x", "c", "na", "n/a"}
    | {"n.a.", "nan", "null", "d", "s", "suppressed", "conf"}
)
#: Marks that some offices print for zero and others for a number that they do not give.
DOUBTFUL_MARKS = frozenset({"", "-", "--", "---", "\u2013", "\u2014", ".", "z", "nil"})

#: Decimals of numbers that show no rounding.
UNROUNDED = 17

_SPACES = " \u00a0\u202f\u2009\u2007'\u2019"
_BELOW = re.compile(r"(?:<|&lt;)\s*(?P<strict>\d+)|(?:<=|\u2264)\s*(?P<most>\d+)")

#: Bytes for each cell of a dense array while it is read: numbers, marks, and copies of them.
_BYTES_OF_CELL = 40
#: Cells for each listed one from which columns repeat each other, in arrays that are not small.
_EMPTIEST, _SMALL = 100, 10_000_000


class Number(NamedTuple):
    """A number as printed, with its decimals, percent sign and flag."""

    value: float
    digits: int = 0
    percent: bool = False
    flag: str = ""


@cache
def _pattern(decimal: str) -> re.Pattern[str]:
    group = "," if decimal == "." else r"\."
    grouped = rf"\d{{1,3}}(?:[{group}]\d{{3}})+|\d{{1,3}}(?:[{_SPACES}]\d{{3}})+"
    indian = r"|\d{1,2}(?:,\d\d)+,\d{3}" if decimal == "." else ""
    return re.compile(
        rf"(?P<whole>[+-]?(?:{grouped}{indian}|\d+)?)(?:\{decimal}(?P<part>\d*))?"
        r"(?P<power>[eE][+-]?\d{1,3})?\s*(?P<percent>%?)"
        r"(?P<flag>(?:\s*(?:[*†‡§¹²³⁰-⁹]+|\[[^\]]{1,12}\]|\([^)\d]{1,12}\)))*(?:\s[a-z]{1,2})?)"
    )


def read_number(text: str, decimal: str = ".") -> Number | None:
    """Return the number that a cell shows, None where it shows something else."""
    if text.isdecimal() and len(text) < 16:
        return Number(float(text))
    text = text.strip().replace("\u2212", "-")
    match = _pattern(decimal).fullmatch(text)
    if match is None or not (match["whole"].strip("+-") or match["part"]):
        return None
    whole = re.sub(r"[^\d+-]", "", match["whole"])
    part, power = match["part"] or "", match["power"] or ""
    value = float(f"{whole}.{part}{power}" if part or power else whole)
    digits = UNROUNDED if power else len(part)
    number = Number(value, digits, bool(match["percent"]), match["flag"].strip())
    return number if isfinite(value) else None


def find_decimal(texts: Iterable[str]) -> str | None:
    """Return the decimal mark that numbers show; None if ``9.132`` may be 9132 or about 9."""
    certain: set[str] = set()
    doubtful: set[str] = set()
    small = large = False
    for text in texts:
        core = text
        if not text.isdecimal():
            core = re.sub(rf"[{_SPACES}]", "", text).lstrip("+-").rstrip("%*")
        if core.isdecimal():
            small |= len(core) <= 3 and core.strip("0") != ""
            large |= len(core) > 3
        elif re.fullmatch(r"[\d.,]+", core):
            marks = {mark for mark in ".," if read_number(core, mark)}
            if len(marks) == 2 and core[0] != "0":
                doubtful.add(core.strip("0123456789"))
            else:
                certain |= marks if len(marks) == 1 else {*core} & marks
    if certain or len(doubtful) != 1:
        return certain.pop() if len(certain) == 1 else None if doubtful or certain else "."
    (mark,) = doubtful
    if small == large:
        return None
    return mark if large else ("," if mark == "." else ".")


class Cells(NamedTuple):
    """Cells in order: numbers (NaN for marks), the code of each mark (0: none), and the marks."""

    values: FloatArray
    codes: NDArray[np.int32]
    marks: tuple[str, ...]
    digits: int
    percent: bool
    flags: Mapping[str, int]


def read_cells(texts: Sequence[str], decimal: str = ".") -> Cells:
    """Read cells; what is not a number is a mark, whatever it says."""
    place = {text: k for k, text in enumerate(dict.fromkeys(texts))}
    order = np.fromiter(map(place.__getitem__, texts), np.int64, len(texts))
    read = [read_number(text, decimal) for text in place]
    marks: dict[str, int] = {}
    codes = [
        0 if number else marks.setdefault(text.strip(), len(marks) + 1)
        for text, number in zip(place, read, strict=True)
    ]
    numbers = [number or Number(np.nan) for number in read]
    flags: Counter[str] = Counter()
    for number, times in zip(numbers, np.bincount(order), strict=True):
        if number.flag:
            flags[number.flag] += int(times)
    return Cells(
        np.array([n.value for n in numbers], dtype=np.float64)[order],
        np.array(codes, dtype=np.int32)[order],
        tuple(marks),
        max((n.digits for n in numbers), default=0),
        any(n.percent for n in numbers),
        flags,
    )


def meaning_of(mark: str, told: Mapping[str, Bounds]) -> Bounds | None:
    """Return the bounds of a mark: as told, or its own; None where it has none or two."""
    if mark in told:
        return told[mark]
    if match := _BELOW.fullmatch(mark):
        return 0.0, float(match["most"] or int(match["strict"]) - 1)
    bare = mark.lower()
    bare = bare[1:-1] if bare[:1] + bare[-1:] in ("[]", "()") and len(bare) > 2 else bare
    return UNKNOWN if bare in UNKNOWN_MARKS else None


@dataclass(frozen=True, eq=False)
class TableArray:
    """A table as a file has it: a labelled array, totals and all, before it is interpreted."""

    where: str  # the file, and the sheet or the number of the table in it
    names: tuple[str, ...]  # empty where the file has none
    labels: tuple[tuple[str, ...], ...]
    values: FloatArray  # NaN where a mark is
    codes: NDArray[np.int32]  # the number of the mark in ``marks``, from 1
    marks: tuple[str, ...] = ()
    digits: int = 0
    percent: bool = False  # there are percent signs
    measure: str = ""  # the axis whose labels are different measures
    units: Mapping[str, str] = field(default_factory=dict)  # of each of them; "": of all numbers
    scales: Mapping[str, int] = field(default_factory=dict)  # powers of ten, likewise
    totals: Mapping[str, Sequence[str]] = field(default_factory=dict)  # according to the format
    parts: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)  # of labels
    missing: Mapping[str, Bounds] = field(default_factory=dict)  # marks according to the format
    flags: Mapping[str, int] = field(default_factory=dict)  # beside so many cells
    heading: str = ""  # an axis whose name only heads the columns, which may be measures
    form: str = ""
    notes: tuple[str, ...] = ()

    def take(self, axis: int, kept: Sequence[int]) -> "TableArray":
        """Return the table with some labels of an axis."""
        labels = tuple(self.labels[axis][i] for i in kept)
        labels_of = (*self.labels[:axis], labels, *self.labels[axis + 1 :])
        values, codes = np.take(self.values, kept, axis), np.take(self.codes, kept, axis)
        return replace(self, labels=labels_of, values=values, codes=codes)

    def squeeze(self, axis: int) -> "TableArray":
        """Return the table without an axis of one label."""
        names = (*self.names[:axis], *self.names[axis + 1 :])
        labels = (*self.labels[:axis], *self.labels[axis + 1 :])
        values, codes = self.values.squeeze(axis), self.codes.squeeze(axis)
        return replace(self, names=names, labels=labels, values=values, codes=codes)


#: What stands for combinations that no row of a long form has.
ABSENT = ""


def long_array(
    where: str, names: Sequence[str], columns: Sequence[Sequence[str]], cells: Cells, form: str
) -> TableArray:
    """Scatter listed cells into a dense array; those that are not listed have the mark ABSENT."""
    levels = [tuple(dict.fromkeys(column)) for column in columns]
    shape = [len(labels) for labels in levels]
    check_size(where, shape, len(cells.values))
    index = np.zeros(len(cells.values), dtype=np.int64)
    for column, labels in zip(columns, levels, strict=True):
        code = {text: i for i, text in enumerate(labels)}
        index *= len(labels)
        index += np.fromiter(map(code.__getitem__, column), np.int64, len(column))
    times = np.bincount(index, minlength=prod(shape))
    if times.max(initial=0) > 1:
        again = np.flatnonzero(index == times.argmax())[1]
        cell = ", ".join(f"{n}={cite(c[again])}" for n, c in zip(names, columns, strict=True))
        raise ValueError(
            f"{where}: the cell {cell} is given twice. Another column tells the two apart, or "
            "their rows are of different tables: keep one of them (where=), or leave out rows "
            "(drop=)."
        )
    marks = cells.marks if ABSENT in cells.marks else (*cells.marks, ABSENT)
    values = np.full(prod(shape), np.nan)
    codes = np.full(prod(shape), marks.index(ABSENT) + 1, dtype=np.int32)
    values[index], codes[index] = cells.values, cells.codes
    return TableArray(
        *(where, tuple(names), tuple(levels), values.reshape(shape), codes.reshape(shape)),
        *(marks, cells.digits, cells.percent),
        flags=cells.flags,
        form=form,
    )


def check_size(where: str, shape: Sequence[int], listed: int | None = None) -> None:
    """Raise an error if a dense array is more than half of the memory, or has nearly no cells."""
    cells = prod(int(size) for size in shape)
    is_empty = listed is not None and cells > max(_EMPTIEST * listed, _SMALL)
    if cells * _BYTES_OF_CELL <= machine_memory() / 2 and not is_empty:
        return
    rows = "" if listed is None else f", of which {plural(listed, 'cell')} are listed"
    what = "these are not variables of one table" if is_empty else "more than this machine can hold"
    raise ValueError(
        f"{where}: its variables, {' x '.join(map(str, shape))}, make {plural(cells, 'cell')}"
        f"{rows}: {what}. Leave out columns that are no variables (drop=), or keep one level of "
        "some (where=)."
    )
