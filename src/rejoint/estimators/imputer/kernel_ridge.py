"""KernelRidge: a number from other columns, by a line and by a smooth curve around it."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from rejoint.arrays import FloatArray

#: Penalties that leave-one-out errors choose from.
PENALTIES = np.geomspace(0.1, 3000.0, 12)

#: Rows that a curve bends around.
LANDMARKS = 150

#: Widths of a bend, by the square root of the number of columns, and its strength beside the line.
WIDTHS, STRENGTHS = (0.7, 1.5), (1.0, 3.0, 10.0)

#: Standard deviations beyond which a curve goes on as a line.
FARTHEST = 4.0

#: Records that speak for equal weights of line and curve.
PRIOR_WEIGHT = 11.0


class RidgeFit(NamedTuple):
    """A ridge regression: its coefficients, and predictions that leave out each row's own value."""

    error: float
    coefficients: FloatArray
    left_out: FloatArray


@dataclass(frozen=True, eq=False)
class KernelRidge:
    """A line in standardized columns, and a sum of bends around some rows.

    Parameters
    ----------
    center, scale : ndarray (columns,)
        By which columns are standardized.
    intercept : float
    slope : ndarray (columns,)
    landmarks : ndarray (landmarks, columns)
        Standardized rows that bends are around.
    heights : ndarray (landmarks,)
        How high each bend is.
    width : float
        How wide all are: the standard deviation of a normal curve.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(400, 2))
    >>> ridge, left_out = KernelRidge.fit(X, X[:, 0] ** 2 + X[:, 1], np.ones(400), rng)
    >>> ridge.predict(np.array([[1.0, 0.0], [0.0, 1.0]])).round(1) + 0.0
    array([1., 1.])
    """

    center: FloatArray
    scale: FloatArray
    intercept: float
    slope: FloatArray
    landmarks: FloatArray
    heights: FloatArray
    width: float

    @classmethod
    def fit(
        cls, X: FloatArray, y: FloatArray, weight: FloatArray, rng: np.random.Generator
    ) -> tuple["KernelRidge", FloatArray]:
        """Fit, and return what would be predicted for each row without its own value.

        Line and curve are averaged; their weights are those that predict left-out values best.
        """
        share = weight / weight.sum()
        center = share @ X
        scale = np.sqrt(share @ (X - center) ** 2)
        scale[scale < 1e-9] = 1.0
        columns, middle = (X - center) / scale, float(share @ y)
        near = np.clip(columns, -FARTHEST, FARTHEST)
        some = rng.choice(len(X), size=min(LANDMARKS, len(X)), replace=False)
        landmarks = near[np.sort(some)]
        mass = weight * (len(weight) / weight.sum())
        line = fit_ridge(columns, y - middle, mass)
        curve, bends = line, (np.zeros((len(landmarks), 0)), 1.0, np.zeros(0))
        for factor in WIDTHS:
            width = factor * np.sqrt(X.shape[1])
            half = _whiten(normal_curves(landmarks, landmarks, width))
            features = normal_curves(near, landmarks, width) @ half
            mean = share @ features
            for strength in STRENGTHS:
                scaled = strength * np.sqrt(X.shape[1])
                both = np.hstack([columns, scaled * (features - mean)])
                found = fit_ridge(both, y - middle, mass)
                if found.error < curve.error:
                    curve, bends = found, (scaled * half, width, scaled * mean)
        half, width, mean = bends
        size, bent = X.shape[1], curve.coefficients[X.shape[1] :]
        left = np.stack([line.left_out, curve.left_out], axis=1)
        w = _stack(left, y - middle, mass, line.error)
        slope = w[0] * line.coefficients + w[1] * curve.coefficients[:size]
        intercept = middle - w[1] * float(mean @ bent)
        ridge = cls(center, scale, intercept, slope, landmarks, w[1] * (half @ bent), width)
        return ridge, middle + left @ w

    def predict(self, X: FloatArray) -> FloatArray:
        """Return the expected number of each row."""
        columns = (X - self.center) / self.scale
        near = np.clip(columns, -FARTHEST, FARTHEST)
        bends = normal_curves(near, self.landmarks, self.width) @ self.heights
        return np.asarray(self.intercept + columns @ self.slope + bends)


def fit_ridge(X: FloatArray, y: FloatArray, weight: FloatArray) -> RidgeFit:
    """Fit a ridge regression of centered columns whose penalty leave-one-out errors choose.

    Examples
    --------
    >>> X = np.array([[-1.0], [0.0], [1.0]])
    >>> fit_ridge(X, 2.0 * X[:, 0], np.ones(3)).coefficients.round(1)
    array([1.9])
    """
    root = np.sqrt(weight)[:, None]
    values, vectors = np.linalg.eigh((root * X).T @ (root * X))
    values = np.maximum(values, 0.0)
    turned = X @ vectors
    target = turned.T @ (weight * y)
    best: tuple[float, FloatArray, FloatArray] | None = None
    for penalty in PENALTIES:
        coefficients = target / (values + penalty)
        # 1 / n is the leverage of the mean.
        leverage = weight * (turned**2 @ (1.0 / (values + penalty)) + 1.0 / weight.sum())
        error = (y - turned @ coefficients) / np.maximum(1.0 - leverage, 1e-8)
        mean = float(weight @ error**2 / weight.sum())
        if best is None or mean < best[0]:
            best = mean, coefficients, error
    assert best is not None
    return RidgeFit(best[0], vectors @ best[1], y - best[2])


def normal_curves(X: FloatArray, landmarks: FloatArray, width: float) -> FloatArray:
    """Return a normal curve of the distance between each row and each landmark.

    Examples
    --------
    >>> normal_curves(np.zeros((1, 1)), np.array([[0.0], [2.0]]), 2.0).round(3)
    array([[1.   , 0.607]])
    """
    squares = (X**2).sum(axis=1)[:, None] + (landmarks**2).sum(axis=1) - 2.0 * X @ landmarks.T
    return np.asarray(np.exp(-np.maximum(squares, 0.0) / (2.0 * width**2)))


def _whiten(square: FloatArray) -> FloatArray:
    """Return half of the pseudo-inverse of a matrix of kernels, by which bends are independent."""
    values, vectors = np.linalg.eigh(square)
    kept = values > 1e-6 * values[-1]
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def _stack(left: FloatArray, y: FloatArray, weight: FloatArray, error: float) -> FloatArray:
    """Return nonnegative weights by which left-out predictions are best, near equal ones."""
    count = left.shape[1]
    pull = np.sqrt(PRIOR_WEIGHT * max(error, 1e-12))
    root = np.sqrt(weight)
    system = np.vstack([root[:, None] * left, pull * np.eye(count)])
    found, _ = nnls(system, np.concatenate([root * y, np.full(count, pull / count)]))
    return np.asarray(found)
