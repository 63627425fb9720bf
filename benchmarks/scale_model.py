"""What a pass of EM costs as data grow: measured, fitted, and put forward to a billion records.

    python benchmarks/scale_model.py --save

1. CPU seconds of a pass for some numbers of records, variables and classes, and of reading packed
   codes; a model with five terms is fitted to them and held against a larger case that it has not
   seen.
2. Seconds of a pass on Dask clusters of one and of two workers of this machine, in turns, over
   records that matter and over next to none: what is left then is the cost of tasks.
3. From both, what 1e9 records x 100 variables would take. Wall-clock times depend on who else uses
   the machine: the load is told beside them.
"""

import argparse
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

import rejoint as rj
from rejoint import kernels
from rejoint.estimation.data import expect_part
from rejoint.model import Model

RESULT = Path(__file__).parent / "results" / "scale_model.json"
LEVELS, MISSING = 5, 0.2
GRID = [(m, n, f) for m in (100_000, 400_000) for n in (10, 30, 100) for f in (4, 10, 20)]
HELD_OUT = (1_200_000, 60, 16)
BIG_FILE = (82e6, 20, 8)  # of benchmarks/big_file.py
FAR = (1e9, 100, 20)

Array = NDArray[np.float64]


def records_of(rows: int, variables: int) -> rj.Records:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, LEVELS, (rows, variables)).astype(np.int16)
    codes[rng.random(codes.shape) < MISSING] = -1
    return rj.Records(rj.Domain.of_shape([LEVELS] * variables), codes)


def model_of(variables: int, rank: int) -> Model:
    rng = np.random.default_rng(1)
    columns = rng.dirichlet(np.ones(LEVELS), (variables, rank)).transpose(0, 2, 1)
    return Model.of(np.full(rank, 1.0 / rank), columns)


def best(function: Callable[[], Any], clock: Callable[[], float], turns: int = 5) -> float:
    times = []
    for _ in range(turns):
        begun = clock()
        function()
        times.append(clock() - begun)
    return min(times)


def pass_seconds(rows: int, variables: int, rank: int) -> float:
    records, model = records_of(rows, variables), model_of(variables, rank)
    look = partial(expect_part, records, model, threads=1)
    return best(look, time.process_time)


def terms(case: tuple[float, float, float]) -> Array:
    """Records, cells, records x classes, cells x classes: what a pass goes through."""
    m, n, f = case
    return np.array([1.0, m, m * n, m * f, m * n * f])


def fitted(cases: list[tuple[int, int, int]], seconds: list[float]) -> Array:
    """Coefficients, none below zero, of the least relative errors."""
    rows = np.array([terms(case) / t for case, t in zip(cases, seconds, strict=True)])
    scale = rows.max(axis=0)
    found: Array = nnls(rows / scale, np.ones(len(rows)))[0] / scale
    return found


def read_rate() -> float:
    """Cells of packed codes a second of CPU, from the file's cache."""
    records = records_of(400_000, 50)
    with tempfile.TemporaryDirectory() as folder:
        packed = rj.scan(records).pack(folder)
        seconds = best(lambda: sum(map(len, packed)), time.process_time)
    return records.codes.size / seconds


def cluster_seconds(turns: int = 11) -> dict[str, Any]:
    """Wall-clock seconds of passes on clusters of one and of two workers, in turns."""
    from distributed import Client, LocalCluster

    warnings.filterwarnings("ignore", message="Sending large graph")
    options: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": ":0"}
    found: dict[str, list[float]] = {
        f"{kind} {n}": [] for kind in ("work", "tasks") for n in (1, 2)
    }
    with ExitStack() as stack:
        passes = {}
        for workers in (1, 2):
            cluster = stack.enter_context(LocalCluster(n_workers=workers, **options))
            client = stack.enter_context(Client(cluster))
            client.wait_for_workers(workers)
            passes[f"work {workers}"] = cluster_pass(client, 1_600_000, 8, 100)
            passes[f"tasks {workers}"] = cluster_pass(client, 6400, 64, 20)
        for _ in range(turns):
            for name, function in passes.items():
                found[name].append(best(function, time.perf_counter, 1))
    seconds = {name: float(np.median(times)) for name, times in found.items()}
    gains = np.divide(found["work 1"], found["work 2"])
    return {
        **seconds,
        "gain": np.quantile(gains, [0.25, 0.5, 0.75]).tolist(),
        "load": os.getloadavg()[0],
    }


