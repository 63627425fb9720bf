"""Matrices: arrays of numbers read all at once, where levels are whole numbers in a row."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint import kernels
from rejoint.domain import Domain, Variable
from rejoint.domain.columns import Codes
from rejoint.domain.encoding import code_dtype
from rejoint.records.inference import MANY

__all__ = ["codes_of_matrix", "extremes", "read_matrix"]

#: Cells that are looked at together: few enough for the cache.
BLOCK = 1 << 17

#: Rows that are taken for one where they are compared: loops over a few cells cost more than these.
FOLD = 64


def codes_of_matrix(matrix: NDArray[Any], domain: Domain) -> Codes | None:
    """Codes of an array of numbers, NaN being missing; None where it takes a closer look.

    That is where levels are not integers one after another, a number is not among them, or there
    are other columns than variables. A million rows come at several times the rate of columns that
    are looked up one by one.

    Examples
    --------
    >>> domain = Domain.of({"a": [1, 2], "b": 4})
    >>> codes_of_matrix(np.array([[1, 0], [2, 3]]), domain)
    array([[0, 0],
           [1, 3]], dtype=int16)
    >>> codes_of_matrix(np.array([[np.nan, 0.0], [2.0, 3.0]]), domain)
    array([[-1,  0],
           [ 1,  3]], dtype=int16)
    >>> codes_of_matrix(np.array([[1, 4]]), domain) is None
    True
    """
    whole = matrix.dtype.kind in "iu"
    if not (whole or matrix.dtype in (np.float32, np.float64)) or not matrix.size:
        return None
    if matrix.shape[1] != len(domain) or not all(in_a_row(variable) for variable in domain):
        return None
    lows = np.array([variable.levels[0] for variable in domain], dtype=np.int64)
    codes: Codes = np.empty(matrix.shape, dtype=code_dtype(max(domain.shape)))
    rows = max(1, BLOCK // len(domain))
    sizes = np.tile(np.array(domain.shape), min(rows, len(matrix)))
    encode = integer_block if whole else float_block

    def part(first: int) -> bool:
        here = slice(first, first + rows)
        return encode(matrix[here], lows, sizes, codes[here].reshape(-1))

    return codes if all(spread(part, range(0, len(matrix), rows))) else None


def spread(part: Callable[[int], bool], places: range) -> Iterator[bool]:
    """Whether each part went well, by all processors; after a failure few more are begun."""
    threads = min(kernels.available_threads(), len(places))
    if threads == 1:
        yield from map(part, places)
        return
    from concurrent.futures import ThreadPoolExecutor  # brings logging along

    with ThreadPoolExecutor(threads) as pool:
        for start in range(0, len(places), 4 * threads):
            yield from list(pool.map(part, places[start : start + 4 * threads]))


def integer_block(
    block: NDArray[Any], lows: NDArray[np.int64], sizes: NDArray[np.int64], out: Codes
) -> bool:
    """Write the codes of some rows; false if one is out of range."""
    if block.dtype != np.int64:
        block = block.astype(np.int64)
    cells = (block - lows if lows.any() else block).reshape(-1)
    out[:] = cells
    # Negative ones are huge without a sign.
    return bool((cells.view(np.uint64) < sizes[: len(cells)].view(np.uint64)).all())


def float_block(
    block: NDArray[Any], lows: NDArray[np.int64], sizes: NDArray[np.int64], out: Codes
) -> bool:
    """Write the codes of some rows, -1 for NaN; false if one is out of range or no whole number."""
    cells = (block - lows if lows.any() else block).reshape(-1)
    gone = np.isnan(cells)
    known = gone | ((cells >= 0) & (cells < sizes[: len(cells)]))
    if not known.all():
        return False
    out[:] = np.where(gone, -1.0, cells)
    return bool((gone | (out == cells)).all())


def in_a_row(variable: Variable) -> bool:
    """Whether levels are integers one after another, far from where they overflow.

    Examples
    --------
    >>> in_a_row(Variable("a", (3, 4, 5))), in_a_row(Variable("a", (3, 5)))
    (True, False)
    """
    first = variable.levels[0]
    return (
        type(first) is int
        and abs(first) < 2**53
        and all(type(x) is int and x - first == k for k, x in enumerate(variable.levels))
    )


def read_matrix(matrix: NDArray[Any], domain: Domain | None) -> tuple[Domain, Codes] | None:
    """The codes of an array of numbers in a domain, or in that of few whole numbers in a row.

    None where it takes a closer look; see :func:`codes_of_matrix`.

    Examples
    --------
    >>> read_matrix(np.array([[1, 0], [2, 0]]), None)[0].variables[0].levels
    (1, 2)
    >>> read_matrix(np.array([[1, 0], [3, 0]]), None) is None
    True
    """
    seen = domain is None
    if domain is None:
        if matrix.dtype.kind not in "iuf" or not matrix.size:
            return None
        bounds = list(zip(*(found.tolist() for found in extremes(matrix)), strict=True))
        if not all(high - low < MANY and low % 1 == 0 for low, high in bounds):  # false for NaN
            return None
        levels = [tuple(range(int(low), int(high) + 1)) for low, high in bounds]
        domain = Domain(tuple(Variable(f"x{n}", found) for n, found in enumerate(levels)))
    codes = codes_of_matrix(matrix, domain)
    if codes is None:
        return None
    each = tuple((n,) for n in range(len(domain)))
    if seen and not kernels.count(codes, None, domain.shape, each).all():
        return None  # a number in between does not occur: it is no level
    return domain, codes


def extremes(matrix: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Least and largest of each column; NaN only where all are.

    Examples
    --------
    >>> extremes(np.array([[1, 5], [3, 2]]))
    (array([1, 2]), array([3, 5]))
    """
    least, most = (np.fmin, np.fmax) if matrix.dtype.kind == "f" else (np.minimum, np.maximum)
    rows, columns = matrix.shape
    whole = rows - rows % FOLD
    parts = [matrix[whole:]] if whole < rows else []
    if whole:
        folded = np.ascontiguousarray(matrix[:whole]).reshape(-1, FOLD * columns)
        parts += [f.reduce(folded, axis=0).reshape(FOLD, columns) for f in (least, most)]
    every = np.concatenate(parts)
    return least.reduce(every, axis=0), most.reduce(every, axis=0)
