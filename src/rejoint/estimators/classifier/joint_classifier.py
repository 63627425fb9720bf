"""JointClassifier: labels from any of the features, by the joint of both."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from rejoint.domain.domain import Domain
from rejoint.domain.variable import Variable
from rejoint.estimators.classifier.features import (
    named_targets,
    read_features,
    read_rows,
    read_targets,
)
from rejoint.estimators.classifier.label_proba import Ask, average_shares, products
from rejoint.estimators.classifier.tune import fit_classifier
from rejoint.estimators.partial_fit import weights_of
from rejoint.estimators.sklearn_input import generator
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.records import Records
from rejoint.solver.result import FitResult

Array = NDArray[np.float64]

#: Combinations of labels up to which all are compared.
MOST_COMBINED = 4096

#: Share of columns lacking from which on holes are many.
SOME = 1 / 3

#: Share of records up to which a column counts as never missing.
RARELY = 0.01


class JointClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Labels from features, some of which may be missing, now and later.

    A model of features and labels together, trained to tell the labels: it maximises their
    conditional likelihood, the joint one beside it, and a prior. For several weights of the joint
    likelihood, rank and strength of the prior are chosen by what is held out; models of all
    are averaged, with the weights under which they tell held-out labels best.

    Parameters
    ----------
    rank : int or "auto"
        Hidden classes of each model; by default chosen by the log-loss of held-out labels.
    solver : str or solver object
        ``"auto"`` trains for the labels as said, ``estimators.Conditional(...)`` too, with what
        it sets. ``"ml"``, ``"map"``, ``"bayes"`` estimate the joint and nothing else (see
        :func:`rejoint.estimate`).
    n_init : int
        Starts of each setting; their models are averaged.
    bins : "auto", int, dict or None
        How columns of numbers are cut. By default those with more than 15 different values into
        quantile bins, ``2 n^(1/3)`` for n records (4 to 20); an int is another number of bins;
        a dict, or None, is passed on to :meth:`Records.of`.
    random_state : int, RandomState, Generator or None
        Source of randomness.

    Attributes
    ----------
    classes_ : array, or list of arrays
        Labels, of each target where there are several.
    pmf_ : LowRankPMF
        One model of all features and targets, which can be asked anything.
    models_ : tuple of LowRankPMF
        The models whose conditional probabilities of the labels are averaged.
    model_weights_ : array (3, models)
        Their weights in that average: for rows with holes as at the fit, for rows that lack up to a
        third, and for rows that lack more, of the columns that were never missing then.
    rank_ : int
        Rank of ``pmf_``.
    result_ : FitResult
        How ``pmf_`` came about; ``choice`` says what was chosen, and why.
    target_names_ : tuple of str
        What ``pmf_`` calls the targets.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Their names, where they have any.

    Notes
    -----
    Rows without their label (None, NaN) may be among those to learn from: they help as far as the
    joint likelihood does. A level that the fit has not seen is missing.

    Models trained for the labels alone may be poor judges of rows with holes. Models are therefore
    also judged by records with cells taken out, and have other weights for rows that lack columns
    which were (nearly) never missing at the fit.

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

    classes_: Any
    pmf_: LowRankPMF
    models_: tuple[LowRankPMF, ...]
    result_: FitResult
    n_features_in_: int

    def __init__(
        self,
        rank: int | Literal["auto"] = "auto",
        solver: Any = "auto",
        n_init: int = 5,
        bins: Any = "auto",
        random_state: Any = None,
    ) -> None:
        self.rank = rank
        self.solver = solver
        self.n_init = n_init
        self.bins = bins
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows and their labels.

        Parameters
        ----------
        X : table of shape (rows, columns)
            Features; may have holes.
        y : array of shape (rows,) or (rows, targets), frame, or name of columns of X
            Labels; None or NaN where one is not known. Several columns are several targets.
        sample_weight : array of shape (rows,), optional
            How many times each row counts.

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
        X, y = named_targets(X, y)
        features, used = read_features(self, X, sample_weight)
        targets = read_targets(y, features.names, used)
        records = joined(features, targets.variables, targets.codes[used > 0])
        fitted = fit_classifier(
            records,
            len(targets.variables),
            self.rank,
            self.solver,
            self.n_init,
            generator(self.random_state),
        )
        self.classes_ = list(targets.classes) if targets.several else targets.classes[0]
        self.target_names_ = tuple(v.name for v in targets.variables)
        self.models_ = fitted.models
        self.model_weights_ = fitted.weights
        self.result_ = fitted.result
        self.pmf_ = fitted.result.pmf
        self.rank_ = self.pmf_.rank
        self._unforeseen = unforeseen(records, len(features.names))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable label of each row; a column for each target, if there are several.

        Parameters
        ----------
        X : table of shape (rows, columns)
            Features; may have holes.

        Returns
        -------
        array of shape (rows,) or (rows, targets)

        Examples
        --------
        >>> import rejoint as rj
        >>> model = rj.JointClassifier(rank=2, random_state=0)
        >>> model.fit([["a"], ["b"]] * 20, ["no", "yes"] * 20).predict([["b"], [None]])
        array(['yes', 'no'], dtype='<U3')
        """
        check_is_fitted(self)

        def labels_of(shares: list[NDArray[np.float64]]) -> list[NDArray[Any]]:
            return [labels[largest(s)] for labels, s in zip(self._classes, shares, strict=True)]

        found = self._judge(X, list, labels_of)
        labels = [np.concatenate(target) for target in zip(*found, strict=True)]
        return labels[0] if len(labels) == 1 else side_by_side(labels)

    def predict_proba(self, X: Any) -> Any:
        """Probability of each label for each row; a list of arrays, if there are several targets.

        Examples
        --------
        >>> import rejoint as rj
        >>> model = rj.JointClassifier(rank=2, random_state=0)
        >>> model.fit([["a"], ["b"]] * 20, ["no", "yes"] * 20).predict_proba([["b"]]).round(1)
        array([[0., 1.]])
        """
        shares = self._shares(X)
        return shares[0] if len(shares) == 1 else shares

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of :meth:`predict_proba`.

        Examples
        --------
        >>> import rejoint as rj
        >>> model = rj.JointClassifier(rank=2, random_state=0)
        >>> model.fit([["a"], ["b"]] * 20, ["no", "yes"] * 20).predict_log_proba([["b"]]).shape
        (1, 2)
        """
        with np.errstate(divide="ignore"):
            logs = [np.log(share) for share in self._shares(X)]
        return logs[0] if len(logs) == 1 else logs

    def predict_joint(self, X: Any) -> NDArray[Any]:
        """The combination of labels that is most probable together, (rows, targets).

        It may differ from :meth:`predict`, which takes the most probable label of each target.

        Examples
        --------
        >>> import rejoint as rj
        >>> model = rj.JointClassifier(rank=2, random_state=0)
        >>> model = model.fit([["a"], ["b"]] * 20, [["no", 1], ["yes", 2]] * 20)
        >>> model.predict_joint([["b"]])
        array([['yes', 2]], dtype=object)
        """
        check_is_fitted(self)
        sizes = [len(classes) for classes in self._classes]
        if float(np.prod(sizes, dtype=float)) > MOST_COMBINED:
            raise ValueError(
                f"{np.prod(sizes, dtype=float):,.0f} combinations of labels are too many to be "
                "compared for each row: ask pmf_.mode(target_names_, given=...) row by row."
            )
        found = self._judge(
            X, lambda factors: [products(factors)], lambda shares: np.argmax(shares[0], axis=1)
        )
        places = np.unravel_index(np.concatenate(found), sizes)
        labels = [classes[k] for classes, k in zip(self._classes, places, strict=True)]
        return side_by_side(labels)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows whose labels are all right.

        Examples
        --------
        >>> import rejoint as rj
        >>> model = rj.JointClassifier(rank=2, random_state=0)
        >>> model.fit([["a"], ["b"]] * 20, ["no", "yes"] * 20).score([["a"], ["b"]], ["no", "no"])
        0.5
        """
        right: NDArray[Any] = np.asarray(np.equal(self.predict(X), np.asarray(y)))
        rows = right.reshape(len(right), -1).min(axis=1)
        return float(np.average(rows, weights=sample_weight))

    def _shares(self, X: Any) -> list[Array]:
        check_is_fitted(self)
        found = self._judge(X, list, list)
        return [np.concatenate(target) for target in zip(*found, strict=True)]

    def _judge(self, X: Any, ask: Ask, answer: Callable[[list[Array]], Any]) -> list[Any]:
        """What is made of the averaged probabilities of the labels, block by block."""
        features = Domain(self.pmf_.domain.variables[: self.n_features_in_])
        codes = read_rows(self, X, features)
        return average_shares(self.models_, self.model_weights_, codes, self._kinds, ask, answer)

    def _kinds(self, codes: NDArray[np.signedinteger]) -> NDArray[np.intp]:
        """Whether rows have holes as at the fit (0), a few others (1), or many (2)."""
        if codes.min(initial=0) >= 0:
            return np.zeros(len(codes), dtype=np.intp)
        lacking = (codes[:, self._unforeseen] < 0).sum(axis=1)
        return np.asarray((lacking > 0).astype(np.intp) + (lacking > SOME * len(self._unforeseen)))

    @property
    def _classes(self) -> list[NDArray[Any]]:
        return self.classes_ if isinstance(self.classes_, list) else [self.classes_]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


