"""Arrays: NumPy arrays and Python lists of any type as numbers or as coded labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.bins import place_among
from rejoint.domain.columns import (
    EXACT,
    Coded,
    Codes,
    Column,
    Numbers,
    advice,
    column_of_distinct,
    no_label,
)

__all__ = ["column_of_array", "column_of_objects", "column_of_texts", "numbers_if_all"]

_WIDE = 64  # characters; longer text is hashed by Python
_PRIME = 1099511628211
_SAMPLE = 10_000


def column_of_array(
    array: NDArray[Any], name: str, missing: NDArray[np.bool_] | None = None
) -> Column:
    """Read one NumPy column of any dtype; `missing` marks cells that hold nothing.

    Examples
    --------
    >>> column_of_array(np.array([3.0, np.nan]), "x")
    Numbers(values=array([3, 0]), missing=array([False,  True]))
    """
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
            return _of_booleans(array, missing)
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


def _of_booleans(array: NDArray[np.bool_], missing: NDArray[np.bool_] | None) -> Coded:
    codes = array.astype(np.int8)
    if missing is not None:
        codes[missing] = -1
    return Coded((False, True), codes)


def _signed(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        return array
    return array.astype(np.int64, copy=False)


def _of_floats(array: NDArray[Any], missing: NDArray[np.bool_] | None) -> Numbers:
    if array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    nan = np.isnan(array)
    gone: NDArray[np.bool_] | None = None
    empty = nan if missing is None else nan | missing
    if empty.any():
        gone = empty
        array = np.where(gone, array.dtype.type(0), array)
    with np.errstate(invalid="ignore", over="ignore"):  # float16 has no number as large as EXACT
        whole = bool(np.all((np.rint(array) == array) & (np.abs(array) < EXACT)))
    return Numbers(array.astype(np.int64) if whole else array, gone)


def _blanked(array: NDArray[Any], missing: NDArray[np.bool_] | None) -> list[Any]:
    if missing is not None and missing.any():
        array = array.astype(object)
        array[missing] = None
    objects: list[Any] = array.tolist()
    return objects


def column_of_objects(values: Sequence[Any], name: str) -> Column:
    """Read a column of Python objects by hashing.

    Examples
    --------
    >>> column_of_objects(["b", None, "a"], "x").labels
    ('b', 'a')
    """
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
    """Read a NumPy array of text: by a hash of the characters, exact because it is checked.

    Examples
    --------
    >>> column_of_texts(np.array(["b", "a", "b", "b"]), "x").labels
    ('a', 'b')
    """
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


def numbers_if_all(column: Coded) -> Column:
    """Return `Numbers` if every label is a number (not all booleans) that an array can hold.

    Examples
    --------
    >>> numbers_if_all(Coded((30, 10), np.array([0, 1, 0]))).values
    array([30, 10, 30])
    """
    labels = column.labels
    if not labels or not all(isinstance(x, (int, float)) for x in labels):
        return column
    if all(isinstance(x, bool) for x in labels):
        return column
    values = np.array([int(x) if isinstance(x, bool) else x for x in labels])
    if values.dtype.kind not in "iuf" or values.tolist() != list(labels):
        return column  # integers too large for an array, or too large to be floats
    return column_of_array(values[column.codes], "", column.codes < 0)


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
