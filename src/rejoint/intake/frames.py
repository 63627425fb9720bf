"""Frames: any table of records taken apart into named columns."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Frame", "take_apart"]

_TAKEN = (
    "a pandas, polars or pyarrow frame, anything with __arrow_c_stream__, a 2-D NumPy array, "
    "a list of dicts or of rows, or a dict of columns"
)


class Frame(NamedTuple):
    """Columns as they came, their names (None where the source has none), and the rows."""

    names: tuple[str, ...] | None
    columns: list[Any]
    rows: int


def take_apart(data: Any) -> Frame:
    """Return the columns of anything that holds a table.

    Examples
    --------
    >>> take_apart([{"a": 1, "b": "x"}, {"a": 2}])
    Frame(names=('a', 'b'), columns=[[1, 2], ['x', None]], rows=2)
    """
    if isinstance(data, np.ndarray):
        return _of_array(data)
    if isinstance(data, Mapping):
        return _of_columns(data)
    if isinstance(data, (str, bytes, PathLike)):
        raise TypeError(
            f"Records are made of {_TAKEN}, not of {data!r}: "
            "read the file first, for instance by pandas.read_csv."
        )
    frame = _of_frame(data)
    if frame is not None:
        return frame
    if hasattr(data, "__array__"):
        return _of_array(np.asarray(data))
    if isinstance(data, Iterable):
        return _of_rows(list(data))
    raise TypeError(f"Records are made of {_TAKEN}, not of a {type(data).__name__}.")


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
    columns = []
    for name, column in data.items():
        if not hasattr(column, "__len__"):
            if isinstance(column, (str, bytes)) or not isinstance(column, Iterable):
                raise TypeError(
                    f"Variable {str(name)!r} must be a column (a list, an array, a series), "
                    f"not {column!r}; one record alone is a list of one dict: [{{...}}]."
                )
            column = list(column)
        columns.append(column)
    lengths = {str(name): len(column) for name, column in zip(data, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"The columns have different numbers of rows: {lengths}.")
    return Frame(tuple(lengths), columns, next(iter(lengths.values()), 0))


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
                f"{type(row).__name__} {row!r}, neither a dict nor a row of cells."
            )
        if len(row) != len(rows[0]):
            raise ValueError(f"Row {i} has {len(row)} cells, row 0 has {len(rows[0])}.")
    return Frame(None, [list(column) for column in zip(*rows, strict=True)], len(rows))


def _of_frame(data: Any) -> Frame | None:
    """Take apart a frame of any library, None if it is none."""
    import narwhals.stable.v2 as nw  # not needed for arrays and lists

    native = nw.from_native(data, pass_through=True, allow_series=True)
    if native is data and hasattr(data, "__arrow_c_stream__"):
        native = nw.from_native(_of_arrow_stream(data))
    if isinstance(native, nw.Series):
        return Frame((str(native.name or "x0"),), [native.to_native()], len(native))
    if isinstance(native, nw.LazyFrame):
        native = native.collect()
    if not isinstance(native, nw.DataFrame):
        return None
    names = tuple(str(name) for name in native.columns)
    return Frame(names, [s.to_native() for s in native.iter_columns()], len(native))


def _of_arrow_stream(data: Any) -> Any:
    if find_spec("pyarrow"):
        import pyarrow

        return pyarrow.table(data)
    if find_spec("polars"):
        import polars

        return polars.DataFrame(data)
    raise ImportError(
        f"A {type(data).__name__} is read through Arrow: install pyarrow or polars for it."
    )
