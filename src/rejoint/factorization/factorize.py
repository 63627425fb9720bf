"""From marginals to the joint: the paper's step S2, by several solvers."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from rejoint.check import whole
from rejoint.factorization.admm import Admm
from rejoint.factorization.algebraic import Algebraic
from rejoint.factorization.all_tables import AllTables, fit_all_tables
from rejoint.factorization.auto import AnySolver, Auto, misfits, search, words
from rejoint.factorization.early_stop import Smooth, fit_smooth
from rejoint.factorization.intervals import briefly, fit_filled
from rejoint.factorization.kl import Kl
from rejoint.factorization.newton import Newton
from rejoint.factorization.problem import Array, Problem, make_problem
from rejoint.identifiability.concern import of_tables
from rejoint.marginals.marginals import Marginals
from rejoint.messages import join_messages, remark
from rejoint.pmf.pmf import LowRankPMF
from rejoint.solver.progress import Progress
from rejoint.solver.result import FitResult

_SOLVERS: dict[str, type[Any]] = {
    "auto": Auto,
    "algebraic": Algebraic,
    "admm": Admm,
    "newton": Newton,
    "kl": Kl,
    "smooth": Smooth,
}


def factorize(
    marginals: Marginals | AllTables,
    rank: int | Literal["auto"] = "auto",
    solver: str | AnySolver | Auto | Smooth = "auto",
    *,
    start: LowRankPMF | Literal["random", "algebraic"] | None = None,
    n_init: int = 10,
    weighting: Literal["equal", "count"] = "equal",
    random_state: int | np.random.Generator | None = None,
    progress: bool | None = None,
) -> FitResult:
    """Find the low-rank joint whose tables are nearest to the given ones.

    Minimises ``1/2 sum_S omega_S || X_S - Xhat_S ||^2`` over weights and factor columns on the
    simplex, for tables of any orders and any set of subsets that holds every variable.

    Parameters
    ----------
    marginals : Marginals or AllTables
        The tables, and moments if any; or records whose tables are too many to be formed.
    rank : int or "auto"
        Number of hidden classes, F; by default chosen by the BIC of the tables (see
        :func:`rejoint.rank.select_tables`), and ``choice`` says why.
    solver : {"auto", "algebraic", "admm", "newton", "kl", "smooth"} or solver object
        ``"algebraic"`` solves an eigenvalue problem, for triples or quadruples; ``"admm"`` is
        the paper's alternating optimisation; ``"newton"`` is Levenberg-Marquardt; ``"auto"``
        starts algebraically where it can, else by ADMM, and polishes by Newton; ``"kl"`` goes
        on from there to minimise ``sum_S omega_S KL(X_S || Xhat_S)`` instead of squares.
        ``"smooth"`` is for tables that were never seen: the mean of models of many classes
        that EM is ended early on, whose classes mean nothing (:class:`Smooth`).
        Objects (:class:`Admm`, ...) have parameters of their own.
    start : LowRankPMF, "random" or "algebraic", optional
        Where to begin; a model is the only start then. By default the solver chooses.
    n_init : int
        Starts at the most; fewer are run once one fits exactly or several agree.
    weighting : {"equal", "count"}
        Whether tables count the same, as in the paper, or by their number of records, which
        is better where cells are missing unevenly. Multiplies ``marginals.table_weight``.
    random_state : int or Generator, optional
        Source of randomness.
    progress : bool, optional
        Whether to show progress on stderr; by default where that is a terminal.

    Returns
    -------
    FitResult
        With ``pmf``, ``stop`` (why it stopped, in words) and ``history``.

    Notes
    -----
    Tables counted from incomplete records are unbiased only if cells are missing completely at
    random. Ctrl-C ends the fit and returns the best model so far. Where the tables leave the joint
    open at this rank (pairs always do), a remark and ``stop`` say so: see ``identifiability``.

    Examples
    --------
    >>> import rejoint as rj
    >>> truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    >>> tables = rj.Marginals.from_pmf(truth, order=3)
    >>> result = rj.factorize(tables, rank=2)
    >>> rj.metrics.tensor_error(truth, result.pmf) < 1e-10
    True
    """
    if isinstance(marginals, AllTables):
        rank, n_init = whole("rank", rank), whole("n_init", n_init)
        chosen, rng = as_solver(solver), np.random.default_rng(random_state)
        model = as_model(start, rank)
        with Progress(progress) as report:
            return fit_all_tables(marginals, rank, chosen, model, n_init, weighting, rng, report)
    if not isinstance(marginals, Marginals):
        raise TypeError(
            f"factorize takes Marginals, got {type(marginals).__name__}; make them by "
            "rj.Marginals.count(records) or rj.Marginals.from_tables(tables)."
        )
    if isinstance(solver, Smooth) or solver == "smooth":
        return smoothly(marginals, rank, solver, start, weighting, random_state, progress)
    selection = None
    if rank == "auto":
        from rejoint.rank.from_tables import (
            select_tables,  # which fits many ranks by what stands here
        )

        rng = np.random.default_rng(random_state)
        selection = select_tables(marginals, random_state=rng, progress=progress)
        rank, random_state = selection.rank, rng
    result = factorize_quietly(
        marginals,
        rank,
        solver,
        start=start,
        n_init=n_init,
        weighting=weighting,
        random_state=random_state,
        progress=progress,
    )
    if selection is not None:
        result = replace(result, choice=selection.words, selection=selection)
    concern = of_tables(marginals, result.pmf.rank)
    if concern.serious:
        remark(concern.words)
    return replace(result, stop=join_messages([result.stop, concern.words])) if concern else result


def smoothly(
    marginals: Marginals,
    rank: int | Literal["auto"],
    solver: str | Smooth,
    start: Any,
    weighting: str,
    random_state: int | np.random.Generator | None,
    progress: bool | None,
) -> FitResult:
    """The mean of models that EM was ended early on."""
    if start not in (None, "random"):
        raise ValueError("solver='smooth' begins at random: leave out start.")
    smooth = Smooth() if isinstance(solver, str) else solver
    classes = smooth.rank(marginals) if rank == "auto" else whole("rank", rank)
    rng = np.random.default_rng(random_state)
    with Progress(progress) as report:

        def fit(tables: Marginals, brief: Kl, model: LowRankPMF | None) -> FitResult:
            first = "random" if model is None else as_start(model, tables, classes)
            return fit_tables(tables, classes, brief, first, 1, weighting, rng, report)

        return fit_smooth(marginals, smooth, fit)


def factorize_quietly(
    marginals: Marginals,
    rank: int,
    solver: str | AnySolver | Auto = "auto",
    *,
    start: LowRankPMF | Literal["random", "algebraic"] | None = None,
    n_init: int = 10,
    weighting: Literal["equal", "count"] = "equal",
    random_state: int | np.random.Generator | None = None,
    progress: bool | None = None,
) -> FitResult:
    """The fit alone, where what the tables leave open does not matter: a start, a smaller model."""
    rank, n_init = whole("rank", rank), whole("n_init", n_init)
    chosen = as_solver(solver)
    rng = np.random.default_rng(random_state)
    with Progress(progress) as report:

        def fit(tables: Marginals, model: LowRankPMF | None, brief: bool) -> FitResult:
            first = as_start(start if model is None else model, tables, rank)
            method = briefly(chosen) if brief else chosen
            return fit_tables(tables, rank, method, first, n_init, weighting, rng, report)

        if marginals.unknown is not None:
            return fit_filled(marginals, fit)
        return fit(marginals, None, False)


def fit_tables(
    marginals: Marginals,
    rank: int,
    solver: AnySolver | Auto,
    start: tuple[Array, Array] | str | None,
    n_init: int,
    weighting: str,
    rng: np.random.Generator,
    report: Progress,
) -> FitResult:
    """Search from some starts, tables taken as they are."""
    problem = make_problem(marginals, weighting)
    runs = search(problem, rank, solver, start, n_init, rng, report)
    best = min(runs, key=lambda r: r.objective)
    pmf = as_pmf(problem, marginals, best.weights, best.factors)
    return FitResult(
        pmf=pmf,
        stop=words(runs, best, rank),
        history=tuple(record for r in runs for record in r.records),
        error=best.error,
        residual=best.residual,
        starts=tuple(runs),
        misfits=misfits(problem, marginals, best),
    )


def as_solver(solver: Any) -> AnySolver | Auto:
    """A solver object, made from its name if need be."""
    known = isinstance(solver, str) and solver in _SOLVERS
    made: Any = _SOLVERS[solver]() if known else solver
    steps = all(callable(getattr(made, name, None)) for name in ("init", "step"))
    if isinstance(made, type | str) or not (steps or isinstance(made, Auto)):
        raise ValueError(
            f"solver={solver!r} is not known; give one of {', '.join(map(repr, _SOLVERS))}, or a "
            "solver object such as rejoint.factorization.Admm()."
        )
    solver_object: AnySolver | Auto = made
    return solver_object


def as_start(
    start: LowRankPMF | str | None, marginals: Marginals, rank: int
) -> tuple[Array, Array] | str | None:
    """Weights and stacked factors of a given model; a word or None as it is."""
    model = as_model(start, rank)
    if model is None:
        assert start is None or isinstance(start, str)
        return start
    model = model.align(marginals.domain)
    return np.array(model.weights), np.vstack(model.factors)


def as_model(start: LowRankPMF | str | None, rank: int) -> LowRankPMF | None:
    """The model to begin at, if one is given."""
    if start is None or (isinstance(start, str) and start in ("random", "algebraic")):
        return None
    if not isinstance(start, LowRankPMF):
        raise ValueError(f"start must be a LowRankPMF, 'random' or 'algebraic', got {start!r}.")
    if start.rank != rank:
        raise ValueError(f"start has rank {start.rank}, but rank={rank} was asked for.")
    return start


def as_pmf(problem: Problem, marginals: Marginals, weights: Array, factors: Array) -> LowRankPMF:
    """The model with its labels, classes in decreasing order of weight."""
    order = np.argsort(-weights, kind="stable")
    parts = [factors[problem.rows(n)][:, order] for n in range(len(problem.levels))]
    return LowRankPMF(weights[order], parts, marginals.domain)
