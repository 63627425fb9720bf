"""Euclidean projection onto the probability simplex."""

import numpy as np
from numpy.typing import NDArray


def project_columns(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest matrix whose columns are nonnegative and sum to one.

    The sort-based rule: with ``u`` sorted downwards, the threshold is the largest
    ``(sum_{i <= k} u_i - 1) / k`` that still lies below ``u_k``.

    Examples
    --------
    >>> import numpy as np
    >>> project_columns(np.array([[0.9, 2.0], [0.3, -1.0]])).round(2)
    array([[0.8, 1. ],
           [0.2, 0. ]])
    """
    ordered = -np.sort(-matrix, axis=0)
    excess = np.cumsum(ordered, axis=0)
    excess -= 1.0
    count = np.arange(1, matrix.shape[0] + 1, dtype=np.float64)[:, None]
    last = np.count_nonzero(ordered * count > excess, axis=0) - 1
    threshold = excess[last, np.arange(matrix.shape[1])] / (last + 1)
    projected: NDArray[np.float64] = np.maximum(matrix - threshold, 0.0)
    return projected
