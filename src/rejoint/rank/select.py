"""Select: choose the rank of records by a criterion."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from math import inf
from os import PathLike
from typing import Any, Literal

import numpy as np

from rejoint.domain.domain import Domain
from rejoint.domain.labels import Level
from rejoint.domain.variable import Kind
from rejoint.estimation.data import InMemory
from rejoint.estimation.em import Em
from rejoint.estimation.folds import draw_rows
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.smoothing import Smooth, smooth_data, smooth_variables
from rejoint.messages import Progress
from rejoint.rank.criteria import (
    EvidenceBound,
    InformationCriterion,
    brief_em,
    count_records,
    largest_rank,
)
from rejoint.rank.curve import HeldOutSearch
from rejoint.rank.selection import Selection, search_ranks
from rejoint.records.infer import Bins, NotApplicable
from rejoint.records.sparse import as_records
from rejoint.records.survey_design import WeightArguments
from rejoint.solver.checkpoint import open_checkpoint
from rejoint.solver.search import OnInterrupt, interruptible
from rejoint.solver.session import Session
from rejoint.solver.solver import is_solver
from rejoint.text import cite, plural

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
    The search of held-out likelihood learns from at most 20,000 distinct records, other criteria
    use at most a million; ``words`` then says so.

    Examples
    --------
    >>> import rejoint as rj
    >>> truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    >>> selection = rj.rank.select(truth.sample(2000, random_state=0), random_state=0)
    >>> selection.rank
    2
    """
    given = None if ranks is None else checked_ranks(ranks)
    for name, value, least in (("folds", folds, 2), ("n_init", 1 if n_init is None else n_init, 1)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ValueError(
                f"{name} must be a whole number of at least {least}, got {cite(value)}."
            )
    criteria = checked_criteria(criterion)
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
    asked = {"ranks": given, "smooth": smooth, "policy": policy, **options}
    kept, rng = open_checkpoint(checkpoint, random_state, lambda: records.fingerprint, **asked)
    with Progress(progress) as report:
        session = Session(rng, report, kept, executor)

        def choose() -> Selection:
            found, own, _ = smooth_data(records, smoothed, policy.smooth_rank, session, policy)
            return select_rank(found, given, **options, session=session, policy=own)

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
    first, *others = criterion
    if ranks is None and largest_rank(data) == 1:
        return select_rank_one(data, first)

    def score(name: str, ranks: Sequence[int] | None, leads: bool = False) -> Selection:
        if name == "heldout":  # which limits its records itself
            own = make_solver(solver, "map", policy)
            seconds, flat = (budget if leads else None), (inf if ranks else policy.flat_ranks)
            search = HeldOutSearch(data, session, policy, seconds, folds, own, n_init, flat)
            return search.select(ranks, plan and leads)
        return select_by(name, data, ranks, solver, n_init, session, policy)

    found = score(first, ranks, leads=True)

    def keep_found(other: Selection) -> Selection:
        """Of an interrupted search by another criterion, keep the selection that there was."""
        return replace(found, interrupted=True)

    for name in others:
        if name not in found.table.columns:
            with session.convert(keep_found):
                other = score(name, found.ranks)
            found = replace(found, table=found.table.join(other.table))
    return found


def select_by(
    criterion: str,
    data: InMemory,
    ranks: Sequence[int] | None,
    solver: Any,
    n_init: int | None,
    session: Session,
    policy: Policy,
) -> Selection:
    """Choose the rank by a criterion of fits to all records."""
    data = data.records if criterion in INFORMATION else data
    rows, most = len(data.records.weight), policy.most_rows
    data = draw_rows(data, most, session.rng)
    if criterion == "evidence":
        measured: InformationCriterion = EvidenceBound(
            criterion, data, brief_em(data, policy), n_init, policy
        )
    else:
        solver = make_solver(solver, "ml", policy)
        measured = InformationCriterion(criterion, data, solver, n_init, policy)
    found = search_ranks(measured, ranks, session)
    if rows > most:
        used = f"{most:,} of the {plural(rows, 'distinct record')}, drawn at random"
        found = replace(found, words=f"{found.words} The search used {used}.")
    return found


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


def checked_criteria(criterion: str | Sequence[str]) -> tuple[str, ...]:
    """The criteria in the order given."""
    found = (criterion,) if isinstance(criterion, str) else tuple(criterion)
    unknown = [name for name in found if name not in CRITERIA]
    if unknown or not found:
        what = f"criterion={cite(unknown[0])} is not supported" if unknown else "criterion is empty"
        raise ValueError(
            f"{what}; use 'heldout' (log-probability of records left out), 'bic', 'aic', 'abic' "
            "or 'evidence', or several of them."
        )
    return found


def checked_ranks(ranks: Sequence[int]) -> tuple[int, ...]:
    """The ranks in order, each once."""
    found = list(ranks) if isinstance(ranks, Sequence | np.ndarray) else [ranks]
    whole = (isinstance(r, int | np.integer) and not isinstance(r, bool) and r > 0 for r in found)
    if not found or not all(whole):
        raise ValueError(
            f"ranks must be whole numbers of at least 1, such as range(1, 9); got {cite(ranks)}."
        )
    return tuple(sorted({int(rank) for rank in found}))


def select_rank_one(data: InMemory, criterion: str) -> Selection:
    """Rank 1, where there is nothing to choose."""
    why = "there is one record"
    if count_records(data) > 1:
        why = "at most one variable has more than one level"
    words = f"Rank 1: {why}, so there is nothing for hidden classes to explain."
    score, error = np.full(1, np.nan), np.zeros(1)
    return Selection(1, (1,), score, error, (1,), criterion, words)
