"""Prediction of unseen tables: the mean of models of many classes after few EM steps.

Where the aim is a joint that predicts other tables, and not classes that mean something, no small
rank is right. Many classes from a random start are taken towards the tables by EM and left before
they are there: what the tables do not say stays smooth, and so does their noise. Where the number
of records is known, steps end once the tables are met to a share of what chance alone would make
the distance; tables of few records are followed less far.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod

import numpy as np

from rejoint.check import check_positive_int
from rejoint.factorization.kl import Kl
from rejoint.factorization.loss import KL
from rejoint.factorization.problem import TableProblem, make_problem, own_shares
from rejoint.factorization.table_policy import POLICY
from rejoint.marginals.marginals import Marginals
from rejoint.model import Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.search import best_run, search
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits, Record, Run, Stop
from rejoint.text import plural


@dataclass(frozen=True)
class Smooth:
    """A joint that predicts unseen tables, by EM with early stopping; its classes mean nothing.

    Parameters
    ----------
    closeness : float
        Stop when the distance of the tables is this fraction of the one expected by chance.
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

    def __post_init__(self) -> None:
        check_positive_int("members", self.members)

    def rank(self, marginals: Marginals) -> int:
        """Classes of a member, where none are asked for: no more than the joint has cells."""
        return min(POLICY.smooth_classes, prod(marginals.domain.shape))


def fit_smooth(
    marginals: Marginals, smooth: Smooth, rank: int, weighting: str, session: Session
) -> FitResult:
    """Return the mean of some models that were left on their way to the tables."""
    problem = make_problem(marginals, weighting, KL)
    # Classes of few levels are what a smooth mean is made of: from columns as spread as uniform
    # ones, tables of four variables that were not given were a quarter further from the truth.
    shares = own_shares(problem)
    starts = (Model.draw(shares, rank, session.rng) for _ in range(smooth.members))
    follow = partial(follow_member, marginals, smooth, weighting)
    average = partial(average_members, marginals)
    return average(search(problem, starts, follow, session, offer=average))


def follow_member(
    marginals: Marginals,
    smooth: Smooth,
    weighting: str,
    problem: TableProblem,
    model: Model,
    number: int,
    session: Session,
    key: str,
) -> Run:
    """Run EM from one start until the tables are met closely enough."""
    # Probabilities are lifted off zero where a run begins.
    step = POLICY.smooth_steps
    brief = Kl(dense_limit=0, limits=Limits(max_steps=step, progress=0.0))
    is_sample = bool(marginals.counted.any())
    most = smooth.max_steps if is_sample else min(POLICY.unsampled_steps, smooth.max_steps)
    rounds = max(-(-most // step), 1)
    records: tuple[Record, ...] = ()
    for number_of_round in range(1, rounds + 1):
        done = run(brief, problem, model, session, start=number)
        records, model = (*records, *done.records), done.model
        pmf = LowRankPMF.of_model(model, marginals.domain)
        near = is_near(marginals, pmf, smooth.closeness)
        stop = Stop.EARLY if near or (number_of_round == rounds and not is_sample) else Stop.STEPS
        error = problem.relative_error(model)
        done = session.unfinished[number] = replace(done, error=error, records=records, stop=stop)
        if near:
            break
        if marginals.unknown is not None:
            problem = make_problem(marginals.filled(pmf), weighting, KL)
    return done


def average_members(marginals: Marginals, runs: Sequence[Run]) -> FitResult:
    """Return the mean of the members as a result."""
    pmf = LowRankPMF.average([LowRankPMF.of_model(run.model, marginals.domain) for run in runs])
    misfits = {fit.names: fit.distance for fit in marginals.compare(pmf)}
    mean = float(np.mean(list(misfits.values()))) if misfits else 0.0
    error, residual = (
        float(np.mean([getattr(run, x) for run in runs])) for x in ("error", "residual")
    )
    return FitResult.of(
        pmf,
        runs,
        f"The tables are met to {mean:.2g} of their mass on average, by the mean of "
        f"{plural(len(runs), 'model')} of {plural(runs[0].model.rank, 'class', 'classes')},",
        best=replace(runs[best_run(runs)], error=error, residual=residual),
        unit="EM step",
        more="The joint is smooth where the tables leave it open; its classes have no meaning.",
        misfits=misfits,
        classes_are_groups=False,
    )


def is_near(marginals: Marginals, pmf: LowRankPMF, closeness: float) -> bool:
    """Whether the distance of the tables is this fraction of the one expected by chance."""
    fits = [fit for fit in marginals.compare(pmf) if not np.isnan(fit.chance)]
    chance = sum(fit.chance for fit in fits)
    return bool(fits) and sum(fit.distance for fit in fits) <= closeness * chance
