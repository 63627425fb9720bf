"""Cost: a forecast of the memory and time that a computation takes; memory to read files into."""

import os
from contextlib import suppress
from io import BytesIO
from math import inf
from pathlib import Path
from typing import IO, NamedTuple

from rejoint.messages import Message, remark
from rejoint.text import duration_range, format_bytes

#: Seconds beyond which work says at its start how long it will take.
LONG = 60.0

#: Share of the memory that the bytes of a file may take, and how many are read at a time.
MOST_OF_MEMORY, _PIECE_BYTES = 0.25, 2**24

#: Where a container says how much memory it may take (cgroups, second and first version).
_LIMIT_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class Cost(NamedTuple):
    """A forecast of memory, in bytes, and of seconds of computing at the least and at the most.

    Examples
    --------
    >>> Cost(1e6, 0.1, 2.0).check("A small fit", "a smaller one")
    False
    """

    memory: float
    low: float = 0.0
    high: float = 0.0

    def check(self, what: str, instead: str) -> bool:
        """Raise an error if memory does not suffice; remark if the work takes minutes.

        Returns whether it has said so.

        Parameters
        ----------
        what : str
            The work, as the subject of a sentence.
        instead : str
            What takes less.

        Examples
        --------
        >>> Cost(1e18).check("A fit of 100,000 classes", "a smaller rank takes less")
        Traceback (most recent call last):
        ...
        MemoryError: A fit of 100,000 classes would take about 1,000,000 TB of memory, and ...
        """
        room = machine_memory()
        if self.memory > room:
            raise MemoryError(
                Message(
                    "{what} would take about {memory} of memory, and this machine has {room}: "
                    "{instead}.",
                    what=what,
                    memory=format_bytes(self.memory),
                    room=format_bytes(room),
                    instead=instead,
                )
            )
        told = self.low > LONG
        if told:
            remark(
                Message(
                    "{what} takes {time} of computing; {instead}.",
                    what=what,
                    time=duration_range(self.low, self.high),
                    instead=instead,
                )
            )
        return told


def machine_memory() -> float:
    """Return the bytes that this machine, or the container, has; infinite where none says.

    Examples
    --------
    >>> machine_memory() > 0
    True
    """
    found = [inf]
    with suppress(AttributeError, ValueError, OSError):  # no sysconf on Windows
        found.append(float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    for file in _LIMIT_FILES:
        with suppress(ValueError, OSError):  # "max", or no such file
            found.append(float(Path(file).read_text()))
    return min(found)


def read_all(file: IO[bytes], name: object) -> bytes:
    """Read a file, a pipe or a device to its end, or raise an error if it is too long for memory.

    Parameters
    ----------
    file : binary file
        It is read from where it stands.
    name : str or path
        What errors call it.

    Examples
    --------
    >>> read_all(BytesIO(b"all of it"), "a.bin")
    b'all of it'
    """
    room, found = MOST_OF_MEMORY * machine_memory(), BytesIO()
    while piece := file.read(_PIECE_BYTES):
        if found.tell() + len(piece) > room:
            raise MemoryError(
                Message(
                    "{name} has more than {room}, which is {share:.0%} of this machine's memory: "
                    "it is read as a whole, so give a part of it.",
                    name=str(name),
                    room=format_bytes(room),
                    share=MOST_OF_MEMORY,
                )
            )
        found.write(piece)
    return found.getvalue()
