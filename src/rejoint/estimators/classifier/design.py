"""Design: how features enter the scores of a member's classes.

Scores are linear in parameters that have a standard normal prior. A level of a nominal feature has
a parameter of its own; levels of ordered ones are smooth; numbers add a straight line each, in
directions that are uncorrelated over the records.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rejoint.arrays import Codes, FloatArray, IntArray
from rejoint.domain.labels import is_number
from rejoint.domain.variable import Variable, code_dtype
from rejoint.estimators.classifier.classifier_policy import ClassifierPolicy
from rejoint.model import Layout


@dataclass(frozen=True, eq=False)
class Coarsening:
    """Neighboring levels of ordered features joined into bins of about equal weight.

    Parameters
    ----------
    places : tuple of array
        The bin of each level, for each feature.
    center : array (L,)
        Share of each level of each feature.
    """

    places: tuple[IntArray, ...]
    center: FloatArray

    @classmethod
    def of(
        cls, features: Sequence[Variable], center: FloatArray, bins: int, shift: float
    ) -> "Coarsening":
        """Join levels into bins whose edges are shifted by a share of a bin."""
        parts = Layout(tuple(map(len, features))).split(center)
        places = []
        for variable, shares in zip(features, parts, strict=True):
            place = np.arange(len(variable))
            if variable.scale > bins:
                own = shares[: variable.scale]
                middles = np.cumsum(own) - own / 2
                if variable.empty is not None:
                    middles /= own.sum()
                ordered = np.unique(np.floor(bins * middles + shift), return_inverse=True)[1]
                place = np.append(ordered, ordered[-1:] + 1)[: len(variable)]
            places.append(place)
        return cls(tuple(places), center)

    @cached_property
    def layout(self) -> Layout:
        """Where bins stand in stacked factors."""
        return Layout(tuple(int(place[-1]) + 1 for place in self.places))

    @cached_property
    def rows(self) -> IntArray:
        """The row of the bin of each level in stacked factors, (L,)."""
        starts = self.layout.offsets
        return np.concatenate([starts[n] + place for n, place in enumerate(self.places)])

    @cached_property
    def shares(self) -> FloatArray:
        """Share of each bin."""
        return np.bincount(self.rows, self.center, self.layout.size).astype(np.float64)

    def apply(self, codes: Codes) -> Codes:
        """Return codes of bins."""
        bins = np.empty(codes.shape, dtype=code_dtype(max(self.layout.levels)))
        for n, place in enumerate(self.places):
            bins[:, n] = np.append(place, -1)[codes[:, n]]
        return bins

    def refine(self, factors: FloatArray) -> FloatArray:
        """Spread probabilities of bins over their levels, by the shares of these."""
        return np.asarray(factors[self.rows] * (self.center / self.shares[self.rows])[:, None])


@dataclass(frozen=True, eq=False)
class Design:
    """The linear map from parameters to scores of levels, and its transpose.

    Parameters
    ----------
    layout : Layout
        Bins of each feature.
    shares : array (L,)
        Share of each bin. Scores of a feature average to zero under its shares.
    roots : tuple of (slice, array)
        Rows of each ordered feature, and the root of the prior covariance of its scores.
    values : array (L,)
        Number that stands for each bin, standardized; zero where there is none.
    numbers : array of int (D,)
        Positions of the features that are numbers.
    rotation : array (D, D)
        From directions with a standard normal slope to slopes of the D columns of numbers.
    """

    layout: Layout
    shares: FloatArray
    roots: tuple[tuple[slice, FloatArray], ...]
    values: FloatArray
    numbers: IntArray
    rotation: FloatArray

    @classmethod
    def of(
        cls,
        features: Sequence[Variable],
        joined: Coarsening,
        codes: Codes,
        weight: FloatArray,
        policy: ClassifierPolicy,
    ) -> "Design":
        """Make the design of features as a member sees them; ``codes`` are those of its bins."""
        layout = joined.layout
        roots, numbers, values = [], [], np.zeros(layout.size)
        table = np.zeros((len(codes), 0))
        for n, variable in enumerate(features):
            rows, has_empty = layout.rows(n), variable.empty is not None
            if variable.scale:
                size = layout.levels[n] - has_empty
                roots.append((slice(rows.start, rows.start + size), smooth_root(size, policy)))
            standard = standard_values(variable, joined, n)
            if standard is not None:
                values[rows] = standard
                numbers.append(n)
                table = np.column_stack([table, np.append(standard, 0.0)[codes[:, n]]])
        places, rotation = np.array(numbers, dtype=np.intp), whiten(table, weight)
        return cls(layout, joined.shares, tuple(roots), values, places, rotation)

    @cached_property
    def places(self) -> IntArray:
        """The column of numbers that each row belongs to, (L,); any one where it has no number."""
        columns = np.zeros(len(self.layout.levels), dtype=np.intp)
        columns[self.numbers] = np.arange(len(self.numbers))
        return self.layout.expand(columns)

    @property
    def size(self) -> int:
        """Number of parameters of a class."""
        return self.layout.size + len(self.rotation)

    def scores(self, parameters: FloatArray) -> FloatArray:
        """Scores of the levels, (L, F), from parameters (L + D, F)."""
        size = self.layout.size
        scores = parameters[:size].copy()
        for rows, root in self.roots:
            scores[rows] = root @ scores[rows]
        scores -= self.layout.expand(self.layout.sums(self.shares[:, None] * scores))
        if len(self.rotation):
            slopes = self.rotation @ parameters[size:]
            scores += self.values[:, None] * slopes[self.places]
        return scores

    def pull_back(self, slope: FloatArray) -> FloatArray:
        """The slope in the parameters, (L + D, F), from that in the scores (L, F)."""
        gradient = np.empty((self.size, slope.shape[1]))
        size = self.layout.size
        sums = self.layout.expand(self.layout.sums(slope))
        levels = gradient[:size]
        levels[:] = slope - self.shares[:, None] * sums
        for rows, root in self.roots:
            levels[rows] = root.T @ levels[rows]
        if len(self.rotation):
            sums = self.layout.sums(self.values[:, None] * slope)
            gradient[size:] = self.rotation.T @ sums[self.numbers]
        return gradient


def smooth_root(levels: int, policy: ClassifierPolicy) -> FloatArray:
    """Root of the covariance of the scores of ordered levels: neighbors differ little."""
    apart = np.diff(np.eye(levels), axis=0)
    precision = policy.level_precision * np.eye(levels)
    precision += levels * policy.difference_precision * apart.T @ apart
    return np.linalg.cholesky(np.linalg.inv(precision))


def standard_values(variable: Variable, joined: Coarsening, n: int) -> FloatArray | None:
    """Numbers of the bins of a feature, standardized; None where there are fewer than three."""
    if variable.kind != "binned" and not all(map(is_number, variable.values)):
        return None
    numbers = variable.numeric
    if len(numbers) < 3 or not np.isfinite(numbers).all():
        return None
    if variable.empty is not None:
        numbers = np.append(numbers, numbers.mean())
    ends = np.cumsum([0, *map(len, joined.places)])
    center = joined.center[ends[n] : ends[n + 1]]
    mass = np.bincount(joined.places[n], center)
    means = np.bincount(joined.places[n], center * (numbers - numbers.mean())) / mass
    means -= mass @ means / mass.sum()
    spread = float(np.sqrt(mass @ means**2 / mass.sum()))
    return means / spread if 0.0 < spread < np.inf else None


def whiten(table: FloatArray, weight: FloatArray) -> FloatArray:
    """Matrix to slopes of standardized columns from slopes along uncorrelated directions.

    Directions in which records hardly differ are held back by the ridge ``D / n``.
    """
    total, columns = float(weight.sum()), table.shape[1]
    if not columns:
        return np.empty((0, 0))
    spread, axes = np.linalg.eigh(table.T @ (weight[:, None] * table) / total)
    return np.asarray(axes / np.sqrt(np.maximum(spread, 0.0) + columns / total))
