"""Posterior draws that a model carries, and credible intervals over them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain, level_order, positions
from rejoint.io.model_file import MOST_FACTORS
from rejoint.model import Layout, Model
from rejoint.pmf.compact import CLASSES_PER_CLASS, compact
from rejoint.queries.evidence import (
    Given,
    ZeroEvidenceError,
    class_posterior,
    log_sum,
    read_evidence,
)
from rejoint.queries.mixture import (
    Block,
    BlockLayout,
    Mixture,
    blocks_among,
    have_same_layouts,
)
from rejoint.text import cite, plural, show

if TYPE_CHECKING:
    from rejoint.pmf.pmf import LowRankPMF

FloatArray = NDArray[np.float64]
Numbers = NDArray[Any]  # of float64 or float32

_MOST_DRAWS = 40  # bounds of 90 % then lie between the second and third draw from the end
_ROOM = 2_000_000  # numbers in all draws together, 8 MB; beyond it there are fewer draws
_FEWEST_DRAWS = 10  # fewer say too little about bounds
_LARGEST_ROOM = 20_000_000  # numbers in the fewest draws; a larger model carries none
_SUM_TOLERANCE = {4: 1e-5, 8: 1e-9}  # by bytes of a number, for columns of up to a million levels


class Interval(tuple[FloatArray, FloatArray]):
    """Equal-tailed credible bounds of an answer: the pair ``low, high``.

    Attributes
    ----------
    low, high : ndarray
        Bounds in the shape of the answer, which lies between them.
    level : float
        Posterior probability between each pair of bounds.
    draws : int
        Number of posterior draws that the bounds are based on; 0 where counts and model together
        give them. Draws under which the evidence has probability zero are left out.
    effective : float
        Number of equally weighted draws that these are worth: draws under which the evidence is
        more probable count more. The least over the cells of a table.

    Examples
    --------
    >>> interval = Interval(np.array(0.1), np.array(0.2), 0.9, 40, 23.4)
    >>> low, high = interval
    >>> interval.description
    '90 % credible interval from 40 posterior draws worth 23'
    """

    level: float
    draws: int
    effective: float

    def __new__(
        cls,
        low: FloatArray,
        high: FloatArray,
        level: float,
        draws: int,
        effective: float | None = None,
    ) -> Self:
        """Make the pair of bounds."""
        self = super().__new__(cls, (low, high))
        self.level, self.draws = level, draws
        self.effective = float(draws) if effective is None else effective
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return *self, self.level, self.draws, self.effective

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
        if not self.draws:
            return f"{100 * self.level:g} % interval of count and model together"
        worth = f" worth {self.effective:.0f}" if self.effective < self.draws - 0.5 else ""
        return (
            f"{100 * self.level:g} % credible interval from {plural(self.draws, 'posterior draw')}"
            f"{worth}"
        )


def check_level(level: float) -> None:
    """Raise an error if the level of an interval is not between 0 and 1.

    Examples
    --------
    >>> check_level(1.5)
    Traceback (most recent call last):
        ...
    ValueError: level must lie between 0 and 1, got 1.5; 0.9 is usual.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {cite(level)}; 0.9 is usual.")


