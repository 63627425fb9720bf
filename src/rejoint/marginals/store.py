"""The tables themselves: where each one lies, its counts, shares and total; adding them up."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain
from rejoint.domain.labels import plural
from rejoint.kernels import table_sizes
from rejoint.marginals.labelled_table import names_of
from rejoint.marginals.moments import Moment
from rejoint.marginals.subsets import indices_of
from rejoint.marginals.suppression import UnknownCells, fill_table

Array = NDArray[np.float64]
Subset = tuple[int, ...]
Names = tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class TableStore:
    """Tables over subsets of the variables of a domain; see :class:`rejoint.Marginals`.

    Examples
    --------
    >>> store = TableStore(Domain.of({"a": 2, "b": 2}), ((0,), (1,)), [3, 1, 2, 2])
    >>> store["b"], store.totals
    (array([2., 2.]), array([4., 4.]))
    """

    domain: Domain
    index_subsets: tuple[Subset, ...]
    flat: Array
    table_weight: Array = None  # type: ignore[assignment]  # filled in below
    moments: tuple[Moment, ...] = ()
    counted: NDArray[np.bool_] = None  # type: ignore[assignment]
    unknown: UnknownCells | None = None

    def __post_init__(self) -> None:
        number = len(self.index_subsets)
        ones = np.ones(number) if self.table_weight is None else self.table_weight
        counted = np.ones(number, dtype=bool) if self.counted is None else self.counted
        self._freeze("flat", np.asarray(self.flat, dtype=np.float64))
        self._freeze("table_weight", np.asarray(ones, dtype=np.float64))
        self._freeze("counted", np.asarray(counted, dtype=bool))
        cells = int(self.starts[-1])
        if self.flat.shape != (cells,):
            raise ValueError(
                f"The {number} tables have {cells} cells together, but flat has shape "
                f"{self.flat.shape}."
            )

    def _freeze(self, field: str, array: NDArray[Any]) -> None:
        array = array.view()
        array.flags.writeable = False
        object.__setattr__(self, field, array)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each table starts in ``flat``, and the end."""
        sizes = table_sizes(self.domain.shape, self.index_subsets)
        return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])

    @cached_property
    def positions(self) -> dict[Subset, int]:
        """Which table each subset of indices is."""
        return {subset: i for i, subset in enumerate(self.index_subsets)}

    @cached_property
    def subsets(self) -> tuple[Names, ...]:
        """The names of the variables of each table.

        Examples
        --------
        >>> TableStore(Domain.of({"b": 2, "a": 2}), ((0, 1), (0,)), [1, 2, 3, 4, 3, 7]).subsets
        (('b', 'a'), ('b',))
        """
        names = self.domain.names
        return tuple(tuple(names[n] for n in s) for s in self.index_subsets)

    @cached_property
    def totals(self) -> Array:
        """The number of records (or their weight) behind each table; 1 for shares.

        Examples
        --------
        >>> TableStore(Domain.of({"a": 2, "b": 2}), ((0,), (1,)), [3, 7, 0.5, 0.5]).totals
        array([10.,  1.])
        """
        totals = np.add.reduceat(self.flat, self.starts[:-1]) if len(self) else np.empty(0)
        totals.flags.writeable = False
        return totals

    def __len__(self) -> int:
        """Return the number of tables."""
        return len(self.index_subsets)

    def __iter__(self) -> Iterator[Names]:
        """Iterate over the subsets, as tuples of names."""
        return iter(self.subsets)

    def __contains__(self, names: Any) -> bool:
        """Say whether there is a table of exactly these variables, in any order."""
        known = all(n in self.domain for n in names_of(names))
        return known and tuple(sorted(self.domain.indices(names_of(names)))) in self.positions

    def __getitem__(self, names: str | Names) -> Array:
        """Return the counts of one table, axes in the order asked."""
        asked = names_of(names)
        table = self.counts_of(self._find(asked))
        return _in_order(table, self.domain.indices(asked))

    def __repr__(self) -> str:
        orders = sorted({len(s) for s in self.index_subsets})
        words = plural(len(self), "table")
        words += f" of order {', '.join(map(str, orders))}" if orders else ""
        more = f", {plural(len(self.moments), 'moment')}" if self.moments else ""
        if len(self) and self.counted.any():
            about, form = ("about ", ",.0f") if self.unknown is not None else ("", ",.10g")
            low, high = (format(f(self.totals[self.counted]), form) for f in (np.min, np.max))
            more += f", {about}{low if low == high else f'{low} to {high}'} records each"
        if self.unknown is not None:
            more += f", {plural(len(self.unknown), 'cell')} not known"
        return f"{type(self).__name__}({words} over {plural(len(self.domain), 'variable')}{more})"

    def counts_of(self, i: int) -> Array:
        """Return the i-th table as it is, axes in index order.

        Examples
        --------
        >>> TableStore(Domain.of({"a": 2, "b": 2}), ((0, 1),), [1, 2, 3, 4]).counts_of(0)
        array([[1., 2.],
               [3., 4.]])
        """
        shape = [self.domain.shape[n] for n in self.index_subsets[i]]
        return self.flat[self.starts[i] : self.starts[i + 1]].reshape(shape)

    def unknown_of(self, i: int) -> UnknownCells | None:
        """Return the cells of the i-th table that are not known, None if all are.

        Examples
        --------
        >>> TableStore(Domain.of({"a": 2}), ((0,),), [1, 2]).unknown_of(0) is None
        True
        """
        if self.unknown is None:
            return None
        return self.unknown.between(int(self.starts[i]), int(self.starts[i + 1]))

    def _find(self, asked: Names) -> int:
        subset = indices_of(self.domain, asked)
        if subset not in self.positions:
            larger = [s for s in self.subsets if set(asked) < set(s)]
            way = (
                f"marginal({list(asked)}) sums {larger[0]} down to it."
                if larger
                else "count or give it, or fit a model, which has every table."
            )
            raise KeyError(f"There is no table of {asked} among the {len(self)}: {way}")
        return self.positions[subset]

    def total(self, *names: str) -> float:
        """Return the number of records (or their weight) behind a table; 1 for shares.

        Examples
        --------
        >>> TableStore(Domain.of({"a": 2, "b": 2}), ((0, 1),), [1, 2, 3, 4]).total("a", "b")
        10.0
        """
        return float(self.totals[self._find(names_of(names))])

    def shares(self, i: int) -> Array:
        """Return the i-th table scaled to add up to one, axes in index order.

        A table without records has no shares: all zeros.

        Examples
        --------
        >>> TableStore(Domain.of({"a": 2}), ((0,),), [1, 3]).shares(0)
        array([0.25, 0.75])
        """
        total = self.totals[i]
        return self.counts_of(i) / (total if total > 0 else 1.0)

    def marginal(self, names: str | Sequence[str]) -> Array:
        """Return the share table of some variables, axes in the order asked.

        It is summed down from the table with the most records among those that hold all of
        these variables (shares, whose records are unknown, come last).

        Examples
        --------
        >>> TableStore(Domain.of({"a": 2, "b": 2}), ((0, 1),), [1, 2, 3, 4]).marginal(["b"])
        array([0.4, 0.6])
        """
        asked = names_of(names)
        subset = indices_of(self.domain, asked)
        holders = [i for i, s in enumerate(self.index_subsets) if set(subset) <= set(s)]
        best = max(holders, key=lambda i: (self.counted[i], self.totals[i]), default=None)
        if best is None or self.totals[best] == 0:
            raise ValueError(
                f"No table with records holds {asked} together: count or give one, or fit a "
                "model, which has every table."
            )
        gone = tuple(axis for axis, n in enumerate(self.index_subsets[best]) if n not in subset)
        # Counts are summed before the division: whole numbers, so nothing is lost.
        share = self.counts_of(best).sum(axis=gone) / self.totals[best]
        return _in_order(share, self.domain.indices(asked))


