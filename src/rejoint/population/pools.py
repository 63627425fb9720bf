"""The rows that a population is made of: drawn from the model, and some for every cell wanted."""

import numpy as np
from numpy.typing import NDArray

from rejoint.marginals import Marginals
from rejoint.pmf import LowRankPMF
from rejoint.records import Records

__all__ = ["draw_pool"]

#: Rows that the pool is drawn from, for each record wanted; at least, and at the most.
DRAWS, LEAST, MOST = 20, 20_000, 1_000_000

#: Rows drawn for each cell that a table has records in, so that rare cells can be filled too.
EACH = 6


def draw_pool(pmf: LowRankPMF, n: int, tables: Marginals, rng: np.random.Generator) -> Records:
    """Distinct rows with their weights; those of the model's own draws weigh most.

    Examples
    --------
    >>> p = LowRankPMF([1.0], [[[1.0], [0.0]], [[0.5], [0.5]]])
    >>> tables = Marginals.from_tables({("x0",): [9, 1]}, domain=p.domain.project(["x0"]))
    >>> int(draw_pool(p, 10, tables, np.random.default_rng(0)).codes[:, 0].max())
    1
    """
    drawn = pmf.sample(max(min(DRAWS * n, MOST), LEAST), random_state=rng)
    codes, weight = [drawn.codes], [np.ones(len(drawn))]
    for i, subset in enumerate(tables.index_subsets):
        names = [tables.domain.names[m] for m in subset]
        wanted = np.argwhere(tables.counts_of(i) > 0)
        rows = rows_of_cells(pmf, pmf.domain.indices(names), np.repeat(wanted, EACH, axis=0), rng)
        codes.append(rows.astype(drawn.codes.dtype))
        weight.append(np.full(len(rows), 1e-3))
    return Records(pmf.domain, np.concatenate(codes), np.concatenate(weight)).merged()


def rows_of_cells(
    pmf: LowRankPMF, variables: tuple[int, ...], cells: NDArray[np.intp], rng: np.random.Generator
) -> NDArray[np.intp]:
    """A row for each cell, its other variables drawn given it; any class where none has the cell.

    Examples
    --------
    >>> p = LowRankPMF([0.5, 0.5], [np.eye(2), np.eye(2)])
    >>> rows_of_cells(p, (0,), np.array([[0], [1]]), np.random.default_rng(0))
    array([[0, 0],
           [1, 1]])
    """
    likelihood = np.tile(pmf.weights, (len(cells), 1))
    for n, levels in zip(variables, cells.T, strict=True):
        likelihood = likelihood * pmf.factors[n][levels]
    likelihood[likelihood.sum(axis=1) <= 0.0] = pmf.weights
    classes = draw_columns(likelihood.T, rng)
    rows = np.empty((len(cells), len(pmf.domain)), dtype=np.intp)
    for n in range(len(pmf.domain)):
        if n in variables:
            rows[:, n] = cells[:, variables.index(n)]
        else:
            rows[:, n] = draw_columns(pmf.factors[n][:, classes], rng)
    return rows


def draw_columns(shares: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.intp]:
    """One row number for each column, with probability in proportion to its entries."""
    edges = np.cumsum(shares, axis=0)
    # From (0, 1]: a first row of probability zero is never drawn.
    point = (1.0 - rng.random(shares.shape[1])) * edges[-1]
    return np.asarray((edges < point).sum(axis=0), dtype=np.intp)
