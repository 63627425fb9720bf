"""Fill missing cells: by their most probable level, a draw or an expectation, block by block."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import BoolArray, Codes, FloatArray, IntArray
from rejoint.domain.domain import Domain
from rejoint.domain.labels import is_number, label_array
from rejoint.domain.variable import Variable
from rejoint.pmf.pmf import LowRankPMF
from rejoint.queries.log_prob import posteriors
from rejoint.queries.modes import most_probable

if TYPE_CHECKING:
    from rejoint.estimators.imputer.cell_model import CellModel

#: Nodes after which the search for the joint mode of a row ends unproven.
MOST_NODES = 20_000

#: Classes of less posterior probability do not enter that search: with thousands of them, a
#: combination could still not gain more than about 1e-13.
NEGLIGIBLE_POSTERIOR = 1e-16


class Filled(NamedTuple):
    """Codes with the missing cells filled, and how certain they are.

    Attributes
    ----------
    codes : ndarray (rows, variables)
        Every missing cell has a level, the others are unchanged.
    probability : ndarray (rows, variables) or None
        Probability of the level filled in, given the observed cells of its row; 1 elsewhere.
    numbers : dict of arrays
        For each variable with an expected or drawn number, that of its missing cells in row order.
    unproven : int
        Rows whose joint mode may not be the best.
    """

    codes: Codes
    probability: FloatArray | None
    numbers: dict[int, FloatArray]
    unproven: int = 0


def fill(
    model: "CellModel",
    codes: Codes,
    gone: BoolArray,
    values: FloatArray | None = None,
    *,
    rng: np.random.Generator | None = None,
    draw_from: LowRankPMF | None = None,
    joint: bool = False,
    expect: Mapping[int, FloatArray] | None = None,
    confidence: bool = False,
) -> Filled:
    """Fill missing cells, in blocks of rows, so that memory stays bounded.

    Parameters
    ----------
    model : CellModel
        What knows missing cells.
    codes : ndarray (rows, variables)
        Level of each cell, -1 where it says nothing.
    gone : ndarray of bool (rows, variables)
        Cells to fill.
    values : ndarray (rows, variables), optional
        The numbers themselves, NaN elsewhere.
    rng : Generator, optional
        Draws the missing cells of a row jointly; without it they get their most probable levels.
        The joint draws all of them. Where a learner knows the distribution of a cell, the cell
        gets the value that has the same rank there, so that it has that distribution, and depends
        on the other cells as in the joint.
    draw_from : LowRankPMF, optional
        A posterior draw of the joint to draw from; the joint itself by default.
    joint : bool
        Whether to find the most probable combination of a row's missing cells, by the joint.
    expect : mapping of arrays, optional
        Value of each level, for the variables whose expectations are returned.
    confidence : bool
        Whether to return probabilities.
    """
    filled, unproven = codes.copy(), 0
    values = np.full(codes.shape, np.nan) if values is None else values
    probability = np.ones(codes.shape) if confidence else None
    numbers: dict[int, FloatArray] = {}
    if rng is not None or joint:
        source = (draw_from or model.pmf).mixture
        touched = np.flatnonzero(gone.any(axis=1))
        for part, _, posterior in posteriors(source.weights, source.factors, codes[touched]):
            rows = touched[part]
            block = codes[rows]
            if rng is not None:
                _draw(source.factors, gone[rows], posterior, rng, block)
            else:
                unproven += _joint_modes(source.factors, block.copy(), gone[rows], posterior, block)
            filled[rows] = block
        if joint and not confidence:
            return Filled(filled, None, numbers, unproven)
    for rows, n, cell in model.answers(codes, values, gone):
        found: FloatArray | None = None
        if rng is not None and cell.joint is not None:
            heights = _ranks(cell.joint, filled[rows, n], rng)
            places = (np.cumsum(cell.levels, axis=1) < heights[:, None]).sum(axis=1)
            filled[rows, n] = np.minimum(places, cell.levels.shape[1] - 1)
            if cell.values is not None and cell.spread is not None:
                found = cell.spread.quantile(cell.values, heights)
        elif rng is None and not joint:
            filled[rows, n] = cell.levels.argmax(axis=1)
            if expect is not None and n in expect:
                found = cell.levels @ expect[n] if cell.expected is None else cell.expected
        if found is not None:
            numbers.setdefault(n, np.full(len(codes), np.nan))[rows] = found
        if probability is not None:
            probability[rows, n] = cell.levels[np.arange(len(rows)), filled[rows, n]]
    return Filled(
        filled, probability, {n: each[gone[:, n]] for n, each in numbers.items()}, unproven
    )


def _ranks(table: FloatArray, levels: Codes, rng: np.random.Generator) -> FloatArray:
    """Return a number between 0 and 1 that a level stands for: uniform if drawn from the table."""
    ends = np.cumsum(table, axis=1)
    at = np.arange(len(table)), levels
    return np.asarray(ends[at] - table[at] * rng.random(len(table)))


def level_probabilities(pmf: LowRankPMF, codes: Codes, n: int) -> FloatArray:
    """Return the probability of each level of variable n, given the other cells of each row."""
    hidden = np.array(codes)
    hidden[:, n] = -1
    pmf = pmf.mixture
    parts = [p @ pmf.factors[n].T for _, _, p in posteriors(pmf.weights, pmf.factors, hidden)]
    table: FloatArray = np.concatenate([*parts, np.empty((0, len(pmf.factors[n])))])
    table /= table.sum(axis=1, keepdims=True)
    return table


def _draw(
    factors: Sequence[FloatArray],
    gone_here: BoolArray,
    posterior: FloatArray,
    rng: np.random.Generator,
    block: Codes,
) -> None:
    """Draw a class for each row, then its missing cells: exact for all of them together."""
    classes = _draw_rows(posterior.T, rng)
    for n in np.flatnonzero(gone_here.any(axis=0)).tolist():
        cells = np.flatnonzero(gone_here[:, n])
        block[cells, n] = _draw_rows(factors[n][:, classes[cells]], rng)


def _draw_rows(columns: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw one row number for each column, with the column's probabilities."""
    sums = np.cumsum(columns, axis=0)
    # Below the last sum whatever the rounding, so that no row of probability zero is drawn.
    height = np.minimum(rng.random(columns.shape[1]) * sums[-1], np.nextafter(sums[-1], 0.0))
    return np.asarray((sums <= height).sum(axis=0))


