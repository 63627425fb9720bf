"""Missing cells filled: their most probable level, a draw or an expectation, block by block."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from rejoint.domain.columns import Coded, Codes, Column, Numbers, read_column
from rejoint.domain.domain import Domain
from rejoint.domain.labels import is_number, label_array
from rejoint.domain.variable import Variable, code_dtype, encode_column, unknown_text
from rejoint.estimators.sklearn_input import by_name, checked_array, is_frame
from rejoint.messages import remark
from rejoint.pmf.pmf import LowRankPMF
from rejoint.queries.log_prob import posteriors
from rejoint.queries.modes import most_probable
from rejoint.records.encode import codes_of_matrix
from rejoint.records.frames import Frame, take_apart
from rejoint.records.records import Records

_MOST = 5  # columns that a remark names one by one


class Cells(NamedTuple):
    """A table as it came, and as codes.

    Attributes
    ----------
    frame : Frame
        The columns as they came.
    codes : ndarray (rows, variables)
        Level of each cell; -1 where missing or unknown to the model.
    gone : ndarray of bool (rows, variables)
        Cells that are missing in the table itself, and in a column that it has.
    place : list of int
        Variable of each column of the frame, -1 for a column that the model does not know.
    """

    frame: Frame
    codes: Codes
    gone: NDArray[np.bool_]
    place: list[int]


def read_cells(estimator: Any, X: Any) -> Cells:
    """Read X in the domain of a fitted estimator, keeping its columns."""
    domain: Domain = estimator.pmf_.domain
    if not by_name(X):
        if not is_frame(X):
            checked_array(X)
        validate_data(estimator, X, reset=False, skip_check_array=True)
    frame = take_apart(X)
    named = frame.names is not None and hasattr(estimator, "feature_names_in_")
    names = frame.names if named and frame.names is not None else domain.names
    place = [domain.index(name) if name in domain else -1 for name in names]
    quick = codes_of_matrix(X, domain) if type(X) is np.ndarray and X.ndim == 2 else None
    if quick is not None:  # NaN is all that is missing
        return Cells(frame, quick, quick < 0, place)
    codes = np.full((frame.rows, len(domain)), -1, dtype=code_dtype(max(domain.shape)))
    gone = np.zeros(codes.shape, dtype=bool)
    strange = []
    for n, raw in zip(place, frame.columns, strict=True):
        if n < 0:
            continue
        column = read_column(raw, domain[n].name)
        codes[:, n], unknown = encode_column(domain[n].levels, column)
        gone[:, n] = codes[:, n] < 0
        if unknown is not None:
            gone[:, n] = _missing(column)
            strange.append(unknown_text(domain[n].name, domain[n].levels, unknown))
    if strange:
        more = f" And so in {len(strange) - _MOST} more." if len(strange) > _MOST else ""
        remark(" ".join(strange[:_MOST]).replace("missing now", "left as they are") + more)
    return Cells(frame, codes, gone, place)


def numbers_of(raw: Any, name: str) -> NDArray[np.float64]:
    """Return a column of numbers as floats, NaN where missing."""
    column = read_column(raw, name)
    if isinstance(column, Numbers):
        return column.floats()
    labels = np.array([*(float(str(x)) for x in column.labels), np.nan])  # numbers written as text
    return np.asarray(labels[column.codes])


def _missing(column: Column) -> NDArray[np.bool_]:
    if isinstance(column, Coded):
        return np.asarray(column.codes < 0)
    empty = np.zeros(len(column), dtype=bool) if column.missing is None else column.missing
    return empty | np.isnan(column.values) if column.values.dtype.kind == "f" else empty


#: Values kept of each bin, evenly spaced in rank: what a draw from the bin is taken from.
DONORS = 101

Array = NDArray[np.float64]


def has_mean(variable: Variable) -> bool:
    """Whether the levels are numbers; truth values are none."""
    if variable.kind == "binned":
        return True
    return all(is_number(level) and not isinstance(level, bool) for level in variable.levels)


def donors(records: Records, X: Any) -> dict[int, list[Array]]:
    """Values seen in each bin of each binned variable, evenly spaced in rank."""
    binned = [n for n, v in enumerate(records.domain) if v.kind == "binned"]
    if not binned or isinstance(X, Records):
        return {}
    columns = take_apart(X).columns
    kept = {}
    for n in binned:
        variable = records.domain[n]
        values = numbers_of(columns[n], variable.name)
        codes = variable.encode(values)
        kept[n] = [thinned(values[codes == k]) for k in range(len(variable))]
    return kept


def thinned(values: Array) -> Array:
    """At most ``DONORS`` of some values, evenly spaced in rank."""
    ordered = np.sort(values[np.isfinite(values)])
    if len(ordered) <= DONORS:
        return ordered
    return np.asarray(ordered[np.linspace(0, len(ordered) - 1, DONORS).round().astype(int)])


def labels_of(
    variable: Variable,
    codes: NDArray[Any],
    donors: list[Array] | None,
    rng: np.random.Generator | None,
) -> NDArray[Any]:
    """Labels of codes; for bins a value seen in them, the median or any."""
    if variable.kind != "binned":
        return np.asarray(label_array(variable.levels)[codes])
    values: Array = variable.numeric[codes]
    for k, seen in enumerate(donors or []):
        mine = np.flatnonzero(codes == k)
        if len(seen) and len(mine):
            places = len(seen) // 2 if rng is None else rng.integers(len(seen), size=len(mine))
            values[mine] = seen[places]
    return values


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
