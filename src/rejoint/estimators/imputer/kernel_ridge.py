"""KernelRidge: a number from other columns, by a line and by a smooth curve around it."""

from copy import deepcopy
from dataclasses import dataclass, replace
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

#: Posterior draws of the coefficients that are kept; others are random sums of them.
DRAWS = 50

#: Records that speak for equal weights of line and curve.
PRIOR_WEIGHT = 11.0


class RidgeFit(NamedTuple):
    """A ridge regression: its coefficients, and predictions that leave out each row's own value.

    ``vectors`` and ``values`` are eigenvectors and eigenvalues of the precision of coefficients,
    which includes the penalty.
    """

    error: float
    coefficients: FloatArray
    left_out: FloatArray
    vectors: FloatArray
    values: FloatArray
    penalty: float

    def deviate(self, X: FloatArray, noise: FloatArray, prior: FloatArray) -> FloatArray:
        """Return how posterior draws differ from the coefficients, by errors of unit variance.

        Parameters
        ----------
        X : ndarray (rows, columns)
            Columns times the square root of the weight of rows.
        noise, prior : ndarray (rows, draws), (columns, draws)
            Standard normal numbers: errors of the values, and of a prior mean of zero. A solution
            for disturbed values and a disturbed prior has the posterior distribution.
        """
        target = X.T @ noise + np.sqrt(self.penalty) * prior[: X.shape[1]]
        return np.asarray(self.vectors @ ((self.vectors.T @ target) / self.values[:, None]))


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
    deviations : ndarray (1 + columns + landmarks, draws)
        How intercept, slope and heights differ from these in posterior draws.

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
    deviations: FloatArray

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
        bent_columns = columns
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
                    bent_columns = both
        half, width, mean = bends
        size, bent = X.shape[1], curve.coefficients[X.shape[1] :]
        left = np.stack([line.left_out, curve.left_out], axis=1)
        w = _stack(left, y - middle, mass, line.error)
        slope = w[0] * line.coefficients + w[1] * curve.coefficients[:size]
        intercept = middle - w[1] * float(mean @ bent)
        error = float(np.sqrt(share @ (y - middle - left @ w) ** 2))
        # A copy, so that draws do not change what else is fitted.
        drawn = error * _deviate(line, curve, (columns, bent_columns), w, mass, deepcopy(rng))
        level, slopes, bumps = np.split(drawn, [1, 1 + size])
        moved = np.vstack([level - mean @ bumps, slopes, half @ bumps])
        heights = w[1] * (half @ bent)
        ridge = cls(center, scale, intercept, slope, landmarks, heights, width, moved)
        return ridge, middle + left @ w

    def draw(self, rng: np.random.Generator) -> "KernelRidge":
        """Return a posterior draw of the regression."""
        count = self.deviations.shape[1]
        moved = self.deviations @ rng.normal(size=count) / np.sqrt(max(count, 1))
        size = 1 + len(self.slope)
        return replace(
            self,
            intercept=self.intercept + float(moved[0]),
            slope=self.slope + moved[1:size],
            heights=self.heights + moved[size:],
        )

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
    best: tuple[float, FloatArray, FloatArray, float] | None = None
    for penalty in PENALTIES:
        coefficients = target / (values + penalty)
        # 1 / n is the leverage of the mean.
        leverage = weight * (turned**2 @ (1.0 / (values + penalty)) + 1.0 / weight.sum())
        error = (y - turned @ coefficients) / np.maximum(1.0 - leverage, 1e-8)
        mean = float(weight @ error**2 / weight.sum())
        if best is None or mean < best[0]:
            best = mean, coefficients, error, float(penalty)
    assert best is not None
    mean, coefficients, error, chosen = best
    return RidgeFit(mean, vectors @ coefficients, y - error, vectors, values + chosen, chosen)


def _deviate(
    line: RidgeFit,
    curve: RidgeFit,
    columns: tuple[FloatArray, FloatArray],
    w: FloatArray,
    mass: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Return how draws of mean, slope and bends of the average differ, by unit errors.

    The same errors disturb line and curve, so that their average differs as much as each does.
    """
    root = np.sqrt(mass)[:, None]
    noise = rng.normal(size=(len(mass), DRAWS))
    prior = rng.normal(size=(columns[1].shape[1], DRAWS))
    found = w[1] * curve.deviate(root * columns[1], noise, prior)
    found[: columns[0].shape[1]] += w[0] * line.deviate(root * columns[0], noise, prior)
    return np.vstack([root.T @ noise / mass.sum(), found])


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
