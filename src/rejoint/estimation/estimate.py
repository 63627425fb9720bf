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

from rejoint.arrays import FloatArray
from rejoint.check import check_positive_int, whole_or_auto
from rejoint.cost import Cost
from rejoint.domain.domain import Domain
from rejoint.domain.labels import Level
from rejoint.domain.variable import Kind
from rejoint.estimation.blocks import BlockFit, add_blocks
from rejoint.estimation.data import Data, InMemory, Parted
from rejoint.estimation.em import Em
from rejoint.estimation.gibbs import Bayes, Draw, child, describe_effective_draws, pass_cells
from rejoint.estimation.pair_shift import Misfit, find_gaps
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
    StartSearch,
    count_starts,
    describe_ends,
    independence,
    model_of_labels,
    random_model,
)
from rejoint.estimation.variational import estimate_concentrations
from rejoint.identifiability.assessment import Assessment, assess_records
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
    most = policy.most_classes if max_classes is None else read_most_classes(max_classes, rank)
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
    agreement = agreement and policy.agreement
    joined = read_blocks(blocks, source.domain)
    policy = replace(policy, most_classes=most, agreement=agreement, blocks=joined)
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
    if blocks is False or (isinstance(blocks, str) and blocks == "auto"):
        return blocks
    if blocks is True:
        return "auto"
    if isinstance(blocks, str) or not all(isinstance(own, Sequence) for own in blocks):
        raise ValueError(
            f"blocks={cite(blocks)} is not understood: give 'auto', False, or lists of names, such "
            f"as [[{', '.join(map(cite, domain.names[:2]))}]]."
        )
    read = tuple(tuple(domain.index(name) for name in own) for own in blocks)
    every = [n for own in read for n in own]
    if any(isinstance(own, str) or len(own) < 2 for own in blocks) or len(set(every)) < len(every):
        raise ValueError("blocks: each has two variables or more, and no variable is in two.")
    return read


def read_most_classes(most: int, rank: int | str) -> int:
    """Read the argument ``max_classes``, which must not be below the requested rank."""
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
    return most


def read_labels(
    source: Scan | BaseRecords, labels: Any, rank: int | str, start: LowRankPMF | None
) -> Model:
    """Return the model of the labels that a fit starts from, or raise an error if it cannot."""
    if isinstance(source, Scan):
        raise ValueError(
            "start_labels needs records in memory, and a Scan is read part by part: fit a part of "
            "the records with start_labels, and give its pmf as start to the fit of the Scan."
        )
    if start is not None:
        raise ValueError("start and start_labels both set where the fit starts: give one of them.")
    return model_of_labels(source, labels, rank)


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
        summary = summarize(scan, seed, session.report, policy)
        if (records := summary.records) is not None:
            yield InMemory.of(records), records
            return
        scan = replace(scan, rows=summary.rows)
        yield (Parted(scan.domain, scan.threads, scan, summary, session.report), summary.observed)


