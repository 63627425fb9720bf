"""Where conditional likelihood begins: naive Bayes, each label with several classes around it."""

import numpy as np
from numpy.typing import NDArray

from rejoint.estimation.problem import Array, RecordProblem
from rejoint.estimators.classification.labelled import LabelledProblem

__all__ = ["label_start"]

#: How far the classes of one label are spread (standard deviation of their logits), and how far
#: a class is from being of one label only.
SPREAD, DOUBT = 0.5, 0.05


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
    combinations, mass = problem.combinations
    owner = problem.owners(rank)
    owned = np.bincount(owner)
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
