"""DefaultCodes: records at the first level of almost every variable, by what departs from it.

A user has bought ten of a thousand items: the other 990 are observed, too, as not bought. The first
level of each variable is its default. With ``b`` the defaults, the probability of a record,
``sum_f w_f prod_n A_n[x_n, f]``, is

    sum_f w'_f prod_{n: x_n departs} A'_n[x_n, f],  w'_f = w_f prod_n A_n[b_n, f],
                                                    A'_n[i, f] = A_n[i, f] / A_n[b_n, f]:

a pass over the values that depart, with another model, gives all that a pass over a table of all
values gives; the counts at the defaults are what is left of the counts of the classes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.kernels.backend import Array, Codes, check_model
from rejoint.kernels.sparse_codes import SparseCodes

#: A probability of zero is replaced by this where it is a divisor.
SMALLEST_DIVISOR = 1e-200

#: Nats by which numbers of one row of a model may differ without the smallest becoming zero.
RANGE_NATS = 600.0


class FoldedModel(NamedTuple):
    """A model of the departures alone, and what log-probabilities under it lack (``shift``)."""

    codes: SparseCodes
    weights: Array
    factors: Array
    shift: float


@dataclass(frozen=True, eq=False)
class DefaultCodes:
    """Records by their values that are not at the first level of the variable; none is missing.

    Parameters
    ----------
    departures : SparseCodes
        The values that are not at the first level.

    Examples
    --------
    >>> found = DefaultCodes(SparseCodes(np.array([0, 1, 1]), np.array([3]), (2, 2)))
    >>> found.to_codes()
    array([[0, 1],
           [0, 0]], dtype=int16)
    """

    departures: SparseCodes

    def __post_init__(self) -> None:
        if np.isin(self.departures.cells, self.first).any():
            raise ValueError("A value at the first level of its variable does not depart from it.")

    @property
    def levels(self) -> tuple[int, ...]:
        """Number of levels of each variable."""
        return self.departures.levels

    @property
    def first(self) -> NDArray[np.int64]:
        """The first level of each variable, numbered through all variables."""
        return self.departures.first

    @property
    def size(self) -> int:
        """Values that a pass goes through; each record has one more, for all its defaults."""
        return self.departures.size + len(self)

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.departures)

    def __getitem__(self, rows: Any) -> "DefaultCodes":
        """Return some records."""
        some = object.__new__(DefaultCodes)  # not checked again
        object.__setattr__(some, "departures", self.departures[rows])
        return some

    def to_codes(self) -> Codes:
        """Return a table of codes."""
        codes = self.departures.to_codes()
        codes[codes < 0] = 0
        return codes

    def keys(self) -> list[bytes]:
        """Return a key of each record: equal records have equal keys, in the order of their codes.

        Examples
        --------
        >>> a, b, c = DefaultCodes(
        ...     SparseCodes(np.array([0, 1, 2, 2]), np.array([1, 3]), (2, 2))
        ... ).keys()
        >>> c < b < a
        True
        """
        found = self.departures
        # The sooner a record departs, the larger its codes; one that departs no more is smaller.
        back = len(self.levels) - found.variables.astype(np.int64)
        numbers = back * max(self.levels) + found.codes
        text, starts = numbers.astype(">u8").tobytes(), (8 * found.starts).tolist()
        return [text[a:b] for a, b in pairwise(starts)]

    def fold_model(self, weights: Array, factors: Array, levels: Sequence[int]) -> FoldedModel:
        """Return the model with which a pass over the departures is one over all values."""
        if self.levels != tuple(levels):
            raise ValueError("The records have other numbers of levels than the model.")
        weights, factors, _ = check_model(weights, factors, levels)
        floor = np.maximum(factors[self.first], SMALLEST_DIVISOR)
        ratios = factors / np.repeat(floor, self.levels, axis=0)
        logs = np.log(floor).sum(axis=0)
        shift = float(logs.max())
        spread = logs - shift
        whole = spread + np.log(np.where(weights > 0, weights, 1.0))
        if float(whole.min()) > -RANGE_NATS:
            return FoldedModel(self.departures, weights * np.exp(spread), ratios, shift)
        # Too far apart for one number each: a product of several, as of that many more variables.
        parts = max(1, int(np.ceil(-spread.min() / RANGE_NATS)))
        more = np.tile(np.exp(spread / parts), (parts, 1))
        codes = add_constants(self.departures, parts)
        return FoldedModel(codes, weights, np.vstack([ratios, more]), shift)

    def unfold_counts(self, classes: Array, counts: Array) -> Array:
        """Return counts of all levels from those of the departures."""
        counts = counts[: sum(self.levels)].copy()
        left = classes - np.add.reduceat(counts, self.first)
        counts[self.first] = np.maximum(left, 0.0)  # rounding alone makes it less
        return counts


def add_constants(codes: SparseCodes, more: int) -> SparseCodes:
    """Add variables of one level each, which is observed in all records.

    Examples
    --------
    >>> add_constants(SparseCodes(np.array([0, 1, 1]), np.array([1]), (2,)), 2).to_codes()
    array([[ 1,  0,  0],
           [-1,  0,  0]], dtype=int16)
    """
    starts = codes.starts + more * np.arange(len(codes) + 1)
    found = np.empty(int(starts[-1]), dtype=np.int32)
    own = np.arange(codes.size) + more * np.repeat(np.arange(len(codes)), codes.counts)
    found[own] = codes.cells
    last = starts[1:, None] - more + np.arange(more)
    found[last] = sum(codes.levels) + np.arange(more)
    return SparseCodes.trusted(starts, found, (*codes.levels, *[1] * more))


Counts = tuple[float, Array, Array]


def count_folded(
    codes: DefaultCodes,
    weight: Array | None,
    model: tuple[Array, Array],
    levels: Sequence[int],
    count: Callable[[SparseCodes, Array, Array, Sequence[int]], Counts],
) -> Counts:
    """Return what a pass counts over all values; ``count`` is a pass over SparseCodes."""
    folded = codes.fold_model(*model, levels)
    total, classes, counts = count(
        folded.codes, folded.weights, folded.factors, folded.codes.levels
    )
    mass = float(len(codes)) if weight is None else float(np.sum(weight))
    return total + mass * folded.shift, classes, codes.unfold_counts(classes, counts)
