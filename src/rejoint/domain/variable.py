"""Variable: one discrete quantity, its levels, and the way from labels to codes and back."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.columns import (
    Coded,
    Codes,
    Column,
    Numbers,
    column_of_distinct,
    distinct_numbers,
    numbers_if_all,
    numbers_of,
    read_column,
)
from rejoint.domain.dates import DATE_PARTS, date_parts
from rejoint.domain.labels import (
    Bin,
    Contents,
    Level,
    bin_codes,
    checked_contents,
    checked_levels,
    checked_representatives,
    is_missing,
    is_number,
    label_array,
    native,
)
from rejoint.messages import remark
from rejoint.text import MOST_TEXT, check_text, cite, nearest, plural, show

#: Labels that are no level, of many parts, that are kept for a message.
MOST_UNKNOWN = 10_000


class Unknown(NamedTuple):
    """Labels that are not levels: which ones, in how many cells, and the first row with one."""

    labels: tuple[Level, ...]
    cells: int
    row: int

    def joined(self, later: "Unknown") -> "Unknown":
        """Return this and what a later part has."""
        labels = tuple(dict.fromkeys((*self.labels, *later.labels)))[:MOST_UNKNOWN]
        return Unknown(labels, self.cells + later.cells, min(self.row, later.row))


def code_dtype(most_levels: int) -> type[np.signedinteger[Any]]:
    """Return the narrowest type that holds the codes of ``most_levels`` levels."""
    narrow = (np.int8, np.int16)
    return next((dtype for dtype in narrow if most_levels <= np.iinfo(dtype).max), np.int32)


def unknown_error(name: str, levels: tuple[Level, ...], unknown: Unknown) -> ValueError:
    """Return the error for labels that are not levels."""
    label = unknown.labels[0]
    return ValueError(
        f"Variable {cite(name)}, row {unknown.row}: level {cite(label)} is not among "
        f"{show(levels)}; declare it in the Domain or leave the cell empty.{nearest(label, levels)}"
    )


def unknown_text(
    name: str, levels: tuple[Level, ...], unknown: Unknown, outcome: str = "treated as missing"
) -> str:
    """Return the remark for labels that are not levels, with what became of their cells."""
    binned = isinstance(levels[0], Bin)
    what = "numbers outside all bins" if binned else "labels that are not levels"
    cells = plural(unknown.cells, "cell")
    labels = show(unknown.labels)
    if len(unknown.labels) == MOST_UNKNOWN:
        labels = labels.replace("... (", "... (more than ")
    return f"Variable {cite(name)}: {cells} with {what}, {outcome}: {labels}."


def encode_column(
    variable: "Variable", column: Column, unknown_code: int = -1
) -> tuple[Codes, Unknown | None]:
    """Return the code of each cell, -1 where it is missing, and what was unknown."""
    levels = variable.levels
    if isinstance(column, Coded) and column.is_text:
        column = _parse_levels(variable, column)
    if variable.kind in DATE_PARTS:
        column = date_parts(column, variable.kind)
    if isinstance(column, Coded):
        codes = column.mapped([code_of(levels, variable._codes, x) for x in column.labels])
    elif isinstance(levels[0], Bin):
        bins = tuple(level for level in levels if isinstance(level, Bin))
        codes = bin_codes(bins, column.floats())
    else:
        codes = _codes_of_numbers(variable._codes, column)
    strange, unknown = codes == -2, None
    if strange.any():
        unknown = _unknown(column, strange)
        codes = np.where(strange, unknown_code, codes)
    return codes.astype(code_dtype(len(levels)), copy=False), unknown


def _parse_levels(variable: "Variable", column: Coded) -> Column:
    """Return cells of a text file as labels of the type of the variable's levels."""
    texts = [str(label) for label in column.labels]
    levels: dict[str, Level] = {str(level): level for level in variable.levels}
    levels |= {str(x).lower(): x for x in variable.levels if isinstance(x, bool)}
    if variable.kind == "binned" or not all(isinstance(x, str | bool) for x in variable.levels):
        empty = None if variable.empty is None else str(variable.levels[-1])
        others = [text for text in texts if text != empty]
        numbers = numbers_of(others)
        levels = levels if numbers is None else dict(zip(others, numbers, strict=True))
    labels = [levels.get(text, text) for text in texts]
    return numbers_if_all(column_of_distinct(labels, column.codes, variable.name))


