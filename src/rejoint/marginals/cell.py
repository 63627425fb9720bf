"""Cells of published tables: a number with its flags, a mark of a number that is not given.

Statistical offices print ``1 234``, ``1.234,5``, ``12.5 %``, ``10 p`` (provisional), ``(10)``
(uncertain), ``10*`` (a footnote), ``-`` (nil), ``:``, ``..``, ``x``, ``[c]`` or ``(D)`` (not given)
and ``<5``. `read_cell` reads one of them; `find_decimal` says which decimal mark a table has.
"""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

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
