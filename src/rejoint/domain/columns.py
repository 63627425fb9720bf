"""Read columns of pandas, polars, pyarrow, NumPy or Python as numbers, or as codes into labels."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
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
    order means something. `is_text` says that the labels are cells of a text file, which are
    numbers if all of them are.
    """

    labels: tuple[Level, ...]
    codes: Codes
    declared: bool = False
    ordered: bool = False
    is_text: bool = False

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def is_present(self) -> NDArray[np.bool_]:
        """Which cells have a value."""
        return self.codes >= 0

    def mapped(self, places: Sequence[int] | NDArray[Any]) -> Codes:
        """Return the place of the label of each cell; -1 where it is missing."""
        return np.array([*places, -1], dtype=np.int32)[self.codes]

    def take(self, rows: NDArray[np.intp]) -> "Coded":
        """Return some rows; labels that are not declared and not in them are left out."""
        column = replace(self, codes=self.codes[rows])
        if self.declared:
            return column
        used = np.bincount(column.codes + 1, minlength=len(self.labels) + 1)[1:] > 0
        labels = tuple(label for label, is_used in zip(self.labels, used, strict=True) if is_used)
        return replace(column, labels=labels, codes=column.mapped(np.cumsum(used) - 1))


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
        return Numbers(self.values[rows], None if self.missing is None else self.missing[rows])

    @property
    def is_present(self) -> NDArray[np.bool_]:
        """Which cells have a value."""
        return np.ones(len(self), dtype=bool) if self.missing is None else ~self.missing

    def present(self) -> NDArray[Any]:
        """Return the values that are there."""
        return self.values if self.missing is None else self.values[~self.missing]

    def floats(self) -> NDArray[np.float64]:
        """Return the values as float64, NaN where missing."""
        values = self.values.astype(np.float64)
        if self.missing is not None:
            values[self.missing] = np.nan
        return values

    def coded(self) -> Coded:
        """Return codes into the distinct values in order."""
        values, codes = distinct_numbers(self.values)
        codes = codes if self.missing is None else np.where(self.missing, -1, codes)
        return Coded(tuple(values.tolist()), codes)


