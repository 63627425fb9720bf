"""Select: choose the rank of records by a criterion."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, Literal

import numpy as np

from rejoint.check import check_positive_int
from rejoint.domain.domain import Domain
from rejoint.domain.labels import Level
from rejoint.domain.variable import Kind
from rejoint.estimation.data import InMemory
from rejoint.estimation.em import Em
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.smoothing import Smooth, smooth_data, smooth_variables
from rejoint.messages import Progress
from rejoint.rank.criteria import (
    EvidenceBound,
    InformationCriterion,
    brief_em,
    count_records,
    largest_rank,
    search_ranks,
)
from rejoint.rank.curve import HeldOutSearch
from rejoint.rank.selection import Selection
from rejoint.records.infer import Bins, NotApplicable
from rejoint.records.sparse import as_records
from rejoint.records.survey_design import WeightArguments
from rejoint.solver.checkpoint import open_checkpoint
from rejoint.solver.search import OnInterrupt, interruptible
from rejoint.solver.session import Session
from rejoint.solver.solver import is_solver
from rejoint.text import cite

CriterionName = Literal["heldout", "bic", "aic", "abic", "evidence"]
CRITERIA = ("heldout", "bic", "aic", "abic", "evidence")

#: Those of a maximum of the likelihood alone.
INFORMATION = frozenset({"bic", "aic", "abic"})


def select(
    data: Any,
    ranks: Sequence[int] | None = None,
    *,
    criterion: CriterionName | Sequence[CriterionName] = "heldout",
    solver: Any = "auto",
    folds: int = 5,
    n_init: int | None = None,
    budget: float | None = None,
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
        then those around the best.
    criterion : {"heldout", "bic", "aic", "abic", "evidence"} or a list of them
        ``"heldout"``: mean log-probability of records left out of the fit; ``"bic"``, ``"aic"``,
        ``"abic"``: information criteria at the maximum of the likelihood, as programs for latent
        classes give them (``"bic"`` is cautious and misses small classes, ``"abic"`` adjusts it
        for the sample size, ``"aic"`` takes more); ``"evidence"``: the lower bound of variational
        Bayes. Of several the first chooses, and the table has all of them at the same ranks.
    solver : {"auto", "map", "ml"} or solver object
        What fits the models that are compared; by default ``"map"`` where records are held out
        and ``"ml"`` for information criteria. Without a prior (``"ml"``) a cell that was never
        seen has probability zero, and held out it rules its model out altogether. ``"evidence"``
        has its own.
    folds : int
        Parts that the records are divided into. As many of them are held out, one by one, as hold
        500 records together. Whole-number weights count copies; other records are held out
        whole, and so are clusters.
    n_init : int, optional
        Starts of each rank, by ``"ml"`` or a solver object; as many as :func:`rejoint.estimate`
        takes by default. Some begin with the classes of the next smaller rank.
    budget : float, optional
        About how many seconds of computing the search of held-out likelihood may take, 20 by
        default. It is counted in operations, so that the same call has the same result on any
        machine.
    sample_weight, survey_weight, strata, clusters, domain, kinds, levels, bins, \
not_applicable, missing_level
        As for :meth:`Records.of`.
    smooth : "auto", bool or list of names
        Variables with an order whose columns are smooth; see :func:`rejoint.estimate`. Information
        criteria are those of columns that are not.
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
        With ``rank``, the curve (``ranks``, ``scores``, ``errors``), the ``table`` of criteria,
        and ``words``; ``print`` shows the table and the words.

    Notes
    -----
    The search of held-out likelihood learns from at most 20,000 distinct records; ``words`` then
    says so.

    Examples
    --------
    >>> import rejoint as rj
    >>> truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    >>> selection = rj.rank.select(truth.sample(2000, random_state=0), random_state=0)
    >>> selection.rank
    2
    """
    given = None if ranks is None else check_ranks(ranks)
    if n_init is not None:
        check_positive_int("n_init", n_init)
    if check_positive_int("folds", folds) < 2:
        raise ValueError("folds must be a whole number of at least 2, got 1.")
    criteria = check_criteria(criterion)
    weights = WeightArguments(sample_weight, survey_weight, strata, clusters)
    declared: dict[str, Any] = {"kinds": kinds, "levels": levels, "bins": bins}
    declared |= {"not_applicable": not_applicable, "missing_level": missing_level}
    source = as_records(data, domain=domain, weights=weights, rule=policy.columns, **declared)
    records = InMemory.of(source)
    smoothed = smooth_variables(records.domain, smooth, solver)
    if INFORMATION.issuperset(criteria):
        smoothed = ()
    options: dict[str, Any] = {"criterion": criteria, "solver": solver, "folds": folds}
    options |= {"n_init": n_init, "budget": budget}
    request = {"ranks": given, "smooth": smooth, "policy": policy, **options}
    kept, rng = open_checkpoint(checkpoint, random_state, lambda: records.fingerprint, **request)
    with Progress(progress) as report:
        session = Session(rng, report, kept, executor)

        def choose() -> Selection:
            own, limits, _ = smooth_data(records, smoothed, policy.smooth_rank, session, policy)
            return select_rank(own, given, **options, session=session, policy=limits)

        selection = interruptible(session, choose, on_interrupt)
    if source.design is None:
        return selection
    return replace(selection, words=f"{selection.words} {source.design.text}")


