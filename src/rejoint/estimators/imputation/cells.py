"""Cells of a table in its own columns: their codes, and which of them are missing."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from rejoint.domain import Domain
from rejoint.domain.columns import Coded, Codes, Column, Numbers
from rejoint.domain.encoding import code_dtype, encode_column, unknown_text
from rejoint.domain.series import read_column
from rejoint.estimators.reading import by_name, checked_array, is_frame
from rejoint.records.frames import Frame, take_apart
from rejoint.records.matrices import codes_of_matrix
from rejoint.remarks import remark

__all__ = ["Cells", "numbers_of", "read_cells"]

_MOST = 5  # columns that a remark names one by one


class Cells(NamedTuple):
    """A table as it came, and as codes.

    Attributes
    ----------
    frame : Frame
        The columns as they came.
    codes : ndarray (rows, variables)
        Level of each cell; -1 where missing or unknown to the model.
    gone : ndarray of bool (rows, variables)
        Cells that are missing in the table itself, and in a column that it has.
    place : list of int
        Variable of each column of the frame, -1 for a column that the model does not know.
    """

    frame: Frame
    codes: Codes
    gone: NDArray[np.bool_]
    place: list[int]


def read_cells(estimator: Any, X: Any) -> Cells:
    """Read X in the domain of a fitted estimator, keeping its columns."""
    domain: Domain = estimator.pmf_.domain
    if not by_name(X):
        if not is_frame(X):
            checked_array(X)
        validate_data(estimator, X, reset=False, skip_check_array=True)
    frame = take_apart(X)
    named = frame.names is not None and hasattr(estimator, "feature_names_in_")
    names = frame.names if named and frame.names is not None else domain.names
    place = [domain.index(name) if name in domain else -1 for name in names]
    quick = codes_of_matrix(X, domain) if type(X) is np.ndarray and X.ndim == 2 else None
    if quick is not None:  # NaN is all that is missing
        return Cells(frame, quick, quick < 0, place)
    codes = np.full((frame.rows, len(domain)), -1, dtype=code_dtype(max(domain.shape)))
    gone = np.zeros(codes.shape, dtype=bool)
    strange = []
    for n, raw in zip(place, frame.columns, strict=True):
        if n < 0:
            continue
        column = read_column(raw, domain[n].name)
        codes[:, n], unknown = encode_column(domain[n].levels, column)
        gone[:, n] = codes[:, n] < 0
        if unknown is not None:
            gone[:, n] = _missing(column)
            strange.append(unknown_text(domain[n].name, domain[n].levels, unknown))
    if strange:
        more = f" And so in {len(strange) - _MOST} more." if len(strange) > _MOST else ""
        remark(" ".join(strange[:_MOST]).replace("missing now", "left as they are") + more)
    return Cells(frame, codes, gone, place)


def numbers_of(raw: Any, name: str) -> NDArray[np.float64]:
    """Return a column of numbers as floats, NaN where missing."""
    column = read_column(raw, name)
    if isinstance(column, Numbers):
        return column.floats()
    labels = np.array([*(float(str(x)) for x in column.labels), np.nan])  # numbers written as text
    return np.asarray(labels[column.codes])


def _missing(column: Column) -> NDArray[np.bool_]:
    if isinstance(column, Coded):
        return np.asarray(column.codes < 0)
    empty = np.zeros(len(column), dtype=bool) if column.missing is None else column.missing
    return empty | np.isnan(column.values) if column.values.dtype.kind == "f" else empty
