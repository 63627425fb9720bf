"""AllTables: what ``factorize`` takes where tables are too many to be counted."""

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rejoint.domain.domain import Domain
from rejoint.domain.labels import Level
from rejoint.domain.variable import Kind
from rejoint.factorization.admm import Admm
from rejoint.factorization.fit_tables import Auto, as_method, as_pmf, as_start, join_runs
from rejoint.factorization.problem import draw_model
from rejoint.factorization.record_tables import RecordTables
from rejoint.model import Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.infer import Bins
from rejoint.records.records import BaseRecords
from rejoint.records.sparse import SparseRecords, as_records
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.search import best_run, search
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits, Run
from rejoint.text import plural, show

#: How far each start is followed before the best one is followed to the end.
EXPLORE_LIMITS = Limits(max_steps=15, progress=1e-4)

#: Products of rows that the starts may take in a sweep, all together; one start is always made.
WORK_LIMIT = 2_000_000_000


@dataclass(frozen=True)
class AllTables:
    """All tables of some records, of one order, for :func:`factorize`: none of them is formed.

    There are 166 million triples of 1,000 variables. A sweep over all of them costs time in the
    number of observed cells, by elementary symmetric polynomials of each record's factors. Tables
    count by their number of records, which for complete records is the same for all.

    Parameters
    ----------
    data : Records, SparseRecords, or anything that ``Records.of`` takes
        The records.
    order : int
        Variables of each table.
    kinds, levels, bins
        What is declared about columns; see :meth:`Records.of`.

    Examples
    --------
    >>> import rejoint as rj
    >>> truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 6)
    >>> data = truth.sample(1000, random_state=0)
    >>> result = rj.factorize(rj.AllTables(data, order=3), rank=2, random_state=0)
    >>> counted = rj.factorize(rj.Marginals.count(data, order=3), rank=2, random_state=0)
    >>> rj.metrics.total_variation(counted.pmf, result.pmf) < 1e-3
    True
    """

    data: Any
    order: int = 3
    kinds: InitVar[Mapping[Any, Kind] | None] = None
    levels: InitVar[Mapping[Any, Sequence[Level]] | None] = None
    bins: InitVar[Bins] = None

    def __post_init__(
        self,
        kinds: Mapping[Any, Kind] | None,
        levels: Mapping[Any, Sequence[Level]] | None,
        bins: Bins,
    ) -> None:
        records = as_records(self.data, kinds=kinds, levels=levels, bins=bins)
        object.__setattr__(self, "data", records)
        size = len(records.domain)
        if isinstance(self.order, bool) or not isinstance(self.order, int | np.integer):
            raise TypeError(f"order must be a whole number, got {self.order!r}.")
        if not 1 <= self.order <= size:
            raise ValueError(
                f"order={self.order}: tables of the {plural(size, 'variable')} there are have 1 to "
                f"{size} of them."
            )

    @property
    def records(self) -> BaseRecords:
        """The records.

        Examples
        --------
        >>> len(AllTables([[0, 1], [1, 0]], order=2).records)
        2
        """
        records: BaseRecords = self.data
        return records

    @property
    def domain(self) -> Domain:
        """Their domain.

        Examples
        --------
        >>> AllTables([[0, 1], [1, 0]], order=2).domain.shape
        (2, 2)
        """
        return self.records.domain


def fit_all_tables(
    tables: AllTables,
    rank: int,
    solver: Any,
    session: Session,
    *,
    start: LowRankPMF | str | None,
    n_init: int,
    weighting: str,
) -> FitResult:
    """Follow some starts for a while, and the best one to the end."""
    method = as_method(solver)
    method = Admm() if isinstance(method, Auto) else method
    if "tables" in getattr(method, "needs", ()):
        raise ValueError(
            f"solver={method.name!r} needs tables; those of AllTables are never formed: give "
            "solver='admm', or count some tables by rj.Marginals.count."
        )
    given = as_start(start, tables, rank)
    problem = make_problem(tables, weighting)
    patterns, _ = problem.patterns
    size = problem.cells.size * rank + patterns.size * rank * rank // 2
    count = max(1, min(n_init, WORK_LIMIT // max(size, 1)))
    if isinstance(given, Model):
        models, count = iter([given]), 1
    else:
        shares = problem.shares()
        models = (draw_model(shares, rank, session.rng) for _ in range(count))
    conclude = partial(make_result, tables)
    # A solver of the user's own that is no dataclass is followed to the end at once.
    brief = (
        method if count == 1 or not is_dataclass(method) else replace(method, limits=EXPLORE_LIMITS)
    )

    def explore(
        problem: RecordTables, start: Model, number: int, session: Session, key: str
    ) -> Run:
        return run(brief, problem, start, session, start=number)

    runs = search(problem, models, explore, session, offer=conclude)
    best = best_run(runs)

    def extended(last: Run | None) -> FitResult:
        return conclude(
            [*runs[:best], join_runs(runs[best], last or runs[best]), *runs[best + 1 :]]
        )

    if brief is method:
        return conclude(runs)
    session.offer(lambda: extended(session.unfinished.get(best)))
    return extended(run(method, problem, runs[best].model, session, start=best))


def make_problem(tables: AllTables, weighting: str) -> RecordTables:
    """Merged records as a problem; refuses what cannot be had without tables."""
    records = tables.records.merged()
    assert records.sample_weight is not None  # merged records have weights
    cells = SparseRecords.of(records).codes
    weight = np.asarray(records.sample_weight)
    complete = bool((cells.counts == len(tables.domain)).all())
    if weighting not in ("equal", "count"):
        raise ValueError(f"weighting={weighting!r} is not known; give 'equal' or 'count'.")
    if weighting == "equal" and not complete:
        raise ValueError(
            "Tables of incomplete records count by their number of records where they are not "
            "formed: say weighting='count', or count them by rj.Marginals.count."
        )
    usable = cells[(cells.counts >= tables.order) & (weight > 0)]
    seen = np.bincount(usable.variables, minlength=len(tables.domain))
    if (seen == 0).any():
        names = [tables.domain.names[n] for n in np.flatnonzero(seen == 0)]
        raise ValueError(
            f"No record has {show(names)} together with {tables.order - 1} others: leave such "
            "variables out, or take a lower order."
        )
    return RecordTables.of(cells, weight, tables.order)


def make_result(tables: AllTables, runs: Sequence[Run]) -> FitResult:
    """The best run as a result."""
    return FitResult.of(
        as_pmf(runs[best_run(runs)].model, tables),
        runs,
        f"All tables of {plural(tables.order, 'variable')} are fitted",
        unit="sweep",
        more="Tables were not formed, so that their error is not known.",
    )