def fit_data(data: Data, request: Request, session: Session) -> FitResult:
    """Choose rank, estimator and smoothness on records in memory, then fit all data."""
    policy, plain, asked = request.policy, data, whole_or_auto("rank", request.rank)
    # What is not possible is refused before the long part.
    n_init = None if request.n_init is None else check_positive_int("n_init", request.n_init)
    smooth = smooth_variables(data.domain, request.smooth, request.solver)
    choose_solver(data, 1 if asked == "auto" else asked, request)
    start_at(request.start, data.sample(), request.rank)
    check_memory(data, 1 if asked == "auto" else asked)
    most = policy.smooth_rank if asked == "auto" else asked
    data, policy, time = smooth_data(data, smooth, most, session, policy)
    small, rank, selection, said = data.sample(), asked, None, list[str]()
    if rank == "auto":
        # Loading rank loads the front of this package, and so this file.
        from rejoint.rank.select import select_rank

        by_chains = request.solver in ("auto", "bayes") or isinstance(request.solver, Bayes)
        with session.convert(partial(result_of_selection, plain)):
            selection = select_rank(
                small, budget=request.budget, plan=by_chains, session=session, policy=policy
            )
            session.offer(lambda: selection)
        rank = selection.rank
        said.append(selection.words + describe_sample(plain))
    solver, why = choose_solver(data, rank, replace(request, policy=policy))
    said += [why, describe_smoothing(time) if smooth else ""]

    def finished(result: FitResult) -> FitResult:
        choice = join_messages(said)
        return replace(result, choice=choice, selection=selection, policy=request.policy)

    with session.convert(finished):
        known = [] if selection is None else start_at(selection.pmf, small, rank)
        given = start_at(request.start, small, rank)
        if (labelled := request.start_labels) is not None:
            # Random classes fill it up to the rank.
            count = count_starts(small, rank, n_init, policy) if rank > labelled.rank else 1
            center, rng = small.layout.split(small.center), session.rng
            given = [labelled.extend(rank, center, child(rng)) for _ in range(count)]
        plan = selection.plan if selection is not None and isinstance(solver, Bayes) else None
        if plan is None:
            modes = find_modes(data, rank, solver, known, given, n_init, session, policy)
        else:
            modes = fit_representative(data, known[0], session, policy)
        if small is not data:
            modes = continue_on_all_data(data, solver, modes, session, policy)
        if not isinstance(solver, Bayes):
            return finished(make_result(data, modes, policy))
        if plan is not None and solver is not request.solver and small is data:
            solver = plan_chains(data, plan, policy)
        solver = solver if n_init is None else replace(solver, chains=n_init)
        return finished(draw_posterior(data, solver, modes, plan, session, policy))


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


# --- the stages -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Modes:
    """What a stage of a fit has reached.

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
    concentrations : array, optional
        Concentrations of the prior that chains start with; by default the hyperprior's median.
    log_likelihood : float, optional
        That of the representative model, where it is known.
    """

    runs: Sequence[Run]
    best: Run
    models: Sequence[Model] = ()
    text: str = ""
    concentrations: FloatArray | None = None
    log_likelihood: float | None = None


def find_modes(
    data: Data,
    rank: int,
    solver: Any,
    known: Sequence[Model],
    given: Sequence[Model],
    n_init: int | None,
    session: Session,
    policy: Policy,
) -> Modes:
    """Follow many starts on records in memory for a while, and the best ones to the end.

    Models that are ``known`` are some of the starts, those that are ``given`` are all of them.
    """
    small, streamed, bayes = data.sample(), data.sample() is not data, isinstance(solver, Bayes)
    has_prior = solver == "map" or bayes
    if streamed and given and not has_prior:
        nothing = float("nan")
        start = Run(given[0], nothing, nothing, nothing, Stop.INTERRUPTED)
        return Modes([], start, given)
    # What goes on over all data starts at the most probable model of the sample.
    has_prior = has_prior or streamed
    em = solver if is_solver(solver) else Em(policy=policy)
    if has_prior:
        em = Em(prior=first_prior(small, policy), policy=policy)
    least = max(policy.modes, solver.chains) if bayes else 0
    asked = len(given) or (None if bayes else n_init)
    count = count_starts(small, rank, asked, policy, least)
    search = StartSearch(small, rank, session, policy, partial(result_of_search, data, policy))
    runs = search.explore(em, count, known, given)
    best, text, models = best_run(runs), describe_ends(small, runs, chains=bayes), list[Model]()
    if has_prior:
        # A chain hardly ever leaves a poor mode of a large sample: all start at good ones.
        models = good_models(runs, policy)
        concentrations = estimate_concentrations(small, runs[best].model, policy)
        search.follow(Em(make_prior(small, concentrations), policy=policy), runs, [best])
    if streamed:
        models = [*given, drop_empty(runs[best].model, policy)[0]]
    return Modes(runs, runs[best], models, text)


def good_models(runs: Sequence[Run], policy: Policy) -> list[Model]:
    """Models nearly as probable as the best one, which comes first."""
    best = best_run(runs)
    limit = runs[best].objective + policy.mode_nats
    others = [each for k, each in enumerate(runs) if k != best and each.objective <= limit]
    return [each.model for each in (runs[best], *others)]


