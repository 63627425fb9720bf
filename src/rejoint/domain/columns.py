"""Read columns of pandas, polars, pyarrow, NumPy or Python as numbers, or as codes into labels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.labels import LabelError, Level, is_missing, native
from rejoint.text import cite, plural, show

Codes = NDArray[np.signedinteger[Any]]
EXACT = 2.0**53  # floats beyond may stand for more than one integer


@dataclass(frozen=True, slots=True)
class Coded:
    """A column as codes into its distinct labels; -1 is missing.

    `declared` says that the labels were given with the data (a pandas Categorical, a polars
    Enum): their order is meant, and those that never occur are kept. `ordered` says that the
    order means something.
    """

    labels: tuple[Level, ...]
    codes: Codes
    declared: bool = False
    ordered: bool = False

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: NDArray[np.intp]) -> "Coded":
        """Return some rows; labels that are not declared and not in them are left out."""
        codes = self.codes[rows]
        if self.declared:
            return replace(self, codes=codes)
        used = np.flatnonzero(np.bincount(codes[codes >= 0], minlength=len(self.labels)))
        place = np.full(len(self.labels) + 1, -1, dtype=np.int32)  # the last is for the code -1
        place[used] = np.arange(len(used))
        return replace(self, labels=tuple(self.labels[k] for k in used), codes=place[codes])


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of numbers; floats that are all whole are held as integers.

    Where `missing` is True the value means nothing. Floats keep their precision, so that
    0.1 in a float32 column is the level 0.1.
    """

    values: NDArray[Any]
    missing: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: NDArray[np.intp]) -> "Numbers":
        """Return some rows."""
        missing = None if self.missing is None else self.missing[rows]
        return Numbers(self.values[rows], missing)

    def present(self) -> NDArray[Any]:
        """Return the values that are there."""
        return self.values if self.missing is None else self.values[~self.missing]

    def floats(self) -> NDArray[np.float64]:
        """Return the values as float64, NaN where missing."""
        values = self.values.astype(np.float64)
        if self.missing is not None:
            values[self.missing] = np.nan
        return values


Column = Coded | Numbers


def column_of_distinct(
    distinct: Sequence[Any],
    codes: Codes,
    name: str,
    *,
    declared: bool = False,
    ordered: bool = False,
) -> Coded:
    """Return codes into values of any type as codes into labels; empty values are -1."""
    labels: dict[Level, int] = {}
    table = np.full(len(distinct) + 1, -1, dtype=np.int32)  # the last entry is for the code -1
    for i, value in enumerate(distinct):
        if is_missing(value):
            continue
        try:
            label = native(value)
        except (TypeError, UnicodeDecodeError):
            raise label_error(name, int(np.argmax(codes == i)), value) from None
        table[i] = labels.setdefault(label, len(labels))
    same = np.array_equal(table[:-1], np.arange(len(distinct)))
    return Coded(_whole(labels), codes if same else table[codes], declared, ordered)


def _whole(labels: Iterable[Level]) -> tuple[Level, ...]:
    """Return labels with their floats as integers, if all of these are whole."""
    labels = tuple(labels)
    if all(x.is_integer() and abs(x) < EXACT for x in labels if isinstance(x, float)):
        return tuple(int(x) if isinstance(x, float) else x for x in labels)
    return labels


_ADVICE = (
    "labels are text, numbers, booleans and dates; turn the values into one of these, or leave the "
    "column out"
)


def label_error(name: str, row: int, value: object) -> LabelError:
    """Return the error for a value that cannot be a label."""
    kind = type(value).__name__
    return LabelError(f"Variable {cite(name)}, row {row}: {show([value])} is a {kind}: {_ADVICE}.")


def _type_error(name: str, kind: object) -> LabelError:
    return LabelError(f"Variable {cite(name)} holds {kind}: {_ADVICE}.")


