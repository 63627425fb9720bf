"""Fill missing cells by a level, a draw or an expectation, in tables of any library."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import BoolArray, Codes, FloatArray
from rejoint.domain.domain import Domain
from rejoint.domain.labels import is_number, label_array
from rejoint.domain.variable import Variable
from rejoint.pmf.pmf import LowRankPMF
from rejoint.queries.mixture import Mixture, find_mode
from rejoint.records.frames import Frame
from rejoint.records.records import drop_columns

if TYPE_CHECKING:
    from rejoint.estimators.imputer.cell_model import CellModel

#: Nodes after which the search for the joint mode of a row ends unproven.
MOST_NODES = 20_000

#: Rows that are drawn at a time.
BLOCK_ROWS = 50_000


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
        source = (draw_from or model.pmf).mixture._parts
        touched = np.flatnonzero(gone.any(axis=1))
        for rows in np.array_split(touched, 1 + len(touched) // BLOCK_ROWS):
            if rng is not None:
                filled[rows] = source.fill(codes[rows], gone[rows], rng)
        if joint:
            unproven = _fill_modes(source, gone, codes, filled)
        if joint and not confidence:
            return Filled(filled, None, numbers, unproven)
    for rows, n, joint_table, levels, expected, spread, shares in model.answer(codes, values, gone):
        own: FloatArray | None = None
        if rng is not None and n in model.learners:
            heights = _ranks(joint_table, filled[rows, n], rng)
            places = (np.cumsum(levels, axis=1) < heights[:, None]).sum(axis=1)
            filled[rows, n] = np.minimum(places, levels.shape[1] - 1)
            if spread is not None and shares is not None:
                own = spread.quantile(shares, heights)
        elif rng is None and not joint:
            filled[rows, n] = levels.argmax(axis=1)
            if expect is not None and n in expect:
                own = levels @ expect[n] if expected is None else expected
        if own is not None:
            numbers.setdefault(n, np.full(len(codes), np.nan))[rows] = own
        if probability is not None:
            probability[rows, n] = levels[np.arange(len(rows)), filled[rows, n]]
    return Filled(
        filled, probability, {n: each[gone[:, n]] for n, each in numbers.items()}, unproven
    )


def level_probabilities(pmf: LowRankPMF, codes: Codes, n: int) -> FloatArray:
    """Return the probability of each level of variable n, given the other cells of each row."""
    return pmf.mixture._parts.predict(codes, n)


def _ranks(table: FloatArray, levels: Codes, rng: np.random.Generator) -> FloatArray:
    """Return a number between 0 and 1 that a level stands for: uniform if drawn from the table."""
    ends = np.cumsum(table, axis=1)
    at = np.arange(len(table)), levels
    return np.asarray(ends[at] - table[at] * rng.random(len(table)))


def _fill_modes(mixture: Mixture, gone: BoolArray, codes: Codes, filled: Codes) -> int:
    """Fill in the best combination, once for identical rows; return how many are unproven."""
    rows = np.flatnonzero(gone.any(axis=1))
    seen = np.where(gone, -2, codes)[rows]
    _, first, alike = np.unique(seen, axis=0, return_index=True, return_inverse=True)
    unproven = 0
    for k, row in enumerate(rows[first].tolist()):
        missing = np.flatnonzero(gone[row]).tolist()
        there = [n for n in np.flatnonzero(codes[row] >= 0).tolist() if n not in missing]
        evidence = {n: np.eye(len(mixture.factors[n]))[codes[row, n]] for n in there}
        mode = find_mode(mixture.given(evidence), missing, False, MOST_NODES)
        same = rows[alike.ravel() == k]
        filled[np.ix_(same, missing)] = mode.levels
        unproven += 0 if mode.exact else len(same)
    return unproven


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
    """Return labels of codes; for bins a value seen in them, the median or a random one."""
    if variable.kind != "binned":
        return np.asarray(label_array(variable.levels)[codes])
    values: FloatArray = variable.numeric[codes]
    for k, within in enumerate(variable.contents or ()):
        cells = np.flatnonzero(codes == k)
        seen, mass = np.array(within).T
        ends = np.cumsum(mass) / mass.sum()
        height = np.full(len(cells), 0.5) if rng is None else rng.random(len(cells))
        values[cells] = seen[np.minimum(np.searchsorted(ends, height), len(seen) - 1)]
    return values


class Patch(NamedTuple):
    """Values for the missing cells of a column, ``gone`` (rows,), one for each of them."""

    gone: BoolArray
    values: NDArray[Any]


def own_names(X: Any, frame: Frame) -> list[Any]:
    """Return what a table itself calls its columns; positions in an array."""
    if isinstance(X, Mapping):
        return list(X)
    if is_dicts(X):
        return list(dict.fromkeys(key for row in X for key in row))
    table = _frame_of(X)
    return list(range(len(frame.columns))) if table is None else list(table.columns)


def rebuild(X: Any, frame: Frame, columns: Mapping[Any, Any]) -> Any:
    """Return a table of the kind of X that has other columns, by the names of X or new ones.

    ``frame`` is X, taken apart.
    """
    if isinstance(X, Mapping):
        return dict(columns)
    if is_dicts(X):
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return [
            {key: cell for key, cell in row.items() if cell is not None or key in own}
            for row, own in zip(rows, X, strict=True)
        ]
    table = _frame_of(X)
    if table is not None:
        before, series = dict(zip(table.columns, frame.columns, strict=True)), []
        for name, column in columns.items():
            if isinstance(column, np.ndarray):
                series.append(nw.new_series(name, column, backend=table.implementation))
            elif column is not before[name]:
                series.append(_series_of(column).alias(name))
        left_out = {str(name) for name in table.columns if name not in columns}
        return drop_columns(table.with_columns(*series).to_native(), left_out)
    if isinstance(X, list | tuple):
        cells = np.empty((len(X), len(columns)), dtype=object)
        for n, column in enumerate(columns.values()):
            cells[:, n] = column
        numbers = np.array(cells.tolist())
        return numbers if numbers.dtype.kind in "biuf" else cells
    arrays = list(columns.values())
    is_mixed = len({array.dtype.kind in "biufc" for array in arrays}) > 1
    return np.column_stack([array.astype(object) if is_mixed else array for array in arrays])


def patched(column: Any, patch: Patch) -> Any:
    """Return a copy of one column with some cells replaced."""
    if isinstance(column, np.ndarray):
        return _patched_array(column, patch.values, patch.gone)
    if hasattr(column, "sparse"):  # of pandas, which cannot replace single cells
        return patched(column.sparse.to_dense(), patch).astype(column.dtype)
    series = _series_of(column)
    if series is not None:
        return _patched_series(series, patch).to_native()
    cells = list(column)
    for row, value in zip(np.flatnonzero(patch.gone), patch.values.tolist(), strict=True):
        cells[row] = value
    return cells


def is_dicts(X: Any) -> bool:
    """Whether X is a list of dicts."""
    return isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], Mapping)


def _patched_series(series: Any, patch: Patch) -> Any:
    native, dtype, rows = series.to_native(), series.dtype, np.flatnonzero(patch.gone)
    values = np.rint(patch.values).astype(int) if dtype.is_integer() else patch.values
    cells, is_object = values.tolist(), str(getattr(native, "dtype", "")) == "object"
    # Of pandas; intervals are known as text.
    if hasattr(getattr(native, "cat", None), "categories"):
        labels = {str(label): label for label in native.cat.categories}
        cells = [labels.get(str(cell), cell) for cell in cells]
        extra = [cell for cell in dict.fromkeys(cells) if cell not in native.cat.categories]
        return nw.from_native(native.cat.add_categories(extra), series_only=True).scatter(
            rows, cells
        )
    if isinstance(dtype, nw.Enum):
        return series.cast(nw.Enum(dict.fromkeys([*dtype.categories, *cells]))).scatter(rows, cells)
    if hasattr(native, "type") and dtype in (nw.Categorical, nw.String):  # of pyarrow
        text = series.cast(nw.String).scatter(rows, cells).to_native()
        return nw.from_native(text.cast(native.type), series_only=True)
    if dtype in (nw.Object, nw.Categorical) or is_object:
        return series.scatter(rows, cells)
    made = nw.new_series(series.name, cells, backend=series.implementation)
    if dtype.is_temporal():
        made = made.str.to_datetime()
        if (zone := getattr(dtype, "time_zone", None)) is not None:
            made = made.dt.replace_time_zone(zone)
    elif patch.gone.all() and not (dtype.is_numeric() and made.dtype.is_numeric()):
        # A column without a cell may be of a type that cannot hold any.
        series = series if dtype == made.dtype else series.cast(made.dtype)
    return series.scatter(rows, made.cast(series.dtype))


def has_categories(column: Any) -> bool:
    """Whether a column is categorical, so that a mean is not one of its values."""
    series = _series_of(column)
    return series is not None and series.dtype in (nw.Categorical, nw.Enum)


def _frame_of(X: Any) -> Any:
    """Return a frame of any library that narwhals knows, or None."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame) and hasattr(X, "__arrow_c_stream__"):
        frame = nw.from_arrow(X, backend="pyarrow")
    return frame if isinstance(frame, nw.DataFrame) else None


def _series_of(column: Any) -> Any:
    """Return a column of any library that narwhals knows, or None."""
    series = nw.from_native(column, series_only=True, pass_through=True)
    return series if isinstance(series, nw.Series) else None


def _patched_array(column: NDArray[Any], values: NDArray[Any], gone: BoolArray) -> NDArray[Any]:
    """Return a copy of its dtype if that holds the values, else longer or of objects."""
    dtype, both = column.dtype, column.dtype.kind + values.dtype.kind
    if both == "UU":
        dtype = np.promote_types(dtype, values.dtype)
    elif both in ("if", "uf"):
        values = np.rint(values)
    elif dtype != values.dtype and not (both[0] in "iufc" and both[1] in "biuf"):
        dtype = np.dtype(object)
    column = np.array(column, dtype=dtype)
    column[gone] = values
    return column
