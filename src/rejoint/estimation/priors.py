"""Dirichlet priors on weights and factor columns, and the concentrations that the data suggest.

A column of factor ``n`` has the prior ``Dirichlet(s_n m_n)``, centered on the variable's own
distribution ``m_n``: without evidence to the contrary a class looks like the whole. The
concentration ``s_n`` has a log-normal hyperprior around ``2 I_n`` and is estimated with the rest.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from rejoint.arrays import FloatArray
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.model import Layout, Model

if TYPE_CHECKING:
    from rejoint.estimation.data import Data

#: Concentrations that are compared, each larger than the one before by a fifth.
CONCENTRATIONS = 90


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


def estimate_concentrations(data: "Data", model: Model, policy: Policy = DEFAULT) -> FloatArray:
    """Concentrations of largest evidence times hyperprior, by the expected counts of a model."""
    layout, unit = data.layout, data.concentration_unit
    counts = data.expect(model).levels
    grid = np.geomspace(*policy.concentration_range, CONCENTRATIONS)
    logs = [
        log_evidence_of_counts(layout, np.full(len(unit), each), data.center, counts)
        + log_hyperprior(each, unit, policy)
        for each in grid
    ]
    return np.asarray(grid[np.argmax(logs, axis=0)])


def log_evidence_of_counts(
    layout: Layout, concentrations: FloatArray, center: FloatArray, counts: FloatArray
) -> FloatArray:
    """Log-probability of the level counts (L, F) of each variable, columns integrated out, (N,)."""
    rank = counts.shape[1]
    base = layout.expand(concentrations) * center
    columns = layout.sums(gammaln(counts + base[:, None]).sum(axis=1))
    totals = gammaln(concentrations[:, None] + layout.sums(counts)).sum(axis=1)
    start = gammaln(concentrations) - layout.sums(gammaln(base))
    return np.asarray(columns - totals + rank * start)
