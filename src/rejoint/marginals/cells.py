"""Cells of published tables: numbers as people write them, and marks for what was held back."""

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["SUPPRESSED", "Cell", "decimals", "read_cell"]

#: What offices write in place of a number that they keep to themselves.
SUPPRESSED = frozenset(
    {".", "..", "...", "…", "*", "**", "c", "x", "s", "?", "na", "n/a", "nan", "null"}
)

_BELOW = re.compile(r"(?:<|&lt;)\s*(?P<strict>[\d.]+)|(?:<=|≤)\s*(?P<most>[\d.]+)")
_RANGE = re.compile(r"(?P<low>\d+)\s*(?:-|\u2013|to)\s*(?P<high>\d+)")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:[, '\xa0\u202f]\d{3})+(?:\.\d+)?")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


class Cell(NamedTuple):
    """A number, NaN where it is not known, and the bounds that are known then.

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
        ``1,234``, ``12.5 %``, ``<5``, ``1-4``, ``c``, or nothing at all, which is not known.
    suppressed : mapping of str to (least, most)
        Marks for cells that are not known, in lower case, and what bounds them.
    decimal : {".", ","}
        How decimals are set off.

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
    """Bounds of ``<5`` (of whole numbers: at most 4), ``<=4``, ``1-4``; None for anything else."""
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
    """How many decimals a number is written with.

    Examples
    --------
    >>> decimals("12.50 %"), decimals("7")
    (2, 0)
    """
    found = re.search(re.escape(decimal) + r"(\d+)\s*%?$", text.strip())
    return len(found[1]) if found else 0
