"""Labels and bins: what a cell may hold, what is missing, the order of levels."""

import datetime
import math
import re
from collections.abc import Hashable, Iterable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.text import check_text, cite, plural, show

Floats = NDArray[np.float64]
_FEW = 48


class Bin(NamedTuple):
    """An interval of numbers, closed on the left, by default open on the right.

    Parameters
    ----------
    left, right : float
        The ends; either may be infinite.
    closed_right : bool, default False
        Whether `right` itself belongs to the bin (it does in the last one).

    Examples
    --------
    >>> young = Bin(18, 25)
    >>> str(young), 18 in young, 25 in young
    ('[18, 25)', True, False)
    >>> str(Bin(-float("inf"), 18)), str(Bin(65, float("inf"), True))
    ('< 18', '>= 65')
    """

    left: float
    right: float
    closed_right: bool = False

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, (int, float, np.integer, np.floating)):
            return False
        number = float(value)
        return self.left <= number < self.right or (self.closed_right and number == self.right)

    def __str__(self) -> str:
        left, right = _number(self.left), _number(self.right)
        if math.isinf(self.left) and math.isinf(self.right):
            return "any number"
        if math.isinf(self.left):
            return f"{'<=' if self.closed_right else '<'} {right}"
        if math.isinf(self.right):
            return f">= {left}"
        return f"[{left}, {right}{']' if self.closed_right else ')'}"


