"""One EM pass over 1e6 x 20 half-missing records, 5 levels, 20 classes, against StepMix.

CPU time of one thread each, all in one run, every contender in a process of its own so that
its peak of memory is its own too. StepMix's iteration is what each further one of a fit costs;
it is measured on fewer rows and scaled, its cost being linear in them (``--full`` uses all).

Then a whole fit of fewer records (10,000 x 10, 4 levels, 5 classes, a fifth missing): CPU time of
StepMix from one random start to its own end, and of ours, from one start and from all its own.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from speed.measures import cpu_time, resident

import rejoint as rj
from rejoint import kernels
from rejoint.kernels.class_passes import numpy_class_pass

ROWS, VARIABLES, LEVELS, RANK = 1_000_000, 20, 5, 20
SAMPLE = 100_000  # rows that StepMix is measured on
TARGET = 150.0  # times less CPU time than StepMix's iteration
MEMORY = 300.0  # MB above the loaded data

FIT_ROWS, FIT_VARIABLES, FIT_LEVELS, FIT_RANK = 10_000, 10, 4, 5

Codes = NDArray[np.int16]
Model = tuple[NDArray[np.float64], NDArray[np.float64]]


def make_codes(rows: int) -> Codes:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, LEVELS, size=(rows, VARIABLES)).astype(np.int16)
    codes[rng.random(codes.shape) < 0.5] = -1
    return codes


def make_model() -> Model:
    rng = np.random.default_rng(1)
    factors = [rng.dirichlet(np.ones(LEVELS), size=RANK).T for _ in range(VARIABLES)]
    return rng.dirichlet(np.ones(RANK)), np.concatenate(factors)


def compiled(codes: Codes) -> float:
    weights, factors = make_model()
    levels = [LEVELS] * VARIABLES
    return cpu_time(lambda: kernels.class_pass(codes, None, weights, factors, levels, 1), 7)


def twin(codes: Codes) -> float:
    weights, factors = make_model()
    levels = [LEVELS] * VARIABLES
    return cpu_time(lambda: numpy_class_pass(codes, None, weights, factors, levels), 2)


def stepmix(table: NDArray[np.float64]) -> float:
    """Cost of an iteration: of a fit of four, less that of a fit of one, a third."""
    import warnings

    from stepmix import StepMix

    warnings.simplefilter("ignore")  # fits this short do not converge

    def fit(iterations: int) -> object:
        model = StepMix(
            n_components=RANK,
            measurement="categorical_nan",
            max_iter=iterations,
            abs_tol=0.0,
            progress_bar=0,
            random_state=0,
        )
        return model.fit(table)

    return (cpu_time(lambda: fit(4), 1) - cpu_time(lambda: fit(1), 1)) / 3


def make_records() -> rj.Records:
    """Records of a random model, for whole fits."""
    rng = np.random.default_rng(2)
    columns = [rng.dirichlet(np.ones(FIT_LEVELS), size=FIT_RANK).T for _ in range(FIT_VARIABLES)]
    truth = rj.LowRankPMF(rng.dirichlet(np.full(FIT_RANK, 5.0)), columns)
    complete = truth.sample(FIT_ROWS, random_state=rng)
    return rj.datasets.remove_cells(complete, 0.2, random_state=rng)


def our_fit(records: rj.Records, starts: int | None = None) -> tuple[float, float]:
    """CPU seconds and log-likelihood of a fit, by default with all its starts."""
    start = time.process_time()
    result = rj.estimate(records, FIT_RANK, "ml", n_init=starts, random_state=0)
    return time.process_time() - start, result.log_likelihood


def stepmix_fit(records: rj.Records) -> tuple[float, float]:
    """CPU seconds and log-likelihood of a fit from one start, to where it ends by default."""
    import warnings

    from stepmix import StepMix

    warnings.simplefilter("ignore")  # it may end at its limit of iterations
    table = np.where(records.codes < 0, np.nan, records.codes)
    options = {"n_components": FIT_RANK, "measurement": "categorical_nan", "progress_bar": 0}
    start = time.process_time()
    model = StepMix(**options, random_state=0).fit(table)
    return time.process_time() - start, float(model.score(table)) * len(table)


CONTENDERS: dict[str, Callable[..., float]] = {
    "compiled": compiled,
    "int8": compiled,
    "twin": twin,
    "stepmix": stepmix,
}
FITS: dict[str, Callable[[rj.Records], tuple[float, float]]] = {
    "rejoint, one start": lambda records: our_fit(records, 1),
    "rejoint, all its starts": our_fit,
    "StepMix, one start": stepmix_fit,
}


def run_child(name: str, file: str) -> None:
    """Print CPU seconds of a pass, and the peak of memory above that with the data loaded.

    Of a whole fit: CPU seconds and log-likelihood.
    """
    if name in FITS:
        if hasattr(os, "sched_setaffinity"):  # one processor, so that ours takes one thread
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        print(json.dumps(FITS[name](make_records())))
        return
    if name == "stepmix":
        importlib.import_module(name)  # its modules are not to count
    table = np.load(file)
    before = resident("VmRSS")
    seconds = CONTENDERS[name](table)
    print(json.dumps([seconds, resident("VmHWM") - before]))


def measure(name: str, rows: int) -> tuple[float, float]:
    table: NDArray[np.int8] | NDArray[np.int16] | NDArray[np.float64] = make_codes(rows)
    if name == "int8":
        table = table.astype(np.int8)
    if name == "stepmix":
        table = np.where(table < 0, np.nan, table)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, "table.npy"))
        np.save(file, table)
        return ask_child(name, file)


def ask_child(name: str, file: str = "") -> tuple[float, float]:
    """The two numbers that a process of its own prints."""
    single = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    child = subprocess.run(
        [sys.executable, __file__, "--child", name, "--file", file],
        env=os.environ | dict.fromkeys(single, "1"),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    first, second = json.loads(child.stdout.splitlines()[-1])
    return first, second


def compare_fits() -> bool:
    """Print times of whole fits; whether ours ends with no lower likelihood."""
    print(
        f"fit of {FIT_ROWS:,} x {FIT_VARIABLES}, {FIT_LEVELS} levels, {FIT_RANK} classes, a fifth "
        "missing: CPU time, one thread, and log-likelihood"
    )
    found = {name: ask_child(name) for name in FITS}
    (single, _), (_, reached), (_, goal) = found.values()
    for name, (seconds, value) in found.items():
        print(f"  {name:<28}{seconds:9.3f} s {seconds / single:8.1f} x {value:16,.2f}")
    good = reached >= goal - 0.01
    print(f"  no lower likelihood: {'met' if good else 'MISSED'}")
    return good


def report(name: str, seconds: float, peak: float, ours: float, remark: str = "") -> None:
    print(f"  {name:<28}{seconds:9.3f} s {seconds / ours:8.1f} x {peak:9.0f} MB  {remark}")


def main(full: bool) -> int:
    print(
        f"one pass over {ROWS:,} x {VARIABLES}, {LEVELS} levels, {RANK} classes, half missing: "
        "CPU time, one thread, and peak of memory above the loaded data"
    )
    ours, ours_peak = measure("compiled", ROWS)
    report(f"rejoint ({kernels.backend})", ours, ours_peak, ours)
    report(f"rejoint ({kernels.backend}), int8", *measure("int8", ROWS), ours)
    report("rejoint (NumPy twin)", *measure("twin", ROWS), ours)
    good = not ours_peak > MEMORY
    print(f"  target: at most {MEMORY:g} MB: {ours_peak:.0f}, {'met' if good else 'MISSED'}")
    if importlib.util.find_spec("stepmix") is None:
        print("  StepMix is not installed (pip install 'rejoint[bench]'): not compared")
        return 0 if good else 1
    rows = ROWS if full else SAMPLE
    seconds, peak = measure("stepmix", rows)
    remark = "" if full else f"(measured on {rows:,} rows, times {ROWS // rows})"
    seconds, peak = seconds * ROWS / rows, peak * ROWS / rows
    report("StepMix, one iteration", seconds, peak, ours, remark)
    ratio = seconds / ours
    met = ratio >= TARGET
    print(f"  target: {TARGET:g} times faster: {ratio:.0f}, {'met' if met else 'MISSED'}")
    good = compare_fits() and good
    return 0 if good and (met or kernels.backend == "numpy") else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="measure StepMix on all rows")
    parser.add_argument("--child", choices=[*CONTENDERS, *FITS], help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_child(options.child, options.file)
    else:
        sys.exit(main(options.full))
