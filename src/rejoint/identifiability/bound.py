"""Bound: one result on the rank, with what it rests on."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Bound"]

Origin = Literal["printed", "corrected", "literature", "limit"]
Groups = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Bound:
    """Up to which rank a result holds.

    Parameters
    ----------
    name : str
        The result.
    rank : int
        Largest rank for which it says that the model is unique; of a limit, largest rank that
        it leaves possible. 0 where it says nothing of any rank.
    proved : bool
        Whether the result is proved as it stands.
    origin : {"printed", "corrected", "literature", "limit"}
        As the paper prints it; with the sides corrected; from elsewhere; or a limit that no
        result can pass.
    assumptions : str
        What it takes for granted, in words.
    partition : tuple of tuples of names
        The groups of variables that attain it; empty where it has none.
    value : float
        The formula's value before it is rounded down.

    Examples
    --------
    >>> Bound("Theorem 1", 24, False, "printed", "equal levels").rank
    24
    """

    name: str
    rank: int
    proved: bool
    origin: Origin
    assumptions: str
    partition: Groups = ()
    value: float = float("nan")

    def __str__(self) -> str:
        return f"{self.name}: rank {self.rank}"
