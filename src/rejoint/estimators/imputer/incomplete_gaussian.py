"""IncompleteGaussian: a normal distribution of columns, from rows that miss values."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rejoint.arrays import BoolArray, FloatArray, IntArray

#: Steps of EM: with a fifth of the cells missing the rest is below one percent after five.
STEPS = 8

#: Rows times columns cubed that EM works on; more rows are sampled, but not below the fewest.
MOST_WORK, FEWEST_ROWS = 1e8, 500

#: Numbers of a block of matrices, one for each pattern of missing values.
BLOCK_NUMBERS = 2_000_000

#: Records that the prior counts for, by column, and how much of a column's variance it expects to
#: be its own.
PRIOR_RECORDS, OWN_VARIANCE = 0.25, 0.3


class Parts(NamedTuple):
    """What observed columns say of the others, for each of some patterns of missing values.

    Attributes
    ----------
    gain : ndarray (patterns, p, p)
        Coefficients of missing columns (second axis) on observed ones.
    precision : ndarray (patterns, p, p)
        Inverse covariance of the observed columns.
    rest : ndarray (patterns, p, p)
        Covariance of the missing columns, given the observed ones.
    """

    gain: FloatArray
    precision: FloatArray
    rest: FloatArray


@dataclass(frozen=True, eq=False)
class IncompleteGaussian:
    """A normal distribution whose columns may be missing in rows.

    Parameters
    ----------
    mean : ndarray (p,)
    covariance : ndarray (p, p)

    Examples
    --------
    >>> normal = IncompleteGaussian(np.zeros(2), np.array([[1.0, 0.6], [0.6, 1.0]]))
    >>> completed, variance = normal.complete(np.array([[2.0, np.nan]]))
    >>> completed, variance
    (array([[2. , 1.2]]), array([[0.  , 0.64]]))
    """

    mean: FloatArray
    covariance: FloatArray

    @classmethod
    def fit(
        cls, rows: FloatArray, weight: FloatArray, rng: np.random.Generator
    ) -> "IncompleteGaussian":
        """Estimate by EM from rows with NaN, with a prior that shrinks correlations.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> rows = rng.normal(size=(4000, 1)) + rng.normal(size=(4000, 2))
        >>> rows[::5, 0] = np.nan
        >>> normal = IncompleteGaussian.fit(rows, np.ones(4000), rng)
        >>> bool(abs(normal.covariance[0, 1] - 1) < 0.1)
        True
        """
        width = rows.shape[1]
        most = int(max(MOST_WORK / width**3, FEWEST_ROWS))
        if len(rows) > most:
            some = rng.choice(len(rows), size=most, replace=False)
            rows, weight = rows[some], weight[some]
        seen = ~np.isnan(rows)
        mass = np.maximum((weight[:, None] * seen).sum(axis=0), 1e-12)
        mean = (weight[:, None] * np.where(seen, rows, 0.0)).sum(axis=0) / mass
        away = np.where(seen, rows - mean, 0.0)
        own = (weight[:, None] * away**2).sum(axis=0) / mass + 1e-9
        found = cls(mean, (weight[:, None] * away).T @ away / weight.sum() + np.diag(1e-3 * own))
        prior = PRIOR_RECORDS * width
        for _ in range(STEPS):
            sums, squares = np.zeros(width), np.zeros((width, width))
            for at, parts, which in found._blocks(seen):
                filled = _fill(rows[at] - found.mean, seen[at], parts, which)
                held = np.bincount(which, weight[at], len(parts.rest))
                sums += weight[at] @ filled
                squares += (weight[at][:, None] * filled).T @ filled
                squares += np.tensordot(held, parts.rest, 1)
            total = weight.sum()
            shift = sums / total
            squares += prior * OWN_VARIANCE * np.diag(own) - total * np.outer(shift, shift)
            found = cls(found.mean + shift, squares / (total + prior))
        return found

    def complete(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rows with expectations in place of NaN, and the variance of each cell."""
        completed, variance = np.array(rows), np.zeros(rows.shape)
        seen = ~np.isnan(rows)
        for at, parts, which in self._blocks(seen):
            completed[at] = self.mean + _fill(rows[at] - self.mean, seen[at], parts, which)
            variance[at] = np.einsum("kpp->kp", parts.rest)[which]
        return completed, variance

    def complete_without(
        self, rows: FloatArray, groups: list[IntArray]
    ) -> Iterator[tuple[IntArray, int, FloatArray, FloatArray]]:
        """Complete rows as if a group of columns, which they have, were missing.

        Yields
        ------
        rows : ndarray of int
            Rows that have the group.
        group : int
            Which one.
        completed : ndarray (rows, p)
            Expectations given the other observed columns, in the group too.
        variance : ndarray (rows,)
            Of the first column of the group.
        """
        seen = ~np.isnan(rows)
        for at, parts, which in self._blocks(seen):
            away = np.where(seen[at], rows[at] - self.mean, 0.0)
            filled = _fill(away, seen[at], parts, which)
            scaled = np.einsum("rpq,rq->rp", parts.precision[which], away, optimize=True)
            for k, group in enumerate(groups):
                here = np.flatnonzero(seen[at, group[0]])
                if not len(here):
                    continue
                own = parts.precision[which[here]][:, group][:, :, group]
                own += 1e-9 * np.eye(len(group))
                # The error of the group's own prediction; others lose what it told them.
                error = np.linalg.solve(own, scaled[here][:, group, None])[:, :, 0]
                lost = np.einsum("rpk,rk->rp", parts.gain[which[here]][:, :, group], error)
                without = filled[here] - np.where(seen[at][here], 0.0, lost)
                without[:, group] -= error
                variance = 1.0 / np.maximum(own[:, 0, 0], 1e-12)
                yield at[here], k, without + self.mean, variance

    def _blocks(self, seen: BoolArray) -> Iterator[tuple[IntArray, Parts, IntArray]]:
        """Yield rows, the parts of their patterns, and which pattern each row has."""
        patterns, which = np.unique(seen, axis=0, return_inverse=True)
        which = which.ravel()
        size = max(1, BLOCK_NUMBERS // (3 * len(self.mean) ** 2))
        order = np.argsort(which, kind="stable")
        ends = np.searchsorted(which[order], np.arange(len(patterns) + 1))
        for first in range(0, len(patterns), size):
            last = min(first + size, len(patterns))
            rows = order[ends[first] : ends[last]]
            yield rows, self._parts(patterns[first:last]), which[rows] - first

    def _parts(self, patterns: BoolArray) -> Parts:
        there = patterns.astype(np.float64)
        inside = there[:, :, None] * there[:, None, :]
        diagonal = np.arange(len(self.mean))
        square = self.covariance * inside
        square[:, diagonal, diagonal] += 1.0 - there
        precision = np.linalg.inv(square) * inside
        across = self.covariance * (1.0 - there)[:, :, None] * there[:, None, :]
        gain = across @ precision
        outside = (1.0 - there)[:, :, None] * (1.0 - there)[:, None, :]
        rest = self.covariance * outside - gain @ across.transpose(0, 2, 1)
        return Parts(gain, precision, rest)


def _fill(away: FloatArray, seen: BoolArray, parts: Parts, which: IntArray) -> FloatArray:
    """Return deviations from the mean, expected ones where a column is missing."""
    known = np.where(seen, away, 0.0)
    expected = np.einsum("rpq,rq->rp", parts.gain[which], known, optimize=True)
    return np.asarray(np.where(seen, known, expected))
