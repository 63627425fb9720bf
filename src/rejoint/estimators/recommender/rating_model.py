"""Predict ratings from the ratings that users have given, and score the predictions.

The evidence is a sparse matrix with a row for each user and a column for each level of an item,
with ones where the user gave that rating. The log-likelihood of the classes is its product with the
log factors; the cost is one multiplication for each observed cell and class, whatever the number of
items. Where absence is a level itself (bought or not), a ``background`` vector holds the levels of
a user who has done nothing; a row then has a one at each level that differs and a minus one at the
background's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from rejoint.arrays import FloatArray, IntArray
from rejoint.pmf.pmf import LowRankPMF

if TYPE_CHECKING:
    from rejoint.estimators.recommender.ratings import Ratings


#: Numbers in a block of posteriors (users x classes): 32 MB.
BLOCK_NUMBERS = 2**22


@dataclass(frozen=True)
class UserEvidence:
    """Known ratings, (users, levels of all items), and the levels that hold without them."""

    cells: Any  # scipy.sparse.csr_array of float
    background: FloatArray | None = None  # (levels of all items,)

    @cached_property
    def totals(self) -> FloatArray:
        """Number of users at each level, (levels of all items,)."""
        found = np.asarray(self.cells.sum(axis=0), dtype=np.float64).ravel()
        return found if self.background is None else found + self.cells.shape[0] * self.background

    def take(self, users: IntArray) -> "UserEvidence":
        """Return the evidence of some users."""
        return UserEvidence(self.cells[users], self.background)


def normalize_logs(logs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log-sums of rows, and the rows as probabilities that sum to one; in place.

    Examples
    --------
    >>> total, shares = normalize_logs(np.log([[0.1, 0.3]]))
    >>> np.exp(total).round(2), shares.round(2)
    (array([0.4]), array([[0.25, 0.75]]))
    """
    top = logs.max(axis=1, keepdims=True)
    logs -= top
    np.exp(logs, out=logs)
    total = logs.sum(axis=1, keepdims=True)
    logs /= total
    return (top + np.log(total))[:, 0], logs


