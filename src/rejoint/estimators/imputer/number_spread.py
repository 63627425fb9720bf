"""NumberSpread: a number's distribution around its prediction, calibrated on left-out cells."""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from rejoint.arrays import FloatArray, IntArray
from rejoint.domain.variable import Variable

#: Settings to choose from: the power of the classes' probability, the power of the row's own
#: standard deviation, the spread by that of left-out errors, and the share of the classes alone.
POWERS = (0.0, 0.5, 1.0)
ROW_POWERS = (0.0, 1.0)
SPREADS = (0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5)
SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 1.0)

#: Rows that settings are chosen by.
MOST_ROWS = 500

#: Steps that move a center until the mean is the prediction, and standard deviations it may go.
STEPS, FARTHEST = 4, 3.0

#: Least probability of a bin.
LEAST = 1e-9


@dataclass(frozen=True, eq=False)
class NumberSpread:
    """How probable each value of a variable is, given a prediction and what classes say.

    ``(1 - share) q + share p``, where ``p`` is the probability by the classes, values in a bin in
    the proportions of the data, and ``q`` has a density in proportion to that of ``p``, to a power,
    times a normal density around the prediction.

    Parameters
    ----------
    values : ndarray (values,)
        Values of the variable, in increasing order.
    bins : ndarray of int (values,)
        Level of each.
    within : ndarray (values,)
        Its share of its level.
    power, row_power, spread, share : float
        Settings. The standard deviation is ``spread`` times that of the row to ``row_power``.

    Examples
    --------
    >>> spread = NumberSpread(
    ...     np.array([1.0, 2.0, 3.0]), np.arange(3), np.ones(3), 0.0, 0.0, 0.5, 0.0
    ... )
    >>> classes = np.full((1, 3), 1 / 3)
    >>> spread.table(classes, np.array([2.0]), np.ones(1)).round(2)
    array([[0.11, 0.79, 0.11]])
    """

    values: FloatArray
    bins: IntArray
    within: FloatArray
    power: float
    row_power: float
    spread: float
    share: float

    @classmethod
    def fit(
        cls,
        variable: Variable,
        classes: FloatArray,
        predicted: FloatArray,
        deviation: FloatArray,
        truth: FloatArray,
        inflation: float,
        rng: np.random.Generator,
    ) -> "NumberSpread":
        """Choose settings by the probability of the right bin in left-out cells.

        Parameters
        ----------
        variable : Variable
            Of numbers.
        classes : ndarray (rows, levels)
            Probability of each level without the cell.
        predicted, deviation, truth : ndarray (rows,)
            The cell predicted without itself, the standard deviation that the other columns of
            the row leave, and its value.
        inflation : float
            By which errors of new rows are larger.
        rng : Generator
            Chooses rows.
        """
        values, bins, within = spread_values(variable)
        if len(truth) > MOST_ROWS:
            some = rng.choice(len(truth), size=MOST_ROWS, replace=False)
            classes, predicted, deviation, truth = (
                part[some] for part in (classes, predicted, deviation, truth)
            )
        error = max(float(np.sqrt(np.mean((truth - predicted) ** 2))), 1e-9)
        place = np.array([np.abs(values - x).argmin() for x in truth])
        right = bins == bins[place][:, None]
        alone = (_of_values(classes, bins, within) * right).sum(axis=1)
        best, least = None, np.inf
        for power, row_power, spread in product(POWERS, ROW_POWERS, SPREADS):
            norm = float(np.sqrt(np.mean(deviation ** (2 * row_power))))
            trial = cls(values, bins, within, power, row_power, spread * error / norm, 0.0)
            near = (trial.table(classes, predicted, deviation) * right).sum(axis=1)
            for share in SHARES:
                mixed = (1.0 - share) * near + share * alone
                loss = -float(np.log(np.maximum(mixed, LEAST)).mean())
                if loss < least:
                    best, least = (power, row_power, trial.spread * inflation, share), loss
        assert best is not None
        return cls(values, bins, within, *best)

    @cached_property
    def gaps(self) -> FloatArray:
        """The part of the line that each value stands for: half of the way to its neighbors."""
        if len(self.values) < 2:
            return np.ones(len(self.values))
        steps = np.diff(self.values)
        both = np.append(steps, steps[-1]) + np.append(steps[0], steps)
        return np.asarray(np.maximum(both, 1e-300) / 2.0)

    def table(
        self, classes: FloatArray, predicted: FloatArray, deviation: FloatArray
    ) -> FloatArray:
        """Return the probability of each value in each row, (rows, values)."""
        prior = _of_values(classes, self.bins, self.within)
        if self.share >= 1.0:
            return prior
        sigma = self._sigma(deviation)
        logs = self.power * np.log(np.maximum(classes, LEAST))[:, self.bins]
        logs += self.power * np.log(self.within) + (1.0 - self.power) * np.log(self.gaps)
        logs -= 0.5 * ((self.values - predicted[:, None]) / sigma[:, None]) ** 2
        near = np.exp(logs - logs.max(axis=1, keepdims=True))
        near /= near.sum(axis=1, keepdims=True)
        return np.asarray((1.0 - self.share) * near + self.share * prior)

    def center(
        self, classes: FloatArray, predicted: FloatArray, deviation: FloatArray
    ) -> FloatArray:
        """Return what to predict for a distribution whose mean is ``predicted``.

        No value is beyond those seen, so that near the ends the mean is nearer to the middle.
        """
        sigma, found = self._sigma(deviation), predicted
        for _ in range(STEPS if self.share < 1.0 else 0):
            table = self.table(classes, found, deviation)
            mean = table @ self.values
            # The mean moves with the center by variance / sigma**2.
            variance = np.maximum(table @ self.values**2 - mean**2, 0.1 * sigma**2)
            found = found + (predicted - mean) * np.minimum(sigma**2 / variance, 10.0)
            found = np.clip(found, predicted - FARTHEST * sigma, predicted + FARTHEST * sigma)
        return found

    def _sigma(self, deviation: FloatArray) -> FloatArray:
        span = self.values[-1] - self.values[0] + 1e-12
        return np.asarray(np.maximum(self.spread * deviation**self.row_power, 1e-6 * span))

    def levels(self, table: FloatArray, size: int) -> FloatArray:
        """Return the probability of each level from that of values."""
        found = np.zeros((len(table), size))
        np.add.at(found.T, self.bins, table.T)
        return found

    def quantile(self, table: FloatArray, heights: FloatArray) -> FloatArray:
        """Return the smallest value whose probability, with all below, reaches a height."""
        sums = np.cumsum(table, axis=1)
        places = (sums < (heights * sums[:, -1] * (1 - 1e-12))[:, None]).sum(axis=1)
        return np.asarray(self.values[np.minimum(places, len(self.values) - 1)])


def spread_values(variable: Variable) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return values of a variable of numbers, the level of each, and its share of the level.

    Examples
    --------
    >>> from rejoint.domain.labels import Bin
    >>> age = Variable("age", (Bin(0, 18), Bin(18, 65)), contents=[[(3, 1)], [(20, 3), (60, 1)]])
    >>> spread_values(age)
    (array([ 3., 20., 60.]), array([0, 1, 1]), array([1.  , 0.75, 0.25]))
    """
    contents = variable.contents or tuple(((x, 1.0),) for x in variable.numeric.tolist())
    triples = [
        (value, level, mass / sum(m for _, m in within))
        for level, within in enumerate(contents)
        for value, mass in within
    ]
    values, bins, within = map(np.array, zip(*sorted(triples), strict=True))
    return values.astype(float), bins, within.astype(float)


def _of_values(classes: FloatArray, bins: IntArray, within: FloatArray) -> FloatArray:
    table = np.maximum(classes, LEAST)[:, bins] * within
    return np.asarray(table / table.sum(axis=1, keepdims=True))
