"""Checkpoint: the finished parts of a fit on disk, from which an interrupted fit resumes.

A fit is the same computation each time. What was computed before is looked up instead, so that a
fit that was killed ends as it would have without. The file is a zip of plain arrays and a JSON
member, without pickle, and is replaced whole: a kill at any moment leaves the previous one.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from threading import RLock
from time import perf_counter
from typing import IO, Any, TypeVar

import numpy as np

from rejoint.io.archive import Archive, read_archive, write_archive
from rejoint.io.atomic import atomic_file
from rejoint.io.schema import anything, dict_of, object_of, text
from rejoint.messages import remark


def digest(*things: Any) -> str:
    """Return a text that identifies a value: equal values have equal texts.

    Things are arrays, numbers, texts, generators of random numbers (by their state), functions with
    their arguments (``functools.partial``), and tuples, mappings, dataclasses and other objects of
    such.

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
    elif getattr(type(thing), "__repr__", None) is object.__repr__:
        _take(hasher, (type(thing).__qualname__, _attributes(thing)))  # its repr is an address
    elif hasattr(thing, "__qualname__"):
        hasher.update(f"{thing.__module__}.{thing.__qualname__}".encode())
    else:
        hasher.update(f"{type(thing).__name__}:{thing!r};".encode())


def _attributes(thing: Any) -> dict[str, Any]:
    """What an object holds, in slots or not."""
    slots = [getattr(kind, "__slots__", ()) for kind in type(thing).__mro__]
    names = [name for part in slots for name in ([part] if isinstance(part, str) else part)]
    held = {name: getattr(thing, name) for name in names if hasattr(thing, name)}
    return held | getattr(thing, "__dict__", {})


def _plain(value: Any) -> Any:
    return np.asarray(value).tolist()


Entry = dict[str, Any]  # arrays, numbers, texts, and lists of numbers

#: Seconds between writes, and smallest ratio of that pause to the time of a write.
WRITE_EVERY_SECONDS, WRITE_PAUSE_RATIO = 5.0, 20.0

_FORMAT, _VERSION = "rejoint checkpoint", 2

_HEAD = object_of({"identity": dict_of(text()), "entries": dict_of(dict_of(anything))})

T = TypeVar("T")


class Checkpoint:
    """Entries by key, written to a file from time to time; without a path nothing is kept.

    Parameters
    ----------
    path : path, optional
        The file; its entries are read if it exists.
    identity : mapping
        What the fit is, by name, in texts; a file of another fit is an error.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "fit.checkpoint")
    ...     checkpoint = Checkpoint(path, {"rank": "3"})
    ...     checkpoint.put("a", {"model": np.ones(2), "step": 7})
    ...     checkpoint.save()
    ...     Checkpoint(path, {"rank": "3"}).parse("a", lambda entry: entry["step"])
    7
    """

    def __init__(
        self, path: str | PathLike[str] | None = None, identity: Mapping[str, str] | None = None
    ) -> None:
        self.path = None if path is None else Path(path)
        self.identity = dict(identity or {})
        self.entries: dict[str, Entry] = {}
        self._lock = RLock()
        self._written, self._pause = perf_counter(), WRITE_EVERY_SECONDS
        self._changed = True
        self._lost = False
        if self.path is not None and self.path.exists():
            self._read(self.path)
        else:
            self.save()  # a path that cannot be written to is an error now, not after an hour

    def __reduce__(self) -> tuple[type["Checkpoint"], tuple[()]]:
        """Keep nothing in another process."""
        return Checkpoint, ()

    @property
    def active(self) -> bool:
        """Whether anything is kept."""
        return self.path is not None

    def put(self, key: str, entry: Entry) -> None:
        """Keep an entry; it is on disk after some seconds."""
        if not self.active:
            return
        with self._lock:
            self.entries[key] = entry
            self._changed = True
            if perf_counter() - self._written >= self._pause:
                self.close()

    def parse(self, key: str, read: Callable[[Entry], T]) -> T | None:
        """Return what a function makes of an entry, None where there is none.

        Files may be damaged or of strangers: an entry that cannot be read is an error in words.
        """
        with self._lock:
            entry = self.entries.get(key)
        try:
            return None if entry is None else read(entry)
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> ValueError:
        return ValueError(
            f"'{self.path}' is not a checkpoint that can be read ({str(error)[:200]}): name "
            "another file, or delete it to start over."
        )

    def save(self) -> None:
        """Write all that is new."""
        with self._lock:
            if self.path is None or not self._changed:
                return
            begun = perf_counter()
            with atomic_file(self.path, signature=_FORMAT.encode()) as file:
                _write(file, self.identity, self.entries)
            self._written, self._changed = perf_counter(), False
            self._pause = max(WRITE_EVERY_SECONDS, WRITE_PAUSE_RATIO * (self._written - begun))

    def close(self) -> None:
        """Write all that is new; a full disk must not end a fit that has gone on for hours."""
        if self._lost:
            return
        try:
            self.save()
        except OSError as error:
            self._lost = True
            remark(
                f"The checkpoint '{self.path}' can no longer be written ({error}): the fit goes on "
                "without it, and if interrupted resumes from what the file holds."
            )

    def _read(self, path: Path) -> None:
        try:
            with open(path, "rb") as file:
                archive = read_archive(file)
                head = archive.meta if isinstance(archive.meta, dict) else {}
                if (head.get("format"), head.get("version")) != (_FORMAT, _VERSION):
                    raise ValueError("it has another format")
                _HEAD(head, "it")
                self.entries = {
                    key: {name: _value(archive, value) for name, value in entry.items()}
                    for key, entry in head["entries"].items()
                }
        except ValueError as error:
            raise self._unreadable(error) from error
        for name, mine in self.identity.items():
            if (theirs := head["identity"].get(name)) != mine:
                raise ValueError(
                    f"'{path}' is the checkpoint of another fit: its {name} is {theirs}, not "
                    f"{mine}. Name another file, or delete it to start over."
                )


