"""From marginals to the joint: the paper's step S2, by several solvers."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rejoint.check import whole, whole_or_auto
from rejoint.cost import Cost
from rejoint.factorization.all_tables import AllTables, fit_all_tables
from rejoint.factorization.complete_tables import complete_tables
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
from rejoint.factorization.loss import SQUARES, Loss, as_loss
from rejoint.factorization.problem import make_problem
from rejoint.identifiability.assessment import assess_tables
from rejoint.identifiability.certificate import certificate_of
from rejoint.marginals.marginals import Marginals
from rejoint.messages import Progress, join_messages, remark
from rejoint.model import Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.solver.result import FitResult
from rejoint.solver.search import OnInterrupt, interruptible
from rejoint.solver.session import Session, one_blas_thread
from rejoint.solver.solver import Run, Stop

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
    options: dict[str, Any] = {"start": start, "n_init": n_init, "weighting": weighting}
    with Progress(progress) as report, one_blas_thread():
        session = Session(np.random.default_rng(random_state), report)

        def fit() -> FitResult:
            options["n_init"] = whole("n_init", n_init)
            smooth = isinstance(solver, Smooth) or solver == "smooth"
            if loss is not None and (smooth or isinstance(marginals, AllTables)):
                what = "AllTables" if isinstance(marginals, AllTables) else "solver='smooth'"
                raise ValueError(f"{what} has a loss of its own: leave out loss.")
            if isinstance(marginals, AllTables):
                rank_given = _rank_of_all_tables(marginals, rank, smooth)
                return fit_all_tables(marginals, rank_given, solver, session, **options)
            if smooth:
                return _fit_smooth(marginals, rank, solver, start, weighting, session)
            untold = rank == "auto" and solver == "auto" and start is None and loss is None
            if untold and weighting == "equal":
                return complete_tables(marginals, session)
            return _fit_identified(marginals, rank, solver, session, loss=loss, **options)

        def fit_and_attach() -> FitResult:
            attach = partial(_attach_tables, marginals)
            with session.convert(attach):
                return attach(fit())

        return interruptible(session, fit_and_attach, on_interrupt)


#: Seconds of a cell, class and start of a fit of a told rank, at the least and at the most; as
#: seen at 15 variables of 3 levels to 12 of 6, with ranks 4 to 20.
SECONDS = (1e-6, 5e-6)

#: Copies of the tables and of the model that such a fit holds.
TABLE_COPIES, MODEL_COPIES = 8, 60


def _check_cost(marginals: Marginals, rank: int, starts: int) -> None:
    """Refuse a fit that is beyond the machine's memory, and say if it takes minutes."""
    cells = len(marginals.flat)
    memory = 8.0 * (TABLE_COPIES * cells + MODEL_COPIES * sum(marginals.domain.shape) * rank)
    low, high = (cells * rank * starts * seconds for seconds in SECONDS)
    what = f"A fit of rank {rank:,} to {cells:,} cells of tables"
    Cost(memory, low, high).check(what, "a smaller rank, fewer tables or fewer starts take less")


def _attach_tables(marginals: Marginals | AllTables, result: FitResult) -> FitResult:
    """The result, whose model knows the tables that it was fitted to."""
    if result.pmf.tables is not None or isinstance(marginals, AllTables):
        return result
    return replace(result, pmf=result.pmf.with_tables(marginals))


def _rank_of_all_tables(tables: AllTables, rank: Any, smooth: bool) -> int:
    """The rank for AllTables; refuses what needs tables that are counted."""
    if smooth:
        raise ValueError(
            "solver='smooth' needs tables; those of AllTables are never formed: give "
            "solver='admm', or count some tables by rj.Marginals.count."
        )
    if rank == "auto":
        raise ValueError(
            "AllTables needs a rank, because choosing it needs tables that are counted: give "
            f"rank=..., for example rj.rank.select(records).rank of the {len(tables.records):,} "
            "records."
        )
    return int(rank)


def _fit_smooth(
    marginals: Marginals, rank: Any, solver: Any, start: Any, weighting: str, session: Session
) -> FitResult:
    if start not in (None, "random"):
        raise ValueError("solver='smooth' begins at random: leave out start.")
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
    found = assess_tables(marginals, result.pmf.rank)
    if found.serious:
        remark(found.text)
    if found:
        chosen = {**chosen, "stop": join_messages([result.stop, found.text])}
    certificate = None if result.interrupted else certificate_of(result.pmf, marginals)
    return replace(result, pmf=result.pmf.with_tables(marginals, certificate), **chosen)