def credible_interval(
    values: FloatArray,
    level: float,
    weights: FloatArray | None = None,
    answer: FloatArray | float | None = None,
    limits: tuple[float, float] = (0.0, 1.0),
) -> Interval:
    """Return equal-tailed bounds of each cell over the draws, which are the first axis.

    Draws in which a cell is undefined (nan) do not count for its bounds.

    Parameters
    ----------
    values : ndarray (D, ...)
        The answer of each draw.
    level : float
        Probability between the bounds.
    weights : ndarray (D,) or (D, ...), optional
        Weight of each draw, or of each draw for each cell; equal by default.
    answer : ndarray or float, optional
        The answer itself. Bounds are moved by its distance from the mean of the draws, and
        stretched to it where they do not hold it.
    limits : pair of float
        What no answer is below or above: bounds are not moved beyond.

    Examples
    --------
    >>> low, high = credible_interval(np.array([[0.2], [0.3], [0.6]]), 0.5)
    >>> low, high
    (array([0.2]), array([0.6]))
    >>> weights = np.array([0.1, 0.8, 0.1])
    >>> round(credible_interval(np.array([0.2, 0.3, 0.6]), 0.5, weights).effective, 2)
    1.52
    """
    check_level(level)
    count, shape = len(values), values.shape[1:]
    cells = values.reshape(count, -1)
    given = np.ones(count) if weights is None else weights
    given = given.reshape(given.shape + (1,) * (values.ndim - given.ndim))
    mass = np.where(np.isfinite(cells), np.broadcast_to(given, values.shape).reshape(count, -1), 0)
    total, used = mass.sum(axis=0), (mass > 0).any(axis=1)
    # Stable: which of two equal values of unequal weights comes last moves the bounds.
    order = np.argsort(np.where(mass > 0, cells, np.inf), axis=0, kind="stable")
    cells, mass = (np.take_along_axis(x, order, 0) for x in (cells, mass))
    mass = mass / np.where(total > 0, total, 1.0)
    worth = 1.0 / np.maximum(np.square(mass).sum(axis=0), 1e-300)
    # Quantiles of n equal draws at k / (n + 1): the next draw then falls between them as often as
    # ``level`` says. NumPy's own, at (k - 1) / (n - 1), are too narrow for few draws.
    places = (worth * (np.cumsum(mass, axis=0) - mass / 2) + 0.5) / (worth + 1)
    last = (mass > 0).sum(axis=0) - 1
    low, high = (
        _interpolate(cells, places, last, tail) for tail in ((1 - level) / 2, (1 + level) / 2)
    )
    known = total > 0
    if answer is not None:
        flat = np.ravel(np.asarray(answer, dtype=np.float64))
        with np.errstate(invalid="ignore"):  # infinite levels have no mean
            away = flat - np.where(mass > 0, mass * cells, 0.0).sum(axis=0)
        away = np.where(np.isfinite(away) & known, away, 0.0)
        low, high = (np.clip(bound + away, *limits) for bound in (low, high))
        low, high = np.minimum(low, flat), np.maximum(high, flat)
    return Interval(
        np.where(known, low, np.nan).reshape(shape),
        np.where(known, high, np.nan).reshape(shape),
        level,
        int(used.sum()),
        float(worth[known].min()) if known.any() else 0.0,
    )


def _interpolate(
    values: FloatArray, places: FloatArray, last: NDArray[np.intp], tail: float
) -> FloatArray:
    """Values (D, cells), sorted, at one place of their distribution."""
    above = np.minimum((places < tail).sum(axis=0), np.maximum(last, 0))
    below = np.maximum(above - 1, 0)
    a, b, at, to = (
        np.take_along_axis(x, k[None], 0)[0]
        for x, k in ((values, below), (values, above), (places, below), (places, above))
    )
    share = np.clip((tail - at) / np.where(to > at, to - at, 1.0), 0.0, 1.0)
    return np.asarray(np.where(a == b, a, a + share * (b - a)))


