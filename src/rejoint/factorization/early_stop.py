"""Tables that were never seen: many classes, few steps of EM, and the mean of some such models.

Where the aim is a joint that predicts other tables, and not classes that mean something, no small
rank is right. Many classes from a random start are taken towards the tables by EM and left before
they are there: what the tables do not say stays smooth, and so does their noise. Where the number
of records is known, steps end once the tables are met to a share of what chance alone would make
the distance; tables of few records are followed less far.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from rejoint.factorization.kl import Kl
from rejoint.marginals.marginals import Marginals
from rejoint.pmf.pmf import LowRankPMF
from rejoint.solver.result import FitResult
from rejoint.solver.solver import Limits
from rejoint.text import plural

#: Classes of each member: on Adult more are no better, and fewer are (80: by a twentieth).
CLASSES = 320

#: Steps where no number of records is known.
UNTOLD = 60

#: Steps between two looks at how near the tables are; probabilities are lifted off zero then.
ROUND = 10


@dataclass(frozen=True)
class Smooth:
    """A joint for tables that were never seen, by EM that is ended early; classes mean nothing.

    Parameters
    ----------
    closeness : float
        Steps end when tables are met to this share of what chance would make the distance.
    max_steps : int
        Steps at the most; where no number of records is known, 60 are taken.
    members : int
        Models that are averaged, each from a random start.

    Examples
    --------
    >>> import rejoint as rj
    >>> data = rj.datasets.asia().sample(2000, random_state=0)
    >>> tables = rj.Marginals.count(data, order=2)
    >>> result = rj.factorize(tables, solver=Smooth(members=2), random_state=0)
    >>> result.pmf.rank
    512
    """

    closeness: float = 0.4
    max_steps: int = 200
    members: int = 3
    name: str = field(default="smooth", init=False)

    def rank(self, marginals: Marginals) -> int:
        """Classes of a member, where none are asked for: no more than the joint has cells."""
        return min(CLASSES, prod(marginals.domain.shape))


#: Fits tables as they are by a solver, from a model or a random start.
FitFrom = Callable[[Marginals, Kl, LowRankPMF | None], FitResult]


def fit_smooth(marginals: Marginals, solver: Smooth, fit: FitFrom) -> FitResult:
    """The mean of some models that were left on their way to the tables."""
    results: list[FitResult] = []
    steps: list[int] = []
    while len(results) < solver.members and not (results and _interrupted(results[-1])):
        result, taken = _member(marginals, solver, fit)
        results.append(result)
        steps.append(taken)
    pmf = LowRankPMF.average([result.pmf for result in results])
    apart = {fit.names: fit.distance for fit in marginals.compare(pmf)}
    mean = float(np.mean(list(apart.values()))) if apart else 0.0
    effort = f"{min(steps)} to {max(steps)}" if min(steps) < max(steps) else f"{steps[0]}"
    stop = (
        f"The tables are met to {mean:.2g} of their mass on average, by the mean of "
        f"{plural(len(results), 'model')} of {results[0].pmf.rank} classes, after {effort} steps "
        "of EM from random starts. What the tables do not say is smooth; the classes mean nothing."
        + " Interrupted: others would have followed."
        * _interrupted(results[-1])
    )
    return FitResult(
        pmf=pmf,
        stop=stop,
        history=tuple(record for result in results for record in result.history),
        error=float(np.mean([result.error for result in results])),
        residual=float(np.mean([result.residual for result in results])),
        starts=tuple(run for result in results for run in result.starts),
        misfits=apart,
    )


def _member(marginals: Marginals, solver: Smooth, fit: FitFrom) -> tuple[FitResult, int]:
    """One model, and how many steps were taken."""
    brief = Kl(dense_limit=0, limits=Limits(max_steps=ROUND, progress=0.0))
    tables, result, steps = marginals, fit(marginals, brief, None), ROUND
    most = solver.max_steps if marginals.counted.any() else min(UNTOLD, solver.max_steps)
    while steps < most and not _near(marginals, result.pmf, solver.closeness):
        if marginals.unknown is not None:
            tables = marginals.filled(result.pmf)
        before, result = result, fit(tables, brief, result.pmf)
        steps += ROUND
        ended = _interrupted(result)
        result = replace(
            result,
            history=(*before.history, *result.history),
            starts=(*before.starts, *result.starts),
        )
        if ended:
            break
    return result, steps


def _interrupted(result: FitResult) -> bool:
    return any(run.reason == "interrupted" for run in result.starts)


def _near(marginals: Marginals, pmf: LowRankPMF, closeness: float) -> bool:
    fits = [fit for fit in marginals.compare(pmf) if not np.isnan(fit.chance)]
    chance = sum(fit.chance for fit in fits)
    return bool(fits) and sum(fit.distance for fit in fits) <= closeness * chance
