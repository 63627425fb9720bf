"""Joints from nothing but tables: rejoint beside IPF, ipfn and mbi, in one run.

    python -m benchmarks.tables_only [--only random|named|"low rank"|real] [--sets 50]
        [--methods rejoint,ipf] [--case TEXT] [--splits 1] [--seconds 60] [-o results.json]

Parts: 50 random sets of tables of joints of no low rank (trees, cycles, stars, triangles, pairs,
triples, mixed; exact, sampled, rounded, suppressed, with a row of zeros); named cases; exact
triples of low-rank models; and tables of one half of real records, judged by the other half.
Columns: the worst distance to a given table (in total variation, beyond what rounding and
suppression leave open), the mean distance to unpublished tables of four variables, CPU seconds of
the fit.
"""

import argparse
import json
import math
import signal
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import FrameType

from benchmarks.tables_only import cases
from benchmarks.tables_only.cases import Case, Make
from benchmarks.tables_only.methods import DENSE, METHODS, MOST_CELLS, available
from benchmarks.tables_only.verdicts import Line, judge, verdicts

PARTS = ("random", "named", "low rank", "real")


class OutOfTimeError(BaseException):
    """A method used up its CPU seconds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=PARTS, help="parts to run; all")
    parser.add_argument("--sets", type=int, default=50, help="random sets")
    parser.add_argument("--first", type=int, default=0, help="number of the first random set")
    parser.add_argument("--case", default="", help="only cases whose name or kind has this text")
    parser.add_argument("--methods", default=",".join(available()))
    parser.add_argument("--splits", type=int, default=1, help="random halves of each real set")
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU limit of a fit")
    parser.add_argument("-o", "--output", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # what tables leave open is not the subject here
    signal.signal(signal.SIGPROF, _stop)
    methods = args.methods.split(",")
    _warm_up(methods)
    print(f"    {'method':12} {'given':>9}  {'held-out':>8}  {'CPU':>8}")
    lines: list[Line] = []
    for part in args.only or PARTS:
        for case in _cases(part, args):
            print(
                f"{part}: {case.name} ({case.published}; {len(case.tables)} tables, "
                f"{case.cells:,} cells)"
            )
            for method in methods:
                line = run(case, method, args.seconds)
                print(line, flush=True)
                lines.append(line)
    print()
    for text in verdicts(lines):
        print(text)
    if args.output:
        args.output.write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n")


def _cases(part: str, args: argparse.Namespace) -> Iterator[Case]:
    for name, make in _makers(part, args):
        # A set of real records is long to read; random ones say their kind only when made.
        if part == "random" or args.case in name:
            case = make()
            if args.case in f"{case.name} {case.published}":
                yield case


def _makers(part: str, args: argparse.Namespace) -> Iterator[tuple[str, Make]]:
    if part == "random":
        for seed in range(args.first, args.first + args.sets):
            yield str(seed), partial(cases.random_set, seed)
    elif part == "named":
        yield from cases.named()
    elif part == "low rank":
        yield from cases.low_rank()
    else:
        yield from cases.real(args.splits)


def run(case: Case, method: str, seconds: float) -> Line:
    line = {"part": case.part, "case": case.name, "published": case.published, "method": method}
    if method in DENSE and case.cells > MOST_CELLS:
        return Line(**line, failure=f"cannot: {case.cells:,} cells")
    signal.setitimer(signal.ITIMER_PROF, seconds)
    began = time.process_time()
    try:
        marginal = METHODS[method](case.tables)
        cpu = time.process_time() - began
    except OutOfTimeError:
        return Line(**line, failure=f"no answer in {seconds:g} CPU s")
    except Exception as error:  # a method that fails is a line of the comparison
        return Line(**line, failure=f"{type(error).__name__}: {str(error)[:90]}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    found = judge(case, marginal)
    if not math.isfinite(found["given"]):
        return Line(**line, cpu=cpu, failure="not a number")
    return Line(**line, **found, cpu=cpu)


def _warm_up(methods: list[str]) -> None:
    """Imports and compilation of first calls are nobody's cost."""
    case = cases.small("warm-up", (2, 2, 3), [(0, 1), (1, 2), (0, 2)])
    for method in methods:
        run(case, method, 60.0)


def _stop(number: int, frame: FrameType | None) -> None:
    raise OutOfTimeError


if __name__ == "__main__":
    main()
