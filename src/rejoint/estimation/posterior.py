"""Posterior draws of the joint: their mean, and bounds for any question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.pmf.draws import credible_bounds
from rejoint.pmf.pmf import LowRankPMF

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Posterior:
    """Draws of the joint from its posterior.

    Parameters
    ----------
    draws : tuple of LowRankPMF
        The draws.

    Examples
    --------
    >>> import rejoint as rj
    >>> data = rj.datasets.asia().sample(500, random_state=0)
    >>> posterior = rj.estimate(data, rank=2, solver="bayes", random_state=0).posterior
    >>> low, high = posterior.interval(["lung"], given={"smoke": "yes"}, level=0.9)
    >>> bool((low < high).all())
    True
    """

    draws: tuple[LowRankPMF, ...]

    @cached_property
    def mean(self) -> LowRankPMF:
        """The mean of the draws, a model of as many classes as they have together.

        Examples
        --------
        >>> import rejoint as rj
        >>> Posterior((rj.LowRankPMF([1.0], [[[0.2], [0.8]]]),)).mean.rank
        1
        """
        return LowRankPMF.average(self.draws)

    def interval(
        self,
        names: str | Sequence[str],
        given: Mapping[str, Any] | None = None,
        level: float = 0.9,
    ) -> tuple[Array, Array]:
        """Equal-tailed credible bounds of a (conditional) table, cell by cell.

        Parameters
        ----------
        names : names of variables
            The table's variables, in the order of its axes.
        given : mapping, optional
            Evidence, as :meth:`LowRankPMF.marginal` takes it.
        level : float
            Probability that a bound pair is to hold.

        Returns
        -------
        low, high : arrays
            Of the table's shape.

        Examples
        --------
        >>> import rejoint as rj
        >>> two = [rj.LowRankPMF([1.0], [[[a], [1 - a]]]) for a in (0.2, 0.4)]
        >>> low, high = Posterior(tuple(two)).interval("x0", level=0.5)
        >>> low.round(2), high.round(2)
        (array([0.2, 0.6]), array([0.4, 0.8]))
        """
        tables = np.stack([draw.marginal(names, given=given) for draw in self.draws])
        return credible_bounds(tables, level)
