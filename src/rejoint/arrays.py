"""Types of arrays that the package passes around, and sums and products of tables."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import reduce
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
Single = NDArray[np.float32]

#: A number for each record that is the same within a cluster.
Keys = NDArray[np.int64]

#: Positions of levels, -1 where a value is missing.
Codes = NDArray[np.signedinteger[Any]]

T = TypeVar("T")


def parts_of(subset: Sequence[T], most: int | None = None) -> Iterator[tuple[T, ...]]:
    """Yield the parts of a subset, small ones first: those of one to ``most`` members.

    Examples
    --------
    >>> list(parts_of((3, 5)))
    [(3,), (5,), (3, 5)]
    """
    for size in range(1, len(subset) + 1 if most is None else min(len(subset), most) + 1):
        yield from combinations(subset, size)


def sum_to(table: FloatArray, variables: Sequence[Any], kept: Collection[Any]) -> FloatArray:
    """Sum a table with an axis for each of some variables to fewer of them, in the same order.

    Examples
    --------
    >>> sum_to(np.array([[1.0, 2.0], [3.0, 4.0]]), ("a", "b"), ["b"])
    array([4., 6.])
    """
    gone = tuple(axis for axis, variable in enumerate(variables) if variable not in kept)
    return np.asarray(table.sum(axis=gone))


def outer_product(vectors: Iterable[FloatArray]) -> FloatArray:
    """Return the products of one number of each vector, with an axis for each.

    Examples
    --------
    >>> outer_product([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
    array([[3., 4.],
           [6., 8.]])
    """
    return np.asarray(reduce(np.multiply.outer, vectors, np.ones(())))
