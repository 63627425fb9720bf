"""What a user's ratings say of the others: posteriors of classes from observed cells only.

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

__all__ = ["Evidence", "leave_one_out", "normalised", "posterior_blocks"]

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