def fit_representative(data: Data, start: Model, session: Session, policy: Policy) -> Modes:
    """Fit the most probable model of the rank, from the one that the search has found."""
    small = data.sample()
    limits = replace(policy.polish, max_steps=policy.representative_steps)
    prior = make_prior(small, estimate_concentrations(small, start, policy))
    em = Em(prior, limits=limits, policy=policy)
    session.offer(partial(result_of_unfinished, data, em, session, policy))
    done = run(em, small, start, session)
    if done.stop is Stop.STEPS:  # enough for a model to look at
        done = replace(done, stop=Stop.EARLY)
    return Modes([done], done, [done.model])


def continue_on_all_data(
    data: Data, solver: Any, modes: Modes, session: Session, policy: Policy
) -> Modes:
    """Take steps over data that are read again for each, from the model that the sample gave."""
    em, concentrations = solver, None
    if not is_solver(solver):  # which stops in proportion to the log-likelihood without classes
        alone = data.observed(independence(data)).factors[:, 0]
        size = max(-float(data.level_totals @ np.log(alone)), 1.0)
        limits = Limits(2000, progress=policy.streamed_nats / size, window=10, exact=-1.0)
        em = Em(limits=limits, policy=policy)
    if solver == "map" or isinstance(solver, Bayes):
        concentrations = estimate_concentrations(data.sample(), modes.best.model, policy)
        em = replace(em, prior=make_prior(data, concentrations))
    if modes.runs:
        session.offer(partial(result_of_search, data, policy, modes.runs))
    session.unfinished.clear()
    session.offer(partial(result_of_unfinished, data, em, session, policy))
    shown, reported = report_passes(data, session, "first pass")
    done = run(em, shown, modes.models[0], reported)
    value = em.penalty(done.model) - done.objective if isinstance(em, Em) else None
    return Modes([done], done, [done.model], modes.text, concentrations, value)


def report_passes(data: Data, session: Session, first: str) -> tuple[Data, Session]:
    """Data whose passes report how far they are, after what the last step reported."""
    report, last = session.report, [first]

    def step(line: str) -> None:
        last[0] = line
        report(line)

    shown = data.reporting(lambda line: report(f"{last[0]}; this pass {line}"))
    return shown, session.reporting(step)


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


def draw_posterior(
    data: Data,
    bayes: Bayes,
    modes: Modes,
    plan: "AnswerPlan | None",
    session: Session,
    policy: Policy,
) -> FitResult:
    """Draw from the posterior by chains that start at modes, or at random."""

    def so_far(kept: Sequence[Draw]) -> FitResult:
        when = f"after {plural(len(kept), 'posterior draw')}"
        when = when if kept else "before there were posterior draws"
        runs = [*modes.runs[:-1], replace(modes.runs[-1], stop=Stop.INTERRUPTED)]
        stopped = replace(modes, runs=runs, text=f"Interrupted {when}.")
        return make_result(data, stopped, policy, plan, kept)

    small, models, concentrations = data.sample(), modes.models, modes.concentrations
    if plan is not None:
        concentrations = plan.concentrations
        search = StartSearch(small, plan.rank, session, policy)
        if plan.start is None:
            models = [random_model(small, plan.rank, session.rng) for _ in range(bayes.chains)]
        else:
            few = plan.rank <= policy.mode_classes
            em = Em(first_prior(small, policy), policy=policy)
            models = good_models(
                search.explore(em, policy.modes if few else 1, [plan.start]), policy
            )
    shown, reported = report_passes(data, session, "first draw")
    starts = [models[k % len(models)] for k in range(bayes.chains)]
    draws = bayes.sample(shown, starts, reported, concentrations, offer=so_far)
    return make_result(data, modes, policy, plan, draws, bayes.draws)


def posterior_answer(
    data: Data, draws: Sequence[Draw], model: Model, plan: "AnswerPlan | None", policy: Policy
) -> Shifted:
    """Return the posterior mean in agreement with the tables of the records."""
    members, rank = [draw.mean for draw in draws], max(draw.mean.rank for draw in draws)
    most = round(min(policy.answer_classes[plan is not None] * rank, policy.most_classes))
    anchors = Anchors(policy.anchor_records, policy.pair_anchors[0] * data.total)
    anchors = anchors if plan is None else plan.anchors
    if plan is not None and plan.kind == "mode":
        members = [draws[0].mean if model.rank != plan.rank else model]
    passes = policy.anchored_passes
    mean = posterior_mean(data, members, members[-1], most, passes, anchors.passes)
    # Who gives rank one asks for independence. Where it was chosen, tables may refute it.
    moved = policy.agreement and not (plan is None and rank == 1)
    seen = [data.observed(draw.model) for draw in draws]
    weights = [anchors.pairs / data.total] if moved else []
    return next(shift_to_pairs(data, mean, seen, weights, policy))


