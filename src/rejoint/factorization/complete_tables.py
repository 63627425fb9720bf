"""The default fit to tables: a joint that meets them.

Where a low rank meets the tables and only one model of that rank does, that model is the answer
(the paper's case). Otherwise it is the maximum-entropy completion. Tables of a sample pull instead
of being met, and so do tables that contradict each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from rejoint.factorization.fit_tables import as_pmf
from rejoint.factorization.max_entropy import (
    Completion,
    CompletionProblem,
    Ipf,
    independent_model,
    make_completion_problem,
)
from rejoint.factorization.problem import check_reached, check_totals, remark_on_islands
from rejoint.factorization.table_goals import (
    Goal,
    contradictions,
    exact_goals,
    infer_rounding,
    near_goals,
)
from rejoint.factorization.table_policy import POLICY
from rejoint.marginals.marginals import Marginals
from rejoint.messages import join_messages
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.session import Session
from rejoint.solver.solver import Run
from rejoint.text import plural, show


@dataclass(frozen=True, eq=False)
class Understood:
    """Tables as they are completed: what is asked of each, and what was found out about them."""

    tables: Marginals
    goals: list[Goal]
    soft: bool
    text: str = ""


def complete_tables(marginals: Marginals, session: Session) -> FitResult:
    """Fit tables by default: the only low-rank model that meets them, else their completion.

    Examples
    --------
    >>> tables = Marginals.from_tables({("smoke", "lung"): [[90, 110], [10, 790]]})
    >>> done = complete_tables(tables, Session(np.random.default_rng(0)))
    >>> done.pmf.marginal(["smoke", "lung"]).round(6)
    array([[0.09, 0.11],
           [0.01, 0.79]])
    """
    check_totals(marginals)
    used = np.flatnonzero(marginals.table_weight > 0)
    check_reached(marginals, [marginals.index_subsets[i] for i in used])
    remark_on_islands(marginals)
    known = understand(marginals)
    result = complete(known, session)
    if not known.soft and result.misfits and max(_unmet(result, known)) > POLICY.unmet:
        return complete(compromise(marginals, result), session)
    return result


def understand(marginals: Marginals) -> Understood:
    """Find out whether tables can be met, are rounded, of a sample, or contradict each other."""
    if marginals.noisy:
        return Understood(marginals, near_goals(marginals), soft=True)
    if not contradictions(marginals):
        return Understood(marginals, exact_goals(marginals), soft=False)
    rounded = infer_rounding(marginals)
    if rounded is not None:
        worst = marginals.disagreements()[0]
        text = (
            f"Tables ({', '.join(worst.first)}) and ({', '.join(worst.second)}) differ by "
            f"{worst.distance:.2g} of the mass on {show(worst.shared)}, and others less: no more "
            "than the rounding of their numbers explains, so numbers are met within that."
        )
        return Understood(rounded, exact_goals(rounded), soft=False, text=text)
    return compromise(marginals)


def compromise(marginals: Marginals, tried: FitResult | None = None) -> Understood:
    """Tables that cannot all be met: each pulls as its number of records does."""
    found = contradictions(marginals)
    if found:
        shown = "; ".join(
            f"({', '.join(first)}) and ({', '.join(second)}) by {distance:.2g} of the mass"
            for first, second, distance in found[:3]
        )
        more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
        text = f"The tables contradict each other: {shown}{more}."
    else:
        assert tried is not None
        worst, distance = next(iter(tried.misfits.items()))
        text = (
            "No joint meets all tables at once, although those that share variables agree on them: "
            f"({', '.join(worst)}) was missed by {distance:.2g} of its mass."
        )
    text += " The model is a compromise that weighs each table by its number of records."
    return Understood(marginals, near_goals(marginals), soft=True, text=text)


def complete(known: Understood, session: Session) -> FitResult:
    """Return the completion of tables as a result."""
    levels = known.tables.domain.shape
    problem = make_completion_problem(levels, known.goals)
    if problem is None:
        raise NotImplementedError
    start = independent_model(levels, known.goals)
    session.unfinished.clear()
    session.offer(lambda: _interrupted(known, problem, session))
    done = run(Ipf(), problem, start, session)
    return as_result(known, problem, done)


def _interrupted(
    known: Understood, problem: CompletionProblem, session: Session
) -> FitResult | None:
    found = session.unfinished.get(0)
    return None if found is None else as_result(known, problem, found)


def as_result(known: Understood, problem: CompletionProblem, done: Run) -> FitResult:
    """The completion as a result, with the sentences that say what it is and how it meets tables."""
    pmf = as_pmf(done.model, known.tables)
    fits = known.tables.compare(pmf)
    ...
    raise NotImplementedError
