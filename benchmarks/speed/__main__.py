"""Every hot path beside its NumPy twin, the peer that one would take, and the machine's limit.

CPU time of one thread, least of some turns; each contender has a process of its own, whose peak of
memory above the loaded data is told beside it. GEMM rate and memory bandwidth are measured in the
same run. Then how cost grows, how two threads fare, and what starting costs. Results go to
benchmarks/results/speed.json, the growth to speed.svg beside it.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.speed import growth, paths
from benchmarks.speed.measures import Rates, cpu_time, forget_peak, gemm_rate, resident

from rejoint import kernels

RESULTS = Path(__file__).parents[1] / "results"
SINGLE = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
QUOTED = 11.0  # seconds of CPU of an iteration of poLCA on the sparse records, measured elsewhere


def child(path: str, contender: str) -> None:
    """Print CPU seconds, and the peak of memory above that with the data loaded."""
    forget_peak()
    bare = resident("VmRSS")
    function, scale = paths.PATHS[path].contenders[contender]()
    set_up = resident("VmHWM") - bare
    forget_peak()
    before = resident("VmRSS")
    # A contender that has measured itself while it was set up returns the seconds.
    begun = time.process_time()
    first = function()
    if isinstance(first, float):
        print(json.dumps([first * scale, set_up]))
        return
    turns = min(max(int(1.0 / max(time.process_time() - begun, 1e-3)), 3), 50)
    print(json.dumps([cpu_time(function, turns) * scale, resident("VmHWM") - before]))


def ask(path: str, contender: str, **environment: str) -> tuple[float, float]:
    """The two numbers that a process of its own prints."""
    command = [sys.executable, "-m", "benchmarks.speed", "--child", path, contender]
    done = subprocess.run(
        command,
        env=os.environ | SINGLE | environment,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    seconds, peak = json.loads(done.stdout.splitlines()[-1])
    return seconds, peak


def compare(name: str, rates: Rates) -> dict[str, Any]:
    """Print one path, and return what was printed."""
    path = paths.PATHS[name]
    print(f"{name}: {path.title}")
    found: dict[str, list[float]] = {}
    for contender in path.contenders:
        if contender == "StepMix" and importlib.util.find_spec("stepmix") is None:
            print("  StepMix is not installed (pip install 'rejoint[bench]'): not compared")
            continue
        found[contender] = list(ask(name, contender))
        if contender == "rejoint" and kernels.backend == "native":
            found["NumPy twin"] = list(ask(name, contender, REJOINT_KERNELS="numpy"))
    least = path.limit(rates)
    ours = found["rejoint"][0]
    for contender, (seconds, peak) in found.items():
        print(f"  {contender:<26}{seconds:10.4f} s {seconds / ours:9.2f} x {peak:7.0f} MB")
    if name == "sparse pass":
        print(f"  {'poLCA (quoted)':<26}{QUOTED:10.4f} s {QUOTED / ours:9.2f} x")
    print(f"  {'limit':<26}{least:10.4f} s {least / ours:9.2f} x          ({path.limited_by})")
    known = {rival: seconds for rival, (seconds, _) in found.items()} | {"limit": least}
    for rival, times in path.targets:
        if rival not in known:
            continue
        ratio = known[rival] / ours
        verdict = "met" if ratio >= times else "MISSED"
        print(f"  target: {times:g} times {rival}: {ratio:.2f}, {verdict}")
    return {"title": path.title, "contenders": found, "limit": least, "by": path.limited_by}


def two_threads() -> dict[str, float]:
    """CPU and wall time of a pass on one thread and on two."""
    codes, parts = paths.make_codes(), paths.model(paths.make_pmf())
    found: dict[str, float] = {}
    for threads in (1, 2):
        best = [float("inf"), float("inf")]
        for _ in range(5):
            cpu, wall = time.process_time(), time.perf_counter()
            kernels.class_pass(codes, None, *parts, threads)
            spent = [time.process_time() - cpu, time.perf_counter() - wall]
            best = [min(a, b) for a, b in zip(best, spent, strict=True)]
        found[f"cpu_{threads}"], found[f"wall_{threads}"] = best
    found["load"] = os.getloadavg()[0]
    more, gain = found["cpu_2"] / found["cpu_1"], found["wall_1"] / found["wall_2"]
    print(
        f"two threads on the EM pass: {more:.2f} times the CPU time of one, {gain:.2f} times as "
        f"quick by the clock, at a load of {found['load']:.1f}"
    )
    return found


def starting() -> dict[str, float]:
    """CPU seconds of importing the package, and of the command's help."""
    found = {}
    for name, arguments in {
        "python -c pass": ["-c", "pass"],
        "import rejoint": ["-c", "import rejoint"],
        "rejoint --help": ["-m", "rejoint.cli", "--help"],
    }.items():
        best = float("inf")
        for _ in range(3):
            before = os.times()
            subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
            after = os.times()
            spent = after.children_user + after.children_system
            best = min(best, spent - before.children_user - before.children_system)
        found[name] = best
    print("starting: " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in found.items()))
    return found