def column_of_array(
    array: NDArray[Any], name: str, missing: NDArray[np.bool_] | None = None
) -> Column:
    """Read one NumPy column of any dtype; `missing` marks cells that hold nothing."""
    if array.ndim != 1:
        raise ValueError(
            f"Variable {cite(name)} must be one column, not an array of "
            f"{plural(array.ndim, 'axis', 'axes')}."
        )
    if isinstance(array, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(array)
        missing = hidden if missing is None else missing | hidden
        array = np.asarray(array.data)
    match array.dtype.kind:
        case "b":
            return _of_booleans(array, missing)
        case "i" | "u":
            return Numbers(
                _signed(array), None if missing is None or not missing.any() else missing
            )
        case "f":
            return _of_floats(array, missing)
        case "O" | "U" | "T" | "S":
            return column_of_objects(_blanked(array, missing), name)
        case "M" | "m" if array.dtype.str[3:]:  # with a unit
            distinct, codes = np.unique(array, return_inverse=True)
            times = distinct.astype(f"{array.dtype.kind}8[us]").tolist()
            column = column_of_distinct(times, codes.astype(np.int32), name)
            return (
                column if missing is None else replace(column, codes=np.where(missing, -1, codes))
            )
    raise _type_error(name, array.dtype)


def _of_booleans(array: NDArray[np.bool_], missing: NDArray[np.bool_] | None) -> Coded:
    codes = array.astype(np.int8)
    if missing is not None:
        codes[missing] = -1
    return Coded((False, True), codes)


def _signed(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        return array
    return array.astype(np.int64, copy=False)


def _of_floats(array: NDArray[Any], missing: NDArray[np.bool_] | None) -> Numbers:
    if array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    nan = np.isnan(array)
    gone: NDArray[np.bool_] | None = None
    empty = nan if missing is None else nan | missing
    if empty.any():
        gone = empty
        array = np.where(gone, array.dtype.type(0), array)
    with np.errstate(invalid="ignore", over="ignore"):  # float16 has no number as large as EXACT
        whole = bool(np.all((np.rint(array) == array) & (np.abs(array) < EXACT)))
    return Numbers(array.astype(np.int64) if whole else array, gone)


def _blanked(array: NDArray[Any], missing: NDArray[np.bool_] | None) -> list[Any]:
    if missing is not None and missing.any():
        array = array.astype(object)
        array[missing] = None
    objects: list[Any] = array.tolist()
    return objects


def column_of_objects(values: Sequence[Any], name: str) -> Column:
    """Read a column of Python objects by hashing."""
    try:
        places: dict[Any, int] = dict.fromkeys(values, 0)
    except TypeError:
        row = next(i for i, v in enumerate(values) if not _hashable(v))
        raise label_error(name, row, values[row]) from None
    distinct = list(places)
    for i, value in enumerate(distinct):
        places[value] = i
    codes = np.fromiter(map(places.__getitem__, values), np.int32, len(values))
    return numbers_if_all(column_of_distinct(distinct, codes, name))


def numbers_if_all(column: Coded) -> Column:
    """Return `Numbers` if every label is a number (not all booleans) that an array can hold."""
    labels = column.labels
    if not labels or not all(isinstance(x, (int, float)) for x in labels):
        return column
    if all(isinstance(x, bool) for x in labels):
        return column
    values = np.array([int(x) if isinstance(x, bool) else x for x in labels])
    if values.dtype.kind not in "iuf" or values.tolist() != list(labels):
        return column  # integers too large for an array, or too large to be floats
    return column_of_array(values[column.codes], "", column.codes < 0)


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def check_column(column: object, name: object) -> None:
    """Raise an error for what is not a column: a single value, or values without order."""
    what = f"Variable {cite(str(name))} must be a column (a list, an array, a series)"
    if isinstance(column, (str, bytes)) or not isinstance(column, Iterable):
        shown = f"the single {type(column).__name__} {cite(column)}"
        raise TypeError(f"{what}, not {shown}; one record alone is a list of one dict: [{{...}}].")
    if isinstance(column, (set, frozenset, Mapping)):
        raise TypeError(f"{what}, not a {type(column).__name__}, whose values belong to no row.")


def read_column(column: Any, name: str = "") -> Column:
    """Read one column of anything: array, list, or series of a frame library."""
    if isinstance(column, (Coded, Numbers)):
        return column
    if isinstance(column, np.ndarray):
        return column_of_array(column, name)
    match type(column).__module__.partition(".")[0]:
        case "pandas":
            return _of_pandas(column, name)
        case "polars":
            return _of_series(column, name)
        case "pyarrow":
            return _of_arrow(column, name)
    check_column(column, name)
    if hasattr(column, "__array__"):
        return column_of_array(np.asarray(column), name)
    return column_of_objects(list(column), name)


def _of_pandas(column: Any, name: str) -> Column:
    """Read what narwhals has no word for: codes of categories, periods, sparse values, objects."""
    import pandas as pd

    column = pd.Series(column)  # an Index or an extension array too
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        labels, codes, ordered = dtype.categories, column.cat.codes.to_numpy(), bool(dtype.ordered)
        labels = labels.astype(str) if isinstance(labels, pd.IntervalIndex) else labels
        return column_of_distinct(labels.tolist(), codes, name, declared=True, ordered=ordered)
    if isinstance(dtype, pd.PeriodDtype):
        column = column.dt.to_timestamp()
    elif isinstance(dtype, pd.SparseDtype):
        column = column.sparse.to_dense()
    elif isinstance(dtype, pd.StringDtype) or pd.api.types.is_object_dtype(dtype):
        try:
            codes, distinct = pd.factorize(column)
        except TypeError:  # a cell cannot be hashed: the slow way finds out which
            return column_of_objects(column.tolist(), name)
        return numbers_if_all(column_of_distinct(distinct.tolist(), codes, name))
    return _of_series(column, name)


def _of_series(column: Any, name: str) -> Column:
    """Read a series of any library that narwhals knows."""
    import narwhals as nw

    series = nw.from_native(column, series_only=True)
    dtype = series.dtype
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        is_declared, texts = isinstance(dtype, nw.Enum), series.cast(nw.String())
        labels = list(dtype.categories) if is_declared else texts.drop_nulls().unique().to_list()
        codes = texts.replace_strict(
            labels, range(len(labels)), default=-1, return_dtype=nw.Int32()
        ).to_numpy()
        return column_of_distinct(labels, codes, name, declared=is_declared, ordered=is_declared)
    if dtype == nw.Decimal:
        series = series.cast(nw.Float64())
    if dtype == nw.Boolean or series.dtype.is_numeric():
        empty = series.is_null().to_numpy()
        values = series.fill_null(False if dtype == nw.Boolean else 0).to_numpy()
        return column_of_array(values, name, empty)
    if isinstance(dtype, nw.Datetime) and dtype.time_zone is not None:
        series = series.dt.replace_time_zone(None)  # what clocks showed
    if isinstance(dtype, nw.Datetime | nw.Date | nw.Duration):
        return column_of_array(series.to_numpy(), name)
    if dtype.is_nested():
        raise _type_error(name, dtype)
    return column_of_objects(series.to_list(), name)


def _of_arrow(column: Any, name: str) -> Column:
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    kind, is_ = column.type, pa.types
    if is_.is_run_end_encoded(kind):
        import pyarrow.compute as pc  # no part of pyarrow until imported

        column = pc.run_end_decode(column)
        kind = column.type
    declared = is_.is_dictionary(kind)
    if is_.is_string(kind) or is_.is_large_string(kind) or is_.is_string_view(kind):
        column = column.dictionary_encode()
    if is_.is_dictionary(column.type):
        codes = column.indices.cast(pa.int32()).fill_null(-1).to_numpy(zero_copy_only=False)
        labels = column.dictionary.to_pylist()
        ordered = declared and bool(kind.ordered)
        return column_of_distinct(labels, codes, name, declared=declared, ordered=ordered)
    if is_.is_decimal(kind):
        column = column.cast(pa.float64())
    if is_.is_boolean(kind) or is_.is_integer(kind) or is_.is_floating(column.type):
        gone = column.is_null().to_numpy(zero_copy_only=False)
        blank = pa.scalar(False if is_.is_boolean(kind) else 0).cast(column.type)
        return column_of_array(column.fill_null(blank).to_numpy(zero_copy_only=False), name, gone)
    if str(kind) == "extension<arrow.uuid>":
        cells = column.to_pylist()
        return column_of_objects([None if cell is None else str(cell) for cell in cells], name)
    if is_.is_timestamp(kind) and kind.tz is not None:
        import pyarrow.compute as pc

        column = pc.local_timestamp(column)  # what clocks showed
    elif is_.is_date32(kind):
        column = column.cast(pa.timestamp("s"))
    if is_.is_date(kind) or is_.is_timestamp(kind) or is_.is_duration(kind):
        return column_of_array(column.to_numpy(zero_copy_only=False), name)
    if is_.is_null(kind) or is_.is_time(kind) or "binary" in str(kind):  # of any width
        return column_of_objects(column.to_pylist(), name)
    raise _type_error(name, kind)
