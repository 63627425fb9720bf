"""Dense tables of a mixture of products."""

from collections.abc import Callable, Iterator, Sequence
from math import prod

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.model import Model
from rejoint.text import format_count

#: Gives the table of some variables, increasing, axes in their order.
Tabulate = Callable[[tuple[int, ...]], FloatArray]

MAX_CELLS = 2**27
"""Cells of the largest table that is formed: 134 million, 1 GiB."""

_BLOCK = 2**20  # numbers per block of records or classes: 8 MiB, near the cache


def joint_table(weights: FloatArray, factors: Sequence[FloatArray]) -> FloatArray:
    """Return the dense table ``sum_f w_f prod_n A_n[x_n, f]``, axes in the order of the factors.

    Two Khatri-Rao products joined by one matrix product, in blocks of classes.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[1.0, 0.5], [0.0, 0.5]])
    >>> joint_table(np.array([0.5, 0.5]), [A, A])
    array([[0.625, 0.125],
           [0.125, 0.125]])
    """
    shape = tuple(len(factor) for factor in factors)
    if prod(shape) > MAX_CELLS:
        raise ValueError(
            f"The table of these {len(shape)} variables would have {format_count(prod(shape))} "
            f"cells, more than the limit of {MAX_CELLS:,} (1 GiB): ask for fewer "
            "variables, or for single probabilities by prob or log_prob."
        )
    # The cut that makes both sides small keeps the axes in order.
    cuts = range(len(shape) + 1)
    cut = min(cuts, key=lambda c: prod(shape[:c]) + prod(shape[c:]))
    left, right = prod(shape[:cut]), prod(shape[cut:])
    table = np.zeros((left, right))
    for block in blocks(len(weights), left + right):
        a = khatri_rao([factor[:, block] for factor in factors[:cut]], weights[block])
        b = khatri_rao([factor[:, block] for factor in factors[cut:]], np.ones_like(weights[block]))
        table += a @ b.T
    return table.reshape(shape)


def tables_of_model(model: Model) -> Tabulate:
    """Return the tables of a mixture.

    Examples
    --------
    >>> tables_of_model(Model.of([0.5, 0.5], [[[0.9, 0.2], [0.1, 0.8]]]))((0,))
    array([0.55, 0.45])
    """
    parts = model.parts
    return lambda subset: joint_table(model.weights, [parts[n] for n in subset])


def khatri_rao(factors: Sequence[FloatArray], start: FloatArray) -> FloatArray:
    """Products of the rows of matrices, times a first row: (cells, F), the last varies fastest."""
    rows = start[None, :]
    for factor in factors:
        rows = (rows[:, None, :] * factor[None, :, :]).reshape(-1, len(start))
    return rows


def blocks(count: int, width: int) -> Iterator[slice]:
    """Split `count` items of `width` numbers each into slices of bounded size.

    Examples
    --------
    >>> list(blocks(3, 2**19))
    [slice(0, 2, None), slice(2, 3, None)]
    """
    step = max(1, _BLOCK // max(width, 1))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))
