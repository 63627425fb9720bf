"""Whether the rank found without being told is the right one, and what it costs where it is not."""

import time
from collections.abc import Callable
from time import process_time

import numpy as np
from benchmarks.accuracy import rivals
from benchmarks.models import random_pmf

import rejoint as rj

Draw = Callable[[np.random.Generator], rj.LowRankPMF]


def found_ranks(models: int = 20, rank: int = 5, size: int = 100_000) -> None:
    """Print, for random models of the paper's size, the rank chosen and its error by the true's."""
    ranks, ratios = [], []
    for seed in range(models):
        rng = np.random.default_rng(seed)
        truth = random_pmf([10] * 5, rank, rng)
        _, data = rivals.draw(truth, size, rng)
        begun = time.perf_counter()
        unknown = rj.estimate(data, rank="auto", random_state=seed)
        seconds = time.perf_counter() - begun
        known = rj.estimate(data, rank=rank, random_state=seed)
        dense = truth.to_dense()
        errors = [np.linalg.norm(r.pmf.to_dense() - dense) for r in (unknown, known)]
        ranks.append(unknown.pmf.rank)
        ratios.append(errors[0] / errors[1])
        print(
            f"seed {seed:2}: rank {ranks[-1]}, error {ratios[-1]:.3f} x that of rank {rank}, "
            f"{seconds:.0f} s",
            flush=True,
        )
    off = np.abs(np.array(ranks) - rank)
    print(
        f"{size:,} records of rank {rank}: {np.sum(off == 0)} of {models} right, "
        f"{np.sum(off > 1)} off by more than one; error at most {max(ratios):.3f} x "
        "that of the true rank"
    )


def balanced(rng: np.random.Generator, weight: float = 5.0) -> rj.LowRankPMF:
    """A model of 10 to 20 variables of 2 to 4 levels; weights Dirichlet, columns uniform."""
    levels = [int(rng.integers(2, 5))] * int(rng.integers(10, 21))
    return mixture(levels, rng, weight)


def five(rng: np.random.Generator) -> rj.LowRankPMF:
    """A model of five variables of ten levels."""
    return mixture([10] * 5, rng, 5.0)


def mixture(levels: list[int], rng: np.random.Generator, weight: float) -> rj.LowRankPMF:
    """A model of 3 to 25 classes."""
    rank = int(rng.integers(3, 26))
    factors = [rng.dirichlet(np.ones(size), size=rank).T for size in levels]
    return rj.LowRankPMF(rng.dirichlet(np.full(rank, weight)), factors)


KINDS: dict[str, tuple[int, Draw]] = {
    "weights Dirichlet(5)": (30, balanced),
    "weights Dirichlet(1)": (12, lambda rng: balanced(rng, 1.0)),
    "five variables of ten levels": (12, five),
}


def one_rank(draw: Draw, seed: int) -> tuple[int, rj.LowRankPMF, int]:
    """The rank found for a model of 3 to 25 classes, the model, and how many records it had."""
    rng = np.random.default_rng(seed)
    truth, size = draw(rng), int(rng.integers(10_000, 40_001))
    data = truth.sample(size, random_state=rng)
    return rj.rank.select(data, random_state=seed).rank, truth, size


def true_ranks(first: int = 0, share: float = 1.0) -> None:
    """Print the rank found for models of 3 to 25 classes, 10,000 to 40,000 records of each."""
    for kind, (models, draw) in KINDS.items():
        off = []
        for seed in range(first, first + round(share * models)):
            begun = process_time()
            found, truth, size = one_rank(draw, seed)
            off.append(found - truth.rank)
            print(
                f"{kind}, seed {seed}: {len(truth.domain)} variables of {truth.domain.shape[0]} "
                f"levels, {size:,} records, rank {truth.rank} -> {found}, "
                f"{process_time() - begun:.1f} s",
                flush=True,
            )
        print(
            f"{kind}: {off.count(0)} of {len(off)} right, off by {np.mean(off):+.1f} on average, "
            f"{np.mean(np.abs(off)):.1f} in size, worst {max(off, key=abs):+d}",
            flush=True,
        )
