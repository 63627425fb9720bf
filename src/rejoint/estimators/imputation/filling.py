"""Missing cells filled: their most probable level, a draw or an expectation, block by block."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.columns import Codes
from rejoint.pmf import LowRankPMF
from rejoint.queries import most_probable, posteriors

__all__ = ["Filled", "fill", "level_probabilities"]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: Nodes after which the search for the joint mode of a row ends unproven.
NODES = 20_000

#: Classes of less posterior probability do not enter that search: with thousands of them, a
#: combination could still not gain more than about 1e-13.
FAINT = 1e-16


class Filled(NamedTuple):
    """What the missing cells are filled with.

    Attributes
    ----------
    codes : ndarray (rows, variables)
        Every missing cell has a level, the others are as they were.
    probability : ndarray (rows, variables) or None
        Of the level filled in, given the observed cells of its row; 1 elsewhere.
    expected : dict of arrays
        For each variable with numbers, the expectation of its missing cells in row order.
    unproven : int
        Rows whose joint mode may not be the best.
    """

    codes: Codes
    probability: Array | None
    expected: dict[int, Array]
    unproven: int = 0


def fill(
    pmf: LowRankPMF,
    codes: Codes,
    gone: Flags,
    *,
    rng: np.random.Generator | None = None,
    joint: bool = False,
    values: dict[int, Array] | None = None,
    confidence: bool = False,
) -> Filled:
    """Fill missing cells; rows are worked on in blocks, so that memory stays bounded.

    Parameters
    ----------
    pmf : LowRankPMF
        The model.
    codes : ndarray (rows, variables)
        Level of each cell, -1 where it says nothing.
    gone : ndarray of bool (rows, variables)
        Cells to fill.
    rng : Generator, optional
        Draw the missing cells of a row together; without it they get their most probable levels.
    joint : bool
        The most probable combination of a row's missing cells, not that of each cell.
    values : dict of arrays, optional
        Value of each level of variables whose expectations are asked for.
    confidence : bool
        Whether probabilities are wanted.
    """
    filled = codes.copy()
    probability = np.ones(codes.shape) if confidence else None
    expected: dict[int, list[Array]] = {n: [] for n in values or {}}
    unproven = 0
    touched = np.flatnonzero(gone.any(axis=1))
    for part, _, posterior in posteriors(pmf.weights, pmf.factors, codes[touched]):
        rows = touched[part]
        holes, block = gone[rows], codes[rows]
        if rng is not None:
            _draw(pmf.factors, holes, posterior, rng, block)
        elif joint:
            unproven += _joint_modes(pmf.factors, codes[rows], holes, posterior, block)
        for n in np.flatnonzero(holes.any(axis=0)).tolist():
            cells = np.flatnonzero(holes[:, n])
            if (rng is not None or joint) and probability is None:
                continue
            table = posterior[cells] @ pmf.factors[n].T
            if rng is None and not joint:
                block[cells, n] = table.argmax(axis=1)
            if n in expected and values is not None:
                expected[n].append(table @ values[n])
            if probability is not None:
                probability[rows[cells], n] = table[np.arange(len(cells)), block[cells, n]]
        filled[rows] = block
    found = {n: np.concatenate([*parts, np.empty(0)]) for n, parts in expected.items()}
    return Filled(filled, probability, found, unproven)


def level_probabilities(pmf: LowRankPMF, codes: Codes, n: int) -> Array:
    """Probability of each level of variable n, given the other cells of each row."""
    hidden = codes.copy()
    hidden[:, n] = -1
    factors = [np.asarray(factor) for factor in pmf.factors]
    parts = [p @ factors[n].T for _, _, p in posteriors(pmf.weights, factors, hidden)]
    table: Array = np.concatenate([*parts, np.empty((0, len(factors[n])))])
    table /= table.sum(axis=1, keepdims=True)
    return table


def _draw(
    factors: Sequence[Array],
    holes: Flags,
    posterior: Array,
    rng: np.random.Generator,
    block: Codes,
) -> None:
    """Draw a class for each row, then its missing cells: exact for all of them together."""
    classes = _inverted(posterior.T, rng)
    for n in np.flatnonzero(holes.any(axis=0)).tolist():
        cells = np.flatnonzero(holes[:, n])
        block[cells, n] = _inverted(factors[n][:, classes[cells]], rng)


def _inverted(columns: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """One row number for each column, with the column's probabilities."""
    sums = np.cumsum(columns, axis=0)
    # Below the last sum whatever the rounding, so that no row of probability zero is taken.
    height = np.minimum(rng.random(columns.shape[1]) * sums[-1], np.nextafter(sums[-1], 0.0))
    return np.asarray((sums <= height).sum(axis=0))


def _joint_modes(
    factors: Sequence[Array], codes: Codes, holes: Flags, posterior: Array, block: Codes
) -> int:
    """The best combination for each row, once for rows that are alike; the number unproven."""
    seen = np.where(holes, -2, codes)
    _, first, alike = np.unique(seen, axis=0, return_index=True, return_inverse=True)
    unproven = np.zeros(len(first), dtype=np.intp)
    best = []
    for k, row in enumerate(first):
        missing = np.flatnonzero(holes[row]).tolist()
        alive = posterior[row] > FAINT
        parts = [factors[n][:, alive] for n in missing]
        found = most_probable(posterior[row, alive], parts, NODES)
        unproven[k] = not found.exact
        best.append((missing, found.levels))
    for row, kind in enumerate(alike.ravel()):
        missing, levels = best[kind]
        block[row, missing] = levels
    return int(unproven[alike.ravel()].sum())
