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

from rejoint.arrays import FloatArray
from rejoint.domain.labels import is_missing, native
from rejoint.text import cite, plural, shorten

Names = tuple[str, ...]

#: Headers of a column of numbers that say what these are.
COUNT_NAMES = frozenset(
    {"count", "counts", "n", "freq", "frequency", "frequencies", "number", "records"}
)
#: Those of pandas, polars and surveys, which in files may mean something else.
FRAME_COUNT_NAMES = COUNT_NAMES | {"size", "len", "weight"}
SHARE_NAMES = frozenset(
    {"share", "shares", "prob", "probs", "probability", "probabilities", "p"}
    | {"proportion", "proportions", "fraction", "percent", "percentage", "pct", "%"}
)
VALUE_NAMES = FRAME_COUNT_NAMES | SHARE_NAMES | {"value", "values", "obs_value"}


@dataclass(frozen=True)
class LabelledTable:
    """A table as read: axes in the order of its key; ``labels[axis]`` is None for plain arrays.

    Unknown cells are NaN and have bounds; ``margins`` are tables of fewer variables that were
    printed with it (a row of totals), ``total`` is the sum of all its cells.
    """

    names: Names
    labels: tuple[tuple[Hashable, ...] | None, ...]
    values: FloatArray
    kind: str = "auto"  # counts or shares, where that is known
    whole: bool = False  # the numbers were given as integers
    column: str = ""  # name of their column, which may say what they are
    bounds: tuple[FloatArray, FloatArray] | None = None  # lower and upper bound of every cell
    margins: tuple["LabelledTable", ...] = ()
    total: float | None = None
    rounding: float = 0.0  # how far a number may be from the true one
    noisy: bool = False  # noise was added, so cells may be negative
    records: float | None = None  # number of records behind shares
    weight: float = 1.0  # how much the table counts in a fit


def error_in(names: Names, text: str) -> ValueError:
    """Return the error that something is wrong with a table."""
    return ValueError(f"Table {cite(names)}{text}")


def names_of(key: Any) -> Names:
    """Return a key, one name or several, as a tuple of names."""
    names = tuple(map(str, key)) if isinstance(key, tuple | list) else (str(key),)
    if not names:
        raise ValueError("A table without variables was given: its key must name at least one.")
    if len(set(names)) < len(names):
        raise error_in(names, " names a variable twice: a table has each once.")
    return names


def read_table(names: Names, table: Any) -> LabelledTable:
    """Read a table in any of the forms above."""
    import narwhals.stable.v1 as nw  # slow to import

    if isinstance(table, LabelledTable):
        return table
    if isinstance(table, Mapping):
        return _from_mapping(names, table)
    if nw.dependencies.is_pandas_dataframe(table) and _is_crosstab(names, table):
        return _from_crosstab(names, table)
    if nw.dependencies.is_pandas_series(table):
        return _from_series(names, table, str(table.name))
    if hasattr(table, "collect") and not hasattr(table, "shape"):
        raise TypeError(f"Table {cite(names)}: a lazy frame was given; collect() it first.")
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    return (
        _from_long(names, frame) if isinstance(frame, nw.DataFrame) else _from_array(names, table)
    )


def _is_crosstab(names: Names, table: Any) -> bool:
    """Return whether a frame is a cross-tabulation: in long form its columns are variables."""
    named = None not in (*table.index.names, *table.columns.names)
    variables = set(names) & {str(c) for c in table.columns}
    return bool(table.columns.nlevels > 1 or not variables or (named and variables < set(names)))


def _from_array(names: Names, table: Any) -> LabelledTable:
    try:
        values = np.asarray(table)
    except ValueError as error:
        raise error_in(names, f": not an array of numbers ({error}).") from error
    if values.ndim != len(names):
        number = plural(len(names), "variable")
        text = ": an array needs one axis per variable, in the order of the key; this one has "
        raise error_in(names, f"{text}{values.ndim} for {number}.")
    whole = bool(np.issubdtype(values.dtype, np.integer))
    return LabelledTable(names, (None,) * values.ndim, _numbers(values, names), whole=whole)


def _from_mapping(names: Names, table: Mapping[Any, Any]) -> LabelledTable:
    several = len(names) > 1  # a single label may be a tuple itself: a Bin
    labels = [
        key if isinstance(key, tuple) and (several or len(key) == 1) else (key,) for key in table
    ]
    for cell in labels:
        if len(cell) != len(names):
            numbers = f"{plural(len(cell), 'label')} for {plural(len(names), 'variable')}"
            form = "a mapping goes from one label per variable to a number"
            raise error_in(names, f": the cell {cite(cell)} has {numbers}; {form}.")
    columns = list(zip(*labels, strict=True)) or [()] * len(names)
    return _from_cells(names, columns, np.asarray(list(table.values())))


