"""Estimate: from records to the joint, whatever the size of the records and wherever they are."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rejoint.check import whole
from rejoint.domain.domain import Domain
from rejoint.estimation.data import Data, InMemory, Parted
from rejoint.estimation.em import Em
from rejoint.estimation.gibbs import Bayes, Draw, describe_effective_draws
from rejoint.estimation.ordinal_smoothing import Smoothed, choose_time, smooth_variables
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.posterior_mean import posterior_mean
from rejoint.estimation.priors import first_prior, make_prior
from rejoint.estimation.starts import Start, follow_start, given_model, make_starts, widen
from rejoint.estimation.survey import Survey, packed, survey_of
from rejoint.estimation.variational import Variational
from rejoint.identifiability.assessment import Assessment, assess_records
from rejoint.messages import Argument, Message, Progress, join_messages, remark
from rejoint.model import FloatArray, Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.records import BaseRecords
from rejoint.records.scan import Scan
from rejoint.records.sparse import as_records
from rejoint.solver.checkpoint import digest, open_checkpoint
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.search import OnInterrupt, best_run, interruptible, is_interrupted, search
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits, Run, Stop, is_solver, with_limits
from rejoint.text import plural

if TYPE_CHECKING:
    from rejoint.rank.selection import Selection


def estimate(
    data: Any,
    rank: int | Literal["auto"] = "auto",
    solver: Any = "auto",
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
    on_interrupt: OnInterrupt = "raise",
    policy: Policy = DEFAULT,
) -> FitResult:
    """Estimate the joint from records, incomplete ones included.

    Parameters
    ----------
    data : Records, SparseRecords, Scan, frame, array or list of dicts
        The records; see :meth:`Records.of`. Records of a :func:`rejoint.scan` that do not fit into
        memory are read again for each pass; the fit to a sample is where these passes start.
    rank : int or "auto"
        Number of hidden classes; by default chosen by :func:`rejoint.rank.select`.
    solver : {"auto", "ml", "map", "bayes"} or solver object
        ``"ml"`` maximizes the likelihood; ``"map"`` likelihood times a Dirichlet prior centered
        on each variable's own distribution, whose concentration the data choose; ``"bayes"`` draws
        from the posterior: ``result.pmf`` then answers by the posterior mean, with credible
        intervals, and its classes are those of the most probable model.
        ``"auto"`` takes Bayes, or likelihood where there are 2,000 records per parameter or more.
        An object is one of :class:`Em`, :class:`Variational`, :class:`Bayes`, or any object with
        ``name``, ``limits``, ``init`` and ``step``.
    smooth : bool or list of names
        Ordinal or binned variables whose factor columns are to be smooth, neighboring levels
        informing each other; True for all of them. Held-out likelihood chooses how smooth, and may
        choose not at all.
    start : LowRankPMF, optional
        Where to start; the only start then.
    n_init : int, optional
        Number of starts: one from the records' own tables, one from the fit that chose the rank,
        others grown from records that smaller models lack, or random. 20 by default where a pass is
        quick, down to 3 where it is not. For Bayes the number of chains, 3 by default, or 2
        over records that are read again for each sweep.
    sample_weight : array or name of a column, optional
        How many times each record counts.
    domain : Domain, optional
        Variables and levels, where the data should not define them.
    random_state : int or Generator, optional
        Seed.
    progress : bool, optional
        Whether to show progress on stderr; by default where that is a terminal.
    checkpoint : path, optional
        A file that is written to from time to time. The same call resumes from there, after
        Ctrl-C or a kill, and returns the same result as without.
    executor : concurrent.futures.Executor, optional
        Where starts are followed and ranks are judged: a pool of processes, or of machines
        (``dask.distributed.Client().get_executor()``). The result is the same.
    on_interrupt : {"raise", "return"}
        What Ctrl-C does: raise :class:`rejoint.FitInterrupted`, whose ``result`` is the best
        fit so far, or return that.
    policy : Policy
        Tuned numbers of the fit, which ``result.policy`` keeps.

    Returns
    -------
    FitResult
        With ``pmf``, ``log_likelihood``, ``posterior`` (Bayes), ``choice`` (what was chosen
        and why), ``stop`` and ``history``.

    Notes
    -----
    The estimate is right if cells are missing at random: whether one is missing may depend on what
    is observed. What incomplete records cannot say, such as how two variables depend that no
    record holds together, is warned of and stands in ``choice``.

    Examples
    --------
    >>> import rejoint as rj
    >>> truth = rj.datasets.asia()
    >>> data = rj.datasets.remove_cells(truth.sample(2000, random_state=0), 0.2, random_state=0)
    >>> result = rj.estimate(data, rank=4, solver="ml", random_state=0)
    >>> rj.metrics.total_variation(truth, result.pmf) < 0.1
    True
    """
    request = Request(rank, solver, smooth, start, n_init, policy)
    source: Scan | BaseRecords
    if isinstance(data, Scan):
        if domain is not None or sample_weight is not None:
            raise ValueError("A Scan has its domain and weights: give them to scan(...) instead.")
        source = data
    else:
        source = as_records(data, domain=domain, sample_weight=sample_weight)
    asked = {"rank": rank, "solver": solver, "smooth": smooth, "start": start, "n_init": n_init}
    kept, rng = open_checkpoint(
        checkpoint, random_state, partial(fingerprint, source), policy=policy, **asked
    )
    with Progress(progress) as report:
        session = Session(rng, report, kept, executor)
        return interruptible(session, partial(_estimate, source, request, session), on_interrupt)


@dataclass(frozen=True)
class Request:
    """What was asked of an estimate."""

    rank: int | Literal["auto"] = "auto"
    solver: Any = "auto"
    smooth: bool | Sequence[str] = False
    start: LowRankPMF | None = None
    n_init: int | None = None
    policy: Policy = DEFAULT


def fingerprint(source: Scan | BaseRecords) -> str:
    """What tells the data of a checkpoint from others."""
    if isinstance(source, Scan):
        return digest(source.stamp, source.names, source.domain.shape)
    return InMemory.of(source).fingerprint


def _estimate(source: Scan | BaseRecords, request: Request, session: Session) -> FitResult:
    with open_data(source, session, request.policy) as (data, observed):
        result = fit_data(data, request, session)
    rank = result.pmf.rank if request.rank == "auto" else int(request.rank)
    found = Assessment() if observed is None else assess_records(observed, rank)
    if found.serious:
        remark(found.text)
    return replace(result, choice=join_messages([result.choice, found.text]))


@contextmanager
def open_data(
    source: Scan | BaseRecords, session: Session, policy: Policy
) -> Iterator[tuple[Data, BaseRecords | None]]:
    """Data of any source, and records that show which values are observed together."""
    if not isinstance(source, Scan):
        yield InMemory.of(source), source
        return
    seed = int(deepcopy(session.rng).integers(2**62))  # the same numbers as from records in memory
    with packed(source) as scan:
        survey = survey_of(scan, seed, session.report, session.checkpoint, policy)
        if (records := survey.records) is not None:
            yield InMemory.of(records), records
            return
        scan = replace(scan, rows=survey.rows)
        yield (
            Parted(scan.domain, scan.threads, scan, survey, session.checkpoint, session.report),
            survey.observed,
        )


def fit_data(data: Data, request: Request, session: Session) -> FitResult:
    """Choose rank, estimator and smoothness on records in memory, then fit all data."""
    policy, small = request.policy, data.sample()
    smooth = smooth_variables(data.domain, request.smooth)
    # What is not possible is refused before the long part.
    n_init = None if request.n_init is None else whole("n_init", request.n_init)
    choose_solver(data, 1, request)
    start_at(request.start, small, request.rank)
    said: list[str] = []
    selection: Selection | None = None
    if request.rank == "auto":
        # Loading rank loads the front of this package, and so this file.
        from rejoint.rank.select import select_rank

        with session.convert(partial(_result_of_selection, data)):
            selection = select_rank(small.records, session=session, policy=policy)
            session.offer(lambda: selection)
        rank = selection.rank
        said.append(selection.words + _looked_at(data))
    else:
        rank = whole("rank", request.rank)
    solver, why = choose_solver(data, rank, request)
    said.append(why)
    if smooth:
        with session.convert(partial(_interrupted_result, data, join_messages(said))):
            time = choose_time(small.records, rank, smooth, session, policy)
        data = Smoothed.over(data, smooth, time, policy)
        said.append(describe_smoothing(time))
    known = [] if selection is None else start_at(selection.pmf, small, rank)
    fit = Fit(data, data.sample(), rank, session, policy, n_init, known)
    fit = replace(fit, given=start_at(request.start, fit.small, rank))

    def finished(result: FitResult) -> FitResult:
        return replace(result, choice=join_messages(said), selection=selection, policy=policy)

    with session.convert(finished):
        if isinstance(solver, Bayes):
            return finished(fit.bayes(solver, rank if selection is None else selection.largest))
        return finished(fit.mode(solver))


def _result_of_selection(data: Data, selection: "Selection") -> FitResult | None:
    """The result if the fit is interrupted while the rank is chosen."""
    if selection is None or selection.pmf is None:
        return None
    pmf = selection.pmf.align(data.domain)
    model = Model(data.layout, np.asarray(pmf.weights), np.vstack(pmf.factors))
    return replace(_interrupted_result(data, selection.words, model), selection=selection)


def _interrupted_result(data: Data, choice: str, model: Model) -> FitResult:
    """A model that was found on the way, before the fit itself."""
    small, nothing = data.sample(), float("nan")
    only = Run(model, 0.0, nothing, nothing, Stop.INTERRUPTED)
    fit = Fit(data, small, model.rank, Session(np.random.default_rng(0)), DEFAULT)
    return replace(fit.result_of_small([only]), choice=choice)


def choose_solver(data: Data, rank: int, request: Request) -> tuple[Any, str]:
    """The estimator to take, and why."""
    solver, policy = request.solver, request.policy
    if isinstance(solver, Bayes) or is_solver(solver):
        return solver, f"{type(solver).__name__} was asked for."
    if solver in ("ml", "map"):
        return solver, Message("{solver} was asked for.", solver=Argument("solver", solver))
    if solver == "bayes":
        asked = Message("{solver} was asked for.", solver=Argument("solver", solver))
        return default_bayes(data, policy), asked
    if solver != "auto":
        raise ValueError(
            f"solver={solver!r} is not known; give 'auto', 'ml', 'map', 'bayes', or an object such "
            "as rejoint.estimation.Em(). Solvers for tables belong to rj.factorize."
        )
    parameters = max(data.layout.parameters(rank), 1)
    text = f"{data.total:,.0f} records for {parameters:,} parameters"
    plenty = policy.plenty_records_per_parameter
    if data.total / parameters >= plenty:
        return "ml", f"Maximum likelihood: {text}, {plenty:,.0f} or more for each."
    return default_bayes(data, policy), f"Bayes: {text}, fewer than {plenty:,.0f} for each."


def default_bayes(data: Data, policy: Policy) -> Bayes:
    """The sampler; a shorter one where each sweep reads the records again."""
    if data.sample() is data:
        return Bayes(policy=policy)
    return Bayes(
        policy.streamed_chains,
        policy.streamed_burn_in,
        policy.streamed_draws,
        policy.streamed_thin,
        policy=policy,
    )


def start_at(start: LowRankPMF | None, data: Data, rank: int | str) -> list[Model]:
    """A given model as the only start; none if there is none."""
    if start is None:
        return []
    if not isinstance(start, LowRankPMF):
        raise ValueError(f"start must be a LowRankPMF, got {start!r}.")
    if start.rank != rank:
        asked = f"rank={rank!r} was asked for"
        raise ValueError(f"start has rank {start.rank}, but {asked}: give rank={start.rank}.")
    start = start.align(data.domain)
    factors = np.vstack(start.factors)
    if (factors == 0).any():
        # Zeros would stay zeros, even against the records.
        factors = 0.999 * factors + 0.001 * data.center[:, None]
    return [Model(data.layout, np.array(start.weights), factors)]


def describe_smoothing(time: float) -> str:
    """Describe how smooth the columns are.

    Examples
    --------
    >>> describe_smoothing(0.4)
    'Smooth columns: held-out likelihood chose that levels spread by 0.89 of a level.'
    """
    if time == 0:
        return "Smooth columns were asked for, but no spread tried raises the held-out likelihood."
    spread = np.sqrt(2 * time)
    return (
        f"Smooth columns: held-out likelihood chose that levels spread by {spread:.2g} of a level."
    )


def _looked_at(data: Data) -> str:
    """How many records the rank was chosen by, where not by all."""
    if not isinstance(data, Parted) or len(data.survey.keys) == data.survey.rows:
        return ""
    size = f"{len(data.survey.keys):,} of the {data.survey.rows:,} records"
    return f" The rank was chosen on {size}, drawn at random."


@dataclass(frozen=True)
class Fit:
    """The fit of one rank: starts on records in memory, then passes over all data.

    Parameters
    ----------
    data : Data
        All data.
    small : Data
        Records in memory to search on; ``data`` itself where it is in memory.
    rank : int
        Number of classes.
    session : Session
    policy : Policy
    n_init : int, optional
        Number of starts, or of chains.
    known : list of Model
        Models to start at, among others.
    given : list of Model
        Models to start at, and at no others.
    """

    data: Data
    small: Data
    rank: int
    session: Session
    policy: Policy = DEFAULT
    n_init: int | None = None
    known: Sequence[Model] = ()
    given: Sequence[Model] = ()

    @property
    def streamed(self) -> bool:
        """Whether the data are read again for each pass."""
        return self.small is not self.data

    @property
    def survey(self) -> Survey | None:
        """What is known of data that are read again for each pass."""
        data = self.data.base if isinstance(self.data, Smoothed) else self.data
        return data.survey if isinstance(data, Parted) else None

    # -- Search on records in memory ---------------------------------------------------------

    def explore(
        self, solver: Any, count: int, rank: int | None = None, known: Sequence[Model] = ()
    ) -> list[Run]:
        """Follow each start for a while."""
        rank = rank or self.rank
        small, policy, rng = self.small, self.policy, self.session.rng
        starts: list[Start] = [partial(given_model, model=model) for model in self.given]
        if not starts:
            em = solver if isinstance(solver, Em) else Em(policy=policy)
            starts = make_starts(small, rank, count, em, rng, known or self.known, policy)
        follow = partial(follow_start, solver=with_limits(solver, policy.explore))
        size = small.cells * rank
        threaded = policy.smallest_threaded_pass <= size <= policy.largest_threaded_pass
        workers = min(small.threads, len(starts)) if threaded else 1
        problem = small.alone() if workers > 1 else small  # type: ignore[attr-defined]
        offer = self.result_of_small if rank == self.rank else None
        return search(problem, starts, follow, self.session, offer=offer, workers=workers)

    def finish(
        self,
        solver: Any,
        runs: list[Run],
        number: int,
        offer: Callable[[list[Run]], FitResult] | None = None,
    ) -> None:
        """Follow one run on records in memory to the end, in place."""
        session, policy, small = self.session, self.policy, self.small
        limited = getattr(solver, "limited_by", None)
        solver = solver if limited is None else limited(runs[number].objective)
        self.offer(runs, number, offer or self.result_of_small)
        last = self.extend(
            runs, number, run(solver, small, runs[number].model, session, start=number)
        )
        quick = small.cells * last.model.rank <= policy.largest_lifted_pass
        for _ in range(policy.lifts if quick else 0):
            # Probabilities that fell to nearly zero on the way return slowly, if at all.
            factors = (1 - policy.lift) * last.factors + policy.lift * small.center[:, None]
            lifted = replace(last.model, factors=factors)
            again = run(solver, small, lifted, session, start=number)
            better = again.objective <= last.objective - policy.lift_nats
            last = self.extend(
                runs, number, again if better else replace(last, stop=again.stop), again
            )
            if not better:
                break

    @staticmethod
    def extend(runs: list[Run], number: int, last: Run, step: Run | None = None) -> Run:
        """Put a run in the place of the one that it continues, with the history of both."""
        records = (*runs[number].records, *(step or last).records)
        runs[number] = replace(last, records=records)
        return last

    def offer(self, runs: list[Run], number: int, make: Callable[[list[Run]], FitResult]) -> None:
        """While a run is followed further, an interrupted fit has it as it is by then."""
        session = self.session
        session.unfinished.clear()

        def so_far() -> FitResult:
            now = session.unfinished.get(number, runs[number])
            best = min(now, runs[number], key=lambda found: found.objective)
            ended = [best if k == number else found for k, found in enumerate(runs)]
            ended[-1] = replace(ended[-1], stop=Stop.INTERRUPTED)
            return make(ended)

        session.offer(so_far)

    def search_map(self, count: int) -> tuple[list[Run], int]:
        """Find the most probable model of the records in memory."""
        runs = self.explore(self.em(self.small), count)
        best = best_run(runs)
        concentrations = evident_concentrations(self.small, runs[best].model, self.policy)
        self.finish(self.em(self.small, concentrations), runs, best)
        return runs, best

    def em(self, data: Data, concentrations: FloatArray | None = None) -> Em:
        """EM with a prior; of the hyperprior's median concentrations by default."""
        if concentrations is None:
            return Em(prior=first_prior(data, self.policy), policy=self.policy)
        return Em(prior=make_prior(data, concentrations), policy=self.policy)

    def widen_known(self, rank: int) -> list[Model]:
        """The known models with new classes up to a larger rank."""
        blend, rng = self.policy.cautious_blend, self.session.rng
        return [widen(self.small, model, rank, blend, rng) for model in self.known]

    def mode_starts(self, bayes: Bayes) -> int:
        """How many starts to follow to the modes that chains start at.

        It depends on how many records there are, not on how they are stored.
        """
        policy, size = self.policy, self.small.total * len(self.small.domain) * self.rank
        number = int(np.clip(policy.start_budget // size, policy.modes, policy.most_modes))
        return max(bayes.chains, number)

    def starts_affordable(self) -> int:
        """How many starts to follow: likelihoods of latent classes have many local maxima."""
        policy, size = self.policy, max(self.small.cells * self.rank, 1)
        return int(np.clip(policy.start_budget // size, policy.fewest_starts, policy.most_starts))

    # -- One model ---------------------------------------------------------------------------

    def mode(self, solver: Any) -> FitResult:
        """Maximize the likelihood, the posterior, or what the solver maximizes."""
        count = self.n_init or self.starts_affordable()
        if self.streamed:
            return self.streamed_mode(solver, count)[0]
        if solver == "map":
            runs, best = self.search_map(count)
        else:
            solver = Em(policy=self.policy) if solver == "ml" else solver
            runs = self.explore(solver, count)
            best = best_run(runs)
            self.finish(solver, runs, best)
        return self.result_of_small(runs, best=runs[best])

    def streamed_mode(self, solver: Any, count: int) -> tuple[FitResult, Run, FloatArray]:
        """Find a model of the sample, then take steps over all records from there."""
        em = solver if is_solver(solver) else Em(limits=self.streamed_limits(), policy=self.policy)
        uses_prior = solver == "map" or isinstance(solver, Bayes)
        models, concentrations, ended = list(self.given), np.empty(0), []
        if not models or uses_prior:
            runs, best = self.search_map(count)
            ended = [replace(found, stop=Stop.INTERRUPTED) for found in runs]
            models = models or [drop_empty(runs[best].model, self.policy)[0]]
        if uses_prior:
            concentrations = evident_concentrations(self.small, runs[best].model, self.policy)
            em = replace(em, prior=make_prior(self.data, concentrations))
        session = self.session
        session.unfinished.clear()

        def so_far() -> FitResult | None:
            if (now := session.unfinished.get(0)) is not None:
                return self.result([now], now, em)
            return self.result_of_small(ended) if ended else None

        session.offer(so_far)
        data, session = report_passes(self.data, session, "first pass")
        done = run(em, data, models[0], session)
        return self.result([done], done, em), done, concentrations

    def streamed_limits(self) -> Limits:
        """When to stop, in proportion to the log-likelihood without classes."""
        data = self.data
        alone = data.observed(Model(data.layout, np.ones(1), data.center[:, None])).factors[:, 0]
        size = -float(data.level_totals @ np.log(alone))
        progress = self.policy.streamed_nats / max(size, 1.0)
        return Limits(max_steps=2000, progress=progress, window=10, exact=-1.0)

    # -- Posterior draws -----------------------------------------------------------------------

    def bayes(self, bayes: Bayes, largest: int) -> FitResult:
        """Posterior draws from chains that start at modes; the best mode is the representative.

        Where the rank was estimated, some chains have spare classes, as far as ranks up to
        ``largest`` are not excluded, so that the draws also say how uncertain the rank is.
        """
        policy = self.policy
        if self.n_init is not None:
            bayes = replace(bayes, chains=self.n_init)
        spare = 0
        if bayes.pseudo_count == 1.0 and largest > self.rank:
            spare = min(largest - self.rank, policy.spare_classes)
            bayes = replace(bayes, pseudo_count=policy.spare_pseudo_count)
        if self.streamed:
            return self.streamed_bayes(bayes, spare)
        small, runs = self.small, self.explore(self.em(self.small), self.mode_starts(bayes))
        best = best_run(runs)
        wide = self.explore_wide(runs, spare, bayes) if spare else runs
        top = best_run(wide)
        many = policy.finished_mode_records_per_parameter * small.layout.parameters(self.rank)
        if small.total > many:
            self.finish(self.em(small), wide, top, lambda ended: self.ended_result(runs))
        # A chain hardly ever leaves a poor mode of a large sample: all start at good ones.
        first = wide[top]
        limit = first.objective + policy.mode_nats
        good = [first, *(r for r in wide if r is not first and r.objective <= limit)]
        begun = [good[k % len(good)] for k in range(bayes.chains)]
        if spare:  # every other chain has the rank found: draws of both are the posterior
            begun[1::2] = [runs[best]] * (bayes.chains // 2)
        draws = bayes.sample(
            small,
            [found.model for found in begun],
            self.session,
            offer=lambda kept: self.ended_result(runs, kept),
        )
        # The representative model is the one of solver="map", however records are read.
        concentrations = evident_concentrations(small, runs[best].model, policy)
        em = self.em(small, concentrations)
        self.finish(em, runs, best, lambda ended: self.ended_result(ended, draws))
        return self.result_of_small(runs, runs[best], draws=draws, chains=bayes.chains)

    def explore_wide(self, runs: list[Run], spare: int, bayes: Bayes) -> list[Run]:
        """Starts of chains that have spare classes."""
        small, rank = self.small, self.rank + spare
        self.session.offer(lambda: self.ended_result(runs))
        return self.explore(self.em(small), self.mode_starts(bayes), rank, self.widen_known(rank))

    def streamed_bayes(self, bayes: Bayes, spare: int) -> FitResult:
        """Chains over all records, a pass a sweep, from the most probable model on."""
        session = self.session
        _, done, concentrations = self.streamed_mode(bayes, self.mode_starts(bayes))

        def ended(kept: Sequence[Draw] = ()) -> FitResult:
            text = plural(len(kept), "posterior draw") if kept else "there were posterior draws"
            text = f"Interrupted {'after' if kept else 'before'} {text}."
            stopped = replace(done, stop=Stop.INTERRUPTED)
            return self.result([stopped], stopped, em, kept, more=text)

        em = self.em(self.data, concentrations)
        session.offer(ended)
        begun = [done]
        if spare:
            begun.insert(0, self.widened(bayes, spare, concentrations))
        models = [begun[k % len(begun)].model for k in range(bayes.chains)]
        data, session = report_passes(self.data, session, "first draw")
        draws = bayes.sample(data, models, session, concentrations, offer=ended)
        return self.result([done], done, em, draws, bayes.chains)

    def widened(self, bayes: Bayes, spare: int, concentrations: FloatArray) -> Run:
        """Where a chain with spare classes starts: the best of the sample, then steps over all."""
        small, policy, rank = self.small, self.policy, self.rank + spare
        em = self.em(small, concentrations)
        runs = self.explore(em, self.mode_starts(bayes), rank, self.widen_known(rank))
        limits = replace(self.streamed_limits(), max_steps=policy.spare_steps)
        em = replace(self.em(self.data, concentrations), limits=limits)
        data, session = report_passes(self.data, self.session, "first pass with spare classes")
        return run(em, data, runs[best_run(runs)].model, session)

    # -- What comes out --------------------------------------------------------------------------

    def ended_result(self, runs: Sequence[Run], draws: Sequence[Draw] = ()) -> FitResult:
        """The result of an interrupted fit to records in memory."""
        ended = [*runs[:-1], replace(runs[-1], stop=Stop.INTERRUPTED)]
        return self.result_of_small(ended, draws=draws)

    def result_of_small(
        self,
        runs: Sequence[Run],
        best: Run | None = None,
        draws: Sequence[Draw] = (),
        chains: int = 0,
    ) -> FitResult:
        """The result of runs on records in memory; of a sample only if the fit ended early."""
        best = best or runs[best_run(runs)]
        if not self.streamed:
            return self.result(runs, best, None, draws, chains)
        found = replace(self, data=self.small).result(runs, best, None)
        survey = self.survey
        assert survey is not None
        rows = f"{len(survey.keys):,} of {survey.rows:,} records"
        stop = f"Interrupted; this is a fit to a sample, {rows}."
        starts = tuple(replace(found, stop=Stop.INTERRUPTED) for found in runs)
        return replace(found, stop=stop, starts=starts, log_likelihood=float("nan"))

    def result(
        self,
        runs: Sequence[Run],
        best: Run,
        em: Em | None,
        draws: Sequence[Draw] = (),
        chains: int = 0,
        more: str = "",
    ) -> FitResult:
        """The best run as a model, with what is to be said about it.

        ``em`` says how the run's objective relates to the log-likelihood, which saves a pass.
        """
        known = em.penalty(best.model) - best.objective if isinstance(em, Em) else None
        model, value, dropped = self.drop_negligible(best.model, known, is_interrupted(runs))
        drawn, mean, words = [draw.model for draw in draws], None, ""
        if draws:
            # An interrupted fit is not kept waiting for passes over all records.
            passes = 0 if is_interrupted(runs) else self.policy.anchored_passes
            means = [draw.mean for draw in draws]
            mean = posterior_mean(self.data, means, model, passes, self.policy)
        if draws and chains:
            seen = [self.data.observed(draw) for draw in drawn]
            words = (
                f"{plural(len(draws), 'posterior draw')} from {plural(chains, 'chain')}, "
                f"{describe_effective_draws(seen, chains)}."
            )
        return FitResult.of(
            self.data.to_pmf(model, drawn, mean),
            runs,
            f"Log-likelihood {value:.6g} of {self.data.total:,.0f} records",
            best=best,
            more=" ".join(filter(None, (dropped, words, more))),
            log_likelihood=value,
        )

    def drop_negligible(
        self, model: Model, known: float | None, interrupted: bool
    ) -> tuple[Model, float, str]:
        """The model without negligible classes, its log-likelihood, and what was dropped.

        ``known`` is the log-likelihood of the model, where it is known. Classes that stand for
        less than half a record stay where the log-likelihood needs them after all, which is so
        only far from a maximum. An interrupted fit takes no further pass where it can do without.
        """
        data, policy = self.data, self.policy
        if interrupted and known is not None:
            kept, dropped = drop_empty(model, policy)
            return kept, known, dropped
        kept, dropped = drop_empty(model, policy, data.size)
        value = data.expect(kept).log_likelihood if known is None or dropped else known
        if dropped:
            before = data.expect(model).log_likelihood if known is None else known
            if not before - value <= policy.negligible_nats:
                kept, dropped = drop_empty(model, policy)
                value = data.expect(kept).log_likelihood if dropped else before
        return kept, value, dropped


def report_passes(data: Data, session: Session, first: str) -> tuple[Data, Session]:
    """Data whose passes report how far they are, after what the last step reported."""
    report, last = session.report, first

    def step(line: str) -> None:
        nonlocal last
        last = line
        report(line)

    def look(line: str) -> None:
        report(f"{last}; this pass {line}")

    if isinstance(data, Smoothed):
        base, session = report_passes(data.base, session, first)
        return replace(data, base=base), session
    return replace(data, report=look), session.reporting(step)  # type: ignore[type-var]


def evident_concentrations(data: Data, model: Model, policy: Policy) -> FloatArray:
    """Concentrations of the priors after some variational steps from a model."""
    solver = Variational(policy=policy)
    state = solver.init(data, model)
    for _ in range(policy.concentration_steps):
        before, state = state, solver.step(data, state)
        if np.allclose(before.concentrations, state.concentrations, rtol=1e-3):
            break
    return state.concentrations


def drop_empty(
    model: Model, policy: Policy = DEFAULT, records: float = np.inf
) -> tuple[Model, str]:
    """Drop negligible classes, merge equal ones, sort by weight; say so if any were dropped.

    Negligible are classes without weight, and the smallest ones that together stand for less than
    half a record (``policy.negligible_records``) of the ``records`` that there are.
    """
    weights, factors = model.weights, model.factors
    smallest = np.argsort(weights, kind="stable")
    mass = np.empty_like(weights)
    mass[smallest] = np.cumsum(weights[smallest])
    alive = (weights > policy.empty_weight) & (mass >= policy.negligible_records / records)
    order = [int(f) for f in np.argsort(-weights, kind="stable") if alive[f]]
    kept: list[int] = []
    mass = weights.copy()
    for f in order:
        close = (
            g for g in kept if np.abs(factors[:, f] - factors[:, g]).max() < policy.same_column
        )
        twin = next(close, None)
        if twin is None:
            kept.append(f)
        else:
            mass[twin] += mass[f]
    text = describe_dropped(weights, alive, len(order) - len(kept), policy)
    return Model(model.layout, mass[kept] / mass[kept].sum(), factors[:, kept]), text


def describe_dropped(
    weights: FloatArray, alive: NDArray[np.bool_], merged: int, policy: Policy = DEFAULT
) -> str:
    """Describe which classes were dropped, and why.

    Examples
    --------
    >>> describe_dropped(np.array([0.7, 0.3, 1e-5]), np.array([True, True, False]), 0)
    '1 of 3 classes stood for less than 0.5 records: dropped.'
    """
    gone = weights[~alive]
    said = []
    if len(gone):
        why = "had no weight left"
        if gone.max() > policy.empty_weight:
            together = "together " if len(gone) > 1 else ""
            why = f"{together}stood for less than {policy.negligible_records:g} records"
        said.append(f"{len(gone)} of {len(weights)} classes {why}")
    if merged:
        said.append(f"{merged} {'was' if merged == 1 else 'were'} equal to others")
    return f"{' and '.join(said)}: dropped." if said else ""
