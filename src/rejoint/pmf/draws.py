"""Posterior draws that a model carries: few, compact, and made into models when asked for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain, level_order, positions
from rejoint.io.model_file import MOST_FACTORS
from rejoint.text import plural

if TYPE_CHECKING:
    from rejoint.pmf.pmf import LowRankPMF

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Interval:
    """Equal-tailed credible bounds of an answer.

    Attributes
    ----------
    low, high : ndarray
        Of the shape of the answer.
    level : float
        Probability that a pair of bounds is to hold.
    draws : int
        Posterior draws behind it: those that hold the evidence possible.

    Examples
    --------
    >>> Interval(np.array(0.1), np.array(0.2), 0.9, 40).words
    '90 % credible interval, of 40 posterior draws'
    """

    low: FloatArray
    high: FloatArray
    level: float
    draws: int

    @property
    def words(self) -> str:
        """What the bounds are, in words."""
        return (
            f"{100 * self.level:g} % credible interval, of {plural(self.draws, 'posterior draw')}"
        )


def credible_bounds(tables: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Equal-tailed bounds of each cell over the draws, which are the first axis.

    A cell that is undefined (nan) in some draws is bounded by the others.

    Examples
    --------
    >>> low, high = credible_bounds(np.array([[0.2], [0.3], [0.6]]), 0.5)
    >>> low, high
    (array([0.2]), array([0.6]))
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}; 0.9 is usual.")
    known = np.isfinite(tables)
    bounds = np.full((2, *tables.shape[1:]), np.nan)
    some = known.any(axis=0)
    # Quantiles of n draws at k / (n + 1): the next draw then falls between them as often as
    # ``level`` says, where NumPy's own, at (k - 1) / (n - 1), are too narrow for few draws.
    tails = [(1 - level) / 2, (1 + level) / 2]
    if some.any():
        cells = np.where(known, tables, np.nan)[:, some]
        bounds[:, some] = np.nanquantile(cells, tails, axis=0, method="weibull")
    return bounds[0, ...], bounds[1, ...]  # arrays, also of a single number


Block = NDArray[np.float32]

_MOST = (
    40  # kept of all draws: bounds of 90 % then lie between the second and the third from the end
)
_MOST_NUMBERS = 2_000_000  # of all draws together: 8 MB
_FEWEST = 10  # fewer say too little about bounds; a model so large goes without
_OFF = 1e-5  # of sums that should be one: single precision, a column of a million levels included


@dataclass(frozen=True, eq=False)
class Draws(Sequence["LowRankPMF"]):
    """Posterior draws of the joint, in single precision; a sequence of models.

    Parameters
    ----------
    domain : Domain
        Of all draws.
    block : ndarray of float32 (draws, 1 + levels of all variables, classes)
        Of each draw the weights, then the factors one below the other. Classes without weight are
        none: draws may have different ranks.

    Examples
    --------
    >>> import rejoint as rj
    >>> two = [rj.LowRankPMF([1.0], [[[a], [1 - a]]]) for a in (0.25, 0.5)]
    >>> draws = Draws.of(two, two[0].domain)
    >>> len(draws), draws[1].marginal("x0")
    (2, array([0.5, 0.5]))
    """

    domain: Domain
    block: Block

    def __post_init__(self) -> None:
        block = np.ascontiguousarray(self.block, dtype=np.float32)
        _check(block, self.domain)
        if block is self.block:
            block = block.view()
        block.flags.writeable = False
        object.__setattr__(self, "block", block)

    @classmethod
    def of(cls, draws: "Sequence[LowRankPMF]", domain: Domain, most: int = _MOST) -> Self:
        """Keep some of many draws, spread over all of them; none where the model is very large.

        Examples
        --------
        >>> import rejoint as rj
        >>> coin = rj.LowRankPMF([1.0], [[[0.5], [0.5]]])
        >>> len(Draws.of([coin] * 200, coin.domain)), len(Draws.of([], coin.domain))
        (40, 0)
        """
        if isinstance(draws, cls) and len(draws) <= most:
            return draws.align(domain)
        rank = max((draw.rank for draw in draws), default=1)
        rows = 1 + sum(domain.shape)
        room = min(most, _MOST_NUMBERS // (rows * rank), MOST_FACTORS // len(domain), len(draws))
        if room < min(_FEWEST, len(draws)):
            room = 0
        places = np.linspace(0, max(len(draws) - 1, 0), room).round().astype(int)
        block = np.zeros((room, rows, rank), dtype=np.float32)
        for target, place in zip(block, places, strict=True):
            draw = draws[place].align(domain)
            target[:, : draw.rank] = np.vstack([draw.weights, *draw.factors])
        return cls(domain, block)

    def align(self, domain: Domain) -> Self:
        """The same with variables and levels in the order of another domain."""
        if domain == self.domain:
            return self
        orders = level_order(self.domain, domain)
        starts = _starts(self.domain)
        chosen = zip(self.domain.indices(domain.names), orders, strict=True)
        return self._taken(domain, [starts[n] + order for n, order in chosen])

    def project(self, names: str | Sequence[str]) -> Self:
        """The same of some variables, in the order asked."""
        chosen = positions(self.domain, names)
        starts = _starts(self.domain)
        rows = [starts[n] + np.arange(len(self.domain[n])) for n in chosen]
        return self._taken(Domain(tuple(self.domain[n] for n in chosen)), rows)

    def _taken(self, domain: Domain, rows: Sequence[Any]) -> Self:
        return type(self)(domain, self.block[:, np.concatenate([[0], *rows])])

    def mean(self) -> "LowRankPMF":
        """The mean of all draws, which predicts better than any one model.

        Examples
        --------
        >>> import rejoint as rj
        >>> two = [rj.LowRankPMF([1.0], [[[a], [1 - a]]]) for a in (0.25, 0.75)]
        >>> Draws.of(two, two[0].domain).mean().marginal("x0")
        array([0.5, 0.5])
        """
        from rejoint.pmf.pmf import LowRankPMF  # which carries draws itself

        if not len(self):
            raise ValueError("There are no posterior draws, which only fits by Bayes have.")
        return LowRankPMF.average(self)

    def __len__(self) -> int:
        return len(self.block)

    @overload
    def __getitem__(self, place: int) -> "LowRankPMF": ...
    @overload
    def __getitem__(self, place: slice) -> "tuple[LowRankPMF, ...]": ...
    def __getitem__(self, place: int | slice) -> "LowRankPMF | tuple[LowRankPMF, ...]":
        if isinstance(place, slice):
            return tuple(self[k] for k in range(*place.indices(len(self))))
        from rejoint.pmf.pmf import LowRankPMF  # which carries draws itself

        numbers = self.block[place].astype(np.float64)
        numbers = numbers[:, numbers[0] > 0.0]
        weights, *factors = np.split(numbers, _starts(self.domain))
        # Single precision is a little off; what a model is made of sums to one.
        scaled = [factor / factor.sum(axis=0) for factor in factors]
        return LowRankPMF(weights[0] / weights.sum(), scaled, self.domain)

    def __iter__(self) -> Iterator["LowRankPMF"]:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        return f"Draws({len(self)} of rank {self.block.shape[2]})"


def _starts(domain: Domain) -> NDArray[np.intp]:
    """The first row of each variable, below the weights."""
    return 1 + np.cumsum((0, *domain.shape[:-1]))


def _check(block: Block, domain: Domain) -> None:
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
    wrong = np.flatnonzero((np.abs(weights.sum(axis=1) - 1.0) > _OFF) | (off > _OFF).any(axis=1))
    if len(wrong):
        raise ValueError(
            f"Posterior draw {wrong[0]}: its weights, or a column of its factors, do not sum to 1."
        )
