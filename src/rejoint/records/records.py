"""Records: rows of codes over a domain, made from any frame, with holes and weights."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.columns import Coded, Codes
from rejoint.domain.domain import Domain, positions
from rejoint.domain.labels import Level
from rejoint.domain.variable import HandleUnknown, Kind, code_dtype
from rejoint.records.encode import extremes, read_table
from rejoint.records.frames import Backend, Frame, head, make_frame, take_apart
from rejoint.records.infer import read_wishes
from rejoint.text import nearest, show


def take_weight(frame: Frame, sample_weight: Any) -> tuple[Frame, NDArray[np.float64] | None]:
    """Return the frame without the column that holds the weights, and the weights checked.

    Examples
    --------
    >>> take_weight(Frame(("a", "times"), [["x", "y"], [1, 2]], 2), "times")
    (Frame(names=('a',), columns=[['x', 'y']], rows=2), array([1., 2.]))
    """
    if sample_weight is None:
        return frame, None
    if isinstance(sample_weight, str):
        names = list(frame.names or ())
        if names.count(sample_weight) != 1:
            raise KeyError(
                f"sample_weight={sample_weight!r} must be the name of one column; the columns "
                f"are {show(names)}.{nearest(sample_weight, names)}"
            )
        n = names.index(sample_weight)
        sample_weight = frame.columns[n]
        rest = [column for i, column in enumerate(frame.columns) if i != n]
        frame = Frame(tuple(names[:n] + names[n + 1 :]), rest, frame.rows)
    weight = checked_weight(sample_weight, frame.rows)
    if frame.rows and not weight.any():
        raise ValueError("sample_weight is zero in every row: nothing would count.")
    return frame, weight


def checked_weight(sample_weight: Any, rows: int) -> NDArray[np.float64]:
    """Return weights as a read-only array of their own, or say what is wrong with them.

    Examples
    --------
    >>> checked_weight([1, 0.5], 2)
    array([1. , 0.5])
    """
    try:
        weight = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError("sample_weight must be numbers, one for each row.") from None
    if weight.shape != (rows,):
        raise ValueError(
            f"sample_weight must be one number for each of the {rows:,} rows, "
            f"not an array of shape {weight.shape}."
        )
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"sample_weight must be finite and nonnegative, but row {row} has {weight[row]}."
        )
    weight.setflags(write=False)
    return weight


def checked_codes(domain: Domain, codes: Any) -> Codes:
    """Return codes read-only in their narrowest dtype, or say which one is out of range.

    Examples
    --------
    >>> checked_codes(Domain.of({"a": 2}), [[0], [-1]])
    array([[ 0],
           [-1]], dtype=int16)
    """
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.shape[1] != len(domain) or codes.dtype.kind not in "iu":
        raise ValueError(
            f"codes must be integers of shape (rows, {len(domain)}), one column for each "
            f"variable, not {codes.dtype} of shape {codes.shape}."
        )
    if codes.size:
        low, high = extremes(codes)
        for n, v in enumerate(domain):
            if low[n] < -1 or high[n] >= len(v):
                row = int(np.argmax((codes[:, n] < -1) | (codes[:, n] >= len(v))))
                raise ValueError(
                    f"Variable {v.name!r}, row {row}: code {codes[row, n]} is not among "
                    f"0..{len(v) - 1} (-1 is missing)."
                )
    dtype = code_dtype(max(domain.shape, default=1))
    own: Codes = codes.astype(dtype, order="C", copy=codes.flags.writeable)
    own.setflags(write=False)
    return own


Floats = NDArray[np.float64]

_FEW = 4  # possible keys per row up to which a table of them is cheaper than sorting


def count_table(codes: Codes, shape: Sequence[int], weight: Floats | None) -> Floats:
    """Count the rows without a hole into a table of the given shape.

    Examples
    --------
    >>> import numpy as np
    >>> count_table(np.array([[0, 1], [0, 1], [1, -1]]), (2, 2), None)
    array([[0., 2.],
           [0., 0.]])
    """
    full = (codes >= 0).all(axis=1)
    keys = np.zeros(int(full.sum()), dtype=np.int64)
    for n, size in enumerate(shape):
        keys *= size
        keys += codes[full, n]
    chosen = None if weight is None else weight[full]
    counts = np.bincount(keys, weights=chosen, minlength=math.prod(shape))
    return counts.astype(np.float64).reshape(tuple(shape))


def merge_rows(codes: Codes, shape: Sequence[int], weight: Floats | None) -> tuple[Codes, Floats]:
    """Return the distinct rows in order and the weight (or number) of each.

    Examples
    --------
    >>> import numpy as np
    >>> merge_rows(np.array([[1, 0], [0, -1], [1, 0]]), (2, 2), None)
    (array([[ 0, -1],
           [ 1,  0]]), array([1., 2.]))
    """
    if not codes.size:
        return codes, np.ones(len(codes)) if weight is None else weight.copy()
    if math.prod(levels + 1 for levels in shape) <= _FEW * len(codes):
        return _merge_few(codes, shape, weight)
    keys, size = _row_keys(codes, shape)
    first, where = _number(keys, size)
    total = np.bincount(where, weights=weight, minlength=len(first)).astype(np.float64)
    return np.ascontiguousarray(codes[first]), total


def _merge_few(codes: Codes, shape: Sequence[int], weight: Floats | None) -> tuple[Codes, Floats]:
    """Merge where few different rows are possible: a cell for each, nothing is sorted."""
    keys, _ = _row_keys(codes, shape)
    count = np.bincount(keys)
    kept = np.flatnonzero(count)
    total = count if weight is None else np.bincount(keys, weights=weight)
    distinct = np.empty((len(kept), len(shape)), dtype=codes.dtype)
    rest = kept
    for n in reversed(range(len(shape))):
        rest, code = np.divmod(rest, shape[n] + 1)
        distinct[:, n] = code - 1
    return distinct, total[kept].astype(np.float64)


def _row_keys(codes: Codes, shape: Sequence[int]) -> tuple[NDArray[np.int64], int]:
    """Return one integer a row, equal where the rows are and in their order, and a bound on it."""
    keys, bound = np.zeros(len(codes), dtype=np.int64), 1
    for n, levels in enumerate(shape):
        if bound * (levels + 1) > np.iinfo(np.int64).max:
            # The product of levels no longer fits: ranks of the keys so far take their place.
            first, keys = _number(keys, bound)
            bound = len(first)
        keys *= levels + 1
        keys += codes[:, n]
        keys += 1
        bound *= levels + 1
    return keys, bound


def _number(keys: NDArray[np.int64], bound: int) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return a row of each distinct key, in order of the keys, and the rank of every key."""
    if bound <= _FEW * len(keys):
        row = np.full(bound, -1, dtype=np.intp)
        row[keys[::-1]] = np.arange(len(keys) - 1, -1, -1)
        used = row >= 0
        rank = np.cumsum(used, dtype=np.int64) - 1
        return row[used], rank[keys]
    _, first, where = np.unique(keys, return_index=True, return_inverse=True)
    return first, where.astype(np.int64, copy=False)


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """Rows of codes over a domain; -1 is a missing cell.

    `Records.of` makes them from data; the constructor takes codes that are there already.

    Parameters
    ----------
    domain : Domain
        The variables, in the order of the columns.
    codes : array of int, shape (rows, variables)
        Held read-only as int16 (int32 where a variable has more than 32,767 levels).
    sample_weight : array of float, shape (rows,), optional
        How many times each row counts.

    Examples
    --------
    >>> Records.of({"smoke": ["yes", "no", None], "age": [40, 50, 40]})
    Records: 3 rows, 2 variables, 17 % of the cells missing
    smoke  age
    yes    40
    no     50
    -      40
    """

    domain: Domain
    codes: Codes
    sample_weight: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        codes = checked_codes(self.domain, self.codes)
        object.__setattr__(self, "codes", codes)
        if self.sample_weight is not None:
            weight = checked_weight(self.sample_weight, len(codes))
            object.__setattr__(self, "sample_weight", weight)

    @classmethod
    def of(
        cls,
        data: Any,
        *,
        domain: Domain | None = None,
        kinds: Mapping[Any, Kind] | None = None,
        levels: Mapping[Any, Sequence[Level]] | None = None,
        bins: Mapping[Any, Any] | Literal[False] | None = None,
        sample_weight: Any = None,
        handle_unknown: HandleUnknown = "missing",
    ) -> "Records":
        """Make records from a frame, an array, a list of dicts or rows, a dict of columns.

        None, NaN, pandas NA and a key that a dict lacks are missing. Levels are the labels
        that occur, in natural order; where the data declares them (a pandas Categorical, a
        polars Enum, an Arrow dictionary) they are kept as declared, and are ordinal if
        declared ordered. Whole numbers are integer levels, also in a float column. Booleans
        have both levels. Dates, and text that looks like an identifier, are refused.

        Parameters
        ----------
        data : frame, array, list, dict or Records
            Columns without names are called x0, x1, ...
        domain : Domain, optional
            Encode in this domain instead of finding one. Columns are found by name (by
            position in an array without names); a variable without a column is missing in
            every row, a column without a variable is left out with a `Remark`.
        kinds : dict of {"nominal", "ordinal", "binned"} by name, optional
            What the order of levels means.
        levels : dict of lists by name, optional
            The levels in order, whether they occur or not.
        bins : dict by name, or False, optional
            For columns of numbers: how many quantile bins, or their edges (the last bin
            holds its right edge), or None for no bins. Columns with more than 50 distinct
            numbers of which nothing is said get 10 quantile bins and a `Remark`; False
            leaves every number a level.
        sample_weight : array of float, or name of a column, optional
            How many times each row counts.
        handle_unknown : {"missing", "error"}, default "missing"
            Labels that are no level, and numbers outside all bins, count as missing with a
            `Remark`, or are an error.

        Examples
        --------
        >>> r = Records.of(
        ...     [{"grade": "low", "age": 17}, {"grade": "high"}, {"age": 70}],
        ...     levels={"grade": ["low", "mid", "high"]},
        ...     bins={"age": [0, 18, 99]},
        ... )
        >>> r.domain.shape
        (3, 2)
        >>> r
        Records: 3 rows, 2 variables, 33 % of the cells missing
        grade  age
        low    [0, 18)
        high   -
        -      [18, 99]
        """
        if isinstance(data, Records) and domain is None:
            domain = data.domain
        if domain is not None and not (kinds is None and levels is None and bins is None):
            raise ValueError("A domain says it all: give no kinds, levels or bins beside it.")
        if isinstance(data, Records):
            if domain == data.domain:
                return data if sample_weight is None else replace(data, sample_weight=sample_weight)
            sample_weight = data.sample_weight if sample_weight is None else sample_weight
        frame = _of_records(data) if isinstance(data, Records) else take_apart(data)
        frame, weight = take_weight(frame, sample_weight)
        wishes = read_wishes(kinds, levels, bins)
        matrix = data if type(data) is np.ndarray and data.ndim == 2 else None
        return cls(*read_table(frame, domain, wishes, weight, handle_unknown, matrix), weight)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.codes)

    def __repr__(self) -> str:
        return head(self.domain, self.codes, self.sample_weight)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables.

        Examples
        --------
        >>> Records.of([["a", 1], ["b", 2]]).names
        ('x0', 'x1')
        """
        return self.domain.names

    def __getitem__(self, name: Hashable) -> NDArray[Any]:
        """Return the labels of one variable, None where missing."""
        n = self.domain.index(name)
        return self.domain[n].decode(self.codes[:, n])

    def rows(self) -> Iterator[dict[str, Any]]:
        """Iterate over the rows as dicts of labels, None where missing.

        Examples
        --------
        >>> list(Records.of([["a", 1], ["b", None]]).rows())
        [{'x0': 'a', 'x1': 1}, {'x0': 'b', 'x1': None}]
        """
        labels = [(*v.levels, None) for v in self.domain]
        for row in self.codes:
            cells = (level[code] for level, code in zip(labels, row, strict=True))
            yield dict(zip(self.names, cells, strict=True))

    def marginal(self, names: str | Iterable[Hashable]) -> NDArray[np.float64]:
        """Return the shares of some variables among the rows that have all of them.

        Examples
        --------
        >>> Records.of({"a": ["x", "x", "y"], "b": [1, 2, None]}).marginal(["a", "b"])
        array([[0.5, 0.5],
               [0. , 0. ]])
        """
        chosen = list(positions(self.domain, names))
        shape = [self.domain.shape[n] for n in chosen]
        table = count_table(self.codes[:, chosen], shape, self.sample_weight)
        total = table.sum()
        if not total > 0:
            raise ValueError(
                f"No record has a value for each of {self.domain.project(names).names}: "
                "their marginal cannot be counted."
            )
        shares: NDArray[np.float64] = table / total
        return shares

    def merged(self) -> "Records":
        """Return each distinct row once, in order, with the weight of all that are like it.

        Examples
        --------
        >>> r = Records.of({"a": ["x", "y", "x"]}).merged()
        >>> len(r), r.sample_weight
        (2, array([2., 1.]))
        """
        return Records(self.domain, *merge_rows(self.codes, self.domain.shape, self.sample_weight))

    def project(self, names: str | Iterable[Hashable]) -> "Records":
        """Return the records of some variables, in the order asked.

        Examples
        --------
        >>> Records.of({"a": ["x"], "b": [1], "c": [2]}).project(["c", "a"]).names
        ('c', 'a')
        """
        chosen = list(self.domain.indices(names))
        return Records(self.domain.project(names), self.codes[:, chosen], self.sample_weight)

    def chunks(self, size: int) -> Iterator["Records"]:
        """Iterate over the records, `size` rows at a time.

        Examples
        --------
        >>> [len(chunk) for chunk in Records.of({"a": [1, 2, 3, 4, 5]}).chunks(2)]
        [2, 2, 1]
        """
        if size < 1:
            raise ValueError(f"A chunk must have at least one row, not {size}.")
        for start in range(0, len(self), size):
            part = slice(start, start + size)
            weight = None if self.sample_weight is None else self.sample_weight[part]
            yield Records(self.domain, self.codes[part], weight)

    def to_frame(self, backend: Backend | None = None, *, representatives: bool = False) -> Any:
        """Return a frame with the labels; empty cells are missing.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            By default the first of them that is installed.
        representatives : bool, default False
            Whether binned variables are the numbers that stand for their bins instead of
            the bins as text.

        Examples
        --------
        >>> Records.of({"a": ["x", None], "b": [1, 2]}).to_frame("pandas")
             a  b
        0    x  1
        1  NaN  2
        """
        return make_frame(self.domain, self.codes, backend, representatives)


def _of_records(records: Records) -> Frame:
    """Return records as coded columns, to be encoded in another domain."""
    columns = [
        Coded(v.levels, records.codes[:, n], True, v.kind == "ordinal")
        for n, v in enumerate(records.domain)
    ]
    return Frame(records.names, columns, len(records))
