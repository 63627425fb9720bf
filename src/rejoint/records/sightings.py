"""Sightings: what was seen of a column so far, block by block, in bounded memory."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.columns import Coded, Column, Numbers
from rejoint.domain.labels import Level
from rejoint.domain.variable import Variable
from rejoint.records.inference import infer_variable
from rejoint.records.wishes import Wish

__all__ = ["MOST", "Sightings"]

Floats = NDArray[np.float64]

#: Distinct numbers beyond which a sample of as many stands for them: it places quantiles within
#: 0.1 % of the records. So many different texts are no levels.
MOST = 200_000


class Sightings:
    """Distinct values of one column and how often they came, whatever the number of rows.

    Examples
    --------
    >>> seen = Sightings("age")
    >>> seen.add(Numbers(np.array([30, 41])), None)
    >>> seen.add(Numbers(np.array([30, 52])), None)
    >>> seen.variable(Wish()).levels
    (30, 41, 52)
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.labels: dict[Level, int] = {}
        self.cells: Floats = np.zeros(0)  # how often each label was seen
        self.mass: Floats = np.zeros(0)  # the same weighted
        self.declared, self.ordered = True, True  # so long as all blocks say so
        self.values: NDArray[Any] = np.zeros(0, dtype=np.int64)
        self.value_cells: Floats = np.zeros(0)
        self.value_mass: Floats = np.zeros(0)
        self.sampled: Sampled | None = None

    def add(self, column: Column, weight: Floats | None, times: Floats | None = None) -> None:
        """Take in one more block: each cell once, or so many times; and what it weighs."""
        if isinstance(column, Coded):
            self._add_labels(column, weight, times)
            return
        there = slice(None) if column.missing is None else ~column.missing
        values = column.values[there]
        if len(values):
            mass = None if weight is None else weight[there]
            self._add_values(*_tallied(values, None if times is None else times[there], mass))

    def _add_labels(self, column: Coded, weight: Floats | None, times: Floats | None) -> None:
        if not column.labels:
            return
        self.declared &= column.declared
        self.ordered &= column.ordered
        places = [self.labels.setdefault(label, len(self.labels)) for label in column.labels]
        if len(self.labels) > MOST:
            raise ValueError(
                f"Variable {self.name!r} has more than {MOST:,} different labels: leave the column "
                f"out (without=[{self.name!r}]), or group its values."
            )
        size = len(column.labels) + 1
        cells: Floats = np.bincount(column.codes + 1, times, size)[1:].astype(np.float64)
        mass = cells
        if weight is not None:
            mass = np.asarray(np.bincount(column.codes + 1, weight, size)[1:], dtype=np.float64)
        for name, found in (("cells", cells), ("mass", mass)):
            total = np.zeros(len(self.labels))
            total[: len(getattr(self, name))] = getattr(self, name)
            np.add.at(total, places, found)
            setattr(self, name, total)

    def _add_values(self, values: NDArray[Any], cells: Floats, mass: Floats) -> None:
        """Take in distinct numbers, how often they came and what they weigh."""
        if self.sampled is not None:
            self.sampled.add(values, mass)
            return
        both = np.concatenate(_alike(self.values, values))
        cells = np.concatenate([self.value_cells, cells])
        mass = np.concatenate([self.value_mass, mass])
        self.values, self.value_cells, self.value_mass = _tallied(both, cells, mass)
        if len(self.values) > MOST:
            self.sampled = Sampled(MOST)
            self.sampled.add(self.values, self.value_mass)

    def join(self, other: "Sightings") -> None:
        """Take in what was seen elsewhere."""
        if other.labels:
            codes = np.arange(len(other.labels), dtype=np.int32)
            column = Coded(tuple(other.labels), codes, other.declared, other.ordered)
            self._add_labels(column, other.mass, other.cells)
        if other.sampled is not None:
            if self.sampled is None:
                self.sampled = Sampled(MOST)
                self.sampled.add(self.values, self.value_mass)
            self.sampled.join(other.sampled)
        elif len(other.values):
            self._add_values(other.values, other.value_cells, other.value_mass)

    def variable(self, wish: Wish) -> Variable:
        """The variable behind the column, as its whole would have made it."""
        if self.sampled is not None:
            return self._binned(wish)
        if not self.labels:
            # Each value twice if it comes more than once: enough to tell labels from identifiers.
            times = np.minimum(self.value_cells, 2).astype(np.intp)
            share = np.repeat(self.value_mass / np.maximum(times, 1), times)
            return infer_variable(self.name, Numbers(np.repeat(self.values, times)), wish, share)
        if len(self.values):  # text in one block, numbers in another
            self._add_labels(_as_labels(self.values), None, self.value_cells)
        times = np.minimum(self.cells, 2).astype(np.intp)
        codes = np.repeat(np.arange(len(self.labels), dtype=np.int32), times)
        share = np.repeat(self.mass / np.maximum(times, 1), times)
        column = Coded(tuple(self.labels), codes, self.declared, self.declared and self.ordered)
        return infer_variable(self.name, column, wish, share)

    def _binned(self, wish: Wish) -> Variable:
        """Bins by a sample; nothing else can be made of so many numbers."""
        assert self.sampled is not None
        if self.labels or wish.kind not in (None, "binned") or wish.bins is False:
            raise ValueError(
                f"Variable {self.name!r} has more than {MOST:,} different numbers, which can only "
                f"be binned: say bins={{{self.name!r}: 10}}, or leave the column out."
            )
        values, share = self.sampled.all()
        return infer_variable(self.name, Numbers(values), wish, share)


