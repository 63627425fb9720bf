"""Estimate: from records to the joint, whatever the size of the records."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rejoint.check import whole
from rejoint.domain.domain import Domain
from rejoint.estimation.data import Array, RecordProblem, at_hand, survey_of
from rejoint.estimation.em import Em
from rejoint.estimation.explore import Report
from rejoint.estimation.fit_records import (
    Search,
    fit_bayes,
    fit_map,
    fit_ml,
    fit_scan,
    interrupted_result,
    of_sample,
)
from rejoint.estimation.gibbs import Bayes
from rejoint.estimation.ordinal_smoothing import SmoothProblem, best_time, wished_variables
from rejoint.estimation.starts import Model
from rejoint.estimation.streamed import ScanProblem, SmoothScan
from rejoint.identifiability.concern import of_any
from rejoint.messages import Argument, Message, join_messages, remark
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.scan import Scan
from rejoint.records.sparse import AnyRecords, read_any
from rejoint.solver.checkpoint import Journal, digest
from rejoint.solver.progress import Progress
from rejoint.solver.result import FitResult

if TYPE_CHECKING:
    from rejoint.rank.selection import Selection

_SEED = "seed"


def open_journal(
    checkpoint: str | PathLike[str] | None,
    random_state: int | np.random.Generator | None,
    fingerprint: str,
    **asked: Any,
) -> tuple[Journal | None, np.random.Generator]:
    """The journal of a fit, and its source of randomness: that of the first attempt.

    Parameters
    ----------
    checkpoint : path, optional
        The file; without one there is no journal.
    random_state : int or Generator, optional
        As it was given; None is a seed that the journal keeps.
    fingerprint : str
        What tells the data from others.
    **asked
        What was asked for, by the names that an error shall use.

    Examples
    --------
    >>> journal, rng = open_journal(None, 3, "")
    >>> journal is None, int(rng.integers(100))
    (True, 81)
    """
    if checkpoint is None:
        return None, np.random.default_rng(random_state)
    identity = {"data": fingerprint} | {name: _text(value) for name, value in asked.items()}
    if random_state is None:
        journal = Journal(checkpoint, identity)
        entry = journal.get(_SEED)
        if entry is None:
            entry = {_SEED: int(np.random.default_rng().integers(2**62))}
            journal.put(_SEED, entry)
            journal.save()
        return journal, np.random.default_rng(entry[_SEED])
    rng = np.random.default_rng(random_state)
    return Journal(checkpoint, identity | {"random_state": digest(rng)}), rng


@contextmanager
def kept(journal: Journal | None) -> Iterator[None]:
    """Whatever ends a fit, its journal is on disk afterwards."""
    try:
        yield
    finally:
        if journal is not None:
            journal.close()


def _text(value: Any) -> str:
    """Short things as they are, others by a digest."""
    plain = value is None or isinstance(value, str | int | float)
    return repr(value) if plain else f"{type(value).__name__} {digest(value)[:12]}"


#: Records per parameter from which the maximum does better than the mean of some draws, whose own
#: chance error shows by then. At 1,451 (N = 5, I = 10, F = 15, 1,000,000 records) the mean still
#: is 1 % better; at 4,366 (F = 5) it is 2 % worse.
PLENTY = 2000

#: Classes that chains have at most beyond a rank that was estimated, as far as larger ranks are not
#: out of the question: at the rank itself 90 % intervals held the truth in 78 to 85 % of cases,
#: with spare ones in 88 to 89 %. Where they are not needed they cost: always four of them made the
#: error 10 to 27 % larger (N = 5, I = 10, F = 5, 100,000 records).
SPARE = 4

#: Chains over records that are read anew for each sweep. They start at the maximum, and answers are
#: nearly independent from draw to draw, so that some 100 sweeps do: see docs/scale.rst.
BY_PASSES = Bayes(chains=2, burn_in=20, draws=20, thin=2)

#: Modes that chains may start at, the best of which they do.
MODES = 6


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
        return solver, Message("{solver} was asked for.", solver=Argument("solver", solver))
    if solver == "bayes":
        return Bayes(), Message("{solver} was asked for.", solver=Argument("solver", solver))
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


def with_spare(bayes: Bayes, rank: int, largest: int) -> tuple[Bayes, int]:
    """The sampler, and how many classes its chains have beyond a rank that was estimated.

    Examples
    --------
    >>> with_spare(Bayes(), 3, largest=5)[1], with_spare(Bayes(), 3, largest=3)[1]
    (2, 0)
    """
    spare = min(largest - rank, SPARE) if bayes.sparsity == 1.0 else 0
    # Classes that are not needed lose their weight below a pseudo-count of one.
    return (replace(bayes, sparsity=0.3) if spare else bayes), spare


def choose_for_scan(
    problem: RecordProblem, rank: int, solver: str | Em | Bayes
) -> tuple[str | Em | Bayes, str]:
    """The estimator to take where records are read anew for each pass, and why."""
    chosen, why = choose(problem, rank, solver)
    given = not isinstance(chosen, Bayes) or isinstance(solver, Bayes)
    return (chosen if given else BY_PASSES), why


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
    checkpoint: str | PathLike[str] | None = None,
    executor: Executor | None = None,
) -> FitResult:
    """Estimate the joint from records, incomplete ones included.

    Parameters
    ----------
    data : Records, SparseRecords, Scan, frame, array or list of dicts
        The records; see :meth:`Records.of`. Those of a :func:`rejoint.scan` that do not fit into
        memory are read anew for each pass, from the fit to a sample on.
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
        quick, down to 3 where it is not. For Bayes the number of chains, 3 by default, or 2
        over records that are read anew for each sweep.
    sample_weight : array or name of a column, optional
        How many times each record counts.
    domain : Domain, optional
        Variables and levels, where the data should not define them.
    random_state : int or Generator, optional
        Source of randomness.
    progress : bool, optional
        Whether to show progress on stderr; by default where that is a terminal.
    checkpoint : path, optional
        A file that is written to from time to time. The same call goes on from there, after
        Ctrl-C or a kill, and comes to the same result as without.
    executor : concurrent.futures.Executor, optional
        Where starts are followed and ranks are judged: a pool of processes, or of machines
        (``dask.distributed.Client().get_executor()``). The result is the same.

    Returns
    -------
    FitResult
        With ``pmf``, ``log_likelihood``, ``posterior`` (Bayes), ``choice`` (what was chosen
        and why), ``stop`` and ``history``.

    Notes
    -----
    Right if cells are missing at random: whether one is missing may depend on what is seen.
    Ctrl-C ends the fit and returns the best model so far. What records with holes cannot say, such
    as how two variables depend that no record holds together, is remarked on and in ``choice``.

    Examples
    --------
    >>> import rejoint as rj
    >>> truth = rj.datasets.asia()
    >>> data = rj.datasets.remove_cells(truth.sample(2000, random_state=0), 0.2, random_state=0)
    >>> result = rj.estimate(data, rank=4, solver="ml", random_state=0)
    >>> rj.metrics.total_variation(truth, result.pmf) < 0.1
    True
    """
    asked = {"rank": rank, "solver": solver, "smooth": smooth, "start": start, "n_init": n_init}
    request = Request(rank, solver, smooth, start, n_init, progress, executor)
    if isinstance(data, Scan):
        if domain is not None or sample_weight is not None:
            raise ValueError("A Scan has its domain and weights: give them to scan(...) instead.")
        mark = digest(data.stamp, data.names, data.domain.shape)
        journal, rng = open_journal(checkpoint, random_state, mark, **asked)
        with kept(journal):
            return estimate_scan(data, request, journal, rng)
    records = read_any(data, domain=domain, sample_weight=sample_weight)
    mark = "" if checkpoint is None else RecordProblem.of(records).fingerprint
    journal, rng = open_journal(checkpoint, random_state, mark, **asked)
    with kept(journal):
        result = estimate_records(records, request, journal, rng)
    concern = of_any(records, result.pmf.rank if rank == "auto" else int(rank))
    if concern.serious:
        remark(concern.words)
    return replace(result, choice=join_messages([result.choice, concern.words]))


def estimate_quietly(
    records: AnyRecords,
    rank: int | Literal["auto"],
    solver: str | Em | Bayes,
    n_init: int | None,
    rng: np.random.Generator,
    progress: bool | None = None,
) -> FitResult:
    """The fit alone, where what the records leave open does not matter: ratings, a chunk."""
    request = Request(rank, solver, False, None, n_init, progress, None)
    return estimate_records(records, request, None, rng)


@dataclass(frozen=True)
class Request:
    """What was asked of an estimate."""

    rank: int | Literal["auto"]
    solver: str | Em | Bayes
    smooth: bool | Sequence[str]
    start: LowRankPMF | None
    n_init: int | None
    progress: bool | None
    executor: Executor | None


def chosen_rank(
    records: AnyRecords, request: Request, journal: Journal | None, rng: np.random.Generator
) -> tuple[int, "Selection | None"]:
    """The rank that was given, or the one that the records speak for, and how that came."""
    if request.rank != "auto":
        return whole("rank", request.rank), None
    from rejoint import rank as ranks  # rank.py stands below: it calls estimate in turn

    found = ranks.select(
        records,
        random_state=rng,
        progress=request.progress,
        checkpoint=journal,
        executor=request.executor,
    )
    return found.rank, found


def estimate_records(
    records: AnyRecords, request: Request, journal: Journal | None, rng: np.random.Generator
) -> FitResult:
    """Estimate from records that are in memory."""
    problem = replace(RecordProblem.of(records), journal=journal)
    wished = wished_variables(problem.domain, request.smooth)
    rank, selection = chosen_rank(records, request, journal, rng)
    said: list[str] = []
    known: list[Model] = []
    if selection is not None:
        said, best = [selection.words], selection.pmf
        if selection.interrupted and best is not None and request.start is None:
            # One Ctrl-C is enough: what was fitted on the way is the best so far.
            weights, factors = np.asarray(best.weights), np.vstack(best.factors)
            found = interrupted_result(problem, weights, factors)
            return replace(found, choice=said[0], selection=selection)
        known = given_start(best, problem, rank)
    chosen, why = choose(problem, rank, request.solver)
    said.append(why)
    n_init = request.n_init
    count = affordable(problem, rank) if n_init is None else whole("n_init", n_init)
    with Progress(request.progress) as report:
        if wished:
            time, ended = best_time(problem, rank, wished, rng, report)
            if ended is not None:
                return replace(interrupted_result(problem, *ended), choice=join_messages(said))
            problem = SmoothProblem.over(problem, wished, time)
            said.append(smooth_words(time))
        given = given_start(request.start, problem, rank)
        search = Search(rng, report, count, given, known, request.executor)
        if isinstance(chosen, Bayes):
            if n_init is not None:
                chosen = replace(chosen, chains=count)
            search = replace(search, count=max(chosen.chains, MODES))
            chosen, spare = with_spare(chosen, rank, selection.largest if selection else rank)
            result = fit_bayes(problem, rank, chosen, search, spare)
        elif chosen == "map":
            result = fit_map(problem, rank, search)
        else:
            em = chosen if isinstance(chosen, Em) else Em()
            result = fit_ml(problem, rank, em, search)
    return replace(result, choice=join_messages(said), selection=selection)


def estimate_scan(
    scan: Scan, request: Request, journal: Journal | None, rng: np.random.Generator
) -> FitResult:
    """Estimate from records that are read part by part; at once where they fit into memory."""
    seed = int(deepcopy(rng).integers(2**62))  # records in memory draw the same numbers then
    with Progress(request.progress) as report, at_hand(scan) as scan:
        survey = survey_of(scan, seed, report, journal)
        if (records := survey.records) is not None:
            return estimate_records(records, request, journal, rng)
        problem = ScanProblem.surveyed(scan, survey, report, journal)
        return estimate_by_passes(problem, request, rng, report)


def estimate_by_passes(
    problem: ScanProblem, request: Request, rng: np.random.Generator, report: Report
) -> FitResult:
    """Estimate from records that do not fit: what a sample can tell from it, the rest from all."""
    wished = wished_variables(problem.domain, request.smooth)
    choose_for_scan(problem, 1, request.solver)  # what cannot be is told before the long part
    sample = replace(RecordProblem.of(problem.survey.sample), journal=problem.journal)
    rank, selection = chosen_rank(problem.survey.sample, request, problem.journal, rng)
    said: list[str] = []
    known: list[Model] = []
    if selection is not None:
        size = f"{len(problem.survey.sample):,} of the {problem.survey.rows:,} records"
        said, best = [f"{selection.words} {size}, drawn at random, were looked at."], selection.pmf
        if selection.interrupted and best is not None:
            weights, factors = np.asarray(best.weights), np.vstack(best.factors)
            ended = of_sample(interrupted_result(sample, weights, factors), problem)
            return replace(ended, choice=said[0], selection=selection)
        known = given_start(best, sample, rank)
    chosen, why = choose_for_scan(problem, rank, request.solver)
    said.append(why)
    if wished:
        time, found = best_time(sample, rank, wished, rng, report)
        if found is not None:
            ended = of_sample(interrupted_result(sample, *found), problem)
            return replace(ended, choice=join_messages(said), selection=selection)
        sample = SmoothProblem.over(sample, wished, time)
        problem = SmoothScan.over(problem, wished, time)
        said.append(smooth_words(time))
    n_init = request.n_init
    count = affordable(sample, rank) if n_init is None else whole("n_init", n_init)
    spare = 0
    if isinstance(chosen, Bayes):
        if n_init is not None:
            chosen, count = replace(chosen, chains=count), max(count, MODES)
        chosen, spare = with_spare(chosen, rank, selection.largest if selection else rank)
    given = given_start(request.start, problem, rank)
    search = Search(rng, report, count, given, known, request.executor)
    result = fit_scan(problem, sample, rank, chosen, search, spare)
    return replace(result, choice=join_messages(said), selection=selection)
