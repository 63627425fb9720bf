"""BLAS held to one thread while a fit runs."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within the block, let BLAS use one thread.

    Matrices of a fit are small: several BLAS threads on busy cores wait for each other and cost 6
    to 22 times the CPU. Threads are used over chunks of rows and over starts instead.

    Examples
    --------
    >>> with one_blas_thread():
    ...     pass
    """
    import threadpoolctl  # seldom needed, not cheap

    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        yield