def _number(value: float) -> str:
    """Write a number as short as it can be read back exactly."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value)).removesuffix(".0")


def bins_of_edges(edges: Floats) -> tuple[Bin, ...]:
    """Return the bins between increasing edges; the last one holds its right edge."""
    last = float(edges[-1])
    return tuple(Bin(left, right, right == last) for left, right in pairwise(edges.tolist()))


def bin_codes(bins: tuple[Bin, ...], values: Floats) -> NDArray[np.intp]:
    """Return the bin of each value: -1 where it is NaN, -2 where no bin holds it."""
    edges = np.array([b.left for b in bins] + [bins[-1].right])
    codes = place_among(edges, values)
    if bins[-1].closed_right:
        codes[values == edges[-1]] = len(bins) - 1
    codes[(codes < 0) | (codes >= len(bins))] = -2
    codes[np.isnan(values)] = -1
    return codes


def place_among(edges: NDArray[Any], values: NDArray[Any]) -> NDArray[np.intp]:
    """Return the place of the last edge that is not above each value, -1 if all are."""
    if len(edges) > _FEW or not len(values):
        return np.searchsorted(edges, values, side="right") - 1
    # A few comparisons of whole arrays take a fifth of the time of as many guessed branches.
    places = np.full(len(values), -1, dtype=np.int8)
    for edge in edges:
        places += values >= edge
    return places.astype(np.intp)


def quantile_edges(values: Floats, count: int, weight: Floats | None = None) -> Floats:
    """Return edges of at most `count` bins of about equal weight, infinite at both ends.

    Each inner edge is the roundest number between two neighbouring values, at the place
    where the share of the values below it is nearest to the quantile asked for. Ties leave
    fewer bins.
    """
    mass: NDArray[Any]
    if weight is None or not weight.any():
        distinct, mass = np.unique(values, return_counts=True)
    else:
        distinct, where = np.unique(values[weight > 0], return_inverse=True)
        mass = np.bincount(where, weights=weight[weight > 0])
    if len(distinct) == 1:
        return np.array([-np.inf, np.inf])
    below = (np.cumsum(mass) - mass) / mass.sum()
    targets = np.arange(1, count) / count
    after = np.clip(np.searchsorted(below, targets), 1, len(distinct) - 1)
    nearest = np.where(targets - below[after - 1] <= below[after] - targets, after - 1, after)
    chosen = [i for i in np.unique(nearest[nearest > 0]) if distinct[i] < np.inf]
    cuts = [_roundest(distinct[i - 1], distinct[i]) for i in chosen]
    return np.array([-np.inf, *cuts, np.inf])


def _roundest(below: float, value: float) -> float:
    """Return the number with the fewest digits in the interval (below, value]."""
    below, value = float(below), float(value)
    if not 1e-300 < value - below < 1e300:
        return value
    digits = -math.floor(math.log10(value - below)) - 1
    for places in range(digits, digits + 20):
        # Decimal rounding of a float: round() is exact where multiplying by 10**places is not.
        candidate = round(value, places)
        if candidate > value:
            candidate = round(candidate - 10.0**-places, places)
        if below < candidate <= value:
            return candidate
    return value


def representatives(
    bins: tuple[Bin, ...], values: Floats, weight: Floats | None = None
) -> tuple[float, ...]:
    """Return the mean of the values in each bin; its middle (or finite end) where there are none.

    The mean, not the median, so that the expectation of a binned variable under the shares
    of its bins is the mean of the data.
    """
    finite = np.isfinite(values)
    # Distinct values in order, so that the sums are the same however the rows are sorted.
    distinct, where = np.unique(values[finite], return_inverse=True)
    share = np.bincount(where, None if weight is None else weight[finite], len(distinct))
    codes = bin_codes(bins, distinct)
    inside = codes >= 0
    mass = np.bincount(codes[inside], share[inside], len(bins))
    total = np.bincount(codes[inside], (share * distinct)[inside], len(bins))
    groups = zip(bins, mass.tolist(), total.tolist(), strict=True)
    return tuple(t / m if m > 0 else middle(b) for b, m, t in groups)


#: Scaled weights are multiples of this, so that their sums are exact in any order, and the same
#: whatever the scale of the weights was.
WEIGHT_STEP = 2.0**-24


def scale_weights(weight: Floats, records: float, total: float) -> Floats:
    """Return weights of this total scaled to sum to a number of records, in small steps.

    Examples
    --------
    >>> import numpy as np
    >>> scale_weights(np.array([1000.0, 3000.0]), 2, 4000.0)
    array([0.5, 1.5])
    """
    steps = np.rint(weight * (records / (total * WEIGHT_STEP)))
    return np.where(weight > 0, np.maximum(steps, 1.0) * WEIGHT_STEP, 0.0)


#: Values that are kept of each bin, at most: each then stands for a twentieth of its records.
MOST_CONTENTS = 20

#: Values of each bin with their weights, in increasing order.
Contents = tuple[tuple[tuple[float, float], ...], ...]


def values_within(bins: tuple[Bin, ...], values: Floats, weight: Floats | None = None) -> Contents:
    """Return the values in each bin with their weights, thinned by rank where they are many.

    A bin without values holds its middle (or finite end).

    Examples
    --------
    >>> import numpy as np
    >>> values_within((Bin(0, 18), Bin(18, 65)), np.array([3.0, 5, 5]))
    (((3.0, 1.0), (5.0, 2.0)), ((41.5, 1.0),))
    """
    codes = bin_codes(bins, values)
    keep = np.isfinite(values) & (codes >= 0)
    if weight is not None:
        keep &= weight > 0
    order = np.flatnonzero(keep)
    order = order[np.argsort(values[order], kind="stable")]
    ordered, codes = values[order], codes[order]
    mass = np.ones(len(order)) if weight is None else weight[order]
    ends = np.searchsorted(codes, np.arange(len(bins) + 1))
    return tuple(
        _thinned(ordered[a:b], mass[a:b]) if b > a else ((middle(bins[k]), 1.0),)
        for k, (a, b) in enumerate(pairwise(ends))
    )


def _thinned(ordered: Floats, mass: Floats) -> tuple[tuple[float, float], ...]:
    """Return values in order once each with their weights; of neighbors in rank the middle one."""
    distinct, first = np.unique(ordered, return_index=True)
    total = np.add.reduceat(mass, first)[None]
    if len(distinct) > MOST_CONTENTS:
        distinct, total = join_neighbors(distinct, total, MOST_CONTENTS)
    return tuple(zip(distinct.tolist(), total[0].tolist(), strict=True))


def join_neighbors(
    distinct: NDArray[Any], counts: Floats, most: int
) -> tuple[NDArray[Any], Floats]:
    """Return at most that many of some values in order, of neighbors in rank the middle one.

    The last row of the counts is the weight that makes the rank.
    """
    mass = np.maximum(counts[-1], 1e-300)  # of numbers without weight too
    middles = np.cumsum(mass) - mass / 2
    starts = np.flatnonzero(np.diff(np.floor(middles / mass.sum() * most), prepend=-1.0))
    joint = np.add.reduceat(counts, starts, axis=1)
    halves = np.cumsum(joint[-1]) - joint[-1] / 2
    chosen = np.clip(np.searchsorted(np.cumsum(mass), halves), starts, len(distinct) - 1)
    return distinct[chosen], joint


def middle(interval: Bin) -> float:
    """Return the middle of a bin, or its finite end."""
    ends = [e for e in (interval.left, interval.right) if math.isfinite(e)]
    return sum(ends) / len(ends) if ends else 0.0


Level = Hashable
"""A label: text, a number, a boolean, or a `Bin`."""

_MISSING_TYPES = ("NoneType", "NAType", "NaTType", "MaskedConstant")
_DIGITS = re.compile(r"([0-9]+)")


def is_missing(value: object) -> bool:
    """Say whether a cell is empty: None, NaN, pandas NA or NaT, a masked value."""
    if isinstance(value, (float, np.floating, Decimal)):
        return bool(value != value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    # By name: pandas, which owns two of these types, is not imported for the question.
    return type(value).__name__ in _MISSING_TYPES


def is_number(level: object) -> bool:
    """Say whether a label is a number; booleans count as 0 and 1."""
    return isinstance(level, (int, float))


class LabelError(TypeError, ValueError):
    """Error raised for values that cannot be labels, such as lists.

    Examples
    --------
    >>> issubclass(LabelError, TypeError)
    True
    """


def native(value: object) -> Level:
    """Return a label as plain Python: str, int, float, bool or `Bin`; a date is ISO text."""
    if type(value) in (str, int, float, bool, Bin):
        return value
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, (Real, Decimal, Fraction)):
        return float(value)
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    if isinstance(value, (datetime.date, datetime.time, datetime.timedelta)):
        return str(value)
    if isinstance(value, np.datetime64):
        return native(value.astype("datetime64[us]").item())
    raise LabelError(
        f"{cite(value)} is a {type(value).__name__}, which cannot be a label: labels are text, "
        "numbers, booleans and dates"
    )


def natural_order(levels: Iterable[Level]) -> list[Level]:
    """Sort labels: numbers by value, then text with its runs of digits by value."""
    return sorted(levels, key=_natural_key)


def _natural_key(level: Level) -> tuple[int, float | int, list[str | tuple[int, str]], str]:
    if isinstance(level, (int, float)):
        return 0, level, [], ""
    text = str(level)
    parts: list[str | tuple[int, str]] = list(_DIGITS.split(text))
    # Digits compare by length, then by themselves: the order of the numbers, at any length.
    for i in range(1, len(parts), 2):
        digits = str(parts[i]).lstrip("0")
        parts[i] = (len(digits), digits)
    return 1, 0, parts, text


def label_array(levels: tuple[Level, ...]) -> NDArray[Any]:
    """Return the labels in the dtype of their one type, as objects if there are several."""
    array = np.empty(len(levels), dtype=object)
    for i, level in enumerate(levels):  # one by one: a Bin is a tuple, and would be spread out
        array[i] = level
    kinds = {type(level) for level in levels}
    if kinds == {str} and not any(level.endswith("\0") for level in array):
        return array.astype(np.str_)  # which drops NUL at the end
    if kinds == {int} and all(-(2**63) <= level < 2**63 for level in array):
        return array.astype(np.int64)
    return array.astype(kinds.pop()) if kinds in ({bool}, {float}) else array


def checked_levels(name: str, levels: Iterable[object]) -> tuple[Level, ...]:
    """Return labels as plain Python, or say what is wrong with them."""
    what = f"Variable {cite(name)}"
    if isinstance(levels, (str, bytes)):
        raise TypeError(f"{what}: levels must be a list, not the text {cite(levels)}.")
    labels: dict[Level, None] = {}
    for level in levels:
        if is_missing(level):
            no = "means missing and cannot be a level; leave it out"
            raise ValueError(f"{what}: {cite(level)} {no}.")
        try:
            label = native(level)
        except TypeError as error:
            raise LabelError(f"{what}: level {error}.") from None
        if isinstance(label, str):
            check_text(label, f"{what}: level")
        if label in labels:
            raise ValueError(f"{what}: level {cite(label)} appears twice.")
        labels[label] = None
    if not labels:
        raise ValueError(f"{what} has no levels: it needs at least one.")
    return tuple(labels)


def checked_representatives(
    name: str, levels: tuple[Level, ...], kind: str, stand_ins: Iterable[float] | None
) -> tuple[float, ...] | None:
    """Return the number that stands for each bin, None if the levels are not bins."""
    what = f"Variable {cite(name)}"
    if kind not in ("nominal", "ordinal", "binned", "year", "month"):
        kinds = "'nominal', 'ordinal', 'binned', or 'year' or 'month' of dates"
        raise ValueError(f"{what}: kind must be {kinds}, not {cite(kind)}.")
    if kind != "binned":
        if stand_ins is not None:
            raise ValueError(f"{what} is {kind}: only binned ones have representatives.")
        return None
    bins = [level for level in levels if isinstance(level, Bin)]
    joined = all(a.right == b.left and not a.closed_right for a, b in pairwise(bins))
    if len(bins) < len(levels) or not joined or not all(b.left < b.right for b in bins):
        raise ValueError(
            f"{what}: the levels of a binned variable must be adjoining bins in increasing order, "
            f"not {show(levels)}."
        )
    numbers = tuple(map(middle, bins) if stand_ins is None else map(float, stand_ins))
    if len(numbers) != len(bins) or not np.isfinite(numbers).all():
        raise ValueError(
            f"{what} has {plural(len(bins), 'bin')}: it needs one finite representative for each, "
            f"not {numbers}."
        )
    return numbers


def checked_contents(
    name: str, levels: tuple[Level, ...], kind: str, contents: Any
) -> Contents | None:
    """Return the values of each bin with their weights, or say what is wrong with them."""
    if contents is None:
        return None
    what = f"Variable {cite(name)}"
    checked = tuple(tuple((float(x), float(mass)) for x, mass in pairs) for pairs in contents)
    if kind != "binned" or len(checked) != len(levels):
        count = sum(isinstance(level, Bin) for level in levels)
        raise ValueError(
            f"{what}: contents are values in each of its bins, {plural(count, 'list')} of pairs "
            f"(value, weight); got {len(checked)} for a {kind} variable."
        )
    for interval, pairs in zip(levels, checked, strict=True):
        is_rising = all(a < b for (a, _), (b, _) in pairwise(pairs))
        if not pairs or not is_rising or not all(0 < mass < math.inf for _, mass in pairs):
            raise ValueError(
                f"{what}, bin {interval}: contents must be increasing values with weights above "
                f"zero, not {pairs}."
            )
    return checked
