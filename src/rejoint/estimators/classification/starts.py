"""Where conditional likelihood begins: naive Bayes, each label with several classes around it."""

import numpy as np
from numpy.typing import NDArray

from rejoint.estimation.problem import Array, RecordProblem
from rejoint.estimators.classification.conditional import LabelledProblem

__all__ = ["label_combinations", "label_start"]

#: How far the classes of one label are spread (standard deviation of their logits), and how far
#: a class is from being of one label only.
SPREAD, DOUBT = 0.5, 0.05


def label_combinations(problem: LabelledProblem) -> tuple[NDArray[np.signedinteger], Array]:
    """Combinations of labels that occur, and the weight of each; the heaviest first.

    Examples
    --------
    >>> from rejoint.records import Records
    >>> records = Records.of({"x": ["a", "a", "b"], "y": ["no", "yes", "yes"]})
    >>> label_combinations(LabelledProblem.of(records, 1))
    (array([[1], [0]], dtype=int16), array([2., 1.]))
    """
    known, targets = problem.known, problem.targets
    labels = known.codes[:, known.codes.shape[1] - targets :]
    whole = (labels >= 0).all(axis=1)
    if not whole.any():  # several targets, never all of them known: the largest class of each
        shares = [known.centre[known.rows(n)] for n in range(len(known.levels))][-targets:]
        best = np.array([[int(share.argmax()) for share in shares]], dtype=labels.dtype)
        return best, np.ones(1)
    found, where = np.unique(labels[whole], axis=0, return_inverse=True)
    mass = np.asarray(np.bincount(where.ravel(), weights=known.weight[whole]), dtype=np.float64)
    order = np.argsort(-mass, kind="stable")
    return found[order], mass[order]


def label_start(
    problem: LabelledProblem, rank: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Weights and factors to begin with.

    Each class is given a combination of labels, frequent ones several classes, and looks like the
    records that have it, more or less: with one class for each label this is naive Bayes.

    Examples
    --------
    >>> from rejoint.records import Records
    >>> records = Records.of({"x": ["a", "a", "b"], "y": ["no", "yes", "yes"]})
    >>> rng = np.random.default_rng(0)
    >>> weights, factors = label_start(LabelledProblem.of(records, 1), 2, rng)
    >>> weights.round(2)
    array([0.67, 0.33])
    """
    known = problem.known
    combinations, mass = label_combinations(problem)
    owned = shared_out(mass, rank)
    owner = np.repeat(np.arange(len(owned)), owned)
    looks = np.stack([shares_of(known, combinations[k]) for k in range(len(owned))], axis=1)
    columns = looks[:, owner]
    columns *= np.exp(SPREAD * rng.standard_normal(columns.shape) * (owned[owner] > 1))
    for t in range(problem.targets):
        rows = known.rows(len(known.levels) - problem.targets + t)
        columns[rows] = DOUBT * known.centre[rows, None]
        columns[rows][combinations[owner, t], np.arange(rank)] += 1.0 - DOUBT
    sums = np.add.reduceat(columns, known.offsets[:-1])
    weights = mass[owner] / owned[owner]
    return weights / weights.sum(), columns / np.repeat(sums, known.levels, axis=0)


def shared_out(mass: Array, rank: int) -> NDArray[np.intp]:
    """How many classes each combination gets: one each, the others by the root of its weight.

    Examples
    --------
    >>> shared_out(np.array([9.0, 1.0]), 8), shared_out(np.array([5.0, 3.0, 2.0]), 2)
    (array([6, 2]), array([1, 1]))
    """
    mass = mass[:rank]
    share = rank * np.sqrt(mass) / np.sqrt(mass).sum()
    owned: NDArray[np.intp] = np.maximum(1, np.floor(share)).astype(np.intp)
    while owned.sum() > rank:
        owned[int(np.argmax(owned))] -= 1
    while owned.sum() < rank:
        owned[int(np.argmax(share - owned))] += 1
    return owned


def shares_of(known: RecordProblem, labels: NDArray[np.signedinteger]) -> Array:
    """Shares of all levels among the records with these labels, (L,); a level's worth of prior."""
    there = (known.codes[:, -len(labels) :] == labels).all(axis=1)
    counts = np.repeat(np.asarray(known.levels, dtype=np.float64), known.levels) * known.centre
    for n in range(len(known.levels)):
        codes = known.codes[there, n]
        found = codes >= 0
        weight = known.weight[there][found]
        counts[known.rows(n)] += np.bincount(codes[found], weight, known.levels[n])
    sums = np.repeat(np.add.reduceat(counts, known.offsets[:-1]), known.levels)
    return np.asarray(counts / sums)
