"""Cells of a table as text: numbers, their decimals and flags, and marks in place of numbers."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import inf, isfinite, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray
from rejoint.cost import machine_memory
from rejoint.text import plural

Bounds = tuple[float, float]

#: Marks that say that a number is not given, and nothing else.
UNKNOWN_MARKS = frozenset(
    {"..", "...", "....", ".....", "......", "…", ":", "*", "**", "***", "x", "c", "na", "n/a"}
    | {"n.a.", "nan", "null", "d", "s", "suppressed", "conf"}
)
#: Marks that some offices print for zero and others for a number that they do not give.
DOUBTFUL_MARKS = frozenset({"", "-", "--", "---", "\u2013", "\u2014", ".", "z", "nil"})

_SPACES = " \u00a0\u202f\u2009\u2007'\u2019"
_BELOW = re.compile(r"(?:<|&lt;)\s*(?P<strict>\d+)|(?:<=|\u2264)\s*(?P<most>\d+)")

#: Bytes for each cell of a dense array while it is read: numbers, marks, and copies of them.
_BYTES_OF_CELL = 40


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
    """Return the number that a cell shows, None where it shows something else.

    Examples
    --------
    >>> read_number("1,234.5 p"), read_number("2005TI")
    (Number(value=1234.5, digits=1, percent=False, flag='p'), None)
    """
    text = text.strip().replace("\u2212", "-")
    found = _pattern(decimal).fullmatch(text)
    if found is None or not (found["whole"].strip("+-") or found["part"]):
        return None
    whole = re.sub(r"[^\d+-]", "", found["whole"])
    part = found["part"] or ""
    value = float(f"{whole}.{part}{found['power'] or ''}" if part or found["power"] else whole)
    digits = 17 if found["power"] else len(part)
    if not isfinite(value):
        return None
    return Number(value, digits, bool(found["percent"]), found["flag"].strip())


def find_decimal(texts: Iterable[str]) -> str | None:
    """Return the decimal mark that numbers show; None if ``9.132`` may be 9132 or about 9.

    Examples
    --------
    >>> find_decimal(["12,5", "3"]), find_decimal(["9.132"]), find_decimal(["9,132", "945", "12"])
    (',', None, '.')
    """
    doubtful: set[str] = set()
    small = large = False
    for text in texts:
        core = re.sub(rf"[{_SPACES}]", "", text).lstrip("+-").rstrip("%*")
        marks = re.findall(r"[.,]", core)
        if not re.fullmatch(r"[\d.,]+", core):
            continue
        if len(set(marks)) == 2:
            return str(marks[-1])
        if len(marks) > 1:
            return "," if marks[0] == "." else "."
        if marks and not re.fullmatch(r"[1-9]\d{0,2}[.,]\d{3}", core):
            return str(marks[0])
        if marks:
            doubtful.add(marks[0])
        small |= not marks and 0 < len(core) <= 3 and core.strip("0") != ""
        large |= not marks and len(core) > 3
    if not doubtful:
        return "."
    mark = next(iter(doubtful))
    if len(doubtful) == 2 or small == large:
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
    """Read cells; what is not a number is a mark, whatever it says.

    Examples
    --------
    >>> read_cells(["3", "<5", "4.5"])[:4]
    (array([3. , nan, 4.5]), array([0, 1, 0], dtype=int32), ('<5',), 1)
    """
    known: dict[str, int] = {}
    numbers: list[Number] = []
    order = np.empty(len(texts), dtype=np.int64)
    marks: list[str] = []
    for i, text in enumerate(texts):
        at = known.get(text)
        if at is None:
            number = read_number(text, decimal)
            if number is None:
                marks.append(text.strip())
                number = Number(np.nan, -len(marks))
            at = known[text] = len(numbers)
            numbers.append(number)
        order[i] = at
    values = np.array([n.value for n in numbers] or [0.0])[order]
    digits = np.array([n.digits for n in numbers] or [0])[order]
    flagged = np.array([bool(n.flag) for n in numbers] or [False])[order]
    flags: dict[str, int] = {}
    for at in order[flagged]:
        flags[numbers[at].flag] = flags.get(numbers[at].flag, 0) + 1
    codes = np.maximum(-digits, 0).astype(np.int32)
    texts_of = list(dict.fromkeys(marks))
    renumber = np.array([0, *(texts_of.index(mark) + 1 for mark in marks)], dtype=np.int32)
    percent = any(n.percent for n in numbers)
    return Cells(
        values, renumber[codes], tuple(texts_of), int(digits.max(initial=0)), percent, flags
    )


def meaning_of(mark: str, told: Mapping[str, Bounds]) -> Bounds | None:
    """Return the bounds of a mark: as told, or its own; None where it has none or two.

    Examples
    --------
    >>> (
    ...     meaning_of("<5", {}),
    ...     meaning_of("[c]", {}),
    ...     meaning_of("--", {}),
    ...     meaning_of("--", {"--": (1, 9)}),
    ... )
    ((0.0, 4.0), (0.0, inf), None, (1, 9))
    """
    if mark in told:
        return told[mark]
    if found := _BELOW.fullmatch(mark):
        return 0.0, float(found["most"] or int(found["strict"]) - 1)
    bare = mark.lower()
    bare = bare[1:-1] if bare[:1] + bare[-1:] in ("[]", "()") and len(bare) > 2 else bare
    return (0.0, inf) if bare in UNKNOWN_MARKS else None


@dataclass(frozen=True, eq=False)
class TableArray:
    """A table as a file has it: a labelled array, totals and all, before it is interpreted.

    Parameters
    ----------
    where : str
        The file, and the sheet or the number of the table in it.
    names, labels
        The axes; names are empty where the file has none.
    values : array
        Numbers, NaN where a mark stands; ``codes`` has its number in ``marks``, from 1.
    digits, percent
        Decimals of the numbers, and whether percent signs stand beside them.
    measure : str
        The axis whose labels are different measures.
    units : mapping
        The unit of the numbers (key ``""``) or of each label of ``measure``.
    scales : mapping
        Powers of ten by which numbers are to be multiplied, likewise.
    totals : mapping
        For each axis the labels that the format itself calls totals of others.
    parts : mapping
        For each axis the labels that the format says others consist of.
    missing : mapping
        What the format says of marks.
    flags : mapping
        Flags beside numbers, with how many cells have them.
    heading : str
        The name of an axis that is only a heading over columns, which may be different measures.
    form : str
        The format or form.
    notes : tuple of str
        Titles, notes, and what was left out.
    """

    where: str
    names: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    values: FloatArray
    codes: NDArray[np.int32]
    marks: tuple[str, ...] = ()
    digits: int = 0
    percent: bool = False
    measure: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    scales: Mapping[str, int] = field(default_factory=dict)
    totals: Mapping[str, Sequence[str]] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    missing: Mapping[str, Bounds] = field(default_factory=dict)
    flags: Mapping[str, int] = field(default_factory=dict)
    heading: str = ""
    form: str = ""
    notes: tuple[str, ...] = ()

    def take(self, axis: int, chosen: Sequence[int], *, squeeze: bool = False) -> "TableArray":
        """Return the table with some labels of an axis; without the axis where ``squeeze``."""
        index = chosen[0] if squeeze else list(chosen)
        labels = [tuple(self.labels[axis][i] for i in chosen)] if not squeeze else []
        names = [self.names[axis]] if not squeeze else []
        return replace(
            self,
            names=(*self.names[:axis], *names, *self.names[axis + 1 :]),
            labels=(*self.labels[:axis], *labels, *self.labels[axis + 1 :]),
            values=np.take(self.values, index, axis),
            codes=np.take(self.codes, index, axis),
        )


def check_size(where: str, shape: Sequence[int], listed: int | None = None) -> None:
    """Raise an error if a dense array would need more than half of the memory of the machine.

    Examples
    --------
    >>> check_size("t.csv", [10**6, 10**6])
    Traceback (most recent call last):
    ...
    ValueError: t.csv: its variables, 1000000 x 1000000, make 1,000,000,000,000 cells: ...
    """
    cells = prod(int(size) for size in shape)
    if cells * _BYTES_OF_CELL <= machine_memory() / 2:
        return
    rows = "" if listed is None else f", of which {plural(listed, 'cell')} are listed"
    raise ValueError(
        f"{where}: its variables, {' x '.join(map(str, shape))}, make {plural(cells, 'cell')}"
        f"{rows}: more than this machine can hold. Leave out columns that are no variables "
        "(drop=), or keep one level of some (where=)."
    )
