"""All tables and figures, and the report: ``python -m paper`` (``make paper``).

``--fast`` runs a small part of each and checks it (``make paper-fast``); ``--report`` runs nothing
and builds the report of what is there.
"""

import argparse
import sys
import time
import traceback
from pathlib import Path

from paper import report
from paper.framework import Unavailable, runs
from paper.framework.experiment import RESULTS


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m paper", description=__doc__.splitlines()[0])
    parser.add_argument("--fast", action="store_true", help="a small part of each, checked")
    parser.add_argument("--report", action="store_true", help="only build the report")
    parser.add_argument("--jobs", type=int, help="processes; one a processor by default")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where cells are kept")
    options = parser.parse_args()
    wrong, began = 0, time.monotonic()
    every = [] if options.report else report.experiments()
    lack, wanted = (0, 0) if options.fast else runs.lacking(every, options.results)
    for experiment in every:
        try:
            done = experiment.run(options.results, options.fast, options.jobs)
        except Unavailable as reason:
            print(f"{experiment.name}: left out, {reason}", file=sys.stderr)
            continue
        except ExceptionGroup as failures:  # the others can still be run
            traceback.print_exception(failures)
            wrong += len(failures.exceptions)
            continue
        except KeyboardInterrupt:
            sys.exit(130)
        for line in experiment.expected(done) if options.fast else ():
            print(f"{experiment.name}: {line}")
            wrong += not line.met
    if lack and lack == wanted and not wrong:
        runs.keep(options.results, wanted, time.monotonic() - began, options.jobs)
    if not options.fast:
        report.build(options.results, Path("docs/paper"))
    if wrong:
        sys.exit(f"{wrong} cells failed, or numbers are not as expected.")


if __name__ == "__main__":
    main()
