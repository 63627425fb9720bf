"""In which cell of each table a row falls."""

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.labels import show
from rejoint.marginals import Marginals
from rejoint.records import Records

__all__ = ["over_domain", "places"]

Places = NDArray[np.int64]


def over_domain(records: Records, tables: Marginals) -> Records:
    """The variables of the tables, in their order and with their levels.

    Examples
    --------
    >>> tables = Marginals.from_tables({"a": {"y": 1, "x": 3}})
    >>> over_domain(Records.of({"b": [1, 2], "a": ["x", "y"]}), tables).codes.T
    array([[1, 0]], dtype=int16)
    """
    held = dict.fromkeys(name for names in tables.subsets for name in names)
    absent = [name for name in held if name not in records.domain]
    if absent:
        raise ValueError(
            f"The tables speak of {show(absent)}, which the records do not have: leave these "
            "tables out, or add the columns."
        )
    return Records.of(records.project(list(held)), domain=tables.domain)


def places(codes: NDArray[np.signedinteger], tables: Marginals) -> Places:
    """Cell of each row in each table, (tables, rows); -1 where a cell of the row is missing.

    Examples
    --------
    >>> tables = Marginals.from_tables({("a", "b"): [[1, 2], [3, 4]]})
    >>> places(np.array([[0, 1], [1, 1], [1, -1]]), tables)
    array([[ 1,  3, -1]])
    """
    found = np.empty((len(tables), len(codes)), dtype=np.int64)
    for i, subset in enumerate(tables.index_subsets):
        shape = [tables.domain.shape[n] for n in subset]
        part = codes[:, list(subset)].astype(np.int64)
        gone = (part < 0).any(axis=1)
        at = np.ravel_multi_index(tuple(np.maximum(part, 0).T), shape)
        found[i] = np.where(gone, -1, at)
    return found
