"""Runs that are kept in a journal: finished ones whole, others with the state to go on from."""

from collections.abc import Sequence
from dataclasses import astuple, replace
from typing import Any

import numpy as np

from rejoint.solver.digests import digest
from rejoint.solver.history import Record, Run
from rejoint.solver.journal import Entry, Journal

__all__ = ["Bookmark", "finished_run"]


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
