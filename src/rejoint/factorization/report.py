"""What a fit says of itself: why it stopped, how well the tables are met, what to try."""

from collections.abc import Sequence

import numpy as np

from rejoint.factorization.problem import Problem, cell_rows
from rejoint.factorization.search import SOLVED
from rejoint.factorization.unfolding import khatri_rao
from rejoint.marginals import Marginals
from rejoint.solver import Run

REASONS = {
    "exact": "the fit is exact",
    "optimal": "no step lowers the objective any more",
    "progress": "the objective has stopped falling",
    "stalled": "sweeps no longer lower the objective: raise inner, or try solver='newton'",
    "steps": "the limit of steps was reached while it was still falling: raise max_steps",
    "interrupted": "interrupted; this is the best model so far",
}


def words(runs: Sequence[Run], best: Run, rank: int) -> str:
    """Say why the search ended, with the residual, and what to try."""
    interrupted = any(run.reason == "interrupted" for run in runs)
    reason = REASONS["interrupted" if interrupted else best.reason]
    steps = sum(record.step > 0 for run in runs for record in run.records)
    effort = f"{steps} steps from {len(runs)} start{'s' if len(runs) > 1 else ''}"
    if best.error <= SOLVED:
        return f"The tables are met exactly: relative error {best.error:.1e} after {effort}."
    text = (
        f"The tables are met to a relative error of {best.error:.2g} after {effort}; "
        f"{reason} (residual {best.residual:.1e})."
    )
    if interrupted or best.reason == "steps":
        return text
    return f"{text} What is left is sampling noise, tables that disagree, or a rank above {rank}."


def misfits(problem: Problem, marginals: Marginals, best: Run) -> dict[tuple[str, ...], float]:
    """Total variation distance between each table and the model's, worst first."""
    found = {}
    for i, names in enumerate(marginals.subsets):
        rows = cell_rows(problem, marginals.index_subsets[i])
        model = khatri_rao(best.factors, rows) @ best.weights
        found[names] = 0.5 * float(np.abs(marginals.shares(i).ravel() - model).sum())
    return dict(sorted(found.items(), key=lambda item: -item[1]))