@dataclass(frozen=True, eq=False)
class Draws(Sequence["LowRankPMF"]):
    """Posterior draws of the joint: one block of numbers, and a sequence of models.

    Parameters
    ----------
    domain : Domain
        Domain of all draws.
    block : ndarray (draws, 1 + levels of all variables + cells of all blocks, classes)
        For each draw the weights, then the factors and the tables of blocks one below the other. A
        class of weight zero is padding: draws may have different ranks. In single precision where
        the draws come from a fit or a file. It is not checked.
    model : type
        Class of the items.
    weights : ndarray (draws,), optional
        Probability of each draw; equal by default. Evidence changes it, see :meth:`condition`.
    layouts : tuple of BlockLayout
        Which variables are tabulated jointly within a class.

    Examples
    --------
    >>> import rejoint as rj
    >>> two = [rj.LowRankPMF([1.0], [[[a], [1 - a]]]) for a in (0.25, 0.5)]
    >>> draws = rj.LowRankPMF([1.0], [[[0.5], [0.5]]], draws=two).draws
    >>> len(draws), draws[1].marginal("x0")
    (2, array([0.5, 0.5]))
    """

    domain: Domain
    block: Numbers
    model: "type[LowRankPMF]"
    weights: FloatArray = field(default_factory=lambda: np.empty(0))
    layouts: tuple[BlockLayout, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.weights):
            object.__setattr__(self, "weights", np.full(len(self), 1.0 / max(len(self), 1)))
        self.block.flags.writeable = self.weights.flags.writeable = False

    def __reduce__(self) -> tuple[Any, ...]:
        return Draws, (self.domain, self.block, self.model, self.weights, self.layouts)

    @classmethod
    def of(
        cls, draws: "Sequence[LowRankPMF]", domain: Domain, model: "type[LowRankPMF]"
    ) -> "Draws":
        """Collect models in one block, with the variables and levels of `domain`."""
        if isinstance(draws, Draws):
            return draws.align(domain)
        stacks = [draw.align(domain)._parts for draw in draws]
        blocks = [stack.blocks for stack in stacks]
        if stacks and not have_same_layouts(blocks):
            raise ValueError("draws: all posterior draws must have the same blocks.")
        layouts = tuple(block.layout for block in blocks[0]) if blocks else ()
        return cls.of_stacks([stack.stacked for stack in stacks], domain, model, layouts)

    @classmethod
    def of_stacks(
        cls,
        stacks: Sequence[FloatArray],
        domain: Domain,
        model: "type[LowRankPMF]",
        layouts: tuple[BlockLayout, ...] = (),
    ) -> "Draws":
        """Collect stacked models that the package computed itself: they are not checked."""
        rank = max((stack.shape[1] for stack in stacks), default=1)
        rows = 1 + sum(domain.shape) + sum(layout.size for layout in layouts)
        block = np.zeros((len(stacks), rows, rank))
        for target, stack in zip(block, stacks, strict=True):
            target[:, : stack.shape[1]] = stack
        return cls(domain, block, model, layouts=layouts)

    @property
    def stack(self) -> Mixture:
        """All draws as one stack of mixtures, views of the numbers."""
        return Mixture.from_stacked(self.block, self.domain.shape, self.layouts)

    def _with(self, domain: Domain, stack: Mixture, weights: FloatArray) -> "Draws":
        layouts = tuple(own.layout for own in stack.blocks)
        return Draws(domain, stack.stacked, self.model, weights, layouts)

    def align(self, domain: Domain) -> "Draws":
        """Return the draws with variables and levels in the order of another domain."""
        if domain == self.domain:
            return self
        chosen = self.domain.indices(domain.names)
        return self.take(domain, dict(zip(chosen, level_order(self.domain, domain), strict=True)))

    def take(self, domain: Domain, orders: Mapping[int, NDArray[np.intp]]) -> "Draws":
        """Return the draws of some variables, their levels in some order."""
        return self._with(domain, self.stack.reorder(orders), self.weights)

    def thin(self, most: int) -> "Draws":
        """Return at most so many of the draws, spread evenly over all of them."""
        return self if most >= len(self) else self._some(spread_evenly(len(self), most))

    def _some(self, places: slice | NDArray[np.intp] | NDArray[np.bool_]) -> "Draws":
        weights = self.weights[places]
        weights = weights / weights.sum()
        return Draws(self.domain, self.block[places], self.model, weights, self.layouts)

    def to_carry(self) -> "Draws":
        """Return the draws that a model carries, see :func:`choose_carried`, in single precision.

        A model in memory, its file and its page carry the same draws and give the same bounds.
        """
        size = self.block.shape[1] * self.block.shape[2]
        places = choose_carried(len(self), size, len(self.domain))
        kept = self if len(places) == len(self) else self._some(places)
        block = np.ascontiguousarray(kept.block, dtype=np.float32)
        return Draws(self.domain, block, self.model, kept.weights, self.layouts)

    def given(
        self, likelihoods: Mapping[int, FloatArray], asked: Iterable[int]
    ) -> tuple[FloatArray, Mixture]:
        """Return weights (D,) of the draws, and a stack of them with the variables asked.

        All are given the evidence: the weight of a draw is multiplied by the probability that it
        gives to the evidence. Draws under which that is zero are left out.

        Parameters
        ----------
        likelihoods : mapping of int to ndarray
            Evidence by position of the variable.
        asked : iterable of int
            Positions of the variables whose factors are returned.
        """
        used, own = {*asked, *likelihoods}, self.stack
        kept = (block for block in own.blocks if not used.isdisjoint(block.members))
        blocks = [Block(block.layout, _normalized(block.table, -2)) for block in kept]
        factors = {n: _normalized(own.factors[n], -2) for n in used}
        if own.weights.dtype != np.float64:  # where factors are a little off the margins of tables
            members = [(block, n) for block in blocks for n in used.intersection(block.members)]
            factors |= {n: block.levels(factors, [n]) for block, n in members}
        stack = Mixture(_normalized(own.weights, -1), factors, blocks_among(blocks, used))
        if not likelihoods:
            return self.weights, stack
        logs = stack.log_weights(likelihoods)
        with np.errstate(divide="ignore"):
            weights = class_posterior(np.log(self.weights) + log_sum(logs))
        possible = weights > 0.0
        return weights[possible], stack.at(possible).given(likelihoods, None, logs[possible])

    def condition(self, given: Given) -> "Draws":
        """Return the draws of the variables that are not given, given the others."""
        likelihoods = read_evidence(self.domain, given)
        rest = [n for n in range(len(self.domain)) if n not in likelihoods]
        weights, stack = self.given(likelihoods, rest)
        domain = Domain(tuple(self.domain[n] for n in rest))
        return self._with(domain, stack.select(rest), weights)

    def interval(
        self,
        names: str | Sequence[str],
        given: Given = None,
        level: float = 0.9,
        answer: FloatArray | None = None,
    ) -> Interval:
        """Return credible bounds of a (conditional) table; see :meth:`LowRankPMF.interval`."""
        if not self:
            raise ValueError(
                "This model has no posterior draws, so there are no bounds: fit with "
                'solver="bayes".'
            )
        asked = positions(self.domain, names)
        weights, stack = self.given(read_evidence(self.domain, given), asked)
        if not len(weights):
            evidence = ", ".join(f"{name} = {show([x])}" for name, x in (given or {}).items())
            raise ZeroEvidenceError(
                f"{evidence} has probability zero under all {plural(len(self), 'posterior draw')}, "
                "so there are no bounds: leave some of it out."
            )
        tables = [stack.at(k).tabulate(asked) for k in range(len(weights))]
        return credible_interval(np.stack(tables), level, weights, answer)

    def mean(self, first: "LowRankPMF") -> "LowRankPMF":
        """Return the mean of the draws, compacted to three times the classes of ``first``.

        Parameters
        ----------
        first : LowRankPMF
            A model near the draws, at whose classes the compaction starts.

        Examples
        --------
        >>> import rejoint as rj
        >>> two = [rj.LowRankPMF([1.0], [[[a], [1 - a]]]) for a in (0.25, 0.75)]
        >>> rj.LowRankPMF([1.0], [[[0.4], [0.6]]], draws=two).draws.mean(two[0]).marginal("x0")
        array([0.5, 0.5])
        """
        if self.layouts:
            return self.model.average(self, self.weights)
        models = [Model.of(draw.weights, draw.factors) for draw in self]
        most = CLASSES_PER_CLASS * first.rank
        merged = compact(models, Model.of(first.weights, first.factors), most, self.weights)
        return self.model._trusted(merged.weights, merged.parts, self.domain)

    def __len__(self) -> int:
        return len(self.block)

    @overload
    def __getitem__(self, place: int) -> "LowRankPMF": ...
    @overload
    def __getitem__(self, place: slice) -> "Draws": ...
    def __getitem__(self, place: int | slice) -> "LowRankPMF | Draws":
        if isinstance(place, slice):
            return self._some(place)
        own = self._some(np.array([place]))
        stack = own.given({}, range(len(self.domain)))[1].at(0)
        return self.model._of_mixture(stack.take(stack.weights > 0.0), self.domain)

    def __iter__(self) -> Iterator["LowRankPMF"]:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        return f"Draws({len(self)} of rank {self.block.shape[2]})"


