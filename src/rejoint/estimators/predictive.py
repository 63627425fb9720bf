"""The model that predictions are made with: few enough classes to be quick."""

import numpy as np

from rejoint.pmf.pmf import LowRankPMF
from rejoint.solver.result import FitResult

__all__ = ["DRAWS", "predictive", "spread"]

#: Posterior draws that are averaged. On Votes, Nursery, Adult and Mushroom with 10 and 30 % of
#: the cells removed, 30 of 200 draws cost at most 0.002 of log-loss, and are 7 times as quick.
DRAWS = 30


def predictive(result: FitResult, draws: int = DRAWS) -> LowRankPMF:
    """The mean of some posterior draws, spread over all chains; the fit itself without draws.

    Examples
    --------
    >>> import rejoint as rj
    >>> data = rj.datasets.asia().sample(300, random_state=0)
    >>> result = rj.estimate(data, rank=2, solver="bayes", random_state=0)
    >>> result.posterior.mean.rank, predictive(result).rank
    (240, 60)
    """
    if result.posterior is None:
        return result.pmf
    return LowRankPMF.average(spread(result, draws))


def spread(result: FitResult, count: int) -> list[LowRankPMF]:
    """Some models of equal standing: draws far apart, or the fit itself where there are none.

    Examples
    --------
    >>> import rejoint as rj
    >>> data = rj.datasets.asia().sample(300, random_state=0)
    >>> len(spread(rj.estimate(data, rank=2, solver="bayes", random_state=0), 5))
    5
    """
    if result.posterior is None:
        return [result.pmf]
    draws = result.posterior.draws
    places = np.linspace(0, len(draws) - 1, min(count, len(draws))).round().astype(int)
    return [draws[place] for place in places]
