"""Records with labels: the problem of conditional likelihood, and its prior."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rejoint.domain import Domain
from rejoint.estimation.problem import Array, RecordProblem
from rejoint.records import Records

__all__ = ["LabelledProblem"]

#: Pull on the logits of the labels' columns, which must be free to become sharp, and on those of
#: the weights, of which one is redundant.
LABELS, WEIGHTS = 0.01, 1e-3

#: Pull on each level of an ordered variable, relative to one that is not.
LOOSE = 0.1


@dataclass(frozen=True)
class LabelledProblem:
    """Records with labels, and the same with the labels hidden.

    Parameters
    ----------
    known, blind : RecordProblem
        With and without the labels.
    targets : int
        How many variables, the last ones, are labels.

    Examples
    --------
    >>> records = Records.of({"x": ["a", "a", "b"], "y": ["no", "yes", "yes"]})
    >>> problem = LabelledProblem.of(records, 1)
    >>> len(problem.known.codes), len(problem.blind.codes)
    (3, 2)
    """

    known: RecordProblem
    blind: RecordProblem
    targets: int

    #: The objective of a likelihood has no size to be measured against.
    scale = float("nan")

    @classmethod
    def of(cls, records: Records, targets: int, threads: int | None = None) -> "LabelledProblem":
        """Hide the labels, and merge identical records of both kinds."""
        return cls(
            RecordProblem.of(records, threads),
            RecordProblem.of(without_labels(records, targets), threads),
            targets,
        )

    @property
    def domain(self) -> Domain:
        """Features, then labels."""
        return self.known.domain

    @cached_property
    def anchor(self) -> Array:
        """Logits that the penalty pulls towards, (1 + L, 1): each feature's own shares."""
        logits = np.log(self.known.centre)
        logits[self.labels] = 0.0
        return np.concatenate([[0.0], logits])[:, None]

    @property
    def labels(self) -> slice:
        """Rows of the labels in stacked factors."""
        return slice(int(self.known.offsets[-1 - self.targets]), None)

    def pull(self, strength: float) -> Array:
        """Strength of the penalty on each logit, (1 + L, 1)."""
        ordered = np.repeat([v.kind != "nominal" for v in self.domain], self.known.levels)
        pull = np.where(ordered, LOOSE * strength, strength)
        pull[self.labels] = LABELS
        return np.concatenate([[WEIGHTS], pull])[:, None]

    @cached_property
    def links(self) -> Array:
        """How much more neighbouring levels of ordered variables are pulled together, (L - 1, 1).

        The number of levels over 12: the price of a straight line is then that of its slope over
        one standard deviation, however many levels there are.
        """
        links = np.zeros(int(self.known.offsets[-1]))
        for n, variable in enumerate(self.domain.variables[: -self.targets]):
            if variable.kind != "nominal":
                rows = self.known.rows(n)
                links[rows.start + 1 : rows.stop] = len(variable) / 12.0
        return links[1:, None]

    @cached_property
    def combinations(self) -> tuple[NDArray[np.signedinteger], Array]:
        """Combinations of labels that occur, and the weight of each; the heaviest first."""
        return label_combinations(self.known, self.targets)

    def owners(self, rank: int) -> NDArray[np.intp]:
        """Which combination of labels each class begins with, (F,)."""
        owned = shared_out(self.combinations[1], rank)
        return np.repeat(np.arange(len(owned)), owned)

    def kin(self, rank: int) -> Array:
        """The matrix (F, F) that averages over classes which begin with the same labels."""
        if rank not in self._kin:
            owners = self.owners(rank)
            same = owners[:, None] == owners
            self._kin[rank] = same / same.sum(axis=0)
        return self._kin[rank]

    @cached_property
    def _kin(self) -> dict[int, Array]:
        return {}


def without_labels(records: Records, targets: int) -> Records:
    """The same records with the last variables missing."""
    codes = np.array(records.codes)
    codes[:, codes.shape[1] - targets :] = -1
    return replace(records, codes=codes)


def label_combinations(
    known: RecordProblem, targets: int
) -> tuple[NDArray[np.signedinteger], Array]:
    """Combinations of labels that occur, and the weight of each; the heaviest first.

    Examples
    --------
    >>> records = Records.of({"x": ["a", "a", "b"], "y": ["no", "yes", "yes"]})
    >>> LabelledProblem.of(records, 1).combinations
    (array([[1], [0]], dtype=int16), array([2., 1.]))
    """
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
