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

Tables that were read are checked and aligned to one domain: a dense array of counts or shares each.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain
from rejoint.domain.labels import is_missing, native
from rejoint.io.schema import LARGEST
from rejoint.marginals.unknown import UnknownCells, start_fill
from rejoint.messages import Argument, Message
from rejoint.text import cite, plural, shorten, show

Array = NDArray[np.float64]

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
    values: Array
    kind: str = "auto"  # counts or shares, where that is known
    whole: bool = False  # the numbers were given as integers
    column: str = ""  # name of their column, which may say what they are
    bounds: tuple[Array, Array] | None = None  # lower and upper bound of every cell
    margins: tuple["LabelledTable", ...] = ()
    total: float | None = None
    rounding: float = 0.0  # how far a number may be from the true one
    noisy: bool = False  # noise was added, so cells may be negative
    records: float | None = None  # number of records behind shares
    weight: float = 1.0  # how much the table counts in a fit


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
        raise ValueError(f"Table {cite(names)} names a variable twice: a table has each once.")
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
        raise TypeError(f"Table {cite(names)}: a lazy frame was given; collect() it first.")
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
        raise ValueError(f"Table {cite(names)}: not an array of numbers ({error}).") from error
    if values.ndim != len(names):
        raise ValueError(
            f"Table {cite(names)}: an array needs one axis per variable, in the order of the key; "
            f"this one has {values.ndim} for {plural(len(names), 'variable')}."
        )
    whole = np.issubdtype(values.dtype, np.integer)
    numbers = _numbers(values, names)
    return LabelledTable(names, (None,) * values.ndim, numbers, whole=bool(whole))


def _from_mapping(names: Names, table: Mapping[Any, Any]) -> LabelledTable:
    several = len(names) > 1  # a single label may be a tuple itself: a Bin
    labels = [
        key if isinstance(key, tuple) and (several or len(key) == 1) else (key,) for key in table
    ]
    for cell in labels:
        if len(cell) != len(names):
            raise ValueError(
                f"Table {cite(names)}: the cell {cite(cell)} has {plural(len(cell), 'label')} for "
                f"{plural(len(names), 'variable')}; a mapping goes from one label per variable to "
                "a number."
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
            f"Table {cite(names)}: the frame has neither columns named {cite(absent)} (long form) "
            f"nor one label in its index or columns for each variable (it has {len(axes)} for "
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
            f"Table {cite(names)}: the index has {plural(len(axes), 'label')} for "
            f"{plural(len(names), 'variable')}."
        )
    found = [None if axis is None else str(axis) for axis in axes]
    rest = [n for n in names if n not in found]
    filled = [rest.pop(0) if axis is None and rest else axis for axis in found]
    if sorted(map(str, filled)) != sorted(names):
        raise ValueError(
            f"Table {cite(names)}: its index and columns are named {cite(found)}; name them like "
            "the key, or not at all."
        )
    return [filled.index(n) for n in names]


def _from_long(names: Names, frame: Any) -> LabelledTable:
    columns = {str(c): c for c in frame.columns}
    absent = [n for n in names if n not in columns]
    if absent:
        raise ValueError(
            f"Table {cite(names)}: the frame has no column {cite(absent[0])}; its columns are "
            f"{cite(list(columns))}."
        )
    column = _value_column(names, [c for c in columns if c not in names])
    labels = [frame[columns[n]].to_list() for n in names]
    return _from_cells(names, labels, frame[columns[column]].to_numpy(), column)


