"""One cheap fit of a rank: a few starts explored briefly, the best one carried on."""

from collections.abc import Sequence
from dataclasses import is_dataclass, replace
from typing import Any

import numpy as np

from rejoint.estimation.em import Em
from rejoint.estimation.priors import first_strengths, make_prior
from rejoint.estimation.problem import RecordProblem
from rejoint.estimation.starts import CAUTIOUS, FAITHFUL, Model, random_model, widen
from rejoint.estimation.variational import Variational
from rejoint.solver import Limits, Run, run

#: Steps of each start before all but the best are given up.
EXPLORE = 30

#: Gain of log-likelihood over ten steps below which a fit has arrived: ranks are told apart by
#: tens of such units.
NATS = 0.3


def solver_for(solver: Any, problem: RecordProblem) -> Any:
    """The solver of a name, with limits that are enough to tell ranks apart, or the object."""
    if solver not in ("ml", "map", "variational"):
        if is_dataclass(solver) and isinstance(getattr(solver, "limits", None), Limits):
            return solver
        raise ValueError(
            f"solver={solver!r} cannot score ranks; give 'map', 'ml', or an object with limits, "
            "such as rejoint.estimation.Em()."
        )
    even = -problem.expect(np.ones(1), problem.centre[:, None]).log_likelihood
    limits = Limits(500, progress=NATS / max(even, 1.0), window=10, exact=-1.0)
    if solver == "variational":
        return Variational(limits=limits)
    prior = make_prior(problem, first_strengths(problem), 0.0) if solver == "map" else None
    return Em(prior, limits=limits)


def fit(problem: RecordProblem, solver: Any, starts: Sequence[Model]) -> Run:
    """Follow each start for a while, and the best one to the end.

    Raises KeyboardInterrupt if the user wants no more.
    """
    brief = replace(solver, limits=replace(solver.limits, max_steps=EXPLORE))
    found = [checked(run(brief, problem, *model)) for model in starts]
    best = min(found, key=lambda r: r.objective)
    if best.reason != "steps":
        return best
    return checked(run(solver, problem, best.weights, best.factors))


def make_starts(
    problem: RecordProblem, rank: int, warm: Model | None, n_init: int, rng: np.random.Generator
) -> list[Model]:
    """A smaller model with new classes, and every third time one from scratch."""
    if rank == 1:
        return [(np.ones(1), problem.centre[:, None])]
    starts = []
    for k in range(n_init):
        if warm is None or k % 3 == 2:  # growth can mislead
            starts.append(random_model(problem, rank, rng))
        else:
            blend = CAUTIOUS if k % 3 == 0 else FAITHFUL
            starts.append(widen(problem, warm, rank, blend, rng))
    return starts


def checked(done: Run) -> Run:
    """The run, unless it was interrupted."""
    if done.reason == "interrupted":
        raise KeyboardInterrupt
    return done
