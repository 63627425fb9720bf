"""Each table that a model was fitted to, as it was read, beside what the model gives."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import level_order
from rejoint.marginals.compare import TableFit, compare_table, filled_counts
from rejoint.marginals.marginals import Marginals
from rejoint.marginals.unknown import known_rest
from rejoint.pmf.pmf import LowRankPMF
from rejoint.text import format_number, plural

FloatArray = NDArray[np.float64]

#: Counts and shares of a model below which they are what is left of zeros.
LEAST_COUNT, LEAST_SHARE = 0.01, 1e-6


@dataclass(frozen=True, eq=False)
class TableAsRead:
    """A table as it was read, beside the model's; levels are in the order of the model.

    Parameters
    ----------
    names : tuple of str
        Its variables, one for each axis.
    given : array
        Its numbers, NaN where a cell is not given.
    low, high : array
        Bounds of the cells that are not given, as their marks and the known sums leave them; the
        numbers themselves elsewhere.
    model : array
        What the model gives, scaled to the total.
    counted : bool
        Whether the numbers are counts, not shares.
    total : float
        Their sum, 1 for shares; what is not given counts as the model expects it.
    is_total_known : bool
        Whether the sum does not depend on what the model expects.
    rounding : float
        How far a number may be from the true one.
    fit : TableFit
        How far the table is from the model's.
    where, kind : str or None
        The file that it was read from and what its numbers are, where that is known.

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.LowRankPMF([1.0], [[[0.3], [0.7]]])
    >>> [table], left = list_as_read(p.with_tables(rj.Marginals.from_tables({"x0": [4, 6]})))
    >>> table.given, table.model, left
    (array([4., 6.]), array([3., 7.]), 0)
    """

    names: tuple[str, ...]
    given: FloatArray
    low: FloatArray
    high: FloatArray
    model: FloatArray
    counted: bool
    total: float
    is_total_known: bool
    rounding: float
    fit: TableFit
    where: str | None = None
    kind: str | None = None

    @property
    def text(self) -> str:
        """Description of its variables, its source and its numbers.

        Examples
        --------
        >>> import rejoint as rj
        >>> tables = rj.Marginals.read(rj.datasets.town_tables())
        >>> list_as_read(rj.factorize(tables).pmf)[0][0].text
        'Counts, 21,500 in all.'
        """
        kind = self.kind or ("counts" if self.counted else "shares")
        said = [kind[:1].upper() + kind[1:]]
        if self.counted:
            said.append(f", {'' if self.is_total_known else 'about '}{self.total:,.0f} in all")
        if self.where:
            said.append(f", read from {self.where}")
        if self.counted != kind.startswith("counts"):
            said.append(", shown as counts")
        elif not self.counted:
            said.append(", shown as percent of all")
        said.append(".")
        if self.rounding > 0:
            said.append(
                f" Its numbers are rounded: each may be off by up to {self.write(self.rounding)}."
            )
        if hidden := int(np.isnan(self.given).sum()):
            one = hidden == 1
            said.append(f" {plural(hidden, 'cell')} {'is' if one else 'are'} not given.")
        return "".join(said)

    def write(self, number: float) -> str:
        """Write a number of the table: a count, or a share in percent.

        The page writes the same by ``writeCell`` of ``given.js``.

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.LowRankPMF([1.0], [[[0.3], [0.7]]])
        >>> [counts], _ = list_as_read(p.with_tables(rj.Marginals.from_tables({"x0": [4, 6]})))
        >>> [shares], _ = list_as_read(p.with_tables(rj.Marginals.from_tables({"x0": [0.4, 0.6]})))
        >>> counts.write(1234.0), shares.write(0.125)
        ('1,234', '12.5 %')
        """
        number = float(number)
        return format_number(number) if self.counted else f"{format_number(100.0 * number)} %"

    def write_model(self, place: int) -> str:
        """Write what the model gives at a place of the flat table.

        The page writes the same by ``writeModel`` of ``given.js``.

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.LowRankPMF([1.0], [[[1e-9], [1 - 1e-9]]])
        >>> [table], _ = list_as_read(p.with_tables(rj.Marginals.from_tables({"x0": [0, 6]})))
        >>> table.write_model(0), table.write_model(1)
        ('<0.01', '6')
        """
        number, least = self.model.ravel()[place], LEAST_COUNT if self.counted else LEAST_SHARE
        return f"<{self.write(least)}" if 0.0 < number < least else self.write(number)

    def write_given(self, place: int) -> str:
        """Write the number at a place of the flat table; its bounds if it is not given.

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.LowRankPMF([1.0], [[[0.3], [0.7]]], rj.Domain.of({"a": ["x", "y"]}))
        >>> cells = {"a": {"x": 4, "y": float("nan")}}
        >>> tables = rj.Marginals.from_tables(cells, suppressed=(1, 9))
        >>> [table], _ = list_as_read(p.with_tables(tables))
        >>> table.write_given(0), table.write_given(1)
        ('4', 'not given, 1 to 9')
        """
        given, low, high = (float(x.ravel()[place]) for x in (self.given, self.low, self.high))
        if not isnan(given):
            return self.write(given)
        if high == np.inf:
            return f"not given, {self.write(low)} or more" if low > 0 else "not given"
        ends = [self.write(low), self.write(high)]
        if ends[0] == ends[1]:
            return f"not given, {ends[0]} by sums"
        return f"not given, {ends[0]} to {ends[1]}"


def list_as_read(
    pmf: LowRankPMF,
    notes: Any = None,
    *,
    most_cells: float = np.inf,
) -> tuple[list[TableAsRead], int]:
    """List the tables that a model was fitted to, and return how many are left out.

    Parameters
    ----------
    pmf : LowRankPMF
        The model. If it is given evidence, its tables are of other records: none is listed.
    notes : optional
        What the notes of its file say about its tables: a list of dicts with ``names`` and, where
        it is known, ``where`` and ``kind``.
    most_cells : int, optional
        How many cells of all tables together are listed. Beyond that the tables that the model
        meets worst come first.

    Returns
    -------
    tuple of a list of TableAsRead and int
        The tables in the order in which they were given, and how many are left out.

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.factorize(rj.Marginals.read(rj.datasets.town_tables())).pmf
    >>> tables, left = list_as_read(p)
    >>> len(tables), left
    (6, 0)
    """
    kept = None if pmf.tables is None else pmf.tables.marginals
    if pmf.tables is None or kept is None or pmf.tables.evidence:
        return [], 0
    shown = [
        i
        for i, names in enumerate(kept.subsets)
        if kept.totals[i] > 0 and all(name in pmf.domain for name in names)
    ]
    sizes = np.diff(kept.starts)
    fits = {i: compare_table(kept, i, pmf) for i in shown}
    chosen = list(_choose(shown, fits, sizes, most_cells))
    said = _by_names(notes)
    return [_read(pmf, kept, i, fits[i], said) for i in sorted(chosen)], len(shown) - len(chosen)


def _choose(
    shown: list[int],
    fits: Mapping[int, TableFit],
    sizes: NDArray[np.int64],
    most_cells: float,
) -> Iterator[int]:
    """Yield the tables that there is room for, those that are met worst first."""
    for i in sorted(shown, key=lambda i: fits[i].excess, reverse=True):
        if most_cells >= sizes[i]:
            most_cells -= float(sizes[i])
            yield i


def _by_names(notes: Any) -> dict[frozenset[str], Mapping[str, Any]]:
    """Return what notes say about tables, by the variables of each."""
    found = {}
    for each in notes if isinstance(notes, list) else []:
        names = each.get("names") if isinstance(each, dict) else None
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            found[frozenset(names)] = each
    return found


def _read(
    pmf: LowRankPMF,
    kept: Marginals,
    i: int,
    fit: TableFit,
    said: Mapping[frozenset[str], Mapping[str, Any]],
) -> TableAsRead:
    names = kept.subsets[i]
    mine = pmf.domain.project(list(names))
    order = np.ix_(*level_order(kept.domain.project(list(names)), mine))
    given = kept.counts_of(i).copy()
    low, high = given.copy(), given.copy()
    cells = kept.unknown_of(i)
    if cells is not None:
        given.ravel()[cells.places] = np.nan
        rounded = kept.rounding[i] > 0  # known sums may be off, too
        ends = (cells.low, cells.high) if rounded else cells.tightened()
        low.ravel()[cells.places], high.ravel()[cells.places] = ends
    total = float(filled_counts(kept, i, pmf).sum())
    note = said.get(frozenset(names), {})
    where, kind = (note.get(key) for key in ("where", "kind"))
    return TableAsRead(
        names,
        given[order],
        low[order],
        high[order],
        np.asarray(pmf.marginal(list(names))) * total,
        bool(kept.counted[i]),
        total,
        cells is None or known_rest(cells) is not None,
        float(kept.rounding[i]),
        fit,
        where if isinstance(where, str) else None,
        kind if isinstance(kind, str) else None,
    )
