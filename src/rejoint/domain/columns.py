"""Forms: the two that every column is read into, numbers or codes into distinct labels."""

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.labels import Level, is_missing, native

__all__ = [
    "EXACT",
    "Coded",
    "Codes",
    "Column",
    "Numbers",
    "advice",
    "column_of_distinct",
    "no_label",
]

Codes = NDArray[np.signedinteger[Any]]
EXACT = 2.0**53  # floats beyond may stand for more than one integer


@dataclass(frozen=True, slots=True)
class Coded:
    """A column as codes into its distinct labels; -1 is missing.

    `declared` says that the labels were given with the data (a pandas Categorical, a polars
    Enum): their order is meant, and those that never occur are kept. `ordered` says that the
    order means something.

    Examples
    --------
    >>> len(Coded(("a", "b"), np.array([1, -1, 0])))
    3
    """

    labels: tuple[Level, ...]
    codes: Codes
    declared: bool = False
    ordered: bool = False

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of numbers; floats that are all whole are held as integers.

    Where `missing` is True the value means nothing. Floats keep their precision, so that
    0.1 in a float32 column is the level 0.1.

    Examples
    --------
    >>> ages = Numbers(np.array([30, 0, 41]), np.array([False, True, False]))
    >>> ages.present(), ages.floats()
    (array([30, 41]), array([30., nan, 41.]))
    """

    values: NDArray[Any]
    missing: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def present(self) -> NDArray[Any]:
        """Return the values that are there."""
        return self.values if self.missing is None else self.values[~self.missing]

    def floats(self) -> NDArray[np.float64]:
        """Return the values as float64, NaN where missing."""
        values = self.values.astype(np.float64)
        if self.missing is not None:
            values[self.missing] = np.nan
        return values


Column = Coded | Numbers


def advice(kind: object) -> str:
    """Say what to do about a type of values that cannot be labels.

    Examples
    --------
    >>> advice("list")
    'labels are text, numbers and booleans; turn the values into one of these'
    """
    text = str(kind)
    if any(word in text.lower() for word in ("date", "time", "duration", "period")):
        return (
            "dates and times are no labels; take from them what matters, "
            "as text or a number (the year, the month, the weekday, the hours passed)"
        )
    return "labels are text, numbers and booleans; turn the values into one of these"


def column_of_distinct(
    distinct: Sequence[Any],
    codes: Codes,
    name: str,
    *,
    declared: bool = False,
    ordered: bool = False,
) -> Coded:
    """Return codes into values of any type as codes into labels; empty values are -1.

    Examples
    --------
    >>> column_of_distinct([np.str_("a"), None, "a"], np.array([0, 1, 2, -1]), "x")
    Coded(labels=('a',), codes=array([ 0, -1,  0, -1], dtype=int32), declared=False, ordered=False)
    """
    labels: dict[Level, int] = {}
    table = np.full(len(distinct) + 1, -1, dtype=np.int32)  # the last entry is for the code -1
    for i, value in enumerate(distinct):
        if is_missing(value):
            continue
        try:
            label = native(value)
        except (TypeError, UnicodeDecodeError):
            raise no_label(name, int(np.argmax(codes == i)), value) from None
        table[i] = labels.setdefault(label, len(labels))
    same = np.array_equal(table[:-1], np.arange(len(distinct)))
    return Coded(_whole(labels), codes if same else table[codes], declared, ordered)


def _whole(labels: Iterable[Level]) -> tuple[Level, ...]:
    """Return labels with their floats as integers, if all of these are whole."""
    labels = tuple(labels)
    if all(x.is_integer() and abs(x) < EXACT for x in labels if isinstance(x, float)):
        return tuple(int(x) if isinstance(x, float) else x for x in labels)
    return labels


def no_label(name: str, row: int, value: object) -> TypeError:
    """Return the error for a value that cannot be a label.

    Examples
    --------
    >>> no_label("x", 3, [1])
    TypeError("Variable 'x', row 3: [1] is a list: labels are text, numbers and booleans; \
turn the values into one of these.")
    """
    kind = type(value).__name__
    dated = isinstance(value, (datetime.date, datetime.time, datetime.timedelta, np.datetime64))
    what = advice("date" if dated else kind)
    return TypeError(f"Variable {name!r}, row {row}: {value!r} is a {kind}: {what}.")