def grow() -> list[dict[str, Any]]:
    """Print all slopes."""
    print("growth: slope of CPU time, and that of theory")
    curves = []
    for path, names in growth.GRID.items():
        for name in names:
            found = growth.curve(path, name)
            curves.append(found)
            theory = "" if found["theory"] is None else f"   theory {found['theory']:g}"
            sizes = f"{found['sizes'][0]:,} .. {found['sizes'][-1]:,}"
            print(f"  {path:<14}{name}  {sizes:<22}{found['slope']:6.2f}{theory}")
    return curves


def draw(curves: list[dict[str, Any]], file: Path) -> None:
    """Cost against size, a panel for each of M, N, I, F."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 4, figsize=(11, 3.4), sharey=True, layout="constrained")
    words = {"M": "records", "N": "variables", "I": "levels", "F": "classes"}
    colours = {path: f"C{k}" for k, path in enumerate(growth.GRID)}
    for axis, (name, title) in zip(axes, words.items(), strict=True):
        for found in curves:
            if found["in"] == name:
                colour, sizes, seconds = colours[found["path"]], found["sizes"], found["seconds"]
                axis.loglog(sizes, seconds, "o-", color=colour, ms=4)
                above = {"xytext": (-2, 5), "textcoords": "offset points", "ha": "right"}
                slope, last = f"{found['slope']:.2f}", (sizes[-1], seconds[-1])
                axis.annotate(slope, last, color=colour, fontsize=8, **above)
        axis.set(xlabel=title, ylabel="CPU seconds" if name == "M" else "")
        axis.xaxis.set_minor_formatter("")
        if name in "IF":  # too few powers of ten
            ticks = sorted({size for c in curves if c["in"] == name for size in c["sizes"]})
            axis.set_xticks(ticks, map(str, ticks))
        axis.grid(alpha=0.3)
        axis.margins(y=0.12)
    lines = [pyplot.Line2D([], [], color=colour, marker="o", ms=4) for colour in colours.values()]
    figure.legend(lines, colours, loc="outside lower center", ncols=len(colours), fontsize=9)
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)


def main(chosen: list[str], quick: bool) -> None:
    rates = Rates.measured()
    print(
        f"one thread: GEMM {rates.gemm / 1e9:.1f} Gflop/s in float64 and "
        f"{gemm_rate(np.float32) / 1e9:.1f} in float32; copies {rates.wide / 1e9:.1f} GB/s; "
        f"kernels: {kernels.backend}"
    )
    results: dict[str, Any] = {"rates": rates._asdict(), "backend": kernels.backend}
    results["paths"] = {name: compare(name, rates) for name in chosen or paths.PATHS}
    if not chosen:
        results["threads"], results["starting"] = two_threads(), starting()
    if not chosen and not quick:
        results["growth"] = grow()
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "speed.json").write_text(json.dumps(results, indent=1))
        if importlib.util.find_spec("matplotlib") is not None:
            draw(results["growth"], RESULTS / "speed.svg")
        print(f"written to {RESULTS.name}/speed.json and speed.svg")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", help=f"some of: {', '.join(paths.PATHS)}")
    parser.add_argument("--quick", action="store_true", help="without the growth")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
    else:
        main(options.paths, options.quick)
