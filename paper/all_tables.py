"""All tables of one order of some records at once, without forming them.

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

from dataclasses import dataclass, field
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray

import rejoint as rj
from rejoint.factorization import Admm
from rejoint.factorization.loss import SQUARES
from rejoint.factorization.problem import gram_stack
from rejoint.kernels import SparseCodes
from rejoint.model import Layout, Model
from rejoint.solver.run import run

from .polynomials import Polynomials, SparseColumns, symmetric_total

FloatArray = NDArray[np.float64]

#: Bytes that the polynomials of all records may take.
MOST_BYTES = 2**31


def fit_all_tables(
    records: rj.Records, order: int, start: rj.LowRankPMF, solver: Admm, weighting: str
) -> rj.LowRankPMF:
    """A model from one start.

    >>> truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 6)
    >>> near = rj.LowRankPMF([0.5, 0.5], [[[0.6, 0.4], [0.4, 0.6]]] * 6)
    >>> found = fit_all_tables(truth.sample(1000, random_state=0), 3, near, Admm(), "equal")
    >>> bool(rj.metrics.factor_error(truth, found) < 0.1)
    True
    """
    problem = make_problem(records, order, weighting)
    model = Model.of(start.weights, start.factors)
    return rj.LowRankPMF.of_model(run(solver, problem, model).model, records.domain)


def make_problem(records: rj.Records, order: int, weighting: str) -> "RecordTables":
    """Merged records as a problem; refuses what cannot be had without tables."""
    merged = records.merged()
    cells, weight = rj.SparseRecords.of(merged).codes, np.asarray(merged.sample_weight)
    if weighting == "equal" and not (cells.counts == len(records.domain)).all():
        raise ValueError(
            "Tables of incomplete records count by their number of records where they are not "
            "formed: use weighting='count'."
        )
    usable = cells[(cells.counts >= order) & (weight > 0)]
    if not np.bincount(usable.variables, minlength=len(records.domain)).all():
        raise ValueError(f"A variable is observed in no record together with {order - 1} others.")
    return RecordTables.of(cells, weight, order)


@dataclass(frozen=True)
class RecordTables:
    """Records as all their tables of one order; ``weight`` sums to one for a mean table."""

    cells: SparseCodes
    weight: FloatArray
    order: int
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
        return cls(cells[used], weight[used] / mean, order)

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
            v = symmetric_total(self.cells, self.weight, factors, self.order)
            patterns, mass = self.patterns
            flat = symmetric_total(patterns, mass, self.products(factors), self.order)
            self.kept[key] = square(flat, factors.shape[1]), v
        return self.kept[key]

    def quick_value(self, model: Model) -> float:
        """Half the sum of squares, less that of the tables themselves."""
        gram, v = self.totals(model.factors)
        return float(0.5 * model.weights @ gram @ model.weights - v @ model.weights)

    def error(self, objective: float) -> float:
        """The error is not known where tables are not formed: moves count as they are."""
        return 1.0

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
                f"Rank {rank} needs more than {MOST_BYTES / 2**30:g} GB: take fewer records."
            )
        self.problem, self.factors = problem, factors
        self.values = Polynomials(
            problem.cells, problem.columns, problem.weight, factors, problem.order
        )
        self.grams = Polynomials(
            patterns, problem.pattern_columns, mass, problem.products(factors), problem.order
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
