"""Which kernels run, compiled or NumPy, and the checks of arguments that both of them need.

Compiled code would read or write past the end of arrays whose sizes do not fit together: each
public function of this package checks sizes in Python. It leaves ranges of codes to the compiled
kernel, which compares each code with the number of levels as it reads it.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.text import plural

Codes = NDArray[np.signedinteger[Any]]  # int8, int16 or int32
Array = NDArray[np.float64]

CODE_TYPES = (np.int8, np.int16, np.int32)
OUT_OF_RANGE = "Codes must lie between -1 (missing) and the number of levels minus one."


def _load() -> Any:
    if os.environ.get("REJOINT_KERNELS", "").lower() == "numpy":
        return None
    try:
        return import_module("rejoint.kernels._native")
    except ImportError:  # a wheel built without a compiler
        return None


compiled = _load()

#: "native" if the compiled kernels run, "numpy" if their NumPy twins do.
backend: str = "numpy" if compiled is None else "native"


def available_threads() -> int:
    """Return the number of processors that this process may use.

    Examples
    --------
    >>> available_threads() >= 1
    True
    """
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS or Windows
        return os.cpu_count() or 1


def check_shape(codes: Codes, levels: Sequence[int]) -> None:
    """Refuse codes without one column per variable, and variables without levels."""
    if codes.ndim != 2 or codes.shape[1] != len(levels):
        raise ValueError(
            f"codes have shape {codes.shape}, but there are {plural(len(levels), 'variable')}."
        )
    if min(levels, default=1) < 1:
        raise ValueError(f"Each variable needs at least one level, got {min(levels)}.")
    if codes.dtype not in CODE_TYPES:
        raise TypeError(f"codes must be int8, int16 or int32, got {codes.dtype}.")


def check_codes(codes: Codes, levels: Sequence[int]) -> None:
    """Refuse codes that are out of range."""
    check_shape(codes, levels)
    if not codes.size:
        return
    fits = codes.max() < min(levels) or bool(np.all(codes.max(axis=0) < np.asarray(levels)))
    if codes.min() < -1 or not fits:
        raise ValueError(OUT_OF_RANGE)


def check_model(
    weights: Array, factors: Array, levels: Sequence[int]
) -> tuple[Array, Array, NDArray[np.int64]]:
    """Refuse a model whose parts do not fit together; return it as arrays the kernels take."""
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
    """Refuse weights that are not one finite, nonnegative number per record."""
    if weight is None:
        return None
    weight = np.ascontiguousarray(weight, dtype=np.float64)
    if weight.shape != (records,):
        raise ValueError(
            f"weight has shape {weight.shape}, but there are {plural(records, 'record')}."
        )
    _check_not_negative("weight", weight)
    return weight


def _check_not_negative(name: str, array: Array) -> None:
    low, high = array.min(initial=0.0), array.max(initial=0.0)  # NaN if there is one
    if not (low >= 0.0 and high < np.inf):
        raise ValueError(f"{name} must be finite and not negative.")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within the block, let BLAS use one thread.

    Matrices of a fit are small: several BLAS threads on busy cores wait for each other and cost 6
    to 22 times the CPU. Threads are used over chunks of rows and over starts instead.

    Examples
    --------
    >>> with one_blas_thread():
    ...     pass
    """
    import threadpoolctl  # seldom needed, not cheap

    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        yield
