"""Arguments that all fits check alike."""

from typing import Any

import numpy as np


def whole(name: str, value: Any) -> int:
    """Check that an argument is a whole number of at least one.

    Examples
    --------
    >>> whole("rank", 0)
    Traceback (most recent call last):
    ...
    ValueError: rank must be a whole number of at least 1, got 0.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")
    return int(value)
