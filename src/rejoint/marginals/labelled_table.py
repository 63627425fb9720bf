"""Read a table, in any of five forms, into labels and a dense array.

(a) A frame in long form (pandas, polars, pyarrow, ...): one column per variable of the key, one
    more with the numbers. If several columns remain, the numbers are in the one named
    like counts ("count", "n", "freq", ...), shares ("share", "prob", "proportion", ...) or
    "value".
(b) A pandas cross-tabulation: labels in the index and the columns, either of several levels.
(c) A pandas Series, or a frame of one column, with the labels in its index.
(d) A plain array, its axes in the order of the key.
(e) A mapping from labels to numbers: ``{("yes", "male"): 12, ...}``.

Combinations that a long form or a mapping leaves out are zero; duplicates are an error.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.labels import is_missing, native

Array = NDArray[np.float64]

Names = tuple[str, ...]

COUNT_NAMES = {
    *("count", "counts", "n", "freq", "frequency", "frequencies", "number", "records"),
    *("size", "len", "weight"),  # pandas, polars, surveys
}
SHARE_NAMES = {
    *("share", "shares", "prob", "probs", "probability", "probabilities", "p"),
    *("proportion", "proportions", "fraction", "percent", "percentage", "pct"),
}
VALUE_NAMES = COUNT_NAMES | SHARE_NAMES | {"value", "values"}


@dataclass(frozen=True)
class LabelledTable:
    """A table as read: axes in the order of its key; ``labels[axis]`` is None for plain arrays.

    Unknown cells are NaN and have bounds; ``margins`` are tables of fewer variables that were
    printed with it (a row of totals), ``total`` is the sum of all its cells.
    """

    names: Names
    labels: tuple[tuple[Hashable, ...] | None, ...]
    values: Array
    whole: bool = False  # the numbers were given as integers
    column: str = ""  # name of their column, which may say what they are
    bounds: tuple[Array, Array] | None = None  # lower and upper bound of every cell
    margins: tuple["LabelledTable", ...] = ()
    total: float | None = None
    sums: tuple[tuple[NDArray[np.intp], float], ...] = ()  # known sums of unknown cells, by place
    percent: bool = False  # printed with percent signs
    digit: float = 0.0  # rounding unit of the numbers: 1, 0.1, ...
    error: float | None = None  # standard error of a cell (root mean square)
    noisy: bool = False  # noise was added, so cells may be negative
    source: str = ""  # file of the table
    records: float | None = None  # number of records behind shares


def names_of(key: Any) -> Names:
    """Return a key, one name or several, as a tuple of names.

    Examples
    --------
    >>> names_of("a"), names_of(("a", 1))
    (('a',), ('a', '1'))
    """
    names = (key,) if not isinstance(key, tuple | list) else tuple(key)
    names = tuple(str(n) for n in names)
    if not names:
        raise ValueError("A table without variables was given: its key must name at least one.")
    if len(set(names)) < len(names):
        raise ValueError(f"Table {names} names a variable twice: a table has each once.")
    return names


def read_table(names: Names, table: Any) -> LabelledTable:
    """Read a table in any of the forms above.

    Examples
    --------
    >>> read = read_table(("a", "b"), {("yes", 0): 3, ("no", 1): 5})
    >>> read.labels, read.values
    ((('yes', 'no'), (0, 1)), array([[3., 0.],
           [0., 5.]]))
    """
    import narwhals.stable.v1 as nw  # slow to import

    if isinstance(table, LabelledTable):
        return table
    if isinstance(table, Mapping):
        return _from_mapping(names, table)
    if nw.dependencies.is_pandas_dataframe(table) and _is_crosstab(names, table):
        return _from_crosstab(names, table)
    if nw.dependencies.is_pandas_series(table):
        return _from_series(names, table)
    if hasattr(table, "collect") and not hasattr(table, "shape"):
        raise TypeError(f"Table {names}: a lazy frame was given; collect() it first.")
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return _from_long(names, frame)
    return _from_array(names, table)


def _is_crosstab(names: Names, table: Any) -> bool:
    """Return whether a frame is a cross-tabulation: in long form its columns are variables."""
    named = None not in (*table.index.names, *table.columns.names)
    variables = set(names) & {str(c) for c in table.columns}
    return bool(table.columns.nlevels > 1 or not variables or (named and variables < set(names)))


def _from_array(names: Names, table: Any) -> LabelledTable:
    try:
        values = np.asarray(table)
    except ValueError as error:
        raise ValueError(f"Table {names}: not an array of numbers ({error}).") from error
    if values.ndim != len(names):
        raise ValueError(
            f"Table {names}: an array needs one axis per variable, in the order of the key; "
            f"this one has {values.ndim} for {len(names)} variables."
        )
    whole = np.issubdtype(values.dtype, np.integer)
    return LabelledTable(names, (None,) * values.ndim, _numbers(values, names), bool(whole))


def _from_mapping(names: Names, table: Mapping[Any, Any]) -> LabelledTable:
    several = len(names) > 1  # a single label may be a tuple itself: a Bin
    labels = [
        key if isinstance(key, tuple) and (several or len(key) == 1) else (key,) for key in table
    ]
    for cell in labels:
        if len(cell) != len(names):
            raise ValueError(
                f"Table {names}: the cell {cell!r} has {len(cell)} labels for {len(names)} "
                "variables; a mapping goes from one label per variable to a number."
            )
    return _from_cells(names, list(zip(*labels, strict=True)), np.asarray(list(table.values())))


def _from_series(names: Names, series: Any, column: str = "") -> LabelledTable:
    index = series.index
    order = _order(names, list(index.names))
    labels = [list(index.get_level_values(level)) for level in order]
    return _from_cells(names, labels, series.to_numpy(), column or str(series.name))


def _from_crosstab(names: Names, table: Any) -> LabelledTable:
    if table.index.nlevels == len(names) and table.shape[1] == 1:
        return _from_series(names, table.iloc[:, 0], str(table.columns[0]))
    axes = [*table.index.names, *table.columns.names]
    if len(axes) != len(names):
        absent = [n for n in names if n not in {str(c) for c in table.columns}]
        raise ValueError(
            f"Table {names}: the frame has neither columns named {absent} (long form) nor one "
            f"label in its index or columns for each variable (it has {len(axes)} for "
            f"{len(names)}; cross-tabulation)."
        )
    rows, columns = table.shape
    labels = [
        [label for label in table.index.get_level_values(i) for _ in range(columns)]
        for i in range(table.index.nlevels)
    ]
    labels += [list(table.columns.get_level_values(i)) * rows for i in range(table.columns.nlevels)]
    order = _order(names, axes)
    return _from_cells(names, [labels[i] for i in order], table.to_numpy().ravel())


def _order(names: Names, axes: Sequence[Any]) -> list[int]:
    """Return the axis of each variable: by name, and unnamed axes in the order of the key."""
    if len(axes) != len(names):
        raise ValueError(
            f"Table {names}: the index has {len(axes)} labels for {len(names)} variables."
        )
    found = [None if axis is None else str(axis) for axis in axes]
    rest = [n for n in names if n not in found]
    filled = [rest.pop(0) if axis is None and rest else axis for axis in found]
    if sorted(map(str, filled)) != sorted(names):
        raise ValueError(
            f"Table {names}: its index and columns are named {found}; name them like the key, "
            "or not at all."
        )
    return [filled.index(n) for n in names]


def _from_long(names: Names, frame: Any) -> LabelledTable:
    columns = {str(c): c for c in frame.columns}
    absent = [n for n in names if n not in columns]
    if absent:
        raise ValueError(
            f"Table {names}: the frame has no column {absent[0]!r}; its columns are "
            f"{list(columns)}."
        )
    column = _value_column(names, [c for c in columns if c not in names])
    labels = [frame[columns[n]].to_list() for n in names]
    return _from_cells(names, labels, frame[columns[column]].to_numpy(), column)


def _value_column(names: Names, left: list[str]) -> str:
    if not left:
        raise ValueError(
            f"Table {names}: the frame has a column for each variable but none with the numbers; "
            "add one named 'count' or 'share'."
        )
    named = left if len(left) == 1 else [c for c in left if c.lower() in VALUE_NAMES]
    if len(named) != 1:
        raise ValueError(
            f"Table {names}: which of the columns {left} holds the numbers? Keep one of them, or "
            "name it 'count' or 'share'."
        )
    return named[0]


def _from_cells(
    names: Names, labels: Sequence[Sequence[Any]], values: NDArray[Any], column: str = ""
) -> LabelledTable:
    """Scatter listed cells into a dense array, levels in order of first appearance."""
    axes: list[dict[Hashable, int]] = [{} for _ in names]
    codes = np.empty((len(names), len(values)), dtype=np.intp)
    for axis, (name, cells) in enumerate(zip(names, labels, strict=True)):
        for i, label in enumerate(cells):
            if is_missing(label):
                raise ValueError(
                    f"Table {names}, cell {i}: the label of {name!r} is missing; drop that cell, "
                    "or name the level."
                )
            codes[axis, i] = axes[axis].setdefault(native(label), len(axes[axis]))
    shape = tuple(len(a) for a in axes)
    index = np.asarray(np.ravel_multi_index(tuple(codes), shape)) if len(values) else codes[0]
    _check_once(names, labels, index)
    dense = np.zeros(shape)
    dense.ravel()[index] = _numbers(values, names)
    whole = bool(np.issubdtype(values.dtype, np.integer))
    return LabelledTable(names, tuple(tuple(a) for a in axes), dense, whole, column)


def _check_once(names: Names, labels: Sequence[Sequence[Any]], index: NDArray[np.intp]) -> None:
    if len(np.unique(index)) == len(index):
        return
    _, first = np.unique(index, return_index=True)
    again = int(np.setdiff1d(np.arange(len(index)), first)[0])
    cell = ", ".join(f"{n}={a[again]!r}" for n, a in zip(names, labels, strict=True))
    raise ValueError(f"Table {names}: the cell {cell} is given twice; add the two up, or drop one.")


def _numbers(values: NDArray[Any], names: Names) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Table {names}: its cells must be numbers ({error}).") from error
