"""Levels drawn by inversion."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.kernels._checks import Array
from rejoint.kernels._choice import compiled


def draw_levels(
    tree: Array, classes: NDArray[np.int64], uniform: Array, out: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Number of cumulative probabilities, in the column of each class, that a number reaches.

    Parameters
    ----------
    tree : (rows, F) array
        Cumulative probabilities, increasing down each column; a power of two of rows, those from
        the last level on infinite.
    classes : (n,) array of int
        Column to look in.
    uniform : (n,) array
        Numbers in [0, 1).
    out : (n,) array of int16, int32 or int64, optional
        Where the levels go; it may be a column of a table.

    Examples
    --------
    >>> tree = np.array([[0.5, np.inf], [np.inf, np.inf]])
    >>> draw_levels(tree, np.array([0, 1, 0]), np.array([0.6, 0.6, 0.4]))
    array([1, 0, 0])
    """
    tree = np.ascontiguousarray(tree, dtype=np.float64)
    classes = np.ascontiguousarray(classes, dtype=np.int64)
    uniform = np.ascontiguousarray(uniform, dtype=np.float64)
    out = np.empty(len(uniform), dtype=np.int64) if out is None else out
    rows, rank = tree.shape
    if rows & (rows - 1) or not rows:
        raise ValueError(f"tree must have a power of two of rows, got {rows}.")
    if not len(uniform) == len(classes) == len(out):
        raise ValueError("classes, uniform and out must be equally long.")
    if len(classes) and not 0 <= classes.min() <= classes.max() < rank:
        raise ValueError(f"classes must lie between 0 and {rank - 1}.")
    if compiled is not None and out.dtype in (np.int16, np.int32, np.int64):
        compiled.draw_levels(tree, classes, uniform, out)
        return out
    at, flat, step = classes.copy(), tree.ravel(), rows // 2
    while step:
        at += (step * rank) * (uniform >= flat[at + (step - 1) * rank])
        step //= 2
    out[:] = (at - classes) // rank
    return out
