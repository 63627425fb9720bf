"""Write the goldens anew: ``python tests/goldens/record.py [name ...]``, all of them by default.

Do so only where a result was changed on purpose, for the fits that were meant to change, and say
in the CHANGELOG why; the difference of ``goldens.json`` is part of the change. Compiled kernels are
needed, and one thread of BLAS is best (``OPENBLAS_NUM_THREADS=1``).
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

PLACE = Path(__file__).with_name("goldens.json")


def read():
    """The goldens as they are stored."""
    return json.loads(PLACE.read_text("utf-8")) if PLACE.exists() else {}


def write(found):
    """One line for each number that is kept of a fit, so that differences are easy to read."""
    fits = []
    for name, kept in sorted(found.items()):
        lines = (f"    {json.dumps(key)}: {json.dumps(kept[key])}" for key in sorted(kept))
        fits.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n  }")
    PLACE.write_text("{\n" + ",\n".join(fits) + "\n}\n", "utf-8")


def main(names):
    """Run the fits named and store what they give."""
    from golden_fits import FITS, outcome

    found = {name: kept for name, kept in read().items() if name in FITS}
    for name in names or FITS:
        begun = perf_counter()
        with TemporaryDirectory() as folder:
            found[name] = outcome(name, folder)
        sys.stdout.write(f"{name:32} {perf_counter() - begun:5.2f} s\n")
        sys.stdout.flush()
        write(found)


if __name__ == "__main__":
    main(sys.argv[1:])
