"""The paper's three baselines for labels, by scikit-learn.

All learn from the 70 % that the tables are counted from; what they leave open is tuned on the
validation part. SVMs get both encodings, codes in the order of the labels, scaled, and columns of
zeros and ones. Several classes are told apart pair by pair, as MATLAB does.
"""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
from benchmarks.classify.rivals import linear_svm, naive_bayes
from numpy.typing import NDArray

#: Rows that a kernel is tuned on, and fitted to: the time grows with their square.
TUNED_ON, FITTED_TO = 800, 4000


def pairwise_linear(levels: list[int]) -> Iterator[Any]:
    from sklearn.multiclass import OneVsOneClassifier

    yield from (OneVsOneClassifier(model) for model in linear_svm(levels))


def rbf(levels: list[int]) -> Iterator[Any]:
    from sklearn.svm import SVC

    for c in (1.0, 10.0, 100.0):
        for gamma in (0.03, 0.1, 0.3):
            yield SVC(C=c, gamma=gamma)


class PairLosses:
    """Pairs of classes told apart at hinge loss, and the class of least loss: MATLAB's way."""

    def __init__(self, c: float) -> None:
        from sklearn.svm import SVC

        self.machine = SVC(kernel="linear", C=c, decision_function_shape="ovo")

    def fit(self, features: Any, labels: NDArray[Any]) -> "PairLosses":
        self.machine.fit(features, labels)
        return self

    def score(self, features: Any, labels: NDArray[Any]) -> float:
        classes = self.machine.classes_
        margins = self.machine.decision_function(features)
        losses = np.zeros((len(labels), len(classes)))
        for margin, (first, second) in zip(
            margins.T, combinations(range(len(classes)), 2), strict=True
        ):
            losses[:, first] += np.maximum(0, 1 - margin)
            losses[:, second] += np.maximum(0, 1 + margin)
        return float(np.mean(classes[losses.argmin(axis=1)] == labels))


def pair_losses(levels: list[int]) -> Iterator[Any]:
    yield from (PairLosses(c) for c in (1.0, 10.0))


def plus_one(levels: list[int]) -> Iterator[Any]:
    from sklearn.naive_bayes import CategoricalNB

    yield CategoricalNB(alpha=1.0, min_categories=levels)


Grid = Callable[[list[int]], Iterator[Any]]
BASELINES: dict[str, tuple[Grid, tuple[str, ...]]] = {
    "SVM (Linear)": (pairwise_linear, ("original", "one-hot")),
    "SVM (RBF)": (rbf, ("original", "one-hot")),
    "Naive Bayes": (naive_bayes, ("codes",)),
}
#: What else could stand behind a printed row.
VARIANTS: dict[str, tuple[Grid, tuple[str, ...]]] = {
    "SVM (Linear), one against the rest": (linear_svm, ("one-hot",)),
    "SVM (Linear), losses of pairs": (pair_losses, ("one-hot",)),
    "Naive Bayes, counts plus one": (plus_one, ("codes",)),
}


def errors(
    method: str,
    codes: NDArray[np.int16],
    labels: NDArray[Any],
    levels: list[int],
    parts: tuple[NDArray[np.intp], ...],
) -> dict[str, float]:
    """Error on the test part for every encoding of the features."""
    grid, encodings = (BASELINES | VARIANTS)[method]
    features = {kind: encoded(codes, levels, kind) for kind in encodings}
    return {kind: one(grid, x, labels, levels, parts) for kind, x in features.items()}


def one(
    grid: Grid, features: Any, labels: NDArray[Any], levels: list[int], parts: tuple[Any, ...]
) -> float:
    """Error of the setting that is best on the validation part, the first of several."""
    import warnings

    learn, judge, test = parts
    some, all_ = (learn[:TUNED_ON], learn[:FITTED_TO]) if grid is rbf else (learn, learn)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some settings do not converge
        fits = [model.fit(features[some], labels[some]) for model in grid(levels)]
        scores = [model.score(features[judge], labels[judge]) for model in fits]
        best = fits[int(np.argmax(scores))].fit(features[all_], labels[all_])
        return float(1 - best.score(features[test], labels[test]))


def encoded(codes: NDArray[np.int16], levels: list[int], kind: str) -> Any:
    """Codes as they are, scaled, or as columns of zeros and ones."""
    from scipy import sparse

    if kind == "codes":
        return codes.astype(np.int64)
    if kind == "original":
        numbers = codes.astype(np.float64)
        return (numbers - numbers.mean(axis=0)) / np.maximum(numbers.std(axis=0), 1e-9)
    rows, width = np.arange(len(codes)).repeat(codes.shape[1]), int(sum(levels))
    columns = codes + np.concatenate([[0], np.cumsum(levels)[:-1]])
    shape = (len(codes), width)
    return sparse.csr_matrix((np.ones(codes.size), (rows, columns.ravel())), shape=shape)