def posterior_blocks(
    evidence: UserEvidence, log_factors: FloatArray, log_weights: FloatArray
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Yield users, their log-probability and their posterior of the classes, block by block.

    Examples
    --------
    >>> from scipy import sparse
    >>> logs = np.log([[0.9, 0.2], [0.1, 0.8]])
    >>> known = UserEvidence(sparse.csr_array([[1.0, 0.0], [0.0, 0.0]]))
    >>> [(rows, _, posterior)] = posterior_blocks(known, logs, np.log([0.5, 0.5]))
    >>> posterior.round(2)
    array([[0.82, 0.18],
           [0.5 , 0.5 ]])
    """
    base = log_weights
    if evidence.background is not None:
        base = base + evidence.background @ log_factors
    users = evidence.cells.shape[0]
    size = max(1, BLOCK_NUMBERS // len(log_weights))
    for start in range(0, users, size):
        rows = slice(start, min(start + size, users))
        yield rows, *normalize_logs(np.asarray(evidence.cells[rows] @ log_factors) + base)


#: How many times faster a product of matrices is than the same number of single products.
GEMM_SPEEDUP = 20

#: Stands for zero, so that no ratings of a user can contradict each other.
LEAST_PROBABILITY = 1e-100


@dataclass(frozen=True)
class RatingModel:
    """Log weights (R,) and log factors (N I, R) of a joint whose items share their I levels."""

    log_weights: FloatArray
    log_factors: FloatArray
    values: FloatArray

    @classmethod
    def of(cls, pmf: LowRankPMF, values: FloatArray) -> "RatingModel":
        """Return the logs of a joint; impossible ratings become nearly impossible."""
        weights, factors = np.asarray(pmf.weights), np.concatenate(pmf.factors)
        logs = [np.log(np.maximum(part, LEAST_PROBABILITY)) for part in (weights, factors)]
        return cls(logs[0], logs[1], values)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("log_weights", "log_factors", "values")}

    @property
    def size(self) -> int:
        """Levels of an item."""
        return len(self.values)

    @cached_property
    def factors(self) -> FloatArray:
        """Probabilities of all items' levels in the classes, (N, I, R)."""
        return np.exp(self.log_factors).reshape(-1, self.size, len(self.log_weights))

    @cached_property
    def means(self) -> FloatArray:
        """Expected rating of items in the classes, (N, R)."""
        return np.asarray(np.einsum("nir,i->nr", self.factors, self.values))

    def liking(self, level: int) -> FloatArray:
        """Return the probability that a rating reaches a level, (N, R); the last answer is kept."""
        kept: tuple[int, FloatArray] | None = self.__dict__.get("_liking")
        if kept is None or kept[0] != level:
            kept = level, self.factors[:, level:].sum(axis=1)
            self.__dict__["_liking"] = kept
        return kept[1]

    def logs(self, evidence: UserEvidence) -> FloatArray:
        """Return the log-probability of the classes and one user's evidence, (R,)."""
        total = self.log_weights + (evidence.cells @ self.log_factors)[0]
        if evidence.background is not None:
            if "_background" not in self.__dict__:
                self.__dict__["_background"] = evidence.background @ self.log_factors
            total = total + self.__dict__["_background"]
        return np.asarray(total)

    def posterior(self, evidence: UserEvidence) -> FloatArray:
        """Return the probability of each class for one user, (R,)."""
        return np.asarray(normalize_logs(self.logs(evidence)[None])[1][0])

    def given(self, evidence: UserEvidence) -> tuple[IntArray, IntArray]:
        """Return the items that one user has rated, and the levels."""
        cells = evidence.cells
        there = cells.indices[cells.data > 0].astype(np.intp)
        return there // self.size, there % self.size

    def without_each(self, evidence: UserEvidence) -> FloatArray:
        """Return the posterior of one user without each of the ratings, (ratings, R)."""
        items, levels = self.given(evidence)
        terms = self.log_factors[items * self.size + levels]
        return normalize_logs(self.logs(evidence) - terms)[1]

    def average(self, evidence: UserEvidence, table: FloatArray) -> FloatArray:
        """Average rows of ``table`` (n, R) over each user's classes, (users, n)."""
        found = np.empty((evidence.cells.shape[0], len(table)))
        for rows, _, posterior in posterior_blocks(evidence, self.log_factors, self.log_weights):
            found[rows] = posterior @ table.T
        return found

    def average_pairs(
        self, evidence: UserEvidence, users: IntArray, items: IntArray, table: FloatArray
    ) -> FloatArray:
        """Average ``table[items]`` (n, ..., R) over the classes of users, row by row.

        ``users`` are places in the evidence, in increasing order.
        """
        found = np.empty((len(users), *table.shape[1:-1]))
        for rows, _, posterior in posterior_blocks(evidence, self.log_factors, self.log_weights):
            here = slice(*np.searchsorted(users, [rows.start, rows.stop]))
            if here.start < here.stop:
                mine = users[here] - rows.start
                found[here] = average_rows(posterior, mine, items[here], table)
        return found


def average_rows(
    posterior: FloatArray, users: IntArray, items: IntArray, table: FloatArray
) -> FloatArray:
    """Average ``table[items]`` over the posteriors of one block of users."""
    distinct, place = np.unique(items, return_inverse=True)
    flat = table[distinct].reshape(-1, table.shape[-1])
    if len(posterior) * len(distinct) <= GEMM_SPEEDUP * len(items):
        all_of = (posterior @ flat.T).reshape(len(posterior), len(distinct), *table.shape[1:-1])
        return np.asarray(all_of[users, place])
    found = np.empty((len(items), *table.shape[1:-1]))
    step = max(1, BLOCK_NUMBERS // (flat.shape[1] * (flat.shape[0] // len(distinct))))
    for start in range(0, len(items), step):
        part = slice(start, start + step)
        found[part] = np.einsum("n...r,nr->n...", table[items[part]], posterior[users[part]])
    return found


def score_rows(model: RatingModel, evidence: UserEvidence, cells: "Ratings") -> float:
    """Return the error of ratings (place -1: not in the evidence); implicit: their mean rank."""
    expected = np.full(len(cells.user), mean_rating(model, evidence))
    known = np.flatnonzero(cells.item >= 0)
    if evidence.background is not None:
        return float(np.mean([rank_row(model, evidence, cells, int(i)) for i in known]))
    # A user whom the fit has not seen has rated nothing: a row after the last.
    users = np.where(cells.user < 0, evidence.cells.shape[0], cells.user)[known]
    known, users = known[np.argsort(users, kind="stable")], np.sort(users)
    distinct, which = np.unique(users, return_inverse=True)
    mine = with_empty_row(evidence).take(distinct)
    expected[known] = model.average_pairs(mine, which, cells.item[known], model.means)
    return root_mean_square(expected - cells.rating)


def score_table(model: RatingModel, evidence: UserEvidence) -> float:
    """Return the error of each rating predicted from the user's others; implicit: their rank."""
    found: list[FloatArray] = []
    for user in range(evidence.cells.shape[0]):
        mine = evidence.take(np.array([user]))
        items, levels = model.given(mine)
        classes = model.without_each(mine)
        if evidence.background is None:
            expected = np.einsum("nr,nr->n", classes, model.means[items])
            found.append(expected - model.values[levels])
        elif len(items) < len(model.means):
            others = np.setdiff1d(np.arange(len(model.means)), items)
            scores = classes @ model.means.T
            mine_of = scores[np.arange(len(items)), items]
            found.append(
                np.array([share_below(s[others], v) for s, v in zip(scores, mine_of, strict=True)])
            )
    every = np.concatenate(found) if found else np.empty(0)
    if len(every) == 0:
        raise ValueError("There is nothing to score: X has no rating.")
    return float(every.mean()) if evidence.background is not None else root_mean_square(every)


def rank_row(model: RatingModel, evidence: UserEvidence, cells: "Ratings", row: int) -> float:
    """Return the share of items the user does not have that rank below the item of a row."""
    if cells.user[row] < 0:
        mine = with_empty_row(evidence).take(np.array([evidence.cells.shape[0]]))
    else:
        mine = evidence.take(cells.user[[row]])
    scores = model.means @ model.posterior(mine)
    others = np.setdiff1d(np.arange(len(scores)), [*model.given(mine)[0], cells.item[row]])
    return share_below(scores[others], scores[cells.item[row]])


def share_below(others: FloatArray, mine: float) -> float:
    """Return the share of others below one; ties count half."""
    if len(others) == 0:
        return 1.0
    return float((others < mine).mean() + 0.5 * (others == mine).mean())


def mean_rating(model: RatingModel, evidence: UserEvidence) -> float:
    """Return the mean of all ratings of the evidence."""
    totals = evidence.totals.reshape(-1, model.size).sum(axis=0)
    return float(totals @ model.values / totals.sum())


def with_empty_row(evidence: UserEvidence) -> UserEvidence:
    """Add one more user, who has rated nothing."""
    empty = sparse.csr_array((1, evidence.cells.shape[1]))
    return UserEvidence(sparse.vstack([evidence.cells, empty], format="csr"), evidence.background)


def root_mean_square(errors: FloatArray) -> float:
    """Root of the mean square."""
    return float(np.sqrt(np.mean(errors**2)))
