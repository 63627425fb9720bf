"""Features of a classifier: X read into records, its columns of numbers cut into bins."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from rejoint.domain import Domain
from rejoint.domain.bins import quantile_edges
from rejoint.domain.columns import Codes, Numbers
from rejoint.domain.series import read_column
from rejoint.estimators.reading import (
    by_name,
    checked_array,
    is_frame,
    renamed,
    take_rows,
)
from rejoint.records import Records
from rejoint.records.checks import checked_weight
from rejoint.records.frames import take_apart

__all__ = ["read_features", "read_rows"]

#: Different numbers above which a column is cut, and the least and largest number of bins.
FEW, LEAST, MOST = 15, 4, 20


def read_features(
    estimator: Any, X: Any, sample_weight: Any
) -> tuple[Records, NDArray[np.float64]]:
    """Records of the rows that have weight, and the weight of all rows."""
    if isinstance(X, Records):
        names_in(estimator, X.names)
        weight = weight_of(sample_weight if sample_weight is not None else X.sample_weight, len(X))
        there = weight > 0
        return Records(X.domain, X.codes[there], weight[there]), weight
    if not by_name(X):
        if not is_frame(X):
            X = checked_array(X)
        validate_data(estimator, X, reset=True, skip_check_array=True)
    names, columns, rows = take_apart(X)
    if by_name(X):
        names_in(estimator, names or ())
    weight = weight_of(sample_weight, rows)
    if not weight.all():
        kept = np.flatnonzero(weight)
        columns = [take_rows(column, kept) for column in columns]
    table = dict(zip(names or (f"x{n}" for n in range(len(columns))), columns, strict=True))
    bins = estimator.bins
    if bins == "auto" or isinstance(bins, int | np.integer):
        bins = cuts(table, bins, weight[weight > 0])
    mass = None if sample_weight is None else weight[weight > 0]
    return Records.of(table, bins=bins, sample_weight=mass), weight


def read_rows(estimator: Any, X: Any, domain: Domain) -> Codes:
    """Codes of rows to be judged, in the domain of the features."""
    if by_name(X):
        return Records.of(X, domain=domain).codes
    if not is_frame(X):
        X = checked_array(X)
    validate_data(estimator, X, reset=False, skip_check_array=True)
    if not hasattr(estimator, "feature_names_in_"):
        X = renamed(X, domain)
    return Records.of(X, domain=domain).codes


def cuts(
    table: dict[str, Any], wanted: Any, weight: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Edges of quantile bins for each column with many different numbers.

    Examples
    --------
    >>> import numpy as np
    >>> cuts({"a": np.arange(100) / 7, "b": ["x"] * 100}, 4, np.ones(100))
    {'a': array([-inf,  3.5,  7.1, 10.7,  inf])}
    """
    total = float(weight.sum())
    count = int(np.clip(2.0 * np.cbrt(total), LEAST, MOST)) if wanted == "auto" else int(wanted)
    edges = {}
    for name, column in table.items():
        cells = read_column(column, name)
        if isinstance(cells, Numbers) and len(np.unique(cells.present())) > FEW:
            values = cells.floats()
            there = np.isfinite(values)
            edges[name] = quantile_edges(values[there], count, weight[there])
    return edges


def names_in(estimator: Any, names: Any) -> None:
    """Take down the columns of data that scikit-learn does not look at."""
    estimator.n_features_in_ = len(names)
    estimator.feature_names_in_ = np.array(names, dtype=object)


def weight_of(sample_weight: Any, rows: int) -> NDArray[np.float64]:
    """The weight of each row, one by default."""
    if sample_weight is None:
        return np.ones(rows)
    weight = checked_weight(sample_weight, rows)
    if not weight.any():
        raise ValueError("sample_weight is zero in every row: nothing would count.")
    return weight
