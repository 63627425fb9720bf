"""Forms: any NumPy or Python sequence as numbers, or as codes into its distinct labels."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.columns.labels import Level, is_missing, native

__all__ = ["Coded", "Column", "Numbers", "column_of_array", "column_of_objects"]

Ints = NDArray[np.signedinteger[Any]]
_EXACT = 2.0**53  # floats beyond may stand for more than one integer


@dataclass(frozen=True, slots=True)
class Coded:
    """A column as codes into its distinct labels; -1 is missing.

    `declared` says that the labels were given with the data (a pandas Categorical, a polars
    Enum): their order is meant, and those that never occur are kept. `ordered` says that the
    order means something.
    """

    labels: tuple[Level, ...]
    codes: Ints
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
        raise ValueError(f"Variable {name!r} must be one column, not an array of {array.ndim} axes")
    if isinstance(array, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(array)
        missing = hidden if missing is None else missing | hidden
        array = np.asarray(array.data)
    match array.dtype.kind:
        case "b":
            return coded((False, True), array.astype(np.int8), missing)
        case "i" | "u":
            return Numbers(
                _signed(array), missing if missing is not None and missing.any() else None
            )
        case "f":
            return _of_floats(array, missing)
        case "O" | "U" | "T" | "S":
            return column_of_objects(_blanked(array, missing), name)
    raise TypeError(f"Variable {name!r} holds {array.dtype}: {advice(array.dtype)}")


def coded(labels: tuple[Level, ...], codes: Ints, missing: NDArray[np.bool_] | None) -> Coded:
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
    """Read a column of Python objects by hashing; numbers alone become `Numbers`."""
    try:
        distinct: dict[Any, int] = dict.fromkeys(values, -1)
    except TypeError:
        row = next(i for i, v in enumerate(values) if not _hashable(v))
        raise _no_label(name, row, values[row]) from None
    labels: dict[Level, int] = {}
    for value in distinct:
        if not is_missing(value):
            try:
                label = native(value)
            except (TypeError, UnicodeDecodeError):
                row = next(i for i, v in enumerate(values) if v is value)
                raise _no_label(name, row, value) from None
            distinct[value] = labels.setdefault(label, len(labels))
    codes = np.fromiter(map(distinct.__getitem__, values), np.int32, len(values))
    return numbers_if_all(tuple(labels), codes)


def numbers_if_all(labels: tuple[Level, ...], codes: Ints) -> Column:
    """Return `Numbers` if every label is a number that an array can hold exactly."""
    if not labels or not all(isinstance(x, (int, float)) for x in labels):
        return Coded(labels, codes)
    if all(isinstance(x, bool) for x in labels):
        return Coded(labels, codes)
    gone = codes < 0
    values = np.array([int(x) if isinstance(x, bool) else x for x in labels])
    exact = values.dtype.kind in "iuf" and all(
        v == x for v, x in zip(values.tolist(), labels, strict=True)
    )
    return column_of_array(values[codes], "", gone) if exact else Coded(labels, codes)


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _no_label(name: str, row: int, value: object) -> TypeError:
    kind = type(value).__name__
    dated = isinstance(value, (datetime.date, datetime.time, datetime.timedelta, np.datetime64))
    what = advice("date" if dated else kind)
    return TypeError(f"Variable {name!r}, row {row}: {value!r} is a {kind}: {what}")