# --- results --------------------------------------------------------------------------------------


def make_result(
    data: Data,
    modes: Modes,
    policy: Policy,
    plan: "AnswerPlan | None" = None,
    draws: Sequence[Draw] = (),
    length: int = 0,
) -> FitResult:
    """Make the result of what was found: its model, log-likelihood and sentences.

    ``length`` is the number of draws of each chain, once all are there.
    """
    interrupted, brief = is_interrupted(modes.runs), policy
    if interrupted:
        brief = replace(policy, anchored_passes=0, agreement=False, blocks=False)
    elif plan is None and modes.best.model.rank == 1 and policy.blocks == "auto":
        brief = replace(policy, blocks=False)  # who gives rank one asks for independence
    model, value, dropped = drop_negligible(data, modes, policy)
    answer, joined, gaps, words = None, None, tuple[TableGap, ...](), ""
    records = data.sample().records
    if draws:
        answer = posterior_answer(data, draws, model, plan, brief)
        joined = add_blocks(records, answer, max(draw.model.rank for draw in draws), brief)
        joined = joined.follow(spread_draws(data, draws, answer, joined.model))
    if not interrupted:
        shown = answer or next(shift_to_pairs(data, data.observed(model), [], []))
        if joined is None and isinstance(policy.blocks, tuple):
            joined = add_blocks(records, shown, model.rank, policy)
        misfit = Misfit.of(shown.tables, shown.shares(joined.model if joined else None))
        gaps = find_gaps(records, shown.groups, shown.tables, misfit, policy)
    pmf = data.to_pmf(model, joined, gaps)
    if length:
        seen = [data.observed(draw.model) for draw in draws]
        chains = [seen[k : k + length] for k in range(0, len(seen), length)]
        kept = f"; the model keeps {len(pmf.draws)}" if len(pmf.draws) < len(draws) else ""
        number = f"{plural(len(draws), 'posterior draw')} from {plural(len(chains), 'chain')}"
        words = f"{number}, {describe_effective_draws(chains)}{kept}."
    return FitResult.of(
        pmf,
        modes.runs,
        f"Log-likelihood {value:,.2f} of {plural(round(data.total), 'record')}",
        best=modes.best,
        more=join_messages([dropped, modes.text, words]),
        agreement="" if interrupted else describe_agreement(answer, gaps, joined, pmf, policy),
        log_likelihood=value,
        records=float(data.total),
    )


def result_of_search(data: Data, policy: Policy, runs: Sequence[Run]) -> FitResult:
    """Make the result of a fit that ended while starts were followed on records in memory."""
    small = data.sample()
    if small is data:
        return make_result(data, Modes(runs, runs[best_run(runs)]), policy)
    runs = [replace(each, stop=Stop.INTERRUPTED) for each in runs]
    summary = data.summary
    assert summary is not None
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
    return make_result(data, Modes([now], now, log_likelihood=value), policy)


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

#: Blocks that a fit names in its sentence.
SAID_BLOCKS = 3

#: Weight below which a class is empty whatever the number of records, and distance below which two
#: columns are the same.
EMPTY_WEIGHT, SAME_COLUMN = 1e-9, 1e-6


def drop_negligible(data: Data, modes: Modes, policy: Policy) -> tuple[Model, float, str]:
    """The model without negligible classes, its log-likelihood, and what was dropped.

    Classes that stand for less than half a record stay where the log-likelihood needs them after
    all, which is so only far from a maximum. An interrupted fit takes no pass for it.
    """
    model, known, interrupted = modes.best.model, modes.log_likelihood, is_interrupted(modes.runs)
    kept, dropped = drop_empty(model, policy, np.inf if interrupted else data.size)
    if known is not None and (interrupted or not dropped):
        return kept, known, dropped
    value = data.expect(kept).log_likelihood
    if dropped and not interrupted:
        before = data.expect(model).log_likelihood if known is None else known
        if not before - value <= NEGLIGIBLE_NATS:
            kept, dropped = drop_empty(model, policy)
            value = data.expect(kept).log_likelihood
    return kept, value, dropped


