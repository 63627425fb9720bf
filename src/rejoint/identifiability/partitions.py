"""Partitions of the variables into groups, all of them at once where all tables are there.

The bounds depend on a partition only through the *sides* of the groups: sums of levels and, for a
group that is taken in pairs, the sum of squares, too. So the sums that can be reached are
tabulated, not the partitions; there are few of them, and any of them is traced back to a
partition afterwards.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

import numpy as np
from numpy.typing import NDArray

__all__ = ["Splits", "balanced"]

#: Entries of the tabulation; beyond, only balanced partitions are tried.
LARGEST = 30_000_000


@dataclass(frozen=True)
class Splits:
    """All ways to split numbers into three groups, by the sums of the first two.

    Parameters
    ----------
    values : tuple of int
        The numbers: ``I_n - 1``, or ``I_n``.

    Examples
    --------
    >>> splits = Splits((2, 2, 2, 6))
    >>> first, second, third, squares = splits.sums
    >>> where = int(np.argmax(first * second * third))  # the largest product is 2 * 4 * 6
    >>> sorted(splits.partition(where), key=len)[-1]
    (0, 1)
    """

    values: tuple[int, ...]

    @cached_property
    def unit(self) -> int:
        """Greatest common divisor: sums are counted in it."""
        return gcd(*self.values) or 1

    @cached_property
    def small(self) -> tuple[int, ...]:
        """The numbers in units."""
        return tuple(value // self.unit for value in self.values)

    @property
    def equal(self) -> bool:
        """Whether all numbers are the same: then only the sizes of the groups matter."""
        return len({*self.values}) == 1 and self.values[0] > 0

    @property
    def fits(self) -> bool:
        """Whether the tabulation is small enough."""
        size = 1 + sum(self.small)
        return size**2 * (1 if self.equal else 1 + len(self.values)) <= LARGEST

    @cached_property
    def steps(self) -> NDArray[np.int64]:
        """The tabulation, ``[n, s1, s2]``, over the first ``n`` numbers.

        How much the squares in the first two groups can add up to, if the groups sum up to
        ``s1`` and ``s2``; -1 if they cannot.
        """
        size = 1 + sum(self.small)
        table = np.full((1 + len(self.small), size, size), -1, dtype=np.int64)
        table[0, 0, 0] = 0
        for n, value in enumerate(self.small):
            before, after = table[n], table[n + 1]
            after[:] = before  # into the third group
            left, up = before[: size - value], before[:, : size - value]
            gain = value * value
            np.maximum(after[value:], np.where(left >= 0, left + gain, -1), out=after[value:])
            np.maximum(after[:, value:], np.where(up >= 0, up + gain, -1), out=after[:, value:])
        return table

    @cached_property
    def places(self) -> NDArray[np.intp]:
        """The sums that can be reached, (K, 2), in units."""
        if self.equal:
            size = np.arange(1 + len(self.values))
            return np.argwhere(size[:, None] + size <= len(self.values))
        return np.argwhere(self.steps[-1] >= 0)

    @cached_property
    def sums(self) -> tuple[NDArray[np.int64], ...]:
        """Sums of the three groups, and least sum of squares in the third, for each place."""
        first, second = self.places[:, 0] * self.unit, self.places[:, 1] * self.unit
        total = sum(self.values)
        if self.equal:
            third = total - first - second
            return first, second, third, third * self.unit
        squares = sum(v * v for v in self.values)
        third_squares = squares - self.steps[-1][tuple(self.places.T)] * self.unit**2
        return first, second, total - first - second, third_squares

    def partition(self, where: int) -> tuple[tuple[int, ...], ...]:
        """Which numbers are in which group, for one place."""
        groups: tuple[list[int], ...] = ([], [], [])
        s1, s2 = map(int, self.places[where])
        if self.equal:
            every = tuple(range(len(self.values)))
            return every[:s1], every[s1 : s1 + s2], every[s1 + s2 :]
        for n in reversed(range(len(self.small))):
            value, now = self.small[n], self.steps[n + 1, s1, s2]
            before, gain = self.steps[n], value * value
            if value == 0 or before[s1, s2] == now:
                groups[2].append(n)
            elif s1 >= value and before[s1 - value, s2] >= 0 == now - gain - before[s1 - value, s2]:
                groups[0].append(n)
                s1 -= value
            else:
                groups[1].append(n)
                s2 -= value
        return tuple(tuple(reversed(group)) for group in groups)


def balanced(values: Sequence[int], groups: int) -> tuple[tuple[int, ...], ...]:
    """Groups of nearly equal sums: the largest number first, into the smallest group.

    Examples
    --------
    >>> balanced([3, 1, 2, 2], 2)
    ((0, 1), (2, 3))
    """
    found: list[list[int]] = [[] for _ in range(groups)]
    sums = [0] * groups
    for n in sorted(range(len(values)), key=lambda n: -values[n]):
        k = min(range(groups), key=lambda k: (sums[k], len(found[k])))
        found[k].append(n)
        sums[k] += values[n]
    return tuple(tuple(sorted(group)) for group in found)
