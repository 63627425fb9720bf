"""The rank that a caller asks about, checked."""

from typing import Any

import numpy as np

__all__ = ["whole_rank"]


def whole_rank(rank: Any) -> int:
    """A whole number of at least one, or an error in words.

    Examples
    --------
    >>> whole_rank(2.5)
    Traceback (most recent call last):
    ...
    ValueError: rank must be a whole number of at least 1, got 2.5.
    """
    if isinstance(rank, bool) or not isinstance(rank, int | np.integer) or rank < 1:
        raise ValueError(f"rank must be a whole number of at least 1, got {rank!r}.")
    return int(rank)
