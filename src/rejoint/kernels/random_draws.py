"""Random draws: the class of each record from its posterior, and levels by inversion.

Numbers depend on a seed and the position of the record alone, so that compiled kernels and twins,
and any number of threads, draw the same.
"""

from collections.abc import Sequence
from math import exp, floor, log, log1p, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.kernels.backend import (
    CODE_TYPES,
    OUT_OF_RANGE,
    Array,
    Codes,
    check_model,
    check_weight,
    compiled,
)
from rejoint.kernels.class_passes import BLOCK_ENTRIES, AnyCodes, arrays_of, sum_records
from rejoint.kernels.default_codes import DefaultCodes, count_folded
from rejoint.kernels.sparse_codes import SparseCodes

Words = NDArray[np.uint64]
HEAVY_DRAWS = 256  # a record with more draws than this is drawn class by class
STREAM_STEP = np.uint64(0x9E3779B97F4A7C15)


def class_draws(
    codes: AnyCodes,
    weight: Array | None,
    weights: Array,
    factors: Array,
    levels: Sequence[int],
    seed: int,
    threads: int = 1,
) -> tuple[float, Array, Array]:
    """Draw the hidden class of each record from its posterior and count: one Gibbs step.

    As :func:`class_pass`, but records are counted in the class drawn for them, so all counts are
    whole numbers. A record of weight ``k`` stands for ``k`` equal ones, each with its own draw.

    Parameters
    ----------
    codes : (M, N) array of int8, int16 or int32, SparseCodes or DefaultCodes
        Level of each variable in each record, -1 where it is missing.
    weight : (M,) array of float, optional
        How often each record occurs: whole numbers; one each by default.
    weights : (F,) array of float
        Weight of each class, not negative; need not sum to one.
    factors : (L, F) array of float
        ``P(level | class)`` of all variables, stacked; columns need not sum to one.
    levels : sequence of N int
        Number of levels of each variable; their sum is L.
    seed : int
        From 0 to 2**64 - 1. The result depends on it and the records, not on threads.
    threads : int
        Threads of the compiled kernel.

    Returns
    -------
    log_likelihood : float
        Sum of weighted log-probabilities, ``-inf`` if a record is possible in no class.
    class_counts : (F,) array
        Number of records drawn into each class. An impossible record is in none.
    level_counts : (L, F) array
        Number of records drawn into each class at each level.

    Examples
    --------
    >>> codes = np.array([[0], [1], [-1]], dtype=np.int16)
    >>> merged = np.array([1.0, 10.0, 1000.0])
    >>> A = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> _, classes, counts = class_draws(codes, merged, np.array([0.5, 0.5]), A, [2], seed=1)
    >>> counts
    array([[ 1.,  0.],
           [ 0., 10.]])
    >>> float(classes.sum())
    1011.0
    """
    if isinstance(codes, DefaultCodes):
        return count_folded(
            codes,
            weight,
            (weights, factors),
            levels,
            lambda found, w, a, n: class_draws(found, weight, w, a, n, seed, threads),
        )
    arrays = arrays_of(codes, levels)
    weights, factors, shape = check_model(weights, factors, levels)
    weight = check_weight(weight, len(codes))
    if weight is not None and not (weight == np.floor(weight)).all():
        raise ValueError("weight must be whole numbers: each is a number of draws.")
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed must lie between 0 and 2**64 - 1, got {seed}.")
    if compiled is None:
        return numpy_class_draws(codes, weight, weights, factors, levels, seed)
    counts = np.zeros((1 + len(factors), len(weights)))
    total = compiled.class_draws(*arrays, weight, weights, factors, shape, counts, seed, threads)
    if total is None:
        raise ValueError(OUT_OF_RANGE)
    return float(total), counts[0], counts[1:]


