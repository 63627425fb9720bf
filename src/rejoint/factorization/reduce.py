"""Reduction of a model to a lower rank: exact joins of classes, then a fit to its own tables."""

from collections.abc import Sequence
from math import comb, prod
from typing import NamedTuple

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.factorization.admm import Admm
from rejoint.factorization.fit_tables import Auto, fit_tables
from rejoint.factorization.newton import Newton
from rejoint.factorization.table_policy import POLICY
from rejoint.marginals.marginals import Marginals
from rejoint.marginals.subsets import choose_subsets
from rejoint.model import Model
from rejoint.pmf.compact import merge_classes
from rejoint.pmf.from_dense import join_classes
from rejoint.pmf.pmf import LowRankPMF
from rejoint.queries.distances import relative_error, triangular_root
from rejoint.queries.mixture import partition_of, split_composite
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits


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
    search = _Search(pmf, pmf if joined.rank == pmf.rank else joined, tol, random_state)
    if rank is None:
        return search.least()
    return search.unchanged if joined.rank <= rank else search.fit(rank)


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
    reduced, error = reduce(flat, rank, tol, random_state)
    parts = split_composite(reduced._parts, partition, pmf.domain.shape)
    factors = [parts.factors[n] for n in range(len(pmf.domain))]
    return Reduction(LowRankPMF(parts.weights, factors, pmf.domain, blocks=parts.blocks), error)


class _Search:
    """Fits of one model at several ranks; its tables are computed once."""

    def __init__(
        self,
        pmf: LowRankPMF,
        joined: LowRankPMF,
        tol: float,
        random_state: int | np.random.Generator | None,
    ) -> None:
        self.pmf, self.joined, self.tol = pmf, joined, tol
        self.rng = np.random.default_rng(random_state)
        self.unchanged = self._measure(joined)
        self._tables: Marginals | None = None

    def _measure(self, model: LowRankPMF) -> Reduction:
        p = self.pmf
        return Reduction(model, relative_error(p.weights, p.factors, model.weights, model.factors))

    def least(self) -> Reduction:
        """Step up from the lower bound with growing steps until a fit is good, then halve."""
        joined, best, step = self.joined, self.unchanged, 1
        low = rank = least_rank(joined.weights, joined.factors, self.tol)
        high = joined.rank
        while rank < high:
            fitted = self.fit(rank)
            if fitted.error <= self.tol:
                best, high = fitted, rank
                break
            low, rank, step = rank + 1, rank + step, 2 * step
        while low < high:
            middle = (low + high) // 2
            fitted = self.fit(middle)
            if fitted.error <= self.tol:
                best, high = fitted, middle
            else:
                low = middle + 1
        return best

    def fit(self, rank: int) -> Reduction:
        """The best of: classes merged, a fit from there, a fit from its own start."""
        joined = self.joined
        merged = merge_classes(Model.of(joined.weights, joined.factors), rank)
        start = LowRankPMF.of_model(merged, joined.domain)
        best = self._measure(start)
        for begin in (None, start):
            if best.error <= self.tol:
                return best
            best = self._better(best, self.tables(), rank, begin)
        if best.error > self.tol and prod(joined.domain.shape) <= POLICY.reduced_cells:
            # Small enough for the whole joint to be the table: then the error itself is minimized.
            joint = Marginals.from_pmf(joined, subsets=[joined.domain.names])
            best = self._better(best, joint, rank, best.pmf)
        return best

    def _better(
        self, best: Reduction, tables: Marginals, rank: int, start: LowRankPMF | None
    ) -> Reduction:
        if start is not None and start.rank < rank:
            start = None  # merging left fewer classes
        # An exact fit is reached in a few dozen steps; the last digits of any other are not
        # worth minutes.
        solver = Auto(
            polish=Newton(limits=Limits(max_steps=100, progress=1e-3)),
            finish=Admm(limits=Limits(max_steps=50, progress=1e-3)),
        )
        session = Session(np.random.default_rng(int(self.rng.integers(2**31))))
        starts = POLICY.reduced_starts
        result = fit_tables(tables, rank, solver, session, start=start, n_init=starts)
        return min(best, self._measure(result.pmf), key=lambda one: one.error)

    def tables(self) -> Marginals:
        """All tables of three variables, or a random cover of the variables."""
        if self._tables is None:
            domain = self.joined.domain
            order = min(3, len(domain))
            most = POLICY.reduced_tables
            sample = most if comb(len(domain), order) > most else None
            chosen = choose_subsets(domain, order, sample=sample, random_state=self.rng)
            subsets = [[domain.names[n] for n in subset] for subset in chosen]
            self._tables = Marginals.from_pmf(self.joined, subsets=subsets)
        return self._tables


def least_rank(weights: FloatArray, factors: Sequence[FloatArray], tol: float) -> int:
    """Lower bound of the rank of any model with a relative error of at most ``tol``.

    The joint with its variables split into two groups is a matrix; no model of rank r is nearer
    to it than the singular values beyond the r-th allow. The largest of a few splits is taken.
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
