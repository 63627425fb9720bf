"""One cheap fit of a rank: a few starts explored briefly, the best one carried on."""

from dataclasses import is_dataclass, replace
from typing import Any

import numpy as np

from rejoint.estimation.em import Em
from rejoint.estimation.priors import first_strengths, make_prior
from rejoint.estimation.problem import Array, RecordProblem
from rejoint.estimation.starts import random_model
from rejoint.estimation.variational import Variational
from rejoint.solver import Limits, Run, run

Model = tuple[Array, Array]

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


def fit(
    problem: RecordProblem,
    rank: int,
    solver: Any,
    warm: Model | None,
    n_init: int,
    rng: np.random.Generator,
) -> Run:
    """Fit a rank from a smaller model grown at random, every third time from scratch.

    Raises KeyboardInterrupt if the user wants no more.
    """
    if rank == 1:  # the start is the answer, but for the solver's own prior
        return checked(run(solver, problem, np.ones(1), problem.centre[:, None]))
    brief = replace(solver, limits=replace(solver.limits, max_steps=EXPLORE))
    found: list[Run] = []
    for start in range(n_init):
        old = warm if start % 3 < 2 else None  # growth can mislead
        model = random_model(problem, rank, rng) if old is None else widen(problem, old, rank, rng)
        found.append(checked(run(brief, problem, *model)))
    best = min(found, key=lambda r: r.objective)
    if best.reason != "steps":
        return best
    return checked(run(solver, problem, best.weights, best.factors))


def checked(done: Run) -> Run:
    """The run, unless it was interrupted."""
    if done.reason == "interrupted":
        raise KeyboardInterrupt
    return done


def widen(problem: RecordProblem, model: Model, rank: int, rng: np.random.Generator) -> Model:
    """Add random classes to a model, each as heavy as the average.

    New classes beat splits of old ones: a split begins near a saddle point.
    """
    old = len(model[0])
    weights, factors = random_model(problem, rank - old, rng)
    shares = np.concatenate([model[0] * old, weights * (rank - old)]) / rank
    return shares, np.hstack([model[1], factors])