def cluster_pass(client: Any, rows: int, parts: int, rank: int) -> Callable[[], Any]:
    """A pass over records that are on a cluster."""
    import dask.array

    records, model = records_of(rows, 20), model_of(20, rank)
    codes = np.where(records.codes < 0, np.nan, records.codes)
    data = dask.array.from_array(codes, chunks=(rows // parts, 20))
    scan = rj.distributed.scan(data, domain=records.domain, client=client)
    look = partial(expect_part, model=model, threads=1)
    return lambda: list(scan.map(look))


def forecast(costs: Array, rate: float, task: float, workers: int) -> dict[str, float]:
    """Seconds of a pass over the far case, and bytes that move for it."""
    rows, variables, rank = FAR
    parts = max(4 * workers, 1000)
    model = 8.0 * (1 + LEVELS * variables) * rank
    return {
        "workers": workers,
        "computing": float(terms(FAR) @ costs) / workers,
        "tasks": task * parts,
        "bytes_to_workers": model * workers,
        "bytes_between_workers": model * parts,
        "bytes_to_client": model * np.ceil(parts / rj.distributed.GROUP),
        "memory_of_a_worker": rows * variables / workers,
        "reading_anew": rows * variables / rate / workers,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--cluster", action="store_true", help="no more than the clusters")
    given = parser.parse_args()
    if given.cluster:
        print(json.dumps(cluster_seconds()))
        return
    print(f"Kernels: {kernels.backend}; load {os.getloadavg()[0]:.1f}")
    seconds = [pass_seconds(*case) for case in GRID]
    costs = fitted(GRID, seconds)
    guesses = [float(terms(case) @ costs) for case in GRID]
    errors = [guess / t - 1.0 for guess, t in zip(guesses, seconds, strict=True)]
    for case, t, error in zip(GRID, seconds, errors, strict=True):
        print("{:9,} x {:4} F {:3}".format(*case), f"{t:8.4f} s {error:+6.0%}")
    held = pass_seconds(*HELD_OUT)
    guess = float(terms(HELD_OUT) @ costs)
    print("Not fitted: {:,} x {} F {}".format(*HELD_OUT), f"{held:.3f} s, foretold {guess:.3f} s")
    rate = read_rate()
    print(f"Packed codes: {rate / 1e6:.0f} million cells a second")
    big = float(terms(BIG_FILE) @ costs) + BIG_FILE[0] * BIG_FILE[1] / rate
    print("{:,.0f} x {} F {}, packed:".format(*BIG_FILE), f"{big:.1f} s a pass foretold")
    cluster = cluster_seconds()
    print("Clusters, medians of passes in turns:", json.dumps(cluster))
    task = cluster["tasks 2"] / (64 + 64 / rj.distributed.GROUP + 1)
    far = [forecast(costs, rate, task, workers) for workers in (1, 16, 128)]
    for line in far:
        print(json.dumps({key: float(f"{value:.3g}") for key, value in line.items()}))
    if given.save:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(
            json.dumps(
                {
                    "grid": [[*case, t] for case, t in zip(GRID, seconds, strict=True)],
                    "costs": costs.tolist(),
                    "errors": errors,
                    "held_out": {"case": HELD_OUT, "seconds": held, "foretold": guess},
                    "cells_read_a_second": rate,
                    "cluster": cluster,
                    "seconds_of_a_task": task,
                    "forecast": far,
                },
                indent=1,
            )
            + "\n"
        )


if __name__ == "__main__":
    main()
