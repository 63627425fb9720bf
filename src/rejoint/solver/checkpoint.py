"""Runs that are kept in a journal: finished ones whole, others with the state to go on from.

A fit is the same computation each time: what was computed already is looked up instead, so that a
fit that was killed ends as it would have without. The file is a zip of plain arrays and a JSON
member, without pickle, and is replaced whole: a kill at any moment leaves the one before.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, fields, is_dataclass, replace
from functools import partial
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from threading import RLock
from time import perf_counter
from typing import IO, Any

import numpy as np

from rejoint.io.archive import Archive, read_archive, write_archive
from rejoint.io.atomic import atomic_file
from rejoint.messages import remark
from rejoint.solver.solver import Record, Run


def digest(*things: Any) -> str:
    """A text that is the same for equal things, and for no others to speak of.

    Things are arrays, numbers, texts, generators of random numbers (by their state), functions with
    their arguments (``functools.partial``), and tuples, mappings and dataclasses of such.

    Examples
    --------
    >>> digest(1, np.zeros(2)) == digest(1, np.zeros(2))
    True
    >>> digest(1, np.zeros(2)) == digest(1, np.zeros(3))
    False
    """
    hasher = blake2b(digest_size=16)
    for thing in things:
        _take(hasher, thing)
    return hasher.hexdigest()


def _take(hasher: Any, thing: Any) -> None:
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        hasher.update(f"{thing.dtype.str}{thing.shape}".encode())
        hasher.update(np.ascontiguousarray(thing).data)
    elif isinstance(thing, np.random.Generator):
        _take(hasher, json.dumps(thing.bit_generator.state, sort_keys=True, default=_plain))
    elif isinstance(thing, partial):
        _take(hasher, (thing.func, thing.args, thing.keywords))
    elif is_dataclass(thing) and not isinstance(thing, type):
        parts = {f.name: getattr(thing, f.name) for f in fields(thing) if f.compare}
        _take(hasher, (type(thing).__qualname__, parts))
    elif isinstance(thing, dict):
        _take(hasher, tuple(thing.items()))
    elif isinstance(thing, list | tuple):
        hasher.update(f"({len(thing)}".encode())
        for part in thing:
            _take(hasher, part)
    elif callable(thing):
        hasher.update(f"{thing.__module__}.{thing.__qualname__}".encode())
    else:
        hasher.update(f"{type(thing).__name__}:{thing!r};".encode())


def _plain(value: Any) -> Any:
    return np.asarray(value).tolist()


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
            with atomic_file(self.path) as file:
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
            with open(self.path, "rb") as file:
                archive = read_archive(file)
                head = archive.meta
                if head["format"] != _FORMAT or head["version"] != _VERSION:
                    raise ValueError("it has another format")
                self.entries = {
                    key: {name: _value(archive, value) for name, value in entry.items()}
                    for key, entry in head["entries"].items()
                }
        except (KeyError, ValueError, TypeError, AttributeError) as error:
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
    write_archive(file, head, {str(k): array for k, array in enumerate(arrays)}, allow_nan=True)


def _value(archive: Archive, value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return archive.array(str(value["array"]), may_be_empty=True)


class Bookmark:
    """The place of one run in a journal; without a journal nothing is kept.

    A solver that can be resumed in the middle has ``freeze``, which turns its state into arrays
    and numbers, and ``thaw``, which does the reverse; others begin anew.

    Examples
    --------
    >>> Bookmark(None, "").resume(None)
    """

    def __init__(self, journal: Journal | None, key: str) -> None:
        self.journal, self.key = journal, key

    @classmethod
    def of(cls, problem: Any, solver: Any, *what: Any) -> "Bookmark":
        """The place of a run on a problem, if that has a journal."""
        journal = getattr(problem, "journal", None)
        if journal is None:
            return cls(None, "")
        return cls(journal, digest("run", problem.fingerprint, solver, *what))

    def resume(self, solver: Any) -> tuple[Any, list[Record]] | None:
        """State and history to go on from."""
        entry = None if self.journal is None else self.journal.get(self.key)
        if entry is None or "state" not in entry:
            return None
        names = entry["state"].split()
        return solver.thaw({name: entry[name] for name in names}), _records(entry)

    def keep(self, solver: Any, state: Any, records: Sequence[Record], now: bool = False) -> None:
        """Keep the state, if it is time to or has to be now."""
        if self.journal is None or not hasattr(solver, "freeze"):
            return
        if now or self.journal.due:
            frozen: Entry = solver.freeze(state)
            names = " ".join(frozen)
            self.journal.put(self.key, {**frozen, "state": names, **_history(records)})
        if now:
            self.journal.close()

    def close(self, run: Run) -> None:
        """Keep the outcome in place of the state."""
        if self.journal is None:
            return
        entry: Entry = {"weights": run.weights, "factors": run.factors, "reason": run.reason}
        entry |= {name: getattr(run, name) for name in ("objective", "residual", "error")}
        self.journal.put(self.key, {**entry, **_history(run.records)})


def finished_run(bookmark: Bookmark) -> Run | None:
    """The outcome of a run that has ended."""
    entry = None if bookmark.journal is None else bookmark.journal.get(bookmark.key)
    if entry is None or "reason" not in entry:
        return None
    names = ("weights", "factors", "objective", "residual", "error", "reason")
    return Run(**{name: entry[name] for name in names}, records=tuple(_records(entry)))


def _history(records: Sequence[Record]) -> Entry:
    """Numbers of all records as one array; all have the same start and solver."""
    numbers = [astuple(replace(record, solver="")) for record in records]
    table = np.array([(row[0], *row[2:]) for row in numbers], dtype=np.float64)
    return {"history": table, "solver": records[0].solver if records else ""}


def _records(entry: Entry) -> list[Record]:
    return [
        Record(int(start), entry["solver"], int(step), float(objective), float(residual), float(at))
        for start, step, objective, residual, at in entry["history"]
    ]
