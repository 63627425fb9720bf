"""Steps of a model of traits: graded choices, Newton steps, sums at cells, levels of given means.

A choice has one of four grades: 0 (not chosen), 0.3, 0.7 or 1 (chosen, and liked little, fairly,
well). At the logit ``x`` the grades have odds ``1 : o_1 exp(.3 x) : o_2 exp(.7 x) : exp(x)``;
without the offsets o this is the logistic model of yes and no.

Compiled steps are of single precision, for many rows. Where the first array is of double precision,
NumPy does the step (of the levels of given means there are both), as the page of the explorer does.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.kernels.backend import Array, compiled
from rejoint.text import plural

Single = NDArray[Any]
"""Of single precision, or all of double precision."""

GRADES = np.array([0.3, 0.7, 1.0])
"""Grades of what is chosen."""

LARGEST_LOGIT = 60.0
"""Logits are cut at this size, where their exponential is a finite number of single precision."""

MEAN_TOLERANCE, MOST_TILT_STEPS = 1e-3, 30
"""How close levels come to a given mean, and the most Newton steps to get there."""

LEAST_SPREAD, LARGEST_TILT = 2e-3, 1e6
"""Variance of levels that a Newton step divides by, and the largest tilt."""


def grade_moments(logits: Single, bias: Single, offsets: Single) -> tuple[Single, Array]:
    """Turn logits into the means of their grades, in place.

    Parameters
    ----------
    logits : array (rows, columns)
        Logits but for the bias; on return the means.
    bias : array (columns,)
        What to add to the logits of each column.
    offsets : array (2,)
        Odds of the two lower grades at a logit of zero.

    Returns
    -------
    variance : array (rows, columns)
        Variances of the grades, which are the slopes of the means.
    sums : array (3,)
        Shares of the three grades, summed over all cells.

    Examples
    --------
    >>> logits = np.array([[0.0, 1.0]], dtype=np.float32)
    >>> variance, sums = grade_moments(logits, np.zeros(2, np.float32), np.zeros(2, np.float32))
    >>> logits.round(3), variance.round(3)
    (array([[0.5  , 0.731]], dtype=float32), array([[0.25 , 0.197]], dtype=float32))
    """
    _check_single(logits, bias, offsets)
    if bias.shape != (logits.shape[1],) or offsets.shape != (2,):
        raise ValueError("bias must have a number for each column, and offsets two.")
    if not _is_compiled(logits):
        return numpy_grade_moments(logits, bias, offsets)
    variance, sums = np.empty_like(logits), np.zeros(3)
    compiled.grade_moments(logits, bias, variance, offsets, sums)
    return variance, sums


def numpy_grade_moments(logits: Single, bias: Single, offsets: Single) -> tuple[Single, Array]:
    """NumPy version of :func:`grade_moments`.

    Examples
    --------
    >>> logits = np.zeros((1, 1), dtype=np.float32)
    >>> numpy_grade_moments(logits, np.zeros(1, np.float32), np.ones(2, np.float32))[1]
    array([0.25, 0.25, 0.25])
    """
    logits += bias
    np.clip(logits, -LARGEST_LOGIT, LARGEST_LOGIT, out=logits)
    odds = [o * np.exp(g * logits) for o, g in zip((*offsets, 1.0), GRADES, strict=True)]
    total = 1.0 + odds[0] + odds[1] + odds[2]
    mean = sum(g * odd for g, odd in zip(GRADES, odds, strict=True)) / total
    spread = sum((g - mean) ** 2 * odd for g, odd in zip(GRADES, odds, strict=True))
    logits[:] = mean
    sums = np.array([(odd / total).sum(dtype=np.float64) for odd in odds])
    return np.asarray((mean**2 + spread) / total, dtype=logits.dtype), sums


def newton_draws(
    points: Single, gradient: Single, hessian: Single, noise: Single, longest: float
) -> None:
    """Take a Newton step from each point, and draw from the normal around its end; in place.

    Parameters
    ----------
    points : array (rows, d)
        Where the steps start; on return where they end.
    gradient : array (rows, d)
        Slopes of the log-density there.
    hessian : array (rows, d (d + 1) / 2)
        Minus its second derivatives: the upper triangle of each row's matrix, row by row.
    noise : array (rows, d)
        Standard normal numbers; on return the draws.
    longest : float
        Steps with a larger coordinate are shortened to this.

    Examples
    --------
    >>> points, noise = np.zeros((1, 2), np.float32), np.ones((1, 2), np.float32)
    >>> hessian = np.array([[4.0, 0.0, 1.0]], np.float32)
    >>> newton_draws(points, np.ones((1, 2), np.float32), hessian, noise, 10.0)
    >>> points, noise
    (array([[0.25, 1.  ]], dtype=float32), array([[0.75, 2.  ]], dtype=float32))
    """
    _check_single(points, gradient, hessian, noise)
    rows, d = points.shape
    if (
        gradient.shape != points.shape
        or noise.shape != points.shape
        or hessian.shape != (rows, d * (d + 1) // 2)
    ):
        raise ValueError("points, gradient, noise and hessian must fit together.")
    if not _is_compiled(points):
        numpy_newton_draws(points, gradient, hessian, noise, longest)
    else:
        compiled.newton_draws(points, gradient, hessian, noise, longest)


def numpy_newton_draws(
    points: Single, gradient: Single, hessian: Single, noise: Single, longest: float
) -> None:
    """NumPy version of :func:`newton_draws`.

    Examples
    --------
    >>> points, noise = np.zeros((1, 1), np.float32), np.zeros((1, 1), np.float32)
    >>> numpy_newton_draws(points, points + 8, points + 2, noise, 1.5)
    >>> points
    array([[1.5]], dtype=float32)
    """
    d = points.shape[1]
    upper = np.triu_indices(d)
    full = np.empty((len(points), d, d))
    full[:, upper[0], upper[1]] = full[:, upper[1], upper[0]] = hessian
    step = np.linalg.solve(full, gradient[:, :, None].astype(np.float64))[:, :, 0]
    length = np.abs(step).max(axis=1, keepdims=True, initial=0.0)
    points += step * np.minimum(1.0, longest / np.maximum(length, 1e-30))
    if not noise.any():
        noise[:] = points
        return
    lower = np.linalg.cholesky(full)
    drawn = np.linalg.solve(lower.transpose(0, 2, 1), noise[:, :, None].astype(np.float64))
    noise[:] = points + drawn[:, :, 0]


def cell_products(
    a: Single, b: Single, starts: NDArray[np.int32], places: NDArray[np.int32]
) -> Single:
    """Return the inner products of rows of two matrices at the cells of a CSR matrix.

    Parameters
    ----------
    a, b : arrays (rows, d) and (columns, d)
        The two matrices.
    starts, places : arrays of int32
        Where the cells of each row begin, and the column of each cell.

    Returns
    -------
    array (cells,)

    Examples
    --------
    >>> a, b = np.array([[1.0, 2.0]], np.float32), np.array([[1.0, 1.0], [0.0, 3.0]], np.float32)
    >>> cell_products(a, b, np.array([0, 2], np.int32), np.array([1, 0], np.int32))
    array([6., 3.], dtype=float32)
    """
    _check_single(a, b)
    check_cells(starts, places, len(b))
    if len(starts) != len(a) + 1 or a.shape[1] != b.shape[1]:
        raise ValueError("a and b must have as many rows as the CSR matrix rows and columns.")
    if not _is_compiled(a):
        return numpy_cell_products(a, b, starts, places)
    out = np.empty(len(places), dtype=np.float32)
    compiled.cell_products(a, b, starts, places, out)
    return out


def numpy_cell_products(
    a: Single, b: Single, starts: NDArray[np.int32], places: NDArray[np.int32]
) -> Single:
    """NumPy version of :func:`cell_products`.

    Examples
    --------
    >>> one = np.ones((1, 2), np.float32)
    >>> numpy_cell_products(one, one, np.array([0, 1]), np.array([0]))
    array([2.], dtype=float32)
    """
    rows = np.repeat(np.arange(len(a)), np.diff(starts))
    return np.asarray(np.einsum("cd,cd->c", a[rows], b[places]))


def cell_sums(
    targets: Single,
    weights: Single,
    a: Single,
    b: Single,
    starts: NDArray[np.int32],
    places: NDArray[np.int32],
) -> tuple[Single, Single]:
    """Return ``T @ a`` and ``W @ b`` for two CSR matrices with the same cells.

    Parameters
    ----------
    targets, weights : arrays (cells,)
        The numbers of T and W.
    a, b : arrays (columns, d) and (columns, e)
        What they are multiplied by.
    starts, places : arrays of int32
        Where the cells of each row begin, and the column of each cell.

    Examples
    --------
    >>> ones, cells = np.ones((1, 2), np.float32), np.ones(1, np.float32)
    >>> cell_sums(2 * cells, cells, ones, ones, np.array([0, 1], np.int32), np.zeros(1, np.int32))
    (array([[2., 2.]], dtype=float32), array([[1., 1.]], dtype=float32))
    """
    _check_single(targets, weights, a, b)
    check_cells(starts, places, len(a))
    if len(a) != len(b) or targets.shape != places.shape or weights.shape != places.shape:
        raise ValueError("There must be a target and a weight for each cell.")
    if not _is_compiled(targets):
        return numpy_cell_sums(targets, weights, a, b, starts, places)
    rows = len(starts) - 1
    slope, bend = (np.empty((rows, x.shape[1]), dtype=np.float32) for x in (a, b))
    compiled.cell_sums(targets, weights, a, b, starts, places, slope, bend)
    return slope, bend


def numpy_cell_sums(
    targets: Single,
    weights: Single,
    a: Single,
    b: Single,
    starts: NDArray[np.int32],
    places: NDArray[np.int32],
) -> tuple[Single, Single]:
    """NumPy version of :func:`cell_sums`.

    Examples
    --------
    >>> ones, cells = np.ones((1, 2), np.float32), np.ones(1, np.float32)
    >>> numpy_cell_sums(cells, cells, ones, ones, np.array([0, 1]), np.array([0]))[0]
    array([[1., 1.]], dtype=float32)
    """
    from scipy.sparse import csr_array  # 0.1 s to import

    shape = (len(starts) - 1, len(a))
    left, right = (csr_array((x, places, starts), shape=shape) for x in (targets, weights))
    return np.asarray(left @ a), np.asarray(right @ b)


def tilted_levels(means: Single, variance: Single, use: Single, values: Single) -> Single:
    """Return shares of levels that have given means.

    A row's shares are proportional to ``use exp(t value - value^2 / (2 variance))`` with the ``t``
    at which they have the mean: a normal density at the values of the levels, times their use,
    tilted. Newton's method finds the tilt to a mean within ``MEAN_TOLERANCE``.

    Parameters
    ----------
    means : array (rows, columns)
        The means, within the levels.
    variance : array (rows,)
        Variances of the normal densities.
    use : array (rows, I)
        Factor of each level.
    values : array (I,)
        Values of the levels, rising.

    Returns
    -------
    array (rows, columns, I)

    Examples
    --------
    >>> one, values = np.ones(1, np.float32), np.array([-1.0, 1.0], np.float32)
    >>> use = np.array([[1.0, 3.0]], np.float32)
    >>> tilted_levels(np.array([[0.0, 0.5]], np.float32), one, use, values).round(2)
    array([[[0.5 , 0.5 ],
            [0.25, 0.75]]], dtype=float32)
    """
    _check_single(means, variance, use, values)
    if use.shape != (len(means), len(values)) or variance.shape != (len(means),) or not len(values):
        raise ValueError("There must be a variance, and a factor for each level, for each row.")
    base = np.log(use)
    if compiled is None:
        return numpy_tilted_levels(means, variance, base, values)
    out = np.empty((means.size, len(values)), dtype=means.dtype)
    parts = (part.astype(means.dtype, copy=False) for part in (means, variance, base, values))
    compiled.tilted_levels(*parts, out, MEAN_TOLERANCE, MOST_TILT_STEPS)
    return out.reshape(*means.shape, len(values))


def numpy_tilted_levels(means: Single, variance: Single, base: Single, values: Single) -> Single:
    """NumPy version of :func:`tilted_levels`, of the logarithm of the use.

    Examples
    --------
    >>> one, values = np.ones(1, np.float32), np.array([-1.0, 1.0], np.float32)
    >>> numpy_tilted_levels(0 * one[None], one, np.zeros((1, 2), np.float32), values)
    array([[[0.5, 0.5]]], dtype=float32)
    """
    precision = 1.0 / variance[:, None]
    tilt = means * precision
    low, high = np.full_like(tilt, -LARGEST_TILT), np.full_like(tilt, LARGEST_TILT)
    logs = (base - 0.5 * precision * values**2)[:, None]
    for _ in range(MOST_TILT_STEPS + 1):
        shares = logs + tilt[..., None] * values
        shares -= shares.max(axis=-1, keepdims=True)
        np.exp(shares, out=shares)
        shares /= shares.sum(axis=-1, keepdims=True)
        off = means - shares @ values
        if np.abs(off).max(initial=0.0) < MEAN_TOLERANCE:
            break
        spread = np.maximum(shares @ values**2 - (shares @ values) ** 2, LEAST_SPREAD)
        next_one = tilt + np.clip(off / spread, -precision, precision)
        low, high = np.where(off > 0.0, tilt, low), np.where(off > 0.0, high, tilt)
        inside = (next_one > low) & (next_one < high)
        next_one = np.where(inside, next_one, 0.5 * (low + high))
        tilt = np.where(np.abs(off) < MEAN_TOLERANCE, tilt, next_one)
    return np.asarray(shares, dtype=means.dtype)


def check_cells(starts: NDArray[np.int32], places: NDArray[np.int32], columns: int) -> None:
    """Refuse cells of a CSR matrix that are outside its columns."""
    if not len(starts) or starts[0] != 0 or starts[-1] != len(places):
        raise ValueError("starts must begin with zero and end with the number of cells.")
    inside = not len(places) or (places.min() >= 0 and places.max() < columns)
    if (np.diff(starts) < 0).any() or not inside:
        raise ValueError(
            f"Cells must be in rows that follow each other and in {plural(columns, 'column')}."
        )


def _is_compiled(first: NDArray[Any]) -> bool:
    """Whether a step is done by compiled code: that is of single precision."""
    return compiled is not None and first.dtype == np.float32


def _check_single(first: NDArray[Any], *others: NDArray[Any]) -> None:
    for array in () if first.dtype == np.float64 else (first, *others):
        if array.dtype != np.float32 or not array.flags.c_contiguous:
            raise TypeError("Traits are contiguous arrays of single precision.")
