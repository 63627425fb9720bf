"""How cost grows with records, variables, levels and classes: slopes on a doubly logarithmic plot.

Sizes are large enough that what a call costs whatever the size has no part in the slope.
"""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from benchmarks.speed.measures import cpu_time

from rejoint import kernels

Sizes = dict[str, int]
USUAL: dict[str, Sizes] = {
    "EM pass": {"M": 100_000, "N": 20, "I": 5, "F": 20},
    "sparse pass": {"M": 50_000, "N": 1000, "I": 5, "F": 20},
    "triples": {"M": 200_000, "N": 12, "I": 5, "F": 1},
}
#: What each path is tried at, and the slope that theory gives; None where it gives no single one.
GRID: dict[str, dict[str, tuple[list[int], float | None]]] = {
    "EM pass": {
        "M": ([100_000, 200_000, 400_000, 800_000], 1.0),
        # Fewer variables are joined in larger groups, whose tables still fit a cache: cheaper.
        "N": ([40, 80, 160, 320], 1.0),
        "I": ([3, 6, 12, 24], 0.0),
        "F": ([8, 16, 32, 64, 128], 1.0),
    },
    "sparse pass": {
        "M": ([25_000, 50_000, 100_000, 200_000], 1.0),
        "N": ([500, 1000, 2000, 4000], 1.0),
        "F": ([8, 16, 32, 64], 1.0),
    },
    "triples": {
        "M": ([100_000, 200_000, 400_000, 800_000], 1.0),
        "N": ([8, 12, 16, 24], 3.0),
        "I": ([3, 6, 12], None),
    },
}


def random_factors(rng: np.random.Generator, at: Sizes) -> np.ndarray:
    columns = [rng.dirichlet(np.ones(at["I"]), size=at["F"]).T for _ in range(at["N"])]
    return np.vstack(columns)


def codes_of(rng: np.random.Generator, at: Sizes, missing: float) -> np.ndarray:
    codes = rng.integers(0, at["I"], size=(at["M"], at["N"])).astype(np.int16)
    if missing:
        codes[rng.random(codes.shape) < missing] = -1
    return codes


def em_pass(at: Sizes) -> Callable[[], Any]:
    rng = np.random.default_rng(0)
    codes, factors = codes_of(rng, at, 0.5), random_factors(rng, at)
    weights, levels = np.full(at["F"], 1.0 / at["F"]), [at["I"]] * at["N"]
    return lambda: kernels.class_pass(codes, None, weights, factors, levels, 1)


def sparse_pass(at: Sizes) -> Callable[[], Any]:
    """Two per cent of the cells, so that their number grows with M and with N."""
    rng = np.random.default_rng(0)
    size = at["M"] * at["N"]
    row, column = np.divmod(np.unique(rng.integers(0, size, size=size // 50)), at["N"])
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=at["M"]))])
    levels = (at["I"],) * at["N"]
    found = column * at["I"] + rng.integers(0, at["I"], size=len(row))
    cells, factors = kernels.SparseCodes(starts, found, levels), random_factors(rng, at)
    weights = np.full(at["F"], 1.0 / at["F"])
    return lambda: kernels.class_pass(cells, None, weights, factors, levels, 1)


def triples(at: Sizes) -> Callable[[], Any]:
    rng = np.random.default_rng(0)
    codes = codes_of(rng, at, 0.5)
    levels, subsets = [at["I"]] * at["N"], list(combinations(range(at["N"]), 3))
    return lambda: kernels.count(codes, None, levels, subsets, 1)


MAKERS: dict[str, Callable[[Sizes], Callable[[], Any]]] = {
    "EM pass": em_pass,
    "sparse pass": sparse_pass,
    "triples": triples,
}


def curve(path: str, name: str) -> dict[str, Any]:
    """Seconds at each size, the slope through them, and the slope of theory."""
    sizes, theory = GRID[path][name]
    seconds = [cpu_time(MAKERS[path](USUAL[path] | {name: size}), 3) for size in sizes]
    slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    found = {"path": path, "in": name, "sizes": sizes, "seconds": seconds}
    return found | {"slope": slope, "theory": theory}
