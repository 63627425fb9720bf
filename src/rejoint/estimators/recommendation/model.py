"""The fitted joint of all items, as it answers for users: classes, expectations, distributions."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.estimators.recommendation.fold_in import (
    Evidence,
    leave_one_out,
    normalised,
    posterior_blocks,
)
from rejoint.pmf import LowRankPMF

__all__ = ["RatingModel"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

#: A product of matrices is about so many times quicker than as many single products.
GEMM = 20

#: Stands for zero, so that no ratings of a user can contradict each other.
TINY = 1e-100

#: Numbers in a block of columns that are gathered: 32 MB.
BLOCK = 2**22


@dataclass(frozen=True)
class RatingModel:
    """Log weights (R,) and log factors (N I, R) of a joint whose items share their I levels."""

    log_weights: Array
    log_factors: Array
    values: Array

    @classmethod
    def of(cls, pmf: LowRankPMF, values: Array) -> "RatingModel":
        """From a joint; what is impossible in it becomes merely next to so."""
        factors = np.concatenate(pmf.factors)
        return cls(np.log(np.maximum(pmf.weights, TINY)), np.log(np.maximum(factors, TINY)), values)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("log_weights", "log_factors", "values")}

    @property
    def size(self) -> int:
        """Levels of an item."""
        return len(self.values)

    @cached_property
    def factors(self) -> Array:
        """Probabilities of all items' levels in the classes, (N, I, R)."""
        return np.exp(self.log_factors).reshape(-1, self.size, len(self.log_weights))

    @cached_property
    def means(self) -> Array:
        """Expected rating of items in the classes, (N, R)."""
        return np.asarray(np.einsum("nir,i->nr", self.factors, self.values))

    def liking(self, level: int) -> Array:
        """Probability that a rating reaches a level, (N, R); the last answer is kept."""
        kept: tuple[int, Array] | None = self.__dict__.get("_liking")
        if kept is None or kept[0] != level:
            kept = level, self.factors[:, level:].sum(axis=1)
            self.__dict__["_liking"] = kept
        return kept[1]

    def logs(self, evidence: Evidence) -> Array:
        """Log-probability of classes and the evidence of one user, (R,)."""
        total = self.log_weights
        if evidence.background is not None:
            total = total + self.background_logs(evidence.background)
        return np.asarray(total + (evidence.cells @ self.log_factors)[0])

    def background_logs(self, background: Array) -> Array:
        """Log-probability of the classes of a user who has done nothing, less the weights."""
        kept: Array | None = self.__dict__.get("_background")
        if kept is None:
            kept = np.asarray(background @ self.log_factors)
            self.__dict__["_background"] = kept
        return kept

    def posterior(self, evidence: Evidence) -> Array:
        """Classes of one user, (R,)."""
        return np.asarray(normalised(self.logs(evidence)[None])[1][0])

    def given(self, evidence: Evidence) -> tuple[Ints, Ints]:
        """Items that one user has rated, and the levels."""
        cells = evidence.cells
        there = cells.indices[cells.data > 0].astype(np.intp)
        return there // self.size, there % self.size

    def without_each(self, evidence: Evidence) -> Array:
        """Classes of one user without each of the ratings, (ratings, R)."""
        items, levels = self.given(evidence)
        rows = items * self.size + levels
        return leave_one_out(self.logs(evidence), self.log_factors[rows])

    def expected(self, evidence: Evidence) -> Array:
        """Expected rating of every item, (users, N)."""
        return self.gathered(evidence, self.means)

    def gathered(self, evidence: Evidence, table: Array) -> Array:
        """Mean of rows of ``table`` (n, R) over each user's classes, (users, n)."""
        found = np.empty((evidence.cells.shape[0], len(table)))
        for rows, _, posterior in posterior_blocks(evidence, self.log_factors, self.log_weights):
            found[rows] = posterior @ table.T
        return found

    def pairs(self, evidence: Evidence, users: Ints, items: Ints, table: Array) -> Array:
        """Mean of ``table[items]`` (n, ..., R) over the classes of users, row by row.

        ``users`` are places in the evidence, in increasing order.
        """
        found = np.empty((len(users), *table.shape[1:-1]))
        for rows, _, posterior in posterior_blocks(evidence, self.log_factors, self.log_weights):
            here = slice(*np.searchsorted(users, [rows.start, rows.stop]))
            if here.start < here.stop:
                mine = users[here] - rows.start
                found[here] = paired(posterior, mine, items[here], table)
        return found


def paired(posterior: Array, users: Ints, items: Ints, table: Array) -> Array:
    """The same within one block of posteriors."""
    distinct, place = np.unique(items, return_inverse=True)
    flat = table[distinct].reshape(-1, table.shape[-1])
    if len(posterior) * len(distinct) <= GEMM * len(items):
        all_of = (posterior @ flat.T).reshape(len(posterior), len(distinct), *table.shape[1:-1])
        return np.asarray(all_of[users, place])
    found = np.empty((len(items), *table.shape[1:-1]))
    step = max(1, BLOCK // (flat.shape[1] * (flat.shape[0] // len(distinct))))
    for start in range(0, len(items), step):
        part = slice(start, start + step)
        found[part] = np.einsum("n...r,nr->n...", table[items[part]], posterior[users[part]])
    return found
