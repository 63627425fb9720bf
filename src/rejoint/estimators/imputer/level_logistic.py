"""LevelLogistic: the probability of each level of a category from other columns."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from rejoint.arrays import FloatArray, IntArray

#: Penalties that leave-one-out losses choose from, strongest first: each fit starts at the last.
PENALTIES = (125.0, 25.0, 5.0, 1.0)

#: Newton steps of one fit, and the largest move of a coefficient in one.
STEPS, LARGEST_MOVE = 8, 3.0

#: Records that a level needs, and the most levels that are fitted.
FEWEST_RECORDS, MOST_LEVELS = 5, 20

#: Standard deviations beyond which a column counts no more.
FARTHEST = 5.0


@dataclass(frozen=True, eq=False)
class LevelLogistic:
    """A logistic regression for each level against all others.

    Parameters
    ----------
    center, scale : ndarray (columns,)
        By which columns are standardized.
    levels : ndarray of int
        Levels that are fitted; others keep the probability that they had before.
    coefficients : ndarray (1 + columns, levels)
        Intercepts above slopes.

    Examples
    --------
    >>> X = np.repeat([[0.0], [1.0]], 50, axis=0)
    >>> codes = np.repeat([0, 1], 50)
    >>> logistic = LevelLogistic.fit(X, codes, 2, np.ones(100))
    >>> logistic.predict(np.array([[1.0]]), np.full((1, 2), 0.5)).round(1)
    array([[0., 1.]])
    """

    center: FloatArray
    scale: FloatArray
    levels: IntArray
    coefficients: FloatArray

    @classmethod
    def fit(cls, X: FloatArray, codes: IntArray, size: int, weight: FloatArray) -> "LevelLogistic":
        """Fit to rows with levels ``codes`` of a variable of ``size`` levels."""
        share = weight / weight.sum()
        center = share @ X
        scale = np.sqrt(share @ (X - center) ** 2)
        scale[scale < 1e-9] = 1.0
        columns = _standardize(X, center, scale)
        mass = np.bincount(codes, weight, size)
        enough = np.flatnonzero((mass >= FEWEST_RECORDS) & (mass <= weight.sum() - 1e-9))
        levels = np.sort(enough[np.argsort(-mass[enough], kind="stable")][:MOST_LEVELS])
        found = [_fit_one(columns, (codes == level).astype(float), weight) for level in levels]
        empty = np.zeros((columns.shape[1], 0))
        return cls(center, scale, levels, np.stack(found, axis=1) if found else empty)

    def predict(self, X: FloatArray, before: FloatArray) -> FloatArray:
        """Return the probability of each level, (rows, levels)."""
        table = np.array(before)
        scores = _standardize(X, self.center, self.scale) @ self.coefficients
        table[:, self.levels] = expit(scores)
        return np.asarray(table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300))


def _standardize(X: FloatArray, center: FloatArray, scale: FloatArray) -> FloatArray:
    columns = np.clip((X - center) / scale, -FARTHEST, FARTHEST)
    return np.hstack([np.ones((len(X), 1)), columns])


def _fit_one(X: FloatArray, y: FloatArray, weight: FloatArray) -> FloatArray:
    """Fit one logistic regression; its penalty has the least loss of left-out rows, nearly."""
    share = float(np.clip(weight @ y / weight.sum(), 1e-6, 1 - 1e-6))
    coefficients = np.zeros(X.shape[1])
    coefficients[0] = np.log(share / (1 - share))
    best, least = coefficients, np.inf
    for strength in PENALTIES:
        penalty = np.full(X.shape[1], strength)
        penalty[0] = 1e-6
        for _ in range(STEPS):
            chance, bend = _curvature(X, coefficients, weight)
            slope = X.T @ (weight * (y - chance)) - penalty * coefficients
            move = np.linalg.solve((X * bend[:, None]).T @ X + np.diag(penalty), slope)
            move *= min(1.0, LARGEST_MOVE / max(float(np.abs(move).max()), 1e-12))
            coefficients = coefficients + move
            if np.abs(move).max() < 1e-3:
                break
        chance, bend = _curvature(X, coefficients, weight)
        inverse = np.linalg.inv((X * bend[:, None]).T @ X + np.diag(penalty))
        leverage = ((X @ inverse) * X).sum(axis=1)
        # What one Newton step without the row makes of its score.
        moved = leverage * weight * (y - chance) / np.maximum(1.0 - bend * leverage, 1e-3)
        left_out = np.clip(expit(X @ coefficients - moved), 1e-4, 1 - 1e-4)
        loss = -float(weight @ np.log(np.where(y > 0, left_out, 1.0 - left_out)))
        if loss < least:
            best, least = coefficients, loss
    return best


def _curvature(
    X: FloatArray, coefficients: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return probabilities and the second derivative of each row's loss."""
    chance = expit(X @ coefficients)
    return chance, weight * np.maximum(chance * (1.0 - chance), 1e-5)
