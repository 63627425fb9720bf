"""What a fit says of itself: why it stopped, how well the tables are met, what to try."""

from collections.abc import Sequence

import numpy as np

from rejoint.factorization.problem import Problem, cell_rows
from rejoint.factorization.search import SOLVED
from rejoint.factorization.unfolding import khatri_rao
from rejoint.marginals import Marginals
from rejoint.solver import Run

_REASONS = {
    "exact": "the fit is exact",
    "optimal": "no step lowers the objective any more",
    "progress": "the objective has stopped falling",
    "steps": "the limit of steps was reached while it was still falling: raise max_steps",
    "interrupted": "interrupted; this is the best model so far",
}


def words(runs: Sequence[Run], best: Run, problem: Problem, rank: int) -> str:
    """Say why the search ended, with the residual, and what to try."""
    interrupted = any(run.reason == "interrupted" for run in runs)
    reason = _REASONS["interrupted" if interrupted else best.reason]
    steps = sum(record.step > 0 for run in runs for record in run.records)
    effort = f"{steps} steps from {len(runs)} start{'s' if len(runs) > 1 else ''}"
    if best.error <= SOLVED:
        met = f"The tables are met exactly: relative error {best.error:.1e} after {effort}."
        return met + open_directions(problem, rank)
    text = (
        f"The tables are met to a relative error of {best.error:.2g} after {effort}; "
        f"{reason} (residual {best.residual:.1e})."
    )
    if interrupted or best.reason == "steps":
        return text
    text += f" What is left is sampling noise, tables that disagree, or a rank above {rank}."
    return text + open_directions(problem, rank)


def open_directions(problem: Problem, rank: int) -> str:
    """Say that pairs leave the joint open: an orthogonal mixing of classes keeps them."""
    orders = [*map(len, problem.subsets), *(m.family.order for m in problem.moments)]
    if rank == 1 or len(problem.levels) < 3 or max(orders) > 2:
        return ""
    free = rank * (rank - 1) // 2
    return (
        f" Tables of two variables leave at least {free} direction{'s' if free > 1 else ''} of a "
        f"rank {rank} joint open: many other joints meet them as well, this is one. Add tables "
        "of three variables."
    )


def misfits(problem: Problem, marginals: Marginals, best: Run) -> dict[tuple[str, ...], float]:
    """Total variation distance between each table and the model's, worst first."""
    found = {}
    for i, names in enumerate(marginals.subsets):
        rows = cell_rows(problem, marginals.index_subsets[i])
        model = khatri_rao(best.factors, rows) @ best.weights
        found[names] = 0.5 * float(np.abs(marginals.shares(i).ravel() - model).sum())
    return dict(sorted(found.items(), key=lambda item: -item[1]))
