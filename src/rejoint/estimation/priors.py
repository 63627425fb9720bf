"""Dirichlet priors on weights and factor columns, and the concentrations that the data suggest.

A column of factor ``n`` has the prior ``Dirichlet(s_n m_n)``, centered on the variable's own
distribution ``m_n``: without evidence to the contrary a class looks like the whole. The
concentration ``s_n`` has a log-normal hyperprior around ``2 I_n`` and is estimated with the rest.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from rejoint.arrays import FloatArray
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.model import Layout

if TYPE_CHECKING:
    from rejoint.estimation.data import Data


@dataclass(frozen=True)
class Prior:
    """Pseudo-counts of classes and of levels in a class: alike in all classes, or one for each.

    Parameters
    ----------
    classes : float or array (F,)
        Of a class.
    levels : array (L,) or (L, F)
        Of each level.

    Examples
    --------
    >>> Prior(1.0, np.array([2.0, 2.0])).stacked.ravel()
    array([1., 2., 2.])
    """

    classes: float | FloatArray
    levels: FloatArray

    @property
    def stacked(self) -> FloatArray:
        """Classes above levels, to be added to expected counts, (1 + L, 1 or F)."""
        levels = self.levels if self.levels.ndim > 1 else self.levels[:, None]
        return np.vstack([np.atleast_1d(self.classes), levels])


def first_concentrations(data: "Data", policy: Policy = DEFAULT) -> FloatArray:
    """The hyperprior's median for every variable."""
    return policy.concentration_median * data.concentration_unit


def make_prior(data: "Data", concentrations: FloatArray, classes: float = 0.0) -> Prior:
    """Prior of given concentrations, centered on the variables' own distributions."""
    return Prior(classes, data.layout.expand(concentrations) * data.center)


def first_prior(data: "Data", policy: Policy = DEFAULT) -> Prior:
    """Prior of the hyperprior's median concentrations."""
    return make_prior(data, first_concentrations(data, policy))


def log_hyperprior(
    concentration: FloatArray | float, unit: FloatArray | float, policy: Policy = DEFAULT
) -> FloatArray:
    """Log-density of a concentration, up to a constant, in ``log s``."""
    median, spread = policy.concentration_median, policy.concentration_spread
    return np.asarray(-0.5 * (np.log(concentration / (median * unit)) / spread) ** 2)


def best_concentrations(
    layout: Layout,
    concentrations: FloatArray,
    center: FloatArray,
    log_columns: FloatArray,
    unit: FloatArray,
    policy: Policy = DEFAULT,
) -> FloatArray:
    """Concentrations of largest prior times hyperprior, given (expected) log columns (L, F).

    Newton steps in ``log s``; constant variables have nothing to estimate.
    """
    rank = log_columns.shape[1]
    median, spread = policy.concentration_median * unit, policy.concentration_spread
    pull = layout.sums(center * log_columns.sum(axis=1))
    s = concentrations
    moving = np.asarray(layout.levels) > 1
    for _ in range(30):
        base = layout.expand(s) * center
        first = rank * (digamma(s) - layout.sums(center * digamma(base))) + pull
        second = rank * (polygamma(1, s) - layout.sums(center**2 * polygamma(1, base)))
        slope = s * first - np.log(s / median) / spread**2
        bend = s * first + s**2 * second - 1.0 / spread**2
        newton = -slope / np.where(bend < 0, bend, 1.0)
        move = np.clip(np.where(bend < 0, newton, np.sign(slope)), -1.0, 1.0)
        s = np.where(moving, np.clip(s * np.exp(move), *policy.concentration_range), s)
        moving = moving & (np.abs(move) >= 1e-6)
        if not moving.any():
            break
    return s


def log_evidence_of_counts(
    layout: Layout, concentrations: FloatArray, center: FloatArray, counts: FloatArray
) -> FloatArray:
    """Log-probability of the level counts (L, F) of each variable, columns integrated out, (N,).

    Examples
    --------
    >>> counts, center = np.array([[2.0], [1.0]]), np.array([0.5, 0.5])
    >>> log_evidence_of_counts(Layout((2,)), np.array([2.0]), center, counts).round(4)
    array([-2.4849])
    """
    rank = counts.shape[1]
    base = layout.expand(concentrations) * center
    columns = layout.sums(gammaln(counts + base[:, None]).sum(axis=1))
    totals = gammaln(concentrations[:, None] + layout.sums(counts)).sum(axis=1)
    start = gammaln(concentrations) - layout.sums(gammaln(base))
    return np.asarray(columns - totals + rank * start)
