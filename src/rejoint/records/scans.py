"""Scan: records that are read part by part, as often as needed, and never held whole."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from os import PathLike
from typing import TypeVar

from rejoint import kernels
from rejoint.domain import Domain
from rejoint.domain.labels import plural
from rejoint.records.records import Records

__all__ = ["Scan"]

T = TypeVar("T")

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

    def map(self, function: Callable[[Records], T], skip: int = 0) -> Iterator[T]:
        """Apply a function to every part but the first ``skip``, in order.

        Examples
        --------
        >>> import rejoint as rj
        >>> data = rj.scan(lambda: iter([{"a": ["x", "y"]}, {"a": ["z"]}]))
        >>> list(data.map(len))
        [2, 1]
        """
        return map(function, islice(self.read(), skip, None))

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
