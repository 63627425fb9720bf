"""What codes stand for: labels, and for bins values that were seen in them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain import Variable
from rejoint.domain.labels import is_number
from rejoint.domain.levels import label_array
from rejoint.estimators.imputation.cells import numbers_of
from rejoint.records import Records
from rejoint.records.frames import take_apart

__all__ = ["donors", "has_mean", "labels_of"]

#: Values kept of each bin, evenly spaced in rank: what a draw from the bin is taken from.
DONORS = 101

Array = NDArray[np.float64]


def has_mean(variable: Variable) -> bool:
    """Whether the levels are numbers; truth values are none."""
    if variable.kind == "binned":
        return True
    return all(is_number(level) and not isinstance(level, bool) for level in variable.levels)


def donors(records: Records, X: Any) -> dict[int, list[Array]]:
    """Values seen in each bin of each binned variable, evenly spaced in rank."""
    binned = [n for n, v in enumerate(records.domain) if v.kind == "binned"]
    if not binned or isinstance(X, Records):
        return {}
    columns = take_apart(X).columns
    kept = {}
    for n in binned:
        variable = records.domain[n]
        values = numbers_of(columns[n], variable.name)
        codes = variable.encode(values)
        kept[n] = [thinned(values[codes == k]) for k in range(len(variable))]
    return kept


def thinned(values: Array) -> Array:
    """At most ``DONORS`` of some values, evenly spaced in rank."""
    ordered = np.sort(values[np.isfinite(values)])
    if len(ordered) <= DONORS:
        return ordered
    return np.asarray(ordered[np.linspace(0, len(ordered) - 1, DONORS).round().astype(int)])


def labels_of(
    variable: Variable,
    codes: NDArray[Any],
    donors: list[Array] | None,
    rng: np.random.Generator | None,
) -> NDArray[Any]:
    """Labels of codes; for bins a value seen in them, the median or any."""
    if variable.kind != "binned":
        return np.asarray(label_array(variable.levels)[codes])
    values: Array = variable.numeric[codes]
    for k, seen in enumerate(donors or []):
        mine = np.flatnonzero(codes == k)
        if len(seen) and len(mine):
            places = len(seen) // 2 if rng is None else rng.integers(len(seen), size=len(mine))
            values[mine] = seen[places]
    return values
