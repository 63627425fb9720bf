"""Encoding: a column of labels or numbers into the codes of given levels."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.bins import Bin, bin_codes, place_among
from rejoint.domain.columns import Coded, Codes, Column, Numbers
from rejoint.domain.labels import Level, nearest, show

__all__ = [
    "Unknown",
    "code_dtype",
    "code_of",
    "encode_column",
    "unknown_error",
    "unknown_text",
]

_SPAN = 1 << 20  # smaller integers are looked up in a table


class Unknown(NamedTuple):
    """Labels that are no level: which, in how many cells, and the first row with one.

    Examples
    --------
    >>> Unknown(labels=("x", "y"), cells=3, row=17).cells
    3
    """

    labels: tuple[Level, ...]
    cells: int
    row: int


def code_dtype(most_levels: int) -> type[np.signedinteger[Any]]:
    """Return the smallest of int16 and int32 that counts the levels.

    Examples
    --------
    >>> code_dtype(12).__name__, code_dtype(40_000).__name__
    ('int16', 'int32')
    """
    return np.int16 if most_levels <= np.iinfo(np.int16).max else np.int32


def unknown_error(name: str, levels: tuple[Level, ...], unknown: Unknown) -> ValueError:
    """Return the error for labels that are no level.

    Examples
    --------
    >>> unknown_error("x", ("a", "b"), Unknown(("c",), 1, 7))
    ValueError("Variable 'x', row 7: level 'c' is not among 'a', 'b'; declare it in the Domain \
or leave the cell empty.")
    """
    label = unknown.labels[0]
    return ValueError(
        f"Variable {name!r}, row {unknown.row}: level {label!r} is not among {show(levels)}; "
        f"declare it in the Domain or leave the cell empty.{nearest(label, levels)}"
    )


def unknown_text(name: str, levels: tuple[Level, ...], unknown: Unknown) -> str:
    """Return the remark for labels that are no level.

    Examples
    --------
    >>> unknown_text("x", ("a", "b"), Unknown(("c",), 1, 7))
    "Variable 'x': 1 cell with labels that are no level, missing now: 'c'."
    """
    binned = isinstance(levels[0], Bin)
    what = "numbers outside all bins" if binned else "labels that are no level"
    cells = "1 cell" if unknown.cells == 1 else f"{unknown.cells:,} cells"
    return f"Variable {name!r}: {cells} with {what}, missing now: {show(unknown.labels)}."


def encode_column(levels: tuple[Level, ...], column: Column) -> tuple[Codes, Unknown | None]:
    """Return the code of each cell (-1 where missing or unknown) and what was unknown.

    Examples
    --------
    >>> encode_column(("a", "b"), Coded(("b", "c"), np.array([0, 1, -1])))
    (array([ 1, -1, -1], dtype=int16), Unknown(labels=('c',), cells=1, row=1))
    """
    codes = {level: i for i, level in enumerate(levels)}
    if isinstance(column, Coded):
        found = _of_labels(levels, codes, column)
    elif isinstance(levels[0], Bin):
        found = bin_codes(levels, column.floats())  # type: ignore[arg-type]
    else:
        found = _of_numbers(codes, column)
    strange = found == -2
    unknown = _unknown(column, strange) if strange.any() else None
    dtype = code_dtype(len(levels))
    if unknown is not None:
        found = np.where(strange, -1, found)
    return found.astype(dtype, copy=False), unknown


def code_of(levels: tuple[Level, ...], codes: Mapping[Level, int], label: Level) -> int:
    """Return the code of one label, -2 if it is no level; bins hold numbers and go by their text.

    Examples
    --------
    >>> bins = (Bin(0, 18), Bin(18, 65))
    >>> codes = {b: i for i, b in enumerate(bins)}
    >>> code_of(bins, codes, 20), code_of(bins, codes, "[0, 18)"), code_of(bins, codes, 99)
    (1, 0, -2)
    """
    code = codes.get(label, -2)
    if code >= 0 or not isinstance(levels[0], Bin):
        return code
    if isinstance(label, str):
        return next((i for i, level in enumerate(levels) if str(level) == label), -2)
    return next((i for i, level in enumerate(levels) if label in level), -2)  # type: ignore[operator]


def _of_labels(levels: tuple[Level, ...], codes: Mapping[Level, int], column: Coded) -> Codes:
    # One entry for each distinct label and a last one that the code -1 picks.
    table = np.full(len(column.labels) + 1, -1, dtype=np.int32)
    table[:-1] = [code_of(levels, codes, label) for label in column.labels]
    return table[column.codes]


def _of_numbers(codes: Mapping[Level, int], column: Numbers) -> Codes:
    values = column.values
    known = [(_exactly(level, values.dtype), code) for level, code in codes.items()]
    pairs = sorted((target, code) for target, code in known if target is not None)
    found: Codes = np.full(len(values), -2, dtype=np.int32)
    if pairs and len(values):
        targets = np.array([t for t, _ in pairs], dtype=values.dtype)
        places = np.array([c for _, c in pairs], dtype=np.int32)
        found = _look_up(targets, places, values)
    if column.missing is not None:
        found[column.missing] = -1
    return found


def _look_up(targets: NDArray[Any], places: NDArray[np.int32], values: NDArray[Any]) -> Codes:
    """Return the place of each value among sorted targets, -2 where it is none of them."""
    low, high = targets[0].item(), targets[-1].item()
    if values.dtype == np.int64 and -_SPAN < low <= high < _SPAN:
        # Two extra entries at the ends catch everything outside.
        table = np.full(high - low + 3, -2, dtype=np.int32)
        table[targets - low + 1] = places
        found: Codes = table[np.clip(values, low - 1, high + 1) - (low - 1)]
        return found
    at = place_among(targets, values)
    return np.where((at >= 0) & (targets[at] == values), places[at], -2)


def _exactly(level: Level, dtype: np.dtype[Any]) -> int | float | None:
    """Return a level as a value that a column of this dtype can hold, None if it cannot."""
    if not isinstance(level, (int, float)):
        return None
    if dtype.kind == "f":
        # A narrow float stands for every number that rounds to it: 0.1 is float32's 0.1.
        try:
            with np.errstate(over="ignore"):
                near = float(dtype.type(level))
        except OverflowError:
            return None
        return near if near == level or (dtype.itemsize < 8 and np.isfinite(near)) else None
    if isinstance(level, float) and not level.is_integer():
        return None  # infinities too
    whole, bounds = int(level), np.iinfo(dtype)
    return whole if bounds.min <= whole <= bounds.max else None


def _unknown(column: Column, strange: NDArray[np.bool_]) -> Unknown:
    row = int(np.argmax(strange))
    if isinstance(column, Coded):
        seen, first = np.unique(column.codes[strange], return_index=True)
        labels = tuple(column.labels[i] for i in seen[np.argsort(first)])
    else:
        distinct, first = np.unique(column.values[strange], return_index=True)
        labels = tuple(distinct[np.argsort(first)].tolist())
    return Unknown(labels, int(strange.sum()), row)
