"""Where posterior sampling stands: draws so far, and all that the next one depends on."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rejoint.estimation.gibbs import Draw
from rejoint.solver import Journal, digest

__all__ = ["ChainBook", "Place"]

_PARTS = ("weights", "factors", "strengths")


class Place(NamedTuple):
    """Which chain, how many steps of it, its last draw, all draws kept, the state of chance."""

    chain: int = 0
    step: int = 0
    last: Draw | None = None
    kept: tuple[Draw, ...] = ()
    chance: str = ""


class ChainBook:
    """Chains in turn, kept in a journal where there is one.

    Examples
    --------
    >>> book = ChainBook(None, "")
    >>> book.note(Draw(np.ones(1), np.ones((2, 1)), np.ones(1)), True, np.random.default_rng(0))
    >>> book.place.step, len(book.place.kept)
    (1, 1)
    """

    def __init__(self, journal: Journal | None, key: str) -> None:
        self.journal, self.key = journal, key
        self.place = Place()

    @classmethod
    def of(cls, problem: Any, sampler: Any, starts: Sequence[Any], rng: Any) -> "ChainBook":
        """The book of some chains, opened where it was left; ``rng`` is set to where it was."""
        if problem.journal is None:
            return cls(None, "")
        book = cls(
            problem.journal, digest("chains", problem.fingerprint, sampler, tuple(starts), rng)
        )
        entry = problem.journal.get(book.key)
        if entry is not None:
            kept = _unpacked(entry)
            last = Draw(*(entry[f"last {part}"] for part in _PARTS)) if entry["step"] else None
            book.place = Place(entry["chain"], entry["step"], last, kept, entry["chance"])
            rng.bit_generator.state = json.loads(entry["chance"], object_hook=_exact)
        return book

    def note(self, draw: Draw, keep: bool, rng: np.random.Generator) -> None:
        """Take in a draw; in one assignment, so that Ctrl-C cannot come in between."""
        place = self.place
        kept = (*place.kept, draw) if keep else place.kept
        chance = "" if self.journal is None else json.dumps(rng.bit_generator.state, default=_plain)
        self.place = Place(place.chain, place.step + 1, draw, kept, chance)
        if self.journal is not None and self.journal.due:
            self.write()

    def turn(self) -> None:
        """Begin the next chain."""
        self.place = self.place._replace(chain=self.place.chain + 1, step=0, last=None)
        self.write()

    def write(self) -> None:
        """Put all into the journal."""
        place = self.place
        if self.journal is None or not place.chance:
            return
        entry: dict[str, Any] = {"chain": place.chain, "step": place.step, "chance": place.chance}
        entry |= _packed(place.kept)
        if place.last is not None:
            entry |= {f"last {part}": getattr(place.last, part) for part in _PARTS}
        self.journal.put(self.key, entry)

    def save(self) -> None:
        """Put all into the journal, and that onto the disk."""
        self.write()
        if self.journal is not None:
            self.journal.close()


def _packed(draws: Sequence[Draw]) -> dict[str, Any]:
    """Draws as flat arrays: chains may have different numbers of classes."""
    ranks = np.array([len(draw.weights) for draw in draws], dtype=np.int64)
    flat = {
        part: np.concatenate([np.empty(0), *(getattr(draw, part).ravel() for draw in draws)])
        for part in _PARTS
    }
    return {"ranks": ranks, **flat}


def _unpacked(entry: dict[str, Any]) -> tuple[Draw, ...]:
    ranks = entry["ranks"]
    if not len(ranks):
        return ()
    levels = len(entry["factors"]) // int(ranks.sum())
    weights = np.split(entry["weights"], np.cumsum(ranks)[:-1])
    factors = np.split(entry["factors"], np.cumsum(ranks * levels)[:-1])
    strengths = entry["strengths"].reshape(len(ranks), -1)
    parts = zip(weights, factors, strengths, strict=True)
    return tuple(Draw(w, f.reshape(levels, len(w)), s) for w, f, s in parts)


def _plain(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """An array in the state of a bit generator, as JSON has it."""
    return {"list": array.tolist(), "type": array.dtype.str}


def _exact(found: dict[str, Any]) -> Any:
    return np.array(found["list"], dtype=found["type"]) if "list" in found else found
