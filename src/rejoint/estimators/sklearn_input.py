"""Convert the input of scikit-learn users: X into records, solvers, random states."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from rejoint.arrays import FloatArray, IntArray
from rejoint.domain.domain import Domain
from rejoint.estimation.data import InMemory
from rejoint.factorization.fit_tables import Auto
from rejoint.factorization.smooth import Smooth
from rejoint.records.frames import Frame, refuse_non_table, take_apart
from rejoint.records.infer import DEFAULT_RULE
from rejoint.records.records import BaseRecords, Records, drop_columns
from rejoint.records.sparse import SparseRecords, as_records
from rejoint.records.survey_design import NO_WEIGHTS, WeightArguments

#: Parameters of estimators that say what columns are; see :meth:`Records.of`.
DECLARED = ("kinds", "levels", "bins", "not_applicable", "missing_level")


def read(
    estimator: Any, X: Any, weights: WeightArguments = NO_WEIGHTS, *, reset: bool
) -> BaseRecords:
    """Read X into records, in the domain of ``estimator.pmf_`` unless ``reset``."""
    if reset:
        return read_new(estimator, check_columns(estimator, X, reset=True), weights)
    domain = estimator.pmf_.domain
    return as_records(select_columns(estimator, X, domain), domain=domain, weights=weights)


def read_new(estimator: Any, X: Any, weights: WeightArguments = NO_WEIGHTS) -> BaseRecords:
    """Read X, whose columns are checked, into records of a new domain."""
    if weights.is_survey:
        weights.check_arrays("X has the columns of the model alone;")
    if not has_own_names(X):
        X, weights, _ = drop_weightless(X, weights)
    declared = {name: getattr(estimator, name) for name in DECLARED}
    if not hasattr(estimator, "feature_names_in_"):  # columns are found by position
        declared["rule"] = DEFAULT_RULE.without_names()
    return as_records(X, weights=weights, **declared)


def check_columns(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return X once its columns are noted (``reset``) or checked against the fit.

    Columns of arrays and frames go by scikit-learn's rules. Records, dicts of columns and lists of
    dicts go by name instead: a column that they lack is missing.
    """
    if has_own_names(X):
        if reset:
            is_records = isinstance(X, Records | SparseRecords)
            names = X.names if is_records else take_apart(X).names or ()
            estimator.n_features_in_ = len(names)
            estimator.feature_names_in_ = np.array(names, dtype=object)
        return X
    if not is_frame(X):
        refuse_non_table(X)
        array = check_array(X, dtype=None, ensure_all_finite=False)
        # A list of rows keeps its own cells: as an array, numbers among text would become text.
        X = X if isinstance(X, list | tuple) else array
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return X


def has_own_names(X: Any) -> bool:
    """Whether X has names that scikit-learn does not look at."""
    if isinstance(X, Records | SparseRecords | Mapping):
        return not hasattr(X, "toarray")  # a sparse matrix may be a mapping, too
    return isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], Mapping)


def is_frame(X: Any) -> bool:
    """Whether X is a frame of some library, whose columns have types of their own."""
    is_column = hasattr(X, "dtype") or hasattr(X, "type")  # a series or array of Arrow's
    return hasattr(X, "columns") or (hasattr(X, "__arrow_c_stream__") and not is_column)


def select_columns(estimator: Any, X: Any, domain: Domain) -> Any:
    """Return X, checked, without the columns that the fit left out.

    Columns of an array get the names that the fit saw; where it saw none, those of a frame go by
    position.
    """
    X = check_columns(estimator, X, reset=False)
    names = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    if not names:
        return dict(zip(domain.names, take_apart(X).columns, strict=True)) if is_frame(X) else X
    left_out = [name for name in names if name not in domain]
    if left_out and not (is_frame(X) or has_own_names(X)):
        X = dict(zip(names, take_apart(X).columns, strict=True))
    return drop_columns(X, left_out) if left_out else X


def drop_weightless(X: Any, weights: WeightArguments) -> tuple[Any, WeightArguments, FloatArray]:
    """Drop the rows of weight zero, so that levels which occur in these alone are not read.

    Also return the weights of the rest, and the weight of each row of X as it was given.
    """
    frame = take_apart(X)
    if not weights.given:
        return X, weights, np.ones(frame.rows)
    raw = weights.split(frame)[1].raw
    rows = np.flatnonzero(raw)
    if len(rows) in (0, len(raw)):  # reading refuses records without any weight
        return X, weights, raw
    columns = [take_rows(column, rows) for column in frame.columns]
    given = {k: v if isinstance(v, str) else np.asarray(v)[rows] for k, v in weights.given.items()}
    return Frame(frame.all_names, columns, len(rows)), WeightArguments(**given), raw


def take_rows(column: Any, rows: IntArray) -> Any:
    """Take some values of a column of any library."""
    if hasattr(column, "iloc"):
        return column.iloc[rows]
    for take in ("take", "gather"):  # NumPy and Arrow; polars
        if hasattr(column, take):
            return getattr(column, take)(rows)
    return [column[row] for row in rows]


def is_for_records(solver: Any) -> bool:
    """Whether a solver works on records and not on tables counted from them."""
    if isinstance(solver, str):
        return solver in ("auto", "ml", "map", "bayes")
    # Solvers for records and for tables have the same methods: one for tables says what it needs.
    known = {*dir(InMemory), *InMemory.__dataclass_fields__}
    has_all = all(need.split(".")[0] in known for need in getattr(solver, "needs", ()))
    return has_all and not isinstance(solver, Auto | Smooth)


def generator(random_state: Any) -> np.random.Generator:
    """Return a generator from anything that scikit-learn takes as a random state."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(int(random_state.randint(2**31)))
    return np.random.default_rng(random_state)


def accept_mixed_columns(tags: Any) -> Any:
    """Tell scikit-learn that columns may hold text, categories and missing values."""
    tags.input_tags.categorical = True
    tags.input_tags.string = True
    tags.input_tags.allow_nan = True
    return tags


def weights_of(records: BaseRecords) -> FloatArray:
    """Return the weight of each record."""
    weight = records.sample_weight
    return np.ones(len(records)) if weight is None else weight
