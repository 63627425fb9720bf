"""The counts beside a model's answers, as its file has them: small tables, or the records.

``counts`` in the JSON has the ``total`` of the records and either ``subsets`` (the positions of the
variables of each table, increasing) and ``rounding`` (what the numbers of the tables are multiples
of), or nothing else. The arrays are ``count_cells`` (one table after another in C order), or
``record_codes`` (a row for each record, -1 where a value is missing) and ``record_weights``, if
records have weights; in text they are lists. Files may come from strangers: who uses the arrays
checks that codes are levels.
"""

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain
from rejoint.io.saved_tables import positions
from rejoint.io.schema import LARGEST, SchemaError, list_of, number, object_of
from rejoint.text import plural

FloatArray = NDArray[np.float64]

COUNT_ARRAYS = {"count_cells": "<f8", "record_codes": "<i4", "record_weights": "<f8"}


class SavedCounts(NamedTuple):
    """The counts of a model file; the module lists the parts.

    Examples
    --------
    >>> SavedCounts(3.0, ((0,),), np.array([1.0, 2.0])).rounding
    0
    """

    total: float
    subsets: tuple[tuple[int, ...], ...] = ()
    cells: FloatArray | None = None
    rounding: int = 0
    codes: NDArray[Any] | None = None
    weight: FloatArray | None = None


def counts_to_plain(counts: SavedCounts) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the JSON object and the arrays of counts.

    Examples
    --------
    >>> counts_to_plain(SavedCounts(3.0, ((0,),), np.array([1.0, 2.0])))[0]
    {'total': 3.0, 'subsets': [[0]], 'rounding': 0}
    """
    plain: dict[str, Any] = {"total": counts.total}
    if counts.codes is None:
        plain |= {"subsets": [list(subset) for subset in counts.subsets]}
        plain |= {"rounding": counts.rounding}
    arrays = dict(zip(COUNT_ARRAYS, (counts.cells, counts.codes, counts.weight), strict=True))
    return plain, {
        name: np.asarray(array, COUNT_ARRAYS[name])
        for name, array in arrays.items()
        if array is not None
    }


def counts_of_plain(plain: Any, arrays: Mapping[str, NDArray[Any]], domain: Domain) -> SavedCounts:
    """Return the counts of a JSON object and arrays; a SchemaError says what is wrong with them.

    Examples
    --------
    >>> counts_of_plain({"total": 3, "subsets": [[0]]}, {}, Domain.of({"a": 2}))
    Traceback (most recent call last):
    ...
    rejoint.io.schema.SchemaError: its counts have 2 cells, not 0
    """
    parts = {"subsets": list_of(positions(domain)), "rounding": number(0, whole=True)}
    object_of({"total": number(0.0)}, parts)(plain, "its counts")
    cells, codes, weight = (arrays.get(name) for name in COUNT_ARRAYS)
    if codes is not None:
        if codes.ndim != 2 or codes.shape[1] != len(domain):
            raise SchemaError(f"its records have codes of shape {codes.shape}")
        if weight is not None and weight.shape != codes.shape[:1]:
            raise SchemaError(f"its records have weights of shape {weight.shape}")
        return SavedCounts(plain["total"], codes=codes.astype(np.int32), weight=weight)
    subsets = tuple(map(tuple, plain.get("subsets", ())))
    size = sum(prod(domain.shape[n] for n in subset) for subset in subsets)
    cells = np.empty(0) if cells is None else cells
    if cells.shape != (size,):
        raise SchemaError(f"its counts have {plural(size, 'cell')}, not {cells.size:,}")
    if not ((cells >= 0.0) & (cells < LARGEST)).all():
        raise SchemaError("a cell of its counts is not a count")
    return SavedCounts(plain["total"], subsets, cells, plain.get("rounding", 0))
