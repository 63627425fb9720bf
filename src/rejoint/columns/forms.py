"""Forms: any NumPy or Python sequence as numbers, or as codes into its distinct labels."""

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.columns.bins import place_among
from rejoint.columns.labels import Level, is_missing, native

__all__ = [
    "Coded",
    "Codes",
    "Column",
    "Numbers",
    "advice",
    "coded",
    "column_of_array",
    "column_of_distinct",
    "column_of_objects",
    "numbers_if_all",
]

Codes = NDArray[np.signedinteger[Any]]
_EXACT = 2.0**53  # floats beyond may stand for more than one integer
_WIDE = 64  # characters; longer text is hashed by Python
_PRIME = 1099511628211
_SAMPLE = 10_000


@dataclass(frozen=True, slots=True)
class Coded:
    """A column as codes into its distinct labels; -1 is missing.

    `declared` says that the labels were given with the data (a pandas Categorical, a polars
    Enum): their order is meant, and those that never occur are kept. `ordered` says that the
    order means something.
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


def column_of_array(
    array: NDArray[Any], name: str, missing: NDArray[np.bool_] | None = None
) -> Column:
    """Read one NumPy column of any dtype; `missing` marks cells that hold nothing."""
    if array.ndim != 1:
        raise ValueError(
            f"Variable {name!r} must be one column, not an array of {array.ndim} axes."
        )
    if isinstance(array, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(array)
        missing = hidden if missing is None else missing | hidden
        array = np.asarray(array.data)
    match array.dtype.kind:
        case "b":
            return coded((False, True), array.astype(np.int8), missing)
        case "i" | "u":
            return Numbers(
                _signed(array), None if missing is None or not missing.any() else missing
            )
        case "f":
            return _of_floats(array, missing)
        case "U" if missing is None:
            return column_of_texts(array, name)
        case "O" | "U" | "T" | "S":
            return column_of_objects(_blanked(array, missing), name)
    raise TypeError(f"Variable {name!r} holds {array.dtype}: {advice(array.dtype)}.")


def coded(labels: tuple[Level, ...], codes: Codes, missing: NDArray[np.bool_] | None) -> Coded:
    """Return codes with -1 wherever `missing` is True."""
    if missing is not None and missing.any():
        codes = np.where(missing, -1, codes).astype(codes.dtype)
    return Coded(labels, codes)


def advice(kind: object) -> str:
    """Say what to do about a type of values that cannot be labels."""
    text = str(kind)
    if any(word in text.lower() for word in ("date", "time", "duration", "period")):
        return (
            "dates and times are no labels; take from them what matters, "
            "as text or a number (the year, the month, the weekday, the hours passed)"
        )
    return "labels are text, numbers and booleans; turn the values into one of these"


def _signed(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        return array
    return array.astype(np.int64, copy=False)


def _of_floats(array: NDArray[Any], missing: NDArray[np.bool_] | None) -> Numbers:
    if array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    nan = np.isnan(array)
    gone = nan if missing is None else nan | missing
    if not gone.any():
        gone = None
    else:
        array = np.where(gone, array.dtype.type(0), array)
    with np.errstate(invalid="ignore"):
        whole = bool(np.all((np.rint(array) == array) & (np.abs(array) < _EXACT)))
    return Numbers(array.astype(np.int64) if whole else array, gone)


def _blanked(array: NDArray[Any], missing: NDArray[np.bool_] | None) -> list[Any]:
    if missing is not None and missing.any():
        array = array.astype(object)
        array[missing] = None
    objects: list[Any] = array.tolist()
    return objects


def column_of_objects(values: Sequence[Any], name: str) -> Column:
    """Read a column of Python objects by hashing."""
    try:
        places: dict[Any, int] = dict.fromkeys(values, 0)
    except TypeError:
        row = next(i for i, v in enumerate(values) if not _hashable(v))
        raise no_label(name, row, values[row]) from None
    distinct = list(places)
    for i, value in enumerate(distinct):
        places[value] = i
    codes = np.fromiter(map(places.__getitem__, values), np.int32, len(values))
    return numbers_if_all(column_of_distinct(distinct, codes, name))


def column_of_texts(array: NDArray[np.str_], name: str) -> Column:
    """Read a NumPy array of text: by a hash of the characters, exact because it is checked."""
    array = np.ascontiguousarray(array)
    width = array.dtype.itemsize // 4
    if not len(array) or not 0 < width <= _WIDE:
        return column_of_objects(array.tolist(), name)
    letters = array.view(np.uint32).reshape(len(array), width)
    keys = letters[:, 0].astype(np.uint64)
    for place in range(1, width):
        keys *= np.uint64(_PRIME)
        keys += letters[:, place]
    codes, count = _ranks(keys)
    row = np.zeros(count, dtype=np.intp)
    row[codes] = np.arange(len(array))
    if count > len(array) // 2 or not np.array_equal(array[row][codes], array):
        return column_of_objects(array.tolist(), name)  # nothing gained, or two of one hash
    return column_of_distinct(array[row].tolist(), codes, name)


def _ranks(keys: NDArray[np.uint64]) -> tuple[Codes, int]:
    """Return the rank of each key among the distinct ones, and how many these are."""
    distinct = np.unique(keys[:_SAMPLE])
    codes = place_among(distinct, keys)
    if not np.array_equal(distinct[codes], keys):  # the first keys were not all there are
        distinct = np.unique(keys)
        codes = place_among(distinct, keys)
    return codes, len(distinct)


def column_of_distinct(
    distinct: Sequence[Any],
    codes: Codes,
    name: str,
    *,
    declared: bool = False,
    ordered: bool = False,
) -> Coded:
    """Return codes into values of any type as codes into labels; empty values are -1."""
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
    if all(x.is_integer() and abs(x) < _EXACT for x in labels if isinstance(x, float)):
        return tuple(int(x) if isinstance(x, float) else x for x in labels)
    return labels


def numbers_if_all(column: Coded) -> Column:
    """Return `Numbers` if every label is a number (not all booleans) that an array can hold."""
    labels = column.labels
    if not labels or not all(isinstance(x, (int, float)) for x in labels):
        return column
    if all(isinstance(x, bool) for x in labels):
        return column
    values = np.array([int(x) if isinstance(x, bool) else x for x in labels])
    if values.dtype.kind not in "iuf" or values.tolist() != list(labels):
        return column  # integers too large for an array, or too large to be floats
    return column_of_array(values[column.codes], "", column.codes < 0)


def no_label(name: str, row: int, value: object) -> TypeError:
    """Return the error for a value that cannot be a label."""
    kind = type(value).__name__
    dated = isinstance(value, (datetime.date, datetime.time, datetime.timedelta, np.datetime64))
    what = advice("date" if dated else kind)
    return TypeError(f"Variable {name!r}, row {row}: {value!r} is a {kind}: {what}.")


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
