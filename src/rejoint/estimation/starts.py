"""Where estimation starts: the joint of the records' tables, grown models, random ones.

No kind is best everywhere. Grown classes find rare combinations, which random ones take for
noise; on models without such classes random ones are as good or better.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import comb
from typing import Any

import numpy as np

from rejoint.estimation.data import Data
from rejoint.estimation.em import Em
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.factorization.admm import Admm
from rejoint.factorization.fit_tables import Auto, fit_tables
from rejoint.factorization.problem import draw_model
from rejoint.marginals.marginals import Marginals
from rejoint.model import Model
from rejoint.records.records import Records
from rejoint.solver.run import run
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits, Run

#: Makes a model to start from.
Start = Callable[[Data], Model]


def make_starts(
    data: Data,
    rank: int,
    count: int,
    em: Em,
    rng: np.random.Generator,
    known: Sequence[Model] = (),
    policy: Policy = DEFAULT,
) -> list[Start]:
    """Known models, one from tables where that pays, then grown and random ones in turn.

    Each has its own generator of random numbers, so that their order does not matter.
    """
    if rank == 1:
        return [independence]
    starts: list[Start] = [partial(given_model, model=model) for model in known]
    if tables_pay(data, rank, policy):
        starts.append(partial(model_from_tables, rank=rank, rng=child(rng), policy=policy))
    for k in range(count - len(starts)):
        mine = child(rng)
        if k % 3 == 1:
            starts.append(partial(random_model, rank=rank, rng=mine))
        else:
            blend = policy.cautious_blend if k % 3 == 0 else policy.faithful_blend
            starts.append(partial(grown_model, rank=rank, blend=blend, em=em, rng=mine))
    return starts[:count]


def given_model(data: Data, model: Model) -> Model:
    """The model, whatever the data."""
    return model


def independence(data: Data) -> Model:
    """The only model of one class."""
    return Model(data.layout, np.ones(1), data.center[:, None])


def child(rng: np.random.Generator) -> np.random.Generator:
    """A new generator, seeded by another."""
    return np.random.default_rng(int(rng.integers(2**62)))


def random_model(data: Data, rank: int, rng: np.random.Generator) -> Model:
    """Even weights, and columns drawn around each variable's own distribution."""
    return draw_model(data.layout.split(data.center), rank, rng)


def tables_pay(data: Data, rank: int, policy: Policy = DEFAULT) -> bool:
    """Whether a start from tables of three variables is possible and cheap enough."""
    levels = data.layout.levels
    cells = comb(len(levels), 3) * np.mean(levels) ** 3
    enough = data.total > policy.table_records_per_class * rank
    return bool(rank > 1 and len(levels) >= 3 and cells <= policy.most_table_cells and enough)


def model_from_tables(
    data: Data, rank: int, rng: np.random.Generator, policy: Policy = DEFAULT
) -> Model:
    """The least-squares joint of the records' triples, moved off the bounds.

    A random model where a triple was never observed together.
    """
    inner, parameters = data.records, data.layout.parameters(rank)
    records = Records._trusted(data.domain, inner.table(), inner.weight)
    tables = Marginals.count(records, order=3, threads=data.threads)
    if float(tables.totals.min()) <= 0:
        return random_model(data, rank, rng)
    thorough = data.total > policy.thorough_records_per_parameter * parameters
    solver: Any = Auto() if thorough else Admm(limits=Limits(max_steps=60, progress=1e-3))
    start = None if thorough else "algebraic"
    found = fit_tables(tables, rank, solver, Session(rng), start=start, n_init=1).pmf
    # Zeros stay zeros under EM: mix with independence, the less the more records.
    share = min(policy.table_lift, float(np.sqrt(parameters / data.total)))
    factors = (1 - share) * np.vstack(found.factors) + share * data.center[:, None]
    return Model(data.layout, (1 - share) * np.asarray(found.weights) + share / rank, factors)


def grown_model(data: Data, rank: int, blend: float, em: Em, rng: np.random.Generator) -> Model:
    """Classes grown from one on, doubled again and again, with some steps at each size."""
    model = independence(data)
    while model.rank < rank:
        model = widen(data, model, min(2 * model.rank, rank), blend, rng)
        if model.rank < rank:
            state = em.init(data, model)
            for _ in range(em.policy.growth_steps):
                state = em.step(data, state)
            model = state.model
    return model


def widen(data: Data, model: Model, rank: int, blend: float, rng: np.random.Generator) -> Model:
    """Add classes around records that the model has too few of.

    A record's share of the deviance, ``count * log(count / expected)``, is its probability to be
    the seed of a class: its levels, blended with the variables' own distributions. Split or random
    classes start near a saddle point, from where EM finds rare combinations late or never.
    """
    layout, weight, more = data.layout, data.records.weight, rank - model.rank
    expected = data.log_prob(model)
    lack = weight * np.maximum(np.log(weight / data.total) - expected, 0.0)
    chance = lack / lack.sum() if lack.sum() > 0 else None
    seeds = data.records.table(rng.choice(len(lack), size=more, p=chance))
    seen = seeds >= 0
    columns = np.tile(data.center[:, None], more)
    columns *= 1.0 - blend * layout.expand(seen.T)
    which, n = np.nonzero(seen)
    columns[layout.offsets[n] + seeds[which, n], which] += blend
    weights = np.concatenate([model.weights * (rank - more), np.ones(more)]) / rank
    return Model(layout, weights, np.hstack([model.factors, columns]))


def follow_start(
    data: Data, start: Start, number: int, session: Session, key: str, *, solver: Any
) -> Run:
    """Make a start and run a solver from there."""
    return run(solver, data, start(data), session, start=number, key=key)
