"""One Newton step for the numbers of many items at once, and how sure they are."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "item_blocks", "newton_step"]

Array = NDArray[np.float64]

#: A step is shortened to this length: far from the maximum the quadratic model is no guide.
LONGEST = 3.0


def item_blocks(number: int, size: int) -> Iterator[slice]:
    """Slices of at most ``size``.

    Examples
    --------
    >>> list(item_blocks(5, 3))
    [slice(0, 3, None), slice(3, 5, None)]
    """
    for start in range(0, number, size):
        yield slice(start, min(start + size, number))


def newton_step(
    items: Array,
    counts: Array,
    columns: Array,
    places: Array,
    basis: Array,
    mean: Array,
    precision: Array,
) -> tuple[Array, Array]:
    """Raise each item's expected log-likelihood and log-prior by one Newton step.

    Parameters
    ----------
    items : (N, K)
        I - 1 numbers of shape, then T times as many slopes as there are traits.
    counts, columns : (N, I, F)
        Expected counts of levels at points, and their probabilities now.
    places : (F, traits)
        The points.
    basis : (I, I - 1)
        Polynomials of the levels.
    mean, precision : (K,)
        Normal prior.

    Returns
    -------
    items : (N, K)
        After the step.
    spread : (N, K)
        Posterior variance of each number (Laplace).
    """
    expected = counts.sum(axis=1, keepdims=True) * columns
    traits = places.shape[1]
    kinds = (items.shape[1] - basis.shape[1]) // traits
    rest = basis.T @ (counts - expected)  # (N, I - 1, F)
    slope = np.concatenate(
        [rest.sum(axis=2), (rest[:, :kinds] @ places).reshape(len(items), -1)], axis=1
    )
    slope -= precision * (items - mean)
    bend = curvature(expected, columns, places, basis, kinds)
    index = np.arange(items.shape[1])
    bend[:, index, index] += precision
    inverse = np.asarray(np.linalg.inv(bend), dtype=np.float64)
    step = (inverse @ slope[:, :, None])[:, :, 0]
    length = np.abs(step).max(axis=1, keepdims=True)
    step *= np.minimum(1.0, LONGEST / np.maximum(length, LONGEST))
    return items + step, np.asarray(inverse[:, index, index])


def curvature(expected: Array, columns: Array, places: Array, basis: Array, kinds: int) -> Array:
    """Minus the second derivatives of the log-likelihood of each item, (N, K, K).

    With ``C`` the covariance of the polynomials under a point's column, weighted by its counts:
    shapes meet in ``sum C``, shapes and slopes in ``sum C z``, slopes in ``sum C z z'``.
    """
    number, size, _ = columns.shape
    traits, degrees = places.shape[1], size - 1
    bend = np.empty((number, degrees + kinds * traits, degrees + kinds * traits))
    levels = -expected @ columns.transpose(0, 2, 1)
    levels[:, np.arange(size), np.arange(size)] += expected.sum(axis=2)
    bend[:, :degrees, :degrees] = basis.T @ levels @ basis
    means = basis[:, :kinds].T @ columns  # (N, T, F)
    pairs = (places[:, :, None] * places[:, None, :]).reshape(len(places), -1)
    for t in range(kinds):
        off = expected * (basis[:, t, None] - means[:, t, None])  # (N, I, F)
        shared = basis.T @ off  # (N, I - 1, F): C of polynomial t with all others
        here = slice(degrees + t * traits, degrees + (t + 1) * traits)
        bend[:, :degrees, here] = shared @ places
        bend[:, here, :degrees] = bend[:, :degrees, here].transpose(0, 2, 1)
        for s in range(t, kinds):
            there = slice(degrees + s * traits, degrees + (s + 1) * traits)
            bend[:, here, there] = (shared[:, s] @ pairs).reshape(number, traits, traits)
            bend[:, there, here] = bend[:, here, there]
    return bend