def joined(
    features: Records, targets: Sequence[Variable], labels: NDArray[np.signedinteger]
) -> Records:
    """Features and labels side by side."""
    domain = Domain((*features.domain.variables, *targets))
    return Records(domain, np.hstack([features.codes, labels]), features.sample_weight)


def unforeseen(records: Records, features: int) -> NDArray[np.intp]:
    """Columns that are (nearly) never missing."""
    weight = weights_of(records)
    missing = weight @ (records.codes[:, :features] < 0)
    return np.flatnonzero(missing < RARELY * weight.sum())


def largest(shares: NDArray[np.float64]) -> NDArray[np.intp]:
    """Column of the largest share in each row; the usual two at a tenth of what argmax takes.

    Examples
    --------
    >>> largest(np.array([[0.4, 0.6], [0.5, 0.5]]))
    array([1, 0])
    """
    two = shares.shape[1] == 2
    places = shares[:, 1] > shares[:, 0] if two else np.argmax(shares, axis=1)
    return np.asarray(places, dtype=np.intp)


def side_by_side(labels: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Columns of labels as one array, of objects if their kinds differ."""
    if len({column.dtype.kind for column in labels}) == 1:
        return np.stack(labels, axis=1)
    return np.stack([column.astype(object) for column in labels], axis=1)
