"""Exact mixtures of products for dense joints (Proposition 1); exact joins of classes."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_SAME = 1e-14  # columns this near are one: far below the 1e-12 to which a joint comes back
_MAX_NUMBERS = 2**28  # numbers in all factors: 2 GiB


def naive_bayes(table: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
    """Return exact weights and factors of any joint, along the variable with the fewest classes.

    Examples
    --------
    >>> import numpy as np
    >>> weights, factors = naive_bayes(np.outer([0.3, 0.7], [0.2, 0.8]))
    >>> weights, factors[0].ravel()
    (array([1.]), array([0.3, 0.7]))
    """
    _check_table(table)
    table = table / table.max()  # so that the sum of huge counts is finite
    table = table / table.sum()
    fibers = [int((table.sum(axis=k) > 0.0).sum()) for k in range(table.ndim)]
    if min(fibers) * sum(table.shape) > _MAX_NUMBERS:
        raise ValueError(
            f"The exact model of this {table.shape} table has {min(fibers):.3g} classes, "
            f"{min(fibers) * sum(table.shape) * 8 / 2**30:.3g} GiB: too large. Fit one of lower "
            "rank: Marginals.from_tables, then factorize."
        )
    # Joining can overturn the order of the bare counts, so every axis is tried where it is cheap.
    axes = range(table.ndim) if table.size * table.ndim <= 2**16 else [int(np.argmin(fibers))]
    models = [join_classes(*_fiber_model(table, axis)) for axis in axes]
    return min(models, key=lambda model: len(model[0]))


def _check_table(table: FloatArray) -> None:
    if table.ndim == 0 or table.size == 0:
        raise ValueError(
            f"A joint has an axis per variable and a cell at least; got {table.shape}."
        )
    wrong = np.argwhere(~(np.isfinite(table) & (table >= 0.0)))
    if len(wrong):
        where = tuple(map(int, wrong[0]))
        raise ValueError(
            f"Cell {where} of the joint is {table[where]:.6g}: cells must be finite and >= 0."
        )
    if table.max() == 0.0:
        raise ValueError("All cells of the joint are zero: there is nothing to normalize.")


def _fiber_model(table: FloatArray, axis: int) -> tuple[FloatArray, list[FloatArray]]:
    """Make every nonempty fiber along an axis a class; the other factors indicate its place."""
    fibers = np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1)
    weights = fibers.sum(axis=0)
    (kept,) = np.nonzero(weights > 0.0)
    others = [n for n in range(table.ndim) if n != axis]
    places = np.unravel_index(kept, [table.shape[n] for n in others]) if others else ()
    factors: dict[int, FloatArray] = {axis: fibers[:, kept] / weights[kept]}
    for n, place in zip(others, places, strict=True):
        factors[n] = (np.arange(table.shape[n])[:, None] == place).astype(np.float64)
    return weights[kept], [factors[n] for n in range(table.ndim)]


def join_classes(
    weights: FloatArray, factors: Sequence[FloatArray]
) -> tuple[FloatArray, list[FloatArray]]:
    """Drop classes without weight and join, exactly, those that differ in one factor at most.

    ``w_1 a_1 x B + w_2 a_2 x B`` is the single class ``(w_1 + w_2) a x B``, with ``a`` the
    weighted mean of ``a_1`` and ``a_2``. Repeated, the variable that saves most first, until no
    two classes can be joined.

    Examples
    --------
    >>> import numpy as np
    >>> A, B = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.3, 0.3], [0.7, 0.7]])
    >>> join_classes(np.array([0.4, 0.6]), [A, B])
    (array([1.]), [array([[0.4],
           [0.6]]), array([[0.3],
           [0.7]])])
    """
    alive = weights > 0.0
    weights, factors = weights[alive], [factor[:, alive] for factor in factors]
    names = [_number_columns(factor) for factor in factors]
    while len(weights) > 1:
        n, groups = _best_grouping(names)
        count = int(groups.max()) + 1
        if count == len(weights):
            break
        first = np.full(count, len(weights))
        np.minimum.at(first, groups, np.arange(len(weights)))
        mass = np.array(np.bincount(groups, weights, count), dtype=np.float64)
        share = weights / mass[groups]
        rows = [np.bincount(groups, row * share, count) for row in factors[n]]
        joined = np.array(rows, dtype=np.float64)
        factors = [factor[:, first] for factor in factors]
        names = [name[first] for name in names]
        factors[n], names[n], weights = joined, _number_columns(joined), mass
    return weights, factors


def _number_columns(factor: FloatArray) -> NDArray[np.intp]:
    """Number the distinct columns; those that agree to rounding share a number."""
    rounded = np.ascontiguousarray(np.rint(factor.T / _SAME))
    rows = rounded.view([("", rounded.dtype)] * rounded.shape[1])[:, 0]
    return np.asarray(np.unique(rows, return_inverse=True)[1]).reshape(-1)


def _best_grouping(names: Sequence[NDArray[np.intp]]) -> tuple[int, NDArray[np.intp]]:
    """Return the variable without which the classes form the fewest groups, and the groups."""
    before, after = [np.zeros_like(names[0])], [np.zeros_like(names[0])]
    for name in names[:-1]:
        before.append(_pair(before[-1], name))
    for name in names[:0:-1]:
        after.append(_pair(after[-1], name))
    groups = [_pair(b, a) for b, a in zip(before, reversed(after), strict=True)]
    best = min(range(len(names)), key=lambda n: int(groups[n].max()))
    return best, groups[best]


def _pair(a: NDArray[np.intp], b: NDArray[np.intp]) -> NDArray[np.intp]:
    groups = np.unique(a * (int(b.max()) + 1) + b, return_inverse=True)[1]
    return np.asarray(groups).reshape(-1)
