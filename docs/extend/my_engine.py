"""Engines to copy: a scan with parts elsewhere, an executor for starts."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeVar

import rejoint as rj
from rejoint.records.scan import describe_progress

T = TypeVar("T")


@dataclass(frozen=True, eq=False, repr=False)
class PooledScan(rj.Scan):
    """Records whose parts go to a pool of threads, processes or machines."""

    pool: Executor | None = None
    ahead: int = 4  # parts that are under way at once

    @property
    def threads(self) -> int:
        """Threads for one part: the pool works on several of them."""
        return 1

    def map(
        self,
        function: Callable[..., T],
        skip: int = 0,
        report: Callable[[str], None] | None = None,
        *,
        numbered: bool = False,
    ) -> Iterator[T]:
        """Apply a function to all parts but the first ``skip``, in order."""
        assert self.pool is not None
        begun, before, done = perf_counter(), 0, 0
        waiting: deque[tuple[int, Future[T]]] = deque()
        try:
            for number, part in enumerate(self.read()):
                if number < skip:
                    before += len(part)
                    continue
                arguments = (part, number) if numbered else (part,)
                waiting.append((len(part), self.pool.submit(function, *arguments)))
                if len(waiting) >= self.ahead:
                    rows, future = waiting.popleft()
                    yield future.result()
                    done += rows
                    if report is not None:
                        report(describe_progress(before, done, self.rows, perf_counter() - begun))
            while waiting:
                yield waiting.popleft()[1].result()
        finally:
            for _, future in waiting:
                future.cancel()


def pooled(scan: rj.Scan, pool: Executor, ahead: int = 4) -> PooledScan:
    """Return the same records, worked on by a pool."""
    # A scan that is not quick is copied to a pack before a fit,
    # and that is a plain scan.
    return PooledScan(
        scan.domain,
        scan.read,
        scan.source,
        scan.stamp,
        scan.rows,
        quick=True,
        memory=scan.memory,
        design=scan.design,
        pool=pool,
        ahead=ahead,
    )


class MyExecutor(Executor):
    """Fits starts and folds here, one by one: change ``submit``."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        """Send a task away; the future has its result or its error."""
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future