def fill_unknown(store: "Store", model: Any) -> "Store":
    """Tables with cells that are not known filled by what a model expects, within their bounds.

    Examples
    --------
    >>> cells = UnknownCells(np.array([1]), np.zeros(1), np.full(1, np.inf))
    >>> store = TableStore(Domain.of({"a": 2}), ((0,),), [3.0, 0.0], unknown=cells)
    >>> even = TableStore(store.domain, ((0,),), [1, 1])
    >>> fill_unknown(store, even)["a"]
    array([3., 3.])
    """
    if store.unknown is None:
        return store
    flat = store.flat.copy()
    for i, names in enumerate(store.subsets):
        cells = store.unknown_of(i)
        if cells is not None:
            part = flat[int(store.starts[i]) : int(store.starts[i + 1])]
            shares = np.asarray(model.marginal(list(names))).ravel()
            part[:] = fill_table(part, cells, shares, counted=bool(store.counted[i]))
    return replace(store, flat=flat)


def _in_order(table: Array, asked: Sequence[int]) -> Array:
    """Turn a table with axes in index order to the order asked."""
    return table.transpose(np.argsort(np.argsort(asked)))


Store = TypeVar("Store", bound=TableStore)


def add(one: Store, other: Store) -> Store:
    """Add the counts of tables that both have, and keep those that only one has.

    Examples
    --------
    >>> domain = Domain.of({"a": 2, "b": 2})
    >>> one = TableStore(domain, ((0,),), [3, 1])
    >>> both = add(one, TableStore(domain, ((1,), (0,)), [2, 2, 1, 1]))
    >>> both.subsets, both["a"]
    ((('a',), ('b',)), array([4., 2.]))
    """
    if one.domain != other.domain:
        raise ValueError(
            "Marginals can be added only over the same domain: count both with domain=, so that "
            "variables and levels agree."
        )
    moments = one.moments + tuple(m for m in other.moments if m not in one.moments)
    _check_same_tables(one, other)
    if one.index_subsets == other.index_subsets:
        return replace(one, flat=one.flat + other.flat, moments=moments)
    extra = [i for i, s in enumerate(other.index_subsets) if s not in one.positions]
    flat = np.concatenate([one.flat, *(other.counts_of(i).ravel() for i in extra)])
    for subset, j in other.positions.items():
        i = one.positions.get(subset)
        if i is not None:
            flat[one.starts[i] : one.starts[i + 1]] += other.counts_of(j).ravel()
    return replace(
        one,
        index_subsets=one.index_subsets + tuple(other.index_subsets[i] for i in extra),
        flat=flat,
        table_weight=np.concatenate([one.table_weight, other.table_weight[extra]]),
        moments=moments,
        counted=np.concatenate([one.counted, other.counted[extra]]),
        unknown=_both_unknown(one, other, extra),
    )


