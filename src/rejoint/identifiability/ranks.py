"""The whole numbers that a caller asks about, checked."""

from typing import Any

import numpy as np

__all__ = ["whole_number", "whole_rank"]


def whole_number(name: str, value: Any) -> int:
    """A whole number of at least one, or an error in words.

    Examples
    --------
    >>> whole_number("budget", 2.5)
    Traceback (most recent call last):
    ...
    ValueError: budget must be a whole number of at least 1, got 2.5.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")
    return int(value)


def whole_rank(rank: Any) -> int:
    """The number of classes."""
    return whole_number("rank", rank)
