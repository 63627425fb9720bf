"""Estimate the joint from records in memory, in files or on a cluster."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rejoint.arrays import BoolArray, FloatArray
from rejoint.check import check_positive_int, whole_or_auto
from rejoint.cost import Cost
from rejoint.domain.domain import Domain
from rejoint.domain.labels import Level
from rejoint.domain.variable import Kind
from rejoint.estimation.data import Data, InMemory, Parted
from rejoint.estimation.em import Em
from rejoint.estimation.gibbs import Bayes, Draw, describe_effective_draws, pass_cells
from rejoint.estimation.pair_shift import find_gaps
from rejoint.estimation.part_summary import packed, summarize
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.posterior_mean import (
    Anchors,
    Shifted,
    posterior_mean,
    shift_to_pairs,
    spread_draws,
)
from rejoint.estimation.priors import first_prior, make_prior
from rejoint.estimation.smoothing import TIME_LEVELS, Smooth, smooth_data, smooth_variables
from rejoint.estimation.starts import (
    LabelledStart,
    StartSearch,
    compare_ends,
    count_starts,
    random_model,
)
from rejoint.estimation.variational import Variational
from rejoint.identifiability.assessment import Assessment, assess_records
from rejoint.messages import Argument, Message, Progress, PythonOnly, join_messages, remark
from rejoint.model import Model, Observed
from rejoint.pmf.counts import Counts
from rejoint.pmf.pmf import LowRankPMF
from rejoint.pmf.table_gap import TableGap
from rejoint.records.infer import Bins, NotApplicable
from rejoint.records.records import BaseRecords
from rejoint.records.scan import Scan
from rejoint.records.sparse import as_records
from rejoint.records.survey_design import WeightArguments
from rejoint.solver.checkpoint import digest, open_checkpoint
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.search import OnInterrupt, best_run, interruptible, is_interrupted, promising
from rejoint.solver.session import Session, one_blas_thread
from rejoint.solver.solver import Limits, Run, Stop, is_solver
from rejoint.text import cite, plural

if TYPE_CHECKING:
    from rejoint.rank.selection import AnswerPlan, Selection


def estimate(
    data: Any,
    rank: int | Literal["auto"] = "auto",
    solver: Any = "auto",
    *,
    smooth: Smooth = "auto",
    start: LowRankPMF | None = None,
    start_labels: Any = None,
    n_init: int | None = None,
    budget: float | None = None,
    agreement: bool = True,
    counts: bool = True,
    max_classes: int | None = None,
    sample_weight: Any = None,
    survey_weight: Any = None,
    strata: Any = None,
    clusters: Any = None,
    domain: Domain | None = None,
    kinds: Mapping[Any, Kind] | None = None,
    levels: Mapping[Any, Sequence[Level]] | None = None,
    bins: Bins = None,
    not_applicable: NotApplicable = "auto",
    missing_level: Sequence[Any] = (),
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
    smooth : "auto", bool or list of names
        Ordinal or binned variables whose factor columns are smooth, neighboring levels informing
        each other; True for all of them, and so is ``"auto"`` unless the solver is ``"ml"`` or an
        object. Held-out likelihood chooses how smooth, and may choose not at all.
    start : LowRankPMF, optional
        Where to start; the only start then.
    start_labels : array or list, optional
        A label for each record, such as a diagnosis or the majority of several raters; None, NaN
        or -1 where it is not known. The only starts then have a class for the records of each
        label, and random ones up to the rank. The fit may move records to other classes.
    n_init : int, optional
        Number of starts: records as profiles of classes, models grown from records that smaller
        ones lack, random models; one where each class holds the records that vote for a label, if
        all variables share their labels; the fit that chose the rank. All are followed for a
        while, the better ones further, the best ones to the end; more starts never end worse. 30
        by default where a pass is quick, down to 3 where it is not. For Bayes the number of
        chains, 3 by default, or 2 over records that are read again for each sweep.
    budget : float, optional
        About how many seconds of computing the search for a rank may take; see
        :func:`rejoint.rank.select`.
    agreement : bool
        Whether what answers (Bayes) is moved towards the tables of two variables of the records,
        by as much as its misfit is beyond chance: where many records answer a question, so that it
        can simply be counted, the answer is then as near to the truth as counting.
    counts : bool
        Whether the result keeps the records (of a Scan their tables of one and two variables), so
        that ``result.ask`` can count: its answers are then the best of count and model.
    max_classes : int, optional
        Largest number of classes of the model that answers, ``result.pmf.mixture``, and of its
        representative: what asking, a file and a page cost grows with it. By default twice the
        rank where that is given, and four times the rank that predicts best where it is not.
    sample_weight : array or name of a column, optional
        How many times each record counts: k is k copies.
    survey_weight, strata, clusters : array or name of a column, optional
        How many people of the population each record stands for, and how the survey was drawn. The
        weights are scaled to the effective number of records, whatever their scale, so that
        intervals allow for the design effect; see :meth:`Records.of`.
    domain : Domain, optional
        Variables and levels, where the data should not define them.
    kinds, levels, bins, not_applicable, missing_level
        What is declared about columns; see :meth:`Records.of`.
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
    if max_classes is not None:
        policy = limit_classes(policy, max_classes, rank)
    source: Scan | BaseRecords
    weights = WeightArguments(sample_weight, survey_weight, strata, clusters)
    if isinstance(data, Scan):
        declared_any = any(given is not None for given in (domain, kinds, levels, bins))
        declared_any |= not_applicable not in ("auto", False) or bool(missing_level)
        if declared_any or weights.given:
            raise ValueError("A Scan has its domain and weights: give them to scan(...) instead.")
        source = data
    else:
        declared: dict[str, Any] = {"kinds": kinds, "levels": levels, "bins": bins}
        declared |= {"not_applicable": not_applicable, "missing_level": missing_level}
        source = as_records(data, domain=domain, weights=weights, rule=policy.columns, **declared)
    labelled = None if start_labels is None else read_labels(source, start_labels, rank, start)
    if not agreement:
        policy = replace(policy, agreement=False)
    request = Request(rank, solver, smooth, start, n_init, policy, labelled, budget, counts)
    asked = {"rank": rank, "solver": solver, "smooth": smooth, "start": start, "n_init": n_init}
    asked["budget"] = budget
    if labelled is not None:
        asked["start_labels"] = labelled.labels
    kept, rng = open_checkpoint(
        checkpoint, random_state, partial(fingerprint, source), policy=policy, **asked
    )
    with Progress(progress) as report, one_blas_thread():
        session = Session(rng, report, kept, executor)
        return interruptible(session, partial(_estimate, source, request, session), on_interrupt)


@dataclass(frozen=True)
class Request:
    """The arguments of an estimate."""

    rank: int | Literal["auto"] = "auto"
    solver: Any = "auto"
    smooth: Smooth = False
    start: LowRankPMF | None = None
    n_init: int | None = None
    policy: Policy = DEFAULT
    labelled: LabelledStart | None = None
    budget: float | None = None
    counts: bool = False


def limit_classes(policy: Policy, most: int, rank: int | str) -> Policy:
    """Return the policy with a limit of classes, which must not be below the requested rank."""
    most = check_positive_int("max_classes", most)
    if not isinstance(rank, str) and most < rank:
        raise ValueError(
            Message(
                "{most} is below {rank}: the model that answers has at least as many classes as "
                "were requested. Give {enough} or more, or a smaller rank.",
                most=Argument("max_classes", most),
                rank=Argument("rank", int(rank)),
                enough=Argument("max_classes", int(rank)),
            )
        )
    return replace(policy, most_classes=most)


def read_labels(
    source: Scan | BaseRecords, labels: Any, rank: int | str, start: LowRankPMF | None
) -> LabelledStart:
    """Return the labels that a fit starts from, or raise an error if it cannot."""
    if isinstance(source, Scan):
        raise ValueError(
            "start_labels needs records in memory, and a Scan is read part by part: fit a part of "
            "the records with start_labels, and give its pmf as start to the fit of the Scan."
        )
    if start is not None:
        raise ValueError("start and start_labels both set where the fit starts: give one of them.")
    return LabelledStart.of(source, labels, rank)


def fingerprint(source: Scan | BaseRecords) -> str:
    """Return a text that identifies the data of a checkpoint."""
    if isinstance(source, Scan):
        design = () if source.design is None else (repr(source.design),)
        return digest(source.stamp, source.names, source.domain.shape, *design)
    return InMemory.of(source).fingerprint


def _estimate(source: Scan | BaseRecords, request: Request, session: Session) -> FitResult:
    with open_data(source, session, request.policy) as (data, observed):
        result = fit_data(data, request, session)
        if request.counts:
            counted = data.scan if isinstance(data, Parted) else observed
            counts = None if counted is None else Counts.of(counted)
            result = replace(result, counts=counts)
    rank = result.pmf.rank if request.rank == "auto" else int(request.rank)
    found = Assessment() if observed is None else assess_records(observed, rank)
    if found.serious:
        remark(found.text)
    design = "" if source.design is None else source.design.text
    return replace(result, choice=join_messages([result.choice, design, found.text]))


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
        summary = summarize(scan, seed, session.report, session.checkpoint, policy)
        if (records := summary.records) is not None:
            yield InMemory.of(records), records
            return
        scan = replace(scan, rows=summary.rows)
        yield (
            Parted(scan.domain, scan.threads, scan, summary, session.checkpoint, session.report),
            summary.observed,
        )


def fit_data(data: Data, request: Request, session: Session) -> FitResult:
    """Choose rank, estimator and smoothness on records in memory, then fit all data."""
    policy, plain = request.policy, data
    smooth = smooth_variables(data.domain, request.smooth, request.solver)
    # What is not possible is refused before the long part.
    n_init = None if request.n_init is None else check_positive_int("n_init", request.n_init)
    asked = whole_or_auto("rank", request.rank)
    choose_solver(data, 1 if asked == "auto" else asked, request)
    start_at(request.start, data.sample(), request.rank)
    check_memory(data, 1 if asked == "auto" else asked)
    most = policy.smooth_rank if asked == "auto" else asked
    data, policy, time = smooth_data(data, smooth, most, session, policy)
    small, rank, selection = data.sample(), asked, None
    said: list[str] = []
    if rank == "auto":
        # Loading rank loads the front of this package, and so this file.
        from rejoint.rank.select import select_rank

        by_chains = request.solver in ("auto", "bayes") or isinstance(request.solver, Bayes)
        with session.convert(partial(_result_of_selection, plain)):
            selection = select_rank(
                small, budget=request.budget, plan=by_chains, session=session, policy=policy
            )
            session.offer(lambda: selection)
        rank = selection.rank
        said.append(selection.words + _looked_at(plain))
    solver, why = choose_solver(data, rank, replace(request, policy=policy))
    said.append(why)
    if smooth:
        said.append(describe_smoothing(time))
    known = [] if selection is None else start_at(selection.pmf, small, rank)
    given = start_at(request.start, small, rank)
    plan = None if selection is None or not isinstance(solver, Bayes) else selection.plan
    fit = Fit(data, small, rank, session, policy, n_init, known, given, plan)
    if (labelled := request.labelled) is not None:
        given = labelled.models(small, rank, fit.count_starts(), session.rng)
        fit = replace(fit, given=given)
    if isinstance(solver, Bayes):
        if plan is not None and solver is not request.solver:
            solver = fit.sampler(plan)
        solver = solver if n_init is None else replace(solver, chains=n_init)

    def finished(result: FitResult) -> FitResult:
        told = join_messages(said)
        return replace(result, choice=told, selection=selection, policy=request.policy)

    with session.convert(finished):
        return finished(fit.fit(solver))


#: Classes that a forecast is made for where no rank is given.
TYPICAL_RANK = 20


def fit_memory(data: Data, rank: int) -> float:
    """Return about how many bytes the models of a rank take while they are fitted."""
    return 8.0 * 30 * rank * (1 + data.layout.size)  # those of a search, or the draws kept


def check_memory(data: Data, rank: int) -> None:
    """Raise an error where models of a rank do not fit into memory."""
    what = f"A fit of {plural(rank, 'class', 'classes')} to {plural(data.layout.size, 'level')}"
    Cost(fit_memory(data, rank)).check(what, "a smaller rank, or fewer levels, take less")


def _result_of_selection(data: Data, selection: "Selection") -> FitResult | None:
    """The result if the fit is interrupted while the rank is chosen."""
    if selection is None or selection.pmf is None:
        return None
    pmf = selection.pmf.align(data.domain)
    model, nothing = Model.of(pmf.weights, pmf.factors), float("nan")
    only = Run(model, 0.0, nothing, nothing, Stop.INTERRUPTED)
    fit = Fit(data, data.sample(), model.rank, Session(np.random.default_rng(0)), DEFAULT)
    found = fit.result_of_search([only])
    return replace(found, choice=selection.words, selection=selection)


def choose_solver(data: Data, rank: int, request: Request) -> tuple[Any, str]:
    """Return the estimator to use, and why."""
    solver, policy = request.solver, request.policy
    if isinstance(solver, Bayes) or is_solver(solver):
        return solver, f"{type(solver).__name__} was requested."
    if not isinstance(solver, str) or solver not in ("auto", "ml", "map", "bayes"):
        given = cite(solver) if isinstance(solver, str) else f"a {type(solver).__name__}"
        raise ValueError(
            f"solver={given} is not supported; use 'auto', 'ml', 'map', 'bayes', or an object such "
            "as rejoint.estimation.Em(). Solvers for tables belong to rj.factorize."
        )
    if solver != "auto":
        asked = Message("{solver} was requested.", solver=Argument("solver", solver))
        return default_bayes(data, policy) if solver == "bayes" else solver, asked
    parameters = max(data.layout.parameters(rank), 1)
    text = f"{plural(round(data.total), 'record')} for {plural(parameters, 'parameter')}"
    plenty = policy.plenty_records_per_parameter
    if data.total / parameters >= plenty:
        return "ml", f"Maximum likelihood: {text}, {plenty:,.0f} or more for each."
    return default_bayes(data, policy), f"Bayes: {text}, fewer than {plenty:,.0f} for each."


def default_bayes(data: Data, policy: Policy) -> Bayes:
    """The sampler; a shorter one where each sweep reads the records again."""
    if data.sample() is data:
        return Bayes(policy=policy)
    return Bayes(*policy.streamed_chains, policy=policy)


def start_at(start: LowRankPMF | None, data: Data, rank: int | str) -> list[Model]:
    """Return a given model as the only start; none if there is none."""
    if start is None:
        return []
    if not isinstance(start, LowRankPMF):
        raise ValueError(f"start must be a LowRankPMF, got {cite(start)}.")
    if start.rank != rank:
        asked = f"rank={cite(rank)} was requested"
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
    'Smoothed columns: the held-out likelihood chose a spread of 6% of the number of levels.'
    """
    if time == 0:
        return "Columns are not smoothed: no spread that was tried raises the held-out likelihood."
    share = np.sqrt(2 * time) / TIME_LEVELS
    return (
        f"Smoothed columns: the held-out likelihood chose a spread of {share:.0%} of the number of "
        "levels."
    )


