"""Errors of the joint estimated from records, in the paper's set-up (N = 5, I = 10).

``python -m benchmarks.accuracy`` (``make bench-accuracy``) prints, for every rank, sample size and
share of missing cells: RMS relative error of our default, of maximum likelihood started at the
truth, of oracle MLE (which sees the hidden class), of empirical MLE (complete records counted), of
independence, of StepMix where it is installed, and the Cramer-Rao bound. ``--quick`` takes few
seeds; ``--intervals`` checks the coverage of 90 % intervals instead.
"""

import argparse
import time

import numpy as np
from benchmarks.accuracy import intervals, rivals
from benchmarks.models import cramer_rao, random_pmf

import rejoint as rj

LEVELS = [10] * 5
RANKS = (5, 10, 15)
SIZES = (1_000, 10_000, 100_000, 1_000_000)
COLUMNS = ("default", "ML from truth", "oracle", "empirical", "independence", "StepMix", "bound")


def one_model(rank: int, size: int, missing: float, seed: int, stepmix: bool) -> dict[str, float]:
    """Errors of all estimators on one random model, and the time of ours."""
    rng = np.random.default_rng(seed)
    truth = random_pmf(LEVELS, rank, rng)
    classes, complete = rivals.draw(truth, size, rng)
    data = complete
    if missing:
        data = rj.datasets.remove_cells(complete, missing, random_state=rng)
    begun = time.perf_counter()
    result = rj.estimate(data, rank=rank, random_state=seed)
    seconds = time.perf_counter() - begun
    dense = truth.to_dense()
    found = {
        "default": rivals.dense_of(result),
        "ML from truth": rj.estimate(data, rank, "ml", start=truth).pmf.to_dense(),
        "oracle": rivals.oracle(truth, data, classes),
        "empirical": rivals.empirical(data),
        "independence": rivals.independence(data),
    }
    if stepmix:
        found["StepMix"] = rivals.stepmix(data, rank, seed)
    errors = {k: float(np.linalg.norm(v - dense) / np.linalg.norm(dense)) for k, v in found.items()}
    return errors | {"bound": cramer_rao(truth, size, missing), "seconds": seconds}


def table(seeds: int, sizes: tuple[int, ...], ranks: tuple[int, ...], stepmix: bool) -> None:
    """Print the table of RMS errors."""
    print("rank  records   missing  " + "".join(f"{name:>15}" for name in COLUMNS) + "  seconds")
    for missing in (0.0, 0.2):
        for rank in ranks:
            for size in sizes:
                small = stepmix and size <= 10_000
                rows = [one_model(rank, size, missing, seed, small) for seed in range(seeds)]
                rms = {k: np.sqrt(np.mean([r[k] ** 2 for r in rows])) for k in rows[0]}
                shown = [f"{rms[k]:15.4f}" if k in rms else f"{'':>15}" for k in COLUMNS]
                seconds = np.mean([r["seconds"] for r in rows])
                print(
                    f"{rank:4} {size:8,} {missing:8.0%}   {''.join(shown)} {seconds:8.1f}",
                    flush=True,
                )


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="three seeds, up to 100,000 records")
    parser.add_argument("--intervals", action="store_true", help="coverage of 90 %% intervals")
    options = parser.parse_args()
    if options.intervals:
        intervals.coverage(models=6 if options.quick else 30)
        return
    seeds = 3 if options.quick else options.seeds
    table(seeds, SIZES[:3] if options.quick else SIZES, RANKS, rivals.has_stepmix())


if __name__ == "__main__":
    main()
