"""Records: rows of codes over a domain, made from any table, with missing values and weights."""

import math
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import Codes, FloatArray, IntArray, Keys
from rejoint.domain.columns import Coded
from rejoint.domain.domain import Domain, positions
from rejoint.domain.labels import Level
from rejoint.domain.variable import HandleUnknown, Kind, check_handle_unknown, code_dtype
from rejoint.records.encode import Unmatched, encode_table, infer_table
from rejoint.records.frames import Backend, Frame, head, make_frame, take_apart
from rejoint.records.infer import (
    DEFAULT_RULE,
    Bins,
    ColumnRule,
    NotApplicable,
    read_declarations,
)
from rejoint.records.merge import has_twins, merge_rows
from rejoint.records.survey_design import SurveyDesign, WeightArguments, as_weight
from rejoint.text import cite


def as_codes(domain: Domain, codes: Any) -> Codes:
    """Return codes read-only in their narrowest dtype, or raise for the first one out of range."""
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.shape[1] != len(domain) or codes.dtype.kind not in "iu":
        raise ValueError(
            f"codes must be integers of shape (rows, {len(domain)}), one column for each "
            f"variable, not {codes.dtype} of shape {codes.shape}."
        )
    if codes.size:
        low, high = codes.min(axis=0), codes.max(axis=0)
        for n, v in enumerate(domain):
            if low[n] < -1 or high[n] >= len(v):
                row = int(np.argmax((codes[:, n] < -1) | (codes[:, n] >= len(v))))
                no = f"code {codes[row, n]} is not among 0..{len(v) - 1} (-1 is missing)"
                raise ValueError(f"Variable {cite(v.name)}, row {row}: {no}.")
    dtype = code_dtype(max(domain.shape, default=1))
    own: Codes = codes.astype(dtype, order="C", copy=codes.flags.writeable)
    own.setflags(write=False)
    return own


def check_undeclared(
    kinds: object = None,
    levels: object = None,
    bins: object = None,
    not_applicable: object = "auto",
    missing_level: object = (),
) -> None:
    """Raise an error for declarations that are given together with a domain, or with records."""
    named = not_applicable not in ("auto", False) or missing_level
    if named or not (kinds is None and levels is None and bins is None):
        raise ValueError("A domain defines kinds, levels and bins: do not give them with it.")


def count_table(codes: Codes, shape: Sequence[int], weight: FloatArray | None) -> FloatArray:
    """Count the complete rows into a table of the given shape."""
    full = (codes >= 0).all(axis=1)
    keys = np.zeros(int(full.sum()), dtype=np.int64)
    for n, size in enumerate(shape):
        keys *= size
        keys += codes[full, n]
    chosen = None if weight is None else weight[full]
    counts = np.bincount(keys, weights=chosen, minlength=math.prod(shape))
    return counts.astype(np.float64).reshape(tuple(shape))


