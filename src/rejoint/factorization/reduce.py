"""Reduction of a model to a lower rank: exact joins of classes, then a fit to its own tables."""

from collections.abc import Sequence
from math import comb, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.factorization.admm import Admm
from rejoint.factorization.fit_tables import Auto, fit_tables
from rejoint.factorization.newton import Newton
from rejoint.marginals.marginals import Marginals
from rejoint.marginals.subsets import choose_subsets
from rejoint.pmf.from_dense import join_classes
from rejoint.pmf.pmf import LowRankPMF
from rejoint.queries.distances import relative_error, triangular_root
from rejoint.queries.mixture import partition_of, split_composite
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits

FloatArray = NDArray[np.float64]

_TABLES = 2000  # triples beyond which a random cover of the variables stands for all
_WHOLE = 2**14  # cells up to which the whole joint is fitted, too
_STARTS = 2  # of a fresh fit; more gain little where the merged classes are a start, too
_PAIRWISE = 2048  # classes that are compared pair by pair


class Reduction(NamedTuple):
    """A smaller model and the relative error of its joint, ``||X - Xhat||_F / ||X||_F``.

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.datasets.asia()
    >>> reduction = rj.LowRankPMF.average([p, p]).reduce()
    >>> reduction.pmf.rank <= 8, reduction.error < 1e-12
    (True, True)
    """

    pmf: LowRankPMF
    error: float


def reduce(
    pmf: LowRankPMF,
    rank: int | None,
    tol: float,
    random_state: int | np.random.Generator | None,
) -> Reduction:
    """Reduce to a rank, or to the lowest rank found; see :meth:`LowRankPMF.reduce`."""
    if rank is not None and rank < 1:
        raise ValueError(f"reduce: rank must be at least 1; got {rank}.")
    if not tol >= 0.0:
        raise ValueError(f"reduce: tol must not be negative; got {tol}.")
    if pmf.blocks:
        return reduce_blocks(pmf, rank, tol, random_state)
    joined = type(pmf)(*join_classes(pmf.weights, pmf.factors), pmf.domain)
    if joined.rank == pmf.rank:
        joined = pmf
    search = _Search(pmf, joined, tol, np.random.default_rng(random_state))
    if rank is not None:
        return search.whole if joined.rank <= rank else search.fit(rank)
    return search.least()


def reduce_blocks(
    pmf: LowRankPMF,
    rank: int | None,
    tol: float,
    random_state: int | np.random.Generator | None,
) -> Reduction:
    """Reduce a model whose variables are its blocks."""
    mixture = pmf._parts
    partition = partition_of(mixture)
    flat = LowRankPMF(mixture.weights, mixture.composite(partition))
    found = reduce(flat, rank, tol, random_state)
    parts = split_composite(found.pmf._parts, partition, pmf.domain.shape)
    factors = [parts.factors[n] for n in range(len(pmf.domain))]
    return Reduction(
        LowRankPMF(parts.weights, factors, pmf.domain, blocks=parts.blocks), found.error
    )


class _Search:
    """Fits of one model at several ranks; its tables are computed once."""

    def __init__(
        self, pmf: LowRankPMF, joined: LowRankPMF, tol: float, rng: np.random.Generator
    ) -> None:
        self.pmf, self.joined, self.tol, self.rng = pmf, joined, tol, rng
        self.whole = self._judge(joined)
        self._tables: Marginals | None = None

    def _judge(self, model: LowRankPMF) -> Reduction:
        p = self.pmf
        return Reduction(model, relative_error(p.weights, p.factors, model.weights, model.factors))

    def least(self) -> Reduction:
        """Step up from the lower bound with growing steps until a fit is good, then halve."""
        joined = self.joined
        low, high = least_rank(joined.weights, joined.factors, self.tol), joined.rank
        best, step, rank = self.whole, 1, low
        while rank < high:
            found = self.fit(rank)
            if found.error <= self.tol:
                best, high = found, rank
                break
            low, rank, step = rank + 1, rank + step, 2 * step
        while low < high:
            middle = (low + high) // 2
            found = self.fit(middle)
            if found.error <= self.tol:
                best, high = found, middle
            else:
                low = middle + 1
        return best

    def fit(self, rank: int) -> Reduction:
        """The best of: classes merged, a fit from there, a fit from its own start."""
        joined = self.joined
        merged = type(joined)(*merge_nearest(joined.weights, joined.factors, rank), joined.domain)
        best = self._judge(merged)
        for start in (None, merged):
            if best.error <= self.tol:
                return best
            best = self._better(best, self.tables(), rank, start)
        if best.error > self.tol and prod(joined.domain.shape) <= _WHOLE:
            # Small enough for the whole joint to be the table: then the error itself is minimized.
            whole = Marginals.from_pmf(joined, subsets=[joined.domain.names])
            best = self._better(best, whole, rank, best.pmf)
        return best

    def _better(
        self, best: Reduction, tables: Marginals, rank: int, start: LowRankPMF | None
    ) -> Reduction:
        # An exact fit is reached in a few dozen steps; the last digits of any other are not
        # worth minutes.
        solver = Auto(
            polish=Newton(limits=Limits(max_steps=100, progress=1e-3)),
            finish=Admm(limits=Limits(max_steps=50, progress=1e-3)),
        )
        session = Session(np.random.default_rng(int(self.rng.integers(2**31))))
        result = fit_tables(tables, rank, solver, session, start=start, n_init=_STARTS)
        return min(best, self._judge(result.pmf), key=lambda found: found.error)

    def tables(self) -> Marginals:
        if self._tables is None:
            domain = self.joined.domain
            order = min(3, len(domain))
            sample = _TABLES if comb(len(domain), order) > _TABLES else None
            chosen = choose_subsets(domain, order, sample=sample, random_state=self.rng)
            subsets = [[domain.names[n] for n in subset] for subset in chosen]
            self._tables = Marginals.from_pmf(self.joined, subsets=subsets)
        return self._tables


