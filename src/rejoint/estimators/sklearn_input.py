"""X as users of scikit-learn pass it, read into records; its columns checked as they expect."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from rejoint.domain.domain import Domain
from rejoint.records.frames import refuse_non_table, take_apart
from rejoint.records.records import Records, as_part_weight
from rejoint.records.sparse import SparseRecords, as_records


def read(
    estimator: Any, X: Any, sample_weight: Any = None, *, reset: bool
) -> Records | SparseRecords:
    """Read X into records, in the domain of ``estimator.pmf_`` unless ``reset``.

    Columns of arrays and frames are checked against the fit by scikit-learn's rules. Records,
    dicts of columns and lists of dicts go by name instead: what they lack is missing.
    """
    domain = None if reset else estimator.pmf_.domain
    if isinstance(X, SparseRecords) or by_name(X):
        records = as_records(X, domain=domain, sample_weight=sample_weight)
        if reset:
            estimator.n_features_in_ = len(records.names)
            estimator.feature_names_in_ = np.array(records.names, dtype=object)
        return records
    if not is_frame(X):
        X = checked_array(X)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    if domain is not None and not hasattr(estimator, "feature_names_in_"):
        X = renamed(X, domain)
    if reset:
        X, sample_weight = without_idle(X, sample_weight)
    return Records.of(X, domain=domain, sample_weight=sample_weight)


def by_name(X: Any) -> bool:
    """Whether X has names that scikit-learn does not look at."""
    if isinstance(X, Records | Mapping):
        return not hasattr(X, "toarray")  # a sparse matrix may be a mapping, too
    return isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], Mapping)


def is_frame(X: Any) -> bool:
    """Whether X is a frame of some library, whose columns have types of their own."""
    return hasattr(X, "columns") or hasattr(X, "__arrow_c_stream__")


def checked_array(X: Any) -> Any:
    """An array as it is; refused in scikit-learn's words if it cannot be one of records."""
    refuse_non_table(X)
    array = check_array(X, dtype=None, ensure_all_finite=False)
    # A list of rows keeps its own cells: as an array, numbers among text would become text.
    return X if isinstance(X, list | tuple) else array


def renamed(X: Any, domain: Domain) -> Any:
    """Columns by position, where the fit saw no names."""
    if not is_frame(X):
        return X
    return dict(zip(domain.names, take_apart(X).columns, strict=True))


def without_idle(X: Any, sample_weight: Any) -> tuple[Any, Any]:
    """Without the rows of weight zero, so that levels which only they have are none."""
    if sample_weight is None:
        return X, sample_weight
    weight = as_part_weight(sample_weight, len(X))
    rows = np.flatnonzero(weight)
    if len(rows) in (0, len(weight)):  # none at all is refused later on
        return X, weight
    names, columns, _ = take_apart(X)
    kept = [take_rows(column, rows) for column in columns]
    return dict(zip(names or (f"x{n}" for n in range(len(kept))), kept, strict=True)), weight[rows]


def take_rows(column: Any, rows: NDArray[np.intp]) -> Any:
    """Some cells of a column of any library."""
    if hasattr(column, "iloc"):
        return column.iloc[rows]
    for take in ("take", "gather"):  # NumPy and Arrow; polars
        if hasattr(column, take):
            return getattr(column, take)(rows)
    return [column[row] for row in rows]


def generator(random_state: Any) -> np.random.Generator:
    """A generator from anything that scikit-learn takes as a random state."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(int(random_state.randint(2**31)))
    return np.random.default_rng(random_state)