def _looked_at(data: Data) -> str:
    """How many records the rank was chosen by, where not by all."""
    if (summary := data.summary) is None:
        return ""
    drawn, rows = len(summary.keys), summary.rows
    if drawn == rows or drawn < summary.size:  # all records, or all that hold a value
        return ""
    size = f"{drawn:,} of the {plural(rows, 'record')}"
    return f" The rank was chosen on {size}, drawn at random."


@dataclass(frozen=True)
class FoundModes:
    """What a stage of a fit has found.

    Parameters
    ----------
    runs : sequence of Run
        What each start reached; none where only a given model was taken.
    best : Run
        The one of the representative model.
    modes : sequence of Model
        Where the next stage starts: passes over all data at the first one, chains at all.
    concentrations : array, optional
        Concentrations of the prior that chains start with; by default the hyperprior's median.
    em : solver, optional
        What was run over all data.
    more : str
        What to say about it.
    """

    runs: Sequence[Run]
    best: Run
    modes: Sequence[Model] = ()
    concentrations: FloatArray | None = None
    em: Any = None
    more: str = ""


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
    plan : AnswerPlan, optional
        What answers, as chosen with the rank; by default chains from modes of the rank.
    """

    data: Data
    small: Data
    rank: int
    session: Session
    policy: Policy = DEFAULT
    n_init: int | None = None
    known: Sequence[Model] = ()
    given: Sequence[Model] = ()
    plan: "AnswerPlan | None" = None

    @property
    def streamed(self) -> bool:
        """Whether the data are read again for each pass."""
        return self.small is not self.data

    def fit(self, solver: Any) -> FitResult:
        """Search on the records in memory, continue on all data, and draw from the posterior."""
        found = self.find_modes(solver) if self.plan is None else self.fit_representative()
        if self.streamed:
            found = self.continue_on_all_data(solver, found)
        return self.draw(solver, found) if isinstance(solver, Bayes) else self.result(found)

    # -- Search on records in memory ---------------------------------------------------------

    def find_modes(self, solver: Any) -> FoundModes:
        """Follow many starts for a while, and the best ones to the end."""
        small, policy = self.small, self.policy
        bayes = solver if isinstance(solver, Bayes) else None
        # What goes on over all data starts at the most probable model of the sample.
        has_prior = solver == "map" or bayes is not None
        if self.streamed and self.given and not has_prior:
            nothing = float("nan")
            start = Run(self.given[0], nothing, nothing, nothing, Stop.INTERRUPTED)
            return FoundModes([], start, self.given)
        has_prior = has_prior or self.streamed
        first = self.em(small) if has_prior else Em(policy=policy) if solver == "ml" else solver
        starts = StartSearch(small, self.rank, self.session, policy, self.result_of_search)
        runs = starts.explore(first, self.count_starts(bayes), self.known, self.given)
        best, agreement = best_run(runs), compare_ends(small, runs)
        if has_prior:
            many = policy.finished_mode_records_per_parameter * small.layout.parameters(self.rank)
            if bayes is not None and not self.streamed and small.total > many:
                starts.finish(first, runs, best)
            # A chain hardly ever leaves a poor mode of a large sample: all start at good ones.
            limit = runs[best].objective + policy.mode_nats
            good = [k for k, each in enumerate(runs) if k != best and each.objective <= limit]
            modes = [runs[k].model for k in (best, *good)]
            concentrations = estimate_concentrations(small, runs[best].model, policy)
            starts.finish(self.em(small, concentrations), runs, best)
        else:
            ended = [k for k, each in enumerate(runs) if each.stop is not Stop.BEHIND]
            for number in promising(runs, ended):
                starts.finish(first, runs, number)
            best, modes = best_run(runs), []
        if self.streamed:
            modes = [*self.given, drop_empty(runs[best].model, policy)[0]]
        return FoundModes(runs, runs[best], modes, more=agreement.tell(chains=bayes is not None))

    def em(self, data: Data, concentrations: FloatArray | None = None) -> Em:
        """EM with a prior; of the hyperprior's median concentrations by default."""
        if concentrations is None:
            return Em(prior=first_prior(data, self.policy), policy=self.policy)
        return Em(prior=make_prior(data, concentrations), policy=self.policy)

    def count_starts(self, bayes: Bayes | None = None) -> int:
        """How many starts to follow: likelihoods of latent classes have many local maxima."""
        policy = self.policy
        if self.given:
            return len(self.given)
        if bayes is None and self.n_init:
            return self.n_init
        fewest = policy.fewest_starts if bayes is None else max(policy.modes, bayes.chains)
        return count_starts(self.small, self.rank, fewest, policy.most_starts, policy)

    def fit_representative(self) -> FoundModes:
        """Fit the most probable model of the rank, from the one that the search has found."""
        small, (start, *_) = self.small, self.known
        em = self.em(small, estimate_concentrations(small, start, self.policy))
        limits = Limits(self.policy.representative_steps, self.policy.polish_progress, exact=-1.0)
        self.session.offer(partial(self._offer_unfinished, em))
        done = run(replace(em, limits=limits), small, start, self.session)
        if done.stop is Stop.STEPS:  # enough for a model to look at
            done = replace(done, stop=Stop.EARLY)
        return FoundModes([done], done, [done.model])

    # -- Passes over all data ----------------------------------------------------------------

    def continue_on_all_data(self, solver: Any, found: FoundModes) -> FoundModes:
        """Take steps over all data from the model that the sample gave."""
        session, em, concentrations = self.session, solver, None
        if not is_solver(solver):
            em = Em(limits=self.streamed_limits(), policy=self.policy)
        if solver == "map" or isinstance(solver, Bayes):
            concentrations = estimate_concentrations(self.small, found.best.model, self.policy)
            em = replace(em, prior=make_prior(self.data, concentrations))
        if found.runs:
            session.offer(lambda: self.result_of_search(found.runs))
        session.unfinished.clear()
        session.offer(partial(self._offer_unfinished, em))
        data, reported = report_passes(self.data, session, "first pass")
        done = run(em, data, found.modes[0], reported)
        return FoundModes([done], done, [done.model], concentrations, em, found.more)

    def _offer_unfinished(self, em: Any) -> FitResult | None:
        """Make the result of a run that was interrupted, if it had begun."""
        if (now := self.session.unfinished.get(0)) is None:
            return None
        return self.result(FoundModes([now], now, em=em))

    def streamed_limits(self) -> Limits:
        """When to stop, in proportion to the log-likelihood without classes."""
        data = self.data
        alone = data.observed(Model(data.layout, np.ones(1), data.center[:, None])).factors[:, 0]
        size = -float(data.level_totals @ np.log(alone))
        progress = self.policy.streamed_nats / max(size, 1.0)
        return Limits(max_steps=2000, progress=progress, window=10, exact=-1.0)

    # -- Chains --------------------------------------------------------------------------------

    def sampler(self, plan: "AnswerPlan") -> Bayes:
        """Return the chains of a plan: 40 draws or so, from as many sweeps as its budget allows.

        Chains from random starts keep the last 40 % of their sweeps, those from a mode 70 %.
        """
        policy, random = self.policy, plan.kind == "ensemble"
        if self.streamed:
            return Bayes(*policy.streamed_chains, policy=policy)
        each = policy.chains * pass_cells(self.small, plan.rank, policy)
        sweeps = int(np.clip(policy.chain_cells / each, *policy.chain_sweeps))
        late = round((0.4 if random else 0.7) * sweeps)
        count = min(-(-40 // policy.chains), late + 1)
        thin = max(round(late / max(count - 1, 1)), 1)
        return Bayes(policy.chains, sweeps - 1 - (count - 1) * thin, count, thin, policy=policy)

    def chain_starts(self, found: FoundModes, count: int) -> tuple[list[Model], FloatArray | None]:
        """Return where chains start, and the concentrations of their prior."""
        plan, policy, rng = self.plan, self.policy, self.session.rng
        if plan is None:
            return list(found.modes), found.concentrations
        if plan.kind == "ensemble":
            starts = [random_model(self.small, plan.rank, rng) for _ in range(count)]
            return starts, plan.concentrations
        assert plan.start is not None
        other = replace(self, rank=plan.rank, plan=None, known=[plan.start])
        few = plan.rank <= policy.mode_classes
        runs = StartSearch(self.small, plan.rank, self.session, policy).explore(
            self.em(self.small), policy.modes if few else 1, other.known
        )
        limit = runs[best_run(runs)].objective + policy.mode_nats
        return [each.model for each in runs if each.objective <= limit], plan.concentrations

    def draw(self, bayes: Bayes, found: FoundModes) -> FitResult:
        """Draw from the posterior by chains that start at modes, or at random."""

        def so_far(kept: Sequence[Draw]) -> FitResult:
            told = f"after {plural(len(kept), 'posterior draw')}"
            told = f"Interrupted {told if kept else 'before there were posterior draws'}."
            stopped = [*found.runs[:-1], replace(found.runs[-1], stop=Stop.INTERRUPTED)]
            return self.result(replace(found, runs=stopped, more=told), kept)

        models, concentrations = self.chain_starts(found, bayes.chains)
        data, session = report_passes(self.data, self.session, "first draw")
        starts = [models[k % len(models)] for k in range(bayes.chains)]
        draws = bayes.sample(data, starts, session, concentrations, offer=so_far)
        return self.result(found, draws, bayes.draws)

    # -- What comes out --------------------------------------------------------------------------

    def result_of_search(self, runs: Sequence[Run]) -> FitResult:
        """The result of a fit that ended while starts were followed on records in memory."""
        if not self.streamed:
            return self.result(FoundModes(runs, runs[best_run(runs)]))
        runs = [replace(each, stop=Stop.INTERRUPTED) for each in runs]
        found = replace(self, data=self.small).result_of_search(runs)
        summary = self.data.summary
        assert summary is not None
        rows = f"{len(summary.keys):,} of {plural(summary.rows, 'record')}"
        stop = f"Interrupted; this is a fit to a sample, {rows}."
        return replace(found, stop=stop, log_likelihood=float("nan"))

    def answer(self, draws: Sequence[Draw], model: Model, ended: bool) -> Shifted:
        """Return the posterior mean in agreement with the tables of the records."""
        data, policy, plan = self.data, self.policy, self.plan
        members, rank = [draw.mean for draw in draws], max(draw.mean.rank for draw in draws)
        most = min(policy.answer_classes[plan is not None] * rank, policy.most_classes)
        anchors = Anchors(policy.anchor_records, policy.pair_anchors[0] * data.total)
        anchors = anchors if plan is None else plan.anchors
        if plan is not None and plan.kind == "mode":
            members = [draws[0].mean if model.rank != plan.rank else model]
        passes = 0 if ended else policy.anchored_passes
        mean = posterior_mean(data, members, members[-1], round(most), passes, anchors.passes)
        # Who gives rank one asks for independence. Where it was chosen, tables may refute it.
        independent = plan is None and rank == 1
        pairs = (
            [anchors.pairs / data.total]
            if policy.agreement and not independent and not ended
            else []
        )
        seen = [data.observed(draw.model) for draw in draws]
        return next(shift_to_pairs(data, mean, seen, pairs, policy))

    def result(self, found: FoundModes, draws: Sequence[Draw] = (), length: int = 0) -> FitResult:
        """Make the result of what was found: its model, log-likelihood and sentences.

        ``length`` is the number of draws of each chain, once all are there.
        """
        best, em, ended = found.best, found.em, is_interrupted(found.runs)
        # What was minimized tells the log-likelihood, which saves a pass.
        known = em.penalty(best.model) - best.objective if isinstance(em, Em) else None
        model, value, dropped = self.drop_negligible(best.model, known, ended)
        answer, drawn, words = None, list[Observed](), ""
        gaps: tuple[TableGap, ...] = ()
        if draws:
            answer = self.answer(draws, model, ended)
            drawn = spread_draws(self.data, draws, answer)
        if not ended:
            tables = answer or next(shift_to_pairs(self.data, self.data.observed(model), [], []))
            gaps = self.find_gaps(tables)
        mixture = None if answer is None else answer.model
        pmf = self.data.to_pmf(model, drawn, mixture, gaps)
        if length:
            seen = [self.data.observed(draw.model) for draw in draws]
            chains = [seen[k : k + length] for k in range(0, len(seen), length)]
            kept = f"; the model keeps {len(pmf.draws)}" if len(pmf.draws) < len(draws) else ""
            words = (
                f"{plural(len(draws), 'posterior draw')} from {plural(len(chains), 'chain')}, "
                f"{describe_effective_draws(chains)}{kept}."
            )
        return FitResult.of(
            pmf,
            found.runs,
            f"Log-likelihood {value:,.2f} of {plural(round(self.data.total), 'record')}",
            best=best,
            more=join_messages([dropped, found.more, words]),
            agreement="" if ended else self.describe_agreement(answer, gaps),
            log_likelihood=value,
            records=float(self.data.total),
        )

    def find_gaps(self, shifted: Shifted) -> tuple[TableGap, ...]:
        """Find the tables in which the records differ beyond chance from what answers."""
        records = self.data.sample().records
        return find_gaps(records, shifted.groups, shifted.tables, shifted.misfit, self.policy)

    def describe_agreement(self, answer: Shifted | None, gaps: Sequence[TableGap]) -> Message:
        """Describe whether answers were moved towards tables of the records, and what is left."""
        moved, towards = Message(""), "towards tables of two variables"
        if answer is not None and not self.policy.agreement:
            off = Argument("agreement", False)
            moved = Message(f"Answers were not moved {towards} ({{agreement}}).", agreement=off)
        elif answer is not None and answer.target is not None:
            far = f"{answer.distance:.3f} of their mass, on average"
            moved = Message(f"Answers were moved {towards} ({far}).")
        if not gaps:
            return moved
        count = len(gaps) - 1
        others = f"{plural(count, 'other table')} also {'differs' if count == 1 else 'differ'}"
        more = Message(f"{others}{{where}}.", where=PythonOnly(" (pmf.gaps)")) if count else ""
        return join_messages([moved, gaps[0].text, more])

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
            if not before - value <= NEGLIGIBLE_NATS:
                kept, dropped = drop_empty(model, policy)
                value = data.expect(kept).log_likelihood if dropped else before
        return kept, value, dropped


#: Nats that dropping classes of half a record may cost at a maximum of the likelihood.
NEGLIGIBLE_NATS = 0.2

#: Weight below which a class is empty whatever the number of records, and distance below which two
#: columns are the same.
EMPTY_WEIGHT, SAME_COLUMN = 1e-9, 1e-6


def report_passes(data: Data, session: Session, first: str) -> tuple[Data, Session]:
    """Data whose passes report how far they are, after what the last step reported."""
    report, last = session.report, first

    def step(line: str) -> None:
        nonlocal last
        last = line
        report(line)

    def look(line: str) -> None:
        report(f"{last}; this pass {line}")

    return data.reporting(look), session.reporting(step)


def estimate_concentrations(data: Data, model: Model, policy: Policy) -> FloatArray:
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
    """Drop negligible classes, merge equal ones, sort by weight; describe what was dropped.

    Negligible are classes without weight, and the smallest ones that together stand for less than
    half a record (``policy.negligible_records``) of the ``records`` that there are.
    """
    weights, factors = model.weights, model.factors
    smallest = np.argsort(weights, kind="stable")
    mass = np.empty_like(weights)
    mass[smallest] = np.cumsum(weights[smallest])
    alive = (weights > EMPTY_WEIGHT) & (mass >= policy.negligible_records / records)
    order = [int(f) for f in np.argsort(-weights, kind="stable") if alive[f]]
    kept: list[int] = []
    mass = weights.copy()
    for f in order:
        close = (g for g in kept if np.abs(factors[:, f] - factors[:, g]).max() < SAME_COLUMN)
        twin = next(close, None)
        if twin is None:
            kept.append(f)
        else:
            mass[twin] += mass[f]
    text = describe_dropped(weights, alive, len(order) - len(kept), policy)
    return Model(model.layout, mass[kept] / mass[kept].sum(), factors[:, kept]), text


def describe_dropped(
    weights: FloatArray, alive: BoolArray, merged: int, policy: Policy = DEFAULT
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
        if gone.max() > EMPTY_WEIGHT:
            together = "together " if len(gone) > 1 else ""
            why = f"{together}stood for less than {policy.negligible_records:g} records"
        said.append(f"{len(gone)} of {plural(len(weights), 'class', 'classes')} {why}")
    if merged:
        said.append(f"{merged} {'was' if merged == 1 else 'were'} equal to others")
    return f"{' and '.join(said)}: dropped." if said else ""
