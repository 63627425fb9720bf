"""Classes of records drawn from their posteriors, in plain NumPy: twins of draws.hpp."""

from collections.abc import Sequence
from math import exp, floor, log, log1p, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.kernels._checks import Array
from rejoint.kernels._numpy_cells import BLOCK
from rejoint.kernels._numpy_classes import sum_records
from rejoint.kernels.cells import Cells

Words = NDArray[np.uint64]
HEAVY = 256  # more draws of one record than this many go class by class
STEP = np.uint64(0x9E3779B97F4A7C15)


def _mix(z: Words) -> Words:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniforms(seed: int, positions: NDArray[Any], numbers: NDArray[Any]) -> Array:
    """Number ``numbers[i]`` (from 0) of the stream at ``positions[i]``, in [0, 1).

    Examples
    --------
    >>> uniforms(7, np.array([0, 0, 1]), np.array([0, 1, 0])).round(3)
    array([0.736, 0.929, 0.777])
    """
    start = _mix(np.array([seed], dtype=np.uint64))
    states = _mix(start + STEP * (positions.astype(np.uint64) + np.uint64(1)))
    words = _mix(states + STEP * (numbers.astype(np.uint64) + np.uint64(1)))
    return np.asarray((words >> np.uint64(11)).astype(np.float64) * 2.0**-53)


class Stream:
    """The uniform numbers of one position, one after another.

    Examples
    --------
    >>> stream = Stream(7, 1)
    >>> stream.next() == uniforms(7, np.array([1]), np.array([0]))[0]
    np.True_
    """

    def __init__(self, seed: int, position: int):
        self.seed, self.position = seed, np.array([position])
        self.numbers: list[float] = []
        self.used = 0

    def next(self) -> float:
        """Return the next number."""
        if self.used == len(self.numbers):
            ahead = np.arange(self.used, self.used + 64)
            self.numbers += uniforms(self.seed, self.position, ahead).tolist()
        self.used += 1
        return self.numbers[self.used - 1]


def _stirling_tail(k: float) -> float:
    """``log k!`` less ``(k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2``."""
    tail = 0.0
    while k < 15.0:
        tail += (k + 1.5) * log1p(1.0 / (k + 1.0)) - 1.0
        k += 1.0
    x = 1.0 / (k + 1.0)
    y = x * x
    return tail + x * (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y / 1680)))


def _few_successes(n: float, p: float, stream: Stream) -> float:
    """Go up the distribution."""
    odds = p / (1.0 - p)
    mass, u, k = exp(n * log1p(-p)), stream.next(), 0.0
    while u >= mass and k < n and mass > 2.0**-60:  # what is left of u then is rounding
        u -= mass
        k += 1.0
        mass *= odds * (n - k + 1.0) / k
    return k


def _many_successes(n: float, p: float, stream: Stream) -> float:
    """Transformed rejection (Hormann 1993, algorithm BTRS)."""
    spread, odds = sqrt(n * p * (1.0 - p)), p / (1.0 - p)
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    centre, mode = n * p + 0.5, float(floor((n + 1.0) * p))
    alpha, sure = (2.83 + 5.1 / b) * spread, 0.92 - 4.2 / b
    at_mode = _stirling_tail(mode) + _stirling_tail(n - mode)
    while True:
        u, v = stream.next() - 0.5, stream.next()
        us = 0.5 - abs(u)
        if us == 0.0:
            continue
        k = float(floor((2.0 * a / us + b) * u + centre))
        if us >= 0.07 and v <= sure:
            return k
        if not 0.0 <= k <= n:
            continue
        bound = (
            (mode + 0.5) * log((mode + 1.0) / (odds * (n - mode + 1.0)))
            + (n + 1.0) * log((n - mode + 1.0) / (n - k + 1.0))
            + (k + 0.5) * log(odds * (n - k + 1.0) / (k + 1.0))
            + (at_mode - _stirling_tail(k) - _stirling_tail(n - k))
        )
        if v == 0.0 or log(v * alpha / (a / (us * us) + b)) <= bound:
            return k


def binomial(n: float, p: float, stream: Stream) -> float:
    """Draw the number of successes in ``n`` trials of probability ``p``.

    Examples
    --------
    >>> binomial(1000.0, 0.25, Stream(0, 0))
    256.0
    """
    if n <= 0.0 or p <= 0.0:
        return 0.0
    if p >= 1.0:
        return n
    rarer = min(p, 1.0 - p)
    draw = _few_successes if n * rarer < 10.0 else _many_successes
    k = draw(n, rarer, stream)
    return n - k if p > 0.5 else k


def _heavy(posterior: Array, number: float, stream: Stream) -> Array:
    """Numbers of each class among many draws of one record, class by class."""
    drawn = np.zeros(len(posterior))
    left = np.cumsum(posterior[::-1])[::-1]
    for f in np.flatnonzero(posterior > 0.0):
        drawn[f] = binomial(number, float(posterior[f] / left[f]), stream)
        number -= drawn[f]
    return drawn


def draw_classes(posterior: Array, mass: Array, seed: int, first: int) -> Array:
    """Draw ``mass[i]`` classes from each row of posteriors; return how many are of each.

    Examples
    --------
    >>> draw_classes(np.array([[0.0, 1.0], [0.5, 0.5]]), np.array([2.0, 0.0]), 1, 0)
    array([[0., 2.],
           [0., 0.]])
    """
    cumulative = np.cumsum(posterior, axis=1)
    mass = np.where(cumulative[:, -1] > 0.0, mass, 0.0)
    last = posterior.shape[1] - 1 - (posterior[:, ::-1] > 0.0).argmax(axis=1)
    drawn = np.zeros(posterior.shape)
    for i in np.flatnonzero(mass > HEAVY):
        drawn[i] = _heavy(posterior[i], float(mass[i]), Stream(seed, first + int(i)))
    times = np.where(mass > HEAVY, 0, mass).astype(np.intp)
    rows = np.repeat(np.arange(len(mass)), times)
    numbers = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    size = max(1, BLOCK // posterior.shape[1])
    for start in range(0, len(rows), size):
        which = rows[start : start + size]
        u = uniforms(seed, first + which, numbers[start : start + size])
        table = cumulative[which]
        classes = (table <= (u * table[:, -1])[:, None]).sum(axis=1)
        # Beyond the last class that is possible by rounding alone.
        np.add.at(drawn, (which, np.minimum(classes, last[which])), 1.0)
    return drawn


def class_draws(
    codes: NDArray[Any] | Cells,
    weight: Array | None,
    weights: Array,
    factors: Array,
    levels: Sequence[int],
    seed: int,
) -> tuple[float, Array, Array]:
    """Count records by classes drawn for them; see :func:`rejoint.kernels.class_draws`.

    Examples
    --------
    >>> codes = np.array([[0], [1]], dtype=np.int16)
    >>> class_draws(codes, None, np.array([0.5, 0.5]), np.eye(2), [2], 0)[2]
    array([[1., 0.],
           [0., 1.]])
    """

    def assign(posterior: Array, mass: Array, first: int) -> Array:
        return draw_classes(posterior, mass, seed, first)

    return sum_records(codes, weight, weights, factors, levels, assign)
