"""Where estimation begins: random models, and the joint that the records' tables give."""

from math import comb
from typing import Any

import numpy as np

from rejoint.estimation.problem import Array, RecordProblem
from rejoint.factorization import Admm, Auto, factorize
from rejoint.factorization.starts import spread_model
from rejoint.marginals import Marginals
from rejoint.records import Records
from rejoint.solver import Limits

Model = tuple[Array, Array]

#: Tables of three variables are worth their cost as a start up to so many cells.
MOST_CELLS = 2_000_000


def random_model(problem: RecordProblem, rank: int, rng: np.random.Generator) -> Model:
    """Even weights, and columns drawn around each variable's own shares."""
    shares = [problem.centre[problem.rows(n)] for n in range(len(problem.levels))]
    return spread_model(shares, rank, rng)


def tables_pay(problem: RecordProblem, rank: int) -> bool:
    """Whether a start from tables of three variables is possible and cheap enough."""
    size = len(problem.levels)
    cells = comb(size, 3) * np.mean(problem.levels) ** 3
    enough = problem.total > 10 * rank
    return bool(rank > 1 and size >= 3 and cells <= MOST_CELLS and enough)


def model_from_tables(problem: RecordProblem, rank: int, rng: np.random.Generator) -> Model | None:
    """The least-squares joint of the records' triples, moved off the walls; None if none fits."""
    records = Records(problem.domain, problem.codes, problem.weight)
    tables = Marginals.count(records, order=3, threads=problem.threads)
    if float(tables.totals.min()) <= 0:
        return None
    # With many records the tables are nearly exact, and a thorough fit of them saves passes.
    thorough = problem.total > 100 * problem.parameters(rank)
    solver = Auto() if thorough else Admm(limits=Limits(max_steps=60, progress=1e-3))
    options: dict[str, Any] = {"n_init": 1, "random_state": rng, "progress": False}
    options["start"] = None if thorough else "algebraic"
    result = factorize(tables, rank, solver, **options)
    if any(r.reason == "interrupted" for r in result.starts):
        raise KeyboardInterrupt  # caught there, but meant for the whole estimate
    found = result.pmf
    # Zeros stay zeros under EM: mix with independence a little, the less the more records.
    share = min(0.1, float(np.sqrt(problem.parameters(rank) / problem.total)))
    factors = (1 - share) * np.vstack(found.factors) + share * problem.centre[:, None]
    return (1 - share) * np.asarray(found.weights) + share / rank, factors
