"""Levels: the labels that a variable is declared with, checked, and as an array."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.bins import Bin, middle
from rejoint.domain.labels import Level, is_missing, native, show

__all__ = ["checked_levels", "checked_representatives", "label_array"]


def label_array(levels: tuple[Level, ...]) -> NDArray[Any]:
    """Return the labels in the dtype of their one type, as objects if there are several.

    Examples
    --------
    >>> label_array((1, 2)), label_array((1, "a"))
    (array([1, 2]), array([1, 'a'], dtype=object))
    """
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
    """Return labels as plain Python, or say what is wrong with them.

    Examples
    --------
    >>> import numpy as np
    >>> checked_levels("x", np.array([2, 1]))
    (2, 1)
    """
    if isinstance(levels, (str, bytes)):
        raise TypeError(f"Variable {name!r}: levels must be a list, not the text {levels!r}.")
    labels: dict[Level, None] = {}
    for level in levels:
        if is_missing(level):
            raise ValueError(
                f"Variable {name!r}: {level!r} means missing and cannot be a level; leave it out."
            )
        try:
            label = native(level)
        except TypeError as error:
            raise TypeError(f"Variable {name!r}: level {error}.") from None
        if label in labels:
            raise ValueError(f"Variable {name!r}: level {label!r} is there twice.")
        labels[label] = None
    if not labels:
        raise ValueError(f"Variable {name!r} has no levels: it needs at least one.")
    return tuple(labels)


def checked_representatives(
    name: str, levels: tuple[Level, ...], kind: str, stand_ins: Iterable[float] | None
) -> tuple[float, ...] | None:
    """Return the number that stands for each bin, None where the levels are no bins.

    Examples
    --------
    >>> checked_representatives("age", (Bin(0, 18), Bin(18, 65)), "binned", None)
    (9.0, 41.5)
    """
    if kind not in ("nominal", "ordinal", "binned"):
        raise ValueError(
            f"Variable {name!r}: kind must be 'nominal', 'ordinal' or 'binned', not {kind!r}."
        )
    if kind != "binned":
        if stand_ins is not None:
            raise ValueError(f"Variable {name!r} is {kind}: only binned ones have representatives.")
        return None
    bins = [level for level in levels if isinstance(level, Bin)]
    joined = all(a.right == b.left and not a.closed_right for a, b in pairwise(bins))
    rising = all(b.left < b.right for b in bins)
    if len(bins) < len(levels) or not joined or not rising:
        raise ValueError(
            f"Variable {name!r}: the levels of a binned variable must be adjoining bins in "
            f"increasing order, not {show(levels)}."
        )
    if stand_ins is None:
        return tuple(middle(b) for b in bins)
    numbers = tuple(float(x) for x in stand_ins)
    if len(numbers) != len(bins) or not np.isfinite(numbers).all():
        raise ValueError(
            f"Variable {name!r} has {len(bins)} bins: it needs one finite representative for "
            f"each, not {numbers}."
        )
    return numbers