def draw_levels(
    tree: Array, classes: NDArray[np.int64], uniform: Array, out: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Draw a level for each uniform number, from the cumulative probabilities of its class.

    The level is the number of cumulative probabilities that the uniform number reaches.

    Parameters
    ----------
    tree : (rows, F) array
        Cumulative probabilities, increasing down each column; the number of rows is a power of
        two, and those from the last level on are infinite.
    classes : (n,) array of int
        Class of each number: the column of the tree.
    uniform : (n,) array
        Numbers in [0, 1).
    out : (n,) array of int8, int16, int32 or int64, optional
        Where the levels are written; it may be a column of a table.

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
        raise ValueError(f"The number of rows of tree must be a power of two, got {rows}.")
    if not len(uniform) == len(classes) == len(out):
        raise ValueError("classes, uniform and out must be equally long.")
    if out.dtype.kind == "i" and rows - 1 > np.iinfo(out.dtype).max:
        raise ValueError(f"out of type {out.dtype} cannot hold levels up to {rows - 1}.")
    if len(classes) and not 0 <= classes.min() <= classes.max() < rank:
        raise ValueError(f"classes must lie between 0 and {rank - 1}.")
    if compiled is not None and out.dtype in (*CODE_TYPES, np.int64):
        compiled.draw_levels(tree, classes, uniform, out)
        return out
    at, flat, step = classes.copy(), tree.ravel(), rows // 2
    while step:
        at += (step * rank) * (uniform >= flat[at + (step - 1) * rank])
        step //= 2
    out[:] = (at - classes) // rank
    return out


def _mix(z: Words) -> Words:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniforms(seed: int, positions: NDArray[Any], numbers: NDArray[Any]) -> Array:
    """Return number ``numbers[i]`` (from 0) of the stream at ``positions[i]``, in [0, 1).

    Examples
    --------
    >>> uniforms(7, np.array([0, 0, 1]), np.array([0, 1, 0])).round(3)
    array([0.736, 0.929, 0.777])
    """
    start = _mix(np.array([seed], dtype=np.uint64))
    states = _mix(start + STREAM_STEP * (positions.astype(np.uint64) + np.uint64(1)))
    words = _mix(states + STREAM_STEP * (numbers.astype(np.uint64) + np.uint64(1)))
    return np.asarray((words >> np.uint64(11)).astype(np.float64) * 2.0**-53)


class UniformStream:
    """The uniform numbers of one position, one after another.

    Examples
    --------
    >>> stream = UniformStream(7, 1)
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


def _few_successes(n: float, p: float, stream: UniformStream) -> float:
    """Go up the distribution."""
    odds = p / (1.0 - p)
    mass, u, k = exp(n * log1p(-p)), stream.next(), 0.0
    while u >= mass and k < n and mass > 2.0**-60:  # what is left of u then is rounding
        u -= mass
        k += 1.0
        mass *= odds * (n - k + 1.0) / k
    return k


def _many_successes(n: float, p: float, stream: UniformStream) -> float:
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


def binomial(n: float, p: float, stream: UniformStream) -> float:
    """Draw the number of successes in ``n`` trials of probability ``p``.

    Examples
    --------
    >>> binomial(1000.0, 0.25, UniformStream(0, 0))
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


def _heavy(posterior: Array, number: float, stream: UniformStream) -> Array:
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
    for i in np.flatnonzero(mass > HEAVY_DRAWS):
        drawn[i] = _heavy(posterior[i], float(mass[i]), UniformStream(seed, first + int(i)))
    times = np.where(mass > HEAVY_DRAWS, 0, mass).astype(np.intp)
    rows = np.repeat(np.arange(len(mass)), times)
    numbers = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    size = max(1, BLOCK_ENTRIES // posterior.shape[1])
    for start in range(0, len(rows), size):
        which = rows[start : start + size]
        u = uniforms(seed, first + which, numbers[start : start + size])
        table = cumulative[which]
        classes = (table <= (u * table[:, -1])[:, None]).sum(axis=1)
        # Beyond the last class that is possible by rounding alone.
        np.add.at(drawn, (which, np.minimum(classes, last[which])), 1.0)
    return drawn


def numpy_class_draws(
    codes: Codes | SparseCodes,
    weight: Array | None,
    weights: Array,
    factors: Array,
    levels: Sequence[int],
    seed: int,
) -> tuple[float, Array, Array]:
    """The twin of :func:`class_draws`."""

    def assign(posterior: Array, mass: Array, first: int) -> Array:
        return draw_classes(posterior, mass, seed, first)

    return sum_records(codes, weight, weights, factors, levels, assign)