def _value_column(names: Names, left: list[str]) -> str:
    if not left:
        raise ValueError(
            f"Table {cite(names)}: the frame has a column for each variable but none with the "
            "numbers; add one named 'count' or 'share'."
        )
    named = left if len(left) == 1 else [c for c in left if c.lower() in VALUE_NAMES]
    if len(named) != 1:
        raise ValueError(
            f"Table {cite(names)}: which of the columns {cite(left)} holds the numbers? Keep one "
            "of them, or name it 'count' or 'share'."
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
                    f"Table {cite(names)}, cell {i}: the label of {cite(name)} is missing; drop "
                    "that cell, or name the level."
                )
            codes[axis, i] = axes[axis].setdefault(native(label), len(axes[axis]))
    shape = tuple(len(a) for a in axes)
    index = np.asarray(np.ravel_multi_index(tuple(codes), shape)) if len(values) else codes[0]
    _check_once(names, labels, index)
    dense = np.zeros(shape)
    dense.ravel()[index] = _numbers(values, names)
    whole = bool(np.issubdtype(values.dtype, np.integer))
    labels_of = tuple(tuple(a) for a in axes)
    return LabelledTable(names, labels_of, dense, whole=whole, column=column)


def _check_once(names: Names, labels: Sequence[Sequence[Any]], index: NDArray[np.intp]) -> None:
    if len(np.unique(index)) == len(index):
        return
    _, first = np.unique(index, return_index=True)
    again = int(np.setdiff1d(np.arange(len(index)), first)[0])
    cell = ", ".join(f"{shorten(n)}={cite(a[again])}" for n, a in zip(names, labels, strict=True))
    raise ValueError(
        f"Table {cite(names)}: the cell {cell} is given twice; add the two up, or drop one."
    )


def _numbers(values: NDArray[Any], names: Names) -> Array:
    try:
        if np.iscomplexobj(values):
            raise TypeError("some are complex")
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"Table {cite(names)}: its cells must be numbers ({error}).") from error


def check_cells(table: LabelledTable) -> None:
    """Raise for cells that are not numbers, negative cells without added noise, and empty tables.

    Examples
    --------
    >>> check_cells(LabelledTable(("a",), (("x", "y"),), np.array([1.0, -2.0])))
    Traceback (most recent call last):
    ...
    ValueError: Table ('a',), cell a='y': got -2; cells must be finite and not negative. ...
    """
    values = table.values
    bad = np.isinf(values)
    if not table.noisy:
        bad |= values < 0
    if table.bounds is None:
        bad |= np.isnan(values)
    if bad.any():
        raise _bad_cell(table, int(np.argmax(bad)))
    with np.errstate(over="ignore"):
        if max(np.nansum(np.abs(values)), abs(table.total or 0.0)) > LARGEST:
            raise ValueError(
                f"Table {cite(table.names)} adds up to more than {LARGEST:g}, the largest number "
                "that a model file can hold: divide all tables by the same large number."
            )
    if np.nansum(values) > 0 or (table.total or 0.0) > 0:
        return
    if np.isnan(values).any():
        if not table.margins:
            raise ValueError(
                f"Table {cite(table.names)}: none of its cells is known, nor any total: leave it "
                "out."
            )
        return
    if not (values < 0).any():
        raise ValueError(f"Table {cite(table.names)} is empty: all its cells are zero.")
    total = f"{values.sum():g}"
    raise ValueError(
        f"Table {cite(table.names)} adds up to {total}: the noise exceeds the counts; leave it out."
    )


def _bad_cell(table: LabelledTable, flat: int) -> ValueError:
    cell = np.unravel_index(flat, table.values.shape)
    labels = [
        int(i) if known is None else known[i] for i, known in zip(cell, table.labels, strict=True)
    ]
    where = ", ".join(f"{shorten(n)}={cite(x)}" for n, x in zip(table.names, labels, strict=True))
    value = table.values[cell]
    advice = (
        Message("Use {noisy} if noise was added to protect privacy.", noisy=Argument("noisy", True))
        if value < 0
        else "Write 0 where nothing was counted; if the cell was held back, say within which "
        "bounds it is: suppressed=(0, 4), or (0, inf)."
    )
    return ValueError(
        Message(
            "Table {names}, cell {where}: got {value:g}; cells must be finite and not "
            "negative. {advice}",
            names=table.names,
            where=where,
            value=value,
            advice=advice,
        )
    )


