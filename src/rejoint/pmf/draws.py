"""Posterior draws that a model carries, and credible intervals over them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain, level_order, positions
from rejoint.io.model_file import MOST_FACTORS
from rejoint.queries.evidence import (
    Given,
    ZeroEvidenceError,
    class_posterior,
    conditional_factor,
    log_class_weights,
    read_evidence,
)
from rejoint.queries.tables import joint_table
from rejoint.text import plural, show

if TYPE_CHECKING:
    from rejoint.pmf.pmf import LowRankPMF

FloatArray = NDArray[np.float64]
Block = NDArray[Any]  # of float64 or float32

_FILE_DRAWS = (
    40  # in a file: bounds of 90 % then lie between the second and third draw from the end
)
_FILE_NUMBERS = 2_000_000  # in all draws of a file together: 8 MB
_FEWEST_DRAWS = 10  # fewer say too little about bounds; a file of a larger model has no draws
_SUM_TOLERANCE = 1e-5  # single precision, for columns of up to a million levels


class Interval(tuple[FloatArray, FloatArray]):
    """Equal-tailed credible bounds of an answer: the pair ``low, high``.

    Attributes
    ----------
    low, high : ndarray
        Bounds in the shape of the answer.
    level : float
        Posterior probability between each pair of bounds.
    draws : int
        Number of posterior draws that the bounds rest on. Draws under which the evidence has
        probability zero are left out.

    Examples
    --------
    >>> interval = Interval(np.array(0.1), np.array(0.2), 0.9, 40)
    >>> low, high = interval
    >>> interval.description
    '90 % credible interval, of 40 posterior draws'
    """

    level: float
    draws: int

    def __new__(cls, low: FloatArray, high: FloatArray, level: float, draws: int) -> Self:
        """Make the pair of bounds."""
        self = super().__new__(cls, (low, high))
        self.level, self.draws = level, draws
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return *self, self.level, self.draws

    @property
    def low(self) -> FloatArray:
        """Lower bounds."""
        return self[0]

    @property
    def high(self) -> FloatArray:
        """Upper bounds."""
        return self[1]

    @property
    def description(self) -> str:
        """Level and number of draws, in words."""
        return (
            f"{100 * self.level:g} % credible interval, of {plural(self.draws, 'posterior draw')}"
        )


def credible_interval(values: FloatArray, level: float) -> Interval:
    """Return equal-tailed bounds of each cell over the draws, which are the first axis.

    Draws in which a cell is undefined (nan) do not count for its bounds.

    Examples
    --------
    >>> low, high = credible_interval(np.array([[0.2], [0.3], [0.6]]), 0.5)
    >>> low, high
    (array([0.2]), array([0.6]))
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}; 0.9 is usual.")
    defined = np.isfinite(values)
    bounds = np.full((2, *values.shape[1:]), np.nan)
    bounded = defined.any(axis=0)
    # Quantiles of n draws at k / (n + 1): the next draw then falls between them as often as
    # ``level`` says. NumPy's own, at (k - 1) / (n - 1), are too narrow for few draws.
    tails = [(1 - level) / 2, (1 + level) / 2]
    if bounded.any():
        cells = np.where(defined, values, np.nan)[:, bounded]
        bounds[:, bounded] = np.nanquantile(cells, tails, axis=0, method="weibull")
    return Interval(bounds[0, ...], bounds[1, ...], level, len(values))