def spread_evenly(count: int, room: int) -> NDArray[np.intp]:
    """Return some of ``count`` places, spread evenly over all of them."""
    return np.linspace(0, count - 1, room).round().astype(np.intp)


def draw_room(rank: int) -> float:
    """Rows of numbers that draws of a rank may have, so that a model can carry the fewest."""
    return _LARGEST_ROOM / (_FEWEST_DRAWS * rank)


def choose_carried(count: int, size: int, variables: int) -> NDArray[np.intp]:
    """Return the draws, of ``size`` numbers each, that a model carries: at most 40.

    There are fewer draws, but at least ten, where the model is large, and none where it is so
    large that ten would take 80 MB.

    Examples
    --------
    >>> choose_carried(3, 100, 5), len(choose_carried(40, 100_000, 5))
    (array([0, 1, 2]), 20)
    """
    room = max(_ROOM // size, _FEWEST_DRAWS if size * _FEWEST_DRAWS <= _LARGEST_ROOM else 0)
    return spread_evenly(count, min(room, _MOST_DRAWS, MOST_FACTORS // variables, count))


def _normalized(numbers: NDArray[Any], axis: int) -> FloatArray:
    """Return numbers in double precision; sums of single precision are a little off one."""
    if numbers.dtype == np.float64:
        return numbers
    wide = numbers.astype(np.float64)
    total = wide.sum(axis=axis, keepdims=True)
    return np.asarray(wide / np.where(total > 0.0, total, 1.0))


def check_block(
    block: Numbers,
    domain: Domain,
    draw_weights: FloatArray | None = None,
    layouts: Sequence[BlockLayout] = (),
) -> None:
    """Raise an error where the draws of a file are not distributions over `domain`."""
    parts = Layout((*domain.shape, *(layout.size for layout in layouts)))
    if block.ndim != 3 or block.shape[1] != 1 + parts.size or not block.shape[2]:
        raise ValueError(
            f"Posterior draws have shape {block.shape}; {plural(len(domain), 'variable')} ask for "
            f"(draws, {1 + parts.size}, classes)."
        )
    if not (np.isfinite(block).all() and (block >= 0.0).all()):
        raise ValueError(
            "Posterior draws contain values that are not probabilities: entries must "
            "be finite and >= 0."
        )
    shares = np.full(len(block), 1.0 / max(len(block), 1)) if draw_weights is None else draw_weights
    is_distribution = shares.shape == (len(block),) and bool((shares >= 0.0).all())
    if not is_distribution or abs(shares.sum() - 1.0) > _SUM_TOLERANCE[8] * len(block):
        raise ValueError(
            f"Weights of {plural(len(block), 'posterior draw')} must be as many numbers >= 0 that "
            f"sum to 1; got an array of shape {shares.shape}."
        )
    if not len(block):
        return
    weights = block[:, 0].astype(np.float64)
    sums = np.add.reduceat(block, 1 + parts.offsets[:-1], axis=1, dtype=np.float64)
    off = np.abs(sums - 1.0).max(axis=1) * (weights > 0.0)
    off = np.maximum(off.max(axis=1), np.abs(weights.sum(axis=1) - 1.0))
    wrong = np.flatnonzero(off > _SUM_TOLERANCE[block.dtype.itemsize])
    if len(wrong):
        raise ValueError(
            f"Posterior draw {wrong[0]}: its weights, or a column of its factors, do not sum to 1."
        )
