"""Effective sample size: how many independent draws the draws of chains are worth."""

from collections.abc import Sequence

import numpy as np

from rejoint.model import FloatArray
from rejoint.pmf.pmf import LowRankPMF

#: Tables that are looked at, and levels of each variable.
TABLES, LEVELS = 30, 10


def describe_effective_draws(draws: Sequence[LowRankPMF], chains: int) -> str:
    """How many independent draws these are worth, in words; ``draws`` are chain after chain.

    Examples
    --------
    >>> pmfs = [LowRankPMF([a, 1 - a], [np.eye(2)]) for a in np.linspace(0.4, 0.6, 20)]
    >>> describe_effective_draws(pmfs, 1)
    'worth about 3 independent ones for tables of two variables, 3 for the weights of classes'
    """
    tables = effective_draws(np.array([pair_cells(draw) for draw in draws]), chains)
    each = len(draws) // chains  # which may have other classes than those of other chains
    parts = [draws[at : at + each] for at in range(0, len(draws), each)]
    weights = sum(effective_draws(np.array([d.weights for d in part]), 1) for part in parts)
    return (
        f"worth about {tables:.0f} independent ones for tables of two variables, "
        f"{weights:.0f} for the weights of classes"
    )


def pair_cells(draw: LowRankPMF) -> FloatArray:
    """Cells of tables of neighboring variables."""
    parts = [np.asarray(factor)[:LEVELS] for factor in draw.factors]
    pairs = list(zip(parts, parts[1:] or parts, strict=False))[:TABLES]
    return np.concatenate([((a * draw.weights) @ b.T).ravel() for a, b in pairs])


def effective_draws(values: FloatArray, chains: int) -> float:
    """Draws over the autocorrelation time that all quantities (draws, quantities) have on average.

    Autocorrelations are added up so long as the sum of two neighbours is positive (Geyer).

    Examples
    --------
    >>> apart = np.random.default_rng(0).standard_normal((400, 50))
    >>> round(effective_draws(apart, 2), -2), round(effective_draws(np.repeat(apart, 4, 0), 2), -2)
    (400.0, 400.0)
    """
    count = len(values)
    moved = values - values.mean(axis=0)
    spread = np.sqrt(np.mean(moved**2, axis=0))
    varied = spread > 1e-12 * np.abs(values).max(axis=0)
    if not varied.any():
        return float(count)
    series = (moved[:, varied] / spread[varied]).reshape(chains, count // chains, -1)
    length = series.shape[1]
    alike = [float(np.sum(series[:, k:] * series[:, : length - k])) for k in range(length)]
    total = -1.0
    for k in range(0, length - 1, 2):
        pair = (alike[k] + alike[k + 1]) / alike[0]
        if pair <= 0:
            break
        total += 2 * pair
    return count / max(total, 1.0)
