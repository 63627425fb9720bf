"""Labels: what a cell may hold, what counts as missing, how levels are ordered and looked up."""

import difflib
import re
from collections.abc import Hashable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real

import numpy as np

from rejoint.domain.bins import Bin

__all__ = [
    "Level",
    "duration",
    "is_missing",
    "is_number",
    "native",
    "natural_order",
    "nearest",
    "plural",
    "show",
]

Level = Hashable
"""A label: text, a number, a boolean, or a `Bin`."""

_MISSING_TYPES = ("NoneType", "NAType", "NaTType", "MaskedConstant")
_DIGITS = re.compile(r"([0-9]+)")


def is_missing(value: object) -> bool:
    """Say whether a cell is empty: None, NaN, pandas NA or NaT, a masked value.

    Examples
    --------
    >>> [is_missing(v) for v in (None, float("nan"), "", 0)]
    [True, True, False, False]
    """
    if isinstance(value, (float, np.floating, Decimal)):
        return bool(value != value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    # By name: pandas, which owns two of these types, is not imported for the question.
    return type(value).__name__ in _MISSING_TYPES


def is_number(level: object) -> bool:
    """Say whether a label is a number; booleans count as 0 and 1.

    Examples
    --------
    >>> is_number(3), is_number(True), is_number("3")
    (True, True, False)
    """
    return isinstance(level, (int, float))


def native(value: object) -> Level:
    """Return a label as plain Python: str, int, float, bool or `Bin`.

    Examples
    --------
    >>> import numpy as np
    >>> native(np.int64(3)), native(np.str_("a")), native(b"a"), native(np.True_)
    (3, 'a', 'a', True)
    >>> native((1, 2))
    Traceback (most recent call last):
    ...
    TypeError: (1, 2) is a tuple, which is no label: labels are text, numbers and booleans
    """
    if type(value) in (str, int, float, bool, Bin):
        return value
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, (Real, Decimal, Fraction)):
        return float(value)
    raise TypeError(
        f"{value!r} is a {type(value).__name__}, which is no label: "
        "labels are text, numbers and booleans"
    )


def natural_order(levels: Iterable[Level]) -> list[Level]:
    """Sort labels: numbers by value, then text with its runs of digits by value.

    Examples
    --------
    >>> natural_order(["b", "a10", "a9", 3, 2.5])
    [2.5, 3, 'a9', 'a10', 'b']
    """
    return sorted(levels, key=_natural_key)


def _natural_key(level: Level) -> tuple[int, float | int, list[str | tuple[int, str]], str]:
    if isinstance(level, (int, float)):
        return 0, level, [], ""
    text = str(level)
    parts: list[str | tuple[int, str]] = list(_DIGITS.split(text))
    # Digits compare by length, then by themselves: the order of the numbers, at any length.
    for i in range(1, len(parts), 2):
        digits = str(parts[i]).lstrip("0")
        parts[i] = (len(digits), digits)
    return 1, 0, parts, text


def nearest(name: object, known: Sequence[object]) -> str:
    """Return " Did you mean ...?" for the nearest of what is known, or nothing.

    Examples
    --------
    >>> nearest("smoek", ["smoke", "age"])
    " Did you mean 'smoke'?"
    >>> nearest("zzz", ["smoke", "age"])
    ''
    """
    texts = {str(k): k for k in known}
    found = difflib.get_close_matches(str(name), texts, n=1)
    if not found:
        return ""
    best = texts[found[0]]
    return f" Did you mean {show([best])}?"


def show(levels: Sequence[object], most: int = 6) -> str:
    """Write labels for a message: the first few, and how many there are.

    Examples
    --------
    >>> show(["a", "b"])
    "'a', 'b'"
    >>> show(range(40))
    '0, 1, 2, 3, 4, 5, ... (40 in all)'
    """
    text = ", ".join(str(x) if isinstance(x, Bin) else repr(x) for x in levels[:most])
    return text if len(levels) <= most else f"{text}, ... ({len(levels)} in all)"


def plural(number: int, noun: str) -> str:
    """Write a number of things for people.

    Examples
    --------
    >>> plural(1, "table"), plural(1140, "table")
    ('1 table', '1,140 tables')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def duration(seconds: float) -> str:
    """A time in words.

    Examples
    --------
    >>> duration(0.2), duration(75), duration(9000)
    ('less than a second', '75 seconds', '2.5 hours')
    """
    if seconds < 1:
        return "less than a second"
    if seconds < 120:
        return f"{max(seconds, 1.5):.0f} seconds"
    if seconds < 7200:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"
