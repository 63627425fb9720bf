"""Rank bounds: the lemmas of the paper as formulas, from the sides of a tensor to a rank.

``d1, d2, d3`` are the sides; where only some factors must be free of structure, the docstring
says so. A rank of 1 means that the formula says nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isqrt, prod
from typing import Literal

#: Length up to which a partition is shown by names.
MOST_SHOWN_LETTERS = 60

#: Products of sides up to which Chiantini, Ottaviani and Vannieuwenhoven ran their proof.
MOST_PROVED_CELLS = 15_000

#: Where generic uniqueness fails below the expected rank, besides unbalanced tensors.
EXCEPTIONS = {(4, 4, 3): 5, (4, 4, 4): 6, (6, 6, 3): 8, (2, 2, 2, 2, 2): 5}

#: What the theorems as printed assume, and why they are not proved.
PRINTED = (
    "equal levels; factors drawn from a continuous distribution; all tables of the order; the "
    "proof counts I|S_k| free rows in a group, of which |S_k|(I-1)+1 are free"
)


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
    standing : {"proved", "printed, not proved", "limit"}
        Whether the result is proved as it stands, or a limit that no result can exceed.
    assumptions : str
        What the result assumes.
    partition : tuple of tuples of names
        The groups of variables that attain it; empty if it has none.
    value : float
        The value of the formula before it is rounded down.

    Examples
    --------
    >>> import rejoint as rj
    >>> print(rj.identifiability.report([3] * 6, order=3)["Lemma 3"])
    Lemma 3: rank 4, proved, {x0 x3} {x1 x4} {x2 x5}. Assumptions: factors drawn from a \
continuous distribution; groups between which all tables are there, as a 5 x 5 x 5 tensor; other \
variables are linked to these.
    """

    name: str
    rank: int
    standing: Literal["proved", "printed, not proved", "limit"]
    assumptions: str
    partition: tuple[tuple[str, ...], ...] = ()
    value: float = float("nan")

    @property
    def proved(self) -> bool:
        """Whether the result is proved as it stands."""
        return self.standing != "printed, not proved"

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
    """Lemma 1, Kruskal 1977: ``sum min(d_k, F) >= 2 F + 2``."""
    low, middle, high = sorted((d1, d2, d3))
    return max(min(low + middle - 2, (low + middle + high - 2) // 2), 1) if low >= 2 else 1


def full_column_rank(d1: int, d2: int, d3: int) -> int:
    """Lemma 2: ``F <= min(d3, (d1 - 1)(d2 - 1))``, with ``d1, d2 >= 3``.

    The third factor needs no more than full column rank, so that it may be structured.
    """
    return max(min(d3, (d1 - 1) * (d2 - 1)), 1) if min(d1, d2) >= 3 else 1


def powers_of_two(d1: int, d2: int, d3: int) -> int:
    """Lemma 3: ``F <= 2^(a + b - 2)``, ``2^a`` and ``2^b`` within the two smaller sides."""
    low, middle, _ = sorted((d1, d2, d3))
    return int(2 ** max(low.bit_length() + middle.bit_length() - 4, 0)) if low >= 2 else 1


def compound(d1: int, d2: int, d3: int) -> int:
    """Lemma 4, generic: ``F <= d3`` and ``2 F (F - 1) <= d1 (d1 - 1) d2 (d2 - 1)``.

    The third factor may be structured.
    """
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


def printed_bounds(levels: Sequence[int], order: int | None) -> Iterator[RankBound]:
    """Theorems 1-3 and the formula behind Tables II and III, as printed, for equal levels."""
    size, i = len(levels), levels[0]
    ranks: dict[str, float] = {}
    if order == 4:
        splits = [(a // 2, (a + 1) // 2, (size - a) // 2, (size - a + 1) // 2) for a in range(size)]
        sides = [(i * a, i * b, i * i * c * d) for a, b, c, d in splits[2:-1]]
        ranks = {"Theorem 3": max(compound(*side) for side in sides)}
    elif order == 3:
        one = (isqrt(size * i - 1) // i * i - 1) ** 2 if size > i else i * (size - 2)
        ranks = {
            "Theorem 1": one,
            "Theorem 2": 4 ** max((size // 3 * i).bit_length() - 2, 0),
            "Theorem 2, closed form": (size // 3 * i + 1) ** 2 / 16,
            "Table II/III": max(one, (size * i / 3 + 1) ** 2 / 16),
        }
    for name, value in ranks.items() if len({*levels}) == 1 else ():
        yield RankBound(name, int(value), "printed, not proved", PRINTED, (), float(value))
