"""All tables of records at once, without forming them, for ``factorize``.

With tables weighted by their number of records, ``V`` and ``G`` of the paper's subproblems are sums
over records of elementary symmetric polynomials: with ``a_n = A_n[x_n]`` for the observed variables
``n`` of a record and ``G_n = A_n^T A_n``, over all tables of ``d`` variables,

* ``v = sum_m c_m e_d(a_n)`` and ``V_n[i] = sum_{m: x_n = i} c_m e_{d-1}(a_k, k != n)``, and
* the same of the matrices ``G_n``, elementwise, gives the normal matrices.

The cost of a sweep is O(cells F) for V. G costs O(N F^2) where all records miss the same values,
above all for complete ones, and O(cells F^2) at the worst. For complete records this is the paper's
own objective, in which all tables count the same; ``||X||^2`` is not computed, so that the
objective is known up to a constant.
"""

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, is_dataclass, replace
from functools import cached_property, partial
from math import comb
from typing import Any

import numpy as np

from rejoint import kernels
from rejoint.arrays import FloatArray
from rejoint.domain.domain import Domain
from rejoint.domain.labels import Level
from rejoint.domain.variable import Kind
from rejoint.factorization.admm import Admm
from rejoint.factorization.fit_tables import Auto, as_method, as_start, join_runs
from rejoint.factorization.loss import SQUARES
from rejoint.factorization.problem import gram_stack
from rejoint.kernels import Polynomials, SparseCodes, SparseColumns, symmetric_total
from rejoint.model import Layout, Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.infer import Bins, NotApplicable
from rejoint.records.records import BaseRecords
from rejoint.records.sparse import SparseRecords, as_records
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.search import best_run, search
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits, Run
from rejoint.text import cite, plural, show

#: How far each start is followed before the best one is followed to the end.
EXPLORE_LIMITS = Limits(max_steps=15, progress=1e-4)

#: Products of rows that the starts may take in a sweep, all together; one start is always made.
WORK_LIMIT = 2_000_000_000

#: Bytes that the polynomials of all records may take.
MOST_BYTES = 2**31