def least_rank(weights: FloatArray, factors: Sequence[FloatArray], tol: float) -> int:
    """Lower bound of the rank of any model with a relative error of at most `tol`.

    The joint with its variables split into two groups is a matrix; no model of rank r is nearer
    to it than the singular values beyond the r-th allow. The largest of a few splits is taken.

    Examples
    --------
    >>> import numpy as np
    >>> least_rank(np.array([0.5, 0.5]), [np.eye(2), np.eye(2)], 1e-8)
    2
    """
    bound, order = 1, np.arange(len(factors))
    for turn in range(min(len(factors), 6)):
        shuffled = order if turn == 0 else np.random.default_rng(turn).permutation(order)
        half = len(factors) // 2
        left = triangular_root(np.sqrt(weights), [factors[n] for n in shuffled[:half]])
        right = triangular_root(np.sqrt(weights), [factors[n] for n in shuffled[half:]])
        values = np.linalg.svd(left @ right.T, compute_uv=False)
        tails = np.sqrt(np.cumsum(values[::-1] ** 2))[::-1]
        # Singular values below rounding say nothing, whatever the tolerance.
        floor = max(tol, 1e-13) * tails[0]
        bound = max(bound, int((tails > floor).sum()))
    return bound


def merge_nearest(
    weights: FloatArray, factors: Sequence[FloatArray], rank: int
) -> tuple[FloatArray, list[FloatArray]]:
    """Merge the two classes whose merging costs least, until `rank` are left (Ward's criterion).

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[0.1, 0.2, 0.9], [0.9, 0.8, 0.1]])
    >>> merge_nearest(np.array([0.25, 0.25, 0.5]), [A], 2)
    (array([0.5, 0.5]), [array([[0.9 , 0.15],
           [0.1 , 0.85]])])
    """
    stacked = np.vstack(factors)
    order = np.argsort(-weights, kind="stable")
    mass, columns = weights[order].copy(), stacked[:, order].copy()
    if len(mass) > max(_PAIRWISE, rank):
        mass, columns = _absorb(mass, columns, max(_PAIRWISE, rank))
    cost = _ward(mass, columns)
    while len(mass) > rank:
        i, j = sorted(map(int, np.unravel_index(cost.argmin(), cost.shape)))
        total = mass[i] + mass[j]
        columns[:, i] = (mass[i] * columns[:, i] + mass[j] * columns[:, j]) / total
        mass[i] = total
        mass, columns = np.delete(mass, j), np.delete(columns, j, axis=1)
        cost = np.delete(np.delete(cost, j, axis=0), j, axis=1)
        distance = ((columns - columns[:, [i]]) ** 2).sum(axis=0)
        cost[i] = cost[:, i] = mass * mass[i] / (mass + mass[i]) * distance
        cost[i, i] = np.inf
    return mass, np.split(columns, np.cumsum([len(factor) for factor in factors])[:-1])


def _ward(mass: FloatArray, columns: FloatArray) -> FloatArray:
    squares = (columns**2).sum(axis=0)
    distance = np.maximum(squares[:, None] + squares - 2.0 * columns.T @ columns, 0.0)
    cost = distance * (mass[:, None] * mass / (mass[:, None] + mass))
    np.fill_diagonal(cost, np.inf)
    return np.asarray(cost)


def _absorb(mass: FloatArray, columns: FloatArray, most: int) -> tuple[FloatArray, FloatArray]:
    """Let the heaviest classes absorb the others, each the nearest ones; mass is sorted."""
    heavy = columns[:, :most]
    squares = (heavy**2).sum(axis=0)
    nearest = np.arange(len(mass))
    for start in range(most, len(mass), 4096):
        block = columns[:, start : start + 4096]
        nearest[start : start + 4096] = (squares[:, None] - 2.0 * heavy.T @ block).argmin(axis=0)
    total = np.array(np.bincount(nearest, mass, most), dtype=np.float64)
    rows = [np.bincount(nearest, mass * row, most) / total for row in columns]
    return total, np.array(rows)
