"""From records to the joint: likelihood and Bayes, on records with holes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from rejoint.domain import Domain
from rejoint.estimation.bayes import Bayes
from rejoint.estimation.em import Em
from rejoint.estimation.fitting import Search, fit_bayes, fit_map, fit_ml, interrupted_result
from rejoint.estimation.posterior import Posterior
from rejoint.estimation.priors import Prior
from rejoint.estimation.problem import Array, RecordProblem
from rejoint.estimation.slipping import best_time
from rejoint.estimation.smoothing import SmoothProblem, wished_variables
from rejoint.pmf import LowRankPMF
from rejoint.records.sparse import read_any
from rejoint.solver import FitResult, Progress, whole

__all__ = ["Bayes", "Em", "Posterior", "Prior", "estimate"]

#: Records per parameter from which the maximum does better than the mean of some draws, whose own
#: chance error shows by then. At 1,451 (N = 5, I = 10, F = 15, 1,000,000 records) the mean still
#: is 1 % better; at 4,366 (F = 5) it is 2 % worse.
PLENTY = 2000

#: Classes that chains have beyond a rank that was estimated: at the rank itself 90 % intervals
#: held the truth in 78 to 85 % of cases, with spare ones in 89 to 90 %.
SPARE = 4

#: Modes that chains may start at, the best of which they do.
MODES = 6


def estimate(
    data: Any,
    rank: int | Literal["auto"] = "auto",
    solver: str | Em | Bayes = "auto",
    *,
    smooth: bool | Sequence[str] = False,
    start: LowRankPMF | None = None,
    n_init: int | None = None,
    sample_weight: Any = None,
    domain: Domain | None = None,
    random_state: int | np.random.Generator | None = None,
    progress: bool | None = None,
) -> FitResult:
    """Estimate the joint from records, incomplete ones included.

    Parameters
    ----------
    data : Records, SparseRecords, frame, array or list of dicts
        The records; see :meth:`Records.of`.
    rank : int or "auto"
        Number of hidden classes; by default chosen by :func:`rejoint.rank.select`.
    solver : {"auto", "ml", "map", "bayes"} or solver object
        ``"ml"`` maximises the likelihood; ``"map"`` likelihood times a Dirichlet prior centred
        on each variable's own shares, whose strength the data choose; ``"bayes"`` draws from
        the posterior, so that ``result.posterior`` has a mean and bounds for any question.
        ``"auto"`` takes Bayes, or likelihood where records are plenty (2,000 a parameter).
    smooth : bool or list of names
        Ordinal or binned variables whose factor columns are to be smooth, neighbouring levels
        informing each other; True for all of them. How smooth is chosen by held-out likelihood,
        and may come out as not at all.
    start : LowRankPMF, optional
        Where to begin; the only start then.
    n_init : int, optional
        Starts: one from the records' own tables, one from the fit that chose the rank, others
        grown from records that smaller models lack, or random. 20 by default where a pass is
        quick, down to 3 where it is not. For Bayes the number of chains, 3 by default.
    sample_weight : array or name of a column, optional
        How many times each record counts.
    domain : Domain, optional
        Variables and levels, where the data should not define them.
    random_state : int or Generator, optional
        Source of randomness.
    progress : bool, optional
        Whether to show progress on stderr; by default where that is a terminal.

    Returns
    -------
    FitResult
        With ``pmf``, ``log_likelihood``, ``posterior`` (Bayes), ``choice`` (what was chosen
        and why), ``stop`` and ``history``.

    Notes
    -----
    Right if cells are missing at random: whether one is missing may depend on what is seen.
    Ctrl-C ends the fit and returns the best model so far.

    Examples
    --------
    >>> import rejoint as rj
    >>> truth = rj.datasets.asia()
    >>> data = rj.datasets.remove_cells(truth.sample(2000, random_state=0), 0.2, random_state=0)
    >>> result = rj.estimate(data, rank=4, solver="ml", random_state=0)
    >>> rj.metrics.total_variation(truth, result.pmf) < 0.1
    True
    """
    records = read_any(data, domain=domain, sample_weight=sample_weight)
    problem = RecordProblem.of(records)
    wished = wished_variables(records.domain, smooth)
    rng = np.random.default_rng(random_state)
    said: list[str] = []
    selection = None
    known: list[tuple[Array, Array]] = []
    chosen_rank = rank == "auto"
    if rank == "auto":
        from rejoint import rank as ranks  # rank.py stands below: it calls estimate in turn

        selection = ranks.select(records, random_state=rng, progress=progress)
        rank, said = selection.rank, [selection.words]
        best = selection.pmf
        if selection.interrupted and best is not None and start is None:
            # One Ctrl-C is enough: what was fitted on the way is the best so far.
            weights, factors = np.asarray(best.weights), np.vstack(best.factors)
            found = interrupted_result(problem, weights, factors)
            return replace(found, choice=said[0], selection=selection)
        known = given_start(best, problem, rank)
    classes = whole("rank", rank)
    chosen, why = choose(problem, classes, solver)
    said.append(why)
    count = affordable(problem, classes) if n_init is None else whole("n_init", n_init)
    with Progress(progress) as report:
        if wished:
            time, ended = best_time(problem, classes, wished, rng, report)
            if ended is not None:
                return replace(interrupted_result(problem, *ended), choice=" ".join(said))
            problem = SmoothProblem.over(problem, wished, time)
            said.append(smooth_words(time))
        search = Search(rng, report, count, given_start(start, problem, classes), known)
        if isinstance(chosen, Bayes):
            if n_init is not None:
                chosen = replace(chosen, chains=count)
            search = replace(search, count=max(chosen.chains, MODES))
            spare = 0
            if chosen_rank and chosen.sparsity == 1.0:
                # Classes that are not needed lose their weight below a pseudo-count of one.
                spare, chosen = SPARE, replace(chosen, sparsity=0.3)
            result = fit_bayes(problem, classes, chosen, search, spare)
        elif chosen == "map":
            result = fit_map(problem, classes, search)
        else:
            em = chosen if isinstance(chosen, Em) else Em()
            result = fit_ml(problem, classes, em, search)
    return replace(result, choice=" ".join(said), selection=selection)


def smooth_words(time: float) -> str:
    """How smooth the columns are.

    Examples
    --------
    >>> smooth_words(0.4)
    'Smooth columns: levels spread by 0.89 of a level, by held-out likelihood.'
    """
    if time == 0:
        return "Smooth columns were asked for, but held-out likelihood is best without."
    spread = np.sqrt(2 * time)
    return f"Smooth columns: levels spread by {spread:.2g} of a level, by held-out likelihood."


def affordable(problem: RecordProblem, rank: int) -> int:
    """How many starts to run: likelihoods of latent classes have many local maxima."""
    cells = problem.codes.size * rank
    return int(np.clip(4_000_000 // max(cells, 1), 3, 20))


def choose(
    problem: RecordProblem, rank: int, solver: str | Em | Bayes
) -> tuple[str | Em | Bayes, str]:
    """The estimator to take, and why."""
    if isinstance(solver, Em | Bayes):
        return solver, f"{type(solver).__name__} was asked for."
    if solver in ("ml", "map"):
        return solver, f"solver={solver!r} was asked for."
    if solver == "bayes":
        return Bayes(), "solver='bayes' was asked for."
    if solver != "auto":
        raise ValueError(
            f"solver={solver!r} is not known; give 'auto', 'ml', 'map', 'bayes', or an object such "
            "as rejoint.estimation.Em(). Solvers for tables belong to rj.factorize."
        )
    size = max(problem.parameters(rank), 1)
    per = problem.total / size
    text = f"{problem.total:,.0f} records for {size:,} parameters"
    if per >= PLENTY:
        return "ml", f"Maximum likelihood: {text}, so that a prior would add nothing."
    return Bayes(), f"Bayes: {text}, so that averaging over the posterior helps."


def given_start(
    start: LowRankPMF | None, problem: RecordProblem, rank: int
) -> list[tuple[Array, Array]]:
    """A given model as the only start; none if there is none."""
    if start is None:
        return []
    if not isinstance(start, LowRankPMF) or start.rank != rank:
        raise ValueError(f"start must be a LowRankPMF of rank {rank}, got {start!r}.")
    start = start.align(problem.domain)
    factors = np.vstack(start.factors)
    if (factors == 0).any():
        # Zeros would stay zeros, even against the records.
        factors = 0.999 * factors + 0.001 * problem.centre[:, None]
    return [(np.array(start.weights), factors)]
