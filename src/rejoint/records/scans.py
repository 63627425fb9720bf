"""Scan: records that are read part by part, as often as needed, and never held whole."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from os import PathLike
from time import perf_counter
from typing import TypeVar

from rejoint import kernels
from rejoint.domain import Domain
from rejoint.domain.labels import duration, plural
from rejoint.records.records import Records

__all__ = ["MEMORY", "Report", "Scan", "how_far"]

T = TypeVar("T")
Report = Callable[[str], None]

#: Bytes of records that a fit holds; finding those that are alike takes three times as much.
MEMORY = 2**26


@dataclass(frozen=True, eq=False, repr=False)
class Scan:
    """Records of a source that may be larger than memory; make one by :func:`rejoint.scan`.

    ``Marginals.count`` and ``estimate`` take it as they take Records: what they need are sums over
    records, which are the same whether taken at once or part by part.

    Parameters
    ----------
    domain : Domain
        The variables.
    read : callable
        Called for each pass; gives the parts, in the same order each time.
    source : str
        What it is called.
    stamp : str
        What tells this source from others: names, sizes and dates of files.
    rows : int, optional
        Number of rows, where it is known beforehand.
    memory : int
        Bytes of records that a fit may hold; where all fit, it is one of records in memory.
    quick : bool
        Whether a pass costs little more than the computing: what is not is packed before many.

    Examples
    --------
    >>> import rejoint as rj
    >>> data = rj.scan(lambda: iter([{"a": ["x", "y"]}, {"a": ["z"]}]))
    >>> data.domain["a"].levels
    ('x', 'y', 'z')
    >>> rj.Marginals.count(data, order=1)["a"]
    array([1., 1., 1.])
    """

    domain: Domain
    read: Callable[[], Iterator[Records]]
    source: str = "a source"
    stamp: str = ""
    rows: int | None = None
    quick: bool = False
    memory: int = MEMORY

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables.

        Examples
        --------
        >>> import rejoint as rj
        >>> rj.scan(lambda: iter([{"a": ["x", "y"]}])).names
        ('a',)
        """
        return self.domain.names

    @property
    def threads(self) -> int:
        """Threads for the computing on one part."""
        return kernels.available_threads()

    @property
    def part_memory(self) -> int:
        """Bytes of records that the look at one part may hold."""
        return self.memory

    def __repr__(self) -> str:
        size = "" if self.rows is None else f"{plural(self.rows, 'row')}, "
        return f"Scan of {self.source}: {size}{plural(len(self.domain), 'variable')}"

    def __iter__(self) -> Iterator[Records]:
        """Iterate over the parts, from the beginning."""
        return self.read()

    def map(
        self,
        function: Callable[..., T],
        skip: int = 0,
        report: Report | None = None,
        *,
        numbered: bool = False,
    ) -> Iterator[T]:
        """Apply a function to every part but the first ``skip``, in order.

        ``report`` is told how far it is, and how long it will take where ``rows`` are known. A
        ``numbered`` function also takes the number of the part, as parts that are alike differ in.

        Examples
        --------
        >>> import rejoint as rj
        >>> data = rj.scan(lambda: iter([{"a": ["x", "y"]}, {"a": ["z"]}]))
        >>> list(data.map(len))
        [2, 1]
        """
        begun, before, done = perf_counter(), 0, 0
        for number, part in enumerate(self.read()):
            if number < skip:
                before += len(part)
                continue
            yield function(part, number) if numbered else function(part)
            done += len(part)
            if report is not None:
                report(how_far(before, done, self.rows, perf_counter() - begun))

    def pack(self, folder: str | PathLike[str]) -> "Scan":
        """Write the codes to a folder, a byte or two a cell; passes over them are quick.

        ``rj.scan(folder)`` opens it again, without any work.

        Examples
        --------
        >>> import pathlib, rejoint as rj, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     data = rj.scan(lambda: iter([{"a": ["x", "y"]}, {"a": ["z"]}]))
        ...     data.pack(pathlib.Path(folder, "a"))
        Scan of a: 3 rows, 1 variable
        """
        from rejoint.records.packs import pack  # which makes a Scan in turn

        return replace(pack(self, folder), memory=self.memory)


def how_far(before: int, done: int, rows: int | None, seconds: float) -> str:
    """How far a pass is: what was done before, what in so many seconds, of how many rows.

    Examples
    --------
    >>> how_far(0, 20_000, 80_000, 30.0), how_far(0, 20_000, None, 30.0)
    ('25% of 80,000 records, 90 seconds left', '20,000 records')
    """
    if not rows:
        return f"{before + done:,} records"
    left = seconds * max(rows - before - done, 0) / max(done, 1)
    share = min((before + done) / rows, 1.0)
    return f"{share:.0%} of {rows:,} records, {duration(left)} left"
