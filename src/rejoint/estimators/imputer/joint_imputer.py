"""JointImputer: missing values of any table, filled from the joint model of its columns."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from rejoint.arrays import BoolArray, Codes, FloatArray, IntArray
from rejoint.domain.columns import Coded, Numbers, read_column
from rejoint.domain.dates import DATE_PARTS
from rejoint.domain.domain import Domain
from rejoint.domain.labels import LabelError, Level
from rejoint.domain.variable import Kind, code_dtype, encode_column, unknown_text
from rejoint.estimation.smoothing import Smooth
from rejoint.estimators.imputer.cell_model import (
    CellModel,
    MissingCells,
    fit_cells,
    from_arrays,
    to_arrays,
)
from rejoint.estimators.imputer.column_learner import NumberSpread, within
from rejoint.estimators.imputer.fill import (
    Filled,
    Patch,
    fill,
    has_categories,
    labels_of,
    numeric_values,
    own_names,
    patched,
    rebuild,
)
from rejoint.estimators.joint_pmf import fit_joint
from rejoint.estimators.sklearn_input import (
    accept_mixed_columns,
    check_columns,
    generator,
    is_for_records,
    is_frame,
    read_new,
    weights_of,
)
from rejoint.io.fit_notes import fit_notes
from rejoint.io.model_file import SavedEstimator, SavedModel, write_model
from rejoint.io.schema import read_domain
from rejoint.language.query import Query
from rejoint.messages import FitInterrupted, Message, Progress, PythonOnly, remark
from rejoint.pmf.answer import Answer
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.empty_cells import fill_empty
from rejoint.records.frames import Frame, refuse_non_table, take_apart
from rejoint.records.infer import Bins, NotApplicable
from rejoint.records.records import Records, drop_empty_levels
from rejoint.records.survey_design import WeightArguments, as_part_weight
from rejoint.solver.result import FitResult
from rejoint.solver.search import interruptible
from rejoint.solver.session import Session
from rejoint.solver.solver import Stop
from rejoint.text import cite, plural, show

#: Columns with unknown levels that a warning names one by one.
MOST_NAMED = 5

#: Numbers from here on, infinity among them, have no mean or square that a float can hold.
LARGEST_MEAN = 1e150

#: Fewest and most classes of the joint where no rank is given, and how many more records four
#: times as many take: a third of the square root of their number. Searching for a rank takes five
#: times as long and does not fill in cells better, as the learners average many models anyway.
FEWEST_CLASSES, MOST_CLASSES, ROOT_SHARE = 2, 30, 1 / 3

#: What a file calls an imputer.
KIND = "imputer"

Method = Literal["expect", "mode", "draw"]


def _interrupt(result: FitResult) -> FitResult:
    """The joint, which answers where Ctrl-C came before the models of the cells."""
    starts = tuple(replace(run, stop=Stop.INTERRUPTED) for run in result.starts)
    text = "Interrupted before the columns had models of their own: the joint fills in."
    return replace(result, starts=starts, stop=f"{result.stop} {text}")


@dataclass(eq=False, repr=False)
class JointImputer(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Fill missing values from the joint probability of all columns, and learners of each.

    Parameters
    ----------
    rank : int or "auto"
        Number of hidden classes of the joint; by default a third of the square root of the number
        of records, 2 to 30.
    solver : str or solver object
        As for :class:`JointPMF`.
    method : {"expect", "mode", "draw"}
        What a missing cell gets, given the observed cells of its row. ``"expect"`` is the expected
        number in columns of numbers, and the most probable value in others; ``"mode"`` is the most
        probable value everywhere; ``"draw"`` is a value drawn with its probability, jointly for all
        missing cells of a row.
    joint : bool
        With ``method="mode"``: fill in the most probable combination of all missing cells of a
        row, by the joint, instead of the most probable value of each. It is found by branch and
        bound, one search for each distinct row (some milliseconds). If a search ends early, a
        warning says how many rows are not proven to be the best.
    n_init : int
        Starts, or chains of posterior draws, of the joint.
    random_state : int, RandomState, Generator or None
        Source of randomness.
    smooth : "auto", bool or list of names
        Ordinal or binned columns whose neighboring levels inform each other; see
        :func:`rejoint.estimate`.
    kinds, levels, bins
        What is declared about columns; see :meth:`Records.of`. Numbers whose kind is declared as
        ``"nominal"`` are codes: they get their most probable value and no expectation.
    add_indicator : bool
        Whether :meth:`transform` adds a column for each column that has missing values in the fit,
        which says where they were.
    keep_empty_features : bool
        Whether :meth:`transform` keeps columns that have no value in the fit, filled with zeros.
        Otherwise it drops them.
    not_applicable, missing_level
        Cells that are no gaps, as for :meth:`Records.of`: :meth:`transform` leaves them empty.

    Attributes
    ----------
    pmf_ : LowRankPMF
        The joint, of rank ``rank_``, its classes in decreasing order of weight.
    rank_ : int
        Its number of classes.
    result_ : FitResult
        The fit of the joint; ``result_.choice`` says what was chosen and why.
    cell_model_ : CellModel
        What fills in cells: the joint, and learners of columns.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Their names, where they have any.

    See Also
    --------
    JointPMF : The joint itself.
    rejoint.pool : Estimates from several completed tables as one.

    Notes
    -----
    Observed cells are never changed, even where they hold a level that the fit has not seen: such a
    cell says nothing about the others, and a warning says so. Values may be missing at random:
    whether a cell is missing may depend on observed cells.

    **What fills in a cell is not the joint's own answer** where a column has 30 values or more.
    Latent classes miss linear relations between numbers, so a learner predicts each column from
    the others: a ridge regression, or a logistic regression, and trees, which find rows that are
    alike. Its features are the other columns, completed by latent classes and a normal
    distribution. It is trained on observed cells, each as if it were missing, and these cells
    choose how much each part counts. The distribution of a number is centered near the prediction,
    and its spread is calibrated on these cells; that of a category is a product of powers of those
    of the classes, the regression and the trees. The expected number is the prediction, which may
    differ a little from the mean of the distribution. ``pmf_`` and :meth:`ask` answer as the joint
    does; :meth:`from_pmf` makes an imputer that fills in by it.

    Columns of numbers with many values are binned (:meth:`Records.of` says how), but predictions
    use the numbers themselves. A most probable value is the median of the values seen in its bin,
    and a draw is one of the values seen. Where all values seen are whole numbers, and in columns of
    integers, the expectation is rounded. Columns that number or identify rows stay as they are.

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

    rank: int | Literal["auto"] = "auto"
    solver: Any = "auto"
    method: Method = "expect"
    joint: bool = False
    n_init: int = 3
    random_state: Any = None
    smooth: Smooth = "auto"
    kinds: Mapping[Any, Kind] | None = None
    levels: Mapping[Any, Sequence[Level]] | None = None
    bins: Bins = None
    add_indicator: bool = False
    keep_empty_features: bool = False
    not_applicable: NotApplicable = "auto"
    missing_level: Sequence[Any] = ()

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
        checked = check_columns(self, X, reset=True)
        frame = None if isinstance(X, Records) else take_apart(checked)
        self._columns = X.names if frame is None else frame.all_names
        self._empty: tuple[int, ...] = ()
        if frame is not None:
            declared = {str(name) for name in self.levels or ()}
            named = enumerate(zip(self._columns, frame.columns, strict=True))
            self._empty = tuple(n for n, own in named if own[0] not in declared and is_empty(*own))
        if frame is not None and self._empty:
            checked = self._without_empty(frame)
        records = read_new(self, checked, weights)
        assert isinstance(records, Records)
        self._read_in = records.domain
        records = drop_empty_levels(records)
        result = self._fit_joint(records)
        self.result_: FitResult = result
        self.pmf_: LowRankPMF = result.pmf
        self.rank_: int = self.pmf_.rank
        self.numbers_ = self._find_numbers(frame)
        self.cell_model_: CellModel = CellModel(self.pmf_)  # after Ctrl-C the joint answers
        table = encode_table(self, X)
        self.indicator_features_ = np.flatnonzero(table.is_missing.any(axis=0))
        # Records lack rows without weight.
        same = len(records) == table.frame.rows
        mass = weights_of(records) if same else as_part_weight(sample_weight, table.frame.rows)
        self._notes = fit_notes(result, records=records)
        if result.interrupted:
            raise FitInterrupted(result)
        with Progress() as report:
            session = Session(generator(self.random_state), report)
            session.offer(partial(_interrupt, result))
            parts = (table.codes, table.values, mass)
            fit = partial(fit_cells, self.pmf_, self.numbers_, *parts, self.smooth, session)
            self.cell_model_ = interruptible(session, fit, "raise")
        return self

    def _without_empty(self, frame: Frame) -> Frame:
        """Return the columns that have a value; say which have none."""
        names = [self._columns[n] for n in self._empty]
        has, them = ("has", "it") if len(names) == 1 else ("have", "them")
        what = f"fills {them} with zeros" if self.keep_empty_features else f"drops {them}"
        action = f" and transform {what} (keep_empty_features={self.keep_empty_features})"
        text = "{names} {has} no value in any row: nothing can be learned{action}."
        remark(Message(text, names=show(names), has=has, action=PythonOnly("," + action)))
        kept = [n for n in range(len(frame.columns)) if n not in self._empty]
        if not kept:
            raise ValueError("No column has a value: there is nothing to learn from.")
        left = tuple(self._columns[n] for n in kept)
        return Frame(left, [frame.columns[n] for n in kept], frame.rows)

    def _fit_joint(self, records: Records) -> FitResult:
        rank = self.rank
        if rank == "auto" and is_for_records(self.solver):
            root = ROOT_SHARE * np.sqrt(weights_of(records).sum())
            rank = int(np.clip(round(root), FEWEST_CLASSES, MOST_CLASSES))
        how = (rank, self.solver, self.n_init, self.random_state)
        # After Ctrl-C the best joint so far fills in.
        return fit_joint(records, *how, smooth=self.smooth, on_interrupt="return")

    def _find_numbers(self, frame: Frame | None) -> IntArray:
        """Return the variables that get expectations: numbers that are not declared as codes."""
        domain, kinds = self.pmf_.domain, {str(k): v for k, v in (self.kinds or {}).items()}
        columns = {} if frame is None else dict(zip(self._columns, frame.columns, strict=True))
        return np.array(
            [
                n
                for n, values in numeric_values(domain).items()
                if np.abs(values).max() < LARGEST_MEAN  # of others only levels are predicted
                and kinds.get(domain[n].name) != "nominal"
                and domain[n].kind not in DATE_PARTS
                and not has_categories(columns.get(domain[n].name))
            ],
            dtype=np.intp,
        )

    @classmethod
    def from_pmf(cls, pmf: LowRankPMF, **params: Any) -> Self:
        """Return an imputer that fills in by a joint's own answers, without learners.

        Parameters
        ----------
        pmf : LowRankPMF
            The joint.
        **params
            Parameters of the imputer, such as ``method``.

        Examples
        --------
        >>> import rejoint as rj
        >>> domain = rj.Domain.of({"a": ["x", "y"], "b": ["u", "v"]})
        >>> pmf = rj.LowRankPMF([0.5, 0.5], [[[0.9, 0.2], [0.1, 0.8]]] * 2, domain)
        >>> rj.JointImputer.from_pmf(pmf).impute([{"a": "y", "b": None}])
        [{'a': 'y', 'b': 'v'}]
        """
        imputer = cls(**{"rank": pmf.rank, **params})
        imputer._check_method()
        imputer.n_features_in_ = len(pmf.domain)
        imputer.feature_names_in_ = np.array(pmf.domain.names, dtype=object)
        imputer._columns, imputer._empty, imputer._read_in = pmf.domain.names, (), pmf.domain
        pmf = given_values(pmf)
        imputer.indicator_features_ = np.zeros(0, dtype=np.intp)
        imputer.pmf_, imputer.rank_, imputer.cell_model_ = pmf, pmf.rank, CellModel(pmf)
        imputer.numbers_ = imputer._find_numbers(None)
        imputer._notes = {}
        return imputer

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
        check_is_fitted(self)
        table = encode_table(self, X)
        filled, rng = self._fill_once(table)
        if isinstance(X, Records):
            if self.add_indicator:
                raise ValueError("add_indicator adds columns to a table, and X is Records.")
            return self._completed_records(X, table, filled)
        columns = self._completed_columns(X, table, filled, rng)
        names = list(columns)
        for n in self._empty:
            if self.keep_empty_features:
                columns[names[n]] = np.zeros(table.frame.rows)
            else:
                del columns[names[n]]
        if self.add_indicator:
            masks = table.is_missing.T[self.indicator_features_].copy()
            added = [f"missingindicator_{self._columns[n]}" for n in self.indicator_features_]
            columns |= dict(zip(added, masks, strict=True))
        return rebuild(X, table.frame, columns)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns that :meth:`transform` returns.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the columns of X, where the fit saw none.

        Examples
        --------
        >>> import rejoint as rj
        >>> X = {"a": ["x", "y", None] * 20, "b": [1, 2, 1] * 20}
        >>> rj.JointImputer(add_indicator=True, random_state=0).fit(X).get_feature_names_out()
        array(['a', 'b', 'missingindicator_a'], dtype=object)
        """
        check_is_fitted(self, "n_features_in_")
        names = _check_feature_names_in(self, input_features)
        dropped = () if self.keep_empty_features else self._empty
        columns = [name for n, name in enumerate(names) if n not in dropped]
        if self.add_indicator:
            columns += [f"missingindicator_{names[n]}" for n in self.indicator_features_]
        return np.array(columns, dtype=object)

    def ask(self, text: str | Query, **options: Any) -> Answer:
        """Answer a question in the query language, as ``pmf_`` does.

        Parameters
        ----------
        text : str or Query
            The question.
        **options
            Those of :meth:`LowRankPMF.ask`.

        Examples
        --------
        >>> import rejoint as rj
        >>> imputer = rj.JointImputer.from_pmf(rj.datasets.asia())
        >>> round(float(imputer.ask("P(lung = yes)")), 3)
        0.055
        """
        check_is_fitted(self)
        return self.pmf_.ask(text, **options)

    def impute(self, X: Any, *, n_draws: int | None = None, confidence: bool = False) -> Any:
        """Fill the missing cells of a table, once or several times.

        Parameters
        ----------
        X : table
            As for :meth:`fit`.
        n_draws : int, optional
            Multiple imputation: this many completed tables, whatever ``method`` is. Each is
            drawn from another posterior draw of the joint and of the regressions, so that the
            tables differ by as much as the data leave open. Where there are no posterior
            draws (``result_.posterior`` is None: maximum likelihood, or tables), the joint is the
            same for all.
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
        table = encode_table(self, X)
        if n_draws is None:
            filled, rng = self._fill_once(table, confidence)
            completed = self._complete(X, table, filled, rng)
            if filled.probability is None or isinstance(X, Records):
                return (completed, filled.probability) if confidence else completed
            ones = np.ones((table.frame.rows, 1))
            shares = np.hstack([filled.probability, ones])[:, table.variables]
            if not is_frame(X):
                return completed, shares
            names = own_names(X, table.frame)
            return completed, rebuild(
                X, table.frame, dict(zip(names, shares.T.copy(), strict=True))
            )
        if confidence:
            raise ValueError("impute: probabilities are for one table only; leave out n_draws.")
        if not isinstance(n_draws, int | np.integer) or n_draws < 1:
            raise ValueError(
                f"n_draws must be a whole number of tables, at least 1; got {cite(n_draws)}."
            )
        models = list(self.pmf_.draws.thin(int(n_draws))) or [self.pmf_]
        rng, tables = generator(self.random_state), []
        for k in range(n_draws):
            filled = fill(
                self.cell_model_.draw(rng),
                table.codes,
                table.gone,
                table.values,
                rng=rng,
                draw_from=models[k % len(models)],
            )
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
        >>> imputer.distribution({"b": [1]}, "a").round(1)
        array([[1., 0.]])
        """
        return self._answer(X, name, lambda cells: cells.levels)

    def interval(self, X: Any, name: str, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Bounds between which a number lies with a probability, given the other cells.

        What the column itself holds is not looked at.

        Parameters
        ----------
        X : table
            As for :meth:`fit`.
        name : str
            A column of numbers; ``x0, x1, ...`` where columns have no names.
        level : float
            The probability. As much is left out below as above: what left the value outside in
            this share of left-out cells.

        Returns
        -------
        low, high : ndarray (rows,)
            Values seen in the fit.

        Examples
        --------
        >>> import numpy as np, rejoint as rj
        >>> X = {"a": ["x", "y"] * 100, "b": np.arange(200) % 2 * 10.0 + np.arange(200) % 7 / 7}
        >>> imputer = rj.JointImputer(bins=6, random_state=0).fit(X)
        >>> low, high = imputer.interval({"a": ["y"]}, "b")
        >>> bool(10 <= low[0] < high[0] < 11)
        True
        """
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must be between 0 and 1, got {cite(level)}.")
        check_is_fitted(self)
        n = self.pmf_.domain.index(name)
        if n not in self.numbers_:
            raise ValueError(
                f"Column {cite(name)} has no numbers, and so no interval: distribution(X, "
                f"{cite(name)}) has the probability of each of its levels."
            )
        alone = NumberSpread.of(self.pmf_.domain[n])

        def bounds(cells: MissingCells) -> FloatArray:
            if cells.spread is None or cells.values is None:
                return alone.interval(alone.table(cells.levels), level)
            return cells.spread.interval(cells.values, level)

        low, high = self._answer(X, name, bounds).T
        return low, high

    def save(self, path: str | PathLike[str], *, notes: Mapping[str, Any] | None = None) -> None:
        """Write the fitted imputer to a file; :func:`rejoint.load` reads it back.

        The file has the joint too: every command and function that takes a model takes it.

        Parameters
        ----------
        path : str or path
            An existing model is replaced, but no other file. A name ending in ``.json`` gives text.
        notes : dict, optional
            Further contents of the file, which JSON must be able to hold.

        Examples
        --------
        >>> import pathlib, rejoint as rj, tempfile
        >>> X = {"a": ["x", "y"] * 30, "b": [1.5, None, 2.5, 7.0] * 15}
        >>> imputer = rj.JointImputer(random_state=0).fit(X)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     imputer.save(pathlib.Path(folder, "imputer.rejoint"))
        ...     again = rj.load(pathlib.Path(folder, "imputer.rejoint"))
        >>> again.transform(X) == imputer.transform(X)
        True
        """
        check_is_fitted(self)
        saved = self.pmf_.to_saved({**self._notes, **(notes or {})})
        settings = {
            "parameters": {k: v for k, v in self.get_params().items() if is_plain(v)},
            "columns": list(self._columns),
            "named": hasattr(self, "feature_names_in_"),
            "empty": [int(n) for n in self._empty],
            "indicator_features": self.indicator_features_.tolist(),
            "numbers": self.numbers_.tolist(),
            "read_in": self._read_in.to_json(),
        }
        imputer = SavedEstimator(KIND, settings, to_arrays(self.cell_model_))
        write_model(path, saved._replace(estimator=imputer))

    @classmethod
    def of_saved(cls, saved: SavedModel) -> Self:
        """Make an imputer of the contents of a file.

        Examples
        --------
        >>> import rejoint as rj
        >>> saved = rj.datasets.asia().to_saved()
        >>> rj.JointImputer.of_saved(saved).impute([{"smoke": "yes", "dysp": None}])
        [{'smoke': 'yes', 'dysp': 'yes'}]
        """
        pmf, kept = LowRankPMF.of_saved(saved), saved.estimator
        if kept is None or kept.kind != KIND:
            return cls.from_pmf(pmf)
        settings = kept.settings
        try:
            parameters = {
                k: settings["parameters"][k]
                for k in cls().get_params()
                if k in settings["parameters"]
            }
            imputer = cls.from_pmf(pmf, **parameters)
            imputer._columns = tuple(map(str, settings["columns"]))
            imputer.n_features_in_ = len(imputer._columns)
            imputer.feature_names_in_ = np.array(imputer._columns, dtype=object)
            if not settings["named"]:
                del imputer.feature_names_in_
            imputer._read_in = read_domain(settings["read_in"])
            if tuple(v.with_empty(None) for v in imputer._read_in) != pmf.domain.variables:
                raise KeyError("read_in")
            columns, variables = imputer.n_features_in_, len(pmf.domain)
            imputer._empty = tuple(read_places(settings, "empty", columns).tolist())
            imputer.indicator_features_ = read_places(settings, "indicator_features", columns)
            imputer.numbers_ = read_places(settings, "numbers", variables)
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(
                f"The settings of the imputer in the file are incomplete: {cite(error)}."
            ) from error
        imputer.cell_model_ = from_arrays(pmf, kept.arrays)
        imputer._notes = dict(saved.notes)
        return imputer

    def _gaps(self, X: Any) -> dict[str, BoolArray]:
        """Return by name which cells of a table are to be filled."""
        table = encode_table(self, X)
        return {self.pmf_.domain.names[n]: table.gone[:, n] for n in set(table.variables) if n >= 0}

    def _answer(
        self, X: Any, name: str, answer: Callable[[MissingCells], FloatArray]
    ) -> FloatArray:
        """Return what is known of a column in all rows, given the others, (rows, answers)."""
        check_is_fitted(self)
        n, table = self.pmf_.domain.index(name), encode_table(self, X)
        wanted = np.zeros_like(table.gone)
        wanted[:, n] = True
        nothing = np.zeros((0, len(self.pmf_.domain[n])))
        blocks = [MissingCells(np.zeros(0, dtype=np.intp), n, nothing, nothing)]
        blocks += self.cell_model_.answer(table.codes, table.values, wanted)
        order = np.argsort(np.concatenate([cells.rows for cells in blocks]))
        return np.concatenate([answer(cells) for cells in blocks])[order]

    def _fill_once(
        self, table: "EncodedTable", confidence: bool = False
    ) -> tuple[Filled, np.random.Generator | None]:
        """Return what fills the cells, and the generator where they are drawn."""
        self._check_method()
        rng = generator(self.random_state) if self.method == "draw" else None
        numeric = numeric_values(self.pmf_.domain)
        filled = fill(
            self.cell_model_,
            table.codes,
            table.gone,
            table.values,
            rng=rng,
            joint=self.joint,
            expect={n: numeric[n] for n in self.numbers_} if self.method == "expect" else None,
            confidence=confidence,
        )
        if filled.unproven:
            remark(
                f"The joint mode of {plural(filled.unproven, 'row')} could not be proven to be the "
                "best; joint=False fills cell by cell."
            )
        return filled, rng

    def _complete(
        self, X: Any, table: "EncodedTable", filled: Filled, rng: np.random.Generator | None
    ) -> Any:
        """Return X with the filled cells, in its own library and dtypes."""
        if isinstance(X, Records):
            return self._completed_records(X, table, filled)
        return rebuild(X, table.frame, self._completed_columns(X, table, filled, rng))

    def _completed_records(self, X: Records, table: "EncodedTable", filled: Filled) -> Records:
        known = Records.of(X, domain=self._read_in).codes
        codes = np.where(table.gone, filled.codes, known)
        return Records(self._read_in, codes, X.sample_weight)

    def _completed_columns(
        self, X: Any, table: "EncodedTable", filled: Filled, rng: np.random.Generator | None
    ) -> dict[Any, Any]:
        """Return the columns of X with the filled cells, by its own names."""
        columns = dict(zip(own_names(X, table.frame), table.frame.columns, strict=True))
        for name, n in zip(columns, table.variables, strict=True):
            if n < 0 or not table.gone[:, n].any():
                continue
            gone, values = table.gone[:, n], filled.numbers.get(n)
            if values is None or has_categories(columns[name]):
                values = labels_of(self.pmf_.domain[n], filled.codes[gone, n], rng)
            if values.dtype.kind == "f" and NumberSpread.of(self.pmf_.domain[n]).is_whole:
                values = np.rint(values).astype(np.int64)
            columns[name] = patched(columns[name], Patch(gone, values))
        return columns

    def _check_method(self) -> None:
        if self.method not in ("mode", "draw", "expect"):
            raise ValueError(f"method must be 'expect', 'mode' or 'draw', not {cite(self.method)}.")
        if self.joint and self.method != "mode":
            raise ValueError(
                "joint=True fills in the most probable combination of all missing cells of a row, "
                f"which needs method='mode'; got method={cite(self.method)}. Draws are joint "
                "anyway, and expectations are of one cell each."
            )

    def __sklearn_tags__(self) -> Any:
        tags = accept_mixed_columns(super().__sklearn_tags__())
        tags.transformer_tags.preserves_dtype = ["float64", "float32", "int64", "int32"]
        return tags


class EncodedTable(NamedTuple):
    """A table with its own columns, as codes, and as numbers.

    Attributes
    ----------
    frame : Frame
        The columns as they were given.
    codes : ndarray (rows, variables)
        Level of each cell; -1 where missing or unknown to the model.
    values : ndarray (rows, variables)
        The numbers of variables of numbers, NaN elsewhere.
    gone : ndarray of bool (rows, variables)
        Cells that are missing in the table itself, and in a column that it has.
    variables : list of int
        Variable of each column of the frame, -1 for a column that the model does not know.
    """

    frame: Frame
    codes: Codes
    values: FloatArray
    gone: BoolArray
    variables: list[int]

    @property
    def is_missing(self) -> BoolArray:
        """Which cells of the columns of the frame are missing; none of unknown columns."""
        if not self.variables:
            return self.gone
        none = np.zeros((len(self.gone), 1), dtype=bool)
        return np.asarray(np.hstack([self.gone, none])[:, self.variables])


def encode_table(estimator: Any, X: Any) -> EncodedTable:
    """Encode X in the domain of a fitted estimator, keeping its columns."""
    domain: Domain = estimator.pmf_.domain
    if isinstance(X, Records):
        known = Records.of(X, domain=estimator._read_in)
        codes = drop_empty_levels(known).codes
        values = np.full(codes.shape, np.nan)
        for n in estimator.numbers_:
            values[:, n] = np.append(domain[n].numeric, np.nan)[codes[:, n]]
        gone = known.codes < 0
        return EncodedTable(Frame(domain.names, [], len(codes)), codes, values, gone, [])
    check_columns(estimator, X, reset=False)
    frame = take_apart(X)
    named = frame.names is not None and hasattr(estimator, "feature_names_in_")
    names = frame.names if named and frame.names is not None else estimator._columns
    variables = [domain.index(name) if name in domain else -1 for name in names]
    codes = np.full((frame.rows, len(domain)), -1, dtype=code_dtype(max(domain.shape)))
    values, gone = np.full(codes.shape, np.nan), np.zeros(codes.shape, dtype=bool)
    notes = []
    for n, raw in zip(variables, frame.columns, strict=True):
        if n < 0:
            continue
        column = read_column(raw, domain[n].name)
        codes[:, n], unknown = encode_column(domain[n], column)
        gone[:, n] = codes[:, n] < 0
        if n in estimator.numbers_ and isinstance(column, Numbers):
            values[:, n] = column.floats()
        if unknown is not None:
            gone[:, n] = ~column.is_present
            column_of = domain[n].name, domain[n].levels
            notes.append(unknown_text(*column_of, unknown, "left as they are"))
    values[~np.isfinite(values)] = np.nan
    gone &= _is_unknown(estimator._read_in, codes, gone)
    if len(notes) > MOST_NAMED:
        notes = [*notes[:MOST_NAMED], f"The same holds for {len(notes) - MOST_NAMED} more."]
    if notes:
        remark(" ".join(notes))
    return EncodedTable(frame, codes, values, gone, variables)


def _is_unknown(domain: Domain, codes: Codes, is_empty: BoolArray) -> BoolArray:
    """Return which cells are empty and are not a level of a domain that has one for such cells."""
    labelled = np.where(is_empty | (codes >= 0), codes, -2)
    can_be_filled = [variable.kind not in DATE_PARTS for variable in domain]
    return np.asarray(is_empty & can_be_filled & (fill_empty(domain, labelled) < 0))


def given_values(pmf: LowRankPMF) -> LowRankPMF:
    """Return a joint of values alone: of cells that apply, in each class."""
    if all(variable.empty is None for variable in pmf.domain):
        return pmf
    factors = []
    for variable, factor in zip(pmf.domain, pmf.mixture.factors, strict=True):
        values = np.maximum(factor[: len(variable.values)], 1e-300)
        factors.append(values / values.sum(axis=0))
    domain = Domain(tuple(variable.with_empty(None) for variable in pmf.domain))
    return LowRankPMF(pmf.mixture.weights, factors, domain)


def is_plain(value: Any) -> bool:
    """Whether JSON holds a value as it is."""
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError):
        return False


def is_empty(name: str, raw: Any) -> bool:
    """Whether a column has no value, and no levels that are declared."""
    try:
        column = read_column(raw, name)
    except LabelError:
        return False  # reading it as records says more
    if isinstance(column, Coded) and column.declared and len(column.labels):
        return False
    return len(column) > 0 and not column.is_present.any()


def read_places(settings: Mapping[str, Any], name: str, most: int) -> IntArray:
    """Return positions that a file has under a name; KeyError where there are no such ones."""
    positions = np.array(settings[name], dtype=np.intp).reshape(-1)
    if not within(positions, most):
        raise KeyError(name)
    return positions