def code_of(levels: tuple[Level, ...], codes: Mapping[Level, int], label: Level) -> int:
    """Return the code of one label, -2 if it is not a level; bins match numbers or their text."""
    code = codes.get(label, -2)
    if code >= 0 or not isinstance(levels[0], Bin):
        return code
    if isinstance(label, str):
        return next((i for i, level in enumerate(levels) if str(level) == label), -2)
    return next((i for i, x in enumerate(levels) if isinstance(x, Bin) and label in x), -2)


def _codes_of_numbers(levels: Mapping[Level, int], column: Numbers) -> Codes:
    """Return the code of each number, -2 where it is no level."""
    distinct, places = distinct_numbers(column.values)
    if distinct.dtype.itemsize < 8:  # a narrow float stands for every number that rounds to it
        kind, most = distinct.dtype.type, float(np.finfo(distinct.dtype).max)
        levels = {
            float(kind(x)): k
            for x, k in levels.items()
            if isinstance(x, int | float) and abs(x) <= most
        }
    codes = np.array([levels.get(x, -2) for x in distinct.tolist()], dtype=np.int32)[places]
    return codes if column.missing is None else np.where(column.missing, -1, codes)


def _unknown(column: Column, strange: NDArray[np.bool_]) -> Unknown:
    coded = column if isinstance(column, Coded) else column.coded()
    distinct, first = np.unique(coded.codes[strange], return_index=True)
    labels = tuple(coded.labels[i] for i in distinct[np.argsort(first)])
    return Unknown(labels, int(strange.sum()), int(np.argmax(strange)))


class EmptyCells(NamedTuple):
    """Which empty cells of a column are the last level of its variable.

    Parameters
    ----------
    parent : str, optional
        Another variable; without one, every empty cell is the last level.
    levels : tuple of levels
        Levels of the parent at which the variable does not apply: an empty cell of a record with
        one of them is the last level, any other one is unknown.

    Examples
    --------
    >>> str(EmptyCells("work", ("no", "retired"))), str(EmptyCells("where", ("office",)))
    ('work in {no, retired}', 'where = office')
    """

    parent: str | None = None
    levels: tuple[Level, ...] = ()

    def __str__(self) -> str:
        """Return the condition as the query language writes it."""
        labels = ", ".join(map(str, self.levels))
        return f"{self.parent} " + (f"= {labels}" if len(self.levels) == 1 else f"in {{{labels}}}")


#: Labels of the last level: of cells to which a variable does not apply, and of all empty cells.
DOES_NOT_APPLY, MISSING_LEVEL = "does not apply", "missing"

Kind = Literal["nominal", "ordinal", "binned", "year", "month"]
HandleUnknown = Literal["missing", "error"]