def check_no_totals(table: LabelledTable) -> None:
    """Raise for a row of totals among the cells, which would count everything twice.

    Examples
    --------
    >>> labels = ("x", "y", "All")
    >>> check_no_totals(LabelledTable(("a",), (labels,), np.array([1.0, 2.0, 3.0])))
    Traceback (most recent call last):
    ...
    ValueError: Table ('a',): 'All' of 'a' is the sum of the other levels; ...
    """
    for axis, labels in enumerate(table.labels):
        for i, label in enumerate(labels or ()):
            if str(label).lower() not in ("all", "total", "sum") or len(labels or ()) < 3:
                continue
            total = np.take(table.values, i, axis)
            rest = np.delete(table.values, i, axis).sum(axis)
            if np.allclose(total, rest, rtol=1e-3):  # shares may be rounded
                raise ValueError(
                    f"Table {cite(table.names)}: {cite(label)} of {cite(table.names[axis])} is the "
                    "sum of the other levels; leave totals out (pandas: margins=False)."
                )


#: Largest relative deviation of the sum of shares from 1: published shares are rounded.
ROUNDING = 0.01


def unit(table: LabelledTable, values: Array, kind: str) -> tuple[float, bool]:
    """Return the divisor of the cells, and whether they are counts, which are not divided.

    Unless ``kind`` is given, the name of the column decides, then the numbers: integers are
    counts; a sum of 1 means shares; a sum of 100 with fractions means percentages; a sum below one
    is an error; everything else is counts (of weighted records, if fractional).

    Examples
    --------
    >>> table = LabelledTable(("a",), (("x", "y"),), np.array([12.5, 87.5]))
    >>> unit(table, table.values, "auto")
    (100.0, False)
    """
    total = float(np.nansum(values))
    if kind == "auto":
        kind = table.kind if table.kind != "auto" else _kind(table, total)
    if kind == "counts":
        return 1.0, True
    scale = 100.0 if total > 2.0 else 1.0
    slack = ROUNDING * scale + _rounding(table)
    if np.isnan(values).any():  # unknown cells make up the rest
        if total <= scale + slack:
            return max(scale, total), False
    elif abs(total - scale) <= slack:
        return total, False
    raise ValueError(
        f"Table {cite(table.names)}: shares must add up to 1 (or 100 %), these to {total:g}. "
        + _advice(table)
    )


def _rounding(table: LabelledTable) -> float:
    """Return four standard errors of a sum of rounded numbers."""
    return 8.0 * table.rounding * float(np.sqrt(np.count_nonzero(table.values) / 12.0))


def _advice(table: LabelledTable) -> str:
    """Return advice for tables of row percentages, which cannot be used alone."""
    for axis, name in enumerate(table.names if len(table.names) > 1 else ()):
        sums = table.values.sum(axis=tuple(a for a in range(table.values.ndim) if a != axis))
        for whole in (1.0, 100.0):
            slack = ROUNDING * whole + _rounding(table)
            if len(sums) > 1 and (np.abs(sums - whole) <= slack).all():
                return (
                    f"Each level of {cite(name)} adds up to {whole:g} by itself: multiply by the "
                    f"shares of {cite(name)} first."
                )
    return "If they are counts, use kind='counts'."


def _kind(table: LabelledTable, total: float) -> str:
    column = table.column.lower()
    known = table.values[~np.isnan(table.values)]
    partly = len(known) < table.values.size
    fractions = bool(np.any(known != np.floor(known)))
    one, hundred = abs(total - 1.0) <= ROUNDING, abs(total / 100.0 - 1.0) <= ROUNDING
    if column in SHARE_NAMES or (fractions and one):
        return "shares"  # also in a column "freq", which may mean either
    if column in FRAME_COUNT_NAMES or table.whole:
        return "counts"
    if one or (fractions and hundred):
        return "shares"
    if partly and fractions and (total < 1.0 or table.total in (1.0, 100.0)):
        return "shares"
    if total < 1.0:
        raise ValueError(
            f"Table {cite(table.names)} adds up to {total:g}: too little for shares, which add up "
            "to 1, and for counts. Check it, or use kind='counts'."
        )
    return "counts"


