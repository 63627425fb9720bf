"""Fill missing cells by a level, a draw or an expectation, in tables of any library."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import BoolArray, Codes, FloatArray, IntArray
from rejoint.domain.domain import Domain
from rejoint.domain.labels import is_number, label_array
from rejoint.domain.variable import Variable
from rejoint.pmf.pmf import LowRankPMF
from rejoint.queries.log_prob import posteriors
from rejoint.queries.mixture import Mixture, find_mode
from rejoint.queries.modes import most_probable
from rejoint.records.frames import Frame, take_apart
from rejoint.records.records import drop_columns

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
        if rng is not None and source.blocks:
            filled[touched] = source._parts.fill(codes[touched], gone[touched], rng)
            touched = touched[:0]
        elif source.blocks:
            unproven = _fill_modes(source._parts, gone, codes, filled)
            touched = touched[:0]
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
    return pmf.mixture._parts.predict(codes, n)


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


def _fill_modes(mixture: Mixture, gone: BoolArray, codes: Codes, filled: Codes) -> int:
    """Fill in the best combination, once for identical rows; return how many are unproven."""
    rows = np.flatnonzero(gone.any(axis=1))
    seen = np.where(gone, -2, codes)[rows]
    _, first, alike = np.unique(seen, axis=0, return_index=True, return_inverse=True)
    unproven = 0
    for k, row in enumerate(rows[first].tolist()):
        missing = np.flatnonzero(gone[row]).tolist()
        there = [n for n in np.flatnonzero(codes[row] >= 0).tolist() if n not in missing]
        known = {n: np.eye(len(mixture.factors[n]))[codes[row, n]] for n in there}
        found = find_mode(mixture.given(known), missing, False, MOST_NODES)
        same = rows[alike.ravel() == k]
        filled[np.ix_(same, missing)] = found.levels
        unproven += 0 if found.exact else len(same)
    return unproven


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


class Patch(NamedTuple):
    """Values for the missing cells of a column.

    Attributes
    ----------
    gone : ndarray of bool (rows,)
        Which cells.
    values : ndarray
        One for each of them.
    """

    gone: BoolArray
    values: NDArray[Any]


def complete(X: Any, frame: Frame, patches: Mapping[int, Patch]) -> Any:
    """Return a copy of a table with some cells replaced, in its own library and dtypes.

    Parameters
    ----------
    X : table
        Of any kind that :meth:`Records.of` takes.
    frame : Frame
        The same, taken apart.
    patches : mapping from int
        By position of the column.

    Examples
    --------
    >>> from rejoint.records.frames import take_apart
    >>> X = {"a": ["x", None], "b": [1, 2]}
    >>> complete(X, take_apart(X), {0: Patch(np.array([False, True]), np.array(["y"]))})
    {'a': ['x', 'y'], 'b': [1, 2]}
    """
    if isinstance(X, Mapping):
        return {
            name: patched(column, patches[n]) if n in patches else column
            for n, (name, column) in enumerate(zip(X, frame.columns, strict=True))
        }
    match _library(X):
        case "pandas":
            table = X.copy()
            for n, patch in patches.items():
                table.isetitem(n, patched(frame.columns[n], patch))
            return table
        case "polars":
            return X.with_columns([patched(frame.columns[n], p) for n, p in patches.items()])
    if hasattr(X, "__arrow_c_stream__"):
        return _arrow_table(X, frame, patches)
    if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping):
        return _dicts(X, frame, patches)
    return _array(X, frame, patches)


def drop_positions(X: Any, positions: Sequence[int]) -> Any:
    """Return a table without the columns at some positions.

    Examples
    --------
    >>> drop_positions({"a": [1], "b": [2]}, [1])
    {'a': [1]}
    >>> drop_positions(np.array([[1, 2]]), [0])
    array([[2]])
    """
    if isinstance(X, list):  # of dicts
        gone = {list(dict.fromkeys(key for row in X for key in row))[n] for n in positions}
        return [{key: value for key, value in row.items() if key not in gone} for row in X]
    if isinstance(X, np.ndarray) and X.dtype.names is None:
        return np.delete(X, positions, axis=1)
    names = take_apart(X).names or ()
    return drop_columns(X, {names[n] for n in positions})


def add_columns(X: Any, names: Sequence[str], masks: BoolArray) -> Any:
    """Return a table with further columns that are true or false; ones and zeros in an array.

    Examples
    --------
    >>> add_columns({"a": [1, 2]}, ["was_missing"], np.array([[True], [False]]))
    {'a': [1, 2], 'was_missing': array([ True, False])}
    """
    more = dict(zip(names, masks.T.copy(), strict=True))
    if isinstance(X, Mapping):
        return {**X, **more}
    match _library(X):
        case "pandas":
            return X.assign(**more)
        case "polars":
            import polars as pl

            return X.with_columns([pl.Series(name, mask) for name, mask in more.items()])
        case "pyarrow":
            for name, mask in more.items():
                X = X.append_column(name, [mask])
            return X
    if isinstance(X, list):  # of dicts
        pairs = zip(X, masks.tolist(), strict=True)
        return [{**row, **dict(zip(names, flags, strict=True))} for row, flags in pairs]
    kept = X.dtype if X.dtype.kind in "fO" else np.float64
    return np.hstack([X.astype(kept), masks.astype(kept)])


def patched(column: Any, patch: Patch) -> Any:
    """Return a copy of one column with some cells replaced."""
    match _library(column):
        case "pandas":
            return _pandas(column, patch)
        case "polars":
            return _polars(column, patch)
        case "pyarrow":
            return _arrow(column, patch)
    if isinstance(column, np.ndarray):
        return _array_column(column, patch)
    cells = list(column)
    for row, value in zip(np.flatnonzero(patch.gone), patch.values.tolist(), strict=True):
        cells[row] = value
    return cells


def has_categories(column: Any) -> bool:
    """Whether a column is categorical, so that a mean is not one of its values."""
    match _library(column):
        case "pandas":
            return hasattr(column.dtype, "categories")
        case "polars":
            return str(column.dtype).startswith(("Enum", "Categorical"))
        case "pyarrow":
            return hasattr(column.type, "value_type") and hasattr(column.type, "index_type")
    return False


def numbers_like(X: Any, frame: Frame, numbers: FloatArray) -> Any:
    """Return an array of numbers as a frame of the library of X; unchanged if X is no frame."""
    match _library(X):
        case "pandas":
            import pandas

            return pandas.DataFrame(numbers, index=X.index, columns=X.columns)
        case "polars" | "pyarrow":
            columns = dict(zip(frame.names or (), numbers.T.copy(), strict=True))
            return nw.from_dict(columns, backend=nw.get_native_namespace(X)).to_native()
    return numbers


def _library(table: Any) -> str:
    """Return the name of the library that a table or column is from."""
    return type(table).__module__.partition(".")[0]


def _round(values: NDArray[Any]) -> NDArray[Any]:
    """Round numbers for a column of integers."""
    return np.rint(values).astype(np.int64) if values.dtype.kind == "f" else values


def _pandas(column: Any, patch: Patch) -> Any:
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return pd.Series(_categorical(column, patch), index=column.index, name=column.name)
    if isinstance(dtype, pd.SparseDtype):
        dense = _pandas(column.sparse.to_dense(), patch)
        return dense.astype(dtype) if dense.dtype == dtype.subtype else dense
    values = _round(patch.values) if pd.api.types.is_integer_dtype(dtype) else patch.values
    if pd.api.types.is_float_dtype(dtype) and values.dtype.kind in "iuf":
        values = values.astype(getattr(dtype, "numpy_dtype", dtype))
    if patch.gone.all() and values.dtype.kind == "b" and pd.api.types.is_float_dtype(dtype):
        column = column.astype(object)  # nothing was in it, so that its dtype says nothing
    try:
        cells = column.array.copy()
        cells[patch.gone] = values if values.dtype.kind in "biuf" else values.astype(object)
    except (TypeError, ValueError):  # the same with text
        column = column.astype(object)
        cells = column.array.copy()
        cells[patch.gone] = values.astype(object)
    return pd.Series(cells, index=column.index, name=column.name, dtype=column.dtype)


def _categorical(column: Any, patch: Patch) -> Any:
    import pandas as pd

    dtype = column.dtype
    text = isinstance(dtype.categories, pd.IntervalIndex)  # whose labels are text
    place = {str(label) if text else label: i for i, label in enumerate(dtype.categories)}
    labels, which = np.unique(patch.values, return_inverse=True)
    extra = [label for label in labels.tolist() if label not in place]
    if extra:
        place |= {label: len(place) + i for i, label in enumerate(extra)}
        dtype = pd.CategoricalDtype([*dtype.categories, *extra], dtype.ordered)
    codes = column.cat.codes.to_numpy().astype(np.intp)
    codes[patch.gone] = np.array([place[label] for label in labels.tolist()])[which]
    return pd.Categorical.from_codes(codes, dtype=dtype)


def _polars(column: Any, patch: Patch) -> Any:
    import polars as pl

    dtype = column.dtype
    values = _round(patch.values) if dtype.is_integer() else patch.values
    labels = pl.Series(column.name, values.tolist() if values.dtype == object else values)
    if dtype in (pl.Date, pl.Datetime):
        labels = labels.str.to_datetime().dt.cast_time_unit("us")
        zone = getattr(dtype, "time_zone", None)
        labels = labels if zone is None else labels.dt.replace_time_zone(zone)
    if isinstance(dtype, pl.Enum):
        known = dtype.categories.to_list()
        extra = [label for label in labels.unique(maintain_order=True) if label not in known]
        dtype = pl.Enum([*known, *extra])
        column = column.cast(dtype)
    if patch.gone.all() and not isinstance(dtype, pl.Enum | pl.Categorical):
        # A column without a cell may be of a type that cannot hold any.
        dtype = dtype if dtype.is_numeric() and labels.dtype.is_numeric() else labels.dtype
        column = column.cast(dtype)
    place = np.arange(len(column))
    place[patch.gone] = len(column) + np.arange(len(values))
    return pl.concat([column, labels.cast(dtype)]).gather(place)


def _arrow_table(X: Any, frame: Frame, patches: Mapping[int, Patch]) -> Any:
    import pyarrow as pa

    table = X if isinstance(X, pa.Table) else pa.table(X)
    for n, patch in patches.items():
        column = patched(frame.columns[n], patch)
        table = table.set_column(n, table.field(n).with_type(column.type), column)
    return table


def _arrow(column: Any, patch: Patch) -> Any:
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    kind = column.type
    rows = np.flatnonzero(patch.gone)
    values = _round(patch.values) if pa.types.is_integer(kind) else patch.values
    if pa.types.is_dictionary(kind):
        labels = column.dictionary.to_pylist()
        place = {label: i for i, label in enumerate(labels)}
        for label in patch.values.tolist():
            place.setdefault(label, len(place))
        codes = column.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        codes[rows] = [place[label] for label in patch.values.tolist()]
        return pa.DictionaryArray.from_arrays(
            pa.array(codes, kind.index_type),
            pa.array(list(place), kind.value_type),
            ordered=kind.ordered,
        )
    labels = pa.array(values.tolist())
    if patch.gone.all() and not _alike(kind, labels.type):
        return labels  # nothing was in it, so that its type says nothing
    order = np.arange(len(column))
    order[rows] = len(column) + np.arange(len(rows))
    return pa.concat_arrays([column, labels.cast(kind)]).take(pa.array(order))


def _alike(kind: Any, other: Any) -> bool:
    """Whether two Arrow types are both of numbers, or both of text."""
    import pyarrow.types as is_

    both = (is_.is_integer, is_.is_floating, is_.is_decimal), (is_.is_string, is_.is_large_string)
    return kind == other or any(
        any(test(kind) for test in tests) and any(test(other) for test in tests) for tests in both
    )


def _array(X: Any, frame: Frame, patches: Mapping[int, Patch]) -> NDArray[Any]:
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        table = np.array(X)
        for n, patch in patches.items():
            table[X.dtype.names[n]] = patched(frame.columns[n], patch)
        return table
    if isinstance(X, list | tuple):
        columns = [
            patched(c, patches[n]) if n in patches else c for n, c in enumerate(frame.columns)
        ]
        table = np.empty((frame.rows, len(columns)), dtype=object)
        for n, column in enumerate(columns):
            table[:, n] = column
        natural = np.array(table.tolist())
        return natural if natural.dtype.kind in "biuf" else table
    table = np.array(X)
    for patch in patches.values():
        if table.dtype.kind not in "iu" or patch.values.dtype.kind not in "biuf":
            table = table.astype(_common(table.dtype, patch.values.dtype), copy=False)
    for n, patch in patches.items():
        table[patch.gone, n] = _round(patch.values) if table.dtype.kind in "iu" else patch.values
    return table


def _array_column(column: NDArray[Any], patch: Patch) -> NDArray[Any]:
    return _array(column[:, None], Frame(None, [column], len(column)), {0: patch})[:, 0]


def _common(table: np.dtype[Any], values: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the table where it can hold the values, else objects (or longer text)."""
    if table.kind == values.kind == "U":
        return np.promote_types(table, values)
    fits = table.kind == "O" or (table.kind in "fc" and values.kind in "biuf") or table == values
    return table if fits else np.dtype(object)


def _dicts(X: Any, frame: Frame, patches: Mapping[int, Patch]) -> list[dict[Any, Any]]:
    keys = list(dict.fromkeys(key for row in X for key in row))
    rows = [dict(row) for row in X]
    for n, patch in patches.items():
        for row, value in zip(np.flatnonzero(patch.gone), patch.values.tolist(), strict=True):
            rows[row][keys[n]] = value
    return rows
