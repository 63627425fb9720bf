"""From marginals to the joint: the paper's step S2, by several solvers.

By default it is a joint that meets the tables. Where a low rank meets them and only one model of
that rank does, that model is the answer (the paper's case). Otherwise it is the maximum-entropy
completion. Tables of a sample pull instead of being met, and so do tables that contradict each
other.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rejoint.check import check_positive_int, whole_or_auto
from rejoint.cost import Cost
from rejoint.factorization.all_tables import AllTables, fit_all_tables
from rejoint.factorization.complete_approximately import complete_approximately
from rejoint.factorization.early_stop import Smooth, fit_smooth
from rejoint.factorization.fit_tables import (
    AnySolver,
    Auto,
    as_method,
    as_start,
    describe_miss,
    fit_tables,
    lift_seen,
    make_result,
)
from rejoint.factorization.kl import Kl
from rejoint.factorization.loss import SQUARES, Loss, as_loss
from rejoint.factorization.max_entropy import (
    CompletionProblem,
    Ipf,
    independent_model,
    make_completion_problem,
)
from rejoint.factorization.problem import (
    check_reached,
    check_totals,
    make_problem,
    remark_on_islands,
)
from rejoint.factorization.table_choice import (
    TableChoice,
    choose_for_noisy,
    find_identified,
    update_older,
)
from rejoint.factorization.table_goals import (
    Goal,
    Near,
    Within,
    contradictions,
    exact_goals,
    exclude_impossible,
    infer_rounding,
    near_goals,
)
from rejoint.factorization.table_policy import POLICY
from rejoint.identifiability.assessment import assess_tables
from rejoint.identifiability.certificate import certificate_of
from rejoint.marginals.compare import SAME, expected_distance
from rejoint.marginals.marginals import Marginals
from rejoint.marginals.moments import Moment
from rejoint.messages import Progress, join_messages, remark
from rejoint.model import Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.search import OnInterrupt, interruptible
from rejoint.solver.session import Session, one_blas_thread
from rejoint.solver.solver import Run, Stop
from rejoint.text import plural, show

if TYPE_CHECKING:
    from rejoint.rank.selection import Selection


def factorize(
    marginals: Marginals | AllTables,
    rank: int | Literal["auto"] = "auto",
    solver: str | AnySolver | Auto | Smooth = "auto",
    *,
    start: LowRankPMF | Literal["random", "algebraic"] | None = None,
    n_init: int = 10,
    weighting: Literal["equal", "count"] = "equal",
    loss: str | Loss | None = None,
    older: Collection[str | Sequence[str]] = (),
    random_state: int | np.random.Generator | None = None,
    progress: bool | None = None,
    on_interrupt: OnInterrupt = "raise",
) -> FitResult:
    """Find a joint that meets tables: of low rank where only one does, else of maximum entropy.

    With a rank, find the joint of that rank whose tables are nearest to the given ones. This
    minimizes ``1/2 sum_S omega_S || X_S - Xhat_S ||^2`` over weights and factor columns on the
    simplex, for tables of any orders and any set of subsets that holds every variable.

    Parameters
    ----------
    marginals : Marginals or AllTables
        The tables, and moments if any; or records whose tables are too many to be formed.
    rank : int or "auto"
        Number of hidden classes, F. By default it is what a joint needs that meets the tables:
        ``choice`` says which joint that is. Where a solver, a start or a loss is given as well,
        it is chosen by the BIC of the tables (see :func:`rejoint.rank.select_tables`).
    solver : {"auto", "algebraic", "admm", "newton", "kl", "smooth"} or solver object
        ``"algebraic"`` solves an eigenvalue problem, for triples or quadruples; ``"admm"`` is
        the paper's alternating optimization; ``"newton"`` is Levenberg-Marquardt; ``"auto"``
        starts algebraically where it can, else by ADMM, and polishes by Newton; ``"kl"`` goes
        on from there to minimize ``sum_S omega_S KL(X_S || Xhat_S)`` instead of squares.
        ``"smooth"`` is for tables that were never seen: the mean of models of many classes
        that EM is ended early on, whose classes mean nothing (:class:`Smooth`).
        Objects (:class:`Admm`, ...) have parameters of their own.
    start : LowRankPMF, "random" or "algebraic", optional
        Where to begin; a model is the only start then. By default the solver chooses.
    n_init : int
        Starts at the most; fewer are run once one fits exactly or several agree, to a hundredth of
        what sampling noise leaves where tables are counts.
    weighting : {"equal", "count"}
        Whether tables count the same, as in the paper, or by their number of records, which
        is better where cells are missing unevenly. Multiplies ``marginals.table_weight``.
    loss : {"squares", "kl"} or loss object, optional
        What is minimized in place of squares; by default what the solver minimizes. Any object
        with the parts of :class:`rejoint.factorization.loss.Loss` will do; it begins where least
        squares ends, unless ``start`` is given.
    older : collection of names of variables
        Tables of an earlier time, each by the variables it holds: ``[("age", "sex")]``. Their odds
        ratios count, and not the shares that other tables have, too.
    random_state : int or Generator, optional
        Source of randomness.
    progress : bool, optional
        Whether to show progress on stderr; by default where that is a terminal.
    on_interrupt : {"raise", "return"}
        What Ctrl-C does: raise :class:`~rejoint.solver.FitInterrupted`, whose ``result`` is the
        best model so far, or return that result.

    Returns
    -------
    FitResult
        With ``pmf``, ``stop`` (why it stopped, in words) and ``history``.

    Notes
    -----
    Tables counted from incomplete records are unbiased only if cells are missing completely at
    random. From tables that are counts, ``"auto"`` excludes no level that was seen from any class:
    it is at least as probable there as one record more would make it. Where the tables leave the
    joint open at this rank (pairs always do), a remark and ``stop`` say so: see
    ``identifiability``.

    Examples
    --------
    >>> import rejoint as rj
    >>> truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    >>> tables = rj.Marginals.from_pmf(truth, order=3)
    >>> result = rj.factorize(tables, rank=2)
    >>> rj.metrics.tensor_error(truth, result.pmf) < 1e-10
    True
    """
    if not isinstance(marginals, Marginals | AllTables):
        raise TypeError(
            f"factorize takes Marginals, got {type(marginals).__name__}; make them by "
            "rj.Marginals.count(records) or rj.Marginals.from_tables(tables)."
        )
    rank = whole_or_auto("rank", rank)
    marginals, said = _update(marginals, older)
    options: dict[str, Any] = {"start": start, "n_init": n_init, "weighting": weighting}
    with Progress(progress) as report, one_blas_thread():
        session = Session(np.random.default_rng(random_state), report)
        possible = _without_impossible(marginals)

        def fit() -> FitResult:
            options["n_init"] = check_positive_int("n_init", n_init)
            smooth = isinstance(solver, Smooth) or solver == "smooth"
            if loss is not None and (smooth or isinstance(marginals, AllTables)):
                what = "AllTables" if isinstance(marginals, AllTables) else "solver='smooth'"
                raise ValueError(f"{what} has its own loss: leave out loss.")
            if isinstance(marginals, AllTables):
                rank_given = _rank_of_all_tables(marginals, rank, smooth)
                return fit_all_tables(marginals, rank_given, solver, session, **options)
            if smooth:
                return _fit_smooth(possible, rank, solver, start, weighting, session)
            untold = rank == "auto" and solver == "auto" and start is None and loss is None
            if untold and weighting == "equal":
                return complete_tables(marginals, session)
            divergence = loss is not None or solver == "kl" or isinstance(solver, Kl)
            held = possible if divergence else marginals
            return _fit_identified(held, rank, solver, session, loss=loss, **options)

        def fit_and_attach() -> FitResult:
            attach = partial(_attach_tables, marginals, said)
            with session.convert(attach):
                return attach(fit())

        return interruptible(session, fit_and_attach, on_interrupt)


#: Seconds of a cell, class and start of a fit of a told rank, at the least and at the most; as
#: seen at 15 variables of 3 levels to 12 of 6, with ranks 4 to 20.
SECONDS = (1e-6, 5e-6)

#: Copies of the tables and of the model that such a fit holds.
TABLE_COPIES, MODEL_COPIES = 8, 60


def _check_cost(marginals: Marginals, rank: int, starts: int) -> None:
    """Raise an error if memory does not suffice; remark if the fit takes minutes."""
    cells = len(marginals.flat)
    memory = 8.0 * (TABLE_COPIES * cells + MODEL_COPIES * sum(marginals.domain.shape) * rank)
    low, high = (cells * rank * starts * seconds for seconds in SECONDS)
    what = f"A fit of rank {rank:,} to {plural(cells, 'cell')} of tables"
    Cost(memory, low, high).check(what, "a smaller rank, fewer tables or fewer starts take less")


def _update(
    marginals: Marginals | AllTables, older: Collection[str | Sequence[str]]
) -> tuple[Marginals | AllTables, str]:
    """The tables with older ones brought up to date, and what is said of that."""
    if not older:
        return marginals, ""
    if isinstance(marginals, AllTables):
        raise ValueError("The tables of AllTables are of one time: leave out older.")
    held = [frozenset(names) for names in marginals.subsets]
    places = []
    for names in older:
        asked = frozenset([names] if isinstance(names, str) else names)
        if asked not in held:
            raise ValueError(
                f"older: there is no table of {show(sorted(asked))}; there are "
                f"{show([', '.join(names) for names in marginals.subsets])}."
            )
        places.append(held.index(asked))
    if len(set(places)) == len(held):
        raise ValueError("older: all tables are older ones; name those that others are newer than.")
    listed = " and ".join(f"({', '.join(marginals.subsets[i])})" for i in places)
    text = f"Of {listed}, which is older, odds ratios count: its margins are those of other tables."
    return update_older(marginals, places), text


def _without_impossible(marginals: Marginals | AllTables) -> Any:
    """The tables without what is said of impossible combinations, which hold in the end."""
    if isinstance(marginals, AllTables):
        return marginals
    kept = tuple(moment for moment in marginals.moments if not moment.excludes)
    return replace(marginals, moments=kept) if len(kept) < len(marginals.moments) else marginals


def _attach_tables(marginals: Marginals | AllTables, said: str, result: FitResult) -> FitResult:
    """The result, whose model knows the tables that it was fitted to."""
    if isinstance(marginals, Marginals) and any(
        moment.excludes and moment.expectation(result.pmf.marginal(_names(marginals, moment))) > 0
        for moment in marginals.moments
    ):
        pmf = exclude_impossible(result.pmf, marginals).with_tables(marginals)
        result = replace(result, pmf=pmf, classes_are_groups=False)
    if said:
        result = replace(result, choice=join_messages([said, result.choice]))
    if result.pmf.tables is not None or isinstance(marginals, AllTables):
        return result
    return replace(result, pmf=result.pmf.with_tables(marginals))


def _names(marginals: Marginals, moment: Moment) -> list[str]:
    return [marginals.domain.names[n] for n in moment.variables]


def _rank_of_all_tables(tables: AllTables, rank: Any, smooth: bool) -> int:
    """The rank for AllTables; refuses what needs tables that are counted."""
    if smooth:
        raise ValueError(
            "solver='smooth' needs tables, which AllTables never forms: use solver='admm', or "
            "count some tables with rj.Marginals.count."
        )
    if rank == "auto":
        raise ValueError(
            "AllTables needs a rank, because choosing it needs tables that are counted: give "
            f"rank=..., for example rj.rank.select(records).rank of the "
            f"{plural(len(tables.records), 'record')}."
        )
    return int(rank)


def _fit_smooth(
    marginals: Marginals, rank: Any, solver: Any, start: Any, weighting: str, session: Session
) -> FitResult:
    if start not in (None, "random"):
        raise ValueError("solver='smooth' starts at random: leave out start.")
    smooth = Smooth() if isinstance(solver, str) else solver
    classes = smooth.rank(marginals) if rank == "auto" else rank
    return fit_smooth(marginals, smooth, classes, weighting, session)


def _fit_identified(
    marginals: Marginals,
    rank: Any,
    solver: Any,
    session: Session,
    **options: Any,
) -> FitResult:
    """Fit a rank, chosen if need be, and say what the tables leave open at it."""
    # What is not possible is refused before the long part.
    selection, solver = None, as_method(solver)
    as_start(options["start"], marginals, rank)
    if rank == "auto":
        make_problem(marginals, options["weighting"], as_loss(options["loss"] or SQUARES))
        # Loading rank loads the front of this package, and so this file.
        from rejoint.rank.from_tables import select_rank_of_tables

        with session.convert(partial(_result_of_selection, marginals, options["weighting"])):
            selection = select_rank_of_tables(marginals, 2, session)
        rank = selection.rank
    _check_cost(marginals, rank, options["n_init"])
    chosen = {"choice": selection.words, "selection": selection} if selection else {}

    # Without the rank such a fit is one that meets the tables.
    alone = selection is None and isinstance(solver, Auto) and options["weighting"] == "equal"
    alone = alone and options["start"] is None and options["loss"] is None

    def finish(result: FitResult) -> FitResult:
        squares = as_loss(options["loss"] or SQUARES) is SQUARES
        if isinstance(solver, Auto) and squares and not result.interrupted:
            result = lift_seen(result, marginals, options["weighting"])
        if alone and not result.interrupted:
            said = join_messages([result.stop, describe_miss(result, marginals)])
            result = replace(result, stop=said)
        return _add_assessment(marginals, chosen, result)

    with session.convert(finish):
        result = fit_tables(marginals, rank, solver, session, **options)
    return finish(result)


def _result_of_selection(
    marginals: Marginals, weighting: str, selection: "Selection"
) -> FitResult | None:
    """The result if the fit is interrupted while the rank is chosen."""
    problem = make_problem(marginals, weighting)
    model = as_start(selection.pmf, marginals, selection.rank)
    if not isinstance(model, Model):
        return None
    error = problem.relative_error(model)
    only = Run(model, problem.value(model), float("nan"), error, Stop.INTERRUPTED)
    result = make_result(problem, marginals, [only])
    return replace(result, choice=selection.words, selection=selection)


def _add_assessment(marginals: Marginals, chosen: dict[str, Any], result: FitResult) -> FitResult:
    """Add how the rank was chosen and what the tables leave open, and warn of the latter."""
    found = assess_tables(marginals, result.pmf)
    if found.serious:
        remark(found.text)
    if found:
        chosen = {**chosen, "stop": join_messages([result.stop, found.text])}
    certificate = None if result.interrupted else certificate_of(result.pmf, marginals)
    return replace(result, pmf=result.pmf.with_tables(marginals, certificate), **chosen)


@dataclass(frozen=True, eq=False)
class Understood:
    """Tables to complete: the goal of each, and what was found out about them."""

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
    """Return few classes or interactions of few variables, whichever a sample supports.

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
        which = "The joint nearest to independence that approximates"
        if choice.members > 1:
            which = f"The mean of {plural(choice.members, 'model')} that approximate"
        found.append(
            f"{which} {what}, each as closely as its number of records demands, as a mixture of "
            f"{plural(choice.model.rank, 'class', 'classes')} that have no meaning of their own."
        )
    done = Run(choice.model, float("nan"), float("nan"), float("nan"), stop)
    result = as_result(known, done, " ".join([*found, choice.text]))
    missed = float(np.mean(list(result.misfits.values())))
    cut_short = stop is Stop.INTERRUPTED
    result = replace(
        result,
        stop=_describe_fit(known, done, result.pmf) + (f"; {stop.text}." if cut_short else "."),
        starts=(replace(done, objective=missed),),
    )
    if choice.rank is None or choice.members > 1:
        return result
    certificate = certificate_of(result.pmf, known.tables)
    pmf = result.pmf.with_tables(known.tables, certificate)
    return replace(result, pmf=pmf, classes_are_groups=True)


def understand(marginals: Marginals) -> Understood:
    """Return the first interpretation of the tables."""
    return next(iterate_readings(marginals))


def iterate_readings(marginals: Marginals) -> Iterator[Understood]:
    """Yield interpretations of the tables, to be tried in order: exact, rounded, contradictory.

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
        conclude = partial(as_result, known)
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


def as_result(known: Understood, done: Run, choice: str, unit: str = "step") -> FitResult:
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
    does = "approximates" if known.soft else "meets"
    number = len(known.goals)
    what = f"the {plural(number, 'table')}" if number > 1 else "the table"
    states = f"one class for each level of {show(names)}" if names else "one class"
    if len(names) > 1:
        states = f"one class for each combination of levels of {show(names)}"
    return (
        f"The joint nearest to independence that {does} {what} (maximum entropy), as a mixture "
        f"with {states}. These classes have no meaning of their own."
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
