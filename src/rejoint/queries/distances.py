"""Distances between mixtures of products without a dense tensor; pairs of their classes."""

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from rejoint.queries.tables import joint_table

FloatArray = NDArray[np.float64]

_DENSE_CELLS = 2**16  # joints up to this size are compared cell by cell
_QR_RANK = 1500  # both ranks together; beyond it a QR step costs minutes, so Gram matrices do


def difference_and_norm(
    weights: FloatArray,
    factors: Sequence[FloatArray],
    other_weights: FloatArray,
    other_factors: Sequence[FloatArray],
) -> tuple[float, float]:
    """Frobenius norms of ``X - Y`` and of ``X``, up to one common scale.

    With ``K`` the Khatri-Rao product of all stacked factors ``[A_n, B_n]``, columns scaled by the
    weights, ``||X - Y|| = ||K s||`` for a vector ``s`` of signs. Only the triangular factor of
    ``K`` is needed, and it is built variable by variable: ``R`` of ``R_{n-1} (.) [A_n, B_n]``. No
    number is squared, so the error is that of rounding, some 1e-15 of ``||X||``, however near X
    and Y are; the usual form by Gram matrices cannot see anything below 1e-8.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[1.0], [0.0]])
    >>> d, x = difference_and_norm(np.ones(1), [A, A], np.ones(1), [A, A[::-1]])
    >>> round(d / x, 12)
    1.414213562373
    """
    columns = np.concatenate([weights, other_weights])
    signs = np.concatenate([np.ones(len(weights)), -np.ones(len(other_weights))])
    stacked = [np.hstack(pair) for pair in zip(factors, other_factors, strict=True)]
    if len(columns) > _QR_RANK:
        return _by_gram(columns, stacked, signs, len(weights))
    root = triangular_root(columns, stacked)
    first = slice(0, len(weights))
    return float(np.linalg.norm(root @ signs)), float(np.linalg.norm(root[:, first].sum(axis=1)))


def triangular_root(columns: FloatArray, factors: Sequence[FloatArray]) -> FloatArray:
    """A small ``R`` with ``R^T R = c^2 K^T K``, for some scale c.

    ``K`` is the Khatri-Rao product of the factors, its columns scaled by `columns`. ``R`` is its
    triangular factor up to signs, or ``K`` itself where that is smaller.

    Examples
    --------
    >>> import numpy as np
    >>> root = triangular_root(np.array([1.0, 2.0]), [np.eye(2), np.eye(2)])
    >>> (root.T @ root).round(12)
    array([[0.25, 0.  ],
           [0.  , 1.  ]])
    """
    root: FloatArray = columns[None, :]
    for factor in factors:
        root = (root[:, None, :] * factor[None, :, :]).reshape(-1, len(columns))
        if len(root) > len(columns):
            root = np.asarray(np.linalg.qr(root, mode="r"))
        root = root / np.abs(root).max()  # thousands of factors would underflow
    return root


def relative_error(
    weights: FloatArray,
    factors: Sequence[FloatArray],
    other_weights: FloatArray,
    other_factors: Sequence[FloatArray],
) -> float:
    """``||X - Y||_F / ||X||_F``: dense where that is small, else by triangular factors.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[1.0], [0.0]])
    >>> relative_error(np.ones(1), [A], np.ones(1), [A])
    0.0
    """
    if prod(len(factor) for factor in factors) <= _DENSE_CELLS:
        x, y = joint_table(weights, factors), joint_table(other_weights, other_factors)
        return float(np.linalg.norm(x - y) / np.linalg.norm(x))
    d, x_norm = difference_and_norm(weights, factors, other_weights, other_factors)
    return d / x_norm


def _by_gram(
    columns: FloatArray, stacked: Sequence[FloatArray], signs: FloatArray, first: int
) -> tuple[float, float]:
    gram = np.outer(columns, columns)
    for block in stacked:
        gram *= block.T @ block
        gram /= gram.max()
    square = float(signs @ gram @ signs)
    return max(square, 0.0) ** 0.5, float(gram[:first, :first].sum()) ** 0.5


def squared_distances(
    factors: Sequence[FloatArray], other_factors: Sequence[FloatArray]
) -> FloatArray:
    """Squared distance of class f of one model to class g of another, (F, G).

    Each factor counts relative to its squared norm, as in the paper's error.

    Examples
    --------
    >>> import numpy as np
    >>> squared_distances([np.eye(2)], [np.eye(2)])
    array([[0., 1.],
           [1., 0.]])
    """
    total = np.zeros((factors[0].shape[1], other_factors[0].shape[1]))
    for a, b in zip(factors, other_factors, strict=True):
        scale = float((a * a).sum())
        # Differences first: the expanded square would lose the digits that separate near classes.
        for row, other in zip(a, b, strict=True):
            total += (row[:, None] - other[None, :]) ** 2 / scale
    return total


def pair_classes(
    factors: Sequence[FloatArray], other_factors: Sequence[FloatArray]
) -> NDArray[np.intp]:
    """Return for each class of one model the class of the other that matches it.

    Examples
    --------
    >>> import numpy as np
    >>> pair_classes([np.eye(3)], [np.eye(3)[:, [2, 0, 1]]])
    array([1, 2, 0])
    """
    from scipy.optimize import linear_sum_assignment  # slow to import, rarely needed

    return np.asarray(linear_sum_assignment(squared_distances(factors, other_factors))[1])


def is_same_up_to_order(a: FloatArray, b: FloatArray, tol: float) -> bool:
    """Return whether the columns can be paired so that no entry differs by more than `tol`.

    Examples
    --------
    >>> import numpy as np
    >>> is_same_up_to_order(np.eye(3), np.eye(3)[:, [2, 0, 1]], 0.0)
    True
    """
    if tol == 0.0:
        return np.array_equal(a[:, np.lexsort(a)], b[:, np.lexsort(b)])
    return bool((np.abs(a - b[:, pair_classes([a], [b])]) <= tol).all())
