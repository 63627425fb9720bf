"""Labels predicted by the paper's method, and by `JointClassifier`."""

from collections.abc import Sequence
from functools import cache
from itertools import compress, product
from typing import Any, Literal

import numpy as np
from benchmarks.classify import sets

import rejoint as rj
from paper import coupled

OURS = "JointClassifier"
#: Shares of the uniform that are tried in the factors of a model before it predicts labels.
MIXED = (0.2, 0.05, 0.01, 1e-3, 1e-6)
#: What is done with missing cells.
Missing = Literal["mode", "level", "left out"]


@cache
def table(name: str, missing: Missing = "mode") -> rj.Records:
    """Features and, last, the label.

    Missing cells hold the mode, as in public loaders of the same line of work, or are a level of
    their own, or their rows are left out.
    """
    X, y = rj.datasets.paper_set(name.lower(), filled=missing == "mode", backend="dict")
    columns = {key: [str(x) for x in column] for key, column in X.items()}
    columns |= {"label": [str(x) for x in y]}
    if missing == "left out":
        whole = [all(x is not None for x in row) for row in zip(*X.values(), strict=True)]
        columns = {key: list(compress(column, whole)) for key, column in columns.items()}
    return rj.Records.of(columns)


def by_tables(
    records: rj.Records,
    order: int,
    parts: tuple[np.ndarray, ...],
    ranks: Sequence[int],
    starts: int,
    sweeps: int,
) -> dict[str, Any]:
    """The paper's method: rank, start and share with the fewest errors on the validation part."""
    learn, judge, test = parts
    codes = records.codes
    known = rj.Records(records.domain, np.ascontiguousarray(codes[learn]))
    tried = []
    models = coupled.models(known, order, ranks, starts, sweeps)
    for model, mixed in product(models, MIXED):
        shares = label_shares(model, codes, mixed)
        wrong = shares.argmax(axis=1) != codes[:, -1]
        surprise = -np.log(shares[judge, codes[judge, -1]]).mean()  # where errors tie
        tried.append((wrong[judge].mean(), surprise, model.rank, mixed, wrong[test].mean()))
    _, _, rank, mixed, error = min(tried)
    return {
        "error": error,
        "rank": rank,
        "mixed": mixed,
        "tried": [(rank, mixed, round(float(t), 6)) for _, _, rank, mixed, t in tried],
    }


def label_shares(model: rj.LowRankPMF, codes: np.ndarray, mixed: float) -> np.ndarray:
    """Probabilities of the label, the last variable, given the others."""
    hidden = codes.copy()
    hidden[:, -1] = -1
    shares = coupled.class_shares(model, hidden, mixed) @ coupled.softened(model, mixed)[-1].T
    return np.maximum(shares, 1e-12)


def ours(dataset: str, number: int) -> dict[str, Any]:
    """The classifier as the benchmark of it runs it."""
    from benchmarks.classify.__main__ import measure

    X, y = sets.load(dataset.lower())
    return measure(OURS, X, y, sets.split(len(y), number))