@dataclass(frozen=True)
class AllTables:
    """All tables of one order of some records, for :func:`factorize`, without forming them.

    There are 166 million triples of 1,000 variables. A sweep over all of them costs time in the
    number of observed cells, by elementary symmetric polynomials of each record's factors. Tables
    count by their number of records, which for complete records is the same for all.

    Parameters
    ----------
    data : Records, SparseRecords, or anything that ``Records.of`` takes
        The records.
    order : int
        Variables of each table.
    kinds, levels, bins, not_applicable, missing_level
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
    not_applicable: InitVar[NotApplicable] = "auto"
    missing_level: InitVar[Sequence[Any]] = ()

    def __post_init__(
        self,
        kinds: Mapping[Any, Kind] | None,
        levels: Mapping[Any, Sequence[Level]] | None,
        bins: Bins,
        not_applicable: NotApplicable,
        missing_level: Sequence[Any],
    ) -> None:
        declared: dict[str, Any] = {"kinds": kinds, "levels": levels, "bins": bins}
        declared |= {"not_applicable": not_applicable, "missing_level": missing_level}
        records = as_records(self.data, **declared)
        object.__setattr__(self, "data", records)
        size = len(records.domain)
        if isinstance(self.order, bool) or not isinstance(self.order, int | np.integer):
            raise TypeError(f"order must be a whole number, got {cite(self.order)}.")
        if not 1 <= self.order <= size:
            raise ValueError(
                f"order={self.order}: with {plural(size, 'variable')}, the order must be between 1 "
                f"and {size}."
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
            f"solver={cite(method.name)} needs tables, which AllTables never forms: use "
            "solver='admm', or count some tables with rj.Marginals.count."
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
        models = (Model.draw(shares, rank, session.rng) for _ in range(count))
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


def make_problem(tables: AllTables, weighting: str) -> "RecordTables":
    """Merged records as a problem; refuses what cannot be had without tables."""
    records = tables.records.merged()
    assert records.sample_weight is not None  # merged records have weights
    cells = SparseRecords.of(records).codes
    weight = np.asarray(records.sample_weight)
    complete = bool((cells.counts == len(tables.domain)).all())
    if weighting not in ("equal", "count"):
        raise ValueError(f"weighting={cite(weighting)} is not supported; use 'equal' or 'count'.")
    if weighting == "equal" and not complete:
        raise ValueError(
            "Tables of incomplete records count by their number of records where they are not "
            "formed: use weighting='count', or count them by rj.Marginals.count."
        )
    usable = cells[(cells.counts >= tables.order) & (weight > 0)]
    seen = np.bincount(usable.variables, minlength=len(tables.domain))
    if (seen == 0).any():
        names = [tables.domain.names[n] for n in np.flatnonzero(seen == 0)]
        raise ValueError(
            f"No record has {show(names)} together with {tables.order - 1} others: leave such "
            "variables out, or use a lower order."
        )
    return RecordTables.of(cells, weight, tables.order)


def make_result(tables: AllTables, runs: Sequence[Run]) -> FitResult:
    """The best run as a result."""
    return FitResult.of(
        LowRankPMF.of_model(runs[best_run(runs)].model, tables.domain),
        runs,
        f"All tables of {plural(tables.order, 'variable')} are fitted",
        unit="sweep",
        more="Tables were not formed, so their error is not known.",
    )


@dataclass(frozen=True)
class RecordTables:
    """Records as all their tables of one order; ``weight`` sums to one for a mean table."""

    cells: SparseCodes
    weight: FloatArray
    order: int
    threads: int
    kept: dict[bytes, tuple[FloatArray, FloatArray]] = field(
        default_factory=dict, repr=False, compare=False
    )

    scale = float("nan")  # the size of the tables is not known
    packed = None
    loss = SQUARES

    @classmethod
    def of(cls, cells: SparseCodes, weight: FloatArray, order: int) -> "RecordTables":
        """Scale the weights, so that tables count one on average."""
        held = np.array([comb(int(k), order) for k in range(len(cells.levels) + 1)], dtype=float)
        mean = float(weight @ held[cells.counts]) / comb(len(cells.levels), order)
        used = np.flatnonzero(cells.counts >= order)
        return cls(cells[used], weight[used] / mean, order, kernels.available_threads())

    @cached_property
    def layout(self) -> Layout:
        """Where the levels of each variable stand."""
        return Layout(self.cells.levels)

    @cached_property
    def columns(self) -> SparseColumns:
        """The records by variable."""
        return SparseColumns.of(self.cells)

    @cached_property
    def patterns(self) -> tuple[SparseCodes, FloatArray]:
        """Which variables are observed together, and the weight of the records with just these."""
        return merge_patterns(self.cells, self.weight)

    @cached_property
    def pattern_columns(self) -> SparseColumns:
        """The patterns by variable."""
        return SparseColumns.of(self.patterns[0])

    def shares(self) -> list[FloatArray]:
        """Shares of each variable's levels."""
        mass = np.repeat(self.weight, self.cells.counts)
        counts: FloatArray = np.bincount(
            self.cells.cells, weights=mass, minlength=self.layout.size
        ).astype(np.float64, copy=False)
        return self.layout.split(self.layout.normalize(counts))

    def products(self, factors: FloatArray) -> FloatArray:
        """Upper triangles of ``A_n^T A_n``, (N, F (F + 1) / 2)."""
        upper = np.triu_indices(factors.shape[1])
        return gram_stack(self.layout, factors)[:, *upper]

    def totals(self, factors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``G`` (F, F) and ``v`` (F,) of the weights; the last ones asked for are remembered."""
        key = factors.tobytes()
        if key not in self.kept:
            while len(self.kept) > 1:
                self.kept.pop(next(iter(self.kept)))
            v = symmetric_total(self.cells, self.weight, factors, self.order, self.threads)
            patterns, mass = self.patterns
            flat = symmetric_total(patterns, mass, self.products(factors), self.order, self.threads)
            self.kept[key] = square(flat, factors.shape[1]), v
        return self.kept[key]

    def quick_value(self, model: Model) -> float:
        """Half the sum of squares, less that of the tables themselves."""
        gram, v = self.totals(model.factors)
        return float(0.5 * model.weights @ gram @ model.weights - v @ model.weights)

    def error(self, objective: float) -> float:
        """The error is not known where tables are not formed."""
        return float("nan")

    def visit(self, weights: FloatArray, factors: FloatArray) -> "RecordVisit":
        """Begin a sweep over all variables."""
        return RecordVisit(self, factors)


class RecordVisit:
    """A visit to all variables that keeps the polynomials of all records up to date."""

    def __init__(self, problem: RecordTables, factors: FloatArray) -> None:
        rank, (patterns, mass) = factors.shape[1], problem.patterns
        numbers = len(problem.cells) * rank + len(patterns) * rank * (rank + 1) // 2
        if 8 * (problem.order - 1) * numbers > MOST_BYTES:
            raise ValueError(
                f"{plural(len(problem.cells), 'record')} with {plural(len(patterns), 'pattern')} "
                f"of missing values need more than {MOST_BYTES / 2**30:g} GB for rank {rank}. Take "
                "fewer records or a lower rank, count some of the tables (rj.Marginals.count(data, "
                "order=3, sample=2000)), or use rj.estimate, which needs none."
            )
        self.problem, self.factors = problem, factors
        options = (problem.order, problem.threads)
        self.values = Polynomials(problem.cells, problem.columns, problem.weight, factors, *options)
        self.grams = Polynomials(
            patterns, problem.pattern_columns, mass, problem.products(factors), *options
        )

    def factor_normal(self, n: int) -> tuple[FloatArray, FloatArray]:
        """See ``TableVisit``."""
        gram = square(self.grams.without(n)[0], self.factors.shape[1])
        return gram, self.values.without(n)

    def note_change(self, n: int) -> None:
        """See ``TableVisit``."""
        mine = self.factors[self.problem.layout.rows(n)]
        self.values.replace(n, mine)
        self.grams.replace(n, (mine.T @ mine)[np.triu_indices(mine.shape[1])][None])

    def weights_normal(self) -> tuple[FloatArray, FloatArray]:
        """See ``TableVisit``."""
        return self.problem.totals(self.factors)


def square(triangle: FloatArray, rank: int) -> FloatArray:
    """The symmetric matrix with this upper triangle.

    Examples
    --------
    >>> square(np.array([1.0, 2.0, 3.0]), 2)
    array([[1., 2.],
           [2., 3.]])
    """
    found = np.empty((rank, rank))
    upper = np.triu_indices(rank)
    found[upper] = triangle
    found.T[upper] = triangle
    return found


def merge_patterns(cells: SparseCodes, weight: FloatArray) -> tuple[SparseCodes, FloatArray]:
    """Distinct sets of observed variables, each with the weight of the records that have it.

    Examples
    --------
    >>> cells = SparseCodes.of_codes(np.array([[0, 1], [1, 0], [-1, 0]], dtype=np.int16), [2, 2])
    >>> patterns, mass = merge_patterns(cells, np.ones(3))
    >>> patterns.to_codes(), mass
    (array([[-1,  0],
           [ 0,  0]], dtype=int16), array([1., 2.]))
    """
    # Random numbers of the variables add up to the same where the sets are the same.
    numbers = np.random.default_rng(0).integers(2**63, size=(2, len(cells.levels)), dtype=np.int64)
    sums = np.concatenate([np.zeros((2, 1), np.int64), numbers[:, cells.variables]], axis=1)
    np.cumsum(sums, axis=1, out=sums)  # modulo 2^64
    marks = (sums[:, cells.starts[1:]] - sums[:, cells.starts[:-1]]).T
    _, first, which = np.unique(marks, axis=0, return_index=True, return_inverse=True)
    kept = cells[first]
    found = SparseCodes(kept.starts, kept.variables, (1,) * len(cells.levels))
    mass = np.bincount(which.ravel(), weights=weight, minlength=len(first))
    return found, mass.astype(np.float64, copy=False)
