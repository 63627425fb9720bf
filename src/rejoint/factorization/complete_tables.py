"""The default fit to tables: a joint that meets them.

Where a low rank meets the tables and only one model of that rank does, that model is the answer
(the paper's case). Otherwise it is the maximum-entropy completion. Tables of a sample pull instead
of being met, and so do tables that contradict each other.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from rejoint.factorization.complete_approximately import complete_approximately
from rejoint.factorization.max_entropy import (
    CompletionProblem,
    Ipf,
    independent_model,
    make_completion_problem,
)
from rejoint.factorization.problem import check_reached, check_totals, remark_on_islands
from rejoint.factorization.table_choice import TableChoice, choose_for_noisy, find_identified
from rejoint.factorization.table_goals import (
    Goal,
    Near,
    Within,
    contradictions,
    exact_goals,
    infer_rounding,
    near_goals,
)
from rejoint.factorization.table_policy import POLICY
from rejoint.identifiability.certificate import certificate_of
from rejoint.marginals.compare import SAME, expected_distance
from rejoint.marginals.marginals import Marginals
from rejoint.messages import join_messages
from rejoint.pmf.pmf import LowRankPMF
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.session import Session
from rejoint.solver.solver import Run, Stop
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
    for known in iterate_readings(marginals):
        result = choose(known, session) if known.soft else identify(known, session)
        if result is None:
            result = complete(known, session)
        if result is not None and (known.soft or result.starts[0].objective <= POLICY.unmet):
            break
    assert result is not None  # what pulls excludes nothing
    return result


def identify(known: Understood, session: Session) -> FitResult | None:
    """Return the only model of a low rank that meets the tables; None where there is none."""
    found = find_identified(known.tables, session)
    if found is None:
        return None
    rank = found.result.pmf.rank
    choice = f"Rank {rank} meets the tables. {found.certificate}"
    pmf = found.result.pmf.with_tables(known.tables, found.certificate)
    return replace(found.result, pmf=pmf, choice=join_messages([known.text, choice]))


def choose(known: Understood, session: Session) -> FitResult | None:
    """Return a few classes or interactions of few variables, as tables of a sample speak for.

    None where the tables are too large for that.
    """
    with session.convert(partial(conclude_choice, known, stop=Stop.INTERRUPTED)):
        choice = choose_for_noisy(known.tables, session, few_classes=known.tables.noisy)
    return None if choice is None else conclude_choice(known, choice)


def conclude_choice(known: Understood, choice: TableChoice, stop: Stop = Stop.OPTIMAL) -> FitResult:
    """Return the model that was chosen for tables of a sample."""
    found = [] if choice.rank is None else [f"Rank {choice.rank}."]
    if choice.rank is None:
        what = "the table" if len(known.goals) == 1 else f"the {len(known.goals)} tables"
        found.append(
            f"The joint nearest to independence that comes near to {what}, each as its number of "
            f"records demands, as a mixture of {plural(choice.model.rank, 'class', 'classes')} "
            "that mean nothing by themselves."
        )
    done = Run(choice.model, float("nan"), float("nan"), float("nan"), stop)
    result = as_result(known, done, " ".join([*found, choice.text]), "step")
    missed = float(np.mean(list(result.misfits.values())))
    result = replace(
        result,
        stop=f"{_describe_fit(known, done, result.pmf)}{_describe_stop(stop)}.",
        starts=(replace(done, objective=missed),),
    )
    if choice.rank is None or choice.members > 1:
        return result
    certificate = certificate_of(result.pmf, known.tables)
    pmf = result.pmf.with_tables(known.tables, certificate)
    return replace(result, pmf=pmf, classes_are_groups=True)


def _describe_stop(stop: Stop) -> str:
    return f"; {stop.text}" if stop is Stop.INTERRUPTED else ""


def understand(marginals: Marginals) -> Understood:
    """Return what the tables are by what they show themselves: the first of their readings."""
    return next(iterate_readings(marginals))


def iterate_readings(marginals: Marginals) -> Iterator[Understood]:
    """Yield what the tables may be, to be tried in order: exact, rounded, contradicting each other.

    Tables of a sample are just that.
    """
    if marginals.noisy:
        yield Understood(marginals, near_goals(marginals), soft=True)
        return
    if not contradictions(marginals):
        yield Understood(marginals, exact_goals(marginals), soft=False)
    for rounded in infer_rounding(marginals):
        text = _describe_rounding(marginals)
        yield Understood(rounded, exact_goals(rounded), soft=False, text=text)
    yield compromise(marginals)


def _describe_rounding(marginals: Marginals) -> str:
    why = "no joint meets all numbers as they are printed"
    for worst in marginals.disagreements()[:1]:
        if worst.distance > SAME:
            why = (
                f"({', '.join(worst.first)}) and ({', '.join(worst.second)}) differ by "
                f"{worst.distance:.2g} of the mass on {show(worst.shared)}, and others less"
            )
    return (
        f"The numbers of the tables are met within their rounding: {why}, which rounding explains."
    )


def compromise(marginals: Marginals) -> Understood:
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
        text = (
            "No joint meets all tables at once, although those that share variables agree on them."
        )
    text += " The model is a compromise that weighs each table by its number of records."
    return Understood(marginals, near_goals(marginals), soft=True, text=text)


def complete(known: Understood, session: Session) -> FitResult | None:
    """Return the completion of tables as a result; None where their zeros leave no state."""
    levels = known.tables.domain.shape
    problem = make_completion_problem(levels, known.goals)
    if problem is None:
        conclude = partial(conclude_approximation, known)
        return complete_approximately(known.tables, known.goals, session, conclude)
    if not len(problem.states):
        return None
    start = independent_model(levels, known.goals)
    session.unfinished.clear()
    session.offer(partial(_interrupt, known, problem, session))
    solver = Ipf()
    if known.soft:
        solver = Ipf(replace(solver.limits, exact=_settled(known)))
    return conclude_completion(known, problem, run(solver, problem, start, session))


def _settled(known: Understood) -> float:
    """Share of a table's mass that a sweep may still move in tables that pull: little of chance."""
    near = [goal for goal in known.goals if isinstance(goal, Near)]
    chances = [expected_distance(np.maximum(g.shares, 0.0), g.records) for g in near]
    return max(POLICY.settled * float(np.mean(chances or [0.0])), POLICY.met)