def _both_unknown(one: TableStore, other: TableStore, extra: list[int]) -> UnknownCells | None:
    """Cells that are not known of one, and of those tables of the other that come behind them."""
    parts = [one.unknown] if one.unknown is not None else []
    start = len(one.flat)
    for i in extra:
        cells = other.unknown_of(i)
        if cells is not None:
            parts.append(cells.shifted(start))
        start += int(other.starts[i + 1] - other.starts[i])
    return UnknownCells.together(parts)


def _check_same_tables(one: TableStore, other: TableStore) -> None:
    """Tables that both have must be counts of equal weight: nothing else adds up."""
    for subset, j in other.positions.items():
        i = one.positions.get(subset)
        if i is None:
            continue
        if not (one.counted[i] and other.counted[j]):
            raise ValueError(
                f"Both have a table of {one.subsets[i]}, and shares do not add up: multiply them "
                "by their numbers of records and give counts, or leave one of them out."
            )
        if one.unknown_of(i) is not None or other.unknown_of(j) is not None:
            raise ValueError(
                f"Both have a table of {one.subsets[i]}, and cells of it are not known in one of "
                "them: what is not known does not add up. Leave one of them out."
            )
        if one.table_weight[i] != other.table_weight[j]:
            raise ValueError(
                f"Table {one.subsets[i]} has table_weight {one.table_weight[i]:g} here and "
                f"{other.table_weight[j]:g} there: give both the same."
            )
