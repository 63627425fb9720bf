"""Infer the variable of a column: from declarations, from all cells, or block by block.

One rule (:class:`ColumnRule`) decides for every function that reads data what a column is: a
number, ordered levels, labels, an identifier or a date.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.columns import (
    Coded,
    Column,
    Numbers,
    distinct_numbers,
    numbers_if_all,
    parse_numbers,
    read_column,
)
from rejoint.domain.dates import DATE_PARTS, are_dates, date_part, date_parts, day_of
from rejoint.domain.labels import (
    LabelError,
    Level,
    bins_of_edges,
    checked_levels,
    join_neighbors,
    natural_order,
    quantile_edges,
    representatives,
    scale_weights,
    values_within,
)
from rejoint.domain.variable import Kind, Variable
from rejoint.messages import remark
from rejoint.text import cite, nearest, plural, show


@dataclass(frozen=True)
class ColumnRule:
    """Limits by which a column that nothing is declared about becomes a variable.

    Numbers are ordered. Those with few distinct values keep them as levels, the others are cut into
    quantile bins. Whole numbers within a short range may be codes and stay labels.

    Parameters
    ----------
    label_range : int
        Whole numbers from a range of this width (0 to 9, 1 to 10) are labels: they may be codes,
        whose order means nothing. Halves of surveys with such numbers, held-out log-likelihood per
        record as labels and as ordered levels: BEPS -14.107, -14.129; DoctorVisits -10.956,
        -10.964.
    few_records, few_bins, many_bins : int
        Bins of a column with fewer records, and with more. RMSE of cells removed from columns
        (six or eight times), 25 bins in all columns less 15, over the standard deviation: +0.064
        and +0.024 of two columns of 400 stores, +0.032 and -0.008 of 397 salaries; -0.024 and
        +0.006 of 534 workers, -0.006 and -0.008 of 546 houses, with standard errors of 0.008 to
        0.016. On four surveys of 760 to 4,500 records 25 have the higher likelihood.
    level_records : int
        Records from which ``many_bins`` distinct numbers are kept as levels, ``few_bins`` below: of
        534 workers the RMSE of imputed ages is 0.19 of the standard deviation with the 17 values
        of education as levels, and 0.31 with 15 bins.
    most_levels : int, optional
        Distinct numbers up to which each is a level, in place of these.
    most_texts, nearly_all : int, float
        Distinct texts beyond which a column is an identifier if their share of the cells is larger;
        also the share of distinct whole numbers whose name says that they are identifiers.
    fewest_texts : int
        Texts from which on a column is an identifier if no two are the same: 20 draws from 50
        equal levels all differ with a probability of 0.01. Fewer texts cannot tell.
    free_texts : int
        Distinct texts beyond which a column is free text if half of them occur once or twice: one
        or two records tell nothing about a level. Files have columns of up to 285 levels (places,
        models of cars) that answer questions.
    leave_out : bool
        Whether identifiers, dates, free text and empty columns are left out; otherwise each of
        their values is a level.
    report : bool
        Whether a remark says what was binned.
    skip_records : int
        Records, of those that a parent's levels leave without a value and of those that have one,
        from which on a column may not apply to some: fewer are a coincidence of small tables.
    skip_share : float
        Share of the records with a level of the parent whose cells are empty, at the least: raw
        files have cells that should be empty by the questionnaire and are not.
    skip_elsewhere, skip_coverage : float
        Share of the records without these levels whose cells are empty, at the most; and share of
        the empty cells that the levels explain, at the least. Otherwise most empty cells are
        unknown, and those of a level may be so, too.
    skip_nats : float
        Log-likelihood by which levels explain empty cells better than chance does, beyond the
        logarithm of the number of levels among which they are chosen: a level of ten records with
        half of the cells empty at random gains 6.9.

    Examples
    --------
    >>> rule = ColumnRule()
    >>> rule.count_bins(200), rule.count_bins(5000)
    (15, 25)
    """

    label_range: int = 10
    few_records: int = 750
    few_bins: int = 15
    many_bins: int = 25
    level_records: int = 250
    most_levels: int | None = None
    most_texts: int = 50
    nearly_all: float = 0.9
    fewest_texts: int = 20
    free_texts: int = 300
    leave_out: bool = True
    report: bool = True
    skip_records: int = 20
    skip_share: float = 0.98
    skip_elsewhere: float = 0.5
    skip_coverage: float = 0.5
    skip_nats: float = 3.0

    def without_names(self) -> "ColumnRule":
        """Return the rule for arrays, whose columns have no names: none is left out."""
        return replace(self, leave_out=False)

    def count_bins(self, records: float) -> int:
        """Return the number of bins for a column, by its number of values."""
        return self.few_bins if records < self.few_records else self.many_bins

    def count_levels(self, records: float) -> int:
        """Return the number of distinct values that are kept as levels."""
        if self.most_levels is not None:
            return self.most_levels
        return self.few_bins if records < self.level_records else self.many_bins


#: The rule where no other is given.
DEFAULT_RULE = ColumnRule()

#: What users declare about bins: by name, the number for all columns, or False for none.
Bins = Mapping[Any, Any] | int | None

#: Columns that may not apply to some records: those that are found, those named, or none.
NotApplicable = Literal["auto", False] | Sequence[Any]


class Declaration(NamedTuple):
    """What the user declared about a column; None where nothing was declared.

    `bins` is the number of quantile bins, their edges, or False for one level per value.
    """

    kind: Kind | None = None
    levels: Sequence[Level] | None = None
    bins: int | Sequence[float] | NDArray[Any] | None = None

    @property
    def silent(self) -> bool:
        """Whether nothing was declared."""
        return self.bins is None and not self.is_kept

    @property
    def is_kept(self) -> bool:
        """Whether it was declared what the column is: such a column is not left out."""
        return self.has_bins or self.kind is not None or self.levels is not None

    @property
    def has_bins(self) -> bool:
        """Whether bins were declared."""
        return self.bins is not None and self.bins is not False


class Declarations(NamedTuple):
    """What the user declared about columns: about some by name, and about all others.

    `rule` decides where nothing was declared.
    """

    by_name: Mapping[str, Declaration]
    others: Declaration
    rule: ColumnRule = DEFAULT_RULE
    not_applicable: Literal["auto", False] | tuple[str, ...] = "auto"
    missing_level: tuple[str, ...] = ()

    def of(self, name: str) -> Declaration:
        """Return what was declared about a column."""
        return self.by_name.get(name, self.others)

    def check(self, known: Sequence[str], what: str = "columns") -> None:
        """Raise KeyError for a declaration about a column that does not exist."""
        named = self.not_applicable if isinstance(self.not_applicable, tuple) else ()
        declared = dict.fromkeys(self.missing_level, "missing_level")
        declared |= dict.fromkeys(named, "not_applicable")
        declared |= dict.fromkeys(self.by_name, "kinds, levels or bins")
        for name, arguments in declared.items():
            if name not in known:
                there = f"the {what} are {show(known)}.{nearest(name, known)}"
                raise KeyError(f"{arguments}: there is no {cite(name)}; {there}")


def read_declarations(
    kinds: Mapping[Any, Kind] | None = None,
    levels: Mapping[Any, Sequence[Level]] | None = None,
    bins: Bins = None,
    rule: ColumnRule = DEFAULT_RULE,
    not_applicable: NotApplicable = "auto",
    missing_level: Sequence[Any] = (),
) -> Declarations:
    """Group declarations by column; the arguments group them by kind of declaration."""
    others = Declaration()
    if bins is False:
        others, bins = Declaration(bins=False), None
    elif isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        if bins < 2:
            raise ValueError(f"bins must be 2 or more, got {cite(bins)}.")
        rule, bins = replace(rule, few_bins=int(bins), many_bins=int(bins), report=False), None
    by_name: dict[str, Declaration] = {}
    for field, argument, declared in (
        ("kind", "kinds", kinds),
        ("levels", "levels", levels),
        ("bins", "bins", bins),
    ):
        if declared is not None and not isinstance(declared, Mapping):
            must = "a dict from names of variables"
            raise TypeError(f"{argument} must be {must}, not {cite(declared)}.")
        for name, own in (declared or {}).items():
            if own is None and field == "bins":  # no bins; a column not in the dict has the default
                own = False
            change: dict[str, Any] = {field: own}
            by_name[str(name)] = by_name.get(str(name), others)._replace(**change)
    named: Any = not_applicable
    if named not in ("auto", False):
        named = _names("not_applicable", not_applicable)
    return Declarations(by_name, others, rule, named, _names("missing_level", missing_level or ()))


def _names(argument: str, names: Any) -> tuple[str, ...]:
    if isinstance(names, str | bytes | Mapping) or not isinstance(names, Iterable):
        others = "'auto', False or " * (argument == "not_applicable")
        raise TypeError(f"{argument} must be {others}a list of names, not {cite(names)}.")
    return tuple(str(name) for name in names)


Floats = NDArray[np.float64]


class Reason(NamedTuple):
    """Why a column is left out, and the declarations that keep it."""

    text: str
    keep: tuple[tuple[str, str], ...] = ()


_LABELS = (("kinds", "'nominal'"),)

REASONS = {
    "id": Reason("numbers or identifies the rows", (*_LABELS, ("bins", "10"))),
    "name": Reason("identifies the rows", _LABELS),
    "date": Reason("dates", (("kinds", "'year'"), ("kinds", "'month'"))),
    "day": Reason("dates whose month is not certain", (("kinds", "'year'"),)),
    "time": Reason("times of a day", _LABELS),
    "number": Reason("numbers with separators or units, which are text", _LABELS),
    "text": Reason("free text, mostly seen once or twice", _LABELS),
    "empty": Reason("no value in any row", (("levels", "[...]"),)),
    "other": Reason("values that cannot be levels, such as lists"),
}


class LeftOut(NamedTuple):
    """What stands for the variable of a column that has none.

    Parameters
    ----------
    reason : str
        A key of ``REASONS``.
    values : int
        How many different values the column has.
    """

    reason: str
    values: int = 0


def infer_variable(
    name: str,
    column: Column,
    declared: Declaration,
    weight: Floats | None = None,
    rule: ColumnRule = DEFAULT_RULE,
    copies: Floats | None = None,
) -> Variable | LeftOut:
    """Return the variable of a column: as declared by the user, by the data, or by its cells.

    ``weight`` is that of each cell in the population: its scale has no effect. ``copies`` is how
    many records each cell stands for.
    """
    summary = ColumnSummary(name, most=np.inf)
    summary.add(column, weight, copies)
    return summary.variable(declared, rule)


@dataclass(frozen=True)
class Tally:
    """Distinct values of a column, and what is declared about it.

    Parameters
    ----------
    name : str
    column : Column
    cells, mass : array of float
        Number of cells and weight of each value.
    records : float
        Number of records that have a value.
    declared : Declaration
    rule : ColumnRule
    """

    name: str
    column: Column
    cells: Floats
    mass: Floats
    records: float
    declared: Declaration
    rule: ColumnRule

    @property
    def what(self) -> str:
        """The column in a message."""
        return f"Variable {cite(self.name)}"

    @property
    def kind(self) -> Kind:
        """What is declared about the order of labels, by the user or with the data."""
        is_ordered = isinstance(self.column, Coded) and self.column.ordered
        return self.declared.kind or ("ordinal" if is_ordered else "nominal")

    def variable(self) -> Variable | LeftOut:
        """Return the variable: as declared by the user, by the data, or by the cells."""
        declared, column = self.declared, self.column
        if declared.levels is not None:
            if declared.has_bins:
                raise ValueError(f"{self.what}: give its levels or its bins, not both.")
            return Variable(self.name, checked_levels(self.name, declared.levels), self.kind)
        if declared.kind == "binned" or declared.has_bins:
            default = self.rule.count_bins(self.records)
            return self._binned(declared.bins if declared.has_bins else default)
        return self._of_numbers(column) if isinstance(column, Numbers) else self._of_labels(column)

    def _of_numbers(self, column: Numbers) -> Variable | LeftOut:
        distinct, declared, rule = column.values, self.declared, self.rule
        if not len(distinct):
            return self._empty()
        kind = number_kind(distinct, rule)
        many = len(distinct) > rule.count_levels(self.records)
        if many and kind == "ordinal" and declared.kind is None and declared.bins is None:
            is_whole, present = distinct.dtype.kind in "iu", float(self.cells.sum())
            if is_whole and rule.leave_out and is_identifier(self.name, distinct, present, rule):
                return LeftOut("id", len(distinct))
            return self._binned(rule.count_bins(self.records))
        levels = tuple(distinct.tolist())
        if distinct.dtype.kind == "f" and distinct.dtype.itemsize < 8:
            # The shortest text of a narrow float is the intended number: 0.1, not 0.1000000015.
            levels = tuple(float(str(value)) for value in distinct)
        return Variable(self.name, levels, declared.kind or kind)

    def _binned(self, wanted: Any) -> Variable:
        declared, column, mass = self.declared, self.column, self.mass
        if declared.kind not in (None, "binned"):
            raise ValueError(f"{self.what}: it cannot be both {declared.kind} and binned.")
        if isinstance(column, Coded):
            column = numbers_if_all(column)
        if isinstance(column, Coded) and (column.codes >= 0).any():
            labels = f"it holds {show(column.labels)}, not numbers"
            raise ValueError(f"{self.what} cannot be binned: {labels}.")
        values = column.floats() if isinstance(column, Numbers) else np.full(len(column), np.nan)
        there = ~np.isnan(values)
        total = float(mass[there].sum())
        if total > 0 and total != self.records:
            mass = scale_weights(mass, self.records, total)
        bins = bins_of_edges(self._edges(wanted, values[there], mass[there]))
        infinite = int(self.cells[np.isinf(values)].sum())
        if infinite:
            remark(
                f"{self.what} has {plural(infinite, 'infinite value')}: means and other "
                "expectations leave them out. If they stand for missing cells, make them missing."
            )
        means, contents = representatives(bins, values, mass), values_within(bins, values, mass)
        return Variable(self.name, bins, "binned", means, contents)

    def _edges(self, wanted: Any, values: Floats, mass: Floats) -> Floats:
        if isinstance(wanted, (int, np.integer)):
            if not 2 <= wanted <= MOST_BINS:
                range_of = f"2 or more, up to {MOST_BINS:,}, or a list of edges"
                raise ValueError(f"{self.what}: bins must be {range_of}; not {wanted:,}.")
            if not len(values):
                raise self._no_value()
            return quantile_edges(values, int(wanted), mass)
        try:
            edges = np.array([float(e) for e in wanted])
        except (TypeError, ValueError):
            edges = np.array([])
        if len(edges) < 2 or not (np.diff(edges) > 0).all():
            must = "a number of bins or two or more increasing edges"
            raise ValueError(f"{self.what}: bins must be {must}, not {cite(wanted)}.")
        return edges

    def _of_labels(self, column: Coded) -> Variable | LeftOut:
        labels = column.labels
        if not labels or not (column.declared or (column.codes >= 0).any()):
            return self._empty()
        if column.declared:
            return Variable(self.name, labels, self.kind)
        if all(isinstance(label, bool) for label in labels):
            return Variable(self.name, (False, True), self.kind)
        texts: dict[str, Level] = {}
        for label in labels:
            other = texts.setdefault(str(label), label)
            if other is not label:
                both = " and ".join(f"{cite(x)} ({type(x).__name__})" for x in (other, label))
                advice = "make them one type, text or number"
                raise ValueError(f"{self.what} holds both {both}: {advice}.")
        reason = None if self.declared.kind else self._why_left_out(labels)
        if reason is not None and self.rule.leave_out:
            return reason
        if reason is not None:
            remark(
                f"{self.what}: {REASONS[reason.reason].text}. Each of {reason.values:,} different "
                "texts is a level: leave the column out, or group its values."
            )
        return Variable(self.name, tuple(natural_order(labels)), self.kind)

    def _why_left_out(self, labels: Sequence[Level]) -> LeftOut | None:
        """Return why texts are not levels; None where they are."""
        count, present, rule = len(labels), float(self.cells.sum()), self.rule
        if count > rule.many_bins and are_dates(labels):
            parts = [part for part in DATE_PARTS if all(date_part(label, part) for label in labels)]
            return LeftOut(("time", "day", "date")[len(parts)], count)
        if count > rule.most_texts and are_numbers_as_text(labels):
            return LeftOut("number", count)
        # With copies, rows may be the cells of a table, each of which occurs once.
        is_each_once = rule.fewest_texts <= count == present >= self.records
        if is_each_once or count > max(rule.most_texts, rule.nearly_all * present):
            return LeftOut("name", count)
        is_rare = self.cells * max(self.records / present, 1.0) <= 2.0
        is_free = count > rule.free_texts and is_rare.sum() > count / 2
        return LeftOut("text", count) if is_free else None

    def _empty(self) -> LeftOut:
        if self.declared.is_kept or not self.rule.leave_out:
            raise self._no_value()
        return LeftOut("empty")

    def _no_value(self) -> ValueError:
        return ValueError(
            f"{self.what} has no value in any row: leave the column out, "
            f"or declare what it can be: levels={{{cite(self.name)}: [...]}}."
        )


#: Quantile bins of a column at the most: their edges take memory, however few the values are.
MOST_BINS = 100_000


def _read_dates(name: str, column: Column, declared: Declaration) -> Coded:
    """Return the year or the month of dates; raise an error where none is known, or not which."""
    assert declared.kind is not None
    part, coded = declared.kind, date_parts(column, declared.kind)
    parts = sorted(x for x in coded.labels if type(x) is int)
    unclear = next((x for x in coded.labels if type(x) is not int and date_part(x, "year")), None)
    if unclear is not None or not (parts or declared.levels):
        shown = show(coded.labels) if unclear is None else cite(unclear)
        other = "nominal" if unclear is None else "year"
        use = f"kinds={{{cite(name)}: {cite(other)}}}"
        raise ValueError(
            f"Variable {cite(name)} has no {part} in {shown}: write dates as 2020-01-31, or use "
            f"{use}."
        )
    places: dict[Level, int] = {label: code for code, label in enumerate(parts)}
    codes = coded.mapped([places.get(label, -1) for label in coded.labels])
    return Coded(tuple(parts), codes, declared=True)


def number_kind(distinct: NDArray[Any], rule: ColumnRule = DEFAULT_RULE) -> Kind:
    """Return whether distinct numbers, in order, are labels or ordered levels.

    Examples
    --------
    >>> number_kind(np.array([0, 1])), number_kind(np.array([2007, 2009]))
    ('nominal', 'nominal')
    >>> number_kind(np.array([0.5, 1.0])), number_kind(np.array([18, 70]))
    ('ordinal', 'ordinal')
    """
    short = float(distinct[-1]) - float(distinct[0]) < rule.label_range
    return "nominal" if distinct.dtype.kind in "iu" and short else "ordinal"


#: Words of a name that say that numbers identify records, and names in which they are joined.
ID_WORDS = {"id", "ids", "uid", "uuid", "guid", "identifier", "rowid", "rownames", "serial"}
ID_NAME = re.compile(
    r"(case|resp|respondent|person|patient|subject|user|customer|record|row)_?(id|no|nr)"
)


#: Numbers as people write them: 1,234.50, $12, 70 kg, 5%.
NUMBER_AS_TEXT = re.compile(
    r"[+-]?[$€£¥]? ?(0|[1-9]\d{0,2}([., '\u00a0]?\d{3})*)([.,]\d+)?"
    r"( ?[$€£¥%]| [^\W\d]{1,3}[²³]?|[^\W\d]{2,3}[²³]?)?"
)


def are_numbers_as_text(labels: Sequence[Level]) -> bool:
    """Return whether texts are numbers with separators or units; codes of digits alone are not.

    Examples
    --------
    >>> are_numbers_as_text(["900", "1,234.50"]), are_numbers_as_text(["70 kg", "8 kg"])
    (True, True)
    >>> are_numbers_as_text(["12345", "900"]), are_numbers_as_text(["12A"])
    (False, False)
    """
    texts = [str(label) for label in labels]
    return all(map(NUMBER_AS_TEXT.fullmatch, texts)) and not all(map(str.isdecimal, texts))


def is_identifier(
    name: str, distinct: NDArray[Any], present: float, rule: ColumnRule = DEFAULT_RULE
) -> bool:
    """Return whether the distinct whole numbers of a column number or identify records.

    All differ and run in steps of one, or nearly all differ and the name says what they are.

    Examples
    --------
    >>> values = np.arange(300) * 7
    >>> [is_identifier(name, values, 300) for name in ("price", "customer_id", "userId")]
    [False, True, True]
    >>> is_identifier("n", np.arange(300), 300), is_identifier("n", np.arange(300), 301)
    (True, False)
    """
    in_steps = int(distinct[-1]) - int(distinct[0]) == len(distinct) - 1 == present - 1
    return in_steps or (len(distinct) > rule.nearly_all * present and is_identifier_name(name))


def is_identifier_name(name: str) -> bool:
    """Return whether a name says that numbers identify records.

    Examples
    --------
    >>> [is_identifier_name(name) for name in ("id", "Customer.ID", "paid")]
    [True, True, False]
    """
    words = re.split(r"[^a-z0-9]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())
    return not ID_WORDS.isdisjoint(words) or any(ID_NAME.fullmatch(word) for word in words)


#: Distinct numbers beyond which neighbors in rank are joined, which moves quantiles by some
#: hundred-thousandths of the records. More distinct texts than this are not levels.
MOST_DISTINCT = 200_000


class ColumnSummary:
    """Distinct values of one column, the number of cells and the weight of each, part by part.

    Parameters
    ----------
    name : str
    has_name : bool
        Whether the source gave the name.
    most : float, optional
        Distinct numbers beyond which neighbors are joined.
    """

    def __init__(self, name: str, *, has_name: bool = True, most: float | None = None) -> None:
        self.name, self.has_name = name, has_name
        self.most = MOST_DISTINCT if most is None else most
        self.is_text: bool | None = None  # whether labels are cells of text files
        self.labels: dict[Level, int] = {}
        self.label_counts: Floats = np.zeros((2, 0))  # cells and weight of each label
        self.is_declared, self.is_ordered = True, True  # while all parts declare it
        self.values: NDArray[Any] = np.zeros(0, dtype=np.int64)  # in order
        self.value_counts: Floats = np.zeros((2, 0))
        self.range = (np.inf, -np.inf)  # of whole numbers; a number that is not makes it infinite
        self.distinct_share = 0.0  # distinct numbers per cell, once they were too many
        self.copies = 0.0  # cells with as many copies as their records have
        self.has_missing = False
        self.is_by_day = False  # whether times of the day are left out, as they are too many
        self.left_out: LeftOut | None = None  # once its texts are too many
        self.error: LabelError | None = None  # of values that cannot be labels

    def read(
        self, raw: Any, weight: Floats | None, copies: Floats | None = None, is_last: bool = True
    ) -> Column | None:
        """Add a column of any library, and return it; None if it has values that are no labels.

        Cells of a text file are read as numbers, if all are, where no other part follows.
        """
        try:
            column = read_column(raw, self.name)
            column = parse_numbers(column, self.name) if is_last else column
        except LabelError as error:
            self.error = error
            return None
        self.add(column, weight, copies)
        return column

    def add(self, column: Column, weight: Floats | None, copies: Floats | None = None) -> None:
        """Add one part: the weight of each cell, and its copies."""
        present = column.is_present
        count = float(present.sum())
        if copies is not None:  # of a cell of a table perhaps less than one
            count = max(float(copies[present].sum()), float((copies[present] > 0).sum()))
        self.copies += count
        self.has_missing |= not present.all()
        is_text = isinstance(column, Coded) and column.is_text
        self.is_text = is_text if self.is_text is None else self.is_text
        if self.is_text is not is_text:
            self._parse()
            self.is_text, column = False, parse_numbers(column, self.name)
        self._count(column, None, weight)

    def _count(self, column: Column, cells: Floats | None, mass: Floats | None) -> None:
        """Count values, each of a number of cells (by default one) and a weight."""
        if self.left_out is not None:
            return
        if isinstance(column, Numbers):
            cells, mass = (
                x if x is None or column.missing is None else x[column.is_present]
                for x in (cells, mass)
            )
            self._add_values(column.present(), cells, mass)
        elif column.labels:
            size = len(column.labels) + 1
            both = [np.bincount(column.codes + 1, x, size)[1:] for x in (cells, mass)]
            self.is_declared &= column.declared
            self.is_ordered &= column.ordered
            self._add_labels(column.labels, np.array(both, dtype=np.float64))

    def _add_labels(self, labels: Iterable[Level], counts: Floats) -> None:
        if self.is_by_day:
            labels = map(day_of, labels)
        places = [self.labels.setdefault(label, len(self.labels)) for label in labels]
        grown = len(self.labels) - self.label_counts.shape[1]
        self.label_counts = np.hstack([self.label_counts, np.zeros((2, grown))])
        for total, more in zip(self.label_counts, counts, strict=True):
            np.add.at(total, places, more)
        if len(self.labels) > self.most and self.is_text:
            self._parse()
        if len(self.labels) > self.most:
            column, counts = self._take_labels()
            if self.is_by_day or not are_dates(column.labels):
                self.left_out = LeftOut("text")
                return
            self.is_by_day = True
            self._add_labels(column.labels, counts)

    def _take_labels(self) -> tuple[Coded, Floats]:
        """Return the labels with their counts, and forget them."""
        labels, counts = tuple(self.labels), self.label_counts
        self.labels, self.label_counts = {}, np.zeros((2, 0))
        return Coded(labels, np.arange(len(labels)), is_text=bool(self.is_text)), counts

    def _parse(self) -> None:
        """Make numbers of texts if all are numbers."""
        if self.is_text and self.labels:
            column, counts = self._take_labels()
            parsed = parse_numbers(column, self.name)
            if isinstance(parsed, Numbers) or len(column.labels) <= self.most:
                self._count(parsed, *counts)
            else:
                self.labels = {label: n for n, label in enumerate(column.labels)}
                self.label_counts = counts

    def _add_values(self, values: NDArray[Any], cells: Floats | None, mass: Floats | None) -> None:
        """Add numbers with their cells and weights."""
        if not len(values):
            return
        distinct, counts = _tally(values, mass, cells)
        low, high = float(distinct[0]), float(distinct[-1])
        is_whole = distinct.dtype.kind in "iu"
        self.range = (min(self.range[0], low), max(self.range[1], high if is_whole else np.inf))
        if len(self.values):
            counts = np.hstack([self.value_counts, counts])
            both = np.concatenate(_alike(self.values, distinct))
            distinct, counts = _tally(both, counts[1], counts[0])
        if len(distinct) > self.most:
            self.distinct_share = self.distinct_share or len(distinct) / float(counts[0].sum())
            distinct, counts = join_neighbors(distinct, counts, int(self.most) // 2)
        self.values, self.value_counts = distinct, counts

    def join(self, other: "ColumnSummary") -> None:
        """Add another summary of the same column."""
        if self.is_text is not other.is_text:
            for one in (self, other):
                one._parse()
                one.is_text = False
        self.has_name &= other.has_name
        self.has_missing |= other.has_missing
        self.is_declared &= other.is_declared or not other.labels
        self.is_ordered &= other.is_ordered or not other.labels
        self.left_out, self.error = self.left_out or other.left_out, self.error or other.error
        self.copies += other.copies
        self.distinct_share = self.distinct_share or other.distinct_share
        if self.left_out is None:
            self._add_labels(other.labels, other.label_counts)
            self._add_values(other.values, *other.value_counts)
            low, high = zip(self.range, other.range, strict=True)
            self.range = (min(low), max(high))

    def variable(
        self, declared: Declaration, rule: ColumnRule = DEFAULT_RULE
    ) -> Variable | LeftOut:
        """Return the variable of the column."""
        if not self.has_name:
            rule = rule.without_names()
        if self.error is not None:
            if declared.is_kept or not rule.leave_out:
                raise self.error
            return LeftOut("other")
        if self.left_out is not None:
            if rule.leave_out and not declared.is_kept:
                return self.left_out
            raise ValueError(
                f"Variable {cite(self.name)} has more than {MOST_DISTINCT:,} different texts, "
                "which cannot be levels: leave the column out, or group its values."
            )
        self._parse()
        if self.distinct_share:
            if self._numbers_rows(declared, rule):
                return LeftOut("id")
            rule = replace(rule, leave_out=False)
        if self.labels and len(self.values):  # text in one part, numbers in another
            self.is_declared = False
            self._add_labels(self.values.tolist(), self.value_counts)
        column: Column = Numbers(self.values)
        cells, mass = self.value_counts
        if self.labels:
            cells, mass = self.label_counts
            codes = np.where(cells > 0, np.arange(len(cells)), -1)
            is_ordered = self.is_declared and self.is_ordered
            column = Coded(tuple(self.labels), codes, self.is_declared, is_ordered)
        if declared.kind in DATE_PARTS:
            column = _read_dates(self.name, column, declared)
        return Tally(self.name, column, cells, mass, self.copies, declared, rule).variable()

    def _numbers_rows(self, declared: Declaration, rule: ColumnRule) -> bool:
        """Return whether numbers that are too many to be levels number or identify the rows."""
        if self.labels or declared.kind not in (None, "binned") or declared.bins is False:
            raise ValueError(
                f"Variable {cite(self.name)} has more than {MOST_DISTINCT:,} different numbers, "
                f"which can only be binned: use bins={{{cite(self.name)}: 10}}, or leave the "
                "column out."
            )
        if not declared.silent or not rule.leave_out or self.distinct_share <= rule.nearly_all:
            return False
        span = self.range[1] - self.range[0] + 1
        is_in_steps = self.distinct_share == 1 and span == float(self.value_counts[0].sum())
        return is_in_steps or (bool(np.isfinite(span)) and is_identifier_name(self.name))


def _tally(
    values: NDArray[Any], mass: Floats | None, cells: Floats | None = None
) -> tuple[NDArray[Any], Floats]:
    """Return each value once, in order, with its cells and weight, by default its occurrences."""
    if mass is None and values.dtype.kind == "f":  # sorting alone is cheaper
        distinct, number = np.unique(values, return_counts=True)
        return distinct, np.array([number, number], dtype=np.float64)
    distinct, where = distinct_numbers(values)
    number = np.bincount(where, cells, len(distinct))
    weight = number if mass is None else np.bincount(where, mass, len(distinct))
    return distinct, np.array([number, weight], dtype=np.float64)


def _alike(one: NDArray[Any], other: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return both arrays in one type; a narrow float stays narrow, so its 0.1 is the level 0.1."""
    kinds = {array.dtype for array in (one, other) if array.dtype.kind == "f"}
    if len(kinds) == 1:
        (kind,) = kinds
        return one.astype(kind), other.astype(kind)
    return one, other