def drop_empty(
    model: Model, policy: Policy = DEFAULT, records: float = np.inf
) -> tuple[Model, str]:
    """Drop negligible classes, merge equal ones, sort by weight; describe what was dropped.

    Negligible are classes without weight, and the smallest ones that together stand for less than
    half a record (``policy.negligible_records``) of the ``records`` that there are.

    Examples
    --------
    >>> model = Model.of([0.7, 0.3, 1e-5], [[[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]]])
    >>> drop_empty(model, records=1000)[1]
    '1 of 3 classes stood for less than 0.5 records: dropped.'
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
    gone, merged, said = weights[order[~alive]], int(alive.sum()) - len(kept), list[str]()
    if len(gone):
        why = "had no weight left"
        if gone.max() > EMPTY_WEIGHT:
            together = "together " if len(gone) > 1 else ""
            why = f"{together}stood for less than {policy.negligible_records:g} records"
        said.append(f"{len(gone)} of {plural(len(weights), 'class', 'classes')} {why}")
    if merged:
        said.append(f"{merged} {'was' if merged == 1 else 'were'} equal to others")
    text = f"{' and '.join(said)}: dropped." if said else ""
    return Model(model.layout, mass[kept] / mass[kept].sum(), factors[:, kept]), text


# --- sentences ------------------------------------------------------------------------------------


def describe_agreement(
    answer: Shifted | None,
    gaps: Sequence[TableGap],
    joined: BlockFit | None,
    pmf: LowRankPMF,
    policy: Policy,
) -> Message:
    """Describe what was done so that answers agree with tables of the records, and what is left."""
    moved, towards = Message(""), "towards tables of two variables"
    if answer is not None and not policy.agreement:
        off = Argument("agreement", False)
        moved = Message(f"Answers were not moved {towards} ({{agreement}}).", agreement=off)
    elif answer is not None and answer.target is not None:
        far = f"{answer.distance:.3f} of their mass, on average"
        moved = Message(f"Answers were moved {towards} ({far}).")
    moved = join_messages([moved, describe_blocks(pmf.blocks, joined.gains if joined else ())])
    if not gaps:
        return moved
    count = len(gaps) - 1
    others = f"{plural(count, 'other table')} also {'differs' if count == 1 else 'differ'}"
    more = Message(f"{others}{{where}}.", where=PythonOnly(" (pmf.gaps)")) if count else ""
    return join_messages([moved, gaps[0].text, more])


def describe_blocks(blocks: Sequence[Sequence[str]], gains: Sequence[float]) -> str:
    """Name the variables that are tabulated together, those that gain most first.

    Examples
    --------
    >>> describe_blocks([("income", "bracket")], [53.0])
    'income and bracket are tabulated together: they depend on each other beyond the classes.'
    """
    if not blocks:
        return ""
    order = sorted(range(len(blocks)), key=lambda k: -gains[k])
    texts = [f"{', '.join(blocks[k][:-1])} and {blocks[k][-1]}" for k in order[:SAID_BLOCKS]]
    more = len(blocks) - SAID_BLOCKS
    others = f"; so are {plural(more, 'other group')} of variables" if more > 0 else ""
    verb = "are tabulated together: they depend on each other beyond the classes"
    return f"{'; '.join(texts)} {verb}{others}."


def describe_smoothing(time: float) -> str:
    """Describe how smooth the columns are.

    Examples
    --------
    >>> describe_smoothing(0.4)
    'Smoothed columns: the held-out likelihood chose a spread of 6% of the number of levels.'
    """
    if time == 0:
        return "Columns are not smoothed: no spread that was tried raises the held-out likelihood."
    share = f"{np.sqrt(2 * time) / TIME_LEVELS:.0%} of the number of levels"
    return f"Smoothed columns: the held-out likelihood chose a spread of {share}."


def describe_sample(data: Data) -> str:
    """Describe how many records the rank was chosen by, where not by all."""
    summary = data.summary
    if summary is None or not summary.size <= len(summary.keys) < summary.rows:
        return ""
    size = f"{len(summary.keys):,} of the {plural(summary.rows, 'record')}"
    return f" The rank was chosen on {size}, drawn at random."
