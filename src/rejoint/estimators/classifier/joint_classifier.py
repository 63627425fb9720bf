"""JointClassifier: labels predicted from any of the features, by the joint model of both."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from rejoint import kernels
from rejoint.arrays import Codes, FloatArray, IntArray
from rejoint.domain.domain import Domain
from rejoint.domain.variable import Variable
from rejoint.estimators.classifier.features import (
    read_features,
    read_rows,
    read_targets,
    split_targets,
)
from rejoint.estimators.classifier.tune import fit_classifier
from rejoint.estimators.sklearn_input import accept_mixed_columns, generator, weights_of
from rejoint.pmf.pmf import LowRankPMF
from rejoint.queries.log_prob import posteriors
from rejoint.records.records import Records
from rejoint.solver.result import FitResult

Ask = Callable[[Sequence[FloatArray]], Sequence[FloatArray]]
T = TypeVar("T")

#: Rows of a block: few enough for the cache, many enough for the threads.
BLOCK_ROWS = 16_384


def average_shares(
    models: Sequence[LowRankPMF],
    weights: FloatArray,
    codes: Codes,
    kinds: Callable[[Codes], IntArray],
    ask: Ask,
    answer: Callable[[list[FloatArray]], T],
) -> list[T]:
    """Average ``posterior @ table.T`` over the models, block by block, in threads.

    Parameters
    ----------
    models : sequence of LowRankPMF
        Of the features, then the targets.
    weights : array (kinds, models)
        Weight of each model for each kind of row; they sum to one.
    codes : array (rows, features)
        The rows.
    kinds : callable
        Returns the kind of each row.
    ask : callable
        Makes the tables (combinations, F) that are asked for of the factors of the targets.
    answer : callable
        Takes the averages (rows, combinations) of a block, one for each table.

    Returns
    -------
    list
        The answers of the blocks, in order.

    Examples
    --------
    >>> model = LowRankPMF([0.5, 0.5], [[[0.9, 0.2], [0.1, 0.8]], [[1.0, 0.0], [0.0, 1.0]]])
    >>> codes, alike = np.array([[0]], dtype=np.int16), lambda rows: np.zeros(len(rows), int)
    >>> [[shares]] = average_shares([model], np.ones((1, 1)), codes, alike, list, list)
    >>> shares.round(3)
    array([[0.818, 0.182]])
    """

    def answer_block(first: int) -> T:
        rows = codes[first : first + BLOCK_ROWS]
        if len(models) == 1:  # its weight is one for every kind
            return answer(shares_of(models[0], rows, ask))
        kind = kinds(rows)
        found: list[FloatArray] = []
        for model, weight in zip(models, weights.T, strict=True):
            mine = weight[kind, None]
            if not mine.any():
                continue
            shares = [mine * share for share in shares_of(model, rows, ask)]
            found = [a + b for a, b in zip(found, shares, strict=True)] if found else shares
        return answer(found)

    starts = range(0, len(codes), BLOCK_ROWS)
    if len(starts) < 2:
        return [answer_block(first) for first in starts]
    with ThreadPoolExecutor(kernels.available_threads()) as threads:
        return list(threads.map(answer_block, starts))


def shares_of(model: LowRankPMF, codes: Codes, ask: Ask) -> list[FloatArray]:
    """Return probabilities of labels under one model; rows sum to one."""
    features = codes.shape[1]
    asked = ask(model.factors[features:])
    found = [np.empty((len(codes), len(table))) for table in asked]
    codes = np.ascontiguousarray(codes)
    for rows, _, posterior in posteriors(model.weights, model.factors[:features], codes, 1):
        for share, table in zip(found, asked, strict=True):
            np.matmul(posterior, table.T, out=share[rows])
    return found


def products(factors: Sequence[FloatArray]) -> FloatArray:
    """Return the probability of each combination of levels in each class, (combinations, F).

    Examples
    --------
    >>> products([np.array([[0.9], [0.1]]), np.array([[0.5], [0.5]])])[:, 0]
    array([0.45, 0.45, 0.05, 0.05])
    """
    return reduce(
        lambda a, b: (a[:, None, :] * b[None, :, :]).reshape(-1, a.shape[1]),
        map(np.asarray, factors),
    )


#: Combinations of labels up to which all are compared.
MOST_COMBINATIONS = 4096

#: Share of missing columns above which a row misses many.
MANY_MISSING = 1 / 3

#: Share of records below which a column counts as never missing.
RARELY_MISSING = 0.01


class JointClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Predict labels from features that may be missing, at the fit and later.

    A joint model of features and labels is trained to predict the labels: it maximizes their
    conditional likelihood, plus a share of the joint likelihood, plus a prior. For several such
    shares, the rank and the strength of the prior are chosen by held-out labels. All these models
    are averaged, with the weights that predict held-out labels best.

    Parameters
    ----------
    rank : int or "auto"
        Hidden classes of each model; by default chosen by the log-loss of held-out labels.
    solver : str or solver object
        ``"auto"`` trains for the labels as described, and so does
        ``estimators.Conditional(...)`` with settings of your own. ``"ml"``, ``"map"`` and
        ``"bayes"`` estimate the joint model only (see :func:`rejoint.estimate`).
    n_init : int
        Starts of each setting; their models are averaged.
    bins : "auto", int, dict or None
        How columns of numbers are binned. By default those with more than 15 distinct values get
        quantile bins, ``2 n^(1/3)`` for n records (4 to 20). An int is another number of bins;
        a dict or None is passed on to :meth:`Records.of`.
    random_state : int, RandomState, Generator or None
        Source of randomness.

    Attributes
    ----------
    classes_ : array, or list of arrays
        Labels; a list of arrays where there are several targets.
    pmf_ : LowRankPMF
        One model of all features and targets, which answers any question.
    models_ : tuple of LowRankPMF
        The models whose conditional probabilities of the labels are averaged.
    model_weights_ : array (3, models)
        Their weights in that average: for rows that miss nothing unusual, for rows that miss up to
        a third of the columns which were never missing at the fit, and for rows that miss more.
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
    therefore also scored on records with values removed, and have other weights for rows that miss
    columns which were (nearly) never missing at the fit.

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
        """Fit to rows and their labels.

        Parameters
        ----------
        X : table of shape (rows, columns)
            Features; values may be missing.
        y : array of shape (rows,) or (rows, targets), frame, or name of columns of X
            Labels; None or NaN where one is unknown. Several columns are several targets.
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
        X, y = split_targets(X, y)
        features, used = read_features(self, X, sample_weight)
        targets = read_targets(y, features.names, used)
        records = join(features, targets.variables, targets.codes[used > 0])
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
        self._always_there = always_there(records, len(features.names))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of each row; with several targets, a column for each.

        Parameters
        ----------
        X : table of shape (rows, columns)
            Features; values may be missing.

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

        def labels_of(shares: list[FloatArray]) -> list[NDArray[Any]]:
            return [labels[largest(s)] for labels, s in zip(self._classes, shares, strict=True)]

        blocks = self._predict_blocks(X, list, labels_of)
        labels = [np.concatenate(target) for target in zip(*blocks, strict=True)]
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
        check_is_fitted(self)
        blocks = self._predict_blocks(X, list, list)
        shares = [np.concatenate(target) for target in zip(*blocks, strict=True)]
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
        check_is_fitted(self)
        sizes = [len(classes) for classes in self._classes]
        if float(np.prod(sizes, dtype=float)) > MOST_COMBINATIONS:
            raise ValueError(
                f"{np.prod(sizes, dtype=float):,.0f} combinations of labels are too many to be "
                "compared for each row: ask pmf_.mode(target_names_, given=...) row by row."
            )
        blocks = self._predict_blocks(
            X, lambda factors: [products(factors)], lambda shares: np.argmax(shares[0], axis=1)
        )
        places = np.unravel_index(np.concatenate(blocks), sizes)
        labels = [classes[k] for classes, k in zip(self._classes, places, strict=True)]
        return side_by_side(labels)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose labels are all predicted correctly.

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

    def _predict_blocks(
        self, X: Any, ask: Ask, answer: Callable[[list[FloatArray]], Any]
    ) -> list[Any]:
        """Pass the averaged probabilities of the labels to ``answer``, block by block."""
        features = Domain(self.pmf_.domain.variables[: self.n_features_in_])
        codes = read_rows(self, X, features)
        return average_shares(self.models_, self.model_weights_, codes, self._kinds, ask, answer)

    def _kinds(self, codes: Codes) -> IntArray:
        """Whether rows miss none (0), few (1) or many (2) of the columns never missing before."""
        if codes.min(initial=0) >= 0:
            return np.zeros(len(codes), dtype=np.intp)
        missing = (codes[:, self._always_there] < 0).sum(axis=1)
        many = missing > MANY_MISSING * len(self._always_there)
        return np.asarray((missing > 0).astype(np.intp) + many)

    @property
    def _classes(self) -> list[NDArray[Any]]:
        return self.classes_ if isinstance(self.classes_, list) else [self.classes_]

    def __sklearn_tags__(self) -> Any:
        tags = accept_mixed_columns(super().__sklearn_tags__())
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


def join(features: Records, targets: Sequence[Variable], labels: Codes) -> Records:
    """Put features and labels side by side."""
    domain = Domain((*features.domain.variables, *targets))
    return Records(domain, np.hstack([features.codes, labels]), features.sample_weight)


def always_there(records: Records, features: int) -> IntArray:
    """Return the columns that are (nearly) never missing."""
    weight = weights_of(records)
    missing = weight @ (records.codes[:, :features] < 0)
    return np.flatnonzero(missing < RARELY_MISSING * weight.sum())


def largest(shares: FloatArray) -> IntArray:
    """Return the column of the largest share in each row; for two columns faster than argmax.

    Examples
    --------
    >>> largest(np.array([[0.4, 0.6], [0.5, 0.5]]))
    array([1, 0])
    """
    two = shares.shape[1] == 2
    places = shares[:, 1] > shares[:, 0] if two else np.argmax(shares, axis=1)
    return np.asarray(places, dtype=np.intp)


def side_by_side(labels: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Stack columns of labels into one array, of objects if their kinds differ."""
    if len({column.dtype.kind for column in labels}) == 1:
        return np.stack(labels, axis=1)
    return np.stack([column.astype(object) for column in labels], axis=1)
