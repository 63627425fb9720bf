"""What is measured, and what the machine can do: CPU time, memory, GEMM rate, bandwidth."""

import ctypes
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

COPIED = 1 << 27  # bytes: far more than any cache


def cpu_time(function: Callable[[], object], turns: int = 5) -> float:
    """Least CPU time of some turns, the first of which warms up."""
    times = []
    for _ in range(turns):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def resident(field: str) -> float:
    """VmRSS or VmHWM of this process in MB; NaN where the system does not tell."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return float("nan")
    return next(float(x.split()[1]) / 1024 for x in status.splitlines() if x.startswith(field))


def forget_peak() -> None:
    """Let VmHWM begin anew, where the system can: what was before is not to count."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # what was freed goes back to the system first
        Path("/proc/self/clear_refs").write_text("5")


def gemm_rate(dtype: type = np.float64, size: int = 768) -> float:
    """Flops a second of a product of square matrices, one thread."""
    rng = np.random.default_rng(0)
    a, b = (rng.random((size, size)).astype(dtype) for _ in range(2))
    return 2.0 * size**3 / cpu_time(lambda: a @ b, 7)


class Rates(NamedTuple):
    """What the machine does in a second, on one thread."""

    gemm: float  # flops
    wide: float  # bytes read and written
    drawn: float  # random numbers

    @classmethod
    def measured(cls) -> "Rates":
        rng = np.random.default_rng(0)
        return cls(gemm_rate(), bandwidth(), 1e6 / cpu_time(lambda: rng.random(1_000_000)))


def bandwidth() -> float:
    """Bytes a second that a copy reads and writes, one thread."""
    source = np.ones(COPIED // 8)
    target = np.zeros_like(source)
    return 2.0 * COPIED / cpu_time(lambda: np.copyto(target, source), 5)
