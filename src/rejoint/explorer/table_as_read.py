"""Each table that a model was fitted to, as it was read, as the page has it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.domain.domain import level_order
from rejoint.marginals.compare import TableFit, compare_table, filled_counts
from rejoint.marginals.marginals import Marginals
from rejoint.marginals.unknown import known_rest
from rejoint.pmf.pmf import LowRankPMF
from rejoint.text import format_number, plural

#: Cells of given tables that a page has, all tables together: 0.2 MB.
MOST_GIVEN_CELLS = 20_000


def plain_as_read(
    pmf: LowRankPMF, notes: Any = None, *, most_cells: float = MOST_GIVEN_CELLS
) -> dict[str, Any] | None:
    """Return each table as it was read, for the page; None if there are none.

    Parameters
    ----------
    pmf : LowRankPMF
        A model that carries its tables; a conditioned one shows none, as no table is about it.
    notes : optional
        ``tables`` of the notes of a file: where each was read from, and what its numbers were.
    most_cells : float
        Room for all tables together: those that are met worst come first.

    Returns
    -------
    dict or None
        ``tables``: of each its ``names``, a ``text`` about it, its numbers as ``cells`` with the
        last variable changing fastest, levels in the order of the model, whether they are
        ``counted``, their ``total``, by place the text of cells that are ``not_given``, and the
        ``distance`` from the model; ``left``: how many tables are left out.

    Examples
    --------
    >>> import rejoint as rj
    >>> pairs = {("a", "b"): [[1, 2], [3, 4]], ("b", "c"): [[1, 3], [2, 4]]}
    >>> plain = plain_as_read(rj.factorize(rj.Marginals.from_tables(pairs)).pmf)
    >>> plain["tables"][0]["cells"], plain["left"]
    ([1.0, 2.0, 3.0, 4.0], 0)
    """
    tables = None if pmf.tables is None else pmf.tables.marginals
    if pmf.tables is None or tables is None or pmf.tables.evidence:
        return None
    fits = {
        i: compare_table(tables, i, pmf)
        for i, names in enumerate(tables.subsets)
        if tables.totals[i] > 0 and all(name in pmf.domain for name in names)
    }
    if not fits:
        return None
    sizes, chosen = np.diff(tables.starts), []
    for i in sorted(fits, key=lambda i: fits[i].excess, reverse=True):
        if most_cells >= sizes[i]:
            most_cells -= float(sizes[i])
            chosen.append(i)
    listed = _by_names(notes)
    shown = [
        _plain_table(pmf, tables, i, fits[i], listed.get(frozenset(tables.subsets[i]), {}))
        for i in sorted(chosen)
    ]
    return {"tables": shown, "left": len(fits) - len(chosen)}


def _by_names(notes: Any) -> dict[frozenset[str], Mapping[str, Any]]:
    """Return what notes say about tables, by the variables of each."""
    listed = {}
    for note in notes if isinstance(notes, list) else []:
        names = note.get("names") if isinstance(note, dict) else None
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            listed[frozenset(names)] = note
    return listed


def _plain_table(
    pmf: LowRankPMF, tables: Marginals, i: int, fit: TableFit, note: Mapping[str, Any]
) -> dict[str, Any]:
    names, counted = list(tables.subsets[i]), bool(tables.counted[i])
    given, unknown = tables.counts_of(i).copy(), tables.unknown_of(i)
    low, high = given.copy(), given.copy()
    if unknown is not None:
        given.ravel()[unknown.places] = np.nan
        # Where numbers are rounded, known sums may be off, too.
        ends = (unknown.low, unknown.high) if tables.rounding[i] > 0 else unknown.tightened()
        low.ravel()[unknown.places], high.ravel()[unknown.places] = ends
    order = np.ix_(*level_order(tables.domain.project(names), pmf.domain.project(names)))
    given, low, high = (table[order].ravel() for table in (given, low, high))
    hidden = np.flatnonzero(np.isnan(given)).tolist()
    total = float(filled_counts(tables, i, pmf).sum())
    is_total_known = unknown is None or known_rest(unknown) is not None
    text = _describe(note, counted, f"{'' if is_total_known else 'about '}{total:,.0f} in all")
    if tables.rounding[i] > 0:
        off = _write(float(tables.rounding[i]), counted)
        text += f" Its numbers are rounded: each may be off by up to {off}."
    if hidden:
        text += f" {plural(len(hidden), 'cell')} {'is' if len(hidden) == 1 else 'are'} not given."
    return {
        "names": names,
        "text": text,
        "cells": np.nan_to_num(given).tolist(),
        "counted": counted,
        "total": total,
        "not_given": {str(at): _write_hidden(low, high, at, counted) for at in hidden},
        "distance": fit.distance,
    }


def _describe(note: Mapping[str, Any], counted: bool, total: str) -> str:
    """Describe the numbers of a table and its source."""
    where, kind = (note.get(key) for key in ("where", "kind"))
    kind = kind if isinstance(kind, str) and kind else "counts" if counted else "shares"
    text = kind[:1].upper() + kind[1:]
    if counted:
        text += f", {total}"
    if where and isinstance(where, str):
        text += f", read from {where}"
    if counted != kind.startswith("counts"):
        return f"{text}, shown as counts."
    return f"{text}." if counted else f"{text}, shown as percent of all."


def _write(number: float, counted: bool) -> str:
    """Write a number of a table: a count, or a share in percent."""
    return format_number(number) if counted else f"{format_number(100.0 * number)} %"


def _write_hidden(low: FloatArray, high: FloatArray, at: int, counted: bool) -> str:
    """Write the bounds of a number that is not given."""
    if high[at] == np.inf:
        return f"not given, {_write(low[at], counted)} or more" if low[at] > 0 else "not given"
    ends = [_write(float(end[at]), counted) for end in (low, high)]
    if ends[0] == ends[1]:
        return f"not given, {ends[0]} by sums"
    return f"not given, {ends[0]} to {ends[1]}"
