"""AllTables: what ``factorize`` takes where tables are too many to be counted."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rejoint.domain.domain import Domain
from rejoint.factorization.admm import Admm
from rejoint.factorization.auto import REASONS, Auto, Report
from rejoint.factorization.problem import Array
from rejoint.factorization.random_start import spread_model
from rejoint.factorization.record_tables import RecordTables
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.records import BaseRecords
from rejoint.records.sparse import SparseRecords, as_records
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.solver import Limits, Run
from rejoint.text import plural, show

__all__ = ["AllTables", "fit_all_tables"]

#: How far each start is followed before the best one is followed to the end.
EXPLORE = Limits(max_steps=15, progress=1e-4)

#: Products of rows that the starts may take in a sweep, all together; one start is always made.
WORK = 2_000_000_000


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

    def __post_init__(self) -> None:
        records = as_records(self.data)
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
    start: LowRankPMF | None,
    n_init: int,
    weighting: str,
    rng: np.random.Generator,
    report: Report,
) -> FitResult:
    """Follow some starts for a while, and the best one to the end."""
    admm = checked_solver(solver)
    problem = make_problem(tables, weighting)
    patterns, _ = problem.patterns
    size = problem.cells.size * rank + patterns.size * rank * rank // 2
    count = max(1, min(n_init, WORK // max(size, 1)))
    models: list[tuple[Array, Array]] = []
    if start is not None:
        given = start.align(tables.domain)
        models, count = [(np.array(given.weights), np.vstack(given.factors))], 1
    shares = problem.shares()
    runs: list[Run] = []
    brief = admm if count == 1 else replace(admm, limits=EXPLORE)
    for k in range(count):
        model = models[k] if models else spread_model(shares, rank, rng)
        runs.append(run(brief, problem, *model, start=k, report=report))
        if runs[-1].reason == "interrupted":
            break
    best = int(np.argmin([found.objective for found in runs]))
    if count > 1 and runs[-1].reason != "interrupted":
        found = runs[best]
        last = run(admm, problem, found.weights, found.factors, start=best, report=report)
        runs[best] = replace(last, records=(*found.records, *last.records))
    return as_result(tables, problem, runs, runs[best])


def checked_solver(solver: Any) -> Admm:
    """The one solver that needs no tables."""
    if isinstance(solver, Auto):
        return Admm()
    if isinstance(solver, Admm):
        return solver
    raise ValueError(
        f"solver={getattr(solver, 'name', solver)!r} needs tables; those of AllTables are never "
        "formed: give solver='admm', or count some tables by rj.Marginals.count."
    )


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


def as_result(tables: AllTables, problem: RecordTables, runs: list[Run], best: Run) -> FitResult:
    """The best run as a model, with what is to be said about it."""
    order = np.argsort(-best.weights, kind="stable")
    parts = [best.factors[problem.rows(n)][:, order] for n in range(len(problem.levels))]
    steps = sum(record.step > 0 for found in runs for record in found.records)
    ended = any(found.reason == "interrupted" for found in runs)
    reason = REASONS["interrupted" if ended else best.reason]
    stop = (
        f"{plural(steps, 'sweep')} over all tables of {plural(tables.order, 'variable')} from "
        f"{plural(len(runs), 'start')}; {reason} (residual {best.residual:.1e}). Tables were not "
        "formed, so that their error is not known."
    )
    return FitResult(
        pmf=LowRankPMF(best.weights[order], parts, tables.domain),
        stop=stop,
        history=tuple(record for found in runs for record in found.records),
        error=float("nan"),
        residual=best.residual,
        starts=tuple(runs),
        misfits={},
    )
