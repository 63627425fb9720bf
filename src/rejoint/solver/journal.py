"""The journal of a fit: what it has found so far, on disk, from where an interrupted one goes on.

A fit is the same computation each time: what was computed already is looked up instead, so that a
fit that was killed ends as it would have without. The file is a zip of plain arrays and a JSON
member, without pickle, and is replaced whole: a kill at any moment leaves the one before.
"""

import json
import zipfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from threading import RLock
from time import perf_counter
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from rejoint.io import whole_file
from rejoint.remarks import remark

__all__ = ["Entry", "Journal"]

Entry = dict[str, Any]  # arrays, numbers, texts, and lists of numbers

#: Seconds between writes, and how many times as long as a write itself at the least.
EVERY, SHARE = 5.0, 20.0

_FORMAT, _VERSION = "rejoint checkpoint", 1


class Journal:
    """Entries by key, written to a file from time to time.

    Parameters
    ----------
    path : path
        The file; what it has is taken up, if it is there.
    identity : mapping
        What the fit is, by name, in texts; a file of another fit is an error.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "fit.checkpoint")
    ...     journal = Journal(path, {"rank": "3"})
    ...     journal.put("a", {"model": np.ones(2), "step": 7})
    ...     journal.save()
    ...     Journal(path, {"rank": "3"}).get("a")
    {'model': array([1., 1.]), 'step': 7}
    """

    def __init__(self, path: str | PathLike[str], identity: Mapping[str, str]) -> None:
        self.path = Path(path)
        self.identity = dict(identity)
        self.entries: dict[str, Entry] = {}
        self._lock = RLock()
        self._written, self._pause = perf_counter(), EVERY
        self._changed = True
        self._lost = False
        if self.path.exists():
            self._read()
        else:
            self.save()  # a place that cannot be written to is told now, not after an hour

    def get(self, key: str) -> Entry | None:
        """What was kept under a key."""
        with self._lock:
            return self.entries.get(key)

    def put(self, key: str, entry: Entry | None) -> None:
        """Keep something, or forget it; it is on disk after some seconds."""
        with self._lock:
            if entry is None:
                self.entries.pop(key, None)
            else:
                self.entries[key] = entry
            self._changed = True
            if self.due and not self._lost:
                self._try_to_save()

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        return perf_counter() - self._written >= self._pause

    def save(self) -> None:
        """Write all that is new."""
        with self._lock:
            if not self._changed:
                return
            begun = perf_counter()
            with whole_file(self.path) as file:
                _write(file, self.identity, self.entries)
            self._written, self._changed = perf_counter(), False
            self._pause = max(EVERY, SHARE * (self._written - begun))

    def _try_to_save(self) -> None:
        """A disk that is full must not end a fit that has gone on for hours."""
        try:
            self.save()
        except OSError as error:
            self._lost = True
            remark(
                f"The checkpoint '{self.path}' cannot be written any more ({error}): the fit goes "
                "on without, and if interrupted begins where the file stands."
            )

    def close(self) -> None:
        """Write all that is new, if that is still possible."""
        if not self._lost:
            self._try_to_save()

    def _read(self) -> None:
        try:
            with zipfile.ZipFile(self.path) as archive:
                head = json.loads(archive.read("meta.json"))
                if head["format"] != _FORMAT or head["version"] != _VERSION:
                    raise ValueError("it has another format")
                self.entries = {
                    key: {name: _value(archive, value) for name, value in entry.items()}
                    for key, entry in head["entries"].items()
                }
        except (zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError) as error:
            raise ValueError(
                f"'{self.path}' is no checkpoint that can be read ({error}): name another file, or "
                "delete it to begin anew."
            ) from error
        before = head["identity"]
        for name, mine in self.identity.items():
            theirs = before.get(name)
            if theirs != mine:
                raise ValueError(
                    f"'{self.path}' is the checkpoint of another fit: its {name} is {theirs}, not "
                    f"{mine}. Name another file, or delete it to begin anew."
                )


def _write(file: IO[bytes], identity: Mapping[str, str], entries: Mapping[str, Entry]) -> None:
    arrays: list[np.ndarray[Any, Any]] = []
    plain: dict[str, dict[str, Any]] = {}
    for key, entry in entries.items():
        plain[key] = {}
        for name, value in entry.items():
            if isinstance(value, np.ndarray):
                arrays.append(value)
                value = {"array": len(arrays) - 1}
            plain[key][name] = value
    head = {"format": _FORMAT, "version": _VERSION, "identity": dict(identity), "entries": plain}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("meta.json", json.dumps(head))
        for number, array in enumerate(arrays):
            with archive.open(f"{number}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, array, allow_pickle=False)


def _value(archive: zipfile.ZipFile, value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    with archive.open(f"{int(value['array'])}.npy") as member:
        return npy.read_array(member, allow_pickle=False)
