"""LabelExplanation: what each feature contributes to the prediction of a label.

The log-odds of a label given some of the features of a row are those that the classifier predicts
with the others missing. A feature contributes the mean, over orders in which the features become
known, of how much the log-odds rise when it does. Contributions of all features therefore sum to
the log-odds of the prediction less those of the shares of the labels at the fit, which are what a
classifier predicts with all features missing (a joint model alone predicts its own probability of
the labels there). Up to eight features that are there, the mean is over all orders (Shapley
values). Beyond, it is over 32: the order of the columns begun at 16 evenly spaced columns, and the
reverse of each.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import factorial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import Codes, FloatArray

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


def all_subsets(features: int) -> tuple[NDArray[np.bool_], FloatArray]:
    """Which features are known in each subset, and the weight of each in each contribution."""
    known = (np.arange(2**features)[:, None] >> np.arange(features)) & 1 > 0
    size = known.sum(axis=1)
    orders = [factorial(k) * factorial(max(features - 1 - k, 0)) for k in range(features + 1)]
    share = np.array(orders) / factorial(features)
    return known, np.where(known.T, share[np.maximum(size - 1, 0)], -share[size])


def some_orders(features: int) -> tuple[NDArray[np.bool_], FloatArray]:
    """The same for the prefixes of 32 orders; an empty one is first, the whole is last."""
    places = np.arange(features)
    begun = (places - (np.arange(BEGINNINGS) * features // BEGINNINGS)[:, None]) % features
    rank = np.vstack([begun, features - 1 - begun])  # when each feature becomes known
    step = np.arange(features + 1)[:, None]
    after, before = rank[:, None, :] == step - 1, rank[:, None, :] == step
    weight = (after.astype(float) - before).reshape(-1, features).T / len(rank)
    return (rank[:, None, :] < step).reshape(-1, features), weight


def explain_row(
    row: Codes, label: int, shares: Callable[[Codes], FloatArray], features: Any, target: Any
) -> LabelExplanation:
    """Explain one label of a target.

    Parameters
    ----------
    row : array (features,)
        Levels, -1 where one is missing. A missing feature contributes nothing.
    label : int
        Place of the label.
    shares : callable
        Probabilities of the labels, (rows, labels), for rows of levels.
    features, target
        The variables.
    """
    there = np.flatnonzero(row >= 0)
    few = len(there) <= ALL_ORDERS
    known, weight = all_subsets(len(there)) if few else some_orders(len(there))
    rows = np.full((len(known), len(row)), -1, dtype=row.dtype)
    rows[:, there] = np.where(known, row[there], -1)
    labels = shares(rows)
    others = labels.sum(axis=1) - labels[:, label]
    log_odds = np.log(np.maximum(labels[:, label], LEAST_ODDS) / np.maximum(others, LEAST_ODDS))
    parts = weight @ log_odds
    order = np.argsort(-np.abs(parts), kind="stable")
    contributions = tuple(
        Contribution(features[n].name, features[n].levels[row[n]], float(part))
        for n, part in zip(there[order], parts[order], strict=True)
    )
    baseline, end = float(log_odds[0]), float(log_odds[-1])
    probability = float(1.0 / (1.0 + np.exp(-end)))
    return LabelExplanation(
        target.name, target.levels[label], probability, end, baseline, contributions
    )
