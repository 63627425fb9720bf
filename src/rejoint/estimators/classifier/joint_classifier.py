"""JointClassifier: labels predicted from any of the features, by the joint model of both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from rejoint.arrays import Codes
from rejoint.estimation.smoothing import Smooth
from rejoint.estimators.classifier.classifier_policy import (
    DEFAULT_CLASSIFIER_POLICY,
    ClassifierPolicy,
)
from rejoint.estimators.classifier.features import compare_labels, read_records, split_targets
from rejoint.estimators.classifier.fit_classifier import fit_classifier
from rejoint.estimators.classifier.label_ensemble import LabelEnsemble
from rejoint.estimators.classifier.label_explanation import LabelExplanation
from rejoint.estimators.sklearn_input import (
    accept_mixed_columns,
    has_own_names,
    is_frame,
    select_columns,
)
from rejoint.io.fit_notes import fit_notes
from rejoint.io.model_file import SavedModel, write_model
from rejoint.language.query import Query
from rejoint.messages import FitInterrupted, Progress
from rejoint.pmf.answer import Answer
from rejoint.pmf.ask import RandomState
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.infer import Bins, NotApplicable
from rejoint.records.records import Records, drop_columns
from rejoint.records.survey_design import WeightArguments, as_weight
from rejoint.solver.result import FitResult


@dataclass(eq=False, repr=False)
class JointClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Predict labels from features that may be missing in fit and in predict.

    Three joint models of features and labels are trained and averaged. One has a single hidden
    class for each label, which is logistic regression in smooth functions of the features, and one
    has several, which bend its boundaries; both are trained for the labels given the features. The
    third is trained for the joint of both and predicts where features are missing. Numbers enter by
    many bins whose effects are smooth, and by straight lines. Each model has a few members, which
    differ in the records held out and in the edges of their bins. Held-out labels choose the
    strength of the prior of each model along one path, and the weights of the average.

    Parameters
    ----------
    rank : int or "auto"
        Hidden classes of all labels together, in the models that have several for each: each label
        has an equal share of them. By default 8 for each label, fewer where labels are many.
    solver : str or solver object
        ``"auto"`` trains for the labels as described. ``"ml"``, ``"map"`` and ``"bayes"`` estimate
        the joint model only (see :func:`rejoint.estimate`).
    bins : dict by name, int, False or None
        How columns of numbers are binned; see :meth:`Records.of`. By default those that are not
        kept as levels get quantile bins, ``3 sqrt(n)`` for n records (at most 192), which members
        join to ``sqrt(n)`` bins with edges of their own.
    class_weight : dict, list of dict, "balanced" or None
        Weight of the records of each label, as in scikit-learn; a list has one dict for each of
        several targets. Probabilities are those of records weighted so.
    kinds, levels, not_applicable, missing_level
        What is declared about single columns; see :meth:`Records.of`.
    smooth : "auto", bool or list of names
        Which ordered columns are smooth; see :func:`rejoint.estimate`. ``solver="auto"`` smooths
        the effects of all of them.
    random_state : int, RandomState, Generator or None
        Source of randomness: the same one gives the same model.
    progress : bool, optional
        Whether to show progress on stderr; by default where that is a terminal.
    policy : ClassifierPolicy, optional
        Tuned numbers.

    Attributes
    ----------
    classes_ : array, or list of arrays
        Labels; a list of arrays where there are several targets.
    ensemble_ : LabelEnsemble
        The models that predict, and the weights of their average.
    pmf_ : LowRankPMF
        A plain joint model of all features and targets, which answers questions (:meth:`ask`). Its
        ``P(target | ...)`` differs from :meth:`predict_proba`, which is the average.
    rank_ : int
        Rank of ``pmf_``.
    result_ : FitResult
        The fit of ``pmf_``; ``choice`` says what was chosen, and why.
    target_names_ : tuple of str
        Names of the targets in ``pmf_``.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Their names, where they have any.

    Notes
    -----
    Training rows may lack their label (None, NaN): they contribute through the joint likelihood. A
    level that the fit has not seen is missing.

    Models trained for the labels alone may predict poorly where features are missing. Models are
    therefore also scored on records with values removed, and the weights of the average depend on
    the share of the columns that a row misses, of those which were (nearly) never missing at the
    fit. Where a row misses everything, the prediction is the shares of the labels at the fit.

    Ctrl-C raises :class:`rejoint.FitInterrupted`; the classifier is then fitted with what there was
    by then.

    Examples
    --------
    >>> import rejoint as rj
    >>> truth = rj.datasets.asia()
    >>> patients = truth.sample(1000, random_state=0).to_frame("pandas")
    >>> y = patients.pop("bronc")
    >>> model = rj.JointClassifier(rank=4, random_state=0).fit(patients, y)
    >>> model.predict([{"smoke": "yes", "dysp": "yes"}, {"smoke": "no"}])
    array(['yes', 'no'], dtype='<U3')
    """

    rank: int | Literal["auto"] = "auto"
    solver: Any = "auto"
    bins: Bins = None
    class_weight: Any = None
    random_state: Any = None
    kinds: Mapping[Any, Any] | None = None
    levels: Mapping[Any, Any] | None = None
    progress: bool | None = None
    policy: ClassifierPolicy | None = None
    smooth: Smooth = "auto"
    not_applicable: NotApplicable = "auto"
    missing_level: Sequence[Any] = ()

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        survey_weight: Any = None,
        strata: Any = None,
        clusters: Any = None,
    ) -> Self:
        """Fit to rows and their labels.

        Parameters
        ----------
        X : table of shape (rows, columns)
            Features; values may be missing.
        y : array of shape (rows,) or (rows, targets), series, frame, or names of columns of X
            Labels; None or NaN where one is unknown. Several columns are several targets. A name,
            or a list of names, takes these columns out of X.
        sample_weight : array of shape (rows,), optional
            How many times each row counts.
        survey_weight, strata, clusters : arrays of shape (rows,), optional
            Those of a survey; see :meth:`Records.of`. Clusters are held out as a whole.

        Returns
        -------
        self

        Examples
        --------
        >>> import rejoint as rj
        >>> table = {"a": ["x", "y"] * 20, "b": ["u", "v"] * 20}
        >>> rj.JointClassifier(rank=2, random_state=0).fit(table, "b").predict({"a": ["y", "x"]})
        array(['v', 'u'], dtype='<U1')
        """
        policy = self.policy or DEFAULT_CLASSIFIER_POLICY
        weights = WeightArguments(sample_weight, survey_weight, strata, clusters)
        records, targets = read_records(self, X, y, weights, policy)
        with Progress(self.progress) as report:
            ensemble, result = fit_classifier(records, len(targets.variables), self, policy, report)
        self._keep(result.pmf, ensemble, targets.classes)
        self.result_: FitResult = result
        self._notes = fit_notes(self.result_, records=records, target=list(self.target_names_))
        if self.result_.interrupted:
            raise FitInterrupted(self.result_)
        return self

    def _keep(
        self, pmf: LowRankPMF, ensemble: LabelEnsemble, classes: Sequence[NDArray[Any]]
    ) -> None:
        self.pmf_, self.rank_, self.ensemble_ = pmf, pmf.rank, ensemble
        self.target_names_ = ensemble.targets.names
        self.classes_ = list(classes) if len(classes) > 1 else classes[0]

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of each row; with several targets, a column for each.

        Parameters
        ----------
        X : table of shape (rows, columns)
            Features; values may be missing. Columns of the targets are ignored.

        Returns
        -------
        array of shape (rows,) or (rows, targets)

        Examples
        --------
        >>> import rejoint as rj
        >>> model = rj.JointClassifier(rank=2, random_state=0)
        >>> X, y = [["a"], ["a"], ["b"]] * 20, ["no", "no", "yes"] * 20
        >>> model.fit(X, y).predict([["b"], [None]])
        array(['yes', 'no'], dtype='<U3')
        """
        labels = self._labels(X)
        return labels[0] if len(labels) == 1 else side_by_side(labels)

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each label for each row; a list of arrays for several targets.

        Examples
        --------
        >>> import rejoint as rj
        >>> model = rj.JointClassifier(rank=2, random_state=0)
        >>> model.fit([["a"], ["b"]] * 20, ["no", "yes"] * 20).predict_proba([["b"]]).round(1)
        array([[0., 1.]])
        """
        codes = self._codes(X)
        shares = self.ensemble_.probabilities(codes)
        return shares[0] if len(shares) == 1 else shares

    def predict_log_proba(self, X: Any) -> Any:
        """Return logarithms of :meth:`predict_proba`.

        Examples
        --------
        >>> import rejoint as rj
        >>> model = rj.JointClassifier(rank=2, random_state=0)
        >>> model.fit([["a"], ["b"]] * 20, ["no", "yes"] * 20).predict_log_proba([["b"]]).shape
        (1, 2)
        """
        shares = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return list(map(np.log, shares)) if isinstance(shares, list) else np.log(shares)

    def predict_joint(self, X: Any) -> NDArray[Any]:
        """Return the most probable combination of labels, (rows, targets).

        It may differ from :meth:`predict`, which returns the most probable label of each target.

        Examples
        --------
        >>> import rejoint as rj
        >>> model = rj.JointClassifier(rank=2, random_state=0)
        >>> model = model.fit([["a"], ["b"]] * 20, [["no", 1], ["yes", 2]] * 20)
        >>> model.predict_joint([["b"]])
        array([['yes', 2]], dtype=object)
        """
        return side_by_side(self._labels(X, joint=True))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose labels are all predicted correctly.

        Parameters
        ----------
        X : table of shape (rows, columns)
            Features; values may be missing.
        y : array of shape (rows,) or (rows, targets), series, frame, or names of columns of X
            Labels, as for :meth:`fit`. Rows that lack a label are left out.
        sample_weight : array of shape (rows,), optional
            How many times each row counts.

        Returns
        -------
        float

        Examples
        --------
        >>> import rejoint as rj
        >>> model = rj.JointClassifier(rank=2, random_state=0)
        >>> model.fit([["a"], ["b"]] * 20, ["no", "yes"] * 20).score([["a"], ["b"]], ["no", "no"])
        0.5
        """
        check_is_fitted(self)
        rest, labels = split_targets(X, y, self.target_names_)
        right, known = compare_labels(labels, self.target_names_, self._labels(rest))
        given = getattr(X, "sample_weight", None) if sample_weight is None else sample_weight
        weight = known if given is None else as_weight(given, len(known)) * known
        if not weight.any():
            raise ValueError("score: no row has both its labels and a weight above zero.")
        return float(np.average(right, weights=weight))

    def explain(
        self, X: Any, label: Any = None, *, target: str | None = None
    ) -> list[LabelExplanation]:
        """Explain what each feature contributes to a prediction, row by row.

        Contributions are in log-odds, averaged over orders in which the features become known: over
        all orders up to eight features, beyond over 32. They sum to the log-odds of the prediction
        less those with all features missing, which are those of the shares of the labels.

        Parameters
        ----------
        X : table of shape (rows, columns)
            Features; values may be missing. A missing one contributes nothing.
        label : label, optional
            The label that is explained; by default the one predicted for each row.
        target : str, optional
            The target, where there are several; the first one by default.

        Returns
        -------
        list of LabelExplanation
            One for each row. Printed, it reads as text.

        Examples
        --------
        >>> import rejoint as rj
        >>> table = {"a": ["x", "y"] * 20, "b": ["u", "v"] * 20, "c": ["s", "s", "t", "t"] * 10}
        >>> model = rj.JointClassifier(random_state=0).fit(table, "b")
        >>> [why] = model.explain({"a": ["y"], "c": ["s"]})
        >>> why.label, [part.feature for part in why.contributions]
        ('v', ['a', 'c'])
        """
        return self.ensemble_.explain(self._codes(X), label, target)

    def ask(
        self,
        text: str | Query,
        *,
        bits: bool = False,
        level: float | None = 0.9,
        random_state: RandomState = None,
    ) -> Answer:
        """Answer a question in the query language.

        The joint ``pmf_`` answers, so that answers to different questions agree with each other.
        :meth:`predict_proba` predicts better, and differs from it.

        Examples
        --------
        >>> import rejoint as rj
        >>> table = {"a": ["x", "y"] * 20, "b": ["u", "v"] * 20}
        >>> model = rj.JointClassifier(rank=2, random_state=0).fit(table, "b")
        >>> round(float(model.ask("P(b = v | a = y)")), 1)
        1.0
        """
        check_is_fitted(self)
        return self.pmf_.ask(text, bits=bits, level=level, random_state=random_state)

    def save(self, path: str | PathLike[str], *, notes: Mapping[str, Any] | None = None) -> None:
        """Write what predicts and answers to a file that :func:`rejoint.load` reads.

        The file also serves ``rejoint predict``, ``rejoint ask`` and ``rejoint explore``. It has
        notes about the fit.

        Parameters
        ----------
        path : str or path
            An existing file is replaced. A name that ends in ``.json`` gives text.
        notes : dict, optional
            Further notes, which JSON must be able to hold.

        Examples
        --------
        >>> import pathlib, rejoint as rj, tempfile
        >>> table = {"a": ["x", "y"] * 20, "b": ["u", "v"] * 20}
        >>> model = rj.JointClassifier(rank=2, random_state=0).fit(table, "b")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(pathlib.Path(folder, "b.rejoint"))
        ...     rj.load(pathlib.Path(folder, "b.rejoint")).predict([{"a": "y"}])
        array(['v'], dtype='<U1')
        """
        check_is_fitted(self)
        write_model(path, self.to_saved(self._notes | dict(notes or {})))

    def to_saved(self, notes: Mapping[str, Any] | None = None, *, draws: bool = True) -> SavedModel:
        """Return what :meth:`save` writes to a file."""
        saved = self.pmf_.to_saved(notes, draws=draws)
        return saved._replace(ensemble=self.ensemble_.to_saved())

    @classmethod
    def of_saved(cls, saved: SavedModel) -> Self:
        """Make a fitted classifier of the contents of a file, which has an ensemble."""
        assert saved.ensemble is not None
        classifier, ensemble = cls(), LabelEnsemble.of_saved(saved.ensemble, saved.domain)
        labels = [np.array(variable.levels) for variable in ensemble.targets]
        classifier._keep(LowRankPMF.of_saved(saved), ensemble, labels)
        classifier._notes = dict(saved.notes)
        return classifier

    def _codes(self, X: Any) -> Codes:
        """Return the codes of rows to predict; columns of the targets are ignored."""
        check_is_fitted(self)
        if is_frame(X) or has_own_names(X):
            names = getattr(self, "feature_names_in_", ())
            X = drop_columns(X, [name for name in self.target_names_ if name not in names])
        features = self.ensemble_.features
        if hasattr(self, "n_features_in_"):  # unless it comes from a file
            X = select_columns(self, X, features)
        return Records.of(X, domain=features).codes

    def _labels(self, X: Any, *, joint: bool = False) -> list[NDArray[Any]]:
        """Return the labels predicted for each target, one by one or jointly."""
        codes = self._codes(X)
        places = self.ensemble_.joint_places(codes) if joint else self.ensemble_.places(codes)
        classes = self.classes_ if isinstance(self.classes_, list) else [self.classes_]
        return [labels[k] for labels, k in zip(classes, places, strict=True)]

    def __sklearn_tags__(self) -> Any:
        tags = accept_mixed_columns(super().__sklearn_tags__())
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


def side_by_side(labels: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Stack columns of labels into one array, of objects if their kinds differ."""
    kinds = {column.dtype.kind for column in labels}
    return np.stack(labels if len(kinds) == 1 else [k.astype(object) for k in labels], axis=1)