def open_checkpoint(
    path: str | PathLike[str] | None,
    random_state: int | np.random.Generator | None,
    fingerprint: Callable[[], str],
    **asked: Any,
) -> tuple[Checkpoint, np.random.Generator]:
    """Return the checkpoint of a fit, and its randomness: that of the first attempt.

    Parameters
    ----------
    path : path, optional
        The file; without one nothing is kept.
    random_state : int or Generator, optional
        As it was given; for None a seed is drawn, which the checkpoint keeps.
    fingerprint : callable
        Returns what tells the data from others; called only where there is a path.
    **asked
        What was requested, by the names that an error shall use.

    Examples
    --------
    >>> checkpoint, rng = open_checkpoint(None, 3, str)
    >>> checkpoint.active, int(rng.integers(100))
    (False, 81)
    """
    if path is None:
        return Checkpoint(), np.random.default_rng(random_state)
    identity = {"data": fingerprint()} | {name: _text(value) for name, value in asked.items()}
    if random_state is None:
        checkpoint = Checkpoint(path, identity)
        rng = checkpoint.parse("seed", lambda entry: np.random.default_rng(entry["seed"]))
        if rng is None:
            seed = int(np.random.default_rng().integers(2**62))
            checkpoint.put("seed", {"seed": seed})
            checkpoint.save()
            rng = np.random.default_rng(seed)
        return checkpoint, rng
    rng = np.random.default_rng(random_state)
    return Checkpoint(path, identity | {"random_state": digest(rng)}), rng


def _text(value: Any) -> str:
    """Short things as they are, others by a digest."""
    plain = value is None or isinstance(value, str | int | float)
    return repr(value) if plain else f"{type(value).__name__} {digest(value)[:12]}"


def _write(file: IO[bytes], identity: Mapping[str, str], entries: Mapping[str, Entry]) -> None:
    arrays: dict[str, np.ndarray[Any, Any]] = {}

    def plain(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        arrays[str(len(arrays))] = value
        return {"array": len(arrays) - 1}

    kept = {key: {k: plain(v) for k, v in entry.items()} for key, entry in entries.items()}
    head = {"format": _FORMAT, "version": _VERSION, "identity": dict(identity), "entries": kept}
    write_archive(file, head, arrays, allow_nan=True)


def _value(archive: Archive, value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return archive.array(str(value.get("array")), may_be_empty=True)
