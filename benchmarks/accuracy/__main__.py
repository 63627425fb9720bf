"""Errors of the joint estimated from records, in the paper's set-up (N = 5, I = 10).

``python -m benchmarks.accuracy`` (``make bench-accuracy``) prints, for every rank, sample size and
share of missing cells: RMS relative error of our default, of maximum likelihood started at the
truth, of oracle MLE (which sees the hidden class), of empirical MLE (complete records counted), of
independence, of StepMix where it is installed (its column up to 10,000 records), and the Cramer-Rao
bound. ``--quick`` takes few seeds, ``--most`` leaves large samples out; ``--intervals`` checks the
coverage of 90 % intervals instead, ``--ranks`` the rank that is found by itself, ``--true-ranks``
that of models of 3 to 25 classes, ``--untold`` errors and intervals with the rank not told; the
seeds of these two begin with ``--first``.
Finished cells are kept in a file, so that a run resumes.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
from benchmarks.accuracy import intervals, ranks, rivals, untold
from benchmarks.accuracy.rivals import Array
from benchmarks.models import cramer_rao, random_pmf

import rejoint as rj

LEVELS = [10] * 5
RANKS = (5, 10, 15)
SIZES = (1_000, 10_000, 100_000, 1_000_000)
COLUMNS = ("default", "ML from truth", "oracle", "empirical", "independence", "StepMix", "bound")


STORE = Path("benchmarks/results/accuracy.json")

Cells = dict[str, dict[str, float]]


def make_data(
    rank: int, size: int, missing: float, seed: int
) -> tuple[rj.LowRankPMF, Array, rj.Records]:
    """A random model, and records of it with their hidden classes."""
    rng = np.random.default_rng(seed)
    truth = random_pmf(LEVELS, rank, rng)
    classes, data = rivals.draw(truth, size, rng)
    if missing:
        data = rj.datasets.remove_cells(data, missing, random_state=rng)
    return truth, classes, data


def one_model(rank: int, size: int, missing: float, seed: int) -> dict[str, float]:
    """Errors of all estimators but StepMix on one random model, and the time of ours."""
    truth, classes, data = make_data(rank, size, missing, seed)
    begun = time.perf_counter()
    result = rj.estimate(data, rank=rank, random_state=seed)
    seconds = time.perf_counter() - begun
    found = {
        "default": result.pmf.to_dense(),
        "ML from truth": rj.estimate(data, rank, "ml", start=truth).pmf.to_dense(),
        "oracle": rivals.oracle(truth, data, classes),
        "empirical": rivals.empirical(data),
        "independence": rivals.independence(data),
    }
    bound = {"bound": cramer_rao(truth, size, missing), "seconds": seconds}
    return {k: error(truth, v) for k, v in found.items()} | bound


def stepmix(rank: int, size: int, missing: float, seed: int) -> dict[str, float]:
    """Error of StepMix on the same records; its own cell, because it takes most of the time."""
    truth, _, data = make_data(rank, size, missing, seed)
    return {"StepMix": error(truth, rivals.stepmix(data, rank, seed))}


def error(truth: rj.LowRankPMF, found: Array) -> float:
    """Relative error of the dense joint."""
    dense = truth.to_dense()
    return float(np.linalg.norm(found - dense) / np.linalg.norm(dense))


def fill(cells: Cells, store: Path, seeds: int, sizes: Sequence[int]) -> None:
    """Run what the store lacks, largest samples first."""
    jobs = [("", one_model, size) for size in reversed(sizes)]
    if rivals.has_stepmix():
        jobs += [("StepMix|", stepmix, size) for size in sizes if size <= 10_000]
    for (title, job, size), missing, rank, seed in product(jobs, (0.0, 0.2), RANKS, range(seeds)):
        key = f"{title}{rank}|{size}|{missing}|{seed}"
        if key not in cells:
            print(f"rank {rank}, {size:,} records, {title}seed {seed} ...", file=sys.stderr)
            cells[key] = job(rank, size, missing, seed)
            store.parent.mkdir(parents=True, exist_ok=True)
            store.write_text(json.dumps(cells, indent=0))


def table(cells: Cells, seeds: int, sizes: Sequence[int]) -> None:
    """Print the table of RMS errors."""
    print("rank  records   missing  " + "".join(f"{name:>15}" for name in COLUMNS) + "  seconds")
    for missing, rank, size in product((0.0, 0.2), RANKS, sizes):
        keys = [f"{rank}|{size}|{missing}|{seed}" for seed in range(seeds)]
        rows = [cells[k] | cells.get(f"StepMix|{k}", {}) for k in keys if k in cells]
        if not rows:
            continue
        rms = {k: np.sqrt(np.mean([r[k] ** 2 for r in rows if k in r])) for k in rows[0]}
        shown = [f"{rms[k]:15.4f}" if k in rms else f"{'':>15}" for k in COLUMNS]
        seconds = np.mean([r["seconds"] for r in rows])
        print(f"{rank:4} {size:8,} {missing:8.0%}   {''.join(shown)} {seconds:8.1f}", flush=True)


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="three seeds, up to 100,000 records")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="largest number of records")
    parser.add_argument("--intervals", action="store_true", help="coverage of 90 %% intervals")
    parser.add_argument("--ranks", action="store_true", help="the rank that is found by itself")
    parser.add_argument("--true-ranks", action="store_true", help="the same, ranks 3 to 25")
    parser.add_argument("--untold", action="store_true", help="errors with the rank not told")
    parser.add_argument("--first", type=int, default=0, help="first seed of ranks and untold")
    parser.add_argument("--store", type=Path, default=STORE, help="where finished cells are kept")
    parser.add_argument("--show", action="store_true", help="only print what is in the store")
    options = parser.parse_args()
    if options.intervals:
        intervals.coverage(models=6 if options.quick else 30)
        return
    if options.ranks:
        ranks.found_ranks(models=3 if options.quick else 20)
        return
    if options.true_ranks:
        ranks.true_ranks(options.first, 0.1 if options.quick else 1.0)
        return
    if options.untold:
        untold.untold(options.first, 1 if options.quick else None)
        return
    seeds = 3 if options.quick else options.seeds
    most = min(options.most, SIZES[2]) if options.quick else options.most
    sizes = [size for size in SIZES if size <= most]
    cells: Cells = json.loads(options.store.read_text()) if options.store.exists() else {}
    if not options.show:
        fill(cells, options.store, seeds, sizes)
    table(cells, seeds, sizes)


if __name__ == "__main__":
    main()
