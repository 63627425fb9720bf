"""Errors of an estimated joint: the paper's two errors, Kullback-Leibler, total variation."""

from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain, level_order
from rejoint.marginals.marginals import Projectable
from rejoint.pmf.pmf import LowRankPMF
from rejoint.queries import distances
from rejoint.queries.mixture import partition_of
from rejoint.text import format_count, format_number

__all__ = ["Estimate", "factor_error", "kl", "pair_classes", "tensor_error", "total_variation"]

FloatArray = NDArray[np.float64]

_CELLS = 2**20  # joints up to this size are compared cell by cell
_DRAWS = 100_000


class Estimate(float):
    """A number with its standard error.

    Attributes
    ----------
    standard_error : float
        Standard error of the Monte Carlo mean; 0 where the number is exact.
    exact : bool
        Whether the number is a sum over all cells.

    Examples
    --------
    >>> Estimate(0.25)
    0.25
    >>> Estimate(0.25, standard_error=0.01)
    0.25 ± 0.01
    """

    standard_error: float
    exact: bool

    def __new__(cls, value: float, standard_error: float | None = None) -> Self:
        """Make an exact number, or one with a standard error."""
        self = super().__new__(cls, value)
        self.standard_error = 0.0 if standard_error is None else float(standard_error)
        self.exact = standard_error is None
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return float(self), None if self.exact else self.standard_error

    def __repr__(self) -> str:
        value = float.__repr__(self)
        return value if self.exact else f"{format_number(self)} ± {self.standard_error:.2g}"


def factor_error(truth: LowRankPMF, estimate: LowRankPMF) -> float:
    """Return the paper's MRE_fact: mean relative error of the factors, classes in the best order.

    ``1/N sum_n ||A_n - Ahat_n Pi||_F / ||A_n||_F``; the permutation ``Pi`` is the one that
    minimizes the sum of squared relative distances over all factors.

    Parameters
    ----------
    truth, estimate : LowRankPMF
        Of the same variables and the same rank; aligned by name.

    Returns
    -------
    float

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.datasets.asia()
    >>> rj.metrics.factor_error(p, p.sorted())
    0.0
    """
    estimate = estimate.align(truth.domain)
    order = pair_classes(truth, estimate)
    errors = [
        np.linalg.norm(a - b[:, order]) / np.linalg.norm(a)
        for a, b in zip(truth.factors, estimate.factors, strict=True)
    ]
    return float(np.mean(errors))


def pair_classes(truth: LowRankPMF, estimate: LowRankPMF) -> NDArray[np.intp]:
    """Return for each class of the truth the matching class of the estimate.

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.LowRankPMF([0.2, 0.8], [[[1.0, 0.3], [0.0, 0.7]]])
    >>> rj.metrics.pair_classes(p, p.sorted())
    array([1, 0])
    """
    estimate = estimate.align(truth.domain)
    if truth.rank != estimate.rank:
        raise ValueError(
            f"Classes are paired one by one, but the truth has rank {truth.rank} and the estimate "
            f"{estimate.rank}: compare the joints by tensor_error, or reduce one of them."
        )
    return distances.pair_classes(truth.factors, estimate.factors)


def tensor_error(truth: Projectable, estimate: Projectable) -> float:
    """Return the paper's MRE_ten: ``||X - Xhat||_F / ||X||_F`` of the joints.

    Two LowRankPMFs of any size and any ranks: no dense tensor is formed, and the error of the
    result is about 1e-15 even where they are nearly equal (1e-8 if their ranks add up to more
    than 1,500). Other kinds of joint are compared cell by cell.

    Parameters
    ----------
    truth, estimate : LowRankPMF, or anything with ``domain`` and ``marginal``
        Of the same variables; aligned by name.

    Returns
    -------
    float

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.datasets.asia()
    >>> independent = rj.LowRankPMF(
    ...     [1.0], [p.marginal([name])[:, None] for name in p.domain.names], p.domain
    ... )
    >>> round(rj.metrics.tensor_error(p, independent), 4)
    0.6296
    """
    if isinstance(truth, LowRankPMF) and isinstance(estimate, LowRankPMF):
        estimate = estimate.align(truth.domain)
        if truth == estimate:
            return 0.0
        p, q = truth.mixture._parts, estimate.mixture._parts
        partition = partition_of(p, q)
        composites = p.composite(partition), q.composite(partition)
        return distances.relative_error(p.weights, composites[0], q.weights, composites[1])
    a, b = _tables(truth, estimate)
    return float(np.linalg.norm(a - b) / np.linalg.norm(a))