@dataclass(frozen=True, eq=False)
class Draws(Sequence["LowRankPMF"]):
    """Posterior draws of the joint: one block of numbers, and a sequence of models.

    Parameters
    ----------
    domain : Domain
        Domain of all draws.
    block : ndarray (draws, 1 + levels of all variables, classes)
        For each draw the weights, then the factors one below the other. A class of weight zero is
        padding: draws may have different ranks. In double precision where the draws come from a
        fit, in single precision where they come from a file. It is not checked.
    model : type
        Class of the items.

    Examples
    --------
    >>> import rejoint as rj
    >>> two = [rj.LowRankPMF([1.0], [[[a], [1 - a]]]) for a in (0.25, 0.5)]
    >>> draws = rj.LowRankPMF([1.0], [[[0.5], [0.5]]], draws=two).draws
    >>> len(draws), draws[1].marginal("x0")
    (2, array([0.5, 0.5]))
    """

    domain: Domain
    block: Block
    model: "type[LowRankPMF]"

    def __post_init__(self) -> None:
        self.block.flags.writeable = False

    def __reduce__(self) -> tuple[Any, ...]:
        return Draws, (self.domain, self.block, self.model)

    @classmethod
    def of(
        cls, draws: "Sequence[LowRankPMF]", domain: Domain, model: "type[LowRankPMF]"
    ) -> "Draws":
        """Collect models in one block, with the variables and levels of `domain`."""
        if isinstance(draws, Draws):
            return draws.align(domain)
        rank = max((draw.rank for draw in draws), default=1)
        block = np.zeros((len(draws), 1 + sum(domain.shape), rank))
        for target, draw in zip(block, draws, strict=True):
            same = draw.align(domain)
            np.concatenate([same.weights[None], *same.factors], out=target[:, : draw.rank])
        return cls(domain, block, model)

    def align(self, domain: Domain) -> "Draws":
        """Return the draws with variables and levels in the order of another domain."""
        if domain == self.domain:
            return self
        starts = _starts(self.domain)
        orders = zip(
            self.domain.indices(domain.names), level_order(self.domain, domain), strict=True
        )
        return self._take(domain, [starts[n] + order for n, order in orders])

    def project(self, names: str | Sequence[str]) -> "Draws":
        """Return the draws of some variables, in the order asked."""
        chosen = positions(self.domain, names)
        starts = _starts(self.domain)
        rows = [starts[n] + np.arange(len(self.domain[n])) for n in chosen]
        return self._take(Domain(tuple(self.domain[n] for n in chosen)), rows)

    def _take(self, domain: Domain, rows: Sequence[NDArray[np.intp]]) -> "Draws":
        first = np.zeros(1, dtype=np.intp)
        return Draws(domain, self.block[:, np.concatenate([first, *rows])], self.model)

    def thin(self, most: int | None = None, numbers: int | None = None) -> "Draws":
        """Return some of the draws, spread evenly over all of them.

        Parameters
        ----------
        most : int, optional
            Largest number of draws.
        numbers : int, optional
            Largest number of parameters in all of them; one draw is always kept.

        Examples
        --------
        >>> import rejoint as rj
        >>> coin = rj.LowRankPMF([1.0], [[[0.5], [0.5]]])
        >>> draws = rj.LowRankPMF([1.0], [[[0.5], [0.5]]], draws=[coin] * 200).draws
        >>> len(draws.thin(40)), len(draws.thin(numbers=30)), len(draws.thin())
        (40, 10, 200)
        """
        room = len(self) if most is None else min(most, len(self))
        if numbers is not None:
            room = min(room, max(numbers // self.block[0].size, 1)) if len(self) else 0
        if room == len(self):
            return self
        places = np.linspace(0, len(self) - 1, room).round().astype(int)
        return Draws(self.domain, self.block[places], self.model)

    def compact(self) -> "Draws":
        """Return the draws that files and pages have: at most 40, in single precision.

        There are none where the model is so large that fewer than ten have room.
        """
        size = self.block.shape[1] * self.block.shape[2]
        room = min(_FILE_DRAWS, _FILE_NUMBERS // size, MOST_FACTORS // len(self.domain), len(self))
        kept = self.thin(room if room >= min(_FEWEST_DRAWS, len(self)) else 0)
        block = np.ascontiguousarray(kept.block, dtype=np.float32)
        return Draws(self.domain, block, self.model)

    def given(
        self, likelihoods: Mapping[int, FloatArray], asked: Iterable[int]
    ) -> tuple[FloatArray, dict[int, FloatArray]]:
        """Return weights (D, F) and factors (D, I_n, F) of the draws, given evidence.

        Draws under which the evidence has probability zero are left out.

        Parameters
        ----------
        likelihoods : mapping of int to ndarray
            Evidence by position of the variable.
        asked : iterable of int
            Positions of the variables whose factors are returned.
        """
        starts = _starts(self.domain)
        weights = _normalized(self.block[:, 0], -1)
        factors = {
            n: _normalized(self.block[:, starts[n] : starts[n] + self.domain.shape[n]], -2)
            for n in {*asked, *likelihoods}
        }
        if not likelihoods:
            return weights, factors
        logs = log_class_weights(weights, factors, likelihoods)
        possible = logs.max(axis=1, initial=-np.inf) > -np.inf
        for n in factors:
            factors[n] = factors[n][possible]
            if n in likelihoods:
                factors[n] = conditional_factor(factors[n], likelihoods[n])
        return class_posterior(logs[possible]), factors

    def condition(self, given: Given) -> "Draws":
        """Return the draws of the variables that are not given, given the others."""
        likelihoods = read_evidence(self.domain, given)
        rest = [n for n in range(len(self.domain)) if n not in likelihoods]
        weights, factors = self.given(likelihoods, rest)
        domain = Domain(tuple(self.domain[n] for n in rest))
        block = np.concatenate([weights[:, None], *(factors[n] for n in rest)], axis=1)
        return Draws(domain, block, self.model)

    def interval(
        self, names: str | Sequence[str], given: Given = None, level: float = 0.9
    ) -> Interval:
        """Return credible bounds of a (conditional) table; see :meth:`LowRankPMF.interval`."""
        if not self:
            raise ValueError(
                "This model carries no posterior draws, so that there are no bounds: fit by "
                'solver="bayes".'
            )
        asked = positions(self.domain, names)
        weights, factors = self.given(read_evidence(self.domain, given), asked)
        if not len(weights):
            evidence = ", ".join(f"{name} = {show([x])}" for name, x in (given or {}).items())
            raise ZeroEvidenceError(
                f"{evidence} has probability zero under all {plural(len(self), 'posterior draw')}, "
                "so that there are no bounds: leave some of it out."
            )
        tables = [
            joint_table(shares, [factors[n][k] for n in asked]) for k, shares in enumerate(weights)
        ]
        return credible_interval(np.stack(tables), level)

    def mean(self) -> "LowRankPMF":
        """Return the mean of all draws, which predicts better than any one model.

        Examples
        --------
        >>> import rejoint as rj
        >>> two = [rj.LowRankPMF([1.0], [[[a], [1 - a]]]) for a in (0.25, 0.75)]
        >>> rj.LowRankPMF([1.0], [[[0.5], [0.5]]], draws=two).draws.mean().marginal("x0")
        array([0.5, 0.5])
        """
        if not len(self):
            raise ValueError("There are no posterior draws, which only fits by Bayes have.")
        return self.model.average(self)

    def __len__(self) -> int:
        return len(self.block)

    @overload
    def __getitem__(self, place: int) -> "LowRankPMF": ...
    @overload
    def __getitem__(self, place: slice) -> "Draws": ...
    def __getitem__(self, place: int | slice) -> "LowRankPMF | Draws":
        if isinstance(place, slice):
            return Draws(self.domain, self.block[place], self.model)
        numbers = self.block[place]
        weights, *factors = np.split(numbers[:, numbers[0] > 0.0], _starts(self.domain))
        parts = [_normalized(factor, -2) for factor in factors]
        return self.model._trusted(_normalized(weights[0], -1), parts, self.domain)

    def __iter__(self) -> Iterator["LowRankPMF"]:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        return f"Draws({len(self)} of rank {self.block.shape[2]})"


def _starts(domain: Domain) -> NDArray[np.intp]:
    """Return the first row of each variable, below the weights."""
    return 1 + np.cumsum((0, *domain.shape[:-1]))


def _normalized(numbers: NDArray[Any], axis: int) -> FloatArray:
    """Return numbers in double precision; sums of single precision are a little off one."""
    if numbers.dtype == np.float64:
        return numbers
    wide = numbers.astype(np.float64)
    total = wide.sum(axis=axis, keepdims=True)
    return np.asarray(wide / np.where(total > 0.0, total, 1.0))


def check_block(block: NDArray[np.float32], domain: Domain) -> None:
    """Raise an error where the draws of a file are not distributions over `domain`."""
    if block.ndim != 3 or block.shape[1] != 1 + sum(domain.shape) or not block.shape[2]:
        raise ValueError(
            f"Posterior draws have shape {block.shape}; {len(domain)} variables ask for (draws, "
            f"{1 + sum(domain.shape)}, classes)."
        )
    if not (np.isfinite(block).all() and (block >= 0.0).all()):
        raise ValueError("Posterior draws hold what is no probability: entries are finite, >= 0.")
    if not len(block):
        return
    weights = block[:, 0].astype(np.float64)
    sums = np.add.reduceat(block, _starts(domain), axis=1, dtype=np.float64)
    off = np.abs(sums - 1.0).max(axis=1) * (weights > 0.0)
    off = np.maximum(off.max(axis=1), np.abs(weights.sum(axis=1) - 1.0))
    wrong = np.flatnonzero(off > _SUM_TOLERANCE)
    if len(wrong):
        raise ValueError(
            f"Posterior draw {wrong[0]}: its weights, or a column of its factors, do not sum to 1."
        )


class Posterior:
    """The posterior of a fit: a view of the draws that its model carries.

    Parameters
    ----------
    draws : sequence of LowRankPMF
        The draws.

    Attributes
    ----------
    draws : Draws
        The same object as ``result.pmf.draws``, so that both give the same bounds.

    Examples
    --------
    >>> import rejoint as rj
    >>> data = rj.datasets.asia().sample(500, random_state=0)
    >>> posterior = rj.estimate(data, rank=2, solver="bayes", random_state=0).posterior
    >>> low, high = posterior.interval(["lung"], given={"smoke": "yes"}, level=0.9)
    >>> bool((low < high).all())
    True
    """

    draws: Draws

    def __init__(self, draws: "Sequence[LowRankPMF]") -> None:
        self.draws = Draws.of(draws, draws[0].domain, type(draws[0]))

    @cached_property
    def mean(self) -> "LowRankPMF":
        """The mean of the draws, a model of as many classes as they have together.

        Examples
        --------
        >>> import rejoint as rj
        >>> Posterior([rj.LowRankPMF([1.0], [[[0.2], [0.8]]])]).mean.rank
        1
        """
        return self.draws.mean()

    def interval(
        self, names: str | Sequence[str], given: Given = None, level: float = 0.9
    ) -> Interval:
        """Return credible bounds of a (conditional) table; see :meth:`LowRankPMF.interval`.

        Examples
        --------
        >>> import rejoint as rj
        >>> two = [rj.LowRankPMF([1.0], [[[a], [1 - a]]]) for a in (0.2, 0.4)]
        >>> low, high = Posterior(two).interval("x0", level=0.5)
        >>> low.round(2), high.round(2)
        (array([0.2, 0.6]), array([0.4, 0.8]))
        """
        return self.draws.interval(names, given, level)

    def __repr__(self) -> str:
        return f"Posterior({self.draws!r})"


def predictive(
    pmf: "LowRankPMF", draws: int | None = None, numbers: int | None = None
) -> "LowRankPMF":
    """Return the model to predict with: the mean of the posterior draws, or `pmf` without draws.

    Parameters
    ----------
    pmf : LowRankPMF
    draws, numbers : int, optional
        How many draws, or parameters of draws, to average at most; all by default. See
        :meth:`Draws.thin`.

    Examples
    --------
    >>> import rejoint as rj
    >>> two = [rj.LowRankPMF([1.0], [[[a], [1 - a]]]) for a in (0.25, 0.75)]
    >>> predictive(rj.LowRankPMF([1.0], [[[0.2], [0.8]]], draws=two)).marginal("x0")
    array([0.5, 0.5])
    """
    return pmf.draws.thin(draws, numbers).mean() if pmf.draws else pmf
