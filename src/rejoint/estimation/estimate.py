"""Estimate the joint from records in memory, in files or on a cluster.

The stages of a fit stand in :func:`fit_data`: smooth columns, choose the rank, find modes, go on
over records that are not in memory, draw from the posterior; then :func:`make_result` makes one
model of what was found.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rejoint.check import check_positive_int, whole_or_auto
from rejoint.cost import Cost
from rejoint.domain.domain import Domain
from rejoint.domain.labels import Level
from rejoint.domain.variable import Kind
from rejoint.estimation.data import Data, InMemory, Parted
from rejoint.estimation.em import Em
from rejoint.estimation.gibbs import Bayes, Draw, child, effective_draws, pass_cells
from rejoint.estimation.pair_shift import find_gaps
from rejoint.estimation.part_summary import packed, summarize
from rejoint.estimation.placed_blocks import place_blocks
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.posterior_mean import (
    Anchors,
    Shifted,
    posterior_mean,
    shift_to_pairs,
    spread_draws,
)
from rejoint.estimation.priors import Prior, estimate_concentrations, first_prior, make_prior
from rejoint.estimation.smoothing import Smooth, describe_smoothing, smooth_data, smooth_variables
from rejoint.estimation.starts import (
    count_starts,
    describe_ends,
    explore_starts,
    independence,
    model_of_labels,
    random_model,
)
from rejoint.identifiability.assessment import Assessment, assess_records
from rejoint.kernels.backend import one_blas_thread
from rejoint.messages import Argument, Message, Progress, PythonOnly, join_messages, remark
from rejoint.model import Model
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
from rejoint.solver.search import OnInterrupt, best_run, interruptible, is_interrupted
from rejoint.solver.session import Report, Session
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
    blocks: Literal["auto"] | bool | Sequence[Sequence[Any]] = "auto",
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
    blocks : "auto", bool or list of lists of names
        Variables that are tabulated jointly within classes, since they depend on each other beyond
        these: an amount and its bracket, a question and its follow-up. By default those of which
        the tables of two variables show it, where a posterior mean answers; other solvers take
        the blocks that are named alone. See :attr:`LowRankPMF.blocks`.
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
    weights = WeightArguments(sample_weight, survey_weight, strata, clusters)
    source: Scan | BaseRecords
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
    labelled = None
    if start_labels is not None:
        if isinstance(source, Scan) or start is not None:
            raise ValueError(
                "start_labels needs records in memory, and no start beside it: of a Scan fit a "
                "part with start_labels, and give its pmf as start to the fit of all."
            )
        labelled = model_of_labels(source, start_labels, rank)
    if max_classes is not None:
        most = check_positive_int("max_classes", max_classes)
        if not isinstance(rank, str) and most < rank:
            arguments = {"most": Argument("max_classes", most), "rank": Argument("rank", rank)}
            raise ValueError(Message("{most} is below {rank}: give as many or more.", **arguments))
        policy = replace(policy, most_classes=most)
    joined = read_blocks(blocks, source.domain)
    policy = replace(policy, agreement=agreement and policy.agreement, blocks=joined)
    request = Request(rank, solver, smooth, start, n_init, policy, labelled, budget, counts)
    known = partial(fingerprint, source)
    kept, rng = open_checkpoint(checkpoint, random_state, known, **vars(request))
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
    start_labels: Model | None = None
    budget: float | None = None
    counts: bool = False


def read_blocks(blocks: Any, domain: Domain) -> Any:
    """Read the argument ``blocks``: "auto", False, or positions of the variables of each block."""
    if isinstance(blocks, bool) or blocks == "auto":
        return blocks and "auto"
    lists = not isinstance(blocks, str) and all(isinstance(own, list | tuple) for own in blocks)
    read = tuple(tuple(map(domain.index, own)) for own in blocks) if lists else ()
    every = [n for own in read for n in own]
    if not lists or min(map(len, read), default=2) < 2 or len(set(every)) < len(every):
        raise ValueError(
            f"blocks={cite(blocks)} is not understood: give 'auto', False, or lists of two names "
            "or more, no name in two of them."
        )
    return read


def fingerprint(source: Scan | BaseRecords) -> str:
    """Return a text that identifies the data of a checkpoint."""
    if isinstance(source, Scan):
        design = () if source.design is None else (repr(source.design),)
        return digest(source.stamp, source.names, source.domain.shape, *design)
    return InMemory.of(source).fingerprint


def _estimate(source: Scan | BaseRecords, request: Request, session: Session) -> FitResult:
    with open_data(source, session, request.policy) as (data, observed):
        result = fit_data(data, request, session)
        counted = data.scan if isinstance(data, Parted) else observed
        if request.counts and counted is not None:
            result = replace(result, counts=Counts.of(counted))
    rank = result.pmf.rank if request.rank == "auto" else int(request.rank)
    assessment = Assessment() if observed is None else assess_records(observed, rank)
    if assessment.serious:
        remark(assessment.text)
    design = "" if source.design is None else source.design.text
    return replace(result, choice=join_messages([result.choice, design, assessment.text]))


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
        summary = summarize(scan, seed, session.report, policy)
        if (records := summary.records) is not None:
            yield InMemory.of(records), records
            return
        scan = replace(scan, rows=summary.rows)
        report = partial(_report_pass, session.report)
        yield Parted(scan.domain, scan.threads, scan, summary, report), summary.observed


def _report_pass(report: Report, line: str) -> None:
    report(f"this pass {line}")


def fit_data(data: Data, request: Request, session: Session) -> FitResult:
    """Choose rank, estimator and smoothness on records in memory, then fit all data."""
    policy, plain, rank = request.policy, data, whole_or_auto("rank", request.rank)
    least = 1 if rank == "auto" else rank
    # What is not possible is refused before the long part.
    n_init = None if request.n_init is None else check_positive_int("n_init", request.n_init)
    smooth = smooth_variables(data.domain, request.smooth, request.solver)
    choose_solver(data, least, request)
    given = start_at(request.start, data.sample(), request.rank)
    check_memory(data, least)
    most = policy.smooth_rank if rank == "auto" else rank
    data, policy, time = smooth_data(data, smooth, most, session, policy)
    by_chains = request.solver in ("auto", "bayes") or isinstance(request.solver, Bayes)
    if isinstance(data, InMemory) and by_chains and rank != 1:
        data = place_blocks(data, policy)
    small, selection, texts = data.sample(), None, list[str]()
    if rank == "auto":
        # Loading rank loads the front of this package, and so this file.
        from rejoint.rank.select import select_rank

        with session.convert(partial(result_of_selection, plain)):
            selection = select_rank(
                small, budget=request.budget, plan=by_chains, session=session, policy=policy
            )
            session.offer(lambda: selection)
        rank = selection.rank
        texts.append(selection.words + describe_sample(plain))
    solver, why = choose_solver(data, rank, replace(request, policy=policy))
    if isinstance(data, InMemory) and not isinstance(solver, Bayes):
        data = small = data.without_blocks
    texts += [why, describe_smoothing(time) if smooth else ""]

    def finish(result: FitResult) -> FitResult:
        choice = join_messages(texts)
        return replace(result, choice=choice, selection=selection, policy=request.policy)

    with session.convert(finish):
        known = [] if selection is None else start_at(selection.pmf, small, rank)
        if (labelled := request.start_labels) is not None:
            # Random classes fill it up to the rank.
            count = count_starts(small, rank, n_init, policy) if rank > labelled.rank else 1
            center, rng = small.layout.split(small.center), session.rng
            given = [labelled.extend(rank, center, child(rng)) for _ in range(count)]
        plan = selection.plan if selection is not None and isinstance(solver, Bayes) else None
        if plan is None:
            fit = find_modes(data, rank, solver, known, given, n_init, session, policy)
        else:
            fit = fit_representative(data, known[0], plan, session, policy)
        if small is not data:
            fit = continue_on_all_data(data, solver, fit, session, policy)
        if isinstance(solver, Bayes):
            if plan is not None and solver is not request.solver and small is data:
                solver = plan_chains(data, plan, policy)
            solver = solver if n_init is None else replace(solver, chains=n_init)
            fit = draw_posterior(data, solver, fit, session, policy)
        return finish(make_result(data, fit, policy))


#: Classes by which memory and solver are described where no rank is given.
TYPICAL_RANK = 20


def fit_memory(data: Data, rank: int) -> float:
    """Return about how many bytes the models of a rank take while they are fitted."""
    return 8.0 * 30 * rank * (1 + data.layout.size)  # those of a search, or the draws kept


def check_memory(data: Data, rank: int) -> None:
    """Raise an error where models of a rank do not fit into memory."""
    what = f"A fit of {plural(rank, 'class', 'classes')} to {plural(data.layout.size, 'level')}"
    Cost(fit_memory(data, rank)).check(what, "a smaller rank, or fewer levels, take less")


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
    bayes = Bayes(policy=policy)
    if data.sample() is not data:  # a shorter one where each sweep reads the records again
        bayes = Bayes(*policy.streamed_chains, policy=policy)
    if solver != "auto":
        words = Message("{solver} was requested.", solver=Argument("solver", solver))
        return bayes if solver == "bayes" else solver, words
    parameters = max(data.layout.parameters(rank), 1)
    text = f"{plural(round(data.total), 'record')} for {plural(parameters, 'parameter')}"
    plenty = policy.plenty_records_per_parameter
    if data.total / parameters >= plenty and has_blocks(data):
        return bayes, "Bayes: variables depend on each other beyond the classes."
    if data.total / parameters >= plenty:
        return "ml", f"Maximum likelihood: {text}, {plenty:,.0f} or more for each."
    return bayes, f"Bayes: {text}, fewer than {plenty:,.0f} for each."


def has_blocks(data: Data) -> bool:
    """Whether passes over the data allow for blocks."""
    return isinstance(data, InMemory) and data.blocks is not None


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


# --- the stages -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fit:
    """What a fit has reached.

    Parameters
    ----------
    runs : sequence of Run
        What each start reached; none where only a given model was taken.
    best : Run
        The one of the representative model.
    models : sequence of Model
        Where the next stage starts: passes over all data at the first one, chains at all.
    text : str
        What to say about it.
    log_likelihood : float, optional
        That of the representative model, where it is known.
    prior : Prior, optional
        That of the representative model.
    plan : AnswerPlan, optional
        What answers, where held-out records have chosen it.
    draws : sequence of Draw
        Draws from the posterior, one chain after the other.
    length : int
        Draws of each chain; zero while some are missing.
    """

    runs: Sequence[Run]
    best: Run
    models: Sequence[Model] = ()
    text: str = ""
    log_likelihood: float | None = None
    prior: Prior | None = None
    plan: "AnswerPlan | None" = None
    draws: Sequence[Draw] = ()
    length: int = 0


def find_modes(
    data: Data,
    rank: int,
    solver: Any,
    known: Sequence[Model],
    given: Sequence[Model],
    n_init: int | None,
    session: Session,
    policy: Policy,
) -> Fit:
    """Follow many starts on records in memory for a while, and the best ones to the end.

    Models that are ``known`` are some of the starts, those that are ``given`` are all of them.
    """
    small, streamed, bayes = data.sample(), data.sample() is not data, isinstance(solver, Bayes)
    has_prior = solver == "map" or bayes
    if streamed and given and not has_prior:
        nothing = float("nan")
        return Fit([], Run(given[0], nothing, nothing, nothing, Stop.INTERRUPTED), given)
    # What goes on over all data starts at the most probable model of the sample.
    prior = first_prior(small, policy) if has_prior or streamed else None
    em = solver if is_solver(solver) and not streamed else Em(prior, policy=policy)
    least = max(policy.modes, solver.chains) if bayes else 0
    count = count_starts(small, rank, len(given) or (None if bayes else n_init), policy, least)
    offer = partial(result_of_search, data, policy)
    models = {"known": known, "given": given}
    runs = explore_starts(small, rank, em, count, session, policy, offer=offer, **models)
    # A chain hardly ever leaves a poor mode of a large sample: all start at good ones.
    ends, best, text = good_models(runs, policy), best_run(runs), describe_ends(runs, chains=bayes)
    if prior is not None:  # the same one with the concentrations that the best model asks for
        last, concentrations = runs[best], estimate_concentrations(small, ends[0], policy)
        em = Em(make_prior(small, concentrations), policy=policy).limited_by(last.objective)
        done = run(em, small, last.model, session, start=best)
        runs[best] = replace(done, records=(*last.records, *done.records))
        prior = em.prior
    if streamed:
        ends = [*given, drop_empty(runs[best].model, policy)[0]]
    return Fit(runs, runs[best], ends, text, prior=prior)


def good_models(runs: Sequence[Run], policy: Policy) -> list[Model]:
    """Models nearly as probable as the best one, which comes first."""
    best = best_run(runs)
    limit = runs[best].objective + policy.mode_nats
    others = [each for k, each in enumerate(runs) if k != best and each.objective <= limit]
    return [each.model for each in (runs[best], *others)]


def fit_representative(
    data: Data, start: Model, plan: "AnswerPlan", session: Session, policy: Policy
) -> Fit:
    """Fit the most probable model of the rank, from the one that the search has found."""
    small = data.sample()
    limits = replace(policy.polish, max_steps=policy.representative_steps)
    prior = make_prior(small, plan.concentrations)
    em = Em(prior, limits=limits, policy=policy)
    session.offer(partial(result_of_unfinished, data, em, session, policy))
    done = run(em, small, start, session)
    if done.stop is Stop.STEPS:  # enough for a model to look at
        done = replace(done, stop=Stop.EARLY)
    return Fit([done], done, [done.model], plan=plan, prior=prior)


def continue_on_all_data(
    data: Data, solver: Any, fit: Fit, session: Session, policy: Policy
) -> Fit:
    """Take steps over data that are read again for each, from the model that the sample gave."""
    em = solver
    if not is_solver(solver):  # which stops in proportion to the log-likelihood without classes
        alone = data.observed(independence(data)).factors[:, 0]
        size = max(-float(data.level_totals @ np.log(alone)), 1.0)
        limits = Limits(2000, progress=policy.streamed_nats / size, window=10, exact=-1.0)
        em = Em(None if solver == "ml" else fit.prior, limits=limits, policy=policy)
    if fit.runs:
        session.offer(partial(result_of_search, data, policy, fit.runs))
    session.unfinished.clear()
    session.offer(partial(result_of_unfinished, data, em, session, policy))
    done = run(em, data, fit.models[0], session)
    value = em.penalty(done.model) - done.objective if isinstance(em, Em) else None
    return replace(fit, runs=[done], best=done, models=[done.model], log_likelihood=value)


def plan_chains(data: Data, plan: "AnswerPlan", policy: Policy) -> Bayes:
    """Return the chains of a plan: 40 draws or so, from as many sweeps as its budget allows.

    Chains from random starts keep the last 40 % of their sweeps, those from a mode 70 %.
    """
    each = policy.chains * pass_cells(data, plan.rank, policy)
    sweeps = int(np.clip(policy.chain_cells / each, *policy.chain_sweeps))
    late = round((0.4 if plan.kind == "ensemble" else 0.7) * sweeps)
    count = min(-(-40 // policy.chains), late + 1)
    thin = max(round(late / max(count - 1, 1)), 1)
    return Bayes(policy.chains, sweeps - 1 - (count - 1) * thin, count, thin, policy=policy)


def draw_posterior(data: Data, bayes: Bayes, fit: Fit, session: Session, policy: Policy) -> Fit:
    """Draw from the posterior by chains that start at modes, or at random."""

    def make_so_far(draws: Sequence[Draw]) -> FitResult:
        when = "before there were posterior draws"
        when = f"after {plural(len(draws), 'posterior draw')}" if draws else when
        runs = [*fit.runs[:-1], replace(fit.runs[-1], stop=Stop.INTERRUPTED)]
        stopped = replace(fit, runs=runs, text=f"Interrupted {when}.", draws=draws)
        return make_result(data, stopped, policy)

    small, models, plan, concentrations = data.sample(), fit.models, fit.plan, None
    if plan is not None:
        concentrations = plan.concentrations
        if plan.start is None:
            models = [random_model(small, plan.rank, session.rng) for _ in range(bayes.chains)]
        else:
            count = policy.modes if plan.rank <= policy.mode_classes else 1
            em = Em(first_prior(small, policy), policy=policy)
            runs = explore_starts(small, plan.rank, em, count, session, policy, known=[plan.start])
            models = good_models(runs, policy)
    starts = [models[k % len(models)] for k in range(bayes.chains)]
    draws = bayes.sample(data, starts, session, concentrations, offer=make_so_far)
    return replace(fit, draws=draws, length=bayes.draws)


# --- results --------------------------------------------------------------------------------------


def make_result(data: Data, fit: Fit, policy: Policy) -> FitResult:
    """Make the result of what was found: its model, log-likelihood and sentences."""
    interrupted, brief = is_interrupted(fit.runs), policy
    named = policy.blocks if policy.blocks != "auto" else False
    if interrupted:
        brief = replace(policy, anchored_passes=0, agreement=False, blocks=False)
    elif fit.plan is None and fit.best.model.rank == 1:
        # Who gives rank one asks for independence. Where it was chosen, tables may refute it.
        brief = replace(policy, agreement=False, blocks=named)
    elif fit.plan is not None and fit.plan.anchors.blocks < 0.0 and not has_blocks(data):
        brief = replace(policy, blocks=named)  # held-out records are less probable by others
    model, value, dropped = drop_negligible(data, fit, policy)
    answer, drawn, gaps, words, draws = None, None, tuple[TableGap, ...](), "", fit.draws
    if draws:
        answer = posterior_answer(data, fit, model, brief)
        drawn = answer.blocks.draw(spread_draws(data, draws, answer), answer.model)
    elif not interrupted:
        given = policy if isinstance(policy.blocks, tuple) else replace(policy, blocks=False)
        answer = next(shift_to_pairs(data, data.observed(model), [], [], given))
    if answer is not None and not interrupted:
        records = data.sample().records
        gaps = find_gaps(records, answer.groups, answer.tables, answer.misfit, policy)
    mixture = answer.mixture if answer is not None and (draws or answer.blocks.counts) else None
    pmf = data.to_pmf(model, mixture, drawn, gaps)
    if fit.length:
        seen = [data.observed(draw.model) for draw in draws]
        chains = [seen[k : k + fit.length] for k in range(0, len(seen), fit.length)]
        kept = f"; the model keeps {len(pmf.draws)}" if len(pmf.draws) < len(draws) else ""
        number = f"{plural(len(draws), 'posterior draw')} from {plural(len(chains), 'chain')}"
        words = f"{number}, worth about {effective_draws(chains):.0f} independent ones{kept}."
    return FitResult.of(
        pmf,
        fit.runs,
        f"Log-likelihood {value:,.2f} of {plural(round(data.total), 'record')}",
        best=fit.best,
        more=join_messages([dropped, fit.text, words]),
        agreement="" if interrupted else describe_agreement(answer, fit.plan, gaps, pmf, policy),
        log_likelihood=value,
        records=float(data.total),
    )


def posterior_answer(data: Data, fit: Fit, model: Model, policy: Policy) -> Shifted:
    """Return the posterior mean in agreement with the tables of the records."""
    draws, plan, anchors = (
        fit.draws,
        fit.plan,
        Anchors(policy.anchor_records, policy.pair_anchors[0] * data.total),
    )
    members, rank = [draw.mean for draw in draws], max(draw.mean.rank for draw in draws)
    if plan is not None:
        anchors = plan.anchors
        if plan.kind == "mode":
            members = [draws[0].mean if model.rank != plan.rank else model]
    most = round(min(policy.answer_classes[plan is not None] * rank, policy.most_classes))
    passes = policy.anchored_passes
    mean = posterior_mean(data, members, members[-1], most, passes, anchors.passes)
    seen = [data.observed(draw.model) for draw in draws]
    weights = [anchors.pairs / data.total] if policy.agreement else []
    return next(shift_to_pairs(data, mean, seen, weights, policy))


def result_of_search(data: Data, policy: Policy, runs: Sequence[Run]) -> FitResult:
    """Make the result of a fit that ended while starts were followed on records in memory."""
    small, summary = data.sample(), data.summary
    if summary is None:
        return make_result(data, Fit(runs, runs[best_run(runs)]), policy)
    runs = [replace(each, stop=Stop.INTERRUPTED) for each in runs]
    rows = f"{len(summary.keys):,} of {plural(summary.rows, 'record')}"
    stop = f"Interrupted; this is a fit to a sample, {rows}."
    result = result_of_search(small, policy, runs)
    return replace(result, stop=stop, log_likelihood=float("nan"))


def result_of_unfinished(data: Data, em: Any, session: Session, policy: Policy) -> FitResult | None:
    """Make the result of a run that was interrupted, if it had begun."""
    if (now := session.unfinished.get(0)) is None:
        return None
    known = data.sample() is not data and isinstance(em, Em)
    value = em.penalty(now.model) - now.objective if known else None
    return make_result(data, Fit([now], now, log_likelihood=value), policy)


def result_of_selection(data: Data, selection: "Selection") -> FitResult | None:
    """Make the result of a fit that ended while the rank was chosen."""
    if selection is None or selection.pmf is None:
        return None
    pmf, nothing = selection.pmf.align(data.domain), float("nan")
    only = Run(Model.of(pmf.weights, pmf.factors), 0.0, nothing, nothing, Stop.INTERRUPTED)
    result = result_of_search(data, DEFAULT, [only])
    return replace(result, choice=selection.words, selection=selection)


#: Nats that dropping classes of half a record may cost at a maximum of the likelihood.
NEGLIGIBLE_NATS = 0.2


def drop_negligible(data: Data, fit: Fit, policy: Policy) -> tuple[Model, float, str]:
    """The model without negligible classes, its log-likelihood, and what was dropped."""
    model, value = fit.best.model, fit.log_likelihood
    interrupted = is_interrupted(fit.runs)
    smaller, dropped = drop_empty(model, policy, np.inf if interrupted else data.size)
    if value is None or (dropped and not interrupted):
        value = data.expect(smaller).log_likelihood
    if dropped and not interrupted:
        before = data.expect(model).log_likelihood
        if not before - value <= NEGLIGIBLE_NATS:
            # Far from a maximum a small class may be all that some records have.
            return model, before, ""
    return smaller, value, dropped


#: Weight below which a class is empty whatever the number of records, and distance below which two
#: columns are the same.
EMPTY_WEIGHT, SAME_COLUMN = 1e-9, 1e-6


def drop_empty(
    model: Model, policy: Policy = DEFAULT, records: float = np.inf
) -> tuple[Model, str]:
    """Drop negligible classes, merge equal ones, sort by weight; describe what was dropped.

    Negligible are classes without weight, and the smallest ones that together stand for less than
    half a record (``policy.negligible_records``) of the ``records`` that there are.
    """
    weights, factors = model.weights, model.factors
    order = np.argsort(-weights, kind="stable")
    below = np.cumsum(weights[order][::-1])[::-1]
    alive = (weights[order] > EMPTY_WEIGHT) & (below >= policy.negligible_records / records)
    kept, mass = list[int](), weights.copy()
    for f in order[alive]:
        away = np.abs(factors[:, kept] - factors[:, [f]]).max(axis=0) if kept else np.empty(0)
        if (away < SAME_COLUMN).any():
            mass[kept[int(np.argmax(away < SAME_COLUMN))]] += mass[f]
        else:
            kept.append(int(f))
    text, number = "", len(weights) - len(kept)
    if number:
        text = (
            f"{number} of {plural(len(weights), 'class', 'classes')} stood for less than "
            f"{policy.negligible_records:g} records together, or equaled others: dropped."
        )
    return Model(model.layout, mass[kept] / mass[kept].sum(), factors[:, kept]), text


# --- sentences ------------------------------------------------------------------------------------


def describe_agreement(
    answer: Shifted | None,
    plan: "AnswerPlan | None",
    gaps: Sequence[TableGap],
    pmf: LowRankPMF,
    policy: Policy,
) -> Message:
    """Describe what was done so that answers agree with tables of the records, and what is left."""
    texts, towards = list[str](), "towards tables of two variables"
    if answer is not None and not policy.agreement:
        off = Argument("agreement", False)
        texts.append(Message(f"Answers were not moved {towards} ({{agreement}}).", agreement=off))
    elif answer is not None and answer.target is not None:
        far = f"{answer.distance:.3f} of their mass, on average"
        texts.append(f"Answers were moved {towards} ({far}).")
    gain = None if plan is None else plan.anchors.blocks
    texts.append(describe_blocks(pmf.blocks, answer.blocks.gains if answer else (), gain))
    if gaps:
        texts.append(gaps[0].text)
    if len(gaps) > 1:
        text = f"{plural(len(gaps), 'table')} differ in all{{where}}."
        texts.append(Message(text, where=PythonOnly(" (pmf.gaps)")))
    return join_messages(texts)


#: Blocks that a fit names in its sentence.
SAID_BLOCKS = 3


def describe_blocks(
    blocks: Sequence[Sequence[str]], gains: Sequence[float], held_out: float | None
) -> str:
    """Name the variables that are tabulated together, those that gain most first."""
    if not blocks:
        return ""
    order = sorted(range(len(blocks)), key=lambda k: -gains[k])
    texts = [f"{', '.join(blocks[k][:-1])} and {blocks[k][-1]}" for k in order[:SAID_BLOCKS]]
    more = len(blocks) - SAID_BLOCKS
    others = f"; so are {plural(more, 'other group')} of variables" if more > 0 else ""
    verb = "are tabulated together: they depend on each other beyond the classes"
    if held_out is not None:
        verb += f", by {held_out:.2g} nats of the log-likelihood of a held-out record"
    return f"{'; '.join(texts)} {verb}{others}."


def describe_sample(data: Data) -> str:
    """Describe how many records the rank was chosen by, where not by all."""
    summary = data.summary
    if summary is None or not summary.size <= len(summary.keys) < summary.rows:
        return ""
    size = f"{len(summary.keys):,} of the {plural(summary.rows, 'record')}"
    return f" The rank was chosen on {size}, drawn at random."
