"""Checks: weights and codes as they must be."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain import Domain
from rejoint.domain.columns import Codes
from rejoint.domain.encoding import code_dtype
from rejoint.domain.labels import nearest, show
from rejoint.records.frames import Frame
from rejoint.records.matrices import extremes

__all__ = ["checked_codes", "checked_weight", "take_weight"]


def take_weight(frame: Frame, sample_weight: Any) -> tuple[Frame, NDArray[np.float64] | None]:
    """Return the frame without the column that holds the weights, and the weights checked.

    Examples
    --------
    >>> take_weight(Frame(("a", "times"), [["x", "y"], [1, 2]], 2), "times")
    (Frame(names=('a',), columns=[['x', 'y']], rows=2), array([1., 2.]))
    """
    if sample_weight is None:
        return frame, None
    if isinstance(sample_weight, str):
        names = list(frame.names or ())
        if names.count(sample_weight) != 1:
            raise KeyError(
                f"sample_weight={sample_weight!r} must be the name of one column; the columns "
                f"are {show(names)}.{nearest(sample_weight, names)}"
            )
        n = names.index(sample_weight)
        sample_weight = frame.columns[n]
        rest = [column for i, column in enumerate(frame.columns) if i != n]
        frame = Frame(tuple(names[:n] + names[n + 1 :]), rest, frame.rows)
    weight = checked_weight(sample_weight, frame.rows)
    if frame.rows and not weight.any():
        raise ValueError("sample_weight is zero in every row: nothing would count.")
    return frame, weight


def checked_weight(sample_weight: Any, rows: int) -> NDArray[np.float64]:
    """Return weights as a read-only array of their own, or say what is wrong with them.

    Examples
    --------
    >>> checked_weight([1, 0.5], 2)
    array([1. , 0.5])
    """
    try:
        weight = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError("sample_weight must be numbers, one for each row.") from None
    if weight.shape != (rows,):
        raise ValueError(
            f"sample_weight must be one number for each of the {rows:,} rows, "
            f"not an array of shape {weight.shape}."
        )
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"sample_weight must be finite and nonnegative, but row {row} has {weight[row]}."
        )
    weight.setflags(write=False)
    return weight


def checked_codes(domain: Domain, codes: Any) -> Codes:
    """Return codes read-only in their narrowest dtype, or say which one is out of range.

    Examples
    --------
    >>> checked_codes(Domain.of({"a": 2}), [[0], [-1]])
    array([[ 0],
           [-1]], dtype=int16)
    """
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.shape[1] != len(domain) or codes.dtype.kind not in "iu":
        raise ValueError(
            f"codes must be integers of shape (rows, {len(domain)}), one column for each "
            f"variable, not {codes.dtype} of shape {codes.shape}."
        )
    if codes.size:
        low, high = extremes(codes)
        for n, v in enumerate(domain):
            if low[n] < -1 or high[n] >= len(v):
                row = int(np.argmax((codes[:, n] < -1) | (codes[:, n] >= len(v))))
                raise ValueError(
                    f"Variable {v.name!r}, row {row}: code {codes[row, n]} is not among "
                    f"0..{len(v) - 1} (-1 is missing)."
                )
    dtype = code_dtype(max(domain.shape, default=1))
    own: Codes = codes.astype(dtype, order="C", copy=codes.flags.writeable)
    own.setflags(write=False)
    return own
