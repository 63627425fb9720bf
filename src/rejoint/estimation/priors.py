"""Dirichlet priors on weights and factor columns, and the strengths the data speak for.

A column of factor ``n`` has the prior ``Dirichlet(s_n m_n)``, centred on the variable's own
shares ``m_n``: without evidence to the contrary a class looks like the whole. The strength
``s_n`` is not the user's business: it has a log-normal hyperprior around ``2 I_n`` and is
estimated with the rest. (With a flat one small samples drift to infinite strength, that is to
independence, where a moderate one finds the structure.)
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from rejoint.estimation.data import Array, RecordProblem

#: Median of the hyperprior in units of the number of levels, and its log standard deviation.
MEDIAN, SPREAD = 2.0, 0.5
RANGE = (0.1, 1e6)


@dataclass(frozen=True)
class Prior:
    """Pseudo-counts of classes (one number) and of levels in a class, (L,).

    Examples
    --------
    >>> Prior(1.0, np.array([2.0, 2.0])).levels
    array([2., 2.])
    """

    classes: float
    levels: Array

    @property
    def stacked(self) -> Array:
        """As a column to be added to expected counts, (1 + L, 1)."""
        return np.concatenate([[self.classes], self.levels])[:, None]


def first_strengths(problem: RecordProblem) -> Array:
    """The hyperprior's median for every variable."""
    return MEDIAN * problem.firmness


def make_prior(problem: RecordProblem, strengths: Array, classes: float) -> Prior:
    """Prior of given strengths, centred on the variables' own shares."""
    return Prior(classes, np.repeat(strengths, problem.levels) * problem.centre)


def log_hyperprior(strength: Array | float, size: Array | float) -> Array:
    """Log-density of a strength, up to a constant, in ``log s``."""
    return np.asarray(-0.5 * (np.log(strength / (MEDIAN * size)) / SPREAD) ** 2)


def best_strength(
    strength: float, centre: Array, log_columns: Array, firmness: float | None = None
) -> float:
    """The strength that maximises prior times hyperprior, given (expected) log columns (I, F).

    Newton steps in ``log s``; constant variables have nothing to estimate.
    """
    rank, size = log_columns.shape[1], len(centre)
    if size < 2:
        return strength
    median = MEDIAN * (size if firmness is None else firmness)
    pull = float(centre @ log_columns.sum(axis=1))
    for _ in range(30):
        first = rank * (digamma(strength) - centre @ digamma(strength * centre)) + pull
        second = rank * (polygamma(1, strength) - centre**2 @ polygamma(1, strength * centre))
        slope = strength * first - np.log(strength / median) / SPREAD**2
        bend = strength * first + strength**2 * second - 1.0 / SPREAD**2
        move = float(np.clip(-slope / bend if bend < 0 else np.sign(slope), -1.0, 1.0))
        strength = float(np.clip(strength * np.exp(move), *RANGE))
        if abs(move) < 1e-6:
            break
    return strength


def log_evidence_of_counts(strength: float, centre: Array, counts: Array) -> float:
    """Log-probability of level counts (I, F) of all classes, columns integrated out."""
    base = strength * centre[:, None]
    columns = gammaln(counts + base).sum(axis=0) - gammaln(strength + counts.sum(axis=0))
    start = gammaln(strength) - gammaln(base).sum()
    return float(np.sum(columns) + counts.shape[1] * start)
