"""Whether 90 % credible intervals hold the truth nine times out of ten, rank not told."""

import numpy as np
from benchmarks.models import random_pmf

import rejoint as rj


def coverage(models: int = 30, queries: int = 20, level: float = 0.9) -> None:
    """Print the mean coverage over random models of ranks 2-5 and queries P(a | b, c)."""
    for size in (1_000, 10_000):
        hits, ranks = [], []
        for seed in range(models):
            rng = np.random.default_rng(seed)
            truth = random_pmf([4] * 6, int(rng.integers(2, 6)), rng)
            data = truth.sample(size, random_state=rng)
            result = rj.estimate(data, solver="bayes", random_state=seed)
            ranks.append(result.pmf.rank - truth.rank)
            for _ in range(queries):
                a, b, c = (f"x{n}" for n in rng.permutation(6)[:3])
                given = {b: int(rng.integers(4)), c: int(rng.integers(4))}
                low, high = result.posterior.interval([a], given=given, level=level)
                value = truth.marginal([a], given=given)
                pick = int(rng.integers(4))
                hits.append(low[pick] <= value[pick] <= high[pick])
        print(
            f"{size:7,} records: {np.mean(hits):.1%} of {len(hits)} intervals of {level:.0%} hold "
            f"the truth; rank off by {np.mean(np.abs(ranks)):.1f} on average"
        )
