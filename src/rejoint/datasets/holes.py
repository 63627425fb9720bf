"""Ways to spoil data in a known manner."""

from dataclasses import replace
from typing import Any

import numpy as np

from rejoint.records import Records

__all__ = ["remove_cells"]


def remove_cells(
    data: Any, share: float, *, random_state: int | np.random.Generator | None = None
) -> Records:
    """Records with cells knocked out completely at random.

    Parameters
    ----------
    data : Records or anything that :meth:`Records.of` takes
        Left as it is.
    share : float
        Probability of each cell to be removed, between 0 and 1.
    random_state : int, Generator or None
        Seed, or source, of the randomness.

    Returns
    -------
    Records
        The same records with holes.

    Examples
    --------
    >>> import rejoint as rj
    >>> records = rj.Records.of({"a": ["x", "y"] * 500, "b": ["u", "v"] * 500})
    >>> holes = rj.datasets.remove_cells(records, 0.3, random_state=0)
    >>> round(float((holes.codes < 0).mean()), 2)
    0.3
    """
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"share is the probability of a cell to be removed, 0 to 1; got {share}.")
    records = Records.of(data)
    rng = np.random.default_rng(random_state)
    gone = rng.random(records.codes.shape) < share
    return replace(records, codes=np.where(gone, records.codes.dtype.type(-1), records.codes))