def _from_series(names: Names, series: Any, column: str) -> LabelledTable:
    order = _order(names, list(series.index.names))
    labels = [list(series.index.get_level_values(level)) for level in order]
    return _from_cells(names, labels, series.to_numpy(), column)


def _from_crosstab(names: Names, table: Any) -> LabelledTable:
    if table.index.nlevels == len(names) and table.shape[1] == 1:
        return _from_series(names, table.iloc[:, 0], str(table.columns[0]))
    axes = [*table.index.names, *table.columns.names]
    if len(axes) != len(names):
        absent = [n for n in names if n not in {str(c) for c in table.columns}]
        raise error_in(
            names,
            f": the frame has neither columns named {cite(absent)} (long form) nor one label in "
            f"its index or columns for each variable (it has {len(axes)} for {len(names)}; "
            "cross-tabulation).",
        )
    rows, columns = table.shape
    levels = [table.index.get_level_values(i) for i in range(table.index.nlevels)]
    labels = [[label for label in level for _ in range(columns)] for level in levels]
    labels += [list(table.columns.get_level_values(i)) * rows for i in range(table.columns.nlevels)]
    order = _order(names, axes)
    return _from_cells(names, [labels[i] for i in order], table.to_numpy().ravel())


def _order(names: Names, axes: Sequence[Any]) -> list[int]:
    """Return the axis of each variable: by name, and unnamed axes in the order of the key."""
    if len(axes) != len(names):
        numbers = f"{plural(len(axes), 'label')} for {plural(len(names), 'variable')}"
        raise error_in(names, f": the index has {numbers}.")
    given = [None if axis is None else str(axis) for axis in axes]
    rest = [n for n in names if n not in given]
    filled = [rest.pop(0) if axis is None and rest else axis for axis in given]
    if sorted(map(str, filled)) != sorted(names):
        advice = "name them like the key, or not at all"
        raise error_in(names, f": its index and columns are named {cite(given)}; {advice}.")
    return [filled.index(n) for n in names]


def _from_long(names: Names, frame: Any) -> LabelledTable:
    columns = {str(c): c for c in frame.columns}
    for name in names:
        if name not in columns:
            listed = f"its columns are {cite(list(columns))}"
            raise error_in(names, f": the frame has no column {cite(name)}; {listed}.")
    others = [c for c in columns if c not in names]
    values = others if len(others) == 1 else [c for c in others if c.lower() in VALUE_NAMES]
    if not others:
        text = ": the frame has a column for each variable but none with the numbers; add one"
        raise error_in(names, f"{text} named 'count' or 'share'.")
    if len(values) != 1:
        advice = "Keep one of them, or name it 'count' or 'share'"
        text = f": which of the columns {cite(others)} holds the numbers? {advice}."
        raise error_in(names, text)
    labels = [frame[columns[n]].to_list() for n in names]
    return _from_cells(names, labels, frame[columns[values[0]]].to_numpy(), values[0])


def _from_cells(
    names: Names, labels: Sequence[Sequence[Any]], values: NDArray[Any], column: str = ""
) -> LabelledTable:
    """Scatter listed cells into a dense array, levels in order of first appearance."""
    axes: list[dict[Hashable, int]] = [{} for _ in names]
    codes = np.empty((len(names), len(values)), dtype=np.intp)
    for axis, (name, cells) in enumerate(zip(names, labels, strict=True)):
        for i, label in enumerate(cells):
            if is_missing(label):
                text = f", cell {i}: the label of {cite(name)} is missing; drop that cell, or name"
                raise error_in(names, f"{text} the level.")
            codes[axis, i] = axes[axis].setdefault(native(label), len(axes[axis]))
    shape = tuple(map(len, axes))
    index = np.asarray(np.ravel_multi_index(tuple(codes), shape)) if len(values) else codes[0]
    distinct, first = np.unique(index, return_index=True)
    if len(distinct) < len(index):
        again = int(np.setdiff1d(np.arange(len(index)), first)[0])
        cell = ", ".join(
            f"{shorten(n)}={cite(a[again])}" for n, a in zip(names, labels, strict=True)
        )
        raise error_in(names, f": the cell {cell} is given twice; add the two up, or drop one.")
    dense = np.zeros(shape)
    dense.ravel()[index] = _numbers(values, names)
    whole = bool(np.issubdtype(values.dtype, np.integer))
    return LabelledTable(names, tuple(map(tuple, axes)), dense, whole=whole, column=column)


def _numbers(values: NDArray[Any], names: Names) -> FloatArray:
    try:
        if np.iscomplexobj(values):
            raise TypeError("some are complex")
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise error_in(names, f": its cells must be numbers ({error}).") from error