def weights_of_tables(given: Mapping[Any, float] | float | None, read: "ReadTables") -> Array:
    """Return one weight for each table: as given, else that of its description.

    Examples
    --------
    >>> from rejoint.marginals.labelled_table import read_tables
    >>> read = read_tables({"a": [1, 2], "b": [1, 2]}, None, "auto")
    >>> weights_of_tables({"b": 3.0}, read)
    array([1., 3.])
    """
    weight = np.array(read.weights)
    if isinstance(given, Mapping):
        position = {frozenset(s): i for i, s in enumerate(read.subsets)}
        for key, value in given.items():
            subset = frozenset(read.domain.indices(names_of(key)))
            if subset not in position:
                raise ValueError(f"table_weight names {cite(key)}, but no such table is given.")
            weight[position[subset]] = value
    elif given is not None:
        weight[:] = given
    if not np.all(np.isfinite(weight)) or np.any(weight < 0):
        raise ValueError(f"table_weight must be finite and not negative, got {cite(given)}.")
    return weight


Subset = tuple[int, ...]


@dataclass(frozen=True)
class ReadTables:
    """Tables over one domain: axes in index order, and whether each is counts.

    ``unknown`` has the cells that were not given, for which ``tables`` have a first guess.
    ``rounding`` has how far a number of each table may be from the true one.
    """

    domain: Domain
    subsets: tuple[Subset, ...]
    tables: tuple[Array, ...]
    counted: tuple[bool, ...]
    unknown: tuple[UnknownCells | None, ...]
    rounding: tuple[float, ...]
    weights: tuple[float, ...]


def read_tables(
    tables: Mapping[Any, Any],
    domain: Domain | None,
    kind: str,
    suppressed: tuple[float, float] | None = None,
    *,
    noisy: bool = False,
) -> ReadTables:
    """Read tables in any accepted form; the domain is found from them if it is not given.

    Examples
    --------
    >>> read = read_tables({("b", "a"): [[1, 2], [3, 4]]}, None, "auto")
    >>> read.domain.names, read.counted
    (('b', 'a'), (True,))
    """
    if kind not in ("auto", "counts", "shares"):
        raise ValueError(f"kind must be 'auto', 'counts' or 'shares', got {cite(kind)}.")
    if not isinstance(tables, Mapping):
        raise TypeError(
            "tables must be a mapping from tuples of names to tables, "
            f"{{('a', 'b'): table}}; got {type(tables).__name__}."
        )
    read = [read_table(names_of(key), table) for key, table in tables.items()]
    read = [_as_said(table, suppressed, noisy) for table in read]
    return gather(read, domain, kind)


def _as_said(
    table: LabelledTable, suppressed: tuple[float, float] | None, noisy: bool
) -> LabelledTable:
    """Return the table with the user's options for missing and negative cells applied."""
    if noisy:
        table = replace(table, noisy=True)
    gone = np.isnan(table.values)
    if suppressed is None or table.bounds is not None or not gone.any():
        return table
    low, high = suppressed
    if not 0 <= low <= high:
        raise ValueError(
            f"suppressed=({low:g}, {high:g}): give the least and the most that a held-back cell "
            "may be."
        )
    values = table.values
    return replace(table, bounds=(np.where(gone, low, values), np.where(gone, high, values)))


