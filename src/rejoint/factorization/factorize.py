"""From marginals to the joint: the paper's step S2, by several solvers.

By default it is a joint that meets the tables. Where a low rank meets them and only one model of
that rank does, that model is the answer (the paper's case). Otherwise it is the maximum-entropy
completion. Tables of a sample, and tables that contradict each other, have soft goals.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rejoint.check import check_positive_int, whole_or_auto
from rejoint.cost import Cost
from rejoint.factorization.complete_approximately import complete_approximately
from rejoint.factorization.exact_rank import fit_identified
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
from rejoint.factorization.pooled_tables import update_older
from rejoint.factorization.problem import (
    check_reached,
    check_totals,
    make_problem,
    remark_on_islands,
)
from rejoint.factorization.smooth import Smooth, fit_smooth
from rejoint.factorization.table_choice import TableChoice, choose_for_sample
from rejoint.factorization.table_goals import (
    Goal,
    IntervalGoal,
    SoftGoal,
    contradictions,
    exact_goals,
    exclude_impossible,
    infer_rounding,
    soft_goals,
)
from rejoint.factorization.table_policy import POLICY
from rejoint.factorization.unfolding import FlatTables
from rejoint.identifiability.assessment import assess_tables
from rejoint.identifiability.certificate import certificate_of
from rejoint.kernels.backend import one_blas_thread
from rejoint.marginals.compare import SAME, expected_distance
from rejoint.marginals.marginals import Marginals
from rejoint.messages import Progress, join_messages, remark
from rejoint.model import Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.search import OnInterrupt, interruptible
from rejoint.solver.session import Session
from rejoint.solver.solver import Run, Stop
from rejoint.text import plural, show

if TYPE_CHECKING:
    from rejoint.rank.selection import Selection


def factorize(
    marginals: Marginals,
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
    marginals : Marginals
        The tables, and moments if any.
    rank : int or "auto"
        Number of hidden classes, F. By default it is what a joint needs that meets the tables:
        ``choice`` says which joint that is. Where a solver, a start or a loss is given as well,
        it is chosen by the BIC of the tables (see :func:`rejoint.rank.select_tables`).
    solver : {"auto", "algebraic", "pairs", "admm", "newton", "kl", "smooth"} or solver object
        ``"algebraic"`` solves an eigenvalue problem, for triples or quadruples; ``"pairs"`` finds
        levels that only one class has, for pairs; ``"admm"`` is the paper's alternating
        optimization; ``"newton"`` is Levenberg-Marquardt; ``"auto"`` starts by one of the first two
        where it can, else by ADMM, and polishes by Newton; ``"kl"`` goes
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
        What Ctrl-C does: raise :class:`~rejoint.FitInterrupted`, whose ``result`` is the
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
    if not isinstance(marginals, Marginals):
        raise TypeError(
            f"factorize takes Marginals, got {type(marginals).__name__}; make them by "
            "rj.Marginals.count(records) or rj.Marginals.from_tables(tables)."
        )
    rank, n_init = whole_or_auto("rank", rank), check_positive_int("n_init", n_init)
    is_smooth = isinstance(solver, Smooth) or solver == "smooth"
    if loss is not None and is_smooth:
        raise ValueError("solver='smooth' has its own loss: leave out loss.")
    tables, note = update_older(marginals, older)
    moments = tuple(moment for moment in tables.moments if not moment.excludes)
    possible = replace(tables, moments=moments) if len(moments) < len(tables.moments) else tables

    def fit(session: Session) -> FitResult:
        if is_smooth:
            return _fit_smooth(possible, rank, solver, start, weighting, session)
        is_default = rank == "auto" and solver == "auto" and start is None and loss is None
        if is_default and weighting == "equal":
            return complete_tables(tables, session)
        # No divergence is taken of impossible combinations: they are excluded at the end.
        is_divergence = loss is not None or solver == "kl" or isinstance(solver, Kl)
        options: dict[str, Any] = {"start": start, "n_init": n_init, "weighting": weighting}
        given = possible if is_divergence else tables
        return _fit_of_rank(given, rank, solver, session, loss=loss, **options)

    def fit_and_attach(session: Session) -> FitResult:
        attach = partial(_attach_tables, tables, note)
        with session.convert(attach):
            return attach(fit(session))

    with Progress(progress) as report, one_blas_thread():
        session = Session(np.random.default_rng(random_state), report)
        return interruptible(session, partial(fit_and_attach, session), on_interrupt)


def _attach_tables(marginals: Marginals, note: str, result: FitResult) -> FitResult:
    """The result, whose model knows the tables that it was fitted to."""
    names = marginals.domain.names
    if any(
        moment.excludes
        and moment.expectation(result.pmf.marginal([names[n] for n in moment.variables])) > 0
        for moment in marginals.moments
    ):
        pmf = exclude_impossible(result.pmf, marginals).with_tables(marginals)
        result = replace(result, pmf=pmf, classes_are_groups=False)
    if note:
        result = replace(result, choice=join_messages([note, result.choice]))
    if result.pmf.tables is not None:
        return result
    return replace(result, pmf=result.pmf.with_tables(marginals))


def _fit_smooth(
    marginals: Marginals, rank: Any, solver: Any, start: Any, weighting: str, session: Session
) -> FitResult:
    if start not in (None, "random"):
        raise ValueError("solver='smooth' starts at random: leave out start.")
    smooth = Smooth() if isinstance(solver, str) else solver
    classes = smooth.rank(marginals) if rank == "auto" else rank
    return fit_smooth(marginals, smooth, classes, weighting, session)


def _fit_of_rank(
    marginals: Marginals, rank: Any, solver: Any, session: Session, **options: Any
) -> FitResult:
    """Fit a rank, chosen if need be, and say what the tables leave open at it."""
    # What is not possible is refused before the long part.
    selection, solver = None, as_method(solver)
    as_start(options["start"], marginals, rank)
    is_squares = as_loss(options["loss"] or SQUARES) is SQUARES
    if rank == "auto":
        make_problem(marginals, options["weighting"], as_loss(options["loss"] or SQUARES))
        # Loading rank loads the front of this package, and so this file.
        from rejoint.rank.from_tables import select_rank_of_tables

        with session.convert(partial(_result_of_selection, marginals, options["weighting"])):
            selection = select_rank_of_tables(marginals, 2, session)
        rank = selection.rank
    numbers = POLICY.table_copies * len(marginals.flat)
    numbers += POLICY.model_copies * sum(marginals.domain.shape) * rank
    what = f"A fit of rank {rank:,} to {plural(len(marginals.flat), 'cell')} of tables"
    Cost(8.0 * numbers).check(what, "a smaller rank or fewer tables take less")
    # Without the rank such a fit is one that meets the tables.
    is_plain = selection is None and isinstance(solver, Auto) and options["weighting"] == "equal"
    is_plain = is_plain and options["start"] is None and options["loss"] is None

    def finish(result: FitResult) -> FitResult:
        if isinstance(solver, Auto) and is_squares and not result.interrupted:
            result = lift_seen(result, marginals, options["weighting"])
        stop = [result.stop]
        if is_plain and not result.interrupted:
            stop.append(describe_miss(result, marginals))
        assessment = assess_tables(marginals, result.pmf)
        if assessment.serious:
            remark(assessment.text)
        certificate = None if result.interrupted else certificate_of(result.pmf, marginals)
        pmf = result.pmf.with_tables(marginals, certificate)
        result = replace(result, pmf=pmf, stop=join_messages([*stop, assessment.text]))
        if selection is None:
            return result
        return replace(result, choice=selection.words, selection=selection)

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


@dataclass(frozen=True, eq=False)
class Interpretation:
    """Tables to complete: the goal of each, and what was found out about them."""

    tables: Marginals
    goals: list[Goal]
    soft: bool
    text: str = ""


def complete_tables(marginals: Marginals, session: Session) -> FitResult:
    """Fit tables by default: the only low-rank model that meets them, else their completion."""
    check_totals(marginals)
    used = np.flatnonzero(marginals.table_weight > 0)
    check_reached(marginals, [marginals.index_subsets[i] for i in used])
    remark_on_islands(marginals)
    for reading in interpretations(marginals):
        result = None
        if reading.soft:
            result = fit_sampled(reading, session)
        else:
            result = fit_identified(reading.tables, session)
        if result is None:
            result = fit_completion(reading, session)
        elif reading.text:
            result = replace(result, choice=join_messages([reading.text, result.choice]))
        if result is not None and (reading.soft or result.starts[0].objective <= POLICY.unmet):
            break
    assert result is not None  # soft goals exclude nothing
    return result


def interpret(marginals: Marginals) -> Interpretation:
    """Return the first interpretation of the tables."""
    return next(interpretations(marginals))


def interpretations(marginals: Marginals) -> Iterator[Interpretation]:
    """Yield interpretations of the tables, to be tried in order: exact, rounded, contradictory.

    Tables of a sample are just that.
    """
    if marginals.noisy:
        yield Interpretation(marginals, soft_goals(marginals), soft=True)
        return
    conflicts = contradictions(marginals)
    if not conflicts:
        yield Interpretation(marginals, exact_goals(marginals), soft=False)
    for rounded in infer_rounding(marginals):
        why = "no joint meets all numbers as they are printed"
        for worst in marginals.disagreements()[:1]:
            if worst.distance > SAME:
                why = (
                    f"({', '.join(worst.first)}) and ({', '.join(worst.second)}) differ by "
                    f"{worst.distance:.2g} of the mass on {show(worst.shared)}, and others less"
                )
        text = (
            f"The numbers of the tables are met within their rounding: {why}, which rounding "
            "explains."
        )
        yield Interpretation(rounded, exact_goals(rounded), soft=False, text=text)
    text = "No joint meets all tables at once, although those that share variables agree on them."
    if conflicts:
        pairs = "; ".join(
            f"({', '.join(first)}) and ({', '.join(second)}) by {distance:.2g} of the mass"
            for first, second, distance in conflicts[:3]
        )
        more = f"; and {len(conflicts) - 3} more" if len(conflicts) > 3 else ""
        text = f"The tables contradict each other: {pairs}{more}."
    text += " The model is a compromise that weighs each table by its number of records."
    yield Interpretation(marginals, soft_goals(marginals), soft=True, text=text)


def fit_sampled(reading: Interpretation, session: Session) -> FitResult | None:
    """Return few classes or interactions of few variables, whichever a sample supports.

    None where the tables are too large for that.
    """
    with session.convert(partial(_result_of_choice, reading, stop=Stop.INTERRUPTED)):
        choice = choose_for_sample(reading.tables, session, few_classes=reading.tables.noisy)
    return None if choice is None else _result_of_choice(reading, choice)


def _result_of_choice(
    reading: Interpretation, choice: TableChoice, stop: Stop = Stop.OPTIMAL
) -> FitResult:
    """The model that was chosen for tables of a sample, as a result."""
    text = f"Rank {choice.rank}."
    if choice.rank is None:
        number = len(reading.goals)
        tables = "the table" if number == 1 else f"the {number} tables"
        which = "The joint nearest to independence that approximates"
        if choice.members > 1:
            which = f"The mean of {plural(choice.members, 'model')} that approximate"
        text = (
            f"{which} {tables}, each as closely as its number of records demands, as a mixture of "
            f"{plural(choice.model.rank, 'class', 'classes')} that have no meaning of their own."
        )
    done = Run(choice.model, float("nan"), float("nan"), float("nan"), stop)
    result = _as_result(reading, f"{text} {choice.text}", "step", done)
    missed = float(np.mean(list(result.misfits.values())))
    cut = f"; {stop.text}" if stop is Stop.INTERRUPTED else ""
    text = f"{_describe_fit(reading, done, result.pmf)}{cut}."
    result = replace(result, stop=text, starts=(replace(done, objective=missed),))
    if choice.rank is None or choice.members > 1:
        return result
    certificate = certificate_of(result.pmf, reading.tables)
    pmf = result.pmf.with_tables(reading.tables, certificate)
    return replace(result, pmf=pmf, classes_are_groups=True)


def fit_completion(reading: Interpretation, session: Session) -> FitResult | None:
    """Return the completion of tables as a result; None where their zeros leave no state."""
    levels, solver = reading.tables.domain.shape, Ipf()
    problem = make_completion_problem(levels, reading.goals)
    if problem is None:

        def conclude(done: Run, text: str) -> FitResult:
            return _as_result(reading, text, "step", done)

        return complete_approximately(reading.tables, reading.goals, session, conclude)
    if not len(problem.states):
        return None
    result_of = partial(_as_result, reading, _describe_completion(reading, problem), "sweep")

    def so_far() -> FitResult | None:
        return result_of(session.unfinished[0]) if 0 in session.unfinished else None

    session.unfinished.clear()
    session.offer(so_far)
    if reading.soft:
        # A sweep may still move a small part of the distance that chance makes.
        soft = [goal for goal in reading.goals if isinstance(goal, SoftGoal)]
        chance = [expected_distance(np.maximum(g.shares, 0.0), g.records) for g in soft]
        settled = max(POLICY.settled * float(np.mean(chance or [0.0])), POLICY.met)
        solver = Ipf(replace(solver.limits, exact=settled))
    return result_of(run(solver, problem, independent_model(levels, reading.goals), session))


def _describe_completion(reading: Interpretation, problem: CompletionProblem) -> str:
    names = [reading.tables.domain.names[n] for n in problem.cover]
    number = len(reading.goals)
    tables = f"the {plural(number, 'table')}" if number > 1 else "the table"
    states = f"one class for each level of {show(names)}" if names else "one class"
    if len(names) > 1:
        states = f"one class for each combination of levels of {show(names)}"
    return (
        f"The joint nearest to independence that {'approximates' if reading.soft else 'meets'} "
        f"{tables} (maximum entropy), as a mixture with {states}. These classes have no meaning of "
        "their own."
    )


def _as_result(reading: Interpretation, choice: str, unit: str, done: Run) -> FitResult:
    """A completion with the sentences that say what it is and how it meets the tables."""
    pmf = LowRankPMF.of_model(done.model, reading.tables.domain).with_tables(reading.tables)
    if reading.soft and done.stop is Stop.EXACT:
        done = replace(done, stop=Stop.OPTIMAL)
    return FitResult.of(
        pmf,
        [done],
        _describe_fit(reading, done, pmf),
        best=replace(done, error=_relative_error(reading.tables, done, pmf), residual=float("nan")),
        unit=unit,
        misfits={fit.names: fit.distance for fit in reading.tables.compare(pmf)},
        choice=join_messages([reading.text, choice]),
        classes_are_groups=False,
    )


def _describe_fit(reading: Interpretation, done: Run, pmf: LowRankPMF) -> str:
    if reading.soft:
        fits = reading.tables.compare(pmf)
        mean = sum(fit.distance for fit in fits) / max(len(fits), 1)
        chances = [fit.chance for fit in fits if not np.isnan(fit.chance)]
        chance = f" (by chance {sum(chances) / len(chances):.2g})" if chances else ""
        return f"The tables are met to {mean:.2g} of their mass on average{chance}"
    if done.objective > POLICY.missed:
        return f"The tables are missed by up to {done.objective:.2g} of the mass of one"
    has_bounds = any(isinstance(goal, IntervalGoal) for goal in reading.goals)
    within = ", within the bounds of their numbers" if has_bounds else ""
    return (
        f"The tables are met{within}: at most {max(done.objective, 1e-16):.1g} of the mass of one "
        "is in wrong cells"
    )


def _relative_error(tables: Marginals, done: Run, pmf: LowRankPMF) -> float:
    """Relative error of all tables together, ``||X - Xhat|| / ||X||``."""
    tables = tables.filled(pmf)
    shares = [tables.shares(i).ravel() for i in range(len(tables))]
    given = np.concatenate([np.zeros(0), *shares])
    model = FlatTables(done.model.layout, tables.index_subsets).of_model(done.model)
    return float(np.linalg.norm(model - given) / (np.linalg.norm(given) or 1.0))
