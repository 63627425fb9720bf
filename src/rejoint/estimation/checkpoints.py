"""Fits that go on where they were interrupted: the journal of an estimate."""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

import numpy as np

from rejoint.solver import Journal, digest

__all__ = ["kept", "open_journal"]

_SEED = "seed"


def open_journal(
    checkpoint: str | PathLike[str] | None,
    random_state: int | np.random.Generator | None,
    fingerprint: str,
    **asked: Any,
) -> tuple[Journal | None, np.random.Generator]:
    """The journal of a fit, and its source of randomness: that of the first attempt.

    Parameters
    ----------
    checkpoint : path, optional
        The file; without one there is no journal.
    random_state : int or Generator, optional
        As it was given; None is a seed that the journal keeps.
    fingerprint : str
        What tells the data from others.
    **asked
        What was asked for, by the names that an error shall use.

    Examples
    --------
    >>> journal, rng = open_journal(None, 3, "")
    >>> journal is None, int(rng.integers(100))
    (True, 81)
    """
    if checkpoint is None:
        return None, np.random.default_rng(random_state)
    identity = {"data": fingerprint} | {name: _text(value) for name, value in asked.items()}
    if random_state is None:
        journal = Journal(checkpoint, identity)
        entry = journal.get(_SEED)
        if entry is None:
            entry = {_SEED: int(np.random.default_rng().integers(2**62))}
            journal.put(_SEED, entry)
            journal.save()
        return journal, np.random.default_rng(entry[_SEED])
    rng = np.random.default_rng(random_state)
    return Journal(checkpoint, identity | {"random_state": digest(rng)}), rng


@contextmanager
def kept(journal: Journal | None) -> Iterator[None]:
    """Whatever ends a fit, its journal is on disk afterwards."""
    try:
        yield
    finally:
        if journal is not None:
            journal.close()


def _text(value: Any) -> str:
    """Short things as they are, others by a digest."""
    plain = value is None or isinstance(value, str | int | float)
    return repr(value) if plain else f"{type(value).__name__} {digest(value)[:12]}"
