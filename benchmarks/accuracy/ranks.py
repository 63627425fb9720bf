"""Whether the rank found without being told is the right one, and what it costs where it is not."""

import time

import numpy as np
from benchmarks.accuracy import rivals
from benchmarks.models import random_pmf

import rejoint as rj


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
