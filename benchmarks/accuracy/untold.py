"""Errors of the joint with the rank not told, over those of the mean of draws at the true rank.

In the same runs: how many 90 % intervals of P(a | b, c) hold the truth.
"""

from collections.abc import Callable
from time import process_time
from typing import NamedTuple

import numpy as np
from benchmarks.accuracy.intervals import held
from benchmarks.models import random_pmf

import rejoint as rj

Draw = Callable[[np.random.Generator, int], tuple[rj.LowRankPMF, rj.Records]]


def five(rng: np.random.Generator, size: int) -> tuple[rj.LowRankPMF, rj.Records]:
    """A model of five variables of ten levels and ten classes."""
    truth = random_pmf([10] * 5, 10, rng)
    return truth, truth.sample(size, random_state=rng)


def wide(rng: np.random.Generator, size: int) -> tuple[rj.LowRankPMF, rj.Records]:
    """A model of twenty variables of 2 or 3 levels and ten classes; 30 % of cells missing."""
    truth = random_pmf(rng.integers(2, 4, 20).tolist(), 10, rng)
    data = truth.sample(size, random_state=rng)
    return truth, rj.datasets.remove_cells(data, 0.3, random_state=rng)


CASES: dict[str, tuple[Draw, int, int]] = {
    "5 x 10, 1,000": (five, 1_000, 8),
    "5 x 10, 10,000": (five, 10_000, 8),
    "5 x 10, 100,000": (five, 100_000, 4),
    "20 x 2 or 3, 30 % missing, 1,000": (wide, 1_000, 4),
    "20 x 2 or 3, 30 % missing, 10,000": (wide, 10_000, 4),
}


class Untold(NamedTuple):
    """A fit with the rank not told."""

    rank: int
    errors: tuple[float, float]  # with the rank not told, and at the true rank
    held: list[bool]  # by intervals
    seconds: float

    @property
    def ratio(self) -> float:
        return self.errors[0] / self.errors[1]


def one_model(draw: Draw, size: int, seed: int, questions: int = 60) -> Untold:
    """Errors and intervals on one random model."""
    rng = np.random.default_rng(seed)
    truth, data = draw(rng, size)
    begun = process_time()
    found = rj.estimate(data, random_state=seed)
    spent = process_time() - begun
    known = rj.estimate(data, truth.rank, "bayes", agreement=False, random_state=seed)
    errors = tuple(rj.metrics.tensor_error(truth, fit.pmf) for fit in (found, known))
    own = list(held(truth, found, rng, questions, 0.9))
    return Untold(found.selection.rank, errors, own, spent)


def untold(first: int = 0, most: int | None = None, questions: int = 60) -> None:
    """Print the ratio of errors and the share of intervals that hold the truth."""
    for name, (draw, size, models) in CASES.items():
        ratios, hits = [], []
        for seed in range(first, first + min(models, most or models)):
            one = one_model(draw, size, seed, questions)
            ratios.append(one.ratio)
            hits += one.held
            print(
                f"{name}, seed {seed}: rank {one.rank}, error {one.errors[0]:.4f} = "
                f"{one.ratio:.3f} x {one.errors[1]:.4f}, intervals {np.mean(one.held):.3f}, "
                f"{one.seconds:.1f} s",
                flush=True,
            )
        print(
            f"{name}: error {np.mean(ratios):.3f} x that of the mean of draws at the true rank, "
            f"worst {max(ratios):.3f}; intervals {np.mean(hits):.3f} of {len(hits)}",
            flush=True,
        )
