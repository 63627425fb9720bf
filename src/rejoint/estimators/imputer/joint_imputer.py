"""JointImputer: missing cells of any table filled from the joint of its columns."""

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from rejoint.estimation.estimate import estimate
from rejoint.estimators.imputer.fill import (
    Cells,
    Filled,
    donors,
    fill,
    has_mean,
    labels_of,
    level_probabilities,
    read_cells,
)
from rejoint.estimators.imputer.patch import Patch, complete, has_categories, numbers_like
from rejoint.estimators.joint_pmf import fit_tables, from_records
from rejoint.estimators.predictive import predictive, spread
from rejoint.estimators.sklearn_input import generator, read
from rejoint.messages import remark
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.frames import refuse_non_table, take_apart
from rejoint.records.records import Records
from rejoint.solver.result import FitResult
from rejoint.text import plural

Method = Literal["mode", "draw", "expect"]


class JointImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Fill missing cells from the joint probability of all columns.

    Parameters
    ----------
    rank : int or "auto"
        Number of hidden classes; by default chosen by :func:`rejoint.rank.select`.
    solver : str or solver object
        As for :class:`JointPMF`.
    method : {"mode", "draw", "expect"}
        What a missing cell gets, given the observed cells of its row. ``"mode"`` is its most
        probable value, ``"draw"`` a value drawn with its probability, all missing cells of a
        row together, ``"expect"`` the expectation in columns of numbers (other than categories)
        and the mode in others.
    joint : bool
        With ``method="mode"``: the most probable combination of all missing cells of a row, in
        place of the most probable value of each. Found by branch and bound, one search for each
        distinct row (some milliseconds); should a search have to end early, a remark says how
        many rows are not proven to be the best.
    n_init : int
        Starts, or chains of posterior draws.
    random_state : int, RandomState, Generator or None
        Source of randomness.

    Attributes
    ----------
    pmf_ : LowRankPMF
        One model of rank ``rank_``, whose classes mean something: largest first.
    rank_ : int
        Its number of classes.
    result_ : FitResult
        How it came about; ``result_.choice`` says what was chosen and why.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Their names, where they have any.

    See Also
    --------
    JointPMF : The joint itself.

    Notes
    -----
    Cells that are there are never touched, even where they hold a level that the fit has not
    seen: such a cell says nothing about the others, and a remark says so. The model allows for
    cells missing at random: whether a cell is missing may depend on cells that are there.

    Where the fit has posterior draws, cells are filled by the mean of 30 of them.

    Columns of numbers with many values are binned (:class:`Records` says how); a filled cell gets
    the median of the values seen in its bin, a draw one of those values, an expectation the
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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
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
        self._checked_method()
        refuse_non_table(X)  # every cell is to be filled
        records = read(self, X, sample_weight, reset=True)
        assert isinstance(records, Records)
        rng = generator(self.random_state)
        if from_records(self.solver):
            found = estimate(records, self.rank, self.solver, n_init=self.n_init, random_state=rng)
        else:
            found = fit_tables(records, self.rank, self.solver, "auto", self.n_init, rng)
        self.result_: FitResult = found
        self.pmf_: LowRankPMF = found.pmf
        self.rank_ = found.pmf.rank
        self._predictive = predictive(found)
        self._donors = donors(records, X)
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
        self._checked_method()
        if n_draws is None:
            return self._once(X, confidence)
        if confidence:
            raise ValueError(
                "impute: probabilities go with one table; ask for them without n_draws."
            )
        models = spread(self.result_, checked_count(n_draws))
        cells, rng = self._cells(X), generator(self.random_state)
        tables = []
        for k in range(n_draws):
            found = fill(models[k % len(models)], cells.codes, cells.gone, rng=rng)
            tables.append(self._completed(X, cells, found, rng))
        return tables

    def distribution(self, X: Any, name: str) -> NDArray[np.float64]:
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
        return level_probabilities(self._predictive, self._cells(X).codes, n)

    def _once(self, X: Any, confidence: bool) -> Any:
        cells = self._cells(X)
        rng = generator(self.random_state) if self.method == "draw" else None
        found = fill(
            self._predictive,
            cells.codes,
            cells.gone,
            rng=rng,
            joint=self.joint,
            values=self._values() if self.method == "expect" else None,
            confidence=confidence,
        )
        if found.unproven:
            remark(
                f"The joint mode of {plural(found.unproven, 'row')} could not be proven to be the "
                "best; joint=False fills cell by cell."
            )
        table = self._completed(X, cells, found, rng)
        return (table, self._probabilities(X, cells, found.probability)) if confidence else table

    def _cells(self, X: Any) -> Cells:
        if isinstance(X, Records):
            codes = Records.of(X, domain=self.pmf_.domain).codes
            names = self.pmf_.domain.names
            return Cells(take_apart({n: [] for n in names}), codes, codes < 0, [])
        return read_cells(self, X)

    def _completed(
        self, X: Any, cells: Cells, found: Filled, rng: np.random.Generator | None
    ) -> Any:
        if isinstance(X, Records):
            return Records(self.pmf_.domain, found.codes, X.sample_weight)
        patches = {}
        for position, n in enumerate(cells.place):
            gone = cells.gone[:, n] if n >= 0 else np.zeros(0, dtype=bool)
            if not gone.any():
                continue
            values = found.expected.get(n)
            if values is None or has_categories(cells.frame.columns[position]):
                variable = self.pmf_.domain[n]
                values = labels_of(variable, found.codes[gone, n], self._donors.get(n), rng)
            patches[position] = Patch(gone, values)
        return complete(X, cells.frame, patches)

    def _probabilities(self, X: Any, cells: Cells, probability: Any) -> Any:
        if isinstance(X, Records):
            return probability
        ones = np.ones((cells.frame.rows, 1))
        parts = [probability[:, [n]] if n >= 0 else ones for n in cells.place]
        return numbers_like(X, cells.frame, np.hstack(parts))

    def _values(self) -> dict[int, NDArray[np.float64]]:
        """Values of the levels of every variable that has an expectation."""
        return {n: v.numeric for n, v in enumerate(self.pmf_.domain) if has_mean(v)}

    def _checked_method(self) -> None:
        if self.method not in ("mode", "draw", "expect"):
            raise ValueError(f"method must be 'mode', 'draw' or 'expect', not {self.method!r}.")
        if self.joint and self.method != "mode":
            raise ValueError(
                f"joint=True asks for the most probable combination, method={self.method!r} for "
                "something else: draws are joint anyway, expectations are of one cell each."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32", "int64", "int32"]
        return tags


def checked_count(n_draws: int) -> int:
    """Refuse a number of draws that is none."""
    if not isinstance(n_draws, int | np.integer) or n_draws < 1:
        raise ValueError(f"n_draws must be a whole number of tables, at least 1; got {n_draws!r}.")
    return int(n_draws)
