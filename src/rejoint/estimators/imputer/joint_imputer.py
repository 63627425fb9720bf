"""JointImputer: missing values of any table, filled from the joint model of its columns."""

from typing import Any, Literal, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from rejoint.arrays import BoolArray, Codes, FloatArray
from rejoint.domain.columns import Coded, Column, read_column
from rejoint.domain.domain import Domain
from rejoint.domain.variable import code_dtype, encode_column, unknown_text
from rejoint.estimators.imputer.fill import (
    Filled,
    fill,
    find_donors,
    labels_of,
    level_probabilities,
    numeric_values,
)
from rejoint.estimators.imputer.patch import Patch, complete, has_categories, numbers_like
from rejoint.estimators.joint_pmf import fit_joint
from rejoint.estimators.sklearn_input import accept_mixed_columns, check_columns, generator, read
from rejoint.messages import remark
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.encode import codes_of_matrix
from rejoint.records.frames import Frame, refuse_non_table, take_apart
from rejoint.records.records import Records
from rejoint.records.survey_design import WeightArguments
from rejoint.solver.result import FitResult
from rejoint.text import plural

#: Columns with unknown levels that a warning names one by one.
MOST_NAMED = 5

Method = Literal["mode", "draw", "expect"]


class JointImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Fill missing values from the joint probability of all columns.

    Parameters
    ----------
    rank : int or "auto"
        Number of hidden classes; by default chosen by :func:`rejoint.rank.select`.
    solver : str or solver object
        As for :class:`JointPMF`.
    method : {"mode", "draw", "expect"}
        What a missing cell gets, given the observed cells of its row. ``"mode"`` is its most
        probable value; ``"draw"`` is a value drawn with its probability, jointly for all missing
        cells of a row; ``"expect"`` is the expectation in columns of numbers (other than
        categories) and the mode in others.
    joint : bool
        With ``method="mode"``: fill in the most probable combination of all missing cells of a
        row instead of the most probable value of each. It is found by branch and bound, one search
        for each distinct row (some milliseconds). If a search ends early, a warning says how many
        rows are not proven to be the best.
    n_init : int
        Starts, or chains of posterior draws.
    random_state : int, RandomState, Generator or None
        Source of randomness.

    Attributes
    ----------
    pmf_ : LowRankPMF
        One model of rank ``rank_``, its classes in decreasing order of weight.
    rank_ : int
        Its number of classes.
    result_ : FitResult
        The fit; ``result_.choice`` says what was chosen and why.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Their names, where they have any.

    See Also
    --------
    JointPMF : The joint itself.

    Notes
    -----
    Observed cells are never changed, even where they hold a level that the fit has not seen: such a
    cell says nothing about the others, and a warning says so. Values may be missing at random:
    whether a cell is missing may depend on observed cells.

    Where the fit is by Bayes, cells are filled by the posterior mean.

    Columns of numbers with many values are binned (:class:`Records` says how). A filled cell gets
    the median of the values seen in its bin, a draw one of those values, and an expectation the
    mean over the bins. In a column of integers the expectation is rounded.

    Examples
    --------
    >>> import pandas as pd, rejoint as rj
    >>> X = pd.DataFrame({"sky": ["grey", "blue"] * 30, "umbrella": [True, False] * 30})
    >>> X.loc[0, "sky"] = None
    >>> rj.JointImputer(random_state=0).fit_transform(X).head(2)
        sky  umbrella
    0  grey      True
    1  blue     False
    """

    n_features_in_: int

    def __init__(
        self,
        rank: int | Literal["auto"] = "auto",
        solver: Any = "auto",
        method: Method = "mode",
        joint: bool = False,
        n_init: int = 3,
        random_state: Any = None,
    ) -> None:
        self.rank = rank
        self.solver = solver
        self.method = method
        self.joint = joint
        self.n_init = n_init
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        survey_weight: Any = None,
        strata: Any = None,
        clusters: Any = None,
    ) -> Self:
        """Estimate the joint of the columns.

        Parameters
        ----------
        X : table of shape (rows, columns)
            A pandas, polars or pyarrow frame, a NumPy array, a list of rows or of dicts, a dict
            of columns, or :class:`Records`, which say how columns are to be read.
        y : ignored
            There by convention.
        sample_weight : array of shape (rows,), optional
            How many times each row counts.
        survey_weight, strata, clusters : arrays of shape (rows,), optional
            Those of a survey; see :meth:`Records.of`.

        Returns
        -------
        self

        Examples
        --------
        >>> import rejoint as rj
        >>> X = [["a", 0], ["b", 1], ["a", None]] * 20
        >>> rj.JointImputer(random_state=0).fit(X).transform(X)[2]
        array(['a', 0], dtype=object)
        """
        self._check_method()
        refuse_non_table(X)
        weights = WeightArguments(sample_weight, survey_weight, strata, clusters)
        records = read(self, X, weights, reset=True)
        assert isinstance(records, Records)
        result = fit_joint(records, self.rank, self.solver, self.n_init, self.random_state)
        self.result_: FitResult = result
        self.pmf_: LowRankPMF = result.pmf
        self.rank_ = result.pmf.rank
        self._donors = find_donors(records, X)
        return self

    def transform(self, X: Any) -> Any:
        """Fill the missing cells of a table.

        Parameters
        ----------
        X : table
            As for :meth:`fit`.

        Returns
        -------
        table
            Of the kind that X is, or the one that ``set_output`` asks for.

        Examples
        --------
        >>> import numpy as np, rejoint as rj
        >>> X = np.array([[0.0, 1], [1, 0], [np.nan, 0]] * 20)
        >>> rj.JointImputer(random_state=0).fit_transform(X)[2]
        array([1., 0.])
        """
        return self.impute(X)

    def impute(self, X: Any, *, n_draws: int | None = None, confidence: bool = False) -> Any:
        """Fill the missing cells of a table, once or several times.

        Parameters
        ----------
        X : table
            As for :meth:`fit`.
        n_draws : int, optional
            Multiple imputation: this many completed tables, whatever ``method`` is. Each is
            drawn from another posterior draw of the model, so that the tables differ by as much
            as the data leave open. Where there are no posterior draws (``result_.posterior`` is
            None: maximum likelihood, or tables), the model is the same for all.
        confidence : bool
            Return the probability of each filled value, too.

        Returns
        -------
        table, list of tables, or (table, probabilities)
            Tables have the type, the dtypes and the categories of X; a category is added where
            the value is none of them. Probabilities are a frame of the same library, or an
            array, with 1 for every cell that is there; of an expectation, they are those of the
            most probable level.

        Examples
        --------
        >>> import polars as pl, rejoint as rj
        >>> X = pl.DataFrame({"a": ["x", "y", "x", None], "b": [1, 2, 1, 2]})
        >>> imputer = rj.JointImputer(rank=2, solver="ml", random_state=0).fit(X)
        >>> filled, probability = imputer.impute(X, confidence=True)
        >>> filled["a"][3], round(probability["a"][3], 2)
        ('y', 1.0)
        >>> len(imputer.impute(X, n_draws=5))
        5
        """
        check_is_fitted(self)
        self._check_method()
        if n_draws is None:
            return self._fill_once(X, confidence)
        if confidence:
            raise ValueError(
                "impute: probabilities go with one table; ask for them without n_draws."
            )
        if not isinstance(n_draws, int | np.integer) or n_draws < 1:
            raise ValueError(
                f"n_draws must be a whole number of tables, at least 1; got {n_draws!r}."
            )
        models = list(self.pmf_.draws.thin(int(n_draws))) or [self.pmf_]
        table, rng = encode_table(self, X), generator(self.random_state)
        tables = []
        for k in range(n_draws):
            filled = fill(models[k % len(models)], table.codes, table.gone, rng=rng)
            tables.append(self._complete(X, table, filled, rng))
        return tables

    def distribution(self, X: Any, name: str) -> FloatArray:
        """Probability of each level of a column, given the other cells of each row.

        What the column itself holds is not looked at, so that values can be checked, too.

        Parameters
        ----------
        X : table
            As for :meth:`fit`.
        name : str
            The column; ``x0, x1, ...`` where columns have no names.

        Returns
        -------
        ndarray (rows, levels)
            In the order of ``pmf_.domain[name].levels``.

        Examples
        --------
        >>> import rejoint as rj
        >>> X = {"a": ["x", "y"] * 30, "b": [1, 2] * 30}
        >>> imputer = rj.JointImputer(rank=2, solver="ml", random_state=0).fit(X)
        >>> imputer.distribution({"b": [1]}, "a").round(2)
        array([[1., 0.]])
        """
        check_is_fitted(self)
        n = self.pmf_.domain.index(name)
        return level_probabilities(self.pmf_, encode_table(self, X).codes, n)

    def _fill_once(self, X: Any, confidence: bool) -> Any:
        table = encode_table(self, X)
        rng = generator(self.random_state) if self.method == "draw" else None
        filled = fill(
            self.pmf_,
            table.codes,
            table.gone,
            rng=rng,
            joint=self.joint,
            values=numeric_values(self.pmf_.domain) if self.method == "expect" else None,
            confidence=confidence,
        )
        if filled.unproven:
            remark(
                f"The joint mode of {plural(filled.unproven, 'row')} could not be proven to be the "
                "best; joint=False fills cell by cell."
            )
        completed = self._complete(X, table, filled, rng)
        if not confidence or isinstance(X, Records):
            return (completed, filled.probability) if confidence else completed
        assert filled.probability is not None
        with_ones = np.hstack([filled.probability, np.ones((table.frame.rows, 1))])
        return completed, numbers_like(X, table.frame, with_ones[:, table.variables])

    def _complete(
        self, X: Any, table: "EncodedTable", filled: Filled, rng: np.random.Generator | None
    ) -> Any:
        """Return X with the filled cells, in its own library and dtypes."""
        if isinstance(X, Records):
            return Records(self.pmf_.domain, filled.codes, X.sample_weight)
        patches = {}
        for position, n in enumerate(table.variables):
            if n < 0 or not table.gone[:, n].any():
                continue
            gone, values = table.gone[:, n], filled.expected.get(n)
            if values is None or has_categories(table.frame.columns[position]):
                variable, donors = self.pmf_.domain[n], self._donors.get(n)
                values = labels_of(variable, filled.codes[gone, n], donors, rng)
            patches[position] = Patch(gone, values)
        return complete(X, table.frame, patches)

    def _check_method(self) -> None:
        if self.method not in ("mode", "draw", "expect"):
            raise ValueError(f"method must be 'mode', 'draw' or 'expect', not {self.method!r}.")
        if self.joint and self.method != "mode":
            raise ValueError(
                f"joint=True asks for the most probable combination, method={self.method!r} for "
                "something else: draws are joint anyway, expectations are of one cell each."
            )

    def __sklearn_tags__(self) -> Any:
        tags = accept_mixed_columns(super().__sklearn_tags__())
        tags.transformer_tags.preserves_dtype = ["float64", "float32", "int64", "int32"]
        return tags


class EncodedTable(NamedTuple):
    """A table with its own columns, and as codes.

    Attributes
    ----------
    frame : Frame
        The columns as they were given.
    codes : ndarray (rows, variables)
        Level of each cell; -1 where missing or unknown to the model.
    gone : ndarray of bool (rows, variables)
        Cells that are missing in the table itself, and in a column that it has.
    variables : list of int
        Variable of each column of the frame, -1 for a column that the model does not know.
    """

    frame: Frame
    codes: Codes
    gone: BoolArray
    variables: list[int]


def encode_table(estimator: Any, X: Any) -> EncodedTable:
    """Encode X in the domain of a fitted estimator, keeping its columns."""
    domain: Domain = estimator.pmf_.domain
    if isinstance(X, Records):
        codes = Records.of(X, domain=domain).codes
        return EncodedTable(Frame(domain.names, [], len(codes)), codes, codes < 0, [])
    check_columns(estimator, X, reset=False)
    frame = take_apart(X)
    named = frame.names is not None and hasattr(estimator, "feature_names_in_")
    names = frame.names if named and frame.names is not None else domain.names
    variables = [domain.index(name) if name in domain else -1 for name in names]
    quick = codes_of_matrix(X, domain) if type(X) is np.ndarray and X.ndim == 2 else None
    if quick is not None:  # NaN is all that is missing
        return EncodedTable(frame, quick, quick < 0, variables)
    codes = np.full((frame.rows, len(domain)), -1, dtype=code_dtype(max(domain.shape)))
    gone = np.zeros(codes.shape, dtype=bool)
    notes = []
    for n, raw in zip(variables, frame.columns, strict=True):
        if n < 0:
            continue
        column = read_column(raw, domain[n].name)
        codes[:, n], unknown = encode_column(domain[n].levels, column)
        gone[:, n] = codes[:, n] < 0
        if unknown is not None:
            gone[:, n] = is_missing_in(column)
            notes.append(unknown_text(domain[n].name, domain[n].levels, unknown))
    if notes:
        more = f" And so in {len(notes) - MOST_NAMED} more." if len(notes) > MOST_NAMED else ""
        remark(" ".join(notes[:MOST_NAMED]).replace("missing now", "left as they are") + more)
    return EncodedTable(frame, codes, gone, variables)


def is_missing_in(column: Column) -> BoolArray:
    """Whether each cell of a column is missing."""
    if isinstance(column, Coded):
        return np.asarray(column.codes < 0)
    empty = np.zeros(len(column), dtype=bool) if column.missing is None else column.missing
    return empty | np.isnan(column.values) if column.values.dtype.kind == "f" else empty