def gather(read: Sequence[LabelledTable], domain: Domain | None, kind: str) -> ReadTables:
    """Check tables and align them to one domain: by default the one found from them.

    Examples
    --------
    >>> gather([read_table(("a",), {"x": 1, "y": 3})], None, "auto").tables
    (array([1., 3.]),)
    """
    for table in read:
        check_cells(table)
        check_no_totals(table)
    if domain is None:
        if not read:
            raise ValueError("No tables are given: moments alone need domain=, for their levels.")
        domain = domain_of(read)
    subsets: dict[Subset, Names] = {}
    aligned, counted, unknown, rounding = [], [], [], []
    for table in read:
        subset, values = align(table, domain)
        if subset in subsets:
            raise ValueError(
                f"Table {cite(table.names)} is given twice (before as {cite(subsets[subset])}): "
                "add the two up, or keep one."
            )
        subsets[subset] = table.names
        divisor, is_count = unit(table, values, kind)
        cells = unknown_cells(table, subset, values, domain, divisor, whole=not is_count)
        if table.records is not None and not is_count:
            cells = None if cells is None else cells.scaled(table.records)
            divisor, is_count = divisor / table.records, True
        values = values / divisor
        if cells is not None:
            filled = start_fill(values.ravel(), values.shape, cells, counted=is_count)
            values = filled.reshape(values.shape)
        aligned.append(values)
        counted.append(is_count)
        unknown.append(cells)
        rounding.append(table.rounding / divisor)
    weights = [table.weight for table in read]
    found: tuple[Any, ...] = (subsets, aligned, counted, unknown, rounding, weights)
    return ReadTables(domain, *map(tuple, found))


def domain_of(tables: Sequence[LabelledTable]) -> Domain:
    """Collect variables and levels, both in order of first appearance.

    A plain array has only a number of levels: it gets the labels of other tables, or 0, 1, 2, ...
    if there are none.

    Examples
    --------
    >>> read = [read_table(("a", "b"), [[1, 2, 3], [4, 5, 6]]), read_table(("b",), {"x": 1})]
    >>> domain_of(read)
    Traceback (most recent call last):
    ...
    ValueError: Table ('a', 'b'): its axis 'b' has 3 levels, but other tables ...
    """
    levels: dict[str, dict[Hashable, None]] = {}
    for table in tables:
        for name, labels in zip(table.names, table.labels, strict=True):
            levels.setdefault(name, {}).update(dict.fromkeys(labels or ()))
    _check_types(levels)
    for table in tables:
        for axis, name in enumerate(table.names):
            size = table.values.shape[axis]
            known = levels[name]
            if not known:
                known.update(dict.fromkeys(range(size)))
            if table.labels[axis] is None and size != len(known):
                raise ValueError(
                    f"Table {cite(table.names)}: its axis {cite(name)} has "
                    f"{plural(size, 'level')}, but other tables give {cite(name)} {len(known)} "
                    f"({show(list(known))}). Give domain=, or tables with labels."
                )
    return Domain.of({name: list(known) for name, known in levels.items()})


def _check_types(levels: Mapping[str, Mapping[Hashable, None]]) -> None:
    """Raise for levels that look equal but differ in type: 1 in one table, "1" in another."""
    for name, known in levels.items():
        seen: dict[str, Hashable] = {}
        for level in known:
            twin = seen.setdefault(str(level), level)
            if twin is not level:
                raise ValueError(
                    f"Variable {cite(name)} has the level {cite(twin)} in one table and "
                    f"{cite(level)} in another: write it in the same way in all of them."
                )


