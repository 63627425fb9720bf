"""Where estimation begins: the joint that the records' tables give, grown models, random ones.

No kind is best everywhere. Grown classes find rare combinations, which random ones take for
noise; on models without such classes random ones are as good or better.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import comb

import numpy as np

from rejoint import kernels
from rejoint.estimation.data import Array, RecordProblem
from rejoint.estimation.em import Em
from rejoint.factorization.admm import Admm
from rejoint.factorization.auto import Auto
from rejoint.factorization.random_start import draw_model
from rejoint.factorization.stages import fit_tables
from rejoint.marginals.marginals import Marginals
from rejoint.records.records import Records
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits

Model = tuple[Array, Array]

#: A start that has not been made yet.
Start = Callable[[RecordProblem], Model]

#: How much of a new class is the record it grows from: half in case that the record is noise.
FAITHFUL, CAUTIOUS = 0.8, 0.5

#: Growing models double, and take so many steps at each size.
STEPS = 5

#: Tables of three variables are worth their cost as a start up to so many cells.
MOST_CELLS = 2_000_000


def make_starts(
    problem: RecordProblem,
    rank: int,
    count: int,
    em: Em,
    rng: np.random.Generator,
    known: Sequence[Model] = (),
) -> list[Start]:
    """Known models, one from tables where that pays, then grown and random ones in turn.

    Each has a source of randomness of its own, so that it does not matter which is made first.
    """
    if rank == 1:
        return [independence]
    starts = [given_model(model) for model in known]
    if tables_pay(problem, rank):
        starts.append(partial(model_from_tables, rank=rank, rng=child(rng)))
    for k in range(count - len(starts)):
        mine = child(rng)
        if k % 3 == 1:
            starts.append(partial(random_model, rank=rank, rng=mine))
        else:
            blend = CAUTIOUS if k % 3 == 0 else FAITHFUL
            starts.append(partial(grown_model, rank=rank, blend=blend, em=em, rng=mine))
    return starts[:count]


def given_model(model: Model) -> Start:
    """A model that is there already, as a start."""
    return partial(itself, model=model)


def itself(problem: RecordProblem, model: Model) -> Model:
    """The model, whatever the problem."""
    return model


def independence(problem: RecordProblem) -> Model:
    """The only model of one class."""
    return np.ones(1), problem.centre[:, None]


def child(rng: np.random.Generator) -> np.random.Generator:
    """A generator of its own, drawn from another."""
    return np.random.default_rng(int(rng.integers(2**62)))


def random_model(problem: RecordProblem, rank: int, rng: np.random.Generator) -> Model:
    """Even weights, and columns drawn around each variable's own shares."""
    shares = [problem.centre[problem.rows(n)] for n in range(len(problem.levels))]
    return draw_model(shares, rank, rng)


def tables_pay(problem: RecordProblem, rank: int) -> bool:
    """Whether a start from tables of three variables is possible and cheap enough."""
    size = len(problem.levels)
    cells = comb(size, 3) * np.mean(problem.levels) ** 3
    enough = problem.total > 10 * rank
    return bool(rank > 1 and size >= 3 and cells <= MOST_CELLS and enough)


def model_from_tables(problem: RecordProblem, rank: int, rng: np.random.Generator) -> Model:
    """The least-squares joint of the records' triples, moved off the walls.

    A random model where a triple was never seen together.
    """
    records = Records(problem.domain, problem.table(), problem.weight)
    tables = Marginals.count(records, order=3, threads=problem.threads)
    if float(tables.totals.min()) <= 0:
        return random_model(problem, rank, rng)
    # With many records the tables are nearly exact, and a thorough fit of them saves passes.
    thorough = problem.total > 100 * problem.parameters(rank)
    solver = Auto() if thorough else Admm(limits=Limits(max_steps=60, progress=1e-3))
    start = None if thorough else "algebraic"
    found = fit_tables(tables, rank, solver, Session(rng), start=start, n_init=1).pmf
    # Zeros stay zeros under EM: mix with independence a little, the less the more records.
    share = min(0.1, float(np.sqrt(problem.parameters(rank) / problem.total)))
    factors = (1 - share) * np.vstack(found.factors) + share * problem.centre[:, None]
    return (1 - share) * np.asarray(found.weights) + share / rank, factors


def grown_model(
    problem: RecordProblem, rank: int, blend: float, em: Em, rng: np.random.Generator
) -> Model:
    """Classes grown from one on, doubled again and again, with some steps at each size."""
    model = independence(problem)
    while len(model[0]) < rank:
        model = widen(problem, model, min(2 * len(model[0]), rank), blend, rng)
        if len(model[0]) < rank:
            state = em.init(problem, *model)
            for _ in range(STEPS):
                state = em.step(problem, state)
            model = state.weights, state.factors
    return model


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
        problem.codes, weights, problem.columns(factors), problem.levels, problem.threads
    )
    lack = problem.weight * np.maximum(np.log(problem.weight / problem.total) - expected, 0.0)
    chance = lack / lack.sum() if lack.sum() > 0 else None
    seeds = problem.table(rng.choice(len(lack), size=more, p=chance))
    seen = seeds >= 0
    columns = np.tile(problem.centre[:, None], more)
    columns *= 1.0 - blend * np.repeat(seen, problem.levels, axis=1).T
    which, n = np.nonzero(seen)
    columns[problem.offsets[n] + seeds[which, n], which] += blend
    shares = np.concatenate([weights * (rank - more), np.ones(more)]) / rank
    return shares, np.hstack([factors, columns])
