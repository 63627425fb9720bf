"""How much each given table counts: as said, by its standard error, or the same."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.marginals.forms import names_of
from rejoint.marginals.reading import ReadTables

__all__ = ["weights_of_errors", "weights_of_tables"]

Array = NDArray[np.float64]


def weights_of_tables(given: Mapping[Any, float] | float | None, read: ReadTables) -> Array:
    """Return one weight for each table: as given, else by its standard error, else 1.

    Examples
    --------
    >>> from rejoint.marginals.reading import read_tables
    >>> read = read_tables({"a": [1, 2], "b": [1, 2]}, None, "auto")
    >>> weights_of_tables({"b": 3.0}, read)
    array([1., 3.])
    """
    weight = weights_of_errors(np.array(read.errors))
    if isinstance(given, Mapping):
        position = {frozenset(s): i for i, s in enumerate(read.subsets)}
        for key, value in given.items():
            subset = frozenset(read.domain.indices(names_of(key)))
            if subset not in position:
                raise ValueError(f"table_weight names {key!r}, but no such table is given.")
            weight[position[subset]] = value
    elif given is not None:
        weight[:] = given
    if not np.all(np.isfinite(weight)) or np.any(weight < 0):
        raise ValueError(f"table_weight must be finite and not negative, got {given!r}.")
    return weight


def weights_of_errors(errors: Array) -> Array:
    """Weights in inverse proportion to the variance of a cell; 1 for the middle of the tables.

    Tables without a standard error count as the middle one.

    Examples
    --------
    >>> weights_of_errors(np.array([0.01, 0.02, np.nan]))
    array([1.6, 0.4, 1. ])
    """
    weight = np.ones(len(errors))
    there = errors > 0  # false for NaN
    if there.any():
        precision = 1.0 / np.square(errors[there])
        weight[there] = precision / np.median(precision)
    return weight
