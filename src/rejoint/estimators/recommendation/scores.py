"""How well ratings are foreseen: those held out of users that are known, or of new ones."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rejoint.estimators.recommendation.fold_in import Evidence
from rejoint.estimators.recommendation.model import RatingModel
from rejoint.estimators.recommendation.ratings import Cells

__all__ = ["judge_rows", "judge_table"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]


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
