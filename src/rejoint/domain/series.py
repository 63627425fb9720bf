"""Series: one column of pandas, polars, pyarrow, NumPy or plain Python into its form."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from rejoint.domain.arrays import column_of_array, column_of_objects, numbers_if_all
from rejoint.domain.columns import Coded, Column, Numbers, advice, column_of_distinct

__all__ = ["read_column"]


def read_column(column: Any, name: str = "") -> Column:
    """Read one column of anything: array, list, or series of a frame library.

    Examples
    --------
    >>> read_column(["b", None, "b"]).codes
    array([ 0, -1,  0], dtype=int32)
    """
    if isinstance(column, (Coded, Numbers)):
        return column
    if isinstance(column, np.ndarray):
        return column_of_array(column, name)
    match type(column).__module__.partition(".")[0]:
        case "pandas":
            return _of_pandas(column, name)
        case "polars":
            return _of_polars(column, name)
        case "pyarrow":
            return _of_arrow(column, name)
    if isinstance(column, (str, bytes)) or not isinstance(column, Iterable):
        raise TypeError(
            f"Variable {name!r} must be a column (a list, an array, a series), "
            f"not the single {type(column).__name__} {column!r}."
        )
    if hasattr(column, "__array__"):
        return column_of_array(np.asarray(column), name)
    return column_of_objects(list(column), name)


def _of_pandas(column: Any, name: str) -> Column:
    import pandas as pd

    column = pd.Series(column)  # an Index or an extension array too
    if isinstance(column.dtype, pd.SparseDtype):
        column = column.sparse.to_dense()
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        labels, codes = dtype.categories, column.cat.codes.to_numpy()
        if isinstance(labels, pd.IntervalIndex):
            labels = labels.astype(str)
        return column_of_distinct(
            labels.tolist(), codes, name, declared=True, ordered=bool(dtype.ordered)
        )
    if isinstance(dtype, pd.ArrowDtype):
        return _of_arrow(column.array.__arrow_array__(), name)
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return column_of_array(column.to_numpy(), name)
    if pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_numeric_dtype(dtype):
        values = column.to_numpy(dtype=getattr(dtype, "numpy_dtype", np.float64), na_value=0)
        return column_of_array(values, name, column.isna().to_numpy())
    if not isinstance(dtype, (np.dtype, pd.StringDtype)):
        raise TypeError(f"Variable {name!r} holds {dtype}: {advice(dtype)}.")
    try:
        codes, distinct = pd.factorize(column)
    except TypeError:  # a cell cannot be hashed: the slow way finds out which
        return column_of_objects(column.tolist(), name)
    return numbers_if_all(column_of_distinct(distinct.tolist(), codes, name))


def _of_polars(column: Any, name: str) -> Column:
    import polars as pl

    dtype = column.dtype
    if isinstance(dtype, pl.Enum):
        codes = column.to_physical().cast(pl.Int32).fill_null(-1).to_numpy()
        labels = dtype.categories.to_list()
        return column_of_distinct(labels, codes, name, declared=True, ordered=True)
    if dtype in (pl.String, pl.Categorical):
        labels = column.drop_nulls().unique().cast(pl.String)
        codes = column.cast(pl.Enum(labels)).to_physical().cast(pl.Int32)
        return column_of_distinct(labels.to_list(), codes.fill_null(-1).to_numpy(), name)
    if isinstance(dtype, pl.Decimal):
        column = column.cast(pl.Float64)
    if dtype == pl.Boolean or column.dtype.is_float() or column.dtype.is_integer():
        gone = column.is_null().to_numpy()
        return column_of_array(
            column.fill_null(0 if dtype != pl.Boolean else False).to_numpy(), name, gone
        )
    if dtype in (pl.Null, pl.Object, pl.Binary):
        return column_of_objects(column.to_list(), name)
    raise TypeError(f"Variable {name!r} holds {dtype}: {advice(dtype)}.")


def _of_arrow(column: Any, name: str) -> Column:
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    kind, is_ = column.type, pa.types
    if is_.is_run_end_encoded(kind):
        import pyarrow.compute as pc  # no part of pyarrow until imported

        column = pc.run_end_decode(column)
        kind = column.type
    declared = is_.is_dictionary(kind)
    if is_.is_string(kind) or is_.is_large_string(kind) or is_.is_string_view(kind):
        column = column.dictionary_encode()
    if is_.is_dictionary(column.type):
        codes = column.indices.cast(pa.int32()).fill_null(-1).to_numpy(zero_copy_only=False)
        labels = column.dictionary.to_pylist()
        ordered = declared and bool(kind.ordered)
        return column_of_distinct(labels, codes, name, declared=declared, ordered=ordered)
    if is_.is_decimal(kind):
        column = column.cast(pa.float64())
    if is_.is_boolean(kind) or is_.is_integer(kind) or is_.is_floating(column.type):
        gone = column.is_null().to_numpy(zero_copy_only=False)
        blank = pa.scalar(False if is_.is_boolean(kind) else 0).cast(column.type)
        return column_of_array(column.fill_null(blank).to_numpy(zero_copy_only=False), name, gone)
    if is_.is_null(kind) or is_.is_binary(kind):
        return column_of_objects(column.to_pylist(), name)
    raise TypeError(f"Variable {name!r} holds {kind}: {advice(kind)}.")
