"""One cheap fit of a rank: a few starts explored briefly, the best one carried on."""

from collections.abc import Sequence
from dataclasses import is_dataclass, replace
from typing import Any

import numpy as np

from rejoint import kernels
from rejoint.estimation.em import Em
from rejoint.estimation.priors import first_strengths, make_prior
from rejoint.estimation.problem import Array, RecordProblem
from rejoint.estimation.starts import random_model
from rejoint.estimation.variational import Variational
from rejoint.solver import Limits, Run, run

Model = tuple[Array, Array]

#: How much of a new class is the record it grows from, in turn.
BLENDS = (0.5, 0.8)

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
            starts.append(widen(problem, warm, rank, BLENDS[k % 3], rng))
    return starts


def checked(done: Run) -> Run:
    """The run, unless it was interrupted."""
    if done.reason == "interrupted":
        raise KeyboardInterrupt
    return done


def widen(
    problem: RecordProblem, model: Model, rank: int, blend: float, rng: np.random.Generator
) -> Model:
    """Add classes around records that the model has too few of.

    A record's share of the deviance, ``count * log(count / expected)``, is its chance to be
    the seed of a class: its levels, blended with the variables' own shares. Split or random
    classes begin near a saddle point, from where EM finds rare combinations late or never.
    """
    weights, factors = model
    more = rank - len(weights)
    expected = kernels.class_log_prob(
        problem.codes, weights, factors, problem.levels, problem.threads
    )
    lack = problem.weight * np.maximum(np.log(problem.weight / problem.total) - expected, 0.0)
    chance = lack / lack.sum() if lack.sum() > 0 else None
    seeds = problem.codes[rng.choice(len(lack), size=more, p=chance)]
    seen = seeds >= 0
    columns = np.tile(problem.centre[:, None], more)
    columns *= 1.0 - blend * np.repeat(seen, problem.levels, axis=1).T
    which, n = np.nonzero(seen)
    columns[problem.offsets[n] + seeds[which, n], which] += blend
    shares = np.concatenate([weights * (rank - more), np.ones(more)]) / rank
    return shares, np.hstack([factors, columns])
