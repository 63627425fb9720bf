"""Bound: one result on the rank, with what it rests on."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Bound"]

Origin = Literal["printed", "corrected", "literature", "limit"]
Groups = tuple[tuple[str, ...], ...]

#: Letters of a partition that is shown by names.
LINE = 60


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
    >>> import rejoint as rj
    >>> print(rj.identifiability.report([3] * 6, order=3)["One table (Kruskal)"])
    One table (Kruskal): rank 3, proved, {x0} {x1} {x2}. Rests on: factors drawn from a \
continuous distribution; one table is unique by itself ((3I-2)/2 for three variables of I levels), \
and every other variable hangs on it, or on those that do, by overlapping tables.
    """

    name: str
    rank: int
    proved: bool
    origin: Origin
    assumptions: str
    partition: Groups = ()
    value: float = float("nan")

    @property
    def standing(self) -> str:
        """Whether it is proved, in a word or two."""
        if self.origin == "limit":
            return "limit"
        return "proved" if self.proved else "printed, not proved"

    @property
    def groups(self) -> str:
        """The partition in a line; by the sizes of its groups where names would be too long."""
        text = " ".join("{" + " ".join(group) + "}" for group in self.partition)
        if len(text) <= LINE:
            return text
        return "groups of " + ", ".join(str(len(group)) for group in self.partition)

    def __str__(self) -> str:
        known = ", ".join(filter(None, [f"rank {self.rank}", self.standing, self.groups]))
        return f"{self.name}: {known}. Rests on: {self.assumptions}."
