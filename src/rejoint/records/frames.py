"""Split tables of any library into columns, and make frames and text from records."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.columns import Codes, check_column
from rejoint.domain.domain import Domain
from rejoint.domain.labels import label_array
from rejoint.domain.variable import Variable
from rejoint.text import cite, nearest, plural, show

_TAKEN = (
    "a pandas, polars or pyarrow frame, anything with __arrow_c_stream__, a 2-D NumPy array, "
    "a list of dicts or of rows, or a dict of columns"
)


class Frame(NamedTuple):
    """Columns as given, their names (None where the source has none), and the number of rows."""

    names: tuple[str, ...] | None
    columns: list[Any]
    rows: int

    @property
    def all_names(self) -> tuple[str, ...]:
        """Names of the columns, x0, x1, ... where the source has none."""
        return self.names or tuple(f"x{n}" for n in range(len(self.columns)))

    def without(self, left_out: Collection[str]) -> "Frame":
        """Return the columns with no name or one that is not among these."""
        if self.names is None or not left_out:
            return self
        kept = [n for n, name in enumerate(self.names) if name not in left_out]
        names = tuple(self.names[n] for n in kept)
        return Frame(names, [self.columns[n] for n in kept], self.rows)


def take_apart(data: Any) -> Frame:
    """Return the columns of any object that holds a table."""
    if isinstance(data, Frame):
        return data
    if isinstance(data, np.ndarray):
        return _of_array(data)
    refuse_non_table(data)
    if hasattr(data, "toarray"):  # before mappings: a dok_matrix is a mapping of cells
        raise TypeError(
            f"A {type(data).__name__} does not say whether a cell that it leaves out is zero or "
            "missing: pass data.toarray() if zero, rejoint.SparseRecords.of(data) if missing."
        )
    if isinstance(data, Mapping):
        return _of_columns(data)
    if isinstance(data, (str, bytes, PathLike)):
        raise TypeError(
            f"Records are made of {_TAKEN}, not of {cite(data)}: read the file first, with "
            "rejoint.read."
        )
    frame = _of_frame(data)
    if frame is not None:
        return frame
    if hasattr(data, "__array__"):
        return _of_array(np.asarray(data))
    if isinstance(data, Iterable) and not isinstance(data, (set, frozenset)):
        return _of_rows(list(data))
    raise TypeError(f"Records are made of {_TAKEN}, not of {type(data).__name__}.")


def cut_tables(batches: Iterable[Any], schema: Any, size: int | None) -> Iterator[Any]:
    """Yield Arrow tables of ``size`` rows (None: all), an empty one where there are no rows."""
    import pyarrow as pa

    rest: list[Any] = []
    is_first = True
    for batch in batches:
        rest.append(pa.table(batch))
        while size and sum(map(len, rest)) >= size:
            table, is_first = pa.concat_tables(rest), False
            yield table[:size]
            rest = [table[size:]]
    if is_first or any(map(len, rest)):
        yield pa.concat_tables(rest) if rest else schema.empty_table()


def refuse_non_table(data: Any) -> None:
    """Raise an error, which says what to do, if data are records that are not a table in memory."""
    say = getattr(type(data), "_why_no_table", None)
    if say is not None:
        raise TypeError(say(data))


def split_column(frame: Frame, name: str, use: str = "sample_weight") -> tuple[Frame, Any]:
    """Return the frame without a column that is not a variable, and that column."""
    names = list(frame.names or ())
    if names.count(name) != 1:
        count = "there is no column" if name not in names else "there is more than one column"
        must = "it must be the name of one column, and the columns are"
        raise KeyError(f"{use}: {count} {cite(name)}; {must} {show(names)}.{nearest(name, names)}")
    at = names.index(name)
    return frame.without([name]), frame.columns[at]


def _of_array(array: NDArray[Any]) -> Frame:
    if array.dtype.names is not None and array.ndim == 1:
        return Frame(array.dtype.names, [array[n] for n in array.dtype.names], len(array))
    if array.ndim != 2:
        raise ValueError(
            f"An array of records must have 2 axes (rows, variables), not {array.ndim}: "
            f"its shape is {array.shape}; reshape(-1, 1) makes one variable of a flat one."
        )
    if not isinstance(array, np.ma.MaskedArray):
        array = np.asarray(array)  # np.matrix has no 1-D columns
    return Frame(None, [array[:, n] for n in range(array.shape[1])], len(array))


def _of_columns(data: Mapping[Any, Any]) -> Frame:
    columns: list[Any] = []
    for name, column in data.items():
        check_column(column, name)
        columns.append(column if hasattr(column, "__len__") else list(column))
    rows = [len(column) for column in columns]
    if len(set(rows)) > 1:
        sizes = ", ".join(f"{cite(name)} {n}" for name, n in zip(data, rows, strict=True))
        raise ValueError(f"The columns have different numbers of rows: {sizes}.")
    return Frame(tuple(str(name) for name in data), columns, rows[0] if rows else 0)


def _of_rows(rows: list[Any]) -> Frame:
    dicts = sum(isinstance(row, Mapping) for row in rows)
    if dicts:
        if dicts < len(rows):
            odd = next(i for i, row in enumerate(rows) if not isinstance(row, Mapping))
            raise TypeError(f"Row {odd} is a {type(rows[odd]).__name__} among dicts.")
        keys = dict.fromkeys(key for row in rows for key in row)
        columns = [[row.get(key) for row in rows] for key in keys]
        return Frame(tuple(str(key) for key in keys), columns, len(rows))
    for i, row in enumerate(rows):
        if isinstance(row, (str, bytes)) or not isinstance(row, (Sequence, np.ndarray)):
            raise TypeError(
                f"Records are made of {_TAKEN}; row {i} of this list is the "
                f"{type(row).__name__} {cite(row)}, neither a dict nor a row of cells."
            )
        if len(row) != len(rows[0]):
            raise ValueError(f"Row {i} has {plural(len(row), 'cell')}, row 0 has {len(rows[0])}.")
    return Frame(None, [list(column) for column in zip(*rows, strict=True)], len(rows))


def _of_frame(data: Any) -> Frame | None:
    """Split a frame or series of any library, or what Arrow can read; None if it is neither."""
    library = type(data).__module__.partition(".")[0]
    if library == "pandas" and hasattr(data, "iloc"):
        if data.ndim == 1:
            data = data.to_frame("x0" if data.name is None else data.name)
        columns = [data.iloc[:, n] for n in range(data.shape[1])]  # names may repeat
        return Frame(tuple(map(str, data.columns)), columns, len(data))
    if library != "pyarrow":
        import narwhals as nw  # imported late: common frames do not need it

        table = nw.from_native(data, pass_through=True, allow_series=True)
        if isinstance(table, nw.LazyFrame):
            table = table.collect()
        if isinstance(table, nw.Series):
            table = table.alias(table.name or "x0").to_frame()
        if isinstance(table, nw.DataFrame):
            columns = [series.to_native() for series in table.iter_columns()]
            return Frame(tuple(map(str, table.columns)), columns, len(table))
    if not (hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")):
        return None
    if find_spec("pyarrow"):
        import pyarrow

        table = data if isinstance(data, pyarrow.Table) else pyarrow.table(data)
        return Frame(tuple(table.column_names), table.columns, len(table))
    if find_spec("polars"):
        import polars

        return _of_frame(polars.DataFrame(data))
    what = type(data).__name__
    raise ImportError(f"A {what} is read through Arrow: install pyarrow or polars for it.")


Backend = Literal["pandas", "polars", "pyarrow"]
_ROWS, _COLUMNS = 5, 8


def make_frame(domain: Domain, codes: Codes, backend: str | None, representatives: bool) -> Any:
    """Return a frame of labels in the requested library, or in the first that is installed.

    Text and bins become categories of the library, with all levels; numbers and booleans
    its numbers and booleans, missing where they do not apply. Labels of several types in one column
    become text where the library cannot mix them.
    """
    makers = {"pandas": _pandas, "polars": _polars, "pyarrow": _pyarrow}
    make = makers[choose_backend(backend)]
    columns = {v.name: make(v, codes[:, n], representatives) for n, v in enumerate(domain)}
    if make is _pandas:
        import pandas as pd

        return pd.DataFrame(columns, index=pd.RangeIndex(len(codes)))
    library = import_module("polars" if make is _polars else "pyarrow")
    return library.DataFrame(columns) if make is _polars else library.table(columns)


def choose_backend(backend: str | None) -> Backend:
    """Return the requested library, or the first that is installed."""
    backends = get_args(Backend)
    if backend is None:
        backend = next((name for name in backends if find_spec(name)), None)
        if backend is None:
            raise ImportError("A frame needs pandas, polars or pyarrow: none is installed.")
    if backend not in backends:
        raise ValueError(f"backend must be 'pandas', 'polars' or 'pyarrow', not {cite(backend)}.")
    return cast(Backend, backend)


def _values(
    variable: Variable, codes: Codes, representatives: bool, *, can_mix: bool
) -> tuple[list[str] | None, NDArray[Any], NDArray[np.bool_]]:
    """Return texts and codes into them, or None and values; and which cells are missing.

    Values of missing cells are arbitrary.
    """
    is_text = all(isinstance(level, str) for level in variable.levels)
    if is_text or (variable.kind == "binned" and not representatives):
        return [str(level) for level in variable.levels], codes, codes < 0
    if variable.empty is not None:
        codes = np.where(codes == len(variable) - 1, -1, codes)
    values = np.array(variable.representatives or label_array(variable.values))[codes]
    if values.dtype == object and not can_mix:
        return [str(level) for level in variable.values], codes, codes < 0
    return None, values, codes < 0


def _pandas(variable: Variable, codes: Codes, representatives: bool) -> Any:
    import pandas as pd

    texts, values, missing = _values(variable, codes, representatives, can_mix=True)
    if texts is not None:
        is_ordered = variable.kind != "nominal"
        return pd.Categorical.from_codes(codes, categories=texts, ordered=is_ordered)
    masked = {"b": pd.arrays.BooleanArray, "i": pd.arrays.IntegerArray}
    if missing.any() and values.dtype.kind in masked:
        return masked[values.dtype.kind](values, missing)
    if missing.any():
        values[missing] = np.nan if values.dtype.kind == "f" else None
    return values


def _polars(variable: Variable, codes: Codes, representatives: bool) -> Any:
    import polars as pl

    texts, values, missing = _values(variable, codes, representatives, can_mix=False)
    gaps = pl.Series(missing)
    if texts is None:
        return pl.Series(values).set(gaps, None)
    places = pl.Series(np.where(missing, 0, values).astype(np.uint32)).set(gaps, None)
    kind = pl.Categorical if variable.kind == "nominal" else pl.Enum(texts)
    return pl.Series(texts, dtype=kind).gather(places)


def _pyarrow(variable: Variable, codes: Codes, representatives: bool) -> Any:
    import pyarrow as pa

    texts, values, missing = _values(variable, codes, representatives, can_mix=False)
    if texts is None:
        return pa.array(values, mask=missing)
    cells, is_ordered = pa.array(values.astype(np.int32), mask=missing), variable.kind != "nominal"
    return pa.DictionaryArray.from_arrays(cells, pa.array(texts), ordered=is_ordered)


def head(domain: Domain, codes: Codes, weight: NDArray[np.float64] | None) -> str:
    """Return the size of the records and their first rows as text."""
    rows, width = codes.shape
    share = f"{np.mean(codes < 0):.0%}".replace("%", " %") if codes.size else "0 %"
    title = f"Records: {plural(rows, 'row')}, {plural(width, 'variable')}"
    title += f", {share} of the cells missing" + (", weighted" if weight is not None else "")
    columns = []
    for n, v in enumerate(domain.variables[:_COLUMNS]):
        cells = [v.name] + ["-" if c < 0 else str(v.levels[c]) for c in codes[:_ROWS, n]]
        size = max(len(cell) for cell in cells)
        columns.append([cell.ljust(size) for cell in cells])
    lines = ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]
    if width > _COLUMNS and lines:
        lines[0] += f"  ... and {width - _COLUMNS:,} more"
    if rows > _ROWS:
        lines.append("...")
    return "\n".join([title, *lines])