def select_rank(
    data: InMemory,
    ranks: Sequence[int] | None = None,
    *,
    criterion: Sequence[str] = ("heldout",),
    solver: Any = "auto",
    folds: int = 5,
    n_init: int | None = None,
    budget: float | None = None,
    plan: bool = False,
    session: Session,
    policy: Policy = DEFAULT,
) -> Selection:
    """Choose the rank of data in memory, as part of another fit.

    With ``plan`` the chains that answer are chosen as well.
    """
    if ranks is None and largest_rank(data) == 1:
        return select_rank_one(data, criterion[0])

    def choose(name: str, ranks: Sequence[int] | None) -> Selection:
        if name == "heldout":
            own = make_solver(solver, "map", policy)
            search = HeldOutSearch(data, session, policy, budget, folds, own, n_init)
            return search.select(ranks, plan)
        if name == "evidence":
            em = brief_em(data, policy)
            return search_ranks(EvidenceBound(name, data, em, n_init, policy), ranks, session)
        own = make_solver(solver, "ml", policy)
        return search_ranks(
            InformationCriterion(name, data.records, own, n_init, policy), ranks, session
        )

    first = choose(criterion[0], ranks)
    for name in criterion[1:]:
        if name not in first.table.columns:
            # An interrupted search by another criterion leaves the selection that there was.
            stopped = replace(first, interrupted=True)
            with session.convert(partial(lambda stopped, _: stopped, stopped)):
                other = choose(name, first.ranks)
            first = replace(first, table=first.table.join(other.table))
    return first


def make_solver(solver: Any, default: str, policy: Policy) -> Any:
    """The solver to fit ranks by; None for the search by chains, which finds MAP models."""
    if is_solver(solver):
        return solver
    name = default if solver == "auto" else solver
    if name == "map" != default:
        raise ValueError(
            "Information criteria need maximum-likelihood fits, and solver='map' has a prior: "
            "leave out solver, or use criterion='heldout'."
        )
    if name not in ("ml", "map"):
        raise ValueError(
            f"solver={cite(name)} cannot score ranks; give 'map', 'ml', or an object with name, "
            "limits, init and step, such as rejoint.estimation.Em()."
        )
    return Em(policy=policy) if name == "ml" else None


def check_criteria(criterion: str | Sequence[str]) -> tuple[str, ...]:
    """The criteria in the order given."""
    names = (criterion,) if isinstance(criterion, str) else tuple(criterion)
    unknown = [name for name in names if name not in CRITERIA]
    if unknown or not names:
        what = f"criterion={cite(unknown[0])} is not supported" if unknown else "criterion is empty"
        raise ValueError(f"{what}; use {', '.join(map(cite, CRITERIA))}, or several of them.")
    return names


def check_ranks(ranks: Sequence[int]) -> tuple[int, ...]:
    """The ranks in order, each once."""
    several = list(ranks) if isinstance(ranks, Sequence | np.ndarray) else [ranks]
    whole = (isinstance(r, int | np.integer) and not isinstance(r, bool) and r > 0 for r in several)
    if not several or not all(whole):
        raise ValueError(
            f"ranks must be whole numbers of at least 1, such as range(1, 9); got {cite(ranks)}."
        )
    return tuple(sorted({int(rank) for rank in several}))


def select_rank_one(data: InMemory, criterion: str) -> Selection:
    """Rank 1, where there is nothing to choose."""
    why = "there is one record"
    if count_records(data) > 1:
        why = "at most one variable has more than one level"
    words = f"Rank 1: {why}, so there is nothing for hidden classes to explain."
    score, error = np.full(1, np.nan), np.zeros(1)
    return Selection(1, (1,), score, error, (1,), criterion, words)
