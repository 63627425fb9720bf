"""Split tables of any library into columns, and make frames and text from records."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast, get_args

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.columns import Codes, check_column
from rejoint.domain.labels import label_array
from rejoint.messages import Message, PythonName
from rejoint.text import cite, nearest, plural, show

if TYPE_CHECKING:
    from rejoint.domain.domain import Domain
    from rejoint.domain.variable import Variable

_TAKEN = (
    "a pandas, polars or pyarrow frame, anything with __arrow_c_stream__, a 2-D NumPy array, "
    "a list of dicts or of rows, or a dict of columns"
)


class Frame(NamedTuple):
    """Columns as given, their names (None where the source has none), and the number of rows."""

    names: tuple[str, ...] | None
    columns: list[Any]
    rows: int

    def without(self, left_out: Collection[str]) -> "Frame":
        """Return the columns with a name that is not among these."""
        kept = [n for n, name in enumerate(self.names or ()) if name not in left_out]
        names = tuple((self.names or ())[n] for n in kept)
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
        found = "there is no column" if name not in names else "there is more than one column"
        text = (
            "{use}: {found} {name!r}; it must be the name of one column, and the columns are "
            "{names}.{nearest}"
        )
        fields = {"found": found, "name": name, "names": show(names)}
        near = nearest(name, names)
        raise KeyError(Message(text, use=PythonName(use), nearest=near, **fields))
    at = names.index(name)
    rest = [column for n, column in enumerate(frame.columns) if n != at]
    return Frame((*names[:at], *names[at + 1 :]), rest, frame.rows), frame.columns[at]


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
    """Split a frame or series of any library; return None if it is neither."""
    match type(data).__module__.partition(".")[0]:
        case "pandas" if hasattr(data, "iloc"):
            if data.ndim == 1:
                data = data.to_frame("x0" if data.name is None else data.name)
            columns = [data.iloc[:, n] for n in range(data.shape[1])]  # names may repeat
            return Frame(tuple(str(name) for name in data.columns), columns, len(data))
        case "pyarrow":
            return _of_arrow(data)
    import narwhals as nw  # imported late: common frames do not need it

    table = nw.from_native(data, pass_through=True, allow_series=True)
    if isinstance(table, nw.LazyFrame):
        table = table.collect()
    if isinstance(table, nw.Series):
        table = table.alias(table.name or "x0").to_frame()
    if isinstance(table, nw.DataFrame):
        columns = [series.to_native() for series in table.iter_columns()]
        return Frame(tuple(str(name) for name in table.columns), columns, len(table))
    return _of_arrow(data)


def _of_arrow(data: Any) -> Frame | None:
    """Split any object that Arrow can read, without a copy where it is an Arrow table."""
    if not (hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")):
        return None
    if find_spec("pyarrow"):
        import pyarrow

        table = data if isinstance(data, pyarrow.Table) else pyarrow.table(data)
        return Frame(tuple(table.column_names), table.columns, len(table))
    if find_spec("polars"):
        import polars

        frame = polars.DataFrame(data)
        return Frame(tuple(frame.columns), frame.get_columns(), len(frame))
    raise ImportError(
        f"A {type(data).__name__} is read through Arrow: install pyarrow or polars for it."
    )


Backend = Literal["pandas", "polars", "pyarrow"]
_ROWS, _COLUMNS = 5, 8


def make_frame(domain: "Domain", codes: Codes, backend: str | None, representatives: bool) -> Any:
    """Return a frame of labels in the requested library, or in the first that is installed.

    Text and bins become categories of the library, with all levels; numbers and booleans
    its numbers and booleans, missing where they do not apply. Labels of several types in one column
    become text where the library cannot mix them.
    """
    makers = {"pandas": _pandas, "polars": _polars, "pyarrow": _pyarrow}
    for n, v in enumerate(domain):
        if v.empty is not None and _texts(v, representatives) is None:
            codes = codes.copy()
            codes[codes[:, n] == len(v) - 1, n] = -1
    return makers[choose_backend(backend)](domain, codes, representatives)


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


def _texts(variable: "Variable", representatives: bool) -> list[str] | None:
    """Return the levels as text if they are text or bins."""
    if variable.kind == "binned":
        return None if representatives else [str(level) for level in variable.levels]
    texts = [level for level in variable.levels if isinstance(level, str)]
    return texts if len(texts) == len(variable) else None


def _values(variable: "Variable", codes: Codes) -> NDArray[Any]:
    """Return numbers, booleans or objects; those of code -1 are arbitrary."""
    labels = np.array(variable.representatives or label_array(variable.values))
    values: NDArray[Any] = labels[codes]
    return values


def _uniform(
    variable: "Variable", codes: Codes, representatives: bool
) -> tuple[list[str] | None, NDArray[Any]]:
    """Return text and the codes into it, or None and values of one type."""
    texts = _texts(variable, representatives)
    values = codes if texts is not None else _values(variable, codes)
    if values.dtype == object:
        return [str(level) for level in variable.levels], codes
    return texts, values


def _pandas(domain: "Domain", codes: Codes, representatives: bool) -> Any:
    import pandas as pd

    def series(v: "Variable", column: Codes) -> Any:
        texts, gone = _texts(v, representatives), column < 0
        if texts is not None:
            return pd.Categorical.from_codes(column, categories=texts, ordered=v.kind != "nominal")
        values = _values(v, column)
        if not gone.any():
            return values
        match values.dtype.kind:
            case "b":
                return pd.arrays.BooleanArray(values, gone)
            case "i":
                return pd.arrays.IntegerArray(values, gone)
        values[gone] = np.nan if values.dtype.kind == "f" else None
        return values

    columns = {v.name: series(v, codes[:, n]) for n, v in enumerate(domain)}
    return pd.DataFrame(columns, index=pd.RangeIndex(len(codes)))


def _polars(domain: "Domain", codes: Codes, representatives: bool) -> Any:
    import polars as pl

    def series(v: "Variable", column: Codes) -> Any:
        (texts, values), gone = _uniform(v, column, representatives), column < 0
        if texts is None:
            return pl.Series(v.name, values).set(pl.Series(gone), None)
        places = pl.Series(np.where(gone, 0, values).astype(np.uint32)).set(pl.Series(gone), None)
        kind = pl.Categorical if v.kind == "nominal" else pl.Enum(texts)
        return pl.Series(v.name, texts, dtype=kind).gather(places)

    return pl.DataFrame([series(v, codes[:, n]) for n, v in enumerate(domain)])


def _pyarrow(domain: "Domain", codes: Codes, representatives: bool) -> Any:
    import pyarrow as pa

    def array(v: "Variable", column: Codes) -> Any:
        (texts, values), gone = _uniform(v, column, representatives), column < 0
        if texts is None:
            return pa.array(values, mask=gone)
        cells = pa.array(values.astype(np.int32), mask=gone)
        return pa.DictionaryArray.from_arrays(cells, pa.array(texts), ordered=v.kind != "nominal")

    return pa.table({v.name: array(v, codes[:, n]) for n, v in enumerate(domain)})


def head(domain: "Domain", codes: Codes, weight: NDArray[np.float64] | None) -> str:
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