def kl(
    truth: Projectable,
    estimate: Projectable,
    *,
    n: int = _DRAWS,
    random_state: int | np.random.Generator | None = 0,
) -> Estimate:
    """Return the divergence ``sum P log(P / Q)`` of an estimate Q from the truth P, in nats.

    This Kullback-Leibler divergence is infinite where the estimate excludes cells that the truth
    allows. It is exact up to a million cells; beyond, it is a mean over `n` records drawn from the
    truth, with its standard error.

    Parameters
    ----------
    truth, estimate : LowRankPMF, or anything with ``domain`` and ``marginal``
        Of the same variables; aligned by name. Beyond a million cells both must be LowRankPMF.
    n : int
        Number of records drawn, beyond a million cells.
    random_state : int, Generator or None
        Seed, or source, of the draws; fixed by default.

    Returns
    -------
    Estimate
        A float with ``standard_error`` and ``exact``.

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.LowRankPMF([1.0], [[[0.5], [0.5]]])
    >>> q = rj.LowRankPMF([1.0], [[[0.25], [0.75]]])
    >>> round(rj.metrics.kl(p, q), 6)
    0.143841
    """
    pair = _large(truth, estimate, "kl")
    if pair is None:
        return Estimate(_divergence(*_tables(truth, estimate)))
    p, q = pair
    draws = p.sample(n, random_state=random_state)
    ratio = p.log_prob(draws) - q.log_prob(draws)
    terms = ratio
    if p.mixture._parts.stacked.min() > 0.0:
        # Q/P - 1 has mean zero where P excludes nothing. As a control variate it removes most of
        # the noise of joints that are near; it is left out where it adds noise.
        with np.errstate(over="ignore"):
            steadier = ratio + np.expm1(-ratio)
        if np.isfinite(steadier).all() and steadier.std() < ratio.std():
            terms = steadier
    return _mean(terms)


def total_variation(
    truth: Projectable,
    estimate: Projectable,
    *,
    n: int = _DRAWS,
    random_state: int | np.random.Generator | None = 0,
) -> Estimate:
    """Return ``1/2 sum |P - Q|``, the largest difference in the probability of any event.

    This total variation is exact up to a million cells; beyond, it is the mean of
    ``|P - Q| / (P + Q)`` over records of which half are drawn from each joint, with its standard
    error.

    Parameters
    ----------
    truth, estimate, n, random_state
        As in :func:`kl`; the distance is symmetric.

    Returns
    -------
    Estimate
        A float with ``standard_error`` and ``exact``.

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.LowRankPMF([1.0], [[[0.5], [0.5]]])
    >>> q = rj.LowRankPMF([1.0], [[[0.25], [0.75]]])
    >>> rj.metrics.total_variation(p, q)
    0.25
    """
    pair = _large(truth, estimate, "total_variation")
    if pair is None:
        a, b = _tables(truth, estimate)
        return Estimate(float(np.abs(a - b).sum()) / 2.0)
    rng = np.random.default_rng(random_state)
    halves = []
    for model in pair:
        draws = model.sample(n // 2, random_state=rng)
        ratio = pair[0].log_prob(draws) - pair[1].log_prob(draws)
        halves.append(_mean(np.abs(np.tanh(ratio / 2.0))))  # |P - Q| / (P + Q)
    error = float(np.hypot(halves[0].standard_error, halves[1].standard_error)) / 2.0
    return Estimate((halves[0] + halves[1]) / 2.0, error)


def _divergence(a: FloatArray, b: FloatArray) -> float:
    """``sum a log(a / b)`` as a sum of terms that are never negative: no digits cancel."""
    there = a > 0.0
    excess = (b[there] - a[there]) / a[there]
    with np.errstate(divide="ignore"):
        terms = a[there] * (excess - np.log1p(excess))
    return float(np.maximum(terms, 0.0).sum() + b[~there].sum())


def _mean(terms: FloatArray) -> Estimate:
    if np.isposinf(terms).any():
        return Estimate(np.inf, np.nan)
    return Estimate(float(terms.mean()), float(terms.std(ddof=1)) / len(terms) ** 0.5)


def _large(
    truth: Projectable, estimate: Projectable, what: str
) -> tuple[LowRankPMF, LowRankPMF] | None:
    """Return the two models, aligned, if their joint is too large to be summed cell by cell."""
    cells = prod(truth.domain.shape)
    if cells <= _CELLS:
        return None
    if isinstance(truth, LowRankPMF) and isinstance(estimate, LowRankPMF):
        return truth, estimate.align(truth.domain)
    raise TypeError(
        f"{what}: a joint of {format_count(cells)} cells is compared by drawing records, which "
        f"takes two LowRankPMFs; got {type(truth).__name__} and {type(estimate).__name__}. Compare "
        "marginals of fewer variables instead."
    )


def _tables(truth: Projectable, estimate: Projectable) -> tuple[FloatArray, FloatArray]:
    """Return both joints as arrays, with the axes and levels of the truth."""
    domain: Domain = truth.domain
    orders = level_order(estimate.domain, domain)
    table = estimate.marginal(domain.names)
    return truth.marginal(domain.names), table[np.ix_(*orders)]
