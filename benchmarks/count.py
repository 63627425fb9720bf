"""Counting all triples of 1e6 x 20 half-missing records, against ``numpy.bincount``.

One thread each, in the same run, the best of a few turns taken in alternation. The rivals are
ways to use bincount, with their columns laid out beforehand, outside the clock; the target is
held against the faster of those that go triple by triple.
"""

import itertools
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rejoint import kernels
from rejoint.kernels.count_tables import numpy_count

Counts = NDArray[np.float64]
TARGET = 5.0  # times faster than the best of the rivals


def make_codes(rows: int, variables: int, levels: int, missing: float) -> NDArray[np.int16]:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, levels, size=(rows, variables)).astype(np.int16)
    codes[rng.random(codes.shape) < missing] = -1
    return codes


class Bincount:
    """Tables by bincount; columns and masks are made once, outside the clock."""

    def __init__(self, codes: NDArray[np.int16], levels: int, subsets: list[tuple[int, ...]]):
        self.columns = [codes[:, n].astype(np.intp) for n in range(codes.shape[1])]
        self.seen = [column >= 0 for column in self.columns]
        self.shifted = [column + 1 for column in self.columns]
        self.levels, self.subsets = levels, subsets

    def observed_rows(self) -> Counts:
        """Pick the rows where all three are observed, then one bincount."""
        tables = []
        for j, k, n in self.subsets:
            rows = np.flatnonzero(self.seen[j] & self.seen[k] & self.seen[n])
            index = self.columns[j][rows] * self.levels + self.columns[k][rows]
            index = index * self.levels + self.columns[n][rows]
            tables.append(np.bincount(index, minlength=self.levels**3))
        return np.concatenate(tables).astype(np.float64)

    def missing_as_level(self) -> Counts:
        """Count all rows with one level more, and drop it."""
        size = self.levels + 1
        tables = []
        for j, k, n in self.subsets:
            index = (self.shifted[j] * size + self.shifted[k]) * size + self.shifted[n]
            table = np.bincount(index, minlength=size**3).reshape(size, size, size)
            tables.append(table[1:, 1:, 1:].ravel())
        return np.concatenate(tables).astype(np.float64)


def timed(function: Callable[[], Counts]) -> tuple[float, Counts]:
    start = time.perf_counter()
    counts = function()
    return time.perf_counter() - start, counts


def race(rows: int, variables: int, levels: int, turns: int) -> float:
    """Print the times of all ways; return how much faster ours is than bincount per triple."""
    codes = make_codes(rows, variables, levels, missing=0.5)
    subsets = list(itertools.combinations(range(variables), 3))
    shape = [levels] * variables
    rival = Bincount(codes, levels, subsets)
    ways: dict[str, Callable[[], Counts]] = {
        f"rejoint ({kernels.backend})": lambda: kernels.count(codes, None, shape, subsets, 1),
        "bincount, rows where all are observed": rival.observed_rows,
        "bincount, missing as a level": rival.missing_as_level,
        "bincount (the NumPy twin)": lambda: numpy_count(codes, None, shape, subsets),
    }
    best = dict.fromkeys(ways, np.inf)
    results: dict[str, Counts] = {}
    for _ in range(turns):
        for name, way in ways.items():
            seconds, results[name] = timed(way)
            best[name] = min(best[name], seconds)
    ours = next(iter(ways))
    for name in ways:
        assert np.array_equal(results[name], results[ours]), name
    print(f"{len(subsets):,} triples of {rows:,} x {variables}, {levels} levels, half missing")
    for name, seconds in best.items():
        print(f"  {name:<44}{seconds:8.3f} s {seconds / best[ours]:7.1f} x")
    return min(best[name] for name in list(ways)[1:3]) / best[ours]


def other_shapes(rows: int = 200_000) -> None:
    """Print how the kernel and its twin fare elsewhere."""
    print(f"other shapes, {rows:,} rows, seconds of the kernel and of its NumPy twin")
    for variables, levels, order, missing in [
        (20, 5, 3, 0.0),
        (20, 2, 3, 0.5),
        (20, 20, 3, 0.5),
        (12, 5, 4, 0.5),
        (200, 5, 2, 0.9),
    ]:
        codes = make_codes(rows, variables, levels, missing)
        subsets = list(itertools.combinations(range(variables), order))
        shape = [levels] * variables
        ours, counts = timed(lambda: kernels.count(codes, None, shape, subsets, 1))  # noqa: B023
        twin, same = timed(lambda: numpy_count(codes, None, shape, subsets))  # noqa: B023
        assert np.array_equal(counts, same)
        what = f"{variables} variables, {levels} levels, order {order}, {missing:.0%} missing"
        print(f"  {what:<48}{ours:8.3f} {twin:8.3f} {twin / ours:7.1f} x")


def main() -> int:
    ratio = race(rows=1_000_000, variables=20, levels=5, turns=3)
    met = ratio >= TARGET
    print(f"  target: {TARGET:g} times faster than bincount per triple: {ratio:.1f}", end=", ")
    print("met" if met else "MISSED")
    other_shapes()
    return 0 if met or kernels.backend == "numpy" else 1


if __name__ == "__main__":
    sys.exit(main())