@dataclass(frozen=True, eq=False, repr=False)
class BaseRecords:
    """Base class of records of every form: a domain, codes and weights.

    The codes are a table in `Records`, and only the observed cells in `SparseRecords`. Constructors
    check their arguments; records that the package makes itself use `_trusted`, which does not.
    """

    domain: Domain
    codes: Any
    sample_weight: FloatArray | None = None
    design: SurveyDesign | None = None
    cluster_keys: Keys | None = None

    @classmethod
    def _trusted(
        cls,
        domain: Domain,
        codes: Any,
        sample_weight: FloatArray | None = None,
        design: SurveyDesign | None = None,
        cluster_keys: Keys | None = None,
    ) -> Self:
        """Make records of codes and weights that are known to be valid."""
        if sample_weight is not None:
            sample_weight.setflags(write=False)
        made = cls.__new__(cls)
        values = domain, cls._narrow(domain, codes), sample_weight, design, cluster_keys
        names = ("domain", "codes", "sample_weight", "design", "cluster_keys")
        made.__dict__.update(zip(names, values, strict=True))
        return made

    @staticmethod
    def _narrow(domain: Domain, codes: Any) -> Any:
        """Return the codes as records of this form hold them."""
        return codes

    def _weigh(self, weights: WeightArguments) -> Self:
        """Return the records with other weights in place of their own, if any are given."""
        if not weights.given:
            return self
        weights.check_arrays(f"{type(self).__name__} do not hold that column;")
        rows = weights.rows(len(self))
        return self._trusted(self.domain, self.codes, *rows.weigh(self.codes, self.domain.shape))

    @property
    def _weights(self) -> tuple[FloatArray | None, SurveyDesign | None, Keys | None]:
        """Everything about the weight of each row, as `_trusted` takes it."""
        return self.sample_weight, self.design, self.cluster_keys

    def __getstate__(self) -> dict[str, Any]:
        """Leave out cached values, which can be computed again."""
        return {key: value for key, value in self.__dict__.items() if key != "_merged"}

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.codes)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables.

        Examples
        --------
        >>> Records.of([["a", 1], ["b", 2]]).names
        ('x0', 'x1')
        """
        return self.domain.names

    def take(self, rows: Any, sample_weight: Any = None) -> Self:
        """Return some of the rows, with their own or other weights.

        Parameters
        ----------
        rows : slice, or array of int or bool
            The rows by their positions, or whether each one is taken.
        sample_weight : array of float, optional
            Weights of the rows that are taken.

        Examples
        --------
        >>> len(Records.of({"a": [1, 2, 1]}).take([0, 2]))
        2
        """
        codes, keys = self.codes[rows], self.cluster_keys
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        if sample_weight is not None:
            weight, keys = as_weight(sample_weight, len(codes)), None
        keys = None if keys is None else keys[rows]
        return self._trusted(self.domain, codes, weight, cluster_keys=keys)

    def chunks(self, size: int) -> Iterator[Self]:
        """Iterate over the records, `size` rows at a time.

        Examples
        --------
        >>> [len(chunk) for chunk in Records.of({"a": [1, 2, 3, 4, 5]}).chunks(2)]
        [2, 2, 1]
        """
        if size < 1:
            raise ValueError(f"A chunk must have at least one row, not {size}.")
        for start in range(0, len(self), size):
            yield self.take(slice(start, start + size))

    def merged(self) -> Self:
        """Return each distinct row once, in order, with the total weight of its copies.

        Where there are more than 100,000 rows and a sample shows that nearly all of them differ,
        they stay as they are: merging them would cost more than it saves.

        Examples
        --------
        >>> r = Records.of({"a": ["x", "y", "x"]}).merged()
        >>> len(r), r.sample_weight
        (2, array([2., 1.]))
        """
        return self._merged

    @cached_property
    def _merged(self) -> Self:
        if has_twins(len(self), self._twins):
            found = self._trusted(self.domain, *self._merge(), self.design)
        elif self.sample_weight is None:
            found = self._trusted(self.domain, self.codes, np.ones(len(self)), self.design)
        else:
            return self
        found.__dict__["_merged"] = found
        return found

    def _merge(self) -> tuple[Any, FloatArray]:
        """Return the codes of the distinct rows, and the weight of each."""
        raise NotImplementedError

    def _twins(self, rows: IntArray) -> FloatArray:
        """Return the sizes of the groups of identical rows among these."""
        raise NotImplementedError


#: A class of records.
R = TypeVar("R", bound=BaseRecords)


@dataclass(frozen=True, eq=False, repr=False)
class Records(BaseRecords):
    """Rows of codes over a domain; -1 is a missing cell.

    `Records.of` makes them from data; the constructor takes existing codes.

    Parameters
    ----------
    domain : Domain
        The variables, in the order of the columns.
    codes : array of int, shape (rows, variables)
        Held read-only in the narrowest type: int8 up to 127 levels, int16 up to 32,767, int32.
    sample_weight : array of float, shape (rows,), optional
        How many times each row counts. Where survey weights were given, these are the survey
        weights, scaled to the effective number of records.
    design : SurveyDesign, optional
        What survey weights were found to be worth: ``records``, ``effective``, ``effect``.
    cluster_keys : array of int, shape (rows,), optional
        Numbers that are the same within a cluster: clusters are held out as a whole.

    Examples
    --------
    >>> Records.of({"smoke": ["yes", "no", None], "age": [40, 50, 40]})
    Records: 3 rows, 2 variables, 17 % of the cells missing
    smoke  age
    yes    40
    no     50
    -      40
    """

    codes: Codes

    def __post_init__(self) -> None:
        codes = as_codes(self.domain, self.codes)
        object.__setattr__(self, "codes", codes)
        if self.sample_weight is not None:
            object.__setattr__(self, "sample_weight", as_weight(self.sample_weight, len(codes)))

    @classmethod
    def of(
        cls,
        data: Any,
        *,
        domain: Domain | None = None,
        kinds: Mapping[Any, Kind] | None = None,
        levels: Mapping[Any, Sequence[Level]] | None = None,
        bins: Bins = None,
        not_applicable: NotApplicable = "auto",
        missing_level: Sequence[Any] = (),
        sample_weight: Any = None,
        survey_weight: Any = None,
        strata: Any = None,
        clusters: Any = None,
        handle_unknown: HandleUnknown = "missing",
        rule: ColumnRule = DEFAULT_RULE,
    ) -> "Records":
        """Make records from a frame, an array, a list of dicts or rows, a dict of columns.

        None, NaN, pandas NA and a key that a dict lacks are missing. Levels are the labels
        that occur, in natural order; where the data declares them (a pandas Categorical, a
        polars Enum, an Arrow dictionary) they are kept as declared, and are ordinal if
        declared ordered. Booleans have both levels.

        Numbers are ordered: a column of few distinct values has them as ordinal levels, one of
        more is cut into quantile bins, 15 below 750 records and 25 from there on, with a
        `Remark`. Whole numbers from a range of at most ten (0 to 9) may be codes: they are
        labels.

        Columns that nothing is declared about are left out, together and with one `Remark`, if
        they identify rows (nearly all values differ), hold dates, free text (most texts occur once
        or twice), numbers written as text with units or separators, values that cannot be levels,
        or no value at all. The columns of an array have no names and are never left out.

        Parameters
        ----------
        data : frame, array, list, dict or Records
            Columns without names are called x0, x1, ...
        domain : Domain, optional
            Encode in this domain instead of finding one. Columns are found by name (by
            position in an array without names); a variable without a column is missing in
            every row, a column without a variable is left out with a `Remark`.
        kinds : dict of {"nominal", "ordinal", "binned", "year", "month"} by name, optional
            What the order of levels means; for dates, which part of them is the level.
        levels : dict of lists by name, optional
            The levels in order, whether they occur or not.
        bins : dict by name, int, False or ColumnRule, optional
            For columns of numbers: how many quantile bins, or their edges (the last bin
            holds its right edge), or None for no bins. An int is the number of bins of every
            column with more distinct numbers; False makes every number a level.
        not_applicable : "auto", list of names, or False
            Columns that do not apply to some records, such as questions that were not asked of
            all: their empty cells are the level "does not apply" where another column, found by
            itself, has the levels at which they are empty. Other empty cells are unknown. By
            default such columns are found, with a `Remark`; not in an array without names.
        missing_level : list of names, optional
            Columns whose empty cells are an answer in themselves: each is the level "missing".
        sample_weight : array of float, or name of a column, optional
            How many times each row counts: k is k copies.
        survey_weight : array of float, or name of a column, optional
            How many people of the population each row stands for. Their scale has no effect:
            they are scaled to sum to the effective number of records, which ``design`` of the
            result describes. With ``sample_weight`` each of its copies has the survey weight.
        strata, clusters : array, or name of a column, optional
            How the survey was drawn: the stratum of each row, and the cluster (primary sampling
            unit) within it. Both count in the design effect, with survey weights or without.
            Columns that are given by name are not variables of the records; give the values to
            keep one.
        handle_unknown : {"missing", "error"}, default "missing"
            Labels that are not levels, and numbers outside all bins, become missing with a
            `Remark`, or raise an error.
        rule : ColumnRule
            Limits by which columns that nothing is declared about become variables.

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
        >>> r = Records.of({"a": ["x", "y", "y"], "w": [1000, 1000, 4000]}, survey_weight="w")
        >>> r.design.effect, r.sample_weight.round(3)
        (1.5, array([0.333, 0.333, 1.333]))
        """
        weights = WeightArguments(sample_weight, survey_weight, strata, clusters)
        if isinstance(data, Records) and domain is None:
            domain = data.domain
        if domain is not None:
            check_undeclared(kinds, levels, bins, not_applicable, missing_level)
        if isinstance(data, Records):
            if domain == data.domain:
                return data._weigh(weights)
            frame = as_frame(data)
            if not weights.given:
                records = cls.of(frame, domain=domain, handle_unknown=handle_unknown)
                return cls._trusted(records.domain, records.codes, *data._weights)
            data = frame
        frame, rows = weights.split(take_apart(data))
        weights.check_mass(rows)
        check_handle_unknown(handle_unknown)
        if domain is None:
            declared = read_declarations(kinds, levels, bins, rule, not_applicable, missing_level)
            domain, codes = infer_table(frame, declared, rows.cells, handle_unknown)
        else:
            unmatched = Unmatched()
            codes = encode_table(frame, domain, unmatched)
            unmatched.report(domain, handle_unknown)
        return cls._trusted(domain, codes, *rows.weigh(codes, domain.shape))

    @staticmethod
    def _narrow(domain: Domain, codes: Any) -> Codes:
        dtype = code_dtype(max(domain.shape, default=1))
        narrow: Codes = np.asarray(codes, dtype=dtype, order="C")
        narrow.setflags(write=False)
        return narrow

    def __repr__(self) -> str:
        return head(self.domain, self.codes, self.sample_weight)

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

    def marginal(self, names: str | Iterable[Hashable]) -> FloatArray:
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
            all_of = cite(self.domain.project(names).names)
            no = "their marginal cannot be counted"
            raise ValueError(f"No record has a value for each of {all_of}: {no}.")
        return np.asarray(table / total)

    def _merge(self) -> tuple[Codes, FloatArray]:
        return merge_rows(self.codes, self.domain.shape, self.sample_weight)

    def _twins(self, rows: IntArray) -> FloatArray:
        return merge_rows(self.codes[rows], self.domain.shape, None)[1]

    def project(self, names: str | Iterable[Hashable]) -> "Records":
        """Return the records of some variables, in the order asked.

        Examples
        --------
        >>> Records.of({"a": ["x"], "b": [1], "c": [2]}).project(["c", "a"]).names
        ('c', 'a')
        """
        chosen = list(self.domain.indices(names))
        domain, codes = self.domain.project(names), self.codes[:, chosen]
        return self._trusted(domain, codes, *self._weights)

    def to_frame(self, backend: Backend | None = None, *, representatives: bool = False) -> Any:
        """Return a frame with the labels; empty cells are missing.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            By default the first of them that is installed.
        representatives : bool, default False
            Whether binned variables are given as the representative numbers of their bins
            instead of the bins as text.

        Examples
        --------
        >>> Records.of({"a": ["x", None], "b": [1, 2]}).to_frame("pandas")
             a  b
        0    x  1
        1  NaN  2
        """
        return make_frame(self.domain, self.codes, backend, representatives)


def as_frame(records: Records) -> Frame:
    """Return records as coded columns, to be encoded in another domain."""
    columns = [
        Coded(v.levels, records.codes[:, n], True, v.kind == "ordinal")
        for n, v in enumerate(records.domain)
    ]
    return Frame(records.names, columns, len(records))


def drop_empty_levels(records: Records) -> Records:
    """Return records without the levels of empty cells, which become missing."""
    if all(variable.empty is None for variable in records.domain):
        return records
    domain = Domain(tuple(variable.with_empty(None) for variable in records.domain))
    codes = np.where(records.codes < domain.shape, records.codes, -1)
    return Records._trusted(domain, codes, *records._weights)


def drop_columns(data: Any, names: Collection[str]) -> Any:
    """Return a table without some columns; a frame stays a frame of its library.

    Parameters
    ----------
    data : Records or anything that ``Records.of`` takes
        Columns without names all stay.
    names : collection of str
        Columns that are left out, if there are any of these names.
    """
    all_names = data.names if isinstance(data, BaseRecords) else take_apart(data).names or ()
    kept = [name for name in all_names if name not in names]
    if len(kept) == len(all_names):
        return data
    if isinstance(data, Records):
        return data.project(kept)
    if hasattr(data, "iloc"):  # pandas, where names may repeat and need not be text
        return data.loc[:, [str(name) not in names for name in data.columns]]
    if hasattr(data, "select") and hasattr(data, "columns"):  # polars and Arrow
        return data.select(kept)
    frame = take_apart(data).without(names)
    return dict(zip(frame.names or (), frame.columns, strict=True))
