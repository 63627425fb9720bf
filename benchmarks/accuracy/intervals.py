"""Whether 90 % credible intervals hold the truth nine times out of ten."""

from collections.abc import Callable, Iterator
from unittest.mock import patch

import numpy as np
from benchmarks.models import random_pmf

import rejoint as rj

Fit = Callable[[rj.Records, int, int], rj.FitResult]


def coverage(models: int = 30, queries: int = 20) -> None:
    """Print the mean coverage over random models of ranks 2-5 and queries P(a | b, c).

    Records in memory, rank not told; then by passes over parts, from a tenth of the records on.
    """

    def in_memory(data: rj.Records, rank: int, seed: int) -> rj.FitResult:
        return rj.estimate(data, solver="bayes", random_state=seed)

    def by_passes(data: rj.Records, rank: int, seed: int) -> rj.FitResult:
        parts = rj.scan(data, size=len(data) // 5, memory=0)
        return rj.estimate(parts, solver="bayes", random_state=seed)

    def by_passes_told(data: rj.Records, rank: int, seed: int) -> rj.FitResult:
        parts = rj.scan(data, size=len(data) // 5, memory=0)
        return rj.estimate(parts, rank, "bayes", random_state=seed)

    for size in (1_000, 10_000, 100_000):
        tell(f"{size:7,} records in memory", in_memory, size, models, queries)
    size = 100_000
    with patch("rejoint.estimation.data.sample_size", lambda variables: size // 10):
        tell(f"{size:7,} records by passes", by_passes, size, models, queries)
        tell(f"{size:7,} records by passes, rank told", by_passes_told, size, models, queries)


def tell(what: str, fit: Fit, size: int, models: int, queries: int, level: float = 0.9) -> None:
    """Print how many intervals hold the truth."""
    hits, ranks = [], []
    for seed in range(models):
        rng = np.random.default_rng(seed)
        truth = random_pmf([4] * 6, int(rng.integers(2, 6)), rng)
        result = fit(truth.sample(size, random_state=rng), truth.rank, seed)
        ranks.append(result.pmf.rank - truth.rank)
        hits += held(truth, result, rng, queries, level)
    print(
        f"{what}: {np.mean(hits):.1%} of {len(hits)} intervals of {level:.0%} hold the truth; "
        f"rank off by {np.mean(np.abs(ranks)):.1f} on average",
        flush=True,
    )


def held(
    truth: rj.LowRankPMF,
    result: rj.FitResult,
    rng: np.random.Generator,
    queries: int,
    level: float,
) -> Iterator[bool]:
    """Whether the intervals of random questions hold the truth."""
    levels = dict(zip(truth.domain.names, truth.domain.shape, strict=True))
    for _ in range(queries):
        a, b, c = (truth.domain.names[n] for n in rng.permutation(len(levels))[:3])
        given = {name: int(rng.integers(levels[name])) for name in (b, c)}
        low, high = result.pmf.interval([a], given=given, level=level)
        value = truth.marginal([a], given=given)
        pick = int(rng.integers(levels[a]))
        yield bool(low[pick] <= value[pick] <= high[pick])
