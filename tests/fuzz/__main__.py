"""Fuzz a reader for a while: ``python -m fuzz models --seconds 600``.

Hypothesis drives the mutations and shrinks what it finds. A find is written to the corpus, which
the tests read again. Memory is held to four gigabytes, so that a file which asks for more is a
find too.
"""

import argparse
import resource
import sys
import time
import warnings
from pathlib import Path

from .readers import READERS
from .search import search

MEMORY = 4 * 2**30


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reader", choices=READERS)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    began = time.monotonic()
    outcomes, find = search(READERS[args.reader], args.seconds, args.seed)
    counts = ", ".join(f"{n:,} {what}" for what, n in outcomes.most_common())
    spent = time.monotonic() - began
    sys.stdout.write(f"{args.reader}: {outcomes.total():,} inputs in {spent:.0f} s: {counts}\n")
    if find is not None:
        folder = Path(__file__).parent / "corpus" / args.reader
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"find_{int(time.time())}"
        path.write_bytes(find.data)
        sys.stderr.write(f"A find, kept in {path}: {find.data[:300]!r}\n")
        raise find.error


if __name__ == "__main__":
    main()
