"""Select: choose the rank of records by a criterion."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, Literal

import numpy as np

from rejoint.domain.domain import Domain
from rejoint.domain.labels import Level
from rejoint.domain.variable import Kind
from rejoint.estimation.data import Data, InMemory
from rejoint.estimation.gibbs import ChainPlan
from rejoint.estimation.ordinal_smoothing import Smooth, smooth_data, smooth_variables
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.messages import Progress
from rejoint.rank.criteria import (
    Bic,
    EvidenceBound,
    HeldOutLikelihood,
    RankPath,
    SparseFit,
    fit_sparse,
)
from rejoint.rank.folds import make_folds
from rejoint.rank.held_out import HeldOutSearch, draw_rows, largest_rank, size_of
from rejoint.rank.run_off import Refined, can_refine, plan_chains, refine, start_of
from rejoint.rank.selection import (
    EnsembleCurve,
    Measure,
    Selection,
    conclude_search,
    describe_selection,
    search_ranks,
)
from rejoint.records.infer import Bins
from rejoint.records.sparse import as_records
from rejoint.records.survey_design import WeightArguments
from rejoint.solver.checkpoint import open_checkpoint
from rejoint.solver.search import OnInterrupt, interruptible
from rejoint.solver.session import Session
from rejoint.text import plural

CriterionName = Literal["heldout", "bic", "evidence", "variational"]


def select(
    data: Any,
    ranks: Sequence[int] | None = None,
    *,
    criterion: CriterionName = "heldout",
    solver: Any = "map",
    folds: int = 5,
    n_init: int = 3,
    budget: float | None = None,
    sample_weight: Any = None,
    survey_weight: Any = None,
    strata: Any = None,
    clusters: Any = None,
    domain: Domain | None = None,
    kinds: Mapping[Any, Kind] | None = None,
    levels: Mapping[Any, Sequence[Level]] | None = None,
    bins: Bins = None,
    smooth: Smooth = "auto",
    random_state: int | np.random.Generator | None = None,
    progress: bool | None = None,
    checkpoint: str | PathLike[str] | None = None,
    executor: Executor | None = None,
    on_interrupt: OnInterrupt = "raise",
    policy: Policy = DEFAULT,
) -> Selection:
    """Choose the number of hidden classes.

    Parameters
    ----------
    data : Records, SparseRecords, or anything that ``Records.of`` takes
        May have missing cells.
    ranks : sequence of int, optional
        The ranks to compare. By default 1, 2, 3, ... in growing steps until the score falls,
        then those in the gaps around the best.
    criterion : {"heldout", "bic", "evidence", "variational"}
        ``"heldout"``: mean log-probability of records left out of the fit, each once;
        ``"bic"``: cheaper, and cautious: it misses small classes; ``"evidence"``: the lower
        bound of variational Bayes; ``"variational"``: no curve at all, but the classes that
        variational Bayes with sparse weights keeps, under a cap that grows until it is not
        reached.
    solver : {"map", "ml"} or solver object
        What fits the models that are compared. Without a prior (``"ml"``) a cell that was
        never seen has probability zero, and held out it rules its model out altogether.
        ``"evidence"`` has its own.
    folds : int
        Parts that the records are held out in. Whole-number weights count copies, which are
        held out one by one; other records are held out whole, and so are clusters. Beyond a million
        records two of the parts are enough.
    n_init : int
        Starts of the fit of each rank to all records; two of three begin with the classes of
        the next smaller rank.
    budget : float, optional
        About how many seconds of computing the search may take, 20 by default. It is counted in
        operations, so that the same call has the same result on any machine.
    sample_weight, survey_weight, strata, clusters, domain, kinds, levels, bins
        As for :meth:`Records.of`.
    smooth : "auto", bool or list of names
        Variables with an order whose columns are smooth; see :func:`rejoint.estimate`.
    random_state : int or Generator, optional
        Seed.
    progress : bool, optional
        Whether to show progress on stderr; by default where that is a terminal.
    checkpoint : path, optional
        A file from which the same call goes on, after Ctrl-C or a kill, to the same result.
    executor : concurrent.futures.Executor, optional
        Where models are fitted to the folds: processes, machines. The result is the same.
    on_interrupt : {"raise", "return"}
        What Ctrl-C does: raise :class:`rejoint.FitInterrupted`, whose ``result`` is the best
        selection so far, or return that.
    policy : Policy
        Tuned numbers of the search.

    Returns
    -------
    Selection
        With ``rank``, the curve (``ranks``, ``scores``, ``errors``), and ``words``.

    Notes
    -----
    The search learns from at most 20,000 distinct records, other criteria and solvers use at most a
    million; ``words`` then says so.

    Examples
    --------
    >>> import rejoint as rj
    >>> truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    >>> selection = rj.rank.select(truth.sample(2000, random_state=0), random_state=0)
    >>> selection.rank
    2
    """
    given = None if ranks is None else checked_ranks(ranks)
    for name, value, least in (("folds", folds, 2), ("n_init", n_init, 1)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    weights = WeightArguments(sample_weight, survey_weight, strata, clusters)
    declared: dict[str, Any] = {"kinds": kinds, "levels": levels, "bins": bins}
    source = as_records(data, domain=domain, weights=weights, rule=policy.columns, **declared)
    records = InMemory.of(source)
    smoothed = smooth_variables(records.domain, smooth, solver)
    asked = {"ranks": given, "criterion": criterion, "solver": solver, "folds": folds}
    kept, rng = open_checkpoint(
        checkpoint,
        random_state,
        lambda: records.fingerprint,
        n_init=n_init,
        budget=budget,
        policy=policy,
        **asked,
    )
    with Progress(progress) as report:
        session = Session(rng, report, kept, executor)
        options: dict[str, Any] = {"criterion": criterion, "solver": solver, "folds": folds}
        options |= {"n_init": n_init, "budget": budget}

        def choose() -> Selection:
            found, own, _ = smooth_data(records, smoothed, policy.smooth_rank, session, policy)
            return select_rank(found, given, **options, session=session, policy=own)

        selection = interruptible(session, choose, on_interrupt)
    if source.design is None:
        return selection
    return replace(selection, words=f"{selection.words} {source.design.text}")


def select_rank(
    data: Data,
    ranks: Sequence[int] | None = None,
    *,
    criterion: CriterionName = "heldout",
    solver: Any = "map",
    folds: int = 5,
    n_init: int = 3,
    budget: float | None = None,
    plan: bool = False,
    session: Session,
    policy: Policy = DEFAULT,
) -> Selection:
    """Choose the rank of data in memory, as part of another fit.

    With ``plan`` the chains that answer are chosen as well.
    """
    if ranks is None and largest_rank(data) == 1:
        return only_one(data, criterion)
    if criterion == "heldout" and solver == "map":  # which limits its records itself
        return select_held_out(data, ranks, folds, session, policy, budget=budget, plan=plan)
    rows = len(data.records.weight)
    data = draw_rows(data, policy.most_rows, session.rng)
    cap = largest_rank(data)
    if criterion == "variational":
        found = select_sparse(data, ranks, cap, n_init, session, policy)
    else:
        judge = make_judge(data, criterion, solver, folds, n_init, session, policy)
        conclude = partial(conclude_records, judge, criterion, cap)
        found = search_ranks(judge, ranks, cap, session, conclude, policy)
    if rows > policy.most_rows:
        used = f"{policy.most_rows:,} of the {rows:,} distinct records, drawn at random"
        found = replace(found, words=f"{found.words} The search used {used}.")
    return found


def select_held_out(
    data: Data,
    ranks: Sequence[int] | None,
    folds: int,
    session: Session,
    policy: Policy,
    *,
    budget: float | None = None,
    plan: bool = False,
) -> Selection:
    """Choose the rank by records that the models have not seen, within a budget."""
    if budget is not None and not 0 < budget < np.inf:
        raise ValueError(f"budget must be a number of seconds above 0, got {budget!r}.")
    cells = None if budget is None else budget * CELLS_PER_SECOND
    found = HeldOutSearch(data, session, policy, ranks, cells, folds)
    if not found.folds:
        raise ValueError(
            "There is one record, and none to hold out: choose the rank yourself, or by "
            "criterion='bic'."
        )
    found.search(lambda: conclude_held_out(found, interrupted=True))
    refined = None
    if ranks is None:
        best = found.mode.best
        if can_refine(data, best, policy):
            refined = refine(data, best, session, policy)
        else:
            found.merge_back()
    selection = conclude_held_out(found, refined)
    if not plan:
        return selection
    session.offer(lambda: replace(selection, interrupted=True), certain=True)
    chains = plan_chains(data, found, refined, session, policy)
    start = None
    if chains.at_mode:
        models = [trial.mode for trial in found.trials.get(chains.rank, [])]
        if refined is not None:
            models = refined.models.get(chains.rank, models)
        start = start_of(data, models, session, policy)
    assert selection.ensemble is not None
    ensemble = replace(selection.ensemble, plan=chains, start=start)
    words = f"{selection.words} {describe_plan(chains)}"
    return replace(selection, ensemble=ensemble, words=words)


#: Cells times classes that passes go through in a second, on a common machine.
CELLS_PER_SECOND = 3e9


def describe_plan(plan: ChainPlan) -> str:
    """Say what answers.

    Examples
    --------
    >>> describe_plan(ChainPlan.from_random(50, 20, 8))
    'Answers are by 8 chains of rank 50 with 20 sweeps each, from random starts.'
    """
    where = "the most probable model of that rank" if plan.at_mode else "random starts"
    return (
        f"Answers are by {plan.chains} chains of rank {plan.rank} with {plan.sweeps} sweeps each, "
        f"from {where}."
    )


def conclude_held_out(
    found: HeldOutSearch, refined: Refined | None = None, *, interrupted: bool = False
) -> Selection:
    """The selection by the curves so far."""
    curve = found.mode if refined is None else refined.curve
    scores = {rank: curve.score(rank) for rank in sorted(curve.logs)}
    chosen = curve.smallest(1.0)
    errors = np.array([curve.error(chosen, rank) for rank in scores])
    values = np.array(list(scores.values()))
    near = scores[chosen] - errors <= values
    tied = tuple(rank for rank, close in zip(scores, near, strict=True) if close)
    model = found.trials[chosen][0].mode if refined is None else refined.models[chosen][0]
    words = describe_selection(chosen, scores, tied, HELD_OUT)
    if interrupted:
        words += " The search was interrupted: other ranks may be better."
    elif refined is None and chosen == max(scores) and chosen < largest_rank(found.data):
        words += f" {ENDINGS.get(found.ending, ENDINGS['largest'])}"
    ensemble = None
    if found.ensemble.logs:
        tried = sorted(found.ensemble.logs)
        ensemble = EnsembleCurve(
            found.ensemble.smallest(found.policy.ensemble_errors),
            tuple(tried),
            np.array([found.ensemble.score(rank) for rank in tried]),
        )
    return Selection(
        chosen,
        tuple(scores),
        values,
        errors,
        tied,
        "heldout",
        " ".join(filter(None, (words, found.describe_records()))),
        found.data.to_pmf(model.sorted()),
        interrupted,
        ensemble,
    )


HELD_OUT = Measure(
    "held-out log-likelihood per record",
    "one standard error",
    "one standard error of the difference",
)

#: Why the largest rank that was tried is chosen.
ENDINGS = {
    "budget": "The budget of the search ended there: larger ranks may be better (budget).",
    "cap": "Larger ranks would have fewer than ten records for each class.",
    "largest": "It is the largest that was tried: larger ones may be better.",
}


def make_judge(
    data: Data,
    criterion: str,
    solver: Any,
    folds: int,
    n_init: int,
    session: Session,
    policy: Policy,
) -> HeldOutLikelihood | Bic:
    """The criterion of a name, ready to score."""
    if criterion not in ("heldout", "bic", "evidence"):
        raise ValueError(
            f"criterion={criterion!r} is not known; give 'heldout' (log-probability of records "
            "left out), 'bic', 'evidence' or 'variational'."
        )
    first = "map" if criterion == "evidence" else solver
    path = RankPath.of(data, first, n_init, session, policy)
    if criterion != "heldout":
        return Bic(path) if criterion == "bic" else EvidenceBound(path)
    parts = list(make_folds(data, folds, session.rng))
    if not parts:
        raise ValueError(
            "There is one record, and none to hold out: choose the rank yourself, or by "
            "criterion='bic'."
        )
    used = policy.few_folds if size_of(data) > policy.most_rows else len(parts)
    return HeldOutLikelihood(path, parts[:used], solver)


def select_sparse(
    data: Data,
    ranks: Sequence[int] | None,
    cap: int,
    n_init: int,
    session: Session,
    policy: Policy,
) -> Selection:
    """Keep the classes that variational Bayes needs, of as many as the largest rank allows."""
    most = cap if ranks is None else max(ranks)
    selection: Selection | None = None
    for found in fit_sparse(data, most, n_init, session, policy):
        ended = describe_sparse(
            data, found, policy, "The search was interrupted: larger ranks may be better."
        )
        session.offer(partial(replace, ended, interrupted=True))
        ending = ""
        if found.rank == found.caps[-1] < cap:
            ending = "It is the largest that was allowed: larger ones may be better."
        selection = describe_sparse(data, found, policy, ending)
    assert selection is not None
    return selection


def describe_sparse(data: Data, found: SparseFit, policy: Policy, ending: str) -> Selection:
    """The selection of the classes that sparse variational Bayes keeps."""
    classes = plural(found.caps[-1], "class", "classes")
    words = (
        f"Rank {found.rank}: variational Bayes with sparse weights keeps {found.rank} of "
        f"{classes}; the expected number of records of each is above {policy.least_records:g}. "
        f"{ending}"
    ).rstrip()
    score, error = np.array([found.bound / data.total]), np.zeros(1)
    pmf, rank = data.to_pmf(found.model.sorted()), found.rank
    return Selection(rank, (rank,), score, error, (rank,), "variational", words, pmf)


def conclude_records(
    judge: HeldOutLikelihood | Bic,
    criterion: str,
    cap: int,
    scores: dict[int, float],
    interrupted: bool,
) -> Selection:
    """The selection by the scores so far."""

    def ending(chosen: int) -> str:
        if interrupted:
            return "The search was interrupted: other ranks may be better."
        if chosen == max(scores) and chosen < cap:
            return "It is the largest that was tried: larger ones may be better."
        return ""

    return conclude_search(judge, scores, criterion, judge.path.pmf, ending, interrupted)


def checked_ranks(ranks: Sequence[int]) -> tuple[int, ...]:
    """The ranks in order, each once."""
    found = list(ranks) if isinstance(ranks, Sequence | range | np.ndarray) else [ranks]
    good = all(
        isinstance(rank, int | np.integer) and not isinstance(rank, bool) and rank > 0
        for rank in found
    )
    if not found or not good:
        raise ValueError(
            f"ranks must be whole numbers of at least 1, such as range(1, 9); got {ranks!r}."
        )
    return tuple(sorted({int(rank) for rank in found}))


def only_one(data: Data, criterion: str) -> Selection:
    """Rank 1, where there is nothing to choose."""
    why = "there is one record"
    if size_of(data) > 1:
        why = "at most one variable has more than one level"
    words = f"Rank 1: {why}, so there is nothing for hidden classes to explain."
    score, error = np.full(1, np.nan), np.zeros(1)
    return Selection(1, (1,), score, error, (1,), criterion, words)
