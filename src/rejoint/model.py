"""Model: weights and stacked factors of a mixture of products, and where its levels stand.

Solvers, kernels and posterior draws pass a :class:`Model`; :class:`~rejoint.LowRankPMF` is the
same with names and levels, and is what users hold. A model is checked where it comes in, not here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray


@dataclass(frozen=True)
class Layout:
    """Where the levels of each variable stand when factors are stacked, ``L = sum I_n`` rows.

    Parameters
    ----------
    levels : tuple of int
        Number of levels of each variable, ``I_n``.

    Examples
    --------
    >>> layout = Layout((2, 3))
    >>> layout.offsets, layout.rows(1), layout.size
    (array([0, 2, 5]), slice(2, 5, None), 5)
    """

    levels: tuple[int, ...]

    @cached_property
    def offsets(self) -> NDArray[np.intp]:
        """First row of each variable, and L at the end."""
        return np.concatenate([[0], np.cumsum(self.levels)]).astype(np.intp)

    @cached_property
    def is_binary(self) -> bool:
        """Whether all variables have two levels."""
        return set(self.levels) == {2}

    @property
    def size(self) -> int:
        """Number of rows, L."""
        return int(self.offsets[-1])

    def rows(self, n: int) -> slice:
        """Rows of variable ``n``."""
        return slice(int(self.offsets[n]), int(self.offsets[n + 1]))

    def split(self, stacked: FloatArray) -> list[FloatArray]:
        """One block of rows for each variable."""
        return [stacked[self.rows(n)] for n in range(len(self.levels))]

    def sums(self, stacked: FloatArray) -> FloatArray:
        """Sum over the levels of each variable, (N, ...).

        Examples
        --------
        >>> counts = np.arange(6.0)
        >>> Layout((2, 2, 2)).sums(counts), Layout((2, 4)).sums(counts)
        (array([1., 5., 9.]), array([ 1., 14.]))
        """
        if self.is_binary:  # ten times as quick, and the same bits
            return np.asarray(stacked[0::2] + stacked[1::2])
        return np.asarray(np.add.reduceat(stacked, self.offsets[:-1]))

    def expand(self, values: NDArray[Any]) -> NDArray[Any]:
        """Repeat one row for each variable over its levels, (L, ...)."""
        return np.repeat(values, self.levels, axis=0)

    def normalize(self, stacked: FloatArray) -> FloatArray:
        """Scale the columns of each variable to sum to one.

        Examples
        --------
        >>> Layout((2, 1)).normalize(np.array([[1.0], [3.0], [5.0]])).ravel()
        array([0.25, 0.75, 1.  ])
        """
        return np.asarray(stacked / self.expand(self.sums(stacked)))

    def softmax(self, logits: FloatArray) -> FloatArray:
        """Columns of each variable on the simplex, from their logits.

        Examples
        --------
        >>> Layout((2,)).softmax(np.log([[1.0], [3.0]])).ravel()
        array([0.25, 0.75])
        """
        top = np.maximum.reduceat(logits, self.offsets[:-1])
        return self.normalize(np.exp(logits - self.expand(top)))

    def parameters(self, rank: int) -> int:
        """Count the free parameters of a model, ``F (sum (I_n - 1) + 1) - 1``.

        Examples
        --------
        >>> Layout((2, 3)).parameters(2)
        7
        """
        return rank * (sum(self.levels) - len(self.levels) + 1) - 1


@dataclass(frozen=True, eq=False)
class Model:
    """Weights (F,) and stacked factors (L, F) of ``P(x) = sum_f w_f prod_n A_n[x_n, f]``.

    Parameters
    ----------
    layout : Layout
        Where the levels of each variable stand.
    weights : array (F,)
        Probability of each class.
    factors : array (L, F)
        Probability of each level in each class, variables one below the other.

    Examples
    --------
    >>> model = Model.of([0.5, 0.5], [[[0.9, 0.2], [0.1, 0.8]]])
    >>> model.rank, model.parts[0][0]
    (2, array([0.9, 0.2]))
    """

    layout: Layout
    weights: FloatArray
    factors: FloatArray

    @classmethod
    def of(cls, weights: Iterable[float], parts: Iterable[Iterable[Iterable[float]]]) -> "Model":
        """Stack weights and one factor for each variable."""
        arrays = [np.asarray(part, dtype=np.float64) for part in parts]
        layout = Layout(tuple(len(array) for array in arrays))
        return cls(layout, np.array(weights, dtype=np.float64), np.vstack(arrays))

    @classmethod
    def draw(cls, shares: Iterable[FloatArray], rank: int, rng: np.random.Generator) -> "Model":
        """Draw a model of even weights, its columns around the shares of each variable.

        Examples
        --------
        >>> model = Model.draw([np.array([0.5, 0.5])], 3, np.random.default_rng(0))
        >>> model.weights.round(2), model.factors.shape
        (array([0.33, 0.33, 0.33]), (2, 3))
        """
        given = list(shares)
        layout = Layout(tuple(len(share) for share in given))
        sizes = layout.expand(np.asarray(layout.levels))
        # At least 0.1, so that a level that was never seen may still be drawn.
        spreads = np.maximum(sizes * np.concatenate(given), 0.1)
        # Numbers are drawn variable by variable and class by class.
        first = layout.expand(layout.offsets[:-1])
        begin = first * (rank - 1) + np.arange(layout.size)
        place = begin[:, None] + sizes[:, None] * np.arange(rank)
        drawn = np.empty(place.size)
        drawn[place] = spreads[:, None]
        columns = rng.standard_gamma(drawn)[place]
        scale = layout.expand(1.0 / layout.sums(columns))
        return cls(layout, np.full(rank, 1.0 / rank), columns * scale)

    @classmethod
    def from_stacked(cls, layout: Layout, stacked: FloatArray) -> "Model":
        """Take apart weights above factors, (1 + L, F)."""
        return cls(layout, np.asarray(stacked[0]), np.asarray(stacked[1:]))

    @property
    def rank(self) -> int:
        """Number of classes, F."""
        return len(self.weights)

    @property
    def parts(self) -> list[FloatArray]:
        """One factor for each variable, (I_n, F)."""
        return self.layout.split(self.factors)

    @property
    def stacked(self) -> FloatArray:
        """Weights above factors, (1 + L, F)."""
        return np.vstack([self.weights, self.factors])

    def take(self, classes: NDArray[np.intp] | NDArray[np.bool_]) -> "Model":
        """Some of the classes, in the order asked; weights are scaled to sum to one.

        Examples
        --------
        >>> Model.of([0.2, 0.3, 0.5], [[[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]]]).take(
        ...     np.array([2, 1])
        ... ).weights
        array([0.625, 0.375])
        """
        weights = self.weights[classes]
        return Model(self.layout, weights / weights.sum(), self.factors[:, classes])

    def extend(self, rank: int, shares: Iterable[FloatArray], rng: np.random.Generator) -> "Model":
        """Add classes drawn around shares up to a rank, each of the weight of an average class.

        Examples
        --------
        >>> one = Model.of([1.0], [[[0.5], [0.5]]])
        >>> one.extend(3, [np.array([0.5, 0.5])], np.random.default_rng(0)).weights.round(2)
        array([0.33, 0.33, 0.33])
        """
        if self.rank == rank:
            return self
        more = Model.draw(shares, rank - self.rank, rng)
        weights = np.concatenate([self.rank * self.weights, more.rank * more.weights]) / rank
        return Model(self.layout, weights, np.hstack([self.factors, more.factors]))

    def sorted(self) -> "Model":
        """The same model, classes by falling weight."""
        order = np.argsort(-self.weights, kind="stable")
        return Model(self.layout, self.weights[order], self.factors[:, order])


class Observed(Model):
    """A model of the levels themselves: what answers, and what records are judged by.

    Estimators work on a :class:`Model` of the levels that ``Data`` gives them, which are hidden
    ones where columns are smooth; ``Data.observed`` makes an observed model of it.
    """
