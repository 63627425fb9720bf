"""Rank bounds: the lemmas of the paper as formulas, from the sides of a tensor to a rank.

``d1, d2, d3`` are the sides; where only some factors must be free of structure, the docstring
says so. A rank of 1 means that the formula says nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt, prod
from typing import Literal

#: Length up to which a partition is shown by names.
MOST_SHOWN_LETTERS = 60

#: Products of sides up to which Chiantini, Ottaviani and Vannieuwenhoven ran their proof.
MOST_PROVED_CELLS = 15_000

#: Where generic uniqueness fails below the expected rank, besides unbalanced tensors.
EXCEPTIONS = {(4, 4, 3): 5, (4, 4, 4): 6, (6, 6, 3): 8, (2, 2, 2, 2, 2): 5}


@dataclass(frozen=True)
class RankBound:
    """The rank up to which a result holds.

    Parameters
    ----------
    name : str
        The result.
    rank : int
        Largest rank for which the result says that the model is unique; for a limit, the largest
        rank that it leaves possible. 0 if it says nothing about any rank.
    proved : bool
        Whether the result is proved as it stands.
    origin : {"printed", "corrected", "literature", "limit"}
        As the paper prints it; with the sides corrected; from elsewhere; or a limit that no
        result can exceed.
    assumptions : str
        What the result assumes.
    partition : tuple of tuples of names
        The groups of variables that attain it; empty if it has none.
    value : float
        The value of the formula before it is rounded down.

    Examples
    --------
    >>> import rejoint as rj
    >>> print(rj.identifiability.report([3] * 6, order=3)["One table (Kruskal)"])
    One table (Kruskal): rank 3, proved, {x0} {x1} {x2}. Assumptions: factors drawn from a \
continuous distribution; one table is unique by itself ((3I-2)/2 for three variables of I levels), \
and every other variable is linked to it, directly or through others, by overlapping tables.
    """

    name: str
    rank: int
    proved: bool
    origin: Literal["printed", "corrected", "literature", "limit"]
    assumptions: str
    partition: tuple[tuple[str, ...], ...] = ()
    value: float = float("nan")

    @property
    def standing(self) -> str:
        """Whether the result is proved."""
        if self.origin == "limit":
            return "limit"
        return "proved" if self.proved else "printed, not proved"

    @property
    def groups(self) -> str:
        """The partition in a line; by the sizes of its groups where names are too long."""
        text = " ".join("{" + " ".join(group) + "}" for group in self.partition)
        if len(text) <= MOST_SHOWN_LETTERS:
            return text
        return "groups of " + ", ".join(str(len(group)) for group in self.partition)

    def __str__(self) -> str:
        facts = ", ".join(filter(None, [f"rank {self.rank}", self.standing, self.groups]))
        return f"{self.name}: {facts}. Assumptions: {self.assumptions}."


def kruskal(d1: int, d2: int, d3: int) -> int:
    """Lemma 1, Kruskal 1977: ``sum min(d_k, F) >= 2 F + 2``.

    Only Kruskal ranks matter, which are ``min(d_k, F)`` for stacked and for Khatri-Rao
    structured factors, too.
    """
    low, middle, high = sorted((d1, d2, d3))
    return max(min(low + middle - 2, (low + middle + high - 2) // 2), 1) if low >= 2 else 1


def full_column_rank(d1: int, d2: int, d3: int) -> int:
    """Lemma 2: ``F <= min(d3, (d1 - 1)(d2 - 1))``, with ``d1, d2 >= 3``.

    The third factor needs no more than full column rank: uniqueness then depends on the first
    two alone, so that the third may be structured. ``d1, d2`` must be free of structure.
    """
    return max(min(d3, (d1 - 1) * (d2 - 1)), 1) if min(d1, d2) >= 3 else 1


def powers_of_two(d1: int, d2: int, d3: int) -> int:
    """Lemma 3: ``F <= 2^(a + b - 2)``, ``2^a`` and ``2^b`` within the two smaller sides."""
    low, middle, _ = sorted((d1, d2, d3))
    return int(2 ** max(low.bit_length() + middle.bit_length() - 4, 0)) if low >= 2 else 1


def compound(d1: int, d2: int, d3: int) -> int:
    """Lemma 4, generic: ``F <= d3`` and ``2 F (F - 1) <= d1 (d1 - 1) d2 (d2 - 1)``."""
    # F (F - 1) <= product/2 means F <= (1 + sqrt(1 + 2 product))/2.
    return max(min(d3, (1 + isqrt(1 + 2 * d1 * (d1 - 1) * d2 * (d2 - 1))) // 2), 1)


def below_expected(sides: Sequence[int]) -> int:
    """Chiantini, Ottaviani, Vannieuwenhoven 2014: every rank below the expected one.

    ``F < prod d_k / (1 + sum (d_k - 1))`` for tensors of up to 15,000 cells, with a few
    exceptions; the proof is by computer, case by case.
    """
    sides = tuple(sorted((d for d in sides if d > 1), reverse=True))
    if len(sides) < 3 or prod(sides) > MOST_PROVED_CELLS:
        return 1
    expected = (prod(sides) - 1) // (1 + sum(d - 1 for d in sides))
    unbalanced = prod(sides[1:]) - sum(d - 1 for d in sides[1:])
    if sides[0] > unbalanced:
        return max(min(expected, unbalanced - 1), 1)
    exception = EXCEPTIONS.get(sides, expected + 1)
    if len(sides) == 4 and sides[0] == sides[1] and sides[2:] == (2, 2):
        exception = 2 * sides[0] - 1
    return max(min(expected, exception - 1), 1)
