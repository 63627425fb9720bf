"""Computations that are spread over an executor: threads, processes, machines."""

from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, wait
from typing import Any, TypeVar

T = TypeVar("T")


def spread(
    executor: Executor, function: Callable[..., T], tasks: Iterable[tuple[Any, ...]]
) -> tuple[list[T | None], bool]:
    """Results of all tasks in order, and whether Ctrl-C ended it, with None for those not there.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as executor:
    ...     spread(executor, pow, [(2, 3), (3, 2)])
    ([8, 9], False)
    """
    futures: list[Future[T]] = []
    try:
        for task in tasks:
            futures.append(executor.submit(function, *task))
        wait(futures)
    except KeyboardInterrupt:
        for future in futures:
            future.cancel()
        return [_outcome(future) for future in futures], True
    return [future.result() for future in futures], False


def _outcome(future: "Future[T]") -> T | None:
    there = future.done() and not future.cancelled() and future.exception() is None
    return future.result() if there else None