@dataclass(frozen=True, slots=True)
class Variable:
    """A discrete variable: its name and its levels in order.

    Labels match as Python compares them: 1, 1.0 and ``np.int64(1)`` are one level (and so
    is True), "1" is another.

    Parameters
    ----------
    name : str
        What the variable is called.
    levels : sequence of str, int, float, bool or Bin
        The labels it can take, in order; declared levels need not occur.
    kind : {"nominal", "ordinal", "binned", "year", "month"}, default "nominal"
        Whether the order of the levels means something; a variable whose levels are
        adjoining `Bin` intervals is always binned. Of dates, the year or the month (1 to 12) can
        be the level.
    representatives : sequence of float, optional
        Binned variables only: the number that stands for each bin, by default its middle. Those
        of data are the means of the values in each bin, so that expectations are theirs.
    contents : sequence of sequences of (value, weight), optional
        Binned variables only: values seen in each bin, by which a comparison divides its
        probability. At most 20 of each bin are kept of data.
    empty : EmptyCells, optional
        Which empty cells are the last level, "does not apply". That level has no place in the
        order of the others, and no number.

    Examples
    --------
    >>> grade = Variable("grade", ("low", "mid", "high"), "ordinal")
    >>> len(grade), grade.code("mid")
    (3, 1)
    >>> grade.encode(["high", None, "low"])
    array([ 2, -1,  0], dtype=int8)
    """

    name: str
    levels: tuple[Level, ...]
    kind: Kind = "nominal"
    representatives: tuple[float, ...] | None = None
    contents: Contents | None = field(default=None, repr=False)
    empty: EmptyCells | None = field(default=None, repr=False)
    _codes: dict[Level, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_text(str(self.name), "Variable", MOST_TEXT)
        levels = checked_levels(self.name, self.levels)
        kind = "binned" if any(isinstance(level, Bin) for level in levels) else self.kind
        values = levels if self.empty is None else levels[:-1]
        if not values:
            raise ValueError(f"Variable {cite(self.name)} needs a level besides {cite(levels[0])}.")
        checked: dict[str, Any] = {"name": str(self.name), "levels": levels, "kind": kind}
        numbers = checked_representatives(self.name, values, kind, self.representatives)
        contents = checked_contents(self.name, values, kind, self.contents)
        checked |= {"representatives": numbers, "contents": contents}
        checked["_codes"] = {level: i for i, level in enumerate(levels)}
        for key, value in checked.items():
            object.__setattr__(self, key, value)

    def __len__(self) -> int:
        """Return the number of levels."""
        return len(self.levels)

    @property
    def values(self) -> tuple[Level, ...]:
        """The levels that a cell can hold: all but the last one where that is of empty cells.

        Examples
        --------
        >>> Variable("age", (1, 2)).with_empty(EmptyCells("a", ("x",))).values
        (1, 2)
        """
        return self.levels if self.empty is None else self.levels[:-1]

    @property
    def scale(self) -> int:
        """The number of leading levels that have an order; 0 if the variable is nominal.

        Examples
        --------
        >>> age = Variable("age", (1, 2, "missing"), "ordinal", empty=EmptyCells())
        >>> age.scale, Variable("smoke", ("yes", "no")).scale
        (2, 0)
        """
        return 0 if self.kind == "nominal" else len(self.values)

    def with_empty(self, empty: EmptyCells | None) -> "Variable":
        """Return the variable with a last level for empty cells, or with none.

        Examples
        --------
        >>> Variable("sex", ("F", "M")).with_empty(EmptyCells("where", ("office",))).levels
        ('F', 'M', 'does not apply')
        """
        levels = self.values
        if empty is not None:
            label = MISSING_LEVEL if empty.parent is None else DOES_NOT_APPLY
            while label in levels:
                label += " (empty)"
            levels = (*levels, label)
        return replace(self, levels=levels, empty=empty)

    def encode(self, column: Any, *, handle_unknown: HandleUnknown = "missing") -> Codes:
        """Turn labels into codes; missing cells are -1.

        Parameters
        ----------
        column : sequence
            Labels; numbers or bins where the variable is binned.
        handle_unknown : {"missing", "error"}, default "missing"
            What to do with labels that are not levels: count them as missing, with a
            `Remark`, or raise an error.

        Returns
        -------
        ndarray of int8 (int16 beyond 127 levels, int32 beyond 32,767)

        Examples
        --------
        >>> Variable("age", (Bin(0, 18), Bin(18, 65, True)), "binned").encode([12, 65, None])
        array([ 0,  1, -1], dtype=int8)
        >>> Variable("x", ("a", "b")).encode(["a", "c"], handle_unknown="error")
        Traceback (most recent call last):
        ...
        ValueError: Variable 'x', row 1: level 'c' is not among 'a', 'b'; declare it in the \
Domain or leave the cell empty.
        """
        check_handle_unknown(handle_unknown)
        codes, unknown = encode_column(self, read_column(column, self.name))
        if unknown is not None:
            if handle_unknown == "error":
                raise unknown_error(self.name, self.levels, unknown)
            remark(unknown_text(self.name, self.levels, unknown))
        return codes

    def decode(self, codes: Any, *, missing: object = None) -> NDArray[Any]:
        """Turn codes into labels, as objects with `missing` where values are missing.

        Examples
        --------
        >>> Variable("x", ("a", "b")).decode([1, 0])
        array(['b', 'a'], dtype='<U1')
        >>> Variable("x", ("a", "b")).decode([1, -1], missing="?")
        array(['b', '?'], dtype=object)
        """
        codes = np.asarray(codes, dtype=None if np.size(codes) else np.intp)
        if codes.size and not (codes.min() >= -1 and codes.max() < len(self)):
            bad = codes[(codes < -1) | (codes >= len(self))].flat[0]
            levels = f"0..{len(self) - 1} (-1 is missing)"
            raise ValueError(f"Variable {cite(self.name)}: code {bad} is not among {levels}.")
        labels = label_array(self.levels)
        absent = codes < 0
        filled: NDArray[Any] = (labels.astype(object) if absent.any() else labels)[codes]
        if absent.any():
            filled[absent] = missing
        return filled

    def code(self, level: object) -> int:
        """Return the position of a level; of the bin around a number where binned.

        Examples
        --------
        >>> age = Variable("age", (Bin(0, 18), Bin(18, 65, True)), "binned")
        >>> age.code(20), age.code(Bin(0, 18)), age.code("[18, 65]")
        (1, 0, 1)
        >>> Variable("smoke", ("yes", "no")).code("yess")
        Traceback (most recent call last):
        ...
        ValueError: Variable 'smoke': level 'yess' is not among 'yes', 'no'. Did you mean 'yes'?
        """
        try:
            code = code_of(self.levels, self._codes, native(level))
        except TypeError:  # nothing that could be a label, or hashed
            code = -2
        if code < 0:
            what = f"Variable {cite(self.name)}: level {cite(level)}"
            near = nearest(level, self.levels)
            raise ValueError(f"{what} is not among {show(self.levels)}.{near}")
        return code

    @property
    def numeric(self) -> NDArray[np.float64]:
        """The number of each of `values`; its representative where binned.

        Examples
        --------
        >>> Variable("stars", (1, 2, 3)).numeric
        array([1., 2., 3.])
        >>> Variable("age", (Bin(0, 18), Bin(18, 65)), "binned").numeric
        array([ 9. , 41.5])
        """
        if self.representatives is not None:
            return np.array(self.representatives)
        words = [level for level in self.values if not is_number(level)]
        if words:
            what = f"Variable {cite(self.name)} has levels that are not numbers ({show(words)})"
            raise ValueError(f"{what}: it has a mode, but no mean or other expectation.")
        try:
            return np.array(self.values, dtype=np.float64)
        except OverflowError:
            no = "levels beyond 1.8e308, which no mean can be taken of"
            raise ValueError(f"Variable {cite(self.name)} has {no}.") from None

    def mean(self, shares: NDArray[np.float64]) -> float:
        """Return the mean of the numbers under shares of all levels, over cells that have one.

        Examples
        --------
        >>> income = Variable("income", (1, 3)).with_empty(EmptyCells("work", ("no",)))
        >>> income.mean(np.array([0.2, 0.2, 0.6]))
        2.0
        """
        numbers = self.numeric
        if self.empty is not None:
            shares = shares[:-1] / shares[:-1].sum()
        return float(numbers @ shares)

    def quantile(self, shares: NDArray[np.float64], q: Any) -> Any:
        """Return the smallest value whose share, with all below it, is at least ``q``.

        Parameters
        ----------
        shares : array of float
            Probability of each level; that of empty cells does not count.
        q : float or array of float
            Between 0 and 1. An array gives an array.

        Examples
        --------
        >>> age = Variable(
        ...     "age", (Bin(0, 18), Bin(18, 65)), contents=[[(3, 1)], [(20, 3), (60, 1)]]
        ... )
        >>> age.quantile(np.array([0.2, 0.8]), 0.5), age.quantile(np.array([0.2, 0.8]), 0.9)
        (20.0, 60.0)
        """
        asked = np.asarray(q, dtype=np.float64)
        if not ((asked >= 0) & (asked <= 1)).all():
            raise ValueError(f"q must be between 0 and 1, got {cite(q)}.")
        contents = self.contents or [((value, 1.0),) for value in self.numeric.tolist()]
        pairs = []
        for share, within in zip(shares.tolist(), contents, strict=False):  # one more of empty
            total = sum(weight for _, weight in within)
            pairs += [(value, share * weight / total) for value, weight in within]
        values, mass = np.array(sorted(pair for pair in pairs if pair[1] > 0)).T
        sums = np.cumsum(mass)
        at = np.searchsorted(sums, asked * sums[-1] * (1 - 1e-12))
        result = values[np.minimum(at, len(values) - 1)]
        return result if asked.ndim else float(result)

    def likelihood(self, evidence: Any) -> NDArray[np.float64]:
        """Return how well each level agrees with the evidence.

        Parameters
        ----------
        evidence : level, collection of levels, or array of float
            A level (1 for it, 0 for the others); a list, tuple or set of levels (any of
            them); an array of floats with one likelihood for each level (soft evidence);
            None or NaN (no evidence, all ones).

        Examples
        --------
        >>> import numpy as np
        >>> x = Variable("x", ("a", "b", "c"))
        >>> x.likelihood("b"), x.likelihood(["a", "c"])
        (array([0., 1., 0.]), array([1., 0., 1.]))
        >>> x.likelihood(np.array([0.9, 0.1, 0.0]))
        array([0.9, 0.1, 0. ])
        """
        if isinstance(evidence, np.ndarray) and evidence.ndim > 0:
            if evidence.dtype.kind == "f":
                _check_soft_evidence(self, evidence)
                return evidence.astype(np.float64)
            evidence = evidence.ravel().tolist()
        if is_missing(evidence):
            return np.ones(len(self))
        several = isinstance(evidence, (list, tuple, set, frozenset, range))
        levels = list(evidence) if several and not isinstance(evidence, Bin) else [evidence]
        if not levels:
            raise ValueError(
                f"Variable {cite(self.name)}: an empty list of levels can never be true; "
                "leave the variable out if nothing is known about it."
            )
        weights = np.zeros(len(self))
        weights[[self.code(level) for level in levels]] = 1.0
        return weights


def check_handle_unknown(handle_unknown: str) -> None:
    """Refuse anything but the two ways to treat unknown labels."""
    if handle_unknown not in ("missing", "error"):
        ways = "'missing' or 'error'"
        raise ValueError(f"handle_unknown must be {ways}, not {cite(handle_unknown)}.")


def _check_soft_evidence(variable: Variable, evidence: NDArray[Any]) -> None:
    what = f"Variable {cite(variable.name)}"
    if evidence.shape != (len(variable),):
        raise ValueError(
            f"{what} has {plural(len(variable), 'level')}: soft evidence must be one likelihood "
            f"for each, not an array of shape {evidence.shape}."
        )
    if not (np.isfinite(evidence).all() and (evidence >= 0).all() and evidence.any()):
        must = "soft evidence must be finite, nonnegative and not all zero"
        raise ValueError(f"{what}: {must}, not {evidence}.")