class Sampled:
    """A sample of a stream of numbers, each as likely to be in it as its weight says."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.rng = np.random.default_rng(0)
        self.values: NDArray[Any] = np.zeros(0)
        self.ranks = np.zeros(0)

    def add(self, values: NDArray[Any], weight: Floats) -> None:
        """Take in more: those with the smallest exponential waiting times stay."""
        ranks = self.rng.exponential(size=len(values)) / np.maximum(weight, 1e-300)
        self._take(values, ranks)

    def join(self, other: "Sampled") -> None:
        """Take in another sample."""
        self._take(other.values, other.ranks)

    def _take(self, values: NDArray[Any], ranks: Floats) -> None:
        self.values = np.concatenate(_alike(self.values, values))
        self.ranks = np.concatenate([self.ranks, ranks])
        if len(self.ranks) > self.size:
            kept = np.sort(np.argpartition(self.ranks, self.size)[: self.size])
            self.values, self.ranks = self.values[kept], self.ranks[kept]

    def all(self) -> tuple[NDArray[Any], Floats]:
        """The sample, each value of the same weight."""
        return self.values, np.ones(len(self.values))


def _tallied(
    values: NDArray[Any], cells: Floats | None, mass: Floats | None
) -> tuple[NDArray[Any], Floats, Floats]:
    """Each value once, in order, with its cells (one each by default) and its mass (as many)."""
    low = int(values.min()) if values.dtype == np.int64 else 0
    if values.dtype == np.int64 and int(values.max()) - low <= len(values) + 1000:
        where = values - low  # a table of them is cheaper than sorting
        count = np.bincount(where)
        distinct: NDArray[Any] = np.flatnonzero(count) + low
    else:
        distinct, where, count = np.unique(values, return_inverse=True, return_counts=True)
    there = count > 0
    number: Floats = count[there].astype(np.float64)
    if cells is not None:
        number = np.asarray(np.bincount(where, cells)[there], dtype=np.float64)
    if mass is None:
        return distinct, number, number
    return distinct, number, np.asarray(np.bincount(where, mass)[there], dtype=np.float64)


def _alike(one: NDArray[Any], other: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both of one type: a narrow float stays one, so that its 0.1 is the level 0.1."""
    if not len(one):
        return one.astype(other.dtype), other
    kinds = {array.dtype for array in (one, other) if array.dtype.kind == "f"}
    if len(kinds) == 1:
        (kind,) = kinds
        return one.astype(kind), other.astype(kind)
    return one, other


def _as_labels(values: NDArray[Any]) -> Coded:
    return Coded(tuple(values.tolist()), np.arange(len(values), dtype=np.int32))