def _joint_modes(
    factors: Sequence[FloatArray],
    codes: Codes,
    gone_here: BoolArray,
    posterior: FloatArray,
    block: Codes,
) -> int:
    """Fill in the best combination, once for identical rows; return how many are unproven."""
    seen = np.where(gone_here, -2, codes)
    _, first, alike = np.unique(seen, axis=0, return_index=True, return_inverse=True)
    unproven = np.zeros(len(first), dtype=np.intp)
    best = []
    for k, row in enumerate(first):
        missing = np.flatnonzero(gone_here[row]).tolist()
        alive = posterior[row] > NEGLIGIBLE_POSTERIOR
        parts = [factors[n][:, alive] for n in missing]
        found = most_probable(posterior[row, alive], parts, MOST_NODES)
        unproven[k] = not found.exact
        best.append((missing, found.levels))
    for row, kind in enumerate(alike.ravel()):
        missing, levels = best[kind]
        block[row, missing] = levels
    return int(unproven[alike.ravel()].sum())


def numeric_values(domain: Domain) -> dict[int, FloatArray]:
    """Return the values of levels of each variable of numbers; booleans are not numbers."""
    return {
        n: variable.numeric
        for n, variable in enumerate(domain)
        if variable.kind == "binned"
        or all(is_number(level) and not isinstance(level, bool) for level in variable.levels)
    }


def labels_of(
    variable: Variable, codes: NDArray[Any], rng: np.random.Generator | None
) -> NDArray[Any]:
    """Return labels of codes; for bins a value seen in them, the median or a random one.

    Examples
    --------
    >>> from rejoint.domain.labels import Bin
    >>> age = Variable("age", (Bin(0, 18), Bin(18, 65)), contents=[[(3, 1)], [(20, 3), (60, 1)]])
    >>> labels_of(age, np.array([0, 1]), None)
    array([ 3., 20.])
    """
    if variable.kind != "binned":
        return np.asarray(label_array(variable.levels)[codes])
    values: FloatArray = variable.numeric[codes]
    for k, within in enumerate(variable.contents or ()):
        mine = np.flatnonzero(codes == k)
        seen, mass = np.array(within).T
        ends = np.cumsum(mass) / mass.sum()
        height = np.full(len(mine), 0.5) if rng is None else rng.random(len(mine))
        values[mine] = seen[np.minimum(np.searchsorted(ends, height), len(seen) - 1)]
    return values
