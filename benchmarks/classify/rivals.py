"""Five methods of scikit-learn, tuned on the validation part and then fitted to both parts.

A missing cell is a level of its own to them, which says more than the mode would.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import CategoricalNB
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.svm import SVC, LinearSVC

C = [0.01, 0.1, 1.0, 10.0, 100.0]
#: Rows beyond which an SVM with a kernel is tuned on some of them.
MOST = 5000


def naive_bayes(levels: list[int]) -> Iterator[Any]:
    for alpha in (0.1, 0.5, 1.0, 2.0):
        yield CategoricalNB(alpha=alpha, min_categories=levels)


def linear_svm(levels: list[int]) -> Iterator[Any]:
    for c in C:
        yield LinearSVC(C=c, max_iter=20_000)


def rbf_svm(levels: list[int]) -> Iterator[Any]:
    for c in (0.3, 1.0, 3.0, 10.0, 100.0):
        for gamma in (0.01, 0.03, 0.1, 0.3):
            yield SVC(C=c, gamma=gamma, cache_size=500)


def logistic(levels: list[int]) -> Iterator[Any]:
    for c in C:
        yield LogisticRegression(C=c, max_iter=2000)


def boosting(levels: list[int]) -> Iterator[Any]:
    for rate in (0.03, 0.1, 0.3):
        for leaves in (4, 31):
            yield HistGradientBoostingClassifier(
                learning_rate=rate,
                max_leaf_nodes=leaves,
                max_iter=300,
                early_stopping=False,
                categorical_features=[n < 255 for n in levels],
                random_state=0,
            )


Grid = Callable[[list[int]], Iterator[Any]]
RIVALS: dict[str, tuple[Grid, bool]] = {  # and whether it wants columns of zeros and ones
    "naive Bayes": (naive_bayes, False),
    "linear SVM": (linear_svm, True),
    "RBF SVM": (rbf_svm, True),
    "logistic regression": (logistic, True),
    "boosting": (boosting, False),
}


def predict(
    rival: str,
    X: pd.DataFrame,
    y: np.ndarray,
    learn: np.ndarray,
    judge: np.ndarray,
    test: np.ndarray,
) -> np.ndarray:
    """Labels of the test part."""
    grid, one_hot = RIVALS[rival]
    filled = X.where(X.notna(), "missing")
    encoder = OneHotEncoder(handle_unknown="ignore") if one_hot else OrdinalEncoder(dtype=np.int64)
    codes = encoder.fit_transform(filled)  # levels are known beforehand; the label is not used
    levels = [filled[name].nunique() for name in filled]
    some = learn[:MOST] if grid is rbf_svm else learn
    fits = [model.fit(codes[some], y[some]) for model in grid(levels)]
    best = fits[int(np.argmax([model.score(codes[judge], y[judge]) for model in fits]))]
    both = np.concatenate([learn, judge])
    return np.asarray(best.fit(codes[both], y[both]).predict(codes[test]))
