"""Adding up tables: of chunks of records, of surveys, of other subsets."""

from dataclasses import replace
from typing import TypeVar

import numpy as np

from rejoint.tables.store import TableStore

Store = TypeVar("Store", bound=TableStore)


def add(one: Store, other: Store) -> Store:
    """Add the counts of tables that both have, and keep those that only one has.

    Examples
    --------
    >>> from rejoint.domain import Domain
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
    )


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
        if one.table_weight[i] != other.table_weight[j]:
            raise ValueError(
                f"Table {one.subsets[i]} has table_weight {one.table_weight[i]:g} here and "
                f"{other.table_weight[j]:g} there: give both the same."
            )
