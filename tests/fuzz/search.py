"""Search for inputs that a reader cannot cope with."""

import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

SLOW = 20.0  # seconds of computing that no small input may take
BATCH = 100


class Find(NamedTuple):
    """An input and the error that it caused."""

    data: bytes
    error: BaseException


class Slow(AssertionError):
    """An input took too long."""


def check(reader, data):
    """Read an input in a folder of its own; return what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        outcome = reader.check(data, Path(folder))
        if (spent := time.process_time() - began) > SLOW:
            raise Slow(f"{outcome} took {spent:.0f} s")
    return outcome


def search(reader, seconds, first_seed=0, most=None):
    """Return what came of mutated inputs, and the smallest find if there is one."""
    outcomes, last = Counter(), b""
    end = time.monotonic() + seconds

    def attempt(rng):
        nonlocal last
        data = reader.make(rng)
        if time.monotonic() < end or last == data:  # a find is tried again when time is over
            last = data
            outcomes[check(reader, data)] += 1

    batch = 0
    while time.monotonic() < end and (most is None or outcomes.total() < most):
        test = given(st.randoms(use_true_random=False))(attempt)
        test = settings(
            max_examples=most or BATCH,
            database=None,
            deadline=None,
            report_multiple_bugs=False,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )(test)
        try:
            seed(first_seed * 1_000_000 + batch)(test)()
        except Exception as error:
            return outcomes, Find(last, error)
        batch += 1
    return outcomes, None
