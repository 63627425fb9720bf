"""How well ratings are foreseen: those held out of users that are known, or of new ones.

Evidence is a sparse matrix with a row a user and a column a level of an item: ones where the user
gave that rating. The log-likelihood of the classes is its product with the log factors; the cost
is one multiplication for each observed cell and class, whatever the number of items. Where absence
is a level itself (bought or not), a ``background`` vector says which levels a user has who has done
nothing; a row then holds a one at the level in its place and a minus one at the background's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rejoint.estimators.recommender.ratings import Cells
from rejoint.pmf.pmf import LowRankPMF

Array = NDArray[np.float64]

#: Numbers in a block of posteriors (users x classes): 32 MB.
BLOCK = 2**22


@dataclass(frozen=True)
class Evidence:
    """Cells that are known, (users, levels of all items), and what holds without them."""

    cells: Any  # scipy.sparse.csr_array of float
    background: Array | None = None  # (levels of all items,)

    @cached_property
    def totals(self) -> Array:
        """Number of users at each level."""
        found = np.asarray(self.cells.sum(axis=0), dtype=np.float64).ravel()
        return found if self.background is None else found + self.cells.shape[0] * self.background

    @property
    def work(self) -> int:
        """Observed cells that a pass multiplies by."""
        return int(self.cells.nnz)

    def take(self, users: NDArray[np.intp]) -> "Evidence":
        """Evidence of some users."""
        return Evidence(self.cells[users], self.background)


def normalised(logs: Array) -> tuple[Array, Array]:
    """Log-sums of rows, and rows scaled to sum to one; in place.

    Examples
    --------
    >>> total, shares = normalised(np.log([[0.1, 0.3]]))
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
    evidence: Evidence, log_factors: Array, log_weights: Array
) -> Iterator[tuple[slice, Array, Array]]:
    """Users, their log-probability and their posterior of the classes, block by block.

    Examples
    --------
    >>> from scipy import sparse
    >>> logs = np.log([[0.9, 0.2], [0.1, 0.8]])
    >>> known = Evidence(sparse.csr_array([[1.0, 0.0], [0.0, 0.0]]))
    >>> [(rows, _, posterior)] = posterior_blocks(known, logs, np.log([0.5, 0.5]))
    >>> posterior.round(2)
    array([[0.82, 0.18],
           [0.5 , 0.5 ]])
    """
    base = log_weights
    if evidence.background is not None:
        base = base + evidence.background @ log_factors
    users = evidence.cells.shape[0]
    size = max(1, BLOCK // len(log_weights))
    for start in range(0, users, size):
        rows = slice(start, min(start + size, users))
        yield rows, *normalised(np.asarray(evidence.cells[rows] @ log_factors) + base)


def leave_one_out(logs: Array, terms: Array) -> Array:
    """Posteriors of the classes with each of some terms taken away, (terms, F).

    Parameters
    ----------
    logs : (F,)
        Log-probability of classes and all evidence.
    terms : (n, F)
        What each piece of evidence has added to it.

    Examples
    --------
    >>> terms = np.log([[0.5, 0.1], [0.5, 0.5]])
    >>> leave_one_out(terms.sum(axis=0), terms).round(2)
    array([[0.5 , 0.5 ],
           [0.83, 0.17]])
    """
    return normalised(logs - terms)[1]


Ints = NDArray[np.intp]

#: A product of matrices is about so many times quicker than as many single products.
GEMM = 20

#: Stands for zero, so that no ratings of a user can contradict each other.
TINY = 1e-100


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


def judge_rows(model: RatingModel, evidence: Evidence, cells: Cells) -> float:
    """Error of cells (places in the evidence, -1 if not there); rank where feedback is implicit."""
    expected = np.full(len(cells.user), overall(model, evidence))
    known = np.flatnonzero(cells.item >= 0)
    if evidence.background is not None:
        return float(np.mean([rank_of(model, evidence, cells, int(i)) for i in known]))
    # A user whom the fit has not seen has rated nothing: a row after the last.
    users = np.where(cells.user < 0, evidence.cells.shape[0], cells.user)[known]
    known, users = known[np.argsort(users, kind="stable")], np.sort(users)
    distinct, which = np.unique(users, return_inverse=True)
    mine = with_empty_row(evidence).take(distinct)
    expected[known] = model.pairs(mine, which, cells.item[known], model.means)
    return root_mean_square(expected - cells.rating)


def judge_table(model: RatingModel, evidence: Evidence) -> float:
    """Error of each rating predicted from the user's others; or rank where that is implicit."""
    found: list[Array] = []
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
                np.array([lower(s[others], v) for s, v in zip(scores, mine_of, strict=True)])
            )
    every = np.concatenate(found) if found else np.empty(0)
    if len(every) == 0:
        raise ValueError("There is nothing to score: X has no rating.")
    return float(every.mean()) if evidence.background is not None else root_mean_square(every)


def rank_of(model: RatingModel, evidence: Evidence, cells: Cells, row: int) -> float:
    """Share of the items that a user does not have which rank below that of a row."""
    if cells.user[row] < 0:
        mine = with_empty_row(evidence).take(np.array([evidence.cells.shape[0]]))
    else:
        mine = evidence.take(cells.user[[row]])
    scores = model.means @ model.posterior(mine)
    others = np.setdiff1d(np.arange(len(scores)), [*model.given(mine)[0], cells.item[row]])
    return lower(scores[others], scores[cells.item[row]])


def lower(others: Array, mine: float) -> float:
    """Share of others below one, ties counting half."""
    if len(others) == 0:
        return 1.0
    return float((others < mine).mean() + 0.5 * (others == mine).mean())


def overall(model: RatingModel, evidence: Evidence) -> float:
    """Mean of all ratings of the evidence."""
    totals = evidence.totals.reshape(-1, model.size).sum(axis=0)
    return float(totals @ model.values / totals.sum())


def with_empty_row(evidence: Evidence) -> Evidence:
    """The same with one more user, who has rated nothing."""
    empty = sparse.csr_array((1, evidence.cells.shape[1]))
    return Evidence(sparse.vstack([evidence.cells, empty], format="csr"), evidence.background)


def root_mean_square(errors: Array) -> float:
    """Root of the mean square."""
    return float(np.sqrt(np.mean(errors**2)))
