"""What kernels refuse: compiled code would read or write past the end of an array."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.signedinteger[Any]]  # int16 or int32
Array = NDArray[np.float64]

OUT_OF_RANGE = "Codes must lie between -1 (missing) and the number of levels less one."


def check_shape(codes: Codes, levels: Sequence[int]) -> None:
    """Refuse codes that have not one column per variable, or variables without levels."""
    if codes.ndim != 2 or codes.shape[1] != len(levels):
        raise ValueError(f"codes have shape {codes.shape}, but there are {len(levels)} variables.")
    if min(levels, default=1) < 1:
        raise ValueError(f"Each variable needs a level at least, got {min(levels)}.")
    if codes.dtype not in (np.int16, np.int32):
        raise TypeError(f"codes must be int16 or int32, got {codes.dtype}.")


def check_codes(codes: Codes, levels: Sequence[int]) -> None:
    """Refuse codes out of range."""
    check_shape(codes, levels)
    if not codes.size:
        return
    fits = codes.max() < min(levels) or bool(np.all(codes.max(axis=0) < np.asarray(levels)))
    if codes.min() < -1 or not fits:
        raise ValueError(OUT_OF_RANGE)


def check_subsets(
    levels: Sequence[int], sizes: NDArray[np.int64], members: NDArray[np.int64]
) -> None:
    """Refuse variables that do not exist."""
    if len(sizes) and not (sizes.min() > 0 and 0 <= members.min() <= members.max() < len(levels)):
        raise ValueError(f"subsets must name variables among 0..{len(levels) - 1}, at least one.")


def check_model(
    weights: Array, factors: Array, levels: Sequence[int]
) -> tuple[Array, Array, NDArray[np.int64]]:
    """Refuse a model whose parts do not fit together, as arrays the kernels take."""
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    factors = np.ascontiguousarray(factors, dtype=np.float64)
    if weights.ndim != 1 or not len(weights):
        raise ValueError(f"weights have shape {weights.shape}; one number per class is needed.")
    shape = (int(sum(levels)), len(weights))
    if factors.shape != shape:
        raise ValueError(f"factors have shape {factors.shape}; levels and weights need {shape}.")
    for name, array in (("weights", weights), ("factors", factors)):
        _check_not_negative(name, array)
    return weights, factors, np.asarray(levels, dtype=np.int64)


def check_weight(weight: Array | None, records: int) -> Array | None:
    """Refuse weights of records that are none."""
    if weight is None:
        return None
    weight = np.ascontiguousarray(weight, dtype=np.float64)
    if weight.shape != (records,):
        raise ValueError(f"weight has shape {weight.shape}, but there are {records} records.")
    _check_not_negative("weight", weight)
    return weight


def _check_not_negative(name: str, array: Array) -> None:
    low, high = array.min(initial=0.0), array.max(initial=0.0)  # NaN if there is one
    if not (low >= 0.0 and high < np.inf):
        raise ValueError(f"{name} must be finite and not negative.")
