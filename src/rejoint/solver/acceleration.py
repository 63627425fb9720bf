"""Acceleration of fixed-point steps: L-BFGS and Anderson mixing, from the last moves."""

import numpy as np

from rejoint.arrays import FloatArray

#: Moves and the changes of the gradient along them, oldest first.
Memory = tuple[tuple[FloatArray, FloatArray], ...]


def direction(slope: FloatArray, inverse: FloatArray, memory: Memory) -> FloatArray:
    """Minus the approximate inverse times the slope, by the two-loop recursion.

    Parameters
    ----------
    slope : array
        The gradient.
    inverse : array
        Diagonal of the first guess at the inverse.
    memory : tuple of pairs
        Moves and changes of the gradient.

    Examples
    --------
    >>> direction(np.array([2.0]), np.array([0.5]), ())
    array([-1.])
    >>> direction(np.array([2.0]), np.array([9.9]), ((np.array([1.0]), np.array([4.0])),))
    array([-0.5])
    """
    rest, scratch = slope.copy(), np.empty_like(slope)
    shares = []
    for move, change in reversed(memory):
        product = np.vdot(move, change)
        share = float(np.vdot(move, rest) / product)
        shares.append((share, product))
        rest -= np.multiply(change, share, out=scratch)
    result: FloatArray = inverse * rest
    for (move, change), (share, product) in zip(memory, reversed(shares), strict=True):
        back = share - float(np.vdot(change, result) / product)
        result += np.multiply(move, back, out=scratch)
    return np.negative(result, out=result)


def remember(memory: Memory, move: FloatArray, change: FloatArray, most: int) -> Memory:
    """Add a pair, unless it shows no positive curvature.

    Examples
    --------
    >>> len(remember((), np.array([1.0]), np.array([-1.0]), 5))
    0
    """
    if np.vdot(move, change) <= 1e-10 * np.linalg.norm(move) * np.linalg.norm(change):
        return memory
    return (*memory, (move, change))[-most:]


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
