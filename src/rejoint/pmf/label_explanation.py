"""LabelExplanation: what each feature contributes to the prediction of a label.

The log-odds of a label given some of the features of a row are those that the classifier predicts
with the others missing. A feature contributes the mean, over orders in which the features become
known, of how much the log-odds rise when it does. Contributions of all features therefore sum to
the log-odds of the prediction less those of the shares of the labels at the fit, which are what a
classifier predicts with all features missing (a joint model alone predicts its own probability of
the labels there). Up to eight features that are there, the mean is over all orders (Shapley
values). Beyond, it is over 32: the order of the columns begun at 16 evenly spaced columns, and the
reverse of each. The explorer's page has the same rule (``ensemble.js``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import factorial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import Codes, FloatArray, IntArray

#: Features that are there up to which all orders count, and where orders begin beyond.
ALL_ORDERS, BEGINNINGS = 8, 16

#: Least odds, so that no contribution is infinite.
LEAST_ODDS = 1e-300


class Contribution(NamedTuple):
    """What a feature contributes: its name, its level, and by how much the log-odds rise."""

    feature: str
    level: Any
    log_odds: float


@dataclass(frozen=True)
class LabelExplanation:
    """Why a label is predicted.

    Parameters
    ----------
    target, label : str, label
        What the explanation is about: one label of a target.
    probability : float
        The predicted probability.
    log_odds, baseline : float
        Its log-odds, and those with all features missing.
    contributions : tuple of Contribution
        For each feature that is there, largest first. They sum to ``log_odds - baseline``.

    Examples
    --------
    >>> parts = Contribution("dysp", "yes", 1.5), Contribution("smoke", "no", -0.3)
    >>> print(LabelExplanation("bronc", "yes", 0.75, 1.1, -0.1, parts))
    bronc = yes: probability 0.75, log-odds +1.10 (-0.10 with all features missing)
      +1.50  dysp = yes
      -0.30  smoke = no
    """

    target: str
    label: Any
    probability: float
    log_odds: float
    baseline: float
    contributions: tuple[Contribution, ...]

    def __str__(self) -> str:
        head = (
            f"{self.target} = {self.label}: probability {self.probability:.2f}, log-odds "
            f"{self.log_odds:+.2f} ({self.baseline:+.2f} with all features missing)"
        )
        lines = [f"  {c.log_odds:+.2f}  {c.feature} = {c.level}" for c in self.contributions]
        return "\n".join([head, *lines])


def contribute(
    row: Codes, label: int, shares: Callable[[Codes], FloatArray]
) -> tuple[FloatArray, float, float]:
    """Return what each feature contributes to the log-odds of a label, these, and the baseline.

    Parameters
    ----------
    row : array (features,)
        Levels, -1 where one is missing. A missing feature contributes nothing.
    label : int
        Place of the label.
    shares : callable
        Probabilities of the labels, (rows, labels), for rows of levels.

    Examples
    --------
    >>> odds = lambda rows: np.exp((rows >= 0) @ np.array([2.0, -1.0]))
    >>> shares = lambda rows: np.stack([1 / (1 + odds(rows)), odds(rows) / (1 + odds(rows))], 1)
    >>> parts, log_odds, baseline = contribute(np.array([0, 3]), 1, shares)
    >>> parts.round(6), round(log_odds, 6), baseline
    (array([ 2., -1.]), 1.0, 0.0)
    """
    there = np.flatnonzero(row >= 0)
    if len(there) <= ALL_ORDERS:
        known, weight = all_subsets(len(there))
    else:
        known, weight = some_orders(len(there))
    rows = np.full((len(known), len(row)), -1, dtype=row.dtype)
    rows[:, there] = np.where(known, row[there], -1)
    found = shares(rows)
    others = found.sum(axis=1) - found[:, label]
    odds = np.maximum(found[:, label], LEAST_ODDS) / np.maximum(others, LEAST_ODDS)
    log_odds = np.log(odds)
    parts = np.zeros(len(row))
    parts[there] = weight @ log_odds
    return parts, float(log_odds[-1]), float(log_odds[0])


def all_subsets(features: int) -> tuple[NDArray[np.bool_], FloatArray]:
    """Which features are known in each subset, and the weight of each in each contribution.

    Examples
    --------
    >>> known, weight = all_subsets(2)
    >>> known.astype(int).tolist(), weight.tolist()
    ([[0, 0], [1, 0], [0, 1], [1, 1]], [[-0.5, 0.5, -0.5, 0.5], [-0.5, -0.5, 0.5, 0.5]])
    """
    known = (np.arange(2**features)[:, None] >> np.arange(features)) & 1 > 0
    size = known.sum(axis=1)
    orders = [factorial(k) * factorial(max(features - 1 - k, 0)) for k in range(features + 1)]
    share = np.array(orders) / factorial(features)
    return known, np.where(known.T, share[np.maximum(size - 1, 0)], -share[size])


def some_orders(features: int) -> tuple[NDArray[np.bool_], FloatArray]:
    """The same for the prefixes of 32 orders; the empty one is first, the whole is last."""
    known = [np.zeros(features, dtype=bool)]
    rows: dict[bytes, int] = {known[0].tobytes(): 0}
    paths: list[tuple[IntArray, list[int]]] = []
    starts = [k * features // BEGINNINGS for k in range(BEGINNINGS)]
    turned = [np.roll(np.arange(features), -start) for start in starts]
    for order in [*turned, *(order[::-1] for order in turned)]:
        places = [0]
        for feature in order[:-1].tolist():
            after = known[places[-1]].copy()
            after[feature] = True
            places.append(rows.setdefault(after.tobytes(), len(known)))
            if places[-1] == len(known):
                known.append(after)
        paths.append((order, [*places, -1]))
    known.append(np.ones(features, dtype=bool))
    found = np.zeros((features, len(known)))
    for path, places in paths:
        found[path, places[1:]] += 1 / len(paths)
        found[path, places[:-1]] -= 1 / len(paths)
    return np.array(known), found


def explain_row(
    row: Codes, label: int, shares: Callable[[Codes], FloatArray], features: Any, target: Any
) -> LabelExplanation:
    """Explain one label of a target; ``features`` and ``target`` are variables."""
    parts, log_odds, baseline = contribute(row, label, shares)
    order: IntArray = np.argsort(-np.abs(parts), kind="stable")
    contributions = tuple(
        Contribution(features[n].name, features[n].levels[row[n]], float(parts[n]))
        for n in order
        if row[n] >= 0
    )
    probability = float(1.0 / (1.0 + np.exp(-log_odds)))
    return LabelExplanation(
        target.name, target.levels[label], probability, log_odds, baseline, contributions
    )
