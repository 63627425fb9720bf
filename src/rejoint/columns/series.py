"""Series: one column of pandas, polars or pyarrow, or any sequence, read into a `Column`."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from rejoint.columns.forms import Column, column_of_array, column_of_objects

__all__ = ["read_column"]


def read_column(column: Any, name: str = "") -> Column:
    """Read one column of anything: array, list, or series of a frame library.

    Examples
    --------
    >>> read_column(["b", None, "b"]).codes
    array([ 0, -1,  0], dtype=int32)
    """
    if isinstance(column, np.ndarray):
        return column_of_array(column, name)
    if isinstance(column, (str, bytes)) or not isinstance(column, Iterable):
        raise TypeError(
            f"Variable {name!r} must be a column (a list, an array, a series), "
            f"not the single {type(column).__name__} {column!r}"
        )
    if hasattr(column, "to_numpy"):
        return column_of_array(np.asarray(column.to_numpy()), name)
    return column_of_objects(list(column), name)
