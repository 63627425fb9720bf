"""Validation of arguments that all fits share."""

from typing import Any, Literal

import numpy as np

from rejoint.text import cite


def check_positive_int(name: str, value: Any) -> int:
    """Check that an argument is a whole number of at least one.

    Examples
    --------
    >>> check_positive_int("rank", 0)
    Traceback (most recent call last):
    ...
    ValueError: rank must be a whole number of at least 1, got 0.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        is_short = value is None or isinstance(value, str | int | float | np.generic)
        got = cite(value) if is_short else f"a {type(value).__name__}"
        raise ValueError(f"{name} must be a whole number of at least 1, got {got}.")
    return int(value)


def whole_or_auto(name: str, value: Any) -> int | Literal["auto"]:
    """Check that an argument is ``"auto"`` or a whole number of at least one.

    Examples
    --------
    >>> whole_or_auto("rank", "auto")
    'auto'
    >>> whole_or_auto("rank", np.zeros((5, 5)))
    Traceback (most recent call last):
    ...
    ValueError: rank must be a whole number of at least 1, got a ndarray.
    """
    return "auto" if isinstance(value, str) and value == "auto" else check_positive_int(name, value)
