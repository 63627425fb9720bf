"""Records that are at the first level of nearly every variable: only what departs from it is held.

A user has bought ten of a thousand items: the other 990 are observed, too, as not bought. With
``b`` the first levels, the probability of a record, ``sum_f w_f prod_n A_n[x_n, f]``, is

    sum_f w'_f prod_{n: x_n departs} A'_n[x_n, f],  w'_f = w_f prod_n A_n[b_n, f],
                                                    A'_n[i, f] = A_n[i, f] / A_n[b_n, f]:

a pass over the cells that depart, with another model, gives all that one over a table of all cells
does; what was counted at the first levels is what is left of the classes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.kernels._checks import Array, Codes, check_model
from rejoint.kernels.cells import Cells

#: What a probability of zero is taken for where it is divided by.
TINY = 1e-200

#: Nats by which numbers of one row of a model may differ: its smallest is no zero then.
RANGE = 600.0


class Folded(NamedTuple):
    """A model in which records are what departs, and what logarithms of probabilities lack."""

    cells: Cells
    weights: Array
    factors: Array
    shift: float


@dataclass(frozen=True, eq=False)
class Departures:
    """Records by the cells that are not at the first level of their variable; none is missing.

    Parameters
    ----------
    cells : Cells
        Those that depart.

    Examples
    --------
    >>> found = Departures(Cells(np.array([0, 1, 1]), np.array([3]), (2, 2)))
    >>> found.to_codes()
    array([[0, 1],
           [0, 0]], dtype=int16)
    """

    cells: Cells

    def __post_init__(self) -> None:
        if np.isin(self.cells.cells, self.first).any():
            raise ValueError("A cell at the first level of its variable does not depart from it.")

    @property
    def levels(self) -> tuple[int, ...]:
        """Number of levels of each variable."""
        return self.cells.levels

    @property
    def first(self) -> NDArray[np.int64]:
        """The first level of each variable, numbered through all of them."""
        return self.cells.first

    @property
    def size(self) -> int:
        """Cells that a pass goes through; each record is one for what does not depart."""
        return self.cells.size + len(self)

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.cells)

    def __getitem__(self, rows: Any) -> "Departures":
        """Return some records."""
        return Departures(self.cells[rows])

    def to_codes(self) -> Codes:
        """As a table of codes."""
        codes = self.cells.to_codes()
        codes[codes < 0] = 0
        return codes

    def keys(self) -> list[bytes]:
        """A key for each record: equal where the records are, and in the order of tables of codes.

        Examples
        --------
        >>> a, b, c = Departures(Cells(np.array([0, 1, 2, 2]), np.array([1, 3]), (2, 2))).keys()
        >>> c < b < a
        True
        """
        cells = self.cells
        # The sooner one departs, the larger it is; one that goes no further is the smaller one.
        back = len(self.levels) - cells.variables.astype(np.int64)
        numbers = back * max(self.levels) + cells.codes
        text, starts = numbers.astype(">u8").tobytes(), (8 * cells.starts).tolist()
        return [text[a:b] for a, b in pairwise(starts)]

    def folded(self, weights: Array, factors: Array, levels: Sequence[int]) -> Folded:
        """A model with which passes over the cells that depart are those over all cells."""
        if self.levels != tuple(levels):
            raise ValueError("The records have other numbers of levels than the model.")
        weights, factors, _ = check_model(weights, factors, levels)
        floor = np.maximum(factors[self.first], TINY)
        ratios = factors / np.repeat(floor, self.levels, axis=0)
        logs = np.log(floor).sum(axis=0)
        shift = float(logs.max())
        spread = logs - shift
        whole = spread + np.log(np.where(weights > 0, weights, 1.0))
        if float(whole.min()) > -RANGE:
            return Folded(self.cells, weights * np.exp(spread), ratios, shift)
        # Too far apart for one number each: a product of several, as of so many more variables.
        parts = max(1, int(np.ceil(-spread.min() / RANGE)))
        more = np.tile(np.exp(spread / parts), (parts, 1))
        return Folded(with_all(self.cells, parts), weights, np.vstack([ratios, more]), shift)

    def unfolded(self, classes: Array, counts: Array) -> Array:
        """Counts of all levels from those of the ones that depart."""
        counts = counts[: sum(self.levels)].copy()
        left = classes - np.add.reduceat(counts, self.first)
        counts[self.first] = np.maximum(left, 0.0)  # by rounding alone it is less
        return counts


def with_all(cells: Cells, more: int) -> Cells:
    """The same with some variables of one level each, which all records have.

    Examples
    --------
    >>> with_all(Cells(np.array([0, 1, 1]), np.array([1]), (2,)), 2).to_codes()
    array([[ 1,  0,  0],
           [-1,  0,  0]], dtype=int16)
    """
    starts = cells.starts + more * np.arange(len(cells) + 1)
    found = np.empty(int(starts[-1]), dtype=np.int32)
    own = np.arange(cells.size) + more * np.repeat(np.arange(len(cells)), cells.counts)
    found[own] = cells.cells
    last = starts[1:, None] - more + np.arange(more)
    found[last] = sum(cells.levels) + np.arange(more)
    return Cells(starts, found, (*cells.levels, *[1] * more))


Counts = tuple[float, Array, Array]


def count_departures(
    codes: Departures,
    weight: Array | None,
    model: tuple[Array, Array],
    levels: Sequence[int],
    count: Callable[[Cells, Array, Array, Sequence[int]], Counts],
) -> Counts:
    """What a pass counts, by one over the cells that depart."""
    folded = codes.folded(*model, levels)
    total, classes, counts = count(
        folded.cells, folded.weights, folded.factors, folded.cells.levels
    )
    mass = float(len(codes)) if weight is None else float(np.sum(weight))
    return total + mass * folded.shift, classes, codes.unfolded(classes, counts)