def align(table: LabelledTable, domain: Domain) -> tuple[Subset, Array]:
    """Reorder axes and levels of a table as in the domain; levels that it lacks get zero.

    Examples
    --------
    >>> table = read_table(("b", "a"), {(0, "y"): 1, (1, "x"): 2})
    >>> align(table, Domain.of({"a": ["x", "y"], "b": [0, 1]}))
    ((0, 1), array([[0., 2.],
           [1., 0.]]))
    """
    where = domain.indices(table.names)
    values = table.values
    for axis, (n, labels) in enumerate(zip(where, table.labels, strict=True)):
        variable = domain[n]
        if labels is None:
            if values.shape[axis] != len(variable):
                raise ValueError(
                    f"Table {cite(table.names)}: shape {table.values.shape} does not fit; the "
                    f"domain has {plural(len(variable), 'level')} of {cite(variable.name)} "
                    f"({show(list(variable.levels))})."
                )
            continue
        spread = np.zeros((len(variable), *np.delete(values.shape, axis)))
        np.add.at(spread, _codes(table.names, variable, labels), np.moveaxis(values, axis, 0))
        values = np.moveaxis(spread, 0, axis)
    order = np.argsort(where)
    return tuple(where[i] for i in order), np.ascontiguousarray(values.transpose(order))


def _codes(names: Names, variable: Any, labels: Sequence[Hashable]) -> list[int]:
    try:
        return [variable.code(label) for label in labels]
    except (ValueError, KeyError) as error:
        raise ValueError(f"Table {cite(names)}: {error.args[0]}") from error


def unknown_cells(
    table: LabelledTable,
    subset: Subset,
    values: Array,
    domain: Domain,
    divisor: float,
    *,
    whole: bool,
) -> UnknownCells | None:
    """Return the unknown cells of an aligned table, with their bounds and known sums.

    ``whole`` means that all cells add up to the divisor, as shares add up to one.

    Examples
    --------
    >>> margin = LabelledTable(("a",), (("x", "y"),), np.array([5.0, 9.0]))
    >>> table = LabelledTable(
    ...     ("a", "b"),
    ...     (("x", "y"), ("u", "v")),
    ...     np.array([[3.0, np.nan], [4.0, 5.0]]),
    ...     margins=(margin,),
    ...     bounds=(np.zeros((2, 2)), np.full((2, 2), 9.0)),
    ... )
    >>> domain = Domain.of({"a": ["x", "y"], "b": ["u", "v"]})
    >>> unknown_cells(table, (0, 1), table.values, domain, 1.0, whole=False).sums
    ((array([0]), 2.0),)
    """
    flat = values.ravel()
    gone = np.isnan(flat)
    if not gone.any():
        return None
    assert table.bounds is not None
    low, high = (
        align(replace(table, values=bound), domain)[1].ravel()[gone] / divisor
        for bound in table.bounds
    )
    number = np.cumsum(gone) - 1  # number of the unknown cell at each position
    lines: list[tuple[NDArray[np.intp], float]] = []
    for margin in table.margins:
        kept, claims = align(margin, domain)
        axes = [subset.index(n) for n in kept]
        grid = np.moveaxis(np.arange(flat.size).reshape(values.shape), axes, range(len(axes)))
        lines += zip(grid.reshape(claims.size, -1), claims.ravel(), strict=True)
    if table.total is not None:
        lines.append((np.arange(flat.size), table.total))
    elif whole:
        lines.append((np.arange(flat.size), divisor))
    sums = []
    for line, claim in lines:
        members = number[line[gone[line]]]
        if len(members) and not np.isnan(claim):
            rest = (claim - float(np.nansum(flat[line]))) / divisor
            sums.append((members, float(np.clip(rest, low[members].sum(), high[members].sum()))))
    return UnknownCells(np.flatnonzero(gone), low, high, tuple(sums))


def check_covered(domain: Domain, subsets: Sequence[Subset]) -> None:
    """Raise an error that names the variables of the domain that are in no subset.

    Examples
    --------
    >>> check_covered(Domain.of_shape([2, 2]), [(0, 1)])
    """
    held = {n for s in subsets for n in s}
    absent = [name for n, name in enumerate(domain.names) if n not in held]
    if absent:
        raise ValueError(
            f"No table or moment says anything about {show(absent)}: give one, or leave the "
            "variables out of the domain."
        )