def _interrupt(known: Understood, problem: CompletionProblem, session: Session) -> FitResult | None:
    found = session.unfinished.get(0)
    return None if found is None else conclude_completion(known, problem, found)


def conclude_completion(known: Understood, problem: CompletionProblem, done: Run) -> FitResult:
    """Return a completion that is exact."""
    return as_result(known, done, _describe_choice(known, problem), "sweep")


def conclude_approximation(known: Understood, done: Run, text: str) -> FitResult:
    """Return a mixture that approximates a completion."""
    return as_result(known, done, text, "step")


def as_result(known: Understood, done: Run, choice: str, unit: str) -> FitResult:
    """Return a completion with the sentences that say what it is and how it meets the tables."""
    pmf = LowRankPMF.of_model(done.model, known.tables.domain).with_tables(known.tables)
    misfits = {fit.names: fit.distance for fit in known.tables.compare(pmf)}
    error = _relative_error(known.tables, pmf)
    if known.soft and done.stop is Stop.EXACT:
        done = replace(done, stop=Stop.OPTIMAL)
    return FitResult.of(
        pmf,
        [done],
        _describe_fit(known, done, pmf),
        best=replace(done, error=error, residual=float("nan")),
        unit=unit,
        misfits=misfits,
        choice=join_messages([known.text, choice]),
        classes_are_groups=False,
    )


def _describe_choice(known: Understood, problem: CompletionProblem) -> str:
    names = [known.tables.domain.names[n] for n in problem.cover]
    does = "comes near to" if known.soft else "meets"
    number = len(known.goals)
    what = f"the {plural(number, 'table')}" if number > 1 else "the table"
    states = f"one class for each level of {show(names)}" if names else "one class"
    if len(names) > 1:
        states = f"one class for each combination of levels of {show(names)}"
    return (
        f"The joint nearest to independence that {does} {what} (maximum entropy), as a mixture "
        f"with {states}. These classes mean nothing by themselves."
    )


def _describe_fit(known: Understood, done: Run, pmf: LowRankPMF) -> str:
    if known.soft:
        fits = known.tables.compare(pmf)
        mean = sum(fit.distance for fit in fits) / max(len(fits), 1)
        told = [fit.chance for fit in fits if not np.isnan(fit.chance)]
        chance = f" (by chance {sum(told) / len(told):.2g})" if told else ""
        return f"The tables are met to {mean:.2g} of their mass on average{chance}"
    within = ", within the bounds of their numbers" * any(
        isinstance(goal, Within) for goal in known.goals
    )
    if done.objective > POLICY.missed:
        return f"The tables are missed by up to {done.objective:.2g} of the mass of one"
    return (
        f"The tables are met{within}: at most {max(done.objective, 1e-16):.1g} of the mass of one "
        "is in wrong cells"
    )


def _relative_error(tables: Marginals, pmf: LowRankPMF) -> float:
    """Relative error of all tables together, ``||X - Xhat|| / ||X||``."""
    away = size = 0.0
    tables = tables.filled(pmf)
    for i, names in enumerate(tables.subsets):
        shares = tables.shares(i)
        away += float(((pmf.marginal(names) - shares) ** 2).sum())
        size += float((shares**2).sum())
    return float(np.sqrt(away / size)) if size else 0.0
