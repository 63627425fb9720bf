"""Counts and EM on a Parquet set that is larger than the memory they may take.

    python benchmarks/big_file.py --gigabytes 5 --folder /path/with/room --save

Records of a random model (20 variables of 5 levels, four of them text, a tenth of the cells
missing) are written as Parquet, uncompressed; numbers in plain encoding, four bytes each, so that
the bytes are there. Each stage is a process of its own, whose peak resident memory is what is held
against 1 GB: finding the levels, counting all pairs, packing the codes, and EM, by passes over the
Parquet files, a few, and over the packed ones until it has converged. By default a small set, to
see that it works.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from models import random_pmf
from speed.measures import resident

import rejoint as rj

VARIABLES, LEVELS, RANK, MISSING, TEXTS = 20, 5, 8, 0.1, 4
ROWS_OF_FILE = 2_000_000
LIMIT = 1e9
RESULT = Path(__file__).parent / "results" / "big_file.json"


def truth() -> rj.LowRankPMF:
    return random_pmf([LEVELS] * VARIABLES, RANK, np.random.default_rng(0))


def write(folder: Path, size: float) -> int:
    """Files of equal size until there are so many bytes; the number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    model, rng, rows, total = truth(), np.random.default_rng(1), 0, 0
    texts = pa.array([f"answer {k}" for k in range(LEVELS)])
    while total < size:
        codes = model.sample(ROWS_OF_FILE, random_state=rng).codes
        columns = {}
        for n in range(VARIABLES):
            gone = rng.random(ROWS_OF_FILE) < MISSING
            column = pa.array(codes[:, n].astype(np.int32), mask=gone)
            columns[f"v{n}"] = texts.take(column) if n < TEXTS else column
        path = folder / f"part-{rows // ROWS_OF_FILE:04d}.parquet"
        pq.write_table(
            pa.table(columns),
            path,
            use_dictionary=[f"v{n}" for n in range(TEXTS)],
            compression="none",
            row_group_size=500_000,
        )
        rows, total = rows + ROWS_OF_FILE, total + path.stat().st_size
    return rows


def domain_of(folder: Path) -> rj.Domain:
    return rj.Domain.from_json(json.loads((folder / "domain.json").read_text()))


def scan_of(folder: Path) -> rj.Scan:
    return rj.scan(folder / "parquet", domain=domain_of(folder))


def find_levels(folder: Path, passes: int) -> dict[str, Any]:
    found = rj.scan(folder / "parquet").domain
    (folder / "domain.json").write_text(json.dumps(found.to_json()))
    return {"levels": sum(found.shape)}


def count(folder: Path, passes: int) -> dict[str, Any]:
    tables = rj.Marginals.count(scan_of(folder), order=2)
    return {"records": float(tables.totals.max())}


def pack(folder: Path, passes: int) -> dict[str, Any]:
    found = scan_of(folder).pack(folder / "packed")
    return {"rows": found.rows}


def em_from_parquet(folder: Path, passes: int) -> dict[str, Any]:
    from rejoint.estimation import Em
    from rejoint.solver import Limits

    solver = Em(limits=Limits(max_steps=passes, progress=1e-12, window=10, exact=-1.0))
    return em(scan_of(folder), solver, folder / "parquet.checkpoint")


def em_from_pack(folder: Path, passes: int) -> dict[str, Any]:
    return em(rj.scan(folder / "packed"), "ml", folder / "packed.checkpoint")


def em(scan: rj.Scan, solver: Any, checkpoint: Path) -> dict[str, Any]:
    result = rj.estimate(
        scan, RANK, solver, n_init=3, random_state=0, checkpoint=checkpoint, progress=False
    )
    model = truth()
    error = [
        0.5 * np.abs(result.pmf.marginal(pair) - model.marginal(names)).sum()
        for pair, names in ((["v0", "v19"], ["x0", "x19"]), (["v5", "v6"], ["x5", "x6"]))
    ]
    steps = [r.seconds for r in result.history]
    return {
        "steps": len(steps) - 1,
        "stop": result.stop,
        "seconds_of_a_step": float(np.median(np.diff(steps))) if len(steps) > 1 else None,
        "log_likelihood": result.log_likelihood,
        "largest_distance_of_pairs": max(error),
    }


STAGES = {
    "levels": find_levels,
    "pairs": count,
    "EM, Parquet": em_from_parquet,
    "pack": pack,
    "EM, packed": em_from_pack,
}


def measured(stage: str, folder: Path, passes: int) -> dict[str, Any]:
    """Run a stage in a process of its own."""
    command = [sys.executable, __file__, "--stage", stage, "--folder", str(folder)]
    done = subprocess.run(
        [*command, "--passes", str(passes)], check=True, capture_output=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def run_stage(stage: str, folder: Path, passes: int) -> None:
    begun = time.perf_counter()
    found = STAGES[stage](folder, passes)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    found |= {
        "wall": time.perf_counter() - begun,
        "cpu": usage.ru_utime + usage.ru_stime,
        # Not by getrusage, whose maximum is also that of the process that began this one.
        "peak": 2**20 * resident("VmHWM"),
    }
    print(json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=0.1)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--passes", type=int, default=3, help="over the Parquet files")
    parser.add_argument("--save", action="store_true", help=f"keep the numbers in {RESULT.name}")
    parser.add_argument("--stage", choices=STAGES)
    given = parser.parse_args()
    if given.stage:
        run_stage(given.stage, given.folder, given.passes)
        return
    folder = Path(tempfile.mkdtemp(prefix="rejoint-big-", dir=given.folder))
    try:
        (folder / "parquet").mkdir()
        rows = write(folder / "parquet", given.gigabytes * 1e9)
        size = sum(path.stat().st_size for path in (folder / "parquet").iterdir())
        print(f"{size / 1e9:.2f} GB of Parquet, {rows:,} records x {VARIABLES} variables")
        print(f"{'stage':12} {'wall s':>8} {'CPU s':>8} {'peak MB':>8}")
        results: dict[str, Any] = {
            "bytes": size,
            "rows": rows,
            "variables": VARIABLES,
            "rank": RANK,
        }
        for stage in STAGES:
            found = results[stage] = measured(stage, folder, given.passes)
            print(
                f"{stage:12} {found['wall']:8.1f} {found['cpu']:8.1f} {found['peak'] / 1e6:8.0f}  "
                + ", ".join(
                    f"{k} {v}" for k, v in found.items() if k not in ("wall", "cpu", "peak")
                ),
                flush=True,
            )
        worst = max(results[stage]["peak"] for stage in STAGES)
        results["load"] = os.getloadavg()
        print(f"Peak memory {worst / 1e6:.0f} MB: {'within' if worst < LIMIT else 'ABOVE'} 1 GB")
        if given.save:
            RESULT.parent.mkdir(exist_ok=True)
            RESULT.write_text(json.dumps(results, indent=1) + "\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
