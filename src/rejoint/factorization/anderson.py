"""Anderson mixing: what ``admm`` and ``kl`` share of their acceleration."""

import numpy as np

from rejoint.model import FloatArray


def mixing_shares(moves: FloatArray) -> FloatArray | None:
    """How far to go back along each change of the last points, (K-1,); None if none moved.

    ``moves`` (K, P) are the last steps; the mixture of them with these shares is the shortest.

    Examples
    --------
    >>> mixing_shares(np.array([[2.0], [1.0]])).round(6)
    array([-1.])
    """
    change = np.diff(moves, axis=0)
    normal = change @ change.T
    normal += 1e-12 * np.trace(normal) * np.eye(len(normal))
    if not normal.any():
        return None
    return np.linalg.solve(normal, change @ moves[-1])