def distinct_numbers(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return distinct numbers in order, and the place of each value among them."""
    low = int(values.min()) if values.dtype == np.int64 and len(values) else 0
    if not len(values) or values.dtype != np.int64 or int(values.max()) - low > len(values) + 1000:
        return np.unique(values, return_inverse=True)
    shifted = values - low  # marking them in a table is cheaper than sorting
    is_there = np.bincount(shifted) > 0
    distinct = np.flatnonzero(is_there) + low
    return distinct, shifted if is_there.all() else (np.cumsum(is_there) - 1)[shifted]


Column = Coded | Numbers


def column_of_distinct(distinct: Sequence[Any], codes: Codes, name: str, **form: bool) -> Coded:
    """Return codes into values of any type as codes into labels; empty values are -1."""
    labels: dict[Level, int] = {}
    table = []
    for i, value in enumerate(distinct):
        try:
            table.append(-1 if is_missing(value) else labels.setdefault(native(value), len(labels)))
        except (TypeError, UnicodeDecodeError):
            raise label_error(name, int(np.argmax(codes == i)), value) from None
    same = table == list(range(len(distinct)))
    column = Coded(_integers_if_whole(labels), codes, **form)
    return column if same else replace(column, codes=column.mapped(table))


def _integers_if_whole(labels: Iterable[Level]) -> tuple[Level, ...]:
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
        axes = plural(array.ndim, "axis", "axes")
        raise ValueError(f"Variable {cite(name)} must be one column, not an array of {axes}.")
    if isinstance(array, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(array)
        missing = hidden if missing is None else missing | hidden
        array = np.asarray(array.data)
    missing = None if missing is None or not missing.any() else missing
    kind = array.dtype.kind
    if kind in "iu":
        is_large = kind == "u" and array.size and array.max() > np.iinfo(np.int64).max
        return Numbers(array if is_large else np.ascontiguousarray(array, np.int64), missing)
    if kind == "f":
        return _of_floats(array, missing)
    if kind in "OUTS":
        if missing is not None:
            array = array.astype(object)
            array[missing] = None
        return column_of_objects(array.tolist(), name)
    if kind == "b":
        column = Coded((False, True), array.astype(np.int8))
    elif kind in "mM" and array.dtype.str[3:]:  # with a unit
        distinct, codes = np.unique(array, return_inverse=True)
        times = distinct.astype(f"{kind}8[us]").tolist()
        column = column_of_distinct(times, codes.astype(np.int32), name)
    else:
        raise _type_error(name, array.dtype)
    return column if missing is None else replace(column, codes=np.where(missing, -1, column.codes))


def _of_floats(array: NDArray[Any], missing: NDArray[np.bool_] | None) -> Numbers:
    array = np.ascontiguousarray(array, np.float64 if array.dtype.itemsize > 8 else None)
    nan = np.isnan(array)
    empty = nan if missing is None else nan | missing
    if empty.any():
        array = np.where(empty, array.dtype.type(0), array)
    with np.errstate(invalid="ignore", over="ignore"):  # float16 has no number as large as EXACT
        whole = bool(np.all((np.rint(array) == array) & (np.abs(array) < EXACT)))
    return Numbers(array.astype(np.int64) if whole else array, empty if empty.any() else None)


def column_of_objects(values: Sequence[Any], name: str) -> Column:
    """Read a column of Python objects by hashing."""
    try:
        places: dict[Any, int] = dict.fromkeys(values, 0)
    except TypeError:
        row = next(i for i, value in enumerate(values) if not _is_hashable(value))
        raise label_error(name, row, values[row]) from None
    for i, value in enumerate(places):
        places[value] = i
    codes = np.fromiter(map(places.__getitem__, values), np.int32, len(values))
    return numbers_if_all(column_of_distinct(list(places), codes, name))


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def numbers_if_all(column: Coded) -> Column:
    """Return `Numbers` if every label is a number (not all booleans) that an array can hold."""
    labels = column.labels
    if not all(isinstance(x, (int, float)) for x in labels):
        return column
    if all(isinstance(x, bool) for x in labels):
        return column
    values = np.array([int(x) if isinstance(x, bool) else x for x in labels])
    if values.dtype.kind not in "iuf" or values.tolist() != list(labels):
        return column  # integers too large for an array, or too large to be floats
    return column_of_array(values[column.codes], "", column.codes < 0)


_WHOLE = re.compile(r"[+-]?(?:0|[1-9]\d{0,99})")
_DIGITS_OF_AN_INTEGER = 19  # of 64 bits; an array cannot hold more
_DECIMAL_COMMA = re.compile(r"[+-]?(?:0,\d+|\d+,(?:\d{1,2}|\d{4,}))")
_REAL = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?")


def numbers_of(texts: Sequence[str]) -> list[Level] | None:
    """Return all texts as numbers, None if one is not a number: ``007`` is a name, not seven.

    Examples
    --------
    Commas are decimal marks if some of them cannot separate thousands. Whole numbers are exact,
    however long.

    >>> numbers_of(["1", "-2"]), numbers_of(["1.5", "2"]), numbers_of(["007"])
    ([1, -2], [1.5, 2.0], None)
    >>> numbers_of(["1,5", "2,250"]), numbers_of(["1,250"])
    ([1.5, 2.25], None)
    >>> numbers_of(["1234567890123456789", "1234567890123456788"])
    [1234567890123456789, 1234567890123456788]
    """
    if all(map(_WHOLE.fullmatch, texts)):
        whole: list[Level] = [int(text) for text in texts]
        fit = all(len(text) <= _DIGITS_OF_AN_INTEGER for text in texts)
        return whole if fit else _floats(texts) or whole
    if all(map(_REAL.fullmatch, texts)):
        return _floats(texts)
    points = [text.replace(",", ".") for text in texts]
    if any(map(_DECIMAL_COMMA.fullmatch, texts)) and all(map(_REAL.fullmatch, points)):
        return _floats(points) if all("." not in text for text in texts) else None
    return None


def _floats(texts: Sequence[str]) -> list[Level] | None:
    """Return texts as floats; None if one is too large or two whole numbers would become one."""
    numbers = [float(text) for text in texts]
    pairs = zip(texts, numbers, strict=True)
    large = {int(t): x for t, x in pairs if EXACT < abs(x) < np.inf and _WHOLE.fullmatch(t)}
    is_exact = all(map(isfinite, numbers)) and len(set(large.values())) == len(large)
    return list(numbers) if is_exact else None


def parse_numbers(column: Column, name: str = "") -> Column:
    """Return cells of a text file as numbers if all are; other columns as they are."""
    if not isinstance(column, Coded) or not column.is_text:
        return column
    numbers = numbers_of([str(label) for label in column.labels])
    labels = column.labels if numbers is None else numbers
    return numbers_if_all(column_of_distinct(labels, column.codes, name))


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
    readers = {"pandas": _of_pandas, "polars": _of_series, "pyarrow": _of_arrow}
    reader = readers.get(type(column).__module__.partition(".")[0])
    if reader is not None:
        return reader(column, name)
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
        labels, form = dtype.categories, {"declared": True, "ordered": bool(dtype.ordered)}
        labels = labels.astype(str) if isinstance(labels, pd.IntervalIndex) else labels
        return column_of_distinct(labels.tolist(), column.cat.codes.to_numpy(), name, **form)
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


def _of_arrow(column: Any, name: str) -> Column:
    """Read what narwhals has no word for: dictionaries, run ends, identifiers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    kind = column.type
    if str(kind) == "extension<arrow.uuid>":
        cells = column.to_pylist()
        return column_of_objects([None if cell is None else str(cell) for cell in cells], name)
    declared = pa.types.is_dictionary(kind)
    if str(kind) in ("string", "large_string", "string_view"):
        column = column.dictionary_encode()
    if pa.types.is_dictionary(column.type):
        codes = column.indices.cast(pa.int32()).fill_null(-1).to_numpy(zero_copy_only=False)
        form = {"declared": declared, "ordered": declared and bool(kind.ordered)}
        return column_of_distinct(column.dictionary.to_pylist(), codes, name, **form)
    return _of_series(pa.chunked_array([column]), name)


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
